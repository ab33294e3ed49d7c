"""Random numbers in kernels are those of `weft.random`."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import random
from weft.engine.random import below, key, mix, origin, step, unit, word

WORDS = st.integers(0, 2**64 - 1)


@settings(deadline=None)
@given(WORDS, st.integers(0, 2**31), st.integers(0, 2**62))
def test_keys_and_words_are_the_same_in_both(seed, stream, counter):
    k = random.key(seed, stream)
    assert int(key(np.uint64(seed), stream)) == k
    assert int(word(np.uint64(k), counter)) == random.word(k, counter)


@settings(deadline=None)
@given(WORDS, st.integers(0, 2**62), st.integers(0, 2**20))
def test_a_loop_may_step_from_word_to_word(stream_key, counter, i):
    base = origin(np.uint64(stream_key), counter)
    with np.errstate(over="ignore"):
        at = np.uint64(base) + np.uint64(step(i))
    assert int(mix(at)) == random.word(stream_key, counter + i)


@settings(deadline=None)
@given(WORDS, st.integers(1, 2**31 - 1))
def test_numbers_below_a_bound_and_of_the_unit_interval_are_the_same_in_both(drawn, n):
    assert below(np.uint64(drawn), n) == random.below_one(drawn, n) < n
    assert 0 < unit(np.uint64(drawn)) == random.unit(np.array([drawn], np.uint64))[0] <= 1
