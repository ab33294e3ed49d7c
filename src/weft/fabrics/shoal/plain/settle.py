"""Give a rack back to the fast kernel once everybody knows of what has failed, until something else is to happen.

From then on nothing is lost or sent twice: nodes send nothing to whom they take for failed, and nothing over whom they
know to be cut off. So the fast kernel can carry on, if it lets those places pass and never releases such a cell.
`settled` says whether it has come to that, `give_back` makes the fast kernel's state, and `take_back`, the other way
round, completes what `convert` makes of it. Every event is the one that the plain kernel would have come to.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.layout import bits_beyond
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal import kernel as fast_kernel
from weft.fabrics.shoal.columns import Plan
from weft.fabrics.shoal.kernel import FastState
from weft.fabrics.shoal.plain import state as of
from weft.fabrics.shoal.plain.convert import NEVER, convert, fast_plan, list_pairs
from weft.fabrics.shoal.plain.state import PlainPlan, PlainState
from weft.schedule.outage import pack, unpack

_HALF, _WHERE = np.uint64(32), np.uint64(fast_kernel.WHERE_SHIFT)


class Kept(NamedTuple):
    """What the plain kernel knew when it gave a rack back, and the fast one cannot say."""

    mute: np.ndarray
    deaf: np.ndarray
    peer_down: np.ndarray
    off_clock: np.ndarray
    down: np.ndarray
    missed: np.ndarray
    tally: np.ndarray
    listed: np.ndarray  # (k, 5) int64  cells to be repeated by pairs that cannot: see the names below


# listed: source, destination, flow and number of a cell, and since when its pair has been busy
SOURCE, TARGET, FLOW, NUMBER, SINCE = range(5)


def remember(plan: PlainPlan) -> int:
    """Slots before a fault from which on the plain kernel has to see what is sent."""
    return 2 * int(plan.numbers[col.EPOCH] + plan.numbers[col.DELAY] + 1)


def next_fault(plan: PlainPlan, slot: int) -> int:
    """The first slot from `slot` on in which something changes, or NEVER."""
    return min((x for x in plan.change.tolist() if x >= slot), default=NEVER)


# ---------------------------------------------------------------- whether it can be given back


def settled(plan: PlainPlan, state: PlainState) -> bool:
    """Whether everybody knows of what has failed, and nothing under way is any the worse for it."""
    tally, numbers = state.tally, plan.numbers
    if numbers[col.CLASSES] > 1 or numbers[col.DAMAGE] or numbers[col.TIMEOUT] or tally[col.CHANGE] < 0:
        return False
    x = plan.cuts[tally[col.CHANGE]]
    last = max(plan.change[tally[col.CHANGE]], tally[col.DETECTED], tally[col.REPAIR_UNTIL])
    if tally[col.SLOT] <= last + remember(plan) or tally[col.WAKE] or state.complain.any():
        return False
    if plan.off[plan.offs[tally[col.CHANGE]]].any() or not np.array_equal(state.down, plan.dead[x]):
        return False
    speaking = _speaking(plan, state)
    if (speaking & (plan.cut[x] | state.peer_down)).any():
        return False  # a cell would be lost
    if (plan.lit & ~speaking & ~state.deaf & ~state.peer_down).any():
        return False  # somebody would be missed
    if tally[col.LISTED]:
        listed = np.unique(_listed(state)[:, [SOURCE, TARGET]], axis=0).T
        if len(_unreachable(_to_whom(plan, speaking), *listed)) < listed.shape[1]:
            return False  # some of it will be sent again
    return _quiet(plan, state, speaking) and _sound(plan, state)


def _speaking(plan, state):
    """(w, b) uint64: who sends in each place."""
    return plan.lit & ~state.down & ~state.mute


def _quiet(plan, state, speaking):
    """Whether nothing waits for, or is owed on, a link on which nothing is sent."""
    silent = ~unpack(speaking, int(plan.numbers[col.N])).ravel()
    kept = state.queue[silent][:, [of.LENGTH, of.READY, of.OWED]]
    return not kept.any() and not state.past[silent].any()


def _sound(plan, state):
    """Whether every cell that is anywhere is one of a kind, still wanted, and on a way that leads to its end."""
    queued, flying = _queued(plan, state), _flying(plan, state)
    if np.count_nonzero(state.pair[: state.tally[col.PAIRS_USED], of.SEAT] >= 64 * len(state.marks)):
        return False
    number = np.concatenate([queued.number, flying.number, _listed_numbers(state)])
    h, seq = state.cell[number, of.OF_PAIR].astype(np.int64), state.cell[number, of.NUMBER].astype(np.int64)
    if len(np.unique(h << 32 | seq)) < len(h):
        return False
    ring = state.early.shape[1] * 64
    bit = state.early[h, seq % ring // 64] >> (seq % 64).astype(np.uint64) & np.uint64(1)
    if (seq < state.pair[h, col.WANT]).any() or bit.any():
        return False
    n = int(plan.numbers[col.N])
    p, i = np.concatenate([queued.p, flying.p]), np.concatenate([queued.i, flying.i])
    j, d = (i + plan.shift[p]) % n, state.target[h[: len(i)]].astype(np.int64)
    goes_on = j != d
    m = _where(plan, j, d)[goes_on]
    return not unpack(state.mute, n)[m, j[goes_on]].any()


def goes_on_for_ever(plan: PlainPlan, state: PlainState) -> bool:
    """Whether some flow will never be done, as far as is known: then the plain kernel must say when nothing moves."""
    n, begun = int(plan.numbers[col.N]), arrays.started(plan, state)
    open_ = state.flow[:, col.FINISH] < 0
    speaks = _to_whom(plan, _speaking(plan, state))
    src, dst = plan.src[open_].astype(np.int64), plan.dst[open_].astype(np.int64)
    if len(_unreachable(speaks, *np.divmod(np.unique(src * n + dst), n))):
        return True
    cells = np.concatenate([_queued(plan, state).number, _flying(plan, state).number])
    there = np.bincount(state.cell[cells, of.OF_FLOW], minlength=len(plan.src))
    lost = state.flow[:, col.DELIVER] - state.flow[:, col.RELEASE] - there
    return bool((open_ & begun & (lost > 0)).any())


def _unreachable(speaks, src, dst):
    """(k, 2): those of these pairs of nodes whose cells cannot get there, neither directly nor over another node."""
    apart = ~speaks[src, dst]
    pairs = np.stack([src[apart], dst[apart]], axis=1)
    return np.array([(i, d) for i, d in pairs.tolist() if not (speaks[i] & speaks[:, d]).any()], np.int64).reshape(
        -1, 2
    )


def until(plan: PlainPlan, state: PlainState) -> int:
    """The slot until which the fast kernel can carry on; 0 if it cannot at all.

    That is until the next fault can be seen coming. If some flow will never be done and nothing more is to change, the
    plain kernel has to say when nothing moves any more, which is not before the last flow has started.
    """
    fault = next_fault(plan, int(state.tally[col.SLOT]))
    end = NEVER if fault == NEVER else fault - remember(plan)
    if not goes_on_for_ever(plan, state):
        return end
    if len(state.waits):  # nobody can say when the last one starts, nor in which order those of nodes that are down do
        return 0
    works = ~unpack(state.down, int(plan.numbers[col.N]))[plan.src]
    return min(end, int(plan.start[works].max(initial=0))) if fault == NEVER else end


# ---------------------------------------------------------------- the plan


def masked_plan(plan: PlainPlan, kept: Kept) -> Plan:
    """The plan of the same rack for the fast kernel, without what has failed."""
    lit = _speaking(plan, kept)
    speaks = _to_whom(plan, lit)
    np.fill_diagonal(speaks, True)
    return fast_plan(plan._replace(lit=lit, gone=kept.down.copy(), parted=pack(~speaks)))


def _to_whom(plan, lit):
    """(n, n) bool: whether i sends to j in any place."""
    n = int(plan.numbers[col.N])
    p, i = np.nonzero(unpack(lit, n))
    speaks = np.zeros((n, n), bool)
    speaks[i, (i + plan.shift[p]) % n] = True
    return speaks


# ---------------------------------------------------------------- to the fast kernel


class _Cells(NamedTuple):
    """Cells, by number: who sends them, in which place; for those that wait the queue, and how many are before them."""

    number: np.ndarray
    i: np.ndarray
    p: np.ndarray
    behind: np.ndarray


def _queued(plan, state):
    """The cells that wait, queue by queue from head to tail."""
    n, (length, number) = int(plan.numbers[col.N]), (state.queue[:, [of.LENGTH, of.HEAD]].astype(np.int64).T)
    number, found = number.copy(), [np.zeros((3, 0), np.int64)]
    for k in range(int(length.max(initial=0))):
        q = np.flatnonzero(length > k)
        found.append(np.stack([q, np.full(len(q), k), number[q]]))
        number[q] = state.cell[number[q], of.FOLLOWING]
    q, behind, number = np.concatenate(found, axis=1)
    order = np.lexsort((behind, q))
    return _Cells(number[order], q[order] % n, q[order] // n, behind[order])


def _messages(plan, state):
    """(ring, channel, sender, place) of every message under way, in that order."""
    epoch, channels, delay, n = plan.numbers[[col.EPOCH, col.CHANNELS, col.DELAY, col.N]].tolist()
    slot, out = int(state.tally[col.SLOT]), [np.zeros((4, 0), np.int64)]
    for sent in range(max(slot - delay, 0), slot):
        ring = sent % (delay + 1)
        c, i = np.nonzero(unpack(state.air[ring, :, of.MESSAGE], n))
        out.append(np.stack([np.full(len(c), ring), c, i, sent % epoch * channels + c]))
    return np.concatenate(out, axis=1)


def _flying(plan, state):
    """The cells under way."""
    ring, c, i, p = _messages(plan, state)
    number = state.air_cell[ring, c, i].astype(np.int64) - 1
    there = number >= 0
    return _Cells(number[there], i[there], p[there], np.zeros(np.count_nonzero(there), np.int64))


def _listed_numbers(state):
    """The cells to be repeated, pair by pair in their order."""
    out = []
    for h in np.flatnonzero(state.pair[: state.tally[col.PAIRS_USED], of.LIST]):
        out.append(int(state.pair[h, of.LIST]) - 1)
        while out[-1] != state.pair[h, of.LAST] - 1:
            out.append(int(state.cell[out[-1], of.FOLLOWING]))
    return np.array(out, np.int64)


def _listed(state):
    """The same as `Kept` has them."""
    number = _listed_numbers(state)
    h = state.cell[number, of.OF_PAIR]
    columns = [
        state.pair[h, col.SOURCE],
        state.target[h],
        state.cell[number, of.OF_FLOW],
        state.cell[number, of.NUMBER],
    ]
    return np.stack([*columns, state.pair[h, col.SINCE]], axis=1).astype(np.int64)


def _where(plan, j, d):
    """The place in which j sends to d; arrays."""
    n, half = int(plan.numbers[col.N]), int(plan.numbers[col.HALF])
    return plan.place[d - j + n + np.where(j >= half, 2 * n, 0)].astype(np.int64)


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


def limits(plan: PlainPlan, given: dict[str, np.ndarray]):
    """(what, numbers, least, largest) of whatever leads into a table, see `weft.engine.layout`."""
    n, flows, slot = int(plan.numbers[col.N]), len(plan.src), int(given["tally"][col.SLOT])
    tally, listed, fault = given["kept.tally"], given["kept.listed"], next_fault(plan, max(slot - 1, 0))
    for name in ("mute", "deaf", "peer_down", "off_clock", "down"):
        yield f"kept.{name}", bits_beyond(given[f"kept.{name}"], n), 0, 0
    yield "kept.switch", given["kept.switch"], 1, NEVER if fault == NEVER else max(fault - remember(plan), 1)
    yield "kept.tally", tally[col.CHANGE], 0, len(plan.change) - 1
    yield "kept.tally", tally[[col.WAITING_FIRST, col.WAITING_LAST]], 0, flows
    yield "kept.tally", tally[col.SLOT], 0, slot
    yield "kept.missed", given["kept.missed"], 0, 1 << 31
    yield "kept.listed", listed[:, [SOURCE, TARGET]], 0, n - 1
    yield "kept.listed", listed[:, FLOW], 0, max(flows - 1, 0)
    yield "kept.listed", listed[:, NUMBER], 0, fast_kernel.SEQ_BITS
    yield "kept.listed", listed[:, SINCE], 0, slot
    living = given["pair"][:, col.UNDELIVERED] > 0
    ends = given["pair"][living, col.SOURCE] * n + given["target"][living]
    yield "kept.listed", np.isin(listed[:, SOURCE] * n + listed[:, TARGET], ends), 1, 1


def give_back(plan: PlainPlan, state: PlainState) -> tuple[Plan, FastState, Kept] | None:
    """The fast kernel's plan and state of a rack that has settled, and what it cannot say; None if it has no room."""
    known = {name: getattr(state, name).copy() for name in Kept._fields if name != "listed"}
    kept = Kept(**known, listed=_listed(state))
    seating = _seat(plan, state)
    if seating.many.max(initial=0) > -(-int(plan.numbers[col.N]) // fast_kernel.SEATS):
        return None
    queued, depth = _queued(plan, state), int(plan.numbers[col.DEPTH])
    spilled = int(np.count_nonzero(queued.behind >= depth))
    fast = arrays.make_state(
        masked := masked_plan(plan, kept),
        pairs=fast_kernel.SEATS * (1 + int(seating.many.sum())), cells=2 * spilled, window=64 * state.early.shape[1],
    )  # fmt: skip
    _copy(fast, state)
    _set_pairs(plan, masked, fast, state, seating)
    own = _set_queues(plan, fast, state, queued, seating)
    _set_air(plan, fast, state, seating)
    tally = fast.tally
    tally[col.RELAYED] = tally[col.FORWARDED] + len(queued.number) - own
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
        queued = _queued(plan, state)
        pair = state.cell[queued.number[queued.p == here], of.OF_PAIR]
        waits = np.isin(rows, pair[state.pair[pair, col.SOURCE] == queued.i[queued.p == here]])
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
    m = _where(plan, j, d)
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


def _set_queues(plan, fast, state, queued, seating):
    """Queues with their cells and what they count, and the feedback that is owed; returns how many cells are local."""
    n, row_of, depth, w = (
        int(plan.numbers[col.N]),
        int(plan.numbers[col.ROW]),
        int(plan.numbers[col.DEPTH]),
        len(plan.shift),
    )
    what, _, own = _words(state, seating, queued)
    q = queued.p * row_of + queued.i
    short = queued.behind < depth
    fast.ring[q[short] * depth + queued.behind[short]] = what[short]
    number = np.arange(np.count_nonzero(~short))
    fast.cell[number] = what[~short]
    fast.link[number[:-1]] = number[1:]  # past the end of a queue nobody follows it
    begins = queued.behind[~short] == depth
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
    ring, c, i, p = _messages(plan, state)
    if not len(ring):
        return
    number = state.air_cell[ring, c, i].astype(np.int64) - 1
    full = number >= 0
    what, row, own = _words(state, seating, _Cells(np.maximum(number, 0), i, p, i))
    h, d, j = seating.number[row], state.target[row].astype(np.int64), (i + plan.shift[p]) % n
    m = _where(plan, j, np.where(full & (d != j), d, (j + 1) % n))
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
