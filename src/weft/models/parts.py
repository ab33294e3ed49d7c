"""Parts as data: a design lists them in a bill, a catalogue knows what they cost.

Nothing prices itself. `Bill` says how many of what; `Catalogue` says the price, the watts and the rack
units of each, with the date and the source of every number; the two meet in `Catalogue.price(bill)`.
A count may be a whole array (a sweep over port counts): then so is every sum.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from math import isfinite
from pathlib import Path

import numpy as np

from weft import reading
from weft.errors import BadPart

_POWER = {"mW": 1e-3, "W": 1, "kW": 1e3}
_SPACE = {"RU": 1}
_FIELDS = ("price", "power", "space", "date", "source", "fitted", "facts")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part one can buy. A number that no source prints is None, never a guess."""

    name: str
    price: float | None = None  # in the currency of its catalogue
    watts: float | None = None
    rack_units: float | None = None
    date: str = ""
    source: str = ""
    fitted: str = ""  # what the number was chosen to match, where no source prints it
    facts: Mapping = field(default_factory=dict)  # anything else: ports, rates, grams per metre

    def __post_init__(self):
        for what, value, unit in (
            ("price", self.price, ""),
            ("power", self.watts, " W"),
            ("space", self.rack_units, " RU"),
        ):
            if value is not None and not np.all((np.asarray(value) >= 0) & np.isfinite(value)):
                raise BadPart(f"{what} of part {self.name!r} must be at least 0{unit}, not {np.min(value):g}{unit}")


class Bill(Mapping):
    """A bill of materials: how many of each part. Bills add up, and a whole number of bills is a bill."""

    def __init__(self, counts: Mapping | None = None, **more):
        self._counts = {part: n for part, n in {**(counts or {}), **more}.items() if np.any(n)}
        for part, n in self._counts.items():
            if np.any(np.asarray(n) < 0):
                raise BadPart(f"count of part {part!r} must be at least 0, not {np.min(n):g}")

    def __getitem__(self, part):
        return self._counts.get(part, 0)

    def __contains__(self, part):
        return part in self._counts

    def __iter__(self):
        return iter(self._counts)

    def __len__(self):
        return len(self._counts)

    def __add__(self, other: "Bill") -> "Bill":
        return Bill({part: self[part] + other[part] for part in {**self._counts, **other._counts}})

    def __mul__(self, times) -> "Bill":
        return Bill({part: n * times for part, n in self._counts.items()})

    __rmul__ = __mul__

    def __eq__(self, other):
        return (
            isinstance(other, Bill)
            and self._counts.keys() == other._counts.keys()
            and all(np.array_equal(n, other[part]) for part, n in self._counts.items())
        )

    __hash__ = None  # type: ignore[assignment]  # counts may be arrays

    def __repr__(self):
        return f"Bill({self._counts!r})"


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Parts of a catalogue that make up, or can stand for, a part that a fabric lists."""

    part: str  # as in "packet switch of 24 x 10 Gbps"
    bill: Bill  # what is paid for, and draws power
    boxes: Bill | None = None  # what takes space, where that is something else
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Parts by name, with the date and the source of their numbers."""

    title: str
    parts: Mapping[str, Part]
    currency: str = "USD"
    date: str = ""
    source: str = ""
    stands_for: tuple[StandIn, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # kind of part -> why nobody counts it here

    @classmethod
    def load(cls, path) -> "Catalogue":
        """Read a catalogue from a TOML file; a quantity carries its unit, as in `price = "410 USD"`."""
        return cls._read(reading.toml(path, "a catalogue", error=BadPart), Path(path).name)

    @classmethod
    def named(cls, name: str) -> "Catalogue":
        """One of the catalogues that come with weft, such as 'merchant-2009'."""
        if name not in NAMES:
            raise BadPart(f"catalogue must be one of {', '.join(NAMES)}, not {name!r}")
        return cls._read(tomllib.loads((_SHELF / f"{name}.toml").read_text(encoding="utf-8")), f"{name}.toml")

    @classmethod
    def _read(cls, page, where):
        for key in ("title", "currency", "source"):
            if not isinstance(page.get(key, ""), str):
                raise BadPart(f"{key} of catalogue {where} must be text, not {page[key]!r}")
        currency = page.get("currency", "USD")
        shelf = page.get("parts", {})
        if not isinstance(shelf, dict) or not all(isinstance(entry, dict) for entry in shelf.values()):
            raise BadPart(f"catalogue {where} must hold tables named [parts.NAME], not {shelf!r}")
        left_out, stands_for = page.get("left_out", {}), page.get("stands_for", [])
        if not isinstance(left_out, dict) or not all(isinstance(why, str) for why in left_out.values()):
            raise BadPart(f"left_out of catalogue {where} must be a table of texts, not {left_out!r}")
        if not isinstance(stands_for, list):
            raise BadPart(f"stands_for of catalogue {where} must be tables [[stands_for]], not {stands_for!r}")
        date = str(page.get("date", ""))
        return cls(
            title=page.get("title", where),
            currency=currency,
            date=date,
            source=page.get("source", ""),
            parts={name: _part(name, entry, currency, date, where) for name, entry in shelf.items()},
            stands_for=tuple(_stand_in(entry, where) for entry in stands_for),
            left_out=left_out,
        )

    def __getitem__(self, name: str) -> Part:
        if name not in self.parts:
            near = difflib.get_close_matches(name, self.parts, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise BadPart(f"part must be one of {', '.join(self.parts) or 'none'} of {self.title}, not {name!r}{hint}")
        return self.parts[name]

    def __or__(self, other: "Catalogue") -> "Catalogue":
        """This catalogue with the entries of `other` on top, field by field.

        Where `other` has prices in another currency, those that only this one knows are no longer known.
        """
        ours, currency = self.parts, self.currency
        if other.prices and other.currency != currency:
            ours = {name: replace(part, price=None) for name, part in ours.items()}
            currency = other.currency
        merged = dict(ours)
        for name, part in other.parts.items():
            old = ours.get(name, Part(name=name))
            known = {
                key: getattr(part, key)
                for key in ("price", "watts", "rack_units", "date", "source")
                if getattr(part, key) not in (None, "")
            }
            fitted = part.fitted if {"price", "watts"} & known.keys() else old.fitted
            merged[name] = replace(old, **known, fitted=fitted, facts={**old.facts, **part.facts})
        return replace(
            self, parts=merged, currency=currency, title=f"{self.title} with {other.title}",
            stands_for=(*other.stands_for, *self.stands_for), left_out={**self.left_out, **other.left_out},
        )  # fmt: skip

    @property
    def prices(self) -> bool:
        """Whether any of its parts has a price."""
        return any(part.price is not None for part in self.parts.values())

    def under(self, other: "Catalogue") -> "Catalogue":
        """This catalogue with `other` on top, where both must count in the same currency."""
        if other.prices and other.currency != self.currency:
            raise BadPart(f"currency of {other.title} must be {self.currency} as in {self.title}, not {other.currency}")
        return self | other

    def change(self, name: str, **values) -> "Catalogue":
        """The same catalogue with other values for one known part, as in `change("SFP+", price=100)`."""
        part = replace(self[name], **values, fitted="", source="given by the caller")
        return replace(self, parts={**self.parts, name: part})

    def price(self, bill: Bill):
        """What `bill` costs in `currency`, or None if some part of it has no price."""
        return self._sum(bill, "price")

    def watts(self, bill: Bill):
        """What `bill` draws in watts, or None if some part of it is not known to."""
        return self._sum(bill, "watts")

    def rack_units(self, bill: Bill):
        """The rack units `bill` fills, or None if some part of it has no known size."""
        return self._sum(bill, "rack_units")

    def unknown(self, bill: Bill, what: str) -> list[str]:
        """The parts of `bill` whose `what` (price, watts or rack_units) nobody has printed."""
        return [name for name in bill if getattr(self[name], what) is None]

    def fitted(self, bill: Bill) -> list[str]:
        """One sentence for each part of `bill` whose numbers were fitted and not printed."""
        return [f"{name}: {self[name].fitted}" for name in bill if self[name].fitted]

    def _sum(self, bill, what):
        if self.unknown(bill, what):
            return None
        return sum(n * getattr(self[name], what) for name, n in bill.items())


def _stand_in(entry, where):
    known = {"part": str, "is": dict, "in": dict, "note": str}
    if not isinstance(entry, dict) or not {"part", "is"} <= entry.keys() <= known.keys():
        raise BadPart(
            f"stands_for of {where} must be tables of part and is, with in and note if need be, not {entry!r}"
        )
    for key, value in entry.items():
        counts = value.values() if isinstance(value, dict) else ()
        if not isinstance(value, known[key]) or not all(type(count) is int for count in counts):
            kind = "counts by part" if known[key] is dict else "text"
            raise BadPart(f"{key} of stands_for in {where} must be {kind}, not {value!r}")
    boxes = Bill(entry["in"]) if "in" in entry else None
    return StandIn(part=entry["part"], bill=Bill(entry["is"]), boxes=boxes, note=entry.get("note", ""))


def _part(name, entry, currency, date, where):
    for key in entry:
        if key not in _FIELDS:
            raise BadPart(f"part {name!r} in {where} must have only {', '.join(_FIELDS)}, not {key!r}")
    for key, kind, word in (("source", str, "text"), ("fitted", str, "text"), ("facts", dict, "a table")):
        if not isinstance(entry.get(key, kind()), kind):
            raise BadPart(f"{key} of part {name!r} in {where} must be {word}, not {entry[key]!r}")
    return Part(
        name=name,
        price=_quantity(entry, "price", {currency: 1}, name, where),
        watts=_quantity(entry, "power", _POWER, name, where),
        rack_units=_quantity(entry, "space", _SPACE, name, where),
        date=str(entry.get("date", date)),
        source=entry.get("source", ""),
        fitted=entry.get("fitted", ""),
        facts=entry.get("facts", {}),
    )


def _quantity(entry, key, units, name, where):
    if key not in entry:
        return None
    given = entry[key]
    match = re.fullmatch(r"\s*([-+]?[0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?)\s*(\D*)", str(given))
    unit = match[2].strip() if match and isinstance(given, str) else ""
    if unit not in units:
        example = next(iter(units)) if len(units) == 1 else "W"
        raise BadPart(f"{key} of part {name!r} in {where} must carry its unit as in '1 {example}', not {given!r}")
    value = float(match[1]) * units[unit]
    if not isfinite(value):
        raise BadPart(f"{key} of part {name!r} in {where} must be a finite number, not {given!r}")
    return int(value) if value == int(value) else value


_SHELF = resources.files("weft.models") / "catalogues"
NAMES = tuple(sorted(entry.name.removesuffix(".toml") for entry in _SHELF.iterdir() if entry.name.endswith(".toml")))
