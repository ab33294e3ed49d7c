"""Stardust, Fig. 12 (App. F): the same as Fig. 7, the traffic of A of a high class and that of B of a low one."""

from weft.papers import Claim
from weft.papers.stardust import fig07
from weft.papers.stardust.fig07 import COLUMNS, SERIES, rows

__all__ = ["CLAIMS", "COLUMNS", "SERIES", "draw", "table"]


def table(scale="small"):
    """Both fabrics; ports of Stardust schedule their own traffic, so classes of different ports do not meet."""
    return rows(classes=True)


def draw(table):
    """What each port gets, and what the text says."""
    return fig07.draw(table, printed={(0, "A"): 100, (0, "B"): 0, (1, "A"): 100, (1, "B"): 100})


def _push(table):
    row = table[0]
    return row["b_gbps"] < 1 and abs(row["both_gbps"] - 100) < 1, (
        f"{row['both_gbps']:.1f} Gb/s are delivered, {row['b_gbps']:.1f} of them at B"
    )


def _twice(table):
    ratio = table[1]["both_gbps"] / table[0]["both_gbps"]
    return abs(ratio - 2) < 0.03, f"{table[1]['both_gbps']:.1f} Gb/s, {ratio:.2f} times as much"


CLAIMS = [
    Claim("stardust.c09", "Ethernet switches drop all of B's traffic, and the device delivers 100 Gb/s", _push, False),
    Claim("stardust.c09", "Stardust delivers twice as much", _twice, False),
]
