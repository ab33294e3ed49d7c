import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.wire.crc import CRC8_SAE_J1850, CRC32, Crc

# name, width, poly, init, xor_out, reflected, and the published check value: the CRC of the nine digits
CATALOGUE = [
    (CRC8_SAE_J1850, 0x4B),
    (Crc("CRC-8/SMBUS", 8, 0x07), 0xF4),
    (Crc("CRC-8/AUTOSAR", 8, 0x2F, 0xFF, 0xFF), 0xDF),
    (Crc("CRC-8/MAXIM-DOW", 8, 0x31, reflected=True), 0xA1),
    (Crc("CRC-16/XMODEM", 16, 0x1021), 0x31C3),
    (Crc("CRC-16/ARC", 16, 0x8005, reflected=True), 0xBB3D),
    (CRC32, 0xCBF43926),
]


def divided(data):
    """CRC-8/SAE-J1850 by long division of polynomials, one bit at a time."""
    word = int.from_bytes(data, "big") << 8
    word ^= 0xFF << 8 * len(data)  # the start value meets the first byte
    for at in range(8 * len(data) + 7, 7, -1):
        if word >> at & 1:
            word ^= 0x11D << (at - 8)
    return word ^ 0xFF


@pytest.mark.parametrize("crc, check", CATALOGUE, ids=lambda it: getattr(it, "name", ""))
def test_a_catalogued_crc_gives_its_check_value(crc, check):
    assert crc.compute(b"123456789") == check


@given(st.binary(min_size=1, max_size=80))
def test_the_table_agrees_with_long_division(data):
    assert CRC8_SAE_J1850.compute(data) == divided(data)


@given(st.binary(max_size=80))
def test_the_crc_of_ethernet_is_that_of_zlib(data):
    assert CRC32.compute(data) == zlib.crc32(data)
