"""Shoal, one slot at a time: flows start, every node sends on each channel, what has travelled arrives (§3.3).

The legend: i sender, j receiver, d final destination, f application flow, h pair (the paper's flow), p place in the
epoch (see `schedule.rotation`), c channel, q = p * n + i the link of node i in place p.

Backpressure is lazy. For each subflow we keep the epoch from which a cell may *leave* the source: eq. (2) then reads
`epoch + length >= leave`, and nothing is counted down. How `leave` follows from a feedback is in `notes.md`.

A busy rack waits for memory, not for arithmetic. So links lie at [p, i] and a slot walks them in order; what is used
together shares a cache line (a queue 8 bytes, a pair 64, a flow 32, a cell 16); arrays are flat; and both phases first
list who has anything to do, then ask for the lines of those a few places ahead.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.bits import lowest, prefetch
from weft.engine.fingerprint import fold
from weft.engine.jit import bare, inlined

PAPER, LITERAL = 0, 1

OUT = 1 << 30  # leave: a cell waits at the source, or (except on self-mirrored links) nothing was heard of it yet
SENT = OUT + 1  # leave, on a self-mirrored link: the cell has left and nothing was heard of it yet
OWN = 1 << 30  # flag of a cell number: the sender's own cell, on its first hop
NUMBER = OWN - 1

LENGTH, LOCAL_BIT, READY_SHIFT = 0xFFFF, 1 << 16, 17  # what a queue holds: cells, if one is local, flows ready

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


N, CHANNELS, EPOCH, DELAY, SELF, RULES, READY_QUEUES, AGE_INTERVAL, AGED, SHORTEST, HALF = range(11)
NUMBERS = 11


class State(NamedTuple):
    """What a slot may change. m pairs at most, r cells at most, b words of 64 nodes, a = delay + 1."""

    queue: np.ndarray  # (w * n, 4) uint32  [q]     see the names below
    turn: np.ndarray  # (w * n,) uint16     [q]     where in i's list of pairs the round robin goes on
    told: np.ndarray  # (n,) uint32         [i]     1 + pair reported an epoch ago on the self-mirrored link
    left: np.ndarray  # (n,) uint32         [i]     1 + pair of the own cell that left on the self-mirrored link now
    busy: np.ndarray  # (w, b) uint64      [p]     nodes with a cell to send, a feedback to give or a count to mend in p
    active: np.ndarray  # (b,) uint64              nodes with cells left to release
    pairs: np.ndarray  # (n, n) uint32      [i, k]  i's pairs with cells left to release, oldest first
    count: np.ndarray  # (n,) uint32        [i]     how many those are
    living: np.ndarray  # (n,) uint32       [i]     1 + first of i's pairs that have undelivered cells
    leave: np.ndarray  # (m, w) int32      [h, p]  epoch from which the next cell of the subflow may leave
    pair: np.ndarray  # (m, 8) int64       [h]     see the names below
    target: np.ndarray  # (m,) uint32       [h]     destination
    early: np.ndarray  # (m, x) uint64     [h]     which of the 64x cells after WANT have arrived, as a ring of bits
    rest: np.ndarray  # (m,) int64                 pairs that have ended, in that order; a ring
    rested: np.ndarray  # (m,) int64               slot from which each may be used again: no feedback is under way
    cell: np.ndarray  # (r, 4) uint32       [c]     next in queue, flow, pair, seq
    free: np.ndarray  # (r,) uint32                 cells not in use, a stack
    air_cell: np.ndarray  # (a, c, n) uint32        1 + cell each node sent, by slot modulo a
    air_pair: np.ndarray  # (a, c, n) uint32        1 + pair whose feedback it carries
    air_leave: np.ndarray  # (a, c, n) int32       the feedback, as the epoch from which that subflow may send again
    air: np.ndarray  # (a, c, b) uint64            who sent anything
    flow: np.ndarray  # (flows, 4) int64   [f]     see the names below
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


# queue: what it holds (see above); its first and last cell; 1 + pair of the last cell from the peer, until its feedback
# is sent
HELD, HEAD, TAIL, OWED = range(4)
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
    PAIRS_USED,  # pairs never used begin here
    MAX_QUEUE,
    MAX_NODE,
    MAX_HELD,
    OVER_BOUND,  # monitor: pushes that made a queue longer than eq. (5), or (3)
    OVER_SUBFLOW,  # monitor: cells that met another of their subflow in a queue
    LIVE,  # pairs with undelivered cells
) = range(21)
TALLY = 21

_ONE = np.uint64(1)
AHEAD, FAR = 4, 12  # how many nodes that send, and cells that arrive, ahead of the one at work we ask for memory


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
def start_flows(plan, state):
    """Start every flow whose slot has come. False if there is no room for another pair."""
    numbers, src, dst, cells, start = plan.numbers, plan.src, plan.dst, plan.cells, plan.start
    tally, pair, target, living, flow = state.tally, state.pair, state.target, state.living, state.flow
    rest, rested, leave, early, count = state.rest, state.rested, state.leave, state.early, state.count
    slot = tally[SLOT]
    while tally[STARTED] < start.size and start[tally[STARTED]] <= slot:
        f = tally[STARTED]
        i, d = src[f], dst[f]
        h = living[i] - 1
        while h >= 0 and target[h] != d:
            h = pair[h, NEXT] - 1
        if h < 0:
            if tally[REST_HEAD] < tally[REST_TAIL] and rested[tally[REST_HEAD] % rest.size] <= slot:
                h = rest[tally[REST_HEAD] % rest.size]
                tally[REST_HEAD] += 1
            elif tally[PAIRS_USED] < rest.size:
                h = tally[PAIRS_USED]
                tally[PAIRS_USED] += 1
            else:
                return False
            pair[h, :] = 0
            pair[h, SOURCE], pair[h, NEXT], target[h] = i, living[i], d
            living[i] = h + 1
            leave[h, :] = 0
            early[h, :] = 0
            state.incast[d] += 1
            state.outcast[i] += 1
            tally[LIVE] += 1
        if pair[h, SERVED] == 0:  # nothing left to release: it becomes busy now
            state.pairs[i, count[i]] = h
            count[i] += 1
            state.active[i >> 6] |= _ONE << np.uint64(i & 63)
            pair[h, SINCE] = slot
            tally[ACTIVE] += 1
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
    before = pair[h, SERVED] - 1
    f = flow[before, AFTER]
    flow[f, RELEASE] -= 1
    if flow[f, RELEASE] == 0:
        if f == before:
            pair[h, SERVED] = 0
        else:
            flow[before, AFTER] = flow[f, AFTER]
    elif not shortest:
        pair[h, SERVED] = f + 1
    return f


@inlined
def forget(pairs, count, active, i, at):
    """Take the pair at position `at` off node i's list; it has nothing left to release."""
    for k in range(at, count[i] - 1):
        pairs[i, k] = pairs[i, k + 1]
    count[i] -= 1
    if count[i] == 0:
        active[i >> 6] &= ~(_ONE << np.uint64(i & 63))


@inlined
def look_ahead(queue, leave, pairs, count, cell, target, pair, place, i, base, channels, n, half):
    """Ask for the cache lines that node i's own point to: its pairs, its cells, the queues it must report on."""
    w = leave.shape[1]
    for k in range(min(count[i], 4)):
        prefetch(leave, np.int64(pairs[i, k]) * w + base)
        prefetch(pair, np.int64(pairs[i, k]) * 8)
    for c in range(channels):
        q = (base + c) * n + i
        prefetch(cell, (np.int64(queue[q, HEAD]) & NUMBER) * 4)
        h = np.int64(queue[q, OWED]) - 1
        if h >= 0:
            d = np.int64(target[h])
            m = np.int64(place[(n if i >= half else 0) + (d - i if d >= i else d - i + n)])
            prefetch(queue, (m * n + i) * 4)


@bare
def send(plan, state, slot):
    """Every node that has anything to do works through its channels; what it sends goes into the air."""
    numbers, shift, first, last, mirror, place, slot_of, late, _, _, _, _ = plan
    queue, turn, busy, active, pairs, count = (
        state.queue, state.turn, state.busy, state.active, state.pairs, state.count)  # fmt: skip
    leave, pair, target, cell, free, flow = (
        state.leave, state.pair, state.target, state.cell, state.free, state.flow)  # fmt: skip
    told, left, waiting, lengths, work, tally = (
        state.told, state.left, state.waiting, state.lengths, state.work, state.tally)  # fmt: skip
    n, channels, epoch, delay = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY]
    self_place, rules, ready_queues = numbers[SELF], numbers[RULES], numbers[READY_QUEUES]
    age_interval, aged, shortest, half = numbers[AGE_INTERVAL], numbers[AGED], numbers[SHORTEST], numbers[HALF]
    e, base = slot // epoch, slot % epoch * channels
    ring = slot % (delay + 1)
    air_cell, air_pair, air_leave, air = (
        state.air_cell[ring], state.air_pair[ring], state.air_leave[ring], state.air[ring])  # fmt: skip
    window = state.early.shape[1] * 64 - channels
    visits = local_cells = forwarded = owing = flying = ended_pairs = 0
    spare, longest, fullest = tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE]
    narrow = False

    workers = 0
    for b in range(active.size):
        todo = active[b]
        for c in range(channels):
            todo |= busy[base + c, b]
        while todo != 0:
            work[workers] = b * 64 + lowest(todo)
            workers += 1
            todo &= todo - _ONE

    for at_work in range(-2 * AHEAD, workers):
        if at_work + 2 * AHEAD < workers:
            i = np.int64(work[at_work + 2 * AHEAD])
            for c in range(channels):
                prefetch(queue, ((base + c) * n + i) * 4)
            prefetch(pairs, i * n)
        if 0 <= at_work + AHEAD < workers:
            i = np.int64(work[at_work + AHEAD])
            look_ahead(queue, leave, pairs, count, cell, target, pair, place, i, base, channels, n, half)
        if at_work < 0:
            continue
        i = np.int64(work[at_work])
        b = i >> 6
        mask = _ONE << np.uint64(i & 63)
        home = n if i >= half else 0
        for c in range(channels):
            p = base + c
            if i < first[p] or i >= last[p]:
                continue
            sources = count[i]
            if sources == 0 and busy[p, b] & mask == 0:
                continue
            visits += 1
            q = p * n + i
            held = queue[q, HELD]
            length = held & LENGTH
            lengths[length if length < 255 else 255] += 1
            local = held & LOCAL_BIT
            ready = 0

            # Release: eq. (2) over the flows of this node, in turn.
            if sources > 0:
                at = np.int64(turn[q])
                if at >= sources:
                    at = 0
                seen = length
                ended = -1
                for _ in range(sources):
                    h = np.int64(pairs[i, at])
                    if leave[h, p] <= e + seen:
                        age = aged
                        if seen > 1 and age_interval > 0:
                            age = (slot - pair[h, SINCE]) // age_interval
                        if (ready_queues and local) or (age < aged and seen > 1 << age):
                            ready += 1
                        else:
                            f = next_flow(pair, flow, h, shortest)
                            spare -= 1
                            number = np.int64(free[spare])
                            seq = pair[h, SEQ]
                            if seq - pair[h, WANT] >= window:
                                narrow = True
                            pair[h, SEQ] = seq + 1
                            cell[number, 1], cell[number, 2], cell[number, 3] = f, h, seq
                            leave[h, p] = OUT
                            if length == 0:
                                queue[q, HEAD] = number | OWN
                            else:
                                cell[queue[q, TAIL], 0] = number | OWN
                            queue[q, TAIL] = number
                            length += 1
                            waiting[i] += 1
                            local = LOCAL_BIT
                            turn[q] = at + 1 if at + 1 < sources else 0
                            if pair[h, SERVED] == 0:
                                ended = at
                            if not ready_queues:
                                seen = length
                    at += 1
                    if at == sources:
                        at = 0
                if ended >= 0:
                    if ready_queues:
                        forget(pairs, count, active, i, ended)
                        ended_pairs += 1
                    else:
                        for k in range(sources - 1, -1, -1):
                            if pair[pairs[i, k], SERVED] == 0:
                                forget(pairs, count, active, i, k)
                                ended_pairs += 1
                if length > longest:
                    longest = length
                if waiting[i] > fullest:
                    fullest = waiting[i]
                if not ready_queues:
                    ready = 0

            # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
            debt = np.int64(queue[q, OWED])
            if p == self_place:
                again = np.int64(told[i])
                told[i] = debt
                if debt == 0:
                    debt = again
                elif again == 0:
                    owing += 1  # it will be said twice; else what was to be said again is not
                left[i] = 0
            air_pair[c, i] = debt
            if debt != 0:
                queue[q, OWED] = 0
                d = np.int64(target[debt - 1])
                if d == i:  # literal rules: it has arrived
                    ahead = 0
                    m = p
                else:
                    m = np.int64(place[home + (d - i if d > i else d - i + n)])
                    there = queue[m * n + i, HELD]
                    ahead = (there & LENGTH) + (there >> READY_SHIFT)
                r = np.int64(mirror[p])
                if rules == PAPER:
                    air_leave[c, i] = (
                        e + ahead - 1 + late[slot_of[m] - slot_of[r] + epoch] + (1 if m < p else 0))  # fmt: skip
                else:
                    if ready_queues and d != i and ahead > 0:
                        ahead -= 1
                    air_leave[c, i] = (slot + delay + epoch - slot_of[r]) // epoch + ahead

            # The head of the queue, or an empty cell.
            if length > 0:
                number = np.int64(queue[q, HEAD])
                if length > 1:
                    queue[q, HEAD] = cell[number & NUMBER, 0]
                length -= 1
                waiting[i] -= 1
                flying += 1
                if number & OWN:
                    local_cells += 1
                    if ready_queues:
                        local = 0
                    h = np.int64(cell[number & NUMBER, 2])
                    if rules == PAPER:
                        j = i + shift[p]
                        if j >= n:
                            j -= n
                        if target[h] == j:
                            leave[h, p] = 0
                        elif p == self_place:
                            leave[h, p] = SENT
                            left[i] = h + 1
                else:
                    forwarded += 1
                air_cell[c, i] = number + 1
                air[c, b] |= mask
            else:
                air_cell[c, i] = 0
                if debt != 0:
                    air[c, b] |= mask
            queue[q, HELD] = length | local | ready << READY_SHIFT
            if length > 0 or ready > 0 or (p == self_place and told[i] != 0):
                busy[p, b] |= mask  # a count of ready flows must be looked at again, or it would stay
            else:
                busy[p, b] &= ~mask

    tally[VISITS] += visits
    tally[LOCAL] += local_cells
    tally[FORWARDED] += forwarded
    tally[OWING] += owing
    tally[FLYING] += flying
    tally[ACTIVE] -= ended_pairs
    tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE] = spare, longest, fullest
    return narrow




@bare
def receive(plan, state, slot):
    """Take in what was sent `delay` slots ago: first the feedback, then the cell."""
    numbers, shift, _, _, mirror, place, _, _, _, _, _, _ = plan
    queue, busy, leave, target, cell, pair, flow, work = (
        state.queue, state.busy, state.leave, state.target, state.cell, state.pair, state.flow,
        state.work)  # fmt: skip
    tally, print_, waiting, incast, outcast, left, free, received, early = (
        state.tally, state.print, state.waiting, state.incast, state.outcast, state.left, state.free,
        state.received, state.early)  # fmt: skip
    n, channels, epoch, delay = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY]
    self_place, rules, ready_queues, half = numbers[SELF], numbers[RULES], numbers[READY_QUEUES], numbers[HALF]
    w, words = shift.size, early.shape[1]
    ring = (slot + 1) % (delay + 1)
    base = (slot - delay) % epoch * channels
    air_cell, air_pair, air_leave, air = (
        state.air_cell[ring], state.air_pair[ring], state.air_leave[ring], state.air[ring])  # fmt: skip
    first_channel = self_place - base if base <= self_place < base + channels else 0
    longest, fullest = tally[MAX_QUEUE], tally[MAX_NODE]
    spare, most_held = tally[FREE], tally[MAX_HELD]
    inflow, inflow_since, inflow_slots, living, rest, rested = (
        state.inflow, state.inflow_since, state.inflow_slots, state.living, state.rest, state.rested)  # fmt: skip
    over = over_subflow = flying = owing = delivered = 0

    for k in range(channels):
        # The self-mirrored link goes first: its sender counts on no stranger's cell coming between.
        if k == 0:
            c = first_channel
        else:
            c = k if k > first_channel else k - 1
        p = base + c
        s, r = np.int64(shift[p]), np.int64(mirror[p])
        senders = 0
        for b in range(air.shape[1]):
            todo = air[c, b]
            air[c, b] = 0
            while todo != 0:
                work[senders] = b * 64 + lowest(todo)
                senders += 1
                todo &= todo - _ONE
        for at_work in range(senders + 2 * FAR):
            if at_work < senders:  # far ahead: the cell and the subflow it speaks of
                i = np.int64(work[at_work])
                prefetch(cell, ((air_cell[c, i] - 1) & NUMBER) * 4)
                prefetch(leave, (air_pair[c, i] - 1 if air_pair[c, i] > 0 else 0) * w + r)
            if FAR <= at_work < senders + FAR:  # nearer: where the cell goes
                i = np.int64(work[at_work - FAR])
                number = np.int64(air_cell[c, i]) - 1
                if number >= 0:
                    h = np.int64(cell[number & NUMBER, 2])
                    d = np.int64(target[h])
                    j = i + s
                    if j >= n:
                        j -= n
                    if d == j:
                        prefetch(pair, h * 8)
                        prefetch(flow, cell[number & NUMBER, 1] * 4)
                        prefetch(early, h * words + ((np.int64(cell[number & NUMBER, 3]) & (words * 64 - 1)) >> 6))
                    else:
                        m = np.int64(place[(n if j >= half else 0) + (d - j if d > j else d - j + n)])
                        prefetch(queue, (m * n + j) * 4)
            if at_work < 2 * FAR:
                continue
            i = np.int64(work[at_work - 2 * FAR])
            j = i + s
            if j >= n:
                j -= n
            h = np.int64(air_pair[c, i]) - 1
            if h >= 0:
                owing += 1
                if p != self_place:
                    leave[h, r] = air_leave[c, i]
                elif leave[h, r] != OUT:  # else it is about an earlier cell than the one that waits
                    leave[h, r] = air_leave[c, i] + (1 if left[j] == h + 1 else 0)
            number = np.int64(air_cell[c, i]) - 1
            if number < 0:
                continue
            flying += 1
            own = number & OWN
            number &= NUMBER
            f, h = np.int64(cell[number, 1]), np.int64(cell[number, 2])
            d = np.int64(target[h])
            if own and d != j:
                m = np.int64(place[(n if j >= half else 0) + (d - j if d > j else d - j + n)])
                q = m * n + j
                length = queue[q, HELD] & LENGTH
                if length == 0:
                    queue[q, HEAD] = number
                else:
                    if rules == LITERAL:
                        over_subflow += repeats(cell, queue[q, HEAD], length, h)
                    cell[queue[q, TAIL], 0] = number
                queue[q, TAIL] = number
                queue[q, HELD] += 1
                mask = _ONE << np.uint64(j & 63)
                busy[m, j >> 6] |= mask
                queue[r * n + j, OWED] = h + 1
                busy[r, j >> 6] |= mask
                owing -= 1
                waiting[j] += 1
                if length >= longest:
                    longest = np.int64(length) + 1
                if waiting[j] > fullest:
                    fullest = waiting[j]
                if length >= incast[d] + (1 if ready_queues else outcast[j]):
                    over += 1
                fold(print_, slot, f << 20 | j << 2)
                continue
            if own:
                fold(print_, slot, f << 20 | j << 2 | 1)
                if rules == LITERAL:
                    queue[r * n + j, OWED] = h + 1
                    busy[r, j >> 6] |= _ONE << np.uint64(j & 63)
                    owing -= 1
            else:
                fold(print_, slot, f << 20 | j << 2 | 2)
            free[spare] = number
            spare += 1
            delivered += 1
            received[j] += 1
            held = reorder(pair, early, h, cell[number, 3])
            if held > most_held:
                most_held = held
            flow[f, DELIVER] -= 1
            if flow[f, DELIVER] == 0:
                flow[f, FINISH] = slot
                tally[FINISHED] += 1
                inflow[j] -= 1
                if inflow[j] == 0:
                    inflow_slots[j] += slot + 1 - inflow_since[j]
            pair[h, UNDELIVERED] -= 1
            if pair[h, UNDELIVERED] == 0:
                end_pair(pair, living, h)
                incast[j] -= 1
                outcast[pair[h, SOURCE]] -= 1
                tally[LIVE] -= 1
                rest[tally[REST_TAIL] % rest.size] = h
                rested[tally[REST_TAIL] % rest.size] = slot + 2 * (epoch + delay + 1)
                tally[REST_TAIL] += 1

    tally[FREE], tally[MAX_HELD] = spare, most_held
    tally[DELIVERED] += delivered
    tally[FLYING] -= flying
    tally[OWING] -= owing
    tally[MAX_QUEUE], tally[MAX_NODE] = longest, fullest
    tally[OVER_BOUND] += over
    tally[OVER_SUBFLOW] += over_subflow


@inlined
def repeats(cell, head, length, h):
    """1 if a cell of pair h is among the `length` cells that begin with `head`, else 0."""
    number = head
    for _ in range(length):
        if cell[number & NUMBER, 2] == h:
            return 1
        number = cell[number & NUMBER, 0]
    return 0


@inlined
def reorder(pair, early, h, seq):
    """Note that cell `seq` of pair h has arrived; returns how many of the pair now wait for an earlier one."""
    size = early.shape[1] * 64  # a power of two
    pair[h, GOT] += 1
    due = pair[h, WANT]
    ahead = np.int64(np.int32(seq - np.int32(due)))
    if ahead != 0:
        k = (due + ahead) & (size - 1)
        early[h, k >> 6] |= _ONE << np.uint64(k & 63)
        return pair[h, GOT] - due
    due += 1
    while True:
        k = due & (size - 1)
        word, mask = early[h, k >> 6], _ONE << np.uint64(k & 63)
        if word & mask == 0:
            break
        early[h, k >> 6] = word & ~mask
        due += 1
    pair[h, WANT] = due
    return pair[h, GOT] - due


@inlined
def end_pair(pair, living, h):
    """Take pair h out of the chain of its source's living pairs."""
    i = pair[h, SOURCE]
    if living[i] == h + 1:
        living[i] = pair[h, NEXT]
        return
    g = living[i] - 1
    while pair[g, NEXT] != h + 1:
        g = pair[g, NEXT] - 1
    pair[g, NEXT] = pair[h, NEXT]


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
        if tally[FREE] < channels * (n if ready_queues else max(n, tally[ACTIVE])):
            return MORE_CELLS
        slot = tally[SLOT]
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
    queue, cell, waiting, tally, busy = state.queue, state.cell, state.waiting, state.tally, state.busy
    n, ready_queues = plan.numbers[N], plan.numbers[READY_QUEUES]
    twice = lost = queued = 0
    for p in range(busy.shape[0]):
        for b in range(busy.shape[1]):
            todo = busy[p, b]
            while todo != 0:
                q = p * n + b * 64 + lowest(todo)
                todo &= todo - _ONE
                length = queue[q, HELD] & LENGTH
                queued += length
                if length < 2:
                    continue
                number = queue[q, HEAD]
                own = 0
                for k in range(length):
                    own += 1 if number & OWN else 0
                    other = cell[number & NUMBER, 0]
                    for _ in range(k + 1, length):
                        if cell[other & NUMBER, 2] == cell[number & NUMBER, 2]:
                            twice += 1
                        other = cell[other & NUMBER, 0]
                    if k == length - 1 and number & NUMBER != queue[q, TAIL]:
                        lost += 1
                    number = cell[number & NUMBER, 0]
                if ready_queues and own > 1:
                    lost += 1
    total = np.int64(0)
    for i in range(n):
        total += waiting[i]
    in_use = cell.shape[0] - tally[FREE]
    lost += abs(total - queued) + abs(in_use - queued - tally[FLYING])
    return twice, lost
