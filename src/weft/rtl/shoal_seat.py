"""A seat of Shoal's NIC: one pair of nodes, its backlog, its throttles, and the cells of it that are sent again.

A throttle is the number of cells that must wait here before another cell of the subflow may join them. It is set by
feedback and counts down at each visit of the link, once an epoch; all ones is "nothing heard yet".
"""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.rtl.parts import Block
from weft.wire.shoal import HEADER

BACKLOG = 24  # bits of the cells that a seat may have left to send
NODE, SEQ, THROTTLE = (dict(HEADER.fields)[name] for name in ("dst", "seq", "feedback"))
AWAY = (1 << THROTTLE) - 1


class Seat(Block):
    """A pair and its throttles, one for each link.

    Members
    between                  once a slot, when all has been sent: time passes
    command, open, new_dst, cells   the host opens the seat, or adds cells
    link                     whose throttle is looked at; read at the next edge
    length                   cells that wait for that link
    may, old                 eq. (2) lets it send; it is old enough for a queue of that length
    parted                   it is known that what goes over that link does not reach its destination
    take                     a cell is released
    visit, away, free        the throttle counts down, or becomes "nothing heard yet", or nothing
    hear, throttle           feedback sets it …
    again                    … unless nothing has been heard yet: the feedback is on a cell before the last
    repeat, repeat_seq       a cell is to be sent again, before others (where `failures` are known of)
    dst, seq                 where to, and the number of the next cell
    """

    unheard = AWAY  # what a throttle is once a cell has been released

    def __init__(self, *, nodes: int, epoch: int, age_interval: int, failures: bool = False):
        self.nodes, self.epoch, self.age_interval, self.failures = nodes, epoch, age_interval, failures
        super().__init__({
            "between": In(1), "command": In(1), "open": In(1), "new_dst": In(NODE), "cells": In(BACKLOG),
            "link": In(max((nodes - 1).bit_length(), 1)), "length": In(range(nodes + 2)), "may": Out(1), "old": Out(1),
            "take": In(1), "visit": In(1), "away": In(1), "free": In(1), "hear": In(1), "throttle": In(THROTTLE),
            "again": In(1), "dst": Out(NODE), "seq": Out(SEQ),
        } | ({"parted": In(1), "repeat": In(1), "repeat_seq": In(SEQ)} if failures else {}))  # fmt: skip

    @property
    def aged(self) -> int:
        """The age from which a flow may use every queue."""
        return max((self.nodes - 1).bit_length(), 1)

    def elaborate(self, platform):
        m = Module()
        every = self.age_interval
        backlog = Signal(BACKLOG)
        young = Signal(range(self.epoch + 2))
        number = Signal(SEQ)
        age = Signal(range(self.aged + 1))
        count = Signal(range(max(every, 2)))
        busy = Signal()
        throttles = m.submodules.throttles = Memory(shape=THROTTLE, depth=self.nodes, init=[])
        read, write = throttles.read_port(), throttles.write_port()
        need = Signal(THROTTLE)
        left = Signal(THROTTLE)
        m.d.comb += [
            need.eq(Mux(young != 0, 0, read.data)),  # while young, it is of the pair that had the seat before
            self.may.eq(busy & (need != AWAY) & (self.length >= need) & ~(self.parted if self.failures else Const(0))),
            self.old.eq(1 if every == 0 else (age == self.aged) | (self.length <= (1 << age))),
            left.eq(Mux((need == 0) | (need == AWAY), need, need - 1)),
            read.addr.eq(self.link), write.addr.eq(self.link),
            write.en.eq(self.visit | self.hear & ~(self.again & (read.data == AWAY))),
            write.data.eq(Mux(self.hear, self.throttle, Mux(self.free, 0, Mux(self.away, self.unheard, left)))),
        ]  # fmt: skip
        fresh = Signal()  # nothing was left until a command of this slot
        some, first = self._repeats(m) if self.failures else (Const(0), number)
        m.d.comb += [busy.eq((backlog != 0) | some), self.seq.eq(Mux(some, first, number))]
        with m.If(self.take & ~some):
            m.d.sync += [backlog.eq(backlog - 1), number.eq(number + 1)]
        with m.If(self.between):  # for the next slot
            m.d.sync += fresh.eq(0)
            with m.If(young != 0):
                m.d.sync += young.eq(young - 1)
            if every:
                m.d.sync += count.eq(Mux(count == every - 1, 0, count + 1))
                with m.If((count == every - 1) & (age != self.aged)):
                    m.d.sync += age.eq(age + 1)
        with m.If(self.command):
            with m.If(self.open | ~busy):
                m.d.sync += [age.eq(0), count.eq(0), fresh.eq(1)]
            with m.If(self.open):
                m.d.sync += [
                    self.dst.eq(self.new_dst), number.eq(0), young.eq(self.epoch), backlog.eq(self.cells),
                ]  # fmt: skip
            with m.Else():
                m.d.sync += backlog.eq(backlog + self.cells)
        if self.failures and every:
            # what is to be repeated came to be in this slot, which is over: a slot of its age has passed
            with m.If(self.repeat & (~busy | fresh)):
                m.d.sync += [age.eq(int(every == 1)), count.eq(int(every > 1)), fresh.eq(0)]
        return m

    def _repeats(self, m):
        """The numbers of the cells that are to be sent again, in order: whether there is one, and the first."""
        depth = (
            1 << (4 * self.nodes - 1).bit_length()
        )  # of each peer that fails, three cells at most and one that waits
        head, tail = Signal(range(depth), name="repeats_head"), Signal(range(depth), name="repeats_tail")
        numbers = m.submodules.repeats = Memory(shape=SEQ, depth=depth, init=[])
        write, read, some = numbers.write_port(), numbers.read_port(domain="comb"), Signal(name="repeats_some")
        m.d.comb += [
            write.addr.eq(tail), write.data.eq(self.repeat_seq), write.en.eq(self.repeat), read.addr.eq(head),
            some.eq(head != tail),
        ]  # fmt: skip
        m.d.sync += [tail.eq(tail + self.repeat), head.eq(head + (self.take & some))]
        return some, read.data
