"""One round of a fabric manager on paper: a demand, the schedule made of it, and how long that took."""

from dataclasses import dataclass
from time import process_time
from typing import Literal

import numpy as np

from weft import random
from weft.errors import require
from weft.fabrics.tdma.network import MOST_HOSTS, Network, wired
from weft.fabrics.tdma.plan import DEFAULT, Demand, Schedule, throughput
from weft.units import Gbps, Rate, Size, Time, ms, param, us

SIZES = 0x74646D62  # stream of random demands
MOST_REPEATS = 1000


@dataclass(frozen=True, kw_only=True)
class Planning:
    """The schedule of one round of TDMA over Ethernet: who may send to whom in which slot (EuroSys '12, §4.3)."""

    hosts: int = param(help="hosts in the network")
    scheduler: str = param(DEFAULT, "wrr (trees), greedy (any topology), mwm or bvn (one switch)")
    topology: str = param("switch", "switch, tree, leafspine, fattree, … or the path of an edge list")
    pods: int = param(3, "edge switches of a tree")
    link: Rate = param(10 * Gbps, "rate of the links")
    slot: Time = param(300 * us, "time in which a host may send")
    guard: Time = param(15 * us, "silence between slots")
    round: Time = param(10 * ms, "time between two schedules")
    demand: Literal["alltoall", "random", "incast", "permutation"] = param("alltoall", "who wants to send to whom")
    size: Size | None = param(None, "bytes of each pair, the most if random; a slot's worth if not given")
    buffer: Size = param(0, "bytes of a switch's port in which small flows of one slot may meet; greedy only")
    spill: bool = param(False, "let a fast sender fill the buffer for a slow receiver; greedy only")
    seed: int = param(0, "of random demands")
    repeat: int = param(5, "rounds that are timed")

    def __post_init__(self):
        require(2 <= self.hosts <= MOST_HOSTS, "hosts", f"from 2 to {MOST_HOSTS:,}", self.hosts)
        require(self.guard >= 0, "guard", "0 or more", self.guard)
        require(self.guard < self.slot, "guard", f"shorter than the slot of {self.slot} ps", self.guard)
        require(self.round <= 10**15, "round", "at most 1000 s", self.round)
        require(self.round >= self.cycle, "round", f"at least a slot and a guard, {self.cycle} ps", self.round)
        require(self.size is None or 0 <= self.size <= 10**15, "size", "from 0 B to 1 PB", self.size)
        require(1 <= self.repeat <= MOST_REPEATS, "repeat", f"from 1 to {MOST_REPEATS}", self.repeat)
        require(0 <= self.seed < 2**63, "seed", "from 0 to 2^63 - 1", self.seed)

    @property
    def cycle(self) -> int:
        """Time from one slot to the next."""
        return self.slot + self.guard

    @property
    def slots(self) -> int:
        """Slots in a round."""
        return self.round // self.cycle

    def network(self) -> Network:
        """The network that the round is for."""
        graph = wired(self.topology, self.hosts, self.link, 0, self.pods)
        return Network(graph=graph, slot=self.slot, buffer=self.buffer)

    def demands(self, network: Network) -> Demand:
        """What the hosts have to send."""
        n, size = self.hosts, network.block if self.size is None else self.size
        want = np.zeros((n, n), np.int64)
        if self.demand == "alltoall":
            want[:] = size
        elif self.demand == "incast":
            want[:, 0] = size
        elif self.demand == "permutation":
            want[np.arange(n), (np.arange(n) + 1) % n] = size
        else:
            words = random.words(random.key(self.seed, SIZES), n * n).reshape(n, n)
            want[:] = random.below(words, min(size, 2**31 - 2) + 1)
        np.fill_diagonal(want, 0)
        return Demand(size=want)

    def run(self) -> tuple[Schedule, list[float]]:
        """The first round's schedule, and the seconds of CPU time that each of `repeat` rounds took to plan.

        Machine code is made before the clock starts. Every round has the whole demand again.
        """
        from weft.fabrics.tdma.schedulers import scheduler

        network = self.network()
        options = {"spill": True} if self.spill else {}
        require(not self.spill or self.scheduler == "greedy", "spill", "left out for schedulers but greedy", self.spill)
        scheduler(self.scheduler, network, **options).plan(Demand.of(self.hosts, {(0, 1): 1}), 1)
        made, demand = scheduler(self.scheduler, network, **options), self.demands(network)
        plans, seconds = [], []
        for _ in range(self.repeat):
            begin = process_time()
            plans.append(made.plan(demand, self.slots))
            seconds.append(process_time() - begin)
        return plans[0], seconds

    def facts(self) -> dict:
        """What `weft schedule tdma --json` prints."""
        from weft.fabrics.tdma.schedulers import scheduler

        schedule, seconds = self.run()
        network = self.network()
        bound = scheduler(self.scheduler, network).bound(self.slots)
        return {
            "hosts": self.hosts,
            "scheduler": self.scheduler,
            "topology": self.topology,
            "round_slots": self.slots,
            "used_slots": schedule.length,
            "grants": len(schedule),
            "granted_bytes": int(schedule.size.sum()),
            "wanted_bytes": int(self.demands(network).want.sum()),
            "throughput": throughput(network, schedule),
            "longest_wait_slots": schedule.longest_wait(),
            "bound_slots": bound,
            "bound_ms": None if bound is None else bound * self.cycle / ms,
            "compute_ms": 1000 * float(np.median(seconds)),
            "compute_ms_worst": 1000 * max(seconds),
            "in_time": 1000 * max(seconds) * ms < self.round,
            "slots": [
                [[int(schedule.src[g]), int(schedule.dst[g]), int(schedule.size[g])] for g in schedule.slot(t)]
                for t in range(schedule.slots)
            ],
        }


FEWEST, MOST = 24, 6144  # hosts that `sustained` tries
WANTED = 1_500_000  # bytes at most, drawn for every pair: up to four slots' worth


def measured(scheduler: str, hosts: int, round: Time = 10 * ms, repeat: int = 5) -> dict:
    """How a scheduler does with drawn demands of so many hosts on one switch, and the ms of CPU time it takes."""
    found = Planning(hosts=hosts, scheduler=scheduler, round=round, repeat=repeat, demand="random",
                     size=WANTED).facts()  # fmt: skip
    keys = ("throughput", "longest_wait_slots", "bound_slots", "compute_ms", "compute_ms_worst", "in_time")
    return {"scheduler": scheduler, "hosts": hosts} | {key: found[key] for key in keys}


def sustained(scheduler: str, round: Time = 10 * ms, watch=lambda row: None) -> tuple[list[dict], int]:
    """(rows, the most hosts whose rounds were planned within a round): doubling them, then halving what is between.

    `watch` sees every row. The number is that of this machine, to 5 %; 0 if none is in time, MOST if all are.
    """
    rows: list[dict] = []

    def try_(hosts):
        rows.append(measured(scheduler, hosts, round))
        watch(rows[-1])
        return rows[-1]["in_time"]

    low, high = 0, FEWEST
    while high <= MOST and try_(high):
        low, high = high, 2 * high
    if high > MOST or low == 0:
        return rows, low
    while high - low > low // 20:
        middle = (low + high) // 2
        low, high = (middle, high) if try_(middle) else (low, middle)
    return rows, low
