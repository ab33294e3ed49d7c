"""Shoal, Fig. 18: disaggregated workloads: tail of short flows, goodput of long ones, and the longest queue.

The paper draws flows from traces of six applications that we do not have. What it states is kept: 12.65 ns between
flows for 512 nodes, and 84 % of the flows among a third of the nodes. What sets the applications apart is not stated;
here it is the share of flows that storage takes, from nearly none to 4 %, with sizes that are assumed
(`weft.workload.disaggregated`). Smaller racks get as many flows for a node. The baselines are those of Fig. 15, given
the same flows at half the rate of a node; their links take 100 ns, Shoal's cells arrive at the end of their slot.
"""

from weft.fabrics.packet import Packet
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import printed, rack
from weft.papers.shoal.fig15 import BASELINES
from weft.study import Study
from weft.units import Gbps, ns
from weft.workload import Disaggregated

COLUMNS = (
    "storage", "system", "offered_gbps", "mean_us", "p99_us", "tail_us", "goodput_gbps", "long_flows", "unfinished",
    "max_queue",
)  # fmt: skip
SERIES = tuple(Series("storage", y, "system") for y in ("mean_us", "p99_us", "tail_us", "goodput_gbps", "max_queue"))
STORAGE = (0.002, 0.005, 0.01, 0.02, 0.03, 0.04)
GAP = 12_650  # ps, for 512 nodes


def study(scale="small"):
    """Six shares of storage at the paper's rate of flows; a run ends when twice the time of arrivals has passed."""
    return runs_of(*((512, 64, 1_000_000) if at_paper_scale(scale) else (64, 16, 10_000)))


def runs_of(nodes, radix, flows, storage=STORAGE):
    """The study on a rack of any size, its baselines on switches of `radix` ports."""
    gap = GAP * 512 // nodes
    packets = {"hosts": nodes, "topology": "leafspine", "radix": radix, "link": 50 * Gbps, "delay": 100 * ns}
    fabrics = [rack(nodes), *(Packet(transport=transport, **packets) for transport in BASELINES.values())]
    workloads = [Disaggregated(gap=gap, storage=share, flows=flows) for share in storage]
    until = 2 * gap * flows
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], until=until, title="Shoal, Fig. 18")


def measure(runs):
    """A row per system and share: what was offered, and what came out."""
    names = {transport: name for name, transport in BASELINES.items()}
    rows = [
        {
            "nodes": row.get("fabric.nodes") or row.get("fabric.hosts"),
            "storage": row["workload.storage"],
            "system": names.get(row.get("fabric.transport"), "Shoal"),
            "offered_gbps": row["offered.rate_gbps"],
            "mean_us": row["fct_us.short.mean"],
            "p99_us": row["fct_us.short.p99"],
            "tail_us": row["fct_us.short.p99.9"],
            "goodput_gbps": row["goodput_gbps.long.mean"],
            "long_flows": row["flows.long"],
            "unfinished": row["unfinished"],
            "max_queue": row.get("queue_cells.max"),
        }
        for row in runs.rows
    ]
    return sorted(rows, key=lambda row: row["storage"])


def draw(table):
    """The tail of short flows of every system; of completion times the text states only ratios."""
    from weft.report.plots import plot

    rows = [{**row, "p99.9 of short flows, us": row["tail_us"]} for row in table]
    title = f"Fig. 18: disaggregated workloads, {table[0]['nodes']} nodes"
    return plot(rows, x="storage", y="p99.9 of short flows, us", by="system", yscale="log", title=title)


def _times(key, better, least):
    """Shoal against each baseline, share by share; other flows than the paper's can at most be consistent with it."""

    def check(table):
        ours = {row["storage"]: row[key] for row in table if row["system"] == "Shoal"}
        said, worst = [], []
        for name in BASELINES:
            pairs = [(row[key], ours[row["storage"]]) for row in table if row["system"] == name]
            ratios = [better(theirs, own) for theirs, own in pairs if theirs and own]
            if ratios:
                said.append(f"{min(ratios):.2f}x to {max(ratios):.2f}x {name}'s")
                worst.append(min(ratios))
        if not said:
            return "not run", "no flow of this kind"
        return "consistent" if min(worst) >= least else False, ", ".join(said)

    return check


def _queues(table):
    """Other flows than the paper's: at most consistent."""
    own, theirs = [row for row in table if row["system"] == "Shoal"], printed("fig18")["queue_cells"]
    said = ", ".join(f"{row['max_queue']} with {row['storage']:.1%}" for row in own)
    good = max(row["max_queue"] for row in own) <= theirs
    return "consistent" if good else False, f"cells by share of storage: {said}"


CLAIMS = [
    Claim(
        "shoal.c37", "the tail of short flows is 2x or more shorter than the baselines'",
        _times("tail_us", lambda theirs, own: theirs / own, 2),
    ),
    Claim(
        "shoal.c37", "goodput of long flows is 2.5x that of the baselines",
        _times("goodput_gbps", lambda theirs, own: own / theirs, 2.5),
    ),
    Claim("shoal.c37", "no queue exceeds 10 cells in any application", _queues),
]  # fmt: skip
