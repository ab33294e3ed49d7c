"""What a scheduler knows of the network: the links a flow takes, and what each carries in a slot."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.errors import BadInput, require
from weft.topology.clos import topology, tree
from weft.topology.graph import Topology
from weft.topology.routes import Routes, require_connected, routes
from weft.units import Size, Time, s, us

MOST_HOSTS = 2**14  # a demand matrix of 2 GB
NOWHERE = -1


class Tree(NamedTuple):
    """A network without loops, seen from its middle. Hosts stand in `order` so that those below a node are neighbours.

    A node's uplink is the port from it to its parent; `uplink ^ 1` leads back.
    """

    order: np.ndarray  # (hosts,) int32  host at each place
    first: np.ndarray  # (nodes,) int32  first place of the hosts below a node
    last: np.ndarray  # (nodes,) int32  one beyond the last
    parent: np.ndarray  # (nodes,) int32  NOWHERE for the root
    depth: np.ndarray  # (nodes,) int32  0 for the root
    uplink: np.ndarray  # (nodes,) int32  port to the parent, NOWHERE for the root
    inner: np.ndarray  # (m,) int32  nodes with children, the root first, then by depth
    children: np.ndarray  # int32  the children of inner[0], then of inner[1], …, each by place
    bounds: np.ndarray  # (m + 1,) int32  where each begins in `children`


@dataclass(frozen=True, eq=False, kw_only=True)
class Network:
    """Hosts, switches and links, and what a slot of so many ps carries."""

    graph: Topology
    slot: Time = 300 * us
    buffer: Size = 0  # bytes that a port of a switch may hold for flows that meet there; 0 keeps flows apart
    alive: np.ndarray | None = None  # (links,) bool  links that are up; None for all

    def __post_init__(self):
        require(self.slot > 0, "slot", "more than 0", self.slot)
        require(self.buffer >= 0, "buffer", "0 bytes or more", self.buffer)
        require(self.hosts <= MOST_HOSTS, "hosts", f"at most {MOST_HOSTS:,} for their demands to be held", self.hosts)
        for port in np.flatnonzero(self.capacity < 1)[:1]:
            name = self.graph.link_name(port // 2)
            raise BadInput(f"slot must be long enough for a byte over link {name}, not {self.slot} ps")

    @property
    def hosts(self) -> int:
        return self.graph.hosts

    @cached_property
    def rate(self) -> np.ndarray:
        """(ports,) int64: b/s of each direction of each link."""
        return np.repeat(self.graph.rate, 2)

    @cached_property
    def capacity(self) -> np.ndarray:
        """(ports,) int64: bytes that each carries in a slot."""
        return np.array([int(rate) * self.slot // (8 * s) for rate in self.rate], np.int64)

    @cached_property
    def routes(self) -> Routes:
        """Shortest paths; while all links are up every host is known to reach every other."""
        table = routes(self.graph, self.alive)
        if self.alive is None:
            require_connected(self.graph, table)
        return table

    @cached_property
    def severed(self) -> np.ndarray:
        """(hosts, hosts) bool: pairs without a way between them."""
        graph = self.graph
        part = np.arange(graph.nodes)  # the lowest node that a node is known to reach
        links = graph.ends if self.alive is None else graph.ends[self.alive]
        before = None
        while before is None or (part != before).any():
            before = part.copy()
            low = part[links].min(1)
            for end in (0, 1):
                np.minimum.at(part, links[:, end], low)
        return part[: graph.hosts, None] != part[None, : graph.hosts]

    @cached_property
    def host_port(self) -> np.ndarray:
        """(hosts,) int32: the port with which a host sends; the only one it may have."""
        sender, receiver = self.graph.port_ends()
        count = np.bincount(sender, minlength=self.hosts)[: self.hosts]
        for h in np.flatnonzero(count != 1)[:1]:
            name = self.graph.names[h]
            raise BadInput(f"every host must have one link for its slots to be planned, but {name!r} has {count[h]}")
        out = np.zeros(self.hosts, np.int32)
        own = np.flatnonzero(sender < self.hosts)
        out[sender[own]] = own
        for h in np.flatnonzero(receiver[out] < self.hosts)[:1]:
            raise BadInput(f"every host must hang on a switch, but {self.graph.names[h]!r} does not")
        return out

    @cached_property
    def block(self) -> int:
        """Bytes that the fastest host sends in a slot."""
        return int(self.capacity[self.host_port].max())

    @cached_property
    def switched(self) -> bool:
        """Whether all hosts hang on one switch."""
        return self.graph.switches == 1 and len(self.graph.ends) == self.hosts

    @cached_property
    def tree(self) -> Tree | None:
        """The network as a tree, or None where it has loops."""
        graph = self.graph
        self.host_port, self.routes  # noqa: B018  what is wrong with them is said first
        if len(graph.ends) != graph.nodes - 1:
            return None
        near: list[list] = [[] for _ in range(graph.nodes)]  # (neighbour, port to it)
        for link, (a, b) in enumerate(graph.ends.tolist()):
            near[a].append((b, 2 * link))
            near[b].append((a, 2 * link + 1))
        return _rooted(near, _middle(near), graph.hosts)

    def path(self, i: int, j: int) -> list[int]:
        """The ports from host i to host j in a tree."""
        tree = self.tree
        assert tree is not None  # whoever asks has looked
        up, down, a, b = [], [], i, j
        while a != b:
            if tree.depth[a] >= tree.depth[b]:
                up.append(int(tree.uplink[a]))
                a = int(tree.parent[a])
            else:
                down.append(int(tree.uplink[b]) ^ 1)
                b = int(tree.parent[b])
        return up + down[::-1]


def wired(name: str, hosts: int, link: int, delay: int, pods: int) -> Topology:
    """The topology called `name`: a switch, a tree of `pods` edge switches (§6.1.2), or any other there is."""
    if name == "tree":
        require(1 <= pods <= hosts, "pods", f"from 1 to {hosts}", pods)
        return tree(hosts, link, delay, pods)
    return topology("single" if name == "switch" else name, hosts, link, delay)


def _middle(near) -> int:
    """The node that is left when leaves are cut off again and again; of two the first."""
    degree = [len(links) for links in near]
    left, leaves = len(near), [v for v, d in enumerate(degree) if d == 1]
    while left > 2:
        left -= len(leaves)
        fresh = []
        for v in leaves:
            degree[v] = 0
            for w, _ in near[v]:
                degree[w] -= 1
                if degree[w] == 1:
                    fresh.append(w)
        leaves = fresh
    rest = [v for v in leaves if degree[v] >= 0]
    return min(rest)


def _rooted(near, root, hosts) -> Tree:
    """The tree from `root` down; children stand in the order of the lowest host below them."""
    nodes = len(near)
    parent, uplink, depth = [NOWHERE] * nodes, [NOWHERE] * nodes, [0] * nodes
    order, seen = [root], {root}
    for v in order:
        for w, port in near[v]:
            if w not in seen:
                seen.add(w)
                parent[w], uplink[w], depth[w] = v, port ^ 1, depth[v] + 1
                order.append(w)
    below: list[list[int]] = [[] for _ in range(nodes)]
    lowest = [v if v < hosts else nodes for v in range(nodes)]
    for v in reversed(order[1:]):
        below[parent[v]].append(v)
        lowest[parent[v]] = min(lowest[parent[v]], lowest[v])
    for children in below:
        children.sort(key=lambda w: (lowest[w], w))
    places: list[int] = []
    first, last = [0] * nodes, [0] * nodes
    stack = [(root, False)]
    while stack:
        v, left = stack.pop()
        if left:
            last[v] = len(places)
            continue
        first[v] = len(places)
        if v < hosts:
            places.append(v)
        stack.append((v, True))
        stack.extend((w, False) for w in reversed(below[v]))
    inner = [v for v in order if below[v] and last[v] > first[v]]
    kept = [[w for w in below[v] if last[w] > first[w]] for v in inner]  # switches without hosts lead nowhere
    return Tree(
        order=np.array(places, np.int32),
        first=np.array(first, np.int32),
        last=np.array(last, np.int32),
        parent=np.array(parent, np.int32),
        depth=np.array(depth, np.int32),
        uplink=np.array(uplink, np.int32),
        inner=np.array(inner, np.int32),
        children=np.array([w for children in kept for w in children], np.int32),
        bounds=np.cumsum([0, *map(len, kept)]).astype(np.int32),
    )
