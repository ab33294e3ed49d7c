"""Cell traffic: that the drawn cells have the rates that were asked for, and that bad input is named."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.workload.traffic import (
    ONE,
    TRAFFIC,
    Bernoulli,
    Diagonal,
    HotOutput,
    LogDiagonal,
    Multicast,
    OnOff,
    Unbalanced,
    alias,
)

N, SLOTS = 4, 20_000


def rates(traffic):
    """(n, n) cells per slot from every input to every output."""
    count = np.zeros((N, N))
    for came in traffic.draw(nodes=N, seed=5).arrivals():
        for i, outputs in came:
            for j in outputs:
                count[i, j] += 1
    return count / traffic.slots


@pytest.mark.parametrize(
    ("traffic", "row"),
    [
        (Bernoulli(load=0.8, slots=SLOTS), [0.2, 0.2, 0.2, 0.2]),
        (Bernoulli(load=2.4, slots=SLOTS), [0.6, 0.6, 0.6, 0.6]),
        (Diagonal(load=0.9, slots=SLOTS), [0, 0.6, 0.3, 0]),
        (LogDiagonal(load=0.75, slots=SLOTS), [0.05, 0.4, 0.2, 0.1]),
        (HotOutput(load=0.8, hot=0.5, slots=SLOTS), [0.5, 0.1, 0.1, 0.1]),
        (Unbalanced(load=0.8, w=0.5, slots=SLOTS), [0.1, 0.5, 0.1, 0.1]),
        (OnOff(load=0.8, burst=4, slots=4 * SLOTS), [0.2, 0.2, 0.2, 0.2]),
        (Multicast(load=0.8, fanout=3, slots=SLOTS), [0.2, 0.2, 0.2, 0.2]),
    ],
)
def test_input_1_sends_at_the_rates_asked_for(traffic, row):
    assert rates(traffic)[1] == pytest.approx(row, abs=0.03)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=12).filter(any))
@settings(deadline=None)
def test_alias_tables_give_the_weights_back_exactly(weights):
    n, total = len(weights), sum(weights)
    keep, other = alias([Fraction(w) for w in weights])
    got = [Fraction(0)] * n
    for k in range(n):
        whole = ONE if other[k] == k else keep[k]
        got[k] += Fraction(whole, n * ONE)
        got[other[k]] += Fraction(ONE - whole, n * ONE)
    assert all(abs(g - Fraction(w, total)) <= Fraction(n, n * ONE) for g, w in zip(got, weights, strict=True))


def test_bursts_have_the_mean_length_asked_for_and_stay_with_one_output():
    runs, last = [], {}
    for slot, came in enumerate(OnOff(load=0.3, burst=8, slots=60_000).draw(nodes=N, seed=2).arrivals()):
        for i, (j,) in came:
            if last.get(i, (None, None))[0] == slot - 1 and last[i][1] == j:
                runs[last[i][2]] += 1
            else:
                runs.append(1)
                last[i] = (slot, j, len(runs) - 1)
            last[i] = (slot, j, last[i][2])
    # two bursts for one output back to back look like one: with load 0.3 that is one in 4 / 0.05
    assert np.mean(runs) == pytest.approx(8, rel=0.05)


def test_a_multicast_cell_is_for_one_to_fanout_outputs_alike():
    sizes = Counter(
        len(outputs)
        for came in Multicast(load=0.9, fanout=3, slots=8000).draw(nodes=N, seed=1).arrivals()
        for _, outputs in came
    )
    assert sorted(sizes) == [1, 2, 3]
    assert max(sizes.values()) < 1.1 * min(sizes.values())


def test_the_same_seed_draws_the_same_cells_and_a_longer_run_begins_with_them():
    short, long = (Bernoulli(load=0.5, slots=slots).draw(nodes=8, seed=7) for slots in (20, 40))
    assert list(short.arrivals()) == list(long.arrivals())[:20]
    assert list(short.arrivals()) != list(Bernoulli(load=0.5, slots=20).draw(nodes=8, seed=8).arrivals())
    assert next(iter(short.arrivals()))[:2] == [(0, (1,)), (3, (2,))]  # on any machine


@pytest.mark.parametrize(
    ("traffic", "note"),
    [
        (Bernoulli(load=1.2), "a load of 1.2 is overload: a line carries at most one cell per slot"),
        (HotOutput(load=0.9, hot=0.5), "output 0 is offered 2.25 cells per slot, which is overload"),
        (Multicast(load=1.5), "outputs are offered 1.5 copies per slot, which is overload"),
    ],
)
def test_overload_is_allowed_and_said_to_be_overload(traffic, note):
    assert traffic.draw(nodes=4).notes == (note,)


def test_no_overload_is_claimed_where_there_is_none():
    assert all(kind(load=0.99).draw(nodes=8).notes == () for kind in TRAFFIC.values() if kind is not HotOutput)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli(load=-0.1), "load must be from 0 to 1048575, not -0.1"),
        (lambda: Bernoulli(load=float("nan")), "load must be from 0 to 1048575, not nan"),
        (lambda: Bernoulli(load=0.5, slots=0), "slots must be from 1 to 2147483647, not 0"),
        (lambda: Bernoulli(load=0.5, slots=10, warmup=10), "warmup must be from 0 to 9, not 10"),
        (lambda: Unbalanced(load=0.5, w=1.5), "w must be from 0 to 1, not 1.5"),
        (lambda: HotOutput(load=0.5, hot=2), "hot must be from 0 to 1, not 2"),
        (lambda: HotOutput(load=0.5, output=9).draw(nodes=4), "output must be an output from 0 to 3, not 9"),
        (lambda: OnOff(load=1.1),
         "load must be at most 1 in bursts, whose cells follow each other on one line, not 1.1"),
        (lambda: OnOff(load=0.5, burst=0.5), "burst must be from 1 to 1000000 cells, not 0.5"),
        (lambda: Multicast(load=0.5, fanout=1), "fanout must be at least 2, not 1"),
        (lambda: Multicast(load=0.5, fanout=9).draw(nodes=4), "fanout must be at most 4, the number of outputs, not 9"),
        (lambda: Multicast(load=2, fanout=2),
         "load must be at most 1.5 (one cell per line and slot) at this fanout, not 2"),
        (lambda: Bernoulli(load=0.5).draw(nodes=1), "nodes must be at least 2, not 1"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, message):
    with pytest.raises(BadInput) as raised:
        make()
    assert str(raised.value) == message
