"""Round robin in gates: the first request at or after a pointer, around the ring.

A pointer is kept as a mask of the ports at or after it. Moving it beyond the last port leaves an empty mask, which
finds nothing, so that the search goes on from port 0: no wrap needs to be written.
"""

from operator import add, or_

from amaranth.hdl import Mux, Value


def lowest(requests: Value) -> Value:
    """The lowest request alone, one-hot."""
    return (requests & -requests)[: len(requests)]


def first(requests: Value, mask: Value) -> Value:
    """The first request in the mask, or the first of all if there is none in it; one-hot, or zero."""
    ahead = requests & mask
    return Mux(ahead.any(), lowest(ahead), lowest(requests))


def beyond(chosen: Value) -> Value:
    """The mask of the ports after the one in `chosen`."""
    return (-(chosen << 1))[: len(chosen)]


def select(chosen: Value, values) -> Value:
    """The one of `values` that one-hot `chosen` points at; zero if it points nowhere."""
    return tree(or_, [value & chosen[k].replicate(len(value)) for k, value in enumerate(values)])


def count(bits: Value) -> Value:
    """How many bits are set."""
    return tree(add, [bits[k] for k in range(len(bits))])


def tree(operator, values) -> Value:
    """All values joined by an associative operator, as a tree: a chain would be as deep as it is long."""
    values = list(values)
    while len(values) > 1:
        pairs = [operator(*values[k : k + 2]) for k in range(0, len(values) - 1, 2)]
        values = pairs + values[len(values) & ~1 :]
    return values[0]
