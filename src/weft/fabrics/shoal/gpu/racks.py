"""A group of racks on a device: runs of one shape that take their strides together."""

from typing import ClassVar, NamedTuple

import numpy as np

from weft.engine import loop, replicas
from weft.engine.device import THREADS
from weft.engine.replicas import Replica
from weft.errors import TooLarge
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal import kernel as fast
from weft.fabrics.shoal.arrays import WINDOW
from weft.fabrics.shoal.gpu import convert, kernel
from weft.fabrics.shoal.gpu import state as dev
from weft.fabrics.shoal.gpu.state import Shape, blank, lay_out, racks_of
from weft.fabrics.shoal.kernel import REBASE
from weft.fabrics.shoal.rack import RackRun
from weft.workload.flows import Flows

NOUN = "rack"
SEATS, POOL = 64, 1024  # of a node at first
RESERVE = 8  # flows that may start at a node in one slot: more than ever do, or each draw would be a shape of its own
KEPT = 16 << 20  # bytes of the last cache, for the words of pairs: more left too little for the others
AT_ONCE = 2  # racks on a device for each of its multiprocessors: while one has little to do, another goes on


def refusal(fabric, demand) -> str | None:
    """Why a device cannot carry this over a rack, or None: what the fast kernel does by the paper's rules, it can."""
    if fabric.rules != "paper":
        return f"the {fabric.rules} rules run on the processor"
    if fabric.needs_plain:
        return "failures, damage, clocks, classes and transports run on the processor"
    if demand.waiting:
        return "flows that wait for flows run on the processor"
    if len(fabric.rounds.shift) > dev.MOST_PLACES:
        return f"an epoch of more than {dev.MOST_PLACES:,} places runs on the processor"
    if fabric.travel // fabric.rounds.slots + 3 > dev.ANSWER_BITS:
        return "cells that travel for an epoch or longer run on the processor"
    if not _countable(demand, fabric):
        return f"nodes with {dev.MOST_CELLS:,} cells and more run on the processor"
    if not _fits(fabric.nodes, Shape(dev.MOST_SEATS, 0, _window(fabric.nodes), len(demand.src), 0)):
        return f"{len(demand.src):,} flows of {fabric.nodes:,} nodes do not fit a word of a device"
    return None


def _fits(nodes: int, shape: Shape) -> bool:
    """Whether a cell of a rack of this shape fits a word."""
    return (shape.flows + 1).bit_length() <= dev.cell_bits(nodes, shape)["flow_bits"]


def _window(nodes: int) -> int:
    """Cells of a pair that may be out of order, at first."""
    return max(WINDOW, 1 << (16 * nodes - 1).bit_length())


def _countable(demand, fabric) -> bool:
    """Whether the cells of every node can be counted in a word of a device."""
    cells = -(-np.asarray(demand.size) // fabric.payload)
    return not len(cells) or np.bincount(demand.src, cells).max() < dev.MOST_CELLS


def key(fabric) -> tuple:
    """What runs that may stand in one group have in common."""
    return (
        fabric.nodes, fabric.lanes, fabric.travel, fabric.rounds.order, fabric.ready_queues, fabric.age_interval,
        fabric.sharing, fabric.values,
    )  # fmt: skip


def ahead(fabric) -> dict:
    """What the processor will have to do for a rack on a device: functions that do so, and the kernels that each calls.

    It has to be put there before the first slot, and fetched after the last, when a core carries the last flows.
    """
    if fabric.rules != "paper" or fabric.needs_plain:
        return {}
    return {move_one: (convert._load, convert._store), carry_one: (fast.advance, fast.inspect)}


def move_one() -> None:
    """Bring a rack of two nodes into the arrays of a device, and back; its kernels are those of all racks."""
    run = DeviceRack.of(_least())
    shape = common_shape([run])
    one = blank(run.plan, shape)
    convert.load(run.plan, run.state, shape, one)
    convert.store(run.plan, one, shape)


def carry_one() -> None:
    """Have the kernels that carry a rack here."""
    _least().compile()


def _least() -> RackRun:
    from weft.fabrics.shoal.fabric import Shoal

    rack = Shoal(nodes=2)
    return rack.prepare(Flows.of(nodes=2, src=[0], dst=[1], size=[1], start=[0]))


class DeviceRack(Replica, RackRun):
    """A rack whose state is on a device."""

    plain = RackRun
    mirrored = ("tally", "received", "waiting", "departed", "needs", "laid")
    laid: tuple | None = None  # (shape, blocks of that shape), until they are on the device

    def mirror(self) -> None:
        state = self.held_state
        self.needs = Needs(
            convert.reserve(self.plan), convert.seats_of(state), state.early.shape[1] * 64,
            convert.spilled(self.plan, state), len(self.plan.src),
        )  # fmt: skip
        self.tally = state.tally.copy()
        self.received, self.waiting = state.received.copy(), state.waiting.astype(np.int64)
        self.departed = state.departed.copy()

    def lay(self, shape):
        if self.laid is None or self.laid[0] != shape:
            self.laid = shape, blank(self.plan, shape)
            convert.load(self.plan, self.state, shape, self.laid[1])

    @property
    def slot(self):
        return int(self.tally[col.SLOT])

    @property
    def finished(self):
        return int(self.tally[col.FINISHED])

    def sample(self):
        return {
            "delivered_bytes": self.received * self.fabric.payload,
            "finished": self.finished,
            "waiting": self.waiting.sum(),
            "lost": self.lost.total,
            "queued": self.gathered(self.waiting),
            "busy_ps": self.busy(self.departed),
        }

    def monitors(self, thorough=True):
        if thorough:
            return super().monitors(True)
        self.broken["progress"] = max(self.stalled(), self.broken["progress"])
        self.broken["queue_bound"] = int(self.tally[col.OVER_BOUND])
        return self.broken

    @property
    def left(self):
        return self.total - self.finished if self.slot > self.plan.start[-1] else None

    @property
    def under_way(self):
        begun = int(np.searchsorted(self.plan.start, self.slot))
        return int(self.tally[col.DELIVERED]), self.finished < begun


class Group(replicas.Group):
    """Racks on a device."""

    kernels: ClassVar = kernel
    timed: ClassVar = True
    kept: ClassVar = KEPT

    def __init__(self, runs: list[DeviceRack], machine, shape: Shape | None = None, rows: int | None = None):
        self.plan, self.shape = runs[0].plan, shape or common_shape(runs)
        self.idle = [None] * (rows or len(runs))
        each = int(self.plan.numbers[col.CHANNELS]) * -(-int(self.plan.numbers[col.N]) // THREADS)
        # or epochs would outgrow their 16 bits, or what a thread counts
        self.most = max(min(REBASE * int(self.plan.numbers[col.EPOCH]), dev.MOST_VISITS // each), 1)
        super().__init__(runs, machine, rows)

    def lay_out(self, run):
        self.layout = lay_out(self.plan, self.shape)
        blocks = self.layout.blocks.items()
        rows = {name: self.machine.zeros((self.rows, count), kind) for name, (count, kind) in blocks}
        return self.machine.share(convert.make_common(self.plan, self.shape)), racks_of(rows)

    def put(self, run):
        self.idle[run.number] = None
        run.lay(self.shape)
        for name in self.layout.blocks:
            array = getattr(run.laid[1], name)
            if array.any():
                self.machine.put(getattr(self.blocks, name), run.number, array)
        run.laid = None

    def fetch(self, run):
        one = {name: self.machine.get(getattr(self.blocks, name), run.number) for name in self.layout.blocks}
        plan, shape, departed = run.plan, self.shape, run.departed.copy()

        def state():
            made = convert.store(plan, racks_of(one), shape)
            made.departed[:] = departed
            return made

        return state

    def target(self, run, stop):
        return stop // run.fabric.slot_time

    def look(self):
        tally, near = self.machine.all(self.blocks.counted), self.machine.all(self.blocks.near32)
        nodes, starts = self.common.n, self.layout.starts
        return tally, *(near[:, starts[name] : starts[name] + nodes] for name in ("received", "waiting", "departed"))

    def ended(self, run, seen, wanted):
        mine, *counts = (array[run.number] for array in seen)
        for here, there in convert.TALLIES.items():
            run.tally[there] = mine[here]
        run.received, run.waiting, departed = (one.astype(np.int64) for one in counts)
        run.departed += departed - run.departed & 0xFFFFFFFF  # cells that relays add may outgrow a word
        if run.finished == run.total:
            return loop.DONE
        return loop.MORE + int(mine[dev.STOPPED]) if mine[dev.STOPPED] else replicas.reached(run, wanted)

    def skip(self, run, until) -> None:
        """Let a rack in which nothing can happen wait for its next flow: all has arrived, and no feedback is owed."""
        numbers, begun = run.plan.numbers, int(np.searchsorted(run.plan.start, run.slot))
        if run.finished < begun or begun == run.total:
            self.idle[run.number] = None
            return
        since = self.idle[run.number] if self.idle[run.number] is not None else run.slot
        self.idle[run.number] = since
        rest = int((3 + numbers[col.FEEDBACK]) * (numbers[col.EPOCH] + numbers[col.DELAY] + 1))
        slot = min(int(run.plan.start[begun]), until)
        if run.slot - since > rest and slot > run.slot:
            run.tally[col.SLOT] = slot
            tally = self.machine.get(self.blocks.counted, run.number)
            tally[dev.SLOT] = slot
            self.machine.put(self.blocks.counted, run.number, tally)


class Needs(NamedTuple):
    """What one run needs of a shape, found out once: among many flows that takes a while."""

    reserve: int
    seats: int
    window: int
    spilled: int  # cells of the node that has most of them in its pool
    flows: int


def common_shape(runs) -> Shape:
    """A shape in which all these runs fit."""
    most = Needs(*map(max, zip(*(run.needs for run in runs), strict=True)))
    seats, window = most.seats + max(most.reserve, RESERVE), max(_window(runs[0].fabric.nodes), most.window)
    numbers = runs[0].plan.numbers
    least = 2 * int(numbers[col.CHANNELS]) * (1 if numbers[col.READY_QUEUES] else max(seats, SEATS) + 64)
    pool = max(POOL, 2 * most.spilled) + least
    flows, reserve = replicas.roomy(most.flows), max(most.reserve, RESERVE)
    return Shape(-(-max(seats, SEATS) // 64) * 64, min(pool, dev.NONE - 1), window, flows, reserve)


def size(run, shape: Shape) -> int:
    """Bytes of one rack of this shape on a device."""
    return dev.size(run.plan, shape)


def larger(shape: Shape, why: int, nodes: int) -> Shape:
    """A shape with more of what ran out."""
    if why & dev.TOO_LONG:
        raise TooLarge(f"a queue must hold at most {dev.LONGEST:,} cells on a device")
    seats = shape.seats
    if why & dev.WANTS_SEATS:
        seats = max(min(2 * seats, dev.MOST_SEATS), seats + 64)
    pool = 4 * shape.pool if why & dev.WANTS_POOL else shape.pool
    window = 2 * shape.window if why & dev.WANTS_WINDOW else shape.window
    if seats > dev.MOST_SEATS or pool >= dev.NONE:
        raise TooLarge(f"a node must have at most {dev.MOST_SEATS:,} pairs at once on a device")
    grown = shape._replace(seats=seats, pool=pool, window=window)
    if not _fits(nodes, grown):
        raise TooLarge(f"flows must be few enough for a word of a device, not {shape.flows:,}")
    return grown


replica = DeviceRack.of  # what a run becomes on a device
