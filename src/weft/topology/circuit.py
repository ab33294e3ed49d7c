"""The circuit fabric: k-port circuit switches wired as a two-stage Clos that acts as one large switch (Shoal §3.2)."""

from dataclasses import dataclass
from functools import cached_property

from weft.errors import BadInput, require
from weft.topology.fattree import folded_clos
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class CircuitClos:
    """Leaves with k/2 nodes and k/2 uplinks each, and spines between them; once per plane.

    Every cell climbs to a spine and comes down again, even to a neighbour on its own leaf, so that all paths are
    equally long. Uplink u of every leaf ends at the same spine, `u // trunk`: a full Clos has one uplink from a leaf to
    a spine, a Clos with few leaves bundles `trunk` of them, and so needs fewer spines.

    A leaf's ports 0 … k/2-1 lead to nodes, k/2 … k-1 are uplinks 0 … k/2-1. Spine ports `x · leaves + a` belong to
    leaf a, x being the number of the uplink in its bundle. A port is both an input and an output.
    """

    nodes: int = param(help="nodes in the rack")
    ports: int = param(64, "ports of a circuit switch, k")
    planes: int = param(1, "copies of the fabric, one per channel of a link")

    def __post_init__(self):
        folded_clos(self.nodes, self.ports)  # refuses what two stages cannot connect
        require(self.planes >= 1, "planes", "at least 1", self.planes)

    @property
    def half(self) -> int:
        """Nodes of a full leaf, and uplinks of every leaf."""
        return self.ports // 2

    @cached_property
    def leaves(self) -> int:
        """Leaves of a plane; only the last may have empty ports."""
        return folded_clos(self.nodes, self.ports)[0]

    @cached_property
    def trunk(self) -> int:
        """Uplinks of a leaf that end at the same spine."""
        return min(self.half, self.ports // self.leaves)

    @cached_property
    def spines(self) -> int:
        """Spines of a plane."""
        return folded_clos(self.nodes, self.ports)[1]

    @property
    def switches(self) -> int:
        """Switches of all planes."""
        return self.planes * (self.leaves + self.spines)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every switch: leaf0 …, spine0 …, with plane0. and so on in front where there are several."""
        kinds = [f"leaf{a}" for a in range(self.leaves)] + [f"spine{x}" for x in range(self.spines)]
        if self.planes == 1:
            return tuple(kinds)
        return tuple(f"plane{p}.{kind}" for p in range(self.planes) for kind in kinds)

    def locate(self, name: str) -> tuple[int, str, int]:
        """The plane, the kind ("leaf" or "spine") and the number of the switch called `name`."""
        if name not in self.names:
            raise BadInput(f"switch must be one of {self.names[0]} … {self.names[-1]}, not {name!r}")
        plane, k = divmod(self.names.index(name), self.leaves + self.spines)
        return (plane, "leaf", k) if k < self.leaves else (plane, "spine", k - self.leaves)

    def leaf(self, plane: int, a: int) -> str:
        """The name of a leaf."""
        return self.names[plane * (self.leaves + self.spines) + a]

    def spine(self, plane: int, x: int) -> str:
        """The name of a spine."""
        return self.names[plane * (self.leaves + self.spines) + self.leaves + x]

    def spine_port(self, u: int, a: int) -> tuple[int, int]:
        """The spine at the far end of uplink u of leaf a, and its port there."""
        return u // self.trunk, u % self.trunk * self.leaves + a

    def wires(self, name: str) -> list[str]:
        """What hangs on each port of a switch, as text: `node 5`, `spine0 port 3`, or nothing."""
        plane, kind, number = self.locate(name)
        out = [""] * self.ports
        if kind == "leaf":
            for port in range(min(self.half, self.nodes - number * self.half)):
                out[port] = f"node {number * self.half + port}"
            for u in range(self.half):
                x, port = self.spine_port(u, number)
                out[self.half + u] = f"{self.spine(plane, x)} port {port}"
        else:
            for u in range(number * self.trunk, min(self.half, (number + 1) * self.trunk)):
                for a in range(self.leaves):
                    out[self.spine_port(u, a)[1]] = f"{self.leaf(plane, a)} port {self.half + u}"
        return out
