"""A combined input-output queued switch that sends every cell when an output-queued one would (Chuang et al., 1999).

Every input keeps a list of its cells. In each phase the outputs and the lists are matched stably: an output prefers the
cell it must send first, an input the cell that stands first in its list. Critical cells first puts a new cell behind as
many others as its output has cells to send before it; last in, highest priority puts it in front.

A cell c has in `lists`: BEFORE and AFTER in its input's list, EARLIER and LATER among the cells that wait at inputs for
its output, its PLACE in the input's list, the slot DUE in which it must leave, and NEXT at the output.
"""

import numpy as np

from weft.engine.jit import part
from weft.fabrics.crossbar.bits import NOBODY
from weft.fabrics.crossbar.queues import blank, input_of, label, output_of, release
from weft.fabrics.crossbar.stages import depart
from weft.fabrics.crossbar.state import IN, LENGTH, OUT, STAMP, TAG, Count, Level

BEFORE, AFTER, EARLIER, LATER, PLACE, DUE, NEXT = range(7)
_OVERDUE, _PEAK = int(Count.OVERDUE), int(Level.PEAK)
_32 = np.uint64(32)


@part
def admit(number, slot, n, depth, critical, came, refused, cells, info, free, level, queue, lists, turn):
    """Put every arrival into the list of its input and of its output, with the slot in which it must leave."""
    first, oldest, newest = turn[:n], turn[n : 2 * n], turn[2 * n : 3 * n]
    due, ahead = turn[3 * n : 4 * n], turn[4 * n : 5 * n]
    refusals = 0
    for a in range(number):
        i, j = np.int64(came[IN, a]), np.int64(came[OUT, a])
        if np.int64(queue[4 * (i * n + j) + LENGTH]) >= depth:
            refused[refusals] = a
            refusals += 1
            continue
        queue[4 * (i * n + j) + LENGTH] += np.uint32(1)
        level[_PEAK] = max(level[_PEAK], np.uint64(queue[4 * (i * n + j) + LENGTH]))
        c = np.int64(blank(free, level))
        cells[c] = came[STAMP, a] << _32
        info[c] = label(i, j, came[TAG, a])
        due[j] = max(due[j] + 1, slot)
        lists[c, DUE] = due[j]
        lists[c, EARLIER], lists[c, LATER] = newest[j], NOBODY
        if newest[j] == NOBODY:
            oldest[j] = c
        else:
            lists[newest[j], LATER] = c
        newest[j] = c
        before, after = NOBODY, first[i]
        if critical:
            for _ in range(ahead[j]):  # as many in front as its output has to send before it
                if after == NOBODY:
                    break
                before, after = after, lists[after, AFTER]
        lists[c, BEFORE], lists[c, AFTER] = before, after
        if before == NOBODY:
            first[i] = c
        else:
            lists[before, AFTER] = c
        if after != NOBODY:
            lists[after, BEFORE] = c
    return refusals


@part
def phase(n, info, queue, lists, turn, owner, mate):
    """One stable matching, and every matched cell crosses to its output."""
    first, oldest, newest = turn[:n], turn[n : 2 * n], turn[2 * n : 3 * n]
    ahead, sending = turn[4 * n : 5 * n], turn[5 * n :]
    for i in range(n):
        c, place = first[i], 0
        while c != NOBODY:
            lists[c, PLACE] = place
            place += 1
            c = lists[c, AFTER]
    mate[:] = NOBODY  # the cell that input i holds on to
    for j in range(n):
        owner[j] = oldest[j]  # the cell that output j proposes next
    for start in range(n):
        j = start
        while j != NOBODY and owner[j] != NOBODY:
            c = owner[j]
            owner[j] = lists[c, LATER]
            i = input_of(c, info)
            if mate[i] == NOBODY:
                mate[i] = c
                j = NOBODY
            elif lists[c, PLACE] < lists[mate[i], PLACE]:
                c, mate[i] = mate[i], c
                j = output_of(c, info)  # the one turned away proposes again
    for i in range(n):
        c = mate[i]
        if c == NOBODY:
            continue
        j = output_of(c, info)
        queue[4 * (i * n + j) + LENGTH] -= np.uint32(1)
        before, after = lists[c, BEFORE], lists[c, AFTER]
        if before == NOBODY:
            first[i] = after
        else:
            lists[before, AFTER] = after
        if after != NOBODY:
            lists[after, BEFORE] = before
        before, after = lists[c, EARLIER], lists[c, LATER]
        if before == NOBODY:
            oldest[j] = after
        else:
            lists[before, LATER] = after
        if after == NOBODY:
            newest[j] = before
        else:
            lists[after, EARLIER] = before
        before, after = NOBODY, sending[j]
        while after != NOBODY and lists[after, DUE] < lists[c, DUE]:
            before, after = after, lists[after, NEXT]
        lists[c, NEXT] = after
        if before == NOBODY:
            sending[j] = c
        else:
            lists[before, NEXT] = c
        ahead[j] += 1


@part
def send(slot, n, cells, info, free, level, lists, turn, gone, count):
    """Every output sends the cell that is due first; one sent after the slot it was due in is counted."""
    ahead, sending = turn[4 * n : 5 * n], turn[5 * n :]
    left = 0
    for j in range(n):
        c = sending[j]
        if c == NOBODY:
            continue
        sending[j] = lists[c, NEXT]
        ahead[j] -= 1
        count[_OVERDUE] += np.int64(lists[c, DUE] < slot)
        depart(left, input_of(c, info), j, c, cells, info, gone)
        release(np.uint64(c), free, level)
        left += 1
    return left
