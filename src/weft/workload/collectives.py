"""Collectives: what the nodes of a training job do to one buffer, step by step, each step waiting for the one before.

- ring: each node sends a share of the buffer to the next one, 2 (n - 1) times (Patarasuk and Yuan, JPDC 2009); what
  NCCL does on one channel.
- tree: shares are added up along a binary tree to its root and handed down again, in chunks that follow each other
  (Sanders, Speck and Träff, Parallel Computing 2009, without its second tree).
- halving-doubling: log2(n) exchanges with partners at distance n/2, n/4, …, 1, each of half as much as the one before,
  then back (Thakur, Rabenseifner and Gropp, IJHPCA 2005). n must be a power of two.
- hierarchical: a ring within every group of nodes, a ring across groups of those of one place, a ring within again
  (as in BlueConnect, MLSys 2019).
- exchange: all-to-all in n - 1 phases, in phase k with the nodes k further and k before (the pairwise exchange of
  Thakur, Rabenseifner and Gropp, 2005); experts: one to bring tokens to their experts and one back (GShard, Lepikhin
  et al., ICLR 2021).
- parameter server: workers push gradients to servers, each of which holds a share, and pull what it makes of them (Li
  et al., OSDI 2014).

Bus bandwidth is NCCL's: bytes of the buffer over the time of the operation, times 2 (n - 1) / n for an all-reduce and
(n - 1) / n for its halves and for all-to-all, so that it can be held against the rate of a link. NCCL has no parameter
server: there it is what the busiest link carries, by the same reasoning.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from weft.errors import BadInput, require
from weft.schedule.rotation import DARK, rounds
from weft.units import Gbps, Size, Time, param, s, show_number, us
from weft.workload.arrivals import check_fabric
from weft.workload.base import Workload
from weft.workload.demand import Planned
from weft.workload.flows import ENDLESS, LATEST, Flows
from weft.workload.steps import Steps, bounds, later, rate, shares, spans

ALGORITHMS = ("ring", "tree", "halving-doubling", "hierarchical")
ORDERS = ("index", "rotation", "mirrored")
CHUNKS = 8  # pieces of a buffer that follow each other through a tree
MOST = 10**7  # flows


def ring_pass(steps, nodes, size, ready, rounds, group=0, ordered=None) -> dict:
    """Pass shares on along a ring, `rounds` times; node -> what it waits for, before (`ready`) and after.

    ordered: a node sends one share after the other; by default as the steps say.
    """
    n, part = len(nodes), shares(size, len(nodes))
    ordered = steps.ordered if ordered is None else ordered
    have = {node: tuple(ready[node]) for node in nodes}
    sent: dict[int, tuple] = dict.fromkeys(nodes, ())
    for k in range(rounds):
        sent = {
            i: steps.send(i, nodes[(at + 1) % n], part[(at - k) % n], have[i] + sent[i] if ordered else have[i], group)
            for at, i in enumerate(nodes)
        }
        have = {nodes[(at + 1) % n]: sent[i] for at, i in enumerate(nodes)}
    return have


def met_in_order(nodes: list[int], schedule: str) -> list[int]:
    """The nodes along a ring in which each one's next is whom the schedule lets it face soonest after it has heard.

    A node that hears another in one place of a round faces its own next one in the first place after that in which it
    meets somebody who is not in the ring yet. With the rotation and a power of two, the steps are 1, 2, 3, …
    """
    n = len(nodes)
    shifts = [int(shift) for shift in rounds(n, order=schedule).shift if shift != DARK]
    order, at, seen = [0], 0, {0}
    while len(order) < n:
        if (j := (order[-1] + shifts[at % len(shifts)]) % n) not in seen:
            order.append(j)
            seen.add(j)
        at += 1
    return [nodes[k] for k in order]


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
        require(0 <= self.compute < LATEST, "compute", f"from 0 to {LATEST - 1} ps", self.compute)

    def once(self, steps, nodes, ready, group) -> dict:
        """Add the flows of one operation; node -> what it waits for when it is done."""
        raise NotImplementedError  # derived classes say it

    def again(self, done) -> dict:
        """node -> what the next operation waits for there, after one that is `done`."""
        return dict.fromkeys(done, tuple(dict.fromkeys(f for some in done.values() for f in some)))

    def flows_of(self, nodes: int) -> int:
        """Flows of one operation among so many nodes, or about as many."""
        raise NotImplementedError  # derived classes say it

    def spread(self, nodes: int) -> str | None:
        """How the bytes are dealt where they do not divide, in a sentence."""
        if self.bytes % nodes:
            return f"{self.bytes:,} bytes do not divide by {nodes} nodes: the first shares have a byte more"
        return None

    def planned(self, nodes: int) -> Planned:
        """How many flows it will be."""
        return Planned(nodes, self.repeat * self.flows_of(nodes), chained=True)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows among all nodes; neither link nor seed matter."""
        check_fabric(nodes, link)
        require(self.bytes >= nodes, "bytes", f"at least {nodes}, a byte for each node", self.bytes)
        count = self.repeat * self.flows_of(nodes)
        require(count <= MOST, "nodes and repeat", f"few enough for {MOST:,} flows", count)
        steps, ready = Steps(), dict.fromkeys(range(nodes), later((), self.compute))
        for group in range(self.repeat):
            done = self.again(self.once(steps, list(range(nodes)), ready, group))
            ready = {node: later(some, self.compute) for node, some in done.items()}
        return steps.flows(nodes, filter(None, [self.spread(nodes)]))

    def crossing(self, nodes: int) -> float:
        """Bytes that cross the busiest link, whatever the algorithm."""
        return self.bytes * self.share * (nodes - 1) / nodes

    def bound(self, nodes: int, link: float) -> int:
        """ps: what no algorithm can beat on links of this rate, latency left out."""
        return int(-(-self.crossing(nodes) * 8 * s // link))

    def sections(self, fabric, flows, released, finish) -> dict:
        """Time of each operation, bus bandwidth, and how far it is from what the fabric allows."""
        begun, ended = spans(flows, released, finish, self.repeat)
        times = (ended - begun)[ended >= 0]
        least = {"bandwidth": float(self.bound(flows.nodes, rate(fabric)))}
        least |= bounds(fabric, flows, np.flatnonzero(flows.group == 0))
        del least["links"]  # of the algorithm; the bandwidth bound is for all of them
        mean = float(times.mean()) if times.size else None
        return {
            "collective": {
                "done": int(times.size),
                "step_us": spread_us(times),
                "bus_gbps": None if mean is None else self.crossing(flows.nodes) * 8 * s / mean / Gbps,
                **over(least, mean),
            }
        }

    @staticmethod
    def facts(summary):
        told = summary["collective"]
        if told["bus_gbps"] is not None:
            mean, most = show_number(told["step_us"]["mean"]), show_number(told["step_us"]["max"])
            yield "collective", f"{mean} µs mean, {most} at most; {told['done']} done"
            yield "bus bandwidth", f"{show_number(told['bus_gbps'])} Gb/s, as NCCL counts it"
            yield from bound_facts(told)


def spread_us(times: np.ndarray) -> dict:
    """Mean and extremes of times in ps, in µs."""
    return {name: float(getattr(times, name)()) / us if times.size else None for name in ("mean", "min", "max")}


def over(least: dict[str, float], mean: float | None) -> dict:
    """What is said of bounds in ps: the largest, how far the mean time is from it, and each of them."""
    bound = max(least.values())
    return {
        "bound_us": bound / us,
        "over_bound": None if mean is None else mean / bound,
        "bounds_us": {name: ps / us for name, ps in least.items()},
    }


def bound_facts(told):
    """Lines on the bounds of a section."""
    each = ", ".join(f"{name} {show_number(value)}" for name, value in told["bounds_us"].items())
    yield "bound", f"{show_number(told['bound_us'])} µs ({each}); {told['over_bound']:.2f} times that"


@dataclass(frozen=True, kw_only=True)
class AllReduce(Collective):
    """Every node has a buffer, and in the end the sum of all of them."""

    algorithm: Literal["ring", "tree", "halving-doubling", "hierarchical"] = param("ring", "who sends what to whom")
    group: int = param(8, "nodes of a group (hierarchical)")
    order: Literal["index", "rotation", "mirrored"] = param(
        "index", "neighbours along a ring: by number, or as that schedule of a rack meets them"
    )

    def __post_init__(self):
        super().__post_init__()
        require(self.algorithm in ALGORITHMS, "algorithm", f"one of {', '.join(ALGORITHMS)}", self.algorithm)
        require(self.group >= 1, "group", "at least 1 node", self.group)
        require(self.order in ORDERS, "order", f"one of {', '.join(ORDERS)}", self.order)

    def once(self, steps, nodes, ready, group):
        if self.order != "index":
            nodes = met_in_order(nodes, self.order)
        return getattr(self, "_" + self.algorithm.replace("-", "_"))(steps, nodes, ready, group)

    def flows_of(self, nodes):
        if self.algorithm == "tree":
            return 2 * (nodes - 1) * CHUNKS
        if self.algorithm == "halving-doubling":
            return 2 * nodes * (nodes - 1).bit_length()
        inner = min(self.group, nodes) if self.algorithm == "hierarchical" else nodes
        return 2 * nodes * (inner - 1 + nodes // inner - 1)

    def spread(self, nodes):
        if self.algorithm == "tree":
            rest = f"{self.bytes:,} bytes do not divide by {CHUNKS}: the first chunks have a byte more"
            return rest if self.bytes % CHUNKS else None
        if self.algorithm == "halving-doubling" and self.bytes % nodes:
            return f"{self.bytes:,} bytes do not divide by {nodes} nodes: every exchange is rounded up to whole bytes"
        return super().spread(nodes)

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
            down = {0: (*(f for child in (1, 2) if child < n for f in up[child]), *ready[nodes[0]])}
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
        distances = [n >> step for step in range(1, n.bit_length())]
        for distance in (*distances, *reversed(distances)):
            size = -(-self.bytes * distance // n)
            sent = {k: steps.send(nodes[k], nodes[k ^ distance], size, have[k], group) for k in range(n)}
            have = {k: sent[k ^ distance] + (sent[k] if steps.ordered else ()) for k in range(n)}
        return {nodes[k]: have[k] for k in range(n)}

    def _hierarchical(self, steps, nodes, ready, group):
        n, m = len(nodes), min(self.group, len(nodes))
        if n % m:
            raise BadInput(f"nodes must be a multiple of group, {m}, not {n}")
        teams = [nodes[k : k + m] for k in range(0, n, m)]
        have = dict(ready)
        for team in teams:
            have |= ring_pass(steps, team, self.bytes, have, m - 1, group, True) if m > 1 else {}
        for place, part in enumerate(shares(self.bytes, m)):
            across = [team[place] for team in teams]
            if len(across) > 1 and part:
                have |= ring_pass(steps, across, part, have, 2 * (len(across) - 1), group, True)
        for team in teams:
            have |= ring_pass(steps, team, self.bytes, have, m - 1, group, True) if m > 1 else {}
        return have


@dataclass(frozen=True, kw_only=True)
class AllGather(Collective):
    """Every node has a share of the buffer, and in the end all of it: once round a ring."""

    share: ClassVar[float] = 1.0

    def once(self, steps, nodes, ready, group):
        return ring_pass(steps, nodes, self.bytes, ready, len(nodes) - 1, group)

    def flows_of(self, nodes):
        return nodes * (nodes - 1)


@dataclass(frozen=True, kw_only=True)
class ReduceScatter(AllGather):
    """Every node has a buffer, and in the end its share of the sum: once round a ring."""


@dataclass(frozen=True, kw_only=True)
class Exchange(Collective):
    """Every node has something for every other: all-to-all in phases, in each of which it sends to one and hears one.

    A phase of a node begins when what it sent and what it heard `window` phases before is there. Its own share of the
    buffer stays where it is.
    """

    window: int = param(1, "phases under way at a time")

    share: ClassVar[float] = 1.0

    def __post_init__(self):
        super().__post_init__()
        require(self.window >= 1, "window", "at least 1 phase", self.window)

    def once(self, steps, nodes, ready, group):
        return self.exchange(steps, nodes, ready, group)

    def flows_of(self, nodes):
        return nodes * (nodes - 1)

    def exchange(self, steps, nodes, ready, group) -> dict:
        """One all-to-all; node -> the flows of its last phases, which come after all that it sends and hears before."""
        n, part = len(nodes), shares(self.bytes, len(nodes))
        past: list[dict[int, tuple]] = []  # per phase: node -> what it sent and heard
        for k in range(1, n):
            gate = past[k - 1 - self.window] if k > self.window else ready
            sent = [
                steps.send(i, nodes[(at + k) % n], part[(at + k) % n], gate[i], group) for at, i in enumerate(nodes)
            ]
            past.append({node: (*sent[at], *sent[(at - k) % n]) for at, node in enumerate(nodes)})
        return {node: tuple(f for phase in past[-self.window :] for f in phase[node]) for node in nodes}


@dataclass(frozen=True, kw_only=True)
class Experts(Exchange):
    """A layer of experts, one or more at every node: tokens are brought to theirs, worked on, and brought back.

    Two all-to-alls of `bytes` at every node, as evenly as a router that balances its load would have it.
    """

    expert: Time = param(0, "time that every node works on what it was brought")

    share: ClassVar[float] = 2.0

    def __post_init__(self):
        super().__post_init__()
        require(0 <= self.expert < LATEST, "expert", f"from 0 to {LATEST - 1} ps", self.expert)

    def once(self, steps, nodes, ready, group):
        brought = self.exchange(steps, nodes, ready, group)
        worked = {node: later(some, self.expert) for node, some in brought.items()}
        return self.exchange(steps, nodes, worked, group)

    def flows_of(self, nodes):
        return 2 * nodes * (nodes - 1)


@dataclass(frozen=True, kw_only=True)
class ParameterServer(Collective):
    """Workers push their gradients to servers, and pull the parameters that these make of them.

    Nodes 0 to `servers` - 1 are servers, and each holds an equal share of the buffer; all others are workers. A server
    answers when it has heard all workers or, if `asynchronous`, each of them at once.
    """

    repeat: int = param(1, "times, one after the other: a worker goes on when it has pulled everything")
    servers: int = param(1, "nodes that hold the parameters; all others are workers")
    asynchronous: bool = param(False, "a server answers each worker without waiting for the others")

    def __post_init__(self):
        super().__post_init__()
        require(self.servers >= 1, "servers", "at least 1", self.servers)

    def once(self, steps, nodes, ready, group):
        require(self.servers < len(nodes), "servers", f"below the number of nodes, {len(nodes)}", self.servers)
        servers, workers = nodes[: self.servers], nodes[self.servers :]
        done = {node: [] for node in nodes}
        for server, part in zip(servers, shares(self.bytes, self.servers), strict=True):
            pushed = {worker: steps.send(worker, server, part, ready[worker], group) for worker in workers}
            everyone = tuple(f for some in pushed.values() for f in some)
            for worker in workers:
                heard = pushed[worker] if self.asynchronous else everyone
                done[worker] += steps.send(server, worker, part, heard, group)
        return {node: tuple(some) for node, some in done.items()}

    def again(self, done):
        return done  # a worker goes on when it has pulled: it is the servers who wait for all

    def flows_of(self, nodes):
        return 2 * self.servers * max(nodes - self.servers, 0)

    def spread(self, nodes):
        rest = f"{self.bytes:,} bytes do not divide by {self.servers} servers: the first have a byte more"
        return rest if self.bytes % self.servers else None

    def crossing(self, nodes):
        return self.bytes * max(1.0, (nodes - self.servers) / self.servers)
