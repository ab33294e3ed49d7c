"""Does the network do what its parts say?"""

import re
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from weft.errors import BadInput, MonitorTripped
from weft.fabrics.network.settings import Settings, origins, presets, settings
from weft.fabrics.packet.fabric import Packet
from weft.metrics.throughput import summary
from weft.random import below, key, words
from weft.units import KB, Gbps, ms, ns, s, us, wire_time
from weft.workload import ENDLESS, Flows, Planned

EVERY = ["tcp", "dctcp", "mptcp", "ndp", "dcqcn"]


def flow(size, **more):
    return Flows.of(nodes=2, src=[0], dst=[1], size=size, start=0, **more)


def run(fabric, flows, seed=0, until=None):
    run = fabric.prepare(flows, seed=seed)
    run.advance(until=until)
    return run.observe()


def test_a_lone_packet_takes_exactly_its_wire_times_and_delays():
    fabric = Packet(hosts=2, topology="single", link=10 * Gbps, delay=500 * ns, mtu=1500)
    seen = run(fabric, flow(1000))
    on_the_wire = 1000 + 52 + 38  # IP, TCP with timestamps, and Ethernet with preamble and gap
    assert seen.finish[0] == 2 * (wire_time(on_the_wire, 10 * Gbps) + 500 * ns)


def events_and_hops(flows):
    fabric = Packet(hosts=4, topology="single", transport="ndp", mtu=1500)
    run = fabric.prepare(flows)
    run.advance()
    return int(run.state.world["released"][0]), int(run.state.world["hops"][0])


def test_a_pacer_that_may_come_at_once_is_no_event_of_its_own():
    events, hops = events_and_hops(Flows.of(nodes=4, src=[0], dst=[1], size=2000, start=0))  # two packets, one pull
    assert events == hops
    # in step, each of two pacers might overtake what else is due in its picosecond
    events, hops = events_and_hops(Flows.of(nodes=4, src=[0, 2], dst=[1, 3], size=2000, start=0))
    assert events == hops + 2


def test_the_smallest_packet_is_padded():
    fabric = Packet(hosts=2, topology="single", transport="ndp", delay=0, link=10 * Gbps)
    assert run(fabric, flow(1)).finish[0] == 2 * wire_time(1 + 46 + 38, 10 * Gbps)
    tiny = replace(fabric, transport="ndp:header=20")
    assert run(tiny, flow(1)).finish[0] == 2 * wire_time(84, 10 * Gbps)


@pytest.mark.parametrize("transport", EVERY)
def test_no_flow_is_faster_than_the_ideal_and_all_arrive(transport):
    fabric = Packet(hosts=16, transport=transport, mtu=1500)
    flows = Flows.of(
        nodes=16, src=np.arange(64) % 16, dst=(np.arange(64) * 7 + 3) % 16, size=1 + np.arange(64) * 3000, start=0
    )
    seen = run(fabric, flows)
    assert (seen.finish > 0).all()
    assert (seen.finish - flows.start >= fabric.ideal(flows)).all()
    assert_array_equal(seen.received, flows.size)
    assert set(seen.monitors.values()) == {0}


@pytest.mark.parametrize("transport", EVERY)
def test_a_lone_flow_is_close_to_the_ideal(transport):
    fabric = Packet(hosts=16, transport=transport, mtu=9000, initial_window=200)
    flows = Flows.of(nodes=16, src=[0], dst=[15], size=1_000_000, start=0)
    # the ideal lets the short last packet pass those before it, as on another path; on one path it waits for five
    assert run(fabric, flows).finish[0] <= fabric.ideal(flows)[0] + 5 * wire_time(9038, 10 * Gbps)


def test_a_run_in_pieces_is_the_same_run():
    fabric = Packet(hosts=16, transport="dctcp", mark=3)
    flows = Flows.of(nodes=16, src=np.arange(15) + 1, dst=[0] * 15, size=80_000, start=0)
    whole = run(fabric, flows)
    pieces = fabric.prepare(flows)
    for until in (100 * us, 101 * us, 400 * us):
        pieces.advance(until=until)
    pieces = fabric.thaw(flows, pieces.freeze())
    pieces.advance()
    assert pieces.observe().fingerprint == whole.fingerprint


def test_the_same_seed_gives_the_same_fingerprint_and_another_seed_another():
    fabric = Packet(hosts=16, transport="ndp")
    flows = Flows.of(nodes=16, src=np.arange(15) + 1, dst=[0] * 15, size=80_000, start=0)
    assert run(fabric, flows, 1).fingerprint == run(fabric, flows, 1).fingerprint != run(fabric, flows, 2).fingerprint


def test_memory_holds_live_flows_only():
    fabric = Packet(hosts=16, transport="tcp")
    count = 2000
    flows = Flows.of(
        nodes=16, src=np.arange(count) % 16, dst=(np.arange(count) + 5) % 16, size=3000, start=np.arange(count) * 2 * us
    )
    run = fabric.prepare(flows)
    run.advance()
    assert (run.state.traffic["finish"] > 0).all()
    assert len(run.state.flows) == 256 and run.state.world["used_slots"][0] < 200


def test_ecn_marks_above_the_threshold_and_keeps_the_queue_there():
    fabric = Packet(hosts=3, topology="single", transport="dctcp", mark=20, buffer=200, initial_window=2)
    flows = Flows.of(nodes=3, src=[0, 1], dst=[2, 2], size=[ENDLESS] * 2, start=0)
    seen = run(fabric, flows, until=20 * ms)
    assert seen.sections["marks"] > 0 and sum(seen.sections["drops"].values()) == 0
    assert seen.queue.max < 60
    assert summary(fabric, flows, seen)["per_destination_gbps"]["mean"] > 0.98 * 10 * 1448 / 1538


def test_ndp_loses_no_header_in_the_published_set_up_and_fills_the_link():
    fabric = Packet(hosts=128, topology="single", transport="ndp", mtu=9000)
    flows = Flows.of(nodes=128, src=np.arange(100) + 1, dst=[0] * 100, size=450 * KB, start=0)
    seen = run(fabric, flows)
    assert sum(seen.sections["drops"].values()) == 0
    assert seen.sections["trims"] > 0 and seen.sections["timeouts"] == 0
    least = wire_time(100 * (50 * 9038 + 2300 + 84), 10 * Gbps)
    assert seen.finish.max() < 1.05 * least


def test_pause_keeps_a_lossless_network_lossless():
    fabric = Packet(hosts=16, transport="dcqcn:mark_from=0", mtu=1500)
    flows = Flows.of(nodes=16, src=np.arange(15) + 1, dst=[0] * 15, size=500 * KB, start=0)
    seen = run(fabric, flows)
    assert seen.sections["pauses"] > 0
    assert sum(seen.sections["drops"].values()) == 0 and seen.sections["retransmissions"] == 0


def test_a_ring_of_pauses_is_reported_as_a_deadlock(tmp_path):
    ring = tmp_path / "ring.csv"
    ring.write_text("".join(f"h{k},s{k},10Gbps,1us\ns{k},s{(k + 1) % 5},10Gbps,1us\n" for k in range(5)))
    fabric = Packet(hosts=5, topology=str(ring), transport="dcqcn:mark_from=0,xoff=2,xon=1", mtu=1500)
    flows = Flows.of(nodes=5, src=range(5), dst=[(k + 2) % 5 for k in range(5)], size=[ENDLESS] * 5, start=0)
    with pytest.raises(MonitorTripped) as error:
        run(fabric, flows, until=20 * ms)
    said = re.fullmatch(
        r"freedom from deadlock must hold at all times, not be broken 10 times by (\S+) us", str(error.value)
    )
    assert said and float(said[1]) < 1000  # five ports of the ring, and five hosts behind them


@pytest.mark.parametrize("transport", EVERY)
def test_traffic_survives_a_failed_link_once_routes_have_changed(transport):
    fabric = Packet(
        hosts=16, transport=transport, converge=100 * us, rto=ms,
        fail="link edge0.0-agg0.0 at 50us, switch core1.0 at 60us",
    )  # fmt: skip
    flows = Flows.of(nodes=16, src=np.arange(16), dst=(np.arange(16) + 8) % 16, size=300_000, start=0)
    seen = run(fabric, flows, until=200 * ms)
    assert (seen.finish > 0).all()
    assert seen.sections["drops"]["link_down"] > 0


def test_ndp_leaves_a_dead_path_out_before_routes_have_changed():
    """Core 0.0 is dead for all of the run, and nobody tells the switches."""
    flows = Flows.of(nodes=16, src=np.arange(4), dst=np.arange(4) + 12, size=2_000_000, start=0)
    seen = {}
    for scoreboard in ("true", "false"):
        transport = f"ndp:scoreboard={scoreboard}"
        fabric = Packet(hosts=16, transport=transport, fail="switch core0.0 at 1us", converge=1 * s)
        seen[scoreboard] = run(fabric, flows)
    assert (seen["true"].finish > 0).all() and (seen["false"].finish > 0).all()
    assert seen["true"].sections["retransmissions"] < seen["false"].sections["retransmissions"]
    assert seen["true"].finish.mean() < 0.7 * seen["false"].finish.mean()


def test_ndp_goes_on_when_the_last_pull_was_lost():
    """Both ways to host 1 are dark while its pulls are due: nothing is in flight, and nobody would speak again."""
    flows = Flows.of(nodes=2, src=[0], dst=[1], size=200_000, start=0)
    fabric = Packet(hosts=2, topology="single", transport="ndp", mtu=9000, fail="link h1-switch at 60us until 300us")
    seen = run(fabric, flows, until=100 * ms)
    assert seen.finish[0] > 0 and seen.sections["timeouts"] > 0


@pytest.mark.parametrize("delay", [500 * ns, 5 * us])
def test_ndp_needs_no_timeout_where_nothing_is_lost(delay):
    """A pull may overtake its NACK, and is not wasted then."""
    fabric = Packet(hosts=16, transport="ndp", buffer=4, initial_window=20, delay=delay)
    for seed in range(5):
        draw = words(key(seed, 1), 1200).reshape(4, 300)
        src = below(draw[0], 16)
        dst = (src + 1 + below(draw[1], 15)) % 16
        flows = Flows.of(nodes=16, src=src, dst=dst, size=1 + below(draw[2], 60_000), start=below(draw[3], 400 * us))
        seen = run(fabric, flows, seed).sections
        assert seen["trims"] > 0 and sum(seen["drops"].values()) == 0
        assert seen["timeouts"] == 0


def test_a_shared_buffer_gives_a_lone_incast_more_room_than_its_port_has():
    """Six of seven ports are idle; with half of what is free, one port may hold 7/3 of its own buffer."""
    flows = Flows.of(nodes=7, src=np.arange(6) + 1, dst=[0] * 6, size=300_000, start=0)
    for transport in ("tcp", "dctcp"):
        fabric = Packet(hosts=7, topology="single", transport=f"{transport}:mark_from=0", buffer=20, initial_window=30)
        own, shared = run(fabric, flows), run(replace(fabric, transport=f"{fabric.transport},share=0.5"), flows)
        assert own.queue.max <= 20
        assert 40 <= shared.queue.max <= 47


def test_second_half_throughput_leaves_the_start_out():
    fabric = Packet(hosts=2, topology="single", transport="tcp", mtu=9000, link=10 * Gbps)
    seen = run(fabric, flow(ENDLESS), until=10 * ms)
    assert summary(fabric, flow(ENDLESS), seen)["per_destination_gbps"]["mean"] == pytest.approx(
        10 * 8948 / 9038, rel=0.01
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hosts": 1}, "hosts must be at least 2, not 1"),
        ({"link": 0}, "link must be more than 0, not 0"),
        ({"mtu": 40}, "mtu must be more than the header, 52, not 40"),
        (
            {"transport": "dctcp", "mark": 200},
            "mark_from, where ECN marks, must be at most the buffer, 100 packets, not 200",
        ),
        ({"transport": "tcp:rto=1ms"},
         "a setting of tcp must be one that transports have, not 'rto' (near it: rto_min, rto_max)"),
        ({"transport": "dcqcn:headroom=2KB"},
         "headroom must be at least 7198 bytes (7.198 KB) for this link, delay and MTU, not 2000"),
        (
            {"fail": "link edge0.0-core0.0 at 1us"},
            "there must be a link edge0.0-core0.0 to fail, but the topology has none",
        ),
        ({"fail": "edge0.0"},
         "a failure must look like link A-B at 10us until 2ms, switch A at 1ms, node 3 at 1ms or links 5% at 1ms, "
         "not 'edge0.0'"),
        ({"transport": "ndq"}, "transport must be a known preset, not 'ndq': near it are ndp, dcqcn"),
        ({"hosts": 16, "link": 1000, "buffer": 10**6},
         "a full buffer must be sent and cross the network within 26 days, not in 142.4: 1,000,000 packets at 1 Kbps"),
        ({"hosts": 16, "delay": 10**18},
         "a full buffer must be sent and cross the network within 26 days, not in 416.7: 100 packets at 10 Gbps"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_said(parameters, message):
    with pytest.raises(BadInput) as error:
        Packet(**{"hosts": 16, **parameters})
    assert str(error.value) == message


def test_every_preset_can_be_built_and_names_its_source():
    for name, values in presets().items():
        assert isinstance(settings(name), Settings)
        assert len(values["source"]) > 20


@pytest.mark.parametrize("name", presets())
def test_no_value_of_a_preset_is_without_an_origin(name):
    where = origins(name)
    assert set(where) == {field.name for field in fields(Settings)} - {"transport", "source"}
    assert min(map(len, where.values())) >= len("assumed")
    own = {key for key in presets()[name] if key not in ("transport", "source", "from")}
    assert own <= set(presets()[name].get("from", {}))


def test_a_preset_changes_what_it_names_and_a_change_on_top_wins():
    assert settings("ndp@shoal-nsdi19").initial_window == 35
    assert settings("ndp@shoal-nsdi19").prefer == settings("ndp").prefer
    assert settings("ndp@shoal-nsdi19:initial_window=9,rto_min=2ms").rto_min == 2 * ms


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "ndp"])
def test_memory_is_predicted_from_a_count(transport):
    fabric = Packet(hosts=128, transport=transport)
    flows = Flows.of(nodes=128, src=np.arange(128), dst=(np.arange(128) + 1) % 128, size=[ENDLESS] * 128, start=0)
    run = fabric.prepare(flows)
    run.advance(until=500 * us)
    taken = sum(array.nbytes for array in vars(run.state).values())
    assert taken / 2 < fabric.memory(flows) < 8 * taken
    assert fabric.memory(Planned(128)) < fabric.memory(Planned(128, 10**6))


def test_dcqcn_runs_over_ports_that_pause_nobody():
    """Its NIC waits while two packets are on the port, and a drop-tail port never says when they have left."""
    flows = Flows.of(nodes=3, src=[0], dst=[2], size=60_000, start=0)
    fabric = Packet(hosts=3, topology="single", delay=10 * us, transport="dcqcn:queue=droptail,mark_all=20")
    run = fabric.prepare(flows, seed=1)
    run.advance(until=5 * ms)
    assert 0 < run.observe().finish[0] < 100 * us
