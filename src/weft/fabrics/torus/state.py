"""What a torus adds to the records of hosts and of ports: routes as masks, and what R2C2 knows of all flows."""

from dataclasses import dataclass

import numpy as np
from numba import carray

from weft.engine.jit import view
from weft.engine.views import pointer
from weft.fabrics.network import state as network
from weft.fabrics.torus.settings import ONE
from weft.hosts import state as hosts
from weft.hosts.state import OWN_TIMER

__all__ = ("ENTRY", "LOAD", "ONE", "TABLES", "WORLD", "TorusState")

KNOWN, FORGET, TICK, CHOOSE = range(OWN_TIMER, OWN_TIMER + 4)  # R2C2: a start, an end is known; new rates, routes
UNLIMITED = 1 << 62  # of a demand
# Of an entry. HEARD: known to all since the last computation, its loads not laid out yet; GONE: given up before that.
FREE, ANNOUNCED, TOLD, GONE, HEARD = range(5)

# A flow as R2C2's nodes know it. One cache line.
ENTRY = np.dtype(
    [
        ("id", "i8"),
        ("rate", "i8"),  # b/s that the last computation gave it
        ("first", "i8"),  # its loads: where they begin in `loads` …
        ("count", "i4"),  # … and how many there are; of a spread one, too: those are not in `loads`
        ("slot", "i4"),
        ("src", "i4"),
        ("dst", "i4"),
        ("weight", "i4"),
        ("next", "i4"),  # free list
        ("frozen", "i8"),  # number of the computation that has fixed its rate
        ("state", "u1"),
        ("ended", "u1"),  # 1 once its sender has announced its end
        ("spread", "u1"),  # 1 where its packets go by way of a random node
        ("klass", "u1"),
        ("laid", "i4"),  # loads that it has in `loads`, in use unless it is spread just now
    ]
)
# What a mask means. Dividing a path number, or parts of ONE, by 1 … 12 is a multiplication and a shift by SHARE: exact
# below 2^30. From bit COUNT on, `ports` says how many there are.
SHARE, COUNT = 34, 60
CHOICE = np.dtype(
    [
        ("whole", "u8"),  # 2^SHARE / count, rounded up
        ("ports", "u8"),  # the ports of a node, four bits each, the first lowest; and on top how many
    ]
)
LOAD = np.dtype([("port", "i4"), ("part", "i4")])  # what a port carries of a flow, in parts of ONE

PARAMETERS = (
    "degree",
    "ahead",  # 1 where the port of the next hop is chosen a hop ahead
    "valiant",  # 1 where packets may go by way of a random node …
    "chosen",  # … and this is decided flow by flow
    "choose",  # ps between two searches for a better choice
    "tries",
    "period",
    "broadcast_time",
    "broadcast_hop",
    "trees",
    "classes_of_flows",
    "strict",
    "modest",  # 1 where some flows ask for no more than so much
    "start_rate",
    "loss_chance",
    "full",  # bytes of a full packet on the wire …
    "full_time",  # … and how long a port takes for it: most packets are, and a division takes as long as a cache miss
)
PLACES = (
    "broken",  # ports that are down
    "settled",  # 1 once nothing is going to fail or be repaired any more, and routes know it
    "ticking",  # 1 while a TICK event is on its way
    "choosing",  # 1 while a CHOOSE event is
    "stale",  # 1 if flows have come or gone since the last computation
    "heard",  # entries that are HEARD
    "free_entry", "used_entries", "used_loads",
)  # fmt: skip
COUNTERS = ("abandoned", "crossed", "broadcasts", "lost_broadcasts", "computations", "frozen_ports")
ROUTED = ("tried", "switched")  # how often some flows were tried the other way, and stayed there
NUMBERS = (*network.NUMBERS, *PARAMETERS, *PLACES, *COUNTERS, *ROUTED)

FROM_NETWORK = ("ports", "buffered", "pool")
LINES = ("lines",)
BUSY, IDLE = 0, 1  # columns of `lines`, as of a port
ROUTES = ("toward", "shares", "port_of", "to_of", "back", "waypoint", "farthest", "branch", "twigs")
FLOWS = ("entries", "loads", "members", "limits", "enough", "modest_ones")
WATER = (
    "capacity",
    "asked",
    "crossing",
    "left",
    "thirst",
    "level",
    "heap_ports",
    "begins",
    "weights",
    "demands",
    "cast",
    "landed",
)
SCRATCH = ("mass", "line", "calls")
PER_ENTRY = ("entries", "enough", "modest_ones")  # tables that grow together
OWN_TABLES = (*FROM_NETWORK, *LINES, *ROUTES, *FLOWS, *WATER, *SCRATCH)
TABLES = (*hosts.TABLES, *OWN_TABLES)
WORLD = hosts.world(NUMBERS, OWN_TABLES)


@dataclass
class TorusState(hosts.Arrays):
    """Everything a run changes. n nodes of d ports each, P ports, c classes of flows."""

    ports: np.ndarray  # (P,) network's PORT
    buffered: np.ndarray  # (n,) int64  bytes that wait in a node
    pool: np.ndarray  # (n,) int64  bytes it has room for
    lines: np.ndarray  # (P, 2) int64  BUSY and IDLE of the ports, close together: a broadcast changes hundreds
    toward: np.ndarray  # (n, n) uint16  [target, node]  bits of the ports that begin a shortest path
    shares: np.ndarray  # (2**d,) CHOICE  of a mask: the ports that it names
    port_of: np.ndarray  # (n, d) int32  the port of the graph
    to_of: np.ndarray  # (n, d) int32  the node behind it
    back: np.ndarray  # (d,) uint8  the port of the node behind a port that leads back
    farthest: np.ndarray  # (n,) int64  hops to the farthest node that a node reaches
    branch: np.ndarray  # (2**d, trees) uint8  of a mask: the port that leads up each tree
    twigs: np.ndarray  # (n, trees, n) uint16, or no rows  the ports of each tree of a node; at the end, how many
    waypoint: np.ndarray  # (rows,) int32  node that a packet goes by way of, or -1; one row where none does
    entries: np.ndarray  # (entries,) ENTRY
    loads: np.ndarray  # (loads,) LOAD  of all entries, in the order in which they were laid out, with gaps
    members: np.ndarray  # (loads,) int32  entries that cross each port, port by port
    limits: np.ndarray  # (flows,) int64, or no rows  b/s that a flow asks for at most, or UNLIMITED
    enough: np.ndarray  # (entries,) int64  level at which an entry has all it asks for
    modest_ones: np.ndarray  # (entries,) int32  a heap by (enough, entry) of those that have no rate yet
    capacity: np.ndarray  # (P,) int64  b/s that R2C2 may give away, times ONE
    asked: np.ndarray  # (c, P) int64  sum of weight x part over the flows that are known
    crossing: np.ndarray  # (c, P) int64  how many those are, spread ones left out
    left: np.ndarray  # (P,) int64  capacity not yet given away
    thirst: np.ndarray  # (P,) int64  `asked` of the flows whose rate is not fixed yet
    level: np.ndarray  # (P,) int64  left // thirst, or less: it only grows
    heap_ports: np.ndarray  # (P,) int32  a heap by (level, port)
    begins: np.ndarray  # (P + 1,) int64  where the members of a port begin
    weights: np.ndarray  # (c,) int64  of the flows of a class
    demands: np.ndarray  # (c,) int64  b/s that each of them asks for at most, or UNLIMITED
    cast: np.ndarray  # (n, P) int32  parts of what a node sends to all nodes alike; no rows where nothing is spread
    landed: np.ndarray  # (n, P) int32  parts of what all nodes alike send to a node
    mass: np.ndarray  # (n,) int64  parts that pass a node, zeros between uses
    line: np.ndarray  # (n,) int32
    calls: np.ndarray  # (n,) int64  broadcasts of a node so far


@view
def lines(s):
    return carray(pointer(s.lines_at), (s.lines_size, 2), np.int64)


@view
def toward(s):
    return carray(pointer(s.toward_at), (s.toward_size, s.toward_size), np.uint16)


@view
def shares(s):
    return carray(pointer(s.shares_at), (s.shares_size,), CHOICE)


@view
def port_of(s):
    return carray(pointer(s.port_of_at), (s.port_of_size, s.degree), np.int32)


@view
def to_of(s):
    return carray(pointer(s.to_of_at), (s.to_of_size, s.degree), np.int32)


@view
def waypoint(s):
    return carray(pointer(s.waypoint_at), (s.waypoint_size,), np.int32)


@view
def entry_at(s, e):
    """Entry e."""
    return carray(pointer(s.entries_at), (s.entries_size,), ENTRY)[np.uint64(e)]


@view
def loads(s):
    return carray(pointer(s.loads_at), (s.loads_size,), LOAD)


@view
def members(s):
    return carray(pointer(s.members_at), (s.members_size,), np.int32)


@view
def limits(s):
    return carray(pointer(s.limits_at), (s.limits_size,), np.int64)


@view
def enough(s):
    return carray(pointer(s.enough_at), (s.enough_size,), np.int64)


@view
def modest_ones(s):
    return carray(pointer(s.modest_ones_at), (s.modest_ones_size,), np.int32)


@view
def capacity(s):
    return carray(pointer(s.capacity_at), (s.capacity_size,), np.int64)


@view
def asked(s):
    return carray(pointer(s.asked_at), (s.asked_size, s.ports_size), np.int64)


@view
def crossing(s):
    return carray(pointer(s.crossing_at), (s.crossing_size, s.ports_size), np.int64)


@view
def left(s):
    return carray(pointer(s.left_at), (s.left_size,), np.int64)


@view
def thirst(s):
    return carray(pointer(s.thirst_at), (s.thirst_size,), np.int64)


@view
def level(s):
    return carray(pointer(s.level_at), (s.level_size,), np.int64)


@view
def heap_ports(s):
    return carray(pointer(s.heap_ports_at), (s.heap_ports_size,), np.int32)


@view
def begins(s):
    return carray(pointer(s.begins_at), (s.begins_size,), np.int64)


@view
def cast(s):
    return carray(pointer(s.cast_at), (s.cast_size, s.ports_size), np.int32)


@view
def landed(s):
    return carray(pointer(s.landed_at), (s.landed_size, s.ports_size), np.int32)


@view
def mass(s):
    return carray(pointer(s.mass_at), (s.mass_size,), np.int64)


@view
def line(s):
    return carray(pointer(s.line_at), (s.line_size,), np.int32)


@view
def back(s):
    return carray(pointer(s.back_at), (s.back_size,), np.uint8)


@view
def farthest(s):
    return carray(pointer(s.farthest_at), (s.farthest_size,), np.int64)


@view
def branch(s):
    return carray(pointer(s.branch_at), (s.branch_size, s.trees), np.uint8)


@view
def twigs(s):
    return carray(pointer(s.twigs_at), (s.twigs_size, s.trees, s.toward_size), np.uint16)


@view
def calls(s):
    return carray(pointer(s.calls_at), (s.calls_size,), np.int64)


@view
def weights(s):
    return carray(pointer(s.weights_at), (s.weights_size,), np.int64)


@view
def demands(s):
    return carray(pointer(s.demands_at), (s.demands_size,), np.int64)
