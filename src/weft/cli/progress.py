"""How far a run is: a bar on a terminal, elsewhere a line now and then, both on stderr."""

import sys
from contextlib import contextmanager
from time import monotonic

from weft.units import show_time

FIRST, NEXT = 5.0, 20.0  # s of wall time to the first line where there is no terminal, and from one to the next
COMPILING = "compiling the kernel, once"


@contextmanager
def watching(title: str, *, until=None, quiet=False, json=False):
    """Yield what `weft.run` takes as `progress`, or None if nothing is to be shown."""
    terminal = sys.stderr.isatty()
    if quiet or (json and not terminal):
        yield None
    elif terminal:
        with _bar(title, until) as look:
            yield look
    else:
        yield _lines(title, until)


def share(run, until) -> float | None:
    """How much of a run is done, from 0 to 1; None if it does not tell."""
    now, flows = getattr(run, "now", None), getattr(run, "flows", 0)
    if until and now is not None:
        return min(now / until, 1.0)
    if flows and isinstance(flows, int):
        return run.finished / flows
    return None


def facts(run, rate: float | None) -> str:
    """Simulated time, flows done and the rate, as far as the run tells."""
    parts = []
    if getattr(run, "now", None) is not None:
        parts.append(f"{show_time(run.now)} simulated")
    if isinstance(getattr(run, "flows", None), int) and run.flows:
        parts.append(f"{run.finished:,} of {run.flows:,} flows")
    if rate:
        parts.append(f"{rate / 1e6:,.3g} M {getattr(run, 'unit', 'steps')}/s")
    return ", ".join(parts)


class Meter:
    """The rate of work since the run began, or was resumed."""

    def __init__(self):
        self.first = None

    def rate(self, run) -> float | None:
        """Units of work per second of wall time; None until there is something to tell."""
        work, now = getattr(run, "work", None), monotonic()
        if not isinstance(work, int):
            return None
        if self.first is None:
            self.first = now, work
        began, before = self.first
        return (work - before) / (now - began) if now - began > 0.2 else None


@contextmanager
def _bar(title, until):
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[facts]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    meter = Meter()
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8) as progress:
        task = progress.add_task(title, total=None, facts=COMPILING)

        def look(run):
            done = share(run, until)
            progress.update(
                task, total=None if done is None else 1.0, completed=done or 0.0, facts=facts(run, meter.rate(run))
            )

        yield look


def _lines(title, until):
    meter, first, due = Meter(), [], [monotonic() + FIRST]

    def look(run):
        rate, now, done = meter.rate(run), monotonic(), share(run, until)
        if not first:
            first.append((now, done))  # what came before was compiling
        if now < due[0]:
            return
        due[0] = now + NEXT
        gained = (done or 0) - (first[0][1] or 0)
        left = f", about {(now - first[0][0]) * (1 - done) / gained:,.0f} s left" if gained > 0 else ""
        percent = f"{done:.0%}, " if done is not None else ""
        print(f"{title}: {percent}{facts(run, rate)}{left}", file=sys.stderr, flush=True)

    return look
