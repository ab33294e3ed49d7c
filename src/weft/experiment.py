"""run(fabric, workload, seed) -> Result: draw, prepare, advance, collect."""

import signal
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from time import perf_counter, process_time

from weft import memory as limits
from weft.checkpoint import describe_call
from weft.errors import BadInput, TooLarge, require
from weft.metrics.provenance import columns_hash
from weft.metrics.result import Result
from weft.report.ticker import close, shown
from weft.units import show_size
from weft.workload.demand import Planned
from weft.workload.files import PIPE
from weft.workload.flows import LATEST, Flows

STOPS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C; batch systems and `timeout`
PROGRAM = 260_000_000  # bytes of Python, its libraries and compiled kernels, before anything is laid out
DRAWING = 160  # bytes a flow takes while it is drawn: half a dozen columns of numbers, twice
CHAINING = 640  # the same where flows are put together one by one: lists of numbers, and whom each waits for


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM during a run. `result` is what was seen until then; a checkpoint, if asked for, is on disk."""

    def __init__(self, result: Result):
        super().__init__("interrupted")
        self.result = result


def run(fabric, workload, *, seed=0, until=None, memory=None, progress=None, checkpoint=None, on=None) -> Result:
    """Carry `workload` over `fabric` and return what was observed.

    until: ps at which to stop; by default when the workload says, or when the last flow is done. memory: bytes the run
    may need; by default 80 % of the machine's. progress: True for a line that says how far it is, in a program or a
    notebook; or called with the run between strides, and if it returns True the run stops there. checkpoint: a
    `Checkpoint`; if it is on disk the run goes on from there, and whoever saves the result removes it. Ctrl-C waits for
    the end of a stride, some milliseconds. A run that is stopped raises `Interrupted`, which holds the result so far.
    on: "gpu" for a run on the GPU of this machine, with the same bits; what a GPU cannot carry runs here, and a note of
    the result says why.
    """
    check(fabric, workload)
    require(on in (None, "gpu"), "on", "gpu, or left out", on)
    machine, meanwhile = None, nullcontext()
    if on is not None:
        from weft import gpu

        machine = gpu.find()
        meanwhile = gpu.ahead([fabric])
    progress = shown(progress)
    try:
        with limits.limited(memory), meanwhile:
            session = begin(fabric, workload, seed=seed, until=until, checkpoint=checkpoint)
            with deferred_interrupt() as interrupted:
                watch = session.watch(progress, interrupted)
                if machine is not None:
                    gpu.advance(session, machine, watch)
                session.advance(watch)
    finally:
        close(progress)
    if interrupted():
        raise Interrupted(session.result())
    return session.result()


def begin(fabric, workload, *, seed, until, checkpoint) -> "Session":
    """Draw the flows and lay out the run, if there is room for both."""
    allow(fabric, workload.planned(fabric.nodes))
    demand = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)
    fabric.accept(demand)
    allow(fabric, demand)
    return Session(fabric, workload, demand, seed=seed, until=horizon(workload, demand, until), checkpoint=checkpoint)


def check(fabric, workload) -> None:
    """Refuse what is no fabric and no workload, before anything is asked of it."""
    require(hasattr(fabric, "prepare"), "fabric", "a Fabric, as in weft.Shoal(nodes=8)", fabric)
    if isinstance(workload, Flows):
        raise BadInput(
            "workload must be what draws flows, as in weft.Poisson(load=0.5), not Flows: "
            "write them by to_csv(path) and give weft.Trace(path=path), so that others can make the result again"
        )
    require(hasattr(workload, "draw"), "workload", "a Workload, as in weft.Poisson(load=0.5)", workload)


class Session:
    """A run from its first stride, or from a checkpoint, to its result; knows what it has cost so far."""

    def __init__(self, fabric, workload, demand, *, seed, until, checkpoint):
        self.began, self.began_cpu = perf_counter(), process_time()
        self.fabric, self.workload, self.demand, self.seed, self.until = fabric, workload, demand, seed, until
        self.notes: tuple[str, ...] = ()  # of how it was run
        self.call, self.before = describe_call(fabric, workload, seed, until), {"wall_s": 0.0, "cpu_s": 0.0}
        if PIPE in self.call["inputs"].values():  # which can be read only once, and decides the run
            table = demand.table
            self.call["inputs"]["flows"] = columns_hash(
                table.src, table.dst, table.size, table.start, table.klass, table.rate
            )
        self.checkpoint = checkpoint
        if self.checkpoint is not None and self.checkpoint.exists():
            self.before, arrays = self.checkpoint.read(self.call)
            self.run = fabric.thaw(demand, arrays, seed=seed)
        else:
            self.run = fabric.prepare(demand, seed=seed)

    def advance(self, watch) -> None:
        """Let time pass; where tables find no room to grow, the run is kept first, if it is to be."""
        try:
            self.run.advance(until=self.until, watch=watch)
        except TooLarge as error:
            if self.checkpoint is None:
                raise
            self.keep()
            raise TooLarge(
                f"{error}; {self.checkpoint.problem or f'{self.checkpoint.path} keeps the run so far'}"
            ) from None

    @property
    def spent(self) -> dict:
        """Seconds of wall and processor time, those before a checkpoint included."""
        wall, cpu = perf_counter() - self.began, process_time() - self.began_cpu
        return {"wall_s": self.before["wall_s"] + wall, "cpu_s": self.before["cpu_s"] + cpu}

    def watch(self, progress, interrupted):
        """What to do between strides."""

        def look(run):
            enough = progress is not None and progress(run) is True
            if enough or interrupted():
                raise Interrupted(self.keep())
            if self.checkpoint is not None and self.checkpoint.due:
                self.keep()

        return look

    def keep(self) -> Result:
        """Put the run on disk, if it is to be kept, and return what was seen so far."""
        partial = self.result(partial=True)
        if self.checkpoint is not None:
            self.checkpoint.write({**self.call, "spent": self.spent}, self.run.freeze(), partial)
        return partial

    def result(self, partial=False) -> Result:
        """What was seen so far."""
        spent = self.spent
        result = Result.collect(
            self.fabric,
            self.workload,
            self.demand,
            self.run.observe(),
            seed=self.seed,
            wall=spent["wall_s"],
            cpu=spent["cpu_s"],
            partial=partial,
            more={"until": self.call["until"], "inputs": self.call["inputs"]},
        )
        return replace(result, notes=(*result.notes, *self.notes)) if self.notes else result


def horizon(workload, demand, until=None) -> int | None:
    """When a run stops, in ps, or None: when the last flow is done. Flows without an end need one."""
    chosen = workload.ends(demand) if until is None else until
    require(chosen is None or 0 < chosen <= LATEST, "until", "above 0 ps", chosen)
    endless = demand.endless
    if chosen is None:
        require(not endless, "until", f"given, because {endless:,} of {len(demand):,} flows never end", None)
    return chosen


def allow(fabric, demand, memory=None, *, times=1) -> None:
    """Raise `TooLarge` if `times` such runs are predicted to need more than `memory` bytes, by default 80 % of all.

    Before the flows are drawn their number is a plan, or unknown.
    """
    needed = need(fabric, demand)
    allowed = limits.allowed() if memory is None else memory
    if needed * times > allowed:
        flows = f" and {len(demand):,} flows" if len(demand) else ""
        runs = "a run" if times == 1 else f"{times} runs at a time"
        raise TooLarge(
            f"{runs} of {fabric.nodes:,} nodes{flows} must fit in {show_size(allowed)} of memory, "
            f"not need {show_size(needed * times)}"
        )


def need(fabric, demand) -> int:
    """Bytes that a run is predicted to need, the program itself and its kernels included."""
    drawing = (CHAINING if demand.chained else DRAWING) if isinstance(demand, Planned) else 0
    return PROGRAM + fabric.memory(demand) + len(demand) * drawing


@contextmanager
def deferred_interrupt():
    """Let Ctrl-C or SIGTERM wait for the end of a stride, where the state is whole; a second one does not wait.

    Yields a function that says whether one came. Outside the main thread nothing changes: no signal arrives there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came = []

    def note(number, frame):
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = [signal.signal(stop, note) for stop in STOPS]
    try:
        yield lambda: bool(came)
    finally:
        for stop, handler in zip(STOPS, before, strict=True):
            signal.signal(stop, handler)
