"""DCQCN: rate control by explicit marks for RDMA over lossless Ethernet (SIGCOMM '15).

    switch     marks like RED between two thresholds, and pauses the neighbour rather than drop (`switches.py`).
    receiver   answers a marked packet by a CNP, at most one per flow and `cnp_gap` (§3.1, NP).
    sender     has a rate R and a target T; both begin at the rate of its link (§3.1, RP).
               On a CNP:            T = R,  R = R (1 - alpha/2),  alpha = (1 - g) alpha + g             eq. (1)
               alpha_gap without:   alpha = (1 - g) alpha                                               eq. (2)
               Every raise_gap, and every raise_bytes, counted apart since the last CNP as i and j:
                   max(i, j) < fast_rounds            fast recovery        R = (T + R)/2                eq. (3)
                   min(i, j) > fast_rounds            hyper increase       T += (min(i, j) - fast_rounds) rate_leap
                   otherwise                          additive increase    T += rate_step               eq. (4)
               the last two followed by R = (T + R)/2 as well; T never exceeds the link.

Reliability is RoCE's: the receiver takes segments in order only, asks by NACK for the one it wants when another comes,
once per gap, and the sender goes back to it; so does a timeout. A host's NIC takes ready flows in turn, a packet each,
as long as fewer than two wait on its port: a paused port therefore holds the flows back and not their packets.
Rates are whole b/s, alpha is in parts of 2**20; timers run after a first CNP and until they have nothing left to do.
"""

import numpy as np

from weft.engine import events
from weft.engine.jit import hot, part
from weft.hosts.flow import (
    Transport,
    arm,
    book,
    call_pacer,
    claim,
    close_slot,
    dequeue_flow,
    enqueue_flow,
    new_timer,
    send_control,
    send_segment,
    time_at,
)
from weft.hosts.state import (
    ACK,
    ALPHA,
    CNP,
    DATA,
    MARKED,
    NACK,
    RAISE,
    TURN,
    flow_at,
    host_at,
    packet_at,
    rows,
    sub_at,
)

ONE = 1 << 20
WAITING = 2  # data packets a NIC's port may hold before flows have to wait


@part
def begin(s, slot):
    """Start at the rate of the link."""
    sub = sub_at(s, slot)
    sub.rate = sub.target = host_at(s, flow_at(s, slot).src).rate
    sub.alpha = ONE
    sub.stamp = -s.cnp_gap
    _ready(s, slot)


@hot
def _may_send(s, slot):
    sub, flow = sub_at(s, slot), flow_at(s, slot)
    return sub.nxt - sub.una < s.max_window and (sub.nxt < sub.top or flow.taken < flow.segments)


@part
def _ready(s, slot):
    """Put a flow that may send, and whose time has come, in the queue for its NIC; else wait for the time."""
    sub, flow = sub_at(s, slot), flow_at(s, slot)
    if flow.queued == 1 or sub.timer_wait != events.NONE or not _may_send(s, slot):
        return
    if sub.wait > s.now:
        sub.timer_wait = new_timer(s, slot, 0, TURN, sub.wait)
        return
    enqueue_flow(s, slot, flow.src)
    _pace(s, flow.src)


@part
def _pace(s, at):
    """Have the NIC of host `at` take the next flow as soon as it can."""
    host = host_at(s, at)
    if host.pacing == 0 and host.blocked == 0 and host.first != events.NONE:
        call_pacer(s, at)


@part
def on_turn(s, r):
    """The time of a flow has come."""
    slot = np.int64(packet_at(s, r).flow)
    sub_at(s, slot).timer_wait = events.NONE
    _ready(s, slot)


@part
def on_pace(s, at, waiting):
    """The NIC of a host is free for a packet; `waiting` data packets are on its port."""
    host = host_at(s, at)
    host.pacing = 0
    if waiting >= WAITING:
        host.blocked = 1
        return
    while True:
        slot = dequeue_flow(s, at)
        if slot == events.NONE:
            return
        if not _may_send(s, slot):
            continue
        sub = sub_at(s, slot)
        if sub.nxt == sub.top:
            claim(s, slot, slot)
        seq = sub.nxt
        sub.nxt += 1
        send_segment(s, slot, 0, seq)
        size = packet_at(s, s.last_out).size
        host.free_at = s.now + time_at(size, host.rate)
        sub.wait = s.now + time_at(size, sub.rate)
        if sub.deadline == 0:
            arm(s, slot, 0, s.now + sub.rto)
        if sub.timer_raise != events.NONE:
            sub.credit += size
            if sub.credit >= s.raise_bytes:
                sub.credit -= s.raise_bytes
                sub.stage_bytes += 1
                _raise(s, slot)
        _ready(s, slot)
        _pace(s, at)
        return


@part
def on_room(s, at):
    """A data packet has left the port of host `at`."""
    host = host_at(s, at)
    if host.blocked == 1:
        host.blocked = 0
        _pace(s, at)


@part
def on_cnp(s, r):
    """The receiver has seen marks."""
    slot = np.int64(packet_at(s, r).flow)
    sub = sub_at(s, slot)
    sub.target = sub.rate
    sub.rate = max(sub.rate - sub.rate * (sub.alpha >> 1) // ONE, s.rate_min)
    sub.alpha += (ONE - sub.alpha) >> s.gain_shift
    sub.stage = sub.stage_bytes = sub.credit = 0
    if sub.timer_alpha != events.NONE:
        events.cancel(s, rows(s), sub.timer_alpha)
    if sub.timer_raise != events.NONE:
        events.cancel(s, rows(s), sub.timer_raise)
    sub.timer_alpha = new_timer(s, slot, 0, ALPHA, s.now + s.alpha_gap)
    sub.timer_raise = new_timer(s, slot, 0, RAISE, s.now + s.raise_gap)


@part
def on_alpha(s, r):
    """No CNP for a while: there is less congestion than alpha says."""
    slot = np.int64(packet_at(s, r).flow)
    sub = sub_at(s, slot)
    sub.timer_alpha = events.NONE
    step = sub.alpha >> s.gain_shift
    sub.alpha -= step
    if step > 0:
        sub.timer_alpha = new_timer(s, slot, 0, ALPHA, s.now + s.alpha_gap)


@part
def on_raise(s, r):
    """The timer of rate increases."""
    slot = np.int64(packet_at(s, r).flow)
    sub = sub_at(s, slot)
    sub.timer_raise = events.NONE
    sub.stage += 1
    _raise(s, slot)
    if sub.rate < host_at(s, flow_at(s, slot).src).rate:
        sub.timer_raise = new_timer(s, slot, 0, RAISE, s.now + s.raise_gap)


@part
def _raise(s, slot):
    """Increase the rate by the stage that timer and byte counter have reached."""
    sub = sub_at(s, slot)
    low, high = min(sub.stage, sub.stage_bytes), max(sub.stage, sub.stage_bytes)
    if low > s.fast_rounds:
        sub.target += (low - s.fast_rounds) * s.rate_leap
    elif high >= s.fast_rounds:
        sub.target += s.rate_step
    sub.target = min(sub.target, host_at(s, flow_at(s, slot).src).rate)
    sub.rate = (sub.target + sub.rate + 1) // 2


@part
def on_ack(s, r):
    """Everything before the number in this ACK, or NACK, has arrived."""
    p = packet_at(s, r)
    slot, ack = np.int64(p.flow), np.int64(p.seq)
    sub, flow = sub_at(s, slot), flow_at(s, slot)
    if ack > sub.una:
        sub.una = ack
        sub.nxt = max(sub.nxt, ack)
        sub.rto = s.rto_min
        arm(s, slot, 0, s.now + sub.rto if sub.una < sub.top else 0)
    if p.kind == NACK and ack >= sub.una:
        sub.nxt = sub.una
    if sub.una == flow.segments:
        close_slot(s, slot)
    else:
        _ready(s, slot)


@part
def on_timeout(s, r):
    """Nothing was acknowledged for too long: go back."""
    slot = np.int64(packet_at(s, r).flow)
    sub = sub_at(s, slot)
    sub.timer = events.NONE
    if sub.deadline == 0:
        return
    if sub.deadline > s.now:
        arm(s, slot, 0, sub.deadline)
        return
    s.timeouts += 1
    sub.nxt = sub.una
    sub.rto = min(sub.rto * 2, s.rto_max)
    arm(s, slot, 0, s.now + sub.rto)
    _ready(s, slot)


@part
def on_data(s, r):
    """A segment has reached the receiver."""
    p = packet_at(s, r)
    slot, seq = np.int64(p.flow), np.int64(p.seq)
    sub = sub_at(s, slot)
    if p.flags & MARKED and s.now - sub.stamp >= s.cnp_gap:
        sub.stamp = s.now
        s.cnps += 1
        send_control(s, slot, 0, CNP, sub.expected, seq, 0, s.now, True)
    if seq > sub.expected:
        s.duplicates += 1
        if sub.echoing == 0:
            sub.echoing = 1
            s.nacks += 1
            send_control(s, slot, 0, NACK, sub.expected, seq, 0, s.now, True)
        return
    if seq == sub.expected:
        book(s, slot, slot, seq)
        sub.expected += 1
        sub.echoing = 0
        sub.pending += 1
        if sub.pending < s.ack_every and flow_at(s, slot).done == 0:
            return
    else:
        s.duplicates += 1
    sub.pending = 0
    s.acks += 1
    send_control(s, slot, 0, ACK, sub.expected, seq, 0, s.now, True)


@part
def receive(s, r):
    """Packet r has reached its host."""
    kind = packet_at(s, r).kind
    if kind == DATA:
        on_data(s, r)
    elif kind == CNP:
        on_cnp(s, r)
    else:
        on_ack(s, r)


@part
def fire(s, r):
    """Timer r is due."""
    kind = packet_at(s, r).kind
    if kind == TURN:
        on_turn(s, r)
    elif kind == ALPHA:
        on_alpha(s, r)
    elif kind == RAISE:
        on_raise(s, r)
    else:
        on_timeout(s, r)


DCQCN = Transport(begin=begin, receive=receive, fire=fire, pace=on_pace, room=on_room)
