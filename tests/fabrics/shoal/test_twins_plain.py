"""Kernel and twin lose, repeat and deliver the same cells when things go wrong. `make twins` checks every index."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrics.shoal.test_twins import SHARING, columns, drive, flows_among
from weft.engine import fingerprint
from weft.fabrics.shoal import arrays, kernel
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.fabrics.shoal.plain import kernel as plain
from weft.fabrics.shoal.plain.reference import CAUSES, Change, PlainRack
from weft.schedule.outage import pack
from weft.schedule.rotation import rounds

LONG = 900  # slots in which any of these racks has come to rest


def as_faults(schedule, changes):
    """The arrays that say what `changes` say."""
    changes = [Change(), *changes]
    n, w = schedule.nodes, len(schedule.shift)
    cut, dead, off = np.zeros((len(changes), w, n), bool), *np.zeros((2, len(changes), n), bool)
    for x, change in enumerate(changes):
        for i, j in change.cut:
            cut[x, schedule.where(i, j), i] = True
        dead[x, list(change.dead)] = True
        off[x, list(change.off)] = True
    if len(changes) > 1 and changes[1].slot == 0:
        changes, cut, dead, off = changes[1:], cut[1:], dead[1:], off[1:]
    slots = np.array([change.slot for change in changes], np.int64)
    return plain_arrays.merge(schedule, (slots, pack(cut), pack(dead)), (slots, pack(off)))


def links_among(n):
    return st.tuples(st.integers(0, n - 1), st.integers(1, n - 1)).map(lambda p: (p[0], (p[0] + p[1]) % n))


@st.composite
def changes_among(draw, n, clocks=False, most=4):
    """What breaks when: links in one direction or both, and nodes."""
    out = []
    for slot in sorted(draw(st.sets(st.integers(0, 150), max_size=most))):
        links = draw(st.frozensets(links_among(n), max_size=4))
        if draw(st.booleans()):
            links |= {(j, i) for i, j in links}
        dead = draw(st.frozensets(st.integers(0, n - 1), max_size=2))
        off = draw(st.frozensets(st.integers(0, n - 1), max_size=2)) if clocks else frozenset()
        out.append(Change(slot, links, dead, off))
    return out


def only_worse(changes):
    """The same without repair."""
    out, cut, dead = [], frozenset(), frozenset()
    for change in changes:
        cut, dead = cut | change.cut, dead | change.dead
        out.append(Change(change.slot, cut, dead, change.off))
    return out


@st.composite
def racks(draw):
    n = draw(st.integers(2, 9))
    delay = draw(st.sampled_from([0, 0, 0, 1, 2, 5, 17]))
    schedule = rounds(
        n, draw(st.integers(1, min(4, n - 1))), delay, draw(st.sampled_from(["auto", "rotation", "mirrored"]))
    )
    options = dict(
        delay=delay,
        ready_queues=draw(st.booleans()),
        age_interval=draw(st.sampled_from([schedule.slots, 0, 3])),
        sharing=draw(SHARING),
        feedback=draw(st.sampled_from([2, 1, 3])),
    )
    return schedule, options


def carry(schedule, flows, options, *, changes=(), budget=1 << 40, ber=0.0, until=LONG, **more):
    """(state, twin) of the same rack after the same slots."""
    klass = [flow[4] if len(flow) > 4 else 0 for flow in flows]
    plan = plain_arrays.make_plan(
        schedule, *columns(flows), klass, faults=as_faults(schedule, changes), ber=ber, **options, **more
    )
    state = plain_arrays.make_state(plan)
    while (why := plain.advance(plan, state, until, budget)) in (
        col.SPENT, col.MORE_CELLS, col.MORE_PAIRS, col.MORE_WINDOW
    ):  # fmt: skip
        if why != col.SPENT:
            state = plain_arrays.grow(state, why)
    seed, cell = more.pop("seed", 0), more.pop("cell", 64)
    bit_errors = (seed, plain_arrays.threshold(ber, cell), 8 * cell)
    twin = PlainRack(schedule, flows, changes=changes, bit_errors=bit_errors, **options, **more)
    return plan, state, twin.run(slots=int(state.tally[col.SLOT])), why


def same(plan, state, twin):
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
    assert tally[[col.RELEASED, col.REPEATS, col.DUPLICATES, col.FAILED_SLOTS]].tolist() == [
        twin.released, twin.repeats, twin.duplicates, twin.failed_slots
    ]  # fmt: skip
    assert dict(zip(CAUSES, tally[col.IN_FLIGHT : col.DROPPED + 1].tolist(), strict=True)) == twin.lost
    assert tally[col.SPOKEN] == twin.spoken
    assert tally[[col.RESENT, col.ACKS, col.ACKS_IN]].tolist() == [twin.resent, twin.acks, twin.acks_in]
    assert tally[[col.DECLARED, col.DETECTED]].tolist() == [twin.declared, twin.detected]
    assert tally[col.OVER_SUBFLOW] == twin.broken["subflow"]
    assert twin.unaccounted() == 0
    assert plain.inspect(plan, state)[1] == 0


@pytest.mark.parametrize("timeout", [0, 40])
def test_tables_that_are_too_small_grow_and_move_the_same_cells(monkeypatch, timeout):
    monkeypatch.setattr(plain_arrays, "first_room", lambda plan: (1, 64))
    monkeypatch.setattr(plain_arrays.make_state, "__defaults__", (0, 0, 64))  # of cells out of order
    flows = [(0, 1, 400, 0)] + [(i, 1, 90, 0) for i in range(2, 30)] + [(i, i ^ 3, 1, 40 * i) for i in range(30)]
    schedule = rounds(32, 2)
    options = dict(delay=0, ready_queues=True, age_interval=0, sharing="round-robin", feedback=2)
    plan, state, twin, why = carry(schedule, flows, options, ber=1e-4, timeout=timeout, until=1 << 20)
    assert why == col.DONE
    same(plan, state, twin)
    assert state.early.shape[1] > 1 and len(state.target) > 1 and len(state.cell) > 64


@settings(max_examples=60, deadline=None)
@given(st.data(), racks())
def test_where_nothing_goes_wrong_the_fast_kernel_moves_the_same_cells(data, rack):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    fast = drive(arrays, kernel.advance, arrays.make_plan(schedule, *columns(flows), rules="paper", **options))
    plan, state, twin, why = carry(schedule, flows, options, until=1 << 40)
    assert why == col.DONE
    same(plan, state, twin)
    assert fingerprint.show(state.print) == fingerprint.show(fast.print)
    assert state.flow[:, col.FINISH].tolist() == fast.flow[:, col.FINISH].tolist()
    assert state.tally[col.SLOT] == fast.tally[col.SLOT]
    assert state.tally[col.REPEATS] == state.tally[col.FAILED_SLOTS] == 0


@settings(max_examples=80, deadline=None)
@given(st.data(), racks(), st.sampled_from([1 << 40, 7]))
def test_nodes_and_links_fail_alike_in_kernel_and_twin(data, rack, budget):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    changes = only_worse(data.draw(changes_among(schedule.nodes)))
    plan, state, twin, _ = carry(schedule, flows, options, changes=changes, budget=budget)
    same(plan, state, twin)
    assert twin.broken == {"subflow": 0, "bound": 0} and state.tally[col.OVER_BOUND] == 0


@settings(max_examples=80, deadline=None)
@given(st.data(), racks())
def test_what_is_repaired_comes_back_alike(data, rack):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    changes = data.draw(changes_among(schedule.nodes))
    same(*carry(schedule, flows, options, changes=changes)[:3])


@settings(max_examples=60, deadline=None)
@given(st.data(), racks(), st.sampled_from([1e-4, 1e-3, 0.01]), st.integers(0, 5), st.booleans())
def test_damaged_cells_are_repeated_alike(data, rack, ber, seed, clocks):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes, most=10))
    changes = data.draw(changes_among(schedule.nodes, clocks=True)) if clocks else ()
    same(*carry(schedule, flows, options, changes=changes, ber=ber, seed=seed, cell=9, until=500)[:3])


def test_of_several_values_on_one_queue_the_newest_wins_even_if_a_wrong_bit_is_in_another():
    flows = [(0, 4, 27, 0), (0, 4, 40, 0), (0, 2, 19, 0), (2, 1, 22, 0), (0, 3, 1, 0), (0, 6, 15, 0), (0, 3, 24, 0)]
    flows += [(0, 1, 1, 0), (1, 7, 32, 0), (7, 5, 31, 113)]
    options = dict(delay=1, ready_queues=True, age_interval=2, sharing="round-robin", feedback=3)
    same(*carry(rounds(8, 4, 1, "rotation"), flows, options, ber=0.01, seed=4, cell=9, until=500)[:3])


@settings(max_examples=60, deadline=None)
@given(st.data(), racks(), st.integers(2, 3), st.sampled_from([None, 1, 2]), st.sampled_from([0, 1e-3]), st.booleans())
def test_classes_queue_drop_and_wait_alike(data, rack, classes, depth, ber, broken):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    flows = [(*flow, data.draw(st.integers(0, classes - 1))) for flow in flows]
    changes = data.draw(changes_among(schedule.nodes)) if broken else ()
    same(*carry(
        schedule, flows, options, changes=changes, classes=classes, depth=depth, ber=ber, cell=9, until=500)[:3]
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.data(), racks(), st.integers(1, 3), st.sampled_from([0, 1e-3]), st.sampled_from([1, 30, 100]), st.booleans())
def test_a_transport_times_out_and_acknowledges_alike(data, rack, classes, ber, timeout, worse):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    flows = [(*flow, data.draw(st.integers(0, classes - 1))) for flow in flows]
    changes = data.draw(changes_among(schedule.nodes))
    changes = only_worse(changes) if worse else changes
    plan, state, twin, _ = carry(
        schedule, flows, options, changes=changes, classes=classes, ber=ber, cell=9, timeout=timeout, until=500
    )
    same(plan, state, twin)
    if worse and classes == 1 and ber == 0:
        assert twin.broken == {"subflow": 0, "bound": 0} and state.tally[col.OVER_BOUND] == 0
