"""`weft wire eep` and `weft wire 802.1ad` as their users type them: hex lines, captures, and bad input."""

import io
import json
import random
import sys

import dpkt
import pytest

from weft.wire.ethernet import fcs


def framed(size, seed=0):
    body = random.Random(f"{seed} {size}").randbytes(size - 4)
    return body + fcs(body)


FRAMES = [framed(64), framed(100), framed(1518)]
LINES = "".join(one.hex() + "\n" for one in FRAMES)


@pytest.fixture
def typed(weft, monkeypatch):
    """A command with this on its standard input."""

    def call(text, *tokens):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        return weft("wire", *tokens)

    return call


def test_frames_go_in_and_come_back_line_by_line(typed):
    said = typed(LINES, "eep", "encode", "--link-id", 3)
    assert (said.code, said.err) == (0, "") and len(said.out.splitlines()) == 1 + 2 + 24
    assert len(bytes.fromhex("".join(said.out.split()))) == 64 + 1 + 100 + 3 + 1518 + 25
    assert typed(said.out, "eep", "decode") == (0, LINES, "")
    joined = said.out.replace("\n", "")  # where a line ends means nothing
    assert typed(joined[:100] + "\n" + joined[100:], "eep", "decode") == (0, LINES, "")


def test_json_says_what_was_made_and_what_was_found(typed):
    made = json.loads(typed(LINES, "eep", "encode", "--link-id", 3, "--json").out)
    assert [(one["bytes"], one["eep_frames"], one["header_bytes"]) for one in made["frames"]] == [
        (64, 1, 1), (100, 2, 3), (1518, 24, 25),
    ]  # fmt: skip
    stream = "\n".join(line for one in made["frames"] for line in one["hex"])
    found = json.loads(typed(stream, "eep", "decode", "--json").out)
    assert [(one["link"], one["offset"], one["intact"]) for one in found["frames"]] == [
        (3, 0, True), (3, 65, True), (3, 168, True),
    ]  # fmt: skip
    assert "".join(one["hex"] + "\n" for one in found["frames"]) == LINES
    assert found["faults"] == [] and found["skipped_bytes"] == 0


def test_frames_may_be_arguments_and_one_link_may_be_asked_for(typed):
    one = typed("", "eep", "encode", "--link-id", 3, FRAMES[0].hex()).out
    two = typed("", "eep", "encode", "--link-id", 5, FRAMES[1].hex()).out
    assert typed(one + two, "eep", "decode", "--link-id", 5).out == FRAMES[1].hex() + "\n"


def test_check_sequences_are_added_and_taken_off(typed):
    bare = FRAMES[1][:-4].hex() + "\n"
    made = typed(bare, "eep", "encode", "--fcs", "absent")
    assert made == typed(LINES.splitlines()[1], "eep", "encode")
    assert typed(made.out, "eep", "decode", "--fcs", "absent") == (0, bare, "")


def test_a_frame_without_its_check_sequence_is_encoded_and_remarked_on(typed):
    said = typed("00" * 64, "eep", "encode")
    assert said == (0, "03" + "00" * 64 + "\n",
                    "weft wire eep: frame 1 does not end with its check sequence; --fcs absent adds it\n")  # fmt: skip
    back = typed(said.out, "eep", "decode")
    assert back.out == "00" * 64 + "\n" and back.code == 1
    assert back.err == (
        "weft wire eep: offset 0: the frame of 64 bytes on virtual link 0 must end with its check sequence\n"
    )


def test_a_lost_eep_frame_is_noticed(typed):
    lines = typed(LINES, "eep", "encode", "--link-id", 3).out.splitlines(keepends=True)
    said = typed("".join(lines[:10] + lines[11:]), "eep", "decode", "--fcs", "absent")
    assert said.out == "".join(one[:-4].hex() + "\n" for one in FRAMES[:2]) and said.code == 1
    assert said.err == (
        "weft wire eep: offset 168: the frame of 1454 bytes on virtual link 3 must end with its check sequence\n"
    )


def test_a_damaged_stream_is_refused_with_the_offset_and_decoding_goes_on(typed):
    lines = typed(LINES, "eep", "encode", "--link-id", 3).out.splitlines(keepends=True)
    said = typed("38" + lines[0][2:] + "".join(lines[1:]), "eep", "decode")
    assert said.code == 2 and said.out == "".join(one.hex() + "\n" for one in FRAMES[1:])
    assert said.err == ("weft wire eep: offset 0: the reserved bit of an EEP header must be 0, not 1 as in 0x38\n")
    found = json.loads(typed("38" + lines[0][2:] + "".join(lines[1:]), "eep", "decode", "--json").out)
    assert [(one["offset"], one["kind"], one["link"]) for one in found["faults"]] == [(0, "reserved", None)]
    assert found["skipped_bytes"] == 65


def test_a_truncated_stream_is_refused_with_the_offset(typed):
    stream = typed(LINES, "eep", "encode", "--link-id", 3).out
    at = stream.replace("\n", "").index(FRAMES[2][128:144].hex()) + 33  # 17 bytes with the header, and half a byte
    assert at % 2
    said = typed(stream.replace("\n", "")[:at], "eep", "decode")
    assert said.code == 2 and said.out == "".join(one.hex() + "\n" for one in FRAMES[:2])
    assert said.err.splitlines() == [
        "weft wire eep: offset 298: an EEP frame must be whole, not cut off after 17 bytes",
        "weft wire eep: offset 168: the frame on virtual link 3 must end before the stream does, after 128 bytes",
    ]


def test_half_a_byte_after_the_last_eep_frame_is_a_cut_too(typed):
    stream = typed(LINES, "eep", "encode").out
    said = typed(stream + "3", "eep", "decode")
    assert (said.code, said.out) == (2, LINES)
    assert said.err == "weft wire eep: offset 1711: an EEP frame must be whole, not cut off after 0 bytes\n"


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (("eep", "encode", "--link-id", "16"), "link_id must be a virtual link from 0 to 15, not 16"),
        (("eep", "encode", "--link-id", "-1"), "link_id must be a virtual link from 0 to 15, not -1"),
        (("eep", "encode", "--link-id", "x"), "link_id must be a whole number, not 'x'"),
        (("eep", "encode", "--fcs", "maybe"), "fcs must be one of present, absent, not 'maybe'"),
        (("eep", "decode", "--fcs", "maybe"), "fcs must be one of present, absent, not 'maybe'"),
        (("eep", "decode", "--link-id", "16"), "link_id must be a virtual link from 0 to 15, not 16"),
        (("eep", "encode", "xyz"), "frame 1 must be pairs of hexadecimal digits, not 'xyz'"),
        (("eep", "decode", "33", "xyz"), "line 2 must be pairs of hexadecimal digits, not 'xyz'"),
        (("eep", "encode", "--most", "1518B", "00" * 1519), "frame 1 must be from 1 to 1,518 bytes, not 1519"),
        (("eep", "encode", "--most", "9019B", "00" * 9020), "frame 1 must be from 1 to 9,019 bytes, not 9020"),
        (("eep", "encode", "--most", "12 parsecs"), "most: a size must be in one of b, kb, mb, gb, tb, kib, mib, gib, "
                                                    "not 'parsecs' as in '12 parsecs'"),
        (("eep", "encode", "--pcap", "no.pcap", "out.pcap"),
         "no.pcap must be a pcap file that can be read: no such file or directory"),
        (("802.1ad", "encode", "--vid", "4095", FRAMES[0].hex()), "frame 1: vid must be from 1 to 4094, not 4095"),
        (("802.1ad", "decode", FRAMES[0].hex()), "frame 1: the tag of a frame must be of type 0x88a8, not 0x"
                                                 + FRAMES[0][12:14].hex()),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(typed, tokens, sentence):
    said = typed("", *tokens)
    assert said.code == 2 and said.out == ""
    assert said.err.splitlines()[-1] == f"weft wire {tokens[0]}: {sentence}"


def test_a_capture_becomes_eep_and_comes_back(typed, tmp_path):
    source, there, back = (tmp_path / name for name in ("in.pcap", "eep.pcap", "back.pcap"))
    with source.open("wb") as file:
        writer = dpkt.pcap.Writer(file, snaplen=65_535)
        for k, one in enumerate(FRAMES):
            writer.writepkt(one[:-4], ts=k + 0.25)
    said = typed("", "eep", "encode", "--link-id", 3, "--pcap", source, there)
    assert said == (0, f"3 frames of 1,682 B, 27 EEP frames of 1,711 B: {source} -> {there}\n", "")
    found = json.loads(typed("", "eep", "decode", "--pcap", there, back, "--json").out)
    assert (found["frames"], found["eep_frames"], found["faults"]) == (3, 27, [])
    assert back.read_bytes() == source.read_bytes()
    said = typed("", "eep", "decode", "--pcap", source, back)
    assert said.code == 2 and "must be 147 (EEP, as USER0), not 1 (Ethernet)" in said.err


def test_tags_go_on_and_come_off(typed):
    said = typed(LINES, "802.1ad", "encode", "--vid", 3)
    assert [len(line) // 2 for line in said.out.split()] == [68, 104, 1522]
    assert typed(said.out, "802.1ad", "decode") == (0, LINES, "")
    found = json.loads(typed(said.out, "802.1ad", "decode", "--json").out)
    assert [(one["vid"], one["bytes"]) for one in found["frames"]] == [(3, 64), (3, 100), (3, 1518)]


def test_the_layout_covers_both_bytes(typed):
    rows = json.loads(typed("", "eep", "layout", "--json").out)["fields"]
    bits = [(row["byte"], bit) for row in rows for bit in range(row["first"], row["last"] + 1)]
    assert bits == [(byte, bit) for byte in (0, 1) for bit in range(8)]
    text = typed("", "eep", "layout").out
    assert all(row["paper"] in text and row["source"] in text for row in rows)
