"""Fabric Adapters, as parts of the kernel: VOQs, requests and credits, bursts, and what comes out at the other end.

A VOQ asks for the bytes that wait in it, when nothing is owed to it or a whole credit more is needed. A scheduler
gives credits of at most so many bytes, or, where credits are whole, of just as many. One lets its VOQ send whole
packets until it is used up; what was taken too much, or is left because nothing more waits, is kept as a signed balance
(§3.3). What one credit lets go is a burst, cut into cells as one (§3.4), and delivered when all its cells are there and
the bursts of its VOQ before it are delivered.
"""

import numpy as np

from weft.engine import events
from weft.engine.bits import lowest, prefetch
from weft.engine.fingerprint import fold
from weft.engine.jit import hot, part
from weft.engine.random import below, word
from weft.fabrics.stardust.bounds import AHEAD
from weft.fabrics.stardust.element import BRIEF, CONGESTED, NONE, ONE, ROW, SEVERAL, ZERO, join, next_link, room_of
from weft.fabrics.stardust.state import (
    BIRTH,
    BORN,
    CREDIT,
    DOWN,
    EXPIRY,
    FULL,
    PAUSE,
    REQUEST,
    TICK,
    TO,
    WAITS,
    adapter_at,
    adapters,
    aloft,
    asking,
    burst_at,
    bursts,
    choices,
    far,
    groups,
    latency,
    links,
    members,
    port_at,
    sending,
    table,
    targets,
    took,
    voq_at,
    voqs,
)
from weft.hosts.flow import time_at
from weft.hosts.state import DATA, MARKED, URGENT, host_at, lose, packet_at, print_, rows
from weft.wire.ethernet import GAP, PREAMBLE

BETWEEN = PREAMBLE + GAP  # bytes of a packet on the wire that do not enter the fabric
_6, _63 = np.uint64(6), np.uint64(63)
_BIRTH = np.uint64((1 << BIRTH) - 1)
_TO, _BORN = np.uint64(TO), np.uint64(BORN)
_ADDRESS = np.uint64((1 << (BORN - TO)) - 1)


@part
def wake(s):
    """Let the fabric move from the next slot on, if it rests."""
    if s.ticking == 0:
        s.ticking = 1
        r = events.take(s, rows(s))
        packet_at(s, r).kind = TICK
        events.push(s, rows(s), r, (s.now // s.slot + 1) * s.slot)


@part
def dispatch(s, kind, v, size, frm, to):
    """Send a control message, of so many bytes of credit, from one adapter to another.

    Elements have a crossbar of their own for control messages (§4.2), so it waits nowhere. What it takes of links is
    charged to them later; while some are dead, it may be lost.
    """
    s.controls += 1
    crossed = np.int64(far(s)[frm * s.adapters + to])
    adapter_at(s, frm).told += s.control_size
    adapter_at(s, to).heard += s.control_size
    for tier in range(2, (crossed >> 1) + 1):
        aloft(s)[tier, 0] += s.control_size
    if s.broken > 0 and not survives(s, frm, to):
        s.control_lost += 1
        if kind == CREDIT:
            s.credits_lost += size
        else:
            s.asked_lost += size
        return
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.seq, p.size = kind, v, size
    leaves = (s.now + s.slot - 1) // s.slot
    events.push(s, rows(s), r, (leaves + max(crossed * s.hop, 1)) * s.slot)


@part
def survives(s, node, to):
    """Whether a control message finds its way by links that are drawn among those that lead there.

    While tables change, devices may send it in a circle: one that has crossed 16 links is lost.
    """
    i = s.controls * 16
    while node != to:
        if i == s.controls * 16 + 16:
            return False
        g = np.int64(table(s)[node * s.adapters + to])
        if g < 0:
            return False
        pick = below(word(np.uint64(s.control_key), i), np.int64(groups(s)[g].count))
        link = links(s)[choices(s)[groups(s)[g].first + pick]]
        if link.dead & 1 != 0:
            return False
        node = np.int64(link.to)
        i += 1
    return True


@hot
def unasked(s, q):
    """Whether the packets of a VOQ need no credit: they are of a class that is sent at once, or its port is faulty."""
    return q.klass >= s.free_class or adapter_at(s, port_at(s, q.host).adapter).fault != 0


@part
def ask(s, v):
    """Ask for the credits that VOQ v needs."""
    q = voq_at(s, v)
    need = q.bytes - q.balance - q.owed
    if q.bytes == 0 or need <= 0 or (q.owed > 0 and need < s.credit) or unasked(s, q):
        return
    if s.whole_credits == 1:
        need = (need + s.credit - 1) // s.credit * s.credit
    q.owed += need
    s.asked += need
    s.requests += 1
    dispatch(s, REQUEST, v, need, np.int64(q.home), np.int64(port_at(s, q.host).adapter))


@part
def serve(s, v):
    """Let VOQ v send what its balance allows, as one burst."""
    q = voq_at(s, v)
    free = unasked(s, q)
    if q.bytes == 0 or (q.balance <= 0 and not free):
        return
    if s.open_loop == 1:
        b, cells, size, shorts, tail = take_units(s, q, free)
    else:
        b, cells, size, shorts, tail = take_packets(s, q, free)
    q.bytes -= size
    if not free:
        q.balance -= size
        s.spent += size
    burst = burst_at(s, b)
    burst.dst = port_at(s, q.host).adapter
    burst.serial, burst.voq, burst.todo, burst.left, burst.came = s.serial, v, cells, cells, 0
    burst.next = burst.after = NONE
    burst.size, burst.done, burst.lost, burst.shorts, burst.tail = size, 0, 0, shorts, tail
    s.serial += 1
    s.bursts_made += 1
    if q.newest == NONE:
        q.oldest = b
    else:
        burst_at(s, q.newest).after = b
    q.newest = b
    if q.home == port_at(s, q.host).adapter:
        s.local += cells
        burst.todo = burst.left = 0
        burst.done = 1
        adapter_at(s, q.home).used -= size
        relax(s, np.int64(q.home))
        deliver(s, v)
        return
    line_up(s, b, np.int64(q.home), q.klass > 0)


@part
def take_packets(s, q, free):
    """What a VOQ may send, taken off its queue: (first row, cells, bytes of packets, cells not full, their bytes).

    Without packing the last cells of packets are each as long as they are on average.
    """
    b = np.int64(q.first)
    r, last = b, b
    cells = size = frames = shorts = np.int64(0)
    while r != NONE and (free or size < q.balance):
        p = packet_at(s, r)
        size += p.size
        frame = np.int64(p.size) - BETWEEN
        frames += frame
        cells += (frame + s.filling - 1) // s.filling
        shorts += 1
        last = r
        r = np.int64(p.next)
    packet_at(s, last).next = NONE
    q.first = r
    if r == NONE:
        q.last = NONE
    if s.packing == 1:
        cells = (frames + s.filling - 1) // s.filling
        shorts = np.int64(1)
    room = cells * s.filling - frames
    return b, cells, size, shorts, s.cell - room // shorts


@part
def take_units(s, q, free):
    """The same of packets that are a cell each and have no row."""
    units = q.bytes // s.cell
    if not free:
        units = min(units, (q.balance + s.cell - 1) // s.cell)
    b = new_burst(s)
    burst_at(s, b).units = units
    return b, units, units * s.cell, np.int64(0), s.cell


@hot
def append(line, high, last):
    """Make `last` the end of a line, of the upper or the lower class, of an adapter or a port; who was, or NONE."""
    before = np.int64(line.last_high if high else line.last)
    if high:
        line.last_high = last
        if before == NONE:
            line.first_high = last
    else:
        line.last = last
        if before == NONE:
            line.first = last
    return before


@hot
def drop_first(line, high, after):
    """Take the first away from such a line; `after` was behind it."""
    if high:
        line.first_high = after
        if after == NONE:
            line.last_high = NONE
    else:
        line.first = after
        if after == NONE:
            line.last = NONE


@hot
def new_burst(s):
    """A row for a burst of packets that have none."""
    b = s.free_burst
    if b != NONE:
        s.free_burst = np.int64(burst_at(s, b).next)
        prefetch(bursts(s), max(s.free_burst, 0))
    else:
        b = s.used_bursts
        s.used_bursts += 1
    s.bursts_alive += 1
    return b


@part
def spread(s, i, size):
    """A packet of one cell has come in at port i, for `size` of `members`: one cell for all that are elsewhere.

    It needs no credit, for no scheduler could give one for all of its ports.
    """
    a = np.int64(port_at(s, i).adapter)
    s.units_in += size
    if adapter_at(s, a).used + s.cell > s.capacity:
        s.drop_full += size
        return
    left = np.int64(0)
    for k in range(size):
        j = np.int64(members(s)[k])
        if port_at(s, j).adapter == a:
            hand(s, j)
        else:
            members(s)[left] = j
            left += 1
    if left == 0:
        return
    b = new_burst(s)
    burst = burst_at(s, b)
    leaves, before = np.int32(0), np.int64(NONE)
    for k in range(s.targets_each):
        targets(s)[np.uint64(b), k] = members(s)[k] if k < left else NONE
        if k < left and port_at(s, members(s)[k]).adapter != before:  # members are in order, and so are adapters
            before = np.int64(port_at(s, members(s)[k]).adapter)
            leaves += 1
    burst.dst = port_at(s, members(s)[0]).adapter
    burst.serial, burst.voq, burst.todo, burst.left, burst.came = s.serial, NONE, 1, leaves, 0
    burst.next = burst.after = NONE
    burst.units = 0
    burst.size, burst.done, burst.lost, burst.shorts, burst.tail = s.cell, 0, 0, 0, s.cell
    s.serial += 1
    s.bursts_made += 1
    ad = adapter_at(s, a)
    ad.used += s.cell
    ad.peak = max(ad.peak, ad.used)
    line_up(s, b, a, False)


@part
def hand(s, j):
    """A copy has come to the port of node j."""
    port = port_at(s, j)
    port.free_at = max(port.free_at, s.now) + s.node_slot
    port.peak = max(port.peak, port.free_at - s.now)
    took(s)[j] += s.filling
    s.units_out += 1


@part
def receive_copy(s, k, cell, t):
    """A cell for several adapters has come to one of them by link k."""
    b = np.int64(cell & ROW)
    burst = burst_at(s, b)
    a = np.int64(links(s)[k].to)
    s.inside -= 1
    s.arrived += 1
    count(s, k, cell, t, burst.serial)
    see(s, a, cell)
    for i in range(s.targets_each):
        j = np.int64(targets(s)[np.uint64(b), i])
        if j != NONE and port_at(s, j).adapter == a:
            hand(s, j)
    burst.left -= 1
    if burst.left == 0:
        burst.next = s.free_burst
        s.free_burst = b
        s.bursts_alive -= 1


@hot
def count(s, k, cell, t, serial):
    """Note how long a cell was in the fabric, and that it has come by link k."""
    took_ = np.int64((np.uint64(t) - (cell >> _BORN)) & _BIRTH)
    s.latency_max = max(s.latency_max, took_)
    latency(s)[np.uint64(min(took_, WAITS - 1))] += 1
    fold(print_(s), t, (np.int64(k) << 40) ^ serial)


@hot
def see(s, a, cell):
    """Adapter a looks at the congestion bit of a cell."""
    ad = adapter_at(s, a)
    ad.seen += 1
    if cell & CONGESTED != ZERO:
        ad.marks += 1
        s.marks += 1


@part
def line_up(s, b, a, high):
    """Put a burst behind those that adapter a has to send."""
    last = append(adapter_at(s, a), high, b)
    if last != NONE:
        burst_at(s, last).next = b
    sending(s)[np.uint64(a) >> _6] |= ONE << (np.uint64(a) & _63)
    s.to_send += 1
    wake(s)


@part
def inject(s, t):
    """Let adapters put cells on their uplinks, as many as those send in a slot, in the order of credits (§3.3)."""
    for w in range(s.sending_size):
        bits = sending(s)[np.uint64(w)]
        while bits != ZERO:
            a = (w << 6) + lowest(bits)
            bits &= bits - ONE
            if bits != ZERO:
                ahead = adapter_at(s, (w << 6) + lowest(bits))
                prefetch(bursts(s), max(np.int64(ahead.first_high), np.int64(ahead.first), 0))
            feed(s, a, t)


@part
def feed(s, a, t):
    """Let adapter a fill its uplinks."""
    ad = adapter_at(s, a)
    each = np.int64(ad.uplinks) * s.cell
    room = min(each, AHEAD * each - np.int64(ad.waiting))
    while room > 0 and (ad.first_high != NONE or ad.first != NONE):
        high = ad.first_high != NONE
        b = np.int64(ad.first_high if high else ad.first)
        burst = burst_at(s, b)
        d = np.int64(burst.dst)
        g = np.int64(table(s)[np.uint64(a * s.adapters + d)])
        cell = np.uint64(b) | (np.uint64(d) << _TO) | ((np.uint64(t) & _BIRTH) << _BORN)
        if burst.voq == NONE:
            cell |= SEVERAL
        if burst.next != NONE:
            prefetch(bursts(s), np.int64(burst.next))
        size, shorts, left = s.cell, np.int64(burst.shorts), np.int64(burst.todo)
        n = left
        while left > 0 and room > 0:
            if left <= shorts:
                cell |= BRIEF
                size = np.int64(burst.tail)
                s.saved += s.cell - size
            left -= 1
            room -= room_of(s, size)
            s.inside += 1
            if g < 0:
                s.lost_route += 1
                miss(s, cell)
            else:
                join(s, next_link(s, g), cell)
                ad.waiting += room_of(s, size)
        burst.todo = left
        s.entered += n - left
        if burst.todo == 0:
            ad.used -= burst.size
            s.to_send -= 1
            drop_first(ad, high, burst.next)
            relax(s, a)
    if ad.first_high == NONE and ad.first == NONE:
        sending(s)[np.uint64(a) >> _6] &= ~(ONE << (np.uint64(a) & _63))


@hot
def receive(s, k, cell, t):
    """A cell has come to its adapter by link k."""
    b = np.int64(cell & ROW)
    burst = burst_at(s, b)
    burst.left -= 1
    burst.came += 1
    s.inside -= 1
    s.arrived += 1
    count(s, k, cell, t, burst.serial)
    a = (cell >> _TO) & _ADDRESS
    ad = adapter_at(s, a)
    ad.open += 1
    if ad.open > ad.most:
        ad.most = ad.open
    see(s, a, cell)
    if burst.left == 1:
        prefetch(voqs(s), np.int64(burst.voq))
    if burst.left == 0 and burst.lost == 0:
        burst.done = 1
        deliver(s, np.int64(burst.voq))


@part
def miss(s, cell):
    """A cell is lost: what it belongs to is given up when the timer of reassembly is over (§4.1)."""
    b = np.int64(cell & ROW)
    burst = burst_at(s, b)
    burst.left -= 1
    s.inside -= 1
    fold(print_(s), ~s.now, burst.serial)
    if burst.lost == 0:
        burst.lost = 1
        r = events.take(s, rows(s))
        p = packet_at(s, r)
        p.kind, p.seq = EXPIRY, b
        events.push(s, rows(s), r, s.now + s.patience)


@part
def expire(s, r):
    """The timer of a burst is over. True if it has to be set again: some of its cells are still on their way."""
    burst = burst_at(s, packet_at(s, r).seq)
    if burst.left > 0:
        events.push(s, rows(s), r, s.now + s.patience)
        return True
    burst.done = 1
    deliver(s, np.int64(burst.voq))
    return False


@part
def deliver(s, v):
    """Hand the port of VOQ v what is whole and in order."""
    q = voq_at(s, v)
    h = np.int64(q.host)
    port = port_at(s, h)
    ad = adapter_at(s, port.adapter)
    while q.oldest != NONE and burst_at(s, q.oldest).done == 1:
        b = np.int64(q.oldest)
        burst = burst_at(s, b)
        q.oldest = burst.after
        if q.oldest == NONE:
            q.newest = NONE
        ad.open -= burst.came
        if s.open_loop == 1:
            if burst.lost == 0:
                port.free_at = max(port.free_at, s.now) + burst.units * s.node_slot
                took(s)[h] += burst.units * s.filling
                s.units_out += burst.units
            else:
                s.units_lost += burst.units
            burst.next = s.free_burst
            s.free_burst = b
            s.bursts_alive -= 1
        else:
            send_on(s, b, h, burst.lost == 1)
        port.peak = max(port.peak, port.free_at - s.now)


@part
def send_on(s, r, h, lost):
    """Send the packets of a burst to host h, or lose them."""
    port = port_at(s, h)
    while r != NONE:
        p = packet_at(s, r)
        after = np.int64(p.next)
        if lost:
            s.drop_late += 1
            lose(s, r)
        else:
            port.free_at = max(port.free_at, s.now) + time_at(np.int64(p.size), host_at(s, h).rate)
            p.port = DOWN
            events.push(s, rows(s), r, port.free_at + s.delay)
        r = after


@part
def accept(s, r):
    """A packet has come from its host: put it into its VOQ, unless the buffer is full."""
    p = packet_at(s, r)
    source = min(max(np.int64(p.path), 0), s.hosts_size - 1)  # a checkpoint may say anything
    a = np.int64(port_at(s, source).adapter)
    ad = adapter_at(s, a)
    if ad.used + p.size > s.capacity:
        s.drop_full += 1
        lose(s, r)
        return
    high = 1 if s.levels > 1 and p.flags & URGENT != 0 else 0
    v = ((source if s.fine == 1 else a) * s.hosts_size + np.int64(p.dst)) * s.levels + high
    q = voq_at(s, v)
    if s.mark_above > 0 and p.kind == DATA and q.bytes > s.mark_above:
        p.flags |= MARKED
    p.next = NONE
    if q.first == NONE:
        q.first = r
    else:
        packet_at(s, q.last).next = r
    q.last = r
    grow(s, v, np.int64(p.size))


@part
def grow(s, v, size):
    """So many bytes more wait in VOQ v: send them if its balance allows, else ask."""
    q = voq_at(s, v)
    ad = adapter_at(s, q.home)
    q.bytes += size
    ad.used += size
    if ad.used > ad.peak:
        ad.peak = ad.used
    if s.pausing == 1 and ad.stopped == 0 and ad.used > s.stop_above:
        tell(s, np.int64(q.home), 1)
    if q.balance > 0 or q.klass >= s.free_class or adapter_at(s, port_at(s, q.host).adapter).fault != 0:
        serve(s, v)
    ask(s, v)


@part
def relax(s, a):
    """Let the hosts of adapter a send again, if there is room for what they will."""
    ad = adapter_at(s, a)
    if ad.stopped == 1 and ad.used <= s.go_below:
        tell(s, a, 0)


@part
def tell(s, a, stop):
    """Send a pause, or its end, to every host of adapter a (§5.4)."""
    ad = adapter_at(s, a)
    ad.stopped = stop
    ad.stops += stop
    for h in range(s.hosts_size):
        if port_at(s, h).adapter == a:
            r = events.take(s, rows(s))
            p = packet_at(s, r)
            p.kind, p.dst, p.seq = PAUSE, h, stop
            events.push(s, rows(s), r, s.now + s.pause_way)


@part
def on_credit(s, v, size):
    """A credit has come to VOQ v."""
    q = voq_at(s, v)
    s.asked += max(size - q.owed, 0)  # of one that it has asked for anew
    q.owed = max(q.owed - size, 0)
    q.balance += size
    s.credit_bytes_got += size
    s.credits_got += 1
    serve(s, v)
    ask(s, v)


@part
def on_request(s, v, size):
    """VOQ v asks the scheduler of its port for credits of so many bytes."""
    q = voq_at(s, v)
    s.reached += size
    q.want += size
    if q.want > size:
        return
    h = np.int64(q.host)
    port = port_at(s, h)
    if port.first == NONE and port.first_high == NONE:
        port.credit_at = max(port.credit_at, s.now)
        asking(s)[np.uint64(h) >> _6] |= ONE << (np.uint64(h) & _63)
        s.asking_count += 1
    enlist(s, port, v)
    wake(s)


@part
def enlist(s, port, v):
    """Put VOQ v at the end of the round of its class."""
    q = voq_at(s, v)
    q.next = NONE
    last = append(port, q.klass > 0, v)
    if last != NONE:
        voq_at(s, last).next = v


@part
def give_credits(s):
    """Let every port with VOQs that want credits give those that are due."""
    for w in range(s.asking_size):
        bits = asking(s)[np.uint64(w)]
        while bits != ZERO:
            h = (w << 6) + lowest(bits)
            bits &= bits - ONE
            if bits != ZERO:
                prefetch(voqs(s), np.int64(port_at(s, (w << 6) + lowest(bits)).first))
            schedule(s, h)


@part
def schedule(s, h):
    """Give the credits of port h that are due: round robin within a class, and between classes as the policy says."""
    port = port_at(s, h)
    if port.free_at - s.now > port.watermark:
        port.credit_at = max(port.credit_at, s.now)
        return
    factor = np.int64(adapter_at(s, port.adapter).factor)
    while port.credit_at <= s.now and s.rows_size - s.alive > 16:
        high = port.first_high != NONE and (port.first == NONE or s.policy == 0 or port.served < s.policy)
        v = np.int64(port.first_high if high else port.first)
        if v == NONE:
            break
        q = voq_at(s, v)
        if q.next != NONE:
            prefetch(voqs(s), np.int64(q.next))
        drop_first(port, high, q.next)
        port.served = port.served + 1 if high else 0
        size = min(q.want, s.credit)
        q.want -= size
        if q.want > 0:
            enlist(s, port, v)
        s.credits_sent += 1
        s.credit_bytes += size
        port.credit_at += max(port.interval * size // s.credit * FULL // factor, 1)
        dispatch(s, CREDIT, v, size, np.int64(port.adapter), np.int64(q.home))
    if port.first == NONE and port.first_high == NONE:
        asking(s)[np.uint64(h) >> _6] &= ~(ONE << (np.uint64(h) & _63))
        s.asking_count -= 1


@part
def throttle(s):
    """Let adapters that saw congestion give fewer credits for a while, and others more again (§4.2).

    The paper does not say how. Ours is as DCTCP does it: by the share of cells that were marked.
    """
    all_adapters = adapters(s)
    for a in range(s.adapters):
        ad = all_adapters[a]
        if ad.marks > 0:
            part = np.int64(ad.marks) * FULL // np.int64(ad.seen)
            ad.factor = max(ad.factor - (np.int64(ad.factor) * s.cut * part >> 20), FULL >> 4)
            s.throttled += 1
        else:
            ad.factor = min(ad.factor + s.gain, FULL)
        ad.marks = ad.seen = 0
