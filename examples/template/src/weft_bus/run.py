"""A bus at work: the kernel's arrays between its strides, and what was seen of them."""

import numpy as np

from weft.engine import fingerprint
from weft.fabrics.base import Run
from weft.metrics.observation import Observation, Queue
from weft_bus import kernel
from weft_bus.kernel import ARRIVED, FINISHED, IDLE, SENT, SLOT


class BusRun(Run):
    """What the loop of weft drives."""

    unit = "slots"

    def __init__(self, fabric, flows, seed):
        super().__init__(fabric, flows, seed=seed, every=64 * fabric.slot)
        self.start, self.src = -(-flows.start // fabric.slot), flows.src.astype(np.int64)
        self.state = {
            "left": fabric.cells(flows.size),
            "finish": np.full(len(flows), -1, np.int64),
            "following": np.full(len(flows), -1, np.int64),
            "first": np.full(fabric.nodes, -1, np.int64),
            "last": np.full(fabric.nodes, -1, np.int64),
            "count": np.zeros(kernel.COUNTS, np.int64),
            "print_": fingerprint.start(),
        }

    now = property(lambda self: int(self.state["count"][SLOT]) * self.fabric.slot)
    work = property(lambda self: int(self.state["count"][SLOT]))
    finished = property(lambda self: int(self.state["count"][FINISHED]))

    def step(self, until, budget):
        state = self.state
        return kernel.advance(
            self.start, self.src, state["left"], state["finish"], state["following"], state["first"], state["last"],
            state["count"], state["print_"], until // self.fabric.slot, budget,
        )  # fmt: skip

    def received(self):
        """(flows,) int64 bytes."""
        cells = self.fabric.cells(self.demand.size) - self.state["left"]
        return np.minimum(cells * self.fabric.cell, self.demand.size)

    def sample(self):
        into = np.bincount(self.demand.dst, self.received(), self.fabric.nodes).astype(np.int64)
        waiting = int(self.state["left"][: self.state["count"][ARRIVED]].sum())
        return {"delivered_bytes": into, "finished": self.finished, "waiting": waiting, "lost": 0}

    def monitors(self, thorough=True):
        gone = int((self.fabric.cells(self.demand.size) - self.state["left"]).sum()) if thorough else 0
        return {"conservation": abs(gone - int(self.state["count"][SENT])) if thorough else 0}

    def observe(self):
        count, finish = self.state["count"], self.state["finish"]
        return Observation(
            finish=np.where(finish >= 0, (finish + 1) * self.fabric.slot, -1),
            received=self.received(),
            now=self.now,
            carried={"delivered": int(count[SENT])},
            queue=Queue(max=1, max_bytes=self.fabric.cell),
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections={"slots": {"all": int(count[SLOT]), "idle": int(count[IDLE])}},
            monitors=self.monitors(),
            fingerprint=fingerprint.show(self.state["print_"]),
            samples=self.series.columns(self.now, self.sample()),
            work={"slots": self.work, "seconds": self.seconds},
        )

    def arrays(self):
        return self.state

    def restore(self, arrays):
        for name, array in arrays.items():
            self.state[name][:] = array
