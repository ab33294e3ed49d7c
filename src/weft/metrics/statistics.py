"""Statistics over seeds: what a mean over few runs is worth, and whether two fabrics differ by more than the draw.

A run is one observation. Flows of one run share queues, so that a thousand of them are not a thousand observations, and
no interval is made of them. Over seeds the mean has Student's 95 % interval; of one seed there is none. Two fabrics
that saw the same seeds saw the same flows, so they are compared seed by seed: the ratio is that of the means, its
interval and its p-value come from the differences of the logarithms (paired t-test), or from Welch's test where seeds
are not shared.
"""

import math
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds: of how many, how far they spread, and its 95 % interval."""

    mean: float
    sd: float | None  # of single runs, with n - 1; None of fewer than two
    low: float | None
    high: float | None
    runs: int

    @property
    def ci95(self) -> list[float] | None:
        """[low, high], or None of fewer than two runs."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def estimate(values) -> Estimate | None:
    """What some runs say of their mean; None if there is no value among them."""
    values = np.array([value for value in values if value is not None], np.float64)
    n = len(values)
    if not n:
        return None
    mean = math.fsum(values.tolist()) / n
    if n == 1:
        return Estimate(mean, None, None, None, 1)
    sd = float(values.std(ddof=1)) if np.ptp(values) else 0.0  # not what rounding of the mean leaves
    half = student(n - 1) * sd / math.sqrt(n)
    return Estimate(mean, sd, mean - half, mean + half, n)


def student(freedom: float) -> float:
    """The quantile of Student's t that leaves 2.5 % above it."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + LEVEL / 2))


@dataclass(frozen=True)
class Ratio:
    """How many times more one is than another, with its 95 % interval and the chance of as much if they were equal."""

    ratio: float
    low: float | None
    high: float | None
    p: float | None
    paired: bool

    @property
    def ci95(self) -> list[float] | None:
        """[low, high], or None where there are too few runs."""
        return None if self.low is None or self.high is None else [self.low, self.high]

    @property
    def significant(self) -> bool | None:
        """Whether the interval leaves out 1; None where nobody can tell."""
        return None if self.low is None or self.high is None else not self.low <= 1 <= self.high


def ratio(ours: dict, theirs: dict) -> Ratio | None:
    """Our values over theirs, each by seed; None where either has none, or theirs is 0."""
    ours = {seed: value for seed, value in ours.items() if value is not None}
    theirs = {seed: value for seed, value in theirs.items() if value is not None}
    if not ours or not theirs:
        return None
    base = math.fsum(theirs.values()) / len(theirs)
    if base == 0:
        return None
    found = math.fsum(ours.values()) / len(ours) / base
    if min([*ours.values(), *theirs.values()]) <= 0:  # no logarithm
        return Ratio(found, None, None, None, False)
    shared = sorted(ours.keys() & theirs.keys())
    if len(shared) >= 2 and len(shared) == len(ours) == len(theirs):
        logs = np.log([ours[seed] / theirs[seed] for seed in shared])
        return _tested(found, float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs)), len(logs) - 1, True)
    if len(ours) >= 2 and len(theirs) >= 2:
        one, other = np.log(list(ours.values())), np.log(list(theirs.values()))
        parts = one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)
        error = math.sqrt(sum(parts))
        bottom = parts[0] ** 2 / (len(one) - 1) + parts[1] ** 2 / (len(other) - 1)
        freedom = sum(parts) ** 2 / bottom if bottom else 1
        return _tested(found, float(one.mean() - other.mean()), error, freedom, False)
    return Ratio(found, None, None, None, False)


def _tested(found, mean, error, freedom, paired):
    from scipy.special import stdtr

    half = student(freedom) * error
    p = float(2 * stdtr(freedom, -abs(mean) / error)) if error else float(mean == 0)
    return Ratio(found, math.exp(mean - half), math.exp(mean + half), p, paired)
