"""Shoal's fast kernel, slot by slot: flows start, every node sends on each channel, what has travelled arrives (§3.3).

The legend: i sender, j receiver, d final destination, f application flow, h pair (the paper's flow), p place in the
epoch (see `schedule.rotation`), c channel, q = p * row + i the link of node i in place p, row a multiple of 64.

Backpressure is lazy. For each subflow we keep the epoch from which a cell may *leave* the source: eq. (2) then reads
`epoch + length >= leave`, and nothing is counted down. How `leave` follows from a feedback is in `notes.md`.

A node's pairs sit in blocks of 8 seats, h = block * 8 + seat, and the `leave` of the 8 on one link stand side by
side: one comparison of a vector says who may send. Epochs are counted from `BASE`, so that 16 bits hold them. The
first few cells of a queue are inside its own cache line; only a longer queue goes on in a list. Links lie at [p, i]
and a slot walks them in order.

A busy rack waits for memory and for mispredicted branches as much as it computes. So a slot is a row of short loops,
each over a list that the one before has made; where a branch would be unpredictable (is there a cell, does it stay)
both sides are computed, or cells are sorted into lists; and cache lines are prefetched. `notes.md` says what each of
these is worth.
"""

from typing import NamedTuple  # noqa: I001 (names in a block, not a column)

import numpy as np

from weft.engine.bits import at_most, either, lowest, population, prefetch
from weft.engine.fingerprint import mixed
from weft.engine.jit import apart, bare, inlined, part, rare
from weft.engine.reference import by_reference
from weft.fabrics.shoal.columns import (
    ACTIVE, AGE_INTERVAL, AGED, ANSWER_OFFSET, ASTRAY, BASE, CHANNELS, DELAY, DELIVER, DELIVERED, DEPTH, DONE, EPOCH,
    FEEDBACK, FINISHED, FLYING, FORWARDED, FREE, HALF, IDLE, LANDED, LITERAL, LIVE, LOCAL, MAX_HELD, MAX_NODE,
    MAX_QUEUE, MAY_MEET, MORE_CELLS, MORE_PAIRS, MORE_WINDOW, N, NEXT, OVER_BOUND, OVER_SUBFLOW, OWING, PAIRS_USED,
    PAPER, REACHED, READY_QUEUES, RELAYED, RELEASE, REST_HEAD, REST_TAIL, ROW, RULES, SELF, SEQ, SERVED, SHORTEST,
    SINCE, SLOT, SLOTS, SOURCE, SPENT, STRIDE, VISITS, WANT, has_default_rules,
)  # fmt: skip
from weft.fabrics.shoal.plain.sets import has
from weft.fabrics.shoal.rules import (
    at, begin_flow, bound, channel_in_turn, deliver, due_flow, end_pair, event, facing, has_started, may_leave,
    next_flow, next_start, reorder, rested_by, service_lag, too_young, where, window,
)  # fmt: skip

SEATS, BLOCK, SEAT = 8, 3, 7  # pairs in a block: pair h has seat h & SEAT of block h >> BLOCK
AWAY = 32767  # leave: a cell waits at the source, or (except on self-mirrored links) nothing was heard of it yet
SENT = AWAY - 1  # leave, on a self-mirrored link: the cell has left and nothing was heard of it yet
LATEST = AWAY - 2  # leave, as a time: a feedback that says more (some 28,000 cells ahead) is cut to it
FREE_NOW = -1  # leave: nothing is known, or nothing has to be waited for
REBASE = 4096  # epochs after which they are counted anew

# What a queue holds, in one word: cells, if one of them is local, flows that are ready, where its ring begins.
LENGTH, LOCAL_BIT, READY_SHIFT, READY_BITS, HEAD_SHIFT = 0x7FFF, 1 << 15, 16, 0x3FFF, 30
# A feedback owed, in one word: where `leave` has its subflow, what is known of its answer, the queue it is about.
ANSWER_SHIFT, ANSWER_BITS, WHERE_SHIFT = 32, 0x3, 34
SUBFLOWS, QUEUES = 1 << 32, 1 << 30  # there must be fewer
ARRIVED = 1  # the answer, if the rules are not the paper's: there is no queue
# A cell, in one word: its flow, its number in the pair, and OWN on its first hop.
FLOW_BITS, SEQ_SHIFT, SEQ_BITS, OWN = 0xFFFFFFFF, 32, 0x7FFFFFFF, 1 << 63


@inlined
def options(plan):
    """RULES, READY_QUEUES, SHORTEST and DEPTH of a plan."""
    numbers = plan.numbers
    if has_default_rules(plan):
        return PAPER, 1, 0, 4
    return numbers[RULES], numbers[READY_QUEUES], numbers[SHORTEST], numbers[DEPTH]


class FastState(NamedTuple):
    """What a slot may change. m pairs at most, r cells at most, b words of 64 nodes, a = delay + 1.

    Of the values of feedback in a cell the first is about the last cell received and v more about those before it.
    """

    held: np.ndarray  # (w * row,) uint32   [q]     what the queue holds, see above
    owed: np.ndarray  # (w * row,) uint64   [q]     feedback that is owed to the peer, see above; 0 for none
    past: np.ndarray  # (w * row * v,) uint64 [q]   what was owed at its last turns, to be said again, newest first
    turn: np.ndarray  # (w * row,) uint16   [q]     seat at which the round robin goes on
    ring: np.ndarray  # (w * row * DEPTH,) uint64   the first cells of a queue
    spill: np.ndarray  # (2 * w * row,) uint32      the first and last of the rest of it, as numbers of `cell`
    told: np.ndarray  # (n,) uint64         [i]     feedback that was given an epoch ago on the self-mirrored link
    left: np.ndarray  # (n,) uint32         [i]     pair of the own cell that left on the self-mirrored link now
    busy: np.ndarray  # (w * b,) uint64     [p]     nodes with a cell to send, feedback to give or a count to mend in p
    active: np.ndarray  # (b,) uint64              nodes with cells left to release
    seats: np.ndarray  # (n * 4,) uint32    [i]     see the names below
    block: np.ndarray  # (n, x) uint32      [i, x]  the blocks of i
    able: np.ndarray  # (x / 8 * n,) uint64 [x, i]  seats whose pair has cells left to release, eight blocks to a word
    taken: np.ndarray  # (m / 8,) uint64    [b]     seats that are taken
    order: np.ndarray  # (m / 8,) uint32    [b]     which block of its node it is
    idle: np.ndarray  # (m / 8,) uint32            blocks that belong to nobody any more, a stack
    living: np.ndarray  # (n,) uint32       [i]     1 + first of i's pairs that have undelivered cells
    leave: np.ndarray  # (m * STRIDE,) int16  [b, p, seat]  epoch from which the next cell of the subflow may leave
    pair: np.ndarray  # (m, 8) int64       [h]     see `columns`
    target: np.ndarray  # (m,) uint32       [h]     destination
    early: np.ndarray  # (m, x) uint64     [h]     which of the 64x cells after WANT have arrived, as a ring of bits
    rest: np.ndarray  # (m,) int64                 pairs that have ended, in that order; a ring
    rested: np.ndarray  # (m,) int64               slot from which the seat may be taken: no feedback is under way
    cell: np.ndarray  # (r,) uint64
    link: np.ndarray  # (r,) uint32                 the next in its queue
    free: np.ndarray  # (r,) uint32                 cells not in use, a stack
    sent: np.ndarray  # (a, c, n * 4) uint64        what was sent, by slot modulo a, in order; see the names below
    air: np.ndarray  # (a, c) int64                how many sent anything
    again: np.ndarray  # (a, c, n * v) uint64       feedback that was given again, by slot modulo a: as ABOUT in `sent`
    echoes: np.ndarray  # (a, c) int64              how many of those there are
    flow: np.ndarray  # (flows, 4) int64   [f]     see `columns`
    whose: np.ndarray  # (flows,) uint32   [f]     its pair
    incast: np.ndarray  # (n,) int32       [j]     living pairs towards j
    outcast: np.ndarray  # (n,) int32      [i]     living pairs from i
    waiting: np.ndarray  # (n,) int64      [i]     cells in i's queues
    inflow: np.ndarray  # (n,) int32       [j]     unfinished application flows towards j
    inflow_since: np.ndarray  # (n,) int64         slot in which that rose from zero
    inflow_slots: np.ndarray  # (n,) int64         slots in which it was not zero, up to that
    received: np.ndarray  # (n,) int64     [j]     useful cells arrived
    departed: np.ndarray  # (n,) int64     [i]     cells sent, empty ones left out
    lengths: np.ndarray  # (256,) int64    [l]     visits that found l cells in the queue (l = 255: or more)
    work: np.ndarray  # (n + 64,) uint32            who has anything to do, or which cells go on; scratch
    some: np.ndarray  # (n + 64,) uint32            who may release a cell, or which cells have arrived; scratch
    word: np.ndarray  # (n + 64,) uint64            the seats that may; scratch
    waits: np.ndarray  # (flows, 8) int64, or no rows     see weft.engine.calendar
    successors: np.ndarray  # int32                       whom each flow releases
    tally: np.ndarray  # (TALLY,) int64            see `columns`
    print: np.ndarray  # (2,) uint64               the fingerprint


# seats: pairs of a node with cells left to release; how many blocks it has; where `leave` has the first one, in eights,
# and the second if there is
COUNT, BLOCKS, HOME, SECOND = range(4)
# sent: a cell; where `leave` has the subflow whose feedback goes along (0: none), and the epoch from which it may send
# again; 1 + the queue the cell will go into (0: it has arrived), and who sent it; its pair (0: it is empty), and the
# place of that queue
WHAT, ABOUT, INTO, WHOSE = range(4)
_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_OWN, _SEQ, _FLOW = np.uint64(OWN), np.uint64(SEQ_SHIFT), np.uint64(FLOW_BITS)
_LOW, _HALF, _34, _TOP = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(34), np.uint64(63)
_ANSWER, _ANSWERS, _WHERE = np.uint64(ANSWER_SHIFT), np.uint64(ANSWER_BITS), np.uint64(WHERE_SHIFT)
_SEATED, _63, _64 = np.uint64((1 << SEATS) - 1), np.uint64(63), np.uint64(64)
AHEAD = 8  # nodes ahead of the one at work for which cache lines are prefetched


@inlined
def subflow(h, p, w):
    """Where `leave` has the subflow of pair h over place p."""
    return ((h >> BLOCK) * w + p << BLOCK) + (h & SEAT)


@inlined
def pair_of(about, w):
    """The pair of the subflow that `leave` has there."""
    return (np.int64(about) >> BLOCK) // w << BLOCK | np.int64(about) & SEAT


@part
def vacate(plan, state):
    """Give back the seats of pairs that ended long enough ago, and blocks in which nobody sits, the last ones first."""
    tally, rest, rested, pair, taken, seats = (
        state.tally, state.rest, state.rested, state.pair, state.taken, state.seats)  # fmt: skip
    while tally[REST_HEAD] < tally[REST_TAIL] and rested[tally[REST_HEAD] % rest.size] <= tally[SLOT]:
        h = rest[tally[REST_HEAD] % rest.size]
        tally[REST_HEAD] += 1
        taken[h >> BLOCK] &= ~(_ONE << np.uint64(h & SEAT))
        i = pair[h, SOURCE]
        while seats[4 * i + BLOCKS] > 0 and taken[state.block[i, seats[4 * i + BLOCKS] - 1]] == 0:
            seats[4 * i + BLOCKS] -= 1
            state.idle[tally[IDLE]] = state.block[i, seats[4 * i + BLOCKS]]
            tally[IDLE] += 1
        if seats[4 * i + BLOCKS] == 1:
            seats[4 * i + SECOND] = seats[4 * i + HOME]


@part
def take_seat(plan, state, i):
    """A pair for node i, in its first vacant seat; -1 if there is no room."""
    tally, taken, seats = state.tally, state.taken, state.seats
    many = np.int64(seats[4 * i + BLOCKS])
    for x in range(many):
        b = np.int64(state.block[i, x])
        if taken[b] != _SEATED:
            k = lowest(~taken[b])
            taken[b] |= _ONE << np.uint64(k)
            return b * SEATS + k
    if many == state.block.shape[1]:
        return -1
    if tally[IDLE] > 0:
        tally[IDLE] -= 1
        b = np.int64(state.idle[tally[IDLE]])
    elif tally[PAIRS_USED] < state.target.size:
        b = tally[PAIRS_USED] // SEATS
        tally[PAIRS_USED] += SEATS
    else:
        return -1
    if many == 0:
        seats[4 * i + HOME] = b * plan.numbers[STRIDE]
    if many <= 1:
        seats[4 * i + SECOND] = b * plan.numbers[STRIDE]
    state.block[i, many] = b
    seats[4 * i + BLOCKS] += 1
    taken[b], state.order[b] = _ONE, many
    return b * SEATS


@rare
def shut(plan, state, h, i, d):
    """Let pair h of i and d send nothing over nodes that cannot reach d."""
    n, w = plan.numbers[N], plan.numbers[STRIDE]
    for p in range(plan.shift.size):
        if has(plan.lit[p], i) and has(plan.parted[facing(i, np.int64(plan.shift[p]), n)], d):
            state.leave[at(subflow(h, p, w))] = AWAY


@apart
def start_flows(plan, state):
    """Start every flow whose slot has come. False if there is no room for another pair."""
    numbers, src, dst = plan.numbers, plan.src, plan.dst
    tally, pair, target, living = state.tally, state.pair, state.target, state.living
    slot, w = tally[SLOT], numbers[STRIDE]
    e = slot // numbers[EPOCH] - tally[BASE]
    if tally[REST_HEAD] < tally[REST_TAIL]:
        vacate(plan, state)
    while True:
        f = due_flow(plan, state, slot)
        if f < 0:
            break
        i, d = src[f], dst[f]
        if has(plan.gone, i):  # it waits for its node to come back
            state.flow[f, RELEASE] = state.flow[f, DELIVER] = plan.cells[f]
            has_started(plan, state, f)
            continue
        h = np.int64(living[i]) - 1
        while h >= 0 and target[h] != d:
            h = pair[h, NEXT] - 1
        if h < 0:
            h = take_seat(plan, state, i)
            if h < 0:
                return False
            pair[h, :] = 0
            pair[h, SOURCE], pair[h, NEXT], target[h] = i, living[i], d
            living[i] = h + 1
            for p in range(plan.shift.size):  # the seat may have been another's; most of what it left is past
                if state.leave[at(subflow(h, p, w))] > e:
                    state.leave[at(subflow(h, p, w))] = FREE_NOW
            if plan.parted.shape[0] > 0:
                shut(plan, state, h, i, d)
            state.early[h, :] = 0
            state.incast[d] += 1
            state.outcast[i] += 1
            tally[LIVE] += 1
        if pair[h, SERVED] == 0:  # nothing left to release: it becomes busy now
            seat = np.int64(state.order[h >> BLOCK]) * SEATS + (h & SEAT)
            state.able[(seat >> 6) * numbers[N] + i] |= _ONE << np.uint64(seat & 63)
            state.seats[4 * i + COUNT] += 1
            state.active[i >> 6] |= _ONE << np.uint64(i & 63)
            pair[h, SINCE] = slot
            tally[ACTIVE] += 1
        state.whose[f] = h
        begin_flow(plan, state, h, f, slot, numbers[SHORTEST])
        has_started(plan, state, f)
    return True


@inlined
def append(ring, spill, cell, link, free, spare, q, head, length, depth, what):
    """Put a cell behind the `length` cells of queue q; returns how many free cells are left."""
    if length < depth:
        ring[at(q * depth + ((head + length) & (depth - 1)))] = what
    else:
        spare -= 1
        number = free[at(spare)]
        cell[number] = what
        if length == depth:
            spill[at(2 * q)] = number
        else:
            link[spill[at(2 * q + 1)]] = number
        spill[at(2 * q + 1)] = number
    return spare


@inlined
def refill(ring, spill, cell, link, free, spare, q, head, depth):
    """Move the first cell of the list into the room that the first of the ring leaves; returns the free cells."""
    number = spill[at(2 * q)]
    ring[at(q * depth + head)] = cell[number]
    spill[at(2 * q)] = link[number]
    free[at(spare)] = number
    return spare + 1


@inlined
def group_may_send(leave, able, block, many, i, group, n, p, w, limit):
    """Seats in the eight blocks of i from 8 * group on whose pair has cells left and may send in place p: eq. (2)."""
    who = _NONE
    for x in range(group * 8, min(many, group * 8 + 8)):
        b = np.int64(block[at(i), at(x)])
        who |= at_most(leave, (b * w + p) << BLOCK, limit) << np.uint64((x & 7) * SEATS)
    return who & able[at(group * n + i)]


@part
def send(plan, state, slot):
    """Every node that has anything to do works through its channels; what it sends goes into the air."""
    numbers, first, last, lit = plan.numbers, plan.first, plan.last, plan.lit
    busy, active, work, tally = state.busy, state.active, state.work, state.tally
    channels, epoch, self_place = numbers[CHANNELS], numbers[EPOCH], numbers[SELF]
    air_of = slot % (numbers[DELAY] + 1)
    narrow = False
    for c in range(channels):
        p = slot % epoch * channels + c
        if first[p] >= last[p]:
            continue  # dark
        if p == self_place:
            state.left[:] = 0
        workers, words = 0, active.size
        for b in range(words):
            todo = (active[b] | busy[p * words + b]) & lit[p, b]
            busy[p * words + b] = 0
            while todo != 0:
                work[at(workers)] = b * 64 + lowest(todo)
                workers += 1
                todo &= todo - _ONE
        tally[VISITS] += workers
        for k in range(workers, workers + AHEAD):
            work[at(k)] = 0
        workers = np.int64(workers)  # one type, or all is compiled twice
        willing = look(plan, state, slot, p, workers)
        narrow |= release(plan, state, slot, p, willing)
        if numbers[FEEDBACK] > 1:
            state.echoes[air_of, c] = report_again(plan, state, slot, p, state.again[air_of, c], workers)
        state.air[air_of, c] = dispatch(plan, state, slot, p, state.sent[air_of, c], workers)
    return narrow


@part
def look(plan, state, slot, p, workers):
    """List who may release a cell by eq. (2), with the seats that may; returns how many."""
    numbers = plan.numbers
    held, seats, block, leave, able, lengths, work, some, word = (
        state.held, state.seats, state.block, state.leave, state.able, state.lengths, state.work, state.some,
        state.word)  # fmt: skip
    n, w, row = numbers[N], numbers[STRIDE], numbers[ROW]
    _, ready_queues, _, _ = options(plan)
    e, willing = slot // numbers[EPOCH] - state.tally[BASE], 0
    for k in range(workers):
        i = np.int64(work[at(k + AHEAD)])
        prefetch(leave, (np.int64(seats[at(4 * i + HOME)]) + p) << BLOCK)
        prefetch(leave, (np.int64(seats[at(4 * i + SECOND)]) + p) << BLOCK)

        i = np.int64(work[at(k)])
        q = p * row + i
        holds = np.int64(held[at(q)]) & ~(READY_BITS << READY_SHIFT)
        length = holds & LENGTH
        lengths[at(min(length, 255))] += 1
        # Without ready queues, what is released on the way counts as well: every seat is looked at.
        limit = min(e + length, LATEST) if ready_queues else LATEST
        # Two blocks without a branch: most nodes have one or two.
        who = at_most(leave, (np.int64(seats[at(4 * i + HOME)]) + p) << BLOCK, limit)
        who |= at_most(leave, (np.int64(seats[at(4 * i + SECOND)]) + p) << BLOCK, limit) << np.uint64(SEATS)
        who &= able[at(i)]
        ready, many = population(who), np.int64(seats[at(4 * i + BLOCKS)])
        if many > 2:
            who = group_may_send(leave, able, block, many, i, 0, n, p, w, limit)
            ready = population(who)
            for group in range(1, many + 7 >> 3):
                ready += population(group_may_send(leave, able, block, many, i, group, n, p, w, limit))
        held[at(q)] = holds | (ready if ready_queues else 0) << READY_SHIFT
        some[at(willing)], word[at(willing)] = i, who
        willing += np.int64(ready > 0) & (np.int64(holds & LOCAL_BIT == 0) | 1 - ready_queues)
    return willing


@part
def release(plan, state, slot, p, willing):
    """Let those on the list release a cell, in turn, to the end of the queue. True if a pair's window is full."""
    numbers = plan.numbers
    held, turn, ring, spill, seats, block, able, leave, pair, cell, link, free, flow, waiting, tally = (
        state.held, state.turn, state.ring, state.spill, state.seats, state.block, state.able, state.leave, state.pair,
        state.cell, state.link, state.free, state.flow, state.waiting, state.tally)  # fmt: skip
    n, w, row, age_interval = numbers[N], numbers[STRIDE], numbers[ROW], numbers[AGE_INTERVAL]
    _, ready_queues, shortest, depth = options(plan)
    young = numbers[AGED] * age_interval  # slots in which a pair's age counts
    e, most = slot // numbers[EPOCH] - tally[BASE], window(state.early, numbers[CHANNELS])
    spare, longest, fullest, narrow = tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE], False
    if pair.shape[1] != 8 or flow.shape[1] != 4:
        return False  # a shape hint for the compiler, never taken
    for k in range(willing):
        i, home = np.int64(state.some[at(k)]), state.word[at(k)]
        q = p * row + i
        holds = np.int64(held[at(q)])
        length, head = holds & LENGTH, holds >> HEAD_SHIFT
        many = np.int64(seats[at(4 * i + BLOCKS)])
        groups, released = many + 7 >> 3, 0
        since = np.int64(turn[at(q)])
        since = since if since < groups * 64 else 0
        group, spin = since >> 6, np.uint64(since & 63)
        for step in range(groups + (1 if groups > 1 else 0)):
            if groups == 1:  # one word: it is turned until the seat whose turn it is comes first
                who = home >> spin | home << (_64 - spin & _63)
            else:  # the group of the turn comes twice: its end first, its beginning last
                limit = min(e + length, LATEST) if ready_queues else LATEST
                who = group_may_send(leave, able, block, many, i, group, n, p, w, limit)
                if step == 0:
                    who &= _ALL << spin
                elif step == groups:
                    who &= ~(_ALL << spin)
            while who != 0:
                seat = lowest(who)
                who &= who - _ONE
                if groups == 1:
                    seat = seat + np.int64(spin) & 63
                seat += group << 6
                h = (np.int64(block[at(i), at(seat >> BLOCK)]) << BLOCK) + (seat & SEAT)
                seen = length
                if not ready_queues:
                    seen += released
                    if not may_leave(leave[at(subflow(h, p, w))], e, seen):
                        continue
                if too_young(seen, slot - pair[at(h), SINCE], young, age_interval):
                    continue
                f = next_flow(pair, flow, h, shortest)
                number = pair[at(h), SEQ]
                narrow |= number - pair[at(h), WANT] >= most
                pair[at(h), SEQ] = number + 1
                leave[at(subflow(h, p, w))] = AWAY
                new = _OWN | np.uint64(number & SEQ_BITS) << _SEQ | np.uint64(f)
                spare = append(ring, spill, cell, link, free, spare, q, head, length + released, depth, new)
                released += 1
                turn[at(q)] = seat + 1
                if pair[at(h), SERVED] == 0:
                    able[at((seat >> 6) * n + i)] &= ~(_ONE << np.uint64(seat & 63))
                    seats[at(4 * i + COUNT)] -= 1
                    tally[ACTIVE] -= 1
                    if seats[at(4 * i + COUNT)] == 0:
                        state.active[at(i >> 6)] &= ~(_ONE << np.uint64(i & 63))
                if ready_queues:
                    break
            if ready_queues and released > 0:
                break
            group = group + 1 if group + 1 < groups else 0
        if released > 0:
            held[at(q)] = holds + released - (1 << READY_SHIFT if ready_queues else 0) | LOCAL_BIT
            waiting[at(i)] += released
            longest, fullest = max(longest, length + released), max(fullest, waiting[at(i)])
    tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE] = spare, longest, fullest
    return narrow


@part
def report_again(plan, state, slot, p, again, workers):
    """Let everybody on the list say once more how much waits where earlier cells of the peer went; returns how much is
    said. What is said for the first time now is kept for the next turns."""
    numbers, held, owed, past, busy, leave, work = (
        plan.numbers, state.held, state.owed, state.past, state.busy, state.leave, state.work)  # fmt: skip
    row, more = numbers[ROW], 1 if has_default_rules(plan) else numbers[FEEDBACK] - 1
    now = slot // numbers[EPOCH] - numbers[ANSWER_OFFSET] - state.tally[BASE]
    said = 0
    for k in range(workers):
        prefetch(held, np.int64(past[at((p * row + work[at(k + AHEAD)]) * more)] >> _WHERE))
        q = p * row + np.int64(work[at(k)])
        debt, kept = owed[at(q)], _NONE
        for x in range(q * more, (q + 1) * more):
            kept |= debt
            past[at(x)], debt = debt, past[at(x)]
            there = np.int64(held[at(debt >> _WHERE)])
            ahead = (there & LENGTH) + (there >> READY_SHIFT & READY_BITS)
            when = now + ahead + np.int64(debt >> _ANSWER & _ANSWERS)
            prefetch(leave, np.int64(debt & _LOW))
            again[at(said)] = debt & _LOW | np.uint64(max(min(when, LATEST), 0)) << _HALF
            said += np.int64(debt != 0)
        busy[at(q >> 6)] |= np.uint64(kept != 0) << np.uint64(q & 63)
    return said


@part
def dispatch(plan, state, slot, p, sent, workers):
    """Let everybody on the list send the head of the queue, or an empty cell with feedback; returns how many do.

    Whether there is a cell, and whether feedback is owed, would be unpredictable branches. So both are computed in any
    case, from whatever an old cell says, and used if there are any.
    """
    numbers, place = plan.numbers, plan.place
    held, owed, ring, spill, busy, leave, cell, link, free, target, whose, waiting, departed, told, work, tally = (
        state.held, state.owed, state.ring, state.spill, state.busy, state.leave, state.cell, state.link, state.free,
        state.target, state.whose, state.waiting, state.departed, state.told, state.work, state.tally)  # fmt: skip
    n, epoch, row, half, w = numbers[N], numbers[EPOCH], numbers[ROW], numbers[HALF], numbers[STRIDE]
    rules, ready_queues, _, depth = options(plan)
    paper = rules == PAPER
    hop, here = np.int64(plan.shift[p]), p == numbers[SELF]
    once = here and numbers[FEEDBACK] == 1
    now = slot // epoch - numbers[ANSWER_OFFSET]
    if not paper:
        now = (slot + numbers[DELAY] + epoch - plan.slot[plan.mirror[p]]) // epoch
    now -= tally[BASE]
    pop = (1 << HEAD_SHIFT if depth > 1 else 0) - 1  # added to what a queue holds: its ring begins later, it is shorter
    spare, out, all_cells, own_cells = tally[FREE], 0, 0, 0
    for k in range(workers):
        prefetch(held, np.int64(owed[at(p * row + work[at(k + AHEAD)])] >> _WHERE))  # the queue to report on

        # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
        i = np.int64(work[at(k)])
        q = p * row + i
        debt = owed[at(q)]
        owed[at(q)] = 0
        if once:
            again, told[at(i)] = told[at(i)], debt
            if debt == 0:
                debt = again
            elif again == 0:
                tally[OWING] += 1  # it will be said twice; else what was to be said again is not
        there, answer = np.int64(held[at(debt >> _WHERE)]), np.int64(debt >> _ANSWER & _ANSWERS)
        ahead = (there & LENGTH) + (there >> READY_SHIFT & READY_BITS)
        if not paper:
            ahead = 0 if answer == ARRIVED else max(ahead - (1 if ready_queues else 0), 0)
            answer = 0
        when, about = np.uint64(max(min(now + ahead + answer, LATEST), 0)), debt & _LOW
        prefetch(leave, np.int64(about))

        # The cell: where it will go to.
        holds = np.int64(held[at(q)])
        length = holds & LENGTH
        full = np.int64(length > 0)
        head = holds >> HEAD_SHIFT
        what = ring[at(q * depth + head)]
        if length > depth:
            spare = refill(ring, spill, cell, link, free, spare, q, head, depth)
        own = np.int64(what >> _TOP) & full
        h = np.int64(whose[at(what & _FLOW)])
        d, j = np.int64(target[at(h)]), facing(i, hop, n)
        m = where(place, half, n, j, d)
        into = either(d != j, m * row + j + 1, 0) & -full
        if ((d ^ j) | (own ^ 1)) == 0 and paper:  # one test for both: each by itself is unpredictable
            leave[at(subflow(h, p, w))] = FREE_NOW
        if here and own > 0 and d != j:
            leave[at(subflow(h, p, w))] = SENT
            state.left[at(i)] = h
        x = at(4 * out)
        sent[x + at(WHAT)], sent[x + at(ABOUT)] = what, about | when << _HALF
        sent[x + at(INTO)] = np.uint64(into) | np.uint64(i << 2 | either(d != j, 0, 2 - own)) << _HALF
        sent[x + at(WHOSE)] = np.uint64(h & -full) | np.uint64(m) << _HALF
        out += full | np.int64(about != 0)
        all_cells += full
        own_cells += own
        waiting[at(i)] -= full
        departed[at(i)] += full

        left = holds + (pop & -full) & ~(own * LOCAL_BIT)
        held[at(q)] = left
        # A count of ready flows must be looked at again, or it would stay.
        again = np.int64(left & (LENGTH | READY_BITS << READY_SHIFT) != 0)
        if once:
            again |= np.int64(told[at(i)] != 0)
        busy[at(q >> 6)] |= np.uint64(again) << np.uint64(q & 63)
    tally[FREE] = spare
    tally[LOCAL] += own_cells
    tally[FORWARDED] += all_cells - own_cells
    tally[FLYING] += all_cells
    return out


@part
def receive(plan, state, slot):
    """Take in what was sent `delay` slots ago: the feedback, the cells that go on, the cells that have arrived."""
    numbers = plan.numbers
    channels, epoch, delay, self_place = numbers[CHANNELS], numbers[EPOCH], numbers[DELAY], numbers[SELF]
    air_of = (slot + 1) % (delay + 1)
    base = (slot - delay) % epoch * channels
    for turn in range(channels):
        c = channel_in_turn(turn, base, self_place, channels)
        sent, senders = state.sent[air_of, c], state.air[air_of, c]
        state.air[air_of, c] = 0
        hear_again(plan, state, base + c, state.again[air_of, c], state.echoes[air_of, c])
        state.echoes[air_of, c] = 0
        going, staying = sort(plan, state, slot, base + c, sent, senders)
        queue_up(plan, state, base + c, sent, going)
        arrive(plan, state, slot, base + c, sent, staying)


@part
def hear_again(plan, state, p, again, said):
    """Take in what was said again, unless another cell of the subflow has been released since."""
    leave, w, here = state.leave, plan.numbers[STRIDE], p == plan.numbers[SELF]
    for k in range(said):
        about, when = again[at(k)] & _LOW, np.int64(again[at(k)] >> _HALF)
        if here and state.left[at(state.pair[at(pair_of(about, w)), SOURCE])] == pair_of(about, w):
            when = min(when + 1, LATEST)
        leave[about] = either(leave[about] == AWAY, AWAY, when)
    state.tally[OWING] -= said


@part
def sort(plan, state, slot, p, sent, senders):
    """Take in the feedback, add to the fingerprint, list the cells that go on and those that stay; says how many."""
    numbers = plan.numbers
    leave, work, some, tally = state.leave, state.work, state.some, state.tally
    n, w, s = numbers[N], numbers[STRIDE], np.int64(plan.shift[p])
    here = p == numbers[SELF]
    seen, known = state.print[0], state.print[1]
    going = staying = said = 0
    for k in range(senders):
        x = at(4 * k)
        note, where_to = sent[x + at(ABOUT)], sent[x + at(INTO)]
        about, into = note & _LOW, where_to & _LOW
        j = facing(np.int64(where_to >> _34), s, n)
        said += np.int64(about != 0)
        if not here:
            leave[about] = np.int64(note >> _HALF)
        elif about != 0 and leave[about] != AWAY:  # else it is about an earlier cell than the one that waits
            h = pair_of(about, w)
            leave[about] = min(np.int64(note >> _HALF) + (1 if state.left[at(j)] == h else 0), LATEST)
        what, h = sent[x + at(WHAT)], np.int64(sent[x + at(WHOSE)] & _LOW)
        more, yet_more = mixed(slot, event(what & _FLOW, j, where_to >> _HALF & np.uint64(3)))
        full = np.uint64(0) - np.uint64(h > 0)
        seen += more & full
        known += yet_more & full
        work[at(going)], some[at(staying)] = k, k
        going += np.int64(into != 0)
        staying += np.int64(into == 0) & np.int64(h > 0)
    state.print[0], state.print[1] = seen, known
    tally[OWING] -= said
    tally[FLYING] -= going + staying
    return going, staying


@rare
def meets(state, q, h, depth):
    """Whether a cell of pair h is in queue q: 0 or 1."""
    length, head = np.int64(state.held[at(q)]) & LENGTH, np.int64(state.held[at(q)]) >> HEAD_SHIFT
    for k in range(min(length, depth)):
        if state.whose[at(state.ring[at(q * depth + ((head + k) & (depth - 1)))] & _FLOW)] == h:
            return 1
    number = state.spill[at(2 * q)]
    for _ in range(depth, length):
        if state.whose[at(state.cell[at(number)] & _FLOW)] == h:
            return 1
        number = state.link[at(number)]
    return 0


@part
def queue_up(plan, state, p, sent, going):
    """Put the cells that go on into their queues; the node that sent each of them is owed a feedback."""
    numbers, slot_of, late = plan.numbers, plan.slot, plan.late
    held, owed, ring, spill, busy, cell, link, free, waiting, incast, target, work, tally = (
        state.held, state.owed, state.ring, state.spill, state.busy, state.cell, state.link, state.free, state.waiting,
        state.incast, state.target, state.work, state.tally)  # fmt: skip
    n, epoch, row, w = numbers[N], numbers[EPOCH], numbers[ROW], numbers[STRIDE]
    rules, ready_queues, _, depth = options(plan)
    s, r = np.int64(plan.shift[p]), np.int64(plan.mirror[p])
    offset = numbers[ANSWER_OFFSET] - 1
    may_meet = rules == LITERAL or tally[MAY_MEET] > 0
    spare, longest, fullest, over = tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE], 0
    for k in range(going, going + AHEAD):
        work[at(k)] = 0
    for k in range(going):
        q = np.int64(sent[at(4 * np.int64(work[at(k + AHEAD)]) + INTO)] & _LOW)
        prefetch(ring, q * depth)
        prefetch(held, q)
        x = at(4 * np.int64(work[at(k)]))
        where_to, whose, what = sent[x + at(INTO)], sent[x + at(WHOSE)], sent[x + at(WHAT)]
        q, h, m = np.int64(where_to & _LOW) - 1, np.int64(whose & _LOW), np.int64(whose >> _HALF)
        j = facing(np.int64(where_to >> _34), s, n)
        holds = np.int64(held[at(q)])
        length, head = holds & LENGTH, holds >> HEAD_SHIFT
        if may_meet:
            tally[OVER_SUBFLOW] += meets(state, q, h, depth)
        spare = append(ring, spill, cell, link, free, spare, q, head, length, depth, what & ~_OWN)
        held[at(q)] = holds + 1
        busy[at(q >> 6)] |= _ONE << np.uint64(q & 63)
        answer = 0
        if rules == PAPER:  # `ready_again`, of which only `ahead` and the epoch are missing
            answer = service_lag(late, slot_of, epoch, m, p, r) + offset
        back = r * row + j
        debt = np.uint64(subflow(h, p, w)) | np.uint64(answer) << _ANSWER
        owed[at(back)] = debt | np.uint64(q) << _WHERE
        busy[at(back >> 6)] |= _ONE << np.uint64(back & 63)
        waiting[at(j)] += 1
        longest, fullest = max(longest, length + 1), max(fullest, waiting[at(j)])
        over += np.int64(length >= bound(incast, state.outcast, target[at(h)], j, ready_queues))
    tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE] = spare, longest, fullest
    tally[OVER_BOUND] += over
    tally[RELAYED] += going
    tally[OWING] += going * numbers[FEEDBACK]


@part
def arrive(plan, state, slot, p, sent, staying):
    """Deliver the cells that stay; flows and pairs end."""
    numbers = plan.numbers
    pair, flow, early, some, tally = state.pair, state.flow, state.early, state.some, state.tally
    n, row, w, s, r = numbers[N], numbers[ROW], numbers[STRIDE], np.int64(plan.shift[p]), np.int64(plan.mirror[p])
    rules, _, _, _ = options(plan)
    most_held, words = tally[MAX_HELD], early.shape[1]
    if pair.shape[1] != 8 or flow.shape[1] != 4:
        return  # a shape hint for the compiler, never taken
    for k in range(staying, staying + AHEAD):
        some[at(k)] = 0
    for k in range(staying):
        x = at(4 * np.int64(some[at(k + AHEAD)]))
        what, h = sent[x + at(WHAT)], np.int64(sent[x + at(WHOSE)] & _LOW)
        prefetch(pair, h * 8)
        prefetch(flow, np.int64(what & _FLOW) * 4)
        prefetch(early, h * words + (np.int64(what >> _SEQ) & words * 64 - 1 >> 6))
        x = at(4 * np.int64(some[at(k)]))
        what, h = sent[x + at(WHAT)], np.int64(sent[x + at(WHOSE)] & _LOW)
        f, j = np.int64(what & _FLOW), facing(np.int64(sent[x + at(INTO)] >> _34), s, n)
        if rules == LITERAL and what & _OWN != 0:
            back = r * row + j
            debt = np.uint64(subflow(h, p, w)) | np.uint64(ARRIVED) << _ANSWER
            state.owed[at(back)] = debt | np.uint64(back) << _WHERE
            state.busy[at(back >> 6)] |= _ONE << np.uint64(back & 63)
            tally[OWING] += 1
        most_held = max(most_held, reorder(pair, early, h, np.int64(what >> _SEQ) & SEQ_BITS))
        if deliver(state, f, h, j, slot) == 0:
            end_pair(pair, state.living, h)
            state.incast[j] -= 1
            state.outcast[pair[at(h), SOURCE]] -= 1
            tally[LIVE] -= 1
            rest, rested = state.rest, state.rested
            rest[tally[REST_TAIL] % rest.size] = h
            rested[tally[REST_TAIL] % rest.size] = rested_by(numbers, slot)
            tally[REST_TAIL] += 1
    tally[MAX_HELD] = most_held
    tally[DELIVERED] += staying


@inlined
def nth(ring, spill, cell, link, q, head, depth, k):
    """The k-th cell of queue q."""
    what = ring[q * depth + ((head + k) & (depth - 1))]
    if k >= depth:
        number = spill[2 * q]
        for _ in range(k - depth):
            number = link[number]
        what = cell[number]
    return what


@part
def rebase(state, epoch):
    """Count the epochs of `leave` from `epoch` on; what may leave by then may leave at once."""
    leave, tally = state.leave, state.tally
    past = min(epoch - tally[BASE], LATEST + 1)
    for k in range(leave.size):
        if leave[k] < SENT:
            leave[k] = max(leave[k] - past, FREE_NOW)
    sent = state.sent
    for a in range(sent.shape[0]):  # what is under way as well
        for c in range(sent.shape[1]):
            for x in range(ABOUT, sent.shape[2], 4):
                when = max(np.int64(sent[a, c, x] >> _HALF) - past, 0)
                sent[a, c, x] = sent[a, c, x] & _LOW | np.uint64(when) << _HALF
            for x in range(state.echoes[a, c]):
                when = max(np.int64(state.again[a, c, x] >> _HALF) - past, 0)
                state.again[a, c, x] = state.again[a, c, x] & _LOW | np.uint64(when) << _HALF
    tally[BASE] = epoch


@apart
def next_event(plan, state, until):
    """The next slot, or `until`, in which a flow starts or a node of a quiet rack has a count of ready flows to mend.

    Left as it is, the count would be reported when cells next wait behind it.
    """
    busy, lit, slot = state.busy, plan.lit, state.tally[SLOT]
    epoch, channels, words = plan.numbers[EPOCH], plan.numbers[CHANNELS], state.active.size
    until = min(until, next_start(plan, state))
    for coming in range(slot, min(until, slot + epoch)):
        base = coming % epoch * channels
        for p in range(base, base + channels):
            for b in range(words):
                if busy[p * words + b] & lit[p, b] != 0:
                    return coming
    return until


@bare
def advance(plan, state, until, budget):
    """Simulate slots before `until`, or until every flow has finished or `budget` visits are spent; says which."""
    tally, start, numbers = state.tally, plan.start, plan.numbers
    n, channels, ready_queues = numbers[N], numbers[CHANNELS], numbers[READY_QUEUES]
    visits, slots = tally[VISITS] + budget, tally[SLOTS] + budget
    plan, state = by_reference(plan), by_reference(state)
    while tally[SLOT] < until:
        if tally[FINISHED] == start.size:
            return DONE
        quiet = tally[ACTIVE] == 0 and tally[LIVE] == 0 and tally[OWING] == 0 and tally[FLYING] == 0
        coming = next_event(plan, state, until) if quiet else tally[SLOT]
        if coming > tally[SLOT]:
            tally[SLOT] = coming  # nothing can happen before
            continue
        if not start_flows(plan, state):
            return MORE_PAIRS
        if tally[FREE] < channels * (n + (n if ready_queues else max(n, tally[ACTIVE]))):
            return MORE_CELLS
        slot = tally[SLOT]
        if slot // numbers[EPOCH] - tally[BASE] >= REBASE:
            rebase(state, slot // numbers[EPOCH])
        delivered = tally[DELIVERED]
        narrow = send(plan, state, slot)
        receive(plan, state, slot)
        if plan.parted.shape[0] > 0 and tally[DELIVERED] != delivered:
            tally[LANDED] = slot
        tally[SLOT] += 1
        tally[SLOTS] += 1
        if narrow:
            return MORE_WINDOW
        if tally[VISITS] >= visits or tally[SLOTS] >= slots:
            return SPENT
    return REACHED


@bare
def inspect(plan, state):
    """Look through all queues: (cells that share a queue with another of their subflow, cells that do not add up)."""
    held, ring, spill, cell, link, whose = state.held, state.ring, state.spill, state.cell, state.link, state.whose
    waiting, tally, busy = state.waiting, state.tally, state.busy
    n, ready_queues, depth = plan.numbers[N], plan.numbers[READY_QUEUES], plan.numbers[DEPTH]
    twice = lost = queued = listed = mine = 0
    for b in range(busy.size):
        todo = busy[b]
        while todo != 0:
            q = b * 64 + lowest(todo)
            todo &= todo - _ONE
            length, head = np.int64(held[q]) & LENGTH, np.int64(held[q]) >> HEAD_SHIFT
            queued += length
            if length > depth:
                listed += length - depth
                number = spill[2 * q]
                for _ in range(length - depth - 1):
                    number = link[number]
                if number != spill[2 * q + 1]:
                    lost += 1
            own = 0
            for k in range(length):
                what = nth(ring, spill, cell, link, q, head, depth, k)
                own += 1 if what & _OWN != 0 else 0
                for later in range(k + 1, length):
                    other = nth(ring, spill, cell, link, q, head, depth, later)
                    if whose[what & _FLOW] == whose[other & _FLOW]:
                        twice += 1
            mine += own
            if ready_queues and own > 1:
                lost += 1
    total = np.int64(0)
    for i in range(n):
        total += waiting[i]
    in_use = cell.shape[0] - tally[FREE]
    lost += abs(total - queued) + abs(in_use - listed) + abs(mine + tally[RELAYED] - tally[FORWARDED] - queued)
    there = tally[FLYING] + tally[RELAYED] + tally[DELIVERED] + tally[ASTRAY]
    lost += abs(tally[LOCAL] + tally[FORWARDED] - there)
    return twice, lost
