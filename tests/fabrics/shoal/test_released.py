"""The released simulator's own numbers, as reported of it."""

import pytest

from fabrics.shoal.racks import carry, endless, share
from weft.fabrics.shoal import Shoal
from weft.workload import ENDLESS, Flows


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
