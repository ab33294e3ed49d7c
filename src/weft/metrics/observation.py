"""Observation is what a run hands to `Result`: all that was seen, in the house's units and no others.

What every room sees has a place and a type here (`Queue`, `Lost`, `Throughput`, counts of cells or packets), so that
two fabrics can be compared by name. What only one room knows goes into `sections`, under names of its own.
"""

from dataclasses import dataclass, field

import numpy as np

from weft.errors import require

UNFINISHED = -1
UNITS = ("cells", "packets")  # what fabrics carry
NAMES = ("time_ps", "delivered_bytes", "finished", "waiting", "lost")  # of the time series that every room has


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The longest queue that was seen inside the fabric."""

    max: int | None = None  # in the fabric's unit
    max_bytes: int | None = None
    max_node: int | None = None  # most in all queues of one node


@dataclass(frozen=True, kw_only=True)
class Lost:
    """What entered the fabric and will not arrive, by cause, and the flows that can never finish for it."""

    causes: dict = field(default_factory=dict)  # cause -> how many, in the fabric's unit
    flows: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.causes.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class Throughput:
    """Rates of destinations over a span of time, where the flow table cannot tell them: cells made slot by slot."""

    rates: np.ndarray  # b/s of each destination
    begin: int  # ps
    end: int
    best: float  # b/s that a link could carry of what is counted
    window: str


@dataclass(frozen=True, eq=False)
class Observation:
    """What a fabric saw while it carried its demand; `Run.observe` returns one.

    `finish` and `received` have one entry per flow, in the order of the flow table. The dicts hold plain data (numbers,
    strings, lists, dicts, None), because they end in `result.json`; NumPy values among them are made plain there.
    """

    finish: np.ndarray  # int64 [f] ps at which the last byte arrived, or UNFINISHED
    received: np.ndarray  # int64 [f] payload bytes delivered so far
    now: int  # ps, where the simulated clock stood when the run ended
    unit: str = "cells"  # what the fabric carries, and counts in the next three
    carried: dict = field(default_factory=dict)  # how many of which kind
    queue: Queue = Queue()
    lost: Lost = Lost()
    throughput: Throughput | None = None  # by default, computed from the flows and `half`
    half: tuple | None = None  # (ps, bytes delivered to each node by then) halfway to an end that was set
    sections: dict = field(default_factory=dict)  # a room's own facts, merged into the summary
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
        require(self.unit in UNITS, "unit", f"one of {', '.join(UNITS)}", self.unit)
        lengths = {name: len(column) for name, column in self.samples.items()}
        require(len(set(lengths.values())) <= 1, "samples", "columns of one length", lengths)

    @property
    def finished(self) -> np.ndarray:
        """Which flows have arrived whole, as a mask."""
        return self.finish >= 0
