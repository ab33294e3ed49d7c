"""DCTCP, from RFC 8257; see hosts/dctcp.py."""

from weft.hosts.reference.tcp import Tcp

ONE = 1 << 20


class Dctcp(Tcp):
    """TCP that cuts its window by the fraction of marked segments; see hosts/dctcp.py."""

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
