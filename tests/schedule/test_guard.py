import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.schedule.guard import Guard, Timing, flight, slot_for
from weft.schedule.rotation import rounds
from weft.units import Gbps, ns


def test_the_simulated_guard_is_reconfiguration_plus_wires_plus_clocks():
    guard = Guard()
    assert (guard.variation, guard.length) == (200, 2750)  # §3.4: ±2 cm is 0.2 ns; §7.1: 2.75 ns


def test_the_simulated_slot_leaves_88_of_100_gbps_and_not_the_printed_90():
    printed = Timing(slot=23_250)
    assert (printed.cell, printed.busy) == (64, 20_480)
    assert printed.loss == pytest.approx(0.118, abs=5e-4)
    assert printed.rate / Gbps == pytest.approx(88.09, abs=0.005)
    assert Timing().slot == 23_230
    assert Timing().rate / Gbps == pytest.approx(88.16, abs=0.005)


def test_the_simulated_epoch_is_truncated_in_print():
    assert rounds(512, 4).slots * Timing(slot=23_250).slot == 2_976_000  # printed: 2.9 us


def test_two_channels_in_the_same_slot_carry_cells_of_128_bytes():
    assert Timing(slot=23_250, channels=2).cell == 128


def test_the_prototype_slot_is_twelve_cycles():
    guard = Guard(reconfiguration=6400, tolerance=0, synchronisation=0)
    slot = Timing(guard=guard.length, link=10 * Gbps, channels=1, overhead=24)
    assert slot.slot == 12 * 6400
    assert slot.busy - 24 * 800 == 51_200  # the usable 8 cycles
    assert rounds(8).slots * slot.slot == 537_600  # printed: 0.53 us


def test_a_cell_of_the_prototype_flies_three_epochs():
    time = flight(8000, ends=576 * ns)  # 40 ns of wire at 5 ns/m
    assert time == 1_576_000  # printed: 1.57 us
    slot = Timing(guard=6400, link=10 * Gbps, channels=1, overhead=24)
    assert slot.slots(time) == 21 == 3 * rounds(8).slots


def test_layer_0_locks_in_the_guard_and_layer_1_buffers_a_few_bits():
    optical, electrical = Guard(layer=0), Guard(layer=1)
    assert optical.length - electrical.length == 625
    assert (optical.buffer_bits(25 * Gbps), electrical.buffer_bits(25 * Gbps)) == (0, 3)
    assert flight(3000, layer=0) == 15 * ns  # §3.4: 10 to 15 ns across a rack
    assert flight(3000, layer=1) == 975 * ns


def test_conventional_recovery_would_leave_nothing_of_a_slot():
    guard = Guard(layer=0, recovery=200_000 * ns)  # "a few hundred microseconds" (§3.5)
    assert Timing(guard=guard.length).duty < 2e-4


def test_tolerances_of_all_four_links_of_a_path_may_be_added():
    assert Guard(links=4).length == 3350


@given(st.integers(0, 10**6), st.floats(0.001, 1))
def test_the_slot_for_a_loss_is_the_shortest_that_keeps_it(guard, loss):
    slot = slot_for(guard, loss)
    assert guard <= loss * slot * (1 + 1e-12)
    assert slot == 0 or guard > loss * (slot - 1) * (1 - 1e-12)


@given(st.integers(1, 8), st.integers(0, 5000), st.integers(1, 10**6), st.integers(0, 100))
def test_the_cell_of_a_slot_is_the_largest_that_fits(channels, guard, more, overhead):
    link = 100 * Gbps
    try:
        slot = Timing(guard=guard, channels=channels, slot=guard + more, overhead=overhead)
    except BadInput as error:
        assert str(error).startswith("slot must be long enough for a cell of a byte, not ")
        assert more < (1 + overhead) * 8 * channels * 10
        return
    assert slot.guard + slot.busy <= slot.slot
    assert (slot.cell + 1 + overhead) * 8 * channels * 10 > more * link // (100 * Gbps)


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: Timing(guard=5000, slot=4000), "guard must be shorter than the slot of 4 ns, not 5 ns"),
        (lambda: Timing(cell=64, slot=20_000), "slot must be at least 23.23 ns for cells of 64 B, not 20 ns"),
        (lambda: Timing(slot=2751), "slot must be long enough for a cell of a byte, not 2.751 ns"),
        (lambda: Timing(cell=0), "cell must be at least 1 byte, not 0"),
        (lambda: Timing(channels=0), "channels must be at least 1, not 0"),
        (lambda: Timing(guard=-1), "guard must be zero or more, not -1"),
        (lambda: Timing(link=0), "link must be at least 1 b/s per channel, not 0"),
        (lambda: Guard(layer=2), "layer must be 0 or 1, not 2"),
        (lambda: Guard(tolerance=-1), "tolerance must be zero or more, not -1"),
        (lambda: slot_for(2750, 0), "loss must be a share above 0, up to 1, not 0"),
    ],
)
def test_a_timing_that_cannot_be_is_refused(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == sentence
