"""Queues as linked lists over one pool of cells, and the ways in and out of every kind of buffer."""

import numpy as np

from weft.engine.jit import inlined, part
from weft.fabrics.crossbar.state import HEAD, LENGTH, TAIL, Level

_0, _1, _2, _16, _32, _48 = (np.uint64(k) for k in (0, 1, 2, 16, 32, 48))
_LOW, _PORT = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF)
_HEAD, _TAIL, _LENGTH = np.uint64(HEAD), np.uint64(TAIL), np.uint64(LENGTH)
_TOP, _FRESH, _PEAK = int(Level.TOP), int(Level.FRESH), int(Level.PEAK)


@inlined
def label(i, j, tag):
    """What `CrossbarState.info` holds of a cell."""
    return np.uint64(j) | np.uint64(i) << _16 | np.uint64(tag) << _32


@part
def blank(free, level):
    """Take a cell from the free list, or one that was never used."""
    if level[_TOP] > _0:
        level[_TOP] -= _1
        c = np.uint64(free[level[_TOP]])
    else:
        c = level[_FRESH]
        level[_FRESH] += _1
    return c


@part
def release(c, free, level):
    """Put a cell on the free list. What it held can be read until the next arrival."""
    free[level[_TOP]] = c
    level[_TOP] += _1


@part
def push(q, stamp, what, cells, info, free, level, queue):
    """Append a cell to queue q and return it."""
    r = np.uint64(q) << _2
    last = np.uint64(queue[r + _TAIL])  # the sentinel at the end becomes this one
    fresh = blank(free, level)
    cells[last] = fresh | np.uint64(stamp) << _32
    info[last] = what
    queue[r + _TAIL] = fresh
    length = np.uint64(queue[r + _LENGTH]) + _1
    queue[r + _LENGTH] = length
    level[_PEAK] = max(level[_PEAK], length)
    return last


@part
def pop(q, cells, free, level, queue):
    """Take the first cell off queue q, which has one, and return it; it is free from now on."""
    r = np.uint64(q) << _2
    c = np.uint64(queue[r + _HEAD])
    queue[r + _HEAD] = cells[c] & _LOW
    queue[r + _LENGTH] = np.uint64(queue[r + _LENGTH]) - _1
    release(c, free, level)
    return c


@part
def length(q, queue):
    """Cells in queue q."""
    return np.int64(queue[4 * q + LENGTH])


@part
def head(q, queue):
    """First cell of queue q."""
    return np.int64(queue[4 * q + HEAD])


@part
def stamp_of(c, cells):
    """Slot in which a cell arrived."""
    return np.int64(cells[c] >> _32)


@part
def input_of(c, info):
    """Input at which a cell arrived."""
    return np.int64(info[c] >> _16 & _PORT)


@part
def output_of(c, info):
    """Output that a cell is for."""
    return np.int64(info[c] & _PORT)


@part
def tag_of(c, info):
    """Tag of a cell."""
    return np.int64(info[c] >> _32)
