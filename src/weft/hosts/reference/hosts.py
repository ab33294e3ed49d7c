"""The clock, the hosts and the flows of the twin: all that is not the network."""

import heapq
from collections import deque
from typing import ClassVar

from weft.engine.calendar import Calendar
from weft.engine.fingerprint import Fingerprint
from weft.hosts.reference.dcqcn import Dcqcn, RdmaNic
from weft.hosts.reference.dctcp import Dctcp
from weft.hosts.reference.mptcp import Mptcp
from weft.hosts.reference.ndp import Ndp, Puller
from weft.hosts.reference.nic import FairNic
from weft.hosts.reference.packet import KINDS
from weft.hosts.reference.tcp import Tcp
from weft.random import key, word

FLOWS = {"tcp": Tcp, "dctcp": Dctcp, "mptcp": Mptcp, "ndp": Ndp, "dcqcn": Dcqcn}


class Event:
    """Something that will happen; `cancel` it and it will not."""

    def __init__(self, time, action):
        self.time, self.action = time, action

    def cancel(self):
        self.action = None


class Hosts:
    """Hosts and their flows. A network derives from it and gives `forward`, `paths`, `rate` and `waiting`.

    fabric is what `weft.hosts` says a network's description has. A packet that has reached its host is handed to
    `deliver`, one that is lost to `lose`.
    """

    classes, prefer = 0, 255  # what may pass data at a host's port, and how often before data has a turn
    protocols: ClassVar[dict] = FLOWS  # by the name of the transport; a network may have one of its own
    nic_kinds: ClassVar[dict] = {"dcqcn": RdmaNic}  # of transports whose flows the NIC takes in turn
    most_paths = 1  # the largest number of paths between two hosts

    def __init__(self, fabric, flows, seed):
        self.fabric, self.flows, self.seed = fabric, flows, seed
        self.set = fabric.settings
        self.now, self.made, self.agenda = 0, 0, []
        self.outbox, self.has_room = deque(), None
        self.print, self.key = Fingerprint(), key(seed, 0x706B74)
        self.tie_key = key(seed, 0x7469)
        self.finish = [-1] * len(flows)
        self.received = [0] * len(flows)
        self.live = 0
        self.calendar = Calendar(flows)
        self.count = dict.fromkeys(("drops", "resent", "timeouts"), 0)
        self.moments = deque()  # (time, action): what is done to the network just before `time`
        self.pullers = [Puller(self) for _ in range(fabric.hosts)]
        kind = self.nic_kinds.get(self.set.transport, FairNic)
        self.nics = [kind(self, h) for h in range(fabric.hosts)]
        self.fair = self.set.nic == "fair" and kind is FairNic
        self.notice = getattr(self.set, "notice", 0)

    # what a network gives

    def forward(self, packet, host):
        """Take a packet from its host, to be sent behind what the host sent before."""
        raise NotImplementedError  # derived classes say it

    def paths(self, src, dst):
        """The number of paths between two hosts."""
        return 1

    def rate(self, host):
        """Bits a second of the host's port."""
        return self.fabric.link

    def waiting(self, host):
        """Data packets that wait on the host's port, the one being sent left out."""
        return 0

    # time

    def at(self, time, action) -> Event:
        event = Event(time, action)
        n, self.made = self.made, self.made + 1
        order = {"fifo": n, "lifo": -n, "random": word(self.tie_key, n) >> 1}[self.fabric.ties]
        heapq.heappush(self.agenda, (time, order, n, event))
        return event

    def run(self, until=None):
        while True:
            while self.agenda and self.agenda[0][3].action is None:
                heapq.heappop(self.agenda)
            if not self.live and not self.calendar:
                return  # what is still on its way belongs to finished flows
            nexts = [self.agenda[0][0]] if self.agenda else []
            nexts += [self.calendar.next] if self.calendar else []
            if self.moments and (not nexts or self.moments[0][0] <= min(nexts)):
                if until is not None and self.moments[0][0] > until:
                    return
                time, action = self.moments.popleft()
                self.now = time - 1
                action()
                continue
            if not nexts or (until is not None and min(nexts) > until):
                return
            if self.calendar and self.calendar.next == min(nexts):
                self.now, f = self.calendar.next, self.calendar.pop()
                self.live += 1
                self.protocols[self.set.transport](self, f).begin()
            else:
                self.now, _, _, event = heapq.heappop(self.agenda)
                event.action()
            while self.outbox:
                packet, host = self.outbox.popleft()
                self.nics[host].take(packet) if self.fair else self.forward(packet, host)
            if self.has_room is not None:
                nic, self.has_room = self.has_room, None
                nic.room()

    # packets

    def lose(self, packet):
        """A packet is lost on its way."""
        self.count["drops"] += 1
        self.print.fold(self.now, ~((packet.flow.f if packet.flow else -1) << 32 | packet.seq & 0xFFFFFFFF))
        if self.notice:
            self.at(self.now + self.notice, lambda: packet.flow.open and packet.flow.on_lost(packet))

    def deliver(self, packet):
        """A packet has reached its host."""
        flow = packet.flow
        self.print.fold(self.now, flow.f << 32 | packet.seq << 4 | KINDS[packet.kind])
        if flow.open:
            flow.receive(packet)

    def sent_data(self, host):
        """A data packet has left the host's port: for a NIC that was held up."""
        if self.nics[host].blocked:
            self.has_room = self.nics[host]
