"""The fingerprint: 128 bits over the events of a run, by kernels and twins alike.

Where events have one order, that of time, each is folded into what came before (`fold`). Where a slot has many at once,
at nodes or ports that do not know of each other, they are added up (`add`): each event, which says its slot, is mixed
into two numbers, each summed for itself, and a sum does not depend on who was first. So a device on which nodes work
side by side comes to the same fingerprint as a loop over them.
"""

import numpy as np

from weft.engine.jit import inlined

MASK = (1 << 64) - 1
START = (0x6A09E667F3BCC908, 0xBB67AE8584CAA73B)  # the fractional parts of sqrt(2) and sqrt(3)
_A, _B = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_KA, _KB = np.uint64(_A), np.uint64(_B)
_C, _D = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # the multipliers of splitmix64
_KC, _KD = np.uint64(_C), np.uint64(_D)
_27, _29, _30, _31, _32 = (np.uint64(bits) for bits in (27, 29, 30, 31, 32))


def start() -> np.ndarray:
    """(2,) uint64: the fingerprint of a run in which nothing has happened."""
    return np.array(START, np.uint64)


@inlined
def folded(x, y, a, b):
    """The fingerprint (x, y) with an event, two 64-bit numbers, folded in: for loops that keep it in registers."""
    x = (x ^ np.uint64(a)) * _KA
    y = (y ^ np.uint64(b)) * _KB
    return x ^ (y >> _29), y ^ (x >> _32)


@inlined
def fold(print_, a, b):
    """Fold an event into the (2,) uint64 array `print_`."""
    print_[0], print_[1] = folded(print_[0], print_[1], a, b)


@inlined
def mixed(a, b):
    """An event, two 64-bit numbers, as two numbers that look random, one no sum of the other: what `add` adds."""
    x = np.uint64(b) + np.uint64(a) * _KA  # splitmix64
    x = (x ^ (x >> _30)) * _KC
    x = (x ^ (x >> _27)) * _KD
    return x, x ^ (x >> _31)


@inlined
def add(print_, a, b):
    """Add an event to the (2,) uint64 array `print_`."""
    x, y = mixed(a, b)
    print_[0] += x
    print_[1] += y


class Fingerprint:
    """The same in plain Python, for twins."""

    def __init__(self):
        self.x, self.y = START

    def fold(self, a: int, b: int) -> None:
        x = ((self.x ^ (a & MASK)) * _A) & MASK
        y = ((self.y ^ (b & MASK)) * _B) & MASK
        self.x = x ^ (y >> 29)
        self.y = y ^ (x >> 32)

    def add(self, a: int, b: int) -> None:
        x = (b + a * _A) & MASK
        x = ((x ^ x >> 30) * _C) & MASK
        x = ((x ^ x >> 27) * _D) & MASK
        self.x = (self.x + x) & MASK
        self.y = (self.y + (x ^ x >> 31)) & MASK

    def __str__(self):
        return show((self.x, self.y))


def show(print_) -> str:
    """32 hexadecimal digits."""
    return f"{int(print_[0]):016x}{int(print_[1]):016x}"
