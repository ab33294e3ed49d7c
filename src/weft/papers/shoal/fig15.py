"""Shoal, Fig. 15: completion of short flows and goodput of long ones against load; Shoal's side of it."""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import rack
from weft.study import Study
from weft.units import Gbps
from weft.workload import Poisson

COLUMNS = (
    "offered_gbps", "load_50", "load_100", "realised_gbps", "mean_us", "p99_us", "p99.9_us", "goodput_gbps",
    "long_flows",
)  # fmt: skip
LINES = ("mean_us", "p99_us", "p99.9_us", "goodput_gbps")
SERIES = tuple(Series(x, y) for y in LINES for x in ("load_50", "load_100"))
OFFERED = (10, 20, 30, 40, 50, 60, 80, 100)  # Gb/s that a node sends, on average


def study(scale="small"):
    """Poisson arrivals of Pareto flows, 10 to 100 Gb/s a node: loads 0.2 to 1 of 50 Gb/s and 0.1 to 1 of 100."""
    nodes, flows = (512, 1_000_000) if at_paper_scale(scale) else (64, 8_000)
    workloads = [Poisson(load=rate / 100, load_rate=100 * Gbps, sizes="pareto", flows=flows) for rate in OFFERED]
    return Study(fabrics=[rack(nodes)], workloads=workloads, seeds=[1], title="Shoal, Figs. 15 and 16")


def measure(runs):
    """A row per run: what was asked for under both readings of the load, what was drawn, and what came out."""
    return [
        {
            "nodes": row["fabric.nodes"],
            "offered_gbps": 100 * row["workload.load"],
            "load_50": 2 * row["workload.load"],
            "load_100": row["workload.load"],
            "realised_gbps": row["offered.rate_gbps"],
            "mean_us": row["fct_us.short.mean"],
            "p99_us": row["fct_us.short.p99"],
            "p99.9_us": row["fct_us.short.p99.9"],
            "goodput_gbps": row["goodput_gbps.long.mean"],
            "long_flows": row["flows.long"],
        }
        for row in runs.rows
    ]


def draw(table):
    """Tail of the short flows on the left, goodput of the long ones on the right, under both readings of the load."""
    from weft.report.plots import fct_and_goodput

    rows = [
        {
            "load": row[key],
            "fct_us.short.p99.9": row["p99.9_us"],
            "goodput_gbps.long.mean": row["goodput_gbps"],
            "reading": reading,
        }
        for key, reading in (("load_50", "load of 50 Gb/s"), ("load_100", "load of 100 Gb/s"))
        for row in table
        if row[key] <= 1
    ]
    title = f"Fig. 15: Shoal's side, {table[0]['nodes']} nodes"
    return fct_and_goodput(rows, x="load", by="reading", tail="p99.9", title=title)


def _ours(key, unit):
    """What the comparison will need of Shoal: its value at the least and the greatest load, under both readings."""

    def check(table):
        def at(reading, load):
            return next(row[key] for row in table if abs(row[reading] - load) < 1e-9)

        said = [
            f"Shoal {at(reading, 0.2):.1f} {unit} at load 0.2 and {at(reading, 1):.1f} at 1 of {rate} Gb/s"
            for reading, rate in (("load_50", 50), ("load_100", 100))
        ]
        return "not run", f"{'; '.join(said)}; the baselines are not run here"

    return check


CLAIMS = [
    Claim(
        "shoal.c31", "at low to moderate load the mean completion time of short flows is comparable to DCTCP's and "
        "DCQCN's and slightly above NDP's", _ours("mean_us", "us"),
    ),
    Claim(
        "shoal.c32", "the tail of short flows is 3x (low load) and 2x (high load) shorter than DCTCP's and DCQCN's, "
        "1.5x and 2x shorter than NDP's", _ours("p99.9_us", "us"),
    ),
    Claim("shoal.c33", "goodput of long flows is 1.7x that of all three baselines", _ours("goodput_gbps", "Gb/s")),
]  # fmt: skip
