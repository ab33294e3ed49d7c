"""`weft fabrics`: what there is, and the parameters of one."""

from typing import Annotated

from cyclopts import App, Parameter

from weft.cli.listing import print_all

app = App(name="fabrics", help_format="markdown")


@app.default
def fabrics(
    name: Annotated[str | None, Parameter(help="show the parameters of this one", metavar="NAME")] = None,
    *,
    json: Annotated[bool, Parameter(negative="", show_default=False, help="print JSON")] = False,
) -> int:
    """List the fabrics, or the parameters of one."""
    from weft import catalogue
    from weft.cli.options import say
    from weft.errors import Unusable

    known = {}
    for word in dict.fromkeys([*catalogue.fabrics(), *([name] if name and ":" in name else [])]):
        try:
            known[word] = catalogue.fabric_class(word)
        except Unusable as problem:
            if word == name:
                raise
            say(f"weft fabrics: {problem}")
    return print_all(known, name, "fabric", json)
