"""An ideal switch at work: the kernel's arrays between its strides, and what was seen of them."""

import numpy as np

from weft.engine import calendar, fingerprint
from weft.fabrics.base import Run
from weft.fabrics.ideal import kernel
from weft.fabrics.ideal.fabric import Ideal
from weft.fabrics.ideal.kernel import CHANGES, FINISHED, LIVE, NOW, SINCE, STALE
from weft.metrics.observation import Observation, Queue
from weft.units import s, us

ROUNDING = 1e-3  # bits by which sums of floats may miss


class IdealRun(Run):
    """What the loop drives. An event is a flow that begins or ends."""

    fabric: Ideal
    unit = "events"
    budget = 100

    def __init__(self, fabric, flows, seed=0):
        super().__init__(fabric, flows, seed=seed, every=5 * us)
        f, n = len(flows), fabric.nodes
        waits, successors = calendar.make(flows, extra=fabric.way) if flows.waiting else calendar.NOBODY
        self.known = f - flows.waiting
        self.state = {
            "waits": waits.copy(),
            "bits": flows.size * 8.0,
            "rate": np.ones(f),
            "finish": np.full(f, -1, np.int64),
            "live": np.zeros(f, np.int64),
            "clock": np.zeros(kernel.COUNTS, np.int64),
            "print_": fingerprint.start(),
        }
        self.successors = successors
        self.sizes = flows.size
        self.src, self.dst = flows.src.astype(np.int64), flows.dst.astype(np.int64)
        self.start = np.ascontiguousarray(flows.start, np.int64)
        self.scratch = np.zeros(2 * n), np.zeros(2 * n, np.int64), np.zeros(2 * n, np.int64)

    now = property(lambda self: int(self.state["clock"][NOW]))
    work = property(lambda self: int(self.state["clock"][CHANGES]))
    finished = property(lambda self: int(self.state["clock"][FINISHED]))

    def step(self, until, budget):
        at = self.state
        return kernel.advance(
            self.src, self.dst, self.start, self.known, at["waits"], self.successors, at["bits"], at["rate"],
            at["finish"], at["live"], at["clock"], at["print_"], *self.scratch, self.fabric.link / s, self.fabric.way,
            until, budget,
        )  # fmt: skip

    def compile(self):
        self.step(self.now, 0)

    def left(self):
        """(flows,) float64 bits that have not been sent."""
        at, clock = self.state, self.state["clock"]
        left = at["bits"].copy()
        if clock[STALE] == 0:
            live = at["live"][: clock[LIVE]]
            left[live] -= at["rate"][live] * (clock[NOW] - clock[SINCE])
        return np.maximum(left, 0)

    def received(self):
        """(flows,) int64 payload bytes that have been sent so far; both cables are crossed a little later."""
        got = self.sizes - np.ceil(self.left() / 8).astype(np.int64)
        return np.where(self.state["finish"] >= 0, self.sizes, np.minimum(got, self.sizes - 1))

    def sample(self):
        into = np.zeros(self.fabric.nodes, np.int64)
        np.add.at(into, self.dst, self.received())
        return {"delivered_bytes": into, "finished": self.finished, "waiting": 0, "lost": 0, "busy_ps": self.busy()}

    def busy(self):
        """(rows,) int64: ps that each link would have taken at its full rate for what it has carried."""
        n, bits = self.fabric.nodes, self.sizes * 8.0 - self.left()
        carried = np.concatenate([np.bincount(ends, bits, n) for ends in (self.src, self.dst)])
        whole = np.floor(carried * (s / self.fabric.link) + 0.5).astype(np.int64)
        return self.averaged(whole, np.tile(np.arange(n), 2))

    def monitors(self, thorough=True):
        """No link carries more than its rate, and no flow more than it has."""
        at = self.state
        laws = {"conservation": 0, "links_within_their_rate": 0, "delivered_as_offered": 0}
        if thorough and at["clock"][STALE] == 0:
            live = at["live"][: at["clock"][LIVE]]
            most = self.fabric.link / s * (1 + 1e-9)
            for ends in (self.src, self.dst):
                used = np.bincount(ends[live], at["rate"][live], self.fabric.nodes)
                laws["links_within_their_rate"] += int((used > most).sum())
            laws["conservation"] = int((at["bits"][live] < -ROUNDING).sum())
        if thorough:
            done, left = at["finish"] >= 0, at["bits"]
            wrong = (done & (left != 0)) | (left > self.sizes * 8.0) | (left < -ROUNDING)
            laws["delivered_as_offered"] = int(wrong.sum()) + abs(int(done.sum()) - self.finished)
        return laws

    def observe(self) -> Observation:
        return Observation(
            finish=self.state["finish"].copy(),
            received=self.received(),
            now=self.now + self.fabric.way,
            unit="packets",
            queue=Queue(max=0, max_bytes=0),
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections={"rates": {"changes": self.work}},
            monitors=self.monitors(),
            fingerprint=fingerprint.show(self.state["print_"]),
            samples=self.series.columns(self.now, self.sample()),
            work={"events": self.work, "seconds": self.seconds},
        )

    def arrays(self):
        return {name: array.copy() for name, array in self.state.items()}

    def limits(self, given):
        f = len(self.demand)
        yield "live", given["live"], 0, max(f - 1, 0)
        yield "clock", given["clock"][[LIVE, FINISHED]], 0, f
        yield "clock", given["clock"], 0, 1 << 62
        yield "finish", given["finish"], -1, 1 << 62
        yield from calendar.limits(given["waits"], self.state["waits"], len(self.successors))

    def restore(self, arrays):
        for name, array in arrays.items():
            self.state[name][...] = array
