"""The released simulator: its own numbers, as reported of it, and its rules one by one."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fabrics.shoal.racks import carry, endless, share
from fabrics.shoal.test_twins import columns, drive
from weft.engine import fingerprint
from weft.fabrics.shoal import Shoal, arrays, released
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.reference import ReleasedRack
from weft.schedule.rotation import rounds
from weft.workload import ENDLESS, Flows, Poisson


@pytest.mark.parametrize(("interval", "first"), [(7, 38), (0, 43)])
def test_the_prototype_incast_takes_49_slots_and_the_first_flow_gains_by_age(interval, first):
    fabric = Shoal(nodes=8, rules="released", slot=5632, age_interval=interval)
    flows = Flows.of(nodes=8, src=range(1, 8), dst=[0] * 7, size=7 * fabric.payload, start=0)
    slots = carry(fabric, flows).finish // fabric.slot_time
    assert (slots.min(), slots.max()) == (first, 49)


@pytest.mark.parametrize(("nodes", "even"), [(8, 0.9286), (9, 0.9375), (64, 0.9921)])
def test_a_lone_flow_over_an_even_distance_loses_half_a_virtual_link(nodes, even):
    fabric = Shoal(nodes=nodes, rules="released")
    assert share(fabric, endless(nodes, [(0, 1)])) == pytest.approx(1, abs=0.003)
    assert share(fabric, endless(nodes, [(0, 2)])) == pytest.approx(even, abs=0.003)


@pytest.mark.parametrize("nodes", [8, 64, 128])
def test_a_full_permutation_gets_half(nodes):
    flows = endless(nodes, [(i, (i + 3) % nodes) for i in range(nodes)])
    assert share(Shoal(nodes=nodes, rules="released"), flows) == pytest.approx(nodes / (2 * (nodes - 1)), abs=0.002)


def test_a_flow_that_starts_as_a_slot_begins_takes_part_in_it():
    fabric = Shoal(nodes=4, rules="released", slot=5632)
    at = 3 * 5632
    early = Flows.of(nodes=4, src=[0], dst=[1], size=1, start=at)  # node 0 faces node 1 in slots 0, 3, 6 …
    late = Flows.of(nodes=4, src=[0], dst=[1], size=1, start=at + 1)
    assert carry(fabric, early).finish.tolist() == [at + 5632]
    assert carry(fabric, late).finish[0] > at + 2 * 5632
    assert ENDLESS > 10**13


# ---------------------------------------------------------------- the sender's correction


def in_time(n, slot, source, middle, dst):
    """Whether `middle` faces `dst` after `slot` and no later than `source` next faces `middle`, slot by slot."""
    for later in range(slot + 1, slot + n):
        faces = [(i + later % (n - 1) + 1) % n for i in (source, middle)]
        if faces[1] == dst:
            return True
        if faces[0] == middle:
            return False


@pytest.mark.parametrize("n", [3, 4, 7, 8])
def test_one_cell_less_will_be_ahead_if_the_far_queue_is_served_before_the_next_turn(n):
    """But for feedback in the slot of the turn itself, which counts only if nothing was sent just now, and for ties."""
    rack = ReleasedRack(n, [])
    for rack.slot in range(2 * (n - 1)):
        for source, middle, dst in np.ndindex(n, n, n):
            if len({source, middle, dst}) < 3:
                continue
            now, turn, service = (rack.slot % (n - 1), (middle - source - 1) % n, (dst - middle - 1) % n)
            for just in (False, True):
                served = rack.served_before(source, middle, dst, just)
                assert served == bool(released.correction.py_func(5, now, turn, service, just))
                if turn == now:
                    assert served == (service != turn and not just)
                elif service == turn:  # both in one slot: in time in this epoch, and not in the next
                    assert served == (now < turn)
                else:
                    assert served == in_time(n, rack.slot, source, middle, dst)


def test_a_queue_that_is_empty_needs_no_correction():
    assert released.correction.py_func(0, 1, 4, 3, False) == 0 < released.correction.py_func(1, 1, 4, 3, False)


# ---------------------------------------------------------------- what differs from the paper


def both(n, flows, **options):
    """(kernel's state, twin) of the same rack, which agree."""
    options = dict(age_interval=0, sharing="round-robin") | options
    twin = ReleasedRack(n, flows, **options).run()
    plan = arrays.make_plan(rounds(n), *columns(flows), delay=0, rules="released", ready_queues=True, **options)
    state = drive(released, released.advance, plan)
    assert fingerprint.show(state.print) == str(twin.fingerprint)
    assert state.flow[:, col.FINISH].tolist() == twin.finish
    assert released.inspect(plan, state) == (0, 0)
    return state, twin


INCAST = [(i, 5, 9, 0) for i in range(5)]


def test_a_throttle_is_counted_down_once_an_epoch_though_its_pair_is_idle():
    rack = ReleasedRack(6, [])
    rack.throttle = {(0, 3, 1): 2, (0, 3, 2): float("inf")}
    for left in (1, 0, 0):
        for _ in range(rack.n - 1):
            rack.step()
        assert rack.throttle == {(0, 3, 1): left, (0, 3, 2): float("inf")}


class Forgiving(ReleasedRack):
    """A rack in which a pair that becomes busy again starts afresh."""

    def start_flows(self):
        idle = {pair.dst: pair.src for pair in self.pair.values() if not pair.flows}
        for key in [key for key in self.throttle if idle.get(key[1]) == key[0]]:
            del self.throttle[key]
        super().start_flows()


def test_a_flow_that_comes_back_is_held_up_by_what_was_heard_before():
    flows = [*INCAST, *((i, 5, 9, 40) for i in range(5))]
    assert str(both(6, flows)[1].fingerprint) != str(Forgiving(6, flows).run().fingerprint)


class Forgetful(ReleasedRack):
    """A rack that hears one queue length with each cell, that of the last."""

    def send(self, i):
        j, cell, lengths = super().send(i)
        self.port[i][j].soon[0] = None
        return j, cell, lengths


def test_the_second_length_in_the_header_is_used():
    flows = [(0, 3, 20, 0), (1, 3, 20, 0), (2, 5, 20, 0)]
    assert str(both(6, flows)[1].fingerprint) != str(Forgetful(6, flows).run().fingerprint)


def test_at_most_one_local_cell_waits_in_a_queue_and_the_others_count_as_ready():
    flows = [(0, d, 30, 0) for d in range(1, 6)]
    rack, most = ReleasedRack(6, flows), 0
    while min(rack.finish) < 0:
        rack.step()
        for port in rack.port[0]:
            assert sum(cell.src == 0 for cell in port.queue) <= 1
            most = max(most, port.ready)
    assert most == 4
    both(6, flows)


def test_the_age_rule_is_off_unless_asked_for():
    flows = Poisson(load=1.0, flows=300, sizes="fixed:20KB").draw(nodes=16, link=Shoal(nodes=16).link, seed=5)
    off, zero, on = (
        carry(Shoal(nodes=16, rules="released", age_interval=interval), flows).fingerprint for interval in (None, 0, 15)
    )
    assert off == zero != on


# ---------------------------------------------------------------- larger racks


@settings(max_examples=5, deadline=None, phases=[Phase.generate])
@given(st.data(), st.integers(40, 70))
def test_larger_racks_move_the_same_cells_as_their_twin(data, n):
    """Queues of dozens of cells, and more pairs and cells than there is room for at first."""
    hub, step = data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, n - 1))
    others = [i for i in range(n) if i != hub]
    flows = [(hub, d, data.draw(st.integers(1, 3)), 0) for d in others]
    flows += [(i, hub, 3, data.draw(st.integers(0, 20))) for i in others[:: data.draw(st.integers(1, 3))]]
    flows += [(i, (i + step) % n, 2, 30) for i in range(n)]
    both(n, sorted(flows, key=lambda f: f[3]))


def test_a_rack_in_which_all_talk_to_all_grows_and_agrees():
    flows = [(i, d, 1, 2 * i) for i in range(24) for d in range(24) if i != d]
    state, _ = both(24, flows)
    assert len(state.target) > 4 * 24 + 16  # more pairs than there was room for at first


def test_a_window_that_is_too_narrow_is_made_wider(monkeypatch):
    monkeypatch.setattr(arrays, "WINDOW", 64)
    flows = [(0, 1, 400, 0)] + [(i, 1, 90, 0) for i in range(2, 30)]
    state, _ = both(30, flows)
    assert state.early.shape[1] > 1


def test_an_idle_rack_is_skipped_to_its_next_flow():
    state, twin = both(7, [(0, 1, 3, 0), (2, 3, 3, 900)])
    assert state.tally[col.SLOTS] < 60 and state.tally[col.SLOT] == twin.slot > 900


def test_the_monitor_notices_a_cell_that_is_gone():
    plan = arrays.make_plan(
        rounds(6), *columns(INCAST), delay=0, rules="released", ready_queues=True, age_interval=0, sharing="shortest"
    )
    state = released.make_state(plan)
    assert released.advance(plan, state, 20, 1 << 40) == col.REACHED
    assert released.inspect(plan, state) == (0, 0)
    state.tally[col.FREE] += 1
    assert released.inspect(plan, state) == (0, 1)
