"""Sets of nodes as words of bits: node i in bit i mod 64 of word i div 64."""

import numpy as np

from weft.engine.jit import hot

_ONE = np.uint64(1)


@hot
def has(words, i):
    """Whether node i is in a set."""
    return words[i >> 6] >> np.uint64(i & 63) & _ONE != 0


@hot
def add(words, i):
    """Put node i into a set."""
    words[i >> 6] |= _ONE << np.uint64(i & 63)


@hot
def discard(words, i):
    """Take node i out of a set, if it is there."""
    words[i >> 6] &= ~(_ONE << np.uint64(i & 63))
