"""The text, compiled: a block of threads per switch on a device, or a loop over ports on the processor."""

from functools import cache

import numpy as np
from numba import cuda, int64, uint64

from weft.engine.device import (
    CLOSE,
    add_to,
    compiled,
    device,
    loop,
    most_in,
    on_device,
    registers_of,
    row_of,
    threads_of,
)
from weft.engine.device import launch as start
from weft.engine.jit import kernel
from weft.fabrics.crossbar.gpu.state import ACC, ADDED, LONGEST, MEMORY, PEAK, Common, Switches
from weft.fabrics.crossbar.gpu.text import advance
from weft.fabrics.crossbar.state import Count, Level

PHASES = 61  # orders of ports that are drawn for a launch without a device
_LONGEST, _MEMORY, _PEAK = int(Count.LONGEST), int(Count.MEMORY), int(Level.PEAK)
_ADDED = tuple((here, int(there)) for here, there in ADDED)

# What a device has as constants: set in the copy that is compiled.
NUMBERS = (0,) * len(Common._fields)
NEAR = 0  # words of the block that is kept close by; none if it does not fit


@device
def switch_of(switches, b, near):
    """The blocks of switch b."""
    return Switches(row_of(switches.u64, b), row_of(switches.u32, b), near, row_of(switches.seen, b))


@device
def tell(plan, seen, acc, sums):
    """Add what a thread has counted to what is known of the switch."""
    for here, there in _ADDED:
        add_to(seen, plan.count + there, acc[here])
    most_in(seen, plan.count + _LONGEST, acc[LONGEST])
    most_in(seen, plan.count + _MEMORY, acc[MEMORY])
    most_in(seen, plan.level + _PEAK, acc[PEAK])
    add_to(seen, plan.print, np.int64(sums[0]))
    add_to(seen, plan.print + 1, np.int64(sums[1]))


@device
def in_order(plan, switches, stops, orders):
    """Let every switch advance to its stop, its ports in the order of a row of `orders`, another for each phase."""
    acc, sums = np.zeros(ACC, np.int64), np.zeros(2, np.uint64)
    for b in range(stops.size):
        switch = switch_of(switches, b, switches.near[b])
        acc[:] = 0
        sums[:] = 0
        advance(plan, switch, orders, 0, 1, stops[b], acc, sums)
        tell(plan, switch.seen, acc, sums)


@device
def side_by_side(switches, stops):
    """The same on a device: a block of threads for every switch."""
    plan = Common(*NUMBERS)
    b, thread, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    acc, sums = cuda.local.array(ACC, int64), cuda.local.array(2, uint64)
    for k in range(ACC):
        acc[k] = 0
    sums[0] = 0
    sums[1] = 0
    near = row_of(switches.near, b)
    if NEAR > 0:
        near = cuda.shared.array(NEAR, uint64)
        for k in range(thread, NEAR, threads):
            near[k] = switches.near[b, k]
    switch = switch_of(switches, b, near)
    cuda.syncthreads()
    advance(plan, switch, stops, np.int64(thread), np.int64(threads), stops[b], acc, sums)
    cuda.syncthreads()
    tell(plan, switch.seen, acc, sums)
    if NEAR > 0:
        for k in range(thread, NEAR, threads):
            switches.near[b, k] = near[k]


@cache
def in_a_loop():
    """`in_order`, compiled."""
    return compiled(in_order, loop(), jit=kernel)


@cache
def _on_device(numbers: tuple, near: int):
    names = {"NUMBERS": numbers, "NEAR": near if near * 8 <= CLOSE else 0}
    return on_device(side_by_side, __name__, names, min(registers_of(threads_of(numbers[0])), 64))


def launch(common, switches, stops, seconds) -> None:
    """Let the switches on a device advance to their stops, however many seconds that takes."""
    carry = _on_device(tuple(int(one) for one in common), switches.near.shape[1])
    start(carry, len(stops), threads_of(common.n), 0, switches, cuda.to_device(stops))


def launch_loop(common, switches, stops, rng) -> None:
    """The same on the processor, ports in an order that is drawn."""
    in_a_loop()(common, switches, stops, np.array([rng.permutation(common.n) for _ in range(PHASES)]))
