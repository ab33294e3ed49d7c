"""`weft presets`: the parameter sets that `--transport` takes by name, with their sources."""

import json as json_
from dataclasses import MISSING, fields
from typing import Annotated

from cyclopts import App, Parameter

app = App(name="presets", help="List the presets of packet networks' transports.")


@app.default
def presets(
    name: Annotated[str, Parameter(help="A preset, such as ndp@shoal-nsdi19; all of them if left out.")] = "",
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False,
):
    """List the presets and what they change, or every value of one of them."""
    from weft.fabrics.packet.settings import Settings, origins, settings
    from weft.fabrics.packet.settings import presets as named

    if name:
        chosen = settings(name)
        values, where = {field.name: getattr(chosen, field.name) for field in fields(Settings)}, origins(name)
        if json:
            print(json_.dumps({**values, "from": where}, indent=1))
            return
        print(f"{name}: {chosen.source}\n")
        for key, origin in where.items():
            print(f"{key:15} {_shown(key, values[key]):>10}  {origin}")
        return
    if json:
        print(json_.dumps(named(), indent=1))
        return
    for preset, values in named().items():
        about = ("transport", "source", "from")
        changed = ", ".join(f"{key} {value}" for key, value in values.items() if key not in about)
        print(f"{preset}\n    {changed or 'defaults'}\n    {values['source']}")


def _shown(key, value):
    """A value as a user would write it."""
    from weft.fabrics.packet.settings import Settings
    from weft.units import show_rate, show_size, show_time

    kind = next(field.type for field in fields(Settings) if field.name == key)
    show = {"time": show_time, "rate": show_rate, "size": show_size}.get(getattr(kind, "__metadata__", ("",))[0], str)
    return show(value).replace(" ", "") if value is not MISSING else ""
