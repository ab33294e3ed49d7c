"""Make the fast kernel's state of a rack that has settled, and the plain one's again before something else happens.

Every event is the one that the plain kernel would have come to.
"""

from typing import NamedTuple

import numpy as np

from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal import kernel as fast_kernel
from weft.fabrics.shoal.columns import Plan
from weft.fabrics.shoal.kernel import FastState
from weft.fabrics.shoal.plain import state as of
from weft.fabrics.shoal.plain.cells import Cells, messages, places, queued
from weft.fabrics.shoal.plain.convert import convert, list_pairs
from weft.fabrics.shoal.plain.settle import Kept, listed_cells, masked_plan, moved
from weft.fabrics.shoal.plain.state import PlainPlan, PlainState
from weft.schedule.outage import unpack

_HALF, _WHERE = np.uint64(32), np.uint64(fast_kernel.WHERE_SHIFT)


class _Seating(NamedTuple):
    """Where the pairs of the plain kernel go."""

    rows: np.ndarray  # the pairs that live or rest, in the plain state
    many: np.ndarray  # (n,)  blocks of each node
    first: np.ndarray  # (n,)  its first
    number: np.ndarray  # [row] its number in the fast state, -1 for those that are forgotten


def _seat(plan, state):
    head, tail, slot, used = state.tally[[col.REST_HEAD, col.REST_TAIL, col.SLOT, col.PAIRS_USED]].tolist()
    ring = np.arange(head, tail) % len(state.rest)
    resting = state.rest[ring][state.rested[ring] > slot]
    living = np.flatnonzero((state.pair[:used, of.BORN] >= 0) & (state.pair[:used, col.UNDELIVERED] > 0))
    rows = np.concatenate([living, resting])
    n, seats = int(plan.numbers[col.N]), fast_kernel.SEATS
    source, seat = state.pair[rows, col.SOURCE], state.pair[rows, of.SEAT]
    many = np.zeros(n, np.int64)
    np.maximum.at(many, source, seat // seats + 1)
    first = 1 + np.cumsum(many) - many  # the first block of all stays empty
    number = np.full(len(state.pair), -1, np.int64)
    number[rows] = (first[source] + seat // seats) * seats + seat % seats
    return _Seating(rows, many, first, number)


def give_back(plan: PlainPlan, state: PlainState) -> tuple[Plan, FastState, Kept] | None:
    """The fast kernel's plan and state of a rack that has settled, and what it cannot say; None if it has no room."""
    known = {name: getattr(state, name).copy() for name in Kept._fields if name != "listed"}
    kept = Kept(**known, listed=listed_cells(state))
    seating = _seat(plan, state)
    if seating.many.max(initial=0) > -(-int(plan.numbers[col.N]) // fast_kernel.SEATS):
        return None
    cells, depth = queued(plan, state), int(plan.numbers[col.DEPTH])
    spilled = int(np.count_nonzero(cells.behind >= depth))
    fast = arrays.make_state(
        masked := masked_plan(plan, kept),
        pairs=fast_kernel.SEATS * (1 + int(seating.many.sum())), cells=2 * spilled, window=64 * state.early.shape[1],
    )  # fmt: skip
    _copy(fast, state)
    _set_pairs(plan, masked, fast, state, seating)
    own = _set_queues(plan, fast, state, cells, seating)
    _set_air(plan, fast, state, seating)
    tally = fast.tally
    tally[col.RELAYED] = tally[col.FORWARDED] + len(cells.number) - own
    tally[col.ASTRAY] = tally[col.LOCAL] + tally[col.FORWARDED] - tally[[col.FLYING, col.RELAYED, col.DELIVERED]].sum()
    return masked, fast, kept


def _copy(fast, state):
    """What is the same in both."""
    for name in (*arrays.LONG, "flow", "incast", "outcast", "inflow", "lengths", "print", "active", "waits"):
        getattr(fast, name)[...] = getattr(state, name)
    fast.busy[:] = state.busy.ravel()
    same = [
        col.SLOT, col.STARTED, col.FINISHED, col.LOCAL, col.FORWARDED, col.DELIVERED, col.VISITS, col.SLOTS, col.ACTIVE,
        col.FLYING, col.MAX_QUEUE, col.MAX_NODE, col.MAX_HELD, col.OVER_BOUND, col.OVER_SUBFLOW, col.LIVE,
        col.KNOWN_STARTED, col.HEAPED,
    ]  # fmt: skip
    fast.tally[same] = state.tally[same]
    fast.tally[col.LANDED], fast.tally[col.MAY_MEET] = state.tally[col.MOVED], state.tally[col.REPEATS] > 0


def _set_pairs(plan, masked, fast, state, seating):
    """Pairs that live or rest in their seats, with what they know of their subflows."""
    rows, number = seating.rows, seating.number
    n, stride, seats = int(plan.numbers[col.N]), int(plan.numbers[col.STRIDE]), fast_kernel.SEATS
    slot, epoch = int(state.tally[col.SLOT]), int(plan.numbers[col.EPOCH])
    base = fast.tally[col.BASE] = slot // epoch
    h = number[rows]
    living = state.pair[rows, of.BORN] >= 0
    fast.pair[h] = state.pair[rows, : fast.pair.shape[1]]
    following = state.pair[rows, col.NEXT]
    fast.pair[h, col.NEXT] = np.where(living & (following > 0), number[following - 1] + 1, 0)
    fast.target[h], fast.early[h] = state.target[rows], state.early[rows]
    first = state.living.astype(np.int64)
    fast.living[:] = np.where(first > 0, number[first - 1] + 1, 0)
    fast.tally[col.PAIRS_USED] = seats * (1 + int(seating.many.sum()))
    fast.tally[col.REST_TAIL] = resting = np.count_nonzero(~living)
    fast.rest[:resting] = h[~living]
    rested = np.zeros(len(state.pair), np.int64)
    ring = np.arange(*state.tally[[col.REST_HEAD, col.REST_TAIL]]) % len(state.rest)
    rested[state.rest[ring]] = state.rested[ring]
    fast.rested[:resting] = rested[rows[~living]]

    np.bitwise_or.at(fast.taken, h // seats, np.uint64(1) << (h % seats).astype(np.uint64))
    of_node = fast.seats.reshape(n, 4)
    of_node[:, fast_kernel.BLOCKS] = seating.many
    of_node[:, fast_kernel.HOME] = np.where(seating.many > 0, seating.first * stride, 0)
    second = (seating.first + (seating.many > 1)) * stride
    of_node[:, fast_kernel.SECOND] = np.where(seating.many > 0, second, 0)
    node = np.repeat(np.arange(n), seating.many)
    order = np.arange(len(node)) - np.repeat(np.cumsum(seating.many) - seating.many, seating.many)
    fast.order[1 : 1 + len(node)] = order
    fast.block[node, order] = 1 + np.arange(len(node))
    able = living & (state.pair[rows, col.SERVED] > 0)
    source, seat = state.pair[rows, col.SOURCE], state.pair[rows, of.SEAT]
    of_node[:, fast_kernel.COUNT] = state.count
    np.bitwise_or.at(
        fast.able, (seat[able] >> 6) * n + source[able], np.uint64(1) << (seat[able] & 63).astype(np.uint64)
    )

    leave = _leave(plan, masked, state, rows, living, base)
    table = fast.leave.reshape(-1, stride, seats)
    table[h // seats, : leave.shape[1], h % seats] = leave

    open_ = np.flatnonzero((state.flow[:, col.FINISH] < 0) & arrays.started(plan, state))
    ends = source[living] * n + state.target[rows[living]]
    order = np.argsort(ends)
    asked = plan.src[open_].astype(np.int64) * n + plan.dst[open_]
    x = order[np.searchsorted(ends, asked, sorter=order) % max(len(ends), 1)] if len(ends) else asked * 0
    found = ends[x] == asked if len(ends) else asked < 0  # flows of nodes that have failed may have no pair yet
    fast.whose[open_[found]] = h[living][x[found]]


def _leave(plan, masked, state, rows, living, base):
    """(rows, w) int16: from when on each subflow may release a cell, as the fast kernel has it."""
    n, w = int(plan.numbers[col.N]), len(plan.shift)
    known = state.leave[rows]
    out = np.clip(known.astype(np.int64) - base, fast_kernel.FREE_NOW, fast_kernel.LATEST)
    out[known == of.AWAY] = fast_kernel.AWAY
    i, d = state.pair[rows, col.SOURCE][:, None], state.target[rows].astype(np.int64)[:, None]
    here = int(plan.numbers[col.SELF])
    if here >= 0:  # a cell that has left is another matter than one that waits
        cells = queued(plan, state)
        pair = state.cell[cells.number[cells.p == here], of.OF_PAIR]
        waits = np.isin(rows, pair[state.pair[pair, col.SOURCE] == cells.i[cells.p == here]])
        out[(known[:, here] == of.AWAY) & ~waits, here] = fast_kernel.SENT
    lit, parted = unpack(masked.lit, n), unpack(masked.parted, n)
    j = (i + plan.shift[None, :]) % n
    shut = lit[np.arange(w)[None, :], i] & parted[j, d] & living[:, None]
    out[shut] = fast_kernel.AWAY
    return out


def _debts(plan, seating, state, about, r, j):
    """(k,) uint64: feedback that node j owes in place r on 1 + pair, 0 for none, as the fast kernel has it."""
    numbers, out = plan.numbers, np.zeros(len(about), np.uint64)
    k = np.flatnonzero(about)
    row, r, j = about[k].astype(np.int64) - 1, r[k], j[k]
    h, d, p = seating.number[row], state.target[row].astype(np.int64), plan.mirror[r].astype(np.int64)
    m = places(plan, j, d)
    lag = plan.late[plan.slot[m] - plan.slot[p] + int(numbers[col.EPOCH])].astype(np.int64) + (m < r)
    answer = (lag + int(numbers[col.ANSWER_OFFSET]) - 1).astype(np.uint64)
    queue = (m * int(numbers[col.ROW]) + j).astype(np.uint64)
    subflow = _subflow(plan, h, p).astype(np.uint64)
    out[k] = subflow | answer << np.uint64(fast_kernel.ANSWER_SHIFT) | queue << _WHERE
    return out


def _subflow(plan, h, p):
    """Where `leave` has the subflow of pair h in place p; arrays."""
    block = (h >> fast_kernel.BLOCK) * int(plan.numbers[col.STRIDE]) + p
    return (block << fast_kernel.BLOCK) + (h & fast_kernel.SEAT)


def _words(state, seating, cells):
    """The words of some cells, and their pairs."""
    number = cells.number
    row = state.cell[number, of.OF_PAIR].astype(np.int64)
    own = state.pair[row, col.SOURCE] == cells.i
    seq = (state.cell[number, of.NUMBER].astype(np.uint64) & np.uint64(fast_kernel.SEQ_BITS)) << _HALF
    what = state.cell[number, of.OF_FLOW].astype(np.uint64) | seq
    return np.where(own, what | np.uint64(fast_kernel.OWN), what), row, own


def _set_queues(plan, fast, state, cells, seating):
    """Queues with their cells and what they count, and the feedback that is owed; returns how many cells are local."""
    n, row_of, depth, w = (
        int(plan.numbers[col.N]),
        int(plan.numbers[col.ROW]),
        int(plan.numbers[col.DEPTH]),
        len(plan.shift),
    )
    what, _, own = _words(state, seating, cells)
    q = cells.p * row_of + cells.i
    short = cells.behind < depth
    fast.ring[q[short] * depth + cells.behind[short]] = what[short]
    number = np.arange(np.count_nonzero(~short))
    fast.cell[number] = what[~short]
    fast.link[number[:-1]] = number[1:]  # past the end of a queue nobody follows it
    begins = cells.behind[~short] == depth
    fast.spill[2 * q[~short][begins]] = number[begins]
    fast.spill[2 * q[~short] + 1] = number  # the last of each queue is written last
    free = len(fast.free) - len(number)
    fast.free[:free] = np.arange(len(fast.free))[: len(number) - 1 : -1] if len(number) else np.arange(free)[::-1]
    fast.tally[col.FREE] = free

    place, node = np.repeat(np.arange(w), n), np.tile(np.arange(n), w)
    link = place * row_of + node
    queue = state.queue.astype(np.int64)
    held = queue[:, of.LENGTH] | queue[:, of.READY] << fast_kernel.READY_SHIFT
    fast.held[link] = held | np.where(queue[:, of.MINE] > 0, fast_kernel.LOCAL_BIT, 0)
    fast.turn[link] = queue[:, of.TURN]
    fast.owed[link] = _debts(plan, seating, state, queue[:, of.OWED], place, node)
    more, owing = state.past.shape[1], int(plan.numbers[col.FEEDBACK]) * np.count_nonzero(fast.owed)
    for v in range(more):
        fast.past[link * more + v] = debts = _debts(plan, seating, state, state.past[:, v], place, node)
        owing += (more - v) * np.count_nonzero(debts)
    if plan.numbers[col.SELF] >= 0:
        here = np.full(n, plan.numbers[col.SELF], np.int64)
        fast.told[:] = _debts(plan, seating, state, state.told, here, np.arange(n))
        owing += np.count_nonzero(fast.told)
    fast.tally[col.OWING] = owing
    return np.count_nonzero(own)


def _set_air(plan, fast, state, seating):
    """What is under way."""
    numbers, base = plan.numbers, int(fast.tally[col.BASE])
    n, row_of = int(numbers[col.N]), int(numbers[col.ROW])
    ring, c, i, p = messages(plan, state)
    if not len(ring):
        return
    number = state.air_cell[ring, c, i].astype(np.int64) - 1
    full = number >= 0
    what, row, own = _words(state, seating, Cells(np.maximum(number, 0), i, p, i))
    h, d, j = seating.number[row], state.target[row].astype(np.int64), (i + plan.shift[p]) % n
    m = places(plan, j, np.where(full & (d != j), d, (j + 1) % n))
    goes_on = full & (d != j)
    into = np.where(goes_on, m * row_of + j + 1, 0).astype(np.uint64)
    how = np.where(d != j, col.GOES_ON, np.where(own, col.DIRECT, col.RELAYED_BY))
    about = state.air_pair[ring, c, i].astype(np.int64)
    r = plan.mirror[p].astype(np.int64)
    when = np.clip(state.air_leave[ring, c, i] - base, 0, fast_kernel.LATEST).astype(np.uint64)
    said = _subflow(plan, seating.number[about - 1], r).astype(np.uint64) | when << _HALF

    table = fast.sent.reshape(*fast.air.shape, n, 4)
    sends = full | (about > 0)
    for a, channel in np.unique(np.stack([ring, c])[:, sends], axis=1).T:
        k = np.flatnonzero((ring == a) & (c == channel) & sends)
        fast.air[a, channel] = len(k)
        x = table[a, channel, : len(k)]
        x[:, fast_kernel.WHAT] = what[k]
        x[:, fast_kernel.ABOUT] = np.where(about[k] > 0, said[k], 0)
        x[:, fast_kernel.INTO] = into[k] | (i[k] << 2 | how[k]).astype(np.uint64) << _HALF
        x[:, fast_kernel.WHOSE] = np.where(full[k], h[k].astype(np.uint64) | m[k].astype(np.uint64) << _HALF, 0)
    fast.tally[col.OWING] += np.count_nonzero(about)

    more = state.past.shape[1]
    for x in range(len(ring)):
        for v in range(more):
            pair = int(state.again_pair[ring[x], c[x], i[x], v])
            if pair:
                last = fast.echoes[ring[x], c[x]]
                late = min(max(int(state.again_leave[ring[x], c[x], i[x], v]) - base, 0), fast_kernel.LATEST)
                where = int(_subflow(plan, seating.number[pair - 1], r[x]))
                fast.again[ring[x], c[x], last] = where | late << 32
                fast.echoes[ring[x], c[x]] = last + 1
                fast.tally[col.OWING] += 1


# ---------------------------------------------------------------- and back to the plain one


def take_back(plan: PlainPlan, masked: Plan, fast: FastState, kept: Kept) -> PlainState:
    """The plain kernel's state of a rack that it had given back: what it knew, and what has been since."""
    state = convert(plan, fast, len(kept.listed))
    _list_again(state, kept)
    for name in ("mute", "deaf", "peer_down", "off_clock", "down", "missed"):
        getattr(state, name)[...] = getattr(kept, name)
    tally, n = state.tally, int(plan.numbers[col.N])
    since, slot = int(kept.tally[col.SLOT]), int(tally[col.SLOT])
    computed = [col.MOVED, col.RELEASED]
    rest = np.setdiff1d(np.arange(col.TALLY, col.PLAIN_TALLY), computed)
    tally[rest] = kept.tally[rest]
    tally[col.MOVED] = moved(plan, fast, kept)
    spoken, failed = _turns(plan, kept, slot) - _turns(plan, kept, since)
    tally[col.SPOKEN] += spoken
    tally[col.FAILED_SLOTS] += failed
    begun = np.flatnonzero(arrays.started(plan, state) & (plan.start >= since) & unpack(kept.down, n)[plan.src])
    state.flow[begun, col.AFTER] = np.append(begun[1:] + 1, 0)[: len(begun)]
    if len(begun):
        if tally[col.WAITING_FIRST] == 0:
            tally[col.WAITING_FIRST] = begun[0] + 1
        else:
            state.flow[tally[col.WAITING_LAST] - 1, col.AFTER] = begun[0] + 1
        tally[col.WAITING_LAST] = begun[-1] + 1
    return state


def _list_again(state, kept):
    """Put the cells that are to be repeated on the lists of their pairs."""
    tally, pair = state.tally, state.pair
    living = np.flatnonzero(pair[: tally[col.PAIRS_USED], of.BORN] >= 0)
    ends = zip(pair[living, col.SOURCE].tolist(), state.target[living].tolist(), strict=True)
    row = dict(zip(ends, living.tolist(), strict=True))
    for i, d, f, seq, since in kept.listed.tolist():
        h = row[i, d]
        tally[col.FREE] -= 1
        number = state.free[tally[col.FREE]]
        state.cell[number] = 0, f, h, seq
        if pair[h, of.LIST] == 0:
            pair[h, of.LIST] = number + 1
        else:
            state.cell[pair[h, of.LAST] - 1, of.FOLLOWING] = number
        pair[h, of.LAST], pair[h, col.SINCE] = number + 1, since
        pair[h, of.COPIES] += 1
    if len(kept.listed):
        list_pairs(state, living[(pair[living, col.SERVED] > 0) | (pair[living, of.LIST] > 0)])
        tally[col.ACTIVE] = state.count.sum()


def _turns(plan, kept, slot):
    """(2,) int64: turns in which somebody sends, and in which nobody does as the peer has failed, before a slot."""
    epoch, n = int(plan.numbers[col.EPOCH]), int(plan.numbers[col.N])
    working = plan.lit & ~kept.down
    each = [unpack(words, n).reshape(epoch, -1).sum(axis=1) for words in (working & ~kept.mute, working & kept.mute)]
    return np.array([slot // epoch * turns.sum() + turns[: slot % epoch].sum() for turns in each])
