"""A crossbar, one slot at a time: cells arrive, a matching is made, cells leave.

Inside a slot everything happens in this order, whatever the buffers:

1. cells arrive and enter a buffer, or are refused;
2. the scheduler looks at the buffers as they are now and decides, in as many iterations as it has;
3. what was decided moves, from the outputs back to the inputs, so that no cell crosses two stages in one slot.

A cell that leaves in the slot in which it arrived has waited 0 slots. There is a loop over slots for each family of
buffers, so that a run compiles only what it needs, and a fast path for the commonest case, `sprint`.
"""

import numpy as np

from weft.engine.bits import either, lowest, population
from weft.engine.calendar import FAR, TIME, release
from weft.engine.fingerprint import add, mixed
from weft.engine.jit import bare, inlined, part, rare
from weft.engine.random import mix, origin, step, word
from weft.fabrics.crossbar import arrivals, emulation, schedulers, stages
from weft.fabrics.crossbar.arrivals import members, uniform
from weft.fabrics.crossbar.bits import NOBODY, first_of_word
from weft.fabrics.crossbar.queues import head, label, length, output_of, pop, push, stamp_of
from weft.fabrics.crossbar.schedulers import Scheduler
from weft.fabrics.crossbar.state import HEAD, IN, LENGTH, OUT, STAMP, TAG, TAIL, Buffers, Count, Kind, Level, Plan
from weft.schedule.matching import HEAVIEST, NOISE

_0, _1, _4, _6, _16, _32, _40, _63, _64, _127 = (np.uint64(k) for k in (0, 1, 4, 6, 16, 32, 40, 63, 64, 127))
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(64 - NOISE)
_HEAD, _TAIL, _LENGTH = np.uint64(HEAD), np.uint64(TAIL), np.uint64(LENGTH)

# The working table of `sprint`, its desk: 64 x 64 queues, each in a word (tail << 40 | head << 16 | length), and
# behind them a column of 64 words for each of the others. The last has a 65th, where outputs without a request write
# their grant.
_CELL, _MANY = np.uint64((1 << 24) - 1), np.uint64((1 << 16) - 1)
_STEP, _AFTER, _ASKED, _WANT, _GRANT, _ACCEPT, _PICK, _SENT, _GIVEN = (np.uint64(64 * k) for k in range(64, 73))
DESK = 64 * 73 + 1


@part
def note(number, slot, warmup, gone, delay, last, per_output, print_, count):
    """Note the cells that left in this slot: how long they waited, who they were, and that no output sent two.

    The histogram of delays says all about them, except about those beyond its end, which are summed apart.
    """
    now, start, ceiling = np.uint64(slot), np.uint64(warmup), np.uint64(delay.size - 1)
    measured = np.int64(slot >= warmup)
    for k in range(number):
        stamp, j = gone[STAMP, k], gone[OUT, k]
        if stamp >= start:
            waited = now - stamp
            if waited >= ceiling:
                count[Count.BEYOND] += np.int64(waited)
                count[Count.LONGEST] = max(count[Count.LONGEST], np.int64(waited))
                waited = ceiling
            delay[waited] += 1
        per_output[j] += measured
        add(print_, now << _32 | gone[IN, k] << _16 | j, stamp)
        count[Count.CLASHES] += np.int64(last[j] > slot)
        last[j] = slot + 1
    count[Count.DELIVERED] += number
    count[Count.MEASURED] += number * measured


@part
def finish(number, slot, gone, flow_due, flow_finish, count):
    """Note the flows whose last cell left in this slot."""
    for k in range(number):
        f = np.int64(gone[TAG, k])
        flow_due[f] -= 1
        if flow_due[f] == 0:
            flow_finish[f] = slot
            count[Count.FINISHED] += 1


@rare
def set_free(number, slot, gone, flow_due, count, waits, successors):
    """Release those that waited for flows whose last cell left in this slot: apart from `finish`, which is then small
    enough for LLVM to inline it, 2 % of all instructions where nobody waits. An output sends one cell, so none of the
    flows is met twice."""
    for k in range(number):
        f = np.int64(gone[TAG, k])
        if flow_due[f] == 0:
            count[Count.HEAPED] = release(waits, successors, count[Count.HEAPED], f, slot + 1)


@part
def keep_line(number, came, count):
    """Keep the first cell of every input, as a line carries one per slot; the others are lost before the switch."""
    kept = 0
    for a in range(number):
        if a > 0 and came[IN, a] == came[IN, a - 1]:
            count[Count.LINE_BUSY] += 1
        else:
            came[IN, kept], came[OUT, kept] = came[IN, a], came[OUT, a]
            kept += 1
    return kept


@part
def hold(number, slot, senders, n, fanout, keys, outputs, came, cells, info, free, level, queue):
    """Put arrivals into the queues of their senders, and offer the first cell of every sender instead."""
    peak = level[Level.PEAK]  # of the queues in the switch, which these are not
    for a in range(number):
        if fanout == 1 or came[TAG, a] == _0:
            i = np.int64(came[IN, a])
            push(senders + i, slot, label(i, came[OUT, a], 0), cells, info, free, level, queue)
    level[Level.PEAK] = peak
    count = 0
    for i in range(n):
        if length(senders + i, queue) == 0:
            continue
        c = head(senders + i, queue)
        stamp, size = stamp_of(c, cells), 1
        if fanout > 1:
            size = members(stamp * n + i, n, fanout, keys, outputs)
        else:
            outputs[0] = output_of(c, info)
        for copy in range(size):
            came[IN, count], came[OUT, count], came[STAMP, count] = i, outputs[copy], stamp
            if fanout > 1:
                came[TAG, count] = copy
            count += 1
    return count


@part
def let_go(number, refused, refusals, senders, came, cells, free, level, queue):
    """Take cells that were let in off the queues of their senders."""
    at, previous = 0, NOBODY
    for a in range(number):
        i = np.int64(came[IN, a])
        if at < refusals and refused[at] == a:
            at += 1
        elif i != previous:
            pop(senders + i, cells, free, level, queue)
        previous = i


@part
def weigh(kind, turn, one_queue, key, want, everyone, weight, cells, queue, n):
    """Write the weight of every request, by the length of its queue, the age of its first cell, or one for all."""
    weight[:] = 0
    per_set = everyone.size
    for j in range(n):
        for w in range(per_set):
            asking = want[j * per_set + w]
            while asking != _0:
                i = w * 64 + lowest(asking)
                asking &= asking - _1
                q = i if one_queue else i * n + j
                if kind == Scheduler.LQF:
                    weight[i * n + j] = length(q, queue)
                elif kind == Scheduler.OCF:
                    weight[i * n + j] = turn - stamp_of(head(q, queue), cells) + 1
                else:
                    by = min(length(q, queue), HEAVIEST) if kind == Scheduler.MWM else 1
                    noise = np.int64(word(key, (turn * n + i) * n + j) >> _SHIFT) // n
                    weight[i * n + j] = (by << NOISE) + noise


@part
def schedule(plan, turn, slot, keys, cells, queue, everyone, want, given, idle, grant, accept, choice, owner, mate,
             pairs, weight, labels, done, pointer, rounds):  # fmt: skip
    """Make the matching of a slot, or of phase `turn` where there are several. Returns the number of pairs."""
    kind, iterations, n = plan[Plan.SCHEDULER], plan[Plan.ITERATIONS], plan[Plan.PORTS]
    key = keys[keys.size - 1]
    if kind == Scheduler.ISLIP and iterations == 1 and n <= 64:
        count = schedulers.islip_short(want, given, grant, accept, choice, pairs)
        rounds[min(count, 1)] += 1
        return count
    if kind == Scheduler.ESLIP:
        count = schedulers.eslip(want, everyone, pointer, pairs)
        rounds[min(count, 1)] += 1
        return count
    used = 0
    if kind == Scheduler.ISLIP or kind == Scheduler.RRM:
        always = kind == Scheduler.RRM
        used = schedulers.slip(iterations, always, want, everyone, idle, given, grant, accept, owner, mate)
    elif kind == Scheduler.PIM:
        used = schedulers.pim(iterations, turn, key, want, everyone, idle, given, owner, mate)
    elif kind == Scheduler.DRRM:
        used = schedulers.drrm(iterations, want, everyone, given, grant, accept, owner, mate)
    elif kind == Scheduler.WAVEFRONT:
        used = schedulers.wavefront(turn, want, everyone, owner, mate)
    else:
        fifo = plan[Plan.BUFFERS] == Buffers.FIFO
        seen = slot if kind == Scheduler.OCF else turn
        weigh(kind, seen, fifo, key, want, everyone, weight, cells, queue, n)
        if kind == Scheduler.LQF or kind == Scheduler.OCF:
            used = schedulers.heaviest(iterations, turn, want, everyone, idle, given, weight, owner, mate)
        else:
            used = schedulers.maximum(weight, labels, done, owner, mate)
    count = 0
    for i in range(n):
        if mate[i] != NOBODY:
            pairs[count] = np.uint64(i) << _32 | np.uint64(mate[i])
            count += 1
    rounds[used if count else 0] += 1
    return count


@part
def arrive(slot, plan, keys, keep, other, burst, drawn, choice, came):
    """Draw the cells of this slot. Returns how many entries there are."""
    kind, chance, is_uniform = plan[Plan.KIND], np.uint64(plan[Plan.CHANCE]), plan[Plan.UNIFORM] != 0
    if kind == Kind.UNIFORM:
        return uniform(slot, keys[0], chance, drawn, came)
    if kind == Kind.SKEWED:
        return arrivals.skewed(slot, keys[0], plan[Plan.WHOLE], chance, is_uniform, keep, other, drawn, came)
    if kind == Kind.BURSTS:
        end = np.uint64(plan[Plan.END])
        return arrivals.bursts(slot, keys[0], keys[1], chance, end, is_uniform, keep, other, burst, came)
    return arrivals.multicast(slot, chance, plan[Plan.FANOUT], keys, drawn, choice, came)


@inlined
def begin(s, slot, stop):
    """The next slot in which anything can happen, from `slot` on; NOBODY if every flow has been delivered."""
    if s.plan[Plan.KIND] == Kind.FLOWS and s.count[Count.ACTIVE] == 0 and s.level[Level.HELD] == _0:
        due = s.flow_start[s.arrived[0]] if s.arrived[0] < s.plan[Plan.KNOWN] else FAR
        if s.count[Count.HEAPED] > 0:
            due = min(due, s.waits[0, TIME])
        slot = NOBODY if due == FAR else max(slot, min(due, stop))
    return slot


@inlined
def intake(s, slot):
    """Cells that ask to be let in in this slot, in `came`. Returns how many."""
    p, count, level = s.plan, s.count, s.level
    if p[Plan.KIND] == Kind.FLOWS:
        arrivals.start_flows(
            slot, p[Plan.KNOWN], s.flow_src, s.flow_start, s.flow_next, s.active, s.arrived, count, s.waits
        )
        flags = p[Plan.BUFFERS] == Buffers.VOQ or p[Plan.BUFFERS] == Buffers.CIOQ or p[Plan.BUFFERS] == Buffers.CICQ
        depth = p[Plan.DEPTH] if flags and p[Plan.FLOW_CONTROL] else 0
        number = arrivals.offer(slot, depth, s.flow_dst, s.flow_next, s.active, s.before, s.queue, s.came)
    else:
        number = arrive(slot, p, s.keys, s.keep, s.other, s.burst, s.drawn, s.choice, s.came)
        count[Count.OFFERED] += number
        if p[Plan.FLOW_CONTROL]:
            level[Level.HELD] += np.uint64(number)
            number = hold(
                number, slot, p[Plan.SENDERS], p[Plan.PORTS], p[Plan.FANOUT], s.keys, s.choice, s.came, s.cells,
                s.info, s.free, level, s.queue,
            )  # fmt: skip
        else:
            if p[Plan.WHOLE] > 0:
                number = keep_line(number, s.came, count)
            s.came[STAMP, :number] = np.uint64(slot)
    return number


@inlined
def settle(s, number, refusals):
    """Account for this slot's arrivals, now that it is known which were let in."""
    p, count, level = s.plan, s.count, s.level
    controlled = p[Plan.FLOW_CONTROL] != 0
    if p[Plan.KIND] == Kind.FLOWS:
        lost = 0 if controlled else refusals
        count[Count.OFFERED] += number - refusals + lost
        count[Count.LOST] += lost
        level[Level.HELD] += np.uint64(number - refusals)
        arrivals.sent(
            number, s.refused, refusals, not controlled, s.flow_left, s.flow_next, s.active, s.before, s.came, count
        )
    elif controlled:
        let_go(number, s.refused, refusals, p[Plan.SENDERS], s.came, s.cells, s.free, level, s.queue)
    else:
        count[Count.LOST] += refusals
        level[Level.HELD] += np.uint64(number - refusals)


@inlined
def conclude(s, slot, number):
    """Account for the cells that left."""
    s.level[Level.HELD] -= np.uint64(number)
    note(number, slot, s.plan[Plan.WARMUP], s.gone, s.delay, s.last, s.per_output, s.print, s.count)
    if s.plan[Plan.KIND] == Kind.FLOWS:
        finish(number, slot, s.gone, s.flow_due, s.flow_finish, s.count)
        if s.waits.shape[0] > 0:
            set_free(number, slot, s.gone, s.flow_due, s.count, s.waits, s.successors)


@bare
def matched(state, stop):
    """Run buffers that need a matching until slot `stop`: virtual output queues, FIFO, shared memory, and outputs."""
    s, p = state, state.plan
    buffers, n, fanout, capacity = p[Plan.BUFFERS], p[Plan.PORTS], p[Plan.FANOUT], p[Plan.CAPACITY]
    slot = s.clock[0]
    while slot < stop:
        at = begin(s, slot, stop)
        if at == NOBODY or at >= stop:
            slot = slot if at == NOBODY else stop
            break
        slot = at
        number = intake(s, slot)
        if buffers == Buffers.FIFO:
            refusals = stages.admit_fifo(
                number, n, capacity, fanout, s.keys, s.choice, s.came, s.refused, s.cells, s.info, s.free, s.level,
                s.queue, s.want, s.used,
            )  # fmt: skip
        elif buffers == Buffers.SHARED:
            refusals = stages.admit_shared(
                number, n, capacity, fanout, s.came, s.refused, s.cells, s.info, s.free, s.level, s.queue, s.want,
                s.used, s.freed, s.count,
            )  # fmt: skip
        else:
            refusals = stages.admit_queues(
                number, p[Plan.DEPTH], n, s.came, s.refused, s.cells, s.info, s.free, s.level, s.queue, s.want
            )
        settle(s, number, refusals)
        number = 0
        for turn in range(slot * p[Plan.UP] // p[Plan.DOWN], (slot + 1) * p[Plan.UP] // p[Plan.DOWN]):
            number = schedule(
                p, turn, slot, s.keys, s.cells, s.queue, s.everyone, s.want, s.given, s.idle, s.grant, s.accept,
                s.choice, s.owner, s.mate, s.pairs, s.weight, s.labels, s.done, s.pointer, s.rounds,
            )  # fmt: skip
            if buffers == Buffers.VOQ:
                stages.leave_queues(
                    number, n, s.pairs, s.cells, s.info, s.free, s.level, s.queue, s.want, s.gone, s.count
                )
            elif buffers == Buffers.FIFO:
                stages.leave_fifo(
                    number, n, fanout, s.keys, s.choice, s.pairs, s.cells, s.info, s.free, s.level, s.queue, s.want,
                    s.used, s.gone,
                )  # fmt: skip
            elif buffers == Buffers.SHARED:
                stages.leave_shared(
                    number, n, fanout, s.pairs, s.cells, s.info, s.free, s.level, s.queue, s.want, s.freed, s.gone,
                    s.count,
                )  # fmt: skip
            else:
                stages.cross(number, n, s.pairs, s.cells, s.info, s.free, s.level, s.queue, s.want)
        if buffers == Buffers.CIOQ:
            number = stages.step_queues(n * n, n, s.cells, s.info, s.free, s.level, s.queue, s.gone)
        conclude(s, slot, number)
        slot += 1
    s.clock[0] = slot
    return slot


@bare
def emulated(state, stop):
    """Run a switch that emulates output queueing until slot `stop`."""
    s, p = state, state.plan
    n, critical = p[Plan.PORTS], p[Plan.SCHEDULER] == Scheduler.CCF
    slot = s.clock[0]
    while slot < stop:
        at = begin(s, slot, stop)
        if at == NOBODY or at >= stop:
            slot = slot if at == NOBODY else stop
            break
        slot = at
        number = intake(s, slot)
        refusals = emulation.admit(
            number, slot, n, p[Plan.DEPTH], critical, s.came, s.refused, s.cells, s.info, s.free, s.level, s.queue,
            s.lists, s.turn,
        )  # fmt: skip
        settle(s, number, refusals)
        for _ in range(slot * p[Plan.UP] // p[Plan.DOWN], (slot + 1) * p[Plan.UP] // p[Plan.DOWN]):
            emulation.phase(n, s.info, s.queue, s.lists, s.turn, s.owner, s.mate)
        number = emulation.send(slot, n, s.cells, s.info, s.free, s.level, s.lists, s.turn, s.gone, s.count)
        conclude(s, slot, number)
        slot += 1
    s.clock[0] = slot
    return slot


@bare
def staged(state, stop):
    """Run buffers without a matching until slot `stop`: output queues, crosspoints, middle ports, sub-switches."""
    s, p = state, state.plan
    buffers, n, group, depth = p[Plan.BUFFERS], p[Plan.PORTS], p[Plan.GROUP], p[Plan.DEPTH]
    multicast = p[Plan.FANOUT] > 1
    slot = s.clock[0]
    while slot < stop:
        at = begin(s, slot, stop)
        if at == NOBODY or at >= stop:
            slot = slot if at == NOBODY else stop
            break
        slot = at
        number = intake(s, slot)
        if buffers == Buffers.OQ:
            refusals = stages.admit_oq(
                number, p[Plan.CAPACITY], s.came, s.refused, s.cells, s.info, s.free, s.level, s.queue
            )
        elif buffers == Buffers.CICQ:
            refusals = stages.admit_cicq(
                number, n, depth, s.came, s.refused, s.cells, s.info, s.free, s.level, s.queue, s.want
            )
        elif buffers == Buffers.LOAD_BALANCED:
            stages.look_balanced(slot, n, s.queue, s.owner)
            refusals = stages.admit_balanced(
                number, slot, n, depth, s.came, s.refused, s.cells, s.info, s.free, s.level, s.queue
            )
        else:
            visible = slot * p[Plan.UP] + p[Plan.WRITE]
            refusals = stages.admit_grouped(
                number, n, group, depth, visible, buffers == Buffers.GCQ, multicast, s.came, s.refused, s.cells, s.info,
                s.ready, s.free, s.level, s.queue,
            )  # fmt: skip
        settle(s, number, refusals)
        if buffers == Buffers.OQ:
            number = stages.step_queues(0, n, s.cells, s.info, s.free, s.level, s.queue, s.gone)
        elif buffers == Buffers.CICQ:
            number = stages.step_cicq(
                n, p[Plan.INNER], s.cells, s.info, s.free, s.level, s.queue, s.everyone, s.want, s.given, s.filled,
                s.idle, s.grant, s.accept, s.owner, s.mate, s.gone,
            )  # fmt: skip
        elif buffers == Buffers.LOAD_BALANCED:
            number = stages.step_balanced(
                n, s.cells, s.info, s.free, s.level, s.queue, s.owner, s.newest, s.gone, s.count
            )
        elif buffers == Buffers.HIERARCHICAL:
            number = stages.step_hierarchical(
                n, group, p[Plan.OUTER], s.cells, s.info, s.ready, s.free, s.level, s.queue, s.grant, s.owner,
                s.local, s.choice, s.gone,
            )  # fmt: skip
        else:
            number = stages.step_gcq(
                slot, n, group, p[Plan.UP], p[Plan.INNER], p[Plan.OUTER], p[Plan.MEMORY], p[Plan.READ], multicast,
                s.cells, s.info, s.ready, s.free, s.level, s.queue, s.used, s.grant, s.owner, s.gone, s.count,
            )  # fmt: skip
        conclude(s, slot, number)
        slot += 1
    s.clock[0] = slot
    return slot


@inlined
def unpack(s, ports, desk):
    """Copy queues, requests and pointers to the desk, packed."""
    for i in range(ports):
        desk[_WANT + i], desk[_GRANT + i], desk[_ACCEPT + i] = s.want[i], s.grant[i], s.accept[i]
        desk[_SENT + i], desk[_STEP + i] = np.uint64(s.per_output[i]), step(i)
        desk[_AFTER + i] = i + _1 if i + _1 < ports else _0
        for j in range(ports):
            q = _4 * (i * ports + j)
            head, tail, length = s.queue[q + _HEAD], s.queue[q + _TAIL], s.queue[q + _LENGTH]
            desk[i << _6 | j] = np.uint64(tail) << _40 | np.uint64(head) << _16 | np.uint64(length)


@inlined
def pack(s, ports, desk):
    """Copy them back."""
    for i in range(ports):
        s.want[i], s.grant[i], s.accept[i] = desk[_WANT + i], desk[_GRANT + i], desk[_ACCEPT + i]
        s.per_output[i] = desk[_SENT + i]
        for j in range(ports):
            q, packed = _4 * (i * ports + j), desk[i << _6 | j]
            s.queue[q + _HEAD], s.queue[q + _TAIL] = packed >> _16 & _CELL, packed >> _40
            s.queue[q + _LENGTH] = packed & _MANY


@inlined
def draw(slot, key, chance, ports, desk):
    """`arrivals.uniform` on the desk: where the cell of every input would go. Returns the inputs that have one."""
    base, came = origin(key, slot * ports), _0
    for i in range(ports):
        drawn = mix(base + desk[_STEP + i])
        desk[_ASKED + i] = i << _6 | ((drawn & _LOW) * ports) >> _32
        came |= np.uint64((drawn >> _32) < chance) << i
    return came


@bare
def sprint(state, stop):
    """`matched` for what is run most: virtual output queues, iSLIP with one iteration, at most 64 ports, uniform cells.

    The same slot in one loop without a call. All that it needs per port or queue lies in one table, the desk, so that
    one register leads to it; a queue is one word while it lasts, tail | head | length, and [i, j] is 64 i + j. Which
    inputs have a cell, and which are matched, are words: nothing is copied into lists, and no branch is unpredictable.
    The cells of a slot are drawn while the requests of the one before are still on their way to the cache.
    """
    p, count, level = state.plan, state.count, state.level
    chance, warmup = np.uint64(p[Plan.CHANCE]), p[Plan.WARMUP]
    ports, depth = np.uint64(p[Plan.PORTS]) & _127, np.uint64(p[Plan.DEPTH])
    key, cells, free, desk, delay = state.keys[0], state.cells, state.free, state.desk, state.delay
    start, ceiling = np.uint64(warmup), np.uint64(delay.size - 1)
    top, fresh, peak = level[Level.TOP], level[Level.FRESH], level[Level.PEAK]
    x, y = state.print[0], state.print[1]
    unpack(state, ports, desk)
    came = draw(np.uint64(state.clock[0]), key, chance, ports, desk)

    for slot in range(state.clock[0], stop):
        now = np.uint64(slot)
        offered, lost = population(came), 0
        while came != _0:
            i = np.uint64(lowest(came))
            came &= came - _1
            k = desk[_ASKED + i]
            q = desk[k]
            length = q & _MANY
            if length >= depth:
                lost += 1
                continue
            if top > _0:
                top -= _1
                c = np.uint64(free[top])
            else:
                c = fresh
                fresh += _1
            tail = q >> _40
            cells[tail] = c | now << _32
            desk[k] = q + ((c - tail) << _40) + _1
            peak = max(peak, length + _1)
            desk[_WANT + (k & _63)] |= _1 << i
        came = draw(now + _1, key, chance, ports, desk)

        for j in range(ports):
            want = desk[_WANT + j]
            desk[_PICK + j] = either(want == _0, _64, first_of_word(want, desk[_GRANT + j]))
            desk[_GIVEN + j] = _0
        for j in range(ports):
            desk[_GIVEN + desk[_PICK + j]] |= _1 << j
        pairs = _0
        for i in range(ports):
            given, pointer = desk[_GIVEN + i], desk[_ACCEPT + i]
            j = first_of_word(given, pointer)
            desk[_PICK + i] = i << _6 | j
            desk[_ACCEPT + i] = either(given == _0, pointer, either(j + _1 < ports, j + _1, _0))
            pairs |= np.uint64(given != _0) << i

        measured = np.uint64(slot >= warmup)
        common = either(slot >= warmup, min(now - start + _1, ceiling), _0)  # delays below it are counted as they are
        served, outputs = population(pairs), _0
        while pairs != _0:
            i = np.uint64(lowest(pairs))
            pairs &= pairs - _1
            k = desk[_PICK + i]
            j = k & _63
            outputs |= _1 << j
            desk[_GRANT + j] = desk[_AFTER + i]
            q = desk[k]
            head = q >> _16 & _CELL
            cell = cells[head]
            free[top] = head
            top += _1
            q += (((cell & _LOW) - head) << _16) - _1
            desk[k] = q
            desk[_WANT + j] ^= np.uint64(q & _MANY == _0) << i
            desk[_SENT + j] += measured
            stamp = cell >> _32
            more, yet_more = mixed(now << _32 | i << _16 | j, stamp)
            x += more
            y += yet_more
            waited = now - stamp
            if waited < common:
                delay[waited] += 1
            elif stamp >= start:
                count[Count.BEYOND] += np.int64(waited)
                count[Count.LONGEST] = max(count[Count.LONGEST], np.int64(waited))
                delay[ceiling] += 1
        count[Count.OFFERED] += offered
        count[Count.LOST] += lost
        count[Count.CLASHES] += served - population(outputs)
        count[Count.DELIVERED] += served
        count[Count.MEASURED] += served * np.int64(measured)
        state.rounds[min(served, 1)] += 1
        level[Level.HELD] += np.uint64(offered - lost - served)

    pack(state, ports, desk)
    level[Level.TOP], level[Level.FRESH], level[Level.PEAK] = top, fresh, peak
    state.print[0], state.print[1] = x, y
    state.clock[0] = max(state.clock[0], stop)
    return stop
