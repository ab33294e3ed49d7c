"""Crossbar: the parameters of a switch that forwards cells from inputs to outputs, and what follows from them."""

from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter
from typing import Literal

import numpy as np

from weft.errors import BadInput, MonitorTripped, require
from weft.fabrics.crossbar import timing
from weft.fabrics.crossbar.timing import Stage
from weft.metrics.observation import Observation
from weft.units import Gbps, Rate, Size, Time, ns, param, show_time, wire_time
from weft.workload.flows import LATEST
from weft.workload.traffic import LONGEST

MATCHED = ("fifo", "voq", "shared", "cioq")  # buffers that need a matching
SCHEDULERS = ("islip", "rrm", "pim", "drrm", "wavefront", "lqf", "ocf", "mwm", "msm")
EMULATING = ("ccf", "lihp")
MOST_PORTS = 1024
DEEPEST = 2**40  # cells, or cycles: with a port or a cycle more it still fits a machine word
STRIDE = 0.01  # seconds that a kernel is deaf to Ctrl-C


@dataclass(frozen=True, kw_only=True)
class Crossbar:
    """A switch of `ports` inputs and outputs, one cell per port and slot (Meng and others, ASAP 2019).

    `depth` is the size of one virtual output queue. A buffer that is not divided into such queues is as large as the
    `ports` queues it stands for: the FIFO and the shared memory of an input, the queue of an output.
    """

    ports: int = param(help="inputs, and as many outputs")
    buffers: Literal["fifo", "voq", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq"] = param(
        "voq", "where cells wait: at inputs (fifo, voq, shared), also at outputs (cioq), at crosspoints (cicq), "
        "in sub-switches (hierarchical, gcq), or at outputs alone (oq)"
    )  # fmt: skip
    scheduler: (
        Literal["islip", "rrm", "pim", "drrm", "wavefront", "lqf", "ocf", "mwm", "msm", "eslip", "ccf", "lihp", "rr"]
        | None
    ) = param(None, "who is matched with whom; by default islip, and round robin where no matching is needed")
    iterations: int = param(1, "iterations of the scheduler in a slot")
    depth: int | None = param(None, "cells in a virtual output queue; by default 64, and 16 in gcq")
    crosspoint: int = param(2, "cells in a crosspoint buffer (cicq)")
    group: int = param(4, "ports of a sub-switch (hierarchical, gcq)")
    inner: int = param(64, "cells per port in the memory of a sub-switch (gcq)")
    output: int = param(64, "cells in a buffer between a sub-switch and an output (hierarchical, gcq)")
    speedup: float | None = param(
        None, "matchings per slot (cioq), by default 2 - 1/ports; memory cycles per slot (gcq), by default group"
    )
    crossing: int = param(timing.CROSSING, "reading cycles to cross to the other clock, after one writing cycle (gcq)")
    memory_cycles: int = param(timing.MEMORY_CYCLES, "cycles through a shared memory (shared, gcq)")
    pipeline: int | None = param(None, "registers along a row of sub-switches (gcq); by default ports/group")
    flow_control: bool | None = param(
        None, "senders see full buffers and wait, and no cell is lost; by default so for flows, not for traffic"
    )
    link: Rate = param(10 * Gbps, "rate of a port")
    cell: Size = param(32, "size of a cell on the line, header included")
    header: Size | None = param(None, "header of a cell; by default a bit per output and the number of the input")
    cycle: Time | None = param(None, "clock period; by default the one measured for this design, else 25 ns")

    def __post_init__(self):
        require(2 <= self.ports <= MOST_PORTS, "ports", f"from 2 to {MOST_PORTS}", self.ports)
        kinds = (*MATCHED, "cicq", "hierarchical", "gcq", "oq")
        require(self.buffers in kinds, "buffers", f"one of {', '.join(kinds)}", self.buffers)
        require(self.iterations >= 1, "iterations", "at least 1", self.iterations)
        for name in ("depth", "crosspoint", "inner", "output", "cell", "link", "cycle"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, "at least 1", value)
        for name in ("crossing", "memory_cycles", "pipeline", "header"):
            value = getattr(self, name)
            require(value is None or value >= 0, name, "at least 0", value)
        for name in ("depth", "crosspoint", "inner", "output", "crossing", "memory_cycles", "pipeline", "group"):
            value = getattr(self, name)
            require(value is None or value <= DEEPEST, name, f"at most {DEEPEST:,}", value)
        require(self.slot <= LATEST, "a slot", "at most 53 days", show_time(self.slot))
        require(self.group >= 1, "group", "at least 1 port", self.group)
        self._check_scheduler()
        if self.buffers in ("hierarchical", "gcq"):
            require(1 <= self.group <= 16, "group", "from 1 to 16 ports", self.group)
            if self.ports % self.group:
                raise BadInput(f"ports must be a multiple of group, {self.group}, not {self.ports}")
        if self.speedup is not None:
            require(self.buffers in ("cioq", "gcq"), "speedup", f"left out with {self.buffers} buffers", self.speedup)
            require(1 <= self.speedup <= self.ports, "speedup", f"from 1 to {self.ports}", self.speedup)
            if self.buffers == "gcq":
                require(self.speedup == int(self.speedup), "speedup", "a whole number of memory cycles", self.speedup)
        require(self.unloaded <= LATEST, "the way through an empty switch", "at most 53 days", show_time(self.unloaded))

    def _check_scheduler(self):
        if self.scheduler is None or self.buffers not in MATCHED:
            return
        extra = {"fifo": ("eslip",), "cioq": EMULATING}.get(self.buffers, ())
        fit = (*SCHEDULERS, *extra)
        must = f"one of {', '.join(fit)} with {self.buffers} buffers"
        require(self.scheduler in fit, "scheduler", must, self.scheduler)

    # what follows

    @property
    def nodes(self) -> int:
        """Hosts that the switch joins."""
        return self.ports

    @property
    def algorithm(self) -> str:
        """The scheduler that is at work: the one asked for, if the buffers need a matching."""
        if self.buffers in MATCHED:
            return self.scheduler or "islip"
        return "none" if self.buffers == "oq" else "rr"

    @property
    def slot(self) -> int:
        """Time of a cell on the line."""
        return wire_time(self.cell, self.link)

    @property
    def payload(self) -> int:
        """Bytes of a flow that a cell carries: what Table I leaves beside the destination bits and the source."""
        header = -(-(self.ports + timing.log2_up(self.ports)) // 8) if self.header is None else self.header
        return self.cell - header

    @property
    def queue_depth(self) -> int:
        """Cells in a virtual output queue (Table III)."""
        return self.depth or (16 if self.buffers == "gcq" else 64)

    @property
    def phases(self) -> Fraction:
        """Times per slot that cells cross the fabric."""
        if self.buffers == "cioq":
            return 2 - Fraction(1, self.ports) if self.speedup is None else Fraction(str(self.speedup))
        if self.buffers == "gcq":
            return Fraction(self.group if self.speedup is None else int(self.speedup))
        return Fraction(1)

    @property
    def clock(self) -> int:
        """Clock period in ps, of the slow clock where there are two."""
        return self.cycle or timing.measured_cycle(self.buffers, self.ports, self.cell * 8) or timing.DESIGN_CYCLE

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What a cell that waits for nobody goes through."""
        t = self.clock
        if self.buffers == "gcq":
            fast = t // int(self.phases)
            registers = self.ports // self.group if self.pipeline is None else self.pipeline
            return (
                Stage("written with the slow clock", 1, t),
                Stage("into the fast clock", self.crossing, fast),
                Stage("memory of the sub-switch", self.memory_cycles, fast),
                Stage("registers along the row", registers, fast),  # the printed eq. (7) counts them in slow cycles
                Stage("written with the fast clock", 1, fast),
                Stage("into the slow clock", self.crossing, t),
            )
        iterative = self.algorithm not in ("wavefront", "mwm", "msm", "eslip", "none", "rr", "ccf", "lihp")
        return (
            Stage("memory of the input", self.memory_cycles if self.buffers == "shared" else 1, t),
            Stage("scheduler", self.iterations if iterative else 1, t),
        )

    @property
    def crossings(self) -> tuple[int, int]:
        """Fast cycles until the fast side sees a cell, and until the slow side sees it again."""
        fast = int(self.phases)
        return fast + self.crossing, 1 + self.crossing * fast

    @property
    def unloaded(self) -> int:
        """Latency in ps of a cell that waits for nobody."""
        return sum(stage.time for stage in self.stages)

    @property
    def least_delay(self) -> int:
        """Slots that the simulator counts for such a cell."""
        if self.buffers in ("cicq", "hierarchical"):
            return 1
        if self.buffers == "gcq":
            return min(
                self._crossing_delay(slot, into, out)
                for slot in range(self.group)
                for into in range(self.group)
                for out in range(self.group)
            )
        return 0

    def _crossing_delay(self, slot, into, out):
        """Slots that an unhindered cell takes from port `into` to port `out` of a sub-switch, if it comes in `slot`."""
        fast, inside = int(self.phases), self.stages[2].cycles + self.stages[3].cycles
        ready = slot * fast + self.crossings[0]
        written = ready + (into - ready) % self.group
        ready = written + max(inside, 1 if out <= into else 0)  # a memory is read before it is written
        read = ready + (out - ready) % self.group
        seen = -(-(read + self.crossings[1]) // fast)
        return max(seen, read // fast + 1) - slot  # outputs take what was there when the slot began

    def ideal(self, flows) -> np.ndarray:
        """(f,) int64 ps: no flow can be faster than its cells one after another through an empty switch."""
        return -(-flows.size // self._payload()) * self.slot + self.unloaded

    def _payload(self):
        least = self.cell - self.payload + 1
        require(self.payload >= 1, "cell", f"at least {least} bytes for flows through {self.ports} ports", self.cell)
        return self.payload

    # a run

    def prepare(self, flows, *, seed: int = 0):
        """The arrays of a run before its first slot. `flows`: a flow table, or `Cells` drawn by a traffic."""
        from weft.fabrics.crossbar import layout

        return layout.state(self, flows, seed)

    def memory(self, flows) -> int:
        """Bytes that `prepare` would reserve."""
        from weft.fabrics.crossbar import layout

        return layout.size(self, flows)

    def freeze(self, state) -> dict[str, np.ndarray]:
        """A run under way as arrays."""
        from weft.fabrics.crossbar import layout

        return layout.freeze(state)

    def thaw(self, flows, arrays, *, seed: int = 0):
        """The run from such arrays."""
        from weft.fabrics.crossbar import layout

        return layout.thaw(self, flows, arrays, seed)

    def advance(self, state, until: int | None = None, watch=None) -> None:
        """Run until `until` ps, or until the traffic or the flows end; call `watch(state)` every few milliseconds."""
        from weft.fabrics.crossbar import kernel
        from weft.fabrics.crossbar.state import Kind, Plan

        end = LONGEST if state.plan[Plan.KIND] == Kind.FLOWS else int(state.plan[Plan.SLOTS])
        if until is not None:
            end = min(end, until // self.slot)
        run = kernel.staged if self.buffers not in MATCHED else kernel.matched
        run = kernel.emulated if self.algorithm in EMULATING else run
        run = kernel.sprint if self._sprints(state) else run
        run(state, int(state.clock[0]))  # compiles, or loads what was compiled: not to be timed
        stride = 4096 if run is kernel.sprint else 64
        while state.clock[0] < end:
            stop = min(int(state.clock[0]) + stride, end)
            began = perf_counter()
            run(state, stop)
            took = perf_counter() - began
            state.spent[0] += took
            self._check(state)
            if watch is not None:
                watch(state)
            if state.clock[0] < stop:
                break  # every flow has been delivered
            if took < STRIDE / 2:
                stride *= 2
            elif took > 2 * STRIDE:
                stride = max(stride // 2, 1)

    def _sprints(self, state):
        from weft.fabrics.crossbar.state import Kind, Plan

        return (
            self.buffers == "voq" and self.algorithm == "islip" and self.iterations == 1 and self.ports <= 64
            and state.plan[Plan.KIND] == Kind.UNIFORM and not state.plan[Plan.FLOW_CONTROL]
            and len(state.cells) < 1 << 24 and self.queue_depth < 1 << 16  # a queue is one word there
        )  # fmt: skip

    def _check(self, state):
        for law, broken in self.monitors(state).items():
            if broken:
                raise MonitorTripped(f"{law} must hold in every slot, not fail {broken} times by slot {state.clock[0]}")

    def monitors(self, state) -> dict[str, int]:
        """How often each law of a switch was broken."""
        from weft.fabrics.crossbar import layout
        from weft.fabrics.crossbar.state import Count

        c = state.count
        kept = c[Count.OFFERED] - c[Count.LOST] - c[Count.LATE] - c[Count.DELIVERED]
        return {
            "a port takes and sends one cell per slot": int(c[Count.CLASHES]),
            "cells offered are delivered, lost or inside": int(abs(kept - layout.inside(self, state))),
        }

    def observe(self, state, flows) -> Observation:
        """What was seen so far."""
        from weft.engine.fingerprint import show
        from weft.fabrics.crossbar.state import Count, Kind, Level, Plan

        c, slots, n = state.count, int(state.clock[0]), self.ports
        warmup = int(state.plan[Plan.WARMUP])
        measured = max(slots - warmup, 0)
        with_flows = state.plan[Plan.KIND] == Kind.FLOWS
        rounds = np.flatnonzero(state.rounds)
        busy = state.rounds[1:]
        carried = int(c[Count.MEASURED]) / (n * measured) if measured else None
        sections = {
            "cell_throughput" if with_flows else "throughput": carried,  # with flows, throughput is in their bytes
            "throughput_per_output": _spread(state.per_output / measured) if measured else None,
            "delay_slots": _delays(state),
            "latency_ns": self._latency(state),
            "queue_cells": {"max": int(state.level[Level.PEAK])},
            "memory_cells": {"max": int(c[Count.MEMORY])} if self.buffers in ("shared", "gcq") else None,
            "lost": int(c[Count.LOST] + c[Count.LATE]),
            "lost_on_line": int(c[Count.LATE]),
            "cells": {"offered": int(c[Count.OFFERED]), "delivered": int(c[Count.DELIVERED])},
            "scheduler": {
                "name": self.algorithm,
                "iterations_mean": float(busy @ np.arange(1, len(busy) + 1) / busy.sum()) if busy.any() else None,
                "iterations_max": int(rounds[-1]) if len(rounds) else None,
            },
        }
        if self.algorithm in EMULATING:
            sections["later_than_output_queued"] = int(c[Count.LATEST])
        rows = state.samples[: -(-slots // int(state.plan[Plan.PERIOD]))]
        rows = rows[:1] if not slots else rows[(rows[:, 0] > 0) | (np.arange(len(rows)) == 0)]
        finish = np.empty(0, np.int64)
        received = np.empty(0, np.int64)
        if with_flows:
            done = state.flow_finish >= 0
            finish = np.where(done, (state.flow_finish + 1) * self.slot + self.unloaded, -1)
            all_cells = -(-flows.size // self.payload)
            received = np.minimum((all_cells - state.flow_due) * self.payload, flows.size)
        return Observation(
            finish=finish,
            received=received,
            now=slots * self.slot + (self.unloaded if with_flows else 0),
            sections=sections,
            monitors=self.monitors(state),
            fingerprint=show(state.print),
            samples={
                "time_ps": rows[:, 0] * self.slot,
                "cells_inside": rows[:, 1],
                "delivered": rows[:, 2],
                "lost": rows[:, 3],
            },
            work={"slots": slots, "node_slots": slots * n, "seconds": float(state.spent[0])},
            notes=tuple(self._notes(state)),
        )

    def _latency(self, state):
        """Nanoseconds from port to port: the stages, and the slots that cells waited."""
        waited = _mean_delay(state)
        return {
            "stages": {stage.name: stage.time_ns for stage in self.stages},
            "unloaded": self.unloaded / ns,
            "mean": None if waited is None else (self.unloaded + max(waited - self.least_delay, 0) * self.slot) / ns,
            **timing.formula(self.buffers, self.ports, self.group, self.clock),
        }

    def _notes(self, state):
        if self.buffers not in MATCHED and self.scheduler not in (None, "rr"):
            yield f"{self.buffers} buffers need no matching: the scheduler {self.scheduler} is not used"
        scheduling = next((stage for stage in self.stages if stage.name == "scheduler"), None)
        if scheduling is not None and scheduling.time > self.slot:
            yield (
                f"the scheduler takes {show_time(scheduling.time)} for a slot of {show_time(self.slot)}: "
                "at this clock it keeps up with the line only if matchings overlap"
            )
        if state.delay[-1]:
            yield (
                f"{int(state.delay[-1])} cells waited {len(state.delay) - 1} slots or longer: "
                "percentiles that high are lower bounds"
            )


def _spread(values):
    return {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}


def _mean_delay(state):
    """Slots that cells waited on average, or None if none was delivered."""
    from weft.fabrics.crossbar.state import Count

    cells = int(state.delay.sum())
    within = int((state.delay[:-1] * np.arange(len(state.delay) - 1)).sum())
    return (within + int(state.count[Count.BEYOND])) / cells if cells else None


def _delays(state):
    from weft.fabrics.crossbar.state import Count

    reached = np.cumsum(state.delay)
    cells = int(reached[-1])
    if not cells:
        return {"mean": None, "p50": None, "p99": None, "p99.9": None, "max": None}

    def rank(parts):  # nearest rank: the smallest delay that `parts` in a thousand did not exceed
        return int(np.searchsorted(reached, -(-cells * parts // 1000)))

    longest = int(state.count[Count.LONGEST]) if state.delay[-1] else int(np.flatnonzero(state.delay)[-1])
    return {"mean": _mean_delay(state), "p50": rank(500), "p99": rank(990), "p99.9": rank(999), "max": longest}
