import pytest

from fabrics.shoal.racks import carry, endless, share
from weft.fabrics.shoal import Shoal, bounds
from weft.units import KB
from weft.workload import Incast


def test_the_papers_buffers():
    assert bounds.buffer_bytes(512) == 16_744_448  # printed as 17 MB
    assert bounds.on_chip_bytes(512) == 32_704  # printed as 32 KB


def test_queue_bounds_are_the_papers_equations():
    assert bounds.queue_basic(3, 4) == 7
    assert bounds.queue(4, 512) == 5 and bounds.queue(600, 512) == 512
    assert bounds.ready(3, 8) == 3 and bounds.ready(30, 8) == 7


def test_a_full_permutation_is_half_and_a_bit():
    assert bounds.permutation_rate(64) == 64 / 126
    assert bounds.permutation_rate(64, ends=0) == bounds.lone_rate()


@pytest.mark.parametrize("senders", [4, 16, 40])
def test_incast_takes_the_slots_foretold(senders):
    fabric = Shoal(nodes=64, channels=1)
    flows = Incast(fan_in=senders, bytes=130 * KB).draw(nodes=64, link=fabric.link, seed=2)
    slots = carry(fabric, flows).finish.max() / fabric.slot_time
    assert slots == pytest.approx(bounds.incast_slots(senders, 2322, 64), rel=0.02)


def test_a_delay_up_to_the_limit_costs_nothing():

    limit = bounds.delay_limit(Shoal(nodes=9, channels=1, delay=1).rounds.gap())
    assert limit == 3
    assert share(Shoal(nodes=9, channels=1, delay=limit), endless(9, [(0, 2)])) == pytest.approx(1, abs=0.003)
    assert share(Shoal(nodes=9, channels=1, delay=limit + 1), endless(9, [(0, 2)])) < 0.6
