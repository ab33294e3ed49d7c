"""What all transports of the twin share: segments, paths, the timer of each subflow."""

from weft.hosts.reference.packet import Packet
from weft.hosts.settings import LEAST, WIRE
from weft.random import below_one, word

PATHS = 1 << 30


class Flow:
    """What all transports share: segments, paths, the timer of each subflow."""

    def __init__(self, net, f):
        self.net, self.f, self.set = net, f, net.set
        flows, payload = net.flows, net.fabric.payload
        self.src, self.dst = int(flows.src[f]), int(flows.dst[f])
        self.urgent = bool(flows.klass[f] > 0)
        self.payload = payload
        self.segments = -(-int(flows.size[f]) // payload)
        self.tail = int(flows.size[f]) - (self.segments - 1) * payload
        self.taken = self.got = 0
        self.done, self.open = False, True
        self.path_count = min(net.paths(self.src, self.dst), net.most_paths)
        self.subflows = [self.Subflow(self, k) for k in range(self.set.subflows)]
        if self.set.transport == "mptcp" and self.set.routing == "ecmp":
            first = self.subflows[0]
            order = first.shuffled(self.path_count)
            for sub in self.subflows:
                sub.path = order[sub.k % len(order)]

    def receive(self, packet):
        getattr(self.subflows[packet.subflow], "on_" + packet.kind)(packet)

    def begin(self):
        for sub in self.subflows:
            sub.begin()

    def close(self):
        self.open = False
        self.net.live -= 1
        for sub in self.subflows:
            for timer in sub.timers():
                if timer is not None:
                    timer.cancel()

    class Subflow:
        def __init__(self, flow, k):
            net = flow.net
            self.flow, self.k, self.net, self.set = flow, k, net, net.set
            self.key = word(net.key, flow.f * 16 + k)
            self.path = below_one(self.key, PATHS) if net.set.routing != "single" else 0
            self.draws, self.order, self.left_out = 0, [], set()
            self.una = self.nxt = self.top = 0
            self.last = -1
            self.window = net.set.initial_window * flow.payload
            self.threshold, self.credit = net.set.threshold * flow.payload or 1 << 60, 0
            self.rtt = self.rtt_var = 0
            self.rto, self.deadline, self.timer = net.set.rto_first, 0, None
            self.backoff = 0
            self.have: set[int] = set()
            self.expected = 0
            self.via: dict[int, int] = {}  # segment -> path it was last sent by

        def timers(self):
            return [self.timer]

        def shuffled(self, n):
            order = list(range(n))
            for p in range(n - 1, 0, -1):
                self.draws += 1
                q = below_one(word(self.key, self.draws), p + 1)
                order[p], order[q] = order[q], order[p]
            return order

        def next_path(self, data):
            if self.set.routing == "random":
                self.draws += 1
                return below_one(word(self.key, self.draws), PATHS)
            if self.set.routing == "permuted":
                while True:
                    if not self.order:
                        self.judge()
                        self.order = self.shuffled(self.flow.path_count)
                    path = self.order.pop(0)
                    if not data or path not in self.left_out:
                        return path
            return self.path

        def judge(self):
            """Find paths to leave out of the permutation that begins; only NDP does."""

        def payload_of(self, seq):
            return self.flow.tail if seq == self.last else self.flow.payload

        def claim(self):
            """Take the next segment of the flow, if any is left."""
            flow = self.flow
            if flow.taken == flow.segments:
                return False
            flow.taken += 1
            if flow.taken == flow.segments:
                self.last = self.nxt
            return True

        def send_segment(self, seq):
            flow = self.flow
            if seq < self.top:
                self.net.count["resent"] += 1
            self.top = max(self.top, seq + 1)
            size = max(self.payload_of(seq) + self.set.header + WIRE, LEAST)
            packet = Packet("data", size, flow, self.k, flow.dst, seq, self.next_path(data=True), self.net.now)
            self.via[seq] = packet.path
            packet.urgent = flow.urgent
            self.net.outbox.append((packet, flow.src))

        def send_control(self, kind, seq, echo=-1, sent=0, echoes_mark=False):
            flow = self.flow
            path = self.next_path(data=False)
            packet = Packet(kind, self.set.control, flow, self.k, flow.src, seq, path, sent, echo)
            packet.echoes_mark = echoes_mark
            self.net.outbox.append((packet, flow.dst))

        def book(self, seq):
            """Enter the arrival of a segment that is new to the receiver."""
            flow, bytes = self.flow, self.payload_of(seq)
            self.have.add(seq)
            self.net.received[flow.f] += bytes
            flow.got += 1
            if flow.got == flow.segments:
                flow.done = True
                self.net.finish[flow.f] = self.net.now
                self.net.calendar.ended(flow.f, self.net.now)

        def arm(self, deadline):
            self.deadline = deadline
            if deadline and (self.timer is None or self.timer.time > deadline):
                if self.timer is not None:
                    self.timer.cancel()
                self.timer = self.net.at(deadline, self.on_timer)

        def on_timer(self):
            self.timer = None
            if self.deadline > self.net.now:
                self.arm(self.deadline)
            elif self.deadline:
                self.on_timeout()

        def sample_rtt(self, rtt):
            if self.rtt == 0:
                self.rtt, self.rtt_var = rtt, rtt // 2
            else:
                self.rtt_var += (abs(self.rtt - rtt) - self.rtt_var) // 4
                self.rtt += (rtt - self.rtt) // 8
            self.rto = min(max(self.rtt + 4 * self.rtt_var, self.set.rto_min), self.set.rto_max)
            self.backoff = 0
