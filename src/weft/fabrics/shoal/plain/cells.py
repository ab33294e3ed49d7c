"""Where the cells of a rack are, as arrays, for whoever looks at the plain kernel's state between strides."""

from typing import NamedTuple

import numpy as np

from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import state as of
from weft.schedule.outage import unpack


class Cells(NamedTuple):
    """Cells, by number: who sends them, in which place; for those that wait the queue, and how many are before them."""

    number: np.ndarray
    i: np.ndarray
    p: np.ndarray
    behind: np.ndarray


def queued(plan, state):
    """The cells that wait, queue by queue from head to tail."""
    n, (length, number) = int(plan.numbers[col.N]), (state.queue[:, [of.LENGTH, of.HEAD]].astype(np.int64).T)
    number, found = number.copy(), [np.zeros((3, 0), np.int64)]
    for k in range(int(length.max(initial=0))):
        q = np.flatnonzero(length > k)
        found.append(np.stack([q, np.full(len(q), k), number[q]]))
        number[q] = state.cell[number[q], of.FOLLOWING]
    q, behind, number = np.concatenate(found, axis=1)
    order = np.lexsort((behind, q))
    return Cells(number[order], q[order] % n, q[order] // n, behind[order])


def messages(plan, state):
    """(ring, channel, sender, place) of every message under way, in that order."""
    epoch, channels, delay, n = plan.numbers[[col.EPOCH, col.CHANNELS, col.DELAY, col.N]].tolist()
    slot, out = int(state.tally[col.SLOT]), [np.zeros((4, 0), np.int64)]
    for sent in range(max(slot - delay, 0), slot):
        ring = sent % (delay + 1)
        c, i = np.nonzero(unpack(state.air[ring, :, of.MESSAGE], n))
        out.append(np.stack([np.full(len(c), ring), c, i, sent % epoch * channels + c]))
    return np.concatenate(out, axis=1)


def flying(plan, state):
    """The cells under way."""
    ring, c, i, p = messages(plan, state)
    number = state.air_cell[ring, c, i].astype(np.int64) - 1
    there = number >= 0
    return Cells(number[there], i[there], p[there], np.zeros(np.count_nonzero(there), np.int64))


def listed(state):
    """The cells to be repeated, pair by pair in their order."""
    out = []
    for h in np.flatnonzero(state.pair[: state.tally[col.PAIRS_USED], of.LIST]):
        out.append(int(state.pair[h, of.LIST]) - 1)
        while out[-1] != state.pair[h, of.LAST] - 1:
            out.append(int(state.cell[out[-1], of.FOLLOWING]))
    return np.array(out, np.int64)


def places(plan, j, d):
    """The place in which j sends to d; arrays."""
    n, half = int(plan.numbers[col.N]), int(plan.numbers[col.HALF])
    return plan.place[d - j + n + np.where(j >= half, 2 * n, 0)].astype(np.int64)
