"""The designs there are in gates, each a description with parameters: what `weft rtl` lists and works on.

A description says what the hardware needs and no more; `component()` builds it. Those that stand for a fabric also give
the `fabric()` that the models run.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from weft.errors import require
from weft.fabrics.crossbar import Crossbar
from weft.fabrics.merchant.groomer import Frames, Groomer
from weft.parameters import like
from weft.units import Rate, Size, Time, param
from weft.workload.traffic import TRAFFIC

MOST = 10**9  # cycles or slots of a check


@dataclass(frozen=True, kw_only=True)
class IslipGates:
    """The iSLIP scheduler alone: requests in, a matching out, one iteration per clock cycle."""

    ports: int = param(16, "inputs, and as many outputs")
    iterations: int = param(1, "iterations, and cycles, of a slot")

    def __post_init__(self):
        require(2 <= self.ports <= 64, "ports", "from 2 to 64", self.ports)
        require(self.iterations >= 1, "iterations", "at least 1", self.iterations)

    def component(self):
        from weft.rtl import tools

        tools.amaranth()
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
    lines: bool = param(False, "ports are lines that carry a cell in a word per cycle of a slot, fast cycles in gcq")
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
        grouped: dict[str, Any] = {} if self.buffers != "gcq" else dict(speedup=self.speedup, pipeline=self.pipeline)
        return Crossbar(
            ports=self.ports, buffers=self.buffers, iterations=self.iterations, depth=self.depth, cell=self.width // 8,
            group=self.group, inner=self.inner, output=self.output, crossing=self.crossing,
            memory_cycles=self.memory_cycles if self.buffers == "gcq" else 3, **grouped,
        )  # fmt: skip

    def component(self):
        from weft.rtl import gates

        return gates.crossbar(self.fabric(), self.lines)


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

    def __post_init__(self):
        _check_length(self)

    def check(self, design: CrossbarGates, *, seed: int, vcd: str | None, engine: str | None):
        """Run and compare."""
        fabric = design.fabric()
        per_slot = int(fabric.phases) if design.buffers == "gcq" else fabric.iterations
        slots = self.slots or (10_000 if self.cycles is None else max(self.cycles // per_slot, 1))
        traffic = TRAFFIC[self.traffic](load=self.load, slots=slots)
        made = design.component()
        from weft.rtl.check_crossbar import check

        return check(fabric, traffic, seed=seed, twin=self.twin, vcd=vcd, engine=engine, design=made)


@dataclass(frozen=True, kw_only=True)
class HeaderGates:
    """Shoal's header: fields and the remainder of the payload in, its bits with their checksum out; without a clock."""

    cell: Size = param(64, "bytes of a cell, header included")
    feedback: int = param(1, "values of feedback: 1, as in Fig. 5, or 2 in a wider header")
    news: int = param(0, "nodes of which the header says whether they are reached")

    def component(self):
        from weft.rtl import tools

        tools.amaranth()
        from weft.rtl.shoal_header import HeaderEncoder

        return HeaderEncoder(self.cell, self.feedback, self.news)


@dataclass(frozen=True, kw_only=True)
class SwitchGates:
    """A circuit switch of a Shoal rack, which follows its table: a multiplexer and a selector register per output."""

    nodes: int = param(8, "nodes of the rack")
    ports: int = param(4, "ports of a switch")
    switch: str = param("leaf0", "which switch of the rack")
    delay: int = param(0, "slots a cell travels beyond the one it is sent in")
    schedule: Literal["auto", "rotation", "mirrored"] = param("auto", "order in which nodes face each other")
    slot_cycles: int = param(12, "cycles of a slot")
    table: str | None = param(None, "a file that `weft schedule shoal --json` has written, instead of the schedule")

    def __post_init__(self):
        require(self.slot_cycles >= 1, "slot_cycles", "at least 1", self.slot_cycles)
        require(self.nodes <= 1024, "nodes", "at most 1024", self.nodes)

    def selectors(self):
        """(slots, ports): the input that each output listens to, or -1."""
        if self.table is not None:
            return read_table(self.table, self.switch)
        from weft.schedule.decompose import decompose
        from weft.schedule.rotation import rounds
        from weft.topology.circuit import CircuitClos

        clos = CircuitClos(nodes=self.nodes, ports=self.ports)
        clos.locate(self.switch)
        return decompose(clos, rounds(self.nodes, 1, self.delay, self.schedule)).selectors(self.switch)

    def component(self):
        from weft.rtl import tools

        tools.amaranth()
        from weft.rtl.shoal_switch import CircuitSwitch

        return CircuitSwitch(self.selectors(), slot_cycles=self.slot_cycles, name=self.switch)


def read_table(path: str, switch: str) -> list[list[int]]:
    """The selectors of a switch in a file of schedules: the inverse of its outputs, which must not clash."""
    from weft import reading
    from weft.errors import BadInput, ScheduleConflict

    try:
        tables = {str(one["name"]): one["slots"] for one in reading.json_object(path)["switches"]}
        good = all(isinstance(slots, list) and all(isinstance(row, list) for row in slots) for slots in tables.values())
    except (BadInput, KeyError, TypeError):
        good = False
    if not good:
        raise BadInput(f"table must be a file that `weft schedule shoal --json` has written, not {path!r}")
    require(switch in tables, "switch", f"one of {', '.join(tables)}", switch)
    picks = []
    for t, outputs in enumerate(tables[switch]):
        row = [-1] * len(outputs)
        for port, out in enumerate(outputs):
            if out is None:
                continue
            require(isinstance(out, int) and 0 <= out < len(row), f"slot {t} of {switch}", "a list of its ports", out)
            if row[out] >= 0:
                raise ScheduleConflict(
                    f"port {out} of {switch} must carry one circuit in slot {t}, "
                    f"not those of ports {row[out]} and {port}"
                )
            row[out] = port
        picks.append(row)
    return picks


@dataclass(frozen=True, kw_only=True)
class NicGates:
    """Shoal's network interface: per-peer queues, release rule, feedback, empty cells; words of 64 bits."""

    nodes: int = param(8, "nodes of the rack")
    delay: int = param(1, "slots a cell travels beyond the one it is sent in")
    seats: int | None = param(None, "pairs that a node can have under way; as many as nodes unless given")
    cell: Size = param(64, "bytes of a cell, header included; a multiple of 8")
    slot_cycles: int | None = param(None, "cycles of a slot; 4 and one per word unless given")
    latency: int | None = param(None, "cycles from node to node; as many as the delay allows unless given")
    schedule: Literal["auto", "rotation", "mirrored"] = param("auto", "order in which nodes face each other")
    age_interval: int | None = param(None, "slots in which a flow ages by one; an epoch unless given, 0 is off")
    channels: int = param(1, "channels of a link, each with a plane of switches")
    feedback: int = param(2, "values of feedback in a header: 2, as the model's, or 1, as in Fig. 5")
    failures: bool = param(False, "what §3.5 says of failures: silence, news of it, what is discarded and repeated")

    def __post_init__(self):
        require(2 <= self.nodes <= 1024, "nodes", "from 2 to 1024", self.nodes)
        require(0 <= self.delay <= 1024, "delay", "from 0 to 1024 slots", self.delay)
        require(
            self.cell % 8 == 0 and 16 <= self.cell <= 4096, "cell", "a multiple of 8 bytes from 16 to 4096", self.cell
        )
        require(self.seats is None or 1 <= self.seats <= 1024, "seats", "from 1 to 1024", self.seats)
        require(self.age_interval is None or self.age_interval >= 0, "age_interval", "zero or more", self.age_interval)
        require(self.slot_cycles is None or self.slot_cycles >= 1, "slot_cycles", "at least 1", self.slot_cycles)
        most = min(self.nodes - 1, 8)
        require(1 <= self.channels <= most, "channels", f"from 1 to {most} in gates", self.channels)
        require(1 <= self.feedback <= 2, "feedback", "1 or 2 values in gates", self.feedback)

    def _options(self) -> dict:
        from weft.rtl import tools

        tools.amaranth()
        from weft.rtl.shoal_rack import default_cycles, default_latency

        words, c = self.cell // 8, self.channels
        cycles = self.slot_cycles or default_cycles(self.delay, words, c)
        latency = default_latency(self.delay, cycles, words, c) if self.latency is None else self.latency
        return dict(
            nodes=self.nodes, channels=c, delay=self.delay, slot_cycles=cycles, latency=latency, words=words,
            age_interval=-1 if self.age_interval is None else self.age_interval, schedule=self.schedule,
            values=self.feedback, failures=self.failures,
        )  # fmt: skip

    def component(self):
        options = self._options()
        from weft.rtl.shoal_nic import Nic

        return Nic(**options, seats=self.seats or self.nodes)


@dataclass(frozen=True, kw_only=True)
class ShoalGates(NicGates):
    """A Shoal rack: NICs with hosts that make up payload, the circuit switches of its Clos, links with delay."""

    ports: int = param(4, "ports of a circuit switch")
    delay: int = param(0, "slots a cell travels beyond the one it is sent in")
    seats: int | None = param(None, "pairs that a node can have under way; 2 for each node unless given")

    def __post_init__(self):
        super().__post_init__()
        require(self.nodes <= 64, "nodes", "at most 64 for a whole rack", self.nodes)

    def component(self):
        from weft.rtl import gates

        return gates.rack(**self._options(), ports=self.ports, seats=self.seats or 2 * self.nodes)


@dataclass(frozen=True, kw_only=True)
class ShoalDrive:
    """What the hosts send while the rack is checked: flows between nodes at random."""

    load: float = param(0.7, "cells that a node is given to send, per slot")
    cells: float = param(30.0, "mean cells of a flow; sizes are geometric")
    cycles: int | None = param(None, "clock cycles to run; 100,000 unless slots are given")
    slots: int | None = param(None, "slots to run, instead of cycles")
    fail: str | None = param(None, "what fails and when, as in 'spine 1 at 20us'; slots are cycles of 6.4 ns")

    def __post_init__(self):
        _check_length(self)
        require(0 < self.load <= 16, "load", "above 0 and at most 16", self.load)
        require(1 <= self.cells <= 1e6, "cells", "from 1 to 1,000,000", self.cells)

    def flows(self, nodes: int, slots: int, seed: int) -> list[tuple[int, int, int, int]]:
        """(source, destination, cells, first slot) of every flow, in order of start."""
        import numpy as np

        rng = np.random.Generator(np.random.PCG64(seed))
        count = int(rng.poisson(self.load * nodes * slots / self.cells))
        start = np.sort(rng.integers(0, slots, count))
        src = rng.integers(0, nodes, count)
        dst = (src + rng.integers(1, nodes, count)) % nodes
        return list(
            zip(src.tolist(), dst.tolist(), rng.geometric(1 / self.cells, count).tolist(), start.tolist(), strict=True)
        )

    def check(self, design: ShoalGates, *, seed: int, vcd: str | None, engine: str | None):
        """Run and compare."""
        if self.fail is not None:
            design = replace(design, failures=True)
        rack = design.component()
        from weft.rtl.check_shoal import check
        from weft.rtl.fail_shoal import Broken

        slots = self.slots or max((self.cycles or 100_000) // rack.slot_cycles, 1)
        broken = None if self.fail is None else Broken.plan(rack, self.fail, seed)
        return check(rack, self.flows(rack.nodes, slots, seed), slots, vcd=vcd, engine=engine, broken=broken)


@dataclass(frozen=True, kw_only=True)
class EepGates:
    """The groomer: ports onto one faster link and back, segment by segment (EEP) or storing whole frames (802.1ad)."""

    protocol: Literal["eep", "802.1ad"] = like(Groomer, "protocol")
    ports: int = like(Groomer, "ports")
    link: Rate = like(Groomer, "link")
    trunk: Rate = like(Groomer, "trunk")
    overclock: float | None = like(Groomer, "overclock")
    playout: Time | None = like(Groomer, "playout")
    buffer: Size | None = param(
        None, "bytes that a port holds before and after the fast link; 256, and 16384 in 802.1ad, unless given"
    )

    def __post_init__(self):
        require(self.ports <= 16, "ports", "at most 16 in gates", self.ports)
        size = self.bytes
        require(
            128 <= size <= 65_536 and size & (size - 1) == 0, "buffer", "a power of two from 128 to 65536 bytes", size
        )
        self.fabric()

    @property
    def bytes(self) -> int:
        """Bytes of a buffer."""
        return self.buffer or (256 if self.protocol == "eep" else 16_384)

    def fabric(self) -> Groomer:
        """The description that the model runs."""
        return Groomer(
            protocol=self.protocol, ports=self.ports, link=self.link, trunk=self.trunk, overclock=self.overclock,
            playout=self.playout,
        )  # fmt: skip

    def component(self):
        from weft.rtl import gates

        return gates.groomer(self.fabric(), self.bytes)


@dataclass(frozen=True, kw_only=True)
class EepDrive:
    """The frames that go into every port while the groomer is checked."""

    frame: str = param("64x7,594x4,1518", "bytes of a frame, FCS included; or a mix")
    load: float = param(1.0, "share of a port's time that its frames take, preamble and gap included")
    frames: int = param(100, "frames into each port")

    def __post_init__(self):
        self.drawn()

    def drawn(self) -> Frames:
        """What the model takes."""
        return Frames(frame=self.frame, load=self.load, frames=self.frames)

    def check(self, design: EepGates, *, seed: int, vcd: str | None, engine: str | None):
        """Run and compare."""
        from weft.rtl import tools

        tools.amaranth()
        from weft.rtl.check_eep import check

        return check(design.fabric(), self.drawn(), buffer=design.bytes, seed=seed, vcd=vcd, engine=engine)


def _check_length(drive):
    for name in ("slots", "cycles"):
        value = getattr(drive, name)
        require(value is None or 1 <= value <= MOST, name, f"from 1 to {MOST:,}", value)


DESIGNS = {
    "islip": IslipGates, "crossbar": CrossbarGates, "shoal-header": HeaderGates, "shoal-switch": SwitchGates,
    "shoal-nic": NicGates, "shoal": ShoalGates, "eep": EepGates,
}  # fmt: skip
DRIVES = {"crossbar": CrossbarDrive, "shoal": ShoalDrive, "eep": EepDrive}
PROVED = ("islip", "crossbar", "shoal-switch", "shoal", "eep")
