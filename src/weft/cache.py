"""Folders for what was compiled, which nobody but this user can write.

Machine code is run and Numba's index of it is unpickled, so whoever can write there can run a program as this user. A
folder is therefore used only if it and the one above it belong to this user (above, the system's will do), others may
not write in them, and nobody can put another in their place. Where there is no such folder a private one serves, which
is gone when the program ends.
"""

import atexit
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path


def folder(name: str) -> Path:
    """The folder called `name`, in the first of the usual places that is safe: WEFT_CACHE, home, the temporary one."""
    for parent in (os.environ.get("WEFT_CACHE"), Path.home() / ".cache/weft", shared()):
        if not parent:
            continue
        place = Path(os.path.realpath(parent)) / name  # a link above is followed here and never again
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
        except (OSError, ValueError):
            continue
        if is_own(place) and os.access(place, os.W_OK | os.X_OK):
            return place
    place = _private() / name
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def shared() -> Path:
    """This user's folder in the temporary one, whose name anybody can guess: to be checked before use."""
    return Path(tempfile.gettempdir()) / f"weft-{os.getuid()}"


def is_own(place: Path) -> bool:
    """Whether nobody else can write in `place`, or put something else in its place."""
    try:
        here, above = os.lstat(place), os.stat(place.parent)
        further = [os.stat(step) for step in place.parents]
    except OSError:
        return False
    mine = stat.S_ISDIR(here.st_mode) and here.st_uid == os.geteuid() and not here.st_mode & 0o022
    kept = above.st_mode & stat.S_ISVTX or (above.st_uid in (0, os.geteuid()) and not above.st_mode & 0o022)
    return bool(mine and kept and all(seen.st_mode & stat.S_ISVTX or not seen.st_mode & 0o002 for seen in further))


@cache
def _private() -> Path:
    """A folder that is gone when the program ends; the processes it starts use the same one."""
    place = tempfile.mkdtemp(prefix="weft-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.environ["WEFT_CACHE"] = place
    return Path(place)
