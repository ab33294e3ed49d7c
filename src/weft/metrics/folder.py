"""A folder that appears whole: written beside its place, then renamed or swapped into it."""

import ctypes
import errno
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

from weft.errors import BadInput, WeftError
from weft.files import beside, reason, refusal, resolved, synced, too_long

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h


def check(folder, *, ours) -> Path:
    """Raise a sentence if `folder` could not be replaced as far as can be told now; return where it really is."""
    place = resolved(folder)
    for step in (place, *place.parents):
        if os.path.exists(step) and not os.path.isdir(step):
            raise BadInput(f"{folder if step == place else step} must be a folder, not a file")
    if os.path.isdir(place) and any(_list(folder, place)) and not ours(place):
        raise BadInput(f"{folder} must be empty or hold a result of weft, not {sorted(_list(folder, place))[0]!r}")
    nearest = next(step for step in place.parents if os.path.exists(step))
    if too_long(place, nearest):
        raise WeftError(f"{folder} cannot be written: {os.strerror(errno.ENAMETOOLONG).lower()}")
    if code := refusal(nearest):
        raise WeftError(f"{folder} cannot be written: {os.strerror(code).lower()}")
    return place


@contextmanager
def replaced(folder, *, ours, files):
    """Yield a fresh folder that takes the place of `folder` when the block ends, and vanishes if it fails.

    What lies there is replaced only if it is an empty folder, or if `ours(folder)` says that it may be. Of its contents
    the new folder takes over all but `files`, the names that the writer writes: what a user put there stays.
    """
    place = check(folder, ours=ours)
    fresh = beside(place)
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh.mkdir()
            yield fresh
            if place.is_dir():
                _carry_over(place, fresh, files)
            _flush(fresh)
            _swap(fresh, place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)  # the unfinished new one, or after the swap the old one
    except (OSError, UnicodeError) as error:
        kept = "; what was there is kept" if place.is_dir() else ""
        raise WeftError(f"{folder} cannot be written: {reason(error)}{kept}") from None


def _list(folder, place):
    try:
        return os.listdir(place)
    except OSError as error:
        raise WeftError(f"{folder} cannot be read: {reason(error)}") from None


def _carry_over(old, fresh, files):
    for entry in os.scandir(old):
        if entry.name in files:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, fresh / entry.name, symlinks=True)
        else:
            shutil.copy2(entry.path, fresh / entry.name, follow_symlinks=False)


def _flush(folder):
    """Wait until the disk has every file: a swap must not show names whose bytes a power cut can take."""
    for entry in os.scandir(folder):
        if entry.is_file(follow_symlinks=False):
            synced(entry.path)


def _swap(fresh, place):
    """Put `fresh` in the place of `place`; what was there, if anything, ends where `fresh` was."""
    try:
        os.rename(fresh, place)  # nothing there, or an empty folder
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    if _exchange(fresh, place):
        return
    aside = fresh.with_name(fresh.name + "-old")  # no atomic exchange here: two renames, undone if the second fails
    os.rename(place, aside)
    try:
        os.rename(fresh, place)
    except OSError:
        os.rename(aside, place)
        raise
    os.rename(aside, fresh)


def _exchange(a, b) -> bool:
    """Exchange two folders in one step, where the system can."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):  # this file system, or this kernel, cannot
        return False
    raise OSError(code, os.strerror(code))
