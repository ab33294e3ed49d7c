"""Do the flows of a host take turns at its port, and does nothing get lost in its NIC?"""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts import calls
from hosts.ideal import Ideal, lay_out, run
from weft.hosts.state import ACK, DATA
from weft.units import us, wire_time
from weft.workload.flows import Flows


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.tuples(st.just("send"), st.integers(0, 4), st.booleans()), st.just("take")), max_size=60))
def test_lanes_take_turns_as_a_list_of_lists_would(steps):
    """Five flows, data and control packets: each pair is a lane, and the lane that was served goes to the end."""
    flows = Flows.of(nodes=2, src=[0] * 5, dst=[1] * 5, size=10**6, start=0)
    arrays = lay_out(Ideal(hosts=2, transport="tcp:nic=fair"), flows)
    arrays.flows["id"][:5] = range(5)
    arrays.flows["ahead"] = arrays.flows["back"] = -1
    round_, r = deque(), 0
    for step in steps:
        if step == "take":
            if not round_:
                continue
            lane = round_.popleft()
            expected = lane[1].popleft()
            if lane[1]:
                round_.append(lane)
            assert calls.take_turn(arrays.world[0], 0, False) == expected
        else:
            _, flow, control = step
            arrays.rows["kind"][r], arrays.rows["flow"][r], arrays.rows["id"][r] = (
                (ACK if control else DATA),
                flow,
                flow,
            )
            calls.join(arrays.world[0], r, 0)
            for lane in round_:
                if lane[0] == (flow, control):
                    lane[1].append(r)
                    break
            else:
                round_.append(((flow, control), deque([r])))
            r += 1
    assert (arrays.hosts["ring"][0] == -1) == (not round_)


def finish(nic, transport):
    """When a flow of one packet finishes whose host has just sent a window of 30 packets for another."""
    fabric = Ideal(hosts=3, transport=f"{transport}:nic={nic},initial_window=30", buffer=100, mark=100)
    flows = Flows.of(nodes=3, src=[0, 0], dst=[1, 2], size=[200_000, 500], start=[0, 1 * us])
    arrays, _ = run(fabric, flows)
    full = wire_time(fabric.wire_size, fabric.link)
    return (int(arrays.traffic["finish"][1]) - 1 * us - 2 * fabric.delay) / full, arrays


@pytest.mark.parametrize("transport", ["tcp", "dctcp", "mptcp", "ndp"])
def test_a_short_flow_waits_for_a_window_in_a_fifo_and_for_a_packet_in_a_fair_nic(transport):
    waited, _ = finish("fifo", transport)
    assert waited > 29
    waited, arrays = finish("fair", transport)
    assert waited < 3
    assert arrays.traffic["received"].tolist() == [200_000, 500]


def test_dcqcn_takes_flows_in_turn_whatever_the_nic_is_called():
    assert finish("fifo", "dcqcn")[0] == finish("fair", "dcqcn")[0] < 3


def test_a_fair_nic_never_sends_faster_than_its_line():
    """Packets that leave one behind the other arrive at the pace of the link: 30 of them, to 30 destinations."""
    fabric = Ideal(hosts=31, transport="tcp:nic=fair")
    flows = Flows.of(nodes=31, src=[0] * 30, dst=range(1, 31), size=fabric.payload, start=0)
    arrays, _ = run(fabric, flows)
    full = wire_time(fabric.wire_size, fabric.link)
    assert arrays.traffic["finish"].tolist() == [(k + 2) * full + 2 * fabric.delay for k in range(30)]
