"""Shoal: A Network Architecture for Disaggregated Racks (NSDI '19): its figures, as far as its rack can make them.

The images of the printed figures were not available to us, only the text: every printed number here is one that the
text states, kept in `data/printed.toml` with its section.
"""

import tomllib
from functools import cache
from importlib.resources import files

from weft.fabrics.shoal import Shoal
from weft.units import Gbps, ns, ps

SLOT = 23_250 * ps  # §7.1, guard of 2.75 ns included
GBPS = "line.per_destination_gbps.mean"  # of cells, headers included, as the paper counts (§6.2)


@cache
def printed(figure) -> dict:
    """The numbers that the paper's text states about a figure."""
    return tomllib.loads((files(__package__) / "data" / "printed.toml").read_text(encoding="utf-8"))[figure]


def rack(nodes, **options) -> Shoal:
    """The simulated rack of §7.1, with so many nodes: 100 Gb/s as 4 x 25 Gb/s, slots of 23.25 ns."""
    return Shoal(nodes=nodes, **{"link": 100 * Gbps, "channels": 4, "slot": SLOT, **options})


def prototype(cell=64, **options) -> Shoal:
    """The 8-node prototype of §6.1: cycles of 6.4 ns, of which a slot has one of guard, three of MAC, and its cell."""
    cycles = 1 + 3 + cell // 8
    usual = {"link": 10 * Gbps, "channels": 1, "guard": 6_400 * ps, "slot": cycles * 6_400 * ps}
    return Shoal(nodes=8, cell=cell, **{**usual, "path": 1_576 * ns, **options})


def near(ours, theirs, within) -> bool:
    """Whether `ours` is no further from `theirs` than the share `within` of it."""
    return abs(ours - theirs) <= within * theirs
