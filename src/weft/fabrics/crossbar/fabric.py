"""Crossbar: the parameters of a switch that forwards cells from inputs to outputs, and what follows from them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from weft.errors import BadInput, require
from weft.fabrics.base import Fabric
from weft.fabrics.crossbar import timing
from weft.fabrics.crossbar.timing import Stage
from weft.units import Gbps, Rate, Size, Time, param, show_number, show_rate, show_time, wire_time
from weft.workload.demand import Demand, Planned
from weft.workload.flows import LATEST, Flows
from weft.workload.traffic import Cells

MATCHED = ("fifo", "voq", "shared", "cioq")  # buffers that need a matching
SCHEDULERS = ("islip", "rrm", "pim", "drrm", "wavefront", "lqf", "ocf", "mwm", "msm")
EMULATING = ("ccf", "lihp")
MOST_PORTS = 1024
DEEPEST = 2**40  # cells, or cycles: with a port or a cycle more it still fits a machine word


@dataclass(frozen=True, kw_only=True)
class Crossbar(Fabric):
    """A switch of `ports` inputs and outputs, one cell per port and slot (Meng and others, ASAP 2019).

    `depth` is the size of one virtual output queue. A buffer that is not divided into such queues is as large as the
    `ports` queues it stands for: the FIFO and the shared memory of an input, the queue of an output.
    """

    carries = (Flows, Cells)
    releases = True
    on_gpu = "weft.fabrics.crossbar.gpu.switches"

    ports: int = param(help="inputs, and as many outputs")
    buffers: Literal["fifo", "voq", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq", "load-balanced"] = param(
        "voq", "where cells wait: at inputs (fifo, voq, shared), also at outputs (cioq), at crosspoints (cicq), "
        "in sub-switches (hierarchical, gcq), at outputs alone (oq), or between two crossbars that turn by themselves "
        "(load-balanced)"
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
    propagation: Time = param(0, "time along the cable between a node and its port, for flows")
    cell: Size = param(32, "size of a cell on the line, header included")
    header: Size | None = param(None, "header of a cell; by default a bit per output and the number of the input")
    cycle: Time | None = param(None, "clock period; by default the one measured for this design, else 25 ns")

    def __post_init__(self):
        require(2 <= self.ports <= MOST_PORTS, "ports", f"from 2 to {MOST_PORTS}", self.ports)
        kinds = (*MATCHED, "cicq", "hierarchical", "gcq", "oq", "load-balanced")
        require(self.buffers in kinds, "buffers", f"one of {', '.join(kinds)}", self.buffers)
        require(self.iterations >= 1, "iterations", "at least 1", self.iterations)
        for name in ("depth", "crosspoint", "inner", "output", "cell", "link", "cycle"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, "at least 1", value)
        for name in ("crossing", "memory_cycles", "pipeline", "header", "propagation"):
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
        require(self.way <= LATEST, "the way through an empty switch", "at most 53 days", show_time(self.way))

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
        """The scheduler in use: the one asked for, if the buffers need a matching."""
        if self.buffers in MATCHED:
            return self.scheduler or "islip"
        return "none" if self.buffers in ("oq", "load-balanced") else "rr"

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
        """Speed-up: times per slot that cells cross the fabric."""
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
        """Pipeline stages of a cell that never waits."""
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
        if self.buffers == "load-balanced":
            return (Stage("memory of the middle port", 1, t),)
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
        """Latency in ps of a cell that never waits: the sum of the stages."""
        return sum(stage.time for stage in self.stages)

    @property
    def way(self) -> int:
        """Time from node to node of a cell that never waits: two cables, and the switch between them."""
        return self.unloaded + 2 * self.propagation

    @property
    def least_delay(self) -> int:
        """Slots of delay that the simulator counts for a cell that never waits."""
        if self.buffers in ("cicq", "hierarchical", "load-balanced"):
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

    def parts(self) -> dict[str, int]:
        """What it is made of: one switch; `gates` says what that takes of an FPGA."""
        return {f"FPGA crossbar of {self.ports} x {show_rate(self.link)}": 1}

    def gates(self) -> dict:
        """Which of the paper's designs this is, and its sizes."""
        return timing.gates(self)

    def ideal(self, flows) -> np.ndarray:
        """(f,) int64 ps: no flow can be faster than its cells one after another through an empty switch."""
        return -(-flows.size // self._payload()) * self.slot + self.way

    def _payload(self):
        least = self.cell - self.payload + 1
        require(self.payload >= 1, "cell", f"at least {least} bytes for flows through {self.ports} ports", self.cell)
        return self.payload

    @property
    def payload_rate(self) -> float:
        """Bits of payload per second on a line in every slot of which there is a cell."""
        return self.link * max(self.payload, 0) / self.cell

    # a run

    def memory(self, demand: Demand) -> int:
        """Bytes that `prepare` would reserve; before flows are drawn, nothing is known of their cells."""
        from weft.fabrics.crossbar import layout

        return 0 if isinstance(demand, Planned) else layout.size(self, demand)

    def prepare(self, demand: Demand, *, seed: int = 0):
        """A run before its first slot."""
        from weft.fabrics.crossbar.run import CrossbarRun

        return CrossbarRun(self, demand, seed)

    def queues(self):
        """Inputs, or middle ports, with all their queues, and what lies behind them for each output."""
        from weft.fabrics.crossbar import layout

        return layout.places(self)

    def lines(self):
        """Every output, which sends a cell in a slot or none."""
        return [f"output {j}" for j in range(self.nodes)]

    def follow(self, demand, f, *, seed, until):
        """Steps of flow f, cell by cell, from the twin."""
        from weft.fabrics.crossbar.follow import follow

        return follow(self, demand, f, seed=seed, until=until)

    @staticmethod
    def facts(summary):
        """Lines of a run's table: how long cells waited, and how many iterations the scheduler took."""
        delay, scheduler = summary["delay_slots"], summary["scheduler"]
        if delay["mean"] is not None:
            mean, p99, longest = (show_number(delay[key]) for key in ("mean", "p99", "max"))
            yield "delay", f"{mean} slots mean, {p99} p99, {longest} at most"
        latency = summary["latency_ns"]
        if latency["mean"] is not None:
            yield "latency", f"{show_number(latency['mean'])} ns mean, {show_number(latency['unloaded'])} unloaded"
        if summary["memory_cells"] is not None:
            yield "memory", f"{show_number(summary['memory_cells']['max'])} cells in the fullest at most"
        if "out_of_order" in summary:
            yield "order", f"{show_number(summary['out_of_order'])} cells left after one that came later"
        if scheduler["iterations_mean"] is not None:
            mean, most = show_number(scheduler["iterations_mean"]), show_number(scheduler["iterations_max"])
            yield "scheduler", f"{scheduler['name']}, {mean} iterations to a matching, {most} at most"
