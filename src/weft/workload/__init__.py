"""What enters a fabric: workloads are descriptions, `draw` makes them a table of flows."""

from weft.workload.arrivals import Bursts, Poisson
from weft.workload.flows import ENDLESS, Flows
from weft.workload.patterns import Incast, Outcast, Permutation
from weft.workload.traces import Trace

WORKLOADS = {
    "poisson": Poisson,
    "bursts": Bursts,
    "permutation": Permutation,
    "incast": Incast,
    "outcast": Outcast,
    "trace": Trace,
}

__all__ = ["ENDLESS", "WORKLOADS", "Bursts", "Flows", "Incast", "Outcast", "Permutation", "Poisson", "Trace"]
