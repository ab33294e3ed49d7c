"""Ports of the twin: one direction of a link, and the queues in front of it."""

from collections import deque

from weft.hosts.reference import Packet
from weft.hosts.settings import LEAST
from weft.random import below_one, word
from weft.units import wire_time

ONE = 1 << 20


class Port:
    """One direction of a link and the queues in front of it."""

    def __init__(self, net, k):
        graph, set_ = net.graph, net.set
        self.net, self.k, self.set = net, k, set_
        frm, to = graph.port_ends()
        self.frm, self.to = int(frm[k]), int(to[k])
        self.rate, self.delay = int(graph.rate[k // 2]), int(graph.delay[k // 2])
        self.host = self.frm < graph.hosts
        self.busy, self.failures, self.up = 0, 0, True
        self.sent = 0  # ps until `busy` in which it sent
        self.lazy = set_.queue in ("trim", "priority") and not set_.share
        self.fifo = set_.queue == "droptail" and not set_.share  # the moment a packet leaves is known when it comes
        self.data, self.headers = deque(), deque()
        self.paused = self.stopped = self.timed = False
        self.turn = self.draws = self.ingress = 0
        unit = wire_time(net.fabric.wire_size, self.rate) if self.fifo else net.fabric.wire_size
        self.capacity = set_.buffer * unit
        self.header_capacity = 1 << 60 if set_.queue == "lossless" else set_.buffer * net.fabric.wire_size
        self.mark_from, self.mark_all = set_.mark_from * unit, max(set_.mark_all, set_.mark_from) * unit

    def draw(self, n):
        self.draws += 1
        return below_one(word(self.net.key ^ self.k, self.draws), n)

    def congested(self, level):
        if not self.set.mark_from or level <= self.mark_from:
            return False
        if level > self.mark_all:
            return True
        chance = int(self.set.mark_chance * ONE) * (level - self.mark_from) // (self.mark_all - self.mark_from)
        return self.draw(ONE) < chance

    def mark(self, packet, level):
        if self.congested(level):
            packet.marked = True
            self.net.count["marks"] += 1

    def accept(self, packet):
        """Queue a packet, or lose it; a header that is turned round here comes back."""
        if not self.up:
            return self.net.lose(packet)
        return self.accept_fifo(packet) if self.fifo else self.accept_queue(packet)

    def accept_fifo(self, packet):
        net = self.net
        backlog, took = max(self.busy - net.now, 0), wire_time(packet.size, self.rate)
        if not self.host:
            if backlog + took > self.capacity:
                return net.lose(packet)
            if packet.kind == "data":
                self.mark(packet, backlog)
        self.worked(net.now + backlog, took)
        packet.crossed_in = self.failures
        net.at(self.busy + self.delay, lambda: net.arrive(packet, self))
        return None

    def worked(self, since, took):
        """The port sends from `since` on, for `took`."""
        self.busy = since + took
        self.sent += took

    @staticmethod
    def held(queue):
        return sum(packet.size for packet in queue)

    def accept_queue(self, packet):
        net, set_ = self.net, self.set
        self.settle()
        high = packet.kind != "data" or packet.trimmed or (packet.urgent and set_.queue == "priority")
        high = high and set_.queue != "droptail"
        if not high and not self.host:
            room = self.capacity
            if set_.share:
                room = int(set_.share * 1024) * (net.pool[self.frm] - net.buffered[self.frm]) >> 10
            full = self.held(self.data) + packet.size > room
            if set_.queue == "trim":
                if full and self.data:
                    if self.draw_tail():
                        newcomer, packet = packet, self.data.pop()
                        self.unhold(packet)
                        self.hold(newcomer)
                    packet.trimmed, packet.size, high = True, LEAST, True
                    net.count["trims"] += 1
            elif set_.queue == "lossless":
                room = 1 << 60 if set_.share else set_.xoff * net.fabric.wire_size + net.fabric.headroom
                if packet.came.ingress + packet.size > room:
                    return net.lose(packet)
            elif full:
                return net.lose(packet)
            if not high and packet.kind == "data":
                self.mark(packet, self.held(self.data))
        if high and not self.host and self.held(self.headers) + packet.size > self.header_capacity:
            trimmed = set_.queue == "trim" and packet.kind == "data"
            if set_.bounce and trimmed and not packet.returned and packet.flow.open:
                packet.returned, packet.dst, packet.path = True, packet.flow.src, packet.seq
                net.count["bounces"] += 1
            else:
                packet = net.lose(packet)
            self.wake()
            return packet
        self.headers.append(packet) if high else self.hold(packet)
        self.wake()
        return None

    def draw_tail(self):
        self.draws += 1
        return self.set.trim_tail and below_one(word(self.net.key ^ self.k, self.draws), 2) == 1

    # accounts of a switch, and pauses

    def stop_above(self):
        if not self.set.share:
            return self.set.xoff * self.net.fabric.wire_size
        return int(self.set.share * 1024) * (self.net.pool[self.frm] - self.net.buffered[self.frm]) >> 10

    def hold(self, packet):
        self.data.append(packet)
        if self.host:
            return
        self.net.buffered[self.frm] += packet.size
        if self.set.queue == "lossless":
            came = packet.came
            came.ingress += packet.size
            if not came.stopped and came.ingress > self.stop_above():
                came.stopped = True
                self.net.count["pauses"] += 1
                came.tell("pause")

    def unhold(self, packet):
        if self.host:
            return
        self.net.buffered[self.frm] -= packet.size
        if self.set.queue == "lossless":
            came = packet.came
            came.ingress -= packet.size
            low = self.stop_above() - (self.set.xoff - self.set.xon) * self.net.fabric.wire_size
            if came.stopped and (came.ingress <= low or came.ingress == 0):
                came.stopped = False
                came.tell("resume")

    def tell(self, kind):
        """Send a pause or resume frame about this port back to its sender, ahead of all data."""
        back = self.net.ports[self.k ^ 1]
        if not back.up:
            return
        back.headers.append(Packet(kind, LEAST, seq=self.k))
        back.wake_later()

    def heed(self, kind):
        if kind == "pause":
            self.paused = True
        elif self.paused:
            self.paused = False
            self.wake()

    # sending

    def settle(self):
        """Send the packets whose turn has come since the last call, where no other port depends on the moment."""
        while self.lazy and self.busy <= self.net.now and (self.data or self.headers):
            self.send(self.busy)

    def wake_later(self):
        if not self.timed and not self.lazy:
            self.timed = True
            self.net.at(max(self.busy, self.net.now), self.freed)

    def wake(self):
        if not self.timed:
            self.send(self.net.now) if self.busy <= self.net.now else self.wake_later()

    def freed(self):
        self.timed = False
        if self.busy <= self.net.now:
            self.send(self.net.now)
        elif self.data or self.headers:
            self.wake_later()

    def send(self, at):
        """Begin to send, at the moment the port was free, what goes next."""
        net = self.net
        low = bool(self.data) and not self.paused
        if self.headers and (not low or self.set.prefer == 255 or self.turn < self.set.prefer):
            packet = self.headers.popleft()
            self.turn = min(self.turn + 1, 255)
        elif low:
            packet = self.data.popleft()
            self.turn = 0
            self.unhold(packet)
        else:
            return
        self.worked(at, wire_time(packet.size, self.rate))
        packet.crossed_in = self.failures
        net.at(self.busy + self.delay, lambda: net.arrive(packet, self))
        if self.headers or (self.data and not self.paused):
            self.wake_later()
        if self.host and packet.kind == "data":
            net.sent_data(self.frm)

    def fail(self):
        self.settle()
        self.up, self.failures = False, (self.failures + 1) % 256
        self.sent -= max(self.busy - max(self.net.now, 0), 0)  # it breaks off
        self.busy = self.net.now
        while self.headers:
            self.net.lose(self.headers.popleft())
        while self.data:
            packet = self.data.popleft()
            self.unhold(packet)
            self.net.lose(packet)

    def repair(self):
        self.up, self.paused, self.stopped = True, False, False
