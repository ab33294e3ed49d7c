"""The crossbar: known truths of switching, laws that hold in every slot, and what it says of bad input."""

import math

import numpy as np
import pytest
from runs import carry

from weft.errors import BadInput, MonitorTripped
from weft.fabrics.crossbar import Crossbar, bounds, reference
from weft.fabrics.crossbar.state import Count
from weft.units import Gbps, ns
from weft.workload.arrivals import Poisson
from weft.workload.flows import Flows
from weft.workload.traffic import Bernoulli, Diagonal, HotOutput, Multicast, OnOff, Unbalanced

UNBOUNDED = 10**6


def throughput(fabric, traffic, seed=1):
    return carry(fabric, traffic, seed)[2].sections["cells_per_slot"]["mean"]


# truths


@pytest.mark.parametrize("ports", [2, 3, 4, 8])
def test_head_of_line_blocking_costs_what_karol_says(ports):
    saturated = Bernoulli(load=1, slots=40_000, warmup=1000)
    assert throughput(Crossbar(ports=ports, buffers="fifo"), saturated) == pytest.approx(bounds.karol(ports), abs=0.006)


def test_islip_carries_all_of_uniform_traffic_and_less_of_unbalanced():
    deep = Crossbar(ports=16, depth=UNBOUNDED)
    nearly = Bernoulli(load=0.97, slots=150_000, warmup=50_000)  # its queues take N / (1 - load)^2 slots to settle
    assert throughput(deep, nearly) == pytest.approx(0.97, abs=0.002)
    assert throughput(deep, Unbalanced(w=0.5, load=0.99, slots=30_000, warmup=5000)) < 0.9


def test_one_iteration_of_pim_matches_as_many_as_the_formula_says():
    saturated = Bernoulli(load=1, slots=20_000, warmup=4000)
    got = throughput(Crossbar(ports=16, scheduler="pim", depth=UNBOUNDED), saturated)
    assert got == pytest.approx(1 - (1 - 1 / 16) ** 16, abs=0.005)


def test_rrm_falls_behind_islip():
    saturated = Bernoulli(load=0.9, slots=20_000)
    assert throughput(Crossbar(ports=16, scheduler="rrm"), saturated) < 0.65


def test_output_queues_wait_as_long_as_the_formula_says():
    _, _, seen = carry(Crossbar(ports=8, buffers="oq"), Bernoulli(load=0.8, slots=150_000, warmup=1000))
    assert seen.sections["delay_slots"]["mean"] == pytest.approx(bounds.output_queue_wait(8, 0.8), rel=0.02)


@pytest.mark.parametrize("scheduler", ["ccf", "lihp"])
@pytest.mark.parametrize("traffic", [Bernoulli(load=1, slots=3000), OnOff(load=0.95, burst=10, slots=3000),
                                     HotOutput(load=1, hot=0.2, slots=600)])  # fmt: skip
def test_speed_up_two_less_one_nth_sends_every_cell_when_output_queueing_would(scheduler, traffic):
    """Chuang, Goel, McKeown, Prabhakar 1999: here for FIFO output queues, cell for cell."""
    deep = {"ports": 6, "depth": UNBOUNDED}
    _, _, ideal = carry(Crossbar(buffers="oq", **deep), traffic)
    _, _, emulated = carry(Crossbar(buffers="cioq", scheduler=scheduler, **deep), traffic)
    assert emulated.fingerprint == ideal.fingerprint
    assert emulated.sections["later_than_output_queued"] == 0


def test_without_speed_up_cells_leave_later_than_output_queueing_would():
    _, _, seen = carry(Crossbar(ports=6, buffers="cioq", scheduler="ccf", speedup=1), Bernoulli(load=1, slots=500))
    assert seen.sections["later_than_output_queued"] > 0


def test_maximum_weight_carries_diagonal_traffic_that_islip_cannot():
    saturated = Diagonal(load=0.97, slots=30_000, warmup=2000)
    deep = {"ports": 8, "depth": UNBOUNDED}
    assert throughput(Crossbar(scheduler="mwm", **deep), saturated) == pytest.approx(0.97, abs=0.01)
    assert throughput(Crossbar(**deep), saturated) < 0.9


def test_shared_memory_loses_less_than_queues_of_the_same_size():
    bursts = OnOff(load=0.8, burst=20, slots=20_000)
    lost = {
        kind: carry(Crossbar(ports=8, buffers=kind, depth=16, iterations=3), bursts)[2].lost.total
        for kind in ("voq", "shared")
    }
    assert lost["shared"] < lost["voq"] / 5


def test_shared_memory_stores_a_multicast_cell_once():
    """At equal memory, copies per queue run out where one copy does not."""
    cells = Multicast(load=0.95, fanout=8, slots=4000)
    _, state, seen = carry(Crossbar(ports=8, buffers="shared", depth=UNBOUNDED), cells)
    _, _, copies = carry(Crossbar(ports=8, buffers="voq", depth=UNBOUNDED), cells)
    assert seen.sections["memory_cells"]["max"] < state.count[Count.OFFERED]
    waiting = copies.samples["waiting"].max()
    stored = seen.sections["memory_cells"]["max"]
    assert 8 * stored < waiting + 8 * 8 * 8  # eight memories together hold fewer cells than there are copies


def test_iterations_settle_within_a_few_of_log2_n():
    _, _, seen = carry(Crossbar(ports=32, iterations=32), Bernoulli(load=0.9, slots=5000))
    scheduler = seen.sections["scheduler"]
    assert scheduler["iterations_mean"] < math.log2(32) < 32
    assert scheduler["iterations_max"] <= 2 * math.log2(32)


# laws


@pytest.mark.parametrize("ports", [2, 3, 5, 8])
@pytest.mark.parametrize("iterations", [1, 3])
def test_islip_starves_nobody_within_the_proved_bound(ports, iterations):
    """McKeown 1999, section III: a request is served within N^2 slots."""
    fabric = Crossbar(ports=ports, iterations=iterations, depth=UNBOUNDED)
    traffic = Bernoulli(load=1, slots=1500).draw(nodes=ports, seed=2)
    served, longest = {}, 0
    for slot, i, j, born in reference.run(fabric, traffic, seed=2).moves:
        first = max(born, served.get((i, j), -1) + 1)  # the slot in which this cell was first at the head of its queue
        longest = max(longest, slot - first + 1)
        served[i, j] = slot
    assert 1 < longest <= bounds.starvation(ports)


def test_a_matching_that_is_none_stops_the_run():
    fabric = Crossbar(ports=4)
    run = fabric.prepare(Bernoulli(load=1, slots=100).draw(nodes=4), seed=0)
    run.state.count[Count.CLASHES] = 2
    with pytest.raises(MonitorTripped) as raised:
        run.advance()
    assert str(raised.value) == (
        "one cell per port and slot must hold at all times, not be broken 2 times by 1.6384 us"
    )


def test_a_cell_that_vanishes_stops_the_run():
    fabric = Crossbar(ports=4)
    run = fabric.prepare(Bernoulli(load=1, slots=100).draw(nodes=4), seed=0)
    run.state.count[Count.OFFERED] = 1
    with pytest.raises(MonitorTripped, match="conservation must hold at all times"):
        run.advance()


def test_a_run_in_two_halves_is_the_run():
    fabric, traffic = Crossbar(ports=8, buffers="gcq"), Bernoulli(load=0.9, slots=2000)
    drawn, _, whole = carry(fabric, traffic)
    run = fabric.prepare(drawn, seed=1)
    run.advance(until=777 * fabric.slot)
    assert run.slot == 777
    run.advance()
    assert run.observe().fingerprint == whole.fingerprint


def test_a_run_thawed_from_its_arrays_goes_on_as_if_nothing_had_happened():
    for options in ({"buffers": "gcq"}, {"buffers": "cioq", "scheduler": "ccf"}, {"buffers": "load-balanced"}, {}):
        fabric = Crossbar(ports=4, **options)
        drawn, _, whole = carry(fabric, Bernoulli(load=0.95, slots=1500))
        run = fabric.prepare(drawn, seed=1)
        run.advance(until=700 * fabric.slot)
        frozen = {name: array.copy() for name, array in run.freeze().items()}
        thawed = fabric.thaw(drawn, frozen, seed=1)
        thawed.advance()
        assert thawed.observe().fingerprint == whole.fingerprint
        assert thawed.observe().sections == whole.sections
        assert len(frozen["run.cells"]) < len(run.state.cells)


@pytest.mark.parametrize("scheduler", ["ccf", "lihp"])
def test_an_emulating_switch_is_thawed_after_more_slots_than_it_keeps_cells(scheduler):
    """It keeps the slot in which the last cell of an output is due, however late that is."""
    fabric, late = Crossbar(ports=4, buffers="cioq", scheduler=scheduler), 5000
    flows = Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=300, start=[0, late * fabric.slot])
    run = fabric.prepare(flows, seed=1)
    run.advance(until=(late + 3) * fabric.slot)
    assert run.slot > late > len(run.state.cells)
    thawed = fabric.thaw(flows, {name: array.copy() for name, array in run.freeze().items()}, seed=1)
    thawed.advance()
    assert thawed.observe().fingerprint == carry(fabric, flows)[2].fingerprint


def test_the_watcher_is_called_between_strides():
    slots = []
    carry(Crossbar(ports=4), Bernoulli(load=0.5, slots=5000), watch=lambda run: slots.append(run.slot))
    assert slots[:3] == [0, 64, 128] and slots[-1] == 5000 and slots == sorted(slots)  # compiled, then two samples


def test_memory_is_predicted_to_the_byte():
    fabric, drawn = Crossbar(ports=16), Bernoulli(load=0.5, slots=1000).draw(nodes=16)
    assert fabric.memory(drawn) == sum(array.nbytes for array in fabric.prepare(drawn, seed=0).state)


def test_flow_control_loses_nothing_and_its_absence_does():
    saturated = HotOutput(load=1, hot=0.5, slots=3000)
    _, _, seen = carry(Crossbar(ports=4, depth=2, flow_control=True), saturated)
    assert seen.lost.total == 0
    assert carry(Crossbar(ports=4, depth=2), saturated)[2].lost.total > 1000


def test_overload_is_lost_on_the_line_or_waits_at_the_sender():
    _, _, seen = carry(Crossbar(ports=4), Bernoulli(load=2, slots=1000))
    assert seen.lost.causes["line_busy"] == 4000 and seen.carried["offered"] == 8000
    _, _, seen = carry(Crossbar(ports=4, flow_control=True), Bernoulli(load=2, slots=1000))
    assert seen.lost.total == 0 and seen.carried["offered"] == 8000


def test_any_flow_workload_runs_through_the_switch():
    fabric = Crossbar(ports=16, link=100 * Gbps, cell=64, iterations=4)
    flows = Poisson(load=0.5, sizes="fixed:20KB", flows=300).draw(nodes=16, link=fabric.link, seed=1)
    _, _, seen = carry(fabric, flows)
    assert (seen.received == flows.size).all()
    assert (seen.finish - flows.start >= fabric.ideal(flows)).all()
    assert seen.lost.total == 0


def test_a_run_is_the_same_on_every_machine():
    _, _, seen = carry(Crossbar(ports=64), Bernoulli(load=0.8, slots=20_000))
    assert seen.fingerprint == "fa051648147a17924b62e31408b87988"


# timing


def test_latency_is_cycles_times_the_measured_clock():
    fabric = Crossbar(ports=64, buffers="shared", iterations=6)
    assert fabric.clock == 19062  # ps: 52.46 MHz, Table V
    assert fabric.unloaded == 9 * 19062
    assert fabric.unloaded / ns == pytest.approx(171.53, rel=2e-4)  # Table VI


def test_grouped_stages_run_on_two_clocks():
    fabric = Crossbar(ports=64, buffers="gcq")
    slow = round(1e12 / 49.29e6)
    stages = [(stage.cycles, stage.cycle) for stage in fabric.stages]
    fast = slow // 4
    assert stages == [(1, slow), (4, fast), (3, fast), (16, fast), (1, fast), (4, slow)]


def test_an_unloaded_cell_waits_for_nobody():
    for options in ({}, {"crossing": 0}, {"crossing": 1, "pipeline": 0}, {"memory_cycles": 7}):
        fabric = Crossbar(ports=8, buffers="gcq", **options)
        _, state, _ = carry(fabric, Bernoulli(load=0.02, slots=20_000))
        assert int(np.flatnonzero(state.delay)[0]) == fabric.least_delay, options


def test_a_scheduler_slower_than_the_line_is_pointed_out():
    _, _, seen = carry(Crossbar(ports=64, buffers="shared", iterations=6), Bernoulli(load=0.1, slots=10))
    assert seen.notes == (
        "the scheduler takes 114.372 ns for a slot of 25.6 ns: at this clock it keeps up with the line only if "
        "matchings overlap",
    )


def test_a_scheduler_that_is_not_needed_is_pointed_out():
    _, _, seen = carry(Crossbar(ports=8, buffers="oq", scheduler="islip"), Bernoulli(load=0.1, slots=10))
    assert seen.notes == ("oq buffers need no matching: the scheduler islip is not used",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Crossbar(ports=1), "ports must be from 2 to 1024, not 1"),
        (lambda: Crossbar(ports=10, buffers="gcq"), "ports must be a multiple of group, 4, not 10"),
        (lambda: Crossbar(ports=8, depth=0), "depth must be at least 1, not 0"),
        (lambda: Crossbar(ports=8, crosspoint=0), "crosspoint must be at least 1, not 0"),
        (lambda: Crossbar(ports=8, buffers="cioq", speedup=0.5), "speedup must be from 1 to 8, not 0.5"),
        (lambda: Crossbar(ports=8, speedup=2), "speedup must be left out with voq buffers, not 2"),
        (lambda: Crossbar(ports=8, buffers="gcq", speedup=1.5),
         "speedup must be a whole number of memory cycles, not 1.5"),
        (lambda: Crossbar(ports=8, iterations=0), "iterations must be at least 1, not 0"),
        (lambda: Crossbar(ports=8, scheduler="ccf"), "scheduler must be one of islip, rrm, pim, drrm, wavefront, lqf, "
         "ocf, mwm, msm with voq buffers, not 'ccf'"),
        (lambda: Crossbar(ports=8, buffers="queue"),
         "buffers must be one of fifo, voq, shared, cioq, cicq, hierarchical, gcq, oq, load-balanced, not 'queue'"),
        (lambda: Crossbar(ports=8).prepare(Bernoulli(load=0.5).draw(nodes=4)),
         "demand must be drawn for the 8 nodes of the fabric, not 4"),
        (lambda: Crossbar(ports=8, flow_control=True).prepare(Multicast(load=0.5).draw(nodes=8)),
         "flow control must be off for multicast with voq buffers, not True"),
        (lambda: Crossbar(ports=256).prepare(Poisson(load=0.5, flows=5).draw(nodes=256, link=10 * Gbps, seed=1)),
         "cell must be at least 34 bytes for flows through 256 ports, not 32"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, message):
    with pytest.raises(BadInput) as raised:
        make()
    assert str(raised.value) == message
