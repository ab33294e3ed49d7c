"""`weft stress STUDY --vary seed,mtu,ties,rto`: how far do the conclusions of a comparison move?"""

from dataclasses import dataclass

from cyclopts import App

from weft.cli.flags import described
from weft.cli.options import print_json
from weft.report.stress import METRICS, conclusions, conclusions_text
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class Stress:
    """Rerun a comparison with one thing varied at a time, and print how far each conclusion moves."""

    study: str = param(help="the study, a TOML file", positional=True, metavar="FILE")
    vary: str = param("seed,mtu,ties,rto", "what to vary, one at a time", metavar="LIST")
    metrics: str = param(METRICS, "keys of the result to compare", metavar="LIST")
    workers: int = param(1, "processes at a time")


def make(tokens) -> App:
    """The command."""
    app = App(name="stress", help_format="markdown")
    app.default(described(_print, "stress", running=Stress))
    return app


def _print(running: Stress, json: bool) -> None:
    from weft.study import Study

    table = conclusions(Study.load(running.study), running.vary.split(","), running.metrics.split(","), running.workers)
    if json:
        print_json(table)
    else:
        print(conclusions_text(table))
