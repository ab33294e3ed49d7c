"""Switches side by side on a device: where the words of `CrossbarState` lie.

A switch is four blocks of words. `Common` says where in its block an array begins, and what all switches of a group
have in common: a device has these as constants. What differs between them, load and seed, is in the words of `plan`.
"""

from typing import NamedTuple

import numpy as np

from weft.fabrics.crossbar import layout
from weft.fabrics.crossbar.bits import words
from weft.fabrics.crossbar.state import Count, Level, Plan

FLOWS = ("flow_src", "flow_dst", "flow_start", "flow_left", "flow_due", "flow_finish", "flow_next")
POOLED = ("cells", "info", "ready", "free")  # of which only what was used travels
KEYS = 3  # cells, ends of bursts, choices of the scheduler
ALL = 0xFFFFFFFFFFFFFFFF  # in a word that names a port, a flow or a cell: nobody

# words of `small`
ENDED, SMALL = 0, 1

# acc: what a thread has counted in one launch
OFFERED, LOST, LINE_BUSY, BEYOND, LONGEST, CLASHES, MEMORY, FINISHED, PEAK = range(9)
ACC = 9
ADDED = ((OFFERED, Count.OFFERED), (LOST, Count.LOST), (LINE_BUSY, Count.LINE_BUSY), (BEYOND, Count.BEYOND),
         (CLASHES, Count.CLASHES), (FINISHED, Count.FINISHED))  # fmt: skip


class Shape(NamedTuple):
    """How large arrays are, for all switches of a group."""

    pool: int  # cells
    delays: int  # entries of the histogram of delays
    flows: int
    tables: int  # entries of the alias tables: n * n, or one


class Common(NamedTuple):
    """What no slot changes and all switches share: see `Plan` and `CrossbarState`, and where arrays begin."""

    n: int
    words: int  # of a set of ports
    buffers: int
    scheduler: int
    iterations: int
    depth: int
    capacity: int
    inner: int
    outer: int
    group: int
    up: int
    down: int
    write: int
    read: int
    memory: int
    per_input: int  # queues of an input
    behind: int  # queues behind them for an output, of each kind …
    kinds: int  # … of which there are so many
    # u64
    plan: int
    ceiling: int  # [1] last entry of the histogram of delays
    keys: int
    keep: int
    other: int
    flow_src: int
    flow_dst: int
    flow_start: int
    flow_left: int
    flow_due: int
    flow_finish: int
    flow_next: int
    delay: int
    cells: int
    info: int
    ready: int
    # u32
    queue: int
    free: int
    # near
    want: int
    given: int
    filled: int
    grant: int
    accept: int
    burst: int
    active: int
    before: int
    used: int
    freed: int
    local: int
    last: int
    mate: int
    owner: int
    label: int  # [i]  the cell that input i offers, as `CrossbarState.info` has it, or ALL
    stamp: int  # [i]  the slot in which it reached its sender
    choice: int  # [r, j]  1 + the input that sub-switch r moves to output j
    newly: int  # [w]  the set of senders to which a cell came
    entered: int  # [w]  the set of inputs, that let a cell in
    matched: int  # [w]  the set of inputs that are matched
    leaving: int  # [w]  the set of outputs that send
    small: int
    # seen
    clock: int
    arrived: int
    count: int  # type: ignore[assignment]
    level: int
    print: int
    rounds: int
    per_output: int
    queued: int


class Switches(NamedTuple):
    """The blocks, their first axis the switch."""

    u64: np.ndarray
    u32: np.ndarray
    near: np.ndarray  # uint64: what every slot looks at; a device keeps it close by, if it fits
    seen: np.ndarray  # int64: what is asked for between strides


class Layout(NamedTuple):
    """Where arrays begin, as `Common` has it, how long they are, and how many words each block has."""

    starts: dict[str, int]
    counts: dict[str, dict[str, int]]  # block -> name -> words
    blocks: dict[str, tuple[int, type]]  # block -> (words, kind)


KINDS = {"u64": np.uint64, "u32": np.uint32, "near": np.uint64, "seen": np.int64}


def lay_out(fabric, shape: Shape) -> Layout:
    """The arrays of a switch of this shape, one behind the other in their blocks."""
    n, w = fabric.ports, words(fabric.ports)
    kind, rows = fabric.buffers, n // fabric.group if fabric.buffers in ("hierarchical", "gcq") else 1
    flows = max(shape.flows, 1)
    counts = {
        "u64": {
            "plan": int(Plan.SIZE), "ceiling": 1, "keys": KEYS, "keep": shape.tables, "other": shape.tables,
            **dict.fromkeys(FLOWS, flows), "delay": shape.delays, "cells": shape.pool, "info": shape.pool,
            "ready": shape.pool if kind == "gcq" else 1,
        },
        "u32": {"queue": 4 * (layout.queues(fabric) + n), "free": shape.pool},
        "near": {
            "want": n * w, "given": n * w, "filled": n * w if kind == "cicq" else 1, "grant": n, "accept": n,
            "burst": n, "active": n, "before": n, "used": max(n, rows * rows), "freed": n, "local": n * rows,
            "last": n, "mate": n, "owner": n + 1, "label": n, "stamp": n,
            "choice": n * rows if kind == "hierarchical" else 1, "newly": w, "entered": w, "matched": w, "leaving": w,
            "small": SMALL,
        },
        "seen": {
            "clock": 1, "arrived": 1, "count": len(Count), "level": len(Level), "print": 2,
            "rounds": max(fabric.iterations, 1) + 1, "per_output": n, "queued": len(layout.places(fabric)),
        },
    }  # fmt: skip
    starts, blocks = dict[str, int](), dict[str, tuple[int, type]]()
    for block, arrays in counts.items():
        at = 0
        for name, count in arrays.items():
            starts[name] = at
            at += count
        blocks[block] = at, KINDS[block]
    return Layout(starts, counts, blocks)


def size(fabric, shape: Shape) -> int:
    """Bytes of one switch on the device."""
    return sum(count * np.dtype(kind).itemsize for count, kind in lay_out(fabric, shape).blocks.values())


def make_common(fabric, plan: np.ndarray, shape: Shape) -> Common:
    """What switches of a shape share, of the plan of any of them."""
    laid = lay_out(fabric, shape)
    numbers = {
        name: int(plan[Plan[name.upper()]])
        for name in ("buffers", "scheduler", "iterations", "depth", "capacity", "inner", "outer", "group", "up", "down",
                     "write", "read", "memory")
    }  # fmt: skip
    n, (own, *behind) = fabric.ports, [count for count, _ in layout.depths(fabric)]
    numbers |= {"n": n, "words": words(n), "per_input": own // n, "kinds": len(behind)}
    return Common(**numbers, behind=behind[0] // n if behind else 0, **laid.starts)
