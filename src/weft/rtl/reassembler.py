"""A port out of the groomer: units off the trunk in, Ethernet frames out, each begun before its end has come (EEP).

A frame begins `playout` cycles after its first unit was committed, or when the gap after the one before is over; two
cycles of pipeline are in between. A byte is on the port for `byte` cycles, with `strobe` in the last. Once begun, a
frame goes out byte after byte; if the next segment is not there when its first byte is due, the port falls silent,
`underrun` is high for a cycle, and the rest of the frame is passed over. `weft.fabrics.merchant.bounds` says which
playout makes that impossible.

With `whole`, units are frames of 802.1ad from which the tag was taken, and the last four bytes are made anew.
"""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from weft.rtl.crc import after
from weft.rtl.parts import Block
from weft.rtl.rings import Fifo, Ring
from weft.rtl.segmenter import DELIMITER, PREAMBLE, most_units, unit_layout
from weft.wire import ethernet
from weft.wire.crc import CRC32


class Reassembler(Block):
    """Members
    write, octet           a byte of a unit
    commit, unit, undo     the unit is whole, and what is known of it; or it is none
    valid, strobe, out     the port
    underrun               a frame that has begun runs out of bytes
    overflow               a byte has found no room, now or before
    """

    def __init__(
        self, *, most: int, buffer: int, whole: bool, byte: int, playout: int, preamble: int = ethernet.PREAMBLE,
        gap: int = ethernet.GAP,
    ):  # fmt: skip
        self.most, self.buffer, self.whole, self.byte, self.playout = most, buffer, whole, byte, playout
        self.preamble, self.gap = preamble, gap
        self.layout = unit_layout(most)
        super().__init__({
            "write": In(1), "octet": In(8), "commit": In(1), "unit": In(self.layout.size), "undo": In(1),
            "valid": Out(1), "strobe": Out(1), "out": Out(8), "underrun": Out(1), "overflow": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        ring = m.submodules.ring = Ring(self.buffer, block=self.whole)
        units = m.submodules.units = Fifo(self.layout.size, most_units(self.buffer, self.most, self.whole))
        unit = View(self.layout, units.first)
        spoiled = Signal()  # a byte of this unit found no room
        no_room = Signal()
        m.d.comb += no_room.eq(ring.write & ring.full | self.commit & units.full)
        with m.If(no_room):
            m.d.sync += [self.overflow.eq(1), spoiled.eq(1)]
        with m.If(self.commit | self.undo):
            m.d.sync += spoiled.eq(0)
        keep = self.commit & ~spoiled & ~no_room
        m.d.comb += [
            ring.write.eq(self.write), ring.octet.eq(self.octet), ring.keep.eq(keep),
            ring.undo.eq(self.undo | self.commit & ~keep), units.write.eq(keep), units.word.eq(self.unit),
        ]  # fmt: skip

        may, begin = self._playout(m, units, keep & View(self.layout, self.unit).sof)
        tick = Signal(range(max(self.byte, 2)))
        step = Signal()
        busy = Signal()
        last = Signal()
        count = Signal(range(max(self.preamble, self.gap) + 1))
        left = Signal(range(self.most + 1))
        ends = tick == self.byte - 1
        m.d.comb += [step.eq(~busy | ends), self.strobe.eq(self.valid & ends)]
        m.d.sync += [tick.eq(Mux(step, 0, tick + 1)), self.underrun.eq(0)]
        body = Signal()  # the first byte waiting goes out
        here = Signal(range(self.most + 1))  # bytes left of its unit, it included

        def next_unit():
            m.d.comb += [units.take.eq(1), body.eq(1), here.eq(unit.size)]
            m.d.sync += last.eq(unit.eof)

        def rest():
            """Begin a frame, pass over what is left of one that ran out, or wait."""
            m.next = "rest"
            m.d.sync += [busy.eq(0), self.valid.eq(0)]
            with m.If(units.ready & ~unit.sof):
                m.d.comb += [units.take.eq(1), ring.skip.eq(unit.size)]
            with m.Elif(may & units.ready):
                m.d.comb += begin.eq(1)
                m.d.sync += [busy.eq(1), self.valid.eq(1), count.eq(1)]
                m.d.sync += self.out.eq(PREAMBLE if self.preamble > 1 else DELIMITER)
                m.next = "preamble"

        with m.If(step), m.FSM():
            with m.State("rest"):
                rest()
            with m.State("preamble"):
                m.d.sync += [count.eq(count + 1), self.out.eq(Mux(count == self.preamble - 1, DELIMITER, PREAMBLE))]
                with m.If(count == self.preamble):
                    next_unit()
                    m.next = "body"
            with m.State("body"):
                with m.If(left != 0):
                    m.d.comb += [body.eq(1), here.eq(left)]
                with m.Elif(~last & units.ready & ~unit.sof):
                    next_unit()
                with m.Else():
                    m.d.sync += [self.valid.eq(0), count.eq(1), self.underrun.eq(~last)]
                    m.next = "gap"
            with m.State("gap"):
                m.d.sync += count.eq(count + 1)
                with m.If(count == self.gap):
                    rest()
        with m.If(body):
            m.d.comb += ring.skip.eq(1)
            m.d.sync += [left.eq(here - 1), self.out.eq(ring.first)]
            if self.whole:
                self._check_sequence(m, ring.first, here)
        return m

    def _playout(self, m, units, comes):
        """`may`: a frame may begin whose first unit has come, and waited; it is taken by `begin`."""
        may = Signal()
        begin = Signal()
        waited = Signal(range(units.depth + 1))
        due = Signal()
        m.d.comb += may.eq((waited != 0) | due)
        m.d.sync += waited.eq(waited + due - begin)
        if self.playout == 0:
            m.d.sync += due.eq(comes)
            return may, begin
        now = Signal(range(2 * self.playout + 2))  # it may wrap: nothing waits for longer than playout
        # a frame begins with a whole segment, which takes at least a cycle for each byte
        stamps = m.submodules.stamps = Fifo(len(now), min(units.depth, self.playout // (self.most + 1) + 2))
        m.d.sync += now.eq(now + 1)
        m.d.comb += [
            stamps.write.eq(comes), stamps.word.eq(now), stamps.take.eq(due),
            due.eq(stamps.ready & ((now - stamps.first)[: len(now)] == self.playout + 1)),
        ]  # fmt: skip
        return may, begin

    def _check_sequence(self, m, byte, here):
        """Put a new check sequence in the place of the last bytes."""
        register = Signal(CRC32.width, init=CRC32.init)
        sums = Array((register ^ CRC32.xor_out).word_select(ethernet.FCS - k, 8) for k in range(1, ethernet.FCS + 1))
        with m.If(here > ethernet.FCS):
            m.d.sync += register.eq(after(CRC32, register, byte))
        with m.Else():
            m.d.sync += self.out.eq(sums[(here - 1)[:2]])
            with m.If(here == 1):
                m.d.sync += register.eq(CRC32.init)
