"""An output-queued switch without a topology: the smallest network that hosts can use, to be copied.

A packet leaves its host in order, arrives at the switch, and waits in the one queue of its destination, which drops
what does not fit and marks what finds more than `mark` packets. Kernel and twin stand side by side.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import carray

from weft.engine import events, fingerprint, memory
from weft.engine.jit import bare, part, view
from weft.engine.views import bind, pointer
from weft.hosts import loop, nic, reference, state
from weft.hosts.dcqcn import DCQCN
from weft.hosts.flow import time_at
from weft.hosts.ndp import NDP
from weft.hosts.settings import WIRE, settings
from weft.hosts.state import DATA, MARKED, host_at, lose, packet_at, rows
from weft.hosts.tcp import TCP
from weft.units import Gbps, us, wire_time


@dataclass(frozen=True, kw_only=True)
class Ideal:
    hosts: int = 4
    link: int = 10 * Gbps
    delay: int = 1 * us  # of each of the two wires
    mtu: int = 1500
    transport: str = "tcp"
    buffer: int = 20  # packets a destination's queue holds …
    mark: int = 5  # … and above which it marks
    ties: str = "fifo"

    @cached_property
    def settings(self):
        return settings(self.transport)

    @property
    def payload(self):
        return self.mtu - self.settings.header

    @property
    def wire_size(self):
        return self.mtu + WIRE


# the kernel

UP, DOWN = 0, 1  # `port` of a packet: to the switch, or to its host
WORLD = state.world(("delay", "capacity", "mark_above"), ("busy",))


@dataclass
class State(state.Arrays):
    busy: np.ndarray  # (hosts,) int64  when the queue of a destination will be empty, ps


@view
def busy(s):
    return carray(pointer(s.busy_at), (s.busy_size,), np.int64)


@part
def forward(s, r, host):
    p = packet_at(s, r)
    p.port = UP
    events.push(s, rows(s), r, nic.leave(s, host, p.size) + s.delay)


@part
def arrive(s, r):
    p = packet_at(s, r)
    if p.port == DOWN:
        return True
    backlog = max(busy(s)[p.dst] - s.now, 0)
    took = time_at(p.size, host_at(s, p.dst).rate)
    if backlog + took > s.capacity:
        lose(s, r)
        return False
    if p.kind == DATA and backlog > s.mark_above:
        p.flags |= MARKED
    p.port = DOWN
    busy(s)[p.dst] = s.now + backlog + took
    events.push(s, rows(s), r, s.now + backlog + took + s.delay)
    return False


@part
def one_path(s, src, dst):
    return 1


NETWORK = loop.Network(
    forward=forward, arrive=arrive, waiting=loop.none_waiting, paths=one_path, look_ahead=loop.nothing_ahead
)


@bare
def advance_tcp(world, until, budget):
    return loop.advance(world[0], until, budget, TCP, NETWORK)


@bare
def advance_ndp(world, until, budget):
    return loop.advance(world[0], until, budget, NDP, NETWORK)


@bare
def advance_dcqcn(world, until, budget):
    return loop.advance(world[0], until, budget, DCQCN, NETWORK)


def lay_out(fabric, flows, seed=0):
    """The arrays of a run to which nothing has happened."""
    arrays = State(
        **memory.zeros({"world": (1, WORLD), **state.tables(fabric, flows), "busy": (fabric.hosts, np.int64)})
    )
    full = wire_time(fabric.wire_size, fabric.link)
    state.begin(arrays, fabric, flows, seed=seed, shift=events.shift_for(full // fabric.hosts))
    arrays.hosts["rate"] = fabric.link
    arrays.world["delay"] = fabric.delay
    arrays.world["capacity"] = fabric.buffer * full
    arrays.world["mark_above"] = fabric.mark * full
    bind(arrays.world, **{name: getattr(arrays, name) for name in (*state.TABLES, "busy")})
    return arrays


def run(fabric, flows, seed=0, until=1 << 60):
    """(arrays, fingerprint) at the end of a run."""
    arrays = lay_out(fabric, flows, seed)
    kernel = {"ndp": advance_ndp, "dcqcn": advance_dcqcn}.get(fabric.settings.transport, advance_tcp)
    while (why := kernel(arrays.world, until, 100_000)) != loop.DONE:
        grow = {loop.GROW_ROWS: state.PER_PACKET, loop.GROW_SLOTS: state.PER_FLOW}.get(why, ())
        longer = memory.longer({name: getattr(arrays, name) for name in grow})
        vars(arrays).update(longer)
        bind(arrays.world, **longer)
    return arrays, fingerprint.show(arrays.print)


# the twin


class Switch(reference.Hosts):
    def __init__(self, fabric, flows, seed):
        super().__init__(fabric, flows, seed)
        self.line = [0] * fabric.hosts
        self.busy = [0] * fabric.hosts

    def forward(self, packet, host):
        self.line[host] = max(self.line[host], self.now) + wire_time(packet.size, self.fabric.link)
        self.at(self.line[host] + self.fabric.delay, lambda: self.arrive(packet))

    def arrive(self, packet):
        fabric, full = self.fabric, wire_time(self.fabric.wire_size, self.fabric.link)
        backlog = max(self.busy[packet.dst] - self.now, 0)
        took = wire_time(packet.size, fabric.link)
        if backlog + took > fabric.buffer * full:
            return self.lose(packet)
        packet.marked |= packet.kind == "data" and backlog > fabric.mark * full
        self.busy[packet.dst] = self.now + backlog + took
        return self.at(self.busy[packet.dst] + fabric.delay, lambda: self.deliver(packet))
