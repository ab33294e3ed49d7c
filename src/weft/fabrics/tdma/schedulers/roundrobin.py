"""Weighted round robin on trees (§4.3, §5.2.2): every host has a slot in a fixed order before any has another.

In each slot the tree is gone through from the root down, because links near the root are scarce: first the flows that
meet at the root, then in what is left those that stay below its children, which is how flows within a switch use
bandwidth that flows between switches leave. At a node its children send in turn, the one with the smallest tag first; a
tag grows by 1 / weight with every slot, so that children that compete share in proportion to their weights. Within a
child the host with the smallest tag of its own sends, to the first host at or after its pointer that it has bytes for
and that a path without a used link leads to. The pointer then moves one beyond. Everybody begins one beyond himself, so
that pointers stay in step and an all-to-all transfer takes one permutation after another.

A host that had bytes and no slot for as long as a turn of all hosts takes, each as often as its weight says, goes
first, whatever its way: nobody starves.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.bits import lowest
from weft.engine.jit import bare, part
from weft.fabrics.tdma.schedulers.base import Scheduler, grants_of, room_for

SCALE = 1 << 40  # cost of a slot for weight 1; a sum of 16 million weights still costs something

_0, _1, _6 = np.uint64(0), np.uint64(1), np.uint64(6)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@part
def _from(bits, start, low, high):
    """The first set bit at or after `start`, going around, outside low … high-1; -1 if there is none."""
    words = bits.size
    for lap in range(2):
        at = start if lap == 0 else 0
        end = 64 * words if lap == 0 else start
        w = at >> 6
        while w << 6 < end:
            word = bits[w]
            base = w << 6
            if base < at:
                word &= _ALL << np.uint64(at - base)
            while word != _0:
                place = base + lowest(word)
                if place >= end:
                    break
                if place < low or place >= high:
                    return place
                if high - base < 64:
                    word &= _ALL << np.uint64(high - base)
                else:
                    word = _0
            w += 1
    return -1


@part
def _both(wants, reach, out):
    """out = wants & reach."""
    for w in range(out.size):
        out[w] = wants[w] & reach[w]


@part
def _sendable(node, top, parent, free):
    """Whether the uplinks from `node` up to and including that of `top` are free."""
    while True:
        if not free[node]:
            return False
        if node == top:
            return True
        node = parent[node]


@part
def _take(i, j, v, tree, rank, free, reach, scratch, ports, at, capacity):
    """Use the path from place i to place j, which meet at node v: write its ports from `at`, and close them.

    Returns (one beyond the last port, bytes that the path carries in a slot).
    """
    order, _, _, parent, _, uplink, _, _, _ = tree
    most = np.int64(1) << 62
    node = order[i]
    while node != v:
        free[node] = False
        ports[at] = uplink[node]
        most = min(most, capacity[uplink[node]])
        at += 1
        node = parent[node]
    words = scratch.shape[1]
    gone, kept = scratch[0], scratch[1]
    for w in range(words):
        gone[w] = _0
    gone[j >> 6] = _1 << np.uint64(j & 63)
    begin = at
    node = order[j]
    while node != v:
        ports[at] = uplink[node] ^ 1
        most = min(most, capacity[uplink[node] ^ 1])
        at += 1
        node = parent[node]
        row = reach[rank[node]]
        for w in range(words):
            kept[w] = row[w]
            row[w] &= ~gone[w]
        if node != v:
            for w in range(words):
                gone[w] = kept[w]  # the link down to this node is used: all below it are cut off from above
    low, high = begin, at - 1
    while low < high:  # they were found from the bottom up
        ports[low], ports[high] = ports[high], ports[low]
        low += 1
        high -= 1
    node = parent[v]
    while node >= 0:
        row = reach[rank[node]]
        for w in range(words):
            row[w] &= ~gone[w]
        node = parent[node]
    return at, most


class Memory(NamedTuple):
    """What round robin knows from one round to the next. n is the number of hosts, in the order of `Tree`."""

    tag: np.ndarray  # (nodes,) int64  of a child, among its parent's children
    own: np.ndarray  # (n, levels) int64  [i, d]  of a host, among those of its ancestor just below depth d
    pointer: np.ndarray  # (n, levels) int32  [i, d]  place after the last that i sent to by way of depth d
    waited: np.ndarray  # (n,) int32  slots since i last sent, while it had bytes
    active: np.ndarray  # (nodes,) bool  had bytes in the last round


class Scratch(NamedTuple):
    """Room for one call of `fill_slots`: Numba's own allocations and sorts take long to compile."""

    wants: np.ndarray  # (n, words) uint64  places that a place has bytes for
    backlog: np.ndarray  # (n,) int64  how many they are
    busy: np.ndarray  # (nodes,) bool  has bytes, or a host below has
    below: np.ndarray  # (inner, words) uint64  places below a node
    reach: np.ndarray  # (inner, words) uint64  those that a free way down leads to
    free: np.ndarray  # (nodes,) bool  is the uplink of this node free in this slot?
    rows: np.ndarray  # (3, words) uint64
    sent: np.ndarray  # (n,) bool
    keys: np.ndarray  # (2, children) int64  children by their tags, and room to sort them


def scratch_for(tree) -> Scratch:
    """Such room for a tree."""
    n, nodes, inner = len(tree.order), len(tree.parent), len(tree.inner)
    words = (n + 63) >> 6
    return Scratch(
        wants=np.zeros((n, words), np.uint64), backlog=np.zeros(n, np.int64), busy=np.zeros(nodes, np.bool_),
        below=np.zeros((inner, words), np.uint64), reach=np.zeros((inner, words), np.uint64),
        free=np.zeros(nodes, np.bool_), rows=np.zeros((3, words), np.uint64), sent=np.zeros(n, np.bool_),
        keys=np.zeros((2, len(tree.children)), np.int64),
    )  # fmt: skip


@part
def _settle(tags, nodes, first, last, busy, active):
    """Let whoever has bytes again begin where the others are, not where he stopped; then take off what all have.

    tags[m] are those of nodes[first … last-1].
    """
    least = np.int64(-1)
    for x in range(first, last):
        v = nodes[x]
        if busy[v] and active[v] and (least < 0 or tags[x - first] < least):
            least = tags[x - first]
    base = np.int64(-1)
    for x in range(first, last):
        v = nodes[x]
        if busy[v]:
            if not active[v]:
                tags[x - first] = max(tags[x - first], least)
            if base < 0 or tags[x - first] < base:
                base = tags[x - first]
    for x in range(first, last):
        tags[x - first] = max(np.int64(0), tags[x - first] - max(base, np.int64(0)))


@part
def _by_tag(children, low, high, tag, keys):
    """Write the children low … high-1 into keys[0], low … high-1, in the order of their tags; equals keep theirs."""
    here, there = 0, 1
    for x in range(low, high):
        keys[here, x] = children[x]
    width = 1
    while width < high - low:
        begin = low
        while begin < high:
            middle, end = min(begin + width, high), min(begin + 2 * width, high)
            a, b = begin, middle
            for x in range(begin, end):
                if a < middle and (b >= end or tag[keys[here, a]] <= tag[keys[here, b]]):
                    keys[there, x] = keys[here, a]
                    a += 1
                else:
                    keys[there, x] = keys[here, b]
                    b += 1
            begin = end
        here, there = there, here
        width *= 2
    if here == 1:
        for x in range(low, high):
            keys[0, x] = keys[1, x]


@part
def fill_slots(left, slots, tree, rank, capacity, cost, patience, memory, scratch, out):
    """Fill `slots` slots from left[i, j], bytes by place, which is used up. Returns how many grants there are.

    rank (nodes,) is a node's place among the tree's inner ones, cost (nodes,) what a slot adds to a tag, patience (n,)
    the slots after which a host goes first, `out` the arrays of grants to be written.
    """
    order, first, last, parent, depth, _, inner, children, bounds = tree
    tag, own, pointer, waited, active = memory
    when, src, dst, size, start, ports = out
    n = order.size
    wants, backlog, busy, below, reach, free, rows, sent, keys = scratch
    wants[:] = _0
    below[:] = _0
    busy[:] = False
    for i in range(n):
        backlog[i] = 0
        for j in range(n):
            if left[i, j] > 0:
                wants[i, j >> 6] |= _1 << np.uint64(j & 63)
                backlog[i] += 1
    for i in range(n):
        busy[order[i]] = backlog[i] > 0
    for k in range(inner.size):
        v = inner[k]
        for p in range(first[v], last[v]):
            below[k, p >> 6] |= _1 << np.uint64(p & 63)
            busy[v] |= backlog[p] > 0
    for k in range(inner.size):
        for x in range(bounds[k], bounds[k + 1]):
            keys[0, x] = tag[children[x]]
        _settle(keys[0, bounds[k] :], children, bounds[k], bounds[k + 1], busy, active)
        for x in range(bounds[k], bounds[k + 1]):
            a = children[x]
            tag[a] = keys[0, x]
            if last[a] - first[a] > 1:
                _settle(own[first[a] :, depth[inner[k]]], order, first[a], last[a], busy, active)
    for v in range(busy.size):
        active[v] = busy[v]
    open_ = rows[2]
    grants, at = 0, 0
    for t in range(slots):
        free[:] = True
        for k in range(inner.size):
            for w in range(below.shape[1]):
                reach[k, w] = below[k, w]
        sent[:] = False
        k = np.int64(-1)  # the node whose children are looked at, the one before the first to begin with
        for turn in range(n + children.size):
            a, v, best, best_j = -1, -1, -1, -1
            if turn < n:  # who has waited too long goes first; who comes first among them changes
                i = (turn + t) % n
                if waited[i] < patience[i] or backlog[i] == 0:
                    continue
                a = order[i]
                while parent[a] >= 0 and free[a]:
                    v = parent[a]
                    _both(wants[i], reach[rank[v]], open_)
                    best_j = _from(open_, pointer[i, depth[v]], first[a], last[a])
                    if best_j >= 0:
                        best = i
                        break
                    a = v
            else:
                c = turn - n
                if c == bounds[k + 1]:  # this node's children, in the order of their tags
                    k += 1
                    _by_tag(children, bounds[k], bounds[k + 1], tag, keys)
                a, v = keys[0, c], inner[k]
                if not free[a] or not busy[a]:
                    continue
                d = depth[v]
                for i in range(first[a], last[a]):
                    if backlog[i] == 0 or (best >= 0 and own[i, d] >= own[best, d]):
                        continue
                    if not _sendable(order[i], a, parent, free):
                        continue
                    _both(wants[i], reach[k], open_)
                    j = _from(open_, pointer[i, d], first[a], last[a])
                    if j >= 0:
                        best, best_j = i, j
            if best < 0:
                continue
            start[grants] = at
            at, most = _take(best, best_j, v, tree, rank, free, reach, rows, ports, at, capacity)
            given = min(most, left[best, best_j])
            when[grants], src[grants], dst[grants], size[grants] = t, order[best], order[best_j], given
            grants += 1
            left[best, best_j] -= given
            if left[best, best_j] == 0:
                wants[best, best_j >> 6] &= ~(_1 << np.uint64(best_j & 63))
                backlog[best] -= 1
            sent[best] = True
            pointer[best, depth[v]] = (best_j + 1) % n
            tag[a] += cost[a]
            own[best, depth[v]] += cost[order[best]]
        for i in range(n):
            waited[i] = 0 if sent[i] or backlog[i] == 0 else waited[i] + 1
    start[grants] = at
    return grants


@bare
def fill(left, slots, tree, rank, capacity, cost, patience, memory, scratch, out):
    """`fill_slots`, for Python."""
    return fill_slots(left, slots, tree, rank, capacity, cost, patience, memory, scratch, out)


class RoundRobin(Scheduler):
    """Weighted round robin, the paper's, for trees."""

    name = "wrr"
    takes = "tree"
    weighs = True

    def __init__(self, network):
        super().__init__(network)
        tree, n = network.tree, network.hosts
        levels = int(tree.depth.max())
        self.rank = np.full(network.graph.nodes, -1, np.int32)
        self.rank[tree.inner] = np.arange(len(tree.inner))
        pointer = np.zeros((n, levels), np.int32)
        for place, host in enumerate(tree.order):
            a = host
            while (v := tree.parent[a]) >= 0:
                beyond = tree.last[a] + place - tree.first[a]
                if beyond >= tree.last[v]:
                    beyond += tree.first[v] - tree.last[v]
                pointer[place, tree.depth[v]] = beyond % n
                a = v
        self.memory = Memory(
            tag=np.zeros(network.graph.nodes, np.int64),
            own=np.zeros((n, levels), np.int64),
            pointer=pointer,
            waited=np.zeros(n, np.int32),
            active=np.zeros(network.graph.nodes, np.bool_),
        )

        self.scratch = scratch_for(tree)

    def bound(self, slots):
        """Until it is overdue, and all others that are; with equal weights."""
        return 2 * self.network.hosts

    def arrays(self):
        return self.memory._asdict()

    def plan(self, demand, slots):
        tree = self.network.tree
        self._check(demand, slots)
        straight = (tree.order == np.arange(len(tree.order))).all()
        left = demand.want.copy() if straight else demand.want[np.ix_(tree.order, tree.order)]
        total = np.concatenate([[0], np.cumsum(demand.weights[tree.order])])
        cost = SCALE // np.maximum(1, total[tree.last] - total[tree.first])
        out = room_for(slots * self.network.hosts, 2 * int(tree.depth.max()))
        patience = -(-total[-1] // demand.weights[tree.order])
        grants = fill(left, slots, tree, self.rank, self.network.capacity, cost, patience, self.memory,
                      self.scratch, out)  # fmt: skip
        return grants_of(self.network, slots, out, grants)
