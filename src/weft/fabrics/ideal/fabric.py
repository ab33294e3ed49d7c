"""Ideal: the parameters of a switch that has no overhead, and what follows from them."""

from dataclasses import dataclass

import numpy as np

from weft.errors import require
from weft.fabrics.base import Fabric
from weft.fabrics.ideal import bounds
from weft.units import Gbps, Rate, Time, param, show_number
from weft.workload.flows import LATEST


@dataclass(frozen=True, kw_only=True)
class Ideal(Fabric):
    """An ideal switch: flows share the links of their two ends max-min fairly, and nothing else takes time.

    No header, no cell, no packet, no queue, no control loop: what a fabric that is fair to every flow could do at best
    with such links. Only the time along two cables is added. One that is not fair may do better by some flows.
    """

    releases = True

    nodes: int = param(help="nodes of the switch", also="hosts")
    link: Rate = param(100 * Gbps, "rate of a node's link")
    propagation: Time = param(0, "time along the cable between a node and the switch")

    def __post_init__(self):
        require(2 <= self.nodes <= 1 << 20, "nodes", "from 2 to 1,048,576", self.nodes)
        require(0 < self.link < 1 << 53, "link", "a positive rate below 2^53 b/s", self.link)
        require(0 <= self.propagation <= LATEST // 4, "propagation", "from 0 to 13 days", self.propagation)

    @property
    def way(self) -> int:
        """Time along both cables."""
        return 2 * self.propagation

    def ideal(self, flows) -> np.ndarray:
        """(flows,) int64 ps: a flow alone."""
        return bounds.alone(self, flows)

    @property
    def payload_rate(self) -> float:
        """Bits of payload per second on a link that is never idle: all of them."""
        return float(self.link)

    def memory(self, demand) -> int:
        """Bytes of the tables of flows and links."""
        return 160 * len(demand) + 64 * self.nodes + 512 * 8 * min(self.nodes, 8192)

    def prepare(self, demand, *, seed: int = 0):
        """A switch in which nothing has happened."""
        from weft.fabrics.ideal.run import IdealRun

        return IdealRun(self, demand, seed)

    def lines(self):
        """Both directions of every node's link."""
        return [f"{way} node {i}" for way in ("out of", "into") for i in range(self.nodes)]

    def follow(self, demand, f, *, seed, until):
        """When the rate of flow f changed, and why, from the twin."""
        from weft.fabrics.ideal.follow import follow

        return follow(self, demand, f, until=until)

    def parts(self) -> dict[str, int]:
        """Nothing that could be bought."""
        return {}

    @staticmethod
    def facts(summary):
        """Lines of a run's table."""
        yield "rates", f"changed {show_number(summary['rates']['changes'])} times"
