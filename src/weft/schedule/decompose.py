"""The rack's schedule taken apart: one static schedule for every circuit switch of the fabric (Shoal §3.2, Fig. 4).

In one slot each node sends to one peer, so each leaf has at most k/2 circuits going up and k/2 coming down. Which
uplink each circuit takes is an edge colouring: leaves are the vertices, circuits the edges, uplinks the colours, and no
two circuits of a colour may leave or enter the same leaf. König: k/2 colours are always enough. Two ways to find one:

uplinks_of_shift   a closed form for "i sends to i + shift", for any shift and any number of nodes.
colour             alternating paths, for any schedule.

`verify` trusts neither: it follows every cell through the switches' own tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.errors import BadInput, ScheduleConflict, require
from weft.schedule.rotation import DARK, Rounds
from weft.topology.circuit import CircuitClos

NOBODY = -1  # a node that faces nobody, a port that carries nothing
CHUNK = 1 << 18  # cells looked at together: an epoch of a large rack has millions


@dataclass(frozen=True, eq=False)
class Circuits:
    """One epoch of a fabric: whom each node faces, and the uplink its cell takes."""

    clos: CircuitClos
    peers: np.ndarray  # (slots, planes, nodes) int32  [t, p, i]  whom i faces, NOBODY if dark
    uplinks: np.ndarray  # (slots, planes, nodes) int16  [t, p, i]  the uplink of i's leaf that carries its cell

    @property
    def slots(self) -> int:
        """Slots in an epoch."""
        return len(self.peers)

    @cached_property
    def tables(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """For each plane its leaves (leaves, slots, ports) and spines (spines, slots, ports), both int16.

        An entry is the output that an input of the switch is connected to in a slot, NOBODY for none.
        """
        clos, out = self.clos, []
        for plane in range(clos.planes):
            leaves = np.full((clos.leaves, self.slots, clos.ports), NOBODY, np.int16)
            spines = np.full((clos.spines, self.slots, clos.ports), NOBODY, np.int16)
            for t, i, j in self.cells(plane):
                u = self.uplinks[t, plane, i]
                up, down, bundle = i // clos.half, j // clos.half, u % clos.trunk * clos.leaves
                leaves[up, t, i % clos.half] = clos.half + u
                spines[u // clos.trunk, t, bundle + up] = bundle + down
                leaves[down, t, clos.half + u] = j % clos.half
            out.append((leaves, spines))
        return tuple(out)

    def cells(self, plane: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Slot, sender and receiver of every cell of a plane, as three arrays, some slots at a time."""
        stride = max(1, CHUNK // self.clos.nodes)
        for begin in range(0, self.slots, stride):
            t, i = np.nonzero(self.peers[begin : begin + stride, plane] != NOBODY)
            t += begin
            yield t, i, self.peers[t, plane, i]

    def outputs(self, name: str) -> np.ndarray:
        """(slots, ports) int16: the output that each input of a switch is connected to, NOBODY for none."""
        plane, kind, number = self.clos.locate(name)
        return self.tables[plane][kind == "spine"][number]

    def selectors(self, name: str) -> np.ndarray:
        """(slots, ports) int16: the input that each output listens to, as the switch's multiplexers want it (§4.1)."""
        outputs = self.outputs(name)
        picks = np.full_like(outputs, NOBODY)
        t, port = np.nonzero(outputs != NOBODY)
        picks[t, outputs[t, port]] = port
        return picks


def decompose(clos: CircuitClos, schedule: Rounds | np.ndarray) -> Circuits:
    """A schedule per switch for `Rounds`, or for any table of peers (slots, planes, nodes) or (slots, nodes)."""
    if isinstance(schedule, Rounds):
        nodes, planes, peers = schedule.nodes, schedule.channels, schedule.peers()
    else:
        peers = np.asarray(schedule, np.int32)
        peers = peers[:, None, :] if peers.ndim == 2 else peers
        nodes, planes = peers.shape[2], peers.shape[1]
    require(nodes == clos.nodes, "the schedule", f"for {clos.nodes} nodes", nodes)
    require(planes == clos.planes, "the schedule", f"for {clos.planes} planes", planes)
    for peer in peers[(peers < NOBODY) | (peers >= nodes)][:1]:
        raise BadInput(f"a peer must be a node from 0 to {nodes - 1}, or {NOBODY} for nobody, not {peer}")
    uplinks = np.full(peers.shape, NOBODY, np.int16)
    if isinstance(schedule, Rounds):
        for place, shift in enumerate(schedule.shift):
            if shift != DARK:
                uplinks[divmod(place, planes)] = uplinks_of_shift(nodes, clos.half, int(shift))
        uplinks[peers == NOBODY] = NOBODY
    else:
        for t in range(len(peers)):
            for plane in range(planes):
                _refuse_clashes(clos, peers[t, plane], plane, t)
                uplinks[t, plane] = colour(peers[t, plane], clos.half)
    return Circuits(clos, peers, uplinks)


def uplinks_of_shift(nodes: int, half: int, shift: int) -> np.ndarray:
    """(nodes,) int: the uplink of each node's cell when all nodes i send to (i + shift) mod nodes.

    Where leaves are full the uplink is the node's place on its leaf, i mod half, in every slot. Otherwise the last leaf
    holds `rest` nodes, and counting modulo half goes wrong where the receivers wrap from the last node to the first. So
    nodes beyond the wrap count from the other end, and the `rest` nodes that send to the short leaf, which lie between
    the two counts, share the `rest` uplinks that are left.
    """
    i = np.arange(nodes)
    rest, wrap = nodes % half, nodes - shift  # i = wrap sends to node 0
    uplinks = np.where(i < wrap, i, i - nodes) % half
    begin = wrap - rest  # the first that sends to the short leaf
    between = (begin <= i) & (i < wrap)
    free = max(begin % half, half - rest) + (i - begin)
    uplinks[between] = np.where(free < half, free, free - rest)[between]
    return uplinks


def colour(peers: np.ndarray, half: int, pool=None) -> np.ndarray:
    """(nodes,) int: an uplink below `half` for each node's cell, for any `peers` (NOBODY where dark).

    pool: the uplinks that may be used; no leaf may then send or take more cells than there are in it. No two nodes may
    face the same peer. Edge by edge: an uplink free at both leaves if there is one; otherwise one
    free at the sender's leaf, after swapping it along the path of circuits that alternate between it and one free at
    the receiver's. Nodes in order and lowest uplink first, so that the answer is always the same.
    """
    leaves = -(-len(peers) // half)
    full = (1 << half) - 1 if pool is None else sum(1 << u for u in pool)
    free = [[full] * leaves, [full] * leaves]  # bits: uplinks not yet used by circuits going up from a leaf, down to it
    taken = [[[NOBODY] * half for _ in range(leaves)] for _ in range(2)]  # [up or down][leaf][uplink]: the sender
    ends = [(np.arange(len(peers)) // half).tolist(), (peers // half).tolist()]
    out = [NOBODY] * len(peers)

    def lowest(bits):
        return (bits & -bits).bit_length() - 1

    for i, j in enumerate(peers.tolist()):
        if j == NOBODY:
            continue
        a, b = ends[0][i], ends[1][i]
        both = free[0][a] & free[1][b]
        if both:
            u = lowest(both)
        else:
            u, v = lowest(free[0][a]), lowest(free[1][b])
            path, side, leaf, now = [], 1, b, u
            while (k := taken[side][leaf][now]) != NOBODY:  # never comes back to a, where u is free
                path.append(k)
                side = 1 - side
                leaf = ends[side][k]
                now = v if now == u else u
            for k in path:
                for s in (0, 1):
                    taken[s][ends[s][k]][out[k]] = NOBODY
                    free[s][ends[s][k]] |= 1 << out[k]
            for k in path:
                out[k] = v if out[k] == u else u
                for s in (0, 1):
                    taken[s][ends[s][k]][out[k]] = k
                    free[s][ends[s][k]] &= ~(1 << out[k])
        out[i] = u
        for s, leaf in ((0, a), (1, b)):
            taken[s][leaf][u] = i
            free[s][leaf] &= ~(1 << u)
    return np.array(out)


def verify(circuits: Circuits) -> int:
    """Follow every cell of an epoch through the switches' tables, and return how many there were.

    Raises ScheduleConflict, naming switch, port and slot, where two inputs want one output, or where a cell does not
    come out at the node it is for.
    """
    clos, cells = circuits.clos, 0
    for plane, (leaves, spines) in enumerate(circuits.tables):
        for number, outputs in enumerate(leaves):
            _refuse_contention(clos.leaf(plane, number), outputs)
        for number, outputs in enumerate(spines):
            _refuse_contention(clos.spine(plane, number), outputs)
        for t, i, j in circuits.cells(plane):
            a, port = i // clos.half, i % clos.half
            u = leaves[a, t, port] - clos.half
            _refuse_stray(u < 0, clos.leaf, plane, a, port, t, i, j)
            x, port = u // clos.trunk, u % clos.trunk * clos.leaves + a
            out = spines[x, t, port]
            _refuse_stray(out // clos.leaves != u % clos.trunk, clos.spine, plane, x, port, t, i, j)
            b, port = out % clos.leaves, clos.half + u
            _refuse_stray(b * clos.half + leaves[b, t, port] != j, clos.leaf, plane, b, port, t, i, j)
            cells += len(j)
    return cells


def _refuse_contention(name, outputs):
    """Raise unless in each slot each output of the switch is wanted by one input at most."""
    order = np.sort(outputs, axis=1)
    clash = (order[:, 1:] == order[:, :-1]) & (order[:, 1:] != NOBODY)
    for t, k in np.argwhere(clash)[:1]:
        first, second = np.flatnonzero(outputs[t] == order[t, k])[:2]
        raise ScheduleConflict(
            f"port {order[t, k]} of {name} must carry one circuit in slot {t}, not those of ports {first} and {second}"
        )


def _refuse_stray(stray, switch, plane, number, port, t, i, j):
    """Raise for the first cell that does not leave its switch for where it should."""
    for k in np.flatnonzero(stray)[:1]:
        raise ScheduleConflict(
            f"port {port[k]} of {switch(plane, number[k])} must lead from node {i[k]} to node {j[k]} in slot {t[k]}, "
            f"not elsewhere"
        )


def _refuse_clashes(clos, row, plane, t):
    """Raise if two nodes face the same peer: no fabric could connect them."""
    order = np.argsort(row, kind="stable")
    same = (row[order][1:] == row[order][:-1]) & (row[order][1:] != NOBODY)
    for k in np.flatnonzero(same)[:1]:
        first, second = order[k], order[k + 1]
        name, port = clos.leaf(plane, row[first] // clos.half), row[first] % clos.half
        raise ScheduleConflict(
            f"port {port} of {name} must carry one circuit in slot {t}, not those of nodes {first} and {second}"
        )
