"""Kernel and twin must move the same cells in the same slots; with NUMBA_BOUNDSCHECK=1 no index may be out of range."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from runs import carry

from graphs import waiting
from weft.fabrics.crossbar import Crossbar, kernel, reference
from weft.fabrics.crossbar.fabric import SCHEDULERS
from weft.fabrics.crossbar.state import Count, Level
from weft.workload.flows import Flows
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, LogDiagonal, Multicast, OnOff, Unbalanced

KINDS = ("fifo", "voq", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq", "load-balanced")
EMULATING = ("ccf", "lihp")  # output queueing
SLOTS = st.integers(1, 60)
LOADS = st.sampled_from([0.3, 0.7, 0.9, 1.0])
FOREVER = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))

traffics = st.one_of(
    st.builds(Bernoulli, load=st.sampled_from([0.2, 0.8, 1.0, 1.5, 3.2]), slots=SLOTS),
    st.builds(Diagonal, load=LOADS, slots=SLOTS),
    st.builds(LogDiagonal, load=LOADS, slots=SLOTS),
    st.builds(HotOutput, load=LOADS, hot=st.sampled_from([0.1, 0.6]), slots=SLOTS),
    st.builds(Unbalanced, load=LOADS, w=st.sampled_from([0.3, 0.8]), slots=SLOTS),
    st.builds(OnOff, load=LOADS, burst=st.sampled_from([1.0, 4.0, 9.5]), slots=SLOTS),
)


@st.composite
def switches(draw, buffers=KINDS, schedulers=SCHEDULERS, flow_control=(None, True)):
    kind = draw(st.sampled_from(buffers))
    group = draw(st.integers(1, 3))
    ports = group * draw(st.integers(2 if group == 1 else 1, 3))
    if ports < 2:
        ports = 2
    options = {}
    if kind in ("fifo", "voq", "shared", "cioq"):
        options = {"scheduler": draw(st.sampled_from(schedulers)), "iterations": draw(st.integers(1, 4))}
    if kind == "cioq":
        options["speedup"] = draw(st.sampled_from([None, 1, 1.25, 2]))
    if kind == "gcq":
        options["speedup"] = draw(st.sampled_from([None, 1]))
        options["pipeline"] = draw(st.sampled_from([None, 0, 5]))
    return Crossbar(
        ports=ports, buffers=kind, group=group, depth=draw(st.integers(1, 4)), crosspoint=draw(st.integers(1, 3)),
        inner=draw(st.integers(1, 3)), output=draw(st.integers(1, 3)), crossing=draw(st.integers(0, 3)),
        memory_cycles=draw(st.integers(0, 4)), flow_control=draw(st.sampled_from(flow_control)), **options,
    )  # fmt: skip


def agree(fabric, traffic, seed):
    drawn, state, seen = carry(fabric, traffic, seed)
    twin = reference.run(fabric, drawn, seed=seed)
    assert seen.fingerprint == twin.fingerprint
    count = state.count
    assert (count[Count.DELIVERED], count[Count.OFFERED]) == (len(twin.moves), twin.offered)
    assert (count[Count.LOST], count[Count.LINE_BUSY]) == (twin.lost, twin.line_busy)
    assert state.level[Level.PEAK] == twin.longest
    waited = [slot - born for slot, _, _, born in twin.moves]
    assert seen.sections["delay_slots"]["max"] == (max(waited) if waited else None)
    assert seen.sections["delay_slots"]["mean"] == (sum(waited) / len(waited) if waited else None)
    assert (count[Count.OVERDUE], count[Count.OUT_OF_ORDER]) == (twin.overdue, twin.out_of_order)
    assert not any(seen.monitors.values())
    return drawn, state, seen, twin


@given(switches(flow_control=(None, True, False)), traffics, st.integers(0, 2**32))
@example(Crossbar(ports=6, flow_control=False), LogDiagonal(load=1.0, slots=60), 1)  # a line carries one cell a slot
@FOREVER
def test_kernel_moves_the_same_cells_as_the_reference(fabric, traffic, seed):
    _, state, _, twin = agree(fabric, traffic, seed)
    if fabric.algorithm in SCHEDULERS:
        found = [sum(used == k for used in twin.iterations) for k in range(len(state.rounds))]
        assert state.rounds.tolist() == found


@given(
    switches(buffers=["fifo"], schedulers=["eslip", *SCHEDULERS])
    | switches(buffers=["shared"])
    | switches(buffers=["voq", "cioq", "cicq", "hierarchical", "gcq", "oq", "load-balanced"], flow_control=[None]),
    st.builds(Multicast, load=LOADS, fanout=st.just(2), slots=SLOTS),
    st.integers(0, 2**32),
)
@FOREVER
def test_kernel_copies_multicast_cells_as_the_reference_does(fabric, traffic, seed):
    agree(fabric, traffic, seed)


@given(switches(buffers=["cioq"], schedulers=EMULATING), traffics, st.integers(0, 2**32))
@example(Crossbar(ports=8, buffers="cioq", scheduler="ccf", depth=4), Bernoulli(load=0.9, slots=60), 1)  # full outputs
@settings(FOREVER, max_examples=60)
def test_kernel_emulates_as_the_reference_does(fabric, traffic, seed):
    agree(fabric, traffic, seed)


@given(switches(flow_control=[None, False]), st.data(), st.integers(0, 2**32))
@FOREVER
def test_kernel_releases_flows_as_the_reference_does(fabric, data, seed):
    flows = data.draw(waiting(fabric.ports, largest=300, latest=3_000_000))
    _, state, seen, twin = agree(fabric, flows, seed)
    assert {f: int(slot) for f, slot in enumerate(state.flow_finish) if slot >= 0} == twin.finish
    released = flows.released(seen.finish)
    done = seen.finish >= 0
    assert (released[done] >= 0).all() and ((seen.finish - released)[done] >= fabric.ideal(flows)[done]).all()


@given(
    switches(flow_control=[None, False]) | switches(buffers=["cioq"], schedulers=EMULATING, flow_control=[None, False]),
    st.data(),
    st.integers(0, 2**32),
)
@FOREVER
def test_kernel_carries_flows_as_the_reference_does(fabric, data, seed):
    n = fabric.ports
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(1, n - 1), st.integers(1, 300), st.integers(0, 3_000_000)),
            min_size=1, max_size=12,
        )
    )  # fmt: skip
    flows = Flows.of(
        nodes=n, src=[r[0] for r in rows], dst=[(r[0] + r[1]) % n for r in rows], size=[r[2] for r in rows],
        start=[r[3] for r in rows],
    )  # fmt: skip
    _, state, seen, twin = agree(fabric, flows, seed)
    assert {f: int(slot) for f, slot in enumerate(state.flow_finish) if slot >= 0} == twin.finish
    assert ((seen.finish < 0) | (seen.finish >= flows.start + fabric.ideal(flows))).all()
    if fabric.flow_control is None:
        assert (seen.finish >= 0).all() and (seen.received == flows.size).all()


def test_ports_beyond_one_word_move_the_same_cells_as_the_reference():
    for options in (
        {"ports": 65}, {"ports": 130, "iterations": 3}, {"ports": 70, "scheduler": "pim"},
        {"ports": 66, "buffers": "cicq"}, {"ports": 70, "scheduler": "rrm"}, {"ports": 68, "scheduler": "drrm"},
        {"ports": 67, "buffers": "load-balanced"},
    ):  # fmt: skip
        agree(Crossbar(**options), Bernoulli(load=0.9, slots=12), 3)


@pytest.mark.parametrize(("ports", "depth", "warmup"), [(64, 3, 50), (63, 40, 0), (17, 1, 700), (2, 2, 200)])
def test_the_sprint_moves_the_same_cells_as_the_loop_it_abbreviates(ports, depth, warmup):
    fabric = Crossbar(ports=ports, depth=depth)
    drawn, state, seen = carry(fabric, Bernoulli(load=0.95, slots=600, warmup=min(warmup, 599)), seed=9)
    other = fabric.prepare(drawn, seed=9)
    slow = other.state
    kernel.matched(slow, 600)
    assert other.observe().sections == seen.sections
    assert (slow.print == state.print).all()
    assert (slow.queue == state.queue).all()
    assert (seen.lost.total > 0) == (depth <= 3)


def test_a_sprint_may_be_broken_off_and_gone_on_with_by_the_other_loop():
    fabric = Crossbar(ports=20, depth=3)
    drawn = Bernoulli(load=0.9, slots=500, warmup=30).draw(nodes=20, seed=5)
    whole, pieces = (fabric.prepare(drawn, seed=5).state for _ in range(2))
    kernel.matched(whole, 500)
    for k, stop in enumerate((1, 1, 29, 30, 31, 200, 201, 350, 500)):
        (kernel.matched if k % 3 == 2 else kernel.sprint)(pieces, stop)
    assert (whole.print == pieces.print).all() and (whole.count == pieces.count).all()
    assert (whole.delay == pieces.delay).all() and (whole.per_output == pieces.per_output).all()


def test_a_sprint_sums_delays_beyond_its_histogram_apart():
    fabric = Crossbar(ports=16, depth=9)
    drawn = Bernoulli(load=0.97, slots=400, warmup=100).draw(nodes=16, seed=2)
    states = [fabric.prepare(drawn, seed=2).state for _ in range(2)]
    fast, slow = (state._replace(delay=state.delay[:12]) for state in states)
    kernel.sprint(fast, 400)
    kernel.matched(slow, 400)
    assert (fast.delay == slow.delay).all() and (fast.count == slow.count).all()
    assert fast.count[Count.BEYOND] > 0 and fast.count[Count.LONGEST] > 11
