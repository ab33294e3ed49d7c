"""Shoal when things go wrong, one slot at a time: failures, damaged cells, clocks that are off, traffic classes.

The rules are those of `kernel.py` under `rules="paper"`, and so are the names; this kernel is plainer, and runs only
where something can go wrong. The legend: i sender, j receiver, d final destination, f application flow, h pair (of one
traffic class), k traffic class, p place in the epoch, q = p * n + i the link of node i in place p, and r the place of
the other direction. Sets of nodes are words of bits; a set at [p] holds senders of place p.

Silence is what a slot works on in words: who was expected to speak, and did not. Who has declared whom is kept twice,
as the senders nobody listens to (`deaf`) and as those who no longer send (`mute`).
"""

from typing import NamedTuple  # noqa: I001 (names in a block, not a column)

import numpy as np

from weft.engine.bits import lowest, population
from weft.engine.fingerprint import fold
from weft.engine.jit import bare, inlined, part
from weft.engine.reference import by_reference
from weft.engine.random import below, word
from weft.fabrics.shoal.columns import (
    ACTIVE, AFTER, AGE_INTERVAL, AGED, CHANNELS, DELAY, DELIVER, DELIVERED, DONE, EPOCH, FINISH, FINISHED, FLYING,
    FORWARDED, FREE, GOT, HALF, LIVE, LOCAL, MAX_HELD, MAX_NODE, MAX_QUEUE, MORE_CELLS, MORE_PAIRS, MORE_WINDOW, N,
    OVER_BOUND, OVER_SUBFLOW, PAIRS_USED, REACHED, READY_QUEUES, RELEASE, REST_HEAD, REST_TAIL, SELF, SEQ, SERVED,
    SHORTEST, SINCE, SLOT, SLOTS, SOURCE, SPENT, STARTED, UNDELIVERED, VISITS, WANT,
)  # fmt: skip
from weft.fabrics.shoal.columns import NEXT as NEXT_PAIR
from weft.fabrics.shoal.rules import end_pair, join, next_flow

OUT = 1 << 30  # leave: a cell waits at the source, or (except on self-mirrored links) nothing was heard of it yet
STUCK = 6  # what `advance` returns besides: nothing has moved for long, and nothing is to come


class Plan(NamedTuple):
    """What no slot changes: the columns of `kernel.Plan`, and what goes wrong. k changes, b words of 64 nodes."""

    numbers: np.ndarray
    shift: np.ndarray
    first: np.ndarray
    last: np.ndarray
    mirror: np.ndarray
    place: np.ndarray
    slot: np.ndarray
    late: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    cells: np.ndarray
    start: np.ndarray
    klass: np.ndarray  # (flows,) int32      [f]  traffic class
    terms: np.ndarray  # (TERMS,) int64           see the names below
    luck: np.ndarray  # (3,) uint64               key of the hits, key of the wrong bits, threshold of a hit
    depth: np.ndarray  # (classes,) int64    [k]  cells a queue may hold
    lit: np.ndarray  # (w, b) uint64         [p]  who has a peer
    change: np.ndarray  # (k,) int64         [x]  slots in which something changes; the first is 0
    cuts: np.ndarray  # (k,) int64           [x]  which row of `cut` and `dead` holds from then on
    offs: np.ndarray  # (k,) int64           [x]  which row of `off` does
    cut: np.ndarray  # (., w, b) uint64      [p]  whose cells do not arrive
    dead: np.ndarray  # (., b) uint64             nodes that are down
    off: np.ndarray  # (., b) uint64              nodes whose clock is beyond the guard


# DAMAGE: by bad luck; ASKING: cells that are no more may be asked for again; TIMEOUT: slots, 0 without a transport
CLASSES, RING, PATIENCE, BITS, FIELD, WIDTH, DAMAGE, ASKING, TIMEOUT = range(9)
TERMS = 9
BURST = 16  # cells that a timeout sends again
BACKOFF = 3  # times that a timeout doubles
EVERY = 8  # epochs between two acknowledgements


class State(NamedTuple):
    """What a slot may change. Names that `kernel.State` has mean the same; l = w * n * classes queues."""

    queue: np.ndarray  # (l, 8) int32      [q, k]  see the names below
    told: np.ndarray  # (n,) int32         [i]
    left: np.ndarray  # (n,) int32         [i]
    busy: np.ndarray  # (w, b) uint64      [p]     nodes with a cell to send, a feedback to give or a count to mend in p
    active: np.ndarray  # (b,) uint64
    pairs: np.ndarray  # (n, n * classes) int32
    count: np.ndarray  # (n,) int32
    living: np.ndarray  # (n,) int32
    leave: np.ndarray  # (m, w) int32
    pair: np.ndarray  # (m, 8) int64
    more: np.ndarray  # (m, 11) int64      [h]     see the names below
    origin: np.ndarray  # (m, 64x) int32   [h, seq modulo 64x]  flow of each cell that is not acknowledged
    target: np.ndarray  # (m,) int32
    early: np.ndarray  # (m, x) uint64
    rest: np.ndarray  # (m,) int64
    rested: np.ndarray  # (m,) int64
    cell: np.ndarray  # (r, 4) int32       [c]     next in queue or list, flow, pair, seq
    free: np.ndarray  # (r,) int32
    sent: np.ndarray  # (w * n, o, 4) int32        [q, epoch modulo o]  1 + pair, flow, seq of the cell, 1 + its epoch
    air_cell: np.ndarray  # (a, c, n) int32
    air_pair: np.ndarray  # (a, c, n) int32
    air_leave: np.ndarray  # (a, c, n) int32
    air: np.ndarray  # (a, c, 6, b) uint64         see the names below
    flow: np.ndarray  # (flows, 4) int64
    incast: np.ndarray  # (n,) int32       [j]     living pairs of the first class towards j
    outcast: np.ndarray  # (n,) int32      [i]     and from i
    waiting: np.ndarray  # (n,) int64
    inflow: np.ndarray  # (n,) int32
    inflow_since: np.ndarray  # (n,) int64
    inflow_slots: np.ndarray  # (n,) int64
    received: np.ndarray  # (n,) int64
    lengths: np.ndarray  # (256,) int64
    longest: np.ndarray  # (classes,) int64        the longest queue of each class
    mute: np.ndarray  # (w, b) uint64      [p]     who does not send in p: its peer is taken for failed
    deaf: np.ndarray  # (w, b) uint64      [p]     whom the receiver takes for failed
    gone: np.ndarray  # (w, b) uint64      [p]     whose receiver is down
    stray: np.ndarray  # (w, b) uint64     [p]     who sends with, or to, a clock that is off
    drop: np.ndarray  # (w, b) uint64      [p]     whose next cell says that the peer's last one was dropped
    fixed: np.ndarray  # (w, b) uint64     [p]     links that come back; scratch
    down: np.ndarray  # (b,) uint64                nodes that do not work
    lost: np.ndarray  # (n, n) int32       [j, i]  1 + epoch in which j missed i's cell, 0 if it hears it
    marks: np.ndarray  # uint64            scratch: seats that are taken
    work: np.ndarray  # (n + 64,) int32
    tally: np.ndarray  # (TALLY,) int64
    toll: np.ndarray  # (TOLL,) int64              see the names below
    print: np.ndarray  # (2,) uint64


# queue: cells; own cells among them; flows ready; first and last cell; where the round robin goes on; 1 + pair of the
# last cell from the peer until its feedback is sent (in the row of the first class)
LENGTH, MINE, READY, HEAD, TAIL, TURN, OWED = range(7)
# more: traffic class; slot in which the pair came to be, -1 when it has ended; copies of its cells; 1 + first and last
# cell to repeat; and for the transport: every cell before this one is acknowledged; slot in which that last moved;
# timeouts since; whether the receiver has something to acknowledge; acknowledgements under way; and where the pair
# sits, as in `kernel.py`
KLASS, BORN, COPIES, LIST, LAST, ACKED, TIMER, TIMEOUTS, DIRTY, PENDING, SEAT = range(11)
MORE = 11
# cell: the flow of an acknowledgement is -1 - the pair it is about, its seq what is acknowledged
# air: who sent anything worth looking at; whose cell arrives; whose silence will be noticed; whose cell is damaged;
# whose by a clock that is off; who says that the last one was dropped
SAID, ON, HUSH, HIT, STRAY, DROPPED = range(6)
AIR = 6

(
    CHANGE,  # the change that is in force
    MEND_UNTIL,  # the last epoch boundary at which to look what works again
    HELD_FIRST, HELD_LAST,  # 1 + flows that wait for their node to come back, a list
    WAKE,  # whether to look through it
    MOVED,  # the last slot in which anything came nearer to its end
    SPOKEN,  # cells sent, empty ones included
    FAILED_SLOTS,  # turns that went unused because the peer was taken for failed
    DECLARED, DETECTED,  # declarations, and the slot of the last
    RELEASED, REPEATS, DUPLICATES,
    RESENT,  # by the transport
    ACKS, ACKS_IN,  # acknowledgements made and arrived
    LISTED,  # cells to be repeated
    IN_FLIGHT, DISCARDED, QUEUED, CORRUPTED, COLLIDED, DROPPED_CELLS,  # cells lost, by cause
) = range(23)  # fmt: skip
TOLL = 23

_ONE = np.uint64(1)


@inlined
def has(words, i):
    """Whether node i is in a set."""
    return words[i >> 6] >> np.uint64(i & 63) & _ONE != 0


@inlined
def add(words, i):
    words[i >> 6] |= _ONE << np.uint64(i & 63)


@inlined
def take(words, i):
    words[i >> 6] &= ~(_ONE << np.uint64(i & 63))


@inlined
def facing(i, s, n):
    """The node that i sends to with shift s."""
    j = i + s
    return j - n if j >= n else j


@inlined
def where(place, half, n, i, j):
    """The place in which i sends to j."""
    return np.int64(place[j - i + n + (2 * n if i >= half else 0)])


# ---------------------------------------------------------------- pairs and their cells


@part
def finish_pair(plan, state, h):
    """Let pair h rest until nothing about it can be under way."""
    numbers, pair, tally, rest = plan.numbers, state.pair, state.tally, state.rest
    end_pair(pair, state.living, h)
    state.more[h, BORN] = -1
    if state.more[h, KLASS] == 0:
        state.incast[state.target[h]] -= 1
        state.outcast[pair[h, SOURCE]] -= 1
    tally[LIVE] -= 1
    rest[tally[REST_TAIL] % rest.size] = h
    state.rested[tally[REST_TAIL] % rest.size] = tally[SLOT] + 2 * (numbers[EPOCH] + numbers[DELAY] + 1)
    tally[REST_TAIL] += 1


@part
def try_end(plan, state, h):
    """End pair h if all its cells have arrived, the source knows it where it asks, and nothing of it is about."""
    pair, more = state.pair, state.more
    if more[h, COPIES] != 0 or more[h, PENDING] != 0:
        return
    if plan.terms[TIMEOUT] > 0:
        if pair[h, SERVED] == 0 and more[h, ACKED] == pair[h, SEQ]:
            finish_pair(plan, state, h)
    elif pair[h, UNDELIVERED] == 0:
        finish_pair(plan, state, h)


@part
def drop_copy(plan, state, h):
    """A copy of one of pair h's cells is no more."""
    state.more[h, COPIES] -= 1
    try_end(plan, state, h)


@part
def lose(plan, state, number, cause):
    """Forget a cell that will not arrive."""
    tally = state.tally
    state.toll[cause] += 1
    state.free[tally[FREE]] = number
    tally[FREE] += 1
    about = -1 - np.int64(state.cell[number, 1])
    if about >= 0:
        state.more[about, PENDING] -= 1
        try_end(plan, state, about)
    drop_copy(plan, state, np.int64(state.cell[number, 2]))


@part
def vacant_seat(state, i):
    """The first seat of node i in which no pair sits, or has sat lately."""
    more, rest, tally, marks = state.more, state.rest, state.tally, state.marks
    marks[:] = 0
    h = np.int64(state.living[i]) - 1
    while h >= 0:
        if more[h, SEAT] < 64 * marks.size:
            add(marks, more[h, SEAT])
        h = state.pair[h, NEXT_PAIR] - 1
    at = tally[REST_TAIL] - 1
    while at >= tally[REST_HEAD] and state.rested[at % rest.size] > tally[SLOT]:
        h = rest[at % rest.size]
        if state.pair[h, SOURCE] == i and more[h, SEAT] < 64 * marks.size:
            add(marks, more[h, SEAT])
        at -= 1
    for b in range(marks.size):
        if ~marks[b] != 0:
            return b * 64 + lowest(~marks[b])
    return 64 * marks.size


@inlined
def forget(pairs, count, active, i, at):
    """Take the pair at position `at` off node i's list; it has nothing left to release."""
    for k in range(at, count[i] - 1):
        pairs[i, k] = pairs[i, k + 1]
    count[i] -= 1
    if count[i] == 0:
        active[i >> 6] &= ~(_ONE << np.uint64(i & 63))


@part
def enlist(state, h):
    """Put pair h, which gets something to release, on its node's list in the order of seats, if it is not there."""
    pair, count = state.pair, state.count
    if pair[h, SERVED] == 0 and state.more[h, LIST] == 0:
        i = pair[h, SOURCE]
        at = count[i]
        while at > 0 and state.more[state.pairs[i, at - 1], SEAT] > state.more[h, SEAT]:
            state.pairs[i, at] = state.pairs[i, at - 1]
            at -= 1
        state.pairs[i, at] = h
        count[i] += 1
        add(state.active, i)
        pair[h, SINCE] = state.tally[SLOT]
        state.tally[ACTIVE] += 1


@part
def list_again(state, number):
    """Put a cell on its pair's list of those to repeat."""
    cell, more = state.cell, state.more
    h = np.int64(cell[number, 2])
    enlist(state, h)
    if more[h, LIST] == 0:
        more[h, LIST] = number + 1
    else:
        cell[more[h, LAST] - 1, 0] = number
    more[h, LAST] = number + 1
    state.toll[LISTED] += 1


@part
def copy_of(state, q, ring, epoch_sent, slot_sent):
    """A copy of the cell that left on link q in that turn; -1 if it was empty or its pair has ended."""
    entry = state.sent[q, epoch_sent % ring]
    h = np.int64(entry[0]) - 1
    if entry[3] != epoch_sent + 1 or state.more[h, BORN] < 0 or state.more[h, BORN] > slot_sent:
        return -1
    tally, cell = state.tally, state.cell
    about = -1 - np.int64(entry[1])
    if about >= 0:
        if state.more[about, BORN] < 0 or state.more[about, BORN] > slot_sent:
            return -1
        state.more[about, PENDING] += 1
    tally[FREE] -= 1
    number = np.int64(state.free[tally[FREE]])
    cell[number, 1], cell[number, 2], cell[number, 3] = entry[1], h, entry[2]
    state.more[h, COPIES] += 1
    state.toll[REPEATS] += 1
    return number


@part
def repeat(plan, state, j, r, sent):
    """Node j sends again, first in its queue, what a cell of its peer speaks of that was sent in slot `sent`.

    That is j's last cell in place r that had arrived by then.
    """
    numbers, terms, queue, cell, tally = plan.numbers, plan.terms, state.queue, state.cell, state.tally
    if has(state.mute[r], j):
        return
    epoch, classes = numbers[EPOCH], terms[CLASSES]
    turn = np.int64(plan.slot[r])
    e = (sent - numbers[DELAY] - 1 - turn) // epoch
    if e < 0:
        return
    q = r * numbers[N] + j
    number = copy_of(state, q, terms[RING], e, e * epoch + turn)
    if number < 0:
        return
    h = np.int64(cell[number, 2])
    k = state.more[h, KLASS]
    row = q * classes + k
    if queue[row, LENGTH] == 0:
        queue[row, TAIL] = number
    else:
        cell[number, 0] = queue[row, HEAD]
    queue[row, HEAD] = number
    queue[row, LENGTH] += 1
    if state.pair[h, SOURCE] == j:
        queue[row, MINE] += 1
    add(state.busy[r], j)
    state.waiting[j] += 1
    tally[MAX_NODE] = max(tally[MAX_NODE], state.waiting[j])
    tally[MAX_QUEUE] = max(tally[MAX_QUEUE], queue[row, LENGTH])
    state.longest[k] = max(state.longest[k], queue[row, LENGTH])


# ---------------------------------------------------------------- what breaks, and is mended


@part
def change(plan, state):
    """Take in what the plan says of this slot."""
    tally, toll, down, cut, dead = state.tally, state.toll, state.down, plan.cut, plan.dead
    epoch, delay, slot = plan.numbers[EPOCH], plan.numbers[DELAY], tally[SLOT]
    while toll[CHANGE] + 1 < plan.change.size and plan.change[toll[CHANGE] + 1] <= slot:
        toll[CHANGE] += 1
        x = plan.cuts[toll[CHANGE]]
        before = plan.cuts[toll[CHANGE] - 1] if toll[CHANGE] > 0 else x
        toll[MOVED] = slot
        for i in range(plan.numbers[N]):
            if has(dead[x], i) and not has(down, i):
                kill(plan, state, i)
        better = False
        if x != before:
            for b in range(down.size):
                better |= dead[before, b] & ~dead[x, b] != 0
                for p in range(plan.shift.size):
                    better |= cut[before, p, b] & ~cut[x, p, b] != 0
        if better:
            toll[MEND_UNTIL] = -(-(slot + delay) // epoch) * epoch
        look_round(plan, state)
    if slot <= toll[MEND_UNTIL] and slot % epoch == 0:
        mend(plan, state)
        look_round(plan, state)
        toll[MOVED] = slot


@part
def look_round(plan, state):
    """Whose peers are down, and whose clocks are off, place by place."""
    n, off = plan.numbers[N], plan.off[plan.offs[state.toll[CHANGE]]]
    for p in range(plan.shift.size):
        state.gone[p, :] = 0
        state.stray[p, :] = 0
        for i in range(plan.first[p], plan.last[p]):
            j = facing(i, plan.shift[p], n)
            if has(state.down, j):
                add(state.gone[p], i)
            if has(off, i) or has(off, j):
                add(state.stray[p], i)


@part
def kill(plan, state, i):
    """Node i goes down: all that its interface holds is lost."""
    n, classes, tally, toll = plan.numbers[N], plan.terms[CLASSES], state.tally, state.toll
    queue, cell, pair, more = state.queue, state.cell, state.pair, state.more
    add(state.down, i)
    for at in range(state.count[i] - 1, -1, -1):
        h = np.int64(state.pairs[i, at])
        if pair[h, SERVED] == 0:
            forget(state.pairs, state.count, state.active, i, at)
            tally[ACTIVE] -= 1
    h = np.int64(state.living[i]) - 1
    while h >= 0:
        after = pair[h, NEXT_PAIR] - 1
        number, last = more[h, LIST] - 1, more[h, LAST] - 1
        more[h, LIST] = 0
        while number >= 0:
            following = np.int64(cell[number, 0]) if number != last else np.int64(-1)
            toll[LISTED] -= 1
            lose(plan, state, number, QUEUED)
            number = following
        h = after
    for p in range(plan.shift.size):
        q = p * n + i
        for row in range(q * classes, (q + 1) * classes):
            number = np.int64(queue[row, HEAD])
            for _ in range(queue[row, LENGTH]):
                following = np.int64(cell[number, 0])
                lose(plan, state, number, QUEUED)
                number = following
            queue[row, LENGTH] = queue[row, MINE] = queue[row, READY] = queue[row, OWED] = 0
        state.sent[q, :, 3] = 0
        take(state.drop[p], i)
        take(state.busy[p], i)
    state.told[i] = 0
    state.waiting[i] = 0


@part
def mend(plan, state):
    """Withdraw the declarations that no longer hold; what goes over those links, or nodes, starts afresh."""
    numbers, shift, mirror, place = plan.numbers, plan.shift, plan.mirror, plan.place
    n, half, delay, channels, epoch = numbers[N], numbers[HALF], numbers[DELAY], numbers[CHANNELS], numbers[EPOCH]
    x, fixed, down, slot = plan.cuts[state.toll[CHANGE]], state.fixed, state.down, state.tally[SLOT]
    cut, dead = plan.cut[x], plan.dead[x]
    fixed[:, :] = 0
    for p in range(shift.size):
        r = np.int64(mirror[p])
        for i in range(plan.first[p], plan.last[p]):
            j = facing(i, shift[p], n)
            if has(state.deaf[p], i) and not (has(cut[p], i) or has(cut[r], j) or has(dead, i) or has(dead, j)):
                add(fixed[p], i)
                add(fixed[r], j)
                state.lost[j, i] = 0
    for h in range(state.tally[PAIRS_USED]):
        if state.more[h, BORN] < 0:
            continue
        i, d = state.pair[h, SOURCE], np.int64(state.target[h])
        afresh = has(down, i) and not has(dead, i)
        for p in range(shift.size):
            if not has(plan.lit[p], i):
                continue
            j = facing(i, shift[p], n)
            back = has(down, j) and not has(dead, j)
            if afresh or back or has(fixed[p], i) or (j != d and has(fixed[where(place, half, n, j, d)], j)):
                state.leave[h, p] = 0
    for ago in range(1, delay + 1):  # silence that was due to what is over is not noticed
        if ago <= slot:
            base = (slot - ago) % epoch * channels
            for c in range(channels):
                hush = state.air[(slot - ago) % (delay + 1), c, HUSH]
                for b in range(down.size):
                    hush[b] &= ~(fixed[base + c, b] | (down[b] & ~dead[b]))
    for b in range(down.size):
        for p in range(shift.size):
            state.deaf[p, b] &= ~fixed[p, b]
            state.mute[p, b] &= ~fixed[p, b]
        if down[b] & ~dead[b] != 0:
            state.toll[WAKE] = 1
        down[b] = dead[b]


@part
def declare(plan, state, i, j, p, sent):
    """Node j takes i for failed, having missed the cell that i should have sent in slot `sent`, in place p."""
    numbers, terms, queue, cell = plan.numbers, plan.terms, state.queue, state.cell
    n, epoch, delay, classes = numbers[N], numbers[EPOCH], numbers[DELAY], terms[CLASSES]
    slot, toll, r = state.tally[SLOT], state.toll, np.int64(plan.mirror[p])
    add(state.deaf[p], i)
    add(state.mute[r], j)
    state.lost[j, i] = sent // epoch + 1
    toll[DECLARED] += 1
    toll[DETECTED] = toll[MOVED] = slot
    q, turn = r * n + j, np.int64(plan.slot[r])
    # What i sends in a slot it sends knowing that all that came before has come: the rest is in doubt.
    e = -(-(sent - epoch - delay - turn) // epoch)
    while e * epoch + turn <= slot:
        own = e >= 0 and state.sent[q, e % terms[RING], 3] == e + 1
        if own and state.pair[state.sent[q, e % terms[RING], 0] - 1, SOURCE] == j:
            number = copy_of(state, q, terms[RING], e, e * epoch + turn)
            if number >= 0:
                list_again(state, number)
        e += 1
    for row in range(q * classes, (q + 1) * classes):
        number = np.int64(queue[row, HEAD])
        for _ in range(queue[row, LENGTH]):
            following = np.int64(cell[number, 0])
            state.waiting[j] -= 1
            if state.pair[cell[number, 2], SOURCE] == j:
                list_again(state, number)
            else:
                lose(plan, state, number, DISCARDED)
            number = following
        queue[row, LENGTH] = queue[row, MINE] = queue[row, READY] = queue[row, OWED] = 0
    if r == numbers[SELF]:
        state.told[j] = 0
    take(state.drop[r], j)
    take(state.busy[r], j)


# ---------------------------------------------------------------- a slot


@part
def find_pair(plan, state, i, d, k):
    """The pair of i and d in class k, made if there is none; -1 if there is no room for it."""
    tally, pair, more, rest = state.tally, state.pair, state.more, state.rest
    living, target, slot = state.living, state.target, state.tally[SLOT]
    h = np.int64(living[i]) - 1
    while h >= 0 and not (target[h] == d and more[h, KLASS] == k):
        h = pair[h, NEXT_PAIR] - 1
    if h < 0:
        if tally[REST_HEAD] < tally[REST_TAIL] and state.rested[tally[REST_HEAD] % rest.size] <= slot:
            h = rest[tally[REST_HEAD] % rest.size]
            tally[REST_HEAD] += 1
        elif tally[PAIRS_USED] < rest.size:
            h = tally[PAIRS_USED]
            tally[PAIRS_USED] += 1
        else:
            return np.int64(-1)
        seat = vacant_seat(state, i)
        pair[h, :] = 0
        more[h, :] = 0
        more[h, SEAT] = seat
        pair[h, SOURCE], pair[h, NEXT_PAIR], target[h] = i, living[i], d
        more[h, KLASS], more[h, BORN] = k, slot
        living[i] = h + 1
        state.leave[h, :] = 0
        state.early[h, :] = 0
        if k == 0:
            state.incast[d] += 1
            state.outcast[i] += 1
        tally[LIVE] += 1
    return h


@part
def start_flow(plan, state, f):
    """Start flow f. False if there is no room for another pair."""
    numbers, pair, flow, slot = plan.numbers, state.pair, state.flow, state.tally[SLOT]
    d = np.int64(plan.dst[f])
    h = find_pair(plan, state, np.int64(plan.src[f]), d, np.int64(plan.klass[f]))
    if h < 0:
        return False
    enlist(state, h)
    join(pair, flow, plan.cells, h, f, numbers[SHORTEST])
    flow[f, RELEASE] = flow[f, DELIVER] = plan.cells[f]
    pair[h, UNDELIVERED] += plan.cells[f]
    if state.inflow[d] == 0:
        state.inflow_since[d] = slot
    state.inflow[d] += 1
    state.toll[MOVED] = slot
    return True


@part
def start_flows(plan, state):
    """Start every flow whose slot has come and whose node is up, those that waited first. False: no room."""
    tally, toll, flow, src, start = state.tally, state.toll, state.flow, plan.src, plan.start
    if toll[WAKE]:
        before, f = np.int64(-1), toll[HELD_FIRST] - 1
        while f >= 0:
            after = flow[f, AFTER] - 1
            if has(state.down, src[f]):
                before = f
            else:
                if not start_flow(plan, state, f):
                    return False
                if before < 0:
                    toll[HELD_FIRST] = after + 1
                else:
                    flow[before, AFTER] = after + 1
                if after < 0:
                    toll[HELD_LAST] = before + 1
            f = after
        toll[WAKE] = 0
    while tally[STARTED] < start.size and start[tally[STARTED]] <= tally[SLOT]:
        f = tally[STARTED]
        if has(state.down, src[f]):
            flow[f, RELEASE] = flow[f, DELIVER] = plan.cells[f]
            flow[f, AFTER] = 0
            if toll[HELD_FIRST] == 0:
                toll[HELD_FIRST] = f + 1
            else:
                flow[toll[HELD_LAST] - 1, AFTER] = f + 1
            toll[HELD_LAST] = f + 1
        elif not start_flow(plan, state, f):
            return False
        tally[STARTED] += 1
    return True


@part
def transport(plan, state):
    """Once an epoch: send again what nobody has acknowledged in time, and acknowledge in turn. What ran out, or 0."""
    tally, toll, pair, more, cell, free = state.tally, state.toll, state.pair, state.more, state.cell, state.free
    slot, size = tally[SLOT], state.origin.shape[1]
    for i in range(plan.numbers[N]):
        turn = (slot // plan.numbers[EPOCH] + i) % EVERY == 0
        h = np.int64(state.living[i]) - 1
        while h >= 0:
            after, d = pair[h, NEXT_PAIR] - 1, np.int64(state.target[h])
            late = slot - more[h, TIMER] >= plan.terms[TIMEOUT] << more[h, TIMEOUTS]
            if late and pair[h, SEQ] > more[h, ACKED] and more[h, LIST] == 0 and not has(state.down, i):
                if tally[FREE] < BURST:
                    return MORE_CELLS
                for seq in range(more[h, ACKED], min(pair[h, SEQ], more[h, ACKED] + BURST)):
                    tally[FREE] -= 1
                    number = np.int64(free[tally[FREE]])
                    cell[number, 1], cell[number, 2], cell[number, 3] = state.origin[h, seq & (size - 1)], h, seq
                    more[h, COPIES] += 1
                    toll[RESENT] += 1
                    list_again(state, number)
                more[h, TIMER] = slot
                more[h, TIMEOUTS] = min(more[h, TIMEOUTS] + 1, BACKOFF)
            if turn and more[h, DIRTY] and not has(state.down, d):
                if tally[FREE] == 0:
                    return MORE_CELLS
                back = find_pair(plan, state, d, i, more[h, KLASS])
                if back < 0:
                    return MORE_PAIRS
                tally[FREE] -= 1
                number = np.int64(free[tally[FREE]])
                cell[number, 1], cell[number, 2], cell[number, 3] = -1 - h, back, pair[h, WANT]
                more[back, COPIES] += 1
                more[h, PENDING] += 1
                more[h, DIRTY] = 0
                toll[ACKS] += 1
                list_again(state, number)
            h = after
    return 0


@inlined
def speak_up(plan, state, slot, base, ring):
    """Say in words who speaks in this slot, whose cells arrive, and who will be missed."""
    air, toll, damage, luck = state.air, state.toll, plan.terms[DAMAGE], plan.luck
    n, channels, x = plan.numbers[N], plan.numbers[CHANNELS], plan.cuts[toll[CHANGE]]
    for c in range(channels):
        p = base + c
        for b in range(state.down.size):
            working = plan.lit[p, b] & ~state.down[b]
            speaking = working & ~state.mute[p, b]
            on = speaking & ~plan.cut[x, p, b]
            toll[SPOKEN] += population(speaking)
            toll[FAILED_SLOTS] += population(working & ~speaking)
            dropped = state.drop[p, b] & speaking
            state.drop[p, b] &= ~speaking
            stray = state.stray[p, b] & speaking
            hit = stray
            if damage:
                todo = speaking & ~stray
                while todo != 0:
                    i = b * 64 + lowest(todo)
                    if word(luck[0], (slot * channels + c) * n + i) < luck[2]:
                        hit |= _ONE << np.uint64(i & 63)
                    todo &= todo - _ONE
            air[ring, c, ON, b] = on
            air[ring, c, HUSH, b] = plan.lit[p, b] & ~on & ~state.deaf[p, b]
            air[ring, c, HIT, b] = hit
            air[ring, c, STRAY, b] = stray
            air[ring, c, DROPPED, b] = dropped
            air[ring, c, SAID, b] = hit | dropped


@inlined
def told_of(lost, place, mirror, slot_of, half, n, epoch, delay, slot, i, j, d, r):
    """Whether i has heard that j cannot reach d: j says so in its next cell to everyone, which to i is in place r."""
    missed = np.int64(lost[j, d])
    if missed == 0:
        return False
    declared = (missed - 1) * epoch + slot_of[mirror[where(place, half, n, j, d)]] + delay
    told = declared + 1 + (slot_of[r] - declared - 1) % epoch
    return slot > told + delay


@part
def send(plan, state, slot):
    """Every node that has anything to do works through its channels; what it sends goes into the air."""
    numbers, shift, mirror, place, slot_of, late, lit = (
        plan.numbers, plan.shift, plan.mirror, plan.place, plan.slot, plan.late, plan.lit)  # fmt: skip
    queue, busy, active, pairs, count, leave, pair, more, target, cell, free, flow = (
        state.queue, state.busy, state.active, state.pairs, state.count, state.leave, state.pair, state.more,
        state.target, state.cell, state.free, state.flow)  # fmt: skip
    told, left, waiting, lengths, work, tally, toll, mute, lost, longest = (
        state.told, state.left, state.waiting, state.lengths, state.work, state.tally, state.toll, state.mute,
        state.lost, state.longest)  # fmt: skip
    n, channels, epoch, delay, half = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY], numbers[HALF]
    self_place, ready_queues, shortest = numbers[SELF], numbers[READY_QUEUES], numbers[SHORTEST]
    age_interval, aged = numbers[AGE_INTERVAL], numbers[AGED]
    classes, ring_size, bits, field, width = (
        plan.terms[CLASSES], plan.terms[RING], plan.terms[BITS], plan.terms[FIELD], plan.terms[WIDTH])  # fmt: skip
    timeout = plan.terms[TIMEOUT]
    e, base, ring = slot // epoch, slot % epoch * channels, slot % (delay + 1)
    air_cell, air_pair, air_leave, air = (
        state.air_cell[ring], state.air_pair[ring], state.air_leave[ring], state.air[ring])  # fmt: skip
    window = state.early.shape[1] * 64 - channels
    narrow = False
    speak_up(plan, state, slot, base, ring)
    for c in range(channels):
        if base + c == self_place:
            left[:] = 0

    workers = 0
    for b in range(active.size):
        todo = active[b]
        for c in range(channels):
            todo |= busy[base + c, b] | air[c, SAID, b]
        todo &= ~state.down[b]
        while todo != 0:
            work[workers] = b * 64 + lowest(todo)
            workers += 1
            todo &= todo - _ONE

    for at_work in range(workers):
        i = np.int64(work[at_work])
        for c in range(channels):
            p = base + c
            if not has(lit[p], i) or has(mute[p], i):
                continue
            air_cell[c, i] = 0
            air_pair[c, i] = 0
            sources = np.int64(count[i])
            if sources == 0 and not has(busy[p], i):
                continue
            tally[VISITS] += 1
            q, r = p * n + i, np.int64(mirror[p])
            j = facing(i, np.int64(shift[p]), n)
            before, stay, chosen = np.int64(0), False, np.int64(-1)  # cells of the classes above; the row to send from
            standing = np.int64(0)
            for k in range(classes):
                standing += queue[q * classes + k, LENGTH]
            lengths[min(standing, 255)] += 1
            for k in range(classes):
                row = q * classes + k
                length, ready = np.int64(queue[row, LENGTH]), 0
                if sources > 0:
                    # Release: eq. (2) over the flows of this class, in turn.
                    local = queue[row, MINE] > 0
                    at = 0
                    while at < sources and more[pairs[i, at], SEAT] < queue[row, TURN]:
                        at += 1
                    if at == sources:
                        at = 0
                    seen = before + length
                    ended = -1
                    for _ in range(sources):
                        h = np.int64(pairs[i, at])
                        d = np.int64(target[h])
                        if (
                            leave[h, p] <= e + seen
                            and more[h, KLASS] == k
                            and (j == d or not told_of(
                                lost, place, mirror, slot_of, half, n, epoch, delay, slot, i, j, d, r))
                        ):  # fmt: skip
                            age = aged
                            if seen > 1 and age_interval > 0:
                                age = (slot - pair[h, SINCE]) // age_interval
                            young = age < aged and seen > 1 << age
                            if (ready_queues and local) or length >= plan.depth[k] or young:
                                ready += 1
                            else:
                                if more[h, LIST] == 0 or timeout == 0:
                                    toll[MOVED] = slot  # what a transport sends again may be in vain
                                if more[h, LIST] > 0:
                                    number = more[h, LIST] - 1
                                    more[h, LIST] = 0 if number == more[h, LAST] - 1 else np.int64(cell[number, 0]) + 1
                                    toll[LISTED] -= 1
                                else:
                                    tally[FREE] -= 1
                                    number = np.int64(free[tally[FREE]])
                                    f = next_flow(pair, flow, h, shortest)
                                    seq = pair[h, SEQ]
                                    if timeout > 0:
                                        if seq == more[h, ACKED]:
                                            more[h, TIMER], more[h, TIMEOUTS] = slot, 0
                                        state.origin[h, seq & (window + channels - 1)] = f
                                    if seq - (more[h, ACKED] if timeout > 0 else pair[h, WANT]) >= window:
                                        narrow = True
                                    pair[h, SEQ] = seq + 1
                                    more[h, COPIES] += 1
                                    toll[RELEASED] += 1
                                    cell[number, 1], cell[number, 2], cell[number, 3] = f, h, seq
                                leave[h, p] = OUT
                                if length == 0:
                                    queue[row, HEAD] = number
                                else:
                                    cell[queue[row, TAIL], 0] = number
                                queue[row, TAIL] = number
                                length += 1
                                queue[row, MINE] += 1
                                waiting[i] += 1
                                local = True
                                queue[row, TURN] = more[h, SEAT] + 1
                                if pair[h, SERVED] == 0 and more[h, LIST] == 0:
                                    ended = at
                                if not ready_queues:
                                    seen = before + length
                        at += 1
                        if at == sources:
                            at = 0
                    if ended >= 0:
                        for s in range(sources - 1, -1, -1):
                            if pair[pairs[i, s], SERVED] == 0 and more[pairs[i, s], LIST] == 0:
                                forget(pairs, count, active, i, s)
                                tally[ACTIVE] -= 1
                        sources = np.int64(count[i])
                    if length > longest[k]:
                        longest[k] = length
                        tally[MAX_QUEUE] = max(tally[MAX_QUEUE], length)
                    if not ready_queues:
                        ready = 0
                queue[row, LENGTH], queue[row, READY] = length, ready
                before += length
                if chosen < 0 and length > 0:
                    chosen = row
                stay |= length > 0 or ready > 0
            tally[MAX_NODE] = max(tally[MAX_NODE], waiting[i])

            # Feedback: eq. (6) over the classes that go first, said as the epoch from which the source may send again.
            debt = np.int64(queue[q * classes, OWED])
            if p == self_place:
                again = np.int64(told[i])
                told[i] = debt
                if debt == 0:
                    debt = again
            if debt != 0:
                queue[q * classes, OWED] = 0
                d = np.int64(target[debt - 1])
                m = where(place, half, n, i, d)
                ahead = np.int64(0)
                for k in range(more[debt - 1, KLASS] + 1):
                    ahead += queue[(m * n + i) * classes + k, LENGTH] + queue[(m * n + i) * classes + k, READY]
                if has(air[c, HIT], i):
                    bit = below(word(plan.luck[1], (slot * channels + c) * n + i), bits) - field
                    if 0 <= bit < width:
                        ahead ^= np.int64(1) << bit
                air_leave[c, i] = e + ahead - 1 + late[slot_of[m] - slot_of[r] + epoch] + (1 if m < p else 0)
                air_pair[c, i] = debt
                add(air[c, SAID], i)

            # The head of the first queue that has one, or an empty cell.
            if chosen >= 0:
                number = np.int64(queue[chosen, HEAD])
                h = np.int64(cell[number, 2])
                queue[chosen, HEAD] = cell[number, 0]
                queue[chosen, LENGTH] -= 1
                waiting[i] -= 1
                tally[FLYING] += 1
                if pair[h, SOURCE] == i:
                    queue[chosen, MINE] -= 1
                    tally[LOCAL] += 1
                    if p == self_place:
                        left[i] = h + 1
                    if target[h] == j:
                        leave[h, p] = 0
                else:
                    tally[FORWARDED] += 1
                entry = state.sent[q, e % ring_size]
                entry[0], entry[1], entry[2], entry[3] = h + 1, cell[number, 1], cell[number, 3], e + 1
                air_cell[c, i] = number + 1
                add(air[c, SAID], i)
            for k in range(classes):
                stay |= queue[q * classes + k, LENGTH] > 0
            if stay or (p == self_place and told[i] != 0):
                add(busy[p], i)  # a count of ready flows must be looked at again, or it would stay
            else:
                take(busy[p], i)
    return narrow


@part
def receive(plan, state, slot):
    """Take in what was sent `delay` slots ago: silence, then for each cell its feedback, its complaint and itself."""
    numbers, shift, mirror, place = plan.numbers, plan.shift, plan.mirror, plan.place
    queue, busy, leave, target, cell, pair, more, flow, work = (
        state.queue, state.busy, state.leave, state.target, state.cell, state.pair, state.more, state.flow,
        state.work)  # fmt: skip
    tally, toll, print_, waiting, free, received, inflow = (
        state.tally, state.toll, state.print, state.waiting, state.free, state.received, state.inflow)  # fmt: skip
    n, channels, epoch, delay, half = numbers[N], numbers[CHANNELS], numbers[EPOCH], numbers[DELAY], numbers[HALF]
    self_place, ready_queues, classes = numbers[SELF], numbers[READY_QUEUES], plan.terms[CLASSES]
    sent = slot - delay
    if sent < 0:
        return
    ring, base = sent % (delay + 1), sent % epoch * channels
    air_cell, air_pair, air_leave, air = (
        state.air_cell[ring], state.air_pair[ring], state.air_leave[ring], state.air[ring])  # fmt: skip
    first_channel = self_place - base if base <= self_place < base + channels else 0

    for turn in range(channels):
        # The self-mirrored link goes first: its sender counts on no stranger's cell coming between.
        if turn == 0:
            c = first_channel
        else:
            c = turn if turn > first_channel else turn - 1
        p = base + c
        s, r = np.int64(shift[p]), np.int64(mirror[p])
        for b in range(state.down.size):
            todo = air[c, HUSH, b] & ~state.deaf[p, b] & ~state.gone[p, b]
            while todo != 0:
                i = b * 64 + lowest(todo)
                declare(plan, state, i, facing(i, s, n), p, sent)
                todo &= todo - _ONE
        senders = 0
        for b in range(state.down.size):
            todo = air[c, SAID, b]
            air[c, SAID, b] = 0
            while todo != 0:
                work[senders] = b * 64 + lowest(todo)
                senders += 1
                todo &= todo - _ONE
        for at_work in range(senders):
            i = np.int64(work[at_work])
            j = facing(i, s, n)
            number = np.int64(air_cell[c, i]) - 1
            if number >= 0:
                tally[FLYING] -= 1
            if not has(air[c, ON], i) or has(state.gone[p], i):
                if number >= 0:
                    toll[MOVED] = slot
                    lose(plan, state, number, IN_FLIGHT)
                continue
            h = np.int64(air_pair[c, i]) - 1
            if h >= 0:
                if p != self_place:
                    leave[h, r] = air_leave[c, i]
                elif not waits(queue, cell, (r * n + j) * classes + more[h, KLASS], h):
                    leave[h, r] = air_leave[c, i] + (1 if state.left[j] == h + 1 else 0)
            if has(air[c, HIT], i):
                if number >= 0:
                    lose(plan, state, number, COLLIDED if has(air[c, STRAY], i) else CORRUPTED)
                if not has(state.mute[r], j):
                    add(state.drop[r], j)
                repeat(plan, state, j, r, sent)
                continue
            if has(air[c, DROPPED], i):
                repeat(plan, state, j, r, sent)
            if number < 0:
                continue
            f, h = np.int64(cell[number, 1]), np.int64(cell[number, 2])
            about = -1 - f
            if f < 0:  # all acknowledgements have one name in the fingerprint
                f = flow.shape[0]
            d = np.int64(target[h])
            if d != j:
                k = more[h, KLASS]
                m = where(place, half, n, j, d)
                row = (m * n + j) * classes + k
                length = np.int64(queue[row, LENGTH])
                if has(state.mute[m], j):
                    fold(print_, slot, f << 20 | j << 2 | 3)
                    toll[MOVED] = slot
                    lose(plan, state, number, DISCARDED)
                    continue
                if length >= plan.depth[k]:
                    fold(print_, slot, f << 20 | j << 2 | 3)
                    lose(plan, state, number, DROPPED_CELLS)
                    if not has(state.mute[r], j):
                        add(state.drop[r], j)
                    continue
                fold(print_, slot, f << 20 | j << 2)
                if length == 0:
                    queue[row, HEAD] = number
                else:
                    tally[OVER_SUBFLOW] += 1 if waits(queue, cell, row, h) else 0
                    cell[queue[row, TAIL], 0] = number
                queue[row, TAIL] = number
                length += 1
                queue[row, LENGTH] = length
                add(busy[m], j)
                if not has(state.mute[r], j):
                    queue[(r * n + j) * classes, OWED] = h + 1
                    add(busy[r], j)
                waiting[j] += 1
                if length > state.longest[k]:
                    state.longest[k] = length
                    tally[MAX_QUEUE] = max(tally[MAX_QUEUE], length)
                tally[MAX_NODE] = max(tally[MAX_NODE], waiting[j])
                if k == 0 and length > state.incast[d] + (1 if ready_queues else state.outcast[j]):
                    tally[OVER_BOUND] += 1
                continue
            fold(print_, slot, f << 20 | j << 2 | (1 if pair[h, SOURCE] == i else 2))
            free[tally[FREE]] = number
            tally[FREE] += 1
            if about >= 0:
                toll[ACKS_IN] += 1
                more[about, PENDING] -= 1
                if cell[number, 3] > more[about, ACKED]:
                    more[about, ACKED] = cell[number, 3]
                    more[about, TIMER], more[about, TIMEOUTS] = slot, 0
                    toll[MOVED] = slot
                try_end(plan, state, about)
                drop_copy(plan, state, h)
                continue
            more[h, DIRTY] = 1
            held = reorder(pair, state.early, h, np.int64(cell[number, 3]))
            if held < 0:
                toll[DUPLICATES] += 1
            else:
                tally[MAX_HELD] = max(tally[MAX_HELD], held)
                tally[DELIVERED] += 1
                toll[MOVED] = slot
                received[j] += 1
                flow[f, DELIVER] -= 1
                if flow[f, DELIVER] == 0:
                    flow[f, FINISH] = slot
                    tally[FINISHED] += 1
                    inflow[j] -= 1
                    if inflow[j] == 0:
                        state.inflow_slots[j] += slot + 1 - state.inflow_since[j]
                pair[h, UNDELIVERED] -= 1
            drop_copy(plan, state, h)


@inlined
def waits(queue, cell, row, h):
    """Whether a cell of pair h is in a queue."""
    number, found = queue[row, HEAD], False
    for _ in range(queue[row, LENGTH]):
        found |= cell[number, 2] == h
        number = cell[number, 0]
    return found


@inlined
def reorder(pair, early, h, seq):
    """Note that cell `seq` of pair h has arrived; returns how many now wait for an earlier one, -1 if it had come."""
    size = early.shape[1] * 64  # a power of two
    due = pair[h, WANT]
    k = seq & (size - 1)
    if seq < due or early[h, k >> 6] >> np.uint64(k & 63) & _ONE != 0:
        return -1
    pair[h, GOT] += 1
    if seq > due:
        early[h, k >> 6] |= _ONE << np.uint64(k & 63)
        return pair[h, GOT] - due
    due += 1
    k = due & (size - 1)
    while early[h, k >> 6] >> np.uint64(k & 63) & _ONE != 0:
        early[h, k >> 6] &= ~(_ONE << np.uint64(k & 63))
        due += 1
        k = due & (size - 1)
    pair[h, WANT] = due
    return pair[h, GOT] - due


@bare
def skip(plan, state, to):
    """Let empty slots pass up to slot `to`; only turns are counted."""
    tally, toll, epoch, channels = state.tally, state.toll, plan.numbers[EPOCH], plan.numbers[CHANNELS]
    first, slots = tally[SLOT], to - tally[SLOT]
    for p in range(plan.shift.size):
        offset = (p // channels - first) % epoch
        times = (slots - offset + epoch - 1) // epoch if slots > offset else 0
        for b in range(state.down.size):
            working = plan.lit[p, b] & ~state.down[b]
            toll[SPOKEN] += times * population(working & ~state.mute[p, b])
            toll[FAILED_SLOTS] += times * population(working & state.mute[p, b])
    delay, x = plan.numbers[DELAY], plan.cuts[toll[CHANGE]] if toll[CHANGE] >= 0 else 0
    for slot in range(max(first, to - delay), to):  # empty cells are in the air, and silence that the dead did not hear
        air = state.air[slot % (delay + 1)]
        air[:, :, :] = 0
        for c in range(channels):
            p = slot % epoch * channels + c
            for b in range(state.down.size):
                on = plan.lit[p, b] & ~state.down[b] & ~state.mute[p, b] & ~plan.cut[x, p, b]
                air[c, HUSH, b] = plan.lit[p, b] & ~on & ~state.deaf[p, b]
    state.drop[:, :] = 0  # what was dropped were empty cells
    tally[SLOT] = to


@bare
def advance(plan, state, until, budget):
    """Simulate slots before `until`; says why it stopped. STUCK: nothing has moved for long, and nothing is to come."""
    tally, toll, start, numbers, terms = state.tally, state.toll, plan.start, plan.numbers, plan.terms
    n, channels, delay, epoch = numbers[N], numbers[CHANNELS], numbers[DELAY], numbers[EPOCH]
    visits, slots = tally[VISITS] + budget, tally[SLOTS] + budget
    plan, state = by_reference(plan), by_reference(state)
    settle = 3 * (epoch + delay + 1)  # by then silence has been noticed by both, and no cell can be asked for again
    while tally[SLOT] < until:
        if tally[FINISHED] == start.size:
            return DONE
        slot = tally[SLOT]
        coming = until  # the next slot in which the world changes
        if tally[STARTED] < start.size:
            coming = min(coming, start[tally[STARTED]])
        if toll[CHANGE] + 1 < plan.change.size:
            coming = min(coming, plan.change[toll[CHANGE] + 1])
        if toll[MEND_UNTIL] >= slot:
            coming = slot
        if coming > slot:
            empty = tally[FREE] == state.cell.shape[0] and tally[ACTIVE] == 0
            if terms[ASKING]:  # a cell that is no more may be asked for again
                empty = tally[LIVE] == 0
            last = tally[STARTED] == start.size and toll[CHANGE] + 1 == plan.change.size
            still = slot - toll[MOVED]
            if last and (still > terms[PATIENCE] or (empty and still > settle)):
                return STUCK
            if empty and still > settle:
                skip(plan, state, coming)
                continue
        change(plan, state)
        if not start_flows(plan, state):
            return MORE_PAIRS
        if terms[TIMEOUT] > 0 and slot % epoch == 0:
            short = transport(plan, state)
            if short != 0:
                return short
        most = channels * (n if numbers[READY_QUEUES] else max(n, tally[ACTIVE]))
        if tally[FREE] < most * terms[CLASSES] + channels * n * (terms[RING] + 2):
            return MORE_CELLS
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
    queue, cell, tally, toll, n = state.queue, state.cell, state.tally, state.toll, plan.numbers[N]
    twice = wrong = queued = np.int64(0)
    for row in range(queue.shape[0]):
        length = np.int64(queue[row, LENGTH])
        queued += length
        number, own = np.int64(queue[row, HEAD]), 0
        for k in range(length):
            own += 1 if state.pair[cell[number, 2], SOURCE] == row // plan.terms[CLASSES] % n else 0
            other = np.int64(cell[number, 0])
            for _ in range(k + 1, length):
                twice += 1 if cell[other, 2] == cell[number, 2] else 0
                other = np.int64(cell[other, 0])
            if k == length - 1 and number != queue[row, TAIL]:
                wrong += 1
            number = np.int64(cell[number, 0])
        wrong += abs(own - queue[row, MINE])
    there = queued + tally[FLYING] + toll[LISTED]
    gone = tally[DELIVERED] + toll[DUPLICATES] + toll[ACKS_IN]
    for cause in range(IN_FLIGHT, DROPPED_CELLS + 1):
        gone += toll[cause]
    wrong += abs(state.waiting.sum() - queued) + abs(cell.shape[0] - tally[FREE] - there)
    wrong += abs(toll[RELEASED] + toll[REPEATS] + toll[RESENT] + toll[ACKS] - there - gone)
    return twice, wrong
