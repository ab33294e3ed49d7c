"""What fabrics between hosts have in common, and their runs: full packets, and a record that kernels take."""

from typing import Any

from weft.engine.series import QUEUES
from weft.fabrics.base import Fabric, Run
from weft.hosts.settings import WIRE


class Hosted(Fabric):
    """A fabric whose hosts run a transport: what a full packet carries, and what it takes."""

    mtu: int
    settings: Any  # of the transport
    graph: Any  # weft.topology.graph.Topology

    @property
    def payload(self) -> int:
        """Bytes of a flow in a full packet."""
        return self.mtu - self.settings.header

    @property
    def wire_size(self) -> int:
        """Bytes a full packet occupies on a link, preamble and gap included."""
        return self.mtu + WIRE

    @property
    def payload_rate(self) -> float:
        """Bits of payload per second on a host's link that always carries full packets."""
        return self.link * self.payload / self.wire_size

    def queues(self) -> list[str]:
        """Every port, or every node with all its ports."""
        return self.graph.port_names(QUEUES)

    def lines(self) -> list[str]:
        """The same: a port is the sending end of a link."""
        return self.queues()


class HostedRun(Run):
    """A run whose state has a `world`, laid out by hosts.state."""

    state: Any

    @property
    def world(self):
        """The record that kernels take: the clock, the parameters, the counters."""
        return self.state.world[0]

    @property
    def now(self):
        return int(self.world["now"])

    @property
    def finished(self):
        return int(self.world["finished"])

    @property
    def work(self):
        return int(self.world["released"] + self.world["next_flow"])
