"""A switch at work: the kernel's arrays between its strides, and what was seen of them."""

import numpy as np

from weft.engine import loop
from weft.engine.fingerprint import show
from weft.engine.layout import check_limits, check_same, check_shapes
from weft.fabrics.base import Run, delivered_as_offered
from weft.fabrics.crossbar import bounds, kernel, layout, timing
from weft.fabrics.crossbar.fabric import EMULATING, MATCHED, Crossbar
from weft.fabrics.crossbar.state import Count, Kind, Level, Plan
from weft.metrics.observation import Lost, Observation, Queue, Throughput
from weft.metrics.throughput import spread
from weft.units import ns, show_time
from weft.units import s as second
from weft.workload.traffic import LONGEST

PATIENCE = 4096  # slots beyond the longest wait of iSLIP, in which a switch that holds a cell delivers one: pipelines


class CrossbarRun(Run):
    """A switch at work on flows, or on cells that are made slot by slot."""

    fabric: Crossbar
    unit = "slots"
    budget = 64
    inspect_every = 1 << 12  # slots between two counts of the cells inside
    inspect_samples = 16  # a count takes as long as some ten slots

    def __init__(self, fabric, demand, seed=0):
        super().__init__(fabric, demand, seed=seed, every=64 * fabric.slot)
        self.state = layout.state(fabric, demand, seed)
        self.with_flows = self.state.plan[Plan.KIND] == Kind.FLOWS
        self.last = LONGEST if self.with_flows else int(self.state.plan[Plan.SLOTS])
        self.patience = (bounds.starvation(fabric.ports) + PATIENCE) * fabric.slot
        self.kernel = self._choose()
        if self.kernel is kernel.sprint:
            self.budget = 4096

    def _choose(self):
        """The kernel for these buffers and this scheduler: the fast one where it can be had."""
        fabric, state = self.fabric, self.state
        sprints = (
            fabric.buffers == "voq" and fabric.algorithm == "islip" and fabric.iterations == 1 and fabric.ports <= 64
            and state.plan[Plan.KIND] == Kind.UNIFORM and not state.plan[Plan.FLOW_CONTROL]
            and len(state.cells) < 1 << 24 and fabric.queue_depth < 1 << 16  # a queue is one word there
        )  # fmt: skip
        if sprints:
            return kernel.sprint
        if fabric.algorithm in EMULATING:
            return kernel.emulated
        return kernel.matched if fabric.buffers in MATCHED else kernel.staged

    @property
    def slot(self):
        """Slots that are over."""
        return int(self.state.clock[0])

    @property
    def count(self):
        """See `Count`."""
        return self.state.count

    @property
    def per_output(self):
        """Cells that each output has sent after the warm-up."""
        return self.state.per_output

    @property
    def queued(self):
        """Cells in the places that the fabric names."""
        return layout.queued(self.fabric, self.state)

    @property
    def now(self):
        return self.slot * self.fabric.slot

    @property
    def finished(self):
        return int(self.count[Count.FINISHED])

    @property
    def work(self):
        return self.slot

    @property
    def share(self):
        return super().share if self.with_flows else self.slot / self.last

    def compile(self):
        self.kernel(self.state, self.slot)

    def step(self, until, budget):
        wanted = min(until // self.fabric.slot, self.last)
        stop = min(self.slot + budget, wanted)
        self.kernel(self.state, stop)
        if self.slot < stop or self.slot == self.last:
            return loop.DONE  # every flow has been delivered, or no cell comes any more
        return loop.REACHED if stop == wanted else loop.PAUSED

    def sample(self):
        counts = self.count
        return {
            "delivered_bytes": self.per_output * self._worth,
            "finished": self.finished,
            "waiting": self.inside,
            "lost": counts[Count.LOST] + counts[Count.LINE_BUSY],
            "queued": self.gathered(self.queued),
            "busy_ps": self.averaged(self.per_output * self.fabric.slot, np.arange(self.fabric.nodes)),
        }

    @property
    def _worth(self):
        """Bytes that a delivered cell is worth: its payload if it belongs to a flow, else all of it."""
        return self.fabric.payload if self.with_flows else self.fabric.cell

    @property
    def inside(self):
        """Cells that the switch holds by its own sums."""
        c = self.count
        return int(c[Count.OFFERED] - c[Count.LOST] - c[Count.LINE_BUSY] - c[Count.DELIVERED])

    def monitors(self, thorough=True):
        off = abs(self.inside - layout.inside(self.fabric, self.state)) if thorough else 0
        return {
            "one_cell_per_port_and_slot": int(self.count[Count.CLASHES]),
            "conservation": int(off),
            "queue_bound": layout.too_deep(self.fabric, self.state) if thorough else 0,
            "delivered_as_offered": self._miscounted() if thorough and self.with_flows else 0,
            "progress": self.stalled(),
        }

    @property
    def under_way(self):
        return int(self.count[Count.DELIVERED]), self.inside > 0

    def _miscounted(self) -> int:
        """Flows whose cells do not add up, and deliveries that belong to none."""
        state = self.state
        cells = -(-self.demand.table.size // self.fabric.payload)
        got = cells - state.flow_due
        wrong = delivered_as_offered(cells, got, state.flow_finish)
        wrong += int(np.count_nonzero((state.flow_left < 0) | (state.flow_left > state.flow_due)))
        return wrong + abs(int(got.sum()) - int(state.count[Count.DELIVERED]))

    def arrays(self):
        return layout.freeze(self.state)

    def check(self, given):
        own, level = self.state.level, given.get("level", self.state.level)
        fresh = int(level[Level.FRESH]) if (level.shape, level.dtype) == (own.shape, own.dtype) else -1
        check_limits([("level", fresh, 0, len(self.state.cells))])
        laid = {name: array[:fresh] if name in layout.POOLED else array for name, array in self.state._asdict().items()}
        check_shapes(laid, given, {})
        check_same({name: laid[name] for name in layout.FIXED}, given)
        check_limits(self.limits(given))

    def limits(self, given):
        return layout.limits(self.fabric, self.state, given)

    def restore(self, arrays):
        for name, array in arrays.items():
            getattr(self.state, name)[: len(array)] = array

    # what was seen

    def observe(self) -> Observation:
        state, fabric, flows = self.state, self.fabric, self.demand.table
        c, slots, n = state.count, self.slot, fabric.ports
        rounds, busy = np.flatnonzero(state.rounds), state.rounds[1:]
        longest = int(state.level[Level.PEAK])
        sections = {
            "cells_per_slot": self._carried(),
            "delay_slots": _delays(state),
            "latency_ns": self._latency(),
            "queue_cells": {"max": longest},
            "memory_cells": {"max": int(c[Count.MEMORY])} if fabric.buffers in ("shared", "gcq") else None,
            "scheduler": {
                "name": fabric.algorithm,
                "iterations_mean": float(busy @ np.arange(1, len(busy) + 1) / busy.sum()) if busy.any() else None,
                "iterations_max": int(rounds[-1]) if len(rounds) else None,
            },
        }
        if fabric.algorithm in EMULATING:
            sections["later_than_output_queued"] = int(c[Count.OVERDUE])
        if fabric.buffers == "load-balanced":
            sections["out_of_order"] = int(c[Count.OUT_OF_ORDER])
        finish = np.empty(0, np.int64)
        received = np.empty(0, np.int64)
        if self.with_flows:
            done = state.flow_finish >= 0
            finish = np.where(done, (state.flow_finish + 1) * fabric.slot + fabric.way, -1)
            received = np.minimum((-(-flows.size // fabric.payload) - state.flow_due) * fabric.payload, flows.size)
        return Observation(
            finish=finish,
            received=received,
            now=self.now + (fabric.way if self.with_flows else 0),
            unit="cells",
            carried={"offered": int(c[Count.OFFERED]), "delivered": int(c[Count.DELIVERED])},
            queue=Queue(max=longest, max_bytes=longest * fabric.cell),
            lost=self._lost(),
            throughput=None if self.with_flows else self._throughput(),
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections=sections,
            monitors=self.monitors(),
            fingerprint=show(state.print),
            samples=self.series.columns(self.now, self.sample()),
            work={"slots": slots, "node_slots": slots * n, "seconds": self.seconds},
            notes=tuple(self._notes()),
        )

    def _lost(self):
        c = self.state.count
        flows = int(layout.lost_flows(self.fabric, self.state).sum()) if self.with_flows and c[Count.LOST] else 0
        return Lost(causes={"full": int(c[Count.LOST]), "line_busy": int(c[Count.LINE_BUSY])}, flows=flows)

    def _measured(self):
        """Slots after the warm-up."""
        return max(self.slot - int(self.state.plan[Plan.WARMUP]), 0)

    def _carried(self):
        """Cells, or copies of them, delivered per port and slot after the warm-up: mean, least and most of outputs."""
        slots = self._measured()
        return spread(self.state.per_output / slots if slots else np.empty(0))

    def _throughput(self):
        slots, fabric = self._measured(), self.fabric
        rates = self.state.per_output * (fabric.cell * 8) / (max(slots, 1) * fabric.slot) * second
        return Throughput(
            rates=rates if slots else np.empty(0), begin=self.now - slots * fabric.slot, end=self.now,
            best=fabric.cell * 8 * second / fabric.slot, window="after the warm-up, whole cells",
        )  # fmt: skip

    def _latency(self):
        """Nanoseconds from port to port: the stages, and the slots that cells waited."""
        fabric, waited = self.fabric, _mean_delay(self.state)
        extra = None if waited is None else max(waited - fabric.least_delay, 0) * fabric.slot
        return {
            "stages": {stage.name: stage.time_ns for stage in fabric.stages},
            "unloaded": fabric.unloaded / ns,
            "mean": None if extra is None else (fabric.unloaded + extra) / ns,
            **timing.formula(fabric.buffers, fabric.ports, fabric.group, fabric.clock),
        }

    def _notes(self):
        fabric, state = self.fabric, self.state
        if fabric.buffers not in MATCHED and fabric.scheduler not in (None, "rr"):
            yield f"{fabric.buffers} buffers need no matching: the scheduler {fabric.scheduler} is not used"
        scheduling = next((stage for stage in fabric.stages if stage.name == "scheduler"), None)
        if scheduling is not None and scheduling.time > fabric.slot:
            yield (
                f"the scheduler takes {show_time(scheduling.time)} for a slot of {show_time(fabric.slot)}: "
                "at this clock it keeps up with the line only if matchings overlap"
            )
        if state.delay[-1]:
            yield (
                f"{int(state.delay[-1])} cells waited {len(state.delay) - 1} slots or longer: "
                "percentiles that high are lower bounds"
            )


def _mean_delay(state):
    """Slots that cells waited on average, or None if none was delivered."""
    cells = int(state.delay.sum())
    within = int((state.delay[:-1] * np.arange(len(state.delay) - 1)).sum())
    return (within + int(state.count[Count.BEYOND])) / cells if cells else None


def _delays(state):
    reached = np.cumsum(state.delay)
    cells = int(reached[-1])
    if not cells:
        return {"mean": None, "p50": None, "p99": None, "p99.9": None, "max": None}

    def rank(parts):  # nearest rank: the smallest delay that `parts` in a thousand did not exceed
        return int(np.searchsorted(reached, -(-cells * parts // 1000)))

    longest = int(state.count[Count.LONGEST]) if state.delay[-1] else int(np.flatnonzero(state.delay)[-1])
    return {"mean": _mean_delay(state), "p50": rank(500), "p99": rank(990), "p99.9": rank(999), "max": longest}
