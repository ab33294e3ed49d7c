"""A run of TDMA, cycle by cycle: slots that belong to one sender are moved whole, not packet by packet.

In a cycle the manager's two frames reach every host after their time on the wire and the host's reaction; between its
go and its next stop a host sends whole packets, back to back, of what waits for the destination it was granted. Such a
stream crosses a port like one long packet: it begins when its first packet is there and the port has sent what came
before, and takes its own length. That is exact for packets in first-in-first-out ports of one rate, as long as streams
do not mingle (`packets.py` has the packets, and the tests hold both equal); where a guard is too short and they do, the
stream waits for the earlier one, the queue is what that wait is worth, and what exceeds the buffer is dropped.
"""

import numpy as np

from weft.engine import calendar
from weft.engine.fingerprint import fold
from weft.engine.jit import bare, part
from weft.engine.random import below, word
from weft.fabrics.tdma.schedulers.roundrobin import fill_slots
from weft.fabrics.tdma.state import GO, NEVER, STOP, Count, Number

REACHED, PAUSED, DONE, PLAN = 0, 1, 2, 100  # why `cycles` returned; PLAN: the next round's schedule is wanted
REACTIONS, LOSSES = 0x74646D01, 0x74646D02  # streams of what is drawn for each frame

HOSTS, SLOTS, SLOT, GUARD, CYCLE = Number.HOSTS, Number.SLOTS, Number.SLOT, Number.GUARD, Number.CYCLE
_UNIT = 1 << 53  # of a probability


@part
def _sent(c, phase, fixed, state):
    """When the manager means to send a cycle's frames; NEVER if it is dead by then."""
    number, count = fixed.number, state.count
    time = count[Count.BEGIN] + (c - count[Count.FIRST]) * number[CYCLE]
    time += number[GUARD] if phase == GO else 0
    return time if time < count[Count.DEATH] else np.int64(NEVER)


@part
def _lost(h, c, phase, fixed):
    """Whether the frame of a cycle does not reach host h."""
    loss = fixed.number[Number.LOSS]
    if loss == 0:
        return False
    drawn = word(fixed.keys[1], (c * 2 + phase) * fixed.number[HOSTS] + h)
    return np.int64(drawn >> np.uint64(11)) < loss


@part
def _acts(h, c, phase, fixed, state):
    """When host h does what a cycle's frame says; NEVER if it never gets it."""
    number = fixed.number
    time = _sent(c, phase, fixed, state)
    if time == NEVER or _lost(h, c, phase, fixed):
        return np.int64(NEVER)
    nic = fixed.nic[h]
    first = fixed.firsts[nic, c % fixed.switches[nic]]
    turn = (fixed.before[h] - first) % fixed.frames[nic] + (fixed.place[h] - c) % fixed.mates[h]
    late = fixed.offset[nic] + time // 1_000_000 * fixed.drift[nic] // 1000
    drawn = word(fixed.keys[0], (c * 2 + phase) * number[HOSTS] + h)
    reaction = number[Number.LAG] + below(drawn, number[Number.JITTER] + 1)
    return time + late + turn * number[Number.SPACING] + number[Number.TRANSIT] + reaction


@part
def _next_start(fixed, state):
    """When the next flow begins, as far as that is known; else NEVER."""
    count = state.count
    time = np.int64(NEVER)
    if count[Count.ADMITTED] < fixed.known:
        time = fixed.start[count[Count.ADMITTED]]
    if count[Count.HEAPED] > 0:
        time = min(time, state.waits[0, calendar.TIME])
    return time


@part
def _admit(time, fixed, state):
    """Let the flows that may begin by `time` wait at their senders, in that order; short ones go their own way."""
    count = state.count
    while True:
        start = _next_start(fixed, state)
        if start > time:
            return
        f = count[Count.ADMITTED]
        if f < fixed.known and fixed.start[f] == start:
            count[Count.ADMITTED] += 1
        else:
            f = calendar.pop(state.waits, count[Count.HEAPED])
            count[Count.HEAPED] -= 1
        i, j = fixed.src[f], fixed.dst[f]
        count[Count.OFFERED] += fixed.size[f]
        if fixed.short[f]:
            _aside(f, start, i, j, fixed, state)
        else:
            if state.head[i, j] < 0:
                state.head[i, j] = f
            else:
                state.next[state.tail[i, j]] = f
            state.tail[i, j] = f
            state.left[i, j] += fixed.size[f]


@part
def _ended(f, time, state):
    """Flow f is done: fold it in, and release those that wait for it."""
    count = state.count
    state.finish[f] = time
    count[Count.FINISHED] += 1
    fold(state.fingerprint, time, f)
    if state.waits.shape[0] > 0:
        count[Count.HEAPED] = calendar.release(state.waits, state.successors, count[Count.HEAPED], f, time)


@part
def _aside(f, start, i, j, fixed, state):
    """Send a short flow in the bandwidth that is kept for such (§4.1), after those that came before it on each link."""
    mtu, store = fixed.number[Number.MTU], fixed.number[Number.STORE]
    size = fixed.size[f]
    whole, rest = size // mtu, size % mtu
    length = whole * fixed.aside[mtu] + (fixed.aside[rest] if rest else 0)
    first = fixed.aside[mtu] if whole else fixed.aside[rest]
    at = start
    for x in range(fixed.ways.shape[2]):
        p = fixed.ways[i, j, x]
        if p < 0:
            break
        begin = max(at, state.beside[p])
        state.beside[p] = begin + length
        at = begin + (first if store else 0) + fixed.delay[p]
        end = begin + length + fixed.delay[p]
    state.got[i, j] += size
    state.done[f] = size
    state.count[Count.SHORT] += 1
    state.count[Count.DELIVERED] += size
    state.count[Count.NOW] = max(state.count[Count.NOW], end)
    _ended(f, end, state)


@part
def _reports(c, time, fixed, state):
    """Every host that is up says what waits and what has room, as of the slots before cycle c."""
    number = fixed.number
    for h in range(number[HOSTS]):
        if state.dead[h]:
            continue
        for k in range(number[HOSTS]):
            state.waiting[h, k] = min(state.left[h, k], number[Number.SEND])
            if number[Number.RECEIVE] < NEVER:
                _read(k, h, time, fixed, state)
                state.room[k, h] = number[Number.RECEIVE] - state.held[k, h]
            else:
                state.room[k, h] = NEVER
        state.seen[h], state.heard[h] = c - 1, c


@part
def _read(i, j, time, fixed, state):
    """Let j's application read from i's receive buffer up to `time`."""
    drain = fixed.number[Number.DRAIN]
    span = min(max(np.int64(0), time - state.read[i, j]), np.int64(10**12))
    if drain == NEVER:
        state.held[i, j] = 0
    else:
        state.held[i, j] = max(np.int64(0), state.held[i, j] - span // 1000 * (drain // 1000) // 8_000_000)
    state.read[i, j] += span if span else 0
    state.read[i, j] = max(state.read[i, j], time - 10**12)


@part
def _demand(c, fixed, state, want, room):
    """want[i, j]: bytes that may be granted in the round after the one of cycle c, as `Manager.demand` says it.

    room (n, n) int64 is for scratch.
    """
    number = fixed.number
    n, slots = number[HOSTS], number[SLOTS]
    oldest = np.int64(NEVER)
    for h in range(n):
        if state.heard[h] >= 0 and state.heard[h] + number[Number.SILENCE] * slots >= c:
            oldest = min(oldest, state.seen[h])
    for i in range(n):
        for j in range(n):
            want[i, j], room[i, j] = 0, state.room[i, j]
    for i in range(n):
        if state.heard[i] < 0 or state.heard[i] + number[Number.SILENCE] * slots < c:
            continue
        for j in range(n):
            if i != j and state.heard[j] >= 0 and state.heard[j] + number[Number.SILENCE] * slots >= c:
                want[i, j] = state.waiting[i, j]
    for ring in range(state.rounds.size):
        if state.rounds[ring] < 0:
            continue
        begin = state.count[Count.FIRST] + state.rounds[ring] * slots
        if begin + slots <= oldest:
            continue
        for g in range(state.many[ring]):
            cycle = begin + state.when[ring, g]
            i, j = state.frm[ring, g], state.to[ring, g]
            if cycle > state.seen[i]:
                want[i, j] -= state.given[ring, g]
            if cycle > state.seen[j]:
                room[i, j] -= state.given[ring, g]
    for i in range(n):
        for j in range(n):
            want[i, j] = max(np.int64(0), min(want[i, j], room[i, j]))


@part
def _from(ring, place, state):
    """The first of a round's grants that is for slot `place` of it or a later one."""
    low, high = np.int64(0), state.many[ring]
    while low < high:
        middle = (low + high) >> 1
        if state.when[ring, middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _slot(c, fixed, state):
    """Let everybody send who was granted something in cycle c and heard of it."""
    number, count = fixed.number, state.count
    round_ = (c - count[Count.FIRST]) // number[SLOTS]
    place = (c - count[Count.FIRST]) % number[SLOTS]
    ring = round_ % state.rounds.size
    for g in range(_from(ring, place, state), _from(ring, place + 1, state)):
        i, j = state.frm[ring, g], state.to[ring, g]
        count[Count.GRANTS] += 1
        path = state.path[ring, g]
        for x in range(path.size):
            p = path[x]
            if p < 0:
                break
            count[Count.REUSED] += state.used[p] == c
            state.used[p] = c
        begin = np.int64(NEVER) if state.dead[i] else _acts(i, c, GO, fixed, state)
        if begin == NEVER:
            count[Count.MISSED] += 1
            count[Count.UNUSED] += 1
            continue
        stop = _acts(i, c + 1, STOP, fixed, state)
        count[Count.OVERRUNS] += stop == NEVER
        end = min(begin + number[Number.PERMIT], stop if stop < NEVER else _acts(i, c + 1, GO, fixed, state))
        bytes_ = min(state.left[i, j], state.given[ring, g])
        if end <= begin or bytes_ == 0:
            count[Count.UNUSED] += 1
            continue
        _stream(i, j, begin, end, bytes_, path, fixed, state)


@part
def _stream(i, j, begin, end, bytes_, path, fixed, state):
    """Send up to `bytes_` from i to j in packets that begin before `end`."""
    number, count = fixed.number, state.count
    mtu, store = number[Number.MTU], number[Number.STORE]
    whole = fixed.packet[mtu]
    bytes_ = min(bytes_, -(-(end - begin) // whole) * mtu)  # a packet that was begun is finished
    count[Count.STREAMS] += 1
    count[Count.SENT] += bytes_
    count[Count.PACKETS] += -(-bytes_ // mtu)
    dropped = np.int64(0)
    at, last = begin, begin  # when the first and the last packet are at the port
    served = begin
    for x in range(path.size):
        p = path[x]
        if p < 0:
            break
        packets = -(-bytes_ // mtu)
        tip = fixed.packet[bytes_ - (packets - 1) * mtu]  # the last packet
        first = whole if packets > 1 else tip
        if x == 0:
            last = begin + (packets - 1) * whole
        queue = max(np.int64(0), state.busy[p] - at)
        if queue > 0:
            count[Count.OVERLAPS] += 1
            count[Count.INTERLEAVED] += state.coming[p] > at
            count[Count.QUEUED] += queue
            held = queue * (mtu + number[Number.OVERHEAD]) // whole  # bytes that the wait is worth
            if x > 0 and held > number[Number.BUFFER]:
                gone = min(packets, -(-(held - number[Number.BUFFER]) // (mtu + number[Number.OVERHEAD])))
                lost = bytes_ if gone == packets else gone * mtu
                dropped += lost
                bytes_ -= lost
                at += gone * whole
                held = min(held, number[Number.BUFFER])
                if bytes_ == 0:
                    break
                packets -= gone
                first = whole if packets > 1 else tip
            count[Count.QUEUE] = max(count[Count.QUEUE], held)
        served = max(at, state.busy[p])
        final = max(served + (packets - 1) * whole, last)  # the last packet begins
        state.coming[p], state.busy[p] = last, final + tip
        at = served + (first if store else 0) + fixed.delay[p]
        last = final + (tip if store else 0) + fixed.delay[p]
        arrived = state.busy[p] + fixed.delay[p]
    count[Count.DROPPED] += dropped
    if bytes_ == 0:
        return
    if state.dead[j]:
        count[Count.STRANDED] += bytes_
        return
    count[Count.NOW] = max(count[Count.NOW], arrived)
    _deliver(i, j, bytes_, served, arrived, fixed, state, path)
    fold(state.fingerprint, begin, np.int64(i) << 32 | j)
    fold(state.fingerprint, arrived, bytes_)


@part
def _deliver(i, j, bytes_, served, arrived, fixed, state, path):
    """Give the bytes of a stream to the flows of its pair in their order. served: when its last port began with it."""
    mtu = fixed.number[Number.MTU]
    whole = fixed.packet[mtu]
    delay = np.int64(0)
    for x in range(path.size):
        if path[x] >= 0:
            delay = fixed.delay[path[x]]
    _read(i, j, arrived, fixed, state)
    state.held[i, j] += bytes_ if fixed.number[Number.DRAIN] < NEVER else 0
    state.count[Count.OVERFLOWS] += state.held[i, j] > fixed.number[Number.RECEIVE]
    state.left[i, j] -= bytes_
    state.got[i, j] += bytes_
    state.count[Count.DELIVERED] += bytes_
    used = np.int64(0)
    while used < bytes_:
        f = state.head[i, j]
        part = min(bytes_ - used, fixed.size[f] - state.done[f])
        state.done[f] += part
        used += part
        if state.done[f] == fixed.size[f]:
            packets = -(-used // mtu)
            time = arrived if used == bytes_ else served + packets * whole + delay
            state.head[i, j] = state.next[f]
            if state.head[i, j] < 0:
                state.tail[i, j] = -1
            _ended(f, min(time, arrived), state)


@part
def _adopt(c, time, fixed, state):
    """At the start of a cycle: whether the round has a schedule."""
    count = state.count
    round_ = (c - count[Count.FIRST]) // fixed.number[SLOTS]
    ring = round_ % state.rounds.size
    if state.rounds[ring] != round_:
        return False
    if count[Count.ADOPTED] == round_:
        return True
    if count[Count.READY] > time:
        count[Count.LATE] += 1
        return False
    count[Count.ADOPTED] = round_
    late = (c - count[Count.FIRST]) % fixed.number[SLOTS]
    if late > 0:  # it begins with its first slot; the last ones have no time left
        kept = 0
        for g in range(state.many[ring]):
            state.when[ring, g] += late
            kept += state.when[ring, g] < fixed.number[SLOTS]
        state.many[ring] = kept
    return True


@part
def _cycles(until, budget, fixed, state):
    """Let cycles pass that begin before `until`, about `budget` hosts times cycles; says why it ended.

    PLAN asks for the schedule of the round after the one of the last cycle: `demand`, a scheduler, and `enter`.
    """
    number, count = fixed.number, state.count
    n, slots = number[HOSTS], number[SLOTS]
    while True:
        if count[Count.FINISHED] >= count[Count.GOAL]:
            return DONE
        c = count[Count.CYCLE]
        time = count[Count.BEGIN] + (c - count[Count.FIRST]) * number[CYCLE]
        if time >= until or time >= count[Count.DEATH]:
            return REACHED
        if budget <= 0:
            return PAUSED
        budget -= n
        count[Count.NOW] = max(count[Count.NOW], time)
        _admit(time, fixed, state)
        place = (c - count[Count.FIRST]) % slots
        if place == 0 and _skip(c, time, until, fixed, state):
            continue
        if place == slots - number[Number.LEAD] - number[Number.AGE]:
            _reports(c, time, fixed, state)
        count[Count.FRAMES] += 2 * n
        if _adopt(c, time, fixed, state):
            _slot(c, fixed, state)
        count[Count.CYCLE] = c + 1
        if place == slots - number[Number.LEAD] and time + number[GUARD] < count[Count.DEATH]:
            return PLAN


@bare
def rounds(until, budget, fixed, state, want, room, tree, rank, capacity, cost, patience, memory, scratch, out):
    """`cycles` with round robin's schedules, which are made here: Python is not asked from round to round."""
    number, count = fixed.number, state.count
    while True:
        before = count[Count.CYCLE]
        why = _cycles(until, budget, fixed, state)
        budget -= (count[Count.CYCLE] - before) * number[HOSTS]
        if why != PLAN:
            return why
        _demand(count[Count.CYCLE] - 1, fixed, state, want, room)
        grants = fill_slots(want, number[SLOTS], tree, rank, capacity, cost, patience, memory, scratch, out)
        when, src, dst, size, start, ports = out
        _enter(count[Count.CYCLE] - 1, when[:grants], src, dst, size, start, ports, fixed, state)


@part
def _skip(c, time, until, fixed, state):
    """At the start of a round: pass over rounds in which nothing waits and nothing is granted."""
    number, count = fixed.number, state.count
    round_ = (c - count[Count.FIRST]) // number[SLOTS]
    for ring in range(state.rounds.size):
        if state.rounds[ring] >= round_ - 1 and state.many[ring] > 0:
            return False
    end = min(min(until, _next_start(fixed, state)), count[Count.DEATH])
    rounds = (end - time) // (number[SLOTS] * number[CYCLE]) - 1
    if rounds < 1:
        return False
    for i in range(number[HOSTS]):
        for j in range(number[HOSTS]):
            if state.left[i, j] > 0:
                return False
    count[Count.CYCLE] += rounds * number[SLOTS]
    count[Count.SKIPPED] += rounds * number[SLOTS]
    count[Count.FRAMES] += 2 * number[HOSTS] * rounds * number[SLOTS]
    return True


@part
def _enter(c, when, src, dst, size, start, ports, fixed, state):
    """Write the schedule that was computed in cycle c, of the round after it, into the ring."""
    number, count = fixed.number, state.count
    round_ = (c - count[Count.FIRST]) // number[SLOTS] + 1
    ring = round_ % state.rounds.size
    state.rounds[ring], state.many[ring] = round_, when.size
    for g in range(when.size):
        state.when[ring, g], state.frm[ring, g], state.to[ring, g] = when[g], src[g], dst[g]
        state.given[ring, g] = size[g]
        hops = start[g + 1] - start[g]
        for x in range(state.path.shape[2]):
            state.path[ring, g, x] = ports[start[g] + x] if x < hops else -1
    count[Count.READY] = _sent(c, GO, fixed, state) + number[Number.COMPUTE]


# what Python calls where it makes the schedules


@bare
def cycles(until, budget, fixed, state):
    """See `_cycles`."""
    return _cycles(until, budget, fixed, state)


@bare
def demand(c, fixed, state, want, room):
    """See `_demand`."""
    _demand(c, fixed, state, want, room)


@bare
def enter(c, when, src, dst, size, start, ports, fixed, state):
    """See `_enter`."""
    _enter(c, when, src, dst, size, start, ports, fixed, state)
