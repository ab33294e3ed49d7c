"""Fabric Elements and links, as parts of the kernel: cells wait, cross a link a slot, and choose the next.

A device walks the links that lead to an adapter in turn, in an order that is drawn anew every few rounds (§5.3). A
queue above a threshold sets the congestion bit of what joins it (§4.2). Short cells take the time and the memory of
their own bytes. An element whose memory fills pauses those who send to it, as a last resort (§5.5); memory is shared by
the links in one direction, because one pool for both could hold itself up: cells going up wait for an element above
whose cells going down wait for this one.
"""

import numpy as np

from weft.engine.bits import lowest, prefetch
from weft.engine.jit import hot, part
from weft.engine.random import below, word
from weft.fabrics.stardust.state import (
    ALL,
    DIGIT,
    FCI,
    HELD,
    LENGTHS,
    MANY,
    OTHERS,
    RING,
    ROWS,
    SHORT,
    adapters,
    aloft,
    burst_at,
    cells,
    choices,
    devices,
    flying,
    groups,
    lengths,
    lines,
    link_at,
    links,
    queued,
    ring,
    slack,
    slots,
    wire,
    working,
)

NONE = -1
ONE, ZERO = np.uint64(1), np.uint64(0)
CONGESTED, BRIEF, SEVERAL = np.uint64(1 << FCI), np.uint64(1 << SHORT), np.uint64(1 << MANY)
ROW = np.uint64((1 << ROWS) - 1)  # bits of a cell
_6, _63 = np.uint64(6), np.uint64(63)


@part
def redraw(s, g):
    """Draw a new order of the links of a group: Fisher and Yates, from the back."""
    walk = choices(s)
    first = np.int64(g.first)
    for p in range(np.int64(g.count) - 1, 0, -1):
        g.draws += 1
        q = below(word(g.key, g.draws), p + 1)
        walk[first + p], walk[first + q] = walk[first + q], walk[first + p]
    g.rounds = 0


@hot
def next_link(s, group):
    """The link of a group whose turn it is."""
    g = groups(s)[np.uint64(group)]
    if g.count == 1:
        return np.int64(choices(s)[np.uint64(g.first)])
    place = np.int64(g.place)
    if place == 0:
        if g.rounds >= s.redraw:
            redraw(s, g)
        g.rounds += 1
    k = np.int64(choices(s)[np.uint64(g.first + place)])
    place += 1
    g.place = 0 if place == g.count else place
    return k


@hot
def length(s, cell):
    """Bytes of a cell on the wire."""
    return s.cell if cell & BRIEF == ZERO else np.int64(burst_at(s, cell & ROW).tail)


@hot
def shrink(s, k, cell):
    """Bytes of a short cell that has left the queue of link k."""
    size = length(s, cell)
    slack(s)[np.uint64(k)] -= s.cell - room_of(s, size)
    return size


@hot
def room_of(s, size):
    """Bytes of memory that a cell of so many bytes takes."""
    return max(size, s.least)


@hot
def worth(s, k, link):
    """Whole cells that would take as much memory as those in the queue of link k."""
    return np.int64(link.count) - np.int64(slack(s)[np.uint64(k)]) // s.cell


@hot
def join(s, k, cell):
    """Put a cell at the end of the queue of link k."""
    link = link_at(s, k)
    if cell & BRIEF != ZERO:
        slack(s)[np.uint64(k)] += s.cell - room_of(s, length(s, cell))
    n = np.int64(link.count)
    if n == 0:
        queued(s)[np.uint64(k) >> _6] |= ONE << (np.uint64(k) & _63)
    if n < RING:
        ring(s)[np.uint64(k * RING + ((np.int64(link.place) + n) & (RING - 1)))] = cell
    else:
        join_behind(s, link, cell)
    n += 1
    link.count = n
    if n > link.peak:
        link.peak = n


@part
def join_behind(s, link, cell):
    """The same for a cell that does not fit in the ring."""
    c = s.free_cell
    if c != NONE:
        s.free_cell = np.int64(cells(s)[np.uint64(c)].next)
    else:
        c = s.used_cells
        if c == s.cells_size:  # memory would have had to overflow
            s.overflows += 1
            return
        s.used_cells += 1
    row = cells(s)[np.uint64(c)]
    row.word = cell
    row.next = NONE
    if link.head == NONE:
        link.head = c
    else:
        cells(s)[np.uint64(link.tail)].next = c
    link.tail = c


@hot
def leave(s, k, link):
    """Take the first cell off the queue of link k; if it is short, `shrink` says how long it is."""
    at = np.uint64(k) * np.uint64(RING) + np.uint64(link.place)
    cell = ring(s)[at]
    link.place = (link.place + 1) & (RING - 1)
    link.count -= 1
    if link.head != NONE:
        move_up(s, link, at)
    return cell


@part
def move_up(s, link, at):
    """Move the first cell behind the ring to the place that has become free."""
    c = np.int64(link.head)
    row = cells(s)[np.uint64(c)]
    ring(s)[at] = row.word
    link.head = row.next
    row.next = s.free_cell
    s.free_cell = c


@part
def blocked(s, link):
    """Whether the device that a link leads to has paused it."""
    paused = devices(s)[link.to].paused
    return paused & 1 != 0 or (link.down == 0 and paused != 0)


@hot
def send(s, k, link, cell, size, line, lose):
    """Put a cell that has left its queue on the wire of link k; ONE if it is there, ZERO if it was lost."""
    if np.int64(k) < s.edge:
        adapters(s)[np.uint64(link.frm)].waiting -= room_of(s, size)
    s.hops += 1
    if link.dead != 0 and lose(s, np.int64(k), link, cell):
        return ZERO
    line[k] = cell
    return ONE


@part
def transmit(s, at, lose):
    """Let every queue send its first cell; `at` is where the slot's cells lie on the wires.

    What a short cell leaves of its slot is saved up, as long as something waits, and the next ones go in the same slot
    as soon as that is enough for them. The bytes of control messages are saved up for a slot without a cell.
    """
    all_queued, all_links, all_lengths = queued(s), links(s), lengths(s)
    line, bits_on = wire(s)[0, at], flying(s)[0, at]
    from_, to = s.cables, s.cables + s.edge
    for w in range(s.queued_size):
        ahead = np.uint64(min(w + 1, s.queued_size - 1))
        bits = all_queued[ahead]
        while bits != ZERO:  # the first cells of the next queues
            k = (ahead << _6) + np.uint64(lowest(bits))
            bits &= bits - ONE
            prefetch(ring(s), np.int64(k) * RING + np.int64(all_links[k].place))
        bits = all_queued[np.uint64(w)]
        sent = ZERO
        while bits != ZERO:
            b = np.uint64(lowest(bits))
            bits &= bits - ONE
            k = np.uint64(w << 6) + b
            link = all_links[k]
            n = np.int64(link.count)
            if np.int64(k) >= from_ and np.int64(k) < to:
                all_lengths[min(n, LENGTHS - 1)] += 1
            if link.debt >= s.cell:  # control messages have had this slot
                link.debt -= s.cell
                s.skipped += 1
                working(s)[np.uint64(w), OTHERS] |= np.uint64(1 - (link.dead & 1)) << b
                continue
            if s.any_paused != 0 and blocked(s, link):
                s.pauses += 1
                continue
            cell, size = leave(s, k, link), s.cell
            if cell & BRIEF != ZERO:
                size = shrink(s, k, cell)
                link.debt -= s.cell - size
            sent |= send(s, k, link, cell, size, line, lose) << b
            if link.debt < 0 and n > 1:
                n = send_more(s, k, link, at, lose)
            if n == 1:
                all_queued[np.uint64(w)] ^= ONE << b
                if link.debt < 0:
                    rest(s, k, link)
        bits_on[np.uint64(w)] = sent


@part
def tally(s, at):
    """Count this slot for every link that has sent in it.

    Digits of 64 counts lie in a word, and what is to be added to them waits until there are two of it: a slot takes one
    addition on average, and how many it takes depends on nothing but its number (a counter of Harley and Seal).
    """
    counts, bits_on, at_work = slots(s), flying(s)[0, at], working(s)
    s.sent_at = s.now // s.slot
    for i in range(s.queued_size):
        w = np.uint64(i)
        worked = bits_on[w] | at_work[w, OTHERS]
        at_work[w, ALL], at_work[w, OTHERS] = worked, ZERO
        slot, p = s.ticks - 1, ZERO
        while slot & 1 != 0:
            one, two = counts[w, p, DIGIT], counts[w, p, HELD]
            odd = one ^ two
            counts[w, p, DIGIT] = odd ^ worked
            worked = (one & two) | (odd & worked)
            slot >>= 1
            p += ONE
        counts[w, p, HELD] = worked


@part
def rest(s, k, link):
    """Link k has nothing more to send: the time that short cells have left it in this slot is idle."""
    if link.dead & 1 == 0:
        line = lines(s)[k]
        line.left, line.at = min(-np.int64(link.debt), s.cell), s.now // s.slot
        line.idle += line.left
    link.debt = 0


@part
def send_more(s, k, link, at, lose):
    """Let link k send what fits in the time that short cells have left it; cells that waited when the last one went."""
    n = np.int64(link.count) + 1
    for place in range(1, s.wire_size):
        if n == 1:
            return n
        size = length(s, ring(s)[np.uint64(k) * np.uint64(RING) + np.uint64(link.place)])
        if -link.debt < size:
            return n
        link.debt += size
        n -= 1
        cell = leave(s, k, link)
        if cell & BRIEF != ZERO:
            shrink(s, k, cell)
        flying(s)[place, at, k >> _6] |= send(s, k, link, cell, size, wire(s)[place, at], lose) << (k & _63)
    link.debt = max(link.debt, -s.cell)
    return n


@part
def look(s):
    """Sum up what elements hold, and let those that are nearly full tell their neighbours to pause."""
    all_devices, all_links = devices(s), links(s)
    for v in range(s.adapters, s.devices_size):
        all_devices[v].held_up = all_devices[v].held_down = 0
    for k in range(s.edge, s.links_size):
        link = all_links[k]
        if link.count > 0:
            device = all_devices[link.frm]
            held = np.int64(link.count) * s.cell - slack(s)[k]
            if link.down == 0:
                device.held_up += held
            else:
                device.held_down += held
    s.any_paused = 0
    for v in range(s.adapters, s.devices_size):
        d = all_devices[v]
        up, down = (d.held_up + s.cell - 1) // s.cell, (d.held_down + s.cell - 1) // s.cell
        d.most_up = max(d.most_up, up)
        d.most_down = max(d.most_down, down)
        if up > d.pool_up or down > d.pool_down:
            s.overflows += 1
        d.paused = d.pausing
        d.pausing = (1 if down > d.stop_down else 0) | (2 if up > d.stop_up else 0)
        if d.paused != 0:
            s.any_paused = 1


@part
def charge(s):
    """Charge links with what control messages have taken since the last look.

    Those of an adapter share what it sent or received evenly, those of a tier above all that went through it: control
    messages are spread as cells are. Where nothing waits they take time that nobody wants.
    """
    all_links, all_adapters, through = links(s), adapters(s), aloft(s)
    for k in range(s.links_size):
        link = all_links[k]
        if link.count == 0:
            continue
        if link.tier > 1:
            link.debt += through[link.tier, 0] // through[link.tier, 1]
        elif link.down == 0:
            link.debt += all_adapters[link.frm].told // all_adapters[link.frm].uplinks
        else:
            link.debt += all_adapters[link.to].heard // all_adapters[link.to].uplinks
    for a in range(s.adapters):
        ad = all_adapters[a]
        ad.told -= ad.told // ad.uplinks * ad.uplinks
        ad.heard -= ad.heard // ad.uplinks * ad.uplinks
    for tier in range(2, s.aloft_size):
        through[tier, 0] -= through[tier, 0] // through[tier, 1] * through[tier, 1]
