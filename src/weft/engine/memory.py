"""Memory for tables that a kernel visits at random.

A table of some megabytes on pages of 4 KB misses the TLB at almost every visit: a page walk, and in a virtual machine a
nested one. The tables of a run therefore lie side by side in one block, for which the system is asked for huge pages
(madvise). NumPy asks too, but only for arrays of 4 MB, and not again when it makes one longer.
"""

import mmap

import numpy as np

from weft.memory import room_for

HUGE = 1 << 21  # bytes of a huge page
LINE = 64  # bytes of a cache line
ASKED = 1 << 24  # bytes from which on it is asked whether there is room for them


def zeros(tables: dict) -> dict[str, np.ndarray]:
    """Name -> zeros, for `tables` of name -> (shape, dtype): in one block, each from the beginning of a cache line.

    Pages that are never touched cost nothing, as with np.zeros.
    """
    sizes = {name: int(np.prod(shape)) * np.dtype(kind).itemsize for name, (shape, kind) in tables.items()}
    if sum(sizes.values()) > ASKED:
        room_for(sum(sizes.values()))
    block = _block(sum(-(-size // LINE) * LINE for size in sizes.values()))
    arrays, at = {}, 0
    for name, (shape, kind) in tables.items():
        arrays[name] = block[at : at + sizes[name]].view(kind).reshape(shape)
        at += -(-sizes[name] // LINE) * LINE
    return arrays


def longer(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same tables with twice as many rows, the new ones zeros."""
    fresh = zeros({name: ((2 * len(array), *array.shape[1:]), array.dtype) for name, array in arrays.items()})
    for name, array in arrays.items():
        fresh[name][: len(array)] = array
    return fresh


def _block(size: int) -> np.ndarray:
    """(size,) uint8 zeros, from the beginning of a huge page where the system has them."""
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        room = np.zeros(size + LINE, np.uint8)
        return room[-room.ctypes.data % LINE :][:size]
    pages = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    room = np.frombuffer(pages, np.uint8)
    return room[-room.ctypes.data % HUGE :][:size]
