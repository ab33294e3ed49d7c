"""Follow a flow through a torus: what packet networks tell, and what R2C2 let it send and why."""

from weft.fabrics.base import Step
from weft.fabrics.network.follow import TellingPorts
from weft.fabrics.torus.reference import Network
from weft.units import show_rate, show_time


class Followed(TellingPorts, Network):
    """A torus that tells of one flow."""

    def _say(self, what, why):
        self.steps.append(Step(self.now, -1, what, self.graph.names[int(self.flows.src[self.f])], why))

    def _of(self, entry):
        return entry.sub.flow.f == self.f

    def know(self, entry):
        super().know(entry)
        if self._of(entry) and not entry.gone:
            self._say("flow known to all", f"its broadcast has come to every node; {len(self.known)} flows are known")

    def forget(self, entry):
        super().forget(entry)
        if self._of(entry):
            self._say("flow forgotten by all", "the broadcast of its end has come to every node")

    def tick(self):
        before = {id(e): e.sub.rate for e in self.known if self._of(e)}
        super().tick()
        for entry in self.known:
            old, new = before.get(id(entry)), entry.sub.rate
            if old is not None and old != new:
                why = f"was {show_rate(old)}; max-min fair among the {len(self.known)} flows that are known"
                self._say(f"rate {show_rate(new)}", f"{why}, computed every {show_time(self.fabric.period)}")

    def choose(self):
        before = {id(e): e.spread for e in self.known if self._of(e)}
        super().choose()
        for entry in self.known:
            if before.get(id(entry), entry.spread) != entry.spread:
                way = "by way of random nodes" if entry.spread else "on shortest paths"
                self._say(f"routed {way}", "all rates together are larger so")

    def give_up(self, flow):
        if flow.f == self.f:
            self._say("flow given up", "no path is left, and none will come back")
        super().give_up(flow)
