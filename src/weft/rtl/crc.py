"""CRCs in gates, from the same parameters as `weft.wire.crc`: every bit is the parity of some bits that came before.

A CRC is linear: which bits decide an output bit is found by trying each of them alone in the Python code, so that there
is no second statement of the polynomial.
"""

from amaranth.hdl import Cat, Value

from weft.wire.crc import Crc


def raw(crc: Crc, register: int, data: bytes) -> int:
    """The register after `data`, from any register, with nothing added at the end."""
    if crc.reflected:  # catalogues give the first register unreflected, whatever the rest is
        register = int(f"{register:0{crc.width}b}"[::-1], 2)
    return Crc(crc.name, crc.width, crc.poly, register, 0, crc.reflected).compute(data)


def parity(masks, value: Value) -> Value:
    """One bit per mask: the parity of the bits of `value` under it."""
    return Cat((value & mask).xor() if mask else Value.cast(0)[:1] for mask in masks)


def linear(function, width: int, out: int) -> list[int]:
    """The masks of a linear function from `width` bits to `out` bits: which inputs each output is the parity of."""
    images = [function(1 << bit) for bit in range(width)]
    return [sum(1 << bit for bit in range(width) if images[bit] >> k & 1) for k in range(out)]


def after(crc: Crc, register: Value, word: Value) -> Value:
    """The register after the bytes of `word`, lowest first."""
    size = len(word) // 8
    old = linear(lambda x: raw(crc, x, bytes(size)), crc.width, crc.width)
    new = linear(lambda x: raw(crc, 0, x.to_bytes(size, "little")), 8 * size, crc.width)
    return parity(old, register) ^ parity(new, word)


def skipped(crc: Crc, register: Value, size: int) -> Value:
    """The register after `size` bytes of zeros."""
    return parity(linear(lambda x: raw(crc, x, bytes(size)), crc.width, crc.width), register)
