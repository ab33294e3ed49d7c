"""Kernel and twin move the same cells, on random small racks. `make twins` runs this with bounds checking on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import fingerprint
from weft.errors import BadInput
from weft.fabrics.shoal import arrays, kernel, released
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.reference import ReferenceRack, ReleasedRack
from weft.schedule.rotation import rounds

SHARING = st.sampled_from(["round-robin", "shortest"])


def flows_among(n, most=20, cells=40, latest=200):
    pair = st.tuples(st.integers(0, n - 1), st.integers(1, n - 1)).map(lambda p: (p[0], (p[0] + p[1]) % n))
    flow = st.tuples(pair, st.integers(1, cells), st.just(0) | st.integers(0, latest))
    return st.lists(flow.map(lambda f: (*f[0], f[1], f[2])), min_size=1, max_size=most).map(
        lambda flows: sorted(flows, key=lambda f: f[3])
    )


@st.composite
def racks(draw):
    n = draw(st.integers(2, 11))
    delay = draw(st.sampled_from([0, 0, 0, 1, 2, 5]))
    schedule = rounds(
        n, draw(st.integers(1, min(4, n - 1))), delay, draw(st.sampled_from(["auto", "rotation", "mirrored"]))
    )
    options = dict(
        delay=delay,
        rules=draw(st.sampled_from(["paper", "paper", "literal"])),
        ready_queues=draw(st.booleans()),
        age_interval=draw(st.sampled_from([schedule.slots, 0, 3])),
        sharing=draw(SHARING),
        feedback=draw(st.sampled_from([2, 1, 3])),
    )
    return schedule, draw(flows_among(n)), options


def drive(layout, advance, plan, budget=1 << 40, until=1 << 50):
    """Run to the end, or to slot `until`, in strides of `budget`, growing what runs out."""
    state = layout.make_state(plan)
    while (why := advance(plan, state, until, budget)) not in (col.DONE, col.REACHED):
        if why != col.SPENT:
            state = layout.grow(state, why)
    return state


def columns(flows):
    return [[flow[k] for flow in flows] for k in range(4)]


@settings(max_examples=120, deadline=None)
@given(racks(), st.sampled_from([1 << 40, 7]))
def test_the_kernel_moves_the_same_cells_as_the_reference(rack, budget):
    schedule, flows, options = rack
    twin = ReferenceRack(schedule, flows, **options).run()
    state = drive(arrays, kernel.advance, arrays.make_plan(schedule, *columns(flows), **options), budget)
    tally = state.tally
    assert fingerprint.show(state.print) == str(twin.fingerprint)
    assert state.flow[:, col.FINISH].tolist() == twin.finish
    assert state.departed.tolist() == twin.departed
    assert tally[[col.LOCAL, col.FORWARDED, col.DELIVERED]].tolist() == [
        twin.cells["local"], twin.cells["forwarded"], twin.cells["delivered"]
    ]  # fmt: skip
    assert tally[[col.MAX_QUEUE, col.MAX_NODE, col.MAX_HELD]].tolist() == [
        twin.max_queue, twin.max_node, twin.max_held
    ]  # fmt: skip
    if options["rules"] == "paper":
        assert twin.broken == {"subflow": 0, "bound": 0} and tally[col.OVER_BOUND] == 0
    else:
        assert tally[col.OVER_SUBFLOW] == twin.broken["subflow"]


def agree(schedule, flows, **options):
    """The kernel's state at the end, which is the twin's."""
    options = dict(delay=0, rules="paper", ready_queues=True, age_interval=0, sharing="round-robin") | options
    twin = ReferenceRack(schedule, flows, **options).run()
    state = drive(arrays, kernel.advance, arrays.make_plan(schedule, *columns(flows), **options))
    assert fingerprint.show(state.print) == str(twin.fingerprint)
    assert state.flow[:, col.FINISH].tolist() == twin.finish
    assert state.departed.tolist() == twin.departed
    return state


def test_pairs_that_rest_may_take_more_seats_than_a_node_has_peers():
    flows = [(0, d, 1, slot) for slot in range(0, 400, 8) for d in range(1, 16)]
    state = agree(rounds(16, 4), flows)
    assert state.block.shape[1] > 2  # a table for 15 peers has two blocks of seats, and was made larger


@pytest.mark.long
@pytest.mark.parametrize("ready_queues", [True, False])
def test_a_node_with_more_than_64_pairs_serves_them_all_in_turn(ready_queues):
    """Their seats take two words; the word of the turn is looked at twice, its end first."""
    flows = [(0, d, 3, 0) for d in range(1, 80)] + [(i, 0, 2, 5) for i in range(1, 30)]
    state = agree(rounds(80, 2), flows, ready_queues=ready_queues)
    assert state.tally[col.FINISHED] == len(flows) and state.block.shape[1] > 8


def test_more_subflows_than_can_be_counted_are_refused():
    plan = arrays.make_plan(rounds(8), *columns([(0, 1, 1, 0)]), delay=0, rules="paper", ready_queues=True,
                            age_interval=0, sharing="round-robin")  # fmt: skip
    with pytest.raises(BadInput) as refusal:
        arrays.shapes(plan, pairs=1 << 29, cells=64)
    assert str(refusal.value) == "node pairs at work x nodes must be fewer than 4294967296, not 6442450944"


def test_queues_of_any_length_keep_their_order():
    """An incast: queues outgrow what lies in their own cache line."""
    flows = [(i, 0, 60, 0) for i in range(1, 12)] + [(1, i, 30, 7) for i in range(2, 12)]
    state = agree(rounds(12, 2), flows)
    assert state.tally[col.MAX_QUEUE] > 4


def test_the_monitor_reads_queues_of_any_length():
    flows = [(i, 0, 60, 0) for i in range(1, 24)]
    options = dict(delay=0, rules="paper", ready_queues=True, age_interval=0, sharing="round-robin")
    plan = arrays.make_plan(rounds(24, 2), *columns(flows), **options)
    state = drive(arrays, kernel.advance, plan, until=200)
    long = np.flatnonzero(state.held & kernel.LENGTH > plan.numbers[col.DEPTH] + 1)
    assert len(long) and tuple(kernel.inspect(plan, state)) == (0, 0)
    state.spill[2 * long[0] + 1] += 1  # where the end of such a queue lies
    assert kernel.inspect(plan, state)[1] > 0


def test_tables_that_are_too_small_grow_and_move_the_same_cells(monkeypatch):
    monkeypatch.setattr(arrays, "first_room", lambda plan: (2 * kernel.SEATS, 64))
    monkeypatch.setattr(arrays.shapes, "__defaults__", (64,))  # of cells out of order
    flows = [(0, 1, 400, 0)] + [(i, 1, 90, 0) for i in range(2, 30)] + [(i, i ^ 3, 1, 40 * i) for i in range(30)]
    state = agree(rounds(32, 2), flows)
    assert state.early.shape[1] > 1 and len(state.target) > 2 * kernel.SEATS and len(state.cell) > 64


def test_a_cell_that_left_an_epoch_ago_is_not_counted_again():
    """On the link that is its own mirror what left just now counts as ahead; of an idle node nothing did."""
    state = agree(rounds(4), [(1, 3, 4, 8), (0, 3, 2, 9), (0, 3, 3, 15)])
    assert state.flow[:, col.FINISH].tolist() == [14, 15, 18]


@pytest.mark.parametrize(
    "flows",
    [
        [(0, 1, 1, 0), (0, 2, 1, 0), (3, 1, 6, 21)],
        [(0, 2, 1, 1), (0, 3, 1, 1), (1, 2, 6, 22)],
        [(0, 3, 1, 2), (0, 4, 1, 2), (1, 3, 6, 23)],
    ],
)
def test_flows_that_were_ready_before_a_rack_was_quiet_are_not_reported_after_it(flows):
    """Two direct cells leave node 0, the second flow still counted on the first's link; then a cell goes over it."""
    agree(rounds(5), flows)


@pytest.mark.parametrize("delay", [0, 3])
def test_epochs_are_counted_anew_without_a_trace(delay):
    """More epochs than 16 bits hold, with cells and feedback under way in all of them."""
    schedule = rounds(3, 2, delay)
    flows = [(0, 1, 40_000, 0), (2, 1, 40_000, 0), (1, 0, 10, 39_990)]
    state = agree(schedule, flows, delay=delay)
    assert state.tally[col.BASE] > 1 << 15 and state.tally[col.SLOT] // schedule.slots > 1 << 15


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 11), SHARING)
def test_the_released_kernel_moves_the_same_cells_as_its_reference(data, n, sharing):
    flows = data.draw(flows_among(n))
    interval = data.draw(st.sampled_from([0, n - 1, 3]))
    feedback = data.draw(st.sampled_from([2, 1]))
    twin = ReleasedRack(n, flows, age_interval=interval, sharing=sharing, feedback=feedback).run()
    plan = arrays.make_plan(
        rounds(n), *columns(flows), delay=0, rules="released", ready_queues=True, age_interval=interval,
        sharing=sharing, feedback=feedback,
    )  # fmt: skip
    state = drive(released, released.advance, plan)
    assert fingerprint.show(state.print) == str(twin.fingerprint)
    assert state.flow[:, col.FINISH].tolist() == twin.finish
    assert state.departed.tolist() == twin.departed
    assert state.tally[col.OVER_SUBFLOW] == 0
