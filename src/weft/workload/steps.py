"""Flows that wait for flows, one after the other: how they are put together, and how fast they could have been.

What a flow waits for is a tuple of flows already put in, or of (flow, ps) pairs where something is computed between;
the flow of a pair may be START, the beginning of the run.
"""

import numpy as np

from weft.units import s
from weft.workload.flows import Flows

START = -1  # what a flow waits for that waits only for a moment
Ready = tuple  # of int or (int, int): what has to be done, see above


class Steps:
    """Flows under construction: each `send` waits for some that came before.

    ordered: nodes may be ready at different times, and go on when they are done themselves. A node then sends what it
    has one after the other, so that its last flows come after all that it sends and hears before.
    """

    def __init__(self, ordered: bool = False):
        self.ordered = ordered
        self.src: list[int] = []
        self.dst: list[int] = []
        self.size: list[int] = []
        self.start: list[int] = []
        self.after: list[tuple] = []
        self.lags: list[tuple] = []
        self.group: list[int] = []

    def __len__(self):
        return len(self.src)

    def send(self, i, j, size, after: Ready = (), group=0) -> Ready:
        """`size` bytes from i to j; returns what those that need them wait for."""
        if size == 0 or i == j:
            return tuple(after)
        lags: dict[int, int] = {}
        for one in after:
            f, ps = one if isinstance(one, tuple) else (one, 0)
            lags[f] = max(ps, lags.get(f, 0))
        self.start.append(lags.pop(START, 0))
        self.src.append(i)
        self.dst.append(j)
        self.size.append(size)
        self.after.append(tuple(lags))
        self.lags.append(tuple(lags.values()))
        self.group.append(group)
        return (len(self.src) - 1,)

    def flows(self, nodes, notes=()) -> Flows:
        """The table."""
        return Flows.of(
            nodes=nodes, src=self.src, dst=self.dst, size=self.size, start=self.start, after=self.after,
            after_delay=self.lags, group=self.group, notes=notes,
        )  # fmt: skip


def later(after: Ready, ps: int) -> Ready:
    """What is done `ps` after all of `after`; at the beginning, after that time."""
    if not ps:
        return tuple(after)
    pairs = [one if isinstance(one, tuple) else (one, 0) for one in after]
    return tuple((f, gap + ps) for f, gap in pairs) or ((START, ps),)


def together(*some: Ready) -> Ready:
    """What is done when all of these are; of a flow that is named twice the later moment counts."""
    lags: dict[int, int] = {}
    for one in (one for after in some for one in after):
        f, ps = one if isinstance(one, tuple) else (one, 0)
        lags[f] = max(ps, lags.get(f, 0))
    return tuple((f, ps) if ps else f for f, ps in lags.items())


def moment(after: Ready, ends) -> int:
    """ps at which all of `after` is done, where ends[f] is the end of flow f."""
    pairs = [one if isinstance(one, tuple) else (one, 0) for one in after]
    return max((ps if f == START else int(ends[f]) + ps for f, ps in pairs), default=0)


def shares(size: int, parts: int) -> list[int]:
    """`size` bytes in so many parts, as even as can be: the first ones have a byte more."""
    return [size // parts + (k < size % parts) for k in range(parts)]


# what is said of a run


def spans(flows: Flows, released, finish, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(begun, ended): ps at which each of `count` groups of flows could begin, and was done; -1 where it was not."""
    begun, ended = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    whole = np.bincount(flows.group, minlength=count) > 0
    could = released >= 0
    np.minimum.at(begun, flows.group[could], released[could])
    np.maximum.at(ended, flows.group, finish)
    np.logical_and.at(whole, flows.group, finish >= 0)
    return np.where(whole, begun, -1), np.where(whole, ended, -1)


def longest(flows: Flows, rows: np.ndarray, cost: np.ndarray, since: int = 0) -> np.ndarray:
    """(f,) int64 ps: the earliest end of each of `rows`, counted from `since`, if flow f took cost[f].

    Only the rows count, and what they wait for among themselves; others are 0.
    """
    out, begin = np.zeros(len(flows), np.int64), np.maximum(flows.start - since, 0)
    if not flows.after.size:
        out[rows] = (begin + cost)[rows]
        return out
    inside = np.zeros(len(flows), bool)
    inside[rows] = True
    waiter = np.repeat(np.arange(len(flows)), np.diff(flows.after_first))
    edge = np.flatnonzero(inside[waiter] & inside[flows.after])
    edge = edge[np.argsort(flows.after[edge], kind="stable")]
    before, then = flows.after[edge], waiter[edge]
    gap = flows.delay[then] + (flows.after_delay[edge] if flows.after_delay.size else 0)
    first = np.searchsorted(before, np.arange(len(flows) + 1)).tolist()
    pending = np.bincount(then, minlength=len(flows)).tolist()
    ready, then, gap, takes = begin.tolist(), then.tolist(), gap.tolist(), cost.tolist()
    due = [f for f in rows.tolist() if not pending[f]]
    for f in due:
        end = ready[f] + takes[f]
        out[f] = end
        for k in range(first[f], first[f + 1]):
            g = then[k]
            if end + gap[k] > ready[g]:
                ready[g] = end + gap[k]
            pending[g] -= 1
            if not pending[g]:
                due.append(g)
    return out


def bounds(fabric, flows: Flows, rows: np.ndarray) -> dict[str, float]:
    """ps from the first of `rows` to the last below which they cannot be done on this fabric, whatever else is there.

    latency: the longest chain of them if every flow were of one byte, and alone. chain: the same with the flows as
    they are. links: what the busiest node sends or hears, at the rate of its link. A fabric that knows no shortest time
    gives only the last.
    """
    told = {"links": busiest(flows, rows) * 8 * s / rate(fabric)}
    alone = fabric.ideal(flows)
    if alone is not None:
        single = Flows.of(nodes=flows.nodes, src=flows.src, dst=flows.dst, size=1, start=0)
        free = rows[np.diff(flows.after_first)[rows] == 0] if flows.after.size else rows
        since = int(flows.start[free].min()) if free.size else 0
        told["latency"] = float(longest(flows, rows, fabric.ideal(single), since).max())
        told["chain"] = float(longest(flows, rows, alone, since).max())
    return told


def busiest(flows: Flows, rows: np.ndarray) -> float:
    """Bytes of `rows` that the busiest node sends or hears."""
    return max(float(np.bincount(ends[rows], flows.size[rows], 1).max()) for ends in (flows.src, flows.dst))


def rate(fabric) -> float:
    """Bits of payload per second that a link of the fabric carries at most."""
    return fabric.payload_rate or fabric.link
