"""NDP, from SIGCOMM '17; see hosts/ndp.py."""

from collections import deque

from weft.hosts.reference.flow import Flow
from weft.units import wire_time


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


class Ndp(Flow):
    """Pulled by its receiver; see hosts/ndp.py."""

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
