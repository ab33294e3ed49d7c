"""Random numbers that are the same on every machine, in Python, NumPy and kernels alike.

A number is a pure function of (seed, stream, counter): two rounds of SplitMix64's finaliser over a weighted sum.
There is no state to carry, so any draw can be made at any time by anyone. The distributions use only operations
that IEEE 754 defines to the last bit (+ - * / and comparisons); no libm function decides an event, because those
differ between machines. `weft.engine.random` is the same for kernels; the tests hold the two equal.
"""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN, LEAP = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95
MIX1, MIX2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * MIX1) & MASK
    z = ((z ^ (z >> 27)) * MIX2) & MASK
    return z ^ (z >> 31)


def key(seed: int, stream: int) -> int:
    """64-bit key of one stream of one seed; `word` turns it and a counter into a number."""
    return _mix((_mix((seed * GOLDEN + LEAP) & MASK) + stream * LEAP) & MASK)


def word(key: int, counter: int) -> int:
    """The `counter`-th 64-bit number of a stream."""
    return _mix((key + (counter + 1) * GOLDEN) & MASK)


def words(key: int, count: int, start: int = 0) -> np.ndarray:
    """(count,) uint64: `word(key, start)`, `word(key, start + 1)`, …"""
    z = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    z *= np.uint64(GOLDEN)
    z += np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX2)
    return z ^ (z >> np.uint64(31))


def below(words: np.ndarray, n) -> np.ndarray:
    """int64 numbers in [0, n): the high word of a 53-bit fraction times n, exact while n < 2**31."""
    return ((words >> np.uint64(33)) * np.asarray(n, np.uint64) >> np.uint64(31)).astype(np.int64)


def below_one(word: int, n: int) -> int:
    """The same for a single plain number."""
    return ((word >> 33) * n) >> 31


def unit(words: np.ndarray) -> np.ndarray:
    """float64 in (0, 1]: 53 random bits plus one, so that its logarithm exists."""
    return ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53


def permutation(key: int, n: int) -> np.ndarray:
    """(n,) int64: a random order of 0 … n-1 (stable sort of n words, so ties cannot depend on the machine)."""
    return np.argsort(words(key, n), kind="stable").astype(np.int64)


_SQRT_HALF = 0.7071067811865476
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def ln(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive floats by + - * / alone; within 2 units in the last place of the true one."""
    m, e = np.frexp(np.asarray(x, np.float64))  # exact
    low = m < _SQRT_HALF
    m = np.where(low, m * 2.0, m)
    e = np.where(low, e - 1, e).astype(np.float64)
    t = (m - 1.0) / (m + 1.0)
    t2 = t * t
    series = np.zeros_like(t)
    for k in range(21, 0, -2):  # 2 artanh(t), |t| < 0.172
        series = series * t2 + 1.0 / k
    return e * _LN2_HIGH + (2.0 * t * series + e * _LN2_LOW)


def exp(x: np.ndarray) -> np.ndarray:
    """e to the power x for |x| < 700 by + - * / alone; within a few units in the last place of the true one."""
    x = np.asarray(x, np.float64)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    series = np.ones_like(r)
    for k in range(16, 0, -1):
        series = 1.0 + r / k * series
    return np.ldexp(series, n.astype(np.int64))  # exact
