"""What Stardust adds to the records of hosts: links and their queues, VOQs, bursts, adapters, ports and tables.

A cell is one 64-bit word: the row of its burst, the adapter it is for, the slot in which it entered the fabric, whether
it is short, and the congestion bit. Cells on a wire lie in `wire` by the slot in which they arrive, so that a slot
reads and writes the links in order; so do the first cells of every queue, in `ring`. What does not fit there is a
linked list of `cells`.
"""

from dataclasses import dataclass

import numpy as np
from numba import carray

from weft.engine.jit import view
from weft.engine.views import pointer
from weft.hosts import state as hosts
from weft.hosts.state import OWN

# Kinds of rows that are no packets; the last two are of hosts that can be paused: a line is free, a pause or its end.
TICK, CREDIT, REQUEST, EXPIRY, LEFT, PAUSE = OWN, OWN + 1, OWN + 2, OWN + 3, OWN + 4, OWN + 5
UP, DOWN = 0, 1  # `port` of a packet: on its way to its adapter, or from the last one to its host

# A cell.
ROWS, ADDRESS, BIRTH = 26, 14, 20  # bits of the row of its burst, of its adapter and of its first slot
TO, BORN, FCI = ROWS, ROWS + ADDRESS, ROWS + ADDRESS + BIRTH  # where they begin, and the congestion bit
SHORT = FCI + 1  # a bit: the cell is as long as its burst says
MANY = FCI + 2  # a bit: it is for several adapters, those of its burst's targets, and copied where their ways part
MOST_ADAPTERS = 1 << ADDRESS

WAITS = 1 << 12  # classes of latency, in slots, the last for all that is longer
RING = 32  # cells of a queue that lie in its ring
LENGTHS = 1 << 10  # the same of queues, in cells
SLOTS = 48  # digits of the count of slots in which a link has sent …
DIGIT, HELD = 0, 1  # … and at each place what is to be added, if slots so far have that digit too
ALL, OTHERS = 0, 1  # links that send: all; those that sent a control message or a cell that was lost, until counted
FULL = 1 << 10  # of an adapter's rate of credits, in parts of which congestion takes some

LINK = np.dtype(
    [
        ("head", "i4"),  # of the cells behind those in its ring, the first, or -1 …
        ("tail", "i4"),  # … and the last
        ("count", "i4"),  # cells in its queue
        ("to", "i4"),  # device that it leads to
        ("debt", "i4"),  # bytes that control messages have taken and cells still owe; below 0, what short cells left
        ("peak", "i4"),
        ("frm", "i4"),
        ("dead", "u1"),  # bits: 1 it is down, 2 it corrupts cells
        ("down", "u1"),  # 1 if it leads down
        ("place", "u1"),  # in its ring, of the first cell
        ("tier", "u1"),  # of its upper end
    ]
)
LINE = np.dtype(
    [
        ("idle", "i8"),  # bytes for which a link that had sent a short cell found nothing behind it in that slot …
        ("left", "i8"),  # … the last time
        ("at", "i8"),  # slot
    ]
)
CELL = np.dtype([("word", "u8"), ("next", "i4"), ("", "i4")])
GROUP = np.dtype([("first", "i4"), ("count", "i4"), ("place", "i4"), ("rounds", "i4"), ("draws", "i8"), ("key", "u8")])
VOQ = np.dtype(
    [
        ("first", "i4"),  # packets that wait, or -1
        ("last", "i4"),
        ("bytes", "i8"),  # of them, on the wire
        ("balance", "i8"),  # credit that is left, or was taken too much
        ("owed", "i8"),  # bytes of credit asked for that have not come
        ("want", "i8"),  # the scheduler's: bytes of credit to be given
        ("next", "i4"),  # VOQ behind it in the scheduler's round
        ("oldest", "i4"),  # burst that is to be delivered next, or -1 …
        ("newest", "i4"),  # … and the one made last
        ("home", "i4"),  # adapter
        ("host", "i4"),  # it is for
        ("klass", "i4"),
    ]
)
BURST = np.dtype(
    [
        ("serial", "i8"),
        ("voq", "i4"),
        ("dst", "i4"),  # adapter
        ("todo", "i4"),  # cells that have not entered the fabric
        ("left", "i4"),  # cells that have neither arrived nor been lost
        ("came", "i4"),  # cells that have arrived
        ("next", "i4"),  # burst behind it in its adapter
        ("after", "i4"),  # burst behind it of its VOQ
        ("size", "i8"),  # bytes that it takes of its adapter's buffer
        ("units", "i4"),  # packets without a row, in traffic that has no hosts
        ("shorts", "i4"),  # cells that are not full, the last ones …
        ("tail", "i4"),  # … and their bytes, header included
        ("done", "u1"),
        ("lost", "u1"),  # 1 once a cell is lost
        ("", "u1", (6,)),
    ]
)
PORT = np.dtype(
    [
        ("first", "i4"),  # VOQs that want credits, in their round, or -1
        ("last", "i4"),
        ("first_high", "i4"),  # the same of the upper class
        ("last_high", "i4"),
        ("credit_at", "i8"),  # when the next credit may go
        ("free_at", "i8"),  # when its line has sent what it has
        ("interval", "i8"),  # ps between credits
        ("watermark", "i8"),  # ps of backlog above which there are none
        ("adapter", "i4"),
        ("served", "i4"),  # credits of the upper class since one of the lower
        ("peak", "i8"),  # longest backlog, ps
    ]
)
ADAPTER = np.dtype(
    [
        ("first", "i4"),  # bursts to be sent, or -1
        ("last", "i4"),
        ("first_high", "i4"),  # the same of the upper class
        ("last_high", "i4"),
        ("used", "i8"),  # bytes of its buffer
        ("peak", "i8"),
        ("factor", "i4"),  # of its rate of credits, in parts of FULL
        ("marks", "i4"),  # cells with the congestion bit since the last look …
        ("seen", "i4"),  # … and all cells
        ("open", "i4"),  # cells in reassembly
        ("most", "i4"),
        ("uplinks", "i4"),
        ("waiting", "i4"),  # bytes in the queues of its uplinks
        ("fault", "i4"),  # 1: gives credits without end
        ("stopped", "i4"),  # 1: has told its hosts to pause …
        ("stops", "i4"),  # … so often
        ("told", "i8"),  # bytes of control messages sent, and not yet charged to its links …
        ("heard", "i8"),  # … and received
    ]
)
GATE = np.dtype(
    [
        ("first", "i4"),  # packets that wait at the port of a host that can be paused, or -1
        ("last", "i4"),
        ("data", "i4"),  # how many of them are data
        ("busy", "u1"),  # 1 while it sends one
        ("paused", "u1"),
        ("", "u1", (2,)),
    ]
)
DEVICE = np.dtype(
    [
        ("held_up", "i8"),  # bytes of cells in its queues at the last look
        ("held_down", "i8"),
        ("most_up", "i4"),  # whole cells that would take as much
        ("most_down", "i4"),
        ("pool_up", "i4"),  # whole cells that its memory has room for
        ("pool_down", "i4"),
        ("stop_up", "i4"),  # above which it pauses those who send to it
        ("stop_down", "i4"),
        ("paused", "u1"),  # bits: 1 down, 2 up; as its neighbours know it …
        ("pausing", "u1"),  # … and as they will
        ("", "u1", (6,)),
    ]
)

PARAMETERS = (
    ("slot", "hop", "cables", "edge", "adapters", "levels"),
    ("cell", "least", "filling", "credit", "control_size", "message", "packing", "whole_credits", "fine"),
    ("policy", "free_class", "capacity", "mark_above", "pausing", "stop_above", "go_below", "pause_way"),
    ("branching", "targets_each"),  # 1 where packets for several nodes are copied inside; columns of `targets`
    ("noise",),  # chance that a slot of a link that corrupts cells is corrupt, in parts of 2**32
    ("fci", "window", "cut", "gain", "redraw", "period", "delay", "patience"),
    ("open_loop", "node_slot", "whole", "chance", "end_chance", "fanout", "last_unit", "warmup", "margin"),
)
PLACES = (
    (
        "ticking",
        "inside",
        "to_send",
        "asking_count",
        "any_paused",
        "serial",
        "unit_at",
        "applied",
        "controls",
        "broken",
    ),
    ("free_cell", "used_cells", "free_burst", "used_bursts", "bursts_alive"),
    ("window_at", "period_at", "look_at", "sent_at"),
)
COUNTERS = (
    ("ticks", "hops", "entered", "arrived", "lost_link", "lost_route", "skipped", "marks", "pauses", "overflows"),
    ("lost_error",),  # cells that a link has corrupted
    ("copied",),  # cells that elements have made of others, for several adapters
    ("saved",),  # bytes that short cells which have entered were shorter than whole ones
    ("bursts_made", "local", "latency_max", "reports", "throttled", "measured_from", "entered_from"),
    ("requests", "asked", "reached", "credits_sent", "credit_bytes", "credits_got", "credit_bytes_got", "spent"),
    ("control_lost", "credits_lost", "asked_lost", "drop_full", "drop_late"),
    ("units_in", "units_out", "units_lost"),
)
KEYS = ("control_key", "error_key", "unit_key", "end_key", "fanout_key", "member_seed")
NUMBERS = sum((*PARAMETERS, *PLACES, *COUNTERS, KEYS), ())
OWN_TABLES = (
    *("links", "ring", "cells", "wire", "flying", "queued", "slack", "table", "groups", "choices"),
    *("slots", "working", "lines"),
    *("voqs", "bursts", "ports", "adapters_", "devices", "asking", "sending", "latency", "lengths"),
    *("far", "aloft", "keep", "other", "streams", "members", "took", "picked", "stash"),
    *("gates", "targets"),
)
TABLES = (*hosts.TABLES, *OWN_TABLES)
WORLD = hosts.world(NUMBERS, OWN_TABLES)


@dataclass
class StardustState(hosts.Arrays):
    """What a run changes, allocated once; n hosts, a adapters, L links, v VOQs."""

    links: np.ndarray  # (L,) LINK
    ring: np.ndarray  # (L * RING,) uint64  the first cells of every queue
    cells: np.ndarray  # (most,) CELL  the others
    wire: np.ndarray  # (abreast, hop, L) uint64  cells on wires, by the slot in which they arrive; short ones share it
    flying: np.ndarray  # (abreast, hop, L / 64) uint64  a bit for each of them
    queued: np.ndarray  # (L / 64,) uint64  a bit for each queue that is not empty
    slack: np.ndarray  # (L,) int32  bytes of memory that its short cells leave of those of as many whole ones
    slots: np.ndarray  # (L / 64, SLOTS, 2) uint64  slots in which each has sent: of 64 counts, the lowest digits first
    working: np.ndarray  # (L / 64, 2) uint64  a bit for each that sends in slot `sent_at`, see ALL and OTHERS
    lines: np.ndarray  # (L,) LINE
    table: np.ndarray  # (devices * a,) int32  group of links that lead from a device to an adapter
    groups: np.ndarray  # (groups,) GROUP
    choices: np.ndarray  # int32  links of groups, in the order in which they are walked
    voqs: np.ndarray  # (v,) VOQ
    bursts: np.ndarray  # (rows,) BURST  by the row of their first packet
    ports: np.ndarray  # (n,) PORT
    adapters_: np.ndarray  # (a,) ADAPTER
    devices: np.ndarray  # (devices,) DEVICE
    asking: np.ndarray  # (n / 64,) uint64  a bit for each port with VOQs that want credits
    sending: np.ndarray  # (a / 64,) uint64  a bit for each adapter with bursts to send
    latency: np.ndarray  # (WAITS,) int64  cells by slots in the fabric
    lengths: np.ndarray  # (LENGTHS,) int64  slots of links of the last stage by cells in their queue
    far: np.ndarray  # (a * a,) uint8  links between two adapters
    aloft: np.ndarray  # (tiers + 1, 2) int64  bytes of control messages through a tier, not yet charged; its cables
    keep: np.ndarray  # (n, n) uint32, or (1, 1)  destinations of traffic without hosts, see `weft.workload.traffic`
    other: np.ndarray  # (n, n) int32
    streams: np.ndarray  # (n,) int32  burst of that traffic that an input is in: its destination, or -1
    members: np.ndarray  # (n,) int32  nodes that a packet is for, while it is being made
    picked: np.ndarray  # (64,) int64  links that cells have chosen …
    stash: np.ndarray  # (64,) uint64  … and those cells
    gates: np.ndarray  # (n,) GATE, or one  ports of hosts that can be paused
    targets: np.ndarray  # (rows, most) int32, or (1, 1)  nodes of other adapters that a burst is for, then -1
    took: np.ndarray  # (n,) int64  payload that left by each port, of that traffic


PER_ROW = (*hosts.PER_PACKET, "bursts", "targets")  # tables that grow with the rows


@view
def links(s):
    return carray(pointer(s.links_at), (s.links_size,), LINK)


@view
def ring(s):
    return carray(pointer(s.ring_at), (s.ring_size,), np.uint64)


@view
def cells(s):
    return carray(pointer(s.cells_at), (s.cells_size,), CELL)


@view
def wire(s):
    return carray(pointer(s.wire_at), (s.wire_size, s.hop, s.links_size), np.uint64)


@view
def flying(s):
    return carray(pointer(s.flying_at), (s.flying_size, s.hop, s.queued_size), np.uint64)


@view
def queued(s):
    return carray(pointer(s.queued_at), (s.queued_size,), np.uint64)


@view
def slack(s):
    return carray(pointer(s.slack_at), (s.slack_size,), np.int32)


@view
def slots(s):
    return carray(pointer(s.slots_at), (s.slots_size, SLOTS, 2), np.uint64)


@view
def working(s):
    return carray(pointer(s.working_at), (s.working_size, 2), np.uint64)


@view
def lines(s):
    return carray(pointer(s.lines_at), (s.lines_size,), LINE)


@view
def table(s):
    return carray(pointer(s.table_at), (s.table_size,), np.int32)


@view
def groups(s):
    return carray(pointer(s.groups_at), (s.groups_size,), GROUP)


@view
def choices(s):
    return carray(pointer(s.choices_at), (s.choices_size,), np.int32)


@view
def voqs(s):
    return carray(pointer(s.voqs_at), (s.voqs_size,), VOQ)


@view
def bursts(s):
    return carray(pointer(s.bursts_at), (s.bursts_size,), BURST)


@view
def ports(s):
    return carray(pointer(s.ports_at), (s.ports_size,), PORT)


@view
def adapters(s):
    return carray(pointer(s.adapters__at), (s.adapters__size,), ADAPTER)


@view
def devices(s):
    return carray(pointer(s.devices_at), (s.devices_size,), DEVICE)


@view
def asking(s):
    return carray(pointer(s.asking_at), (s.asking_size,), np.uint64)


@view
def sending(s):
    return carray(pointer(s.sending_at), (s.sending_size,), np.uint64)


@view
def latency(s):
    return carray(pointer(s.latency_at), (s.latency_size,), np.int64)


@view
def lengths(s):
    return carray(pointer(s.lengths_at), (s.lengths_size,), np.int64)


@view
def far(s):
    return carray(pointer(s.far_at), (s.far_size,), np.uint8)


@view
def aloft(s):
    return carray(pointer(s.aloft_at), (s.aloft_size, 2), np.int64)


@view
def keep(s):
    return carray(pointer(s.keep_at), (s.keep_size, s.keep_size), np.uint32)


@view
def other(s):
    return carray(pointer(s.other_at), (s.other_size, s.other_size), np.int32)


@view
def streams(s):
    return carray(pointer(s.streams_at), (s.streams_size,), np.int32)


@view
def members(s):
    return carray(pointer(s.members_at), (s.members_size,), np.int32)


@view
def picked(s):
    return carray(pointer(s.picked_at), (s.picked_size,), np.int64)


@view
def stash(s):
    return carray(pointer(s.stash_at), (s.stash_size,), np.uint64)


@view
def took(s):
    return carray(pointer(s.took_at), (s.took_size,), np.int64)


@view
def targets(s):
    return carray(pointer(s.targets_at), (s.targets_size, s.targets_each), np.int32)


@view
def gate_at(s, h):
    """The port of host h, where it can be paused."""
    return carray(pointer(s.gates_at), (s.gates_size,), GATE)[np.uint64(h)]


@view
def link_at(s, k):
    """Link k."""
    return links(s)[np.uint64(k)]


@view
def voq_at(s, v):
    """VOQ v."""
    return voqs(s)[np.uint64(v)]


@view
def burst_at(s, b):
    """The burst of row b."""
    return bursts(s)[np.uint64(b)]


@view
def port_at(s, h):
    """The port of host h."""
    return ports(s)[np.uint64(h)]


@view
def adapter_at(s, a):
    """Adapter a."""
    return adapters(s)[np.uint64(a)]
