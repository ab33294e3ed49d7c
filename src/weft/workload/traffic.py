"""Cells that arrive slot by slot at the inputs of a switch: Bernoulli, skewed, bursty and multicast.

A traffic is a description; what a switch reads is the `Cells` it draws: integer thresholds and tables, so that the
arrival of a cell never depends on a machine's floating point. In every slot each input draws one 64-bit word: its upper
half says whether a cell arrives, its lower half for whom. `arrivals` is that rule in plain Python; kernels repeat it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from weft import random
from weft.errors import require
from weft.units import Time, param, us
from weft.workload.base import Workload
from weft.workload.demand import Demand

ONE = 1 << 32  # probabilities are whole multiples of 1 / ONE
SLOTS = 100_000
LONGEST = (1 << 31) - 1  # slots; a cell carries the slot of its arrival in 32 bits

CELLS = 0x584B0000  # streams: does a cell arrive at input i in this slot, and for whom
ENDS = 0x584B0001  # does input i's burst end with this cell
FANOUT = 0x584B0002  # how many outputs a multicast cell is for
MEMBERS = 0x584B1000  # first of many: which outputs they are, one stream per copy


class Arrival(NamedTuple):
    """A cell that comes in: at input `i`, for every output of `outputs`."""

    i: int
    outputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Cells(Demand):
    """What enters a switch cell by cell: the drawn form of every traffic here."""

    kind = "cells that are made slot by slot"

    nodes: int
    seed: int
    slots: int
    warmup: int
    whole: int  # cells that arrive at every input in every slot, for loads above one
    chance: int  # of one more, in multiples of 1 / ONE; in bursts: that an idle input starts one
    end: int  # chance that a burst ends with this cell; 0 for traffic without bursts
    fanout: int  # a cell is for 1 … fanout outputs, each number as likely; 1 for unicast
    keep: np.ndarray | None  # (n, n) uint32 [i, k]: Walker's alias tables of input i's destinations; None: uniform
    other: np.ndarray | None  # (n, n) int32
    offered: float  # copies per output and slot, on average over outputs
    notes: tuple[str, ...] = field(default=())

    @property
    def key(self) -> int:
        """Key of the stream that says whether a cell arrives and for whom."""
        return random.key(self.seed, CELLS)

    @property
    def end_key(self) -> int:
        """Key of the stream that ends bursts."""
        return random.key(self.seed, ENDS)

    @property
    def fanout_key(self) -> int:
        """Key of the stream that says for how many outputs a multicast cell is."""
        return random.key(self.seed, FANOUT)

    def member_key(self, copy: int) -> int:
        """Key of the stream that picks the output of a multicast cell's `copy`-th copy."""
        return random.key(self.seed, MEMBERS + copy)

    def destination(self, i: int, low: int) -> int:
        """The output that the lower half of input i's word stands for."""
        k, fraction = divmod(low * self.nodes, ONE)
        if self.keep is None or self.other is None or fraction < int(self.keep[i, k]):
            return k
        return int(self.other[i, k])

    def arrivals(self) -> Iterator[list[Arrival]]:
        """The cells of slot 0, of slot 1, … in the order of their inputs."""
        n = self.nodes
        bursts: list[int | None] = [None] * n
        for slot in range(self.slots):
            came = []
            for i in range(n):
                word = random.word(self.key, slot * n + i)
                high, low = divmod(word, ONE)
                if self.end:
                    if bursts[i] is None and high < self.chance:
                        bursts[i] = self.destination(i, low)
                    if (target := bursts[i]) is not None:
                        came.append(Arrival(i, (target,)))
                        if random.word(self.end_key, slot * n + i) >> 32 < self.end:
                            bursts[i] = None
                elif self.fanout > 1:
                    if high < self.chance:
                        came.append(Arrival(i, self.members(slot * n + i)))
                else:
                    count = self.whole + (high < self.chance)
                    came += [Arrival(i, (self.destination(i, low),))] * count
            yield came

    def members(self, counter: int) -> tuple[int, ...]:
        """The outputs of a multicast cell, ascending: a uniform subset of a uniform size (Floyd's algorithm)."""
        size = 1 + random.below_one(random.word(self.fanout_key, counter), self.fanout)
        chosen = set()
        for copy in range(size):
            top = self.nodes - size + copy
            j = random.below_one(random.word(self.member_key(copy), counter), top + 1)
            chosen.add(top if j in chosen else j)
        return tuple(sorted(chosen))


def alias(weights: list[Fraction]) -> tuple[list[int], list[int]]:
    """Walker's tables for one input: with column k uniform, take k if the fraction is below keep[k], else other[k].

    In whole numbers throughout: every weight is first rounded to a multiple of 1 / (n * ONE), the largest taking up
    what rounding leaves, so the tables are the same on every machine.
    """
    n, total = len(weights), sum(weights)
    share = [int(w * n * ONE / total) for w in weights]
    share[max(range(n), key=lambda k: share[k])] += n * ONE - sum(share)
    keep, other = [ONE] * n, list(range(n))
    small = [k for k in range(n) if share[k] < ONE]
    large = [k for k in range(n) if share[k] >= ONE]
    while small and large:
        k, big = small.pop(), large[-1]
        keep[k], other[k] = share[k], big
        share[big] -= ONE - share[k]
        if share[big] < ONE:
            small.append(large.pop())
    return [min(k, ONE - 1) for k in keep], other


def threshold(probability) -> int:
    """A probability as a multiple of 1 / ONE."""
    return round(Fraction(probability) * ONE)


def _tables(rows):
    """Alias tables of every input, stacked."""
    pairs = [alias(row) for row in rows]
    return np.array([p[0] for p in pairs], np.uint32), np.array([p[1] for p in pairs], np.int32)


@dataclass(frozen=True, kw_only=True)
class Traffic(Workload):
    """What all traffics share: a load, and for how long."""

    load: float = param(help="cells per input and slot; above 1 is overload")
    slots: int = param(SLOTS, "slots to run")
    warmup: int = param(0, "slots at the start that are run but not measured")

    draws = Cells

    def __post_init__(self):
        require(self.load >= 0 and self.load < 2**20, "load", "from 0 to 1048575", self.load)
        require(1 <= self.slots <= LONGEST, "slots", f"from 1 to {LONGEST}", self.slots)
        require(0 <= self.warmup < self.slots, "warmup", f"from 0 to {self.slots - 1}", self.warmup)

    def weights(self, i: int, n: int) -> list[Fraction] | None:
        """How input i's cells divide over n outputs; None if evenly."""
        return None

    def draw(self, *, nodes: int, link: int = 0, seed: int = 0) -> Cells:
        """The cells for a switch of `nodes` ports; the link's rate does not matter to them."""
        require(nodes >= 2, "nodes", "at least 2", nodes)
        rows = [self.weights(i, nodes) for i in range(nodes)]
        keep, other = (None, None) if rows[0] is None else _tables(rows)
        notes = list(self._overload(rows, nodes))
        whole = max(ceil(self.load) - 1, 0)
        fields = {"end": 0, "fanout": 1, "whole": whole, "chance": threshold(Fraction(self.load) - whole)}
        fields.update(self._arrivals(nodes))
        return Cells(
            nodes=nodes, seed=seed, slots=self.slots, warmup=self.warmup, keep=keep, other=other,
            offered=float(self.load), notes=tuple(notes), **fields,
        )  # fmt: skip

    def _arrivals(self, n):
        return {}

    def _overload(self, rows, n):
        if self.load > 1:
            yield f"a load of {self.load:g} is overload: a line carries at most one cell per slot"
        if rows[0] is not None and self.load > 0:
            into = [sum(row[j] for row in rows) for j in range(n)]
            j = max(range(n), key=lambda k: into[k])
            most = float(into[j] * Fraction(self.load))
            if most > 1 + 1e-9:
                yield f"output {j} is offered {most:.4g} cells per slot, which is overload"


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Traffic):
    """In every slot a cell arrives at an input with probability `load`, for any output alike."""


@dataclass(frozen=True, kw_only=True)
class Uniform(Traffic):
    """The same for a length of time instead of a number of slots."""

    duration: Time = param(100 * us, "when the run stops")
    slots: int = param(LONGEST, "slots to run at most")

    def __post_init__(self):
        super().__post_init__()
        require(0 < self.duration <= 1 << 62, "duration", "above 0 ps and at most 53 days", self.duration)

    @property
    def until(self) -> int:
        """When the run stops, in ps."""
        return self.duration


@dataclass(frozen=True, kw_only=True)
class Diagonal(Traffic):
    """Two thirds of input i's cells are for output i, one third for output i + 1: two busy queues per input."""

    def weights(self, i, n):
        row = [Fraction(0)] * n
        row[i], row[(i + 1) % n] = Fraction(2, 3), Fraction(1, 3)
        return row


@dataclass(frozen=True, kw_only=True)
class LogDiagonal(Traffic):
    """Input i sends half as much to output i + k + 1 as to output i + k."""

    def weights(self, i, n):
        row = [Fraction(0)] * n
        for k in range(n):
            row[(i + k) % n] = Fraction(1 << (n - 1 - k), (1 << n) - 1)
        return row


@dataclass(frozen=True, kw_only=True)
class HotOutput(Traffic):
    """Every input sends the fraction `hot` of its cells to one output, and the rest evenly to all."""

    hot: float = param(0.01, "fraction of every input's cells that is for the hot output alone")
    output: int = param(0, "the hot output")

    def __post_init__(self):
        super().__post_init__()
        require(0 <= self.hot <= 1, "hot", "from 0 to 1", self.hot)
        require(self.output >= 0, "output", "at least 0", self.output)

    def weights(self, i, n):
        require(self.output < n, "output", f"an output from 0 to {n - 1}", self.output)
        row = [(1 - Fraction(self.hot)) / n] * n
        row[self.output] += Fraction(self.hot)
        return row


@dataclass(frozen=True, kw_only=True)
class Unbalanced(Traffic):
    """Input i sends the fraction `w` of its cells to output i, the rest evenly to all: w = 0 is uniform, 1 circuits."""

    w: float = param(0.5, "fraction of every input's cells that is for its own output")

    def __post_init__(self):
        super().__post_init__()
        require(0 <= self.w <= 1, "w", "from 0 to 1", self.w)

    def weights(self, i, n):
        row = [(1 - Fraction(self.w)) / n] * n
        row[i] += Fraction(self.w)
        return row


@dataclass(frozen=True, kw_only=True)
class OnOff(Traffic):
    """Bursts of cells for one output, back to back, with idle times between; both of geometric length.

    The idle time may be zero slots long, so a load of one is bursts without a gap. The output is chosen afresh,
    evenly, for every burst.
    """

    burst: float = param(16.0, "mean cells in a burst")

    def __post_init__(self):
        super().__post_init__()
        require(self.load <= 1, "load", "at most 1 in bursts, whose cells follow each other on one line", self.load)
        require(1 <= self.burst <= 1e6, "burst", "from 1 to 1000000 cells", self.burst)

    def _arrivals(self, n):
        burst, load = Fraction(self.burst), Fraction(self.load)
        start = load / (load + burst * (1 - load)) if load else Fraction(0)  # 1 / (1 + mean idle time)
        return {"whole": 0, "chance": threshold(start), "end": max(threshold(1 / burst), 1)}


@dataclass(frozen=True, kw_only=True)
class Multicast(Traffic):
    """Cells that are for several outputs at once: 1 to `fanout` of them, each number as likely, any outputs alike.

    `load` is what the outputs are asked to send, in copies per output and slot; an input receives load / mean fanout.
    """

    load: float = param(help="copies per output and slot; above 1 is overload")
    fanout: int = param(4, "most outputs that one cell is for")

    def __post_init__(self):
        super().__post_init__()
        require(self.fanout >= 2, "fanout", "at least 2", self.fanout)
        most = (self.fanout + 1) / 2
        require(self.load <= most, "load", f"at most {most:g} (one cell per line and slot) at this fanout", self.load)

    def _arrivals(self, n):
        require(self.fanout <= n, "fanout", f"at most {n}, the number of outputs", self.fanout)
        return {"whole": 0, "chance": threshold(Fraction(self.load) * 2 / (self.fanout + 1)), "fanout": self.fanout}

    def _overload(self, rows, n):
        if self.load > 1:
            yield f"outputs are offered {self.load:g} copies per slot, which is overload"


TRAFFIC = {
    "bernoulli": Bernoulli,
    "uniform": Uniform,
    "diagonal": Diagonal,
    "log-diagonal": LogDiagonal,
    "hot-output": HotOutput,
    "unbalanced": Unbalanced,
    "on-off": OnOff,
    "multicast": Multicast,
}
