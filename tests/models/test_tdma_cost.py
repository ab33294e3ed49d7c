import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.models import tdma
from weft.models.tdma import Slots, controller_hosts, frames_in, quanta_for, slot_for, slot_within
from weft.units import Gbps, ms, ns, us

times = st.integers(1, 10**4).map(lambda n: n * us)


@given(times, times)
def test_a_longer_slot_is_more_efficient_and_waits_longer(slot, more):
    short, long = Slots(slot=slot), Slots(slot=slot + more)
    assert short.efficiency < long.efficiency < 1
    assert short.wait(24) < long.wait(24)
    assert short.control_rate > long.control_rate


@given(st.floats(0.5, 0.999), st.booleans())
def test_the_slot_for_an_efficiency_has_it_and_a_shorter_one_does_not(efficiency, inside):
    slot = int(slot_for(efficiency, inside=inside))
    assert Slots(slot=slot, inside=inside).efficiency >= efficiency - 1e-9
    assert Slots(slot=slot - 1 * ns, inside=inside).efficiency < efficiency


@given(st.integers(2, 100), st.integers(1, 100))
def test_the_slot_within_a_wait_keeps_it(hosts, wait):
    slot = int(slot_within(wait * ms, hosts))
    if slot > 0:
        assert Slots(slot=slot).wait(hosts) <= wait * ms < Slots(slot=slot + 1).wait(hosts)


def test_a_guard_between_slots_and_one_inside_are_two_readings():
    between, inside = Slots(), Slots(inside=True)
    assert (between.cycle, inside.cycle) == (315 * us, 300 * us)
    assert (between.efficiency, inside.efficiency) == (pytest.approx(300 / 315), pytest.approx(285 / 300))


@given(st.integers(1, 65535))
def test_a_pause_of_whole_quanta_takes_that_many(quanta):
    assert quanta_for(int(quanta * tdma.quantum())) == quanta


def test_controllers_reach_24_hosts_per_nic_and_the_wire_would_allow_more():
    assert controller_hosts() == 192
    assert frames_in(15 * us) == 223
    bill = tdma.parts(512)
    assert (bill["fabric manager"], bill["fabric manager NIC"], bill["host NIC"]) == (3, 22, 512)


def test_many_slots_are_answered_at_once():
    slot = np.arange(1, 1001) * us
    many = Slots(slot=slot)
    assert many.efficiency[::100].tolist() == [Slots(slot=int(x)).efficiency for x in slot[::100]]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Slots(slot=0), "slot must be at least 1 ps, not 0"),
        (lambda: Slots(guard=-1), "guard must be at least 0 ps, not -1"),
        (lambda: Slots(slot=10, guard=10, inside=True), "guard must be shorter than the slot it is inside, not 10"),
        (lambda: slot_for(1.5), "efficiency must be more than 0 and less than 1, not 1.5"),
        (lambda: quanta_for(4 * ms), "pause must be at most 3.355 ms, not '4000000000 ps'"),
        (lambda: Slots(link=0 * Gbps), "link must be at least 1 b/s, not 0"),
    ],
)
def test_what_cannot_be_meant_gets_a_sentence(call, message):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize("hosts", [0, -1, 10**9 + 1, 2**63, 10**30])
def test_hosts_that_cannot_be_are_refused_before_they_are_counted(hosts):
    with pytest.raises(BadInput, match=r"^hosts must be at (least 1|most 1000000000), not "):
        tdma.parts(hosts)
