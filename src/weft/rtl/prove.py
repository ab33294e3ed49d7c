"""Invariants proved by model checking, each beside a mutant that must fail: a proof that cannot fail is none.

Assertions are written in Amaranth beside the design, turned into an and-inverter graph by Yosys, and decided by ABC:
`pdr` proves for all time, by induction that it finds itself; `bmc3` looks for a counterexample up to a depth. Power-on
state is the initial one and reset is held low.
"""

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import Assume, ResetSignal

from weft.rtl import tools
from weft.rtl.parts import Block

LIMIT = 300  # seconds that a proof may take


@dataclass(frozen=True)
class Property:
    """A sentence that must hold, the design that says it, and a mutant for which it must not."""

    name: str
    design: Callable[[], Block]
    mutant: Callable[[], Block]
    depth: int = 0  # cycles to look at; 0 is all time


@dataclass(frozen=True)
class Verdict:
    """What `weft rtl prove` prints of a property. `depth` is cycles from power-on, None where it is all time."""

    name: str
    result: str  # "proved", "holds to depth", "fails" or "unknown"
    depth: int | None
    mutant_failed: bool

    @property
    def good(self) -> bool:
        return self.result in ("proved", "holds to depth") and self.mutant_failed


def prove(properties: list[Property]) -> list[Verdict]:
    """Decide every property, and its mutant."""
    out = []
    for one in properties:
        result, depth = decide(one.design(), one.depth)
        failed, _ = decide(one.mutant(), one.depth or 40, hunt=True)
        out.append(Verdict(one.name, result, depth, failed == "fails"))
    return out


def decide(component, depth: int, hunt: bool = False) -> tuple[str, int | None]:
    """("proved", None), ("holds to depth", k), ("fails", k) or ("unknown", None); `hunt`: only look for failures."""
    text = tools.rtlil(component)
    abc = tools.need("pyosys", "pyosys") / "yosys-abc"
    with tempfile.TemporaryDirectory(dir=tools.folder()) as room:
        (Path(room) / "in.il").write_text(text)
        tools.yosys(SCRIPT, cwd=room)
        look = f"bmc3 -F {depth} -T {LIMIT}" if depth or hunt else f"pdr -T {LIMIT}"
        done = subprocess.run(
            [str(abc), "-c", f"read_aiger out.aig; fold; strash; {look}; print_status"], cwd=room,
            capture_output=True, text=True, check=False, timeout=LIMIT * 4,
        )  # fmt: skip
    said = done.stdout
    found = re.search(r"was asserted in frame (\d+)", said)
    if found:
        return "fails", int(found.group(1))
    if "Property proved" in said:
        return "proved", None
    looked = re.search(r"No output asserted in (\d+) frames", said)
    if looked:
        return "holds to depth", int(looked.group(1))
    return "unknown", None


SCRIPT = """read_rtlil in.il
hierarchy -top top
proc
flatten
chformal -lower
opt_clean
memory_nordff
async2sync
memory_map
opt -fast
techmap
opt -fast
setundef -undriven -anyseq
setundef -zero -init
delete t:$scopeinfo
dffunmap
simplemap
aigmap
opt_clean
write_aiger -zinit out.aig"""


def no_reset():
    """Reset is not what is proved: memories keep what they hold through it."""
    return Assume(~ResetSignal("sync"))
