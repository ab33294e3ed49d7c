"""Sets of ports as bits in machine words: the first set bit at or after a pointer, without a loop over ports.

A set of n ports is ceil(n / 64) words; many sets lie one after another in a flat array. One word covers 64 ports:
rotating it so that the pointer comes first and counting trailing zeros is the whole round-robin arbiter. Bits beyond n
are never set, so the order around a ring of 64 is the order around a ring of n.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

NOBODY = -1
_0, _1, _63, _64 = (np.uint64(k) for k in (0, 1, 63, 64))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

# Part of a kernel, pasted in where it is named. A call that passes arrays counts references to each of them, with
# atomic instructions: measured, 10 to 15 ns an array, more than most of these parts take.
part = njit(inline="always", error_model="numpy")


@intrinsic
def trailing_zeros(typingctx, word):
    """Trailing zeros of a uint64 that is not 0: one instruction."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def ones(typingctx, word):
    """Set bits of a uint64: one instruction."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def words(ports: int) -> int:
    """Words that a set of `ports` ports takes."""
    return -(-ports // 64)


def full(ports: int) -> np.ndarray:
    """(words,) uint64: the set of all ports."""
    everyone = (1 << ports) - 1
    return np.array([everyone >> 64 * w & (2**64 - 1) for w in range(words(ports))], np.uint64)


@part
def bit(k):
    """The word in which only bit k mod 64 is set."""
    return _1 << (np.uint64(k) & _63)


@part
def first_of_word(word, start):
    """First set bit of a word at or after `start` < 64, around the ring; unspecified if the word is 0.

    Counts trailing zeros by counting ones, because that is what vector units have.
    """
    turned = (word >> start) | (word << ((_64 - start) & _63))
    return (start + ones(~turned & (turned - _1))) & _63


@part
def first(sets, row, among, start):
    """First port at or after `start`, around the ring, that is in set `row` of `sets` and in `among`, or NOBODY."""
    count = among.size
    base, at = row * count, start >> 6
    later = _ALL << (np.uint64(start) & _63)
    found = NOBODY
    for step in range(count + 1):  # the word of the pointer comes twice: its end first, its beginning last
        w = at + step
        if w >= count:
            w -= count
        word = sets[base + w] & among[w]
        if step == 0:
            word &= later
        elif step == count:
            word &= ~later
        if word != _0:
            found = w * 64 + np.int64(trailing_zeros(word))
            break
    return found


@part
def size(sets, row, among):
    """How many ports are in set `row` of `sets` and in `among`."""
    count = _0
    for w in range(among.size):
        count += ones(sets[row * among.size + w] & among[w])
    return np.int64(count)


@part
def nth(sets, row, among, k):
    """The k-th smallest port, from 0, of those in set `row` of `sets` and in `among`; there must be that many."""
    found = NOBODY
    for w in range(among.size):
        word = sets[row * among.size + w] & among[w]
        here = np.int64(ones(word))
        if k < here:
            for _ in range(k):
                word &= word - _1
            found = w * 64 + np.int64(trailing_zeros(word))
            break
        k -= here
    return found
