"""Are the paths and shares that can be computed those that a run takes and cannot beat?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.fabrics.network import bounds
from weft.fabrics.packet import Packet
from weft.metrics.throughput import summary
from weft.units import Gbps, ms, wire_time
from weft.workload import WORKLOADS
from weft.workload.flows import ENDLESS, Flows


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), src=st.integers(0, 15), away=st.integers(1, 15))
def test_a_flow_crosses_the_ports_that_are_predicted_for_it(seed, src, away):
    fabric = Packet(hosts=16, transport="tcp")
    flows = Flows.of(nodes=16, src=[src], dst=[(src + away) % 16], size=100_000, start=0)
    run = fabric.prepare(flows, seed=seed)
    run.advance()
    full = run.state.ports["peak"] >= wire_time(fabric.wire_size, fabric.link)  # more than ACKs are
    full[run.state.ports["frm"] == src] = True
    assert sorted(bounds.paths(fabric, flows, seed)[0]) == np.flatnonzero(full).tolist()


@pytest.fixture
def dumbbell(tmp_path):
    """Hosts 0 and 1 share a link of 3 Gb/s, on which host 1's two flows end at hosts of 1 and 10 Gb/s."""
    path = tmp_path / "shared.csv"
    links = ("h0,s,10Gbps,1us", "h1,s,10Gbps,1us", "s,t,3Gbps,1us", "t,h2,1Gbps,1us", "t,h3,10Gbps,1us")
    path.write_text("\n".join(("a,b,rate,delay", *links)) + "\n")
    return Packet(hosts=4, topology=str(path), transport="tcp", mtu=9000)


def test_what_one_flow_cannot_use_the_others_share(dumbbell):
    flows = Flows.of(nodes=4, src=[0, 1, 1], dst=[3, 2, 3], size=[ENDLESS] * 3, start=0)
    net = dumbbell.payload / dumbbell.wire_size * Gbps
    assert bounds.shares(dumbbell, flows) == pytest.approx([net, net, net])
    two = Flows.of(nodes=4, src=[1, 1], dst=[2, 3], size=[ENDLESS] * 2, start=0)
    assert bounds.shares(dumbbell, two) == pytest.approx([net, 2 * net])


@pytest.mark.parametrize("seed", [1, 2])
def test_no_link_is_given_away_twice_and_none_that_is_wanted_is_left(seed):
    fabric = Packet(hosts=54, transport="dctcp", mtu=9000)
    flows = WORKLOADS["permutation"](duration=1 * ms).draw(nodes=54, link=fabric.link, seed=seed)
    rates, crossed = bounds.shares(fabric, flows, seed), bounds.paths(fabric, flows, seed)
    whole = fabric.link * fabric.payload / fabric.wire_size
    load = np.zeros(fabric.graph.ports)
    for rate, ports in zip(rates, crossed, strict=True):
        load[ports] += rate
    assert load.max() <= whole * (1 + 1e-9)
    for ports in crossed:  # every flow crosses a full link
        assert max(load[ports]) == pytest.approx(whole)


def test_dctcp_comes_near_the_shares_of_its_paths():
    fabric = Packet(hosts=54, transport="dctcp", mtu=9000)
    flows = WORKLOADS["permutation"](duration=10 * ms).draw(nodes=54, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=10 * ms)
    mean = summary(fabric, flows, run.observe())["per_destination_gbps"]["mean"]
    assert mean == pytest.approx(bounds.shares(fabric, flows, 1).mean() / Gbps, rel=0.12)
