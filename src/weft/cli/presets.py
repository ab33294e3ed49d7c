"""`weft presets`: the parameter sets that `--transport` takes by name, with their sources."""

from dataclasses import dataclass

from cyclopts import App

from weft.cli.flags import described
from weft.cli.options import print_json
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class Presets:
    """List the presets and what they change, or every value of one of them."""

    name: str = param(
        "", "a preset, such as ndp@shoal-nsdi19; all of them if left out", positional=True, metavar="NAME"
    )


def make(tokens) -> App:
    """The command."""
    app = App(name="presets", help_format="markdown")
    app.default(described(_print, "presets", which=Presets))
    return app


def _print(which: Presets, json: bool) -> None:
    from weft.fabrics.network.settings import Settings, origins, presets, settings
    from weft.parameters import parameters
    from weft.report.presets import preset_text, presets_text

    if not which.name:
        if json:
            print_json(presets())
        else:
            print(presets_text(presets()))
        return
    chosen, origin = settings(which.name), origins(which.name)
    if json:
        print_json({**{one.name: getattr(chosen, one.name) for one in parameters(Settings)}, "from": origin})
    else:
        print(preset_text(which.name, chosen, origin))
