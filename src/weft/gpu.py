"""Runs on a GPU: those of a study that share a shape go there together, each with the bits it has on a processor.

A fabric whose room has a kernel for a device names the module that carries it there (`Fabric.on_gpu`). What a device
cannot carry, and what outgrows it, runs on the processor as ever, and it is said why. A run is kept as soon as it is
done, so a device that fails in the middle loses none.
"""

import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any

from weft import memory as limits
from weft.checkpoint import Checkpoint
from weft.engine import loop
from weft.engine.ahead import compiling
from weft.engine.wake import wake
from weft.errors import TooLarge, Unusable, WeftError
from weft.experiment import PROGRAM, Interrupted, Session, begin, deferred_interrupt, need
from weft.units import show_size

SHARE = 0.9  # of the device's free memory that racks may take
FEW = 8  # flows of which a core takes a slot sooner than a device, which waits as long for one as for hundreds
EVERY = 600.0  # s between checkpoints of a run on a device: each costs a look at its whole state
AT_A_TIME = 24  # runs that are laid out in larger arrays before they go there
MOST_THREADS = 12  # that draw, lay out and take down, beside the one that steps the device …
TURN = 2e-4  # … and s after which one of them lets go of the interpreter
INSTEAD = "leave it out, and the processor does the same"


def find():
    """The GPU of this machine; a sentence if there is none that can be used."""
    wake()
    try:
        from weft.engine.replicas import Cuda
    except ImportError as error:
        raise Unusable(f"a GPU needs Numba's CUDA, which cannot be loaded ({error}): pip install 'weft[gpu]'") from None
    try:
        return Cuda()
    except Exception as error:  # Numba's and the driver's, which have no class in common
        said = " ".join(str(error).split(".")[0].split()) or type(error).__name__
        raise Unusable(f"on must name a GPU that this machine has and its driver serves ({said}): {INSTEAD}") from None


def room_of(fabric):
    """The module that carries a fabric on a device, or None."""
    return import_module(fabric.on_gpu) if fabric.on_gpu else None


def ahead(fabrics):
    """While the block runs, let other processes compile what the processor has to do for runs over these on a device.

    This one compiles what the device does meanwhile, which takes as long.
    """
    rooms = [(room_of(fabric), fabric) for fabric in fabrics]
    return compiling({k: v for room, fabric in rooms if hasattr(room, "ahead") for k, v in room.ahead(fabric).items()})


def refusal(fabric, demand) -> str | None:
    """Why a device cannot carry this, or None."""
    room = room_of(fabric)
    return f"{type(fabric).__name__} runs on the processor" if room is None else room.refusal(fabric, demand)


def advance(session: Session, machine, watch) -> None:
    """Let one run's time pass on the device; what it cannot carry is left as it is, with a note."""
    reason = refusal(session.fabric, session.demand)
    if reason is None:
        room = room_of(session.fabric)
        session.run = room.replica(session.run)
        reason = _too_large(room, session.run, SHARE * machine.free())
        if reason is not None:
            session.run = session.run.back()
    if reason is None:
        place = Place(session, watch)
        Line(room, machine, 1, idle=lambda: 1).run([place])
        reason = place.reason
    if reason is not None:
        session.notes = (f"{reason}, not on the GPU",)


@dataclass
class Place:
    """A run on its way through a device."""

    session: Session
    watch: Callable
    done: Callable | None = None  # called when it has left, ended or not
    reason: str | None = None  # why it left before its end
    going: Any = None  # the loop of the run …
    stop: int | None = 0  # … and the moment to which that lets it go
    last: tuple = ()  # (why its last stride ended, seconds), of which the loop has not heard

    @property
    def run(self):
        return self.session.run

    def begin(self) -> None:
        """Ask the loop for the first stride."""
        self.going = loop.strides(self.run, self.session.until, self.watch)
        self.stop, _ = next(self.going)

    def goes_on(self, why, seconds) -> bool:
        """Tell the loop of a stride; whether there is another."""
        try:
            self.stop, _ = self.going.send((why, seconds))
        except StopIteration:
            return False
        return True

    def leave(self, reason=None) -> None:
        """Go: its state has been fetched, and whoever calls `end`, here or in another thread, makes sense of it."""
        self.reason = reason
        (self.done or self.end)()

    def end(self) -> None:
        """Hear the end of the loop, in which monitors look at the whole state, and be a run of the processor again."""
        if self.last:
            self.goes_on(*self.last)
        self.session.run = self.run.back()


class Line:
    """Runs of one shape on a device, so many at once: where one has ended, the next that is ready takes its place."""

    def __init__(
        self, room, machine, rows: int, coming: Callable | None = None, idle: Callable | None = None, each=map
    ):
        """`coming()` gives the next `Place`, or None if none is ready; `idle()` how many runs cores could take over.

        `each` is `map`, or that of threads.
        """
        self.room, self.machine, self.rows, self.coming = room, machine, rows, coming or (lambda: None)
        self.idle, self.each = idle or (lambda: 0), each
        self.waiting: list[Place] = []
        self.shape: Any = None  # of the arrays, once a run has come …
        self.group: Any = None  # … and what they hold; None while they are to be laid out anew
        self.vacant: list[int] = []
        self.problem = ""  # why arrays could not grow

    def run(self, places: list[Place]) -> None:
        """Let all time pass of these runs, and of those that come."""
        try:
            for place in places:
                self.enter(place)
            while self.waiting:
                self.step()
        except Interrupted:
            self.keep()
            raise
        except (WeftError, KeyboardInterrupt):
            raise
        except Exception as error:  # the driver's
            raise WeftError(
                f"the GPU failed ({type(error).__name__}: {error}): runs that are done are kept, and the same command, "
                "or the processor, goes on from there"
            ) from None

    def keep(self) -> None:
        """Write a checkpoint of every run: fetched one after the other, written side by side."""
        for first in range(0, len(self.waiting), AT_A_TIME):
            some = self.waiting[first : first + AT_A_TIME]
            for place in some:
                place.run.settle()
            list(self.each(lambda place: place.session.keep(), some))

    def enter(self, place) -> None:
        """Take one more, onto the device if there is a place for it in arrays that are large enough."""
        place.session.run = self.room.replica(place.run)
        place.begin()
        least = self.room.common_shape([place.run])
        if self.group is None:
            self.shape = least if self.shape is None else _both(self.shape, least)
        elif _both(self.shape, least) == self.shape:
            self.group.enter(place.run, self.vacant.pop())
        elif not self.grow(_both(self.shape, least), len(self.waiting) + 1, place.run):
            place.leave(f"outgrew the device ({self.problem})")
            return
        self.waiting.append(place)

    def step(self) -> None:
        """One stride of all; who has ended makes room."""
        if self.group is None:
            self.lay_out([place.run for place in self.waiting])
        whys, seconds = self.group.step({place.run: place.stop for place in self.waiting})
        share, wants = seconds / len(self.waiting), 0
        for place in list(self.waiting):
            why = whys[place.run]
            wants |= max(why - loop.MORE, 0)
            if why == loop.DONE or (why == loop.REACHED and place.stop == place.session.until):
                place.last = why, share
                self.let_go(place)
            else:
                place.goes_on(min(why, loop.MORE), share)
        if wants and self.waiting:
            try:
                shape = self.room.larger(self.shape, wants, self.waiting[0].session.fabric.nodes)
            except TooLarge as error:
                self.problem = str(error)
                self.drop(whys)
            else:
                if not self.grow(shape, len(self.waiting), self.waiting[0].run):
                    self.drop(whys)
        few = sorted((place for place in self.waiting if place.run.left is not None), key=lambda place: place.run.left)
        for place in few[: self.idle()] if self.group is not None else ():
            if place.run.left <= FEW:
                self.let_go(place)
        while len(self.waiting) < self.rows:
            following = self.coming()
            if following is None:
                return
            self.enter(following)

    def lay_out(self, runs) -> None:
        """Have arrays of the shape that is needed now, and all runs in them."""
        self.rows = max(self.rows, len(runs))
        self.group = self.room.Group(runs[:1], self.machine, self.shape, self.rows)
        self.vacant = list(range(len(runs), self.rows))
        for first in range(1, len(runs), AT_A_TIME):
            some = runs[first : first + AT_A_TIME]
            list(self.each(lambda run: run.lay(self.shape), some))
            for number, run in enumerate(some, first):
                self.group.enter(run, number)

    def grow(self, shape, runs: int, one) -> bool:
        """Have arrays of a larger shape for so many runs like `one`, or say in `problem` what they would need."""
        held = self.rows * self.room.size(one, self.shape)
        need, have = self.room.size(one, shape), self.machine.free() + held
        if need * runs > SHARE * have:
            self.problem = (
                f"the runs must fit in {show_size(int(SHARE * have))} of its memory, not need {show_size(need * runs)}"
            )
            return False
        for place in self.waiting:
            place.run.settle()
        self.shape, self.group, self.rows = shape, None, max(min(self.rows, int(SHARE * have) // need), runs)
        return True

    def drop(self, whys) -> None:
        """Let those go whose arrays cannot grow."""
        for place in [one for one in self.waiting if whys.get(one.run, 0) >= loop.MORE]:
            self.let_go(place, f"outgrew the device ({self.problem})")

    def let_go(self, place, reason=None) -> None:
        """Have one leave, and its place on the device taken by another."""
        self.waiting.remove(place)
        self.vacant.append(self.group.leave(place.run))
        place.leave(reason)


def _both(one, other):
    """A shape in which fits whatever fits one of these."""
    return type(one)(*map(max, one, other))


def _too_large(room, run, budget) -> str | None:
    """Why a device has too few bytes for a run, or None."""
    need = room.size(run, room.common_shape([run]))
    return (
        None if need <= budget else f"a {room.NOUN} needs {show_size(need)} and the device has {show_size(int(budget))}"
    )


def on_gpu(jobs, todo, shares, found, progress) -> tuple[list, list[str]]:
    """Do the jobs numbered `todo`; returns the results of those that have no place, and notes on who ran where."""
    machine, watching, reasons = find(), _Watching(jobs, shares, found, progress), dict[str, list[int]]()
    known = [k for k in todo if room_of(jobs[k].point.fabric) is not None]
    key = {k: repr(room_of(jobs[k].point.fabric).key(jobs[k].point.fabric)) for k in known}
    later = [(k, f"{type(jobs[k].point.fabric).__name__} runs on the processor") for k in todo if k not in key]
    with _claims(jobs, known) as mine, ahead([jobs[k].point.fabric for k in mine]):
        later += [(k, "another process is at it") for k in known if k not in mine]
        shapes = ([k for k in mine if key[k] == shape] for shape in dict.fromkeys(key[k] for k in mine))
        later += _Stream(jobs, machine, watching).run(shapes)
    for k, reason in sorted(later):
        reasons.setdefault(reason, []).append(k)
        if shares[k] < 1:
            watching.results[k] = jobs[k].do(lambda run, k=k: watching.look(k, run))
            watching.tell(k, 1.0)
    return watching.results, [f"{len(some)} of {len(todo)} runs: {reason}" for reason, some in reasons.items()]


@contextmanager
def _claims(jobs, numbers):
    """Hold the claims on those of the jobs that nobody else is at, and are not done; yields their numbers."""
    from weft.study import Claims

    places = [jobs[k].place for k in numbers if jobs[k].place is not None]
    if not places:
        yield list(numbers)
        return
    claims = Claims(places[0].parent)
    try:
        yield [k for k in numbers if claims.take(jobs[k].place) and not jobs[k].done]
    finally:
        claims.close()


class _Stream:
    """Jobs on their way through a device, those of one shape after those of another.

    Threads draw and lay out the next ones and take down the results of those that have ended, while the device works;
    cores carry the last flows of a run.
    """

    def __init__(self, jobs, machine, watching):
        self.jobs, self.machine, self.watching = jobs, machine, watching
        cores = os.cpu_count() or 1
        self.threads, self.cores = min(cores, MOST_THREADS), max(cores * 3 // 4, 1)
        self.numbers, self.later = deque[int](), list[tuple[int, str]]()
        self.ahead, self.ending, self.carried = deque[Future](), list[Future](), set[Future]()

    def run(self, shapes) -> list[tuple[int, str]]:
        """Do the jobs of every shape, by their numbers; returns who has to run elsewhere, or did, and why."""
        self.pool, self.carrying = ThreadPoolExecutor(self.threads), ThreadPoolExecutor(self.cores)
        with _brief_turns(), deferred_interrupt() as self.interrupted:
            try:
                for alike in shapes:
                    self.run_alike(alike)
                self.reap(0)
            finally:
                self.pool.shutdown(wait=True, cancel_futures=True)
                self.carrying.shutdown(wait=True, cancel_futures=True)
        return self.later

    def run_alike(self, numbers) -> None:
        """Let jobs of one shape pass through the device."""
        self.numbers.extend(numbers)
        self.room = room_of(self.jobs[numbers[0]].point.fabric)
        self.line: Line | None = None
        self.budget = SHARE * self.machine.free()
        first = self.coming(must=True)
        if first is not None:
            fit = int(self.budget // self.room.size(first.run, self.room.common_shape([first.run])))
            most = min(fit, self.room.AT_ONCE * self.machine.processors, self.fit_here(first.session))
            rows = max(min(1 + len(self.numbers) + len(self.ahead), most), 1)
            self.line = Line(self.room, self.machine, rows, self.coming, self.idle, self.pool.map)
            self.line.run([first])

    def fit_here(self, session) -> int:
        """So many runs as this one fit the machine's own memory, those on their way to the device and back included."""
        each = need(session.fabric, session.demand) - PROGRAM
        return int((limits.allowed() - PROGRAM) // each) - 4 * self.threads

    def coming(self, must=False) -> Place | None:
        """The next that is ready; waits for it if the device has nothing else to do."""
        self.reap(2 * self.threads + self.cores)
        must = must or self.line is None or not self.line.waiting
        while self.numbers or self.ahead:
            while self.numbers and len(self.ahead) < 2 * self.threads:
                self.ahead.append(self.pool.submit(self.prepare, self.numbers.popleft()))
            if not must and not self.ahead[0].done():
                return None
            k, place, reason = self.ahead.popleft().result()
            if place is not None:
                return place
            self.later.append((k, reason))
        return None

    def prepare(self, k: int) -> tuple[int, Place | None, str | None]:
        """Job k, ready for the device; or why it has to run elsewhere."""
        job, point = self.jobs[k], self.jobs[k].acting or self.jobs[k].point
        checkpoint = None if job.place is None else Checkpoint.beside(job.place, max(job.every, EVERY))
        session = begin(point.fabric, point.workload, seed=point.seed, until=point.until, checkpoint=checkpoint)
        reason = refusal(point.fabric, session.demand)
        if reason is None:
            session.run = self.room.replica(session.run)
            reason = _too_large(self.room, session.run, self.budget)
        if reason is not None:
            return k, None, reason
        if self.line is not None and self.line.shape is not None:
            session.run.lay(_both(self.line.shape, self.room.common_shape([session.run])))
        place = Place(session, session.watch(lambda run: self.watching.look(k, run), self.interrupted))
        place.done = lambda: self.gone(k, place)
        return k, place, None

    def idle(self) -> int:
        """Cores that have nothing to carry."""
        self.carried = {one for one in self.carried if not one.done()}
        return self.cores - len(self.carried)

    def gone(self, k: int, place: Place) -> None:
        """Have a thread see to a run that has left the device."""
        ended = (self.pool if place.last else self.carrying).submit(self.end, k, place)
        self.ending.append(ended)
        if not place.last:
            self.carried.add(ended)

    def end(self, k: int, place: Place) -> None:
        """Take down the result of a run that has left the device; one that has not ended goes on here."""
        place.end()
        if not place.last:
            place.session.advance(place.watch)
        self.watching.done(k, place.session.result())
        if place.reason is not None:
            self.later.append((k, f"{place.reason}; it went on on the processor"))
        place.done = None  # which refers to the place: its arrays go now, and not when somebody looks for cycles

    def reap(self, most: int) -> None:
        """Have at most so many results that are not taken down; raises what went wrong with one."""
        while True:
            for one in [one for one in self.ending if one.done()]:
                self.ending.remove(one)
                one.result()
            if len(self.ending) <= most:
                return
            wait(self.ending, return_when=FIRST_COMPLETED)


class _Watching:
    """Who is told how far jobs are, and of their results."""

    def __init__(self, jobs, shares, found, progress):
        self.jobs, self.shares, self.found, self.progress = jobs, shares, found, progress
        self.results, self.lock = [None] * len(jobs), Lock()

    def look(self, k, run) -> None:
        self.tell(k, self.jobs[k].share(run))

    def tell(self, k, share) -> None:
        with self.lock:
            self.shares[k] = share
            self.progress(self.shares, self.found)

    def done(self, k, result) -> None:
        """Keep a result: in its place, or here."""
        if self.jobs[k].place is None:
            self.results[k] = result
        else:
            result.save(self.jobs[k].place)
            Checkpoint.beside(self.jobs[k].place).remove()
        self.tell(k, 1.0)


@contextmanager
def _brief_turns():
    """Let the thread that steps the device not wait long for those that hold the interpreter."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
