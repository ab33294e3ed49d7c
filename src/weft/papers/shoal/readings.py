"""Shoal, the other readings: how the answers of Figs. 12, 13 and 15 move with what the paper leaves open.

Channels: four of 25 Gb/s (§7.1), or one of 100 with the same guard, or one with a guard of a tenth of the cell, as in
the authors' simulator. Rules: ours, or that simulator's. Flows of the same two nodes share what the pair gets in turns,
or the shortest goes first, which shows where all flows are among few nodes. And a load of 0.6 is one of 50 Gb/s or of
100.
"""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import near, printed, rack
from weft.study import Study
from weft.units import KB, Gbps, us
from weft.workload import Incast, Permutation, Poisson, Survivors

COLUMNS = (
    "reading", "slot_ns", "epoch_us", "one_pair", "all_pairs", "incast", "mean_50", "tail_50", "mean_100", "tail_100",
    "mean_few", "tail_few",
)  # fmt: skip
LINES = COLUMNS[3:]
SERIES = tuple(Series("epoch_us", y, "reading") for y in LINES)
LOAD, SIZE, FEW = 0.6, 130 * KB, 4  # nodes that all flows are among, for the last two columns
TENTH = 5_632  # ps: a cell of 5.12 ns and a tenth of it
READINGS = {
    "4 x 25 Gb/s, as in every figure": {},
    "shortest flow of a pair first": {"sharing": "shortest"},
    "1 x 100 Gb/s, the same guard": {"channels": 1, "slot": None},
    "1 x 100 Gb/s, a tenth of guard": {"channels": 1, "slot": TENTH, "guard": 512},
    "the authors' simulator": {"channels": 1, "slot": TENTH, "guard": 512, "rules": "released"},
}


def study(scale="small"):
    """One pair, all pairs, half the rack onto one node, arrivals at loads of two rates, and among few nodes."""
    nodes, duration, flows = (512, 3000 * us, 100_000) if at_paper_scale(scale) else (64, 60 * us, 1_500)
    workloads = [
        Permutation(pairs=1, duration=duration),
        Permutation(pairs=nodes, duration=duration),
        Incast(fan_in=nodes // 2, bytes=SIZE),
        *(Poisson(load=LOAD, load_rate=rate * Gbps, sizes="pareto", flows=flows) for rate in (50, 100)),
        Survivors(load=LOAD, load_rate=100 * Gbps, flows=flows // 3, dead=f"nodes {100 * (nodes - FEW) / nodes}%"),
    ]
    fabrics = [rack(nodes, **options) for options in READINGS.values()]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], title="Shoal, the other readings")


def measure(runs):
    """A row per reading: shares of the link, the incast's slowest flow over the optimum, completion of short flows."""
    table = {}
    for row, point in zip(runs.rows, runs.study.points, strict=True):
        fabric, workload = point.fabric, point.workload
        entry = table.setdefault(fabric, {"nodes": fabric.nodes})
        entry |= {"slot_ns": fabric.slot_time / 1000, "epoch_us": row["timing.epoch_us"]}
        if isinstance(workload, Permutation):
            entry["one_pair" if workload.pairs == 1 else "all_pairs"] = row["line.fraction_of_slots"]
        elif isinstance(workload, Incast):
            optimum = workload.fan_in * int(fabric.cells(SIZE)) * fabric.slot_time / fabric.capacity / us
            entry["incast"] = row["fct_us.all.max"] / optimum
        else:
            of = "few" if isinstance(workload, Survivors) else workload.load_rate // Gbps
            entry |= {f"mean_{of}": row["fct_us.short.mean"], f"tail_{of}": row["fct_us.short.p99.9"]}
    names = [*READINGS][: len(table)]
    return [{"reading": name, **entry} for name, entry in zip(names, table.values(), strict=True)]


def draw(table):
    """Completion of short flows under each reading, at the load of either rate."""
    from weft.report.plots import plot

    rows = [
        {"load of, Gb/s": rate, "p99.9 of short flows, us": row[f"tail_{rate}"], "reading": row["reading"]}
        for row in table
        for rate in (50, 100)
    ]
    title = f"the other readings: load {LOAD}, {table[0]['nodes']} nodes"
    return plot(rows, x="load of, Gb/s", y="p99.9 of short flows, us", by="reading", yscale="log", title=title)


def _each(good, say):
    """A check of every reading: holds if it does under all of them."""

    def check(table):
        return all(good(row) for row in table), "; ".join(f"{say(row)} {row['reading']}" for row in table)

    return check


def _halves(row):
    """Within 2 %, as in Fig. 12; N/(2(N-1)) is 0.508 for 64 nodes."""
    return near(row["all_pairs"] / row["one_pair"], printed("fig12")["all_pairs_over_one"], 0.02)


CLAIMS = [
    Claim(
        "shoal.c25", "throughput halves when all pairs communicate, under every reading",
        _each(_halves, lambda row: f"{row['all_pairs'] / row['one_pair']:.3f}"),
    ),
    Claim(
        "shoal.c28", "the slowest flow of an incast takes the optimal time, under every reading",
        _each(lambda row: row["incast"] <= 1.02, lambda row: f"{row['incast']:.3f}"),
    ),
]  # fmt: skip
