"""What an event may change: the records of packets, ports, flows, hosts and the run as a whole."""

from dataclasses import dataclass

import numpy as np
from numba import carray

from weft.engine.events import CLOCK, EVENT
from weft.engine.jit import view
from weft.engine.views import fields, pointer

# Kinds of rows. Up to LAST_PACKET they are packets, which arrive at the far end of a port; the rest are timers.
DATA, ACK, NACK, PULL, CNP, PAUSE, RESUME = 1, 2, 3, 4, 5, 6, 7
LAST_PACKET = 7
FREE, RTO, DELAYED, PACE, TURN, ALPHA, RAISE = 16, 17, 18, 19, 20, 21, 22

# Flags of a packet.
MARKED, ECHO, TRIMMED, BOUNCED, AGAIN, URGENT = 1, 2, 4, 8, 16, 32

# Transports, queues, routings.
TCP, DCTCP, MPTCP, NDP, DCQCN = 0, 1, 2, 3, 4
DROPTAIL, TRIM, PRIORITY, LOSSLESS, SHARED = 0, 1, 2, 3, 4  # SHARED: drop tail on buffers that a switch shares
ECMP, RANDOM, PERMUTED, ROUND_ROBIN, SINGLE = 0, 1, 2, 3, 4

# Runs of segments that a receiver remembers, and at most names, in a selective ACK; they come first in its `options`.
BLOCKS = 4
DATA_ACK = 2 * BLOCKS

# One cache line.
PACKET = np.dtype(
    [
        *EVENT,
        ("flags", "u1"),
        ("sub", "u1"),  # which subflow of its flow
        ("epoch", "u1"),  # how often its link had failed when it was accepted
        ("dst", "i4"),  # host it travels to
        ("port", "i4"),  # port it crosses; in a queue with events, the one it came by
        ("path", "i4"),  # what is left of its path number
        ("size", "i4"),  # bytes on the wire: preamble and gap included
        ("flow", "i4"),  # slot of its flow …
        ("seq", "i4"),  # segment number; of an ACK the next one expected, of a PULL its count
        ("id", "i4"),  # … and the flow that held the slot when it was sent: a slot is used again
        ("echo", "i4"),  # segment that caused this ACK or NACK; of a selective ACK, how many runs it names
        ("sent", "i8"),  # when the segment left the transport
    ]
)

PORT = np.dtype(
    [
        ("busy", "i8"),  # when the last accepted bit has left; of queues with a choice, the last bit chosen
        ("delay", "i8"),  # ps on the wire
        ("capacity", "i8"),  # of a drop-tail port in ps of backlog, of the others in bytes
        ("mark_from", "i8"),  # marks begin above this, in the unit of capacity
        ("peak", "i8"),  # largest backlog, in the unit of capacity
        ("head", "i4"),  # low queue; of a drop-tail port, what it has accepted behind the packet that arrives next
        ("tail", "i4"),
        ("packets", "i4"),
        ("to", "i4"),
        ("pace", "i4"),  # ps a byte, or 0 where that is no whole number
        ("up", "u1"),
        ("epoch", "u1"),
        ("host", "u1"),  # 1 where the sender is a host: nothing is dropped or marked there
        ("", "u1"),
        # a cache line: all a drop-tail port needs
        ("ingress", "i8"),  # bytes that came by this port and wait in the switch it leads to
        ("mark_all", "i8"),  # above this every packet is marked
        ("rate", "i8"),
        ("draws", "i8"),
        ("head_high", "i4"),  # queue that goes first
        ("tail_high", "i4"),
        ("packets_high", "i4"),
        ("bytes", "i4"),
        ("bytes_high", "i4"),
        ("peak_packets", "i4"),
        ("frm", "i4"),
        ("paused", "u1"),
        ("timed", "u1"),  # 1 while a FREE event is on its way
        ("stopped", "u1"),  # 1 while this port's sender has been told to pause
        ("turn", "u1"),  # headers sent since the last data packet
        # a second one: all that a queue with a choice needs
        ("dropped", "i8"),
        ("trimmed", "i8"),
        ("marked", "i8"),
        ("pauses", "i8"),
        ("paused_at", "i8"),
        ("paused_for", "i8"),
        ("", "i8", (2,)),
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
        ("", "u1", (9,)),
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
        ("deadline", "i8"),  # when the retransmission timer means it, or 0
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

# Where a host is, which every hop asks: apart from the rest, so that thousands stay in the cache.
HOME = np.dtype(
    [
        ("anchor", "i4"),
        ("down", "i4"),
    ]
)

HOST = np.dtype(
    [
        ("first", "i4"),  # flows waiting for their turn, round robin
        ("last", "i4"),
        ("nic", "i4"),  # the port of the host; of several, the first
        ("pacing", "u1"),  # 1 while a PACE event is on its way
        ("blocked", "u1"),  # DCQCN: 1 while flows wait for room on the port
        ("", "u1", (2,)),
        ("free_at", "i8"),  # when the pacer may speak again
        ("delivered", "i8"),  # distinct payload bytes received
    ]
)

PARAMETERS = (
    ("vast", "transport", "queue", "lazy", "routing", "subflows", "reach", "anchors", "paths"),
    ("payload", "overhead", "control", "smallest"),  # bytes: a full segment, what is around it, an ACK, the least frame
    ("initial_window", "threshold", "max_window", "ack_every", "sack", "limited", "gain_shift"),  # windows in segments
    ("coupled", "stream", "stream_window", "reinject", "opportunistic", "penalise"),  # MPTCP
    ("rto_min", "rto_first", "rto_max", "ack_delay"),
    ("mark_chance", "capacity_high", "share", "bounce", "trim_tail", "scoreboard", "prefer", "xoff", "xon"),
    ("ingress_limit",),
    ("pull_gap", "cnp_gap", "alpha_gap", "raise_gap", "raise_bytes", "fast_rounds"),
    ("rate_step", "rate_leap", "rate_min"),
)
PLACES = ("applied", "next_flow", "free_slot", "used_slots", "live", "finished", "first_out", "last_out", "roomy")
PLACES += ("called", "called_as")  # a host whose pacer is to come in this very picosecond, or -1, and its number
COUNTERS = (
    ("hops", "sent_segments", "resent", "timeouts", "fast_retransmits", "duplicates", "moved"),
    ("drop_full", "drop_down", "drop_route", "drop_lossless", "trims", "marks", "bounces", "pauses", "resumes"),
    ("acks", "nacks", "pulls", "cnps"),
    ("conserved_in", "conserved_out"),  # packets made and packets ended; the difference is on its way
)
_WORLD = (*(name for line in PARAMETERS for name in line), *PLACES, *(name for line in COUNTERS for name in line))
TABLES = ("rows", "ports", "buffered", "pool", "hosts", "homes", "row", "table", "group", "choices", "flows", "subs")
TABLES += ("out", "got", "options", "latest", "carries", "bearer", "arrived", "order", "via", "score")
TABLES += ("traffic", "print")

WORLD = np.dtype([*CLOCK, *((name, "i8") for name in _WORLD), ("key", "u8"), *fields(*TABLES)])

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


@dataclass
class State:
    """Everything a run changes, allocated by `Packet.prepare`; some tables are replaced by longer ones between strides.

    Kernels take one record, the row of `world`, and reach the rest through it: `ports(s)[k]` is the record of port k.
    """

    world: np.ndarray  # (1,) WORLD  the clock, the parameters, the counters, and where everything else lies
    heads: np.ndarray  # (ring,) int32
    held: np.ndarray  # (ring / 64,) uint64  with those around it, the event queue
    due: np.ndarray  # (rows,) int32
    spare: np.ndarray  # (rows,) int32
    heap: np.ndarray  # (rows,) int32
    rows: np.ndarray  # (rows,) PACKET
    ports: np.ndarray  # (ports,) PORT
    buffered: np.ndarray  # (nodes,) int64  bytes that wait in a switch
    pool: np.ndarray  # (nodes,) int64  bytes it has room for
    hosts: np.ndarray  # (hosts,) HOST
    homes: np.ndarray  # (hosts,) HOME
    row: np.ndarray  # (nodes,) int32   see weft.topology.routes
    table: np.ndarray  # (rows, anchors) int32
    group: np.ndarray  # (groups, 3) int32   first, count, turn
    choices: np.ndarray  # int32
    flows: np.ndarray  # (slots,) FLOW
    subs: np.ndarray  # (slots * subflows,) SUB
    out: np.ndarray  # (slots * subflows, reach) uint8  what the sender knows of a segment
    got: np.ndarray  # (slots * subflows, reach) uint8  1 where the receiver has it
    options: np.ndarray  # (rows, 2 * BLOCKS + 1) int32  of an ACK: runs it names, as [first, end), and MPTCP's data ACK
    latest: np.ndarray  # (slots * subflows, BLOCKS) int32  with sack: a segment of each run that arrived last, or -1
    carries: np.ndarray  # (slots * subflows, reach) int32  MPTCP: the segment of the flow that one of a subflow is
    bearer: np.ndarray  # (slots, stream) uint8  MPTCP: who bears a segment of the flow, see transports/mptcp.py
    arrived: np.ndarray  # (slots, stream) uint8  MPTCP: 1 where the receiver has a segment of the flow
    order: np.ndarray  # (slots * subflows, paths) int32  the permutation being walked
    via: np.ndarray  # (slots, reach) uint16  NDP: the path that a segment was sent by
    score: np.ndarray  # (slots, paths, 3) int32  NDP: of each path, segments answered, segments failed, 1 if left out
    traffic: np.ndarray  # (flows,) TRAFFIC  the table of flows
    print: np.ndarray  # (2,) uint64  the fingerprint so far


@view
def rows(s):
    return carray(pointer(s.rows_at), (s.rows_size,), PACKET)


@view
def ports(s):
    return carray(pointer(s.ports_at), (s.ports_size,), PORT)


@view
def hosts(s):
    return carray(pointer(s.hosts_at), (s.hosts_size,), HOST)


@view
def homes(s):
    return carray(pointer(s.homes_at), (s.homes_size,), HOME)


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
def packet_at(s, r):
    """Packet or timer r."""
    return rows(s)[np.uint64(r)]


@view
def port_at(s, k):
    """Port k."""
    return ports(s)[np.uint64(k)]


@view
def host_at(s, h):
    """Host h."""
    return hosts(s)[np.uint64(h)]


@view
def home_at(s, h):
    """Where host h is."""
    return homes(s)[np.uint64(h)]


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
def buffered(s):
    return carray(pointer(s.buffered_at), (s.buffered_size,), np.int64)


@view
def pool(s):
    return carray(pointer(s.pool_at), (s.pool_size,), np.int64)


@view
def row(s):
    return carray(pointer(s.row_at), (s.row_size,), np.int32)


@view
def choices(s):
    return carray(pointer(s.choices_at), (s.choices_size,), np.int32)


@view
def table(s):
    return carray(pointer(s.table_at), (s.table_size, s.anchors), np.int32)


@view
def group(s):
    return carray(pointer(s.group_at), (s.group_size, 3), np.int32)


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
