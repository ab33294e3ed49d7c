"""Sending: every node with anything to do releases cells, gives feedback and sends the head of a queue (§3.3)."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import lowest, prefetch
from weft.engine.jit import hot, part
from weft.fabrics.shoal.columns import (
    AGE_INTERVAL, AGED, CHANNELS, CLASSES, DELAY, EPOCH, FEEDBACK, FLYING, FORWARDED, HALF, LOCAL, MOVED, N,
    READY_QUEUES, RELEASED, SELF, SEQ, SHORTEST, SINCE, SOURCE, TIMEOUT, TURNS, VISITS, WANT,
)  # fmt: skip
from weft.fabrics.shoal.plain.classes import (
    all_cells, append, cells_ahead, highest, in_use, note_length, pop, wait_at,
)  # fmt: skip
from weft.fabrics.shoal.plain.damage import speak, with_wrong_bit
from weft.fabrics.shoal.plain.failures import knows_parted
from weft.fabrics.shoal.plain.pairs import done_releasing, first_to_repeat, new_cell, retire
from weft.fabrics.shoal.plain.sets import add, discard, has
from weft.fabrics.shoal.plain.state import (
    ACKED, AWAY, DAMAGED, KLASS, LENGTH, LIST, MESSAGE, MINE, NUMBER, OF_FLOW, OF_PAIR, OWED, READY, ROW, SEAT,
    SENT_EPOCH, SENT_FLOW, SENT_NUMBER, SENT_PAIR, TURN,
)  # fmt: skip
from weft.fabrics.shoal.plain.transport import remember
from weft.fabrics.shoal.rules import (
    facing, may_leave, next_flow, ready_again, service_lag, too_young, where, window,
)  # fmt: skip

_ONE = np.uint64(1)
AHEAD = 8  # how many nodes ahead of the one at work memory is asked for


@part
def send(plan, state, slot):
    """Every node that has anything to do works through its channels. True if a pair's window is full."""
    numbers, narrow = plan.numbers, False
    base = slot % numbers[EPOCH] * numbers[CHANNELS]
    speak(plan, state, slot, base)
    for c in range(numbers[CHANNELS]):
        if base + c == numbers[SELF]:
            state.left[:] = 0
        workers = look(plan, state, slot, base + c, c)
        narrow |= release(plan, state, slot, base + c, workers)
        dispatch(plan, state, slot, base + c, c, workers)
    return narrow


@part
def look(plan, state, slot, p, c):
    """List who has anything to do in place p; returns how many."""
    active, busy, work, ring = state.active, state.busy, state.work, slot % (plan.numbers[DELAY] + 1)
    message, air_cell, air_pair = state.air[ring, c, MESSAGE], state.air_cell[ring, c], state.air_pair[ring, c]
    workers = np.int64(0)
    for b in range(active.size):
        working = (active[b] | busy[p, b]) & plan.lit[p, b] & ~state.mute[p, b] & ~state.down[b]
        todo = working | message[b]
        while todo != 0:
            i = b * 64 + lowest(todo)
            air_cell[i] = air_pair[i] = 0
            state.again_pair[ring, c, i, :] = 0
            work[workers] = i
            workers += np.int64(working >> np.uint64(i & 63) & _ONE)
            todo &= todo - _ONE
    state.tally[VISITS] += workers
    return workers


@part
def release(plan, state, slot, p, workers):
    """Let those on the list release cells, class by class, to the end of the queue. True if a pair's window is full."""
    numbers, queue, count, lengths, work = plan.numbers, state.queue, state.count, state.lengths, state.work
    n, classes, shift, narrow = numbers[N], numbers[CLASSES], np.int64(plan.shift[p]), False
    for x in range(workers):
        prefetch(queue, (p * n + np.int64(work[x + AHEAD])) * classes * queue.shape[1])
        i = np.int64(work[x])
        first = (p * n + i) * classes
        lengths[min(all_cells(queue, first, classes), 255)] += 1
        above = np.int64(0)  # cells of the classes above
        for k in range(classes):
            ready = np.int64(0)
            if count[i] > 0:
                ready, full = release_class(plan, state, slot, i, facing(i, shift, n), p, k, above)
                narrow |= full
            queue[first + k, READY] = ready
            above += queue[first + k, LENGTH]
    return narrow


@hot
def release_class(plan, state, slot, i, j, p, k, above):
    """Let pairs of class k release cells of node i into its queue for j: eq. (2), in turn.

    Returns how many could have and did not, and whether a pair's window is full.
    """
    numbers, queue, pairs, pair, leave, target = (
        plan.numbers, state.queue, state.pairs, state.pair, state.leave, state.target)  # fmt: skip
    ready_queues, interval, r = numbers[READY_QUEUES], numbers[AGE_INTERVAL], np.int64(plan.mirror[p])
    classes, e, young = numbers[CLASSES], slot // numbers[EPOCH], numbers[AGED] * interval
    row = (p * numbers[N] + i) * classes + k
    sources, length, local = np.int64(state.count[i]), np.int64(queue[row, LENGTH]), queue[row, MINE] > 0
    x, turn = 0, np.int64(queue[row, TURN])
    while x < sources and pairs[i, x] >> 32 < turn:
        x += 1
    if x == sources:
        x = 0
    ready, released, ended, narrow = np.int64(0), np.int64(0), False, False
    for _ in range(sources):
        h = pairs[i, x] & ROW
        d, seen = np.int64(target[h]), above + length + (0 if ready_queues else released)
        if (
            may_leave(leave[h, p], e, seen)
            and (classes == 1 or pair[h, KLASS] == k)
            and (j == d or not knows_parted(plan, state, slot, i, j, d, r))
        ):
            full = length + released >= plan.depth[k]
            if (ready_queues and local) or full or too_young(seen, slot - pair[h, SINCE], young, interval):
                ready += 1
            else:
                number, late = next_cell(plan, state, slot, h)
                narrow |= late
                leave[h, p] = AWAY
                append(queue, state.cell, row, number)
                released += 1
                local = True
                queue[row, TURN] = pair[h, SEAT] + 1
                ended |= done_releasing(pair, h)
        x += 1
        if x == sources:
            x = 0
    if released > 0:
        queue[row, MINE] += released
        wait_at(state, i, released)
        note_length(state, row, k)
    if ended:
        retire(state, i)
    return ready if ready_queues else np.int64(0), narrow


@hot
def next_cell(plan, state, slot, h):
    """Take the next cell of pair h, those to be repeated first; and whether its window is full."""
    numbers, pair, tally = plan.numbers, state.pair, state.tally
    timeout = numbers[TIMEOUT]
    if pair[h, LIST] > 0:
        if timeout == 0:
            tally[MOVED] = slot  # what a transport sends again may be in vain
        return first_to_repeat(state, h), False
    tally[MOVED] = slot
    f, seq = next_flow(pair, state.flow, h, numbers[SHORTEST]), pair[h, SEQ]
    if timeout > 0:
        remember(plan, state, h, f, seq, slot)
    acknowledged = pair[h, ACKED] if timeout > 0 else pair[h, WANT]
    pair[h, SEQ] = seq + 1
    tally[RELEASED] += 1
    return new_cell(state, f, h, seq), seq - acknowledged >= window(state.early, numbers[CHANNELS])


@hot
def backlog(plan, state, slot, p, c, i, h, value):
    """What node i says in place p of the queue that a cell of pair h went into: from when on the next may leave.

    Eq. (6) over the classes that go first. `value`: which of the values of its cell it is.
    """
    numbers, target = plan.numbers, np.int64(state.target[h])
    n, epoch, classes = numbers[N], numbers[EPOCH], numbers[CLASSES]
    m = where(plan.place, numbers[HALF], n, i, target)
    ahead = cells_ahead(state.queue, (m * n + i) * classes, state.pair[h, KLASS])
    if has(state.air[slot % (numbers[DELAY] + 1), c, DAMAGED], i):
        ahead = with_wrong_bit(plan, ahead, value, slot, c, i)
    return ready_again(slot // epoch, ahead, service_lag(plan.late, plan.slot, epoch, m, np.int64(plan.mirror[p]), p))


@part
def dispatch(plan, state, slot, p, c, workers):
    """Let everybody on the list send the head of the first queue that has one, or an empty cell, with feedback."""
    numbers = plan.numbers
    queue, cell, pair, target, told, work, tally = (
        state.queue, state.cell, state.pair, state.target, state.told, state.work, state.tally)  # fmt: skip
    n, classes, turns, more = numbers[N], numbers[CLASSES], numbers[TURNS], numbers[FEEDBACK] - 1
    ring, e, shift = slot % (numbers[DELAY] + 1), slot // numbers[EPOCH], np.int64(plan.shift[p])
    air, air_cell, air_pair, air_leave = (
        state.air[ring, c], state.air_cell[ring, c], state.air_pair[ring, c], state.air_leave[ring, c])  # fmt: skip
    here = p == numbers[SELF]
    for x in range(workers):
        prefetch(state.sent, (p * n + np.int64(work[x + AHEAD])) * turns * 4)
        i = np.int64(work[x])
        q = p * n + i

        # Feedback, said as the epoch from which the source may send again.
        debt = np.int64(queue[q * classes, OWED])
        queue[q * classes, OWED] = 0
        kept, due = debt, False  # whether there is something to be said again at the next turn
        for v in range(more):
            before, state.past[q, v] = np.int64(state.past[q, v]), kept
            due |= kept != 0
            if before != 0:
                state.again_leave[ring, c, i, v] = backlog(plan, state, slot, p, c, i, before - 1, v + 1)
                state.again_pair[ring, c, i, v] = before
                add(air[MESSAGE], i)
            kept = before
        if here and more == 0:
            again = np.int64(told[i])
            told[i] = debt
            due = debt != 0
            if debt == 0:
                debt = again
        if debt != 0:
            air_leave[i] = backlog(plan, state, slot, p, c, i, debt - 1, 0)
            air_pair[i] = debt
            add(air[MESSAGE], i)

        # The cell, if there is one.
        row = highest(queue, q * classes, classes)
        if row >= 0:
            number = pop(queue, cell, row)
            h = np.int64(cell[number, OF_PAIR])
            state.waiting[i] -= 1
            state.departed[i] += 1
            tally[FLYING] += 1
            if pair[h, SOURCE] == i:
                queue[row, MINE] -= 1
                tally[LOCAL] += 1
                if here:
                    state.left[i] = h + 1
                if target[h] == facing(i, shift, n):
                    state.leave[h, p] = 0
            else:
                tally[FORWARDED] += 1
            entry = state.sent[q, e % turns]
            entry[SENT_PAIR], entry[SENT_FLOW] = h + 1, cell[number, OF_FLOW]
            entry[SENT_NUMBER], entry[SENT_EPOCH] = cell[number, NUMBER], e + 1
            air_cell[i] = number + 1
            add(air[MESSAGE], i)
        if in_use(queue, q * classes, classes) or due:
            add(state.busy[p], i)
        else:
            discard(state.busy[p], i)
