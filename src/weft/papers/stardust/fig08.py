"""Stardust, Fig. 8: throughput of a switch with a path of 32 B at 150 MHz, by size of packets, in clock cycles.

A stream of packets of one size comes at 4 x 10 Gb/s. Every design takes what it switches through the path, 32 B in a
clock: the reference switch a packet, NDP a packet and one clock more, Stardust cells of 64 B, full ones where packets
are packed into credits of 2 KB, else as many for each packet as it needs. A lookup takes two clocks, as a cell does.
"""

from weft.papers import Claim, Series
from weft.papers.marks import marks_only, said

COLUMNS = ("bytes", "reference", "ndp", "packed", "unpacked")
SERIES = tuple(Series("bytes", name) for name in COLUMNS[1:])
PATH, CLOCK, LINE, GAP = 32, 150e6, 40e9, 20
CELL, CREDIT, LOOKUP = 64, 2048, 2
SIZES = (64, 65, 80, 96, 97, 128, 129, 160, 192, 193, 256, 257, 384, 512, 513, 768, 1024, 1025, 1500, 1518)


def clocks(design: str, size: int) -> float:
    """Clock cycles for a packet."""
    beats = -(-size // PATH)
    if design == "reference":
        return beats
    if design == "ndp":
        return beats + 1
    if design == "unpacked":
        return -(-size // CELL) * LOOKUP
    packets = -(-CREDIT // size)  # that a credit lets go, the last of them beyond it
    return -(-packets * size // CELL) * LOOKUP / packets


def share(design: str, size: int, clock: float = CLOCK) -> float:
    """% of the line's rate that a design keeps up with."""
    arriving = LINE / (8 * (size + GAP))
    return 100 * min(1.0, clock / clocks(design, size) / arriving)


def table(scale="small"):
    """A row for each size; there is one scale."""
    return [{"bytes": size, **{name: share(name, size) for name in COLUMNS[1:]}} for size in SIZES]


def draw(table):
    """Throughput by size of packets."""
    from weft.report.plots import plot

    rows = [{"bytes": row["bytes"], "share": row[name], "of": name} for row in table for name in COLUMNS[1:]]
    rows += [{"bytes": size, "share": 100, "of": said("packed")} for size in SIZES]
    drawn = plot(rows, x="bytes", y="share", by="of", title="Fig. 8: % of line rate at 150 MHz")
    return marks_only(drawn, said("packed"))


def _line(table):
    least = min(row["packed"] for row in table)
    return least > 99.95, f"at least {least:.1f} %"


def _better(table):
    gains = {
        name: max(row["packed"] / row[name] - 1 for row in table) * 100 for name in ("reference", "ndp", "unpacked")
    }
    less = {name: max(1 - row[name] / row["packed"] for row in table) * 100 for name in gains}
    ours = "; ".join(f"{name} falls {less[name]:.0f} % short of it, it is {gains[name]:.0f} % better" for name in gains)
    printed = {"reference": 15, "ndp": 30, "unpacked": 49}
    return all(abs(less[name] - printed[name]) < 2 for name in gains), ours


def _clocks(table):
    needed = max(clocks("reference", size) * LINE / (8 * (size + GAP)) for size in range(64, 1519)) / 1e6
    fails = [size for size in range(64, 1519) if share("ndp", size, 200e6) < 99.99]
    ends = [[size for size in fails if size + step not in fails] for step in (-1, 1)]
    short = ", ".join(f"{a} to {b} B" if a < b else f"{a} B" for a, b in zip(*ends, strict=True)) or "no size"
    ours = f"the reference switch needs {needed:.1f} MHz; NDP falls short at 200 MHz with {short}"
    return 170 < needed <= 180 and {65, 97, 129} <= set(fails), ours


_ALL = "packed, Stardust reaches line rate for all sizes at 150 MHz"
_UP_TO = "up to 15 %, 30 % and 49 % better than the reference switch, NDP and unpacked cells"
_NEEDED = "the reference switch needs 180 MHz; NDP fails at 65, 97 and 129 B at 200 MHz"
CLAIMS = [
    Claim("stardust.c15", _ALL, _line, False),
    Claim("stardust.c15", _UP_TO, _better, False),
    Claim("stardust.c16", _NEEDED, _clocks, False),
]
