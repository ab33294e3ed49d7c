"""Shoal, Fig. 17: tail of short flows and goodput of long ones against the share of nodes that have failed.

Nodes fail before the first flow (§7.3, L = 1), as many as the share says, drawn from the seed. What becomes of the
traffic of the dead is not said, so there are three readings: *survivors* offer L = 1 among themselves; *discarded*, as
in the authors' simulator, is the traffic of a whole rack without the flows that touch a dead node; *all* is that with
them, and they never finish. The load is one of 50 Gb/s. Ratios are to the whole rack of the same seed, which also
draws the dead: their mean over the seeds, and the interval that holds the mean of many with 95 % (Student's t).
"""

import numpy as np

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import marks_only
from weft.papers.shoal import printed, rack
from weft.study import Study
from weft.units import Gbps, us
from weft.workload import Survivors

COLUMNS = (
    "offered", "dead", "seeds", "flows", "realised_gbps", "tail_us", "goodput_gbps", "tail_ratio", "tail_off",
    "goodput_ratio", "goodput_off", "unfinished",
)  # fmt: skip
SERIES = tuple(Series("dead", y, "offered") for y in ("tail_us", "goodput_gbps", "tail_ratio", "goodput_ratio"))
DEAD = (0, 10, 20, 30, 40, 50)  # per cent
OFFERED = ("survivors", "discarded", "all")
WITHIN = 0.1  # of the printed ratio


def plan(dead):
    """The failures of a run, as text; None if there are none."""
    return f"nodes {dead}%" if dead else None


def study(scale="small"):
    """Six shares of dead nodes under three readings of what is offered, under several seeds."""
    return runs_of(*((512, 31_250 * us, 3) if at_paper_scale(scale) else (64, 1_000 * us, 5)))


def runs_of(nodes, window, seeds=1):
    """The study on a rack of any size, flows arriving during `window`."""
    fabrics, workloads = [], []
    for offered in OFFERED:
        for dead in DEAD:
            fabrics.append(rack(nodes, fail=plan(dead)))
            options = {"load": 1.0, "load_rate": 50 * Gbps, "duration": window, "drain": window // 2}
            workloads.append(Survivors(dead=plan(dead) or "", offered=offered, **options))
    seeds = range(1, seeds + 1)
    return Study(fabrics=fabrics, workloads=workloads, seeds=seeds, paired=True, title="Shoal, Fig. 17")


def share(row):
    """Per cent of the nodes that are dead in a run."""
    return int((row["workload.dead"] or "nodes 0%").removeprefix("nodes ").removesuffix("%"))


def _living(row):
    """Nodes for each that offers something: the dead do not, unless all do."""
    return 1 if row["workload.offered"] == "all" else 100 / (100 - share(row))


def measure(runs):
    """A row per share and reading: means over the seeds, of tail and goodput and of their ratios to the whole rack's,
    and half the width of the interval of each ratio."""
    found = [
        {
            "nodes": row["fabric.nodes"],
            "seed": row["seed"],
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
    whole = {(row["offered"], row["seed"]): row for row in found if row["dead"] == 0}
    table = []
    for offered in OFFERED:
        for dead in DEAD:
            same = [row for row in found if row["offered"] == offered and row["dead"] == dead]
            line = {"nodes": same[0]["nodes"], "offered": offered, "dead": dead, "seeds": len(same)}
            for key in ("flows", "realised_gbps", "tail_us", "goodput_gbps", "unfinished"):
                line[key] = _mean([row[key] for row in same])
            for name, key in (("tail", "tail_us"), ("goodput", "goodput_gbps")):
                pairs = [(row[key], whole[offered, row["seed"]][key]) for row in same]
                ratios = [own / base for own, base in pairs if own and base]
                line[f"{name}_ratio"], line[f"{name}_off"] = interval(ratios)
            table.append(line)
    return table


def _mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def interval(values) -> tuple:
    """(mean, half the width of its 95 % interval) of draws from about a normal distribution; None where too few."""
    if len(values) < 2:
        return (values[0] if values else None), None
    return float(np.mean(values)), float(STUDENT[len(values)] * np.std(values, ddof=1) / len(values) ** 0.5)


# 97.5 % points of Student's t, by the number of values
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


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


def resolved(ratio, off, theirs):
    """True if the whole interval is within a tenth of what is printed, False if none of it is, else not resolved."""
    low, high = theirs * (1 - WITHIN), theirs * (1 + WITHIN)
    if off is None:
        return "not resolved"
    if ratio + off < low or ratio - off > high:
        return False
    return True if low <= ratio - off and ratio + off <= high else "not resolved"


def _shown(row, name):
    off = row[f"{name}_off"]
    return f"{row[f'{name}_ratio']:.2f}" + ("" if off is None else f" ± {off:.2f}")


def _tail(offered, dead):
    """A tenth either way, as for the other tails."""

    def check(table):
        row = _at(table, offered, dead)
        if row["tail_ratio"] is None:
            return "not run", "too few short flows"
        said = f"{_shown(row, 'tail')} over {row['seeds']} seeds: {row['tail_us']:.4g} us, "
        said += f"{row['realised_gbps']:.3g} Gb/s offered"
        return resolved(row["tail_ratio"], row["tail_off"], printed("fig17")[f"tail_{dead}"]), said

    return check


def _goodput(offered):
    """Half at 50 % within a tenth, and no share further than a tenth of the whole from a straight line."""

    def check(table):
        rows = [row for row in table if row["offered"] == offered and row["goodput_ratio"] is not None]
        dead, ratio = (np.array([row[key] for row in rows], float) for key in ("dead", "goodput_ratio"))
        if len(rows) < 3 or dead[-1] != 50:
            return "not run", "too few long flows"
        half = printed("fig17")["goodput_50"]
        spread = np.array([row["goodput_off"] or 0 for row in rows])
        away = np.abs(ratio - (1 - (1 - half) * dead / 50))
        said = "of the whole rack's: " + ", ".join(f"{_shown(row, 'goodput')} at {row['dead']} %" for row in rows)
        end = resolved(ratio[-1], rows[-1]["goodput_off"], half)
        if end is False or (away - spread > WITHIN).any():
            return False, said
        return True if end is True and (away + spread <= WITHIN).all() else "not resolved", said

    return check


CLAIMS = [
    *(Claim("shoal.c35", f"goodput falls linearly, to half at 50 % dead: {how}", _goodput(how)) for how in OFFERED),
    *(
        Claim("shoal.c35", f"the tail of short flows is {times}x at {dead} % dead: {how}", _tail(how, dead))
        for dead, times in ((20, 1.2), (40, 1.5))
        for how in OFFERED
    ),
]
