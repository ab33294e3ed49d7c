"""Do receivers name what they hold beyond a gap, and do senders send again what is lost and nothing else?"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput
from weft.fabrics.packet.fabric import Packet
from weft.units import Gbps, ms, ns, us
from weft.workload.flows import Flows

LOSS = "tcp:rto_min=50ms,rto_first=50ms,sack=true"


def run(fabric, flows, until=None):
    run = fabric.prepare(flows, seed=1)
    run.advance(until=until)
    return run.observe()


def receiver(blocks):
    """A state whose first subflow has received nothing, a row for its ACK, and the kernels of sack.py."""
    from hosts import calls as sack

    fabric = Packet(hosts=2, topology="single", transport=f"tcp:sack=true,blocks={blocks},max_window=64")
    run = fabric.prepare(Flows.of(nodes=2, src=[0], dst=[1], size=10**6, start=0))
    run.state.latest[:] = -1
    return run.state, sack


def arrive(state, sack, seq):
    """What tcp.on_data does with segment `seq`, and the runs that its ACK names."""
    got, sub = state.got[0], state.subs[0]
    got[seq % 64] = 1
    while got[sub["expected"] % 64]:
        got[sub["expected"] % 64] = 0
        sub["expected"] += 1
    if seq > sub["expected"]:
        sack.remember(state.world[0], 0, seq)
    state.rows["size"][0] = 90
    sack.name(state.world[0], 0, 0)
    named = int(state.rows["echo"][0])
    assert state.rows["size"][0] == 90 + (4 + 8 * named if named else 0)
    return [tuple(pair) for pair in state.options[0, : 2 * named].reshape(-1, 2).tolist()]


@settings(max_examples=40, deadline=None)
@given(order=st.permutations(range(24)), blocks=st.integers(1, 4))
def test_an_ack_names_whole_runs_the_latest_first(order, blocks):
    state, sack = receiver(blocks)
    held, firsts = set(), []  # segments that named a run first, the latest at the end
    for seq in order:
        named = arrive(state, sack, seq)
        expected = int(state.subs["expected"][0])
        held = {q for q in held | {seq} if q >= expected}
        assert len(named) <= blocks and len(set(named)) == len(named)
        for first, end in named:  # maximal, and held to the last segment
            assert set(range(first, end)) <= held
            assert first - 1 not in held and end not in held
        if seq in held:
            assert named[0][0] <= seq < named[0][1]
            firsts.append(seq)
        recency = [max(n for n, q in enumerate(firsts) if first <= q < end) for first, end in named]
        assert recency == sorted(recency, reverse=True)


def test_three_runs_are_named_three_times_each():
    """RFC 2018 §4: so that two ACKs in a row may be lost and nothing is forgotten."""
    state, sack = receiver(3)
    assert arrive(state, sack, 2) == [(2, 3)]
    assert arrive(state, sack, 4) == [(4, 5), (2, 3)]
    assert arrive(state, sack, 8) == [(8, 9), (4, 5), (2, 3)]
    assert arrive(state, sack, 12) == [(12, 13), (8, 9), (4, 5)]
    assert arrive(state, sack, 3) == [(2, 5), (12, 13), (8, 9)]
    assert arrive(state, sack, 0) == [(2, 5), (12, 13), (8, 9)]
    assert arrive(state, sack, 1) == [(12, 13), (8, 9)]


@pytest.fixture
def bottleneck(tmp_path):
    path = tmp_path / "bottleneck.csv"
    path.write_text("a,b,rate,delay\nh0,s,10Gbps,10us\nh1,s,1Gbps,10us\n")
    return Packet(hosts=2, topology=str(path), transport=LOSS, buffer=30, initial_window=30)


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_burst_that_overflows_is_repaired_without_a_timeout_and_nothing_is_sent_in_vain(bottleneck, blocks):
    flows = Flows.of(nodes=2, src=[0], dst=[1], size=400_000, start=0)
    seen = run(replace(bottleneck, transport=f"{LOSS},blocks={blocks}"), flows)
    plain = run(replace(bottleneck, transport=LOSS.replace("sack=true", "sack=false")), flows)
    assert seen.lost.causes["full"] > 30 and seen.sections["timeouts"] == 0
    assert seen.sections["retransmissions"] == seen.lost.causes["full"] and seen.carried["duplicates"] == 0
    assert (seen.finish - flows.start).max() < (plain.finish - flows.start).max() / 1.15


def lossy(transport, *moments):
    """One flow of ten segments whose last link fails for an instant at each of these moments."""
    fail = ", ".join(f"link h1-switch at {at}ns until {at + 1}ns" for at in moments)
    fabric = Packet(hosts=2, topology="single", link=10 * Gbps, delay=100 * ns, transport=transport, fail=fail)
    return run(fabric, Flows.of(nodes=2, src=[0], dst=[1], size=10 * 1448, start=0))


def first_and_last():
    """Moments at which the first and the last of ten segments, and no other, are on their last link."""
    wire = 1538 * 8 / 10  # ns
    return round(100 + 1.5 * wire), round(100 + 10.5 * wire)


def test_the_last_segment_is_rescued_when_it_was_lost_with_the_first():
    """Nothing above it arrives to tell that it is lost; NewReno sends it after the partial ACK, and so do we."""
    first, last = first_and_last()
    seen = lossy(LOSS, first, last)
    assert seen.sections["drops"]["link_down"] == 2
    assert seen.sections["timeouts"] == 0 and seen.sections["retransmissions"] == 2
    assert seen.finish[0] < 1 * ms


def test_the_last_segment_alone_waits_for_the_timeout():
    seen = lossy(LOSS, first_and_last()[1])
    assert seen.sections["timeouts"] == 1 and seen.finish[0] > 50 * ms


@pytest.mark.parametrize("blocks", [0, 5])
def test_a_number_of_blocks_that_no_option_holds_is_refused(blocks):
    with pytest.raises(BadInput) as error:
        Packet(hosts=2, topology="single", transport=f"tcp:sack=true,blocks={blocks}")
    assert str(error.value) == f"blocks must be from 1 to 4, not {blocks}"


def test_a_selective_run_in_pieces_is_the_same_run(bottleneck):
    flows = Flows.of(nodes=2, src=[0] * 300, dst=[1] * 300, size=30_000, start=np.arange(300) * 50 * us)
    whole = run(bottleneck, flows)
    pieces = bottleneck.prepare(flows, seed=1)
    for until in (300 * us, 301 * us, 9 * ms):  # more flows are alive by then than there was room for at first
        pieces.advance(until=until)
        pieces = bottleneck.thaw(flows, pieces.freeze(), seed=1)
    assert len(pieces.state.flows) > 256 or pieces.state.world["live"][0] < 256
    pieces.advance()
    assert pieces.observe().fingerprint == whole.fingerprint


def sender(arrived, *, una=0, top=40, window=1000):
    """A state whose first subflow has sent `top` segments, of which it knows that these have arrived."""
    state, sack = receiver(3)
    state.traffic["size"], state.traffic["dst"] = 10**6, 1
    state.flows["segments"][0] = state.flows["taken"][0] = top  # nothing new to send
    sub = state.subs[0]
    sub["una"], sub["nxt"], sub["top"], sub["window"] = una, top, top, window * int(state.world["payload"][0])
    sub["mended"] = sub["rescued"] = una
    sub["recover"], sub["recovering"] = top - 1, 1
    state.out[0, :] = 0
    for q in arrived:
        state.out[0, q % 64] = 1
    return state, sack


def sent(state):
    """The segments that were handed to the network, in order."""
    found, r = [], int(state.world["first_out"][0])
    while r >= 0:
        found.append(int(state.rows["seq"][r]))
        r = int(state.rows["next"][r])
    return found


@settings(max_examples=40, deadline=None)
@given(arrived=st.sets(st.integers(1, 39)))
def test_a_segment_is_lost_when_three_above_it_have_arrived(arrived):
    state, sack = sender(arrived)
    high, third = sack.heights(state.world[0], 0)
    assert high == max(arrived, default=-1)
    assert third == (sorted(arrived)[-3] if len(arrived) >= 3 else -1)
    assert sack.lost(state.world[0], 0) == (len(arrived) >= 3)


@settings(max_examples=40, deadline=None)
@given(arrived=st.sets(st.integers(1, 39), min_size=3))
def test_what_is_lost_goes_first_then_what_may_be_and_the_last_waits(arrived):
    """NextSeg's rules 1 and 3, in a window without end; `una` was sent on the way into recovery."""
    state, sack = sender(arrived)
    sack.recover(state.world[0], 0, 0)
    missing = [q for q in range(1, max(arrived)) if q not in arrived]
    assert sent(state) == missing
    assert state.subs["mended"][0] == max(missing, default=0)


def test_the_pipe_counts_what_is_sent_again_beside_what_is_not_lost():
    """Of 40 segments 0 to 29 are lost and 33 to 39 unheard of: a window of 12 leaves room for 4 beside 0 and the 7."""
    state, sack = sender({30, 31, 32}, window=12)
    sack.recover(state.world[0], 0, 0)
    assert sent(state) == [1, 2, 3, 4]


def test_what_arrived_before_a_timeout_is_known_again_after_it_and_not_sent_twice(bottleneck):
    """Slow start floods the queue, retransmissions are lost as well, and only a timeout helps."""
    flows = Flows.of(nodes=2, src=[0], dst=[1], size=400_000, start=0)
    seen = {}
    for sack in ("true", "false"):
        transport = f"tcp:rto_min=5ms,rto_first=5ms,sack={sack}"
        seen[sack] = run(replace(bottleneck, transport=transport, buffer=10, initial_window=60), flows)
    assert seen["true"].sections["timeouts"] > 0 and seen["false"].sections["timeouts"] > 0
    assert 2 * seen["true"].carried["duplicates"] < seen["false"].carried["duplicates"]
