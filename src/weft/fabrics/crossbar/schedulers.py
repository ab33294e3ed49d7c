"""The schedulers as kernels: who is matched with whom, from sets of requests, one function per algorithm.

`weft.schedule.matching` says the same in plain Python and gives the sources; the tests hold the two equal. Every
scheduler reads `want`, the set of inputs that have a cell for output j, and writes `mate[i]`, the output that input i
is matched with, or NOBODY.
"""

from enum import IntEnum

import numpy as np

from weft.engine.bits import lowest
from weft.engine.jit import bare
from weft.engine.random import below, word
from weft.fabrics.crossbar.bits import NOBODY, bit, first, first_of_word, let_all, nth, size

_0, _1, _32 = np.uint64(0), np.uint64(1), np.uint64(32)


class Scheduler(IntEnum):
    """One number per algorithm."""

    ISLIP = 0
    RRM = 1
    PIM = 2
    DRRM = 3
    WAVEFRONT = 4
    LQF = 5
    OCF = 6
    MWM = 7
    MSM = 8
    ESLIP = 9
    RR = 10
    CCF = 11
    LIHP = 12
    NONE = 13


@bare
def islip_short(want, given, grant, accept, choice, pairs):
    """iSLIP with one iteration among at most 64 ports; returns how many `pairs` (i << 32 | j, i ascending) it made.

    Three straight loops: all grants, the transpose, all accepts. The first and the last have no branch and no memory
    dependence, so several ports go through a vector register at a time.
    """
    n = grant.size
    ports = np.uint64(n)
    given[:] = _0
    for j in range(n):
        choice[j] = first_of_word(want[j], grant[j])
    matched = _0
    for j in range(n):
        asked = np.uint64(want[j] != _0)
        i = choice[j]
        given[i] |= asked << np.uint64(j)
        matched |= asked << i
    for i in range(n):
        choice[i] = first_of_word(given[i], accept[i])
    count = 0
    while matched != _0:
        i = np.uint64(lowest(matched))
        matched &= matched - _1
        j = choice[i]
        after_i, after_j = i + _1, j + _1
        grant[j] = after_i if after_i < ports else _0
        accept[i] = after_j if after_j < ports else _0
        pairs[count] = i << _32 | j
        count += 1
    return count


@bare
def slip(iterations, always, want, everyone, idle, given, grant, accept, owner, mate):
    """iSLIP, or with `always` RRM, whose grant pointers move even if the grant is not accepted.

    Returns the number of iterations that found something; later ones would not.
    """
    n = grant.size
    let_all(idle, everyone)
    mate[:] = NOBODY
    owner[:] = NOBODY
    for iteration in range(iterations):
        given[:] = _0
        for j in range(n):
            if owner[j] != NOBODY:
                continue
            i = first(want, j, idle, np.int64(grant[j]))
            if i != NOBODY:
                given[i * everyone.size + (j >> 6)] |= bit(j)
                if always and iteration == 0:
                    grant[j] = (i + 1) % n
        found = 0
        for i in range(n):
            if mate[i] != NOBODY:
                continue
            j = first(given, i, everyone, np.int64(accept[i]))
            if j != NOBODY:
                mate[i], owner[j] = j, i
                idle[i >> 6] &= ~bit(i)
                found += 1
                if iteration == 0:
                    accept[i] = (j + 1) % n
                    if not always:
                        grant[j] = (i + 1) % n
        if found == 0:
            return iteration
    return iterations


@bare
def pim(iterations, slot, key, want, everyone, idle, given, owner, mate):
    """Parallel iterative matching: outputs grant at random, inputs accept at random."""
    n = mate.size
    let_all(idle, everyone)
    mate[:] = NOBODY
    owner[:] = NOBODY
    for iteration in range(iterations):
        given[:] = _0
        draw = (slot * iterations + iteration) * 2 * n
        for j in range(n):
            if owner[j] != NOBODY:
                continue
            count = size(want, j, idle)
            if count:
                i = nth(want, j, idle, below(word(key, draw + j), count))
                given[i * everyone.size + (j >> 6)] |= bit(j)
        found = 0
        for i in range(n):
            if mate[i] != NOBODY:
                continue
            count = size(given, i, everyone)
            if count:
                j = nth(given, i, everyone, below(word(key, draw + n + i), count))
                mate[i], owner[j] = j, i
                idle[i >> 6] &= ~bit(i)
                found += 1
        if found == 0:
            return iteration
    return iterations


@bare
def drrm(iterations, want, everyone, asked, grant, accept, owner, mate):
    """Dual round robin: an input asks one output, an output grants one input."""
    n, count = mate.size, everyone.size
    mate[:] = NOBODY
    owner[:] = NOBODY
    for iteration in range(iterations):
        asked[:] = _0
        for i in range(n):
            if mate[i] != NOBODY:
                continue
            for step in range(n):  # first free output at or after the pointer for which there is a cell
                j = np.int64(accept[i]) + step
                if j >= n:
                    j -= n
                if owner[j] == NOBODY and want[j * count + (i >> 6)] & bit(i) != _0:
                    asked[j * count + (i >> 6)] |= bit(i)
                    break
        found = 0
        for j in range(n):
            if owner[j] != NOBODY:
                continue
            i = first(asked, j, everyone, np.int64(grant[j]))
            if i != NOBODY:
                mate[i], owner[j] = j, i
                found += 1
                if iteration == 0:
                    grant[j], accept[i] = (i + 1) % n, (j + 1) % n
        if found == 0:
            return iteration
    return iterations


@bare
def wavefront(slot, want, everyone, owner, mate):
    """Wrapped wavefront: diagonals one after another, the first one a step further every slot."""
    n, count = mate.size, everyone.size
    mate[:] = NOBODY
    owner[:] = NOBODY
    found = 0
    for step in range(n):
        diagonal = (slot + step) % n
        for i in range(n):
            j = diagonal - i
            if j < 0:
                j += n
            if mate[i] == NOBODY and owner[j] == NOBODY and want[j * count + (i >> 6)] & bit(i) != _0:
                mate[i], owner[j] = j, i
                found += 1
    return np.int64(found > 0)


@bare
def heaviest(iterations, slot, want, everyone, idle, given, weight, owner, mate):
    """Iterative longest queue or oldest cell first: outputs grant the heaviest request, inputs accept the heaviest.

    Among equals the first at or after port `slot` mod n, so that nobody is favoured for long.
    """
    n, count = mate.size, everyone.size
    let_all(idle, everyone)
    mate[:] = NOBODY
    owner[:] = NOBODY
    turn = slot % n
    for iteration in range(iterations):
        given[:] = _0
        for j in range(n):
            if owner[j] != NOBODY:
                continue
            best, most = NOBODY, np.int64(0)
            for step in range(n):
                i = turn + step
                if i >= n:
                    i -= n
                asks = want[j * count + (i >> 6)] & idle[i >> 6] & bit(i) != _0
                if asks and weight[i * n + j] > most:
                    best, most = i, weight[i * n + j]
            if best != NOBODY:
                given[best * count + (j >> 6)] |= bit(j)
        found = 0
        for i in range(n):
            if mate[i] != NOBODY:
                continue
            best, most = NOBODY, np.int64(0)
            for step in range(n):
                j = turn + step
                if j >= n:
                    j -= n
                if given[i * count + (j >> 6)] & bit(j) != _0 and weight[i * n + j] > most:
                    best, most = j, weight[i * n + j]
            if best != NOBODY:
                mate[i], owner[best] = best, i
                idle[i >> 6] &= ~bit(i)
                found += 1
        if found == 0:
            return iteration
    return iterations


@bare
def maximum(weight, labels, done, owner, mate):
    """Maximum-weight matching of the (n, n) int64 `weight`, zero where there is no request (Kuhn and Munkres).

    Shortest augmenting paths with potentials `row`, `column`, in whole numbers: O(n^3). A pair of weight zero is no
    match.
    """
    n = mate.size
    row, column, slack, via = labels[0], labels[1], labels[2], labels[3]
    row[:] = 0
    column[:] = 0
    owner[:] = NOBODY  # entry n is where the path under construction starts
    for i0 in range(n):
        slack[:] = np.int64(1) << 62
        via[:] = n
        done[:] = False
        owner[n] = i0
        j0 = n
        while True:
            done[j0] = True
            i, step, j1 = owner[j0], np.int64(1) << 62, NOBODY
            for j in range(n):
                if not done[j]:
                    reduced = -weight[i * n + j] - row[i] - column[j]
                    if reduced < slack[j]:
                        slack[j], via[j] = reduced, j0
                    if slack[j] < step:
                        step, j1 = slack[j], j
            for j in range(n + 1):
                if done[j]:
                    row[owner[j]] += step
                    column[j] -= step
                else:
                    slack[j] -= step
            j0 = j1
            if owner[j0] == NOBODY:
                break
        while j0 != n:
            owner[j0] = owner[via[j0]]
            j0 = via[j0]
    mate[:] = NOBODY
    for j in range(n):
        i = owner[j]
        if weight[i * n + j] > 0:
            mate[i] = j
    return 1


@bare
def eslip(want, everyone, pointer, pairs):
    """Multicast with fanout splitting: all outputs grant from one common pointer, and inputs accept every grant.

    The first input at or after the pointer gets all it asks for, and the pointer moves beyond it. `pairs` are in the
    order of the outputs; an input may be in several, with the same cell.
    """
    n = want.size // everyone.size
    count, start, served, nearest = 0, pointer[0], NOBODY, n
    for j in range(n):
        i = first(want, j, everyone, start)
        if i != NOBODY:
            pairs[count] = np.uint64(i) << _32 | np.uint64(j)
            count += 1
            if (i - start) % n < nearest:
                served, nearest = i, (i - start) % n
    if served != NOBODY:
        pointer[0] = (served + 1) % n
    return count
