"""What all transports share: slots for live flows, segments, paths and the retransmission timer.

A flow takes a slot when it starts and gives it back when its sender knows that everything has arrived. Packets name
both slot and flow, so one that comes after its flow has closed is recognised and ignored.
"""

from typing import Any

import numpy as np

from weft.engine import calendar, events
from weft.engine.functions import Functions
from weft.engine.jit import hot, part, rare
from weft.engine.random import below, word
from weft.hosts import mptcp
from weft.hosts.state import (
    AGAIN,
    DATA,
    ECMP,
    MPTCP,
    NDP,
    PACE,
    PERMUTED,
    RANDOM,
    RTO,
    SINGLE,
    URGENT,
    arrived,
    bearer,
    carries,
    flow_at,
    got,
    host_at,
    latest,
    order,
    out,
    packet_at,
    rows,
    score,
    sub_at,
    successors,
    traffic_at,
    via,
    waits,
)

SECOND = 10**12  # ps
PATHS = 1 << 30  # path numbers lie below
TRIED, FAILED, LEFT_OUT = 0, 1, 2  # what NDP's sender knows of a path
SUSPICIOUS, MEMORY = 4, 16  # failures below which a path is not judged, and tries a path that are remembered


class Transport(Functions):
    """What a protocol does, for the loop to be compiled with."""

    begin: Any  # (s, slot)  a flow starts
    receive: Any  # (s, r)  packet r of a live flow has reached its host
    fire: Any  # (s, r)  timer r is due
    pace: Any  # (s, host, waiting)  the pacer of a host is due, and so many data packets wait on its port
    room: Any  # (s, host)  a data packet has left the port of a host that was blocked


@part
def no_pace(s, host, waiting):
    """For protocols without a pacer."""


@part
def no_room(s, host):
    """For protocols that do not ask what waits on a port."""


@hot
def time_at(size, rate):
    """Picoseconds that `size` bytes take at `rate` b/s."""
    return (size * 8 * SECOND + rate - 1) // rate


@part
def open_slot(s, id):
    """Give flow `id` a slot with clean subflows, and return it."""
    slot = s.free_slot
    if slot != events.NONE:
        s.free_slot = flow_at(s, slot).next
    else:
        slot = s.used_slots
        s.used_slots += 1
    s.live += 1
    flow = flow_at(s, slot)
    flow.id, flow.src, flow.dst = id, traffic_at(s, id).src, traffic_at(s, id).dst
    flow.segments = (traffic_at(s, id).size + s.payload - 1) // s.payload
    flow.tail = traffic_at(s, id).size - (flow.segments - 1) * s.payload
    flow.taken, flow.got, flow.done, flow.queued, flow.next = 0, 0, 0, 0, events.NONE
    if s.stream > 0:
        flow.acked = flow.expected = flow.owed = 0
        bearer(s)[slot, :] = 0
        arrived(s)[slot, :] = 0
    flow.urgent = 1 if traffic_at(s, id).klass > 0 else 0
    flow.ahead = flow.back = events.NONE
    for k in range(s.subflows):
        i = slot * s.subflows + k
        sub = sub_at(s, i)
        sub.una = sub.nxt = sub.top = sub.duplicates = sub.recovering = sub.cut = sub.backoff = 0
        sub.window = s.initial_window * s.payload
        sub.threshold = s.threshold * s.payload if s.threshold > 0 else np.int64(1) << 60
        sub.rtt = sub.rtt_var = sub.deadline = sub.credit = 0
        sub.rto = s.rto_first
        sub.recover = sub.last = sub.timer = sub.timer_alpha = sub.timer_raise = sub.timer_wait = events.NONE
        sub.alpha = sub.acked = sub.acked_marked = sub.window_end = sub.target = sub.rate = 0
        sub.stage = sub.stage_bytes = sub.expected = sub.stamp = sub.wait = sub.pending = 0
        sub.pulled = sub.answered = sub.echoing = sub.draws = sub.walked = sub.flying = sub.lost = sub.penalised = 0
        sub.key = word(s.key, id * 16 + k)
        sub.path = below(sub.key, PATHS) if s.routing != SINGLE else 0
        out(s)[i, :] = 0
        got(s)[i, :] = 0
        if s.sack > 0:
            latest(s)[i, :] = events.NONE
        if s.scoreboard == 1:
            score(s)[i, :, :] = 0
    return slot


@part
def shuffle(s, i, paths):
    """Draw a new order of the paths of subflow i: Fisher and Yates, from the back."""
    sub = sub_at(s, i)
    walk = order(s)[i]
    for p in range(paths):
        walk[p] = p
    for p in range(paths - 1, 0, -1):
        sub.draws += 1
        q = below(word(sub.key, sub.draws), p + 1)
        walk[p], walk[q] = walk[q], walk[p]


@hot
def spreads(s):
    """Whether flows have to know how many paths there are."""
    return s.routing == PERMUTED or s.transport == MPTCP


@part
def spread(s, slot, paths):
    """Tell a flow how many paths it has; MPTCP's subflows take different ones as far as there are as many."""
    flow_at(s, slot).paths = paths = min(paths, s.paths)
    if s.transport != MPTCP or s.routing != ECMP:
        return
    base = slot * s.subflows
    shuffle(s, base, paths)
    for k in range(s.subflows):
        sub_at(s, base + k).path = order(s)[base, k % paths]


@part
def judge(s, i, paths):
    """Leave out, until the next permutation, the paths of subflow i that failed twice as often as all together.

    Counts are halved when they have become MEMORY a path, so what was long ago weighs little, and a path that was left
    out is tried again. They cannot all be left out: not every path is worse than twice the mean.
    """
    tried = failed = np.int64(0)
    for p in range(paths):
        tried += score(s)[i, p, TRIED]
        failed += score(s)[i, p, FAILED]
    for p in range(paths):
        of, bad = np.int64(score(s)[i, p, TRIED]), np.int64(score(s)[i, p, FAILED])
        score(s)[i, p, LEFT_OUT] = 1 if bad >= SUSPICIOUS and bad * tried > 2 * failed * of else 0
        if tried >= MEMORY * paths:
            score(s)[i, p, TRIED] = of >> 1
            score(s)[i, p, FAILED] = bad >> 1


@hot
def tally(s, slot, seq, failed):
    """Enter that segment `seq` of an NDP flow was answered, or that it failed, on the path it was sent by."""
    if s.scoreboard == 1:
        p = via(s)[slot, seq & (s.reach - 1)]
        score(s)[slot, p, TRIED] += 1
        if failed:
            score(s)[slot, p, FAILED] += 1


@hot
def next_path(s, slot, i, data):
    """The path number of the next packet of subflow i; data packets avoid the paths that are left out."""
    sub = sub_at(s, i)
    if s.routing == RANDOM:
        sub.draws += 1
        return below(word(sub.key, sub.draws), PATHS)
    if s.routing == PERMUTED:
        paths = np.int64(flow_at(s, slot).paths)
        while True:
            if sub.walked % paths == 0:
                if s.scoreboard == 1:
                    judge(s, i, paths)
                shuffle(s, i, paths)
            path = np.int64(order(s)[i, sub.walked % paths])
            sub.walked += 1
            if not data or s.scoreboard == 0 or score(s)[i, path, LEFT_OUT] == 0:
                return path
    return np.int64(sub.path)


@hot
def payload_of(s, slot, i, seq):
    """Payload bytes of segment `seq` of subflow i."""
    if s.stream > 0:
        return mptcp.payload_of(s, slot, carries(s)[i, seq & (s.reach - 1)])
    return flow_at(s, slot).tail if seq == sub_at(s, i).last else s.payload


@hot
def originate(s, r, host):
    """Leave packet r at its host, for the NIC to take when the transport has done its part.

    Transports therefore need not know the network: called directly, it would be compiled into each of them.
    """
    s.conserved_in += 1
    p = packet_at(s, r)
    p.port = host
    p.next = events.NONE
    if s.first_out == events.NONE:
        s.first_out = r
    else:
        packet_at(s, s.last_out).next = r
    s.last_out = r


@part
def send_segment(s, slot, k, seq):
    """Hand segment `seq` of subflow k to the network."""
    flow = flow_at(s, slot)
    i = slot * s.subflows + k
    sub = sub_at(s, i)
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.sub, p.dst, p.flow, p.id, p.seq = DATA, k, flow.dst, slot, flow.id, seq
    p.flags = URGENT if flow.urgent else 0
    s.sent_segments += 1
    if seq < sub.top:
        p.flags |= AGAIN
        s.resent += 1
    else:
        sub.top = seq + 1
    p.size = max(payload_of(s, slot, i, seq) + s.overhead, s.smallest)
    p.path = next_path(s, slot, i, True)
    if s.transport == NDP:
        via(s)[i, seq & (s.reach - 1)] = p.path
    p.sent = s.now
    p.echo = -1
    originate(s, r, flow.src)


@part
def send_control(s, slot, k, kind, seq, echo, flags, sent, backwards):
    """Send an ACK, NACK, PULL or CNP; `backwards` from the receiver to the sender, as most are. Its row."""
    flow = flow_at(s, slot)
    i = slot * s.subflows + k
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.sub, p.flow, p.id, p.seq, p.echo = kind, k, slot, flow.id, seq, echo
    p.flags, p.sent, p.size = flags, sent, s.control
    p.dst = flow.src if backwards else flow.dst
    p.path = next_path(s, slot, i, False)
    originate(s, r, flow.dst if backwards else flow.src)
    return r


@part
def claim(s, slot, i):
    """Take the next segment of the flow for subflow i. False when none is left."""
    if s.stream > 0:
        return mptcp.take(s, slot, i)
    flow, sub = flow_at(s, slot), sub_at(s, i)
    if flow.taken == flow.segments:
        return False
    flow.taken += 1
    if flow.taken == flow.segments:
        sub.last = sub.nxt
    return True


@hot
def book(s, slot, i, seq):
    """Enter the arrival of segment `seq` of subflow i, new to the receiver. True if the flow is now complete."""
    flow = flow_at(s, slot)
    got(s)[i, seq & (s.reach - 1)] = 1
    if s.stream > 0 and not mptcp.enter(s, slot, carries(s)[i, seq & (s.reach - 1)]):
        s.duplicates += 1
        return False
    bytes = payload_of(s, slot, i, seq)
    host_at(s, flow.dst).delivered += bytes
    traffic_at(s, flow.id).received += bytes
    flow.got += 1
    if flow.got == flow.segments:
        flow.done = 1
        traffic_at(s, flow.id).finish = s.now
        s.cut_short += np.int64(traffic_at(s, flow.id).received != traffic_at(s, flow.id).size)
        s.finished += 1
        if s.waits_size > 0:
            set_free(s, flow.id)
        return True
    return False


@rare
def set_free(s, f):
    """Flow f has ended: release those that wait for it, so that the loop stops before the first of them."""
    s.coming = calendar.release(waits(s), successors(s), s.coming, f, s.now)
    if s.coming > 0:
        s.limit = min(s.limit, waits(s)[0, calendar.TIME] - 1)


@part
def arm(s, slot, k, deadline):
    """Set the retransmission timer of subflow k to `deadline`; 0 turns it off.

    A pending row that comes too early looks at the deadline and goes back to sleep, so that moving the deadline, which
    every ACK does, costs nothing; only one that would come too late is cancelled.
    """
    i = slot * s.subflows + k
    sub = sub_at(s, i)
    sub.deadline = deadline
    if deadline == 0:
        return
    if sub.timer != events.NONE:
        if packet_at(s, sub.timer).time <= deadline:
            return
        events.cancel(s, rows(s), sub.timer)
    sub.timer = new_timer(s, slot, k, RTO, deadline)


@part
def new_timer(s, slot, k, kind, time):
    """Schedule a timer of subflow k and return its row."""
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.sub, p.flow, p.id = kind, k, slot, flow_at(s, slot).id
    events.push(s, rows(s), r, time)
    return r


@hot
def enqueue_flow(s, slot, at):
    """Put a flow at the end of those that wait at host `at`."""
    host, flow = host_at(s, at), flow_at(s, slot)
    flow.queued = 1
    flow.next = events.NONE
    if host.first == events.NONE:
        host.first = slot
    else:
        flow_at(s, host.last).next = slot
    host.last = slot


@hot
def dequeue_flow(s, at):
    """Take the first flow that waits at host `at`, or NONE; those that have finished have left their slots to us."""
    host = host_at(s, at)
    while host.first != events.NONE:
        slot = np.int64(host.first)
        flow = flow_at(s, slot)
        host.first = flow.next
        flow.queued = 0
        if flow.id >= 0:
            return slot
        flow.next = s.free_slot
        s.free_slot = slot
    return np.int64(events.NONE)


@part
def call_pacer(s, at):
    """Schedule the pacer of host `at` as soon as it may act; one due now is left to the loop (`due_now`)."""
    host = host_at(s, at)
    host.pacing = 1
    number = events.number(s)
    if host.free_at <= s.now and s.due_now == events.NONE:
        s.due_now = at
        s.due_order = number
    else:
        schedule_pacer(s, at, max(s.now, host.free_at), number)


@part
def schedule_pacer(s, at, time, number):
    """Schedule the pacer of host `at` at `time`, as the event of that running number."""
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.dst, p.time, p.order = PACE, at, time, number
    events.enqueue(s, rows(s), r)


@part
def sample_rtt(s, i, rtt):
    """RFC 6298, in whole picoseconds."""
    sub = sub_at(s, i)
    if sub.rtt == 0:
        sub.rtt = rtt
        sub.rtt_var = rtt // 2
    else:
        sub.rtt_var += (abs(sub.rtt - rtt) - sub.rtt_var) // 4
        sub.rtt += (rtt - sub.rtt) // 8
    sub.rto = min(max(sub.rtt + 4 * sub.rtt_var, s.rto_min), s.rto_max)
    sub.backoff = 0


@part
def close_slot(s, slot):
    """Give the slot of a flow back, and cancel its timers."""
    for i in range(slot * s.subflows, (slot + 1) * s.subflows):
        sub = sub_at(s, i)
        if sub.timer != events.NONE:
            events.cancel(s, rows(s), sub.timer)
        if sub.timer_wait != events.NONE:
            events.cancel(s, rows(s), sub.timer_wait)
        if sub.timer_alpha != events.NONE:
            events.cancel(s, rows(s), sub.timer_alpha)
        if sub.timer_raise != events.NONE:
            events.cancel(s, rows(s), sub.timer_raise)
    flow = flow_at(s, slot)
    flow.id = flow.ahead = flow.back = -1
    s.live -= 1
    if flow.queued == 0:  # else it is in a list of its host, which gives it back
        flow.next = s.free_slot
        s.free_slot = slot
