"""Damaged cells (App. D) and clocks that are off (§3.4): who speaks, whose cell is damaged, what is sent again."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import lowest, population
from weft.engine.jit import hot, part
from weft.engine.random import below, word
from weft.fabrics.shoal.columns import (
    BITS, CHANGE, CHANNELS, CLASSES, DAMAGE, DELAY, EPOCH, FAILED_SLOTS, FEEDBACK_AT, FEEDBACK_BITS, N, SOURCE, SPOKEN,
)  # fmt: skip
from weft.fabrics.shoal.plain.classes import note_length, put_first, wait_at
from weft.fabrics.shoal.plain.pairs import copy_of
from weft.fabrics.shoal.plain.sets import add, has
from weft.fabrics.shoal.plain.state import (
    ARRIVES, BIT_KEY, COLLIDES, COMPLAINS, DAMAGE_KEY, DAMAGED, KLASS, MESSAGE, MINE, OF_PAIR, SILENT, THRESHOLD,
)  # fmt: skip

_ONE = np.uint64(1)


@hot
def draw(plan, slot, c, i):
    """The number of the random draw for what i sends on channel c in a slot."""
    return (slot * plan.numbers[CHANNELS] + c) * plan.numbers[N] + i


@part
def speak(plan, state, slot, base):
    """Note, as sets, who sends in this slot, whose cells arrive, whose are damaged, and who will be missed."""
    numbers, tally = plan.numbers, state.tally
    damage, key, threshold = numbers[DAMAGE], plan.bit_errors[DAMAGE_KEY], plan.bit_errors[THRESHOLD]
    cut, air = plan.cut[plan.cuts[tally[CHANGE]]], state.air[slot % (numbers[DELAY] + 1)]
    for c in range(numbers[CHANNELS]):
        p, first = base + c, draw(plan, slot, c, 0)
        for b in range(state.down.size):
            working = plan.lit[p, b] & ~state.down[b]
            speaking = working & ~state.mute[p, b]
            arrives = speaking & ~cut[p, b]
            tally[SPOKEN] += population(speaking)
            tally[FAILED_SLOTS] += population(working & ~speaking)
            complains = state.complain[p, b] & speaking
            state.complain[p, b] &= ~speaking
            collides = state.off_clock[p, b] & speaking
            damaged = collides
            if damage:
                todo = speaking & ~collides
                while todo != 0:
                    i = b * 64 + lowest(todo)
                    if word(key, first + i) < threshold:
                        damaged |= _ONE << np.uint64(i & 63)
                    todo &= todo - _ONE
            air[c, ARRIVES, b] = arrives
            air[c, SILENT, b] = plan.lit[p, b] & ~arrives & ~state.deaf[p, b]
            air[c, DAMAGED, b] = damaged
            air[c, COLLIDES, b] = collides
            air[c, COMPLAINS, b] = complains
            air[c, MESSAGE, b] = damaged | complains


@part
def with_wrong_bit(plan, ahead, value, slot, c, i):
    """The feedback `ahead`, a cell's `value`-th, as it arrives in a damaged cell: one bit of the cell is wrong, perhaps
    one of these. The values stand one behind the other."""
    numbers = plan.numbers
    first = numbers[FEEDBACK_AT] + value * numbers[FEEDBACK_BITS]
    bit = below(word(plan.bit_errors[BIT_KEY], draw(plan, slot, c, i)), numbers[BITS]) - first
    if 0 <= bit < numbers[FEEDBACK_BITS]:
        ahead ^= np.int64(1) << bit
    return ahead


@hot
def complain(state, j, r):
    """Let the next cell of node j in place r say that the peer's last one was dropped."""
    if not has(state.mute[r], j):
        add(state.complain[r], j)


@part
def repeat(plan, state, j, r, sent):
    """Node j sends again, first in its queue, what a cell of its peer speaks of that was sent in slot `sent`.

    That is j's last cell in place r that had arrived by then.
    """
    numbers = plan.numbers
    turn = (sent - numbers[DELAY] - 1 - np.int64(plan.slot[r])) // numbers[EPOCH]
    if turn < 0 or has(state.mute[r], j):
        return
    q = r * numbers[N] + j
    number = copy_of(plan, state, q, turn)
    if number < 0:
        return
    h = np.int64(state.cell[number, OF_PAIR])
    k = state.pair[h, KLASS]
    row = q * numbers[CLASSES] + k
    put_first(state.queue, state.cell, row, number)
    if state.pair[h, SOURCE] == j:
        state.queue[row, MINE] += 1
    add(state.busy[r], j)
    wait_at(state, j, 1)
    note_length(state, row, k)
