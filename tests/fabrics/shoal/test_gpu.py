"""Racks on a device, without one: its kernel's text in a loop over nodes in any order, and in Numba's simulator."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from weft import Ideal, Poisson, Shoal, Study, gpu
from weft.engine import loop
from weft.engine.replicas import Loop
from weft.errors import BadInput, Unusable
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.gpu import racks as device_racks
from weft.fabrics.shoal.gpu.racks import DeviceRack, Group, refusal
from weft.fabrics.shoal.gpu.state import MOST_VISITS, SLOT
from weft.workload.flows import Flows

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "verification"))
import gpu_racks  # noqa: E402 - the checks that `make verify-gpu` makes on a real one
import gpu_requests  # noqa: E402 - what they ask of its memory

FEW = Poisson(load=0.6, flows=60, sizes="uniform:60B,20KB")


@pytest.mark.parametrize("seed", range(10))
def test_drawn_racks_are_the_same_in_whatever_order_their_nodes_work(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(20):
        found, rack = gpu_racks.check(rng, Loop(seed), 12, 40)
        assert not found, f"{found}: {rack}"


def test_a_rack_all_of_whose_queues_are_long_is_taken_up():
    rack = Shoal(nodes=37, channels=2, ready_queues=False)
    flows = Poisson(load=3.0, flows=900, sizes="fixed:40KB").draw(nodes=37, link=rack.link, seed=1)
    there = gpu_racks.on_machine(gpu_racks.to_slot(rack.prepare(flows), 4000), 4300, Loop(0))
    assert gpu_racks.differences(there, gpu_racks.to_slot(rack.prepare(flows), 4300)) == []


def test_drawn_racks_with_many_pairs_at_every_node_are_the_same():
    rng = np.random.default_rng(3)
    for seed in range(15):
        found, rack = gpu_racks.check(rng, Loop(seed), 48, 1500)
        assert not found, f"{found}: {rack}"


@pytest.mark.parametrize("seed", range(6))
def test_racks_whose_epochs_are_counted_anew_between_launches_are_the_same(seed):
    rng, counted = np.random.default_rng(seed), 0
    while counted < 3:
        n = int(rng.integers(2, 10))
        rack = Shoal(nodes=n, channels=int(rng.integers(1, n)), feedback=int(rng.integers(1, 4)))
        flows = Poisson(load=float(rng.uniform(0.3, 1.2)), flows=80, sizes="pareto")
        flows = flows.draw(nodes=n, link=rack.link, seed=seed)
        run = DeviceRack.of(rack.prepare(flows))
        group, whole = Group([run], Loop(seed)), gpu_racks.to_slot(rack.prepare(flows), 1 << 40)
        while run.finished < run.total:
            group.limit = 1024
            group.step({run: 1 << 60})
        assert gpu_racks.differences(run.back(), whole) == []
        counted += run.tally[col.BASE] > 0


@pytest.mark.parametrize("later", range(-1, 4))
def test_a_flow_that_starts_as_the_last_of_its_pair_ends_finds_that_it_has_ended(later):
    rack = Shoal(nodes=8)
    for size in range(1, 40):
        flow = dict(nodes=8, src=[0], dst=[5], size=[size * 56], start=[0])
        ends = gpu_racks.to_slot(rack.prepare(Flows.of(**flow)), 1 << 40).state.flow[0, col.FINISH]
        start = [0, int(ends + later) * rack.slot_time]
        flows = Flows.of(nodes=8, src=[0, 0], dst=[5, 5], size=[size * 56, 60 * 56], start=start)
        whole = gpu_racks.to_slot(rack.prepare(flows), 1 << 40)
        there = gpu_racks.on_machine(rack.prepare(flows), 1 << 40, Loop(size))
        assert gpu_racks.differences(there, whole) == [], (size, start)


class Clocked(Loop):
    """A machine on which launches end by the clock: each run stops where it happens to be."""

    clock = True

    def launch(self, kernels, common, blocks, stops, seconds):
        reached = blocks.counted[:, SLOT]
        if len(stops):
            self.asked.append((max(stops - reached), seconds))
            stops = np.minimum(stops, reached + self.rng.integers(1, 400, len(stops)))
        super().launch(kernels, common, blocks, stops, seconds)


def test_runs_that_a_clock_stops_at_different_slots_go_on_from_there():
    rack, machine = Shoal(nodes=8), Clocked(0)
    machine.asked = []
    runs = [rack.prepare(replace(FEW, load=load).draw(nodes=8, link=rack.link, seed=1)) for load in (0.1, 1.5)]
    placed = [DeviceRack.of(run) for run in runs]
    group, slots = Group(placed, machine), set()
    while left := [run for run in placed if run.finished < run.total]:
        whys, _ = group.step(dict.fromkeys(left, 1 << 60))
        assert set(whys.values()) <= {loop.PAUSED, loop.DONE}
        slots.add(placed[0].slot - placed[1].slot)
    assert len(slots) > 3, "they must have stopped apart, or this asks nothing"
    assert {slots for slots, _ in machine.asked} == {group.most}, "by the clock no launch is cut short by slots"
    assert all(seconds >= 0.1 for _, seconds in machine.asked)
    for one, other in zip(placed, runs, strict=True):
        whole = gpu_racks.to_slot(rack.prepare(other.demand), 1 << 40)
        assert gpu_racks.differences(one.back(), whole) == []


@pytest.mark.parametrize(("threads", "each"), [(1024, 39), (16, 3 * 39)])
def test_no_launch_is_longer_than_a_thread_can_count_its_visits(monkeypatch, threads, each):
    monkeypatch.setattr(device_racks, "THREADS", threads)
    rack = Shoal(nodes=40, channels=39)
    group = Group([DeviceRack.of(rack.prepare(FEW.draw(nodes=40, link=rack.link, seed=1)))], Loop(0))
    assert MOST_VISITS - each < group.most * each <= MOST_VISITS
    assert group.limit <= group.most


@pytest.mark.long
def test_a_node_slot_asks_for_few_sectors_of_memory():
    names, sectors, _ = gpu_requests.requests(gpu_requests.prepared(1.0, 128, 1280), 64, gpu_requests.compiled())
    assert {"held", "pairs", "early", "leave4", "flows"} <= set(names)
    assert sectors.sum() < 4.5


BY_THE_CLOCK = """
import sys

from weft import Poisson, Shoal
from weft.engine import device, replicas
from weft.fabrics.shoal.gpu import kernel
from weft.fabrics.shoal.gpu.racks import DeviceRack, Group


def clock():
    from time import perf_counter_ns

    return perf_counter_ns()


device.nanoseconds.__code__ = clock.__code__  # in place of the function itself, by which compilers know it
replicas.Cuda.clock, replicas.LAUNCH, replicas.EACH, kernel.PATIENCE = True, float(sys.argv[1]), 0.0, int(sys.argv[2])
rack, sizes = Shoal(nodes=4), "uniform:60B,2KB"
drawn = [Poisson(load=load, flows=6, sizes=sizes).draw(nodes=4, link=rack.link, seed=1) for load in (0.3, 1.2)]
runs = [DeviceRack.of(rack.prepare(one)) for one in drawn]
group = Group(runs, replicas.Cuda())
whys, _ = group.step({runs[0]: 20 * rack.slot_time, runs[1]: 1 << 60})
print(*(f"{run.slot}:{whys[run]}" for run in runs))
replicas.LAUNCH = 1000.0
while left := [run for run in runs if run.finished < run.total]:
    group.step(dict.fromkeys(left, 1 << 60))
here = [rack.prepare(one) for one in drawn]
for run in here:
    run.advance()
print([run.back().observe().fingerprint for run in runs] == [run.observe().fingerprint for run in here])
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("seconds", "patience", "reached"), [("1e-9", "8", "1:1 1:1"), ("1000", str(10**13), "20:0 1:1")]
)
def test_a_launch_ends_by_the_clock_or_sooner_where_a_rack_has_reached_its_stop(seconds, patience, reached):
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BY_THE_CLOCK, seconds, patience],
        cwd=ROOT, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True,
        timeout=300,  # threads that wait for each other in vain
    )  # fmt: skip
    assert said.stdout.splitlines() == [reached, "True"], said.stderr


@pytest.mark.long
def test_drawn_racks_are_the_same_in_the_simulator_of_a_gpu():
    program = [sys.executable, "-W", "ignore", "verification/gpu_racks.py", "--simulator", "--count", "2"]
    said = subprocess.run(
        program, cwd=ROOT, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True
    )
    assert "2 of 2 drawn racks are equal" in said.stdout, said.stderr


def test_a_run_on_a_device_says_all_that_one_on_the_processor_says(machine):
    here, there = (weft.run(Shoal(nodes=16), FEW, seed=2, on=on) for on in (None, "gpu"))
    one, other = here.summary(), there.summary()
    assert {key for key in one if one[key] != other[key]} <= {"rate", "wall_s", "cpu_s", "peak_rss_mb", "work"}
    for name, values in here.observation.samples.items():
        np.testing.assert_array_equal(values, there.observation.samples[name])


def test_a_study_on_a_device_has_the_same_runs_and_says_what_stayed_on_the_processor(machine, tmp_path):
    study = Study(fabrics=[Shoal(nodes=8), Shoal(nodes=8, rules="literal")], workloads=[FEW, replace(FEW, load=0.3)],
                  seeds=range(2))  # fmt: skip
    there = study.run(tmp_path, on="gpu")
    assert there.notes == ["4 of 8 runs: the literal rules run on the processor"]
    assert [row["fingerprint"] for row in there.rows] == [row["fingerprint"] for row in study.run().rows]
    assert not study.missing(tmp_path)
    assert study.run(tmp_path, on="gpu").notes == []  # all are on disk


def test_a_run_interrupted_on_a_device_goes_on_on_the_processor(machine, tmp_path):
    from weft.checkpoint import Checkpoint

    rack, checkpoint = Shoal(nodes=16), Checkpoint.beside(tmp_path / "run", 3600)
    with pytest.raises(KeyboardInterrupt):
        weft.run(rack, FEW, seed=1, on="gpu", checkpoint=checkpoint, progress=lambda run: run.slot > 500)
    assert checkpoint.exists()
    again = weft.run(rack, FEW, seed=1, checkpoint=checkpoint)
    assert again.observation.fingerprint == weft.run(rack, FEW, seed=1).observation.fingerprint


def test_a_rack_that_outgrows_its_arrays_goes_on_in_larger_ones(machine, monkeypatch):
    from weft.fabrics.shoal.gpu import racks

    grown = []
    larger = racks.larger
    monkeypatch.setattr(racks, "larger", lambda shape, why, nodes: grown.append(why) or larger(shape, why, nodes))
    monkeypatch.setattr(racks, "POOL", 0)
    many = Poisson(load=2.0, flows=400, sizes="fixed:3KB")
    here, there = (weft.run(Shoal(nodes=6), many, seed=2, on=on) for on in (None, "gpu"))
    assert grown
    assert here.observation.fingerprint == there.observation.fingerprint


def test_what_a_device_cannot_carry_is_named():
    flows = FEW.draw(nodes=8, link=Shoal(nodes=8).link, seed=0)
    assert refusal(Shoal(nodes=8), flows) is None
    assert refusal(Shoal(nodes=8, rules="released"), flows) == "the released rules run on the processor"
    assert "failures" in refusal(Shoal(nodes=8, fail="node 1 at 1us"), flows)
    assert gpu.refusal(Ideal(nodes=8), flows) == "Ideal runs on the processor"


def test_a_machine_without_a_gpu_is_told_what_to_do():
    with pytest.raises(Unusable, match="leave it out, and the processor does the same"):
        weft.run(Shoal(nodes=8), FEW, on="gpu")
    with pytest.raises(BadInput, match="on must be gpu, or left out"):
        weft.run(Shoal(nodes=8), FEW, on="tpu")


def test_a_device_that_fails_loses_no_finished_run(machine, monkeypatch, tmp_path):
    study = Study(fabrics=[Shoal(nodes=8)], workloads=[replace(FEW, flows=5), replace(FEW, flows=300)])
    launch, count = machine.launch, []

    def fails(*given):
        count.append(1)
        if len(study.missing(tmp_path)) == 1:
            raise RuntimeError("unspecified launch failure")
        launch(*given)

    monkeypatch.setattr(machine, "launch", fails)
    with pytest.raises(weft.errors.WeftError, match="the GPU failed"):
        study.run(tmp_path, on="gpu")
    assert len(study.missing(tmp_path)) == 1
    monkeypatch.setattr(machine, "launch", launch)
    assert len(study.run(tmp_path, on="gpu")) == 2


def test_a_rack_that_does_not_fit_the_device_runs_on_the_processor_and_says_so(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "free", lambda: 1000)
    there = weft.run(Shoal(nodes=8), FEW, on="gpu")
    assert any("a rack needs" in note and "the device has 900 B" in note for note in there.notes)
    assert there.observation.fingerprint == weft.run(Shoal(nodes=8), FEW).observation.fingerprint
    ran = Study(fabrics=[Shoal(nodes=8)], workloads=[FEW]).run(tmp_path, on="gpu")
    assert "1 of 1 runs: a rack needs" in ran.notes[0]


def test_what_is_compiled_ahead_is_what_a_run_needs(machine):
    weft.run(Shoal(nodes=16), FEW, seed=2, on="gpu")
    parts = device_racks.ahead(Shoal(nodes=16))
    for part, kernels in parts.items():
        signatures = [list(kernel.signatures) for kernel in kernels]
        part()
        assert signatures == [list(kernel.signatures) for kernel in kernels] and all(signatures)
    assert device_racks.ahead(Shoal(nodes=8, rules="released")) == {}


def test_what_the_processor_needs_is_compiled_while_a_device_carries_a_run(machine, monkeypatch):
    begun = []

    @contextmanager
    def compiling(parts):
        begun.append(set(parts))
        yield
        begun.append("end")

    launch = machine.launch
    monkeypatch.setattr(gpu, "compiling", compiling)
    monkeypatch.setattr(machine, "launch", lambda *given: begun.append("launch") or launch(*given))
    whole = [{device_racks.move_one, device_racks.carry_one}, "launch", "end"]
    weft.run(Shoal(nodes=8), FEW, on="gpu")
    assert list(dict.fromkeys(map(str, begun))) == list(map(str, whole))
    begun.clear()
    Study(fabrics=[Shoal(nodes=8), Ideal(nodes=8)], workloads=[FEW]).run(on="gpu")
    assert list(dict.fromkeys(map(str, begun))) == list(map(str, whole))


def test_the_kernel_of_a_device_is_compiled_before_a_rack_is_laid_out_for_it(machine, monkeypatch):
    from weft.fabrics.shoal.gpu import convert

    seen, launch, load = [], machine.launch, convert.load
    monkeypatch.setattr(machine, "launch", lambda *given: seen.append(len(given[3])) or launch(*given))
    monkeypatch.setattr(convert, "load", lambda *given: seen.append("laid out") or load(*given))
    weft.run(Shoal(nodes=8), FEW, on="gpu")
    assert seen[:3] == [0, "laid out", 1]


def test_a_driver_that_is_too_old_is_named(monkeypatch):
    from weft.engine import replicas

    def old():
        raise RuntimeError("[CUDA_ERROR_SYSTEM_DRIVER_MISMATCH] driver version is insufficient. See the log")

    monkeypatch.setattr(replicas, "Cuda", old)
    with pytest.raises(Unusable, match=r"its driver serves \(\[CUDA_ERROR.*insufficient\): leave it out"):
        gpu.find()


@pytest.mark.parametrize(("major", "usable"), [(7, False), (8, True), (9, True)])
def test_a_gpu_that_lacks_instructions_is_named(monkeypatch, major, usable):
    from weft.engine import replicas

    device = SimpleNamespace(compute_capability=(major, 5), MULTIPROCESSOR_COUNT=4)
    stand_in = SimpleNamespace(current_context=lambda: None, get_current_device=lambda: device)
    monkeypatch.setattr(replicas, "cuda", stand_in)
    if usable:
        assert gpu.find().processors == 4
        return
    with pytest.raises(Unusable, match=r"\(its compute capability must be 8 or more, not 7\): leave it out"):
        gpu.find()


def test_a_study_of_more_runs_than_fit_at_once_goes_through_the_device_one_after_the_other(machine, monkeypatch):
    from weft.fabrics.shoal.gpu import racks

    groups, entered = [], []
    take, lay_out = racks.Group.enter, racks.Group.lay_out
    monkeypatch.setattr(racks.Group, "enter", lambda self, run, at: entered.append(at) or take(self, run, at))
    monkeypatch.setattr(racks.Group, "lay_out", lambda self, run: groups.append(self.rows) or lay_out(self, run))
    machine.processors = 1  # two racks at a time
    workloads = [replace(FEW, flows=flows) for flows in (40, 300, 60, 20, 61)]
    study = Study(fabrics=[Shoal(nodes=8)], workloads=workloads, seeds=range(2))
    there = study.run(on="gpu")
    assert set(groups) == {2} and len(groups) < 6 and len(entered) >= 10 and set(entered) == {0, 1}
    assert there.notes == []
    for one, other in zip(study.run().results, there.results, strict=True):
        assert one.observation.fingerprint == other.observation.fingerprint
        np.testing.assert_array_equal(one.observation.finish, other.observation.finish)
        for name, values in one.observation.samples.items():
            np.testing.assert_array_equal(values, other.observation.samples[name])


def test_a_rack_that_outgrows_the_device_goes_on_on_the_processor(machine, monkeypatch):
    from weft.errors import TooLarge
    from weft.fabrics.shoal.gpu import racks

    def larger(shape, why, nodes):
        raise TooLarge("a queue must hold fewer cells")

    monkeypatch.setattr(racks, "larger", larger)
    monkeypatch.setattr(racks, "POOL", 0)
    many = Poisson(load=2.0, flows=400, sizes="fixed:3KB")
    study = Study(fabrics=[Shoal(nodes=6)], workloads=[many, Poisson(load=0.05, flows=5, sizes="fixed:60B")], seeds=[2])
    there = study.run(on="gpu")
    assert there.notes == [
        "1 of 2 runs: outgrew the device (a queue must hold fewer cells); it went on on the processor"
    ]
    assert [row["fingerprint"] for row in there.rows] == [row["fingerprint"] for row in study.run().rows]


def test_a_study_interrupted_on_a_device_goes_on_where_it_was(machine, monkeypatch, tmp_path):
    study = Study(fabrics=[Shoal(nodes=8)], workloads=[replace(FEW, flows=200)], seeds=range(6))
    machine.processors, launch = 1, machine.launch

    def interrupts(*given):
        launch(*given)
        if len(study.missing(tmp_path)) == 4:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(machine, "launch", interrupts)
    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path, on="gpu")
    assert 1 <= len(list((tmp_path / "runs").glob("*.checkpoint"))) <= 2
    assert 1 <= len(study.missing(tmp_path)) <= 4
    monkeypatch.setattr(machine, "launch", launch)
    again = study.run(tmp_path, on="gpu")
    assert not list((tmp_path / "runs").glob("*.checkpoint"))
    assert [row["fingerprint"] for row in again.rows] == [row["fingerprint"] for row in study.run().rows]


def test_a_result_that_cannot_be_kept_is_told_of_though_another_thread_takes_it_down(machine, monkeypatch, tmp_path):
    from weft.metrics.result import Result

    def full(self, folder):
        raise weft.errors.WeftError(f"{folder} must be written, but the disk is full")

    monkeypatch.setattr(Result, "save", full)
    with pytest.raises(weft.errors.WeftError, match="the disk is full"):
        Study(fabrics=[Shoal(nodes=8)], workloads=[FEW], seeds=range(3)).run(tmp_path, on="gpu")


@pytest.mark.parametrize("few", [0, 8])
def test_the_last_flows_of_a_rack_are_carried_by_a_core_of_the_processor(machine, monkeypatch, few):
    from weft.fabrics.shoal.rack import RackRun

    steps, step = [], RackRun.step
    study = Study(fabrics=[Shoal(nodes=8)], workloads=[replace(FEW, sizes="pareto", flows=100)], seeds=range(4))
    here = study.run().results
    monkeypatch.setattr(RackRun, "step", lambda self, *given: steps.append(self.slot) or step(self, *given))
    monkeypatch.setattr(gpu, "FEW", few)
    there = study.run(on="gpu")
    assert there.notes == [] and bool(steps) == bool(few)
    for one, other in zip(here, there.results, strict=True):
        assert one.observation.fingerprint == other.observation.fingerprint
        for name, values in one.observation.samples.items():
            np.testing.assert_array_equal(values, other.observation.samples[name])
    alone = weft.run(Shoal(nodes=8), study.workloads[0], seed=1, on="gpu")
    assert alone.notes == here[1].notes and alone.observation.fingerprint == here[1].observation.fingerprint


def test_no_more_racks_are_under_way_than_the_memory_of_the_machine_holds(machine, monkeypatch):
    from weft import memory
    from weft.experiment import PROGRAM, need
    from weft.fabrics.shoal.gpu import racks

    rows, lay_out = [], racks.Group.lay_out
    monkeypatch.setattr(racks.Group, "lay_out", lambda self, run: rows.append(self.rows) or lay_out(self, run))
    machine.processors = 50
    study = Study(fabrics=[Shoal(nodes=8)], workloads=[FEW], seeds=range(20))
    prints = [row["fingerprint"] for row in study.run(on="gpu").rows]
    assert rows == [20]
    rack, threads = Shoal(nodes=8), min(os.cpu_count() or 1, gpu.MOST_THREADS)
    each = need(rack, FEW.draw(nodes=8, link=rack.link, seed=0)) - PROGRAM
    monkeypatch.setattr(memory, "allowed", lambda: PROGRAM + (4 * threads + 3) * each)
    assert [row["fingerprint"] for row in study.run(on="gpu").rows] == prints
    assert rows == [20, 3]
