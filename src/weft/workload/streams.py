"""Numbers of the random streams that workloads draw from, so that no two columns of a table share one.

They start far from zero: a fabric draws from the same seed, and counts its own streams from below.
"""

from enum import IntEnum


class Stream(IntEnum):
    GAPS = 0x574F0000  # time between arrivals
    SIZES = 0x574F0001
    SOURCES = 0x574F0002
    DESTINATIONS = 0x574F0003
    OFFSETS = 0x574F0004  # start of a flow within its burst
    BURST_ENDS = 0x574F0005  # the node that all flows of a burst share
    SIDES = 0x574F0006  # whether a flow is for the hot nodes
    CHOSEN = 0x574F0007  # which nodes take part, and in which role
    SHORTS = 0x574F0008  # sizes of the short flows over a background
    SERVERS = 0x57500000  # first of many: whom a request asks, a stream for each
    ROLES = 0x574F0010  # first of three: which nodes of a role are busy
    PAIRING = 0x574F1000  # first of many: one stream per attempt to pair without a fixed point
