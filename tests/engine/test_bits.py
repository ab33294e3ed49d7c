"""Do the words of a machine count as we do, and does asking for memory leave it alone?"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine.bits import at_most, either, lowest, population, prefetch, prefetch_at
from weft.engine.jit import kernel


@kernel
def count(word):
    return lowest(word), population(word)


@kernel
def choose(a, b, i, j):
    return either(a < b, i, j), either(a < b, np.uint64(i), np.uint64(j)), either(a < b, i, 0)


@kernel
def compare(row, index, limit):
    return at_most(row, index, limit)


@kernel
def ask(array, index, address):
    prefetch(array, index)
    prefetch_at(address)
    return array[0]


@settings(deadline=None)
@given(st.integers(1, 2**64 - 1))
def test_the_lowest_bit_and_the_number_of_bits_are_those_of_the_number(word):
    assert count(np.uint64(word)) == ((word & -word).bit_length() - 1, word.bit_count())


@settings(deadline=None)
@given(st.integers(-(2**40), 2**40), st.integers(-(2**63), 2**63 - 1))
def test_any_place_may_be_asked_for_and_nothing_changes(index, address):
    array = np.arange(8)
    assert ask(array, index, address) == 0
    assert array.tolist() == list(range(8))


@settings(deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 2**62), st.integers(0, 2**62))
def test_either_is_a_conditional_of_signed_and_unsigned_numbers(a, b, i, j):
    assert choose(a, b, i, j) == ((i, i, i) if a < b else (j, j, 0))


SHORTS = st.integers(-(2**15), 2**15 - 1)


@settings(deadline=None)
@given(st.lists(SHORTS, min_size=8, max_size=24), SHORTS, st.data())
def test_at_most_compares_eight_numbers_from_any_place_on(row, limit, data):
    index = data.draw(st.integers(0, len(row) - 8))
    want = sum(1 << k for k in range(8) if row[index + k] <= limit)
    assert compare(np.array(row, np.int16), index, limit) == want
