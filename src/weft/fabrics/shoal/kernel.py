"""Shoal, one slot at a time: flows start, every node sends on each channel, what has travelled arrives (§3.3).

The legend: i sender, j receiver, d final destination, f application flow, h pair (the paper's flow), p place in the
epoch (see `schedule.rotation`), c channel, q = p * n + i the link of node i in place p.

Backpressure is lazy. For each subflow we keep the epoch from which a cell may *leave* the source: eq. (2) then reads
`epoch + length >= leave`, and nothing is counted down. How `leave` follows from a feedback is in `notes.md`.

A node's pairs sit in blocks of 8 seats, h = block * 8 + seat, and the `leave` of the 8 on one link stand side by
side: one comparison of a vector says who may send. Epochs are counted from `BASE`, so that 16 bits hold them. The
first few cells of a queue are inside its own cache line; only a longer queue goes on in a list. Links lie at [p, i]
and a slot walks them in order. Both phases first list who has anything to do, then ask for the lines of those a few
places ahead: a busy rack waits for memory, or guesses branches wrong, more than it computes.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.bits import at_most, lowest, population, prefetch
from weft.engine.fingerprint import folded
from weft.engine.jit import bare, inlined

PAPER, LITERAL = 0, 1

SEATS, BLOCK, SEAT = 8, 3, 7  # pairs in a block: pair h has seat h & SEAT of block h >> BLOCK
AWAY = 32767  # leave: a cell waits at the source, or (except on self-mirrored links) nothing was heard of it yet
SENT = AWAY - 1  # leave, on a self-mirrored link: the cell has left and nothing was heard of it yet
LATEST = AWAY - 2  # leave, as a time: a feedback that says more (some 28,000 cells ahead) is cut to it
FREE_NOW = -1  # leave: nothing is known, or nothing has to be waited for
REBASE = 4096  # epochs after which they are counted anew

# What a queue holds, in one word: cells, where its ring begins, if one of them is local, flows that are ready.
LENGTH, HEAD_SHIFT, HEAD_BITS, LOCAL_BIT, READY_SHIFT = 0x7FFF, 15, 3, 1 << 17, 18
# A cell, in one word: its flow, its number in the pair, and OWN on its first hop.
FLOW_BITS, SEQ_SHIFT, SEQ_BITS, OWN = 0xFFFFFFFF, 32, 0x7FFFFFFF, 1 << 63

# What `advance` returns: why it stopped.
REACHED, SPENT, DONE, MORE_CELLS, MORE_PAIRS, MORE_WINDOW = range(6)


class Plan(NamedTuple):
    """What no slot changes. w places in an epoch, n nodes."""

    numbers: np.ndarray  # (NUMBERS,) int64  see the names below
    shift: np.ndarray  # (w,) int32      [p]     how far everybody sends, 0 for dark
    first: np.ndarray  # (w,) int32      [p]     the nodes that send in p are first <= i < last
    last: np.ndarray  # (w,) int32
    mirror: np.ndarray  # (w,) int32     [p]     where the other direction stands
    place: np.ndarray  # (2n,) int32     [u, s]  where shift s stands for the lower or upper half of the nodes
    slot: np.ndarray  # (w,) int32       [p]     the slot of the epoch it lies in
    late: np.ndarray  # (2e,) int32      [s-r+e] epochs by which service in slot s of an epoch trails a cell that
    #                                            leaves in slot r and travels `delay` slots
    src: np.ndarray  # (flows,) int32    [f]
    dst: np.ndarray  # (flows,) int32    [f]
    cells: np.ndarray  # (flows,) int64  [f]     how many it has
    start: np.ndarray  # (flows,) int64  [f]     slot in which it starts, ascending


N, CHANNELS, EPOCH, DELAY, SELF, RULES, READY_QUEUES, AGE_INTERVAL, AGED, SHORTEST, HALF, DEPTH = range(12)
NUMBERS = 12


class State(NamedTuple):
    """What a slot may change. m pairs at most, r cells at most, b words of 64 nodes, a = delay + 1."""

    held: np.ndarray  # (w * n,) uint32     [q]     what the queue holds, see above
    owed: np.ndarray  # (w * n, 2) uint32   [q]     see the names below
    turn: np.ndarray  # (w * n,) uint16     [q]     seat at which the round robin goes on
    ring: np.ndarray  # (w * n * DEPTH,) uint64    the first cells of a queue
    spill: np.ndarray  # (2 * w * n,) uint32       the first and last of the rest of it, as numbers of `cell`
    told: np.ndarray  # (n, 2) uint32       [i]     the same, as reported an epoch ago on the self-mirrored link
    left: np.ndarray  # (n,) uint32         [i]     1 + pair of the own cell that left on the self-mirrored link now
    busy: np.ndarray  # (w, b) uint64      [p]     nodes with a cell to send, a feedback to give or a count to mend in p
    active: np.ndarray  # (b,) uint64              nodes with cells left to release
    seats: np.ndarray  # (n, 4) uint32      [i]     see the names below
    block: np.ndarray  # (n, n / 8) uint32  [i, x]  the blocks of i
    able: np.ndarray  # (m / 8,) uint64    [b]     seats whose pair has cells left to release
    taken: np.ndarray  # (m / 8,) uint64   [b]     seats that are taken
    idle: np.ndarray  # (m / 8,) uint32            blocks that belong to nobody any more, a stack
    living: np.ndarray  # (n,) uint32       [i]     1 + first of i's pairs that have undelivered cells
    leave: np.ndarray  # (m * w,) int16    [b, p, seat]  epoch from which the next cell of the subflow may leave
    pair: np.ndarray  # (m, 8) int64       [h]     see the names below
    target: np.ndarray  # (m,) uint32       [h]     destination
    early: np.ndarray  # (m, x) uint64     [h]     which of the 64x cells after WANT have arrived, as a ring of bits
    rest: np.ndarray  # (m,) int64                 pairs that have ended, in that order; a ring
    rested: np.ndarray  # (m,) int64               slot from which the seat may be taken: no feedback is under way
    cell: np.ndarray  # (r,) uint64
    link: np.ndarray  # (r,) uint32                 the next in its queue
    free: np.ndarray  # (r,) uint32                 cells not in use, a stack
    sent: np.ndarray  # (a, c, n, 8) uint32         what was sent, by slot modulo a, in order; see the names below
    air: np.ndarray  # (a, c) int64                how many sent anything
    flow: np.ndarray  # (flows, 4) int64   [f]     see the names below
    whose: np.ndarray  # (flows,) uint32   [f]     its pair
    incast: np.ndarray  # (n,) int32       [j]     living pairs towards j
    outcast: np.ndarray  # (n,) int32      [i]     living pairs from i
    waiting: np.ndarray  # (n,) int64      [i]     cells in i's queues
    inflow: np.ndarray  # (n,) int32       [j]     unfinished application flows towards j
    inflow_since: np.ndarray  # (n,) int64         slot in which that rose from zero
    inflow_slots: np.ndarray  # (n,) int64         slots in which it was not zero, up to that
    received: np.ndarray  # (n,) int64     [j]     useful cells arrived
    lengths: np.ndarray  # (256,) int64    [l]     visits that found l cells in the queue (l = 255: or more)
    work: np.ndarray  # (n + 64,) uint32            who has anything to do; scratch
    tally: np.ndarray  # (TALLY,) int64            see the names below
    print: np.ndarray  # (2,) uint64               the fingerprint


# owed: 1 + pair of the last cell from the peer, until its feedback is sent; the place of the queue it went into
ABOUT_WHOM, WHERE = range(2)
# seats: pairs of a node with cells left to release; how many blocks it has; the first one, and the second if there is
COUNT, BLOCKS, HOME, SECOND = range(4)
# sent: flow and number of a cell, 1 + its pair, 0 if it is empty; who sent it; 1 + pair whose feedback goes along, and
# the epoch from which that subflow may send again; 1 + the queue it will go into, 0 where it has arrived, and its place
FLOW, SEQUENCE, WHOSE, FROM, ABOUT, WHEN, INTO, PLACE = range(8)
# pair: 1 + application flow served last (0: none left); slot in which it became busy; cells released; every cell before
# this one has arrived; cells arrived; cells not yet arrived; source; 1 + next living pair of the same source
SERVED, SINCE, SEQ, WANT, GOT, UNDELIVERED, SOURCE, NEXT = range(8)
# flow: cells left to release; cells left to deliver; next flow of its pair, in a circle; slot at whose end it was done
RELEASE, DELIVER, AFTER, FINISH = range(4)

(
    SLOT,  # the next slot to simulate
    STARTED,  # flows started
    FINISHED,  # flows finished
    LOCAL,  # cells sent on their first hop
    FORWARDED,  # cells sent on their second
    DELIVERED,
    VISITS,  # node-slots looked at
    SLOTS,  # slots stepped
    FREE,  # cells on the free stack
    ACTIVE,  # pairs with cells left to release
    OWING,  # feedbacks owed or under way
    FLYING,  # cells on the wire
    REST_HEAD,
    REST_TAIL,
    PAIRS_USED,  # pairs never used begin here, a multiple of SEATS
    MAX_QUEUE,
    MAX_NODE,
    MAX_HELD,
    OVER_BOUND,  # monitor: pushes that made a queue longer than eq. (5), or (3)
    OVER_SUBFLOW,  # monitor: cells that met another of their subflow in a queue
    LIVE,  # pairs with undelivered cells
    BASE,  # epoch from which `leave` counts
    IDLE,  # blocks on the stack
    RELAYED,  # cells that arrived at the node between
) = range(24)
TALLY = 24

at = np.uint64  # an index that cannot be negative: Numba then does not count from the end, a tenth of the time saved
_NONE, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_OWN, _SEQ, _FLOW = np.uint64(OWN), np.uint64(SEQ_SHIFT), np.uint64(FLOW_BITS)
_SEATED = np.uint64((1 << SEATS) - 1)
AHEAD, FAR = 8, 16  # how many nodes that send, and cells that arrive, ahead of the one at work we ask for memory


@inlined
def subflow(h, p, w):
    """Where `leave` has the subflow of pair h over place p."""
    return ((h >> BLOCK) * w + p << BLOCK) + (h & SEAT)


@inlined
def join(pair, flow, cells, h, f, shortest):
    """Add application flow f to the circle of pair h: last in the round that is under way, or in order of size."""
    g = pair[h, SERVED] - 1
    if g < 0:
        flow[f, AFTER] = f
        pair[h, SERVED] = f + 1
        return
    k = g  # f goes behind k
    if shortest:  # ties in order of arrival; the largest counts as served last
        while flow[k, AFTER] != g and cells[flow[k, AFTER]] <= cells[f]:
            k = flow[k, AFTER]
        if cells[flow[k, AFTER]] <= cells[f]:
            k = g
            pair[h, SERVED] = f + 1
    else:
        pair[h, SERVED] = f + 1
    flow[f, AFTER] = flow[k, AFTER]
    flow[k, AFTER] = f


@bare
def vacate(plan, state):
    """Give back the seats of pairs that ended long enough ago, and blocks in which nobody sits, the last ones first."""
    tally, rest, rested, pair, taken, seats = (
        state.tally, state.rest, state.rested, state.pair, state.taken, state.seats)  # fmt: skip
    while tally[REST_HEAD] < tally[REST_TAIL] and rested[tally[REST_HEAD] % rest.size] <= tally[SLOT]:
        h = rest[tally[REST_HEAD] % rest.size]
        tally[REST_HEAD] += 1
        taken[h >> BLOCK] &= ~(_ONE << np.uint64(h & SEAT))
        i = pair[h, SOURCE]
        while seats[i, BLOCKS] > 0 and taken[state.block[i, seats[i, BLOCKS] - 1]] == 0:
            seats[i, BLOCKS] -= 1
            state.idle[tally[IDLE]] = state.block[i, seats[i, BLOCKS]]
            tally[IDLE] += 1
        if seats[i, BLOCKS] == 1:
            seats[i, SECOND] = seats[i, HOME]


@bare
def take_seat(state, i):
    """A pair for node i, in its first vacant seat; -1 if there is no room."""
    tally, taken, seats = state.tally, state.taken, state.seats
    for x in range(seats[i, BLOCKS]):
        b = np.int64(state.block[i, x])
        if taken[b] != _SEATED:
            k = lowest(~taken[b])
            taken[b] |= _ONE << np.uint64(k)
            return b * SEATS + k
    if seats[i, BLOCKS] == state.block.shape[1]:
        return -1
    if tally[IDLE] > 0:
        tally[IDLE] -= 1
        b = np.int64(state.idle[tally[IDLE]])
    elif tally[PAIRS_USED] < state.target.size:
        b = tally[PAIRS_USED] // SEATS
        tally[PAIRS_USED] += SEATS
    else:
        return -1
    if seats[i, BLOCKS] == 0:
        seats[i, HOME] = b
    if seats[i, BLOCKS] <= 1:
        seats[i, SECOND] = b
    state.block[i, seats[i, BLOCKS]] = b
    seats[i, BLOCKS] += 1
    taken[b], state.able[b] = _ONE, 0
    return b * SEATS


@bare
def start_flows(plan, state):
    """Start every flow whose slot has come. False if there is no room for another pair."""
    numbers, src, dst, cells, start = plan.numbers, plan.src, plan.dst, plan.cells, plan.start
    tally, pair, target, living, flow = state.tally, state.pair, state.target, state.living, state.flow
    slot, w = tally[SLOT], plan.shift.size
    if tally[REST_HEAD] < tally[REST_TAIL]:
        vacate(plan, state)
    while tally[STARTED] < start.size and start[tally[STARTED]] <= slot:
        f = tally[STARTED]
        i, d = src[f], dst[f]
        h = np.int64(living[i]) - 1
        while h >= 0 and target[h] != d:
            h = pair[h, NEXT] - 1
        if h < 0:
            h = take_seat(state, i)
            if h < 0:
                return False
            pair[h, :] = 0
            pair[h, SOURCE], pair[h, NEXT], target[h] = i, living[i], d
            living[i] = h + 1
            for p in range(w):
                state.leave[subflow(h, p, w)] = FREE_NOW
            state.early[h, :] = 0
            state.incast[d] += 1
            state.outcast[i] += 1
            tally[LIVE] += 1
        if pair[h, SERVED] == 0:  # nothing left to release: it becomes busy now
            state.able[h >> BLOCK] |= _ONE << np.uint64(h & SEAT)
            state.seats[i, COUNT] += 1
            state.active[i >> 6] |= _ONE << np.uint64(i & 63)
            pair[h, SINCE] = slot
            tally[ACTIVE] += 1
        state.whose[f] = h
        join(pair, flow, cells, h, f, numbers[SHORTEST])
        flow[f, RELEASE] = flow[f, DELIVER] = cells[f]
        pair[h, UNDELIVERED] += cells[f]
        if state.inflow[d] == 0:
            state.inflow_since[d] = slot
        state.inflow[d] += 1
        tally[STARTED] += 1
    return True


@inlined
def next_flow(pair, flow, h, shortest):
    """Take a cell of pair h from the application flow whose turn it is; returns the flow."""
    before = pair[at(h), SERVED] - 1
    f = flow[at(before), AFTER]
    flow[at(f), RELEASE] -= 1
    if flow[at(f), RELEASE] == 0:
        if f == before:
            pair[at(h), SERVED] = 0
        else:
            flow[at(before), AFTER] = flow[at(f), AFTER]
    elif not shortest:
        pair[at(h), SERVED] = f + 1
    return f


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
def may_send(leave, able, b, p, w, limit):
    """Seats of block b whose pair has cells left and may send in place p: eq. (2)."""
    return at_most(leave, (b * w + p) << BLOCK, limit) & able[at(b)]


@bare
def send(plan, state, slot):
    """Every node that has anything to do works through its channels; what it sends goes into the air."""
    numbers, shift, first, last, mirror, place, slot_of, late, _, _, _, _ = plan
    held, owed, turn, ring, spill, busy, active, seats, block, able = (
        state.held, state.owed, state.turn, state.ring, state.spill, state.busy, state.active, state.seats, state.block,
        state.able)  # fmt: skip
    leave, pair, target, cell, link, free, flow, whose, early = (
        state.leave, state.pair, state.target, state.cell, state.link, state.free, state.flow, state.whose,
        state.early)  # fmt: skip
    told, left, waiting, lengths, work, tally = (
        state.told, state.left, state.waiting, state.lengths, state.work, state.tally)  # fmt: skip
    n, channels, epoch, delay, w = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY], shift.size
    self_place, rules, ready_queues = numbers[SELF], numbers[RULES], numbers[READY_QUEUES]
    age_interval, shortest, half, depth = numbers[AGE_INTERVAL], numbers[SHORTEST], numbers[HALF], numbers[DEPTH]
    young = numbers[AGED] * age_interval  # slots in which a pair's age counts
    e, base = slot // epoch - tally[BASE], slot % epoch * channels
    air_of = slot % (delay + 1)
    words = early.shape[1]
    window = words * 64 - channels
    local_cells = forwarded = owing = ended_pairs = 0
    spare, longest, fullest = tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE]
    narrow = False

    for c in range(channels):
        p = base + c
        if first[p] >= last[p]:
            continue  # dark
        hop, r, sent, out = shift[at(p)], np.int64(mirror[at(p)]), state.sent[air_of, c], 0
        slot_r = slot_of[at(r)]
        if p == self_place:
            left[:] = 0
        workers = 0
        for b in range(active.size):
            todo = active[b] | busy[p, b]
            while todo != 0:
                work[at(workers)] = b * 64 + lowest(todo)
                workers += 1
                todo &= todo - _ONE
        if first[p] > 0 or last[p] < n:  # half of the nodes only: the others face nobody
            kept = 0
            for k in range(workers):
                if first[p] <= work[k] < last[p]:
                    work[kept] = work[k]
                    kept += 1
            workers = kept
        tally[VISITS] += workers
        for k in range(workers, workers + AHEAD):
            work[at(k)] = 0

        for k in range(workers):
            i = np.int64(work[at(k + AHEAD)])  # ahead: who may send, and the queue to report on
            prefetch(leave, (np.int64(seats[at(i), HOME]) * w + p) << BLOCK)
            prefetch(leave, (np.int64(seats[at(i), SECOND]) * w + p) << BLOCK)
            prefetch(held, np.int64(owed[at(p * n + i), WHERE]) * n + i)
            prefetch(ring, (p * n + i) * depth)

            i = np.int64(work[at(k)])
            q = p * n + i
            holds = held[at(q)]
            length = np.int64(holds & LENGTH)
            lengths[at(length if length < 255 else 255)] += 1
            local = holds & LOCAL_BIT
            ready = 0

            # The head of the queue, if it is not empty: nothing that happens below gets in front of it.
            head, what, full = np.int64(holds) >> HEAD_SHIFT & HEAD_BITS, _NONE, length > 0
            if full:
                what = ring[at(q * depth + head)]
                if length > depth:
                    spare = refill(ring, spill, cell, link, free, spare, q, head, depth)
                head = (head + 1) & (depth - 1)

            # Release: eq. (2) over the flows of this node, in turn.
            released = 0
            if seats[at(i), COUNT] > 0:
                many = np.int64(seats[at(i), BLOCKS])
                # Without ready queues, what is released on the way counts as well: every seat is looked at.
                limit = min(e + length, LATEST) if ready_queues else LATEST
                home = may_send(leave, able, np.int64(seats[at(i), HOME]), p, w, limit)
                ready = population(home)
                for x in range(1, many):
                    ready += population(may_send(leave, able, np.int64(block[at(i), at(x)]), p, w, limit))
                if ready > 0 and not (ready_queues and local):
                    since = np.int64(turn[at(q)])
                    begin = since >> BLOCK
                    later = _ALL << np.uint64(since & SEAT)
                    if begin >= many:
                        begin, later = 0, _ALL
                    for step in range(many + 1):  # the block of the turn comes twice: its end first, its beginning last
                        x = begin + step if begin + step < many else begin + step - many
                        who = home
                        if x > 0:
                            who = may_send(leave, able, np.int64(block[at(i), at(x)]), p, w, limit)
                        if step == 0:
                            who &= later
                        elif step == many:
                            who &= ~later
                        while who != 0:
                            seat = lowest(who)
                            who &= who - _ONE
                            h = (np.int64(block[at(i), at(x)]) << BLOCK) + seat
                            seen = length
                            if not ready_queues:
                                seen += released
                                if leave[at(subflow(h, p, w))] > e + seen:
                                    continue
                            aged = slot - pair[at(h), SINCE]
                            if seen > 1 and aged < young and seen > 1 << aged // age_interval:
                                continue
                            g = next_flow(pair, flow, h, shortest)
                            number = pair[at(h), SEQ]
                            narrow |= number - pair[at(h), WANT] >= window
                            pair[at(h), SEQ] = number + 1
                            leave[at(subflow(h, p, w))] = AWAY
                            new = _OWN | np.uint64(number & SEQ_BITS) << _SEQ | np.uint64(g)
                            if full:  # the head has been taken off
                                spare = append(
                                    ring, spill, cell, link, free, spare, q, head, length + released - 1, depth,
                                    new)  # fmt: skip
                            else:
                                what, full = new, True
                            released += 1
                            turn[at(q)] = (x << BLOCK) + seat + 1
                            if pair[at(h), SERVED] == 0:
                                able[at(h >> BLOCK)] &= ~(_ONE << np.uint64(seat))
                                seats[at(i), COUNT] -= 1
                                ended_pairs += 1
                            if ready_queues:
                                break
                        if ready_queues and released > 0:
                            break
                    if seats[at(i), COUNT] == 0:
                        active[at(i >> 6)] &= ~(_ONE << np.uint64(i & 63))
                ready = ready - released if ready_queues else 0
                length += released
                if length > longest:
                    longest = length
                waiting[at(i)] += released
                if waiting[at(i)] > fullest:
                    fullest = waiting[at(i)]

            # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
            debt, m = np.int64(owed[at(q), ABOUT_WHOM]), np.int64(owed[at(q), WHERE])
            if p == self_place:
                again, told[at(i), ABOUT_WHOM] = np.int64(told[at(i), ABOUT_WHOM]), debt
                before, told[at(i), WHERE] = np.int64(told[at(i), WHERE]), m
                if debt == 0:
                    debt, m = again, before
                elif again == 0:
                    owing += 1  # it will be said twice; else what was to be said again is not
            when = 0
            if debt != 0:
                owed[at(q), ABOUT_WHOM] = 0
                there = held[at(m * n + i)]
                ahead = np.int64(there & LENGTH) + np.int64(there >> READY_SHIFT)
                if rules == PAPER:
                    when = e + ahead - 1 + late[at(slot_of[at(m)] - slot_r + epoch)] + (1 if m < p else 0)
                else:
                    if target[at(debt - 1)] == i:  # it has arrived
                        ahead = 0
                    elif ready_queues and ahead > 0:
                        ahead -= 1
                    when = (slot + delay + epoch - slot_r) // epoch - tally[BASE] + ahead
                when = max(min(when, LATEST), 0)
                prefetch(leave, subflow(debt - 1, r, w))

            # What goes out: the head of the queue, or an empty cell. Where it goes to is asked for now, used later.
            if full:
                length -= 1
                waiting[at(i)] -= 1
                f, seq = np.int64(what & _FLOW), np.int64(what >> _SEQ) & SEQ_BITS
                h = np.int64(whose[at(f)])
                into = m = np.int64(0)
                if what & _OWN != 0:
                    local_cells += 1
                    local = LOCAL_BIT if released > 0 and length > 0 else 0
                    j = i + hop
                    if j >= n:
                        j -= n
                    d = np.int64(target[at(h)])
                    if d != j:
                        m = np.int64(place[at((n if j >= half else 0) + (d - j if d > j else d - j + n))])
                        into = m * n + j + 1
                        if p == self_place:
                            leave[at(subflow(h, p, w))] = SENT
                            left[at(i)] = h + 1
                    elif rules == PAPER:
                        leave[at(subflow(h, p, w))] = FREE_NOW
                else:
                    forwarded += 1
                    if released > 0:
                        local = LOCAL_BIT
                x = at(out)
                sent[x, FLOW], sent[x, SEQUENCE], sent[x, WHOSE], sent[x, FROM] = f, seq, h + 1, i
                sent[x, ABOUT], sent[x, WHEN], sent[x, INTO], sent[x, PLACE] = debt, when, into, m
                out += 1
            elif debt != 0:
                x = at(out)
                sent[x, WHOSE], sent[x, FROM], sent[x, ABOUT], sent[x, WHEN] = 0, i, debt, when
                out += 1
            held[at(q)] = length | head << HEAD_SHIFT | local | ready << READY_SHIFT
            # A count of ready flows must be looked at again, or it would stay.
            again = length > 0 or ready > 0 or (p == self_place and told[at(i), ABOUT_WHOM] != 0)
            mask = _ONE << np.uint64(i & 63)
            busy[at(p), at(i >> 6)] = busy[at(p), at(i >> 6)] & ~mask | (mask if again else _NONE)
        state.air[air_of, c] = out

    tally[LOCAL] += local_cells
    tally[FORWARDED] += forwarded
    tally[OWING] += owing
    tally[FLYING] += local_cells + forwarded
    tally[ACTIVE] -= ended_pairs
    tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE] = spare, longest, fullest
    return narrow


@bare
def receive(plan, state, slot):
    """Take in what was sent `delay` slots ago: first the feedback, then the cell."""
    numbers, shift, mirror = plan.numbers, plan.shift, plan.mirror
    held, owed, ring, spill, busy, leave, target, cell, link, pair, flow = (
        state.held, state.owed, state.ring, state.spill, state.busy, state.leave, state.target, state.cell, state.link,
        state.pair, state.flow)  # fmt: skip
    tally, print_, waiting, incast, outcast, left, free, received, early = (
        state.tally, state.print, state.waiting, state.incast, state.outcast, state.left, state.free,
        state.received, state.early)  # fmt: skip
    n, channels, epoch, delay = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY]
    self_place, rules, ready_queues = numbers[SELF], numbers[RULES], numbers[READY_QUEUES]
    w, depth, words = shift.size, numbers[DEPTH], early.shape[1]
    air_of = (slot + 1) % (delay + 1)
    base = (slot - delay) % epoch * channels
    first_channel = self_place - base if base <= self_place < base + channels else 0
    longest, fullest = tally[MAX_QUEUE], tally[MAX_NODE]
    spare, most_held = tally[FREE], tally[MAX_HELD]
    inflow, inflow_since, inflow_slots, living, rest, rested = (
        state.inflow, state.inflow_since, state.inflow_slots, state.living, state.rest, state.rested)  # fmt: skip
    over = over_subflow = flying = owing = delivered = relayed = 0
    seen, known = print_[0], print_[1]

    for turn in range(channels):
        # The self-mirrored link goes first: its sender counts on no stranger's cell coming between.
        if turn == 0:
            c = first_channel
        else:
            c = turn if turn > first_channel else turn - 1
        p = base + c
        s, r = np.int64(shift[p]), np.int64(mirror[p])
        sent, senders = state.sent[air_of, c], state.air[air_of, c]
        state.air[air_of, c] = 0
        for k in range(senders):
            x = at(min(k + FAR, n - 1))  # ahead: where the cell goes, without a branch, and the subflow it speaks of
            h, into = np.int64(sent[x, WHOSE]), np.int64(sent[x, INTO])
            arrives = h > 0 and into == 0
            prefetch(pair, (h - 1) * 8 if arrives else 0)
            prefetch(flow, np.int64(sent[x, FLOW]) * 4 if arrives else 0)
            bits = (np.int64(sent[x, SEQUENCE]) & (words * 64 - 1)) >> 6
            prefetch(early, (h - 1) * words + bits if arrives else 0)
            prefetch(ring, (into - 1) * depth if into > 0 else 0)
            prefetch(held, into - 1 if into > 0 else 0)
            x = at(k)
            i = np.int64(sent[x, FROM])
            j = i + s
            if j >= n:
                j -= n
            h = np.int64(sent[x, ABOUT]) - 1
            if h >= 0:
                owing += 1
                if p != self_place:
                    leave[at(subflow(h, r, w))] = sent[x, WHEN]
                elif leave[at(subflow(h, r, w))] != AWAY:  # else it is about an earlier cell than the one that waits
                    when = np.int64(sent[x, WHEN]) + (1 if left[at(j)] == h + 1 else 0)
                    leave[at(subflow(h, r, w))] = min(when, LATEST)
            h = np.int64(sent[x, WHOSE]) - 1
            if h < 0:
                continue
            flying += 1
            f, seq = np.int64(sent[x, FLOW]), np.int64(sent[x, SEQUENCE])
            q = np.int64(sent[x, INTO]) - 1
            if q >= 0:
                holds = np.int64(held[at(q)])
                length, head = holds & LENGTH, holds >> HEAD_SHIFT & HEAD_BITS
                if rules == LITERAL:
                    for other in range(length):
                        if state.whose[nth(ring, spill, cell, link, q, head, depth, other) & _FLOW] == h:
                            over_subflow += 1
                            break
                new = np.uint64(seq) << _SEQ | np.uint64(f)
                spare = append(ring, spill, cell, link, free, spare, q, head, length, depth, new)
                held[at(q)] += 1
                mask = _ONE << np.uint64(j & 63)
                busy[sent[x, PLACE], at(j >> 6)] |= mask
                owed[at(r * n + j), ABOUT_WHOM], owed[at(r * n + j), WHERE] = h + 1, sent[x, PLACE]
                busy[at(r), at(j >> 6)] |= mask
                owing -= 1
                relayed += 1
                waiting[at(j)] += 1
                if length >= longest:
                    longest = length + 1
                if waiting[at(j)] > fullest:
                    fullest = waiting[at(j)]
                if length >= incast[target[at(h)]] + (1 if ready_queues else outcast[at(j)]):
                    over += 1
                seen, known = folded(seen, known, slot, f << 20 | j << 2)
                continue
            if pair[at(h), SOURCE] == i:
                seen, known = folded(seen, known, slot, f << 20 | j << 2 | 1)
                if rules == LITERAL:
                    owed[at(r * n + j), ABOUT_WHOM], owed[at(r * n + j), WHERE] = h + 1, r
                    busy[at(r), at(j >> 6)] |= _ONE << np.uint64(j & 63)
                    owing -= 1
            else:
                seen, known = folded(seen, known, slot, f << 20 | j << 2 | 2)
            delivered += 1
            received[at(j)] += 1
            ahead = reorder(pair, early, h, seq)
            if ahead > most_held:
                most_held = ahead
            flow[at(f), DELIVER] -= 1
            if flow[at(f), DELIVER] == 0:
                flow[at(f), FINISH] = slot
                tally[FINISHED] += 1
                inflow[j] -= 1
                if inflow[j] == 0:
                    inflow_slots[j] += slot + 1 - inflow_since[j]
            pair[at(h), UNDELIVERED] -= 1
            if pair[at(h), UNDELIVERED] == 0:
                end_pair(pair, living, h)
                incast[j] -= 1
                outcast[pair[at(h), SOURCE]] -= 1
                tally[LIVE] -= 1
                rest[tally[REST_TAIL] % rest.size] = h
                rested[tally[REST_TAIL] % rest.size] = slot + 2 * (epoch + delay + 1)
                tally[REST_TAIL] += 1

    tally[FREE], tally[MAX_HELD] = spare, most_held
    tally[DELIVERED] += delivered
    tally[RELAYED] += relayed
    print_[0], print_[1] = seen, known
    tally[FLYING] -= flying
    tally[OWING] -= owing
    tally[MAX_QUEUE], tally[MAX_NODE] = longest, fullest
    tally[OVER_BOUND] += over
    tally[OVER_SUBFLOW] += over_subflow


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


@inlined
def reorder(pair, early, h, seq):
    """Note that cell `seq` of pair h has arrived; returns how many of the pair now wait for an earlier one."""
    size = early.shape[1] * 64  # a power of two
    pair[at(h), GOT] += 1
    due = pair[at(h), WANT]
    ahead = (seq - due) << 33 >> 33  # cells are numbered in 31 bits
    if ahead != 0:
        k = (due + ahead) & (size - 1)
        early[at(h), at(k >> 6)] |= _ONE << np.uint64(k & 63)
        return pair[at(h), GOT] - due
    due += 1
    while True:  # a word at a time: as many bits as are set without a gap
        k = due & (size - 1)
        word, skip = early[at(h), at(k >> 6)], np.uint64(k & 63)
        gap = ~(word >> skip)
        run = 64 - (k & 63) if gap == 0 else min(lowest(gap), 64 - (k & 63))
        if run == 0:
            break
        early[at(h), at(k >> 6)] = word & ~(_ALL >> np.uint64(64 - run) << skip)
        due += run
        if run < 64 - (k & 63):
            break
    pair[at(h), WANT] = due
    return pair[at(h), GOT] - due


@inlined
def end_pair(pair, living, h):
    """Take pair h out of the chain of its source's living pairs."""
    i = pair[at(h), SOURCE]
    if living[at(i)] == h + 1:
        living[at(i)] = pair[at(h), NEXT]
        return
    g = living[at(i)] - 1
    while pair[at(g), NEXT] != h + 1:
        g = pair[at(g), NEXT] - 1
    pair[at(g), NEXT] = pair[at(h), NEXT]


@bare
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
            for i in range(sent.shape[2]):
                sent[a, c, i, WHEN] = max(np.int64(sent[a, c, i, WHEN]) - past, 0)
    tally[BASE] = epoch


@bare
def advance(plan, state, until, budget):
    """Simulate slots before `until`, or until every flow has finished or `budget` visits are spent; says which."""
    tally, start, numbers = state.tally, plan.start, plan.numbers
    n, channels, ready_queues = numbers[N], numbers[CHANNELS], numbers[READY_QUEUES]
    visits, slots = tally[VISITS] + budget, tally[SLOTS] + budget
    while tally[SLOT] < until:
        if tally[FINISHED] == start.size:
            return DONE
        quiet = tally[ACTIVE] == 0 and tally[LIVE] == 0 and tally[OWING] == 0 and tally[FLYING] == 0
        if quiet and start[tally[STARTED]] > tally[SLOT]:
            tally[SLOT] = min(start[tally[STARTED]], until)  # nothing can happen before
            continue
        if not start_flows(plan, state):
            return MORE_PAIRS
        if tally[FREE] < channels * (n + (n if ready_queues else max(n, tally[ACTIVE]))):
            return MORE_CELLS
        slot = tally[SLOT]
        if slot // numbers[EPOCH] - tally[BASE] >= REBASE:
            rebase(state, slot // numbers[EPOCH])
        narrow = send(plan, state, slot)
        receive(plan, state, slot)
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
    for p in range(busy.shape[0]):
        for b in range(busy.shape[1]):
            todo = busy[p, b]
            while todo != 0:
                q = p * n + b * 64 + lowest(todo)
                todo &= todo - _ONE
                length, head = np.int64(held[q]) & LENGTH, np.int64(held[q]) >> HEAD_SHIFT & HEAD_BITS
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
    lost += abs(tally[LOCAL] + tally[FORWARDED] - tally[FLYING] - tally[RELAYED] - tally[DELIVERED])
    return twice, lost
