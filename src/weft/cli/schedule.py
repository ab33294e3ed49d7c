"""`weft schedule`: who may speak when, for the rack and for each of its switches."""

from dataclasses import dataclass

from cyclopts import App

from weft.cli import COMMANDS, schedule_tdma
from weft.cli.flags import described, group
from weft.cli.options import print_json
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class Printing:
    """What is printed of a schedule."""

    switch: str | None = param(None, "the one switch to print, such as leaf0, spine1 or plane2.leaf3")
    brief: bool = param(False, "leave the tables out")


def make(tokens) -> App:
    """The command."""
    from weft.fabrics.tdma.planning import Planning
    from weft.schedule.rack import RackSchedule

    commands = {
        "shoal": described(_print, "shoal", rack=RackSchedule, tables=Printing),
        "tdma": described(schedule_tdma.show, "tdma", round=Planning),
    }
    return group("schedule", COMMANDS["schedule"], commands)


def _print(rack, tables, json: bool) -> None:
    from weft.report.schedules import schedule_text

    if tables.switch is not None:
        rack.clos.locate(tables.switch)  # an unknown one is refused before the work
    if json:
        print_json({**rack.facts(), **rack.tables(tables.switch)}, dense=True)
    else:
        print(schedule_text(rack, tables.switch, tables.brief))
