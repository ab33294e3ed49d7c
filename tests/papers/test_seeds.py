"""The figure of many seeds: it runs, small as it may be, and its claims can be told from its table."""

from weft import papers
from weft.papers.weft import seeds

ROW = {"nodes": 512, "channels": 4, "load": 0.5, "flows": 1000, "seeds": 5, "rack": "512 x 4", "p99.9_us": 100.0,
       "p99.9_low": 99.0, "p99.9_high": 101.0, "p99.9_least": 98.0, "p99.9_most": 102.0}  # fmt: skip
HIGH = {"load": 0.9, "p99.9_us": 200.0, "p99.9_low": 199.0, "p99.9_high": 201.0, "p99.9_least": 198.0,
        "p99.9_most": 202.0}  # fmt: skip
MAP = {"flows": 10, "p99.9_low": 0.0}  # rows of the map take no part


def verdicts(*rows):
    return [papers.judge(claim, [{**ROW, **row} for row in rows], "paper")["verdict"] for claim in seeds.CLAIMS]


def test_every_claim_can_hold_and_fail():
    assert verdicts({}, HIGH, MAP) == ["reproduced"] * 3
    assert verdicts({"p99.9_low": 80.0, "p99.9_most": 150.0}, {**HIGH, "p99.9_low": 90.0}) == ["differs"] * 3


def test_the_figure_runs_and_has_an_interval_at_every_point(monkeypatch):
    monkeypatch.setattr(seeds, "scaled", lambda scale: ((8, 60, (0.3, 0.9), 3), ((6, 8), (2,), (0.5,), 30)))
    answer = papers.answer("weft/seeds")
    assert [(row["nodes"], row["channels"], row["flows"]) for row in answer.table] == [
        (8, 4, 60), (8, 4, 60), (6, 2, 30), (8, 2, 30),
    ]  # fmt: skip
    for row in answer.table:
        assert row["seeds"] == 3 and row["p99.9_low"] <= row["p99.9_us"] <= row["p99.9_high"]
    picture = seeds.draw(answer.table)
    drawn = picture.data
    assert len(picture.csv().splitlines()) == 1 + len(drawn)
    assert [(point["y"], point["mean"], point.get("min"), point.get("max")) for point in drawn] == [
        *(("p99_us", row["p99_us"], row["p99_low"], row["p99_high"]) for row in answer.table[:2]),
        *(("p99.9_us", row["p99.9_us"], row["p99.9_low"], row["p99.9_high"]) for row in answer.table[:2]),
        *(("p99_us", row["p99_us"], None, None) for row in answer.table[2:]),
    ]
