"""The rules that all kernels share, each against its definition."""

import inspect as python

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

from fabrics.shoal.test_twins import columns
from weft.engine.jit import bare
from weft.fabrics.shoal import arrays, rules
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import classes, damage, failures, kernel, pairs, receive, send, transport
from weft.schedule.rotation import rounds


@bare
def take_in(pair, early, seq):
    """What `rules.reorder` says of a cell, -1 of a duplicate."""
    return np.int64(-1) if rules.has_arrived(pair, early, 0, seq) else rules.reorder(pair, early, 0, seq)


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(150)), st.integers(1, 120), st.data())
def test_cells_that_come_in_any_order_are_put_in_order_and_duplicates_known(order, reach, data):
    """No cell comes more than 255 before its turn: that is what the window is grown for."""
    order = sorted(order, key=lambda seq: seq // reach)
    pair, early, got = np.zeros((1, 8), np.int64), np.zeros((1, 4), np.uint64), set()
    for seq in order:
        for again in (False, data.draw(st.booleans())):
            held = take_in(pair, early, seq)
            if again or seq in got:
                assert held == -1
                continue
            got.add(seq)
            due = next(k for k in range(len(order) + 1) if k not in got)
            assert (pair[0, col.WANT], held) == (due, len(got) - due)
    assert not early.any()


@pytest.mark.parametrize(("n", "channels", "delay"), [(5, 1, 0), (8, 3, 0), (8, 2, 5), (9, 4, 17), (6, 1, 40)])
def test_the_lag_of_service_is_the_one_of_the_notes(n, channels, delay):
    schedule = rounds(n, channels, delay)
    options = dict(delay=delay, rules="paper", ready_queues=True, age_interval=0, sharing="round-robin")
    plan = arrays.make_plan(schedule, *columns([(0, 1, 1, 0)]), **options)
    epoch, places = schedule.slots, len(schedule.shift)
    for out in range(places):
        back = int(plan.mirror[out])
        found = _lags(plan, epoch, out, back)
        for m in range(places):
            late = -(-(m // channels - out // channels - delay) // epoch)  # ceil((s(m) - s(q) - delay) / epoch)
            assert found[m] == (m < back) + late


def _lags(plan, epoch, out, back):
    return [rules.service_lag.py_func(plan.late, plan.slot, epoch, m, out, back) for m in range(len(plan.slot))]


@given(st.integers(0, 40), st.integers(0, 200), st.integers(0, 9), st.integers(1, 8))
def test_a_pair_of_age_a_uses_queues_of_up_to_2_to_the_a_cells(length, age, interval, aged):
    young = rules.too_young.py_func(length, age, aged * interval, interval)
    assert young == (interval > 0 and age // interval < aged and length > 2 ** (age // interval))


@pytest.mark.parametrize("module", [classes, damage, failures, kernel, pairs, receive, send, transport])
def test_no_part_of_the_plain_kernel_is_handed_a_list_of_arrays(module):
    """The plan and the state go by reference; the most that anything else needs is a few arrays and indices."""
    parts = [f for f in vars(module).values() if isinstance(f, Dispatcher) and f.py_func.__module__ == module.__name__]
    assert parts
    for part in parts:
        names = list(python.signature(part.py_func).parameters)
        assert len(names) <= 8, (part.py_func.__name__, names)
        assert sum(name in ("queue", "cell", "pair") for name in names) <= 3
