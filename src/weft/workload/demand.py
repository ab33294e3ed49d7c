"""Demand is what a workload draws and a fabric carries: a table of flows, or cells that are made slot by slot."""

from typing import TYPE_CHECKING, ClassVar

from weft.errors import require

if TYPE_CHECKING:
    from weft.workload.flows import Flows


class Demand:
    """What fabrics, runs and results may ask of anything that is to be carried.

    `Flows` and `Cells` derive from it, and `Planned`, which stands for flows before they are drawn. A fabric says in
    `carries` which of them it takes, a workload in `draws` which one it makes.
    """

    kind: ClassVar[str] = "demand"  # in messages
    nodes: int
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of flows; 0 of cells."""
        return 0

    @property
    def waiting(self) -> int:
        """Flows that wait for others."""
        return 0

    @property
    def limited(self) -> int:
        """Flows that send at most at a rate of their own."""
        return 0

    @property
    def table(self) -> "Flows":
        """The flows, or a table of none."""
        from weft.workload.flows import Flows

        return Flows.of(nodes=self.nodes, src=(), dst=(), size=(), start=())

    def at_once(self, link: int) -> int:
        """Flows that may be under way at one time, over links of `link` b/s, as far as that is known; else 0."""
        return 0

    @property
    def endless(self) -> int:
        """Flows that never end, so that a run needs an end of its own."""
        return 0


class Planned(Demand):
    """Flows that are not drawn yet: how many there will be, as far as the workload says."""

    kind = "flows"

    def __init__(self, nodes: int, flows: int = 0, *, chained: bool = False):
        require(flows >= 0, "flows", "0 or more", flows)
        self.nodes, self.flows = nodes, flows
        self.chained = chained  # put together one by one, each waiting for others

    def __len__(self) -> int:
        return self.flows

    def __repr__(self) -> str:
        return f"<{self.flows:,} flows to be drawn for {self.nodes} nodes>"
