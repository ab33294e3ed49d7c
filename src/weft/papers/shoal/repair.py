"""Shoal, after §7.3: what a repaired schedule gives back, against the linear loss of slots that stay empty.

The paper lets the slots of dead nodes go unused and suggests schedules without them. Three runs for every share of
dead nodes, of the same flows among the same survivors: the rack with its dead, and the rack made anew without them,
which is a rack of fewer nodes; and the whole rack, to compare with. Beside them, the share of a survivor's slots that
is usable before and after, from the schedules of nodes and switches (`weft.schedule.repair`).
"""

from weft.failures import outages
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import fig17, rack
from weft.study import Study
from weft.units import Gbps, us
from weft.workload import Poisson, Survivors

COLUMNS = (
    "dead", "alive", "slots_failed", "slots_repaired", "goodput_failed", "goodput_repaired", "linear", "tail_failed",
    "tail_repaired",
)  # fmt: skip
LINES = COLUMNS[2:]
SERIES = tuple(Series("dead", y) for y in LINES)
OPTIONS = {"load": 1.0, "load_rate": 50 * Gbps, "sizes": "pareto"}


def study(scale="small", seed=1):
    """Pairs of runs: survivors in a rack with dead nodes, and in one of their own, as many as the seed leaves alive."""
    return runs_of(*((512, 31_250 * us) if at_paper_scale(scale) else (64, 1_000 * us)), seed)


def runs_of(nodes, window, seed=1):
    """The study on a rack of any size, flows arriving during `window`."""
    fabrics, workloads = [], []
    for dead in fig17.DEAD:
        plan = fig17.plan(dead)
        workload = Survivors(dead=plan or "", duration=window, drain=window // 2, **OPTIONS)  # as Fig. 17, same runs
        fabrics += [rack(nodes, fail=plan), rack(len(workload.alive(nodes, seed)))]
        workloads += [workload, Poisson(duration=window, **OPTIONS)]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[seed], paired=True, title="Shoal, repaired schedules")


def measure(runs):
    """A row per share of dead nodes."""
    table = []
    for failed, mended, point in zip(runs.rows[::2], runs.rows[1::2], runs.study.points[::2], strict=True):
        dead = fig17.share(failed)
        table.append({
            "nodes": failed["fabric.nodes"],
            "dead": dead,
            "alive": mended["fabric.nodes"],
            **_slots(point, dead),
            "goodput_failed": failed["goodput_gbps.long.mean"],
            "goodput_repaired": mended["goodput_gbps.long.mean"],
            "tail_failed": failed["fct_us.short.p99.9"],
            "tail_repaired": mended["fct_us.short.p99.9"],
        })  # fmt: skip
    for row in table:
        whole = table[0]["goodput_failed"]
        row["linear"] = None if whole is None else whole * (1 - row["dead"] / 100)
    return table


def _slots(point, dead):
    """Shares of a survivor's slots, as the schedules have it."""
    from weft.schedule.repair import repair

    rounds = point.fabric.rounds
    failures = outages(fig17.plan(dead) or "", {"node": (rounds.nodes,)}, seed=point.seed)
    made = repair(rounds, failures, 64 if rounds.nodes > 128 else 16)  # any switches that connect so many will do
    return {"slots_failed": made.before, "slots_repaired": made.after}


def draw(table):
    """Goodput with and without the repair, and the paper's linear loss."""
    from weft.report.plots import plot

    names = {"goodput_failed": "slots left empty", "goodput_repaired": "repaired", "linear": "the paper's linear loss"}
    rows = [
        {"dead nodes, %": row["dead"], "goodput of long flows, Gb/s": row[key], "of": name}
        for key, name in names.items()
        for row in table
        if row[key] is not None
    ]
    title = f"repaired schedules, {table[0]['nodes']} nodes, L = 1 among survivors"
    return plot(rows, x="dead nodes, %", y="goodput of long flows, Gb/s", by="of", yscale="linear", title=title)


def _loses(table):
    rows = [row for row in table if row["dead"]]
    off = max(abs(row["slots_failed"] / table[0]["slots_failed"] - (1 - row["dead"] / 100)) for row in rows)
    said = f"usable slots are within {off:.3f} of it; {rows[-1]['slots_failed']:.3f} at {rows[-1]['dead']} %"
    return off <= 0.02, said


def _gives_back(table):
    rows = [row for row in table if row["dead"] and None not in (row["goodput_repaired"], row["goodput_failed"])]
    if not rows:
        return "not run", "too few long flows"
    last = rows[-1]
    said = (
        f"at {last['dead']} % dead {last['slots_repaired']:.3f} of the slots instead of {last['slots_failed']:.3f}, "
        f"{last['goodput_repaired']:.3g} Gb/s instead of {last['goodput_failed']:.3g}"
    )
    more = all(row["slots_repaired"] > row["slots_failed"] for row in rows)
    return more and all(row["goodput_repaired"] > row["goodput_failed"] for row in rows), said


CLAIMS = [
    Claim("shoal.c35", "slots corresponding to failed nodes are wasted: a loss linear in their number", _loses),
    Claim("shoal.c35", "updated schedules of nodes and switches can alleviate this", _gives_back),
]
