"""Switches on a GPU against the kernels: drawn ones, taken up in the middle and given back, and many under load.

`make verify-gpu` runs it; it needs a GPU and the extra `gpu`. With `--simulator` the drawn switches, tiny ones, run in
Numba's simulator (NUMBA_ENABLE_CUDASIM=1), with `--loop` in a loop over ports in a drawn order; neither needs a GPU.
"""

import sys

import numpy as np
from gpu_racks import main

from weft.engine import loop
from weft.engine.replicas import Cuda
from weft.errors import BadInput
from weft.fabrics.crossbar import Crossbar
from weft.fabrics.crossbar.gpu.switches import DeviceSwitch, Group, refusal
from weft.fabrics.crossbar.state import Kind, Level, Plan
from weft.workload.arrivals import Poisson
from weft.workload.patterns import Incast
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, OnOff

BUFFERS = ("voq", "voq", "shared", "fifo", "cioq", "cicq", "hierarchical", "gcq", "oq")
SCHEDULERS = ("islip", "islip", "rrm", "pim", "drrm", "wavefront", "lqf", "ocf")
SAME = (
    "clock", "burst", "level", "queue", "used", "freed", "want", "grant", "accept", "local", "flow_left", "flow_due",
    "flow_finish", "active", "arrived", "count", "delay", "rounds", "per_output", "print",
)  # fmt: skip
POOLED = ("cells", "info", "ready")


def draw(rng, largest=70, slots=300):
    """A switch and what arrives at it."""
    group = int(rng.integers(1, 5))
    buffers = str(rng.choice(BUFFERS))
    grouped = buffers in ("hierarchical", "gcq")
    ports = group * int(rng.integers(max(2 // group, 1), max(largest // group, 2))) if grouped else 0
    switch = Crossbar(
        ports=max(ports, 2 * group) if grouped else int(rng.integers(2, largest)),
        buffers=buffers,
        scheduler=str(rng.choice(SCHEDULERS)) if buffers in ("voq", "shared", "fifo", "cioq") else None,
        iterations=int(rng.choice([1, 1, 2, 4])),
        depth=int(rng.choice([1, 2, 5, 64])),
        crosspoint=int(rng.integers(1, 4)),
        group=group if grouped else 4,
        inner=int(rng.choice([1, 3, 64])),
        output=int(rng.choice([1, 2, 64])),
        speedup=float(rng.choice([1, 1.5, 2])) if buffers == "cioq" and rng.random() < 0.5 else None,
        crossing=int(rng.integers(0, 4)),
        flow_control=[None, True, False][int(rng.integers(3))],
        cell=256,
    )
    load = float(rng.uniform(0.2, 1.0))
    workload = (
        Bernoulli(load=load, slots=slots, warmup=slots // 10),
        Bernoulli(load=1 + load, slots=slots),
        OnOff(load=load, burst=8, slots=slots),
        Diagonal(load=load, slots=slots),
        HotOutput(load=load, hot=0.5, slots=slots),
        Poisson(load=load, flows=slots // 3, sizes="uniform:60B,10KB"),
        Incast(fan_in=min(switch.ports - 1, 5), bytes=2000),
    )[int(rng.integers(7))]
    return switch, workload.draw(nodes=switch.ports, link=switch.link, seed=int(rng.integers(1 << 30)))


def to_slot(run, slot):
    """The kernel, up to a slot or the end."""
    why = loop.PAUSED
    while why != loop.DONE and run.slot < slot:
        why = run.step(slot * run.fabric.slot, 1 << 60)
    return run


def on_machine(runs, slot, machine):
    """Runs of the kernels, carried on to a slot by a device, as the kernels have them."""
    runs = [DeviceSwitch.of(run) for run in runs]
    group, left = Group(runs, machine), [run for run in runs if run.slot < min(slot, run.last)]
    while left:
        whys = group.step(dict.fromkeys(left, slot * runs[0].fabric.slot))[0]
        left = [run for run in left if whys[run] == loop.PAUSED]
    return [run.back() for run in runs]


def differences(one, other):
    """What differs between two runs of a switch, word by word; cells that are in no queue are left out."""
    a, b, used = one.state, other.state, int(one.state.level[Level.FRESH])
    found = [name for name in SAME if not np.array_equal(getattr(a, name), getattr(b, name))]
    top = int(a.level[Level.TOP])
    pairs = [(name, getattr(a, name)[:used], getattr(b, name)[:used]) for name in POOLED]
    pairs.append(("free", a.free[:top], b.free[:top]))
    if one.fabric.buffers == "cicq":
        pairs += [(name, getattr(a, name), getattr(b, name)) for name in ("given", "filled")]
    if one.fabric.buffers == "voq" and a.plan[Plan.KIND] != Kind.FLOWS:
        pairs = [pair for pair in pairs if pair[0] != "info"]  # which the fast path does not write
    return found + [name for name, here, there in pairs if not np.array_equal(here, there)]


def check(rng, machine, largest=70, slots=300):
    """What differs between a drawn switch on the device and on the processor, at a drawn slot and at its end."""
    while True:
        try:
            switch, demand = draw(rng, largest, slots)
            whole = switch.prepare(demand, seed=5)
        except BadInput:
            continue
        if refusal(switch, demand) is None:
            break
    to_slot(whole, 20 * slots)
    first, second = sorted(int(x) for x in rng.integers(0, whole.slot + 2, 2))
    (there,) = on_machine([to_slot(switch.prepare(demand, seed=5), first)], second, machine)
    found = differences(there, to_slot(switch.prepare(demand, seed=5), second))
    if not found:  # the processor goes on from what the device made
        found = differences(to_slot(there, 20 * slots), whole)
    return found, f"{switch}, {type(demand).__name__}"


def under_load():
    """Several switches at once under their own loads and seeds, against the processor."""
    wrong, slots = 0, 4000
    for options in ({"ports": 64}, {"ports": 256, "iterations": 4}, {"ports": 64, "buffers": "gcq"},
                    {"ports": 32, "buffers": "shared"}):  # fmt: skip
        switch = Crossbar(**options)
        demands = [
            Bernoulli(load=load, slots=slots).draw(nodes=switch.ports, link=switch.link, seed=seed)
            for seed, load in enumerate((0.5, 0.9, 0.99, 1.0))
        ]
        for demand, run in zip(
            demands, on_machine([switch.prepare(one) for one in demands], slots, Cuda()), strict=True
        ):
            found = differences(run, to_slot(switch.prepare(demand), slots))
            wrong += len(found)
            print(f"{options}, load {demand.offered:g}, {slots:,} slots:", ", ".join(found) or "equal", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(check, "switches", (5, 12), under_load))
