"""Cyclic redundancy checks, each described by the parameters under which the public catalogue of CRCs lists it."""

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Crc:
    """A CRC over bytes: `poly` without its leading term; `reflected` ones take the least significant bit first."""

    name: str
    width: int
    poly: int
    init: int = 0
    xor_out: int = 0
    reflected: bool = False

    @property
    def table(self) -> tuple[int, ...]:
        """The register after one byte, for each byte that meets its end."""
        return _table(self.width, self.poly, self.reflected)

    def compute(self, data: bytes) -> int:
        """The checksum of `data`."""
        table, mask, down = self.table, (1 << self.width) - 1, self.width - 8
        register = _reverse(self.init, self.width) if self.reflected else self.init
        for byte in data:
            if self.reflected:
                register = register >> 8 ^ table[(register ^ byte) & 255]
            else:
                register = (register << 8 & mask) ^ table[register >> down ^ byte]
        return register ^ self.xor_out


@cache
def _table(width, poly, reflected) -> tuple[int, ...]:
    mask, out = (1 << width) - 1, []
    if reflected:
        poly = _reverse(poly, width)
    for byte in range(256):
        register = byte if reflected else byte << (width - 8)
        for _ in range(8):
            if reflected:
                register = register >> 1 ^ (poly if register & 1 else 0)
            else:
                register = (register << 1 & mask) ^ (poly if register >> (width - 1) else 0)
        out.append(register)
    return tuple(out)


def _reverse(value, width):
    return int(f"{value:0{width}b}"[::-1], 2)


CRC8_SAE_J1850 = Crc("CRC-8/SAE-J1850", 8, 0x1D, 0xFF, 0xFF)
CRC32 = Crc("CRC-32/ISO-HDLC", 32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, reflected=True)  # of Ethernet
