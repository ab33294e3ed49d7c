"""The same streams packet by packet, through first-in-first-out ports: what the kernel's slots are held against.

Nothing is shared with the kernel but the windows in which hosts may send. Events are ordered by time and then by the
order in which they were made.
"""

import heapq
from collections import deque
from itertools import count
from typing import NamedTuple

from weft.units import wire_time


class Window(NamedTuple):
    """`src` may send `size` bytes along `path` in packets that begin from `begin` on and before `end`."""

    src: int
    begin: int
    end: int
    size: int
    path: list[int]


class Outcome(NamedTuple):
    """What came of the windows."""

    arrived: list[int | None]  # ps at which the last packet of each was there, or None
    bytes: list[int]  # payload of each that arrived
    queue: int  # most bytes that waited at a port of a switch, the packet on the wire not counted
    dropped: int  # packets


def carry(
    windows: list[Window], *, rate: int, mtu: int, overhead: int, delay: int, buffer: int, store: bool
) -> Outcome:
    """Send the packets of all windows and wait until the last is there."""
    events: list[tuple] = []
    arrived: list[int | None] = [None] * len(windows)
    payload, order = [0] * len(windows), count()
    ports: dict[int, deque] = {}  # what waits
    free: dict[int, int] = {}  # ps from which a port can begin another packet
    most = dropped = 0

    def length(size):
        return wire_time(size + overhead, rate)

    def push(time, kind, *rest):
        heapq.heappush(events, (time, next(order), kind, rest))

    for w, window in enumerate(windows):
        push(window.begin, "host", w, window.size)
    while events:
        now, _, kind, rest = heapq.heappop(events)
        if kind == "host":  # a host begins its next packet, if it still may
            w, left = rest
            window = windows[w]
            if left and now < window.end:
                size = min(left, mtu)
                begin = max(now, free.get(window.path[0], 0))
                free[window.path[0]] = begin + length(size)
                push(begin + (length(size) if store else 0) + delay, "port", w, size, 1)
                push(begin + length(size), "host", w, left - size)
        elif kind == "port":  # a packet is at a switch, which queues it for the next port of its path
            w, size, hop = rest
            path = windows[w].path
            if hop == len(path):
                arrived[w] = now if store else now + length(size)
                payload[w] += size
                continue
            waiting = ports.setdefault(path[hop], deque())
            queued = sum(bytes_ + overhead for _, bytes_, _ in waiting)
            if free.get(path[hop], 0) > now and queued + size + overhead > buffer:
                dropped += 1
                continue
            waiting.append((w, size, hop))
            push(max(now, free.get(path[hop], 0)), "send", path[hop])
        else:  # a port begins the packet that has waited longest
            (port,) = rest
            waiting = ports[port]
            if not waiting:
                continue
            if free.get(port, 0) > now:
                push(free[port], "send", port)
                most = max(most, sum(bytes_ + overhead for _, bytes_, _ in waiting))
                continue
            w, size, hop = waiting.popleft()
            free[port] = now + length(size)
            push(now + (length(size) if store else 0) + delay, "port", w, size, hop + 1)
            if waiting:
                push(free[port], "send", port)
                most = max(most, sum(bytes_ + overhead for _, bytes_, _ in waiting))
    return Outcome(arrived, payload, most, dropped)
