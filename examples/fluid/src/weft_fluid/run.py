"""Flows of a fluid under way."""

import numpy as np

from weft.engine.fingerprint import Fingerprint
from weft.engine.loop import DONE, PAUSED, REACHED
from weft.fabrics.base import Run
from weft.metrics.fairness import per_node
from weft.metrics.observation import Observation, Queue
from weft.units import s


class FluidRun(Run):
    """Flows under way. An event is an arrival or an end; between two of them all rates stay as they are."""

    unit = "events"
    budget = 100

    def __init__(self, fabric, flows, seed):
        super().__init__(fabric, flows, seed=seed)
        self.left = flows.size * 8.0  # bits
        self.finish = np.full(len(flows), -1)
        self.clock = np.zeros(2, np.int64)  # now, arrivals and ends so far

    now = property(lambda self: int(self.clock[0]))
    work = property(lambda self: int(self.clock[1]))
    finished = property(lambda self: int((self.finish >= 0).sum()))

    def step(self, until, budget):
        flows, clock = self.demand, self.clock
        for _ in range(budget):
            due = flows.released(self.finish)  # -1 while a flow waits for another
            live = np.flatnonzero((due >= 0) & (due <= clock[0]) & (self.finish < 0))
            later = due[due > clock[0]]
            if not len(live) and not len(later):
                return DONE
            rates = per_node(flows.src[live], flows.dst[live], flows.nodes) * (self.fabric.link / s)  # bits per ps
            ends = clock[0] + np.ceil(self.left[live] / rates).astype(np.int64)
            moment = int(min([until, *later, *ends]))
            self.left[live] = np.maximum(self.left[live] - rates * (moment - clock[0]), 0)
            over = live[ends <= moment]
            self.finish[over] = moment + 2 * self.fabric.propagation  # of the last bit, which has both cables to cross
            self.left[over], clock[0] = 0, moment
            clock[1] += len(over) + int((later == moment).sum())
            if moment == until:
                return REACHED
        return PAUSED

    def received(self):
        return self.demand.size - np.ceil(self.left / 8).astype(np.int64)

    def sample(self):
        into = np.bincount(self.demand.dst, self.received(), self.fabric.nodes).astype(np.int64)
        return {"delivered_bytes": into, "finished": self.finished, "waiting": 0, "lost": 0}

    def monitors(self, thorough=True):
        return {"conservation": int((self.left < 0).sum() + (self.left[self.finish >= 0] > 0).sum())}

    def observe(self):
        trace = Fingerprint()
        for f in np.flatnonzero(self.finish >= 0):
            trace.fold(int(f), int(self.finish[f]))
        return Observation(
            finish=self.finish.copy(), received=self.received(),
            now=self.now + 2 * self.fabric.propagation, unit="packets",
            queue=Queue(max=0, max_bytes=0),
            sections={"rates": {"changes": self.work}}, monitors=self.monitors(), fingerprint=str(trace),
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            samples=self.series.columns(self.now, self.sample()), work={"events": self.work, "seconds": self.seconds},
        )  # fmt: skip

    def arrays(self):
        return {"left": self.left, "finish": self.finish, "clock": self.clock}

    def restore(self, arrays):
        self.left[:], self.finish[:], self.clock[:] = arrays["left"], arrays["finish"], arrays["clock"]
