"""Runs on a GPU: those of a study that share a shape go there together, each with the bits it has on a processor.

A fabric whose room has a kernel for a device names the module that carries it there (`Fabric.on_gpu`). What a device
cannot carry, and what outgrows it, runs on the processor as ever, and it is said why. A run is kept as soon as it is
done, so a device that fails in the middle loses none.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby

from weft.checkpoint import Checkpoint
from weft.engine import loop
from weft.errors import TooLarge, Unusable, WeftError
from weft.experiment import Interrupted, Session, begin, deferred_interrupt
from weft.units import show_size

SHARE = 0.9  # of the device's free memory that racks may take
EVERY = 600.0  # s between checkpoints of a run on a device: each costs a look at its whole state
INSTEAD = "leave it out, and the processor does the same"


def find():
    """The GPU of this machine; a sentence if there is none that can be used."""
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
        reason = _too_large(room, [session.run], SHARE * machine.free())
        if reason is not None:
            session.run = session.run.back()
    if reason is None:
        reason = together([Place(session, watch)], machine)[0]
    if reason is not None:
        session.notes = (f"{reason}, not on the GPU",)


@dataclass
class Place:
    """A run on its way through a device."""

    session: Session
    watch: Callable
    done: Callable | None = None  # called when it has ended
    reason: str | None = None  # why it left the device before its end


def together(places: list[Place], machine) -> list[str | None]:
    """Let the time of several runs of one shape pass on a device; says of each why it left before its end, or None."""
    room = room_of(places[0].session.fabric)
    for place in places:
        place.session.run = room.replica(place.session.run)
    shape, waiting = None, list(places)
    going = {id(place): loop.strides(place.session.run, place.session.until, place.watch) for place in places}
    asked = {id(place): next(going[id(place)]) for place in places}
    group = None
    try:
        while waiting:
            if group is None:
                runs = [place.session.run for place in waiting]
                shape = shape or room.common_shape(runs)
                group = room.Group(runs, machine, shape)
            stops = {place.session.run: asked[id(place)][0] for place in waiting}
            whys, seconds = group.step(stops)
            wants = 0
            for place in list(waiting):
                why = whys[place.session.run]
                wants |= why - loop.MORE if why >= loop.MORE else 0
                try:
                    asked[id(place)] = going[id(place)].send((min(why, loop.MORE), seconds / len(waiting)))
                except StopIteration:
                    waiting.remove(place)
                    place.session.run = place.session.run.back()
                    if place.done is not None:
                        place.done()
            if wants and waiting:
                try:
                    shape = room.larger(shape, wants, waiting[0].session.fabric.nodes)
                    _fits(room, waiting, shape, machine, group)
                    for place in waiting:
                        place.session.run.settle()
                    group = None
                except TooLarge as error:
                    for place in [one for one in waiting if whys.get(one.session.run, 0) >= loop.MORE]:
                        waiting.remove(place)
                        place.reason = f"outgrew the device ({error})"
                        place.session.run = place.session.run.back()
    except Interrupted:
        for place in waiting:
            place.session.keep()
        raise
    except (WeftError, KeyboardInterrupt):
        raise
    except Exception as error:  # the driver's
        raise WeftError(
            f"the GPU failed ({type(error).__name__}: {error}): runs that are done are kept, and the same command, "
            "or the processor, goes on from there"
        ) from None
    return [place.reason for place in places]


def _too_large(room, runs, budget) -> str | None:
    """Why so many bytes of a device are too few for these runs, or None."""
    need = room.size(runs[0], room.common_shape(runs))
    if need * len(runs) <= budget:
        return None
    return f"a {room.NOUN} needs {show_size(need)} and the device has {show_size(int(budget))}"


def _fits(room, waiting, shape, machine, group) -> None:
    """Raise a sentence unless the device has room for these runs in a larger shape."""
    one = waiting[0].session.run
    need, have = len(waiting) * room.size(one, shape), machine.free() + len(group.runs) * room.size(one, group.shape)
    if need > SHARE * have:
        raise TooLarge(f"the runs must fit in {show_size(int(SHARE * have))} of its memory, not need {show_size(need)}")


def on_gpu(jobs, todo, shares, found, progress) -> tuple[list, list[str]]:
    """Do the jobs numbered `todo`; returns the results of those that have no place, and notes on who ran where."""
    machine, results, reasons = find(), [None] * len(jobs), dict[str, list[int]]()
    known = [k for k in todo if room_of(jobs[k].point.fabric) is not None]
    key = {k: repr(room_of(jobs[k].point.fabric).key(jobs[k].point.fabric)) for k in known}
    later = [(k, f"{type(jobs[k].point.fabric).__name__} runs on the processor") for k in todo if k not in key]
    with _claims(jobs, known) as mine:
        later += [(k, "another process is at it") for k in known if k not in mine]
        for _, alike in groupby(sorted(mine, key=lambda k: (key[k], k)), key.__getitem__):
            rest = list(alike)
            while rest:
                rest, more = _batch(jobs, rest, machine, shares, found, progress, results)
                later += more
    for k, reason in sorted(later):
        reasons.setdefault(reason, []).append(k)

        def look(run, k=k):
            shares[k] = jobs[k].share(run)
            progress(shares, found)

        results[k] = jobs[k].do(look)
        shares[k] = 1.0
        progress(shares, found)
    return results, [f"{len(some)} of {len(todo)} runs: {reason}" for reason, some in reasons.items()]


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


def _batch(jobs, rest, machine, shares, found, progress, results) -> tuple[list, list]:
    """Do as many of these jobs as fit the device at once; returns those that are left, and (job, why not)."""
    places, numbers, later, budget = list[Place](), [], [], SHARE * machine.free()
    with deferred_interrupt() as interrupted:
        while rest:
            k, job = rest[0], jobs[rest[0]]
            checkpoint = None if job.place is None else Checkpoint.beside(job.place, max(job.every, EVERY))
            point = job.acting or job.point
            session = begin(point.fabric, point.workload, seed=point.seed, until=point.until, checkpoint=checkpoint)
            reason = refusal(point.fabric, session.demand)
            if reason is not None:
                later.append((rest.pop(0), reason))
                continue
            room = room_of(point.fabric)
            session.run = room.replica(session.run)
            reason = _too_large(room, [*(p.session.run for p in places), session.run], budget)
            if reason is not None:
                if not places:
                    later.append((rest.pop(0), reason))
                    continue
                break

            def look(run, k=k, job=job):
                shares[k] = job.share(run)
                progress(shares, found)

            def done(k=k, job=job, session=session, checkpoint=checkpoint):
                result = session.result()
                if job.place is None:
                    results[k] = result
                else:
                    result.save(job.place)
                    checkpoint.remove()
                shares[k] = 1.0
                progress(shares, found)

            places.append(Place(session, session.watch(look, interrupted), done))
            numbers.append(k)
            rest.pop(0)
        if places:
            whys = together(places, machine)
            later += [
                (k, f"{reason}; it ran on the processor") for k, reason in zip(numbers, whys, strict=True) if reason
            ]
    return rest, later
