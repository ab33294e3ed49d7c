"""What can be said of the ideal switch without running it."""

import numpy as np

from weft.units import s


def alone(fabric, flows) -> np.ndarray:
    """(flows,) int64 ps: a flow that has both links to itself, rounded down; at least 1."""
    exact = flows.size * (8 * s / fabric.link)  # in floats: bits times ps overflow 64 bits from a megabyte on
    return np.maximum(exact.astype(np.int64), 1) + fabric.way
