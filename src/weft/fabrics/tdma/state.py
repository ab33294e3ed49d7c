"""What a run of TDMA knows, as arrays: for the kernel, which does not ask Python from one round to the next."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

STOP, GO = 0, 1  # frames of a cycle
NEVER = 1 << 62  # ps, and bytes without a limit

BUSY, IDLE, SINCE, GAP, LAST = range(5)  # of `lines`: when its last spell of work is over, how long it was idle until
#                                         then, when that spell began, how long it was idle just before, and its cycle
IN_SLOTS, ASIDE = 0, 1  # of `lines` too: what a port sends in slots, and in the rate that is kept for short flows

Number = IntEnum(
    "Number",
    "HOSTS SLOTS SLOT GUARD CYCLE PERMIT LEAD AGE COMPUTE SPACING TRANSIT LAG JITTER LOSS MTU OVERHEAD STORE BUFFER "
    "SEND RECEIVE DRAIN SILENCE WRITE TREND URGENT DEADLINE SHARE "
    "INBAND PORT",
    start=0,
)
Number.__doc__ = "Places of the numbers that describe a run."

Count = IntEnum(
    "Count",
    "CYCLE FIRST BEGIN DEATH READY ADOPTED NOW ADMITTED FINISHED SHORT FRAMES MISSED GRANTS UNUSED LATE STREAMS SENT "
    "PACKETS DELIVERED OVERLAPS INTERLEAVED QUEUED QUEUE DROPPED STRANDED OVERRUNS REUSED OVERFLOWS SKIPPED "
    "OFFERED GOAL HEAPED CUT SHARED GIVEN ABSENT BEYOND",
    start=0,
)
Count.__doc__ = "Places of the clock and of the counters of a run."


class Fixed(NamedTuple):
    """What no step changes. n hosts, f flows, ports as in `Topology`."""

    number: np.ndarray  # (len(Number),) int64
    keys: np.ndarray  # (2,) uint64  of the streams of reactions and of losses
    packet: np.ndarray  # (rates, mtu + 1) int64  ps of a packet with so many bytes of payload, the slowest rate first
    pace: np.ndarray  # (ports,) int32  which of the rates a port has
    capacity: np.ndarray  # (ports,) int64  bytes of a slot
    aside: np.ndarray  # (mtu + 1,) int64  the same outside the slots
    delay: np.ndarray  # (ports,) int64  ps along a link and through the switch at its end
    own: np.ndarray  # (n,) int32  port of a host
    nic: np.ndarray  # (n,) int32  NIC of the manager that serves a host
    before: np.ndarray  # (n,) int64  frames of its NIC before those of its switch
    firsts: np.ndarray  # (nics, switches) int64  the same for each switch of a NIC
    switches: np.ndarray  # (nics,) int64  switches of a NIC
    frames: np.ndarray  # (nics,) int64  hosts of a NIC
    place: np.ndarray  # (n,) int64  place of a host in its switch
    mates: np.ndarray  # (n,) int64  hosts of its switch
    offset: np.ndarray  # (nics,) int64  ps by which a NIC's clock is late
    drift: np.ndarray  # (nics,) int64  ppb by which it is slow
    frame: np.ndarray  # (n,) int64  ps that a control frame takes on the link to a host
    src: np.ndarray  # (f,) int32
    dst: np.ndarray  # (f,) int32
    size: np.ndarray  # (f,) int64
    start: np.ndarray  # (f,) int64
    short: np.ndarray  # (f,) bool  sent outside the slots
    known: int  # flows that wait for no other: the first ones
    ways: np.ndarray  # (n, n, hops) int32  ports of short flows, -1 beyond the last; empty without them


class TdmaState(NamedTuple):
    """What a step may change."""

    count: np.ndarray  # type: ignore[assignment]  # (len(Count),) int64; hides tuple.count
    fingerprint: np.ndarray  # (2,) uint64
    left: np.ndarray  # (n, n) int64  [i, j]  bytes that wait at i for j: what the application has written
    behind: np.ndarray  # (n, n) int64  [i, j]  bytes of flows that have begun which it has not written yet
    wrote: np.ndarray  # (n, n) int64  [i, j]  ps up to which its writing is known
    written: np.ndarray  # (n, n) int64  [i, j]  bytes that it has written since i last reported
    got: np.ndarray  # (n, n) int64  [i, j]  bytes that have arrived at j from i
    held: np.ndarray  # (n, n) int64  [i, j]  bytes in j's receive buffer from i that were not read
    read: np.ndarray  # (n, n) int64  [i, j]  ps up to which that is known
    head: np.ndarray  # (n, n) int64  [i, j]  the flow whose bytes come next, or -1
    tail: np.ndarray  # (n, n) int64  [i, j]  the last flow that waits, or -1
    next: np.ndarray  # (f,) int64  the flow behind this one in its pair
    done: np.ndarray  # (f,) int64  bytes of a flow that have arrived
    begun: np.ndarray  # (f,) int64  ps at which it could begin, or -1
    finish: np.ndarray  # (f,) int64  ps, or -1
    busy: np.ndarray  # (ports,) int64  ps until which a port sends what came before
    coming: np.ndarray  # (ports,) int64  ps until which that was still arriving
    stream: np.ndarray  # (ports, 6) int64  of the last stream there, where frames are among data: when its first packet
    #                     came and began, ps from one to the next, when the last one came, when all are sent, and how
    #                     much later for the frame that ends the slot, which the one that begins the next finds
    opened: np.ndarray  # (n,) int64  ps from which a host may send in this cycle, where frames are among data
    used: np.ndarray  # (ports,) int64  the last cycle that granted a port
    load: np.ndarray  # (ports,) int64  bytes that it granted there
    beside: np.ndarray  # (ports,) int64  as busy, for short flows
    lines: np.ndarray  # (ports, 2, 5) int64  ps in which a port sent; what it sends in a cycle counts as one spell
    dead: np.ndarray  # (n,) bool  hosts that are down
    down: np.ndarray  # (ports,) bool  ports of links that are down
    severed: np.ndarray  # (n, n) bool  pairs that the manager knows to have no way between them
    waiting: np.ndarray  # (n, n) int64  [i, j]  bytes that i last reported
    room: np.ndarray  # (n, n) int64  [i, j]  bytes that j last said it can take from i
    due: np.ndarray  # (n, n) int64  [i, j]  the last cycle in time for what i last reported, NEVER without a deadline
    hurry: np.ndarray  # (n, n) int64  [i, j]  bytes of which that is true
    seen: np.ndarray  # (n,) int64  the last cycle that a host's report includes
    heard: np.ndarray  # (n,) int64  cycle in which it came, or -1
    rounds: np.ndarray  # (ring,) int64  round whose grants are in that place of the ring, or -1
    many: np.ndarray  # (ring,) int64  how many they are
    when: np.ndarray  # (ring, most) int32  slot of a grant
    frm: np.ndarray  # (ring, most) int32
    to: np.ndarray  # (ring, most) int32
    given: np.ndarray  # (ring, most) int64  bytes
    speed: np.ndarray  # (ring, most) int32  which of the rates a sender keeps to
    path: np.ndarray  # (ring, most, hops) int32  ports, -1 beyond the last
    waits: np.ndarray  # (f, 8) int64, or no rows  flows that wait for flows, see weft.engine.calendar
    successors: np.ndarray  # int32  those that each of them releases


def zeros(n: int, table, ports: int, ring: int, most: int, hops: int) -> TdmaState:
    """The state of a run of the flows in `table` in which nothing has happened."""
    from weft.engine import calendar, fingerprint

    square, grants, flows = (n, n), (ring, most), len(table)
    shapes = {
        "count": len(Count), "left": square, "behind": square, "wrote": square, "written": square, "got": square,
        "held": square, "read": square, "head": square, "tail": square, "next": flows, "done": flows, "begun": flows,
        "finish": flows, "busy": ports, "coming": ports,
        "stream": (ports, 6), "opened": n, "used": ports, "load": ports, "beside": ports, "lines": (ports, 2, 5),
        "waiting": square, "room": square, "due": square, "hurry": square, "seen": n, "heard": n, "rounds": ring,
        "many": ring, "given": grants,
    }  # fmt: skip
    nobody = {"head", "tail", "next", "begun", "finish", "used", "seen", "heard", "rounds"}
    made = {name: np.full(shape, -1 if name in nobody else 0, np.int64) for name, shape in shapes.items()}
    made |= {name: np.zeros(grants, np.int32) for name in ("when", "frm", "to", "speed")}
    made |= {"fingerprint": fingerprint.start(), "dead": np.zeros(n, np.bool_), "down": np.zeros(ports, np.bool_)}
    made |= {"severed": np.zeros(square, np.bool_)}
    made["waits"], made["successors"] = calendar.make(table)
    state = TdmaState(**made, path=np.full((*grants, hops), -1, np.int32))
    state.due[:] = NEVER
    state.count[[Count.DEATH, Count.ADOPTED, Count.GOAL]] = NEVER, -1, flows
    return state


class Parcels(NamedTuple):
    """Room for the packets of one slot in which flows meet; written anew in each."""

    begin: np.ndarray  # (k,) int64  [stream]  ps from which it may send, 0 bytes if it may not
    end: np.ndarray  # (k,) int64  ps before which its packets must begin
    size: np.ndarray  # (k,) int64  bytes
    sent: np.ndarray  # (k,) int64  bytes that its host has put on the wire
    arrived: np.ndarray  # (k, 2) int64  bytes that are there, and when the last of them were
    free: np.ndarray  # (k,) int64  ps from which its next packet may begin
    after: np.ndarray  # (k,) int64  the next stream of the same host, or -1
    first: np.ndarray  # (n,) int64  the first stream of a host, or -1
    time: np.ndarray  # (m,) int64  [packet]  ps at which it is at its next port
    stream: np.ndarray  # (m,) int64
    bytes: np.ndarray  # (m,) int64  payload
    hop: np.ndarray  # (m,) int64  place of that port in its path
    heap: np.ndarray  # (m,) int64  packets by their time, then their stream, then their place here


def parcels_for(n: int, streams: int, packets: int) -> Parcels:
    """Such room."""
    shapes = {"arrived": (streams, 2), "first": n} | dict.fromkeys(("time", "stream", "bytes", "hop", "heap"), packets)
    return Parcels(**{name: np.zeros(shapes.get(name, streams), np.int64) for name in Parcels._fields})
