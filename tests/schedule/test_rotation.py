import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.schedule.rotation import rounds

orders = st.sampled_from(["auto", "rotation", "mirrored"])


@st.composite
def schedules(draw):
    nodes = draw(st.integers(2, 40))
    return rounds(nodes, draw(st.integers(1, min(nodes - 1, 6))), draw(st.integers(0, 6)), draw(orders))


@given(schedules())
def test_everybody_faces_everybody_once_an_epoch(schedule):
    n = schedule.nodes
    seen = np.zeros((n, n), int)
    for row in schedule.peers().reshape(-1, n):
        sends = row >= 0
        assert len(set(row[sends])) == sends.sum()  # nobody receives twice in a place
        seen[np.flatnonzero(sends), row[sends]] += 1
    np.testing.assert_array_equal(seen, 1 - np.eye(n, dtype=int))


@given(schedules())
def test_where_and_mirror_agree_with_the_table(schedule):
    mirror = schedule.mirror()
    for p, row in enumerate(schedule.peers().reshape(-1, schedule.nodes)):
        for i, j in enumerate(row):
            if j >= 0:
                assert schedule.where(i, j) == p
                assert schedule.where(j, i) == mirror[p]


def test_the_eight_node_rotation_is_that_of_figure_3():
    table = rounds(8).peers()[:, 0, :]
    np.testing.assert_array_equal(table, [[(i + t) % 8 for i in range(8)] for t in range(1, 8)])


@pytest.mark.parametrize("nodes", [5, 7, 9, 511])
def test_mirrored_odd_racks_keep_the_two_directions_half_an_epoch_apart(nodes):
    schedule = rounds(nodes, delay=1)
    assert (schedule.order, schedule.slots, schedule.gap()) == ("mirrored", nodes - 1, (nodes - 1) // 2)


@pytest.mark.parametrize("nodes", [4, 8, 64, 512])
def test_mirrored_even_racks_pay_one_empty_place_per_node(nodes):
    schedule = rounds(nodes, delay=1)
    assert (schedule.slots, schedule.gap()) == (nodes, nodes // 2)
    assert ((schedule.peers() < 0).sum(axis=(0, 1)) == 1).all()


def test_a_delay_that_no_order_can_hide_leaves_the_rotation():
    assert rounds(8, delay=3).order == "mirrored"
    assert rounds(8, delay=20).order == "rotation"


def test_epochs_are_padded_to_whole_slots():
    schedule = rounds(512, 4)
    assert schedule.slots == 128 and len(schedule.shift) == 512 and schedule.shift[-1] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 1}, "nodes must be at least 2, not 1"),
        ({"nodes": 4, "channels": 4}, "channels must be between 1 and nodes - 1 = 3, not 4"),
        ({"nodes": 4, "delay": -1}, "delay must be zero or more slots, not -1"),
        ({"nodes": 4, "order": "random"}, "schedule must be auto, rotation or mirrored, not 'random'"),
    ],
)
def test_what_cannot_be_scheduled_is_named(arguments, message):
    with pytest.raises(BadInput) as raised:
        rounds(**arguments)
    assert str(raised.value) == message
