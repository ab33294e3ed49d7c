"""Rounds in which everyone faces everyone once: who may speak to whom in each slot of an epoch.

A schedule is a list of *places*. In each place a node i sends to (i + shift) mod N; a slot holds as many places as
there are channels, and an epoch is the slots it takes to go through all places once. Two orders of the same shifts:

rotation   1, 2, … N-1, as in Fig. 3 of the paper.
mirrored   the second half runs backwards (Appendix A), so that i → j and j → i lie half an epoch apart. With
           propagation delay and an even number of nodes the shift N/2, which is its own mirror, takes two places:
           the lower half of the nodes sends in one and the upper half in the other. Each node then has one empty
           place per epoch, which is the 1/N of throughput that the appendix gives up.
"""

from dataclasses import dataclass

import numpy as np

from weft.errors import require

DARK = 0  # the shift of a place in which nobody sends: epochs are padded to whole slots


@dataclass(frozen=True)
class Rounds:
    """One epoch of a static equal-rate schedule.

    `shift[p]` is how far each node sends in place p, DARK for none; nodes `first[p]` ≤ i < `last[p]` do.
    `place[h, s]` is where shift s stands for a node of the lower (h = 0) or upper (h = 1) half of the rack.
    """

    nodes: int
    channels: int
    order: str
    shift: np.ndarray
    first: np.ndarray
    last: np.ndarray
    place: np.ndarray

    @property
    def slots(self) -> int:
        """Slots in an epoch."""
        return len(self.shift) // self.channels

    @property
    def half(self) -> int:
        """The first node of the upper half."""
        return (self.nodes + 1) // 2

    def where(self, i: int, j: int) -> int:
        """The place in which i sends to j."""
        return int(self.place[int(i >= self.half), (j - i) % self.nodes])

    def mirror(self) -> np.ndarray:
        """(places,) int32: for the sender i of place p facing j, the place in which j sends to i; -1 if dark."""
        out = np.full(len(self.shift), -1, np.int32)
        for p, s in enumerate(self.shift):
            if s != DARK:
                i = int(self.first[p])
                out[p] = self.where((i + int(s)) % self.nodes, i)
        return out

    def peers(self) -> np.ndarray:
        """(slots, channels, nodes) int32: whom each node faces, -1 for nobody."""
        i = np.arange(self.nodes)
        rows = [
            np.where((s != DARK) & (first <= i) & (i < last), (i + s) % self.nodes, -1)
            for s, first, last in zip(self.shift, self.first, self.last, strict=True)
        ]
        return np.array(rows, np.int32).reshape(self.slots, self.channels, self.nodes)

    def gap(self) -> int:
        """The fewest slots that lie between i → j and j → i, over all pairs and both directions."""
        mirror = self.mirror()
        lit = mirror >= 0
        apart = (mirror[lit] // self.channels - np.flatnonzero(lit) // self.channels) % self.slots
        return int(min(apart.min(), (-apart % self.slots).min()))


def rounds(nodes: int, channels: int = 1, delay: int = 0, order: str = "auto") -> Rounds:
    """The schedule of a rack whose cells arrive `delay` slots after the one in which they were sent.

    `auto` keeps the plain rotation for one channel without delay, and where the delay is so long that no order of
    the shifts would help; otherwise it mirrors.
    """
    require(nodes >= 2, "nodes", "at least 2", nodes)
    require(1 <= channels <= nodes - 1, "channels", f"between 1 and nodes - 1 = {nodes - 1}", channels)
    require(delay >= 0, "delay", "zero or more slots", delay)
    require(order in ("auto", "rotation", "mirrored"), "schedule", "auto, rotation or mirrored", order)
    if order == "auto":
        if delay == 0:
            order = "rotation" if channels == 1 else "mirrored"
        else:
            mirrored = rounds(nodes, channels, delay, "mirrored")
            return mirrored if delay < mirrored.gap() else rounds(nodes, channels, delay, "rotation")

    split = order == "mirrored" and delay > 0 and nodes % 2 == 0
    if order == "rotation":
        shifts = list(range(1, nodes))
    elif split:
        shifts = [*range(1, nodes // 2 + 1), *range(nodes - 1, nodes // 2, -1), nodes // 2]
    else:
        shifts = [*range(1, nodes // 2 + 1), *range(nodes - 1, nodes // 2, -1)]
    if nodes % 2 == 0 and not split:  # the shift that is its own mirror goes last in its slot; notes.md says why
        at = shifts.index(nodes // 2)
        end = min(at - at % channels + channels, len(shifts)) - 1
        shifts[at], shifts[end] = shifts[end], shifts[at]
    width = -(-len(shifts) // channels) * channels
    shift = np.array(shifts + [DARK] * (width - len(shifts)), np.int32)
    first = np.zeros(width, np.int32)
    last = np.where(shift == DARK, 0, nodes).astype(np.int32)
    place = np.full((2, nodes), -1, np.int32)
    lit = np.flatnonzero(shift != DARK)
    place[:, shift[lit]] = lit
    if split:
        lower, upper = nodes // 2 - 1, nodes - 1
        last[lower], first[upper] = nodes // 2, nodes // 2
        place[:, nodes // 2] = lower, upper
    return Rounds(nodes, channels, order, shift, first, last, place)
