"""How large the arrays of a run are, and what stands in them before the first slot."""

import numpy as np

from weft import random
from weft.engine import calendar
from weft.engine.layout import bits_beyond
from weft.errors import require
from weft.fabrics.crossbar.bits import NOBODY, full, words
from weft.fabrics.crossbar.emulation import AFTER, NEXT
from weft.fabrics.crossbar.kernel import DESK
from weft.fabrics.crossbar.schedulers import Scheduler
from weft.fabrics.crossbar.state import (
    HEAD,
    LENGTH,
    NO_TAG,
    TAG,
    TAIL,
    Buffers,
    Count,
    CrossbarState,
    Kind,
    Level,
    Plan,
)
from weft.schedule.matching import CHOICES
from weft.workload.flows import Flows
from weft.workload.traffic import LONGEST, Cells

NO_FLOWS = Flows.of(nodes=2, src=(), dst=(), size=(), start=())
DELAYS = 1 << 20  # entries of the histogram of delays
_U4, _U8, _I8 = np.uint32, np.uint64, np.int64


def controlled(fabric, traffic) -> bool:
    """Do senders wait for room?"""
    return not isinstance(traffic, Cells) if fabric.flow_control is None else fabric.flow_control


def queues(fabric) -> int:
    """Queues inside the switch."""
    n, rows = fabric.ports, fabric.ports // fabric.group
    return {
        "fifo": n, "voq": n * n, "shared": n * n, "cioq": n * n + n, "cicq": 2 * n * n,
        "hierarchical": 2 * n * rows, "gcq": 3 * n * rows, "oq": n, "load-balanced": n * n,
    }[fabric.buffers]  # fmt: skip


def capacity(fabric, fanout: int) -> int | None:
    """Cells that the switch can hold, each copy and each stored original counted; None where there is no bound."""
    n, rows, depth = fabric.ports, fabric.ports // fabric.group, fabric.queue_depth
    sub = n * rows * fabric.inner * (1 if fanout == 1 else fanout + 1)
    return {
        "fifo": n * n * depth,
        "voq": n * n * depth,
        "shared": n * n * depth * (1 if fanout == 1 else fanout + 1),
        "cioq": None,
        "cicq": n * n * (depth + fabric.crosspoint),
        "hierarchical": n * rows * (depth + fabric.output),
        "gcq": n * rows * (depth + fabric.output) + sub,
        "oq": n * n * depth,
        "load-balanced": n * n * depth,
    }[fabric.buffers]


def pool(fabric, traffic) -> int:
    """Cells to reserve: no more than can be inside at once, nor than can ever arrive."""
    n = fabric.ports
    if isinstance(traffic, Cells):
        per_slot = max(traffic.whole + 1, traffic.fanout)
        ever = traffic.slots * n * per_slot * (2 if traffic.fanout > 1 else 1)
        fanout = traffic.fanout
    else:
        ever, fanout = int(np.minimum(-(-traffic.size // fabric._payload()), 1 << 40).sum()), 1
    bound = capacity(fabric, fanout)
    held = ever if bound is None else min(bound, ever)
    if controlled(fabric, traffic) and isinstance(traffic, Cells):
        held += ever  # at the senders
    return held + queues(fabric) + n + 2


def shapes(fabric, traffic) -> dict[str, tuple]:
    """name -> (shape, dtype) of every array of `CrossbarState`."""
    n, w = fabric.ports, words(fabric.ports)
    cells = isinstance(traffic, Cells)
    p = pool(fabric, traffic)
    require(p < 1 << 32, "cells to keep", f"fewer than {1 << 32}: use fewer slots, or buffers of a depth", p)
    f = 0 if cells else len(traffic)
    skewed = cells and traffic.keep is not None
    arrivals = n * (max(traffic.whole + 1, traffic.fanout) if cells else 1)
    weighted = fabric.algorithm in ("lqf", "ocf", "mwm", "msm")
    rows = n // fabric.group if fabric.buffers in ("hierarchical", "gcq") else 1
    emulating = fabric.algorithm in ("ccf", "lihp")
    slots = traffic.slots if cells else LONGEST
    return {
        "plan": (int(Plan.SIZE), _I8),
        "clock": (1, _I8),
        "keys": ((3 + traffic.fanout if cells else 3) + 1, _U8),
        "keep": (n * n if skewed else 1, _U8),
        "other": (n * n if skewed else 1, _U8),
        "burst": (n, _I8),
        "drawn": (n, _U8),
        "came": ((4, arrivals + 1), _U8),
        "refused": (arrivals, _I8),
        "cells": (p, _U8),
        "info": (p, _U8),
        "ready": (p if fabric.buffers == "gcq" else 1, _I8),
        "free": (p, _U4),
        "level": (len(Level), _U8),
        "queue": (4 * (queues(fabric) + n), _U4),
        "desk": (DESK if n <= 64 else 1, _U8),
        "used": (max(n, rows * rows), _I8),
        "freed": (n, _I8),
        "everyone": (w, _U8),
        "want": (n * w, _U8),
        "given": (n * w, _U8),
        "filled": (n * w if fabric.buffers == "cicq" else 1, _U8),
        "idle": (w, _U8),
        "grant": (n, _U8),
        "accept": (n, _U8),
        "choice": (n * rows, _U8),
        "owner": (n + 1, _I8),
        "mate": (n, _I8),
        "pairs": (n, _U8),
        "weight": (n * n if weighted else 1, _I8),
        "labels": ((4, n + 1), _I8),
        "done": (n + 1, np.bool_),
        "pointer": (1, _I8),
        "local": (n * rows, _I8),
        "lists": ((p if emulating else 1, 7), _I8),
        "turn": (6 * n, _I8),
        "newest": (n * n if fabric.buffers == "load-balanced" else 1, _I8),
        "gone": ((4, n), _U8),
        "flow_src": (f, _I8),
        "flow_dst": (f, _I8),
        "flow_start": (f, _I8),
        "flow_left": (f, _I8),
        "flow_due": (f, _I8),
        "flow_finish": (f, _I8),
        "flow_next": (f, _I8),
        "active": (n, _I8),
        "before": (n, _I8),
        "arrived": (1, _I8),
        **calendar.tables(NO_FLOWS if cells else traffic),
        "count": (len(Count), _I8),
        "delay": (min(slots, DELAYS) + 1, _I8),
        "rounds": (max(fabric.iterations, 1) + 1, _I8),
        "per_output": (n, _I8),
        "last": (n, _I8),
        "print": (2, _U8),
    }


def size(fabric, traffic) -> int:
    """Bytes of all arrays."""
    return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes(fabric, traffic).values())


def state(fabric, traffic, seed: int) -> CrossbarState:
    """The arrays of a run before its first slot."""
    from weft.engine import fingerprint

    n = fabric.ports
    waits = controlled(fabric, traffic)
    if isinstance(traffic, Cells) and traffic.fanout > 1 and waits:
        whole = fabric.buffers in ("fifo", "shared")
        require(whole, "flow control", f"off for multicast with {fabric.buffers} buffers", True)
    s = CrossbarState(**{name: np.zeros(shape, kind) for name, (shape, kind) in shapes(fabric, traffic).items()})
    inside = queues(fabric)
    _fill(s.plan, fabric, traffic, waits, inside)
    s.print[:] = fingerprint.start()
    for column in (s.burst, s.active, s.before, s.owner, s.mate):
        column[:] = NOBODY
    s.turn[:] = NOBODY
    s.newest[:] = NOBODY
    s.turn[4 * n : 5 * n] = 0
    s.everyone[:] = full(n)
    s.came[TAG] = NO_TAG
    s.flow_finish[:] = -1
    if fabric.buffers == "cicq":
        s.given.reshape(n, -1)[:] = s.everyone  # every crosspoint has room
    table = s.queue.reshape(-1, 4)
    table[:, HEAD] = table[:, TAIL] = np.arange(len(table))  # every queue begins as its sentinel
    s.level[Level.FRESH] = len(table)
    s.keys[-1] = random.key(seed, CHOICES)
    if isinstance(traffic, Cells):
        s.keys[:3] = traffic.key, traffic.end_key, traffic.fanout_key
        s.keys[3:-1] = [traffic.member_key(copy) for copy in range(traffic.fanout)]
        if traffic.keep is not None and traffic.other is not None:
            s.keep[:], s.other[:] = traffic.keep.ravel(), traffic.other.ravel()
    else:
        s.flow_src[:], s.flow_dst[:] = traffic.src, traffic.dst
        s.flow_start[:] = -(-traffic.start // fabric.slot)
        if len(traffic):
            last = int(s.flow_start.max())
            require(last < LONGEST, "start of the last flow", f"within {LONGEST} slots", last)
        s.flow_left[:] = s.flow_due[:] = -(-traffic.size // fabric._payload())
        calendar.fill(s.waits, s.successors, traffic, fabric.slot, fabric.way)
    return s


POOLED = ("cells", "info", "ready", "free", "lists")  # an entry per cell of the pool, most of them never used


def freeze(s: CrossbarState) -> dict[str, np.ndarray]:
    """The arrays by name, without the cells that were never used."""
    used = int(s.level[Level.FRESH])
    return {name: array[:used] if name in POOLED else array for name, array in s._asdict().items()}


FIXED = ("plan", "keys", "keep", "other", "everyone", "flow_src", "flow_dst", "flow_start", "successors")


def limits(fabric, s: CrossbarState, given: dict[str, np.ndarray]):
    """(what, numbers, least, largest) of whatever leads into a table, see `weft.engine.layout`."""
    n, f, fresh, p = fabric.ports, len(s.flow_src), int(given["level"][Level.FRESH]), len(s.cells)
    low = _U8(0xFFFFFFFF)
    table = given["queue"].reshape(-1, 4)
    emulating = fabric.algorithm in ("ccf", "lihp")  # whose inputs are matched with cells
    yield "burst", given["burst"], NOBODY, n
    for name in ("owner", "mate"):
        yield name, given[name], NOBODY, max(n, p) if emulating else n
    for name in ("active", "before"):
        yield name, given[name], NOBODY, f - 1
    for name in ("flow_next", "arrived"):
        yield name, given[name], NOBODY, f
    for name in ("flow_left", "flow_due", "freed", "count", "delay", "rounds"):
        yield name, given[name], 0, 1 << 62
    for name in ("used", "newest"):
        yield name, given[name], NOBODY, 1 << 62
    yield "clock", given["clock"], 0, 1 << 62
    yield "queue", table[:, :LENGTH], 0, fresh - 1
    yield "lengths", table[:, LENGTH], 0, p
    yield "free", given["free"], 0, max(fresh - 1, 0)
    yield "level", given["level"][Level.TOP], 0, fresh
    yield "cells", given["cells"] & low, 0, max(p - 1, 0)
    yield "info", given["info"] & _U8(0xFFFF), 0, n * n if fabric.buffers == "gcq" else n - 1
    yield "info", given["info"] >> _U8(16) & _U8(0xFFFF), 0, n - 1
    if f:
        yield "info", given["info"] >> _U8(32), 0, f - 1
    for name in ("grant", "accept"):
        yield name, given[name], 0, n
    yield "local", given["local"], 0, n * n
    yield "pointer", given["pointer"], 0, n
    if fabric.algorithm in ("ccf", "lihp"):
        first, oldest, newest, due, ahead, sending = given["turn"].reshape(6, n)
        yield "turn", np.concatenate((first, oldest, newest, ahead, sending)), NOBODY, max(p, n)
        yield "due", due, NOBODY, 1 << 62
        yield "lists", given["lists"], -(1 << 62), 1 << 62
    yield "sets", bits_beyond(given["idle"], n), 0, 0
    for name in ("want", "given"):
        yield name, bits_beyond(given[name].reshape(n, -1), n), 0, 0
    yield from calendar.limits(given["waits"], s.waits, len(s.successors))
    yield "heaped", given["count"][Count.HEAPED], 0, len(s.waits)


def _fill(plan, fabric, traffic, waits, inside):
    n = fabric.ports
    depth = fabric.queue_depth
    registers = n // fabric.group if fabric.pipeline is None else fabric.pipeline
    plan[Plan.PORTS], plan[Plan.BUFFERS] = n, Buffers[fabric.buffers.upper().replace("-", "_")]
    plan[Plan.SCHEDULER], plan[Plan.ITERATIONS] = Scheduler[fabric.algorithm.upper()], fabric.iterations
    plan[Plan.DEPTH], plan[Plan.CAPACITY] = depth, depth * n
    plan[Plan.INNER] = fabric.inner * fabric.group if fabric.buffers == "gcq" else fabric.crosspoint
    plan[Plan.OUTER], plan[Plan.GROUP] = fabric.output, fabric.group
    plan[Plan.UP], plan[Plan.DOWN] = fabric.phases.numerator, fabric.phases.denominator
    plan[Plan.WRITE], plan[Plan.READ] = fabric.crossings
    plan[Plan.MEMORY] = fabric.memory_cycles + registers
    plan[Plan.FLOW_CONTROL], plan[Plan.SENDERS] = waits, inside
    if isinstance(traffic, Cells):
        plan[Plan.SLOTS], plan[Plan.WARMUP] = traffic.slots, traffic.warmup
        plan[Plan.WHOLE], plan[Plan.CHANCE], plan[Plan.END] = traffic.whole, traffic.chance, traffic.end
        plan[Plan.FANOUT], plan[Plan.UNIFORM] = traffic.fanout, traffic.keep is None
        kind = Kind.SKEWED if traffic.whole or traffic.keep is not None else Kind.UNIFORM
        plan[Plan.KIND] = Kind.BURSTS if traffic.end else Kind.MULTICAST if traffic.fanout > 1 else kind
    else:
        plan[Plan.SLOTS], plan[Plan.KIND], plan[Plan.FANOUT] = LONGEST, Kind.FLOWS, 1
        plan[Plan.KNOWN] = len(traffic) - traffic.waiting


def inside(fabric, s: CrossbarState) -> int:
    """Copies in all queues, found by looking into them: what the conservation monitor compares its sums with."""
    lengths = s.queue.reshape(-1, 4)[:, LENGTH].astype(np.int64)
    if s.plan[Plan.FANOUT] > 1:
        from weft.fabrics.crossbar.stages import copies

        return int(copies(s, fabric.buffers == "fifo", fabric.ports * (fabric.ports // fabric.group)))
    crossed = int(s.turn[4 * fabric.ports : 5 * fabric.ports].sum()) if fabric.algorithm in ("ccf", "lihp") else 0
    return int(lengths.sum()) + crossed


def depths(fabric) -> list[tuple[int, int | None]]:
    """(how many, cells that each may hold) of the queues inside the switch, in their order; None without a bound."""
    n, rows, depth = fabric.ports, fabric.ports // fabric.group, fabric.queue_depth
    return {
        "fifo": [(n, n * depth)],
        "voq": [(n * n, depth)],
        "shared": [(n * n, n * depth)],
        "cioq": [(n * n, depth), (n, None)],
        "cicq": [(n * n, depth), (n * n, fabric.crosspoint)],
        "hierarchical": [(n * rows, depth), (n * rows, fabric.output)],
        "gcq": [(n * rows, depth), (n * rows, None), (n * rows, fabric.output)],
        "oq": [(n, n * depth)],
        "load-balanced": [(n * n, depth)],
    }[fabric.buffers]  # fmt: skip


def queued(fabric, s: CrossbarState) -> np.ndarray:
    """Cells in the queues of each input or middle port, then in what lies behind for each output: see `places`."""
    lengths, n, first, found = s.queue.reshape(-1, 4)[:, LENGTH].astype(np.int64), fabric.ports, 0, []
    for k, (count, _) in enumerate(depths(fabric)):
        some = lengths[first : first + count]
        found.append(some.reshape(n, -1).sum(1) if k == 0 else some.reshape(-1, n).sum(0))
        first += count
    if fabric.algorithm in ("ccf", "lihp"):
        found[1] = s.turn[4 * n : 5 * n]
    return np.concatenate(found)


def places(fabric) -> list[str]:
    """Names of what `queued` counts."""
    behind = {"cioq": ["output"], "cicq": ["crosspoints to"], "hierarchical": ["buffers of"],
              "gcq": ["memories to", "buffers of"]}.get(fabric.buffers, [])  # fmt: skip
    first = {"oq": "output", "load-balanced": "middle port"}.get(fabric.buffers, "input")
    kinds = [first, *(f"{kind} output" if " " in kind else kind for kind in behind)]
    return [f"{kind} {port}" for kind in kinds for port in range(fabric.ports)]


def too_deep(fabric, s: CrossbarState) -> int:
    """Queues that hold more than they have room for, and memories that do; with them the deepest that ever was."""
    lengths, first, wrong = s.queue.reshape(-1, 4)[:, LENGTH].astype(np.int64), 0, 0
    if s.plan[Plan.FANOUT] > 1 or fabric.algorithm in ("ccf", "lihp"):
        return 0  # their queues hold copies, or are lists that any cell may join
    for count, depth in depths(fabric):
        if depth is not None:
            wrong += int(np.count_nonzero(lengths[first : first + count] > depth))
        first += count
    known = [depth for _, depth in depths(fabric) if depth is not None]
    if len(known) == len(depths(fabric)) and not s.plan[Plan.FLOW_CONTROL]:  # else senders' queues are in it
        wrong += int(s.level[Level.PEAK] > max(known))
    if fabric.buffers == "shared":
        n = fabric.ports
        wrong += int(np.count_nonzero(lengths[: n * n].reshape(n, n).sum(1) > n * fabric.queue_depth))
    return wrong


def lost_flows(fabric, s: CrossbarState) -> np.ndarray:
    """(f,) bool: flows of which a cell was lost: neither delivered, nor at the sender, nor in any queue."""
    fresh, n = int(s.level[Level.FRESH]), fabric.ports
    if fabric.algorithm in ("ccf", "lihp"):
        nobody = np.full(n, NOBODY)
        lists = [(s.turn[:n], nobody, s.lists[:, AFTER]), (s.turn[5 * n :], nobody, s.lists[:, NEXT])]
    else:
        table = s.queue.reshape(-1, 4)[: queues(fabric)].astype(np.int64)
        lists = [(table[:, HEAD], table[:, TAIL], (s.cells[:fresh] & _U8(0xFFFFFFFF)).astype(np.int64))]
    missing = s.flow_due - s.flow_left
    for cell, end, following in lists:  # all lists side by side, a step at a time
        while (here := cell != end).any():
            cell, end = cell[here], end[here]
            missing -= np.bincount((s.info[cell] >> _U8(32)).astype(np.int64), minlength=len(missing))
            cell = following[cell]
    return missing > 0
