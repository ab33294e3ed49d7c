"""`weft figure PAPER/FIGURE`: one figure of one paper, ours beside theirs."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.options import RUNNING, Output, print_json, say
from weft.cli.progress import COMPILING
from weft.cli.sweep import watching
from weft.errors import require

app = App(name="figure", help_format="markdown")
OUTPUT = Output()


def _about(help, **more):
    return Parameter(help=help, group=RUNNING, **more)


@app.default
def figure(
    name: Annotated[
        str, Parameter(help="the figure, such as shoal/12; all are listed if left out", metavar="FIGURE")
    ] = "",
    *,
    scale: Annotated[
        str, _about("small, for a minute on a laptop, or paper, for the real thing", metavar="SCALE")
    ] = "small",
    output: Annotated[
        str | None, _about("folder for the picture, its csv and the runs", name=("--output", "-o"), metavar="DIR")
    ] = None,
    seeds: Annotated[
        str | None, _about("other seeds than the figure's, as in 1,2,3: each is judged apart", metavar="LIST")
    ] = None,
    workers: Annotated[str, _about("processes at a time", metavar="INT")] = "1",
    on: Annotated[
        str | None, _about("run on a cluster, or on the gpu of this machine, as weft sweep does", metavar="WHERE")
    ] = None,
    common: Annotated[Output, Parameter(name="*")] = OUTPUT,
) -> int:
    """One figure of one paper, ours beside theirs.

    Every claim that the paper draws from the figure gets a verdict: reproduced, consistent (on a smaller rack, or under
    a choice that the paper leaves open), differs, not resolved (the seeds do not agree), printed (nothing of it is
    ours), fitted (a value was set by the numbers it is held against), or not run. With `-o` the runs are kept, and only
    what is missing is run. With `--seeds` the table prints means over them and half of their 95 % interval, and a claim
    has a verdict if all of them give it. Exits with 1 if a claim differs.
    """
    from weft import papers

    processes = options.whole("workers", workers)
    require(1 <= processes <= 1024, "workers", "from 1 to 1024", processes)
    papers.at_paper_scale(scale)
    drawn = None if seeds is None else tuple(dict.fromkeys(options.seed(text) for text in seeds.split(",")))
    if not name:
        return _list(common.json)
    module = papers.figure(name)
    with watching(COMPILING, quiet=common.quiet, json=common.json) as progress:
        try:
            answer = papers.answer(name, scale, output, seeds=drawn, workers=processes, on=on, progress=progress)
        except KeyboardInterrupt:
            kept = f"; the same command goes on from what {output} holds" if output else ""
            raise KeyboardInterrupt(f"interrupted{kept}") from None
    if common.json:
        print_json(answer.data())
    else:
        _print(answer, module)
    if output is None:
        if not common.json:
            say("nothing drawn: with -o DIR the picture and its numbers are put there")
    else:
        picture = module.draw(answer.table).save(Path(output) / f"{name.replace('/', '-')}-{scale}.svg")
        if not common.json:
            say(f"drawn in {picture}, its numbers in {picture.with_suffix('.csv')}")
    return int(any(claim["verdict"] == "differs" for claim in answer.claims))


def _list(json):
    """Every figure and what it shows."""
    from weft import papers

    known = {name: papers.figure(name).__doc__.split("\n\n")[0].replace("\n", " ") for name in papers.MODULES}
    if json:
        print_json({"figures": [{"figure": name, "about": about} for name, about in known.items()]})
    else:
        for name, about in known.items():
            print(f"{name:16} {about}")
    return 0


def _print(answer, module):
    """The table, then a line or two per claim."""
    from weft.report.tables import number

    rows = [
        [_cell(row.get(column), off.get(column), number) for column in module.COLUMNS]
        for row, off in zip(answer.table, answer.spread, strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(module.COLUMNS, *rows, strict=True)]
    print(module.__doc__.split("\n\n")[0] + "\n")
    for cells in (module.COLUMNS, *rows):
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
    for claim in answer.claims:
        print(f"\n{claim['verdict']}  [{claim['id']}] {claim['printed']}\n    ours: {claim['ours']}")


def _cell(value, off, number):
    """A value, and half of its interval if there is one."""
    return number(value) if off is None else f"{number(value)} ± {_to_its_digits(number(value), number(off), off)}"


def _to_its_digits(text, whole, off) -> str:
    """An interval to no more decimals than the number that it belongs to has: more would say what that does not."""
    decimals = len(text.partition(".")[2])
    if "e" in text or ("e" not in whole and len(whole.partition(".")[2]) <= decimals):
        return whole
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if off < least / 2 else f"{off:,.{decimals}f}"
