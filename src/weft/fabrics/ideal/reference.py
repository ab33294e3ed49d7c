"""The ideal switch in plain Python: flows with what they have left, and links that are shared out from the tightest."""

from math import ceil

from weft.engine.calendar import Calendar
from weft.engine.fingerprint import Fingerprint
from weft.units import s


class Flow:
    """A flow under way."""

    def __init__(self, number, src, dst, size):
        self.number, self.links, self.left, self.rate = number, (("out", src), ("in", dst)), size * 8.0, 0.0


class Twin:
    """An ideal switch under way."""

    def __init__(self, fabric, flows):
        self.fabric, self.flows, self.now = fabric, flows, 0
        self.finish = [-1] * len(flows)
        self.calendar = Calendar(flows, extra=fabric.way)
        self.live: list[Flow] = []
        self.sends = {(way, i): 0.0 for way in ("out", "in") for i in range(fabric.nodes)}  # ps at the full rate
        self.print = Fingerprint()

    def run(self, until=None):
        """Let flows begin and end until all are done, or until `until` (ps) has passed."""
        while (self.calendar or self.live) and (until is None or self.now < until):
            while self.calendar and self.calendar.next <= self.now:
                f = self.calendar.pop()
                self.live.append(Flow(f, int(self.flows.src[f]), int(self.flows.dst[f]), int(self.flows.size[f])))
            self.share()
            ends = [self.now + max(ceil(flow.left / flow.rate), 1) for flow in self.live]
            begins = [self.calendar.next] if self.calendar else []
            moment = min(ends + begins)
            if begins and begins[0] < min(ends, default=moment + 1):
                self.pass_time(moment, [])
            else:
                self.pass_time(moment, [flow for flow, end in zip(self.live, ends, strict=True) if end <= moment])
        return self

    def pass_time(self, moment, over):
        """Let time pass to `moment`, when the flows `over` have sent their last bit."""
        for flow in self.live:
            for link in flow.links:
                self.sends[link] += flow.rate * s / self.fabric.link * (moment - self.now)
        for flow in over:
            self.finish[flow.number] = moment + self.fabric.way
            self.print.fold(flow.number, moment)
            self.calendar.ended(flow.number, moment)
        self.live = [flow for flow in self.live if flow not in over]
        for flow in self.live:
            flow.left -= flow.rate * (moment - self.now)
        self.now = moment

    def share(self):
        """Give every flow its max-min fair rate."""
        room = {link: self.fabric.link / s for flow in self.live for link in flow.links}
        wanting = list(self.live)
        while wanting:
            users = {link: sum(link in flow.links for flow in wanting) for link in room}
            shares = {link: room[link] / count for link, count in users.items() if count}
            least = min(shares.values())
            settled = [flow for flow in wanting if min(shares[link] for link in flow.links) <= least]
            for flow in settled:
                flow.rate = least
            for link in room:
                room[link] = max(room[link] - least * sum(link in flow.links for flow in settled), 0.0)
            wanting = [flow for flow in wanting if flow not in settled]
