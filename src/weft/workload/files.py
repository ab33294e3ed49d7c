"""The files that a description reads, so that a result can say which content it was made of."""

import os
import stat
from dataclasses import fields, is_dataclass
from hashlib import sha256

from weft.errors import BadInput

PIPE = "a pipe, which can be read once"


def inputs(*descriptions) -> dict[str, str]:
    """SHA-256 in hex of every file that a field of `descriptions` names, by path; empty for most.

    Two descriptions that are equal mean the same only if this is equal too. A pipe has no content to speak of: PIPE.
    """
    return {path: _digest(path) for thing in descriptions for path in named(thing)}


def named(thing) -> list[str]:
    """The paths among the fields of a description: those that must be, and every text that happens to be one.

    A workload of several files says which in `inputs`.
    """
    if not is_dataclass(thing):
        return []
    texts = [(getattr(thing, field.name), "file" in field.metadata) for field in fields(thing)]
    own = [text for text, must in texts if isinstance(text, str) and (must or _readable(text))]
    return list(dict.fromkeys((*own, *thing.inputs()) if hasattr(thing, "inputs") else own))


def _readable(text) -> bool:
    if not text or "\0" in text:
        return False
    try:
        mode = os.stat(text).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISDIR(mode)


def _digest(path) -> str:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return PIPE
        with open(path, "rb") as file:
            digest = sha256()
            while block := file.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise BadInput(f"what a description reads must be files that can be read: {path}: {reason}") from None
