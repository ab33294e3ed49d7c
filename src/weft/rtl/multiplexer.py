"""From the ports onto the trunk, round robin, one unit each: EEP frames, or tagged frames of IEEE 802.1ad.

A byte takes `byte` cycles on the trunk, with `valid` high and `strobe` in the last of them. A unit that is ready in one
cycle shows its first byte after the next edge, if the trunk is free then. EEP frames follow one another with nothing
between them: the header byte, a second one if the segment is short, the segment. A frame of 802.1ad goes out with its
preamble, its tag after the addresses, a new check sequence, and the gap.
"""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from weft.rtl.arbiter import beyond, first, select
from weft.rtl.crc import after
from weft.rtl.parts import Block
from weft.rtl.segmenter import DELIMITER, PREAMBLE, unit_layout
from weft.wire import eep, ethernet
from weft.wire.crc import CRC32


class RoundRobin(Block):
    """What both share: whose turn it is, and how long a byte takes.

    Members
    ready, units      [p]  whether port p has a unit, and what is known of it
    firsts            [p]  the first byte of its buffer
    take, pop         bit p: its unit is taken; its first byte is
    valid, strobe, octet   the trunk
    """

    def __init__(self, *, ports: int, byte: int, most: int):
        self.ports, self.byte, self.most = ports, byte, most
        self.layout = unit_layout(most)
        super().__init__({
            "ready": In(ports), "units": In(self.layout.size).array(ports), "firsts": In(8).array(ports),
            "take": Out(ports), "pop": Out(ports), "valid": Out(1), "strobe": Out(1), "octet": Out(8),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        busy = Signal()
        step = Signal()
        more = Signal()
        tick = Signal(range(max(self.byte, 2)))
        mask = Signal(self.ports, init=(1 << self.ports) - 1)
        # whose turn it would be, and whose it is
        now = Signal(self.ports)
        chosen = Signal(self.ports)
        # a unit begins; its next byte goes out
        begin = Signal()
        go = Signal()
        ends = tick == self.byte - 1
        m.d.comb += [
            step.eq(~busy | ends), self.strobe.eq(self.valid & ends), now.eq(first(self.ready, mask)),
            begin.eq(step & ~(busy & more) & self.ready.any()), go.eq(step & busy & more),
            self.take.eq(Mux(begin, now, 0)),
        ]  # fmt: skip
        m.d.sync += tick.eq(Mux(step, 0, tick + 1))
        with m.If(begin):
            m.d.sync += [busy.eq(1), chosen.eq(now), mask.eq(beyond(now))]
        with m.Elif(step & ~go):
            m.d.sync += [busy.eq(0), self.valid.eq(0)]
        unit = View(self.layout, Signal(self.layout.size, name="taken"))
        m.d.comb += unit.as_value().eq(select(now, self.units))
        byte = Signal(8)
        m.d.comb += byte.eq(select(chosen, self.firsts))
        self.bytes(m, begin=begin, go=go, more=more, unit=unit, now=now, chosen=chosen, byte=byte)
        return m


class Multiplexer(RoundRobin):
    """EEP's: `most` is the bytes of a segment."""

    def link(self, p: int) -> int:
        """The virtual link of a port."""
        return p

    def bytes(self, m, *, begin, go, more, unit, now, chosen, byte):
        """Say which byte comes next."""
        head = View(eep.HEADER.layout(), Signal(8, name="head"))
        second = View(eep.LENGTH.layout(), Signal(8, name="second"))
        left = Signal(range(self.most + 1))
        short = Signal()
        m.d.comb += [
            head.sof.eq(unit.sof), head.eof.eq(unit.eof), head.len.eq(unit.size < self.most),
            head.link.eq(select(now, [Const(self.link(p), 4) for p in range(self.ports)])), second.length.eq(left),
            more.eq(short | (left != 0)), self.pop.eq(Mux(go & ~short, chosen, 0)),
        ]  # fmt: skip
        with m.If(begin):
            m.d.sync += [self.valid.eq(1), self.octet.eq(head.as_value()), short.eq(head.len), left.eq(unit.size)]
        with m.Elif(go):
            m.d.sync += self.octet.eq(Mux(short, second.as_value(), byte))
            m.d.sync += [short.eq(0), left.eq(left - ~short)]


class Tagger(RoundRobin):
    """802.1ad's: `most` is the bytes of a frame. The tag of port p has vid p + 1."""

    def bytes(self, m, *, begin, go, more, unit, now, chosen, byte):
        """Say which byte comes next."""
        pre, tag = ethernet.PREAMBLE, ethernet.TAG.size
        at = Signal(range(pre + self.most + tag + ethernet.GAP + 1))  # the byte that goes out next, preamble first
        size = Signal(range(self.most + 1))
        mark = View(ethernet.TAG.layout(), Signal(8 * tag, name="mark"))
        register = Signal(CRC32.width)
        m.d.comb += [
            mark.vid.eq(select(chosen, [Const(p + 1, 12) for p in range(self.ports)])),
            mark.tpid.eq(ethernet.SERVICE), more.eq(at != size + (pre + tag + ethernet.GAP)),
        ]  # fmt: skip
        tags = Array(mark.as_value().word_select(tag - 1 - k, 8) for k in range(tag))  # highest byte first
        sums = Array((register ^ CRC32.xor_out).word_select(k, 8) for k in range(ethernet.FCS))
        after_addresses = pre + ethernet.ADDRESSES
        fresh = Signal(8)
        body = Signal()
        tagged = Signal()
        old = Signal()
        m.d.comb += [
            tagged.eq((at >= after_addresses) & (at < after_addresses + tag)),
            body.eq((at >= pre) & (at < size + (pre + tag - ethernet.FCS))),
            old.eq((at >= size + (pre + tag - ethernet.FCS)) & (at < size + (pre + tag))),
            fresh.eq(Mux(tagged, tags[(at - after_addresses)[:2]], byte)),
            self.pop.eq(Mux(go & (body & ~tagged | old), chosen, 0)),  # the old check sequence leaves unseen
        ]
        with m.If(begin):
            m.d.sync += [
                self.valid.eq(1), self.octet.eq(PREAMBLE), at.eq(1), size.eq(unit.size), register.eq(CRC32.init)
            ]  # fmt: skip
        with m.Elif(go):
            m.d.sync += at.eq(at + 1)
            with m.If(body):
                m.d.sync += [self.octet.eq(fresh), register.eq(after(CRC32, register, fresh))]
            with m.Elif(old):
                m.d.sync += self.octet.eq(sums[(at - size - (pre + tag - ethernet.FCS))[:2]])
            with m.Elif(at < pre):
                m.d.sync += self.octet.eq(Mux(at == pre - 1, DELIMITER, PREAMBLE))
            with m.Else():
                m.d.sync += self.valid.eq(0)
