import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.metrics.fct import (
    DECADES,
    Distribution,
    by_size,
    completion,
    nearest_rank,
    of_size,
    released,
    slowdown,
    total,
)
from weft.units import KB, MB

values = st.lists(st.integers(0, 2**62), min_size=1, max_size=200)
quantiles = st.sampled_from([0.01, 0.07, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0])


@given(values, quantiles)
def test_nearest_rank_is_the_smallest_value_that_a_share_q_does_not_exceed(xs, q):
    found = sorted(xs)[nearest_rank(len(xs), q)]
    exact = round(q * 1000)
    assert 1000 * sum(x <= found for x in xs) >= exact * len(xs)
    assert 1000 * sum(x < found for x in xs) < exact * len(xs)


@given(st.integers(1, 10**7), quantiles)
def test_the_released_percentile_is_never_above_nearest_rank(n, q):
    assert 0 <= released(n, q) <= nearest_rank(n, q) < n


def test_the_two_percentiles_differ_in_the_tail_of_a_hundred_flows():
    xs = np.arange(1, 101)
    assert (Distribution(xs).p99, Distribution(xs).p999) == (99, 100)
    assert (Distribution(xs, "released").p99, Distribution(xs, "released").p999) == (99, 99)
    assert (Distribution(xs).p50, Distribution(xs, "released").p50) == (50, 50)


def test_a_quantile_that_floats_round_up_is_still_exact():
    assert math.ceil(0.07 * 100) == 8  # the trap
    assert nearest_rank(100, 0.07) == 6


@given(values)
def test_percentiles_rise_and_lie_between_the_extremes(xs):
    d = Distribution(xs)
    assert min(xs) == d.min <= d.p50 <= d.p99 <= d.p999 <= d.max == max(xs)
    assert d.percentile(0) == d.min and d.percentile(100) == d.max


@given(values)
def test_the_mean_is_of_the_exact_sum(xs):
    assert Distribution(xs).mean == sum(xs) / len(xs)
    assert total(np.array(xs, np.int64)) == sum(xs)


def test_the_mean_does_not_depend_on_order():
    xs = np.array([1e16, 1.0, -1e16, 1.0])
    assert Distribution(xs).mean == 0.5 and total(xs[::-1]) == 2.0


@given(values, st.integers(2, 50))
def test_a_thinned_cdf_is_part_of_the_whole_and_keeps_its_ends(xs, points):
    d = Distribution(xs)
    x, share = d.cdf()
    assert share[-1] == 1 and all(share[k] == sum(v <= x[k] for v in xs) / len(xs) for k in range(len(x)))
    fx, fshare = d.cdf(points)
    assert len(fx) <= max(points, 2) and fx[0] == x[0] and fx[-1] == x[-1]
    assert set(zip(fx, fshare, strict=True)) <= set(zip(x, share, strict=True))


def test_of_no_flows_there_is_nothing_to_say():
    d = Distribution(np.empty(0, np.int64))
    assert all(math.isnan(v) for v in (d.mean, d.p50, d.p99, d.p999, d.min, d.max))
    assert set(d.summary().values()) == {None} and math.isnan(d.sd)
    assert [len(part) for part in d.cdf()] == [0, 0]


def test_an_unknown_rule_is_named():
    with pytest.raises(BadInput, match=r"^rule must be one of nearest_rank, released, not 'median'$"):
        Distribution([1], "median")


def test_a_percentile_beyond_100_is_refused():
    with pytest.raises(BadInput, match=r"^a percentile must be between 0 and 100, not 101$"):
        Distribution([1]).percentile(101)


def test_short_and_long_include_their_ends():
    size = np.array([100 * KB, 100 * KB + 1, MB - 1, MB])
    assert of_size(size, smaller_than=100 * KB).tolist() == [True, False, False, False]
    assert of_size(size, larger_than=MB).tolist() == [False, False, False, True]


def test_unfinished_flows_have_no_completion_time():
    size, start, finish = np.array([1, 1, 1]), np.array([5, 5, 5]), np.array([15, -1, 25])
    assert completion(size, start, finish).values.tolist() == [10, 20]


def test_slowdown_is_time_over_the_shortest_possible():
    size, start, finish = np.array([1, 1, 9]), np.array([0, 10, 0]), np.array([30, 20, -1])
    d = slowdown(size, start, finish, np.array([10, 10, 0]))
    assert d.values.tolist() == [1.0, 3.0]


def test_a_shortest_time_of_nothing_is_refused():
    with pytest.raises(BadInput, match=r"^ideal must be positive, not 0$"):
        slowdown(np.array([1]), np.array([0]), np.array([5]), np.array([0]))


@given(st.lists(st.integers(1, 10**11), max_size=50))
def test_every_finished_flow_is_in_exactly_one_bin(sizes):
    size = np.array(sizes, np.int64)
    bins = by_size(size, np.zeros_like(size), size)  # a flow's time is its size, so a bin can be checked by its times
    assert [b[1] for b in bins] == [*DECADES, None]
    assert sorted(np.concatenate([b[2].values for b in bins]).tolist()) == sorted(sizes)
    for above, upto, d in bins:
        assert all(above < t and (upto is None or t <= upto) for t in d.values)


def test_bins_must_rise():
    with pytest.raises(BadInput, match=r"^edges must be positive and rising, not \(10, 5\)$"):
        by_size(np.array([1]), np.array([0]), np.array([1]), edges=(10, 5))


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=60), st.integers(0, 1000))
def test_nearest_rank_is_what_numpy_calls_the_inverted_cdf(xs, permille):
    p = permille / 10
    ours = Distribution(np.array(xs)).percentile(p)
    exact = sorted(xs)[max(-(-permille * len(xs) // 1000) - 1, 0)]
    assert ours == exact
    if permille * len(xs) % 1000:  # between two flows NumPy's floats agree; on one they may round either way
        assert ours == np.percentile(np.array(xs, dtype=object), p, method="inverted_cdf")


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_a_summary_is_the_numbers_themselves_in_the_unit(xs):
    found = Distribution(np.array(xs)).summary(1000)
    ranked = sorted(xs)
    assert found["max"] == ranked[-1] / 1000
    assert found["p50"] == ranked[(len(xs) + 1) // 2 - 1] / 1000
    assert found["mean"] == pytest.approx(sum(xs) / len(xs) / 1000)
    assert list(found) == ["mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"]
    assert found["sd"] == (pytest.approx(np.std(xs, ddof=1) / 1000) if len(xs) > 1 else None)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_a_cdf_counts_the_flows_that_are_no_slower(xs):
    values, share = Distribution(np.array(xs)).cdf()
    for value, part in zip(values.tolist(), share.tolist(), strict=True):
        assert part == pytest.approx(sum(x <= value for x in xs) / len(xs))
    assert values.tolist() == sorted(set(xs))


@pytest.mark.parametrize("count", [0, 1])
def test_none_and_one_flow_have_answers(count):
    one = Distribution(np.full(count, 7))
    names = ("mean", "p50", "p90", "p95", "p99", "p99.9", "max")
    assert one.summary() == {**dict.fromkeys(names, 7 if count else None), "sd": None}
    assert len(one.cdf()[0]) == count
    assert len(one.cdf(2)[0]) == count
    assert repr(one).startswith(f"Distribution(n={count}, ")


@given(
    st.lists(st.tuples(st.integers(1, 10**7), st.integers(0, 10**6), st.integers(-1, 10**6)), min_size=1, max_size=30),
    st.integers(0, 10**7), st.integers(0, 10**7),
)  # fmt: skip
def test_completion_times_are_those_of_the_finished_flows_of_that_size(flows, small, large):
    size, start, took = (np.array(column) for column in zip(*flows, strict=True))
    finish = np.where(took >= 0, start + took, -1)
    found = completion(size, start, finish, smaller_than=small, larger_than=large)
    assert found.values.tolist() == sorted(t for s, _, t in flows if t >= 0 and large <= s <= small)
