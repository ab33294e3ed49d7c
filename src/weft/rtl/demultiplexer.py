"""From the trunk to the ports: which port a byte is for, and when a unit is whole.

A byte is given by `strobe`, in the last cycle in which it is on the trunk; `valid` is low while the trunk is silent.
In the cycle of a byte it is passed on; with the last byte of a segment, or one cycle after the last of a frame of
802.1ad, `commit` says whose the unit is.

A header that no sender makes means that where EEP frames begin is no longer known. The codec in `weft.wire` then looks
for a frame with a right check sequence, which takes a buffer for a whole one; here everything is passed over until the
trunk falls silent, after which an EEP frame begins. A segment without the beginning of its frame is passed over too.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from weft.rtl.crc import after
from weft.rtl.parts import Block
from weft.rtl.segmenter import DELIMITER, RESIDUE, unit_layout
from weft.wire import eep, ethernet
from weft.wire.crc import CRC32


class FromTrunk(Block):
    """Members
    valid, strobe, octet   the trunk
    write                  bit p: the byte is for port p
    commit, unit           bit p: the bytes since the last are a unit of port p, and what is known of it
    undo                   bit p: they are none
    lost                   framing is lost, or a frame was damaged
    """

    def __init__(self, *, ports: int, most: int):
        self.ports, self.most = ports, most
        self.layout = unit_layout(most)
        super().__init__({
            "valid": In(1), "strobe": In(1), "octet": In(8), "write": Out(ports), "commit": Out(ports),
            "undo": Out(ports), "unit": Out(self.layout.size), "lost": Out(1),
        })  # fmt: skip


class Demultiplexer(FromTrunk):
    """EEP's: `most` is the bytes of a segment."""

    def elaborate(self, platform):
        m = Module()
        head, second = View(eep.HEADER.layout(), self.octet), View(eep.LENGTH.layout(), self.octet)
        unit = View(self.layout, self.unit)
        kept = Signal(self.layout.size)
        known = View(self.layout, kept)
        chosen = Signal(self.ports)
        opened = Signal(self.ports)
        whose = Signal(self.ports)
        left = Signal(range(self.most + 1))
        wrong = Signal()
        m.d.comb += [whose.eq(Cat(head.link == p for p in range(self.ports))), unit.eq(known)]

        def lose():
            return [wrong.eq(1), self.undo.eq((1 << self.ports) - 1)]

        with m.FSM():
            with m.State("header"), m.If(self.strobe):
                m.d.sync += [known.sof.eq(head.sof), known.eof.eq(head.eof), known.size.eq(self.most)]
                # a segment of a port that is not here, or without the beginning of its frame, is passed over
                m.d.sync += [chosen.eq(Mux(head.sof, whose, whose & opened)), left.eq(self.most)]
                with m.If(head.reserved | head.len & ~head.eof):
                    m.d.comb += lose()
                    m.next = "lost"
                with m.Else():
                    m.d.sync += opened.eq(Mux(head.eof, opened & ~whose, Mux(head.sof, opened | whose, opened)))
                    m.next = "payload"
                    with m.If(head.len):
                        m.next = "length"
            with m.State("length"):
                with m.If(~self.valid):
                    m.d.comb += lose()
                    m.next = "header"
                with m.Elif(self.strobe):
                    m.d.sync += [known.size.eq(second.length), left.eq(second.length)]
                    m.next = "payload"
                    with m.If((second.reserved != 0) | (second.length == 0) | (second.length >= self.most)):
                        m.d.comb += lose()
                        m.next = "lost"
            with m.State("payload"):
                with m.If(~self.valid):
                    m.d.comb += lose()
                    m.next = "header"
                with m.Elif(self.strobe):
                    m.d.comb += self.write.eq(chosen)
                    m.d.sync += left.eq(left - 1)
                    with m.If(left == 1):
                        m.d.comb += self.commit.eq(chosen)
                        m.next = "header"
            with m.State("lost"), m.If(~self.valid):
                m.next = "header"
        with m.If(wrong):
            m.d.sync += [self.lost.eq(1), opened.eq(0)]
        return m


class Untagger(FromTrunk):
    """802.1ad's: `most` is the bytes of a frame without its tag.

    The tag stands behind the addresses, so every port writes a frame and all but one take it back.
    """

    def elaborate(self, platform):
        m = Module()
        tag, all_ports = ethernet.TAG.size, (1 << self.ports) - 1
        inside = Signal()
        tagged = Signal()
        ends = Signal()
        good = Signal()
        count = Signal(range(self.most + tag + 2))
        mark = Signal(8 * tag)
        fields = View(ethernet.TAG.layout(), mark)
        register = Signal(CRC32.width)
        unit = View(self.layout, self.unit)
        whose = Signal(self.ports)
        m.d.comb += [
            tagged.eq((count >= ethernet.ADDRESSES) & (count < ethernet.ADDRESSES + tag)),
            ends.eq(inside & ~self.valid),
            whose.eq(Cat(fields.vid == p + 1 for p in range(self.ports))),
            good.eq(
                (register == RESIDUE) & (fields.tpid == ethernet.SERVICE) & whose.any()
                & (count <= self.most + tag) & (count >= ethernet.LEAST + tag)
            ),
            unit.sof.eq(1), unit.eof.eq(1), unit.size.eq(count - tag),
            self.commit.eq(Mux(ends & good, whose, 0)), self.undo.eq(Mux(ends, all_ports & ~self.commit, 0)),
            self.write.eq(Mux(self.strobe & self.valid & inside & ~tagged, all_ports, 0)),
        ]  # fmt: skip
        with m.If(~self.valid):
            m.d.sync += inside.eq(0)
        with m.Elif(self.strobe):
            with m.If(~inside):
                m.d.sync += [inside.eq(self.octet == DELIMITER), count.eq(0), register.eq(CRC32.init)]
            with m.Else():
                m.d.sync += count.eq(count + (count <= self.most + tag))
                m.d.sync += register.eq(after(CRC32, register, self.octet))
                with m.If(tagged):
                    m.d.sync += mark.eq(Cat(self.octet, mark)[: 8 * tag])
        with m.If(ends & ~good):
            m.d.sync += self.lost.eq(1)
        return m
