"""Flow control frames against bytes worked out by hand, and against Scapy, which read the same standards."""

import zlib
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.mac_control import MACControl, MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether

from weft.errors import BadInput
from weft.wire import pfc
from weft.wire.pfc import Extended, Pause, Pfc, decode

quanta = st.integers(0, 65535)
addresses = st.integers(0, 2**48 - 1)
ends = st.fixed_dictionaries({"dst": addresses, "src": addresses})
pauses = st.builds(lambda ends, time: Pause(time=time, **ends), ends, quanta)
pfcs = st.builds(
    lambda ends, times: Pfc(times=tuple(times), **ends),
    ends,
    st.lists(st.none() | quanta, min_size=8, max_size=8),
)
extended = st.builds(
    lambda ends, which, time, others, seq: Extended(which=which, time=time, others=others, seq=seq, **ends),
    ends,
    st.integers(0, 2047),
    quanta,
    st.none() | quanta,
    st.integers(0, 2**32 - 1),
)
frames = pauses | pfcs | extended


def test_a_pause_is_the_frame_of_annex_31b():
    made = Pause(time=0x1234, src=0x0200000000AB).encode()
    assert made.hex() == "0180c2000001" + "0200000000ab" + "8808" + "0001" + "1234" + "00" * 42


def test_a_pfc_frame_has_a_vector_and_eight_times():
    made = Pfc(times=(1, None, None, 0xABCD, None, None, None, 0)).encode()
    times = "0001" + "0000" * 2 + "abcd" + "0000" * 4
    assert made.hex() == "0180c2000001" + "020000000000" + "8808" + "0101" + "0089" + times + "00" * 26


def test_an_extended_frame_has_the_layout_that_we_say():
    made = Extended(which=0x5A3, time=0, others=0xFFFF, seq=0x01020304).encode()
    body = "fffe" + "7a6566" + "01" + "0da3" + "0000" + "ffff" + "01020304"
    assert made.hex() == "0180c2000001" + "020000000000" + "8808" + body + "00" * 30
    kept = Extended(which=0x5A3, others=None).encode()
    assert kept[20:26].hex() == "05a3" + "0000" + "0000"


@given(frames, st.booleans())
def test_decode_undoes_encode(frame, fcs):
    data = frame.encode(fcs)
    assert len(data) == (64 if fcs else 60)
    assert decode(data) == (frame, True if fcs else None)


@given(frames)
def test_the_fcs_is_ethernet_s(frame):
    data = frame.encode(fcs=True)
    assert data[60:] == zlib.crc32(data[:60]).to_bytes(4, "little")


@given(frames, st.integers(0, 511))
def test_a_flipped_bit_is_seen_or_is_no_such_frame(frame, bit):
    data = bytearray(frame.encode(fcs=True))
    data[bit // 8] ^= 1 << bit % 8
    try:
        assert decode(bytes(data))[1] is False
    except BadInput as error:
        assert str(error).startswith(("the EtherType", "the opcode", "an extended frame"))


# ---------------------------------------------------------------- Scapy


@given(pauses)
def test_scapy_reads_and_makes_the_same_pause(frame):
    data = frame.encode()
    read = Ether(data)
    assert (read.type, read[MACControlPause]._op_code, read[MACControlPause].pause_time) == (0x8808, 1, frame.time)
    made = Ether(dst=pfc.show_address(frame.dst), src=pfc.show_address(frame.src), type=0x8808)
    assert bytes(made / MACControlPause(pause_time=frame.time)).ljust(60, b"\0") == data


@given(pfcs)
def test_scapy_reads_and_makes_the_same_pfc_frame(frame):
    data = frame.encode()
    read = Ether(data)[MACControlClassBasedFlowControl]
    assert read._op_code == 0x0101
    for c, time in enumerate(frame.times):
        assert getattr(read, f"c{c}_enabled") == (time is not None)
        assert getattr(read, f"c{c}_pause_time") == (time or 0)
    values = {f"c{c}_enabled": time is not None for c, time in enumerate(frame.times)}
    values |= {f"c{c}_pause_time": time or 0 for c, time in enumerate(frame.times)}
    made = Ether(dst=pfc.show_address(frame.dst), src=pfc.show_address(frame.src), type=0x8808)
    assert bytes(made / MACControlClassBasedFlowControl(**values)).ljust(60, b"\0") == data


@given(extended)
def test_scapy_takes_an_extended_frame_for_mac_control_and_for_neither_standard_frame(frame):
    read = Ether(frame.encode())
    assert read.type == 0x8808
    assert read[MACControl].payload.load == frame.encode()[14:]
    assert MACControlPause not in read and MACControlClassBasedFlowControl not in read


# ---------------------------------------------------------------- use


@pytest.mark.parametrize("which", range(8))
def test_only_one_class_may_send(which):
    assert Pfc.only(which).times == tuple(0 if c == which else 65535 for c in range(8))


def test_quanta_are_512_bit_times():
    assert pfc.quantum(10 * 10**9) == 51_200  # ps
    assert 65535 * pfc.quantum(10 * 10**9) == 3_355_392_000


def test_addresses_are_read_as_people_write_them():
    for text, sign in product(("0180c2000001", "0180C2000001"), ("", ":", "-")):
        written = sign.join(text[k : k + 2] for k in range(0, 12, 2))
        assert pfc.parse_address(written) == pfc.BRIDGE
    assert pfc.show_address(pfc.BRIDGE) == "01:80:c2:00:00:01"


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: Pause(time=65536), "time must be from 0 to 65535 quanta, not 65536"),
        (lambda: Pfc(times=(0,)), "times must be one for each of 8 classes, not 1"),
        (lambda: Pfc.only(8), "class must be from 0 to 7 in a PFC frame, not 8"),
        (lambda: Pfc(times=(0, -1) + (0,) * 6), "the time of class 1 must be from 0 to 65535 quanta, not -1"),
        (lambda: Extended(which=2048), "class must be from 0 to 2047, not 2048"),
        (lambda: Extended(which=0, others=-1), "others must be from 0 to 65535 quanta, not -1"),
        (lambda: Extended(which=0, seq=2**32), "seq must be from 0 to 2^32 - 1, not 4294967296"),
        (lambda: decode(bytes(59)), "a frame must be 60 bytes, or 64 with its FCS, not 59"),
        (lambda: decode(bytes(60)), "the EtherType of a flow control frame must be 0x8808, not 0x0000"),
        (
            lambda: decode(bytes(12) + b"\x88\x08" + bytes(46)),
            "the opcode must be one of 0x0001, 0x0101, 0xfffe, not 0x0000",
        ),
        (
            lambda: decode(bytes(12) + b"\x88\x08\xff\xfe\x00\x01\x02\x03" + bytes(40)),
            "an extended frame must be 7a6566 version 1, not 000102 version 3",
        ),
        (lambda: pfc.parse_address("host"), "an address must look like 01:80:c2:00:00:01, not 'host'"),
    ],
)
def test_what_cannot_be_meant_is_named(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == sentence
