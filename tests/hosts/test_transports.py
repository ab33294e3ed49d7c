"""Does each transport compute what its source says? One rule at a time, by formula, on drawn numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hosts import calls
from hosts.ideal import Ideal, lay_out, run
from weft.units import Gbps, Mbps, us, wire_time
from weft.workload.flows import Flows

some = settings(max_examples=40, deadline=None)


def one_flow(transport, size=10**6):
    return lay_out(Ideal(hosts=2, transport=transport), Flows.of(nodes=2, src=[0], dst=[1], size=size, start=0))


@some
@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=12))
def test_the_timeout_is_that_of_rfc_6298(rtts):
    """In whole picoseconds, so to some of them: SRTT 1/8, RTTVAR 1/4, RTO = SRTT + 4 RTTVAR between its limits."""
    arrays = one_flow("tcp:rto_min=1us,rto_max=100ms")
    smoothed = variance = None
    for rtt in rtts:
        calls.sample_rtt(arrays.world[0], 0, rtt)
        if smoothed is None:
            smoothed, variance = float(rtt), rtt / 2
        else:
            variance += (abs(smoothed - rtt) - variance) / 4
            smoothed += (rtt - smoothed) / 8
    expected = min(max(smoothed + 4 * variance, 10**6), 10**11)
    assert int(arrays.subs["rto"][0]) == pytest.approx(expected, abs=10 * len(rtts))


@some
@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=20))
def test_dctcp_cuts_by_half_of_alpha_once_a_window(acks):
    """RFC 8257 §3.3, with every ACK ending a window: alpha follows the marked share, and each marked window is cut."""
    arrays = one_flow("dctcp")
    sub, payload = arrays.subs[0], int(arrays.world["payload"][0])
    sub["alpha"], sub["window"] = 1 << 20, 10**7
    alpha, window = 1.0, float(10**7)
    for newly, marked in acks:
        sub["una"] = sub["nxt"] = sub["una"] + newly
        may_grow = calls.react(arrays.world[0], 0, newly, marked)
        alpha += ((1.0 if marked else 0.0) - alpha) / 16
        if marked:
            window = max(window * (1 - alpha / 2), payload)
        assert may_grow != marked
        assert sub["alpha"] / (1 << 20) == pytest.approx(alpha, abs=1e-4)
        assert int(sub["window"]) == pytest.approx(window, rel=1e-3, abs=2)


@some
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=2, max_size=8))
def test_ndp_leaves_paths_out_that_fail_twice_as_often_as_all_and_never_every_path(scores):
    scores = [(tried + failed, failed) for tried, failed in scores]
    arrays = lay_out(Ideal(hosts=2, transport="ndp"), Flows.of(nodes=2, src=[0], dst=[1], size=10**6, start=0))
    score = arrays.score
    if len(scores) > score.shape[1]:
        arrays.score = score = type(score)((score.shape[0], len(scores), 3), score.dtype)
        arrays.world["paths"] = len(scores)
        arrays.world["score_at"], arrays.world["score_size"] = score.ctypes.data, len(score)
    score[0, :, :] = [(tried, failed, 0) for tried, failed in scores]
    calls.judge(arrays.world[0], 0, len(scores))
    tried, failed = (sum(column) for column in zip(*scores, strict=True))
    expected = [int(bad >= 4 and bad * tried > 2 * failed * of) for of, bad in scores]
    assert score[0, :, 2].tolist() == expected
    assert not all(expected)
    halved = tried >= 16 * len(scores)
    assert score[0, :, 0].tolist() == [of // 2 if halved else of for of, _ in scores]


def dcqcn():
    arrays = one_flow("dcqcn:fast_rounds=5,rate_step=40Mbps,rate_leap=400Mbps")
    sub = arrays.subs[0]
    sub["rate"] = sub["target"] = 10 * Gbps
    sub["alpha"] = 1 << 20
    for name in ("timer", "timer_alpha", "timer_raise", "timer_wait"):
        sub[name] = -1
    arrays.world["alive"], arrays.world["used"] = 1, 1  # row 0 is the packet or timer at hand
    return arrays, sub


def test_dcqcn_halves_its_rate_on_a_first_cnp_and_recovers_by_halves_of_the_distance():
    """SIGCOMM '15 eq. (1) and (3): alpha is 1 at first; five rounds of fast recovery, then additive increase."""
    arrays, sub = dcqcn()
    calls.on_cnp(arrays.world[0], 0)
    assert (sub["target"], sub["rate"]) == (10 * Gbps, 5 * Gbps)
    rate = 5 * Gbps
    for _ in range(4):
        calls.on_raise(arrays.world[0], 0)
        rate = (10 * Gbps + rate + 1) // 2
        assert (sub["target"], sub["rate"]) == (10 * Gbps, rate)
    sub["target"] = 5 * Gbps
    calls.on_raise(arrays.world[0], 0)  # the fifth expiry: no longer fast
    assert sub["target"] == 5 * Gbps + 40 * Mbps


@some
@given(st.integers(0, 1 << 20), st.integers(1, 200))
def test_dcqcn_forgets_congestion_by_a_256th_of_alpha_each_time(alpha, times):
    arrays, sub = dcqcn()
    sub["alpha"] = alpha
    for _ in range(times):
        calls.on_alpha(arrays.world[0], 0)
        alpha -= alpha >> 8
        assert sub["alpha"] == alpha


@some
@given(st.integers(0, 30), st.integers(0, 30))
def test_dcqcn_leaps_only_when_timer_and_bytes_have_both_left_fast_recovery(timer, counted):
    arrays, sub = dcqcn()
    sub["rate"], sub["target"] = 1 * Gbps, 2 * Gbps
    sub["stage"], sub["stage_bytes"] = timer, counted
    calls.on_raise(arrays.world[0], 0)
    low, high = min(timer + 1, counted), max(timer + 1, counted)
    step = (low - 5) * 400 * Mbps if low > 5 else 40 * Mbps if high >= 5 else 0
    assert sub["target"] == min(2 * Gbps + step, 10 * Gbps)


@pytest.mark.parametrize("transport", ["tcp", "dctcp", "mptcp:subflows=2", "ndp", "dcqcn"])
@settings(max_examples=10, deadline=None)
@given(size=st.integers(1, 400_000), delay=st.integers(0, 30))
def test_a_flow_alone_is_never_faster_than_its_line_and_wastes_little_of_it(transport, size, delay):
    """Two wires and two store-and-forward transmissions; what slow start waits for is some round trips."""
    fabric = Ideal(hosts=2, delay=delay * us, transport=transport, buffer=2000, mark=2000)
    arrays, _ = run(fabric, Flows.of(nodes=2, src=[0], dst=[1], size=size, start=0))
    segments = -(-size // fabric.payload)
    full = wire_time(fabric.wire_size, fabric.link)
    took = int(arrays.traffic["finish"][0])
    assert took > (segments - 1) * full + 2 * fabric.delay
    rtt = 4 * fabric.delay + 4 * full
    assert took <= (segments + 3) * full + 2 * fabric.delay + 8 * rtt
    assert arrays.world["resent"][0] == arrays.world["timeouts"][0] == 0


@pytest.mark.parametrize("transport", ["tcp:ack_every=1", "tcp:ack_every=2,ack_delay=1ms", "dcqcn:ack_every=4"])
def test_an_ack_covers_as_many_segments_as_it_may(transport):
    fabric = Ideal(hosts=2, transport=transport, buffer=2000, mark=2000)
    arrays, _ = run(fabric, Flows.of(nodes=2, src=[0], dst=[1], size=64 * fabric.payload, start=0))
    assert arrays.world["acks"][0] == 64 // fabric.settings.ack_every


def test_ndp_pulls_what_the_first_window_left():
    """A pull is owed for every packet but those of a flow that is complete; one more or less may be on its way."""
    fabric = Ideal(hosts=2, transport="ndp:initial_window=10", buffer=2000)
    arrays, _ = run(fabric, Flows.of(nodes=2, src=[0], dst=[1], size=64 * fabric.payload, start=0))
    assert 54 <= arrays.world["pulls"][0] <= 63
    assert arrays.world["sent_segments"][0] == 64
