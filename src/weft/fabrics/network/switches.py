"""Links, queues and switches: what happens to a packet between two hosts.

A drop-tail port needs no event of its own. It is first come, first served, so the moment a packet leaves is known when
it is accepted: after everything accepted before it. Drop, mark and arrival at the far end are decided there, in one
event a hop. Only the first of the packets that a port has accepted is in the event queue; the others wait behind it,
their times and numbers already theirs, so that the queue is as long as there are busy ports.

Ports where a later packet may overtake (trimming, priorities) keep two linked queues and choose when they are free. The
choice shows only when the packet being sent has crossed the link or another one arrives, so it is made lazily, by
`settle`, at the first of these. Only where other ports depend on the moment a packet leaves (pauses, shared buffers) is
there a FREE event at that moment.

A record such as `port` is a view of its row: assigning to its fields writes there.
"""

import numpy as np

from weft.engine import events
from weft.engine.bits import either, prefetch
from weft.engine.jit import hot, part
from weft.engine.random import below, word
from weft.fabrics.network.state import (
    DROPTAIL,
    FREE,
    LOSSLESS,
    PAUSE,
    PRIORITY,
    RESUME,
    SHARED,
    TRIM,
    buffered,
    choices,
    group,
    home_at,
    pool,
    port_at,
    row,
    table,
)
from weft.hosts.flow import time_at
from weft.hosts.state import (
    BOUNCED,
    DATA,
    MARKED,
    ROUND_ROBIN,
    STRICT,
    TRIMMED,
    URGENT,
    flow_at,
    host_at,
    lose,
    packet_at,
    rows,
)
from weft.topology.routes import HERE, NO_ROUTE

MOST_PATHS = 1 << 30
CHANCES = 1 << 20  # in what marking probabilities are counted


@hot
def wire_time(port, size):
    """Picoseconds that `size` bytes occupy a port."""
    if port.pace > 0:
        return size * port.pace
    return time_at(size, port.rate)


@hot
def congested(s, k, level):
    """Whether a packet that finds `level` in front of it at port k is to be marked."""
    port = port_at(s, k)
    if level <= port.mark_from:
        return False
    if level > port.mark_all:
        return True
    chance = s.mark_chance * (level - port.mark_from) // (port.mark_all - port.mark_from)
    port.draws += 1
    return below(word(s.key ^ np.uint64(k), port.draws), CHANCES) < chance


@hot
def accept_fifo(s, r, k, took):
    """Queue packet r, which takes `took` ps, at drop-tail port k, or lose it; its arrival is scheduled here."""
    port, p = port_at(s, k), packet_at(s, r)
    now = s.now
    if port.up == 0:
        port.dropped += 1
        s.drop_down += 1
        lose(s, r)
        return
    backlog = port.busy - now
    if backlog < 0:
        port.idle -= backlog
        port.busy = now
        backlog = np.int64(0)
    if port.host == 0:
        if backlog + took > port.capacity:
            port.dropped += 1
            s.drop_full += 1
            lose(s, r)
            return
        if p.kind == DATA and congested(s, k, backlog):
            p.flags |= MARKED
            port.marked += 1
            s.marks += 1
        if backlog + took > port.peak:
            port.peak = backlog + took
    port.busy = now + backlog + took
    p.port = k
    p.epoch = port.epoch
    p.time = port.busy + port.delay
    p.order = events.number(s)
    if port.packets == 0:
        events.enqueue(s, rows(s), r)
    else:  # without a branch for the first that waits: its own `next` means nothing while it is the last
        first = port.packets == 1
        port.head = either(first, r, np.int64(port.head))
        packet_at(s, either(first, r, np.int64(port.tail))).next = r
        port.tail = r
    port.packets += 1


@hot
def follow(s, k):
    """Drop-tail port k has delivered a packet: schedule the arrival of the one behind it."""
    port = port_at(s, k)
    port.packets -= 1
    if port.packets > 0:
        r = np.int64(port.head)
        port.head = packet_at(s, r).next
        prefetch(rows(s), np.int64(port.head))  # a packet's time ahead
        events.enqueue(s, rows(s), r)


@hot
def _push_back(s, r, k, high):
    """Put packet r at the end of one of the queues of port k."""
    port, p = port_at(s, k), packet_at(s, r)
    p.next = events.NONE
    if high:
        if port.packets_high == 0:
            port.head_high = r
        else:
            packet_at(s, port.tail_high).next = r
        port.tail_high = r
        port.packets_high += 1
        port.bytes_high += p.size
    else:
        if port.packets == 0:
            port.head = r
        else:
            packet_at(s, port.tail).next = r
        port.tail = r
        port.packets += 1
        port.bytes += p.size
    if port.host == 0:
        port.peak = max(port.peak, port.bytes + port.bytes_high)
        port.peak_packets = max(port.peak_packets, port.packets + port.packets_high)


@hot
def _wake_later(s, k):
    """Have port k woken as soon as it is free."""
    port = port_at(s, k)
    if port.timed == 0:
        port.timed = 1
        timer = events.take(s, rows(s))
        packet_at(s, timer).kind = FREE
        packet_at(s, timer).port = k
        events.push(s, rows(s), timer, max(port.busy, s.now))


@part
def _send_pause_frame(s, came, kind):
    """Send a pause or resume frame to the sender of port `came`, ahead of all data, unless the link is down."""
    if port_at(s, came ^ 1).up == 0:
        return
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.flags, p.sub, p.dst, p.flow, p.id, p.seq, p.size = kind, 0, 0, -1, -1, -1, came, s.smallest
    s.conserved_in += 1
    _push_back(s, r, came ^ 1, True)
    _wake_later(s, came ^ 1)


@hot
def stop_above(s, node):
    """Bytes that may wait in switch `node` from one port before its sender is told to pause."""
    if s.share == 0:
        return s.xoff
    return s.share * (pool(s)[np.uint64(node)] - buffered(s)[np.uint64(node)]) >> 10


@hot
def _hold(s, r, k):
    """Put a data packet in the low queue of port k and on the accounts of its switch."""
    port, p = port_at(s, k), packet_at(s, r)
    _push_back(s, r, k, False)
    if port.host == 1:
        return
    buffered(s)[np.uint64(port.frm)] += p.size
    if s.queue == LOSSLESS:
        came = port_at(s, p.port)
        came.ingress += p.size
        if came.stopped == 0 and came.ingress > stop_above(s, port.frm):
            came.stopped = 1
            came.pauses += 1
            s.pauses += 1
            _send_pause_frame(s, np.int64(p.port), PAUSE)


@hot
def _unhold(s, r, k):
    """Take a data packet that has left the low queue of port k off the accounts of its switch."""
    port, p = port_at(s, k), packet_at(s, r)
    if port.host == 1:
        return
    buffered(s)[np.uint64(port.frm)] -= p.size
    if s.queue == LOSSLESS:
        came = port_at(s, p.port)
        came.ingress -= p.size
        enough = came.ingress <= stop_above(s, port.frm) - (s.xoff - s.xon)
        if came.stopped == 1 and (enough or came.ingress == 0):
            came.stopped = 0
            s.resumes += 1
            _send_pause_frame(s, np.int64(p.port), RESUME)


@part
def begin(s, k, at):
    """Send the next packet of port k, idle since `at`, if it has one that may go; arrange for the one behind it."""
    port = port_at(s, k)
    low = port.packets > 0 and port.paused == 0
    high = port.packets_high > 0 and (not low or s.prefer == STRICT or port.turn < s.prefer)
    if high:
        r = np.int64(port.head_high)
        p = packet_at(s, r)
        port.head_high = p.next
        port.packets_high -= 1
        port.bytes_high -= p.size
        if port.turn < STRICT:
            port.turn += 1
    elif low:
        r = np.int64(port.head)
        p = packet_at(s, r)
        port.head = p.next
        port.packets -= 1
        port.bytes -= p.size
        port.turn = 0
        _unhold(s, r, k)
        if port.host == 1 and host_at(s, port.frm).blocked == 1:
            s.has_room = np.int64(port.frm)
    else:
        return
    port.idle += at - port.busy
    port.busy = at + wire_time(port, p.size)
    p.port = k
    p.epoch = port.epoch
    events.push(s, rows(s), r, port.busy + port.delay)
    if s.lazy == 0 and (port.packets_high > 0 or (port.packets > 0 and port.paused == 0)):
        _wake_later(s, k)


@hot
def settle(s, k):
    """Send the packets of port k whose turn has come since it was last settled."""
    port = port_at(s, k)
    while port.busy <= s.now and port.packets + port.packets_high > 0:
        begin(s, k, port.busy)


@hot
def wake(s, k):
    """Let port k send if it is idle, or see to it that it will."""
    port = port_at(s, k)
    if port.timed == 0:
        if port.busy <= s.now:
            begin(s, k, s.now)
        elif s.lazy == 0:
            _wake_later(s, k)


@hot
def _replace_tail(s, r, k):
    """Put packet r in the place of the last of the low queue of port k, and return that one."""
    port = port_at(s, k)
    last = np.int64(port.tail)
    port.packets -= 1
    port.bytes -= packet_at(s, last).size
    if port.packets > 0:
        q = port.head
        while packet_at(s, q).next != last:
            q = packet_at(s, q).next
        port.tail = q
    _unhold(s, last, k)
    _hold(s, r, k)
    return last


@part
def _return_header(s, r, k):
    """Send a header that finds no room at port k back to its sender, which is to forward it, or lose it: NONE."""
    port, p = port_at(s, k), packet_at(s, r)
    trimmed = s.queue == TRIM and p.kind == DATA
    if s.bounce == 1 and trimmed and p.flags & BOUNCED == 0 and flow_at(s, p.flow).id == p.id:
        p.flags |= BOUNCED
        p.dst = flow_at(s, p.flow).src
        p.path = p.seq
        s.bounces += 1
        return np.int64(r)
    port.dropped += 1
    s.drop_full += 1
    lose(s, r)
    return np.int64(events.NONE)


@part
def accept_queue(s, r, k):
    """Queue packet r at a port with priorities. The row of a header turned round, to be forwarded again, or NONE."""
    port, p = port_at(s, k), packet_at(s, r)
    if port.up == 0:
        port.dropped += 1
        s.drop_down += 1
        lose(s, r)
        return events.NONE
    if s.lazy == 1:
        settle(s, k)
    high = p.kind != DATA or p.flags & TRIMMED != 0 or (p.flags & URGENT != 0 and s.queue == PRIORITY)
    if s.queue == SHARED:
        high = False
    if not high and port.host == 0:
        room = port.capacity
        if s.share > 0:
            room = s.share * (pool(s)[np.uint64(port.frm)] - buffered(s)[np.uint64(port.frm)]) >> 10
        if s.queue == TRIM:
            if port.packets > 0 and port.bytes + p.size > room:
                port.draws += 1
                if s.trim_tail == 1 and below(word(s.key ^ np.uint64(k), port.draws), 2) == 1:
                    r = _replace_tail(s, r, k)
                    p = packet_at(s, r)
                p.flags |= TRIMMED
                p.size = s.smallest
                port.trimmed += 1
                s.trims += 1
                high = True
        elif s.queue == LOSSLESS:
            if port_at(s, p.port).ingress + p.size > s.ingress_limit:
                port.dropped += 1
                s.drop_lossless += 1
                lose(s, r)
                return events.NONE
        elif port.bytes + p.size > room:
            port.dropped += 1
            s.drop_full += 1
            lose(s, r)
            return events.NONE
        if not high and p.kind == DATA and congested(s, k, port.bytes):
            p.flags |= MARKED
            port.marked += 1
            s.marks += 1
    back = np.int64(events.NONE)
    if high and port.host == 0 and port.bytes_high + p.size > s.capacity_high:
        back = _return_header(s, r, k)
    elif high:
        _push_back(s, r, k, True)
    else:
        _hold(s, r, k)
    wake(s, k)
    return back


@hot
def accept(s, r, k):
    """Queue packet r at port k. The row of a header that was turned round there, or NONE."""
    if s.queue == DROPTAIL:
        accept_fifo(s, r, k, wire_time(port_at(s, k), packet_at(s, r).size))
        return np.int64(events.NONE)
    return np.int64(accept_queue(s, r, k))


@hot
def route(s, r, node):
    """The port by which packet r leaves `node`, or NONE if there is no way."""
    p = packet_at(s, r)
    place = row(s)[np.uint64(node)]
    if place < 0:
        return np.int64(-1 - place)
    home = home_at(s, p.dst)
    g = table(s)[np.uint64(place), np.uint64(home.anchor)]
    if g < 0:
        return np.int64(home.down if g == HERE else NO_ROUTE)
    those = group(s)[np.uint64(g)]
    first, count = those[0], those[1]
    if count == 1:
        return np.int64(choices(s)[np.uint64(first)])
    if s.routing == ROUND_ROBIN:
        turn = those[2]
        those[2] = turn + 1 if turn + 1 < count else 0
        return np.int64(choices(s)[np.uint64(first + turn)])
    path, among = np.uint32(p.path), np.uint32(count)
    left = path // among
    p.path = left
    return np.int64(choices(s)[np.uint64(first) + np.uint64(path - left * among)])


@part
def forward(s, r, node):
    """Pass packet r on from `node`."""
    again = r
    while again != events.NONE:
        k = route(s, again, node)
        if k == NO_ROUTE:
            s.drop_route += 1
            lose(s, again)
            return
        again = accept(s, again, k)


@part
def paths_between(s, src, dst):
    """The number of shortest paths, as the product of the choices along the first of them."""
    node = np.int64(src)
    paths = np.int64(1)
    for _ in range(64):
        place = row(s)[node]
        if place < 0:
            node = port_at(s, -1 - place).to
            if node == dst:
                return paths
            continue
        g = table(s)[place, home_at(s, dst).anchor]
        if g < 0:
            return paths
        paths *= group(s)[g, 1]
        node = port_at(s, choices(s)[group(s)[g, 0]]).to
        if node == dst or paths >= MOST_PATHS:
            return paths
    return paths


@hot
def waiting(s, host):
    """Data packets that wait on the port of a host; a drop-tail port is never held up, and counts those on the wire."""
    if s.queue == DROPTAIL:
        return np.int64(0)
    place = row(s)[np.uint64(host)]
    return np.int64(port_at(s, -1 - place if place < 0 else host_at(s, host).port).packets)


@part
def fail(s, k):
    """Cut port k: what it holds and what is on its wire is lost."""
    port = port_at(s, k)
    if s.lazy == 1:
        settle(s, k)
    port.up = 0
    port.epoch += 1
    port.idle += max(s.now - port.busy, 0)
    port.busy = s.now
    if s.queue == DROPTAIL:  # what is on its way is lost when it would have arrived, each at its own time
        while port.packets > 1:
            follow(s, k)
        port.packets = 0
        return
    while port.packets_high > 0:
        r = np.int64(port.head_high)
        port.head_high = packet_at(s, r).next
        port.packets_high -= 1
        port.bytes_high -= packet_at(s, r).size
        s.drop_down += 1
        lose(s, r)
    while port.packets > 0:
        r = np.int64(port.head)
        port.head = packet_at(s, r).next
        port.packets -= 1
        port.bytes -= packet_at(s, r).size
        _unhold(s, r, k)
        s.drop_down += 1
        lose(s, r)


@part
def repair(s, k):
    """Bring port k back, empty and not paused."""
    port = port_at(s, k)
    port.up = 1
    port.paused = 0
    port.stopped = 0


@hot
def freed(s, k):
    """Port k was to be woken now."""
    port = port_at(s, k)
    port.timed = 0
    if port.busy <= s.now:
        begin(s, k, s.now)
    elif port.packets + port.packets_high > 0:  # it failed and came back meanwhile
        _wake_later(s, k)


@hot
def on_pause_frame(s, r):
    """Obey the pause or resume frame r, which has just arrived; it names the port it is about."""
    p = packet_at(s, r)
    port = port_at(s, p.seq)
    now = s.now
    if p.kind == PAUSE and port.paused == 0:
        port.paused = 1
        port.paused_at = now
    elif p.kind == RESUME and port.paused == 1:
        port.paused = 0
        port.paused_for += now - port.paused_at
        wake(s, np.int64(p.seq))


@hot
def _account(s, b, sign, held):
    """Add to `held`, or take from it, what waits at port b, each packet under the port it came by."""
    if port_at(s, b).host == 1:
        return  # what waits there came by no port
    r = port_at(s, b).head
    for _ in range(port_at(s, b).packets):
        held[packet_at(s, r).port] += sign * packet_at(s, r).size
        r = packet_at(s, r).next


@part
def free_movable(s, stuck, held):
    """Of the paused ports of a lossless network, which are 1 in `stuck`, leave those that can never move again.

    A paused port a is waiting for the switch it leads to; that one resumes it when enough of the bytes that came by a
    have left. If more than that wait in ports which are themselves stuck, they never will. The largest set of ports of
    which this is true is found by beginning with all paused ports and taking away those that can move.
    stuck (ports,) uint8; held (ports,) int64, zeros, counts what came by a port and waits at one that is stuck.
    """
    for b in range(stuck.size):
        if stuck[b] == 1:
            _account(s, b, 1, held)
    moved = True
    while moved:
        moved = False
        for a in range(stuck.size):
            if stuck[a] == 1 and held[a] <= max(stop_above(s, port_at(s, a).to) - (s.xoff - s.xon), 0):
                stuck[a] = 0
                _account(s, a, -1, held)
                moved = True
