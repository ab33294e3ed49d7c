"""Memory in which bytes and words wait in order: what the groomer's ports are made of.

The first byte of a `Ring` always shows. In LUTs it is read without a clock; in block RAM the place that comes next is
read ahead, so that whoever takes a byte sees the next one in the next cycle either way. What was written since the last
`keep` can be taken back.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.errors import require
from weft.rtl.parts import Block


class Ring(Block):
    """Members
    write, octet   a byte joins
    keep, undo     what was written until now, now included, is to stay; or what was since then is to go
    skip           so many of the first bytes leave
    first          the first byte
    full           there is no room: a byte that joins now is lost
    """

    def __init__(self, size: int, block: bool = False):
        require(size >= 2 and size & (size - 1) == 0, "buffer", "a power of two", size)
        self.size, self.block = size, block
        super().__init__({
            "write": In(1), "octet": In(8), "keep": In(1), "undo": In(1), "skip": In(range(size + 1)),
            "first": Out(8), "full": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        size = self.size
        head, tail, mark = (Signal(range(2 * size), name=name) for name in ("head", "tail", "mark"))
        ahead = Signal(range(2 * size))
        behind = Signal(range(2 * size))
        bytes_ = m.submodules.bytes = Memory(shape=8, depth=size, init=[])
        write = bytes_.write_port()
        read = bytes_.read_port(transparent_for=(write,)) if self.block else bytes_.read_port(domain="comb")
        m.d.comb += [
            ahead.eq(head + self.skip), behind.eq(tail + write.en),
            self.full.eq((tail ^ head) == size),
            write.addr.eq(tail), write.data.eq(self.octet), write.en.eq(self.write & ~self.full),
            read.addr.eq(ahead if self.block else head), self.first.eq(read.data),
        ]  # fmt: skip
        m.d.sync += [head.eq(ahead), tail.eq(Mux(self.undo, mark, behind))]
        with m.If(self.keep):
            m.d.sync += mark.eq(behind)
        return m


class Fifo(Block):
    """Words in order, in LUTs, as many as `depth`; the first always shows.

    Members
    write, word    a word joins
    take           the first leaves
    ready, first   whether there is one, and which
    full           there is no room: a word that joins now must not
    """

    def __init__(self, width: int, depth: int):
        self.width, self.depth = width, 1 << max(depth - 1, 1).bit_length()
        super().__init__({
            "write": In(1), "word": In(width), "take": In(1), "ready": Out(1), "first": Out(width), "full": Out(1),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        head, tail = (Signal(range(2 * self.depth), name=name) for name in ("head", "tail"))
        words = m.submodules.words = Memory(shape=self.width, depth=self.depth, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(tail), write.data.eq(self.word), write.en.eq(self.write), read.addr.eq(head),
            self.first.eq(read.data), self.ready.eq(head != tail), self.full.eq((tail ^ head) == self.depth),
        ]  # fmt: skip
        m.d.sync += [head.eq(head + self.take), tail.eq(tail + self.write)]
        return m
