"""A traffic groomer: several ports onto one faster link and back, by EEP or by IEEE 802.1ad (HOTI '09, §VI).

A frame enters at a port, crosses the trunk, and leaves at the port of the same number at the far end, which may be the
same groomer with its trunk looped back. Both protocols serve their ports round robin:

EEP      a segment is sent once it is whole; the far end begins the Ethernet frame `playout` after its first EEP frame
         has come in, and must never run out of bytes within it.
802.1ad  a frame is sent once it is whole, with a service tag; the far end sends it on once it is whole again.

A segment or frame is whole when the octet after it has been seen: only that tells whether it is the last.

Time is counted in ticks of which both a byte on a port and one on the trunk take a whole number: nothing is rounded.
There is one model, event by event, and no compiled kernel: all of Fig. 11 takes less than a second. The tests hold it
against one that moves every byte at every tick.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Literal

import numpy as np

from weft import random
from weft.errors import BadInput, MonitorTripped, require
from weft.fabrics.merchant import bounds
from weft.units import Gbps, Rate, Time, param, s, show_rate
from weft.wire import eep, ethernet

PROTOCOLS = ("eep", "802.1ad")
_SEEN = 1  # octets after a segment or frame that tell whether it is the last
_UNITS = 20_000_000  # segments or frames of a run, at the most


@dataclass(frozen=True, kw_only=True)
class Groomer:
    """Several ports onto one faster link and back: round-trip latency, buffers and jitter (HOTI '09, §VI)."""

    protocol: Literal["eep", "802.1ad"] = param("eep", "how frames cross the fast link")
    ports: int = param(4, "ports of the lower rate")
    link: Rate = param(1 * Gbps, "rate of a port")
    trunk: Rate = param(10 * Gbps, "rate of the fast link")
    overclock: float | None = param(
        None, "percent by which the fast link runs faster; the overhead, if needed, unless given"
    )
    playout: Time | None = param(
        None, "time from the first EEP frame to the Ethernet frame it begins; the least proved enough unless given"
    )
    fixed: Time = param(0, "delay of PHYs, MACs and pipelines in both directions together")

    def __post_init__(self):
        require(self.protocol in PROTOCOLS, "protocol", "eep or 802.1ad", self.protocol)
        most = eep.LINKS if self.protocol == "eep" else 4094
        require(1 <= self.ports <= most, "ports", f"from 1 to {most} with {self.protocol}", self.ports)
        require(0 < self.link <= 10**15, "link", "from 1 to 1e15 b/s", self.link)
        require(self.trunk >= self.link, "trunk", f"at least the link's {show_rate(self.link)}", show_rate(self.trunk))
        require(self.trunk <= 10**15, "trunk", "at most 1e15 b/s", self.trunk)
        if self.overclock is not None:
            require(0 <= self.overclock <= 100, "overclock", "from 0 to 100 percent", self.overclock)
        if self.playout is not None:
            require(self.protocol == "eep", "playout", "left out with 802.1ad, which stores the frame", self.playout)
            require(0 <= self.playout < s, "playout", "from 0 to 1 s", self.playout)
        require(0 <= self.fixed < s, "fixed", "from 0 to 1 s", self.fixed)

    # -------------------------------------------------------- what follows

    @cached_property
    def speed(self) -> Fraction:
        """Rate of the trunk, overclocked, over that of a port."""
        plain, needed = Fraction(self.trunk, self.link), bounds.needed(self.protocol, self.ports)
        if self.overclock is not None:
            return plain * (1 + Fraction(str(self.overclock)) / 100)
        return max(plain, min(needed, plain * needed / self.ports))  # by the overhead at the most

    @property
    def overclocked(self) -> float:
        """Percent that the trunk is faster than its rate says."""
        return float(100 * (self.speed * self.link / self.trunk - 1))

    @cached_property
    def tick(self) -> Fraction:
        """Picoseconds of a tick."""
        return Fraction(8 * s, self.link * self.speed.numerator)

    @cached_property
    def port_byte(self) -> int:
        """Ticks of a byte on a port."""
        return self.speed.numerator

    @cached_property
    def trunk_byte(self) -> int:
        """Ticks of a byte on the trunk."""
        return self.speed.denominator

    @cached_property
    def round_time(self) -> int:
        """Ticks within which every port may send an EEP frame."""
        return bounds.round_time(self.ports, self.trunk_byte)

    @cached_property
    def least_playout(self) -> int:
        """Ticks that `bounds.playout` proves to be enough."""
        return bounds.playout(self.ports, self.port_byte, self.trunk_byte)

    @cached_property
    def playout_ticks(self) -> int:
        """Ticks from a first EEP frame to the Ethernet frame that it begins."""
        return self.least_playout if self.playout is None else ceil(self.playout / self.tick)

    @cached_property
    def safe(self) -> bool:
        """Whether it is proved that no egress frame runs out of bytes."""
        if self.protocol != "eep":
            return True
        return self.speed >= bounds.needed("eep", self.ports) and self.playout_ticks >= self.least_playout

    def ns(self, ticks) -> float:
        """Ticks as nanoseconds."""
        return float(ticks * self.tick / 1000)


@dataclass(frozen=True, kw_only=True)
class Frames:
    """Frames into every port of a groomer: at load 0 one at a time in all, at load 1 back to back."""

    frame: str = param("1500", "bytes of a frame, FCS included; or a mix, as in 64x7,594x4,1518")
    load: float = param(0.0, "share of a port's time that its frames take, preamble and gap included")
    frames: int = param(100, "frames into each port")

    def __post_init__(self):
        self.mix  # noqa: B018
        require(0 <= self.load <= 1, "load", "from 0 to 1", self.load)
        require(1 <= self.frames <= 1_000_000, "frames", "from 1 to 1,000,000", self.frames)

    @property
    def mix(self) -> tuple[int, ...]:
        """Sizes, each as often as it weighs."""
        sizes = []
        for part in self.frame.split(","):
            size, _, weight = part.strip().partition("x")
            if not size.isdecimal() or not (weight or "1").isdecimal() or len(size) > 9 or len(weight) > 4:
                raise BadInput(f"frame must be a size, or a mix such as 64x7,594x4,1518, not {self.frame!r}")
            least, most = ethernet.LEAST, eep.MOST
            require(least <= int(size) <= most, "frame", f"from {least} to {most:,} bytes", int(size))
            require(1 <= int(weight or 1) <= 1000, "a weight in frame", "from 1 to 1000", int(weight or 1))
            sizes += [int(size)] * int(weight or 1)
        return tuple(sizes)

    def draw(self, groomer: Groomer, seed: int = 0) -> list[tuple[list[int], list[int]]]:
        """(starts, sizes) of the frames of each port, starts in ticks; `seed` decides sizes, phases and gaps."""
        mix = self.mix
        units = self.frames * groomer.ports * (eep.segments(max(mix)) if groomer.protocol == "eep" else 1)
        require(units <= _UNITS, "frames", f"few enough for {_UNITS:,} segments in all", self.frames)
        return [self._port(groomer, seed, port, mix) for port in range(groomer.ports)]

    def _port(self, groomer, seed, port, mix):
        byte, count = groomer.port_byte, self.frames
        draws = random.below(random.words(random.key(seed, 3 * port), count), len(mix))
        sizes = np.array(mix)[draws].tolist()
        phase = random.unit(random.words(random.key(seed, 3 * port + 1), 1))[0]
        longest = ethernet.wire_size(max(mix)) * byte
        if self.load == 0:  # so far apart that each frame finds all at rest
            apart = 4 * (longest + groomer.playout_ticks + groomer.ports * longest)
            return [(k * groomer.ports + port) * apart for k in range(count)], sizes
        idle = -random.ln(random.unit(random.words(random.key(seed, 3 * port + 2), count)))
        starts, at = [], int(phase * longest)
        for size, drawn in zip(sizes, idle.tolist(), strict=True):
            starts.append(at)
            whole = ethernet.wire_size(size) * byte
            at += whole + int(drawn * whole * (1 / self.load - 1))
        return starts, sizes


@dataclass
class Groomed:
    """What came out of a groomer. Times are in its ticks, sizes in bytes; rows are frames as they leave."""

    groomer: Groomer
    port: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    latency: list[int] = field(default_factory=list)  # first bit in to first bit out
    underruns: int = 0  # egress frames that ran out of bytes
    latest: int | None = None  # how late, at the most, a segment came after it was due; negative: before
    slowest: int = 0  # longest that the first of a queue waited for its end on the trunk
    ingress: int = 0  # most bytes in the buffer of one port, before the trunk
    ingress_all: int = 0  # and of all ports together
    egress: int = 0  # most bytes in the buffer of one port, after the trunk
    busy: int = 0  # ticks that the trunk was sending
    span: int = 0  # ticks from the first bit in to the last bit on the trunk

    def summary(self) -> dict:
        """What was measured, as plain numbers; times in ns."""
        groomer, latency = self.groomer, np.array(self.latency, float)
        ports, sizes = np.array(self.port), np.array(self.size)
        swing = [np.ptp(latency[(ports == p) & (sizes == n)]) for p in set(self.port) for n in set(self.size)
                 if ((ports == p) & (sizes == n)).any()]  # fmt: skip
        fixed = groomer.fixed / 1000
        return {
            "protocol": groomer.protocol,
            "round_trip_ns": groomer.ns(Fraction(sum(self.latency), len(self.latency))) + fixed,
            "round_trip_ns_min": groomer.ns(min(self.latency)) + fixed,
            "round_trip_ns_p99": groomer.ns(sorted(self.latency)[-(-99 * len(self.latency) // 100) - 1]) + fixed,
            "round_trip_ns_max": groomer.ns(max(self.latency)) + fixed,
            "jitter_ns": groomer.ns(int(max(swing))),
            "by_size": {
                str(n): {"frames": int((sizes == n).sum()), "round_trip_ns": groomer.ns(_mean(self, n)) + fixed}
                for n in sorted(set(self.size))
            },
            "frames": len(self.latency),
            "underruns": self.underruns,
            "proved_safe": groomer.safe,
            "playout_ns": groomer.ns(groomer.playout_ticks) if groomer.protocol == "eep" else None,
            "least_playout_ns": groomer.ns(groomer.least_playout) if groomer.protocol == "eep" else None,
            "overclock_percent": groomer.overclocked,
            "buffer_bytes": {"ingress": self.ingress, "ingress_all": self.ingress_all, "egress": self.egress},
            "trunk_busy": self.busy / self.span,
        }


def _mean(groomed, size):
    chosen = [one for one, n in zip(groomed.latency, groomed.size, strict=True) if n == size]
    return Fraction(sum(chosen), len(chosen))


class _Port:
    """One port: frames on their way in, the queue for the trunk, and what comes out at the far end."""

    def __init__(self, groomer, starts, sizes):
        self.groomer, self.starts, self.sizes = groomer, starts, sizes
        self.frame = self.segment = 0  # the first of the queue
        self.released = 0  # bytes that have left the ingress buffer
        self.since = 0  # when the first of the queue became the first
        self.starved = False  # whether the current egress frame has run out of bytes
        self._arriving, self._arrived = 0, 0  # the frame that comes in, and the bytes of those before it
        self.free = 0  # when the egress port may begin a frame
        self.begun = 0  # when it begins the current one
        self._leaving, self._left, self._outs, self.received = 0, 0, [], 0

    @property
    def payload(self) -> int:
        """Bytes of the first segment or frame of the queue."""
        size = self.sizes[self.frame]
        return min(eep.SEGMENT, size - self.segment * eep.SEGMENT) if self.groomer.protocol == "eep" else size

    def ready(self) -> int | None:
        """When the first of the queue is whole; None if there are no more."""
        if self.frame == len(self.sizes):
            return None
        size = self.sizes[self.frame]
        end = min(size, (self.segment + 1) * eep.SEGMENT) if self.groomer.protocol == "eep" else size
        return self.starts[self.frame] + (ethernet.PREAMBLE + end + _SEEN) * self.groomer.port_byte

    def stored(self, now) -> int:
        """Bytes in the ingress buffer."""
        byte, starts = self.groomer.port_byte, self.starts
        while self._arriving < len(starts):
            size = self.sizes[self._arriving]
            come = (now - starts[self._arriving]) // byte - ethernet.PREAMBLE
            if come < size:
                return self._arrived + max(come, 0) - self.released
            self._arrived += size
            self._arriving += 1
        return self._arrived - self.released

    def waiting(self, now) -> int:
        """Bytes in the egress buffer."""
        byte = self.groomer.port_byte
        while self._leaving < len(self._outs):
            begun, size = self._outs[self._leaving]
            gone = (now - begun) // byte - ethernet.PREAMBLE
            if gone < size:
                return self.received - self._left - max(gone, 0)
            self._left += size
            self._leaving += 1
        return self.received - self._left

    def begin(self, at, size):
        """Begin a frame on the egress port, at the earliest at `at`."""
        self.begun = max(at, self.free)
        self._outs.append((self.begun, size))
        self.free = self.begun + ethernet.wire_size(size) * self.groomer.port_byte


def run(groomer: Groomer, frames: Frames, seed: int = 0) -> Groomed:
    """Send frames through a groomer."""
    return groom(groomer, frames.draw(groomer, seed))


def groom(groomer: Groomer, arrivals, sent: list | None = None) -> Groomed:
    """Send the frames that arrive at each port, (starts in ticks, sizes), through a groomer, and watch its laws.

    No port waits for the trunk longer than a round; where that is proved, no egress frame runs out of bytes; and all
    that went in has come out. What goes over the trunk is added to `sent`: (begin, end, port, frame, segment) of each.
    """
    ports = [_Port(groomer, *arriving) for arriving in arrivals]
    out, turn, now, count = Groomed(groomer), 0, 0, len(ports)
    send = _send_segment if groomer.protocol == "eep" else _send_frame
    ready = [port.ready() for port in ports]
    while any(at is not None for at in ready):
        p = next((q for q in (*range(turn, count), *range(turn)) if ready[q] is not None and ready[q] <= now), None)
        if p is None:
            now = min(at for at in ready if at is not None)
            continue
        turn = (p + 1) % count
        place = p, ports[p].frame, ports[p].segment
        began, (whole, free) = now, send(groomer, p, ports, now, max(ready[p], ports[p].since), out)
        if sent is not None:
            sent.append((began, whole, *place))
        ports[p].since, now = whole, free
        out.busy += now - began
        ready[p] = ports[p].ready()
    out.span = now - min(port.starts[0] for port in ports)
    for p, port in enumerate(ports):
        if port.received != sum(port.sizes):
            raise MonitorTripped(f"port {p} must get its {sum(port.sizes)} bytes, not {port.received}")
    return out


def _send_segment(groomer, p, ports, now, since, out):
    """Send the first EEP frame of a queue, whose turn it could have been from `since` on.

    Returns when it has gone and when the trunk is free: at once."""
    port, payload = ports[p], ports[p].payload
    end = now + (payload + eep.header_bytes(payload)) * groomer.trunk_byte
    _leave(ports, port, payload, end, out)
    out.slowest = max(out.slowest, end - since)
    if end - since > groomer.round_time:
        raise MonitorTripped(f"port {p} must have the trunk within {groomer.round_time} ticks, not {end - since}")
    if port.segment == 0:
        _begin(port, p, end + groomer.playout_ticks, out)
    else:
        due = port.begun + (ethernet.PREAMBLE + port.segment * eep.SEGMENT) * groomer.port_byte
        out.latest = end - due if out.latest is None else max(out.latest, end - due)
        if end > due:
            if groomer.safe:
                raise MonitorTripped(f"an egress frame of port {p} must not run out of bytes, as it did at tick {due}")
            out.underruns += not port.starved
            port.starved = True
    _arrive(port, payload, end, out)
    port.segment += 1
    if port.segment == eep.segments(port.sizes[port.frame]):
        port.frame, port.segment, port.starved = port.frame + 1, 0, False
    return end, end


def _send_frame(groomer, p, ports, now, _, out):
    """Send the first frame of a queue, tagged. Returns when it has gone and when the trunk is free: a gap later."""
    port, size, byte = ports[p], ports[p].payload, groomer.trunk_byte
    end = now + (ethernet.PREAMBLE + size + ethernet.TAG.size) * byte
    _leave(ports, port, size, end, out)
    _begin(port, p, end, out)
    _arrive(port, size, end, out)
    port.frame += 1
    return end, end + ethernet.GAP * byte


def _leave(ports, port, payload, now, out):
    """Free the ingress buffer of what has gone; it was fullest just before."""
    out.ingress = max(out.ingress, port.stored(now))
    out.ingress_all = max(out.ingress_all, sum(one.stored(now) for one in ports))
    port.released += payload


def _begin(port, p, at, out):
    """Begin the frame at the head of the queue on the egress port."""
    size = port.sizes[port.frame]
    port.begin(at, size)
    out.port.append(p)
    out.size.append(size)
    out.latency.append(port.begun - port.starts[port.frame])


def _arrive(port, payload, now, out):
    """Put what has come over the trunk into the egress buffer; it is fullest just after."""
    port.received += payload
    out.egress = max(out.egress, port.waiting(now))
