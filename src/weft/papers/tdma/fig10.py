"""TDMA, Fig. 10: round trips of pings in a slot of their own, against when in the slot they are sent."""

from itertools import pairwise

from weft.papers import Claim, Series
from weft.papers.marks import TEXT, marks_only
from weft.papers.tdma import rtt

COLUMNS = ("system", "offset_us", "mean_us", "p50_us", "p95_us", "most_us", "wait_ms", "pings")
SERIES = (Series("offset_us", "mean_us", "system"),)


def table(scale="small", seed=1):
    """A row per moment in the slot; wait_ms is the time until the slot, which the paper does not count."""
    wait = rtt.waits()
    return [rtt.row("TDMA, in its slot", times, wait, offset_us=offset) for offset, times in rtt.by_offset(scale, seed)]


def draw(table):
    """The mean and the longest round trip against the moment in the slot."""
    from weft.report.plots import plot

    rows = [{"offset_us": row["offset_us"], "rtt_us": row[key], "of": name} for row in table
            for key, name in (("mean_us", "mean"), ("most_us", "longest"))]  # fmt: skip
    rows += [
        {"offset_us": row["offset_us"], "rtt_us": 26, "of": f"mean over all: {TEXT}"} for row in (table[0], table[-1])
    ]
    drawn = plot(rows, x="offset_us", y="rtt_us", by="of", yscale="linear", title="round trip of a ping in its slot")
    return marks_only(drawn, f"mean over all: {TEXT}")


def _later(table):
    own = [row["mean_us"] for row in table]
    falls = all(a >= b - 1e-9 for a, b in pairwise(own)) and own[0] > own[-1]
    return falls, f"{own[0]:.2f} us at once, {own[-1]:.2f} us after {table[-1]['offset_us']} us"


CLAIMS = [Claim("tdma.c05", "it is the shorter the later in the slot the ping is sent", _later, scaled=False)]
