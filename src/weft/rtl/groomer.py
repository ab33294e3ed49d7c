"""The groomer: ports onto a trunk and back, byte by byte, by EEP or, storing whole frames, by IEEE 802.1ad.

One clock; a byte takes `port_byte` cycles on a port and `trunk_byte` on the trunk, as in the model's ticks. Against the
model, in which nothing takes time but bytes, the trunk is not late and a port is late by one cycle, by two in 802.1ad:
the model's `fixed`. Four ports of 100 Mb/s on 1 Gb/s are 10 cycles and one of 125 MHz, 8 bits wide as in GMII.
"""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.demultiplexer import Demultiplexer, Untagger
from weft.rtl.multiplexer import Multiplexer, Tagger
from weft.rtl.parts import Block, place
from weft.rtl.reassembler import Reassembler
from weft.rtl.segmenter import Segmenter
from weft.wire import eep, ethernet


class Groomer(Block):
    """Members
    rx_strobe, rx_valid, rx_data   [p]  octets into the ports, with what is between frames
    trunk_valid, trunk_strobe, trunk_data   what goes out on the trunk
    far_valid, far_strobe, far_data         what comes in from it
    tx_strobe, tx_valid, tx_data   [p]  octets out of the ports, preambles first
    underrun, overflow             bit p: a frame of the port ran out of bytes; a byte has found no room
    lost                           framing was lost, or a frame of 802.1ad damaged
    """

    def __init__(
        self, *, protocol: str = "eep", ports: int = 4, port_byte: int = 10, trunk_byte: int = 1, playout: int = 0,
        buffer: int = 256, most: int | None = None, preamble: int = ethernet.PREAMBLE, gap: int = ethernet.GAP,
        looped: bool = False,
    ):  # fmt: skip
        """`most` bytes of a unit; `looped`: what goes out on the trunk comes back in."""
        require(port_byte >= trunk_byte >= 1, "trunk_byte", "from 1 to the cycles of a byte on a port", trunk_byte)
        self.protocol, self.ports, self.port_byte, self.trunk_byte = protocol, ports, port_byte, trunk_byte
        self.whole = protocol != "eep"
        self.most = most or (eep.MOST if self.whole else eep.SEGMENT)
        self.playout, self.buffer, self.preamble, self.gap, self.looped = playout, buffer, preamble, gap, looped
        far = {} if looped else {"far_valid": In(1), "far_strobe": In(1), "far_data": In(8)}
        super().__init__({
            "rx_strobe": In(ports), "rx_valid": In(ports), "rx_data": In(8).array(ports),
            "trunk_valid": Out(1), "trunk_strobe": Out(1), "trunk_data": Out(8), **far,
            "tx_strobe": Out(ports), "tx_valid": Out(ports), "tx_data": Out(8).array(ports),
            "underrun": Out(ports), "overflow": Out(ports), "lost": Out(1),
        })  # fmt: skip

    @property
    def late(self) -> int:
        """Cycles that a port is behind the model."""
        return 2 if self.whole else 1

    def elaborate(self, platform):
        m = Module()
        share = dict(most=self.most, ports=self.ports)
        onto, off = (Tagger, Untagger) if self.whole else (Multiplexer, Demultiplexer)
        turn = m.submodules.multiplexer = onto(byte=self.trunk_byte, **share)
        spread = m.submodules.demultiplexer = off(**share)
        trunk = turn.valid, turn.strobe, turn.octet
        valid, strobe, octet = trunk if self.looped else (self.far_valid, self.far_strobe, self.far_data)
        m.d.comb += [spread.valid.eq(valid), spread.strobe.eq(strobe), spread.octet.eq(octet)]
        m.d.comb += [self.trunk_valid.eq(turn.valid), self.trunk_strobe.eq(turn.strobe), self.trunk_data.eq(turn.octet)]
        m.d.comb += self.lost.eq(spread.lost)
        for p in range(self.ports):
            port = dict(most=self.most, buffer=self.buffer, whole=self.whole)
            into = place(m, f"segmenter_{p}", Segmenter(**port))
            out = place(m, f"reassembler_{p}", Reassembler(
                **port, byte=self.port_byte, playout=self.playout, preamble=self.preamble, gap=self.gap
            ))  # fmt: skip
            m.d.comb += [
                into.strobe.eq(self.rx_strobe[p]), into.valid.eq(self.rx_valid[p]), into.octet.eq(self.rx_data[p]),
                turn.ready[p].eq(into.ready), turn.units[p].eq(into.unit), turn.firsts[p].eq(into.first),
                into.take.eq(turn.take[p]), into.pop.eq(turn.pop[p]),
                out.write.eq(spread.write[p]), out.octet.eq(spread.octet), out.commit.eq(spread.commit[p]),
                out.unit.eq(spread.unit), out.undo.eq(spread.undo[p]),
                self.tx_strobe[p].eq(out.strobe), self.tx_valid[p].eq(out.valid), self.tx_data[p].eq(out.out),
                self.underrun[p].eq(out.underrun), self.overflow[p].eq(into.overflow | out.overflow),
            ]  # fmt: skip
        return m
