"""Every check of every figure can say no: it holds on a good table, and one change of that table makes it differ.

The tables of the FPGA paper, of Stardust and of TDMA are those of `test_doctored` and `test_doctored_tables`; those of
Shoal, of merchant silicon and of our own figures are here, made up as the papers would have them, or computed where
that takes no time. A figure or a claim that is added without a doctored table fails here.
"""

import pytest

from papers import test_doctored, test_doctored_tables
from papers.test_doctored_tables import GOOD, to, where
from weft.papers import MODULES, figure, judge
from weft.papers.fpga import latency
from weft.papers.merchant import cutthrough, fig11, growth, overhead
from weft.papers.shoal import (
    baselines,
    epochs,
    fairness,
    fig10,
    fig12,
    fig13,
    fig14,
    fig15,
    fig17,
    fig18,
    printed,
    readings,
    table1,
)  # fmt: skip


def by(**values):
    """A change that multiplies these values of every row."""
    return lambda row: {**row, **{key: row[key] * times for key, times in values.items()}}


def of(column, name, **values):
    """A change of the rows that have this in a column: values are multiplied."""
    return lambda row: by(**values)(row) if row[column] == name else row


def fpga(change):
    """A change as `test_doctored` writes it: functions of the row."""
    return lambda row: {**row, **{key: value(row) for key, value in change.items()}}


SLOTS = [{"share": 0.26, "slot_ns": 76.8, "travel_epochs": 2.9}, {"share": 0.5, "slot_ns": 6579, "travel_epochs": 0.03}]
INCAST = [
    {"rules": name, "fct_us": time, "slots": slots, "max_queue": 7}
    for name in fig10.NAMES.values() for time, slots in ((6.05, 38), (6.9, 49))
]  # fmt: skip
PAIRS = [
    {"drawn": drawn, "pairs": k, "gbps": 90 * share, "share": share, "nodes": 512}
    for drawn in fig12.DRAWN.values() for k, share in ((1, 1.0), (256, 0.75), (512, 0.5))
]  # fmt: skip
SENDERS = [{"senders": m, "max_queue": m, **dict.fromkeys(fig13.NAMES, 14.0 * m)} for m in (1, 64, 511)]
SHORTS = [
    {
        "background": where, "kind": kind, "mean_us": 5.0 if kind == "both" else 10.0, "p50_us": 4.0,
        "p99_us": 5.0 if kind == "both" else 9.0, "bound_broken": 0,
    }
    for where in fig14.BACKGROUNDS.values() for kind in fig14.KINDS.values()
]  # fmt: skip
TORI = (fig15.TORUS, fig15.FROM_PORT)
LOADS = [
    {"system": name, "load_50": load, "mean_us": mean, "p99.9_us": tail * (load if name in TORI else 1),
     "goodput_gbps": 1 / goodput}
    for name, mean, tails, goodput in (
        ("Shoal", 1.0, (1, 1), 1), ("DCTCP", 1.2, (3, 2), 1.7), ("DCQCN", 1.1, (3, 2), 1.7),
        ("NDP", 0.8, (1.5, 2), 1.7),
        *((torus, 5.0, (14.9, 14.9), 4.8) for torus in TORI),
    )
    for load, tail in ((0.2, tails[0]), (0.6, tails[0]), (1, tails[1]))
]  # fmt: skip
MAXIMA = [
    {"load_50": load, "load_100": load / 2, "queue_cells": 10, "node_cells": 330, "reorder_kb": 190.0, "broken": 0}
    for load in (0.5, 1.0)
]
DEAD = [
    {
        "offered": how, "dead": dead, "seeds": 3, "tail_us": 1.0, "realised_gbps": 25.0, "tail_off": 0.01,
        "tail_ratio": {20: 1.2, 40: 1.5}.get(dead, 1.0), "goodput_ratio": 1 - dead / 100, "goodput_off": 0.01,
    }
    for how in fig17.OFFERED for dead in fig17.DEAD
]  # fmt: skip
STORAGE = [
    {"storage": share, "system": name, "tail_us": tail, "goodput_gbps": goodput, "max_queue": 9}
    for share in (0.01, 0.02)
    for name, tail, goodput in (("Shoal", 10.0, 30.0), *((other, 30.0, 10.0) for other in fig18.BASELINES))
]
REPAIRED = [
    {
        "dead": dead,
        "slots_failed": 1 - dead / 100,
        "slots_repaired": 1.01,
        "goodput_failed": 9.0,
        "goodput_repaired": 30,
    }
    for dead in fig17.DEAD
]
READINGS = [{"reading": name, "one_pair": 1.0, "all_pairs": 0.5, "incast": 1.0} for name in readings.READINGS]
LAST = READINGS[-1]["reading"]
BASELINES = [
    {"reading": name, "load": load, "tail_over_shoal": tail, "shoal_mean_over": 1.0}
    for name in baselines.READINGS
    for low, high in (baselines.PRINTED[name.partition(",")[0]],)
    for load, tail in ((0.2, low), (0.6, low), (1, high))
]
RACKS = {
    epochs.TWO: "two_channels", epochs.TWO_SHORT: "two_channels", epochs.TWICE: "twice_the_nodes",
}  # fmt: skip
EPOCHS = [
    {"rack": name, "load": load, "ratio": printed("epochs")[f"{key}_{at}"], "ratio_p99": 1.0, "epoch_us": 6.0}
    for name, key in RACKS.items() for at, load in epochs.LOADS.items()
]  # fmt: skip
SHARES = [
    {"kind": kind, "long_flows": k, "count": 100, **dict.fromkeys(fairness.IDEALS, 0.995)}
    for kind in fairness.KINDS.values() for k in (50, 1024)
]  # fmt: skip
CUT = [row if row["playout_ns"] else {**row, "underruns": 0} for row in cutthrough.table()]
PLUGGED = [
    {"what": what, "wirings": n, "by_rule": rule, "full_by_rule": rule, "full_otherwise": 0, "least_tbps": 34.4,
     "most_lost_links": 0 if n == rule else 16}
    for what, n, rule in (("all", 256, 24), ("orders", 3, 3), ("crossed", 1, 0))
]  # fmt: skip
CARRIED = [
    {"case": "whole", "ports": 128, "bisection_tbps": 1.28, "carried_tbps": 1.15, "of_bisection": 0.9},
    {"case": "a module failed", "ports": 128, "bisection_tbps": 0.64, "carried_tbps": 0.64, "slowest_gbps": 2.7},
]
PAIR = [
    {"system": name, "bytes": 10**6, "flows": 4, "max_us": 900.0, "mean_us": mean, "least_us": 800.0}
    for name, mean in (("Stardust", 800), ("DCTCP", 900), ("MPTCP", 1900), ("DCQCN", 1000))
]
CLOCKS = [
    {**row, **dict.fromkeys(("formula_ns", "fast_ns", "stages_ns"), row["printed_ns"])} for row in latency.table()
]
RING = [{"system": "Shoal", "mb": 1.0, "ring_us": 10.0, "hierarchical_us": 9.0, "ring_over": 1.05,
         "hierarchical_over": 1.02, "gain": 0.05}]  # fmt: skip
TAILS = [
    {"load": load, "flows": 1000, "p99.9_us": tail, "p99.9_low": tail - 1, "p99.9_high": tail + 1,
     "p99.9_least": tail - 2, "p99.9_most": tail + 2, "short": 900, "short_max_us": 700.0}
    for load, tail in ((0.5, 100.0), (0.9, 200.0))
]  # fmt: skip

FIELDS = [
    {"nodes": nodes, "channels": 4, "load": load, "flows": 1000, "p99_us": tail, "p99_low": tail - 1,
     "p99_high": tail + 1, "short": 900, "short_max_us": 700.0}
    for nodes, load, tail in ((64, 0.2, 50.0), (64, 1.0, 80.0), (128, 0.2, 60.0), (128, 1.0, 90.0))
]  # fmt: skip


def component(kind):
    """A change of Table 1's rows of a kind of component, in both directions or in one."""
    return lambda row: by(unused_survivors=2)(row) if row["component"].removesuffix(table1.ONE) == kind else row


CASES = {  # figure -> (a table, what makes each claim wrong; None where it is computed beside the table)
    "shoal/9": (SLOTS, [where({"slot_ns": 6579}, share=0.6), where({"slot_ns": 76.8}, share=0.45)]),
    "shoal/10": (INCAST, [
        *(where({"rules": name}, fct_us=7.5) for name in fig10.NAMES.values()),
        where({"rules": fig10.OURS}, max_queue=6),
    ]),
    "shoal/12": (PAIRS, [
        where({"pairs": 256}, gbps=91.0), where({"drawn": fig12.DRAWN[False], "pairs": 512}, gbps=50.0),
        where({"pairs": 1}, gbps=88.0), where({"pairs": 256}, share=0.49),
    ]),
    "shoal/13": (SENDERS, [
        where({"senders": 64}, slowest_us=2000.0), by(optimum_us=0.9), of("senders", 64, mean_us=0.9), to(max_queue=99),
    ]),
    "shoal/14": (SHORTS, [
        *(where({"background": over, "kind": "both"}, **worse) for over in fig14.BACKGROUNDS.values()
          for worse in ({"mean_us": 9.0}, {"p99_us": 8.5})),
        to(bound_broken=1),
    ]),
    "shoal/15": (LOADS, [
        of("system", fig15.TORUS, **{"p99.9_us": 0.5}), of("system", fig15.FROM_PORT, goodput_gbps=2),
        of("system", "NDP", mean_us=2), of("system", "DCQCN", **{"p99.9_us": 1.5}),
        of("system", "DCTCP", goodput_gbps=2),
    ]),
    "shoal/16": (MAXIMA, [to(queue_cells=14), to(node_cells=450), to(reorder_kb=300.0), to(broken=1)]),
    "shoal/17": (DEAD, [
        *(where({"offered": how, "dead": 30}, goodput_ratio=0.9) for how in fig17.OFFERED),
        *(where({"offered": how, "dead": dead}, tail_ratio=2.0) for dead in (20, 40) for how in fig17.OFFERED),
    ]),
    "shoal/18": (STORAGE, [
        of("system", "NDP", tail_us=0.5), of("system", "DCTCP", goodput_gbps=2), where({"storage": 0.02}, max_queue=11),
    ]),
    "shoal/table1": (table1.table(), [component(kind) for kind in table1.FORMULAS]),
    "shoal/repair": (REPAIRED, [where({"dead": 30}, slots_failed=0.75), where({"dead": 30}, goodput_repaired=8.0)]),
    "shoal/readings": (READINGS, [where({"reading": LAST}, all_pairs=0.52), where({"reading": LAST}, incast=1.03)]),
    "shoal/baselines": (BASELINES, [of("reading", name, tail_over_shoal=1.4) for name in baselines.READINGS]),
    "shoal/epochs": (EPOCHS, [
        where({"rack": name, "load": load}, ratio=2.0) for name in RACKS for load in epochs.LOADS.values()
    ]),
    "shoal/fairness": (SHARES, [
        where({"kind": kind, "long_flows": 1024}, **{key: 0.97})
        for key in fairness.IDEALS for kind in fairness.KINDS.values()
    ]),
    "merchant/11": (fig11.table(), [
        where({"protocol": "802.1ad", "frame": 512}, round_trip_ns=4600.0),
        where({"protocol": "eep", "frame": 512}, round_trip_ns=729.0),
        where({"protocol": "eep", "frame": 512}, round_trip_ns=16_001.0),
        where({"protocol": "802.1ad", "frame": 1518}, ingress_bytes=3037),
    ]),
    "merchant/overhead": (overhead.table(), [
        where({"frame": 1518}, header_bytes=26), where({"frame": 1518}, share_percent=1.69),
        where({"frame": 9018}, needs_percent=1.7),
    ]),
    "merchant/cutthrough": (CUT, [
        where({"playout_ns": 0, "traffic": "worst case"}, underruns=1), where({"proved": True}, underruns=1),
        where({"proved": False}, underruns=0),
    ]),
    "merchant/growth": (growth.table(), [
        where({"step": "pods", "pods": 24}, max_flow_tbps=34.48), where({"pods": 12}, oversubscription=1.1),
        where({"step": "core cards", "core_cards": 9}, max_flow_tbps=17.0),
    ]),
    "merchant/wiring": (PLUGGED, [
        where({"what": "orders"}, full_by_rule=2), where({"what": "crossed"}, full_otherwise=1), to(most_lost_links=0),
    ]),
    "merchant/permutation": (CARRIED, [where({"case": "whole"}, of_bisection=0.8), to(slowest_gbps=0.0)]),
    "stardust/10b": (PAIR, [where({"system": "Stardust"}, max_us=1100.0), where({"system": "DCTCP"}, mean_us=790.0)]),
    "weft/allreduce": (RING, [to(ring_over=0.9), to(ring_over=1.2), to(hierarchical_us=11.0), to(gain=0.0)]),
    "weft/seeds": (TAILS, [
        where({"load": 0.9}, short=899), where({"load": 0.9}, **{"p99.9_low": 150.0}),
        where({"load": 0.9}, **{"p99.9_most": 250.0}), where({"load": 0.9}, **{"p99.9_low": 90.0}),
    ]),
    "weft/map": (FIELDS, [
        to(short_max_us=1000.0), where({"nodes": 128}, p99_low=49.0), where({"load": 1.0, "nodes": 64}, p99_low=50.0),
    ]),
    "fpga/latency": (CLOCKS, [
        None, where({"design": "smislip", "ports": 8}, capacity_gbps=1.0),
        *(by(**{column: 1.1}) for column in ("formula_ns", "formula_ns", "fast_ns", "stages_ns")),
    ]),
    **{f"fpga/{name}": (table, [*map(fpga, bad)]) for name, (_, table, bad) in test_doctored.CASES.items()},
    **test_doctored_tables.CASES,
}  # fmt: skip
BESIDE = {*test_doctored_tables.BESIDE, ("fpga/latency", 0)}  # these have a test of their own there


def test_every_claim_of_every_figure_has_a_doctored_table():
    assert {*CASES} == {*MODULES}
    assert {name: len(changes) for name, (_, changes) in CASES.items()} == {
        name: len(figure(name).CLAIMS) for name in MODULES
    }
    beside = {(name, k) for name, (_, changes) in CASES.items() for k, change in enumerate(changes) if change is None}
    assert beside == BESIDE


@pytest.mark.parametrize("name", MODULES)
def test_every_check_holds_on_a_good_table_and_differs_on_a_doctored_one(name):
    table, changes = CASES[name]
    for claim, change in zip(figure(name).CLAIMS, changes, strict=True):
        if change is not None:
            good = judge(claim, table, "paper")
            assert good["verdict"] in GOOD, (claim.statement, good["ours"])
            bad = judge(claim, [change(row) for row in table], "paper")
            assert bad["verdict"] == "differs", (claim.statement, bad["ours"])
