"""Fat trees as graphs: who is wired to whom, and how much crosses a cut."""

from dataclasses import dataclass

import numpy as np

from weft.errors import BadInput, require
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class FatTree:
    """A folded Clos of `tiers` switch tiers above the edge, all switches of the same radix.

    Every edge switch has `uplinks` ports up, each into its own plane. In a plane, a switch below the top
    has `up` ports up and `radix - up` down (half and half unless said otherwise); a top switch has all down.
    `FatTree.of_switches(k)` is the usual three-tier tree of k-port switches with k^3/4 hosts.
    """

    radix: int
    tiers: int = 2
    uplinks: int = 1
    hosts_per_edge: int = 1
    up: int = param(None, "ports up of a switch below the top; half when not given")

    def __post_init__(self):
        require(self.radix >= 2, "radix", "at least 2", self.radix)
        require(self.tiers >= 1, "tiers", "at least 1", self.tiers)
        require(self.uplinks >= 1, "uplinks", "at least 1", self.uplinks)
        require(self.hosts_per_edge >= 1, "hosts_per_edge", "at least 1", self.hosts_per_edge)
        if self.up is None:
            require(self.radix % 2 == 0, "radix", "even", self.radix)
            object.__setattr__(self, "up", self.radix // 2)
        require(1 <= self.up < self.radix, "up", f"between 1 and {self.radix - 1}", self.up)

    @classmethod
    def of_switches(cls, radix: int) -> "FatTree":
        """The three-tier fat tree in which edge switches too have `radix` ports."""
        require(radix >= 2 and radix % 2 == 0, "radix", "even and at least 2", radix)
        return cls(radix=radix, tiers=2, uplinks=radix // 2, hosts_per_edge=radix // 2)

    @property
    def edges(self) -> int:
        """Edge switches."""
        return self.radix * (self.radix - self.up) ** (self.tiers - 1)

    @property
    def hosts(self) -> int:
        return self.edges * self.hosts_per_edge

    def switches_in(self, tier: int) -> int:
        """Switches of one tier above the edge, 1 the lowest."""
        return self.uplinks * self._plane(tier)

    @property
    def switches(self) -> int:
        """Switches above the edge."""
        return sum(self.switches_in(tier) for tier in range(1, self.tiers + 1))

    def _plane(self, tier):
        down, up = self.radix - self.up, self.up
        if tier == self.tiers:
            return up ** (self.tiers - 1)
        return self.radix * down ** (self.tiers - 1 - tier) * up ** (tier - 1)

    def links(self) -> np.ndarray:
        """Every link as a row (lower, upper): hosts, edge switches, then the tiers, numbered in that order.

        A plane is built as the paper builds it: `radix` subtrees below the top tier, each made of
        `radix - up` smaller ones and a row of switches that take one link from each of them.
        """
        below = np.arange(self.edges)
        rows = [np.stack([np.arange(self.hosts), self.hosts + np.arange(self.hosts) // self.hosts_per_edge], axis=1)]
        start = self.hosts + self.edges
        first = [start]
        for tier in range(1, self.tiers + 1):
            first.append(first[-1] + self.switches_in(tier))
        for plane in range(self.uplinks):
            ports, ids, subtrees = 1, self.hosts + below, self.edges  # each edge switch is a subtree with one link up
            for tier in range(1, self.tiers + 1):
                merged = self.radix if tier == self.tiers else self.radix - self.up
                groups, count = subtrees // merged, self._plane(tier)
                base = first[tier - 1] + plane * count
                tops = base + np.arange(count).reshape(groups, ports)  # one switch per up port of a subtree
                lower = ids.reshape(groups, merged, ports)
                rows.append(np.stack([lower.ravel(), np.broadcast_to(tops[:, None, :], lower.shape).ravel()], axis=1))
                ids, ports, subtrees = np.repeat(tops, self.up, axis=1).ravel(), ports * self.up, groups
        return np.concatenate(rows)

    def bisection(self, rate: int = 1) -> int:
        """Rate that crosses the worst equal split of the hosts in one direction, from the formula.

        Up to the edge switches every tree carries half its hosts; above, the narrowest layer decides.
        The radix must be even, so that the worst split keeps subtrees whole.
        """
        require(self.radix % 2 == 0, "radix", "even", self.radix)
        down, up = self.radix - self.up, self.up
        narrowest = min(self.edges * self.uplinks * up**tier // down**tier for tier in range(self.tiers))
        return min(self.hosts, narrowest) * rate // 2


def max_flow(links: np.ndarray, sources, sinks, capacity=1) -> int:
    """Most that can flow from `sources` to `sinks` at once over full-duplex `links`, hosts unlimited inside."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import maximum_flow

    nodes = int(links.max()) + 3
    source, sink = nodes - 2, nodes - 1
    sources, sinks = np.asarray(sources), np.asarray(sinks)
    weight = np.broadcast_to(np.asarray(capacity, np.int32), len(links))
    big = np.full(len(sources) + len(sinks), int(weight.sum()), np.int32)
    a = np.concatenate([links[:, 0], links[:, 1], np.full(len(sources), source), sinks])
    b = np.concatenate([links[:, 1], links[:, 0], sources, np.full(len(sinks), sink)])
    graph = coo_matrix((np.concatenate([weight, weight, big]), (a, b)), shape=(nodes, nodes), dtype=np.int32).tocsr()
    return int(maximum_flow(graph, source, sink).flow_value)


def folded_clos(nodes, ports):
    """Leaves and spines of a non-blocking two-stage folded Clos of `ports`-port switches, as two counts.

    A leaf gives half its ports to nodes. Its other half goes one link each to ports/2 planes; a plane needs
    one port per leaf, and a spine switch holds as many whole planes as fit. At ports^2/2 nodes this is the
    textbook tree of 3/2 ports switches; 512 nodes on 64 ports make 16 leaves and 8 spines of 4 planes.
    """
    nodes, ports = np.asarray(nodes), np.asarray(ports)
    wrong = (ports < 2) | (ports % 2 == 1)
    require(not wrong.any(), "ports", "even and at least 2", int(np.min(ports, where=wrong, initial=ports.max())))
    require(np.all(nodes >= 2), "nodes", "at least 2", int(nodes.min()))
    most = ports * ports // 2
    if np.any(nodes > most):
        need = int(np.ceil(np.sqrt(2 * int(nodes.max()))))
        raise BadInput(
            f"nodes must be at most {int(most.max())} with {int(ports.max())}-port switches in two stages, "
            f"not {int(nodes.max())} (switches of {need + need % 2} ports would do)"
        )
    half = ports // 2
    leaves = -(-nodes // half)
    planes_per_spine = ports // leaves
    spines = -(-half // planes_per_spine)
    return (leaves, spines) if leaves.ndim else (int(leaves), int(spines))
