"""The same streams packet by packet, through first-in-first-out ports: what the kernel's slots are held against.

Nothing is shared with the kernel but the windows in which hosts may send. In slots in which flows meet the kernel has
packets too, and this is their twin. Packets that are somewhere at the same moment go in the order of their windows.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.units import wire_time


class Window(NamedTuple):
    """`src` may send `size` bytes along `path` in packets that begin from `begin` on and before `end`."""

    src: int
    begin: int
    end: int
    size: int
    path: list[int]
    rate: int | None = None  # b/s that its packets keep to; that of the host's port if None


class Outcome(NamedTuple):
    """What came of the windows."""

    arrived: list[int | None]  # ps at which the last packet of each was there, or None
    bytes: list[int]  # payload of each that arrived
    queue: int  # most bytes that a packet found before it at a port of a switch
    dropped: int  # packets that found no room
    sent: list[int]  # payload of each that its host put on the wire
    deliveries: list[tuple[int, int, int]]  # (ps, window, payload) of every packet, in order
    cut: int  # payload that met a port that is down


@dataclass
class Line:
    """When a port has sent: spells of work, one for each cycle, or for several without a rest between."""

    spells: list[list[int]] = field(default_factory=list)  # [begin, end] ps
    cycle: int | None = None

    def work(self, cycle: int, begin: int, took: int) -> None:
        """It sends for so long, from `begin` on or after what it sends."""
        if self.spells and (cycle == self.cycle or begin <= self.spells[-1][1]):
            self.spells[-1][1] += took
        else:
            self.spells.append([begin, begin + took])
        self.cycle = cycle

    def until(self, now: int) -> int:
        """ps before `now` in which it has sent."""
        return sum(max(min(end, now) - begin, 0) for begin, end in self.spells)


@dataclass(kw_only=True)
class Links:
    """Ports, and until when each is busy: what windows of later slots find."""

    rate: list[int] | int  # b/s of every port, or of each
    delay: list[int] | int
    mtu: int
    overhead: int
    buffer: int
    store: bool
    down: set[int] = field(default_factory=set)
    busy: dict[int, int] = field(default_factory=dict)
    lines: dict[int, Line] = field(default_factory=lambda: defaultdict(Line))
    cycle: int = 0

    def of(self, values, port: int) -> int:
        """What a port has, where all may have the same."""
        return values if isinstance(values, int) else values[port]

    def time(self, payload: int, port: int) -> int:
        """ps of a packet on a port."""
        return wire_time(payload + self.overhead, self.of(self.rate, port))


def carry(windows: list[Window], **links) -> Outcome:
    """Send the packets of all windows through empty ports and wait until the last is there."""
    return carry_over(Links(**links), windows)


def carry_over(links: Links, windows: list[Window]) -> Outcome:
    """The same through ports that may be busy, and are left so."""
    events: list[tuple] = []  # (ps, window, running number, payload, hop): a packet is at a port of its path, or beyond
    sent = [0] * len(windows)
    for src in dict.fromkeys(window.src for window in windows):
        for number, (begin, w, payload) in enumerate(_emitted(links, windows, src, sent)):
            port = windows[w].path[0]
            took = links.time(payload, port) if links.store else 0
            heapq.heappush(events, (begin + took + links.of(links.delay, port), w, number, payload, 1))
    arrived: list[int | None] = [None] * len(windows)
    got, most, dropped, cut, deliveries = [0] * len(windows), 0, 0, 0, []
    while events:
        now, w, number, payload, hop = heapq.heappop(events)
        path = windows[w].path
        if hop == len(path):
            arrived[w] = now
            got[w] += payload
            deliveries.append((now, w, payload))
            continue
        port = path[hop]
        if port in links.down:
            cut += payload
            continue
        wait = max(0, links.busy.get(port, 0) - now)
        queued = wait * (links.mtu + links.overhead) // links.time(links.mtu, port)
        if queued > links.buffer:
            dropped += 1
            continue
        most = max(most, queued)
        links.lines[port].work(links.cycle, now + wait, links.time(payload, port))
        links.busy[port] = now + wait + links.time(payload, port)
        whole = links.store or hop + 1 == len(path)
        there = (links.busy[port] if whole else now + wait) + links.of(links.delay, port)
        heapq.heappush(events, (there, w, number, payload, hop + 1))
    return Outcome(arrived, got, most, dropped, sent, deliveries, cut)


def _emitted(links, windows, src, sent):
    """(ps, window, payload) of the packets of a host: the one that may begin first goes first, then the next."""
    own = [w for w, window in enumerate(windows) if window.src == src and window.size]
    free = {w: windows[w].begin for w in own}
    while own:
        w = min(own, key=lambda w: (free[w], w))
        window = windows[w]
        port, left = window.path[0], window.size - sent[w]
        begin = max(free[w], links.busy.get(port, 0))
        if begin >= window.end or not left:
            own.remove(w)
            continue
        payload = min(left, links.mtu)
        links.lines[port].work(links.cycle, begin, links.time(payload, port))
        links.busy[port] = begin + links.time(payload, port)
        free[w] = begin + wire_time(payload + links.overhead, window.rate or links.of(links.rate, port))
        sent[w] += payload
        yield begin, w, payload
