"""Do the words of a machine count as we do, and does asking for memory leave it alone?"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine.bits import lowest, population, prefetch, prefetch_at
from weft.engine.jit import kernel


@kernel
def count(word):
    return lowest(word), population(word)


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
