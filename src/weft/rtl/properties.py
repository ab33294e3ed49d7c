"""What is proved of which design: the assertions, in Amaranth beside the design, and the mutants that must fail."""

from amaranth.hdl import Assert, Cat, Module, Signal
from amaranth.lib.wiring import In

from weft.rtl import prove_eep, prove_shoal
from weft.rtl.islip import Islip
from weft.rtl.parts import Block
from weft.rtl.prove import Property, no_reset
from weft.rtl.shoal_switch import CircuitSwitch
from weft.rtl.voq import SharedQueues

# ---------------------------------------------------------------- the scheduler


class MatchingIsAMatching(Block):
    """Any requests in every slot, and what must hold of the matching."""

    def __init__(self, scheduler, ports: int, maximal: bool = False):
        self.scheduler, self.ports, self.maximal = scheduler, ports, maximal
        super().__init__({"requests": In(ports).array(ports)})

    def elaborate(self, platform):
        m = Module()
        n, unit = self.ports, self.scheduler
        m.submodules.scheduler = unit
        m.d.comb += no_reset()
        held = [Signal(n, name=f"held_{i}") for i in range(n)]
        for i in range(n):
            # the buffers stand still during a slot: what was asked for in its first cycle is asked for until its last
            m.d.comb += unit.requests[i].eq(held[i])
            with m.If(unit.last):
                m.d.sync += held[i].eq(self.requests[i])
            m.d.comb += Assert(one_or_none(unit.match[i]))
            m.d.comb += Assert((unit.match[i] & ~held[i]) == 0)
        for j in range(n):
            m.d.comb += Assert(one_or_none(Cat(unit.match[i][j] for i in range(n))))
        some = Cat(row.any() for row in held).any()
        m.d.comb += Assert(~unit.last | ~some | Cat(row.any() for row in unit.match).any())
        if self.maximal:
            for i in range(n):
                for j in range(n):
                    taken = unit.match[i].any() | Cat(unit.match[k][j] for k in range(n)).any()
                    m.d.comb += Assert(~unit.last | ~held[i][j] | taken)
        return m


def one_or_none(bits):
    """At most one bit is set."""
    return (bits & (bits - 1)[: len(bits)]) == 0


class Greedy(Islip):
    """A scheduler that gives input 0 whatever input 1 gets as well."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        wrong = Signal(self.ports)
        m.d.comb += wrong.eq(self.requests[1] & self.requests[0])
        m.d.comb += self.match[0].eq(wrong & (-wrong)[: self.ports])
        return m


# ---------------------------------------------------------------- the circuit switch


class NoTwoInputsOnOneOutput(Block):
    """A switch with its schedule: whatever the slot, no input feeds two outputs, and no output listens to two."""

    def __init__(self, switch: CircuitSwitch):
        self.switch = switch
        super().__init__({"word": In(4)})

    def elaborate(self, platform):
        m = Module()
        unit = self.switch
        m.submodules.switch = unit
        m.d.comb += no_reset()
        tags = range(1, unit.ports + 1)
        m.d.comb += [unit.links_in[x].eq(tag) for x, tag in enumerate(tags)]
        for y in range(unit.ports):
            for z in range(y):
                both = (unit.selected[y] == unit.selected[z]) & (unit.selected[y] != unit.ports)
                m.d.comb += Assert(~both)
                m.d.comb += Assert((unit.links_out[y] == 0) | (unit.links_out[y] != unit.links_out[z]))
        return m


# ---------------------------------------------------------------- the shared memory


class FirstInFirstOut(Block):
    """Any cells and any reads: the cells for output 0 leave in the order they came in, whole, none lost or doubled.

    A cell is chosen by `watch` when it enters; the number of cells for output 0 before it is counted down as they
    leave. When it is the next to leave, what leaves must be it.
    """

    def __init__(self, queues, ports: int, width: int):
        self.queues, self.ports, self.width = queues, ports, width
        super().__init__({
            "write": In(1), "outputs": In(ports), "cell": In(width), "pop": In(ports), "watch": In(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        unit, n = self.queues, self.ports
        m.submodules.queues = unit
        m.d.comb += no_reset()
        pops = Signal(n)
        m.d.comb += [
            pops.eq(self.pop & unit.waiting), unit.write.eq(self.write), unit.outputs.eq(self.outputs),
            unit.cell.eq(self.cell), unit.pop.eq(pops & (-pops)[:n]),  # one read port: one output at a time
        ]  # fmt: skip
        enters = self.write & self.outputs[0] & ~unit.refused[0]
        leaves = unit.pop[0]
        inside = Signal(5)
        ahead = Signal(5)
        seen = Signal()
        gone = Signal()
        kept = Signal(self.width)
        m.d.sync += inside.eq(inside + enters - leaves)
        m.d.comb += Assert((inside == 0) == ~unit.waiting[0])  # none lost, none made
        with m.If(enters & self.watch & ~seen):
            m.d.sync += [seen.eq(1), kept.eq(self.cell), ahead.eq(inside - leaves)]
        with m.Elif(seen & ~gone & leaves):
            m.d.sync += [ahead.eq(ahead - 1), gone.eq(ahead == 0)]
        now = seen & ~gone & leaves & (ahead == 0)
        # the cell itself follows two cycles later
        one = Signal()
        two = Signal()
        m.d.sync += [one.eq(now), two.eq(one)]
        m.d.comb += Assert(~two | (unit.left == kept))
        return m


class EarlyRelease(SharedQueues):
    """A memory that gives an address back when the first of a cell's outputs has read it."""

    def finished(self, left):
        return 1


# ---------------------------------------------------------------- what is proved of which design


def islip_properties(design) -> list[Property]:
    """Of a scheduler."""
    n, k = design.ports, design.iterations
    most = min(n, 4)
    return [
        Property(
            f"a match is a matching and asks only what was requested ({n} ports, {k} iterations)",
            lambda: MatchingIsAMatching(Islip(n, k), n), lambda: MatchingIsAMatching(Greedy(n, k), n),
        ),
        Property(
            f"as many iterations as ports leave out nobody who could be matched ({most} ports)",
            lambda: MatchingIsAMatching(Islip(most, most), most, maximal=True),
            lambda: MatchingIsAMatching(Islip(most, 1), most, maximal=True), depth=3 * most,
        ),
    ]  # fmt: skip


def crossbar_properties(design) -> list[Property]:
    """Of a switch: of its scheduler, and where the memory is shared, of a memory of two outputs and as many cells."""
    found = islip_properties(design) if design.buffers != "gcq" else []
    if design.buffers == "shared":
        found.append(Property(
            "cells leave a shared memory in order and whole, none lost or doubled (2 outputs, 2 cells of one bit)",
            lambda: FirstInFirstOut(SharedQueues(2, 1, 1), 2, 1), lambda: FirstInFirstOut(EarlyRelease(2, 1, 1), 2, 1),
        ))  # fmt: skip
    return found


def switch_properties(design) -> list[Property]:
    """Of a circuit switch with its own table; the mutant repeats an entry of it."""
    rows = [[int(x) for x in row] for row in design.selectors()]
    twice = [list(row) for row in rows]
    t, y = next((t, y) for t, row in enumerate(rows) for y, x in enumerate(row) if x >= 0)
    twice[t][(y + 1) % len(rows[t])] = rows[t][y]
    cycles = min(design.slot_cycles, 3)  # the length of a slot does not matter to the circuits
    return [
        Property(
            f"no two inputs on one output, nor an input on two, in any slot of {design.switch}",
            lambda: NoTwoInputsOnOneOutput(CircuitSwitch(rows, slot_cycles=cycles)),
            lambda: NoTwoInputsOnOneOutput(CircuitSwitch(twice, slot_cycles=cycles, check=False)),
        )
    ]  # fmt: skip


PROPERTIES = {
    "islip": islip_properties, "crossbar": crossbar_properties, "shoal-switch": switch_properties,
    "shoal": prove_shoal.properties, "eep": prove_eep.properties,
}  # fmt: skip
