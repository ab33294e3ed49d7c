"""What the table and the pictures of a study will hold, known before the first run: columns that no run will have, or
that could be several, are refused then and not after an hour."""

from functools import cache

from weft.metrics.provenance import describe
from weft.metrics.result import Result, flatten
from weft.metrics.schema import COMMON
from weft.report import keys, series
from weft.workload.flows import Flows


def check(study, columns=(), pictures=()) -> None:
    """Raise a sentence if a column, or what a picture is drawn of, is none that the runs will have."""
    if not columns and not pictures:
        return
    rows = _rows(study)
    for name in columns:
        keys.find(rows, name)
    for options in pictures:
        _check_picture(study, rows, **options)


def _check_picture(study, rows, *, draw="plot", only="", show=None, **options):
    from weft.study import OVER_TIME, chosen

    drawn = {name: options[name] for name in ("x", "y", "by") if name in options}
    if draw == "plot":
        keys.axes(rows, **drawn)
    elif draw == "fct_and_goodput":
        keys.axes(rows, **{"x": "load", "by": "fabric", **drawn}, y="fct_us.short.p99")
    elif draw in OVER_TIME:
        fabrics = [study.points[k].fabric for k in chosen(rows, only).values()]
        series.check(fabrics, show if draw == "series" else draw)


def _rows(study) -> list[dict]:
    """A row for each run with the keys that it will have; numbers that are not known yet are None."""
    seen: dict[tuple, dict] = {}
    rows = []
    for point in study.points:
        kind = point.fabric, type(point.workload)
        if kind not in seen:
            seen[kind] = _before(point)
        said = {"fabric": describe(point.fabric), "workload": describe(point.workload), "seed": point.seed}
        rows.append({**study.name_row(point), **seen[kind], **flatten(said)})
    return rows


@cache
def _common() -> dict:
    return dict.fromkeys(_names("", COMMON))


def _names(prefix, schema):
    for name, kind in schema.items():
        if isinstance(name, str) and isinstance(kind, dict):
            yield from _names(f"{prefix}{name}.", kind)
        elif isinstance(name, str):
            yield f"{prefix}{name}"


def _before(point) -> dict:
    """Keys of a result of this fabric and workload, from a run of which nothing has happened yet."""
    fabric, workload = point.fabric, point.workload
    if issubclass(workload.draws, Flows):
        demand = Flows.of(nodes=fabric.nodes, src=[0], dst=[1], size=[1], start=[0])
    else:
        demand = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=point.seed)
    run = fabric.prepare(demand, seed=point.seed)
    summary = Result.collect(fabric, workload, demand, run.observe(), seed=point.seed).summary()
    known = flatten({name: value for name, value in summary.items() if name not in ("fabric", "workload", "seed")})
    return {**_common(), **{key: None if not isinstance(value, list) else value for key, value in known.items()}}
