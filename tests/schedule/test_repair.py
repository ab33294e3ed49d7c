"""Schedules without the dead: who is left meets everyone once an epoch, over what is left, in few slots."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schedule.failing import failing_racks, hit, walk
from weft.errors import BadInput, ScheduleConflict
from weft.random import key, permutation
from weft.schedule.decompose import NOBODY, colour
from weft.schedule.outage import plan
from weft.schedule.repair import check, repair, spread
from weft.schedule.rotation import rounds


def repaired(nodes, ports, text, channels=1, **options):
    schedule = rounds(nodes, channels)
    return repair(schedule, plan(text, schedule, ports), ports, **options)


@settings(max_examples=60, deadline=None)
@given(failing_racks())
def test_no_cell_crosses_what_is_dead_and_all_survivors_meet_once(rack):
    schedule, outages, ports = rack
    try:
        made = repair(schedule, outages, ports)
    except BadInput:
        assume(False)
    met = Counter()
    for t in range(made.slots):
        for plane in range(schedule.channels):
            for i in np.flatnonzero(made.circuits.peers[t, plane] != NOBODY):
                crossed = walk(made.circuits, t, plane, int(i))
                assert not any(hit(outage, plane, crossed) for outage in outages)
                met[int(i), crossed[-1][1][0]] += 1
    ids = made.survivors.tolist()
    assert met == Counter((i, j) for i in ids for j in ids if i != j)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.data())
def test_an_epoch_is_no_longer_than_the_fullest_leaf_needs(half, data):
    ports, nodes = 2 * half, data.draw(st.integers(half + 1, 2 * half * half))
    schedule = rounds(nodes)
    spines = plan("spine 0", schedule, ports)
    dead = data.draw(st.lists(st.integers(0, nodes - 1), unique=True, max_size=nodes - 2))
    text = ", ".join(["spine 0", *(f"node {i}" for i in dead)])
    try:
        made = repair(schedule, plan(text, schedule, ports), ports)
    except BadInput:
        assume(False)
    alive = made.survivors
    fullest = np.bincount(alive // half).max()
    uplinks = len(made.pools[0])
    assert spines and made.slots == max(len(alive) - 1, -(-int(fullest) * (len(alive) - 1) // uplinks))


def test_dead_nodes_leave_a_smaller_rack():
    made = repaired(8, 4, "nodes 1 4 6")
    assert made.survivors.tolist() == [0, 2, 3, 5, 7]
    assert made.slots == 4 and made.after == 1.0
    assert made.before == pytest.approx(4 / 7)
    np.testing.assert_array_equal(made.circuits.peers[0, 0], [2, NOBODY, 3, 5, NOBODY, 7, NOBODY, 0])
    np.testing.assert_array_equal(made.rounds.peers(), rounds(5).peers())


def test_a_dead_spine_costs_its_share_and_not_twice_it():
    made = repaired(32, 8, "spine 2")
    assert made.pools == ((0, 1, 3),) and made.rounds is None
    assert made.slots == 42  # four nodes of a leaf over three uplinks: 31 * 4 / 3, rounded up
    assert made.before == pytest.approx(1 - 0.4435, abs=1e-4)  # Table 1, unused
    assert made.after == pytest.approx(31 / 42)


def test_a_dead_uplink_is_better_left_alone():
    made = repaired(32, 8, "uplink 3.1")
    assert made.pools == ((0, 2, 3),)
    assert made.after < 0.75 < 0.89 < made.before


def test_a_plane_that_lost_a_spine_takes_fewer_of_the_rounds():
    made = repaired(32, 8, "plane 0 spine 0", channels=2)
    lit = (made.circuits.peers != NOBODY).sum(axis=(0, 2))
    assert lit.tolist() == [13 * 32, 18 * 32] and made.slots == 18


def test_who_lost_a_leaf_or_link_in_one_plane_is_left_out_of_all():
    assert repaired(8, 4, "plane 1 leaf 0, plane 0 link 7", channels=2).survivors.tolist() == [2, 3, 4, 5, 6]


def test_two_survivors_use_one_plane_of_many():
    made = repaired(8, 4, "nodes 0 1 2 3 4 5", channels=3)
    assert made.slots == 1 and (made.circuits.peers != NOBODY).sum() == 2


def circuits(table):
    return Counter((i, int(j)) for row in table for i, j in enumerate(row) if j != NOBODY)


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 8), st.integers(0, 2**32))
def test_spreading_moves_circuits_but_makes_and_loses_none(half, ends, rows, seed):
    n = half * ends
    leaves = np.arange(n) // half
    table = np.array([permutation(key(seed, t), n) for t in range(rows)])
    most = max(1, half - 1)
    slots = -(-rows * half // most)
    padded = np.concatenate([table, np.full((slots - rows, n), NOBODY)])
    out = spread(padded, leaves, most)
    assert circuits(padded) == circuits(out)
    for row in out:
        i = np.flatnonzero(row != NOBODY)
        assert len(set(row[i])) == len(i)
        assert max(Counter(leaves[i]).values(), default=0) <= most
        assert max(Counter(leaves[row[i]]).values(), default=0) <= most


def test_spreading_over_too_few_slots_is_refused():
    with pytest.raises(ScheduleConflict) as error:
        spread(np.array([[1, 0], [1, 0]]), np.array([0, 0]), 1)
    assert str(error.value) == "leaf 0 must have room for all its circuits in 2 slots, not less"


@given(st.integers(2, 5), st.integers(0, 2**32))
def test_circuits_are_coloured_from_the_uplinks_that_are_left(half, seed):
    n, pool = 2 * half * half, tuple(range(1, half))
    peers = permutation(key(seed, 1), n).astype(np.int32)
    peers = spread(np.stack([peers, np.full(n, NOBODY, np.int32)]), np.arange(n) // half, half - 1)[0]
    uplinks = colour(peers, half, pool)
    i = np.flatnonzero(peers != NOBODY)
    assert set(uplinks[i]) <= set(pool)
    assert len(set(zip(i // half, uplinks[i], strict=True))) == len(i)
    assert len(set(zip(peers[i] // half, uplinks[i], strict=True))) == len(i)


def test_a_schedule_over_a_dead_uplink_is_found():
    made = repaired(8, 4, "node 3")
    with pytest.raises(ScheduleConflict) as error:
        check(replace(made, pools=((0,),)))
    assert str(error.value) == "node 0 must not send over a dead uplink, as it does in slot 0"


def test_a_schedule_that_forgets_somebody_is_found():
    made = repaired(8, 4, "node 3")
    with pytest.raises(ScheduleConflict) as error:
        check(replace(made, survivors=np.arange(8)))
    assert str(error.value) == "node 0 must face node 3 1 times an epoch, not 0"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes 0 1 2 3 4 5 6", "a schedule must have at least 2 nodes left, not 1"),
        ("leaves 100%", "a schedule must have at least 2 nodes left, not 0"),
        ("spines 0 1", "a schedule must have at least 1 spine left to go through, not 0"),
    ],
)
def test_what_cannot_be_repaired_is_refused(text, sentence):
    with pytest.raises(BadInput) as error:
        repaired(8, 4, text)
    assert str(error.value) == sentence
