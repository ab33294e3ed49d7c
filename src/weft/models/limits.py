"""Range checks of the models: a number out of range, alone or within an array, is refused in a sentence."""

import numpy as np

from weft.errors import BadInput

MANY = 10**9  # hosts, ports, lanes: a larger count is a typing error, and int64 may overflow


def within(name: str, value, least, most=MANY, unit: str = "") -> None:
    """Raise `BadInput` unless `value`, or every element of it, is from `least` to `most`."""
    low, high = np.min(value), np.max(value)
    if not low >= least:
        raise BadInput(f"{name} must be at least {least}{unit}, not {_show(low)}")
    if not high <= most:
        raise BadInput(f"{name} must be at most {most}{unit}, not {_show(high)}")


def _show(value):
    value = value.item() if hasattr(value, "item") else value
    return f"{value:g}" if isinstance(value, float) else value
