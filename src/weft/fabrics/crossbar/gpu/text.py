"""What a port does in a slot, between two barriers: the rules of `kernel`, `stages` and `schedulers` for a device.

A word is written by one thread between two barriers, or by operations that do not mind their order. Cells come off the
stack of free ones, and go back to it, by the rank of their port among those that take or give one: so each lies where a
loop over ports would have put it, and the words of a run are the same on a device and on the processor.
"""

from typing import NamedTuple  # noqa: I001 (names in a block, not a column)

import numpy as np

from weft.engine.calendar import FAR
from weft.engine.device import (
    add_to, all_of, at, barrier, clear_in, device, in_turn, lowest_bit, set_bits, set_in, vote,
)  # fmt: skip
from weft.engine.fingerprint import mixed
from weft.engine.random import below, word
from weft.fabrics.crossbar.gpu.state import (
    BEYOND, CLASHES, ENDED, FINISHED, LINE_BUSY, LONGEST, LOST, MEMORY, OFFERED, PEAK,
)  # fmt: skip
from weft.fabrics.crossbar.schedulers import Scheduler as S
from weft.fabrics.crossbar.state import HEAD, LENGTH, NO_TAG, TAIL, Buffers, Count, Kind, Level, Plan

NOBODY = -1
_0, _1, _16, _32 = (np.uint64(k) for k in (0, 1, 16, 32))
_ALL, _LOW, _PORT, _NO_TAG = np.uint64(2**64 - 1), np.uint64(2**32 - 1), np.uint64(2**16 - 1), np.uint64(NO_TAG)
FIFO, VOQ, SHARED, CIOQ, CICQ, HIERARCHICAL, GCQ, OQ, *_REFUSED = (int(one) for one in Buffers)
ISLIP, RRM, PIM, DRRM, WAVEFRONT = int(S.ISLIP), int(S.RRM), int(S.PIM), int(S.DRRM), int(S.WAVEFRONT)
LQF, OCF = int(S.LQF), int(S.OCF)
BURSTS, FLOWS = int(Kind.BURSTS), int(Kind.FLOWS)
TOP, FRESH, HELD = int(Level.TOP), int(Level.FRESH), int(Level.HELD)
ACTIVE, DELIVERED, MEASURED = int(Count.ACTIVE), int(Count.DELIVERED), int(Count.MEASURED)
KIND, WHOLE, CHANCE, END, UNIFORM = (int(one) for one in (Plan.KIND, Plan.WHOLE, Plan.CHANCE, Plan.END, Plan.UNIFORM))
WARMUP, CONTROL, KNOWN, SENDERS = (int(one) for one in (Plan.WARMUP, Plan.FLOW_CONTROL, Plan.KNOWN, Plan.SENDERS))


class Own(NamedTuple):
    """What is a run's own among those of a group: its traffic."""

    kind: int
    whole: int
    chance: np.uint64
    end: np.uint64
    uniform: int
    warmup: int
    controlled: int
    known: int
    senders: int
    ceiling: int
    key: np.uint64
    end_key: np.uint64
    choices: np.uint64


@device
def own_of(plan, switch):
    """What the words of a switch say of its traffic."""
    u64, p = switch.u64, plan.plan
    return Own(
        np.int64(u64[p + KIND]), np.int64(u64[p + WHOLE]), u64[p + CHANCE], u64[p + END], np.int64(u64[p + UNIFORM]),
        np.int64(u64[p + WARMUP]), np.int64(u64[p + CONTROL]), np.int64(u64[p + KNOWN]), np.int64(u64[p + SENDERS]),
        np.int64(u64[plan.ceiling]), u64[plan.keys], u64[plan.keys + 1], u64[plan.keys + 2],
    )  # fmt: skip


# ---------------------------------------------------------------- sets of ports


@device
def bit(k):
    """The word in which only bit k mod 64 is set."""
    return _1 << np.uint64(k & 63)


@device
def size(plan, near, row):
    """How many ports are in the set that begins at `row`."""
    total = np.int64(0)
    for w in range(plan.words):
        total += set_bits(near[at(row, w)])
    return total


@device
def rank(plan, near, row, i):
    """How many ports below i are in that set."""
    total = np.int64(0)
    for w in range(i >> 6):
        total += set_bits(near[at(row, w)])
    return total + set_bits(near[at(row, i >> 6)] & bit(i) - _1)


@device
def holds(near, row, i):
    """Whether port i is in that set."""
    return near[at(row, i >> 6)] & bit(i) != _0


@device
def first(plan, near, row, among, turned, start):
    """First port at or after `start`, around the ring, of the set at `row` and of the one at `among`, or NOBODY.

    turned: all bits set for those that are not in `among`.
    """
    later, begin, found = _ALL << np.uint64(start & 63), start >> 6, np.int64(NOBODY)
    for step in range(plan.words + 1):  # the word of the pointer comes twice: its end first, its beginning last
        w = begin + step
        if w >= plan.words:
            w -= plan.words
        some = near[at(row, w)] & (near[at(among, w)] ^ turned)
        if step == 0:
            some &= later
        elif step == plan.words:
            some &= ~later
        if some != _0:
            found = w * 64 + lowest_bit(some)
            break
    return found


@device
def nth(plan, near, row, among, k):
    """The k-th smallest port, from 0, of the set at `row` that is not in the one at `among`."""
    found = np.int64(NOBODY)
    for w in range(plan.words):
        some = near[at(row, w)] & ~near[at(among, w)]
        here = set_bits(some)
        if k < here:
            for _ in range(k):
                some &= some - _1
            found = w * 64 + lowest_bit(some)
            break
        k -= here
    return found


@device
def left_of(plan, near, row, among):
    """How many ports of the set at `row` are not in the one at `among`."""
    total = np.int64(0)
    for w in range(plan.words):
        total += set_bits(near[at(row, w)] & ~near[at(among, w)])
    return total


# ---------------------------------------------------------------- queues


@device
def length(plan, switch, q):
    """Cells in queue q."""
    return np.int64(switch.u32[at(plan.queue, 4 * q + LENGTH)])


@device
def head(plan, switch, q):
    """First cell of queue q."""
    return np.int64(switch.u32[at(plan.queue, 4 * q + HEAD)])


@device
def label(i, j, tag):
    """What `CrossbarState.info` holds of a cell."""
    return np.uint64(j) | np.uint64(i) << _16 | tag << _32


@device
def taken(plan, switch, top, fresh, k):
    """The k-th cell that is taken in this slot: off the stack of free ones, then those that were never used."""
    return np.int64(switch.u32[at(plan.free, top - 1 - k)]) if k < top else fresh + k - top


@device
def push(plan, switch, q, c, stamp, what, labelled, acc):
    """Append a cell to queue q, whose new sentinel is c; returns it."""
    u32, u64, r = switch.u32, switch.u64, at(plan.queue, 4 * q)
    last, more = np.int64(u32[at(r, TAIL)]), np.int64(u32[at(r, LENGTH)]) + 1
    u64[at(plan.cells, last)] = np.uint64(c) | stamp << _32
    if labelled:
        u64[at(plan.info, last)] = what
    u32[at(r, TAIL)] = np.uint32(c)
    u32[at(r, LENGTH)] = np.uint32(more)
    acc[PEAK] = max(acc[PEAK], more)
    return last


@device
def pop(plan, switch, q):
    """Take the first cell off queue q, which has one; returns it and what `CrossbarState.cells` holds of it."""
    u32, r = switch.u32, at(plan.queue, 4 * q)
    c = np.int64(u32[at(r, HEAD)])
    cell = switch.u64[at(plan.cells, c)]
    u32[at(r, HEAD)] = np.uint32(cell & _LOW)
    u32[at(r, LENGTH)] = np.uint32(np.int64(u32[at(r, LENGTH)]) - 1)
    return c, cell


@device
def move(plan, switch, q, r, what, acc):
    """Take the first cell off queue q and append it to queue r, as `what`; returns where it now is."""
    c, cell = pop(plan, switch, q)
    return push(plan, switch, r, c, cell >> _32, what, True, acc)


@device
def give_back(plan, switch, place, c):
    """Put a cell on the stack of free ones."""
    switch.u32[at(plan.free, place)] = np.uint32(c)


# ---------------------------------------------------------------- what arrives


@device
def draw(plan, switch, own, i, slot):
    """(cells that come to input i in this slot, the output that they are for)."""
    n, near = plan.n, switch.near
    drawn = word(own.key, slot * n + i)
    scaled = (drawn & _LOW) * np.uint64(n)
    j, comes = np.int64(scaled >> _32), (drawn >> _32) < own.chance
    if own.uniform == 0 and (scaled & _LOW) >= switch.u64[at(plan.keep, i * n + j)]:
        j = np.int64(switch.u64[at(plan.other, i * n + j)])
    if own.kind != BURSTS:
        return own.whole + np.int64(comes), j
    under_way = near[at(plan.burst, i)]
    if under_way != _ALL:
        j = np.int64(under_way)
    elif not comes:
        return np.int64(0), j
    ends = (word(own.end_key, slot * n + i) >> _32) < own.end
    near[at(plan.burst, i)] = _ALL if ends else np.uint64(j)
    return np.int64(1), j


@device
def join(plan, switch, i, f):
    """Let flow f join the ring of its sender i, at its end."""
    u64, near = switch.u64, switch.near
    behind = near[at(plan.active, i)]
    if behind == _ALL:
        u64[at(plan.flow_next, f)] = np.uint64(f)
    else:
        u64[at(plan.flow_next, f)] = u64[at(plan.flow_next, np.int64(behind))]
        u64[at(plan.flow_next, np.int64(behind))] = np.uint64(f)
    near[at(plan.active, i)] = np.uint64(f)


@device
def offer_flow(plan, switch, own, i):
    """The cell that sender i offers, of the next flow in its ring: its label, or all bits."""
    u64, near = switch.u64, switch.near
    behind, what = near[at(plan.active, i)], _ALL
    if behind == _ALL:
        return what
    sees = own.controlled != 0 and (plan.buffers == VOQ or plan.buffers == CIOQ or plan.buffers == CICQ)
    last = behind
    while True:
        f = u64[at(plan.flow_next, np.int64(behind))]
        j = np.int64(u64[at(plan.flow_dst, np.int64(f))])
        if not sees or length(plan, switch, i * plan.n + j) < plan.depth:
            near[at(plan.before, i)] = behind
            what = label(i, j, f)
            break
        behind = f
        if f == last:
            break
    return what


@device
def sent(plan, switch, i, f):
    """Move the ring of sender i beyond the cell of flow f that it sent."""
    u64, near = switch.u64, switch.near
    left = u64[at(plan.flow_left, f)] - _1
    u64[at(plan.flow_left, f)] = left
    if left != _0:
        near[at(plan.active, i)] = np.uint64(f)
        return
    add_to(near, plan.small + ENDED, _1)
    following = u64[at(plan.flow_next, f)]
    if following == np.uint64(f):
        near[at(plan.active, i)] = _ALL
    else:
        before = near[at(plan.before, i)]
        u64[at(plan.flow_next, np.int64(before))] = following
        near[at(plan.active, i)] = before


@device
def arrive(plan, switch, own, i, slot, acc):
    """Draw the cell of input i, or its next of a flow, and note what it offers; the first of those it is given."""
    near = switch.near
    if own.kind == FLOWS:
        near[at(plan.label, i)] = offer_flow(plan, switch, own, i)
    else:
        many, j = draw(plan, switch, own, i, slot)
        acc[OFFERED] += many
        acc[LINE_BUSY] += max(many - 1, 0)  # a line carries one per slot
        near[at(plan.label, i)] = label(i, j, _NO_TAG) if many > 0 else _ALL
    near[at(plan.stamp, i)] = np.uint64(slot)


@device
def come_to_sender(plan, switch, own, i, slot, acc):
    """Draw the cell that comes to sender i, who keeps it until there is room; says whether there is one."""
    many, j = draw(plan, switch, own, i, slot)
    acc[OFFERED] += many
    switch.near[at(plan.label, i)] = label(i, j, _0)
    return many > 0


@device
def offer_kept(plan, switch, own, i, slot, top, fresh, acc):
    """Let sender i keep what came, and offer the first that it keeps."""
    near, q, most = switch.near, own.senders + i, acc[PEAK]
    if holds(near, plan.newly, i):
        c = taken(plan, switch, top, fresh, rank(plan, near, plan.newly, i))
        push(plan, switch, q, c, np.uint64(slot), near[at(plan.label, i)], True, acc)
        acc[PEAK] = most  # of the queues in the switch, which this is not
    near[at(plan.label, i)] = _ALL
    if length(plan, switch, q) > 0:
        c = head(plan, switch, q)
        near[at(plan.label, i)] = label(i, np.int64(switch.u64[at(plan.info, c)] & _PORT), _NO_TAG)
        near[at(plan.stamp, i)] = switch.u64[at(plan.cells, c)] >> _32


@device
def refuse(own, acc):
    """Account for a cell that found no room."""
    if own.controlled == 0:
        acc[LOST] += 1
        acc[OFFERED] += np.int64(own.kind == FLOWS)


@device
def queue_of(plan, i, j):
    """The queue of input i for output j."""
    if plan.buffers == FIFO:
        return i
    if plan.buffers == HIERARCHICAL or plan.buffers == GCQ:
        return i * (plan.n // plan.group) + j // plan.group
    return i * plan.n + j


@device
def decide(plan, switch, own, i, acc):
    """Whether there is room for the cell that input i offers."""
    near, what, room = switch.near, switch.near[at(plan.label, i)], False
    memory = np.int64(near[at(plan.used, i)]) if plan.buffers == SHARED else 0
    if what != _ALL:
        if plan.buffers == SHARED:
            room = memory < plan.capacity
        else:
            many = length(plan, switch, queue_of(plan, i, np.int64(what & _PORT)))
            room = many < (plan.capacity if plan.buffers == FIFO else plan.depth)
        if room:
            memory += 1
            if plan.buffers == SHARED:
                acc[MEMORY] = max(acc[MEMORY], memory)
        else:
            refuse(own, acc)
    if plan.buffers == SHARED:  # clearing an indicator bit takes one more cycle
        near[at(plan.used, i)] = np.uint64(memory) - near[at(plan.freed, i)]
        near[at(plan.freed, i)] = _0
    return room


@device
def decide_at_output(plan, switch, own, j, acc):
    """Let those of the cells for output j in for which there is room, by the order of their inputs."""
    near, room = switch.near, plan.capacity - length(plan, switch, j)
    for w in range(plan.words):
        asking = near[at(plan.want, j * plan.words + w)]
        while asking != _0:
            i = w * 64 + lowest_bit(asking)
            asking &= asking - _1
            if room > 0:
                set_in(near, plan.entered + (i >> 6), bit(i))
                room -= 1
            else:
                refuse(own, acc)


@device
def enter_output(plan, switch, j, top, fresh, acc):
    """Put the cells for output j that were let in into its queue."""
    near = switch.near
    for w in range(plan.words):
        asking = near[at(plan.want, j * plan.words + w)]
        near[at(plan.want, j * plan.words + w)] = _0
        while asking != _0:
            i = w * 64 + lowest_bit(asking)
            asking &= asking - _1
            if holds(near, plan.entered, i):
                c = taken(plan, switch, top, fresh, rank(plan, near, plan.entered, i))
                push(plan, switch, j, c, near[at(plan.stamp, i)], near[at(plan.label, i)], True, acc)


@device
def enter(plan, switch, own, i, slot, top, fresh, acc):
    """Put the cell of input i that was let in into its queue, and ask for its output."""
    near, what = switch.near, switch.near[at(plan.label, i)]
    j = np.int64(what & _PORT)
    c, q = taken(plan, switch, top, fresh, rank(plan, near, plan.entered, i)), queue_of(plan, i, j)
    if plan.buffers == GCQ:
        what = label(i, 1 << j % plan.group, what >> _32)
    labelled = plan.buffers != VOQ or own.kind == FLOWS or own.controlled != 0
    where = push(plan, switch, q, c, near[at(plan.stamp, i)], what, labelled, acc)
    if plan.buffers == GCQ:
        switch.u64[at(plan.ready, where)] = np.uint64(slot * plan.up + plan.write)
    elif plan.buffers == CICQ:
        near[at(plan.want, i * plan.words + (j >> 6))] |= bit(j)
    elif plan.buffers != HIERARCHICAL and (plan.buffers != FIFO or length(plan, switch, q) == 1):
        set_in(near, plan.want + j * plan.words + (i >> 6), bit(i))
        if plan.buffers == FIFO:
            near[at(plan.used, i)] = _1


@device
def settle(plan, switch, own, i, acc):
    """Account for what sender i offered of a flow, now that it is known whether it was let in."""
    near, what = switch.near, switch.near[at(plan.label, i)]
    if what == _ALL:
        return
    inside = holds(near, plan.entered, i)
    acc[OFFERED] += np.int64(inside)
    if inside or own.controlled == 0:  # a cell lost on entry was sent too
        sent(plan, switch, i, np.int64(what >> _32))


# ---------------------------------------------------------------- who may send


@device
def clear(plan, switch, i):
    """Forget the matching of the slot before."""
    near = switch.near
    near[at(plan.mate, i)] = _ALL
    near[at(plan.owner, i)] = _ALL
    if plan.buffers != CICQ:
        for w in range(plan.words):
            near[at(plan.given, i * plan.words + w)] = _0
    if i < plan.words:
        near[at(plan.matched, i)] = _0
        near[at(plan.leaving, i)] = _0


@device
def weight(plan, switch, i, j, slot):
    """Of the request of input i for output j: the length of its queue, or the age of its first cell."""
    q = i if plan.buffers == FIFO else i * plan.n + j
    if plan.scheduler == LQF:
        return length(plan, switch, q)
    return slot - np.int64(switch.u64[at(plan.cells, head(plan, switch, q))] >> _32) + 1


@device
def pick(plan, switch, own, row, k, side, slot, turn, iteration, pointer):
    """Whom port k picks of the set at `row`, those of the set `matched` left out where k is an output (side 0)."""
    near, n = switch.near, plan.n
    without = plan.matched if side == 0 else plan.leaving  # which is empty here
    if plan.scheduler == PIM:
        count = left_of(plan, near, row, without)
        if count == 0:
            return np.int64(NOBODY)
        place = (turn * plan.iterations + iteration) * 2 * n + side * n + k
        return nth(plan, near, row, without, below(word(own.choices, place), count))
    if plan.scheduler == LQF or plan.scheduler == OCF:
        best, most, begin = np.int64(NOBODY), np.int64(0), turn % n
        for step in range(n):
            x = begin + step
            if x >= n:
                x -= n
            if near[at(row, x >> 6)] & ~near[at(without, x >> 6)] & bit(x) != _0:
                heavy = weight(plan, switch, x, k, slot) if side == 0 else weight(plan, switch, k, x, slot)
                if heavy > most:
                    best, most = x, heavy
        return best
    return first(plan, near, row, without, _ALL, np.int64(near[at(pointer, k)]))


@device
def after(plan, k):
    """The port after k."""
    return np.uint64(k + 1 if k + 1 < plan.n else 0)


@device
def grant(plan, switch, own, j, slot, turn, iteration):
    """Let output j, if it is free, grant one of those that ask for it."""
    near = switch.near
    if near[at(plan.owner, j)] != _ALL:
        return
    i = pick(plan, switch, own, plan.want + j * plan.words, j, 0, slot, turn, iteration, plan.grant)
    if i != NOBODY:
        set_in(near, plan.given + i * plan.words + (j >> 6), bit(j))
        if plan.scheduler == RRM and iteration == 0:
            near[at(plan.grant, j)] = after(plan, i)


@device
def accept(plan, switch, own, i, slot, turn, iteration):
    """Let input i, if it is free, accept one of the grants that it got; says whether there was one."""
    near, row = switch.near, plan.given + i * plan.words
    if near[at(plan.mate, i)] != _ALL:
        return False
    j = pick(plan, switch, own, row, i, 1, slot, turn, iteration, plan.accept)
    if j == NOBODY:
        return False
    pair(plan, switch, i, j)
    for w in range(plan.words):
        near[at(row, w)] = _0
    if iteration == 0 and (plan.scheduler == ISLIP or plan.scheduler == RRM):
        near[at(plan.accept, i)] = after(plan, j)
        if plan.scheduler == ISLIP:
            near[at(plan.grant, j)] = after(plan, i)
    return True


@device
def pair(plan, switch, i, j):
    """Match input i with output j."""
    switch.near[at(plan.mate, i)] = np.uint64(j)
    switch.near[at(plan.owner, j)] = np.uint64(i)


@device
def ask(plan, switch, i):
    """Dual round robin: let input i, if it is free, ask the first free output at or after its pointer."""
    near, n = switch.near, plan.n
    if near[at(plan.mate, i)] != _ALL:
        return
    for step in range(n):
        j = np.int64(near[at(plan.accept, i)]) + step
        if j >= n:
            j -= n
        if near[at(plan.owner, j)] == _ALL and holds(near, plan.want + j * plan.words, i):
            set_in(near, plan.given + j * plan.words + (i >> 6), bit(i))
            break


@device
def answer(plan, switch, j, iteration):
    """Dual round robin: let output j, if it is free, grant one of those that asked it."""
    near, row = switch.near, plan.given + j * plan.words
    if near[at(plan.owner, j)] != _ALL:
        return
    i = first(plan, near, row, plan.leaving, _ALL, np.int64(near[at(plan.grant, j)]))
    for w in range(plan.words):
        near[at(row, w)] = _0
    if i != NOBODY:
        pair(plan, switch, i, j)
        set_in(near, plan.matched + (i >> 6), bit(i))
        if iteration == 0:
            near[at(plan.grant, j)] = after(plan, i)
            near[at(plan.accept, i)] = after(plan, j)


@device
def cross_diagonal(plan, switch, i, diagonal):
    """Wavefront: match input i with the output that a diagonal has for it, if both are free; says whether."""
    near, j = switch.near, diagonal - i
    if j < 0:
        j += plan.n
    free = near[at(plan.mate, i)] == _ALL and near[at(plan.owner, j)] == _ALL
    found = free and holds(near, plan.want + j * plan.words, i)
    if found:
        pair(plan, switch, i, j)
    return found


# ---------------------------------------------------------------- what leaves


@device
def note(plan, switch, own, i, j, cell, c, slot, acc, sums):
    """Note that cell c, from input i, left by output j: how long it waited, who it was, and that it is the only one."""
    stamp, u64 = cell >> _32, switch.u64
    if np.int64(stamp) >= own.warmup:
        waited = slot - np.int64(stamp)
        if waited >= own.ceiling:
            acc[BEYOND] += waited
            acc[LONGEST] = max(acc[LONGEST], waited)
            waited = own.ceiling
        add_to(u64, at(plan.delay, waited), _1)
    if slot >= own.warmup:
        switch.seen[at(plan.per_output, j)] += 1
    x, y = mixed(np.uint64(slot) << _32 | np.uint64(i) << _16 | np.uint64(j), stamp)
    sums[0] += x
    sums[1] += y
    acc[CLASHES] += np.int64(np.int64(switch.near[at(plan.last, j)]) > slot)
    switch.near[at(plan.last, j)] = np.uint64(slot + 1)
    if own.kind == FLOWS:
        f = np.int64(u64[at(plan.info, c)] >> _32)
        due = u64[at(plan.flow_due, f)] - _1
        u64[at(plan.flow_due, f)] = due
        if due == _0:
            u64[at(plan.flow_finish, f)] = np.uint64(slot)
            acc[FINISHED] += 1


@device
def stop_asking(plan, switch, i, j):
    """Take back the request of input i for output j."""
    clear_in(switch.near, plan.want + j * plan.words + (i >> 6), bit(i))


@device
def leave(plan, switch, own, i, slot, top, acc, sums):
    """Let the first cell of input i's queue for its mate leave."""
    near, j = switch.near, np.int64(switch.near[at(plan.mate, i)])
    q = queue_of(plan, i, j)
    c, cell = pop(plan, switch, q)
    note(plan, switch, own, i, j, cell, c, slot, acc, sums)
    give_back(plan, switch, top + rank(plan, near, plan.matched, i), c)
    if plan.buffers == SHARED:
        near[at(plan.freed, i)] += _1
    empty = length(plan, switch, q) == 0
    if empty or plan.buffers == FIFO:
        stop_asking(plan, switch, i, j)
    if plan.buffers == FIFO:
        near[at(plan.used, i)] = _ALL if empty else _1
        if not empty:
            j = np.int64(switch.u64[at(plan.info, head(plan, switch, q))] & _PORT)
            set_in(near, plan.want + j * plan.words + (i >> 6), bit(i))


@device
def cross(plan, switch, i, acc):
    """Move the first cell of input i's queue for its mate to the queue of that output."""
    j, q = np.int64(switch.near[at(plan.mate, i)]), i * plan.n
    what = switch.u64[at(plan.info, head(plan, switch, q + j))]
    move(plan, switch, q + j, plan.n * plan.n + j, what, acc)
    if length(plan, switch, q + j) == 0:
        stop_asking(plan, switch, i, j)


@device
def send(plan, switch, own, q, j, slot, top, acc, sums):
    """Let the first cell of queue q leave by output j."""
    c, cell = pop(plan, switch, q)
    i = np.int64(switch.u64[at(plan.info, c)] >> _16 & _PORT)
    note(plan, switch, own, i, j, cell, c, slot, acc, sums)
    give_back(plan, switch, top + rank(plan, switch.near, plan.leaving, j), c)
    return i


@device
def choose_to_send(plan, switch, j, slot):
    """Note whether output j sends in this slot, and from which of its buffers."""
    near, n, base = switch.near, plan.n, plan.per_input * plan.n
    found = np.int64(NOBODY)
    if plan.buffers == OQ or plan.buffers == CIOQ:
        base = base if plan.buffers == CIOQ else 0
        found = np.int64(0) if length(plan, switch, base + j) > 0 else found
    elif plan.buffers == CICQ:
        found = first(plan, near, plan.filled + j * plan.words, plan.matched, _ALL, np.int64(near[at(plan.grant, j)]))
    else:
        rows, now = n // plan.group, slot * plan.up
        base += (plan.kinds - 1) * plan.behind * n
        for step in range(rows):
            r = np.int64(near[at(plan.grant, j)]) + step
            if r >= rows:
                r -= rows
            q = base + r * n + j
            if length(plan, switch, q) > 0 and (
                plan.buffers != GCQ or np.int64(switch.u64[at(plan.ready, head(plan, switch, q))]) <= now
            ):
                found = r
                break
    near[at(plan.owner, j)] = np.uint64(found)
    return found != NOBODY


@device
def send_chosen(plan, switch, own, j, slot, top, acc, sums):
    """Let output j send what it chose."""
    near, n, base = switch.near, plan.n, plan.per_input * plan.n
    r = np.int64(near[at(plan.owner, j)])
    if plan.buffers == OQ or plan.buffers == CIOQ:
        send(plan, switch, own, (base if plan.buffers == CIOQ else 0) + j, j, slot, top, acc, sums)
    elif plan.buffers == CICQ:
        near[at(plan.grant, j)] = after(plan, r)
        q = base + r * n + j
        send(plan, switch, own, q, j, slot, top, acc, sums)
        set_in(near, plan.given + r * plan.words + (j >> 6), bit(j))
        if length(plan, switch, q) == 0:
            near[at(plan.filled, j * plan.words + (r >> 6))] &= ~bit(r)
    else:
        near[at(plan.grant, j)] = np.uint64((r + 1) % (n // plan.group))
        base += (plan.kinds - 1) * plan.behind * n
        send(plan, switch, own, base + r * n + j, j, slot, top, acc, sums)


@device
def choose_crosspoint(plan, switch, i):
    """Let the arbiter of input i choose a crosspoint that has room."""
    near, row = switch.near, plan.want + i * plan.words
    j = first(plan, near, row, plan.given + i * plan.words, _0, np.int64(near[at(plan.accept, i)]))
    near[at(plan.mate, i)] = np.uint64(j)


@device
def fill_crosspoint(plan, switch, i, acc):
    """Move the first cell of input i for the output that it chose to their crosspoint."""
    near, n, j = switch.near, plan.n, np.int64(switch.near[at(plan.mate, i)])
    near[at(plan.accept, i)] = after(plan, j)
    q, r = i * n + j, n * n + i * n + j
    move(plan, switch, q, r, switch.u64[at(plan.info, head(plan, switch, q))], acc)
    set_in(near, plan.filled + j * plan.words + (i >> 6), bit(i))
    if length(plan, switch, r) >= plan.inner:
        near[at(plan.given, i * plan.words + (j >> 6))] &= ~bit(j)
    if length(plan, switch, q) == 0:
        near[at(plan.want, i * plan.words + (j >> 6))] &= ~bit(j)


@device
def choose_for_buffer(plan, switch, j):
    """Let every sub-switch choose the input, in turn, whose first cell it moves to its buffer for output j."""
    near, n, group = switch.near, plan.n, plan.group
    rows = n // group
    for r in range(rows):
        near[at(plan.choice, r * n + j)] = _0
        if length(plan, switch, n * rows + r * n + j) >= plan.outer:
            continue
        for step in range(group):
            i = r * group + (np.int64(near[at(plan.local, r * n + j)]) + step) % group
            q = i * rows + j // group
            asked = switch.u64[at(plan.info, head(plan, switch, q))] & _PORT
            if length(plan, switch, q) > 0 and np.int64(asked) == j:
                near[at(plan.choice, r * n + j)] = np.uint64(i + 1)
                break


@device
def fill_buffers(plan, switch, j, acc):
    """Move what was chosen for output j to its buffers."""
    near, n, group = switch.near, plan.n, plan.group
    rows = n // group
    for r in range(rows):
        i = np.int64(near[at(plan.choice, r * n + j)]) - 1
        if i >= 0:
            near[at(plan.local, r * n + j)] = np.uint64((i + 1) % group)
            q = i * rows + j // group
            what = switch.u64[at(plan.info, head(plan, switch, q))]
            move(plan, switch, q, n * rows + r * n + j, what, acc)


@device
def go_around(plan, switch, m, slot, acc):
    """Let sub-switch m, which is one memory, go around its ports in the fast cycles of a slot."""
    near, u64, n, group = switch.near, switch.u64, plan.n, plan.group
    rows = n // group
    r, c, used = m // rows, m % rows, np.int64(near[at(plan.used, m)])
    for g in range(slot * plan.up, (slot + 1) * plan.up):
        turn = g % group
        i, j = r * group + turn, c * group + turn
        q, buffer = n * rows + r * n + j, 2 * n * rows + r * n + j
        if length(plan, switch, q) > 0:
            cell = head(plan, switch, q)
            if np.int64(u64[at(plan.ready, cell)]) <= g and length(plan, switch, buffer) < plan.outer:
                where = move(plan, switch, q, buffer, u64[at(plan.info, cell)], acc)
                u64[at(plan.ready, where)] = np.uint64(g + plan.read)
                used -= 1
        q = i * rows + c
        if length(plan, switch, q) > 0 and used < plan.inner:
            cell = head(plan, switch, q)
            if np.int64(u64[at(plan.ready, cell)]) <= g:
                what = u64[at(plan.info, cell)]
                used += 1
                acc[MEMORY] = max(acc[MEMORY], used)
                to = c * group + lowest_bit(what & _PORT)
                where = move(plan, switch, q, n * rows + r * n + to, label(i, to, what >> _32), acc)
                u64[at(plan.ready, where)] = np.uint64(g + plan.memory)
    near[at(plan.used, m)] = np.uint64(used)


# ---------------------------------------------------------------- a slot, by all of them


@device
def advance(plan, switch, orders, start, step, stop, acc, sums):
    """Let a switch advance to slot `stop`; a thread does the part of every `step`-th port from `start` on."""
    n, near, seen, phase = plan.n, switch.near, switch.seen, np.int64(0)
    own = own_of(plan, switch)
    flows, kept, outputs = own.kind == FLOWS, own.kind != FLOWS and own.controlled != 0, plan.buffers == OQ
    matched = plan.buffers == FIFO or plan.buffers == VOQ or plan.buffers == SHARED or plan.buffers == CIOQ
    top, fresh, held = seen[plan.level + TOP], seen[plan.level + FRESH], seen[plan.level + HELD]
    slot, arrived, delivered, measured = seen[plan.clock], seen[plan.arrived], np.int64(0), np.int64(0)
    due = np.int64(switch.u64[at(plan.flow_start, arrived)]) if flows and arrived < own.known else np.int64(FAR)
    if start == 0:
        near[plan.small + ENDED] = np.uint64(arrived - seen[plan.count + ACTIVE])
    barrier()
    while slot < stop:
        if flows and held == 0 and np.int64(near[plan.small + ENDED]) == arrived:
            if due == FAR:
                break
            slot = max(slot, min(due, stop))
            if slot >= stop:
                break
        phase += 8
        while due <= slot:
            i = np.int64(switch.u64[at(plan.flow_src, arrived)])
            if start == i % step:
                join(plan, switch, i, arrived)
            arrived += 1
            due = np.int64(switch.u64[at(plan.flow_start, arrived)]) if arrived < own.known else np.int64(FAR)

        # Cells arrive, and are let in or refused.
        if kept:
            for k in range(start, all_of(n, step), step):
                i = in_turn(orders, phase, k)
                vote(near, plan.newly, i, i < n and come_to_sender(plan, switch, own, i, slot, acc))
            barrier()
            many = size(plan, near, plan.newly)
        for k in range(start, all_of(n, step), step):
            i = in_turn(orders, phase + 1, k)
            enters = False
            if i < n:
                if kept:
                    offer_kept(plan, switch, own, i, slot, top, fresh, acc)
                else:
                    arrive(plan, switch, own, i, slot, acc)
                if not outputs:
                    enters = decide(plan, switch, own, i, acc)
                elif near[at(plan.label, i)] != _ALL:
                    j = np.int64(near[at(plan.label, i)] & _PORT)
                    set_in(near, plan.want + j * plan.words + (i >> 6), bit(i))
            if not outputs:
                vote(near, plan.entered, i, enters)
        barrier()
        if kept:
            held, fresh, top = held + many, fresh + max(many - top, 0), max(top - many, 0)
        if outputs:
            for k in range(start, n, step):
                decide_at_output(plan, switch, own, in_turn(orders, phase + 2, k), acc)
            barrier()
        many = size(plan, near, plan.entered)
        for k in range(start, n, step):
            i = in_turn(orders, phase + 3, k)
            clear(plan, switch, i)
            if outputs:
                enter_output(plan, switch, i, top, fresh, acc)
            elif holds(near, plan.entered, i):
                enter(plan, switch, own, i, slot, top, fresh, acc)
            if flows:
                settle(plan, switch, own, i, acc)
        barrier()
        fresh, top = fresh + max(many - top, 0), max(top - many, 0)
        if kept:
            for k in range(start, n, step):
                i = in_turn(orders, phase + 4, k)
                if holds(near, plan.entered, i):
                    c, _ = pop(plan, switch, own.senders + i)
                    give_back(plan, switch, top + rank(plan, near, plan.entered, i), c)
            top += many
        else:
            held += many

        # A matching is made, and cells leave.
        many = np.int64(0)
        if matched:
            turn = slot * plan.up // plan.down if plan.buffers == CIOQ else slot
            last = (slot + 1) * plan.up // plan.down if plan.buffers == CIOQ else slot + 1
            while turn < last:
                many = match(plan, switch, own, orders, phase, start, step, slot, turn)
                if plan.buffers == CIOQ:
                    barrier()
                    for k in range(start, n, step):
                        i = in_turn(orders, phase + 5, k)
                        if near[at(plan.mate, i)] != _ALL:
                            cross(plan, switch, i, acc)
                        clear(plan, switch, i)
                    barrier()
                turn += 1
        if plan.buffers == VOQ or plan.buffers == SHARED or plan.buffers == FIFO:
            for k in range(start, n, step):
                i = in_turn(orders, phase + 6, k)
                if near[at(plan.mate, i)] != _ALL:
                    leave(plan, switch, own, i, slot, top, acc, sums)
        else:
            for k in range(start, all_of(n, step), step):
                j = in_turn(orders, phase + 6, k)
                if j < n and plan.buffers == HIERARCHICAL:
                    choose_for_buffer(plan, switch, j)
                elif j < n and plan.buffers == CICQ:
                    choose_crosspoint(plan, switch, j)
                vote(near, plan.leaving, j, j < n and choose_to_send(plan, switch, j, slot))
            barrier()
            many = size(plan, near, plan.leaving)
            for k in range(start, n, step):
                j = in_turn(orders, phase + 7, k)
                if near[at(plan.owner, j)] != _ALL:
                    send_chosen(plan, switch, own, j, slot, top, acc, sums)
                if plan.buffers == HIERARCHICAL:
                    fill_buffers(plan, switch, j, acc)
            if plan.buffers == CICQ or plan.buffers == GCQ:
                barrier()
            if plan.buffers == CICQ:
                for k in range(start, n, step):
                    i = in_turn(orders, phase + 8, k)
                    if near[at(plan.mate, i)] != _ALL:
                        fill_crosspoint(plan, switch, i, acc)
            elif plan.buffers == GCQ:
                rows = n // plan.group
                for m in range(start, rows * rows, step):
                    go_around(plan, switch, m, slot, acc)
        for k in range(start, plan.words, step):
            near[at(plan.entered, k)] = _0
            near[at(plan.newly, k)] = _0
        top, held, delivered = top + many, held - many, delivered + many
        measured += many if slot >= own.warmup else 0
        slot += 1
        barrier()
    ended = np.int64(near[plan.small + ENDED])
    barrier()
    if start == 0:
        seen[plan.level + TOP], seen[plan.level + FRESH], seen[plan.level + HELD] = top, fresh, held
        seen[plan.clock], seen[plan.arrived] = slot, arrived
        seen[plan.count + DELIVERED] += delivered
        seen[plan.count + MEASURED] += measured
        if flows:
            seen[plan.count + ACTIVE] = arrived - ended
    count_queues(plan, switch, start, step)


@device
def match(plan, switch, own, orders, phase, start, step, slot, turn):
    """Make the matching of a slot, or of phase `turn` where there are several; returns the number of pairs."""
    n, near, used, found = plan.n, switch.near, np.int64(0), np.int64(0)
    if plan.scheduler == WAVEFRONT:
        for x in range(n):
            diagonal = (turn + x) % n
            for k in range(start, all_of(n, step), step):
                i = in_turn(orders, phase + x, k)
                vote(near, plan.matched, i, i < n and cross_diagonal(plan, switch, i, diagonal))
            barrier()
        found = size(plan, near, plan.matched)
        used = np.int64(found > 0)
    else:
        for iteration in range(plan.iterations):
            for k in range(start, n, step):
                j = in_turn(orders, phase + 4 + iteration, k)
                if plan.scheduler == DRRM:
                    ask(plan, switch, j)
                else:
                    grant(plan, switch, own, j, slot, turn, iteration)
            barrier()
            for k in range(start, all_of(n, step), step):
                i = in_turn(orders, phase + 5 + iteration, k)
                if plan.scheduler != DRRM:
                    vote(near, plan.matched, i, i < n and accept(plan, switch, own, i, slot, turn, iteration))
                elif i < n:
                    answer(plan, switch, i, iteration)
            barrier()
            pairs = size(plan, near, plan.matched)
            if pairs == found:
                break
            found, used = pairs, used + 1
    if start == 0:
        switch.seen[plan.rounds + used] += 1
    return found


@device
def count_queues(plan, switch, start, step):
    """Add up what waits in the queues of each input, and behind them for each output: see `layout.queued`."""
    n, seen = plan.n, switch.seen
    for k in range(start, n, step):
        total = np.int64(0)
        for x in range(plan.per_input):
            total += length(plan, switch, k * plan.per_input + x)
        seen[at(plan.queued, k)] = total
        for kind in range(plan.kinds):
            total, base = np.int64(0), plan.per_input * n + kind * plan.behind * n
            for x in range(plan.behind):
                total += length(plan, switch, base + x * n + k)
            seen[at(plan.queued, (kind + 1) * n + k)] = total
