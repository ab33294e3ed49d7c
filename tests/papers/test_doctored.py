"""Tables of the FPGA paper's figures, and changes that make each claim wrong: `test_every_check` judges them.

The tables are made up, row by row, as the paper would have them. What no change of a table can doctor is tested here.
"""

from weft.papers import figure, judge
from weft.papers.fpga import FIGURES, blocking, depth, iterations, latency, loads, sharing, unbalanced

SEVERAL = 4
LOADS = [
    {
        "name": f"{name}, {k}", "load": load, "several": SEVERAL, "ports": 16, "throughput": load,
        "delay_mean": 5.0 if name == "islip" else 6.0,
    }
    for name in loads.SIMPLE for k in (1, SEVERAL) for load in (0.5, 0.9, 0.99)
]  # fmt: skip
LOADS += [
    {"name": "load-balanced", "load": load, "several": SEVERAL, "ports": 16, "throughput": load, "delay_mean": delay}
    for load, delay in ((0.5, 16.0), (0.9, 5.0), (0.99, 751.0))
]
DEPTH = [
    {"name": name, "ports": n, "load": load, "depth": 3 if name == "gcq" else held}
    for name in ("islip, 1", "islip, log2 N", "gcq")
    for n in depth.PORTS
    for load, held in ((0.5, 8), (0.9, 40), (0.99, 300))
]
ITERATIONS = [
    {"ports": n, "load": load, "log2": k, "iterations_mean": k / 2, "iterations_max": k}
    for n, k in ((8, 3), (16, 4)) for load in (0.5, 1.0)
]  # fmt: skip
BLOCKING = [
    {"ports": 8, "throughput": 0.6184, "karol": 0.6184, "limit": blocking.KAROL_LIMIT},
    {"ports": 256, "throughput": 0.587, "karol": None, "limit": blocking.KAROL_LIMIT},
]
UNBALANCED = [
    {"name": name, "w": w, "throughput": 0.8, "ports": 16} for name in ("islip, 1", "islip, 4") for w in (0.0, 0.5, 1.0)
]
SHARING = [
    {"name": name, "depth": cells, "load": load, "lost": 0 if cells >= enough else 500, "offered": 100_000}
    for load in (0.6, 0.8) for name, enough in (("private", 128), ("shared", 8)) for cells in sharing.DEPTHS
]  # fmt: skip
LATENCY = latency.table()


def changed(table, **change):
    return [{**row, **{key: value(row) for key, value in change.items()}} for row in table]


CASES = {
    "loads": (loads, LOADS, [
        {"throughput": lambda row: 0.64},
        {"delay_mean": lambda row: 7.0 if row["name"] == "islip, 1" else row["delay_mean"]},
        {"delay_mean": lambda row: 7.0 if row["name"] == "islip, 4" else row["delay_mean"]},
        {"delay_mean": lambda row: 15.9 if row["name"] == "islip, 1" else row["delay_mean"]},  # less, not noticeably
        {"delay_mean": lambda row: 5.0},
    ]),
    "depth": (depth, DEPTH, [
        {"depth": lambda row: 1},  # 40 suffice, and so would one: it is not needed
        {"depth": lambda row: 41 if row["load"] == 0.9 else row["depth"]},
        {"depth": lambda row: 17},
    ]),
    "iterations": (iterations, ITERATIONS, [
        {"iterations_mean": lambda row: row["log2"] + 0.1}, {"iterations_max": lambda row: row["log2"] + 1},
    ]),
    "blocking": (blocking, BLOCKING, [{"throughput": lambda row: 0.63}, {"throughput": lambda row: 0.6}]),
    "unbalanced": (unbalanced, UNBALANCED, [{"throughput": lambda row: 0.74}]),
    "sharing": (sharing, SHARING, [
        {"lost": lambda row: 0}, {"lost": lambda row: 500 if row["name"] == "shared" else 0},
    ]),
}  # fmt: skip


def test_a_depth_of_one_that_loses_nothing_does_not_make_forty_a_need():
    for claim in depth.CLAIMS[:2]:
        assert judge(claim, changed(DEPTH, depth=lambda row: 1), "paper")["verdict"] == "differs"


def test_a_scheduler_that_is_ahead_by_less_than_seeds_differ_by_settles_nothing():
    for delay, verdict in ((6.1, "not resolved"), (6.2, "differs"), (5.9, "reproduced")):
        table = changed(LOADS, delay_mean=lambda row, d=delay: d if row["name"] == "islip, 1" else 6.0)
        assert judge(loads.CLAIMS[1], table, "paper")["verdict"] == verdict


def test_what_is_printed_or_fitted_is_never_called_reproduced(monkeypatch):
    aggregate, capacity, eq6, *eq7 = latency.CLAIMS
    good = changed(LATENCY, **{key: lambda row: row["printed_ns"] for key in ("formula_ns", "fast_ns", "stages_ns")})
    assert judge(capacity, good, "paper")["verdict"] == "printed"
    assert judge(eq6, good, "paper")["verdict"] == "fitted"
    assert [judge(claim, good, "paper")["verdict"] for claim in eq7] == ["reproduced"] * 3
    monkeypatch.setattr(latency, "IMPLEMENTED", {"gcq": {25: 64}})
    assert judge(aggregate, good, "paper")["verdict"] == "printed"

    bad = changed(LATENCY, **{key: lambda row: 2 * row["printed_ns"] for key in ("formula_ns", "fast_ns", "stages_ns")})
    bad = changed(bad, capacity_gbps=lambda row: 1.0)
    monkeypatch.setattr(latency, "IMPLEMENTED", {"gcq": {25: 32}})
    assert {judge(claim, bad, "paper")["verdict"] for claim in latency.CLAIMS} == {"differs"}


def test_every_figure_of_the_paper_is_here():
    assert {*CASES, "latency"} == set(FIGURES)
    assert all(figure(f"fpga/{name}") is module for name, (module, _, _) in CASES.items())
