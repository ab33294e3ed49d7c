"""TDMA, Fig. 8: the same transfer on a tree of three edge switches with one uplink each."""

from weft.papers import Claim
from weft.papers.tdma import alltoall

COLUMNS = alltoall.COLUMNS
SERIES = ()


def table(scale="small", seed=1):
    """A row per system."""
    return alltoall.rows("tree", scale, 3, seed)


def draw(table):
    """Progress of flows, and when the text says that the last was done."""
    return alltoall.lines(table, {"TDMA": 1075 / 1024, "TCP": 1225 / 1024})


def _inside(table):
    row = alltoall.pick(table, "TDMA")
    return row["inside_s"] < row[
        "finish_s"
    ] / 2, f"within switches {row['inside_s']:.2f} s, all {row['finish_s']:.2f} s"


CLAIMS = [
    Claim("tdma.c02", "the optimal time is 1024 s", alltoall.ideal(1024), scaled=False),
    Claim("tdma.c02", "TDMA takes 1075 s", alltoall.finish(1075, 1024)),
    Claim("tdma.c02", "TCP takes 1225 s", alltoall.against_tcp(1225 / 1024), scaled=False),
    Claim("tdma.c02", "TDMA is faster than TCP", alltoall.better(), scaled=False),
    Claim("tdma.c02", "flows within a switch finish before those between switches", _inside),
]
