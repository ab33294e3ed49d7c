"""Arrays for the fast kernel: laid out before a run, made larger during one; the plain one uses some of it."""

from typing import Any

import numpy as np

from weft.engine import calendar, fingerprint, memory
from weft.engine.layout import bits_beyond
from weft.errors import require
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal import kernel as k
from weft.fabrics.shoal.columns import DefaultPlan, Plan
from weft.fabrics.shoal.kernel import FastState
from weft.schedule.outage import pack
from weft.schedule.rotation import Rounds

RULES = {"paper": col.PAPER, "literal": col.LITERAL, "released": col.RELEASED_RULES}
WIDE = 4096  # nodes up to which a queue has room for 4 cells in its own cache line; beyond, memory counts more
LONG = ("waiting", "inflow_since", "inflow_slots", "received", "departed")  # counts of a node, in all kernels
WINDOW = 1024  # cells per pair that may be out of order at first; doubled when a run needs more


def make_plan(
    schedule: Rounds, src, dst, cells, start, *, delay, rules, ready_queues, age_interval, sharing, feedback=2,
    waits=calendar.NOBODY,
) -> Plan:  # fmt: skip
    """All that stays the same; `start` in slots, ascending; `waits` as in `weft.engine.calendar`.

    feedback: values of it that a header carries; the literal rules know only one.
    """
    n, epoch, mirror = schedule.nodes, schedule.slots, schedule.mirror()
    selves = np.flatnonzero(mirror == np.arange(len(mirror)))
    alone = len(selves) == 1 and delay == 0 and rules == "paper"  # with delay the mirrored link needs no exception
    numbers = np.zeros(col.NUMBERS, np.int64)
    numbers[[col.N, col.CHANNELS, col.EPOCH, col.DELAY]] = n, schedule.channels, epoch, delay
    numbers[col.SELF] = selves[0] if alone else -1
    numbers[[col.RULES, col.READY_QUEUES, col.AGE_INTERVAL]] = RULES[rules], ready_queues, age_interval
    numbers[[col.AGED, col.SHORTEST, col.HALF]] = (n - 1).bit_length(), sharing == "shortest", schedule.half
    numbers[col.DEPTH] = 4 if n <= WIDE else 1
    numbers[[col.STRIDE, col.ROW]] = _odd_lines(len(mirror)), -(-n // 64) * 64
    numbers[[col.ANSWER_OFFSET, col.FEEDBACK]] = delay // epoch + 2, 1 if rules == "literal" else feedback
    numbers[col.KNOWN] = len(src) - int((waits[0][:, calendar.PENDING] > 0).sum())
    late = -((delay - np.arange(-epoch, epoch)) // epoch)  # ceil((s - r - delay) / epoch) at s - r + epoch
    return best_plan(Plan(
        numbers, schedule.shift, schedule.first, schedule.last, mirror, _from_to(schedule.place),
        (np.arange(len(mirror)) // schedule.channels).astype(np.int32), late.astype(np.int32),
        np.ascontiguousarray(src, np.int32), np.ascontiguousarray(dst, np.int32),
        np.ascontiguousarray(cells, np.int64), np.ascontiguousarray(start, np.int64),
        lit(schedule), np.zeros(-(-n // 64), np.uint64), np.zeros((0, -(-n // 64)), np.uint64), *waits,
    ))  # fmt: skip


def lit(schedule: Rounds) -> np.ndarray:
    """(w, b) uint64: who has a peer in each place."""
    i = np.arange(schedule.nodes)
    return pack((schedule.first[:, None] <= i) & (i < schedule.last[:, None]))


def best_plan(plan: Plan) -> Plan:
    """The same plan, of the type for which the fast kernel is faster if it is one."""
    rules, ready_queues, shortest, feedback, n = plan.numbers[
        [col.RULES, col.READY_QUEUES, col.SHORTEST, col.FEEDBACK, col.N]].tolist()  # fmt: skip
    default = rules == col.PAPER and ready_queues and not shortest and feedback <= 2 and n <= WIDE
    return DefaultPlan(*plan) if default else plan


def _odd_lines(places: int) -> int:
    """So many places or a few more, that take an odd number of cache lines.

    The rows of all blocks are read at one place in turn: at a power of two they would all fall into the same few
    sets of the cache, and the second channel of a slot would find nothing of what the first one fetched.
    """
    return 4 * (-(-places // 4) | 1)


def _from_to(place: np.ndarray) -> np.ndarray:
    """(4n,) int32: `Rounds.place` by d - j + n instead of by (d - j) mod n, for each half of the nodes."""
    return np.ascontiguousarray(np.concatenate([place, place], axis=1).ravel(), np.int32)


def shapes(plan: Plan, pairs: int, cells: int, window: int = WINDOW) -> dict:
    """Name -> (shape, dtype) of every array of a state with room for so many pairs and cells."""
    numbers, w, flows = plan.numbers, len(plan.shift), len(plan.src)
    n, channels, air = int(numbers[col.N]), int(numbers[col.CHANNELS]), int(numbers[col.DELAY]) + 1
    row, blocks, depth = int(numbers[col.ROW]), pairs // k.SEATS, int(numbers[col.DEPTH])
    q, groups, subflows = w * row, -(-n // k.SEATS // 8), pairs * int(numbers[col.STRIDE])
    earlier = int(numbers[col.FEEDBACK]) - 1  # reports on a cell after the first
    require(q < k.QUEUES, "links x places of an epoch", f"fewer than {k.QUEUES}", q)
    _fit(subflows)
    i16, u16, i32, u32, i64, u64 = np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64
    most = -(-n // k.SEATS)  # blocks of a node
    return dict(
        held=((q,), u32), owed=((q,), u64), past=((q * earlier,), u64), turn=((q,), u16), ring=((q * depth,), u64),
        spill=((2 * q,), u32),
        told=((n,), u64), left=((n,), u32), busy=((q // 64,), u64), active=((row // 64,), u64), seats=((n * 4,), u32),
        block=((n, most), u32), able=((groups * n,), u64), taken=((blocks,), u64), order=((blocks,), u32),
        idle=((blocks,), u32), living=((n,), u32), leave=((subflows,), i16), pair=((pairs, 8), i64),
        target=((pairs,), u32), early=((pairs, window // 64), u64), rest=((pairs,), i64), rested=((pairs,), i64),
        cell=((cells,), u64), link=((cells,), u32), free=((cells,), u32), sent=((air, channels, n * 4), u64),
        air=((air, channels), i64), again=((air, channels, n * earlier), u64), echoes=((air, channels), i64),
        flow=((flows, 4), i64), whose=((flows,), u32), incast=((n,), i32),
        outcast=((n,), i32), waiting=((n,), i64), inflow=((n,), i32), inflow_since=((n,), i64),
        inflow_slots=((n,), i64), received=((n,), i64), departed=((n,), i64), lengths=((256,), i64),
        work=((n + 64,), u32), some=((n + 64,), u32), word=((n + 64,), u64),
        waits=(plan.waits.shape, i64), successors=(plan.successors.shape, i32),
        tally=((col.TALLY,), i64), print=((2,), u64),
    )  # fmt: skip


def _fit(subflows: int) -> None:
    require(subflows < k.SUBFLOWS, "node pairs at work x nodes", f"fewer than {k.SUBFLOWS}", subflows)


def zeros(shape, kind) -> np.ndarray:
    """Zeros that begin with a cache line, so that what is laid out in lines does not straddle them."""
    return memory.zeros({"": (shape, kind)})[""]


def first_room(plan: Plan) -> tuple[int, int]:
    """Pairs and cells to make room for at first."""
    n, channels = int(plan.numbers[col.N]), int(plan.numbers[col.CHANNELS])
    pairs = min(len(plan.src), n) * k.SEATS  # a flow needs a seat, a node a block
    return max(pairs, k.SEATS) + k.SEATS, max(64, 4 * n * channels)  # the first block stays empty


def make_state(plan: Plan, pairs: int = 0, cells: int = 0, window: int = WINDOW) -> FastState:
    """A rack in which nothing has happened, with room for so many pairs and cells at least."""
    room = first_room(plan)
    pairs, cells = larger(room[0], pairs), larger(room[1], cells)
    state = FastState(**memory.zeros(shapes(plan, pairs, cells, window)))
    state.flow[:, col.FINISH] = -1
    state.free[:] = np.arange(cells)[::-1]
    state.tally[col.FREE], state.tally[col.PAIRS_USED] = cells, k.SEATS
    state.taken[0] = 1
    set_waits(plan, state)
    state.print[:] = fingerprint.start()
    return state


def larger(room: int, asked: int) -> int:
    """`room`, doubled until there is as much as asked for."""
    while room < asked:
        room *= 2
    return room


def set_waits(plan, state) -> None:
    """Let flows wait as the plan says."""
    state.waits[:], state.successors[:] = plan.waits, plan.successors


def started(plan, state) -> np.ndarray:
    """(flows,) bool: whether each has started, or was to and waits for its node."""
    out = np.arange(len(plan.src)) < state.tally[col.KNOWN_STARTED]
    if len(state.waits):
        known = int(plan.numbers[col.KNOWN])
        out[known:] = state.waits[known:, calendar.PENDING] == 0
        out[state.waits[: state.tally[col.HEAPED], calendar.FLOW]] = False
    return out


def size(plan: Plan, pairs: int, cells: int) -> int:
    """Bytes of a state with room for so many pairs and cells."""
    return sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes(plan, pairs, cells).values())


def grow(state: Any, why: int) -> Any:
    """The same state, of any of the three kernels, with twice the room for what ran out."""
    if why == col.MORE_CELLS:
        used, old = int(state.tally[col.FREE]), len(state.free)
        lists = {name: longer(getattr(state, name)) for name in ("cell", "link") if name in state._fields}
        free = zeros(2 * old, state.free.dtype)
        free[:old] = np.arange(2 * old - 1, old - 1, -1)
        free[old : old + used] = state.free[:used]
        state.tally[col.FREE] += old
        return state._replace(free=free, **lists)
    if why == col.MORE_PAIRS and "block" in state._fields and state.seats[k.BLOCKS :: 4].max() == state.block.shape[1]:
        block = zeros((len(state.block), 2 * state.block.shape[1]), state.block.dtype)
        block[:, : state.block.shape[1]] = state.block
        # Pairs that rest keep their seats: a node may need more than it has peers.
        return state._replace(block=block, able=longer(state.able))
    if why == col.MORE_PAIRS:
        if "order" in state._fields:
            _fit(2 * state.leave.size)
        head, tail, room = int(state.tally[col.REST_HEAD]), int(state.tally[col.REST_TAIL]), len(state.rest)
        ring = np.arange(head, tail) % room  # the ring is laid straight, as it wraps at another length now
        rest, rested = longer(state.rest), longer(state.rested)
        rest[: tail - head], rested[: tail - head] = state.rest[ring], state.rested[ring]
        rows = {"leave", "pair", "target", "early", "taken", "order", "idle"} & set(state._fields)
        more = {name: longer(getattr(state, name)) for name in rows}
        state.tally[[col.REST_HEAD, col.REST_TAIL]] = 0, tail - head  # last: where there is no room nothing changes
        return state._replace(rest=rest, rested=rested, **more)
    return state._replace(early=_wider(state))


def longer(array: np.ndarray) -> np.ndarray:
    """The same with twice as many rows, the new ones zeros."""
    out = zeros((2 * len(array), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _wider(state):
    """`early` with twice the window: cell q stands at bit q modulo the window."""
    pairs, words = state.early.shape
    out, size = zeros((pairs, 2 * words), np.uint64), 64 * words
    for h in np.flatnonzero(state.early.any(axis=1)):  # one at a time: a bit takes a byte meanwhile
        at = np.flatnonzero(np.unpackbits(state.early[h].view(np.uint8), bitorder="little"))
        want, bits = int(state.pair[h, col.WANT]), np.zeros(2 * size, np.uint8)
        bits[(want + (at - want) % size) % (2 * size)] = 1
        out[h] = np.packbits(bits, bitorder="little").view(np.uint64)
    return out


def limits(plan: Plan, state: FastState, given: dict[str, np.ndarray]):
    """(what, numbers, least, largest) of whatever leads into a table, see `weft.engine.layout`."""
    n, w, flows = int(plan.numbers[col.N]), len(plan.shift), len(plan.src)
    pairs, cells, q, subflows = len(given["target"]), len(given["free"]), len(given["held"]), len(given["leave"])
    blocks, of_node, row = pairs // k.SEATS, given["block"].shape[1], int(plan.numbers[col.ROW])
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    yield "held", given["held"] & np.uint32(k.LENGTH), 0, min(cells + int(plan.numbers[col.DEPTH]), k.LENGTH)
    for name in ("owed", "told"):
        yield name, given[name] & low, 0, subflows - 1
        yield name, given[name] >> np.uint64(k.WHERE_SHIFT), 0, q
    for name in ("ring", "cell"):
        yield name, given[name] & np.uint64(k.FLOW_BITS), 0, max(flows - 1, 0)
    yield "turn", given["turn"], 0, pairs
    for name in ("spill", "link"):
        yield name, given[name], 0, cells - 1
    for name in ("left", "living"):
        yield name, given[name], 0, pairs
    yield "busy", bits_beyond(given["busy"].reshape(w, row // 64), n), 0, 0
    yield "active", bits_beyond(given["active"], n), 0, 0
    seats = given["seats"].reshape(n, 4)
    yield "seats", seats[:, k.COUNT], 0, pairs
    yield "seats", seats[:, k.BLOCKS], 0, of_node
    yield "seats", seats[:, [k.HOME, k.SECOND]], 0, subflows // k.SEATS - 1
    for name in ("block", "idle"):
        yield name, given[name], 0, blocks - 1
    yield "taken", given["taken"], 0, (1 << k.SEATS) - 1
    yield "order", given["order"], 0, of_node - 1
    yield "able", bits_beyond(given["able"].reshape(-1, n).T, of_node * k.SEATS), 0, 0
    yield "rest", given["rest"], 0, pairs - 1
    yield "whose", given["whose"], 0, pairs - 1
    sent = given["sent"].reshape(-1, 4)
    yield "sent", sent[:, k.WHAT] & np.uint64(k.FLOW_BITS), 0, max(flows - 1, 0)
    yield "sent", sent[:, k.ABOUT] & low, 0, subflows - 1
    yield "sent", sent[:, k.INTO] & low, 0, q
    yield "sent", sent[:, k.INTO] >> np.uint64(34), 0, n - 1
    yield "sent", sent[:, k.WHOSE] & low, 0, pairs - 1
    going = sent[:, k.INTO] & low != 0  # what has arrived goes into no queue, and has no place of one
    yield "sent", sent[going, k.WHOSE] >> half, 0, w - 1
    yield "air", given["air"], 0, n
    yield "tally", given["tally"][col.IDLE], 0, blocks
    yield "outcast", given["outcast"], 0, pairs


def finish(state: FastState) -> np.ndarray:
    """(flows,) int64: slot at whose end each flow was complete, or -1."""
    return state.flow[:, col.FINISH]


def undelivered(plan: Plan, state: FastState) -> np.ndarray:
    """(flows,) int64: cells of each flow that have not arrived."""
    return np.where(started(plan, state), state.flow[:, col.DELIVER], plan.cells)


def busy_slots(state: FastState, slot: int) -> np.ndarray:
    """(n,) int64: slots before `slot` in which each node had unfinished flows coming in."""
    return state.inflow_slots + np.where(state.inflow > 0, slot - state.inflow_since, 0)
