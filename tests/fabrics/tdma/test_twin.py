"""The kernel against its twin, which has the real manager and agents, and both against packets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import waiting
from weft.engine import fingerprint
from weft.engine.series import Series
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.kernel import DONE
from weft.fabrics.tdma.packets import Window, carry
from weft.fabrics.tdma.reference import Room
from weft.fabrics.tdma.state import Count
from weft.units import KB, MB, Gbps, Mbps, ms, us, wire_time
from weft.workload.flows import Flows

END = 400 * ms


def drawn(nodes, seed, count=30, most=2 * MB, span=20 * ms):
    """Flows of all sizes between random hosts."""
    rng = np.random.default_rng(seed)
    src = rng.integers(0, nodes, count)
    dst = (src + rng.integers(1, nodes, count)) % nodes
    size = rng.integers(1, most, count)
    size[rng.random(count) < 0.2] = rng.integers(1, 3000, (rng.random(count) < 0.2).sum() or 1)[0]
    return Flows.of(nodes=nodes, src=src, dst=dst, size=size, start=np.sort(rng.integers(0, span, count)))


def ran(fabric, flows, seed, budget=1 << 40):
    """A run to its end by the kernel, in steps that stop at failures."""
    core = fabric.prepare(flows, seed=seed)
    while True:
        stop = END if core.next_change is None else min(END, core.next_change)
        why = core.step(stop, budget)
        if why == DONE or (stop == END and why == 0):
            return core
        if why == 0:
            core.change()


def same(core, room):
    """Whether kernel and twin saw the same, to the last bit."""
    count = core.state.count
    assert core.state.finish.tolist() == room.finish
    assert fingerprint.show(core.state.fingerprint) == str(room.print_)
    pairs = {Count.OVERLAPS: room.overlaps, Count.INTERLEAVED: room.interleaved, Count.QUEUE: room.queue,
             Count.DROPPED: room.dropped, Count.STRANDED: room.stranded, Count.SENT: room.sent, Count.CUT: room.cut,
             Count.SHARED: room.shared, Count.GIVEN: room.granted, Count.ABSENT: room.absent,
             Count.BEYOND: room.beyond, Count.UNUSED: room.unused}  # fmt: skip
    assert {k.name: int(count[k]) for k in pairs} == {k.name: value for k, value in pairs.items()}
    for p, lines in enumerate(core.state.lines.tolist()):
        for (busy, idle, *_), line in zip(lines, (room.links.lines[p], room.aside[p]), strict=True):
            assert busy - idle == line.until(1 << 62)


CASES = {
    "switch": dict(nodes=6),
    "tree": dict(nodes=9, topology="tree"),
    "cut through": dict(nodes=5, switching="cut"),
    "no guard": dict(nodes=6, guard=0, topology="tree"),
    "tiny buffer": dict(nodes=6, guard=1 * us, topology="tree", buffer=10 * KB, jitter=50 * us),
    "software": dict(nodes=5, reaction="software", permit=600 * us),
    "lossy": dict(nodes=6, loss=0.1),
    "sockets": dict(nodes=5, send_buffer=100 * KB),
    "slow readers": dict(nodes=4, receive_buffer=500 * KB, reading=500 * Mbps),
    "old reports": dict(nodes=5, lead=3, age=2, compute=500 * us),
    "late schedules": dict(nodes=5, compute=2 * ms),
    "skewed": dict(nodes=9, topology="tree", skew=5 * us, drift=1000),
    "one NIC": dict(nodes=9, topology="tree", nics=1),
    "inside": dict(nodes=4, inside=True, mtu=1500),
    "greedy": dict(nodes=8, topology="leafspine", scheduler="greedy"),
    "bvn": dict(nodes=5, scheduler="bvn"),
    "short": dict(nodes=6, topology="tree", short=100 * KB, reserve=1 * Gbps),
    "dead host": dict(nodes=5, fail="node 2 at 15ms until 60ms", silence=2),
    "dead manager": dict(nodes=5, fail="manager 0 at 30ms until 45ms"),
    "standby": dict(nodes=5, fail="manager 0 at 30100us", patience=2 * ms),
    "slow hosts": dict(nodes=7, slow=3),
    "slow hosts in turn": dict(nodes=8, slow=4, scheduler="greedy"),
    "small flows meet": dict(nodes=8, scheduler="greedy", share=300 * KB),
    "small flows meet on a tree": dict(nodes=9, topology="tree", scheduler="greedy", share=200 * KB, switching="cut"),
    "spilling": dict(nodes=6, slow=2, scheduler="greedy", share=400 * KB, spill=True),
    "a small buffer": dict(nodes=6, slow=2, scheduler="greedy", share=30 * KB, buffer=30 * KB, jitter=20 * us),
    "writers": dict(nodes=5, writing=2 * Gbps, send_buffer=300 * KB),
    "writers that guess": dict(nodes=5, writing=500 * Mbps, estimate="trend"),
    "deadlines": dict(nodes=6, scheduler="greedy", urgent=100 * KB, deadline=12 * ms, share=100 * KB),
    "link": dict(nodes=9, topology="tree", fail="link edge0-root at 12ms until 50ms", silence=2),
    "core": dict(
        nodes=16, topology="fattree", scheduler="greedy", converge=25 * ms, fail="switch core0.0 at 10100us until 40ms"
    ),
    "host link": dict(
        nodes=6,
        fail="link h2-switch at 10500us until 60ms",
        silence=2,
        short=3 * KB,
        reserve=1 * Gbps,
        converge=20 * ms,
    ),
    "links and managers": dict(
        nodes=16,
        topology="fattree",
        scheduler="greedy",
        patience=2 * ms,
        converge=500 * us,
        fail="switch agg0.1 at 10500us, manager 0 at 30ms, node 1 at 31ms until 40ms",
    ),
    "in band": dict(nodes=6, inband=True),
    "in band on a tree": dict(nodes=9, topology="tree", inband=True, loss=0.02, mtu=1500),
    "in band, slow hosts": dict(nodes=6, slow=2, inband=True, switching="cut", guard=2 * us, jitter=30 * us),
    "reserved on slow hosts": dict(nodes=6, slow=2, short=50 * KB, reserve=500 * Mbps),
}


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_sends_what_its_twin_sends(case):
    for seed in range(2):
        fabric = TDMA(**CASES[case])
        flows = drawn(fabric.nodes, seed, **({"count": 120, "most": 80 * KB} if fabric.share else {}))
        room = Room(fabric, flows, seed)
        room.run(END)
        core = ran(fabric, flows, seed)
        same(core, room)
        assert -1 not in room.finish, case
        assert room.shared > 2 or not fabric.share


@pytest.mark.parametrize("case", ["tree", "no guard", "cut through", "short", "small flows meet", "spilling", "core"])
def test_ports_have_sent_as_long_in_the_twin_at_every_sample(case):
    fabric = TDMA(**CASES[case])
    flows = drawn(fabric.nodes, 3, **({"count": 120, "most": 80 * KB} if fabric.share else {}))
    run, room = fabric.prepare(flows, seed=3), Room(fabric, flows, 3)
    run.series = Series(310 * us, fabric.nodes)  # in the midst of slots
    run.advance()
    samples = run.observe().samples
    kept = fabric.reserve / (fabric.network.rate + fabric.reserve)
    for time, busy in zip(samples["time_ps"].tolist(), samples["busy_ps"].tolist(), strict=True):
        room.run(time)
        for p, sent in enumerate(busy):
            slots, beside = room.links.lines[p].until(time), room.aside[p].until(time)
            assert abs(sent - (slots + (beside - slots) * kept[p])) < 1
    assert len(samples["time_ps"]) > 50 and sum(busy) > 0


@pytest.mark.parametrize("case", ["link", "core", "host link", "links and managers"])
def test_what_meets_a_link_that_is_down_is_lost_until_the_manager_knows_and_sent_again(case):
    fabric = TDMA(**CASES[case])
    room = Room(fabric, drawn(fabric.nodes, 1), 1)
    room.run(END)
    assert room.cut > 0 and -1 not in room.finish


@settings(max_examples=25, deadline=None)
@given(waiting(6, largest=600_000, latest=30 * ms, delays=(0, 0, 1, 50_000, 7_000_001, 30 * ms)),
       st.sampled_from(["switch", "short", "tree of six"]))  # fmt: skip
def test_flows_that_wait_for_flows_begin_when_those_of_the_twin_do(flows, case):
    fabric = TDMA(nodes=6, topology="tree") if case == "tree of six" else TDMA(**CASES[case])
    room, core = Room(fabric, flows, 4), ran(fabric, flows, 4)
    room.run(END)
    same(core, room)
    released = flows.released(core.state.finish)
    assert (released >= 0).all() and (core.state.finish - released >= fabric.ideal(flows)).all()


def test_flows_behind_one_that_can_never_end_are_lost_with_it():
    flows = Flows.of(nodes=5, src=[0, 1, 0, 3], dst=[1, 2, 3, 4], size=10 * KB, start=0, after=[[], [], [1], [2]])
    run = TDMA(nodes=5, fail="node 2", silence=2).prepare(flows, seed=1)
    run.advance()
    assert (run.observe().finish >= 0).tolist() == [True, False, False, False] and run.observe().lost.flows == 3


def test_where_a_step_ends_changes_nothing():
    fabric = TDMA(**CASES["lossy"])
    flows = drawn(fabric.nodes, 3)
    whole, pieces = ran(fabric, flows, 3), fabric.prepare(flows, seed=3)
    until = 0
    while pieces.finished < len(flows):
        until += 1_234_567_891
        while pieces.step(until, 17) == 1:
            pass
    assert pieces.state.finish.tolist() == whole.state.finish.tolist()
    assert pieces.state.fingerprint.tolist() == whole.state.fingerprint.tolist()


# ---------------------------------------------------------------- packets


def packets(fabric, room):
    rate = np.repeat(fabric.network.graph.rate, 2).tolist()
    windows = [
        Window(i, begin, end, size, path, min(rate[p] for p in path))
        for i, j, begin, end, size, path, _, _ in room.streams
    ]
    return carry(windows, rate=rate, mtu=fabric.mtu, overhead=fabric.overhead, delay=fabric.delay,
                 buffer=fabric.buffer, store=fabric.switching == "store")  # fmt: skip


@pytest.mark.parametrize("case", ["switch", "tree", "cut through", "software", "lossy", "inside", "skewed", "greedy",
                                  "slow hosts", "writers"])  # fmt: skip
def test_slots_that_belong_to_one_sender_are_what_their_packets_do(case):
    fabric = TDMA(**CASES[case])
    for seed in range(3):
        room = Room(fabric, drawn(fabric.nodes, seed), seed)
        room.run(END)
        assert room.interleaved == 0 and room.dropped == 0
        seen = packets(fabric, room)
        assert seen.arrived == [time for *_, time in room.streams]
        assert seen.bytes == [size for *_, size, _ in room.streams] and seen.dropped == 0


@pytest.mark.parametrize("options", [dict(nodes=6), dict(nodes=9, topology="tree"), dict(nodes=6, mtu=1500)])
def test_frames_among_data_wait_for_it_and_it_for_them_as_packets_do(options):
    """Every frame is a packet of 84 B on the wire that comes to the port by a link of its own."""
    fabric = TDMA(inband=True, **options)
    room = Room(fabric, drawn(fabric.nodes, 5), 5)
    room.run(END)
    plain = Room(TDMA(**options), drawn(fabric.nodes, 5), 5)
    plain.run(END)
    assert room.interleaved == 0 and [row[-1] for row in room.streams] != [row[-1] for row in plain.streams]
    rate, delay = np.repeat(fabric.network.graph.rate, 2).tolist(), np.repeat(fabric.network.graph.delay, 2).tolist()
    side, took = len(rate), wire_time(84, fabric.link)
    frames = [(h, c, phase) for c in range(room.cycle + 1) for phase in (0, 1) for h in range(fabric.nodes)]
    windows = [Window(i, begin, end, size, path) for i, j, begin, end, size, path, _, _ in room.streams]
    for h, c, phase in frames:
        time = room.told(h, c, phase)
        windows.append(Window(-1 - len(windows), time - took, time, 84 - fabric.overhead,
                              [side, int(fabric.network.host_port[h]) ^ 1]))  # fmt: skip
    # a link for each frame alone: they never wait for one another
    own = [window._replace(path=[side + k, window.path[1]]) if window.src < 0 else window
           for k, window in enumerate(windows)]  # fmt: skip
    rates = rate + [fabric.link] * len(windows)
    seen = carry(own, rate=rates, mtu=fabric.mtu, overhead=fabric.overhead, delay=delay + [0] * len(windows),
                 buffer=fabric.buffer, store=True)  # fmt: skip
    assert seen.dropped == 0
    count = len(room.streams)
    assert seen.arrived[:count] == [time for *_, time in room.streams]
    waits = {which: seen.arrived[count + k] - room.told(*which) - took - fabric.delay for k, which in enumerate(frames)}
    for i, _, begin, end, *_ in room.streams:
        after = (begin - fabric.guard) // fabric.cycle + 1  # the cycle whose stop ends the stream
        assert end - plain.acts(i, after, 0) == waits[i, after, 0]
    assert max(waits.values()) > fabric.packets(fabric.rate)[-1] // 2


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 20))
def test_streams_that_mingle_end_within_what_they_mingle_of_what_packets_do(seed, guard):
    fabric = TDMA(nodes=6, topology="tree", guard=guard * us, jitter=20 * us, mtu=1500)
    room = Room(fabric, drawn(6, seed, count=12), seed)
    room.run(END)
    seen = packets(fabric, room)
    longest = 60 * us  # two hosts are at most lag, jitter and frames apart
    for mine, theirs in zip([time for *_, time in room.streams], seen.arrived, strict=True):
        assert abs(mine - theirs) <= longest
    assert abs(seen.queue - room.queue) <= fabric.rate * longest // 8 // 10**12
