"""Plans of failures, written as text: what goes down, when, and when it comes back.

    node 3 at 1ms, spine 0 at 2ms until 5ms, nodes 50%

A comma separates entries. An entry names a kind and one or several things of it (`nodes 3,17 at 1ms`), or a share of
them, which is drawn from the seed. Without `at` it fails at time 0; without `until` it does not come back. A list of
texts is the same plan as those texts with commas between them.

The things of a circuit-switched rack:

    node 3          a node
    link 3          the link between node 3 and its leaf
    leaf 0          a leaf switch
    spine 1         a spine switch
    uplink 0.1      uplink 1 of leaf 0; in a full Clos that is the link between leaf 0 and spine 1

A fabric of several planes has each of them, but the node, once in every plane: `spine 1` fails in all planes,
`plane 2 spine 1` in one. A link or uplink has two directions: `uplink 0.1 upward` fails in one, and `downward` in the
other.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from weft.errors import BadInput
from weft.random import key, permutation
from weft.units import parse_time, show_time

LATEST = 1 << 62  # ps, as for flows: 53 days, and twice that still fits a machine word
STREAM = 0x6661696C  # of the draws of the first entry; the others follow
PLURALS = {"nodes": "node", "links": "link", "leaves": "leaf", "spines": "spine", "uplinks": "uplink"}
WAYS = ("upward", "downward")
ONE_WAY = ("link", "uplink")


class Entry(NamedTuple):
    """A part of a plan between two commas, its times read and its words not yet."""

    text: str
    words: tuple[str, ...]
    at: int
    until: int | None


@dataclass(frozen=True)
class Outage:
    """One thing that is down from `at` until `until` (ps), or for good."""

    what: str  # node, link, leaf, spine or uplink
    which: tuple[int, ...]  # its number; of an uplink the leaf's and its own
    at: int = 0
    until: int | None = None
    plane: int | None = None  # None is every plane
    way: str | None = None  # upward or downward; None is both

    @property
    def name(self) -> str:
        """The thing, as a plan names it: `node 3`, `plane 2 uplink 0.1 upward`."""
        plane = "" if self.plane is None else f"plane {self.plane} "
        return f"{plane}{self.what} {'.'.join(map(str, self.which))}" + (f" {self.way}" if self.way else "")

    def __str__(self):
        until = "" if self.until is None else f" until {_exact(self.until)}"
        return f"{self.name} at {_exact(self.at)}{until}"

    def meets(self, other: "Outage") -> bool:
        """Whether both take the same thing, or a part of it, and at the same time."""
        same = (self.what, self.which) == (other.what, other.which)
        planes = self.plane is None or other.plane is None or self.plane == other.plane
        ways = self.way is None or other.way is None or self.way == other.way
        return same and planes and ways and overlap((self.at, self.until), (other.at, other.until))


def entries(plan: str | Iterable[str]) -> tuple[Entry, ...]:
    """The parts of a plan, their times read."""
    texts = plan if isinstance(plan, list | tuple) else (plan,)
    return tuple(_entry(part) for text in texts for part in _parts(_text(text)))


def outages(plan: str | Iterable[str], counts: dict, *, planes: int = 1, seed: int = 0) -> tuple[Outage, ...]:
    """The outages that a plan asks of a rack, in the order of the plan.

    counts: how many there are of each kind, (nodes,) or for uplinks (leaves, uplinks of each). A share of a kind is
    drawn among those that the rest of the plan does not name: a plan is good under every seed or under none.
    """
    asked = [_asked(entry, counts, planes) for entry in entries(plan)]
    taken = {(outage.what, outage.which) for found, _ in asked for outage in found}
    out = []
    for k, (found, share) in enumerate(asked):
        if share is not None:
            entry, kind, number, plane, way = share
            found = _drawn(entry, kind, number, plane, way, counts, taken, key(seed, STREAM + k))
            taken |= {(outage.what, outage.which) for outage in found}
        out += found
    seen: dict[tuple, list[Outage]] = {}
    for later in out:
        alike = seen.setdefault((later.what, later.which), [])
        for earlier in alike:
            if earlier.meets(later):
                refuse_overlap(later.name, (earlier.at, earlier.until), (later.at, later.until))
        alike.append(later)
    return tuple(out)


def share_of(text: str, what: str, count: int) -> int | None:
    """How many of `count` things a percentage is, to the nearest whole one; None if `text` is not a percentage."""
    if "%" not in text:
        return None
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{0,9})?)%", text)
    if not match or Fraction(match[1].rstrip(".")) > 100:
        raise BadInput(f"a share of {what} must be a percentage from 0% to 100%, not {text!r}")
    return int(count * Fraction(match[1].rstrip(".")) / 100 + Fraction(1, 2))


def overlap(one: tuple[int, int | None], other: tuple[int, int | None]) -> bool:
    """Whether two spans have a moment in common; an end of None never comes."""
    return (one[1] is None or other[0] < one[1]) and (other[1] is None or one[0] < other[1])


def refuse_overlap(name: str, one: tuple[int, int | None], other: tuple[int, int | None]) -> None:
    """Raise if something fails again before it has come back."""
    if overlap(one, other):
        first, second = sorted((one, other), key=lambda span: span[0])
        back = "never" if first[1] is None else f"at {show_time(first[1])}"
        raise BadInput(
            f"{name} must be back before it fails again, not fail at {show_time(first[0])}, come back {back}, and fail "
            f"at {show_time(second[0])}"
        )


def near(word: str, known: Iterable[str]) -> str:
    """` (near it: spine)` for what `word` may have been meant to be, or nothing."""
    found = get_close_matches(word, list(known), n=2, cutoff=0.6)
    return f" (near it: {', '.join(found)})" if found else ""


# ---------------------------------------------------------------- reading


def _text(text) -> str:
    if not isinstance(text, str):
        raise BadInput(f"a plan of failures must be a text or a list of texts, not {text!r}")
    return text


def _parts(text) -> list[str]:
    """The entries of a text; `nodes 3,17 at 1ms` is one: what begins with a name goes on with the list before it."""
    parts: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        words = part.split()
        listing = bool(parts) and not {"at", "until"} & set(parts[-1].split())
        if listing and _NAME.match(words[0]):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


_NAME = re.compile(r"[^=%]*[0-9][^=%]*$")  # 3, 0.1, edge0.1-agg0.0: kinds of things have no digit, shares a %


def _entry(text) -> Entry:
    words = text.split()
    marks = [k for k, word in enumerate(words) if word in ("at", "until")]
    cuts = [*marks, len(words)]
    times = {}
    for begin, end in pairwise(cuts):
        mark, time = words[begin], "".join(words[begin + 1 : end])
        if mark in times or not time:
            raise BadInput(f"a failure must have one time after {mark!r}, not {text!r}")
        times[mark] = parse_time(time)
    at, until = times.get("at", 0), times.get("until")
    if at < 0:
        raise BadInput(f"a failure must begin at 0 ps or later, not {text!r}")
    if until is not None and until <= at:
        raise BadInput(f"a failure must end after it begins, not {text!r}")
    if max(at, until or 0) > LATEST:
        raise BadInput(f"a failure must begin and end within 53 days, not {text!r}")
    if not cuts[0]:
        raise BadInput(f"a failure must begin with what fails, not {text!r}")
    return Entry(text, tuple(words[: cuts[0]]), at, until)


def _asked(entry, counts, planes):
    """([outages], None) of an entry that names things, or ([], what `_drawn` needs to know) of a share."""
    words, plane = list(entry.words), None
    if words[0] == "plane":
        plane = _number("a plane", words[1] if len(words) > 1 else "", planes)
        words = words[2:]
    way = words.pop() if words and words[-1] in WAYS else None
    word = words[0] if words else ""
    kind = PLURALS.get(word, word)
    if kind not in counts:
        known = [*counts, *(several for several, one in PLURALS.items() if one in counts)]
        raise BadInput(f"what fails must be one of {', '.join(counts)}, not {word!r}{near(word, known)}")
    if len(words) < 2:
        raise BadInput(f"a failure must say which {kind}, not {entry.text!r}")
    if plane is not None and kind == "node":
        raise BadInput(f"a node must fail in every plane, not {entry.text!r}")
    if way is not None and kind not in ONE_WAY:
        raise BadInput(f"what fails {way} must be a link or uplink, not {entry.text!r}")
    number = share_of("".join(words[1:]), "leaves" if kind == "leaf" else f"{kind}s", _total(counts[kind]))
    if number is not None:
        return [], (entry, kind, number, plane, way)
    which = [_which(kind, name, counts[kind]) for name in words[1:]]
    return [Outage(kind, one, entry.at, entry.until, plane, way) for one in which], None


def _which(kind, name, shape):
    if kind != "uplink":
        return (_number(f"a {kind}", name, shape[0]),)
    leaf, dot, own = name.partition(".")
    if not dot:
        raise BadInput(f"an uplink must be named after its leaf and its own number, as in 0.1, not {name!r}")
    return _number("the leaf of an uplink", leaf, shape[0]), _number("the number of an uplink", own, shape[1])


def _number(thing, text, count):
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) >= count:
        raise BadInput(f"{thing} must be from 0 to {count - 1}, not {text!r}")
    return int(text)


def _total(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _drawn(entry, kind, number, plane, way, counts, taken, own):
    """So many things of a kind, drawn from those that nothing else takes, in ascending order."""
    shape = counts[kind]
    every = [(k,) if len(shape) == 1 else divmod(k, shape[1]) for k in range(_total(shape))]
    free = [which for which in every if (kind, which) not in taken]
    if number > len(free):
        left = len(free)
        raise BadInput(f"{entry.text!r} must leave room for the rest of the plan, not take {number} of {left} left")
    chosen = sorted(free[k] for k in permutation(own, len(free))[:number])
    return [Outage(kind, which, entry.at, entry.until, plane, way) for which in chosen]


def _exact(time):
    short = show_time(time).replace(" ", "")
    return short if parse_time(short) == time else f"{time}ps"
