"""Traffic with a shape: permutations, incasts, shuffles, hot spots, probes over background."""

from dataclasses import dataclass

import numpy as np

from weft import random
from weft.errors import BadInput, require
from weft.units import KB, Size, Time, ms, param
from weft.workload.arrivals import check_fabric
from weft.workload.flows import ENDLESS, LATEST, Flows
from weft.workload.streams import Stream

ENDLESS_RUN = 1 * ms  # how long a run of endless flows takes, unless told


@dataclass(frozen=True, kw_only=True)
class Permutation:
    """Every chosen node sends to one other and receives from one other, all from time 0.

    Without `bytes` the flows never end, and the run stops after `duration`.
    """

    pairs: int | None = param(None, "number of flows; all nodes take part unless given")
    duration: Time | None = param(None, "when the run stops; 1 ms for endless flows unless given")
    bytes: Size | None = param(None, "bytes of every flow; endless unless given")
    closed: bool = param(True, "the receivers are the same nodes as the senders, not a choice of their own")

    def __post_init__(self):
        least = 2 if self.closed else 1
        require(self.pairs is None or self.pairs >= least, "pairs", f"at least {least}", self.pairs)
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
        src, dst = pairing(pairs, nodes, self.closed, seed)
        return Flows.of(nodes=nodes, src=src, dst=dst, size=self.bytes or ENDLESS, start=0)


@dataclass(frozen=True, kw_only=True)
class Incast:
    """`fan_in` nodes, chosen at random, send to one node at once."""

    fan_in: int = param(help="number of senders")
    bytes: Size = param(130 * KB, "bytes that each of them sends")
    dst: int = param(0, "the receiver")

    until = None

    def __post_init__(self):
        require(self.fan_in >= 1, "fan_in", "at least 1", self.fan_in)
        check_bytes(self.bytes)
        require(self.dst >= 0, "dst", "a node, at least 0", self.dst)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes, by number of the sender."""
        src = others("dst", self.dst, "fan_in", self.fan_in, nodes, link, seed)
        return Flows.of(nodes=nodes, src=src, dst=np.full(len(src), self.dst), size=self.bytes, start=0)


@dataclass(frozen=True, kw_only=True)
class Outcast:
    """One node sends to `fan_out` nodes, chosen at random, at once."""

    fan_out: int = param(help="number of receivers")
    bytes: Size = param(130 * KB, "bytes that each of them is sent")
    src: int = param(0, "the sender")

    until = None

    def __post_init__(self):
        require(self.fan_out >= 1, "fan_out", "at least 1", self.fan_out)
        check_bytes(self.bytes)
        require(self.src >= 0, "src", "a node, at least 0", self.src)

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows for a fabric of `nodes` nodes, by number of the receiver."""
        dst = others("src", self.src, "fan_out", self.fan_out, nodes, link, seed)
        return Flows.of(nodes=nodes, src=np.full(len(dst), self.src), dst=dst, size=self.bytes, start=0)


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
