"""Racks side by side on a device: what each array holds, and how large it is.

The first axis of every array is the rack. Within a rack nodes lie side by side, so that the threads of neighbours read
neighbouring words. Each word is written by the thread of one node alone, or by atomic additions: results do not depend
on timing.
"""

from typing import NamedTuple

import numpy as np

from weft.fabrics.shoal import columns as col

# A queue in one word: its cells, whether one of them is local, flows that are ready, the seat whose turn it is.
LENGTH, LOCAL_BIT, READY_SHIFT, READY_BITS, TURN_SHIFT = 0x7FF, 1 << 11, 12, 0x3FF, 22
LONGEST = 2000  # cells in a queue beyond which the rack asks for more room, which there is not
MOST_SEATS = 1023  # so many a word can count
RING = 3  # cells of a queue that lie beside it; the others lie in the node's pool
# Feedback owed, in one word: OWES, the seat of the subflow, what is known of its answer, the place of the queue.
OWES, SEAT_SHIFT, SEAT_BITS, ANSWER_SHIFT, ANSWER_BITS, PLACE_BITS = 1 << 31, 17, 0x3FF, 15, 0x3, 0x7FFF
MOST_PLACES = PLACE_BITS
# Feedback on the wire, in one word: 1 + the seat, and the epoch from which it may send again.
SAID_SHIFT, WHEN_BITS = 16, 0xFFFF
EMPTY = 0xFFFFFFFFFFFFFFFF  # on the wire: no cell
# meta, what a cell must know of its flow: its source, the seat of its pair there, its destination
NODE_BITS, OF_SEAT, META_SHIFT = 0xFFFF, 16, 32
PACK = 4  # channels of a slot whose `leave` stand side by side
NONE = 0xFFFF  # pool: no cell

# Why a rack stopped before its time: bits.
WANTS_SEATS, WANTS_POOL, WANTS_WINDOW, TOO_LONG = 1, 2, 4, 8

# acc: what a thread has counted in one launch; then `tally` of the rack, in the same columns.
(
    LOCAL, FORWARDED, DELIVERED, VISITS, RELAYED, OVER_BOUND, FINISHED, LENGTH_0, LENGTH_1, LENGTH_2, LENGTH_3,
    SUMS, MAX_QUEUE, MAX_NODE, MAX_HELD, STOP,
) = range(16)  # fmt: skip
ACC = 16
# in `tally` only: the next slot, why the rack stopped, the epoch from which `leave` counts
SLOT, STOPPED, BASE = SUMS, STOP, 16
TALLY = 17


class Shape(NamedTuple):
    """What racks that work together have in common: the arrays are as large for all of them."""

    seats: int  # of a node, a multiple of 64
    pool: int  # cells of a node beyond those that lie beside their queues
    window: int  # cells of a pair that may be out of order, a power of two
    flows: int  # of a rack, at most
    reserve: int  # seats that must be free at a node when a slot begins


class Common(NamedTuple):
    """What no slot changes and all racks share: see `columns`, `columns.Plan` and `Shape`."""

    n: int
    channels: int
    epoch: int
    delay: int
    self_place: int
    ready_queues: int
    age_interval: int
    aged: int
    shortest: int
    half: int
    row: int
    answer_offset: int
    feedback: int
    rest: int  # slots from the end of a pair until its seat may be taken
    seats: int
    pool: int
    window: int
    reserve: int
    shift: np.ndarray  # (w,) int32
    first: np.ndarray  # (w,) int32
    last: np.ndarray  # (w,) int32
    mirror: np.ndarray  # (w,) int32
    place: np.ndarray  # (4n,) int32
    slot: np.ndarray  # (w,) int32
    late: np.ndarray  # (2e,) int32


class Racks(NamedTuple):
    """What a slot may change, and the flows. w places, n nodes, k seats of a node, v values of feedback less one.

    h = seat * n + i is a pair, q = p * row + i a queue.
    """

    held: np.ndarray  # (w * row,) uint32  [q]     see above
    cells: np.ndarray  # (RING * w * row,) uint64  [x, q]  its first cells, as `kernel` has them
    spill: np.ndarray  # (w * row,) uint32 [q]     first and last of the rest, in the pool of i
    owed: np.ndarray  # (w * row,) uint32  [q]     see above
    past: np.ndarray  # (v * w * row,) uint32  [x, q]  what was owed, to be said again, newest first
    leave: np.ndarray  # int16 [p / PACK, seat, i, p % PACK]   epoch from which the next cell may leave
    leave4: np.ndarray  # the same memory, uint64: four channels a word
    told: np.ndarray  # (n,) uint32        [i]     feedback that was given an epoch ago on the self-mirrored link
    left: np.ndarray  # (n,) uint32        [i]     1 + seat of the own cell that left on the self-mirrored link now
    able: np.ndarray  # (k / 64 * n,) uint64  [x, i]  seats with cells left to release
    used: np.ndarray  # (k / 64 * n,) uint64  [x, i]  seats that are taken, or were and nobody has looked
    waiting: np.ndarray  # (n,) int32      [i]     cells in i's queues
    pool: np.ndarray  # (pool * n,) uint64 [x, i]
    after_pool: np.ndarray  # (pool * n,) uint32  [x, i]  the next in its queue, or in the list of free ones
    free: np.ndarray  # (3 * n,) uint32    [x, i]  first free of the pool; how many were never used; how many are in use
    target: np.ndarray  # (k * n,) int32   [h]     destination
    since: np.ndarray  # (k * n,) int64    [h]     slot in which it became busy
    seq: np.ndarray  # (k * n,) int64      [h]     cells released
    served: np.ndarray  # (k * n,) int32   [h]     1 + flow served last
    want: np.ndarray  # (k * n,) int64     [h]     every cell before this one has arrived; from here its destination's
    got: np.ndarray  # (k * n,) int64      [h]
    undelivered: np.ndarray  # (k * n,) int64  [h]
    rested: np.ndarray  # (k * n,) int64   [h]     slot from which the seat may be taken, once all has arrived
    early: np.ndarray  # (k * n * window / 64,) uint64  [h]
    release: np.ndarray  # (flows,) int64  [f]
    deliver: np.ndarray  # (flows,) int64  [f]
    after: np.ndarray  # (flows,) int32    [f]
    finish: np.ndarray  # (flows,) int64   [f]
    meta: np.ndarray  # (flows,) uint64    [f]     see above
    upcoming: np.ndarray  # (n,) int32     [i]     place in `order` of its next flow
    due: np.ndarray  # (n,) int64          [i]     slot in which that starts
    what: np.ndarray  # (a * c * n,) uint64   the wire: cells, by slot modulo a
    about: np.ndarray  # (a * c * n,) uint64  the wire: meta of the cell's flow
    said: np.ndarray  # (a * c * n,) uint32   the wire: feedback
    again: np.ndarray  # (v * a * c * n,) uint32  the wire: feedback that is said again
    incast: np.ndarray  # (n,) int32       [j]     living pairs towards j …
    ended: np.ndarray  # (n,) int32        [j]     … and those of them that ended in this slot
    inflow: np.ndarray  # (n,) int32       [j]     unfinished flows towards j
    inflow_since: np.ndarray  # (n,) int64
    inflow_slots: np.ndarray  # (n,) int64
    received: np.ndarray  # (n,) int64     [j]
    lengths: np.ndarray  # (256,) int64
    tally: np.ndarray  # (TALLY,) int64
    sums: np.ndarray  # (2,) uint64        the fingerprint
    dst: np.ndarray  # (flows,) int32      [f]     from here on: the flows, which stay
    size: np.ndarray  # (flows,) int64     [f]     in cells
    start: np.ndarray  # (flows,) int64    [x]     slot in which flow order[x] starts
    order: np.ndarray  # (flows,) int32    [x]     flows by source, then by start
    until: np.ndarray  # (n + 1,) int32    [i]     where those of i begin in `order`


def shapes(plan, shape: Shape) -> dict:
    """Name -> (shape, dtype) of every array of a rack, its first axis left out; `leave4` is another's memory."""
    numbers, w = plan.numbers, len(plan.shift)
    n, channels, row = int(numbers[col.N]), int(numbers[col.CHANNELS]), int(numbers[col.ROW])
    air, v = int(numbers[col.DELAY]) + 1, int(numbers[col.FEEDBACK]) - 1
    seats, pool, window, flows, _ = shape
    q, k, wire, flows = w * row, seats * n, air * channels * n, max(flows, 1)
    i16, i32, u32, i64, u64 = np.int16, np.int32, np.uint32, np.int64, np.uint64
    sizes = dict(
        held=(q, u32), cells=(RING * q, u64), spill=(q, u32), owed=(q, u32), past=(v * q, u32),
        leave=(-(-w // PACK) * PACK * k, i16), told=(n, u32), left=(n, u32), able=(seats // 64 * n, u64),
        used=(seats // 64 * n, u64), waiting=(n, i32), pool=(pool * n, u64), after_pool=(pool * n, u32),
        free=(3 * n, u32), target=(k, i32), since=(k, i64), seq=(k, i64), served=(k, i32), want=(k, i64),
        got=(k, i64), undelivered=(k, i64), rested=(k, i64), early=(k * window // 64, u64), release=(flows, i64),
        deliver=(flows, i64), after=(flows, i32), finish=(flows, i64), meta=(flows, u64), upcoming=(n, i32),
        due=(n, i64), what=(wire, u64), about=(wire, u64), said=(wire, u32), again=(v * wire, u32), incast=(n, i32),
        ended=(n, i32), inflow=(n, i32), inflow_since=(n, i64), inflow_slots=(n, i64), received=(n, i64),
        lengths=(256, i64), tally=(TALLY, i64), sums=(2, u64), dst=(flows, i32), size=(flows, i64),
        start=(flows, i64), order=(flows, i32), until=(n + 1, i32),
    )  # fmt: skip
    return {name: ((max(count, 1),), kind) for name, (count, kind) in sizes.items()}


def racks_of(arrays: dict) -> Racks:
    """Such arrays, with the second view of `leave`."""
    return Racks(**arrays, leave4=arrays["leave"].view(np.uint64))


def size(plan, shape: Shape) -> int:
    """Bytes of one rack on the device."""
    return sum(shape[0] * np.dtype(kind).itemsize for shape, kind in shapes(plan, shape).values())
