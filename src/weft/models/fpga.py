"""Which switch fits which FPGA: memory, clock and latency of crossbars in gates (ASAP '19, §III to §V).

`ports` may be an array; then so is every answer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import BadPart, require
from weft.models import tables
from weft.models.limits import within
from weft.models.parts import Catalogue, Part
from weft.prototypes import fpga as prototype
from weft.prototypes.fpga import TARGET
from weft.units import Gbps, Rate, param

CATALOGUE = "fpga-2019"
DESIGNS = ("islip", "smislip", "gcq")
TARGET_DEVICE = "XCVU9P"
LANES = 64  # bits: widths of Table II are the least multiples of it that carry the rate at 40 MHz
FIFO_FACTOR = 2.70406  # F: not printed, fitted to the 368.738 Mb of section V-C
TRANSCEIVER_NS = (13.65, 96.75)  # §IV-B2: least and most of a 10 Gb/s transceiver

# Section V-C: a design is likely to fail when its estimate is within this share of the device's memory. The print
# says 6 and 3.4 %; its own two failing designs, 356.515 and 368.738 of 382 Mb, are 6.7 and 3.5 % away.
MARGIN = {"islip": 0.0, "smislip": 0.067, "gcq": 0.035}


@dataclass(frozen=True, kw_only=True)
class Design:
    """A crossbar switch of one of the paper's three designs, on a data path of one cell a clock."""

    design: str = param("smislip", "islip, smislip or gcq")
    ports: int = param(64, "ports of the switch")
    rate: Rate = param(50 * Gbps, "line rate of a port")
    width: int = param(None, "bits of the data path; what carries the rate at 40 MHz when not given")
    depth: int = param(64, "cells to a queue, or to each queue's share of a shared memory")
    voq_depth: int = param(16, "cells to an input queue of gcq")
    speedup: int = param(4, "ports of a memory-based switch of gcq, and its clock over theirs")
    fifo_factor: float = param(FIFO_FACTOR, "memory that the FIFO generator takes over what it holds; fitted")

    def __post_init__(self):
        require(self.design in DESIGNS, "design", f"one of {', '.join(DESIGNS)}", self.design)
        ports = np.asarray(self.ports)
        within("ports", ports, 2, 1_000_000)
        within("rate", self.rate, 1, 10**15, " b/s")
        for name in ("depth", "voq_depth", "speedup"):
            within(name, getattr(self, name), 1)
        within("fifo_factor", self.fifo_factor, 1)
        if self.design == "gcq" and np.any(ports % self.speedup):
            wrong = int(np.atleast_1d(ports)[np.atleast_1d(ports % self.speedup != 0)][0])
            below = wrong // self.speedup * self.speedup
            near = f"{below} or {below + self.speedup}" if below else f"{self.speedup}"
            require(False, "ports", f"a multiple of speedup {self.speedup} for gcq, nearest {near}", wrong)
        if self.width is None:
            object.__setattr__(self, "width", int(-(-self.rate // (TARGET * LANES)) * LANES))
        within("width", self.width, 1, unit=" bit")

    @property
    def memory(self) -> dict:
        """Bits by structure: eq. (2) for smislip, (3) to (5) for gcq, N^2 plain queues for islip."""
        n, w, d = np.asarray(self.ports, float), self.width, self.depth
        if self.design == "islip":
            return {"queues": n * n * d * w}
        if self.design == "smislip":
            return {
                "shared memory": n * d * n * w,
                "addresses": n * 2 * d * n * np.log2(d * n),
                "indicators": n * d * n * n,
            }
        s, f = self.speedup, self.fifo_factor
        blocks = (n / s) ** 2
        return {
            "shared memory": blocks * d * s * w,
            "addresses": blocks * 2 * d * s * np.log2(d * s),
            "indicators": blocks * d * s * s,
            "input queues": f * n * (n / s) * w * self.voq_depth,
            "output buffers": f * blocks * s * w * d,
        }

    @property
    def memory_bits(self):
        """All of its memory, rounded to whole bits."""
        total = np.rint(sum(self.memory.values()))
        return int(total) if total.ndim == 0 else total

    def latency_ns(self, clock: float = TARGET, pipeline: str = "fast"):
        """Port-to-port latency by eqs. (6) and (7), see weft.prototypes.fpga; None for islip, which has none."""
        period = 1e9 / np.asarray(clock, float)
        if self.design == "smislip":
            return prototype.shared_memory_latency(self.ports, period)
        if self.design == "gcq":
            return prototype.grouped_latency(self.ports, period, self.speedup, pipeline)
        return None

    @property
    def measured_clock(self) -> float | None:
        """The highest clock in Hz that Table V reports for this design, if it was built."""
        return prototype.clock(self.design, self.ports, self.width)

    @property
    def outcome(self) -> str | None:
        """What became of it on the XCVU9P (Table IV): ok, C congestion, T timing, X resources; None if not tried."""
        key = f"{self.design}, {self.ports} ports, {self.rate // Gbps} Gb/s"
        return next((row["printed"] for row in tables.printed("fpga")["IV"]["row"] if row["name"] == key), None)

    def fits(self, device: Part):
        """Whether the memory model expects it to fit: Fig. 8's flow, with the margins of section V-C.

        Plain queues cannot share blocks: islip must fit one kind of memory whole, block RAM or LUTRAM (§III-2).
        """
        n, room = np.asarray(self.ports, float), memory_of(device)
        if self.design == "islip":
            blocks = n * n * -(-self.width // 72) * -(-self.depth // 512)
            found = (blocks <= device.facts["bram_blocks"]) | (self.memory_bits <= 1e6 * device.facts["lutram_mb"])
        else:
            found = np.asarray(self.memory_bits < (1 - MARGIN[self.design]) * room)
        return bool(found) if found.ndim == 0 else found

    @property
    def bandwidth(self):
        """All ports at the line rate."""
        return self.ports * self.rate

    def cell(self) -> dict:
        """Bits of a cell by field (Table I)."""
        name = np.log2(self.ports)
        return {"source": name, "data": self.width - name - self.ports, "destination": self.ports}


def memory_of(device: Part) -> float:
    """Bits of LUTRAM, block RAM and UltraRAM, taking the vendor's Mb as a million bits, as the paper does."""
    facts = device.facts
    for name in ("lutram_mb", "bram_blocks", "uram_blocks"):
        if not isinstance(facts.get(name), int | float) or facts[name] < 0:
            raise BadPart(f"{name} of device {device.name!r} must be a number of at least 0, not {facts.get(name)!r}")
    return 1e6 * (facts["lutram_mb"] + facts["bram_blocks"] * 36 / 1024 + facts["uram_blocks"] * 288 / 1024)


def naive_ports(device: Part, width: int = 256, depth: int = 64) -> dict:
    """Most ports with one physical queue for each pair, in block RAM and in LUTRAM (§III-2)."""
    blocks = -(-width // 72)
    return {
        "bram": int(np.sqrt(device.facts["bram_blocks"] // blocks)),
        "lutram": int(np.sqrt(1e6 * device.facts["lutram_mb"] / (width * depth))),
    }


def most_ports(design: str, rate: Rate, device: Part, most=1024) -> int:
    """Most ports, in steps of four, that the memory model expects to fit `device` at `rate`; 0 for none."""
    ports: Any = np.arange(4, most + 1, 4)
    fits = Design(design=design, ports=ports, rate=rate).fits(device)
    return int(ports[fits].max(initial=0))


# ---------------------------------------------------------------- printed beside computed

_PORTS, _WIDTHS, _RATES = (8, 16, 32, 64), (256, 640, 1280), (10, 25, 50)


def table(key: str, catalogue: Catalogue | None = None) -> tables.Table:
    """A printed table of the paper with our numbers beside it: I to VI, memory, fig8 or claims."""
    key = tables.find("fpga", key)
    return tables.beside("fpga", key, _TABLES[key](catalogue or Catalogue.named(CATALOGUE)))


def _printed(key, name):
    return next(
        (
            float(row["printed"])
            for row in tables.printed("fpga")[key]["row"]
            if row["name"] == name and "printed" in row
        ),
        None,
    )


def _table_1(catalogue):
    n, w = 64, 256
    cell = Design(ports=n, width=w).cell()
    return {
        "source": cell["source"] / np.log2(n),
        "data": cell["data"] / (w - np.log2(n) - n),
        "destination": cell["destination"] / n,
    }


def _table_2(catalogue):
    rows = {f"data width, {rate} Gb/s": Design(rate=rate * Gbps).width for rate in _RATES}
    return rows | {f"carried by {w} bit": TARGET * w / Gbps for w in _WIDTHS}


def _table_3(catalogue):
    plain, gcq = Design(design="islip"), Design(design="gcq")
    rows = {"VOQ depth, islip": plain.depth, "VOQ depth, gcq": gcq.voq_depth}
    for what in ("shared memory", "memory pool", "output address pointer queue"):
        rows |= {f"{what} depth, {name}": Design(design=name).depth for name in ("smislip", "gcq")}
    return rows


def _table_4(catalogue):
    device = catalogue[TARGET_DEVICE]
    return {
        f"{design}, {n} ports, {rate} Gb/s": "ok"
        if Design(design=design, ports=n, rate=rate * Gbps).fits(device)
        else "X"
        for design in DESIGNS
        for n in (8, 16, 32, 64, 96, 128)
        for rate in _RATES
    }


def _table_5(catalogue):
    rows = {}
    for design in ("smislip", "gcq"):
        for n in _PORTS:
            clocks = {w: _printed("V", f"clock, {design}, {n} ports, {w} bit") for w in _WIDTHS}
            rows[f"capacity, {design}, {n} ports"] = max(f * w for w, f in clocks.items() if f) / 1e3
    return rows


def _table_6(catalogue):
    rows = {}
    for design in ("smislip", "gcq"):
        for n in _PORTS:
            found = []
            for w in _WIDTHS:
                built = Design(design=design, ports=n, width=w)
                if built.measured_clock:
                    name = f"{design}, {n} ports, {w} bit"
                    rows[name] = built.latency_ns(built.measured_clock)
                    if design == "gcq" and n == 64:
                        rows[f"{name}, T_s C_p alone"] = 1e9 / built.measured_clock * n / built.speedup
                    found.append(_printed("VI", name))
            rows[f"average, {design}, {n} ports"] = sum(found) / len(found)
    for w in _WIDTHS:
        measured = [(n / 4, _printed("VI", f"gcq, {n} ports, {w} bit")) for n in _PORTS]
        stages, latency = zip(*[pair for pair in measured if pair[1]], strict=True)
        rows[f"gcq, per pipeline stage, {w} bit"] = np.polyfit(stages, latency, 1)[0]
    return rows


def _memory(catalogue):
    return {
        f"{design}, {n} ports, {rate} Gb/s": Design(design=design, ports=n, rate=rate * Gbps).memory_bits / 1e6
        for design in DESIGNS
        for n in (8, 16, 32, 64, 96, 128)
        for rate in _RATES
    }


def _fig_8(catalogue):
    return {
        f"{design}, {rate} Gb/s, {name}": most_ports(design, rate * Gbps, part)
        for name, part in catalogue.parts.items()
        for design in DESIGNS
        for rate in _RATES
    }


def _claims(catalogue):
    device = catalogue[TARGET_DEVICE]
    room = memory_of(device) / 1e6
    memory = {(d, n): Design(design=d, ports=n).memory_bits / 1e6 for d in ("smislip", "gcq") for n in (64, 128)}
    n, w, d = 64, 1280, 64
    mistaken = n * (d * n * w + 2 * d * n * np.log2(d * 4) + d * n * n) / 1e6
    naive = naive_ports(device)
    built = [
        Design(design=design, ports=n, rate=rate * Gbps)
        for design in DESIGNS
        for n in (8, 16, 32, 64, 96, 128)
        for rate in _RATES
    ]
    done = [b for b in built if b.outcome == "ok"]
    most = max(b.bandwidth for b in done)
    best = [f"{b.design}, {b.ports} x {b.rate // Gbps} Gb/s" for b in done if b.bandwidth == most]
    holds = [
        name
        for name, part in catalogue.parts.items()
        if any(Design(design=d, ports=128).fits(part) for d in ("smislip", "gcq"))
    ]
    return {
        "memory, smislip, 64 x 50 Gb/s": memory["smislip", 64],
        "memory, smislip, 64 x 50 Gb/s, log2(D S)": mistaken,
        "memory, gcq, 64 x 50 Gb/s": memory["gcq", 64],
        "memory, smislip, 128 x 50 Gb/s": memory["smislip", 128],
        "memory, gcq, 128 x 50 Gb/s": memory["gcq", 128],
        "memory of the XCVU9P": room,
        "distance to the device, smislip": 100 * (1 - memory["smislip", 64] / room),
        "distance to the device, gcq": 100 * (1 - memory["gcq", 64] / room),
        "best bandwidth built": most / (1000 * Gbps),
        "best bandwidth built, which": "; ".join(best),
        "eq. (6) entries of Table VI within 0.1 %": sum(
            row.verdict != tables.NOT_KNOWN and abs(row.difference / float(row.printed)) < 1e-3
            for row in tables.beside("fpga", "VI", _table_6(catalogue)).rows
            if row.name.startswith("smislip")
        ),
        "ports with block RAM queues": naive["bram"],
        "ports with LUTRAM queues": naive["lutram"],
        "speed-up that emulates output queueing, 64 ports": 2 - 1 / 64,
        "transceiver latency": sum(TRANSCEIVER_NS) / 2,
        "FPGA transceivers over a 12.8 Tb/s switch": 8 / 12.8,
        "devices for 128 x 50 Gb/s": ", ".join(holds) or "none",
    }


_TABLES = {
    "I": _table_1,
    "II": _table_2,
    "III": _table_3,
    "IV": _table_4,
    "V": _table_5,
    "VI": _table_6,
    "memory": _memory,
    "fig8": _fig_8,
    "claims": _claims,
}
