"""A reference to a named tuple reads what the tuple holds, in every kernel it is handed to."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import TypingError

from weft.engine.jit import bare, hot, kernel, part
from weft.engine.reference import by_reference


class Table(NamedTuple):
    whole: np.ndarray
    grid: np.ndarray
    real: np.ndarray
    scale: int


def table():
    return Table(np.arange(5), np.arange(6, dtype=np.int32).reshape(2, 3), np.array([0.5, 1.5]), 3)


@part
def double(state, i):
    state.whole[i] *= 2


@hot
def add_row(state, i):
    for k in range(state.grid.shape[1]):
        state.grid[i, k] += state.scale
        state.whole[k] += state.grid[i, k]  # a store between two loads of the same field


@bare
def work(state, rows):
    state = by_reference(state)
    for i in range(rows):
        double(state, i)
        add_row(state, i)
    return state.whole.size + state.scale


def test_what_is_written_through_a_reference_is_in_the_arrays():
    state, plain = table(), table()
    assert work(state, 2) == 8
    for i in range(2):
        plain.whole[i] *= 2
        plain.grid[i] += 3
        plain.whole[:3] += plain.grid[i]
    assert state.whole.tolist() == plain.whole.tolist() and state.grid.tolist() == plain.grid.tolist()


@kernel
def total(state):
    state = by_reference(state)
    return state.real.sum() + state.whole[state.scale]


def test_a_kernel_that_counts_references_reads_the_same_and_keeps_the_arrays():
    state = table()
    assert [total(state) for _ in range(3)] == [5.0] * 3
    assert state.real.tolist() == [0.5, 1.5]


def test_every_call_reads_the_tuple_it_was_given():
    first, second = table(), table()._replace(whole=np.full(5, 7), scale=1)
    assert (total(first), total(second), total(first)) == (5.0, 9.0, 5.0)


@bare
def wrong(state):
    return by_reference(state).missing


def test_a_field_that_is_not_there_is_refused_when_it_is_compiled():
    with pytest.raises(TypingError, match="missing"):
        wrong(table())
