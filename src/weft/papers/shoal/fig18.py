"""Shoal, Fig. 18: disaggregated workloads: tail of short flows, goodput of long ones, and the longest queue.

The paper draws flows from traces of six applications that we do not have. What it states is kept: 12.65 ns between
flows for 512 nodes, and 84 % of the flows among a third of the nodes. What sets the applications apart is not stated;
here it is the share of flows that storage takes, from nearly none to 4 %, with sizes that are assumed
(`weft.workload.disaggregated`). Smaller racks get as many flows for a node.
"""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import marks_only, printed, rack
from weft.study import Study
from weft.workload import Disaggregated

COLUMNS = (
    "storage", "offered_gbps", "mean_us", "p99_us", "p99.9_us", "goodput_gbps", "long_flows", "max_queue", "max_node",
)  # fmt: skip
LINES = ("mean_us", "p99_us", "p99.9_us", "goodput_gbps", "max_queue")
SERIES = tuple(Series("storage", y) for y in LINES)
STORAGE = (0.002, 0.005, 0.01, 0.02, 0.03, 0.04)
GAP = 12_650  # ps, for 512 nodes


def study(scale="small"):
    """Six shares of storage at the paper's rate of flows."""
    nodes, flows = (512, 1_000_000) if at_paper_scale(scale) else (64, 20_000)
    workloads = [Disaggregated(gap=GAP * 512 // nodes, storage=share, flows=flows) for share in STORAGE]
    return Study(fabrics=[rack(nodes)], workloads=workloads, seeds=[1], title="Shoal, Fig. 18")


def measure(runs):
    """A row per share: what was offered, and what came out."""
    return [
        {
            "nodes": row["fabric.nodes"],
            "storage": row["workload.storage"],
            "offered_gbps": row["offered.rate_gbps"],
            "mean_us": row["fct_us.short.mean"],
            "p99_us": row["fct_us.short.p99"],
            "p99.9_us": row["fct_us.short.p99.9"],
            "goodput_gbps": row["goodput_gbps.long.mean"],
            "long_flows": row["flows.long"],
            "max_queue": row["queue_cells.max"],
            "max_node": row["queue_cells.max_node"],
        }
        for row in runs.rows
    ]


def draw(table):
    """The longest queue of each run, and the one that the text states; of completion times it states only ratios."""
    from weft.report.plots import plot

    rows = [{**row, "longest queue, cells": row["max_queue"], "of": "ours"} for row in table]
    theirs, name = printed("fig18")["queue_cells"], "the paper's text, all applications"
    rows += [{"storage": row["storage"], "longest queue, cells": theirs, "of": name} for row in (table[0], table[-1])]
    title = f"Fig. 18: disaggregated workloads, {table[0]['nodes']} nodes"
    drawn = plot(rows, x="storage", y="longest queue, cells", by="of", yscale="linear", title=title)
    return marks_only(drawn, name)


def _ours(key, unit):
    """What the comparison would need of Shoal; the baselines have not been given these flows."""

    def check(table):
        values = [row[key] for row in table if row[key] is not None]
        if not values:
            return "not run", "no flow of this kind; the baselines have not been run"
        return "not run", f"Shoal {min(values):.4g} to {max(values):.4g} {unit}; the baselines have not been run"

    return check


def _queues(table):
    """Other flows than the paper's: at most consistent."""
    most, theirs = max(row["max_queue"] for row in table), printed("fig18")["queue_cells"]
    said = ", ".join(f"{row['max_queue']} with {row['storage']:.1%}" for row in table)
    return "consistent" if most <= theirs else False, f"cells by share of storage: {said}"


CLAIMS = [
    Claim("shoal.c37", "the tail of short flows is 2x or more shorter than the baselines'", _ours("p99.9_us", "us")),
    Claim("shoal.c37", "goodput of long flows is 2.5x that of the baselines", _ours("goodput_gbps", "Gb/s")),
    Claim("shoal.c37", "no queue exceeds 10 cells in any application", _queues),
]
