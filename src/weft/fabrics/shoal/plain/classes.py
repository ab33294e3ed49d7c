"""Traffic classes (App. C): a queue per class on each link, the first class first; and the queues themselves."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.jit import hot
from weft.fabrics.shoal.columns import CLASSES, MAX_NODE, MAX_QUEUE
from weft.fabrics.shoal.plain.state import (
    FOLLOWING, HEAD, LENGTH, MINE, OF_PAIR, OWED, READY, TAIL,
)  # fmt: skip


@hot
def cells_ahead(queue, first, k):
    """Cells and ready flows that go before a new cell of class k, on the link whose first queue is `first`."""
    ahead = np.int64(0)
    for row in range(first, first + k + 1):
        ahead += queue[row, LENGTH] + queue[row, READY]
    return ahead


@hot
def highest(queue, first, classes):
    """The queue of the highest class that has a cell, on the link whose first queue is `first`; -1 if none has."""
    for row in range(first, first + classes):
        if queue[row, LENGTH] > 0:
            return np.int64(row)
    return np.int64(-1)


@hot
def all_cells(queue, first, classes):
    """Cells of all classes on the link whose first queue is `first`."""
    cells = np.int64(0)
    for row in range(first, first + classes):
        cells += queue[row, LENGTH]
    return cells


@hot
def in_use(queue, first, classes):
    """Whether a queue of the link has cells, or counts ready flows, which would stay if they were not counted again."""
    found = False
    for row in range(first, first + classes):
        found |= queue[row, LENGTH] > 0 or queue[row, READY] > 0
    return found


@hot
def waits(queue, cell, row, h):
    """Whether a cell of pair h is in a queue."""
    number, found = queue[row, HEAD], False
    for _ in range(queue[row, LENGTH]):
        found |= cell[number, OF_PAIR] == h
        number = cell[number, FOLLOWING]
    return found


@hot
def append(queue, cell, row, number):
    """Put a cell at the end of a queue."""
    if queue[row, LENGTH] == 0:
        queue[row, HEAD] = number
    else:
        cell[queue[row, TAIL], FOLLOWING] = number
    queue[row, TAIL] = number
    queue[row, LENGTH] += 1


@hot
def put_first(queue, cell, row, number):
    """Put a cell at the head of a queue."""
    if queue[row, LENGTH] == 0:
        queue[row, TAIL] = number
    else:
        cell[number, FOLLOWING] = queue[row, HEAD]
    queue[row, HEAD] = number
    queue[row, LENGTH] += 1


@hot
def pop(queue, cell, row):
    """Take the head of a queue."""
    number = np.int64(queue[row, HEAD])
    queue[row, HEAD] = cell[number, FOLLOWING]
    queue[row, LENGTH] -= 1
    return number


@hot
def clear(plan, state, q):
    """Forget what the queues of link q count, once their cells are taken care of."""
    queue, classes = state.queue, plan.numbers[CLASSES]
    for row in range(q * classes, (q + 1) * classes):
        queue[row, LENGTH] = queue[row, MINE] = queue[row, READY] = queue[row, OWED] = 0
    state.past[q, :] = 0


@hot
def note_length(state, row, k):
    """Keep the longest queue of all, and of class k."""
    length = np.int64(state.queue[row, LENGTH])
    if length > state.longest[k]:
        state.longest[k] = length
        state.tally[MAX_QUEUE] = max(state.tally[MAX_QUEUE], length)


@hot
def wait_at(state, i, cells):
    """So many cells more wait at node i."""
    state.waiting[i] += cells
    state.tally[MAX_NODE] = max(state.tally[MAX_NODE], state.waiting[i])
