"""Arrays for the plain kernel: laid out before a run, made larger during one."""

from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np

from weft import random
from weft.engine import calendar, fingerprint, memory
from weft.engine.layout import bits_beyond
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain.state import (
    ACKED,
    AIR,
    COPIES,
    FOLLOWING,
    HEAD,
    KLASS,
    LAST,
    LENGTH,
    LIST,
    MINE,
    NUMBER,
    OF_FLOW,
    OF_PAIR,
    OWED,
    PAIR,
    PENDING,
    READY,
    ROW,
    SEAT,
    SENT_FLOW,
    SENT_PAIR,
    TAIL,
    TIMEOUTS,
    TURN,
    PlainPlan,
    PlainState,
)  # fmt: skip
from weft.fabrics.shoal.plain.transport import BACKOFF
from weft.schedule.rotation import Rounds
from weft.wire.shoal import HEADER

HITS, BITS = 0, 1  # streams of random numbers: which cells are damaged, and which bit of them
WAIT = 4  # epochs and flights without a move after which a rack is taken for stuck
WAIT_DAMAGED = 4096  # epochs more where feedback may be wrong: it may ask for that many


class Faults(NamedTuple):
    """What is broken, slot by slot: each entry holds from its slot until the next. k entries, b words of 64 nodes."""

    slots: np.ndarray  # (k,) int64         ascending, the first is 0
    cuts: np.ndarray  # (k,) int64          which row of `cut` and `dead` holds
    offs: np.ndarray  # (k,) int64          which row of `off` holds
    cut: np.ndarray  # (., w, b) uint64     bit i of place p: what i sends there does not arrive
    dead: np.ndarray  # (., b) uint64       nodes that are down
    off: np.ndarray  # (., b) uint64        nodes whose clock is beyond the guard


def merge(schedule: Rounds, cuts=None, clocks=None) -> Faults:
    """One list of changes out of two, `outage.Cuts` and `clock.Off`; either may be None."""
    w, b = len(schedule.shift), -(-schedule.nodes // 64)
    zero = np.zeros(1, np.int64)
    cuts = cuts or (zero, np.zeros((1, w, b), np.uint64), np.zeros((1, b), np.uint64))
    clocks = clocks or (zero, np.zeros((1, b), np.uint64))
    slots = np.union1d(cuts[0], clocks[0])
    of_cuts, of_clocks = (np.searchsorted(at, slots, "right") - 1 for at in (cuts[0], clocks[0]))
    cut, dead, off = (np.ascontiguousarray(rows) for rows in (cuts[1], cuts[2], clocks[1]))
    return Faults(slots, of_cuts, of_clocks, cut, dead, off)


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
    schedule: Rounds, src, dst, cells, start, klass=None, *, faults=None, delay=0, ready_queues=True,
    age_interval=None, sharing="round-robin", feedback=2, classes=1, depth=None, ber=0.0, cell=64, seed=0, timeout=0,
    waits=calendar.NOBODY,
) -> PlainPlan:  # fmt: skip
    """All that stays the same; `start` in slots, ascending. depth: cells of a queue of a lower class; timeout: of the
    transport, in slots, 0 for none."""
    interval = schedule.slots if age_interval is None else age_interval
    base = arrays.make_plan(
        schedule, src, dst, cells, start, delay=delay, rules="paper", ready_queues=ready_queues,
        age_interval=interval, sharing=sharing, feedback=feedback, waits=waits,
    )  # fmt: skip
    faults = merge(schedule) if faults is None else faults
    n, epoch = schedule.nodes, schedule.slots
    numbers = np.zeros(col.PLAIN_NUMBERS, np.int64)
    numbers[: col.NUMBERS] = base.numbers
    numbers[[col.CLASSES, col.TURNS]] = classes, 2 + 2 * delay // epoch
    wrong = ber > 0 or faults.off.any() or classes > 1
    numbers[col.PATIENCE] = WAIT * (epoch + delay + 1) + (WAIT_DAMAGED * epoch if wrong else 0)
    numbers[col.PATIENCE] += 2 * timeout << BACKOFF
    numbers[col.BITS] = 8 * cell
    numbers[[col.FEEDBACK_AT, col.FEEDBACK_BITS]] = HEADER.offset("feedback"), dict(HEADER.fields)["feedback"]
    numbers[[col.DAMAGE, col.ASKING, col.TIMEOUT]] = ber > 0, wrong or timeout > 0, timeout
    first = n if ready_queues else 2 * n  # what eqs. (5) and (3) allow at most
    rest = n if depth is None else depth
    return PlainPlan(
        **base._asdict() | {"numbers": numbers},
        klass=np.zeros(len(base.src), np.int32) if klass is None else np.ascontiguousarray(klass, np.int32),
        bit_errors=np.array([random.key(seed, HITS), random.key(seed, BITS), threshold(ber, cell)], np.uint64),
        depth=np.array([first] + [rest] * (classes - 1), np.int64),
        change=faults.slots, cuts=faults.cuts, offs=faults.offs, cut=faults.cut, dead=faults.dead, off=faults.off,
    )  # fmt: skip


def shapes(plan: PlainPlan, pairs: int, cells: int, window: int = arrays.WINDOW) -> dict:
    """Name -> (shape, dtype) of every array of a state with room for so many pairs and cells."""
    numbers, w, flows, classes = plan.numbers, len(plan.shift), len(plan.src), int(plan.numbers[col.CLASSES])
    n, channels, air = int(numbers[col.N]), int(numbers[col.CHANNELS]), int(numbers[col.DELAY]) + 1
    words, earlier, i32, i64, u64 = -(-n // 64), int(numbers[col.FEEDBACK]) - 1, np.int32, np.int64, np.uint64
    of_place = ("busy", "mute", "deaf", "peer_down", "off_clock", "complain", "repaired")
    nodes = dict.fromkeys(("told", "left", "count", "living", "incast", "outcast", "inflow"), ((n,), i32))
    long = dict.fromkeys(arrays.LONG, ((n,), i64))
    return dict(
        **dict.fromkeys(of_place, ((w, words), u64)), **nodes, **long,
        queue=((w * n * classes, 8), i32), active=((words,), u64), down=((words,), u64), pairs=((n, n * classes), i64),
        leave=((pairs, w), i32), pair=((pairs, PAIR), i64), target=((pairs,), i32),
        origin=((pairs, window) if numbers[col.TIMEOUT] else (1, 1), i32),
        early=((pairs, window // 64), u64), rest=((pairs,), i64), rested=((pairs,), i64),
        cell=((cells, 4), i32), free=((cells,), i32), sent=((w * n, int(numbers[col.TURNS]), 4), i32),
        air_cell=((air, channels, n), i32), air_pair=((air, channels, n), i32), air_leave=((air, channels, n), i32),
        past=((w * n, earlier), i32), again_pair=((air, channels, n, earlier), i32),
        again_leave=((air, channels, n, earlier), i32),
        air=((air, channels, AIR, words), u64), flow=((flows, 4), i64), lengths=((256,), i64),
        longest=((classes,), i64), missed=((n, n), i32), work=((n + 64,), i32), marks=((-(-n * classes // 8),), u64),
        waits=(plan.waits.shape, i64), successors=(plan.successors.shape, i32),
        tally=((col.PLAIN_TALLY,), i64), print=((2,), u64),
    )  # fmt: skip


def first_room(plan: PlainPlan) -> tuple[int, int]:
    """Pairs and cells to make room for at first."""
    numbers = plan.numbers
    n, channels, copies = (int(numbers[x]) for x in (col.N, col.CHANNELS, col.TURNS))
    cells = 2 * n * channels * (int(numbers[col.CLASSES]) + copies + 2)
    return min(len(plan.src), 4 * n) + 16, max(64, cells)


def make_state(plan: PlainPlan, pairs: int = 0, cells: int = 0, window: int = arrays.WINDOW) -> PlainState:
    """A rack in which nothing has happened, with room for so many pairs and cells at least."""
    room = first_room(plan)
    pairs, cells = arrays.larger(room[0], pairs), arrays.larger(room[1], cells)
    state = PlainState(**memory.zeros(shapes(plan, pairs, cells, window)))
    state.flow[:, col.FINISH] = -1
    arrays.set_waits(plan, state)
    state.free[:] = np.arange(cells)[::-1]
    state.tally[col.FREE] = cells
    state.tally[[col.CHANGE, col.REPAIR_UNTIL, col.DETECTED]] = -1
    state.print[:] = fingerprint.start()
    return state


def limits(plan: PlainPlan, state: PlainState, given: dict[str, np.ndarray]):
    """(what, numbers, least, largest) of whatever leads into a table, see `weft.engine.layout`."""
    n, flows, pairs, cells = int(plan.numbers[col.N]), len(plan.src), len(given["target"]), len(given["free"])
    classes, w = int(plan.numbers[col.CLASSES]), len(plan.shift)
    queue, pair, cell, sent = given["queue"], given["pair"], given["cell"], given["sent"]
    yield "queue", queue[:, [LENGTH, MINE, READY]], 0, cells * classes + pairs
    yield "queue", queue[:, [HEAD, TAIL]], -1, cells
    yield "queue", queue[:, TURN], 0, 64 * len(given["marks"])
    yield "queue", queue[:, OWED], 0, pairs
    for name in ("told", "left", "living", "air_pair"):
        yield name, given[name], 0, pairs
    yield "count", given["count"], 0, n * classes
    yield "pairs", given["pairs"] & ROW, 0, pairs - 1
    yield "pairs", given["pairs"] >> 32, 0, 64 * len(given["marks"])
    yield "pair", pair[:, KLASS], 0, classes - 1
    yield "pair", pair[:, [LIST, LAST]], 0, cells
    yield "pair", pair[:, SEAT], 0, 64 * len(given["marks"])
    yield "pair", pair[:, [COPIES, ACKED, TIMEOUTS, PENDING]], 0, 1 << 62
    yield "cell", cell[:, FOLLOWING], -1, cells
    yield "cell", cell[:, OF_FLOW], -1 - pairs, max(flows - 1, 0)
    yield "cell", cell[:, OF_PAIR], 0, pairs - 1
    yield "cell", cell[:, NUMBER], 0, 1 << 31
    yield "origin", given["origin"], 0, max(flows - 1, 0)
    yield "rest", given["rest"], 0, pairs - 1
    yield "sent", sent[..., SENT_PAIR], 0, pairs
    yield "sent", sent[..., SENT_FLOW], -1 - pairs, max(flows - 1, 0)
    yield "air_cell", given["air_cell"], 0, cells
    for name in ("busy", "mute", "deaf", "peer_down", "off_clock", "complain", "repaired"):
        yield name, bits_beyond(given[name].reshape(w, -1), n), 0, 0
    for name in ("active", "down"):
        yield name, bits_beyond(given[name], n), 0, 0
    yield "air", bits_beyond(given["air"], n), 0, 0
    yield "tally", given["tally"][col.CHANGE], -1, len(plan.change) - 1
    yield "tally", given["tally"][[col.WAITING_FIRST, col.WAITING_LAST]], 0, flows
    yield "outcast", given["outcast"], 0, pairs


def grow(state: PlainState, why: int) -> PlainState:
    """The same state with twice the room for what ran out."""
    pairs, before = len(state.pair), state.origin
    state = arrays.grow(state, why)
    if before.shape == (1, 1):
        return state
    origin = arrays.zeros((len(state.pair), state.early.shape[1] * 64), np.int32)
    acked, at = state.pair[:pairs, ACKED, None], np.arange(before.shape[1])
    seq = acked + (at - acked) % before.shape[1]  # cell `seq` stands at `seq` modulo the window
    np.put_along_axis(origin[:pairs], seq % origin.shape[1], before, axis=1)
    return state._replace(origin=origin)


finish, undelivered, busy_slots = arrays.finish, arrays.undelivered, arrays.busy_slots
