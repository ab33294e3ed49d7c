"""The records of hosts: packets, flows, subflows and hosts, and the world that holds them and a network together.

Kernels take one record, the world, and reach every table through it: `flow_at(s, slot)` is the flow in a slot. A
network adds fields and tables of its own with `world`. Numba compiles the functions of this package for the world they
are called with, so they ask of it no more than that it has the fields named here.
"""

from dataclasses import dataclass

import numpy as np
from numba import carray

from weft import random
from weft.engine import calendar, events, fingerprint
from weft.engine.events import CLOCK, EVENT
from weft.engine.fingerprint import fold
from weft.engine.jit import hot, view
from weft.engine.views import fields, pointer
from weft.hosts.settings import LEAST, NICS, ROUTINGS, WIRE
from weft.units import wire_time

# Kinds of rows. Those below FIRST_TIMER are the network's to release: packets of hosts, then what the network itself
# sends or schedules, from OWN on. The others are timers of hosts.
DATA, ACK, NACK, PULL, CNP = 1, 2, 3, 4, 5
OWN, FIRST_TIMER = 6, 17
RTO, DELAYED, PACE, TURN, ALPHA, RAISE, HAND, LOST = 17, 18, 19, 20, 21, 22, 23, 24
OWN_TIMER = 25  # from here on: timers of a transport that is a network's own

# Flags of a packet.
MARKED, ECHO, TRIMMED, BOUNCED, AGAIN, URGENT = 1, 2, 4, 8, 16, 32

TCP, DCTCP, MPTCP, NDP, DCQCN = range(5)  # as in settings.TRANSPORTS
ECMP, RANDOM, PERMUTED, ROUND_ROBIN, SINGLE = range(5)  # as in settings.ROUTINGS
FAIR = NICS.index("fair")
ONE_CLASS, CONTROL_FIRST, URGENT_FIRST = (
    0,
    1,
    2,
)  # what may pass data at a host's port: nothing, control, urgent data too
STRICT = 255  # `prefer` where data never goes before control

# Runs of segments that a receiver remembers, and at most names, in a selective ACK; they come first in its `options`.
BLOCKS = 4
DATA_ACK = 2 * BLOCKS

# One cache line.
PACKET = np.dtype(
    [
        *EVENT,
        ("flags", "u1"),
        ("sub", "u1"),  # which subflow of its flow
        ("epoch", "u1"),  # the network's: how often its link had failed when it was accepted
        ("dst", "i4"),  # host it travels to; of a pacer's timer, the host itself
        ("port", "i4"),  # the network's: port it crosses; before it enters, its host
        ("path", "i4"),  # what is left of its path number
        ("size", "i4"),  # bytes on the wire: preamble and gap included
        ("flow", "i4"),  # slot of its flow …
        ("seq", "i4"),  # segment number; of an ACK the next one expected, of a PULL its count
        ("id", "i4"),  # … and the flow that held the slot when it was sent: a slot is used again
        ("echo", "i4"),  # segment that caused this ACK or NACK; of a selective ACK, how many runs it names
        ("sent", "i8"),  # when the segment left the transport
    ]
)

FLOW = np.dtype(
    [
        ("id", "i8"),  # row in the table of flows, or -1 while the slot is free
        ("segments", "i8"),
        ("taken", "i8"),  # segments handed to subflows
        ("got", "i8"),  # distinct segments that reached the receiver
        ("src", "i4"),
        ("dst", "i4"),
        ("tail", "i4"),  # payload of the last segment
        ("next", "i4"),  # free list; or the next flow waiting at its host
        ("paths", "i4"),
        ("done", "u1"),
        ("queued", "u1"),  # 1 while in a list of its host
        ("urgent", "u1"),  # 1 for a flow of a class above 0
        ("", "u1"),
        ("ahead", "i4"),  # first of its data packets that wait in a fair NIC, or -1
        ("back", "i4"),  # the same of its control packets, at the receiver's NIC
        # a cache line; then MPTCP, where it knows the order of all segments of a flow
        ("acked", "i8"),  # sender: all below have arrived
        ("expected", "i8"),  # receiver: all below have arrived
        ("owed", "i4"),  # sender: segments that another subflow is to send
        ("", "i4", (11,)),
    ]
)

# Lines of a cache: what every sender needs, what it needs less often, marks, the receiver, the rest.
SUB = np.dtype(
    [
        # the sender
        ("una", "i8"),  # oldest segment not acknowledged
        ("nxt", "i8"),  # next to send
        ("top", "i8"),  # one behind the newest ever sent
        ("window", "i8"),  # congestion window, bytes
        ("threshold", "i8"),  # slow start ends here
        ("credit", "i8"),  # byte count of congestion avoidance; of DCQCN, bytes since the last raise
        ("rto", "i8"),
        ("deadline", "i8"),  # when the retransmission timer expires, or 0
        # …
        ("rtt", "i8"),  # smoothed, or 0 before the first sample
        ("rtt_var", "i8"),
        ("recover", "i8"),  # recovery ends when this is acknowledged
        ("last", "i8"),  # subflow segment that carries the end of the flow, or -1
        ("timer", "i4"),  # row of the pending timer, or -1
        ("path", "i4"),
        ("duplicates", "i4"),
        ("recovering", "u1"),
        ("cut", "u1"),  # DCTCP: this window has been reduced
        ("backoff", "u1"),
        ("", "u1"),
        ("key", "u8"),  # randomness
        ("draws", "i8"),
        # DCTCP and DCQCN
        ("alpha", "i8"),  # parts of 2**20
        ("acked", "i8"),
        ("acked_marked", "i8"),
        ("window_end", "i8"),
        ("target", "i8"),
        ("rate", "i8"),
        ("stage", "i4"),  # DCQCN: expiries of the timer since the last cut
        ("stage_bytes", "i4"),
        ("timer_alpha", "i4"),
        ("timer_raise", "i4"),
        # the receiver
        ("expected", "i8"),
        ("stamp", "i8"),  # sending time to echo
        ("wait", "i8"),  # when the delayed ACK is due, or 0
        ("timer_wait", "i4"),
        ("pending", "i4"),  # segments not yet acknowledged; of NDP, pulls owed
        ("pulled", "i8"),  # NDP: pulls sent; DCQCN: time of the last CNP
        ("walked", "i8"),  # packets sent along the permutation of paths
        ("echoing", "u1"),  # DCTCP: congestion seen in the segments pending
        ("", "u1", (15,)),
        # the rest
        ("answered", "i8"),  # NDP sender: highest pull seen
        ("flying", "i8"),  # NDP sender: segments in flight
        ("lost", "i8"),  # NDP sender: segments to send again
        ("mended", "i4"),  # with sack: highest segment sent again in this recovery, RFC 6675's HighRxt
        ("rescued", "i4"),  # with sack: what must be acknowledged before a last resort, RFC 6675's RescueRxt
        ("penalised", "i8"),  # MPTCP: when its window was last halved for holding the others up
        ("", "i8", (3,)),
    ]
)

# One cache line.
HOST = np.dtype(
    [
        ("first", "i4"),  # flows waiting for the transport's pacer, round robin
        ("last", "i4"),
        ("port", "i4"),  # the network's own number of its port; of several, the first
        ("pacing", "u1"),  # 1 while a PACE event is on its way
        ("blocked", "u1"),  # 1 while the NIC waits for room on the port; the network then sets `has_room`
        ("handing", "u1"),  # 1 while a HAND event is on its way
        ("turn", "u1"),  # control packets that a fair NIC has sent since the last data packet
        ("free_at", "i8"),  # when the pacer may act again
        ("delivered", "i8"),  # distinct payload bytes received
        ("rate", "i8"),  # b/s of its port
        ("line_free", "i8"),  # when the last bit that a fair NIC, or `nic.leave`, put on the line will have left
        ("ring", "i4"),  # a fair NIC's packets: the last of the lanes in its round, or -1 …
        ("ring_first", "i4"),  # … and the same of those that go first
        ("", "i8"),
    ]
)

TRAFFIC = np.dtype(
    [
        ("size", "i8"),
        ("start", "i8"),
        ("finish", "i8"),  # ps, -1 while unfinished
        ("received", "i8"),  # distinct payload bytes
        ("src", "i4"),
        ("dst", "i4"),
        ("klass", "i4"),
        ("", "i4"),
    ]
)

PARAMETERS = (
    ("transport", "routing", "nic", "subflows", "reach", "paths"),
    ("payload", "overhead", "control", "smallest"),  # bytes: a full segment, what is around it, an ACK, the least frame
    ("initial_window", "threshold", "max_window", "ack_every", "sack", "limited", "gain_shift"),  # windows in segments
    ("coupled", "stream", "stream_window", "reinject", "opportunistic", "penalise"),  # MPTCP
    ("rto_min", "rto_first", "rto_max", "ack_delay"),
    ("scoreboard", "pull_gap", "cnp_gap", "alpha_gap", "raise_gap", "raise_bytes", "fast_rounds"),
    ("rate_step", "rate_leap", "rate_min"),
    ("notice",),  # ps after which a sender knows of a loss without an acknowledgement, or 0 where it never does
    ("classes", "prefer"),  # the network's: what may pass data at a host's port, and how often before data has a turn
)
PLACES = (
    ("next_flow", "free_slot", "used_slots", "live", "finished"),
    ("known", "coming"),  # flows that wait for no other; flows that are released and wait for their moment
    ("limit",),  # in the loop: the last moment before the next flow begins, or at which to stop
    ("first_out", "last_out"),  # packets that transports have sent and NICs have not yet taken, or -1
    ("has_room",),  # a host whose port has sent a data packet while it was `blocked`, or -1
    ("due_now", "due_order"),  # a host whose pacer is due in this very picosecond, or -1, and the number of that event
)
COUNTERS = (
    ("sent_segments", "resent", "timeouts", "fast_retransmits", "duplicates", "moved"),
    ("acks", "nacks", "pulls", "cnps"),
    ("landed",),  # packets that have reached their host
    ("cut_short",),  # flows that ended before their last byte; none may
    ("conserved_in", "conserved_out"),  # packets made and packets ended; the difference is on its way
)
NUMBERS = sum((*PARAMETERS, *PLACES, *COUNTERS), ())

PER_PACKET = ("rows", "due", "spare", "heap", "options", "lanes")  # tables that grow together, and likewise:
PER_FLOW = ("flows", "subs", "out", "got", "latest", "carries", "bearer", "arrived", "order", "via", "score")
TABLES = ("rows", "options", "lanes", "hosts", *PER_FLOW, "traffic", "waits", "successors", "print")


def world(numbers: tuple = (), tables: tuple = ()) -> np.dtype:
    """The record of a run whose network adds int64s called `numbers` and arrays called `tables`."""
    own = [(name, "i8") for name in (*NUMBERS, *numbers)]
    return np.dtype([*CLOCK, *own, ("key", "u8"), *fields(*TABLES, *tables)])


@dataclass
class Arrays:
    """What hosts change in a run, allocated once; a network's state adds its own, longer tables may replace these."""

    world: np.ndarray  # (1,) world()  the clock, the parameters, the counters, and where everything else lies
    heads: np.ndarray  # (ring,) int32
    held: np.ndarray  # (ring / 64,) uint64  with those around it, the event queue
    due: np.ndarray  # (rows,) int32
    spare: np.ndarray  # (rows,) int32
    heap: np.ndarray  # (rows,) int32
    rows: np.ndarray  # (rows,) PACKET
    options: np.ndarray  # (rows, 2 * BLOCKS + 1) int32  of an ACK: runs it names, as [first, end), and MPTCP's data ACK
    lanes: np.ndarray  # (rows, 2) int32  fair NIC, of the first packet of a lane: the last one, the lane after it
    hosts: np.ndarray  # (hosts,) HOST
    flows: np.ndarray  # (slots,) FLOW
    subs: np.ndarray  # (slots * subflows,) SUB
    out: np.ndarray  # (slots * subflows, reach) uint8  what the sender knows of a segment
    got: np.ndarray  # (slots * subflows, reach) uint8  1 where the receiver has it
    latest: np.ndarray  # (slots * subflows, BLOCKS) int32  with sack: a segment of each run that arrived last, or -1
    carries: np.ndarray  # (slots * subflows, reach) int32  MPTCP: the segment of the flow that one of a subflow is
    bearer: np.ndarray  # (slots, stream) uint8  MPTCP: who bears a segment of the flow, see mptcp.py
    arrived: np.ndarray  # (slots, stream) uint8  MPTCP: 1 where the receiver has a segment of the flow
    order: np.ndarray  # (slots * subflows, paths) int32  the permutation being walked
    via: np.ndarray  # (slots, reach) uint16  NDP: the path that a segment was sent by
    score: np.ndarray  # (slots, paths, 3) int32  NDP: of each path, segments answered, segments failed, 1 if left out
    traffic: np.ndarray  # (flows,) TRAFFIC  the table of flows
    waits: np.ndarray  # (flows, 8) int64, or no rows  flows that wait for flows, see weft.engine.calendar
    successors: np.ndarray  # int32  those that each of them releases
    print: np.ndarray  # (2,) uint64  the fingerprint so far

    @property
    def now(self) -> int:
        """Where the clock stands, ps."""
        return int(self.world["now"][0])

    @property
    def finished(self) -> int:
        """Flows that have arrived whole."""
        return int(self.world["finished"][0])


def tables(fabric, flows, *, paths: int = 1, ring: int = 1 << 10, rows: int = 1 << 15, slots: int = 256) -> dict:
    """Name -> (shape, dtype) of all arrays of `Arrays` but the world, for `fabric` and its flows.

    paths is the largest number of paths between two hosts, ring that of buckets of the event queue.
    """
    set_ = fabric.settings
    subs, reach, stream = slots * set_.subflows, _reach(set_), _stream(set_)
    return {
        **events.tables(rows, ring),
        "rows": (rows, PACKET),
        "options": ((rows if _blocks(set_) or stream else 1, 2 * BLOCKS + 1), np.int32),
        "lanes": ((rows if set_.nic == "fair" else 1, 2), np.int32),
        "hosts": (fabric.hosts, HOST),
        "flows": (slots, FLOW),
        "subs": (subs, SUB),
        "out": ((subs, reach), np.uint8),
        "got": ((subs, reach), np.uint8),
        "latest": ((subs if _blocks(set_) else 1, BLOCKS), np.int32),
        "carries": ((subs, reach if stream else 1), np.int32),
        "bearer": ((slots, stream or 1), np.uint8),
        "arrived": ((slots, stream or 1), np.uint8),
        "order": ((subs, paths), np.int32),
        "via": ((subs, reach if set_.transport == "ndp" else 1), np.uint16),
        "score": ((subs, paths, 3), np.int32),
        "traffic": (len(flows), TRAFFIC),
        **calendar.tables(flows),
        "print": (2, np.uint64),
    }


def begin(arrays: Arrays, fabric, flows, *, seed: int, shift: int, paths: int = 1, classes=ONE_CLASS, prefer=STRICT):
    """Make zeros as in `tables` hosts to which nothing has happened, with `flows` to come.

    shift is the event queue's (`events.shift_for`); the rates and ports of hosts are the network's to write.
    """
    events.schedule(arrays.world, vars(arrays), shift=shift, ties=fabric.ties, seed=seed)
    set_ = fabric.settings
    values = {
        "transport": set_.transports.index(set_.transport),
        "routing": ROUTINGS.index(set_.routing),
        "nic": NICS.index(set_.nic if set_.transport != "dcqcn" else "fifo"),  # whose NIC takes flows in turn anyway
        "reach": _reach(set_),
        "paths": paths,
        "payload": fabric.payload,
        "overhead": set_.header + WIRE,
        "smallest": LEAST,
        "sack": _blocks(set_),
        "coupled": set_.coupled and set_.transport == "mptcp",
        "stream": _stream(set_),
        "reinject": set_.reinject and set_.ordered,
        "scoreboard": set_.scoreboard and set_.transport == "ndp" and set_.routing == "permuted",
        "pull_gap": wire_time(fabric.wire_size, fabric.link),
        "classes": classes,
        "prefer": prefer,
        "notice": getattr(set_, "notice", 0),
        "free_slot": -1,
        "first_out": -1,
        "has_room": -1,
        "due_now": -1,
        "key": random.key(seed, 0x706B74),
    }
    values |= {name: getattr(set_, name) for name in sum(PARAMETERS, ()) if name not in values}
    for name, value in values.items():
        arrays.world[name] = value
    for name in ("first", "last", "ring", "ring_first"):
        arrays.hosts[name] = -1
    for name in ("src", "dst", "size", "start", "klass"):
        arrays.traffic[name] = getattr(flows, name)
    arrays.traffic["finish"] = -1
    arrays.world["known"] = len(flows) - flows.waiting
    calendar.fill(arrays.waits, arrays.successors, flows)
    arrays.print[:] = fingerprint.start()


def _reach(set_) -> int:
    """Segments of a subflow that are told apart: a power of two."""
    return 1 << max(set_.max_window - 1, 1).bit_length()


def _stream(set_) -> int:
    """Segments of a flow that are told apart, or 0 where they are only counted."""
    return 1 << (set_.stream_window - 1).bit_length() if set_.ordered else 0


def _blocks(set_) -> int:
    """Runs that an ACK names, or 0 without selective ACKs."""
    return set_.blocks if set_.sack and set_.transport in ("tcp", "dctcp", "mptcp") else 0


@hot
def lose(s, r):
    """End packet r, which is lost: fold that into the fingerprint and free its row.

    Where senders are told of losses (`notice`), the row becomes the timer that tells them: LOST.
    """
    p = packet_at(s, r)
    fold(print_(s), s.now, ~((np.int64(p.id) << 32) | np.int64(p.seq)))
    s.conserved_out += 1
    if s.notice > 0:
        p.kind = LOST
        events.push(s, rows(s), r, s.now + s.notice)
    else:
        events.give(s, rows(s), r)


@view
def rows(s):
    return carray(pointer(s.rows_at), (s.rows_size,), PACKET)


@view
def hosts(s):
    return carray(pointer(s.hosts_at), (s.hosts_size,), HOST)


@view
def flows(s):
    return carray(pointer(s.flows_at), (s.flows_size,), FLOW)


@view
def subs(s):
    return carray(pointer(s.subs_at), (s.subs_size,), SUB)


@view
def traffic(s):
    return carray(pointer(s.traffic_at), (s.traffic_size,), TRAFFIC)


@view
def waits(s):
    return carray(pointer(s.waits_at), (s.waits_size, calendar.COLUMNS), np.int64)


@view
def successors(s):
    return carray(pointer(s.successors_at), (s.successors_size,), np.int32)


@view
def packet_at(s, r):
    """Packet or timer r."""
    return rows(s)[np.uint64(r)]


@view
def host_at(s, h):
    """Host h."""
    return hosts(s)[np.uint64(h)]


@view
def flow_at(s, slot):
    """The flow in a slot."""
    return flows(s)[np.uint64(slot)]


@view
def sub_at(s, i):
    """Subflow i, counted over all slots."""
    return subs(s)[np.uint64(i)]


@view
def traffic_at(s, f):
    """Flow f of the workload."""
    return traffic(s)[np.uint64(f)]


@view
def out(s):
    return carray(pointer(s.out_at), (s.out_size, s.reach), np.uint8)


@view
def got(s):
    return carray(pointer(s.got_at), (s.got_size, s.reach), np.uint8)


@view
def options(s):
    return carray(pointer(s.options_at), (s.options_size, 2 * BLOCKS + 1), np.int32)


@view
def carries(s):
    return carray(pointer(s.carries_at), (s.carries_size, s.reach), np.int32)


@view
def bearer(s):
    return carray(pointer(s.bearer_at), (s.bearer_size, s.stream), np.uint8)


@view
def arrived(s):
    return carray(pointer(s.arrived_at), (s.arrived_size, s.stream), np.uint8)


@view
def latest(s):
    return carray(pointer(s.latest_at), (s.latest_size, BLOCKS), np.int32)


@view
def order(s):
    return carray(pointer(s.order_at), (s.order_size, s.paths), np.int32)


@view
def via(s):
    return carray(pointer(s.via_at), (s.via_size, s.reach), np.uint16)


@view
def score(s):
    return carray(pointer(s.score_at), (s.score_size, s.paths, 3), np.int32)


@view
def print_(s):
    return carray(pointer(s.print_at), (s.print_size,), np.uint64)


@view
def lanes(s):
    return carray(pointer(s.lanes_at), (s.lanes_size, 2), np.int32)
