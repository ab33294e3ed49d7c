"""Benchmarks and checks that tests do not run whole: they start, and what they measure with works, on a small scale."""

import runpy
import sys
from collections import defaultdict
from math import inf
from pathlib import Path

import pytest

from weft.cli import bench
from weft.fabrics.crossbar import Crossbar
from weft.fabrics.merchant.fabric import Merchant
from weft.fabrics.packet import Packet
from weft.fabrics.shoal import plain_rack
from weft.papers.fpga import _row
from weft.papers.shoal import fig15
from weft.units import us
from weft.workload import Permutation

ROOT = Path(__file__).parent.parent
PROGRAMS = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("verification/*.py")])


def loaded(name):
    sys.path.insert(0, str((ROOT / name).parent))  # as for a program: some import their neighbours
    try:
        return runpy.run_path(str(ROOT / name), run_name="looked_at")
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_program_says_what_it_does_and_loads_all_that_it_names(path):
    assert loaded(path.relative_to(ROOT))["__doc__"]


def test_every_suspect_of_a_tail_of_fig_15_can_be_built():
    program = loaded("verification/tails.py")
    for transport, suspects in program["SUSPECTS"].items():
        built = [program["network"](transport, settings, changes) for _, settings, changes in suspects]
        assert len(set(built)) == len(suspects) == len({what for what, *_ in suspects})
        assert built[0] == fig15.network(512, fig15.BASELINES[transport.upper()])


def test_seeds_are_asked_about_rows_that_there_are():
    for figure, wanted, key in loaded("verification/crossbar_seeds.py")["KEPT"].values():
        runs = [run for run in figure.study("small") if wanted(run.labels)]
        assert len(runs) > 7 and key in _row(defaultdict(int))


def test_a_crossbar_is_measured():
    whole, best = loaded("benchmarks/crossbar.py")["rate"](Crossbar(ports=8), 240)
    assert 0 < whole <= 4 * best


def test_packet_networks_are_measured():
    workload = Permutation(duration=20 * us)
    hops, events, took = loaded("benchmarks/packet.py")["measure"](Packet(hosts=16), workload, workload.until)
    assert 0 < hops <= events and took > 0


def test_the_switch_of_merchant_silicon_is_measured():
    assert loaded("benchmarks/merchant.py")["hops"](Merchant(radix=8)) > 0


def test_a_rack_is_measured():
    found = bench.measure(nodes=8, channels=2, load=1.0, work=10_000)
    assert found.node_slots > 0 and found.ratio_to_calibration > 0


def test_the_plain_kernel_is_measured(monkeypatch):
    for name in ("WORTHWHILE", "WORTH_CELLS"):
        monkeypatch.setattr(plain_rack, name, getattr(plain_rack, name))  # the program sets them
    program = loaded("benchmarks/shoal_plain.py")
    for both in (False, True):
        slots, cells = program["measure"]({"fail": "node 0 at 50us"}, 200, both=both)
        assert slots > cells > 0


def test_schedulers_are_measured():
    found = loaded("benchmarks/tdma.py")["measured"]("wrr", 8)
    assert found["scheduler"] == "wrr" and found["hosts"] == 8 and 0 < found["compute_ms"] <= found["compute_ms_worst"]


def test_every_question_about_waiting_can_be_cut_out_of_a_copy_of_the_source(tmp_path):
    program = loaded("benchmarks/waiting.py")
    for k, (name, changes) in enumerate(program["OTHERS"].items()):
        copy = Path(program["copied"](tmp_path / str(k), changes)) / "src" / "weft"
        for file in changes:
            there = (copy / file).read_text()
            compile(there, file, "exec")
            assert there != (ROOT / "src" / "weft" / file).read_text(), name


def test_the_interval_of_a_median_is_made_of_ranks():
    interval = loaded("benchmarks/waiting.py")["interval"]
    assert interval([3, 1, 2, 5, 4]) == (-inf, inf)  # all of five are on one side with 1 in 16
    assert interval([6, 3, 1, 2, 5, 4]) == (1, 6)
    assert interval(range(17)) == (4, 12)  # tables of the sign test: the 5th and the 13th of 17
