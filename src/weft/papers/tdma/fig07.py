"""TDMA, Fig. 7: 10 GB from each of 24 hosts on one switch to every other."""

from weft.papers import Claim
from weft.papers.tdma import alltoall

COLUMNS = tuple(column for column in alltoall.COLUMNS if column != "inside_s")
SERIES = ()


def table(scale="small", seed=1):
    """A row per system."""
    return alltoall.rows("switch", scale, 1, seed)


def draw(table):
    """Progress of flows, and when the text says that the last was done."""
    return alltoall.lines(table, {"TDMA": 194 / 184, "TCP": 225 / 184})


CLAIMS = [
    Claim("tdma.c01", "ideally the transfer takes 184 s", alltoall.ideal(184), scaled=False),
    Claim("tdma.c01", "TDMA takes 194 s, 5 % more than ideal", alltoall.finish(194, 184)),
    Claim("tdma.c01", "TCP takes 225 s", alltoall.against_tcp(225 / 184), scaled=False),
    Claim("tdma.c01", "TDMA's time is about 15 % better than TCP's", alltoall.better(15), scaled=False),
    Claim("tdma.c01", "under TCP some flows finish early, under TDMA all finish together", alltoall.together),
]
