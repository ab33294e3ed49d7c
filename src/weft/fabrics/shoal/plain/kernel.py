"""The plain kernel, one slot at a time: what fails, flows that start, the transport, sending and receiving."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import population
from weft.engine.calendar import FAR
from weft.engine.jit import bare, part
from weft.engine.reference import by_reference
from weft.fabrics.shoal.columns import (
    ACKS, ACKS_IN, ACTIVE, ASKING, CAUSES, CHANGE, CHANNELS, CLASSES, DELAY, DELIVERED, DONE, DUPLICATES, EPOCH,
    FAILED_SLOTS, FINISHED, FLYING, FREE, LISTED, LIVE, MORE_CELLS, MORE_PAIRS, MORE_WINDOW, MOVED, N,
    PATIENCE, REACHED, READY_QUEUES, RELEASED, REPAIR_UNTIL, REPEATS, RESENT, REST_TAIL, SLOT, SLOTS, SOURCE, SPENT,
    SPOKEN, STUCK, TIMEOUT, TURNS, VISITS, WAIT_OUT,
)  # fmt: skip
from weft.fabrics.shoal.plain.failures import take_changes
from weft.fabrics.shoal.plain.pairs import start_flows
from weft.fabrics.shoal.plain.receive import receive
from weft.fabrics.shoal.plain.send import send
from weft.fabrics.shoal.plain.state import FOLLOWING, HEAD, LENGTH, MINE, OF_PAIR, SILENT, TAIL
from weft.fabrics.shoal.plain.transport import time_out
from weft.fabrics.shoal.rules import next_start


@bare
def advance(plan, state, until, budget):
    """Simulate slots before `until`; says why it stopped. STUCK: nothing has moved for long, and nothing is to come."""
    tally, start, numbers, size = state.tally, plan.start, plan.numbers, state.cell.shape[0]
    n, channels, epoch = numbers[N], numbers[CHANNELS], numbers[EPOCH]
    visits, slots = tally[VISITS] + budget, tally[SLOTS] + budget
    plan, state = by_reference(plan), by_reference(state)
    while tally[SLOT] < until:
        if tally[FINISHED] == start.size:
            return DONE
        slot = tally[SLOT]
        coming = next_event(plan, state, until)
        if coming > slot:
            empty = tally[LIVE] == 0 if numbers[ASKING] else tally[FREE] == size and tally[ACTIVE] == 0
            still, settled = slot - tally[MOVED], 3 * (epoch + numbers[DELAY] + 1)  # both sides have noticed silence
            last = next_start(plan, state) == FAR and tally[CHANGE] + 1 == plan.change.size
            stuck = last and (still > numbers[PATIENCE] or (empty and still > settled))
            if stuck and not tally[WAIT_OUT]:
                return STUCK
            if stuck or (empty and still > settled and all_is_said(state)):
                skip(plan, state, coming)
                continue
        take_changes(plan, state)
        if not start_flows(plan, state):
            return MORE_PAIRS
        if numbers[TIMEOUT] > 0 and slot % epoch == 0:
            short = time_out(plan, state)
            if short != 0:
                return short
        most = channels * (n if numbers[READY_QUEUES] else max(n, tally[ACTIVE]))
        if tally[FREE] < most * numbers[CLASSES] + channels * n * (numbers[TURNS] + 2):
            return MORE_CELLS
        narrow = send(plan, state, slot)
        receive(plan, state, slot)
        tally[SLOT] += 1
        tally[SLOTS] += 1
        if narrow:
            return MORE_WINDOW
        if tally[VISITS] >= visits or tally[SLOTS] >= slots:
            return SPENT
    return REACHED


@part
def all_is_said(state):
    """Whether no feedback is owed or under way, not even on the pair that ended last."""
    tally, rested = state.tally, state.rested
    return tally[REST_TAIL] == 0 or rested[(tally[REST_TAIL] - 1) % rested.size] <= tally[SLOT]


@part
def next_event(plan, state, until):
    """The next slot, or `until`, in which a flow starts, something changes, or a repair is under way."""
    tally, change = state.tally, plan.change
    if tally[REPAIR_UNTIL] >= tally[SLOT]:
        return tally[SLOT]
    until = min(until, next_start(plan, state))
    if tally[CHANGE] + 1 < change.size:
        until = min(until, change[tally[CHANGE] + 1])
    return until


@part
def skip(plan, state, to):
    """Let empty slots pass up to slot `to`; only turns are counted."""
    tally, epoch, channels = state.tally, plan.numbers[EPOCH], plan.numbers[CHANNELS]
    first, slots = tally[SLOT], to - tally[SLOT]
    for p in range(plan.shift.size):
        offset = (p // channels - first) % epoch
        times = (slots - offset + epoch - 1) // epoch if slots > offset else 0
        for b in range(state.down.size):
            working = plan.lit[p, b] & ~state.down[b]
            tally[SPOKEN] += times * population(working & ~state.mute[p, b])
            tally[FAILED_SLOTS] += times * population(working & state.mute[p, b])
    delay, x = plan.numbers[DELAY], plan.cuts[tally[CHANGE]] if tally[CHANGE] >= 0 else 0
    for slot in range(max(first, to - delay), to):  # empty cells are in the air, and silence that the dead did not hear
        air = state.air[slot % (delay + 1)]
        air[:, :, :] = 0
        for c in range(channels):
            p = slot % epoch * channels + c
            for b in range(state.down.size):
                arrives = plan.lit[p, b] & ~state.down[b] & ~state.mute[p, b] & ~plan.cut[x, p, b]
                air[c, SILENT, b] = plan.lit[p, b] & ~arrives & ~state.deaf[p, b]
    state.complain[:, :] = 0  # what was dropped were empty cells
    tally[SLOT] = to


def pass_time(plan, state, to):
    """Let slots pass up to slot `to` in a rack that is stuck."""
    state.tally[WAIT_OUT] = 1
    return advance(plan, state, to, 1)


def inspect(plan, state):
    """Look through all queues: (cells that share a queue with another of their subflow, cells that do not add up)."""
    tally, numbers = state.tally, plan.numbers
    twice, wrong, queued = look_through(state.queue, state.cell, state.pair, numbers[N], numbers[CLASSES])
    there = queued + tally[FLYING] + tally[LISTED]
    gone = tally[DELIVERED] + tally[DUPLICATES] + tally[ACKS_IN] + sum(tally[cause] for cause in CAUSES.values())
    wrong += abs(state.waiting.sum() - queued) + abs(len(state.cell) - tally[FREE] - there)
    wrong += abs(tally[RELEASED] + tally[REPEATS] + tally[RESENT] + tally[ACKS] - there - gone)
    return twice, wrong


@bare
def look_through(queue, cell, pair, n, classes):
    """Cells that share a queue with another of their subflow, queues that do not add up, and cells in queues."""
    twice = wrong = queued = np.int64(0)
    for row in range(queue.shape[0]):
        length = np.int64(queue[row, LENGTH])
        queued += length
        number, own = np.int64(queue[row, HEAD]), 0
        for k in range(length):
            own += 1 if pair[cell[number, OF_PAIR], SOURCE] == row // classes % n else 0
            other = np.int64(cell[number, FOLLOWING])
            for _ in range(k + 1, length):
                twice += 1 if cell[other, OF_PAIR] == cell[number, OF_PAIR] else 0
                other = np.int64(cell[other, FOLLOWING])
            if k == length - 1 and number != queue[row, TAIL]:
                wrong += 1
            number = np.int64(cell[number, FOLLOWING])
        wrong += abs(own - queue[row, MINE])
    return twice, wrong, queued
