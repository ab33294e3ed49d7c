"""Shoal, Fig. 17: tail of short flows and goodput of long ones against the share of nodes that have failed.

Nodes fail before the first flow (§7.3, L = 1), as many as the share says, drawn from the seed. What becomes of the
traffic of the dead is not said, so there are three readings: *survivors* offer L = 1 among themselves; *discarded*, as
in the authors' simulator, is the traffic of a whole rack without the flows that touch a dead node; *all* is that with
them, and they never finish. The load is one of 50 Gb/s.
"""

import numpy as np

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import marks_only, near, printed, rack
from weft.study import Study
from weft.units import Gbps, us
from weft.workload import Survivors

COLUMNS = (
    "offered", "dead", "flows", "realised_gbps", "tail_us", "goodput_gbps", "tail_ratio", "goodput_ratio", "unfinished",
)  # fmt: skip
SERIES = tuple(Series("dead", y, "offered") for y in ("tail_us", "goodput_gbps", "tail_ratio", "goodput_ratio"))
DEAD = (0, 10, 20, 30, 40, 50)  # per cent
OFFERED = ("survivors", "discarded", "all")


def plan(dead):
    """The failures of a run, as text; None if there are none."""
    return f"nodes {dead}%" if dead else None


def study(scale="small"):
    """Six shares of dead nodes under three readings of what is offered."""
    return runs_of(*((512, 31_250 * us) if at_paper_scale(scale) else (64, 1_000 * us)))


def runs_of(nodes, window):
    """The study on a rack of any size, flows arriving during `window`."""
    fabrics, workloads = [], []
    for offered in OFFERED:
        for dead in DEAD:
            fabrics.append(rack(nodes, fail=plan(dead)))
            options = {"load": 1.0, "load_rate": 50 * Gbps, "duration": window, "drain": window // 2}
            workloads.append(Survivors(dead=plan(dead) or "", offered=offered, **options))
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], paired=True, title="Shoal, Fig. 17")


def share(row):
    """Per cent of the nodes that are dead in a run."""
    return int((row["workload.dead"] or "nodes 0%").removeprefix("nodes ").removesuffix("%"))


def _living(row):
    """Nodes for each that offers something: the dead do not, unless all do."""
    return 1 if row["workload.offered"] == "all" else 100 / (100 - share(row))


def measure(runs):
    """A row per run, and the ratio of its tail and goodput to those of the whole rack under the same reading."""
    table = [
        {
            "nodes": row["fabric.nodes"],
            "offered": row["workload.offered"],
            "dead": share(row),
            "flows": row["flows.all"],
            "realised_gbps": row["offered.rate_gbps"] * _living(row),
            "tail_us": row["fct_us.short.p99.9"],
            "goodput_gbps": row["goodput_gbps.long.mean"],
            "unfinished": row["unfinished"],
        }
        for row in runs.rows
    ]
    whole = {row["offered"]: row for row in table if row["dead"] == 0}
    for row in table:
        for ratio, key in (("tail_ratio", "tail_us"), ("goodput_ratio", "goodput_gbps")):
            base = whole[row["offered"]][key]
            row[ratio] = None if row[key] is None or not base else row[key] / base
    return table


def draw(table):
    """Ratios of tail and goodput to those of the whole rack, and the three that the text states."""
    from weft.report.plots import plot

    said = printed("fig17")
    rows = []
    for row in table:
        rows.append({"dead": row["dead"], "ratio": row["goodput_ratio"], "of": f"goodput, {row['offered']}"})
        rows.append({"dead": row["dead"], "ratio": row["tail_ratio"], "of": f"tail, {row['offered']}"})
    names = ("goodput: the paper's text", "tail: the paper's text")
    rows += [{"dead": 50, "ratio": said["goodput_50"], "of": names[0]}]
    rows += [{"dead": dead, "ratio": said[f"tail_{dead}"], "of": names[1]} for dead in (20, 40)]
    rows = [
        {"dead nodes, %": row["dead"], "over the whole rack's": row["ratio"], "of": row["of"]}
        for row in rows
        if row["ratio"]
    ]
    title = f"Fig. 17: dead nodes, {table[0]['nodes']} nodes, L = 1"
    drawn = plot(rows, x="dead nodes, %", y="over the whole rack's", by="of", yscale="linear", title=title)
    return marks_only(drawn, *names)


def _at(table, offered, dead):
    return next(row for row in table if row["offered"] == offered and row["dead"] == dead)


def _tail(offered, dead):
    """A tenth either way, as for the other tails."""

    def check(table):
        row = _at(table, offered, dead)
        if row["tail_ratio"] is None:
            return "not run", "too few short flows"
        said = f"{row['tail_ratio']:.2f}x: {row['tail_us']:.4g} us, {row['realised_gbps']:.3g} Gb/s offered"
        return near(row["tail_ratio"], printed("fig17")[f"tail_{dead}"], 0.1), said

    return check


def _goodput(offered):
    """Half at 50 % within a tenth, and no share further than a tenth of the whole from a straight line."""

    def check(table):
        rows = [row for row in table if row["offered"] == offered and row["goodput_ratio"] is not None]
        dead, ratio = (np.array([row[key] for row in rows], float) for key in ("dead", "goodput_ratio"))
        if len(rows) < 3 or dead[-1] != 50:
            return "not run", "too few long flows"
        half = printed("fig17")["goodput_50"]
        off = np.abs(ratio - (1 - (1 - half) * dead / 50)).max()
        said = ", ".join(f"{r:.2f} at {d:.0f} %" for d, r in zip(dead, ratio, strict=True))
        return bool(near(ratio[-1], half, 0.1) and off <= 0.1), f"of the whole rack's: {said}"

    return check


CLAIMS = [
    *(Claim("shoal.c35", f"goodput falls linearly, to half at 50 % dead: {how}", _goodput(how)) for how in OFFERED),
    *(
        Claim("shoal.c35", f"the tail of short flows is {times}x at {dead} % dead: {how}", _tail(how, dead))
        for dead, times in ((20, 1.2), (40, 1.5))
        for how in OFFERED
    ),
]
