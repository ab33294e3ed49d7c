"""`weft.random` for kernels: the same numbers from the same (seed, stream, counter)."""

import numpy as np

from weft.engine.jit import kernel
from weft.random import GOLDEN, LEAP, MIX1, MIX2

_GOLDEN, _LEAP, _MIX1, _MIX2 = np.uint64(GOLDEN), np.uint64(LEAP), np.uint64(MIX1), np.uint64(MIX2)
_30, _27, _31, _33, _11, _1 = (np.uint64(k) for k in (30, 27, 31, 33, 11, 1))


@kernel
def mix(z):
    """SplitMix64's finaliser: 64 well-mixed bits of any 64."""
    z = (z ^ (z >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@kernel
def key(seed, stream):
    """64-bit key of one stream of one seed."""
    return mix(mix(np.uint64(seed) * _GOLDEN + _LEAP) + np.uint64(stream) * _LEAP)


@kernel
def origin(key, counter):
    """For loops over many counters: word(key, counter + i) is mix(origin(key, counter) + step(i))."""
    return key + (np.uint64(counter) + _1) * _GOLDEN


@kernel
def step(i):
    """What to add to `origin(key, counter)` for the i-th counter after it."""
    return np.uint64(i) * _GOLDEN


@kernel
def word(key, counter):
    """The `counter`-th 64-bit number of a stream."""
    return mix(origin(key, counter))


@kernel
def below(word, n):
    """A number in [0, n), n < 2**31."""
    return np.int64(((word >> _33) * np.uint64(n)) >> _31)


@kernel
def unit(word):
    """float64 in (0, 1]."""
    return (np.float64(word >> _11) + 1.0) * 2.0**-53
