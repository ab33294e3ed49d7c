"""Arrays that others wrote, held against those that a description lays out, before a kernel sees them.

Kernels check no index. An array that is too short, or one number in it that leads out of a table, would read and write
memory that is not theirs; so a checkpoint is refused unless every array has the name, the type and the shape that the
run itself has laid out, and every number that leads somewhere leads into its table.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from weft import memory
from weft.errors import BadResult

Limit = tuple[str, Any, int, int]  # what it is called, its numbers, the least and the largest they may be
Grows = dict[str, tuple[tuple[str, int], ...]]  # array -> (kind of room, axis) along which it was made longer


def check_shapes(laid: dict[str, np.ndarray], given: dict[str, np.ndarray], grows: Grows) -> None:
    """Raise a sentence unless `given` has the arrays of `laid`; room of one kind is doubled in all arrays alike."""
    for name in (*laid, *given):
        if name not in given or name not in laid:
            there = "missing" if name not in given else "of another run"
            raise BadResult(f"a checkpoint must have the arrays of its run, but {name!r} is {there}")
    factors: dict[str, int] = {}
    for name, own in laid.items():
        array = given[name]
        if array.dtype != own.dtype:
            raise BadResult(f"{name} of a checkpoint must be {own.dtype.str}, not {array.dtype.str}")
        wanted = list(own.shape)
        for kind, axis in grows.get(name, ()) if array.ndim == own.ndim else ():
            if own.shape == (1,) * own.ndim:  # not needed by this run
                continue
            found = factors.setdefault(kind, array.shape[axis] // max(own.shape[axis], 1))
            wanted[axis] *= found if found & (found - 1) == 0 else 0
        if array.shape != tuple(wanted):
            raise BadResult(f"{name} of a checkpoint must be of shape {own.shape}, or doubled, not {array.shape}")
    memory.fits("a checkpoint", 2 * sum(array.nbytes for array in given.values()))


def check_limits(limits: Iterable[Limit]) -> None:
    """Raise a sentence unless all numbers are within their limits."""
    for name, values, low, high in limits:
        values = np.asarray(values)
        if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
            wrong = int(values.min()) if int(values.min()) < low else int(values.max())
            raise BadResult(f"{name} of a checkpoint must be from {low} to {high}, not {wrong}")


def check_same(laid: dict[str, Any], given: dict[str, Any]) -> None:
    """Raise a sentence unless what no step changes is as it was laid out."""
    for name, own in laid.items():
        if not np.array_equal(own, given[name]):
            raise BadResult(f"{name} of a checkpoint must be what the description says, not something else")


def bits_beyond(words: np.ndarray, count: int) -> np.ndarray:
    """1 for each row of words of 64 bits in which a bit from `count` on is set."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape[:-1], -1), axis=-1,
                         bitorder="little")  # fmt: skip
    return np.asarray(bits[..., count:].any(axis=-1), np.int64)
