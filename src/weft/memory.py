"""Memory that a program may use: what the machine has, what a run was told, and what is refused before it is taken."""

import os
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from weft.errors import TooLarge
from weft.units import show_size

SHARE = 0.8  # of the machine's memory that a run may need, unless told
_told: ContextVar[int | None] = ContextVar("memory", default=None)


def may_have() -> int:
    """Bytes a run may need unless told: 80 % of the machine's memory, or of what a container leaves of it."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return int(total * SHARE)


def allowed() -> int:
    """Bytes that may be needed here and now: what `limited` says, or what the machine has."""
    told = _told.get()
    return may_have() if told is None else told


@contextmanager
def limited(limit: int | None):
    """Within the block `allowed` is `limit`; None leaves it as it is."""
    if limit is None:
        yield
        return
    token = _told.set(limit)
    try:
        yield
    finally:
        _told.reset(token)


def taken() -> int:
    """Bytes that this process has in memory now; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def room_for(size: int) -> None:
    """Raise `TooLarge` if `size` bytes more than this process has taken are more than it may use."""
    if taken() + size > allowed():
        raise TooLarge(
            f"tables of a run that grow must fit in {show_size(allowed())} of memory, not need {show_size(size)} more "
            f"than the {show_size(taken())} taken"
        )


def fits(thing: str, needed: int) -> None:
    """Raise `TooLarge` if `needed` bytes for `thing` are more than may be used."""
    if needed > allowed():
        raise TooLarge(f"{thing} must fit in {show_size(allowed())} of memory, not need {show_size(needed)}")
