"""The loop: release the earliest event, or start the next flow, until a time or a number of events is reached."""

import numpy as np

from weft.engine import events
from weft.engine.bits import either, prefetch, prefetch_at
from weft.engine.fingerprint import fold
from weft.engine.jit import bare, hot, part
from weft.engine.memory import LINE
from weft.fabrics.packet.network import fail, flush, follow, forward, free_movable, freed, heed, lose, repair, settle
from weft.fabrics.packet.state import (
    ACK,
    ALPHA,
    BOUNCED,
    CNP,
    DATA,
    DROPTAIL,
    FREE,
    LAST_PACKET,
    LOSSLESS,
    MPTCP,
    NACK,
    NDP,
    PACE,
    PAUSE,
    PORT,
    RAISE,
    RESUME,
    ROUND_ROBIN,
    RTO,
    SUB,
    TURN,
    choices,
    flow_at,
    flows,
    group,
    home_at,
    homes,
    packet_at,
    port_at,
    print_,
    row,
    rows,
    table,
    traffic_at,
)
from weft.fabrics.packet.transports import dcqcn, ndp, tcp
from weft.fabrics.packet.transports.flow import open_slot, send_for_pacer

DONE, PAUSED, GROW_ROWS, GROW_SLOTS = 0, 1, 2, 3  # why `advance` returned
PORT_SIZE, SUB_SIZE = PORT.itemsize, SUB.itemsize
SLACK = 1 << 13  # rows one event may take: a window for each of some subflows


@part
def deliver(s, r):
    """Packet r has reached its host."""
    p = packet_at(s, r)
    fold(print_(s), s.now, (np.int64(p.id) << 32) | (np.int64(p.seq) << 4) | np.int64(p.kind))
    s.conserved_out += 1
    if flow_at(s, p.flow).id == p.id:
        if s.transport <= MPTCP:
            if p.kind == DATA:
                tcp.on_data(s, r)
            else:
                tcp.on_ack(s, r)
        elif s.transport == NDP:
            if p.kind == DATA and p.flags & BOUNCED:
                ndp.on_returned(s, r)
            elif p.kind == DATA:
                ndp.on_data(s, r)
            elif p.kind == ACK:
                ndp.on_ack(s, r)
            elif p.kind == NACK:
                ndp.on_nack(s, r)
            else:
                ndp.on_pull(s, r)
        elif p.kind == DATA:
            dcqcn.on_data(s, r)
        elif p.kind == CNP:
            dcqcn.on_cnp(s, r)
        else:
            dcqcn.on_ack(s, r)
    events.give(s, rows(s), r)


@part
def fire(s, r):
    """Timer r is due."""
    kind = packet_at(s, r).kind
    if s.transport <= MPTCP:
        if kind == RTO:
            tcp.on_timeout(s, r)
        else:
            tcp.on_delayed(s, r)
    elif s.transport == NDP:
        if kind == RTO:
            ndp.on_tick(s, r)
        else:
            ndp.on_pace(s, np.int64(packet_at(s, r).dst))
    elif kind == PACE:
        dcqcn.on_pace(s, np.int64(packet_at(s, r).dst))
    elif kind == TURN:
        dcqcn.on_turn(s, r)
    elif kind == ALPHA:
        dcqcn.on_alpha(s, r)
    elif kind == RAISE:
        dcqcn.on_raise(s, r)
    else:
        dcqcn.on_timeout(s, r)
    events.give(s, rows(s), r)


@hot
def ask_port(s, k):
    """Ask for the lines of port k that its queue needs."""
    at = s.ports_at + k * PORT_SIZE
    prefetch_at(at)
    if s.queue != DROPTAIL:
        prefetch_at(at + LINE)


@hot
def foresee(s):
    """Ask for the next ports, the packets that wait there, and with every event for one row more of the next bucket."""
    ask_port(s, np.int64(packet_at(s, s.soon).port))
    e = packet_at(s, s.sooner)
    prefetch(rows(s), np.int64(port_at(s, e.port).head))
    behind = np.int64(e.next)
    s.sooner = either(behind >= 0, behind, 0)
    prefetch(rows(s), s.sooner)


@part
def foresee_more(s):
    """Of a network that no cache holds, ask for what the next events of this bucket will need: in three steps, each of
    which reads what the one before has asked for."""
    if s.last - s.first > 6:
        ask_first(s, events.following(s, 6))
        ask_second(s, events.following(s, 4))
        ask_third(s, events.following(s, 2))


@hot
def ask_flow(s, p):
    """Ask for the flow of a packet or timer."""
    i = np.int64(p.flow)
    prefetch(flows(s), i)
    at = s.subs_at + (i * s.subflows + np.int64(p.sub)) * SUB_SIZE
    prefetch_at(at)
    prefetch_at(at + LINE)
    prefetch_at(at + 2 * LINE)
    prefetch_at(at + 3 * LINE)


@hot
def ask_first(s, r):
    """Row r is in the cache: ask for the port it names, and for its destination or flow."""
    p = packet_at(s, r)
    if p.kind <= FREE:
        ask_port(s, np.int64(p.port))
        prefetch(homes(s), np.int64(p.dst))
    else:
        ask_flow(s, p)


@hot
def ask_second(s, r):
    """So is its port: ask for the entry of the table where it leads, or for its flow, and for the packet behind it."""
    p = packet_at(s, r)
    if p.kind <= LAST_PACKET:
        port = port_at(s, p.port)
        if s.queue == DROPTAIL:
            prefetch(rows(s), np.int64(port.head))
        if port.to < s.hosts_size:
            ask_flow(s, p)
            ask_port(s, np.int64(-1 - row(s)[port.to]))
        elif row(s)[port.to] >= 0 and p.dst >= 0:
            prefetch(table(s), row(s)[port.to] * s.anchors + home_at(s, p.dst).anchor)
    elif p.kind == FREE:
        port = port_at(s, p.port)
        prefetch(rows(s), np.int64(port.head_high if port.packets_high > 0 else port.head))


@hot
def ask_third(s, r):
    """So is the table: ask for the port by which it goes on; of a port to be freed, for the one its packet came by."""
    p = packet_at(s, r)
    if p.kind <= LAST_PACKET:
        node = port_at(s, p.port).to
        if node >= s.hosts_size and row(s)[node] >= 0 and p.dst >= 0:
            g = table(s)[row(s)[node], home_at(s, p.dst).anchor]
            if g >= 0:
                place = group(s)[g, 0]
                if s.routing == ROUND_ROBIN:
                    place += group(s)[g, 2]
                elif group(s)[g, 1] > 1:
                    place += np.uint32(p.path) % np.uint32(group(s)[g, 1])
                ask_port(s, np.int64(choices(s)[place]))
            else:
                ask_port(s, np.int64(home_at(s, p.dst).down))
    elif p.kind == FREE and s.queue == LOSSLESS:
        head = np.int64(port_at(s, p.port).head)
        if head >= 0:
            prefetch_at(s.ports_at + np.int64(packet_at(s, head).port) * PORT_SIZE + LINE)


@part
def follow_up(s):
    """See to what an event has left: a NIC that has room again, and a pacer called for this very picosecond.

    The event of the pacer would be the next one, unless others are due now; if none is, it need not be an event.
    """
    if s.roomy != events.NONE:
        dcqcn.on_room(s, s.roomy)
        s.roomy = events.NONE
    if s.called != events.NONE:
        if s.live == 0 or not events.alone(s, rows(s)):
            put_off(s)
            return
        at = s.called
        s.called = events.NONE
        if s.transport == NDP:
            ndp.on_pace(s, at)
        else:
            dcqcn.on_pace(s, at)
        flush(s)


@part
def put_off(s):
    """Let the pacer that was called come by an event."""
    send_for_pacer(s, s.called, s.now, s.called_as)
    s.called = events.NONE


@hot
def last_before(s, until):
    """The last moment before the next flow begins, or `until` if it begins later."""
    if s.next_flow == s.traffic_size:
        return until
    return min(until, traffic_at(s, s.next_flow).start - 1)


@bare
def advance(world, until, budget):
    """Run to `until` inclusive, or for `budget` events, and say why it stopped."""
    s = world[0]
    limit = last_before(s, until)
    for _ in range(budget):
        if s.live == 0 and s.next_flow == s.traffic_size:
            return DONE  # what is still on its way is for nobody
        if s.rows_size - s.alive < SLACK:
            return GROW_ROWS
        r = events.pull(s, rows(s), limit)
        if r == events.NONE and limit < until:
            if s.free_slot == events.NONE and s.used_slots == s.flows_size:
                return GROW_SLOTS
            s.now = limit + 1
            slot = open_slot(s, s.next_flow)
            s.next_flow += 1
            if s.transport <= MPTCP:
                tcp.begin(s, slot)
            elif s.transport == NDP:
                ndp.begin(s, slot)
            else:
                dcqcn.begin(s, slot)
            flush(s)
            if s.called != events.NONE:
                put_off(s)  # other flows may begin now too
            limit = last_before(s, until)
            continue
        if r == events.NONE:
            s.now = max(s.now, until)
            return DONE
        foresee(s)
        if s.vast == 1:
            foresee_more(s)
        p = packet_at(s, r)
        if p.kind <= LAST_PACKET:
            s.hops += 1
            port = port_at(s, p.port)
            if s.lazy == 1:
                settle(s, np.int64(p.port))
            if p.epoch != port.epoch:
                s.drop_down += 1
                lose(s, r)
            else:
                if s.queue == DROPTAIL:
                    follow(s, np.int64(p.port))
                if p.kind == PAUSE or p.kind == RESUME:
                    heed(s, r)
                    s.conserved_out += 1
                    events.give(s, rows(s), r)
                elif port.to >= s.hosts_size:
                    forward(s, r, np.int64(port.to))
                else:
                    deliver(s, r)
                    flush(s)
        elif p.kind == FREE:
            k = np.int64(p.port)
            events.give(s, rows(s), r)
            freed(s, k)
        else:
            fire(s, r)
            flush(s)
        while s.roomy != events.NONE or s.called != events.NONE:
            follow_up(s)
    return PAUSED


@bare
def cut(world, k):
    """Take port k down."""
    fail(world[0], k)


@bare
def mend(world, k):
    """Bring port k up."""
    repair(world[0], k)


@bare
def untangle(world, stuck, held):
    """Of the paused ports, which are 1 in `stuck`, leave those that can never move again; `held` is zeros."""
    free_movable(world[0], stuck, held)
