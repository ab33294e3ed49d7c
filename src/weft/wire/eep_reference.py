"""EEP, plainly: encoder, multiplexer and decoder as the paper describes them, one EEP frame at a time (§VI-A).

The twin of `weft.fabrics.merchant.eep`: from the same bytes, however they are cut, both make the same bytes, the same
frames and the same faults.
"""

from collections import deque
from dataclasses import dataclass

from weft.wire.eep import (
    HEADER,
    LENGTH,
    LINKS,
    MOST,
    SEGMENT,
    Fault,
    Frame,
    Kind,
    require_link,
    require_most,
    require_size,
    require_sizes,
    window,
)
from weft.wire.ethernet import intact


def eep_frame(link: int, payload: bytes, *, sof: bool, eof: bool) -> bytes:
    """One EEP frame."""
    short = len(payload) < SEGMENT
    header = HEADER.pack(sof=sof, eof=eof, len=short, reserved=0, link=link)
    return header + (LENGTH.pack(length=len(payload), reserved=0) if short else b"") + payload


def encode(frame: bytes, link: int, most: int = MOST) -> list[bytes]:
    """An Ethernet frame as EEP frames."""
    require_link(link)
    require_size(len(frame), most)
    last = (len(frame) - 1) // SEGMENT
    return [eep_frame(link, frame[k * SEGMENT : (k + 1) * SEGMENT], sof=k == 0, eof=k == last) for k in range(last + 1)]


class Encoder:
    """Cuts the Ethernet frames of one virtual link into EEP frames, whatever pieces they come in."""

    def __init__(self, link: int, most: int = MOST):
        self.link, self.most = require_link(link), require_most(most)
        self._held = b""  # at most a segment: only the next byte, or the end, tells whether it is the last
        self._size = 0  # bytes of the frame so far

    def add(self, piece: bytes, ends=()) -> bytes:
        """Take a piece of the frames, in which frames end at the positions `ends`; return the EEP frames it makes."""
        require_sizes(self._size, len(piece), ends, self.most)
        out, at = [], 0
        for end in [*ends, None]:
            for byte in piece[at:end]:
                if len(self._held) == SEGMENT:
                    out.append(self._send(eof=False))
                self._held += bytes([byte])
                self._size += 1
            if end is not None:
                out.append(self._send(eof=True))
                self._size = 0
            at = end
        return b"".join(out)

    def _send(self, eof):
        sof = self._size == len(self._held)
        payload, self._held = self._held, b""
        return eep_frame(self.link, payload, sof=sof, eof=eof)


class Multiplexer:
    """The queues of a transmitter, one to a virtual link, served round robin, one EEP frame at a time."""

    def __init__(self):
        self.queues = [deque() for _ in range(LINKS)]
        self._turn = 0  # the link whose turn it is

    def put(self, link: int, frame: bytes, most: int = MOST) -> None:
        """Queue the EEP frames of an Ethernet frame."""
        self.queues[require_link(link)].extend(encode(frame, link, most))

    def take(self) -> bytes:
        """The next EEP frame; nothing if all queues are empty."""
        for link in (*range(self._turn, LINKS), *range(self._turn)):
            if self.queues[link]:
                self._turn = (link + 1) % LINKS
                return self.queues[link].popleft()
        return b""


@dataclass
class _Header:
    """What the header of an EEP frame says, and where its payload is."""

    link: int
    sof: bool
    eof: bool
    begin: int
    end: int


def _read(data, at) -> _Header | tuple[Kind, int] | None:
    """The header at `at`; what is wrong with it, and what was there; or None while bytes are missing."""
    if at >= len(data):
        return None
    fields = HEADER.unpack(data[at : at + 1])
    begin, length = at + 1, SEGMENT
    if fields["reserved"]:
        return Kind.RESERVED, data[at]
    if fields["len"]:
        if not fields["eof"]:
            return Kind.UNENDED, data[at]
        if begin >= len(data):
            return None
        second = LENGTH.unpack(data[begin : begin + 1])
        if second["reserved"] or not second["length"]:
            return Kind.LENGTH, data[begin]
        begin, length = begin + 1, second["length"]
    return _Header(fields["link"], bool(fields["sof"]), bool(fields["eof"]), begin, begin + length)


class Decoder:
    """Puts the EEP frames of a stream back into Ethernet frames, whatever pieces the stream comes in.

    A header that no sender makes means that framing is lost: where EEP frames begin is no longer known. All open frames
    are given up, and decoding goes on at the next SOF: the first place that reads as one, and as the beginning of an
    Ethernet frame that ends, within a `window`, with a right FCS. Any bytes may come in.
    """

    def __init__(self, most: int = MOST):
        self.most = require_most(most)
        self.skipped = 0  # bytes passed over while looking for an SOF
        self._data = bytearray()  # what has not been used
        self._base = 0  # offset of its first byte
        self._hunting = False
        self._open: dict[int, tuple[int, bytearray]] = {}  # link -> offset and bytes of its frame
        self._waiting: set[int] = set()  # links whose segments are passed over until the next SOF

    def add(self, piece: bytes) -> list[Frame | Fault]:
        """Take a piece of the stream; return the frames and faults that it makes certain."""
        self._data += piece
        return self._go(final=False)

    def end(self) -> list[Frame | Fault]:
        """Say that the stream ends here; return what is certain by that."""
        out = self._go(final=True)
        if self._data:
            out.append(Fault(Kind.CUT, self._base, -1, len(self._data)))
        for link, (offset, frame) in sorted(self._open.items()):
            out.append(Fault(Kind.OPEN, offset, link, len(frame)))
        self._base += len(self._data)
        self._data, self._open, self._waiting, self._hunting = bytearray(), {}, set(), False
        return out

    def _go(self, final):
        out = []
        while True:
            if self._hunting and not self._find(final):
                return out
            header = _read(self._data, 0)
            if isinstance(header, tuple):
                out.append(Fault(header[0], self._base, -1, header[1]))
                for link, (offset, _) in sorted(self._open.items()):
                    out.append(Fault(Kind.LOST, offset, link, self._base))
                self._open, self._waiting, self._hunting = {}, set(range(LINKS)), True
                self._pass(1)
            elif header is None or header.end > len(self._data):
                return out
            else:
                self._place(header, out)
                self._drop(header.end)

    def _place(self, header, out):
        """Add a segment to its frame."""
        link, payload = header.link, self._data[header.begin : header.end]
        if header.sof:
            if link in self._open:
                out.append(Fault(Kind.UNFINISHED, self._open[link][0], link, self._base))
            self._open[link] = self._base, bytearray()
            self._waiting.discard(link)
        elif link not in self._open:
            if link not in self._waiting:
                out.append(Fault(Kind.ORPHAN, self._base, link, 0))
                self._waiting.add(link)
            return
        offset, frame = self._open[link]
        frame += payload
        if len(frame) > self.most:
            out.append(Fault(Kind.OVERSIZE, offset, link, self.most))
            del self._open[link]
            if not header.eof:
                self._waiting.add(link)
        elif header.eof:
            out.append(Frame(link, offset, bytes(frame), intact(frame)))
            del self._open[link]

    # ------------------------------------------------------------ after framing is lost

    def _find(self, final) -> bool:
        """Pass over bytes until they begin with an SOF to be believed."""
        while self._data:
            believed = self._believe(final)
            if believed:
                self._hunting = False
                return True
            if believed is None:
                return False
            self._pass(1)
        return False

    def _believe(self, final) -> bool | None:
        """Whether the bytes begin with an SOF whose frame ends with a right FCS; None while that cannot be told."""
        unknown, frame, link, at = False if final else None, bytearray(), None, 0
        while at <= window(self.most):
            header = _read(self._data, at)
            if isinstance(header, tuple):
                return False
            if header is None:
                return unknown
            if link is None:
                if not header.sof:
                    return False
                link = header.link
            elif header.link == link and header.sof:
                return False
            if header.end > len(self._data):
                return unknown
            if header.link == link:
                frame += self._data[header.begin : header.end]
                if len(frame) > self.most:
                    return False
                if header.eof:
                    return intact(bytes(frame))
            at = header.end
        return False

    def _pass(self, count):
        self.skipped += count
        self._drop(count)

    def _drop(self, count):
        del self._data[:count]
        self._base += count
