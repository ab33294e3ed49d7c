"""Files and folders that appear whole: written beside their place under a name nobody can guess, then renamed into it.

What a process that was killed left beside a place is removed by the next one that writes there, if it is provably
dead: its name says on which machine, since which start of it, and by which process it was made.
"""

import errno
import os
import re
import shutil
import socket
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from weft.errors import BadInput, WeftError

BESIDE = 40  # bytes that a name beside a place has more than the place's, at most
_LEFT = re.compile(r"\.(?P<name>.+)\.weft-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[0-9a-f]{8}(?P<old>-old)?", re.S)


def reason(error) -> str:
    """Why the system refused something, in its words."""
    if isinstance(error, UnicodeError):
        return "its name cannot be told to the system"
    return (getattr(error, "strerror", None) or str(error)).lower()


def resolved(path) -> Path:
    """Where `path` leads, links followed; a sentence if no path can look like this."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a NUL
        raise WeftError(f"{str(path)!r} must be a path without a NUL in it") from None


def beside(place: Path) -> Path:
    """A path beside `place` that nobody can guess, and that tells who made it."""
    return place.with_name(f".{place.name}.weft-{_host()}-{os.getpid()}-{token_hex(4)}")


def inside(folder, name: str) -> Path:
    """The path of `name` in `folder`; a sentence if it, or a link on the way, leads elsewhere."""
    path, home = Path(folder) / name, resolved(folder)
    above = resolved(path.parent)
    if ".." in Path(name).parts or not (above == home or home in above.parents):
        raise BadInput(f"a file of an output folder must be a name inside it, not {name!r}")
    return path


def too_long(place: Path, above: Path) -> bool:
    """Whether a name on the way from `above`, which exists, is longer than it may be, or one beside `place`."""
    most, parts = os.pathconf(above, "PC_NAME_MAX"), place.relative_to(above).parts
    names = [*((part, most) for part in parts), (place.name, most - BESIDE)]
    longest = os.pathconf(above, "PC_PATH_MAX") - 2 * BESIDE
    return len(os.fsencode(place)) > longest or any(len(os.fsencode(part)) > limit for part, limit in names)


def refusal(folder: Path) -> int:
    """The number of the error with which the system refuses a new file in `folder`; 0 if it takes one.

    It is tried: root may write everywhere by its rights, but not on a disk that is read-only, or in /proc.
    """
    fresh = beside(folder / "try")
    try:
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        os.unlink(fresh)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def check_place(path) -> None:
    """Raise, before anything is done, the sentence that `replaced(path)` would raise after it."""
    place = resolved(path)
    above = next(step for step in place.parents if os.path.exists(step))
    code = 0
    if os.path.isdir(place):
        code = errno.EISDIR
    elif not os.path.isdir(above):
        code = errno.ENOTDIR
    elif too_long(place, above):
        code = errno.ENAMETOOLONG
    elif os.path.exists(place) and not os.path.isfile(place):
        code = 0 if os.access(place, os.W_OK) else errno.EACCES
    else:
        code = refusal(above)
    if code:
        raise WeftError(f"{path} cannot be written: {os.strerror(code).lower()}")


@contextmanager
def replaced(path, *, own: bool = False, flush: bool = False):
    """Yield the path of a fresh file that takes the place of `path` when the block ends, and vanishes if it fails.

    A path that a user wrote may be a link, which stays, and what it leads to is replaced; or no file, such as
    /dev/stdout, which is written as it is. With `own` the name is weft's, and whatever lies there gives way: a link
    that others planted leads nowhere. With `flush` the disk has every byte before the name is there.
    """
    place = resolved(os.path.dirname(path) or ".") / os.path.basename(path) if own else resolved(path)
    fresh = beside(place)
    try:
        if not own and os.path.exists(place) and not place.is_file() and not place.is_dir():
            yield Path(path)
            return
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
            yield fresh
            if flush:
                synced(fresh)
            os.replace(fresh, place)
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
    except (OSError, UnicodeError) as error:
        raise WeftError(f"{path} cannot be written: {reason(error)}") from None


def synced(path) -> None:
    """Wait until the disk has every byte of a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tidy(folder, *names: str) -> None:
    """Remove what dead processes left in `folder`, beside those `names` or beside anything.

    A killed process may have moved a folder aside and not put the new one in its place: then the old one comes back.
    """
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            left = _LEFT.fullmatch(entry.name)
            if left is None or (names and left["name"] not in names) or not _dead(left["host"], int(left["pid"])):
                continue
            place = os.path.join(folder, left["name"])
            with suppress(OSError):
                if left["old"] and not os.path.lexists(place):
                    os.rename(entry.path, place)
                elif entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)


def _dead(host: str, pid: int) -> bool:
    if host != _host():
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        pass
    return False


@cache
def _host() -> str:
    """8 hexadecimal digits of what process numbers are good for: a machine, since it started, and its container."""
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        with suppress(OSError):
            parts.append(os.readlink(path) if path.endswith("pid") else Path(path).read_text())
    return sha256("\n".join(parts).encode()).hexdigest()[:8]
