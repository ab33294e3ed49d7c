"""The figure of many seeds: it runs, small as it may be, and its claims can be told from its table."""

from weft import papers
from weft.papers.weft import map as fields
from weft.papers.weft import seeds
from weft.units import us

ROW = {"nodes": 512, "channels": 4, "load": 0.5, "flows": 1000, "seeds": 5, "rack": "512 x 4", "p99.9_us": 100.0,
       "p99.9_low": 99.0, "p99.9_high": 101.0, "p99.9_least": 98.0, "p99.9_most": 102.0, "short": 4500,
       "short_max_us": 900.0}  # fmt: skip
HIGH = {"load": 0.9, "p99.9_us": 200.0, "p99.9_low": 199.0, "p99.9_high": 201.0, "p99.9_least": 198.0,
        "p99.9_most": 202.0}  # fmt: skip


def verdicts(*rows):
    return [papers.judge(claim, [{**ROW, **row} for row in rows], "paper")["verdict"] for claim in seeds.CLAIMS]


def test_every_claim_can_hold_and_fail():
    assert verdicts({}, HIGH) == ["reproduced"] * 4
    bad = {"p99.9_low": 80.0, "p99.9_most": 150.0, "short": 4499}
    assert verdicts(bad, {**HIGH, "p99.9_low": 90.0}) == ["differs"] * 4


def test_the_figure_runs_and_has_an_interval_at_every_point(monkeypatch):
    monkeypatch.setattr(seeds, "scaled", lambda scale: (8, 60, (0.3, 0.9), 3))
    answer = papers.answer("weft/seeds")
    assert [(row["nodes"], row["load"], row["flows"]) for row in answer.table] == [(8, 0.3, 60), (8, 0.9, 60)]
    for row in answer.table:
        assert row["seeds"] == 3 and row["p99.9_low"] <= row["p99.9_us"] <= row["p99.9_high"]
    assert answer.claims[0]["ours"].startswith("0 of ")
    picture = seeds.draw(answer.table)
    drawn = picture.data
    assert len(picture.csv().splitlines()) == 1 + len(drawn)
    assert [(point["y"], point["mean"], point["min"], point["max"]) for point in drawn] == [
        (f"{tail}_us", row[f"{tail}_us"], row[f"{tail}_low"], row[f"{tail}_high"])
        for tail in seeds.TAILS
        for row in answer.table
    ]


def test_flows_that_stay_are_noticed_where_runs_stop_too_soon(monkeypatch):
    monkeypatch.setattr(seeds, "scaled", lambda scale: (8, 300, (0.3, 2.0), 2))
    monkeypatch.setattr(seeds, "DRAIN", 10 * us)
    assert papers.answer("weft/seeds").claims[0]["verdict"] == "differs"


def test_the_map_has_a_field_for_each_rack_and_load(monkeypatch):
    monkeypatch.setattr(fields, "scaled", lambda scale: ((6, 8), (2,), (0.5, 1.0), 5, 3))
    answer = papers.answer("weft/map")
    rows = [(row["nodes"], row["channels"], row["load"], row["seeds"]) for row in answer.table]
    assert rows == [(6, 2, 0.5, 3), (6, 2, 1.0, 3), (8, 2, 0.5, 3), (8, 2, 1.0, 3)]
    drawn = fields.draw(answer.table).data
    assert [(point["rack"], point["load"], point["mean"]) for point in drawn] == [
        (f"{row['nodes']} x 2", row["load"], row["p99_us"]) for row in answer.table
    ]
