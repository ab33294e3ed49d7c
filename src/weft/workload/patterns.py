"""Traffic with a shape: permutations, incasts, shuffles, hot spots, probes over background."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weft import random
from weft.errors import BadInput, TooLarge, require
from weft.units import KB, MB, Rate, Size, Time, ms, param, us, wire_time
from weft.workload.arrivals import (
    USUAL,
    Poisson,
    arrivals,
    check_arrivals,
    check_fabric,
    draw_sizes,
    uniform_pairs,
    with_load_notes,
)
from weft.workload.base import Workload
from weft.workload.flows import ENDLESS, LATEST, Flows
from weft.workload.sizes import sizes
from weft.workload.streams import Stream

MOST_FLOWS = 10**8  # a table of that many takes 3.3 GB
ENDLESS_RUN = 1 * ms  # how long a run of endless flows takes, unless told


@dataclass(frozen=True, kw_only=True)
class Permutation(Workload):
    """Every chosen node sends to one other and receives from one other, all from time 0.

    Without `bytes` the flows never end, and the run stops after `duration`.
    """

    pairs: int | None = param(None, "number of flows; all nodes take part unless given")
    duration: Time | None = param(None, "when the run stops; 1 ms for endless flows unless given")
    bytes: Size | None = param(None, "bytes of every flow; endless unless given")
    closed: bool = param(True, "the receivers are the senders themselves (if more than one), not nodes drawn anew")

    def __post_init__(self):
        require(self.pairs is None or self.pairs >= 1, "pairs", "at least 1", self.pairs)
        check_bytes(self.bytes, optional=True)
        require(self.duration is None or 0 < self.duration <= LATEST, "duration", "above 0 ps", self.duration)

    @property
    def until(self) -> int | None:
        """When the run stops, in ps, or None: when the last flow is done."""
        if self.duration is None and self.bytes is None:
            return ENDLESS_RUN
        return self.duration

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes; every way to pair them is equally likely."""
        check_fabric(nodes, link)
        pairs = nodes if self.pairs is None else self.pairs
        require(pairs <= nodes, "pairs", f"at most {nodes}, the number of nodes", pairs)
        src, dst = pairing(pairs, nodes, self.closed and pairs > 1, seed)  # one pair cannot be closed
        return Flows.of(nodes=nodes, src=src, dst=dst, size=self.bytes or ENDLESS, start=0)


@dataclass(frozen=True, kw_only=True)
class Incast(Workload):
    """`fan_in` nodes, chosen at random, send to one node at once."""

    fan_in: int = param(help="number of senders", also="senders")
    bytes: Size = param(130 * KB, "bytes that each of them sends")
    dst: int = param(0, "the receiver")

    def __post_init__(self):
        require(self.fan_in >= 1, "fan_in", "at least 1", self.fan_in)
        check_bytes(self.bytes)
        require(self.dst >= 0, "dst", "a node, at least 0", self.dst)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes, by number of the sender."""
        src = others("dst", self.dst, "fan_in", self.fan_in, nodes, link, seed)
        return Flows.of(nodes=nodes, src=src, dst=np.full(len(src), self.dst), size=self.bytes, start=0)


@dataclass(frozen=True, kw_only=True)
class Outcast(Workload):
    """One node sends to `fan_out` nodes, chosen at random, at once."""

    fan_out: int = param(help="number of receivers")
    bytes: Size = param(130 * KB, "bytes that each of them is sent")
    src: int = param(0, "the sender")

    def __post_init__(self):
        require(self.fan_out >= 1, "fan_out", "at least 1", self.fan_out)
        check_bytes(self.bytes)
        require(self.src >= 0, "src", "a node, at least 0", self.src)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes, by number of the receiver."""
        dst = others("src", self.src, "fan_out", self.fan_out, nodes, link, seed)
        return Flows.of(nodes=nodes, src=np.full(len(dst), self.src), dst=dst, size=self.bytes, start=0)


@dataclass(frozen=True, kw_only=True)
class AllToAll(Workload):
    """Every node sends to every other at once."""

    bytes: Size = param(130 * KB, "bytes from each node to each other")

    def __post_init__(self):
        check_bytes(self.bytes)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes: all to their right neighbours first, then one further."""
        check_fabric(nodes, link)
        check_count(nodes * (nodes - 1), "an all-to-all")
        distance, src = np.divmod(np.arange(nodes * (nodes - 1)), nodes)
        return Flows.of(nodes=nodes, src=src, dst=(src + distance + 1) % nodes, size=self.bytes, start=0)


@dataclass(frozen=True, kw_only=True)
class Shuffle(Workload):
    """Every mapper sends to every reducer, `parallel` mappers at a time.

    A table of flows knows no "after that one": a wave of transfers starts when the last would have ended at the full
    rate of the busier end, whether or not the fabric was that fast. Mappers and reducers are different nodes as long
    as there are enough; what a node would send to itself is left out, with a note.
    """

    mappers: int = param(help="number of nodes that send")
    reducers: int = param(help="number of nodes that receive")
    bytes: Size = param(1 * MB, "bytes from each mapper to each reducer")
    parallel: int | None = param(None, "mappers that a reducer hears at a time; all of them unless given")

    def __post_init__(self):
        require(self.mappers >= 1, "mappers", "at least 1", self.mappers)
        require(self.reducers >= 1, "reducers", "at least 1", self.reducers)
        check_bytes(self.bytes)
        require(self.parallel is None or self.parallel >= 1, "parallel", "at least 1", self.parallel)

    def wave(self, link: int) -> int:
        """Time in ps from one wave of transfers to the next."""
        parallel = min(self.parallel or self.mappers, self.mappers)
        return parallel * -(-self.reducers // self.mappers) * wire_time(self.bytes, link)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes; reducer r begins with mapper r, so that they do not collide."""
        check_fabric(nodes, link)
        for what, count in (("mappers", self.mappers), ("reducers", self.reducers)):
            require(count <= nodes, what, f"at most {nodes}, the number of nodes", count)
        check_count(self.mappers * self.reducers, "a shuffle")
        order = random.permutation(random.key(seed, Stream.CHOSEN), nodes)
        turn, r = np.divmod(np.arange(self.mappers * self.reducers), self.reducers)
        wave = turn // (self.parallel or self.mappers)
        last = int(wave[-1]) * self.wave(link)
        require(last <= LATEST, "bytes", "small enough for all waves to start within 53 days", self.bytes)
        return Flows.of(
            nodes=nodes,
            src=order[(turn + r) % self.mappers],
            dst=order[nodes - 1 - r],
            size=self.bytes,
            start=wave * self.wave(link),
        )


@dataclass(frozen=True, kw_only=True)
class Hotspot(Workload):
    """Poisson arrivals at a load, a `share` of which is for (or from) the few nodes that are `hot`."""

    load: float = param(help="fraction of every node's rate that is asked for, on average over all nodes")
    hot: float = param(0.1, "fraction of the nodes that are hot, chosen at random; at least one, never all")
    share: float = param(0.5, "fraction of the flows that is theirs")
    side: Literal["destination", "source"] = param("destination", "the end of a flow that is hot")
    sizes: str = param(USUAL, "flow sizes: a distribution, with parameters if need be, or a csv file of its CDF")
    flows: int | None = param(None, "number of flows; 10,000 unless a duration is given")
    duration: Time | None = param(None, "let flows arrive during this time instead of counting them")
    load_rate: Rate | None = param(None, "the rate that load is a fraction of; the fabric's link unless given")

    def __post_init__(self):
        check_arrivals(self)
        require(0 < self.hot < 1, "hot", "above 0 and below 1", self.hot)
        require(0 <= self.share <= 1, "share", "from 0 to 1", self.share)
        require(self.side in ("destination", "source"), "side", "destination or source", self.side)

    def hot_nodes(self, nodes: int, seed: int) -> np.ndarray:
        """The hot nodes of a fabric of `nodes` nodes, ascending."""
        count = min(max(round(self.hot * nodes), 1), nodes - 1)
        return np.sort(random.permutation(random.key(seed, Stream.CHOSEN), nodes)[:count])

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes with links of `link` b/s."""
        check_fabric(nodes, link, least=3)
        start = arrivals(self, nodes=nodes, link=link, seed=seed)
        count = len(start)
        hot = self.hot_nodes(nodes, seed)
        members = np.concatenate([hot, np.setdiff1d(np.arange(nodes), hot)])  # the hot ones, then the others
        place = np.argsort(members)  # of each node in members

        other = random.below(random.words(random.key(seed, Stream.SOURCES), count), nodes)
        is_hot = random.unit(random.words(random.key(seed, Stream.SIDES), count)) <= self.share
        is_hot &= ~((len(hot) == 1) & (other == hot[0]))  # the only hot node cannot face itself
        is_hot |= (len(hot) == nodes - 1) & (other == members[-1])  # nor the only cold one
        first, size = np.where(is_hot, 0, len(hot)), np.where(is_hot, len(hot), nodes - len(hot))
        among = (place[other] >= first) & (place[other] < first + size)
        pick = random.below(random.words(random.key(seed, Stream.DESTINATIONS), count), size - among)
        pick = first + pick + (among & (first + pick >= place[other]))
        src, dst = (other, members[pick]) if self.side == "destination" else (members[pick], other)
        flows = Flows.of(nodes=nodes, src=src, dst=dst, size=draw_sizes(self.sizes, count, seed), start=start)
        flows = with_load_notes(flows, self, link)
        each = self.load * (self.load_rate or link) / link * self.share * nodes / len(hot)
        note = f"{len(hot)} of {nodes} nodes are hot: each is the {self.side} of {each:.4g} times its link"
        return replace(flows, notes=(*flows.notes, note))


@dataclass(frozen=True, kw_only=True)
class Shorts(Workload):
    """Short flows from one node to another at regular intervals, over background traffic among all other nodes.

    Shoal, section 7.2 and figure 14: 20 KB from node 511 to node 0; it states neither interval nor background load,
    so both are ours. Stardust, section 6.3: `--background long`, where each of the others has four endless flows, and
    with `gap` each short flow waits for the one before. The short flows are those numbered from 0 to `flows` - 1.
    """

    flows: int = param(1000, "number of short flows")
    bytes: Size = param(20 * KB, "bytes of a short flow")
    shorts: str | None = param(None, "sizes of the short flows, drawn from a distribution instead of all the same")
    interval: Time = param(10 * us, "time from one short flow to the next")
    gap: Time | None = param(None, "time from the end of one short flow to the next, which waits for it, instead")
    src: int | None = param(None, "their sender; the last node unless given")
    dst: int = param(0, "their receiver")
    background: Literal["poisson", "long"] = param("poisson", "arrivals at a load, or endless flows")
    load: float = param(0.5, "load of the others, if poisson")
    sizes: str = param("pareto", "flow sizes of the others, if poisson")
    load_rate: Rate | None = param(None, "the rate that load is a fraction of; the fabric's link unless given")
    longs: int = param(4, "endless flows from each of the others, if long")
    drain: Time = param(1 * ms, "how long the run goes on after the last short flow began, if long")

    def __post_init__(self):
        require(self.flows >= 1, "flows", "at least 1", self.flows)
        check_bytes(self.bytes)
        if self.shorts is not None:
            object.__setattr__(self, "shorts", str(self.shorts))
            sizes(self.shorts)
        require(self.interval >= 1, "interval", "at least 1 ps", self.interval)
        require(self.gap is None or 0 <= self.gap <= LATEST // (self.flows + 1), "gap", "0 ps or more, and short "
                "enough for all flows to start within 53 days", self.gap)  # fmt: skip
        require(self.window <= LATEST, "interval", "short enough for all flows to start within 53 days", self.interval)
        require(self.src is None or self.src >= 0, "src", "a node, at least 0", self.src)
        require(self.dst >= 0, "dst", "a node, at least 0", self.dst)
        require(self.src != self.dst, "dst", "another node than src", self.dst)
        require(self.background in ("poisson", "long"), "background", "poisson or long", self.background)
        object.__setattr__(self, "sizes", self._poisson.sizes)
        require(self.longs >= 1, "longs", "at least 1", self.longs)
        require(0 <= self.drain <= LATEST, "drain", "at least 0 ps", self.drain)

    @property
    def window(self) -> int:
        """Time in ps during which flows arrive."""
        return (self.flows + 1) * self.step

    @property
    def step(self) -> int:
        """Time in ps from one short flow to the next; of flows that wait, without what they themselves take."""
        return self.interval if self.gap is None else max(self.gap, 1)

    @property
    def until(self) -> int | None:
        """When the run stops, in ps, or None: when the last flow is done."""
        return None if self.background == "poisson" else self.flows * self.step + self.drain

    @property
    def _poisson(self):
        return Poisson(load=self.load, sizes=self.sizes, duration=self.window, load_rate=self.load_rate)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes with links of `link` b/s; the first short one after one interval."""
        check_fabric(nodes, link, least=4)
        src = nodes - 1 if self.src is None else self.src
        require(src < nodes, "src", f"a node from 0 to {nodes - 1}", src)
        require(self.dst < nodes, "dst", f"a node from 0 to {nodes - 1}", self.dst)
        require(self.dst != src, "dst", "another node than src", self.dst)
        others = np.setdiff1d(np.arange(nodes), [src, self.dst])
        if self.background == "poisson":
            ground = self._poisson.draw(nodes=nodes - 2, link=link, seed=seed)
        else:
            sender = np.repeat(np.arange(nodes - 2), self.longs)
            receiver = random.below(random.words(random.key(seed, Stream.DESTINATIONS), len(sender)), nodes - 3)
            receiver = receiver + (receiver >= sender)
            ground = Flows.of(nodes=nodes - 2, src=sender, dst=receiver, size=ENDLESS, start=0)
        size = np.full(self.flows, self.bytes)
        if self.shorts is not None:
            size = sizes(self.shorts).draw(random.words(random.key(seed, Stream.SHORTS), self.flows))
        waits = self.gap is not None
        first = np.full(self.flows, self.step) if waits else np.arange(1, self.flows + 1) * self.interval
        start = np.concatenate([first, ground.start])
        order = np.arange(len(start)) if waits else np.argsort(start, kind="stable")
        number = np.arange(len(start))
        chained = (number > 0) & (number < self.flows)
        return Flows.of(
            nodes=nodes,
            src=np.concatenate([np.full(self.flows, src), others[ground.src]])[order],
            dst=np.concatenate([np.full(self.flows, self.dst), others[ground.dst]])[order],
            size=np.concatenate([size, ground.size])[order],
            start=start[order],
            id=order,
            notes=(f"flows 0 to {self.flows - 1} are the short ones", *ground.notes),
            after=(np.concatenate([[0], np.cumsum(chained)]), number[: self.flows - 1]) if waits else None,
            delay=self.gap if waits else None,
        )


@dataclass(frozen=True, kw_only=True)
class LongFlows(Workload):
    """Endless flows between nodes chosen at random, all from time 0; every pair of two nodes is equally likely."""

    flows: int = param(help="number of flows")
    duration: Time = param(ENDLESS_RUN, "when the run stops")

    def __post_init__(self):
        require(self.flows >= 1, "flows", "at least 1", self.flows)
        require(0 < self.duration <= LATEST, "duration", "above 0 ps", self.duration)

    @property
    def until(self) -> int:
        """When the run stops, in ps."""
        return self.duration

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes."""
        check_fabric(nodes, link)
        check_count(self.flows, "longflows")
        src, dst = uniform_pairs(self.flows, nodes, seed)
        return Flows.of(nodes=nodes, src=src, dst=dst, size=ENDLESS, start=0)


def check_count(count: int, what: str) -> None:
    """Raise `TooLarge` if a table of `count` flows would be."""
    if count > MOST_FLOWS:
        raise TooLarge(f"{what} must have at most {MOST_FLOWS:,} flows, not {count:,}")


def check_bytes(size, *, optional: bool = False) -> None:
    """Raise `BadInput` unless `size` can be the size of a flow."""
    good = (optional and size is None) or (isinstance(size, int) and 1 <= size <= ENDLESS)
    require(good, "bytes", f"a size from 1 to {ENDLESS} bytes", size)


def pairing(pairs: int, nodes: int, closed: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Senders and receivers of `pairs` flows, nobody twice in a column and nobody facing itself.

    Drawn again until nobody faces itself, which takes about e attempts; so all pairings are equally likely.
    """
    src = np.sort(random.permutation(random.key(seed, Stream.CHOSEN), nodes)[:pairs])
    attempt = 0
    while True:
        key = random.key(seed, Stream.PAIRING + attempt)
        dst = src[random.permutation(key, pairs)] if closed else random.permutation(key, nodes)[:pairs]
        if (src != dst).all():
            return src, dst
        attempt += 1


def others(end: str, node: int, what: str, count: int, nodes: int, link: int, seed: int) -> np.ndarray:
    """`count` nodes other than `node`, chosen at random, ascending; the words are those of the message."""
    check_fabric(nodes, link)
    require(node < nodes, end, f"a node from 0 to {nodes - 1}", node)
    if count > nodes - 1:
        raise BadInput(f"{what} must be at most {nodes - 1}, all nodes but one, not {count}")
    chosen = np.sort(random.permutation(random.key(seed, Stream.CHOSEN), nodes - 1)[:count])
    return chosen + (chosen >= node)
