"""The kernels of Stardust: a slot of the fabric, the loop of hosts around it, and traffic that has no hosts.

Cells cross links in slots, one cell of a link's rate long, in step in all of the fabric; hosts, ports and schedulers
live in ps. While anything moves, a row of kind TICK comes with every slot:

    units           traffic without hosts makes its packets
    give_credits    schedulers of ports give what is due
    pass_on         cells that have crossed a link join the next queue, or are at their adapter
    inject          adapters put cells on their uplinks
    transmit        every queue sends a cell

Control messages are rows of their own, due when they arrive.
"""

import numpy as np

from weft.engine import events
from weft.engine.bits import lowest, prefetch
from weft.engine.jit import bare, hot, part
from weft.engine.random import below, key, word
from weft.fabrics.stardust.adapter import (
    accept,
    ask,
    expire,
    give_credits,
    grow,
    inject,
    miss,
    on_credit,
    on_request,
    receive,
    receive_copy,
    spread,
    throttle,
    wake,
)
from weft.fabrics.stardust.element import (
    CONGESTED,
    NONE,
    ONE,
    ROW,
    SEVERAL,
    ZERO,
    charge,
    join,
    leave,
    look,
    next_link,
    tally,
    transmit,
    worth,
)
from weft.fabrics.stardust.state import (
    ALL,
    CREDIT,
    DIGIT,
    DOWN,
    EXPIRY,
    HELD,
    LEFT,
    MOST_ADAPTERS,
    OTHERS,
    PAUSE,
    REQUEST,
    TICK,
    TO,
    UP,
    adapters,
    asking,
    bursts,
    choices,
    flying,
    gate_at,
    groups,
    keep,
    latency,
    lengths,
    lines,
    link_at,
    links,
    members,
    other,
    picked,
    port_at,
    ports,
    queued,
    slack,
    slots,
    stash,
    streams,
    table,
    targets,
    took,
    voq_at,
    voqs,
    wire,
    working,
)
from weft.hosts import loop, nic
from weft.hosts.dcqcn import DCQCN
from weft.hosts.flow import time_at
from weft.hosts.loop import DONE, GROW_ROWS, GROW_SLOTS, PAUSED, Network
from weft.hosts.ndp import NDP
from weft.hosts.state import DATA, host_at, packet_at, rows
from weft.hosts.tcp import TCP
from weft.workload.traffic import MEMBERS
from weft.workload.traffic import ONE as WHOLE

__all__ = ("DONE", "GROW_ROWS", "GROW_SLOTS", "PAUSED", "advance", "cut", "disturb", "measure", "mend", "renew")

_32, _LOW = np.uint64(32), np.uint64(WHOLE - 1)
_WHOLE = np.int64(WHOLE)
_TO, _ADDRESS = np.uint64(TO), np.uint64(MOST_ADAPTERS - 1)
_6 = np.uint64(6)
CHOSEN = 64  # cells that may have chosen links before they join them


@part
def pass_on(s, at, t):
    """Let cells that have crossed their link go on: `at` is where this slot's cells lie on the wires."""
    cross(s, wire(s)[0, at], flying(s)[0, at], t)
    for place in range(1, s.wire_size):  # of cells that share the slot with short ones
        bits_on = flying(s)[place, at]
        if some(bits_on):
            cross(s, wire(s)[place, at], bits_on, t)
            bits_on[:] = ZERO


@hot
def some(bits_on):
    """Whether any bit is set."""
    found = ZERO
    for w in range(bits_on.size):
        found |= bits_on[np.uint64(w)]
    return found != ZERO


@part
def cross(s, line, bits_on, t):
    """Let the cells of `line` that `bits_on` names go on."""
    all_links, to, chosen, carried = links(s), table(s), picked(s), stash(s)
    for w in range(s.queued_size):
        ahead = np.uint64(min(w + 1, s.queued_size - 1))
        bits = bits_on[ahead]
        while bits != ZERO:  # what the cells of the next links need
            k = (ahead << _6) + np.uint64(lowest(bits))
            bits &= bits - ONE
            cell = line[k]
            v = np.int64(all_links[k].to)
            if v < s.adapters:
                prefetch(bursts(s), np.int64(cell & ROW))
            else:
                prefetch(to, np.int64(np.uint64(v * s.adapters) + ((cell >> _TO) & _ADDRESS)))
        count = 0
        bits = bits_on[np.uint64(w)]
        while bits != ZERO:
            k = np.uint64(w << 6) + np.uint64(lowest(bits))
            bits &= bits - ONE
            cell = line[k]
            v = np.int64(all_links[k].to)
            if cell & SEVERAL != ZERO:
                count = branch(s, np.int64(k), v, cell, t, count)
                continue
            if v < s.adapters:
                receive(s, np.int64(k), cell, t)
                continue
            g = np.int64(to[np.uint64(v * s.adapters) + ((cell >> _TO) & _ADDRESS)])
            if g < 0:
                s.lost_route += 1
                miss(s, cell)
                continue
            if count == CHOSEN:  # copies have come between
                count = make_room(s)
            n = next_link(s, g)
            prefetch(all_links, n)
            chosen[np.uint64(count)] = n
            carried[np.uint64(count)] = cell
            count += 1
        settle(s, all_links, chosen, carried, count)


@hot
def settle(s, all_links, chosen, carried, count):
    """Let so many cells join the links that they have chosen, when those have come into the cache."""
    for i in range(count):
        n, cell = chosen[np.uint64(i)], carried[np.uint64(i)]
        link = all_links[np.uint64(n)]
        if link.count >= s.fci and worth(s, n, link) >= s.fci:
            cell |= CONGESTED
        join(s, n, cell)


@part
def make_room(s):
    """Let all cells that may have chosen links join them. 0: none is left that has."""
    settle(s, links(s), picked(s), stash(s), CHOSEN)
    return 0


@part
def branch(s, k, v, cell, t, count):
    """A cell for several adapters has come to device v by link k; `count` cells have chosen links before.

    It goes up, as one, until all its adapters lie below, and from there a copy goes to each branch that has some.
    """
    if v < s.adapters:
        receive_copy(s, k, cell, t)
        return count
    b, to = cell & ROW, table(s)
    up = NONE
    if link_at(s, k).down == 0:
        for i in range(s.targets_each):
            j = np.int64(targets(s)[b, i])
            if j != NONE:
                g = np.int64(to[v * s.adapters + port_at(s, j).adapter])
                if choices(s)[groups(s)[g].first] < s.cables:
                    up = g
    s.inside -= 1
    s.copied -= 1
    before = np.int64(NONE)
    for i in range(s.targets_each):
        j = np.int64(targets(s)[b, i])
        if j == NONE:
            break
        g = np.int64(to[v * s.adapters + port_at(s, j).adapter])
        if up != NONE:
            g = up
        elif choices(s)[groups(s)[g].first] < s.cables:
            continue  # another branch's
        if g == before or taken(s, b, v, i, g):
            continue
        before = g
        if count == CHOSEN:
            count = make_room(s)
        picked(s)[np.uint64(count)] = next_link(s, g)
        stash(s)[np.uint64(count)] = cell
        count += 1
        s.inside += 1
        s.copied += 1
        if up != NONE:
            break
    return count


@part
def taken(s, b, v, until, g):
    """Whether a copy for one of the targets before `until` has gone by the links of group g."""
    found = False
    for i in range(until):
        found |= table(s)[v * s.adapters + port_at(s, targets(s)[b, i]).adapter] == g
    return found


@part
def lose(s, k, link, cell):
    """A cell is sent into link k, which is down or corrupts some: whether it is lost."""
    if link.dead & 1 != 0:
        s.lost_link += 1
    elif np.int64(word(word(np.uint64(s.error_key), k), s.now // s.slot) >> _32) < s.noise:
        s.lost_error += 1
        working(s)[k >> 6, OTHERS] |= ONE << (np.uint64(k) & np.uint64(63))
    else:
        return False
    miss(s, cell)
    return True


@part
def tick(s, r):
    """Let a slot pass; row r comes again with the next while anything moves."""
    t = s.now // s.slot
    at = t % s.hop
    s.ticks += 1
    if s.open_loop == 1:
        units(s)
    give_credits(s)
    pass_on(s, at, t)
    inject(s, t)
    transmit(s, at, lose)
    tally(s, at)
    if t >= s.look_at:
        look(s)
        charge(s)
        s.look_at = t + s.hop
    if t >= s.window_at:
        throttle(s)
        s.window_at = t + s.window
    if t >= s.period_at:
        report(s)
        s.period_at = t + s.period
    if s.inside > 0 or s.to_send > 0 or s.asking_count > 0 or s.open_loop == 1:
        events.push(s, rows(s), r, s.now + s.slot)
    else:
        s.ticking = 0
        events.give(s, rows(s), r)


@part
def report(s):
    """Every device sends a reachability message on every link."""
    all_links = links(s)
    for k in range(s.links_size):
        if all_links[k].count > 0:
            all_links[k].debt += s.message
    s.reports += s.links_size


# traffic without hosts


@part
def units(s):
    """Make the packets that have arrived since the last slot, a cell each: the rule of `weft.workload.traffic`."""
    n = s.hosts_size
    while s.unit_at < s.last_unit and (s.unit_at + 1) * s.node_slot <= s.now:
        if s.unit_at == s.warmup:
            forget(s)
        if s.end_chance > 0 or s.fanout > 1:
            for i in range(n):
                bursty(s, i, s.unit_at * n + i)
        else:
            some = members(s)
            for i in range(n):
                drawn = word(np.uint64(s.unit_key), s.unit_at * n + i)
                high, low = np.int64(drawn >> _32), np.int64(drawn & _LOW)
                some[i] = NONE
                if s.whole > 0 or high < s.chance:
                    j = destination(s, i, low)
                    some[i] = j if high < s.chance else j - n - 1  # one fewer
                    source = np.int64(i if s.fine == 1 else port_at(s, i).adapter)
                    prefetch(voqs(s), (source * n + j) * s.levels)
            for i in range(n):
                j = np.int64(some[i])
                if j != NONE:
                    for _ in range(s.whole + (1 if j >= 0 else 0)):
                        unit(s, i, j if j >= 0 else j + n + 1)
        s.unit_at += 1


@part
def bursty(s, i, counter):
    """The packets of input i in traffic that comes in bursts, or is for several nodes at once."""
    drawn = word(np.uint64(s.unit_key), counter)
    high, low = np.int64(drawn >> _32), np.int64(drawn & _LOW)
    if s.fanout > 1:
        if high < s.chance:
            copies(s, i, counter)
        return
    if streams(s)[i] == NONE and high < s.chance:
        streams(s)[i] = destination(s, i, low)
    if streams(s)[i] != NONE:
        unit(s, i, np.int64(streams(s)[i]))
        if np.int64(word(np.uint64(s.end_key), counter) >> _32) < s.end_chance:
            streams(s)[i] = NONE


@hot
def destination(s, i, low):
    """The node that the lower half of input i's word stands for."""
    n = s.hosts_size
    k = low * n // _WHOLE
    if s.keep_size == 1 or low * n % _WHOLE < np.int64(keep(s)[i, k]):
        return k
    return np.int64(other(s)[i, k])


@part
def copies(s, i, counter):
    """A packet for several nodes: a uniform subset of a uniform size (Floyd's algorithm), a copy for each."""
    n, some = s.hosts_size, members(s)
    size = 1 + below(word(np.uint64(s.fanout_key), counter), s.fanout)
    for copy in range(size):
        top = n - size + copy
        j = below(word(key(s.member_seed, MEMBERS + copy), counter), top + 1)
        for k in range(copy):
            if some[k] == j:
                j = np.int64(top)
                break
        k = copy
        while k > 0 and some[k - 1] > j:
            some[k] = some[k - 1]
            k -= 1
        some[k] = j
    if s.branching == 1:
        spread(s, i, size)
        return
    for k in range(size):
        unit(s, i, np.int64(some[k]))


@part
def unit(s, i, j):
    """A packet of one cell has come in at port i, for port j."""
    a = np.int64(port_at(s, i).adapter)
    s.units_in += 1
    if adapters(s)[np.uint64(a)].used + s.cell > s.capacity:
        s.drop_full += 1
        return
    grow(s, ((i if s.fine == 1 else a) * s.hosts_size + j) * s.levels, s.cell)


@part
def forget(s):
    """Begin to measure: what was seen so far was the warm-up."""
    latency(s)[:] = 0
    lengths(s)[:] = 0
    for h in range(s.hosts_size):  # what waits at a port has yet to leave it
        took(s)[h] = max(port_at(s, h).free_at - s.now, 0) // s.node_slot * s.filling
    s.latency_max = 0
    s.measured_from, s.entered_from = s.ticks, s.entered


# the network


@part
def forward(s, r, host):
    """Take packet r from its host."""
    p = packet_at(s, r)
    p.port, p.path = UP, host
    if s.pausing == 1:
        wait(s, r, host)
        return
    events.push(s, rows(s), r, nic.leave(s, host, np.int64(p.size)) + s.delay)


@part
def wait(s, r, h):
    """Put packet r behind those at the port of host h, which can be paused."""
    gate, p = gate_at(s, h), packet_at(s, r)
    p.next = NONE
    if gate.first == NONE:
        gate.first = r
    else:
        packet_at(s, gate.last).next = r
    gate.last = r
    gate.data += 1 if p.kind == DATA else 0
    begin(s, h)


@part
def begin(s, h):
    """Let host h send its next packet, if it may."""
    gate = gate_at(s, h)
    if gate.busy == 1 or gate.paused == 1 or gate.first == NONE:
        return
    r = np.int64(gate.first)
    p = packet_at(s, r)
    gate.first = p.next
    gate.busy = 1
    if p.kind == DATA:
        gate.data -= 1
        if host_at(s, h).blocked == 1:
            s.has_room = h
    left = s.now + time_at(np.int64(p.size), host_at(s, h).rate)
    events.push(s, rows(s), r, left + s.delay)
    free = events.take(s, rows(s))
    packet_at(s, free).kind, packet_at(s, free).dst = LEFT, h
    events.push(s, rows(s), free, left)


@part
def waiting(s, h):
    """Data packets that wait at the port of host h."""
    return np.int64(gate_at(s, h).data) if s.pausing == 1 else 0


@part
def arrive(s, r):
    """Row r is due. True if a packet has reached its host."""
    p = packet_at(s, r)
    if p.kind == TICK:
        tick(s, r)
    elif p.kind == CREDIT:
        v, size = np.int64(p.seq), np.int64(p.size)
        events.give(s, rows(s), r)
        on_credit(s, v, size)
    elif p.kind == REQUEST:
        v, size = np.int64(p.seq), np.int64(p.size)
        events.give(s, rows(s), r)
        on_request(s, v, size)
    elif p.kind == EXPIRY:
        if not expire(s, r):
            events.give(s, rows(s), r)
    elif p.kind == LEFT or p.kind == PAUSE:
        h = np.int64(p.dst)
        if p.kind == LEFT:
            gate_at(s, h).busy = 0
        else:
            gate_at(s, h).paused = p.seq
        events.give(s, rows(s), r)
        begin(s, h)
    elif p.port == DOWN:
        return True
    else:
        accept(s, r)
    return False


@part
def one_path(s, src, dst):
    """To hosts the fabric is one path."""
    return 1


@hot
def look_ahead(s):
    """Prefetch the control messages that are due next, and their VOQs."""
    if s.last - s.first > 8:
        prefetch(rows(s), events.following(s, 8))
        p = packet_at(s, events.following(s, 4))
        if p.kind == CREDIT or p.kind == REQUEST:
            prefetch(voqs(s), np.int64(p.seq))


NETWORK = Network(forward=forward, arrive=arrive, waiting=waiting, paths=one_path, look_ahead=look_ahead)


@bare
def advance_tcp(world, until, budget):
    """Run TCP, DCTCP or MPTCP: see `hosts.loop.advance`."""
    return loop.advance(world[0], until, budget, TCP, NETWORK)


@bare
def advance_ndp(world, until, budget):
    """Run NDP."""
    return loop.advance(world[0], until, budget, NDP, NETWORK)


@bare
def advance_dcqcn(world, until, budget):
    """Run DCQCN."""
    return loop.advance(world[0], until, budget, DCQCN, NETWORK)


@bare
def advance_open(world, until, budget):
    """Run traffic without hosts."""
    s = world[0]
    for _ in range(budget):
        if s.unit_at >= s.last_unit:
            return DONE
        if min(s.rows_size - s.alive, s.bursts_size - s.bursts_alive) < s.margin:
            return GROW_ROWS
        if s.ticking == 0:
            wake(s)
        r = events.pull(s, rows(s), until)
        if r == events.NONE:
            s.now = max(s.now, until)
            return DONE
        look_ahead(s)
        arrive(s, r)
    return PAUSED


_KERNELS = (advance_tcp, advance_tcp, advance_tcp, advance_ndp, advance_dcqcn)  # as in settings.TRANSPORTS


def advance(world, until: int, budget: int) -> int:
    """Run to `until` inclusive, or for `budget` events, and say why it stopped; only what is needed is compiled."""
    if world["open_loop"][0]:
        return advance_open(world, until, budget)
    return _KERNELS[world["transport"][0]](world, until, budget)


@bare
def measure(world, sent):
    """Write how long every link has sent until now, in ps, into `sent`."""
    s = world[0]
    counts, all_lines, at_work = slots(s), lines(s), working(s)
    now, end = s.now * s.cell // s.slot, (s.sent_at + 1) * s.cell  # in bytes of a link
    for k in range(s.links_size):
        w, b = k >> 6, np.uint64(k & 63)
        busy, p = np.int64(0), 0
        while s.ticks >> p != 0:  # see `tally`
            busy += np.int64(counts[w, p, DIGIT] >> b & ONE) << p
            if s.ticks >> p & 1 != 0:
                busy += np.int64(counts[w, p, HELD] >> b & ONE) << p
            p += 1
        line = all_lines[k]
        busy = busy * s.cell - line.idle
        if at_work[w, ALL] >> b & ONE != ZERO:
            busy -= max(end - now - (line.left if line.at == s.sent_at else 0), 0)
        sent[k] = busy * s.slot // s.cell


# failures


@bare
def cut(world, k):
    """Take link k down, with what is on it and in its queue."""
    s = world[0]
    link = link_at(s, k)
    s.broken += 1 - (link.dead & 1)
    link.dead |= 1
    word_, bit = k >> 6, ONE << (np.uint64(k) & np.uint64(63))
    for place in range(s.wire_size):
        for at in range(s.hop):
            if flying(s)[place, at, word_] & bit != ZERO:
                flying(s)[place, at, word_] &= ~bit
                lose(s, k, link, wire(s)[place, at, k])
    waiting_ = np.int64(link.count) * s.cell - slack(s)[k]
    while link.count > 0:
        cell = leave(s, k, link)
        lose(s, k, link, cell)
    slack(s)[k] = 0
    if k < s.edge:
        adapters(s)[link.frm].waiting -= waiting_
    queued(s)[word_] &= ~bit


@bare
def mend(world, k):
    """Bring link k up."""
    s = world[0]
    s.broken -= link_at(s, k).dead & 1
    link_at(s, k).dead &= 2


@bare
def disturb(world, k, noisy):
    """Let link k corrupt cells from now on (2), or no more (0)."""
    link_at(world[0], k).dead = (link_at(world[0], k).dead & 1) | noisy


@bare
def renew(world):
    """Let every VOQ ask anew, because requests or credits may have been lost: after a change of tables."""
    s = world[0]
    all_ports = ports(s)
    for h in range(s.hosts_size):
        all_ports[h].first = all_ports[h].last = all_ports[h].first_high = all_ports[h].last_high = NONE
    asking(s)[:] = 0
    s.asking_count = 0
    for v in range(s.voqs_size):
        q = voq_at(s, v)
        s.reached -= q.want
        s.asked -= q.owed
        q.want = q.owed = 0
        ask(s, v)
