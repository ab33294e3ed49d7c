"""What a slot of the crossbar may change: the arrays, allocated once, and the numbers that index them."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

NO_TAG = 0xFFFFFFFF  # of a cell that belongs to no flow


class Buffers(IntEnum):
    """Where cells wait."""

    FIFO = 0
    VOQ = 1
    SHARED = 2
    CIOQ = 3
    CICQ = 4
    HIERARCHICAL = 5
    GCQ = 6
    OQ = 7
    LOAD_BALANCED = 8


class Plan(IntEnum):
    """What does not change during a run: entry of `CrossbarState.plan`."""

    PORTS = 0
    BUFFERS = 1
    SCHEDULER = 2
    ITERATIONS = 3
    DEPTH = 4  # cells in a virtual output queue
    CAPACITY = 5  # cells in a buffer that is not divided into such queues
    INNER = 6  # cells in a crosspoint, in the memory of a sub-switch, at its output
    OUTER = 7
    GROUP = 8  # ports of a sub-switch
    UP = 9  # speed-up, as UP / DOWN phases per slot
    DOWN = 10
    WRITE = 11  # fast cycles until the fast side sees a cell
    READ = 12  # fast cycles until the slow side sees one
    MEMORY = 13  # fast cycles through the memory of a sub-switch, its pipeline stages included
    FLOW_CONTROL = 14
    KIND = 15  # of what arrives: a Kind
    SLOTS = 16
    WARMUP = 17
    WHOLE = 18
    CHANCE = 19
    END = 20
    FANOUT = 21
    UNIFORM = 22
    SENDERS = 23  # number of the first sender's queue, behind those of the switch
    KNOWN = 24  # flows that wait for no other
    SIZE = 25


class Kind(IntEnum):
    """What arrives."""

    UNIFORM = 0  # at most a cell per input and slot, for any output alike
    SKEWED = 1  # by tables, and possibly several at once
    BURSTS = 2
    MULTICAST = 3
    FLOWS = 4


class Count(IntEnum):
    """Entry of `CrossbarState.count`."""

    OFFERED = 0  # copies of cells that were to be delivered
    LOST = 1  # copies that found no room
    LINE_BUSY = 2  # copies lost before the switch: their line was sending another cell in that slot
    DELIVERED = 3
    MEASURED = 4  # of these, in slots after the warm-up
    BEYOND = 5  # sum of the delays that are beyond the histogram
    LONGEST = 6  # of these
    CLASHES = 7  # second cells of one output, or of one input, in the same slot: what a matching must never have
    ACTIVE = 8  # flows that still have cells to send
    MEMORY = 9  # most addresses that a shared memory had in use
    OVERDUE = 10  # cells sent after the slot in which an output-queued switch would have sent them
    FINISHED = 11  # flows that have been delivered
    HEAPED = 12  # flows that are released and wait for their moment
    OUT_OF_ORDER = 13  # cells that left after one that came later from their input for their output


class Level(IntEnum):
    """Entry of `CrossbarState.level`."""

    TOP = 0  # cells on the free list, a stack
    FRESH = 1  # first cell of the pool that was never used
    PEAK = 2  # most cells in one queue
    HELD = 3  # copies inside the switch and in the queues of its senders


# A queue is a linked list, four numbers in `CrossbarState.queue`: 4 q + HEAD and so on. Its tail is always a sentinel,
# an empty cell that the next arrival fills: neither an empty queue nor the first cell is a special case.
HEAD, TAIL, LENGTH = 0, 1, 2

# Rows of `CrossbarState.came` and `gone`: input, output, flow or number of the copy, slot in which it reached the
# sender.
IN, OUT, TAG, STAMP = 0, 1, 2, 3


class CrossbarState(NamedTuple):
    """n ports, w words to a set of them, p cells, f flows. All arrays are flat; [i, j] below stands for i * n + j."""

    plan: np.ndarray  # int64   see Plan
    clock: np.ndarray  # (1,) int64  the slot that comes next
    # what arrives
    keys: np.ndarray  # uint64  of the random streams: cells, ends of bursts, fanout, members …; last the scheduler's
    keep: np.ndarray  # uint64 [i, k]  alias tables of input i's destinations
    other: np.ndarray  # uint64 [i, k]
    burst: np.ndarray  # (n,) int64 [i]  output of the burst that input i is in, or NOBODY
    drawn: np.ndarray  # (n,) uint64 [i]  the word of this slot
    came: np.ndarray  # (4, …) uint64 [IN | OUT | TAG | STAMP, a]  this slot's arrivals, one per copy
    refused: np.ndarray  # int64 [k]  arrivals that found no room
    # where cells wait
    cells: np.ndarray  # (p,) uint64 [c]  next cell of the queue | slot of arrival << 32
    info: np.ndarray  # (p,) uint64 [c]  output | input << 16 | tag << 32
    ready: np.ndarray  # int64 [c]  fast cycle from which the next stage sees it
    free: np.ndarray  # (p,) uint32  a stack of cells that are free again
    level: np.ndarray  # (4,) uint64  see Level
    queue: np.ndarray  # uint32 [4 q + HEAD | TAIL | LENGTH]
    desk: np.ndarray  # uint64  working table of `sprint`, the fast path
    used: np.ndarray  # int64 [m]  addresses in use of memory m
    freed: np.ndarray  # int64 [m]  of these, on their way back to the pool
    # who may send
    everyone: np.ndarray  # (w,) uint64  the set of all ports
    want: np.ndarray  # (n w,) uint64 [j]  inputs that have a cell for output j
    given: np.ndarray  # (n w,) uint64 [i]  outputs that granted input i
    filled: np.ndarray  # (n w,) uint64 [j]  inputs, or rows of sub-switches, that have a cell buffered for output j
    idle: np.ndarray  # (w,) uint64  inputs not matched yet
    grant: np.ndarray  # (n,) uint64 [j]  pointer of output j
    accept: np.ndarray  # (n,) uint64 [i]  pointer of input i
    choice: np.ndarray  # (n,) uint64  scratch
    owner: np.ndarray  # (n + 1,) int64 [j]  input matched with output j, or NOBODY
    mate: np.ndarray  # (n,) int64 [i]  output matched with input i, or NOBODY
    pairs: np.ndarray  # (n,) uint64 [k]  the matching: i << 32 | j
    weight: np.ndarray  # int64 [i, j]
    labels: np.ndarray  # (4, n + 1) int64  scratch of the maximum matching: row, column, slack, via
    done: np.ndarray  # (n + 1,) bool
    pointer: np.ndarray  # (1,) int64  the common pointer of multicast
    local: np.ndarray  # int64  pointers of sub-switches
    lists: np.ndarray  # (p, 7) int64  of an emulating switch: see emulation.py
    turn: np.ndarray  # (6 n,) int64  likewise
    newest: np.ndarray  # int64 [i, j]  slot in which the youngest cell that left had come, where cells overtake
    # what leaves
    gone: np.ndarray  # (4, n) uint64 [IN | OUT | TAG | STAMP, k]  cells that leave in this slot
    # flows
    flow_src: np.ndarray  # (f,) int64
    flow_dst: np.ndarray  # (f,) int64
    flow_start: np.ndarray  # (f,) int64  first slot in which it may send
    flow_left: np.ndarray  # (f,) int64  cells still at the sender
    flow_due: np.ndarray  # (f,) int64  cells not delivered yet
    flow_finish: np.ndarray  # (f,) int64  slot in which the last one was, or -1
    flow_next: np.ndarray  # (f,) int64  next flow in the sender's ring
    active: np.ndarray  # (n,) int64 [i]  the flow that sender i served last, or NOBODY
    before: np.ndarray  # (n,) int64 [i]  the flow before the one it offers now
    arrived: np.ndarray  # (1,) int64  flows that have started, of those that wait for no other
    waits: np.ndarray  # (f, 8) int64, or no rows  flows that wait for flows, see weft.engine.calendar
    successors: np.ndarray  # int32  those that each of them releases
    # what was seen
    count: np.ndarray  # type: ignore[assignment]  # int64  see Count
    delay: np.ndarray  # int64 [d]  cells that waited d slots; the last entry also those that waited longer
    rounds: np.ndarray  # int64 [k]  slots in which k iterations found something
    per_output: np.ndarray  # (n,) int64 [j]  cells delivered after the warm-up
    last: np.ndarray  # (n,) int64 [j]  slot after the one in which output j sent last
    print: np.ndarray  # (2,) uint64  the fingerprint
