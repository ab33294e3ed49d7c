"""A crossbar in gates and the FPGAs that it fits, as `weft cost fpga` tells it."""

from dataclasses import dataclass

from weft.models import fpga as model
from weft.models.limits import within
from weft.models.parts import Catalogue
from weft.models.reports.answer import Answer, Prices
from weft.models.tables import columns, listed
from weft.units import param, show_rate


@dataclass(frozen=True, kw_only=True)
class Fpga(model.Design):
    """Memory and latency of a crossbar in gates, and the FPGAs that it fits."""

    clock: float | None = param(None, "clock in MHz; the highest of Table V where it was built, 40 otherwise")

    def __post_init__(self):
        super().__post_init__()
        if self.clock is not None:
            within("clock", self.clock, 0.001, 1_000_000, " MHz")

    def answer(self, prices: Prices) -> Answer:
        """Memory, latency and devices, or a printed table."""
        catalogue = prices.shelf(model.CATALOGUE)
        if table := prices.printed(model, "fpga", catalogue):
            return table
        hertz, origin = self._clock()
        latency = self.latency_ns(hertz)
        found = resources(self, catalogue)
        data = {
            "paper": "fpga",
            "design": self.design,
            "ports": self.ports,
            "rate_bps": self.rate,
            "width": self.width,
            "memory_bits": found["memory_bits"],
            "memory": found["memory"],
            "latency_ns": latency,
            "clock_hz": hertz,
            "clock": origin,
            "bandwidth_bps": self.bandwidth,
            "fits": found["fits"],
            "most_ports": {
                name: model.most_ports(self.design, self.rate, one) for name, one in catalogue.parts.items()
            },
            "implemented": found["implemented"],
            "notes": found["notes"],
        }
        prices.draw("fpga", rate=self.rate, catalogue=catalogue)
        rows = [
            *memory_rows(found),
            ("latency", None if latency is None else f"{latency:.1f} ns at {hertz / 1e6:g} MHz ({origin})"),
            ("bandwidth", show_rate(self.bandwidth)),
            ("on the XCVU9P (Table IV)", found["implemented"]),
        ]
        lines = [
            (
                name,
                f"{model.memory_of(one) / 1e6:.1f}",
                "yes" if data["fits"][name] else "no",
                str(data["most_ports"][name]),
            )
            for name, one in catalogue.parts.items()
        ]
        text = listed(f"{self.design}, {self.ports} ports of {show_rate(self.rate)}, {self.width} bit", rows)
        devices = columns(("device", "Mb", "fits", "most ports"), lines, right=(1, 3))
        return Answer(data=data, text="\n".join([text, "", devices, "", *found["notes"]]))

    def _clock(self) -> tuple[float, str]:
        if self.clock:
            return self.clock * 1e6, "given"
        if self.measured_clock is not None:
            return self.measured_clock, "highest of Table V"
        return model.TARGET, "target of Table II"


def resources(design: model.Design, catalogue: Catalogue) -> dict:
    """Memory of a design, and the devices that hold it."""
    notes = ["fits: by memory, with the margins of section V-C; timing and congestion are not modelled"]
    if design.design != "islip":
        factor = design.design == "gcq" and design.fifo_factor == model.FIFO_FACTOR
        notes.append("fitted: cycles of eqs. (6) and (7)" + (f", FIFO factor {model.FIFO_FACTOR}" if factor else ""))
    return {
        "memory_bits": design.memory_bits,
        "memory": {name: float(bits) for name, bits in design.memory.items()},
        "fits": {name: design.fits(part) for name, part in catalogue.parts.items()},
        "implemented": design.outcome,
        "notes": notes,
    }


def memory_rows(found: dict) -> list[tuple[str, str]]:
    """The memory of `resources`, for a reader: all, then by structure."""
    parts = [(f"  {name}", f"{bits / 1e6:.3f} Mb") for name, bits in found["memory"].items()]
    return [("memory", f"{found['memory_bits'] / 1e6:.3f} Mb"), *parts]
