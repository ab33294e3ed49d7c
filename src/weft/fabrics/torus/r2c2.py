"""R2C2: congestion control for direct-connect racks, where every node knows every flow (SIGCOMM '15).

    sender     announces the start of a flow and, when it has sent the last packet, its end, along one of the trees that
               begin at its node, in turn. It sends at once, at the rate of the node or at `first`; its NIC takes
               flows in turn.
    everybody  knows of it when the broadcast has come to the farthest node, and computes the rates of all flows that
               are known (`water.py`) at the next multiple of `period`, if any came or went. All nodes know the same,
               so one computation stands for all of them.
    packets    are paced at that rate, and take a path each.
    routes     are the same for all flows, or chosen for each flow between shortest paths and Valiant, at multiples of
               `choose`: all flows, or a half, a quarter, … of them, drawn, are tried the other way, and stay there if
               that makes the rates of all flows together larger. New flows take shortest paths.
    losses     are made known to the sender after `notice`; it sends the packet again at once, and the next one later.

A broadcast is not a packet of its own at every hop. It takes its bytes on every link of the tree at the moment it is
sent, and passes what waits there: it is heard by the farthest node a delay and its own time later for every hop. Where
copies are lost, the sender hears of it after `notice` and broadcasts again.
"""

import numpy as np

from weft.engine import events
from weft.engine.jit import hot, part
from weft.engine.random import below, word
from weft.fabrics.network.state import port_at
from weft.fabrics.torus import water
from weft.fabrics.torus.settings import CHANCES, CHOICE_STREAM, LOSS_STREAM
from weft.fabrics.torus.state import (
    ANNOUNCED,
    BUSY,
    CHOOSE,
    FORGET,
    FREE,
    GONE,
    HEARD,
    IDLE,
    KNOWN,
    TICK,
    TOLD,
    branch,
    calls,
    entry_at,
    farthest,
    lines,
    port_of,
    toward,
    twigs,
    weights,
)
from weft.hosts.flow import (
    Transport,
    book,
    call_pacer,
    claim,
    close_slot,
    dequeue_flow,
    enqueue_flow,
    new_timer,
    no_room,
    send_segment,
    time_at,
)
from weft.hosts.state import LOST, TURN, flow_at, host_at, packet_at, rows, sub_at, traffic_at

LOSSES, CHOICES = np.uint64(LOSS_STREAM), np.uint64(CHOICE_STREAM)

# fields of a subflow, by what they are here: `stamp` is when the last packet was sent, `target` its bytes, `pulled` the
# entry, `window_end` the moment at which all know of the flow


@part
def hopeless(s, slot):
    """Whether there is no path for a flow, and never will be."""
    flow = flow_at(s, slot)
    return s.settled == 1 and toward(s)[flow.dst, flow.src] == 0


@part
def announce(s, src):
    """Broadcast from a node, again if a copy is lost. The moment at which the last node hears of it."""
    late = np.int64(0)
    while True:
        _cast_out(s, src)
        if below(word(s.key ^ LOSSES, s.broadcasts), CHANCES) >= s.loss_chance:
            return s.now + late + farthest(s)[src] * s.broadcast_hop
        s.lost_broadcasts += 1
        late += s.notice


@part
def _cast_out(s, src):
    """Put a copy of a broadcast on every link of the next tree of a node."""
    tree = calls(s)[src] % s.trees
    calls(s)[src] += 1
    s.broadcasts += 1
    lines_, now, took, all_up = lines(s), s.now, s.broadcast_time, s.broken == 0
    if s.twigs_size > 0:
        row = twigs(s)[np.uint64(src), np.uint64(tree)]
        count = np.uint64(row[np.uint64(s.toward_size - 1)])
        if all_up:  # apart, so that a copy takes a dozen instructions
            for i in range(count):
                _occupy(lines_, np.uint64(row[i]), now, took)
            return
        for i in range(count):
            k = np.uint64(row[i])
            if port_at(s, k).up == 1:
                _occupy(lines_, k, now, took)
        return
    for node in range(s.toward_size):
        k = twig(s, src, node, tree)
        if k != events.NONE and (all_up or port_at(s, k).up == 1):
            _occupy(lines_, k, now, took)


@hot
def _occupy(lines_, k, now, took):
    """Let port k send a broadcast after what it has. Without a branch: whether it waits for one is as good as drawn."""
    idle = max(now - lines_[k, BUSY], 0)
    lines_[k, IDLE] += idle
    lines_[k, BUSY] += idle + took


@hot
def twig(s, src, node, tree):
    """The port by which a broadcast of `src` comes to `node`, or NONE."""
    mask = toward(s)[np.uint64(src), np.uint64(node)]
    if mask == 0:
        return np.int64(events.NONE)
    return np.int64(port_of(s)[np.uint64(node), branch(s)[np.uint64(mask), np.uint64(tree)]] ^ 1)


@part
def _schedule(s, kind, e, time):
    """Schedule what is to be known of entry e."""
    r = events.take(s, rows(s))
    p = packet_at(s, r)
    p.kind, p.seq, p.dst = kind, e, 0
    events.push(s, rows(s), r, time)


@part
def _new_entry(s, slot):
    e = s.free_entry
    if e != events.NONE:
        s.free_entry = np.int64(entry_at(s, e).next)
    else:
        e = s.used_entries
        s.used_entries += 1
    entry, flow = entry_at(s, e), flow_at(s, slot)
    entry.id, entry.slot, entry.src, entry.dst = flow.id, slot, flow.src, flow.dst
    entry.state, entry.ended, entry.spread, entry.count, entry.frozen = ANNOUNCED, 0, s.valiant - s.chosen, 0, 0
    entry.klass = min(np.int64(traffic_at(s, flow.id).klass), s.classes_of_flows - 1)
    entry.weight = weights(s)[entry.klass]
    entry.rate = 0
    return e


@part
def _free_entry(s, e):
    entry = entry_at(s, e)
    entry.state, entry.next = FREE, s.free_entry
    s.free_entry = e


@part
def sort_free(s):
    """Have the free entry of the least number taken first, whatever the order in which they were given back."""
    s.free_entry = np.int64(events.NONE)
    for e in range(s.used_entries - 1, -1, -1):
        if entry_at(s, e).state == FREE:
            entry_at(s, e).next = s.free_entry
            s.free_entry = np.int64(e)


@part
def begin(s, slot):
    """Announce a flow and begin to send it."""
    if hopeless(s, slot):
        s.abandoned += 1
        close_slot(s, slot)
        return
    sub, flow = sub_at(s, slot), flow_at(s, slot)
    sub.pulled = _new_entry(s, slot)
    sub.rate = min(s.start_rate, water.asks_for(s, entry_at(s, sub.pulled)))
    sub.window_end = announce(s, np.int64(flow.src))
    _schedule(s, KNOWN, sub.pulled, sub.window_end)
    _ready(s, slot)


@part
def _ready(s, slot):
    """Put a flow that has something to send, and whose time has come, in the queue for its NIC; else wait."""
    sub, flow = sub_at(s, slot), flow_at(s, slot)
    if flow.queued == 1 or sub.timer_wait != events.NONE or flow.taken == flow.segments:
        return
    if sub.wait > s.now:
        sub.timer_wait = new_timer(s, slot, 0, TURN, sub.wait)
        return
    enqueue_flow(s, slot, flow.src)
    _call(s, np.int64(flow.src))


@part
def _call(s, at):
    """Have the NIC of a node take the next flow as soon as it can."""
    host = host_at(s, at)
    if host.pacing == 0 and host.first != events.NONE:
        call_pacer(s, at)


@part
def on_pace(s, at, waiting):
    """The NIC of a node is free for a packet."""
    host_at(s, at).pacing = 0
    slot = dequeue_flow(s, at)
    if slot != events.NONE:
        _send(s, at, slot)


@part
def _send(s, at, slot):
    """Send the next packet of a flow, and see to what comes after it."""
    host, sub, flow = host_at(s, at), sub_at(s, slot), flow_at(s, slot)
    claim(s, slot, slot)
    send_segment(s, slot, 0, sub.nxt)
    sub.nxt += 1
    size = np.int64(packet_at(s, s.last_out).size)
    host.free_at = s.now + time_at(size, host.rate)
    sub.stamp, sub.target = s.now, size
    sub.wait = s.now + time_at(size, sub.rate)
    if flow.taken == flow.segments:
        entry_at(s, sub.pulled).ended = 1
        _schedule(s, FORGET, sub.pulled, max(announce(s, at), sub.window_end + 1))
    _ready(s, slot)
    _call(s, at)


@part
def on_lost(s, r):
    """The sender hears that packet r was lost: send it again, and the next one so much later."""
    slot, seq = np.int64(packet_at(s, r).flow), np.int64(packet_at(s, r).seq)
    if flow_at(s, slot).id != packet_at(s, r).id:
        return
    sub = sub_at(s, slot)
    send_segment(s, slot, 0, seq)
    sub.wait = max(sub.wait, s.now) + time_at(np.int64(packet_at(s, s.last_out).size), sub.rate)


@part
def _stale(s):
    """Have rates computed at the next multiple of the period."""
    s.stale = 1
    if s.ticking == 0:
        s.ticking = 1
        _schedule(s, TICK, 0, (s.now // s.period + 1) * s.period)


@part
def on_known(s, e):
    """Every node knows that a flow has begun."""
    entry = entry_at(s, e)
    if entry.state == GONE:
        _free_entry(s, e)
        return
    entry.state = HEARD
    s.heard += 1
    _stale(s)
    if s.chosen == 1:
        _choose_later(s)


@part
def lay(s, e):
    """Lay out what entry e puts on ports over shortest paths, unless it never takes them."""
    entry = entry_at(s, e)
    entry.first, entry.laid = s.used_loads, 0
    if s.valiant == 0 or s.chosen == 1:
        entry.laid = water.lay(s, np.int64(entry.src), np.int64(entry.dst), s.used_loads)
        s.used_loads += np.int64(entry.laid)
    if entry.spread == 0:
        entry.count = entry.laid


@part
def lay_heard(s):
    """Lay out what is known of since the last computation; most flows have ended before the next one asks for it."""
    if s.heard == 0:
        return
    for e in range(s.used_entries):
        if entry_at(s, e).state == HEARD:
            entry_at(s, e).state = TOLD
            lay(s, e)
            water.add(s, e, 1)
    s.heard = 0


@part
def is_spread(s, r):
    """Whether packet r goes by way of a random node, where that is decided flow by flow: while its flow is known."""
    p = packet_at(s, r)
    entry = entry_at(s, sub_at(s, p.flow).pulled)
    return entry.id == p.id and entry.ended == 0 and entry.spread == 1


@part
def _choose_later(s):
    """Have routes chosen at the next multiple of their period."""
    if s.choosing == 0:
        s.choosing = 1
        _schedule(s, CHOOSE, 0, (s.now // s.choose + 1) * s.choose)


@part
def _turn(s, e):
    """Route entry e the other way."""
    entry = entry_at(s, e)
    water.add(s, e, -1)
    entry.spread = 1 - entry.spread
    if entry.spread == 0:
        entry.count = entry.laid
    water.add(s, e, 1)


@part
def _worth(s):
    """b/s that all known flows get together with the routes they have now."""
    water.pour(s)
    total = np.int64(0)
    for e in range(s.used_entries):
        entry = entry_at(s, e)
        if entry.state == TOLD and entry.frozen == s.computations:
            total += entry.rate
    return total


@part
def _turn_some(s, draw, part):
    """Route the other way every flow that has something to send with a chance of one in 2^part; the same ones again
    with the same draw."""
    for e in range(s.used_entries):
        entry = entry_at(s, e)
        if entry.state == TOLD and entry.ended == 0 and below(word(draw, e), np.int64(1) << part) == 0:
            _turn(s, e)


@part
def on_choose(s):
    """Try some flows the other way, many at once or few, and keep what makes all rates together larger."""
    s.choosing = 0
    lay_heard(s)
    count, parts = 0, 1
    for e in range(s.used_entries):
        count += 1 if entry_at(s, e).state == TOLD and entry_at(s, e).ended == 0 else 0
    if count == 0:
        return
    while count >> parts > 0:
        parts += 1
    worth, before = _worth(s), s.switched
    for _ in range(s.tries):
        s.tried += 1
        draw = word(s.key ^ CHOICES, s.tried)
        part_ = np.int64(below(draw, parts))
        _turn_some(s, draw, part_)
        other = _worth(s)
        if other > worth:
            worth = other
            s.switched += 1
        else:
            _turn_some(s, draw, part_)
    if s.switched > before:
        _stale(s)
    _choose_later(s)


@part
def forget(s, e):
    """Every node knows that a flow has ended."""
    state = entry_at(s, e).state
    if state == TOLD:
        water.add(s, e, -1)
        _stale(s)
    elif state == HEARD:
        s.heard -= 1
        _stale(s)
    _free_entry(s, e)


@part
def on_tick(s):
    """Compute the rates of all flows, and tell their senders."""
    s.ticking = s.stale = 0
    lay_heard(s)
    water.pour(s)
    for e in range(s.used_entries):
        entry = entry_at(s, e)
        if entry.state != TOLD or entry.ended == 1 or entry.frozen != s.computations:
            continue  # free, or all sent, or without a path just now
        slot = np.int64(entry.slot)
        sub = sub_at(s, slot)
        if sub.rate == entry.rate:
            continue
        sub.rate = entry.rate
        if sub.timer_wait != events.NONE:
            events.cancel(s, rows(s), sub.timer_wait)
            sub.timer_wait = events.NONE
            sub.wait = sub.stamp + time_at(sub.target, sub.rate)
            _ready(s, slot)


@part
def give_up(s, slot):
    """Drop a flow for which there is no path any more."""
    e = sub_at(s, slot).pulled
    entry = entry_at(s, e)
    if entry.id == flow_at(s, slot).id and entry.ended == 0:  # else all is sent, and the entry may be another flow's
        if entry.state == TOLD or entry.state == HEARD:
            forget(s, e)
        else:
            entry.state = GONE
    s.abandoned += 1
    close_slot(s, slot)


@part
def receive(s, r):
    """A packet has reached its node."""
    p = packet_at(s, r)
    slot = np.int64(p.flow)
    if book(s, slot, slot, np.int64(p.seq)):
        close_slot(s, slot)


@part
def _on_turn(s, slot):
    """The time of a flow has come. It need not queue for a NIC that is free and that nobody else waits for."""
    sub_at(s, slot).timer_wait = events.NONE
    flow = flow_at(s, slot)
    at = np.int64(flow.src)
    host = host_at(s, at)
    free = (host.first == events.NONE) & (host.pacing == 0) & (host.free_at <= s.now) & (s.due_now == events.NONE)
    if free and flow.taken < flow.segments and sub_at(s, slot).wait <= s.now and events.alone(s, rows(s)):
        events.number(s)  # of the event of the pacer that this would have been
        _send(s, at, slot)
    else:
        _ready(s, slot)


@part
def fire(s, r):
    """Timer r is due."""
    p = packet_at(s, r)
    kind, e = p.kind, np.int64(p.seq)
    if kind == TURN:
        _on_turn(s, np.int64(p.flow))
    elif kind == LOST:
        on_lost(s, r)
    elif kind == KNOWN:
        on_known(s, e)
    elif kind == FORGET:
        forget(s, e)
    elif kind == TICK:
        on_tick(s)
    elif kind == CHOOSE:
        on_choose(s)


R2C2 = Transport(begin=begin, receive=receive, fire=fire, pace=on_pace, room=no_room)
