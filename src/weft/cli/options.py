"""Options that commands share: where results go, how they are printed, and progress."""

import json as jsonlib
import sys
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from weft.errors import BadInput, require
from weft.parameters import Parameter as Field
from weft.units import parse_size, parse_time

RUNNING = Group("Running", sort_key=3)
PRINTING = Group("Printing", sort_key=4)
JSON = "print one JSON object on stdout, and nothing else"


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Options of every command that prints a result."""

    json: Annotated[bool, Parameter(negative="", show_default=False, help=JSON)] = False
    quiet: Annotated[
        bool, Parameter(name=("--quiet", "-q"), negative="", show_default=False, help="show no progress")
    ] = False


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True, kw_only=True)
class Resuming(Output):
    """Options of a single run that has a folder already."""

    plot: Annotated[
        str | None, Parameter(metavar="FILE", help="draw the completion times into this svg, pdf or png")
    ] = None
    memory: Annotated[
        str | None, Parameter(metavar="SIZE", help="memory the run may need; 80 % of the machine's unless given")
    ] = None
    checkpoint_every: Annotated[
        str, Parameter(metavar="SECONDS", help="seconds between checkpoints, kept beside the output folder")
    ] = "60"

    @property
    def memory_bytes(self) -> int | None:
        """What `--memory` says, in bytes."""
        return None if self.memory is None else quantity("memory", parse_size, self.memory)

    @property
    def every(self) -> float:
        """Seconds between checkpoints."""
        seconds = Field("checkpoint_every", "float").read(self.checkpoint_every)
        require(seconds > 0, "checkpoint_every", "above 0 seconds", seconds)
        return seconds


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True, kw_only=True)
class Running(Resuming):
    """Options of a single run, whatever is run."""

    output: Annotated[
        str | None, Parameter(name=("--output", "-o"), metavar="DIR", help="save the result in this folder")
    ] = None
    follow: Annotated[
        str | None,
        Parameter(metavar="FLOW", help="tell what each cell or packet of a flow did, as in 'flow 17'"),
    ] = None


def whole(name, text) -> int:
    """The whole number that the flag `name` was given."""
    return Field(name, "int").read(text)


def seed(text) -> int:
    """A seed: any whole number that 63 bits hold."""
    number = whole("seed", text)
    require(0 <= number < 2**63, "seed", "from 0 to 2^63 - 1", number)
    return number


def until(text) -> int | None:
    """What `--until` says, in ps."""
    return None if text is None else quantity("until", parse_time, text)


def quantity(name, parse, text):
    """`parse(text)`, with the flag's name in front of what is wrong with it."""
    try:
        return parse(text)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def say(text: str) -> None:
    """Tell the user something that is not the result."""
    print(text, file=sys.stderr, flush=True)


def json_flag():
    """The `--json` of a command that shows no progress."""
    from weft.cli.flags import keyword

    return keyword(
        "json", Annotated[bool, Parameter(group=PRINTING, negative="", show_default=False, help=JSON)], False
    )


def print_json(data, dense: bool = False) -> None:
    """Print one JSON document; `dense` puts it on one line, for large tables."""
    escaped = (sys.stdout.encoding or "utf-8").lower() not in ("utf-8", "utf8")
    indent = None if dense else 1
    print(jsonlib.dumps(data, indent=indent, allow_nan=False, ensure_ascii=escaped, default=_plain), flush=True)


def _plain(value):
    """What NumPy has, as Python has it."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def print_result(result, json: bool) -> None:
    """Print a result as a table, or its summary as JSON."""
    if json:
        print_json(result.summary())
        return
    from weft.report.tables import run_table

    console().print(run_table(result))


def console():
    """Where tables are printed: as wide as the terminal, and wide enough where there is none."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 120
    made = Console(highlight=False, markup=False, emoji=False, width=width)  # [8, 16] and :a: are what a user wrote
    made.on_broken_pipe = _broken_pipe  # Rich would end the program here
    return made


def _broken_pipe():
    raise BrokenPipeError
