"""Measuring replicas on a GPU, without one: what runs in its place, what a profiler prints, and what is said of it."""

import pytest

from weft import Bernoulli, Crossbar, Shoal, gpu
from weft.cli import bench, side_by_side
from weft.cli.side_by_side import Case
from weft.engine.replicas import Loop
from weft.errors import BadInput

PRINTED = """==PROF== Connected to process 5
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","advance","dram__bytes.sum","byte","1,000,000"
"0","advance","gpu__time_duration.sum","ns","2,000.5"
"1","advance","dram__bytes.sum","byte","3"
"""


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setattr(gpu, "find", Loop)


def test_replicas_are_measured_over_the_last_third_of_their_time(machine):
    switch = Crossbar(ports=8)
    found = side_by_side.measure(Case(switch, Bernoulli(load=0.5, slots=300), 300 * switch.slot, 0), 3)
    assert (found["replicas"], found["node_slots"]) == (3, 3 * 8 * 100)
    assert found["node_slots_per_s"] == found["node_slots"] / found["seconds"]


def test_a_rack_is_measured_in_the_same_way(machine, monkeypatch):
    monkeypatch.setattr(bench, "SLOTS", 60)
    found = side_by_side.measure(bench.busy_rack(nodes=8, channels=2, load=0.5, sizes="fixed:2KB", seed=1), 2)
    assert found["node_slots"] == 2 * 2 * 8 * 20


def test_what_a_gpu_cannot_carry_cannot_be_measured_there(machine):
    case = Case(Shoal(nodes=8, rules="literal"), bench.busy_rack(nodes=8, channels=2, load=0.5, sizes="fixed:2KB",
                                                                 seed=1).workload, 10**6, 0)  # fmt: skip
    with pytest.raises(BadInput, match="the literal rules run on the processor"):
        side_by_side.measure(case, 1)


def test_a_profilers_table_is_read_launch_by_launch():
    assert side_by_side.read(PRINTED) == {"dram__bytes.sum": [1e6, 3.0], "gpu__time_duration.sum": [2000.5]}
    assert side_by_side.read("==ERROR== no such driver\n") == {}


def test_a_reader_is_told_of_shares_or_why_there_are_none():
    row = {"load": 0.5, "replicas": 4, "node_slots_per_s": 8e6, "one_core_node_slots_per_s": 2e6,
           "all_cores_node_slots_per_s": 16e6}  # fmt: skip
    found = {"cores": 8, "copied_bytes_per_s": 4e12, "gpu": [{**row, "memory_share": 0.25, "issue_share": 0.5},
                                                             {**row, "why_no_shares": "there is no ncu"}]}  # fmt: skip
    _, _, one, other, last = side_by_side.told(found)
    assert one.split() == ["0.5", "4", "8", "4.0", "0.5", "25.0%", "50.0%"]
    assert other.split()[-2:] == ["-", "-"] and last == "no shares: there is no ncu"


def test_a_bench_on_a_gpu_needs_one(weft):
    said = weft("bench", "crossbar", "bernoulli", "--ports", 8, "--load", 0.5, "--slots", 100, "--on", "gpu")
    assert said.code == 2 and "leave it out, and the processor does the same" in said.err
    said = weft("bench", "crossbar", "bernoulli", "--ports", 8, "--load", 0.5, "--slots", 100, "--on", "tpu")
    assert (said.code, said.err) == (2, "weft bench crossbar: on must be gpu, or left out, not 'tpu'\n")
