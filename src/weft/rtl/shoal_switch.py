"""The circuit switch: p multiplexers of p inputs, each with a selector register, following a table (§4.1).

Link in, link out: a register after each multiplexer, one cycle. All selectors of a slot are written at the same clock
edge, at the boundary of the slot: one cycle in which circuits change. `offsets` says by how many cycles an output's
slots begin after those of the senders: as much as cells take to get there. The paper's 45 cycles of physical layer
and 4 of clock crossing are not here; in a rack they are part of the links' delay.
"""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import BadInput, ScheduleConflict, require
from weft.rtl.parts import Block

LINK = 66  # a word of 64 bits; whether it is one; whether it is the first of a cell
VALID, FIRST = 64, 65


def check_table(selectors, ports: int, name: str = "the switch") -> list[list[int]]:
    """Rows of selectors, one per slot: the input each output listens to, or -1. No input may feed two outputs."""
    rows = [[int(x) for x in row] for row in selectors]
    require(len(rows) >= 1, f"the schedule of {name}", "at least one slot", 0)
    for t, row in enumerate(rows):
        require(len(row) == ports, f"slot {t} of {name}", f"a list of {ports} inputs", len(row))
        used: dict[int, int] = {}
        for out, port in enumerate(row):
            if not -1 <= port < ports:
                raise BadInput(f"an input of {name} must be from 0 to {ports - 1}, or -1 for none, not {port}")
            if port >= 0 and port in used:
                raise ScheduleConflict(
                    f"port {port} of {name} must feed one output in slot {t}, not {used[port]} and {out}"
                )
            used[port] = out
    return rows


class CircuitSwitch(Block):
    """Members
    links_in    [x]  what comes in: LINK bits
    links_out   [y]  what goes out, a cycle later
    selected    [y]  the input that output y listens to, or `ports` for none
    broken      bit y: output y listens to nobody from its next slot on (with `failures`)
    """

    def __init__(
        self, selectors, *, slot_cycles: int, offsets=None, name: str = "the switch", check: bool = True,
        failures: bool = False,
    ):  # fmt: skip
        rows = [[int(x) for x in row] for row in selectors]
        self.ports = len(rows[0]) if rows else 0
        if check:
            check_table(rows, self.ports, name)
        self.rows, self.slot_cycles, self.failures = rows, slot_cycles, failures
        self.offsets = list(offsets) if offsets is not None else [0] * self.ports
        super().__init__({
            "links_in": In(LINK).array(self.ports), "links_out": Out(LINK).array(self.ports),
            "selected": Out(range(self.ports + 1)).array(self.ports),
        } | ({"broken": In(self.ports)} if failures else {}))  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        slots, cycles, n = len(self.rows), self.slot_cycles, self.ports
        for offset in sorted(set(self.offsets)):
            mine = [y for y in range(n) if self.offsets[y] == offset]
            # Cycle 0 is the first of the slot before slot 0 of the senders; selectors for a slot are written at the
            # edge before its first cycle.
            began, phase = divmod(-offset, cycles)
            at = Signal(range(max(slots, 2)), init=began % slots, name=f"slot_{offset}")  # the slot that comes next
            count = Signal(range(max(cycles, 2)), init=phase, name=f"phase_{offset}")
            ends = Signal(name=f"ends_{offset}")
            width = (n).bit_length()
            init = [sum((row[y] if row[y] >= 0 else n) << width * k for k, y in enumerate(mine)) for row in self.rows]
            table = m.submodules[f"table_{offset}"] = Memory(shape=width * len(mine), depth=slots, init=init)
            read = table.read_port(domain="comb")
            m.d.comb += [ends.eq(count == cycles - 1), read.addr.eq(at)]
            m.d.sync += count.eq(Mux(ends, 0, count + 1))
            with m.If(ends):
                m.d.sync += at.eq(Mux(at == slots - 1, 0, at + 1))
            before = self.rows[(began - 1) % slots]
            for k, y in enumerate(mine):
                select = Signal(width, init=before[y] if before[y] >= 0 else n, name=f"select_{y}")
                chosen = read.data.word_select(k, width)
                with m.If(ends):
                    m.d.sync += select.eq(Mux(self.broken[y], n, chosen) if self.failures else chosen)
                m.d.comb += self.selected[y].eq(select)
                m.d.sync += self.links_out[y].eq(Array([*self.links_in, 0])[select])
        return m
