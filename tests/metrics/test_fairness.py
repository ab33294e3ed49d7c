from fractions import Fraction
from math import isnan
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.metrics.fairness import distance, jain, per_node, per_node_with_detours, per_subflow, water_fill


def filled_by_hand(links, capacity):
    """Raise all rates together, exactly, and freeze the flows of each link that fills: the textbook's algorithm."""
    left, rates, active = [Fraction(c) for c in capacity], [Fraction(0)] * len(links), set(range(len(links)))
    while active:
        load = [sum(l in links[f] for f in active) for l in range(len(left))]  # noqa: E741
        step = min(left[k] / load[k] for k in range(len(left)) if load[k])
        for f in active:
            rates[f] += step
        left = [have - step * crossing for have, crossing in zip(left, load, strict=True)]
        active = {f for f in active if all(left[k] > 0 for k in links[f])}
    return rates


networks = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.sets(st.integers(0, n - 1), min_size=1, max_size=3), min_size=1, max_size=20),
        st.lists(st.integers(1, 9), min_size=n, max_size=n),
    )
)


@given(networks)
def test_water_finds_the_level_of_the_textbook(network):
    paths, capacity = network
    links = [[*path, -1, -1][:3] for path in paths]
    assert water_fill(links, capacity) == pytest.approx([float(r) for r in filled_by_hand(paths, capacity)], rel=1e-9)


pairs = st.integers(3, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.permutations(range(n)), st.permutations(range(n)), st.integers(1, n))
)


@given(pairs)
def test_shoals_rates_in_a_permutation_have_a_closed_form(drawn):
    # k pairs: [N - 1 - |(S u D) \ {s,d}| / 2] / (N - 1)
    n, senders, receivers, k = drawn
    flows = [(s, d) for s, d in zip(senders[:k], receivers[:k], strict=True) if s != d]
    if not flows:
        return
    src, dst = zip(*flows, strict=True)
    ends = set(src) | set(dst)
    expected = [(n - 1 - len(ends - {s, d}) / 2) / (n - 1) for s, d in flows]
    assert per_subflow(src, dst, n) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n, printed", [(8, 0.5714), (64, 0.5079), (128, 0.5039), (512, 0.5010)])
def test_a_full_permutation_gets_half_the_link_and_a_little(n, printed):
    rates = per_subflow(np.arange(n), (np.arange(n) + 1) % n, n)
    assert rates == pytest.approx(np.full(n, n / (2 * (n - 1))), rel=1e-12)
    assert round(rates[0], 4) == printed


def test_a_lone_flow_gets_the_whole_link_under_every_ideal_but_pays_for_nothing():
    for ideal in (per_subflow, per_node, per_node_with_detours):
        assert ideal([3], [5], 8) == pytest.approx([1.0])


def test_an_incast_shares_the_receivers_link():
    src, dst = np.arange(1, 8), np.zeros(7, int)
    assert per_node(src, dst, 8) == pytest.approx(np.full(7, 1 / 7))
    assert per_subflow(src, dst, 8).sum() == pytest.approx(1)


def test_the_packet_switch_gives_what_a_busy_neighbour_leaves():
    # 0 and 1 both send to 2; 1 also sends to 3, which nobody else wants
    assert per_node([0, 1, 1], [2, 2, 3], 4) == pytest.approx([0.5, 0.5, 0.5])
    assert per_node([0, 4, 1, 1], [2, 2, 2, 3], 5) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


@pytest.mark.parametrize("n", [3, 8, 64])
def test_detours_cost_a_full_permutation_almost_half(n):
    # a link carries its own rate once and the transit of n - 2 others, a part in n - 1 each
    rates = per_node_with_detours(np.arange(n), (np.arange(n) + 1) % n, n)
    assert rates == pytest.approx(np.full(n, (n - 1) / (2 * n - 3)))


some_pairs = st.integers(3, 10).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(1, n - 1)), min_size=1, max_size=20)
    )
)


@given(some_pairs)
def test_no_ideal_asks_more_of_a_link_than_it_has(drawn):
    n, flows = drawn
    src = np.array([s for s, _ in flows])
    dst = np.array([(s + k) % n for s, k in flows])
    for ideal in (per_subflow, per_node, per_node_with_detours):
        rates = ideal(src, dst, n)
        assert (rates > 0).all()
        assert np.bincount(src, rates).max() <= 1 + 1e-9 and np.bincount(dst, rates).max() <= 1 + 1e-9
    transit = (rates.sum() - np.bincount(src, rates, n) - np.bincount(dst, rates, n)) / (n - 1)
    out, into = np.bincount(src, rates, n) + transit, np.bincount(dst, rates, n) + transit
    full = np.r_[out, into] > 1 - 1e-9
    assert max(out.max(), into.max()) <= 1 + 1e-9
    # max-min: every pair crosses a full link, all but the one into its source and the one out of its destination
    assert all(full.sum() - full[n + s] - full[d] > 0 for s, d in zip(src, dst, strict=True))


def test_flows_of_one_pair_share_what_the_pair_gets():
    one, two = per_subflow([0, 1], [1, 2], 4), per_subflow([0, 0, 1], [1, 1, 2], 4)
    assert two == pytest.approx([one[0] / 2, one[0] / 2, one[1]])
    assert per_node_with_detours([0, 0], [1, 1], 4) == pytest.approx([0.5, 0.5])


def test_half_a_million_subflows_take_seconds():
    n = 512
    src = np.arange(2 * n) % n
    dst = (src + np.where(np.arange(2 * n) < n, 7, 1 + src * 37 % (n - 1))) % n
    began = perf_counter()
    rates = per_subflow(src, dst, n)
    assert perf_counter() - began < 10
    assert rates.min() > 0 and rates.max() <= 1


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30).filter(any))
@settings(max_examples=50)
def test_jains_index_lies_between_one_share_and_all_equal(rates):
    assert 1 / len(rates) - 1e-9 <= jain(rates) <= 1 + 1e-9


def test_jains_index_of_known_cases():
    assert jain([5, 5, 5]) == 1 and jain([7, 0, 0, 0]) == 0.25 and jain([1, 3]) == pytest.approx(0.8)
    assert isnan(jain([])) and isnan(jain([0, 0]))


def test_distance_counts_who_is_near_the_ideal():
    found = distance([1.0, 1.1, 0.5], [1.0, 1.0, 1.0])
    assert found == pytest.approx({"share_within": 2 / 3, "max": 0.5, "mean": 0.2})
    assert distance([], []) == {"share_within": None, "max": None, "mean": None}


@pytest.mark.parametrize(
    "src, dst, message",
    [
        ([0], [8], "dst must be nodes from 0 to 7, not 8"),
        ([-1], [2], "src must be nodes from 0 to 7, not -1"),
        ([3], [3], "a flow must be between two nodes, not '3 -> 3'"),
        ([0, 1], [2], "src and dst must be of one length, not (2, 1)"),
    ],
)
def test_impossible_pairs_get_a_sentence(src, dst, message):
    with pytest.raises(BadInput) as found:
        per_subflow(src, dst, 8)
    assert str(found.value) == message
