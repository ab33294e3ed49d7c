"""EEP, fast: the encoder, multiplexer and decoder of `weft.wire.eep_reference`, compiled, over batches of frames.

Frames of a batch lie one after the other in an array of bytes; `ends` says where each one ends.
"""

import numpy as np

from weft.engine.jit import kernel, part
from weft.errors import require
from weft.wire import eep
from weft.wire.crc import CRC32
from weft.wire.eep import HEADER, LARGEST, LENGTH, LINKS, MOST, SEGMENT, Fault, Frame, Kind
from weft.wire.ethernet import FCS, fcs

_SOF, _EOF, _LEN, _RESERVED = (1 << HEADER.offset(name) for name in ("sof", "eof", "len", "reserved"))
_LINK = HEADER.offset("link")
_LENGTH = (1 << dict(LENGTH.fields)["length"]) - 1
_FRAME, _DAMAGED, _BIT, _UNENDED, _SHORT, _LOST, _ORPHAN, _UNFINISHED, _OVERSIZE, _CUT, _OPEN = map(int, Kind)
_BELIEVED, _REFUSED, _UNKNOWN = 1, 0, -1
_MORE, _FULL = 0, 1  # why a decoder stops: it wants more bytes, or room for what it found
_ROWS = 4096  # frames and faults that a decoder finds before it makes room
_PORTION = 1 << 18  # bytes that it takes at a time: what it works on stays in the cache

# What a decoder finds, in the order of the stream.
ROW = np.dtype([("kind", "i8"), ("offset", "i8"), ("link", "i8"), ("seen", "i8"), ("size", "i8")])


def _slices() -> np.ndarray:
    """(8, 256) uint32: [k, b] is what byte b does to the register k bytes later, so that eight go at once."""
    table = np.zeros((8, 256), np.uint32)
    table[0] = CRC32.table
    for k in range(1, 8):
        table[k] = table[k - 1] >> np.uint32(8) ^ table[0][table[k - 1] & np.uint32(255)]
    return table


_TABLE = _slices()
_INIT = np.uint32(CRC32.init)
_XOR = np.uint32(CRC32.xor_out)
_RESIDUE = np.uint32(CRC32.compute(b"." + fcs(b".")) ^ CRC32.xor_out)  # the register after any frame and its FCS
_8, _16, _24, _255 = (np.uint32(k) for k in (8, 16, 24, 255))


@part
def _crc(table, data, begin, end, register):
    """The register of the FCS after these bytes."""
    at = begin
    while end - at >= 8:
        low = register ^ (
            np.uint32(data[at])
            | np.uint32(data[at + 1]) << _8
            | np.uint32(data[at + 2]) << _16
            | np.uint32(data[at + 3]) << _24
        )
        register = (
            table[7, low & _255]
            ^ table[6, low >> _8 & _255]
            ^ table[5, low >> _16 & _255]
            ^ table[4, low >> _24]
            ^ table[3, data[at + 4]]
            ^ table[2, data[at + 5]]
            ^ table[1, data[at + 6]]
            ^ table[0, data[at + 7]]
        )
        at += 8
    while at < end:
        register = register >> _8 ^ table[0, (register ^ np.uint32(data[at])) & _255]
        at += 1
    return register


@kernel
def _append_fcs(table, data, ends, out):
    at = to = 0
    for k in range(ends.size):
        size = ends[k] - at
        for i in range(size):
            out[to + i] = data[at + i]
        register = _crc(table, data, at, ends[k], _INIT) ^ _XOR
        for i in range(FCS):
            out[to + size + i] = register >> np.uint32(8 * i) & _255
        at = ends[k]
        to += size + FCS


@part
def _emit(out, to, link, data, begin, size, sof, eof):
    """Write one EEP frame; returns where the next one goes."""
    header = link << _LINK | (_SOF if sof else 0) | (_EOF if eof else 0)
    if size == SEGMENT:
        out[to] = header
        for i in range(SEGMENT):
            out[to + 1 + i] = data[begin + i]
        return to + 1 + SEGMENT
    out[to] = header | _LEN
    out[to + 1] = size
    for i in range(size):
        out[to + 2 + i] = data[begin + i]
    return to + 2 + size


@kernel
def _encode(piece, ends, link, held, begun, out):
    """Encode a piece. begun[0] bytes wait in `held`, begun[1] bytes of their frame have gone; returns bytes made."""
    to = at = 0
    waiting, gone = begun[0], begun[1]
    for k in range(ends.size + 1):
        end = ends[k] if k < ends.size else piece.size
        while at < end:
            if waiting == 0 and end - at > SEGMENT:  # a whole segment and more: no need to hold it
                to = _emit(out, to, link, piece, at, SEGMENT, gone == 0, False)
                at += SEGMENT
                gone += SEGMENT
                continue
            if waiting == SEGMENT:
                to = _emit(out, to, link, held, 0, SEGMENT, gone == 0, False)
                gone += SEGMENT
                waiting = 0
                continue
            take = min(SEGMENT - waiting, end - at)
            for i in range(take):
                held[waiting + i] = piece[at + i]
            waiting += take
            at += take
        if k < ends.size:
            to = _emit(out, to, link, held, 0, waiting, gone == 0, True)
            waiting = gone = 0
    begun[0], begun[1] = waiting, gone
    return to


@kernel
def _multiplex(data, ends, links, out):
    """Send batches of frames round robin, one EEP frame of each link in turn; returns bytes made."""
    count = ends.size
    following = np.full(count, -1, np.int64)  # the next frame of the same link
    first, last = np.full(LINKS, -1, np.int64), np.full(LINKS, -1, np.int64)
    for k in range(count):
        link = links[k]
        if first[link] < 0:
            first[link] = k
        else:
            following[last[link]] = k
        last[link] = k
    at = np.zeros(LINKS, np.int64)  # bytes of the first frame that have gone
    left, link, to = count, 0, 0
    while left:
        k = first[link]
        if k >= 0:
            begin = ends[k - 1] if k else 0
            size = ends[k] - begin
            part = min(SEGMENT, size - at[link])
            to = _emit(out, to, link, data, begin + at[link], part, at[link] == 0, at[link] + part == size)
            at[link] += part
            if at[link] == size:
                first[link], at[link] = following[k], 0
                left -= 1
        link = (link + 1) % LINKS
    return to


@part
def _header(data, at, end):
    """(kind, begin of payload, its end) of the header at `at`; begin is -1 while bytes are missing, and kind is
    FRAME where nothing is wrong."""
    if at >= end:
        return _FRAME, -1, 0
    byte = data[at]
    if byte & _RESERVED:
        return _BIT, np.int64(byte), 0
    if not byte & _LEN:
        return _FRAME, at + 1, at + 1 + SEGMENT
    if not byte & _EOF:
        return _UNENDED, np.int64(byte), 0
    if at + 1 >= end:
        return _FRAME, -1, 0
    length = data[at + 1]
    if length == 0 or length > _LENGTH:
        return _SHORT, np.int64(length), 0
    return _FRAME, at + 2, at + 2 + np.int64(length)


@part
def _believe(table, data, start, end, most, window, final):
    """Whether an SOF at `start` begins a frame that ends with a right FCS."""
    if not data[start] & _SOF:
        return _REFUSED
    link, at, size, register = data[start] >> _LINK, start, np.int64(0), _INIT
    while at - start <= window:
        kind, begin, stop = _header(data, at, end)
        if kind != _FRAME:
            return _REFUSED
        if begin < 0 or stop > end:
            if begin >= 0 and at > start and data[at] >> _LINK == link and data[at] & _SOF:
                return _REFUSED
            return _REFUSED if final else _UNKNOWN
        if data[at] >> _LINK == link:
            if at > start and data[at] & _SOF:
                return _REFUSED
            size += stop - begin
            if size > most:
                return _REFUSED
            register = _crc(table, data, begin, stop, register)
            if data[at] & _EOF:
                return _BELIEVED if size > FCS and register == _RESIDUE else _REFUSED
        at = stop
    return _REFUSED


@part
def _note(rows, row, kind, offset, link, seen, size):
    """Write a row; returns that of the next."""
    rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4] = kind, offset, link, seen, size
    return row + 1


@kernel
def _decode(table, data, end, final, most, window, place, store, size, start, waiting, rows, out):
    """Decode what is certain of data[:end], from place[0] on, until it ends or there is no more room.

    place is (at, offset of data[0], hunting, skipped, rows made, bytes made). Of each link, `store` has the frame, size
    bytes of it, begun at offset `start`, or -1 if none is open; `waiting` says that segments are passed over.
    """
    at, base, hunting, skipped = place[0], place[1], place[2], place[3]
    row = made = 0
    why = _MORE
    while True:
        if row + LINKS + 1 > len(rows) or made + most > out.size:
            why = _FULL
            break
        if hunting:
            believed = _REFUSED
            while at < end:
                believed = _believe(table, data, at, end, most, window, final)
                if believed != _REFUSED:
                    break
                at += 1
                skipped += 1
            if believed != _BELIEVED:
                break
            hunting = 0
        kind, begin, stop = _header(data, at, end)
        if kind != _FRAME:
            row = _note(rows, row, kind, base + at, -1, begin, 0)
            for link in range(LINKS):
                if start[link] >= 0:
                    row = _note(rows, row, _LOST, start[link], link, base + at, 0)
                start[link] = -1
                waiting[link] = True
            hunting = 1
            at += 1
            skipped += 1
            continue
        if begin < 0 or stop > end:
            break
        byte = data[at]
        link = np.int64(byte >> _LINK)
        if byte & _SOF:
            if start[link] >= 0:
                row = _note(rows, row, _UNFINISHED, start[link], link, base + at, 0)
            start[link], size[link], waiting[link] = base + at, 0, False
        elif start[link] < 0:
            if not waiting[link]:
                row = _note(rows, row, _ORPHAN, base + at, link, 0, 0)
                waiting[link] = True
            at = stop
            continue
        have = size[link]
        if have + stop - begin > most:
            row = _note(rows, row, _OVERSIZE, start[link], link, most, 0)
            start[link] = -1
            waiting[link] = waiting[link] or not byte & _EOF
            at = stop
            continue
        if not byte & _LEN:  # a number of bytes that the compiler knows
            for i in range(SEGMENT):
                store[link, have + i] = data[begin + i]
        else:
            for i in range(stop - begin):
                store[link, have + i] = data[begin + i]
        have += stop - begin
        size[link] = have
        at = stop
        if byte & _EOF:
            register = _crc(table, store[link], 0, have, _INIT)
            right = have > FCS and register == _RESIDUE
            for i in range(have):
                out[made + i] = store[link, i]
            row = _note(rows, row, _FRAME if right else _DAMAGED, start[link], link, have, have)
            made += have
            start[link] = -1
    place[0], place[2], place[3], place[4], place[5] = at, hunting, skipped, row, made
    return why


# ---------------------------------------------------------------- what Python sees


def _bytes(data) -> np.ndarray:
    """`data` as an array that nobody writes, of whatever it was: a kernel is compiled once."""
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view


def add_fcs(data, ends) -> tuple[np.ndarray, np.ndarray]:
    """A batch of frames without check sequences as one with them."""
    data, ends = _bytes(data), np.asarray(ends, np.int64)
    out = np.empty(data.size + FCS * ends.size, np.uint8)
    _append_fcs(_TABLE, data, ends, out)
    return out, ends + FCS * np.arange(1, ends.size + 1)


def _room(size, frames) -> np.ndarray:
    """Enough for the EEP frames of so many bytes in so many Ethernet frames."""
    return np.empty(size + size // SEGMENT + 2 * frames + 2, np.uint8)


class Encoder:
    """Cuts the Ethernet frames of one virtual link into EEP frames, whatever pieces they come in."""

    def __init__(self, link: int, most: int = MOST):
        self.link, self.most = eep.require_link(link), eep.require_most(most)
        self._held, self._begun = np.zeros(SEGMENT, np.uint8), np.zeros(2, np.int64)

    def add(self, piece, ends=()) -> bytes:
        """Take a piece of the frames, in which frames end at the positions `ends`; return the EEP frames it makes."""
        piece, ends = _bytes(piece), np.asarray(ends, np.int64)
        _require_sizes(int(self._begun.sum()), piece.size, ends, self.most)
        out = _room(piece.size + SEGMENT, ends.size)
        return out[: _encode(piece, ends, self.link, self._held, self._begun, out)].tobytes()


def multiplex(data, ends, links, most: int = MOST) -> np.ndarray:
    """A batch of frames, each for its link, as the stream in which the links' EEP frames take turns."""
    data, ends, links = _bytes(data), np.asarray(ends, np.int64), np.asarray(links, np.int64)
    require(links.size == ends.size, "links", f"one for each of {ends.size} frames", links.size)
    _require_sizes(0, data.size, ends, eep.require_most(most))
    for link in (links.min(initial=0), links.max(initial=0)):
        eep.require_link(int(link))
    out = _room(data.size, ends.size)
    return out[: _multiplex(data, ends, links, out)]


def _require_sizes(begun, piece, ends, most):
    """`weft.wire.eep.require_sizes`, all ends at once; it finds the words where something is wrong."""
    sizes = np.diff(ends, prepend=-begun)
    rest = piece - (ends[-1] if ends.size else -begun)
    if sizes.min(initial=1) < 1 or sizes.max(initial=1) > most or not 0 <= rest <= most or (ends.size and ends[0] < 0):
        eep.require_sizes(begun, piece, ends.tolist(), most)


class Found:
    """What a decoder found: `rows` of dtype ROW, in order, and the bytes of the frames among them, one after the
    other."""

    def __init__(self, rows: np.ndarray, data: np.ndarray):
        self.rows, self.data = rows, data

    def __len__(self) -> int:
        return len(self.rows)

    def events(self) -> list[Frame | Fault]:
        """The rows as objects."""
        out: list[Frame | Fault] = []
        at, data = 0, self.data.tobytes()
        for kind, offset, link, seen, size in self.rows.tolist():
            if kind <= _DAMAGED:
                out.append(Frame(link, offset, data[at : at + size], kind == _FRAME))
                at += size
            else:
                out.append(Fault(Kind(kind), offset, link, seen))
        return out


class Decoder:
    """Puts the EEP frames of a stream back into Ethernet frames, whatever pieces the stream comes in.

    `weft.wire.eep_reference.Decoder` says how; here `add` and `end` return what they `Found`.
    """

    def __init__(self, most: int = MOST):
        self.most = eep.require_most(most)
        self._data, self._used = np.empty(1 << 16, np.uint8), 0
        self._place = np.zeros(6, np.int64)
        self._store = np.empty((LINKS, self.most + LARGEST), np.uint8)
        self._size, self._start = np.zeros(LINKS, np.int64), np.full(LINKS, -1, np.int64)
        self._waiting = np.zeros(LINKS, np.bool_)
        self._rows, self._out = (
            np.empty((_ROWS, len(ROW.names or ())), np.int64),
            np.empty(_PORTION + self.most, np.uint8),
        )

    @property
    def skipped(self) -> int:
        """Bytes passed over while looking for an SOF."""
        return int(self._place[3])

    def add(self, piece) -> Found:
        """Take a piece of the stream; return the frames and faults that it makes certain."""
        piece, found = _bytes(piece), []
        for at in range(0, max(piece.size, 1), _PORTION):
            part = piece[at : at + _PORTION]
            self._make_room(part.size)
            self._data[self._used : self._used + part.size] = part
            self._used += part.size
            found += self._go(final=False)
        return _together(found)

    def end(self) -> Found:
        """Say that the stream ends here; return what is certain by that."""
        found = _together(self._go(final=True))
        at, base = int(self._place[0]), int(self._place[1])
        rest = [(_CUT, base + at, -1, self._used - at, 0)] if self._used > at else []
        rest += [
            (_OPEN, start, link, size, 0)
            for link, (start, size) in enumerate(zip(self._start.tolist(), self._size.tolist(), strict=True))
            if start >= 0
        ]
        self._place[:3] = 0, base + self._used, 0
        self._used = 0
        self._start[:], self._waiting[:] = -1, False
        return Found(np.concatenate([found.rows, np.array(rest, ROW)]), found.data)

    def _make_room(self, size):
        """Move what is left to the front, where there is room for `size` bytes more."""
        at = int(self._place[0])
        left = self._used - at
        if self._used + size > self._data.size:
            room = self._data if left + size <= self._data.size else np.empty(2 * (left + size), np.uint8)
            room[:left] = self._data[at : self._used]
            self._data, self._used = room, left
            self._place[0], self._place[1] = 0, self._place[1] + at

    def _go(self, final) -> list[Found]:
        found, why = [], _FULL
        while why == _FULL:
            why = _decode(
                _TABLE, self._data, self._used, final, self.most, eep.window(self.most), self._place,
                self._store, self._size, self._start, self._waiting, self._rows, self._out,
            )  # fmt: skip
            rows, made = self._place[4:]
            found.append(Found(self._rows[:rows].copy().view(ROW)[:, 0], self._out[:made].copy()))
        return found


def _together(found) -> Found:
    if len(found) == 1:
        return found[0]
    return Found(np.concatenate([one.rows for one in found]), np.concatenate([one.data for one in found]))
