"""Take a rack over from the fast kernel before the first fault, so that it need not be slow from the start.

While nothing goes wrong the two kernels move the same cells, so a rack whose faults lie in the future can begin on the
fast one, under `fast_plan`, up to `switch_slot`; `convert` then makes the plain kernel's state, and from there on every
event is the one that the plain kernel would have come to from the start.
"""

import numpy as np

from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal import kernel as fast_kernel
from weft.fabrics.shoal.columns import Plan
from weft.fabrics.shoal.kernel import FastState
from weft.fabrics.shoal.plain import state as of
from weft.fabrics.shoal.plain.arrays import make_state
from weft.fabrics.shoal.plain.state import PlainPlan, PlainState
from weft.schedule.outage import pack, unpack

NEVER = 1 << 62  # a slot that no run reaches
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def switch_slot(plan: PlainPlan) -> int:
    """The slot up to which the fast kernel may carry a rack; 0 where it cannot at all.

    The plain kernel remembers what left in the last turns, because some of it is sent again when a peer fails. The fast
    one does not. So the plain one takes over before the first fault, by as many slots as it can look back.
    """
    numbers = plan.numbers
    if numbers[col.CLASSES] > 1 or numbers[col.DAMAGE] or numbers[col.TIMEOUT]:
        return 0
    for slot, x, y in zip(plan.change.tolist(), plan.cuts, plan.offs, strict=True):
        if plan.cut[x].any() or plan.dead[x].any() or plan.off[y].any():
            return max(slot - 2 * int(numbers[col.EPOCH] + numbers[col.DELAY] + 1), 0)
    return NEVER


def fast_plan(plan: PlainPlan) -> Plan:
    """The plan of the same rack for the fast kernel."""
    columns = [getattr(plan, name) for name in Plan._fields]
    return arrays.best_plan(Plan(*columns)._replace(numbers=plan.numbers[: col.NUMBERS].copy()))


def convert(plan: PlainPlan, fast: FastState, more: int = 0) -> PlainState:
    """The plain kernel's state of a rack that the fast kernel has carried so far, none of whose faults has begun.

    more: cells that there must be room for besides.
    """
    slot, base = int(fast.tally[col.SLOT]), int(fast.tally[col.BASE])
    rows, row_of = _rows(fast)
    queued, flying = _queued(plan, fast, row_of), _flying(plan, fast, row_of)
    used = len(queued.flow) + len(flying.flow)
    state = make_state(plan, pairs=2 * len(rows), cells=2 * used + more, window=64 * fast.early.shape[1])
    _copy(state, fast)
    _set_pairs(plan, state, fast, rows, row_of, base)
    _set_queues(plan, state, fast, queued, row_of)
    _set_air(plan, state, flying, len(queued.flow), slot, base)
    state.pair[: len(rows), of.COPIES] = np.bincount([*queued.pair, *flying.pair], minlength=len(rows))
    tally, started = state.tally, arrays.started(plan, fast)
    tally[col.FREE] -= used
    tally[col.CHANGE] = np.searchsorted(plan.change, slot) - 1
    tally[col.MOVED] = slot
    tally[col.RELEASED] = plan.cells[started].sum() - fast.flow[started, col.RELEASE].sum()
    epoch, n = plan.numbers[[col.EPOCH, col.N]].tolist()
    turns = unpack(plan.lit, n).reshape(epoch, -1).sum(axis=1)  # in each slot of an epoch
    tally[col.SPOKEN] = slot // epoch * turns.sum() + turns[: slot % epoch].sum()
    return state


class _Cells:
    """Columns of some cells: their flows, pairs (as rows of the plain state) and numbers, and whether they are own."""

    def __init__(self, what, fast, row_of):
        self.flow = (what & np.uint64(fast_kernel.FLOW_BITS)).astype(np.int64)
        self.pair = row_of[fast.whose[self.flow].astype(np.int64)]
        self.number = (what >> _HALF).astype(np.int64) & fast_kernel.SEQ_BITS
        self.own = what >= np.uint64(fast_kernel.OWN)

    def write(self, state, first):
        """Put them into the table, from number `first` on, each followed by the next."""
        number = np.arange(first, first + len(self.flow))
        columns = (number + 1, self.flow, self.pair, self.number)
        state.cell[number] = np.stack(columns, axis=1)
        return number


def _rows(fast):
    """The pairs that live or rest, as numbers of the fast kernel, and where each of those goes, -1 for the others."""
    head, tail = fast.tally[[col.REST_HEAD, col.REST_TAIL]].tolist()
    resting = fast.rest[np.arange(head, tail) % len(fast.rest)]
    rows = np.concatenate([np.flatnonzero(fast.pair[:, col.UNDELIVERED] > 0), resting])
    row_of = np.full(len(fast.pair), -1, np.int64)
    row_of[rows] = np.arange(len(rows))
    return rows, row_of


def _pair_of(plan, subflow):
    """The pair of a subflow, given as the place that `leave` has it in."""
    block = (subflow >> fast_kernel.BLOCK) // int(plan.numbers[col.STRIDE])
    return block << fast_kernel.BLOCK | subflow & fast_kernel.SEAT


def _owed(plan, debt, row_of):
    """1 + the pairs that feedback is owed on, as rows of the plain state; 0 for none."""
    subflow = (debt & _LOW).astype(np.int64)
    return np.where(subflow > 0, row_of[_pair_of(plan, subflow)] + 1, 0)


def _links(plan, array):
    """(w * n,): an array of links without the nodes that fill up a row."""
    n, row = int(plan.numbers[col.N]), int(plan.numbers[col.ROW])
    return array.reshape(-1, row)[:, :n].ravel()


def _copy(state, fast):
    """What is the same in both."""
    for name in (*arrays.LONG, "flow", "incast", "outcast", "inflow", "lengths", "print", "active", "waits"):
        getattr(state, name)[...] = getattr(fast, name)
    state.busy[...] = fast.busy.reshape(state.busy.shape)
    state.longest[0] = fast.tally[col.MAX_QUEUE]
    kept = [
        col.SLOT, col.STARTED, col.FINISHED, col.LOCAL, col.FORWARDED, col.DELIVERED, col.VISITS, col.SLOTS, col.ACTIVE,
        col.FLYING, col.MAX_QUEUE, col.MAX_NODE, col.MAX_HELD, col.OVER_BOUND, col.OVER_SUBFLOW, col.LIVE,
        col.KNOWN_STARTED, col.HEAPED,
    ]  # fmt: skip
    state.tally[kept] = fast.tally[kept]


def _set_pairs(plan, state, fast, rows, row_of, base):
    """Pairs that live or rest, with what they know of their subflows."""
    many, w = len(rows), len(plan.shift)
    living = fast.pair[rows, col.UNDELIVERED] > 0
    pair = state.pair[:many]
    pair[:, : fast.pair.shape[1]] = fast.pair[rows]
    following = fast.pair[rows, col.NEXT]
    pair[:, col.NEXT] = np.where(living & (following > 0), row_of[following - 1] + 1, 0)
    pair[:, of.BORN] = np.where(living, 0, -1)  # any slot up to now will do: see `pairs.copy_of`
    block, within = rows >> fast_kernel.BLOCK, rows & fast_kernel.SEAT
    pair[:, of.SEAT] = fast.order[block].astype(np.int64) * fast_kernel.SEATS + within
    pair[:, of.DIRTY] = pair[:, col.GOT] > 0
    state.target[:many] = fast.target[rows]
    state.early[:many] = fast.early[rows]
    first = fast.living.astype(np.int64)
    state.living[:] = np.where(first > 0, row_of[first - 1] + 1, 0)

    leave = fast.leave.reshape(-1, int(plan.numbers[col.STRIDE]), fast_kernel.SEATS)[block, :w, within].astype(np.int32)
    state.leave[:many] = np.where(leave >= fast_kernel.SENT, of.AWAY, np.where(leave < 0, 0, leave + base))

    head, tail = fast.tally[[col.REST_HEAD, col.REST_TAIL]].tolist()
    ring = np.arange(head, tail) % len(fast.rest)
    state.rest[: tail - head], state.rested[: tail - head] = row_of[fast.rest[ring]], fast.rested[ring]
    state.tally[[col.REST_TAIL, col.PAIRS_USED]] = tail - head, many

    list_pairs(state, np.flatnonzero(living & (pair[:, col.SERVED] > 0)))


def list_pairs(state, able):
    """Let these pairs be those with something left to release, in the order of seats."""
    pair = state.pair
    source, entry = pair[able, col.SOURCE], pair[able, of.SEAT] << 32 | able
    order = np.lexsort((entry, source))
    state.count[:] = np.bincount(source, minlength=len(state.count))
    within = np.arange(len(able)) - np.repeat(np.cumsum(state.count) - state.count, state.count)
    state.pairs[source[order], within] = entry[order]


def _queued(plan, fast, row_of):
    """The cells that wait, queue by queue and from head to tail; `queue` says in which each is."""
    held, depth = fast.held.astype(np.int64), int(plan.numbers[col.DEPTH])
    length, head = held & fast_kernel.LENGTH, held >> fast_kernel.HEAD_SHIFT
    queue, position, what = [], [], []
    number = fast.spill[::2].astype(np.int64)
    for k in range(int(length.max(initial=0))):
        q = np.flatnonzero(length > k)
        if k < depth:
            cells = fast.ring[q * depth + (head[q] + k & depth - 1)]
        else:
            cells = fast.cell[number[q]]
            number[q] = fast.link[number[q]]
        queue.append(q)
        position.append(np.full(len(q), k))
        what.append(cells)
    queue, position = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (queue, position))
    order = np.lexsort((position, queue))
    cells = _Cells(np.concatenate([np.zeros(0, np.uint64), *what])[order], fast, row_of)
    cells.queue = queue[order]
    return cells


def _set_queues(plan, state, fast, queued, row_of):
    """Queues with their cells, what they count, and the feedback that is owed."""
    n, row = int(plan.numbers[col.N]), int(plan.numbers[col.ROW])
    q = queued.queue // row * n + queued.queue % row
    number = queued.write(state, 0)
    held, queue = _links(plan, fast.held).astype(np.int64), state.queue
    queue[:, of.LENGTH] = held & fast_kernel.LENGTH
    queue[:, of.READY] = held >> fast_kernel.READY_SHIFT & fast_kernel.READY_BITS
    queue[:, of.MINE] = np.bincount(q[queued.own], minlength=len(queue))
    queue[q[::-1], of.HEAD] = number[::-1]  # the first of each queue is written last
    queue[q, of.TAIL] = number
    queue[:, of.TURN] = _links(plan, fast.turn)
    queue[:, of.OWED] = _owed(plan, _links(plan, fast.owed), row_of)
    for v in range(state.past.shape[1]):
        state.past[:, v] = _owed(plan, _links(plan, fast.past[v :: state.past.shape[1]]), row_of)
    state.told[:] = _owed(plan, fast.told, row_of)


def _flying(plan, fast, row_of):
    """The cells under way, and the messages that they are part of."""
    is_sent = np.arange(int(plan.numbers[col.N])) < fast.air[:, :, None]
    table = fast.sent.reshape(*is_sent.shape, 4)[is_sent]
    carries = table[:, fast_kernel.WHOSE] & _LOW != 0
    cells = _Cells(table[carries, fast_kernel.WHAT], fast, row_of)
    cells.carries = carries
    cells.ring, cells.channel, _ = np.nonzero(is_sent)
    cells.sender = (table[:, fast_kernel.INTO] >> np.uint64(34)).astype(np.int64)
    cells.about = _owed(plan, table[:, fast_kernel.ABOUT], row_of)
    cells.when = (table[:, fast_kernel.ABOUT] >> _HALF).astype(np.int64)
    cells.again = _echoes(plan, fast, row_of)
    return cells


def _echoes(plan, fast, row_of):
    """Feedback that is under way once more: (ring, channel, sender, which value, 1 + its pair, when) of each."""
    epoch, channels, delay, n = plan.numbers[[col.EPOCH, col.CHANNELS, col.DELAY, col.N]].tolist()
    slot, out = int(fast.tally[col.SLOT]), []
    for sent in range(max(slot - delay, 0), slot):
        for c in range(channels):
            ring, seen = sent % (delay + 1), {}
            for word in fast.again[ring, c, : fast.echoes[ring, c]].tolist():
                h, shift = _pair_of(plan, word & 0xFFFFFFFF), int(plan.shift[sent % epoch * channels + c])
                i = (int(fast.pair[h, col.SOURCE]) - shift) % n
                v = seen[i] = seen.get(i, -1) + 1
                out.append((ring, c, i, v, row_of[h] + 1, word >> 32))
    return np.array(out, np.int64).reshape(-1, 6)


def _set_air(plan, state, flying, first, slot, base):
    """What is under way: everybody who had a peer has sent something, and all of it will arrive."""
    epoch, channels, delay = plan.numbers[[col.EPOCH, col.CHANNELS, col.DELAY]].tolist()
    for sent in range(max(slot - delay, 0), slot):
        state.air[sent % (delay + 1), :, of.ARRIVES] = plan.lit.reshape(epoch, channels, -1)[sent % epoch]
    number = flying.write(state, first)
    ring, c, i = flying.ring, flying.channel, flying.sender
    state.air_cell[ring[flying.carries], c[flying.carries], i[flying.carries]] = number + 1
    state.air_pair[ring, c, i] = flying.about
    state.air_leave[ring, c, i] = flying.when + base
    said = np.zeros((*state.air_cell.shape,), bool)
    said[ring, c, i] = True
    ring, c, i, v, pair, when = flying.again.T
    state.again_pair[ring, c, i, v], state.again_leave[ring, c, i, v] = pair, when + base
    said[ring, c, i] = True
    state.air[:, :, of.MESSAGE] = pack(said)
