"""Shoal, one slot at a time: flows start, every node sends on each channel, what has travelled arrives (§3.3).

The legend: i sender, j receiver, d final destination, f application flow, h pair (the paper's flow), p place in the
epoch (see `schedule.rotation`), c channel. Per-link state lies at [p, i], so a slot walks memory in order.

Backpressure is lazy. For each subflow we keep the epoch from which a cell may *leave* the source: eq. (2) then reads
`epoch + length >= leave`, and nothing is counted down. How `leave` follows from a feedback is in `notes.md`.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.bits import lowest
from weft.engine.fingerprint import fold
from weft.engine.jit import kernel

PAPER, LITERAL = 0, 1

OUT = 1 << 30  # leave: a cell waits at the source, or (except on self-mirrored links) nothing was heard of it yet
SENT = OUT + 1  # leave, on a self-mirrored link: the cell has left and nothing was heard of it yet
OWN = 1 << 30  # flag of a cell number: the sender's own cell, on its first hop
NUMBER = OWN - 1
LENGTH = 0xFFFF  # low half of queue[…, 0]; the high half counts the flows that are ready

# What `advance` returns: why it stopped.
REACHED, SPENT, DONE, MORE_CELLS, MORE_PAIRS, MORE_WINDOW = range(6)


class Plan(NamedTuple):
    """What no slot changes. w places in an epoch, n nodes."""

    numbers: np.ndarray  # (NUMBERS,) int64  see the names below
    shift: np.ndarray  # (w,) int32      [p]     how far everybody sends, 0 for dark
    first: np.ndarray  # (w,) int32      [p]     the nodes that send in p are first <= i < last
    last: np.ndarray  # (w,) int32
    mirror: np.ndarray  # (w,) int32     [p]     where the other direction stands
    place: np.ndarray  # (2, n) int32    [u, s]  where shift s stands for the lower or upper half of the nodes
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

    queue: np.ndarray  # (w, n, 4) int32  [p, i]  length | ready << 16; turn | local << 30; first cell; last cell
    owed: np.ndarray  # (w, n) int32      [p, i]  1 + pair of the last cell from the peer, until its feedback is sent
    told: np.ndarray  # (n,) int32        [i]     1 + pair reported an epoch ago on the self-mirrored link
    left: np.ndarray  # (n,) int32        [i]     1 + pair of the own cell that left on the self-mirrored link now
    busy: np.ndarray  # (w, b) uint64     [p]     nodes that have a cell to send or a feedback to give in p
    active: np.ndarray  # (b,) uint64             nodes with cells left to release
    pairs: np.ndarray  # (n, n) int32     [i, k]  i's pairs with cells left to release, oldest first
    count: np.ndarray  # (n,) int32       [i]     how many those are
    living: np.ndarray  # (n,) int32      [i]     1 + first of i's pairs that have undelivered cells
    leave: np.ndarray  # (m, w) int32     [h, p]  epoch from which the next cell of the subflow may leave
    source: np.ndarray  # (m,) int32      [h]
    target: np.ndarray  # (m,) int32      [h]
    next: np.ndarray  # (m,) int32        [h]     1 + next living pair of the same source
    turn: np.ndarray  # (m,) int64        [h]     1 + application flow served last; its `after` is served next; 0 none
    since: np.ndarray  # (m,) int64       [h]     slot in which it became busy
    seq: np.ndarray  # (m,) int64         [h]     cells released
    want: np.ndarray  # (m,) int64        [h]     every cell before this one has arrived
    got: np.ndarray  # (m,) int64         [h]     cells arrived
    undelivered: np.ndarray  # (m,) int64 [h]     cells not yet arrived
    early: np.ndarray  # (m, x) uint64    [h]     which of the 64x cells after `want` have arrived, as a ring of bits
    rest: np.ndarray  # (m,) int64                pairs that have ended, in that order; a ring
    rested: np.ndarray  # (m,) int64              slot from which each may be used again: no feedback of it is under way
    cell: np.ndarray  # (r, 4) int32      [c]     next in queue, flow, pair, seq
    free: np.ndarray  # (r,) int32                cells not in use, a stack
    air_cell: np.ndarray  # (a, c, n) int32       1 + cell each node sent, by slot modulo a
    air_pair: np.ndarray  # (a, c, n) int32       1 + pair whose feedback it carries
    air_leave: np.ndarray  # (a, c, n) int32      the feedback, as the epoch from which that subflow may send again
    air: np.ndarray  # (a, c, b) uint64           who sent anything
    release: np.ndarray  # (flows,) int64 [f]     cells left to release
    deliver: np.ndarray  # (flows,) int64 [f]     cells left to deliver
    after: np.ndarray  # (flows,) int64   [f]     next application flow of the same pair, in a circle
    finish: np.ndarray  # (flows,) int64  [f]     slot at whose end it was complete, -1 before
    incast: np.ndarray  # (n,) int32      [j]     living pairs towards j
    outcast: np.ndarray  # (n,) int32     [i]     living pairs from i
    waiting: np.ndarray  # (n,) int64     [i]     cells in i's queues
    inflow: np.ndarray  # (n,) int32      [j]     unfinished application flows towards j
    inflow_since: np.ndarray  # (n,) int64        slot in which that rose from zero
    inflow_slots: np.ndarray  # (n,) int64        slots in which it was not zero, up to that
    received: np.ndarray  # (n,) int64    [j]     useful cells arrived
    lengths: np.ndarray  # (256,) int64   [l]     visits that found l cells in the queue (l = 255: or more)
    tally: np.ndarray  # (TALLY,) int64           see the names below
    print: np.ndarray  # (2,) uint64              the fingerprint


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

_ONE, _63 = np.uint64(1), np.uint64(63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def start_flows(plan, state):
    """Start every flow whose slot has come. False if there is no room for another pair."""
    numbers, src, dst, cells, start = plan.numbers, plan.src, plan.dst, plan.cells, plan.start
    tally, source, target, nxt, living = state.tally, state.source, state.target, state.next, state.living
    release, after, turn = state.release, state.after, state.turn
    slot, delay, epoch = tally[SLOT], numbers[DELAY], numbers[EPOCH]
    room = state.rest.size
    while tally[STARTED] < start.size and start[tally[STARTED]] <= slot:
        f = tally[STARTED]
        i, d = src[f], dst[f]
        h = living[i] - 1
        while h >= 0 and target[h] != d:
            h = nxt[h] - 1
        if h < 0:
            if tally[REST_HEAD] < tally[REST_TAIL] and state.rested[tally[REST_HEAD] % room] <= slot:
                h = state.rest[tally[REST_HEAD] % room]
                tally[REST_HEAD] += 1
            elif tally[PAIRS_USED] < room:
                h = tally[PAIRS_USED]
                tally[PAIRS_USED] += 1
            else:
                return False
            source[h], target[h], nxt[h] = i, d, living[i]
            living[i] = h + 1
            state.leave[h, :] = 0
            state.early[h, :] = 0
            state.seq[h] = state.want[h] = state.got[h] = state.undelivered[h] = 0
            turn[h] = 0
            state.incast[d] += 1
            state.outcast[i] += 1
            tally[LIVE] += 1
        if turn[h] == 0:  # nothing left to release: it becomes busy now
            state.pairs[i, state.count[i]] = h
            state.count[i] += 1
            state.active[i >> 6] |= _ONE << np.uint64(i & 63)
            state.since[h] = slot
            tally[ACTIVE] += 1
            after[f] = f
            turn[h] = f + 1
        elif numbers[SHORTEST]:  # in order of size, then of arrival: the circle begins after the largest
            g = turn[h] - 1
            k = g
            while after[k] != g and cells[after[k]] <= cells[f]:
                k = after[k]
            if cells[after[k]] <= cells[f]:  # it goes to the end
                k = g
                turn[h] = f + 1
            after[f] = after[k]
            after[k] = f
        else:  # last in the round that is under way
            g = turn[h] - 1
            after[f] = after[g]
            after[g] = f
            turn[h] = f + 1
        release[f] = cells[f]
        state.deliver[f] = cells[f]
        state.undelivered[h] += cells[f]
        if state.inflow[d] == 0:
            state.inflow_since[d] = slot
        state.inflow[d] += 1
        tally[STARTED] += 1
    return True


@kernel
def next_flow(state, h, shortest):
    """Take a cell of pair h from the application flow whose turn it is; returns the flow."""
    turn, after, release = state.turn, state.after, state.release
    before = turn[h] - 1
    f = after[before]
    release[f] -= 1
    if release[f] == 0:
        if f == before:
            turn[h] = 0
        else:
            after[before] = after[f]
    elif not shortest:
        turn[h] = f + 1
    return f


@kernel
def forget(state, i, at):
    """Take the pair at position `at` off node i's list; it has nothing left to release."""
    pairs, count = state.pairs, state.count
    for k in range(at, count[i] - 1):
        pairs[i, k] = pairs[i, k + 1]
    count[i] -= 1
    state.tally[ACTIVE] -= 1
    if count[i] == 0:
        state.active[i >> 6] &= ~(_ONE << np.uint64(i & 63))


@kernel
def send(plan, state, slot):
    """Every node that has anything to do works through its channels; what it sends goes into the air."""
    numbers, shift, first, last, mirror, place, late, _, _, _, _ = plan
    queue, owed, busy, active, pairs, count = state.queue, state.owed, state.busy, state.active, state.pairs, state.count
    leave, target, cell, free, tally = state.leave, state.target, state.cell, state.free, state.tally
    told, left, turn, since, seq, want = state.told, state.left, state.turn, state.since, state.seq, state.want
    waiting, lengths = state.waiting, state.lengths
    n, channels, epoch, delay = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY]
    self_place, rules, ready_queues = numbers[SELF], numbers[RULES], numbers[READY_QUEUES]
    age_interval, aged, shortest, half = numbers[AGE_INTERVAL], numbers[AGED], numbers[SHORTEST], numbers[HALF]
    e, base = slot // epoch, slot % epoch * channels
    ring = slot % (delay + 1)
    air_cell, air_pair, air_leave = state.air_cell[ring], state.air_pair[ring], state.air_leave[ring]
    air = state.air[ring]
    window = state.early.shape[1] * 64 - channels
    visits = local_cells = forwarded = owing = flying = 0
    spare, longest, fullest = tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE]
    narrow = False

    for b in range(active.size):
        todo = active[b]
        for c in range(channels):
            todo |= busy[base + c, b]
        while todo != 0:
            bit = lowest(todo)
            todo &= todo - _ONE
            mask = _ONE << np.uint64(bit)
            i = b * 64 + bit
            upper = 1 if i >= half else 0
            for c in range(channels):
                p = base + c
                if i < first[p] or i >= last[p]:
                    continue
                sources = count[i]
                if sources == 0 and busy[p, b] & mask == 0:
                    continue
                visits += 1
                length = queue[p, i, 0] & LENGTH
                lengths[min(length, 255)] += 1

                # Release: eq. (2) over the flows of this node, in turn.
                ready = 0
                if sources > 0:
                    turn_word = queue[p, i, 1]
                    local = turn_word >> 30
                    at = turn_word & NUMBER
                    if at >= sources:
                        at = 0
                    seen = length
                    ended = -1
                    for _ in range(sources):
                        h = pairs[i, at]
                        if leave[h, p] <= e + seen:
                            age = (slot - since[h]) // age_interval if seen > 1 and age_interval > 0 else aged
                            if (ready_queues and local) or (age < aged and seen > 1 << age):
                                ready += 1
                            else:
                                f = next_flow(state, h, shortest)
                                spare -= 1
                                number = free[spare]
                                cell[number, 1], cell[number, 2], cell[number, 3] = f, h, seq[h]
                                if seq[h] - want[h] >= window:
                                    narrow = True
                                seq[h] += 1
                                leave[h, p] = OUT
                                if length == 0:
                                    queue[p, i, 2] = number | OWN
                                else:
                                    cell[queue[p, i, 3] & NUMBER, 0] = number | OWN
                                queue[p, i, 3] = number | OWN
                                length += 1
                                waiting[i] += 1
                                local = 1
                                turn_word = at + 1 if at + 1 < sources else 0
                                if turn[h] == 0:
                                    ended = at
                                if not ready_queues:
                                    seen = length
                        at += 1
                        if at == sources:
                            at = 0
                    if ended >= 0:
                        if ready_queues:
                            forget(state, i, ended)
                        else:
                            for k in range(sources - 1, -1, -1):
                                if turn[pairs[i, k]] == 0:
                                    forget(state, i, k)
                    if length > longest:
                        longest = length
                    if waiting[i] > fullest:
                        fullest = waiting[i]
                    if not ready_queues:
                        ready = 0
                    queue[p, i, 1] = (turn_word & NUMBER) | local << 30

                # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
                debt = owed[p, i]
                air_pair[c, i] = 0
                if p == self_place:
                    again = told[i]
                    told[i] = debt
                    if debt == 0:
                        debt = again
                    elif again == 0:
                        owing += 1  # it will be said twice; else what was to be said again is not
                    left[i] = 0
                if debt != 0:
                    owed[p, i] = 0
                    h = debt - 1
                    d = target[h]
                    if d == i:  # literal rules: it has arrived
                        ahead = 0
                        m = p
                    else:
                        m = place[upper, d - i if d > i else d - i + n]
                        there = queue[m, i, 0]
                        ahead = (there & LENGTH) + (there >> 16)
                    r = mirror[p]
                    if rules == PAPER:
                        leave_at = e + ahead - 1 + late[m // channels - r // channels + epoch]
                        if m < p:
                            leave_at += 1
                    else:
                        if ready_queues and d != i and ahead > 0:
                            ahead -= 1
                        leave_at = (slot + delay + epoch - r // channels) // epoch + ahead
                    air_pair[c, i] = debt
                    air_leave[c, i] = leave_at

                # The head of the queue, or an empty cell.
                if length > 0:
                    number = queue[p, i, 2]
                    length -= 1
                    if length > 0:
                        queue[p, i, 2] = cell[number & NUMBER, 0]
                    waiting[i] -= 1
                    flying += 1
                    if number & OWN:
                        local_cells += 1
                        if ready_queues:
                            queue[p, i, 1] &= NUMBER
                        h = cell[number & NUMBER, 2]
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
                queue[p, i, 0] = length | ready << 16
                if length > 0 or ready > 0 or (p == self_place and told[i] != 0):
                    busy[p, b] |= mask  # a count of ready flows must be looked at again, or it would stay
                else:
                    busy[p, b] &= ~mask

    tally[VISITS] += visits
    tally[LOCAL] += local_cells
    tally[FORWARDED] += forwarded
    tally[OWING] += owing
    tally[FLYING] += flying
    tally[FREE], tally[MAX_QUEUE], tally[MAX_NODE] = spare, longest, fullest
    return narrow


@kernel
def receive(plan, state, slot):
    """Take in what was sent `delay` slots ago: first the feedback, then the cell."""
    numbers, shift, _, _, mirror, place, _, _, _, _, _ = plan
    queue, owed, busy, leave, target, cell = (
        state.queue, state.owed, state.busy, state.leave, state.target, state.cell)  # fmt: skip
    tally, print_, waiting, incast, left = state.tally, state.print, state.waiting, state.incast, state.left
    n, channels, epoch, delay = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY]
    self_place, rules, ready_queues, half = numbers[SELF], numbers[RULES], numbers[READY_QUEUES], numbers[HALF]
    ring = (slot + 1) % (delay + 1)
    base = (slot - delay) % epoch * channels
    air_cell, air_pair, air_leave, air = (
        state.air_cell[ring], state.air_pair[ring], state.air_leave[ring], state.air[ring])  # fmt: skip
    first_channel = self_place - base if base <= self_place < base + channels else 0
    longest, fullest = tally[MAX_QUEUE], tally[MAX_NODE]
    over = over_subflow = flying = owing = 0

    for k in range(channels):
        # The self-mirrored link goes first: its sender counts on no stranger's cell coming between.
        if k == 0:
            c = first_channel
        else:
            c = k if k > first_channel else k - 1
        p = base + c
        s, r = shift[p], mirror[p]
        for b in range(air.shape[1]):
            todo = air[c, b]
            air[c, b] = 0
            while todo != 0:
                bit = lowest(todo)
                todo &= todo - _ONE
                i = b * 64 + bit
                j = i + s
                if j >= n:
                    j -= n
                h = air_pair[c, i] - 1
                if h >= 0:
                    leave_at = air_leave[c, i]
                    owing += 1
                    if p != self_place:
                        leave[h, r] = leave_at
                    elif leave[h, r] != OUT:  # else it is about an earlier cell than the one that waits
                        leave[h, r] = leave_at + 1 if left[j] == h + 1 else leave_at
                number = air_cell[c, i] - 1
                if number < 0:
                    continue
                flying += 1
                own = number & OWN
                number &= NUMBER
                f, h = cell[number, 1], cell[number, 2]
                d = target[h]
                if own and d != j:
                    m = place[1 if j >= half else 0, d - j if d > j else d - j + n]
                    length = queue[m, j, 0] & LENGTH
                    if length == 0:
                        queue[m, j, 2] = number
                    else:
                        if rules == LITERAL:
                            over_subflow += repeats(cell, queue[m, j, 2], length, h)
                        cell[queue[m, j, 3] & NUMBER, 0] = number
                    queue[m, j, 3] = number
                    queue[m, j, 0] += 1
                    mask = _ONE << np.uint64(j & 63)
                    busy[m, j >> 6] |= mask
                    owed[r, j] = h + 1
                    busy[r, j >> 6] |= mask
                    owing -= 1
                    waiting[j] += 1
                    if length >= longest:
                        longest = length + 1
                    if waiting[j] > fullest:
                        fullest = waiting[j]
                    if length >= incast[d] + (1 if ready_queues else state.outcast[j]):
                        over += 1
                    fold(print_, slot, f << 20 | j << 2)
                    continue
                if own:
                    fold(print_, slot, f << 20 | j << 2 | 1)
                    if rules == LITERAL:
                        owed[r, j] = h + 1
                        busy[r, j >> 6] |= _ONE << np.uint64(j & 63)
                        owing -= 1
                else:
                    fold(print_, slot, f << 20 | j << 2 | 2)
                arrive(state, slot, number, f, h, j, 2 * (epoch + delay + 1))
    tally[FLYING] -= flying
    tally[OWING] -= owing
    tally[MAX_QUEUE], tally[MAX_NODE] = longest, fullest
    tally[OVER_BOUND] += over
    tally[OVER_SUBFLOW] += over_subflow


@kernel
def repeats(cell, number, length, h):
    """1 if a cell of pair h is among `length` cells from `number` on, else 0."""
    for _ in range(length):
        number &= NUMBER
        if cell[number, 2] == h:
            return 1
        number = cell[number, 0]
    return 0


@kernel
def arrive(state, slot, number, f, h, j, rest):
    """A cell has reached its destination."""
    tally, want, got, early = state.tally, state.want, state.got, state.early
    state.free[tally[FREE]] = number
    tally[FREE] += 1
    tally[DELIVERED] += 1
    state.received[j] += 1

    got[h] += 1
    seq = state.cell[number, 3]
    size = early.shape[1] * 64
    if seq == np.int32(want[h]):
        at = want[h] + 1
        while True:
            k = at % size
            word, mask = early[h, k >> 6], _ONE << np.uint64(k & 63)
            if word & mask == 0:
                break
            early[h, k >> 6] = word & ~mask
            at += 1
        want[h] = at
    else:
        k = (want[h] + np.int64(np.int32(seq - np.int32(want[h])))) % size
        early[h, k >> 6] |= _ONE << np.uint64(k & 63)
        if got[h] - want[h] > tally[MAX_HELD]:
            tally[MAX_HELD] = got[h] - want[h]

    state.deliver[f] -= 1
    if state.deliver[f] == 0:
        state.finish[f] = slot
        tally[FINISHED] += 1
        state.inflow[j] -= 1
        if state.inflow[j] == 0:
            state.inflow_slots[j] += slot + 1 - state.inflow_since[j]
    state.undelivered[h] -= 1
    if state.undelivered[h] == 0:
        i = state.source[h]
        state.incast[j] -= 1
        state.outcast[i] -= 1
        tally[LIVE] -= 1
        if state.living[i] == h + 1:
            state.living[i] = state.next[h]
        else:
            g = state.living[i] - 1
            while state.next[g] != h + 1:
                g = state.next[g] - 1
            state.next[g] = state.next[h]
        room = state.rest.size
        state.rest[tally[REST_TAIL] % room] = h
        state.rested[tally[REST_TAIL] % room] = slot + rest
        tally[REST_TAIL] += 1


@kernel
def advance(plan, state, until, budget):
    """Simulate slots before `until`, or until every flow has finished or `budget` visits are spent; says which."""
    tally, start, numbers = state.tally, plan.start, plan.numbers
    n, channels, delay, ready_queues = numbers[N], numbers[CHANNELS], numbers[DELAY], numbers[READY_QUEUES]
    spent = tally[VISITS] + budget
    steps = tally[SLOTS] + budget
    while tally[SLOT] < until:
        if tally[FINISHED] == start.size:
            return DONE
        if tally[ACTIVE] == 0 and tally[LIVE] == 0 and tally[OWING] == 0 and tally[FLYING] == 0:
            if tally[STARTED] < start.size and start[tally[STARTED]] > tally[SLOT]:
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
        if tally[VISITS] >= spent or tally[SLOTS] >= steps:
            return SPENT
    return REACHED
