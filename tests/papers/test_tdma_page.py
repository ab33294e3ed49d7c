"""docs/papers/tdma.md: every figure and claim is on it, and what takes seconds prints what it says.

`python tests/papers/test_tdma_page.py` writes the answers anew.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

from weft.cli import main
from weft.papers import MODULES, figure

FILE = Path(__file__).parents[2] / "docs/papers/tdma.md"
PAGE = FILE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```console\n\$ weft figure (\S+)( --seeds \S+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = {name: said for name, _, said in BLOCK.findall(PAGE)}
SEEDS = {name: seeds.split() for name, seeds, _ in BLOCK.findall(PAGE)}
TDMA = [name for name in MODULES if name.startswith("tdma/")]


def answer(name):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["figure", name, *SEEDS[name], "-q"]) < 2
    return out.getvalue()


@pytest.mark.parametrize("name", TDMA)
def test_every_claim_is_on_the_page_with_what_we_measured(name):
    for claim in figure(name).CLAIMS:
        assert re.search(rf"^[a-z ]+  \[{claim.id}\] {re.escape(claim.statement)}\n    ours: .+$", SAID[name], re.M)


LATER = [pytest.param(name, marks=pytest.mark.slow) for name in ("tdma/11", "tdma/12")]  # tests/cli types them too


@pytest.mark.parametrize("name", ["tdma/pause", "tdma/spread", "tdma/10", *LATER])
def test_a_figure_that_takes_seconds_prints_what_the_page_says(name):
    assert answer(name) == SAID[name]


def test_every_link_of_the_page_leads_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (FILE.parent / target).exists(), target


@pytest.mark.parametrize("name", ["tdma/pause", "tdma/10", "tdma/11", "tdma/12"])
def test_a_figure_can_be_drawn(name, tmp_path):
    module = figure(name)
    module.draw(module.table("small")).save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.csv").read_text().count("\n") > 5


def test_the_checks_of_the_transfers_can_fail():
    from weft.papers.tdma import alltoall

    row = {"bytes": 10**9, "ideal_s": 18.4, "over_ideal": 1.05, "first_flow": 0.99}
    systems = "TDMA", "TDMA, guard inside", "TCP, all begin at once", "TCP, within 1 ms"
    table = [{"system": name, "finish_s": 19.4, **row} for name in systems]
    assert alltoall.finish(194, 184)(table)[0] and not alltoall.finish(205, 184)(table)[0]
    assert alltoall.ideal(184)(table)[0] and not alltoall.ideal(1024)(table)[0]
    assert (
        alltoall.better()(table)[0] is alltoall.better(15)(table)[0] is False and alltoall.together(table)[0] is False
    )
    assert alltoall.against_tcp(1.05)(table)[0] == "consistent" and alltoall.against_tcp(1.22)(table)[0] is False


if __name__ == "__main__":
    new = BLOCK.sub(lambda m: f"```console\n$ weft figure {m[1]}{m[2] or ''}\n{answer(m[1])}```", PAGE)
    FILE.write_text(new, encoding="utf-8")
