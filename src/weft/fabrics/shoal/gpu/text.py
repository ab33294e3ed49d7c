"""Shoal's rules for a device: what one node does in a slot. See `kernel` for the legend, `state` for the words.

A slot has three parts. In `begin` a node starts its flows, and changes what is its destinations'; in `send` it changes
what is its own, and puts what it sends on the wire and what it says where its peers will look; in `receive` it takes in
what was sent to it. Before the first, whoever starts a flow waits until its destination has received; before the last,
all wait until all have sent. They go from receiving to sending at once, while their neighbours still receive: so the
wire of one slot more is kept, feedback of two epochs, and two counts of living pairs.

The text knows neither threads nor a device. `device` compiles it for one, for a loop over nodes in any order, or not at
all, for Numba's simulator. A device waits some 700 cycles for a word that is far, and asks for the next only when it
needs none that it waits for: so what four channels will look at is asked for at once.
"""

import numpy as np  # noqa: I001 (names in a block, not a column)

from weft.engine.device import (
    GROUPS, THREADS, add_to, at, both, device, down, first_of, from_lane, here, lane, lanes, lowest_bit, lowest_bit32,
    most_of, of, once, put_both, put_once, set_bits, set_far, some_here, some_of, some_still, soon, union_of, up,
    wait_until, wipe,
)  # fmt: skip
from weft.engine.fingerprint import mixed
from weft.fabrics.shoal.gpu.state import (
    ABOUT, AFTER, AGO_SHIFT, ALONE, ANSWER_BITS, ANSWER_SHIFT, BEFORE, CELL, COUNTS, DEBT, DELIVER, DELIVERED, EMPTY,
    FEW_BITS, FINISH, FINISHED, FIRST, FLOWS, FLOW_WORDS, FRESH, GOT, HEAD, HOLDS, ITS_COUNTS, ITS_HEAD, LENGTH,
    LENGTHS, LOCAL, LOCAL_BIT, LONGEST, LOOK, MANY, MARGIN_BITS, MARGIN_SHIFT, MAX_HELD, MAX_NODE, MAX_QUEUE,
    MIRROR_BITS, NEVER, NEXT_DST, NEXT_SIZE, NODE_BITS, NONE, OF_SEAT, ONLY, ORDER, OVER_BOUND, OWES, PACK, PAIR,
    PER_WORD, PLACES, PLACE_BITS, QUEUE, READY_BITS, READY_SHIFT, RELAYED, RELEASE, RING, SAID_SHIFT, SEAT_BITS,
    SEAT_SHIFT, SENT, SIZE, SOURCE_WORDS, START, STOP, TARGET_WORDS, TOO_LONG, TURNS, TURN_SHIFT, VISITS, WANTED,
    WANTS_POOL, WANTS_SEATS, WANTS_WINDOW, WHEN_BITS, WHO,
)  # fmt: skip
from weft.fabrics.shoal.kernel import AWAY, LATEST, OWN
from weft.fabrics.shoal.kernel import SENT as HAS_GONE
from weft.fabrics.shoal.rules import channel_in_turn, event, too_young

_0, _1, _ALL = np.uint64(0), np.uint64(1), np.uint64(EMPTY)
_N, _I, _15, _31, _LENGTH = np.uint32(0), np.uint32(1), np.uint32(15), np.uint32(31), np.uint32(LENGTH)
_TOP, _EACH = np.uint32(0x8000), np.uint32(0xFFFFFFFF)
_BUSY = np.uint32(LENGTH | READY_BITS << READY_SHIFT)  # of a queue's word: it has cells, or had flows that were ready
_FEW, _LOOK, _FRESH = np.uint32((1 << FEW_BITS) - 1), np.uint32(LOOK), np.uint32(FRESH)
_LATEST = np.int32(LATEST)
_LOW, _OWN, _32, _63 = np.uint64(0xFFFFFFFF), np.uint64(OWN), np.uint64(32), np.uint64(63)
_31_BITS = np.uint64(MANY - 1)
_ASTRAY = _31_BITS << _32  # of a word with the first flow
_ALONE = np.uint64(ALONE)
_KEPT = np.uint64(~ALONE & ~0xFFFFFFFF & EMPTY)  # what stays of a pair's word when it is the turn of another flow
# to Numba a bare number is a type of its own, for which all that it is given to would be compiled anew
_C0, _C1, _C2, _C3 = (np.int64(c) for c in range(4))
# leave, with 1 added so that nothing is negative
GONE, HAS_LEFT, NOW = AWAY + 1, HAS_GONE + 1, 0


# ---------------------------------------------------------------- words


@device
def flow_of(plan, word):
    """The flow of a cell."""
    return np.uint32(word & (_1 << np.uint64(plan.flow_bits)) - _1)


@device
def seat_of(plan, word):
    """The seat of the pair of a cell, at its source."""
    return np.int32(np.int64(word >> np.uint64(plan.flow_bits + plan.source_bits)) & (1 << plan.seat_bits) - 1)


@device
def end_of(plan, word):
    """The destination of a cell."""
    shift = plan.flow_bits + plan.source_bits + plan.seat_bits
    return np.int32(np.int64(word >> np.uint64(shift)) & (1 << plan.node_bits) - 1)


@device
def seq_of(plan, word):
    """The number of a cell, as far as its word says it."""
    shift = plan.flow_bits + plan.source_bits + plan.seat_bits + plan.node_bits
    return np.uint32(np.int64(word >> np.uint64(shift)) & (1 << plan.seq_bits) - 1)


@device
def pair_of(plan, rack, word):
    """The pair of a cell."""
    if plan.source_bits > 0:
        source = np.int64(word >> np.uint64(plan.flow_bits)) & (1 << plan.source_bits) - 1
        return seat_of(plan, word) * plan.n + source
    whose = np.int64(rack.flows[at(np.int64(flow_of(plan, word)) * FLOW_WORDS, PAIR)])
    return (whose >> OF_SEAT) * plan.n + (whose & NODE_BITS)


@device
def own_cell(plan, f, i, seat, d, number):
    """A cell of flow f that its source i has released."""
    source = i if plan.source_bits > 0 else 0
    word = ((number & (1 << plan.seq_bits) - 1) << plan.node_bits | d) << plan.seat_bits | seat
    return _OWN | np.uint64(word << plan.source_bits | source) << np.uint64(plan.flow_bits) | np.uint64(f)


@device
def four_of(plan, seat, p, i):
    """Where `leave4` has the subflows of that seat of i over place p and those beside it."""
    return (np.int64(np.uint32(p) // np.uint32(PACK)) * plan.seats + seat) * plan.n + i


@device
def subflow(plan, seat, p, i):
    """Where `leave` has the subflow of that seat of i over place p."""
    return four_of(plan, seat, p, i) * PACK + np.int64(np.uint32(p) % np.uint32(PACK))


@device
def kept32(plan, c, k):
    """Where a thread keeps the k-th word of 32 bits of its c-th channel."""
    return of(k * 4 * plan.apart, c * plan.apart)


@device
def kept64(plan, c, k):
    """Where it keeps the k-th word of 64 bits."""
    return of(k * 4 * plan.apart, c * plan.apart)


# ---------------------------------------------------------------- queues


@device
def append(plan, rack, q, i, length, e, what, acc):
    """Put a cell behind the `length` cells of queue q, a queue of node i that is next served in epoch e."""
    if length < RING:
        put_once(rack.u64, at(plan.cells, in_ring(plan, e + length, q)), what)
        return
    u32, n = rack.u32, plan.n
    number = np.int64(u32[at(plan.free, i)])
    if number != NONE:
        u32[at(plan.free, i)] = u32[at(plan.after_pool, number * n + i)]
    else:
        number = np.int64(u32[at(plan.free, n + i)])
        u32[at(plan.free, n + i)] = number + 1
    in_use = np.int64(u32[at(plan.free, 2 * n + i)]) + 1
    u32[at(plan.free, 2 * n + i)] = in_use
    if plan.room - in_use < 4 * plan.channels * (1 if plan.ready_queues else plan.seats):  # two slots more
        acc[STOP] |= WANTS_POOL
    rack.u64[at(plan.pool, number * n + i)] = what
    ends = np.int64(u32[at(plan.spill, q)])
    if length == RING:
        u32[at(plan.spill, q)] = number | number << 16
    else:
        u32[at(plan.after_pool, (ends >> 16) * n + i)] = number
        u32[at(plan.spill, q)] = (ends & NONE) | number << 16


@device
def in_ring(plan, e, q):
    """Where in the rings the cell of queue q is that leaves in epoch e."""
    return (e & RING - 1) * plan.queues + q


@device
def move_up(plan, rack, q, i, e):
    """Take the first cell that lies in the pool into the ring, whose first goes in epoch e: queue q of node i."""
    u32, n = rack.u32, plan.n
    ends = np.int64(u32[at(plan.spill, q)])
    number = ends & NONE
    rack.u64[at(plan.cells, in_ring(plan, e, q))] = rack.u64[at(plan.pool, number * n + i)]
    u32[at(plan.spill, q)] = (ends & ~NONE) | np.int64(u32[at(plan.after_pool, number * n + i)]) & NONE
    u32[at(plan.after_pool, number * n + i)] = u32[at(plan.free, i)]
    u32[at(plan.free, i)] = number
    u32[at(plan.free, 2 * n + i)] -= np.uint32(1)


@device
def few_at(plan, p, i):
    """Where is said how many cells few are, of the queue of node i in place p and of those in neighbouring places."""
    return at((np.int64(np.uint32(p) // np.uint32(PER_WORD))) * plan.n, i)


@device
def few_shift(p):
    """Where in that word."""
    return np.uint32(np.uint32(p) % np.uint32(PER_WORD) * np.uint32(FEW_BITS))


@device
def few_of(plan, rack, p, i):
    """How many cells the queue of node i in place p has, if few and no flow is ready, or LOOK."""
    return np.uint32(down(rack.few[few_at(plan, p, i)], few_shift(p)) & _FEW)


@device
def set_few(word, p, few):
    """The word with another number for the queue in place p."""
    return np.uint32(word & ~up(_FEW, few_shift(p)) | up(few, few_shift(p)))


@device
def few_in(holds):
    """What is to be said of a queue that holds so much."""
    return np.uint32(min(holds & _BUSY, _LOOK))


@device
def kept_of(holds):
    """What its word keeps then."""
    few = few_in(holds)
    return np.uint32(holds - few if few != _LOOK else holds)


@device
def whole(word, few):
    """What a queue holds, of its word and what is said of it."""
    return np.uint32(word | few if few != _LOOK else word)


# ---------------------------------------------------------------- feedback


@device
def owed_at(plan, q, e):
    """Where that of queue q is that is first said in epoch e, or was."""
    return np.int64(np.uint32(e + plan.feedback) % np.uint32(plan.feedback)) * plan.queues + q


@device
def notes_at(plan, y, e, q):
    """Where the y-th two values about queue q are that were said in epoch e."""
    words = (plan.feedback + 1) // 2
    return ((e & TURNS - 1) * words + y) * plan.queues + q


@device
def notes_to(plan, p, i, e):
    """The queue about which node i says something in place p, where its node will look."""
    return notes_at(plan, 0, e, answered_in(plan, p) * plan.row + facing(plan, p, i))


@device
def answered_in(plan, p):
    """The place that answers place p."""
    return np.int64(np.int32(plan.tables[at(plan.mirror, p)] & MIRROR_BITS))


@device
def facing(plan, p, i):
    """The node that i sends to in place p."""
    j = np.int32(np.int32(i) + plan.tables[at(0, p)])
    return np.int32(j - plan.n) if j >= plan.n else j


@device
def notes_for(plan, p, i, e):
    """Where what is said about the queue of node i in place p is, when it is served in epoch e."""
    ago = np.int64(np.int32(plan.tables[at(plan.mirror, p)] >> AGO_SHIFT))
    return notes_at(plan, 0, e - ago, p * plan.row + i)


@device
def take_notes(plan, rack, i, p, e):
    """Let node i take in what has been said to it of subflows of its own over place p."""
    here, x = p == plan.self_place, notes_for(plan, p, i, e)
    first = rack.u64[at(plan.notes, x)]
    if first >> _32 != 0:
        take_note(plan, rack, i, p, np.uint32(first >> _32), here, True)
    for y in range(2, plan.feedback):
        both = rack.u64[at(plan.notes, x + (y >> 1) * plan.queues)]
        take_note(plan, rack, i, p, np.uint32(both >> np.uint64(32 * (y & 1)) & _LOW), here, True)
    if first & _LOW != 0:
        take_note(plan, rack, i, p, np.uint32(first & _LOW), here, here)


@device
def said_of(plan, note, p, i):
    """Where `leave` has the subflow of node i over place p of which a feedback says something."""
    step = plan.n * PACK
    return of(0, np.uint32(subflow(plan, 0, p, i) - step) + np.uint32(note >> np.uint32(SAID_SHIFT)) * np.uint32(step))


@device
def take_note(plan, rack, i, p, note, here, patient):
    """Node i hears when a subflow of its own over place p may send again; if patient, not while it waits for news."""
    if note == 0:
        return
    where, when = said_of(plan, note, p, i), np.int64(note & np.uint32(WHEN_BITS))
    if patient and rack.leave[where] == GONE:
        return
    if here and np.uint32(rack.u32[at(plan.left, i)]) == note >> np.uint32(SAID_SHIFT):
        when = min(when + 1, LATEST)
    rack.leave[where] = when + 1


# ---------------------------------------------------------------- the first half: flows start, nodes send


@device
def find_seat(plan, rack, i, d, slot, mine):
    """(seat of the living pair from i to d, or -1; the first that is vacant; how many are), once who has rested is out.

    On a device 32 threads come here together with the same i and d, each for some of the seats; `mine` is one of them.
    """
    n, u64, found, vacant, many = plan.n, rack.u64, np.int64(-1), np.int64(-1), np.int64(0)
    for x in range(plan.seats // 64):
        word, gone = u64[at(plan.used, x * n + i)], _0
        for k in range(lane(), 32, lanes()):  # two at a time: a device waits for the first, and the other comes with it
            low, high = _1 << np.uint64(k), _1 << np.uint64(k + 32)
            first = (x * 64 + k) * n + i
            to, by = whom_and_when(plan, rack, first, word & low != 0)
            to_far, by_far = whom_and_when(plan, rack, first + 32 * n, word & high != 0)
            found = x * 64 + k if to == d and by == NEVER else found
            found = x * 64 + k + 32 if to_far == d and by_far == NEVER else found
            gone |= (low if by <= slot else _0) | (high if by_far <= slot else _0)
        word &= ~union_of(gone)
        if mine:
            u64[at(plan.used, x * n + i)] = word
        if vacant < 0 and word != _ALL:
            vacant = x * 64 + lowest_bit(~word)
        many += 64 - set_bits(word)
    return most_of(found), vacant, many


@device
def whom_and_when(plan, rack, h, used):
    """(destination of pair h, slot from which its seat may be taken): of no meaning if the seat is not in use."""
    if not used:
        return np.int64(-1), np.int64(NEVER)
    return end_in(rack.u64[at(plan.pairs, h * SOURCE_WORDS + HEAD)]), np.int64(rack.u64[at(plan.rested, h)])


@device
def has_to_begin(plan, rack, i, slot):
    """Whether a flow of node i starts in this slot."""
    return np.int64(rack.near64[at(plan.due, i)]) <= slot


@device
def may_begin(plan, rack, i, slot, taken):
    """Whether all nodes for which node i begins flows in this slot have taken in what was sent to them before."""
    x = np.int64(rack.near32[at(plan.upcoming, i)])
    while x < rack.near32[at(plan.until, i + 1)] and start_of(rack, x) <= slot:
        if not taken[rack.flows[at(x * FLOW_WORDS, NEXT_DST)]]:
            return False
        x += 1
    return True


@device
def start_of(rack, x):
    """When the x-th flow by source starts."""
    early, late = rack.flows[at(x * FLOW_WORDS, START)], rack.flows[at(x * FLOW_WORDS, START + 1)]
    return np.int64(np.uint64(early) | np.uint64(late) << _32)


@device
def foresee(plan, rack, i, slot):
    """Say what `begin` will look at in this slot, which is the one after next, and whom it will wait for."""
    if has_to_begin(plan, rack, i, slot):
        x, until = np.int64(rack.near32[at(plan.upcoming, i)]), np.int64(rack.near32[at(plan.until, i + 1)])
        d = np.int64(rack.near32[at(plan.coming, plan.n + i)])
        await_group(plan, rack, d, slot)
        while x + 1 < until and start_of(rack, x + 1) <= slot:  # rarely another at once
            x += 1
            await_group(plan, rack, np.int64(rack.flows[at(x * FLOW_WORDS, NEXT_DST)]), slot)
        soon(rack.u64, at(plan.used, i))
        soon(rack.flows, at(beyond(plan, rack, i) * FLOW_WORDS, START))
        soon(rack.flows, at(np.int64(rack.near32[at(plan.coming, i)]) * FLOW_WORDS, RELEASE))


@device
def group_of(j):
    """Which threads say together how far node j has come."""
    return j % THREADS // lanes()


@device
def await_group(plan, rack, j, slot):
    """Have it said when what was sent to node j before this slot has been taken in."""
    rack.passed[GROUPS * (1 + (slot & 1)) + group_of(j)] = np.int32(slot)


@device
def beyond(plan, rack, i):
    """The place in the order by source of the flow after the next one of node i, or of another if there is none."""
    return min(np.int64(rack.near32[at(plan.upcoming, i)]) + 1, rack.flows.size // FLOW_WORDS - 1)


@device
def begin(plan, rack, i, mine, slot, acc):
    """Let node i start every flow whose slot has come.

    mine: whether there is such a node: on a device, all threads of a warp come here together, and help each other to
    find a seat.
    """
    due, n = mine and has_to_begin(plan, rack, i, slot), plan.n
    step, fours = plan.seats * n, (plan.epoch * plan.channels + PACK - 1) // PACK
    while some_of(due):
        whose = first_of(due)
        d = np.int64(rack.near32[at(plan.coming, n + i)]) if due else np.int64(0)
        turn = due and lane() == whose
        start, late, next_f, next_d, cells = after_next(plan, rack, i, turn)
        j = from_lane(d, whose)
        wait_until(rack.passed, group_of(j), np.int32(slot))  # what j was sent before may end the pair
        seat, vacant, many = find_seat(plan, rack, from_lane(np.int64(i), whose), j, slot, turn)
        new = start_flow(plan, rack, i, d, slot, seat, vacant) if turn else np.int64(-1)
        if turn:
            if many - (new >= 0) < 2 * plan.reserve:  # those of two slots more
                acc[STOP] |= WANTS_SEATS
            x = np.int64(rack.near32[at(plan.upcoming, i)]) + 1
            rack.near32[at(plan.upcoming, i)] = x
            rack.near32[at(plan.coming, i)], rack.near32[at(plan.coming, n + i)] = next_f, next_d
            rack.near32[at(plan.coming, 2 * n + i)] = cells
            some = x < rack.near32[at(plan.until, i + 1)]
            rack.near64[at(plan.due, i)] = np.uint64(start) | np.uint64(late) << _32 if some else np.uint64(NEVER)
        wipe(rack.leave4, new * n + i, step, fours, new >= 0)  # NOW: the seat may have been another's
        due = due and has_to_begin(plan, rack, i, slot)


@device
def after_next(plan, rack, i, asks):
    """What is known of the flow after the next one of node i, if it asks: both words of its slot, and the others."""
    if not asks:
        return _N, _N, _N, _N, _N
    flows, y = rack.flows, beyond(plan, rack, i) * FLOW_WORDS
    return (
        flows[at(y, START)], flows[at(y, START + 1)], flows[at(y, ORDER)], flows[at(y, NEXT_DST)],
        flows[at(y, NEXT_SIZE)],
    )  # fmt: skip


@device
def start_flow(plan, rack, i, d, slot, seat, vacant):
    """Start the next flow of node i, to d, whose pair has a seat, or -1; returns the vacant one if it takes that."""
    n, u32, u64, flows, near32, near64 = plan.n, rack.u32, rack.u64, rack.flows, rack.near32, rack.near64
    f, cells = np.int64(near32[at(plan.coming, i)]), np.int64(near32[at(plan.coming, 2 * n + i)])
    new, inflow = np.int64(-1), u32[at(plan.inflow, d)]
    h = (seat if seat >= 0 else vacant) * n + i
    s, r = plan.pairs + h * SOURCE_WORDS, plan.ends + h * TARGET_WORDS
    counts, head = _0, np.uint64(d << 32)
    if seat < 0:
        seat, new = vacant, vacant
        u64[at(plan.used, (seat >> 6) * n + i)] |= _1 << np.uint64(seat & 63)
        u64[at(r, WANTED)], u64[at(r, ONLY)] = np.uint64(cells) << _32, np.uint64(f)
        u64[at(plan.rested, h)] = np.uint64(NEVER)
        add_to(near32, at(incast_in(plan, slot), d), _I)
        add_to(near32, at(plan.change + (slot & 1) * n, d), _I)
    else:
        counts, head, only = u64[at(s, COUNTS)], u64[at(s, HEAD)], u64[at(r, ONLY)]
        if only >> _63 == 0:  # each of its flows counts for itself from now on
            flows[at(np.int64(only & _LOW) * FLOW_WORDS, DELIVER)] = u64[at(r, WANTED)] >> _32
            add_to(u64, at(r, ONLY), _1 << _63)
        add_to(u64, at(r, WANTED), np.uint64(cells) << _32)
    flows[at(f * FLOW_WORDS, RELEASE)], flows[at(f * FLOW_WORDS, DELIVER)] = cells, cells
    flows[at(f * FLOW_WORDS, PAIR)] = seat << OF_SEAT | i
    if counts >> _32 == 0:  # nothing left to release: it becomes busy now
        near64[at(plan.able, (seat >> 6) * n + i)] |= _1 << np.uint64(seat & 63)
        u64[at(plan.since, h)] = np.uint64(slot)
        flows[at(f * FLOW_WORDS, AFTER)] = f
        u64[at(s, COUNTS)] = counts | np.uint64(cells << 32)
        u64[at(s, HEAD)] = head & _KEPT | np.uint64(f) | _ALONE
    else:
        join(plan, rack, h, f, cells)
    if inflow == 0:
        u64[at(plan.inflow_since, d)] = np.uint64(slot)
    add_to(u32, at(plan.inflow, d), _I)
    return new


@device
def incast_in(plan, slot):
    """Where the living pairs begin as they are told in this slot.

    There are two counts: some may still be in the second half of a slot while others begin the next, so what changes
    is told at once in one of them, and in the other when nobody looks at that, see `settle`.
    """
    return plan.incast + (slot & 1) * plan.n


@device
def settle(plan, rack, j, slot):
    """Tell the other count of living pairs what has changed of those towards node j, in the second half of a slot."""
    where = plan.change + (slot & 1) * plan.n
    change = rack.near32[at(where, j)]
    if change != 0:
        add_to(rack.near32, at(incast_in(plan, slot + 1), j), change)
        rack.near32[at(where, j)] = 0


@device
def join(plan, rack, h, f, cells):
    """Add flow f to the circle of pair h, which has flows; see `rules.join`."""
    u64, flows, s = rack.u64, rack.flows, plan.pairs + h * SOURCE_WORDS
    counts, head = u64[at(s, COUNTS)], u64[at(s, HEAD)]
    following = np.int64(head & _LOW)
    served = following if head & _ALONE != 0 else np.int64(rack.u32[at(plan.served, h)]) - 1
    flows[at(following * FLOW_WORDS, RELEASE)] = counts >> _32
    k = served
    if plan.shortest:
        x = np.int64(flows[at(k * FLOW_WORDS, AFTER)])
        while x != served and np.int64(flows[at(x * FLOW_WORDS, SIZE)]) <= cells:
            k = x
            x = np.int64(flows[at(k * FLOW_WORDS, AFTER)])
        if np.int64(flows[at(x * FLOW_WORDS, SIZE)]) <= cells:
            k = served
            served = f
    else:
        served = f
    flows[at(f * FLOW_WORDS, AFTER)] = flows[at(k * FLOW_WORDS, AFTER)]
    flows[at(k * FLOW_WORDS, AFTER)] = f
    counts, head = behind(plan, rack, h, counts, head, served)
    u64[at(s, COUNTS)], u64[at(s, HEAD)] = counts, head


@device
def behind(plan, rack, h, counts, head, served):
    """The words of pair h when it is the turn of the flow behind `served`."""
    f = np.int64(rack.flows[at(served * FLOW_WORDS, AFTER)])
    counts = counts & _LOW | np.uint64(np.int64(rack.flows[at(f * FLOW_WORDS, RELEASE)]) << 32)
    head = head & _KEPT | np.uint64(f) | (_ALONE if f == served else _0)
    rack.u32[at(plan.served, h)] = served + 1
    return counts, head


@device
def next_flow(plan, rack, h, counts, head):
    """Take a cell of pair h from the flow whose turn it is, see `rules.next_flow`; returns its words then.

    The flow is that of `head`, and some cell is left if the upper half of `counts` is not 0.
    """
    flows, left, alone = rack.flows, np.uint32(counts >> _32), head & _ALONE != 0
    counts = counts & _LOW | np.uint64(np.uint32(left - _I)) << _32
    if left == 1 or not (alone or plan.shortest):  # else it is the next again
        flow = np.int64(head & _LOW)
        flows[at(flow * FLOW_WORDS, RELEASE)] = left - _I
        if not alone:
            served = flow
            if left == 1:
                served = np.int64(rack.u32[at(plan.served, h)]) - 1
                flows[at(served * FLOW_WORDS, AFTER)] = flows[at(flow * FLOW_WORDS, AFTER)]
            counts, head = behind(plan, rack, h, counts, head, served)
    return counts, head


@device
def may_send(plan, rack, i, p, group, limit):
    """Seats of i from 64 * group on with cells left that may send in place p: eq. (2)."""
    n, leave = plan.n, rack.leave
    todo, who = rack.near64[at(plan.able, group * n + i)], _0
    row = ((p // PACK) * plan.seats + group * 64) * n + i
    while todo != 0:
        k = lowest_bit(todo)
        todo &= todo - _1
        if leave[at((row + k * n) * PACK, p % PACK)] <= limit + 1:
            who |= _1 << np.uint64(k)
    return who


@device
def leaves(plan, rack, first, todo):
    """The `leave` of four channels of the first four seats of `todo`: (four words, the bits of the seats, the rest)."""
    n, leave4 = plan.n, rack.leave4
    w0, w1, w2, w3, b0, b1, b2, b3 = _0, _0, _0, _0, _N, _N, _N, _N
    if todo != 0:
        w0 = leave4[at(first, lowest_of(todo) * n)]
        b0, todo = lowest_alone(todo), without_lowest(todo)
        if todo != 0:
            w1 = leave4[at(first, lowest_of(todo) * n)]
            b1, todo = lowest_alone(todo), without_lowest(todo)
            if todo != 0:
                w2 = leave4[at(first, lowest_of(todo) * n)]
                b2, todo = lowest_alone(todo), without_lowest(todo)
                if todo != 0:
                    w3 = leave4[at(first, lowest_of(todo) * n)]
                    b3, todo = lowest_alone(todo), without_lowest(todo)
    return w0, w1, w2, w3, b0, b1, b2, b3, todo


@device
def lowest_alone(word):
    """The lowest bit of a uint32, alone."""
    return np.uint32(word & (~word + np.int64(1)))


@device
def without_lowest(word):
    """A uint32 without its lowest bit."""
    return np.uint32(word & (np.int64(word) - 1))


@device
def lowest_of(word):
    """Index of the lowest bit of a uint32 that is not zero."""
    return np.int64(lowest_bit32(word))


@device
def compare(low, high, skip, word, bit, m0, m1, m2, m3):
    """Add a seat to the sets of those that may send on four channels, where eq. (2) holds.

    low, high: four numbers of 16 bits, each 1 + its limit + 2^15; what is compared with them is 1 + a time, 2^15 at
    most, so nothing is borrowed and bit 15 of a difference tells.
    """
    word >>= np.uint64(skip)
    a, b = np.uint32(low - np.uint32(word)), np.uint32(high - np.uint32(word >> _32))
    return (
        np.uint32(m0 | bit * (a >> _15 & _I)), np.uint32(m1 | bit * (a >> _31)),
        np.uint32(m2 | bit * (b >> _15 & _I)), np.uint32(m3 | bit * (b >> _31)),
    )  # fmt: skip


@device
def limit_of(e, holds):
    """What a channel is compared with in `compare`."""
    return np.uint32(min(np.int32(e + np.int32(holds & _LENGTH)), _LATEST) + np.int32(1 + 0x8000))


@device
def chosen(holds, who):
    """The seat of `who` whose turn it is in a queue, -1 if it has a local cell or nobody is in `who`."""
    turn = np.uint32(holds >> np.uint32(TURN_SHIFT))
    later = np.uint32(who & up(_EACH, turn if turn < 32 else _N))
    found = lowest_of(later if later != 0 else who)
    return np.int32(found) if who != 0 and holds & np.uint32(LOCAL_BIT) == 0 else np.int32(-1)


@device
def end_in(head):
    """The destination of a pair of which this is the word."""
    return np.int64(head >> _32) & NODE_BITS


@device
def words_of(plan, rack, i, seat):
    """Both words of the pair in that seat of i; zeros if it is -1."""
    counts, head = _0, _0
    if seat >= 0:
        counts, head = both(rack.u64, of(plan.pairs + COUNTS, (seat * plan.n + i) * SOURCE_WORDS))
    return counts, head


@device
def put_words(plan, rack, i, seat, counts, head):
    """Write them."""
    put_both(rack.u64, of(plan.pairs + COUNTS, (seat * plan.n + i) * SOURCE_WORDS), counts, head)


@device
def release(plan, rack, i, p, seat, counts, head, acc):
    """Let the pair in that seat of i release a cell for place p; returns the cell, and its words as they are then."""
    f, d, number = np.uint32(head), end_in(head), np.uint32(counts)
    margin = np.int32(np.uint32(head >> np.uint64(MARGIN_SHIFT)) & np.uint32(MARGIN_BITS))
    if margin == 0:
        seen = np.uint32(rack.u64[at(plan.ends, (seat * plan.n + i) * TARGET_WORDS + WANTED)])
        margin = np.int32(np.int32(plan.window - 4 * plan.channels) - np.int32(np.uint32(number - seen)))
        if margin <= 0:
            acc[STOP] |= WANTS_WINDOW
            margin = np.int32(1)
        head |= np.uint64(min(margin, np.int32(MARGIN_BITS))) << np.uint64(MARGIN_SHIFT)
    head -= _1 << np.uint64(MARGIN_SHIFT)
    counts = counts & ~_LOW | np.uint64(np.uint32(number + _I))
    counts, head = next_flow(plan, rack, seat * plan.n + i, counts, head)
    return own_cell(plan, np.int64(f), i, seat, d, np.int64(number)), counts, head


@device
def age_of(plan, rack, i, seat, slot):
    """For how many slots the pair in that seat of i has been busy."""
    return slot - np.int64(rack.u64[at(plan.since, seat * plan.n + i)])


@device
def let_go(plan, rack, i, p, q, slot, e, holds, acc):
    """Let node i release cells to the end of queue q, in turn; returns what the queue holds then."""
    seats, interval, ready_queues = plan.seats, plan.age_interval, plan.ready_queues
    length, turn = holds & LENGTH, holds >> TURN_SHIFT
    limit = min(e + length, LATEST) if ready_queues else np.int64(LATEST)
    groups, released = seats >> 6, np.int64(0)
    turn = turn if turn < seats else 0
    group, spin = turn >> 6, np.uint64(turn & 63)
    for step in range(groups + 1):  # the group of the turn comes twice: its end first, its beginning last
        now = may_send(plan, rack, i, p, group, limit)
        if step == 0:
            now &= _ALL << spin
        elif step == groups:
            now &= ~(_ALL << spin)
        while now != 0:
            seat = (group << 6) + lowest_bit(now)
            now &= now - _1
            seen = length
            if not ready_queues:
                seen += released
                if rack.leave[at(subflow(plan, seat, p, i), 0)] > e + seen + 1:
                    continue
            if too_young(seen, age_of(plan, rack, i, seat, slot), plan.aged * interval, interval):
                continue
            counts, first = words_of(plan, rack, i, seat)
            cell, counts, first = release(plan, rack, i, p, seat, counts, first, acc)
            put_words(plan, rack, i, seat, counts, first)
            rack.leave[at(subflow(plan, seat, p, i), 0)] = GONE
            if counts >> _32 == 0:
                rack.near64[at(plan.able, (seat >> 6) * plan.n + i)] &= ~(_1 << np.uint64(seat & 63))
            append(plan, rack, q, i, length + released, e, cell, acc)
            released += 1
            turn = seat + 1
            if ready_queues:
                break
        if ready_queues and released > 0:
            break
        group = group + 1 if group + 1 < groups else 0
    if released > 0:
        note_waiting(plan, rack, i, released, length + released, acc)
        holds = (holds & ((1 << TURN_SHIFT) - 1)) + released - ((1 << READY_SHIFT) if ready_queues else 0)
        holds |= LOCAL_BIT | FRESH | turn << TURN_SHIFT
    return holds


@device
def note_waiting(plan, rack, i, more, length, acc):
    """Note that so many cells more wait at node i, and that a queue has this length."""
    waiting = np.int64(rack.near32[at(plan.waiting, i)]) + more
    rack.near32[at(plan.waiting, i)] = waiting
    acc[MAX_QUEUE] = max(acc[MAX_QUEUE], length)
    acc[MAX_NODE] = max(acc[MAX_NODE], waiting)


@device
def ahead_in(plan, rack, debt, i):
    """Cells and flows before one that comes to the queue which a feedback that node i owes is about."""
    if debt == 0:
        return _N
    few = few_of(plan, rack, np.int64(debt) & PLACE_BITS, i)
    return cells_and_flows(rack.u32[of(plan.held, queue_about(plan, debt, i))]) if few == _LOOK else few


@device
def report(debt, ahead, now):
    """What a node says of a feedback that it owes: 1 + the seat, and the epoch from which it may send again."""
    wait = np.int32(np.int32(ahead) + np.int32(debt >> np.uint32(ANSWER_SHIFT) & np.uint32(ANSWER_BITS)))
    when = max(min(np.int32(np.int32(now) + wait), _LATEST), np.int32(0))
    seat = np.uint32((debt >> np.uint32(SEAT_SHIFT) & np.uint32(SEAT_BITS)) + np.uint32(1))
    return np.uint32(seat << np.uint32(SAID_SHIFT) | np.uint32(when)) if debt != 0 else _N


@device
def lit(plan, p, i):
    """Whether node i sends in place p."""
    return p < plan.all_lit or plan.tables[at(plan.first, p)] <= i < plan.tables[at(plan.last, p)]


@device
def any_able(plan, rack, i):
    """Whether node i has a pair with cells left to release."""
    active = False
    for g in range(plan.seats >> 6):
        active |= rack.near64[at(plan.able, g * plan.n + i)] != 0
    return active


@device
def send(plan, rack, i, slot, e, base, place, acc, sums):
    """Let node i work through its channels: what it sends goes onto the wire.

    e: the epoch, from BASE on; base: the first place of the slot; place: where the wire of this slot begins. Where
    nothing is special, four channels at once.
    """
    special = base <= plan.self_place < base + plan.channels
    if plan.quick and not special and rack.near64[at(plan.able, i)] >> _32 == 0:
        for c in range(0, plan.channels, 4):
            send_four(plan, rack, i, slot, e, base, base + c, place + c, min(plan.channels - c, 4), acc, sums)
        return
    for c in range(plan.channels):
        serve(plan, rack, i, slot, e, base + c, at((place + c) * plan.n, i), acc, sums)


@device
def say_nothing(plan, rack, i, p, e, x):
    """Let node i send nothing in place p, at x on the wire."""
    rack.near64[at(plan.what, x)] = _ALL
    to = notes_to(plan, p, i, e)
    for y in range((plan.feedback + 1) // 2):
        rack.u64[at(plan.notes, to + y * plan.queues)] = 0


# ---------------------------------------------------------------- four channels at once


@device
def send_four(plan, rack, i, slot, e, base, p, place, many, acc, sums):
    """Let node i, whose pairs with cells left sit in the first 32 seats, work through up to four channels from p on.

    A device waits long for what is far, and asks for the next only when it needs none that it waits for. So all that
    the channels look at is asked for in two goes, the words of the pairs whose turn it will be among the second. It is
    kept close by; if an earlier channel changes what a later one was told, that is led to it.
    """
    near32, near64, n = rack.near32, rack.near64, plan.n
    q0 = at(p * plan.row, i)
    q1, q2, q3 = at(q0, plan.row), at(q0, 2 * plan.row), at(q0, 3 * plan.row)
    could, first = np.uint32(near64[at(plan.able, i)]), at(four_of(plan, 0, p, i), 0)
    w0, w1, w2, w3, b0, b1, b2, b3, todo = leaves(plan, rack, first, could)
    w4, w5, w6, w7, b4, b5, b6, b7, todo = leaves(plan, rack, first, todo)
    few = down(rack.few[few_at(plan, p, i)], few_shift(p))
    h0, d0, g0, a0, c0 = asked(plan, rack, i, p, q0, e, few, _C0, many)
    h1, d1, g1, a1, c1 = asked(plan, rack, i, p, q1, e, few, _C1, many)
    h2, d2, g2, a2, c2 = asked(plan, rack, i, p, q2, e, few, _C2, many)
    h3, d3, g3, a3, c3 = asked(plan, rack, i, p, q3, e, few, _C3, many)
    heard = a0 | a1 | a2 | a3 != 0
    if not some_here(heard or (could | d0 | d1 | d2 | d3 | g0 | g1 | g2 | g3 | (h0 | h1 | h2 | h3) & _BUSY) != 0):
        for c in range(many):
            say_nothing(plan, rack, i, at(p, c), e, at((place + c) * n, i))
        return

    m0, m1, m2, m3 = _N, _N, _N, _N
    l0, l1, l2, l3 = limit_of(e, h0), limit_of(e, h1), limit_of(e, h2), limit_of(e, h3)
    if could != 0:
        skip = np.int64(16 * (p % PACK)) if plan.channels % PACK != 0 else np.int64(0)
        low, high = np.uint32(l0 | l1 << np.uint32(16)), np.uint32(l2 | l3 << np.uint32(16))
        m0, m1, m2, m3 = compare(low, high, skip, w0, b0, m0, m1, m2, m3)
        m0, m1, m2, m3 = compare(low, high, skip, w1, b1, m0, m1, m2, m3)
        m0, m1, m2, m3 = compare(low, high, skip, w2, b2, m0, m1, m2, m3)
        m0, m1, m2, m3 = compare(low, high, skip, w3, b3, m0, m1, m2, m3)
        if b4 != 0:
            m0, m1, m2, m3 = compare(low, high, skip, w4, b4, m0, m1, m2, m3)
            m0, m1, m2, m3 = compare(low, high, skip, w5, b5, m0, m1, m2, m3)
            m0, m1, m2, m3 = compare(low, high, skip, w6, b6, m0, m1, m2, m3)
            m0, m1, m2, m3 = compare(low, high, skip, w7, b7, m0, m1, m2, m3)
        while todo != 0:
            v0, v1, v2, v3, b0, b1, b2, b3, todo = leaves(plan, rack, first, todo)
            m0, m1, m2, m3 = compare(low, high, skip, v0, b0, m0, m1, m2, m3)
            m0, m1, m2, m3 = compare(low, high, skip, v1, b1, m0, m1, m2, m3)
            m0, m1, m2, m3 = compare(low, high, skip, v2, b2, m0, m1, m2, m3)
            m0, m1, m2, m3 = compare(low, high, skip, v3, b3, m0, m1, m2, m3)
    if heard:
        leave0 = np.uint32(subflow(plan, -1, p, i))
        m0 = heed(plan, rack, leave0, m0, could, h0, l0, a0)
        m1 = heed(plan, rack, np.uint32(leave0 + _I), m1, could, h1, l1, a1)
        m2 = heed(plan, rack, np.uint32(leave0 + np.uint32(2)), m2, could, h2, l2, a2)
        m3 = heed(plan, rack, np.uint32(leave0 + np.uint32(3)), m3, could, h3, l3, a3)
    sends = _15
    if p + many > plan.all_lit:  # a dark place has no turn
        sends = set_of(lit(plan, p, i), lit(plan, p + 1, i), lit(plan, p + 2, i), lit(plan, p + 3, i))
        m0, m1 = (m0 if sends & _I != 0 else _N), (m1 if sends & np.uint32(2) != 0 else _N)
        m2, m3 = (m2 if sends & np.uint32(4) != 0 else _N), (m3 if sends & np.uint32(8) != 0 else _N)

    k0, k1, k2, k3 = chosen(h0, m0), chosen(h1, m1), chosen(h2, m2), chosen(h3, m3)
    t1, t2, t3 = home_of(k1, k0, k0, k0, 1), home_of(k2, k0, k1, k1, 2), home_of(k3, k0, k1, k2, 3)
    n0, f0 = words_of(plan, rack, i, np.int64(k0))
    n1, f1 = words_of(plan, rack, i, np.int64(k1 if t1 == 1 else np.int32(-1)))
    n2, f2 = words_of(plan, rack, i, np.int64(k2 if t2 == 2 else np.int32(-1)))
    n3, f3 = words_of(plan, rack, i, np.int64(k3 if t3 == 3 else np.int32(-1)))
    y0, y1 = busy_since(plan, rack, i, k0, h0, slot), busy_since(plan, rack, i, k1, h1, slot)
    y2, y3 = busy_since(plan, rack, i, k2, h2, slot), busy_since(plan, rack, i, k3, h3, slot)
    r0, r1 = there_of(plan, rack, d0, i), there_of(plan, rack, d1, i)
    r2, r3 = there_of(plan, rack, d2, i), there_of(plan, rack, d3, i)
    s0, s1 = there_of(plan, rack, g0, i), there_of(plan, rack, g1, i)
    s2, s3 = there_of(plan, rack, g2, i), there_of(plan, rack, g3, i)
    owes, odd, now, x = _N, _N, np.int32(e - plan.answer_offset), at(place * n, i)
    owes, odd = answer(plan, rack, i, _C0, many, d0, g0, r0, s0, base, p, e, now, owes, odd)
    owes, odd = answer(plan, rack, i, _C1, many, d1, g1, r1, s1, base, p, e, now, owes, odd)
    owes, odd = answer(plan, rack, i, _C2, many, d2, g2, r2, s2, base, p, e, now, owes, odd)
    owes, odd = answer(plan, rack, i, _C3, many, d3, g3, r3, s3, base, p, e, now, owes, odd)
    keep_asked(plan, rack, _C0, many, h0, m0, c0, n0, f0)
    keep_asked(plan, rack, _C1, many, h1, m1, c1, n1, f1)
    keep_asked(plan, rack, _C2, many, h2, m2, c2, n2, f2)
    keep_asked(plan, rack, _C3, many, h3, m3, c3, n3, f3)

    young = set_of(
        young_among(plan, h0, slot, y0), young_among(plan, h1, slot, y1),
        young_among(plan, h2, slot, y2), young_among(plan, h3, slot, y3),
    )  # fmt: skip
    seats = np.uint32((k0 & 0xFF) | (k1 & 0xFF) << 8 | (k2 & 0xFF) << 16 | (k3 & 0xFF) << 24)  # 0xFF: none
    homes = np.uint32(t1 << 2 | t2 << 4 | t3 << 6)  # where each finds what is kept of its pair
    q, left, waiting, gone = q0, could, np.int32(near32[at(plan.waiting, i)]), np.int32(0)
    together = here()
    for c in range(many):  # a loop, or the kernel would outgrow the cache of instructions
        left, waiting, gone = work(
            plan, rack, i, slot, e, p, c, many, q, x, seats, homes, young, sends, owes, odd, left, waiting, gone, acc,
            sums,
        )  # fmt: skip
        x, q = at(x, n), at(q, plan.row)
        some_still(together, True)
    if left != could:
        near64[at(plan.able, i)] = np.uint64(left)
    near32[at(plan.waiting, i)] = waiting
    near32[at(plan.departed, i)] += np.uint32(gone)
    acc[SENT] += gone


@device
def asked(plan, rack, i, p, q, e, few, c, many):
    """What the c-th channel from place p on will look at in any case, if there are so many.

    That is: what its queue holds; what it owes, and owed before; what was said of the queue; the queue's first cell.
    """
    if c >= many:
        return _N, _N, _N, _0, _ALL
    few = np.uint32(few >> np.uint32(FEW_BITS * c) & _FEW)
    holds, debt = rack.u32[of(plan.held, q)], once(rack.u32, of(plan.owed, owed_at(plan, q, e)))
    before = once(rack.u32, of(plan.owed, owed_at(plan, q, e - 1))) if plan.feedback > 1 else _N
    heard = once(rack.u64, of(plan.notes, notes_for(plan, at(p, c), i, e)))
    cell = once(rack.u64, of(plan.cells, in_ring(plan, e, q))) if few != 0 else _ALL
    return whole(holds, few), debt, before, heard, cell


@device
def heed(plan, rack, leave0, who, could, holds, limit, heard):
    """Let a node take in what was said of a queue of its own, which holds so much; returns who may send then.

    leave0: where `leave` has its subflows, a seat earlier. What is said again is of the subflow of which was heard an
    epoch ago: that waits for news if it was then served.
    """
    note, again = np.uint32(heard), np.uint32(heard >> _32)
    served = holds & _FRESH != 0 and holds >> np.uint32(TURN_SHIFT) == again >> np.uint32(SAID_SHIFT)
    who = heed_one(plan, rack, leave0, who, could, limit, again, again != 0 and not served)
    return heed_one(plan, rack, leave0, who, could, limit, note, note != 0)


@device
def heed_one(plan, rack, leave0, who, could, limit, note, counts):
    """The same of one value, if that counts."""
    number, later = np.uint32(note >> np.uint32(SAID_SHIFT)), np.uint32((note & np.uint32(WHEN_BITS)) + _I)
    if counts:
        rack.leave[of(0, leave0 + number * np.uint32(plan.n * PACK))] = later
    bit = up(_I, number + _31 & _31) if counts and number <= 32 else _N
    return np.uint32(who & ~bit | (bit & could if np.uint32(limit - later) & _TOP != 0 else _N))


@device
def there_of(plan, rack, debt, i):
    """What the queue holds that a feedback which node i owes is about; of no meaning if there is none."""
    few = few_of(plan, rack, np.int64(debt & np.uint32(PLACE_BITS)), i)
    return rack.u32[of(plan.held, queue_about(plan, debt, i))] if few == _LOOK and debt != 0 else few


@device
def busy_since(plan, rack, i, seat, holds, slot):
    """Since when the pair in that seat of i is busy, if its age matters: there are cells before it."""
    first = np.uint32(slot)
    if seat >= 0 and holds & _LENGTH > 1:
        first = np.uint32(rack.u64[of(plan.since, np.int64(seat) * plan.n + i)])
    return first


@device
def young_among(plan, holds, slot, since):
    """Whether a pair that is busy since then must not use a queue that holds so much."""
    length = np.int64(holds & _LENGTH)
    return length > 1 and is_young(plan, length, np.int64(np.uint32(np.uint32(slot) - since)))


@device
def answer(plan, rack, i, c, many, debt, before, ahead, ahead_before, base, p, e, now, owes, odd):
    """Say what node i owes on the c-th channel from place p on, unless that is about a queue of this slot.

    ahead: what the queues hold that this is about. Adds to two sets: the channels that owe something, and those for
    which `work` says it: c, or 4 + c if it is again.
    """
    if c < many:
        note = report(debt, cells_and_flows(ahead), now)
        again = report(before, cells_and_flows(ahead_before), now)
        put_once(rack.u64, of(plan.notes, notes_to(plan, at(p, c), i, e)), np.uint64(note) | np.uint64(again) << _32)
        owes = np.uint32(owes | (_I << np.uint32(c) if debt | before != 0 else _N))
        first, count = (base, plan.channels) if plan.channels > 4 else (p, many)
        close = np.uint32(np.uint32(debt & np.uint32(PLACE_BITS)) - np.uint32(first)) < count and debt != 0
        close_before = np.uint32(np.uint32(before & np.uint32(PLACE_BITS)) - np.uint32(first)) < count and before != 0
        if close or close_before:
            rack.kept32[kept32(plan, c, DEBT)], rack.kept32[kept32(plan, c, BEFORE)] = debt, before
            odd = np.uint32(odd | np.uint32(close) << np.uint32(c) | np.uint32(close_before) << np.uint32(4 + c))
    return owes, odd


@device
def keep_asked(plan, rack, c, many, holds, who, cell, counts, head):
    """Keep close by what the c-th channel will look at."""
    if c < many:
        close32, close64 = rack.kept32, rack.kept64
        close32[kept32(plan, c, HOLDS)], close32[kept32(plan, c, WHO)] = holds, who
        close64[kept64(plan, c, FIRST)] = cell
        close64[kept64(plan, c, ITS_COUNTS)], close64[kept64(plan, c, ITS_HEAD)] = counts, head


@device
def kept_at(seats, homes, seat, many):
    """Where the words of the pair in that seat are kept, or -1: the first bytes of `seats` say of whom some are."""
    found = np.int32(-1)
    for c in range(many):
        if down(seats, 8 * c) & np.uint32(0xFF) == np.uint32(seat):
            found = np.int32(down(homes, 2 * c) & np.uint32(3))
    return found


@device
def queue_about(plan, debt, i):
    """The queue of node i that a feedback which it owes is about."""
    return (np.int64(debt) & PLACE_BITS) * plan.row + i


@device
def cells_and_flows(there):
    """Cells and flows before one that comes to a queue of which this is the word."""
    return np.uint32((there & _LENGTH) + (there >> np.uint32(READY_SHIFT) & np.uint32(READY_BITS)))


@device
def answer_late(plan, rack, debt, i, p, many, x, half, now):
    """Say what is owed about a queue of this slot, in that half of a word of `notes`, as it is now."""
    among = np.uint32(np.uint32(debt & np.uint32(PLACE_BITS)) - np.uint32(p))
    if among < many:
        ahead = cells_and_flows(rack.kept32[kept32(plan, np.int64(among), HOLDS)])
    else:
        ahead = ahead_in(plan, rack, debt, i)
    said = np.uint64(report(debt, ahead, now)) << np.uint64(32 * half)
    rack.u64[at(plan.notes, x)] = rack.u64[at(plan.notes, x)] & (_LOW if half else ~_LOW) | said


@device
def work(
    plan, rack, i, slot, e, first, c, many, q, x, seats, homes, young, sends, owes, odd, left, waiting, gone, acc, sums
):
    """Let node i send in place first + c, the c-th of the channels that `send_four` works through.

    q: its queue; x: where on the wire; seats: whose turn it is, a byte each; homes: at which of the channels the words
    of those pairs lie; young: which of them may not use the queue; sends: in which places it does at all; owes, odd:
    see `answer`; left: seats with cells left; gone: cells sent in this slot. Returns `left`, `waiting` and `gone` as
    they are then.
    """
    p, close32, close64 = np.int64(np.int32(first + c)), rack.kept32, rack.kept64
    found, shift, leave0 = close32[kept32(plan, c, HOLDS)], np.uint32(c), np.uint32(subflow(plan, 0, p, i))
    length = np.uint32(found & _LENGTH)
    if (left | down(owes, shift) & _I | found & _BUSY) != 0 and down(sends, shift) & _I != 0:
        note_visit(rack, np.int64(length), sums)

    # Who may release a cell, and does.
    who = np.uint32(close32[kept32(plan, c, WHO)] & left)
    holds = np.uint32(found & ~np.uint32(READY_BITS << READY_SHIFT | FRESH))
    holds = np.uint32(holds | np.uint32(set_bits(np.uint64(who))) << np.uint32(READY_SHIFT))
    cell = close64[kept64(plan, c, FIRST)]
    seat = np.int32(np.int8(down(seats, 8 * c) & np.uint32(0xFF)))
    if seat >= 0:
        there = np.int32(down(homes, 2 * c) & np.uint32(3))
        if down(young, shift) & _I != 0 or down(who, seat) & _I == 0:  # not the one after all
            seat = next_chosen(plan, rack, i, slot, holds, np.uint32(who & ~up(_I, seat)))
            there = kept_at(seats, homes, seat, many)
        if seat >= 0:
            if there >= 0:
                counts, head = close64[kept64(plan, there, ITS_COUNTS)], close64[kept64(plan, there, ITS_HEAD)]
            else:
                counts, head = words_of(plan, rack, i, np.int64(seat))
            fresh, counts, head = release(plan, rack, i, p, np.int64(seat), counts, head, acc)
            if there >= 0:
                close64[kept64(plan, there, ITS_COUNTS)], close64[kept64(plan, there, ITS_HEAD)] = counts, head
            put_words(plan, rack, i, np.int64(seat), counts, head)
            rack.leave[of(0, leave0 + np.uint32(seat) * np.uint32(plan.n * PACK))] = GONE
            if counts >> _32 == 0:
                left = np.uint32(left & ~up(_I, seat))
            waiting = np.int32(waiting + np.int32(1))
            acc[MAX_QUEUE] = max(acc[MAX_QUEUE], np.int32(length + _I))
            acc[MAX_NODE] = max(acc[MAX_NODE], waiting)
            holds = np.uint32((holds & np.uint32((1 << TURN_SHIFT) - 1)) + np.uint32(1) - np.uint32(1 << READY_SHIFT))
            holds = np.uint32(
                holds | np.uint32(LOCAL_BIT | FRESH) | np.uint32(seat + np.int32(1)) << np.uint32(TURN_SHIFT)
            )
            if length > 0:
                append(plan, rack, q, i, np.int64(length), e, fresh, acc)
            else:
                cell = fresh

    # Feedback about a queue of this slot: eq. (1), (6).
    if odd != 0:
        close32[kept32(plan, c, HOLDS)], now = holds, np.int32(e - plan.answer_offset)
        if down(odd, shift) & _I != 0:
            answer_late(plan, rack, close32[kept32(plan, c, DEBT)], i, first, many, notes_to(plan, p, i, e), 0, now)
        if down(odd, shift) & np.uint32(16) != 0:
            answer_late(plan, rack, close32[kept32(plan, c, BEFORE)], i, first, many, notes_to(plan, p, i, e), 1, now)

    # The cell.
    count = np.uint32(holds & _LENGTH)
    if count > RING:
        move_up(plan, rack, q, i, e)
    some = count > 0
    if some:
        holds = np.uint32(holds - _I)
        if cell & _OWN != 0:
            holds = np.uint32(holds & ~np.uint32(LOCAL_BIT))
            acc[LOCAL] += 1
            if end_of(plan, cell) == facing(plan, p, i):
                rack.leave[of(0, leave0 + np.uint32(seat_of(plan, cell)) * np.uint32(plan.n * PACK))] = NOW
    else:
        cell = _ALL
    waiting, gone = np.int32(waiting - np.int32(some)), np.int32(gone + np.int32(some))
    if odd != 0:
        close32[kept32(plan, c, HOLDS)] = holds
    rack.near64[at(plan.what, x)] = cell
    put_held(plan, rack, i, p, q, found, holds)
    return left, waiting, gone


@device
def put_held(plan, rack, i, p, q, found, holds):
    """Write what the queue of node i in place p holds, where it has changed; q: the queue."""
    if few_in(holds) != few_in(found):
        where = few_at(plan, p, i)
        rack.few[where] = set_few(rack.few[where], p, few_in(holds))
    if kept_of(holds) != kept_of(found):
        rack.u32[of(plan.held, q)] = kept_of(holds)


@device
def is_young(plan, length, age):
    """§3.3.3 for a queue of that length, see `rules.too_young`."""
    return too_young(length, age, plan.aged * plan.age_interval, plan.age_interval)


@device
def next_chosen(plan, rack, i, slot, holds, who):
    """The seat of `who` whose turn it is and that may use the queue, or -1."""
    length, turn = np.int64(holds & _LENGTH), np.int64(holds >> np.uint32(TURN_SHIFT))
    todo, found = np.int64(who), np.int32(-1)
    while todo != 0:
        later = todo >> (turn if turn < 32 else 0) << (turn if turn < 32 else 0)
        seat = lowest_bit(np.uint64(later if later != 0 else todo))
        todo &= ~(1 << seat)
        if length <= 1 or not is_young(plan, length, age_of(plan, rack, i, seat, slot)):
            found = np.int32(seat)
            todo = np.int64(0)
    return found


# ---------------------------------------------------------------- any channel, by itself


@device
def say(plan, rack, debt, i, now):
    """What node i says of a feedback that it owes."""
    return report(np.uint32(debt), ahead_in(plan, rack, debt, i), now)


@device
def serve(plan, rack, i, slot, e, p, x, acc, sums):
    """Let node i send in place p, at x on the wire."""
    u32, u64, near32, near64, now = rack.u32, rack.u64, rack.near32, rack.near64, e - plan.answer_offset
    more, ready_queues, queues, q = plan.feedback - 1, plan.ready_queues, plan.queues, at(p * plan.row, i)
    if not lit(plan, p, i):
        say_nothing(plan, rack, i, p, e, x)
        return
    take_notes(plan, rack, i, p, e)
    here = p == plan.self_place
    if here:
        u32[at(plan.left, i)] = 0
    debt = np.int64(u32[at(plan.owed, owed_at(plan, q, e))])
    holds = np.int64(whole(u32[of(plan.held, q)], few_of(plan, rack, p, i)))
    owes = debt != 0
    for y in range(more):
        owes |= u32[at(plan.owed, owed_at(plan, q, e - y - 1))] != 0
    if here and more == 0:
        owes |= u32[at(plan.told, i)] != 0
    active = any_able(plan, rack, i)
    if not (active or owes or holds & (LENGTH | READY_BITS << READY_SHIFT) != 0):
        say_nothing(plan, rack, i, p, e, x)
        return
    length, found = holds & LENGTH, np.uint32(holds)
    note_visit(rack, length, sums)

    # Who may release a cell, and does.
    holds &= ~(READY_BITS << READY_SHIFT | FRESH)
    if active:
        limit, ready = min(e + length, LATEST) if ready_queues else np.int64(LATEST), np.int64(0)
        for g in range(plan.seats >> 6):
            ready += set_bits(may_send(plan, rack, i, p, g, limit))
        if ready_queues:
            holds |= ready << READY_SHIFT
        if ready > 0 and (holds & LOCAL_BIT == 0 or not ready_queues):
            holds = let_go(plan, rack, i, p, q, slot, e, holds, acc)
    put_held(plan, rack, i, p, q, found, np.uint32(holds))  # what is said next may be about this queue
    found = np.uint32(holds)

    # Feedback: eq. (1), (6), said as the epoch from which the source may send again.
    to, other = notes_to(plan, p, i, e), _0
    if more > 0:
        other = np.uint64(say(plan, rack, u32[at(plan.owed, owed_at(plan, q, e - 1))], i, now))
    if here and more == 0:
        again = np.int64(u32[at(plan.told, i)])
        u32[at(plan.told, i)] = debt
        if debt == 0:
            debt = again
    u64[at(plan.notes, to)] = np.uint64(say(plan, rack, debt, i, now)) | other << _32
    for y in range(2, plan.feedback, 2):
        other = np.uint64(say(plan, rack, u32[at(plan.owed, owed_at(plan, q, e - y))], i, now))
        if y + 1 < plan.feedback:
            other |= np.uint64(say(plan, rack, u32[at(plan.owed, owed_at(plan, q, e - y - 1))], i, now)) << _32
        u64[at(plan.notes, to + (y >> 1) * queues)] = other

    # The cell.
    count = holds & LENGTH
    if count == 0:
        near64[at(plan.what, x)] = _ALL
        return
    word = u64[at(plan.cells, in_ring(plan, e, q))]
    if count > RING:
        move_up(plan, rack, q, i, e)
    near64[at(plan.what, x)] = word
    near32[at(plan.waiting, i)] -= np.uint32(1)
    near32[at(plan.departed, i)] += np.uint32(1)
    holds -= 1
    if word & _OWN != 0:
        holds &= ~LOCAL_BIT
        acc[LOCAL] += 1
        if end_of(plan, word) == facing(plan, p, i):
            rack.leave[at(subflow(plan, seat_of(plan, word), p, i), 0)] = NOW
        elif here:
            rack.leave[at(subflow(plan, seat_of(plan, word), p, i), 0)] = HAS_LEFT
            u32[at(plan.left, i)] = seat_of(plan, word) + 1
    acc[SENT] += 1
    put_held(plan, rack, i, p, q, found, np.uint32(holds))


@device
def note_visit(rack, length, sums):
    """Count a visit to a queue, by its length: up to three in 16 bits each."""
    if length < 4:
        sums[2] += _1 << np.uint64(16 * length)
    else:
        add_to(rack.counted, LENGTHS + min(length, 255), 1)
        add_to(rack.counted, VISITS, 1)


# ---------------------------------------------------------------- the second half: what was sent arrives


@device
def receive(plan, rack, j, slot, e, base, back, place, acc, sums):
    """Let node j take in what was sent to it `delay` slots ago: a cell that goes on or has arrived, on each channel.

    e: the epoch; base: the first place of this slot; back: that of the slot in which it was sent; place: where its wire
    begins.
    """
    settle(plan, rack, j, slot)
    if plan.channels == 4:
        announce(plan, rack, j, e, base + plan.channels)
    if slot < plan.delay:
        return
    for turn in range(0, plan.channels, 4):
        many = min(plan.channels - turn, 4)
        receive_four(plan, rack, j, slot, e, base + plan.channels, back, place, turn, many, acc, sums)


@device
def peer(plan, p, j):
    """The node that sends to j in place p; if it does not, it leaves the wire empty."""
    i = np.int32(np.int32(j) - plan.tables[at(p, 0)])
    return np.int32(i + plan.n) if i < 0 else i


@device
def place_of(plan, j, d):
    """The place in which j sends to d, see `rules.where`."""
    return np.int64(plan.tables[at(plan.place, d - j + plan.n + (2 * plan.n if j >= plan.half else 0))])


@device
def look(plan, rack, j, word):
    """What a cell that came to j is about: its queue if it goes on; if it has arrived, its pair, counted behind them.

    -1 if there is none.
    """
    if word == _ALL:
        return np.int32(-1)
    d = end_of(plan, word)
    if d == np.int32(j):
        return np.int32(plan.queues + pair_of(plan, rack, word))
    return np.int32(place_of(plan, j, d) * plan.row + j)


@device
def receive_four(plan, rack, j, slot, e, end, base, place, turn, many, acc, sums):
    """Let node j take in what was sent to it on up to four channels, from place `base` on.

    What lies where they go is asked for at once, and kept close by. If several of them go to one queue, or are of one
    pair, the first keeps it for all. Cells that go on do not depend on those that arrive. end: places that come before
    it have been served in this epoch.
    """
    start = place - base
    p0, p1 = place_in_turn(plan, base, turn), place_in_turn(plan, base, turn + 1)
    p2, p3 = place_in_turn(plan, base, turn + 2), place_in_turn(plan, base, turn + 3)
    c0, c1 = sent_to(plan, rack, j, p0, start, _C0, many), sent_to(plan, rack, j, p1, start, _C1, many)
    c2, c3 = sent_to(plan, rack, j, p2, start, _C2, many), sent_to(plan, rack, j, p3, start, _C3, many)
    r0, r1 = mirror_of(plan, p0, _C0, many), mirror_of(plan, p1, _C1, many)
    r2, r3 = mirror_of(plan, p2, _C2, many), mirror_of(plan, p3, _C3, many)
    owe_nothing(plan, rack, j, r0, e, end, _C0, many)
    owe_nothing(plan, rack, j, r1, e, end, _C1, many)
    owe_nothing(plan, rack, j, r2, e, end, _C2, many)
    owe_nothing(plan, rack, j, r3, e, end, _C3, many)
    if not some_here(c0 & c1 & c2 & c3 != _ALL):
        return
    together = here()
    k0, k1, k2, k3 = look(plan, rack, j, c0), look(plan, rack, j, c1), look(plan, rack, j, c2), look(plan, rack, j, c3)
    h1, h2, h3 = home_of(k1, k0, k0, k0, 1), home_of(k2, k0, k1, k1, 2), home_of(k3, k0, k1, k2, 3)
    q0, g0, l0 = ask(plan, rack, j, k0, True)
    q1, g1, l1 = ask(plan, rack, j, k1, h1 == 1)
    q2, g2, l2 = ask(plan, rack, j, k2, h2 == 2)
    q3, g3, l3 = ask(plan, rack, j, k3, h3 == 3)
    note_cell(plan, j, slot, c0, sums)
    note_cell(plan, j, slot, c1, sums)
    note_cell(plan, j, slot, c2, sums)
    note_cell(plan, j, slot, c3, sums)
    keep_received(plan, rack, _C0, many, p0, r0, c0, k0, q0, g0, l0)
    keep_received(plan, rack, _C1, many, p1, r1, c1, k1, q1, g1, l1)
    keep_received(plan, rack, _C2, many, p2, r2, c2, k2, q2, g2, l2)
    keep_received(plan, rack, _C3, many, p3, r3, c3, k3, q3, g3, l3)
    homes = np.uint32(h1 << 2 | h2 << 4 | h3 << 6)
    ended = set_of(k0 >= plan.queues, k1 >= plan.queues, k2 >= plan.queues, k3 >= plan.queues)
    onward = np.uint32(set_of(k0 >= 0, k1 >= 0, k2 >= 0, k3 >= 0) & ~ended)
    waiting = np.int32(rack.near32[at(plan.waiting, j)])
    while some_still(together, onward != 0):  # a loop, or the kernel would outgrow the cache of instructions
        if onward != 0:
            k, onward = lowest_of(onward), without_lowest(onward)
            home = np.int64(down(homes, 2 * k) & np.uint32(3))
            waiting = relay(plan, rack, j, k, home, slot, e, end, waiting, acc)
    while some_still(together, ended != 0):
        if ended != 0:
            k, ended = lowest_of(ended), without_lowest(ended)
            arrive(plan, rack, j, k, np.int64(down(homes, 2 * k) & np.uint32(3)), slot, acc)
    rack.near32[at(plan.waiting, j)] = waiting


@device
def announce(plan, rack, j, e, p):
    """Say what node j and its neighbours will look at in the next slot, whose first place is p if epoch e goes on.

    Their rows lie side by side: each of 32 threads names other sectors of 32 bytes.
    """
    k, first = lane(), j - lane()
    if p == plan.epoch * plan.channels:
        p, e = np.int64(0), e + 1
    four, eight = p + (k >> 2 & 3), p + (k >> 3)
    q = four * plan.row + first + 8 * (k & 3)
    soon(rack.u32, of(plan.owed, owed_at(plan, q, e - (k >> 4) % plan.feedback)))
    soon(rack.u32, of(plan.held, q))
    q = eight * plan.row + first + 4 * (k & 7)
    soon(rack.u64, of(plan.cells, in_ring(plan, e, q)))
    soon(rack.u64, of(plan.notes, notes_for(plan, eight, first + 4 * (k & 7), e)))
    could = np.uint32(rack.near64[at(plan.able, j)])
    if could != 0:
        soon(rack.leave4, of(0, four_of(plan, lowest_of(could), p, j)))
        could = without_lowest(could)
        if could != 0:
            soon(rack.leave4, of(0, four_of(plan, lowest_of(could), p, j)))


@device
def next_served(e, end, p):
    """The epoch in which place p is served next, after the slot before place `end` of epoch e."""
    return np.int32(np.int32(e) + np.int32(np.int32(p) < np.int32(end)))


@device
def owe_nothing(plan, rack, j, r, e, end, k, many):
    """Let node j owe nothing in place r, which answers the k-th of many, until a cell has come."""
    if k < many:
        rack.u32[of(plan.owed, owed_at(plan, r * plan.row + j, next_served(e, end, r)))] = 0


@device
def set_of(first, second, third, fourth):
    """A set of four, one bit each."""
    low = np.uint32(np.uint32(first) | np.uint32(second) << _I)
    return np.uint32(low | np.uint32(np.uint32(third) | np.uint32(fourth) << _I) << np.uint32(2))


@device
def home_of(about, first, second, third, k):
    """The first of four channels, this the k-th, that is about the same; the others are those before it."""
    if about == first:
        return np.int32(0)
    if about == second:
        return np.int32(1)
    return np.int32(2) if about == third else np.int32(k)


@device
def place_in_turn(plan, base, turn):
    """The place that is received as `turn`-th of those from base on."""
    return np.int64(np.int32(base + channel_in_turn(turn, base, plan.self_place, plan.channels)))


@device
def sent_to(plan, rack, j, p, start, k, many):
    """The cell that node j gets in place p, k-th of many."""
    return rack.near64[at(plan.what, (start + p) * plan.n + peer(plan, p, j))] if k < many else _ALL


@device
def mirror_of(plan, p, k, many):
    """The place that answers p, k-th of many."""
    return answered_in(plan, p) if k < many else np.int64(0)


@device
def ask(plan, rack, j, about, alone):
    """What lies where a cell goes, see `look`; of no meaning what does not, or what another asks for: it is not alone.

    The word of its queue, if that has many cells or will have; both words of its pair.
    """
    queue, got, only = _N, _0, _0
    if 0 <= about < plan.queues and alone and few_of(plan, rack, place_about(plan, about), j) >= np.uint32(LOOK - 1):
        queue = rack.u32[of(plan.held, about)]
    if about >= plan.queues and alone:
        got, only = both(rack.u64, of(plan.ends + WANTED, (np.int64(about) - plan.queues) * TARGET_WORDS))
    return queue, got, only


@device
def place_about(plan, about):
    """The place of a queue."""
    return np.int64(np.uint32(about) // np.uint32(plan.row))


@device
def note_cell(plan, j, slot, word, sums):
    """Add a cell that came to node j to the fingerprint, if there is one."""
    hop = np.int32(0) if end_of(plan, word) != np.int32(j) else np.int32(np.int32(2) - np.int32(word >> _63))
    first, second = mixed(slot, event(flow_of(plan, word), j, hop))
    sums[0] += first if word != _ALL else _0
    sums[1] += second if word != _ALL else _0


@device
def keep_received(plan, rack, k, many, p, r, cell, about, queue, got, only):
    """Keep close by what the k-th channel will look at."""
    if k < many:
        close32, close64 = rack.kept32, rack.kept64
        close32[kept32(plan, k, PLACES)], close32[kept32(plan, k, ABOUT)] = p | r << 16, np.uint32(about)
        close32[kept32(plan, k, QUEUE)], close64[kept64(plan, k, CELL)] = queue, cell
        close64[kept64(plan, k, GOT)], close64[kept64(plan, k, FLOWS)] = got, only


@device
def relay(plan, rack, j, k, home, slot, e, end, waiting, acc):
    """Let node j take in the cell of its k-th channel, which goes on; returns `waiting` then.

    home: the channel that keeps what lies where it goes; e, end: see `receive_four`.
    """
    u32, row, close32 = rack.u32, plan.row, rack.kept32
    about, places = np.int32(close32[kept32(plan, k, ABOUT)]), np.int64(close32[kept32(plan, k, PLACES)])
    word, m, p, r = rack.kept64[kept64(plan, k, CELL)], place_about(plan, about), places & 0xFFFF, places >> 16
    where, shift = few_at(plan, m, j), few_shift(m)
    few = rack.few[where]
    length = np.uint32(down(few, shift) & _FEW)
    if length != _LOOK:
        rack.few[where] = few + up(_I, shift)
    if length >= np.uint32(LOOK - 1):
        there = close32[kept32(plan, home, QUEUE)]
        there = whole(there if there != 0 else u32[of(plan.held, about)], length)  # it may have been shorter
        length = np.uint32(there & _LENGTH)
        close32[kept32(plan, home, QUEUE)], u32[of(plan.held, about)] = there + _I, there + _I
    append(plan, rack, about, j, np.int64(length), next_served(e, end, m), word & ~_OWN, acc)
    lag = np.int64(plan.tables[at(plan.late, turn_of(plan, m) - turn_of(plan, p) + plan.epoch)]) + np.int64(m < r)
    debt = OWES | np.int64(seat_of(plan, word)) << SEAT_SHIFT | lag + plan.answer_offset - 1 << ANSWER_SHIFT | m
    u32[of(plan.owed, owed_at(plan, r * row + j, next_served(e, end, r)))] = debt
    waiting = np.int32(waiting + np.int32(1))
    acc[MAX_QUEUE] = max(acc[MAX_QUEUE], np.int32(length + _I))
    acc[MAX_NODE] = max(acc[MAX_NODE], waiting)
    acc[RELAYED] += 1
    if length > 0 and plan.ready_queues and length > rack.near32[at(incast_in(plan, slot), end_of(plan, word))]:
        add_to(rack.counted, OVER_BOUND, 1)
    if length >= min(LONGEST, LENGTH - 7 - 2 * plan.channels):
        acc[STOP] |= TOO_LONG
    return waiting


@device
def turn_of(plan, p):
    """In which slot of an epoch place p is served."""
    return np.int64(np.uint32(p) // np.uint32(plan.channels))


@device
def arrive(plan, rack, j, k, home, slot, acc):
    """Deliver the cell of the k-th channel to its end, node j; flows and pairs end.

    home: see `relay`.
    """
    u32, u64, flows, near32, close64 = rack.u32, rack.u64, rack.flows, rack.near32, rack.kept64
    h = np.int64(np.int32(rack.kept32[kept32(plan, k, ABOUT)])) - plan.queues
    r, word = h * TARGET_WORDS, close64[kept64(plan, k, CELL)]
    f, number = np.int64(flow_of(plan, word)), seq_of(plan, word)
    got, only = close64[kept64(plan, home, GOT)], close64[kept64(plan, home, FLOWS)]
    acc[DELIVERED] += 1
    astray, due = reorder(plan, rack, h, number, got & _LOW, only >> _32 & _31_BITS)
    acc[MAX_HELD] = max(acc[MAX_HELD], np.int32(astray))
    near32[at(plan.received, j)] += _I
    lacks = np.uint32((got >> _32) - _1)
    left = lacks
    if only >> _63 != 0:
        left = np.uint32(flows[of(DELIVER, f * FLOW_WORDS)] - _I)
    if only >> _63 != 0 or left == 0:
        flows[of(DELIVER, f * FLOW_WORDS)] = left
    got, only = np.uint64(due) | np.uint64(lacks) << _32, only & ~_ASTRAY | np.uint64(astray) << _32
    close64[kept64(plan, home, GOT)], close64[kept64(plan, home, FLOWS)] = got, only
    put_both(u64, of(plan.ends + WANTED, r), got, only)
    if left == 0:
        flows[of(FINISH, f * FLOW_WORDS)], flows[of(FINISH + 1, f * FLOW_WORDS)] = slot, slot >> 32
        add_to(rack.counted, FINISHED, 1)
        inflow = np.uint32(u32[at(plan.inflow, j)] - _I)
        u32[at(plan.inflow, j)] = inflow
        if inflow == 0:
            u64[at(plan.inflow_slots, j)] += np.uint64(slot + 1) - u64[at(plan.inflow_since, j)]
    if lacks == 0:
        u64[of(plan.rested, h)] = np.uint64(slot + plan.rest)
        add_to(near32, at(incast_in(plan, slot + 1), j), _EACH)  # one less
        add_to(near32, at(plan.change + (slot + 1 & 1) * plan.n, j), _EACH)


@device
def reorder(plan, rack, h, seq, wanted, astray):
    """Note that cell `seq` of pair h has arrived, see `rules.reorder`.

    wanted: the first cell that has not; astray: how many wait for an earlier one. Returns how many wait then, and the
    first that has not arrived. Most are early: a bit is set without a look at the others of its word.
    """
    u64, within = rack.u64, np.uint32(plan.window - 1)
    due, more, start = np.uint32(wanted), np.uint32(astray), plan.early + h * (plan.window >> 6)
    if np.uint32(seq - due) & np.uint32((1 << plan.seq_bits) - 1) != 0:
        set_far(u64, at(start, down(seq & within, 6)), _1 << np.uint64(seq & _63))
        return np.uint32(more + _I), due
    due = np.uint32(due + _I)
    while more != 0:  # else none is early
        k = np.uint32(due & within)
        word, skip = u64[at(start, down(k, 6))], np.uint64(k & np.uint32(63))
        gap = ~(word >> skip)
        most = np.uint32(np.uint32(64) - (k & np.uint32(63)))
        run = most if gap == 0 else min(np.uint32(lowest_bit(gap)), most)
        if run == 0:
            break
        u64[at(start, down(k, 6))] = word & ~(_ALL >> np.uint64(64 - run) << skip)
        due, more = np.uint32(due + run), np.uint32(more - run)
        if run < most:
            break
    return more, due


# ---------------------------------------------------------------- now and then


@device
def rebase(plan, rack, past, first, step):
    """Count epochs of `leave` and of what was said from `past` later: every `step`-th word from `first` on."""
    leave = rack.leave
    for k in range(first, leave.size, step):
        when = np.int64(leave[at(k, 0)])
        if NOW < when < HAS_LEFT:
            leave[at(k, 0)] = max(when - past, NOW)
    for k in range(first, TURNS * ((plan.feedback + 1) // 2) * plan.queues, step):
        word = rack.u64[at(plan.notes, k)]
        note, again = np.int64(word & _LOW), np.int64(word >> _32)
        if word != 0:
            note, again = note - min(note & WHEN_BITS, past), again - min(again & WHEN_BITS, past)
            rack.u64[at(plan.notes, k)] = np.uint64(note) | np.uint64(again) << _32
