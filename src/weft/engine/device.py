"""Kernel text that runs on a device, or without one: functions marked `device` are compiled for either when asked.

A text says what one thread does between two barriers, in plain functions over arrays. `compiled` makes a copy of it and
of all it calls (parts of other kernels too) for CUDA, for Numba's simulator of it, or for a loop over threads on the
processor, whose order may be any.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda, njit
from numba.core.registry import CPUDispatcher

from weft.engine import bits

SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", False))  # whether Numba's simulator stands in for CUDA


def device(function):
    """Mark a function of a text; it stays as it is until `compiled` makes a copy."""
    function.of_device = True
    return function


def add_to(array, index, value):
    """Add to a number that several threads add to."""
    array[index] += value


def lowest_bit(word):
    """Index of the lowest bit of a uint64 that is not zero."""
    return (int(word) & -int(word)).bit_length() - 1


def set_bits(word):
    """How many bits of a uint64 are set."""
    return int(word).bit_count()


def _either(condition, a, b):
    return a if condition else b


class Target(NamedTuple):
    """What a text is compiled for: a decorator, and what stands in for functions that are not the same everywhere."""

    jit: Callable
    instead: dict[Any, Any]


def loop() -> Target:
    """A loop over threads on the processor."""
    jit = njit(error_model="numpy")
    return Target(jit, {add_to: jit(add_to), lowest_bit: bits.lowest, set_bits: bits.population})


def compiled(function, target: Target, known: dict | None = None, jit: Callable | None = None):
    """A copy of `function`, of a text, for a target, with copies of all it calls; jit: how, if not as these."""
    known = {} if known is None else known
    plain = getattr(function, "py_func", function)
    if plain in known:
        return known[plain]
    names = dict(plain.__globals__)
    for name in plain.__code__.co_names:
        value = names.get(name)
        if isinstance(value, FunctionType | CPUDispatcher) or _hashed(value, target.instead):
            if _hashed(value, target.instead):
                names[name] = target.instead[value]
            elif getattr(value, "of_device", False) or isinstance(value, CPUDispatcher):
                names[name] = compiled(value, target, known)
    copy = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
    copy.__module__, copy.__qualname__ = plain.__module__, plain.__qualname__
    known[plain] = (jit or target.jit)(copy)
    return known[plain]


def _hashed(value, names) -> bool:
    """Whether it is one of the names: some things have no hash."""
    try:
        return value in names
    except TypeError:
        return False


def on_cuda() -> Target:
    """CUDA, or Numba's simulator of it."""
    jit = cuda.jit(device=True, inline=not SIMULATED)
    if SIMULATED:
        bit_of, count_of = lowest_bit, set_bits
    else:
        bit_of, count_of = jit(_lowest_on_cuda), jit(_set_on_cuda)
    return Target(jit, {
        add_to: jit(_add_on_cuda), lowest_bit: bit_of, set_bits: count_of, bits.lowest: bit_of,
        bits.population: count_of, bits.either: jit(_either),
    })  # fmt: skip


def _add_on_cuda(array, index, value):
    cuda.atomic.add(array, index, value)


def _lowest_on_cuda(word):
    return np.int64(cuda.ffs(word)) - 1


def _set_on_cuda(word):
    return np.int64(cuda.popc(word))
