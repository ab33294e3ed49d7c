"""Follow a flow through the ideal switch: when its rate changed, and which link held it back.

There are no cells: a flow has a rate, until somebody begins or ends. Items are numbers of its rates.
"""

from weft.errors import require
from weft.fabrics.base import Step
from weft.fabrics.ideal.reference import Twin
from weft.units import s, show_rate

MOST = 20_000  # flows that the twin is asked to carry
ENDS = {"out": "out of", "in": "into"}


def follow(fabric, flows, f: int, *, until: int) -> tuple[list[Step], int]:
    """(steps of flow f up to `until`, the ps at which it was done or -1), in order of time."""
    require(
        len(flows) <= MOST, "a run that is followed", f"of at most {MOST:,} flows, which a twin carries", len(flows)
    )
    twin = Followed(fabric, flows, f)
    twin.run(until - fabric.way)
    return twin.steps, twin.finish[f]


class Followed(Twin):
    """An ideal switch that tells of one flow."""

    def __init__(self, fabric, flows, f):
        super().__init__(fabric, flows)
        self.f, self.steps, self.rate, self.rates = f, [], 0.0, 0

    def share(self):
        super().share()
        mine = next((flow for flow in self.live if flow.number == self.f), None)
        if mine is None or mine.rate == self.rate:
            return
        if not self.steps:
            self.steps.append(
                Step(self.now, -1, "flow begins", f"node {mine.links[0][1]}", f"{mine.left / 8:,.0f} bytes")
            )
        self.rate = mine.rate
        self.steps.append(Step(self.now, self.rates, f"rate {show_rate(round(mine.rate * s))}", *self._held(mine)))
        self.rates += 1

    def _held(self, mine):
        """Which of its two links gives it no more, and how many flows that one is shared by."""
        told = []
        for link in mine.links:
            rates = [flow.rate for flow in self.live if link in flow.links]
            full = sum(rates) >= self.fabric.link / s * (1 - 1e-9)
            if full and mine.rate >= max(rates) * (1 - 1e-9):
                told.append((link, len(rates)))
        link, users = max(told, key=lambda one: one[1])
        why = "has it to itself" if users == 1 else f"full: {users} flows share it, none gets more of it"
        return f"link {ENDS[link[0]]} node {link[1]}", why

    def pass_time(self, moment, over):
        if any(flow.number == self.f for flow in over):
            dst = int(self.flows.dst[self.f])
            why = "both cables behind its last bit" if self.fabric.way else "its last bit"
            self.steps.append(Step(moment + self.fabric.way, -1, "flow ends", f"node {dst}", why))
        super().pass_time(moment, over)
