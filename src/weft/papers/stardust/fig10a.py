"""Stardust, Fig. 10a: throughput of a permutation, every host sending to one other without end.

NDP, which the figure leaves out, is there with packets of 9000 and of 1500 B: App. G says why it is left out.
"""

from dataclasses import replace

import numpy as np

from weft.metrics.throughput import steady
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT, marks_only
from weft.papers.stardust import SYSTEMS, drops_of, system_of, tree
from weft.study import Study
from weft.units import Gbps, ms
from weft.workload import Permutation

COLUMNS = ("system", "mean_gbps", "least_gbps", "most_gbps", "even", "share", "printed", "drops", "timeouts")
SERIES = (Series("system", "mean_gbps"),)
SMALL = "NDP, 1500 B"
EVEN, ALIKE = 9.44, 96  # Gb/s, and % of the flows that get it
PRINTED = {"Stardust": 94, "DCTCP": 49, "DCQCN": 47, "MPTCP": 90}  # % of the link, on average


def study(scale="small"):
    """One permutation of all hosts over each network; the second half of the time is measured."""
    hosts, duration = (432, 20 * ms) if at_paper_scale(scale) else (54, 10 * ms)
    return Study(
        fabrics=[*(tree(hosts, system) for system in SYSTEMS), replace(tree(hosts, "NDP"), mtu=1500)],
        workloads=[Permutation(duration=duration)],
        seeds=[1],
        title="Stardust, Fig. 10a",
    )


def measure(runs):
    """A row per network: payload per destination, its share of 10 Gb/s, and who gets what most are said to get."""
    return [
        {
            "system": system_of(row) if row["fabric.mtu"] == 9000 else SMALL,
            "mean_gbps": row["throughput.per_destination_gbps.mean"],
            "least_gbps": row["throughput.per_destination_gbps.min"],
            "most_gbps": row["throughput.per_destination_gbps.max"],
            "even": _even(result.observation),
            "share": row["throughput.per_destination_gbps.mean"] / 10 * 100,
            "printed": PRINTED.get(system_of(row)),
            "drops": drops_of(row),
            "timeouts": row["timeouts"],
        }
        for row, result in zip(runs.rows, runs.results, strict=True)
    ]


def _even(seen) -> float:
    """% of the destinations that get 9.44 Gb/s within 2 % in the second half of a run."""
    time, bytes_ = seen.samples["time_ps"], seen.samples["delivered_bytes"]
    rates = steady(time, bytes_, seen.now // 2, seen.now) / Gbps
    return float(100 * (np.abs(rates / EVEN - 1) <= 0.02).mean())


def draw(table):
    """Mean throughput of each network, and the printed one."""
    from weft.report.plots import plot

    rows = [{"system": k, "% of the link": row["share"], "of": "ours"} for k, row in enumerate(table)]
    rows += [
        {"system": k, "% of the link": row["printed"], "of": TEXT} for k, row in enumerate(table) if row["printed"]
    ]
    drawn = plot(rows, x="system", y="% of the link", by="of", title="Fig. 10a: on average")
    (ax,) = drawn.figure.axes
    ax.set_xticks(range(len(table)), [row["system"] for row in table])
    return marks_only(drawn, TEXT, "ours")


def _stardust(table):
    row = next(row for row in table if row["system"] == "Stardust")
    said = f"{row['mean_gbps']:.2f} Gb/s on average, {row['least_gbps']:.2f} to {row['most_gbps']:.2f}"
    return abs(row["share"] - PRINTED["Stardust"]) < 2, said


def _alike(table):
    row = next(row for row in table if row["system"] == "Stardust")
    return abs(row["even"] - ALIKE) < 2, f"{row['even']:.0f} % of flows get {EVEN} Gb/s within 2 %"


def _others(table):
    said = ", ".join(f"{row['system']} {row['share']:.0f} %" for row in table)
    close = [abs(row["share"] - row["printed"]) < 5 for row in table if row["printed"] and row["system"] != "Stardust"]
    return all(close), said


def _most(table):
    shown = [row for row in table if row["printed"]]
    best = max(shown, key=lambda row: row["mean_gbps"])["system"]
    return best == "Stardust", f"of those shown, {best} has the most"


def _small(table):
    """14 % of the links, or of what it was: the text leaves it open, so that either is at most consistent."""
    large, small = (next(row["share"] for row in table if row["system"] == name) for name in ("NDP", SMALL))
    points, share = large - small, 100 * (1 - small / large)
    said = f"{large:.1f} % with 9000 B, {small:.1f} % with 1500 B: {points:.1f} points, or {share:.1f} %, less"
    return "consistent" if min(abs(points - 14), abs(share - 14)) < 2 else False, said


CLAIMS = [
    Claim("stardust.c23", "Stardust gives 94 % on average", _stardust),
    Claim("stardust.c23", "Stardust gives 9.44 Gb/s to 96 % of flows", _alike),
    Claim("stardust.c23", "DCTCP gives 49 %, DCQCN 47 %, MPTCP 90 % on average", _others),
    Claim("stardust.c23", "Stardust gives most", _most),
    Claim("stardust.c34", "NDP with 1500 B instead of 9000 B has 14 % less", _small),
]
