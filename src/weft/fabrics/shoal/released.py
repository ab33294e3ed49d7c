"""The authors' released simulator, rule by rule: the bridge from our numbers to theirs.

One channel, no propagation delay. It differs from the paper, and from `kernel.py`, in what a cell's header carries
(two queue lengths, for the last two cells received), in the sender's correction of them, which knows the schedule, in
throttles that outlive a pair's busy period, and in little else; `notes.md` lists it. Written from a description of
that simulator's behaviour, not from its code. Speed matters less here than sameness, so there are no cache tricks.
"""

from typing import NamedTuple

import numpy as np

from weft.engine import fingerprint
from weft.engine.fingerprint import add
from weft.engine.jit import bare, part
from weft.engine.reference import by_reference
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.columns import Plan
from weft.fabrics.shoal.rules import (
    begin_flow,
    bound,
    deliver,
    due_flow,
    event,
    has_started,
    may_leave,
    next_flow,
    next_start,
    reorder,
    too_young,
    window,
)  # fmt: skip

OUT = 1 << 30  # leave: a cell waits at the source
SENT = OUT + 1  # leave: it has left, and nothing was heard of it yet
OWN = 1 << 30  # flag of a cell number: the sender's own cell, on its first hop
NUMBER = OWN - 1

make_plan = arrays.make_plan
finish, undelivered, busy_slots = arrays.finish, arrays.undelivered, arrays.busy_slots


class ReleasedState(NamedTuple):
    """What a slot may change. n nodes, m pairs, r cells; a link is [i, j], i's towards j."""

    length: np.ndarray  # (n, n) int32   cells in the queue
    last: np.ndarray  # (n, n) int32     its last cell, whose `next` is its first
    local: np.ndarray  # (n, n) int8     1 if one of them is i's own
    ready: np.ndarray  # (n, n) int32    pairs that could have released a cell at the last visit and did not
    turn: np.ndarray  # (n, n) int32     where in i's list the round robin goes on
    got1: np.ndarray  # (n, n) int32     1 + queue into which the last cell from j went, 0 for an empty cell
    got2: np.ndarray  # (n, n) int32     the same of the one before
    sent1: np.ndarray  # (n, n) int32    1 + pair of the last cell to j if it was i's own, else 0
    sent2: np.ndarray  # (n, n) int32    the same of the one before
    next1: np.ndarray  # (n, n) int32    what sent1 and sent2 become in the next slot
    next2: np.ndarray  # (n, n) int32
    now: np.ndarray  # (n,) int32        1 + pair of the own cell sent in this slot, else 0
    row: np.ndarray  # (n, n) int32      1 + number of the pair (i, d), 0 until it is first used
    pairs: np.ndarray  # (n, n) int32    [i, k]  i's pairs with cells left to release, oldest first
    count: np.ndarray  # type: ignore[assignment]  # (n,) int32      how many those are
    leave: np.ndarray  # (m, n) int32    [h, j]  throttle: eligible when epoch + length reaches it
    pair: np.ndarray  # (m, 8) int64     see `columns`
    target: np.ndarray  # (m,) int32
    early: np.ndarray  # (m, x) uint64
    cell: np.ndarray  # (r, 4) int32     next in queue, flow, pair, seq
    free: np.ndarray  # (r,) int32
    air: np.ndarray  # (n, 3) int64      1 + cell sent, and the two queue lengths in its header
    flow: np.ndarray  # (flows, 4) int64 see `columns`
    incast: np.ndarray  # (n,) int32
    waiting: np.ndarray  # (n,) int64
    inflow: np.ndarray  # (n,) int32
    inflow_since: np.ndarray  # (n,) int64
    inflow_slots: np.ndarray  # (n,) int64
    received: np.ndarray  # (n,) int64
    departed: np.ndarray  # (n,) int64
    lengths: np.ndarray  # (256,) int64
    quiet: np.ndarray  # (1,) int64      slots for which no cell has moved
    waits: np.ndarray  # (flows, 8) int64, or no rows
    successors: np.ndarray  # int32
    tally: np.ndarray  # (col.TALLY,) int64
    print: np.ndarray  # (2,) uint64


def make_state(plan: Plan) -> ReleasedState:
    """A rack in which nothing has happened."""
    n, flows = int(plan.numbers[col.N]), len(plan.src)
    pairs, cells, words = min(flows, 4 * n) + 16, max(64, 4 * n), arrays.WINDOW // 64
    links = ["length", "last", "ready", "turn", "got1", "got2", "sent1", "sent2", "next1", "next2", "row", "pairs"]
    square = {name: np.zeros((n, n), np.int32) for name in links}
    per_node = {name: np.zeros(n, np.int64) for name in arrays.LONG}
    small = {name: np.zeros(n, np.int32) for name in ("now", "count", "incast", "inflow")}
    state = ReleasedState(
        **square, **per_node, **small, local=np.zeros((n, n), np.int8),
        leave=np.zeros((pairs, n), np.int32), pair=np.zeros((pairs, 8), np.int64), target=np.zeros(pairs, np.int32),
        early=np.zeros((pairs, words), np.uint64), cell=np.zeros((cells, 4), np.int32),
        free=np.arange(cells, dtype=np.int32)[::-1].copy(), air=np.zeros((n, 3), np.int64),
        flow=np.zeros((flows, 4), np.int64), lengths=np.zeros(256, np.int64), quiet=np.zeros(1, np.int64),
        waits=plan.waits.copy(), successors=plan.successors.copy(), tally=np.zeros(col.TALLY, np.int64),
        print=fingerprint.start(),
    )  # fmt: skip
    state.flow[:, col.FINISH] = -1
    state.tally[col.FREE] = cells
    return state


def limits(plan: Plan, state: ReleasedState, given: dict[str, np.ndarray]):
    """(what, numbers, least, largest) of whatever leads into a table, see `weft.engine.layout`."""
    n, flows, pairs, cells = int(plan.numbers[col.N]), len(plan.src), len(given["target"]), len(given["free"])
    for name in ("sent1", "sent2", "next1", "next2", "now", "row"):
        yield name, given[name], 0, pairs
    yield "length", given["length"], 0, cells
    yield "last", given["last"] & (OWN - 1), 0, cells - 1
    for name in ("got1", "got2", "turn", "count"):
        yield name, given[name], 0, n
    yield "pairs", given["pairs"], 0, pairs - 1
    yield "cell", given["cell"][:, 0] & (OWN - 1), 0, cells - 1
    yield "cell", given["cell"][:, 1], 0, max(flows - 1, 0)
    yield "cell", given["cell"][:, 2], 0, pairs - 1
    yield "cell", given["cell"][:, 3], 0, 1 << 31
    yield "air", given["air"][:, 0] & (OWN - 1), 0, cells


def grow(state: ReleasedState, why: int) -> ReleasedState:
    """The same state with twice the room for what ran out."""
    if why == col.MORE_PAIRS:
        rows = ("leave", "pair", "target", "early")
        return state._replace(**{name: arrays.longer(getattr(state, name)) for name in rows})
    return arrays.grow(state, why)


@part
def start_flows(plan, state):
    """Start every flow whose slot has come. False if there is no room for another pair."""
    src, dst = plan.src, plan.dst
    tally, pair, count = state.tally, state.pair, state.count
    slot = tally[col.SLOT]
    while True:
        f = due_flow(plan, state, slot)
        if f < 0:
            break
        i, d = src[f], dst[f]
        h = state.row[i, d] - 1
        if h < 0:
            if tally[col.PAIRS_USED] == state.target.size:
                return False
            h = tally[col.PAIRS_USED]
            tally[col.PAIRS_USED] += 1
            state.row[i, d] = h + 1
            pair[h, col.SOURCE], state.target[h] = i, d
        if pair[h, col.UNDELIVERED] == 0:
            state.incast[d] += 1
            tally[col.LIVE] += 1
        if pair[h, col.SERVED] == 0:
            state.pairs[i, count[i]] = h
            count[i] += 1
            pair[h, col.SINCE] = slot
            tally[col.ACTIVE] += 1
        begin_flow(plan, state, h, f, slot, plan.numbers[col.SHORTEST])
        has_started(plan, state, f)
    return True


@part
def send(plan, state, slot):
    """Every node releases at most one cell into the queue of the node it faces, then sends that queue's head."""
    n, epoch = plan.numbers[col.N], plan.numbers[col.EPOCH]
    age_interval, aged, shortest = plan.numbers[col.AGE_INTERVAL], plan.numbers[col.AGED], plan.numbers[col.SHORTEST]
    length, last, local, ready, turn = state.length, state.last, state.local, state.ready, state.turn
    pairs, count, leave, pair, flow = state.pairs, state.count, state.leave, state.pair, state.flow
    cell, free, tally, air, waiting = state.cell, state.free, state.tally, state.air, state.waiting
    e, x = slot // epoch, slot % epoch
    before = (slot - 1) % epoch if slot > 0 else 0
    most, young = window(state.early, 1), aged * age_interval
    narrow = False
    for i in range(n):
        j, past = (i + x + 1) % n, (i + before + 1) % n
        seen = length[i, j]
        state.lengths[min(seen, 255)] += 1

        ready[i, j] = 0
        size = count[i]
        at = turn[i, j] if turn[i, j] < size else 0
        ended = -1
        for _ in range(size):
            h = pairs[i, at]
            if may_leave(leave[h, j], e, seen):
                if local[i, j] == 0 and not too_young(seen, slot - pair[h, col.SINCE], young, age_interval):
                    f = next_flow(pair, flow, h, shortest)
                    tally[col.FREE] -= 1
                    number = free[tally[col.FREE]]
                    seq = pair[h, col.SEQ]
                    if seq - pair[h, col.WANT] >= most:
                        narrow = True
                    pair[h, col.SEQ] = seq + 1
                    cell[number, 1], cell[number, 2], cell[number, 3] = f, h, seq
                    leave[h, j] = OUT
                    if length[i, j] == 0:
                        cell[number, 0] = number | OWN
                    else:
                        tail = last[i, j] & NUMBER
                        cell[number, 0] = cell[tail, 0]
                        cell[tail, 0] = number | OWN
                    last[i, j] = number | OWN
                    length[i, j] += 1
                    waiting[i] += 1
                    local[i, j] = 1
                    turn[i, j] = (at + 1) % size
                    if pair[h, col.SERVED] == 0:
                        ended = at
                else:
                    ready[i, j] += 1
            at = (at + 1) % size
        if ended >= 0:
            for later in range(ended, size - 1):
                pairs[i, later] = pairs[i, later + 1]
            count[i] -= 1
            tally[col.ACTIVE] -= 1
        tally[col.MAX_QUEUE] = max(tally[col.MAX_QUEUE], length[i, j])
        tally[col.MAX_NODE] = max(tally[col.MAX_NODE], waiting[i])

        state.sent2[i, past], state.sent1[i, past] = state.next2[i, past], state.next1[i, past]
        older, newer = state.got2[i, j] - 1, state.got1[i, j] - 1
        air[i, 1] = length[i, older] + ready[i, older] if older >= 0 else 0
        air[i, 2] = length[i, newer] + ready[i, newer] if newer >= 0 else 0
        state.now[i] = 0
        mine = 0
        if length[i, j] > 0:
            tail = last[i, j] & NUMBER
            number = cell[tail, 0]
            cell[tail, 0] = cell[number & NUMBER, 0]
            length[i, j] -= 1
            waiting[i] -= 1
            state.departed[i] += 1
            tally[col.FLYING] += 1
            if number & OWN:
                h = cell[number & NUMBER, 2]
                mine = h + 1
                state.now[i] = mine
                local[i, j] = 0
                leave[h, j] = SENT
                tally[col.LOCAL] += 1
            else:
                tally[col.FORWARDED] += 1
            air[i, 0] = number + 1
        else:
            air[i, 0] = 0
        state.next2[i, j], state.next1[i, j] = state.sent1[i, j], mine
    tally[col.VISITS] += n
    return narrow


@part
def correction(value, c, s, m, just_sent):
    """1 if the far queue will be served before the sender's next turn, so that one cell less will be ahead.

    c is the slot of the epoch now, s that of the sender's turn, m that of the far queue's.
    """
    if value == 0:
        return 0
    if (c < m and m <= s) or (m < s and s < c) or (s < c and c < m):
        return 1
    if s == c and m != s and not just_sent:
        return 1
    return 0


@part
def hear(state, r, s, h, value, slot, epoch, n, just_sent):
    """Node r takes in that `value` cells wait at s where the cells of its pair h go."""
    if state.leave[h, s] == OUT:  # a newer cell of it waits here
        return
    c, mine = slot % epoch, (s - r - 1) % n
    if state.target[h] != s:
        value -= correction(value, c, mine, (state.target[h] - s - 1) % n, just_sent)
    state.leave[h, s] = slot // epoch + (1 if mine <= c else 0) + value


@part
def receive(plan, state, slot):
    """Every node takes in its one cell: the feedback first."""
    n, epoch = plan.numbers[col.N], plan.numbers[col.EPOCH]
    x = slot % epoch
    cell, tally, air, pair = state.cell, state.tally, state.air, state.pair
    moved = False
    for i in range(n):
        j = (i + x + 1) % n
        same = (j + x + 1) % n == i  # the two face each other in this very slot
        just = state.now[j] if same else state.sent1[j, i]
        h = state.sent2[j, i] - 1
        if h >= 0 and plan.numbers[col.FEEDBACK] > 1:
            hear(state, j, i, h, air[i, 1], slot, epoch, n, just == h + 1)
        h = state.sent1[j, i] - 1
        if h >= 0:
            hear(state, j, i, h, air[i, 2], slot, epoch, n, just == h + 1)

        number = air[i, 0] - 1
        state.got2[j, i] = state.got1[j, i]
        if number < 0:
            state.got1[j, i] = 0
            continue
        moved = True
        tally[col.FLYING] -= 1
        own = number & OWN
        number &= NUMBER
        f, h = np.int64(cell[number, 1]), cell[number, 2]
        d = state.target[h]
        state.got1[j, i] = d + 1
        if d != j:
            length = state.length[j, d]
            if length == 0:
                cell[number, 0] = number
            else:
                tail = state.last[j, d] & NUMBER
                other = tail
                for _ in range(length):
                    if cell[other, 2] == h:
                        tally[col.OVER_SUBFLOW] += 1
                    other = cell[other, 0] & NUMBER
                cell[number, 0] = cell[tail, 0]
                cell[tail, 0] = number
            state.last[j, d] = number
            state.length[j, d] += 1
            state.waiting[j] += 1
            tally[col.MAX_QUEUE] = max(tally[col.MAX_QUEUE], length + 1)
            tally[col.MAX_NODE] = max(tally[col.MAX_NODE], state.waiting[j])
            if length >= bound(state.incast, state.incast, d, j, True):
                tally[col.OVER_BOUND] += 1
            add(state.print, slot, event(f, j, col.GOES_ON))
            continue
        add(state.print, slot, event(f, j, col.DIRECT if own else col.RELAYED_BY))
        state.free[tally[col.FREE]] = number
        tally[col.FREE] += 1
        tally[col.DELIVERED] += 1
        tally[col.MAX_HELD] = max(tally[col.MAX_HELD], reorder(pair, state.early, h, np.int64(cell[number, 3])))
        if deliver(state, f, h, j, slot) == 0:
            state.incast[j] -= 1
            tally[col.LIVE] -= 1
    return moved


@bare
def advance(plan, state, until, budget):
    """Simulate slots before `until`, or until every flow has finished or `budget` visits are spent; says which."""
    tally, start, n, epoch = state.tally, plan.start, plan.numbers[col.N], plan.numbers[col.EPOCH]
    visits, slots = tally[col.VISITS] + budget, tally[col.SLOTS] + budget
    plan, state = by_reference(plan), by_reference(state)
    while tally[col.SLOT] < until:
        if tally[col.FINISHED] == start.size:
            return col.DONE
        if tally[col.LIVE] == 0 and state.quiet[0] > 2 * epoch + 1 and next_start(plan, state) > tally[col.SLOT]:
            # Two epochs of empty cells have cleared every record.
            tally[col.SLOT] = min(next_start(plan, state), until)
            continue
        if not start_flows(plan, state):
            return col.MORE_PAIRS
        if tally[col.FREE] < n:
            return col.MORE_CELLS
        slot = tally[col.SLOT]
        narrow = send(plan, state, slot)
        state.quiet[0] = 0 if receive(plan, state, slot) else state.quiet[0] + 1
        tally[col.SLOT] += 1
        tally[col.SLOTS] += 1
        if narrow:
            return col.MORE_WINDOW
        if tally[col.VISITS] >= visits or tally[col.SLOTS] >= slots:
            return col.SPENT
    return col.REACHED


@bare
def inspect(plan, state):
    """(cells that share a queue with another of their subflow, which `receive` counts; cells that do not add up)."""
    queued = np.int64(0)
    for i in range(state.length.shape[0]):
        for j in range(state.length.shape[1]):
            queued += state.length[i, j]
    in_use = state.cell.shape[0] - state.tally[col.FREE]
    return np.int64(0), abs(in_use - queued - state.tally[col.FLYING])
