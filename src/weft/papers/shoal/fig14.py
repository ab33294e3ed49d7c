"""Shoal, Fig. 14: completion of 20 KB flows over background traffic, with and without what §3.3.3 adds."""

from weft.metrics.fct import Distribution
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import printed, rack
from weft.study import Study
from weft.units import KB, Gbps, us
from weft.workload import Shorts

COLUMNS = ("background", "kind", "flows", "min_us", "p50_us", "mean_us", "p99_us", "max_us", "max_queue")
SERIES = tuple(Series("background", y, "kind") for y in ("p50_us", "mean_us", "p99_us", "max_us"))
PERCENTILES = (1, 10, 25, 50, 75, 90, 95, 99, 100)
KINDS = {
    (True, None): "both",
    (True, 0): "ready queues only",
    (False, None): "selective release only",
    (False, 0): "neither",
}
BACKGROUNDS = {  # ours, both: "random background traffic" is all that the text says
    "poisson": "arrivals at load 0.8 of 50 Gb/s",
    "long": "four endless flows from every other node",
}


def study(scale="small"):
    """20 KB every 20 us from the last node to the first; the interval, too, is ours."""
    nodes, shorts = (512, 500) if at_paper_scale(scale) else (64, 100)
    fabrics = [rack(nodes, ready_queues=ready, age_interval=age) for ready, age in KINDS]
    common = {"flows": shorts, "bytes": 20 * KB, "interval": 20 * us}
    workloads = [
        Shorts(**common, background="poisson", load=0.8, load_rate=50 * Gbps),
        Shorts(**common, background="long", longs=4, drain=200 * us),
    ]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], title="Shoal, Fig. 14")


def measure(runs):
    """A row per run: completion times of its short flows, in us, and under "percentiles" as many as are drawn."""
    table = []
    for row, result in zip(runs.rows, runs.results, strict=True):
        short = (result.flows.id < row["workload.flows"]) & result.observation.finished
        times = Distribution((result.observation.finish - result.flows.start)[short])
        kind = KINDS[row["fabric.ready_queues"], row["fabric.age_interval"]]
        table.append({
            "kind": kind,
            "nodes": row["fabric.nodes"],
            "background": BACKGROUNDS[row["workload.background"]],
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
    """Completion time by percentile, over endless flows."""
    from weft.report.plots import plot

    rows = [
        {"percentile of flows": p, "fct_us": time, "kind": row["kind"]}
        for row in table
        if row["background"] == BACKGROUNDS["long"]
        for p, time in row["percentiles"].items()
    ]
    title = f"Fig. 14: 20 KB over endless flows, {table[0]['nodes']} nodes"
    return plot(rows, x="percentile of flows", y="fct_us", by="kind", yscale="linear", title=title)


def _compare(background, key, name):
    """No factor is printed: we take a fifth less as much."""

    def check(table):
        at = {row["kind"]: key(row) for row in table if row["background"] == background}
        return at["both"] <= 0.8 * at["neither"], f"{name} in us: " + ", ".join(f"{k} {v:.2f}" for k, v in at.items())

    return check


def _bounded(table):
    """The monitor compares every queue with 1 + the incast degree of its destination, which is 1 for node 0."""
    broken = sum(row["bound_broken"] for row in table if row["kind"] in ("both", "ready queues only"))
    bound = printed("fig14")["queue_cells"]
    said = f"eq. (5), which says {bound} here, was broken {broken} times; a run of ours that breaks it ends at once"
    return broken == 0, said


CLAIMS = [
    *(
        Claim("shoal.c29", f"§3.3.3 makes completion {word}: over {background}", _compare(background, key, name))
        for background in BACKGROUNDS.values()
        for word, key, name in (
            ("much shorter", lambda row: row["mean_us"], "mean"),
            ("more predictable", lambda row: row["p99_us"] - row["p50_us"], "p99 less the median"),
        )
    ),
    Claim("shoal.c29", "queues towards node 0 at intermediate nodes are bounded to two", _bounded),
]
