"""`weft compare A B C`: several fabrics side by side, as ratios to the first."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.options import RUNNING, Output, print_json, quantity, say
from weft.cli.progress import COMPILING
from weft.cli.sweep import watching
from weft.units import parse_size, parse_time

app = App(name="compare", help_format="markdown")
OUTPUT = Output()


def _about(help, **more):
    return Parameter(help=help, group=RUNNING, **more)


@app.default
def compare(
    *things: Annotated[str, Parameter(help="result folders, folders of studies, or study files", metavar="DIR")],
    metrics: Annotated[str | None, _about("keys of the result, as in fct.p99,goodput", metavar="LIST")] = None,
    names: Annotated[str | None, _about("names of the entries, in order, as in Shoal,NDP", metavar="LIST")] = None,
    warmup: Annotated[str, _about("leave out flows that start before this time", metavar="TIME")] = "0ps",
    bound: Annotated[bool, _about("run an ideal switch with the same links beside them", negative="")] = False,
    plot: Annotated[str | None, _about("draw the CDFs of completion times into this file", metavar="FILE")] = None,
    smaller_than: Annotated[str | None, _about("of flows up to this size", metavar="SIZE")] = None,
    larger_than: Annotated[str | None, _about("of flows from this size", metavar="SIZE")] = None,
    tail: Annotated[bool, _about("draw the share that takes longer, on a logarithmic axis", negative="")] = False,
    output: Annotated[
        str | None, _about("folder that keeps the runs of study files", name=("--output", "-o"), metavar="DIR")
    ] = None,
    workers: Annotated[str, _about("processes at a time", metavar="INT")] = "1",
    common: Annotated[Output, Parameter(name="*")] = OUTPUT,
) -> int:
    """Compare fabrics: the same metrics side by side, as ratios to the first, with intervals over seeds.

    Runs that differ only in their seed are one entry. What is not alike besides the fabric (links, flows, code) is said
    under the table.
    """
    from weft.cli.run import check_picture
    from weft.comparison import compare as side_by_side

    if plot is not None:
        check_picture(plot)
    sizes = {
        name: quantity(name, parse_size, text)
        for name, text in (("smaller_than", smaller_than), ("larger_than", larger_than))
        if text is not None
    }
    with watching(COMPILING, quiet=common.quiet, json=common.json) as progress:
        found = side_by_side(
            *things, metrics=metrics and metrics.split(","), names=names and names.split(","), bound=bound,
            warmup=quantity("warmup", parse_time, warmup), workers=options.whole("workers", workers), folder=output,
            progress=progress,
        )  # fmt: skip
    if common.json:
        print_json(found.data())
    else:
        console = options.console()
        console.print(found.table())
        for line in found.legend():
            console.print(line, style="dim")
        for warning in found.warnings:
            console.print(f"note: {warning}", style="yellow")
    if plot is not None:
        path = found.plot(**sizes, tail=tail).save(plot)
        if not common.json:
            say(f"drawn in {path}, its numbers in {path.with_suffix('.csv')}")
    return 0
