"""docs/papers/shoal.md: every figure and claim is on it, and what takes seconds prints what it says."""

import re
from pathlib import Path

import pytest

from weft.cli import main
from weft.papers import MODULES, figure

PAGE = (Path(__file__).parents[2] / "docs/papers/shoal.md").read_text(encoding="utf-8")
SAID = dict(re.findall(r"^```console\n\$ weft figure (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
SHOAL = [name for name in MODULES if name.startswith("shoal/")]


@pytest.mark.parametrize("name", SHOAL)
def test_every_claim_is_on_the_page_with_what_we_measured(name):
    for claim in figure(name).CLAIMS:
        assert re.search(rf"^[a-z ]+  \[{claim.id}\] {re.escape(claim.statement)}\n    ours: .+$", SAID[name], re.M)
        assert f"| {claim.id.removeprefix('shoal.')}: {claim.statement} | " in PAGE


@pytest.mark.parametrize("name", ["shoal/9", "shoal/10", "shoal/table1"])
def test_a_figure_that_takes_seconds_prints_what_the_page_says(name, capsys):
    assert main(["figure", name, "-q"]) == int("\ndiffers  [" in SAID[name])
    assert capsys.readouterr().out == SAID[name]


def test_every_figure_has_a_row_for_each_of_its_verdicts():
    said = re.findall(r"^\| (\w+) \| c\d+: .* \| ([a-z ]+) \| (?:[a-z ]+|–) \|$", PAGE, re.M)
    for name in SHOAL:
        shown = [line.split("  [")[0] for line in SAID[name].splitlines() if "  [shoal.c" in line]
        assert [verdict for figure, verdict in said if figure == name.removeprefix("shoal/")] == shown, name


def test_every_link_of_the_page_leads_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs/papers" / target).exists(), target
