"""Check sequences and service tags of Ethernet frames."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.wire.ethernet import FCS, fcs, intact, tag, untag, wire_size

bodies = st.binary(min_size=14, max_size=200)


def framed(body):
    return body + fcs(body)


@given(bodies)
def test_the_check_sequence_is_zlibs_lowest_byte_first(body):
    assert fcs(body) == zlib.crc32(body).to_bytes(4, "little")
    assert intact(framed(body))


@given(bodies, st.data())
def test_a_frame_with_a_bit_flipped_is_not_intact(body, data):
    frame = bytearray(framed(body))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    assert not intact(bytes(frame))


def test_a_service_tag_goes_after_the_addresses_highest_bit_first():
    frame = framed(bytes(range(12)) + b"\x08\x00" + bytes(46))
    tagged = tag(frame, vid=0x123, pcp=5, dei=1)
    assert tagged[12:18].hex() == "88a8" + "b123" + "0800"  # 101 1 000100100011
    assert tagged[:12] == frame[:12] and tagged[18:-FCS] == frame[14:-FCS] and intact(tagged)
    assert len(tagged) == len(frame) + 4


@given(bodies, st.integers(1, 4094), st.integers(0, 7), st.integers(0, 1))
def test_untag_gives_back_what_tag_was_given(body, vid, pcp, dei):
    found, frame = untag(tag(framed(body), vid, pcp, dei))
    assert found == {"vid": vid, "pcp": pcp, "dei": dei, "tpid": 0x88A8}
    assert frame == framed(body)


def test_tags_are_stacked_and_the_outermost_comes_off_first():
    frame = framed(bytes(60))
    inner = tag(frame, 7)
    assert untag(tag(inner, 9)) == ({"vid": 9, "pcp": 0, "dei": 0, "tpid": 0x88A8}, inner)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tag(bytes(15), 1), "frame must be at least 16 bytes, not 15"),
        (lambda: tag(bytes(64), 1), "frame must end with its check sequence 08891204, not 00000000"),
        (lambda: tag(framed(bytes(60)), 0), "vid must be from 1 to 4094, not 0"),
        (lambda: tag(framed(bytes(60)), 4095), "vid must be from 1 to 4094, not 4095"),
        (lambda: tag(framed(bytes(60)), 1, pcp=8), "service_tag.pcp must fit in 3 bits, not 8"),
        (lambda: untag(framed(bytes(60))), "the tag of a frame must be of type 0x88a8, not 0x0000"),
    ],
)
def test_what_cannot_be_tagged_is_refused_in_a_sentence(call, message):
    with pytest.raises(BadInput) as caught:
        call()
    assert str(caught.value) == message


def test_1500_bytes_of_payload_take_1538_of_the_link():
    assert wire_size(1518) == 1538
