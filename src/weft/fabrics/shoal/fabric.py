"""Shoal's parameters, and what follows from them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from weft.errors import BadInput, require
from weft.fabrics.base import Fabric
from weft.fabrics.shoal.rack import RackRun
from weft.failures import entries
from weft.schedule import clock, outage
from weft.schedule.rotation import Rounds, rounds
from weft.topology.circuit import CircuitClos
from weft.units import Gbps, Rate, Size, Time, ms, param, s, show_number, show_rate, show_time, wire_time
from weft.workload.flows import LATEST

NODES = 32_767  # the kernel's queue words hold no more
LONGEST = 1 << 20  # slots a cell may travel
PORTS = 64  # of a circuit switch, unless given
CLASSES = 8  # as many as a packet network tells apart
VALUES = 16  # of feedback: 176 bits, a third of a cell


@dataclass(frozen=True, kw_only=True)
class Shoal(Fabric):
    """A rack of nodes facing each other in turn through circuit switches (NSDI '19, §3).

    Every slot each node sends one cell on each channel, each to another peer. A cell for somebody else waits there for
    its own turn, so a cell crosses the rack in at most two hops. One-hop backpressure bounds every queue.
    """

    releases = True
    on_gpu = "weft.fabrics.shoal.gpu.racks"

    nodes: int = param(help="nodes in the rack")
    link: Rate = param(100 * Gbps, "rate of a node's link, all channels together")
    channels: int | None = param(None, "channels of a link; 4 unless given, fewer in a rack of under 5 nodes")
    cell: Size = param(64, "bytes of a cell on the wire, header included")
    header: Size = param(8, "bytes of its header")
    guard: Time = param(2750, "dark time at the start of a slot while circuits change")
    slot: Time | None = param(None, "length of a slot, instead of the one computed from cell, link and guard")
    delay: int | None = param(None, "slots a cell travels beyond the one it is sent in")
    propagation: Time = param(0, "time along a cable; a cell crosses two from node to node, four in a Clos of switches")
    path: Time | None = param(None, "the same from node to node, cables and switches together; rounded up to slots")
    schedule: Literal["auto", "rotation", "mirrored"] = param("auto", "order in which nodes face each other")
    rules: Literal["paper", "released", "literal"] = param(
        "paper", "the paper made sound, the authors' simulator, or the paper's equations at their word"
    )
    ready_queues: bool = param(True, "at most one local cell in a queue (§3.3.3)")
    age_interval: int | None = param(
        None,
        "slots in which a flow ages by one (2^age); an epoch unless given, 0 is off, as it is under released rules",
    )
    sharing: Literal["round-robin", "shortest"] = param("round-robin", "which flow of a node pair sends next")
    feedback: int | None = param(
        None,
        "values of feedback in a header, on as many of the cells received last; 2 unless given, as in the authors' "
        "simulator, 1 as in Fig. 5 and under literal rules",
    )
    fail: str | None = param(None, "what fails and when, as in 'node 3 at 1ms, spine 0 at 2ms until 5ms'")
    ports: int | None = param(None, "ports of a circuit switch; needed only where switches fail")
    ber: float = param(0.0, "share of bits that arrive wrong")
    classes: int = param(1, "traffic classes, 0 going first (App. C)")
    class_depth: int | None = param(None, "cells that a queue of a lower class holds; as many as nodes unless given")
    sync: Time = param(0, "how far two clocks are apart after an exchange")
    sync_guard: Time = param(50, "the part of the guard that is for clocks")
    drift: float = param(0.0, "parts per billion by which a clock strays when the master is lost")
    resync: Time = param(1 * ms, "time between two exchanges")
    failover: Time | None = param(None, "time until another master serves; never unless given")
    transport: Literal["none", "e2e"] = param("none", "whether sources send again what is not acknowledged in time")
    timeout: Time | None = param(None, "what that time is at first; 64 epochs unless given")

    def __post_init__(self):
        require(_whole(self.nodes) and self.nodes >= 2, "nodes", "at least 2", self.nodes)
        require(self.nodes <= NODES, "nodes", f"at most {NODES:,}", self.nodes)
        require(_whole(self.link) and self.link > 0, "link", "a positive rate", self.link)
        require(
            self.channels is None or (_whole(self.channels) and 1 <= self.channels < self.nodes),
            "channels", f"between 1 and nodes - 1 = {self.nodes - 1}", self.channels,
        )  # fmt: skip
        require(_whole(self.cell) and self.cell > 0, "cell", "at least 1 byte", self.cell)
        carries = _whole(self.header) and 0 <= self.header < self.cell
        require(carries, "header", f"less than the cell of {self.cell} B", self.header)
        require(_whole(self.guard) and self.guard >= 0, "guard", "zero or more", self.guard)
        require(self.slot is None or (_whole(self.slot) and self.slot > 0), "slot", "at least 1 ps", self.slot)
        require(self.slot_time <= LATEST, "a slot", "at most 53 days", show_time(self.slot_time))
        if self.guard and self.slot_time <= self.guard:
            slot = show_time(self.slot_time)
            raise BadInput(f"guard must be shorter than the slot of {slot}, not {show_time(self.guard)}")
        require(self.propagation >= 0, "propagation", "zero or more", self.propagation)
        require(
            self.delay is None or (_whole(self.delay) and 0 <= self.delay <= LONGEST),
            "delay", f"between 0 and {LONGEST:,} slots", self.delay,
        )  # fmt: skip
        require(self.path is None or self.path >= 0, "path", "zero or more", self.path)
        if self.delay is not None and (self.propagation or self.path):
            given = "path" if self.path else "propagation"
            raise BadInput(f"delay must be left out when {given} is given, not {self.delay!r}")
        if self.path is not None and self.propagation:
            raise BadInput(f"propagation must be left out when path is given, not {show_time(self.propagation)}")
        require(self.travel <= LONGEST, "propagation", f"at most {LONGEST:,} slots", self.propagation)
        for name, known in (("schedule", _SCHEDULES), ("rules", _RULES), ("sharing", _SHARING)):
            require(getattr(self, name) in known, name, f"one of {', '.join(known)}", getattr(self, name))
        require(
            self.age_interval is None or (_whole(self.age_interval) and self.age_interval >= 0),
            "age_interval", "zero or more slots", self.age_interval,
        )  # fmt: skip
        if self.rules == "released":
            require(self.lanes == 1, "channels", "1 under the released rules", self.channels)
            require(self.travel == 0, "delay", "0 under the released rules", self.travel)
            require(self.schedule != "mirrored", "schedule", "rotation under the released rules", self.schedule)
            require(self.ready_queues, "ready_queues", "on under the released rules", self.ready_queues)
        most = {"released": 2, "literal": 1}.get(self.rules, VALUES)
        require(
            self.feedback is None or (_whole(self.feedback) and 1 <= self.feedback <= most),
            "feedback", f"from 1 to {most} values" if most > 1 else "1 under the literal rules", self.feedback,
        )  # fmt: skip

        self._check_faults()

    def _check_faults(self):
        require(0 <= self.ber < 1, "ber", "at least 0 and below 1", self.ber)
        require(_whole(self.classes) and 1 <= self.classes <= CLASSES, "classes", f"from 1 to {CLASSES}", self.classes)
        depth = self.class_depth
        require(depth is None or (_whole(depth) and depth >= 1), "class_depth", "at least 1 cell", depth)
        require(self.transport in _TRANSPORTS, "transport", f"one of {', '.join(_TRANSPORTS)}", self.transport)
        require(self.timeout is None or self.timeout > 0, "timeout", "above 0", self.timeout)
        for name in ("sync_guard", "resync", "failover"):
            require((getattr(self, name) or 0) >= 0, name, "at least 0 ps", getattr(self, name))
        if self.clocked:
            require(self.sync_guard <= self.guard, "sync_guard", "within the guard", show_time(self.sync_guard))
            self._clocks()  # says what is wrong with them
        if self.ports is not None:
            outage.fabric(self.rounds, self.ports)  # says what is wrong with it
        if self.fail is not None:
            self.outages()
        if self.needs_plain and self.rules != "paper":
            asked = (("fail", self.fail), ("ber", self.ber), ("classes", self.classes > 1), ("sync", self.sync),
                     ("drift", self.drift), ("transport", True))  # fmt: skip
            what = next(name for name, value in asked if value)
            raise BadInput(f"{what} must be left out under the {self.rules} rules, which know nothing of it")

    # ------------------------------------------------------------------ what goes wrong

    @property
    def clocked(self) -> bool:
        """Whether clocks are more than ideal."""
        return self.sync != 0 or self.drift != 0

    @property
    def needs_plain(self) -> bool:
        """Whether the plain kernel is needed: something can fail, or cells wait for a higher class."""
        return bool(self.fail) or self.ber > 0 or self.classes > 1 or self.clocked or self.transport != "none"

    @property
    def patience(self) -> int:
        """Slots after which the transport sends again; 0 if there is none."""
        if self.transport == "none":
            return 0
        return 64 * self.rounds.slots if self.timeout is None else -(-self.timeout // self.slot_time)

    def outages(self, seed: int = 0) -> tuple:
        """The failures of a run."""
        return outage.plan(self.fail or "", self.rounds, self.ports, seed=seed)

    def faults(self, seed: int = 0):
        """All that is broken, slot by slot, as the kernel takes it."""
        from weft.fabrics.shoal.plain.arrays import merge

        failures = self.outages(seed)
        cuts = outage.cuts(self.rounds, failures, self.slot_time, self.ports)
        off = clock.off(self._clocks(), failures, self.slot_time, seed=seed) if self.clocked else None
        return merge(self.rounds, cuts, off)

    def _clocks(self):
        return clock.Clocks(
            nodes=self.nodes, allowed=self.sync_guard, precision=self.sync, drift=self.drift, resync=self.resync,
            failover=self.failover,
        )  # fmt: skip

    # ------------------------------------------------------------------ what follows

    @property
    def lanes(self) -> int:
        """Channels of a link."""
        if self.channels is not None:
            return self.channels
        return 1 if self.rules == "released" else min(4, self.nodes - 1)

    @property
    def values(self) -> int:
        """Values of feedback in a header."""
        if self.feedback is not None:
            return self.feedback
        return 1 if self.rules == "literal" else 2

    @property
    def slot_time(self) -> int:
        """Length of a slot."""
        return wire_time(self.cell * self.lanes, self.link) + self.guard if self.slot is None else self.slot

    @property
    def travel(self) -> int:
        """Slots a cell travels beyond the one it is sent in."""
        return -(-self.way // self.slot_time) if self.delay is None else self.delay

    @property
    def cables(self) -> int:
        """Cables from node to node: to a circuit switch and from it, or over leaf, spine and leaf."""
        return 2 if self.nodes <= (self.ports or PORTS) else 4

    @property
    def way(self) -> int:
        """Time from node to node, before it is rounded up to slots."""
        if self.delay is not None:
            return self.delay * self.slot_time
        return self.cables * self.propagation if self.path is None else self.path

    def links(self):
        """Rate and propagation of its links; a way that is given whole is divided among the cables."""
        return {**super().links(), "propagation": self.way // self.cables}

    def with_links(self, **values):
        """The same rack with other links."""
        ways = {"delay": None, "path": None} if "propagation" in values else {}
        return Fabric.with_links(replace(self, **ways), **values)

    @property
    def payload(self) -> int:
        """Bytes of a cell that carry a flow."""
        return self.cell - self.header

    @cached_property
    def rounds(self) -> Rounds:
        """Who faces whom."""
        return rounds(self.nodes, self.lanes, self.travel, "rotation" if self.rules == "released" else self.schedule)

    @property
    def epoch(self) -> int:
        """Length of an epoch, in which everybody faces everybody once."""
        return self.rounds.slots * self.slot_time

    @property
    def capacity(self) -> float:
        """Cells a node can send per slot: channels, less the places of an epoch in which it faces nobody."""
        return (self.nodes - 1) / self.rounds.slots

    def parts(self) -> dict[str, int]:
        """What the rack is made of: NICs, and for each channel a Clos of circuit switches, of 64 ports unless given."""
        clos = CircuitClos(nodes=self.nodes, ports=self.ports or PORTS, planes=self.lanes)
        switch = f"circuit switch of {clos.ports} x {show_rate(self.link // self.lanes)}"
        return {switch: clos.switches, f"Shoal NIC of {show_rate(self.link)}": self.nodes}

    def cells(self, size):
        """Cells that so many bytes take."""
        return -(-np.asarray(size, np.int64) // self.payload)

    def ideal(self, flows) -> np.ndarray:
        """(flows,) int64: ps below which no flow can finish: its cells on all channels at once, over an idle rack."""
        slots = -(-self.cells(flows.size) // self.lanes)
        return (slots + self.travel) * self.slot_time  # a cell is there at the end of a slot

    @property
    def payload_rate(self) -> float:
        """Bits of payload per second into a node in every slot of which it receives."""
        return self.capacity * self.payload * 8 * s / self.slot_time

    def memory(self, demand) -> int:
        """Bytes a run of so many flows is predicted to need."""
        from weft.engine import calendar

        n, c, flows = self.nodes, self.lanes, len(demand)
        places, pairs = -(-n // c) * c, 8 * min(flows, n)
        per_link, per_pair = 4 + 8 * self.values + 2 + (32 if n <= 4096 else 8), 2 * places + 64 + 4 + 128 + 16
        per_flow = 36 + 24 + 48
        fast = n * places * per_link + pairs * per_pair
        if self.rules == "released" or self.needs_plain:
            pairs, per_link, per_pair = min(flows, 4 * n) + 16, 34, 4 * places + 64
        both = self.needs_plain and self.classes == 1 and not self.ber and not self.patience and n <= 4096
        if self.needs_plain:
            turns = 2 + 2 * self.travel * c // places
            per_link = 36 * self.classes + 16 * turns + 4 * self.values
            per_pair += 80 + (4096 if self.patience else 0)
            times = {time for entry in entries(self.fail or "") for time in (entry.at, entry.until)}
            per_link += (7 + len(times) + 1) // 8 + 1  # sets of nodes
        live = 0 if demand.waiting else demand.at_once(self.link)  # of flows that wait nobody can tell
        if pairs < live:
            table = demand.table
            live = min(live, len(np.unique(table.src.astype(np.int64) * n + table.dst)))
        while pairs < live:
            pairs *= 2
        air = (self.travel + 1) * c * n * (5 + 8 * self.values)
        waits = 2 * calendar.size(demand)  # as planned, and as it is
        kernels = n * places * per_link + (fast if both else 0)  # which hand the rack to one another
        return kernels + pairs * per_pair + flows * per_flow + 4 * n * c * 20 + air + waits

    # ------------------------------------------------------------------ a run

    def prepare(self, demand, *, seed: int = 0) -> RackRun:
        """Lay out a run; the seed decides which cells are damaged and which share of the nodes fails, and no more."""
        self.accept(demand)
        most = int(demand.klass.max(initial=0))
        require(most < self.classes, "class", f"below the number of classes, {self.classes}", most)
        if self.needs_plain:
            from weft.fabrics.shoal.plain_rack import PlainRackRun

            return PlainRackRun(self, demand, seed)
        return RackRun(self, demand, seed)

    def queues(self):
        """Every node, with all its queues."""
        return [f"node {i}" for i in range(self.nodes)]

    def lines(self):
        """The same: a node's link on the way out, all channels together, which sends while it carries full cells."""
        return self.queues()

    def follow(self, demand, f, *, seed, until):
        """Steps of flow f, cell by cell, from the twin."""
        from weft.fabrics.shoal.follow import follow

        return follow(self, demand, f, until)

    @staticmethod
    def facts(summary):
        """Lines of a run's table: what the cells on the links were good for, and what was held for reassembly."""
        from weft.metrics.occupancy import link_use

        use = link_use(summary["cells"])
        if use["useful"] is not None:
            yield "cells on the links", ", ".join(f"{share:.1%} {name}" for name, share in use.items())
        line = summary["line"]
        if line["fraction_of_slots"] is not None:
            yield "slots into a destination", f"{line['fraction_of_slots']:.1%} carried a cell for it, {line['window']}"
        yield "held for reassembly", f"{show_number(summary['reorder_bytes']['max'])} bytes at most"
        for failure in summary.get("failures", ()):
            yield "failure", _told(failure)


def _told(failure) -> str:
    """A failure in words."""
    begun = f"{failure['what']} at {show_time(failure['at_ps'])}"
    over = "" if failure["until_ps"] is None else f" until {show_time(failure['until_ps'])}"
    seen = failure["detected_ps"]
    noticed = "noticed by nobody" if seen is None else f"noticed on {failure['links']} links by {show_time(seen)}"
    return f"{begun}{over}, {noticed}"


_SCHEDULES = ("auto", "rotation", "mirrored")
_RULES = ("paper", "released", "literal")
_SHARING = ("round-robin", "shortest")
_TRANSPORTS = ("none", "e2e")


def _whole(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
