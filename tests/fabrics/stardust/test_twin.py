"""Kernel and twin agree cell for cell: the fingerprint folds every cell that comes to an adapter, and by which link."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import Bernoulli, Flows, HotOutput, Incast, Multicast, OnOff, Poisson, Stardust
from weft.fabrics.stardust.reference import Fabric
from weft.units import KB, Gbps, ns, us

SPEEDUPS = st.sampled_from([1.0, 1.02, 1.3])


@st.composite
def fabrics(draw, **more):
    """A small fabric of one, two or three tiers."""
    tiers, adapters, uplinks = draw(st.integers(1, 3)), draw(st.integers(2, 9)), draw(st.integers(1, 4))
    cell = draw(st.sampled_from([64, 256, 511]))
    return Stardust(
        adapters=adapters, uplinks=uplinks, tiers=tiers, ports=draw(st.integers(1, 3)), cell=cell,
        lane=draw(st.sampled_from([10, 25])) * Gbps, link=draw(st.sampled_from([None, 10 * Gbps])),
        delay=draw(st.sampled_from([0, 40, 700])) * ns, header=draw(st.integers(0, 16)),
        credit=draw(st.sampled_from([cell, 2048, 4096])), speedup=draw(SPEEDUPS), whole=draw(st.booleans()),
        depth=draw(st.sampled_from([400, 2000])), fci=draw(st.sampled_from([1, 6, 96])), rounds=draw(st.integers(1, 3)),
        fci_window=draw(st.sampled_from([None, 300 * ns])), period=draw(st.sampled_from([500 * ns, 10 * us])),
        classes=draw(st.sampled_from(["one", "strict", "weighted"])), low_latency=draw(st.booleans()),
        packing=draw(st.booleans()), per_source=draw(st.booleans()), unlimited=draw(st.sampled_from([None, 1])),
        multicast=draw(st.sampled_from(["ingress", "fabric"])),
        bundle=draw(st.sampled_from([1, 1, 3])), host_delay=draw(st.sampled_from([None, 0, 90])), **more,
    )  # fmt: skip


def links_agree(fabric, seen, twin, run_until):
    """Every link has sent as long in the twin at the moment of every sample."""
    for time, busy in zip(seen.samples["time_ps"].tolist(), seen.samples["busy_ps"].tolist(), strict=True):
        run_until(time)
        if len(twin.links) == len(fabric.lines()):
            assert busy == [twin.worked(link, time) for link in twin.links]


LOADS = st.sampled_from([0.2, 0.7, 0.95, 1.4])
SLOTS = st.integers(50, 400)
TRAFFIC = st.one_of(
    st.builds(Bernoulli, load=LOADS, slots=SLOTS),
    st.builds(HotOutput, load=LOADS, slots=SLOTS, hot=st.sampled_from([0.1, 0.6])),
    st.builds(OnOff, load=st.sampled_from([0.3, 0.9]), slots=SLOTS),
    st.builds(Multicast, load=st.sampled_from([0.5, 1.2]), slots=SLOTS, fanout=st.just(2)),
)


@settings(max_examples=60, deadline=None)
@given(fabrics(), TRAFFIC, st.integers(0, 1 << 40))
def test_kernel_and_twin_agree_on_traffic_without_hosts(fabric, traffic, seed):
    demand = traffic.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)
    run, twin = fabric.prepare(demand, seed=seed), Fabric(fabric, demand, seed)
    run.advance()
    seen = run.observe()
    links_agree(fabric, seen, twin, twin.run_open)
    twin.run_open(1 << 62)
    assert seen.fingerprint == str(twin.print)
    assert (seen.carried["entered"], seen.carried["arrived"]) == (twin.entered, twin.arrived)
    assert run.state.took.tolist() == twin.took
    assert not any(seen.monitors.values())


@st.composite
def tables(draw, nodes):
    """Some flows of two classes."""
    count = draw(st.integers(1, 12))
    src = draw(st.lists(st.integers(0, nodes - 1), min_size=count, max_size=count))
    away = draw(st.lists(st.integers(1, nodes - 1), min_size=count, max_size=count))
    size = draw(st.lists(st.sampled_from([1, 900, 20_000, 70_000]), min_size=count, max_size=count))
    start = draw(st.lists(st.integers(0, 20_000_000), min_size=count, max_size=count))
    klass = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    dst = [(i + k) % nodes for i, k in zip(src, away, strict=True)]
    return Flows.of(nodes=nodes, src=src, dst=dst, size=size, start=start, klass=klass)


def agree(fabric, flows, seed):
    run, twin = fabric.prepare(flows, seed=seed), Fabric(fabric, flows, seed)
    run.advance()
    seen = run.observe()
    links_agree(fabric, seen, twin, twin.run)
    twin.run()
    assert seen.fingerprint == str(twin.print)
    assert seen.finish.tolist() == twin.finish
    assert (seen.carried["entered"], seen.carried["arrived"]) == (twin.entered, twin.arrived)
    assert not any(seen.monitors.values())
    return seen, twin


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(["tcp", "dctcp"]), st.sampled_from([1500, 9000]), st.integers(0, 1 << 40))
def test_kernel_and_twin_agree_on_flows(data, transport, mtu, seed):
    more = {"transport": transport, "mtu": mtu, "mark": 30 * KB, "rto": 500 * us}
    fabric = data.draw(fabrics(**more).filter(lambda fabric: fabric.nodes > 2))
    agree(fabric, data.draw(tables(fabric.nodes)), seed)


PLANS = [
    "uplink 1.0 at 20us until 200us",
    "switch element2.0 at 10us until 90us, switch element1.1 at 30us until 500us",
    "adapter 2 at 15us until 60us",
    "links 20% at 25us until 150us",
]


@pytest.mark.parametrize("plan", PLANS)
def test_kernel_and_twin_agree_while_parts_fail_and_come_back(plan):
    fabric = Stardust(hosts=16, fail=plan, period=2 * us, rto=300 * us, reassembly=40 * us)
    flows = Poisson(load=0.8, sizes="fixed:40KB", flows=40).draw(nodes=16, link=fabric.link, seed=3)
    seen, twin = agree(fabric, flows, 3)
    assert seen.lost.total == twin.lost_cells > 0


@pytest.mark.parametrize(("rate", "faulty"), [(0.02, 0), (0.02, 3), (0.5, 3), (1, 1)])
def test_kernel_and_twin_agree_while_links_corrupt_cells(rate, faulty):
    plan = "uplink 1.0 at 20us until 200us, switch element2.0 at 30us until 90us"
    fabric = Stardust(
        hosts=16, errors=plan, error_rate=rate, faulty=faulty, watch=5 * us, period=2 * us, rto=300 * us,
        reassembly=40 * us,
    )  # fmt: skip
    flows = Poisson(load=0.8, sizes="fixed:40KB", flows=40).draw(nodes=16, link=fabric.link, seed=3)
    seen, twin = agree(fabric, flows, 3)
    assert seen.lost.total == twin.lost_cells >= seen.lost.causes["errors"] > 0 == seen.lost.causes["link_down"]


@pytest.mark.parametrize("nic", ["fifo", "fair"])
@pytest.mark.parametrize("delay", [0, 700 * ns])
def test_kernel_and_twin_agree_when_a_full_buffer_pauses_hosts(nic, delay):
    fabric = Stardust(hosts=16, buffer=40 * KB, overflow="pause", nic=nic, host_delay=delay, rto=300 * us)
    flows = Incast(fan_in=12, bytes=90 * KB).draw(nodes=16, link=fabric.link, seed=1)
    seen, twin = agree(fabric, flows, 1)
    assert seen.sections["edge"]["pauses_of_hosts"] > 0 == twin.count["drops"]


def test_kernel_and_twin_agree_while_tables_are_built_from_nothing():
    fabric = Stardust(hosts=16, cold=True, period=2 * us, rto=100 * us)
    flows = Poisson(load=0.5, sizes="fixed:20KB", flows=30).draw(nodes=16, link=fabric.link, seed=4)
    agree(fabric, flows, 4)


def test_kernel_and_twin_agree_when_a_buffer_overflows():
    fabric = Stardust(hosts=16, buffer=30 * KB, rto=300 * us)
    flows = Incast(fan_in=12, bytes=60 * KB).draw(nodes=16, link=fabric.link, seed=1)
    seen, twin = agree(fabric, flows, 1)
    assert seen.sections["drops"]["full"] == twin.count["drops"] > 0
