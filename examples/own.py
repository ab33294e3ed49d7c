"""A workload and a fabric of one's own, in one file: `weft run own:Direct own:Pairs --nodes 16 --bytes 20KB`."""

from dataclasses import dataclass

import numpy as np

from weft.engine.fingerprint import Fingerprint
from weft.engine.loop import DONE, REACHED
from weft.fabrics.base import Fabric, Run
from weft.metrics.observation import Observation, Queue
from weft.units import Gbps, Rate, Size, Time, param, wire_time
from weft.workload import Flows, Workload


@dataclass(frozen=True, kw_only=True)
class Pairs(Workload):
    """Nodes 0 and 1, 2 and 3, … send to each other, all at once."""

    bytes: Size = param(help="bytes of every flow")

    def draw(self, *, nodes, link, seed):
        src = np.arange(nodes - nodes % 2)
        return Flows.of(nodes=nodes, src=src, dst=src ^ 1, size=self.bytes, start=0)


@dataclass(frozen=True, kw_only=True)
class Direct(Fabric):
    """Every flow has a link of its own: nothing is shared, and nobody waits."""

    nodes: int = param(help="nodes")
    link: Rate = param(100 * Gbps, "rate of every link")
    propagation: Time = param(0, "time along a link")

    def memory(self, demand):
        return 100 * len(demand)

    def ideal(self, flows):
        return np.array([wire_time(int(size), self.link) for size in flows.size]) + self.propagation

    @property
    def payload_rate(self):
        return float(self.link)

    def prepare(self, demand, *, seed=0):
        return DirectRun(self, demand, seed=seed)


class DirectRun(Run):
    """Flows under way: each is over at a moment that is known from the beginning."""

    def __init__(self, fabric, flows, seed):
        super().__init__(fabric, flows, seed=seed)
        self.ends = flows.start + fabric.ideal(flows)
        self.clock = np.zeros(1, np.int64)

    now = property(lambda self: int(self.clock[0]))
    finished = property(lambda self: int((self.ends <= self.now).sum()))
    work = finished

    def step(self, until, budget):
        last = int(self.ends.max(initial=0))
        self.clock[0] = min(until, last)
        return DONE if self.now == last else REACHED

    def received(self):
        return np.where(self.ends <= self.now, self.demand.size, 0)

    def sample(self):
        into = np.bincount(self.demand.dst, self.received(), self.fabric.nodes).astype(np.int64)
        return {"delivered_bytes": into, "finished": self.finished, "waiting": 0, "lost": 0}

    def monitors(self, thorough=True):
        return {"conservation": int((self.received() > self.demand.size).sum())}

    def observe(self):
        trace = Fingerprint()
        for end in self.ends[self.ends <= self.now].tolist():
            trace.fold(end, 0)
        return Observation(
            finish=np.where(self.ends <= self.now, self.ends, -1), received=self.received(), now=self.now,
            unit="packets", queue=Queue(max=0, max_bytes=0), monitors=self.monitors(), fingerprint=str(trace),
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            samples=self.series.columns(self.now, self.sample()), work={"flows": self.work, "seconds": self.seconds},
        )  # fmt: skip

    def arrays(self):
        return {"clock": self.clock}

    def restore(self, arrays):
        self.clock[:] = arrays["clock"]
