"""Flows that wait for flows: who is released when a flow ends, and which flow starts next.

A flow without predecessors starts when its table says; those come first in the table, in order of their start. The
others are counted down: when the last predecessor of a flow ends, and its delay is over, it is due. Flows that are due
at the same moment start in the order of the table, so nothing depends on the machine. Times are slots or ps, as the
caller counts.

Two arrays hold all of it, `waits` (a row per flow) and `successors` (three numbers for each flow that one waits for);
where nobody waits they are empty, and a kernel asks nothing of them. What waits for its moment lies in a heap, in two
columns of `waits`.
"""

import numpy as np

from weft.engine.jit import part

PENDING, FIRST, LAST, GAP, EARLIEST, TIME, FLOW = range(7)  # columns of `waits`
COLUMNS = 8  # a row is a line of the cache
EDGE = 3  # numbers in `successors` for each edge: the flow, and what this edge adds to its gap, in two halves
HALF = 31  # bits of a half
LOW = (1 << HALF) - 1
FAR = 1 << 62  # later than anything
at = np.uint64  # an index that cannot be negative: Numba then does not count from the end


def tables(flows) -> dict:
    """Name -> (shape, dtype) of the two arrays for a table of flows."""
    count = len(flows) if flows.waiting else 0
    return {"waits": ((count, COLUMNS), np.int64), "successors": ((EDGE * len(flows.after),), np.int32)}


def size(demand) -> int:
    """Bytes of the two arrays; of flows that are not drawn yet, none."""
    arrays = tables(demand).values() if demand.waiting else ()
    return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in arrays)


def make(flows, unit: int = 1, extra: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(waits, successors) of a table of flows, see `fill`."""
    waits, successors = (np.zeros(shape, kind) for shape, kind in tables(flows).values())
    fill(waits, successors, flows, unit, extra)
    return waits, successors


NOBODY = np.zeros((0, COLUMNS), np.int64), np.zeros(0, np.int32)  # who waits, where nobody does


def fill(waits: np.ndarray, successors: np.ndarray, flows, unit: int = 1, extra: int = 0) -> None:
    """Lay out who waits for whom; a gap and a start are rounded up to whole `unit`s of ps.

    extra: ps from the end of a flow, as the kernel counts it, until its last byte is out of the fabric.
    """
    if not flows.waiting:
        return
    waits[:, PENDING] = np.diff(flows.after_first)
    waits[:, GAP], waits[:, EARLIEST] = -(-(flows.delay + extra) // unit), -(-flows.start // unit)
    waiting = np.repeat(np.arange(len(flows)), np.diff(flows.after_first))
    order = np.argsort(flows.after, kind="stable")
    successors[::EDGE] = waiting[order]
    if flows.after_delay.size:
        whole = -(-(flows.delay[waiting] + extra + flows.after_delay) // unit)
        more = (whole - waits[waiting, GAP])[order]
        successors[1::EDGE], successors[2::EDGE] = more & LOW, more >> HALF
    counts = np.bincount(flows.after, minlength=len(flows))
    waits[:, LAST] = np.cumsum(counts)
    waits[:, FIRST] = waits[:, LAST] - counts


def limits(given: np.ndarray, laid: np.ndarray, edges: int):
    """What must hold of `waits` that others wrote, as `weft.engine.layout` takes it."""
    for column, largest in ((PENDING, edges), (FIRST, edges), (LAST, edges), (FLOW, max(len(laid) - 1, 0))):
        yield "waits", given[:, column], 0, largest
    yield "waits", given[:, [GAP, EARLIEST, TIME]], 0, FAR
    yield "waits", np.abs(given[:, [FIRST, LAST]] - laid[:, [FIRST, LAST]]), 0, 0  # whom a flow releases stays


@part
def release(waits, successors, heaped, ended, now):
    """Flow `ended` is done at `now`: count down those that wait for it. Returns how many are in the heap."""
    for k in range(waits[at(ended), FIRST], waits[at(ended), LAST]):
        edge = at(EDGE * k)
        g = np.int64(successors[edge])
        more = successors[edge + at(1)] + (np.int64(successors[edge + at(2)]) << HALF)
        time = max(now + waits[at(g), GAP] + more, waits[at(g), EARLIEST])
        waits[at(g), EARLIEST] = time
        waits[at(g), PENDING] -= 1
        if waits[at(g), PENDING] == 0:
            i = heaped
            heaped += 1
            while i > 0:
                parent = (i - 1) >> 1
                before, f = waits[at(parent), TIME], waits[at(parent), FLOW]
                if (before < time) | ((before == time) & (f < g)):
                    break
                waits[at(i), TIME], waits[at(i), FLOW] = before, f
                i = parent
            waits[at(i), TIME], waits[at(i), FLOW] = time, g
    return heaped


@part
def pop(waits, heaped):
    """Take the first flow out of the heap of `heaped`, which the caller counts down; returns the flow."""
    first = waits[0, FLOW]
    n = heaped - 1
    time, g = waits[at(n), TIME], waits[at(n), FLOW]
    i, child = 0, 1
    while child < n:
        # the smaller of two without a branch, as it may be either; row n, beside the last, is the flow to be placed
        one, other = waits[at(child), TIME], waits[at(child + 1), TIME]
        later = waits[at(child + 1), FLOW] < waits[at(child), FLOW]
        child += np.int64((other < one) | ((other == one) & later))
        before, f = waits[at(child), TIME], waits[at(child), FLOW]
        if (time < before) | ((time == before) & (g < f)):
            break
        waits[at(i), TIME], waits[at(i), FLOW] = before, f
        i, child = child, 2 * child + 1
    waits[at(i), TIME], waits[at(i), FLOW] = time, g
    return first


class Calendar:
    """The same in plain Python, for twins: flows by the moment at which they may start."""

    def __init__(self, flows, unit: int = 1, extra: int = 0):
        starts = [-(-int(start) // unit) for start in flows.start]
        gaps = [[-(-(gap + extra) // unit) for gap in flows.gaps(f)] for f in range(len(flows))]
        self._plan(starts, [flows.predecessors(f) for f in range(len(flows))], gaps)

    @classmethod
    def at(cls, starts) -> "Calendar":
        """Flows that wait for nobody, and start at these moments."""
        made = cls.__new__(cls)
        made._plan(list(starts), [[] for _ in starts], [])
        return made

    def _plan(self, starts, predecessors, gaps):
        self.earliest = starts
        self.pending = [len(some) for some in predecessors]
        self.due = sorted((start, f) for f, start in enumerate(starts) if not self.pending[f])
        self.waiting_for: dict[int, list[tuple[int, int]]] = {}
        for g, some in enumerate(predecessors):
            for f, gap in zip(some, gaps[g] if some else (), strict=True):
                self.waiting_for.setdefault(f, []).append((g, gap))

    def __bool__(self):
        return bool(self.due)

    @property
    def next(self) -> int:
        """When the next flow may start."""
        return self.due[0][0]

    def pop(self) -> int:
        """The next flow."""
        return self.due.pop(0)[1]

    def ended(self, f: int, now: int) -> None:
        """Flow f has ended at `now`: whoever waited for it alone may start after its delay."""
        for g, gap in self.waiting_for.get(f, ()):
            self.earliest[g] = max(self.earliest[g], now + gap)
            self.pending[g] -= 1
            if not self.pending[g]:
                self.due.append((self.earliest[g], g))
                self.due.sort()
