"""From slots to nanoseconds: the stages a cell goes through, each with its clock, and the paper's measured clocks.

The simulator counts slots; a slot is the time a cell takes on the line. Inside the switch a cell passes stages that are
counted in cycles of a clock, and waits in between. What a cell needs without waiting is the sum of its stages.
"""

from typing import NamedTuple

from weft.units import s

KILOHERTZ = {  # Table V: (buffers, ports, bits of a cell) -> kHz at which the design closed timing; gcq: the slow clock
    ("shared", 8, 256): 228_680, ("shared", 8, 640): 206_310, ("shared", 8, 1280): 206_650,
    ("shared", 16, 256): 201_490, ("shared", 16, 640): 192_530, ("shared", 16, 1280): 183_790,
    ("shared", 32, 256): 135_650, ("shared", 32, 640): 109_890, ("shared", 32, 1280): 56_727,
    ("shared", 64, 256): 52_460,
    ("gcq", 8, 256): 55_490, ("gcq", 8, 640): 54_140, ("gcq", 8, 1280): 48_310,
    ("gcq", 16, 256): 54_290, ("gcq", 16, 640): 52_690, ("gcq", 16, 1280): 43_670,
    ("gcq", 32, 256): 51_280, ("gcq", 32, 640): 50_640, ("gcq", 32, 1280): 46_420,
    ("gcq", 64, 256): 49_290, ("gcq", 64, 640): 48_560,
}  # fmt: skip
DESIGN = 25_000  # ps: Table II, 40 MHz, for every other design


def measured_cycle(buffers: str, ports: int, bits: int) -> int | None:
    """Clock period in ps that the paper reached for this design (Table V), or None."""
    kilohertz = KILOHERTZ.get((buffers, ports, bits))
    return None if kilohertz is None else round(s / (kilohertz * 1000))


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


def eq6(cycle: int, ports: int, memory_cycles: int = 3) -> int:
    """Latency of SMiSLIP in ps, eq. (6): T C_MBS + T log2 N."""
    return cycle * (memory_cycles + log2_up(ports))


def eq7(slow: int, ports: int, *, group=4, write=2, read=2, memory_cycles=3, pipeline=None, fast_pipeline=False) -> int:
    """Latency of GCQ in ps, eq. (7): T_s C_wr + T_s C_rd + T_f C_MBS + T_s C_p, or T_f C_p with `fast_pipeline`."""
    fast = slow // group
    pipeline = ports // group if pipeline is None else pipeline
    return slow * (write + read) + fast * memory_cycles + (fast if fast_pipeline else slow) * pipeline
