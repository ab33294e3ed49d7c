"""Ring: every node sends to the next one, all at once."""

from dataclasses import dataclass

from weft.units import Size, param
from weft.workload import Flows, Workload


@dataclass(frozen=True, kw_only=True)
class Ring(Workload):
    """Every node sends `bytes` to its neighbour, all from time 0."""

    bytes: Size = param(help="bytes of every flow")

    def draw(self, *, nodes, link, seed):
        return Flows.of(
            nodes=nodes, src=range(nodes), dst=[(i + 1) % nodes for i in range(nodes)], size=self.bytes, start=0
        )
