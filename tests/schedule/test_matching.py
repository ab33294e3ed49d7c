"""Matchings: worked examples from the literature, SciPy as oracle, and what holds for every algorithm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from weft.errors import BadInput
from weft.schedule.matching import ALGORITHMS, Queue, at_or_after, scheduler, stable

ONE_TO_ONE = [name for name in ALGORITHMS if name != "eslip"]
lengths = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 5), min_size=n, max_size=n), min_size=n, max_size=n)
)


def waiting(matrix, ages=None):
    """A matrix of queue lengths as a scheduler sees it."""
    return [
        {j: Queue(length, ages[i][j] if ages else 0) for j, length in enumerate(row) if length}
        for i, row in enumerate(matrix)
    ]


def everywhere(n):
    return waiting([[1] * n for _ in range(n)])


@pytest.mark.parametrize("name", ONE_TO_ONE)
@given(matrix=lengths, iterations=st.integers(1, 4), slot=st.integers(0, 50))
@settings(max_examples=40, deadline=None)
def test_every_slot_is_a_matching_of_requests(name, matrix, iterations, slot):
    pairs = scheduler(name, len(matrix), iterations, seed=3).match(waiting(matrix), slot)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert all(matrix[i][j] for i, j in pairs)
    assert pairs == sorted(pairs)


@pytest.mark.parametrize("name", ["islip", "rrm", "pim", "drrm", "lqf", "ocf", "wavefront", "mwm", "msm"])
@given(matrix=lengths, slot=st.integers(0, 50))
@settings(max_examples=40, deadline=None)
def test_with_enough_iterations_nobody_could_be_added(name, matrix, slot):
    n = len(matrix)
    pairs = scheduler(name, n, n, seed=3).match(waiting(matrix), slot)
    inputs, outputs = {i for i, _ in pairs}, {j for _, j in pairs}
    assert not any(matrix[i][j] for i in set(range(n)) - inputs for j in set(range(n)) - outputs)


@given(matrix=lengths, slot=st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_maximum_weight_is_what_scipy_finds(matrix, slot):
    weight = np.array(matrix)
    pairs = scheduler("mwm", len(matrix)).match(waiting(matrix), slot)
    rows, columns = linear_sum_assignment(weight, maximize=True)
    assert sum(weight[i, j] for i, j in pairs) == weight[rows, columns].sum()


@given(matrix=lengths, slot=st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_maximum_size_is_what_scipy_finds(matrix, slot):
    most = maximum_bipartite_matching(csr_matrix(np.array(matrix) > 0), perm_type="column")
    assert len(scheduler("msm", len(matrix)).match(waiting(matrix), slot)) == (most >= 0).sum()


def test_islip_desynchronises_in_n_slots_when_every_queue_has_cells():
    n = 8
    islip = scheduler("islip", n)
    sizes = [len(islip.match(everywhere(n), slot)) for slot in range(3 * n)]
    assert sizes[0] == 1  # all grant input 0
    assert sizes[n:] == [n] * (2 * n)


def test_rrm_pointers_stay_in_step_when_every_queue_has_cells():
    """McKeown 1999, section II: with two ports RRM serves half of what iSLIP does."""
    rrm, islip = scheduler("rrm", 2), scheduler("islip", 2)
    assert sum(len(rrm.match(everywhere(2), slot)) for slot in range(100)) == 100
    assert sum(len(islip.match(everywhere(2), slot)) for slot in range(100)) == 199


def test_islip_moves_pointers_only_on_a_match_of_the_first_iteration():
    islip = scheduler("islip", 4, iterations=2)
    # outputs 0 and 1 both grant input 0; it takes 0, and output 1 finds input 1 in the second iteration
    pairs = islip.match(waiting([[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]), 0)
    assert pairs == [(0, 0), (1, 1)]
    assert islip.grants == [1, 0, 0, 0]
    assert islip.accepts == [1, 0, 0, 0]
    assert islip.used == 2


def test_drrm_asks_one_output_per_input():
    drrm = scheduler("drrm", 4)
    assert drrm.match(everywhere(4), 0) == [(0, 0)]
    assert drrm.asks == [1, 0, 0, 0] and drrm.grants == [1, 0, 0, 0]


def test_wavefront_starts_on_the_diagonal_of_the_slot():
    assert scheduler("wavefront", 3).match(everywhere(3), 1) == [(0, 1), (1, 0), (2, 2)]


def test_lqf_takes_the_longest_queue_and_ocf_the_oldest_cell():
    matrix, ages = [[5, 0], [2, 0]], [[1, 0], [9, 0]]
    assert scheduler("lqf", 2).match(waiting(matrix, ages), 0) == [(0, 0)]
    assert scheduler("ocf", 2).match(waiting(matrix, ages), 0) == [(1, 0)]


def test_pim_is_fair_between_two_inputs():
    wins = [scheduler("pim", 2, seed=seed).match(waiting([[1, 0], [1, 0]]), 0)[0][0] for seed in range(400)]
    assert 160 < sum(wins) < 240


def test_eslip_serves_the_first_input_whole_and_splits_the_others():
    eslip = scheduler("eslip", 4)
    cells = waiting([[0, 1, 1, 0], [1, 1, 0, 0], [0] * 4, [0] * 4])
    assert eslip.match(cells, 0) == [(1, 0), (0, 1), (0, 2)]
    assert eslip.match(cells, 1) == [(1, 0), (1, 1), (0, 2)]


@given(st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), *[st.permutations(range(n * n))] * 2)))
@settings(max_examples=60, deadline=None)
def test_no_output_and_input_would_rather_have_each_other(case):
    n, order, ranks = case
    cells = [(k % n, k // n) for k in order]  # (input, output), most urgent first
    place = dict(zip(cells, ranks, strict=True))
    urgent = {j: [cell for cell in cells if cell[1] == j] for j in range(n)}
    held = stable(urgent, place.__getitem__)
    for j, wanted in urgent.items():
        for cell in wanted:
            if cell == held.get(j):
                break
            rival = next((other for other in held.values() if other[0] == cell[0]), None)
            assert rival is not None and place[rival] < place[cell]


def test_the_first_at_or_after_goes_around():
    assert at_or_after(2, {0, 1, 3}) == 3
    assert at_or_after(2, {0, 1}) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: scheduler("slip", 4), "a scheduler must be one of islip, rrm, pim, drrm, wavefront, lqf, ocf, mwm, "
         "msm, eslip, not 'slip'"),
        (lambda: scheduler("islip", 1), "ports must be at least 2, not 1"),
        (lambda: scheduler("islip", 4, 0), "iterations must be at least 1, not 0"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, message):
    with pytest.raises(BadInput) as raised:
        make()
    assert str(raised.value) == message
