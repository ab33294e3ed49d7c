"""Shoal's rules, each written once for all of its kernels; `notes.md` derives them.

What takes `state` works for any kernel's: it uses only the tables that `columns` describes. The fast kernel keeps two
forms of its own: eq. (2) over the eight pairs of a block at once (`at_most`), worth a quarter of its time, and
`ready_again` in two steps, of which the first is taken when a cell is queued, so that the second finds all it needs in
one word.
"""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import either, lowest
from weft.engine.calendar import FAR, FLOW, TIME, pop, release
from weft.engine.jit import hot, inlined, rare
from weft.fabrics.shoal.columns import (
    AFTER, DELAY, DELIVER, EPOCH, FEEDBACK, FINISH, FINISHED, GOT, HEAPED, KNOWN, KNOWN_STARTED, NEXT, RELEASE, SERVED,
    SOURCE, STARTED, UNDELIVERED, WANT,
)  # fmt: skip

at = np.uint64  # an index that cannot be negative: Numba then does not count from the end, a tenth of the time saved
_ONE, _ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


# ---------------------------------------------------------------- who faces whom


@inlined
def facing(i, shift, n):
    """The node that i sends to with this shift."""
    j = i + shift
    return j - either(j >= n, n, 0)


@inlined
def where(place, half, n, i, j):
    """The place in which i sends to j."""
    return np.int64(place[at(j - i + n + either(i >= half, 2 * n, 0))])


@inlined
def channel_in_turn(turn, base, self_place, channels):
    """The channel that is `turn`-th to be received, of those from place `base` on.

    The link whose two directions share a slot goes first: its sender counts on no stranger's cell coming between.
    """
    first = self_place - base if base <= self_place < base + channels else 0
    return first if turn == 0 else (turn if turn > first else turn - 1)


# ---------------------------------------------------------------- backpressure


@inlined
def may_leave(leave, epoch, length):
    """Eq. (2): whether a cell released in this epoch behind `length` others leaves no sooner than it may."""
    return leave <= epoch + length


@inlined
def service_lag(late, slot_of, epoch, m, out, back):
    """Epochs from the report to the service that counts: [m < p] + ceil((s(m) - s(q) - delay) / epoch) in `notes.md`.

    The cell went out in place `out`, the report comes back in place `back`, the queue it is about is served in m.
    """
    return late[at(slot_of[at(m)] - slot_of[at(out)] + epoch)] + np.int64(m < back)


@inlined
def ready_again(epoch, ahead, lag):
    """The epoch from which the next cell of a subflow may leave, if `ahead` cells waited at a report in `epoch`."""
    return epoch + ahead - 1 + lag


@inlined
def too_young(length, age, young, interval):
    """§3.3.3: whether a pair busy for `age` slots must not use a queue of this length; from `young` slots on it may."""
    return length > 1 and age < young and length > 1 << age // interval


@inlined
def bound(incast, outcast, d, j, ready_queues):
    """Cells that the queue of node j for d may hold: eq. (5), or (3) without ready queues."""
    return incast[d] + (1 if ready_queues else outcast[at(j)])


# ---------------------------------------------------------------- flows that start


@hot
def due_flow(plan, state, slot):
    """The next flow that is to start by this slot, or -1."""
    tally = state.tally
    f = tally[KNOWN_STARTED]
    if f < plan.numbers[KNOWN] and plan.start[f] <= slot:
        return f
    if tally[HEAPED] > 0 and state.waits[0, TIME] <= slot:
        return state.waits[0, FLOW]
    return np.int64(-1)


@hot
def has_started(plan, state, f):
    """Flow f, which was due, has started."""
    tally = state.tally
    tally[STARTED] += 1
    if f < plan.numbers[KNOWN]:
        tally[KNOWN_STARTED] += 1
    else:
        pop(state.waits, tally[HEAPED])
        tally[HEAPED] -= 1


@hot
def next_start(plan, state):
    """The slot in which the next flow starts, as far as it is known; else FAR."""
    tally = state.tally
    slot = np.int64(FAR)
    if tally[KNOWN_STARTED] < plan.numbers[KNOWN]:
        slot = plan.start[tally[KNOWN_STARTED]]
    if tally[HEAPED] > 0:
        slot = min(slot, state.waits[0, TIME])
    return slot


# ---------------------------------------------------------------- flows of a pair


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


@hot
def begin_flow(plan, state, h, f, slot, shortest):
    """Flow f of pair h starts."""
    flow, d, cells = state.flow, plan.dst[f], plan.cells[f]
    join(state.pair, flow, plan.cells, h, f, shortest)
    flow[f, RELEASE] = flow[f, DELIVER] = cells
    state.pair[h, UNDELIVERED] += cells
    if state.inflow[d] == 0:
        state.inflow_since[d] = slot
    state.inflow[d] += 1


@rare
def set_free(state, f, slot):
    """Release those that wait for flow f, which has ended: a call of two words, for which no cell keeps registers."""
    state.tally[HEAPED] = release(state.waits, state.successors, state.tally[HEAPED], f, slot + 1)


@hot
def deliver(state, f, h, j, slot):
    """A cell of flow f, of pair h, has reached its end, node j; flows end here. Returns what the pair still lacks."""
    flow, pair = state.flow, state.pair
    state.received[at(j)] += 1
    flow[at(f), DELIVER] -= 1
    if flow[at(f), DELIVER] == 0:
        flow[at(f), FINISH] = slot
        state.tally[FINISHED] += 1
        if state.waits.shape[0] > 0:
            set_free(state, f, slot)
        state.inflow[j] -= 1
        if state.inflow[j] == 0:
            state.inflow_slots[j] += slot + 1 - state.inflow_since[j]
    pair[at(h), UNDELIVERED] -= 1
    return pair[at(h), UNDELIVERED]


# ---------------------------------------------------------------- pairs


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


@inlined
def rested_by(numbers, slot):
    """The slot from which the seat of a pair that ends in `slot` may be taken: no feedback on it is under way."""
    return slot + (1 + numbers[FEEDBACK]) * (numbers[EPOCH] + numbers[DELAY] + 1)


@inlined
def has_arrived(pair, early, h, seq):
    """Whether cell `seq` of pair h has arrived before."""
    k = seq & (early.shape[1] * 64 - 1)
    return seq < pair[at(h), WANT] or early[at(h), at(k >> 6)] >> np.uint64(k & 63) & _ONE != 0


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
def window(early, channels):
    """Cells of a pair that may be released beyond the first that has not arrived, before `early` must grow."""
    return early.shape[1] * 64 - channels


# ---------------------------------------------------------------- the fingerprint


@inlined
def event(f, j, hop):
    """A cell of flow f at node j, and how it came."""
    return np.uint64(f) << np.uint64(20) | np.uint64(j) << np.uint64(2) | np.uint64(hop)
