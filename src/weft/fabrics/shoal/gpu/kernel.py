"""The text, compiled: a block of threads per rack on a device, or a loop over nodes on the processor."""

from functools import cache  # noqa: I001 (names in a block, not a column)

import numpy as np
from numba import cuda, int32, uint32, uint64

from weft.engine.device import (
    GROUPS, add_to, close_by, compiled, device, lanes, loop, nanoseconds, registers_of, row_of, settled, some_of,
    tell, threads_of,
)  # fmt: skip
from weft.engine.device import launch as start
from weft.engine.device import on_device as device_kernel
from weft.engine.jit import kernel
from weft.fabrics.shoal.gpu.state import (
    ACC, BASE, DELIVERED, FINISHED, FORWARDED, KEPT32, KEPT64, LAST, LENGTHS, LOCAL, MAX_HELD, MAX_NODE, MAX_QUEUE,
    MOST_VISITS, RELAYED, RING, SENT, SLOT, STOP, STOPPED, SUMS, TIME_IS_UP, VISITS, Common, Rack,
)  # fmt: skip
from weft.fabrics.shoal.gpu.text import begin, foresee, has_to_begin, may_begin, rebase, receive, send
from weft.fabrics.shoal.kernel import REBASE

# What a device has as constants: set in the copy that is compiled.
NUMBERS = (0,) * (len(Common._fields) - 1)
NEAR64 = NEAR32 = NEAR = 0  # words of the blocks, and of the tables, that are kept close by; none if they do not fit
FEW = 0  # words of `few`, if they fit as well
ALL64, ALL32 = 4 * KEPT64, 4 * KEPT32  # words that a thread keeps
ONE_EACH = FULL = False  # whether a thread has at most one node, whether each has one
KEPT = 0  # threads of which what they keep lies there, too; none if it does not fit
LOOKS, PATIENCE = 16, 8  # slots between looks at the clock; a launch takes this part of its time if some rack waits
PASSED = 3 * GROUPS  # words that say how far others have come, and who wants to know


@device
def rack_of(racks, b, near64, near32, few, passed, kept64, kept32):
    """The blocks of rack b."""
    return Rack(
        row_of(racks.u64, b), row_of(racks.u32, b), row_of(racks.leave, b), row_of(racks.leave4, b),
        row_of(racks.flows, b), near64, near32, few, row_of(racks.counted, b), passed, kept64, kept32,
    )  # fmt: skip


@device
def in_order(plan, racks, stops, orders):
    """Let every rack advance to its stop, the nodes in the order of a row of `orders`, another for each half slot.

    Every other node, by that order, sends before others have received, as far as a device lets it.
    """
    acc, sums = np.zeros(ACC, np.int64), np.zeros(3, np.uint64)
    kept64, kept32 = np.zeros(ALL64 * plan.apart, np.uint64), np.zeros(ALL32 * plan.apart, np.uint32)
    passed = np.zeros(PASSED, np.int32)
    for b in range(stops.size):
        rack = rack_of(racks, b, racks.near64[b], racks.near32[b], racks.few[b], passed, kept64, kept32)
        tally, total = rack.counted, np.int64(rack.near32[plan.until + plan.n])
        acc[:] = 0
        sums[:] = 0
        slot, ahead = tally[SLOT], np.zeros(plan.n, np.bool_)
        past = whole_turns(plan, slot // plan.epoch - tally[BASE])
        if past >= REBASE:
            for thread in orders[0]:
                rebase(plan, rack, past, thread, orders.shape[1])
            tally[BASE] += past
        air, channels, halt = plan.air, plan.channels, False
        while slot < stops[b] and tally[FINISHED] < total and not halt:
            order = orders[2 * slot % orders.shape[0]]
            e, base = slot // plan.epoch - tally[BASE], slot % plan.epoch * channels
            for i in order:
                if not ahead[i]:
                    begin(plan, rack, i, True, slot, acc)
                    send(plan, rack, i, slot, e, base, slot % air * channels, acc, sums)
                    add_visits(tally, sums)
            halt = acc[STOP] != 0
            waits = halt or slot + 1 >= stops[b] or slot + 1 > tally[LAST]
            back, last = (slot - plan.delay) % plan.epoch * channels, (slot - plan.delay) % air * channels
            now, there = e, base
            slot += 1
            e, base = slot // plan.epoch - tally[BASE], slot % plan.epoch * channels
            taken = np.zeros(plan.n, np.bool_)
            for k in range(plan.n):
                i = orders[(2 * slot - 1) % orders.shape[0], k]
                receive(plan, rack, i, slot - 1, now, there, back, last, acc, sums)
                taken[i] = True
                ahead[i] = not waits and order[k] & 1 == 0 and may_begin(plan, rack, i, slot, taken)
                if ahead[i]:
                    begin(plan, rack, i, True, slot, acc)
                    send(plan, rack, i, slot, e, base, slot % air * channels, acc, sums)
                    add_visits(tally, sums)
        for k in (LOCAL, DELIVERED, RELAYED):
            tally[k] += acc[k]
        tally[FORWARDED] += acc[SENT] - acc[LOCAL]
        for k in (MAX_QUEUE, MAX_NODE, MAX_HELD):
            tally[k] = max(tally[k], acc[k])
        for k in range(2):
            tally[SUMS + k] += np.int64(sums[k])
        tally[STOPPED] = acc[STOP]
        tally[SLOT] = slot


@device
def add_visits(tally, sums):
    """Take the visits that a thread has counted over to the tally."""
    for k in range(4):
        visits = np.int64(sums[2] >> np.uint64(16 * k)) & MOST_VISITS
        add_to(tally, LENGTHS + k, visits)
        add_to(tally, VISITS, visits)
    sums[2] = 0


@device
def whole_turns(plan, epochs):
    """So many epochs, and no more, after which all that is kept by the epoch lies where it lay.

    Some remain: what was said of earlier ones counts as said of the first, which must not be the one that begins.
    """
    turn = RING * plan.feedback
    return epochs - epochs % turn - turn


@device
def side_by_side(tables, racks, stops, length):
    """The same on a device: a block of threads for every rack, for so many nanoseconds at most.

    Behind the stops stands whether a rack has reached its own. It waits then, so the others end a good deal earlier.
    """
    b, thread, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    acc, sums, began = cuda.local.array(ACC, int32), cuda.local.array(3, uint64), nanoseconds()
    for k in range(ACC):
        acc[k] = 0
    sums[0] = 0
    sums[1] = 0
    sums[2] = 0
    near64, near32, few = row_of(racks.near64, b), row_of(racks.near32, b), row_of(racks.few, b)
    kept64, kept32 = cuda.local.array(ALL64, uint64), cuda.local.array(ALL32, uint32)
    if KEPT > 0:  # as much as the launch says, in one piece
        kept64 = settled(cuda.shared.array(0, uint64), NEAR64 + thread)
        kept32 = settled(cuda.shared.array(0, uint32), 2 * (NEAR64 + ALL64 * KEPT) + thread)
    if NEAR64 > 0:
        near64 = settled(cuda.shared.array(0, uint64), 0)
        near32 = settled(cuda.shared.array(0, uint32), 2 * NEAR64 + (2 * ALL64 + ALL32) * KEPT)
        known = settled(cuda.shared.array(0, int32), 2 * NEAR64 + (2 * ALL64 + ALL32) * KEPT + NEAR32)
        for k in range(thread, NEAR64, threads):
            near64[k] = racks.near64[b, k]
        for k in range(thread, NEAR32, threads):
            near32[k] = racks.near32[b, k]
        for k in range(thread, NEAR, threads):
            known[k] = tables[k]
        tables = known
    there = 2 * NEAR64 + (2 * ALL64 + ALL32) * KEPT + NEAR32 + NEAR
    passed = settled(cuda.shared.array(0, int32), there + FEW)
    if FEW > 0:
        few = settled(cuda.shared.array(0, uint32), there)
        for k in range(thread, FEW, threads):
            few[k] = racks.few[b, k]
    plan = Common(*NUMBERS, tables)
    rack = rack_of(racks, b, near64, near32, few, passed, kept64, kept32)
    tally, n, n_of_all = rack.counted, plan.n, -(-plan.n // threads) * threads
    total, stop, slot = np.int64(racks.near32[b, plan.until + n]), stops[b], tally[SLOT]
    for k in range(thread, PASSED, threads):
        passed[k] = slot
    past = whole_turns(plan, slot // plan.epoch - tally[BASE])
    going = slot < stop and tally[FINISHED] < total
    cuda.syncthreads()  # all have read the tally, and begun to say how far they are
    for i in range(thread, plan.n, threads):
        foresee(plan, rack, i, slot + 1)
    if thread == 0:
        tally[STOPPED] = 0
        tally[BASE] += past if past >= REBASE else 0
    if past >= REBASE:
        rebase(plan, rack, past, thread, threads)
    cuda.syncthreads()
    channels, places, wires = plan.channels, plan.epoch * plan.channels, plan.air * plan.channels
    e, base, place = slot // plan.epoch - tally[BASE], slot % plan.epoch * channels, slot % plan.air * channels
    back = (slot + plan.epoch * (plan.delay // plan.epoch + 1) - plan.delay) % plan.epoch * channels
    came, last, busy = (slot + plan.air - plan.delay) % plan.air * channels, tally[LAST], True
    while going:
        if busy:
            for i in range(thread, n_of_all, threads):
                begin(plan, rack, i, i < n, slot, acc)
        i = thread
        while i < n or FULL:  # a loop over one node is none
            send(plan, rack, i, slot, e, base, place, acc, sums)
            i += threads
            if ONE_EACH:
                break
        if thread == 0 and slot % LOOKS == 0:
            took = nanoseconds() - began
            if took > length or (took > length // PATIENCE and cuda.atomic.max(stops, cuda.gridDim.x, 0) != 0):
                acc[STOP] |= TIME_IS_UP
        halt = cuda.syncthreads_or(int32(acc[STOP])) != 0  # or somebody needs more room
        busy = False
        slot += 1
        i = thread
        while i < n or FULL:
            receive(plan, rack, i, slot - 1, e, base, back, came, acc, sums)
            busy |= has_to_begin(plan, rack, i, slot)
            foresee(plan, rack, i, slot + 1)
            i += threads
            if ONE_EACH:
                break
        group = thread // lanes()
        if passed[GROUPS * (1 + (slot & 1)) + group] == int32(slot):
            tell(passed, group, int32(slot))
        going = slot < stop and not halt
        busy = some_of(busy)
        if slot > last or not going:  # it may have been the last flow that ended
            cuda.syncthreads()
            going = going and tally[FINISHED] < total
        base, back, place, came = base + channels, back + channels, place + channels, came + channels
        back = 0 if back == places else back
        place = 0 if place == wires else place
        came = 0 if came == wires else came
        if base == places:
            base = 0
            e += 1
    cuda.atomic.add(tally, LOCAL, acc[LOCAL])
    cuda.atomic.add(tally, FORWARDED, acc[SENT] - acc[LOCAL])
    cuda.atomic.add(tally, DELIVERED, acc[DELIVERED])
    cuda.atomic.add(tally, RELAYED, acc[RELAYED])
    cuda.atomic.max(tally, MAX_QUEUE, acc[MAX_QUEUE])
    cuda.atomic.max(tally, MAX_NODE, acc[MAX_NODE])
    cuda.atomic.max(tally, MAX_HELD, acc[MAX_HELD])
    add_visits(tally, sums)
    cuda.atomic.add(tally, SUMS, np.int64(sums[0]))
    cuda.atomic.add(tally, SUMS + 1, np.int64(sums[1]))
    if acc[STOP] & ~TIME_IS_UP != 0:
        cuda.atomic.or_(tally, STOPPED, acc[STOP] & ~TIME_IS_UP)
    if thread == 0:
        if slot > tally[SLOT] and acc[STOP] == 0:
            cuda.atomic.max(stops, cuda.gridDim.x, 1)
        tally[SLOT] = slot
    if NEAR64 > 0:
        for k in range(thread, NEAR64, threads):
            racks.near64[b, k] = near64[k]
        for k in range(thread, NEAR32, threads):
            racks.near32[b, k] = near32[k]
    if FEW > 0:
        for k in range(thread, FEW, threads):
            racks.few[b, k] = few[k]


@cache
def in_a_loop():
    """`in_order`, compiled."""
    return compiled(in_order, loop(), jit=kernel)


@cache
def on_device(numbers: tuple, near64: int, near32: int, tables: int, few: int):
    """(`side_by_side`, compiled for racks of which `Common` begins so; bytes that a block of it has close by)."""
    which = Common._fields.index("apart")
    threads = kept = numbers[which]
    close, each = near64 * 8 + (near32 + tables) * 4, 4 * (2 * ALL64 + ALL32)
    if close + PASSED * 4 > close_by():
        near64 = near32 = tables = close = 0
    if close == 0 or close + (few + PASSED) * 4 > close_by():
        few = 0
    if close + (few + PASSED) * 4 + threads * each > close_by():
        numbers, kept = (*numbers[:which], 1, *numbers[which + 1 :]), 0
    names = {"NUMBERS": numbers, "NEAR64": near64, "NEAR32": near32, "NEAR": tables, "FEW": few, "KEPT": kept}
    nodes = numbers[Common._fields.index("n")]
    names |= {"ONE_EACH": nodes <= threads_of(nodes), "FULL": nodes == threads_of(nodes)}
    carry = device_kernel(side_by_side, __name__, names, registers_of(threads))
    return carry, close + (few + PASSED) * 4 + kept * each


def launch(common, racks, stops, seconds) -> None:
    """Let the racks on a device advance to their stops, or as far as they come in so many seconds."""
    numbers, near64, near32 = tuple(int(one) for one in common[:-1]), racks.near64.shape[1], racks.near32.shape[1]
    carry, close = on_device(numbers, near64, near32, common.tables.size, racks.few.shape[1])
    start(
        carry,
        len(stops),
        threads_of(common.n),
        close,
        common.tables,
        racks,
        cuda.to_device(np.append(stops, 0)),
        int(seconds * 1e9),
    )


def launch_loop(common, racks, stops, rng) -> None:
    """The same on the processor, nodes in an order that is drawn."""
    racks.counted[:, STOPPED] = 0
    in_a_loop()(common, racks, stops, np.array([rng.permutation(common.n) for _ in range(7)]))
