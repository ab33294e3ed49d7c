"""NDP: receivers pull packets at the rate of their link, switches trim instead of dropping (SIGCOMM '17).

    sender     sends `initial_window` packets at once, without waiting for anything (§3.2), then one for every pull: the
               oldest packet known to be lost, else a new one. Packets walk a permutation of all paths, drawn anew when
               it is used up (§3.1.1). A NACK or a returned header makes a packet lost. A scoreboard counts what became
               of the packets of each path; one that fails twice as often as all together is left out of the next
               permutation (§3.2.3, which gives no threshold).
    receiver   answers a packet by ACK and a trimmed header by NACK, both at once and ahead of data, and owes the sender
               a pull for either. One pacer per host sends the pulls, a full packet's time apart, taking its senders in
               turn; what is owed to a flow that has arrived is forgotten (§3.2).
    switch     (`switches.py`) keeps `buffer` data packets; the next loses its payload, or, at random, the one at the
               tail does (§3.1). Headers go first, ten for one data packet. A header that finds the header queue full is
               returned to its sender (§3.2.4).

A returned packet is sent again at once if nothing is in flight and no pull is due, else it waits for a pull, so that a
large incast does not echo (§3.2.4). Whatever stays unanswered for one to two `rto_min` is sent again (§3.2.3): a clock
ticks once per `rto_min` and resends what was already in flight at the tick before. Feedback carries counts: a lost pull
is made good by the next, which asks for both. A pull that overtakes the NACK it belongs to finds nothing to send; it is
kept, and spent when the NACK comes. If a lost pull was the last, sender and receiver would wait for each other for
ever; a sender with nothing in flight that has heard nothing for `rto_max` therefore sends a packet unasked.
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
    no_room,
    send_control,
    send_segment,
    tally,
)
from weft.hosts.state import ACK, BOUNCED, DATA, NACK, PULL, TRIMMED, flow_at, got, host_at, out, packet_at, sub_at

OLD, ARRIVED, LOST, FRESH = 1, 2, 3, 4  # in flight since before the last tick; answered; to be resent; in flight since


@hot
def _send(s, slot, seq):
    sub = sub_at(s, slot)
    out(s)[slot, seq & (s.reach - 1)] = FRESH
    sub.flying += 1
    send_segment(s, slot, 0, seq)
    if sub.deadline == 0:
        arm(s, slot, 0, s.now + s.rto_min)


@part
def _send_next(s, slot):
    """Send the oldest lost segment, or a new one; False when there is neither."""
    sub = sub_at(s, slot)
    if sub.lost > 0:
        seq = sub.una
        while out(s)[slot, seq & (s.reach - 1)] != LOST:
            seq += 1
        sub.lost -= 1
        _send(s, slot, seq)
        return True
    if sub.nxt - sub.una < s.max_window and claim(s, slot, slot):
        sub.nxt += 1
        _send(s, slot, sub.nxt - 1)
        return True
    return False


@part
def begin(s, slot):
    """Send the first window."""
    sub_at(s, slot).stamp = s.now
    for _ in range(s.initial_window):
        if not _send_next(s, slot):
            return


@hot
def _landed(s, slot, seq):
    """Whether segment `seq` was in flight until now; it no longer is."""
    sub = sub_at(s, slot)
    what = out(s)[slot, seq & (s.reach - 1)]
    if seq < sub.una or (what != OLD and what != FRESH):
        return False
    sub.flying -= 1
    return True


@part
def on_ack(s, r):
    """A segment has arrived whole."""
    p = packet_at(s, r)
    slot, seq, mask = np.int64(p.flow), np.int64(p.echo), s.reach - 1
    sub = sub_at(s, slot)
    sub.stamp = s.now
    sub.acked += 1
    if not _landed(s, slot, seq):
        if seq < sub.una or out(s)[slot, seq & mask] != LOST:
            return
        sub.lost -= 1  # taken for lost too early
    tally(s, slot, seq, False)
    out(s)[slot, seq & mask] = ARRIVED
    while sub.una < sub.nxt and out(s)[slot, sub.una & mask] == ARRIVED:
        out(s)[slot, sub.una & mask] = 0
        sub.una += 1
    if sub.una == sub.nxt and flow_at(s, slot).taken == flow_at(s, slot).segments:
        close_slot(s, slot)


@part
def on_nack(s, r):
    """A segment has arrived without its payload."""
    p = packet_at(s, r)
    slot, seq = np.int64(p.flow), np.int64(p.echo)
    sub = sub_at(s, slot)
    sub.stamp = s.now
    sub.acked += 1
    if _landed(s, slot, seq):
        tally(s, slot, seq, True)
        out(s)[slot, seq & (s.reach - 1)] = LOST
        sub.lost += 1
        if sub.credit > 0:
            sub.credit -= 1
            _send_next(s, slot)


@part
def on_returned(s, r):
    """A header has come back because the queue of headers was full."""
    p = packet_at(s, r)
    slot, seq = np.int64(p.flow), np.int64(p.seq)
    sub = sub_at(s, slot)
    if _landed(s, slot, seq):
        tally(s, slot, seq, True)
        out(s)[slot, seq & (s.reach - 1)] = LOST
        sub.lost += 1
        if sub.flying == 0 and sub.answered >= sub.acked:
            _send_next(s, slot)


@part
def on_pull(s, r):
    """The receiver has room for more."""
    p = packet_at(s, r)
    slot = np.int64(p.flow)
    sub = sub_at(s, slot)
    sub.stamp = s.now
    while sub.answered < p.seq:
        sub.answered += 1
        if not _send_next(s, slot):
            sub.credit += 1


@part
def on_tick(s, r):
    """One `rto_min` has passed: resend what had been in flight when it began."""
    slot, mask = np.int64(packet_at(s, r).flow), s.reach - 1
    sub = sub_at(s, slot)
    sub.timer = events.NONE
    sub.deadline = 0
    late = sub.flying == 0 and s.now - sub.stamp >= s.rto_max and _send_next(s, slot)
    for seq in range(sub.una, sub.nxt):
        if out(s)[slot, seq & mask] == OLD:
            late = True
            tally(s, slot, seq, True)
            sub.flying -= 1
            _send(s, slot, seq)
        elif out(s)[slot, seq & mask] == FRESH:
            out(s)[slot, seq & mask] = OLD
    if late:
        s.timeouts += 1
    if sub.deadline == 0:
        arm(s, slot, 0, s.now + s.rto_min)


@part
def on_data(s, r):
    """A packet, or what is left of one, has reached the receiver."""
    p = packet_at(s, r)
    slot, seq, trimmed = np.int64(p.flow), np.int64(p.seq), p.flags & TRIMMED != 0
    sub, flow, mask = sub_at(s, slot), flow_at(s, slot), s.reach - 1
    known = seq < sub.expected or got(s)[slot, seq & mask] == 1
    if trimmed and not known:
        s.nacks += 1
        send_control(s, slot, 0, NACK, sub.expected, seq, 0, p.sent, True)
    else:
        s.acks += 1
        send_control(s, slot, 0, ACK, sub.expected, seq, 0, p.sent, True)
        if known:
            s.duplicates += 1
        else:
            book(s, slot, slot, seq)
            while got(s)[slot, sub.expected & mask] == 1:
                got(s)[slot, sub.expected & mask] = 0
                sub.expected += 1
    if flow.done == 1:
        sub.pending = 0
        return
    sub.pending += 1
    if flow.queued == 0:
        enqueue_flow(s, slot, flow.dst)
    if host_at(s, flow.dst).pacing == 0:
        call_pacer(s, flow.dst)


@part
def on_pace(s, at, waiting):
    """The pacer of a host may send a pull, whatever waits on its port."""
    host = host_at(s, at)
    host.pacing = 0
    while True:
        slot = dequeue_flow(s, at)
        if slot == events.NONE:
            return
        sub = sub_at(s, slot)
        if sub.pending == 0:
            continue
        sub.pending -= 1
        sub.pulled += 1
        s.pulls += 1
        send_control(s, slot, 0, PULL, sub.pulled, -1, 0, s.now, True)
        if sub.pending > 0:
            enqueue_flow(s, slot, at)
        host.free_at = s.now + s.pull_gap
        if host.first != events.NONE:
            call_pacer(s, at)
        return


@part
def receive(s, r):
    """Packet r has reached its host."""
    p = packet_at(s, r)
    if p.kind == DATA and p.flags & BOUNCED:
        on_returned(s, r)
    elif p.kind == DATA:
        on_data(s, r)
    elif p.kind == ACK:
        on_ack(s, r)
    elif p.kind == NACK:
        on_nack(s, r)
    else:
        on_pull(s, r)


NDP = Transport(begin=begin, receive=receive, fire=on_tick, pace=on_pace, room=no_room)
