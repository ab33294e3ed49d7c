"""Packet: a packet network of one of the usual topologies, or of a file's."""

from dataclasses import dataclass
from functools import cached_property

from weft.errors import require
from weft.fabrics.network.fabric import Network
from weft.topology.clos import suited, topology
from weft.topology.graph import Topology
from weft.units import param


@dataclass(frozen=True, kw_only=True)
class Packet(Network):
    """A packet-switched network of one topology under one transport.

    What the transport and the queues are set to comes from the preset that `transport` names (`weft presets`); the
    fields that are None leave it at that. Queue lengths and windows count full-size packets.
    """

    topology: str = param(
        "auto",
        "fattree, leafspine, clos, single, dumbbell, tree, or a csv of a,b,rate,delay; auto is a fat tree if the hosts "
        "fit one, or else clos",
    )
    radix: int = param(64, "ports of a switch, in leafspine and clos")
    oversubscription: float = param(1.0, "how many times more hosts than uplinks an edge switch has")

    def __post_init__(self):
        require(self.radix >= 1, "radix", "at least 1", self.radix)
        super().__post_init__()

    @cached_property
    def graph(self) -> Topology:
        """The network as a graph."""
        name = suited(self.hosts, self.oversubscription) if self.topology == "auto" else self.topology
        return topology(name, self.hosts, self.link, self.delay, self.radix, self.oversubscription)
