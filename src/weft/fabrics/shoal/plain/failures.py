"""Failures and repair (§3.5): what the plan of changes says, who is missed, who is told, and what starts afresh."""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.bits import lowest
from weft.engine.jit import hot, part
from weft.fabrics.shoal.columns import (
    CHANGE, CHANNELS, CLASSES, DECLARED, DELAY, DETECTED, DISCARDED, EPOCH, HALF, LISTED, MOVED, N, NEXT, PAIRS_USED,
    QUEUED, REPAIR_UNTIL, SELF, SLOT, SOURCE, TURNS, WAKE,
)  # fmt: skip
from weft.fabrics.shoal.plain.classes import clear
from weft.fabrics.shoal.plain.pairs import copy_of, lose, repeat_later, retire
from weft.fabrics.shoal.plain.sets import add, discard, has
from weft.fabrics.shoal.plain.state import (
    BORN, FOLLOWING, HEAD, LAST, LENGTH, LIST, OF_PAIR, SENT_EPOCH, SENT_PAIR, SILENT,
)  # fmt: skip
from weft.fabrics.shoal.rules import facing, where

_ONE = np.uint64(1)


# ---------------------------------------------------------------- the plan of changes


@part
def take_changes(plan, state):
    """Take in what the plan says of this slot."""
    tally, down, cut, dead = state.tally, state.down, plan.cut, plan.dead
    epoch, delay, slot = plan.numbers[EPOCH], plan.numbers[DELAY], tally[SLOT]
    changed = False
    while tally[CHANGE] + 1 < plan.change.size and plan.change[tally[CHANGE] + 1] <= slot:
        tally[CHANGE] += 1
        x = plan.cuts[tally[CHANGE]]
        before = plan.cuts[tally[CHANGE] - 1] if tally[CHANGE] > 0 else x
        changed = True
        for i in range(plan.numbers[N]):
            if has(dead[x], i) and not has(down, i):
                fail_node(plan, state, i)
        better = False
        if x != before:
            for b in range(down.size):
                better |= dead[before, b] & ~dead[x, b] != 0
                for p in range(plan.shift.size):
                    better |= cut[before, p, b] & ~cut[x, p, b] != 0
        if better:
            tally[REPAIR_UNTIL] = -(-(slot + delay) // epoch) * epoch
    if slot <= tally[REPAIR_UNTIL] and slot % epoch == 0:
        repair(plan, state)
        changed = True
    if changed:
        note_peers(plan, state)
        tally[MOVED] = slot


@part
def note_peers(plan, state):
    """Note whose peers are down, and whose clocks are off, place by place."""
    n, off = plan.numbers[N], plan.off[plan.offs[state.tally[CHANGE]]]
    for p in range(plan.shift.size):
        state.peer_down[p, :] = 0
        state.off_clock[p, :] = 0
        for i in range(plan.first[p], plan.last[p]):
            j = facing(i, plan.shift[p], n)
            if has(state.down, j):
                add(state.peer_down[p], i)
            if has(off, i) or has(off, j):
                add(state.off_clock[p], i)


@part
def fail_node(plan, state, i):
    """Node i goes down: all that its interface holds is lost."""
    n, classes, tally = plan.numbers[N], plan.numbers[CLASSES], state.tally
    queue, cell, pair = state.queue, state.cell, state.pair
    add(state.down, i)
    h = np.int64(state.living[i]) - 1
    while h >= 0:
        after = pair[h, NEXT] - 1
        number, last = pair[h, LIST] - 1, pair[h, LAST] - 1
        pair[h, LIST] = 0
        while number >= 0:
            following = np.int64(cell[number, FOLLOWING]) if number != last else np.int64(-1)
            tally[LISTED] -= 1
            tally[QUEUED] += 1
            lose(plan, state, number)
            number = following
        h = after
    retire(state, i)
    for p in range(plan.shift.size):
        q = p * n + i
        for row in range(q * classes, (q + 1) * classes):
            number = np.int64(queue[row, HEAD])
            for _ in range(queue[row, LENGTH]):
                following = np.int64(cell[number, FOLLOWING])
                tally[QUEUED] += 1
                lose(plan, state, number)
                number = following
        clear(plan, state, q)
        state.sent[q, :, SENT_EPOCH] = 0
        discard(state.complain[p], i)
        discard(state.busy[p], i)
    state.told[i] = 0
    state.waiting[i] = 0


@part
def repair(plan, state):
    """Withdraw the declarations that no longer hold; what goes over those links, or nodes, starts afresh."""
    numbers, shift, mirror, place = plan.numbers, plan.shift, plan.mirror, plan.place
    n, half, delay, channels, epoch = numbers[N], numbers[HALF], numbers[DELAY], numbers[CHANNELS], numbers[EPOCH]
    x, repaired, down, slot = plan.cuts[state.tally[CHANGE]], state.repaired, state.down, state.tally[SLOT]
    cut, dead, pair = plan.cut[x], plan.dead[x], state.pair
    repaired[:, :] = 0
    for p in range(shift.size):
        r = np.int64(mirror[p])
        for i in range(plan.first[p], plan.last[p]):
            j = facing(i, shift[p], n)
            if has(state.deaf[p], i) and not (has(cut[p], i) or has(cut[r], j) or has(dead, i) or has(dead, j)):
                add(repaired[p], i)
                add(repaired[r], j)
                state.missed[j, i] = 0
    for h in range(state.tally[PAIRS_USED]):
        if pair[h, BORN] < 0:
            continue
        i, d = pair[h, SOURCE], np.int64(state.target[h])
        afresh = has(down, i) and not has(dead, i)
        for p in range(shift.size):
            if not has(plan.lit[p], i):
                continue
            j = facing(i, np.int64(shift[p]), n)
            back = has(down, j) and not has(dead, j)
            if afresh or back or has(repaired[p], i) or (j != d and has(repaired[where(place, half, n, j, d)], j)):
                state.leave[h, p] = 0
    for ago in range(1, delay + 1):  # silence that was due to what is over is not noticed
        if ago <= slot:
            base = (slot - ago) % epoch * channels
            for c in range(channels):
                silent = state.air[(slot - ago) % (delay + 1), c, SILENT]
                for b in range(down.size):
                    silent[b] &= ~(repaired[base + c, b] | (down[b] & ~dead[b]))
    for b in range(down.size):
        for p in range(shift.size):
            state.deaf[p, b] &= ~repaired[p, b]
            state.mute[p, b] &= ~repaired[p, b]
        if down[b] & ~dead[b] != 0:
            state.tally[WAKE] = 1
        down[b] = dead[b]


# ---------------------------------------------------------------- silence, and the news of it


@part
def listen(plan, state, p, sent, silent):
    """Let whoever has missed a cell that was expected in place p, sent in slot `sent`, declare its sender failed."""
    n, shift = plan.numbers[N], np.int64(plan.shift[p])
    for b in range(state.down.size):
        todo = silent[b] & ~state.deaf[p, b] & ~state.peer_down[p, b]
        while todo != 0:
            i = b * 64 + lowest(todo)
            declare(plan, state, i, facing(i, shift, n), p, sent)
            todo &= todo - _ONE


@part
def declare(plan, state, i, j, p, sent):
    """Node j takes i for failed, having missed the cell that i should have sent in slot `sent`, in place p."""
    numbers, queue, cell, tally, pair = plan.numbers, state.queue, state.cell, state.tally, state.pair
    n, epoch, delay, classes = numbers[N], numbers[EPOCH], numbers[DELAY], numbers[CLASSES]
    slot, r = tally[SLOT], np.int64(plan.mirror[p])
    add(state.deaf[p], i)
    add(state.mute[r], j)
    state.missed[j, i] = sent // epoch + 1
    tally[DECLARED] += 1
    tally[DETECTED] = tally[MOVED] = slot
    q, turn = r * n + j, np.int64(plan.slot[r])
    # What i sends in a slot it sends knowing that all that came before has come: the rest is in doubt.
    e = max(-(-(sent - epoch - delay - turn) // epoch), 0)
    while e * epoch + turn <= slot:
        entry = state.sent[q, e % numbers[TURNS]]
        if entry[SENT_EPOCH] == e + 1 and pair[entry[SENT_PAIR] - 1, SOURCE] == j:
            number = copy_of(plan, state, q, e)
            if number >= 0:
                repeat_later(state, number)
        e += 1
    for row in range(q * classes, (q + 1) * classes):
        number = np.int64(queue[row, HEAD])
        for _ in range(queue[row, LENGTH]):
            following = np.int64(cell[number, FOLLOWING])
            state.waiting[j] -= 1
            if pair[cell[number, OF_PAIR], SOURCE] == j:
                repeat_later(state, number)
            else:
                tally[DISCARDED] += 1
                lose(plan, state, number)
            number = following
    clear(plan, state, q)
    if r == numbers[SELF]:
        state.told[j] = 0
    discard(state.complain[r], j)
    discard(state.busy[r], j)


@hot
def knows_parted(plan, state, slot, i, j, d, r):
    """Whether i has heard that j cannot reach d: j says so in its next cell to everyone, which to i is in place r."""
    missed = np.int64(state.missed[j, d])
    if missed == 0:
        return False
    numbers = plan.numbers
    epoch, delay, m = numbers[EPOCH], numbers[DELAY], where(plan.place, numbers[HALF], numbers[N], j, d)
    declared = (missed - 1) * epoch + plan.slot[plan.mirror[m]] + delay
    told = declared + 1 + (plan.slot[r] - declared - 1) % epoch
    return slot > told + delay
