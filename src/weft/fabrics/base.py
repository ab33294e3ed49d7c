"""What every system answers, so that `weft.run` needs to know none of them.

A fabric is a frozen description. `prepare` turns it and a table of flows into a run under way, `advance` lets time
pass in strides, `observe` says what was seen. A run under way (`Run`) can be put into arrays at any stride and taken
up again from them: the continued run is the same to the last bit.
"""

from typing import Protocol, runtime_checkable

import numpy as np

from weft.metrics.observation import Observation


class Run:
    """A run under way. Fabrics derive theirs; this is what others may look at between strides."""

    now: int = 0  # ps of simulated time
    finished: int = 0  # flows done
    flows: int = 0  # flows in all
    work: int = 0  # units of work done, for a rate: node-slots, packet-hops
    done: bool = False  # nothing is left to happen


@runtime_checkable
class Fabric(Protocol):
    """A system that carries flows."""

    nodes: int
    link: int

    def memory(self, flows: int = 0) -> int:
        """Bytes a run of so many flows is predicted to need; cheap, and before anything is laid out."""

    def prepare(self, flows, *, seed: int = 0) -> Run:
        """Lay out a run of these flows; no time passes."""

    def advance(self, run: Run, until: int | None = None, watch=None) -> None:
        """Let time pass until `until` (ps), or until nothing is left to do; call `watch(run)` between strides."""

    def observe(self, run: Run, flows) -> Observation:
        """What was seen so far."""

    def freeze(self, run: Run) -> dict[str, np.ndarray]:
        """The run as arrays."""

    def thaw(self, flows, arrays: dict[str, np.ndarray], *, seed: int = 0) -> Run:
        """The run from such arrays."""
