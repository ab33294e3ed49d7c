"""The ideal switch against its twin, against water-filling, and against what is known by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from graphs import waiting
from weft.fabrics.ideal import Ideal
from weft.fabrics.ideal.kernel import LIVE
from weft.fabrics.ideal.reference import Twin
from weft.metrics.fairness import per_node
from weft.units import Gbps, ns, s, us

flow = st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(1, 40_000), st.integers(0, 6_000))


@settings(deadline=None)  # the first case compiles
@given(st.lists(flow, min_size=1, max_size=24), st.integers(0, 900), st.data())
def test_kernel_and_twin_agree_flow_for_flow(table, propagation, data):
    src = [f[0] for f in table]
    dst = [(f[0] + f[1]) % 6 for f in table]
    waits = data.draw(st.booleans())
    after = [[k // 2] if waits and k % 3 == 2 else [] for k in range(len(table))]
    flows = weft.Flows.of(
        nodes=6, src=src, dst=dst, size=[f[2] for f in table], start=[f[3] * 100 for f in table], after=after,
        delay=500 if waits else None,
    )  # fmt: skip
    fabric = Ideal(nodes=6, propagation=propagation)
    run, twin = fabric.prepare(flows), Twin(fabric, flows).run()
    run.advance()
    assert run.observe().finish.tolist() == twin.finish
    assert run.observe().fingerprint == str(twin.print)


@settings(deadline=None)
@given(waiting(6, largest=40_000), st.integers(0, 900))
def test_kernel_and_twin_agree_on_any_flows_that_wait(flows, propagation):
    fabric = Ideal(nodes=6, propagation=propagation)
    run, twin = fabric.prepare(flows), Twin(fabric, flows).run()
    run.advance()
    assert run.observe().finish.tolist() == twin.finish
    assert run.observe().fingerprint == str(twin.print)


def test_links_send_as_long_as_those_of_the_twin():
    """The last bit of a flow may take a part of a ps, which the twin counts whole."""
    fabric = Ideal(nodes=12)
    table = weft.Poisson(load=0.9, sizes="uniform:1B,20KB", flows=300).draw(nodes=12, link=100 * Gbps, seed=1)
    for moment in (table.start[40], table.start[170], 10**9):
        run, twin = fabric.prepare(table), Twin(fabric, table)
        run.advance(until=int(moment))
        while twin.now < run.now and (twin.calendar or twin.live):
            twin.run(twin.now + 1)
        assert twin.now == run.now
        assert run.sample()["busy_ps"] == pytest.approx(list(twin.sends.values()), abs=len(table))
        assert run.sample()["busy_ps"].sum() > 0


def test_rates_are_those_of_water_filling():
    table = weft.Poisson(load=3.0, sizes="fixed:20KB", flows=300).draw(nodes=12, link=100 * Gbps, seed=1)
    run = Ideal(nodes=12).prepare(table)
    run.advance(until=int(table.start[150]))
    live = run.state["live"][: run.state["clock"][LIVE]]
    assert len(live) > 20
    wanted = per_node(table.src[live], table.dst[live], 12) * (100 * Gbps / s)
    assert run.state["rate"][live] == pytest.approx(wanted, rel=1e-12)


def test_an_incast_takes_what_the_link_of_its_receiver_takes():
    result = weft.run(Ideal(nodes=8, propagation=100 * ns), weft.Incast(fan_in=4, bytes=125_000))
    assert result.fct().max == 40 * us + 200 * ns
    assert np.ptp(result.fct().values) == 0
    assert result.slowdown().max == pytest.approx((40 + 0.2) / (10 + 0.2))
