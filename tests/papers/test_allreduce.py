"""The figure of all-reduces: it runs, small as it may be, and its claims can be told from its table."""

import pytest

from weft import papers
from weft.papers.weft import allreduce

ROW = {"system": "Shoal", "mb": 1.0, "nodes": 16, "ring_us": 10.0, "hierarchical_us": 9.0, "ring_over": 1.05,
       "hierarchical_over": 1.02, "met_us": 9.5, "gain": 0.05}  # fmt: skip


def verdicts(*rows):
    return [papers.judge(claim, [{**ROW, **row} for row in rows], "paper")["verdict"] for claim in allreduce.CLAIMS]


def test_every_claim_can_hold_and_fail():
    assert verdicts({}) == ["reproduced"] * 4
    worse = {"ring_over": 0.9, "hierarchical_us": 11.0, "gain": 0.0}
    assert verdicts(worse, {"ring_over": 1.2, "mb": 5.0}) == ["differs"] * 4


def test_all_systems_have_the_same_links():
    for fabric in allreduce.fabrics(16).values():
        assert fabric.links()["rate"] == 100 * 10**9 and fabric.links()["propagation"] == 10_000 and fabric.nodes == 16


@pytest.mark.long
def test_the_figure_runs(monkeypatch):
    monkeypatch.setattr(allreduce, "scaled", lambda scale: (4, 2, (0.05, 0.1)))
    answer = papers.answer("weft/allreduce")
    assert len(answer.table) == 5 * 2 and all(set(allreduce.COLUMNS) <= set(row) for row in answer.table)
    assert answer.claims[0]["verdict"] == "reproduced"
    drawn = allreduce.draw(answer.table)
    assert {point["y"] for point in drawn.data} == {"ring_over", "hierarchical_over", "ring_us"}
    assert {point["system"] for point in drawn.data} == {*allreduce.fabrics(4), "links, no headers"}
