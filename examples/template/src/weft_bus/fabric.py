"""The bus: its parameters, and what follows from them."""

from dataclasses import dataclass

import numpy as np

from weft.errors import require
from weft.fabrics.base import Fabric
from weft.units import Gbps, Rate, Size, param, s, wire_time


@dataclass(frozen=True, kw_only=True)
class Bus(Fabric):
    """A shared bus: slot t belongs to node t modulo nodes, which sends one cell of its oldest flow."""

    nodes: int = param(help="nodes on the bus")
    link: Rate = param(100 * Gbps, "rate of the bus")
    cell: Size = param(64, "bytes of a cell, all of them payload")

    def __post_init__(self):
        require(self.nodes >= 2, "nodes", "at least 2", self.nodes)
        require(self.link > 0, "link", "above 0", self.link)
        require(self.cell >= 1, "cell", "at least 1 byte", self.cell)

    @property
    def slot(self) -> int:
        """Length of a slot."""
        return wire_time(self.cell, self.link)

    @property
    def payload_rate(self) -> float:
        return self.cell * 8 * s / self.slot

    def cells(self, size) -> np.ndarray:
        """Cells that so many bytes take."""
        return -(-np.asarray(size, np.int64) // self.cell)

    def ideal(self, flows):
        from weft_bus.bounds import alone

        return alone(self, flows)

    def memory(self, demand) -> int:
        return 64 * len(demand) + 64 * self.nodes

    def prepare(self, demand, *, seed: int = 0):
        from weft_bus.run import BusRun

        return BusRun(self, demand, seed)

    @staticmethod
    def facts(summary):
        yield "slots", f"{summary['slots']['idle']:,} of {summary['slots']['all']:,} went unused"
