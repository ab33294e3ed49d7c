"""How far a run is: a bar on a terminal, elsewhere a line now and then, both on stderr."""

import sys
from contextlib import contextmanager
from threading import Timer
from time import monotonic

from weft.units import show_time

FIRST, NEXT = 5.0, 20.0  # s of wall time to the first line where there is no terminal, and from one to the next
PATIENCE = 1.0  # s of compiling before it is said there
PREPARING = "preparing"
COMPILING = "compiling the kernel, once on this machine"


@contextmanager
def watching(title: str, *, quiet=False, json=False):
    """Yield what `weft.run` takes as `progress`, or None if nothing is to be shown."""
    terminal = sys.stderr.isatty()
    if quiet or (json and not terminal):
        yield None
    elif terminal:
        with _bar(title) as look:
            yield _noting(look)
    else:
        lines = Lines(title)
        try:
            yield _noting(lines.look)
        finally:
            lines.close()


def _noting(look):
    """`look`, and before it what must be known of the demand: a run may take long, and its result says it too late."""
    said = []

    def noted(run):
        if not said:
            said.append(True)
            for note in run.demand.notes:
                print(f"note: {note}", file=sys.stderr, flush=True)
        look(run)

    return noted


def facts(run, rate: float | None) -> str:
    """Simulated time, flows done and the rate."""
    if run.compiling:
        return COMPILING
    parts = [f"{show_time(run.now)} simulated"]
    if run.total:
        parts.append(f"{run.finished:,} of {run.total:,} flows")
    if rate:
        parts.append(f"{rate / 1e6:,.3g} M {run.unit}/s")
    return ", ".join(parts)


class Meter:
    """The rate of work since the run began, or was resumed."""

    def __init__(self):
        self.first = None

    def rate(self, run) -> float | None:
        """Units of work per second of wall time; None until there is something to tell."""
        if run.compiling:
            return None
        now = monotonic()
        if self.first is None:
            self.first = now, run.work
        began, before = self.first
        return (run.work - before) / (now - began) if now - began > 0.2 else None


@contextmanager
def _bar(title):
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[facts]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    meter = Meter()
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8) as progress:
        task = progress.add_task(title, total=None, facts=PREPARING)

        def look(run):
            done = None if run.compiling else run.share
            total, completed = (None, 0.0) if done is None else (1.0, done)
            progress.update(task, total=total, completed=completed, facts=facts(run, meter.rate(run)))

        yield look


class Lines:
    """A line on stderr now and then; and one from the first second if a kernel has to be compiled."""

    def __init__(self, title: str):
        self.title, self.meter, self.due = title, Meter(), monotonic() + FIRST
        self.first: tuple[float, float | None] | None = None  # the first look after compiling, and the share done then
        self.timer: Timer | None = None

    def look(self, run) -> None:
        """See how far the run is."""
        self.close()
        if run.compiling:
            self.timer = Timer(PATIENCE, self._say, [COMPILING])
            self.timer.daemon = True
            self.timer.start()
            return
        rate, now, done = self.meter.rate(run), monotonic(), run.share
        if self.first is None:
            self.first, self.due = (now, done), now + FIRST  # what came before was compiling
        if now < self.due:
            return
        self.due = now + NEXT
        gained = (done or 0) - (self.first[1] or 0)
        left = f", about {(now - self.first[0]) * (1 - done) / gained:,.0f} s left" if gained > 0 else ""
        percent = f"{done:.0%}, " if done is not None else ""
        self._say(f"{percent}{facts(run, rate)}{left}")

    def close(self) -> None:
        """Say nothing any more about compiling."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _say(self, text):
        print(f"{self.title}: {text}", file=sys.stderr, flush=True)
