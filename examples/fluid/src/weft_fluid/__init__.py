"""A fabric and a workload that are not weft's: an ideal switch, and a ring of flows."""

from weft_fluid.fabric import Fluid
from weft_fluid.workload import Ring

__all__ = ["Fluid", "Ring"]
