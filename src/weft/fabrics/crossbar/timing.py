"""From slots to nanoseconds: the stages a cell goes through, each with its clock.

The simulator counts slots; a slot is the time a cell takes on the line. Inside the switch a cell passes stages that are
counted in cycles of a clock, and waits in between. What a cell needs without waiting is the sum of its stages. The
clocks that the paper's switches reached, and its formulas, are in `weft.prototypes.fpga`.
"""

from functools import cache
from typing import NamedTuple

from weft.prototypes import fpga
from weft.units import ns, s

DESIGNS = {"voq": "islip", "shared": "smislip", "gcq": "gcq"}  # what the paper calls them
MEMORY_CYCLES = fpga.MEMORY_CYCLES
CROSSING = 4  # not printed; FIFOs of this vendor with two clocks: 1 writing cycle + (2 synchronisers + 2) reading ones
DESIGN_CYCLE = s // fpga.TARGET


@cache
def measured_cycle(buffers: str, ports: int, bits: int) -> int | None:
    """Clock period in ps that the paper reached for this design (Table V), or None."""
    if buffers not in DESIGNS:
        return None
    clock = fpga.clock(DESIGNS[buffers], ports, bits)
    return None if clock is None else round(s / clock)


def formula(buffers: str, ports: int, group: int, cycle: int) -> dict[str, float]:
    """Latency in ns by the paper's equation for this design, if there is one; eq. (7) with both readings of C_p."""
    period = 1e9 / (s / cycle)  # ns
    if buffers == "shared":
        return {"eq6": float(fpga.shared_memory_latency(ports, period))}
    if buffers == "gcq":
        printed, fast = (float(fpga.grouped_latency(ports, period, group, way)) for way in ("slow", "fast"))
        return {"eq7": printed, "eq7_fast_pipeline": fast}
    return {}


def gates(switch) -> dict:
    """Which of the paper's designs a Crossbar is, with its sizes in the paper's words; `why` it is none, where so."""
    design = DESIGNS.get(switch.buffers)
    if design is None:
        return {
            "design": None,
            "why": f"the paper has equations for {', '.join(DESIGNS)} buffers, not {switch.buffers}",
        }
    sizes = {"ports": switch.ports, "rate": switch.link, "width": switch.cell * 8, "depth": switch.queue_depth}
    if design != "gcq":
        return {"design": design, **sizes}
    if switch.output != switch.inner:
        deep = f"{switch.output} and {switch.inner} cells"
        return {"design": None, "why": f"eq. (5) has output buffers as deep as the memory of a sub-switch, not {deep}"}
    return {
        "design": design, **sizes, "depth": switch.inner, "voq_depth": switch.queue_depth, "speedup": switch.group
    }  # fmt: skip


def log2_up(ports: int) -> int:
    """log2 of the ports, rounded up."""
    return (ports - 1).bit_length()


class Stage(NamedTuple):
    """A stage of the way through: so many cycles of a clock."""

    name: str
    cycles: int
    cycle: int  # ps

    @property
    def time(self) -> int:
        return self.cycles * self.cycle

    @property
    def time_ns(self) -> float:
        return self.time / ns
