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
from weft.fabrics.tdma.state import ASIDE, BUSY, GAP, GO, IDLE, IN_SLOTS, LAST, NEVER, SINCE, STOP, Count, Number

REACHED, PAUSED, DONE, PLAN = 0, 1, 2, 100  # why `cycles` returned; PLAN: the next round's schedule is wanted
REACTIONS, LOSSES = 0x74646D01, 0x74646D02  # streams of what is drawn for each frame

HOSTS, SLOTS, SLOT, GUARD, CYCLE = Number.HOSTS, Number.SLOTS, Number.SLOT, Number.GUARD, Number.CYCLE
_UNIT = 1 << 53  # of a probability


@part
def _sent(c, phase, number, count):
    """When the manager means to send a cycle's frames; NEVER if it is dead by then."""
    time = count[Count.BEGIN] + (c - count[Count.FIRST]) * number[CYCLE]
    time += number[GUARD] if phase == GO else 0
    return time if time < count[Count.DEATH] else np.int64(NEVER)


@part
def _lost(h, c, phase, number, key):
    """Whether the frame of a cycle does not reach host h."""
    loss = number[Number.LOSS]
    if loss == 0:
        return False
    drawn = word(key, (c * 2 + phase) * number[HOSTS] + h)
    return np.int64(drawn >> np.uint64(11)) < loss


@part
def _told(h, c, phase, fixed, count):
    """When a cycle's frame for host h is at the last port before it; NEVER if it never gets there."""
    number = fixed.number
    time = _sent(c, phase, number, count)
    if time == NEVER or _lost(h, c, phase, number, fixed.keys[1]):
        return np.int64(NEVER)
    nic = fixed.nic[h]
    first = fixed.firsts[nic, c % fixed.switches[nic]]
    turn = (fixed.before[h] - first) % fixed.frames[nic] + (fixed.place[h] - c) % fixed.mates[h]
    late = fixed.offset[nic] + time // 1_000_000 * fixed.drift[nic] // 1000
    return time + late + turn * number[Number.SPACING] + number[Number.TRANSIT] - number[Number.PORT]


@part
def _acts(h, c, phase, fixed, state):
    """When host h does what a cycle's frame says; NEVER if it never gets it."""
    number = fixed.number
    time = _told(h, c, phase, fixed, state.count)
    if time == NEVER:
        return time
    drawn = word(fixed.keys[0], (c * 2 + phase) * number[HOSTS] + h)
    reaction = number[Number.LAG] + below(drawn, number[Number.JITTER] + 1)
    held = np.int64(0)
    if number[Number.INBAND]:
        p = fixed.own[h] ^ 1
        held = _held(time, phase, fixed.packet[fixed.pace[p], number[Number.MTU]], state.stream[p])
    return time + held + number[Number.PORT] + reaction


@part
def _held(time, phase, whole, stream):
    """ps that a frame waits at a port where it comes at `time`: for the packets of a stream that came before it."""
    later = stream[5] if phase == GO else np.int64(0)
    came, began, step, last, end = stream[0], stream[1] + later, stream[2], stream[3], stream[4] + later
    if time < came or time >= end:
        return np.int64(0)
    if time >= last:
        return end - time
    before = (time - came) // step + 1
    return max(np.int64(0), max(began + before * whole, came + (before - 1) * step + whole) - time)


@part
def _next_start(known, start, count, waits):
    """When the next flow begins, as far as that is known; else NEVER."""
    time = np.int64(NEVER)
    if count[Count.ADMITTED] < known:
        time = start[count[Count.ADMITTED]]
    if count[Count.HEAPED] > 0:
        time = min(time, waits[0, calendar.TIME])
    return time


@part
def _admit(time, fixed, state):
    """Let the flows that may begin by `time` wait at their senders, in that order; short ones go their own way."""
    count = state.count
    while True:
        start = _next_start(fixed.known, fixed.start, count, state.waits)
        if start > time:
            return
        f = count[Count.ADMITTED]
        if f < fixed.known and fixed.start[f] == start:
            count[Count.ADMITTED] += 1
        else:
            f = calendar.pop(state.waits, count[Count.HEAPED])
            count[Count.HEAPED] -= 1
        i, j = np.int64(fixed.src[f]), np.int64(fixed.dst[f])
        count[Count.OFFERED] += fixed.size[f]
        state.begun[f] = start
        if fixed.short[f] and _open(i, j, fixed.ways, state.dead, state.down):
            _aside(f, start, i, j, fixed, state)
            continue
        _join(f, i, j, fixed.number[Number.URGENT], fixed.size, state.head, state.tail, state.next)
        if fixed.number[Number.WRITE] == NEVER:
            state.left[i, j] += fixed.size[f]
        else:
            if state.behind[i, j] == 0:
                state.wrote[i, j] = start
            state.behind[i, j] += fixed.size[f]


@part
def _join(f, i, j, urgent, size, head, tail, next_):
    """Put flow f at the end of its pair; one with a deadline before all that have none."""
    before = tail[i, j]
    if size[f] <= urgent:
        before = np.int64(-1)
        behind = head[i, j]
        while behind >= 0 and size[behind] <= urgent:
            before, behind = behind, next_[behind]
    if before < 0:
        next_[f] = head[i, j]
        head[i, j] = f
    else:
        next_[f] = next_[before]
        next_[before] = f
    if next_[f] < 0:
        tail[i, j] = f


@part
def _open(i, j, ways, dead, down):
    """Whether the way of a short flow is up; one whose way is not waits for a slot."""
    up = not dead[i] and not dead[j]
    for x in range(ways.shape[2]):
        up &= ways[i, j, x] < 0 or not down[ways[i, j, x]]
    return up


@part
def _write(i, j, time, number, left, behind, wrote, written):
    """Let i's application write for j up to `time`, as far as the socket has room."""
    write = number[Number.WRITE]
    if write == NEVER or behind[i, j] == 0:
        return
    span = min(max(np.int64(0), time - wrote[i, j]), np.int64(10**12))
    wrote[i, j] = max(wrote[i, j], time)
    room = max(np.int64(0), number[Number.SEND] - left[i, j])
    moved = min(min(behind[i, j], room), span // 1000 * (write // 1000) // 8_000_000)
    behind[i, j] -= moved
    left[i, j] += moved
    written[i, j] += moved


@part
def _ended(f, time, count, finish, fingerprint, waits, successors):
    """Flow f is done: fold it in, and release those that wait for it."""
    finish[f] = time
    count[Count.FINISHED] += 1
    fold(fingerprint, time, f)
    if waits.shape[0] > 0:
        count[Count.HEAPED] = calendar.release(waits, successors, count[Count.HEAPED], f, time)


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
        _work(state.lines[p, ASIDE], begin, length, state.count[Count.CYCLE])
        state.beside[p] = begin + length
        at = begin + (first if store else 0) + fixed.delay[p]
        end = begin + length + fixed.delay[p]
    state.got[i, j] += size
    state.done[f] = size
    state.count[Count.SHORT] += 1
    state.count[Count.DELIVERED] += size
    state.count[Count.NOW] = max(state.count[Count.NOW], end)
    _ended(f, end, state.count, state.finish, state.fingerprint, state.waits, state.successors)


@part
def _work(line, begin, took, cycle):
    """Note that a port sends for so long, from `begin` on or after what it sends.

    It counts as at once after what the port has sent in this cycle: of two spells at most something is still to come.
    """
    if begin > line[BUSY] and line[LAST] != cycle + 1:
        line[GAP] = begin - line[BUSY]
        line[IDLE] += line[GAP]
        line[BUSY] = line[SINCE] = begin
    line[BUSY] += took
    line[LAST] = cycle + 1


@part
def _deaf(h, own, dead, down):
    """Whether no frame reaches host h, nor what it reports the manager."""
    return dead[h] or down[own[h]]


@part
def _due(f, number, count, begun, size, done, next_):
    """(the last cycle in time for the first flows of a pair, f first, and their bytes); (NEVER, 0) without any."""
    if f < 0 or size[f] > number[Number.URGENT]:
        return np.int64(NEVER), np.int64(0)
    late = begun[f] + number[Number.DEADLINE] - count[Count.BEGIN]
    bytes_ = np.int64(0)
    while f >= 0 and size[f] <= number[Number.URGENT]:
        bytes_ += size[f] - done[f]
        f = next_[f]
    return count[Count.FIRST] + late // number[CYCLE], bytes_


@part
def _reports(c, time, fixed, state):
    """Every host that is up says what waits and what has room, as of the slots before cycle c."""
    number = fixed.number
    for h in range(number[HOSTS]):
        if _deaf(h, fixed.own, state.dead, state.down):
            continue
        for k in range(number[HOSTS]):
            _write(h, k, time, number, state.left, state.behind, state.wrote, state.written)
            guess = state.left[h, k] + (state.written[h, k] if number[Number.TREND] else 0)
            state.waiting[h, k] = min(guess, number[Number.SEND])
            state.written[h, k] = 0
            state.due[h, k], state.hurry[h, k] = _due(
                state.head[h, k], number, state.count, state.begun, fixed.size, state.done, state.next
            )
            if number[Number.RECEIVE] < NEVER:
                _read(k, h, time, fixed.number[Number.DRAIN], state.held, state.read)
                state.room[k, h] = number[Number.RECEIVE] - state.held[k, h]
            else:
                state.room[k, h] = NEVER
        state.seen[h], state.heard[h] = c - 1, c


@part
def _read(i, j, time, drain, held, read):
    """Let j's application read from i's receive buffer up to `time`."""
    span = min(max(np.int64(0), time - read[i, j]), np.int64(10**12))
    if drain == NEVER:
        held[i, j] = 0
    else:
        held[i, j] = max(np.int64(0), held[i, j] - span // 1000 * (drain // 1000) // 8_000_000)
    read[i, j] += span if span else 0
    read[i, j] = max(read[i, j], time - 10**12)


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
                want[i, j] = 0 if state.severed[i, j] else state.waiting[i, j]
    for ring in range(state.rounds.size):
        if state.rounds[ring] < 0:
            continue
        begin = state.count[Count.FIRST] + state.rounds[ring] * slots
        if begin + slots <= oldest:
            continue
        for g in range(state.many[ring]):
            cycle = begin + state.when[ring, g]
            i, j = np.int64(state.frm[ring, g]), np.int64(state.to[ring, g])
            if cycle > state.seen[i]:
                want[i, j] -= state.given[ring, g]
            if cycle > state.seen[j]:
                room[i, j] -= state.given[ring, g]
    for i in range(n):
        for j in range(n):
            want[i, j] = max(np.int64(0), min(want[i, j], room[i, j]))


@part
def _from(when, many, place):
    """The first of a round's grants that is for slot `place` of it or a later one."""
    low, high = np.int64(0), many
    while low < high:
        middle = (low + high) >> 1
        if when[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _slot(c, fixed, state, parcels):
    """Let everybody send who was granted something in cycle c and heard of it."""
    number, count = fixed.number, state.count
    round_ = (c - count[Count.FIRST]) // number[SLOTS]
    place = (c - count[Count.FIRST]) % number[SLOTS]
    ring = round_ % state.rounds.size
    when, many = state.when[ring], state.many[ring]
    low, high = _from(when, many, place), _from(when, many, place + 1)
    meet = False
    for g in range(low, high):
        count[Count.GRANTS] += 1
        count[Count.GIVEN] += state.given[ring, g]
        for x in range(state.path.shape[2]):
            p = state.path[ring, g, x]
            if p < 0:
                break
            twice = state.used[p] == c
            meet |= twice
            state.load[p] = state.given[ring, g] + (state.load[p] if twice else 0)
            state.used[p] = c
            if number[Number.SHARE] < 0:
                count[Count.REUSED] += twice
            else:
                count[Count.REUSED] += state.load[p] > fixed.capacity[p] + number[Number.SHARE]
    if number[Number.INBAND]:
        _foretell(c, ring, low, high, fixed, state)
    if parcels is not None:  # noqa: SIM102  so that Numba leaves the packets out where there are none
        if meet:
            _together(c, ring, low, high, fixed, state, parcels)
            return
    for g in range(low, high):
        begin, end, bytes_ = _window(c, ring, g, fixed, state)
        if bytes_ > 0:
            i, j = np.int64(state.frm[ring, g]), np.int64(state.to[ring, g])
            _stream(c, i, j, begin, end, bytes_, state.path[ring, g], state.speed[ring, g], fixed, state)


@part
def _foretell(c, ring, low, high, fixed, state):
    """Where frames are among data: when hosts may begin, and what the frames that stop them will find at their ports.

    They find the streams of this cycle, none of which has been stopped by then.
    """
    number = fixed.number
    mtu = number[Number.MTU]
    for g in range(low, high):
        i = np.int64(state.frm[ring, g])
        state.opened[i] = _acts(i, c, GO, fixed, state)
    for g in range(low, high):
        i, j = np.int64(state.frm[ring, g]), np.int64(state.to[ring, g])
        bytes_ = min(state.left[i, j], state.given[ring, g])
        if state.opened[i] == NEVER or bytes_ == 0 or _deaf(i, fixed.own, state.dead, state.down):
            continue
        packets = -(-bytes_ // mtu)
        pace, store = fixed.packet[state.speed[ring, g], mtu], number[Number.STORE]
        at, step = state.opened[i], pace
        prior, last = at + (packets - 2) * pace, at + (packets - 1) * pace
        for x in range(state.path.shape[2]):
            p = state.path[ring, g, x]
            if p < 0:
                break
            whole, tip = fixed.packet[fixed.pace[p], mtu], fixed.packet[fixed.pace[p], bytes_ - (packets - 1) * mtu]
            step = max(step, whole)
            began = max(at, state.busy[p]) if p == fixed.own[j] ^ 1 else at
            second = max(began + (packets - 2) * whole, prior)
            final = max(second + whole, last) if packets > 1 else max(began, last)
            if p == fixed.own[j] ^ 1:
                _note(state.stream[p], at, began, step, last, final + tip)
            at = began + ((whole if packets > 1 else tip) if store else 0) + fixed.delay[p]
            prior = second + (whole if store else 0) + fixed.delay[p]
            last = final + (tip if store else 0) + fixed.delay[p]


@part
def _note(stream, came, began, step, last, end):
    """Write what frames find at a port."""
    stream[0], stream[1], stream[2], stream[3], stream[4], stream[5] = came, began, step, last, end, 0


@part
def _window(c, ring, g, fixed, state):
    """(begin, end, bytes): from when and before when the packets of a grant may begin, and how much there is to send.

    0 bytes where the slot goes unused.
    """
    number, count = fixed.number, state.count
    i, j = np.int64(state.frm[ring, g]), np.int64(state.to[ring, g])
    begin = np.int64(NEVER)
    if not _deaf(i, fixed.own, state.dead, state.down):
        begin = state.opened[i] if number[Number.INBAND] else _acts(i, c, GO, fixed, state)
    if begin == NEVER:
        count[Count.MISSED] += 1
        count[Count.UNUSED] += 1
        return begin, begin, np.int64(0)
    stop = _acts(i, c + 1, STOP, fixed, state)
    count[Count.OVERRUNS] += stop == NEVER
    end = min(begin + number[Number.PERMIT], stop if stop < NEVER else _acts(i, c + 1, GO, fixed, state))
    _write(i, j, begin, number, state.left, state.behind, state.wrote, state.written)
    given = state.given[ring, g]
    bytes_ = min(state.left[i, j], given)
    if end <= begin or bytes_ == 0:
        count[Count.UNUSED] += 1
        count[Count.ABSENT] += given
        return begin, end, np.int64(0)
    count[Count.ABSENT] += given - bytes_
    most = fixed.capacity[fixed.own[i]]
    for x in range(state.path.shape[2]):
        if state.path[ring, g, x] >= 0:
            most = min(most, fixed.capacity[state.path[ring, g, x]])
    count[Count.BEYOND] += max(np.int64(0), min(most, state.left[i, j]) - given)
    return begin, end, bytes_


@part
def _stream(c, i, j, begin, end, bytes_, path, speed, fixed, state):
    """Send up to `bytes_` from i to j in packets that begin before `end`, no faster than rate `speed`."""
    number, count = fixed.number, state.count
    mtu, store, wire = number[Number.MTU], number[Number.STORE], number[Number.MTU] + number[Number.OVERHEAD]
    pace = fixed.packet[speed, mtu]
    bytes_ = min(bytes_, -(-(end - begin) // pace) * mtu)  # a packet that was begun is finished
    count[Count.STREAMS] += 1
    count[Count.SENT] += bytes_
    count[Count.PACKETS] += -(-bytes_ // mtu)
    dropped = np.int64(0)
    at, prior, last = begin, begin, begin  # when the first, the one before the last and the last packet are at the port
    served = begin
    step = pace  # from packet to packet where they arrive
    for x in range(path.size):
        p = path[x]
        if p < 0:
            break
        if state.down[p]:
            count[Count.CUT] += bytes_
            count[Count.DROPPED] += dropped
            return
        packets = -(-bytes_ // mtu)
        whole = fixed.packet[fixed.pace[p], mtu]
        tip = fixed.packet[fixed.pace[p], bytes_ - (packets - 1) * mtu]  # the last packet
        first = whole if packets > 1 else tip
        step = max(step, whole)
        if x == 0:
            prior, last = begin + (packets - 2) * pace, begin + (packets - 1) * pace
        queue = max(np.int64(0), state.busy[p] - at)
        if queue > 0:
            count[Count.OVERLAPS] += 1
            count[Count.INTERLEAVED] += state.coming[p] > at
            count[Count.QUEUED] += queue
            held = queue * wire // whole  # bytes that the wait is worth
            if x > 0 and held > number[Number.BUFFER]:
                gone = min(packets, -(-(held - number[Number.BUFFER]) // wire))
                lost = bytes_ if gone == packets else gone * mtu
                dropped += lost
                bytes_ -= lost
                at += gone * step
                held = min(held, number[Number.BUFFER])
                if bytes_ == 0:
                    break
                packets -= gone
                first = whole if packets > 1 else tip
            count[Count.QUEUE] = max(count[Count.QUEUE], held)
        served = max(at, state.busy[p])
        second = max(served + (packets - 2) * whole, prior)
        final = max(second + whole, last) if packets > 1 else max(served, last)  # the last packet begins
        if number[Number.INBAND] and p == fixed.own[j] ^ 1:
            final += _give_way(c, j, at, served, last, final, tip, step, whole, fixed, state)
        if whole > pace:  # what a faster sender piles up
            count[Count.QUEUE] = max(count[Count.QUEUE], (final - last) * wire // whole)
        _work(state.lines[p, IN_SLOTS], served, (packets - 1) * whole + tip, count[Count.CYCLE])
        state.coming[p], state.busy[p] = last, final + tip
        at = served + (first if store else 0) + fixed.delay[p]
        prior = second + (whole if store else 0) + fixed.delay[p]
        last = final + (tip if store else 0) + fixed.delay[p]
        arrived = state.busy[p] + fixed.delay[p]
        ahead = whole + fixed.delay[p]  # of a packet, from its begin there to its arrival
    count[Count.DROPPED] += dropped
    if bytes_ == 0:
        return
    if state.dead[j]:
        count[Count.STRANDED] += bytes_
        return
    count[Count.NOW] = max(count[Count.NOW], arrived)
    _deliver(i, j, bytes_, served + ahead - step, step, arrived, fixed, state)
    fold(state.fingerprint, begin, np.int64(i) << 32 | j)
    fold(state.fingerprint, arrived, bytes_)


@part
def _give_way(c, j, at, served, last, final, tip, step, whole, fixed, state):
    """Write what frames find at the port to host j, and return how much later the last packet begins for them."""
    stream, later = state.stream[fixed.own[j] ^ 1], np.int64(0)
    _note(stream, at, served, step, last, final + tip)
    for phase in range(2):
        time = _told(j, c + 1, phase, fixed, state.count)
        if time == NEVER or time < at or time >= last:
            continue
        if step == whole:  # all packets behind it have to wait, the last one among them
            later += fixed.frame[j]
        else:  # only the next packet may have to
            later = max(later, time + _held(time, phase, whole, stream) + fixed.frame[j] - final)
        if phase == STOP and step == whole:
            stream[5] = later
    return later


@part
def _deliver(i, j, bytes_, before, step, arrived, fixed, state):
    """Give the bytes of a stream to the flows of its pair in their order.

    Its k-th packet is there `k * step` after `before`, its last by `arrived`.
    """
    mtu = fixed.number[Number.MTU]
    _read(i, j, arrived, fixed.number[Number.DRAIN], state.held, state.read)
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
        if state.done[f] >= fixed.size[f]:  # more is a fault, which a monitor is to name
            time = arrived if used == bytes_ else before + -(-used // mtu) * step
            state.head[i, j] = state.next[f]
            if state.head[i, j] < 0:
                state.tail[i, j] = -1
            time = min(time, arrived)
            _ended(f, time, state.count, state.finish, state.fingerprint, state.waits, state.successors)


# a slot in which flows meet: packet by packet


@part
def _earlier(a, b, parcels):
    """Whether packet a comes before packet b."""
    if parcels.time[a] != parcels.time[b]:
        return parcels.time[a] < parcels.time[b]
    if parcels.stream[a] != parcels.stream[b]:
        return parcels.stream[a] < parcels.stream[b]
    return a < b


@part
def _push(m, many, parcels):
    """Put packet m into the heap of `many`."""
    heap = parcels.heap
    k = many
    while k > 0:
        above = (k - 1) >> 1
        if not _earlier(m, heap[above], parcels):
            break
        heap[k] = heap[above]
        k = above
    heap[k] = m


@part
def _pop(many, parcels):
    """Take the first packet out of the heap of `many`."""
    heap = parcels.heap
    first, m = heap[0], heap[many - 1]
    k = 0
    while 2 * k + 1 < many - 1:
        below = 2 * k + 1
        if below + 1 < many - 1 and _earlier(heap[below + 1], heap[below], parcels):
            below += 1
        if not _earlier(heap[below], m, parcels):
            break
        heap[k] = heap[below]
        k = below
    heap[k] = m
    return first


@part
def _emit(h, ring, low, many, fixed, state, parcels):
    """Let host h send what it may, each stream at its rate: the packet that may begin first goes first. The packets."""
    mtu, store = fixed.number[Number.MTU], fixed.number[Number.STORE]
    own = fixed.own[h]
    rate = fixed.pace[own]
    while True:
        best = np.int64(-1)
        k = parcels.first[h]
        while k >= 0:
            if parcels.sent[k] < parcels.size[k] and (best < 0 or parcels.free[k] < parcels.free[best]):
                best = k
            k = parcels.after[k]
        if best < 0:
            return many
        begin = max(parcels.free[best], state.busy[own])
        if begin >= parcels.end[best]:
            parcels.size[best] = parcels.sent[best]
            continue
        bytes_ = min(mtu, parcels.size[best] - parcels.sent[best])
        _work(state.lines[own, IN_SLOTS], begin, fixed.packet[rate, bytes_], state.count[Count.CYCLE])
        state.busy[own] = begin + fixed.packet[rate, bytes_]
        state.coming[own] = begin
        parcels.free[best] = begin + fixed.packet[state.speed[ring, low + best], bytes_]
        parcels.sent[best] += bytes_
        parcels.time[many] = begin + (fixed.packet[rate, bytes_] if store else 0) + fixed.delay[own]
        parcels.stream[many], parcels.bytes[many], parcels.hop[many] = best, bytes_, 1
        _push(many, many, parcels)
        many += 1


@part
def _together(c, ring, low, high, fixed, state, parcels):
    """A slot in which flows meet at a port: every packet in first-in-first-out ports, as `packets.carry` has it."""
    number, count = fixed.number, state.count
    store, wire = number[Number.STORE], number[Number.MTU] + number[Number.OVERHEAD]
    count[Count.SHARED] += 1
    parcels.first[:] = -1
    for g in range(high - 1, low - 1, -1):
        parcels.after[g - low] = parcels.first[state.frm[ring, g]]
        parcels.first[state.frm[ring, g]] = g - low
    for g in range(low, high):
        k = g - low
        parcels.begin[k], parcels.end[k], parcels.size[k] = _window(c, ring, g, fixed, state)
        other = parcels.first[state.frm[ring, g]]
        taken = np.int64(0)  # by an earlier grant of the same pair
        while other < k:
            taken += parcels.size[other] if state.to[ring, low + other] == state.to[ring, g] else 0
            other = parcels.after[other]
        parcels.size[k] = min(parcels.size[k], state.left[state.frm[ring, g], state.to[ring, g]] - taken)
        parcels.free[k], parcels.sent[k], parcels.arrived[k, 0], parcels.arrived[k, 1] = parcels.begin[k], 0, 0, 0
        count[Count.STREAMS] += parcels.size[k] > 0
    many = np.int64(0)
    for h in range(number[HOSTS]):
        many = _emit(h, ring, low, many, fixed, state, parcels)
    count[Count.PACKETS] += many
    while many > 0:
        m = _pop(many, parcels)
        many -= 1
        k, bytes_, now = parcels.stream[m], parcels.bytes[m], parcels.time[m]
        g = low + k
        hop = parcels.hop[m]
        p = state.path[ring, g, hop] if hop < state.path.shape[2] else -1
        i, j = np.int64(state.frm[ring, g]), np.int64(state.to[ring, g])
        if p < 0:
            if state.dead[j]:
                count[Count.STRANDED] += bytes_
                continue
            parcels.arrived[k, 0] += bytes_
            parcels.arrived[k, 1] = now
            count[Count.NOW] = max(count[Count.NOW], now)
            _deliver(i, j, bytes_, now, 0, now, fixed, state)
            continue
        if state.down[p]:
            count[Count.CUT] += bytes_
            continue
        whole = fixed.packet[fixed.pace[p], number[Number.MTU]]
        queue = max(np.int64(0), state.busy[p] - now)
        held = queue * wire // whole
        if held > number[Number.BUFFER]:
            count[Count.DROPPED] += bytes_
            continue
        count[Count.QUEUE] = max(count[Count.QUEUE], held)
        took = fixed.packet[fixed.pace[p], bytes_]
        begin = now + queue
        _work(state.lines[p, IN_SLOTS], begin, took, count[Count.CYCLE])
        state.busy[p], state.coming[p] = begin + took, now
        final = hop + 1 == state.path.shape[2] or state.path[ring, g, hop + 1] < 0
        parcels.time[m] = begin + (took if store or final else 0) + fixed.delay[p]
        parcels.hop[m] = hop + 1
        _push(m, many, parcels)
        many += 1
    for k in range(high - low):
        count[Count.SENT] += parcels.sent[k]
        if parcels.arrived[k, 0] > 0:
            fold(
                state.fingerprint, parcels.begin[k], np.int64(state.frm[ring, low + k]) << 32 | state.to[ring, low + k]
            )
            fold(state.fingerprint, parcels.arrived[k, 1], parcels.arrived[k, 0])


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
def _cycles(until, budget, fixed, state, parcels):
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
            _slot(c, fixed, state, parcels)
        count[Count.CYCLE] = c + 1
        if place == slots - number[Number.LEAD] and time + number[GUARD] < count[Count.DEATH]:
            return PLAN


@bare
def rounds(until, budget, fixed, state, want, room, tree, rank, capacity, cost, patience, memory, scratch, out):
    """`cycles` with round robin's schedules, which are made here: Python is not asked from round to round."""
    number, count = fixed.number, state.count
    while True:
        before = count[Count.CYCLE]
        why = _cycles(until, budget, fixed, state, None)
        budget -= (count[Count.CYCLE] - before) * number[HOSTS]
        if why != PLAN:
            return why
        _demand(count[Count.CYCLE] - 1, fixed, state, want, room)
        grants = fill_slots(want, number[SLOTS], tree, rank, capacity, cost, patience, memory, scratch, out)
        when, src, dst, size, start, ports = out
        _enter(count[Count.CYCLE] - 1, when[:grants], src, dst, size, start, ports, None, fixed, state)


@part
def _skip(c, time, until, fixed, state):
    """At the start of a round: pass over rounds in which nothing waits and nothing is granted."""
    number, count = fixed.number, state.count
    round_ = (c - count[Count.FIRST]) // number[SLOTS]
    for ring in range(state.rounds.size):
        if state.rounds[ring] >= round_ - 1 and state.many[ring] > 0:
            return False
    end = min(min(until, _next_start(fixed.known, fixed.start, count, state.waits)), count[Count.DEATH])
    rounds = (end - time) // (number[SLOTS] * number[CYCLE]) - 1
    if rounds < 1:
        return False
    for i in range(number[HOSTS]):
        for j in range(number[HOSTS]):
            if state.left[i, j] + state.behind[i, j] > 0:
                return False
    count[Count.CYCLE] += rounds * number[SLOTS]
    count[Count.SKIPPED] += rounds * number[SLOTS]
    count[Count.FRAMES] += 2 * number[HOSTS] * rounds * number[SLOTS]
    return True


@part
def _enter(c, when, src, dst, size, start, ports, speed, fixed, state):
    """Write the schedule that was computed in cycle c, of the round after it, into the ring.

    speed: which of the rates each sender keeps to; None for that of the slowest port of its path.
    """
    number, count = fixed.number, state.count
    round_ = (c - count[Count.FIRST]) // number[SLOTS] + 1
    ring = round_ % state.rounds.size
    state.rounds[ring], state.many[ring] = round_, when.size
    for g in range(when.size):
        state.when[ring, g], state.frm[ring, g], state.to[ring, g] = when[g], src[g], dst[g]
        state.given[ring, g] = size[g]
        hops = start[g + 1] - start[g]
        slowest = np.int32(fixed.packet.shape[0] - 1)
        for x in range(state.path.shape[2]):
            state.path[ring, g, x] = ports[start[g] + x] if x < hops else -1
            if x < hops:
                slowest = min(slowest, fixed.pace[ports[start[g] + x]])
        state.speed[ring, g] = slowest
        if speed is not None:
            state.speed[ring, g] = speed[g]
    count[Count.READY] = _sent(c, GO, number, count) + number[Number.COMPUTE]


# what Python calls where it makes the schedules


@bare
def cycles(until, budget, fixed, state, parcels):
    """See `_cycles`."""
    return _cycles(until, budget, fixed, state, parcels)


@bare
def demand(c, fixed, state, want, room):
    """See `_demand`."""
    _demand(c, fixed, state, want, room)


@bare
def enter(c, when, src, dst, size, start, ports, speed, fixed, state):
    """See `_enter`."""
    _enter(c, when, src, dst, size, start, ports, speed, fixed, state)
