"""Shoal's header in gates: fields and checksum from the layout in `weft.wire.shoal`, without a clock.

The checksum stands in the header and covers the payload behind it, so whoever sends the header must know the payload's
part before the payload goes out. CRCs are linear: that part is the *remainder*, 8 bits kept with a waiting cell.
Encoder: fields and remainder in, the 64 bits of the header out. Decoder: header and remainder in, fields out, and
whether the checksum is right.
"""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.crc import after, linear, parity, raw, skipped
from weft.rtl.parts import Block
from weft.wire.shoal import CRC, CRC_AT, HEADER, PACKET

FIELDS = {name: width for name, width in HEADER.fields if name != "crc"}
WORD = 8 * HEADER.size


def checksum(header: Value, remainder: Value, payload: int) -> Value:
    """The CRC of a cell: of its header's other bytes, then `payload` bytes with this remainder."""
    covered = Cat(header[: 8 * CRC_AT], header[8 * (CRC_AT + 1) :])
    size = len(covered) // 8
    own = parity(linear(lambda x: raw(CRC, 0, x.to_bytes(size, "little")), 8 * size, CRC.width), covered)
    start = raw(CRC, CRC.init, bytes(size))
    return skipped(CRC, own ^ start, payload) ^ remainder ^ CRC.xor_out


def next_remainder(remainder: Value, word: Value) -> Value:
    """The remainder of a payload after one more word; it begins with zero."""
    return after(CRC, remainder, word)


class HeaderEncoder(Block):
    """Members: every field of the header but the CRC; `remainder` of the payload; `header` out."""

    def __init__(self, cell: int = 64):
        require(HEADER.size <= cell <= PACKET, "cell", f"from {HEADER.size} to {PACKET:,} bytes", cell)
        self.cell = cell
        super().__init__(
            {name: In(width) for name, width in FIELDS.items()} | {"remainder": In(8), "header": Out(WORD)}
        )

    def elaborate(self, platform):
        m = Module()
        view = View(HEADER.layout(), Signal(WORD, name="fields"))
        m.d.comb += [view[name].eq(getattr(self, name)) for name in FIELDS]
        m.d.comb += self.header.eq(view.as_value())
        crc = self.header[8 * CRC_AT : 8 * CRC_AT + CRC.width]
        m.d.comb += crc.eq(checksum(view.as_value(), self.remainder, self.cell - HEADER.size))
        return m


class HeaderDecoder(Block):
    """Members: `header` and `remainder` in; every field of the header but the CRC; `empty`, `intact` out."""

    def __init__(self, cell: int = 64):
        require(HEADER.size <= cell <= PACKET, "cell", f"from {HEADER.size} to {PACKET:,} bytes", cell)
        self.cell = cell
        super().__init__(
            {name: Out(width) for name, width in FIELDS.items()}
            | {"header": In(WORD), "remainder": In(8), "empty": Out(1), "intact": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        view = View(HEADER.layout(), self.header)
        m.d.comb += [getattr(self, name).eq(view[name]) for name in FIELDS]
        m.d.comb += [
            self.empty.eq(self.dst == self.src),
            self.intact.eq(view.crc == checksum(self.header, self.remainder, self.cell - HEADER.size)),
        ]
        return m
