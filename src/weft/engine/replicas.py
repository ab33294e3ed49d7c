"""Runs of one shape side by side: what any room's runs on a device have in common.

A room derives a `Replica` from its run and a `Group` of them. A machine keeps their arrays and runs a room's kernel on
them: `Cuda` on a GPU, or in Numba's simulator of one; `Loop`, for tests, on the processor.
"""

from collections.abc import Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numba import cuda

from weft.engine import loop
from weft.engine.device import SIMULATED

if TYPE_CHECKING:
    from weft.fabrics.base import Run as Base
else:
    Base = object

LAUNCH = 0.1  # s of wall time that a launch should take: Ctrl-C waits for its end
EACH = 2e-3  # s that it may take for each of its runs, which are looked at one after the other when it has ended
SLOTS = 256  # of the first launch
LIMIT = 1 << 16  # slots of a launch at most
OLDEST = 8  # major compute capability that has the instructions of `engine.device`: Ampere


class Replica(Base):
    """A run whose state is on a device: what is asked for often is mirrored, all else fetched when it is asked for.

    It comes before the room's own run among the bases of a class.
    """

    plain: ClassVar[type]  # the run as the processor has it
    mirrored: ClassVar[tuple[str, ...]] = ()  # what `mirror` sets
    inspect_every = 1 << 62  # a thorough look needs the whole state: at the end, and whenever it is fetched
    group: "Group"
    number: int  # in the group
    fresh: bool  # whether `held_state` is the run as it is now

    @classmethod
    def of(cls, run):
        """The same run, to be put on a device."""
        if isinstance(run, cls):
            return run
        made = cls.__new__(cls)
        made.__dict__.update(run.__dict__)
        made.held_state = made.__dict__.pop("state")
        made.fresh = True
        made.mirror()
        return made

    def mirror(self) -> None:
        """Take over from the state what the loop asks for."""
        raise NotImplementedError  # derived classes say it

    @property
    def left(self) -> int | None:
        """Flows under way once all have begun, where a core of the processor is faster with few; None: it is not."""
        return None

    def lay(self, shape) -> None:
        """Write what the device needs ahead of its turn, off the thread that steps it; a room need not."""

    def back(self):
        """The same run, for the processor."""
        state, made = self.state, self.plain.__new__(self.plain)
        gone = ("held_state", "fresh", "group", "number", *self.mirrored)
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in gone})
        made.state = state
        return made

    @property
    def state(self):
        """The whole state, fetched if it has changed."""
        self.settle()
        if callable(self.held_state):
            self.held_state = self.held_state()
        return self.held_state

    @state.setter
    def state(self, value):
        self.held_state = value

    def compile(self):
        """Nothing is left to compile: the group has done so."""

    def grow(self, why):
        """Nothing is left to do: the group has grown."""

    def settle(self) -> None:
        """Fetch the state, before the group changes; it is made sense of when it is asked for, by whoever does."""
        if not self.fresh:
            self.held_state, self.fresh = self.group.fetch(self), True

    def forget(self) -> None:
        """Let go of the state: the device has it."""
        self.held_state, self.fresh = None, False


class Group:
    """Runs on a device that take their strides together."""

    kernels: ClassVar[Any]  # the module whose `launch` and `launch_loop` let them advance
    most: int = LIMIT  # slots of a launch
    timed: ClassVar[bool] = False  # whether the kernel itself looks at the clock of a device that has one
    kept: ClassVar[int] = 0  # bytes of the device's last cache for what is looked at often, and said to be

    def __init__(self, runs: Sequence, machine, rows: int | None = None):
        self.machine, self.limit = machine, min(SLOTS, self.most)
        self.rows = rows or len(runs)  # places for runs
        machine.keep(self.kept)
        self.common, self.blocks = self.lay_out(runs[0])
        nothing = np.zeros(0, np.int64)
        machine.launch(self.kernels, self.common, self.blocks, nothing, 0.0)  # of no run: compile, if need be
        for number, run in enumerate(runs):
            self.enter(run, number)

    def enter(self, run, number: int) -> None:
        """Put a run on the machine, in a place where there are zeros."""
        run.group, run.number = self, number
        self.put(run)
        run.forget()

    def leave(self, run) -> int:
        """Fetch a run that is done; returns its place, which another may take."""
        run.settle()
        for block in self.blocks:
            self.machine.clear(block, run.number)
        return run.number

    def lay_out(self, run) -> tuple[Any, Any]:
        """(what runs like this one share, a NamedTuple of arrays on the machine, their first axis the run)."""
        raise NotImplementedError  # derived classes say it

    def put(self, run) -> None:
        """Put one run on the machine, whose arrays are zeros."""
        raise NotImplementedError  # derived classes say it

    def fetch(self, run):
        """The state of one run, as the processor has it; or a function that gives it, without the machine."""
        raise NotImplementedError  # derived classes say it

    def target(self, run, stop: int) -> int:
        """The slot at which a run is to stop by `stop` (ps)."""
        raise NotImplementedError  # derived classes say it

    def skip(self, run, until: int) -> None:
        """Let a run in which nothing can happen wait for its next flow."""

    def look(self) -> Any:
        """Fetch what is mirrored of all runs."""
        raise NotImplementedError  # derived classes say it

    def ended(self, run, seen, wanted: int) -> int:
        """Take over what was seen of a run that was to reach a slot; says why its stride ended, see `engine.loop`."""
        raise NotImplementedError  # derived classes say it

    def step(self, stops: dict) -> tuple[dict, float]:
        """Let the runs that are named take a stride towards their stops (ps); says why each ended, and seconds.

        A launch takes so long and no longer. By the clock, each run goes on until then; else all take as many slots,
        and those of which a slot takes less time wait for the others.
        """
        targets, wanted = np.zeros(self.rows, np.int64), {}
        seconds, by_clock = max(LAUNCH, EACH * len(stops)), self.timed and self.machine.clock
        limit = self.most if by_clock else self.limit
        for run, stop in stops.items():
            wanted[run] = self.target(run, stop)
            self.skip(run, wanted[run])
            targets[run.number] = min(wanted[run], run.slot + limit)
        before, began = {run: run.slot for run in stops}, perf_counter()
        self.machine.launch(self.kernels, self.common, self.blocks, targets, seconds)
        seen = self.look()
        took = perf_counter() - began
        whys = {run: self.ended(run, seen, wanted[run]) for run in stops}
        for run in stops:
            run.fresh = False
        if not by_clock and max((run.slot - before[run] for run in stops), default=0) >= self.limit:
            aim = seconds / max(took, 1e-6)
            self.limit = int(min(max(self.limit * min(max(aim, 0.5), 2), 16), self.most, LIMIT))
        return whys, took


def roomy(count: int) -> int:
    """A number a little larger, the same for others that are near: drawn runs differ a little."""
    step = 1 << max(count.bit_length() - 4, 0)
    return max(count, -(-count // step) * step - 2)  # not a power of two, for which a word would need another bit


def reached(run, wanted: int) -> int:
    """Why a stride ended in which nothing else happened."""
    return loop.REACHED if run.slot >= wanted else loop.PAUSED


class Loop:
    """A machine that is none: a text in a loop over nodes or ports, in an order drawn anew for every phase."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    zeros = staticmethod(np.zeros)

    def share(self, common):
        return common

    processors = 2  # how many runs it works on at a time
    clock = False

    def free(self):
        return 1 << 30

    def keep(self, count):
        pass

    def put(self, array, number, values, start=0):
        array[number, start : start + len(values)] = values

    def clear(self, array, number):
        array[number] = 0

    def get(self, array, number, start=0, stop=None):
        return array[number, start:stop].copy()

    def all(self, array):
        return array.copy()

    @contextmanager
    def profiled(self):
        yield

    def launch(self, kernels, common, blocks, stops, seconds):
        kernels.launch_loop(common, blocks, stops, self.rng)


class Cuda:
    """An NVIDIA GPU, or Numba's simulator of one."""

    clock = not SIMULATED

    def __init__(self):
        self.cuda = cuda
        if not SIMULATED:
            cuda.current_context()  # raises what is wrong with it
            major, _ = cuda.get_current_device().compute_capability
            if major < OLDEST:
                raise RuntimeError(f"its compute capability must be {OLDEST} or more, not {major}")
        self.processors = 2 if SIMULATED else cuda.get_current_device().MULTIPROCESSOR_COUNT

    def free(self) -> int:
        """Bytes of its memory that nobody uses."""
        return (1 << 30) if SIMULATED else int(self.cuda.current_context().get_memory_info()[0])

    def keep(self, count: int) -> None:
        """Set so many bytes of the last cache aside for what kernels say is to be kept, if it can be divided."""
        if not SIMULATED:
            from numba.cuda.cudadrv.driver import CudaAPIError, binding, driver

            with suppress(CudaAPIError):  # of a device whose cache cannot
                self.cuda.current_context()  # of this thread
                driver.cuCtxSetLimit(binding.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, count)

    def zeros(self, shape, kind):
        out = self.cuda.device_array(shape, kind)
        if SIMULATED:
            out[:] = 0
        else:
            self.cuda.cudadrv.driver.device_memset(out, 0, out.nbytes)
        return out

    def share(self, common):
        return type(common)(*(self.cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in common))

    def put(self, array, number, values, start=0):
        if len(values):
            array[number, start : start + len(values)].copy_to_device(values)

    def clear(self, array, number):
        if SIMULATED:
            array[number][:] = 0
        else:
            row = array[number]
            self.cuda.cudadrv.driver.device_memset(row, 0, row.nbytes)

    def get(self, array, number, start=0, stop=None):
        return array[number, start:stop].copy_to_host()

    def all(self, array):
        return array.copy_to_host()

    @contextmanager
    def profiled(self):
        """What a profiler is to look at."""
        if SIMULATED:
            yield
        else:
            with cuda.profiling():
                yield

    def launch(self, kernels, common, blocks, stops, seconds):
        kernels.launch(common, blocks, stops, seconds)
        cuda.synchronize()
