"""EEP's promise, by model checking: a frame that has begun never runs out of bytes, and no buffer overflows.

A groomer of two ports, small in everything that the promise does not depend on: segments of three bytes, preambles of
one and gaps of two. Frames of any length from a segment on may begin in any cycle at either port. The condition in
`bounds.playout`, with these sizes, says how long the receiver must wait; a receiver that waits a cycle less must fail,
and so must a buffer of four bytes.
"""

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib.wiring import In

from weft.rtl.groomer import Groomer
from weft.rtl.parts import Block
from weft.rtl.prove import Property, no_reset
from weft.rtl.segmenter import DELIMITER
from weft.wire import eep

PORTS, SEGMENT, PREAMBLE, GAP, PORT_BYTE, TRUNK_BYTE = 2, 3, 1, 2, 3, 1
LARGEST = SEGMENT + eep.HEADER.size
LEAST = max(0, (PORTS - 1) * LARGEST * TRUNK_BYTE - PREAMBLE * PORT_BYTE)  # docs/fabrics/groomer.md, step 3
BUFFER = 8
DEPTH = 36  # cycles: a second segment that has waited for the other port is due in the 34th


def small(playout: int = LEAST, buffer: int = BUFFER) -> Groomer:
    """The groomer that is looked at."""
    return Groomer(
        ports=PORTS, port_byte=PORT_BYTE, trunk_byte=TRUNK_BYTE, playout=playout, buffer=buffer, most=SEGMENT,
        preamble=PREAMBLE, gap=GAP, looped=True,
    )  # fmt: skip


class NeverRunsOut(Block):
    """Any frames at any time, and what must hold. Bytes decide nothing, so all are zero.

    Members
    go     bit p: a frame begins, if the gap is over
    more   bit p: a frame that has its first segment goes on
    """

    def __init__(self, groomer: Groomer, *, room: bool):
        """`room`: look at the buffers instead."""
        self.groomer, self.room = groomer, room
        super().__init__({"go": In(groomer.ports), "more": In(groomer.ports)})

    def elaborate(self, platform):
        m = Module()
        unit = m.submodules.groomer = self.groomer
        m.d.comb += [no_reset(), Assert((unit.overflow if self.room else unit.underrun) == 0)]
        for p in range(unit.ports):
            self.port(m, p)
        return m

    def port(self, m, p):
        """Octets of one port: a start delimiter, a segment at least, and an octet of silence."""
        unit = self.groomer
        tick = Signal(range(unit.port_byte), name=f"tick_{p}")
        octets = Signal(range(unit.most + 2), name=f"octets_{p}")  # of this frame, those beyond a segment not counted
        quiet = Signal(range(unit.gap * unit.port_byte + 1), name=f"quiet_{p}")
        inside, strobe = Signal(name=f"inside_{p}"), Signal(name=f"strobe_{p}")
        valid = Signal(name=f"valid_{p}")
        m.d.comb += [
            strobe.eq(inside & (tick == unit.port_byte - 1)), valid.eq((octets <= unit.most) | self.more[p]),
            unit.rx_strobe[p].eq(strobe), unit.rx_valid[p].eq(valid),
            unit.rx_data[p].eq(Mux(octets == 0, DELIMITER, 0)),
        ]  # fmt: skip
        with m.If(inside):
            m.d.sync += tick.eq(Mux(strobe, 0, tick + 1))
            with m.If(strobe):
                m.d.sync += octets.eq(Mux(octets <= unit.most, octets + 1, octets))
                with m.If(~valid):
                    m.d.sync += [inside.eq(0), quiet.eq((unit.gap - 1) * unit.port_byte)]
        with m.Elif(quiet != 0):
            m.d.sync += quiet.eq(quiet - 1)
        with m.Elif(self.go[p]):
            m.d.sync += [inside.eq(1), tick.eq(0), octets.eq(0)]


def properties(design) -> list[Property]:
    """Of a groomer by EEP; what stores whole frames has nothing to prove here."""
    if design.protocol != "eep":
        return []
    size = f"{PORTS} ports, segments of {SEGMENT} bytes, playout {LEAST}"
    return [
        Property(
            f"a frame that has begun never runs out of bytes ({size})",
            lambda: NeverRunsOut(small(), room=False), lambda: NeverRunsOut(small(LEAST - 1), room=False),
            depth=DEPTH,
        ),
        Property(
            f"every byte finds room in a buffer of {BUFFER} bytes ({size})",
            lambda: NeverRunsOut(small(), room=True), lambda: NeverRunsOut(small(buffer=4), room=True),
            depth=DEPTH,
        ),
    ]  # fmt: skip
