"""Schedulers for a single switch that solve something exactly: maximum-weight matchings, and Birkhoff-von Neumann."""

import numpy as np

from weft import random
from weft.engine.bits import lowest
from weft.engine.jit import kernel
from weft.fabrics.tdma.plan import Demand, Schedule
from weft.fabrics.tdma.schedulers.base import Scheduler

TIES = 0x74646D61  # stream of what breaks ties between matchings
FINE = 256  # parts of a slot in which a demand is weighed
LONG = 32  # slots beyond which all demands weigh the same
NOISE = 24  # bits below a weight: with 2^13 for the demand and 2^12 hosts a sum is exact in a float64

_0, _1 = np.uint64(0), np.uint64(1)


class _Switch(Scheduler):
    takes = "switch"

    def __init__(self, network):
        super().__init__(network)
        own = network.host_port
        self._pair = np.minimum.outer(network.capacity[own], network.capacity[own ^ 1])  # bytes of a pair in a slot
        self._rate = np.minimum.outer(network.rate[own], network.rate[own ^ 1])

    def _schedule(self, slots, rows) -> Schedule:
        """A schedule of rows (slot, src, dst, bytes), by slot."""
        when, src, dst, size = np.array(rows, np.int64).reshape(-1, 4).T
        own = self.network.host_port
        ports = np.stack([own[src], own[dst] ^ 1], axis=1).reshape(-1).astype(np.int32)
        return Schedule(
            slots, when.astype(np.int32), src.astype(np.int32), dst.astype(np.int32), size, self._rate[src, dst],
            np.arange(0, 2 * len(when) + 1, 2, dtype=np.int64), ports,
        )  # fmt: skip

    def _serve(self, t, pairs, left, rows):
        """Grant the pairs (src, dst) of slot t what they may send."""
        src, dst = pairs
        given = np.minimum(left[src, dst], self._pair[src, dst])
        some = given > 0
        src, dst, given = src[some], dst[some], given[some]
        left[src, dst] -= given
        rows.append(np.stack([np.full(len(src), t), src, dst, given], axis=1))


class Heaviest(_Switch):
    """In every slot the matching with the most bytes; SciPy finds it, and drawn bits choose among equals."""

    name = "mwm"

    def __init__(self, network):
        super().__init__(network)
        self._clock = np.zeros(1, np.int64)  # slots planned so far

    def arrays(self):
        return {"clock": self._clock}

    def bound(self, slots):
        return None  # a pair with few bytes may wait as long as others have many

    def plan(self, demand: Demand, slots: int) -> Schedule:
        from scipy.optimize import linear_sum_assignment

        self._check(demand, slots)
        n, left, rows = self.network.hosts, demand.want.copy(), [np.zeros((0, 4), np.int64)]
        own = random.key(0, TIES)
        for t in range(slots):
            if not left.any():
                break
            parts = np.minimum(-(-left * FINE // self._pair), FINE * LONG)
            noise = random.words(own, n * n, (int(self._clock[0]) + t) * n * n).reshape(n, n) >> np.uint64(64 - NOISE)
            weight = np.where(left > 0, (parts << NOISE) + noise.astype(np.int64), 0)
            self._serve(t, linear_sum_assignment(weight, maximize=True), left, rows)
        self._clock += slots
        return self._schedule(slots, np.concatenate(rows))


class Birkhoff(_Switch):
    """Batches: a snapshot of the demand, taken apart into permutations that serve all of it in the fewest slots.

    A batch may be longer than a round; what is left of it comes first in the next. Birkhoff 1946, von Neumann 1953; in
    switches Chang, Chen and Huang, INFOCOM 2000.
    """

    name = "bvn"

    def __init__(self, network):
        super().__init__(network)
        self._batch = []  # permutations that are still to come, the next one last

    def arrays(self):
        return {"batch": np.array(self._batch, np.int64).reshape(-1, self.network.hosts)}

    def restore(self, arrays):
        self._batch = list(arrays["batch"])

    def bound(self, slots):
        """Two batches: a demand that came just after a snapshot is served by the end of the next batch."""
        return 2 * (self.network.hosts - 1) * self._most(slots)

    def _most(self, slots):
        """Slots of one pair in a batch."""
        return max(1, slots // max(1, self.network.hosts - 1))

    def plan(self, demand: Demand, slots: int) -> Schedule:
        self._check(demand, slots)
        n, left, rows = self.network.hosts, demand.want.copy(), [np.zeros((0, 4), np.int64)]
        every = np.arange(n)
        for t in range(slots):
            if not self._batch:
                if not left.any():
                    break
                units = np.minimum(-(-left // self._pair), self._most(slots))
                parts = decompose(units)
                self._batch = [row for length, row in reversed(parts) for _ in range(length)]
            self._serve(t, (every, self._batch.pop()), left, rows)
        return self._schedule(slots, np.concatenate(rows))


def pad(units: np.ndarray) -> np.ndarray:
    """`units` with as much added as makes every row and column as large as the largest of them."""
    full = units.copy()
    rows, columns = full.sum(1), full.sum(0)
    most = max(rows.max(initial=0), columns.max(initial=0))
    rows, columns, j = most - rows, most - columns, 0
    for i in range(len(full)):
        while rows[i]:
            some = min(rows[i], columns[j])
            full[i, j] += some
            rows[i] -= some
            columns[j] -= some
            if columns[j] == 0 and j < len(full) - 1:
                j += 1
    return full


def decompose(units: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """`pad(units)` as a sum of permutations: (how often, (n,) the column of each row), …

    Their number is at most that of the entries that are not zero, their lengths add up to the largest row or column.
    """
    full = pad(np.asarray(units, np.int64))
    n = len(full)
    if n == 0 or not full.any():
        return []
    words = (n + 63) >> 6
    support = np.zeros((n, words), np.uint64)
    for w in range(words):
        part = full[:, 64 * w : 64 * w + 64] > 0
        support[:, w] = (part.astype(np.uint64) << np.arange(part.shape[1], dtype=np.uint64)).sum(1, dtype=np.uint64)
    partner, mate = np.full(n, -1, np.int64), np.full(n, -1, np.int64)  # column of a row, row of a column
    out = []
    while full[0].any():
        perfect(support, partner, mate)
        length = int(full[np.arange(n), partner].min())
        out.append((length, partner.copy()))
        full[np.arange(n), partner] -= length
        for i in np.flatnonzero(full[np.arange(n), partner] == 0):
            j = partner[i]
            support[i, j >> 6] &= ~(_1 << np.uint64(j & 63))
            partner[i] = mate[j] = -1
    return out


@kernel
def perfect(support, partner, mate):
    """Complete a matching along shortest augmenting paths. support (n, words): columns that a row may have."""
    n, words = support.shape
    unseen = np.empty(words, np.uint64)
    came = np.empty(n, np.int64)  # the row from which a column was reached
    queue = np.empty(n, np.int64)
    for root in range(n):
        if partner[root] >= 0:
            continue
        for w in range(words):
            unseen[w] = ~_0
        head, tail = 0, 1
        queue[0] = root
        end = -1
        while head < tail and end < 0:
            i = queue[head]
            head += 1
            for w in range(words):
                word = support[i, w] & unseen[w]
                unseen[w] &= ~word
                while word != _0:
                    j = (w << 6) + lowest(word)
                    word &= word - _1
                    came[j] = i
                    if mate[j] < 0:
                        end = j
                        break
                    queue[tail] = mate[j]
                    tail += 1
                if end >= 0:
                    break
        while end >= 0:
            i = came[end]
            previous = partner[i]
            partner[i], mate[end] = end, i
            end = previous if i != root else -1
