"""Progress for programs and notebooks: one line that is written over, as `progress=True` asks for."""

import sys
from time import monotonic

from weft.units import show_time

EVERY = 0.2  # s between two looks that are shown


class Ticker:
    """Called with a run, or with the shares of many; `close` ends the line."""

    def __init__(self, out=None):
        self.out, self.due, self.wide = out or sys.stderr, 0.0, 0

    def __call__(self, state, found=0):
        now = monotonic()
        if now < self.due:
            return
        self.due = now + EVERY
        self._say(_many(state) if isinstance(state, list | tuple) or hasattr(state, "tolist") else _one(state))

    def _say(self, text):
        self.out.write("\r" + text.ljust(self.wide))
        self.out.flush()
        self.wide = len(text)

    def close(self) -> None:
        """Clear the line."""
        if self.wide:
            self.out.write("\r" + " " * self.wide + "\r")
            self.out.flush()
            self.wide = 0


def _one(run) -> str:
    if run.compiling:
        return "compiling the kernel, once on this machine"
    share = f"{run.share:.0%}, " if run.share is not None else ""
    return f"{share}{show_time(run.now)} simulated, {run.finished:,} of {run.total:,} flows"


def _many(shares) -> str:
    return f"{sum(share >= 1 for share in shares)} of {len(shares)} runs, {sum(map(abs, shares)) / len(shares):.0%}"


def shown(progress):
    """`progress`, or a ticker where it is True."""
    return Ticker() if progress is True else progress


def close(progress) -> None:
    """End the line of a ticker; anything else has none."""
    if isinstance(progress, Ticker):
        progress.close()
