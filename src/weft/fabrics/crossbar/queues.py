"""Queues as linked lists over one pool of cells, and the ways in and out of every kind of buffer."""

import numpy as np

from weft.engine.bits import population
from weft.engine.jit import inlined, kernel
from weft.fabrics.crossbar.bits import bit
from weft.fabrics.crossbar.state import HEAD, IN, LENGTH, OUT, STAMP, TAG, TAIL, Count, Level

_0, _1, _2, _16, _32, _48 = (np.uint64(k) for k in (0, 1, 2, 16, 32, 48))
_LOW, _PORT = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF)
_HEAD, _TAIL, _LENGTH = np.uint64(HEAD), np.uint64(TAIL), np.uint64(LENGTH)
_TOP, _FRESH, _PEAK = int(Level.TOP), int(Level.FRESH), int(Level.PEAK)


@inlined
def label(i, j, tag):
    """What `State.info` holds of a cell."""
    return np.uint64(j) | np.uint64(i) << _16 | np.uint64(tag) << _32


@kernel
def blank(free, level):
    """A cell nobody uses."""
    if level[_TOP] > _0:
        level[_TOP] -= _1
        c = np.uint64(free[level[_TOP]])
    else:
        c = level[_FRESH]
        level[_FRESH] += _1
    return c


@kernel
def release(c, free, level):
    """Give a cell back. What it held can be read until the next arrival."""
    free[level[_TOP]] = c
    level[_TOP] += _1


@kernel
def push(q, stamp, what, cells, info, free, level, queue):
    """Append a cell to queue q and return it."""
    r = np.uint64(q) << _2
    last = np.uint64(queue[r + _TAIL])  # the blank cell at the end becomes this one
    fresh = blank(free, level)
    cells[last] = fresh | np.uint64(stamp) << _32
    info[last] = what
    queue[r + _TAIL] = fresh
    length = np.uint64(queue[r + _LENGTH]) + _1
    queue[r + _LENGTH] = length
    level[_PEAK] = max(level[_PEAK], length)
    return last


@kernel
def pop(q, cells, free, level, queue):
    """Take the first cell off queue q, which has one, and return it; it is free from now on."""
    r = np.uint64(q) << _2
    c = np.uint64(queue[r + _HEAD])
    queue[r + _HEAD] = cells[c] & _LOW
    queue[r + _LENGTH] = np.uint64(queue[r + _LENGTH]) - _1
    release(c, free, level)
    return c


@kernel
def length(q, queue):
    """Cells in queue q."""
    return np.int64(queue[4 * q + LENGTH])


@kernel
def head(q, queue):
    """First cell of queue q."""
    return np.int64(queue[4 * q + HEAD])


@kernel
def stamp_of(c, cells):
    """Slot in which a cell arrived."""
    return np.int64(cells[c] >> _32)


@kernel
def input_of(c, info):
    """Input at which a cell arrived."""
    return np.int64(info[c] >> _16 & _PORT)


@kernel
def output_of(c, info):
    """Output that a cell is for."""
    return np.int64(info[c] & _PORT)


@kernel
def tag_of(c, info):
    """Tag of a cell."""
    return np.int64(info[c] >> _32)


@inlined
def admit_voq(number, slot, late, tagged, depth, n, came, refused, cells, info, free, level, queue, want):
    """Into virtual output queues of `depth`. Returns how many were refused.

    `late`: cells come from a sender's queue, with the slot in which they reached it; `tagged`: they belong to flows.
    `push` is written out, because the compiler then keeps the levels in registers.
    """
    ports, most, refusals = np.uint64(n), np.uint64(depth), 0
    one_word = n <= 64
    per_set = (n + 63) >> 6
    top, fresh, peak = level[_TOP], level[_FRESH], level[_PEAK]
    now = np.uint64(slot) << _32
    for a in range(number):
        i, j = came[IN, a], came[OUT, a]
        r = (i * ports + j) << _2
        waiting = np.uint64(queue[r + _LENGTH])
        if waiting >= most:
            refused[refusals] = a
            refusals += 1
            continue
        if top > _0:
            top -= _1
            c = np.uint64(free[top])
        else:
            c = fresh
            fresh += _1
        last = np.uint64(queue[r + _TAIL])
        cells[last] = c | (came[STAMP, a] << _32 if late else now)
        if tagged:
            info[last] = j | i << _16 | came[TAG, a] << _32
        queue[r + _TAIL] = c
        queue[r + _LENGTH] = waiting + _1
        peak = max(peak, waiting + _1)
        if one_word:
            want[j] |= _1 << i
        else:
            want[np.int64(j) * per_set + np.int64(i >> np.uint64(6))] |= bit(i)
    level[_TOP], level[_FRESH], level[_PEAK] = top, fresh, peak
    return refusals


@inlined
def leave_voq(number, n, tagged, pairs, cells, info, free, level, queue, want, gone, count):
    """Take the cell of every matched pair off its virtual output queue."""
    ports = np.uint64(n)
    one_word = n <= 64
    per_set = (n + 63) >> 6
    top, inputs, outputs = level[_TOP], _0, _0  # of the first 64 ports: a matching has as many of each as pairs
    for k in range(number):
        i, j = pairs[k] >> _32, pairs[k] & _LOW
        inputs |= bit(i)
        outputs |= bit(j)
        r = (i * ports + j) << _2
        c = np.uint64(queue[r + _HEAD])
        cell = cells[c]
        queue[r + _HEAD] = cell & _LOW
        left = np.uint64(queue[r + _LENGTH]) - _1
        queue[r + _LENGTH] = left
        if one_word:
            want[j] &= ~(np.uint64(left == _0) << i)
        elif left == _0:
            want[np.int64(j) * per_set + np.int64(i >> np.uint64(6))] &= ~bit(i)
        free[top] = c
        top += _1
        gone[IN, k], gone[OUT, k], gone[STAMP, k] = i, j, cell >> _32
        if tagged:
            gone[TAG, k] = info[c] >> _32
    level[_TOP] = top
    if one_word:
        count[Count.CLASHES] += 2 * number - population(inputs) - population(outputs)
