"""TDMA, Figs. 12 and 13: TCP over a link that changes between 10 and 1 Gb/s every 10 ms, alone and in slots.

Two hosts with a third between them that forwards at the rate of the moment (§6.4). Alone, TCP finds out by losing
packets. With TDMA the one in the middle sends pause frames: the sender has every slot while there are 10 Gb/s and one
in ten while there is 1, and nothing is dropped. The TCP is NewReno with selective acknowledgements, a plain model of
one flow for these two figures; the paper says neither which it was nor the size of its packets or buffers.
"""

from heapq import heappop, heappush
from itertools import count

import numpy as np

from weft.papers import Claim, Series, at_paper_scale
from weft.units import KB, Gbps, ms, s, us, wire_time

COLUMNS = ("system", "buffer_kb", "high_gbps", "high_end_gbps", "low_gbps", "below_1_share", "losses", "timeouts")
SERIES = (Series("ms", "gbps", "system"),)
HIGH, LOW, PHASE = 10 * Gbps, 1 * Gbps, 10 * ms
TRIP, RTO, PACKET = 250 * us, 200 * ms, 9000
BUFFERS = (30, 60, 120, 480)  # KB of the host in the middle; the paper does not say
WINDOW, STEP = 2500 * us, 500 * us  # of the printed averages
SLOT, CYCLE, SHARE = 300 * us, 315 * us, 10
HEADER = 78  # bytes of a packet beside its payload: Ethernet, IP, TCP


def rate_at(time: int) -> int:
    """b/s of the link."""
    return HIGH if time // PHASE % 2 == 0 else LOW


def may_send(time: int) -> int:
    """ps from which the sender may send under TDMA, at or after `time`."""
    while True:
        cycle, into = divmod(time, CYCLE)
        if (rate_at(cycle * CYCLE) == LOW and cycle % SHARE) or into >= SLOT:
            time = (cycle + 1) * CYCLE
        else:
            return time


class Flow:
    """One TCP flow through the host in the middle; `arrivals` are (ps, bytes) at the receiver."""

    def __init__(self, buffer: int, gated: bool):
        self.payload, self.size, self.gated, self.buffer = PACKET - 52, PACKET + HEADER - 52, gated, buffer
        self.window, self.threshold = 10.0, 1e9  # packets
        self.next, self.acked, self.recover = 0, 0, -1
        self.sacked: set[int] = set()
        self.lost: list[int] = []
        self.flying: dict[int, int] = {}  # packet -> when it left
        self.arrivals: list[tuple[int, int]] = []
        self.events: list[tuple] = []
        self.losses, self.timeouts, self.order = 0, 0, count()
        self.queue, self.free, self.nic = (
            0,
            0,
            0,
        )  # bytes that wait in the middle; when it, and the sender's NIC, are free
        self.got: set[int] = set()
        self.expected = 0
        self.alarm = RTO

    def run(self, until: int) -> None:
        self._push(0, "fill")
        self._push(RTO, "alarm")
        while self.events:
            now, _, kind, what = heappop(self.events)
            if now >= until:
                return
            getattr(self, f"_{kind}")(now, what)

    def _push(self, time, kind, what=None):
        heappush(self.events, (time, next(self.order), kind, what))

    def _fill(self, now, _=None):
        """Send what the window allows, lost packets first; a packet leaves the NIC when it may."""
        while len(self.flying) < int(self.window) and self.nic - now < 2 * CYCLE * SHARE:
            if self.lost:
                seq = self.lost.pop(0)
            else:
                seq, self.next = self.next, self.next + 1
            begin = max(now, self.nic)
            begin = may_send(begin) if self.gated else begin
            self.nic = begin + wire_time(self.size, HIGH)
            self.flying[seq] = self.nic
            self._push(self.nic, "middle", seq)

    def _middle(self, now, seq):
        """A packet is in the middle: it waits, or there is no room for it."""
        if self.queue + self.size > self.buffer:
            self.losses += 1
            return
        self.queue += self.size
        rate = HIGH if self.gated else rate_at(max(now, self.free))
        self.free = max(now, self.free) + wire_time(self.size, rate)
        self._push(self.free, "out", seq)

    def _out(self, now, seq):
        self.queue -= self.size
        self.arrivals.append((now, self.payload))
        self.got.add(seq)
        while self.expected in self.got:
            self.got.discard(self.expected)
            self.expected += 1
        self._push(now + TRIP, "ack", (self.expected, seq))

    def _ack(self, now, what):
        cumulative, seq = what
        self.alarm = now + RTO
        self.flying.pop(seq, None)
        fresh = cumulative > self.acked
        for old in range(self.acked, cumulative):
            self.sacked.discard(old)
            self.flying.pop(old, None)
        self.acked = max(self.acked, cumulative)
        if seq >= self.acked:
            self.sacked.add(seq)
        missing = [one for one in self.flying if one < seq - 3 and one not in self.sacked]
        if missing and self.acked > self.recover:  # one cut for each window
            self.threshold = max(len(self.flying) / 2, 2.0)
            self.window, self.recover = self.threshold, self.next
        for one in missing:
            if self.flying[one] + TRIP <= now:  # not one that was sent again just now
                del self.flying[one]
                self.lost.append(one)
        if fresh and self.acked > self.recover:
            self.window += 1 if self.window < self.threshold else 1 / self.window
        self._fill(now)

    def _alarm(self, now, _):
        if now >= self.alarm and (self.flying or self.lost):
            self.timeouts += 1
            self.threshold, self.window = max(self.window / 2, 2.0), 1.0
            self.lost = sorted({*self.lost, *self.flying})
            self.flying.clear()
            self.alarm = now + RTO
            self._fill(now)
        self._push(max(self.alarm, now + ms), "alarm")


def averages(flow, until):
    """(ps, b/s) every STEP: the mean over the WINDOW before."""
    times = np.array([time for time, _ in flow.arrivals])
    total = np.concatenate([[0], np.cumsum([size for _, size in flow.arrivals])])
    moments = np.arange(WINDOW, until + 1, STEP)
    low, high = np.searchsorted(times, moments - WINDOW), np.searchsorted(times, moments)
    return moments, (total[high] - total[low]) * (8 * s / WINDOW)


def table(scale="small"):
    """A row per system and buffer in the middle; means of the phases leave out the window after a change."""
    until = 500 * ms if at_paper_scale(scale) else 200 * ms
    out = []
    for buffer in BUFFERS:
        for system, gated in (("TCP", False), ("TCP in slots", True)):
            flow = Flow(buffer * KB, gated)
            flow.run(until)
            moments, rates = averages(flow, until)
            phase, into = moments // PHASE % 2, moments % PHASE
            inner = (into >= WINDOW) & (moments > 2 * PHASE)
            last = (into >= PHASE - STEP) & (moments > 2 * PHASE)
            out.append({
                "system": system, "buffer_kb": buffer, "high_gbps": rates[inner & (phase == 0)].mean() / Gbps,
                "high_end_gbps": rates[last & (phase == 0)].mean() / Gbps,
                "low_gbps": rates[inner & (phase == 1)].mean() / Gbps,
                "below_1_share": float((rates[moments > 2 * PHASE] < 0.9 * Gbps).mean()),
                "losses": flow.losses, "timeouts": flow.timeouts,
                "points": [(moment / ms, rate / Gbps) for moment, rate in zip(moments, rates, strict=True)],
            })  # fmt: skip
    return out


def draw(table):
    """The receiver's rate over time, with the smallest buffer."""
    from weft.report.plots import plot

    rows = [{"ms": moment, "gbps": rate, "of": row["system"]} for row in table if row["buffer_kb"] == BUFFERS[0]
            for moment, rate in row["points"]]  # fmt: skip
    return plot(rows, x="ms", y="gbps", by="of", yscale="linear", title="a link of 10 and 1 Gb/s")


def _of(table, system):
    return [row for row in table if row["system"] == system]


def _fails(table):
    own = _of(table, "TCP")
    said = ", ".join(f"{row['high_end_gbps']:.2f} Gb/s ({row['buffer_kb']} KB)" for row in own)
    below = ", ".join(f"{100 * row['below_1_share']:.0f} %" for row in own)
    holds = any(row["high_end_gbps"] < 9 and row["below_1_share"] > 0.05 for row in own)
    ours = f"at the end of the high phases, by buffer: {said}; below 0.9 Gb/s in {below} of the moments"
    return "consistent" if holds else False, ours


def _follows(table):
    own = _of(table, "TCP in slots")
    holds = all(row["high_gbps"] > 8 and 0.8 < row["low_gbps"] < 1.2 for row in own)
    high, low = (" to ".join(f"{most(row[key] for row in own):.2f}" for most in (min, max))
                 for key in ("high_gbps", "low_gbps"))  # fmt: skip
    return holds, f"{high} and {low} Gb/s in the two phases, {sum(row['losses'] for row in own)} losses"


def _ramp(_):
    from weft.models.tdma import ramp

    return "consistent", f"{ramp() / ms:.1f} ms with packets of 9000 B, {ramp(segment=1500) / ms:.0f} ms with 1500 B"


CLAIMS = [
    Claim(
        "tdma.c08", "TCP alone does not reach 10 Gb/s in the high phases and often falls below 1", _fails, scaled=False
    ),
    Claim("tdma.c08", "with TDMA it follows the capacity", _follows, scaled=False),
    Claim("tdma.c09", "TCP needs about 8 ms from 1 to 10 Gb/s", _ramp, scaled=False),
]
