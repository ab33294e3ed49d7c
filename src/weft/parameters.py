"""The parameters of descriptions: what a field is called, and how it is read from text.

Commands and study files read their fields here, with the same words: `guard: Time = param(2750, "dark time …")` is
`--guard 2750ps` at the prompt and `guard = "2750ps"` in a study. What `param` may say of a field beside its help:

also        another name that it answers to
positional  at the prompt it stands alone, without `--name` in front
metavar     what `--help` calls its value, where the kind says too little: FILE, LIST
words       texts that stand for values, as `nothing` does for 2047
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, wraps
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from weft.errors import BadInput, BadQuantity
from weft.units import param, parse_rate, parse_size, parse_time, show_rate, show_size, show_time

REQUIRED = MISSING
_QUANTITIES = {"time": (parse_time, show_time), "rate": (parse_rate, show_rate), "size": (parse_size, show_size)}
Hex = Annotated[bytes, "hex"]  # bytes, typed and shown as pairs of hexadecimal digits
Shape = Annotated[tuple[int, ...], "shape"]  # whole numbers, typed and shown as 8x8x8
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Parameter:
    """One field of a description."""

    name: str
    kind: str = "str"  # time, rate, size, int, float, bool, hex or str
    choices: tuple = ()  # what it may be, if that is a short list
    optional: bool = False  # whether it may be None
    default: Any = None  # or REQUIRED
    help: str = ""
    also: str = ""
    many: bool = False  # a tuple of values; at the prompt the flag is repeated
    positional: bool = False
    metavar: str = ""
    words: Mapping[str, Any] = field(default_factory=dict)

    def read(self, value):
        """The value that `value` stands for, a text or what TOML and JSON make of one."""
        if value is None or (self.optional and isinstance(value, str) and value.lower() == "none"):
            return None
        if self.many:
            return tuple(self._one(item) for item in (value if isinstance(value, list | tuple) else [value]))
        return self._one(value)

    def _one(self, value):
        if self.words and isinstance(value, str):
            if value in self.words:
                return self.words[value]
            try:
                return _READ[self.kind](self.name, value)
            except BadInput:
                must = f"{_NAMES.get(self.kind, self.kind)}, {' or '.join(self.words)}"
                raise BadInput(f"{self.name} must be {must}, not {value!r}") from None
        try:
            found = _READ[self.kind](self.name, value)
        except BadQuantity as error:
            raise BadQuantity(f"{self.name}: {error}") from None
        if isinstance(found, int) and not -(2**63) <= found < 2**63:
            raise BadInput(f"{self.name} must fit 63 bits, not {Decimal(found):.6e}")
        if self.choices and found not in self.choices:
            raise BadInput(f"{self.name} must be one of {', '.join(map(str, self.choices))}, not {found!r}")
        return found

    def show(self, value) -> str:
        """`value` as a user would type it: `2750ps`, `100Gbps`; exactly what `read` reads back."""
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.many:
            return ",".join(map(str, value))
        if word := next((word for word, meant in self.words.items() if meant == value), None):
            return word
        if isinstance(value, bytes):
            return value.hex()
        if self.kind == "shape":
            return "x".join(map(str, value))
        if self.kind in _QUANTITIES:
            parse, show = _QUANTITIES[self.kind]
            short = show(value).replace(" ", "")
            return short if parse(short) == value else str(value)
        return str(value)

    @property
    def shown_default(self) -> str | None:
        """The default as a user would type it; None where there is none to speak of."""
        return None if self.default is REQUIRED or self.default in (None, (), b"") else self.show(self.default)


class Described:
    """A description whose times, rates and sizes may be given as texts: `link="100Gbps"` is `link=100 * Gbps`.

    Descriptions derive from it. They are read before their own `__post_init__` looks at them. A parameter may be given
    by its other name, as at the prompt and in a study.
    """

    def __new__(cls, *values, **given):
        _take_others(cls)
        return super().__new__(cls)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        check = cls.__dict__.get("__post_init__")
        if check is not None:

            @wraps(check)
            def checked(self):
                _read_texts(self)
                check(self)

            cls.__post_init__ = checked  # type: ignore[method-assign]

    def __post_init__(self):
        _read_texts(self)


def _read_texts(thing):
    for one in _quantities(type(thing)):
        value = getattr(thing, one.name)
        if isinstance(value, str) or (one.many and any(isinstance(item, str) for item in value)):
            object.__setattr__(thing, one.name, one.read(value))


@cache
def _take_others(cls) -> None:
    """Let calls of `cls` take other names: at the first one, as its `__init__` is made after the class."""
    if _others(cls):
        make = cls.__init__

        @wraps(make)
        def called(self, *values, **given):
            make(self, *values, **_by_name(cls, given))

        cls.__init__ = called


def _by_name(cls, given: dict) -> dict:
    """What was given, each parameter under its own name."""
    for other, name in _others(cls).items():
        if other in given:
            if name in given:
                raise BadInput(f"{name} must be given once, not as {other} too")
            given = {name if key == other else key: value for key, value in given.items()}
    return given


@cache
def _others(cls) -> dict[str, str]:
    """Name by the other name, of the parameters that have one."""
    known = fields(cls) if is_dataclass(cls) else ()
    return {one.metadata["also"]: one.name for one in known if one.metadata.get("also")}


@cache
def _quantities(cls):
    return [one for one in parameters(cls) if one.kind in _QUANTITIES]


def parameters(cls) -> list[Parameter]:
    """The fields that a call of `cls` takes, in order."""
    hints = get_type_hints(cls, include_extras=True)
    return [_parameter(one, hints[one.name]) for one in fields(cls) if one.init]


def _parameter(one, hint) -> Parameter:
    many = get_origin(hint) is tuple
    kind, choices, optional = _kind(get_args(hint)[0] if many else hint)
    said = {key: one.metadata[key] for key in _SAID if key in one.metadata}
    return Parameter(
        name=one.name, kind=kind, choices=choices, optional=optional or one.default is None, default=one.default,
        many=many, **said,
    )  # fmt: skip


def like(cls, name: str, **other):
    """A field such as `cls` has under `name`, with the same default and words but for those in `other`."""
    model = next(one for one in fields(cls) if one.name == name)
    return param(other.pop("default", model.default), **{**model.metadata, **other})


def told(thing) -> str:
    """A description in a line: its class, and each field that is not at its default as a user would type it."""
    if not is_dataclass(thing):
        return type(thing).__name__
    given = [(one, getattr(thing, one.name)) for one in parameters(type(thing))]
    said = [f"{one.name} {one.show(value)}" for one, value in given if value != one.default]
    return ", ".join([type(thing).__name__, *said])


def build(cls, given: dict):
    """A `cls` from texts or plain values by name; what is missing or unknown is said in a sentence."""
    known = {parameter.name: parameter for parameter in parameters(cls)}
    given = _by_name(cls, given)
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
        known = next((mark for mark in marks if mark in _READ), None)
        return (known, (), False) if known else _kind(inner)
    if get_origin(hint) in (Union, UnionType):
        rest = [item for item in get_args(hint) if item is not type(None)]
        kind, choices, _ = _kind(rest[0])
        return kind, choices, len(rest) < len(get_args(hint))
    if get_origin(hint) is Literal:
        return type(get_args(hint)[0]).__name__, get_args(hint), False
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


def _hex(name, value):
    text = "".join(str(value).split()).removeprefix("0x")
    try:
        if not text.isascii():
            raise ValueError
        return bytes.fromhex(text)
    except ValueError:
        shown = text if len(text) <= 40 else text[:37] + "…"
        raise BadInput(f"{name} must be pairs of hexadecimal digits, not {shown!r}") from None


def _shape(name, value):
    parts = value.lower().replace("×", "x").split("x") if isinstance(value, str) else value
    try:
        if isinstance(parts, bool | int | float | bytes):
            raise BadInput
        return tuple(_int(name, part) for part in parts)
    except (BadInput, TypeError):
        raise BadInput(f"{name} must look like 8x8x8, not {_bare(value)}") from None


def _bare(value):
    return repr(value) if isinstance(value, str) else str(value)


def _reader(parse) -> Callable:
    return lambda name, value: parse(value)


_READ: dict[str, Callable] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "hex": _hex,
    "shape": _shape,
    **{kind: _reader(parse) for kind, (parse, _) in _QUANTITIES.items()},
}
_SAID = ("help", "also", "positional", "metavar", "words")
_NAMES = {"int": "a whole number", "float": "a number"}
