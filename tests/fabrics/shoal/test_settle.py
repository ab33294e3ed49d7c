"""A rack in which something has failed, given back to the fast kernel, goes on as if the plain one had kept it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from fabrics.shoal.test_convert import PLAIN, drive, same
from fabrics.shoal.test_twins import columns, flows_among
from fabrics.shoal.test_twins_plain import as_faults, changes_among, racks
from weft.errors import BadResult
from weft.fabrics.shoal import Shoal, arrays, kernel, plain_rack
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.fabrics.shoal.plain import kernel as plain
from weft.fabrics.shoal.plain import settle
from weft.fabrics.shoal.plain import state as of
from weft.fabrics.shoal.plain.cells import queued
from weft.fabrics.shoal.plain.give_back import give_back, take_back
from weft.fabrics.shoal.plain.reference import Change
from weft.schedule.rotation import rounds
from weft.units import us

# lately: from when until when the fast kernel had it, cells that nobody could repeat, cells that share a queue with
# another of their subflow, as faults may make them do, and until when it had it after the last start
given_back, listed, sharing, kept_longer = [], [], [], []


def whole(state):
    """A state, without what may differ: numbers of pairs, of cells, and where they wait."""
    used = int(state.tally[col.PAIRS_USED])
    return {name: getattr(state, name).tolist() for name in ("told", "past", "busy", "active", "incast", "outcast")} | {
        "leave": np.sort(state.leave[:used].ravel()).tolist(), "queue": state.queue[:, [0, 1, 2, 5]].tolist(),
    }  # fmt: skip


def compare(plan, every, until):
    """Both runs of a rack: plain all along, and given back whenever it has settled, asked every so many slots."""
    state = plain_arrays.make_state(plan)
    given_back.clear(), listed.clear(), sharing.clear(), kept_longer.clear()
    slot, why = 0, None
    while slot < until and why not in (col.DONE, col.STUCK):
        state, why = drive(plain, plain_arrays, plan, state, slot := min(slot + every, until))
        if why == col.REACHED and settle.settled(plan, state):
            end = min(settle.until(plan, state), until)
            if end <= slot:
                continue
            before = {name: getattr(state, name).copy() for name in state._fields}
            masked, fast, kept = give_back(plan, state)
            assert all(np.array_equal(before[name], getattr(state, name)) for name in state._fields)
            same(take_back(plan, masked, fast, kept), state)  # at once
            assert kernel.inspect(masked, fast) == plain.inspect(plan, state)
            sharing.append(kernel.inspect(masked, fast)[0])
            fast, why = drive(kernel, arrays, masked, fast, end)
            while why == col.REACHED and end < until and (later := settle.longer(plan, fast, fast.tally[col.LANDED])):
                fast, why = drive(kernel, arrays, masked, fast, end := min(later, until))
                kept_longer.append(end)
            seen = kernel.inspect(masked, fast)
            listed.append(len(kept.listed))
            given_back.append((slot, int(fast.tally[col.SLOT])))
            state, slot = take_back(plan, masked, fast, kept), int(fast.tally[col.SLOT])
            assert plain.inspect(plan, state) == seen and seen[1] == 0
            if why == col.DONE:
                break
    theirs, also = drive(plain, plain_arrays, plan, plain_arrays.make_state(plan), until)
    assert (why == col.DONE) == (also == col.DONE)
    if also == col.STUCK:
        state, why = drive(plain, plain_arrays, plan, state, until)
    same(state, theirs)
    return state


def test_subflows_that_share_a_queue_after_a_clock_came_back_are_given_back():
    """Two nodes: a cell sent while the clock was off is sent again, and waits beside the next of its pair."""
    faults = as_faults(schedule := rounds(2), [Change(0), Change(1, off=frozenset({0})), Change(2)])
    options = PLAIN | dict(ready_queues=False, age_interval=1, feedback=2)
    plan = plain_arrays.make_plan(schedule, *columns([(0, 1, 1, 0)] * 7), faults=faults, **options)
    compare(plan, 1, 2000)
    assert sharing[0] == 1


@pytest.mark.parametrize(
    ("nodes", "delay", "flows", "changes", "count"),
    [
        (5, 0, [(0, 1, 8, 0), (4, 1, 9, 0)], [Change(0, dead=frozenset({1}), off=frozenset({0})), Change(1)], 2),
        (7, 17, [(1, 5, 5, 0), (1, 5, 24, 0), (2, 5, 25, 0)], [Change(42, dead=frozenset({5})), Change(85)], 2),
    ],
)
def test_cells_that_meet_others_of_their_subflow_are_counted_after_a_rack_was_given_back(
    nodes, delay, flows, changes, count
):
    """Cells that were sent again meet others of their subflow as long as their pair has something to send."""
    options = PLAIN | dict(delay=delay, ready_queues=False, age_interval=nodes - 1, feedback=2)
    schedule = rounds(nodes, 1, delay, "rotation")
    plan = plain_arrays.make_plan(schedule, *columns(flows), faults=as_faults(schedule, changes), **options)
    state = compare(plan, 1, 2000)
    assert given_back and state.tally[col.OVER_SUBFLOW] == count


@settings(max_examples=150, deadline=None)
@given(st.data(), racks())
def test_a_rack_given_back_whenever_it_has_settled_ends_like_a_plain_one(data, rack):
    schedule, options = rack
    flows = data.draw(flows_among(schedule.nodes))
    changes = data.draw(changes_among(schedule.nodes, clocks=data.draw(st.booleans())))
    far = data.draw(st.sampled_from([1, 1, 6]))
    changes = [Change(c.slot * far, c.cut, c.dead, c.off) for c in changes]
    flows = [(i, d, size, start * far) for i, d, size, start in flows]
    plan = plain_arrays.make_plan(schedule, *columns(flows), faults=as_faults(schedule, changes), **options)
    compare(plan, data.draw(st.sampled_from([1, 7, 40])), 2000)


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("feedback", [1, 2, 3])
@pytest.mark.parametrize("ready_queues", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        [Change(0, dead=frozenset({3, 7, 20, 66}))],
        [Change(150, dead=frozenset({3, 7})), Change(900)],
        [
            Change(60, frozenset({(3, 5), (9, 70), (70, 9), (12, 70), (40, 70)})),
            Change(1100, frozenset({(3, 5)}), frozenset({12})),
        ],
    ],
    ids=["dead at first", "dead for a while", "links, and a node later"],
)
def test_a_full_rack_is_given_back(delay, ready_queues, feedback, changes):
    """More than 64 pairs at a node, queues beyond the four cells of a ring, and flows to and from nodes that fail."""
    n, rng = 72, np.random.default_rng(3)
    dead = set().union(*(change.dead for change in changes))
    flows = [(0, d, 9, 0) for d in range(1, n)] + [(i, 70, 25, 3) for i in range(1, 60)]
    for start in range(0, 1500, 5):
        i, d = rng.choice(n, 2, replace=False)
        flows.append((int(i), int(d), int(rng.integers(1, 200)), start))
    flows += [(1, d, 1, s) for s in (0, 400, 800) for d in range(2, 40)]
    for keep in (True, False):  # with the traffic of those that fail, and without
        some = sorted((f for f in flows if keep or not {f[0], f[1]} & dead), key=lambda f: f[3])
        schedule = rounds(n, 4, delay)
        options = PLAIN | dict(delay=delay, ready_queues=ready_queues, age_interval=3, feedback=feedback)
        plan = plain_arrays.make_plan(schedule, *columns(some), faults=as_faults(schedule, changes), **options)
        state = compare(plan, 50, 2500)
        assert sum(end - slot for slot, end in given_back) > 500, given_back
        assert state.tally[col.DECLARED] > 0
        assert state.tally[col.MAX_QUEUE] > 4


def test_a_node_that_has_only_cells_for_the_dead_is_looked_at_in_every_slot():
    flows = [
        (0, 2, 900, 0),
        *((i, 3, 1, 0) for i in (1, 2, 4, 5)),
        *((i, 0, 2, 300) for i in (1, 2, 4, 5)),
        (0, 1, 1, 800),
    ]
    plan = plain_arrays.make_plan(
        schedule := rounds(6), *columns(flows), faults=as_faults(schedule, [Change(0, dead=frozenset({3}))]), **PLAIN
    )
    compare(plan, 20, 900)
    assert given_back[0][0] < 300 and listed[0] > 0


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("last", [0, 200, 700])
def test_what_some_flows_wait_for_ever_for_keeps_no_rack_from_carrying_the_others(delay, last):
    """The plain kernel has it again when no cell is left, in time to say in which slot nothing moves any more."""
    flows = [(0, 2, 3000, 0), (1, 3, 5, 0), (4, 5, 40, 0), (5, 3, 2, last)]
    plan = plain_arrays.make_plan(
        schedule := rounds(6, 1, delay), *columns(sorted(flows, key=lambda f: f[3])),
        faults=as_faults(schedule, [Change(0, dead=frozenset({3}))]), **PLAIN | dict(delay=delay),
    )  # fmt: skip
    compare(plan, 20, 100_000)
    assert len(kept_longer) > 5 and given_back[-1][1] == kept_longer[-1]
    _, why = drive(plain, plain_arrays, plan, plain_arrays.make_state(plan), 100_000)
    assert why == col.STUCK


def test_a_cell_that_is_there_twice_or_has_arrived_keeps_a_rack_from_being_given_back():
    flows = [(i, 8, 60, 0) for i in range(8)]
    faults = as_faults(schedule := rounds(9), [Change(0, dead=frozenset({4}))])
    plan = plain_arrays.make_plan(schedule, *columns([f for f in flows if f[0] != 4]), faults=faults, **PLAIN)
    state, _ = drive(plain, plain_arrays, plan, plain_arrays.make_state(plan), 100)
    assert settle.settled(plan, state)
    number = queued(plan, state).number
    pair = state.cell[number, of.OF_PAIR]
    first, second = number[pair == pair[np.bincount(pair)[pair] > 1][0]][:2]
    before = state.cell[first, of.NUMBER]
    state.cell[first, of.NUMBER] = state.cell[second, of.NUMBER]
    assert not settle.settled(plan, state)
    state.cell[first, of.NUMBER] = before
    assert settle.settled(plan, state)
    state.early[state.cell[first, of.OF_PAIR], before // 64] |= np.uint64(1) << np.uint64(before % 64)
    assert not settle.settled(plan, state)


# ---------------------------------------------------------------- runs

POISSON = weft.Poisson(load=0.6, sizes="fixed:5KB", flows=400)
CASES = {
    "dead for good": "node 3 at 4us",
    "dead at first, another later": "nodes 3 5 until 9us, node 4 at 20us until 24us",
    "links": "plane 1 link 2 upward, plane 0 link 5 at 6us until 12us",
    "one after the other": "node 3 at 4us until 5us, node 6 at 5us until 5100ns",
}


@pytest.fixture
def soon(monkeypatch):
    """Racks so small are given back too."""
    monkeypatch.setattr(plain_rack, "WORTHWHILE", 1)
    monkeypatch.setattr(plain_rack, "WORTH_CELLS", 1)


def observed(rack, until=None, stops=(), waits=False):
    flows = POISSON.draw(nodes=rack.nodes, link=rack.link, seed=1)
    if waits:
        after = [[f - 30] if f >= 30 else [] for f in range(len(flows))]
        flows = weft.workload.Flows.of(
            nodes=9, src=flows.src, dst=flows.dst, size=flows.size, start=0, after=after, delay=1000
        )
    run, kernels = rack.prepare(flows, seed=1), []
    for stop in (*stops, until):
        run.advance(until=stop)
        thawed = rack.thaw(flows, {name: array.copy() for name, array in run.freeze().items()}, seed=1)
        assert type(thawed.kept) is type(run.kept) and thawed.code is run.code
        run = thawed
        kernels.append("plain" if run.code is plain else "before" if run.kept is None else "after")
    return run.observe(), kernels


def say_the_same(ours, theirs):
    assert ours.sections == theirs.sections and ours.fingerprint == theirs.fingerprint
    assert ours.carried == theirs.carried and ours.lost == theirs.lost
    assert ours.monitors == theirs.monitors and ours.notes == theirs.notes
    assert ours.work["stepped"] == theirs.work["stepped"]
    assert np.array_equal(ours.finish, theirs.finish) and np.array_equal(ours.received, theirs.received)


@pytest.mark.parametrize("fail", CASES.values(), ids=CASES)
@pytest.mark.parametrize("until", [None, 18 * us, 60 * us])
@pytest.mark.parametrize("waits", [False, True])
def test_a_run_says_the_same_whether_it_is_given_back_or_not(fail, until, waits, request):
    rack = Shoal(nodes=9, channels=2, fail=fail)
    theirs, _ = observed(rack, until, waits=waits)
    request.getfixturevalue("soon")
    ours, _ = observed(rack, until, waits=waits)
    say_the_same(ours, theirs)
    assert ours.now == theirs.now


@pytest.mark.parametrize("fail", CASES.values(), ids=CASES)
def test_a_run_is_frozen_and_thawed_wherever_it_is(fail, soon):
    rack = Shoal(nodes=9, channels=2, fail=fail)
    whole, _ = observed(rack, 60 * us)
    pieces, kernels = observed(rack, 60 * us, stops=[k * us for k in range(1, 60, 2)])
    assert "after" in kernels and ("plain" in kernels or fail == CASES["links"])
    for section in ("queue_cells", "failures"):
        assert pieces.sections[section] == whole.sections[section]
    assert pieces.fingerprint == whole.fingerprint and pieces.carried == whole.carried and pieces.lost == whole.lost


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("kept.tally", col.CHANGE, 9), ("kept.tally", col.WAITING_LAST, 1 << 40), ("kept.mute", (0, 0), 1 << 63),
        ("kept.switch", 0, -1), ("kept.listed", (0, 2), 1 << 40), ("kept.listed", (0, 1), 2),
        ("kept.missed", (0, 0), -5),
    ],
)  # fmt: skip
def test_what_leads_nowhere_is_refused(name, place, value, soon):
    rack = Shoal(nodes=9, channels=2, fail="node 3 at 4us")
    flows = POISSON.draw(nodes=9, link=rack.link, seed=1)
    run = rack.prepare(flows, seed=1)
    while run.kept is None:
        run.advance(until=run.now + us)
    frozen = {part: array.copy() for part, array in run.freeze().items()}
    assert len(frozen["run.kept.listed"])
    rack.thaw(flows, frozen, seed=1)
    frozen[f"run.{name}"][place] = value
    with pytest.raises(BadResult):
        rack.thaw(flows, frozen, seed=1)
