"""Traffic of a rack some of whose nodes are dead, under three readings; and endless flows at random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.failures import outages
from weft.schedule import outage
from weft.schedule.rotation import rounds
from weft.units import Gbps, ms, us
from weft.workload import ENDLESS, LongFlows, Poisson, Survivors

LINK = 100 * Gbps
FIXED = {"load": 0.5, "sizes": "fixed:20KB"}


def draw(seed=1, nodes=40, **options):
    return Survivors(**{**FIXED, "flows": 4000, **options}).draw(nodes=nodes, link=LINK, seed=seed)


def dead(plan, nodes=40, seed=1):
    return [outage.which[0] for outage in outages(plan, {"node": (nodes,)}, seed=seed)]


@given(st.integers(0, 2**32), st.sampled_from(["nodes 50%", "node 0 39, nodes 10%"]))
def test_the_dead_are_those_that_the_fabric_will_draw(seed, plan):
    alive = Survivors(load=1, dead=plan).alive(40, seed)
    for ports in (None, 10):  # knowing the switches changes nothing
        drawn = [gone.which[0] for gone in outage.plan(plan, rounds(40, 4), ports, seed=seed)]
        assert sorted([*alive, *drawn]) == list(range(40))


def test_survivors_offer_the_load_among_themselves():
    flows, gone = draw(dead="nodes 50%"), dead("nodes 50%")
    assert not np.isin(flows.src, gone).any() and not np.isin(flows.dst, gone).any()
    assert len(flows) == 4000
    # half the nodes, half the flows a second: what each of them offers stays
    assert flows.offered_rate() == pytest.approx(0.25 * LINK, rel=0.05)
    assert flows.notes[-1] == "20 of 40 nodes are alive"


def test_discarding_leaves_a_quarter_of_the_flows_when_half_the_nodes_are_dead():
    flows, whole = draw(dead="nodes 50%", offered="discarded"), Poisson(**FIXED, flows=4000)
    whole = whole.draw(nodes=40, link=LINK, seed=1)
    gone = dead("nodes 50%")
    kept = ~np.isin(whole.src, gone) & ~np.isin(whole.dst, gone)
    for name in ("src", "dst", "size", "start"):
        np.testing.assert_array_equal(getattr(flows, name), getattr(whole, name)[kept])
    assert len(flows) / 4000 == pytest.approx(0.25, abs=0.03)
    out = 4000 - len(flows)
    assert flows.notes[-1] == f"20 of 40 nodes are alive; {out:,} of 4,000 flows were theirs and are left out"


def test_all_keeps_the_traffic_of_the_dead_and_stops_by_the_clock():
    workload = Survivors(**FIXED, dead="nodes 50%", offered="all", duration=50 * us, drain=20 * us)
    whole = Poisson(**FIXED, duration=50 * us).draw(nodes=40, link=LINK, seed=1)
    np.testing.assert_array_equal(workload.draw(nodes=40, link=LINK, seed=1).dst, whole.dst)
    assert workload.until == 70 * us
    assert Survivors(**FIXED, dead="nodes 50%").until is None


def test_nobody_dead_is_poisson():
    np.testing.assert_array_equal(draw().src, Poisson(**FIXED, flows=4000).draw(nodes=40, link=LINK, seed=1).src)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dead": "nodes 100%"}, "dead must be few enough for 2 nodes to be left, not 'nodes 100%'"),
        ({"dead": "leaf 0"}, "what fails must be one of node, not 'leaf'"),
        ({"offered": "all"}, "duration must be given if offered is all, not None"),
        ({"offered": "none"}, "offered must be survivors, discarded or all, not 'none'"),
        ({"load": 0}, "load must be a finite number above 0, not 0"),
        (
            {"dead": "nodes 95%", "flows": 3, "offered": "discarded"},
            "flows must be enough for some to be among the living, not 3",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(options, sentence):
    with pytest.raises(BadInput) as error:
        draw(**options)
    assert str(error.value) == sentence


def test_long_flows_never_end_and_stop_by_the_clock():
    workload = LongFlows(flows=3000, duration=2 * ms)
    flows = workload.draw(nodes=9, link=LINK, seed=4)
    assert (flows.size == ENDLESS).all() and (flows.start == 0).all() and workload.until == 2 * ms
    assert len(set(zip(flows.src.tolist(), flows.dst.tolist(), strict=True))) == 72
    with pytest.raises(BadInput, match=r"^flows must be at least 1, not 0$"):
        LongFlows(flows=0)
    with pytest.raises(BadInput, match=r"^duration must be above 0 ps, not 0$"):
        LongFlows(flows=1, duration=0)
