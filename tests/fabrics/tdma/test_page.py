"""docs/fabrics/tdma.md: its programs print what it says, and its commands are commands."""

import contextlib
import io
import re
import shlex
from pathlib import Path

from weft.cli import main

PAGE = Path(__file__).parents[3] / "docs/fabrics/tdma.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(program):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    return out.getvalue()


def test_the_programs_of_the_page_print_what_it_says():
    programs = PROGRAM.findall(PAGE.read_text(encoding="utf-8"))
    assert len(programs) == 7
    for program, said in programs:
        assert printed(program) == said


def test_the_commands_of_the_page_are_commands():
    (block,) = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line)[2:]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main([*words[: 3 if words[0] == "run" else 2], "--help"]) == 0
        for flag in re.findall(r"--[a-z-]+", line):
            assert flag in out.getvalue(), flag
