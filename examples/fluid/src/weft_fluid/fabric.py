"""Fluid: an ideal switch, in which flows share the links of their two ends max-min fairly and nothing else exists."""

from dataclasses import dataclass

import numpy as np

from weft.fabrics.base import Fabric
from weft.units import Gbps, Rate, Time, param, s


@dataclass(frozen=True, kw_only=True)
class Fluid(Fabric):
    """An ideal switch: no header, no queue, no delay but of two cables; what a fair fabric could do at best."""

    releases = True

    nodes: int = param(help="nodes of the switch")
    link: Rate = param(100 * Gbps, "rate of a node's link")
    propagation: Time = param(0, "time along the cable between a node and the switch")

    def memory(self, demand):
        return 200 * len(demand)

    def prepare(self, demand, *, seed=0):
        from weft_fluid.run import FluidRun  # when it is needed: flags are made without loading what computes

        return FluidRun(self, demand, seed=seed)

    def ideal(self, flows):
        alone = flows.size * (8 * s / self.link)  # in floats: bits times ps overflow int64 from a megabyte on
        return np.maximum(alone.astype(np.int64), 1) + 2 * self.propagation

    @property
    def payload_rate(self):
        return float(self.link)

    @staticmethod
    def facts(summary):
        yield "rates", f"changed {summary['rates']['changes']:,} times"
