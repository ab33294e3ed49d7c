"""A rack taken over from the fast kernel goes on as if the plain one had carried it from the start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from fabrics.shoal.test_twins import columns, flows_among
from fabrics.shoal.test_twins_plain import as_faults, changes_among, racks
from weft.engine import fingerprint
from weft.fabrics.shoal import Shoal, arrays, kernel, plain_rack
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.fabrics.shoal.plain import kernel as plain
from weft.fabrics.shoal.plain.convert import NEVER, convert, fast_plan, switch_slot
from weft.fabrics.shoal.plain.reference import Change
from weft.schedule.rotation import rounds
from weft.units import us

PLAIN = dict(delay=0, ready_queues=True, age_interval=0, sharing="round-robin")
# What a tally says of the rack itself, not of how the arrays are filled or how idle slots were stepped.
SEEN = [
    col.SLOT, col.STARTED, col.FINISHED, col.LOCAL, col.FORWARDED, col.DELIVERED, col.VISITS, col.ACTIVE, col.FLYING,
    col.MAX_QUEUE, col.MAX_NODE, col.MAX_HELD, col.OVER_BOUND, col.OVER_SUBFLOW, col.LIVE,
    *(k for k in range(col.TALLY, col.PLAIN_TALLY) if k != col.MOVED),
]  # fmt: skip


def drive(code, layout, plan, state, until):
    while (why := code.advance(plan, state, until, 1 << 40)) not in (col.REACHED, col.DONE, col.STUCK):
        state = layout.grow(state, why)
    return state, why


def same(a, b):
    assert fingerprint.show(a.print) == fingerprint.show(b.print)
    assert {k: int(a.tally[k]) for k in SEEN} == {k: int(b.tally[k]) for k in SEEN}
    for name in (
        "flow",
        "waiting",
        "inflow",
        "inflow_slots",
        "received",
        "departed",
        "lengths",
        "longest",
        "missed",
        "down",
        "mute",
    ):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for k in range(3):  # cells, own cells and ready flows of every queue
        assert np.array_equal(a.queue[:, k], b.queue[:, k])


def compare(plan, at, until):
    """Both runs of a rack: converted at slot `at`, and plain from the start, looked at there and at the end."""
    state, why = drive(kernel, arrays, fast := fast_plan(plan), arrays.make_state(fast), at)
    before = {name: getattr(state, name).copy() for name in state._fields}
    ours = convert(plan, state)
    assert all(np.array_equal(before[name], getattr(state, name)) for name in state._fields)  # it changes nothing
    assert plain.inspect(plan, ours) == (0, 0)
    theirs, _ = drive(plain, plain_arrays, plan, plain_arrays.make_state(plan), at)
    same(ours, theirs)
    ours, why = drive(plain, plain_arrays, plan, ours, until)
    theirs, also = drive(plain, plain_arrays, plan, theirs, until)
    assert why == also
    same(ours, theirs)
    assert plain.inspect(plan, ours)[1] == 0
    return ours


@settings(max_examples=80, deadline=None)
@given(st.data(), racks())
def test_a_rack_converted_at_any_slot_before_its_faults_ends_like_a_plain_one(data, rack):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    memory = 2 * (schedule.slots + options["delay"] + 1)
    at = data.draw(st.integers(0, 120))
    changes = data.draw(changes_among(schedule.nodes, clocks=data.draw(st.booleans())))
    changes = [Change(c.slot + at + memory, c.cut, c.dead, c.off) for c in changes]
    plan = plain_arrays.make_plan(schedule, *columns(flows), faults=as_faults(schedule, changes), **options)
    broken = [c.slot for c in changes if c.cut or c.dead or c.off]
    assert switch_slot(plan) == (min(broken) - memory if broken else NEVER)
    compare(plan, at, 700)


@pytest.mark.parametrize(("delay", "ready_queues"), [(0, True), (7, True), (0, False)])
def test_a_full_rack_is_converted_with_its_spilled_queues_and_second_words_of_seats(delay, ready_queues):
    """More than 64 pairs at a node, queues beyond the four cells of a ring, and pairs that rest."""
    n = 72
    flows = [(0, d, 9, 0) for d in range(1, n)] + [(i, 70, 25, 3) for i in range(1, 60)]
    flows += [(1, d, 1, s) for s in (0, 40, 80) for d in range(2, 40)]
    flows.sort(key=lambda f: f[3])
    schedule = rounds(n, 4, delay)
    changes = [Change(200, frozenset({(3, 5)}), frozenset({7, 66})), Change(260)]
    options = PLAIN | dict(delay=delay, ready_queues=ready_queues, age_interval=3)
    plan = plain_arrays.make_plan(schedule, *columns(flows), faults=as_faults(schedule, changes), **options)
    for at in (1, 33, 90, switch_slot(plan)):
        ours = compare(plan, at, 500)
    assert ours.tally[col.MAX_QUEUE] > 4 and ours.tally[col.DECLARED] > 0


def test_a_rack_is_converted_after_its_epochs_were_counted_anew():
    schedule = rounds(3, 2, 3)
    flows = [(0, 1, 12_000, 0), (2, 1, 12_000, 0)]
    faults = as_faults(schedule, [Change(9_000, frozenset({(0, 1), (1, 0)}))])
    plan = plain_arrays.make_plan(schedule, *columns(flows), faults=faults, **PLAIN | {"delay": 3})
    at = switch_slot(plan)
    assert at // schedule.slots > kernel.REBASE
    compare(plan, at, 9_500)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_rack_is_converted_that_is_quiet_but_for_a_count_of_ready_flows(at):
    """Slot 0: of two flows one takes each link of node 0 and one is counted as ready. Slot 1: nothing else is left."""
    flows = [(0, 1, 1, 0), (0, 2, 1, 0), (0, 1, 1, 2)]
    plan = plain_arrays.make_plan(rounds(3, 2), *columns(flows), **PLAIN)
    compare(plan, at, 50)


@pytest.mark.parametrize("asked", [{"classes": 2}, {"ber": 1e-9}, {"timeout": 50}])
def test_what_the_fast_kernel_does_not_know_begins_on_the_plain_one(asked):
    plan = plain_arrays.make_plan(rounds(5), *columns([(0, 1, 1, 0)]), **PLAIN, **asked)
    assert switch_slot(plan) == 0


def test_a_fault_in_the_first_epochs_leaves_nothing_to_the_fast_kernel():
    schedule = rounds(5)
    for slot, switch in ((0, 0), (9, 0), (10, 0), (11, 1), (500, 490)):
        faults = as_faults(schedule, [Change(slot, dead=frozenset({2}))])
        plan = plain_arrays.make_plan(schedule, *columns([(0, 1, 1, 0)]), faults=faults, **PLAIN)
        assert switch_slot(plan) == switch


# ---------------------------------------------------------------- runs

RACK = Shoal(nodes=9, channels=2, fail="node 3 at 4us, node 5 at 6us until 9us")
POISSON = weft.Poisson(load=0.6, sizes="fixed:5KB", flows=120)


@pytest.fixture
def soon(monkeypatch):
    """Racks so small begin on the fast kernel too."""
    monkeypatch.setattr(plain_rack, "WORTHWHILE", 1)


def observed(rack, until=None, seed=1, stops=()):
    flows = POISSON.draw(nodes=rack.nodes, link=rack.link, seed=seed)
    run = rack.prepare(flows, seed=seed)
    kernels = [run.code]
    for stop in (*stops, until):
        run.advance(until=stop)
        run = rack.thaw(flows, {name: array.copy() for name, array in run.freeze().items()}, seed=seed)
        kernels.append(run.code)
    return run.observe(), kernels


@pytest.mark.parametrize("until", [None, 3 * us, 20 * us])
def test_a_run_says_the_same_whichever_kernel_it_began_on(until, request):
    theirs, kernels = observed(RACK, until)
    assert kernels == [plain, plain]
    request.getfixturevalue("soon")
    ours, kernels = observed(RACK, until)
    assert kernels[0] is kernel and kernels[-1] is (kernel if until == 3 * us else plain)
    assert ours.sections == theirs.sections and ours.fingerprint == theirs.fingerprint
    assert ours.carried == theirs.carried and ours.lost == theirs.lost
    assert ours.monitors == theirs.monitors and ours.notes == theirs.notes and ours.now == theirs.now
    assert ours.work["stepped"] == theirs.work["stepped"]
    assert np.array_equal(ours.finish, theirs.finish) and np.array_equal(ours.received, theirs.received)


def test_a_run_is_frozen_and_thawed_on_either_side_of_the_switch(soon):
    whole, _ = observed(RACK)
    pieces, kernels = observed(RACK, stops=(1 * us, 2 * us, 5 * us, 7 * us))
    assert kernels == [kernel, kernel, kernel, plain, plain, plain]
    assert pieces.fingerprint == whole.fingerprint and np.array_equal(pieces.finish, whole.finish)
    assert pieces.carried == whole.carried and pieces.lost == whole.lost
    for section in ("queue_cells", "failures"):
        assert pieces.sections[section] == whole.sections[section]


def test_a_rack_whose_clocks_never_leave_the_guard_is_never_slow(soon):
    seen, kernels = observed(Shoal(nodes=9, channels=2, sync=20))
    assert kernels == [kernel, kernel] and seen.lost.total == 0
