"""The queues of one input: a private FIFO per output, or one memory that all of them share.

Both take a cell when `write` is high at a clock edge, into the queue of every output in `outputs`, and give up
the first cell of queue j when bit j of `pop` is. `waiting` says which queues hold a cell; it follows at the next
cycle. A cell may come in at the very edge at which the place it takes is vacated.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.rtl.arbiter import select
from weft.rtl.parts import Block, place


def signature(ports: int, width: int) -> dict:
    return {
        "write": In(1),
        "outputs": In(ports),
        "cell": In(width),
        "pop": In(ports),
        "waiting": Out(ports),
        "refused": Out(ports),
        "left": Out(width),
    }


class PrivateQueues(Block):
    """A FIFO per output, in memory that is read without a clock (LUTRAM): the baseline of the paper.

    Members
    write, outputs, cell   a cell comes in, for these outputs; a copy for each
    pop                    one-hot: the queue whose first cell leaves at the next edge
    waiting                queues that hold a cell
    refused                of the cell coming in, the outputs whose queues are full
    left                   in the cycle of `pop`: the cell that leaves
    """

    LATENCY = 0  # cycles from `pop` to the cell

    def __init__(self, ports: int, depth: int, width: int):
        self.ports, self.depth, self.width = ports, depth, width
        super().__init__(signature(ports, width))

    def elaborate(self, platform):
        m = Module()
        heads = []
        for j in range(self.ports):
            store = m.submodules[f"queue_{j}"] = Memory(shape=self.width, depth=self.depth, init=[])
            read, write = store.read_port(domain="comb"), store.write_port()
            head, tail = (Signal(range(max(self.depth, 2)), name=f"{end}_{j}") for end in ("head", "tail"))
            length = Signal(range(self.depth + 1), name=f"length_{j}")
            enter, full = Signal(name=f"enter_{j}"), Signal(name=f"full_{j}")
            m.d.comb += [
                full.eq((length == self.depth) & ~self.pop[j]),
                enter.eq(self.write & self.outputs[j] & ~full),
                self.refused[j].eq(self.write & self.outputs[j] & full),
                self.waiting[j].eq(length != 0),
                read.addr.eq(head), write.addr.eq(tail), write.data.eq(self.cell), write.en.eq(enter),
            ]  # fmt: skip
            m.d.sync += length.eq(length + enter - self.pop[j])
            with m.If(enter):
                m.d.sync += tail.eq(step(tail, self.depth))
            with m.If(self.pop[j]):
                m.d.sync += head.eq(step(head, self.depth))
            heads.append(read.data)
        m.d.comb += self.left.eq(select(self.pop, heads))
        return m


class SharedQueues(Block):
    """One memory for all outputs: an address pool, a queue of addresses per output, an indicator word per address.

    A cell is stored once, however many outputs it is for. When the last of them has read it, its address comes back to
    the pool: it can be used at the second edge after the one at which the cell was popped (III-2: the indicator is read
    before it is written). Address queues are as deep as the memory (Table III), so only the pool can run out.

    Members: as `PrivateQueues`, but
    refused   all outputs of the cell coming in, if the pool is empty
    left      two cycles after `pop`
    """

    LATENCY = 2

    def __init__(self, ports: int, depth: int, width: int):
        self.ports, self.size, self.width = ports, depth * ports, width
        super().__init__(signature(ports, width))

    def finished(self, left):
        """Whether an address is free, of whose outputs those in `left` have yet to read it."""
        return left == 0

    def elaborate(self, platform):
        m = Module()
        n, size = self.ports, self.size
        address = range(max(size, 2))
        enter = Signal()
        taken = Signal(address)
        # an address that comes back now
        returned = Signal()
        back = Signal(address)

        pool = m.submodules.pool = AddressQueue(size, full=True)
        empty = Signal()
        m.d.comb += [
            empty.eq(~pool.waiting & ~returned),
            taken.eq(Mux(pool.waiting, pool.first, back)),
            enter.eq(self.write & ~empty & self.outputs.any()),
            self.refused.eq(Mux(self.write & empty, self.outputs, 0)),
            pool.pop.eq(enter & pool.waiting),
            pool.write.eq(returned & ~(enter & ~pool.waiting)),
            pool.address.eq(back),
        ]

        queues = []
        for j in range(n):
            queue = place(m, f"addresses_{j}", AddressQueue(size))
            m.d.comb += [
                queue.write.eq(enter & self.outputs[j]), queue.address.eq(taken), queue.pop.eq(self.pop[j]),
                self.waiting[j].eq(queue.waiting),
            ]  # fmt: skip
            queues.append(queue)
        popped = Signal(address)
        m.d.comb += popped.eq(select(self.pop, [queue.first for queue in queues]))

        # The indicator is read at the edge of the pop and written at the next one. Two write it, who enters and who
        # reads, and no memory has two writers and a reader: each has a memory of its own, and a word is what differs.
        noted = m.submodules.noted = Memory(shape=n, depth=size, init=[])
        cleared = m.submodules.cleared = Memory(shape=n, depth=size, init=[])
        note, clear = noted.write_port(), cleared.write_port()
        look, gone = noted.read_port(transparent_for=(note,)), cleared.read_port(transparent_for=(clear,))
        past = cleared.read_port(domain="comb")  # of an address that is taken, whose word is zero
        m.d.comb += [
            past.addr.eq(taken), look.addr.eq(popped), gone.addr.eq(popped), note.addr.eq(taken), note.en.eq(enter),
            note.data.eq(self.outputs ^ Mux(pool.waiting, past.data, clear.data)),  # one that comes back is written now
        ]  # fmt: skip
        reading = Signal()
        address_1 = Signal(address)
        outputs_1 = Signal(n)
        left = Signal(n)
        m.d.sync += [reading.eq(self.pop.any()), address_1.eq(popped), outputs_1.eq(self.pop)]
        m.d.comb += [
            left.eq((look.data ^ gone.data) & ~outputs_1),
            returned.eq(reading & self.finished(left)), back.eq(address_1),
            clear.addr.eq(address_1), clear.data.eq(look.data ^ left), clear.en.eq(reading),
        ]  # fmt: skip

        cells = m.submodules.cells = Memory(shape=self.width, depth=size, init=[])
        write, read = cells.write_port(), cells.read_port()
        m.d.comb += [
            write.addr.eq(taken), write.data.eq(self.cell), write.en.eq(enter),
            read.addr.eq(address_1), self.left.eq(read.data),
        ]  # fmt: skip
        return m


class AddressQueue(Block):
    """A FIFO of addresses in block RAM whose first entry always shows; if `full`, it begins with every address.

    Members
    write, address   an address joins
    pop              the first one leaves
    waiting, first   whether there is one, and which
    """

    def __init__(self, size: int, full: bool = False):
        self.size, self.full = size, full
        super().__init__({
            "write": In(1), "address": In(range(max(size, 2))), "pop": In(1),
            "waiting": Out(1), "first": Out(range(max(size, 2))),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        size = self.size
        init = list(range(size)) if self.full else []
        store = m.submodules.store = Memory(shape=range(max(size, 2)), depth=size, init=init)
        write = store.write_port()
        read = store.read_port(transparent_for=(write,))
        head, tail, ahead = (Signal(range(max(size, 2)), name=name) for name in ("head", "tail", "ahead"))
        length = Signal(range(size + 1), init=size if self.full else 0)
        fresh = Signal(init=1)  # nothing has been read yet: with `full`, entry 0 is 0
        m.d.sync += [fresh.eq(0), head.eq(ahead), length.eq(length + self.write - self.pop)]
        m.d.comb += [
            ahead.eq(Mux(self.pop, step(head, size), head)),
            read.addr.eq(ahead), write.addr.eq(tail), write.data.eq(self.address), write.en.eq(self.write),
            self.waiting.eq(length != 0), self.first.eq(Mux(fresh, 0, read.data)),
        ]  # fmt: skip
        with m.If(self.write):
            m.d.sync += tail.eq(step(tail, size))
        return m


def step(pointer, size):
    """The place after `pointer` in a ring of `size`."""
    return Mux(pointer == size - 1, 0, pointer + 1)
