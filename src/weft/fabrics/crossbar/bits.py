"""Sets of ports as bits in machine words: the first set bit at or after a pointer, without a loop over ports.

A set of n ports is ceil(n / 64) words; many sets lie one after another in a flat array. One word covers 64 ports:
rotating it so that the pointer comes first and counting trailing zeros is the whole round-robin arbiter. Bits beyond n
are never set, so the order around a ring of 64 is the order around a ring of n.
"""

import numpy as np

from weft.engine.bits import lowest, population
from weft.engine.jit import bare, inlined

NOBODY = -1
_0, _1, _63, _64 = (np.uint64(k) for k in (0, 1, 63, 64))
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def words(ports: int) -> int:
    """Words that a set of `ports` ports takes."""
    return -(-ports // 64)


def full(ports: int) -> np.ndarray:
    """(words,) uint64: the set of all ports."""
    everyone = (1 << ports) - 1
    return np.array([everyone >> 64 * w & (2**64 - 1) for w in range(words(ports))], np.uint64)


@inlined
def bit(k):
    """The word in which only bit k mod 64 is set."""
    return _1 << (np.uint64(k) & _63)


@bare
def let_all(among, everyone):
    """Make `among` the set of all ports."""
    for w in range(everyone.size):
        among[w] = everyone[w]


@inlined
def first_of_word(word, start):
    """First set bit of a word at or after `start` < 64, around the ring; unspecified if the word is 0.

    Counts trailing zeros by counting ones, because that is what vector units have.
    """
    turned = (word >> start) | (word << ((_64 - start) & _63))
    return (start + np.uint64(population(~turned & (turned - _1)))) & _63


@bare
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
            found = w * 64 + lowest(word)
            break
    return found


@bare
def size(sets, row, among):
    """How many ports are in set `row` of `sets` and in `among`."""
    count = 0
    for w in range(among.size):
        count += population(sets[row * among.size + w] & among[w])
    return count


@bare
def nth(sets, row, among, k):
    """The k-th smallest port, from 0, of those in set `row` of `sets` and in `among`; there must be that many."""
    found = NOBODY
    for w in range(among.size):
        word = sets[row * among.size + w] & among[w]
        here = population(word)
        if k < here:
            for _ in range(k):
                word &= word - _1
            found = w * 64 + lowest(word)
            break
        k -= here
    return found
