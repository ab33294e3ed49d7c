"""The NIC of a host: in which order what its flows send goes to its port.

    fifo    in the order in which transports sent it. The queue is the network's own, at the host's port.
    fair    round robin over flows, a packet each: packets wait here in lanes, one for the data and one for the control
            packets of a flow, and the NIC hands the port a packet whenever the one before has left the line. Where the
            network lets control packets pass data (`classes`), their lanes are a round of their own, which goes first
            but for one data packet in `prefer`.

Lanes are linked lists of packets. The first packet of a lane stands for it in the round, a circular list of which the
host knows the last: `lanes` holds, for the first packet of a lane, the last packet of it and the lane that follows.
A flow knows its lanes as long as it has its slot; packets that outlive it keep their place in the round.
"""

import numpy as np

from weft.engine import events
from weft.engine.jit import hot, part
from weft.hosts.flow import time_at
from weft.hosts.state import (
    CONTROL_FIRST,
    DATA,
    FAIR,
    HAND,
    STRICT,
    URGENT,
    URGENT_FIRST,
    flow_at,
    host_at,
    lanes,
    packet_at,
    rows,
)

LAST, AFTER = 0, 1  # columns of `lanes`


@part
def leave(s, h, size):
    """Put `size` bytes on the line of host h behind what is on it; when the last bit has left.

    For networks whose host ports do nothing else.
    """
    host = host_at(s, h)
    host.line_free = max(host.line_free, s.now) + time_at(size, host.rate)
    return host.line_free


@part
def flush(s, network):
    """Let NICs take what transports have sent, in that order."""
    while s.first_out != events.NONE:
        r = s.first_out
        p = packet_at(s, r)
        s.first_out = np.int64(p.next)
        h = np.int64(p.port)
        if s.nic == FAIR:
            join(s, r, h)
            if host_at(s, h).handing == 0:
                hand(s, h, network)
        else:
            network.forward(s, r, h)


@hot
def goes_first(s, p):
    """Whether a packet may pass data at its host's port."""
    return (s.classes >= CONTROL_FIRST and p.kind != DATA) or (s.classes == URGENT_FIRST and p.flags & URGENT != 0)


@part
def join(s, r, h):
    """Put packet r at the end of its flow's lane, which begins at the end of the round."""
    p = packet_at(s, r)
    flow = flow_at(s, p.flow)
    p.next = events.NONE
    first = np.int64(flow.ahead if p.kind == DATA else flow.back)
    if first != events.NONE:
        packet_at(s, lanes(s)[first, LAST]).next = r
        lanes(s)[first, LAST] = r
        return
    _remember(s, r, r)
    lanes(s)[r, LAST] = r
    host = host_at(s, h)
    high = goes_first(s, p)
    last = np.int64(host.ring_first if high else host.ring)
    lanes(s)[r, AFTER] = r
    if last != events.NONE:
        lanes(s)[r, AFTER] = lanes(s)[last, AFTER]
        lanes(s)[last, AFTER] = r
    _set_last(host, high, r)


@hot
def _set_last(host, high, r):
    if high:
        host.ring_first = r
    else:
        host.ring = r


@hot
def _remember(s, r, first):
    """Tell the flow of packet r, if it still has its slot, with which packet its lane begins."""
    p = packet_at(s, r)
    flow = flow_at(s, p.flow)
    if flow.id == p.id:
        if p.kind == DATA:
            flow.ahead = first
        else:
            flow.back = first


@part
def take_turn(s, host, high):
    """Take the first packet of the lane whose turn it is; the rest of the lane goes to the end of the round."""
    last = np.int64(host.ring_first if high else host.ring)
    r = np.int64(lanes(s)[last, AFTER])
    rest = np.int64(packet_at(s, r).next)
    _remember(s, r, rest)
    after = np.int64(lanes(s)[r, AFTER])
    if rest != events.NONE:
        lanes(s)[rest, LAST] = lanes(s)[r, LAST]
        if r == last:
            lanes(s)[rest, AFTER] = rest
        else:
            lanes(s)[rest, AFTER] = after
            lanes(s)[last, AFTER] = rest
        _set_last(host, high, rest)
    elif r == last:
        _set_last(host, high, events.NONE)
    else:
        lanes(s)[last, AFTER] = after
    return r


@part
def hand(s, h, network):
    """Hand the port of host h the next packet if its line is free, and come back for the one behind it."""
    host = host_at(s, h)
    if host.line_free <= s.now:
        low = host.ring != events.NONE
        if low and network.waiting(s, h) > 0:
            host.blocked = 1
            low = False
        high = host.ring_first != events.NONE and (not low or s.prefer == STRICT or host.turn < s.prefer)
        if not high and not low:
            return
        r = take_turn(s, host, high)
        host.turn = min(np.int64(host.turn) + 1, STRICT) if high else 0
        size = np.int64(packet_at(s, r).size)
        network.forward(s, r, h)
        host.line_free = s.now + time_at(size, host.rate)
    if host.ring != events.NONE or host.ring_first != events.NONE:
        host.handing = 1
        timer = events.take(s, rows(s))
        packet_at(s, timer).kind = HAND
        packet_at(s, timer).dst = h
        events.push(s, rows(s), timer, host.line_free)


@part
def on_hand(s, h, network):
    """The line of host h is free."""
    host_at(s, h).handing = 0
    hand(s, h, network)


@part
def on_room(s, h, network):
    """A data packet has left the port of host h, which was blocked."""
    host = host_at(s, h)
    host.blocked = 0
    if host.handing == 0:
        hand(s, h, network)
