"""The kernels of a torus: packets from node to node, the loop of hosts for each transport, and what failures need."""

import numpy as np

from weft.engine import events
from weft.engine.bits import lowest, prefetch, prefetch_at
from weft.engine.jit import apart, bare, hot, part
from weft.engine.memory import LINE
from weft.fabrics.network.kernel import PORT_SIZE
from weft.fabrics.network.state import port_at
from weft.fabrics.network.switches import accept_fifo, fail, follow, repair, wire_time
from weft.fabrics.torus import r2c2, water
from weft.fabrics.torus.r2c2 import R2C2, hopeless
from weft.fabrics.torus.state import (
    BUSY,
    COUNT,
    IDLE,
    SHARE,
    TOLD,
    back,
    cast,
    entry_at,
    farthest,
    landed,
    line,
    lines,
    loads,
    mass,
    port_of,
    shares,
    to_of,
    toward,
    twigs,
    waypoint,
)
from weft.hosts import loop, tcp
from weft.hosts.flow import PATHS, Transport, close_slot
from weft.hosts.loop import DONE, GROW_ROWS, GROW_SLOTS, PAUSED, Network, none_waiting
from weft.hosts.state import DATA, SUB, TRAFFIC, flow_at, flows, lose, packet_at, rows

__all__ = (
    "DONE",
    "GROW_FLOWS",
    "GROW_ROWS",
    "GROW_SLOTS",
    "PAUSED",
    "advance",
    "arrange",
    "cut",
    "give_up",
    "mend",
    "pour",
    "reload",
    "reroute",
    "spread",
    "survey",
)

GROW_FLOWS = 4  # why `advance_r2c2` returned, beside the reasons of `hosts.loop`
LEAST = 64  # events for which there must be room
LONG = 1 << 11  # flows that are under way from which on queues are long and no cache holds the flows
SUB_SIZE, TRAFFIC_SIZE = SUB.itemsize, TRAFFIC.itemsize
MASK, PORT_OF, LINE_SIZE = 2, 4, 16  # bytes of an entry of `toward`, of `port_of`, of a row of `lines`


@hot
def route(s, r, node):
    """The port by which packet r leaves `node`, or NONE if there is no way."""
    p = packet_at(s, r)
    target = np.int64(p.dst)
    if s.valiant == 1:
        way = np.int64(waypoint(s)[r])
        if way == node:
            waypoint(s)[r] = events.NONE
        elif way != events.NONE:
            target = way
    mask = np.uint64(toward(s)[np.uint64(target), np.uint64(node)])
    if mask == 0:
        return np.int64(events.NONE)
    several = shares(s)[mask]  # how many ports there are is as good as drawn, so one is not told from more
    ports = np.uint64(several.ports)
    count = ports >> np.uint64(COUNT)
    path = np.uint64(p.path)
    left = path * np.uint64(several.whole) >> np.uint64(SHARE)
    turn = path - left * count
    if left == 0:  # its number is used up: go on by where it is
        turn = (turn + np.uint64(node)) % count
    p.path = left
    return np.int64(port_of(s)[np.uint64(node), ports >> (turn << np.uint64(2)) & np.uint64(15)])


@hot
def route_ahead(s, r, node):
    """Choose the port by which packet r will leave `node`, which it comes to next: `echo`, of no other use here.

    So it need not wait for its route when it arrives, and the port can be prefetched. `sent` keeps its path number for
    `reroute`.
    """
    p = packet_at(s, r)
    p.sent = p.path
    p.echo = route(s, r, node)


@part
def put(s, r, k):
    """Put packet r on port k, or lose it if k is NONE."""
    if k == events.NONE:
        s.drop_route += 1
        lose(s, r)
    else:
        port, p, at = port_at(s, k), packet_at(s, r), np.uint64(k)
        if s.ahead == 1:
            route_ahead(s, r, np.int64(port.to))
        busy = lines(s)[at, BUSY]
        idle = max(s.now - busy, 0)
        lines(s)[at, IDLE] += idle  # not in the port, whose count is a cache line away
        port.busy = busy + idle
        accept_fifo(s, r, k, s.full_time if p.size == s.full else wire_time(port, p.size))
        lines(s)[at, BUSY] = port.busy


@part
def forward(s, r, host):
    """Take packet r from its node, with a random node to go by where Valiant is on."""
    if s.valiant == 1 and s.chosen == 1 and not r2c2.is_spread(s, r):
        waypoint(s)[r] = events.NONE
    elif s.valiant == 1:
        p = packet_at(s, r)
        nodes = np.uint32(s.toward_size)
        left = np.uint32(p.path) // nodes
        way = np.int64(np.uint32(p.path) - left * nodes)
        p.path = left
        there = way == host or toward(s)[way, host] != 0
        onward = way == p.dst or toward(s)[p.dst, way] != 0
        waypoint(s)[r] = way if there and onward else events.NONE
    put(s, r, route(s, r, host))


@part
def arrive(s, r):
    """Packet r has crossed its port. True if it has reached its node."""
    p = packet_at(s, r)
    s.hops += 1
    s.crossed += np.int64(p.size)
    port = port_at(s, p.port)
    if p.epoch != port.epoch:
        s.drop_down += 1
        lose(s, r)
        return False
    follow(s, np.int64(p.port))
    node = np.int64(port.to)
    if node == p.dst and (s.valiant == 0 or waypoint(s)[r] == events.NONE or waypoint(s)[r] == node):
        return True
    put(s, r, np.int64(p.echo) if s.ahead == 1 else route(s, r, node))
    return False


@part
def one_path(s, src, dst):
    """For transports that do not walk all paths in turn."""
    return 1


@apart
def look_farther(s):
    """Do as much for the later packet, and for one due in the same bucket as this, where no cache holds them all."""
    prefetch_next(s, s.later_row)
    if s.first < s.last:
        prefetch_next(s, events.following(s, 0))


@hot
def prefetch_port(s, k):
    """Prefetch what port k needs to take a packet."""
    prefetch_at(s.ports_at + PORT_SIZE * k)
    prefetch_at(s.lines_at + LINE_SIZE * k)


@hot
def prefetch_next(s, r):
    """Prefetch the packet behind packet r, and what it needs itself: its next port, or at its last hop its flow."""
    p = packet_at(s, r)
    port = port_at(s, p.port)
    prefetch(rows(s), np.int64(port.head))
    prefetch_port(s, np.int64(p.echo))
    if port.to == p.dst:
        slot = np.int64(p.flow)
        prefetch(flows(s), slot)
        prefetch_at(s.subs_at + SUB_SIZE * slot + LINE)
        prefetch_at(s.traffic_at + TRAFFIC_SIZE * np.int64(p.id))


@hot
def look_ahead(s):
    """Prefetch the port of a later packet, and of the next one the packet behind it, and its next port, or where that
    is not known the mask it will ask for, and the ports of the node that it comes to."""
    prefetch_at(s.ports_at + PORT_SIZE * np.int64(packet_at(s, s.later_row).port))
    p = packet_at(s, s.next_row)
    port = port_at(s, p.port)
    prefetch(rows(s), np.int64(port.head))
    if s.ahead == 1:
        prefetch_port(s, np.int64(p.echo))
        if s.used_slots >= LONG:
            look_farther(s)
    else:
        prefetch_at(s.toward_at + MASK * (np.int64(p.dst) * s.toward_size + np.int64(port.to)))
        prefetch_at(s.port_of_at + PORT_OF * np.int64(port.to) * s.degree)


NETWORK = Network(forward=forward, arrive=arrive, waiting=none_waiting, paths=one_path, look_ahead=look_ahead)


@part
def begin_tcp(s, slot):
    """Start a flow, if there is a path for it or may be one."""
    if hopeless(s, slot):
        s.abandoned += 1
        close_slot(s, slot)
    else:
        tcp.begin(s, slot)


TCP = Transport(begin=begin_tcp, receive=tcp.TCP.receive, fire=tcp.TCP.fire, pace=tcp.TCP.pace, room=tcp.TCP.room)


@hot
def _room(s):
    """How many flows there is room for in the tables of those that are known, whatever they put on ports."""
    return min((s.loads_size - s.used_loads) // s.ports_size - s.heard, s.entries_size - s.used_entries)


@bare
def advance_r2c2(world, until, budget):
    """Run R2C2: see `hosts.loop.advance`. GROW_FLOWS where the tables of known flows may not do for LEAST events.

    An event adds one flow at most, so it runs as many as there is room for flows, and looks again.
    """
    s = world[0]
    why = np.int64(PAUSED)
    while budget > 0 and why == PAUSED:
        room = _room(s)
        if room < min(budget, LEAST):
            r2c2.lay_heard(s)
            room = _room(s)
        if room < min(budget, LEAST):
            return np.int64(GROW_FLOWS)
        some = min(budget, room)
        why = np.int64(loop.advance(s, until, some, R2C2, NETWORK))
        budget -= some
    return why


@bare
def advance_tcp(world, until, budget):
    """Run TCP or DCTCP."""
    return loop.advance(world[0], until, budget, TCP, NETWORK)


def advance(transport: str, world, until: int, budget: int) -> int:
    """Run to `until` inclusive, or for `budget` events, and say why it stopped; only this transport is compiled."""
    return (advance_r2c2 if transport == "r2c2" else advance_tcp)(world, until, budget)


@bare
def cut(world, k):
    """Take port k down."""
    s = world[0]
    port = port_at(s, k)
    s.broken += port.up
    port.busy = lines(s)[k, BUSY]
    fail(s, k)
    lines(s)[k, BUSY] = s.now
    lines(s)[k, IDLE] += port.idle
    port.idle = 0


@bare
def mend(world, k):
    """Bring port k up."""
    s = world[0]
    s.broken -= 1 - port_at(s, k).up
    repair(s, k)


@bare
def give_up(world, r2c2_runs):
    """Drop the flows for which there is no path any more."""
    s = world[0]
    for slot in range(s.used_slots):
        if flow_at(s, slot).id >= 0 and hopeless(s, slot):
            if r2c2_runs:
                r2c2.give_up(s, slot)
            else:
                s.abandoned += 1
                close_slot(s, slot)
    if r2c2_runs:
        r2c2.sort_free(s)


@bare
def reload(world):
    """Lay out the loads of all flows that are known anew: routes have changed. There must be room for them."""
    s = world[0]
    s.used_loads = 0
    for e in range(s.used_entries):
        entry = entry_at(s, e)
        if entry.state == TOLD:
            r2c2.lay(s, e)
    for e in range(s.used_entries):
        if entry_at(s, e).state == TOLD:
            water.add(s, e, 1)


@bare
def reroute(world):
    """Choose once more the ports of next hops that were chosen ahead: routes have changed."""
    s = world[0]
    for r in range(s.used):
        p = packet_at(s, r)
        if p.kind == DATA and 0 <= p.sent < PATHS:  # else a free row
            p.path = p.sent
            route_ahead(s, r, np.int64(port_at(s, p.port).to))


@bare
def arrange(world):
    """Fill `farthest` and `twigs`."""
    s = world[0]
    line_, mass_ = line(s), mass(s)
    for src in range(s.farthest_size):
        row = toward(s)[src]
        line_[0] = src
        mass_[src] = 1
        first, last = 0, 1
        while first < last:  # the nodes that it reaches, the nearest first; `mass` is one more than how far
            node = np.int64(line_[first])
            first += 1
            for p in range(s.degree):
                there = np.int64(to_of(s)[node, p])
                if mass_[there] == 0 and (row[there] >> back(s)[p]) & 1:
                    mass_[there] = mass_[node] + 1
                    line_[last] = there
                    last += 1
        farthest(s)[src] = mass_[line_[last - 1]] - 1
        for i in range(last):
            mass_[line_[i]] = 0
    for src in range(s.twigs_size):
        for tree in range(s.trees):
            for node in range(s.toward_size):
                k = r2c2.twig(s, src, node, tree)
                if k != events.NONE:
                    mass_[k >> 6] |= 1 << (k & 63)
            row, last = twigs(s)[src, tree], 0
            for w in range((s.ports_size + 63) >> 6):  # in their order, in which they lie in memory
                bits, mass_[w] = np.uint64(mass_[w]), 0
                while bits != 0:
                    row[last] = 64 * w + lowest(bits)
                    bits &= bits - np.uint64(1)
                    last += 1
            row[s.toward_size - 1] = last


@bare
def spread(world, sums):
    """Fill `cast` and `landed`; sums is (2, nodes, ports) int64 zeros."""
    s = world[0]
    nodes = s.toward_size
    for a in range(nodes):
        for b in range(nodes):
            if a != b:
                count = water.lay(s, a, b, 0)
                for i in range(count):
                    load = loads(s)[i]
                    sums[0, a, load.port] += load.part
                    sums[1, b, load.port] += load.part
    for a in range(nodes):
        for k in range(s.ports_size):
            cast(s)[a, k] = sums[0, a, k] // nodes
            landed(s)[a, k] = sums[1, a, k] // nodes


@bare
def survey(world, rows_of_queues, rows_of_lines, queued, worked):
    """Add what waits at each port, and how long it has sent so far, to its rows; what waits in all."""
    s = world[0]
    total = np.int64(0)
    for k in range(s.ports_size):
        waiting = np.int64(port_at(s, k).packets)
        total += waiting
        queued[rows_of_queues[k]] += waiting
        worked[rows_of_lines[k]] += min(lines(s)[k, BUSY], s.now) - lines(s)[k, IDLE]
    return total


@bare
def pour(world):
    """Compute the rates of the flows that are known, for those who only want to know them."""
    water.pour(world[0])
