"""Shoal, Table 1: the share of slots that one failed component makes unusable, counted in the fabric.

Every component of every kind is failed in turn, and every cell of an epoch asked whether it would have crossed it. What
the table counts is not said, so four counts are given: slots whose cell is *lost*, or those that go *unused* because
either direction of a pair is lost (§3.5); of all nodes, or only of those (*survivors*) that the component does not cut
off altogether. A link may fail in both directions or in one. One reading serves all four printed formulas: unused slots
of the survivors, links failing in one direction.
"""

import numpy as np

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import near
from weft.schedule.outage import Ways
from weft.schedule.rotation import rounds

COLUMNS = (
    "component", "ports", "nodes", "formula", "printed", "lost", "unused", "lost_survivors", "unused_survivors",
)  # fmt: skip
SERIES = tuple(Series("nodes", y, "line") for y in COLUMNS[4:])
ONE = ", one direction"
FORMULAS = {
    "node-leaf link": ("1/N", lambda n: 1 / n),
    "leaf switch": ("1/sqrt(2N)", lambda n: 1 / (2 * n) ** 0.5),
    "leaf-spine link": ("2/N", lambda n: 2 / n),
    "spine switch": ("2 sqrt(2)/sqrt(N)", lambda n: 2 * (2 / n) ** 0.5),
}
WITHIN = 0.05


def table(scale="small"):
    """A row per component and fabric: full ones of k-port switches, then the paper's own rack, which is not full."""
    racks = [(k * k // 2, k) for k in (4, 8, 16, 32, *((64,) if at_paper_scale(scale) else ()))]
    return [row for nodes, ports in (*racks, (512, 64)) for row in _rows(nodes, ports)]


def _rows(nodes, ports):
    schedule = rounds(nodes)
    ways = Ways(schedule, ports)
    half, leaves = ways.clos.half, ways.clos.leaves
    up, down = ways.up * half + ways.uplink, ways.down * half + ways.uplink
    own, none = np.arange(nodes), np.full(nodes, -1)
    kinds = {  # what a cell crosses of a kind, how many there are, and which of them a node cannot do without
        "node-leaf link": ([ways.sender, ways.receiver], nodes, own),
        f"node-leaf link{ONE}": ([ways.sender], nodes, own),
        "leaf switch": ([ways.up, ways.down], leaves, own // half),
        "leaf-spine link": ([up, down], leaves * half, none),
        f"leaf-spine link{ONE}": ([up], leaves * half, none),
        "spine switch": ([ways.spine], ways.clos.spines, none),
    }
    for component, (crossed, count, needs) in kinds.items():
        formula, value = FORMULAS[component.removesuffix(ONE)]
        full = nodes == ports * ports // 2
        yield {
            "component": component,
            "line": component if full else f"{component}, {ports} ports",
            "ports": ports,
            "nodes": nodes,
            "full": full,
            "formula": formula,
            "printed": value(nodes),
            **_shares(schedule, ways, crossed, count, needs),
        }


def _shares(schedule, ways, crossed, count, needs):
    """The four counts as shares of slots, each the mean over all components of a kind."""
    back = schedule.mirror()[:, None]
    both = [*crossed, *(ids[back, ways.receiver] for ids in crossed)]
    cells, kept = ways.nodes * (ways.nodes - 1), ways.nodes - np.bincount(needs[needs >= 0], minlength=count)
    shares = {}
    for name, ids in (("lost", crossed), ("unused", both)):
        every = np.sort(np.stack(ids).reshape(len(ids), -1), axis=0)
        first = np.ones(every.shape, bool)  # a component that a cell crosses twice loses it once
        first[1:] = every[1:] != every[:-1]
        others = first & (every != np.broadcast_to(needs, ways.sender.shape).reshape(-1))
        shares[name] = float((np.bincount(every[first], minlength=count) / cells).mean())
        of_kept = np.bincount(every[others], minlength=count) / (kept * (ways.nodes - 1))
        shares[f"{name}_survivors"] = float(of_kept.mean())
    return shares


def draw(table):
    """The printed formulas as lines, and what is unusable of the survivors' slots, for full fabrics."""
    from weft.report.plots import plot

    rows = []
    for row in table:
        if row["full"]:
            if ONE not in row["component"]:
                name = f"{row['component']}: the paper's {row['formula']}"
                rows.append({"nodes": row["nodes"], "share of slots": row["printed"], "of": name})
            rows.append({"nodes": row["nodes"], "share of slots": row["unused_survivors"], "of": row["component"]})
    title = "Table 1: slots that one failed component makes unusable"
    return plot(rows, x="nodes", y="share of slots", by="of", xscale="log", yscale="log", title=title)


def _check(component):
    """Hold the formula against the one count that serves all four rows; the paper does not say what it counts."""

    def check(table):
        rows = [row for row in table if row["full"] and row["component"].removesuffix(ONE) == component]
        last = [row for row in rows if row["nodes"] == rows[-1]["nodes"]]
        said = [
            f"{row['unused_survivors']:.6f} of survivors' slots unused, {row['lost']:.6f} of all lost"
            + (", one direction" if ONE in row["component"] else "")
            for row in last
        ]
        text = f"{'; '.join(said)}; {last[0]['printed']:.6f} by the formula, N = {last[0]['nodes']}"
        return "consistent" if near(last[-1]["unused_survivors"], last[-1]["printed"], WITHIN) else False, text

    return check


CLAIMS = [
    Claim("shoal.c16", f"one failed {component} makes about {formula} of the slots unusable", _check(component))
    for component, (formula, _) in FORMULAS.items()
]
