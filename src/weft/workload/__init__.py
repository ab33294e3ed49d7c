"""What enters a fabric: workloads are descriptions, `draw` makes them a table of flows."""

from weft.workload.arrivals import Bursts, Poisson, Survivors
from weft.workload.disaggregated import Disaggregated
from weft.workload.files import inputs
from weft.workload.flows import ENDLESS, Flows
from weft.workload.patterns import AllToAll, Hotspot, Incast, LongFlows, Outcast, Permutation, Shorts, Shuffle
from weft.workload.traces import Trace

WORKLOADS = {
    "poisson": Poisson,
    "bursts": Bursts,
    "permutation": Permutation,
    "incast": Incast,
    "outcast": Outcast,
    "alltoall": AllToAll,
    "shuffle": Shuffle,
    "hotspot": Hotspot,
    "shorts": Shorts,
    "longflows": LongFlows,
    "survivors": Survivors,
    "disaggregated": Disaggregated,
    "trace": Trace,
}

__all__ = ["ENDLESS", "WORKLOADS", "Flows", "inputs", *(workload.__name__ for workload in WORKLOADS.values())]
