"""Investigating the Feasibility of FPGA-based Network Switches (ASAP 2019): what can be simulated of it.

The paper prints no simulated curve: it says in words what its simulations showed. Every module here is one such
sentence or table: `study(scale)` lists the runs, `measure` carries them out, `draw(table)` makes the picture, `CLAIMS`
pairs each sentence with a check of the table. `scale` is "small" for minutes on a laptop or "paper" for longer runs of
larger switches.
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


def measure(runs, seed: int = 1, report=None) -> list[dict]:
    """Carry out the runs. A row has the labels of its run and its throughput, delays, losses and fullest queue."""
    rows = []
    for run in runs:
        drawn = run.traffic.draw(nodes=run.fabric.nodes, link=run.fabric.link, seed=seed)
        state = run.fabric.prepare(drawn, seed=seed)
        run.fabric.advance(state)
        seen = run.fabric.observe(state, drawn)
        rows.append({**run.labels, **_row(seen)})
        if report is not None:
            report(rows[-1])
    return rows


def _row(seen):
    s = seen.sections
    return {
        "throughput": s["throughput"],
        "delay_mean": s["delay_slots"]["mean"],
        "delay_p99": s["delay_slots"]["p99"],
        "delay_max": s["delay_slots"]["max"],
        "queue_max": s["queue_cells"]["max"],
        "memory_max": (s["memory_cells"] or {}).get("max"),
        "lost": s["lost"],
        "offered": s["cells"]["offered"],
        "iterations_mean": s["scheduler"]["iterations_mean"],
        "iterations_max": s["scheduler"]["iterations_max"],
        "fingerprint": seen.fingerprint,
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
