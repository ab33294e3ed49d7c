"""MPTCP, from RFC 6356, RFC 8684 and NSDI '12; see hosts/mptcp.py."""

from weft.hosts.reference.tcp import Tcp


class Mptcp(Tcp):
    """TCPs whose windows grow together, and which may send each other's segments; see hosts/mptcp.py."""

    def __init__(self, net, f):
        super().__init__(net, f)
        self.ordered = net.set.ordered
        self.acked, self.expected, self.arrived = 0, 0, set()
        self.bearer: dict[int, Mptcp.Subflow] = {}  # segment of the flow -> who is to deliver it
        self.owed: set[int] = set()  # segments that another subflow is to send
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
