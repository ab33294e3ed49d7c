"""A port into the groomer: octets of Ethernet frames in, units for the trunk out (HOTI '09, §VI-A).

A unit is a segment in EEP and a whole frame in 802.1ad. An octet is given by `strobe` in the cycle in which it has
come, those between frames too, with `valid` low. Whether a unit is the last of its frame is known when the octet after
it has come; `ready` shows one cycle later. Preambles end with the start delimiter and are not kept, nor is silence.

A frame of 802.1ad is dropped if its check sequence is wrong or it finds no room. EEP sends the first bytes before the
last have come, so the check is left to whoever gets the frame.
"""

from amaranth.hdl import Module, Signal
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Out

from weft.rtl.crc import after, raw
from weft.rtl.parts import Block
from weft.rtl.rings import Fifo, Ring
from weft.wire import ethernet
from weft.wire.crc import CRC32

PREAMBLE, DELIMITER = 0x55, 0xD5  # octets before a frame, the last of which says that it begins (IEEE 802.3, §3.2)
RESIDUE = raw(CRC32, CRC32.init, bytes(1) + ethernet.fcs(bytes(1)))  # of every frame with its check sequence behind it


def unit_layout(most: int) -> StructLayout:
    """What is known of a unit of at most so many bytes: whether it is the first or last of its frame, and its bytes."""
    return StructLayout({"sof": 1, "eof": 1, "size": most.bit_length()})


def most_units(buffer: int, most: int, whole: bool) -> int:
    """Units that so many bytes can be: frames are not shorter than a segment, so every other one may be of one byte."""
    return buffer // ethernet.LEAST if whole else 2 * ((buffer - 1) // (most + 1)) + 1


class Segmenter(Block):
    """Members
    strobe, valid, octet   what comes in
    ready, unit            whether a unit waits, and what is known of the first
    take                   the first unit leaves
    first, pop             the first byte of all that wait; it leaves
    overflow               a byte has found no room, now or before
    """

    def __init__(self, *, most: int, buffer: int, whole: bool):
        """`most` bytes of a unit; with `whole`, units are frames, longer ones are dropped."""
        self.most, self.buffer, self.whole = most, buffer, whole
        self.layout = unit_layout(most)
        super().__init__({
            "strobe": In(1), "valid": In(1), "octet": In(8), "ready": Out(1), "unit": Out(self.layout.size),
            "take": In(1), "first": Out(8), "pop": In(1), "overflow": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        ring = m.submodules.ring = Ring(self.buffer, block=self.whole)
        units = m.submodules.units = Fifo(self.layout.size, most_units(self.buffer, self.most, self.whole))
        inside = Signal()
        sof = Signal()
        bad = Signal()
        count = Signal(range(self.most + 1))
        unit = View(self.layout, units.word)
        full = Signal()
        ends = Signal()
        comes = Signal()
        m.d.comb += [
            full.eq(count == self.most), comes.eq(self.strobe & inside & self.valid),
            ends.eq(self.strobe & inside & ~self.valid & (count != 0)),
            ring.octet.eq(self.octet), ring.skip.eq(self.pop), self.first.eq(ring.first),
            units.take.eq(self.take), self.ready.eq(units.ready), self.unit.eq(units.first),
            unit.sof.eq(sof), unit.eof.eq(ends), unit.size.eq(count),
        ]  # fmt: skip
        with m.If(self.strobe):
            with m.If(~self.valid):
                m.d.sync += inside.eq(0)
            with m.Elif(~inside):
                m.d.sync += [inside.eq(self.octet == DELIMITER), sof.eq(1), count.eq(0)]
        with m.If(ring.write & ring.full | units.write & units.full):
            m.d.sync += self.overflow.eq(1)
        if self.whole:
            register = Signal(CRC32.width)
            with m.If(~inside):
                m.d.sync += [register.eq(CRC32.init), bad.eq(0)]
            with m.If(comes):
                m.d.sync += [register.eq(after(CRC32, register, self.octet)), count.eq(count + ~full)]
                with m.If(full | ring.full):
                    m.d.sync += bad.eq(1)
            good = ~bad & (register == RESIDUE) & (count >= ethernet.LEAST)
            m.d.comb += [
                ring.write.eq(comes & ~full), ring.keep.eq(ends & good), ring.undo.eq(ends & ~good),
                units.write.eq(ends & good),
            ]  # fmt: skip
        else:
            m.d.comb += [ring.write.eq(comes), ring.keep.eq(1), units.write.eq(ends | comes & full)]
            with m.If(comes):
                m.d.sync += count.eq(count + 1)
                with m.If(full):
                    m.d.sync += [count.eq(1), sof.eq(0)]
        return m
