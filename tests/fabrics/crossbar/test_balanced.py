"""The load-balanced switch: two crossbars that turn by themselves, against what follows from that by hand."""

from math import comb

import pytest
from runs import carry, slots

import weft
from weft.errors import BadInput
from weft.fabrics.crossbar import Crossbar, bounds
from weft.fabrics.crossbar.state import Count
from weft.workload.flows import Flows
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, LogDiagonal, Multicast, OnOff, Unbalanced

UNBOUNDED = 10**6
TRAFFICS = [
    Bernoulli(load=0.95, slots=400),
    Bernoulli(load=1.4, slots=200),
    Diagonal(load=1, slots=300),
    OnOff(load=0.9, burst=8, slots=400),
    Multicast(load=0.9, fanout=3, slots=300),
]


def balanced(ports=6, depth=UNBOUNDED, **options):
    return Crossbar(ports=ports, buffers="load-balanced", depth=depth, **options)


# by hand


@pytest.mark.parametrize("ports", [2, 5, 6])
def test_a_lone_cell_leaves_when_the_second_crossbar_has_turned_to_its_output(ports):
    """It comes to middle port m = i + t and leaves in the next slot in which m - t is j: i - j slots on, modulo N."""
    pairs = [(i, j) for i in range(ports) for j in range(ports) if i != j]
    spans = [(k * (3 * ports + 1), i, j) for k, (i, j) in enumerate(pairs)]
    fabric = balanced(ports, cell=64)
    flows = Flows.of(
        nodes=ports, src=[i for _, i, _ in spans], dst=[j for _, _, j in spans], size=1,
        start=[slot * fabric.slot for slot, _, _ in spans],
    )  # fmt: skip
    _, state, seen = carry(fabric, flows)
    assert state.flow_finish.tolist() == [slot + (i - j) % ports for slot, i, j in spans]
    assert seen.sections["out_of_order"] == 0


def test_a_cell_from_a_port_to_itself_waits_a_whole_turn():
    """No cell leaves a memory in the slot in which it came."""
    _, _, seen = carry(balanced(8), Unbalanced(load=0.9, w=1, slots=400))
    assert {seen.sections["delay_slots"][key] for key in ("mean", "p50", "max")} == {8}


# laws


@pytest.mark.parametrize("ports", [5, 6])
@pytest.mark.parametrize("traffic", TRAFFICS, ids=lambda traffic: type(traffic).__name__)
def test_every_cell_goes_by_the_middle_port_to_which_the_rotations_take_it(traffic, ports):
    for slot, _, moves in slots(balanced(ports), traffic):
        middle = [(move.j + slot) % ports for move in moves]
        assert len(set(middle)) == len(middle)  # which sends one cell in a slot
        assert middle == [(move.i + move.born) % ports for move in moves]
        assert all(move.born < slot for move in moves)


@pytest.mark.parametrize("depth", [1, 3, UNBOUNDED])
def test_cells_out_of_order_are_those_that_left_after_a_younger_one_of_their_input_and_output(depth):
    newest, late = {}, 0
    for _, state, moves in slots(balanced(depth=depth), OnOff(load=0.95, burst=6, slots=2000)):
        for move in moves:
            late += move.born < newest.get((move.i, move.j), -1)
            newest[move.i, move.j] = max(move.born, newest.get((move.i, move.j), -1))
        assert state.count[Count.OUT_OF_ORDER] == late
    assert (late > 0) == (depth > 1)  # where nothing queues, all cells of a pair wait as long


# theory


@pytest.mark.parametrize(("ports", "load"), [(2, 0.5), (4, 0.3), (8, 0.7), (16, 0.8)])
def test_the_closed_form_of_the_delay_is_that_of_the_chain(ports, load):
    """The queue of an output at a middle port, from slot to slot of a turn, its chances added up."""
    most, chance = 300, load / ports
    law = [comb(ports, k) * chance**k * (1 - chance) ** (ports - k) for k in range(ports + 1)]
    queue = [1.0] + [0.0] * most  # when the output has been served, before the cell of that slot comes in
    for _ in range(4000):
        after = [0.0] * (most + 1)
        for length, share in enumerate(queue):
            for k, came in enumerate(law):  # in as many slots as there are ports; then one leaves
                after[min(max(length + k - 1, 0), most)] += share * came
        change, queue = max(abs(a - b) for a, b in zip(after, queue, strict=True)), after
        if change < 1e-14:
            break
    left = sum(length * share for length, share in enumerate(queue))
    inside = [left + chance * slot for slot in range(1, ports + 1)]  # at the end of every slot of a turn
    assert sum(inside) / ports / chance == pytest.approx(bounds.load_balanced_delay(ports, load), rel=1e-6)


@pytest.mark.parametrize(("ports", "load"), [(2, 0.5), (7, 0.8), (16, 0.3), (16, 0.7), (16, 0.9), (32, 0.5)])
def test_cells_wait_as_long_as_the_closed_form_says(ports, load):
    _, _, seen = carry(balanced(ports), Bernoulli(load=load, slots=300_000, warmup=30_000))
    said = bounds.load_balanced_delay(ports, load)
    assert seen.sections["delay_slots"]["mean"] == pytest.approx(said, rel=0.01)


@pytest.mark.parametrize("traffic", [
    Bernoulli(load=0.97, slots=60_000, warmup=20_000), Diagonal(load=0.97, slots=60_000, warmup=20_000),
    LogDiagonal(load=0.97, slots=60_000, warmup=20_000), Unbalanced(load=0.97, w=0.5, slots=60_000, warmup=20_000),
])  # fmt: skip
def test_it_carries_all_of_traffic_of_which_islip_carries_less(traffic):
    carried = [
        carry(fabric, traffic)[2].sections["cells_per_slot"]["mean"]
        for fabric in (balanced(8), Crossbar(ports=8, depth=UNBOUNDED))
    ]
    assert carried[0] == pytest.approx(0.97, abs=0.005)
    assert (carried[1] < 0.9) == (not isinstance(traffic, Bernoulli))


def test_a_hot_output_sends_in_every_slot():
    _, _, seen = carry(balanced(8), HotOutput(load=1, hot=0.4, slots=3000, warmup=1000))
    assert seen.sections["cells_per_slot"]["max"] == 1


# what it says


def test_a_run_of_it_is_the_same_on_every_machine():
    _, _, seen = carry(balanced(64, depth=64), Bernoulli(load=0.8, slots=20_000))
    assert seen.fingerprint == "8da2beadc6f00221df0083e0bab35376"


def test_it_says_that_nothing_is_scheduled_and_how_many_cells_were_overtaken():
    _, _, seen = carry(balanced(8, scheduler="islip"), Bernoulli(load=0.5, slots=500))
    assert seen.notes == ("load-balanced buffers need no matching: the scheduler islip is not used",)
    assert seen.sections["scheduler"] == {"name": "none", "iterations_mean": None, "iterations_max": None}
    result = weft.run(balanced(8), Bernoulli(load=0.5, slots=500), seed=1)
    lines = dict(Crossbar.facts(result.summary()))
    assert lines["order"] == f"{seen.sections['out_of_order']} cells left after one that came later"
    assert list(result.summary()["latency_ns"]["stages"]) == ["memory of the middle port"]


@pytest.mark.parametrize(("options", "message"), [
    ({"speedup": 2}, "speedup must be left out with load-balanced buffers, not 2"),
    ({"depth": 0}, "depth must be at least 1, not 0"),
])  # fmt: skip
def test_what_it_cannot_have_is_named(options, message):
    with pytest.raises(BadInput) as raised:
        Crossbar(ports=8, buffers="load-balanced", **options)
    assert str(raised.value) == message
