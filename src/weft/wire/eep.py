"""EEP, sixteen virtual Ethernet links over one physical link: its bits, its words and its faults (HOTI '09, §VI-A).

An Ethernet frame, check sequence included, is cut into segments of 64 bytes. A segment goes out as an EEP frame: one
header byte (Fig. 10), a second one with the length where the segment is shorter, and the payload. EEP frames follow one
another with nothing between them; those of different virtual links in any order, those of one link in theirs. What the
paper leaves open and a wire must fix is ours:

order      bit 0 of the figure is the lowest bit of its byte, which Ethernet sends first.
length     in the low six bits of the second byte.
last       not padded: 24 EEP frames of a 1,518-byte frame then have the 25 bytes of headers that §VI-A counts.
preamble   not carried, nor the gap: the far end makes its own.
reserved   bits are sent as 0, and a header with one set is taken for a damaged one, as is one with LEN but no EOF, and
           a length of 0: a sender never makes them.

`weft.wire.eep_reference` is the plain codec, written from the paper; `weft.fabrics.merchant.eep` the fast one.
"""

from dataclasses import dataclass
from enum import IntEnum

from weft.errors import require
from weft.wire.format import Format

HEADER = Format("eep_header", (("sof", 1), ("eof", 1), ("len", 1), ("reserved", 1), ("link", 4)))
LENGTH = Format("eep_length", (("length", 6), ("reserved", 2)))
SOURCE = {
    ("eep_header", "sof"): ("SOF", "printed"),
    ("eep_header", "eof"): ("EOF", "printed"),
    ("eep_header", "len"): ("LEN", "printed"),
    ("eep_header", "reserved"): ("reserved", "deduced: one of the three unused bits"),
    ("eep_header", "link"): ("Virtual Link ID", "printed"),
    ("eep_length", "length"): ("payload length", "deduced: up to 63 bytes"),
    ("eep_length", "reserved"): ("reserved, second byte", "deduced: two of the three unused bits"),
}

SEGMENT = 64  # bytes of an Ethernet frame in one EEP frame (§VI-A)
LARGEST = HEADER.size + SEGMENT  # bytes of an EEP frame at the most
LINKS = 1 << dict(HEADER.fields)["link"]
MOST = 9018  # bytes of the longest Ethernet frame, unless told otherwise: 9,000 of payload


def require_link(link: int) -> int:
    """`link`, if there is a virtual link of that number."""
    require(0 <= link < LINKS, "link_id", f"a virtual link from 0 to {LINKS - 1}", link)
    return link


def require_most(most: int) -> int:
    """`most`, if it can be the size of the longest Ethernet frame."""
    require(LARGEST <= most <= 1 << 20, "most", f"from {LARGEST} to {1 << 20:,} bytes", most)
    return most


def require_size(size: int, most: int) -> None:
    """Refuse an Ethernet frame of no bytes, or of more than `most`."""
    require(1 <= size <= most, "frame", f"from 1 to {most:,} bytes", size)


def require_sizes(begun: int, piece: int, ends, most: int) -> None:
    """Refuse frames that end at `ends` of a piece of so many bytes, `begun` bytes before it, unless all fit."""
    at = -begun
    for end in map(int, ends):
        require(max(at, 0) <= end <= piece, "ends", f"ascending positions in a piece of {piece} bytes", end)
        require_size(end - at, most)
        at = end
    if piece > at:
        require_size(piece - at, most)


def segments(size: int) -> int:
    """EEP frames of an Ethernet frame of `size` bytes."""
    return -(-size // SEGMENT)


def header_bytes(size: int) -> int:
    """Bytes that EEP adds to an Ethernet frame of `size` bytes."""
    return segments(size) * HEADER.size + (LENGTH.size if size % SEGMENT else 0)


def window(most: int) -> int:
    """Bytes within which a frame begun after a loss of framing must end: every link sends one EEP frame in turn."""
    return LINKS * LARGEST * segments(most)


class Kind(IntEnum):
    """What comes out of a decoder: a frame, or why there is none."""

    FRAME = 0  # with a right FCS
    DAMAGED = 1  # with a wrong one
    RESERVED = 2  # a reserved bit is set: framing is lost
    UNENDED = 3  # a length, but no EOF: framing is lost
    LENGTH = 4  # a length that is none: framing is lost
    LOST = 5  # a frame that was open when framing was lost
    ORPHAN = 6  # a segment between frames; further ones before the next SOF are not reported
    UNFINISHED = 7  # a frame that had not ended when the next one began
    OVERSIZE = 8  # a frame beyond the longest
    CUT = 9  # the stream ends within an EEP frame
    OPEN = 10  # the stream ends within an Ethernet frame


@dataclass(frozen=True)
class Frame:
    """An Ethernet frame as it was put together; `offset` is that of its SOF header in the stream of EEP frames."""

    link: int
    offset: int
    data: bytes
    intact: bool  # whether its FCS is right


@dataclass(frozen=True)
class Fault:
    """What a decoder could not use: `offset` is that of the header where it begins, in the stream of EEP frames."""

    kind: Kind
    offset: int
    link: int  # -1 where it cannot be told
    seen: int  # what was there: a byte, a size, or an offset

    def __str__(self) -> str:
        return f"offset {self.offset}: {_SENTENCES[self.kind].format(link=self.link, seen=self.seen)}"


_SENTENCES = {
    Kind.RESERVED: "the reserved bit of an EEP header must be 0, not 1 as in {seen:#04x}",
    Kind.UNENDED: "an EEP header with LEN must have EOF, unlike {seen:#04x}",
    Kind.LENGTH: "the length byte of an EEP header must be from 1 to 63, not {seen}",
    Kind.LOST: "the frame on virtual link {link} must end before framing is lost, at offset {seen}",
    Kind.ORPHAN: "a segment on virtual link {link} must follow one with SOF",
    Kind.UNFINISHED: "the frame on virtual link {link} must end before the next begins, at offset {seen}",
    Kind.OVERSIZE: "the frame on virtual link {link} must be at most {seen} bytes",
    Kind.CUT: "an EEP frame must be whole, not cut off after {seen} bytes",
    Kind.OPEN: "the frame on virtual link {link} must end before the stream does, after {seen} bytes",
    Kind.DAMAGED: "the frame of {seen} bytes on virtual link {link} must end with its check sequence",
}


def damage(frame: Frame) -> Fault:
    """What is wrong with a frame whose FCS is."""
    return Fault(Kind.DAMAGED, frame.offset, frame.link, len(frame.data))
