"""Follow a flow through a packet network: when each packet left, where it waited, behind what, and what became of it.

The twin carries the run again, packet by packet, and tells. It agrees with the kernel event for event, so what it tells
is what happened.
"""

from weft.fabrics.base import Step, require_few
from weft.fabrics.network.reference import Network
from weft.units import show_time

MOST = 500_000  # packets that the twin is asked to carry


def follow(fabric, flows, f: int, *, seed: int, until: int, kind=None) -> tuple[list[Step], int]:
    """(steps of flow f up to `until`, the ps at which it was done or -1), in order of time; kind: of the twin."""
    require_few(flows, fabric.payload, fabric.link, until, MOST)
    net = (kind or Followed)(fabric, flows, seed, f)
    net.run(until)
    return net.steps, net.finish[f]


class Telling:
    """What a twin with hosts needs to tell of the packets of flow f; numbers are of packets, in order of sending."""

    def __init__(self, fabric, flows, seed, f):
        super().__init__(fabric, flows, seed)
        self.f, self.steps = f, []
        self.numbered: dict[int, int] = {}
        self.kept: list = []  # the packets, so that no other takes their place in memory

    def mine(self, packet) -> bool:
        """Whether a packet is one of the flow."""
        return packet.flow is not None and packet.flow.f == self.f

    def number(self, packet) -> int:
        """The number of a packet of the flow."""
        if id(packet) not in self.numbered:
            self.numbered[id(packet)] = len(self.kept)
            self.kept.append(packet)
        return self.numbered[id(packet)]

    def tell(self, packet, what, where, why=""):
        """Tell of a packet, if it is one of the flow."""
        if self.mine(packet):
            name = f"{packet.kind} {packet.seq} {what}"
            self.steps.append(Step(self.now, self.number(packet), name, where, why))

    def lose(self, packet):
        self.tell(packet, "lost", "", "no route, a link that is down, or no room")
        return super().lose(packet)


class TellingPorts(Telling):
    """The same with ports between nodes, as packet networks and tori have them."""

    def __init__(self, fabric, flows, seed, f):
        super().__init__(fabric, flows, seed, f)
        for port in self.ports:
            port.accept = self._accepting(port, port.accept)

    def _name(self, port):
        return f"{self.graph.names[port.frm]} to {self.graph.names[port.to]}"

    def _accepting(self, port, accept):
        def told(packet):
            if not self.mine(packet):
                return accept(packet)
            wait = max(port.busy - self.now, 0)
            ahead = len(port.data) + len(port.headers)
            drops, trimmed, marked = self.count["drops"], packet.trimmed, packet.marked
            why = f"{show_time(wait)} until the port is free" if port.fifo else f"behind {ahead} and the one being sent"
            out = accept(packet)
            said = [why if wait or ahead else "port is free"]
            said += ["trimmed, the queue is full"] if packet.trimmed and not trimmed else []
            said += ["marked, the queue is long"] if packet.marked and not marked else []
            said += ["sent back to its source"] if out is not None else []
            if self.count["drops"] == drops:
                self.tell(packet, "queued", self._name(port), "; ".join(said))
            return out

        return told

    def arrive(self, packet, port):
        if packet.crossed_in == port.failures:
            self.tell(packet, "arrived", self.graph.names[port.to])
        super().arrive(packet, port)


class Followed(TellingPorts, Network):
    """A network that tells of one flow."""
