"""Verdicts: each can be reached, and none says more than the check and the scale allow."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft import papers
from weft.errors import BadInput
from weft.papers import VERDICTS, Answer, Claim, Series, judge

DOCS = Path(__file__).parents[2] / "docs"


def claim(holds, scaled=True):
    return Claim("c1", "the paper says so", lambda table: (holds, f"{len(table)} rows"), scaled)


@pytest.mark.parametrize(
    ("holds", "scaled", "scale", "verdict"),
    [
        (True, True, "paper", "reproduced"),
        (True, True, "small", "consistent"),
        (True, False, "small", "reproduced"),
        (True, False, "paper", "reproduced"),
        (False, True, "paper", "differs"),
        (False, True, "small", "differs"),
        (False, False, "small", "differs"),
        ("consistent", True, "paper", "consistent"),
        ("consistent", False, "small", "consistent"),
        ("not run", True, "small", "not run"),
        ("not run", False, "paper", "not run"),
        ("differs", True, "small", "differs"),
        ("reproduced", True, "small", "consistent"),
        ("reproduced", True, "paper", "reproduced"),
    ],
)
def test_a_verdict_follows_from_the_check_and_the_scale(holds, scaled, scale, verdict):
    assert judge(claim(holds, scaled), [{}, {}], scale) == {
        "id": "c1", "printed": "the paper says so", "ours": "2 rows", "verdict": verdict,
    }  # fmt: skip
    assert verdict in VERDICTS


def answer(table, series=None, columns=("x", "y"), claims=()):
    named = {} if series is None else {"SERIES": series}
    return Answer("none/1", "small", SimpleNamespace(CLAIMS=list(claims), COLUMNS=columns, **named), table, ["ab"])


def test_the_lines_of_a_picture_are_the_rows_by_name_and_rows_without_a_number_are_left_out():
    table = [
        {"load": 0.2, "fct": 5, "fabric": "Shoal"}, {"load": 0.2, "fct": 9, "fabric": "NDP"},
        {"load": 0.4, "fct": None, "fabric": "Shoal"}, {"load": 0.6, "fct": 7, "fabric": "Shoal"},
        {"load": None, "fct": 8, "fabric": "NDP"}, {"fabric": "NDP"},
    ]  # fmt: skip
    assert answer(table, [Series("load", "fct", "fabric")]).series == [
        {"name": "Shoal", "x": "load", "y": "fct", "points": [[0.2, 5], [0.6, 7]]},
        {"name": "NDP", "x": "load", "y": "fct", "points": [[0.2, 9]]},
    ]
    assert answer(table, [Series("load", "fct")]).series == [
        {"name": "fct", "x": "load", "y": "fct", "points": [[0.2, 5], [0.2, 9], [0.6, 7]]},
    ]


def test_two_kinds_of_lines_over_one_table_stay_apart():
    table = [{"load": 1, "a": 2, "b": 3}]
    found = answer(table, [Series("load", "a"), Series("load", "b")]).series
    assert [(line["name"], line["points"]) for line in found] == [("a", [[1, 2]]), ("b", [[1, 3]])]


def test_a_table_without_lines_gives_its_columns():
    assert answer([{"x": 1, "y": 2, "z": 3}, {"x": 4}]).series == [{"x": 1, "y": 2}, {"x": 4, "y": None}]


def test_an_answer_is_json_with_every_claim_judged():
    data = answer([{"x": 1}], [Series("x", "y")], claims=[claim(True), claim(False)]).data()
    assert json.loads(json.dumps(data)) == data
    assert [found["verdict"] for found in data["claims"]] == ["consistent", "differs"]
    assert data["fingerprints"] == ["ab"]


@pytest.mark.parametrize("name", papers.MODULES)
def test_every_figure_says_what_it_shows_and_has_claims_of_its_own(name):
    module = papers.figure(name)
    assert module.__doc__.strip()
    sentences = [one.statement for one in module.CLAIMS]
    assert len(set(sentences)) == len(sentences) > 0
    assert all(sentences) and all(one.id for one in module.CLAIMS)
    assert len(set(module.COLUMNS)) == len(module.COLUMNS) > 1
    for line in getattr(module, "SERIES", ()):
        assert line.x and line.y


@pytest.mark.parametrize("name", [name for name in papers.MODULES if not name.startswith("fpga/")])
def test_both_scales_can_be_described_and_another_is_refused(name):
    module = papers.figure(name)
    if hasattr(module, "table"):
        with pytest.raises(BadInput, match=r"^scale must be small or paper, not 'large'$"):
            papers.answer(name, "large")
        return
    for scale in papers.SCALES:
        points = module.study(scale).points
        assert len(points) == len(set(points)) > 0


@pytest.mark.parametrize(
    ("paper", "claims"), [("shoal", 43), ("fpga", 24), ("merchant", 23), ("stardust", 38), ("tdma", 21)]
)
def test_every_claim_of_a_paper_is_answered_on_its_page_or_on_that_of_the_models(paper, claims):
    pages = "".join((DOCS / room / f"{paper}.md").read_text(encoding="utf-8") for room in ("papers", "models"))
    assert [f"c{k:02}" for k in range(1, claims + 1) if not re.search(rf"\bc{k:02}\b", pages)] == []


def test_a_figure_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(BadInput) as said:
        papers.figure("shoal/99")
    assert str(said.value) == f"a figure must be one of {', '.join(papers.MODULES)}, not 'shoal/99'"
