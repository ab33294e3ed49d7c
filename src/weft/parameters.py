"""The parameters of fabrics and workloads: what a field of a description is called, and how it is read from text.

The command line and study files read the same fields with the same words: `guard: Time = param(2750, "dark time …")`
is `--guard 2750ps` at the prompt and `guard = "2750ps"` in a study.
"""

from dataclasses import MISSING, dataclass, fields
from decimal import Decimal, InvalidOperation
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from weft.errors import BadInput, BadQuantity
from weft.units import parse_rate, parse_size, parse_time, show_rate, show_size, show_time

REQUIRED = MISSING
_QUANTITIES = {"time": (parse_time, show_time), "rate": (parse_rate, show_rate), "size": (parse_size, show_size)}
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Parameter:
    """One field of a description."""

    name: str
    kind: str  # time, rate, size, int, float, bool or str
    choices: tuple  # what it may be, if that is a short list
    optional: bool  # whether it may be None
    default: Any  # or REQUIRED
    help: str
    also: str = ""  # another name that it answers to

    def read(self, value):
        """The value that `value` stands for, a text or what TOML and JSON make of one."""
        if value is None or (self.optional and isinstance(value, str) and value.lower() == "none"):
            return None
        try:
            found = _READ[self.kind](self.name, value)
        except BadQuantity as error:
            raise BadQuantity(f"{self.name}: {error}") from None
        if isinstance(found, int) and not -(2**63) <= found < 2**63:
            raise BadInput(f"{self.name} must fit 63 bits, not {found:.6e}")
        if self.choices and found not in self.choices:
            raise BadInput(f"{self.name} must be one of {', '.join(self.choices)}, not {found!r}")
        return found

    def show(self, value) -> str:
        """`value` as a user would type it: `2750ps`, `100Gbps`; exactly what `read` reads back."""
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.kind in _QUANTITIES:
            parse, show = _QUANTITIES[self.kind]
            short = show(value).replace(" ", "")
            return short if parse(short) == value else str(value)
        return str(value)

    @property
    def shown_default(self) -> str | None:
        """The default as a user would type it; None where there is none to speak of."""
        return None if self.default is REQUIRED or self.default is None else self.show(self.default)


def parameters(cls) -> list[Parameter]:
    """The fields that a call of `cls` takes, in order."""
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in fields(cls):
        if not field.init:
            continue
        kind, choices, optional = _kind(hints[field.name])
        about = field.metadata
        found.append(
            Parameter(field.name, kind, choices, optional, field.default, about.get("help", ""), about.get("also", ""))
        )
    return found


def build(cls, given: dict):
    """A `cls` from texts or plain values by name; what is missing or unknown is said in a sentence."""
    known = {parameter.name: parameter for parameter in parameters(cls)}
    for parameter in known.values():
        if parameter.also and parameter.also in given:
            if parameter.name in given:
                raise BadInput(f"{parameter.name} must be given once, not as {parameter.also} too")
            given = {parameter.name if name == parameter.also else name: value for name, value in given.items()}
    for name in given:
        if name not in known:
            raise BadInput(f"a parameter of {cls.__name__} must be one of {', '.join(known)}, not {name!r}")
    for parameter in known.values():
        if parameter.default is REQUIRED and given.get(parameter.name) is None:
            raise BadInput(f"{parameter.name} must be given: {parameter.help}")
    return cls(**{name: known[name].read(value) for name, value in given.items()})


def _kind(hint) -> tuple[str, tuple, bool]:
    """(kind, choices, whether None is one of them) of an annotation."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        quantity = next((mark for mark in marks if mark in _QUANTITIES), None)
        return (quantity, (), False) if quantity else _kind(inner)
    if get_origin(hint) in (Union, UnionType):
        rest = [item for item in get_args(hint) if item is not type(None)]
        kind, choices, _ = _kind(rest[0])
        return kind, choices, len(rest) < len(get_args(hint))
    if get_origin(hint) is Literal:
        return "str", get_args(hint), False
    return (hint.__name__ if hint in (int, float, bool) else "str"), (), False


def _int(name, value):
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadInput(f"{name} must be a whole number, not {value!r}")
    try:
        exact = Decimal(str(value).replace("_", "").replace(",", ""))
        whole = int(exact) if exact.is_finite() and exact.adjusted() < 40 else None
    except InvalidOperation:
        whole = None
    if whole is None or whole != exact:
        raise BadInput(f"{name} must be a whole number, not {_bare(value)}")
    return whole


def _float(name, value):
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{name} must be a number, not {_bare(value)}") from None


def _bool(name, value):
    if isinstance(value, bool):
        return value
    if str(value).lower() in _YES + _NO:
        return str(value).lower() in _YES
    raise BadInput(f"{name} must be true or false, not {_bare(value)}")


def _str(name, value):
    if not isinstance(value, str | int | float):
        raise BadInput(f"{name} must be a text, not {value!r}")
    return str(value)


def _bare(value):
    return repr(value) if isinstance(value, str) else str(value)


_READ = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    **{kind: (lambda name, value, parse=parse: parse(value)) for kind, (parse, _) in _QUANTITIES.items()},
}
