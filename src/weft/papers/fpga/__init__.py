"""Investigating the Feasibility of FPGA-based Network Switches (ASAP 2019): what can be simulated of it.

The paper prints no simulated curve: it says in words what its simulations showed. Every module here is one such
sentence or table: `study(scale)` lists the runs, `measure` carries them out, `draw(table)` makes the picture, `CLAIMS`
pairs each sentence with a check of the table. `scale` is "small" for minutes on a laptop or "paper" for longer runs of
larger switches. A table that takes more than one round of runs is made by the module's own `search`.
"""

from typing import NamedTuple

from weft.errors import require

FIGURES = ("loads", "blocking", "unbalanced", "iterations", "depth", "sharing", "latency")


class Run(NamedTuple):
    """One run of a study: what to call it, and what to carry through what."""

    labels: dict
    fabric: object
    traffic: object


class Claim(NamedTuple):
    """A sentence of the paper, and a check that a table bears it out."""

    id: str
    statement: str
    check: object  # table -> (holds, what was measured)


def tabulate(figure, scale="small", **keeping) -> list[dict]:
    """The table of a figure; `keeping` is where its runs are kept and how many are done at a time, as in `measure`."""
    if hasattr(figure, "search"):
        return figure.search(scale, **keeping)
    return measure(figure.study(scale), **keeping)


def measure(runs, seed: int = 1, folder=None, *, workers: int = 1, on=None, progress=None) -> list[dict]:
    """Carry out the runs, those that `folder` does not hold. A row has the labels of its run, its throughput, delays,
    losses and fullest queue."""
    from weft.study import Point, Study

    runs = list(runs)
    study = Study(fabrics=[r.fabric for r in runs], workloads=[r.traffic for r in runs], seeds=[seed], paired=True)
    seen = study.run(folder, workers=workers, on=on, progress=progress).rows
    found = dict(zip(study.points, seen, strict=True))
    return [{**run.labels, **_row(found[Point(run.fabric, run.traffic, seed)])} for run in runs]


def _row(seen):
    return {
        "throughput": seen["cells_per_slot.mean"],
        "delay_mean": seen["delay_slots.mean"],
        "delay_p99": seen["delay_slots.p99"],
        "delay_max": seen["delay_slots.max"],
        "queue_max": seen["queue_cells.max"],
        "memory_max": seen.get("memory_cells.max"),
        "lost": seen["lost.total"],
        "offered": seen["cells.offered"],
        "loss": seen["lost.total"] / seen["cells.offered"] if seen["cells.offered"] else None,
        "iterations_mean": seen["scheduler.iterations_mean"],
        "iterations_max": seen["scheduler.iterations_max"],
        "fingerprint": seen["fingerprint"],
    }


def pick(table, key, **labels):
    """The values of `key` in the rows that have these labels."""
    return [row[key] for row in table if all(row[name] == value for name, value in labels.items())]


def text(table, columns) -> str:
    """The table as text, one row per line."""
    shown = [[_show(row.get(column)) for column in columns] for row in table]
    width = [max(len(column), *(len(row[k]) for row in shown)) for k, column in enumerate(columns)]
    lines = ["  ".join(column.rjust(w) for column, w in zip(columns, width, strict=True))]
    lines += ["  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=True)) for row in shown]
    return "\n".join(lines)


def _show(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def check_scale(scale):
    """Raise unless `scale` is one of the two there are."""
    require(scale in ("small", "paper"), "scale", "small or paper", scale)
    return scale == "paper"
