"""What happens in the ideal switch: a flow begins or ends, and all rates are shared out anew.

Rates are floats of bits per ps. Only operations that IEEE 754 defines to the last bit are used, and what a flow has
left is computed only where rates change, so a run is the same wherever it is cut and on any machine.
"""

import numpy as np

from weft.engine.calendar import FAR, TIME, pop, release
from weft.engine.fingerprint import fold
from weft.engine.jit import bare, inlined
from weft.engine.loop import DONE, PAUSED, REACHED

NOW, SINCE, ARRIVED, HEAPED, LIVE, FINISHED, CHANGES, STALE = range(8)  # of `clock`
COUNTS = 8


@inlined
def share(live, count, src, dst, rate, line, left_of, users, settled):
    """Give every live flow its max-min fair rate: link by link, the tightest first.

    left_of, users (2 n,): bits per ps that a link has left, and flows that still want some: out of each node, then into
    each. A link whose even share is the least of all gives it to all its flows; what it gave is taken off their other
    links.
    """
    n = users.size // 2
    for k in range(2 * n):
        left_of[k], users[k] = line, 0
    for k in range(count):
        f = live[k]
        users[src[f]] += 1
        users[n + dst[f]] += 1
        rate[f] = -1.0
    waiting = count
    while waiting > 0:
        least = np.inf
        for k in range(2 * n):
            if users[k] > 0 and left_of[k] / users[k] < least:
                least = left_of[k] / users[k]
        for k in range(2 * n):
            settled[k] = 0
        for k in range(count):
            f = live[k]
            i, j = src[f], n + dst[f]
            if rate[f] < 0 and (left_of[i] / users[i] <= least or left_of[j] / users[j] <= least):
                rate[f] = least
                settled[i] += 1
                settled[j] += 1
                waiting -= 1
        for k in range(2 * n):
            if settled[k] > 0:
                left_of[k] = max(left_of[k] - least * settled[k], 0.0)
                users[k] -= settled[k]


@bare
def advance(
    src, dst, start, known, waits, successors, bits, rate, finish, live, clock, print_, left_of, users, settled, line,
    way, until, budget,
):  # fmt: skip
    """Let flows begin and end up to `until` (ps), at most `budget` times; says why it stopped.

    bits (f,) float64: what each flow had left when rates last changed, at clock[SINCE]. known: flows that wait for
    none. line: bits per ps of a link. way: ps along the cables, by which a flow is done after its last bit.
    """
    for _ in range(budget):
        count = clock[LIVE]
        while clock[ARRIVED] < known and start[clock[ARRIVED]] <= clock[NOW]:
            live[count] = clock[ARRIVED]
            count += 1
            clock[ARRIVED] += 1
        while clock[HEAPED] > 0 and waits[0, TIME] <= clock[NOW]:
            live[count] = pop(waits, clock[HEAPED])
            clock[HEAPED] -= 1
            count += 1
        if count != clock[LIVE]:
            if clock[STALE] == 0 and clock[NOW] > clock[SINCE]:  # what those who were there had until now
                for k in range(clock[LIVE]):
                    bits[live[k]] -= rate[live[k]] * (clock[NOW] - clock[SINCE])
            clock[LIVE], clock[STALE] = count, 1
        if clock[STALE] == 1:
            share(live, count, src, dst, rate, line, left_of, users, settled)
            clock[SINCE], clock[STALE] = clock[NOW], 0
            clock[CHANGES] += 1
        moment = FAR
        for k in range(count):
            moment = min(moment, clock[SINCE] + max(np.int64(np.ceil(bits[live[k]] / rate[live[k]])), 1))
        coming = start[clock[ARRIVED]] if clock[ARRIVED] < known else FAR
        if clock[HEAPED] > 0:
            coming = min(coming, waits[0, TIME])
        if count == 0 and coming == FAR:
            return DONE
        if min(moment, coming) > until:
            clock[NOW] = max(clock[NOW], until)
            return REACHED
        if coming < moment:
            clock[NOW] = coming
            continue
        gone = moment - clock[SINCE]
        kept = 0
        for k in range(count):
            f = live[k]
            if clock[SINCE] + max(np.int64(np.ceil(bits[f] / rate[f])), 1) <= moment:
                bits[f], finish[f] = 0.0, moment + way
                clock[FINISHED] += 1
                fold(print_, f, moment)
                if waits.shape[0] > 0:
                    clock[HEAPED] = release(waits, successors, clock[HEAPED], f, moment)
            else:
                bits[f] -= rate[f] * gone
                live[kept] = f
                kept += 1
        clock[LIVE], clock[STALE], clock[NOW], clock[SINCE] = kept, 1, moment, moment
    return PAUSED
