"""Tell whether everybody in a rack knows of what has failed, so that the fast kernel can carry it again.

From then on nothing is lost or sent twice: nodes send nothing to whom they take for failed, and nothing over whom they
know to be cut off. So the fast kernel can carry on, if it lets those places pass and never releases such a cell, until
something else is to happen. `give_back` makes its state.
"""

from typing import NamedTuple

import numpy as np

from weft.engine.layout import bits_beyond
from weft.fabrics.shoal import arrays
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.columns import Plan
from weft.fabrics.shoal.kernel import SEQ_BITS, FastState
from weft.fabrics.shoal.plain import state as of
from weft.fabrics.shoal.plain.cells import flying, listed, places, queued
from weft.fabrics.shoal.plain.convert import NEVER, fast_plan
from weft.fabrics.shoal.plain.state import PlainPlan, PlainState
from weft.schedule.outage import pack, unpack


class Kept(NamedTuple):
    """What the plain kernel knew when it gave a rack back, and the fast one cannot say."""

    mute: np.ndarray
    deaf: np.ndarray
    peer_down: np.ndarray
    off_clock: np.ndarray
    down: np.ndarray
    missed: np.ndarray
    tally: np.ndarray
    listed: np.ndarray  # (k, 5) int64  cells to be repeated by pairs that cannot: see the names below


# listed: source, destination, flow and number of a cell, and since when its pair has been busy
SOURCE, TARGET, FLOW, NUMBER, SINCE = range(5)


def remember(plan: PlainPlan) -> int:
    """Slots before a fault from which on the plain kernel has to see what is sent."""
    return 2 * int(plan.numbers[col.EPOCH] + plan.numbers[col.DELAY] + 1)


def next_fault(plan: PlainPlan, slot: int) -> int:
    """The first slot from `slot` on in which something changes, or NEVER."""
    return min((x for x in plan.change.tolist() if x >= slot), default=NEVER)


def settled(plan: PlainPlan, state: PlainState) -> bool:
    """Whether everybody knows of what has failed, and nothing under way is any the worse for it."""
    tally, numbers = state.tally, plan.numbers
    if numbers[col.CLASSES] > 1 or numbers[col.DAMAGE] or numbers[col.TIMEOUT] or tally[col.CHANGE] < 0:
        return False
    x = plan.cuts[tally[col.CHANGE]]
    last = max(plan.change[tally[col.CHANGE]], tally[col.DETECTED], tally[col.REPAIR_UNTIL])
    if tally[col.SLOT] <= last + remember(plan) or tally[col.WAKE] or state.complain.any():
        return False
    if plan.off[plan.offs[tally[col.CHANGE]]].any() or not np.array_equal(state.down, plan.dead[x]):
        return False
    speaking = _speaking(plan, state)
    if (speaking & (plan.cut[x] | state.peer_down)).any():
        return False  # a cell would be lost
    if (plan.lit & ~speaking & ~state.deaf & ~state.peer_down).any():
        return False  # somebody would be missed
    if tally[col.LISTED]:
        ends = np.unique(listed_cells(state)[:, [SOURCE, TARGET]], axis=0).T
        if len(_unreachable(_to_whom(plan, speaking), *ends)) < ends.shape[1]:
            return False  # some of it will be sent again
    return _quiet(plan, state, speaking) and _sound(plan, state)


def _speaking(plan, state):
    """(w, b) uint64: who sends in each place."""
    return plan.lit & ~state.down & ~state.mute


def _quiet(plan, state, speaking):
    """Whether nothing waits for, or is owed on, a link on which nothing is sent."""
    silent = ~unpack(speaking, int(plan.numbers[col.N])).ravel()
    kept = state.queue[silent][:, [of.LENGTH, of.READY, of.OWED]]
    return not kept.any() and not state.past[silent].any()


def _sound(plan, state):
    """Whether every cell that is anywhere is one of a kind, still wanted, and on a way that leads to its end."""
    waiting, under_way = queued(plan, state), flying(plan, state)
    if np.count_nonzero(state.pair[: state.tally[col.PAIRS_USED], of.SEAT] >= 64 * len(state.marks)):
        return False
    number = np.concatenate([waiting.number, under_way.number, listed(state)])
    h, seq = state.cell[number, of.OF_PAIR].astype(np.int64), state.cell[number, of.NUMBER].astype(np.int64)
    if len(np.unique(h << 32 | seq)) < len(h):
        return False
    ring = state.early.shape[1] * 64
    bit = state.early[h, seq % ring // 64] >> (seq % 64).astype(np.uint64) & np.uint64(1)
    if (seq < state.pair[h, col.WANT]).any() or bit.any():
        return False
    n = int(plan.numbers[col.N])
    p, i = np.concatenate([waiting.p, under_way.p]), np.concatenate([waiting.i, under_way.i])
    j, d = (i + plan.shift[p]) % n, state.target[h[: len(i)]].astype(np.int64)
    goes_on = j != d
    m = places(plan, j, d)[goes_on]
    return not unpack(state.mute, n)[m, j[goes_on]].any()


def listed_cells(state):
    """(k, 5) int64: the cells to be repeated, as `Kept` has them."""
    number = listed(state)
    h = state.cell[number, of.OF_PAIR]
    columns = [
        state.pair[h, col.SOURCE],
        state.target[h],
        state.cell[number, of.OF_FLOW],
        state.cell[number, of.NUMBER],
    ]
    return np.stack([*columns, state.pair[h, col.SINCE]], axis=1).astype(np.int64)


def _to_whom(plan, lit):
    """(n, n) bool: whether i sends to j in any place."""
    n = int(plan.numbers[col.N])
    p, i = np.nonzero(unpack(lit, n))
    speaks = np.zeros((n, n), bool)
    speaks[i, (i + plan.shift[p]) % n] = True
    return speaks


def _unreachable(speaks, src, dst):
    """Those of these pairs of nodes whose cells cannot get there, neither directly nor over another node."""
    apart = ~speaks[src, dst]
    pairs = zip(src[apart].tolist(), dst[apart].tolist(), strict=True)
    return [(i, d) for i, d in pairs if not (speaks[i] & speaks[:, d]).any()]


def goes_on_for_ever(plan: PlainPlan, state: PlainState) -> bool:
    """Whether some flow will never be done, as far as is known: then the plain kernel must say when nothing moves."""
    n, begun = int(plan.numbers[col.N]), arrays.started(plan, state)
    open_ = state.flow[:, col.FINISH] < 0
    speaks = _to_whom(plan, _speaking(plan, state))
    src, dst = plan.src[open_].astype(np.int64), plan.dst[open_].astype(np.int64)
    if len(_unreachable(speaks, *np.divmod(np.unique(src * n + dst), n))):
        return True
    cells = np.concatenate([queued(plan, state).number, flying(plan, state).number])
    there = np.bincount(state.cell[cells, of.OF_FLOW], minlength=len(plan.src))
    lost = state.flow[:, col.DELIVER] - state.flow[:, col.RELEASE] - there
    return bool((open_ & begun & (lost > 0)).any())


def until(plan: PlainPlan, state: PlainState) -> int:
    """The slot until which the fast kernel can carry on; 0 if it cannot at all.

    That is until the next fault can be seen coming. If some flow will never be done and nothing more is to change, the
    plain kernel has to say when nothing moves any more, which is not before the last flow has started: see `longer`.
    """
    fault = next_fault(plan, int(state.tally[col.SLOT]))
    end = NEVER if fault == NEVER else fault - remember(plan)
    if not goes_on_for_ever(plan, state):
        return end
    if len(state.waits):  # nobody can say when the last one starts, nor in which order those of nodes that are down do
        return 0
    if fault < NEVER:
        return end
    works = ~unpack(state.down, int(plan.numbers[col.N]))[plan.src]
    return max(int(plan.start[works].max(initial=0)), longer(plan, state, int(state.tally[col.MOVED])))


def longer(plan: PlainPlan, state: PlainState | FastState, last: int) -> int:
    """The slot until which the fast kernel can carry on where all flows have started and some will never be done.

    Nothing is taken for stuck for some epochs after a cell has arrived, and every cell that is there does. 0: there is
    none, and the plain kernel has to look. last: when something moved last.
    """
    slot, apart = int(state.tally[col.SLOT]), int(plan.numbers[col.EPOCH] + plan.numbers[col.DELAY] + 1)
    if next_fault(plan, slot) < NEVER or not under_way(state):
        return 0
    end = slot + 3 * apart
    return end if end - last <= plan.numbers[col.PATIENCE] else 0


def under_way(state: PlainState | FastState) -> int:
    """Cells that are in queues or on the wire."""
    return int(state.waiting.sum() + state.tally[col.FLYING])


def moved(plan: PlainPlan, fast: FastState, kept: Kept) -> int:
    """The last slot in which anything came nearer to its end; where cells are under way it does not matter: now."""
    slot = int(fast.tally[col.SLOT])
    if under_way(fast):
        return slot
    works = ~unpack(kept.down, int(plan.numbers[col.N]))[plan.src] & arrays.started(plan, fast)
    return max(int(fast.tally[col.LANDED]), int(plan.start[works].max(initial=0)))


# ---------------------------------------------------------------- for the fast kernel


def masked_plan(plan: PlainPlan, kept: Kept) -> Plan:
    """The plan of the same rack for the fast kernel, without what has failed."""
    lit = _speaking(plan, kept)
    speaks = _to_whom(plan, lit)
    np.fill_diagonal(speaks, True)
    return fast_plan(plan._replace(lit=lit, gone=kept.down.copy(), parted=pack(~speaks)))


def limits(plan: PlainPlan, given: dict[str, np.ndarray]):
    """(what, numbers, least, largest) of whatever leads into a table, see `weft.engine.layout`."""
    n, flows, slot = int(plan.numbers[col.N]), len(plan.src), int(given["tally"][col.SLOT])
    tally, cells, fault = given["kept.tally"], given["kept.listed"], next_fault(plan, max(slot - 1, 0))
    for name in ("mute", "deaf", "peer_down", "off_clock", "down"):
        yield f"kept.{name}", bits_beyond(given[f"kept.{name}"], n), 0, 0
    yield "kept.switch", given["kept.switch"], 1, NEVER if fault == NEVER else max(fault - remember(plan), 1)
    yield "kept.tally", tally[col.CHANGE], 0, len(plan.change) - 1
    yield "kept.tally", tally[[col.WAITING_FIRST, col.WAITING_LAST]], 0, flows
    yield "kept.tally", tally[col.SLOT], 0, slot
    yield "kept.missed", given["kept.missed"], 0, 1 << 31
    yield "kept.listed", cells[:, [SOURCE, TARGET]], 0, n - 1
    yield "kept.listed", cells[:, FLOW], 0, max(flows - 1, 0)
    yield "kept.listed", cells[:, NUMBER], 0, SEQ_BITS
    yield "kept.listed", cells[:, SINCE], 0, slot
    living = given["pair"][:, col.UNDELIVERED] > 0
    ends = given["pair"][living, col.SOURCE] * n + given["target"][living]
    yield "kept.listed", np.isin(cells[:, SOURCE] * n + cells[:, TARGET], ends), 1, 1
