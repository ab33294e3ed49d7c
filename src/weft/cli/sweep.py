"""`weft sweep STUDY.toml`: run what is missing of a study, then print its table and draw its pictures."""

import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.options import RUNNING, Output, print_json, quantity, say
from weft.cli.progress import COMPILING, NEXT
from weft.files import inside, replaced
from weft.units import parse_size

app = App(name="sweep", help_format="markdown")
OUTPUT = Output()
WAITING = "waiting for workers, or for a kernel that one of them compiles"


def _about(help, **more):
    return Parameter(help=help, group=RUNNING, **more)


@app.default
def sweep(
    study: Annotated[str, Parameter(help="the study, a TOML file", metavar="FILE")],
    *,
    output: Annotated[
        str | None, _about("folder that keeps the runs, unless none is to be", name=("--output", "-o"), metavar="DIR")
    ] = None,
    workers: Annotated[str, _about("processes at a time", metavar="INT")] = "1",
    on: Annotated[
        str | None,
        _about(
            "on a cluster, a Dask scheduler at tcp://HOST:PORT or local:N for N processes, or on this machine's gpu",
            metavar="WHERE",
        ),
    ] = None,
    seeds: Annotated[str | None, _about("other seeds than the file's, as in 1,2,3", metavar="LIST")] = None,
    plot: Annotated[str | None, _about("draw y against x into this svg, pdf or png", metavar="FILE")] = None,
    x: Annotated[str, _about("column of the horizontal axis", metavar="COLUMN")] = "load",
    y: Annotated[str, _about("column of the vertical axis, such as fct.short.p99", metavar="COLUMN")] = "fct.p99",
    by: Annotated[str | None, _about("a line for each value of this column", metavar="COLUMN")] = None,
    columns: Annotated[str | None, _about("columns of the table, as in load,fct.short.p99", metavar="LIST")] = None,
    memory: Annotated[
        str | None, _about("memory all workers together may need; with --on, each", metavar="SIZE")
    ] = None,
    common: Annotated[Output, Parameter(name="*")] = OUTPUT,
) -> int:
    """Run what is missing of a study, many runs described in a TOML file.

    Stop it and start it again: with `-o` the runs that are done are kept, and only what is missing is run.
    """
    from weft.cli.run import check_picture
    from weft.foresight import check
    from weft.study import Study

    todo = Study.load(study)
    chosen = columns.split(",") if columns else []
    drawn = [{"x": x, "y": y, "by": by}] if plot is not None else []
    if plot is not None:
        check_picture(plot)
    check(todo, chosen, drawn)
    if seeds is not None:
        todo = replace(todo, seeds=[options.seed(text) for text in seeds.split(",")])
    processes = options.whole("workers", workers)
    allowed = None if memory is None else quantity("memory", parse_size, memory)
    idle = WAITING if on not in (None, "gpu") else COMPILING
    with watching(idle, quiet=common.quiet, json=common.json) as progress:
        try:
            runs = todo.run(output, workers=processes, on=on, memory=allowed, progress=progress)
        except KeyboardInterrupt:
            kept = f"; the same command goes on from what {output} holds" if output else ""
            raise KeyboardInterrupt(f"interrupted{kept}") from None
    if output is not None:
        with replaced(Path(output) / "table.csv", own=True) as fresh:
            fresh.write_text(runs.csv(), encoding="utf-8")
    if common.json:
        print_json({"title": todo.title, "runs": runs.rows, "warnings": todo.warnings, "notes": runs.notes})
    else:
        _print(runs, chosen)
        if output is not None:
            say(f"runs and table.csv in {output}")
    for path in _draw(runs, output, plot, x, y, by):
        if not common.json:
            say(f"drawn in {path}, its numbers in {path.with_suffix('.csv')}")
    return 0


def _print(runs, columns):
    console = options.console()
    if runs.study.title:
        console.print(runs.study.title, style="bold")
    console.print(runs.table(columns or None))
    for note in runs.notes:
        console.print(f"note: {note}", style="yellow")
    for warning in runs.study.warnings:
        console.print(f"note: {warning}; [links] gives all fabrics the same", style="yellow")


def _draw(runs, output, plot, x, y, by):
    """Draw what the file and the flags ask for; yields each picture's path."""
    if output is not None:
        for picture in runs.study.pictures:
            drawing = {key: value for key, value in picture.items() if key != "file"}
            yield runs.draw(**drawing).save(inside(output, picture["file"]), own=True)
    if plot is not None:
        yield runs.plot(x=x, y=y, by=by).save(plot)


@contextmanager
def watching(idle, *, quiet, json):
    """Yield what `Study.run` takes as `progress`: a bar on a terminal, elsewhere a line now and then.

    idle: what it waits for while no run has begun.
    """
    terminal = sys.stderr.isatty()
    if quiet or (json and not terminal):
        yield None
    elif terminal:
        with _bar(idle) as look:
            yield look
    else:
        yield _lines(idle)


def _facts(shares, found, idle) -> str:
    done, under_way = sum(share >= 1 for share in shares), sum(0 < share < 1 for share in shares)
    failed = sum(share < 0 for share in shares)
    parts = [f"{done} of {len(shares)} runs"]
    if found:
        parts.append(f"{found} found on disk")
    if failed:
        parts.append(f"{failed} failed")
    if not under_way and done == found and done + failed < len(shares):
        parts.append(idle)
    elif under_way:
        parts.append(f"{under_way} under way")
    return ", ".join(parts)


@contextmanager
def _bar(idle):
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        BarColumn(bar_width=32), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8) as progress:
        task = progress.add_task("", total=None, facts="")

        def look(shares, found):
            to_do = sum(map(abs, shares)) - found  # what failed is over too
            progress.update(
                task, total=max(len(shares) - found, 1e-9), completed=to_do, facts=_facts(shares, found, idle)
            )

        yield look


def _lines(idle):
    due = [monotonic()]

    def look(shares, found):
        if monotonic() >= due[0]:
            due[0] = monotonic() + NEXT
            say(_facts(shares, found, idle))

    return look
