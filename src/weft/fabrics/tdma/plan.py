"""What a scheduler is asked and what it answers: demands in, a schedule of grants out, and the law that it keeps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.errors import BadInput, ScheduleConflict, require
from weft.fabrics.tdma.network import Network
from weft.units import s, show_size

DEFAULT = "wrr"  # the scheduler of the paper
HEAVIEST = 1000  # weight of a host
NEVER = 2**31 - 1  # slots: no deadline


@dataclass(frozen=True, eq=False, kw_only=True)
class Demand:
    """What hosts have to send over the coming round, and what they can take (§4.1, §4.2)."""

    size: np.ndarray  # (n, n) int64  [i, j]  bytes that wait at i for j
    room: np.ndarray | None = None  # (n, n) int64  [i, j]  bytes that j can take from i; None for any number
    weight: np.ndarray | None = None  # (n,) int64  shares of hosts where they compete; None for equal ones
    due: np.ndarray | None = None  # (n, n) int32  [i, j]  slots after which a short flow is late; NEVER for others
    urgent: np.ndarray | None = None  # (n, n) int64  [i, j]  bytes of which that is true; all of them if None

    def __post_init__(self):
        n = len(self.size)
        for name in ("size", "room", "due", "urgent"):
            table = getattr(self, name)
            if table is None:
                continue
            require(table.shape == (n, n), name, f"one number for each pair of {n} hosts", table.shape)
            for i, j in np.argwhere(table < 0)[:1]:
                raise BadInput(f"{name} of host {i} for host {j} must be 0 or more, not {table[i, j]}")
        for i in np.flatnonzero(self.size.diagonal())[:1]:
            raise BadInput(f"a host must have nothing to send to itself, not {self.size[i, i]} bytes as host {i}")
        if self.weight is not None:
            require(self.weight.shape == (n,), "weight", f"one number for each of {n} hosts", self.weight.shape)
            for i in np.flatnonzero((self.weight < 1) | (self.weight > HEAVIEST))[:1]:
                raise BadInput(f"the weight of host {i} must be from 1 to {HEAVIEST}, not {self.weight[i]}")

    @classmethod
    def of(cls, hosts: int, pairs: dict) -> "Demand":
        """The demand of `pairs`, (i, j) -> bytes."""
        size = np.zeros((hosts, hosts), np.int64)
        for (i, j), count in pairs.items():
            for host in (i, j):
                require(host in range(hosts), "a host of a demand", f"from 0 to {hosts - 1}", host)
            size[i, j] = count
        return cls(size=size)

    @property
    def hosts(self) -> int:
        return len(self.size)

    @cached_property
    def want(self) -> np.ndarray:
        """(n, n) int64: bytes that may be granted: what waits and has room (§4.2)."""
        return self.size if self.room is None else np.minimum(self.size, self.room)

    @cached_property
    def weights(self) -> np.ndarray:
        """(n,) int64."""
        return np.ones(self.hosts, np.int64) if self.weight is None else self.weight


@dataclass(frozen=True, eq=False)
class Schedule:
    """Who may send what in each slot of a round, in the order of slots. A grant's path is a run of `ports`."""

    slots: int
    when: np.ndarray  # (grants,) int32  slot
    src: np.ndarray  # (grants,) int32
    dst: np.ndarray  # (grants,) int32
    size: np.ndarray  # (grants,) int64  bytes
    rate: np.ndarray  # (grants,) int64  b/s at which the sender may send them
    first: np.ndarray  # (grants + 1,) int64  where each path begins in `ports`
    ports: np.ndarray  # int32

    def __len__(self):
        return len(self.when)

    def path(self, g: int) -> np.ndarray:
        """The ports that grant g takes."""
        return self.ports[self.first[g] : self.first[g + 1]]

    def slot(self, t: int) -> range:
        """The grants of slot t."""
        low, high = np.searchsorted(self.when, [t, t + 1])
        return range(low, high)

    def served(self) -> np.ndarray:
        """(n, n) int64: bytes granted to each pair; n is one more than the highest host that has a grant."""
        n = int(max(self.src.max(initial=-1), self.dst.max(initial=-1))) + 1
        out = np.zeros((n, n), np.int64)
        np.add.at(out, (self.src, self.dst), self.size)
        return out

    @property
    def length(self) -> int:
        """Slots up to the last that has a grant."""
        return int(self.when.max(initial=-1)) + 1

    def longest_wait(self) -> int:
        """The most slots from the round's start, or a slot of its own, to the next slot of a sender that has any."""
        order = np.lexsort((self.when, self.src))
        src, when = self.src[order], self.when[order].astype(np.int64)
        fresh = np.diff(src, prepend=-1) != 0
        return int(np.where(fresh, when + 1, np.diff(when, prepend=0)).max(initial=0))


def verify(network: Network, demand: Demand, schedule: Schedule) -> int:
    """Raise ScheduleConflict unless the schedule is one that the network can carry; return how many grants there were.

    A port may carry several flows of a slot if their rates fit into its own, or if what they could pile up fits into
    the buffer of the switch in front of it: all bytes but those that the port sends meanwhile. What is left of a slot
    is sent in the following ones, in which the port is nobody's. With a buffer of 0 and equal links this says that no
    port is used twice (§4.3).
    """
    n = network.hosts
    given = np.zeros((n, n), np.int64)
    sender, receiver = network.graph.port_ends()
    waiting: dict[int, int] = {}  # port -> bytes left over from slots before
    for t in range(schedule.slots):
        flows: dict[int, list[int]] = {}  # port -> grants
        for g in schedule.slot(t):
            i, j, path = int(schedule.src[g]), int(schedule.dst[g]), schedule.path(g).tolist()
            given[i, j] += schedule.size[g]
            ends = [i, *(int(receiver[p]) for p in path)]
            joined = all(int(sender[p]) == at for p, at in zip(path, ends, strict=False))
            if not path or not joined or ends[-1] != j:
                raise ScheduleConflict(f"the grant of slot {t} from host {i} to host {j} must have a path between them")
            for port in path:
                flows.setdefault(port, []).append(g)
        for port in flows.keys() | waiting.keys():
            waiting[port] = _leftover(network, schedule, t, port, flows.get(port, []), waiting.get(port, 0))
        waiting = {port: left for port, left in waiting.items() if left}
    for i, j in np.argwhere(given > demand.want)[:1]:
        raise ScheduleConflict(
            f"host {i} must be granted at most the {demand.want[i, j]} bytes that wait for host {j} and have room, not "
            f"{given[i, j]}"
        )
    return len(schedule)


def _leftover(network, schedule, t, port, grants, waiting) -> int:
    """Bytes in front of a port after slot t."""
    rate, capacity = int(network.rate[port]), int(network.capacity[port])
    sizes, rates = schedule.size[list(grants)].tolist(), schedule.rate[list(grants)].tolist()
    where = f"port {port} of {network.graph.names[network.graph.port_ends()[0][port]]}"
    if grants and waiting:
        raise ScheduleConflict(f"{where} must send what is left of slots before slot {t}, not carry a grant too")
    own = network.graph.port_ends()[0][port] < network.hosts
    left = max(0, waiting + sum(sizes) - capacity)
    if own and left:
        raise ScheduleConflict(f"{where} must carry at most {show_size(capacity)} in slot {t}, not {sum(sizes)} B")
    piled = 0
    if not own and sum(rates) > rate:
        piled = sum(sizes) - max(b * min(rate, r) // r for b, r in zip(sizes, rates, strict=True))
    if max(piled, left) > network.buffer:
        pairs = ", ".join(f"{schedule.src[g]} to {schedule.dst[g]}" for g in grants)
        room, most = show_size(network.buffer), show_size(max(piled, left))
        raise ScheduleConflict(f"{where} must hold at most {room} in slot {t}, not {most} of {pairs}")
    return left


def throughput(network: Network, schedule: Schedule) -> float:
    """Bytes granted, as a share of what all hosts could send in the slots up to the last that is used."""
    could = int(network.capacity[network.host_port].sum()) * schedule.length
    return int(schedule.size.sum()) / could if could else 0.0


def length_of(rate: int, size: int) -> int:
    """ps that `size` bytes take at `rate`, rounded up."""
    return -(-size * 8 * s // rate)
