"""Follow a flow through Stardust: its packets in VOQs, the credits they waited for, and the cells they became.

The twin carries the run again, cell by cell, and tells. A cell may carry pieces of several packets: it is told under
the number of the first packet of the flow in its burst.
"""

from collections import deque

from weft.fabrics.base import Step, require_few
from weft.fabrics.network.follow import Telling
from weft.fabrics.stardust.reference import Fabric

MOST = 100_000  # packets that the twin is asked to carry


def follow(fabric, demand, f: int, *, seed: int, until: int) -> tuple[list[Step], int]:
    """(steps of flow f up to `until`, the ps at which it was done or -1), in order of time."""
    require_few(demand, fabric.payload, fabric.link, until, MOST)
    net = Followed(fabric, demand, seed, f)
    net.run(until)
    return net.steps, net.finish[f]


class Told(deque):
    """The queue of a link, which tells of a cell that joins it."""

    def __init__(self, net, link):
        super().__init__()
        self.net, self.link = net, link

    def append(self, cell):
        self.net.tell_cell(cell, "queued", self.net.name(self.link), f"behind {len(self)}")
        super().append(cell)


class Followed(Telling, Fabric):
    """A fabric that tells of one flow."""

    def __init__(self, fabric, demand, seed, f):
        super().__init__(fabric, demand, seed, f)
        self.kept_cells: list = []  # so that no other takes their place in memory
        self.cells: dict[int, int] = {}  # id of a cell -> its number in its burst
        self.counted: dict[int, int] = {}  # burst -> cells that were told of
        for link in self.links:
            link.queue = Told(self, link)

    def _node(self, v):
        adapters = len(self.adapters)
        return f"adapter {v}" if v < adapters else f"element {v - adapters}"

    def name(self, link):
        """A link by its ends."""
        return f"{self._node(link.frm)} to {self._node(link.to)}"

    def tell_cell(self, cell, what, where, why=""):
        """Tell of a cell, if there is a packet of the flow in its burst."""
        burst = cell.burst
        packet = next((packet for packet in burst.packets if self.mine(packet)), None)
        if packet is None:
            return
        if id(cell) not in self.cells:
            self.cells[id(cell)] = self.counted[burst.serial] = self.counted.get(burst.serial, 0) + 1
            self.kept_cells.append(cell)
        name = f"cell {self.cells[id(cell)]} of burst {burst.serial} {what}"
        self.steps.append(Step(self.now, self.number(packet), name, where, why))

    # packets at adapters

    def forward(self, packet, host):
        wait = max(self.lines[host] - self.now, 0)
        self.tell(packet, "sent", f"host {host}", f"{wait} ps until its link is free" if wait else "link is free")
        super().forward(packet, host)

    def store(self, q, packet):
        why = f"behind {len(q.packets)} packets, {max(q.balance, 0)} bytes of credit left"
        if self.unasked(q):
            why = "sent without credits"
        self.tell(packet, "queued", f"adapter {q.home}, VOQ to host {q.host}", why)
        super().store(q, packet)

    def on_credit(self, q, size):
        first = next((packet for packet in q.packets if self.mine(packet)), None)
        if first is not None:
            before = q.packets.index(first)
            self.tell(first, "credit came", f"adapter {q.home}", f"{size} bytes for the VOQ, it is behind {before}")
        super().on_credit(q, size)

    def serve(self, q):
        waiting = [packet for packet in q.packets if self.mine(packet)]
        serial = self.serial
        super().serve(q)
        for packet in waiting:
            if packet not in q.packets:
                local = q.home == self.ports[q.host].adapter
                why = "to a port of the same adapter" if local else f"chopped into cells as burst {serial}"
                self.tell(packet, "left", f"adapter {q.home}, VOQ to host {q.host}", why)

    # cells

    def put(self, link, slot, place):
        self.tell_cell(link.queue[0], "sent", self.name(link))
        super().put(link, slot, place)

    def receive(self, k, cell, slot):
        self.tell_cell(cell, "arrived", self._node(self.links[k].to))
        super().receive(k, cell, slot)

    def miss(self, cell):
        self.tell_cell(cell, "lost", "", "a link that is down, or no way")
        super().miss(cell)

    def deliver(self, packet):
        self.tell(packet, "arrived", f"host {packet.dst}", "its burst was whole, and in turn")
        super().deliver(packet)
