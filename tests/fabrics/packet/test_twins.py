"""Does the kernel move the same packets as its twin, at the same picoseconds?"""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from weft.fabrics.network import reference
from weft.fabrics.packet.fabric import Packet
from weft.random import below, key, words
from weft.units import Gbps, ms, ns, us
from weft.workload.flows import Flows


def traffic(hosts, count, seed, largest=60_000, within=200 * us):
    draw = words(key(seed, 1), 4 * count).reshape(4, count)
    src = below(draw[0], hosts)
    return Flows.of(
        nodes=hosts,
        src=src,
        dst=(src + 1 + below(draw[1], hosts - 1)) % hosts,
        size=1 + below(draw[2], largest),
        start=below(draw[3], within),
        klass=(np.arange(count) % 3 == 0).astype(int),
    )


def assert_same(fabric, flows, seed, until=None):
    run = fabric.prepare(flows, seed=seed)
    run.advance(until=until)
    twin = reference.run(fabric, flows, seed=seed, until=until)
    seen = run.observe()
    assert_array_equal(seen.finish, twin.finish)
    assert_array_equal(seen.received, twin.received)
    assert seen.work["packet_hops"] == twin.count["hops"]
    assert seen.sections["retransmissions"] == twin.count["resent"]
    assert seen.fingerprint == str(twin.print)
    busy, idle = run.lines
    assert (busy - idle).tolist() == [port.sent for port in twin.ports]
    return seen


# without shrinking: a smaller network takes as long to understand, and minutes to find
few = settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])

networks = st.fixed_dictionaries(
    {
        "topology": st.sampled_from([("fattree", 16), ("leafspine", 12), ("single", 5), ("dumbbell", 6), ("tree", 6)]),
        "link": st.sampled_from([10 * Gbps, 3 * Gbps, 100 * Gbps]),
        "delay": st.sampled_from([0, 500 * ns, 5 * us]),
        "mtu": st.sampled_from([300, 1500, 9000]),
        "ties": st.sampled_from(["fifo", "lifo", "random"]),
        "routing": st.sampled_from(["ecmp", "random", "permuted", "roundrobin", "single"]),
        "buffer": st.integers(2, 40),
        "initial_window": st.integers(1, 40),
    }
)


def test_headers_are_returned_when_an_incast_overflows_their_queue():
    flows = Flows.of(nodes=16, src=range(1, 16), dst=[0] * 15, size=30_000, start=0)
    fabric = Packet(hosts=16, topology="single", mtu=300, transport="ndp:rto_min=1ms", buffer=1, initial_window=40)
    seen = assert_same(fabric, flows, seed=3)
    assert seen.carried["returned"] > 0
    assert seen.finish.min() > 0


def test_what_fails_at_the_beginning_is_down_from_the_beginning():
    flows = Flows.of(nodes=16, src=[0, 4], dst=[15, 11], size=10_000, start=0)
    seen = assert_same(Packet(hosts=16, fail="switch edge0.0"), flows, seed=1, until=10 * ms)
    assert seen.finish[0] == -1 and seen.received[0] == 0 and seen.finish[1] > 0


def build(values, transport, **more):
    topology, hosts = values["topology"]
    return Packet(**{**values, "topology": topology, "hosts": hosts, "radix": 6, "transport": transport, **more})


@pytest.mark.parametrize(
    "transport",
    [
        "tcp:rto_min=300us,rto_first=1ms",
        "tcp:rto_min=300us,rto_first=1ms,sack=true,ack_every=2,ack_delay=20us",
        "dctcp:rto_min=300us,rto_first=1ms,sack=true,blocks=1,mark_from=2",
        "mptcp:rto_min=300us,rto_first=1ms,sack=true,blocks=2,subflows=3",
        "dctcp:rto_min=300us,rto_first=1ms,mark_from=2,ack_every=2,ack_delay=20us",
        "dctcp:rto_min=300us,rto_first=1ms,mark_from=1,mark_all=2,mark_chance=0.3",
        "mptcp:rto_min=300us,rto_first=1ms,subflows=3,reinject=true",
        "mptcp:rto_min=300us,rto_first=1ms,subflows=3,coupled=false,threshold=15",
        "mptcp:rto_min=300us,rto_first=1ms,subflows=3,receive_window=12,opportunistic=true,penalise=true,sack=true",
        "mptcp:rto_min=300us,rto_first=1ms,subflows=2,receive_window=30,opportunistic=true,ack_every=2",
        "tcp:rto_min=300us,rto_first=1ms,queue=priority",
        "tcp:rto_min=300us,rto_first=1ms,queue=priority,share=0.5",
        "ndp:rto_min=300us",
        "dcqcn:rto_min=300us,rto_first=300us,mark_from=1,mark_all=4,mark_chance=0.5,xoff=4,xon=2,raise_bytes=8KB",
        "dcqcn:rto_min=300us,rto_first=300us,share=0.2,xoff=2,xon=1,mark_from=2,ack_every=3,max_window=12",
        "ndp:rto_min=100us,bounce=false,trim_tail=false,prefer=2",
        "ndp:rto_min=100us,scoreboard=false,share=0.25",
        "dctcp:rto_min=300us,rto_first=1ms,mark_from=2,share=0.5",
        "mptcp:rto_min=300us,rto_first=1ms,subflows=3,share=1",
        "tcp:rto_min=300us,rto_first=1ms,nic=fair,ack_every=2,ack_delay=20us",
        "tcp:rto_min=300us,rto_first=1ms,nic=fair,queue=priority",
        "dctcp:rto_min=300us,rto_first=1ms,nic=fair,mark_from=2,sack=true",
        "dctcp:rto_min=300us,rto_first=1ms,nic=fair,queue=lossless,mark_from=2,xoff=2,xon=1",
        "mptcp:rto_min=300us,rto_first=1ms,nic=fair,subflows=3,reinject=true",
        "ndp:rto_min=300us,nic=fair",
        "ndp:rto_min=100us,nic=fair,prefer=2,share=0.25",
        "dcqcn:rto_min=300us,rto_first=300us,nic=fair,mark_from=1,xoff=4,xon=2",
        "dcqcn:rto_min=300us,rto_first=300us,queue=droptail,mark_from=1,mark_all=2",
    ],
)
@few
@given(values=networks, seed=st.integers(0, 2**32), count=st.integers(1, 24))
def test_kernel_moves_the_same_packets_as_the_reference(transport, values, seed, count):
    fabric = build(values, transport)
    assert_same(fabric, traffic(fabric.hosts, count, seed), seed)


@pytest.mark.parametrize(
    "transport",
    [
        "tcp:rto_min=300us,rto_first=1ms,rto_max=5ms",
        "tcp:rto_min=300us,rto_first=1ms,rto_max=5ms,sack=true,queue=priority",
        "dctcp:rto_min=300us,rto_first=1ms,rto_max=5ms,mark_from=2",
        "mptcp:rto_min=300us,rto_first=1ms,rto_max=5ms,subflows=3",
        "mptcp:rto_min=300us,rto_first=1ms,rto_max=5ms,subflows=3,reinject=true",
        "mptcp:rto_min=300us,rto_first=1ms,rto_max=5ms,subflows=3,sack=true,receive_window=20,opportunistic=true",
        "ndp:rto_min=300us",
        "ndp:rto_min=100us,share=0.5",
        "dcqcn:xoff=4,xon=2",
        "dctcp:rto_min=300us,rto_first=1ms,rto_max=5ms,mark_from=2,share=0.5",
        "tcp:rto_min=300us,rto_first=1ms,rto_max=5ms,nic=fair",
        "ndp:rto_min=100us,nic=fair",
    ],
)
@settings(parent=few, max_examples=5)
@given(values=networks, seed=st.integers(0, 2**32), begin=st.integers(1, 300), lasts=st.integers(1, 500))
def test_failures_hit_the_same_packets(transport, values, seed, begin, lasts):
    values = {**values, "topology": ("fattree", 16)}
    fail = f"link edge0.0-agg0.0 at {begin}us until {begin + lasts}us, switch core0.1 at {2 * begin}us"
    fail += ", links 10% at 50us until 3ms"
    fabric = build(values, transport, fail=fail, converge=40 * us)
    assert_same(fabric, traffic(16, 20, seed), seed, until=8 * ms)


def test_a_link_that_comes_back_at_once_overtakes_what_it_had_accepted():
    flows = Flows.of(nodes=3, src=[0, 1], dst=[2, 2], size=400_000, start=[0, 110 * us])
    fail = "link h2-switch at 100us until 101us, link h0-switch at 104us until 105us"
    fabric = Packet(hosts=3, topology="single", transport="tcp", mtu=9000, initial_window=40, rto=1 * ms, fail=fail)
    seen = assert_same(fabric, flows, seed=1)
    assert seen.sections["drops"]["link_down"] > 20
    assert seen.finish.min() > 0


@pytest.mark.parametrize(
    "transport",
    ["tcp:rto_min=300us,rto_first=300us", "ndp:rto_min=100us", "dcqcn:xoff=4,xon=2,rto_min=300us,rto_first=300us"],
)
@pytest.mark.parametrize("routing", ["ecmp", "random", "roundrobin"])
def test_packets_on_their_way_when_all_routes_go_and_come_back_find_the_same_ones(transport, routing):
    fail = "links 100% at 50us until 400us"
    fabric = Packet(
        hosts=12, topology="leafspine", radix=6, transport=transport, routing=routing, fail=fail, converge=10 * us,
        mtu=1500, delay=5 * us,
    )  # fmt: skip
    seen = assert_same(fabric, traffic(12, 30, 1), seed=1, until=8 * ms)
    assert seen.sections["drops"]["no_route"] > 0 and seen.sections["drops"]["link_down"] > 0
    assert seen.finish.min() > 0
