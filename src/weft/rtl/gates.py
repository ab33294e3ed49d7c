"""From a fabric's description to its gates: what the dataclass says, and what gates need beyond it."""

from functools import lru_cache

from weft.errors import require
from weft.fabrics.crossbar import Crossbar
from weft.rtl import tools

MOST_PORTS = 64


@lru_cache(maxsize=64)
def crossbar(fabric: Crossbar, lines: bool = False):
    """The gates of a crossbar: private queues or a shared memory per input, or a grouped crosspoint-queued switch.

    lines: with adapters to lines that carry a cell in as many words as a slot has cycles.
    """
    tools.amaranth()
    from weft.rtl.crossbar import Switch
    from weft.rtl.gcq import GroupedSwitch
    from weft.rtl.lines import LineSwitch

    require(fabric.buffers in ("voq", "shared", "gcq"), "buffers", "voq, shared or gcq in gates", fabric.buffers)
    require(fabric.ports <= MOST_PORTS, "ports", f"at most {MOST_PORTS} in gates", fabric.ports)
    made: Switch | GroupedSwitch
    if fabric.buffers == "gcq":
        made = GroupedSwitch(
            ports=fabric.ports, group=fabric.group, ratio=int(fabric.phases), depth=fabric.queue_depth,
            inner=fabric.inner, output=fabric.output, crossing=fabric.crossing, width=8 * fabric.cell,
            stages=fabric.stages[2].cycles + fabric.stages[3].cycles,
        )  # fmt: skip
    else:
        require(fabric.algorithm == "islip", "scheduler", "islip in gates", fabric.algorithm)
        made = Switch(
            ports=fabric.ports, buffers=fabric.buffers, iterations=fabric.iterations, depth=fabric.queue_depth,
            width=8 * fabric.cell,
        )  # fmt: skip
    return LineSwitch(made) if lines else made


@lru_cache(maxsize=64)
def groomer(fabric, buffer: int, looped: bool = False):
    """The gates of a `weft.fabrics.merchant.groomer.Groomer`, with so many bytes of buffer at each end of a port."""
    tools.amaranth()
    from weft.rtl.groomer import Groomer

    cycles = fabric.port_byte
    require(cycles <= 4096, "a byte on a port", "at most 4096 ticks in gates", cycles)
    return Groomer(
        protocol=fabric.protocol, ports=fabric.ports, port_byte=cycles, trunk_byte=fabric.trunk_byte,
        playout=fabric.playout_ticks if fabric.protocol == "eep" else 0, buffer=buffer, looped=looped,
    )  # fmt: skip


@lru_cache(maxsize=64)
def rack(**options):
    """The gates of a Shoal rack; see `shoal_rack.Rack`."""
    tools.amaranth()
    from weft.rtl.shoal_rack import Rack

    return Rack(**options)
