"""A greedy scheduler for any topology: a flow gets the first path that has room, and links carry no more than they can.

In each slot short flows with deadlines come first, the earliest first. Then hosts in the order in which they last sent,
each to the first host at or after its pointer that a path is left to. On the way every switch tries the ports of a
shortest path in turn, beginning with another one for each host and slot.

A port has room for a flow of b bytes at r b/s

- if it has bytes of this slot left, and nothing of slots before,
- and if the rates of its flows fit into its own, so that nothing has to wait,
- or if all that could pile up fits into the switch's buffer: all bytes but those of one flow, which the port sends
  meanwhile (`plan.verify` says the same of a finished schedule).

With a buffer of 0 and equal links that is: no link twice in a slot. Hosts of different rates need no buffer, as a
flow is sent at the rate of its slowest link and a fast sender is shared by slow receivers (§4.3). With a buffer a flow
that has less than a slot's worth may join others, at its sender and at its receiver; and with `spill` a fast sender may
send a slot's worth at once, which the switch sends on during the following slots.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.bits import lowest
from weft.engine.jit import kernel, part
from weft.errors import require
from weft.fabrics.tdma.plan import NEVER
from weft.fabrics.tdma.schedulers.base import Scheduler, grants_of, room_for
from weft.topology.routes import HERE

_0, _1 = np.uint64(0), np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
HOPS = 16  # ports of the longest path


class Ways(NamedTuple):
    """Where flows may go: `Routes`, and what a link carries."""

    anchor: np.ndarray  # (hosts,) int32  column of a destination
    down: np.ndarray  # (hosts,) int32  port from its switch to a host
    row: np.ndarray  # (nodes,) int32  row of a switch
    table: np.ndarray  # (rows, anchors) int32  group of ports
    first: np.ndarray  # (groups,) int32
    count: np.ndarray  # type: ignore[assignment]  # (groups,) int32; hides tuple.count
    choices: np.ndarray  # int32
    receiver: np.ndarray  # (ports,) int32  node that a port leads to
    own: np.ndarray  # (hosts,) int32  port with which a host sends
    rate: np.ndarray  # (ports,) int64  in the largest unit of which all rates are multiples
    capacity: np.ndarray  # (ports,) int64  bytes in a slot
    narrow: np.ndarray  # (rows, anchors, 2) int64  rate of the widest path, and the bytes it carries in a slot


class Load(NamedTuple):
    """What ports carry in a slot."""

    bytes: np.ndarray  # (ports,) int64  granted in this slot
    rates: np.ndarray  # (ports,) int64  summed over its flows
    sent: np.ndarray  # (ports,) int64  bytes of the flow of which the port sends most while the others pile up
    waiting: np.ndarray  # (ports,) int64  left over from slots before


@kernel
def _narrow(ways, order, narrow):
    """The widest shortest path from every row to every anchor; order (rows, anchors) is rows by their distance."""
    for c in range(ways.table.shape[1]):
        for k in range(order.shape[0]):
            r = order[k, c]
            group = ways.table[r, c]
            if group == HERE:
                narrow[r, c, :] = np.int64(1) << 62
            elif group >= 0:
                for x in range(ways.first[group], ways.first[group] + ways.count[group]):
                    p = ways.choices[x]
                    beyond = narrow[ways.row[ways.receiver[p]], c]
                    narrow[r, c, 0] = max(narrow[r, c, 0], min(ways.rate[p], beyond[0]))
                    narrow[r, c, 1] = max(narrow[r, c, 1], min(ways.capacity[p], beyond[1]))


@part
def _fits(p, b, r, host, buffer, ways, load):
    """Whether port p has room for b bytes at rate r; `host` says that a host sends with it."""
    if load.waiting[p] > 0:
        return False
    rate = ways.rate[p]
    together = load.bytes[p] + b
    if load.rates[p] + r <= rate:
        return together <= ways.capacity[p]
    if buffer == 0:
        return False
    if host:
        return together <= ways.capacity[p]
    most = max(load.sent[p], _share(b, rate, r))
    over = together - ways.capacity[p]
    if over > 0 and load.bytes[p] > 0:
        return False
    return max(together - most, over) <= buffer


@part
def _share(b, rate, r):
    """b * rate / r, at most b: bytes that a port sends while b bytes come in."""
    return b if rate >= r else b * rate // r


@part
def _path(i, j, b, r, turn, buffer, ways, load, ports, at, stack):
    """Write the first path from i to j with room between its ends for b bytes at rate r; its ports, or 0 for none."""
    ports[at] = ways.own[i]
    c = ways.anchor[j]
    node = ways.receiver[ways.own[i]]
    depth = 0
    stack[0] = 0
    while True:
        group = ways.table[ways.row[node], c]
        if group == HERE:
            ports[at + depth + 1] = ways.down[j]
            return depth + 2
        moved = False
        if group >= 0:
            count = ways.count[group]
            while stack[depth] < count:
                p = ways.choices[ways.first[group] + (stack[depth] + turn) % count]
                stack[depth] += 1
                if _fits(p, b, r, False, buffer, ways, load):
                    depth += 1
                    ports[at + depth] = p
                    stack[depth] = 0
                    node = ways.receiver[p]
                    moved = True
                    break
        if not moved:
            if depth == 0:
                return 0
            depth -= 1
            node = ways.receiver[ports[at + depth]]


@part
def _commit(b, r, ways, load, ports, at, hops):
    for x in range(at, at + hops):
        p = ports[x]
        load.bytes[p] += b
        load.rates[p] += r
        load.sent[p] = max(load.sent[p], _share(b, ways.rate[p], r))


@part
def _amount(i, j, left, spill, buffer, ways, load):
    """(bytes, rate) that i may send to j now; 0 bytes for none."""
    own, down = ways.own[i], ways.down[j]
    narrow = ways.narrow[ways.row[ways.receiver[own]], ways.anchor[j]]
    path = min(narrow[0], ways.rate[own])
    r = min(path, ways.rate[down])
    if spill and path > r:
        b = min(left, min(ways.capacity[own], narrow[1]))
        whole = b == left or load.bytes[own] == 0
        if whole and load.bytes[down] == 0 and max(b - _share(b, r, path), b - ways.capacity[down]) <= buffer:
            return b, path
    b = min(left, min(narrow[1], min(ways.capacity[own], ways.capacity[down])))
    if b < left and (load.bytes[own] + b > ways.capacity[own] or load.bytes[down] > 0):
        return np.int64(0), r  # a part of a flow takes a slot of its own
    return b, r


@kernel
def fill(left, due, slots, spill, buffer, alike, ways, load, order, pointer, out, rates):
    """Fill `slots` slots from left[i, j], which is used up. Returns how many grants there are.

    due (m, 4) int64: [deadline, i, j, bytes], the earliest first; the bytes are used up. alike: all links have one
    rate. order (n,) and pointer (n,) are the scheduler's memory: who sends first, and to whom.
    """
    when, src, dst, size, start, ports = out
    n = left.shape[0]
    words = (n + 63) >> 6
    rows, anchors = ways.table.shape
    wants = np.zeros((n, words), np.uint64)
    for i in range(n):
        for j in range(n):
            if left[i, j] > 0:
                wants[i, j >> 6] |= _1 << np.uint64(j & 63)
    behind = np.zeros((anchors, words), np.uint64)  # hosts of an anchor
    for j in range(n):
        behind[ways.anchor[j], j >> 6] |= _1 << np.uint64(j & 63)
    open_ = np.empty(words, np.uint64)  # hosts that may get a flow in this slot
    closed = np.zeros((rows, words), np.uint64)  # hosts that no path is left to from a switch: for links used once
    stack = np.zeros(HOPS, np.int64)
    sent = np.zeros(n, np.bool_)
    fresh = np.empty(n, np.int32)
    once = alike and buffer == 0
    grants, at = 0, 0
    for t in range(slots):
        load.bytes[:] = 0
        load.rates[:] = 0
        load.sent[:] = 0
        open_[:] = _ALL
        closed[:] = _0
        sent[:] = False
        for turn in range(due.shape[0] + n):
            urgent = turn < due.shape[0]
            i = due[turn, 1] if urgent else order[turn - due.shape[0]]
            here = ways.row[ways.receiver[ways.own[i]]]
            at_place = np.int64(pointer[i])
            begin = at_place
            lap = 0
            while True:
                if urgent:
                    j = np.int64(due[turn, 2])
                    if left[i, j] == 0 or due[turn, 3] <= 0 or lap == 1:
                        break
                    lap = 1
                else:  # the next host at or after the pointer that may get something; around once
                    j = np.int64(-1)
                    while lap < 2:
                        end = 64 * words if lap == 0 else begin
                        w = at_place >> 6
                        while w << 6 < end:
                            word = wants[i, w] & open_[w] & ~closed[here, w]
                            if w << 6 < at_place:
                                word &= _ALL << np.uint64(at_place - (w << 6))
                            if word != _0:
                                found = (w << 6) + lowest(word)
                                if found < end:
                                    j = found
                                break
                            w += 1
                        if j >= 0:
                            break
                        lap += 1
                        at_place = 0
                    if j < 0:
                        break
                    at_place = j + 1
                own, down = ways.own[i], ways.down[j]
                b, r = _amount(i, j, left[i, j], spill, buffer, ways, load)
                if b == 0 or not _fits(own, b, r, True, buffer, ways, load):
                    if once:
                        break  # its own link is used
                    continue
                if not _fits(down, b, r, False, buffer, ways, load):
                    continue
                hops = _path(i, j, b, r, i + t, buffer, ways, load, ports, at, stack)
                if hops == 0:
                    if once:
                        for w in range(words):
                            closed[here, w] |= behind[ways.anchor[j], w]
                    continue
                _commit(b, r, ways, load, ports, at, hops)
                when[grants], src[grants], dst[grants], size[grants], start[grants] = t, i, j, b, at
                rates[grants] = r
                at += hops
                grants += 1
                left[i, j] -= b
                if left[i, j] == 0:
                    wants[i, j >> 6] &= ~(_1 << np.uint64(j & 63))
                if urgent:
                    due[turn, 3] -= b
                else:
                    pointer[i] = (j + 1) % n
                sent[i] = True
                if (buffer == 0 and load.rates[down] >= ways.rate[down]) or load.bytes[down] >= ways.capacity[down]:
                    open_[j >> 6] &= ~(_1 << np.uint64(j & 63))
                if (buffer == 0 and load.rates[own] >= ways.rate[own]) or load.bytes[own] >= ways.capacity[own]:
                    break
        for p in range(load.bytes.size):
            load.waiting[p] = max(np.int64(0), load.waiting[p] + load.bytes[p] - ways.capacity[p])
        k = 0
        for pass_ in range(2):  # those that did not send come first, each half in its order
            for x in range(n):
                if sent[order[x]] == (pass_ == 1):
                    fresh[k] = order[x]
                    k += 1
        order[:] = fresh
    start[grants] = at
    return grants


class Greedy(Scheduler):
    """Any topology, mixed rates, deadlines, and with a buffer several flows to a slot."""

    name = "greedy"
    takes = "any"
    shares = True
    hurries = True

    def __init__(self, network, spill: bool = False):
        super().__init__(network)
        self.spill = spill
        n = network.hosts
        self.around(network)
        zeros = [np.zeros(network.graph.ports, np.int64) for _ in Load._fields]
        self._load = Load(*zeros)
        self.order = np.arange(n, dtype=np.int32)
        self.pointer = (np.arange(n, dtype=np.int32) + 1) % n

    def around(self, network):
        self.network, way = network, network.routes
        _, receiver = network.graph.port_ends()
        distance = _distances(network, way)
        self.hops = int(distance[distance <= HOPS].max(initial=0)) + 2
        require(self.hops < HOPS, "a path", f"of fewer than {HOPS} hops", self.hops)
        self._unit = int(np.gcd.reduce(network.rate))
        narrow = np.zeros((*way.table.shape, 2), np.int64)
        units = network.rate // self._unit
        self._ways = Ways(*way, receiver, network.host_port, units, network.capacity, narrow)  # type: ignore[call-arg]
        _narrow(self._ways, np.argsort(distance, axis=0, kind="stable").astype(np.int32), narrow)

    def arrays(self):
        return {"order": self.order, "pointer": self.pointer, "waiting": self._load.waiting}

    def bound(self, slots):
        """A host that has bytes becomes the first in the order within n slots, and the first is never refused."""
        return None if self._load.waiting.any() else self.network.hosts

    def plan(self, demand, slots):
        self._check(demand, slots)
        network = self.network
        due = np.zeros((0, 4), np.int64)
        if demand.due is not None:
            i, j = np.nonzero((demand.due < NEVER) & (demand.want > 0))
            when = demand.due[i, j]
            kept = np.lexsort((j, i, when))
            some = demand.want if demand.urgent is None else np.minimum(demand.want, demand.urgent)
            due = np.stack([when, i, j, some[i, j]], axis=1)[kept].astype(np.int64)
        alike = bool((network.rate == network.rate[0]).all())
        pairs = 0 if alike and network.buffer == 0 else np.count_nonzero(demand.want)
        room = slots * network.hosts + pairs + 1  # a grant has a slot of its own, or is the last of its pair
        out, rates = room_for(room, self.hops), np.empty(room, np.int64)
        grants = fill(
            demand.want.copy(), due, slots, self.spill, network.buffer, alike, self._ways, self._load, self.order,
            self.pointer, out, rates,
        )  # fmt: skip
        return grants_of(network, slots, out, grants, rates[:grants] * self._unit)


def _distances(network, way) -> np.ndarray:
    """(rows, anchors) int64: hops from each switch to each anchor; more than HOPS where there is no way."""
    rows, anchors = way.table.shape
    _, receiver = network.graph.port_ends()
    distance = np.full((rows, anchors), 2 * HOPS, np.int64)
    distance[way.table == HERE] = 0
    head = np.array([way.choices[k] for k in way.first], np.int64) if way.first.size else np.zeros(0, np.int64)
    following = way.row[receiver[head]] if head.size else head  # row after the first port of a group: all are as far
    for _ in range(HOPS):
        r, c = np.nonzero(way.table >= 0)
        distance[r, c] = np.minimum(distance[r, c], distance[following[way.table[r, c]], c] + 1)
    return distance
