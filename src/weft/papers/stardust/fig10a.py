"""Stardust, Fig. 10a: throughput of a permutation, every host sending to one other without end."""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT, marks_only
from weft.papers.stardust import SYSTEMS, system_of, tree
from weft.study import Study
from weft.units import ms
from weft.workload import Permutation

COLUMNS = ("system", "mean_gbps", "least_gbps", "most_gbps", "share", "printed", "drops", "timeouts")
SERIES = (Series("system", "mean_gbps"),)
PRINTED = {"Stardust": 94, "DCTCP": 49, "DCQCN": 47, "MPTCP": 90}  # % of the link, on average


def study(scale="small"):
    """One permutation of all hosts over each network; the second half of the time is measured."""
    hosts, duration = (432, 20 * ms) if at_paper_scale(scale) else (54, 10 * ms)
    return Study(
        fabrics=[tree(hosts, system) for system in SYSTEMS],
        workloads=[Permutation(duration=duration)],
        seeds=[1],
        title="Stardust, Fig. 10a",
    )


def measure(runs):
    """A row per network: payload per destination, and its share of 10 Gb/s."""
    return [
        {
            "system": system_of(row),
            "mean_gbps": row["throughput.per_destination_gbps.mean"],
            "least_gbps": row["throughput.per_destination_gbps.min"],
            "most_gbps": row["throughput.per_destination_gbps.max"],
            "share": row["throughput.per_destination_gbps.mean"] / 10 * 100,
            "printed": PRINTED.get(system_of(row)),
            "drops": sum(row.get(f"drops.{why}") or 0 for why in ("full", "link_down", "no_route", "lossless", "late")),
            "timeouts": row["timeouts"],
        }
        for row in runs.rows
    ]


def draw(table):
    """Mean throughput of each network, and the printed one."""
    from weft.report.plots import plot

    rows = [{"system": k, "share": row["share"], "of": row["system"]} for k, row in enumerate(table)]
    rows += [{"system": k, "share": row["printed"], "of": TEXT} for k, row in enumerate(table) if row["printed"]]
    return marks_only(plot(rows, x="system", y="share", by="of", title="Fig. 10a: % of the link, on average"), TEXT)


def _stardust(table):
    row = next(row for row in table if row["system"] == "Stardust")
    said = f"{row['mean_gbps']:.2f} Gb/s on average, {row['least_gbps']:.2f} to {row['most_gbps']:.2f}"
    return abs(row["share"] - PRINTED["Stardust"]) < 2, said


def _others(table):
    said = ", ".join(f"{row['system']} {row['share']:.0f} %" for row in table)
    close = [abs(row["share"] - row["printed"]) < 5 for row in table if row["printed"] and row["system"] != "Stardust"]
    return all(close), said


def _most(table):
    shown = [row for row in table if row["printed"]]
    best = max(shown, key=lambda row: row["mean_gbps"])["system"]
    return best == "Stardust", f"of those shown, {best} has the most"


CLAIMS = [
    Claim("stardust.c23", "Stardust gives 9.44 Gb/s to 96 % of flows, 94 % on average", _stardust),
    Claim("stardust.c23", "DCTCP gives 49 %, DCQCN 47 %, MPTCP 90 % on average", _others),
    Claim("stardust.c23", "Stardust gives most", _most),
]
