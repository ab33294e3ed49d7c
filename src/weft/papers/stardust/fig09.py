"""Stardust, Fig. 9: latency through a fabric of two tiers, and queues of its last stage, under different loads."""

import numpy as np

from weft.fabrics.stardust import Stardust
from weft.fabrics.stardust.bounds import md1
from weft.papers import Claim, Series, at_paper_scale
from weft.study import Study
from weft.units import Gbps, us
from weft.workload.traffic import Uniform

COLUMNS = ("offered", "utilisation", "latency_mean_us", "latency_p99.9_us", "latency_max_us", "queue_mean", "md1_mean",
           "queue_p99.9", "queue_max", "lost", "slowest")  # fmt: skip
SERIES = (Series("offered", "latency_max_us"), Series("offered", "queue_mean"), Series("offered", "md1_mean"))
LOADS = (0.66, 0.8, 0.9, 0.95)
OVER = 1.2  # the ports together over the uplinks, in the oversubscribed fabric


def fabrics(scale):
    """The fabric, and the same with ports too fast for it."""
    adapters, uplinks, radix = (256, 32, 128) if at_paper_scale(scale) else (32, 16, 32)
    share = uplinks * 50 * Gbps // 2
    alike = {"adapters": adapters, "uplinks": uplinks, "radix": radix}
    return [Stardust(link=share, **alike), Stardust(link=int(OVER * share), **alike)]


def study(scale="small"):
    """Packets of a cell, for any port alike, for 200 us (100 at the paper's scale), the first 40 not measured."""
    duration, begin = (100 * us, 40 * us) if at_paper_scale(scale) else (200 * us, 40 * us)
    usual, over = fabrics(scale)

    def traffic(fabric, load):
        return Uniform(load=load, duration=duration, warmup=begin // fabric.node_slot)

    return Study(
        fabrics=[*[usual] * len(LOADS), over],
        workloads=[*(traffic(usual, load) for load in LOADS), traffic(over, 1.0)],
        paired=True,
        seeds=[1],
        title="Stardust, Fig. 9",
    )


def measure(runs):
    """A row per load."""
    table = []
    for row in runs.rows:
        use = row["fabric_use.utilisation"]
        over = row["fabric.link"] * 2 > row["fabric.uplinks"] * 50 * Gbps
        table.append({
            "offered": OVER if over else row["workload.load"],
            "utilisation": use,
            **{f"latency_{name}_us": row[f"latency_us.{name}"] for name in ("mean", "p99.9", "max")},
            "queue_mean": row["queue_cells.mean"],
            "md1_mean": float(md1(use, 300) @ np.arange(301)) if use < 1 else None,
            "queue_p99.9": row["queue_cells.p99.9"],
            "queue_max": row["queue_cells.max"],
            "lost": row["cells.lost"],
            "slowest": row["credits.slowest"],
            "histogram": row["queue_cells.histogram"],
            "adapters": row["fabric.adapters"],
        })  # fmt: skip
    return sorted(table, key=lambda row: row["offered"])


def draw(table):
    """How often a queue of the last stage holds at least so many cells, and what M/D/1 says."""
    from weft.report.plots import plot

    rows = []
    for row in table:
        total = sum(count for _, count in row["histogram"])
        for n in range(0, 60, 3):
            share = sum(count for cells, count in row["histogram"] if cells >= n) / total
            if share > 0:
                rows.append({"cells": n, "share": share, "of": f"load {row['offered']:g}"})
        if row["utilisation"] < 1 and row["offered"] <= 1:
            theory = md1(row["utilisation"], 300)
            rows += [
                {"cells": n, "share": theory[n:].sum(), "of": f"M/D/1 {row['offered']:g}"} for n in range(0, 60, 3)
            ]
    return plot(rows, x="cells", y="share", by="of", title=f"Fig. 9: queues, {table[0]['adapters']} adapters")


def _latency(table):
    worst = max(row["latency_max_us"] for row in table if row["offered"] <= 0.95)
    return worst < 13, f"at most {worst:.1f} us at up to 95 %, with cells of 256 B on links of 50 Gb/s"


def _lossless(table):
    lost = sum(row["lost"] for row in table)
    return lost == 0, f"{lost} cells lost in {len(table)} runs"


def _decay(table):
    """The rate at which the share of queues of at least n cells falls, over the range that was seen often enough."""
    said, fits = [], []
    for row in table:
        if row["offered"] > 0.95:
            continue
        total = sum(count for _, count in row["histogram"])
        tail = {n: sum(count for cells, count in row["histogram"] if cells >= n) / total for n in range(200)}
        low, high = (max(n for n in tail if tail[n] > limit) for limit in (0.03, 0.0003))
        theory = md1(row["utilisation"], 300)
        steps = max(high - low, 1)
        ours = np.log(tail[low] / tail[high]) / steps
        rest = max(theory[high:].sum(), np.finfo(float).tiny)  # queues that the model never sees: it falls without end
        model = np.log(theory[low:].sum() / rest) / steps if high > low else np.inf
        fits.append(ours / model)
        said.append(f"{row['offered']:g}: {ours:.3f} against {model:.3f}")
    return min(fits) > 0.8, "decay per cell, ours against M/D/1 at the same utilisation: " + ", ".join(said)


def _over(table):
    row = next(row for row in table if row["offered"] == OVER)
    said = f"utilisation {row['utilisation']:.2f}, credits down to {row['slowest']:.2f} of their rate"
    return abs(row["utilisation"] - 0.9) < 0.02, said


CLAIMS = [
    Claim("stardust.c20", "even at 95 % utilisation the latency is below 13 us", _latency),
    Claim("stardust.c21", "in all runs no cells were lost within the fabric", _lossless),
    Claim("stardust.c21", "queue sizes fall off exponentially as M/D/1 says", _decay),
    Claim("stardust.c21", "in the oversubscribed case (120 %) FCI reduces the effective utilisation to 0.9", _over),
]
