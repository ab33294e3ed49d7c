"""The grouped crosspoint-queued switch: memories of S ports on a fast clock between queues and buffers on a slow one.

A slot is one cycle of the slow clock (domain `sync`) and `ratio` cycles of the fast one (domain `fast`); the two must
come from one PLL, the slow clock rising with every `ratio`-th rise of the fast one. What crosses from one to the other
is the pointer of a FIFO, through `crossing` registers of the clock it goes to; towards the slow side it is handed over
only at edges that both clocks share. So the time a cell takes is known to the cycle, which it would not be with two
clocks that know nothing of each other, and which the paper's FIFOs do not promise.

A cell is presented in a slow cycle and written at its end. In fast cycle g every memory is read for its output g mod S
and written from its input g mod S. A cell can be read `stages` fast cycles after it was written: the cycles of the
memory and the registers along its row. Every output takes cells from the memories of its column in turn.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.arbiter import beyond, first, select
from weft.rtl.crossbar import cell_layout
from weft.rtl.parts import Block, place
from weft.rtl.simulate import FAST
from weft.rtl.voq import step


class Crossing(Block):
    """A FIFO between the clocks. Its pointers count modulo twice its size, so that full and empty differ.

    Members
    write, cell   a cell joins at the next edge of the writing clock, unless `full`; from fast to slow the cell itself
                  follows a cycle later
    full          on the writing side
    pop           the first cell leaves at the next edge of the reading clock
    waiting       on the reading side: a cell has come through
    first         it
    shared_edge   this fast cycle ends with an edge of both clocks
    """

    def __init__(self, *, width: int, depth: int, ratio: int, stages: int, down: bool):
        """down: from the fast clock to the slow one; `stages` registers of the reading clock."""
        self.width, self.depth, self.ratio, self.stages, self.down = width, depth, ratio, stages, down
        super().__init__({
            "write": In(1), "cell": In(width), "full": Out(1),
            "pop": In(1), "waiting": Out(1), "first": Out(width),
            "shared_edge": In(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        writing, reading = (FAST, "sync") if self.down else ("sync", FAST)
        size = self.depth
        places = size + 1 if self.down else size  # a cell stands until the end of the slow cycle in which it leaves
        store = m.submodules.store = Memory(shape=self.width, depth=places, init=[])
        put, get = store.write_port(domain=writing), store.read_port(domain="comb")
        place = range(max(places, 2))
        tail = Signal(place)
        head = Signal(place)
        # cells so far, modulo 2 depth
        wrote = Signal(range(2 * size))
        read = Signal(range(2 * size))
        enter = Signal()
        m.d.comb += [
            enter.eq(self.write & ~self.full),
            put.data.eq(self.cell), get.addr.eq(head), self.first.eq(get.data),
        ]  # fmt: skip
        if self.down:  # out of a memory, the cell comes a cycle after its announcement
            m.d[FAST] += [put.addr.eq(tail), put.en.eq(enter)]
        else:
            m.d.comb += [put.addr.eq(tail), put.en.eq(enter)]
        after = Signal(range(2 * size))
        m.d.comb += after.eq(Mux(enter, step(wrote, 2 * size), wrote))
        m.d[writing] += wrote.eq(after)
        with m.If(enter):
            m.d[writing] += tail.eq(step(tail, places))
        read_after = Signal(range(2 * size))
        m.d.comb += read_after.eq(Mux(self.pop, step(read, 2 * size), read))
        m.d[reading] += read.eq(read_after)
        with m.If(self.pop):
            m.d[reading] += head.eq(step(head, places))

        # What the reading side knows of the writing one.
        seen = wrote
        if self.down:
            handed = Signal(range(2 * size))
            with m.If(self.shared_edge):
                m.d[FAST] += handed.eq(after)
            seen = handed
        for stage in range(self.stages):
            later = Signal(range(2 * size), name=f"seen_{stage}")
            m.d[reading] += later.eq(seen)
            seen = later
        m.d.comb += self.waiting.eq(seen != read)

        # What the writing side knows of the reading one: what has left before this slot began, or leaves in it.
        if self.down:
            known = read_after  # the slow side decides early and stands still for the rest of its cycle
        elif self.ratio == 1:
            known = read
        else:
            known = Signal(range(2 * size))
            begins = Signal(init=1)
            m.d[FAST] += begins.eq(self.shared_edge)
            with m.If(begins):
                m.d[FAST] += known.eq(read)
        held = Signal(range(2 * size))
        m.d.comb += held.eq(Mux(wrote >= known, wrote - known, wrote + 2 * size - known))
        m.d.comb += self.full.eq(held == size)
        return m


class GroupMemory(Block):
    """The memory of a sub-switch: S inputs and S outputs, one of each per fast cycle.

    Members
    turn            the input and output whose cycle this is, one-hot
    valid, cell     the first cell of that input's queue; `outputs` which of ours it is for
    take            it is taken
    room            that output's buffer has room
    send, sent      one-hot: a cell is on its way to this output's buffer; the cell itself a cycle later
    """

    def __init__(self, *, group: int, size: int, width: int, stages: int):
        self.group, self.size, self.width, self.stages = group, size, width, stages
        super().__init__({
            "turn": In(group), "valid": In(1), "cell": In(width), "outputs": In(group), "take": Out(1),
            "room": In(1), "send": Out(group), "sent": Out(width),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        s, size = self.group, self.size
        address = range(max(size, 2))
        sync = m.d[FAST]

        # Queues of addresses, one per output; what is written shows after `stages` cycles.
        new = Signal(s)
        taken = Signal(address)
        joins, joining = new, taken
        for stage in range(max(self.stages, 1) - 1):
            later, where = Signal(s, name=f"joins_{stage}"), Signal(address, name=f"joining_{stage}")
            sync += [later.eq(joins), where.eq(joining)]
            joins, joining = later, where
        heads = []
        waiting = Signal(s)
        for k in range(s):
            queue = m.submodules[f"addresses_{k}"] = Memory(shape=address, depth=size, init=[])
            write, read = queue.write_port(domain=FAST), queue.read_port(domain="comb")
            head, tail = Signal(address, name=f"head_{k}"), Signal(address, name=f"tail_{k}")
            length = Signal(range(size + 1), name=f"length_{k}")
            m.d.comb += [
                write.addr.eq(tail), write.data.eq(joining), write.en.eq(joins[k]), read.addr.eq(head),
                waiting[k].eq(length != 0),
            ]  # fmt: skip
            sync += length.eq(length + joins[k] - self.send[k])
            with m.If(joins[k]):
                sync += tail.eq(step(tail, size))
            with m.If(self.send[k]):
                sync += head.eq(step(head, size))
            heads.append(read.data)
        popped = Signal(address)
        m.d.comb += [
            self.send.eq(self.turn & waiting & self.room.replicate(s)), popped.eq(select(self.turn, heads)),
        ]  # fmt: skip

        # Which outputs have yet to read an address; when none has, it is free at once.
        indicator = m.submodules.indicator = Memory(shape=s, depth=size, init=[])
        note, clear = indicator.write_port(domain=FAST), indicator.write_port(domain=FAST)
        look = indicator.read_port(domain="comb")
        left = Signal(s)
        freed = Signal()
        m.d.comb += [
            look.addr.eq(popped), left.eq(look.data & ~self.send), freed.eq(self.send.any() & (left == 0)),
            clear.addr.eq(popped), clear.data.eq(left), clear.en.eq(self.send.any() & (left != 0)),
            note.addr.eq(taken), note.data.eq(self.outputs), note.en.eq(self.take),
        ]  # fmt: skip

        pool = m.submodules.pool = Memory(shape=address, depth=size, init=list(range(size)))
        give, back = pool.read_port(domain="comb"), pool.write_port(domain=FAST)
        head = Signal(address)
        tail = Signal(address)
        length = Signal(range(size + 1), init=size)
        some = Signal()
        m.d.comb += [
            some.eq(length != 0), self.take.eq(self.valid & (some | freed)), taken.eq(Mux(some, give.data, popped)),
            new.eq(Mux(self.take, self.outputs, 0)), give.addr.eq(head),
            back.addr.eq(tail), back.data.eq(popped), back.en.eq(freed & (some | ~self.take)),
        ]  # fmt: skip
        sync += length.eq(length + back.en - (self.take & some))
        with m.If(self.take & some):
            sync += head.eq(step(head, size))
        with m.If(back.en):
            sync += tail.eq(step(tail, size))

        cells = m.submodules.cells = Memory(shape=self.width, depth=size, init=[])
        write, read = cells.write_port(domain=FAST), cells.read_port(domain=FAST)
        m.d.comb += [
            write.addr.eq(taken), write.data.eq(self.cell), write.en.eq(self.take), read.addr.eq(popped),
            self.sent.eq(read.data),
        ]  # fmt: skip
        return m


class GroupedSwitch(Block):
    """Members
    valid_in, cells_in     [i]  a cell is presented in this slow cycle
    valid_out, cells_out   [j]  the cell that left in the slow cycle before
    refused                [i]  bit c: the queue for column c had no room for the cell presented last
    """

    grants = False
    rows = 0  # what leaves in a slot is seen at its end
    clock = FAST  # that counts the cycles of a slot

    def __init__(self, *, ports: int, group: int = 4, ratio: int | None = None, depth: int = 16, inner: int = 64,
                 output: int = 64, crossing: int = 4, stages: int = 3, width: int = 256):  # fmt: skip
        require(ports % group == 0, "ports", f"a multiple of group, {group}", ports)
        require(crossing >= 1, "crossing", "at least 1 register in gates", crossing)
        cell_layout(ports, width)
        self.ports, self.group, self.ratio = ports, group, group if ratio is None else ratio
        self.depth, self.inner, self.output, self.crossing, self.stages = depth, inner, output, crossing, stages
        self.width = width
        columns = ports // group
        super().__init__({
            "valid_in": In(ports), "cells_in": In(width).array(ports),
            "valid_out": Out(ports), "cells_out": Out(width).array(ports), "refused": Out(columns).array(ports),
        })  # fmt: skip

    @property
    def slot_cycles(self) -> int:
        """Fast cycles of a slot."""
        return self.ratio

    def cycle_of(self, slot: int) -> int:
        """The last fast cycle of a slot."""
        return (slot + 1) * self.ratio - 1

    def shows(self, slot: int) -> int:
        """The fast cycle after which a cell that leaves in `slot` is at its output."""
        return self.cycle_of(slot)

    def elaborate(self, platform):
        m = Module()
        n, s, columns = self.ports, self.group, self.ports // self.group
        turn = Signal(s, init=1)
        m.d.fast += turn.eq(turn.rotate_left(1))
        edge = Signal()  # this fast cycle ends with an edge of both clocks
        if self.ratio == 1:
            m.d.comb += edge.eq(1)
        else:
            count = Signal(range(self.ratio))
            m.d.fast += count.eq(Mux(edge, 0, count + 1))
            m.d.comb += edge.eq(count == self.ratio - 1)

        queues = {}
        for i in range(n):
            wanted = self.cells_in[i][:n]
            for c in range(columns):
                queue = queues[i, c] = place(m, f"queue_{i}_{c}", Crossing(
                    width=self.width, depth=self.depth, ratio=self.ratio, stages=self.crossing, down=False
                ))  # fmt: skip
                asks = Signal(name=f"asks_{i}_{c}")
                m.d.comb += [
                    asks.eq(self.valid_in[i] & wanted[c * s : (c + 1) * s].any()),
                    queue.write.eq(asks), queue.cell.eq(self.cells_in[i]), queue.shared_edge.eq(edge),
                ]  # fmt: skip
                m.d.sync += self.refused[i][c].eq(asks & queue.full)

        buffers = {}
        for r in range(columns):
            for c in range(columns):
                self._sub_switch(m, r, c, turn, edge, queues, buffers)

        for j in range(n):
            mask = Signal(columns, init=(1 << columns) - 1, name=f"mask_{j}")
            waiting, chosen = Signal(columns, name=f"waiting_{j}"), Signal(columns, name=f"chosen_{j}")
            column = [buffers[r, j] for r in range(columns)]
            m.d.comb += [waiting.eq(Cat(buffer.waiting for buffer in column)), chosen.eq(first(waiting, mask))]
            m.d.comb += [buffer.pop.eq(chosen[r]) for r, buffer in enumerate(column)]
            m.d.sync += [
                self.valid_out[j].eq(waiting.any()),
                self.cells_out[j].eq(select(chosen, [buffer.first for buffer in column])),
            ]
            with m.If(waiting.any()):
                m.d.sync += mask.eq(beyond(chosen))
        return m

    def _sub_switch(self, m, r, c, turn, edge, queues, buffers):
        s, n = self.group, self.ports
        memory = place(
            m, f"memory_{r}_{c}", GroupMemory(group=s, size=self.inner * s, width=self.width, stages=self.stages)
        )
        mine = [queues[r * s + k, c] for k in range(s)]
        m.d.comb += [
            memory.turn.eq(turn),
            memory.valid.eq((turn & Cat(queue.waiting for queue in mine)).any()),
            memory.cell.eq(select(turn, [queue.first for queue in mine])),
            memory.outputs.eq(memory.cell[:n][c * s : (c + 1) * s]),
            *(queue.pop.eq(turn[k] & memory.take) for k, queue in enumerate(mine)),
        ]
        rooms = []
        for k in range(s):
            j = c * s + k
            buffer = buffers[r, j] = place(m, f"buffer_{r}_{j}", Crossing(
                width=self.width, depth=self.output, ratio=self.ratio, stages=self.crossing, down=True
            ))  # fmt: skip
            m.d.comb += [
                buffer.write.eq(memory.send[k]), buffer.cell.eq(memory.sent), buffer.shared_edge.eq(edge),
            ]  # fmt: skip
            rooms.append(~buffer.full)
        m.d.comb += memory.room.eq((turn & Cat(rooms)).any())
