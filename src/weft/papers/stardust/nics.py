"""Stardust, §8: adapters shrunk into NICs and Fabric Elements for ToRs, beside the network with adapters as ToRs.

The same hosts, links and flows. With adapters in NICs what was a ToR is one more tier of elements, an adapter has one
port and one uplink, and a host is on no cable of its own. The buffer is then the host's memory.
"""

from dataclasses import replace

from weft.fabrics.stardust import Stardust
from weft.papers import Claim, Series, at_paper_scale
from weft.study import Study
from weft.units import KB, Gbps
from weft.workload import Poisson

COLUMNS = ("network", "adapters", "elements", "short_p50_us", "short_p99_us", "long_gbps", "cell_mean_us",
           "cell_p99.9_us", "buffer_kb", "voqs", "adapter_bits", "element_bits")  # fmt: skip
SERIES = (Series("network", "short_p50_us"), Series("network", "short_p99_us"))
NAMES = {2: "ToR", 3: "NIC"}  # by tiers of elements


def networks(radix: int) -> list[Stardust]:
    """Both networks of so many ports an element, for radix**3 / 4 hosts, with cables of 100 m.

    Lanes are as much faster than hosts as the fabric of §6.2, 5 % without headers.
    """
    half, hosts, lane = radix // 2, radix**3 // 4, 10_750_000_000
    tor = Stardust(
        hosts=hosts, adapters=hosts // half, ports=half, uplinks=half, tiers=2, radix=radix, link=10 * Gbps, lane=lane,
        cell=512,
    )  # fmt: skip
    return [tor, replace(tor, adapters=hosts, ports=1, uplinks=1, tiers=3, host_delay=0)]


def study(scale="small"):
    """Flows of web search at half of the hosts' rate."""
    radix, flows = (12, 20_000) if at_paper_scale(scale) else (6, 2000)
    return Study(
        fabrics=networks(radix),
        workloads=[Poisson(load=0.5, sizes="websearch", flows=flows)],
        seeds=[1],
        title="Stardust, §8",
    )


def measure(runs):
    """A row per network; tables as they follow from its devices, the rest as it was seen."""
    table = []
    for row in runs.rows:
        made = {fabric.tiers: fabric for fabric in networks(row["fabric.radix"])}
        tiers, edges, uplinks = (row[f"fabric.{name}"] for name in ("tiers", "adapters", "uplinks"))
        table.append({
            "network": NAMES[tiers],
            "adapters": edges,
            "elements": sum(made[tiers].wiring.elements),
            "short_p50_us": row["fct_us.short.p50"],
            "short_p99_us": row["fct_us.short.p99"],
            "long_gbps": row["goodput_gbps.long.mean"],
            "cell_mean_us": row["latency_us.mean"],
            "cell_p99.9_us": row["latency_us.p99.9"],
            "buffer_kb": row["edge.buffer_max_bytes"] / KB,
            "voqs": row["fabric.hosts"],
            "adapter_bits": edges * uplinks if uplinks > 1 else 0,
            "element_bits": edges * row["fabric.radix"],
        })  # fmt: skip
    return table


def draw(table):
    """Completion of short flows in both networks."""
    from weft.report.plots import plot

    bars = [
        {"network": k, "fct_us": row[f"short_{part}_us"], "of": part}
        for k, row in enumerate(table)
        for part in ("p50", "p99")
    ]
    return plot(bars, x="network", y="fct_us", by="of", title="§8: adapters as ToRs (0) and in NICs (1), short flows")


def _table(table):
    tor, nic = (next(row for row in table if row["network"] == name) for name in ("ToR", "NIC"))
    said = f"{tor['adapter_bits']:,} bits in an adapter that is a ToR, {nic['adapter_bits']:,} in a NIC with one uplink"
    return nic["adapter_bits"] == 0 < tor["adapter_bits"], said


def _other(table):
    """What §8 does not say: the price of it."""
    tor, nic = (next(row for row in table if row["network"] == name) for name in ("ToR", "NIC"))
    said = (
        f"short flows take {nic['short_p50_us'] / tor['short_p50_us']:.2f} times as long at the median and "
        f"{nic['short_p99_us'] / tor['short_p99_us']:.2f} at p99; tables of elements are "
        f"{nic['element_bits'] / tor['element_bits']:.0f} times as large, most buffer of an adapter "
        f"{nic['buffer_kb'] / tor['buffer_kb']:.2f} times"
    )
    return nic["short_p99_us"] <= tor["short_p99_us"] * 1.1, said


CLAIMS = [
    Claim("stardust.m20", "the reachability table of a NIC with a single uplink is unnecessary", _table, False),
    Claim("stardust.m20", "adapters may shrink into NICs: completion is no worse than 1.1 of the ToRs'", _other),
]
