"""A capture of Ethernet frames becomes EEP and comes back identical; what is no such capture is refused."""

import io
import random
import struct

import dpkt
import pytest

from weft.errors import BadInput, WeftError
from weft.fabrics.merchant import capture as eep_capture
from weft.wire import capture
from weft.wire.eep import Kind
from weft.wire.ethernet import fcs

SIZES = (42, 60, 61, 64, 123, 124, 125, 577, 1514, 9014)


def bodies(seed=0, sizes=SIZES):
    rng = random.Random(seed)
    return [rng.randbytes(size) for size in sizes]


def written(path, packets, *, nano=False, linktype=1, snaplen=262_144):
    """A capture made by dpkt's own writer."""
    out = io.BytesIO()
    writer = dpkt.pcap.Writer(out, snaplen=snaplen, linktype=linktype, nano=nano)
    for k, packet in enumerate(packets):
        writer.writepkt_time(packet, 1_234_567_890 + k + 0.000_321)
    path.write_bytes(out.getvalue())
    return path


def by_hand(path, packets, order=">", magic=0xA1B23C4D, linktype=1):
    """A capture made of structures: any byte order, any flags above the link type; packets are (data, size)."""
    parts = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65_535, linktype)]
    for k, (data, size) in enumerate(packets):
        parts.append(struct.pack(order + "IIII", 7 + k, 999_999_999 - k, len(data), size) + data)
    path.write_bytes(b"".join(parts))
    return path


def there_and_back(tmp_path, source, link=3, **options):
    there, back = tmp_path / "eep.pcap", tmp_path / "back.pcap"
    sent = eep_capture.encode(source, there, link, **options)
    got, faults = eep_capture.decode(there, back, **options)
    return there, back, sent, got, faults


@pytest.mark.parametrize("nano", [False, True])
def test_a_capture_comes_back_identical(tmp_path, nano):
    source = written(tmp_path / "in.pcap", bodies(), nano=nano)
    there, back, sent, got, faults = there_and_back(tmp_path, source)
    assert back.read_bytes() == source.read_bytes()
    assert faults == [] and vars(sent) == vars(got) and sent.frames == len(SIZES)
    with there.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        assert reader.datalink() == dpkt.pcap.DLT_USER0
        packets = [data for _, data in reader]
    assert len(packets) == sent.eep_frames and {packet[0] >> 4 for packet in packets} == {3}
    assert max(map(len, packets)) == 65


@pytest.mark.parametrize("order", "<>")
def test_byte_order_resolution_and_times_come_back(tmp_path, order):
    source = by_hand(tmp_path / "in.pcap", [(one, len(one)) for one in bodies()], order)
    _, back, *_ = there_and_back(tmp_path, source)
    assert back.read_bytes() == source.read_bytes()


def test_an_empty_capture_stays_one(tmp_path):
    source = written(tmp_path / "in.pcap", [])
    _, back, sent, _, _ = there_and_back(tmp_path, source)
    assert back.read_bytes() == source.read_bytes() and sent.eep_frames == 0


def test_frames_that_carry_their_check_sequence_keep_it(tmp_path):
    source = written(tmp_path / "in.pcap", [one + fcs(one) for one in bodies()])
    _, back, sent, _, faults = there_and_back(tmp_path, source, fcs=True)
    assert back.read_bytes() == source.read_bytes() and faults == []
    assert sent.frame_bytes == sum(SIZES) + 4 * len(SIZES)


def test_a_file_that_says_it_has_check_sequences_is_believed(tmp_path):
    packets = [(one + fcs(one), len(one) + 4) for one in bodies()]
    source = by_hand(tmp_path / "in.pcap", packets, linktype=2 << 29 | 1 << 28 | 1)
    _, back, sent, _, faults = there_and_back(tmp_path, source)
    assert back.read_bytes() == source.read_bytes() and faults == []
    assert sent.frame_bytes == sum(size for _, size in packets)


def test_many_frames_go_through_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(eep_capture, "_BATCH", 3000)
    source = written(tmp_path / "in.pcap", bodies(1, SIZES * 5))
    _, back, *_ = there_and_back(tmp_path, source)
    assert back.read_bytes() == source.read_bytes()


def test_a_lost_packet_costs_its_frame_alone(tmp_path):
    source = written(tmp_path / "in.pcap", bodies())
    there, back = tmp_path / "eep.pcap", tmp_path / "back.pcap"
    eep_capture.encode(source, there, 3)
    with capture.reading(there, capture.EEP) as (header, packets), capture.writing(there, header) as add:
        kept = list(packets)
        for k, packet in enumerate(kept):
            if k != len(kept) - 20:  # in the middle of the last frame
                add(packet)
    counts, faults = eep_capture.decode(there, back)
    assert counts.frames == len(SIZES) - 1 and [one.kind for one in faults] == [Kind.DAMAGED]
    with back.open("rb") as file:
        assert [data for _, data in dpkt.pcap.Reader(file)] == bodies()[:-1]


def test_one_link_can_be_taken_out_of_many(tmp_path):
    first, second = bodies(1), bodies(2)
    for link, packets in ((1, first), (2, second)):
        eep_capture.encode(written(tmp_path / "in.pcap", packets), tmp_path / f"{link}.pcap", link)
    one, two = (list(_packets(tmp_path / f"{link}.pcap")) for link in (1, 2))
    mixed = tmp_path / "mixed.pcap"
    with capture.reading(tmp_path / "1.pcap", capture.EEP) as (header, _), capture.writing(mixed, header) as add:
        for k in range(max(len(one), len(two))):
            for side in (one, two):
                if k < len(side):
                    add(side[k])
    for link, packets in ((1, first), (2, second)):
        eep_capture.decode(mixed, tmp_path / "out.pcap", link)
        assert (tmp_path / "out.pcap").read_bytes() == written(tmp_path / "in.pcap", packets).read_bytes()
    counts, _ = eep_capture.decode(mixed, tmp_path / "out.pcap")
    assert counts.frames == 2 * len(SIZES)


def _packets(path):
    with capture.reading(path, capture.EEP) as (_, packets):
        yield from packets


# ---------------------------------------------------------------- bad input


def refused(work):
    with pytest.raises((BadInput, WeftError)) as caught:
        work()
    return str(caught.value)


def test_a_capture_of_another_link_type_is_refused(tmp_path):
    source, out = tmp_path / "in.pcap", tmp_path / "out.pcap"
    written(source, bodies(), linktype=101)
    assert refused(lambda: eep_capture.encode(source, out, 0)) == (
        f"the link type of {source} must be 1 (Ethernet), not 101"
    )
    written(source, bodies())
    assert refused(lambda: eep_capture.decode(source, out)) == (
        f"the link type of {source} must be 147 (EEP, as USER0), not 1 (Ethernet)"
    )
    assert not out.exists()


def test_what_is_no_capture_is_refused(tmp_path):
    source, out = tmp_path / "in.pcap", tmp_path / "out.pcap"
    cases = {
        b"": "must be a pcap file, not one of 0 bytes",
        b"hello, world, how are you": "must be a pcap file, not one that begins with 68656c6c",
        bytes.fromhex("0a0d0d0a") + bytes(60): "must be a pcap file, not pcapng, which `editcap -F pcap` makes one",
    }
    for content, sentence in cases.items():
        source.write_bytes(content)
        assert refused(lambda: eep_capture.encode(source, out, 0)) == f"{source} {sentence}"
    by_hand(source, [], magic=0xA1B2CD34)
    said = f"{source} must be a plain pcap file, not one of the modified format 0xa1b2cd34"
    assert refused(lambda: eep_capture.encode(source, out, 0)) == said
    said = f"{tmp_path} must be a pcap file that can be read: is a directory"
    assert refused(lambda: eep_capture.encode(tmp_path, out, 0)) == said


def test_a_capture_that_is_cut_off_is_refused_and_nothing_is_written(tmp_path):
    source, out = written(tmp_path / "in.pcap", bodies()), tmp_path / "out.pcap"
    whole = source.read_bytes()
    source.write_bytes(whole[:-1])
    assert refused(lambda: eep_capture.encode(source, out, 0)) == f"{source} must be whole, not end within packet 10"
    source.write_bytes(whole[: 24 + 7])
    said = f"{source} must be whole, not end within the header of packet 1"
    assert refused(lambda: eep_capture.encode(source, out, 0)) == said
    assert list(tmp_path.iterdir()) == [source]


def test_packets_that_cannot_be_frames_are_refused_by_number(tmp_path):
    source, out = tmp_path / "in.pcap", tmp_path / "out.pcap"
    by_hand(source, [(bytes(60), 60), (bytes(60), 1514)])
    said = f"packet 2 of {source} must be captured whole, not 60 of 1514 bytes"
    assert refused(lambda: eep_capture.encode(source, out, 0)) == said
    by_hand(source, [(bytes(9015), 9015)])
    said = f"packet 1 of {source} must be from 1 to 9,014 bytes, not 9015"
    assert refused(lambda: eep_capture.encode(source, out, 0)) == said
    by_hand(source, [(b"", 0)])
    assert refused(lambda: eep_capture.encode(source, out, 0)).endswith("must be from 1 to 9,014 bytes, not 0")
    by_hand(source, [(bytes(60), 59)])
    said = f"packet 1 of {source} must have at most its 59 bytes, not 60"
    assert refused(lambda: eep_capture.encode(source, out, 0)) == said


def test_without_dpkt_the_extra_is_named(tmp_path, monkeypatch):
    import sys

    source = written(tmp_path / "in.pcap", bodies())
    monkeypatch.setitem(sys.modules, "dpkt", None)
    said = refused(lambda: eep_capture.encode(source, tmp_path / "out.pcap", 0))
    assert said == "captures need the package dpkt, which `pip install weft[wire]` brings"


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    source = written(tmp_path / "in.pcap", bodies())
    (tmp_path / "file").write_text("")
    said = refused(lambda: eep_capture.encode(source, tmp_path / "file/out.pcap", 0))
    assert said.startswith(f"{tmp_path}/file/out.pcap cannot be written: ")
