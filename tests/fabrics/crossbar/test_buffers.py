"""Buffers of the crossbar, seen after every slot: none holds more than it may, and every cell leaves once, in order."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from runs import carry, draw, slots

from weft.fabrics.crossbar import Crossbar, layout
from weft.fabrics.crossbar.state import LENGTH, Count, Level
from weft.units import ns
from weft.workload.arrivals import Poisson
from weft.workload.flows import Flows
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, Multicast, OnOff

EVERY = {
    "fifo": {"buffers": "fifo"},
    "voq": {"buffers": "voq", "iterations": 2},
    "shared": {"buffers": "shared"},
    "cioq": {"buffers": "cioq"},
    "cicq": {"buffers": "cicq"},
    "hierarchical": {"buffers": "hierarchical"},
    "gcq": {"buffers": "gcq"},
    "oq": {"buffers": "oq"},
    "load-balanced": {"buffers": "load-balanced"},
    "ccf": {"buffers": "cioq", "scheduler": "ccf"},
    "lihp": {"buffers": "cioq", "scheduler": "lihp"},
}
every = pytest.mark.parametrize("kind", EVERY)


def switch(kind, **options):
    return Crossbar(**{"ports": 4, "group": 2, **EVERY[kind], **options})


# bounds


def buffers(fabric):
    """Name -> (queues in the order of the state, cells that one of them may hold); None: there is no bound."""
    n, rows, depth = fabric.ports, fabric.ports // fabric.group, fabric.queue_depth
    return {
        "fifo": {"input": (n, n * depth)},
        "voq": {"queue": (n * n, depth)},
        "shared": {"addresses": (n * n, n * depth)},
        "cioq": {"queue": (n * n, depth), "output": (n, None)},
        "cicq": {"queue": (n * n, depth), "crosspoint": (n * n, fabric.crosspoint)},
        "hierarchical": {"queue": (n * rows, depth), "output": (rows * n, fabric.output)},
        "gcq": {
            "queue": (n * rows, depth),
            "addresses": (rows * n, fabric.inner * fabric.group),
            "output": (rows * n, fabric.output),
        },
        "oq": {"output": (n, n * depth)},
        "load-balanced": {"queue": (n * n, depth)},
    }[fabric.buffers]


def memories(fabric):
    """(memories, cells that one of them may hold) of buffers that share some."""
    n, rows = fabric.ports, fabric.ports // fabric.group
    return {"shared": (n, n * fabric.queue_depth), "gcq": (rows * rows, fabric.inner * fabric.group)}.get(
        fabric.buffers, (0, 0)
    )


def fullest(fabric, state):
    """Name of a buffer -> (most cells in one of them now, cells it may hold)."""
    lengths, at, found = state.queue.reshape(-1, 4)[:, LENGTH].astype(int), 0, {}
    for name, (number, bound) in buffers(fabric).items():
        found[name] = int(lengths[at : at + number].max()), bound
        at += number
    if len(found) == 1:  # the longest that any queue has been, also within the slot
        found[name] = int(state.level[Level.PEAK]), bound
    number, bound = memories(fabric)
    if number:
        found["memory"] = int(state.used[:number].max()), bound
    return found


OVERLOADS = [
    HotOutput(load=1, hot=0.7, slots=250),
    OnOff(load=1, burst=12, slots=250),
    Bernoulli(load=1.6, slots=250),
    Multicast(load=1, fanout=2, slots=250),
]


@every
@pytest.mark.parametrize("more", [0, 1])
def test_every_buffer_fills_to_its_depth_and_never_beyond(kind, more):
    """With a cell more in every buffer the same overload fills that too: a bound that is off by one is seen."""
    sizes = {"depth": 3 + more, "crosspoint": 2 + more, "inner": 2 + more, "output": 2 + more}
    fabric, peak, bounds = switch(kind, **sizes, crossing=1), Counter(), {}
    for traffic in OVERLOADS:
        for slot, state, _ in slots(fabric, traffic):
            for name, (cells, bound) in fullest(fabric, state).items():
                bounds[name], peak[name] = bound, max(peak[name], cells)
                assert bound is None or cells <= bound, f"{traffic}: {cells} cells in a {name} in slot {slot}"
            assert state.level[Level.FRESH] <= len(state.cells)
    assert {name: peak[name] for name, bound in bounds.items() if bound} == {k: v for k, v in bounds.items() if v}


@every
def test_a_full_switch_refuses_what_it_cannot_hold_and_nothing_else(kind):
    """Everything fits if a queue has room for all that ever comes for it."""
    for traffic in OVERLOADS[:2]:
        cells = sum(len(came) for came in draw(switch(kind), traffic).arrivals())
        assert carry(switch(kind, depth=cells), traffic)[2].lost.causes["full"] == 0
        assert carry(switch(kind, depth=1, inner=1, output=1), traffic)[2].lost.causes["full"] > 0


# flows


def flows_of(seed, n=4):
    return Poisson(load=0.8, sizes="uniform:1B,900B", flows=60).draw(nodes=n, link=switch("voq").link, seed=seed)


@every
@pytest.mark.parametrize("seed", [1, 2])
def test_every_cell_of_every_flow_leaves_once_not_before_it_came_and_but_for_load_balanced_in_order(kind, seed):
    """A flow sends at most a cell in a slot, so flow and slot of arrival name a cell."""
    fabric, flows = switch(kind, depth=2, output=1, inner=1), flows_of(seed)
    cells = -(-flows.size // fabric.payload)
    got, run = defaultdict(list), list(slots(fabric, flows, seed))
    for slot, _, moves in run:
        for move in moves:
            assert (move.i, move.j) == (flows.src[move.flow], flows.dst[move.flow])
            assert flows.start[move.flow] <= move.born * fabric.slot and move.born <= slot
            got[move.flow].append(move.born)
    assert [len(got[f]) for f in range(len(flows))] == cells.tolist()
    assert all(len(set(born)) == len(born) for born in got.values())
    assert all(born == sorted(born) for born in got.values()) == (kind != "load-balanced")
    state = run[-1][1]
    assert not state.flow_due.any() and not state.flow_left.any()
    assert state.count[Count.DELIVERED] == state.count[Count.OFFERED] == cells.sum()
    assert state.count[Count.LOST] == 0 and state.level[Level.HELD] == 0


@every
def test_without_flow_control_a_flow_lacks_exactly_the_cells_that_were_lost(kind):
    fabric = switch(kind, depth=1, inner=1, output=1, flow_control=False)
    flows = Flows.of(nodes=4, src=[0, 1, 2, 3], dst=[1, 2, 1, 1], size=900, start=0)
    run = list(slots(fabric, flows))
    got, state = Counter(move.flow for _, _, moves in run for move in moves), run[-1][1]
    cells = -(-flows.size // fabric.payload)
    assert state.count[Count.OFFERED] == cells.sum()
    assert state.count[Count.LOST] == cells.sum() - got.total() > 0
    assert state.flow_due.tolist() == [cells[f] - got[f] for f in range(4)]
    assert [f for f in range(4) if state.flow_finish[f] >= 0] == [f for f in range(4) if got[f] == cells[f]]


@every
def test_flows_that_lost_a_cell_are_known_in_every_slot(kind):
    """From the cells that were let in: a flow's are inside until they leave, and what it sent beside them is lost."""
    fabric = switch(kind, depth=1, inner=1, output=1, flow_control=False)
    flows = Flows.of(nodes=4, src=[0, 1, 2, 3, 0], dst=[1, 2, 1, 1, 3], size=[900, 300, 500, 60, 400], start=0)
    cells, got, seen = -(-flows.size // fabric.payload), np.zeros(5, int), []
    for _, state, moves in slots(fabric, flows):
        np.add.at(got, [move.flow for move in moves], 1)
        lost = layout.lost_flows(fabric, state)
        assert not (lost & (got == cells)).any()
        assert lost.sum() <= state.count[Count.LOST] and lost.any() == (state.count[Count.LOST] > 0)
        assert not seen or (seen[-1] <= lost).all()  # what is lost stays lost
        seen.append(lost)
    assert (seen[-1] == (got < cells)).all() and seen[-1].sum() > 0


@pytest.mark.parametrize(("kind", "passes"), [("voq", True), ("cioq", True), ("cicq", True), ("fifo", False)])
def test_a_sender_passes_over_a_flow_whose_own_queue_is_full(kind, passes):
    """Where the buffer is one, the flow in turn holds up the others."""
    size = 40 * switch(kind).payload
    flows = Flows.of(nodes=4, src=[0, 2, 3, 0], dst=[1, 1, 1, 3], size=[20 * size, 20 * size, 20 * size, size], start=0)
    _, state, seen = carry(switch(kind, depth=2), flows)
    assert (seen.finish >= 0).all() and seen.lost.total == 0
    assert (state.flow_finish[3] <= 2 * 40 + 10) == passes  # with two flows in its ring it gets every other slot


# flow control of traffic


@every
def test_with_flow_control_cells_wait_at_their_sender_in_order_and_none_is_lost(kind):
    fabric, n = switch(kind, depth=1, inner=1, output=1, flow_control=True), 4
    drawn = draw(fabric, HotOutput(load=1, hot=0.6, slots=300))
    offered = [[] for _ in range(n)]
    for slot, came in enumerate(drawn.arrivals()):
        for i, (j,) in came:
            offered[i].append((slot, j))
    run = list(slots(fabric, drawn))
    left, state = [(move.i, move.born, move.j) for _, _, moves in run for move in moves], run[-1][1]
    assert state.count[Count.LOST] == state.count[Count.LINE_BUSY] == 0
    assert state.count[Count.OFFERED] == sum(map(len, offered))
    assert len(set(left)) == len(left) < sum(map(len, offered))
    for i in range(n):
        assert {(born, j) for k, born, j in left if k == i} <= set(offered[i])
        for j in range(n):  # one after another, and none is passed over
            mine = [born for k, born, to in left if (k, to) == (i, j)]
            assert mine == [born for born, to in offered[i] if to == j][: len(mine)]


# multicast


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind not in ("ccf", "lihp")])
def test_every_copy_of_a_multicast_cell_leaves_once_by_its_own_output(kind):
    fabric, settled = switch(kind, depth=200), 250
    drawn = draw(fabric, Multicast(load=0.5, fanout=3, slots=settled + 150))
    asked = [
        (i, slot, j) for slot, came in enumerate(drawn.arrivals()) for i, outputs in came for j in outputs
    ]  # fmt: skip
    got = [(move.i, move.born, move.j) for _, _, moves in slots(fabric, drawn) for move in moves]
    assert len(set(got)) == len(got)
    assert set(got) <= set(asked)
    assert {cell for cell in asked if cell[1] < settled} <= set(got)
    assert len({(i, born) for i, born, _ in got}) < len(got)  # there were some for several outputs


def test_a_fifo_splits_a_fanout_over_slots_but_lets_no_cell_overtake():
    fabric, last, splits = switch("fifo", scheduler="eslip"), {}, 0
    for slot, _, moves in slots(fabric, Multicast(load=0.9, fanout=3, slots=400)):
        for i in {move.i for move in moves}:
            now = {move.born for move in moves if move.i == i}
            assert len(now) == 1  # one input sends one cell in a slot, to as many outputs as it can
            born, before = now.pop(), last.get(i, (-1, -1))
            assert born >= before[1]
            splits += born == before[1] and slot > before[0]
            last[i] = slot, born
    assert splits > 20


def test_a_shared_memory_holds_a_multicast_cell_until_its_last_copy_has_left():
    """By hand: an address is taken when a cell comes and is free again a slot after its last copy left."""
    fabric = switch("shared", depth=50)
    drawn = draw(fabric, Multicast(load=0.8, fanout=3, slots=300))
    came, left, returning = list(drawn.arrivals()), {}, [0] * 4
    for slot, state, moves in slots(fabric, drawn):
        for i, outputs in came[slot]:
            left[i, slot] = set(outputs)
        returning = [0] * 4
        for move in moves:
            left[move.i, move.born].discard(move.j)
            if not left[move.i, move.born]:
                del left[move.i, move.born]
                returning[move.i] += 1
        stored = [sum(key[0] == i for key in left) + returning[i] for i in range(4)]
        assert state.used[:4].tolist() == stored, slot
    assert state.count[Count.MEMORY] > 4


# memory


TRAFFICS = [
    Bernoulli(load=0.5, slots=200),
    Bernoulli(load=2.5, slots=100),
    Diagonal(load=0.5, slots=100),
    OnOff(load=0.5, slots=100),
    Multicast(load=0.5, fanout=2, slots=100),
]


@every
@pytest.mark.parametrize("ports", [2, 6, 64, 66])
@pytest.mark.parametrize("flow_control", [None, True, False])
def test_memory_is_predicted_to_the_byte(kind, ports, flow_control):
    fabric = switch(kind, ports=ports, flow_control=flow_control)
    demands = [draw(fabric, t) for t in TRAFFICS if flow_control is None or not isinstance(t, Multicast)]
    demands.append(Poisson(load=0.5, sizes="fixed:100", flows=20).draw(nodes=ports, link=fabric.link, seed=1))
    sizes = []
    for demand in demands:
        sizes.append(fabric.memory(demand))
        assert sizes[-1] == sum(array.nbytes for array in fabric.prepare(demand, seed=0).state), demand
    assert len(set(sizes)) > 2


@pytest.mark.parametrize("scheduler", ["islip", "pim", "lqf", "mwm"])
def test_memory_is_predicted_to_the_byte_for_every_sort_of_scheduler(scheduler):
    fabric = Crossbar(ports=32, scheduler=scheduler, iterations=3)
    demand = draw(fabric, TRAFFICS[0])
    assert fabric.memory(demand) == sum(array.nbytes for array in fabric.prepare(demand, seed=0).state)


# timing


def by_hand(fabric, slot, i, j):
    """Slot in which an unhindered cell leaves a GCQ switch, followed from cycle to cycle of the fast clock."""
    fast, group = int(fabric.phases), fabric.group
    cycle = (slot + 1) * fast + fabric.crossing  # written with the slow clock, then through the synchroniser
    while cycle % group != i % group:  # the memory is written from one port in a cycle
        cycle += 1
    cycle += fabric.memory_cycles + (fabric.ports // group if fabric.pipeline is None else fabric.pipeline)
    if cycle % group == i % group == j % group and not fabric.memory_cycles and fabric.pipeline == 0:
        cycle += 1  # a memory is read before it is written
    while cycle % group != j % group:  # … and read for one
        cycle += 1
    cycle += 1 + fabric.crossing * fast  # written with the fast clock, then through the other synchroniser
    return max(-(-cycle // fast), slot + 1)


@pytest.mark.parametrize(
    "options",
    [{}, {"crossing": 0}, {"crossing": 3, "pipeline": 0}, {"pipeline": 0, "memory_cycles": 0}, {"speedup": 2}],
    ids=str,
)
def test_a_lone_cell_crosses_between_the_clocks_of_a_gcq_switch_cycle_by_cycle(options):
    fabric = Crossbar(ports=8, buffers="gcq", group=4, **options)
    spans = [(k * 41 + k % 4, k % 8, (k * 3 + k // 8) % 8) for k in range(256)]  # far apart, so that none meets another
    spans = [(slot, i, j) for slot, i, j in spans if i != j]
    flows = Flows.of(
        nodes=8, src=[i for _, i, _ in spans], dst=[j for _, _, j in spans], size=1,
        start=[slot * fabric.slot for slot, _, _ in spans],
    )  # fmt: skip
    left = carry(fabric, flows)[1].flow_finish.tolist()
    assert left == [by_hand(fabric, *span) for span in spans]
    assert min(gone - slot for gone, (slot, _, _) in zip(left, spans, strict=True)) >= fabric.least_delay


def test_no_cell_of_a_busy_gcq_switch_is_faster_than_a_lone_one():
    fabric, waited = Crossbar(ports=8, buffers="gcq"), set()
    for slot, _, moves in slots(fabric, Bernoulli(load=0.9, slots=400)):
        for move in moves:
            least = by_hand(fabric, move.born, move.i, move.j)
            assert slot >= least
            waited.add(slot - least)
    assert 0 in waited and max(waited) > 2


def test_a_slot_is_the_time_of_a_cell_on_the_line():
    fabric = Crossbar(ports=4)
    assert fabric.slot == fabric.cell * 8 * 10**12 // fabric.link and fabric.slot / ns == pytest.approx(25.6)
    assert np.isclose(fabric.payload_rate, fabric.link * fabric.payload / fabric.cell)
