"""Every kind of buffer, how cells enter it and what it does in a slot.

An `admit_…` takes this slot's arrivals in and returns how many it refused; a `step_…` moves cells one stage on and
returns how many left the switch.
"""

import numpy as np

from weft.engine.bits import population
from weft.engine.jit import bare, part
from weft.engine.random import below, word
from weft.fabrics.crossbar.arrivals import members
from weft.fabrics.crossbar.bits import NOBODY, bit, first
from weft.fabrics.crossbar.queues import (
    blank,
    head,
    input_of,
    label,
    length,
    output_of,
    pop,
    push,
    release,
    stamp_of,
    tag_of,
)
from weft.fabrics.crossbar.state import IN, OUT, STAMP, TAG, Buffers, Count, Plan

_0, _1, _32 = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MEMORY, _CLASHES, _OUT_OF_ORDER = int(Count.MEMORY), int(Count.CLASHES), int(Count.OUT_OF_ORDER)


@part
def depart(k, i, j, c, cells, info, gone):
    """Note that cell c, from input i, leaves by output j as the k-th of this slot."""
    gone[IN, k], gone[OUT, k] = i, j
    gone[STAMP, k], gone[TAG, k] = cells[c] >> _32, info[c] >> _32


# Virtual output queues.


@part
def admit_queues(number, depth, n, came, refused, cells, info, free, level, queue, want):
    per_set = (n + 63) >> 6
    refusals = 0
    for a in range(number):
        i, j = np.int64(came[IN, a]), np.int64(came[OUT, a])
        if length(i * n + j, queue) >= depth:
            refused[refusals] = a
            refusals += 1
            continue
        push(i * n + j, came[STAMP, a], label(i, j, came[TAG, a]), cells, info, free, level, queue)
        want[j * per_set + (i >> 6)] |= bit(i)
    return refusals


@part
def leave_queues(number, n, pairs, cells, info, free, level, queue, want, gone, count):
    per_set = (n + 63) >> 6
    previous = NOBODY
    for k in range(number):
        i, j = np.int64(pairs[k] >> _32), np.int64(pairs[k] & _LOW)
        count[_CLASHES] += np.int64(i <= previous)  # a matching names its inputs once, in order
        previous = i
        depart(k, i, j, pop(i * n + j, cells, free, level, queue), cells, info, gone)
        if length(i * n + j, queue) == 0:
            want[j * per_set + (i >> 6)] &= ~bit(i)


# One FIFO per input. `used[i]` counts the outputs that the cell at its head still has to reach.


@part
def expose(i, n, fanout, keys, outputs, cells, info, queue, want, used):
    """Write the requests of the cell that is now at the head of input i's FIFO, one for each of its outputs."""
    per_set = (n + 63) >> 6
    c = head(i, queue)
    if fanout > 1:
        used[i] = members(stamp_of(c, cells) * n + i, n, fanout, keys, outputs)
    else:
        used[i], outputs[0] = 1, output_of(c, info)
    for k in range(used[i]):
        want[np.int64(outputs[k]) * per_set + (i >> 6)] |= bit(i)


@part
def admit_fifo(number, n, capacity, fanout, keys, outputs, came, refused, cells, info, free, level, queue, want,
               used):  # fmt: skip
    refusals, inside = 0, True
    for a in range(number):
        i = np.int64(came[IN, a])
        if fanout > 1 and came[TAG, a] > _0:  # another copy of the cell before it
            if not inside:
                refused[refusals] = a
                refusals += 1
            continue
        inside = length(i, queue) < capacity
        if not inside:
            refused[refusals] = a
            refusals += 1
            continue
        push(i, came[STAMP, a], label(i, came[OUT, a], came[TAG, a]), cells, info, free, level, queue)
        if length(i, queue) == 1:
            expose(i, n, fanout, keys, outputs, cells, info, queue, want, used)
    return refusals


@part
def leave_fifo(number, n, fanout, keys, outputs, pairs, cells, info, free, level, queue, want, used, gone):  # fmt: skip
    per_set = (n + 63) >> 6
    for k in range(number):
        i, j = np.int64(pairs[k] >> _32), np.int64(pairs[k] & _LOW)
        depart(k, i, j, head(i, queue), cells, info, gone)
        want[j * per_set + (i >> 6)] &= ~bit(i)
        used[i] -= 1
    for k in range(number):  # after all departures: the next cell must not be requested in the same slot
        i = np.int64(pairs[k] >> _32)
        if used[i] == 0 and length(i, queue) > 0:
            pop(i, cells, free, level, queue)
            if length(i, queue) > 0:
                expose(i, n, fanout, keys, outputs, cells, info, queue, want, used)
            else:
                used[i] = -1


# One memory per input, shared by its queues of addresses. A multicast cell is stored once: a cell of the pool holds
# how many addresses to it are out, and their tags point there.


@part
def admit_shared(number, n, capacity, fanout, came, refused, cells, info, free, level, queue, want, used, freed,
                 count):  # fmt: skip
    per_set = (n + 63) >> 6
    refusals, stored = 0, _0
    inside = True
    for a in range(number):
        i, j = np.int64(came[IN, a]), np.int64(came[OUT, a])
        first_copy = fanout == 1 or came[TAG, a] == _0
        if first_copy:
            inside = used[i] < capacity
            if inside:
                used[i] += 1
                count[_MEMORY] = max(count[_MEMORY], used[i])
                if fanout > 1:
                    stored = blank(free, level)
                    info[stored] = _0
        if not inside:
            refused[refusals] = a
            refusals += 1
            continue
        tag = came[TAG, a]
        if fanout > 1:
            info[stored] += _1
            tag = stored
        push(i * n + j, came[STAMP, a], label(i, j, tag), cells, info, free, level, queue)
        want[j * per_set + (i >> 6)] |= bit(i)
    for i in range(n):  # clearing an indicator bit takes one more cycle: these can be used from the next slot on
        used[i] -= freed[i]
        freed[i] = 0
    return refusals


@part
def leave_shared(number, n, fanout, pairs, cells, info, free, level, queue, want, freed, gone, count):  # fmt: skip
    per_set = (n + 63) >> 6
    previous = -1
    for k in range(number):
        i, j = np.int64(pairs[k] >> _32), np.int64(pairs[k] & _LOW)
        count[_CLASHES] += np.int64(i <= previous)
        previous = i
        c = pop(i * n + j, cells, free, level, queue)
        depart(k, i, j, c, cells, info, gone)
        if length(i * n + j, queue) == 0:
            want[j * per_set + (i >> 6)] &= ~bit(i)
        if fanout > 1:
            stored = info[c] >> _32
            info[stored] -= _1
            if info[stored] == _0:
                release(stored, free, level)
                freed[i] += 1
        else:
            freed[i] += 1


# Ideal output queueing: every arrival goes straight to its output, as many as there are.


@part
def admit_oq(number, capacity, came, refused, cells, info, free, level, queue):
    refusals = 0
    for a in range(number):
        j = np.int64(came[OUT, a])
        if length(j, queue) < capacity:
            push(j, came[STAMP, a], label(came[IN, a], j, came[TAG, a]), cells, info, free, level, queue)
        else:
            refused[refusals] = a
            refusals += 1
    return refusals


@part
def step_queues(base, n, cells, info, free, level, queue, gone):
    """Every output sends the first cell of its own queue, base + j."""
    left = 0
    for j in range(n):
        if length(base + j, queue) > 0:
            c = pop(base + j, cells, free, level, queue)
            depart(left, input_of(c, info), j, c, cells, info, gone)
            left += 1
    return left


@part
def cross(number, n, pairs, cells, info, free, level, queue, want):
    """Move the cell of every matched pair from its virtual output queue to the queue of its output."""
    per_set = (n + 63) >> 6
    for k in range(number):
        i, j = np.int64(pairs[k] >> _32), np.int64(pairs[k] & _LOW)
        c = pop(i * n + j, cells, free, level, queue)
        stamp, what = cells[c] >> _32, info[c]
        push(n * n + j, stamp, what, cells, info, free, level, queue)
        if length(i * n + j, queue) == 0:
            want[j * per_set + (i >> 6)] &= ~bit(i)


# Crosspoint buffers: virtual output queues i * n + j, crosspoints n * n + i * n + j. Here want[i] and given[i] are sets
# of outputs: those that input i has cells for, and those whose crosspoint has room.


@part
def admit_cicq(number, n, depth, came, refused, cells, info, free, level, queue, want):
    per_set = (n + 63) >> 6
    refusals = 0
    for a in range(number):
        i, j = np.int64(came[IN, a]), np.int64(came[OUT, a])
        if length(i * n + j, queue) < depth:
            push(i * n + j, came[STAMP, a], label(i, j, came[TAG, a]), cells, info, free, level, queue)
            want[i * per_set + (j >> 6)] |= bit(j)
        else:
            refused[refusals] = a
            refusals += 1
    return refusals


@part
def step_cicq(n, inner, cells, info, free, level, queue, everyone, want, given, filled, idle, grant, accept, owner,
              mate, gone):  # fmt: skip
    """Input arbiters fill crosspoints, output arbiters empty them, each round robin and independent of the other."""
    per_set = everyone.size
    for j in range(n):
        owner[j] = first(filled, j, everyone, np.int64(grant[j]))
    for i in range(n):
        for w in range(per_set):
            idle[w] = given[i * per_set + w]
        mate[i] = first(want, i, idle, np.int64(accept[i]))
    left = 0
    for j in range(n):
        i = owner[j]
        if i == NOBODY:
            continue
        grant[j] = (i + 1) % n
        q = n * n + i * n + j
        c = pop(q, cells, free, level, queue)
        depart(left, i, j, c, cells, info, gone)
        left += 1
        given[i * per_set + (j >> 6)] |= bit(j)
        if length(q, queue) == 0:
            filled[j * per_set + (i >> 6)] &= ~bit(i)
    for i in range(n):
        j = mate[i]
        if j == NOBODY:
            continue
        accept[i] = (j + 1) % n
        q = n * n + i * n + j
        c = pop(i * n + j, cells, free, level, queue)
        stamp, what = cells[c] >> _32, info[c]
        push(q, stamp, what, cells, info, free, level, queue)
        filled[j * per_set + (i >> 6)] |= bit(i)
        if length(q, queue) >= inner:
            given[i * per_set + (j >> 6)] &= ~bit(j)
        if length(i * n + j, queue) == 0:
            want[i * per_set + (j >> 6)] &= ~bit(j)
    return left


# Two crossbars that turn by themselves: in slot t the first joins input i to middle port i + t, the second joins middle
# port m to output m - t, both modulo n. Queue m * n + j holds what middle port m has for output j.


@part
def look_balanced(slot, n, queue, owner):
    """Write the output to which every middle port sends in this slot, or NOBODY: cells that come now stay a slot."""
    for m in range(n):
        j = (m - slot) % n
        owner[m] = j if length(m * n + j, queue) > 0 else NOBODY


@part
def admit_balanced(number, slot, n, depth, came, refused, cells, info, free, level, queue):
    refusals = 0
    for a in range(number):
        i, j = np.int64(came[IN, a]), np.int64(came[OUT, a])
        q = (i + slot) % n * n + j
        if length(q, queue) < depth:
            push(q, came[STAMP, a], label(i, j, came[TAG, a]), cells, info, free, level, queue)
        else:
            refused[refusals] = a
            refusals += 1
    return refusals


@part
def step_balanced(n, cells, info, free, level, queue, owner, newest, gone, count):
    """Every middle port sends the first cell that it had for its output."""
    left = 0
    for m in range(n):
        j = owner[m]
        if j == NOBODY:
            continue
        c = pop(m * n + j, cells, free, level, queue)
        i, came = input_of(c, info), stamp_of(c, cells)
        count[_OUT_OF_ORDER] += np.int64(came < newest[i * n + j])
        newest[i * n + j] = max(newest[i * n + j], came)
        depart(left, i, j, c, cells, info, gone)
        left += 1
    return left


# Sub-switches of `group` ports: number r * rows + c joins the inputs of row r to the outputs of column c. Queue
# i * rows + c holds what input i has for column c; n * rows + r * n + j and beyond are described at each kind.


@part
def admit_grouped(number, n, group, depth, visible, masked, multicast, came, refused, cells, info, ready, free, level,
                  queue):  # fmt: skip
    """Into queues per column. With `masked` a cell names its outputs by a mask within the column, and copies for one
    column are one cell. The next stage sees it from fast cycle `visible` on."""
    rows = n // group
    refusals, at, column = 0, NOBODY, NOBODY
    for a in range(number):
        i, j = np.int64(came[IN, a]), np.int64(came[OUT, a])
        further = masked and multicast and came[TAG, a] > _0 and j // group == column
        column = j // group
        q = i * rows + column
        if further and at != NOBODY:
            info[at] |= bit(j % group)
            continue
        if further or length(q, queue) >= depth:
            refused[refusals] = a
            refusals += 1
            at = NOBODY
            continue
        to = 1 << (j % group) if masked else j
        at = np.int64(push(q, came[STAMP, a], label(i, to, came[TAG, a]), cells, info, free, level, queue))
        if masked:
            ready[at] = visible
    return refusals


@part
def merge(base, n, rows, now, timed, cells, info, ready, free, level, queue, grant, owner, gone):  # fmt: skip
    """Every output takes a cell of one of its column's sub-switches, the rows in turn. Returns how many left.

    Buffers are base + r * n + j; with `timed` a cell counts only once it is ready.
    """
    for j in range(n):
        owner[j] = NOBODY
        for step in range(rows):
            r = np.int64(grant[j]) + step
            if r >= rows:
                r -= rows
            q = base + r * n + j
            if length(q, queue) > 0 and (not timed or ready[head(q, queue)] <= now):
                owner[j] = r
                break
    left = 0
    for j in range(n):
        r = owner[j]
        if r == NOBODY:
            continue
        grant[j] = (r + 1) % rows
        c = pop(base + r * n + j, cells, free, level, queue)
        depart(left, input_of(c, info), j, c, cells, info, gone)
        left += 1
    return left


@part
def step_hierarchical(n, group, outer, cells, info, ready, free, level, queue, grant, owner, local, choice, gone):
    """Sub-switches with a FIFO per input and a buffer n * rows + r * n + j per output, each output in turn.

    A FIFO asks only for the output of its first cell, so no input is granted twice.
    """
    rows = n // group
    base = n * rows
    moves = 0
    for r in range(rows):
        for j in range(n):
            if length(base + r * n + j, queue) >= outer:
                continue
            for step in range(group):
                i = r * group + (local[r * n + j] + step) % group
                q = i * rows + j // group
                if length(q, queue) > 0 and output_of(head(q, queue), info) == j:
                    choice[moves] = np.uint64(i) << _32 | np.uint64(j)
                    moves += 1
                    break
    left = merge(base, n, rows, 0, False, cells, info, ready, free, level, queue, grant, owner, gone)
    for k in range(moves):
        i, j = np.int64(choice[k] >> _32), np.int64(choice[k] & _LOW)
        r = i // group
        local[r * n + j] = (i + 1) % group
        c = pop(i * rows + j // group, cells, free, level, queue)
        stamp, what = cells[c] >> _32, info[c]
        push(base + r * n + j, stamp, what, cells, info, free, level, queue)
    return left


@part
def step_gcq(slot, n, group, fast, inner, outer, memory, read, multicast, cells, info, ready, free, level, queue,
             used, grant, owner, gone, count):  # fmt: skip
    """Sub-switches that are one memory each, going around their ports `fast` times per slot.

    In fast cycle g the memory of sub-switch (r, c) is read for its output g mod S and then written from its input
    g mod S: address queues n * rows + r * n + j, output buffers n * rows + rows * n + r * n + j.
    """
    rows = n // group
    addresses = n * rows
    buffers = addresses + rows * n
    left = merge(buffers, n, rows, slot * fast, True, cells, info, ready, free, level, queue, grant, owner, gone)
    for g in range(slot * fast, (slot + 1) * fast):
        turn = g % group
        for r in range(rows):
            i = r * group + turn
            for c in range(rows):
                m, j = r * rows + c, c * group + turn
                q = addresses + r * n + j
                if length(q, queue) > 0 and ready[head(q, queue)] <= g and length(buffers + r * n + j, queue) < outer:
                    cell = pop(q, cells, free, level, queue)
                    stamp, what = cells[cell] >> _32, info[cell]
                    at = push(buffers + r * n + j, stamp, what, cells, info, free, level, queue)
                    ready[at] = g + read
                    if multicast:
                        stored = what >> _32
                        info[stored] -= _1
                        if info[stored] == _0:
                            release(stored, free, level)
                            used[m] -= 1
                    else:
                        used[m] -= 1
                q = i * rows + c
                if length(q, queue) > 0 and ready[head(q, queue)] <= g and used[m] < inner:
                    cell = pop(q, cells, free, level, queue)
                    stamp, mask, tag = cells[cell] >> _32, output_of(cell, info), np.uint64(tag_of(cell, info))
                    used[m] += 1
                    count[_MEMORY] = max(count[_MEMORY], used[m])
                    if multicast:
                        tag = blank(free, level)
                        info[tag] = _0
                    for k in range(group):
                        if mask >> k & 1:
                            if multicast:
                                info[tag] += _1
                            what = label(i, c * group + k, tag)
                            at = push(addresses + r * n + c * group + k, stamp, what, cells, info, free, level, queue)
                            ready[at] = g + memory
    return left


@bare
def copies(state, fifo, masked):
    """Copies of multicast cells that are still to be delivered, by walking every queue.

    In a FIFO and at a sender a cell stands for its whole fanout, except at the head of a FIFO, which counts down; below
    queue `masked` of a grouped switch it stands for the outputs in its mask.
    """
    n, buffers, senders = state.plan[Plan.PORTS], state.plan[Plan.BUFFERS], state.plan[Plan.SENDERS]
    total = 0
    for q in range(state.queue.size // 4):
        c = head(q, state.queue)
        for k in range(length(q, state.queue)):
            if fifo and q < n and k == 0:
                total += state.used[q]
            elif q >= senders or fifo:
                i = q - senders if q >= senders else q
                counter = stamp_of(c, state.cells) * n + i
                total += 1 + below(word(state.keys[2], counter), state.plan[Plan.FANOUT])
            elif buffers == Buffers.GCQ and q < masked:
                total += population(np.uint64(output_of(c, state.info)))
            else:
                total += 1
            c = np.int64(state.cells[c] & _LOW)
    return total
