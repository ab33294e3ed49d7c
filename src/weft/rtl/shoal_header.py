"""Shoal's header in gates: fields and checksum from the layout in `weft.wire.shoal`, without a clock.

The checksum stands in the header and covers the payload behind it, so whoever sends the header must know the payload's
part before the payload goes out. CRCs are linear: that part is the *remainder*, 8 bits kept with a waiting cell.
Encoder: fields and remainder in, the bits of the header out. Decoder: header and remainder in, fields out, and whether
the checksum is right. A header of Fig. 5 is one word of 64 bits; what a wider one has beyond it, the *rest*, are the
lowest bytes of the cell's second word.
"""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.crc import after, linear, parity, raw, skipped
from weft.rtl.parts import Block
from weft.wire.format import Format
from weft.wire.shoal import CRC, PACKET, header

WORD = 8  # bytes
LARGEST = 2 * WORD  # bytes of a header


def fields_of(layout: Format) -> dict[str, int]:
    """Name -> bits of every field that a sender decides on."""
    return {name: width for name, width in layout.fields if name not in ("crc", "spare")}


def layout_of(values: int, news: int) -> Format:
    """The layout of a header, if it fits into two words."""
    most = 8 * LARGEST - CRC.width - sum(fields_of(header(values)).values())
    require(news <= most, "nodes", f"at most {most} where headers carry news of failures", news)
    return header(values, news)


def checksum(bits: Value, remainder: Value, payload: int) -> Value:
    """The CRC of a cell: of its header's other bytes, then `payload` bytes with this remainder."""
    covered = bits[: len(bits) - CRC.width]
    size = len(covered) // 8
    own = parity(linear(lambda x: raw(CRC, 0, x.to_bytes(size, "little")), 8 * size, CRC.width), covered)
    start = raw(CRC, CRC.init, bytes(size))
    return skipped(CRC, own ^ start, payload) ^ remainder ^ CRC.xor_out


def next_remainder(remainder: Value, word: Value) -> Value:
    """The remainder of a payload after one more word; it begins with zero."""
    return after(CRC, remainder, word)


class _Codec(Block):
    """What both ends of a wire know: the size of a cell, and which layout its header has."""

    def __init__(self, cell: int = 64, values: int = 1, news: int = 0):
        self._layout = layout_of(values, news)
        size = self._layout.size
        require(size <= cell <= PACKET, "cell", f"from {size} to {PACKET:,} bytes", cell)
        self.cell, self.values, self.news = cell, values, news
        self._fields, self._payload = fields_of(self._layout), cell - size
        super().__init__(self._members(8 * size))


class HeaderEncoder(_Codec):
    """Members: every field of the header but the CRC; `remainder` of the payload; `header` out."""

    def _members(self, bits):
        return {name: In(width) for name, width in self._fields.items()} | {"remainder": In(8), "header": Out(bits)}

    def elaborate(self, platform):
        m = Module()
        view = View(self._layout.layout(), Signal(len(self.header), name="fields"))
        m.d.comb += [view[name].eq(getattr(self, name)) for name in self._fields]
        m.d.comb += self.header.eq(view.as_value())
        crc = checksum(view.as_value(), self.remainder, self._payload)
        m.d.comb += self.header[-CRC.width :].eq(crc)
        return m


class HeaderDecoder(_Codec):
    """Members: `header` and `remainder` in; every field of the header but the CRC; `empty`, `intact` out."""

    def _members(self, bits):
        return {name: Out(width) for name, width in self._fields.items()} | {
            "header": In(bits), "remainder": In(8), "empty": Out(1), "intact": Out(1),
        }  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        view = View(self._layout.layout(), self.header)
        m.d.comb += [getattr(self, name).eq(view[name]) for name in self._fields]
        m.d.comb += [
            self.empty.eq(self.dst == self.src),
            self.intact.eq(view.crc == checksum(self.header, self.remainder, self._payload)),
        ]
        return m
