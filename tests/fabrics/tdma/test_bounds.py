"""What the bounds promise holds in runs, and what is just below them does not always."""

import numpy as np
import pytest

from weft import TDMA, AllToAll, Flows
from weft.errors import BadInput
from weft.fabrics.tdma import bounds
from weft.fabrics.tdma.reference import GO, Room
from weft.fabrics.tdma.state import Count
from weft.units import KB, MB, ms, us

CASES = [{"nodes": 8}, {"nodes": 9, "topology": "tree"}, {"nodes": 8, "switching": "cut"}, {"nodes": 6, "mtu": 1500},
         {"nodes": 8, "inband": True},
         {"nodes": 9, "topology": "tree", "skew": 3 * us, "switching": "cut"}]  # fmt: skip


def ran(fabric, size=4 * MB, seed=1):
    run = fabric.prepare(AllToAll(bytes=size).draw(nodes=fabric.nodes, link=fabric.link, seed=0), seed=seed)
    run.advance()
    return run


@pytest.mark.parametrize("options", CASES)
def test_with_the_least_guard_no_stream_meets_an_earlier_one(options):
    guard = bounds.least_guard(TDMA(**options))
    assert ran(TDMA(guard=guard, **options)).state.count[Count.OVERLAPS] == 0
    assert ran(TDMA(guard=max(0, guard - 15 * us), **options)).state.count[Count.OVERLAPS] > 0


def test_the_paper_s_guard_is_enough_on_its_switch_and_not_quite_on_its_tree():
    assert bounds.least_guard(TDMA()) < 15 * us < bounds.least_guard(TDMA(topology="tree"))


def test_the_least_guard_of_a_network_with_loops_is_not_known():
    with pytest.raises(BadInput, match=r"^topology must be a tree for its least guard to be known, not 'fattree'$"):
        bounds.least_guard(TDMA(nodes=16, topology="fattree", scheduler="greedy"))


def test_hosts_act_on_frames_no_further_apart_than_the_bound():
    fabric = TDMA(nodes=9, topology="tree", nics=1)
    room = Room(fabric, Flows.of(nodes=9, src=[0], dst=[1], size=1, start=0), seed=2)
    for cycle in range(200):
        times = [room.acts(host, cycle, GO) for host in range(9)]
        assert max(times) - min(times) <= bounds.apart(fabric)


def test_after_a_lost_stop_a_host_sends_no_longer_than_the_bound():
    fabric = TDMA(nodes=6, loss=0.2)
    room = Room(fabric, AllToAll(bytes=2 * MB).draw(nodes=6, link=fabric.link, seed=0), seed=3)
    room.run()
    over = []
    for _, _, begin, end, size, _, _, _ in room.streams:
        packets = -(-min(size, -(-(end - begin) // int(fabric.packets(fabric.rate)[-1])) * fabric.mtu) // fabric.mtu)
        over.append(begin + packets * int(fabric.packets(fabric.rate)[-1]) - (begin + fabric.cycle))
    assert max(over) <= bounds.overrun(fabric)


def test_a_standby_lets_hosts_send_again_within_the_bound():
    fabric = TDMA(nodes=5, fail="manager 0 at 30ms", patience=2 * ms)
    flows = AllToAll(bytes=20 * MB).draw(nodes=5, link=fabric.link, seed=0)
    room = Room(fabric, flows)
    room.run()
    starts = np.array(sorted(begin for _, _, begin, *_ in room.streams))
    gap = np.diff(starts).max()
    assert 10 * ms < gap <= bounds.leaderless(fabric) + fabric.cycle + bounds.apart(fabric)
    assert bounds.leaderless(TDMA()) is None


def test_a_host_that_may_send_all_the_time_sends_its_payload_rate():
    fabric = TDMA(nodes=4)
    flows = Flows.of(nodes=4, src=[0], dst=[1], size=200 * MB, start=0)
    run = fabric.prepare(flows, seed=1)
    run.advance()
    first = fabric.slots * fabric.cycle
    rate = 200 * MB * 8 * 10**12 / (int(run.state.finish[0]) - first)
    assert rate == pytest.approx(fabric.payload_rate, rel=0.01)
    assert fabric.network.block == 375 * KB
