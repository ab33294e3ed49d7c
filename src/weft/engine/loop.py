"""The loop: time passes here, for every fabric, in strides of some milliseconds.

A kernel reacts to nothing, Ctrl-C included, until it returns, so a run is stepped in strides. Between two of them
the state is whole: tables that are full are made larger, a failure that is due is taken in, samples are taken, monitors
look, and whoever watches may look, keep a checkpoint, or stop the run. Where a stride ends changes no event.
"""

from collections.abc import Callable
from copy import deepcopy
from time import perf_counter
from typing import TYPE_CHECKING

from weft.errors import MonitorTripped
from weft.units import show_time

if TYPE_CHECKING:
    from weft.fabrics.base import Run

REACHED, PAUSED, DONE = 0, 1, 2  # why a step ended: time is up, the budget is spent, nothing is left to happen;
MORE = 3  # from here on: some table is full, and `grow` knows which
STRIDE = 0.02  # s of wall time that a stride should take
LARGEST = 1 << 40  # budget: where many runs share a stride, the part of each takes no time to speak of


def advance(run: "Run", until: int | None = None, watch: Callable[["Run"], None] | None = None) -> None:
    """Let time pass until `until` (ps) or until nothing is left to happen; call `watch(run)` between strides."""
    going = strides(run, until, watch)
    asked = next(going, None)
    while asked is not None:
        began = perf_counter()
        why = run.step(*asked)
        try:
            asked = going.send((why, perf_counter() - began))
        except StopIteration:
            asked = None


def strides(run: "Run", until: int | None = None, watch: Callable[["Run"], None] | None = None):
    """The loop, for whoever steps several runs at once: yields (stop, budget) for a stride of this one.

    It is to be sent (why the stride ended, seconds it took) and ends with the run.
    """
    watch, run.until = watch or _nobody, until
    half = None if until is None or run.now >= until // 2 else until // 2
    _compile(run, watch)
    if not run.series.times:
        run.series.expect(run.least if until is None else min(run.least, until))
        run.series.add(run.now, run.now, run.sample())
    budget, why, stop = run.budget, PAUSED, None
    while not (why == DONE or (why == REACHED and stop == until)):
        change, sampled = run.next_change, False
        stop = min(moment for moment in (until, half, change, run.series.due) if moment is not None)
        why, took = yield stop, budget
        run.seconds += took
        if why >= MORE:
            run.grow(why)
        elif why == PAUSED:
            budget = min(max(int(budget * min(max(STRIDE / took, 0.25), 4)), 1), LARGEST)
        elif why == REACHED:
            if stop == change:
                run.change()
            if stop == half:
                run.half, half = (run.now, deepcopy(run.sample())), None
            if stop == run.series.due:
                run.series.add(stop, run.now, run.sample())
                sampled = run.inspect_samples > 0 and len(run.series.times) % run.inspect_samples == 0
        look(run, thorough=sampled or run.work - run.inspected >= run.inspect_every)
        watch(run)
    look(run, thorough=True)


def _compile(run, watch):
    """Compile the kernels, or load them from the cache, before anything is timed; `watch` sees that this goes on."""
    run.compiling = True
    watch(run)
    run.compile()
    run.compiling = False


def look(run, thorough):
    """Ask the monitors; a law that is promised and broken ends the run."""
    if thorough:
        run.inspected = run.work
    for law, count in run.monitors(thorough).items():
        if count and run.promises(law):
            raise MonitorTripped(
                f"{law.replace('_', ' ')} must hold at all times, not be broken {count} times by {show_time(run.now)}"
            )


def _nobody(run):
    """The watcher of a run that nobody watches."""
