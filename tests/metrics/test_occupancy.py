import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.metrics.fct import Distribution
from weft.metrics.occupancy import histogram, link_use, percentile, summary


@given(st.lists(st.integers(0, 60), min_size=1, max_size=200), st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]))
def test_a_histogram_has_the_percentiles_of_the_list(lengths, p):
    assert percentile(histogram(lengths), p) == Distribution(lengths).percentile(p)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=50))
def test_a_histogram_keeps_mean_and_maximum(lengths):
    found = summary(histogram(lengths))
    assert found["mean"] == sum(lengths) / len(lengths) and found["max"] == max(lengths)
    assert found["empty"] == lengths.count(0) / len(lengths)


def test_of_no_queues_there_is_nothing_to_say():
    assert set(summary(np.zeros(3)).values()) == {None} and percentile([], 50) is None


def test_a_queue_cannot_hold_less_than_nothing():
    with pytest.raises(BadInput, match=r"^a queue length must be at least 0, not -1$"):
        histogram([3, -1])


@given(*[st.integers(0, 10**9)] * 4)
def test_link_use_adds_up(direct, relayed, waiting, dummy):
    # direct cells take one hop, relayed ones two, waiting ones have taken the first of two
    cells = {"local": direct + relayed + waiting, "forwarded": relayed, "dummy": dummy, "delivered": direct + relayed}
    use = link_use(cells)
    hops = direct + 2 * relayed + waiting + dummy
    if not hops:
        assert set(use.values()) == {None}
        return
    assert use["useful"] == (direct + relayed) / hops
    assert use["forwarded"] == (relayed + waiting) / hops
    assert sum(use.values()) == pytest.approx(1)


def test_more_cannot_be_delivered_than_was_sent():
    with pytest.raises(BadInput, match=r"^delivered cells must be between 0 and the 3 sent, not 4$"):
        link_use({"local": 2, "forwarded": 1, "dummy": 0, "delivered": 4})
