"""Columns of traces that others wrote: their names and units, turned into ours before a trace is read.

    start=ts_us, bytes=size_kb, src=ip.src, dst=ip.dst

says that our `start` is their `ts_us`, and so on; what is not named is left out. The unit is the end of their name, or
stands after a colon (`start=ts:us`), or is ours: seconds, bytes and b/s. Headers such as `start_us` and `size_kb` are
understood without being told. Nodes that have names instead of numbers (addresses, say) are numbered in the order in
which they first appear.
"""

from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from weft.errors import BadTrace
from weft.units import GB, KB, MB, Gbps, GiB, Kbps, KiB, Mbps, MiB, ms, ns, ps, s, us

TIMES = {"s": s, "ms": ms, "us": us, "ns": ns, "ps": ps}
SIZES = {"b": 1, "bytes": 1, "kb": KB, "mb": MB, "gb": GB, "kib": KiB, "mib": MiB, "gib": GiB}
RATES = {"bps": 1, "kbps": Kbps, "mbps": Mbps, "gbps": Gbps}
UNITS = {"start": TIMES, "bytes": SIZES, "rate": RATES}
ENDS = ("src", "dst")
TEXTS = ("after", "delay_ps")  # of several numbers, or of none: read by `weft.workload.after`


class Column(NamedTuple):
    """Where one of our columns comes from."""

    theirs: str  # in lower case
    unit: int  # ps, bytes or b/s that a 1 stands for


def parse(text: str) -> dict[str, Column]:
    """Our name -> their column, of a text such as `start=ts_us,bytes=size`."""
    found: dict[str, Column] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        if not equals or not theirs or ours not in (*UNITS, *ENDS, *TEXTS, "flow", "class"):
            raise BadTrace(f"columns must look like start=ts_us,bytes=size_kb,src=from,dst=to, not {part!r}")
        if ours in found:
            raise BadTrace(f"columns must name {ours} once, not again as {part!r}")
        theirs, colon, told = theirs.lower().rpartition(":") if ":" in theirs else (theirs.lower(), "", "")
        known = UNITS.get(ours, {})
        if colon and told not in known:
            must = f"one of {', '.join(known)}" if known else "left out"
            raise BadTrace(f"the unit of {ours} must be {must}, not {told!r}")
        found[ours] = Column(theirs, known[told] if colon else unit(ours, theirs))
    return found


def unit(ours: str, theirs: str) -> int:
    """The unit that their name ends in, or ours."""
    known = UNITS.get(ours, {})
    end = theirs.rpartition("_")[2] if "_" in theirs else ""
    return known.get(end, {"start": s}.get(ours, 1))


def guess(cells: list[str], names: dict[str, str]) -> dict[str, Column]:
    """The columns that a header means which has names of ours with units of others; nothing if it has none."""
    found, foreign = {}, False
    for cell in (cell.lower() for cell in cells):
        head, _, end = cell.rpartition("_")
        ours = names.get(cell)
        if ours is None and names.get(head) in UNITS and end in UNITS[names[head]]:
            ours, foreign = names[head], True
        if ours is None:
            return {}
        ours = "start" if ours == "start_ps" else ours
        found[ours] = Column(cell, unit(ours, cell))
    return found if foreign else {}


class Reader:
    """Turns cells of their columns into whole numbers of ours, and remembers which names were numbered."""

    def __init__(self, columns: dict[str, Column]):
        self.columns = columns
        self.numbers: dict[str, int] = {}
        self.rounded = 0

    def places(self, cells: list[str], place: str) -> list[tuple[str, int]]:
        """(our name, place among the cells) of each column, the start as `start_ps`."""
        at = {cell.lower(): k for k, cell in enumerate(cells)}
        for ours, column in self.columns.items():
            if column.theirs not in at:
                raise BadTrace(f"{place}: {ours} must be one of {', '.join(cells)}, not {column.theirs!r}")
        for ours in ("src", "dst", "bytes", "start"):
            if ours not in self.columns:
                raise BadTrace(f"{place}: columns must say which column is {ours}, as in {ours}={cells[0]}")
        return [(ours, at[column.theirs]) for ours, column in self.columns.items()]

    def number(self, ours: str, text: str, place: str) -> int | str:
        """What a cell says, in our unit; a text that is to be read later stays as it is."""
        if ours in TEXTS:
            return text
        if ours in ENDS and not text.isdigit():
            if not text:
                raise BadTrace(f"{place}: {ours} must be a node, not empty")
            return self.numbers.setdefault(text, len(self.numbers))
        try:
            exact = Decimal(text) * self.columns[ours].unit
            whole = int(exact.to_integral_value())
        except (InvalidOperation, ValueError, OverflowError):
            raise BadTrace(f"{place}: {ours} must be a number, not {text!r}") from None
        self.rounded += whole != exact
        return whole

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was done."""
        said = []
        if self.numbers:
            some = ", ".join(f"{name} is {k}" for name, k in list(self.numbers.items())[:3])
            said.append(f"{len(self.numbers):,} names of nodes were numbered in the order of the file: {some}")
        if self.rounded:
            said.append(f"{self.rounded:,} numbers were rounded to whole picoseconds, bytes or b/s")
        return tuple(said)


def lines(rows, columns: dict[str, Column], separator, bare, path) -> tuple[list, tuple[str, ...]]:
    """([(number, line)] as the reader of our own csv takes them, notes) of their lines, the header first."""
    (number, first), *rest = rows
    reader = Reader(columns)
    places = reader.places([bare(cell) for cell in first.split(separator)], f"{path}, line {number}")
    out = [(number, ",".join("start_ps" if ours == "start" else ours for ours, _ in places))]
    last = max(k for _, k in places)
    for number, line in rest:
        cells = [bare(cell) for cell in line.split(separator)]
        place = f"{path}, line {number}"
        if len(cells) <= last:
            raise BadTrace(f"{place}: a line must have at least {last + 1} fields, not {len(cells)}")
        out.append((number, ",".join(str(reader.number(ours, cells[k], place)) for ours, k in places)))
    return out, reader.notes
