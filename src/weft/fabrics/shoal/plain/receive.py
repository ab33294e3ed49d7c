"""Receiving: silence is noticed, feedback taken in, and cells go on to a queue or have arrived (§3.3, §3.5, App. D)."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import lowest
from weft.engine import fingerprint
from weft.engine.jit import hot, part
from weft.fabrics.shoal.columns import (
    CHANNELS, CLASSES, COLLIDED, CORRUPTED, DELAY, DELIVERED, DIRECT, DISCARDED, DROPPED, DUPLICATES, EPOCH, FEEDBACK,
    FLYING, GOES_ON, HALF, IN_FLIGHT, MAX_HELD, MOVED, N, OVER_BOUND, OVER_SUBFLOW, READY_QUEUES, RELAYED_BY, SELF,
    SOURCE, THROWN_AWAY,
)  # fmt: skip
from weft.fabrics.shoal.plain.classes import append, note_length, wait_at, waits
from weft.fabrics.shoal.plain.damage import complain, repeat
from weft.fabrics.shoal.plain.failures import listen
from weft.fabrics.shoal.plain.pairs import drop_copy, give_back, lose
from weft.fabrics.shoal.plain.sets import add, has
from weft.fabrics.shoal.plain.state import (
    ARRIVES, AWAY, COLLIDES, COMPLAINS, DAMAGED, DIRTY, KLASS, LENGTH, MESSAGE, NUMBER, OF_FLOW, OF_PAIR, OWED, SILENT,
)  # fmt: skip
from weft.fabrics.shoal.plain.transport import acknowledge
from weft.fabrics.shoal.rules import (
    bound, channel_in_turn, deliver, event, facing, has_arrived, reorder, where,
)  # fmt: skip

_ONE = np.uint64(1)


@part
def receive(plan, state, slot):
    """Take in what was sent `delay` slots ago, channel by channel: silence, then every message."""
    numbers = plan.numbers
    sent = slot - numbers[DELAY]
    if sent < 0:
        return
    ring, base = sent % (numbers[DELAY] + 1), sent % numbers[EPOCH] * numbers[CHANNELS]
    for turn in range(numbers[CHANNELS]):
        c = channel_in_turn(turn, base, numbers[SELF], numbers[CHANNELS])
        listen(plan, state, base + c, sent, state.air[ring, c, SILENT])
        sort(plan, state, slot, base + c, ring, c)


@part
def sort(plan, state, slot, p, ring, c):
    """Take in the feedback of every message in place p, and what it says of damage; then queue or deliver its cell.

    Messages are taken one by one, in the order of senders: what one of them ends another may ask for again.
    """
    numbers, shift, cell, tally, work = plan.numbers, np.int64(plan.shift[p]), state.cell, state.tally, state.work
    air, air_cell = state.air[ring, c], state.air_cell[ring, c]
    n, r, sent = numbers[N], np.int64(plan.mirror[p]), slot - numbers[DELAY]
    senders = 0
    for b in range(state.down.size):
        todo = air[MESSAGE, b]
        air[MESSAGE, b] = 0
        while todo != 0:
            work[senders] = b * 64 + lowest(todo)
            senders += 1
            todo &= todo - _ONE
    for x in range(senders):
        i = np.int64(work[x])
        j = facing(i, shift, n)
        number = np.int64(air_cell[i]) - 1
        if number >= 0:
            tally[FLYING] -= 1
        if not has(air[ARRIVES], i) or has(state.peer_down[p], i):
            if number >= 0:
                tally[MOVED] = slot
                tally[IN_FLIGHT] += 1
                lose(plan, state, number)
            continue
        for v in range(numbers[FEEDBACK] - 2, -1, -1):  # older ones first: a wrong bit may be in one of them
            h = np.int64(state.again_pair[ring, c, i, v]) - 1
            if h >= 0 and (r == numbers[SELF] or state.leave[h, r] != AWAY):  # else another was released since
                hear(plan, state, h, state.again_leave[ring, c, i, v], j, r)
        hear(plan, state, np.int64(state.air_pair[ring, c, i]) - 1, state.air_leave[ring, c, i], j, r)
        if has(air[DAMAGED], i):
            if number >= 0:
                tally[COLLIDED if has(air[COLLIDES], i) else CORRUPTED] += 1
                lose(plan, state, number)
            complain(state, j, r)
            repeat(plan, state, j, r, sent)
            continue
        if has(air[COMPLAINS], i):
            repeat(plan, state, j, r, sent)
        if number >= 0:
            if state.target[cell[number, OF_PAIR]] != j:
                queue_up(plan, state, slot, r, j, number)
            else:
                arrive(plan, state, slot, i, j, number)


@hot
def hear(plan, state, h, leave, j, r):
    """Node j takes in when the next cell of its pair h may leave in place r; h is negative if nothing was said."""
    numbers = plan.numbers
    if h >= 0:
        if r != numbers[SELF]:
            state.leave[h, r] = leave
        elif not waits(state.queue, state.cell, (r * numbers[N] + j) * numbers[CLASSES] + state.pair[h, KLASS], h):
            state.leave[h, r] = leave + (1 if state.left[j] == h + 1 else 0)


@hot
def flow_of(state, number):
    """The flow of a cell; all acknowledgements have one name in the fingerprint."""
    f = np.int64(state.cell[number, OF_FLOW])
    return f if f >= 0 else state.flow.shape[0]


@hot
def queue_up(plan, state, slot, r, j, number):
    """Put a cell that goes on into its queue at node j, which owes its sender, in place r, a feedback."""
    numbers, queue, cell, tally = plan.numbers, state.queue, state.cell, state.tally
    n, classes, h = numbers[N], numbers[CLASSES], np.int64(cell[number, OF_PAIR])
    k, d = state.pair[h, KLASS], np.int64(state.target[h])
    m = where(plan.place, numbers[HALF], n, j, d)
    row = (m * n + j) * classes + k
    if has(state.mute[m], j) or queue[row, LENGTH] >= plan.depth[k]:
        fingerprint.add(state.print, slot, event(flow_of(state, number), j, THROWN_AWAY))
        if has(state.mute[m], j):
            tally[MOVED] = slot
            tally[DISCARDED] += 1
            lose(plan, state, number)
        else:
            tally[DROPPED] += 1
            lose(plan, state, number)
            complain(state, j, r)
        return
    fingerprint.add(state.print, slot, event(flow_of(state, number), j, GOES_ON))
    if waits(queue, cell, row, h):
        tally[OVER_SUBFLOW] += 1
    append(queue, cell, row, number)
    add(state.busy[m], j)
    if not has(state.mute[r], j):
        queue[(r * n + j) * classes, OWED] = h + 1
        add(state.busy[r], j)
    wait_at(state, j, 1)
    note_length(state, row, k)
    if k == 0 and queue[row, LENGTH] > bound(state.incast, state.outcast, d, j, numbers[READY_QUEUES]):
        tally[OVER_BOUND] += 1


@hot
def arrive(plan, state, slot, i, j, number):
    """Deliver a cell that node i has sent to its end, node j; flows and pairs end."""
    pair, tally = state.pair, state.tally
    f, h = np.int64(state.cell[number, OF_FLOW]), np.int64(state.cell[number, OF_PAIR])
    seq = np.int64(state.cell[number, NUMBER])
    fingerprint.add(state.print, slot, event(flow_of(state, number), j, DIRECT if pair[h, SOURCE] == i else RELAYED_BY))
    give_back(state, number)
    if f < 0:
        acknowledge(plan, state, -1 - f, h, seq, slot)
        return
    pair[h, DIRTY] = 1
    if has_arrived(pair, state.early, h, seq):
        tally[DUPLICATES] += 1
    else:
        tally[MAX_HELD] = max(tally[MAX_HELD], reorder(pair, state.early, h, seq))
        tally[DELIVERED] += 1
        tally[MOVED] = slot
        deliver(state, f, h, j, slot)
    drop_copy(plan, state, h)
