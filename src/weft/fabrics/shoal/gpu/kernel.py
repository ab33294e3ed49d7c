"""The text, compiled: a block of threads per rack on a device, or a loop over nodes on the processor."""

from functools import cache  # noqa: I001 (names in a block, not a column)

import numpy as np
from numba import cuda, int32, uint32, uint64

from weft.engine.device import (
    CLOSE, compiled, device, go_on, loop, registers_of, row_of, some_of, threads_of, wait_for_all,
)  # fmt: skip
from weft.engine.device import on_device as device_kernel
from weft.engine.jit import kernel
from weft.fabrics.shoal.gpu.state import (
    ACC, BASE, DELIVERED, FINISHED, FORWARDED, LAST, LENGTHS, LENGTH_0, LENGTH_1, LENGTH_2, LENGTH_3, LOCAL, MAX_HELD,
    MAX_NODE, MAX_QUEUE, OVER_BOUND, RELAYED, SLOT, STOP, STOPPED, SUMS, VISITS, Common, Racks,
)  # fmt: skip
from weft.fabrics.shoal.gpu.text import begin, has_to_begin, rebase, receive, send
from weft.fabrics.shoal.kernel import REBASE

# What a device has as constants: set in the copy that is compiled.
NUMBERS = (0,) * (len(Common._fields) - 1)
NEAR64 = NEAR32 = 0  # words of the blocks that are kept close by; none if they do not fit


@device
def rack_of(racks, b, near64, near32):
    """The blocks of rack b."""
    return Racks(
        row_of(racks.u64, b), row_of(racks.u32, b), row_of(racks.leave, b), row_of(racks.leave4, b),
        row_of(racks.flows, b), near64, near32, row_of(racks.counted, b),
    )  # fmt: skip


@device
def in_order(plan, racks, stops, orders):
    """Let every rack advance to its stop, the nodes in the order of a row of `orders`, another for each half slot.

    Every other node, by that order, sends before others have received, if a device lets it.
    """
    acc, sums = np.zeros(ACC, np.int64), np.zeros(2, np.uint64)
    for b in range(stops.size):
        rack = rack_of(racks, b, racks.near64[b], racks.near32[b])
        tally, total = rack.counted, np.int64(rack.u32[plan.until + plan.n])
        acc[:] = 0
        sums[:] = 0
        slot, ahead = tally[SLOT], np.zeros(plan.n, np.bool_)
        past = slot // plan.epoch - tally[BASE]
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
                    send(plan, rack, i, slot, e, base, slot % air * channels, acc)
            halt = acc[STOP] != 0
            waits = halt or slot + 1 >= stops[b] or slot + 1 > tally[LAST]
            back, last = (slot - plan.delay) % plan.epoch * channels, (slot - plan.delay) % air * channels
            slot += 1
            e, base = slot // plan.epoch - tally[BASE], slot % plan.epoch * channels
            for k in range(plan.n):
                i = orders[(2 * slot - 1) % orders.shape[0], k]
                receive(plan, rack, i, slot - 1, back, last, acc, sums)
                ahead[i] = not waits and order[k] & 1 == 0 and not has_to_begin(plan, rack, i, slot)
                if ahead[i]:
                    send(plan, rack, i, slot, e, base, slot % air * channels, acc)
        for k in (LOCAL, FORWARDED, DELIVERED, VISITS, RELAYED, OVER_BOUND):
            tally[k] += acc[k]
        for k in (MAX_QUEUE, MAX_NODE, MAX_HELD):
            tally[k] = max(tally[k], acc[k])
        for k in range(4):
            tally[LENGTHS + k] += acc[LENGTH_0 + k]
        for k in range(2):
            tally[SUMS + k] += np.int64(sums[k])
        tally[STOPPED] = acc[STOP]
        tally[SLOT] = slot


@device
def side_by_side(tables, racks, stops):
    """The same on a device: a block of threads for every rack."""
    plan = Common(*NUMBERS, tables)
    b, thread, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    acc, sums = cuda.local.array(ACC, int32), cuda.local.array(2, uint64)
    for k in range(ACC):
        acc[k] = 0
    sums[0] = 0
    sums[1] = 0
    near64, near32 = row_of(racks.near64, b), row_of(racks.near32, b)
    if NEAR64 > 0:
        near64 = cuda.shared.array(NEAR64, uint64)
        near32 = cuda.shared.array(NEAR32, uint32)  # the simulator tells them by the line they stand in
        for k in range(thread, NEAR64, threads):
            near64[k] = racks.near64[b, k]
        for k in range(thread, NEAR32, threads):
            near32[k] = racks.near32[b, k]
    rack = rack_of(racks, b, near64, near32)
    tally, n, n_of_all = rack.counted, plan.n, -(-plan.n // threads) * threads
    total, stop, slot = np.int64(rack.u32[plan.until + n]), stops[b], tally[SLOT]
    past = slot // plan.epoch - tally[BASE]
    going = slot < stop and tally[FINISHED] < total
    cuda.syncthreads()  # all have read the tally
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
        for i in range(thread, n, threads):
            send(plan, rack, i, slot, e, base, place, acc)
        halt = cuda.syncthreads_or(int32(acc[STOP])) != 0  # somebody needs more room
        busy = False
        slot += 1
        for i in range(thread, n, threads):
            receive(plan, rack, i, slot - 1, back, came, acc, sums)
            busy |= has_to_begin(plan, rack, i, slot)
        going = slot < stop and not halt
        busy = some_of(busy)
        if slot > last or not going:  # it may have been the last flow that ended
            cuda.syncthreads()
            going = going and tally[FINISHED] < total
        elif busy:
            wait_for_all(threads)
        else:
            go_on(threads)
        base, back, place, came = base + channels, back + channels, place + channels, came + channels
        back = 0 if back == places else back
        place = 0 if place == wires else place
        came = 0 if came == wires else came
        if base == places:
            base = 0
            e += 1
    cuda.atomic.add(tally, LOCAL, acc[LOCAL])
    cuda.atomic.add(tally, FORWARDED, acc[FORWARDED])
    cuda.atomic.add(tally, DELIVERED, acc[DELIVERED])
    cuda.atomic.add(tally, VISITS, acc[VISITS])
    cuda.atomic.add(tally, RELAYED, acc[RELAYED])
    cuda.atomic.add(tally, OVER_BOUND, acc[OVER_BOUND])
    cuda.atomic.max(tally, MAX_QUEUE, acc[MAX_QUEUE])
    cuda.atomic.max(tally, MAX_NODE, acc[MAX_NODE])
    cuda.atomic.max(tally, MAX_HELD, acc[MAX_HELD])
    cuda.atomic.add(tally, LENGTHS, acc[LENGTH_0])
    cuda.atomic.add(tally, LENGTHS + 1, acc[LENGTH_1])
    cuda.atomic.add(tally, LENGTHS + 2, acc[LENGTH_2])
    cuda.atomic.add(tally, LENGTHS + 3, acc[LENGTH_3])
    cuda.atomic.add(tally, SUMS, np.int64(sums[0]))
    cuda.atomic.add(tally, SUMS + 1, np.int64(sums[1]))
    if acc[STOP] != 0:
        cuda.atomic.or_(tally, STOPPED, acc[STOP])
    if thread == 0:
        tally[SLOT] = slot
    if NEAR64 > 0:
        for k in range(thread, NEAR64, threads):
            racks.near64[b, k] = near64[k]
        for k in range(thread, NEAR32, threads):
            racks.near32[b, k] = near32[k]


@cache
def in_a_loop():
    """`in_order`, compiled."""
    return compiled(in_order, loop(), jit=kernel)


@cache
def on_device(numbers: tuple, near64: int, near32: int):
    """`side_by_side`, compiled for racks of which `Common` begins with these numbers: kernel[racks, threads](…)."""
    fits = near64 * 8 + near32 * 4 <= CLOSE
    names = {"NUMBERS": numbers, "NEAR64": near64 if fits else 0, "NEAR32": near32 if fits else 0}
    return device_kernel(side_by_side, __name__, names, registers_of(threads_of(numbers[0])))


def launch(common, racks, stops) -> None:
    """Let the racks on a device advance to their stops."""
    carry = on_device(tuple(int(one) for one in common[:-1]), racks.near64.shape[1], racks.near32.shape[1])
    carry[len(stops), threads_of(common.n)](common.tables, racks, cuda.to_device(stops))


def launch_loop(common, racks, stops, rng) -> None:
    """The same on the processor, nodes in an order that is drawn."""
    racks.counted[:, STOPPED] = 0
    in_a_loop()(common, racks, stops, np.array([rng.permutation(common.n) for _ in range(7)]))
