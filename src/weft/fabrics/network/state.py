"""What a packet network adds to the records of hosts: ports, routes, and the accounts of switches."""

from dataclasses import dataclass

import numpy as np
from numba import carray

from weft.engine.jit import view
from weft.engine.views import pointer
from weft.hosts import state as hosts
from weft.hosts.state import FIRST_TIMER, OWN, PACKET, SUB, TRAFFIC

__all__ = ("PACKET", "PORT", "SUB", "TABLES", "TRAFFIC", "WORLD", "NetworkState")

# Kinds of rows that are the network's own: frames between neighbours, and a port that is free again.
PAUSE, RESUME, FREE = OWN, OWN + 1, FIRST_TIMER - 1
LAST_PACKET = RESUME

DROPTAIL, TRIM, PRIORITY, LOSSLESS, SHARED = 0, 1, 2, 3, 4  # SHARED: drop tail on buffers that a switch shares

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
        ("idle", "i8"),  # ps until `busy` in which nothing was sent
        ("", "i8"),
    ]
)

# Where a host is, which every hop asks: apart from the rest, so that thousands stay in the cache.
HOME = np.dtype(
    [
        ("anchor", "i4"),
        ("down", "i4"),
    ]
)

PARAMETERS = (
    ("large",),  # 1 where no cache holds the ports and routes, and looking far ahead pays
    ("queue", "lazy", "anchors"),
    ("mark_chance", "capacity_high", "share", "bounce", "trim_tail", "xoff", "xon", "ingress_limit"),
)
COUNTERS = (
    ("hops",),
    ("drop_full", "drop_down", "drop_route", "drop_lossless", "trims", "marks", "bounces", "pauses", "resumes"),
    ("heeded",),  # pause and resume frames that have arrived
)
NUMBERS = ("applied", *sum((*PARAMETERS, *COUNTERS), ()))  # applied: time of the last failure or repair taken in
OWN_TABLES = ("ports", "buffered", "pool", "homes", "row", "table", "group", "choices")

WORLD = hosts.world(NUMBERS, OWN_TABLES)
TABLES = (*hosts.TABLES, *OWN_TABLES)


@dataclass
class NetworkState(hosts.Arrays):
    """Everything a run changes, allocated by `Packet.prepare`; longer tables may replace some between strides."""

    ports: np.ndarray  # (ports,) PORT
    buffered: np.ndarray  # (nodes,) int64  bytes that wait in a switch
    pool: np.ndarray  # (nodes,) int64  bytes it has room for
    homes: np.ndarray  # (hosts,) HOME
    row: np.ndarray  # (nodes,) int32   see weft.topology.routes
    table: np.ndarray  # (rows, anchors) int32
    group: np.ndarray  # (groups, 3) int32   first, count, turn
    choices: np.ndarray  # int32


@view
def ports(s):
    return carray(pointer(s.ports_at), (s.ports_size,), PORT)


@view
def homes(s):
    return carray(pointer(s.homes_at), (s.homes_size,), HOME)


@view
def port_at(s, k):
    """Port k."""
    return ports(s)[np.uint64(k)]


@view
def home_at(s, h):
    """Where host h is."""
    return homes(s)[np.uint64(h)]


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
