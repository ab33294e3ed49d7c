"""A run from the fast kernel's arrays to those of a device, and back: the same rack, in other words."""

import numpy as np

from weft.engine import memory
from weft.engine.bits import lowest, population
from weft.engine.device import threads_of
from weft.engine.jit import kernel, part
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal import kernel as fast
from weft.fabrics.shoal.gpu import state as dev
from weft.fabrics.shoal.gpu.state import Common, Racks, Shape, View
from weft.fabrics.shoal.kernel import FastState
from weft.fabrics.shoal.rules import rested_by

_1, _LOW, _HALF = np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)


def make_common(plan, shape: Shape) -> Common:
    """What racks of a shape share, of the plan of any of them."""
    given = plan.numbers[
        [col.N, col.CHANNELS, col.EPOCH, col.DELAY, col.SELF, col.READY_QUEUES, col.AGE_INTERVAL, col.AGED,
         col.SHORTEST, col.HALF, col.ROW, col.ANSWER_OFFSET, col.FEEDBACK]
    ].tolist()  # fmt: skip
    n, w, row = int(plan.numbers[col.N]), len(plan.shift), int(plan.numbers[col.ROW])
    channels, air = given[1], dev.air_of(plan)
    suits = channels in (1, 2) or channels % dev.PACK == 0
    quick = int(bool(given[5]) and shape.seats == 64 and suits and given[12] <= 2)
    begin = np.cumsum([w, w, w, w, 4 * n]).tolist()
    dark = np.flatnonzero((plan.first > 0) | (plan.last < n))
    mirror = np.where(plan.mirror < 0, np.arange(w), plan.mirror)  # a dark place answers itself: nobody listens
    mirror = mirror | _ago(plan) << dev.AGO_SHIFT
    tables = [plan.shift, plan.first, plan.last, mirror, plan.place, plan.late]
    named = dict(zip(Common._fields, given, strict=False))
    named |= dict(
        rest=int(rested_by.py_func(plan.numbers, 0)), seats=shape.seats, room=shape.pool, window=shape.window,
        reserve=shape.reserve, queues=w * row, air=air,
        all_lit=int(dark[0]) if len(dark) else w, quick=quick, apart=threads_of(n),
        tables=np.concatenate(tables).astype(np.int32),
    )  # fmt: skip
    named |= dev.cell_bits(n, shape) | dev.lay_out(plan, shape).starts
    return Common(**named, **dict(zip(("first", "last", "mirror", "place", "late"), begin, strict=True)))


def _ago(plan) -> np.ndarray:
    """[w] How many epochs before a place is served was said what is heard of it last."""
    epoch, delay = int(plan.numbers[col.EPOCH]), int(plan.numbers[col.DELAY])
    said, served = plan.slot[plan.mirror], plan.slot
    return np.where(said + delay < served, 0, np.where(said + delay - epoch < served, 1, 2))


def seats_of(state: FastState) -> int:
    """Seats of the node that has most of them."""
    return int(state.seats[fast.BLOCKS :: 4].max(initial=0)) * fast.SEATS


def spilled(plan, state: FastState) -> int:
    """Cells that lie in the pool of the node that has most of them there."""
    lengths = (state.held & np.uint32(fast.LENGTH)).astype(np.int64).reshape(-1, int(plan.numbers[col.ROW]))
    return int(np.maximum(lengths - dev.RING, 0).sum(axis=0).max(initial=0))


def reserve(plan) -> int:
    """Flows that start at one node in one slot, at most."""
    if not len(plan.src):
        return 1
    moments = plan.start * int(plan.numbers[col.N]) + plan.src
    return int(np.unique(moments, return_counts=True)[1].max())


def load(plan, state: FastState, shape: Shape, one: Racks) -> None:
    """Put a run into the blocks of one rack, which are zeros."""
    n, flows, out = int(plan.numbers[col.N]), len(plan.src), dev.view_of(plan, shape, one)
    out.dst[:flows], out.size[:flows] = plan.dst, plan.cells
    order = np.argsort(plan.src, kind="stable")
    out.order[:flows], out.start[:flows] = order, plan.start[order]
    out.next_dst[:flows], out.next_size[:flows] = plan.dst[order], plan.cells[order]
    out.until[1:] = np.cumsum(np.bincount(plan.src, minlength=n))
    begun = int(state.tally[col.KNOWN_STARTED])
    out.upcoming[:] = out.until[:-1] + np.bincount(plan.src[:begun], minlength=n)
    last = out.upcoming >= out.until[1:]
    following = np.minimum(out.upcoming, max(flows - 1, 0))
    out.due[:] = np.where(last, dev.NEVER, out.start[following])
    out.coming[:] = np.concatenate([out.order[following], out.next_dst[following], out.next_size[following]])
    out.release[:flows], out.deliver[:flows] = state.flow[:, col.RELEASE], state.flow[:, col.DELIVER]
    out.after[:flows], out.finish[:flows] = state.flow[:, col.AFTER], state.flow[:, col.FINISH]
    for name in ("waiting", "incast", "inflow", "inflow_since", "inflow_slots", "received", "lengths"):
        getattr(out, name)[:] = getattr(state, name)
    out.departed[:] = state.departed & 0xFFFFFFFF
    for here, there in TALLIES.items():
        out.tally[here] = state.tally[there]
    out.sums[:] = state.print
    out.tally[dev.LAST] = plan.start.max(initial=0)
    out.free[:n] = dev.NONE
    out.what[:] = dev.EMPTY
    _load(col.Plan(*plan), state, out, shape.seats, shape.window, _bits_of(plan, shape))


def _bits_of(plan, shape: Shape) -> tuple[int, ...]:
    """How a cell is packed: bits of flow, source, seat, destination and number."""
    return tuple(dev.cell_bits(int(plan.numbers[col.N]), shape).values())


TALLIES = {
    dev.LOCAL: col.LOCAL, dev.FORWARDED: col.FORWARDED, dev.DELIVERED: col.DELIVERED, dev.VISITS: col.VISITS,
    dev.RELAYED: col.RELAYED, dev.OVER_BOUND: col.OVER_BOUND, dev.FINISHED: col.FINISHED, dev.MAX_QUEUE: col.MAX_QUEUE,
    dev.MAX_NODE: col.MAX_NODE, dev.MAX_HELD: col.MAX_HELD, dev.SLOT: col.SLOT, dev.BASE: col.BASE,
}  # fmt: skip


@kernel
def _load(plan, state, out, seats, window, bits):
    numbers = plan.numbers
    n, row, w, stride, channels = (
        numbers[col.N],
        numbers[col.ROW],
        plan.shift.size,
        numbers[col.STRIDE],
        numbers[col.CHANNELS],
    )
    more, depth, queues, tally = numbers[col.FEEDBACK] - 1, numbers[col.DEPTH], out.held.size, state.tally
    seat_of = np.zeros(state.target.size, np.int64)  # [h] its seat
    for i in range(n):
        for x in range(state.seats[4 * i + fast.BLOCKS]):
            b = np.int64(state.block[i, x])
            for k in range(fast.SEATS):
                h, seat = b * fast.SEATS + k, x * fast.SEATS + k
                seat_of[h] = seat
                if state.taken[b] >> np.uint64(k) & _1 == 0:
                    continue
                g = seat * n + i
                out.used[(seat >> 6) * n + i] |= _1 << np.uint64(seat & 63)
                out.since[g], out.seq[g] = state.pair[h, col.SINCE], state.pair[h, col.SEQ]
                out.served[g], out.want[g] = state.pair[h, col.SERVED], state.pair[h, col.WANT]
                out.astray[g] = state.pair[h, col.GOT] - state.pair[h, col.WANT]
                out.undelivered[g] = state.pair[h, col.UNDELIVERED]
                out.rested[g] = dev.NEVER
                head = np.int64(state.target[h]) << 32
                margin = window - 4 * channels - (np.int64(out.seq[g]) - np.int64(out.want[g]))
                head |= min(max(margin, 0), dev.MARGIN_BITS) << dev.MARGIN_SHIFT
                if out.served[g] > 0:  # of the flow whose turn it is, the pair has what is left
                    last = np.int64(out.served[g]) - 1
                    f = np.int64(out.after[last])
                    out.unsent[g] = out.release[f]
                    head |= f | (np.int64(f == last) << 63)
                out.head[g] = np.uint64(head)
                for p in range(w):
                    out.leave[_subflow(seat, p, i, n, seats)] = state.leave[fast.subflow(h, p, stride)] + 1
                _bits(state.early, h, out.early, g, window, np.int64(out.want[g]))
        for x in range(seats >> 6):
            if x * n + i < state.able.size:
                out.able[x * n + i] = state.able[x * n + i]
    rest = state.rest
    for x in range(state.tally[col.REST_HEAD], state.tally[col.REST_TAIL]):
        h = rest[x % rest.size]
        out.rested[seat_of[h] * n + state.pair[h, col.SOURCE]] = state.rested[x % rest.size]
    for f in range(plan.src.size):
        out.pair[f] = seat_of[np.int64(state.whose[f])] << dev.OF_SEAT | plan.src[f]
        if f < state.tally[col.KNOWN_STARTED] and out.deliver[f] > 0:
            g = _pair(out.pair[f], n)
            out.only[g] = f
            if out.deliver[f] != out.undelivered[g]:
                out.astray[g] |= np.uint32(dev.MANY)
    for p in range(w):
        for i in range(n):
            q = p * row + i
            holds, turn = np.int64(state.held[q]), np.int64(state.turn[q])
            length, head, e = holds & fast.LENGTH, holds >> fast.HEAD_SHIFT, _served(plan, p, tally[col.SLOT])
            ready = holds >> fast.READY_SHIFT & fast.READY_BITS
            turn = turn if turn <= dev.MOST_SEATS else 0
            word = ready << dev.READY_SHIFT | turn << dev.TURN_SHIFT
            word |= dev.LOCAL_BIT if holds & fast.LOCAL_BIT != 0 else 0
            # or it was served before, and nothing has been said of it that could be said again
            if 0 < turn <= seats and out.leave[_subflow(turn - 1, p, i, n, seats)] == fast.AWAY + 1:
                word |= dev.FRESH
            few = length if ready == 0 and length < dev.LOOK else dev.LOOK
            out.held[q] = word | (length if few == dev.LOOK else 0)
            out.few[p // dev.PER_WORD * n + i] |= np.uint32(few << p % dev.PER_WORD * dev.FEW_BITS)
            for k in range(length):
                what = fast.nth(state.ring, state.spill, state.cell, state.link, q, head, depth, k)
                what = _packed(what, plan.dst, out.pair, bits)
                if k < dev.RING:
                    out.cells[(e + k - tally[col.BASE]) % dev.RING * queues + q] = what
                else:
                    number = np.int64(out.free[n + i])
                    out.free[n + i] = number + 1
                    out.free[2 * n + i] = number + 1
                    out.pool[number * n + i] = what
                    if k == dev.RING:
                        out.spill[q] = number
                    else:
                        out.after_pool[(number - 1) * n + i] = number
                    out.spill[q] = (np.int64(out.spill[q]) & dev.NONE) | number << 16
            e -= tally[col.BASE]
            out.owed[e % (more + 1) * queues + q] = _debt(state.owed[q], seat_of, stride, row)
            for x in range(more):
                owed = _debt(state.past[q * more + x], seat_of, stride, row)
                out.owed[(e - 1 - x) % (more + 1) * queues + q] = owed
    for i in range(n):
        out.told[i] = _debt(state.told[i], seat_of, stride, row)
        out.left[i] = seat_of[np.int64(state.left[i])] + 1 if state.left[i] > 0 else 0
    delay, epoch = numbers[col.DELAY], numbers[col.EPOCH]
    for slot in range(max(tally[col.SLOT] - delay, 0), tally[col.SLOT]):
        a, b, e = slot % (delay + 1), slot % (delay + 2), slot // epoch - tally[col.BASE]
        for c in range(channels):
            out_of = slot % epoch * channels + c
            p = plan.mirror[out_of]
            for k in range(state.air[a, c]):
                what, about = state.sent[a, c, 4 * k + fast.WHAT], state.sent[a, c, 4 * k + fast.ABOUT]
                into, whose = state.sent[a, c, 4 * k + fast.INTO], np.int64(state.sent[a, c, 4 * k + fast.WHOSE] & _LOW)
                i = np.int64(into >> np.uint64(34))
                if whose > 0:
                    out.what[(b * channels + c) * n + i] = _packed(what, plan.dst, out.pair, bits)
                j = (i + plan.shift[out_of]) % n
                out.notes[_notes_at(0, e, p * row + j, more, queues)] |= np.uint64(_note(about, seat_of, stride))
            for k in range(state.echoes[a, c]):
                about, y = state.again[a, c, k], 1
                j = state.pair[fast.pair_of(about & _LOW, stride), col.SOURCE]
                while _said(out.notes, y, e, p * row + j, more, queues) != 0:
                    y += 1
                note = np.uint64(_note(about, seat_of, stride)) << np.uint64(32 * (y & 1))
                out.notes[_notes_at(y, e, p * row + j, more, queues)] |= note


@part
def _served(plan, p, slot):
    """The epoch in which place p is served for the first time from this slot on."""
    epoch = plan.numbers[col.EPOCH]
    return slot // epoch + np.int64(plan.slot[p] < slot % epoch)


@part
def _notes_at(y, e, q, more, queues):
    """Where the y-th value about queue q that was said in epoch e is."""
    return ((e & dev.TURNS - 1) * ((more + 2) // 2) + (y >> 1)) * queues + q


@part
def _said(notes, y, e, q, more, queues):
    """That value."""
    return np.int64(notes[_notes_at(y, e, q, more, queues)] >> np.uint64(32 * (y & 1)) & _LOW)


@part
def _packed(what, dst, pair, bits):
    """A cell of the fast kernel as a device has it."""
    flow_bits, source_bits, seat_bits, node_bits, seq_bits = bits
    f = np.int64(what & _LOW)
    whose, number = np.int64(pair[f]), np.int64(what >> _HALF) & (1 << seq_bits) - 1
    word = (number << node_bits | np.int64(dst[f])) << seat_bits | whose >> dev.OF_SEAT
    word = word << source_bits | (whose & dev.NODE_BITS if source_bits > 0 else 0)
    return what & np.uint64(fast.OWN) | np.uint64(word) << np.uint64(flow_bits) | np.uint64(f)


@part
def _unpacked(word, pair, want, n, bits):
    """(a cell of a device as the fast kernel has it, its pair as a device counts them)."""
    flow_bits, source_bits, seat_bits, node_bits, seq_bits = bits
    f = np.int64(word & (_1 << np.uint64(flow_bits)) - _1)
    g = _pair(pair[f], n)
    shift = np.uint64(flow_bits + source_bits + seat_bits + node_bits)
    due, number = np.int64(want[g]), np.int64(word >> shift) & (1 << seq_bits) - 1
    number = due + (number - due & (1 << seq_bits) - 1) & fast.SEQ_BITS
    return word & np.uint64(fast.OWN) | np.uint64(number) << _HALF | np.uint64(f), g


@part
def _subflow(seat, p, i, n, seats):
    return (((p // dev.PACK) * seats + seat) * n + i) * dev.PACK + p % dev.PACK


@part
def _note(about, seat_of, stride):
    if about & _LOW == 0:
        return np.int64(0)
    return (seat_of[fast.pair_of(about & _LOW, stride)] + 1) << dev.SAID_SHIFT | np.int64(about >> _HALF)


@part
def _debt(debt, seat_of, stride, row):
    if debt == 0:
        return np.int64(0)
    seat, answer = (
        seat_of[fast.pair_of(debt & _LOW, stride)],
        np.int64(debt >> np.uint64(fast.ANSWER_SHIFT)) & fast.ANSWER_BITS,
    )
    place = np.int64(debt >> np.uint64(fast.WHERE_SHIFT)) // row
    return dev.OWES | seat << dev.SEAT_SHIFT | answer << dev.ANSWER_SHIFT | place


@part
def _bits(early, h, out, g, window, want):
    """Copy the ring of bits of pair h, whose cells before `want` have arrived, into one of another size."""
    words, size = window >> 6, early.shape[1] * 64
    for x in range(early.shape[1]):
        todo = early[h, x]
        while todo != 0:
            k = x * 64 + lowest(todo)
            todo &= todo - _1
            seq = want + (k - want) % size
            out[g * words + ((seq & (window - 1)) >> 6)] |= _1 << np.uint64(seq & 63)


def store(plan, one: Racks, shape: Shape) -> FastState:
    """The run as the fast kernel has it."""
    out: View = dev.view_of(plan, shape, one)
    n, depth, flows = int(plan.numbers[col.N]), int(plan.numbers[col.DEPTH]), len(plan.src)
    words = out.used.reshape(-1, n).tolist()
    tops = [[64 * x + word.bit_length() if word else 0 for word in line] for x, line in enumerate(words)]
    most = np.max(tops, axis=0)  # 1 + the highest seat of each node
    blocks = -(-most // fast.SEATS)
    lengths = _lengths(col.Plan(*plan), out)
    spilled = int(np.maximum(lengths - depth, 0).sum())
    pairs, cells = arrays.first_room(plan)
    while pairs < (int(blocks.sum()) + 2) * fast.SEATS:
        pairs *= 2
    while cells < 2 * spilled + 4 * n * int(plan.numbers[col.CHANNELS]):
        cells *= 2
    state = FastState(**memory.zeros(arrays.shapes(plan, pairs, cells, shape.window)))
    if blocks.max(initial=0) > state.block.shape[1]:
        wide = int(blocks.max())
        state = state._replace(
            block=arrays.zeros((n, wide), state.block.dtype), able=arrays.zeros(-(-wide // 8) * n, state.able.dtype)
        )
    begun = out.upcoming - out.until[:-1]
    state.flow[:, col.RELEASE], state.flow[:, col.DELIVER] = out.release[:flows], out.deliver[:flows]
    state.flow[:, col.AFTER], state.flow[:, col.FINISH] = out.after[:flows], out.finish[:flows]
    for name in ("waiting", "inflow", "inflow_since", "inflow_slots", "received", "lengths"):
        getattr(state, name)[:] = getattr(out, name)
    state.incast[:] = out.incast[int(out.tally[dev.SLOT]) & 1]
    for here, there in TALLIES.items():
        state.tally[there] = out.tally[here]
    state.tally[[col.STARTED, col.KNOWN_STARTED]] = begun.sum()
    state.print[:] = out.sums
    arrays.set_waits(plan, state)
    _store(col.Plan(*plan), out, state, shape.seats, shape.window, blocks, _bits_of(plan, shape))
    return state


@kernel
def _store(plan, out, state, seats, window, blocks, bits):
    numbers, tally = plan.numbers, state.tally
    n, row, w, stride = numbers[col.N], numbers[col.ROW], plan.shift.size, numbers[col.STRIDE]
    more, depth, queues = numbers[col.FEEDBACK] - 1, numbers[col.DEPTH], out.held.size
    words = row // 64
    pair_at = np.zeros(seats * n, np.int64)  # [seat * n + i] the pair
    number, resting = 1, 0
    state.taken[0] = 1
    for i in range(n):
        many = blocks[i]
        state.seats[4 * i + fast.BLOCKS] = many
        for x in range(many):
            state.block[i, x], state.order[number] = number, x
            if x == 0:
                state.seats[4 * i + fast.HOME] = number * stride
            if x <= 1:
                state.seats[4 * i + fast.SECOND] = number * stride
            for k in range(fast.SEATS):
                h, seat = number * fast.SEATS + k, x * fast.SEATS + k
                g = seat * n + i
                if seat >= seats or out.used[(seat >> 6) * n + i] >> np.uint64(seat & 63) & _1 == 0:
                    continue
                pair_at[g] = h
                state.taken[number] |= _1 << np.uint64(k)
                whose = out.head[g]
                state.target[h], state.pair[h, col.SOURCE] = np.int64(whose >> _HALF) & dev.NODE_BITS, i
                state.pair[h, col.SINCE], state.pair[h, col.SEQ] = out.since[g], out.seq[g]
                if out.unsent[g] > 0:
                    alone = whose >> np.uint64(63) != 0
                    state.pair[h, col.SERVED] = np.int64(out.next[g]) + 1 if alone else np.int64(out.served[g])
                state.pair[h, col.WANT] = out.want[g]
                state.pair[h, col.GOT] = np.int64(out.want[g]) + np.int64(out.astray[g] & np.uint32(dev.MANY - 1))
                state.pair[h, col.UNDELIVERED] = out.undelivered[g]
                if out.undelivered[g] > 0 and out.astray[g] < dev.MANY:
                    state.flow[np.int64(out.only[g]), col.DELIVER] = out.undelivered[g]
                for p in range(w):
                    state.leave[fast.subflow(h, p, stride)] = np.int64(out.leave[_subflow(seat, p, i, n, seats)]) - 1
                if out.unsent[g] > 0:
                    state.flow[np.int64(out.next[g]), col.RELEASE] = out.unsent[g]
                for y in range(window >> 6):
                    state.early[h, y] = out.early[g * (window >> 6) + y]
                if out.undelivered[g] > 0:
                    state.pair[h, col.NEXT] = state.living[i]
                    state.living[i] = h + 1
                    state.outcast[i] += 1
                    tally[col.LIVE] += 1
                else:
                    state.rest[resting], state.rested[resting] = h, out.rested[g]
                    resting += 1
            number += 1
        for x in range(seats >> 6):
            if x * n + i < state.able.size:
                word = out.able[x * n + i]
                state.able[x * n + i] = word
                state.seats[4 * i + fast.COUNT] += population(word)
        if state.seats[4 * i + fast.COUNT] > 0:
            state.active[i >> 6] |= _1 << np.uint64(i & 63)
            tally[col.ACTIVE] += state.seats[4 * i + fast.COUNT]
    order = np.argsort(state.rested[:resting], kind="mergesort")
    state.rest[:resting], state.rested[:resting] = state.rest[:resting][order], state.rested[:resting][order]
    tally[col.REST_TAIL], tally[col.PAIRS_USED] = resting, number * fast.SEATS
    for f in range(plan.src.size):
        state.whose[f] = pair_at[_pair(out.pair[f], n)]

    spare = state.free.size
    for k in range(spare):
        state.free[k] = spare - 1 - k
    for p in range(w):
        new = _last_heard(plan, p, tally[col.SLOT])[0]
        for i in range(n):
            q = p * row + i
            holds, few = np.int64(out.held[q]), _few(out.few, p, i, n)
            length, turn = holds & dev.LENGTH if few == dev.LOOK else few, holds >> dev.TURN_SHIFT
            ready = holds >> dev.READY_SHIFT & dev.READY_BITS
            state.held[q], state.turn[q] = length | ready << fast.READY_SHIFT, turn
            if holds & dev.LOCAL_BIT != 0:
                state.held[q] |= np.uint32(fast.LOCAL_BIT)
            x, e = np.int64(out.spill[q]) & dev.NONE, _served(plan, p, tally[col.SLOT]) - tally[col.BASE]
            for k in range(length):
                if k < dev.RING:
                    what = out.cells[(e + k) % dev.RING * queues + q]
                else:
                    what = out.pool[x * n + i]
                    x = np.int64(out.after_pool[x * n + i]) & dev.NONE
                what = _unpacked(what, out.pair, out.want, n, bits)[0]
                spare = fast.append(
                    state.ring, state.spill, state.cell, state.link, state.free, spare, q, 0, k, depth, what
                )
            owed = out.owed[e % (more + 1) * queues + q] if new else np.uint32(0)
            state.owed[q] = _owed(owed, pair_at, plan.mirror[p], i, plan.shift, n, stride, row)
            busy = few != 0 or state.owed[q] != 0
            if owed != 0:
                tally[col.OWING] += 1 + more
            for y in range(more):
                owed = out.owed[(e - 1 - y) % (more + 1) * queues + q]
                debt = _owed(owed, pair_at, plan.mirror[p], i, plan.shift, n, stride, row)
                state.past[q * more + y] = debt
                busy |= debt != 0
                if debt != 0:
                    tally[col.OWING] += more - y
            if busy:
                state.busy[p * words + (i >> 6)] |= _1 << np.uint64(i & 63)
    tally[col.FREE] = spare
    for i in range(n):
        p = numbers[col.SELF]
        if p >= 0:
            state.told[i] = _owed(out.told[i], pair_at, plan.mirror[p], i, plan.shift, n, stride, row)
            state.left[i] = pair_at[(np.int64(out.left[i]) - 1) * n + i] if out.left[i] > 0 else 0
            if out.told[i] != 0:
                tally[col.OWING] += 1
                state.busy[p * words + (i >> 6)] |= _1 << np.uint64(i & 63)
    _heed(plan, out, state, pair_at)
    _store_wire(plan, out, state, pair_at, bits)


@part
def _heed(plan, out, state, pair_at):
    """Let nodes take in what has been said to them, but for queues that they have not served since."""
    numbers, tally, leave = plan.numbers, state.tally, state.leave
    n, row, stride = numbers[col.N], numbers[col.ROW], numbers[col.STRIDE]
    more, queues = numbers[col.FEEDBACK] - 1, out.held.size
    for p in range(plan.shift.size):
        new, said = _last_heard(plan, p, tally[col.SLOT])
        if not new:
            continue
        here, e = p == numbers[col.SELF], said // numbers[col.EPOCH] - tally[col.BASE]
        for j in range(n):
            for x in range(more + 1):
                y = x + 1 if x < more else 0  # what was said first, last
                note = _said(out.notes, y, e, p * row + j, more, queues)
                if note == 0:
                    continue
                h, when = pair_at[((note >> dev.SAID_SHIFT) - 1) * n + j], note & dev.WHEN_BITS
                about = fast.subflow(h, p, stride)
                if (y > 0 or here) and leave[about] == fast.AWAY:
                    continue
                leave[about] = min(when + 1, fast.LATEST) if here and state.left[j] == h else when


@part
def _last_heard(plan, p, slot):
    """(Whether what was last heard by this slot in answer to place p came after p was served, the slot it left in)."""
    epoch, delay, back = plan.numbers[col.EPOCH], plan.numbers[col.DELAY], plan.slot[plan.mirror[p]]
    after = slot - 1 - back - delay
    said = after // epoch * epoch + back
    return after >= 0 and said + delay >= (_served(plan, p, slot) - 1) * epoch + plan.slot[p], said


@part
def _few(few, p, i, n):
    """How many cells the queue of node i in place p has, if few, or LOOK."""
    return np.int64(few[p // dev.PER_WORD * n + i]) >> p % dev.PER_WORD * dev.FEW_BITS & dev.LOOK


@kernel
def _lengths(plan, out):
    """[q] Cells in every queue."""
    n, row, lengths = plan.numbers[col.N], plan.numbers[col.ROW], np.zeros(out.held.size, np.int64)
    for p in range(plan.shift.size):
        for i in range(n):
            few, q = _few(out.few, p, i, n), p * row + i
            lengths[q] = out.held[q] & np.uint32(dev.LENGTH) if few == dev.LOOK else few
    return lengths


@part
def _store_wire(plan, out, state, pair_at, bits):
    """What is under way: sent in one of the last `delay` slots."""
    numbers, tally = plan.numbers, state.tally
    n, row, stride, channels = numbers[col.N], numbers[col.ROW], numbers[col.STRIDE], numbers[col.CHANNELS]
    epoch, delay, more, queues = numbers[col.EPOCH], numbers[col.DELAY], numbers[col.FEEDBACK] - 1, out.held.size
    for slot in range(max(tally[col.SLOT] - delay, 0), tally[col.SLOT]):
        a, b, e = slot % (delay + 1), slot % (delay + 2), slot // epoch - tally[col.BASE]
        for c in range(channels):
            p = slot % epoch * channels + c
            sent, again, r = state.sent[a, c], state.again[a, c], plan.mirror[p]
            for i in range(plan.first[p], plan.last[p]):
                x, j = (b * channels + c) * n + i, (i + plan.shift[p]) % n
                for y in range(1, more + 1):
                    note = _said(out.notes, y, e, r * row + j, more, queues)
                    if note != 0:
                        again[state.echoes[a, c]] = _about(note, pair_at, r, j, n, stride)
                        state.echoes[a, c] += 1
                        tally[col.OWING] += 1
                what, note = out.what[x], _said(out.notes, 0, e, r * row + j, more, queues)
                if what == np.uint64(dev.EMPTY) and note == 0:
                    continue
                k = 4 * state.air[a, c]
                state.air[a, c] += 1
                if note != 0:
                    sent[k + fast.ABOUT] = _about(note, pair_at, r, j, n, stride)
                    tally[col.OWING] += 1
                hop = np.int64(0)
                if what != np.uint64(dev.EMPTY):
                    tally[col.FLYING] += 1
                    what, g = _unpacked(what, out.pair, out.want, n, bits)
                    d, h = np.int64(plan.dst[np.int64(what & _LOW)]), pair_at[g]
                    m = np.int64(plan.place[d - j + n + (2 * n if j >= numbers[col.HALF] else 0)])
                    sent[k + fast.WHAT] = what
                    sent[k + fast.WHOSE] = np.uint64(h) | np.uint64(m) << _HALF
                    if d != j:
                        sent[k + fast.INTO] = np.uint64(m * row + j + 1)
                    else:
                        hop = 2 - np.int64(what >> np.uint64(63))
                sent[k + fast.INTO] |= np.uint64(i << 2 | hop) << _HALF


@part
def _pair(whose, n):
    return (np.int64(whose) >> dev.OF_SEAT) * n + (np.int64(whose) & dev.NODE_BITS)


@part
def _about(note, pair_at, p, j, n, stride):
    h = pair_at[((note >> dev.SAID_SHIFT) - 1) * n + j]
    return np.uint64(fast.subflow(h, p, stride)) | np.uint64(note & dev.WHEN_BITS) << _HALF


@part
def _owed(debt, pair_at, p, i, shift, n, stride, row):
    """What node i owes to the peer that sends to it in place p, as the fast kernel writes it."""
    word = np.int64(debt)
    if word == 0:
        return np.uint64(0)
    peer = (i - shift[p]) % n
    h = pair_at[(word >> dev.SEAT_SHIFT & dev.SEAT_BITS) * n + peer]
    about = np.uint64(fast.subflow(h, p, stride))
    where = np.uint64((word & dev.PLACE_BITS) * row + i)
    answer = np.uint64(word >> dev.ANSWER_SHIFT & dev.ANSWER_BITS)
    return about | answer << np.uint64(fast.ANSWER_SHIFT) | where << np.uint64(fast.WHERE_SHIFT)
