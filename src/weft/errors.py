"""What can go wrong, as a tree.

WeftError
├── BadInput (also a ValueError)    something the caller wrote cannot be meant
│   ├── BadQuantity                 '12 parsecs' where a time was wanted
│   ├── BadTrace                    a line of a trace file, named by file, line and field
│   ├── BadStudy                    a study file, named by file and key
│   └── BadPart                     a part or price catalogue
├── TooLarge                        the run would need more memory than it may have
├── MonitorTripped                  a law of the fabric was broken while it ran; the run is void
├── Unusable                        a fabric or workload that is named but cannot be loaded, or what it is built on
├── ScheduleConflict                two circuits want one port in one slot
└── BadResult                       a folder is not a result, or is one that cannot be read

Every message is one sentence: the thing, what it must be, what it was.
The command line prints it after the command's name and exits with 2 (1 for MonitorTripped).
"""

LONGEST = 1500  # characters of a message; what was wrong may be a line of 300 MB


class WeftError(Exception):
    """Whatever weft raises on purpose."""

    def __init__(self, *said):
        super().__init__(*(_cut(one) if isinstance(one, str) else one for one in said))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 300]} … {text[-200:]}"


class BadInput(WeftError, ValueError):
    """Something the caller wrote cannot be meant."""


class BadQuantity(BadInput):
    """A time, rate or size that cannot be read."""


class BadTrace(BadInput):
    """A trace file that cannot be read, named by file, line and field."""


class BadStudy(BadInput):
    """A study file that cannot be run, named by file and key."""


class BadPart(BadInput):
    """A part, price or catalogue that cannot be used."""


class TooLarge(WeftError):
    """The run would need more memory than it may have."""


class MonitorTripped(WeftError):
    """A law of the fabric was broken while it ran."""


class Unusable(WeftError):
    """A fabric or workload that is named but cannot be loaded, or what it is built on."""


class ScheduleConflict(WeftError):
    """Two circuits want one port in one slot."""


class BadResult(WeftError):
    """A folder is not a result, or is one that cannot be read."""


def require(condition, thing: str, must: str, was) -> None:
    """Raise `BadInput` saying that `thing` must be `must`, not `was`, unless `condition` holds."""
    if not condition:
        raise BadInput(f"{thing} must be {must}, not {was!r}")
