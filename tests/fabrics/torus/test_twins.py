"""Does the kernel move the same packets as its twin, at the same picoseconds, and give flows the same rates?"""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from graphs import waiting
from weft.fabrics.torus import Torus, bounds, reference
from weft.random import below, key, words
from weft.units import Gbps, Mbps, ms, ns, us
from weft.workload.flows import Flows

few = settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
shapes = st.sampled_from([(2,), (5,), (8,), (2, 2), (3, 4), (4, 4), (2, 3, 4), (3, 3, 3), (2, 2, 2, 2)])
tori = st.fixed_dictionaries(
    {
        "dimensions": shapes,
        "link": st.sampled_from([10 * Gbps, 96 * Gbps, 100 * Gbps]),
        "delay": st.sampled_from([0, 100 * ns, 3 * us]),
        "mtu": st.sampled_from([300, 1500, 9000]),
        "ties": st.sampled_from(["fifo", "lifo", "random"]),
        "routing": st.sampled_from(["minimal", "dimension", "valiant"]),
    }
)
controls = st.fixed_dictionaries(
    {
        "headroom": st.sampled_from([0.0, 0.05, 0.3]),
        "period": st.sampled_from([700 * ns, 5 * us, 60 * us]),
        "broadcast": st.sampled_from([0, 16, 84]),
        "loss": st.sampled_from([0.0, 0.0, 0.01]),
        "trees": st.integers(1, 4),
        "buffer": st.sampled_from([None, None, 3, 40]),
        "notice": st.sampled_from([1 * us, 30 * us]),
        "weights": st.sampled_from([(1,), (1, 3), (5, 1, 2)]),
        "strict": st.booleans(),
        "first": st.sampled_from([None, 3 * Gbps]),
        "demands": st.sampled_from([(), (), (2 * Gbps,), (13 * Gbps, 0), (0, 3 * Gbps, 1 * Gbps, 200 * Mbps)]),
    }
)


def traffic(nodes, count, seed, largest=60_000, within=60 * us, limited=False):
    draw = words(key(seed, 1), 6 * count).reshape(6, count)
    src = below(draw[0], nodes)
    return Flows.of(
        nodes=nodes,
        src=src,
        dst=(src + 1 + below(draw[1], nodes - 1)) % nodes,
        size=1 + below(draw[2], largest),
        start=below(draw[3], within),
        klass=below(draw[4], 3),
        rate=below(draw[5], 5) * Gbps // 2 if limited else None,
    )


def assert_same(fabric, flows, seed, until=None):
    run = fabric.prepare(flows, seed=seed)
    run.budget = 50
    run.advance(until=until)
    twin = reference.run(fabric, flows, seed=seed, until=until)
    seen = run.observe()
    assert_array_equal(seen.finish, twin.finish)
    assert_array_equal(seen.received, twin.received)
    assert seen.work["packet_hops"] == twin.count["hops"]
    assert seen.sections["retransmissions"] == twin.count["resent"]
    assert seen.fingerprint == str(twin.print)
    assert run.world["abandoned"] == twin.abandoned and run.world["crossed"] == twin.count["crossed"]
    busy, idle = run.lines
    assert (busy - idle).tolist() == [port.sent for port in twin.ports]
    if told := seen.sections["r2c2"]:
        assert (told["broadcasts"], told["computations"]) == (twin.broadcasts, twin.computations)
    return seen


@few
@given(values=tori, control=controls, seed=st.integers(0, 2**32), count=st.integers(1, 24), limited=st.booleans())
def test_r2c2_moves_the_same_packets_as_the_reference(values, control, seed, count, limited):
    fabric = Torus(**values, **control)
    assert_same(fabric, traffic(fabric.nodes, count, seed, limited=limited), seed)


@pytest.mark.parametrize("transport", ["tcp:rto_min=300us,rto_first=1ms", "dctcp:rto_min=300us,rto_first=1ms"])
@few
@given(values=tori, buffer=st.integers(2, 40), seed=st.integers(0, 2**32), count=st.integers(1, 24))
def test_tcp_moves_the_same_packets_as_the_reference(transport, values, buffer, seed, count):
    fabric = Torus(**values, transport=transport, buffer=buffer, mark=2 if "dctcp" in transport else None)
    assert_same(fabric, traffic(fabric.nodes, count, seed), seed)


@st.composite
def plans(draw):
    entries = []
    for node in draw(st.sets(st.integers(0, 7), max_size=2)):
        at = draw(st.integers(0, 60))
        back = draw(st.sampled_from(["", f" until {at + draw(st.integers(1, 40))}us"]))
        entries.append(f"node {node} at {at}us{back}")
    entries += draw(st.sampled_from([[], ["links 20% at 3us until 40us"], ["links 40% at 7us"]]))
    return ", ".join(entries)


@pytest.mark.parametrize("transport", ["r2c2", "tcp:rto_min=100us,rto_first=100us"])
@few
@given(
    plan=plans(),
    shape=st.sampled_from([(8,), (2, 4), (3, 3), (2, 2, 2)]),
    routing=st.sampled_from(["minimal", "dimension", "valiant"]),
    converge=st.sampled_from([0, 2 * us, 30 * us]),
    period=st.sampled_from([2 * us, 50 * us]),
    seed=st.integers(0, 2**32),
    count=st.integers(1, 90),
)
def test_what_fails_fails_alike(transport, plan, shape, routing, converge, period, seed, count):
    fabric = Torus(
        dimensions=shape, fail=plan, transport=transport, routing=routing, converge=converge, period=period,
        notice=7 * us,
    )  # fmt: skip
    seen = assert_same(fabric, traffic(fabric.nodes, count, seed), seed)
    assert (seen.finish < 0).sum() == seen.lost.flows


@few
@given(
    plan=st.sampled_from(["", "", "links 20% at 3us until 40us", "node 1 at 9us"]),
    shape=st.sampled_from([(8,), (2, 4), (3, 3)]),
    choose=st.sampled_from([1 * us, 7 * us]),
    tries=st.integers(1, 4),
    control=controls,
    seed=st.integers(0, 2**32),
    count=st.integers(1, 40),
)
def test_routes_are_chosen_alike(plan, shape, choose, tries, control, seed, count):
    fabric = Torus(
        dimensions=shape, routing="chosen", choose=choose, tries=tries, fail=plan, converge=2 * us, **control
    )
    seen = assert_same(fabric, traffic(fabric.nodes, count, seed), seed)
    assert seen.sections["r2c2"]["routes_switched"] <= seen.sections["r2c2"]["routes_tried"]


@pytest.mark.parametrize("routing", ["minimal", "valiant", "chosen"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_given_up_after_its_entry_has_gone_to_another_leaves_that_one_alone(routing, seed):
    fabric = Torus(
        dimensions=(4, 2), fail="node 3 at 2us, link 0-1", converge=4 * us, period=20 * us, notice=1 * us,
        routing=routing,
    )  # fmt: skip
    seen = assert_same(fabric, traffic(8, 60, seed, largest=4000, within=10 * us), seed)
    assert seen.lost.flows > 0


@few
@given(
    flows=waiting(8, largest=9000),
    shape=st.sampled_from([(8,), (2, 4), (2, 2, 2)]),
    transport=st.sampled_from(["r2c2", "tcp"]),
)
def test_flows_that_wait_are_released_alike(flows, shape, transport):
    seen = assert_same(Torus(dimensions=shape, transport=transport, period=3 * us), flows, 1)
    assert (seen.finish >= 0).all()


@settings(max_examples=60, deadline=None)
@given(
    shape=shapes, routing=st.sampled_from(["minimal", "dimension", "valiant"]), control=controls,
    link=st.integers(10**6, 8 * 10**10).map(lambda rate: rate * 48), count=st.integers(1, 60),
    seed=st.integers(0, 2**32), limited=st.booleans(),
)  # fmt: skip
def test_rates_are_those_of_plain_water_filling_to_the_last_unit(shape, routing, control, link, count, seed, limited):
    fabric = Torus(dimensions=shape, routing=routing, link=link, **control)
    flows = traffic(fabric.nodes, count, seed, limited=limited)
    lay = reference.spread_loads if routing == "valiant" else reference.loads
    toward = fabric.toward()
    known = []
    for f, (src, dst) in enumerate(zip(flows.src.tolist(), flows.dst.tolist(), strict=True)):
        klass = min(int(flows.klass[f]), len(fabric.of_classes) - 1)
        weight, most = fabric.of_classes[klass]
        most = min(most, int(flows.rate[f]) or most) if flows.limited else most
        known.append((weight, klass, lay(toward, fabric.grid, src, dst), most if most < 1 << 62 else None))
    capacity = [int(fabric.rate * (1 - fabric.headroom))] * fabric.graph.ports
    plain = reference.fill(known, capacity, strict=fabric.strict)
    assert_array_equal(bounds.fair_rates(fabric, flows), plain)


def test_tables_of_known_flows_grow_and_close_their_gaps():
    fabric = Torus(dimensions=(3, 4), link=40 * Gbps, period=5 * us)
    flows = traffic(12, 400, 5, largest=20_000, within=300 * us)
    run = fabric.prepare(flows, seed=5)
    state = run.state
    for name, rows in (("loads", 70 * len(state.ports)), ("members", 70 * len(state.ports)), ("entries", 70)):
        setattr(state, name, getattr(state, name)[:rows])
    from weft.engine.views import bind

    bind(state.world, **{name: getattr(state, name) for name in ("loads", "members", "entries")})
    run.advance(until=5 * ms)
    assert len(run.state.entries) > 70
    assert run.observe().fingerprint == str(reference.run(fabric, flows, seed=5, until=5 * ms).print)
