"""Arrays for the kernel of things that go wrong: laid out before a run, made larger during one."""

from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np

from weft import random
from weft.engine import fingerprint
from weft.fabrics.shoal import adverse as a
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as k
from weft.fabrics.shoal.adverse import Plan, State
from weft.schedule.outage import pack
from weft.schedule.rotation import Rounds
from weft.wire.shoal import HEADER

HITS, BITS = 0, 1  # streams of random numbers: which cells are damaged, and where
WAIT = 4  # epochs and flights without a move after which a rack is taken for stuck
WAIT_DAMAGED = 4096  # epochs more where feedback may be wrong: it may ask for that many


class Trouble(NamedTuple):
    """What is broken, slot by slot: each entry holds from its slot until the next. k entries, b words of 64 nodes."""

    slots: np.ndarray  # (k,) int64         ascending, the first is 0
    cuts: np.ndarray  # (k,) int64          which row of `cut` and `dead` holds
    offs: np.ndarray  # (k,) int64          which row of `off` holds
    cut: np.ndarray  # (., w, b) uint64     bit i of place p: what i sends there does not arrive
    dead: np.ndarray  # (., b) uint64       nodes that are down
    off: np.ndarray  # (., b) uint64        nodes whose clock is beyond the guard


def merge(schedule: Rounds, cuts=None, clocks=None) -> Trouble:
    """One list of changes out of two, `outage.Cuts` and `clock.Off`; either may be None."""
    w, b = len(schedule.shift), -(-schedule.nodes // 64)
    zero = np.zeros(1, np.int64)
    cuts = cuts or (zero, np.zeros((1, w, b), np.uint64), np.zeros((1, b), np.uint64))
    clocks = clocks or (zero, np.zeros((1, b), np.uint64))
    slots = np.union1d(cuts[0], clocks[0])
    rows = (np.searchsorted(at, slots, "right") - 1 for at in (cuts[0], clocks[0]))
    return Trouble(slots, *rows, np.ascontiguousarray(cuts[1]), *map(np.ascontiguousarray, (cuts[2], clocks[1])))


def threshold(ber: float, cell: int) -> int:
    """The 64-bit number below which a draw damages a cell of so many bytes: 1 - (1 - ber)^bits of all.

    In decimal arithmetic, whose every digit is defined: the same on every machine.
    """
    exact = Context(prec=80)
    power, base, exponent = Decimal(1), exact.subtract(1, Decimal(ber)), 8 * cell
    while exponent:
        if exponent & 1:
            power = exact.multiply(power, base)
        base = exact.multiply(base, base)
        exponent >>= 1
    return min(int(exact.multiply(exact.subtract(1, power), Decimal(1 << 64))), (1 << 64) - 1)


def make_plan(
    schedule: Rounds, src, dst, cells, start, klass=None, *, trouble=None, delay=0, ready_queues=True,
    age_interval=None, sharing="round-robin", classes=1, depth=None, ber=0.0, cell=64, seed=0, timeout=0,
) -> Plan:  # fmt: skip
    """All that stays the same; `start` in slots, ascending. depth: cells of a queue of a lower class; timeout: of the
    transport, in slots, 0 for none."""
    interval = schedule.slots if age_interval is None else age_interval
    base = arrays.make_plan(
        schedule, src, dst, cells, start, delay=delay, rules="paper", ready_queues=ready_queues,
        age_interval=interval, sharing=sharing,
    )  # fmt: skip
    trouble = merge(schedule) if trouble is None else trouble
    n, epoch = schedule.nodes, schedule.slots
    terms = np.zeros(a.TERMS, np.int64)
    terms[[a.CLASSES, a.RING]] = classes, 2 + 2 * delay // epoch
    wrong = ber > 0 or trouble.off.any() or classes > 1
    terms[a.PATIENCE] = WAIT * (epoch + delay + 1) + (WAIT_DAMAGED * epoch if wrong else 0)
    terms[[a.BITS, a.FIELD, a.WIDTH]] = 8 * cell, HEADER.offset("feedback"), dict(HEADER.fields)["feedback"]
    terms[[a.DAMAGE, a.ASKING, a.TIMEOUT]] = ber > 0, wrong or timeout > 0, timeout
    terms[a.PATIENCE] += 2 * timeout << a.BACKOFF
    first = n if ready_queues else 2 * n  # what eqs. (5) and (3) allow at most
    rest = n if depth is None else depth
    return Plan(
        **base._asdict(),
        klass=np.zeros(len(base.src), np.int32) if klass is None else np.ascontiguousarray(klass, np.int32),
        terms=terms,
        luck=np.array([random.key(seed, HITS), random.key(seed, BITS), threshold(ber, cell)], np.uint64),
        depth=np.array([first] + [rest] * (classes - 1), np.int64),
        lit=lit(schedule),
        change=trouble.slots, cuts=trouble.cuts, offs=trouble.offs,
        cut=trouble.cut, dead=trouble.dead, off=trouble.off,
    )  # fmt: skip


def lit(schedule: Rounds) -> np.ndarray:
    """(w, b) uint64: who has a peer in each place."""
    i = np.arange(schedule.nodes)
    return pack((schedule.first[:, None] <= i) & (i < schedule.last[:, None]))


def shapes(plan: Plan, pairs: int, cells: int, window: int = arrays.WINDOW) -> dict:
    """Name -> (shape, dtype) of every array of a State with room for so many pairs and cells."""
    numbers, w, flows, classes = plan.numbers, len(plan.shift), len(plan.src), int(plan.terms[a.CLASSES])
    n, channels, air = int(numbers[k.N]), int(numbers[k.CHANNELS]), int(numbers[k.DELAY]) + 1
    words, i32, i64, u64 = -(-n // 64), np.int32, np.int64, np.uint64
    sets = dict.fromkeys(("busy", "mute", "deaf", "gone", "stray", "drop", "fixed"), ((w, words), u64))
    nodes = dict.fromkeys(("told", "left", "count", "living", "incast", "outcast", "inflow"), ((n,), i32))
    long = dict.fromkeys(("waiting", "inflow_since", "inflow_slots", "received"), ((n,), i64))
    return dict(
        **sets, **nodes, **long,
        queue=((w * n * classes, 8), i32), active=((words,), u64), down=((words,), u64), pairs=((n, n * classes), i32),
        leave=((pairs, w), i32), pair=((pairs, 8), i64), more=((pairs, a.MORE), i64), target=((pairs,), i32),
        origin=((pairs, window) if plan.terms[a.TIMEOUT] else (1, 1), i32),
        early=((pairs, window // 64), u64), rest=((pairs,), i64), rested=((pairs,), i64),
        cell=((cells, 4), i32), free=((cells,), i32), sent=((w * n, int(plan.terms[a.RING]), 4), i32),
        air_cell=((air, channels, n), i32), air_pair=((air, channels, n), i32), air_leave=((air, channels, n), i32),
        air=((air, channels, a.AIR, words), u64), flow=((flows, 4), i64), lengths=((256,), i64),
        longest=((classes,), i64), lost=((n, n), i32), work=((n + 64,), i32), marks=((-(-n * classes // 8),), u64),
        tally=((k.TALLY,), i64), toll=((a.TOLL,), i64), print=((2,), u64),
    )  # fmt: skip


def make_state(plan: Plan) -> State:
    """A rack in which nothing has happened."""
    n, channels = int(plan.numbers[k.N]), int(plan.numbers[k.CHANNELS])
    pairs = min(len(plan.src), 4 * n) + 16
    cells = max(64, 2 * n * channels * int(plan.terms[a.CLASSES] + plan.terms[a.RING] + 2))
    state = State(**{name: np.zeros(shape, kind) for name, (shape, kind) in shapes(plan, pairs, cells).items()})
    state.flow[:, k.FINISH] = -1
    state.free[:] = np.arange(cells)[::-1]
    state.tally[k.FREE] = cells
    state.toll[[a.CHANGE, a.MEND_UNTIL, a.DETECTED]] = -1
    state.print[:] = fingerprint.start()
    return state


def size(plan: Plan, pairs: int, cells: int) -> int:
    """Bytes of a State with room for so many pairs and cells."""
    return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes(plan, pairs, cells).values())


def grow(state: State, why: int) -> State:
    """The same state with twice the room for what ran out."""
    pairs, before = len(state.more), state.origin
    state = arrays.grow(state, why)
    if why == k.MORE_PAIRS:
        more = np.zeros((2 * pairs, a.MORE), np.int64)
        more[:pairs] = state.more
        state = state._replace(more=more)
    if before.shape == (1, 1):
        return state
    origin = np.zeros((len(state.more), state.early.shape[1] * 64), np.int32)
    acked, at = state.more[:pairs, a.ACKED, None], np.arange(before.shape[1])
    seq = acked + (at - acked) % before.shape[1]  # cell `seq` stands at `seq` modulo the window
    np.put_along_axis(origin[:pairs], seq % origin.shape[1], before, axis=1)
    return state._replace(origin=origin)


finish, undelivered, busy_slots = arrays.finish, arrays.undelivered, arrays.busy_slots
