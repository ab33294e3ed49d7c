"""The faults that are to be planted can be, in every room, and the page of what is promised says who notices each."""

from pathlib import Path

import pytest

from test_programs import ROOT, loaded
from weft import catalogue

PROGRAM = loaded("verification/mutants.py")
MUTANTS = PROGRAM["mutants"]()
PAGE = (ROOT / "docs/reliability.md").read_text()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_a_fault_can_be_planted(mutant):
    text = (ROOT / "src/weft/fabrics" / mutant["file"]).resolve().read_text()
    assert text.count(mutant["old"]) == 1
    compile(text.replace(mutant["old"], mutant["new"]), mutant["file"], "exec")


def test_there_are_thirty_over_all_rooms():
    own = [name for name in catalogue.fabrics() if catalogue.fabric_class(name).__module__.startswith("weft.")]
    assert len(MUTANTS) >= 30 and {mutant["room"] for mutant in MUTANTS} == set(own)
    assert len({mutant["name"] for mutant in MUTANTS}) == len(MUTANTS)


def test_the_page_has_the_table_that_the_program_prints():
    table = PAGE[PAGE.index("<!-- faults -->") : PAGE.index("<!-- end of faults -->")]
    rows = [line for line in table.splitlines() if line.startswith(tuple(f"| {m['room']} | " for m in MUTANTS))]
    assert rows == [PROGRAM["row"](mutant, mutant["by"]) for mutant in MUTANTS]


@pytest.mark.parametrize(
    "path", sorted({word for word in PAGE.split("`") if word.startswith(("tests/", "verification/"))})
)
def test_a_file_that_the_page_names_is_there(path):
    assert Path(ROOT / path).exists()
