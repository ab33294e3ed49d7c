"""Shoal, Fig. 14: completion of 20 KB flows over background traffic, with and without what §3.3.3 adds."""

from weft.metrics.fct import Distribution
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import printed, rack
from weft.study import Study
from weft.units import KB, Gbps, us
from weft.workload import Shorts

COLUMNS = ("kind", "load", "realised", "flows", "min_us", "p50_us", "mean_us", "p99_us", "max_us", "max_queue")
SERIES = tuple(Series("load", y, "kind") for y in ("p50_us", "mean_us", "p99_us", "max_us"))
PERCENTILES = (1, 10, 25, 50, 75, 90, 95, 99, 100)
KINDS = {
    (True, None): "both",
    (True, 0): "ready queues only",
    (False, None): "selective release only",
    (False, 0): "neither",
}
LOADS = (0.4, 0.8)  # of 50 Gb/s: ours, as the text states neither load nor interval


def study(scale="small"):
    """20 KB every 20 us from the last node to the first; Poisson arrivals among the others."""
    nodes, shorts = (512, 2000) if at_paper_scale(scale) else (64, 100)
    fabrics = [rack(nodes, ready_queues=ready, age_interval=age) for ready, age in KINDS]
    workloads = [
        Shorts(flows=shorts, bytes=20 * KB, interval=20 * us, load=load, load_rate=50 * Gbps) for load in LOADS
    ]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], title="Shoal, Fig. 14")


def measure(runs):
    """A row per run: completion times of its short flows, in us, and under "percentiles" as many as are drawn."""
    table = []
    for row, result in zip(runs.rows, runs.results, strict=True):
        short = result.flows.id < row["workload.flows"]
        times = Distribution((result.observation.finish - result.flows.start)[short])
        kind = KINDS[row["fabric.ready_queues"], row["fabric.age_interval"]]
        table.append({
            "kind": kind,
            "nodes": row["fabric.nodes"],
            "load": row["workload.load"],
            "realised": row["offered.realised_load"],
            "flows": len(times),
            "min_us": times.min / us,
            "p50_us": times.p50 / us,
            "mean_us": times.mean / us,
            "p99_us": times.p99 / us,
            "max_us": times.max / us,
            "max_queue": row["queue_cells.max"],
            "bound_broken": row["monitors.queue_bound"],
            "percentiles": {p: times.percentile(p) / us for p in PERCENTILES},
        })  # fmt: skip
    return table


def draw(table):
    """Completion time by percentile, at the higher load."""
    from weft.report.plots import plot

    rows = [
        {"percentile of flows": p, "fct_us": time, "kind": row["kind"]}
        for row in table
        if row["load"] == LOADS[-1]
        for p, time in row["percentiles"].items()
    ]
    title = f"Fig. 14: 20 KB over background, {table[0]['nodes']} nodes, load {LOADS[-1]} of 50 Gb/s"
    return plot(rows, x="percentile of flows", y="fct_us", by="kind", yscale="linear", title=title)


def _compare(key, name):
    def check(table):
        said, ratios = [], []
        for load in LOADS:
            at = {row["kind"]: key(row) for row in table if row["load"] == load}
            ratios.append(at["both"] / at["neither"])
            values = ", ".join(f"{kind} {value:.2f}" for kind, value in at.items())
            said.append(f"{name} in us at load {load}: {values}")
        return max(ratios) <= 0.8, "; ".join(said)

    return check


def _bounded(table):
    """The monitor compares every queue with 1 + the incast degree of its destination, which is 1 for node 0."""
    broken = sum(row["bound_broken"] for row in table if row["kind"] in ("both", "ready queues only"))
    return broken == 0, f"eq. (5) was broken {broken} times in any slot; {printed('fig14')['queue_cells']} is its value here"


CLAIMS = [
    Claim("shoal.c29", "with both optimisations completion is much shorter", _compare(lambda r: r["mean_us"], "mean")),
    Claim(
        "shoal.c29", "and more predictable", _compare(lambda r: r["p99_us"] - r["p50_us"], "p99 less the median")
    ),
    Claim("shoal.c29", "queues towards node 0 at intermediate nodes are bounded to two", _bounded),
]
