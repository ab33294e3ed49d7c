"""Racks on a GPU against the fast kernel: drawn ones, taken up in the middle and given back, and 512 nodes under load.

`make verify-gpu` runs it; it needs a GPU and the extra `gpu`. With `--simulator` the drawn racks, tiny ones, run in
Numba's simulator (NUMBA_ENABLE_CUDASIM=1), with `--loop` in a loop over nodes in a drawn order; neither needs a GPU.
"""

import argparse
import sys
from time import perf_counter

import numpy as np

from weft.engine.replicas import Cuda, Loop
from weft.fabrics.shoal import Shoal
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.gpu.racks import DeviceRack, Group, common_shape, larger, refusal
from weft.workload.arrivals import Poisson
from weft.workload.patterns import Incast

COUNTS = (
    "SLOT", "STARTED", "FINISHED", "LOCAL", "FORWARDED", "DELIVERED", "VISITS", "ACTIVE", "OWING", "FLYING",
    "MAX_QUEUE", "MAX_NODE", "MAX_HELD", "OVER_BOUND", "LIVE", "RELAYED", "KNOWN_STARTED",
)  # fmt: skip
ARRAYS = ("received", "departed", "waiting", "inflow", "inflow_slots", "lengths", "incast", "outcast", "print")


def draw(rng, largest=24, flows=120):
    """A rack and its flows, such as a device carries."""
    n = int(rng.integers(2, largest))
    rack = Shoal(
        nodes=n,
        channels=int(rng.integers(1, min(n, 6))),
        delay=int(rng.choice([0, 0, 1, 3])),
        ready_queues=bool(rng.random() < 0.8),
        feedback=int(rng.choice([1, 2, 2, 3])),
        sharing=str(rng.choice(["round-robin", "shortest"])),
        age_interval=[None, 0, 3][int(rng.integers(3))],
    )
    many, load = int(rng.integers(5, flows)), float(rng.uniform(0.2, 1.5))
    workload = (
        Poisson(load=load, flows=many, sizes=f"fixed:{int(rng.integers(60, 3000))}B"),
        Poisson(load=load, flows=many, sizes="uniform:60B,10KB"),
        Incast(fan_in=n - 1, bytes=int(rng.integers(100, 5000))),
    )[int(rng.integers(3))]
    demand = workload.draw(nodes=n, link=rack.link, seed=int(rng.integers(1 << 30)))
    return (rack, demand) if refusal(rack, demand) is None else draw(rng, largest, flows)


def to_slot(run, slot):
    """The fast kernel, up to a slot."""
    while run.slot < slot and run.finished < run.total:
        why = run.step(slot * run.fabric.slot_time, 1 << 60)
        if why >= col.MORE_CELLS:
            run.grow(why)
    return run


def on_machine(run, slot, machine):
    """A run of the fast kernel, carried on to a slot by the device, as the fast kernel has it."""
    run = DeviceRack.of(run)
    shape = common_shape([run])
    while run.slot < slot and run.finished < run.total:
        group = Group([run], machine, shape)
        why = 0
        while run.slot < slot and why < 3 and run.finished < run.total:
            why = group.step({run: slot * run.fabric.slot_time})[0][run]
        if why >= 3:
            run.settle()
            shape = larger(shape, why - 3, run.fabric.nodes)
    return run.back()


def differences(one, other):
    """What differs between two runs of the fast kernel."""
    a, b = one.state, other.state
    found = [name for name in COUNTS if a.tally[getattr(col, name)] != b.tally[getattr(col, name)]]
    found += [name for name in ARRAYS if not np.array_equal(getattr(a, name), getattr(b, name))]
    parts = [col.RELEASE, col.DELIVER, col.FINISH]
    return found + ([] if np.array_equal(a.flow[:, parts], b.flow[:, parts]) else ["flow"])


def check(rng, machine, largest=24, flows=120):
    """What differs between a drawn rack on the device and on the processor, at a drawn slot and at its end."""
    rack, demand = draw(rng, largest, flows)
    whole = to_slot(rack.prepare(demand), 1 << 40)
    first, second = sorted(int(x) for x in rng.integers(0, whole.slot + 2, 2))
    there = on_machine(to_slot(rack.prepare(demand), first), second, machine)
    found = differences(there, to_slot(rack.prepare(demand), second))
    if not found:  # the processor goes on from what the device made
        found = differences(to_slot(there, 1 << 40), whole)
    return found, rack


def main(check, what, small, under_load):
    """Check as many drawn ones as are asked for, on the machine that is asked for; `small` are sizes of tiny ones."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--simulator", action="store_true")
    given = parser.parse_args()
    machine = Loop(given.seed) if given.loop else Cuda()
    rng, bad, began = np.random.default_rng(given.seed), 0, perf_counter()
    for number in range(given.count):
        found, drawn = check(rng, machine, *(small if given.simulator else ()))
        if found:
            bad += 1
            print(f"number {number} differs in {', '.join(found)}: {drawn}", flush=True)
    took = perf_counter() - began
    print(f"{given.count - bad} of {given.count} drawn {what} are equal, {took:.0f} s", flush=True)
    if not given.loop and not given.simulator:
        bad += under_load()
    return bad > 0


def under_load():
    """Several racks of 512 nodes at load 1, at once, against the processor."""
    rack = Shoal(nodes=512)
    runs = []
    for seed in range(3):
        demand = Poisson(load=1.0, flows=12_000, sizes="pareto").draw(nodes=512, link=rack.link, seed=seed)
        runs.append(rack.prepare(demand))
    placed = [DeviceRack.of(run) for run in runs]
    group, slot = Group(placed, Cuda()), 6000
    while placed[0].slot < slot:
        group.step(dict.fromkeys(placed, slot * rack.slot_time))
    found = differences(placed[2].back(), to_slot(rack.prepare(runs[2].demand), slot))
    print("512 nodes at load 1, 6,000 slots:", ", ".join(found) or "equal", flush=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main(check, "racks", (6, 12), under_load))
