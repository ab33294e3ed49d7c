"""Clocks: how far each node's is off, what the guard allows, how a rack starts and outlives its master (§3.4, §3.5).

Rack time is the master's. Its clock is distributed, so nobody drifts while it lives; a time protocol between the nodes
leaves each of them off by a constant error, and two of them apart by no more than `precision`. When the master is lost
every node goes on with the rate it had, from which its own clock strays by up to `drift`. After `failover` the lowest
living node is the new master: the others take its rate at once, and its time at the next exchange, every `resync`.
Until then rack time goes on as it was; with the exchange it becomes the new master's, and the switches go along.

A node is *off* while it is further from rack time than half of what the guard leaves for clocks: two such nodes on
different sides would be apart by more than all of it. Times are whole picoseconds, rates whole parts in 10^12, and the
moment at which a clock goes off is computed, not stepped to.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft import random
from weft.errors import BadInput, require
from weft.failures import LATEST, Outage
from weft.schedule.outage import pack
from weft.units import Time, ms, param

PPT = 10**12  # drift is counted in parts of this; a ppb is a thousand
RESIDUAL, RATE = 0x636C6F00, 0x636C7000  # streams; each mastership has a residual of its own


class Off(NamedTuple):
    """Nodes whose clocks are off, from each of some slots until the next; sets of nodes as bits."""

    slots: np.ndarray  # (k,)       int64   ascending, the first is 0
    off: np.ndarray  # (k, words) uint64


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """The clocks of a rack."""

    nodes: int = param(help="nodes in the rack")
    allowed: Time = param(50, "how far two clocks may be apart; a part of the guard")
    precision: Time = param(50, "how far two clocks are apart at most after an exchange")
    drift: float = param(0.0, "parts per billion by which a clock without a master strays from the rate it had")
    resync: Time = param(1 * ms, "time between two exchanges")
    failover: Time | None = param(None, "time after the loss of the master until another serves; never unless given")

    def __post_init__(self):
        require(self.nodes >= 1, "nodes", "at least 1", self.nodes)
        for name in ("allowed", "precision"):
            require(getattr(self, name) >= 0, name, "zero or more", getattr(self, name))
        require(0 <= self.drift <= 1e6, "drift", "from 0 to 1,000,000 ppb", self.drift)
        require(self.resync > 0, "resync", "above 0", self.resync)
        require(self.failover is None or self.failover >= 0, "failover", "zero or more", self.failover)

    @property
    def rate(self) -> int:
        """The largest drift in parts of 10^12."""
        return round(self.drift * 1000)

    @property
    def left(self) -> int:
        """What the guard leaves for drift once the error of synchronisation is taken; negative if that is too large."""
        return self.allowed - self.precision

    @property
    def survives(self) -> int | None:
        """The longest time without a master after which no two clocks are too far apart, whatever their drift.

        None is for ever. Two clocks stray from each other at up to twice the drift.
        """
        if self.left < 0:
            return 0
        return None if self.rate == 0 else self.left * PPT // (2 * self.rate)

    def residual(self, master: int, tenure: int, seed: int) -> np.ndarray:
        """(nodes,) int64: ps by which the exchanges leave each node off, the master by nothing."""
        most = self.precision // 2
        drawn = random.below(random.words(random.key(seed, RESIDUAL + tenure), self.nodes), 2 * most + 1) - most
        drawn[master] = 0
        return drawn

    def strays(self, seed: int) -> np.ndarray:
        """(nodes,) int64: how fast each node's clock strays without a master, in parts of 10^12."""
        return random.below(random.words(random.key(seed, RATE), self.nodes), 2 * self.rate + 1) - self.rate


class Stretch(NamedTuple):
    """A time in which every clock is off by a straight line: `error` ps at `begin`, then `rate` parts of 10^12."""

    begin: int
    end: int | None
    master: int | None  # None while there is none
    error: list  # exact, in parts of 10^12 of a ps, by node
    rate: list  # by node

    def at(self, i: int, time: int) -> int:
        """How far node i is off at a time, in parts of 10^12 of a ps."""
        return self.error[i] + self.rate[i] * (time - self.begin)


def stretches(clocks: Clocks, outages=(), *, seed: int = 0) -> list[Stretch]:
    """The errors of all clocks from time 0 on, as masters fail and others take over. Node 0 is the first master.

    A master is lost when it fails or its link does. One that comes back is a node like any other. Where nobody can be
    master at the start, the clocks agree and stray from there, as if one had been lost at once.
    """
    down = _down(outages)
    zero = [0] * clocks.nodes
    strays = clocks.strays(seed).tolist()
    master, tenure, now, out = _lowest(down, clocks.nodes, 0), 0, 0, []
    if master is None:
        follows, master = _follower(clocks, down, now)
        out.append(Stretch(now, follows, None, zero, strays))
        now, tenure = follows, 1
    while master is not None:
        settled = [e * PPT for e in clocks.residual(master, tenure, seed).tolist()]
        if out:  # the others have its rate, but its time only after the next exchange
            error = [out[-1].at(i, now) for i in range(clocks.nodes)]
            meet = _exchange(clocks, now)
            lost = _lost(down, master, now)
            until = meet if lost is None else min(meet, lost)
            out.append(Stretch(now, until, master, error, zero))
            now = until
            if now == lost:
                settled = error
        else:
            lost = _lost(down, master, now)
        if lost is None or now < lost:
            out.append(Stretch(now, lost, master, settled, zero))
        if lost is None:
            return out
        now, before, tenure = lost, out[-1].error, tenure + 1
        follows, master = _follower(clocks, down, lost)
        out.append(Stretch(now, follows, None, before, strays))
        now = follows
    return out


def spans(clocks: Clocks, outages=(), *, seed: int = 0) -> list[list[tuple[int, int | None]]]:
    """For each node the times [begin, end) in ps in which its clock is off; None is for ever.

    A node that comes back knows no time before the next exchange, and is off until then.
    """
    limit = clocks.allowed * PPT  # against twice the error
    out: list[list[tuple[int, int | None]]] = [[] for _ in range(clocks.nodes)]
    for stretch in stretches(clocks, outages, seed=seed):
        for i in range(clocks.nodes):
            out[i] += _beyond(stretch, i, limit)
    for outage in outages:
        if outage.what == "node" and outage.until is not None:
            out[outage.which[0]].append((outage.until, _exchange(clocks, outage.until)))
    return [_joined(each) for each in out]


def off(clocks: Clocks, outages=(), slot_time: int = 1, *, seed: int = 0) -> Off:
    """The same slot by slot: off in a slot is off at any moment of it. What no run lives to see is left out."""
    found = [
        [
            (begin // slot_time, None if end is None or end > LATEST else -(-end // slot_time))
            for begin, end in each
            if begin <= LATEST
        ]
        for each in spans(clocks, outages, seed=seed)
    ]
    slots = sorted({0, *(edge for each in found for span in each for edge in span if edge is not None)})
    rows = np.zeros((len(slots), clocks.nodes), bool)
    index = {slot: k for k, slot in enumerate(slots)}
    for i, each in enumerate(found):
        for begin, end in each:
            rows[index[begin] : None if end is None else index[end], i] = True
    return Off(np.array(slots, np.int64), pack(rows))


def _beyond(stretch, i, limit):
    """The times of a stretch in which node i is off: none, all, or up to two pieces of it."""
    begin, end, error, rate = stretch.begin, stretch.end, 2 * stretch.error[i], 2 * stretch.rate[i]
    if rate < 0:
        error, rate = -error, -rate  # the same the other way round
    pieces = []
    if error < -limit:  # below at first; within from the first whole ps at which error + rate * x >= -limit
        back = None if rate == 0 else begin + -(-(-limit - error) // rate)
        pieces.append((begin, back if end is None else end if back is None else min(back, end)))
    if error > limit:
        pieces.append((begin, end))
    elif rate > 0:  # beyond from the first whole ps at which error + rate * x > limit
        out = begin + (limit - error) // rate + 1
        if end is None or out < end:
            pieces.append((out, end))
    return [piece for piece in pieces if piece[1] is None or piece[0] < piece[1]]


def _joined(pieces):
    """Spans in order, those that touch made one."""
    out = []
    for begin, end in sorted(pieces, key=lambda span: span[0]):
        if out and (out[-1][1] is None or begin <= out[-1][1]):
            last = out[-1][1]
            out[-1] = (out[-1][0], None if last is None or end is None else max(last, end))
        else:
            out.append((begin, end))
    return out


def _down(outages: list[Outage]):
    """node -> spans in which it cannot be master."""
    out: dict[int, list[tuple[int, int | None]]] = {}
    for outage in outages:
        if outage.what in ("node", "link"):
            out.setdefault(outage.which[0], []).append((outage.at, outage.until))
    return {i: _joined(each) for i, each in out.items()}


def _lost(down, i, now):
    """When node i, up now, goes down next; None for never."""
    return min((begin for begin, _ in down.get(i, ()) if begin >= now), default=None)


def _lowest(down, nodes, now):
    """The lowest node that is up, or None."""
    for i in range(nodes):
        if not any(begin <= now and (end is None or now < end) for begin, end in down.get(i, ())):
            return i
    return None


def _follower(clocks, down, lost):
    """When another master serves, and who, after one was lost; None, None if nobody ever does."""
    follows = None if clocks.failover is None else lost + clocks.failover
    master = None if follows is None else _lowest(down, clocks.nodes, follows)
    return (None, None) if master is None else (follows, master)


def _exchange(clocks, now):
    """The first exchange at or after a time."""
    return -(-now // clocks.resync) * clocks.resync


# ---------------------------------------------------------------- how a rack starts


class Step(NamedTuple):
    """A step of the start: who does what, and for how long."""

    name: str
    begin: int
    end: int
    why: str


def bootstrap(*, nodes: int, flight: int, epoch: int, uncertainty: int = 1 * ms, precision: int = 50) -> list[Step]:
    """How a rack starts (§3.4): hold, synchronise, signal, run; with the times that follow from ours.

    flight: ps of a cell from node to node. uncertainty: how far clocks are apart when power comes. The paper gives the
    four steps and no durations. Ours: while the switches hold the circuits of the first slot, node i reaches only node
    i + 1, so that an answer comes back round the whole rack; every exchange halves the error; and the master's time
    goes once round, from node to node. The bootstrap signal then takes one flight, and data begins with the next epoch.
    """
    require(nodes >= 2, "nodes", "at least 2", nodes)
    require(flight > 0, "flight", "above 0", flight)
    if precision <= 0:
        raise BadInput(f"precision must be above 0 for clocks ever to reach it, not {precision}")
    ratio = -(-uncertainty // precision)
    exchanges = (ratio - 1).bit_length() if ratio > 1 else 0
    synchronise = exchanges * nodes * flight + (nodes - 1) * flight
    signal = synchronise + flight
    return [
        Step("hold", 0, synchronise, "switches keep the circuits of the first slot"),
        Step("synchronise", 0, synchronise, f"{exchanges} exchanges round the rack, then the master's time once round"),
        Step("signal", synchronise, signal, "nodes tell the switches to begin"),
        Step("run", signal, -(-signal // epoch) * epoch, "switches step through their schedules from the next epoch"),
    ]
