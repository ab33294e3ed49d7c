"""Stardust, Fig. 10c: first and last completion of an incast of 450 KB against the number of senders."""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.stardust import SHOWN, SYSTEMS, drops_of, system_of, tree
from weft.study import Study
from weft.units import KB, ms, us, wire_time
from weft.workload import Incast

COLUMNS = ("system", "senders", "first_ms", "last_ms", "optimum_ms", "spread", "drops", "timeouts")
SERIES = (Series("senders", "first_ms", "system"), Series("senders", "last_ms", "system"))
SIZE = 450 * KB


def study(scale="small"):
    """450 KB from each of ever more hosts to one, all at once, over each network."""
    hosts, senders = 54, (1, 5, 10, 20, 30, 40, 50)
    if at_paper_scale(scale):
        hosts, senders = 432, (1, 10, 50, 100, 200, 300, 400)
    return Study(
        fabrics=[tree(hosts, system) for system in SYSTEMS],
        workloads=[Incast(fan_in=m, bytes=SIZE) for m in senders],
        seeds=[1],
        title="Stardust, Fig. 10c",
    )


def measure(runs):
    """A row per run: first and last completion, what the receiver's link would allow, and what was lost."""
    table = []
    for row in runs.rows:
        m, network = row["workload.fan_in"], tree(row["fabric.hosts"], system_of(row))
        segments = -(-SIZE // network.payload)
        on_the_wire = SIZE + segments * (network.wire_size - network.payload)
        first, last = (row[f"fct_us.{which}"] * us / ms for which in ("first", "last"))
        table.append({
            "system": system_of(row),
            "hosts": row["fabric.hosts"],
            "senders": m,
            "first_ms": first,
            "last_ms": last,
            "optimum_ms": wire_time(m * on_the_wire, network.link) / ms,
            "spread": last / first,
            "drops": drops_of(row) + (row.get("cells.lost") or 0),
            "timeouts": row["timeouts"],
        })  # fmt: skip
    return table


def draw(table):
    """First and last of each network, and what the receiver's link would allow; the text states no printed point."""
    from weft.report.plots import plot

    rows = [
        {"senders": row["senders"], "fct_ms": row[f"{which}_ms"], "of": f"{row['system']}, {which}"}
        for row in table
        for which in ("first", "last")
    ]
    rows += [
        {"senders": row["senders"], "fct_ms": row["optimum_ms"], "of": "the receiver's link"}
        for row in table
        if row["system"] == table[0]["system"]
    ]
    title = f"Fig. 10c: incast of 450 KB, {table[0]['hosts']} hosts"
    return plot(rows, x="senders", y="fct_ms", by="of", title=title)


def _several(table, system):
    """The rows of a network with more than one sender, by number of senders."""
    return {row["senders"]: row for row in table if row["system"] == system and row["senders"] > 1}


def _lasts(table):
    """What follows from the sentence without Stardust."""
    dctcp, mptcp = (_several(table, system) for system in SHOWN)
    ratios = [mptcp[m]["last_ms"] / dctcp[m]["last_ms"] for m in dctcp]
    return min(ratios) > 1, f"MPTCP's last over DCTCP's is {min(ratios):.1f} to {max(ratios):.1f}"


def _near(table):
    ours, dctcp = (_several(table, system) for system in ("Stardust", "DCTCP"))
    ratios = [ours[m]["last_ms"] / dctcp[m]["last_ms"] for m in ours]
    best = [row["last_ms"] / row["optimum_ms"] for row in ours.values()]
    said = (
        f"Stardust's last is {min(ratios):.2f} to {max(ratios):.2f} of DCTCP's, and {min(best):.2f} to {max(best):.2f} "
        "of what the link allows"
    )
    return min(ratios) > 0.95 and max(ratios) < 1.05, said


def _spread(table):
    most = {system: max(row["spread"] for row in _several(table, system).values()) for system in SYSTEMS}
    said = ", ".join(f"{system} {ratio:.2f}" for system, ratio in most.items())
    return most["Stardust"] < min(most[system] for system in SHOWN), f"last over first at most: {said}"


def _none(table):
    drops = sum(row["drops"] for row in table if row["system"] == "Stardust")
    return drops == 0, f"{drops} dropped"


CLAIMS = [
    Claim("stardust.c25", "DCTCP's last completion, which Stardust's equals, is better than MPTCP's", _lasts),
    Claim("stardust.c25", "Stardust's last completion is the same as DCTCP's", _near),
    Claim("stardust.c25", "its fairness, the first completion beside the last, is considerably better", _spread),
    Claim("stardust.c25", "no packets are dropped within the Stardust fabric", _none),
]
