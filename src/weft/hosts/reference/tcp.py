"""TCP NewReno, from RFC 5681, 6582, 6298 and 3042; see hosts/tcp.py for the state machine."""

from weft.hosts.reference.flow import Flow
from weft.hosts.reference.sack import Selective


class Tcp(Flow):
    """TCP NewReno; see hosts/tcp.py for the state machine and its sources."""

    class Subflow(Selective, Flow.Subflow):
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
