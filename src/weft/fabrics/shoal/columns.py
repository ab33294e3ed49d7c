"""The tables that Shoal's kernels share: what each array of a plan holds, and the names of columns.

There are three kernels over them: the fast one (`kernel`), the plain one, which also knows failures, damage, traffic
classes and the transport (`plain`), and the authors' simulator (`released`).
"""

from collections import namedtuple
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba.extending import overload

PAPER, LITERAL, RELEASED_RULES = range(3)  # numbers[RULES]

# Why a kernel's `advance` returns. STUCK, which only the plain kernel says: nothing has moved for long, and neither a
# flow nor a change is to come.
REACHED, SPENT, DONE, MORE_CELLS, MORE_PAIRS, MORE_WINDOW, STUCK = range(7)


class Plan(NamedTuple):
    """What no slot changes. w places in an epoch, n nodes, e slots in an epoch."""

    numbers: np.ndarray  # (NUMBERS,) int64  see the names below
    shift: np.ndarray  # (w,) int32      [p]     how far everybody sends, 0 for dark
    first: np.ndarray  # (w,) int32      [p]     the nodes that send in p are first <= i < last
    last: np.ndarray  # (w,) int32
    mirror: np.ndarray  # (w,) int32     [p]     where the other direction stands
    place: np.ndarray  # (4n,) int32     [u, d-j+n]  where j, of the lower or upper half of the nodes, sends to d
    slot: np.ndarray  # (w,) int32       [p]     the slot of the epoch it lies in
    late: np.ndarray  # (2e,) int32      [s-r+e] epochs by which service in slot s of an epoch trails a cell that
    #                                            leaves in slot r and travels `delay` slots
    src: np.ndarray  # (flows,) int32    [f]
    dst: np.ndarray  # (flows,) int32    [f]
    cells: np.ndarray  # (flows,) int64  [f]     how many it has
    start: np.ndarray  # (flows,) int64  [f]     slot in which it starts, ascending among those that wait for nobody
    lit: np.ndarray  # (w, b) uint64     [p]     who has a peer, as bits; in the fast kernel, one that has not failed
    gone: np.ndarray  # (b,) uint64              nodes that have failed for good, as far as the fast kernel is concerned
    parted: np.ndarray  # (n, b) uint64, or no rows  [j]  whom j cannot reach, for the fast kernel
    waits: np.ndarray  # (flows, 8) int64, or no rows: who waits for whom, see weft.engine.calendar
    successors: np.ndarray  # int32             whom each flow releases


# A Plan with the paper's rules, ready queues, round robin, at most two values of feedback and rings of 4 cells: a type
# of its own, so that these are constants for the compiler, which makes the fast kernel a tenth faster.
if TYPE_CHECKING:

    class DefaultPlan(Plan):
        """A Plan by another name."""
else:
    DefaultPlan = namedtuple("DefaultPlan", Plan._fields)


def has_default_rules(plan) -> bool:
    """Whether a plan, or a reference to one, is a DefaultPlan: in kernels, a constant."""
    return isinstance(plan, DefaultPlan)


@overload(has_default_rules)
def _has_default_rules(plan):
    answer = getattr(plan, "to", plan).instance_class is DefaultPlan
    return lambda plan: answer


# numbers: SELF is the place whose two directions share a slot, or -1; AGED the age at which a pair may use any queue;
# HALF the first node of the upper half.
N, CHANNELS, EPOCH, DELAY, SELF, RULES, READY_QUEUES, AGE_INTERVAL, AGED, SHORTEST, HALF = range(11)
# In the fast kernel: cells in a queue's ring; places of a block in `leave`; nodes of a place in `held`; what is added
# to an answer so that it is not negative.
DEPTH, STRIDE, ROW, ANSWER_OFFSET = range(11, 15)
KNOWN = 15  # flows that wait for no other; they come first
FEEDBACK = 16  # values of feedback that a cell carries, on the last cells received
NUMBERS = 17
# In the plain kernel: traffic classes; turns that are remembered in `sent`; slots without a move after which a rack is
# stuck; bits of a cell, where its feedback begins, and how many bits that has; whether cells are damaged at random;
# whether a cell that is gone may be asked for again; the transport's timeout in slots, 0 without one.
CLASSES, TURNS, PATIENCE, BITS, FEEDBACK_AT, FEEDBACK_BITS, DAMAGE, ASKING, TIMEOUT = range(17, 26)
PLAIN_NUMBERS = 26

# pair: 1 + application flow served last (0: none left); slot in which it became busy; cells released; every cell before
# this one has arrived; cells arrived; cells not yet arrived; source; 1 + next living pair of the same source
SERVED, SINCE, SEQ, WANT, GOT, UNDELIVERED, SOURCE, NEXT = range(8)
# flow: cells left to release; cells left to deliver; next flow of its pair, in a circle; slot at whose end it was done
RELEASE, DELIVER, AFTER, FINISH = range(4)
# How a cell came, in the fingerprint: it goes on from here; directly; over another node; it is thrown away here.
GOES_ON, DIRECT, RELAYED_BY, THROWN_AWAY = range(4)

# tally, in every kernel
(
    SLOT,  # the next slot to simulate
    STARTED,  # flows started
    FINISHED,  # flows finished
    LOCAL,  # cells sent on their first hop
    FORWARDED,  # cells sent on their second
    DELIVERED,
    VISITS,  # node-slots looked at
    SLOTS,  # slots stepped
    FREE,  # cells on the free stack
    ACTIVE,  # pairs with cells left to release
    OWING,  # feedbacks owed or under way (fast kernel)
    FLYING,  # cells on the wire
    REST_HEAD,  # `rest`: the first pair in it, and the place behind the last; they only grow
    REST_TAIL,
    PAIRS_USED,  # pairs never used begin here; in the fast kernel a multiple of SEATS, and the first block stays empty
    MAX_QUEUE,
    MAX_NODE,
    MAX_HELD,
    OVER_BOUND,  # monitor: pushes that made a queue longer than eq. (5), or (3)
    OVER_SUBFLOW,  # monitor: cells that met another of their subflow in a queue
    LIVE,  # pairs with undelivered cells
    BASE,  # epoch from which `leave` counts (fast kernel)
    IDLE,  # blocks on the stack (fast kernel)
    RELAYED,  # cells that arrived at the node between (fast kernel)
    KNOWN_STARTED,  # flows started, of those that wait for no other
    HEAPED,  # flows that are released and wait for their slot
    ASTRAY,  # cells that were sent, and neither are under way nor have arrived, once something had failed (fast kernel)
    LANDED,  # the last slot in which a cell arrived, once something had failed (fast kernel)
    MAY_MEET,  # whether cells have been sent again, so that a subflow may have two in a queue (fast kernel)
) = range(29)
TALLY = 29
# tally, in the plain kernel
(
    CHANGE,  # the change that is in force
    REPAIR_UNTIL,  # the last epoch boundary at which to look what works again
    WAITING_FIRST, WAITING_LAST,  # 1 + flows that wait for their node to come back, a list
    WAKE,  # whether to look through it
    MOVED,  # the last slot in which anything came nearer to its end
    WAIT_OUT,  # whether time passes even where nothing can move any more
    SPOKEN,  # cells sent, empty ones included
    FAILED_SLOTS,  # turns that went unused because the peer was taken for failed
    DECLARED, DETECTED,  # declarations, and the slot of the last
    RELEASED, REPEATS, DUPLICATES,
    RESENT,  # by the transport
    ACKS, ACKS_IN,  # acknowledgements made and arrived
    LISTED,  # cells to be repeated
    IN_FLIGHT, DISCARDED, QUEUED, CORRUPTED, COLLIDED, DROPPED,  # cells lost, by cause
) = range(29, 53)  # fmt: skip
PLAIN_TALLY = 53
CAUSES = {
    "in_flight": IN_FLIGHT, "discarded": DISCARDED, "queued": QUEUED, "corrupted": CORRUPTED, "collided": COLLIDED,
    "dropped": DROPPED,
}  # fmt: skip
