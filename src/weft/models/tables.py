"""What a paper prints beside what we compute, row by row, with the reason where they differ.

The printed side is data (`printed/*.toml`), the computed side is code (`tables()` of each model), and the
two meet here by name. A row ends in one of five verdicts:

same       our number rounds, or truncates, to the printed digits
input      the print is where our catalogue has the number from: agreement says only that it was copied well
fitted     same, but through a constant that the paper does not print and that was chosen to match
differs    not the same; the note says why, or which constant would be needed
not known  one side is missing: unreadable in our copy, never printed, or measured on hardware
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from importlib import resources

from weft.errors import BadInput

SAME, INPUT, FITTED, DIFFERS, NOT_KNOWN = "same", "input", "fitted", "differs", "not known"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One printed value and ours. `printed` keeps the digits of the print (41.0 is not 41)."""

    name: str
    printed: Decimal | int | str | None
    computed: float | int | str | None
    unit: str = ""
    note: str = ""
    kind: str = ""  # "input" or "fitted" where the paper's number went into ours
    claim: str = ""  # the statement of the paper that this row checks

    @property
    def verdict(self) -> str:
        if self.printed is None or self.computed is None:
            return NOT_KNOWN
        if not agrees(self.printed, self.computed):
            return DIFFERS
        return self.kind or SAME

    @property
    def difference(self) -> float | None:
        """Computed minus printed, or None where either is not a number."""
        if isinstance(self.printed, str | None) or isinstance(self.computed, str | None):
            return None
        gap = float(self.computed) - float(self.printed)
        return 0.0 if abs(gap) <= 1e-12 * max(1.0, abs(float(self.printed))) else gap

    def as_json(self) -> dict:
        printed = float(self.printed) if isinstance(self.printed, Decimal) else self.printed
        return {
            "name": self.name,
            "printed": printed,
            "computed": plain(self.computed),
            "unit": self.unit,
            "note": self.note,
            "difference": self.difference,
            "verdict": self.verdict,
            "claim": self.claim,
        }


@dataclass(frozen=True, kw_only=True)
class Table:
    """A printed table, ours beside it."""

    paper: str
    key: str
    title: str
    rows: Sequence[Row]
    note: str = ""

    def as_json(self) -> dict:
        return {
            "paper": self.paper,
            "table": self.key,
            "title": self.title,
            "note": self.note,
            "rows": [row.as_json() for row in self.rows],
            "verdicts": self.verdicts,
        }

    @property
    def verdicts(self) -> dict:
        """How many rows ended in each verdict."""
        words = [row.verdict for row in self.rows]
        return {word: words.count(word) for word in (SAME, INPUT, FITTED, DIFFERS, NOT_KNOWN) if word in words}

    def __str__(self):
        marks, feet = numbered([row.note] if row.note else [] for row in self.rows)
        lines = []
        for row, mark in zip(self.rows, marks, strict=True):
            gap = "" if row.difference is None else _show(row.difference, sign=True)
            mark = mark and f"[{mark}]"
            lines.append(
                (row.claim, row.name, _show(row.printed), _show(row.computed), gap, row.unit, row.verdict, mark)
            )
        text = columns(
            ("claim", "", "printed", "computed", "difference", "unit", "verdict", "note"), lines, right=(2, 3, 4)
        )
        foot = feet + ([self.note] if self.note else [])
        return "\n".join([self.title, "", text, *([""] if foot else []), *foot])


def agrees(printed, computed) -> bool:
    """True if `computed` rounds or truncates to the digits of `printed`; texts must be equal."""
    if isinstance(printed, str) or isinstance(computed, str):
        return str(printed) == str(computed)
    exact = Decimal(repr(float(computed))) if not isinstance(computed, int) else Decimal(computed)
    printed = Decimal(printed)
    quantum = Decimal(1).scaleb(min(printed.as_tuple().exponent, 0))
    error = Decimal("1e-12") * max(Decimal(1), abs(exact))  # a float's rounding error must not decide
    rounded = {value.quantize(quantum, ROUND_HALF_UP) for value in (exact - error, exact + error)}
    truncated = (exact + error.copy_sign(exact)).quantize(quantum, ROUND_DOWN)
    return printed in rounded or printed == truncated


def beside(paper: str, key: str, computed: Mapping) -> Table:
    """The printed table `key` of `paper`, with `computed` (row name to value) beside it.

    A value is a number, a text or None; a printed row that `computed` does not name is None.
    """
    page = printed(paper)[key]
    names = [row["name"] for row in page["row"]]
    stray = [name for name in computed if name not in names]
    if stray:
        raise KeyError(f"table {key} of {paper} prints no row {stray[0]!r}")
    rows = [
        Row(
            name=row["name"],
            printed=row.get("printed"),
            computed=computed.get(row["name"]),
            unit=row.get("unit", ""),
            note=row.get("note", ""),
            kind=row.get("kind", ""),
            claim=row.get("claim", ""),
        )
        for row in page["row"]
    ]
    return Table(paper=paper, key=key, title=page["title"], rows=rows, note=page.get("note", ""))


@cache
def printed(paper: str) -> dict:
    """The printed tables of `paper` by key, as data."""
    text = (resources.files("weft.models") / "printed" / f"{paper}.toml").read_text(encoding="utf-8")
    pages = tomllib.loads(text, parse_float=Decimal)["table"]
    return {page["key"]: _elsewhere(page) if "see" in page else page for page in pages}


def _elsewhere(page):
    """A table that is kept in weft.prototypes: what was measured there is read by simulations as well."""
    text = (resources.files("weft.prototypes") / page["see"]).read_text(encoding="utf-8")
    return next(one for one in tomllib.loads(text, parse_float=Decimal)["table"] if one["key"] == page["key"])


def value(paper: str, key: str, name: str):
    """One printed value, for sums that start from the print itself."""
    found = next(row["printed"] for row in printed(paper)[key]["row"] if row["name"] == name)
    return float(found) if isinstance(found, Decimal) else found


def find(paper: str, key: str) -> str:
    """The key under which `paper` prints table `key`, whatever its case; or the sentence that lists them."""
    keys = {known.lower(): known for known in printed(paper)}
    wanted = key.strip().lower().removeprefix("table").strip()
    if wanted not in keys:
        raise BadInput(f"table must be one of {', '.join(keys.values())} of {paper}, not {key!r}")
    return keys[wanted]


def columns(head: Sequence[str], lines: Sequence[Sequence[str]], right=()) -> str:
    """Text in aligned columns; empty columns are left out; `right` names those aligned to the right."""
    keep = [i for i, _ in enumerate(head) if any(line[i] for line in lines)]
    grid = [[str(line[i]) for i in keep] for line in (head, *lines)]
    wide = [max(len(line[i]) for line in grid) for i in range(len(keep))]
    rule = ["-" * w for w in wide]
    pad = [str.rjust if i in right else str.ljust for i in keep]
    return "\n".join(
        "  ".join(p(cell, w) for p, cell, w in zip(pad, line, wide, strict=True)).rstrip()
        for line in (grid[0], rule, *grid[1:])
    )


def listed(title: str, pairs: Sequence[tuple[str, str | None]], notes: Sequence[str] = ()) -> str:
    """A title, then name and value in two columns, then notes; a value that is None is left out."""
    known = [(name, value) for name, value in pairs if value is not None]
    wide = max(len(name) for name, _ in known)
    lines = [title, "", *(f"{name:<{wide}}  {value}" for name, value in known)]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def numbered(notes: Iterable[Sequence[str]]) -> tuple[list[str], list[str]]:
    """For each line the numbers of its notes, as in `1 3`; and the notes as `[1] …`, each said once."""
    known: list[str] = []
    marks = []
    for line in notes:
        known += [note for note in line if note not in known]
        marks.append(" ".join(str(known.index(note) + 1) for note in line))
    return marks, [f"[{k}] {note}" for k, note in enumerate(known, 1)]


def number(value, unit: str = "") -> str | None:
    """A number with its unit, None if there is none."""
    return None if value is None else f"{show(value)}{' ' if unit else ''}{unit}"


def plain(value):
    """`value` as JSON knows it: numpy numbers become Python's, whole floats stay floats."""
    return value.item() if hasattr(value, "item") else value


def show(value) -> str:
    """A number as people read it: thousands apart, six significant digits."""
    return _show(value)


def _show(value, sign=False):
    if value is None:
        return "" if sign else "-"
    if isinstance(value, str):
        return value
    value = plain(value)
    form = "+" if sign else ""
    if isinstance(value, Decimal):
        return f"{value:{form},}"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):{form},}" if value else "0"
    if abs(value) >= 1000:
        return f"{value:{form},.2f}"
    return f"{value:{form}.4g}" if sign else f"{value:.6g}"
