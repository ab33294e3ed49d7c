"""Do subflows grow together, and does data leave a path that no longer delivers it?"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.fabrics.network.settings import settings as preset
from weft.fabrics.packet.fabric import Packet
from weft.units import Gbps, ms, s, us
from weft.workload.flows import ENDLESS, Flows


def run(fabric, flows, until=None):
    run = fabric.prepare(flows, seed=1)
    run.advance(until=until)
    return run.observe()


@settings(max_examples=40, deadline=None)
@given(
    windows=st.lists(st.integers(1, 500), min_size=4, max_size=4),
    rtts=st.lists(st.integers(0, 5000), min_size=4, max_size=4),
    newly=st.integers(1, 8),
)
def test_windows_grow_as_rfc_6356_says(windows, rtts, newly):
    """RFC 6356 §3, in its own words: alpha and the total window, bytes acknowledged times the segment size."""
    from hosts import calls as mptcp

    fabric = Packet(hosts=2, topology="single", transport="mptcp:subflows=4")
    run = fabric.prepare(Flows.of(nodes=2, src=[0], dst=[1], size=10**6, start=0))
    segment = fabric.payload
    run.state.subs["window"][:4] = np.array(windows) * segment
    run.state.subs["rtt"][:4] = np.array(rtts) * us
    before = int(run.state.subs["window"][0])
    mptcp.grow(run.state.world[0], 0, 0, newly)
    gained = int(run.state.subs["window"][0]) - before + run.state.subs["credit"][0] / 65536

    known = [(w * segment, r * us) for w, r in zip(windows, rtts, strict=True) if r]
    own = newly * segment * segment / before
    if known:
        total = sum(w for w, _ in known)
        alpha = total * max(w / r**2 for w, r in known) / sum(w / r for w, r in known) ** 2
        own = min(own, alpha * newly * segment * segment / total)
    assert gained == pytest.approx(own, abs=2**-15)


def dying(reinject, subflows=4):
    """A flow of which one path dies after 100 us and comes back after 80 ms, and no switch learns of it."""
    fabric = Packet(
        hosts=16, transport=f"mptcp:subflows={subflows},reinject={reinject}", converge=1 * s,
        fail="switch core0.0 at 100us until 80ms",
    )  # fmt: skip
    return run(fabric, Flows.of(nodes=16, src=[0], dst=[15], size=2_000_000, start=0), until=200 * ms)


def test_what_a_dead_path_held_arrives_by_another_after_the_timeout():
    seen = dying("true")
    assert 10 * ms < seen.finish[0] < 11 * ms  # the least timeout, and what was left to send
    assert seen.sections["timeouts"] == 1 and seen.carried["reinjected"] > 10
    assert seen.received[0] == 2_000_000


def test_without_reinjection_a_flow_waits_for_its_path():
    seen = dying("false")
    assert seen.finish[0] > 80 * ms
    assert seen.carried["reinjected"] == 0


def test_a_lone_subflow_has_nobody_to_send_for_it():
    """Of one subflow everything is owed by the others, of whom there are none."""
    fail = "link h1-switch at 30us until 5ms"
    fabric = Packet(hosts=2, topology="single", transport="mptcp:subflows=1,reinject=true", fail=fail)
    seen = run(fabric, Flows.of(nodes=2, src=[0], dst=[1], size=200_000, start=0))
    assert 10 * ms < seen.finish[0] < 12 * ms and seen.carried["reinjected"] == 0


def test_a_flow_that_has_arrived_is_over_though_one_of_its_paths_is_dead():
    fail = "switch core0.0 at 100us until 80ms"
    fabric = Packet(hosts=16, transport="mptcp:subflows=4,reinject=true", converge=1 * s, fail=fail)
    flows = Flows.of(nodes=16, src=[0], dst=[15], size=2_000_000, start=0)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=20 * ms)
    assert run.state.world["live"][0] == 0 and run.state.flows["id"][0] == -1


@pytest.fixture
def uneven(tmp_path):
    """A fast path and a slow one whose round trip is a hundred times as long."""
    path = tmp_path / "two.csv"
    links = ("h0,s,20Gbps,1us", "s,a,10Gbps,1us", "s,b,1Gbps,200us", "a,t,10Gbps,1us", "b,t,1Gbps,200us")
    path.write_text("\n".join(("a,b,rate,delay", *links, "t,h1,20Gbps,1us")) + "\n")
    return Packet(hosts=2, topology=str(path), link=20 * Gbps, transport="mptcp:subflows=2,receive_window=100")


LONG = Flows.of(nodes=2, src=[0], dst=[1], size=20_000_000, start=0)


def test_no_segment_is_beyond_the_receive_window(uneven):
    run = uneven.prepare(LONG, seed=1)
    spread = []
    for until in range(100 * us, 10 * ms, 100 * us):
        run.advance(until=until)
        spread.append(int(run.state.flows["taken"][0] - run.state.flows["acked"][0]))
    assert max(spread) == 100  # it is reached, and never passed


def test_what_holds_a_small_receive_window_up_is_sent_again_and_its_subflow_slowed(uneven):
    """NSDI '12 §4.2: retransmission alone costs bandwidth and losses, the penalty keeps it from being needed."""
    plain = run(uneven, LONG)
    hasty = run(replace(uneven, transport=f"{uneven.transport},opportunistic=true"), LONG)
    fair = run(replace(uneven, transport=f"{uneven.transport},opportunistic=true,penalise=true"), LONG)
    assert plain.carried["reinjected"] == 0
    assert hasty.finish[0] < 0.9 * plain.finish[0] and fair.finish[0] < 0.9 * plain.finish[0]
    assert fair.carried["reinjected"] < hasty.carried["reinjected"] / 10
    assert sum(fair.sections["drops"].values()) < sum(hasty.sections["drops"].values())
    # what arrived twice is not counted twice
    assert hasty.received[0] == 20_000_000 and hasty.carried["duplicates"] > 0


def test_linux_reinjects_and_the_papers_simulator_did_not():
    assert preset("mptcp@nsdi12").ordered
    assert not preset("mptcp").ordered and not preset("mptcp@stardust-nsdi19").ordered
    assert not preset("tcp:reinject=true").ordered


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("receive_window=-1", "receive_window must be from 0 to 1048576 segments, not -1"),
        ("penalise=true", "penalise must come with opportunistic, whose retransmissions it follows, not alone"),
    ],
)
def test_what_cannot_be_meant_is_said(change, message):
    with pytest.raises(BadInput) as error:
        Packet(hosts=2, topology="single", transport=f"mptcp:{change}")
    assert str(error.value) == message


def test_eight_subflows_together_grow_less_than_one_of_them_apart():
    """Without a loss, past slow start: apart, each grows by a segment a round trip."""
    grown = {}
    for coupled in ("true", "false"):
        transport = f"mptcp:subflows=8,coupled={coupled},threshold=4,initial_window=4"
        fabric = Packet(hosts=2, topology="single", transport=transport, buffer=5000, delay=25 * us)
        run = fabric.prepare(Flows.of(nodes=2, src=[0], dst=[1], size=ENDLESS, start=0), seed=1)
        run.advance(until=6 * ms)
        grown[coupled] = run.state.subs["window"][:8].sum() / fabric.payload - 8 * 4
    assert 0 < grown["true"] < grown["false"] / 8


def test_slow_start_ends_at_the_threshold():
    """Without one, a window doubles until a queue overflows."""
    flows = Flows.of(nodes=3, src=[0, 1], dst=[2, 2], size=300_000, start=0)
    fabric = Packet(hosts=3, topology="single", transport="tcp", buffer=60, initial_window=2)
    reckless, careful = run(fabric, flows), run(replace(fabric, transport="tcp:threshold=15"), flows)
    assert reckless.sections["drops"]["full"] > 0 == careful.sections["drops"]["full"]


def three_subflows(**changes):
    """A flow of 20 segments of which subflow 0 has sent the first six and the others none, and the kernels."""
    from hosts import calls as mptcp

    settings_ = ",".join(("subflows=3", "reinject=true", *(f"{name}={value}" for name, value in changes.items())))
    fabric = Packet(hosts=2, topology="single", transport=f"mptcp:{settings_}")
    run = fabric.prepare(Flows.of(nodes=2, src=[0], dst=[1], size=20 * fabric.payload, start=0))
    run.state.flows["segments"][0] = 20
    for _ in range(6):
        assert take(run.state, mptcp, 0) is not None
    return run.state, mptcp


def take(state, mptcp, k):
    """The segment of the flow that subflow k sends next, or None."""
    if not mptcp.take(state.world[0], 0, k):
        return None
    sub = state.subs[k]
    sub["nxt"] += 1
    sub["top"] = sub["nxt"]
    return int(state.carries[k, sub["nxt"] - 1])


def test_what_is_owed_goes_before_new_segments_the_lowest_first_and_not_to_its_debtor():
    state, mptcp = three_subflows()
    mptcp.give_up(state.world[0], 0, 0)
    assert state.flows["owed"][0] == 6
    assert [take(state, mptcp, k) for k in (1, 2, 0, 1)] == [0, 1, 6, 2]
    mptcp.give_up(state.world[0], 0, 0)  # 0, 1 and 2 are in other hands; 6 is new to it
    assert state.flows["owed"][0] == 4
    assert [take(state, mptcp, 2) for _ in range(5)] == [3, 4, 5, 6, 7]
    assert state.flows["owed"][0] == 0


def test_an_ack_takes_back_what_was_owed():
    state, mptcp = three_subflows()
    mptcp.give_up(state.world[0], 0, 0)
    state.rows["seq"][0], state.options[0, 8] = 2, 1  # subflow 0 has delivered two, and the flow is complete up to one
    assert not mptcp.heed(state.world[0], 0, 0, 0)
    assert (state.flows["owed"][0], state.flows["acked"][0]) == (4, 1)
    assert [take(state, mptcp, 1) for _ in range(2)] == [2, 3]


def test_a_full_receive_window_is_hastened_once_and_opens_with_the_data_ack():
    state, mptcp = three_subflows(receive_window=6, opportunistic="true")
    assert [take(state, mptcp, k) for k in (0, 1, 2)] == [None, 0, None]  # who bears it need not, and once is enough
    state.rows["seq"][0], state.options[0, 8] = 1, 2
    assert mptcp.heed(state.world[0], 0, 1, 0)
    assert [take(state, mptcp, 2) for _ in range(3)] == [6, 7, 2]
