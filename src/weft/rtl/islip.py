"""The iSLIP scheduler: a matching of inputs and outputs in every slot, one iteration per clock cycle.

A slot is `iterations` cycles. `requests` must hold still from its first cycle to its last; in the last, `last` is high
and `match` is the matching, which is combinational: whoever acts on it does so at the clock edge that ends the slot.
Grant and accept are round robin; a pointer moves one beyond a pair that was matched, in the first iteration only.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.arbiter import beyond, first
from weft.rtl.parts import Block


class Islip(Block):
    """Members
    requests  [i] bit j   input i has a cell for output j
    match     [i] bit j   input i may send to output j
    last                  this is the last cycle of the slot
    """

    def __init__(self, ports: int, iterations: int = 1):
        require(ports >= 2, "ports", "at least 2", ports)
        require(iterations >= 1, "iterations", "at least 1", iterations)
        self.ports, self.iterations = ports, iterations
        super().__init__({
            "requests": In(ports).array(ports),
            "match": Out(ports).array(ports),
            "last": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        n = self.ports
        iteration = Signal(range(max(self.iterations, 2)))
        begins = Signal()
        m.d.comb += [begins.eq(iteration == 0), self.last.eq(iteration == self.iterations - 1)]
        m.d.sync += iteration.eq(Mux(self.last, 0, iteration + 1))

        before = [Signal(n, name=f"before_{i}") for i in range(n)]  # [i] bit j: matched in an earlier iteration
        new = [Signal(n, name=f"new_{i}") for i in range(n)]
        busy = Signal(n)  # outputs that are matched
        free = Signal(n)  # inputs that are not
        m.d.comb += [
            busy.eq(Cat(Cat(row[j] for row in before).any() for j in range(n))),
            free.eq(Cat(~row.any() for row in before)),
        ]
        grants = [Signal(n, name=f"grant_{j}") for j in range(n)]  # [j] bit i
        for j in range(n):
            mask = Signal(n, init=(1 << n) - 1, name=f"grant_mask_{j}")
            asking = Signal(n, name=f"asking_{j}")
            m.d.comb += asking.eq(Cat(self.requests[i][j] for i in range(n)) & free & (~busy[j]).replicate(n))
            m.d.comb += grants[j].eq(first(asking, mask))
            taken = Signal(name=f"taken_{j}")
            m.d.comb += taken.eq(Cat(new[i][j] for i in range(n)).any())
            with m.If(begins & taken):
                m.d.sync += mask.eq(beyond(grants[j]))
        for i in range(n):
            mask = Signal(n, init=(1 << n) - 1, name=f"accept_mask_{i}")
            offered = Signal(n, name=f"offered_{i}")
            m.d.comb += offered.eq(Cat(grants[j][i] for j in range(n)))
            m.d.comb += new[i].eq(first(offered, mask))
            with m.If(begins & offered.any()):
                m.d.sync += mask.eq(beyond(new[i]))
            m.d.comb += self.match[i].eq(before[i] | new[i])
            m.d.sync += before[i].eq(Mux(self.last, 0, self.match[i]))
        return m
