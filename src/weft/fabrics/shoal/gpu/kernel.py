"""The text, compiled: a block of threads per rack on a device, or a loop over nodes on the processor."""

from functools import cache  # noqa: I001 (names in a block, not a column)

import numpy as np
from numba import config, cuda, int32, int64, uint64

from weft.engine.device import SIMULATED, compiled, device, loop, on_cuda
from weft.engine.jit import cache_folder, kernel
from weft.engine.reference import by_reference
from weft.fabrics.shoal.gpu.state import (
    ACC, BASE, DELIVERED, FINISHED, FORWARDED, LENGTH_0, LENGTH_1, LENGTH_2, LENGTH_3, LOCAL, MAX_HELD, MAX_NODE,
    MAX_QUEUE, OVER_BOUND, RELAYED, SLOT, STOP, STOPPED, VISITS, Racks,
)  # fmt: skip
from weft.fabrics.shoal.gpu.text import rebase, receive, send
from weft.fabrics.shoal.kernel import REBASE

THREADS = 1024  # of a block at most; a larger rack has several nodes a thread
REGISTERS = 65536  # of a multiprocessor, shared by the threads of a block …
MOST_REGISTERS = 128  # … of which more than these bring nothing


@device
def rack_of(racks, b):
    """The arrays of rack b."""
    return Racks(
        racks.held[b], racks.cells[b], racks.spill[b], racks.owed[b], racks.past[b], racks.leave[b], racks.leave4[b],
        racks.told[b], racks.left[b], racks.able[b], racks.used[b], racks.waiting[b], racks.pool[b],
        racks.after_pool[b], racks.free[b], racks.target[b], racks.since[b], racks.seq[b], racks.served[b],
        racks.want[b], racks.got[b], racks.undelivered[b], racks.rested[b], racks.early[b], racks.release[b],
        racks.deliver[b], racks.after[b], racks.finish[b], racks.meta[b], racks.upcoming[b], racks.due[b],
        racks.what[b], racks.about[b], racks.said[b], racks.again[b], racks.incast[b], racks.ended[b], racks.inflow[b],
        racks.inflow_since[b], racks.inflow_slots[b], racks.received[b], racks.lengths[b], racks.tally[b],
        racks.sums[b], racks.dst[b], racks.size[b], racks.start[b], racks.order[b], racks.until[b],
    )  # fmt: skip


@device
def in_order(common, racks, stops, orders):
    """Let every rack advance to its stop, the nodes in the order of a row of `orders`, another for each half slot."""
    acc, sums = np.zeros(ACC, np.int64), np.zeros(2, np.uint64)
    for b in range(stops.size):
        one = rack_of(racks, b)
        tally, total, rack = one.tally, one.until[common.n], by_reference(one)
        acc[:] = 0
        sums[:] = 0
        slot = tally[SLOT]
        past = slot // common.epoch - tally[BASE]
        if past >= REBASE:
            for thread in orders[0]:
                rebase(common, rack, past, thread, orders.shape[1])
            tally[BASE] += past
        air, channels = common.delay + 1, common.channels
        while slot < stops[b] and tally[FINISHED] < total and acc[STOP] == 0:
            e, base = slot // common.epoch - tally[BASE], slot % common.epoch * channels
            back = (slot - common.delay) % common.epoch * channels
            for i in orders[2 * slot % orders.shape[0]]:
                send(common, rack, i, slot, e, base, slot % air * channels, acc)
            for i in orders[(2 * slot + 1) % orders.shape[0]]:
                receive(common, rack, i, slot, back, (slot + 1) % air * channels, acc, sums)
            slot += 1
        for k in (LOCAL, FORWARDED, DELIVERED, VISITS, RELAYED, OVER_BOUND):
            tally[k] += acc[k]
        for k in (MAX_QUEUE, MAX_NODE, MAX_HELD):
            tally[k] = max(tally[k], acc[k])
        for k in range(4):
            one.lengths[k] += acc[LENGTH_0 + k]
        one.sums[0] += sums[0]
        one.sums[1] += sums[1]
        tally[STOPPED] = acc[STOP]
        tally[SLOT] = slot


@device
def side_by_side(common, racks, stops):
    """The same on a device: a block of threads for every rack."""
    b, thread, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    acc, sums = cuda.local.array(ACC, int64), cuda.local.array(2, uint64)
    for k in range(ACC):
        acc[k] = 0
    sums[0] = 0
    sums[1] = 0
    rack = rack_of(racks, b)
    tally, n = rack.tally, common.n
    total, stop, slot, halt = rack.until[n], stops[b], tally[SLOT], False
    past = slot // common.epoch - tally[BASE]
    cuda.syncthreads()  # all have read the tally
    if thread == 0:
        tally[STOPPED] = 0
        tally[BASE] += past if past >= REBASE else 0
    if past >= REBASE:
        rebase(common, rack, past, thread, threads)
    cuda.syncthreads()
    air, channels, places = (common.delay + 1) * common.channels, common.channels, common.epoch * common.channels
    e, base = slot // common.epoch - tally[BASE], slot % common.epoch * channels
    back = (slot + common.epoch * (common.delay // common.epoch + 1) - common.delay) % common.epoch * channels
    place = slot % (common.delay + 1) * channels
    while slot < stop and tally[FINISHED] < total and not halt:
        following = place + channels if place + channels < air else 0
        for i in range(thread, n, threads):
            send(common, rack, i, slot, e, base, place, acc)
        cuda.syncthreads()
        for i in range(thread, n, threads):
            receive(common, rack, i, slot, back, following, acc, sums)
        halt = cuda.syncthreads_or(int32(acc[STOP])) != 0
        slot += 1
        place, base, back = following, base + channels, back + channels
        if back == places:
            back = 0
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
    cuda.atomic.add(rack.lengths, 0, acc[LENGTH_0])
    cuda.atomic.add(rack.lengths, 1, acc[LENGTH_1])
    cuda.atomic.add(rack.lengths, 2, acc[LENGTH_2])
    cuda.atomic.add(rack.lengths, 3, acc[LENGTH_3])
    cuda.atomic.add(rack.sums, 0, sums[0])
    cuda.atomic.add(rack.sums, 1, sums[1])
    if acc[STOP] != 0:
        cuda.atomic.or_(tally, STOPPED, acc[STOP])
    if thread == 0:
        tally[SLOT] = slot


@cache
def in_a_loop():
    """`in_order`, compiled."""
    return compiled(in_order, loop(), jit=kernel)


@cache
def on_device(threads: int):
    """`side_by_side`, compiled for blocks of up to so many threads: kernel[racks, threads](common, racks, stops)."""
    if SIMULATED:
        return compiled(side_by_side, on_cuda(), jit=cuda.jit)
    registers = min(REGISTERS // threads // 8 * 8, MOST_REGISTERS)
    setattr(config, "CACHE_DIR", cache_folder(__name__))  # noqa: B010 - no stub knows it

    def jit(function):
        function.__qualname__ += f"_{registers}"  # kept under a name of its own
        return cuda.jit(cache=True, max_registers=registers)(function)

    return compiled(side_by_side, on_cuda(), jit=jit)
