"""`weft workloads`: what there is, and the parameters of one."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli.listing import print_all

app = App(name="workloads", help_format="markdown")


@app.default
def workloads(
    name: Annotated[str | None, Parameter(help="show the parameters of this one", metavar="NAME")] = None,
    *,
    json: Annotated[bool, Parameter(negative="", show_default=False, help="print JSON")] = False,
) -> int:
    """List the workloads, or the parameters of one."""
    from weft import catalogue

    return print_all(catalogue.every_workload(), name, "workload", json)
