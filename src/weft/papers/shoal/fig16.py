"""Shoal, Fig. 16: the longest queue, the fullest node, and the most that is held for reordering, against load."""

from weft.papers import Claim, Series
from weft.papers.marks import marks_only
from weft.papers.shoal import fig15, printed

COLUMNS = ("offered_gbps", "load_50", "load_100", "realised_gbps", "queue_cells", "node_cells", "reorder_kb")
SERIES = tuple(Series(x, y) for y in ("queue_cells", "node_cells", "reorder_kb") for x in ("load_50", "load_100"))

study = fig15.racks  # the same runs


def measure(runs):
    """A row per run: the three maxima over all nodes and the whole run, and what the monitors counted."""
    return [
        {
            **load,
            "queue_cells": row["queue_cells.max"],
            "node_cells": row["queue_cells.max_node"],
            "reorder_kb": row["reorder_bytes.max"] / 1000,
            "broken": sum(row[f"monitors.{law}"] for law in ("queue_bound", "one_cell_per_subflow", "conservation")),
        }
        for load, row in zip(fig15.measure(runs), runs.rows, strict=True)
    ]


def draw(table):
    """Our three maxima against load of 50 Gb/s, and beside the highest load what the text states."""
    from weft.report.plots import plot

    names = {"queue_cells": "queue, cells", "node_cells": "node, cells", "reorder_kb": "reordering, KB"}
    rows = [
        {"load of 50 Gb/s": row["load_50"], "maximum": row[key], "of": name}
        for key, name in names.items()
        for row in table
        if row["load_50"] <= 1
    ]
    rows += [
        {"load of 50 Gb/s": 1.0, "maximum": printed("fig16")[key], "of": f"{name}: the paper"}
        for key, name in names.items()
    ]
    title = f"Fig. 16: {table[0]['nodes']} nodes"
    drawn = plot(rows, x="load of 50 Gb/s", y="maximum", by="of", yscale="log", title=title)
    return marks_only(drawn, *(f"{name}: the paper" for name in names.values()))


def _maximum(key):
    """Maxima of single runs, at a load that is not printed: a quarter more may be another load, no more."""

    def check(table):
        theirs = printed("fig16")[key]
        most = {rate: max(row[key] for row in table if row[f"load_{rate}"] <= 1) for rate in (50, 100)}
        said = f"{most[50]:.4g} up to load 1 of 50 Gb/s, {most[100]:.4g} up to load 1 of 100 Gb/s"
        if most[50] > theirs:
            return "consistent" if most[50] <= 1.25 * theirs else False, said
        return True if most[50] >= 0.75 * theirs else "consistent", said

    return check


def _bounded(table):
    broken = sum(row["broken"] for row in table)
    return broken == 0, f"the monitors counted {broken} violations in {len(table)} runs; with one, a run ends at once"


CLAIMS = [
    Claim("shoal.c34", "even at high load the longest queue is 11 cells", _maximum("queue_cells")),
    Claim("shoal.c34", "even at high load a node holds at most 336 cells", _maximum("node_cells")),
    Claim("shoal.c34", "at most 200 KB are held for reordering within a flow", _maximum("reorder_kb")),
    Claim("shoal.c13", "queues never exceed their bounds, nor a subflow one cell in each of its queues", _bounded),
]
