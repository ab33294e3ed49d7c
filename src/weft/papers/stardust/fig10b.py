"""Stardust, Fig. 10b: completion of flows between one pair while every other host has four long flows.

A flow begins 1 ms after the one before is done. Its size is one of the ten that the public simulator behind the figure
draws with equal chance; the paper says "the Web workload". Long flows are among the other hosts, so that the pair
shares links inside the network and not those of its hosts.
"""

import numpy as np

from weft.metrics.fct import Distribution
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.stardust import SYSTEMS, system_of, tree
from weft.study import Study
from weft.units import ms, us
from weft.workload import Shorts

COLUMNS = ("system", "bytes", "flows", "least_us", "p50_us", "mean_us", "max_us")
SERIES = (Series("bytes", "p50_us", "system"), Series("bytes", "max_us", "system"))
LARGEST = 10**6
SHOWN = ("DCTCP", "MPTCP", "DCQCN")  # beside Stardust, in print


def study(scale="small"):
    """As many flows as come within the time, of sizes that are the same for all networks."""
    hosts, flows, drain = (432, 100, 50 * ms) if at_paper_scale(scale) else (54, 60, 30 * ms)
    return Study(
        fabrics=[tree(hosts, system) for system in SYSTEMS],
        workloads=[Shorts(flows=flows, shorts="htsim-web", gap=1 * ms, background="long", longs=4, drain=drain)],
        seeds=[1],
        title="Stardust, Fig. 10b",
    )


def measure(runs):
    """A row per network and size: how long its flows took, from when they could begin, and the least they could."""
    table = []
    for row, result in zip(runs.rows, runs.results, strict=True):
        flows, seen = result.flows, result.observation
        network = tree(row["fabric.hosts"], system_of(row))
        took, least = seen.finish - flows.released(seen.finish), network.ideal(flows)
        short = (flows.id < row["workload.flows"]) & seen.finished
        for size in np.unique(flows.size[flows.id < row["workload.flows"]]).tolist():
            these = short & (flows.size == size)
            times = Distribution(took[these])
            known = len(times) > 0
            table.append({
                "system": system_of(row),
                "hosts": row["fabric.hosts"],
                "bytes": size,
                "flows": len(times),
                "least_us": float(least[these].min()) / us if known else None,
                "p50_us": times.p50 / us if known else None,
                "mean_us": times.mean / us if known else None,
                "max_us": times.max / us if known else None,
            })  # fmt: skip
    return table


def draw(table):
    """Median completion by size, of each network."""
    from weft.report.plots import plot

    rows = [{"bytes": row["bytes"], "fct_us": row["p50_us"], "of": row["system"]} for row in table if row["flows"]]
    rows += [
        {"bytes": row["bytes"], "fct_us": row["least_us"], "of": "no other traffic, no credits"}
        for row in table
        if row["system"] == table[0]["system"] and row["flows"]
    ]
    return plot(rows, x="bytes", y="fct_us", by="of", xscale="log", yscale="log",
                title=f"Fig. 10b: median completion, {table[0]['hosts']} hosts")  # fmt: skip


def _of(table, system):
    return {row["bytes"]: row for row in table if row["system"] == system and row["flows"]}


def _millisecond(table):
    """The largest flows; a run in which none was done says nothing."""
    row = _of(table, "Stardust").get(LARGEST)
    if row is None:
        return "not run", "no flow of 1 MB was done"
    said = f"{row['flows']} flows of 1 MB took {row['mean_us'] / 1000:.3f} ms on average, {row['max_us'] / 1000:.3f} at"
    return row["max_us"] < 1000, f"{said} most; a link takes {row['least_us'] / 1000:.3f}"


def _lower(table):
    """No factor is printed: Stardust's mean must be the least at every size."""
    ours = _of(table, "Stardust")
    worse, said = [], []
    for system in SHOWN:
        theirs = _of(table, system)
        ratios = {size: theirs[size]["mean_us"] / row["mean_us"] for size, row in ours.items() if size in theirs}
        worse += [f"{system} at {size:,} B" for size, ratio in ratios.items() if ratio <= 1]
        said.append(f"{system} {min(ratios.values()):.2f} to {max(ratios.values()):.2f}")
    text = "mean over Stardust's, by size: " + ", ".join(said)
    return not worse, text + (f"; not longer: {', '.join(worse)}" if worse else "")


CLAIMS = [
    Claim("stardust.c24", "even flows of 1 MB have a completion time of less than a millisecond", _millisecond),
    Claim("stardust.c24", "Stardust significantly outperforms all other schemes", _lower),
]
