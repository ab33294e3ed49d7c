"""TDMA: the parameters of a network that a fabric manager leads, and what follows from them."""

from dataclasses import dataclass, replace
from functools import cached_property
from os.path import isfile
from typing import ClassVar, Literal

import numpy as np

from weft import failures, random
from weft.engine.series import QUEUES
from weft.errors import BadInput, require
from weft.fabrics.base import Fabric
from weft.fabrics.network.failures import plan
from weft.fabrics.tdma.hosts import REACTIONS_BY_NAME, Reaction
from weft.fabrics.tdma.manager import Nics
from weft.fabrics.tdma.network import Network, wired
from weft.fabrics.tdma.plan import DEFAULT
from weft.units import KB, Gbps, Mbps, Rate, Size, Time, ms, ns, param, s, show_number, show_size, us, wire_time
from weft.wire.pfc import CLASSES, FRAME, GAP

SKEWS = 0x74646D03  # stream of the clocks of NICs
MOST_HOSTS = CLASSES["extended"] + 1  # a class for each other host
LONGEST = 10**15  # ps


@dataclass(frozen=True, kw_only=True)
class TDMA(Fabric):
    """Hosts on Ethernet that send when a fabric manager tells them to, and to whom it tells them (EuroSys '12)."""

    releases: ClassVar[bool] = True

    nodes: int = param(24, "hosts in the network", also="hosts")
    link: Rate = param(10 * Gbps, "rate of the links")
    slow: int = param(0, "hosts, the last ones, that have a slower link")
    slow_link: Rate = param(1 * Gbps, "rate of theirs")
    slot: Time = param(300 * us, "time in which a host may send")
    guard: Time = param(15 * us, "silence between slots")
    inside: bool = param(False, "whether the guard is part of the slot; the paper does not say")
    topology: str = param("switch", "switch, tree, leafspine, fattree, … or the path of an edge list")
    pods: int = param(3, "edge switches of a tree")
    scheduler: str = param(DEFAULT, "wrr (trees), greedy (any topology), mwm or bvn (one switch)")
    share: Size = param(0, "bytes of a port's buffer in which small flows of one slot may meet; greedy only")
    spill: bool = param(False, "let a fast sender fill that buffer for a slow receiver; greedy only")
    round: Time = param(10 * ms, "time between two schedules")
    lead: int = param(1, "slots before a round in which its schedule is computed")
    age: int = param(0, "slots that a report is older than that")
    compute: Time = param(0, "time that computing a schedule takes")
    mtu: Size = param(9 * KB, "bytes of payload in a packet; §6.4 suggests 9000")
    overhead: Size = param(38, "bytes that a packet takes beside its payload: header, FCS, preamble and gap")
    reaction: Literal["nic", "software"] = param("nic", "who acts on frames: 802.3x in the NIC, PFC in software")
    lag: Time | None = param(None, "time until a host acts on a frame; that of the reaction if not given")
    jitter: Time | None = param(None, "the most that it may be longer; that of the reaction if not given")
    delay: Time = param(500 * ns, "time along a cable and through the switch behind it", also="propagation")
    inband: bool = param(False, "whether frames and data wait for each other where a switch sends to a host")
    switching: Literal["store", "cut"] = param("store", "switches store and forward, or cut through")
    buffer: Size = param(480 * KB, "bytes that a port of a switch holds")
    nics: int = param(0, "NICs of the manager, each for whole edge switches; 0 for one for each switch")
    skew: Time = param(0, "the most that a NIC's clock is late")
    drift: int = param(0, "parts per billion by which a NIC's clock may be slow")
    send_buffer: Size | None = param(None, "bytes that sockets hold for a destination, all that hosts can report")
    writing: Rate | None = param(None, "rate at which applications write for each destination; at once if not given")
    estimate: Literal["occupancy", "trend"] = param(
        "occupancy", "what hosts report: bytes in their sockets, or with those written since the last report once more"
    )
    receive_buffer: Size | None = param(None, "bytes of a receive buffer for each source; no limit if not given")
    reading: Rate | None = param(None, "rate at which applications read each of them; at once if not given")
    loss: float = param(0.0, "share of control frames that are lost")
    permit: Time | None = param(None, "time after which a host stops without a frame; a slot and a guard if not given")
    silence: int = param(10, "rounds without a report after which a host gets no slots")
    fail: str = param("", "what goes down, as in 'node 3 at 1s until 2s, manager 0 at 5s, link h0-edge0 at 6s'")
    converge: Time = param(1 * ms, "time after a link fails or is back until the manager plans with it")
    patience: Time | None = param(None, "time after which a standby takes over from a dead manager; none if not given")
    short: Size = param(0, "flows up to this size are sent outside the slots")
    reserve: Rate = param(0, "rate of each link that is kept for them")
    urgent: Size = param(0, "flows up to this size have a deadline; greedy only")
    deadline: Time = param(20 * ms, "time in which they are to be done")

    def __post_init__(self):
        require(2 <= self.nodes <= MOST_HOSTS, "hosts", f"from 2 to {MOST_HOSTS:,}, a class for each other", self.nodes)
        require(self.pods >= 1, "pods", "at least 1", self.pods)
        require(0 < self.slot <= LONGEST, "slot", "more than 0 and at most 1000 s", self.slot)
        require(self.guard >= 0, "guard", "0 or more", self.guard)
        require(self.guard < self.slot, "guard", f"shorter than the slot of {self.slot} ps", self.guard)
        require(self.round <= LONGEST, "round", "at most 1000 s", self.round)
        require(self.round >= self.cycle, "round", f"at least a slot and a guard, {self.cycle} ps", self.round)
        require(self.lead >= 1, "lead", "at least 1 slot", self.lead)
        require(self.age >= 0, "age", "0 or more slots", self.age)
        require(self.lead + self.age <= self.slots, "lead and age", f"at most the {self.slots} slots of a round",
                self.lead + self.age)  # fmt: skip
        require(0 <= self.compute <= LONGEST, "compute", "from 0 to 1000 s", self.compute)
        require(1 <= self.mtu <= 65_535, "mtu", "from 1 to 65535 bytes", self.mtu)
        require(0 <= self.overhead <= 10_000, "overhead", "from 0 to 10000 bytes", self.overhead)
        require(0 <= self.delay <= 10**12, "delay", "from 0 to 1 s", self.delay)
        for name, most in (("buffer", 2**40), ("short", 10**9), ("reserve", 2**62), ("skew", 10**9), ("drift", 10**9),
                           ("slow", self.nodes), ("share", self.buffer), ("converge", LONGEST), ("urgent", 10**12),
                           ("deadline", LONGEST)):  # fmt: skip
            require(0 <= getattr(self, name) <= most, name, f"from 0 to {most:,}", getattr(self, name))
        for name in ("send_buffer", "receive_buffer", "reading", "writing"):
            value = getattr(self, name)
            require(value is None or 0 < value <= 2**62, name, "more than 0", value)
        require(self.reading is None or self.receive_buffer is not None, "receive_buffer", "given with reading", None)
        require(0 <= self.loss < 1, "loss", "from 0 to less than 1", self.loss)
        for name in ("permit", "patience"):
            value = getattr(self, name)
            require(value is None or 0 < value <= LONGEST, name, "more than 0 and at most 1000 s", value)
        require(self.silence >= 1, "silence", "at least 1 round", self.silence)
        require(self.reserve < self.link, "reserve", "less than the link", self.reserve)
        require(0 < self.slow_link <= self.link, "slow_link", "more than 0 and at most the link", self.slow_link)
        require(not self.short or self.reserve >= Mbps, "reserve", "at least 1 Mb/s for short flows", self.reserve)
        require(self.nics >= 0, "nics", "0 or more", self.nics)
        early = self.patience is not None and self.patience < self.cycle
        require(not early, "patience", f"at least a cycle of {self.cycle} ps", self.patience)
        self.reacts  # noqa: B018  what is wrong with it is said now
        self.changes(0)
        if self.scheduler != "greedy":
            for name in ("share", "spill", "urgent"):
                value = getattr(self, name)
                require(
                    not value, name, f"left out for {self.scheduler}, which does not look at it (greedy does)", value
                )
        require(not (self.inband and self.meets), "inband", "left out where flows meet in a slot", self.inband)
        require(not self.spill or self.share > 0, "spill", "left out without a buffer to share", self.spill)

    def changes(self, seed: int) -> list[tuple[int, str, int, bool]]:
        """(ps, what, which, whether it comes back) of nodes, managers and links, in order of time.

        `known` is when the manager plans with a link as it then is.
        """
        things = {"node": (self.nodes,), "manager": (1,)}
        words = {**things, "link": (), "switch": ()}
        known = [*words, *(f"{word}s" for word in things), "links", "switches"]
        own: list[str] = []
        links: list[str] = []
        for entry in failures.entries(self.fail):
            if entry.words[0] not in known:
                hint = failures.near(entry.words[0], known)
                raise BadInput(f"what fails must be one of {', '.join(words)}, not {entry.words[0]!r}{hint}")
            (links if entry.words[0].startswith(("link", "switch")) else own).append(entry.text)
        out = []
        for outage in failures.outages(own, things, seed=seed):
            out.append((outage.at, outage.what, outage.which[0], False))
            if outage.until is not None:
                out.append((outage.until, outage.what, outage.which[0], True))
        for change in plan(", ".join(links), self.network.graph, seed):
            for link in change.links:
                out += [(change.time, "link", link, change.up), (change.time + self.converge, "known", link, change.up)]
        return sorted(out)

    @property
    def sending(self) -> int:
        """The part of a slot in which hosts may send."""
        return self.slot - self.guard if self.inside else self.slot

    @property
    def cycle(self) -> int:
        """Time from one slot to the next."""
        return self.sending + self.guard

    @property
    def slots(self) -> int:
        """Slots in a round."""
        return self.round // self.cycle

    @property
    def rate(self) -> int:
        """b/s of a link that slots use."""
        return self.link - self.reserve

    @cached_property
    def network(self) -> Network:
        """Hosts, switches and links as schedulers see them: what is kept for short flows is not theirs."""
        graph = wired(self.topology, self.nodes, self.link, self.delay, self.pods)
        slow = ((graph.ends >= self.nodes - self.slow) & (graph.ends < self.nodes)).any(1)
        rate = np.where(slow, self.slow_link, graph.rate) - self.reserve
        require((rate > 0).all(), "reserve", "less than the slowest link", self.reserve)
        return Network(graph=replace(graph, rate=rate), slot=self.sending, buffer=self.share)

    @property
    def mixed(self) -> bool:
        """Whether links have several rates."""
        return bool((self.network.graph.rate != self.network.graph.rate[0]).any())

    @property
    def meets(self) -> bool:
        """Whether flows may meet in a slot."""
        return self.scheduler == "greedy" and (self.share > 0 or self.mixed)

    @property
    def reacts(self) -> Reaction:
        """How late hosts act."""
        known = REACTIONS_BY_NAME[self.reaction]
        return Reaction(
            lag=known.lag if self.lag is None else self.lag, jitter=known.jitter if self.jitter is None else self.jitter
        )

    @property
    def permission(self) -> int:
        """Time after which a host stops by itself."""
        return self.cycle if self.permit is None else self.permit

    @property
    def transit(self) -> int:
        """Time of a control frame from the manager through the edge switch to a host."""
        frame = wire_time(FRAME, self.link)
        return (2 if self.switching == "store" else 1) * frame + 2 * self.delay

    def controllers(self, seed: int) -> Nics:
        """The manager's NICs, their clocks drawn."""
        from weft.fabrics.tdma.manager import by_switch

        most = len(by_switch(self.network))
        count = min(self.nics or most, most)
        words = random.words(random.key(seed, SKEWS), 2 * count)
        return Nics(
            count=count, link=self.link,
            offset=tuple(random.below(words[:count], self.skew + 1).tolist()),
            drift=tuple(random.below(words[count:], self.drift + 1).tolist()),
        )  # fmt: skip

    def packets(self, rate: int) -> np.ndarray:
        """(mtu + 1,) int64 ps: a packet with so many bytes of payload on the wire; nothing for none."""
        out = -(-(np.arange(self.mtu + 1) + self.overhead) * 8 * s // rate)
        out[0] = 0
        return out

    def ideal(self, flows) -> np.ndarray:
        """(f,) int64 ps: no flow can be faster than its payload at the rate of its ends' links, and their delay."""
        network = self.network
        rate, delay = np.repeat(network.graph.rate + self.reserve, 2), np.repeat(network.graph.delay, 2)
        ends = network.host_port[flows.src], network.host_port[flows.dst]
        slower = np.minimum(rate[ends[0]], rate[ends[1]]).astype(object)
        return (-(-flows.size.astype(object) * (8 * s) // slower)).astype(np.int64) + delay[ends[0]] + delay[ends[1]]

    # a run

    def memory(self, demand) -> int:
        """Bytes of the tables of pairs, flows, ports and grants."""
        n = self.nodes
        grants = (self.silence + 3) * self.slots * n * (2 * 8 + 3 * 4 + 8 * 4)
        return (
            12 * 8 * n * n
            + (64 + 56 * bool(demand.waiting)) * len(demand)
            + 64 * self.network.graph.ports
            + grants
            + 512 * 8 * n
        )

    def prepare(self, demand, *, seed: int = 0):
        """A run before its first cycle."""
        from weft.fabrics.tdma.run import TdmaRun

        return TdmaRun(self, demand, seed)

    def inputs(self):
        """The edge list, where the topology is one."""
        return (self.topology,) if isfile(self.topology) else ()

    def queues(self):
        """Every host, which holds what it has not been granted a slot for; switches hold next to nothing."""
        return [f"host {i}" for i in range(self.nodes)]

    def lines(self):
        """Every port, or every node with all its ports."""
        return self.network.graph.port_names(QUEUES)

    def follow(self, demand, f, *, seed, until):
        """Steps of flow f, slot by slot, from the twin."""
        from weft.fabrics.tdma.follow import follow

        return follow(self, demand, f, seed=seed, until=until)

    @staticmethod
    def facts(summary):
        """Lines of a run's table: how near it came to what links allow, and what became of slots."""
        slots, overlap, control = summary["slots"], summary["overlap"], summary["control"]
        demand, deadlines = summary["demand"], summary["deadlines"]
        if summary["efficiency"] is not None:
            finish, ideal = show_number(summary["finish_s"]), show_number(summary["ideal_s"])
            yield "transfer", f"{finish} s, {100 * summary['efficiency']:.2f} % of what links allow ({ideal} s)"
        yield "slots", f"{slots['granted']:,} granted, {slots['unused']:,} of them not used"
        if demand["not_there_bytes"] or demand["not_reported_bytes"]:
            absent, beyond = show_size(demand["not_there_bytes"]), show_size(demand["not_reported_bytes"])
            yield "demand", f"{absent} granted and not there, {beyond} there and not reported in time"
        if deadlines["flows"]:
            yield (
                "deadlines",
                f"{deadlines['late']:,} of {deadlines['flows']:,} flows late, {deadlines['open']:,} not done",
            )
        met = f"{overlap['streams']:,} streams met an earlier one, by {show_number(overlap['mean_us'])} us"
        yield "overlap", met if overlap["streams"] else "no stream met an earlier one"
        rate, share = show_number(control["rate_mbps_per_host"]), show_number(100 * control["overhead"])
        yield "control", f"{control['frames']:,} frames, {rate} Mb/s per host, which costs {share} % of a link"

    def transfer(self, flows) -> int:
        """ps in which links could carry all flows, if nothing but their payload took time (§6.1)."""
        load = np.zeros(self.network.graph.ports, object)
        if self.network.tree is None:
            own = self.network.host_port
            np.add.at(load, own[flows.src], flows.size.astype(object))
            np.add.at(load, own[flows.dst] ^ 1, flows.size.astype(object))
        else:
            pairs, which = np.unique(np.stack([flows.src, flows.dst]), axis=1, return_inverse=True)
            total = np.zeros(pairs.shape[1], object)
            np.add.at(total, which.reshape(-1), flows.size.astype(object))
            for (i, j), size in zip(pairs.T.tolist(), total, strict=True):
                load[self.network.path(i, j)] += size
        rate = np.repeat(self.network.graph.rate, 2).astype(object) + self.reserve
        return int(max(load * (8 * s) // rate, default=0))

    @property
    def control_rate(self) -> float:
        """b/s of frames to one host (§6.5)."""
        return 2 * FRAME * 8 * s / self.cycle

    @property
    def payload_rate(self) -> float:
        """b/s of payload of a host that has every slot: what a grant allows, unless its packets take longer.

        A grant is a slot's worth of payload, and a packet that has begun when the slot ends goes on into the guard.
        """
        begun = -(-self.sending // wire_time(self.mtu + self.overhead, self.rate))
        return min(self.rate * self.sending / s, 8 * self.mtu * begun) * s / self.cycle

    @property
    def spacing(self) -> int:
        """Time from one frame of a NIC to its next."""
        return wire_time(FRAME + GAP, self.link)
