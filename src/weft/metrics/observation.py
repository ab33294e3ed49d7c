"""Observation is what a run hands to `Result`: all that was seen, in the house's units and no others."""

from dataclasses import dataclass, field

import numpy as np

from weft.errors import require

UNFINISHED = -1


@dataclass(frozen=True, eq=False)
class Observation:
    """What a fabric saw while it carried its flows; `Fabric.observe(state, flows)` returns one.

    `finish` and `received` have one entry per flow, in the order of the flow table. The dicts hold plain data (numbers,
    strings, lists, dicts, None), because they end in `result.json`; NumPy values among them are made plain there.
    """

    finish: np.ndarray  # int64 [f] ps at which the last byte arrived, or UNFINISHED
    received: np.ndarray  # int64 [f] payload bytes delivered so far
    now: int  # ps, where the simulated clock stood when the run ended
    sections: dict = field(default_factory=dict)  # "cells", "queue_cells", "throughput", …: merged into the summary
    monitors: dict = field(default_factory=dict)  # name of the law -> how often it was broken
    fingerprint: str = ""  # of the events that matter, as `weft.engine.fingerprint.show` prints it
    samples: dict = field(default_factory=dict)  # column -> array; time series, all of one length, "time_ps" among them
    work: dict = field(default_factory=dict)  # what was done: "node_slots", "stepped", "packet_hops", "slots", …
    notes: tuple = ()  # sentences a reader of the result must know

    def __post_init__(self):
        object.__setattr__(self, "finish", np.ascontiguousarray(self.finish, dtype=np.int64))
        object.__setattr__(self, "received", np.ascontiguousarray(self.received, dtype=np.int64))
        object.__setattr__(self, "now", int(self.now))
        require(
            self.finish.ndim == 1 and self.finish.shape == self.received.shape,
            "finish and received",
            "two columns of one length",
            (self.finish.shape, self.received.shape),
        )
        lengths = {name: len(column) for name, column in self.samples.items()}
        require(len(set(lengths.values())) <= 1, "samples", "columns of one length", lengths)

    @property
    def finished(self) -> np.ndarray:
        """Which flows have arrived whole, as a mask."""
        return self.finish >= 0
