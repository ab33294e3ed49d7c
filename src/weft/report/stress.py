"""How far do the conclusions of a comparison move when one thing is varied that should not matter?

A conclusion is a ratio: a metric of one fabric over that of the study's first, under one workload. It is computed as
the study has it, then again with one thing varied at a time. What moves far, or changes sides of 1, should not be
printed as a result of the transport.
"""

from dataclasses import fields, replace

from weft.errors import BadInput
from weft.report import keys

METRICS = "fct_us.all.mean,fct_us.short.p99.9,throughput.fraction_of_link"


def variants(fabric, seed: int, vary: list[str]) -> list[tuple[str, object, int]]:
    """(what is varied, fabric, seed) for every variation of one run; things a fabric does not have stay as they are."""
    has = {field.name for field in fields(fabric)}
    made: list[tuple[str, object, int]] = []
    for what in vary:
        if what == "seed":
            made += [(f"seed {seed + k}", fabric, seed + k) for k in (1, 2, 3)]
        elif what == "mtu":
            made += [(f"mtu {m}", replace(fabric, mtu=m) if "mtu" in has else fabric, seed) for m in (1500, 4000, 9000)]
        elif what == "ties":
            for order in ("lifo", "random"):
                made.append((f"ties {order}", replace(fabric, ties=order) if "ties" in has else fabric, seed))
        elif what == "rto":
            least = fabric.settings.rto_min if "rto" in has else 0
            for times, name in ((10, "rto x 10"), (0.1, "rto / 10")):
                made.append((name, replace(fabric, rto=int(least * times)) if "rto" in has else fabric, seed))
        else:
            raise BadInput(f"vary must be some of seed, mtu, ties, rto, not {what!r}")
    return made


def conclusions(study, vary: list[str], metrics: list[str], workers: int = 1) -> list[dict]:
    """A row per workload, metric, fabric and variation: the ratio to the first fabric, and how far that moved, in %."""
    from weft.study import Study

    if len(study.fabrics) < 2:
        raise BadInput(f"a comparison must have at least 2 fabrics, not {len(study.fabrics)}")
    seed = study.seeds[0]
    rounds = [("as it is", study.fabrics, seed)]
    columns = [variants(fabric, seed, vary) for fabric in study.fabrics]
    rounds += [(same[0][0], [v[1] for v in same], same[0][2]) for same in zip(*columns, strict=True)]
    table: list[dict] = []
    first: dict[tuple, float | None] = {}
    for name, fabrics, draw in rounds:
        for workload in study.workloads:
            runs = Study(fabrics=fabrics, workloads=[workload], seeds=[draw], until=study.until).run(workers=workers)
            for metric in metrics:
                values = [row.get(keys.find(runs.rows, metric)) for row in runs.rows]
                for fabric, value in zip(study.fabrics[1:], values[1:], strict=True):
                    ratio = value / values[0] if value is not None and values[0] else None
                    key = (str(workload), metric, str(fabric))
                    base = first.setdefault(key, ratio)
                    moved = None if ratio is None or not base else 100 * (ratio / base - 1)
                    flips = bool(ratio and base and (ratio > 1) != (base > 1))
                    table.append(
                        {
                            "workload": study.workload_called[workload],
                            "metric": metric,
                            "fabric": study.called[fabric],
                            "against": study.called[study.fabrics[0]],
                            "varied": name,
                            "ratio": ratio,
                            "moved_percent": moved,
                            "flips": flips,
                        }
                    )
    return table


def conclusions_text(table: list[dict]) -> str:
    """A block per workload and pair of fabrics, a line per metric: the ratio as it is, and how far it moves."""
    blocks: dict[tuple, dict] = {}
    for line in table:
        block = blocks.setdefault((line["workload"], line["fabric"], line["against"]), {})
        block.setdefault(line["metric"], {}).setdefault(line["varied"].split()[0], []).append(line)
    out = []
    for (workload, fabric, against), metrics in blocks.items():
        head = ["ratio of", "as it is", *(what for what in next(iter(metrics.values())) if what != "as")]
        rows = [head] + [[metric, *(_span(lines) for lines in kinds.values())] for metric, kinds in metrics.items()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        out.append("\n".join([f"{fabric} / {against}, {workload}", *lines]))
    return "\n\n".join(out) + "\n\n* reaches the other side of 1: that conclusion is not the transport's alone"


def _span(lines) -> str:
    """The least and the greatest ratio of these variations, starred where one of them turns the conclusion round."""
    ratios = [line["ratio"] for line in lines if line["ratio"] is not None]
    if not ratios:
        return "-"
    star = "*" if any(line["flips"] for line in lines) else ""
    low, high = f"{min(ratios):.3f}", f"{max(ratios):.3f}"
    return (low if low == high else f"{low} to {high}") + star
