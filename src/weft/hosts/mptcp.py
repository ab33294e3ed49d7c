"""MPTCP: one flow over several subflows whose windows grow together (NSDI '11, '12; RFC 6356, 8684).

Each subflow is a TCP of its own (`tcp.py`) on its own path: slow start, loss recovery and timeouts are uncoupled. Only
congestion avoidance is coupled, by the Linked Increases Algorithm: an ACK of n segments on subflow i adds to its window

    n · min( a · payload² / total ,  payload² / window_i ),
    a = total · max_j(window_j / rtt_j²) / (Σ_j window_j / rtt_j)²                        RFC 6356 §3

so that all subflows together take no more than one TCP would on the best path; without `coupled` each grows like a TCP,
which is how NDP's and Stardust's comparisons ran it. The increase is computed in floating
point, by + - * / in a fixed order, and counted in parts of 2**-16 byte.

A flow whose settings never move data only counts its segments: one belongs to the subflow that first took it, and what
is stuck on a dead path waits there. This is what htsim's MPTCP does. Otherwise segments have a place in the flow (RFC
8684's data sequence) beside that in their subflow, and ACKs say up to where the flow is complete (its data ACK):

    reinject        what a subflow has not delivered when its timer expires is owed: whichever other subflow may send
                    sends it before new data, the lowest first (RFC 8684 §3.3.6). The subflow itself goes on trying.
    receive_window  no segment may be further beyond the first one missing.
    opportunistic   a subflow that could send, but for the receive window, sends the first segment missing if another
                    one bears it, once a segment (NSDI '12 §4.2).
    penalise        and the window of that other one is halved, and its threshold set to it, at most once in its RTT.

A segment arrives in the flow when it arrives at all, not when its subflow is in order. The flow is over for its sender
when a data ACK covers it; what subflows still have on their way is then ignored.
"""

import numpy as np

from weft.engine import events
from weft.engine.jit import hot, part
from weft.hosts.state import DATA_ACK, arrived, bearer, carries, flow_at, options, out, packet_at, sub_at

WHO, OWED, HASTENED = 31, 64, 128  # of a bearer: subflow plus 1; another is to send it; it was hastened once


@part
def grow(s, slot, i, newly):
    """Grow the window of subflow i by an ACK of `newly` segments in congestion avoidance."""
    payload = float(s.payload)
    total, best, pull = 0.0, 0.0, 0.0
    for j in range(slot * s.subflows, (slot + 1) * s.subflows):
        other = sub_at(s, j)
        if other.rtt > 0:
            window, rtt = float(other.window), float(other.rtt)
            total += window
            pull += window / rtt
            best = max(best, window / rtt / rtt)
    sub = sub_at(s, i)
    step = payload * payload / float(sub.window)
    if total > 0.0:
        step = min(step, best / pull / pull * payload * payload)
    sub.credit += int(step * float(newly) * 65536.0)
    sub.window += sub.credit >> 16
    sub.credit &= 65535


@hot
def payload_of(s, slot, d):
    """Payload bytes of segment d of a flow."""
    return flow_at(s, slot).tail if d == flow_at(s, slot).segments - 1 else s.payload


@part
def take(s, slot, i):
    """Choose the segment of the flow that subflow i sends next: one owed by another, a new one, or the first missing.

    False if there is none.
    """
    flow, mask = flow_at(s, slot), s.stream - 1
    me = i - slot * s.subflows + 1
    d = np.int64(events.NONE)
    if flow.owed > 0:
        for q in range(flow.acked, flow.taken):
            what = np.int64(bearer(s)[slot, q & mask])
            if what & OWED != 0 and what & WHO != me:
                d = q
                flow.owed -= 1
                s.moved += 1
                break
    if d == events.NONE and flow.taken < flow.segments:
        if flow.taken - flow.acked < s.stream_window:
            d = flow.taken
            flow.taken += 1
            bearer(s)[slot, d & mask] = 0
        elif s.opportunistic == 1:
            d = _hasten(s, slot, me)
    if d == events.NONE:
        return False
    bearer(s)[slot, d & mask] = me | (np.int64(bearer(s)[slot, d & mask]) & HASTENED)
    carries(s)[i, sub_at(s, i).nxt & (s.reach - 1)] = d
    return True


@part
def _hasten(s, slot, me):
    """The first segment missing, if another subflow bears it and it was not sent again before, or NONE."""
    flow, mask = flow_at(s, slot), s.stream - 1
    what = np.int64(bearer(s)[slot, flow.acked & mask])
    if what & WHO == me or what & HASTENED != 0:
        return np.int64(events.NONE)
    other = sub_at(s, slot * s.subflows + (what & WHO) - 1)
    if s.penalise == 1 and s.now - other.penalised >= other.rtt:
        other.penalised = s.now
        other.window = max(other.window // 2, s.payload)
        other.threshold = other.window
    if what & OWED != 0:
        flow.owed -= 1
    bearer(s)[slot, flow.acked & mask] = HASTENED
    s.moved += 1
    return flow.acked


@part
def heed(s, slot, i, r):
    """Enter what ACK r says of the flow. True if the receive window had stopped it and no longer does."""
    flow, sub, mask = flow_at(s, slot), sub_at(s, i), s.stream - 1
    me = i - slot * s.subflows + 1
    if flow.owed > 0:
        for seq in range(sub.una, np.int64(packet_at(s, r).seq)):  # delivered after all
            d = np.int64(carries(s)[i, seq & (s.reach - 1)])
            if d >= flow.acked and np.int64(bearer(s)[slot, d & mask]) & (OWED | WHO) == OWED | me:
                bearer(s)[slot, d & mask] &= ~np.uint8(OWED)
                flow.owed -= 1
    acked = np.int64(options(s)[r, DATA_ACK])
    if acked <= flow.acked:
        return False
    stopped = flow.taken - flow.acked >= s.stream_window
    if flow.owed > 0:
        for d in range(flow.acked, acked):
            if bearer(s)[slot, d & mask] & OWED != 0:
                flow.owed -= 1
    flow.acked = acked
    return stopped


@part
def give_up(s, slot, i):
    """Subflow i has timed out: what it bears and has not delivered is owed by the others."""
    flow, sub, mask = flow_at(s, slot), sub_at(s, i), s.stream - 1
    me = i - slot * s.subflows + 1
    for seq in range(sub.una, sub.top):
        d = np.int64(carries(s)[i, seq & (s.reach - 1)])
        mine = d >= flow.acked and np.int64(bearer(s)[slot, d & mask]) & (OWED | WHO) == me
        if mine and out(s)[i, seq & (s.reach - 1)] == 0:
            bearer(s)[slot, d & mask] |= OWED
            flow.owed += 1


@part
def enter(s, slot, d):
    """Enter the arrival of segment d of a flow. False if the receiver had it."""
    flow, mask = flow_at(s, slot), s.stream - 1
    if d < flow.expected or arrived(s)[slot, d & mask] == 1:
        return False
    arrived(s)[slot, d & mask] = 1
    while arrived(s)[slot, flow.expected & mask] == 1:
        arrived(s)[slot, flow.expected & mask] = 0
        flow.expected += 1
    return True
