"""Merchant silicon, §IV: what a permutation gets through the switch, whole, partly deployed and damaged."""

from weft.fabrics.merchant.fabric import Merchant
from weft.papers import Claim, Series, at_paper_scale
from weft.study import Study
from weft.units import Gbps, ms
from weft.workload import Permutation

COLUMNS = ("case", "ports", "bisection_tbps", "carried_tbps", "of_bisection", "slowest_gbps", "lost")
SERIES = (Series("bisection_tbps", "carried_tbps"),)


def cases(radix):
    """What is run, by name: the halves of the core and of a pod's uplink cards, and single parts that fail."""
    cards, uplinks = radix * radix // 32, radix // 4
    return {
        "whole": {},
        "half of the core cards": {"core_cards": cards // 2},
        "half of the uplink cards": {"uplink_cards": uplinks // 2},
        "half of the pods": {"pods": radix // 2},
        "a module failed": {"fail": "module 1"},
        "a core card failed": {"fail": f"core-card {cards - 1}"},
        "a cable failed": {"fail": "cable 0.0.0.0"},
        "5 % of the cables failed": {"fail": "cables 5%"},
    }


def _size(scale):
    return (24, 1 * ms) if at_paper_scale(scale) else (8, 1 * ms)


def study(scale="small"):
    """A permutation of flows without end over every case: NDP, which spreads packets over all paths, 9000 B."""
    radix, duration = _size(scale)
    fabrics = [Merchant(radix=radix, transport="ndp", mtu=9000, **values) for values in cases(radix).values()]
    return Study(fabrics=fabrics, workloads=[Permutation(duration=duration)], seeds=[1], title="Merchant silicon, §IV")


def measure(runs):
    """A row per case: what max-flow allows, and what the ports received in the second half of the run."""
    radix = max(row["fabric.radix"] for row in runs.rows)
    table = []
    for name, row in zip(cases(radix), runs.rows, strict=True):
        ports = row["deployment.ports"]
        carried = row["throughput.per_destination_gbps.mean"] * ports / 1000
        table.append({
            "case": name,
            "ports": ports,
            "bisection_tbps": row["bisection_tbps"],
            "carried_tbps": carried,
            "of_bisection": carried / row["bisection_tbps"],
            "slowest_gbps": row["throughput.per_destination_gbps.min"],
            "lost": row["lost.total"],
        })  # fmt: skip
    return table


def draw(table):
    """Carried against what max-flow allows."""
    from weft.report.plots import plot

    rows = [{"bisection_tbps": r["bisection_tbps"], "carried_tbps": r["carried_tbps"], "of": r["case"]} for r in table]
    return plot(rows, x="bisection_tbps", y="carried_tbps", by="of", yscale="linear", title="A permutation")


def _whole(table):
    row = table[0]
    full = row["ports"] * 10 * Gbps / 1e12
    share = f"{row['of_bisection']:.1%} of {row['bisection_tbps']:g} Tb/s by max-flow"
    said = f"{row['carried_tbps']:.2f} Tb/s of payload, {share}"
    good = row["bisection_tbps"] == full and row["of_bisection"] > 0.85
    return "consistent" if good else False, said  # what is missing is the transport's, which the paper leaves open


def _module(table):
    """About half, and no port less than a fifth of its half."""
    by = {row["case"]: row for row in table}
    share = by["a module failed"]["carried_tbps"] / by["whole"]["carried_tbps"]
    least = by["a module failed"]["slowest_gbps"]
    return 0.4 < share < 0.65 and least > 1, f"{share:.2f} of what the whole switch carries, {least:.2f} Gb/s at least"


CLAIMS = [
    Claim("merchant.c07", "3,456 ports with 34.56 Tb/s of bisection bandwidth: all ports send at once", _whole),
    Claim("merchant.m10", "the core is in two modules for fault tolerance: one of them still serves all", _module),
]
