"""`weft show DIR`: print results that were saved, and draw them."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.options import Output, print_json, say

app = App(name="show", help_format="markdown")
OUTPUT = Output()
FULLEST = 20  # queues that are printed


@app.default
def show(
    *folders: Annotated[str, Parameter(help="result folders", metavar="DIR")],
    series: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            help="a time series: throughput, use, busy, live, waiting, finished or lost; or a map with a "
            "row each: heat, of destinations' links, links, of all, or queues",
        ),
    ] = None,
    plot: Annotated[
        str | None, Parameter(metavar="FILE", help="draw the completion times, or the series, into this file")
    ] = None,
    follow: Annotated[
        str | None,
        Parameter(metavar="FLOW", help="tell what each cell or packet of a flow did, as in 'flow 17'"),
    ] = None,
    common: Annotated[Output, Parameter(name="*")] = OUTPUT,
) -> int:
    """Print results that were saved: one as a table of its own, several as a line each."""
    from weft.cli.run import check_picture
    from weft.errors import BadInput, require
    from weft.metrics import Result
    from weft.report.series import KINDS, MAPS, PANELS

    if not folders:
        raise BadInput("a result folder must be given, as in weft show runs/one")
    if plot is not None:
        check_picture(plot)
    require(series is None or series in (*KINDS, *MAPS), "series", f"one of {', '.join((*KINDS, *MAPS))}", series)
    require(series not in MAPS or len(folders) <= PANELS, "a map", f"of 1 to {PANELS} results", len(folders))
    results = dict(zip(_names(folders), map(Result.load, folders), strict=True))
    if follow is not None:
        require(len(results) == 1, "a flow that is followed", "of one result", len(results))
        _print_steps(next(iter(results.values())), follow, common.json)
    elif series in MAPS:
        _print_maps(results, series, common.json)
    elif series is not None:
        _print_series(results, series, common.json)
    elif len(results) == 1:
        options.print_result(next(iter(results.values())), common.json)
    else:
        _print_all(results, common.json)
    if plot is not None:
        path = _draw(results, series).save(plot)
        if not common.json:
            say(f"drawn in {path}, its numbers in {path.with_suffix('.csv')}")
    return 0


def _names(folders):
    """The last part of each folder's path, or all of it where two have the same."""
    from pathlib import Path

    short = [Path(folder).name or folder for folder in folders]
    return short if len(set(short)) == len(short) else list(folders)


def _print_steps(result, text, json):
    from weft.cli.run import print_steps, told_steps

    if json:
        print_json({"steps": told_steps(result, text)})
    else:
        print_steps(result, text)


def _print_all(results, json):
    from weft.report.tables import runs_table, usual

    named = zip(results.items(), _called(list(results.values())), strict=True)
    rows = [{"folder": name, **said, **result.row()} for (name, result), said in named]
    if json:
        print_json({"runs": rows})
    else:
        options.console().print(runs_table(rows, ["folder", *usual(rows)]))


def _called(results):
    """What a table calls the fabric and the workload of each: their kind, and what sets them apart from the others."""
    from weft.catalogue import rebuild_call
    from weft.errors import WeftError
    from weft.report.names import tell_apart

    try:
        calls = [rebuild_call(result.provenance)[:2] for result in results]
    except WeftError:  # one is of a fabric that is not installed here
        return [{"fabric.name": one.fabric["kind"], "workload.name": one.workload["kind"]} for one in results]
    fabrics, workloads = (list(dict.fromkeys(call[k] for call in calls)) for k in (0, 1))
    names = dict(zip([*fabrics, *workloads], [*tell_apart(fabrics), *tell_apart(workloads)], strict=True))
    return [{"fabric.name": names[fabric], "workload.name": names[workload]} for fabric, workload in calls]


def _print_series(results, kind, json):
    from weft.report.series import curve
    from weft.report.tables import number
    from weft.units import us

    found = {name: curve(result, kind) for name, result in results.items()}
    if json:
        told = {name: {"time_us": (one.time / us).tolist(), kind: one.mean.tolist()} for name, one in found.items()}
        print_json({"series": told}, dense=True)
        return
    for name, one in found.items():
        step = max(len(one.time) // 20, 1)
        print(f"{name}: {kind} at simulated time (us)")
        for k in range(0, len(one.time), step):
            print(f"{number(one.time[k] / us):>12}  {number(float(one.mean[k]))}")


def _print_maps(results, kind, json):
    """Print the fullest queues, or the busiest links; or every row as JSON, under the names of results if several."""
    from weft.report.series import heat_table, link_table, queue_table
    from weft.units import us

    table = {"heat": heat_table, "links": link_table, "queues": queue_table}[kind]
    found = {name: table(result) for name, result in results.items()}
    if json:
        told = {
            name: {
                **({"unit": results[name].observation.unit} if kind == "queues" else {}),
                "time_us": (time / us).tolist(),
                kind: dict(zip(names, each.T.tolist(), strict=True)),
            }
            for name, (time, names, each) in found.items()
        }
        print_json({"results": told} if len(told) > 1 else next(iter(told.values())), dense=True)
        return
    for name, rows in found.items():
        if len(found) > 1:
            print(f"{name}:")
        _print_queues(results[name].observation.unit, *rows) if kind == "queues" else _print_links(kind, *rows)


def _print_queues(unit, time, names, each):
    from weft.report.tables import number

    title = f"{unit} in the {min(FULLEST, len(names))} fullest of {len(names)} queues, at {len(time)} moments"
    for name, most, mean, when in _first(title, time, names, each, lambda most, mean: (-most, -mean)):
        print(f"{most:>10,} at most, at {when} us  {number(float(mean)):>8} mean  {name}")


def _print_links(kind, time, names, each):
    what, what_of = "share of the time in which", "links send"
    if kind == "heat":
        what, what_of, names = "share of the link used, of", "destinations", [f"node {name}" for name in names]
    title = f"{what} the {min(FULLEST, len(names))} busiest of {len(names)} {what_of}, over {len(each)} intervals"
    for name, most, mean, when in _first(title, time, names, each, lambda most, mean: (-mean, -most)):
        print(f"{mean:>8.3f} mean  {most:>6.3f} at most, from {when} us  {name}")


def _first(title, time, names, each, order):
    """Print a title; (name, most, mean, when it was most) of the first rows in an order by most and mean."""
    from weft.report.tables import number
    from weft.units import us

    print(title)
    most, mean = each.max(axis=0), each.mean(axis=0)
    for k in sorted(range(len(names)), key=lambda k: (*order(most[k], mean[k]), k))[:FULLEST]:
        yield names[k], most[k], mean[k], number(float(time[each[:, k].argmax()]) / us)


def _draw(results, series):
    from weft.report import plots
    from weft.report import series as drawn

    named = results if len(results) > 1 else next(iter(results.values()))
    if series is None:
        for name, result in results.items():
            if not len(result.flows):
                from weft.errors import WeftError

                raise WeftError(f"completion times can be drawn of flows only, not of the cells of {name}")
        return plots.fct_cdf(named)
    return getattr(drawn, series)(named) if series in drawn.MAPS else drawn.series(named, show=series)
