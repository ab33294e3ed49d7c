"""How sure is a tail? Shoal's side of Fig. 15 with many seeds.

The rack of §7.1 under Poisson arrivals of its Pareto flows. A row is a load: p99 and p99.9 of the short flows, each the
mean over the seeds with its 95 % interval, and the smallest and largest that one seed gave. The largest of a million
flows goes on ten and more times as long as all take to come, which says nothing about short ones: runs stop 1 ms after
the last arrival. At the paper's scale, a hundred seeds of a million flows, it is for a GPU (`--on gpu`).
"""

from itertools import pairwise

from weft.metrics.statistics import estimate
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import rack
from weft.study import Study
from weft.units import Gbps, ms, us
from weft.workload import Poisson

COLUMNS = (
    "nodes", "channels", "load", "flows", "seeds", "p99_us", "p99_low", "p99_high", "p99.9_us", "p99.9_low",
    "p99.9_high", "p99.9_least", "p99.9_most", "short_max_us",
)  # fmt: skip
SERIES = (Series("load", "p99_us", "rack"), Series("load", "p99.9_us", "rack"))
TAILS = ("p99", "p99.9")
DRAIN = 1 * ms
FEWEST_SEEDS = 2  # one has no interval


def scaled(scale):
    """(nodes, flows, loads, seeds)."""
    if at_paper_scale(scale):
        return 512, 1_000_000, tuple(k / 10 for k in range(1, 11)), 100
    return 32, 1500, (0.2, 0.4, 0.6, 0.8, 1.0), 5


def study(scale="small"):
    """The rack under every load, with every seed."""
    nodes, flows, loads, seeds = scaled(scale)
    return Study(
        fabrics=[rack(nodes)], workloads=[flows_of(load, flows) for load in loads], seeds=range(1, seeds + 1),
        title="Shoal, many seeds",
    )  # fmt: skip


def flows_of(load, flows) -> Poisson:
    """So many flows at a load of 100 Gb/s."""
    return Poisson(load=load, load_rate=100 * Gbps, sizes="pareto", flows=flows, drain=DRAIN)


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
        line |= {"short": sum(row["flows.short"] for row in rows)}  # of them that were done
        line |= {"short_max_us": max(row["fct_us.short.max"] for row in rows)}
        table.append(line)
    return table


def draw(table):
    """Both tails against load, in the band of their 95 % intervals."""
    from weft.report.plots import panels

    return panels(
        table, x="load", ys=[f"{tail}_us" for tail in TAILS], by="rack",
        titles=[f"{tail}, {table[0]['rack']}" for tail in TAILS], labels=("µs", "µs", "load of 100 Gb/s"),
        title=f"Short flows: mean of {table[0]['seeds']} seeds and its 95 % interval",
        band="ci95", ends=[(f"{tail}_low", f"{tail}_high") for tail in TAILS],
    )  # fmt: skip


def _width(table):
    widths = {row["load"]: (row["p99.9_high"] - row["p99.9_low"]) / 2 / row["p99.9_us"] for row in table}
    load, worst = max(widths.items(), key=lambda item: item[1])
    return worst < 0.05, f"p99.9 is known to {worst:.1%} at load {load:g}, where it is known least"


def _one_seed(table):
    spread = {row["load"]: row["p99.9_most"] / row["p99.9_least"] for row in table}
    load, worst = max(spread.items(), key=lambda item: item[1])
    return worst < 1.1, f"the largest p99.9 of one seed is up to {worst:.2f} times the smallest, at load {load:g}"


def _rises(table):
    rows = sorted(table, key=lambda row: row["load"])
    apart = sum(later["p99.9_low"] > row["p99.9_high"] for row, later in pairwise(rows))
    return apart == len(rows) - 1, f"p99.9 rises beyond its interval in {apart} of {len(rows) - 1} steps of load"


def _whole(table):
    """Sizes are the seed's, so rows of as many flows have had as many short ones; one that is left has lasted for the
    drain."""
    most: dict = {}
    for row in table:
        most[row["flows"]] = max(most.get(row["flows"], 0), row["short"])
    left = sum(most[row["flows"]] - row["short"] for row in table)
    longest = max(row["short_max_us"] for row in table)
    said = f"{left:,} of {sum(most[row['flows']] for row in table):,} short flows left, the slowest took {longest:.0f}"
    return left == 0 and longest < DRAIN / us, f"{said} of {DRAIN / us:.0f} us"


CLAIMS = [
    Claim("weft.seeds.0", "runs go on until every short flow is done", _whole),
    Claim("weft.seeds.1", "the mean of p99.9 over the seeds is known to 5 % at every load", _width),
    Claim("weft.seeds.2", "one seed is enough for a tenth: no two seeds differ by more in p99.9", _one_seed),
    Claim("weft.seeds.3", "p99.9 rises with every step of load, beyond its interval", _rises),
]
