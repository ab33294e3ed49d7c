"""The designs there are in gates, each a description with parameters: what `weft rtl` lists and works on.

A description says what the hardware needs and no more; `component()` builds it. Those that stand for a fabric also give
the `fabric()` that the models run.
"""

from dataclasses import dataclass
from typing import Literal

from weft.errors import require
from weft.fabrics.crossbar import Crossbar
from weft.units import param
from weft.workload.traffic import TRAFFIC


@dataclass(frozen=True, kw_only=True)
class IslipGates:
    """The iSLIP scheduler alone: requests in, a matching out, one iteration per clock cycle."""

    ports: int = param(16, "inputs, and as many outputs")
    iterations: int = param(1, "iterations, and cycles, of a slot")

    def __post_init__(self):
        require(2 <= self.ports <= 64, "ports", "from 2 to 64", self.ports)
        require(self.iterations >= 1, "iterations", "at least 1", self.iterations)

    def component(self):
        from weft.rtl.islip import Islip

        return Islip(self.ports, self.iterations)


@dataclass(frozen=True, kw_only=True)
class CrossbarGates:
    """A switch of cells: private queues per input and output, a shared memory per input (SMiSLIP), or grouped (GCQ)."""

    ports: int = param(16, "inputs, and as many outputs")
    buffers: Literal["voq", "shared", "gcq"] = param("voq", "where cells wait")
    iterations: int = param(1, "iterations of the scheduler, and cycles of a slot (voq, shared)")
    depth: int | None = param(None, "cells in a virtual output queue; by default 64, and 16 in gcq")
    width: int = param(256, "bits of a cell, and of the data path; a multiple of 8")
    group: int = param(4, "ports of a sub-switch (gcq)")
    speedup: int | None = param(None, "fast cycles per slow one (gcq); by default group")
    inner: int = param(64, "cells per port in the memory of a sub-switch (gcq)")
    output: int = param(64, "cells in a buffer between a sub-switch and an output (gcq)")
    crossing: int = param(4, "registers on the way to the other clock (gcq)")
    memory_cycles: int = param(3, "fast cycles through the memory of a sub-switch (gcq)")
    pipeline: int | None = param(None, "registers along a row of sub-switches (gcq); by default ports/group")

    def __post_init__(self):
        require(self.width % 8 == 0 and self.width > 0, "width", "a multiple of 8 bits", self.width)
        require(2 <= self.ports <= 64, "ports", "from 2 to 64 in gates", self.ports)
        deepest = max(self.depth or 0, self.inner, self.output)
        require(deepest <= 4096, "the deepest queue", "at most 4096 cells in gates", deepest)
        stages = max(self.crossing, self.memory_cycles, self.pipeline or 0, self.iterations)
        require(stages <= 64, "registers and iterations", "at most 64 in gates", stages)
        self.fabric()

    def fabric(self) -> Crossbar:
        """The description that the models run."""
        grouped = {} if self.buffers != "gcq" else dict(speedup=self.speedup, pipeline=self.pipeline)
        return Crossbar(
            ports=self.ports, buffers=self.buffers, iterations=self.iterations, depth=self.depth, cell=self.width // 8,
            group=self.group, inner=self.inner, output=self.output, crossing=self.crossing,
            memory_cycles=self.memory_cycles if self.buffers == "gcq" else 3, **grouped,
        )  # fmt: skip

    def component(self):
        from weft.rtl import gates

        return gates.crossbar(self.fabric())


@dataclass(frozen=True, kw_only=True)
class CrossbarDrive:
    """What goes through the switch while it is checked."""

    traffic: Literal["bernoulli", "diagonal", "log-diagonal", "hot-output", "unbalanced", "on-off", "multicast"] = (
        param("bernoulli", "what arrives")
    )
    load: float = param(0.9, "cells per input and slot")
    slots: int | None = param(None, "slots to run; 10,000 unless cycles are given")
    cycles: int | None = param(None, "clock cycles to run, instead of slots")
    twin: int | None = param(None, "slots for which the plain-Python twin runs too; 40,000 / ports unless given")

    def check(self, design: CrossbarGates, *, seed: int, vcd: str | None, engine: str | None):
        """Run and compare."""
        from weft.rtl.check_crossbar import check

        fabric = design.fabric()
        per_slot = int(fabric.phases) if design.buffers == "gcq" else fabric.iterations
        slots = self.slots or (10_000 if self.cycles is None else max(self.cycles // per_slot, 1))
        traffic = TRAFFIC[self.traffic](load=self.load, slots=slots)
        return check(fabric, traffic, seed=seed, twin=self.twin, vcd=vcd, engine=engine)


DESIGNS = {"islip": IslipGates, "crossbar": CrossbarGates}
DRIVES = {"crossbar": CrossbarDrive}
