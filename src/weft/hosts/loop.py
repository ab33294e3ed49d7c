"""The loop of events: release the earliest, or start the next flow, until a time or a number of events is reached.

A network's kernels are this loop compiled for one transport and one network, a few lines in the network's own file,
because Numba finds a kernel in its cache by the file it is written in:

    @bare
    def advance_ndp(world, until, budget):
        return advance(world[0], until, budget, NDP, NETWORK)
"""

from typing import Any

import numpy as np

from weft.engine import calendar, events
from weft.engine.fingerprint import fold
from weft.engine.functions import Functions
from weft.engine.jit import hot, part
from weft.hosts import nic
from weft.hosts.flow import open_slot, schedule_pacer, spread, spreads
from weft.hosts.state import FAIR, FIRST_TIMER, HAND, PACE, flow_at, packet_at, print_, rows, traffic_at, waits

DONE, PAUSED, GROW_ROWS, GROW_SLOTS = 0, 1, 2, 3  # why `advance` returned
SLACK = 1 << 13  # rows one event may take: a window for each of some subflows


class Network(Functions):
    """What lies between hosts, for the loop to be compiled with. See `weft.hosts`."""

    forward: Any  # (s, r, host)  take packet r from its host, to be sent behind what the host sent before
    arrive: Any  # (s, r) -> bool  row r, below FIRST_TIMER, is due: move it on; True if it has reached host p.dst
    waiting: Any  # (s, host) -> int  data packets that wait on the port of a host, the one being sent left out
    paths: Any  # (s, src, dst) -> int  paths between two hosts; packets choose by a number below it, `path`
    look_ahead: Any  # (s)  prefetch what the next events need, or do nothing


@part
def nothing_ahead(s):
    """For networks that do not prefetch."""


@part
def none_waiting(s, host):
    """For networks in which nothing holds the port of a host up."""
    return 0


@part
def deliver(s, r, transport):
    """Packet r has reached its host."""
    p = packet_at(s, r)
    fold(print_(s), s.now, (np.int64(p.id) << 32) | (np.int64(p.seq) << 4) | np.int64(p.kind))
    s.conserved_out += 1
    s.landed += 1
    if flow_at(s, p.flow).id == p.id:
        transport.receive(s, r)
    events.give(s, rows(s), r)


@part
def expire(s, r, transport, network):
    """Timer r is due."""
    kind, h = packet_at(s, r).kind, np.int64(packet_at(s, r).dst)
    if kind == HAND:
        nic.on_hand(s, h, network)
    elif kind == PACE:
        transport.pace(s, h, network.waiting(s, h))
    else:
        transport.fire(s, r)
    events.give(s, rows(s), r)


@part
def follow_up(s, transport, network):
    """See to what an event has left: a host whose port has room again, and a pacer that is due now.

    The event of the pacer would be the next one, unless others are due now; if none is, it need not be an event.
    """
    if s.has_room != events.NONE:
        h = s.has_room
        s.has_room = events.NONE
        if s.nic == FAIR:
            nic.on_room(s, h, network)
        else:
            transport.room(s, h)
    if s.due_now != events.NONE:
        if s.live == 0 or not events.alone(s, rows(s)):
            defer_pacer(s)
            return
        h = s.due_now
        s.due_now = events.NONE
        transport.pace(s, h, network.waiting(s, h))
        nic.flush(s, network)


@part
def defer_pacer(s):
    """Make the pacer that is due now an event."""
    schedule_pacer(s, s.due_now, s.now, s.due_order)
    s.due_now = events.NONE


@part
def start_flow(s, transport, network):
    """Start the next flow, one that waits for no other first."""
    f = s.next_flow
    if f < s.known and traffic_at(s, f).start <= s.now:
        s.next_flow += 1
    else:
        f = calendar.pop(waits(s), s.coming)
        s.coming -= 1
    slot = open_slot(s, f)
    if spreads(s):
        flow = flow_at(s, slot)
        spread(s, slot, network.paths(s, np.int64(flow.src), np.int64(flow.dst)))
    transport.begin(s, slot)
    nic.flush(s, network)
    if s.due_now != events.NONE:
        defer_pacer(s)  # other flows may begin now too


@hot
def last_before(s, until):
    """The last moment before the next flow begins, or `until` if it begins later."""
    if s.next_flow < s.known:
        until = min(until, traffic_at(s, s.next_flow).start - 1)
    if s.coming > 0:
        until = min(until, waits(s)[0, calendar.TIME] - 1)
    return until


@hot
def advance(s, until, budget, transport, network):
    """Run to `until` inclusive, or for `budget` events, and say why it stopped."""
    s.limit = last_before(s, until)
    for _ in range(budget):
        if s.live == 0 and s.next_flow == s.known and s.coming == 0:
            return DONE  # what is still on its way belongs to finished flows
        if s.rows_size - s.alive < SLACK:
            return GROW_ROWS
        r = events.pull(s, rows(s), s.limit)
        if r == events.NONE and s.limit < until:
            if s.free_slot == events.NONE and s.used_slots == s.flows_size:
                return GROW_SLOTS
            s.now = s.limit + 1
            start_flow(s, transport, network)
            s.limit = last_before(s, until)
            continue
        if r == events.NONE:
            s.now = max(s.now, until)
            return DONE
        network.look_ahead(s)
        if packet_at(s, r).kind < FIRST_TIMER:
            if network.arrive(s, r):
                deliver(s, r, transport)
                nic.flush(s, network)
        else:
            expire(s, r, transport, network)
            nic.flush(s, network)
        while s.has_room != events.NONE or s.due_now != events.NONE:
            follow_up(s, transport, network)
    return PAUSED
