"""Racks side by side on a device: what each word holds, and where it lies.

A rack is a few blocks of words: `Common` says where in its block an array begins, which a device has as constants. Of
what every node looks at in a slot, nodes lie side by side, so that the threads of neighbours read neighbouring words;
what only one thread asks for, a pair or a flow, lies together, in records of 16 or 64 bytes. Each word is written by
the thread of one node alone, or by atomic additions: results do not depend on timing.
"""

from typing import NamedTuple

import numpy as np

from weft.fabrics.shoal import columns as col

# A queue in one word: its cells, whether one of them is local, whether one was released when it was served last, flows
# that are ready, the seat whose turn it is. Of most queues two bits, close by, say how many cells there are and that no
# flow is ready: then the word has no cells. The others have LOOK there.
LENGTH, LOCAL_BIT, FRESH, READY_SHIFT, READY_BITS, TURN_SHIFT = 0x7FF, 1 << 11, 1 << 12, 14, 0x1FF, 23
LOOK, FEW_BITS, PER_WORD = 3, 2, 16
LONGEST = 2000  # cells in a queue beyond which the rack asks for more room, which there is not
MOST_SEATS = 448  # so many a word can count, in groups of 64
# The first cells of a queue lie in a ring beside it, by the epoch in which they leave, as one does each time it is
# served: so nothing has to say where the first is, and all nodes look at one row. The others lie in the node's pool.
RING = 4
# Feedback owed, in one word: OWES, the seat of the subflow, what is known of its answer, the place of the queue.
OWES, SEAT_SHIFT, SEAT_BITS, ANSWER_SHIFT, ANSWER_BITS, PLACE_BITS = 1 << 31, 17, 0x3FF, 15, 0x3, 0x7FFF
MOST_PLACES = PLACE_BITS
MIRROR_BITS, AGO_SHIFT = 0xFFFF, 16
# Feedback that was said, in one word: 1 + the seat, and the epoch from which it may send again. It is written where its
# node finds it when it next serves the queue that it is about, two to a word: the first, and what is said again.
SAID_SHIFT, WHEN_BITS = 16, 0xFFFF
TURNS = 2  # epochs of feedback that are kept apart: one is read while the next is written
EMPTY = 0xFFFFFFFFFFFFFFFF  # on the wire: no cell
PACK = 4  # channels of a slot whose `leave` stand side by side
NONE = 0xFFFF  # pool: no cell
MOST_CELLS = 1 << 31  # of a node's flows together: fewer, since pairs and flows count in 32 bits

# A pair is four words of 32 bits that its source writes at every cell, and four that its destination does; it has
# others that are asked for now and then.
SOURCE_WORDS = 2  # of 64 bits: SEQ and UNSENT; NEXT, destination, MARGIN and ALONE
COUNTS, HEAD = range(2)
MARGIN_SHIFT, MARGIN_BITS = 48, 0x7FFF  # how many cells may go before its source looks again what has arrived
ALONE = 1 << 63  # whether the flow served last is the next one as well: no other has cells
TARGET_WORDS = 2  # of 64 bits: WANT and cells that have not arrived; the first flow and ASTRAY
WANTED, ONLY = range(2)
MANY = 1 << 31  # in ASTRAY: the pair has had several flows, and each counts what it lacks; else the pair does for it
NEVER = 1 << 62  # later than any slot

# A flow is 16 words of 32 bits. From the eighth on they are about the x-th flow by source: which it is, when it starts,
# its destination and size.
FLOW_WORDS = 16
RELEASE, DELIVER, AFTER, SIZE, PAIR, DST, FINISH = range(7)
ORDER, NEXT_DST, START, NEXT_SIZE = 8, 9, 10, 12
OF_SEAT, NODE_BITS = 16, 0xFFFF  # in PAIR: the seat, and the source

# What a thread keeps close by of each of up to four channels that it works through. When it sends: in words of 32 bits
# its queue, the seats that may send, the feedback that it owes and owed before; in words of 64 bits the first cell, and
# both words of the pair whose turn it is.
HOLDS, WHO, DEBT, BEFORE = range(4)
FIRST, ITS_COUNTS, ITS_HEAD = range(3)
# When it receives: in which place, and which answers that; what the cell is about (see `look`), its queue, if that has
# a word; the cell, both words of its pair.
PLACES, ABOUT, QUEUE = range(3)
CELL, GOT, FLOWS = range(3)
KEPT32, KEPT64 = 4, 3

# Why a rack stopped before its time: bits.
WANTS_SEATS, WANTS_POOL, WANTS_WINDOW, TOO_LONG = 1, 2, 4, 8
TIME_IS_UP = 16  # and why one thread has the others stop: of this the rack knows nothing

# acc: what a thread has counted in one launch; then `counted` of the rack, in the same columns, FORWARDED for SENT.
(
    LOCAL, SENT, DELIVERED, RELAYED, MAX_QUEUE, MAX_NODE, MAX_HELD, STOP, SLOT, FINISHED, VISITS, OVER_BOUND,
) = range(12)  # fmt: skip
FORWARDED, ACC = SENT, 8
MOST_VISITS = 0xFFFF  # of a thread in a launch
# in `counted` only: the next slot, why the rack stopped, the epoch from which `leave` counts, the fingerprint, the
# slot in which the last flow starts, and visits by the length that was found
STOPPED, BASE, SUMS, LAST, LENGTHS = STOP, 12, 13, 15, 16
COUNT = LENGTHS + 256


class Shape(NamedTuple):
    """What racks that work together have in common: the arrays are as large for all of them."""

    seats: int  # of a node, a multiple of 64
    pool: int  # cells of a node beyond those that lie beside their queues
    window: int  # cells of a pair that may be out of order, a power of two
    flows: int  # of a rack, at most
    reserve: int  # seats that must be free at a node when a slot begins


class Common(NamedTuple):
    """What no slot changes and all racks share: see `columns`, `Shape`, and where arrays begin.

    w places, n nodes, k seats of a node, v values of feedback; h = seat * n + i is a pair, q = p * row + i a queue.
    """

    n: int
    channels: int
    epoch: int
    delay: int
    self_place: int
    ready_queues: int
    age_interval: int
    aged: int
    shortest: int
    half: int
    row: int
    answer_offset: int
    feedback: int
    rest: int  # slots from the end of a pair until its seat may be taken
    seats: int
    room: int  # of the pool of a node
    window: int
    reserve: int
    queues: int  # w * row
    air: int  # delay + 2: slots of which the wire is kept
    all_lit: int  # places before it in which every node sends
    apart: int  # words that lie between two that a thread keeps
    quick: int  # whether four channels are looked at at once: ready queues, up to 64 seats, channels that suit
    # A cell in one word: OWN, its number modulo 2^seq_bits, destination, seat, source (or no bits of it), flow.
    flow_bits: int
    source_bits: int
    seat_bits: int
    node_bits: int
    seq_bits: int
    # u64
    pairs: int  # [h, SOURCE_WORDS]
    ends: int  # [h, TARGET_WORDS]
    since: int  # [h]         the slot in which it became busy
    rested: int  # [h]        slot from which its seat may be taken, or NEVER
    cells: int  # [RING, q]   the first cells of a queue, by the epoch in which they leave
    notes: int  # [TURNS, (v + 1) / 2, q]  feedback about the queue, by the epoch in which it was said; see above
    pool: int  # [room, i]    the others
    early: int  # [h, window / 64]
    used: int  # [x, i]       seats that are taken, or were and nobody has looked
    inflow_since: int  # [i]
    inflow_slots: int  # [i]
    # u32
    held: int  # [q]          see above
    owed: int  # [v, q]       see above; by the epoch in which it is first said
    served: int  # [h]        1 + the flow served last, unless its pair is alone
    spill: int  # [q]         first and last of the rest of a queue, in the pool of i
    after_pool: int  # [room, i]  the next in its queue, or in the list of free ones
    free: int  # [3, i]       first free of the pool; how many were never used; how many are in use
    told: int  # [i]          feedback that was given an epoch ago on the self-mirrored link
    left: int  # [i]          1 + seat of the own cell that left on the self-mirrored link now
    inflow: int  # [j]        unfinished flows towards j
    # near64
    able: int  # [x, i]       seats with cells left to release
    due: int  # [i]           slot in which the next flow starts
    what: int  # [a, c, i]    the wire: cells, by slot modulo a
    # near32
    waiting: int  # [i]       cells in i's queues
    received: int  # [i]
    departed: int  # [i]      cells sent, modulo 2^32
    incast: int  # [2, j]     living pairs towards j, as it is told in slots by which two …
    change: int  # [2, j]     … and what has changed of it, which the other is told later
    until: int  # [n + 1]     where the flows of i begin in the order by source
    upcoming: int  # [i]      place in the order by source of its next flow …
    coming: int  # [3, i]     … which it is, its destination and its cells
    # tables, int32
    first: int  # [w]         shift comes before it
    last: int  # [w]
    mirror: int  # [w]        and, from AGO_SHIFT on, how many epochs ago was said what is known when it is served
    place: int  # [4n]
    late: int  # [2e]
    tables: np.ndarray


class Racks(NamedTuple):
    """The blocks, their first axis the rack."""

    u64: np.ndarray
    u32: np.ndarray
    leave: np.ndarray  # uint16 [p / PACK, seat, i, p % PACK]  1 + the epoch from which the next cell may leave
    leave4: np.ndarray  # the same memory, uint64: four channels a word
    flows: np.ndarray  # uint32 [f, FLOW_WORDS]
    near64: np.ndarray  # what a slot looks at most often: a device keeps it close by, if it fits
    near32: np.ndarray
    few: np.ndarray  # uint32 [p / PER_WORD, i]  of most queues what the word would say, two bits each
    counted: np.ndarray  # int64, see COUNT


class Rack(NamedTuple):
    """The blocks of one rack, and what a thread keeps."""

    u64: np.ndarray
    u32: np.ndarray
    leave: np.ndarray
    leave4: np.ndarray
    flows: np.ndarray
    near64: np.ndarray
    near32: np.ndarray
    few: np.ndarray
    counted: np.ndarray
    passed: np.ndarray  # int32: by 32 threads, the slots before it have been taken in
    kept64: np.ndarray  # [(c * KEPT64 + k) * apart]
    kept32: np.ndarray


class View(NamedTuple):
    """The words of one rack by their names, for a program on the processor."""

    held: np.ndarray
    few: np.ndarray
    owed: np.ndarray
    notes: np.ndarray
    spill: np.ndarray
    cells: np.ndarray
    pool: np.ndarray
    after_pool: np.ndarray
    free: np.ndarray
    used: np.ndarray
    early: np.ndarray
    leave: np.ndarray
    told: np.ndarray
    left: np.ndarray
    able: np.ndarray
    since: np.ndarray  # int64 [h]
    seq: np.ndarray  # uint32 [h]  cells released
    unsent: np.ndarray  # uint32 [h]  cells that the flow whose turn it is has not released
    next: np.ndarray  # uint32 [h]  which that is
    head: np.ndarray  # uint64 [h]  that and more, see above
    served: np.ndarray  # uint32 [h]
    want: np.ndarray  # uint32 [h]  every cell before this one has arrived
    undelivered: np.ndarray  # uint32 [h]
    only: np.ndarray  # uint32 [h]  its first flow
    astray: np.ndarray  # uint32 [h]  cells that wait for an earlier one, and MANY
    rested: np.ndarray  # int64 [h]
    waiting: np.ndarray
    received: np.ndarray
    departed: np.ndarray
    due: np.ndarray
    what: np.ndarray
    incast: np.ndarray  # uint32 [2, n]
    inflow: np.ndarray
    inflow_since: np.ndarray
    inflow_slots: np.ndarray
    upcoming: np.ndarray
    coming: np.ndarray
    until: np.ndarray
    release: np.ndarray  # uint32 [f], but of a flow that is `next` of its pair
    deliver: np.ndarray
    after: np.ndarray
    size: np.ndarray
    pair: np.ndarray
    dst: np.ndarray
    finish: np.ndarray  # int64 [f]
    order: np.ndarray  # uint32 [x], as the next two
    next_dst: np.ndarray
    next_size: np.ndarray
    start: np.ndarray  # int64 [x]
    tally: np.ndarray
    sums: np.ndarray
    lengths: np.ndarray


class Layout(NamedTuple):
    """Where arrays begin, as `Common` has it, and how many words each block has."""

    starts: dict
    blocks: dict  # name -> (words, kind)
    within: dict  # name of an array -> that of its block


def air_of(plan) -> int:
    """Slots of which the wire is kept: those under way, one that is written, and one that some may still be reading."""
    return int(plan.numbers[col.DELAY]) + 2


def lay_out(plan, shape: Shape) -> Layout:
    """The arrays of a rack of this shape, one behind the other in their blocks."""
    numbers, w = plan.numbers, len(plan.shift)
    n, channels, row = int(numbers[col.N]), int(numbers[col.CHANNELS]), int(numbers[col.ROW])
    air, v = air_of(plan), int(numbers[col.FEEDBACK])
    seats, pool, window, _, _ = shape
    q, k, wire, groups = w * row, seats * n, air * channels * n, seats // 64
    blocks = {
        "u64": dict(
            pairs=SOURCE_WORDS * k, ends=TARGET_WORDS * k, since=k, rested=k, cells=RING * q,
            notes=TURNS * words_of(v) * q, pool=pool * n, early=k * window // 64, used=groups * n, inflow_since=n,
            inflow_slots=n,
        ),
        "u32": dict(
            held=q, owed=v * q, served=k, spill=q, after_pool=pool * n, free=3 * n, told=n, left=n, inflow=n,
        ),
        "near64": dict(able=groups * n, due=n, what=wire),
        "near32": dict(waiting=n, received=n, departed=n, incast=2 * n, change=2 * n, until=n + 1, upcoming=n,
                       coming=3 * n),
    }  # fmt: skip
    starts, sizes, within = dict[str, int](), dict[str, tuple[int, type]](), dict[str, str]()
    for block, arrays in blocks.items():
        at = 0
        for name, count in arrays.items():
            starts[name], within[name] = at, block
            at += -(-count // 4) * 4  # records lie within their sector of 32 bytes
        sizes[block] = at, np.uint64 if block.endswith("64") else np.uint32
    sizes["leave"] = -(-w // PACK) * PACK * k, np.uint16
    sizes["few"] = -(-w // PER_WORD) * n, np.uint32
    sizes["flows"] = _flows(shape) * FLOW_WORDS, np.uint32
    sizes["counted"] = COUNT, np.int64
    return Layout(starts, sizes, within)


def words_of(values: int) -> int:
    """Words for so many values of feedback, two to a word."""
    return -(-values // 2)


def _flows(shape: Shape) -> int:
    """Records of flows: two at least, or Numba takes the words of the only one for neighbours, and compiles anew."""
    return max(shape.flows, 2)


def cell_bits(n: int, shape: Shape) -> dict:
    """How a cell is packed: as many bits as its parts need, and the flow has the rest."""
    node, seat, seq = max(n - 1, 1).bit_length(), (shape.seats - 1).bit_length(), shape.window.bit_length()
    flow = 63 - seq - node - seat
    source = node if (shape.flows + 1).bit_length() <= min(flow - node, 32) else 0
    return dict(
        flow_bits=min(flow - source, 32), source_bits=source, seat_bits=seat, node_bits=node, seq_bits=seq
    )  # fmt: skip


def view_of(plan, shape: Shape, one: Racks) -> View:
    """The words of one rack by their names; `one` has the blocks of that rack alone."""
    at, v = lay_out(plan, shape).starts, int(plan.numbers[col.FEEDBACK])
    numbers, w = plan.numbers, len(plan.shift)
    n, row, k = int(numbers[col.N]), int(numbers[col.ROW]), shape.seats * int(numbers[col.N])
    q, groups, wire = w * row, shape.seats // 64, int(numbers[col.CHANNELS]) * n * air_of(plan)
    pool, f = shape.pool, _flows(shape)

    def some(block, name, count):
        return getattr(one, block)[at[name] : at[name] + count]

    pairs, ends = some("u64", "pairs", SOURCE_WORDS * k), some("u64", "ends", TARGET_WORDS * k)
    pair32, end32, flow32 = pairs.view(np.uint32), ends.view(np.uint32), one.flows[: f * FLOW_WORDS]
    flow64 = flow32.view(np.int64)
    return View(
        held=some("u32", "held", q), few=one.few, owed=some("u32", "owed", v * q),
        notes=some("u64", "notes", TURNS * words_of(v) * q),
        spill=some("u32", "spill", q), cells=some("u64", "cells", RING * q), pool=some("u64", "pool", pool * n),
        after_pool=some("u32", "after_pool", pool * n), free=some("u32", "free", 3 * n),
        used=some("u64", "used", groups * n), early=some("u64", "early", k * shape.window // 64), leave=one.leave,
        told=some("u32", "told", n), left=some("u32", "left", n), able=some("near64", "able", groups * n),
        since=some("u64", "since", k).view(np.int64), seq=pair32[0::4], unsent=pair32[1::4], next=pair32[2::4],
        head=pairs[1::2], served=some("u32", "served", k), want=end32[0::4],
        undelivered=end32[1::4], only=end32[2::4], astray=end32[3::4],
        rested=some("u64", "rested", k).view(np.int64), waiting=some("near32", "waiting", n),
        received=some("near32", "received", n), departed=some("near32", "departed", n),
        due=some("near64", "due", n).view(np.int64), what=some("near64", "what", wire),
        incast=some("near32", "incast", 2 * n).reshape(2, n), inflow=some("u32", "inflow", n),
        inflow_since=some("u64", "inflow_since", n).view(np.int64),
        inflow_slots=some("u64", "inflow_slots", n).view(np.int64), upcoming=some("near32", "upcoming", n),
        coming=some("near32", "coming", 3 * n),
        until=some("near32", "until", n + 1), release=flow32[RELEASE::16], deliver=flow32[DELIVER::16],
        after=flow32[AFTER::16], size=flow32[SIZE::16], pair=flow32[PAIR::16], dst=flow32[DST::16],
        finish=flow64[FINISH // 2 :: 8], order=flow32[ORDER::16],
        next_dst=flow32[NEXT_DST::16], next_size=flow32[NEXT_SIZE::16], start=flow64[START // 2 :: 8],
        tally=one.counted, sums=one.counted[SUMS : SUMS + 2].view(np.uint64), lengths=one.counted[LENGTHS:],
    )  # fmt: skip


def blank(plan, shape: Shape) -> Racks:
    """The blocks of one rack, zeros."""
    return racks_of({name: np.zeros(count, kind) for name, (count, kind) in lay_out(plan, shape).blocks.items()})


def racks_of(blocks: dict) -> Racks:
    """Such blocks, with the second view of `leave`."""
    return Racks(**blocks, leave4=blocks["leave"].view(np.uint64))


def size(plan, shape: Shape) -> int:
    """Bytes of one rack on the device."""
    return sum(count * np.dtype(kind).itemsize for count, kind in lay_out(plan, shape).blocks.values())
