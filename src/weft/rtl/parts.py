"""Blocks of which a design has many: written once as a module and placed as often as needed.

Amaranth writes a module for every instance. `place` puts a block into a module; while a `library` is open, the block is
converted once and what goes in is an instance of it, which is ten times quicker for switches of sixteen ports and gives
Verilog that can be read. Amaranth's own simulator knows no instances, so without a library a block is a submodule.
"""

import re
from contextlib import contextmanager

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Instance, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import Flow

CLOCKS = {
    "clk": ClockSignal("sync"), "rst": ResetSignal("sync"), "fast_clk": ClockSignal("fast"),
    "fast_rst": ResetSignal("fast"),
}  # fmt: skip
_open: list = []


class Block(wiring.Component):
    """A component that may also be described, measured or refused, without Amaranth warning that it is not used."""

    _MustUse__silence = True


@contextmanager
def library():
    """While this is open, `place` makes instances; yields module name -> RTLIL of the blocks placed."""
    _open.append({})
    try:
        yield _open[-1]
    finally:
        _open.pop()


def place(m, name: str, block):
    """Make `block` part of module `m` under `name`; returns the block, whose members are then wired up."""
    if not _open:
        m.submodules[name] = block
        return block
    known, kind = _open[-1], module_name(block)
    if kind not in known:
        known[kind] = ""  # so that what it is made of comes after it in the dictionary, whatever its depth
        known[kind] = rtlil.convert(block, name=kind, emit_src=False)
    ports = {}
    for path, member, value in block.signature.flatten(block):
        flow = "i" if member.flow == Flow.In else "o"
        ports[f"{flow}_{'__'.join(map(str, path))}"] = value
    for clock, signal in CLOCKS.items():
        if re.search(rf"^  wire width 1 input \d+ +\\{clock}$", known[kind].rpartition(f"module \\{kind}\n")[2], re.M):
            ports[f"i_{clock}"] = signal
    m.submodules[name] = Instance(kind, **ports)
    return block


def module_name(block) -> str:
    """A block's kind and parameters: `shared_queues_ports16_size1024_width256`."""
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(block).__name__).lower()
    given = [
        f"{key}{value if not isinstance(value, bool) else int(value)}"
        for key, value in vars(block).items()
        if isinstance(value, (int, str)) and not key.startswith("_")
    ]
    return "_".join([kind, *given])
