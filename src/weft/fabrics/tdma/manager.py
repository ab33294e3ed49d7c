"""The fabric manager (§4, §5.2): demands and a clock in, frames and the times to send them out. It knows no simulator.

Time is cut into cycles, each a guard and a slot; `slots` cycles are a round. At the start of a cycle every host is told
to stop, a guard later every host is told which class it may send, or none (§5.4). Cycles are numbered from the start
and frames carry that number, so hosts know what is late and reports can say how much of the past they include.

    manager = Manager(network=…, start=now)
    manager.report(Report(…))             # whenever a host has reported
    for order in manager.act(now): …      # at manager.due, and send each order's frame at its time

Rounds are pipelined: `lead` cycles before a round begins its schedule is computed from the reports that are there, less
what hosts were granted since (§4). A schedule that is not ready in time leaves slots unused, which are counted, and is
begun when it is ready. Hosts that have not reported for `silence` rounds get no slots and are nobody's destination.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from weft.errors import BadInput, require
from weft.fabrics.tdma.network import Network
from weft.fabrics.tdma.plan import DEFAULT, NEVER, Demand, Schedule
from weft.units import Gbps, Rate, Time, us, wire_time
from weft.wire.pfc import CLASSES, FRAME, GAP, LONGEST_QUANTA, SENDER, Extended, Pause, Pfc

EPOCHS, CYCLES = 1 << 8, 1 << 24  # a frame's number: which manager, and which cycle modulo 2^24
ANY = 1 << 62  # bytes: room without a limit
LATE = 1 << 62  # cycle: never


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What a host tells the manager (§4.1, §4.2): what waits and what has room, as of the end of cycle `seen`."""

    host: int
    seen: int | None  # the last cycle whose slot is over at the host; None if frames do not tell it
    waiting: np.ndarray  # (n,) int64  [j]  bytes for j
    room: np.ndarray | None = None  # (n,) int64  [i]  bytes that can be taken from i; None for any number
    weight: int = 1
    due: np.ndarray | None = (
        None  # (n,) int64  [j]  the last cycle in time for j's first bytes; LATE without a deadline
    )
    urgent: np.ndarray | None = None  # (n,) int64  [j]  how many these are; all if None

    def __post_init__(self):
        for name in ("waiting", "room"):
            table = getattr(self, name)
            for peer in [] if table is None else np.flatnonzero(np.asarray(table) < 0)[:1]:
                raise BadInput(f"{name} at host {self.host} for host {peer} must be 0 or more, not {table[peer]}")


class Order(NamedTuple):
    """A frame to be sent: when, by which NIC of the manager, and to which host."""

    time: int  # ps
    nic: int
    host: int
    frame: Pause | Pfc | Extended


class Heartbeat(NamedTuple):
    """What a manager tells its standby at the start of every cycle."""

    epoch: int
    cycle: int
    time: int


@dataclass(frozen=True, kw_only=True)
class Nics:
    """The NICs or slave controllers that send the frames, each to whole edge switches (§4.4)."""

    count: int = 1
    link: Rate = 10 * Gbps
    offset: tuple[int, ...] = ()  # ps by which each is late, as its clock goes; 0 where not given
    drift: tuple[int, ...] = ()  # ppb by which each clock is slow

    def __post_init__(self):
        require(self.count >= 1, "NICs", "at least 1", self.count)
        require(self.link > 0, "link", "more than 0", self.link)
        for name in ("offset", "drift"):
            given = len(getattr(self, name))
            require(given <= self.count, name, f"at most one for each of {self.count} NICs", given)

    @property
    def spacing(self) -> int:
        """ps from one frame to the next on the same NIC."""
        return wire_time(FRAME + GAP, self.link)

    def late(self, nic: int, time: int) -> int:
        """ps after `time` at which a NIC does what it should do then."""
        offset = self.offset[nic] if nic < len(self.offset) else 0
        return offset + (time // 10**6 * self.drift[nic] // 1000 if nic < len(self.drift) else 0)


@dataclass
class Count:
    """What a manager has done, and what it could not do."""

    cycles: int = 0
    frames: int = 0
    grants: int = 0
    granted: int = 0  # bytes
    rounds: int = 0
    late_slots: int = 0  # cycles without a schedule because it was not ready
    silent_hosts: int = 0  # hosts left out of a round because they had not reported, summed over rounds


@dataclass(kw_only=True, eq=False)
class Manager:
    """A fabric manager. `act(now)` is to be called at `due`; calling it late makes frames late, and nothing else."""

    network: Network
    scheduler: str = DEFAULT
    guard: Time = 15 * us
    slots: int = 31  # of a round: 10 ms
    lead: int = 1  # cycles before a round in which its schedule is computed
    compute: Time = 0  # ps that computing a schedule takes, where the caller's clock does not notice
    nics: Nics = Nics()
    signal: str = "auto"  # pause, pfc or extended; auto is pfc where 8 classes are enough (§5.1)
    silence: int = 10  # rounds without a report after which a host is taken for dead
    start: Time = 0
    first: int = 0  # number of the first cycle
    epoch: int = 0
    options: dict = field(default_factory=dict)  # of the scheduler

    def __post_init__(self):
        from weft.fabrics.tdma.schedulers import scheduler

        n = self.network.hosts
        require(self.guard >= 0, "guard", "0 or more", self.guard)
        require(self.guard < self.network.slot, "guard", f"shorter than the slot of {self.network.slot} ps", self.guard)
        require(1 <= self.slots < CYCLES // 4, "slots", f"from 1 to {CYCLES // 4 - 1:,} in a round", self.slots)
        require(1 <= self.lead <= self.slots, "lead", f"from 1 to the {self.slots} slots of a round", self.lead)
        require(self.compute >= 0, "compute", "0 or more", self.compute)
        require(self.silence >= 1, "silence", "at least 1 round", self.silence)
        require(0 <= self.epoch < EPOCHS, "epoch", f"from 0 to {EPOCHS - 1}", self.epoch)
        if self.signal == "auto":
            self.signal = "pfc" if n - 1 <= CLASSES["802.1Qbb"] else "extended"
        require(self.signal in ("pause", "pfc", "extended"), "signal", "auto, pause, pfc or extended", self.signal)
        most = {"pause": 2, "pfc": CLASSES["802.1Qbb"] + 1, "extended": CLASSES["extended"] + 1}[self.signal]
        require(n <= most, "hosts", f"at most {most} for a class each in frames of kind {self.signal}", n)
        self.count = Count()
        self.retired = False
        self._plan = scheduler(self.scheduler, self.network, **self.options)
        self._cycle, self._phase = self.first, 0  # what comes next: 0 the stop, 1 the go of that cycle
        self._reports: list[Report | None] = [None] * n
        self._heard = np.full(n, self.first, np.int64)  # cycle in which a host last reported
        self._seen = np.full(n, -1, np.int64)  # the last cycle that its report includes
        self._now: Schedule | None = None  # of the round under way
        self._next: tuple[int, int, Schedule] | None = None  # (round, ps from which it may be used, its schedule)
        self._ledger: deque = deque()  # (cycle, src, dst, bytes) of what was granted, until all reports include it
        self._switches = by_switch(self.network)

    # ------------------------------------------------------------ the clock

    @property
    def cycle_time(self) -> int:
        """ps from one slot to the next."""
        return self.network.slot + self.guard

    @property
    def due(self) -> int:
        """When `act` must be called."""
        return self.begins(self._cycle) + (self.guard if self._phase else 0)

    def begins(self, cycle: int) -> int:
        """When the hosts are told to stop for a cycle; its slot begins a guard later."""
        return self.start + (cycle - self.first) * self.cycle_time

    @property
    def heartbeat(self) -> Heartbeat:
        """For a standby: which cycle is under way, or comes next."""
        return Heartbeat(self.epoch, self._cycle, self.begins(self._cycle))

    def act(self, now: int) -> list[Order]:
        """The frames of everything that is due by `now`, in the order of their times."""
        orders = []
        while not self.retired and self.due <= now:
            orders += self.go() if self._phase else self.stop()
        return sorted(orders, key=lambda order: order.time)

    def meet(self, other: Heartbeat) -> None:
        """Retire if another manager has taken over."""
        self.retired |= 0 < (other.epoch - self.epoch) % EPOCHS < EPOCHS // 2

    # ------------------------------------------------------------ demands

    def report(self, report: Report) -> None:
        """Take a host's report; the last one counts."""
        n = self.network.hosts
        require(report.host in range(n), "a host that reports", f"from 0 to {n - 1}", report.host)
        for name in ("waiting", "room", "due", "urgent"):
            table = getattr(report, name)
            require(table is None or len(table) == n, name, f"a number for each of {n} hosts", np.size(table))
        self._reports[report.host] = report
        self._heard[report.host] = self._cycle
        # without a number what the slot under way and the one before carry may or may not be in the report: it is not
        self._seen[report.host] = self._cycle - 2 if report.seen is None else report.seen

    def links(self, alive: np.ndarray | None) -> None:
        """Plan from now on with the links that are `alive`, (links,) bool; None for all."""
        self.network = replace(self.network, alive=alive)
        self._plan.around(self.network)

    def demand(self) -> Demand:
        """What may be granted now: what was reported, less what was granted since and has not been seen to be over."""
        n = self.network.hosts
        size, room, weight = np.zeros((n, n), np.int64), np.full((n, n), ANY, np.int64), np.ones(n, np.int64)
        silent, due, urgent = self.silent(), np.full((n, n), NEVER, np.int32), np.full((n, n), ANY, np.int64)
        coming = self.first + ((self._cycle - self.first) // self.slots + 1) * self.slots  # where the next round begins
        for report in self._reports:
            if report is None or silent[report.host]:
                continue
            weight[report.host] = report.weight
            size[report.host] = report.waiting
            if report.due is not None:
                due[report.host] = np.where(report.due < LATE, np.maximum(report.due - coming, 0), NEVER)
            if report.urgent is not None:
                urgent[report.host] = report.urgent
            if report.room is not None:
                room[:, report.host] = report.room
        size[:, silent] = 0  # nothing is known of their buffers
        size[self.network.severed] = 0
        oldest = self._seen[~silent].min(initial=self._cycle)
        while self._ledger and self._ledger[0][0] <= oldest:
            self._ledger.popleft()
        for cycle, src, dst, given in self._ledger:
            new = cycle > self._seen[src]
            np.subtract.at(size, (src[new], dst[new]), given[new])
            new = cycle > self._seen[dst]
            np.subtract.at(room, (src[new], dst[new]), given[new])
        np.fill_diagonal(size, 0)
        weighed, hurried = weight if (weight != 1).any() else None, due if (due != NEVER).any() else None
        size, room = np.maximum(size, 0), np.maximum(room, 0)
        return Demand(size=size, room=room, weight=weighed, due=hurried, urgent=None if hurried is None else urgent)

    def silent(self) -> np.ndarray:
        """(n,) bool: hosts that have never reported, or not for too long."""
        unheard = np.array([report is None for report in self._reports])
        return unheard | (self._heard + self.silence * self.slots < self._cycle)

    # ------------------------------------------------------------ a cycle

    def stop(self) -> list[Order]:
        """The frames with which a cycle begins; `act` calls this when it is due, and `go` a guard later."""
        cycle, begin = self._cycle, self.begins(self._cycle)
        round_, place = divmod(cycle - self.first, self.slots)
        if place == 0:
            self.count.rounds += 1
            self._now = None
        if self._now is None and self._next is not None and self._next[0] == round_:
            if self._next[1] <= begin:
                self._now, self._next = self._next[2], None
                if place:
                    self._postpone(cycle, place)
            else:
                self.count.late_slots += 1
        self._phase = 1
        self.count.cycles += 1
        return self._orders(begin, cycle, {})

    def go(self) -> list[Order]:
        """The frames with which its slot begins."""
        cycle, time = self._cycle, self.due
        place = (cycle - self.first) % self.slots
        open_: dict[int, list[int]] = {}
        if self._now is not None:
            grants = self._now.slot(place)
            src, dst, size = (getattr(self._now, name)[grants.start : grants.stop] for name in ("src", "dst", "size"))
            for i, j in zip(src.tolist(), dst.tolist(), strict=True):
                open_.setdefault(i, []).append(j)
            self.count.grants += len(src)
            self.count.granted += int(size.sum())
        orders = self._orders(time, cycle, open_)
        if place == self.slots - self.lead:
            self._compute(time)
        self._cycle, self._phase = cycle + 1, 0
        return orders

    def _compute(self, time):
        """Plan the round after this one, and enter it into the ledger at once: what is lost shows in later reports."""
        coming = (self._cycle - self.first) // self.slots + 1
        schedule = self._plan.plan(self.demand(), self.slots)
        self.count.silent_hosts += int(self.silent().sum())
        self._enter(self.first + coming * self.slots, schedule)
        self._next = coming, time + self.compute, schedule

    def _postpone(self, cycle, late):
        """Begin a schedule that is `late` slots late with its first slot; the last ones have no time left."""
        now, kept = self._now, int(np.searchsorted(self._now.when, self.slots - late))
        self._now = replace(now, when=(now.when + late)[:kept], src=now.src[:kept], dst=now.dst[:kept],
                            size=now.size[:kept], rate=now.rate[:kept], first=now.first[: kept + 1])  # fmt: skip
        while self._ledger and self._ledger[-1][0] >= cycle - late:
            self._ledger.pop()
        self._enter(cycle - late, self._now)

    def _enter(self, begin, schedule):
        """Write what a round that begins with cycle `begin` grants into the ledger."""
        for t in range(self.slots):
            grants = schedule.slot(t)
            if len(grants):
                at = slice(grants.start, grants.stop)
                self._ledger.append((begin + t, schedule.src[at], schedule.dst[at], schedule.size[at]))

    def granted(self, cycle: int) -> list[tuple[int, int, int]]:
        """(src, dst, bytes) of what the round under way grants in a cycle; hosts are told their part (§4)."""
        if self._now is None:
            return []
        s = self._now
        return [(int(s.src[g]), int(s.dst[g]), int(s.size[g])) for g in s.slot((cycle - self.first) % self.slots)]

    # ------------------------------------------------------------ frames

    def _orders(self, time, cycle, open_) -> list[Order]:
        """Frames to all hosts; `open_` says to whom each may send. NICs work side by side, each for its switches."""
        at = dict.fromkeys(range(self.nics.count), 0)
        orders, more = [], []  # a host that may send to several gets its further frames when all others have theirs
        for nic, host in rotation(self._switches, self.nics.count, cycle):
            first, *rest = self._frames(host, open_.get(host, ()), cycle)
            orders.append(Order(time + self.nics.late(nic, time) + at[nic] * self.nics.spacing, nic, host, first))
            at[nic] += 1
            more += [(nic, host, frame) for frame in rest]
        for nic, host, frame in more:
            orders.append(Order(time + self.nics.late(nic, time) + at[nic] * self.nics.spacing, nic, host, frame))
            at[nic] += 1
        self.count.frames += len(orders)
        return orders

    def _frames(self, host, to, cycle):
        """The frames that let `host` send to the hosts in `to`, and to nobody else."""
        n = self.network.hosts
        ends = {"dst": address(host), "src": SENDER}
        classes = [class_of(host, j, n) for j in to]
        if self.signal == "pause":
            return [Pause(time=0 if classes else LONGEST_QUANTA, **ends)]
        if self.signal == "pfc":
            return [Pfc(times=tuple(0 if c in classes else LONGEST_QUANTA for c in range(8)), **ends)]
        seq = self.epoch * CYCLES + cycle % CYCLES
        if not classes:
            return [Extended(which=0, time=LONGEST_QUANTA, seq=seq, **ends)]
        more = [Extended(which=c, others=None, seq=seq, **ends) for c in classes[1:]]
        return [Extended(which=classes[0], seq=seq, **ends), *more]


@dataclass(kw_only=True, eq=False)
class Standby:
    """Listens to a manager's heartbeats, and takes over when there has been none for `patience`.

    It then stops all hosts and waits a round for their reports, because it does not know what was granted last. Its
    epoch is higher, so hosts no longer listen to the old manager, should it come back.
    """

    settings: dict  # of the managers, this one's and the other's
    patience: Time

    def __post_init__(self):
        cycle = self.settings["network"].slot + self.settings.get("guard", Manager.guard)
        require(self.patience >= cycle, "patience", f"at least a cycle of {cycle} ps", self.patience)
        self.manager: Manager | None = None
        self.last: Heartbeat | None = None

    @property
    def due(self) -> int | None:
        """When `act` must be called; None before the first heartbeat."""
        if self.manager is not None:
            return self.manager.due
        return None if self.last is None else self.last.time + self.patience

    def hear(self, heartbeat: Heartbeat) -> None:
        if self.last is None or heartbeat >= self.last:
            self.last = heartbeat
        if self.manager is not None:
            self.manager.meet(heartbeat)

    def report(self, report: Report) -> None:
        """What a host reports to both managers; only what comes after the change counts."""
        if self.manager is not None:
            self.manager.report(report)

    def act(self, now: int) -> list[Order]:
        if self.manager is None:
            if self.last is None or now < self.last.time + self.patience:
                return []
            cycle = self.settings["network"].slot + self.settings.get("guard", Manager.guard)
            ahead = -(-(now - self.last.time) // cycle)  # no number that the other may have used is used again
            epoch = (self.last.epoch + 1) % EPOCHS
            given = {name: value for name, value in self.settings.items() if name not in ("start", "first", "epoch")}
            self.manager = Manager(**given, start=now, first=self.last.cycle + ahead, epoch=epoch)
        return self.manager.act(now)


# ---------------------------------------------------------------- what managers and hosts agree on


def class_of(src: int, dst: int, hosts: int) -> int:
    """The class of a flow at its sender: classes need to differ on a link only (§5.1)."""
    return (dst - src - 1) % hosts


def peer_of(src: int, which: int, hosts: int) -> int:
    """The destination of a sender's class."""
    return (src + which + 1) % hosts


def address(host: int) -> int:
    """The address of a host; frames to it are unicast, which switches forward (§3.2.3, note 2)."""
    return SENDER + 1 + host


def rotation(switches: list[list[int]], nics: int, cycle: int) -> Iterator[tuple[int, int]]:
    """(nic, host) in the order of a cycle's frames: a switch after the other; who is first rotates (§5.2.1)."""
    for nic in range(nics):
        own = switches[nic::nics]
        for k in range(len(own)):
            hosts = own[(k + cycle) % len(own)]
            for m in range(len(hosts)):
                yield nic, hosts[(m + cycle) % len(hosts)]


def by_switch(network) -> list[list[int]]:
    """The hosts of every edge switch."""
    _, receiver = network.graph.port_ends()
    groups: dict[int, list[int]] = {}
    for host, port in enumerate(network.host_port.tolist()):
        groups.setdefault(int(receiver[port]), []).append(host)
    return list(groups.values())
