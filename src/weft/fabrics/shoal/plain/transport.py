"""The end-to-end transport: cumulative acknowledgements, and timeouts that send again what is not acknowledged."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.jit import hot, part
from weft.fabrics.shoal.columns import (
    ACKS, ACKS_IN, EPOCH, FREE, MORE_CELLS, MORE_PAIRS, MOVED, N, NEXT, RESENT, SEQ, SLOT, TIMEOUT, WANT,
)  # fmt: skip
from weft.fabrics.shoal.plain.pairs import drop_copy, find_pair, new_cell, repeat_later, try_end
from weft.fabrics.shoal.plain.sets import has
from weft.fabrics.shoal.plain.state import (
    ACKED, DIRTY, KLASS, LIST, PENDING, TIMEOUTS, TIMER,
)  # fmt: skip

BURST = 16  # cells that a timeout sends again
BACKOFF = 3  # times that a timeout doubles
EVERY = 8  # epochs between two acknowledgements


@part
def time_out(plan, state):
    """Once an epoch: send again what nobody has acknowledged in time, and acknowledge in turn. What ran out, or 0."""
    tally, pair, origin = state.tally, state.pair, state.origin
    slot, size = tally[SLOT], origin.shape[1]
    for i in range(plan.numbers[N]):
        turn = (slot // plan.numbers[EPOCH] + i) % EVERY == 0
        h = np.int64(state.living[i]) - 1
        while h >= 0:
            after, d = pair[h, NEXT] - 1, np.int64(state.target[h])
            late = slot - pair[h, TIMER] >= plan.numbers[TIMEOUT] << pair[h, TIMEOUTS]
            if late and pair[h, SEQ] > pair[h, ACKED] and pair[h, LIST] == 0 and not has(state.down, i):
                if tally[FREE] < BURST:
                    return MORE_CELLS
                for seq in range(pair[h, ACKED], min(pair[h, SEQ], pair[h, ACKED] + BURST)):
                    repeat_later(state, new_cell(state, np.int64(origin[h, seq & (size - 1)]), h, seq))
                    tally[RESENT] += 1
                pair[h, TIMER] = slot
                pair[h, TIMEOUTS] = min(pair[h, TIMEOUTS] + 1, BACKOFF)
            if turn and pair[h, DIRTY] and not has(state.down, d):
                if tally[FREE] == 0:
                    return MORE_CELLS
                back = find_pair(plan, state, d, i, pair[h, KLASS])
                if back < 0:
                    return MORE_PAIRS
                repeat_later(state, new_cell(state, -1 - h, back, pair[h, WANT]))
                pair[h, PENDING] += 1
                pair[h, DIRTY] = 0
                tally[ACKS] += 1
            h = after
    return 0


@hot
def remember(plan, state, h, f, seq, slot):
    """Keep which flow cell `seq` of pair h is of, until it is acknowledged; the first that waits starts the timer."""
    pair = state.pair
    if seq == pair[h, ACKED]:
        pair[h, TIMER], pair[h, TIMEOUTS] = slot, 0
    state.origin[h, seq & (state.origin.shape[1] - 1)] = f


@part
def acknowledge(plan, state, about, h, seq, slot):
    """Pair `about` hears, by a cell of pair h, that all its cells before `seq` have arrived."""
    pair, tally = state.pair, state.tally
    tally[ACKS_IN] += 1
    pair[about, PENDING] -= 1
    if seq > pair[about, ACKED]:
        pair[about, ACKED] = seq
        pair[about, TIMER], pair[about, TIMEOUTS] = slot, 0
        tally[MOVED] = slot
    try_end(plan, state, about)
    drop_copy(plan, state, h)
