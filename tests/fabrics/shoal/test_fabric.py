import pytest

from weft.errors import BadInput
from weft.fabrics.shoal import Shoal
from weft.units import Gbps, ns


def test_the_papers_rack_has_the_papers_slot_and_epoch():
    rack = Shoal(nodes=512)
    assert rack.slot_time == 23_230  # printed as 23.25 ns, with 20.5 for the 20.48 ns of a cell
    assert rack.rounds.slots == 128
    assert rack.epoch == 128 * 23_230
    assert rack.payload == 56


def test_one_fast_channel_can_be_modelled_as_the_released_code_does():
    rack = Shoal(nodes=64, channels=1, slot=5632, rules="released")
    assert (rack.slot_time, rack.epoch) == (5632, 63 * 5632)


def test_propagation_is_rounded_up_to_slots():
    assert Shoal(nodes=8, channels=1, link=10 * Gbps, guard=25_600, path=1576 * ns).travel == 21
    assert Shoal(nodes=8, propagation=1).travel == 1
    assert Shoal(nodes=8).travel == 0


def test_a_rack_prints_compares_and_can_be_changed():
    from dataclasses import replace

    rack = Shoal(nodes=8)
    assert rack == Shoal(nodes=8) != Shoal(nodes=9)
    assert repr(rack).startswith("Shoal(nodes=8, link=100000000000, channels=None, cell=64, header=8, guard=2750, ")
    assert replace(rack, link=50 * Gbps).slot_time == 2 * 20_480 + 2750  # what follows follows anew


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 0}, "nodes must be at least 2, not 0"),
        ({"nodes": 1}, "nodes must be at least 2, not 1"),
        ({"nodes": 10**9}, "nodes must be at most 32,767, not 1000000000"),
        ({"nodes": 2.5}, "nodes must be at least 2, not 2.5"),
        ({"link": 0}, "link must be a positive rate, not 0"),
        ({"channels": 8}, "channels must be between 1 and nodes - 1 = 7, not 8"),
        ({"cell": 0}, "cell must be at least 1 byte, not 0"),
        ({"header": 64}, "header must be less than the cell of 64 B, not 64"),
        ({"guard": -1}, "guard must be zero or more, not -1"),
        ({"guard": 30_000, "slot": 20_000}, "guard must be shorter than the slot of 20 ns, not 30 ns"),
        ({"slot": 0}, "slot must be at least 1 ps, not 0"),
        ({"delay": -1}, "delay must be between 0 and 1,048,576 slots, not -1"),
        ({"delay": 3, "propagation": 1}, "delay must be left out when propagation is given, not 3"),
        ({"schedule": "random"}, "schedule must be one of auto, rotation, mirrored, not 'random'"),
        ({"rules": "mine"}, "rules must be one of paper, released, literal, not 'mine'"),
        ({"sharing": "fifo"}, "sharing must be one of round-robin, shortest, not 'fifo'"),
        ({"age_interval": -1}, "age_interval must be zero or more slots, not -1"),
        ({"rules": "released", "channels": 4}, "channels must be 1 under the released rules, not 4"),
        ({"rules": "released", "delay": 1}, "delay must be 0 under the released rules, not 1"),
    ],
)
def test_what_cannot_be_built_is_named(wrong, message):
    with pytest.raises(BadInput) as raised:
        Shoal(**{"nodes": 8, **wrong})
    assert str(raised.value) == message
