"""The model of hosts says what the paper's text says of its lost figures, and its parameters are checked."""

import numpy as np
import pytest

from weft.errors import BadInput
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.hosts import NIC, SOFTWARE, Reaction, arrival_spread, clock_error, pause_delay, visible
from weft.units import Gbps, ms, s, us
from weft.workload.patterns import AllToAll


def test_a_nic_stops_two_to_six_microseconds_after_a_frame():
    delays = pause_delay(NIC, 64)
    assert 2 * us <= delays.min() and delays.max() <= 6 * us + 51_200
    assert delays.max() - delays.min() <= 5 * us


def test_the_delay_grows_with_the_packet_by_half_of_it_on_average():
    means = [pause_delay(NIC, packet, count=20_000).mean() for packet in (64, 1500, 4500, 9000)]
    steps = np.diff(means) / np.diff([64, 1500, 4500, 9000])
    assert steps == pytest.approx([400] * 3, rel=0.03)  # ps per byte: half of 800 at 10 Gb/s


def test_software_takes_ten_times_as_long_with_little_variation():
    soft, hard = pause_delay(SOFTWARE, 1500), pause_delay(NIC, 1500)
    assert 100 * us < soft.min() and soft.max() < 200 * us
    assert soft.mean() > 10 * hard.mean() and soft.std() < 2 * hard.std()


def test_control_frames_arrive_apart_by_twice_the_jitter_at_most():
    spread = arrival_spread(NIC, 24)
    assert spread.max() <= 2 * NIC.jitter < 15 * us  # the guard of the paper


def test_clocks_come_apart_by_two_milliseconds_in_twenty_seconds():
    error = clock_error(1000, 20 * s)
    assert 1.9 * ms < error.max() - error.min() <= 2 * ms
    assert abs(error - 20 * clock_error(1000, 1 * s)).max() <= 20  # ps, of rounding


def test_a_host_reports_what_its_socket_holds():
    assert (visible(100, None), visible(100, 60), visible(40, 60)) == (100, 60, 40)


# ---------------------------------------------------------------- what follows from the parameters


def test_the_paper_s_transfers_have_the_paper_s_ideal_times():
    for topology, seconds in (("switch", 184), ("tree", 1024)):
        fabric = TDMA(topology=topology)
        flows = AllToAll(bytes=10**10).draw(nodes=24, link=fabric.link, seed=0)
        assert fabric.transfer(flows) == seconds * s


def test_a_guard_inside_the_slot_shortens_it():
    assert (TDMA().cycle, TDMA().sending) == (315 * us, 300 * us)
    assert (TDMA(inside=True).cycle, TDMA(inside=True).sending) == (300 * us, 285 * us)
    assert TDMA().slots == 31


def test_control_frames_take_about_three_megabits_per_host():
    assert round(TDMA().control_rate / 1e6, 2) == 3.25


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"guard": 300 * us}, "guard must be shorter than the slot of 300000000 ps, not 300000000"),
        ({"nodes": 1}, "hosts must be from 2 to 2,049, a class for each other, not 1"),
        ({"round": 10 * us}, "round must be at least a slot and a guard, 315000000 ps, not 10000000"),
        ({"buffer": -1}, "buffer must be from 0 to 1,099,511,627,776, not -1"),
        ({"send_buffer": 0}, "send_buffer must be more than 0, not 0"),
        ({"receive_buffer": -5}, "receive_buffer must be more than 0, not -5"),
        ({"reading": 5}, "receive_buffer must be given with reading, not None"),
        ({"short": 5}, "reserve must be at least 1 Mb/s for short flows, not 0"),
        ({"reserve": 10 * Gbps}, "reserve must be less than the link, not 10000000000"),
        ({"loss": 1.0}, "loss must be from 0 to less than 1, not 1.0"),
        ({"lead": 30, "age": 2}, "lead and age must be at most the 31 slots of a round, not 32"),
        ({"patience": 5}, "patience must be at least a cycle of 315000000 ps, not 5"),
        ({"fail": "spine 0"}, "what fails must be one of node, manager, link, switch, not 'spine'"),
        ({"fail": "link a-b"}, "a node must be one of h0, h1, h2, h3 … switch, not 'a'"),
        ({"share": 5}, "share must be left out for wrr, which does not look at it (greedy does), not 5"),
        ({"urgent": 5}, "urgent must be left out for wrr, which does not look at it (greedy does), not 5"),
        ({"scheduler": "greedy", "spill": True}, "spill must be left out without a buffer to share, not True"),
        ({"slow": 25}, "slow must be from 0 to 24, not 25"),
        ({"slow": 1, "slow_link": 11 * Gbps}, "slow_link must be more than 0 and at most the link, not 11000000000"),
        ({"slow": 1, "reserve": 1 * Gbps}, "reserve must be less than the slowest link, not 1000000000"),
        (
            {"inband": True, "slow": 1, "scheduler": "greedy"},
            "inband must be left out where flows meet in a slot, not True",
        ),
        ({"writing": 0}, "writing must be more than 0, not 0"),
        ({"nodes": 10, "topology": "tree"}, "hosts of the tree must be a multiple of its 3 pods, not 10"),
        ({"jitter": -1}, "jitter must be from 0 to 2 ms, not -1"),
    ],
)
def test_what_cannot_be_meant_is_named(options, sentence):
    with pytest.raises(BadInput) as error:
        TDMA(**options)
    assert str(error.value) == sentence


def test_a_reaction_is_not_negative():
    with pytest.raises(BadInput, match="lag must be from 0 to 1 s, not -1"):
        Reaction(lag=-1, jitter=0)
