"""The groomers of merchant silicon: figures are computed, their checks can fail, and the pages say what they print."""

import re
import shlex
from pathlib import Path

import pytest

from weft.cli import main
from weft.papers import answer, judge
from weft.papers.merchant import cutthrough, fig11, growth, overhead, permutation, wiring

ROOT = Path(__file__).parents[2]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = (fig11, overhead, cutthrough, growth, wiring)
PAGES = ("docs/papers/merchant.md", "docs/fabrics/groomer.md")


@pytest.fixture(scope="module")
def tables():
    return {module: module.table("small") for module in MODULES}


def verdicts(module, table):
    return [judge(claim, table, "small")["verdict"] for claim in module.CLAIMS]


def test_what_the_paper_says_comes_out_but_for_the_wait_of_the_receiver(tables):
    assert verdicts(fig11, tables[fig11]) == ["reproduced", "reproduced", "consistent", "consistent"]
    assert verdicts(overhead, tables[overhead]) == ["reproduced", "reproduced", "reproduced"]
    assert verdicts(cutthrough, tables[cutthrough]) == ["differs", "consistent", "reproduced"]
    assert verdicts(growth, tables[growth]) == ["reproduced"] * 3
    assert verdicts(wiring, tables[wiring]) == ["reproduced", "consistent", "reproduced"]


def changed(table, wanted, **values):
    return [{**row, **values} if all(row[name] == value for name, value in wanted.items()) else row for row in table]


def test_a_curve_that_bends_is_noticed(tables):
    table = tables[fig11]
    assert verdicts(fig11, changed(table, {"protocol": "802.1ad", "frame": 512}, round_trip_ns=4600.0))[0] == "differs"
    assert verdicts(fig11, changed(table, {"protocol": "eep", "frame": 512}, round_trip_ns=729.0))[1] == "differs"
    assert (
        verdicts(fig11, changed(table, {"protocol": "802.1ad", "frame": 1518}, round_trip_ns=16_001.0))[2] == "differs"
    )
    for of, worse in (
        ({"protocol": "802.1ad", "frame": 256}, {"ingress_bytes": 513}),
        ({"protocol": "eep", "frame": 256}, {"ingress_bytes": 129}),
        ({"protocol": "eep", "frame": 64}, {"underruns": 1}),
    ):
        assert verdicts(fig11, changed(table, of, **worse))[3] == "differs"


def test_a_header_more_is_noticed(tables):
    table = tables[overhead]
    assert (
        verdicts(overhead, changed(table, {"frame": 1518}, header_bytes=26, share_percent=1.69))[:2] == ["differs"] * 2
    )
    assert verdicts(overhead, changed(table, {"frame": 9018}, needs_percent=1.7))[2] == "differs"


def test_a_step_that_falls_short_is_noticed(tables):
    table = tables[growth]
    assert verdicts(growth, changed(table, {"step": "pods", "pods": 24}, max_flow_tbps=34.48))[0] == "differs"
    assert verdicts(growth, changed(table, {"step": "one module", "pods": 12}, oversubscription=1.1))[1] == "differs"
    assert verdicts(growth, changed(table, {"step": "core cards", "core_cards": 9}, max_flow_tbps=17.0))[2] == "differs"


def test_a_wiring_that_breaks_the_rule_and_loses_nothing_is_noticed(tables):
    table = tables[wiring]
    what = {"what": table[0]["what"]}
    assert verdicts(wiring, changed(table, what, full_by_rule=23))[0] == "differs"
    assert verdicts(wiring, changed(table, what, full_otherwise=1))[1] == "differs"
    assert verdicts(wiring, changed(table, {"what": table[2]["what"]}, most_lost_links=0))[2] == "differs"


def test_what_gets_through_decides_the_claims_about_traffic():
    table = [
        {"case": "whole", "ports": 128, "bisection_tbps": 1.28, "carried_tbps": 1.15, "of_bisection": 0.9},
        {"case": "a module failed", "ports": 128, "bisection_tbps": 0.64, "carried_tbps": 0.64, "slowest_gbps": 2.7},
    ]
    assert verdicts(permutation, table) == ["consistent", "consistent"]
    assert verdicts(permutation, changed(table, {"case": "whole"}, of_bisection=0.8))[0] == "differs"
    assert verdicts(permutation, changed(table, {"case": "whole"}, bisection_tbps=1.2))[0] == "differs"
    for worse in ({"carried_tbps": 0.1}, {"slowest_gbps": 0.0}):
        assert verdicts(permutation, changed(table, {"case": "a module failed"}, **worse))[1] == "differs"


def test_underruns_decide_the_claims_about_them(tables):
    table = tables[cutthrough]
    none = changed(table, {}, underruns=0)
    assert verdicts(cutthrough, none) == ["reproduced", "consistent", "differs"]
    assert verdicts(cutthrough, changed(table, {"proved": True}, underruns=1))[1] == "differs"


@pytest.mark.parametrize("module", MODULES)
def test_a_figure_is_drawn_and_saved_with_its_points(tables, tmp_path, module):
    module.draw(tables[module]).save(tmp_path / "figure.svg")
    assert len((tmp_path / "figure.csv").read_text().splitlines()) > 5


def test_lines_of_the_figure_are_the_protocols():
    lines = answer("merchant/11").series
    assert [(line["name"], line["y"]) for line in lines] == [
        ("eep", "round_trip_ns"), ("802.1ad", "round_trip_ns"), ("eep", "full_load_ns"), ("802.1ad", "full_load_ns"),
    ]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_say_what_the_commands_print(page, capsys):
    blocks = CONSOLE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(blocks) >= 2
    for block in blocks:
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, said = command.partition("\n")
            if "--scale paper" in line:  # takes minutes
                continue
            assert main(shlex.split(line)[1:]) == int("\ndiffers  [" in said)
            assert capsys.readouterr().out == said


def test_the_page_of_the_switch_prints_what_it_says(capsys):
    text = (ROOT / "docs/fabrics/merchant.md").read_text(encoding="utf-8")
    ((code, said),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("page", [*PAGES, "docs/fabrics/merchant.md", "docs/reference/wire.md"])
def test_the_pages_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, place in re.findall(r"\]\(([^)#:]*)#?([^)]*)\)", text):
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        heads = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert not place or place in [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads], place
