"""The event queue: rows of a table, released in order of (time, running number).

An event *is* a row of a record array: the owner of the table adds the fields of `EVENT` to its own, so a packet and
the moment of its arrival share a cache line, and scheduling one copies nothing. Rows come from a free list (`take`,
`give`); the table never shrinks, and holds as many rows as were ever alive at once.

Events of the near future are in a calendar queue, a ring of buckets, each `2**shift` ps wide: pushing one is three
writes, the third a bit that marks its bucket as occupied, so that empty ones are skipped 64 at a time. When the clock
reaches a bucket its rows are sorted by merging the runs in which they came: mostly one, because hosts that began
together stay in step and hundreds of packets arrive in the same picosecond. A row waits for thousands of events and has
left the cache when its turn comes, so the rows of the next buckets are prefetched. Events beyond the ring, which are
timers and the ends of very long queues, wait in a binary heap; `pull` compares the two fronts. The width of a bucket
changes the speed and nothing else: the order is that of (time, order), whatever the ring looks like.

    r = take(c, rows); rows[r].kind = TIMER; push(c, rows, r, time)
    cancel(c, rows, r)                              # from the heap at once; in the ring its row stays until its time
    r = pull(c, rows, limit)                        # the earliest row not after `limit`, or NONE

c is a record with the fields of `CLOCK`; it knows by address the arrays that `schedule` is given.
"""

import numpy as np
from numba import carray

from weft import random
from weft.engine.bits import either, lowest, prefetch
from weft.engine.jit import hot, part, view
from weft.engine.random import word
from weft.engine.views import bind, fields, pointer

NONE = -1
FAR = 1 << 62  # later than any event
DEAD = 0  # the kind of a cancelled event
FIFO, LIFO, SHUFFLED = 0, 1, 2  # how events of the same picosecond are ordered
TIES = {"fifo": FIFO, "lifo": LIFO, "random": SHUFFLED}
_SMALL = 16  # rows that are sorted by insertion
_1, _ALL, _TOP = np.uint64(1), np.uint64(2**64 - 1), np.uint64(2**63)
_AGAIN = -2  # of two fronts: what was first had been cancelled
_IN_HEAP = -2  # `next` of a row in place i of the heap is this minus i

EVENT = [
    ("time", "i8"),  # when it is due, ps
    ("order", "i8"),  # its running number, by which ties are broken
    ("next", "i4"),  # the row behind it in its bucket, its queue, or the free list; in the heap, its place there
    ("kind", "u1"),  # what it is; DEAD once cancelled
]

ARRAYS = ("heads", "held", "due", "spare", "heap")

CLOCK = [
    ("now", "i8"),  # time of the last event released
    ("made", "i8"),  # running number of the next event
    ("released", "i8"),  # events released so far, cancelled ones left out
    ("bucket", "i8"),  # the bucket that lies sorted in `due`
    ("shift", "i8"),  # a bucket is 2**shift ps wide
    ("first", "i8"),  # of the sorted rows, the next to be released …
    ("last", "i8"),  # … and one behind the last
    ("ringed", "i8"),  # rows waiting in the ring
    ("heaped", "i8"),  # rows waiting in the heap …
    ("earliest", "i8"),  # … and the time of the first of them, or FAR
    ("alive", "i8"),  # rows taken and not given back
    ("free", "i8"),  # first row of the free list
    ("used", "i8"),  # rows ever taken; behind them the table is untouched
    ("ties", "i8"),  # FIFO, LIFO or SHUFFLED
    ("tie_key", "u8"),  # of the stream that shuffles ties
    ("next_row", "i8"),  # prefetched: the first row of the next bucket that holds any, mostly, or row 0 …
    ("later_row", "i8"),  # … and of the bucket behind it, for kernels to prefetch what those rows will need
    *fields(*ARRAYS),
]


def shift_for(gap: int) -> int:
    """The bucket width, as a power of two of ps, for events that come `gap` ps apart: hardly two to a bucket."""
    return min(max(gap.bit_length() - 1, 4), 30)


def tables(rows: int, ring: int) -> dict:
    """Name -> (shape, dtype) of the arrays a queue over `rows` rows lives in; ring is a power of two, at least 64."""
    return {
        "heads": ((ring,), np.int32),
        "held": ((ring // 64,), np.uint64),
        "due": ((rows,), np.int32),
        "spare": ((rows,), np.int32),
        "heap": ((rows,), np.int32),
    }


def schedule(c: np.ndarray, arrays: dict, *, shift: int, ties: str = "fifo", seed: int = 0) -> None:
    """Make `c`, one row with the fields of CLOCK, an empty queue that lives in `arrays`, zeros as in `tables`."""
    c["shift"], c["free"], c["ties"] = shift, NONE, TIES[ties]
    c["tie_key"], c["earliest"] = random.key(seed, 0x7469), FAR
    arrays["heads"][:] = NONE
    bind(c, **{name: arrays[name] for name in ARRAYS})


@view
def _heads(c):
    return carray(pointer(c.heads_at), (c.heads_size,), np.int32)


@view
def _held(c):
    return carray(pointer(c.held_at), (c.held_size,), np.uint64)


@view
def _spare(c):
    return carray(pointer(c.spare_at), (c.spare_size,), np.int32)


@view
def _due(c):
    return carray(pointer(c.due_at), (c.due_size,), np.int32)


@view
def _heap(c):
    return carray(pointer(c.heap_at), (c.heap_size,), np.int32)


@view
def _at(rows, r):
    """Row r: unsigned, so that no code tests whether it counts from the end."""
    return rows[np.uint64(r)]


@hot
def room(c, rows):
    """How many rows can still be taken."""
    return rows.size - c.alive


@hot
def take(c, rows):
    """A row off the free list; the caller has made sure by `room` that there is one."""
    c.alive += 1
    r = c.free
    if r != NONE:
        c.free = _at(rows, r).next
        return r
    r = c.used
    c.used += 1
    return r


@hot
def give(c, rows, r):
    """Put a row on the free list."""
    c.alive -= 1
    _at(rows, r).next = c.free
    c.free = r


@hot
def _before(rows, a, b):
    x, y = _at(rows, a), _at(rows, b)
    return (x.time < y.time) | ((x.time == y.time) & (x.order < y.order))


@part
def _insert(c, rows, r):
    """Put `r` in its place among the sorted rows not yet released."""
    due = _due(c)
    if c.first == c.last:
        c.first = 0
        c.last = 0
    elif c.last == due.size:
        for k in range(c.first, c.last):
            due[k - c.first] = due[k]
        c.last -= c.first
        c.first = 0
    i = c.last
    first = c.first
    _at(rows, r).next = NONE
    while i > first and _before(rows, r, due[i - 1]):
        due[i] = due[i - 1]
        i -= 1
    due[i] = r
    c.last += 1


@part
def _sort(c, rows, n):
    """Sort the first `n` of due by (time, order)."""
    due, spare = _due(c), _spare(c)
    if n <= _SMALL:
        for k in range(1, n):
            r = due[k]
            i = k
            while i > 0 and _before(rows, r, due[i - 1]):
                due[i] = due[i - 1]
                i -= 1
            due[i] = r
        return
    while True:  # merge every two runs, until there is one
        a = 0
        while a < n:
            b = _end_of_run(rows, due, a, n)
            if a == 0 and b == n:
                return
            end = _end_of_run(rows, due, b, n)
            i, j = a, b
            for k in range(a, end):
                if i == b or (j < end and _before(rows, due[j], due[i])):
                    spare[k] = due[j]
                    j += 1
                else:
                    spare[k] = due[i]
                    i += 1
            a = end
        for k in range(n):
            due[k] = spare[k]


@hot
def _end_of_run(rows, due, k, n):
    """One behind the last of the rows in order that begin at place `k` of due."""
    k += 1
    while k < n and not _before(rows, due[k], due[k - 1]):
        k += 1
    return min(k, n)


@part
def _rise(c, rows, i, r):
    """Put row `r` in place `i` of the heap, or above it."""
    heap = _heap(c)
    while i > 0:
        parent = (i - 1) >> 1
        if not _before(rows, r, heap[parent]):
            break
        heap[i] = heap[parent]
        _at(rows, heap[i]).next = _IN_HEAP - i
        i = parent
    heap[i] = r
    _at(rows, r).next = _IN_HEAP - i
    c.earliest = _at(rows, heap[0]).time


@part
def _heap_remove(c, rows, i):
    """Take the row in place `i` out of the heap."""
    heap = _heap(c)
    _at(rows, heap[i]).next = NONE
    c.heaped -= 1
    n = c.heaped
    if i == n:
        if n == 0:
            c.earliest = FAR
        return
    r = heap[n]
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and _before(rows, heap[child + 1], heap[child]):
            child += 1
        if not _before(rows, heap[child], r):
            break
        heap[i] = heap[child]
        _at(rows, heap[i]).next = _IN_HEAP - i
        i = child
    _rise(c, rows, i, r)


@hot
def number(c):
    """The running number of the next event, as ties order it."""
    n = c.made
    c.made += 1
    return n if c.ties == FIFO else _other_number(c, n)


@part
def _other_number(c, n):
    if c.ties == LIFO:
        return -n
    return np.int64(word(c.tie_key, n) >> _1)


@hot
def push(c, rows, r, time):
    """Schedule row `r` for `time`, which is not in the past."""
    _at(rows, r).time = time
    _at(rows, r).order = number(c)
    enqueue(c, rows, r)


@hot
def enqueue(c, rows, r):
    """Schedule row `r` for the time and with the number that it already has; the time is not in the past."""
    e = _at(rows, r)
    bucket = e.time >> c.shift
    if np.uint64(bucket - c.bucket - 1) < np.uint64(c.heads_size - 1):
        i = np.uint64(bucket & (c.heads_size - 1))
        heads, held = _heads(c), _held(c)
        e.next = heads[i]
        heads[i] = r
        held[i >> np.uint64(6)] |= _1 << (i & np.uint64(63))
        c.ringed += 1
    else:
        _enqueue_elsewhere(c, rows, r)


@part
def _enqueue_elsewhere(c, rows, r):
    """Schedule row `r`, which is due in the bucket that has been sorted, or beyond the ring."""
    if _at(rows, r).time >> c.shift <= c.bucket:
        _insert(c, rows, r)
    else:
        c.heaped += 1
        _rise(c, rows, c.heaped - 1, r)


@hot
def following(c, k):
    """The row to be released `k` after the one just released, 0 the next: k < c.last - c.first."""
    return np.int64(_due(c)[np.uint64(c.first + k)])


@hot
def alone(c, rows):
    """Whether nothing else is due at the time of the row released last."""
    return c.earliest > c.now and (c.first == c.last or _at(rows, following(c, 0)).time > c.now)


@part
def cancel(c, rows, r):
    """Make sure that row `r`, which is scheduled, is never released; it returns to the free list."""
    if _at(rows, r).next <= _IN_HEAP:
        _heap_remove(c, rows, _IN_HEAP - np.int64(_at(rows, r).next))
        give(c, rows, r)
    else:
        _at(rows, r).kind = DEAD


@hot
def _turn(c, rows, limit):
    """Sort the next bucket that holds anything, but none that begins after `limit`."""
    c.first = c.last = 0
    start, end = c.bucket + 1, limit >> c.shift
    if c.ringed == 0:
        c.bucket = max(c.bucket, end)
        return
    heads, held = _heads(c), _held(c)
    i = start & (c.heads_size - 1)
    w = np.uint64(i >> 6)
    bits = held[w] & (_ALL << np.uint64(i & 63))
    base = start - (i & 63)  # the bucket of the lowest bit of word w
    while bits == 0 and base <= end:
        w = (w + _1) & np.uint64(c.held_size - 1)
        base += 64
        bits = held[w]
    bit = lowest(bits | _TOP)
    if bits == 0 or base + bit > end:
        c.bucket = max(c.bucket, end)
        return
    c.bucket = base + bit
    held[w] ^= _1 << np.uint64(bit)
    first = w << np.uint64(6)
    _look_ahead(c, rows, first, bits & (bits - _1))
    i = first + np.uint64(bit)
    r = np.int64(heads[i])
    heads[i] = NONE
    behind = np.int64(_at(rows, r).next)
    if behind == NONE:
        _due(c)[0] = r
        c.last = 1
    elif _at(rows, behind).next == NONE:
        swap = _before(rows, behind, r)
        _due(c)[0], _due(c)[1] = either(swap, behind, r), either(swap, r, behind)
        c.last = 2
    else:
        _gather(c, rows, r)
    c.ringed -= c.last


@part
def _gather(c, rows, r):
    """Sort the rows of a bucket that begins with `r`."""
    due = _due(c)
    n = 0
    while r != NONE:
        due[n] = r
        n += 1
        r = np.int64(_at(rows, r).next)
    for k in range(n >> 1):  # oldest first, so that equal times are already in order
        due[k], due[n - 1 - k] = due[n - 1 - k], due[k]
    _sort(c, rows, n)
    c.last = n


@hot
def _look_ahead(c, rows, first, bits):
    """Prefetch what the next buckets hold: of those from `first` on, the bits of `bits` name the occupied ones.

    Where there are no more, the last bucket is looked at: a useless prefetch costs less than a branch.
    """
    heads = _heads(c)
    r = np.int64(heads[first + np.uint64(lowest(bits | _TOP))])
    c.next_row = either(r >= 0, r, 0)
    bits &= bits - _1
    r = np.int64(heads[first + np.uint64(lowest(bits | _TOP))])
    c.later_row = either(r >= 0, r, 0)
    bits &= bits - _1
    prefetch(rows, np.int64(heads[first + np.uint64(lowest(bits | _TOP))]))


@hot
def pull(c, rows, limit):
    """Take the earliest row due not after `limit` out of the queue and set the clock to its time. The row, or NONE.

    The clock never turns past `limit`, so that until then anything may still be scheduled.
    """
    while True:
        if c.first == c.last:
            _turn(c, rows, min(limit, c.earliest))
        r = np.int64(_AGAIN)
        if c.first < c.last:
            r = following(c, 0)
        if r == _AGAIN or _at(rows, r).time >= c.earliest:
            r = _pull_either(c, rows, limit)
            if r != _AGAIN:
                return r
        elif _at(rows, r).time > limit:
            return np.int64(NONE)
        else:
            c.first += 1
            if _at(rows, r).kind != DEAD:
                c.now = _at(rows, r).time
                c.released += 1
                return r
            give(c, rows, r)


@part
def _pull_either(c, rows, limit):
    """The same where the heap's first may be the earliest. The row, NONE, or _AGAIN if it had been cancelled."""
    r = np.int64(NONE)
    if c.heaped > 0:
        r = np.int64(_heap(c)[0])
    sorted_ = c.first < c.last and (r == NONE or _before(rows, following(c, 0), r))
    if sorted_:
        r = following(c, 0)
    if r == NONE or _at(rows, r).time > limit:
        return np.int64(NONE)
    if sorted_:
        c.first += 1
    else:
        _heap_remove(c, rows, 0)
    if _at(rows, r).kind == DEAD:
        give(c, rows, r)
        return np.int64(_AGAIN)
    c.now = _at(rows, r).time
    c.released += 1
    return r
