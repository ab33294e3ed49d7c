"""Captures as EEP: a pcap file of Ethernet frames becomes one of EEP frames, and comes back identical.

Every EEP frame is a packet of its own, with the time of the Ethernet frame that it is a piece of.
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain

from weft.errors import BadInput
from weft.fabrics.merchant.eep import Decoder, Encoder, add_fcs
from weft.wire import eep
from weft.wire.capture import EEP, ETHERNET, Packet, reading, writing
from weft.wire.eep import HEADER, LARGEST, MOST, Fault
from weft.wire.ethernet import FCS

_BATCH = 1 << 20  # bytes that are encoded at a time
_ANY = 1 << 26  # an EEP capture may hold its stream in pieces of any size
_LEN = 1 << HEADER.offset("len")


@dataclass
class Counts:
    """What went from one capture into the other."""

    frames: int = 0
    frame_bytes: int = 0  # check sequences included
    eep_frames: int = 0
    eep_bytes: int = 0


def encode(source, target, link: int, *, fcs: bool | None = None, most: int = MOST) -> Counts:
    """Write the frames of the capture `source` as EEP frames of one virtual link to `target`.

    `fcs` says whether the captured frames carry their check sequences; most captures do not, and then they are added.
    """
    counts, encoder = Counts(), Encoder(link, most)
    with reading(source, ETHERNET) as (header, packets), writing(target, header.of(EEP)) as add:
        fcs = bool(header.fcs) if fcs is None else fcs
        longest = most - (0 if fcs else FCS)
        for batch in _batches(source, packets, longest):
            _write(batch, encoder, fcs, add, counts)
    return counts


def _batches(source, packets, longest):
    """Lists of packets, each captured whole and of `longest` bytes at the most, with their bytes together."""
    batch, size = [], 0
    for number, packet in enumerate(packets, 1):
        if len(packet.data) < packet.size:
            have = f"{len(packet.data)} of {packet.size} bytes"
            raise BadInput(f"packet {number} of {source} must be captured whole, not {have}")
        if not 1 <= packet.size <= longest:
            raise BadInput(f"packet {number} of {source} must be from 1 to {longest:,} bytes, not {packet.size}")
        batch.append(packet)
        size += packet.size
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _write(batch, encoder, fcs, add, counts):
    data, ends = b"".join(packet.data for packet in batch), []
    for packet in batch:
        ends.append((ends[-1] if ends else 0) + packet.size)
    if not fcs:
        data, ends = add_fcs(data, ends)
    stream, at, start = encoder.add(data, ends), 0, 0
    for packet, end in zip(batch, ends, strict=True):
        for _ in range(eep.segments(int(end) - start)):
            size = 2 + stream[at + 1] if stream[at] & _LEN else LARGEST
            add(Packet(packet.seconds, packet.fraction, stream[at : at + size], size))
            at += size
            counts.eep_frames += 1
        start = int(end)
    counts.frames += len(batch)
    counts.frame_bytes += len(data)
    counts.eep_bytes += len(stream)


def decode(source, target, link: int | None = None, *, fcs: bool | None = None, most: int = MOST):
    """Write the Ethernet frames of the EEP capture `source` to `target`, those of one virtual link or of all.

    Returns (counts, faults). A frame has the time of its first EEP frame. If the check sequences were added, they are
    taken off again, and frames with a wrong one are left out.
    """
    counts, faults, decoder = Counts(), [], Decoder(most)
    starts, seconds, fractions = array("q"), array("q"), array("q")  # of each EEP frame: its offset and its time
    with reading(source, EEP) as (header, packets), writing(target, header.of(ETHERNET)) as add:
        fcs = bool(header.fcs) if fcs is None else fcs
        for batch in chain(_batches(source, packets, _ANY), [None]):
            for packet in batch or ():
                starts.append(counts.eep_bytes)
                seconds.append(packet.seconds)
                fractions.append(packet.fraction)
                counts.eep_frames += 1
                counts.eep_bytes += packet.size
            found = decoder.end() if batch is None else decoder.add(b"".join(packet.data for packet in batch))
            for event in found.events():
                if isinstance(event, Fault):
                    faults.append(event)
                    continue
                if not event.intact:
                    faults.append(eep.damage(event))
                if (event.intact or fcs) and link in (None, event.link):
                    k = bisect_right(starts, event.offset) - 1
                    data = event.data if fcs else event.data[:-FCS]
                    add(Packet(seconds[k], fractions[k], data, len(data)))
                    counts.frames += 1
                    counts.frame_bytes += len(event.data)
    return counts, faults
