"""The kernels of packet networks: the loop of hosts compiled for each transport, and what failures need."""

import numpy as np

from weft.engine import events
from weft.engine.bits import either, prefetch, prefetch_at
from weft.engine.jit import bare, hot, part
from weft.engine.memory import LINE
from weft.fabrics.network.state import (
    DROPTAIL,
    FREE,
    LAST_PACKET,
    LOSSLESS,
    PAUSE,
    PORT,
    RESUME,
    choices,
    group,
    home_at,
    homes,
    port_at,
    row,
    table,
)
from weft.fabrics.network.switches import (
    fail,
    follow,
    forward,
    free_movable,
    freed,
    on_pause_frame,
    paths_between,
    repair,
    settle,
    waiting,
)
from weft.hosts import loop
from weft.hosts.dcqcn import DCQCN
from weft.hosts.loop import DONE, GROW_ROWS, GROW_SLOTS, PAUSED, Network
from weft.hosts.ndp import NDP
from weft.hosts.state import ROUND_ROBIN, SUB, flows, lose, packet_at, rows
from weft.hosts.tcp import TCP

__all__ = ("DONE", "GROW_ROWS", "GROW_SLOTS", "PAUSED", "advance", "cut", "mend", "untangle")

PORT_SIZE, SUB_SIZE = PORT.itemsize, SUB.itemsize


@hot
def prefetch_port(s, k):
    """Prefetch the cache lines of port k that its queue needs."""
    at = s.ports_at + k * PORT_SIZE
    prefetch_at(at)
    if s.queue != DROPTAIL:
        prefetch_at(at + LINE)


@hot
def look_ahead(s):
    """Prefetch the next ports, the packets that wait there, and with every event one row more of the next bucket."""
    prefetch_port(s, np.int64(packet_at(s, s.later_row).port))
    e = packet_at(s, s.next_row)
    prefetch(rows(s), np.int64(port_at(s, e.port).head))
    behind = np.int64(e.next)
    s.next_row = either(behind >= 0, behind, 0)
    prefetch(rows(s), s.next_row)
    if s.large == 1:
        look_far_ahead(s)


@part
def look_far_ahead(s):
    """Prefetch what the next events of this bucket need, for networks that no cache holds.

    In three steps, each of which reads what the one before has prefetched.
    """
    if s.last - s.first > 6:
        _first(s, events.following(s, 6))
        _second(s, events.following(s, 4))
        _third(s, events.following(s, 2))


@hot
def prefetch_flow(s, p):
    """Prefetch the flow of a packet or timer."""
    i = np.int64(p.flow)
    prefetch(flows(s), i)
    at = s.subs_at + (i * s.subflows + np.int64(p.sub)) * SUB_SIZE
    prefetch_at(at)
    prefetch_at(at + LINE)
    prefetch_at(at + 2 * LINE)
    prefetch_at(at + 3 * LINE)


@hot
def _first(s, r):
    """Row r is in the cache: prefetch the port it names, and its destination or flow."""
    p = packet_at(s, r)
    if p.kind <= FREE:
        prefetch_port(s, np.int64(p.port))
        prefetch(homes(s), np.int64(p.dst))
    else:
        prefetch_flow(s, p)


@hot
def _second(s, r):
    """So is its port: prefetch the entry of the routes where it leads, or its flow, and the packet behind it."""
    p = packet_at(s, r)
    if p.kind <= LAST_PACKET:
        port = port_at(s, p.port)
        if s.queue == DROPTAIL:
            prefetch(rows(s), np.int64(port.head))
        if port.to < s.hosts_size:
            prefetch_flow(s, p)
            prefetch_port(s, np.int64(-1 - row(s)[port.to]))
        elif row(s)[port.to] >= 0 and p.dst >= 0:
            prefetch(table(s), row(s)[port.to] * s.anchors + home_at(s, p.dst).anchor)
    elif p.kind == FREE:
        port = port_at(s, p.port)
        prefetch(rows(s), np.int64(port.head_high if port.packets_high > 0 else port.head))


@hot
def _third(s, r):
    """So is that entry: prefetch the port by which it goes on; of a port to be freed, the one its packet came by."""
    p = packet_at(s, r)
    if p.kind <= LAST_PACKET:
        node = port_at(s, p.port).to
        if node >= s.hosts_size and row(s)[node] >= 0 and p.dst >= 0:
            g = table(s)[row(s)[node], home_at(s, p.dst).anchor]
            if g >= 0:
                place = group(s)[g, 0]
                if s.routing == ROUND_ROBIN:
                    place += group(s)[g, 2]
                elif group(s)[g, 1] > 1:
                    place += np.uint32(p.path) % np.uint32(group(s)[g, 1])
                prefetch_port(s, np.int64(choices(s)[place]))
            else:
                prefetch_port(s, np.int64(home_at(s, p.dst).down))
    elif p.kind == FREE and s.queue == LOSSLESS:
        head = np.int64(port_at(s, p.port).head)
        if head >= 0:
            prefetch_at(s.ports_at + np.int64(packet_at(s, head).port) * PORT_SIZE + LINE)


@part
def arrive(s, r):
    """Row r is due: a packet has crossed its port, or a port is free again. True if a packet has reached its host."""
    p = packet_at(s, r)
    if p.kind == FREE:
        k = np.int64(p.port)
        events.give(s, rows(s), r)
        freed(s, k)
        return False
    s.hops += 1
    port = port_at(s, p.port)
    if s.lazy == 1:
        settle(s, np.int64(p.port))
    if p.epoch != port.epoch:
        s.drop_down += 1
        lose(s, r)
        return False
    if s.queue == DROPTAIL:
        follow(s, np.int64(p.port))
    if p.kind == PAUSE or p.kind == RESUME:
        on_pause_frame(s, r)
        s.heeded += 1
        s.conserved_out += 1
        events.give(s, rows(s), r)
        return False
    if port.to < s.hosts_size:
        return True
    forward(s, r, np.int64(port.to))
    return False


NETWORK = Network(forward=forward, arrive=arrive, waiting=waiting, paths=paths_between, look_ahead=look_ahead)


@bare
def advance_tcp(world, until, budget):
    """Run TCP, DCTCP or MPTCP: see `hosts.loop.advance`."""
    return loop.advance(world[0], until, budget, TCP, NETWORK)


@bare
def advance_ndp(world, until, budget):
    """Run NDP."""
    return loop.advance(world[0], until, budget, NDP, NETWORK)


@bare
def advance_dcqcn(world, until, budget):
    """Run DCQCN."""
    return loop.advance(world[0], until, budget, DCQCN, NETWORK)


_KERNELS = (advance_tcp, advance_tcp, advance_tcp, advance_ndp, advance_dcqcn)  # as in settings.TRANSPORTS


def advance(world, until: int, budget: int) -> int:
    """Run to `until` inclusive, or for `budget` events, and say why it stopped; only this transport is compiled."""
    return _KERNELS[world["transport"][0]](world, until, budget)


@bare
def cut(world, k):
    """Take port k down."""
    fail(world[0], k)


@bare
def mend(world, k):
    """Bring port k up."""
    repair(world[0], k)


@bare
def untangle(world, stuck, held):
    """Of the paused ports, which are 1 in `stuck`, leave those that can never move again; `held` is zeros."""
    free_movable(world[0], stuck, held)
