"""`weft show DIR`: print a result that was saved."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli import options
from weft.cli.options import Output
from weft.errors import WeftError

app = App(name="show", help_format="markdown")
OUTPUT = Output()


@app.default
def show(
    folder: Annotated[str, Parameter(help="a result folder", metavar="DIR")],
    *,
    plot: Annotated[str | None, Parameter(metavar="FILE", help="draw the completion times")] = None,
    common: Annotated[Output, Parameter(name="*")] = OUTPUT,
) -> int:
    """Print a result that was saved."""
    from weft.cli.run import check_picture, draw
    from weft.metrics import Result

    if plot is not None:
        check_picture(plot)
    result = Result.load(folder)
    if plot is not None and not len(result.flows):
        raise WeftError("completion times can be drawn of flows only, not of cells made inside a switch")
    options.print_result(result, common.json)
    if plot is not None:
        draw(result, plot, common.json)
    return 0
