"""The NIC of a host, fair: round robin over flows, a packet each; see hosts/nic.py."""

from collections import deque

from weft.units import wire_time


class FairNic:
    """Keeps what its flows send in lanes, and hands the port a packet whenever the line is free."""

    def __init__(self, net, host):
        self.net, self.host = net, host
        self.first, self.rest = deque(), deque()  # rounds of lanes: of what goes first, and of all else
        self.line_free, self.timed, self.blocked, self.turn = 0, False, False, 0

    def take(self, packet):
        """A transport has sent a packet."""
        control = packet.kind != "data"
        ahead = (self.net.classes >= 1 and control) or (self.net.classes == 2 and packet.urgent)
        round_ = self.first if ahead else self.rest
        for lane in round_:
            if lane[0].flow is packet.flow and (lane[0].kind != "data") == control and packet.flow.open:
                lane.append(packet)
                break
        else:
            round_.append(deque([packet]))
        if not self.timed:
            self.hand()

    def hand(self):
        net = self.net
        if self.line_free <= net.now:
            low = bool(self.rest)
            if low and net.waiting(self.host):
                self.blocked, low = True, False
            high = bool(self.first) and (not low or net.prefer == 255 or self.turn < net.prefer)
            if not high and not low:
                return
            round_ = self.first if high else self.rest
            lane = round_.popleft()
            packet = lane.popleft()
            if lane:
                round_.append(lane)
            self.turn = min(self.turn + 1, 255) if high else 0
            took = wire_time(packet.size, net.rate(self.host))
            net.forward(packet, self.host)
            self.line_free = net.now + took
        if self.first or self.rest:
            self.timed = True
            net.at(self.line_free, self.on_free)

    def on_free(self):
        self.timed = False
        self.hand()

    def room(self):
        """A data packet has left the port, which held this NIC up."""
        self.blocked = False
        if not self.timed:
            self.hand()
