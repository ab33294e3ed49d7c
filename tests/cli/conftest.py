"""A command run in this process: its exit code, what it printed, and what it said."""

from typing import NamedTuple

import pytest

from weft.cli import main


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def weft(capsys):
    def call(*tokens) -> Said:
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        return Said(code, *capsys.readouterr())

    return call
