"""Stardust, §5.4: an incast from all adapters to one port waits where it comes from."""

from weft.fabrics.stardust import Stardust
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT
from weft.study import Study
from weft.units import MB, Gbps
from weft.workload import Incast

COLUMNS = ("adapters", "offered_mb", "at_a_source_mb", "at_the_port_mb", "in_reassembly_cells", "lost", "dropped",
           "spread")  # fmt: skip
SERIES = (Series("adapters", "at_a_source_mb"), Series("adapters", "at_the_port_mb"))


def study(scale="small"):
    """1 MB from each adapter to one port of 50 Gb/s at once; the paper's 128 adapters of 64 uplinks, or 32 of 16."""
    adapters, uplinks = (128, 64) if at_paper_scale(scale) else (32, 16)
    fabric = Stardust(
        hosts=adapters, adapters=adapters, ports=1, uplinks=uplinks, tiers=1, link=50 * Gbps, lane=50 * Gbps, mtu=9000,
        transport="tcp:initial_window=200,rto_min=1s,rto_first=1s",
    )  # fmt: skip
    return Study(fabrics=[fabric], workloads=[Incast(fan_in=adapters - 1, bytes=1 * MB)], seeds=[1],
                 title="Stardust, §5.4")  # fmt: skip


def measure(runs):
    """One row."""
    return [
        {
            "adapters": row["fabric.adapters"],
            "offered_mb": row["offered.bytes"] / MB,
            "at_a_source_mb": row["edge.buffer_max_bytes"] / MB,
            "at_the_port_mb": row["edge.egress_max_bytes"] / MB,
            "in_reassembly_cells": row["edge.reassembly_max_cells"],
            "lost": row["cells.lost"],
            "dropped": row["edge.dropped_full"],
            "spread": row["fct_us.last"] / row["fct_us.first"],
        }
        for row in runs.rows
    ]


def draw(table):
    """Most bytes at a source and at the port."""
    from weft.report.plots import plot

    row = table[0]
    bars = [{"place": k, "mb": row[name], "of": name} for k, name in enumerate(COLUMNS[2:4])]
    bars += [{"place": 0, "mb": 0.99, "of": TEXT}]
    return plot(bars, x="place", y="mb", by="of", title="§5.4: most bytes, in MB")


def _left(table):
    """A source holds most of its 1 MB, headers counted, and what waits at the port is below 1 % of all."""
    row = table[0]
    port = row["at_the_port_mb"] / row["offered_mb"]
    said = f"up to {row['at_a_source_mb']:.3f} MB at a source, headers counted; "
    said += f"at the port {row['at_the_port_mb']:.3f} MB at most, {port:.2%} of all"
    return row["at_a_source_mb"] > 0.9 and port < 0.01, said


def _none(table):
    row = table[0]
    return row["lost"] == 0 and row["dropped"] == 0, f"{row['lost']} cells lost, {row['dropped']} packets dropped"


def _even(table):
    return table[0]["spread"] < 1.1, f"the last flow is done {table[0]['spread']:.3f} times as late as the first"


CLAIMS = [
    Claim("stardust.c11", "99 % of 1 MB stays at each source", _left),
    Claim("stardust.c11", "no packet is lost", _none),
    Claim("stardust.c11", "sources are drained evenly", _even),
]
