"""Every part of the fast kernel's layout, blocks of seats, rings, spilled lists and windows, used and compared."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fabrics.shoal.test_twins import SHARING, agree, flows_among
from weft.fabrics.shoal import arrays, kernel
from weft.fabrics.shoal import columns as col
from weft.schedule.rotation import rounds


@pytest.fixture
def cramped(monkeypatch):
    """Little room at first, so that pairs, cells and windows have to grow."""
    monkeypatch.setattr(arrays, "WINDOW", 64)
    monkeypatch.setattr(arrays, "first_room", lambda plan: (2 * kernel.SEATS, 64))


@pytest.mark.parametrize("delay", [0, 5])
def test_a_crowded_rack_uses_all_of_it_and_moves_the_same_cells(delay, cramped):
    """One node sends to all, most send to one, and pairs come and go."""
    n, channels = 70, 4
    flows = [(0, d, 4, 0) for d in range(1, n)]
    flows += [(i, 1, 150 if i == 2 else 12, 2) for i in range(2, 40)]
    flows += [(3, d, 1, slot) for slot in (60, 120) for d in range(4, 24)]
    schedule = rounds(n, channels, delay)
    first = arrays.make_plan(
        schedule, [0], [1], [1], [0], delay=delay, rules="paper", ready_queues=True, age_interval=0,
        sharing="round-robin",
    )  # fmt: skip
    pairs, cells = arrays.first_room(first)
    state = agree(schedule, sorted(flows, key=lambda f: f[3]), delay=delay)
    tally, held = state.tally, state.held.astype(np.int64)
    assert tally[col.FINISHED] == len(flows)
    assert state.block.shape[1] * kernel.SEATS > 64  # seats in a second word
    assert tally[col.MAX_QUEUE] > 2 * first.numbers[col.DEPTH]  # queues that spill
    assert (held >> kernel.HEAD_SHIFT).any()  # rings that wrapped
    assert (state.turn > 64).any()  # a round robin that went on in the second word
    assert tally[col.IDLE] > 0  # blocks that were given back
    assert len(state.target) > pairs and len(state.free) > cells and state.early.shape[1] > 1  # all grew


@st.composite
def crowds(draw):
    """A rack of more than 64 nodes in which some nodes send to nearly all, and some hear from nearly all."""
    n = draw(st.integers(65, 72))
    delay = draw(st.sampled_from([0, 0, 3]))
    schedule = rounds(n, draw(st.integers(2, 5)), delay)
    hub, sink = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
    flows = [(hub, d, draw(st.integers(1, 2)), 0) for d in range(n) if d != hub]
    flows += [(i, sink, draw(st.integers(1, 8)), draw(st.integers(0, 9))) for i in range(0, n, 2) if i != sink]
    flows += draw(flows_among(n, most=10, cells=30, latest=60))
    options = dict(delay=delay, ready_queues=draw(st.booleans()), age_interval=draw(st.sampled_from([0, 3, 16])))
    return schedule, sorted(flows, key=lambda f: f[3]), options | {"sharing": draw(SHARING)}


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(crowds(), st.sampled_from(["paper", "literal"]))
def test_racks_beyond_one_word_of_nodes_and_seats_agree_with_their_twin(rack, rules):
    schedule, flows, options = rack
    state = agree(schedule, flows, rules=rules, **options)
    assert state.block.shape[1] * kernel.SEATS > 64


@settings(max_examples=25, deadline=None, phases=[Phase.generate])
@given(st.data(), st.integers(3, 12), st.booleans(), SHARING)
def test_queues_with_room_for_one_cell_in_their_line_agree_too(data, n, ready_queues, sharing):
    """That is the layout of racks beyond 4,096 nodes, where memory counts more."""
    wide, arrays.WIDE = arrays.WIDE, 2
    try:
        flows = data.draw(flows_among(n))
        agree(rounds(n, min(2, n - 1)), flows, ready_queues=ready_queues, sharing=sharing)
    finally:
        arrays.WIDE = wide
