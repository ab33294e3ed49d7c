"""The packet network and its transports once more, with objects and a packet at a time, to be checked by eye.

`run(fabric, flows, seed)` carries flows over a fabric in plain Python. It shares descriptions with the kernel
(topology, routes, settings, the plan of failures) and nothing that moves a packet. Given the same flows and seed the
two must end in the same fingerprint, which is folded over every arrival at a host and every loss, in order.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from weft.engine.fingerprint import Fingerprint
from weft.fabrics.packet.failures import plan
from weft.fabrics.packet.settings import LEAST, WIRE
from weft.random import below_one, key, word
from weft.topology.routes import HERE, NO_ROUTE, routes
from weft.units import wire_time

ONE = 1 << 20
PATHS = 1 << 30
KINDS = {"data": 1, "ack": 2, "nack": 3, "pull": 4, "cnp": 5, "pause": 6, "resume": 7}


@dataclass(eq=False)
class Packet:
    kind: str
    size: int  # on the wire
    flow: "Flow | None" = None
    subflow: int = 0
    dst: int = -1
    seq: int = -1
    path: int = 0
    sent: int = 0
    echo: int = -1
    blocks: list = field(default_factory=list)  # runs of segments, (first, end), that a selective ACK names
    data_ack: int = 0  # of MPTCP's ACK: up to where the flow is complete
    marked: bool = False
    echoes_mark: bool = False
    trimmed: bool = False
    returned: bool = False
    urgent: bool = False
    came: "Port | None" = None
    crossed_in: int = 0  # how often its port had failed when it was accepted


class Event:
    """Something that will happen; `cancel` it and it will not."""

    def __init__(self, time, action):
        self.time, self.action = time, action

    def cancel(self):
        self.action = None


class Network:
    """The clock, the ports, the hosts and the flows."""

    def __init__(self, fabric, flows, seed):
        self.fabric, self.flows, self.seed = fabric, flows, seed
        self.set = fabric.settings
        self.now, self.made, self.agenda = 0, 0, []
        self.outbox, self.sent_from = deque(), None
        self.print, self.key = Fingerprint(), key(seed, 0x706B74)
        self.tie_key = key(seed, 0x7469)
        self.graph, self.routes = fabric.graph, fabric.routes
        self.turns = [0] * len(self.routes.first)
        self.buffered = [0] * self.graph.nodes
        self.ports = [Port(self, k) for k in range(self.graph.ports)]
        self.pool = [0] * self.graph.nodes
        for port in self.ports:
            self.pool[port.frm] += self.set.buffer * fabric.wire_size if not port.host else 0
        self.finish = [-1] * len(flows)
        self.received = [0] * len(flows)
        self.live = 0
        self.pullers = [Puller(self) for _ in range(fabric.hosts)]
        self.nics = [Nic(self, h) for h in range(fabric.hosts)]
        self.count = dict.fromkeys(("hops", "drops", "trims", "marks", "pauses", "resent", "timeouts", "bounces"), 0)

    # time

    def at(self, time, action) -> Event:
        event = Event(time, action)
        n, self.made = self.made, self.made + 1
        order = {"fifo": n, "lifo": -n, "random": word(self.tie_key, n) >> 1}[self.fabric.ties]
        heapq.heappush(self.agenda, (time, order, n, event))
        return event

    def run(self, until):
        changes = {}
        for change in plan(self.fabric.fail, self.graph, self.seed):
            changes.setdefault(change.time, []).append(change)
            changes.setdefault(change.time + self.fabric.converge, [])
        moments = deque(sorted(changes.items()))
        starts = deque(enumerate(self.flows.start.tolist()))
        while True:
            while self.agenda and self.agenda[0][3].action is None:
                heapq.heappop(self.agenda)
            if not self.live and not starts:
                return  # what is still on its way is for nobody
            nexts = [self.agenda[0][0]] if self.agenda else []
            nexts += [starts[0][1]] if starts else []
            if moments and (not nexts or moments[0][0] <= min(nexts)):
                if until is not None and moments[0][0] > until:
                    return
                time, these = moments.popleft()
                self.now = time - 1
                self.change(time, these)
                continue
            if not nexts or (until is not None and min(nexts) > until):
                return
            if starts and starts[0][1] == min(nexts):
                f, self.now = starts.popleft()
                self.live += 1
                FLOWS[self.set.transport](self, f).begin()
            else:
                self.now, _, _, event = heapq.heappop(self.agenda)
                event.action()
            while self.outbox:
                packet, host = self.outbox.popleft()
                self.forward(packet, host)
            if self.sent_from is not None:
                nic, self.sent_from = self.sent_from, None
                nic.sent_one()

    def change(self, time, changes):
        """Fail, repair, and route by what was known `converge` ago."""
        for up in (False, True):
            for change in changes:
                if change.up == up:
                    for link in change.links:
                        for port in self.ports[2 * link : 2 * link + 2]:
                            port.repair() if up else port.fail()
        alive = [True] * len(self.graph.ends)
        for change in plan(self.fabric.fail, self.graph, self.seed):
            if change.time <= time - self.fabric.converge:
                for link in change.links:
                    alive[link] = change.up
        self.routes = routes(self.graph, np.array(alive))
        self.turns = [0] * len(self.routes.first)

    # packets

    def lose(self, packet):
        self.count["drops"] += 1
        self.print.fold(self.now, ~((packet.flow.f if packet.flow else -1) << 32 | packet.seq & 0xFFFFFFFF))

    def forward(self, packet, node):
        while packet is not None:
            port = self.route(packet, node)
            if port is None:
                self.lose(packet)
                return
            packet = port.accept(packet)

    def route(self, packet, node):
        table = self.routes
        if table.row[node] < 0:
            return self.ports[-1 - table.row[node]]
        g = int(table.table[table.row[node], table.anchor[packet.dst]])
        if g == NO_ROUTE:
            return None
        if g == HERE:
            return self.ports[table.down[packet.dst]]
        first, count = int(table.first[g]), int(table.count[g])
        if count == 1:
            turn = 0
        elif self.set.routing == "roundrobin":
            turn, self.turns[g] = self.turns[g], (self.turns[g] + 1) % count
        else:
            packet.path, turn = divmod(packet.path, count)
        return self.ports[table.choices[first + turn]]

    def arrive(self, packet, port):
        """A packet has crossed `port`."""
        self.count["hops"] += 1
        port.settle()
        if packet.crossed_in != port.failures:
            self.lose(packet)
        elif packet.kind in ("pause", "resume"):
            self.ports[packet.seq].heed(packet.kind)
        elif port.to >= self.fabric.hosts:
            packet.came = port
            self.forward(packet, port.to)
        else:
            flow = packet.flow
            self.print.fold(self.now, flow.f << 32 | packet.seq << 4 | KINDS[packet.kind])
            if flow.open:
                flow.receive(packet)


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
        self.busy = net.now + backlog + took
        packet.crossed_in = self.failures
        net.at(self.busy + self.delay, lambda: net.arrive(packet, self))
        return None

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
        """Send the packets whose turn came since somebody last looked, where nobody else depends on the moment."""
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
        self.busy = at + wire_time(packet.size, self.rate)
        packet.crossed_in = self.failures
        net.at(self.busy + self.delay, lambda: net.arrive(packet, self))
        if self.headers or (self.data and not self.paused):
            self.wake_later()
        if self.host and packet.kind == "data" and net.set.transport == "dcqcn":
            net.sent_from = net.nics[self.frm]

    def fail(self):
        self.settle()
        self.up, self.failures, self.busy = False, (self.failures + 1) % 256, self.net.now
        while self.headers:
            self.net.lose(self.headers.popleft())
        while self.data:
            packet = self.data.popleft()
            self.unhold(packet)
            self.net.lose(packet)

    def repair(self):
        self.up, self.paused, self.stopped = True, False, False


class Puller:
    """The pacer of a receiver: one pull at a time, a full packet apart, its senders in turn."""

    def __init__(self, net):
        self.net, self.turn, self.free_at, self.pacing = net, deque(), 0, False

    def owe(self, sub):
        sub.owed += 1
        if not sub.queued:
            sub.queued = True
            self.turn.append(sub)
        if not self.pacing:
            self.pacing = True
            self.net.at(max(self.net.now, self.free_at), self.pull)

    def pull(self):
        self.pacing = False
        while self.turn:
            sub = self.turn.popleft()
            sub.queued = False
            if not sub.flow.open or not sub.owed:
                continue
            sub.owed -= 1
            sub.pulled += 1
            sub.send_control("pull", sub.pulled)
            if sub.owed:
                sub.queued = True
                self.turn.append(sub)
            self.free_at = self.net.now + wire_time(self.net.fabric.wire_size, self.net.fabric.link)
            if self.turn:
                self.pacing = True
                self.net.at(self.free_at, self.pull)
            return


class Nic:
    """Takes ready DCQCN flows in turn, a packet each, while fewer than two packets wait on the port."""

    def __init__(self, net, host):
        self.net = net
        self.port = next(port for port in net.ports if port.frm == host)
        self.turn, self.free_at, self.pacing, self.blocked = deque(), 0, False, False

    def join(self, sub):
        self.turn.append(sub)
        self.pace()

    def pace(self):
        if self.turn and not self.pacing and not self.blocked:
            self.pacing = True
            self.net.at(max(self.net.now, self.free_at), self.take)

    def take(self):
        self.pacing = False
        if len(self.port.data) >= 2:
            self.blocked = True
            return
        while self.turn:
            sub = self.turn.popleft()
            sub.queued = False
            if sub.flow.open and sub.may_send():
                size = sub.emit()
                self.free_at = self.net.now + wire_time(size, self.port.rate)
                sub.ready()
                self.pace()
                return

    def sent_one(self):
        if self.blocked:
            self.blocked = False
            self.pace()


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
        self.path_count = self.paths()
        self.subflows = [self.Subflow(self, k) for k in range(self.set.subflows)]
        if self.set.transport == "mptcp" and self.set.routing == "ecmp":
            first = self.subflows[0]
            order = first.shuffled(self.path_count)
            for sub in self.subflows:
                sub.path = order[sub.k % len(order)]

    def paths(self):
        """The number of shortest paths, as the product of the choices along the first of them."""
        net, table = self.net, self.net.routes
        node, paths = self.src, 1
        while node != self.dst:
            if table.row[node] < 0:
                node = net.ports[-1 - table.row[node]].to
                continue
            g = int(table.table[table.row[node], table.anchor[self.dst]])
            if g < 0:
                break
            paths *= int(table.count[g])
            node = net.ports[table.choices[table.first[g]]].to
        return min(paths, net.fabric._paths(net.fabric.routes))

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


class Tcp(Flow):
    """TCP NewReno; see transports/tcp.py for the state machine and its sources."""

    class Subflow(Flow.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.duplicates, self.recover, self.recovering = 0, -1, False
            self.sacked: set[int] = set()  # segments beyond `una` that are known to have arrived
            self.high_rxt = self.rescue_rxt = -1
            self.latest: list[int] = []  # a segment of each run held beyond a gap, the latest first
            self.pending, self.stamp, self.wait, self.waiting, self.echoing = 0, 0, 0, None, False

        def timers(self):
            return [self.timer, self.waiting]

        # the sender

        def begin(self):
            self.fill()

        def is_lost(self, seq):
            """RFC 6675 §4, in whole segments."""
            return len([s for s in self.sacked if s > seq]) >= 3

        def pipe(self):
            """RFC 6675 §4, SetPipe."""
            missing = [seq for seq in range(self.una, self.nxt) if seq not in self.sacked]
            return sum((not self.is_lost(seq)) + (seq <= self.high_rxt) for seq in missing)

        def next_seg(self):
            """RFC 6675 §4: the segment to send next in recovery, and the rule that says so; or None."""
            highest = max(self.sacked, default=-1)
            for seq in range(max(self.high_rxt + 1, self.una), highest):
                if seq not in self.sacked and self.is_lost(seq):
                    return seq, 1
            if self.nxt - self.una < self.set.max_window and self.claim():
                return self.nxt, 2
            for seq in range(max(self.high_rxt + 1, self.una), highest):
                if seq not in self.sacked:
                    return seq, 3
            if self.una - 1 > self.rescue_rxt:
                return max(seq for seq in range(self.una, self.nxt) if seq not in self.sacked), 4
            return None

        def fill(self):
            payload, most = self.flow.payload, self.set.max_window
            if self.set.sack and self.recovering:
                while (self.pipe() + 1) * payload <= self.window:
                    found = self.next_seg()
                    if found is None:
                        break
                    seq, rule = found
                    if rule == 2:
                        self.nxt += 1
                    elif rule == 4:
                        self.rescue_rxt = self.recover
                    else:
                        self.high_rxt = seq
                    self.send_segment(seq)
            else:
                allowed = self.window // payload
                if self.set.limited and not self.recovering:
                    allowed += min(self.duplicates, 2)
                while self.nxt - self.una < min(allowed, most) and (self.nxt < self.top or self.claim()):
                    self.nxt += 1
                    if self.nxt - 1 not in self.sacked:
                        self.send_segment(self.nxt - 1)
            if not self.deadline and self.nxt > self.una:
                self.arm(self.net.now + self.rto)

        def on_ack(self, packet):
            ack, payload = packet.seq, self.flow.payload
            duplicate = ack == self.una and self.nxt > self.una
            if self.set.sack:
                told = {seq for first, end in packet.blocks for seq in range(first, end) if seq >= self.una}
                duplicate = bool(told - self.sacked)
                self.sacked |= told
            if ack > self.una:
                self.on_new_ack(packet, ack - self.una)
            elif ack == self.una and self.nxt > self.una:
                self.react(0, packet.echoes_mark)
            if duplicate and self.recovering:
                self.window += 0 if self.set.sack else payload
            elif duplicate:
                self.duplicates += 1
                if self.una > self.recover and (self.duplicates >= 3 or self.is_lost(self.una)):
                    self.threshold = max((self.nxt - self.una) * payload // 2, 2 * payload)
                    self.recover, self.recovering, self.credit = self.top - 1, True, 0
                    self.window = self.threshold + (0 if self.set.sack else 3 * payload)
                    self.high_rxt = self.rescue_rxt = self.una
                    self.send_segment(self.una)
            self.fill()
            self.finish()

        def finish(self):
            """Close the flow if its sender knows that everything has arrived."""
            if self.flow.done and all(sub.una == sub.top for sub in self.flow.subflows):
                self.flow.close()

        def on_new_ack(self, packet, newly):
            ack, payload = packet.seq, self.flow.payload
            self.sacked -= set(range(self.una, ack))
            self.una, self.nxt = ack, max(self.nxt, ack)
            self.sample_rtt(self.net.now - packet.sent)
            may_grow = self.react(newly, packet.echoes_mark)
            if self.recovering:
                if ack > self.recover:
                    self.recovering, self.duplicates = False, 0
                    if not self.set.sack:
                        self.window = min(self.threshold, max(self.nxt - ack, 1) * payload + payload)
                elif not self.set.sack:
                    self.window = max(self.window - newly * payload + payload, payload)
                    self.send_segment(ack)
            else:
                self.duplicates = 0
                if may_grow:
                    self.grow(newly)
                    self.window = min(self.window, self.set.max_window * payload)
            self.arm(self.net.now + self.rto if self.nxt > self.una else 0)

        def react(self, newly, echoed):
            """Answer an echoed mark; True if the window may grow."""
            return True

        def grow(self, newly):
            payload = self.flow.payload
            if self.window < self.threshold:
                self.window += payload
            else:
                self.avoid_congestion(newly)

        def avoid_congestion(self, newly):
            self.credit += self.flow.payload**2
            step, self.credit = divmod(self.credit, self.window)
            self.window += step

        def on_timeout(self):
            payload = self.flow.payload
            self.net.count["timeouts"] += 1
            if self.backoff == 0:
                self.threshold = max((self.nxt - self.una) * payload // 2, 2 * payload)
            self.backoff = min(self.backoff + 1, 12)
            self.window, self.recover, self.recovering = payload, self.top - 1, False
            self.duplicates = self.credit = 0
            self.nxt = self.una
            self.sacked.clear()
            self.rto = min(2 * self.rto, self.set.rto_max)
            self.deadline = 0
            self.fill()

        # the receiver

        def run_of(self, seq):
            """The run of segments, (first, end), that `seq` belongs to among those held beyond a gap."""
            first = end = seq
            while first - 1 in self.have:
                first -= 1
            while end in self.have:
                end += 1
            return first, end

        def acknowledge(self, echo):
            self.pending = 0
            self.send_control("ack", self.expected, -1, self.stamp, echo)
            if self.set.sack:
                self.latest = [seq for seq in self.latest if seq > self.expected]
                packet = self.net.outbox[-1][0]
                packet.blocks = [self.run_of(seq) for seq in self.latest[: self.set.blocks]]
                packet.size += 4 + 8 * len(packet.blocks) if packet.blocks else 0

        def on_data(self, packet):
            seq = packet.seq
            if self.pending and packet.marked != self.echoing and self.set.transport == "dctcp":
                self.acknowledge(self.echoing)
            self.echoing = packet.marked
            in_order = seq == self.expected
            if seq >= self.expected and seq not in self.have:
                self.book(seq)
                while self.expected in self.have:
                    self.have.remove(self.expected)
                    self.expected += 1
            if seq > self.expected:
                first, end = self.run_of(seq)
                self.latest = [seq, *(other for other in self.latest if not first <= other < end)][:4]
            if not self.pending:
                self.stamp, self.wait = packet.sent, self.net.now + self.set.ack_delay
            self.pending += 1
            at_once = not in_order or self.expected != seq + 1 or self.flow.done
            if at_once or self.pending >= self.set.ack_every:
                self.acknowledge(packet.marked)
            elif self.waiting is None:
                self.waiting = self.net.at(self.wait, self.on_waited)

        def on_waited(self):
            self.waiting = None
            if self.pending and self.wait > self.net.now:
                self.waiting = self.net.at(self.wait, self.on_waited)
            elif self.pending:
                self.acknowledge(self.echoing)


class Dctcp(Tcp):
    """TCP that cuts its window by the fraction of marked segments; see transports/dctcp.py."""

    class Subflow(Tcp.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.alpha, self.acked, self.acked_marked, self.window_end, self.cut = ONE, 0, 0, 0, False

        def react(self, newly, echoed):
            self.acked += newly
            self.acked_marked += newly if echoed else 0
            if self.una >= self.window_end:
                if self.acked:
                    self.alpha += (self.acked_marked * ONE // self.acked - self.alpha) >> self.set.gain_shift
                self.acked = self.acked_marked = 0
                self.window_end, self.cut = self.nxt, False
            if echoed and not self.cut and not self.recovering:
                self.window = max(self.window - self.window * self.alpha // (2 * ONE), self.flow.payload)
                self.threshold, self.cut = self.window, True
            return not echoed


class Mptcp(Tcp):
    """TCPs whose windows grow together, and which may send each other's segments; see transports/mptcp.py."""

    def __init__(self, net, f):
        super().__init__(net, f)
        self.ordered = net.set.ordered
        self.acked, self.expected, self.arrived = 0, 0, set()
        self.bearer: dict[int, Mptcp.Subflow] = {}  # segment of the flow -> who is to deliver it
        self.owed: set[int] = set()  # segments that somebody else is to send
        self.hastened: set[int] = set()  # segments that were sent again for the receive window

    class Subflow(Tcp.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.carries: dict[int, int] = {}  # segment -> segment of the flow
            self.penalised = 0

        def claim(self):
            flow = self.flow
            if not flow.ordered:
                return super().claim()
            d = self.choose()
            if d is None:
                return False
            flow.bearer[d] = self
            self.carries[self.nxt] = d
            return True

        def choose(self):
            """The segment of the flow to send next, or None."""
            flow, set_ = self.flow, self.set
            others = [d for d in flow.owed if flow.bearer[d] is not self]
            if others:
                flow.owed.remove(min(others))
                return min(others)
            if flow.taken == flow.segments:
                return None
            if flow.taken - flow.acked < set_.stream_window:
                flow.taken += 1
                return flow.taken - 1
            slow = flow.bearer[flow.acked]
            if not set_.opportunistic or slow is self or flow.acked in flow.hastened:
                return None
            if set_.penalise and self.net.now - slow.penalised >= slow.rtt:
                slow.penalised = self.net.now
                slow.window = slow.threshold = max(slow.window // 2, flow.payload)
            flow.hastened.add(flow.acked)
            flow.owed.discard(flow.acked)
            return flow.acked

        def payload_of(self, seq):
            if not self.flow.ordered:
                return super().payload_of(seq)
            return self.flow.tail if self.carries[seq] == self.flow.segments - 1 else self.flow.payload

        def on_ack(self, packet):
            flow, set_ = self.flow, self.set
            stopped = flow.taken - flow.acked >= set_.stream_window
            self.widened = flow.ordered and packet.data_ack > flow.acked and stopped
            if flow.ordered:
                delivered = {self.carries[seq] for seq in range(self.una, packet.seq)}
                flow.owed -= {d for d in delivered & flow.owed if flow.bearer[d] is self}
                flow.acked = max(flow.acked, packet.data_ack)
                flow.owed = {d for d in flow.owed if d >= flow.acked}
            super().on_ack(packet)

        def finish(self):
            if self.widened:
                self.fill_others()
            if not self.flow.ordered:
                super().finish()
            elif self.flow.acked == self.flow.segments:
                self.flow.close()

        def fill_others(self):
            for sub in self.flow.subflows:
                if sub is not self:
                    sub.fill()

        def on_timeout(self):
            flow, moves = self.flow, self.set.reinject
            if moves:
                stuck = {self.carries[seq] for seq in range(self.una, self.top) if seq not in self.sacked}
                flow.owed |= {d for d in stuck if d >= flow.acked and flow.bearer[d] is self}
            super().on_timeout()
            if moves:
                self.fill_others()

        def acknowledge(self, echo):
            super().acknowledge(echo)
            self.net.outbox[-1][0].data_ack = self.flow.expected

        def book(self, seq):
            flow = self.flow
            if flow.ordered:
                d = self.carries[seq]
                if d < flow.expected or d in flow.arrived:
                    self.have.add(seq)
                    return
                flow.arrived.add(d)
                while flow.expected in flow.arrived:
                    flow.arrived.remove(flow.expected)
                    flow.expected += 1
            super().book(seq)

        def avoid_congestion(self, newly):
            if not self.set.coupled:
                return super().avoid_congestion(newly)
            payload = float(self.flow.payload)
            known = [sub for sub in self.flow.subflows if sub.rtt]
            pull = 0.0
            for sub in known:
                pull += sub.window / sub.rtt
            step = payload * payload / self.window
            if known:
                best = max(sub.window / sub.rtt / sub.rtt for sub in known)
                step = min(step, best / pull / pull * payload * payload)
            self.credit += int(step * float(newly) * 65536.0)
            self.window += self.credit >> 16
            self.credit &= 65535


class Ndp(Flow):
    """Pulled by its receiver; see transports/ndp.py."""

    def receive(self, packet):
        sub = self.subflows[0]
        if packet.returned:
            sub.on_returned(packet)
        else:
            super().receive(packet)

    class Subflow(Flow.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.flying: dict[int, str] = {}  # segment -> "fresh" or, once the clock has ticked, "old"
            self.arrived: set[int] = set()
            self.lost: list[int] = []
            self.answers = self.answered = self.unspent = 0
            self.owed, self.pulled, self.queued = 0, 0, False
            self.tried, self.failed = [0] * flow.path_count, [0] * flow.path_count

        # the sender

        def begin(self):
            self.heard = self.net.now
            for _ in range(self.set.initial_window):
                if not self.send_next():
                    return

        def send_next(self):
            if self.lost:
                seq = min(self.lost)
                self.lost.remove(seq)
                self.send(seq)
                return True
            if self.nxt - self.una < self.set.max_window and self.claim():
                self.nxt += 1
                self.send(self.nxt - 1)
                return True
            return False

        def judge(self):
            """Leave paths out that failed four times and twice as often as all; forget half after 16 tries each."""
            if self.set.scoreboard:
                every, bad = sum(self.tried), sum(self.failed)
                scores = list(zip(self.tried, self.failed, strict=True))
                self.left_out = {p for p, (of, f) in enumerate(scores) if f >= 4 and f * every > 2 * bad * of}
                if every >= 16 * len(scores):
                    self.tried, self.failed = [n // 2 for n in self.tried], [n // 2 for n in self.failed]

        def tally(self, seq, failed):
            if self.set.scoreboard and self.set.routing == "permuted":
                self.tried[self.via[seq]] += 1
                self.failed[self.via[seq]] += failed

        def send(self, seq):
            self.flying[seq] = "fresh"
            self.send_segment(seq)
            if not self.deadline:
                self.arm(self.net.now + self.set.rto_min)

        def on_ack(self, packet):
            seq = packet.echo
            self.heard = self.net.now
            self.answers += 1
            if seq in self.lost:
                self.lost.remove(seq)
            elif self.flying.pop(seq, None) is None:
                return
            self.tally(seq, failed=False)
            self.arrived.add(seq)
            while self.una in self.arrived:
                self.arrived.remove(self.una)
                self.una += 1
            if self.una == self.nxt and self.flow.taken == self.flow.segments:
                self.flow.close()

        def on_nack(self, packet):
            self.heard = self.net.now
            self.answers += 1
            if self.flying.pop(packet.echo, None):
                self.tally(packet.echo, failed=True)
                self.lost.append(packet.echo)
                if self.unspent:
                    self.unspent -= 1
                    self.send_next()

        def on_returned(self, packet):
            if self.flying.pop(packet.seq, None):
                self.tally(packet.seq, failed=True)
                self.lost.append(packet.seq)
                if not self.flying and self.answered >= self.answers:
                    self.send_next()

        def on_pull(self, packet):
            self.heard = self.net.now
            while self.answered < packet.seq:
                self.answered += 1
                self.unspent += not self.send_next()

        def on_timeout(self):
            self.deadline = 0
            forgotten = not self.flying and self.net.now - self.heard >= self.set.rto_max and self.send_next()
            late = [seq for seq, age in self.flying.items() if age == "old"]
            for seq in self.flying:
                self.flying[seq] = "old"
            for seq in sorted(late):
                self.tally(seq, failed=True)
                self.send(seq)
            if late or forgotten:
                self.net.count["timeouts"] += 1
            if not self.deadline:
                self.arm(self.net.now + self.set.rto_min)

        # the receiver

        def on_data(self, packet):
            seq = packet.seq
            known = seq < self.expected or seq in self.have
            if packet.trimmed and not known:
                self.send_control("nack", self.expected, seq)
            else:
                self.send_control("ack", self.expected, seq)
                if not known:
                    self.book(seq)
                    while self.expected in self.have:
                        self.have.remove(self.expected)
                        self.expected += 1
            if self.flow.done:
                self.owed = 0
            else:
                self.net.pullers[self.flow.dst].owe(self)


class Dcqcn(Flow):
    """Rate-controlled by CNPs, on a lossless network; see transports/dcqcn.py."""

    class Subflow(Flow.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.nic = flow.net.nics[flow.src]
            self.line = self.rate = self.target = self.nic.port.rate
            self.alpha, self.i, self.j, self.bytes = ONE, 0, 0, 0
            self.turn = self.decay = self.increase = None
            self.queued, self.wait = False, 0
            self.last_cnp, self.asked, self.pending = -self.set.cnp_gap, False, 0

        def timers(self):
            return [self.timer, self.turn, self.decay, self.increase]

        # the sender

        def begin(self):
            self.ready()

        def may_send(self):
            more = self.nxt < self.top or self.flow.taken < self.flow.segments
            return self.nxt - self.una < self.set.max_window and more

        def ready(self):
            if self.queued or self.turn is not None or not self.may_send():
                return
            if self.wait > self.net.now:
                self.turn = self.net.at(self.wait, self.on_turn)
            else:
                self.queued = True
                self.nic.join(self)

        def on_turn(self):
            self.turn = None
            self.ready()

        def emit(self):
            """Send the next segment; bytes it takes on the wire."""
            if self.nxt == self.top:
                self.claim()
            seq, self.nxt = self.nxt, self.nxt + 1
            self.send_segment(seq)
            size = self.net.outbox[-1][0].size
            self.wait = self.net.now + wire_time(size, self.rate)
            if not self.deadline:
                self.arm(self.net.now + self.rto)
            if self.increase is not None:
                self.bytes += size
                if self.bytes >= self.set.raise_bytes:
                    self.bytes -= self.set.raise_bytes
                    self.j += 1
                    self.raise_rate()
            return size

        def on_cnp(self, packet):
            self.target = self.rate
            self.rate = max(self.rate - self.rate * (self.alpha // 2) // ONE, self.set.rate_min)
            self.alpha += (ONE - self.alpha) >> self.set.gain_shift
            self.i = self.j = self.bytes = 0
            for timer in (self.decay, self.increase):
                if timer is not None:
                    timer.cancel()
            self.decay = self.net.at(self.net.now + self.set.alpha_gap, self.on_decay)
            self.increase = self.net.at(self.net.now + self.set.raise_gap, self.on_increase)

        def on_decay(self):
            step = self.alpha >> self.set.gain_shift
            self.alpha -= step
            self.decay = self.net.at(self.net.now + self.set.alpha_gap, self.on_decay) if step else None

        def on_increase(self):
            self.i += 1
            self.raise_rate()
            more = self.rate < self.line
            self.increase = self.net.at(self.net.now + self.set.raise_gap, self.on_increase) if more else None

        def raise_rate(self):
            rounds = self.set.fast_rounds
            if min(self.i, self.j) > rounds:
                self.target += (min(self.i, self.j) - rounds) * self.set.rate_leap
            elif max(self.i, self.j) >= rounds:
                self.target += self.set.rate_step
            self.target = min(self.target, self.line)
            self.rate = (self.target + self.rate + 1) // 2

        def on_ack(self, packet):
            ack = packet.seq
            if ack > self.una:
                self.una, self.nxt, self.rto = ack, max(self.nxt, ack), self.set.rto_min
                self.arm(self.net.now + self.rto if self.una < self.top else 0)
            if packet.kind == "nack" and ack >= self.una:
                self.nxt = self.una
            if self.una == self.flow.segments:
                self.flow.close()
            else:
                self.ready()

        on_nack = on_ack

        def on_timeout(self):
            self.net.count["timeouts"] += 1
            self.nxt = self.una
            self.rto = min(2 * self.rto, self.set.rto_max)
            self.arm(self.net.now + self.rto)
            self.ready()

        # the receiver

        def on_data(self, packet):
            seq = packet.seq
            if packet.marked and self.net.now - self.last_cnp >= self.set.cnp_gap:
                self.last_cnp = self.net.now
                self.send_control("cnp", self.expected, seq)
            if seq > self.expected:
                if not self.asked:
                    self.asked = True
                    self.send_control("nack", self.expected, seq)
                return
            if seq == self.expected:
                self.book(seq)
                self.expected += 1
                self.asked = False
                self.pending += 1
                if self.pending < self.set.ack_every and not self.flow.done:
                    return
            self.pending = 0
            self.send_control("ack", self.expected, seq)


FLOWS = {"tcp": Tcp, "dctcp": Dctcp, "mptcp": Mptcp, "ndp": Ndp, "dcqcn": Dcqcn}


def run(fabric, flows, *, seed=0, until=None) -> Network:
    """Carry `flows` over `fabric` and return the network afterwards."""
    net = Network(fabric, flows, seed)
    net.run(until)
    return net
