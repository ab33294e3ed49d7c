"""What the paper says of Stardust holds of the room, and what cannot be is refused in a sentence."""

from dataclasses import replace

import numpy as np
import pytest

import weft
from weft import Bernoulli, Incast, Multicast, Permutation, Stardust, Uniform
from weft.errors import BadInput
from weft.fabrics.stardust import bounds
from weft.fabrics.stardust.reachability import history
from weft.fabrics.stardust.wiring import NOWHERE, wire
from weft.units import KB, MB, Gbps, ms, us


def ran(fabric, workload, seed=1, until=None):
    run = fabric.prepare(workload.draw(nodes=fabric.nodes, link=fabric.link, seed=seed), seed=seed)
    run.advance(until=workload.until if until is None else until)
    return run.observe()


# wiring


def test_the_networks_of_the_paper_have_the_elements_it_says():
    assert wire(256, 32, 2, 128).elements == (128, 64)  # §6.2
    assert Stardust(adapters=256, uplinks=32).wiring.elements == (128, 64)
    assert Stardust(hosts=432).wiring.elements == (72, 36)  # a fat tree of 12 ports, §6.3
    assert wire(24, 12, 1, 24).elements == (12,)  # §6.1.2
    assert wire(128, 64, 1, 128).elements == (64,)  # §5.4


@pytest.mark.parametrize(("adapters", "uplinks", "tiers", "radix", "up"), [
    (7, 3, 1, 8, None), (10, 4, 2, 8, None), (30, 3, 2, 12, 4), (16, 2, 3, 4, None),
    (11, 3, 3, 6, None), (20, 2, 4, 4, None),
])  # fmt: skip
def test_every_table_leads_to_its_adapter_by_ever_closer_links(adapters, uplinks, tiers, radix, up):
    wiring = wire(adapters, uplinks, tiers, radix, up)
    routes, (_, to) = wiring.routes(), wiring.ends
    assert (np.bincount(wiring.upper)[adapters:] <= radix).all()
    for d in range(adapters):
        steps = np.full(wiring.devices, -1)
        steps[d] = 0
        for _ in range(2 * tiers):
            for v in range(wiring.devices):
                g = routes.table[v, d]
                if v != d and g != NOWHERE:
                    next_ = steps[to[routes.choices[routes.first[g] : routes.first[g] + routes.number[g]]]]
                    if (next_ >= 0).all():
                        steps[v] = 1 + next_.max()
        assert (steps[:adapters] >= 0).all() and steps.max() <= 2 * tiers


# the fabric


def test_short_cells_take_the_time_of_their_own_bytes():
    """Frames of 64 B in cells of 74 B that could have 256: three and a half fit in a slot."""
    fabric = Stardust(
        adapters=2, ports=2, uplinks=1, tiers=1, link=10 * Gbps, lane=20 * Gbps, packing=False, mtu=46,
        transport="tcp:header=40",
    )  # fmt: skip
    flows = weft.Flows.of(nodes=4, src=[0, 1], dst=[2, 3], size=fabric.payload * 2000, start=0)
    run = fabric.prepare(flows, seed=1)
    run.advance()
    seen = run.observe()
    slots = int(seen.finish.max()) / fabric.slot
    assert seen.carried["arrived"] / 2 / slots > 1.5 and not any(seen.monitors.values())  # acknowledgements as many
    assert 0 < seen.sections["fabric_use"]["utilisation"] <= 1


@pytest.mark.parametrize("load", [0.3, 0.66, 0.9])
def test_no_cell_is_lost_below_full_load_and_queues_are_near_those_of_md1(load):
    """Somewhat longer: the cells of a burst enter together, eight in a slot."""
    seen = ran(Stardust(adapters=16, uplinks=8), Uniform(load=load, duration=300 * us))
    assert seen.carried["lost"] == 0 and seen.sections["fabric_use"]["paused_slots"] == 0
    use = seen.sections["fabric_use"]["utilisation"]
    theory = float(bounds.md1(use, 200) @ np.arange(201))
    assert 0.8 * theory < seen.sections["queue_cells"]["mean"] < 2.5 * theory


def test_overload_is_throttled_and_not_lost():
    seen = ran(Stardust(adapters=16, uplinks=8, link=240 * Gbps), Uniform(load=1, duration=1 * ms))
    use = seen.sections["fabric_use"]["utilisation"]
    assert seen.carried["lost"] == 0 and seen.sections["credits"]["throttled"] > 0
    assert 0.75 < use < 0.99


def test_md1_is_a_distribution_with_pollaczek_and_khinchine_s_mean():
    for load in (0.5, 0.8, 0.9):
        p = bounds.md1(load, 400)
        assert p.sum() == pytest.approx(1, abs=1e-6)
        assert p @ np.arange(401) == pytest.approx(load + load**2 / (2 * (1 - load)), rel=1e-4)


def test_packing_saves_the_cells_that_packets_one_byte_too_long_would_waste():
    frame = 1500 + 18
    fabric = Stardust(hosts=16, cell=frame // 2 + 10 - 1, header=10)
    flows = Incast(fan_in=3, bytes=300 * KB)
    packed, loose = (ran(replace(fabric, packing=way), flows).carried["entered"] for way in (True, False))
    assert 1.25 < loose / packed < 1.5  # three cells a packet against two and a little


def test_an_incast_waits_at_its_sources_and_is_served_evenly():
    fabric = Stardust(hosts=54, mtu=9000, per_source=True)
    seen = ran(fabric, Incast(fan_in=40, bytes=450 * KB))
    assert seen.lost.total == 0 and seen.sections["drops"] == {"full": 0, "late": 0}
    assert seen.finish.max() / seen.finish.min() < 1.6
    assert seen.sections["edge"]["egress_max_bytes"] < 2 * fabric.full + 20 * fabric.credit


def test_flows_of_the_upper_class_pass_the_others_where_classes_are_strict():
    flows = weft.Flows.of(nodes=16, src=[2, 4, 6], dst=[0, 0, 0], size=400 * KB, start=0, klass=[0, 0, 1])
    for classes, first in (("one", False), ("strict", True)):
        run = Stardust(hosts=16, classes=classes).prepare(flows, seed=1)
        run.advance()
        finish = run.observe().finish
        assert (finish[2] < 0.6 * finish[:2].min()) == first


def test_a_low_latency_flow_does_not_wait_for_a_credit():
    flows = weft.Flows.of(nodes=16, src=[2], dst=[12], size=1000, start=0, klass=[1])
    times = {}
    for low in (False, True):
        fabric = Stardust(hosts=16, classes="strict", low_latency=low)
        run = fabric.prepare(flows, seed=1)
        run.advance()
        times[low] = int(run.observe().finish[0])
    loop = 2 * 2 * 2 * fabric.hop * fabric.slot
    assert times[False] - times[True] >= loop - 2 * fabric.slot


def test_a_faulty_adapter_that_gives_credits_without_end_does_not_stop_the_others():
    fabric = Stardust(hosts=16, unlimited=0, mtu=9000)
    seen = ran(fabric, Permutation(duration=2 * ms))
    whole = ran(Stardust(hosts=16, mtu=9000), Permutation(duration=2 * ms))
    assert seen.lost.total == 0 and (seen.received > 0.3 * whole.received).all()


def test_a_failed_link_is_left_out_and_taken_back():
    fabric = Stardust(hosts=16, fail="uplink 0.1 at 100us until 600us", period=2 * us, rto=200 * us, mtu=9000)
    seen = ran(fabric, Permutation(duration=1200 * us))
    per_link = seen.samples["lost"]
    assert 0 < seen.lost.total == per_link[-1]
    last = np.flatnonzero(np.diff(per_link))[-1]
    assert seen.samples["time_ps"][last] < 100 * us + bounds.recovery(fabric) + 40 * us


def test_a_bundle_loses_all_its_lanes_at_once_and_reaches_fewer_adapters():
    """§2.2, §5.9: the same lanes, eight to a link."""
    lanes, bundles = Stardust(adapters=8, uplinks=16, radix=16), Stardust(adapters=8, uplinks=2, radix=4, bundle=8)
    assert lanes.link == bundles.link and lanes.lanes * lanes.rate == bundles.lanes * bundles.rate
    with pytest.raises(BadInput, match=r"^adapters under two tiers of 4 ports must be at most 8, not 9$"):
        Stardust(adapters=9, uplinks=2, radix=4, bundle=8)
    flow = weft.Flows.of(nodes=16, src=[1], dst=[15], size=1 * MB, start=1 * ms)
    least = {}
    for fabric in (lanes, bundles):
        broken = replace(fabric, fail="uplink 0.0", transport="tcp:initial_window=2000", mtu=9000)
        run = broken.prepare(flow, seed=1)
        run.advance()
        alive = np.ones(fabric.wiring.cables, bool)
        alive[0] = False
        left = fabric.wiring.routes(alive)
        least[fabric.bundle] = left.number[left.table[0, 7]] / fabric.lanes
        assert run.observe().lost.total == 0 and run.observe().finish[0] > 0
    assert 1 - least[8] == 8 * (1 - least[1])  # stardust.c33


def test_a_full_buffer_that_pauses_hosts_drops_nothing():
    flows = Incast(fan_in=12, bytes=400 * KB)
    fabric = Stardust(hosts=16, buffer=60 * KB, mtu=1500)
    dropped, paused = ran(fabric, flows), ran(replace(fabric, overflow="pause"), flows)
    assert dropped.sections["drops"]["full"] > 0 == paused.sections["drops"]["full"]
    assert paused.sections["edge"]["pauses_of_hosts"] > 0 == paused.sections["retransmissions"]
    assert paused.sections["edge"]["buffer_max_bytes"] <= 60 * KB
    assert paused.finish.max() <= dropped.finish.max()


def test_a_link_that_corrupts_cells_declares_itself_faulty_and_is_taken_back():
    """Once it is left out no more is lost, though it goes on for long; with no threshold it never is."""
    errors = "uplink 0.1 at 100us until 900us"
    fabric = Stardust(hosts=16, errors=errors, error_rate=0.2, period=2 * us, rto=200 * us, mtu=9000)
    seen, blind = (ran(replace(fabric, faulty=faulty), Permutation(duration=1500 * us)) for faulty in (3, 0))
    assert 0 < seen.lost.total < blind.lost.total / 5
    last = np.flatnonzero(np.diff(seen.samples["lost"]))[-1]
    assert seen.samples["time_ps"][last] < 100 * us + 2 * fabric.watch + bounds.recovery(fabric) + 40 * us
    moments = list(history(fabric, 1))
    assert (moments[0].time, moments[0].noisy) == (100 * us, (1,)) and moments[1].time == 110 * us
    assert next(moment for moment in moments if moment.clean).time == 900 * us
    final = next(moment.routes for moment in reversed(moments) if moment.routes is not None)
    assert (final.table == fabric.routes.table).all() and (final.number == fabric.routes.number).all()


def test_a_few_errors_below_the_threshold_exclude_nothing():
    fabric = Stardust(hosts=16, errors="uplink 0.1 at 0us until 100us", error_rate=0.001, faulty=1000)
    assert all(moment.routes is None for moment in history(fabric, 0))


def test_a_packet_for_several_takes_one_cell_of_its_adapter_s_uplinks_and_one_of_each_branch():
    """Nodes of one adapter share a cell to the end, adapters of one pod as far as its element."""
    fabric = Stardust(adapters=8, ports=4, uplinks=4, radix=8, up=4, multicast="fabric", link=50 * Gbps)
    traffic = Multicast(load=0.5, slots=3000, fanout=16)
    branching, copying = ran(fabric, traffic), ran(replace(fabric, multicast="ingress"), traffic)
    packets = branching.sections["packets_of_a_cell"]
    assert packets["offered"] == copying.sections["packets_of_a_cell"]["offered"]
    assert packets["offered"] - packets["delivered"] < 0.02 * packets["offered"] and packets["dropped"] == 0
    ours, theirs = branching.carried, copying.carried
    assert ours["entered"] < 0.2 * theirs["entered"]  # 8.5 copies on average
    assert ours["hops"] < 0.55 * theirs["hops"] and ours["copied"] > ours["entered"] > theirs["copied"] == 0
    assert not any(branching.monitors.values())


def test_bursts_are_delivered_in_order_so_that_tcp_sees_none_out_of_order():
    seen = ran(Stardust(hosts=54, mtu=1500), Permutation(bytes=1 * MB))
    assert seen.sections["retransmissions"] == 0


# bad input


@pytest.mark.parametrize(("given", "sentence"), [
    ({"credit": 100}, "credit must be from a cell, 256 bytes, to 16 MiB, not 100"),
    ({"speedup": 0.99}, "speedup must be from 1 to 100, not 0.99"),
    ({"header": 256}, "header must be smaller than the cell of 256 bytes, not 256"),
    ({"header": 300, "cell": 256}, "header must be smaller than the cell of 256 bytes, not 300"),
    ({"adapters": 100, "uplinks": 4, "radix": 8}, "adapters under two tiers of 8 ports must be at most 32, not 100"),
    ({"adapters": 30, "tiers": 1, "radix": 8}, "radix must be at least 30 for 30 adapters under one tier, not 8"),
    ({"hosts": 16, "fail": "adapter 3 at 1us"},
     "every adapter must reach every other in the end, not adapter 0 miss adapter 3 after 'adapter 3 at 1us'"),
    ({"hosts": 16, "fail": "uplink 9.0"}, "a uplink must be one of 0.0, 0.1, 1.0 … 7.1, not '9.0'"),
    ({"hosts": 1}, "hosts must be at least 2, not 1"),
    ({"bundle": 0}, "bundle must be from 1 to 1024 lanes, not 0"),
    ({"errors": "uplink 0.0 at 1us"},
     "errors must end, as in 'uplink 0.1 at 10us until 1ms', not 'uplink 0.0 at 1us'"),
    ({"error_rate": 1.5}, "error_rate must be from 0 to 1, not 1.5"),
    ({"overflow": "wait"}, "overflow must be drop or pause, not 'wait'"),
    ({"hosts": 16, "overflow": "pause", "buffer": 17_000},
     "buffer must be at least 17640 bytes where 2 hosts are paused over 500 ns, so that none is lost meanwhile, not "
     "17000"),
    ({"multicast": "tree"}, "multicast must be ingress or fabric, not 'tree'"),
    ({"multicast": "fabric", "cold": True}, "multicast must be ingress where links may fail, not 'fabric'"),
    ({"unlimited": 72}, "unlimited must be an adapter from 0 to 71, not 72"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(BadInput) as error:
        Stardust(**given)
    assert str(error.value) == sentence


def test_memory_must_suffice_for_what_is_on_its_way_when_an_element_pauses():
    fabric = Stardust(hosts=16)
    least, _ = bounds.least_depth(fabric)
    with pytest.raises(BadInput, match=rf"^depth must be at least {least} cells .* not {least - 1}$"):
        Stardust(hosts=16, depth=least - 1)


def test_pausing_as_the_last_resort_loses_nothing():
    calm = Stardust(hosts=16, fci=1 << 20, speedup=3.0)
    least, _ = bounds.least_depth(calm)
    fabric = Stardust(hosts=16, fci=1 << 20, speedup=3.0, depth=least + 1, watermark=1 << 30)
    seen = ran(fabric, Bernoulli(load=1.3, slots=6000))
    assert seen.sections["fabric_use"]["paused_slots"] > 0
    assert seen.carried["lost"] == 0 and not any(seen.monitors.values())
    assert fabric.link == 10 * Gbps


# monitors


@pytest.mark.parametrize(("law", "doctor"), [
    ("conservation", lambda state: state.links["count"].__setitem__(3, state.links["count"][3] + 1)),
    ("credits_conserved", lambda state: state.voqs["balance"].__setitem__(0, state.voqs["balance"][0] + 1)),
    ("credits_conserved", lambda state: state.voqs["want"].__setitem__(5, state.voqs["want"][5] + 1)),
    ("no_cell_lost", lambda state: state.world.__setitem__("lost_route", 1)),
    ("reassembly_bounded", lambda state: state.adapters_["most"].__setitem__(1, 1 << 30)),
    ("delivered_as_offered", lambda state: state.traffic["received"].__setitem__(0, -1)),
    ("buffer_bound", lambda state: state.adapters_["peak"].__setitem__(2, 1 << 40)),
    ("conservation", lambda state: state.world.__setitem__("landed", state.world["landed"] - 1)),
    ("conservation", lambda state: state.bursts["left"].__iadd__(1)),
])  # fmt: skip
def test_monitors_notice_a_state_that_was_doctored(law, doctor):
    fabric = Stardust(hosts=16)
    run = fabric.prepare(Incast(fan_in=9, bytes=50 * KB).draw(nodes=16, link=fabric.link, seed=1), seed=1)
    run.advance(until=40 * us)
    assert not any(run.monitors(True).values())
    doctor(run.state)
    assert run.monitors(True)[law] > 0
