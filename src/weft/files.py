"""A file that appears whole: written beside its place, then renamed into it."""

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from weft.errors import WeftError


@contextmanager
def replaced(path):
    """Yield the path of a fresh file that takes the place of `path` when the block ends, and vanishes if it fails.

    A link stays, and what it leads to is replaced. What is no file, such as /dev/stdout, is written as it is.
    """
    place = Path(os.path.realpath(path))
    fresh = place.with_name(f".{place.name}.weft-{os.getpid()}-{token_hex(4)}")
    try:
        if os.path.exists(place) and not place.is_file() and not place.is_dir():
            yield Path(path)
            return
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            yield fresh
            os.replace(fresh, place)
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
    except OSError as error:
        raise WeftError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
