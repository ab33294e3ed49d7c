"""Every command in the cost pages prints what the page says, and so does every example.

`python tests/models/test_cost_docs.py` writes both anew.
"""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

from weft.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/models.md", *sorted((ROOT / "docs/models").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("cost_*.py"))
BLOCK = re.compile(r"```console\n\$ weft cost ([^\n]*)\n(.*?)```", re.DOTALL)


def printed_by(call):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call()
    return out.getvalue()


def answer(line):
    return printed_by(lambda: main(["cost", *line.split()]))


def refreshed(text):
    return BLOCK.sub(lambda block: f"```console\n$ weft cost {block[1]}\n{answer(block[1])}```", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_the_commands_print(page):
    text = page.read_text()
    assert BLOCK.search(text)
    assert refreshed(text) == text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_what_is_beside_it(example):
    assert printed_by(lambda: runpy.run_path(str(example))) == example.with_suffix(".out").read_text()


def test_every_paper_has_its_page():
    assert {page.stem for page in PAGES} == {"models", "shoal", "merchant", "stardust", "fpga", "tdma"}


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(refreshed(page.read_text()))
    for example in EXAMPLES:
        example.with_suffix(".out").write_text(printed_by(lambda path=example: runpy.run_path(str(path))))
