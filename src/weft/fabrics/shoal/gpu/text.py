"""Shoal's rules for a device: what one node does in a slot. See `kernel` for the legend, `state` for the arrays.

A slot has two halves with a barrier after each. In the first a node starts its flows and sends, and changes only what
is its own, but for two counts that are added to; in the second it takes in what was sent to it. What a pair has got is
its destination's, who writes it in the second half alone; its source reads it in the first.

The text knows neither threads nor a device. `device` compiles it for one, for a loop over nodes in any order, or not at
all, for Numba's simulator.
"""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.device import add_to, device, lowest_bit, set_bits
from weft.engine.fingerprint import mixed
from weft.fabrics.shoal.gpu.state import (
    ANSWER_BITS, ANSWER_SHIFT, DELIVERED, EMPTY, FINISHED, FORWARDED, LENGTH, LENGTH_0, LENGTH_1, LENGTH_2, LENGTH_3,
    LOCAL, LOCAL_BIT, LONGEST, MAX_HELD, MAX_NODE, MAX_QUEUE, META_SHIFT, NODE_BITS, NONE, OF_SEAT, OVER_BOUND, OWES,
    PACK, PLACE_BITS, READY_BITS, READY_SHIFT, RELAYED, RING, SAID_SHIFT, SEAT_BITS, SEAT_SHIFT, STOP, TOO_LONG,
    TURN_SHIFT, VISITS, WANTS_POOL, WANTS_SEATS, WANTS_WINDOW, WHEN_BITS,
)  # fmt: skip
from weft.fabrics.shoal.kernel import AWAY, FREE_NOW, LATEST, OWN, SENT, SEQ_BITS, SEQ_SHIFT
from weft.fabrics.shoal.rules import at, channel_in_turn, event, facing, service_lag, too_young, where

_0, _1, _ALL = np.uint64(0), np.uint64(1), np.uint64(EMPTY)
_LOW, _META, _SEQ, _OWN, _63 = (
    np.uint64(0xFFFFFFFF),
    np.uint64(META_SHIFT),
    np.uint64(SEQ_SHIFT),
    np.uint64(OWN),
    np.uint64(63),
)
_16, _32, _48 = np.uint64(16), np.uint64(32), np.uint64(48)
NEVER = 1 << 62  # later than anything


# ---------------------------------------------------------------- queues


@device
def subflow(seat, p, i, n, seats):
    """Where `leave` has the subflow of that seat of i over place p."""
    return (((p // PACK) * seats + seat) * n + i) * PACK + p % PACK


@device
def append(rack, queues, q, i, n, length, what, acc):
    """Put a cell behind the `length` cells of queue q, a queue of node i."""
    if length < RING:
        rack.cells[at(length * queues + q)] = what
        return
    free = rack.free
    number = np.int64(free[at(i)])
    if number != NONE:
        free[at(i)] = rack.after_pool[at(number * n + i)]
    else:
        number = np.int64(free[at(n + i)])
        free[at(n + i)] = number + 1
    free[at(2 * n + i)] += np.uint32(1)
    rack.pool[at(number * n + i)] = what
    ends = np.int64(rack.spill[at(q)])
    if length == RING:
        rack.spill[at(q)] = number | number << 16
    else:
        rack.after_pool[at((ends >> 16) * n + i)] = number
        rack.spill[at(q)] = (ends & NONE) | number << 16


@device
def take(rack, queues, q, i, n, length):
    """Take the first of the `length` cells of queue q; the others move up."""
    cells, free = rack.cells, rack.free
    what = cells[at(q)]
    if length > 1:
        cells[at(q)] = cells[at(queues + q)]
        if length > 2:
            cells[at(queues + q)] = cells[at(2 * queues + q)]
    if length > RING:
        ends = np.int64(rack.spill[at(q)])
        number = ends & NONE
        cells[at(2 * queues + q)] = rack.pool[at(number * n + i)]
        rack.spill[at(q)] = (ends & ~NONE) | np.int64(rack.after_pool[at(number * n + i)]) & NONE
        rack.after_pool[at(number * n + i)] = free[at(i)]
        free[at(i)] = number
        free[at(2 * n + i)] -= np.uint32(1)
    return what


# ---------------------------------------------------------------- the first half: flows start, nodes send


@device
def find_seat(rack, i, d, n, seats, slot):
    """(seat of the living pair from i to d, or -1; the first seat that is vacant), after looking who has rested."""
    found, vacant = np.int64(-1), np.int64(-1)
    for x in range(seats // 64):
        word = rack.used[at(x * n + i)]
        todo, kept = word, word
        while todo != 0:  # four at a time: a device waits for the first load, and the others come with it
            a, todo = lowest_bit(todo), todo & todo - _1
            b, todo = lowest_bit(todo) if todo != 0 else a, todo & todo - _1 if todo != 0 else todo
            c, todo = lowest_bit(todo) if todo != 0 else b, todo & todo - _1 if todo != 0 else todo
            k, todo = lowest_bit(todo) if todo != 0 else c, todo & todo - _1 if todo != 0 else todo
            first = x * 64 * n + i
            to_a, to_b = rack.target[at(first + a * n)], rack.target[at(first + b * n)]
            to_c, to_k = rack.target[at(first + c * n)], rack.target[at(first + k * n)]
            by_a, by_b = rack.rested[at(first + a * n)], rack.rested[at(first + b * n)]
            by_c, by_k = rack.rested[at(first + c * n)], rack.rested[at(first + k * n)]
            found = x * 64 + a if to_a == d and by_a == NEVER else found
            found = x * 64 + b if to_b == d and by_b == NEVER else found
            found = x * 64 + c if to_c == d and by_c == NEVER else found
            found = x * 64 + k if to_k == d and by_k == NEVER else found
            kept &= ~(_1 << np.uint64(a)) if by_a <= slot else _ALL
            kept &= ~(_1 << np.uint64(b)) if by_b <= slot else _ALL
            kept &= ~(_1 << np.uint64(c)) if by_c <= slot else _ALL
            kept &= ~(_1 << np.uint64(k)) if by_k <= slot else _ALL
        if kept != word:
            rack.used[at(x * n + i)] = kept
        if vacant < 0 and kept != _ALL:
            vacant = x * 64 + lowest_bit(~kept)
    return found, vacant


@device
def start_flows(plan, rack, i, slot, acc):
    """Start every flow of node i whose slot has come."""
    n, seats, shortest = plan.n, plan.seats, plan.shortest
    x, end = np.int64(rack.upcoming[at(i)]), np.int64(rack.until[at(i + 1)])
    while x < end and rack.start[at(x)] <= slot:
        f = np.int64(rack.order[at(x)])
        x += 1
        d, cells = np.int64(rack.dst[at(f)]), rack.size[at(f)]
        seat, vacant = find_seat(rack, i, d, n, seats, slot)
        if seat < 0:
            seat = vacant
            h = seat * n + i
            rack.used[at((seat >> 6) * n + i)] |= _1 << np.uint64(seat & 63)
            rack.target[at(h)], rack.since[at(h)], rack.seq[at(h)], rack.served[at(h)] = d, 0, 0, 0
            rack.want[at(h)], rack.got[at(h)], rack.undelivered[at(h)], rack.rested[at(h)] = 0, 0, 0, NEVER
            for x4 in range(plan.shift.size + PACK - 1 >> 2):  # the seat may have been another's
                rack.leave4[at((x4 * seats + seat) * n + i)] = _ALL  # FREE_NOW, four times
            add_to(rack.incast, d, np.int32(1))
        h = seat * n + i
        served = np.int64(rack.served[at(h)]) - 1
        if served < 0:  # nothing left to release: it becomes busy now
            rack.able[at((seat >> 6) * n + i)] |= _1 << np.uint64(seat & 63)
            rack.since[at(h)] = slot
        join(rack, h, f, served, cells, shortest)
        rack.release[at(f)], rack.deliver[at(f)] = cells, cells
        rack.undelivered[at(h)] += cells
        rack.meta[at(f)] = np.uint64(d << META_SHIFT | seat << OF_SEAT | i)
        if rack.inflow[at(d)] == 0:
            rack.inflow_since[at(d)] = slot
        add_to(rack.inflow, d, np.int32(1))
    rack.upcoming[at(i)] = x
    rack.due[at(i)] = rack.start[at(x)] if x < end else NEVER
    vacant = 0
    for g in range(seats // 64):
        vacant += 64 - set_bits(rack.used[at(g * n + i)])
    if vacant < plan.reserve:
        acc[STOP] |= WANTS_SEATS


@device
def join(rack, h, f, served, cells, shortest):
    """Add flow f to the circle of pair h, see `rules.join`."""
    after = rack.after
    if served < 0:
        after[at(f)] = f
        rack.served[at(h)] = f + 1
        return
    k = served
    if shortest:
        while after[at(k)] != served and rack.size[at(after[at(k)])] <= cells:
            k = np.int64(after[at(k)])
        if rack.size[at(after[at(k)])] <= cells:
            k = served
            rack.served[at(h)] = f + 1
    else:
        rack.served[at(h)] = f + 1
    after[at(f)] = after[at(k)]
    after[at(k)] = f


@device
def next_flow(rack, h, shortest):
    """Take a cell of pair h from the flow whose turn it is, see `rules.next_flow`; returns the flow."""
    before = np.int64(rack.served[at(h)]) - 1
    f = np.int64(rack.after[at(before)])
    left = rack.release[at(f)] - 1
    rack.release[at(f)] = left
    if left == 0:
        if f == before:
            rack.served[at(h)] = 0
        else:
            rack.after[at(before)] = rack.after[at(f)]
    elif not shortest:
        rack.served[at(h)] = f + 1
    return f


@device
def may_send(plan, rack, i, p, group, limit):
    """Seats of i from 64 * group on with cells left that may send in place p: eq. (2)."""
    n, seats, leave = plan.n, plan.seats, rack.leave
    todo, who = rack.able[at(group * n + i)], _0
    row = ((p // PACK) * seats + group * 64) * n + i
    while todo != 0:
        k = lowest_bit(todo)
        todo &= todo - _1
        if leave[at((row + k * n) * PACK + p % PACK)] <= limit:
            who |= _1 << np.uint64(k)
    return who


@device
def eligible(word, limits):
    """Which of the four numbers of a word of `leave` are at most their limits: bits 0, 16, 32 and 48.

    limits: four numbers of 16 bits, each 1 + its limit + 2^15; a word holds numbers from -1 on, so with 1 added, and
    nothing carried, they are at most 2^15.
    """
    more = np.uint64(0x0001000100010001)
    low, top = np.uint64(0x7FFF7FFF7FFF7FFF), np.uint64(0x8000800080008000)
    plus = ((word & low) + more) ^ (word & top)  # 1 added to each, apart
    return (limits - plus) >> np.uint64(15) & more


@device
def scan(rack, i, n, seats, row, limits):
    """Seats of i, of no more than 64, that may send on each of four channels: eq. (2); four words."""
    a, b, c, d = _0, _0, _0, _0
    todo = rack.able[at(i)]
    first = row * seats * n + i
    while todo != 0:  # four at a time, as in `find_seat`
        k0, todo = lowest_bit(todo), todo & todo - _1
        k1, todo = lowest_bit(todo) if todo != 0 else k0, todo & todo - _1 if todo != 0 else todo
        k2, todo = lowest_bit(todo) if todo != 0 else k1, todo & todo - _1 if todo != 0 else todo
        k3, todo = lowest_bit(todo) if todo != 0 else k2, todo & todo - _1 if todo != 0 else todo
        w0, w1 = rack.leave4[at(first + k0 * n)], rack.leave4[at(first + k1 * n)]
        w2, w3 = rack.leave4[at(first + k2 * n)], rack.leave4[at(first + k3 * n)]
        may = eligible(w0, limits)
        a, b = a | (may & _1) << np.uint64(k0), b | (may >> _16 & _1) << np.uint64(k0)
        c, d = c | (may >> _32 & _1) << np.uint64(k0), d | (may >> _48) << np.uint64(k0)
        may = eligible(w1, limits)
        a, b = a | (may & _1) << np.uint64(k1), b | (may >> _16 & _1) << np.uint64(k1)
        c, d = c | (may >> _32 & _1) << np.uint64(k1), d | (may >> _48) << np.uint64(k1)
        may = eligible(w2, limits)
        a, b = a | (may & _1) << np.uint64(k2), b | (may >> _16 & _1) << np.uint64(k2)
        c, d = c | (may >> _32 & _1) << np.uint64(k2), d | (may >> _48) << np.uint64(k2)
        may = eligible(w3, limits)
        a, b = a | (may & _1) << np.uint64(k3), b | (may >> _16 & _1) << np.uint64(k3)
        c, d = c | (may >> _32 & _1) << np.uint64(k3), d | (may >> _48) << np.uint64(k3)
    return a, b, c, d


@device
def let_go(plan, rack, i, p, q, slot, e, holds, who, acc):
    """Let node i release a cell to the end of queue q, in turn; returns what the queue holds then.

    who: the seats that may, if the node has no more than 64.
    """
    n, seats, interval, ready_queues = plan.n, plan.seats, plan.age_interval, plan.ready_queues
    queues, young, shortest = rack.held.size, plan.aged * interval, plan.shortest
    length, turn = holds & LENGTH, holds >> TURN_SHIFT
    limit = min(e + length, LATEST) if ready_queues else np.int64(LATEST)
    groups, released = seats >> 6, np.int64(0)
    turn = turn if turn < seats else 0
    group, spin = turn >> 6, np.uint64(turn & 63)
    for step in range(groups + 1):  # the group of the turn comes twice: its end first, its beginning last
        if groups > 1:
            who = may_send(plan, rack, i, p, group, limit)
        now = who
        if step == 0:
            now = who & _ALL << spin
        elif step == groups:
            now = who & ~(_ALL << spin)
        while now != 0:
            k = lowest_bit(now)
            now &= now - _1
            seat = (group << 6) + k
            h = seat * n + i
            seen = length
            if not ready_queues:
                seen += released
                if rack.leave[at(subflow(seat, p, i, n, seats))] > e + seen:
                    continue
            if too_young(seen, slot - rack.since[at(h)], young, interval):
                continue
            f = next_flow(rack, h, shortest)
            number = rack.seq[at(h)]
            if number - rack.want[at(h)] >= plan.window - 2 * plan.channels:
                acc[STOP] |= WANTS_WINDOW
            rack.seq[at(h)] = number + 1
            rack.leave[at(subflow(seat, p, i, n, seats))] = AWAY
            what = _OWN | np.uint64(number & SEQ_BITS) << _SEQ | np.uint64(f)
            append(rack, queues, q, i, n, length + released, what, acc)
            released += 1
            turn = seat + 1
            if rack.served[at(h)] == 0:
                rack.able[at(group * n + i)] &= ~(_1 << np.uint64(k))
            if ready_queues:
                break
        if ready_queues and released > 0:
            break
        group = group + 1 if group + 1 < groups else 0
    if released > 0:
        waiting = np.int64(rack.waiting[at(i)]) + released
        rack.waiting[at(i)] = waiting
        acc[MAX_QUEUE] = max(acc[MAX_QUEUE], length + released)
        acc[MAX_NODE] = max(acc[MAX_NODE], waiting)
        holds = (holds & ((1 << TURN_SHIFT) - 1)) + released - ((1 << READY_SHIFT) if ready_queues else 0)
        holds |= LOCAL_BIT | turn << TURN_SHIFT
    return holds


@device
def report(rack, debt, i, row, now):
    """What node i says of a feedback that it owes: 1 + the seat, and the epoch from which it may send again."""
    if debt == 0:
        return np.int64(0)
    there = np.int64(rack.held[at((debt & PLACE_BITS) * row + i)])
    ahead = (there & LENGTH) + (there >> READY_SHIFT & READY_BITS)
    when = max(min(now + ahead + (debt >> ANSWER_SHIFT & ANSWER_BITS), LATEST), 0)
    return ((debt >> SEAT_SHIFT & SEAT_BITS) + 1) << SAID_SHIFT | when


@device
def send(plan, rack, i, slot, e, base, place, acc):
    """Let node i work through its channels: what it sends goes onto the wire.

    e: the epoch, from BASE on; base: the first place of the slot; place: where the wire of this slot begins.
    """
    n, channels, row, seats = plan.n, plan.channels, plan.row, plan.seats
    more, ready_queues, self_place = plan.feedback - 1, plan.ready_queues, plan.self_place
    queues, wires = rack.held.size, rack.what.size
    ended = rack.ended[at(i)]
    if ended > 0:
        add_to(rack.incast, i, np.int32(-ended))
        rack.ended[at(i)] = 0
    if rack.due[at(i)] <= slot:
        start_flows(plan, rack, i, slot, acc)
    now = e - plan.answer_offset
    active = False
    for g in range(seats >> 6):
        active |= rack.able[at(g * n + i)] != 0
    quick = channels & 3 == 0 and seats == 64 and ready_queues
    w0, w1, w2, w3 = _0, _0, _0, _0
    for c in range(channels):
        p, x = base + c, (place + c) * n + i
        if quick and active and c & 3 == 0:  # four channels at once: none changes what another looks at
            limits = _0
            for k in range(4):
                length = np.int64(rack.held[at((p + k) * row + i)]) & LENGTH
                limits |= np.uint64(min(e + length, LATEST) + 1 + 0x8000) << np.uint64(16 * k)
            w0, w1, w2, w3 = scan(rack, i, n, seats, p >> 2, limits)
        if not plan.first[at(p)] <= i < plan.last[at(p)]:  # dark
            rack.what[at(x)] = _ALL
            rack.said[at(x)] = 0
            for y in range(more):
                rack.again[at(y * wires + x)] = 0
            continue
        here = p == self_place
        if here:
            rack.left[at(i)] = 0
        q = p * row + i
        holds, debt = np.int64(rack.held[at(q)]), np.int64(rack.owed[at(q)])
        owes = debt != 0
        for y in range(more):
            owes |= rack.past[at(y * queues + q)] != 0
        if here and more == 0:
            owes |= rack.told[at(i)] != 0
        if not (active or owes or holds & (LENGTH | READY_BITS << READY_SHIFT) != 0):
            rack.what[at(x)] = _ALL
            rack.said[at(x)] = 0
            for y in range(more):
                rack.again[at(y * wires + x)] = 0
            continue
        length = holds & LENGTH
        note_visit(rack, length, acc)

        # Who may release a cell, and does.
        holds &= ~(READY_BITS << READY_SHIFT)
        if active:
            limit = min(e + length, LATEST) if ready_queues else np.int64(LATEST)
            who, ready = _0, np.int64(0)
            if quick:
                who = w0 if c & 3 == 0 else (w1 if c & 3 == 1 else (w2 if c & 3 == 2 else w3))
                who &= rack.able[at(i)]
                ready = set_bits(who)
            else:
                for g in range(seats >> 6):
                    who = may_send(plan, rack, i, p, g, limit)
                    ready += set_bits(who)
            if ready_queues:
                holds |= ready << READY_SHIFT
            if ready > 0 and (holds & LOCAL_BIT == 0 or not ready_queues):
                holds = let_go(plan, rack, i, p, q, slot, e, holds, who, acc)
                active = False
                for g in range(seats >> 6):
                    active |= rack.able[at(g * n + i)] != 0
        rack.held[at(q)] = holds

        # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
        kept = debt
        for y in range(more):
            before = np.int64(rack.past[at(y * queues + q)])
            if before != kept:
                rack.past[at(y * queues + q)] = kept
            rack.again[at(y * wires + x)] = report(rack, before, i, row, now)
            kept = before
        if here and more == 0:
            again = np.int64(rack.told[at(i)])
            rack.told[at(i)] = debt
            if debt == 0:
                debt = again
        elif debt != 0:
            rack.owed[at(q)] = 0
        if here and more == 0:
            rack.owed[at(q)] = 0
        rack.said[at(x)] = report(rack, debt, i, row, now)

        # The cell.
        length = holds & LENGTH
        if length == 0:
            rack.what[at(x)] = _ALL
            continue
        what = take(rack, queues, q, i, n, length)
        meta = rack.meta[at(what & _LOW)]
        rack.what[at(x)], rack.about[at(x)] = what, meta
        rack.waiting[at(i)] -= np.int32(1)
        holds -= 1
        if what & _OWN != 0:
            holds &= ~LOCAL_BIT
            acc[LOCAL] += 1
            seat, j = np.int64(meta) >> OF_SEAT & SEAT_BITS, facing(i, np.int64(plan.shift[at(p)]), n)
            if np.int64(meta >> _META) == j:
                rack.leave[at(subflow(seat, p, i, n, seats))] = FREE_NOW
            elif here:
                rack.leave[at(subflow(seat, p, i, n, seats))] = SENT
                rack.left[at(i)] = seat + 1
        else:
            acc[FORWARDED] += 1
        rack.held[at(q)] = holds


@device
def note_visit(rack, length, acc):
    """Count a visit to a queue, by its length."""
    acc[VISITS] += 1
    if length == 0:
        acc[LENGTH_0] += 1
    elif length == 1:
        acc[LENGTH_1] += 1
    elif length == 2:
        acc[LENGTH_2] += 1
    elif length == 3:
        acc[LENGTH_3] += 1
    else:
        add_to(rack.lengths, min(length, 255), 1)


# ---------------------------------------------------------------- the second half: what was sent arrives


@device
def receive(plan, rack, j, slot, base, place, acc, sums):
    """Let node j take in what was sent to it `delay` slots ago: feedback, and a cell that goes on or has arrived."""
    n, channels, epoch, delay, row = plan.n, plan.channels, plan.epoch, plan.delay, plan.row
    seats, more, self_place, half = plan.seats, plan.feedback - 1, plan.self_place, plan.half
    wires, queues = rack.what.size, rack.held.size
    if slot < delay:
        return
    for turn in range(channels):
        c = channel_in_turn(turn, base, self_place, channels)
        p = base + c
        i = j - np.int64(plan.shift[at(p)])
        i = i + n if i < 0 else i
        if not plan.first[at(p)] <= i < plan.last[at(p)]:
            continue
        here, x, r = p == self_place, (place + c) * n + i, np.int64(plan.mirror[at(p)])
        for y in range(more):
            note = np.int64(rack.again[at(y * wires + x)])
            if note != 0:
                take_note(rack, j, r, n, seats, note, here, True)
        note = np.int64(rack.said[at(x)])
        if note != 0:
            take_note(rack, j, r, n, seats, note, here, False)
        what = rack.what[at(x)]
        if what == _ALL:
            continue
        meta = rack.about[at(x)]
        d, own, f = np.int64(meta >> _META), np.int64(what >> _63), what & _LOW
        hop, seat = 0 if d != j else 2 - own, np.int64(meta) >> OF_SEAT & SEAT_BITS
        first, second = mixed(slot, event(f, j, hop))
        sums[0] += first
        sums[1] += second
        if d == j:
            h = seat * n + (np.int64(meta) & NODE_BITS)
            arrive(plan, rack, j, np.int64(f), h, np.int64(what >> _SEQ) & SEQ_BITS, slot, acc)
            continue
        m = where(plan.place, half, n, j, d)
        q, back = m * row + j, r * row + j
        holds = np.int64(rack.held[at(q)])
        length = holds & LENGTH
        append(rack, queues, q, j, n, length, what & ~_OWN, acc)
        rack.held[at(q)] = holds + 1
        answer = service_lag(plan.late, plan.slot, epoch, m, p, r) + plan.answer_offset - 1
        rack.owed[at(back)] = OWES | seat << SEAT_SHIFT | answer << ANSWER_SHIFT | m
        waiting = np.int64(rack.waiting[at(j)]) + 1
        rack.waiting[at(j)] = waiting
        acc[MAX_QUEUE] = max(acc[MAX_QUEUE], length + 1)
        acc[MAX_NODE] = max(acc[MAX_NODE], waiting)
        acc[RELAYED] += 1
        if length >= rack.incast[at(d)] + 1 and plan.ready_queues:
            acc[OVER_BOUND] += 1
        if length >= LONGEST:
            acc[STOP] |= TOO_LONG
    in_use, room = np.int64(rack.free[at(2 * n + j)]), plan.pool
    if room - in_use < 2 * channels * (1 if plan.ready_queues else seats):
        acc[STOP] |= WANTS_POOL


@device
def take_note(rack, j, p, n, seats, note, here, repeated):
    """Node j hears when a subflow of its own over place p may send again; what is repeated may come too late."""
    seat, when = (note >> SAID_SHIFT) - 1, note & WHEN_BITS
    k = at(subflow(seat, p, j, n, seats))
    if here and rack.left[at(j)] == seat + 1:
        when = min(when + 1, LATEST)
    if (repeated or here) and rack.leave[k] == AWAY:
        return  # it is about an earlier cell than the one that waits
    rack.leave[k] = when


@device
def arrive(plan, rack, j, f, h, seq, slot, acc):
    """Deliver a cell of flow f and pair h to its end, node j; flows and pairs end."""
    acc[DELIVERED] += 1
    acc[MAX_HELD] = max(acc[MAX_HELD], reorder(rack, h, seq, plan.window))
    rack.received[at(j)] += 1
    left = rack.deliver[at(f)] - 1
    rack.deliver[at(f)] = left
    if left == 0:
        rack.finish[at(f)] = slot
        add_to(rack.tally, FINISHED, 1)
        inflow = rack.inflow[at(j)] - 1
        rack.inflow[at(j)] = inflow
        if inflow == 0:
            rack.inflow_slots[at(j)] += slot + 1 - rack.inflow_since[at(j)]
    lacks = rack.undelivered[at(h)] - 1
    rack.undelivered[at(h)] = lacks
    if lacks == 0:
        rack.rested[at(h)] = slot + plan.rest
        rack.ended[at(j)] += np.int32(1)


@device
def reorder(rack, h, seq, window):
    """Note that cell `seq` of pair h has arrived; returns how many wait for an earlier one. See `rules.reorder`."""
    early, words = rack.early, window >> 6
    got = rack.got[at(h)] + 1
    rack.got[at(h)] = got
    due = rack.want[at(h)]
    ahead = (seq - due) << 33 >> 33  # cells are numbered in 31 bits
    if ahead != 0:
        k = (due + ahead) & (window - 1)
        early[at(h * words + (k >> 6))] |= _1 << np.uint64(k & 63)
        return got - due
    due += 1
    while got > due:  # else none is early
        k = due & (window - 1)
        x = at(h * words + (k >> 6))
        word, skip = early[x], np.uint64(k & 63)
        gap = ~(word >> skip)
        run = 64 - (k & 63) if gap == 0 else min(lowest_bit(gap), 64 - (k & 63))
        if run == 0:
            break
        early[x] = word & ~(_ALL >> np.uint64(64 - run) << skip)
        due += run
        if run < 64 - (k & 63):
            break
    rack.want[at(h)] = due
    return got - due


# ---------------------------------------------------------------- now and then


@device
def rebase(plan, rack, past, first, step):
    """Count epochs of `leave` and of what is under way from `past` later: every `step`-th word from `first` on."""
    leave = rack.leave
    for k in range(first, leave.size, step):
        if FREE_NOW < leave[at(k)] < SENT:
            leave[at(k)] = max(leave[at(k)] - past, FREE_NOW)
    for words in (rack.said, rack.again):
        for k in range(first, words.size, step):
            note = np.int64(words[at(k)])
            if note != 0:
                words[at(k)] = note - min(note & WHEN_BITS, past)
