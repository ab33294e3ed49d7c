"""Collectives: what the nodes of a training job do to one buffer, step by step, each step waiting for the one before.

- ring: each node sends a share of the buffer to the next one, 2 (n - 1) times (Patarasuk and Yuan, JPDC 2009); what
  NCCL does on one channel.
- tree: shares are added up along a binary tree to its root and handed down again, in chunks that follow each other
  (Sanders, Speck and Träff, Parallel Computing 2009, without its second tree).
- halving-doubling: log2(n) exchanges with partners at distance n/2, n/4, …, 1, each of half as much as the one before,
  then back (Thakur, Rabenseifner and Gropp, IJHPCA 2005). n must be a power of two.
- hierarchical: a ring within every group of nodes, a ring across groups of those of one place, a ring within again
  (as in BlueConnect, MLSys 2019).

Bus bandwidth is NCCL's: bytes of the buffer over the time of the operation, times 2 (n - 1) / n for an all-reduce and
(n - 1) / n for its halves, so that it can be held against the rate of a link.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from weft.errors import BadInput, require
from weft.units import Gbps, Size, Time, param, s, show_number, us
from weft.workload.arrivals import check_fabric
from weft.workload.base import Workload
from weft.workload.flows import ENDLESS, Flows

ALGORITHMS = ("ring", "tree", "halving-doubling", "hierarchical")
CHUNKS = 8  # pieces of a buffer that follow each other through a tree


class Steps:
    """Flows of a collective under construction: each `send` waits for some that came before."""

    def __init__(self):
        self.src, self.dst, self.size, self.start = [], [], [], []
        self.after, self.delay, self.group = [], [], []

    def send(self, i, j, size, after=(), group=0) -> tuple[int, ...]:
        """`size` bytes from i to j; returns what those that need them wait for."""
        if size == 0 or i == j:
            return tuple(after)
        self.src.append(i)
        self.dst.append(j)
        self.size.append(size)
        self.start.append(0)
        self.after.append(tuple(dict.fromkeys(after)))
        self.delay.append(0)
        self.group.append(group)
        return (len(self.src) - 1,)

    def put_off(self, f, time) -> None:
        """Let flow f begin so much later."""
        (self.delay if self.after[f] else self.start)[f] = time

    def flows(self, nodes, notes=()) -> Flows:
        """The table."""
        return Flows.of(
            nodes=nodes, src=self.src, dst=self.dst, size=self.size, start=self.start, after=self.after,
            delay=self.delay, group=self.group, notes=notes,
        )  # fmt: skip


def shares(size: int, parts: int) -> list[int]:
    """`size` bytes in so many parts, as even as can be: the first ones have a byte more."""
    return [size // parts + (k < size % parts) for k in range(parts)]


def ring_pass(steps, nodes, size, ready, rounds, group=0) -> dict:
    """Pass shares on along a ring, `rounds` times; node -> what it waits for, before (`ready`) and after."""
    n, part = len(nodes), shares(size, len(nodes))
    have = {node: tuple(ready[node]) for node in nodes}
    for k in range(rounds):
        have = {
            nodes[(at + 1) % n]: steps.send(i, nodes[(at + 1) % n], part[(at - k) % n], have[i], group)
            for at, i in enumerate(nodes)
        }
    return have


@dataclass(frozen=True, kw_only=True)
class Collective(Workload):
    """What all collectives share: a buffer, and how often it is done."""

    bytes: Size = param(help="bytes of the buffer at every node")
    repeat: int = param(1, "times, one after the other: each begins when the one before is done everywhere")
    compute: Time = param(0, "time that every node computes before each of them")

    waits = True
    share: ClassVar[float] = 2.0  # times (n - 1) / n of the buffer cross every node's link at least

    def __post_init__(self):
        require(1 <= self.bytes < ENDLESS, "bytes", f"from 1 to {ENDLESS - 1}", self.bytes)
        require(1 <= self.repeat <= 10_000, "repeat", "from 1 to 10000", self.repeat)
        require(self.compute >= 0, "compute", "0 or more", self.compute)

    def once(self, steps, nodes, ready, group) -> dict:
        """Add the flows of one operation; node -> what it waits for when it is done."""
        raise NotImplementedError

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows among all nodes; neither link nor seed matter."""
        check_fabric(nodes, link)
        require(self.bytes >= nodes, "bytes", f"at least {nodes}, a byte for each node", self.bytes)
        steps, ready = Steps(), dict.fromkeys(range(nodes), ())
        notes = []
        if self.bytes % nodes:
            notes.append(f"{self.bytes:,} bytes do not divide by {nodes} nodes: the first shares have a byte more")
        for group in range(self.repeat):
            before = len(steps.src)
            done = self.once(steps, list(range(nodes)), ready, group)
            if self.compute:
                self._compute_first(steps, before)
            everyone = tuple(dict.fromkeys(f for some in done.values() for f in some))
            ready = dict.fromkeys(range(nodes), everyone)
        return steps.flows(nodes, notes)

    def _compute_first(self, steps, first):
        """Let the flows that begin an operation, from flow `first` on, wait for the computing before it."""
        for f in range(first, len(steps.src)):
            if all(g < first for g in steps.after[f]):
                steps.put_off(f, self.compute)

    def bound(self, nodes: int, link: int) -> int:
        """ps: what no algorithm can beat on links of this rate, latency left out."""
        size = self.bytes * self.share * (nodes - 1) / nodes
        return int(-(-size * 8 * s // link))

    def sections(self, fabric, flows, released, finish) -> dict:
        """Time of each operation, bus bandwidth, and how far it is from the bound of the links."""
        spans = []
        for group in range(self.repeat):
            own = flows.group == group
            if own.any() and (finish[own] >= 0).all():
                spans.append(int(finish[own].max() - released[own].min()))
        rate = getattr(fabric, "payload_rate", None) or fabric.link
        least = self.bound(flows.nodes, int(rate))
        mean = float(np.mean(spans)) if spans else None
        bus = self.bytes * 8 * self.share * (flows.nodes - 1) / flows.nodes
        return {
            "collective": {
                "done": len(spans),
                "step_us": {
                    "mean": None if mean is None else mean / us,
                    "min": min(spans) / us if spans else None,
                    "max": max(spans) / us if spans else None,
                },
                "bus_gbps": None if mean is None else bus * s / mean / Gbps,
                "bound_us": least / us,
                "over_bound": None if mean is None else mean / least,
            }
        }

    @staticmethod
    def facts(summary):
        told = summary["collective"]
        if told["bus_gbps"] is not None:
            mean, most = show_number(told["step_us"]["mean"]), show_number(told["step_us"]["max"])
            yield "collective", f"{mean} µs mean, {most} at most; {told['done']} done"
            yield "bus bandwidth", f"{show_number(told['bus_gbps'])} Gb/s, as NCCL counts it"
            yield "bound", f"{show_number(told['bound_us'])} µs by the links alone; {told['over_bound']:.2f} times that"


@dataclass(frozen=True, kw_only=True)
class AllReduce(Collective):
    """Every node has a buffer, and in the end the sum of all of them."""

    algorithm: Literal["ring", "tree", "halving-doubling", "hierarchical"] = param("ring", "who sends what to whom")
    group: int = param(8, "nodes of a group (hierarchical)")

    def __post_init__(self):
        super().__post_init__()
        require(self.algorithm in ALGORITHMS, "algorithm", f"one of {', '.join(ALGORITHMS)}", self.algorithm)
        require(self.group >= 1, "group", "at least 1 node", self.group)

    def once(self, steps, nodes, ready, group):
        return getattr(self, "_" + self.algorithm.replace("-", "_"))(steps, nodes, ready, group)

    def _ring(self, steps, nodes, ready, group):
        return ring_pass(steps, nodes, self.bytes, ready, 2 * (len(nodes) - 1), group)

    def _tree(self, steps, nodes, ready, group):
        n = len(nodes)
        done = {node: [] for node in nodes}
        for part in shares(self.bytes, min(CHUNKS, self.bytes)):
            up = {}
            for k in reversed(range(1, n)):  # children are 2k + 1 and 2k + 2: all have sent when their parent does
                below = [f for child in (2 * k + 1, 2 * k + 2) if child < n for f in up[child]]
                up[k] = steps.send(nodes[k], nodes[(k - 1) // 2], part, (*below, *ready[nodes[k]]), group)
            down = {0: tuple(f for child in (1, 2) if child < n for f in up[child])}
            for k in range(1, n):
                down[k] = steps.send(nodes[(k - 1) // 2], nodes[k], part, down[(k - 1) // 2], group)
            for k in range(n):
                done[nodes[k]] += down[k]
        return {node: tuple(some) for node, some in done.items()}

    def _halving_doubling(self, steps, nodes, ready, group):
        n = len(nodes)
        if n & (n - 1):
            raise BadInput(f"nodes must be a power of two for halving-doubling, not {n}")
        have = {k: tuple(ready[nodes[k]]) for k in range(n)}
        for reduce in (True, False):
            distances = [n >> step for step in range(1, n.bit_length())]
            for distance in distances if reduce else reversed(distances):
                size = -(-self.bytes * distance // n)
                have = {k ^ distance: steps.send(nodes[k], nodes[k ^ distance], size, have[k], group) for k in range(n)}
        return {nodes[k]: have[k] for k in range(n)}

    def _hierarchical(self, steps, nodes, ready, group):
        n, m = len(nodes), min(self.group, len(nodes))
        if n % m:
            raise BadInput(f"nodes must be a multiple of group, {m}, not {n}")
        teams = [nodes[k : k + m] for k in range(0, n, m)]
        have = dict(ready)
        for team in teams:
            have |= ring_pass(steps, team, self.bytes, have, m - 1, group) if m > 1 else {}
        for place, part in enumerate(shares(self.bytes, m)):
            across = [team[place] for team in teams]
            if len(across) > 1 and part:
                have |= ring_pass(steps, across, part, have, 2 * (len(across) - 1), group)
        for team in teams:
            have |= ring_pass(steps, team, self.bytes, have, m - 1, group) if m > 1 else {}
        return have


@dataclass(frozen=True, kw_only=True)
class AllGather(Collective):
    """Every node has a share of the buffer, and in the end all of it: once round a ring."""

    share: ClassVar[float] = 1.0

    def once(self, steps, nodes, ready, group):
        return ring_pass(steps, nodes, self.bytes, ready, len(nodes) - 1, group)


@dataclass(frozen=True, kw_only=True)
class ReduceScatter(AllGather):
    """Every node has a buffer, and in the end its share of the sum: once round a ring."""
