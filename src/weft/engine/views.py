"""Arrays reached by address, so that a kernel with thirty arrays passes one pointer between its functions.

Numba hands a tuple of arrays from function to function field by field, counting a reference to each. For the packet
fabric's 27 arrays that took 127 s to compile and 3,000 ns an event; with one record that holds their addresses, seconds
and a tenth of it. `bind` writes the addresses into the record, and has to be called again when an array has moved;
their owner keeps them alive. Sizes are in the record too, so NUMBA_BOUNDSCHECK still sees every index.
"""

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def pointer(typing, address):
    """An int64 as an untyped pointer, for `numba.carray`."""

    def build(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), build


def fields(*names: str) -> list:
    """The fields a record needs to hold the address and length of each of the arrays called `names`."""
    return [(f"{name}_{what}", "i8") for name in names for what in ("at", "size")]


def bind(record: np.ndarray, **arrays: np.ndarray) -> None:
    """Write the address and the length (along the first axis) of each array into the one row of `record`."""
    for name, array in arrays.items():
        record[f"{name}_at"] = array.ctypes.data
        record[f"{name}_size"] = len(array)
