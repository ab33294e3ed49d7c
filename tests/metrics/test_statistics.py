"""Statistics over seeds, against SciPy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weft.metrics.statistics import estimate, ratio

some = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=12)


@given(some)
def test_the_interval_is_students(values):
    found = estimate(values)
    assert found.mean == pytest.approx(np.mean(values)) and found.runs == len(values)
    error = stats.sem(values)
    if np.ptp(values) == 0:
        assert found.sd == 0 and found.ci95 == [found.mean, found.mean]
    elif error > 1e-9 * found.mean:
        wanted = stats.t.interval(0.95, len(values) - 1, np.mean(values), error)
        assert found.ci95 == pytest.approx(list(wanted), rel=1e-6, abs=1e-6)


def test_one_run_has_no_interval_and_no_run_no_mean():
    assert estimate([3.0]).ci95 is None and estimate([3.0]).sd is None and estimate([None, 3.0]).mean == 3.0
    assert estimate([]) is None and estimate([None]) is None


@given(st.lists(st.tuples(st.floats(0.5, 100), st.floats(0.5, 100)), min_size=3, max_size=9))
def test_fabrics_that_saw_the_same_seeds_are_compared_seed_by_seed(pairs):
    ours, theirs = ({k: pair[side] for k, pair in enumerate(pairs)} for side in (0, 1))
    found = ratio(ours, theirs)
    assert found.paired and found.ratio == pytest.approx(sum(ours.values()) / sum(theirs.values()))
    logs = np.log([a / b for a, b in pairs])
    if np.std(logs) > 1e-6:
        test = stats.ttest_1samp(logs, 0)
        assert found.p == pytest.approx(test.pvalue, rel=1e-6, abs=1e-12)
        interval = test.confidence_interval(0.95)
        assert found.ci95 == pytest.approx([math.exp(interval.low), math.exp(interval.high)], rel=1e-6)


def test_other_seeds_are_compared_by_welchs_test():
    ours, theirs = {1: 2.0, 2: 2.4, 3: 2.1}, {7: 1.0, 8: 1.3, 9: 1.1, 10: 0.9}
    found = ratio(ours, theirs)
    test = stats.ttest_ind(np.log(list(ours.values())), np.log(list(theirs.values())), equal_var=False)
    assert not found.paired and found.p == pytest.approx(test.pvalue) and found.significant


def test_what_cannot_be_told_is_not():
    assert ratio({1: 2.0}, {1: 4.0}).ratio == 0.5 and ratio({1: 2.0}, {1: 4.0}).significant is None
    assert ratio({1: 2.0}, {1: 0.0}) is None and ratio({}, {1: 1.0}) is None and ratio({1: None}, {1: 1.0}) is None
    assert ratio({1: 0.0, 2: 0.0}, {1: 1.0, 2: 1.0}).ci95 is None
