"""What Shoal promises under the paper's rules, for any channels and delay: rates, bounds, sameness, thrift."""

import numpy as np
import pytest

from fabrics.shoal.racks import carry, endless, rates, share
from weft.engine import loop
from weft.errors import MonitorTripped
from weft.fabrics.shoal import Shoal
from weft.metrics import throughput
from weft.metrics.fairness import per_subflow
from weft.units import KB, Gbps, ms, s, us
from weft.workload import Flows, Incast, Permutation, Planned, Poisson

RACKS = [(8, 1, 0), (9, 1, 0), (8, 2, 0), (9, 4, 0), (12, 3, 0), (64, 1, 0), (64, 4, 0)]
RACKS += [(9, 1, 3), (8, 1, 3), (16, 2, 2)]  # nodes, channels, delay


@pytest.mark.parametrize(("nodes", "channels", "delay"), RACKS)
def test_a_lone_flow_gets_the_whole_link(nodes, channels, delay):
    fabric = Shoal(nodes=nodes, channels=channels, delay=delay)
    for d in {1, 2, nodes // 2, nodes - 1}:
        assert share(fabric, endless(nodes, [(0, d)])) == pytest.approx(1, abs=0.002)


@pytest.mark.parametrize(("nodes", "channels", "delay"), RACKS)
def test_a_full_permutation_gets_n_over_2n_minus_2(nodes, channels, delay):
    fabric = Shoal(nodes=nodes, channels=channels, delay=delay)
    flows = endless(nodes, [(i, (i + 3) % nodes) for i in range(nodes)])
    assert share(fabric, flows) == pytest.approx(nodes / (2 * (nodes - 1)), abs=0.002)


@pytest.mark.parametrize("pairs", [1, 5, 16, 31])
def test_pairs_get_the_closed_form_of_max_min_over_subflows(pairs):
    """Rate [N - 1 - |(S u D) \\ {s, d}| / 2] / (N - 1), which is also what water-filling gives."""
    n, fabric = 32, Shoal(nodes=32)
    flows = Permutation(pairs=pairs, closed=False).draw(nodes=n, link=fabric.link, seed=pairs)
    ends = set(flows.src.tolist()) | set(flows.dst.tolist())
    pairs = zip(flows.src.tolist(), flows.dst.tolist(), strict=True)
    closed = [(n - 1 - len(ends - {s, d}) / 2) / (n - 1) for s, d in pairs]
    np.testing.assert_allclose(per_subflow(flows.src, flows.dst, n), closed)
    assert rates(fabric, flows).mean() == pytest.approx(np.mean(closed), rel=0.004)


@pytest.mark.parametrize("seed", range(3))
def test_unlike_flows_come_near_max_min_over_subflows(seed):
    """Where flows of unlike degree meet, ready queues favour transit: the mean is met, each flow only about.

    A second value of feedback brings them nearer; without ready queues it does not.
    """
    fabric = Shoal(nodes=16, channels=1)
    rng = np.random.default_rng(seed)
    pairs = {(int(a), int((a + b) % 16)) for a, b in zip(rng.integers(0, 16, 24), rng.integers(1, 16, 24), strict=True)}
    flows = endless(16, sorted(pairs))
    ideal, got = per_subflow(flows.src, flows.dst, 16), rates(fabric, flows)
    assert got.mean() == pytest.approx(ideal.mean(), rel=0.03)
    assert (np.abs(got / ideal - 1) < 0.25).all() and (np.abs(got / ideal - 1) < 0.1).mean() > 0.7
    printed = rates(Shoal(nodes=16, channels=1, feedback=1), flows)
    basic = rates(Shoal(nodes=16, channels=1, feedback=1, ready_queues=False), flows)
    off = [np.abs(each / ideal - 1).mean() for each in (basic, got, printed)]
    assert off == sorted(off)


def test_the_equations_at_their_word_cost_a_lone_flow_half_its_link():
    assert share(Shoal(nodes=64, channels=1, rules="literal", ready_queues=False), endless(64, [(0, 1)])) < 0.55


def test_incast_finishes_together_and_fills_the_queues_to_the_bound():
    fabric = Shoal(nodes=64, channels=4)
    flows = Incast(fan_in=24, bytes=130 * KB).draw(nodes=64, link=fabric.link, seed=1)
    seen = carry(fabric, flows)
    assert 24 <= seen.sections["queue_cells"]["max"] <= 25  # eq. (5): one local and one of each other sender
    assert seen.finish.min() > 0.95 * seen.finish.max()
    assert {"queue_bound", "one_cell_per_subflow", "conservation"} <= set(seen.monitors)
    assert not any(seen.monitors.values())


def test_no_cell_is_lost_or_made():
    fabric = Shoal(nodes=32)
    flows = Poisson(load=0.9, flows=80, sizes="websearch").draw(nodes=32, link=fabric.link, seed=3)
    seen = carry(fabric, flows)
    cells = int(fabric.cells(flows.size).sum())
    assert seen.carried["delivered"] == seen.carried["local"] == cells
    np.testing.assert_array_equal(seen.received, flows.size)
    sent = seen.carried
    slots, over = divmod(seen.now, fabric.slot_time)
    assert over == 0
    row = fabric.rounds.peers() >= 0
    whole, rest = divmod(slots, fabric.rounds.slots)
    assert sent["local"] + sent["forwarded"] + sent["dummy"] == whole * row.sum() + row[:rest].sum()


def test_the_same_run_is_the_same_to_the_last_bit_on_any_machine():
    """Golden: pinned fingerprints, one per rule set. A change of these is a change of results and says so."""
    flows = Poisson(load=0.8, flows=400, sizes="pareto").draw(nodes=24, link=100 * Gbps, seed=7)
    racks = {rules: Shoal(nodes=24, rules=rules) for rules in ("paper", "literal", "released")}
    racks["as printed"] = Shoal(nodes=24, feedback=1)
    assert {name: carry(rack, flows).fingerprint for name, rack in racks.items()} == GOLDEN


GOLDEN = {
    "paper": "24a070c7a8c9002075fe2f94d460de92",
    "as printed": "9a94b65f0f750ae6ebf273d3b863be40",  # and so it was when one value of feedback was all there was
    "literal": "a013ffd9826413cef171bf68cbf370e4",
    "released": "81829ec2125a0cb2d2e06756521a291b",
}


def test_a_run_taken_up_from_its_arrays_ends_like_one_that_never_stopped():
    fabric = Shoal(nodes=24)
    flows = Poisson(load=0.8, flows=60, sizes="websearch").draw(nodes=24, link=fabric.link, seed=2)
    whole = carry(fabric, flows)
    run = fabric.prepare(flows)
    run.advance(until=whole.now // 3)
    saved = {name: array.copy() for name, array in run.freeze().items()}
    run = fabric.thaw(flows, saved)
    run.advance()
    again = run.observe()
    assert again.fingerprint == whole.fingerprint
    np.testing.assert_array_equal(again.finish, whole.finish)
    assert again.carried == whole.carried


def test_a_nearly_idle_second_costs_next_to_nothing():
    fabric = Shoal(nodes=512)
    flows = Flows.of(nodes=512, src=range(10), dst=range(10, 20), size=100 * KB, start=[k * s // 10 for k in range(10)])
    seen = carry(fabric, flows)
    assert (seen.finish > 0).all() and seen.now > 0.9 * s
    assert seen.work["stepped"] < seen.work["node_slots"] / 10_000


def test_the_monitor_stops_a_run_whose_cells_do_not_add_up():
    fabric = Shoal(nodes=8)
    flows = endless(8, [(0, 1), (2, 3)])
    run = fabric.prepare(flows)
    run.advance(until=20 * us)
    run.state.waiting[5] += 1  # a cell from nowhere
    with pytest.raises(MonitorTripped, match=r"^conservation must hold at all times, not be broken 1 times by "):
        run.advance(until=40 * us)


def test_the_monitor_stops_a_run_in_which_a_subflow_has_two_cells_in_a_queue():
    fabric = Shoal(nodes=8, channels=1)
    flows = endless(8, [(i, 0) for i in range(1, 8)])
    run = fabric.prepare(flows)
    run.advance(until=20 * us)
    run.state.whose[:] = run.state.whose[0]  # every cell now claims to be of one pair
    with pytest.raises(MonitorTripped, match=r"^one cell per subflow must hold at all times"):
        loop.look(run, thorough=True)


def test_older_flows_use_longer_queues():
    """Selective release: under load the short flow's cells avoid long queues while it is young."""
    flows = Poisson(load=1.0, flows=3000, sizes="fixed:20KB").draw(nodes=32, link=100 * Gbps, seed=5)
    with_rule = carry(Shoal(nodes=32), flows)
    without = carry(Shoal(nodes=32, age_interval=0), flows)
    assert with_rule.fingerprint != without.fingerprint


def test_ready_queues_keep_local_cells_out_of_the_way():
    flows = endless(16, [(i, d) for i in range(16) for d in range(16) if i != d])
    basic = carry(Shoal(nodes=16, ready_queues=False), flows, until=1 * ms)
    ready = carry(Shoal(nodes=16), flows, until=1 * ms)
    assert ready.sections["queue_cells"]["max"] <= 16 < basic.sections["queue_cells"]["max"] <= 30  # eqs. (5), (3)


@pytest.mark.parametrize(("nodes", "most"), [(512, 10**9), (4096, 4 * 10**9), (16384, 16 * 10**9)])
def test_memory_is_predicted_within_the_promise(nodes, most):
    assert Shoal(nodes=nodes).memory(Planned(nodes, 10_000)) < most


def test_an_endless_permutation_reports_the_second_half():
    fabric = Shoal(nodes=8)
    flows = Permutation().draw(nodes=8, link=fabric.link, seed=1)
    seen = carry(fabric, flows, until=200 * us)
    assert seen.sections["line"]["window"] == "the second half of the run"
    assert throughput.summary(fabric, flows, seen)["window"] == "the second half of the run"
    assert (seen.finish == -1).all()
