"""Pairs and their cells: how pairs come to be, get seats, have cells repeated, and end."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import lowest
from weft.engine.jit import hot, part
from weft.fabrics.shoal.columns import (
    ACTIVE, AFTER, DELIVER, FREE, LISTED, LIVE, MOVED, NEXT, PAIRS_USED, RELEASE, REPEATS, REST_HEAD, REST_TAIL, SEQ,
    SERVED, SHORTEST, SINCE, SLOT, SOURCE, TIMEOUT, TURNS, UNDELIVERED, WAITING_FIRST, WAITING_LAST, WAKE,
)  # fmt: skip
from weft.fabrics.shoal.plain.sets import add, discard, has
from weft.fabrics.shoal.plain.state import (
    ACKED, BORN, COPIES, FOLLOWING, KLASS, LAST, LIST, NUMBER, OF_FLOW, OF_PAIR, PENDING, SEAT, SENT_EPOCH, SENT_FLOW,
    ROW, SENT_NUMBER, SENT_PAIR,
)  # fmt: skip
from weft.fabrics.shoal.rules import begin_flow, due_flow, end_pair, has_started, rested_by


# ---------------------------------------------------------------- beginning


@part
def vacant_seat(state, i):
    """The first seat of node i in which no pair sits, or has sat lately."""
    pair, rest, tally, marks = state.pair, state.rest, state.tally, state.marks
    marks[:] = 0
    h = np.int64(state.living[i]) - 1
    while h >= 0:
        if pair[h, SEAT] < 64 * marks.size:
            add(marks, pair[h, SEAT])
        h = pair[h, NEXT] - 1
    x = tally[REST_TAIL] - 1
    while x >= tally[REST_HEAD] and state.rested[x % rest.size] > tally[SLOT]:
        h = rest[x % rest.size]
        if pair[h, SOURCE] == i and pair[h, SEAT] < 64 * marks.size:
            add(marks, pair[h, SEAT])
        x -= 1
    for b in range(marks.size):
        if ~marks[b] != 0:
            return b * 64 + lowest(~marks[b])
    return 64 * marks.size


@part
def find_pair(plan, state, i, d, k):
    """The pair of i and d in class k, made if there is none; -1 if there is no room for it."""
    tally, pair, rest, living, target = state.tally, state.pair, state.rest, state.living, state.target
    slot = tally[SLOT]
    h = np.int64(living[i]) - 1
    while h >= 0 and not (target[h] == d and pair[h, KLASS] == k):
        h = pair[h, NEXT] - 1
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
        pair[h, SEAT] = seat
        pair[h, SOURCE], pair[h, NEXT], target[h] = i, living[i], d
        pair[h, KLASS], pair[h, BORN] = k, slot
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
    slot = state.tally[SLOT]
    h = find_pair(plan, state, np.int64(plan.src[f]), np.int64(plan.dst[f]), np.int64(plan.klass[f]))
    if h < 0:
        return False
    enlist(state, h)
    begin_flow(plan, state, h, f, slot, plan.numbers[SHORTEST])
    state.tally[MOVED] = slot
    return True


@part
def start_flows(plan, state):
    """Start every flow whose slot has come and whose node is up, those that waited first. False: no room."""
    tally, flow, src = state.tally, state.flow, plan.src
    if tally[WAKE]:
        before, f = np.int64(-1), tally[WAITING_FIRST] - 1
        while f >= 0:
            after = flow[f, AFTER] - 1
            if has(state.down, src[f]):
                before = f
            else:
                if not start_flow(plan, state, f):
                    return False
                if before < 0:
                    tally[WAITING_FIRST] = after + 1
                else:
                    flow[before, AFTER] = after + 1
                if after < 0:
                    tally[WAITING_LAST] = before + 1
            f = after
        tally[WAKE] = 0
    while True:
        f = due_flow(plan, state, tally[SLOT])
        if f < 0:
            break
        if has(state.down, src[f]):
            flow[f, RELEASE] = flow[f, DELIVER] = plan.cells[f]
            flow[f, AFTER] = 0
            if tally[WAITING_FIRST] == 0:
                tally[WAITING_FIRST] = f + 1
            else:
                flow[tally[WAITING_LAST] - 1, AFTER] = f + 1
            tally[WAITING_LAST] = f + 1
        elif not start_flow(plan, state, f):
            return False
        has_started(plan, state, f)
    return True


# ---------------------------------------------------------------- having something to release


@hot
def done_releasing(pair, h):
    """Whether pair h has neither cells to release nor cells to repeat."""
    return pair[h, SERVED] == 0 and pair[h, LIST] == 0


@part
def enlist(state, h):
    """Put pair h, which gets something to release, on its node's list in the order of seats, if it is not there."""
    pair, count, pairs = state.pair, state.count, state.pairs
    if done_releasing(pair, h):
        i, entry = pair[h, SOURCE], pair[h, SEAT] << 32 | h
        x = count[i]
        while x > 0 and pairs[i, x - 1] > entry:
            pairs[i, x] = pairs[i, x - 1]
            x -= 1
        pairs[i, x] = entry
        count[i] += 1
        add(state.active, i)
        pair[h, SINCE] = state.tally[SLOT]
        state.tally[ACTIVE] += 1


@part
def retire(state, i):
    """Take the pairs of node i that have nothing left to release off its list."""
    pairs, count, pair = state.pairs, state.count, state.pair
    kept = 0
    for x in range(count[i]):
        if done_releasing(pair, pairs[i, x] & ROW):
            state.tally[ACTIVE] -= 1
        else:
            pairs[i, kept] = pairs[i, x]
            kept += 1
    count[i] = kept
    if kept == 0:
        discard(state.active, i)


@part
def repeat_later(state, number):
    """Put a cell on its pair's list of those to repeat."""
    cell, pair = state.cell, state.pair
    h = np.int64(cell[number, OF_PAIR])
    enlist(state, h)
    if pair[h, LIST] == 0:
        pair[h, LIST] = number + 1
    else:
        cell[pair[h, LAST] - 1, FOLLOWING] = number
    pair[h, LAST] = number + 1
    state.tally[LISTED] += 1


@hot
def first_to_repeat(state, h):
    """Take the first cell off the list of those that pair h has to repeat."""
    pair = state.pair
    number = pair[h, LIST] - 1
    pair[h, LIST] = 0 if number == pair[h, LAST] - 1 else np.int64(state.cell[number, FOLLOWING]) + 1
    state.tally[LISTED] -= 1
    return number


# ---------------------------------------------------------------- copies of cells


@hot
def new_cell(state, f, h, seq):
    """A cell of pair h: its number."""
    tally, cell = state.tally, state.cell
    tally[FREE] -= 1
    number = np.int64(state.free[tally[FREE]])
    cell[number, OF_FLOW], cell[number, OF_PAIR], cell[number, NUMBER] = f, h, seq
    state.pair[h, COPIES] += 1
    return number


@part
def copy_of(plan, state, q, turn):
    """A copy of the cell that left on link q in that epoch; -1 if there was none or its pair has ended."""
    entry, pair = state.sent[q, turn % plan.numbers[TURNS]], state.pair
    h = np.int64(entry[SENT_PAIR]) - 1
    # A pair's row is not used again while a cell of it can be asked for: see `rules.rested_by`.
    if entry[SENT_EPOCH] != turn + 1 or pair[h, BORN] < 0:
        return np.int64(-1)
    about = -1 - np.int64(entry[SENT_FLOW])
    if about >= 0:
        if pair[about, BORN] < 0:
            return np.int64(-1)
        pair[about, PENDING] += 1
    state.tally[REPEATS] += 1
    return new_cell(state, np.int64(entry[SENT_FLOW]), h, np.int64(entry[SENT_NUMBER]))


@hot
def give_back(state, number):
    """Put a cell on the stack of those not in use."""
    tally = state.tally
    state.free[tally[FREE]] = number
    tally[FREE] += 1


@part
def lose(plan, state, number):
    """Forget a cell that will not arrive."""
    give_back(state, number)
    about = -1 - np.int64(state.cell[number, OF_FLOW])
    if about >= 0:
        state.pair[about, PENDING] -= 1
        try_end(plan, state, about)
    drop_copy(plan, state, np.int64(state.cell[number, OF_PAIR]))


# ---------------------------------------------------------------- ending


@hot
def drop_copy(plan, state, h):
    """A copy of one of pair h's cells is no more."""
    state.pair[h, COPIES] -= 1
    try_end(plan, state, h)


@hot
def try_end(plan, state, h):
    """End pair h if all its cells have arrived, the source knows it where it asks, and no copy is left."""
    pair = state.pair
    if pair[h, COPIES] == 0 and pair[h, PENDING] == 0:
        if plan.numbers[TIMEOUT] > 0:
            complete = pair[h, SERVED] == 0 and pair[h, ACKED] == pair[h, SEQ]
        else:
            complete = pair[h, UNDELIVERED] == 0
        if complete:
            finish_pair(plan, state, h)


@part
def finish_pair(plan, state, h):
    """Let pair h rest until nothing about it can be under way."""
    pair, tally, rest = state.pair, state.tally, state.rest
    end_pair(pair, state.living, h)
    pair[h, BORN] = -1
    if pair[h, KLASS] == 0:
        state.incast[state.target[h]] -= 1
        state.outcast[pair[h, SOURCE]] -= 1
    tally[LIVE] -= 1
    rest[tally[REST_TAIL] % rest.size] = h
    state.rested[tally[REST_TAIL] % rest.size] = rested_by(plan.numbers, tally[SLOT])
    tally[REST_TAIL] += 1
