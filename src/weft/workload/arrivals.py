"""Flows that arrive at a load: Poisson, and Bursts.

The load is L = F / (R N tau), as in Shoal, section 7.3: F the mean flow size in bits, R a node's rate, N the number
of nodes, tau the mean time between two arrivals anywhere. F is the *nominal* mean of the size distribution; what a
finite draw makes of it is `Flows.realised_load`, and a note beside the flows says so.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weft import random
from weft.errors import BadInput, require
from weft.failures import outages
from weft.units import Rate, Time, ms, param, s, show_rate
from weft.workload.base import Workload
from weft.workload.flows import LATEST, Flows
from weft.workload.sizes import sizes
from weft.workload.streams import Stream

USUAL = "facebook-hadoop"  # sizes unless told: measured ones, of a mean that ten thousand draws meet
FLOWS = 10_000  # when neither a number of flows nor a duration is asked for


@dataclass(frozen=True, kw_only=True)
class Poisson(Workload):
    """Flows arriving at random moments between nodes chosen at random, at a load.

    A draw of more flows begins with the same flows as a draw of fewer.
    """

    load: float = param(help="fraction of every node's rate that is asked for; above 1 is overload")
    sizes: str = param(USUAL, "flow sizes: a distribution, with parameters if need be, or a csv file of its CDF")
    flows: int | None = param(None, "number of flows; 10,000 unless a duration is given")
    duration: Time | None = param(None, "let flows arrive during this time instead of counting them")
    load_rate: Rate | None = param(None, "the rate that load is a fraction of; the fabric's link unless given")
    drain: Time | None = param(None, "stop so long after the last arrival, though some flows are under way")

    def __post_init__(self):
        check_arrivals(self)
        require(self.drain is None or 0 <= self.drain <= LATEST, "drain", "at least 0 ps", self.drain)

    def ends(self, demand):
        """When the run stops, in ps, or None: when the last flow is done."""
        return None if self.drain is None or not len(demand) else int(demand.start[-1]) + max(self.drain, 1)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes with links of `link` b/s."""
        check_fabric(nodes, link)
        start = arrivals(self, nodes=nodes, link=link, seed=seed)
        size = draw_sizes(self.sizes, len(start), seed)
        src, dst = uniform_pairs(len(start), nodes, seed)
        flows = Flows.of(nodes=nodes, src=src, dst=dst, size=size, start=start)
        return with_load_notes(flows, self, link)


@dataclass(frozen=True, kw_only=True)
class Bursts(Workload):
    """Flows arriving in bursts, at a load: on-off sources, repeated incasts, or bursts of the whole rack.

    A burst is `burst` flows that start within `spread` of each other. `aim` says what they have in common: a source
    (a node that is on), a destination (an incast), or nothing but the moment. Bursts come at random (Poisson) or,
    with `regular`, like a clock.
    """

    load: float = param(help="fraction of every node's rate that is asked for, on average")
    burst: int = param(16, "flows in a burst")
    aim: Literal["source", "destination", "moment"] = param("source", "what the flows of a burst have in common")
    spread: Time = param(0, "flows of a burst start within this time, at random")
    regular: bool = param(False, "bursts at equal distances instead of at random")
    sizes: str = param("fixed:20KB", "flow sizes: a distribution, with parameters if need be, or a csv file of its CDF")
    flows: int | None = param(None, "number of flows; 10,000 unless a duration is given")
    duration: Time | None = param(None, "let bursts begin during this time instead of counting flows")
    load_rate: Rate | None = param(None, "the rate that load is a fraction of; the fabric's link unless given")

    def __post_init__(self):
        check_arrivals(self)
        require(self.burst >= 1, "burst", "at least 1", self.burst)
        require(0 <= self.spread < 2**53, "spread", "from 0 to 9007 s", self.spread)
        require(self.aim in ("source", "destination", "moment"), "aim", "source, destination or moment", self.aim)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes with links of `link` b/s."""
        check_fabric(nodes, link)
        begin = arrivals(self, nodes=nodes, link=link, seed=seed, together=self.burst, regular=self.regular)
        count = len(begin) * self.burst
        if self.flows is not None:
            count = min(count, self.flows)
        require(count < 10**9, "burst", "small enough for fewer than 10^9 flows to arrive", self.burst)
        burst = np.arange(count) // self.burst
        start = begin[burst] + fraction_of(self.spread, random.words(random.key(seed, Stream.OFFSETS), count))
        if self.aim == "moment":
            src, dst = uniform_pairs(count, nodes, seed)
        else:
            shared = random.below(random.words(random.key(seed, Stream.BURST_ENDS), len(begin)), nodes)
            shared = shared[burst]
            other = random.below(random.words(random.key(seed, Stream.DESTINATIONS), count), nodes - 1)
            other = other + (other >= shared)
            src, dst = (shared, other) if self.aim == "source" else (other, shared)
        order = np.argsort(start, kind="stable")
        size = draw_sizes(self.sizes, count, seed)
        flows = Flows.of(nodes=nodes, src=src[order], dst=dst[order], size=size, start=start[order])
        return with_load_notes(flows, self, link)


@dataclass(frozen=True, kw_only=True)
class Survivors(Workload):
    """Poisson arrivals in a rack of which some nodes are dead from the start.

    What failure does to the offered traffic is an open question, with three answers. `survivors`: the nodes that are
    left offer the load among themselves. `discarded`: flows arrive as in a whole rack, and those from or to a dead node
    are left out. `all`: they are not, and wait for ever.
    """

    load: float = param(help="fraction of every node's rate that is asked for")
    dead: str = param("", "the dead, as a plan of failures names them: nodes 20%, drawn from the seed, or node 3")
    offered: Literal["survivors", "discarded", "all"] = param("survivors", "what becomes of the traffic of the dead")
    sizes: str = param("pareto", "flow sizes: a distribution, with parameters if need be, or a csv file of its CDF")
    flows: int | None = param(None, "number of flows, before any are left out; 10,000 unless a duration is given")
    duration: Time | None = param(None, "let flows arrive during this time instead of counting them")
    load_rate: Rate | None = param(None, "the rate that load is a fraction of; the fabric's link unless given")
    drain: Time = param(1 * ms, "how long the run goes on after the last arrival, if some flows never end")

    def __post_init__(self):
        check_arrivals(self)
        known = ("survivors", "discarded", "all")
        require(self.offered in known, "offered", "survivors, discarded or all", self.offered)
        require(self.offered != "all" or self.duration is not None, "duration", "given if offered is all", None)
        require(0 <= self.drain <= LATEST, "drain", "at least 0 ps", self.drain)

    @property
    def until(self) -> int | None:
        """When the run stops, in ps, or None: when the last flow is done."""
        return self.duration + self.drain if self.offered == "all" and self.duration is not None else None

    def alive(self, nodes: int, seed: int) -> np.ndarray:
        """(alive,) int64: the nodes that are left, ascending."""
        dead = [outage.which[0] for outage in outages(self.dead, {"node": (nodes,)}, seed=seed)]
        return np.setdiff1d(np.arange(nodes), dead)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes with links of `link` b/s, the dead among them."""
        alive = self.alive(nodes, seed)
        require(len(alive) >= 2, "dead", "few enough for 2 nodes to be left", self.dead)
        fields = {name: getattr(self, name) for name in ("load", "sizes", "flows", "duration", "load_rate")}
        among = len(alive) if self.offered == "survivors" else nodes
        flows = Poisson(**fields).draw(nodes=among, link=link, seed=seed)
        note = f"{len(alive)} of {nodes} nodes are alive"
        src, dst = flows.src, flows.dst
        if self.offered == "survivors":
            src, dst = alive[src], alive[dst]
        kept = np.isin(src, alive) & np.isin(dst, alive)
        if self.offered == "discarded":
            note += f"; {int((~kept).sum()):,} of {len(flows):,} flows were theirs and are left out"
            require(kept.any(), "flows", "enough for some to be among the living", self.flows)
        else:
            kept[:] = True
        rows = {"src": src[kept], "dst": dst[kept], "size": flows.size[kept], "start": flows.start[kept]}
        return replace(Flows.of(nodes=nodes, **rows), notes=(*flows.notes, note))


def check_arrivals(workload) -> None:
    """Raise `BadInput` unless `load`, `sizes`, `flows`, `duration` and `load_rate` of a workload can be meant."""
    load = workload.load
    good = isinstance(load, int | float) and not isinstance(load, bool) and 0 < load < float("inf")
    require(good, "load", "a finite number above 0", load)
    if not isinstance(workload.sizes, str):
        object.__setattr__(workload, "sizes", str(sizes(workload.sizes)))
    sizes(workload.sizes)
    require(workload.flows is None or workload.flows >= 1, "flows", "at least 1", workload.flows)
    require(workload.duration is None or 0 < workload.duration <= LATEST, "duration", "above 0 ps", workload.duration)
    require(workload.load_rate is None or workload.load_rate > 0, "load_rate", "above 0 b/s", workload.load_rate)


def check_fabric(nodes: int, link: int, least: int = 2) -> None:
    """Raise `BadInput` unless traffic among `nodes` nodes on links of `link` b/s can be meant."""
    require(nodes >= least, "nodes", f"at least {least}", nodes)
    require(link > 0, "link", "above 0 b/s", link)


def mean_gap(workload, *, nodes: int, link: int) -> float:
    """tau, the mean time in ps between two arrivals that makes `workload.load`."""
    rate = float(workload.load_rate or link)
    return float(sizes(workload.sizes).mean) * 8.0 * float(s) / (float(workload.load) * rate * float(nodes))


def arrivals(workload, *, nodes: int, link: int, seed: int, together: int = 1, regular: bool = False) -> np.ndarray:
    """(k,) int64 ascending ps at which `together` flows at a time arrive.

    Every gap is rounded to a whole picosecond before it is added, so the sum is exact.
    """
    gap = mean_gap(workload, nodes=nodes, link=link) * float(together)
    count = workload.flows
    if count is None and workload.duration is None:
        count = FLOWS
    if count is not None:
        count = -(-count // together)
    if not gap * (count or 1) * 64 < LATEST:
        raise BadInput(f"load must be large enough for all flows to arrive within {LATEST // s} s, not {workload.load}")
    key = random.key(seed, Stream.GAPS)

    def first(k):
        if regular:
            return np.cumsum(np.full(k, max(round(gap), 1), np.int64))
        return np.cumsum(np.rint(-random.ln(random.unit(random.words(key, k))) * gap).astype(np.int64))

    if workload.duration is None:
        return first(count)
    guess = workload.duration / gap if gap else float("inf")  # a load so high that the gap is 0.0
    require(guess < 1e9, "duration", "short enough for fewer than 10^9 flows to arrive", workload.duration)
    k = int(guess + 6 * guess**0.5) + 16  # six standard deviations above the mean; doubled if that was not enough
    while (start := first(k))[-1] < workload.duration:
        k *= 2
    start = start[: np.searchsorted(start, workload.duration)]
    return start if count is None else start[:count]


def draw_sizes(law, count: int, seed: int) -> np.ndarray:
    """(count,) int64 bytes from the distribution called `law`."""
    return sizes(law).draw(random.words(random.key(seed, Stream.SIZES), count))


def uniform_pairs(count: int, nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sources and destinations, every pair of two different nodes equally likely."""
    src = random.below(random.words(random.key(seed, Stream.SOURCES), count), nodes)
    dst = random.below(random.words(random.key(seed, Stream.DESTINATIONS), count), nodes - 1)
    return src, dst + (dst >= src)


def fraction_of(whole: int, words: np.ndarray) -> np.ndarray:
    """int64 numbers in [0, whole], each a random fraction of it; all 0 if it is 0."""
    return ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53 * float(whole)).astype(np.int64)


def with_load_notes(flows: Flows, workload, link: int) -> Flows:
    """`flows` with the sentences that belong beside a load."""
    law, rate = sizes(workload.sizes), workload.load_rate or link
    notes = list(law.notes)
    realised = flows.realised_load(rate)
    if realised is not None:
        notes.append(f"load {workload.load:g} of {show_rate(rate)} was asked for; these flows offer {realised:.4g}")
    if workload.load * rate > link:
        notes.append(f"offered load exceeds the link of {show_rate(link)}: overload")
    return replace(flows, notes=(*flows.notes, *notes))
