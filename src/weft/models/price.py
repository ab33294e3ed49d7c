"""What a description would cost: the fabric says what it is made of, the catalogues what that costs.

A room lists its `parts()`: counts by name, as in `{"packet switch of 24 x 10 Gbps": 720}`. A catalogue prices a part
that it has under that name, or by the smallest of its own that can stand for it: as many ports, as fast, or more.
A crossbar in gates has no price but needs memory: its room says in `gates()` which of the paper's designs it is.
Nothing here is simulated, and no result knows of it: it is computed when asked for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.errors import BadInput, BadPart
from weft.models.parts import NAMES, Bill, Catalogue, StandIn
from weft.models.tables import columns, listed, numbered, show
from weft.parameters import told
from weft.units import parse_rate, show_rate

_NAME = re.compile(r"(?P<kind>.+?) of (?:(?P<ports>\d+) x )?(?P<rate>[\d.]+ ?[KMGT]?bps)")
_JSON = ("catalogue", "date", "currency", "price", "watts", "rack_units", "spare")
_SUMS = (("price", "price"), ("watts", "watts"), ("rack_units", "rack units"))


class Wanted(NamedTuple):
    """What the name of a part says: its kind, its ports (0 for a NIC or a cable) and its rate."""

    kind: str
    ports: int
    rate: int

    @classmethod
    def named(cls, name: str) -> "Wanted | None":
        """What `name` says; None if it is a name only."""
        match = _NAME.fullmatch(name)
        return match and cls(match["kind"], int(match["ports"] or 0), parse_rate(match["rate"]))

    @property
    def carries(self) -> int:
        """Rate of all ports together."""
        return (self.ports or 1) * self.rate

    def holds(self, other: "Wanted") -> bool:
        """Whether this one can stand for the other."""
        return self.kind == other.kind and self.ports >= other.ports and self.rate >= other.rate


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A fabric's parts priced by one catalogue. None is what nobody has printed, and `notes` says so."""

    catalogue: str
    date: str
    currency: str
    bill: Bill
    price: float | None
    watts: float | None
    rack_units: float | None
    notes: tuple[str, ...]
    spare: float  # capacity of the parts over the capacity that the fabric uses: 1 where they fit exactly

    def as_json(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in _JSON}
        return {**data, "bill": dict(self.bill), "notes": list(self.notes)}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a fabric would cost, as far as it is known."""

    fabric: str
    parts: Mapping[str, int]  # what it is made of
    sums: tuple[Sum, ...] = ()  # one for each catalogue that has its parts
    resources: Mapping[str, Any] | None = None  # memory, and the FPGAs that hold it, of a crossbar in gates
    unknown: tuple[str, ...] = ()  # sentences: what is not known

    def as_json(self) -> dict[str, Any]:
        return {
            "fabric": self.fabric,
            "parts": dict(self.parts),
            "sums": [one.as_json() for one in self.sums],
            "resources": self.resources,
            "unknown": list(self.unknown),
        }

    def __str__(self):
        blocks = [self.fabric]
        if self.parts:
            lines = [(name, f"{count:,}") for name, count in self.parts.items()]
            blocks.append(columns(("made of", "number"), lines, right=(1,)))
        if self.sums:
            blocks.append(_sums_text(self.sums))
        if self.resources:
            blocks.append(_resources_text(self.resources))
        if self.unknown:
            blocks.append("\n".join(f"not known: {sentence}" for sentence in self.unknown))
        return "\n\n".join(blocks)


def cost(fabric, catalogues: Sequence[Catalogue] = (), changes: Sequence[tuple[str, dict]] = ()) -> Cost:
    """What `fabric` would cost. `catalogues` go on top of each of weft's own, and `changes` on top of those that have
    the part, as in `[("SFP+", {"price": 31})]`."""
    name = told(fabric)
    if not hasattr(fabric, "parts") and not hasattr(fabric, "gates"):
        kind = type(fabric).__name__
        return Cost(fabric=name, parts={}, unknown=(f"what {kind} is made of; a fabric says so in parts()",))
    try:
        parts = dict(fabric.parts()) if hasattr(fabric, "parts") else {}
    except BadInput as error:
        return Cost(fabric=name, parts={}, unknown=(f"what it is made of: {error}",))
    sums: list[Sum] = []
    shelves = {one: _shelf(one, catalogues, changes) for one in NAMES}
    made = [part for catalogue in catalogues for one in catalogue.stands_for for part in one.bill]
    for part in [*(part for part, _ in changes), *made]:
        if not any(part in shelf.parts for shelf in shelves.values()):
            raise BadPart(f"part must be in some catalogue, not in none, as {part!r} is")
    for shelf in shelves.values():
        found = _price(parts, shelf)
        if found is not None and not any(found.bill == other.bill for other in sums):
            sums.append(found)
    sums.sort(key=lambda one: one.spare)
    unknown = [] if sums or not parts else _missing(parts, shelves)
    resources = None
    if hasattr(fabric, "gates"):
        resources, said = _gates(fabric.gates())
        unknown += said
    return Cost(fabric=name, parts=parts, sums=tuple(sums), resources=resources, unknown=tuple(unknown))


def _shelf(name, mine, changes) -> Catalogue:
    catalogue = Catalogue.named(name)
    for other in mine:
        catalogue = catalogue | other
    for part, values in changes:
        catalogue = catalogue.change(part, **values) if part in catalogue.parts else catalogue
    return catalogue


def _price(parts, catalogue) -> Sum | None:
    """The sum of `parts` by `catalogue`; None if it knows nothing of some of them."""
    bill, boxes, notes = Bill(), Bill(), []
    used = bought = 0
    for name, count in parts.items():
        wanted = Wanted.named(name) or Wanted(name, 0, 0)
        stand_in = _smallest(wanted, catalogue)
        if name in catalogue.parts:
            bill, boxes = bill + Bill({name: count}), boxes + Bill({name: count})
        elif stand_in is not None:
            bill, boxes = bill + stand_in.bill * count, boxes + (stand_in.boxes or stand_in.bill) * count
            used, bought = used + count * wanted.carries, bought + count * _said(stand_in).carries
            if _said(stand_in) != wanted:
                notes.append(f"assumed: a whole {stand_in.part} for each {name}")
            notes += [stand_in.note] if stand_in.note else []
        elif wanted.kind in catalogue.left_out:
            notes.append(f"left out, {name}: {catalogue.left_out[wanted.kind]}")
        else:
            return None
    if not bill:
        return None
    for field, words in _SUMS:
        missing = catalogue.unknown(boxes if field == "rack_units" else bill, field)
        notes += [f"{words}: not printed for {', '.join(missing)}"] if missing else []
    return Sum(
        catalogue=catalogue.title,
        date=catalogue.date,
        currency=catalogue.currency,
        bill=bill,
        price=catalogue.price(bill),
        watts=catalogue.watts(bill),
        rack_units=catalogue.rack_units(boxes),
        spare=bought / used if used else 1.0,
        notes=tuple(dict.fromkeys([*notes, *(f"fitted, {line}" for line in catalogue.fitted(bill))])),
    )


def _smallest(wanted: Wanted, catalogue) -> StandIn | None:
    """The smallest part that can stand for the one wanted."""
    sized = [(_said(one), one) for one in catalogue.stands_for]
    able = [(size, one) for size, one in sized if size.holds(wanted) and all(p in catalogue.parts for p in one.bill)]
    return min(able, key=lambda pair: pair[0].carries)[1] if able else None


def _said(stand_in: StandIn) -> Wanted:
    wanted = Wanted.named(stand_in.part)
    if wanted is None:
        raise BadPart(
            f"a part that is stood for must be named as in 'packet switch of 24 x 10 Gbps', not {stand_in.part!r}"
        )
    return wanted


def _missing(parts, shelves) -> list[str]:
    """A sentence for each part that no catalogue has, or for all of them if none has them together."""
    sentences = []
    for name in parts:
        wanted = Wanted.named(name) or Wanted(name, 0, 0)
        kind = wanted.kind
        if any(name in shelf.parts or kind in shelf.left_out for shelf in shelves.values()):
            continue
        if any(_smallest(wanted, shelf) for shelf in shelves.values()):
            continue
        sizes = [
            f"{one.part.removeprefix(f'{kind} of ')} ({shelf})"
            for shelf, catalogue in shelves.items()
            for one in catalogue.stands_for
            if _said(one).kind == kind
        ]
        largest = f"; those known have {', '.join(sizes)}" if sizes else ""
        sentences.append(f"price, watts and space of {name}: no catalogue has one{largest}")
    return sentences or ["price, watts and space: no catalogue has all of its parts"]


def _gates(said: Mapping[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """Memory and devices of a crossbar in gates, and what is not known of it."""
    from weft.models import fpga
    from weft.models.reports.fpga import resources

    if said["design"] is None:
        return None, [f"memory: {said['why']}"]
    return {**said, **resources(fpga.Design(**said), Catalogue.named(fpga.CATALOGUE))}, []


def _sums_text(sums) -> str:
    marks, feet = numbered(one.notes for one in sums)
    lines = [
        (one.catalogue, one.date, _blank(one.price), one.currency, _blank(one.watts), _blank(one.rack_units),
         f"{one.spare:.3g} x", mark)
        for one, mark in zip(sums, marks, strict=True)
    ]  # fmt: skip
    head = ("prices of", "date", "price", "in", "watts", "rack units", "capacity", "notes")
    return "\n".join([columns(head, lines, right=(2, 4, 5, 6)), *([""] if feet else []), *feet])


def _blank(value) -> str:
    return "" if value is None else show(value)


def _resources_text(found) -> str:
    from weft.models.reports.fpga import memory_rows

    fits = [name for name, good in found["fits"].items() if good]
    rows = [*memory_rows(found), ("fits", ", ".join(fits) or "none of the devices"),
            ("on the XCVU9P (Table IV)", found["implemented"])]  # fmt: skip
    title = f"{found['design']}, {found['ports']} ports of {show_rate(found['rate'])}, {found['width']} bit"
    return listed(title, rows, found["notes"])
