"""Tori: nodes at the points of a grid whose sides are closed into rings, each joined to its neighbours.

A node has two ports for every dimension, one up and one down its ring; in a dimension of two nodes both would lead to
the same neighbour, and there is one. Nodes are numbered as NumPy numbers the cells of an array of that shape.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import prod

import numpy as np

from weft.topology.graph import Topology

FAR = 1 << 20  # hops: further than anything


@dataclass(frozen=True)
class Grid:
    """Who is next to whom in a torus of these dimensions, each of at least two nodes."""

    dimensions: tuple[int, ...]

    @property
    def nodes(self) -> int:
        return prod(self.dimensions)

    @cached_property
    def dimension(self) -> np.ndarray:
        """(ports of a node,) int: the dimension that each port belongs to, in ascending order."""
        return np.array([d for d, size in enumerate(self.dimensions) for _ in range(min(size - 1, 2))])

    @property
    def degree(self) -> int:
        """Ports of a node."""
        return len(self.dimension)

    @property
    def back(self) -> np.ndarray:
        """(degree,) int: the port of the node behind a port of a node that leads back to it."""
        own = np.arange(self.degree)
        several = np.bincount(self.dimension)[self.dimension] == 2
        first = np.searchsorted(self.dimension, self.dimension)
        return np.where(several, 2 * first + 1 - own, own)

    @cached_property
    def _wired(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(links, 2) ends, and (nodes, degree) the port of the graph and the node behind each port of a node."""
        index = np.arange(self.nodes, dtype=np.int32).reshape(self.dimensions)
        ends: list[np.ndarray] = []
        port = np.zeros((self.nodes, self.degree), np.int32)
        to = np.zeros((self.nodes, self.degree), np.int32)
        links = own = 0
        for d, size in enumerate(self.dimensions):
            up, down = (np.roll(index, step, axis=d).ravel() for step in (-1, 1))
            nodes = index.ravel()
            if size == 2:
                nodes = np.take(index, 0, axis=d).ravel()
            link = links + np.arange(nodes.size, dtype=np.int32)
            port[nodes, own], to[nodes, own] = 2 * link, up[nodes]
            back = own if size == 2 else own + 1
            port[up[nodes], back], to[up[nodes], back] = 2 * link + 1, down[up[nodes]]
            ends.append(np.stack([nodes, up[nodes]], axis=1))
            links, own = links + nodes.size, back + 1
        return np.concatenate(ends), port, to

    @property
    def port(self) -> np.ndarray:
        """(nodes, degree) int32: which port of the graph a port of a node is."""
        return self._wired[1]

    @property
    def to(self) -> np.ndarray:
        """(nodes, degree) int32: the node that a port of a node leads to."""
        return self._wired[2]

    def graph(self, rate: int, delay: int) -> Topology:
        """The torus as a graph in which every node is a host; `node 3` is called 3."""
        ends = self._wired[0]
        return Topology(
            hosts=self.nodes,
            names=tuple(map(str, range(self.nodes))),
            ends=ends,
            rate=np.full(len(ends), rate, np.int64),
            delay=np.full(len(ends), delay, np.int64),
        )

    @cached_property
    def coordinates(self) -> np.ndarray:
        """(dimensions, nodes) int: where every node is."""
        return np.stack(np.unravel_index(np.arange(self.nodes), self.dimensions))

    def distance(self, a, b) -> np.ndarray:
        """Hops from nodes `a` to nodes `b` while nothing has failed."""
        hops = np.zeros(np.broadcast(a, b).shape, np.int64)
        for at, size in zip(self.coordinates, self.dimensions, strict=True):
            ahead = (at[b] - at[a]) % size
            hops += np.minimum(ahead, size - ahead)
        return hops

    def toward(self, alive: np.ndarray | None = None) -> np.ndarray:
        """(nodes, nodes) uint16: [target, node] has the bits of the ports of a node that begin a shortest path.

        alive is (links,) bool, or None where every link works.
        """
        mask = np.zeros((self.nodes, self.nodes), np.uint16)
        if alive is not None and not alive.all():
            works = alive[self.port >> 1]
            distance = self._distances(works)
            for p in range(self.degree):
                good = works[:, p] & (distance[:, self.to[:, p]] + 1 == distance)
                mask |= good.astype(np.uint16) << np.uint16(p)
            return mask
        own = 0
        for at, size in zip(self.coordinates, self.dimensions, strict=True):
            ahead = (np.arange(size)[:, None] - np.arange(size)) % size  # [target, node]
            up = (ahead > 0) & (2 * ahead <= size)
            down = (2 * ahead >= size) & (size > 2)
            bits = (up.astype(np.uint16) | down.astype(np.uint16) << 1) << np.uint16(own)
            mask |= bits.astype(np.uint16)[np.ix_(at, at)]
            own += min(size - 1, 2)
        return mask

    def _distances(self, works) -> np.ndarray:
        """(nodes, nodes) int32: hops to a target from every node over the ports that work, or FAR."""
        distance = np.full((self.nodes, self.nodes), FAR, np.int32)
        np.fill_diagonal(distance, 0)
        step = 0
        while True:
            near = distance == step
            found = np.zeros_like(near)
            for p in range(self.degree):
                found |= near[:, self.to[:, p]] & works[:, p]
            found &= distance == FAR
            if not found.any():
                return distance
            step += 1
            distance[found] = step

    @cached_property
    def picks(self) -> np.ndarray:
        """(2 ** degree, degree + 1) uint8: how many bits a mask has, and then which."""
        table = np.zeros((1 << self.degree, self.degree + 1), np.uint8)
        for mask in range(1 << self.degree):
            bits = [p for p in range(self.degree) if mask >> p & 1]
            table[mask, : len(bits) + 1] = [len(bits), *bits]
        return table

    def first_dimension(self, mask: np.ndarray) -> np.ndarray:
        """The masks with no bits but those of the first dimension that they have any of."""
        table = np.zeros(1 << self.degree, np.uint16)
        for dimension in reversed(range(len(self.dimensions))):
            own = sum(1 << p for p in np.flatnonzero(self.dimension == dimension).tolist())
            some = np.arange(1 << self.degree) & own
            table = np.where(some, some, table).astype(np.uint16)
        return table[mask]


def shapes(nodes: int, dimensions: int) -> list[tuple[int, ...]]:
    """Shapes of so many dimensions, of two nodes or more each, whose number of nodes is nearest to `nodes`."""
    most = max(round(nodes ** (1 / dimensions)) * 4, 4)
    found = {}
    for shape in combinations_with_replacement(range(2, most + 1), dimensions):
        found[shape] = (abs(prod(shape) - nodes), shape[-1] - shape[0])
    best = sorted(found, key=lambda shape: (found[shape], shape))
    return best[:3]
