"""A group of racks on a device: runs of one shape that take their strides together."""

from time import perf_counter

import numpy as np
from numba import cuda

from weft.engine import loop
from weft.engine.device import SIMULATED
from weft.errors import TooLarge
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.arrays import WINDOW
from weft.fabrics.shoal.gpu import convert, kernel
from weft.fabrics.shoal.gpu import state as dev
from weft.fabrics.shoal.gpu.state import Shape, blank, lay_out, racks_of, size
from weft.fabrics.shoal.kernel import REBASE
from weft.fabrics.shoal.rack import RackRun

__all__ = ["Cuda", "DeviceRack", "Group", "Loop", "common_shape", "key", "larger", "refusal", "size"]
LAUNCH = 0.1  # s of wall time that a launch should take: Ctrl-C waits for its end
SLOTS = 256  # of the first launch
SEATS, POOL = 64, 64  # of a node at first


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
        return "cells that travel longer than an epoch run on the processor"
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
    return max(WINDOW, 1 << (8 * nodes - 1).bit_length())


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


class DeviceRack(RackRun):
    """A rack whose state is on a device: what is asked for often is mirrored, all else fetched when it is asked for."""

    inspect_every = 1 << 62  # a thorough look needs the whole state: at the end, and whenever it is fetched
    group: "Group"
    number: int  # in the group

    @classmethod
    def of(cls, run: RackRun) -> "DeviceRack":
        """The same run, to be put on a device."""
        made = cls.__new__(cls)
        if isinstance(run, cls):
            return run
        made.__dict__.update(run.__dict__)
        made.held_state = made.__dict__.pop("state")
        made.fresh = True  # whether `held_state` is the run as it is now
        made.mirror()
        return made

    def mirror(self) -> None:
        """Take over from the state what the loop asks for."""
        state = self.held_state
        self.tally = state.tally.copy()
        self.received, self.waiting = state.received.copy(), state.waiting.astype(np.int64)
        self.departed = state.departed.copy()

    def back(self) -> RackRun:
        """The same run, for the processor."""
        state, made = self.state, RackRun.__new__(RackRun)
        gone = ("held_state", "fresh", "tally", "received", "waiting", "departed", "group", "number")
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in gone})
        made.state = state
        return made

    @property
    def state(self):
        """The whole state, fetched if it has changed."""
        if not self.fresh:
            self.held_state, self.fresh = self.group.fetch(self), True
        return self.held_state

    @state.setter
    def state(self, value):
        self.held_state = value

    @property
    def slot(self):
        return int(self.tally[col.SLOT])

    @property
    def finished(self):
        return int(self.tally[col.FINISHED])

    def compile(self):
        """Nothing is left to compile: the group has done so."""

    def grow(self, why):
        """Nothing is left to do: the group has grown."""

    def settle(self) -> None:
        """Fetch the state, before the group changes."""
        self.state  # noqa: B018 - that fetches it

    def forget(self) -> None:
        """Let go of the state: the device has it."""
        self.held_state, self.fresh = None, False

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
    def under_way(self):
        begun = int(np.searchsorted(self.plan.start, self.slot))
        return int(self.tally[col.DELIVERED]), self.finished < begun


class Group:
    """Racks on a device. A machine that is none (`Loop`) does the same on the processor, for tests."""

    def __init__(self, runs: list[DeviceRack], machine, shape: Shape | None = None):
        self.runs, self.machine, self.plan = runs, machine, runs[0].plan
        self.shape = shape or common_shape(runs)
        self.limit, self.idle = SLOTS, [None] * len(runs)
        self.layout = lay_out(self.plan, self.shape)
        blocks = self.layout.blocks.items()
        self.racks = racks_of({name: machine.zeros((len(runs), count), kind) for name, (count, kind) in blocks})
        self.common = machine.share(convert.make_common(self.plan, self.shape))
        for number, run in enumerate(runs):
            run.group, run.number = self, number
            one = blank(self.plan, self.shape)
            convert.load(run.plan, run.state, self.shape, one)
            for name in self.layout.blocks:
                array = getattr(one, name)
                if array.any():
                    machine.put(getattr(self.racks, name), number, array)
            run.forget()

    def fetch(self, run):
        """The state of one run, as the fast kernel has it."""
        one = {name: self.machine.get(getattr(self.racks, name), run.number) for name in self.layout.blocks}
        state = convert.store(run.plan, racks_of(one), self.shape)
        state.departed[:] = run.departed
        return state

    def step(self, stops: dict[DeviceRack, int]) -> tuple[dict[DeviceRack, int], float]:
        """Let the runs that are named take a stride towards their stops (ps); says why each ended, and seconds."""
        targets = np.zeros(len(self.runs), np.int64)
        for run, stop in stops.items():
            until = stop // run.fabric.slot_time
            self._skip(run, until)
            targets[run.number] = min(until, run.slot + self.limit)
        began = perf_counter()
        self.machine.launch(self.common, self.racks, targets)
        tally, near = self.machine.all(self.racks.counted), self.machine.all(self.racks.near32)
        nodes, starts = self.common.n, self.layout.starts
        names = ("received", "waiting", "departed")
        received, waiting, departed = (near[:, starts[x] : starts[x] + nodes].astype(np.int64) for x in names)
        took = perf_counter() - began
        ran = max((int(tally[run.number, dev.SLOT]) - run.slot for run in stops), default=0)
        if ran >= self.limit:
            most = REBASE * int(self.plan.numbers[col.EPOCH])  # or epochs would outgrow their 16 bits
            self.limit = int(min(max(self.limit * min(max(LAUNCH / max(took, 1e-6), 0.5), 2), 16), most, 1 << 16))
        out = {}
        for run, stop in stops.items():
            mine = tally[run.number]
            for here, there in convert.TALLIES.items():
                run.tally[there] = mine[here]
            run.received, run.waiting = received[run.number], waiting[run.number]
            run.departed += departed[run.number] - run.departed & 0xFFFFFFFF  # cells that relays add may outgrow a word
            run.fresh = False
            if run.finished == run.total:
                out[run] = loop.DONE
            elif mine[dev.STOPPED]:
                out[run] = loop.MORE + int(mine[dev.STOPPED])
            else:
                out[run] = loop.REACHED if run.slot >= stop // run.fabric.slot_time else loop.PAUSED
        return out, took

    def _skip(self, run, until) -> None:
        """Let a rack in which nothing can happen wait for its next flow: all has arrived, and no feedback is owed."""
        numbers, begun = run.plan.numbers, int(np.searchsorted(run.plan.start, run.slot))
        if run.finished < begun or begun == run.total:
            self.idle[run.number] = None
            return
        since = self.idle[run.number] if self.idle[run.number] is not None else run.slot
        self.idle[run.number] = since
        rest = int((1 + numbers[col.FEEDBACK]) * (numbers[col.EPOCH] + numbers[col.DELAY] + 1))
        slot = min(int(run.plan.start[begun]), until)
        if run.slot - since > rest and slot > run.slot:
            run.tally[col.SLOT] = slot
            tally = self.machine.get(self.racks.counted, run.number)
            tally[dev.SLOT] = slot
            self.machine.put(self.racks.counted, run.number, tally)


def common_shape(runs) -> Shape:
    """A shape in which all these runs fit."""
    reserve = max(convert.reserve(run.plan) for run in runs)
    seats = max(convert.seats_of(run.state) for run in runs) + reserve
    nodes = runs[0].fabric.nodes
    window = max(_window(nodes), max(run.state.early.shape[1] * 64 for run in runs))
    spilled = max(int((run.state.held & 0x7FFF).max(initial=0)) for run in runs)
    numbers = runs[0].plan.numbers
    least = 2 * int(numbers[col.CHANNELS]) * (1 if numbers[col.READY_QUEUES] else max(seats, SEATS) + 64)
    pool = max(POOL, 8 * spilled) + least
    flows = max(len(run.plan.src) for run in runs)
    return Shape(-(-max(seats, SEATS) // 64) * 64, min(pool, dev.NONE - 1), window, flows, reserve)


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


class Loop:
    """A machine that is none: the text in a loop over nodes, in an order drawn anew for every half slot."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    zeros = staticmethod(np.zeros)

    def share(self, common):
        return common

    def free(self):
        return 1 << 30

    def put(self, array, number, values):
        array[number] = values

    def get(self, array, number):
        return array[number].copy()

    def all(self, array):
        return array.copy()

    def launch(self, common, racks, stops):
        n = common.n
        racks.counted[:, dev.STOPPED] = 0
        kernel.in_a_loop()(common, racks, stops, np.array([self.rng.permutation(n) for _ in range(7)]))


class Cuda:
    """An NVIDIA GPU, or Numba's simulator of one."""

    def __init__(self):
        self.cuda = cuda
        if not SIMULATED:
            cuda.current_context()  # raises what is wrong with it

    def free(self) -> int:
        """Bytes of its memory that nobody uses."""
        return (1 << 30) if SIMULATED else int(self.cuda.current_context().get_memory_info()[0])

    def zeros(self, shape, kind):
        out = self.cuda.device_array(shape, kind)
        if SIMULATED:
            out[:] = 0
        else:
            self.cuda.cudadrv.driver.device_memset(out, 0, out.nbytes)
        return out

    def share(self, common):
        return type(common)(*(self.cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in common))

    def put(self, array, number, values):
        array[number].copy_to_device(values)

    def get(self, array, number):
        return array[number].copy_to_host()

    def all(self, array):
        return array.copy_to_host()

    def launch(self, common, racks, stops):
        numbers = tuple(int(one) for one in common[:-1])
        carry = kernel.on_device(numbers, racks.near64.shape[1], racks.near32.shape[1])
        carry[len(stops), kernel.threads_of(common.n)](common.tables, racks, cuda.to_device(stops))
        cuda.synchronize()
