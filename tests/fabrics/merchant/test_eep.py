"""EEP to the bit: bytes worked out from the paper, two codecs that agree on any stream, and no frame made up."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.fabrics.merchant import eep as eep_codec
from weft.wire import eep, eep_reference
from weft.wire.eep import Fault, Frame, Kind
from weft.wire.ethernet import fcs, intact

SIZES = st.one_of(st.integers(1, 300), st.sampled_from([60, 64, 65, 127, 128, 129, 1518, 1522]))


def frame(size, seed=0):
    """A frame of random bytes; one of more than FCS ends with its FCS."""
    body = random.Random(f"{seed} {size}").randbytes(max(size - 4, 0))
    return body + fcs(body) if body else bytes(size)


@st.composite
def batches(draw, most=12):
    """Frames and their links. Payloads of zeros, and of bytes that look like headers, are among them."""
    out = []
    for k in range(draw(st.integers(1, most))):
        size, link = draw(SIZES), draw(st.integers(0, 15))
        body = draw(
            st.sampled_from([frame(size, k)[:-4], bytes(size - 4 if size > 4 else 0), b"\x33" * max(size - 4, 0)])
        )
        out.append((link, body + fcs(body) if body else frame(size)))
    return out


def cut(data, places):
    """`data` in pieces."""
    bounds = [0, *sorted(p % (len(data) + 1) for p in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


def batch(frames):
    data = b"".join(one for _, one in frames)
    return data, np.cumsum([len(one) for _, one in frames]), [link for link, _ in frames]


def multiplexed(frames, most=eep.MOST):
    mux = eep_reference.Multiplexer()
    for link, one in frames:
        mux.put(link, one, most)
    return list(iter(mux.take, b""))


def decoded(pieces, module=eep_reference, most=eep.MOST):
    """All that a decoder finds, and the bytes it passed over."""
    decoder, out = module.Decoder(most), []
    for piece in [*pieces, None]:
        found = decoder.end() if piece is None else decoder.add(piece)
        out += found if isinstance(found, list) else found.events()
    return out, decoder.skipped


def both(pieces, most=eep.MOST):
    """What both decoders find."""
    slow, fast = (decoded(pieces, module, most) for module in (eep_reference, eep_codec))
    assert slow == fast
    return slow[0]


# ---------------------------------------------------------------- bits


def test_a_header_has_the_bits_of_figure_10():
    fields = [(name, eep.HEADER.offset(name), width) for name, width in eep.HEADER.fields]
    assert fields == [("sof", 0, 1), ("eof", 1, 1), ("len", 2, 1), ("reserved", 3, 1), ("link", 4, 4)]
    assert eep.LENGTH.offset("length") == 0 and eep.LENGTH.size == 1


@pytest.mark.parametrize(
    ("size", "headers"),
    [
        (1, ["3701"]),  # SOF, EOF and LEN of link 3, one byte
        (63, ["373f"]),
        (64, ["33"]),  # a frame that fills its segment has no length
        (65, ["31", "3601"]),
        (128, ["31", "32"]),
        (192, ["31", "30", "32"]),
        (200, ["31", "30", "30", "3608"]),
    ],
)
def test_headers_worked_out_by_hand(size, headers):
    made = eep_reference.encode(frame(size), 3)
    assert [one[: len(h) // 2].hex() for one, h in zip(made, headers, strict=True)] == headers
    assert b"".join(one[len(h) // 2 :] for one, h in zip(made, headers, strict=True)) == frame(size)


def test_a_1500_byte_payload_takes_24_eep_frames_and_25_bytes_of_headers():
    made = eep_reference.encode(frame(1518), 0)
    assert len(made) == 24 and sum(map(len, made)) == 1518 + 25
    assert max(map(len, made)) == eep.LARGEST == 65


@settings(deadline=None)
@given(st.integers(1, 9018))
def test_the_headers_of_a_frame_are_counted_as_they_are_made(size):
    made = eep_reference.encode(bytes(size), 1)
    assert (len(made), sum(map(len, made)) - size) == (eep.segments(size), eep.header_bytes(size))


# ---------------------------------------------------------------- what goes in comes out


@settings(deadline=None)
@given(batches(), st.lists(st.integers(0, 10**6), max_size=8))
def test_both_encoders_make_the_same_bytes_however_frames_are_cut(frames, places):
    data, ends, _ = batch(frames)
    made = b"".join(part for _, one in frames for part in eep_reference.encode(one, 5))
    slow, fast, at = eep_reference.Encoder(5), eep_codec.Encoder(5), 0
    one = two = b""
    for piece in cut(data, places):
        # an end between two pieces goes with the one before it
        inside = [int(end) - at for end in ends if at < end <= at + len(piece)]
        one += slow.add(piece, inside)
        two += fast.add(piece, inside)
        at += len(piece)
    assert one == two == made


@settings(deadline=None)
@given(batches(), st.lists(st.integers(0, 10**6), max_size=8))
def test_frames_come_back_however_the_stream_is_cut(frames, places):
    stream = multiplexed(frames)
    assert eep_codec.multiplex(*batch(frames)).tobytes() == b"".join(stream)
    found = both(cut(b"".join(stream), places))
    for link in range(eep.LINKS):
        sent = [one for to, one in frames if to == link]
        assert [one.data for one in found if one.link == link] == sent
    assert all(isinstance(one, Frame) and one.intact == intact(one.data) for one in found)


def test_one_byte_at_a_time_is_enough():
    frames = [(k % 16, frame(1 + 97 * k, k)) for k in range(1, 12)]
    stream = b"".join(multiplexed(frames))
    found = both([stream[k : k + 1] for k in range(len(stream))])
    assert sorted(one.data for one in found) == sorted(one for _, one in frames)


def test_links_take_turns_and_an_empty_queue_is_passed_over():
    stream = multiplexed([(3, frame(200)), (9, frame(100)), (3, frame(64)), (15, frame(64))])
    assert [one[0] >> 4 for one in stream] == [3, 9, 15, 3, 9, 3, 3, 3]


def test_an_offset_is_that_of_the_frames_sof():
    stream = multiplexed([(3, frame(200)), (9, frame(100))])
    offsets = {one.link: one.offset for one in both([b"".join(stream)])}
    assert offsets == {3: 0, 9: 65}


def test_large_pieces_and_many_frames_make_no_difference():
    frames = [(k % 16, frame(64 + k % 200, k)) for k in range(9000)]
    stream = eep_codec.multiplex(*batch(frames))
    found = eep_codec.Decoder().add(stream)
    assert stream.size > 3 * eep_codec._PORTION and len(found) == 9000 > 2 * eep_codec._ROWS
    assert sorted(one.data for one in found.events()) == sorted(one for _, one in frames)


# ---------------------------------------------------------------- what is damaged


def by_hand(*parts):
    return b"".join(part if isinstance(part, bytes) else bytes.fromhex(part) for part in parts)


WHOLE = b"".join(eep_reference.encode(frame(100), 2))
FAULTS = {
    "a reserved bit": (
        by_hand("08", bytes(70), WHOLE),
        [Fault(Kind.RESERVED, 0, -1, 8)], "offset 0: the reserved bit of an EEP header must be 0, not 1 as in 0x08", 71,
    ),
    "LEN without EOF": (
        by_hand(WHOLE, "35", bytes(10), WHOLE),
        [Fault(Kind.UNENDED, 103, -1, 0x35)], "offset 103: an EEP header with LEN must have EOF, unlike 0x35", 11,
    ),
    "a length of 0": (
        by_hand("0700", WHOLE),
        [Fault(Kind.LENGTH, 0, -1, 0)], "offset 0: the length byte of an EEP header must be from 1 to 63, not 0", 2,
    ),
    "a length of 64": (
        by_hand("0740", WHOLE),
        [Fault(Kind.LENGTH, 0, -1, 64)], "offset 0: the length byte of an EEP header must be from 1 to 63, not 64", 2,
    ),
    "an open frame where framing is lost": (
        by_hand("71", bytes(64), "08", WHOLE),
        [Fault(Kind.RESERVED, 65, -1, 8), Fault(Kind.LOST, 0, 7, 65)],
        "offset 0: the frame on virtual link 7 must end before framing is lost, at offset 65", 1,
    ),
    "a segment between frames": (
        by_hand("50", bytes(64), "50", bytes(64), WHOLE),
        [Fault(Kind.ORPHAN, 0, 5, 0)], "offset 0: a segment on virtual link 5 must follow one with SOF", 0,
    ),
    "a frame that does not end": (
        by_hand("21", bytes(64), WHOLE),
        [Fault(Kind.UNFINISHED, 0, 2, 65)],
        "offset 0: the frame on virtual link 2 must end before the next begins, at offset 65", 0,
    ),
    "a frame beyond the longest": (
        by_hand("41", bytes(64), "40", bytes(64), "40", bytes(64), "42", bytes(64), WHOLE),
        [Fault(Kind.OVERSIZE, 0, 4, 128)], "offset 0: the frame on virtual link 4 must be at most 128 bytes", 0,
    ),
    "a stream cut within an EEP frame": (
        WHOLE + by_hand("21", bytes(9)),
        [Fault(Kind.CUT, 103, -1, 10)], "offset 103: an EEP frame must be whole, not cut off after 10 bytes", 0,
    ),
    "a stream cut within a frame": (
        WHOLE + by_hand("21", bytes(64)),
        [Fault(Kind.OPEN, 103, 2, 64)],
        "offset 103: the frame on virtual link 2 must end before the stream does, after 64 bytes", 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_every_fault_is_found_where_it_begins_and_decoding_goes_on(what):
    stream, faults, sentence, skipped = FAULTS[what]
    found = both([stream], most=128)
    assert [one for one in found if isinstance(one, Fault)] == faults
    assert str(faults[-1]) == sentence
    good = [one for one in found if isinstance(one, Frame)]
    assert len(good) == stream.count(WHOLE) and all(one.data == frame(100) and one.intact for one in good)
    assert decoded([stream], most=128)[1] == skipped


def test_a_frame_with_a_wrong_check_sequence_is_passed_on_and_said_to_be():
    bad = frame(100)[:-1] + b"!"
    (found,) = both([b"".join(eep_reference.encode(bad, 2))])
    assert (found.data, found.intact) == (bad, False)
    said = "offset 0: the frame of 100 bytes on virtual link 2 must end with its check sequence"
    assert str(eep.damage(found)) == said


@settings(deadline=None)
@given(batches(), st.data())
def test_the_loss_of_an_eep_frame_is_caught(frames, data):
    stream = multiplexed(frames)
    lost = data.draw(st.integers(0, len(stream) - 1))
    found = both([b"".join(stream[:lost] + stream[lost + 1 :])])
    assert {one.data for one in found if isinstance(one, Frame) and one.intact} <= {one for _, one in frames}
    assert any(isinstance(one, Fault) or not one.intact for one in found) or stream[lost][0] & 3 == 3  # a whole frame


@settings(max_examples=150, deadline=None)
@given(batches(), st.data())
def test_no_damage_makes_a_frame_up_and_both_decoders_see_the_same(frames, data):
    stream = b"".join(multiplexed(frames))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        how = data.draw(st.sampled_from(["flip", "drop", "insert", "burst", "truncate"]))
        if how == "flip":
            stream = stream[:at] + bytes([stream[at] ^ 1 << data.draw(st.integers(0, 7))]) + stream[at + 1 :]
        elif how == "truncate":
            stream = stream[: at + 1]
        else:
            size = data.draw(st.integers(1, 100))
            middle = random.Random(at).randbytes(size) if how != "drop" else b""
            stream = stream[:at] + middle + stream[at if how == "insert" else at + size :]
        if not stream:
            break
    places = data.draw(st.lists(st.integers(0, 10**6), max_size=5))
    found = both(cut(stream, places))
    assert found == both([stream])
    good = {one.data for one in found if isinstance(one, Frame) and one.intact}
    assert good <= {one for _, one in frames}


@settings(deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_reordered_eep_frames_make_nothing_up(frames, rng):
    stream = multiplexed(frames)
    rng.shuffle(stream)
    found = both([b"".join(stream)])
    assert {one.data for one in found if isinstance(one, Frame) and one.intact} <= {one for _, one in frames}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=700), st.lists(st.integers(0, 10**6), max_size=4))
def test_any_bytes_may_come_in(noise, places):
    both(cut(noise, places), most=128)


@pytest.mark.parametrize("seed", range(8))
def test_after_damaged_headers_all_frames_that_begin_later_come_out(seed):
    rng = random.Random(seed)
    frames = [(k % 4, frame(rng.choice([64, 100, 1518]), (seed, k))) for k in range(200)]
    stream = multiplexed(frames)
    sizes = np.cumsum([0, *map(len, stream)])
    hit = rng.randrange(20, 40)  # damage the headers of three EEP frames in a row
    damaged = b"".join(bytes([one[0] | 8]) + one[1:] if hit <= k < hit + 3 else one for k, one in enumerate(stream))
    found = both([damaged])
    whole = {one.data for one in both([b"".join(stream)]) if one.offset >= sizes[hit + 3]}
    assert whole and whole <= {one.data for one in found if isinstance(one, Frame) and one.intact}
    assert any(isinstance(one, Fault) and one.kind is Kind.RESERVED and one.offset == sizes[hit] for one in found)


def test_a_payload_of_headers_is_not_taken_for_frames():
    """An SOF that is believed only for its look would be found in every payload byte."""
    body = b"\x33" * 1000
    frames = [(1, body + fcs(body)), (1, frame(300))]
    stream = b"\x08" + b"".join(multiplexed(frames))
    good = [one.data for one in both([stream]) if isinstance(one, Frame)]
    assert good == [one for _, one in frames]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("module", [eep_reference, eep_codec])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.Encoder(16), "link_id must be a virtual link from 0 to 15, not 16"),
        (lambda m: m.Encoder(-1), "link_id must be a virtual link from 0 to 15, not -1"),
        (lambda m: m.Encoder(0, most=64), "most must be from 65 to 1,048,576 bytes, not 64"),
        (lambda m: m.Decoder(most=2**21), "most must be from 65 to 1,048,576 bytes, not 2097152"),
        (lambda m: m.Encoder(0).add(bytes(9019), [9019]), "frame must be from 1 to 9,018 bytes, not 9019"),
        (lambda m: m.Encoder(0).add(bytes(9019)), "frame must be from 1 to 9,018 bytes, not 9019"),
        (lambda m: m.Encoder(0).add(b"", [0]), "frame must be from 1 to 9,018 bytes, not 0"),
        (lambda m: m.Encoder(0).add(bytes(9), [4, 4]), "frame must be from 1 to 9,018 bytes, not 0"),
        (lambda m: m.Encoder(0).add(bytes(9), [4, 3]), "ends must be ascending positions in a piece of 9 bytes, not 3"),
        (lambda m: m.Encoder(0).add(bytes(9), [10]), "ends must be ascending positions in a piece of 9 bytes, not 10"),
        (lambda m: m.Encoder(0).add(bytes(9), [-1]), "ends must be ascending positions in a piece of 9 bytes, not -1"),
    ],
)
def test_what_cannot_be_encoded_is_refused_in_a_sentence(module, call, message):
    with pytest.raises(BadInput) as caught:
        call(module)
    assert str(caught.value) == message


def test_a_frame_grows_too_long_over_several_pieces():
    for module in (eep_reference, eep_codec):
        encoder = module.Encoder(0, most=100)
        encoder.add(bytes(90))
        with pytest.raises(BadInput, match="frame must be from 1 to 100 bytes, not 101"):
            encoder.add(bytes(11))


def test_a_batch_must_have_a_link_for_every_frame_and_none_beyond_15():
    with pytest.raises(BadInput, match="links must be one for each of 1 frames, not 2"):
        eep_codec.multiplex(bytes(64), [64], [0, 1])
    with pytest.raises(BadInput, match="link_id must be a virtual link from 0 to 15, not 16"):
        eep_codec.multiplex(bytes(64), [64], [16])


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=6))
def test_a_batch_gets_the_check_sequences_that_its_frames_have(bodies):
    data, ends = eep_codec.add_fcs(b"".join(bodies), np.cumsum([len(body) for body in bodies]))
    assert data.tobytes() == b"".join(body + fcs(body) for body in bodies)
    assert ends.tolist() == np.cumsum([len(body) + 4 for body in bodies]).tolist()
