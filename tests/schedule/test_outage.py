"""What failures take out of the schedule, against a walk through the switches' own tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedule.failing import SLOT, failing_racks, hit, walk
from weft.errors import BadInput
from weft.failures import Outage
from weft.schedule.decompose import decompose
from weft.schedule.outage import Cuts, cuts, fabric, pack, plan, unpack, unused
from weft.schedule.rotation import rounds


def brute(schedule, outages, ports, slot):
    """(w, n) bool: what is lost in a slot, by walking."""
    circuits = decompose(fabric(schedule, ports), schedule)
    begin, end = slot * SLOT, (slot + 1) * SLOT
    now = [o for o in outages if o.at < end and (o.until is None or o.until > begin)]
    lost = np.zeros((len(schedule.shift), schedule.nodes), bool)
    for t in range(schedule.slots):
        for plane in range(schedule.channels):
            for i in np.flatnonzero(circuits.peers[t, plane] >= 0):
                crossed = walk(circuits, t, plane, int(i))
                lost[t * schedule.channels + plane, i] = any(hit(outage, plane, crossed) for outage in now)
    return lost


def at(found: Cuts, slot, n):
    """What is cut, and who is dead, in a slot."""
    k = np.searchsorted(found.slots, slot, side="right") - 1
    return unpack(found.cut[k], n), unpack(found.dead[k], n)


@settings(max_examples=60, deadline=None)
@given(failing_racks())
def test_cuts_are_what_a_walk_through_the_switches_finds(rack):
    schedule, outages, ports = rack
    found = cuts(schedule, outages, SLOT, ports)
    for slot in {0, 3, *found.slots.tolist(), *(s + 1 for s in found.slots.tolist())}:
        cut, dead = at(found, slot, schedule.nodes)
        np.testing.assert_array_equal(cut, brute(schedule, outages, ports, slot))
        down = {o.which[0] for o in outages if o.what == "node" and o.at < (slot + 1) * SLOT
                and (o.until is None or o.until > slot * SLOT)}  # fmt: skip
        assert set(np.flatnonzero(dead)) == down


def test_a_dead_node_needs_no_switches_to_be_known():
    schedule = rounds(5)
    cut, dead = at(cuts(schedule, [Outage("node", (2,))], SLOT), 0, 5)
    assert dead.tolist() == [False, False, True, False, False]
    for p, shift in enumerate(schedule.shift):
        assert set(np.flatnonzero(cut[p])) == {2, (2 - shift) % 5}


def test_an_outage_takes_every_slot_it_touches():
    found = cuts(rounds(4), [Outage("node", (1,), SLOT + 1, 3 * SLOT + 1)], SLOT)
    assert found.slots.tolist() == [0, 1, 4]
    assert [bool(row.any()) for row in found.dead] == [False, True, False]
    assert cuts(rounds(4), [Outage("node", (1,), SLOT, 3 * SLOT)], SLOT).slots.tolist() == [0, 1, 3]


def test_without_outages_nothing_is_cut():
    found = cuts(rounds(70, 4), [], SLOT, 16)
    assert found.slots.tolist() == [0] and not found.cut.any() and not found.dead.any()
    assert found.cut.shape == (1, 72, 2) and found.cut.dtype == found.dead.dtype == np.uint64


def test_a_spine_of_one_plane_leaves_the_others_alone():
    schedule = rounds(8, 2)
    one, _ = at(cuts(schedule, plan("plane 1 spine 0", schedule, 4), SLOT, 4), 0, 8)
    every, _ = at(cuts(schedule, plan("spine 0", schedule, 4), SLOT, 4), 0, 8)
    assert not one[0::2].any() and one[1::2].any()
    np.testing.assert_array_equal(one[1::2], every[1::2])


@given(st.integers(1, 200), st.integers(0, 2**32))
def test_bits_unpack_to_what_was_packed(n, seed):
    mask = np.array([[(seed >> (k % 32)) & 1 for k in range(n)], [k % 3 == 0 for k in range(n)]], bool)
    words = pack(mask)
    assert words.shape == (2, -(-n // 64))
    for i in range(n):
        assert bool(int(words[0, i // 64]) >> (i % 64) & 1) == mask[0, i]
    np.testing.assert_array_equal(unpack(words, n), mask)


@settings(max_examples=40)
@given(failing_racks())
def test_slots_go_unused_in_pairs(rack):
    schedule, outages, ports = rack
    lost, _ = at(cuts(schedule, outages, SLOT, ports), 0, schedule.nodes)
    dark = unused(schedule, lost)
    for i in range(schedule.nodes):
        for j in range(schedule.nodes):
            if i != j:
                there, back = schedule.where(i, j), schedule.where(j, i)
                assert dark[there, i] == (lost[there, i] or lost[back, j])
    assert not dark[schedule.peers().reshape(dark.shape) < 0].any()


@pytest.mark.parametrize(
    ("text", "ports", "sentence"),
    [
        ("spine 0", None, "ports must be given, the size of a switch, for 'spine 0' to be meant"),
        ("plane 0 uplinks 5%", None, "ports must be given, the size of a switch, for 'plane 0 uplinks 5%' to be meant"),
        ("leaf 4", 4, "a leaf must be from 0 to 3, not '4'"),
        ("node 3", 2,
         "nodes must be at most 2 with 2-port switches in two stages, not 8 (switches of 4 ports would do)"),
    ],
)  # fmt: skip
def test_a_plan_that_the_rack_does_not_have_is_refused(text, ports, sentence):
    with pytest.raises(BadInput) as error:
        plan(text, rounds(8), ports)
    assert str(error.value) == sentence


def test_an_outage_of_a_switch_without_switches_is_refused():
    with pytest.raises(BadInput) as error:
        cuts(rounds(8), [Outage("leaf", (0,))], SLOT)
    assert str(error.value) == "ports must be given, the size of a switch, for leaf 0 to fail"
