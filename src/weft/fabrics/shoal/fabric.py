"""Shoal's parameters, and what follows from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from weft.errors import BadInput, MonitorTripped, require
from weft.fabrics.base import Run
from weft.metrics.observation import Observation
from weft.schedule.rotation import Rounds, rounds
from weft.units import Gbps, Rate, Size, Time, param, show_time, wire_time

NODES = 32_767  # the kernel's queue words hold no more
STRIDE = 1 << 21  # node-slots between two looks at the run: tens of milliseconds
SAMPLES = 512  # rows of time series kept; when full, every other one goes and the interval doubles


@dataclass(frozen=True, kw_only=True)
class Shoal:
    """A rack of nodes facing each other in turn through circuit switches (NSDI '19, §3).

    Every slot each node sends one cell on each channel, each to another peer. A cell for somebody else waits there for
    its own turn, so a cell crosses the rack in at most two hops. One-hop backpressure bounds every queue.
    """

    nodes: int = param(help="nodes in the rack")
    link: Rate = param(100 * Gbps, "rate of a node's link, all channels together")
    channels: int | None = param(None, "channels a link is split into; 4 if not given, fewer in a rack of under 5 nodes")
    cell: Size = param(64, "bytes of a cell on the wire, header included")
    header: Size = param(8, "bytes of its header")
    guard: Time = param(2750, "dark time at the start of a slot while circuits change")
    slot: Time | None = param(None, "length of a slot, instead of the one computed from cell, link and guard")
    delay: int | None = param(None, "slots a cell travels beyond the one it is sent in")
    propagation: Time = param(0, "the same as a time, rounded up to whole slots")
    schedule: Literal["auto", "rotation", "mirrored"] = param("auto", "order in which nodes face each other")
    rules: Literal["paper", "released", "literal"] = param(
        "paper", "the paper made sound, the authors' simulator, or the paper's equations at their word"
    )
    ready_queues: bool = param(True, "at most one local cell in a queue (§3.3.3)")
    age_interval: int | None = param(
        None, "slots after which a flow is one older in 2^age; an epoch unless given (0 under the released rules), 0 is off"
    )
    sharing: Literal["round-robin", "shortest"] = param("round-robin", "which flow of a node pair sends next")

    def __post_init__(self):
        require(_whole(self.nodes) and self.nodes >= 2, "nodes", "at least 2", self.nodes)
        require(self.nodes <= NODES, "nodes", f"at most {NODES:,}", self.nodes)
        require(_whole(self.link) and self.link > 0, "link", "a positive rate", self.link)
        if self.channels is None:
            object.__setattr__(self, "channels", 1 if self.rules == "released" else min(4, self.nodes - 1))
        require(
            _whole(self.channels) and 1 <= self.channels < self.nodes,
            "channels", f"between 1 and nodes - 1 = {self.nodes - 1}", self.channels,
        )  # fmt: skip
        require(_whole(self.cell) and self.cell > 0, "cell", "at least 1 byte", self.cell)
        require(_whole(self.header) and 0 <= self.header < self.cell, "header", f"less than the cell of {self.cell} B", self.header)
        require(_whole(self.guard) and self.guard >= 0, "guard", "zero or more", self.guard)
        if self.slot is None:
            object.__setattr__(self, "slot", wire_time(self.cell * self.channels, self.link) + self.guard)
        require(_whole(self.slot) and self.slot > 0, "slot", "at least 1 ps", self.slot)
        if self.slot <= self.guard and self.guard:
            raise BadInput(f"guard must be shorter than the slot of {show_time(self.slot)}, not {show_time(self.guard)}")
        require(self.propagation >= 0, "propagation", "zero or more", self.propagation)
        if self.delay is None:
            object.__setattr__(self, "delay", -(-self.propagation // self.slot))
        elif self.propagation and self.delay != -(-self.propagation // self.slot):
            raise BadInput(f"delay must be left out when propagation is given, not {self.delay!r}")
        require(_whole(self.delay) and 0 <= self.delay <= 1 << 20, "delay", "between 0 and 1,048,576 slots", self.delay)
        for name, known in (("schedule", _SCHEDULES), ("rules", _RULES), ("sharing", _SHARING)):
            require(getattr(self, name) in known, name, f"one of {', '.join(known)}", getattr(self, name))
        require(
            self.age_interval is None or (_whole(self.age_interval) and self.age_interval >= 0),
            "age_interval", "zero or more slots", self.age_interval,
        )  # fmt: skip
        if self.rules == "released":
            require(self.channels == 1, "channels", "1 under the released rules", self.channels)
            require(self.delay == 0, "delay", "0 under the released rules", self.delay)
            require(self.schedule != "mirrored", "schedule", "rotation under the released rules", self.schedule)
            require(self.ready_queues, "ready_queues", "on under the released rules", self.ready_queues)

    # ------------------------------------------------------------------ what follows

    @property
    def payload(self) -> int:
        """Bytes of a cell that carry a flow."""
        return self.cell - self.header

    @cached_property
    def rounds(self) -> Rounds:
        """Who faces whom."""
        return rounds(self.nodes, self.channels, self.delay, "rotation" if self.rules == "released" else self.schedule)

    @property
    def epoch(self) -> int:
        """Length of an epoch, in which everybody faces everybody once."""
        return self.rounds.slots * self.slot

    @property
    def capacity(self) -> float:
        """Cells a node can send per slot: channels, less the places of an epoch in which it faces nobody."""
        return (self.nodes - 1) / self.rounds.slots

    def cells(self, size):
        """Cells that so many bytes take."""
        return -(-np.asarray(size, np.int64) // self.payload)

    def ideal(self, flows) -> np.ndarray:
        """(flows,) int64: ps below which no flow can finish: its cells on all channels at once, over an idle rack."""
        slots = -(-self.cells(flows.size) // self.channels)
        return (slots + self.delay - 1) * self.slot  # its first slot may begin at the very start

    def memory(self, flows: int = 0) -> int:
        """Bytes a run of so many flows is predicted to need."""
        n, c = self.nodes, self.channels
        places, pairs = -(-n // c) * c, min(flows, 4 * n) + 16
        per_link, per_pair, per_flow = 8 + 2 + 4 + 4, 4 * places + 64 + 4 + 128 + 16, 32 + 24 + 48
        if self.rules == "released":
            per_link, per_pair = per_link + 16, 4 * places + 64
        air = (self.delay + 1) * c * n * 13
        return n * places * per_link + pairs * per_pair + flows * per_flow + 4 * n * c * 20 + air

    # ------------------------------------------------------------------ a run

    def prepare(self, flows, *, seed: int = 0) -> "Rack":
        """Lay out a run; nothing in Shoal itself is random, so the seed only serves the flows."""
        return Rack(self, flows)

    def advance(self, run: "Rack", until: int | None = None, watch=None) -> None:
        """Let time pass until `until` (ps) or until all flows are done; `watch(run)` is called between strides."""
        end = None if until is None else until // self.slot
        while run.stride(end):
            if watch is not None:
                watch(run)

    def observe(self, run: "Rack", flows) -> Observation:
        """What was seen so far."""
        return run.observe(flows)

    def freeze(self, run: "Rack") -> dict[str, np.ndarray]:
        """The run as arrays."""
        return run.freeze()

    def thaw(self, flows, arrays, *, seed: int = 0) -> "Rack":
        """The run from such arrays."""
        run = Rack(self, flows)
        run.restore(arrays)
        return run


_SCHEDULES, _RULES, _SHARING = ("auto", "rotation", "mirrored"), ("paper", "released", "literal"), ("round-robin", "shortest")


def _whole(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class Rack(Run):
    """A Shoal rack at work: the kernel's arrays, and the samples taken between its strides."""

    def __init__(self, fabric: Shoal, flows):
        from weft.fabrics.shoal import arrays, kernel

        self.fabric, self.kernel, self.layout = fabric, kernel, arrays
        if fabric.rules == "released":
            from weft.fabrics.shoal import released

            self.kernel = self.layout = released
        schedule = fabric.rounds
        interval = fabric.age_interval
        if interval is None:
            interval = 0 if fabric.rules == "released" else schedule.slots  # it is off in the authors' simulator
        self.plan = self.layout.make_plan(
            schedule, flows.src, flows.dst, fabric.cells(flows.size), -(-flows.start // fabric.slot),
            delay=fabric.delay, rules=fabric.rules, ready_queues=fabric.ready_queues, age_interval=interval,
            sharing=fabric.sharing,
        )  # fmt: skip
        self.state = self.layout.make_state(self.plan)
        self.flows = len(flows)
        self.every = 8 * schedule.slots  # slots between samples
        self.samples = [(0, np.zeros(fabric.nodes, np.int64))]
        self.half = None  # (slot, cells received by each node) halfway to the end, where there is one
        self.broken = {"queue_bound": 0, "one_cell_per_subflow": 0, "conservation": 0}

    # what others may look at between strides
    @property
    def slot(self):
        return int(self.state.tally[self.kernel.SLOT])

    @property
    def now(self):
        return self.slot * self.fabric.slot

    @property
    def finished(self):
        return int(self.state.tally[self.kernel.FINISHED])

    @property
    def done(self):
        return self.finished == self.flows

    @property
    def work(self):
        return self.slot * self.fabric.channels * self.fabric.nodes

    def stride(self, end: int | None) -> bool:
        """Run the kernel for a while; False when `end` or the end of all flows is reached."""
        k = self.kernel
        stop = self.samples[-1][0] + self.every
        if end is not None:
            middle = end // 2
            if self.half is None and self.slot < middle:
                stop = min(stop, middle)
            stop = min(stop, end)
        why = k.advance(self.plan, self.state, max(stop, self.slot), STRIDE)
        if why in (k.MORE_CELLS, k.MORE_PAIRS, k.MORE_WINDOW):
            self.state = self.layout.grow(self.state, why)
        if end is not None and self.half is None and self.slot == middle:
            self.half = self.slot, self.state.received.copy()
        if self.slot >= self.samples[-1][0] + self.every:
            self.sample()
        self.inspect()
        return why != k.DONE and not (end is not None and self.slot >= end)

    def sample(self):
        if len(self.samples) >= max(8, min(SAMPLES, (1 << 22) // self.fabric.nodes)):
            self.samples = self.samples[::2]
            self.every *= 2
        self.samples.append((self.slot, self.state.received.copy()))

    def inspect(self):
        """The monitors: every law that a stride could have broken. Under the paper's rules a violation ends the run."""
        k, t = self.kernel, self.state.tally
        twice, lost = k.inspect(self.plan, self.state)
        self.broken = {
            "queue_bound": int(t[k.OVER_BOUND]),
            "one_cell_per_subflow": max(int(t[k.OVER_SUBFLOW]), int(twice)),
            "conservation": int(lost),
        }
        fatal = self.broken if self.fabric.rules == "paper" else {"conservation": int(lost)}
        for law, count in fatal.items():
            if count:
                raise MonitorTripped(f"{law.replace('_', ' ')} must hold in every slot, not be broken {count} times by {show_time(self.now)}")

    # ------------------------------------------------------------------ what was seen

    def observe(self, flows) -> Observation:
        k, t, fabric = self.kernel, self.state.tally, self.fabric
        n, slots, per_epoch = fabric.nodes, self.slot, fabric.nodes - 1
        finish = self.layout.finish(self.state)
        undelivered = np.where(finish >= 0, 0, self.layout.undelivered(self.plan, self.state))
        got = (fabric.cells(flows.size) - undelivered) * fabric.payload
        carried = int(t[k.LOCAL] + t[k.FORWARDED])
        places = slots // fabric.rounds.slots * per_epoch * n + self._places(slots % fabric.rounds.slots)
        rate, window, share = self._throughput(flows)
        lengths = np.trim_zeros(self.state.lengths, "b")
        samples = list(self.samples)
        if samples[-1][0] < slots:
            samples.append((slots, self.state.received.copy()))
        notes = []
        if fabric.delay and fabric.rounds.order == "rotation" and fabric.schedule == "auto" and fabric.delay >= fabric.rounds.gap():
            notes.append(f"cells travel {fabric.delay} slots, too long for any order of the schedule to hide: subflows wait for feedback")
        if fabric.rules != "paper" and any(self.broken.values()):
            notes.append(f"the {fabric.rules} rules do not promise every law: the monitors count {sum(self.broken.values())} violations")
        return Observation(
            finish=np.where(finish >= 0, (finish + 1) * fabric.slot, -1),
            received=np.minimum(got, flows.size),
            now=self.now,
            sections={
                "cells": {
                    "local": int(t[k.LOCAL]), "forwarded": int(t[k.FORWARDED]), "dummy": places - carried,
                    "delivered": int(t[k.DELIVERED]),
                },
                "queue_cells": {"max": int(t[k.MAX_QUEUE]), "max_node": int(t[k.MAX_NODE]), "histogram": lengths.tolist()},
                "reorder_bytes": {"max": int(t[k.MAX_HELD]) * fabric.payload},
                "throughput": {"per_destination_gbps": rate, "fraction_of_link": share, "window": window},
                "timing": {
                    "slot_ns": fabric.slot / 1000, "epoch_slots": fabric.rounds.slots, "epoch_us": fabric.epoch / 1e6,
                    "schedule": fabric.rounds.order, "delay_slots": fabric.delay,
                },
            },
            monitors=self.broken,
            fingerprint=self.layout.fingerprint.show(self.state.print),
            samples={
                "time_ps": np.array([s for s, _ in samples], np.int64) * fabric.slot,
                "received_bytes": np.array([r for _, r in samples], np.int64) * fabric.payload,
            },
            work={"node_slots": slots * fabric.channels * n, "stepped": int(t[k.VISITS])},
            notes=tuple(notes),
        )  # fmt: skip

    def _places(self, slots):
        """Node-slots with a peer in the first `slots` slots of an epoch."""
        r = self.fabric.rounds
        return int((r.last - r.first)[: slots * r.channels].sum())

    def _throughput(self, flows):
        """Gb/s into each destination, the span it is over, and its mean as a share of what the link can carry."""
        fabric, received = self.fabric, self.state.received
        targets = np.unique(flows.dst)
        if self.half is not None and self.slot > self.half[0] and not self.done:
            slots = np.full(len(targets), self.slot - self.half[0])
            cells = (received - self.half[1])[targets]
            window = "the second half of the run"
        else:
            busy = self.layout.busy_slots(self.state, self.slot)[targets]
            targets, slots = targets[busy > 0], busy[busy > 0]
            cells = received[targets]
            window = "while the destination had flows coming in"
        if not len(cells):
            return {"mean": None, "min": None, "max": None}, window, None
        share = cells / (slots * fabric.capacity)
        gbps = cells * (fabric.cell * 8) / (slots * fabric.slot) * 1000
        return {"mean": gbps.mean(), "min": gbps.min(), "max": gbps.max()}, window, float(share.mean())

    # ------------------------------------------------------------------ checkpoints

    def freeze(self) -> dict[str, np.ndarray]:
        out = {f"state.{name}": array for name, array in self.state._asdict().items()}
        out["samples.slot"] = np.array([s for s, _ in self.samples], np.int64)
        out["samples.received"] = np.array([r for _, r in self.samples], np.int64)
        out["every"] = np.array([self.every], np.int64)
        if self.half is not None:
            out["half.slot"], out["half.received"] = np.array([self.half[0]], np.int64), self.half[1]
        return out

    def restore(self, arrays) -> None:
        self.state = type(self.state)(**{name: np.ascontiguousarray(arrays[f"state.{name}"]) for name in self.state._fields})
        self.samples = [(int(s), r.copy()) for s, r in zip(arrays["samples.slot"], arrays["samples.received"], strict=True)]
        self.every = int(arrays["every"][0])
        self.half = (int(arrays["half.slot"][0]), arrays["half.received"]) if "half.slot" in arrays else None
