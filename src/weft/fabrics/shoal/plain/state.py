"""What the plain kernel works on. Names that the fast kernel's state has too mean the same."""

from typing import NamedTuple

import numpy as np

from weft.fabrics.shoal.columns import Plan

AWAY = 1 << 30  # leave: a cell waits at the source, or nothing was heard of it yet
ROW = 0xFFFFFFFF  # pairs: the pair of an entry


class PlainPlan(NamedTuple):
    """What no slot changes: the columns of `columns.Plan`, and what goes wrong. k changes, b words of 64 nodes."""

    numbers: np.ndarray  # (PLAIN_NUMBERS,) int64
    shift: np.ndarray
    first: np.ndarray
    last: np.ndarray
    mirror: np.ndarray
    place: np.ndarray
    slot: np.ndarray
    late: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    cells: np.ndarray
    start: np.ndarray
    lit: np.ndarray  # (w, b) uint64         [p]  who has a peer
    gone: np.ndarray
    parted: np.ndarray
    waits: np.ndarray
    successors: np.ndarray
    klass: np.ndarray  # (flows,) int32      [f]  traffic class
    bit_errors: np.ndarray  # (3,) uint64         see the names below
    depth: np.ndarray  # (classes,) int64    [k]  cells a queue may hold
    change: np.ndarray  # (k,) int64         [x]  slots in which something changes; the first is 0
    cuts: np.ndarray  # (k,) int64           [x]  which row of `cut` and `dead` holds from then on
    offs: np.ndarray  # (k,) int64           [x]  which row of `off` does
    cut: np.ndarray  # (., w, b) uint64      [p]  whose cells do not arrive
    dead: np.ndarray  # (., b) uint64             nodes that are down
    off: np.ndarray  # (., b) uint64              nodes whose clock is beyond the guard


assert PlainPlan._fields[: len(Plan._fields)] == Plan._fields
# bit_errors: key of the draws for damage, key of those for the wrong bit, and the draw below which a cell is damaged
DAMAGE_KEY, BIT_KEY, THRESHOLD = range(3)


class PlainState(NamedTuple):
    """What a slot may change. l = w * n * classes queues; sets of nodes are words of bits, at [p] of senders in p; v
    values of feedback beyond the first."""

    queue: np.ndarray  # (l, 8) int32      [row]   see the names below
    told: np.ndarray  # (n,) int32         [i]     1 + pair of the feedback given an epoch ago on the self-mirrored link
    left: np.ndarray  # (n,) int32         [i]     1 + pair of the own cell that left on the self-mirrored link now
    busy: np.ndarray  # (w, b) uint64      [p]     nodes with a cell to send, a feedback to give or a count to mend in p
    active: np.ndarray  # (b,) uint64              nodes with cells left to release
    pairs: np.ndarray  # (n, n * classes) int64    [i]  pairs with cells left to release: seat << 32 | pair, ascending
    count: np.ndarray  # type: ignore[assignment]  # (n,) int32        [i]     how many those are
    living: np.ndarray  # (n,) int32
    leave: np.ndarray  # (m, w) int32      [h, p]  epoch from which the next cell of the subflow may leave, or AWAY
    pair: np.ndarray  # (m, PAIR) int64    [h]     see the names below
    origin: np.ndarray  # (m, 64x) int32   [h, seq modulo 64x]  flow of each cell that is not acknowledged
    target: np.ndarray  # (m,) int32
    early: np.ndarray  # (m, x) uint64
    rest: np.ndarray  # (m,) int64
    rested: np.ndarray  # (m,) int64
    cell: np.ndarray  # (r, 4) int32       [number]  see the names below
    free: np.ndarray  # (r,) int32
    sent: np.ndarray  # (w * n, o, 4) int32        [q, epoch modulo o]  what left in the last turns, see the names below
    air_cell: np.ndarray  # (a, c, n) int32        [slot modulo a, c, i]  1 + number of the cell i has sent
    air_pair: np.ndarray  # (a, c, n) int32        1 + pair of the feedback that goes with it
    air_leave: np.ndarray  # (a, c, n) int32       the epoch that feedback gives
    past: np.ndarray  # (w * n, v) int32   [q]     1 + pairs of the feedback given at the last turns, the newest first
    again_pair: np.ndarray  # (a, c, n, v) int32   1 + pairs of the feedback that goes with a cell once more
    again_leave: np.ndarray  # (a, c, n, v) int32  the epochs that it gives
    air: np.ndarray  # (a, c, 6, b) uint64         sets of senders, see the names below
    flow: np.ndarray  # (flows, 4) int64
    incast: np.ndarray  # (n,) int32       [j]     living pairs of the first class towards j
    outcast: np.ndarray  # (n,) int32      [i]     and from i
    waiting: np.ndarray  # (n,) int64
    inflow: np.ndarray  # (n,) int32
    inflow_since: np.ndarray  # (n,) int64
    inflow_slots: np.ndarray  # (n,) int64
    received: np.ndarray  # (n,) int64
    departed: np.ndarray  # (n,) int64
    lengths: np.ndarray  # (256,) int64
    longest: np.ndarray  # (classes,) int64        the longest queue of each class
    mute: np.ndarray  # (w, b) uint64      [p]     who does not send in p, as it takes its peer for failed
    deaf: np.ndarray  # (w, b) uint64      [p]     whom the receiver takes for failed
    peer_down: np.ndarray  # (w, b) uint64  [p]    whose receiver is down
    off_clock: np.ndarray  # (w, b) uint64  [p]    who sends with, or to, a clock that is off
    complain: np.ndarray  # (w, b) uint64  [p]     whose next cell says that the peer's last one was dropped
    repaired: np.ndarray  # (w, b) uint64  [p]     links that come back; scratch
    down: np.ndarray  # (b,) uint64                nodes that do not work
    missed: np.ndarray  # (n, n) int32     [j, i]  1 + epoch in which j missed i's cell, 0 if it hears it
    marks: np.ndarray  # (n * classes / 8,) uint64  seats that are taken; scratch
    work: np.ndarray  # (n + 64,) int32            who has anything to do; scratch
    waits: np.ndarray  # (flows, 8) int64, or no rows
    successors: np.ndarray  # int32
    tally: np.ndarray  # (PLAIN_TALLY,) int64
    print: np.ndarray  # (2,) uint64


# queue: cells; own cells among them; flows ready; first and last cell; the seat at which the round robin goes on; 1 +
# pair of the last cell from the peer until its feedback is sent (in the row of the first class)
LENGTH, MINE, READY, HEAD, TAIL, TURN, OWED = range(7)
# pair, behind the columns that all kernels have: traffic class; slot in which the pair came to be, -1 when it has
# ended; copies of its cells in queues, lists and the air; 1 + first and last cell to repeat; the seat. For the
# transport: every cell before this one is acknowledged; slot in which that last moved; timeouts since; whether the
# receiver has something to acknowledge; acknowledgements under way.
KLASS, BORN, COPIES, LIST, LAST, SEAT, ACKED, TIMER, TIMEOUTS, DIRTY, PENDING = range(8, 19)
PAIR = 24  # the columns of a pair, rounded up to whole cache lines
# cell: the next in its queue or list; its flow, or -1 - the pair that it acknowledges; its pair; its number in the
# pair, or how many cells it acknowledges
FOLLOWING, OF_FLOW, OF_PAIR, NUMBER = range(4)
# sent: 1 + pair, flow and number of the cell, and 1 + the epoch in which it left
SENT_PAIR, SENT_FLOW, SENT_NUMBER, SENT_EPOCH = range(4)
# air: who has sent anything beyond an empty cell; whose cell arrives; whose silence will be noticed; whose cell is
# damaged; whose by a clock that is off; who says that the last cell was dropped
MESSAGE, ARRIVES, SILENT, DAMAGED, COLLIDES, COMPLAINS = range(6)
AIR = 6
