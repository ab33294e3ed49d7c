"""The fingerprint: 128 bits folded over the events of a run, in order, by kernels and twins alike."""

import numpy as np

from weft.engine.jit import inlined

MASK = (1 << 64) - 1
START = (0x6A09E667F3BCC908, 0xBB67AE8584CAA73B)  # the fractional parts of sqrt(2) and sqrt(3)
_A, _B = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_KA, _KB = np.uint64(_A), np.uint64(_B)
_29, _32 = np.uint64(29), np.uint64(32)


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


class Fingerprint:
    """The same in plain Python, for twins."""

    def __init__(self):
        self.x, self.y = START

    def fold(self, a: int, b: int) -> None:
        x = ((self.x ^ (a & MASK)) * _A) & MASK
        y = ((self.y ^ (b & MASK)) * _B) & MASK
        self.x = x ^ (y >> 29)
        self.y = y ^ (x >> 32)

    def __str__(self):
        return show((self.x, self.y))


def show(print_) -> str:
    """32 hexadecimal digits."""
    return f"{int(print_[0]):016x}{int(print_[1]):016x}"
