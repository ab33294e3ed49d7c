"""Gates and models side by side: what a comparison found, and the first thing in which they differ."""

from dataclasses import asdict, dataclass, field
from time import process_time

import numpy as np

AROUND = 64  # cycles of the waveform before a difference


@dataclass(frozen=True)
class Difference:
    """The first difference: when, where, and what each side says."""

    cycle: int
    slot: int
    signal: str
    gates: str
    model: str
    against: str  # "kernel" or "reference"


@dataclass
class Report:
    """What `weft rtl check` prints."""

    design: str
    cycles: int = 0
    slots: int = 0
    cells: int = 0
    agree: bool = True
    first_difference: Difference | None = None
    cycles_per_s: float = 0.0  # of processor time, the build left out
    build_s: float = 0.0
    engine: str = ""
    compared_with: dict = field(default_factory=dict)  # side -> slots compared
    vcd: str | None = None
    note: str | None = None  # what a reader of the verdict must know
    units: tuple[str, str] = ("slot", "cell")  # what `slots` and `cells` count

    def data(self) -> dict:
        """The same as plain data."""
        return {name: value for name, value in asdict(self).items() if name != "units"}

    def differs(self, difference: Difference | None) -> None:
        """Note a difference, if it comes before what is known."""
        if difference is None:
            return
        if self.first_difference is None or difference.cycle < self.first_difference.cycle:
            self.first_difference = difference
        self.agree = False


def run_timed(simulation, rows, every: int, window=None):
    """Run the rows. Returns the outputs, and (build s, processor s of the run, cycles, engine).

    With a `window` (cycles) only so far as it goes, for its waveform; the outputs are then None.
    """
    if window is not None:
        rows = rows[: -(-window[1] // every)]
    began = process_time()
    out = simulation.run(rows, every)
    times = simulation.build_s, process_time() - began, simulation.cycles, simulation.engine
    return (None if window is not None else out), times


def around(report: Report) -> tuple[int, int]:
    """The cycles around the first difference, or around the end if there is none."""
    at = report.first_difference.cycle if report.first_difference else report.cycles
    return max(at - AROUND, 0), at + AROUND


def first_unequal(gates: dict, model: dict, *, against: str, cycle_of, show=None) -> Difference | None:
    """The first row in which any of the named columns differ.

    gates, model: signal -> (rows, ports) arrays of the same shape; `cycle_of(row)` is the clock cycle of a row and
    `show(signal, value)` puts a value into words.
    """
    found = None
    for signal, expected in model.items():
        for row, port in np.argwhere(gates[signal] != expected)[:1]:
            if found is None or row < found[0]:
                found = int(row), signal, int(port)
    if found is None:
        return None
    row, signal, port = found
    say = show or (lambda _, value: str(int(value)))
    return Difference(
        cycle=int(cycle_of(row)), slot=row, signal=f"{signal}[{port}]", gates=say(signal, gates[signal][row, port]),
        model=say(signal, model[signal][row, port]), against=against,
    )  # fmt: skip
