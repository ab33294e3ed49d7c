"""A switch of N ports: queues at every input, an iSLIP scheduler, and a multiplexer at every output (paper, Fig. 1, 4).

A slot is `iterations` cycles. In its last cycle each input may present a cell; at the edge that ends it the cell joins
its queues, is asked for in the next slot, and leaves if matched: out of private queues one slot and one cycle after it
was presented, out of a shared memory two cycles later. That is eq. (6) with C_MBS = 3: the write, the read of the
memory, and the multiplexer. `cells_out` changes once per slot and holds.

The cell is one word of W bits (Table I): a bit per output, data, and the number of the input, highest. The switch reads
the bits of the outputs and nothing else.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.arbiter import select
from weft.rtl.islip import Islip
from weft.rtl.parts import Block, place
from weft.rtl.voq import PrivateQueues, SharedQueues

QUEUES = {"voq": PrivateQueues, "shared": SharedQueues}


def source_bits(ports: int) -> int:
    """Bits that say which input a cell came from."""
    return max((ports - 1).bit_length(), 1)


def cell_layout(ports: int, width: int) -> StructLayout:
    """Table I: destination bits, data, source."""
    data = width - ports - source_bits(ports)
    least = ports + source_bits(ports) + 1
    require(data >= 1, "width", f"at least {least} bits for cells between {ports} ports", width)
    return StructLayout({"outputs": ports, "data": data, "source": source_bits(ports)})


class OutputSelector(Block):
    """The multiplexer of one output, and its register.

    Members
    strobe   choose anew at the next edge
    chosen   one-hot: the input whose cell leaves; none is nothing
    cells    [i]  what the inputs offer
    valid, left   what leaves
    """

    def __init__(self, ports: int, width: int):
        self.ports, self.width = ports, width
        super().__init__({
            "strobe": In(1), "chosen": In(ports), "cells": In(width).array(ports), "valid": Out(1), "left": Out(width),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        with m.If(self.strobe):
            m.d.sync += [self.valid.eq(self.chosen.any()), self.left.eq(select(self.chosen, self.cells))]
        return m


class Switch(Block):
    """Members
    valid_in, cells_in     [i]  a cell is presented
    valid_out, cells_out   [j]  a cell leaves
    granted                [i] bit j   the matching of the slot that ended last
    refused                [i] bit j   copies that found no room, of the cell presented last
    last                   this is the last cycle of a slot
    """

    def __init__(self, *, ports: int, buffers: str = "voq", iterations: int = 1, depth: int = 64, width: int = 256):
        require(buffers in QUEUES, "buffers", f"one of {', '.join(QUEUES)}", buffers)
        self.layout = cell_layout(ports, width)
        self.ports, self.buffers, self.iterations, self.depth, self.width = ports, buffers, iterations, depth, width
        super().__init__({
            "valid_in": In(ports), "cells_in": In(width).array(ports),
            "valid_out": Out(ports), "cells_out": Out(width).array(ports),
            "granted": Out(ports).array(ports), "refused": Out(ports).array(ports), "last": Out(1),
        })  # fmt: skip

    ratio, clock = 1, "sync"  # one clock
    grants = True  # there is a matching to compare

    @property
    def slot_cycles(self) -> int:
        """Cycles of a slot."""
        return self.iterations

    def cycle_of(self, slot: int) -> int:
        """The cycle in which the matching of a slot is made."""
        return (slot + 2) * self.iterations - 1

    def shows(self, slot: int) -> int:
        """The cycle after which a cell that was matched in `slot` is at its output."""
        return self.cycle_of(slot) + QUEUES[self.buffers].LATENCY

    @property
    def latency(self) -> int:
        """Cycles from the edge at which a cell is presented to the edge after which it shows at an output."""
        return 1 + self.iterations + QUEUES[self.buffers].LATENCY

    @property
    def rows(self) -> int:
        """Slots after which the cells of a slot are seen at the outputs, when they are looked at at its end."""
        return 1 + -(-QUEUES[self.buffers].LATENCY // self.iterations)

    def elaborate(self, platform):
        m = Module()
        n = self.ports
        scheduler = m.submodules.scheduler = Islip(n, self.iterations)
        m.d.comb += self.last.eq(scheduler.last)
        kind = QUEUES[self.buffers]
        inputs = []
        for i in range(n):
            unit = place(m, f"input_{i}", kind(n, self.depth, self.width))
            m.d.comb += [
                unit.write.eq(self.valid_in[i] & scheduler.last),
                unit.outputs.eq(self.cells_in[i][:n]),
                unit.cell.eq(self.cells_in[i]),
                unit.pop.eq(scheduler.match[i] & scheduler.last.replicate(n)),
                scheduler.requests[i].eq(unit.waiting),
            ]
            with m.If(scheduler.last):
                m.d.sync += [self.granted[i].eq(scheduler.match[i]), self.refused[i].eq(unit.refused)]
            inputs.append(unit)

        strobe, matches = scheduler.last, [scheduler.match[i] for i in range(n)]
        for stage in range(kind.LATENCY):  # the matching waits for the cells on their way out of the memory
            later = Signal(name=f"strobe_{stage}")
            delayed = [Signal(n, name=f"match_{stage}_{i}") for i in range(n)]
            m.d.sync += [later.eq(strobe), *(new.eq(old) for new, old in zip(delayed, matches, strict=True))]
            strobe, matches = later, delayed
        for j in range(n):
            output = place(m, f"output_{j}", OutputSelector(n, self.width))
            m.d.comb += [
                output.strobe.eq(strobe), output.chosen.eq(Cat(matches[i][j] for i in range(n))),
                self.valid_out[j].eq(output.valid), self.cells_out[j].eq(output.left),
                *(output.cells[i].eq(unit.left) for i, unit in enumerate(inputs)),
            ]  # fmt: skip
        return m
