"""What every scheduler is: one object per network, one method, the answer a `Schedule`."""

from typing import NamedTuple

import numpy as np

from weft.errors import BadInput, require
from weft.fabrics.tdma.network import Network
from weft.fabrics.tdma.plan import Demand, Schedule

MOST_SLOTS = 10**6  # of a round: more is a slip of the finger


class Grants(NamedTuple):
    """Room for a schedule that a kernel writes."""

    when: np.ndarray  # int32
    src: np.ndarray  # int32
    dst: np.ndarray  # int32
    size: np.ndarray  # int64
    start: np.ndarray  # int64  where a path begins in `ports`, and one more
    ports: np.ndarray  # int32


class Scheduler:
    """Called once a round with the demand of all hosts; keeps what it must remember from round to round (§5.2.2)."""

    name = ""
    takes = "any"  # networks it can plan: switch, tree or any
    weighs = False  # whether weights of hosts count
    hurries = False  # whether deadlines count
    shares = False  # whether flows may meet in a switch's buffer

    def __init__(self, network: Network):
        self.network = network
        network.host_port  # noqa: B018  hosts with several links are refused here
        if self.takes == "switch" and not network.switched:
            raise self._refusal("hosts on a single switch")
        if self.takes == "tree" and network.tree is None:
            raise self._refusal("a network without loops")
        if network.buffer and not self.shares:
            must = f"0 for {self.name}, which keeps flows apart (greedy lets them share)"
            raise BadInput(f"buffer must be {must}, not {network.buffer}")

    def _refusal(self, must):
        from weft.fabrics.tdma.schedulers import SCHEDULERS

        takes = ("any", "tree") if self.network.tree is not None else ("any",)
        able = [name for name, made in SCHEDULERS.items() if made.takes in takes]
        return BadInput(f"scheduler {self.name} must have {must}; this topology can be planned by {' or '.join(able)}")

    def bound(self, slots: int) -> int | None:
        """Slots within which a host that has bytes sends again, in rounds of `slots`; None where there is no bound."""
        raise NotImplementedError  # derived classes say it

    def plan(self, demand: Demand, slots: int) -> Schedule:
        """A schedule of `slots` slots."""
        raise NotImplementedError  # derived classes say it

    def around(self, network: Network) -> None:
        """Plan for the same network some of whose links are down; pairs that are severed must have no demand."""
        self.network = network

    def arrays(self) -> dict[str, np.ndarray]:
        """What it remembers from round to round, by name; `restore` writes into the same arrays."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Remember what `arrays` gave."""
        for name, own in self.arrays().items():
            own[:] = arrays[name]

    def limits(self, name: str, array: np.ndarray):
        """What must hold of an array that others wrote, as `weft.engine.layout` takes it."""
        leads = name in ("order", "pointer", "batch")  # to hosts; the others count
        yield f"scheduler.{name}", array, -1 if name == "batch" else 0, self.network.hosts - leads if leads else 1 << 62

    def _check(self, demand, slots):
        require(demand.hosts == self.network.hosts, "demand", f"of {self.network.hosts} hosts", demand.hosts)
        require(1 <= slots <= MOST_SLOTS, "slots", f"from 1 to {MOST_SLOTS:,}", slots)
        for what, given, able in (("weight", demand.weight, self.weighs), ("due", demand.due, self.hurries)):
            if given is not None and not able:
                others = {"weight": "wrr", "due": "greedy"}[what]
                raise BadInput(f"{what} must be left out for {self.name}, which does not look at it ({others} does)")


def room_for(grants: int, hops: int) -> Grants:
    """Room for so many grants of at most so many hops."""
    return Grants(
        when=np.empty(grants, np.int32), src=np.empty(grants, np.int32), dst=np.empty(grants, np.int32),
        size=np.empty(grants, np.int64), start=np.empty(grants + 1, np.int64), ports=np.empty(grants * hops, np.int32),
    )  # fmt: skip


def grants_of(network: Network, slots: int, out: Grants, grants: int, rate=None) -> Schedule:
    """The schedule that a kernel wrote; senders send at the rate of the slowest link on their path unless `rate`."""
    first, ports = out.start[: grants + 1].copy(), out.ports[: out.start[grants]].copy()
    if rate is None:
        rate = np.minimum.reduceat(network.rate[ports], first[:-1]) if grants else np.zeros(0, np.int64)
    return Schedule(
        slots, out.when[:grants].copy(), out.src[:grants].copy(), out.dst[:grants].copy(), out.size[:grants].copy(),
        rate, first, ports,
    )  # fmt: skip
