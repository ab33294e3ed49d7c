"""Bit layouts, said once: the codec, the RTL and the documentation all read the same `Format`."""

from dataclasses import dataclass
from operator import index

from weft.errors import BadInput


@dataclass(frozen=True)
class Format:
    """Named fields and their widths, padded to whole bytes, first byte first.

    Fields fill the bytes from the least significant bit up; with `network`, as on Ethernet, from the most significant
    down.
    """

    name: str
    fields: tuple[tuple[str, int], ...]
    network: bool = False

    @property
    def bits(self) -> int:
        """Bits of all fields."""
        return sum(width for _, width in self.fields)

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return -(-self.bits // 8)

    def offset(self, field: str) -> int:
        """The first bit of `field`, counted in the order in which fields fill the bytes."""
        at = 0
        for name, width in self.fields:
            if name == field:
                return at
            at += width
        raise self._unknown(field)

    def pack(self, **values: int) -> bytes:
        """The fields as bytes; what is missing, unknown or too wide is named. Padding is zero."""
        word = 0
        for unknown in values.keys() - dict(self.fields).keys():
            raise self._unknown(unknown)
        for field, width in self.fields:
            if field not in values:
                raise BadInput(f"{self.name}.{field} must be given a value")
            try:
                value = index(values[field])
            except TypeError:
                raise BadInput(f"{self.name}.{field} must be a whole number, not {values[field]!r}") from None
            if not 0 <= value < 1 << width:
                raise BadInput(f"{self.name}.{field} must fit in {width} {_bits(width)}, not {value!r}")
            word |= value << self._shift(field, width)
        return word.to_bytes(self.size, self._order)

    def unpack(self, data: bytes) -> dict[str, int]:
        """The fields of `data`; padding is not looked at."""
        if len(data) != self.size:
            raise BadInput(f"{self.name} must be {self.size} bytes long, not {len(data)}")
        word = int.from_bytes(data, self._order)
        return {field: word >> self._shift(field, width) & ((1 << width) - 1) for field, width in self.fields}

    @property
    def _order(self):
        return "big" if self.network else "little"

    def _shift(self, field, width):
        """Bits below `field` in the word that its bytes are, read in their order."""
        at = self.offset(field)
        return 8 * self.size - at - width if self.network else at

    def _unknown(self, field):
        return BadInput(f"a field of {self.name} must be one of {', '.join(dict(self.fields))}, not {field!r}")

    def layout(self):
        """The same fields as an Amaranth layout, for `weft.rtl`; with `network` the first byte is on top."""
        from amaranth.lib.data import StructLayout

        spare = 8 * self.size - self.bits if self.network else 0
        padding = {"padding": spare} if spare else {}
        return StructLayout(padding | dict(self.fields[::-1] if self.network else self.fields))


def _bits(width):
    return "bit" if width == 1 else "bits"
