"""Switches on a device, without one: its kernel's text in a loop over ports in any order, and in Numba's simulator."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import Bernoulli, Crossbar, Poisson, Study
from weft.engine.replicas import Loop
from weft.fabrics.crossbar.gpu.switches import ahead, refusal
from weft.workload.traffic import Multicast

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "verification"))
import gpu_switches  # noqa: E402 - the checks that `make verify-gpu` makes on a real one

FEW = Bernoulli(load=0.8, slots=200)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_switches_are_the_same_word_by_word_in_whatever_order_their_ports_work(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(25):
        found, switch = gpu_switches.check(rng, Loop(seed), 70 if seed == 0 else 12, 80)
        assert not found, f"{found}: {switch}"


@pytest.mark.long
def test_drawn_switches_are_the_same_in_the_simulator_of_a_gpu():
    program = [sys.executable, "-W", "ignore", "verification/gpu_switches.py", "--simulator", "--count", "4"]
    said = subprocess.run(
        program, cwd=ROOT, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True
    )
    assert "4 of 4 drawn switches are equal" in said.stdout, said.stderr


@pytest.mark.parametrize(
    "workload", [FEW, Poisson(load=0.6, flows=40, sizes="uniform:60B,2KB")], ids=["cells", "flows"]
)
def test_a_run_on_a_device_says_all_that_one_on_the_processor_says(machine, workload):
    here, there = (weft.run(Crossbar(ports=8), workload, seed=2, on=on) for on in (None, "gpu"))
    one, other = here.summary(), there.summary()
    assert {key for key in one if one[key] != other[key]} <= {"rate", "wall_s", "cpu_s", "peak_rss_mb", "work"}
    assert there.notes == here.notes
    for name, values in here.observation.samples.items():
        np.testing.assert_array_equal(values, there.observation.samples[name])


@pytest.mark.parametrize(
    ("kind", "workload"),
    [({}, FEW), ({"scheduler": "pim"}, FEW), ({"scheduler": "drrm"}, Poisson(load=0.6, flows=9)),
     ({"buffers": "gcq"}, FEW), ({"buffers": "oq"}, Poisson(load=0.6, flows=9))],
)  # fmt: skip
def test_what_is_compiled_ahead_is_what_a_run_needs(machine, kind, workload):
    switch = Crossbar(ports=8, **kind)
    weft.run(switch, workload, on="gpu")
    ((part, kernels),) = ahead(switch).items()
    signatures = [list(kernel.signatures) for kernel in kernels]
    part()
    assert signatures == [list(kernel.signatures) for kernel in kernels] and all(signatures)


def test_nothing_is_compiled_ahead_for_what_a_device_does_not_carry():
    assert [ahead(Crossbar(ports=8, **kind)) for kind in ({"scheduler": "mwm"}, {"buffers": "load-balanced"})] == [
        {}
    ] * 2


def test_a_study_over_loads_seeds_and_schedulers_has_the_same_runs_and_says_what_stayed(machine):
    kinds = {"scheduler": "islip"}, {"scheduler": "pim"}, {"scheduler": "mwm"}, {"buffers": "gcq"}
    study = Study(
        fabrics=[Crossbar(ports=8, **kind) for kind in kinds],
        workloads=[FEW, Bernoulli(load=0.3, slots=90)],
        seeds=range(2),
    )
    there = study.run(on="gpu")
    assert there.notes == ["4 of 16 runs: the scheduler mwm runs on the processor"]
    assert [row["fingerprint"] for row in there.rows] == [row["fingerprint"] for row in study.run().rows]


def test_a_run_interrupted_on_a_device_goes_on_on_the_processor(machine, tmp_path):
    from weft.checkpoint import Checkpoint

    switch, checkpoint = Crossbar(ports=8), Checkpoint.beside(tmp_path / "run", 3600)
    with pytest.raises(KeyboardInterrupt):
        weft.run(switch, FEW, seed=1, on="gpu", checkpoint=checkpoint, progress=lambda run: run.slot > 100)
    assert checkpoint.exists()
    again = weft.run(switch, FEW, seed=1, checkpoint=checkpoint)
    assert again.observation.fingerprint == weft.run(switch, FEW, seed=1).observation.fingerprint


def test_what_a_device_cannot_carry_is_named():
    def said(workload=FEW, **options):
        switch = Crossbar(ports=8, **options)
        return refusal(switch, workload.draw(nodes=8, link=switch.link, seed=0))

    assert said() is None
    assert said(buffers="cioq", scheduler="ccf") == "the scheduler ccf runs on the processor"
    assert said(buffers="load-balanced") == "load-balanced buffers run on the processor"
    assert said(Multicast(load=0.5, fanout=2, slots=50)) == "multicast runs on the processor"
    assert "several cells come in a slot" in said(Bernoulli(load=1.5, slots=50), flow_control=True)
