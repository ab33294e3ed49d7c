"""TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery, timeouts (RFC 5681, 6582, 6298, 2018).

Sequence numbers count segments, windows bytes. A sender is in one of three states:

    open        a new ACK grows the window: by a segment below `threshold` (slow start), else by payload²/window
                (RFC 5681 eq. 3). Two duplicate ACKs may each send a new segment (RFC 3042). The third enters recovery:
                threshold = max(flight/2, 2 segments), `una` is sent again, window = threshold + 3 segments.
    recovering  a duplicate inflates the window by a segment. A partial ACK, below `recover`, sends the next hole and
                deflates (RFC 6582 §3.2 step 5); a full one sets window = min(threshold, flight + 1 segment) and opens.
    after RTO   threshold = max(flight/2, 2), window = 1 segment, everything from `una` is sent again by slow start, and
                duplicates of what was sent before do not start another recovery (`recover`, RFC 6582 §3.2 step 1).

Every new ACK restarts the timer, partial ones too (the "slow but steady" variant of RFC 6582 §4).

With `sack` recovery is that of `sack.py`, and segments known to have arrived are not sent again after a timeout.

The receiver acknowledges every `ack_every`-th segment in order, or after `ack_delay`, and at once anything out of order
or filling a gap. RTTs come from echoed sending times (RFC 7323), so retransmissions count.

DCTCP and MPTCP are this machine with another reaction to marks, and another growth, in `dctcp.py` and `mptcp.py`.
"""

import numpy as np

from weft.engine import events
from weft.engine.jit import part
from weft.hosts import dctcp, mptcp, sack
from weft.hosts.flow import (
    Transport,
    arm,
    book,
    claim,
    close_slot,
    new_timer,
    no_pace,
    no_room,
    sample_rtt,
    send_control,
    send_segment,
)
from weft.hosts.state import (
    ACK,
    DATA,
    DATA_ACK,
    DCTCP,
    DELAYED,
    ECHO,
    MARKED,
    RTO,
    flow_at,
    got,
    options,
    out,
    packet_at,
    sub_at,
)


@part
def begin(s, slot):
    """Send the first window of every subflow."""
    for k in range(s.subflows):
        sub_at(s, slot * s.subflows + k).alpha = dctcp.ONE
        _fill(s, slot, k)


@part
def _fill(s, slot, k):
    """Send what the window of subflow k allows."""
    i = slot * s.subflows + k
    sub = sub_at(s, i)
    if s.sack > 0 and sub.recovering == 1:
        sack.recover(s, slot, k)
    else:
        allowed = sub.window // s.payload
        if sub.recovering == 0 and s.limited == 1:
            allowed += min(sub.duplicates, 2)
        allowed = min(allowed, s.reach, s.max_window)
        while sub.nxt - sub.una < allowed and (sub.nxt < sub.top or claim(s, slot, i)):
            sub.nxt += 1
            if out(s)[i, (sub.nxt - 1) & (s.reach - 1)] != sack.ARRIVED:
                send_segment(s, slot, k, sub.nxt - 1)
    if sub.deadline == 0 and sub.nxt > sub.una:
        arm(s, slot, k, s.now + sub.rto)


@part
def _fill_others(s, slot, k):
    """Send what the windows of all subflows but k allow."""
    for j in range(s.subflows):
        if j != k:
            _fill(s, slot, j)


@part
def _enter_recovery(s, slot, k):
    """Halve the window of subflow k and send its oldest segment again."""
    sub = sub_at(s, slot * s.subflows + k)
    sub.threshold = max((sub.nxt - sub.una) * s.payload // 2, 2 * s.payload)
    sub.window = sub.threshold if s.sack > 0 else sub.threshold + 3 * s.payload
    sub.recover = sub.top - 1
    sub.recovering = 1
    sub.credit = 0
    sub.mended = sub.rescued = sub.una
    s.fast_retransmits += 1
    send_segment(s, slot, k, sub.una)


@part
def on_ack(s, r):
    """An ACK has reached the sender."""
    p = packet_at(s, r)
    slot, k, ack, sent = np.int64(p.flow), np.int64(p.sub), np.int64(p.seq), p.sent
    echoed = p.flags & ECHO != 0
    i = slot * s.subflows + k
    sub, mask = sub_at(s, i), s.reach - 1
    widened = mptcp.heed(s, slot, i, r) if s.stream > 0 else False
    duplicate = sack.update(s, i, r) if s.sack > 0 else ack == sub.una and sub.nxt > sub.una
    if ack > sub.una:
        newly = ack - sub.una
        for q in range(sub.una, ack):
            out(s)[i, q & mask] = 0
        sub.una = ack
        sub.nxt = max(sub.nxt, ack)
        sample_rtt(s, i, s.now - sent)
        may_grow = True
        if s.transport == DCTCP:
            may_grow = dctcp.react(s, i, newly, echoed)
        if sub.recovering == 1:
            if ack > sub.recover:
                sub.recovering = 0
                sub.duplicates = 0
                if s.sack == 0:
                    sub.window = min(sub.threshold, max(sub.nxt - ack, 1) * s.payload + s.payload)
            elif s.sack == 0:
                sub.window = max(sub.window - newly * s.payload + s.payload, s.payload)
                send_segment(s, slot, k, ack)
        else:
            sub.duplicates = 0
            if may_grow:
                if sub.window < sub.threshold:
                    sub.window += s.payload
                elif s.coupled == 1:
                    mptcp.grow(s, slot, i, newly)
                else:
                    sub.credit += s.payload * s.payload
                    step = sub.credit // sub.window
                    sub.credit -= step * sub.window
                    sub.window += step
                sub.window = min(sub.window, s.max_window * s.payload)
        arm(s, slot, k, s.now + sub.rto if sub.nxt > sub.una else 0)
    elif ack == sub.una and sub.nxt > sub.una and s.transport == DCTCP:
        dctcp.react(s, i, 0, echoed)
    if duplicate:
        if sub.recovering == 1:
            if s.sack == 0:
                sub.window += s.payload
        else:
            sub.duplicates += 1
            if sub.una > sub.recover and (sub.duplicates == 3 or (s.sack > 0 and sack.lost(s, i))):
                _enter_recovery(s, slot, k)
    _fill(s, slot, k)
    if widened:
        _fill_others(s, slot, k)
    if s.stream > 0:
        if flow_at(s, slot).acked == flow_at(s, slot).segments:
            close_slot(s, slot)
    elif flow_at(s, slot).done == 1:
        for j in range(slot * s.subflows, (slot + 1) * s.subflows):
            if sub_at(s, j).una < sub_at(s, j).top:
                return
        close_slot(s, slot)


@part
def on_timeout(s, r):
    """The retransmission timer of a subflow has come; its deadline may have moved since."""
    now = s.now
    slot, k = np.int64(packet_at(s, r).flow), np.int64(packet_at(s, r).sub)
    sub = sub_at(s, slot * s.subflows + k)
    sub.timer = events.NONE
    if sub.deadline == 0:
        return
    if sub.deadline > now:
        arm(s, slot, k, sub.deadline)
        return
    s.timeouts += 1
    flight = (sub.nxt - sub.una) * s.payload
    if sub.backoff == 0:  # RFC 5681: once per loss, not for each time it is sent again
        sub.threshold = max(flight // 2, 2 * s.payload)
    sub.backoff = min(sub.backoff + 1, 12)
    sub.window = s.payload
    sub.recover = sub.top - 1
    sub.recovering = 0
    sub.duplicates = 0
    sub.credit = 0
    sub.nxt = sub.una
    if s.reinject == 1:
        mptcp.give_up(s, slot, slot * s.subflows + k)
    for q in range(s.reach):  # RFC 2018 §8: what was selectively acknowledged may have been dropped since
        out(s)[slot * s.subflows + k, q] = 0
    sub.rto = min(sub.rto * 2, s.rto_max)
    sub.deadline = 0
    _fill(s, slot, k)
    if s.reinject == 1:
        _fill_others(s, slot, k)


@part
def _acknowledge(s, slot, k, echo):
    """Tell the sender what is expected next."""
    i = slot * s.subflows + k
    sub = sub_at(s, i)
    sub.pending = 0
    s.acks += 1
    r = send_control(s, slot, k, ACK, sub.expected, 0, ECHO if echo else 0, sub.stamp, True)
    if s.sack > 0:
        sack.name(s, i, r)
    if s.stream > 0:
        options(s)[r, DATA_ACK] = flow_at(s, slot).expected


@part
def on_data(s, r):
    """A segment has reached the receiver."""
    p = packet_at(s, r)
    slot, k, seq, sent = np.int64(p.flow), np.int64(p.sub), np.int64(p.seq), p.sent
    marked = 1 if p.flags & MARKED else 0
    i = slot * s.subflows + k
    sub, mask = sub_at(s, i), s.reach - 1
    if sub.pending > 0 and marked != sub.echoing and s.transport == DCTCP:
        _acknowledge(s, slot, k, sub.echoing == 1)
    sub.echoing = marked
    in_order = seq == sub.expected
    if seq < sub.expected or got(s)[i, seq & mask] == 1:
        s.duplicates += 1
    else:
        book(s, slot, i, seq)
        while got(s)[i, sub.expected & mask] == 1:
            got(s)[i, sub.expected & mask] = 0
            sub.expected += 1
    if s.sack > 0 and seq > sub.expected:
        sack.remember(s, i, seq)
    if sub.pending == 0:
        sub.stamp = sent
        sub.wait = s.now + s.ack_delay
    sub.pending += 1
    if not in_order or sub.expected != seq + 1 or sub.pending >= s.ack_every or flow_at(s, slot).done == 1:
        _acknowledge(s, slot, k, marked == 1)
    elif sub.timer_wait == events.NONE:
        sub.timer_wait = new_timer(s, slot, k, DELAYED, sub.wait)


@part
def on_delayed(s, r):
    """The delayed ACK of a subflow is due, unless it has been sent."""
    slot, k = np.int64(packet_at(s, r).flow), np.int64(packet_at(s, r).sub)
    sub = sub_at(s, slot * s.subflows + k)
    sub.timer_wait = events.NONE
    if sub.pending == 0:
        return
    if sub.wait > s.now:
        sub.timer_wait = new_timer(s, slot, k, DELAYED, sub.wait)
    else:
        _acknowledge(s, slot, k, sub.echoing == 1)


@part
def receive(s, r):
    """Packet r has reached its host."""
    if packet_at(s, r).kind == DATA:
        on_data(s, r)
    else:
        on_ack(s, r)


@part
def fire(s, r):
    """Timer r is due."""
    if packet_at(s, r).kind == RTO:
        on_timeout(s, r)
    else:
        on_delayed(s, r)


TCP = Transport(begin=begin, receive=receive, fire=fire, pace=no_pace, room=no_room)
