"""What enters a fabric: workloads are descriptions, `draw` makes them a table of flows, or cells slot by slot."""

from weft.workload.arrivals import Bursts, Poisson, Survivors
from weft.workload.base import Workload
from weft.workload.chakra import Chakra
from weft.workload.collectives import AllGather, AllReduce, Exchange, Experts, ParameterServer, ReduceScatter
from weft.workload.demand import Demand, Planned
from weft.workload.disaggregated import Disaggregated
from weft.workload.files import inputs
from weft.workload.flows import ENDLESS, Flows
from weft.workload.patterns import AllToAll, Hotspot, Incast, LongFlows, Outcast, Permutation, Shorts, Shuffle
from weft.workload.requests import ChainReplication, MapReduce, Rpc
from weft.workload.traces import Trace
from weft.workload.traffic import Cells
from weft.workload.training import DataParallel, Pipeline

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
    "allreduce": AllReduce,
    "allgather": AllGather,
    "reducescatter": ReduceScatter,
    "exchange": Exchange,
    "experts": Experts,
    "parameterserver": ParameterServer,
    "dataparallel": DataParallel,
    "pipeline": Pipeline,
    "rpc": Rpc,
    "mapreduce": MapReduce,
    "chainreplication": ChainReplication,
    "chakra": Chakra,
    "trace": Trace,
}

__all__ = [
    "ENDLESS", "WORKLOADS", "Cells", "Demand", "Flows", "Planned", "Workload", "inputs",
    *(workload.__name__ for workload in WORKLOADS.values()),
]  # fmt: skip
