"""The groomer against one that moves every byte at every tick; what is proved of it; and the two shapes of Fig. 11."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, MonitorTripped
from weft.fabrics.merchant import bounds, groomer
from weft.fabrics.merchant.groomer import Frames, Groomer, groom, run
from weft.units import Gbps, ns, ps

PAPER = Groomer(link=10 * Gbps, trunk=40 * Gbps)  # what the switch has; the prototype is the default


# ---------------------------------------------------------------- a second model, byte by byte


class Slow:
    """The same groomer as a clock that ticks: what comes in, what the trunk carries and what goes out, byte by byte."""

    def __init__(self, about: Groomer, arrivals):
        self.about, n = about, about.ports
        self.eep = about.protocol == "eep"
        self.arrivals = [dict(zip(*one, strict=True)) for one in arrivals]  # start -> size
        self.incoming, self.partial, self.queue = [None] * n, [0] * n, [[] for _ in range(n)]
        self.ingress, self.turn, self.flying, self.free = [0] * n, 0, None, 0
        self.pending, self.sending, self.idle_from = [[] for _ in range(n)], [None] * n, [0] * n
        self.egress = [0] * n
        self.latency, self.underruns = [[] for _ in range(n)], 0
        self.most = {"ingress": 0, "ingress_all": 0, "egress": 0}

    def finished(self):
        return not (
            any(self.arrivals) or any(self.incoming) or any(self.queue) or self.flying
            or any(self.pending) or any(self.sending)
        )  # fmt: skip

    def tick(self, now):
        for p in range(self.about.ports):
            self.come_in(p, now)
        if self.flying and self.flying[0] == now:
            self.come_over(now)
        if self.flying is None and now >= self.free:
            self.go_over(now)
        for p in range(self.about.ports):
            self.go_out(p, now)

    def come_in(self, p, now):
        b = self.about.port_byte
        if self.incoming[p]:
            start, size, seen = self.incoming[p]
            if (now - start) % b == 0 and now > start + 8 * b:  # a byte, or the octet after the last
                k = (now - start) // b - 9
                if k < size:
                    self.ingress[p] += 1
                whole = k == size or (self.eep and k and k % 64 == 0)
                if whole:  # seen now: the octet after a segment or frame
                    length = k - seen
                    self.queue[p].append((length, start, size, seen == 0))
                    self.incoming[p] = (start, size, k)
                if k == size:
                    self.incoming[p] = None
        if now in self.arrivals[p]:
            self.incoming[p] = (now, self.arrivals[p].pop(now), 0)

    def go_over(self, now):
        n, tb = self.about.ports, self.about.trunk_byte
        for q in range(n):
            p = (self.turn + q) % n
            if self.queue[p]:
                unit = self.queue[p].pop(0)
                length = unit[0]
                on_wire = length + (1 if length == 64 else 2) if self.eep else 8 + length + 4
                self.flying = (now + on_wire * tb, p, unit)
                self.turn = (p + 1) % n
                return

    def come_over(self, now):
        _, p, (length, start, size, first) = self.flying
        self.flying, self.free = None, now if self.eep else now + 12 * self.about.trunk_byte
        self.most["ingress"] = max(self.most["ingress"], self.ingress[p])
        self.most["ingress_all"] = max(self.most["ingress_all"], sum(self.ingress))
        self.ingress[p] -= length
        if first:
            wait = self.about.playout_ticks if self.eep else 0
            self.pending[p].append([now + wait, start, size, 0])
        target = self.pending[p][-1] if self.pending[p] else self.sending[p]["frame"]
        target[3] += length
        self.egress[p] += length
        self.most["egress"] = max(self.most["egress"], self.egress[p] - self.just_gone(p, now))

    def just_gone(self, p, now):
        """A byte whose last bit leaves at this very tick is out of the buffer."""
        sending, b = self.sending[p], self.about.port_byte
        if sending is None:
            return 0
        k = now - sending["begun"]
        return int(k % b == 0 and 8 < k // b <= 8 + sending["frame"][2])

    def go_out(self, p, now):
        b, sending = self.about.port_byte, self.sending[p]
        if sending:
            k = now - sending["begun"]
            if k % b == 0:
                k //= b
                size = sending["frame"][2]
                if 8 < k <= 8 + size:
                    self.egress[p] -= 1
                if 8 <= k < 8 + size and sending["frame"][3] <= k - 8 and not sending["starved"]:
                    self.underruns += 1
                    sending["starved"] = True
                if k == 8 + size + 12:
                    self.sending[p] = None
        if self.sending[p] is None and self.pending[p] and self.pending[p][0][0] <= now:
            frame = self.pending[p].pop(0)
            self.latency[p].append(now - frame[1])
            self.sending[p] = {"begun": now, "frame": frame, "starved": False}

    def run(self):
        now = 0
        while not self.finished():
            self.tick(now)
            now += 1
        return self


@st.composite
def cases(draw):
    protocol = draw(st.sampled_from(["eep", "802.1ad"]))
    ports = draw(st.integers(1, 3))
    speed = draw(st.sampled_from([1, 2, 3, Fraction(5, 2), Fraction(195, 64)]))
    about = Groomer(protocol=protocol, ports=ports, link=64 * Gbps, trunk=int(64 * Gbps * speed), overclock=0.0)
    if protocol == "eep":
        about = replace(about, playout=draw(st.sampled_from([None, 0, 500 * ps, 3 * ns])))
    arrivals = []
    for _ in range(ports):
        starts, sizes, at = [], [], draw(st.integers(0, 150)) * draw(st.integers(1, about.port_byte))
        for _ in range(draw(st.integers(1, 3))):
            sizes.append(draw(st.sampled_from([64, 65, 127, 128, 129, 192, 200])))
            starts.append(at)
            at += (sizes[-1] + 20) * about.port_byte + draw(st.integers(0, 40))
        arrivals.append((starts, sizes))
    return about, arrivals


@settings(max_examples=60, deadline=None)
@given(cases())
def test_events_are_those_of_a_groomer_that_moves_every_byte(case):
    about, arrivals = case
    fast, slow = groom(about, arrivals), Slow(about, arrivals).run()
    for p in range(about.ports):
        assert [one for one, q in zip(fast.latency, fast.port, strict=True) if q == p] == slow.latency[p]
    assert fast.underruns == slow.underruns
    assert {name: getattr(fast, name) for name in slow.most} == slow.most


# ---------------------------------------------------------------- cut-through


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 16), st.sampled_from([1, Fraction(65, 64), 2, 3, 30]), st.integers(0, 9999), st.floats(0.3, 1))
def test_what_is_proved_safe_runs_without_underrun(ports, margin, seed, load):
    about = Groomer(ports=ports, link=1 * Gbps, trunk=int(ports * Gbps * margin))
    found = run(about, Frames(frame="64x3,65x2,128,191,577,1518", load=load, frames=12), seed)
    assert about.safe and found.underruns == 0
    assert found.latest is None or found.latest <= 0
    assert found.slowest <= about.round_time


def worst(about, size=128):
    """Frames with which the second segment of port 0 waits for one of each other port, and the first for nobody."""
    others = (64 * about.port_byte, [size])  # whole when the second segment of port 0 is
    return [([0], [size]), *(([others[0]], others[1]) for _ in range(about.ports - 1))]


@pytest.mark.parametrize("about", [PAPER, Groomer(), Groomer(ports=16, link=10 * Gbps, trunk=160 * Gbps)])
def test_the_playout_that_is_proved_enough_is_the_least(about):
    found = groom(about, worst(about))
    assert (found.underruns, found.latest) == (0, 0)  # the second segment comes in the very tick in which it is due
    less = replace(about, playout=int((about.least_playout - 1) * about.tick))
    assert less.playout_ticks < about.least_playout and not less.safe
    assert groom(less, worst(less)).underruns == 1


def test_beginning_with_the_first_eep_frame_is_not_enough():
    """§VI-A, taken literally, in the switch of §IV: four ports of 10 Gb/s on 40 Gb/s, overclocked by 1/64."""
    assert PAPER.overclocked == 100 / 64 and PAPER.safe
    literal = replace(PAPER, playout=0)
    assert not literal.safe and groom(literal, worst(literal)).underruns == 1
    assert run(literal, Frames(frame="1518", load=1.0, frames=50), 1).underruns > 0
    assert run(PAPER, Frames(frame="1518", load=1.0, frames=50), 1).underruns == 0


def test_it_is_enough_with_a_trunk_65_eighths_as_fast_for_every_other_port():
    enough = Groomer(ports=4, link=8 * Gbps, trunk=3 * 65 * Gbps, playout=0)
    assert enough.safe and enough.least_playout == 0
    assert not replace(enough, trunk=3 * 65 * Gbps - 1).safe
    assert groom(enough, worst(enough)).latest == 0


def test_without_overclocking_long_frames_fall_behind():
    plain = replace(PAPER, overclock=0.0)
    assert not plain.safe
    at_once = [([0], [9018])] * 4
    assert groom(plain, at_once).underruns > 0 == groom(PAPER, at_once).underruns


def test_a_law_that_does_not_hold_ends_the_run(monkeypatch):
    monkeypatch.setattr(bounds, "playout", lambda *_: 0)
    with pytest.raises(MonitorTripped, match=r"^an egress frame of port 0 must not run out of bytes, as it did at"):
        groom(replace(PAPER), worst(PAPER))
    monkeypatch.undo()
    monkeypatch.setattr(bounds, "round_time", lambda ports, byte: 65 * byte)
    with pytest.raises(MonitorTripped, match=r"^port \d must have the trunk within 1040 ticks, not \d+$"):
        groom(Groomer(link=10 * Gbps, trunk=40 * Gbps), worst(PAPER))


# ---------------------------------------------------------------- overhead


def test_the_trunk_is_overclocked_by_what_the_protocol_adds_and_no_more():
    assert PAPER.overclocked == 1.5625
    assert replace(PAPER, protocol="802.1ad").overclocked == pytest.approx(100 * 4 / 84)
    assert Groomer().overclocked == 0  # the prototype's 10 Gb/s have room for its four
    assert Groomer(ports=16).overclocked == 1.5625 and not Groomer(ports=16).safe  # no overhead makes 10 out of 16


@pytest.mark.parametrize("protocol", groomer.PROTOCOLS)
def test_no_size_needs_more_than_the_trunk_that_is_needed(protocol):
    need = max((bounds.carried(protocol, size), size) for size in range(64, 9019))
    assert need[0] <= bounds.needed(protocol, 1)
    if protocol == "eep":
        assert need[1] > 8900 and min(n for n in range(64, 9019) if bounds.carried(protocol, n) > 1) == 1217
        assert bounds.carried(protocol, 1518) == Fraction(1543, 1538)
    else:
        assert need == (bounds.needed(protocol, 1), 64)


@pytest.mark.parametrize(
    ("protocol", "frame"), [("eep", "1518"), ("eep", "9018"), ("802.1ad", "64"), ("802.1ad", "1518")]
)
def test_at_full_load_buffers_are_bounded_with_overclocking_and_grow_without(protocol, frame):
    about = replace(PAPER, protocol=protocol)
    short, long = (run(about, Frames(frame=frame, load=1.0, frames=n), 3) for n in (40, 160))
    assert long.ingress <= short.ingress + 64
    plain = replace(about, overclock=0.0)
    short, long = (run(plain, Frames(frame=frame, load=1.0, frames=n), 3) for n in (40, 160))
    assert long.ingress > short.ingress + 64


# ---------------------------------------------------------------- latency


def latencies(protocol, sizes=range(64, 1519, 53)):
    return [run(Groomer(protocol=protocol), Frames(frame=str(n), frames=1)).summary()["round_trip_ns"] for n in sizes]


def test_eep_takes_the_same_time_for_every_size():
    assert set(latencies("eep")) == {728.0}  # 73 B at 1 Gb/s, 65 B at 10 Gb/s and a playout of 92 ns


def test_802_1ad_takes_time_in_proportion_to_the_size():
    found = latencies("802.1ad")
    steps = {round(b - a, 6) for a, b in pairwise(found)}
    assert steps == {466.4}  # 53 times 8 ns to store a byte and 0.8 to carry it
    assert found[0] == pytest.approx(8 * (8 + 64 + 1) + 0.8 * (8 + 64 + 4))


def test_no_frame_takes_less_than_it_takes_alone():
    for protocol in groomer.PROTOCOLS:
        about = replace(PAPER, protocol=protocol)
        for size in (64, 594, 1518):
            alone = run(about, Frames(frame=str(size), frames=1)).summary()["round_trip_ns"]
            mixed = run(about, Frames(frame="64x7,594x4,1518", load=1.0, frames=100), 5)
            least = min(one for one, n in zip(mixed.latency, mixed.size, strict=True) if n == size)
            assert about.ns(least) >= alone


def test_a_fixed_delay_is_added():
    plain, delayed = (run(Groomer(fixed=fixed), Frames(frames=1)).summary() for fixed in (0, 5 * ns))
    assert delayed["round_trip_ns"] == plain["round_trip_ns"] + 5


def test_the_same_seed_gives_the_same_frames_and_another_gives_others():
    frames = Frames(frame="64,1518", load=0.7, frames=20)
    assert frames.draw(PAPER, 1) == frames.draw(PAPER, 1) != frames.draw(PAPER, 2)


def test_the_load_is_what_was_asked_for():
    starts, sizes = Frames(frame="64x7,594x4,1518", load=0.5, frames=4000).draw(PAPER, 1)[0]
    busy = sum(n + 20 for n in sizes[:-1]) * PAPER.port_byte
    assert busy / (starts[-1] - starts[0]) == pytest.approx(0.5, rel=0.05)
    gaps = [b - a - (n + 20) * PAPER.port_byte for a, b, n in zip(starts, starts[1:], sizes, strict=False)]
    assert min(gaps) >= 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Groomer(protocol="atm"), "protocol must be eep or 802.1ad, not 'atm'"),
        (lambda: Groomer(ports=17), "ports must be from 1 to 16 with eep, not 17"),
        (lambda: Groomer(ports=4095, protocol="802.1ad"), "ports must be from 1 to 4094 with 802.1ad, not 4095"),
        (lambda: Groomer(ports=0), "ports must be from 1 to 16 with eep, not 0"),
        (lambda: Groomer(link=0), "link must be from 1 to 1e15 b/s, not 0"),
        (lambda: Groomer(trunk=10**8), "trunk must be at least the link's 1 Gbps, not '100 Mbps'"),
        (lambda: Groomer(overclock=101.0), "overclock must be from 0 to 100 percent, not 101.0"),
        (lambda: Groomer(overclock=float("nan")), "overclock must be from 0 to 100 percent, not nan"),
        (lambda: Groomer(playout=-1), "playout must be from 0 to 1 s, not -1"),
        (lambda: Groomer(playout=1, protocol="802.1ad"),
         "playout must be left out with 802.1ad, which stores the frame, not 1"),
        (lambda: Groomer(fixed=-1), "fixed must be from 0 to 1 s, not -1"),
        (lambda: Frames(frame="63"), "frame must be from 64 to 9,018 bytes, not 63"),
        (lambda: Frames(frame="9019"), "frame must be from 64 to 9,018 bytes, not 9019"),
        (lambda: Frames(frame="64x0"), "a weight in frame must be from 1 to 1000, not 0"),
        (lambda: Frames(frame="64,"), "frame must be a size, or a mix such as 64x7,594x4,1518, not '64,'"),
        (lambda: Frames(frame="-64"), "frame must be a size, or a mix such as 64x7,594x4,1518, not '-64'"),
        (lambda: Frames(load=1.1), "load must be from 0 to 1, not 1.1"),
        (lambda: Frames(load=float("nan")), "load must be from 0 to 1, not nan"),
        (lambda: Frames(frames=0), "frames must be from 1 to 1,000,000, not 0"),
        (lambda: run(PAPER, Frames(frame="9018", frames=1_000_000)),
         "frames must be few enough for 20,000,000 segments in all, not 1000000"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_groomer_is_refused_in_a_sentence(call, message):
    with pytest.raises(BadInput) as caught:
        call()
    assert str(caught.value) == message
