"""DCQCN, from SIGCOMM '15; see hosts/dcqcn.py."""

from collections import deque

from weft.hosts.reference.flow import Flow
from weft.units import wire_time

ONE = 1 << 20


class RdmaNic:
    """Takes ready DCQCN flows in turn, a packet each, while fewer than two packets wait on the port."""

    def __init__(self, net, host):
        self.net, self.host = net, host
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
        if self.net.waiting(self.host) >= 2:
            self.blocked = True
            return
        while self.turn:
            sub = self.turn.popleft()
            sub.queued = False
            if sub.flow.open and sub.may_send():
                size = sub.emit()
                self.free_at = self.net.now + wire_time(size, self.net.rate(self.host))
                sub.ready()
                self.pace()
                return

    def room(self):
        if self.blocked:
            self.blocked = False
            self.pace()


class Paced(Flow):
    """A flow that has a rate and waits for its NIC."""

    class Subflow(Flow.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.nic, self.turn, self.queued, self.wait = flow.net.nics[flow.src], None, False, 0

        def ready(self):
            """Join the NIC's queue if there is something to send and its time has come; else wait for that."""
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


class Dcqcn(Paced):
    """Rate-controlled by CNPs, on a lossless network; see hosts/dcqcn.py."""

    class Subflow(Paced.Subflow):
        def __init__(self, flow, k):
            super().__init__(flow, k)
            self.line = self.rate = self.target = flow.net.rate(flow.src)
            self.alpha, self.i, self.j, self.bytes = ONE, 0, 0, 0
            self.decay = self.increase = None
            self.last_cnp, self.asked, self.pending = -self.set.cnp_gap, False, 0

        def timers(self):
            return [self.timer, self.turn, self.decay, self.increase]

        # the sender

        def begin(self):
            self.ready()

        def may_send(self):
            more = self.nxt < self.top or self.flow.taken < self.flow.segments
            return self.nxt - self.una < self.set.max_window and more

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
