"""Shoal's queue bound, by model checking: no queue of a small rack ever holds more than N - 1 cells (§3.3.2, eq. 5).

The whole rack, NICs, switches and links, of three nodes with the shortest slot there is. Hosts give any number of cells
to any pair in any slot. A cell of each subflow at most waits in a queue for its second hop, and one of the node's own:
N - 2 and one. Checksums are taken for right, so that payload decides nothing. The mutant does not wait for feedback.
"""

from amaranth.hdl import Assert, Cat, Const, Module, Signal
from amaranth.lib.wiring import In

from weft.rtl.parts import Block
from weft.rtl.prove import Property, no_reset
from weft.rtl.shoal_header import HeaderDecoder
from weft.rtl.shoal_nic import Nic
from weft.rtl.shoal_rack import Rack, Station
from weft.rtl.shoal_seat import BACKLOG, NODE, Seat
from weft.rtl.voq import step

NODES, WORDS, DELAY = 3, 2, 1
DEPTH = 120  # cycles
CELLS = 2  # bits of the cells that a host gives at once


class Trusting(HeaderDecoder):
    """A decoder to which every cell is intact."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.intact.eq(1)
        return m


class Hasty(Seat):
    """A pair that does not wait to hear of a cell before it releases the next."""

    unheard = 0


def small(seat: type[Seat]) -> Rack:
    """The rack that is looked at."""
    nic = type("SmallNic", (Nic,), {"decoder": Trusting, "seat": seat})
    station = type("SmallStation", (Station,), {"nic": nic})
    rack = type("SmallRack", (Rack,), {"station": station})
    return rack(nodes=NODES, ports=4, delay=DELAY, words=WORDS, seats=NODES - 1, lanes=NODES - 1)


class QueuesAreBounded(Block):
    """Any cells for anybody at any time, and what must hold.

    Members: `gives`, `cells`  [i][k]  node i gets so many cells more for the k-th node after it
    """

    def __init__(self, rack: Rack, most: int):
        self.rack, self.most = rack, most
        n = rack.nodes
        super().__init__({"gives": In(1).array(n, n - 1), "cells": In(CELLS).array(n, n - 1)})

    def elaborate(self, platform):
        m = Module()
        rack = m.submodules.rack = self.rack
        n, index = rack.nodes, max((rack.seats - 1).bit_length(), 1)
        phase = Signal(range(rack.slot_cycles))
        m.d.comb += no_reset()
        m.d.sync += phase.eq(step(phase, rack.slot_cycles))
        for i in range(n):
            m.d.comb += Assert(rack.longest[i] <= self.most)
            for k in range(n - 1):
                opened = Signal(name=f"opened_{i}_{k}")
                with m.If((phase == 0) & self.gives[i][k]):  # a station takes a slot's commands in its first cycle
                    m.d.sync += opened.eq(1)
                m.d.comb += rack.commands[i][k].eq(Cat(
                    self.gives[i][k], ~opened, Const(k, index), Const((i + 1 + k) % n, NODE), self.cells[i][k],
                    Const(0, BACKLOG - CELLS),
                ))  # fmt: skip
        return m


def properties(design) -> list[Property]:
    """Of a rack, whatever its size: a small one is looked at."""
    return [
        Property(
            f"no queue holds more than {NODES - 1} cells ({NODES} nodes, slots of 8 cycles, any cells at any time)",
            lambda: QueuesAreBounded(small(Seat), NODES - 1), lambda: QueuesAreBounded(small(Hasty), NODES - 1),
            depth=DEPTH,
        )
    ]  # fmt: skip
