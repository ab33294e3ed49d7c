"""Flow completion times: their percentiles, their bins by size, and how far they are from the best possible.

A percentile is a flow that was seen, never a mean of two. Two definitions, because papers differ in the tail:

- `nearest_rank` (the default): sorted[ceil(q n) - 1], the smallest value that at least a share q does not exceed;
- `released`: sorted[int(q (n - 1))], what the Shoal authors' released scripts compute. It is never the larger one:
  of 100 flows its p99 is the 99th, as with the other, but its p99.9 is the 99th too and not the 100th.

A flow is short up to `SHORT` bytes and long from `LONG` bytes, both included (Shoal, §7.2).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from weft.errors import BadInput, require
from weft.units import KB, MB

SHORT = 100 * KB
LONG = 1 * MB
DECADES = tuple(10**k for k in range(3, 10))  # bytes: 1 KB, 10 KB, … 1 GB


def nearest_rank(n: int, q: float) -> int:
    """Index of the q-quantile among n sorted values: ceil(q n) - 1."""
    return max(math.ceil(Fraction(str(q)) * n) - 1, 0)  # a fraction, because 0.07 * 100 > 7 in floats


def released(n: int, q: float) -> int:
    """Index of the q-quantile among n sorted values, as Shoal's released scripts take it: int(q (n - 1))."""
    return int(q * (n - 1))


RULES = {"nearest_rank": nearest_rank, "released": released}


@dataclass(frozen=True, eq=False)
class Distribution:
    """Some values in order, and what is asked of them. Of no values, every answer is NaN."""

    values: np.ndarray  # sorted
    rule: str = "nearest_rank"

    def __post_init__(self):
        if self.rule not in RULES:
            raise BadInput(f"rule must be one of {', '.join(RULES)}, not {self.rule!r}")
        object.__setattr__(self, "values", np.sort(np.asarray(self.values)))

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        return f"Distribution(n={len(self)}, mean={self.mean:.6g}, p50={self.p50}, p99={self.p99}, max={self.max})"

    @property
    def mean(self) -> float:
        """Mean, from an exact sum: it does not depend on the order of addition, nor on the machine."""
        return total(self.values) / len(self) if len(self) else math.nan

    @property
    def min(self):
        """Smallest value."""
        return self.values[0].item() if len(self) else math.nan

    @property
    def max(self):
        """Largest value."""
        return self.values[-1].item() if len(self) else math.nan

    @property
    def p50(self):
        """Median, by the rule."""
        return self.percentile(50)

    @property
    def sd(self) -> float:
        """Standard deviation of the values, with n - 1."""
        return float(np.std(self.values.astype(np.float64), ddof=1)) if len(self) > 1 else math.nan

    @property
    def p90(self):
        """The value that 90 % do not exceed, by the rule."""
        return self.percentile(90)

    @property
    def p95(self):
        """The value that 95 % do not exceed, by the rule."""
        return self.percentile(95)

    @property
    def p99(self):
        """The value that 99 % do not exceed, by the rule."""
        return self.percentile(99)

    @property
    def p999(self):
        """The value that 99.9 % do not exceed, by the rule."""
        return self.percentile(99.9)

    def percentile(self, p: float):
        """The p-th percentile, 0 <= p <= 100, by the rule."""
        require(0 <= p <= 100, "a percentile", "between 0 and 100", p)
        if not len(self):
            return math.nan
        return self.values[RULES[self.rule](len(self), float(Fraction(str(p)) / 100))].item()

    def cdf(self, points: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(values, share not above each): every distinct value, or at most `points` of them, the ends kept."""
        values, counts = np.unique(self.values, return_counts=True)
        share = np.cumsum(counts) / max(len(self), 1)
        if points is not None and len(values) > points:
            require(points >= 2, "points", "at least 2", points)
            # even in share, and again in the logarithm of what remains above, so that the tail keeps its shape
            body = np.searchsorted(share, np.linspace(0, 1, points // 2))
            tail = np.searchsorted(share, 1 - np.logspace(0, -np.log10(len(self)), points - points // 2 - 1))
            keep = np.unique(np.clip(np.concatenate([body, tail, [len(values) - 1]]), 0, len(values) - 1))
            values, share = values[keep], share[keep]
        return values, share

    def summary(self, unit=1) -> dict:
        """{"mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"} in `unit`s; None where there is nothing to say."""
        answers = {
            "mean": self.mean, "sd": self.sd, "p50": self.p50, "p90": self.p90, "p95": self.p95, "p99": self.p99,
            "p99.9": self.p999, "max": self.max,
        }  # fmt: skip
        return {name: None if math.isnan(value) else value / unit for name, value in answers.items()}


def total(values: np.ndarray):
    """Exact sum of a column: integers beyond 64 bits if they must, floats rounded once."""
    if values.dtype.kind in "iu":
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
    return math.fsum(values.tolist())


def times(start: np.ndarray, finish: np.ndarray) -> np.ndarray:
    """Completion time of every flow in ps, -1 for the unfinished."""
    return np.where(finish >= 0, finish - start, -1)


def of_size(size: np.ndarray, smaller_than: int | None = None, larger_than: int | None = None) -> np.ndarray:
    """Mask of the flows of at most `smaller_than` and at least `larger_than` bytes, both ends included."""
    mask = np.ones(len(size), bool)
    if smaller_than is not None:
        mask &= size <= smaller_than
    if larger_than is not None:
        mask &= size >= larger_than
    return mask


def completion(size, start, finish, *, smaller_than=None, larger_than=None, rule="nearest_rank") -> Distribution:
    """Completion times in ps of the finished flows of those sizes."""
    mask = of_size(size, smaller_than, larger_than) & (finish >= 0)
    return Distribution((finish - start)[mask], rule)


def slowdown(size, start, finish, ideal, *, smaller_than=None, larger_than=None, rule="nearest_rank") -> Distribution:
    """Completion time over `ideal`, the shortest possible for each flow in ps, of the finished flows of those sizes."""
    ideal = np.asarray(ideal)
    require(ideal.shape == finish.shape, "ideal", f"one time for each of {len(finish)} flows", ideal.shape)
    mask = of_size(size, smaller_than, larger_than) & (finish >= 0)
    require((ideal[mask] > 0).all(), "ideal", "positive", ideal[mask].min().item() if mask.any() else None)
    return Distribution((finish - start)[mask] / ideal[mask], rule)


def by_size(size, start, finish, *, edges=DECADES, rule="nearest_rank") -> list[tuple[int, int | None, Distribution]]:
    """(above, up to, completion times) for each bin of sizes; a bin holds its upper edge, so that short stays short."""
    require(all(a < b for a, b in pairwise([0, *edges])), "edges", "positive and rising", tuple(edges))
    done = finish >= 0
    bins = []
    for above, upto in pairwise([0, *edges, None]):
        mask = done & (size > above)
        if upto is not None:
            mask &= size <= upto
        bins.append((above, upto, Distribution((finish - start)[mask], rule)))
    return bins
