"""Shoal, Fig. 13: completion of the slowest flow and of the mean one against the number of senders of an incast."""

import numpy as np

from weft.fabrics.shoal import bounds
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import rack
from weft.study import Study
from weft.units import KB, us
from weft.workload import Incast

COLUMNS = ("senders", "slowest_us", "mean_us", "optimum_us", "whole_rounds_us", "max_queue")
SERIES = tuple(Series("senders", y) for y in ("slowest_us", "mean_us", "optimum_us", "whole_rounds_us"))
SIZE = 130 * KB
NAMES = {
    "slowest_us": "slowest flow",
    "mean_us": "mean",
    "optimum_us": "optimum",
    "whole_rounds_us": "optimum, last rounds whole",
}


def study(scale="small"):
    """130 KB from each of ever more senders to one node, all at once."""
    nodes = 512 if at_paper_scale(scale) else 64
    senders = [1, *(nodes * k // 8 for k in range(1, 8)), nodes - 1]
    workloads = [Incast(fan_in=m, bytes=SIZE) for m in senders]
    return Study(fabrics=[rack(nodes)], workloads=workloads, seeds=[1], title="Shoal, Fig. 13")


def measure(runs):
    """A row per run: completion of the slowest and mean flow, and what the receiver's link would allow, in us."""
    table = []
    for row in runs.rows:
        fabric, m = rack(row["fabric.nodes"]), row["workload.fan_in"]
        cells = int(fabric.cells(SIZE))
        each = fabric.slot_time / fabric.capacity / us  # us that a receiver takes for a cell
        table.append({
            "nodes": fabric.nodes,
            "senders": m,
            "slowest_us": row["fct_us.all.max"],
            "mean_us": row["fct_us.all.mean"],
            "optimum_us": m * cells * each,
            "whole_rounds_us": int(bounds.incast_slots(m, cells, fabric.nodes)) * each,
            "max_queue": row["queue_cells.max"],
        })  # fmt: skip
    return table


def draw(table):
    """Four lines; the text states none of the printed points."""
    from weft.report.plots import plot

    rows = [{"senders": row["senders"], "fct_us": row[key], "of": name} for key, name in NAMES.items() for row in table]
    title = f"Fig. 13: incast of 130 KB, {table[0]['nodes']} nodes"
    return plot(rows, x="senders", y="fct_us", by="of", yscale="linear", title=title)


def _linear(table):
    m, slowest = (np.array([row[key] for row in table], float) for key in ("senders", "slowest_us"))
    slope = (m * slowest).sum() / (m * m).sum()
    off = np.abs(slowest - slope * m).max() / slowest.max()
    return off <= 0.02, f"within {off:.2%} of the greatest from a line through 0 of {slope:.2f} us a sender"


def _optimal(table):
    several = [row for row in table if row["senders"] > 1]
    ratios = [row["slowest_us"] / row["optimum_us"] for row in several]
    rounds = several[-1]["whole_rounds_us"] / several[-1]["optimum_us"]
    said = f"slowest over optimum is {min(ratios):.3f} to {max(ratios):.3f}; counting last rounds whole {rounds:.3f}"
    return max(ratios) <= 1.02, said


def _mean(table):
    ratios = [row["mean_us"] / row["slowest_us"] for row in table]
    return min(ratios) >= 0.95, f"mean over slowest is at least {min(ratios):.3f}"


def _queues(table):
    """A line through 0 within a cell or a twentieth; and none above 1 + senders, at which a run would have ended."""
    m, longest = (np.array([row[key] for row in table], float) for key in ("senders", "max_queue"))
    slope = (m * longest).sum() / (m * m).sum()
    off = np.abs(longest - slope * m)
    linear = slope > 0.5 and (off <= np.maximum(1, longest.max() / 20)).all()
    said = f"{slope:.3f} cells a sender, at most {off.max():.1f} cells off; {longest[-1]:.0f} with {m[-1]:.0f} senders"
    return bool(linear and (longest <= 1 + m).all()), said


CLAIMS = [
    Claim("shoal.c28", "the slowest flow's completion time grows linearly with the number of senders", _linear),
    Claim("shoal.c28", "it is also the optimal maximum", _optimal),
    Claim("shoal.c28", "the mean completion time coincides with the slowest flow's", _mean),
    Claim("shoal.c13", "queues grow linearly with the senders but are bounded by eq. (5)", _queues),
]
