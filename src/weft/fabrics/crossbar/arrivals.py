"""What arrives in a slot, as kernels: the rules of `weft.workload.traffic`, and flows injected by their senders."""

import numpy as np

from weft.engine.calendar import TIME, pop
from weft.engine.jit import inlined, part
from weft.engine.random import below, word
from weft.fabrics.crossbar.bits import NOBODY
from weft.fabrics.crossbar.state import IN, LENGTH, OUT, STAMP, TAG, Count

_32, _LOW, _1 = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1)


@inlined
def uniform(slot, key, chance, drawn, came):
    """At most one cell per input, for any output alike. Returns how many came, in the order of the inputs."""
    n = drawn.size
    ports = np.uint64(n)
    for i in range(n):
        drawn[i] = word(key, slot * n + i)
    count = 0
    for i in range(n):  # branch-free: a cell that does not arrive is overwritten by the next one
        came[IN, count] = i
        came[OUT, count] = ((drawn[i] & _LOW) * ports) >> _32
        count += np.int64((drawn[i] >> _32) < chance)
    return count


@part
def destination(i, low, is_uniform, keep, other, n):
    """The output that the lower half of input i's word stands for."""
    at = low * np.uint64(n)
    k = np.int64(at >> _32)
    if not is_uniform and (at & _LOW) >= keep[i * n + k]:
        k = np.int64(other[i * n + k])
    return k


@part
def skewed(slot, key, whole, chance, is_uniform, keep, other, drawn, came):
    """`whole` cells at every input and by `chance` one more, all of one slot for one output drawn from the tables."""
    n = drawn.size
    count = 0
    for i in range(n):
        drawn[i] = word(key, slot * n + i)
        j = destination(i, drawn[i] & _LOW, is_uniform, keep, other, n)
        for _ in range(whole + np.int64((drawn[i] >> _32) < chance)):
            came[IN, count], came[OUT, count] = i, j
            count += 1
    return count


@part
def bursts(slot, key, end_key, start, end, is_uniform, keep, other, burst, came):
    """Cells of bursts: an idle input starts one by chance `start`, and it ends after any cell by chance `end`."""
    n = burst.size
    count = 0
    for i in range(n):
        drawn = word(key, slot * n + i)
        if burst[i] == NOBODY and (drawn >> _32) < start:
            burst[i] = destination(i, drawn & _LOW, is_uniform, keep, other, n)
        if burst[i] != NOBODY:
            came[IN, count], came[OUT, count] = i, burst[i]
            count += 1
            if (word(end_key, slot * n + i) >> _32) < end:
                burst[i] = NOBODY
    return count


@part
def members(counter, n, fanout, keys, outputs):
    """Write the outputs of a multicast cell, ascending, and return how many there are (Floyd's algorithm)."""
    size = 1 + below(word(keys[2], counter), fanout)
    for copy in range(size):
        top = n - size + copy
        j = below(word(keys[3 + copy], counter), top + 1)
        for k in range(copy):
            if np.int64(outputs[k]) == j:
                j = top
                break
        k = copy
        while k > 0 and np.int64(outputs[k - 1]) > j:  # insert in order
            outputs[k] = outputs[k - 1]
            k -= 1
        outputs[k] = j
    return size


@part
def multicast(slot, chance, fanout, keys, drawn, outputs, came):
    """Cells for several outputs: one entry per copy, tagged with its number."""
    n = drawn.size
    count = 0
    for i in range(n):
        drawn[i] = word(keys[0], slot * n + i)
        if (drawn[i] >> _32) < chance:
            size = members(slot * n + i, n, fanout, keys, outputs)
            for copy in range(size):
                came[IN, count], came[OUT, count], came[TAG, count] = i, outputs[copy], copy
                count += 1
    return count


@part
def start_flows(slot, known, flow_src, flow_start, flow_next, active, arrived, count, waits):
    """Let flows whose time has come join their sender's ring, at its end; the first `known` wait for nobody."""
    while True:
        if arrived[0] < known and flow_start[arrived[0]] <= slot:
            f = arrived[0]
            arrived[0] += 1
        elif count[Count.HEAPED] > 0 and waits[0, TIME] <= slot:
            f = pop(waits, count[Count.HEAPED])
            count[Count.HEAPED] -= 1
        else:
            return
        i = flow_src[f]
        if active[i] == NOBODY:
            flow_next[f] = f
        else:
            flow_next[f] = flow_next[active[i]]
            flow_next[active[i]] = f
        active[i] = f
        count[Count.ACTIVE] += 1


@part
def offer(slot, depth, flow_dst, flow_next, active, before, queue, came):
    """Every sender offers a cell of the next flow in its ring.

    With `depth` > 0 it sees the full flags of its virtual output queues and passes over flows whose queue is full.
    """
    n = active.size
    count = 0
    for i in range(n):
        if active[i] == NOBODY:
            continue
        behind = active[i]
        while True:
            f = flow_next[behind]
            j = flow_dst[f]
            if depth == 0 or np.int64(queue[4 * (i * n + j) + LENGTH]) < depth:
                came[IN, count], came[OUT, count], came[TAG, count], came[STAMP, count] = i, j, f, slot
                before[i] = behind
                count += 1
                break
            behind = f
            if f == active[i]:
                break
    return count


@part
def sent(number, refused, refusals, lossy, flow_left, flow_next, active, before, came, count):
    """Move every sender's ring beyond the cell that it sent; a cell lost on entry was sent too."""
    at = 0
    for a in range(number):
        if at < refusals and refused[at] == a:
            at += 1
            if not lossy:
                continue
        i, f = np.int64(came[IN, a]), np.int64(came[TAG, a])
        flow_left[f] -= 1
        if flow_left[f] > 0:
            active[i] = f
        else:
            count[Count.ACTIVE] -= 1
            if flow_next[f] == f:
                active[i] = NOBODY
            else:
                flow_next[before[i]] = flow_next[f]
                active[i] = before[i]
