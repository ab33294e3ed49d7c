"""Shoal, §7.2: how close long flows between random nodes come to their max-min fair rates."""

import numpy as np

from weft.metrics.fairness import distance, per_node, per_node_with_detours, per_subflow
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT, marks_only
from weft.papers.shoal import printed, rack
from weft.study import Study
from weft.units import us
from weft.workload import LongFlows

COLUMNS = ("kind", "long_flows", "mean_rate", "subflows", "detours", "switch", "worst_subflows")
IDEALS = {
    "subflows": ("max-min over subflows on virtual links", per_subflow),
    "detours": ("max-min on the nodes' links, transit counted", per_node_with_detours),
    "switch": ("max-min in an ideal packet switch", per_node),
}
SERIES = tuple(Series("long_flows", key, "kind") for key in IDEALS)
KINDS = {True: "with ready queues", False: "without"}


def study(scale="small"):
    """As many flows for the nodes as 50 to 1,024 are for 512, with and without ready queues."""
    nodes, duration = (512, 3000 * us) if at_paper_scale(scale) else (64, 700 * us)
    counts = [max(k * nodes // 512, 2) for k in (50, 128, 256, 512, 1024)]
    fabrics = [rack(nodes, ready_queues=ready) for ready in KINDS]
    workloads = [LongFlows(flows=k, duration=duration) for k in counts]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1, 2, 3], title="Shoal, §7.2, fairness")


def measure(runs):
    """A row per number of flows, all seeds together: the share of flows within 10 % of each of three ideals."""
    grouped = {}
    for row, result in zip(runs.rows, runs.results, strict=True):
        fabric, flows = rack(row["fabric.nodes"]), result.flows
        slots = result.observation.now / fabric.slot_time
        rates = result.observation.received / (fabric.payload * fabric.capacity * slots)
        kept = grouped.setdefault((KINDS[row["fabric.ready_queues"]], row["workload.flows"]), {"rates": []})
        kept["rates"].append(rates)
        for key, (_, ideal) in IDEALS.items():
            kept.setdefault(key, []).append(ideal(flows.src, flows.dst, flows.nodes))
    table = []
    for (kind, count), kept in grouped.items():
        joined = {key: np.concatenate(parts) for key, parts in kept.items()}
        off = {key: distance(joined["rates"], joined[key], printed("fairness")["within"]) for key in IDEALS}
        table.append({
            "kind": kind,
            "long_flows": count,
            "count": len(joined["rates"]),
            "mean_rate": float(joined["rates"].mean()),
            **{key: off[key]["share_within"] for key in IDEALS},
            "worst_subflows": off["subflows"]["max"],
        })  # fmt: skip
    return table


def draw(table):
    """Share of flows within 10 % of max-min over subflows, and what the text states."""
    from weft.report.plots import plot

    counts = sorted({row["long_flows"] for row in table})
    theirs = printed("fairness")["share_within"]
    ends = ({"kind": TEXT, "long_flows": k, "subflows": theirs} for k in (counts[0], counts[-1]))
    rows = [*table, *ends]
    rows = [{**row, "share within 10 %": row["subflows"]} for row in rows]
    title = "§7.2: flows within 10 % of max-min over subflows"
    drawn = plot(rows, x="long_flows", y="share within 10 %", by="kind", xscale="log", yscale="linear", title=title)
    return marks_only(drawn, TEXT)


def _within(kind, key):
    def check(table):
        rows = [row for row in table if row["kind"] == kind]
        least = min(rows, key=lambda row: row[key])
        share = sum(row[key] * row["count"] for row in rows) / sum(row["count"] for row in rows)
        said = f"{share:.1%} of all flows, {least[key]:.1%} at worst, of {least['long_flows']} flows a run"
        return share >= printed("fairness")["share_within"], said

    return check


CLAIMS = [
    Claim("shoal.c27", f"99 % of flows are within 10 % of the ideal: {name}, {kind}", _within(kind, key))
    for key, (name, _) in IDEALS.items()
    for kind in KINDS.values()
]
