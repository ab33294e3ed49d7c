"""A group of switches on a device: runs of one shape that take their strides together."""

from typing import ClassVar

import numpy as np

from weft.engine import loop, replicas
from weft.engine.replicas import Replica
from weft.errors import TooLarge
from weft.fabrics.crossbar import kernel as processor
from weft.fabrics.crossbar import layout
from weft.fabrics.crossbar.fabric import EMULATING, MATCHED, Crossbar
from weft.fabrics.crossbar.gpu import kernel
from weft.fabrics.crossbar.gpu import state as dev
from weft.fabrics.crossbar.gpu.state import Shape, Switches
from weft.fabrics.crossbar.run import CrossbarRun
from weft.fabrics.crossbar.state import Level
from weft.workload.traffic import Bernoulli, Cells

NOUN = "switch"
AT_ONCE = 8  # switches on a device for each of its multiprocessors
ONE_AFTER_ANOTHER = ("mwm", "msm", *EMULATING)  # schedulers in which a step depends on the one before


def refusal(fabric, demand) -> str | None:
    """Why a device cannot carry this over a switch, or None."""
    if fabric.buffers == "load-balanced":
        return "load-balanced buffers run on the processor"
    if fabric.algorithm in ONE_AFTER_ANOTHER:
        return f"the scheduler {fabric.algorithm} runs on the processor"
    if demand.waiting:
        return "flows that wait for flows run on the processor"
    if isinstance(demand, Cells):
        if demand.fanout > 1 or fabric.algorithm == "eslip":
            return "multicast runs on the processor"
        if demand.whole and layout.controlled(fabric, demand):
            return "senders to whom several cells come in a slot run on the processor"
    elif fabric.algorithm == "eslip":
        return "multicast runs on the processor"
    return None


def key(fabric) -> tuple:
    """What runs that may stand in one group have in common."""
    return (
        fabric.ports, fabric.buffers, fabric.algorithm, fabric.iterations, fabric.queue_depth, fabric.crosspoint,
        fabric.group, fabric.inner, fabric.output, fabric.phases, fabric.crossings, fabric.memory_cycles,
        fabric.pipeline,
    )  # fmt: skip


def ahead(fabric) -> dict:
    """What the processor will have to do for a switch on a device: the functions that do so, and the kernel of each.

    A run that has ended there is one of the processor again, ready to go on.
    """
    if fabric.buffers == "load-balanced" or fabric.algorithm in (*ONE_AFTER_ANOTHER, "eslip"):
        return {}
    if fabric.buffers == "voq" and fabric.algorithm == "islip" and fabric.iterations == 1 and fabric.ports <= 64:
        return {carry_sprint: (processor.sprint,)}  # unless the traffic needs another: that is not known yet
    return {carry_matched: (processor.matched,)} if fabric.buffers in MATCHED else {carry_staged: (processor.staged,)}


def carry_sprint() -> None:
    """Have the fast kernel, which carries the least switch under uniform cells."""
    _compile(Crossbar(ports=2))


def carry_matched() -> None:
    """Have the kernel of buffers that need a matching."""
    _compile(Crossbar(ports=2, scheduler="pim"))


def carry_staged() -> None:
    """Have the kernel of buffers that need none."""
    _compile(Crossbar(ports=2, buffers="oq"))


def _compile(switch) -> None:
    cells = Bernoulli(load=0.5, slots=1).draw(nodes=2, link=switch.link, seed=0)
    switch.prepare(cells).compile()


class DeviceSwitch(Replica, CrossbarRun):
    """A switch whose state is on a device."""

    plain = CrossbarRun
    mirrored = ("seen", "needs")
    inspect_samples = 0

    def mirror(self) -> None:
        state, fabric = self.held_state, self.fabric
        self.needs = Shape(len(state.cells), len(state.delay), len(state.flow_src), len(state.keep))
        self.seen = {
            "clock": state.clock.copy(), "count": state.count.copy(), "per_output": state.per_output.copy(),
            "queued": layout.queued(fabric, state),
        }  # fmt: skip

    @property
    def slot(self):
        return int(self.seen["clock"][0])

    @property
    def count(self):
        return self.seen["count"]

    @property
    def per_output(self):
        return self.seen["per_output"]

    @property
    def queued(self):
        return self.seen["queued"]


class Group(replicas.Group):
    """Switches on a device."""

    kernels: ClassVar = kernel

    def __init__(self, runs: list[DeviceSwitch], machine, shape: Shape | None = None, rows: int | None = None):
        self.fabric, self.shape = runs[0].fabric, shape or common_shape(runs)
        super().__init__(runs, machine, rows)

    def lay_out(self, run):
        self.layout = dev.lay_out(self.fabric, self.shape)
        blocks = self.layout.blocks.items()
        rows = {name: self.machine.zeros((self.rows, count), kind) for name, (count, kind) in blocks}
        return dev.make_common(self.fabric, run.state.plan, self.shape), Switches(**rows)

    def put(self, run):
        state, used = run.state, int(run.state.level[Level.FRESH])
        extra = {"ceiling": np.array([len(state.delay) - 1]), "keys": state.keys[[0, 1, -1]]}
        for block, arrays in self.layout.counts.items():
            on_machine, kind, apart = getattr(self.blocks, block), dev.KINDS[block], ("delay", *dev.POOLED)
            first = np.zeros(sum(count for name, count in arrays.items() if name not in apart), kind)
            for name, count in arrays.items():
                begin, array = self.layout.starts[name], extra.get(name, getattr(state, name, None))
                if array is None:
                    continue  # scratch
                words = np.ascontiguousarray(array).ravel().view(kind)[:count]
                if name not in apart:
                    first[begin : begin + len(words)] = words
                elif words[:used].any() or (name == "delay" and words.any()):
                    self.machine.put(on_machine, run.number, words if name == "delay" else words[:used], begin)
            self.machine.put(on_machine, run.number, first)

    def fetch(self, run):
        state = layout.state(run.fabric, run.demand, run.seed)
        seen = self.machine.get(self.blocks.seen, run.number)
        used = int(seen[self.layout.starts["level"] + Level.FRESH])
        for block, arrays in self.layout.counts.items():
            apart = ("delay", *dev.POOLED)
            small = sum(count for name, count in arrays.items() if name not in apart)
            on_machine = getattr(self.blocks, block)
            first = seen if block == "seen" else self.machine.get(on_machine, run.number, 0, small)
            for name in arrays:
                array, begin = getattr(state, name, None), self.layout.starts[name]
                if array is None or name in ("plan", "keys", "choice"):
                    continue
                count = array.size if name not in dev.POOLED else min(used, array.size)
                if name in apart:
                    words = self.machine.get(on_machine, run.number, begin, begin + count)
                else:
                    words = first[begin : begin + count]
                array.ravel()[:count] = words.view(array.dtype)
        return state

    def target(self, run, stop):
        return min(stop // run.fabric.slot, run.last)

    def look(self):
        seen, laid = self.machine.all(self.blocks.seen), self.layout
        return {
            name: seen[:, laid.starts[name] : laid.starts[name] + laid.counts["seen"][name]]
            for name in ("clock", "count", "per_output", "queued")
        }

    def ended(self, run, seen, wanted):
        before, run.seen = run.slot, {name: array[run.number].copy() for name, array in seen.items()}
        if run.slot < min(wanted, before + self.limit) or run.slot == run.last:
            return loop.DONE  # every flow has been delivered, or no cell comes any more
        return replicas.reached(run, wanted)


def common_shape(runs) -> Shape:
    """A shape in which all these runs fit."""
    return Shape(*(replicas.roomy(max(some)) for some in zip(*(run.needs for run in runs), strict=True)))


def size(run, shape: Shape) -> int:
    """Bytes of one switch of this shape on a device."""
    return dev.size(run.fabric, shape)


def larger(shape: Shape, why: int, ports: int) -> Shape:
    """Raise a sentence: a switch has all the room that it can need from the start."""
    raise TooLarge(f"a switch of {ports:,} ports must fit its buffers")


replica = DeviceSwitch.of  # what a run becomes on a device
