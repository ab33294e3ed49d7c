import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.metrics.throughput import busy_average, busy_time, delivered, over_time, rate, spread, steady
from weft.units import Gbps, ns


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 20), st.booleans()), max_size=30))
def test_busy_time_counts_every_instant_with_a_flow_coming_in_once(flows):
    now = 50
    dst = np.array([f[0] for f in flows], np.int64)
    start = np.array([f[1] for f in flows], np.int64)
    finish = np.array([min(f[1] + f[2], now) if f[3] else -1 for f in flows], np.int64)
    busy = [set(), set(), set()]
    for d, a, b in zip(dst, start, finish, strict=True):
        busy[d] |= set(range(a, b if b >= 0 else now))
    assert busy_time(dst, start, finish, now, 3).tolist() == [len(b) for b in busy]


def test_a_destination_that_idles_between_two_flows_is_averaged_over_its_busy_time():
    dst, start, finish = np.array([1, 1]), np.array([0, 900]) * ns, np.array([100, 1000]) * ns
    found = busy_average(dst, start, finish, np.array([1250, 1250]), 5000 * ns, nodes=2)
    assert found.tolist() == [100 * Gbps]


def test_bytes_are_summed_by_destination():
    assert delivered(np.array([2, 0, 2]), np.array([5, 1, 6]), 3).tolist() == [1, 0, 11]


def test_no_time_gives_no_rate():
    assert np.isnan(rate(5, 0)) and rate(125, 10 * ns) == 100 * Gbps


def test_a_curve_is_the_slope_of_a_count():
    time, mine = np.array([0, 100, 300]) * ns, np.array([0, 1250, 1250])
    t, r = over_time(time, np.stack([mine, 2 * mine], axis=1))
    assert t.tolist() == [50 * ns, 200 * ns]
    assert r.tolist() == [[100 * Gbps, 200 * Gbps], [0, 0]]


def test_steady_state_is_taken_over_its_window_only():
    time, count = np.array([0, 100, 200, 300]) * ns, np.array([0, 0, 1250, 2500])
    assert steady(time, count, 150 * ns, 300 * ns) == pytest.approx(100 * Gbps)
    assert steady(time, np.stack([count, count], 1), 0, 300 * ns) == pytest.approx([200 / 3 * Gbps] * 2)


def test_a_window_outside_the_samples_is_refused():
    with pytest.raises(BadInput, match=r"^the window must be within the samples, not \(5, 20\)$"):
        steady([0, 10], [0, 1], 5, 20)


def test_sample_times_must_rise():
    with pytest.raises(BadInput, match=r"^sample times must be rising, not \[0, 5, 5\]$"):
        over_time([0, 5, 5], [0, 1, 2])


def test_the_spread_of_nothing_is_null():
    assert spread([]) == {"mean": None, "min": None, "max": None}
    assert spread([1.0, 3.0, np.nan], 2) == {"mean": 1.0, "min": 0.5, "max": 1.5}
