"""Shoal's cells on the wire: an 8-byte header and a payload, and the packets that are cut into them (§3.5, Fig. 5).

Of the header's figure four widths and the sum survive in print; `SOURCE` says which widths are deduced, and from what.
What the paper leaves open and a wire must fix is ours:

order     fields from the least significant bit up, first byte first; the CRC is then the header's last byte.
CRC       CRC-8/SAE-J1850 over the other bytes of the cell, header first. In 512 bits every 8-bit CRC misses some double
          errors, a primitive polynomial the fewest; and its start value makes a cell of all zeros a damaged one.
feedback  the two codes above the largest value that a queue can report: nothing received, and not applicable.
wider     Fig. 5 has room for one value of feedback and none for the news of §3.5, who cannot be reached. A header that
          carries a second value, or a bit per node for the news, has them behind the first value and behind the flags;
          its CRC is still the last byte. `header` lays it out.
empty     a cell whose source is its destination: nobody sends to himself.
length    the header has no room for one, so that of a packet is the first two bytes of its first cell.
"""

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from weft.errors import BadInput, require
from weft.parameters import Hex
from weft.units import param
from weft.wire.crc import CRC8_SAE_J1850
from weft.wire.format import Format

FIG_5 = (
    ("dst", 10),
    ("src", 10),
    ("seq", 22),
    ("feedback", 11),
    ("start", 1),
    ("end", 1),
    ("dropped", 1),
    ("crc", 8),
)
VALUES = 2  # of feedback that a header can carry
NEWS = 512  # nodes of which it can say whether they are reached: those of the paper's rack


@lru_cache
def header(values: int = 1, news: int = 0) -> Format:
    """The layout with so many values of feedback and a bit for each of `news` nodes; without either it is Fig. 5's."""
    require(1 <= values <= VALUES, "values", f"from 1 to {VALUES} of feedback", values)
    require(0 <= news <= NEWS, "news", f"of 0 to {NEWS} nodes", news)
    before = FIG_5[: 1 + [name for name, _ in FIG_5].index("feedback")]
    flags, crc = FIG_5[len(before) : -1], FIG_5[-1:]
    older = (("older", dict(FIG_5)["feedback"]),) if values > 1 else ()
    failed = (("failed", news),) if news else ()
    fields = before + older + flags + failed
    spare = -sum(width for _, width in fields) % 8
    padding = (("spare", spare),) if spare else ()
    return Format("shoal_header", fields + padding + crc)


HEADER = header()
SOURCE = {
    "dst": ("destination id", "printed"),
    "src": ("source id", "deduced: reassembly needs it; as wide as the destination"),
    "seq": ("sequence number", "deduced: named in §3.5; what is left of 64 bits"),
    "feedback": ("rate limit feedback", "deduced: up to 2N - 3 = 2045 for 1024 nodes, and two codes"),
    "older": ("-", "ours: as wide as the feedback before it"),
    "start": ("start-of-packet", "deduced: as wide as end-of-packet"),
    "end": ("end-of-packet", "printed"),
    "dropped": ("last-cell-dropped", "printed"),
    "failed": ("-", "ours: a bit per node, for §3.5"),
    "spare": ("-", "ours: so that the CRC is a byte"),
    "crc": ("CRC checksum", "printed; the polynomial is ours"),
}
CRC = CRC8_SAE_J1850

CELL = 64  # bytes, header included (§3.3.4)
NODES = 1 << 10  # that a header can tell apart (Fig. 5)
SEQUENCE = 1 << 22  # numbers after which a flow begins again
NOTHING = 2047  # feedback: no cell has come from you since the last one
NOT_APPLICABLE = 2046  # feedback: one came that you had only forwarded; one of your own that has arrived gets 0
CODES = {"nothing": NOTHING, "not-applicable": NOT_APPLICABLE}
MOST_FEEDBACK = 2045  # 1024 nodes: N - 1 cells in a queue (one is local), N - 1 flows ready, less one (eq. 6)
LENGTH = 2  # bytes that say how long a packet is
PACKET = 65_535  # bytes of the longest packet they can say


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell as its header and payload say. `dst` and `src` are the ends of its flow, not of this hop."""

    dst: int = param(help="destination of the cell's flow; an empty cell has its source here")
    src: int = param(help="source of the cell's flow")
    seq: int = param(0, "sequence number within the flow")
    feedback: int = param(NOTHING, "rate limit feedback: a number of cells, nothing, or not-applicable", words=CODES)
    start: bool = param(False, "the cell is the first of its packet")
    end: bool = param(False, "the cell is the last of its packet")
    dropped: bool = param(False, "the last cell that came from the receiver was dropped")
    payload: Hex = param(b"", "payload, padded with zeros")
    older: int = param(NOTHING, "the same of the cell before, in a header of two values", words=CODES)
    failed: int = param(0, "bit k: the sender cannot reach node k, in a header that carries news")

    @property
    def empty(self) -> bool:
        """Whether the cell carries feedback alone."""
        return self.dst == self.src

    def encode(self, size: int = CELL, layout: Format = HEADER) -> bytes:
        """The cell as `size` bytes, the payload padded with zeros."""
        require(layout.size <= size <= PACKET, "cell", f"from {layout.size} to {PACKET:,} bytes", size)
        room, there = size - layout.size, dict(layout.fields)
        require(len(self.payload) <= room, "payload", f"at most {room} bytes in a cell of {size}", len(self.payload))
        for name, nothing in (("older", NOTHING), ("failed", 0)):
            require(name in there or getattr(self, name) == nothing, name, "left out of this header",
                    getattr(self, name))  # fmt: skip
        values = {name: getattr(self, name, 0) for name in there}
        data = bytearray(layout.pack(**values) + self.payload.ljust(room, b"\0"))
        data[layout.size - 1] = checksum(data, layout)
        return bytes(data)


def checksum(data: bytes | bytearray, layout: Format = HEADER) -> int:
    """The CRC of a whole cell, whatever stands in its CRC byte, the last of the header."""
    at = layout.size - 1
    return CRC.compute(bytes(data[:at]) + bytes(data[at + 1 :]))


def decode(data: bytes, layout: Format = HEADER) -> tuple[Cell, bool]:
    """The cell in `data`, and whether its CRC is right.

    A damaged cell is decoded too: Appendix D still reads its feedback and `dropped`.
    """
    require(len(data) >= layout.size, "cell", f"at least {layout.size} bytes", len(data))
    values: dict[str, Any] = layout.unpack(data[: layout.size])
    values.pop("spare", None)
    intact = values.pop("crc") == checksum(data, layout)
    flags = {name: bool(values[name]) for name in ("start", "end", "dropped")}
    return Cell(**values | flags, payload=bytes(data[layout.size :])), intact


def feedback(value: int) -> int:
    """`value` as a header can say it: eq. 6 over empty queues is -1 and counts as 0; longer queues than one class can
    have, as the sums of Appendix C may be, count as the longest."""
    return min(max(value, 0), MOST_FEEDBACK)


def missed_pairs(size: int = CELL, layout: Format = HEADER) -> int:
    """Pairs of flipped bits in a cell of `size` bytes that its CRC does not see."""
    clean, missed, at = checksum(bytes(size), layout), 0, layout.size - 1
    seen: dict[int, int] = {}
    for bit in range(8 * size):
        data = bytearray(size)
        data[bit // 8] = 1 << bit % 8
        flip = data[at] if bit // 8 == at else checksum(data, layout) ^ clean  # what it does to the comparison
        missed += seen.get(flip, 0)
        seen[flip] = seen.get(flip, 0) + 1
    return missed


# ---------------------------------------------------------------- packets


class Fragmenter:
    """Cuts the packets of node `src` into cells, numbering each destination's from 0."""

    def __init__(self, src: int, size: int = CELL):
        require(0 <= src < NODES, "src", f"a node from 0 to {NODES - 1}", src)
        _require_room(size)
        self.src, self.size = src, size
        self._next: dict[int, int] = {}  # seq of the next cell to each destination

    def cells(self, dst: int, packet: bytes) -> list[Cell]:
        """`packet` as cells for `dst`; their feedback is filled in by whoever sends them on."""
        require(0 <= dst < NODES and dst != self.src, "dst", f"another node from 0 to {NODES - 1}", dst)
        require(len(packet) <= PACKET, "packet", f"at most {PACKET:,} bytes", len(packet))
        data = len(packet).to_bytes(LENGTH, "little") + packet
        room, seq = self.size - HEADER.size, self._next.get(dst, 0)
        parts = [data[at : at + room].ljust(room, b"\0") for at in range(0, len(data), room)]
        self._next[dst] = (seq + len(parts)) % SEQUENCE
        return [
            Cell(dst=dst, src=self.src, seq=(seq + k) % SEQUENCE, start=k == 0, end=k == len(parts) - 1, payload=part)
            for k, part in enumerate(parts)
        ]


@dataclass
class Errors:
    """What a reassembler met that it could not use, in cells unless it says otherwise."""

    corrupt: int = 0  # CRC wrong, or not the size of a cell
    misrouted: int = 0  # for another node
    duplicate: int = 0  # seen before, and still waiting
    late: int = 0  # seen before, or given up
    stray: int = 0  # with a number so far off that it is not believed
    lost: int = 0  # given up: never came in time
    orphan: int = 0  # between packets, or of a packet already given up
    broken: int = 0  # packets given up

    @property
    def total(self) -> int:
        return sum(getattr(self, one.name) for one in fields(self))


@dataclass
class _Flow:
    """The cells of one source."""

    next: int = 0  # seq of the cell that would be in order
    held: dict[int, Cell] = field(default_factory=dict)  # cells ahead of it
    packet: bytearray | None = None  # what there is of the packet being put together
    left: int = 0  # bytes it lacks
    stray: int | None = None  # seq of the last cell that was not believed


class Reassembler:
    """Puts the cells that reach node `me` back into packets, whatever their order and whatever is missing.

    Cells of a source wait for their turn, at most `window` numbers ahead and `memory` cells over all sources. A cell
    further ahead gives up those that should have come before it. One that is two windows off, ahead or behind, is not
    believed until another such cell agrees with it: that is a flow which began anew. So any bytes may come in; what
    cannot be used is counted in `errors`, and no packet comes out that did not go in, but for what the CRC misses.
    Cells accepted = corrupt + misrouted + empty + duplicate + late + stray + held + used.
    """

    def __init__(self, me: int, *, size: int = CELL, window: int = 4096, memory: int = 65_536, packet: int = PACKET):
        require(0 <= me < NODES, "me", f"a node from 0 to {NODES - 1}", me)
        _require_room(size)
        require(1 <= window <= SEQUENCE // 8, "window", f"from 1 to {SEQUENCE // 8:,} cells", window)
        require(memory >= 1, "memory", "at least 1 cell", memory)
        require(0 <= packet <= PACKET, "packet", f"from 0 to {PACKET:,} bytes", packet)
        self.me, self.size, self.window, self.memory, self.packet = me, size, window, memory, packet
        self.errors = Errors()
        self.delivered = 0  # packets
        self.empty = 0  # cells that carried feedback alone
        self.used = 0  # cells whose turn came
        self._flows: dict[int, _Flow] = {}
        self._held = 0

    @property
    def held(self) -> int:
        """Cells that wait for others before them."""
        return self._held

    @property
    def stored(self) -> int:
        """Bytes of payload in memory: cells that wait, and packets that are not whole."""
        open_packets = sum(len(flow.packet) for flow in self._flows.values() if flow.packet is not None)
        return self._held * (self.size - HEADER.size) + open_packets

    def accept(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take what the wire brought; return the packets it completes, each with its source, in order."""
        if len(data) != self.size:
            self.errors.corrupt += 1
            return []
        cell, intact = decode(data)
        if not intact:
            self.errors.corrupt += 1
            return []
        if cell.empty:
            self.empty += 1
            return []
        if cell.dst != self.me:
            self.errors.misrouted += 1
            return []
        return self._place(self._flows.setdefault(cell.src, _Flow()), cell)

    def give_up(self, src: int) -> list[tuple[int, bytes]]:
        """Wait no longer for what is missing from `src`: return the packets that are whole without it."""
        return self._flush(self._flows[src]) if src in self._flows else []

    # ------------------------------------------------------------ a flow

    def _place(self, flow, cell):
        """Hold a cell until its turn, unless it has none; return the packets that are whole by then."""
        ahead, behind = (cell.seq - flow.next) % SEQUENCE, (flow.next - cell.seq) % SEQUENCE
        out = []
        if ahead >= 2 * self.window:
            if behind <= 2 * self.window:
                self.errors.late += 1
                return []
            if not self._agrees(flow, cell.seq):
                self.errors.stray += 1
                flow.stray = cell.seq
                return []
            out = self._flush(flow)
            flow.next = cell.seq
        if cell.seq in flow.held:
            self.errors.duplicate += 1
            return []
        flow.stray = None
        flow.held[cell.seq] = cell
        self._held += 1
        out += self._drain(flow)
        while cell.seq in flow.held and (cell.seq - flow.next) % SEQUENCE >= self.window:
            out += self._skip(flow)
        while self._held > self.memory:
            out += self._skip(max(self._flows.values(), key=lambda other: len(other.held)))
        return out

    def _agrees(self, flow, seq) -> bool:
        """Whether a cell far from its turn is near the last such cell."""
        return flow.stray is not None and 0 < (seq - flow.stray) % SEQUENCE < self.window

    def _flush(self, flow):
        out = []
        while flow.held:
            out += self._skip(flow)
        self._break(flow)
        return out

    def _skip(self, flow):
        """Give up what is missing before the first cell that waits."""
        self._break(flow)
        while flow.next not in flow.held:
            flow.next = (flow.next + 1) % SEQUENCE
            self.errors.lost += 1
        return self._drain(flow)

    def _drain(self, flow):
        """Put together the cells whose turn it is."""
        out = []
        while (cell := flow.held.pop(flow.next, None)) is not None:
            self._held -= 1
            self.used += 1
            flow.next = (flow.next + 1) % SEQUENCE
            packet = self._append(flow, cell)
            if packet is not None:
                self.delivered += 1
                out.append((cell.src, packet))
        return out

    def _append(self, flow, cell) -> bytes | None:
        """Add a cell to its packet, and return the packet if that makes it whole."""
        payload = cell.payload
        if cell.start:
            self._break(flow)
            length = int.from_bytes(payload[:LENGTH], "little")
            if length > self.packet:
                self.errors.broken += 1
                return None
            flow.packet, flow.left, payload = bytearray(), length, payload[LENGTH:]
        elif flow.packet is None:
            self.errors.orphan += 1
            return None
        elif flow.left == 0:
            self._break(flow)
            return None
        flow.packet += payload[: flow.left]
        flow.left -= min(flow.left, len(payload))
        if not cell.end:
            return None
        if flow.left:
            self._break(flow)
            return None
        packet, flow.packet = bytes(flow.packet), None
        return packet

    def _break(self, flow):
        if flow.packet is not None:
            self.errors.broken += 1
            flow.packet = None


def _require_room(size):
    least = HEADER.size + LENGTH
    if size < least:
        raise BadInput(f"cell must be at least {least} bytes to carry packets, not {size}")
