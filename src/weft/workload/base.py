"""What a workload is: a frozen description that draws demand for a fabric of so many nodes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from weft.parameters import Described
from weft.workload.demand import Demand, Planned
from weft.workload.flows import Flows


class Workload(Described):
    """What enters a fabric. Workloads derive frozen dataclasses from it, and write `draw`.

    Files that a field names are found by their path: what is in them belongs to the description.
    """

    draws: ClassVar[type[Demand]] = Flows  # the kind of demand
    waits: ClassVar[bool] = False  # whether some of its flows wait for others

    if TYPE_CHECKING:  # a field or a property

        @property
        def until(self) -> int | None:
            """When a run of it stops, in ps, or None: when the last flow is done."""
    else:
        until = None

    def ends(self, demand: Demand) -> int | None:
        """When a run of what was drawn stops: where that depends on what was drawn."""
        return self.until

    def draw(self, *, nodes: int, link: int, seed: int) -> Demand:
        """The demand for a fabric of `nodes` nodes with links of `link` b/s: the same for the same arguments."""
        raise NotImplementedError  # derived classes say it

    def sections(self, fabric, flows: Flows, released, finish) -> dict:
        """What is to be said of a run of it beyond its flows, by section: requests, collectives.

        released and finish are (f,) int64 ps, -1 for what did not happen. An array of ps under a name that ends in
        `_us` becomes its mean and percentiles.
        """
        return {}

    def inputs(self) -> Iterable[str]:
        """Paths of the files that it reads, where they are not fields of it."""
        return ()

    @staticmethod
    def facts(summary: dict) -> Iterable[tuple[str, str]]:
        """(name, text) of those sections: lines of a run's table."""
        return ()

    def planned(self, nodes: int) -> Planned:
        """What is known of it before it is drawn: how many flows it will be, or none."""
        flows = getattr(self, "flows", None)
        return Planned(nodes, flows if isinstance(flows, int) and flows > 0 else 0)
