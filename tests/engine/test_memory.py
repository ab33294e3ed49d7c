"""Do tables that lie side by side stay apart?"""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from weft.engine import memory

shapes = st.lists(
    st.tuples(
        st.lists(st.integers(0, 40), min_size=1, max_size=3).map(tuple),
        st.sampled_from(["u1", "u2", "i4", "i8", [("a", "i8"), ("b", "u1")]]),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(shapes)
def test_every_table_has_its_shape_and_begins_with_a_cache_line(wanted):
    arrays = memory.zeros({f"t{k}": table for k, table in enumerate(wanted)})
    assert [(a.shape, a.dtype) for a in arrays.values()] == [(shape, np.dtype(kind)) for shape, kind in wanted]
    assert all(a.ctypes.data % memory.LINE == 0 for a in arrays.values() if a.size)


@pytest.mark.parametrize("rows", [3, 1 << 20])
def test_what_is_written_in_one_table_is_seen_in_no_other(rows):
    arrays = memory.zeros({"a": (rows, "i4"), "b": ((rows, 2), "u1"), "c": (rows, "i8")})
    for value, array in enumerate(arrays.values(), 1):
        assert not array.any()
        array[...] = value
    for value, array in enumerate(arrays.values(), 1):
        assert_array_equal(array, np.full(array.shape, value))


def test_a_large_block_begins_with_a_huge_page_and_a_small_one_is_small():
    assert memory.zeros({"a": (memory.HUGE, "u1")})["a"].ctypes.data % memory.HUGE == 0
    assert memory.zeros({"a": (100, "u1")})["a"].base.nbytes < 1000


def test_longer_tables_keep_their_rows_and_end_in_zeros():
    short = {"a": np.arange(5), "b": np.arange(6, dtype="u1").reshape(3, 2)}
    arrays = memory.longer(short)
    assert_array_equal(arrays["a"], [0, 1, 2, 3, 4, 0, 0, 0, 0, 0])
    assert_array_equal(arrays["b"], [[0, 1], [2, 3], [4, 5], [0, 0], [0, 0], [0, 0]])
    assert arrays["b"].dtype == np.uint8


def test_a_block_is_given_back_with_its_last_table():
    arrays = memory.zeros({"a": (memory.HUGE, "u1"), "b": (8, "u1")})
    block = weakref.ref(arrays["a"].base.obj if hasattr(arrays["a"].base, "obj") else arrays["a"].base)
    kept = arrays.pop("b")
    del arrays
    gc.collect()
    kept[:] = 1
    assert block() is not None
    del kept
    gc.collect()
    assert block() is None
