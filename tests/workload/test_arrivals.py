"""Arrivals at a load: the formula, the same flows for ever, and sentences for loads that are none."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import Shoal, run
from weft.errors import BadInput
from weft.units import Gbps, ms, ns, us
from weft.workload import Bursts, Poisson
from weft.workload.sizes import Fixed

RACK = {"nodes": 16, "link": 100 * Gbps, "seed": 1}
FIXED = Poisson(load=0.5, sizes="fixed:10KB", flows=100_000)


def said(call, *args, **kwargs):
    with pytest.raises(BadInput) as raised:
        call(*args, **kwargs)
    return str(raised.value)


def rows(flows, count):
    return list(zip(*(getattr(flows, c)[:count].tolist() for c in ("src", "dst", "size", "start")), strict=True))


PINNED_POISSON = [(51, 13, 255224, 87963), (53, 58, 38464, 192076), (37, 41, 23186, 397110), (51, 6, 7596, 626379)]
PINNED_BURSTS = [(14, 3, 20000, 181136), (14, 13, 20000, 183767), (8, 1, 20000, 340486), (8, 10, 20000, 356117)]


def test_the_first_flows_are_pinned():
    flows = Poisson(load=0.6, sizes="pareto", flows=1000).draw(nodes=64, link=100 * Gbps, seed=1)
    assert rows(flows, 4) == PINNED_POISSON
    assert rows(Bursts(load=0.6, burst=2, spread=50 * ns).draw(**RACK), 4) == PINNED_BURSTS


@given(st.integers(0, 2**64), st.integers(1, 300), st.integers(1, 300))
@settings(max_examples=25)
def test_more_flows_begin_with_the_same_flows(seed, few, more):
    short, long = (Poisson(load=0.3, flows=n).draw(nodes=9, link=Gbps, seed=seed) for n in (few, few + more))
    assert long.head(few) == short


def test_another_seed_is_another_draw():
    assert FIXED.draw(**RACK) == FIXED.draw(**RACK)
    assert FIXED.draw(**RACK) != FIXED.draw(**RACK | {"seed": 2})


@pytest.mark.parametrize("load", [0.01, 0.5, 1, 50])
@pytest.mark.parametrize("rate", [None, 50 * Gbps])
def test_the_load_is_mean_size_over_rate_nodes_and_gap(load, rate):
    """L = F / (R N tau), within five standard errors of the mean of 100,000 exponential gaps."""
    flows = replace(FIXED, load=load, load_rate=rate).draw(**RACK)
    tau = 10_000 * 8 / (load * (rate or 100 * Gbps) * 16) * 1e12  # ps
    assert flows.mean_gap == pytest.approx(tau, rel=5 / 100_000**0.5)
    assert flows.realised_load(rate or 100 * Gbps) == pytest.approx(load, rel=5 / 100_000**0.5)


def test_gaps_are_exponential():
    """Deciles of the gaps, each within five deviations of a binomial count."""
    gaps = np.diff(FIXED.draw(**RACK).start)
    tau = 10_000 * 8 / (0.5 * 100 * Gbps * 16) * 1e12
    edges = -tau * np.log(1 - np.arange(1, 10) / 10)
    counts = np.histogram(gaps, np.concatenate([[0], edges, [np.inf]]))[0]
    assert (np.abs(counts - 1e4) < 5 * (1e5 * 0.1 * 0.9) ** 0.5).all()


def test_every_pair_of_different_nodes_is_equally_likely():
    flows = FIXED.draw(**RACK | {"nodes": 5})
    counts = np.bincount(flows.src * 5 + flows.dst, minlength=25).reshape(5, 5)
    assert (np.diag(counts) == 0).all()
    apart = counts[~np.eye(5, dtype=bool)]
    assert (np.abs(apart - 1e5 / 20) < 5 * (1e5 / 20) ** 0.5).all()


def test_a_duration_takes_the_flows_that_start_before_it():
    timed = replace(FIXED, flows=None, duration=1 * ms).draw(**RACK)
    assert timed == FIXED.draw(**RACK).head(len(timed))
    assert timed.start[-1] < 1 * ms <= FIXED.draw(**RACK).start[len(timed)]
    both = replace(FIXED, flows=10, duration=1 * ms).draw(**RACK)
    assert both == timed.head(10)


def test_a_duration_before_the_first_arrival_is_no_flow():
    flows = Poisson(load=1e-6, sizes="fixed:10KB", duration=1).draw(**RACK)
    assert len(flows) == 0 and flows.notes == ()


def test_ten_thousand_flows_unless_told():
    assert len(Poisson(load=0.5).draw(**RACK)) == 10_000
    assert len(Bursts(load=0.5, burst=7).draw(**RACK)) == 10_003  # whole bursts
    assert len(Bursts(load=0.5, burst=7, flows=100).draw(**RACK)) == 100


def test_notes_say_what_the_load_came_to():
    flows = Poisson(load=0.6, sizes="pareto", flows=10_000).draw(nodes=64, link=100 * Gbps, seed=1)
    assert flows.notes == (
        "pareto sizes are truncated at 10 GB: their mean is 54.006 KB, the nominal one 100 KB",
        f"load 0.6 of 100 Gbps was asked for; these flows offer {flows.realised_load(100 * Gbps):.4g}",
    )


@pytest.mark.parametrize("seed", range(4))
def test_flows_drawn_by_default_offer_the_load_that_was_asked_for(seed):
    flows = Poisson(load=0.6).draw(nodes=64, link=100 * Gbps, seed=seed)
    assert flows.realised_load(100 * Gbps) == pytest.approx(0.6, rel=0.1)


def test_overload_is_allowed_and_said():
    assert replace(FIXED, load=50).draw(**RACK).notes[-1] == "offered load exceeds the link of 100 Gbps: overload"
    assert replace(FIXED, load=1).draw(**RACK).notes[-1].startswith("load 1 of")
    slower = replace(FIXED, load=0.6, load_rate=200 * Gbps).draw(**RACK)
    assert slower.notes[-1] == "offered load exceeds the link of 100 Gbps: overload"


@pytest.mark.parametrize("load", [0, -0.5, float("nan"), float("inf"), "half", None, True])
@pytest.mark.parametrize("workload", [Poisson, Bursts])
def test_a_load_that_is_none_gets_a_sentence(workload, load):
    assert said(workload, load=load) == f"load must be a finite number above 0, not {load!r}"


def test_what_cannot_be_meant_gets_a_sentence():
    assert said(Poisson, load=1, flows=0) == "flows must be at least 1, not 0"
    assert said(Poisson, load=1, duration=0) == "duration must be above 0 ps, not 0"
    assert said(Poisson, load=1, load_rate=0) == "load_rate must be above 0 b/s, not 0"
    assert said(Bursts, load=1, burst=0) == "burst must be at least 1, not 0"
    assert said(Bursts, load=1, spread=-1) == "spread must be from 0 to 9007 s, not -1"
    assert said(Bursts, load=1, aim="up") == "aim must be source, destination or moment, not 'up'"
    assert said(FIXED.draw, nodes=1, link=1, seed=0) == "nodes must be at least 2, not 1"
    assert said(FIXED.draw, nodes=2, link=0, seed=0) == "link must be above 0 b/s, not 0"
    assert said(Poisson(load=1e-300).draw, **RACK) == (
        "load must be large enough for all flows to arrive within 4611686 s, not 1e-300"
    )
    assert said(Poisson(load=1e9, duration=1000 * ms).draw, **RACK) == (
        "duration must be short enough for fewer than 10^9 flows to arrive, not 1000000000000"
    )


def test_a_workload_is_a_description():
    assert Poisson(load=0.5, sizes=Fixed(20_000)) == Poisson(load=0.5, sizes="fixed:size=20KB")
    assert eval(repr(FIXED)) == FIXED
    assert len({FIXED, replace(FIXED)}) == 1
    with pytest.raises(FrozenInstanceError):
        FIXED.load = 1


@pytest.mark.parametrize("aim", ["source", "destination", "moment"])
@pytest.mark.parametrize("regular", [False, True])
def test_bursts_keep_the_load(aim, regular):
    bursts = Bursts(load=0.4, burst=8, aim=aim, regular=regular, flows=80_000)
    assert bursts.draw(**RACK).realised_load(100 * Gbps) == pytest.approx(0.4, rel=5 / 10_000**0.5)


def test_flows_of_a_burst_share_what_they_aim_at():
    for aim, column, other in (("source", "src", "dst"), ("destination", "dst", "src")):
        flows = Bursts(load=0.4, burst=8, aim=aim, flows=800).draw(**RACK)
        assert (np.ptp(getattr(flows, column).reshape(-1, 8), axis=1) == 0).all()
        assert (np.ptp(getattr(flows, other).reshape(-1, 8), axis=1) > 0).any()
        assert (np.ptp(flows.start.reshape(-1, 8), axis=1) == 0).all()


def test_regular_bursts_come_like_a_clock():
    flows = Bursts(load=0.4, burst=8, regular=True, flows=800).draw(**RACK)
    assert set(np.diff(flows.start[::8])) == {2 * us}  # 8 x 20 KB at 0.4 of 16 x 100 Gbps


def test_a_spread_burst_starts_within_its_spread():
    together = Bursts(load=0.01, burst=8, flows=800).draw(**RACK)
    spread = Bursts(load=0.01, burst=8, flows=800, spread=100 * ns).draw(**RACK)
    offset = spread.start - together.start
    assert (offset >= 0).all() and (offset <= 100 * ns).all() and offset.max() > 90 * ns


def test_a_burst_larger_than_the_flows_asked_for_is_cut_before_it_is_made():
    flows = Bursts(load=0.5, burst=10**9, flows=5).draw(**RACK)
    assert len(flows) == 5
    assert len(set(flows.src.tolist())) == 1  # all of one burst, whose source is on


def test_bursts_that_would_be_too_many_flows_are_refused():
    with pytest.raises(BadInput) as said:
        Bursts(load=100, burst=10**9, duration=10**13).draw(**RACK)
    assert str(said.value) == "burst must be small enough for fewer than 10^9 flows to arrive, not 1000000000"


def test_a_run_stops_so_long_after_the_last_arrival():
    flows = {"load": 0.5, "flows": 50, "sizes": "uniform:60B,1MB"}
    whole = run(Shoal(nodes=8), Poisson(**flows), seed=1)
    stopped = run(Shoal(nodes=8), Poisson(**flows, drain=20 * us), seed=1)
    last = int(whole.flows.start[-1])
    ends = np.where(whole.observation.finish < last + 20 * us, whole.observation.finish, -1)
    assert 0 < (ends < 0).sum() < 50
    assert np.array_equal(stopped.observation.finish, ends)
    assert last < stopped.observation.now <= last + 20 * us
    with pytest.raises(BadInput, match="drain must be at least 0 ps, not -1"):
        Poisson(load=0.5, drain=-1)
