"""Selective acknowledgements: which segments beyond a gap have arrived, and recovery by them (RFC 2018, 6675).

    receiver   names in every ACK up to `blocks` runs of segments it holds beyond what it expects: first the run that
               the segment just come belongs to, then those it named first before, the latest first (RFC 2018 §4). It
               remembers a segment of each of the last four runs; how far a run goes it sees when it names it. An ACK
               with n runs is 4 + 8 n bytes longer.
    sender     enters the runs in its scoreboard. An ACK that tells of a segment not known to have arrived is a
               duplicate, whatever else it acknowledges (RFC 6675 §2). A segment is lost when three above it have
               arrived. The third duplicate in a row, or the loss of `una`, enters recovery (§5): threshold = window =
               flight/2, at least 2 segments, and `una` is sent again. In recovery the pipe holds every segment that has
               neither arrived nor been lost, and every one sent again; while it holds less than a window goes out, in
               this order (NextSeg, §4):
                 1  the lowest lost segment above all that were sent again
                 2  a new segment
                 3  the lowest segment above all that were sent again, below the highest that has arrived
                 4  the highest that has not arrived, once a recovery, after more than `una` has been acknowledged
               Recovery ends when everything sent before it is acknowledged. A timeout forgets the scoreboard, for the
               receiver may have done so too (RFC 2018 §8); what arrives to be known after it is not sent again.

Before recovery at most two segments have arrived beyond a gap, so limited transmit (§5, step 3) is what it is without.
A segment that was sent again and lost again is not noticed before the timeout. That happens where a whole burst was
lost: the pipe is empty then, and as much as a window leaves at once for the queue that has just overflowed.
"""

import numpy as np

from weft.engine import events
from weft.engine.jit import part
from weft.hosts.flow import claim, send_segment
from weft.hosts.state import BLOCKS, got, latest, options, out, packet_at, sub_at

ARRIVED = 1  # what the sender knows of a segment
DUPLICATES = 3  # RFC 6675's DupThresh, of duplicates and of segments above one that is lost


@part
def _run(s, i, seq):
    """The run of segments, [first, end), that `seq` belongs to among those held beyond a gap."""
    mask = s.reach - 1
    first, end = seq, seq + 1
    while got(s)[i, (first - 1) & mask] == 1:  # the segment expected has not come, which ends it either way
        first -= 1
    while got(s)[i, end & mask] == 1:
        end += 1
    return first, end


@part
def remember(s, i, seq):
    """Segment `seq` has come beyond a gap: put its run before the others."""
    first, end = _run(s, i, seq)
    runs, kept, carried = latest(s)[i], 0, seq
    for n in range(BLOCKS):
        q = np.int64(runs[n])
        if q == events.NONE:
            break
        if q < first or q >= end:
            runs[kept] = carried
            carried = q
            kept += 1
    if kept < BLOCKS:
        runs[kept] = carried
        for n in range(kept + 1, BLOCKS):
            runs[n] = events.NONE


@part
def name(s, i, r):
    """Enter the latest runs in ACK r, and forget those that have closed up with the rest."""
    runs, kept, named = latest(s)[i], 0, 0
    for n in range(BLOCKS):
        q = np.int64(runs[n])
        if q >= sub_at(s, i).expected:
            runs[kept] = q
            kept += 1
            if named < s.sack:
                first, end = _run(s, i, q)
                options(s)[r, 2 * named] = first
                options(s)[r, 2 * named + 1] = end
                named += 1
    for n in range(kept, BLOCKS):
        runs[n] = events.NONE
    p = packet_at(s, r)
    p.echo = named
    if named > 0:
        p.size += 4 + 8 * named


@part
def update(s, i, r):
    """Enter the runs that ACK r names in the scoreboard. True if they hold a segment not known to have arrived."""
    p, sub, mask = packet_at(s, r), sub_at(s, i), s.reach - 1
    fresh = False
    for n in range(p.echo):
        for q in range(max(np.int64(options(s)[r, 2 * n]), sub.una), np.int64(options(s)[r, 2 * n + 1])):
            if out(s)[i, q & mask] != ARRIVED:
                out(s)[i, q & mask] = ARRIVED
                fresh = True
    return fresh


@part
def heights(s, i):
    """The highest segment known to have arrived, and the third highest: what has not come below it is lost. Or NONE."""
    sub, mask = sub_at(s, i), s.reach - 1
    high = np.int64(events.NONE)
    above = 0
    for q in range(sub.top - 1, sub.una - 1, -1):
        if out(s)[i, q & mask] == ARRIVED:
            high = max(high, q)
            above += 1
            if above == DUPLICATES:
                return high, q
    return high, np.int64(events.NONE)


@part
def lost(s, i):
    """Whether `una` is lost."""
    return heights(s, i)[1] != events.NONE


@part
def recover(s, slot, k):
    """Send what recovery allows."""
    i = slot * s.subflows + k
    sub, mask = sub_at(s, i), s.reach - 1
    high, third = heights(s, i)
    pipe = 0
    for q in range(sub.una, sub.nxt):
        if out(s)[i, q & mask] != ARRIVED:
            pipe += (1 if q > third else 0) + (1 if q <= sub.mended else 0)
    q = max(sub.mended + 1, sub.una)
    while (pipe + 1) * s.payload <= sub.window:
        while q < high and out(s)[i, q & mask] == ARRIVED:
            q += 1
        if q < third:
            sub.mended = q
            send_segment(s, slot, k, q)
        elif sub.nxt - sub.una < min(s.reach, s.max_window) and claim(s, slot, i):
            sub.nxt += 1
            send_segment(s, slot, k, sub.nxt - 1)
        elif q < high:
            sub.mended = q
            send_segment(s, slot, k, q)
        elif sub.una - 1 > sub.rescued:
            sub.rescued = sub.recover
            last = sub.nxt - 1
            while out(s)[i, last & mask] == ARRIVED:
                last -= 1
            send_segment(s, slot, k, last)
        else:
            return
        q = max(q, sub.mended + 1)
        pipe += 1
