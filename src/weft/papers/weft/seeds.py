"""How sure is a tail? Shoal's side of Fig. 15 with many seeds, and its tail over nodes, channels and load.

The rack of §7.1 under Poisson arrivals of its Pareto flows; with other channels slots are as long as need be. A row is
a rack and a load: p99 and p99.9 of the short flows, each the mean over the seeds with its 95 % interval, and the
smallest and largest that one seed gave. The first rows are Fig. 15's rack; the others are the map, with fewer flows and
loads. At the paper's scale, a hundred seeds of a million flows, it is for a GPU (`--on gpu`).
"""

from itertools import pairwise

from weft.metrics.statistics import estimate
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import rack
from weft.study import Study
from weft.units import Gbps
from weft.workload import Poisson

COLUMNS = (
    "nodes", "channels", "load", "flows", "seeds", "p99_us", "p99_low", "p99_high", "p99.9_us", "p99.9_low",
    "p99.9_high", "p99.9_least", "p99.9_most",
)  # fmt: skip
SERIES = (Series("load", "p99_us", "rack"), Series("load", "p99.9_us", "rack"))
TAILS = ("p99", "p99.9")


def scaled(scale):
    """(nodes, flows, loads, seeds) of the figure's rack; (nodes, channels, loads, flows) of the map."""
    if at_paper_scale(scale):
        ten = tuple(k / 10 for k in range(1, 11))
        return (512, 1_000_000, ten, 100), ((64, 128, 256, 512), (1, 2, 4), (0.2, 0.6, 1.0), 50_000)
    return (32, 1500, (0.2, 0.4, 0.6, 0.8, 1.0), 5), ((16, 32), (2, 4), (0.2, 0.6, 1.0), 750)


def study(scale="small"):
    """The rack under every load, then the map, all with every seed."""
    (nodes, flows, loads, seeds), (sizes, channels, some, few) = scaled(scale)
    points = [(nodes, 4, load, flows) for load in loads]
    points += [(n, c, load, few) for n in sizes for c in channels for load in some]
    return Study(
        fabrics=[rack(nodes)] * len(loads) + [rack(n, channels=c, slot=None) for n, c, _, _ in points[len(loads) :]],
        workloads=[Poisson(load=load, load_rate=100 * Gbps, sizes="pareto", flows=f) for _, _, load, f in points],
        seeds=range(1, seeds + 1), paired=True, title="Shoal, many seeds",
    )  # fmt: skip


def measure(runs):
    """A row per rack and load."""
    found: dict = {}
    for row in runs.rows:
        key = row["fabric.nodes"], row["fabric.channels"], row["workload.load"], row["workload.flows"]
        found.setdefault(key, []).append(row)
    table = []
    for (nodes, channels, load, flows), rows in found.items():
        line = {"nodes": nodes, "channels": channels, "load": load, "flows": flows, "seeds": len(rows),
                "rack": f"{nodes} x {channels}, {flows:,} flows"}  # fmt: skip
        for tail in TAILS:
            each = [row[f"fct_us.short.{tail}"] for row in rows]
            mean = estimate(each)
            line |= {f"{tail}_us": mean.mean, f"{tail}_low": mean.low, f"{tail}_high": mean.high}
            line |= {f"{tail}_least": min(each), f"{tail}_most": max(each)}
        table.append(line)
    return table


def draw(table):
    """Both tails of the figure's rack against load, in the band of their 95 % intervals; beside them the map."""
    from weft.report.plots import panels

    main, seeds = _main(table), table[0]["seeds"]
    rest = [{**row, "rack": f"{row['nodes']} x {row['channels']}"} for row in table if row not in main]
    return panels(
        main, x="load", ys=[f"{tail}_us" for tail in TAILS], by="rack",
        titles=[f"{tail}, {main[0]['rack']}" for tail in TAILS], labels=("µs", "µs", "load of 100 Gb/s"),
        title=f"Short flows: mean of {seeds} seeds and its 95 % interval",
        band="ci95", ends=[(f"{tail}_low", f"{tail}_high") for tail in TAILS],
        grid=(rest, "load", "rack", "p99_us", f"p99 (µs) of {rest[0]['flows']:,} flows, nodes x channels"),
    )  # fmt: skip


def _main(table):
    """The rows of Fig. 15's rack."""
    most = max(row["flows"] for row in table)
    return [row for row in table if row["flows"] == most]


def _width(table):
    widths = {row["load"]: (row["p99.9_high"] - row["p99.9_low"]) / 2 / row["p99.9_us"] for row in _main(table)}
    load, worst = max(widths.items(), key=lambda item: item[1])
    return worst < 0.05, f"p99.9 is known to {worst:.1%} at load {load:g}, where it is known least"


def _one_seed(table):
    spread = {row["load"]: row["p99.9_most"] / row["p99.9_least"] for row in _main(table)}
    load, worst = max(spread.items(), key=lambda item: item[1])
    return worst < 1.1, f"the largest p99.9 of one seed is up to {worst:.2f} times the smallest, at load {load:g}"


def _rises(table):
    rows = sorted(_main(table), key=lambda row: row["load"])
    apart = sum(later["p99.9_low"] > row["p99.9_high"] for row, later in pairwise(rows))
    return apart == len(rows) - 1, f"p99.9 rises beyond its interval in {apart} of {len(rows) - 1} steps of load"


CLAIMS = [
    Claim("weft.seeds.1", "the mean of p99.9 over the seeds is known to 5 % at every load", _width),
    Claim("weft.seeds.2", "one seed is enough for a tenth: no two seeds differ by more in p99.9", _one_seed),
    Claim("weft.seeds.3", "p99.9 rises with every step of load, beyond its interval", _rises),
]
