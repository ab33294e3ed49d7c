"""The rules for what goes wrong, sentence by sentence, on racks small enough to count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrics.shoal.test_twins_plain import as_faults, carry, same
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.fabrics.shoal.plain import kernel as plain
from weft.fabrics.shoal.plain.reference import Ack, Change, PlainRack
from weft.schedule.outage import pack, unpack
from weft.schedule.rotation import rounds

PLAIN = dict(delay=0, ready_queues=True, age_interval=0, sharing="round-robin")
NONE = frozenset()


def cut(*links, slot=0):
    return Change(slot, frozenset(links), NONE, NONE)


def dead(*nodes, slot=0):
    return Change(slot, NONE, frozenset(nodes), NONE)


def off(*nodes, slot=0):
    return Change(slot, NONE, NONE, frozenset(nodes))


def twin(schedule, flows, changes=(), slots=200, **options):
    return PlainRack(schedule, flows, changes=changes, **PLAIN | options).run(slots=slots)


# ---------------------------------------------------------------- silence


def test_whoever_misses_a_cell_stops_sending_and_so_is_missed_in_turn():
    schedule = rounds(5)
    rack = twin(schedule, [(0, 1, 1, 0)], [cut((2, 4), slot=8)], slots=8 + 2 * schedule.slots)
    assert list(rack.nodes[4].failed) == [2] and list(rack.nodes[2].failed) == [4]
    first, second = rack.nodes[4].failed[2], rack.nodes[2].failed[4]
    assert first == 8 + (schedule.where(2, 4) - 8) % schedule.slots
    assert second == first + (schedule.where(4, 2) - schedule.where(2, 4)) % schedule.slots
    assert rack.declared == 2


def test_the_slots_of_a_parted_pair_go_unused_and_no_others():
    schedule, slots = rounds(5), 120
    rack = twin(schedule, [(0, 1, 1, 0)], [cut((2, 4), (4, 2))], slots=slots)
    turns = slots // schedule.slots * schedule.nodes * (schedule.nodes - 1)
    assert rack.spoken + rack.failed_slots == turns
    assert schedule.where(2, 4) < schedule.where(4, 2)  # so that 4 is silent already in the first epoch
    assert rack.failed_slots == 2 * slots // schedule.slots - 1


def test_the_dead_are_missed_by_all_and_miss_nobody():
    rack = twin(rounds(6, 2), [(0, 1, 1, 0)], [dead(3)], slots=40)
    assert [list(node.failed) for node in rack.nodes] == [[3], [3], [3], [], [3], [3]]


def test_a_cell_whose_path_breaks_under_it_arrives_by_another():
    """§3.5 iii: the last cell it sent, through some other node. It goes there directly: nobody else has seen it."""
    schedule = rounds(5)
    whole = twin(schedule, [(0, 2, 1, 0)])
    (sent,) = [slot for slot in range(4) if schedule.peers()[slot, 0, 0] == 1]  # the first peer takes the only cell
    broken = twin(schedule, [(0, 2, 1, 0)], [cut((0, 1), slot=sent)])
    assert broken.lost["in_flight"] == 1 and broken.repeats == 1
    assert whole.finish[0] < broken.finish[0] < whole.finish[0] + 3 * schedule.slots


def test_a_cell_that_had_arrived_is_repeated_and_known_by_its_number():
    """The answer is lost, not the cell: the source cannot tell the two apart."""
    schedule = rounds(5)
    rack = twin(schedule, [(0, 2, 60, 0)], [cut((1, 0), slot=7)], slots=400)
    assert rack.finish[0] >= 0
    assert rack.lost["in_flight"] + rack.lost["discarded"] == 0
    assert rack.duplicates == rack.repeats > 0
    assert rack.cells["delivered"] == 60


def test_nobody_is_asked_to_forward_to_a_node_it_has_lost():
    """§3.5 ii: once all have faced each other, no cell is discarded any more."""
    schedule = rounds(6)
    changes = [cut((1, 5), (5, 1))]
    flows = [(i, 5, 200, 0) for i in (0, 2, 3, 4)]
    soon, late = (twin(schedule, flows, changes, slots=slots) for slots in (3 * schedule.slots, 600))
    assert 0 < soon.lost["discarded"] == late.lost["discarded"]
    assert late.cells["delivered"] > soon.cells["delivered"]


def test_news_travels_with_the_next_cell_and_takes_effect_when_it_has_come():
    schedule = rounds(6)
    for delay in (0, 3):
        rack = twin(schedule, [(0, 1, 1, 0)], [cut((2, 5), (5, 2))], delay=delay, slots=40)
        declared = rack.nodes[2].failed[5]
        told = next(slot for slot in range(declared + 1, 40) if schedule.where(2, 0) == slot % schedule.slots)
        for slot in (told + delay, told + delay + 1):
            rack.slot = slot
            assert rack.knows_parted(0, 2, 5) == (slot > told + delay)
        assert not rack.knows_parted(0, 2, 3)


def test_own_cells_that_wait_for_a_lost_peer_go_another_way_and_transit_is_discarded():
    flows = [(i, 4, 60, 0) for i in (0, 1, 2)]
    rack = twin(rounds(5), flows, [cut((0, 4), (4, 0), slot=30)], slots=900)
    assert rack.lost == dict.fromkeys(rack.lost, 0) | {"in_flight": 1, "discarded": 2}
    assert rack.finish[0] >= 0  # own cells were repeated
    assert sum(rack.undelivered[1:]) == 3  # what node 0 had to forward was not: two that waited, one under way


def test_a_rack_of_the_dead_is_silent_and_stuck():
    plan, state, rack, why = carry(rounds(4), [(0, 1, 5, 3)], PLAIN, changes=[dead(0, 1, 2, 3)])
    same(plan, state, rack)
    assert why == col.STUCK
    assert rack.spoken == rack.failed_slots == rack.declared == 0


# ---------------------------------------------------------------- repair


def test_a_node_is_back_at_the_next_epoch_and_no_sooner():
    schedule = rounds(5)
    changes = [dead(2, slot=8), Change(slot=21)]
    for slots, up in ((24, False), (25, True)):  # epochs begin at 20, 24
        assert (2 not in twin(schedule, [(0, 1, 1, 0)], changes, slots=slots).down) == up


def test_after_a_repair_all_turns_are_used_again():
    schedule = rounds(5, 2)
    rack = twin(schedule, [(0, 1, 1, 0)], [cut((0, 3), (3, 0)), Change(slot=10)], slots=20)
    before = rack.failed_slots
    rack.run(slots=60)
    assert rack.failed_slots == before and not any(node.failed for node in rack.nodes)


def test_a_flow_waits_at_the_host_while_its_node_is_down():
    rack = twin(rounds(5), [(2, 1, 3, 10)], [dead(2, slot=5), Change(slot=41)], slots=100)
    assert rack.finish[0] > 44 and rack.lost == dict.fromkeys(rack.lost, 0)


# ---------------------------------------------------------------- damage


class Watched(PlainRack):
    """A rack that notes every message."""

    def speak(self, i, j, channel):
        m = super().speak(i, j, channel)
        self.noted = [*getattr(self, "noted", ()), m]
        return m


def test_everything_to_and_from_a_node_whose_clock_is_off_is_damaged_and_nothing_else():
    rack = Watched(rounds(5), [(0, 1, 30, 0), (2, 3, 30, 0)], changes=[off(1, slot=4), Change(slot=12)], **PLAIN)
    rack.run(slots=40)
    for m in rack.noted:
        assert (m.damaged == "collided") == (4 <= m.slot < 12 and 1 in (m.sender, m.receiver))


def test_a_damaged_cell_is_asked_for_and_comes_again_in_the_next_turn():
    schedule = rounds(4)
    slot = schedule.where(0, 1)
    rack = Watched(schedule, [(0, 1, 1, 0)], changes=[off(1, slot=slot), Change(slot=slot + 1)], **PLAIN)
    rack.run(slots=40)
    assert rack.lost["collided"] == 1 and rack.repeats == 1
    (complaint,) = [m for m in rack.noted if m.dropped and m.receiver == 0]
    assert complaint.slot == slot + (schedule.where(1, 0) - slot) % schedule.slots
    assert rack.finish[0] == slot + schedule.slots


def test_the_wrong_bit_is_drawn_evenly_and_seldom_in_the_feedback():
    rack = Watched(rounds(8, 2), [(0, 1, 1, 0)], bit_errors=(3, 2**64 - 1, 512), **PLAIN)
    bits = [rack.damage(m) for m in (rack.speak(i, (i + 1) % 8, 0) for _ in range(300) for i in range(8))]
    assert len(set(bits)) <= 8  # one slot: one draw for each sender
    draws = []
    for slot in range(300):
        rack.slot = slot
        draws += [rack.damage(rack.speak(i, (i + 1) % 8, 0)) for i in range(8)]
    counts = np.bincount(np.array(draws) // 64, minlength=8)
    assert counts.sum() == 2400 and (abs(counts - 300) < 100).all()


def test_no_bit_is_wrong_where_no_draw_is_below_the_threshold():
    rack = Watched(rounds(8), [(0, 1, 20, 0)], bit_errors=(3, 0, 512), **PLAIN)
    rack.run(slots=60)
    assert not any(m.damaged for m in rack.noted)


# ---------------------------------------------------------------- classes


class Strict(PlainRack):
    """A rack that checks what it sends from each queue."""

    def head(self, i, node, j):
        waiting = [len(queue) for queue in node.queue[j]]
        cell = super().head(i, node, j)
        if cell is not None:
            assert not any(waiting[: self.class_of(cell)])
        return cell


def test_a_lower_class_goes_only_when_no_higher_one_waits():
    flows = [(i, 5, 40, 0, k % 3) for k, i in enumerate((0, 1, 2, 3, 4) * 3)]
    rack = Strict(rounds(6), flows, classes=3, **PLAIN).run(slots=2000)
    assert min(rack.finish) >= 0
    last = [max(f for f, flow in zip(rack.finish, flows, strict=True) if flow[4] == k) for k in range(3)]
    assert last == sorted(last)


def test_the_first_class_keeps_its_bound_whatever_the_others_do():
    flows = [(i, 5, 60, 0, i % 2) for i in range(5)]
    rack = twin(rounds(6), flows, classes=2, slots=1500)
    assert rack.broken["bound"] == 0


def test_one_class_is_no_class():
    flows = [(i, 5, 30, 3 * i) for i in range(5)]
    one, three = twin(rounds(6), flows), twin(rounds(6), [(*flow, 0) for flow in flows], classes=3)
    assert str(one.fingerprint) == str(three.fingerprint)


# ---------------------------------------------------------------- transport


class Told(PlainRack):
    """A rack that notes what sources hear."""

    def acknowledge(self, ack):
        assert isinstance(ack, Ack) and ack.seq <= ack.about.expected  # nobody is told more than is true
        super().acknowledge(ack)


def test_an_acknowledgement_never_says_more_than_has_arrived():
    rack = Told(rounds(5), [(0, 4, 50, 0), (4, 0, 9, 2)], changes=[dead(2, slot=9)], timeout=40, **PLAIN)
    rack.run(slots=900)
    assert min(rack.finish) >= 0 and rack.acks_in > 0
    assert not rack.live  # and all is forgotten in the end


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_what_dies_in_a_node_is_sent_again(victim):
    flows = [(i, 4, 50, 0) for i in range(4) if i != victim]
    changes = [dead(victim, slot=21)]
    bare, sure = (twin(rounds(5), flows, changes, slots=4000, timeout=timeout) for timeout in (0, 60))
    assert bare.lost["queued"] > 0 and min(bare.finish) < 0 <= min(sure.finish)
    assert sure.resent > 0 and sure.unaccounted() == 0


# ---------------------------------------------------------------- arrays


def test_nodes_beyond_the_first_word_fail_alike():
    schedule = rounds(67, 4)
    flows = sorted([(i, (7 * i + 13) % 67, 1 + i % 9, 3 * (i % 7)) for i in range(0, 67, 2)], key=lambda f: f[3])
    changes = [
        Change(11, frozenset({(65, 3), (2, 66), (64, 66)}), frozenset({63, 66}), NONE),
        Change(60, frozenset({(65, 3)}), frozenset({63}), frozenset({64})),
        Change(90, NONE, frozenset({63}), NONE),
    ]
    same(*carry(schedule, flows, PLAIN, changes=changes, ber=1e-4, timeout=40, until=150)[:3])


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 70), st.data())
def test_two_lists_of_changes_become_one_that_says_the_same(n, data):
    schedule = rounds(n)
    times = st.sets(st.integers(1, 30), max_size=4).map(lambda found: [0, *sorted(found)])
    a, b = data.draw(times), data.draw(times)
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    cuts = seed.random((len(a), len(schedule.shift), n)) < 0.3
    down, stray = seed.random((len(a), n)) < 0.3, seed.random((len(b), n)) < 0.3
    found = plain_arrays.merge(schedule, (np.array(a), pack(cuts), pack(down)), (np.array(b), pack(stray)))
    assert found.slots.tolist() == sorted({*a, *b})
    for slot in range(35):
        x = np.searchsorted(found.slots, slot, "right") - 1
        ours = max(k for k, at in enumerate(a) if at <= slot)
        theirs = max(k for k, at in enumerate(b) if at <= slot)
        assert (unpack(found.cut[found.cuts[x]], n) == cuts[ours]).all()
        assert (unpack(found.dead[found.cuts[x]], n) == down[ours]).all()
        assert (unpack(found.off[found.offs[x]], n) == stray[theirs]).all()


@pytest.mark.parametrize(("n", "channels", "delay"), [(5, 1, 0), (8, 3, 2), (70, 4, 0), (64, 4, 5)])
def test_who_has_a_peer_is_who_the_schedule_says(n, channels, delay):
    schedule = rounds(n, channels, delay)
    assert (unpack(arrays.lit(schedule), n) == (schedule.peers().reshape(-1, n) >= 0)).all()


def test_a_jump_over_idle_slots_counts_the_turns_it_leaves_out():
    schedule = rounds(6, 2)
    flows, changes = [(0, 1, 2, 0), (2, 3, 2, 777)], [dead(5, slot=3), Change(slot=500)]
    faults = as_faults(schedule, changes)
    plan = plain_arrays.make_plan(schedule, *[[f[k] for f in flows] for k in range(4)], faults=faults, **PLAIN)
    state = plain_arrays.make_state(plan)
    assert plain.advance(plan, state, 1 << 40, 1 << 40) == col.DONE
    assert state.tally[col.SLOTS] < 250 < 777 < state.tally[col.SLOT]
    rack = twin(schedule, flows, changes, slots=int(state.tally[col.SLOT]))
    same(plan, state, rack)
