"""A Shoal rack at work: the kernel's arrays between its strides, and what was seen of them."""

from time import perf_counter

import numpy as np

from weft.errors import MonitorTripped
from weft.fabrics.base import Run
from weft.metrics.observation import Observation
from weft.units import show_time

STRIDE = 1 << 21  # node-slots between two looks at the run: tens of milliseconds
INSPECT = 1 << 24  # node-slots between two inspections of every queue; one costs as much as some 2^14 of them
SAMPLES = 512  # rows of time series kept; when full, every other one goes and the interval doubles


class Rack(Run):
    """A Shoal rack at work: the kernel's arrays, and the samples taken between its strides."""

    def __init__(self, fabric, flows, seed=0):
        self.fabric, self.seed = fabric, seed
        self.plan = self.lay_out(flows)
        self.state = self.layout.make_state(self.plan)
        self.flows = len(flows)
        self.every = 8 * fabric.rounds.slots  # slots between samples
        self.samples = [(0, np.zeros(fabric.nodes, np.int64))]
        self.half = None  # (slot, cells received by each node) halfway to the end, where there is one
        self.inspected = 0  # node-slots at the last inspection
        self.seconds = 0.0  # of wall time in the kernel, its compilation not counted
        self.compiled = False
        self.broken = {"queue_bound": 0, "one_cell_per_subflow": 0, "conservation": 0}

    def lay_out(self, flows):
        """Choose the kernel and its arrays; returns what no slot changes."""
        from weft.fabrics.shoal import arrays, kernel

        fabric = self.fabric
        self.kernel, self.code, self.layout = kernel, kernel, arrays
        interval = fabric.age_interval
        if fabric.rules == "released":  # other code over the same columns
            from weft.fabrics.shoal import released

            self.code = self.layout = released
            interval = interval or 0  # it is off in the authors' simulator
        return self.layout.make_plan(
            fabric.rounds, flows.src, flows.dst, fabric.cells(flows.size), -(-flows.start // fabric.slot_time),
            delay=fabric.travel, rules=fabric.rules, ready_queues=fabric.ready_queues,
            age_interval=fabric.rounds.slots if interval is None else interval, sharing=fabric.sharing,
        )  # fmt: skip

    # what others may look at between strides
    @property
    def slot(self):
        return int(self.state.tally[self.kernel.SLOT])

    @property
    def now(self):
        return self.slot * self.fabric.slot_time

    @property
    def finished(self):
        return int(self.state.tally[self.kernel.FINISHED])

    @property
    def done(self):
        return self.finished == self.flows

    @property
    def work(self):
        return self.slot * self.fabric.lanes * self.fabric.nodes

    def stride(self, end: int | None) -> bool:
        """Run the kernel for a while; False when `end` or the end of all flows is reached."""
        k = self.kernel
        stop = self.samples[-1][0] + self.every
        if end is not None:
            middle = end // 2
            if self.half is None and self.slot < middle:
                stop = min(stop, middle)
            stop = min(stop, end)
        if not self.compiled:
            self.code.advance(self.plan, self.state, self.slot, 0)  # no slot lies before this one
            self.compiled = True
        began = perf_counter()
        why = self.go(max(stop, self.slot), end)
        self.seconds += perf_counter() - began
        if why in (k.MORE_CELLS, k.MORE_PAIRS, k.MORE_WINDOW):
            self.state = self.layout.grow(self.state, why)
        if end is not None and self.half is None and self.slot == middle:
            self.half = self.slot, self.state.received.copy()
        if self.slot >= self.samples[-1][0] + self.every:
            self.sample()
        more = why != k.DONE and not (end is not None and self.slot >= end)
        visits = int(self.state.tally[k.VISITS])
        if not more or visits - self.inspected >= INSPECT or self.state.tally[k.OVER_BOUND]:
            self.inspected = visits
            self.inspect()
        return more

    def go(self, stop, end):
        """Let the kernel work, at most until slot `stop`; says why it returned."""
        return self.code.advance(self.plan, self.state, stop, STRIDE)

    def sample(self):
        if len(self.samples) >= max(8, min(SAMPLES, (1 << 22) // self.fabric.nodes)):
            self.samples = self.samples[::2]
            self.every *= 2
        self.samples.append((self.slot, self.state.received.copy()))

    def inspect(self):
        """The monitors: every law that a stride could have broken. Where a law is promised a violation ends the run."""
        k, t = self.kernel, self.state.tally
        twice, lost = self.code.inspect(self.plan, self.state)
        self.broken = {
            "queue_bound": int(t[k.OVER_BOUND]),
            "one_cell_per_subflow": max(int(t[k.OVER_SUBFLOW]), int(twice)),
            "conservation": int(lost),
        }
        for law, count in self.broken.items():
            if count and law in self.promised:
                law, when = law.replace("_", " "), show_time(self.now)
                raise MonitorTripped(f"{law} must hold in every slot, not be broken {count} times by {when}")

    @property
    def promised(self):
        """The laws that must hold, or the run ends."""
        return tuple(self.broken) if self.fabric.rules == "paper" else ("conservation",)

    # ------------------------------------------------------------------ what was seen

    def observe(self, flows) -> Observation:
        from weft.engine.fingerprint import show

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
        return Observation(
            finish=np.where(finish >= 0, (finish + 1) * fabric.slot_time, -1),
            received=np.minimum(got, flows.size),
            now=self.now,
            sections={
                "cells": {
                    "local": int(t[k.LOCAL]), "forwarded": int(t[k.FORWARDED]), "dummy": places - carried,
                    "delivered": int(t[k.DELIVERED]),
                },
                "queue_cells": {
                    "max": int(t[k.MAX_QUEUE]), "max_node": int(t[k.MAX_NODE]), "histogram": lengths.tolist(),
                },
                "reorder_bytes": {"max": int(t[k.MAX_HELD]) * fabric.payload},
                "throughput": {"per_destination_gbps": rate, "fraction_of_link": share, "window": window},
                "timing": {
                    "slot_ns": fabric.slot_time / 1000, "epoch_slots": fabric.rounds.slots,
                    "epoch_us": fabric.epoch / 1e6,
                    "schedule": fabric.rounds.order, "delay_slots": fabric.travel,
                },
            },
            monitors=self.broken,
            fingerprint=show(self.state.print),
            samples={
                "time_ps": np.array([s for s, _ in samples], np.int64) * fabric.slot_time,
                "received_bytes": np.array([r for _, r in samples], np.int64) * fabric.payload,
            },
            work={"node_slots": slots * fabric.lanes * n, "stepped": int(t[k.VISITS]), "seconds": self.seconds},
            notes=tuple(self._notes()),
        )  # fmt: skip

    def _notes(self):
        fabric, broken = self.fabric, sum(self.broken.values())
        if fabric.travel and fabric.schedule == "auto" and fabric.rounds.order == "rotation":
            yield f"cells travel {fabric.travel} slots, which no schedule hides: subflows wait for feedback"
        if fabric.rules != "paper" and broken:
            yield f"the {fabric.rules} rules do not promise every law: the monitors count {broken} violations"

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
        gbps = cells * (fabric.cell * 8) / (slots * fabric.slot_time) * 1000
        return {"mean": gbps.mean(), "min": gbps.min(), "max": gbps.max()}, window, float(share.mean())

    # ------------------------------------------------------------------ checkpoints

    def freeze(self) -> dict[str, np.ndarray]:
        out = {f"state.{name}": array for name, array in self.state._asdict().items()}
        out["samples.slot"] = np.array([s for s, _ in self.samples], np.int64)
        out["samples.received"] = np.array([r for _, r in self.samples], np.int64)
        out["every"] = np.array([self.every], np.int64)
        out["spent_us"] = np.array([round(self.seconds * 1e6)], np.int64)
        if self.half is not None:
            out["half.slot"], out["half.received"] = np.array([self.half[0]], np.int64), self.half[1]
        return out

    def restore(self, arrays) -> None:
        self.state = self.state._replace(**{name: _copy(arrays[f"state.{name}"]) for name in self.state._fields})
        times, received = arrays["samples.slot"].tolist(), arrays["samples.received"]
        self.samples = [(slot, row.copy()) for slot, row in zip(times, received, strict=True)]
        self.every, self.seconds = int(arrays["every"][0]), int(arrays["spent_us"][0]) / 1e6
        self.half = (int(arrays["half.slot"][0]), arrays["half.received"]) if "half.slot" in arrays else None


def _copy(saved):
    from weft.fabrics.shoal.arrays import zeros

    out = zeros(saved.shape, saved.dtype)
    out[...] = saved
    return out
