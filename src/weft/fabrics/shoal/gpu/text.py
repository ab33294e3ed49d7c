"""Shoal's rules for a device: what one node does in a slot. See `kernel` for the legend, `state` for the words.

A slot has three parts. In `begin` a node starts its flows, and changes what is its destinations'; in `send` it changes
only what is its own; in `receive` it takes in what was sent to it. Before the first, whoever has something to do there
waits until all have received; before the last, all wait until all have sent. Others go from receiving to sending at
once, while their neighbours still receive: so the wire of one slot more is kept.

The text knows neither threads nor a device. `device` compiles it for one, for a loop over nodes in any order, or not at
all, for Numba's simulator. A device waits some 700 cycles for a word that is far, and asks for the next only when it
needs none that it waits for: so what four channels will look at is asked for at once.
"""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.device import add_to, at, device, lowest_bit, set_bits, some_of, wipe
from weft.engine.fingerprint import mixed
from weft.fabrics.shoal.gpu.state import (
    AFTER, ANSWER_BITS, ANSWER_SHIFT, ARRIVED, COUNTS, DELIVER, DELIVERED, EMPTY, FINISH, FINISHED, FLOW_WORDS,
    FORWARDED, HEAD, HEAD_SHIFT, LACKS, LENGTH, LENGTHS, LENGTH_0, LENGTH_1, LENGTH_2, LENGTH_3, LOCAL, LOCAL_BIT,
    LONGEST, MAX_HELD, MAX_NODE, MAX_QUEUE, NEXT_DST, NEXT_SIZE, NODE_BITS, NONE, OF_SEAT, ORDER,
    OVER_BOUND, OWES, PACK, PAIR, PLACE_BITS, READY_BITS, READY_SHIFT, RELAYED, RELEASE, RESTED, RING, SAID_SHIFT,
    SEAT_BITS, SEAT_SHIFT, SINCE, SIZE, SOURCE_WORDS, START, STOP, TARGET_WORDS, TOO_LONG, TURN_SHIFT, VISITS,
    WANTS_POOL, WANTS_SEATS, WANTS_WINDOW, WHEN_BITS, WHOM,
)  # fmt: skip
from weft.fabrics.shoal.kernel import AWAY, LATEST, OWN, SENT
from weft.fabrics.shoal.rules import channel_in_turn, event, facing, too_young

_0, _1, _ALL = np.uint64(0), np.uint64(1), np.uint64(EMPTY)
_LOW, _OWN, _32, _63 = np.uint64(0xFFFFFFFF), np.uint64(OWN), np.uint64(32), np.uint64(63)
NEVER = 1 << 62  # later than anything
# leave, with 1 added so that nothing is negative
GONE, HAS_LEFT, NOW = AWAY + 1, SENT + 1, 0


# ---------------------------------------------------------------- words


@device
def flow_of(plan, word):
    """The flow of a cell."""
    return word & (_1 << np.uint64(plan.flow_bits)) - _1


@device
def seat_of(plan, word):
    """The seat of the pair of a cell, at its source."""
    return np.int64(word >> np.uint64(plan.flow_bits + plan.source_bits)) & (1 << plan.seat_bits) - 1


@device
def end_of(plan, word):
    """The destination of a cell."""
    shift = plan.flow_bits + plan.source_bits + plan.seat_bits
    return np.int64(word >> np.uint64(shift)) & (1 << plan.node_bits) - 1


@device
def seq_of(plan, word):
    """The number of a cell, as far as its word says it."""
    shift = plan.flow_bits + plan.source_bits + plan.seat_bits + plan.node_bits
    return np.int64(word >> np.uint64(shift)) & (1 << plan.seq_bits) - 1


@device
def pair_of(plan, rack, word):
    """The pair of a cell."""
    if plan.source_bits > 0:
        source = np.int64(word >> np.uint64(plan.flow_bits)) & (1 << plan.source_bits) - 1
        return seat_of(plan, word) * plan.n + source
    whose = np.int64(rack.flows[at(np.int64(flow_of(plan, word)) * FLOW_WORDS, PAIR)])
    return (whose >> OF_SEAT) * plan.n + (whose & NODE_BITS)


@device
def own_cell(plan, f, i, seat, d, number):
    """A cell of flow f that its source i has released."""
    source = i if plan.source_bits > 0 else 0
    word = ((number & (1 << plan.seq_bits) - 1) << plan.node_bits | d) << plan.seat_bits | seat
    return _OWN | np.uint64(word << plan.source_bits | source) << np.uint64(plan.flow_bits) | np.uint64(f)


@device
def subflow(plan, seat, p, i):
    """Where `leave` has the subflow of that seat of i over place p."""
    return (((p // PACK) * plan.seats + seat) * plan.n + i) * PACK + p % PACK


@device
def nth_bit(word, k):
    """Index of the set bit of a word that has k set bits below it."""
    low = set_bits(word & _LOW)
    where, part = (np.int64(32), np.uint32(word >> _32)) if k >= low else (np.int64(0), np.uint32(word & _LOW))
    k = k - low if k >= low else k
    for step in (16, 8, 4, 2, 1):
        below = set_bits(np.uint64(part & np.uint32((1 << step) - 1)))
        if k >= below:
            k, where, part = k - below, where + step, np.uint32(part >> np.uint32(step))
    return where


# ---------------------------------------------------------------- queues


@device
def append(plan, rack, q, i, length, head, what, acc):
    """Put a cell behind the `length` cells of queue q, a queue of node i."""
    if length < RING:
        rack.u64[at(plan.cells, (head + length & RING - 1) * plan.queues + q)] = what
        return
    u32, n = rack.u32, plan.n
    number = np.int64(u32[at(plan.free, i)])
    if number != NONE:
        u32[at(plan.free, i)] = u32[at(plan.after_pool, number * n + i)]
    else:
        number = np.int64(u32[at(plan.free, n + i)])
        u32[at(plan.free, n + i)] = number + 1
    in_use = np.int64(u32[at(plan.free, 2 * n + i)]) + 1
    u32[at(plan.free, 2 * n + i)] = in_use
    if plan.room - in_use < 4 * plan.channels * (1 if plan.ready_queues else plan.seats):  # two slots more
        acc[STOP] |= WANTS_POOL
    rack.u64[at(plan.pool, number * n + i)] = what
    ends = np.int64(u32[at(plan.spill, q)])
    if length == RING:
        u32[at(plan.spill, q)] = number | number << 16
    else:
        u32[at(plan.after_pool, (ends >> 16) * n + i)] = number
        u32[at(plan.spill, q)] = (ends & NONE) | number << 16


@device
def move_up(plan, rack, q, i, head):
    """Take the first cell that lies in the pool into the ring, whose first has just gone: queue q of node i."""
    u32, n = rack.u32, plan.n
    ends = np.int64(u32[at(plan.spill, q)])
    number = ends & NONE
    rack.u64[at(plan.cells, head * plan.queues + q)] = rack.u64[at(plan.pool, number * n + i)]
    u32[at(plan.spill, q)] = (ends & ~NONE) | np.int64(u32[at(plan.after_pool, number * n + i)]) & NONE
    u32[at(plan.after_pool, number * n + i)] = u32[at(plan.free, i)]
    u32[at(plan.free, i)] = number
    u32[at(plan.free, 2 * n + i)] -= np.uint32(1)


# ---------------------------------------------------------------- the first half: flows start, nodes send


@device
def find_seat(plan, rack, i, d, slot):
    """(seat of the living pair from i to d, or -1; the first seat that is vacant), after looking who has rested."""
    n, u64, found, vacant = plan.n, rack.u64, np.int64(-1), np.int64(-1)
    for x in range(plan.seats // 64):
        word = u64[at(plan.used, x * n + i)]
        todo, kept = word, word
        while todo != 0:  # four at a time: a device waits for the first, and the others come with it
            a, todo = lowest_bit(todo), todo & todo - _1
            b, todo = lowest_bit(todo) if todo != 0 else a, todo & todo - _1 if todo != 0 else todo
            c, todo = lowest_bit(todo) if todo != 0 else b, todo & todo - _1 if todo != 0 else todo
            k, todo = lowest_bit(todo) if todo != 0 else c, todo & todo - _1 if todo != 0 else todo
            first = x * 64 * n + i
            to_a, by_a = whom_and_when(plan, rack, first + a * n)
            to_b, by_b = whom_and_when(plan, rack, first + b * n)
            to_c, by_c = whom_and_when(plan, rack, first + c * n)
            to_k, by_k = whom_and_when(plan, rack, first + k * n)
            found = x * 64 + a if to_a == d and by_a == NEVER else found
            found = x * 64 + b if to_b == d and by_b == NEVER else found
            found = x * 64 + c if to_c == d and by_c == NEVER else found
            found = x * 64 + k if to_k == d and by_k == NEVER else found
            kept &= ~(_1 << np.uint64(a)) if by_a <= slot else _ALL
            kept &= ~(_1 << np.uint64(b)) if by_b <= slot else _ALL
            kept &= ~(_1 << np.uint64(c)) if by_c <= slot else _ALL
            kept &= ~(_1 << np.uint64(k)) if by_k <= slot else _ALL
        if kept != word:
            u64[at(plan.used, x * n + i)] = kept
        if vacant < 0 and kept != _ALL:
            vacant = x * 64 + lowest_bit(~kept)
    return found, vacant


@device
def whom_and_when(plan, rack, h):
    """(destination of pair h, slot from which its seat may be taken)."""
    return (
        np.int64(rack.u64[at(plan.pairs, h * SOURCE_WORDS + WHOM)] >> _32),
        np.int64(rack.u64[at(plan.ends, h * TARGET_WORDS + RESTED)]),
    )


@device
def moment(rack, x):
    """The slot in which the x-th flow by source starts."""
    k = x * FLOW_WORDS + START
    return np.int64(rack.flows[at(k, 0)]) | np.int64(rack.flows[at(k, 1)]) << 32


@device
def has_to_begin(plan, rack, i, slot):
    """Whether node i changes in `begin` what others look at: a flow of its own starts, or a pair towards it ended."""
    return rack.near32[at(plan.ended, i)] != 0 or np.int64(rack.near64[at(plan.due, i)]) <= slot


@device
def begin(plan, rack, i, mine, slot, acc):
    """Let node i say which pairs towards it have ended, and start every flow whose slot has come.

    mine: whether there is such a node: on a device, all threads of a warp come here together.
    """
    due = False
    if mine:
        ended = np.int64(rack.near32[at(plan.ended, i)])
        if ended > 0:
            add_to(rack.u32, at(plan.incast, i), np.uint32(-ended))
            rack.near32[at(plan.ended, i)] = 0
        due = np.int64(rack.near64[at(plan.due, i)]) <= slot
    step, fours = plan.seats * plan.n, (plan.epoch * plan.channels + PACK - 1) // PACK
    while some_of(due):
        seat = start_flow(plan, rack, i, slot, acc) if due else np.int64(-1)
        wipe(rack.leave4, seat * plan.n + i, step, fours, seat >= 0)  # NOW: the seat may have been another's
        due = due and np.int64(rack.near64[at(plan.due, i)]) <= slot


@device
def start_flow(plan, rack, i, slot, acc):
    """Start the next flow of node i; returns the seat of its pair if that is new, else -1."""
    n, seats, u32, u64, flows, near64 = plan.n, plan.seats, rack.u32, rack.u64, rack.flows, rack.near64
    x = np.int64(u32[at(plan.upcoming, i)])
    f, d, cells = (
        np.int64(flows[at(x * FLOW_WORDS, ORDER)]),
        np.int64(flows[at(x * FLOW_WORDS, NEXT_DST)]),
        np.int64(flows[at(x * FLOW_WORDS, NEXT_SIZE)]),
    )
    x += 1
    following = np.int64(NEVER)
    if x < np.int64(u32[at(plan.until, i + 1)]):
        following = moment(rack, x)
    seat, vacant = find_seat(plan, rack, i, d, slot)
    new = np.int64(-1)
    if seat < 0:
        seat, new = vacant, vacant
        h = seat * n + i
        u64[at(plan.used, (seat >> 6) * n + i)] |= _1 << np.uint64(seat & 63)
        s, r = plan.pairs + h * SOURCE_WORDS, plan.ends + h * TARGET_WORDS
        u64[at(s, COUNTS)], u64[at(s, WHOM)] = _0, np.uint64(d << 32)
        u64[at(r, ARRIVED)], u64[at(r, LACKS)], u64[at(r, RESTED)] = _0, _0, np.uint64(NEVER)
        add_to(u32, at(plan.incast, d), np.uint32(1))
    h = seat * n + i
    s, r = plan.pairs + h * SOURCE_WORDS, plan.ends + h * TARGET_WORDS
    flows[at(f * FLOW_WORDS, RELEASE)], flows[at(f * FLOW_WORDS, DELIVER)] = cells, cells
    flows[at(f * FLOW_WORDS, PAIR)] = seat << OF_SEAT | i
    whom = u64[at(s, WHOM)]
    if whom & _LOW == 0:  # nothing left to release: it becomes busy now
        near64[at(plan.able, (seat >> 6) * n + i)] |= _1 << np.uint64(seat & 63)
        u64[at(s, SINCE)] = np.uint64(slot)
        flows[at(f * FLOW_WORDS, AFTER)] = f
        u64[at(s, WHOM)] = whom | np.uint64(f + 1)
        u64[at(s, HEAD)] = np.uint64(cells << 32 | f)
    else:
        join(plan, rack, s, f, cells)
    u64[at(r, LACKS)] += np.uint64(cells)
    if u32[at(plan.inflow, d)] == 0:
        u64[at(plan.inflow_since, d)] = np.uint64(slot)
    add_to(u32, at(plan.inflow, d), np.uint32(1))
    u32[at(plan.upcoming, i)] = x
    near64[at(plan.due, i)] = np.uint64(following)
    vacant = 0
    for g in range(seats // 64):
        vacant += 64 - set_bits(u64[at(plan.used, g * n + i)])
    if vacant < 2 * plan.reserve:  # those of two slots more
        acc[STOP] |= WANTS_SEATS
    return new


@device
def join(plan, rack, s, f, cells):
    """Add flow f to the circle of a pair that has flows, whose words begin at s; see `rules.join`."""
    u64, flows = rack.u64, rack.flows
    whom, head = u64[at(s, WHOM)], u64[at(s, HEAD)]
    served, following = np.int64(whom & _LOW) - 1, np.int64(head & _LOW)
    flows[at(following * FLOW_WORDS, RELEASE)] = head >> _32
    k = served
    if plan.shortest:
        x = np.int64(flows[at(k * FLOW_WORDS, AFTER)])
        while x != served and np.int64(flows[at(x * FLOW_WORDS, SIZE)]) <= cells:
            k = x
            x = np.int64(flows[at(k * FLOW_WORDS, AFTER)])
        if np.int64(flows[at(x * FLOW_WORDS, SIZE)]) <= cells:
            k = served
            served = f
    else:
        served = f
    flows[at(f * FLOW_WORDS, AFTER)] = flows[at(k * FLOW_WORDS, AFTER)]
    flows[at(k * FLOW_WORDS, AFTER)] = f
    follow(rack, s, whom, served)


@device
def follow(rack, s, whom, served):
    """The flow behind `served` is the one whose turn it is."""
    u64, flows = rack.u64, rack.flows
    f = np.int64(flows[at(served * FLOW_WORDS, AFTER)])
    u64[at(s, WHOM)] = whom & ~_LOW | np.uint64(served + 1)
    u64[at(s, HEAD)] = np.uint64(np.int64(flows[at(f * FLOW_WORDS, RELEASE)]) << 32 | f)


@device
def next_flow(plan, rack, s):
    """Take a cell of a pair from the flow whose turn it is, see `rules.next_flow`; (the flow, whether any is left)."""
    u64, flows = rack.u64, rack.flows
    whom, head = u64[at(s, WHOM)], u64[at(s, HEAD)]
    before, f, left = np.int64(whom & _LOW) - 1, np.int64(head & _LOW), np.int64(head >> _32) - 1
    some = True
    if left == 0:
        flows[at(f * FLOW_WORDS, RELEASE)] = 0
        if f == before:
            u64[at(s, WHOM)] = whom & ~_LOW
            some = False
        else:
            flows[at(before * FLOW_WORDS, AFTER)] = flows[at(f * FLOW_WORDS, AFTER)]
            follow(rack, s, whom, before)
    elif f == before or plan.shortest:  # it is the next again
        u64[at(s, HEAD)] = np.uint64(left << 32 | f)
    else:
        flows[at(f * FLOW_WORDS, RELEASE)] = left
        follow(rack, s, whom, f)
    return f, some


@device
def may_send(plan, rack, i, p, group, limit):
    """Seats of i from 64 * group on with cells left that may send in place p: eq. (2)."""
    n, leave = plan.n, rack.leave
    todo, who = rack.near64[at(plan.able, group * n + i)], _0
    row = ((p // PACK) * plan.seats + group * 64) * n + i
    while todo != 0:
        k = lowest_bit(todo)
        todo &= todo - _1
        if leave[at((row + k * n) * PACK, p % PACK)] <= limit + 1:
            who |= _1 << np.uint64(k)
    return who


@device
def scan(plan, rack, i, p, could, low, high):
    """Which of the seats that are set in `could` may send on each of four channels from place p on: eq. (2).

    Four words; bit k stands for the k-th of those seats. low, high: four numbers of 16 bits, each 1 + its limit + 2^15;
    what is compared with them is 1 + a time, 2^15 at most, so nothing is borrowed and bit 15 of a difference tells.
    """
    n = plan.n
    first, skip = (p // PACK) * plan.seats * n + i, np.uint64(16 * (p % PACK))
    a, b, c, d, todo, done = _0, _0, _0, _0, could, np.int64(0)
    never = np.uint64(0x8000800080008000)
    while todo != 0:
        m01, m23, k = np.uint32(0), np.uint32(0), np.int64(0)
        while todo != 0 and k < 16:  # four at a time: a device waits for the first, and the others come with it
            w0 = rack.leave4[at(first, lowest_bit(todo) * n)]
            w1, w2, w3 = never, never, never
            todo &= todo - _1
            if todo != 0:
                w1 = rack.leave4[at(first, lowest_bit(todo) * n)]
                todo &= todo - _1
            if todo != 0:
                w2 = rack.leave4[at(first, lowest_bit(todo) * n)]
                todo &= todo - _1
            if todo != 0:
                w3 = rack.leave4[at(first, lowest_bit(todo) * n)]
                todo &= todo - _1
            if plan.channels % PACK != 0:
                w0, w1, w2, w3 = w0 >> skip, w1 >> skip, w2 >> skip, w3 >> skip
            m01 = beside(beside(beside(beside(m01, low, w0), low, w1), low, w2), low, w3)
            m23 = beside(
                beside(beside(beside(m23, high, w0 >> _32), high, w1 >> _32), high, w2 >> _32), high, w3 >> _32
            )
            k += 4
        m01, m23 = np.uint32(m01 >> np.uint32(16 - k)), np.uint32(m23 >> np.uint32(16 - k))
        move = np.uint64(done)
        a, b = a | np.uint64(m01 & np.uint32(0xFFFF)) << move, b | np.uint64(m01 >> np.uint32(16)) << move
        c, d = c | np.uint64(m23 & np.uint32(0xFFFF)) << move, d | np.uint64(m23 >> np.uint32(16)) << move
        done += 16
    return a, b, c, d


@device
def beside(bits, limits, word):
    """Put the two bits of a comparison before those of the comparisons before."""
    return np.uint32(bits >> np.uint32(1) & np.uint32(0x7FFF7FFF)) | np.uint32(
        np.uint32(limits - np.uint32(word)) & np.uint32(0x80008000)
    )


@device
def limit_of(e, holds):
    """What a channel is compared with in `scan`."""
    return min(e + (np.int64(holds) & LENGTH), LATEST) + 1 + 0x8000


@device
def release(plan, rack, i, p, seat, acc):
    """Let the pair in that seat of i release a cell for place p; returns the cell."""
    u64, n = rack.u64, plan.n
    h = seat * n + i
    s = plan.pairs + h * SOURCE_WORDS
    counts = u64[at(s, COUNTS)]
    number, seen = np.int64(counts & _LOW), np.int64(counts >> _32)
    d = np.int64(u64[at(s, WHOM)] >> _32)
    f, some = next_flow(plan, rack, s)
    if number - seen >= plan.window - 4 * plan.channels:
        seen = np.int64(u64[at(plan.ends, h * TARGET_WORDS + ARRIVED)] & _LOW)
        if number - seen >= plan.window - 4 * plan.channels:
            acc[STOP] |= WANTS_WINDOW
    u64[at(s, COUNTS)] = np.uint64(seen << 32 | number + 1)
    rack.leave[at(subflow(plan, seat, p, i), 0)] = GONE
    if not some:
        rack.near64[at(plan.able, (seat >> 6) * n + i)] &= ~(_1 << np.uint64(seat & 63))
    return own_cell(plan, f, i, seat, d, number)


@device
def age_of(plan, rack, i, seat, slot):
    """For how many slots the pair in that seat of i has been busy."""
    return slot - np.int64(rack.u64[at(plan.pairs, (seat * plan.n + i) * SOURCE_WORDS + SINCE)])


@device
def let_one_go(plan, rack, i, p, slot, holds, could, who, acc):
    """Let node i release a cell for place p, in turn: (the cell, or none; its seat; its bit in `who`).

    could, who: as in `scan`.
    """
    length, turn, interval = holds & LENGTH, holds >> TURN_SHIFT, plan.age_interval
    turn = turn if turn < plan.seats else 0
    rank, todo = np.uint64(set_bits(could & (_1 << np.uint64(turn)) - _1)), who
    seat, bit = np.int64(0), _0
    while todo != 0:  # who releases is settled here, and the cell released below, by all threads at once
        behind = todo & _ALL << rank
        k = lowest_bit(behind if behind != 0 else todo)
        seat, bit = nth_bit(could, k), _1 << np.uint64(k)
        todo &= ~bit
        if length <= 1 or not too_young(length, age_of(plan, rack, i, seat, slot), plan.aged * interval, interval):
            todo = _0
        else:
            bit = _0
    if bit == 0:
        return _ALL, seat, bit
    return release(plan, rack, i, p, seat, acc), seat, bit


@device
def let_go(plan, rack, i, p, q, slot, e, holds, acc):
    """Let node i release cells to the end of queue q, in turn; returns what the queue holds then."""
    seats, interval, ready_queues = plan.seats, plan.age_interval, plan.ready_queues
    length, turn, head = holds & LENGTH, holds >> TURN_SHIFT, holds >> HEAD_SHIFT & RING - 1
    limit = min(e + length, LATEST) if ready_queues else np.int64(LATEST)
    groups, released = seats >> 6, np.int64(0)
    turn = turn if turn < seats else 0
    group, spin = turn >> 6, np.uint64(turn & 63)
    for step in range(groups + 1):  # the group of the turn comes twice: its end first, its beginning last
        now = may_send(plan, rack, i, p, group, limit)
        if step == 0:
            now &= _ALL << spin
        elif step == groups:
            now &= ~(_ALL << spin)
        while now != 0:
            seat = (group << 6) + lowest_bit(now)
            now &= now - _1
            seen = length
            if not ready_queues:
                seen += released
                if rack.leave[at(subflow(plan, seat, p, i), 0)] > e + seen + 1:
                    continue
            if too_young(seen, age_of(plan, rack, i, seat, slot), plan.aged * interval, interval):
                continue
            append(plan, rack, q, i, length + released, head, release(plan, rack, i, p, seat, acc), acc)
            released += 1
            turn = seat + 1
            if ready_queues:
                break
        if ready_queues and released > 0:
            break
        group = group + 1 if group + 1 < groups else 0
    if released > 0:
        note_waiting(plan, rack, i, released, length + released, acc)
        holds = (holds & ((1 << TURN_SHIFT) - 1)) + released - ((1 << READY_SHIFT) if ready_queues else 0)
        holds |= LOCAL_BIT | turn << TURN_SHIFT
    return holds


@device
def note_waiting(plan, rack, i, more, length, acc):
    """Note that so many cells more wait at node i, and that a queue has this length."""
    waiting = np.int64(rack.near32[at(plan.waiting, i)]) + more
    rack.near32[at(plan.waiting, i)] = waiting
    acc[MAX_QUEUE] = max(acc[MAX_QUEUE], length)
    acc[MAX_NODE] = max(acc[MAX_NODE], waiting)


@device
def ahead_in(plan, rack, debt, i):
    """Cells and flows before one that comes to the queue which a feedback that node i owes is about."""
    there = np.int64(rack.u32[at(plan.held, (np.int64(debt) & PLACE_BITS) * plan.row + i)])  # whether or not it owes
    return np.uint32((there & LENGTH) + (there >> READY_SHIFT & READY_BITS))


@device
def report(plan, rack, debt, ahead, i, base, now):
    """What node i says of a feedback that it owes: 1 + the seat, and the epoch from which it may send again.

    ahead: what `ahead_in` said before the slot; queues of the slot, from place `base` on, have changed since.
    """
    if debt == 0:
        return np.int64(0)
    if base <= debt & PLACE_BITS < base + plan.channels:
        ahead = ahead_in(plan, rack, debt, i)
    when = max(min(now + np.int64(ahead) + (debt >> ANSWER_SHIFT & ANSWER_BITS), LATEST), 0)
    return ((debt >> SEAT_SHIFT & SEAT_BITS) + 1) << SAID_SHIFT | when


@device
def first_cell(plan, rack, q, holds):
    """The first cell of queue q; of no meaning if it has none."""
    return rack.u64[at(plan.cells, (np.int64(holds) >> HEAD_SHIFT & RING - 1) * plan.queues + q)]


@device
def lit(plan, p, i):
    """Whether node i sends in place p."""
    return p < plan.all_lit or plan.tables[at(plan.first, p)] <= i < plan.tables[at(plan.last, p)]


@device
def any_able(plan, rack, i):
    """Whether node i has a pair with cells left to release."""
    active = False
    for g in range(plan.seats >> 6):
        active |= rack.near64[at(plan.able, g * plan.n + i)] != 0
    return active


@device
def send(plan, rack, i, slot, e, base, place, acc):
    """Let node i work through its channels: what it sends goes onto the wire.

    e: the epoch, from BASE on; base: the first place of the slot; place: where the wire of this slot begins.
    """
    for c in range(0, plan.channels, 4):
        send_four(plan, rack, i, slot, e, base, base + c, place + c, min(plan.channels - c, 4), acc)


@device
def send_four(plan, rack, i, slot, e, base, p, place, many, acc):
    """Let node i work through up to four channels, from place p on."""
    u32, more = rack.u32, plan.feedback - 1
    q0 = at(p * plan.row, i)
    q1 = at(q0, (plan.row if many > 1 else 0))
    q2 = at(q0, (2 * plan.row if many > 2 else 0))
    q3 = at(q0, (3 * plan.row if many > 3 else 0))
    h0, h1, h2, h3 = u32[at(plan.held, q0)], u32[at(plan.held, q1)], u32[at(plan.held, q2)], u32[at(plan.held, q3)]
    d0, d1, d2, d3 = u32[at(plan.owed, q0)], u32[at(plan.owed, q1)], u32[at(plan.owed, q2)], u32[at(plan.owed, q3)]
    none = np.uint32(0)
    g0, g1, g2, g3, s0, s1, s2, s3 = none, none, none, none, none, none, none, none
    if more > 0:
        g0, g1, g2, g3 = (
            u32[at(plan.past, q0)], u32[at(plan.past, q1)], u32[at(plan.past, q2)], u32[at(plan.past, q3)]
        )  # fmt: skip
    could, w0, w1, w2, w3 = _0, _0, _0, _0, _0
    c0, c1, c2, c3 = _0, _0, _0, _0
    if plan.quick:
        could = rack.near64[at(plan.able, i)]
    r0, r1 = ahead_in(plan, rack, d0, i), ahead_in(plan, rack, d1, i)
    r2, r3 = ahead_in(plan, rack, d2, i), ahead_in(plan, rack, d3, i)
    if more > 0:
        s0, s1 = ahead_in(plan, rack, g0, i), ahead_in(plan, rack, g1, i)
        s2, s3 = ahead_in(plan, rack, g2, i), ahead_in(plan, rack, g3, i)
    if plan.quick:
        c0, c1 = first_cell(plan, rack, q0, h0), first_cell(plan, rack, q1, h1)
        c2, c3 = first_cell(plan, rack, q2, h2), first_cell(plan, rack, q3, h3)
        low = np.uint32(limit_of(e, h0) | limit_of(e, h1) << 16)
        high = np.uint32(limit_of(e, h2) | limit_of(e, h3) << 16)
        w0, w1, w2, w3 = scan(plan, rack, i, p, could, low, high)
    now = e - plan.answer_offset
    x, q = at(place * plan.n, i), q0
    for k in range(many):
        gone = serve(plan, rack, i, slot, e, now, base, p + k, q, x, h0, d0, g0, r0, s0, could, w0, c0, acc)
        h0, h1, h2, d0, d1, d2, g0, g1, g2 = h1, h2, h3, d1, d2, d3, g1, g2, g3
        r0, r1, r2, s0, s1, s2, c0, c1, c2 = r1, r2, r3, s1, s2, s3, c1, c2, c3
        w0, w1, w2, w3 = w1 & ~gone, w2 & ~gone, w3 & ~gone, w3
        x, q = at(x, plan.n), at(q, plan.row)


@device
def say_nothing(plan, rack, x):
    """Leave the wire at x empty."""
    rack.near64[at(plan.what, x)] = _ALL
    for y in range(plan.feedback):
        rack.u32[at(plan.said, y * plan.wires + x)] = 0


@device
def serve(plan, rack, i, slot, e, now, base, p, q, x, holds, debt, before, ahead, ahead_before, could, who, first, acc):
    """Let node i send in place p; returns which of the seats of `could`, as bits of `who`, have nothing left.

    holds, debt, before, first: what lies at its queue q, and the first cell there; x: where on the wire.
    """
    n, u32, near32, near64 = plan.n, rack.u32, rack.near32, rack.near64
    holds, debt, before = np.int64(holds), np.int64(debt), np.int64(before)
    more, self_place, ready_queues, queues, gone = (
        plan.feedback - 1,
        plan.self_place,
        plan.ready_queues,
        plan.queues,
        _0,
    )
    if not lit(plan, p, i):
        say_nothing(plan, rack, x)
        return gone
    here = p == self_place
    if here:
        u32[at(plan.left, i)] = 0
    owes = (debt | before) != 0
    for y in range(1, more):
        owes |= u32[at(plan.past, y * queues + q)] != 0
    if here and more == 0:
        owes |= u32[at(plan.told, i)] != 0
    active = any_able(plan, rack, i)
    if not (active or owes or holds & (LENGTH | READY_BITS << READY_SHIFT) != 0):
        say_nothing(plan, rack, x)
        return gone
    length, found = holds & LENGTH, holds
    note_visit(rack, length, acc)

    # Who may release a cell, and does.
    holds &= ~(READY_BITS << READY_SHIFT)
    fresh = _ALL  # the cell that was released, if it is known and not yet in the queue
    if plan.quick:
        ready = set_bits(who)
        holds |= ready << READY_SHIFT
        if ready > 0 and holds & LOCAL_BIT == 0:
            fresh, seat, bit = let_one_go(plan, rack, i, p, slot, holds, could, who, acc)
            if bit != 0:
                if near64[at(plan.able, i)] >> np.uint64(seat) & _1 == 0:
                    gone = bit
                note_waiting(plan, rack, i, 1, length + 1, acc)
                holds = (holds & ((1 << TURN_SHIFT) - 1)) + 1 - (1 << READY_SHIFT)
                holds |= LOCAL_BIT | seat + 1 << TURN_SHIFT
                if length > 0:
                    append(plan, rack, q, i, length, holds >> HEAD_SHIFT & RING - 1, fresh, acc)
    elif active:
        limit, ready = min(e + length, LATEST) if ready_queues else np.int64(LATEST), np.int64(0)
        for g in range(plan.seats >> 6):
            ready += set_bits(may_send(plan, rack, i, p, g, limit))
        if ready_queues:
            holds |= ready << READY_SHIFT
        if ready > 0 and (holds & LOCAL_BIT == 0 or not ready_queues):
            holds = let_go(plan, rack, i, p, q, slot, e, holds, acc)
    if holds != found:
        u32[at(plan.held, q)] = holds
        found = holds

    # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
    if more > 0:
        if before != debt:
            u32[at(plan.past, q)] = debt
        u32[at(plan.said, plan.wires + x)] = report(plan, rack, before, ahead_before, i, base, now)
        kept = before
        for y in range(1, more):
            earlier = np.int64(u32[at(plan.past, y * queues + q)])
            if earlier != kept:
                u32[at(plan.past, y * queues + q)] = kept
            words = report(plan, rack, earlier, ahead_in(plan, rack, earlier, i), i, base, now)
            u32[at(plan.said, (y + 1) * plan.wires + x)] = words
            kept = earlier
    if debt != 0:
        u32[at(plan.owed, q)] = 0
    if here and more == 0:
        again = np.int64(u32[at(plan.told, i)])
        u32[at(plan.told, i)] = debt
        if debt == 0:
            debt, ahead = again, ahead_in(plan, rack, again, i)
    u32[at(plan.said, x)] = report(plan, rack, debt, ahead, i, base, now)

    # The cell.
    count = holds & LENGTH
    if count == 0:
        near64[at(plan.what, x)] = _ALL
        return gone
    head = holds >> HEAD_SHIFT & RING - 1
    if plan.quick:
        word = first if length > 0 else fresh
    else:
        word = rack.u64[at(plan.cells, head * queues + q)]
    if count > RING:
        move_up(plan, rack, q, i, head)
    near64[at(plan.what, x)] = word
    near32[at(plan.waiting, i)] -= np.uint32(1)
    near32[at(plan.departed, i)] += np.uint32(1)
    holds = (holds & ~((RING - 1) << HEAD_SHIFT)) - 1 | (head + 1 & RING - 1 if count > 1 else 0) << HEAD_SHIFT
    if word & _OWN != 0:
        holds &= ~LOCAL_BIT
        acc[LOCAL] += 1
        if end_of(plan, word) == facing(i, np.int64(plan.tables[at(p, 0)]), n):
            rack.leave[at(subflow(plan, seat_of(plan, word), p, i), 0)] = NOW
        elif here:
            rack.leave[at(subflow(plan, seat_of(plan, word), p, i), 0)] = HAS_LEFT
            u32[at(plan.left, i)] = seat_of(plan, word) + 1
    else:
        acc[FORWARDED] += 1
    u32[at(plan.held, q)] = holds
    return gone


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
        add_to(rack.counted, LENGTHS + min(length, 255), 1)


# ---------------------------------------------------------------- the second half: what was sent arrives


@device
def receive(plan, rack, j, slot, base, place, acc, sums):
    """Let node j take in what was sent to it `delay` slots ago: feedback, and a cell that goes on or has arrived."""
    if slot < plan.delay:
        return
    for turn in range(0, plan.channels, 4):
        receive_four(plan, rack, j, slot, base, place, turn, min(plan.channels - turn, 4), acc, sums)


@device
def peer(plan, p, j):
    """The node that sends to j in place p, or -1."""
    i = j - np.int64(plan.tables[at(p, 0)])
    i = i + plan.n if i < 0 else i
    return i if lit(plan, p, i) else np.int64(-1)


@device
def place_of(plan, j, d):
    """The place in which j sends to d, see `rules.where`."""
    return np.int64(plan.tables[at(plan.place, d - j + plan.n + (2 * plan.n if j >= plan.half else 0))])


@device
def wire(plan, p, j, start):
    """Where on the wire that begins at `start` is what node j gets in place p, or -1."""
    i = peer(plan, p, j)
    return at((start + p) * plan.n, i) if i >= 0 else np.int64(-1)


@device
def look(plan, rack, j, x):
    """What a cell on the wire at x is about: its queue if it goes on; if it has arrived, its pair, counted behind them.

    -1 if there is none.
    """
    word = rack.near64[at(plan.what, max(x, 0))]
    if x < 0 or word == _ALL:
        return np.int64(-1)
    d = end_of(plan, word)
    return place_of(plan, j, d) * plan.row + j if d != j else plan.queues + pair_of(plan, rack, word)


@device
def ask(plan, rack, about, x):
    """What lies where a cell on the wire at x goes, see `look`.

    The word of its queue; what its pair has got, and lacks; what its flow lacks; the word of `early` that has its bit.
    What it does not need is asked for as well: a device that does not ask waits no less.
    """
    word, h = rack.near64[at(plan.what, max(x, 0))], max(about - plan.queues, 0)
    f, r = np.int64(flow_of(plan, word)) if about >= plan.queues else np.int64(0), plan.ends + h * TARGET_WORDS
    k = (seq_of(plan, word) & plan.window - 1) >> 6 if about >= plan.queues else np.int64(0)
    return (
        rack.u32[at(plan.held, about if 0 <= about < plan.queues else 0)], rack.u64[at(r, ARRIVED)],
        np.uint32(rack.u64[at(r, LACKS)]), rack.flows[at(f * FLOW_WORDS, DELIVER)],
        rack.u64[at(plan.early, h * (plan.window >> 6) + k)],
    )  # fmt: skip


@device
def heard(plan, rack, x, y):
    """The y-th feedback on the wire at x, or 0."""
    return rack.u32[at(plan.said, y * plan.wires + x)] if x >= 0 and y < plan.feedback else np.uint32(0)


@device
def in_time(plan, rack, j, p, note):
    """A feedback that was sent in place p to j, or 0 if its subflow waits for news of a later cell."""
    r, seat = np.int64(plan.tables[at(plan.mirror, p)]), (np.int64(note) >> SAID_SHIFT) - 1
    gone = rack.leave[at(subflow(plan, max(seat, 0), max(r, 0), j), 0)] == GONE  # asked for in any case, as in `ask`
    return np.uint32(0) if gone else np.uint32(note)


@device
def receive_four(plan, rack, j, slot, base, place, turn, many, acc, sums):
    """Let node j take in what was sent to it on up to four channels.

    What lies where they go is asked for at once. If two of them go to one queue, or are of one pair, the second looks
    again.
    """
    p0 = base + channel_in_turn(turn, base, plan.self_place, plan.channels)
    p1 = base + channel_in_turn(turn + 1, base, plan.self_place, plan.channels) if many > 1 else p0
    p2 = base + channel_in_turn(turn + 2, base, plan.self_place, plan.channels) if many > 2 else p0
    p3 = base + channel_in_turn(turn + 3, base, plan.self_place, plan.channels) if many > 3 else p0
    start, none = place - base, np.int64(-1)
    x0, x1 = wire(plan, p0, j, start), wire(plan, p1, j, start) if many > 1 else none
    x2, x3 = wire(plan, p2, j, start) if many > 2 else none, wire(plan, p3, j, start) if many > 3 else none
    t0, t1 = heard(plan, rack, x0, 0), heard(plan, rack, x1, 0)
    t2, t3 = heard(plan, rack, x2, 0), heard(plan, rack, x3, 0)
    u0, u1 = heard(plan, rack, x0, 1), heard(plan, rack, x1, 1)
    u2, u3 = heard(plan, rack, x2, 1), heard(plan, rack, x3, 1)
    k0, k1, k2, k3 = look(plan, rack, j, x0), look(plan, rack, j, x1), look(plan, rack, j, x2), look(plan, rack, j, x3)
    v0, a0, l0, y0, b0 = ask(plan, rack, k0, x0)
    v1, a1, l1, y1, b1 = ask(plan, rack, k1, x1)
    v2, a2, l2, y2, b2 = ask(plan, rack, k2, x2)
    v3, a3, l3, y3, b3 = ask(plan, rack, k3, x3)
    if plan.feedback > 1:
        u0, u1 = in_time(plan, rack, j, p0, u0), in_time(plan, rack, j, p1, u1)
        u2, u3 = in_time(plan, rack, j, p2, u2), in_time(plan, rack, j, p3, u3)
    again = (2 if k1 == k0 else 0) | (4 if (k2 == k0) | (k2 == k1) else 0)
    again |= 8 if (k3 == k0) | (k3 == k1) | (k3 == k2) else 0
    for k in range(many):
        if again >> k & 1 != 0 and k0 >= 0:
            v0, a0, l0, y0, b0 = ask(plan, rack, k0, x0)
        if x0 >= 0:
            p = base + channel_in_turn(turn + k, base, plan.self_place, plan.channels)
            take_in(plan, rack, j, slot, p, x0, np.int64(t0), np.int64(u0), k0, np.int64(v0), a0, l0, y0, b0, acc, sums)
        x0, x1, x2, t0, t1, t2, u0, u1, u2, k0, k1, k2 = x1, x2, x3, t1, t2, t3, u1, u2, u3, k1, k2, k3
        v0, v1, v2, a0, a1, a2, l0, l1, l2 = v1, v2, v3, a1, a2, a3, l1, l2, l3
        y0, y1, y2, b0, b1, b2 = y1, y2, y3, b1, b2, b3


@device
def take_in(plan, rack, j, slot, p, x, last, before, about, holds, counts, lacks, left, early, acc, sums):
    """Let node j take in what is on the wire at x, sent in place p.

    last, before: feedback, the second unless it is too late; about: see `look`; what follows: see `ask`.
    """
    u32, row = rack.u32, plan.row
    here, r = p == plan.self_place, np.int64(plan.tables[at(plan.mirror, p)])
    if before != 0:
        take_note(plan, rack, j, r, before, here)
    for y in range(2, plan.feedback):
        note = np.int64(in_time(plan, rack, j, p, heard(plan, rack, x, y)))
        if note != 0:
            take_note(plan, rack, j, r, note, here)
    if here:
        last = np.int64(in_time(plan, rack, j, p, np.uint32(last)))
    if last != 0:
        take_note(plan, rack, j, r, last, here)
    word = rack.near64[at(plan.what, x)]
    if word == _ALL:
        return
    d, own, f = end_of(plan, word), np.int64(word >> _63), flow_of(plan, word)
    hop = 0 if d != j else 2 - own
    first, second = mixed(slot, event(f, j, hop))
    sums[0] += first
    sums[1] += second
    if d == j:
        h = about - plan.queues
        arrive(plan, rack, j, np.int64(f), h, seq_of(plan, word), slot, counts, lacks, left, early, acc)
        return
    q, m, length = about, about // row, holds & LENGTH
    append(plan, rack, q, j, length, holds >> HEAD_SHIFT & RING - 1, word & ~_OWN, acc)
    u32[at(plan.held, q)] = holds + 1
    lag = np.int64(plan.tables[at(plan.late, m // plan.channels - p // plan.channels + plan.epoch)]) + np.int64(m < r)
    answer = lag + plan.answer_offset - 1
    u32[at(plan.owed, r * row + j)] = OWES | seat_of(plan, word) << SEAT_SHIFT | answer << ANSWER_SHIFT | m
    note_waiting(plan, rack, j, 1, length + 1, acc)
    acc[RELAYED] += 1
    if length > 0 and plan.ready_queues and length >= np.int64(u32[at(plan.incast, d)]) + 1:
        acc[OVER_BOUND] += 1
    if length >= min(LONGEST, LENGTH - 7 - 2 * plan.channels):
        acc[STOP] |= TOO_LONG


@device
def take_note(plan, rack, j, p, note, here):
    """Node j hears when a subflow of its own over place p may send again."""
    seat, when = (note >> SAID_SHIFT) - 1, note & WHEN_BITS
    k = at(subflow(plan, seat, p, j), 0)
    if here and rack.u32[at(plan.left, j)] == seat + 1:
        when = min(when + 1, LATEST)
    rack.leave[k] = when + 1


@device
def arrive(plan, rack, j, f, h, seq, slot, counts, lacks, left, word, acc):
    """Deliver a cell of flow f and pair h to its end, node j; flows and pairs end.

    counts, lacks, left, word: see `ask`.
    """
    u64, flows, near32, r = rack.u64, rack.flows, rack.near32, plan.ends + h * TARGET_WORDS
    lacks, left = np.uint32(lacks - np.uint32(1)), np.uint32(left - np.uint32(1))
    acc[DELIVERED] += 1
    acc[MAX_HELD] = max(acc[MAX_HELD], reorder(plan, rack, h, r, seq, counts, word))
    near32[at(plan.received, j)] += np.uint32(1)
    flows[at(f * FLOW_WORDS, DELIVER)] = left
    u64[at(r, LACKS)] = np.uint64(lacks)
    if left == 0:
        flows[at(f * FLOW_WORDS, FINISH)], flows[at(f * FLOW_WORDS, FINISH + 1)] = slot, slot >> 32
        add_to(rack.counted, FINISHED, 1)
        inflow = rack.u32[at(plan.inflow, j)] - np.uint32(1)
        rack.u32[at(plan.inflow, j)] = inflow
        if inflow == 0:
            since = u64[at(plan.inflow_since, j)]
            u64[at(plan.inflow_slots, j)] += np.uint64(slot + 1) - since
    if lacks == 0:
        u64[at(r, RESTED)] = np.uint64(slot + plan.rest)
        near32[at(plan.ended, j)] += np.uint32(1)


@device
def reorder(plan, rack, h, r, seq, counts, word):
    """Note that cell `seq` of pair h has arrived; returns how many wait for an earlier one. See `rules.reorder`.

    word: that of `early` in which the cell has its bit.
    """
    u64, words, window = rack.u64, plan.window >> 6, plan.window
    due, got = np.int64(counts & _LOW), np.int64(counts >> _32) + 1
    ahead = seq - due & (1 << plan.seq_bits) - 1
    if ahead != 0:
        k = seq & window - 1
        u64[at(plan.early, h * words + (k >> 6))] = word | _1 << np.uint64(k & 63)
        u64[at(r, ARRIVED)] = np.uint64(got << 32 | due)
        return got - due
    due += 1
    while got > due:  # else none is early
        k = due & window - 1
        x = at(plan.early, h * words + (k >> 6))
        if k & 63 == 0:  # else it is the word of the cell itself
            word = u64[x]
        skip = np.uint64(k & 63)
        gap = ~(word >> skip)
        run = 64 - (k & 63) if gap == 0 else min(lowest_bit(gap), 64 - (k & 63))
        if run == 0:
            break
        u64[x] = word & ~(_ALL >> np.uint64(64 - run) << skip)
        due += run
        if run < 64 - (k & 63):
            break
    u64[at(r, ARRIVED)] = np.uint64(got << 32 | due)
    return got - due


# ---------------------------------------------------------------- now and then


@device
def rebase(plan, rack, past, first, step):
    """Count epochs of `leave` and of what is under way from `past` later: every `step`-th word from `first` on."""
    leave = rack.leave
    for k in range(first, leave.size, step):
        when = np.int64(leave[at(k, 0)])
        if NOW < when < HAS_LEFT:
            leave[at(k, 0)] = max(when - past, NOW)
    for k in range(first, plan.feedback * plan.wires, step):
        note = np.int64(rack.u32[at(plan.said, k)])
        if note != 0:
            rack.u32[at(plan.said, k)] = note - min(note & WHEN_BITS, past)
