"""The commands around `weft run`: help, lists, sweeps, benchmarks."""

import json
import subprocess
import sys
import time

import pytest

from weft.cli import COMMANDS
from weft.fabrics import FABRICS

SMALL = {
    "shoal": ("--nodes", 8), "crossbar": ("--ports", 8), "ideal": ("--nodes", 8),
    "packet": ("--hosts", 16), "merchant": ("--radix", 8), "stardust": ("--hosts", 16), "tdma": ("--hosts", 8),
}  # fmt: skip
HEAVY = ("numba", "matplotlib", "pyarrow", "scipy", "numpy", "weft.fabrics", "weft.workload")
STUDY = """
title = "two loads"
[fabric]
kind = "shoal"
nodes = 8
[workload]
kind = "poisson"
sizes = "fixed:20KB"
load = [0.3, 0.6]
flows = 30
[[picture]]
file = "fct.svg"
x = "load"
y = "fct.p99"
"""


def test_help_imports_nothing_heavy_and_is_quick():
    code = (
        "import sys\nfrom weft.cli import main\nmain(['--help'])\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    began = time.monotonic()
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert said.stderr == "[]\n"
    assert time.monotonic() - began < 5  # well under one on a machine that is not busy


def test_flags_are_made_without_loading_a_kernel():
    code = (
        "import sys\nfrom weft.cli import main\nmain(['run', 'shoal', 'poisson', '--help'])\n"
        "print([name for name in ('numba', 'matplotlib', 'pyarrow', 'scipy') if name in sys.modules], file=sys.stderr)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert said.stderr == "[]\n"


def test_the_package_is_the_command_as_well():
    command = [sys.executable, "-m", "weft", "run", "shoal", "poisson", "--load", "1", "--nodes", "1"]
    said = subprocess.run(command, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (2, "weft run shoal: nodes must be at least 2, not 1\n")


def test_help_lists_every_command_that_is_there(weft):
    from importlib.util import find_spec

    text = weft("--help").out
    for name in COMMANDS:
        assert (find_spec(f"weft.cli.{name}") is not None) == (f"\n│ {name} " in text), name
    assert weft().out == text


@pytest.mark.parametrize(
    "command", ["run", "sweep", "rerun", "resume", "show", "bench", "fabrics", "workloads", "cost"]
)
def test_every_command_has_help(weft, command):
    said = weft(command, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: weft {command}")


def test_the_version_is_told(weft):
    from weft.metrics.provenance import version

    assert weft("--version").out == f"weft {version()}\n"


def test_fabrics_and_workloads_are_listed_with_their_parameters(weft):
    assert weft("fabrics").out.startswith("shoal ")
    data = json.loads(weft("fabrics", "shoal", "--json").out)["fabrics"][0]
    guard = next(p for p in data["parameters"] if p["name"] == "guard")
    assert (guard["kind"], guard["default"], guard["required"]) == ("time", "2.75ns", False)
    assert "\nload " in weft("workloads", "poisson").out
    assert weft("workloads", "nothing").err.startswith("weft workloads: a workload must be one of poisson, ")


def test_a_sweep_prints_a_table_draws_and_keeps(weft, tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    said = weft(
        "sweep", tmp_path / "s.toml", "-o", tmp_path / "out", "--quiet", "--plot", tmp_path / "g.svg", "--y", "fct.p50"
    )
    assert said.code == 0, said
    assert said.out.startswith("two loads\n")
    assert said.err.splitlines() == [
        f"runs and table.csv in {tmp_path / 'out'}",
        f"drawn in {tmp_path / 'out' / 'fct.svg'}, its numbers in {tmp_path / 'out' / 'fct.csv'}",
        f"drawn in {tmp_path / 'g.svg'}, its numbers in {tmp_path / 'g.csv'}",
    ]
    rows = json.loads(weft("sweep", tmp_path / "s.toml", "-o", tmp_path / "out", "--json").out)["runs"]
    assert [row["workload.load"] for row in rows] == [0.3, 0.6]
    assert len((tmp_path / "out" / "table.csv").read_text().splitlines()) == 3


def test_a_sweep_takes_other_seeds_and_columns(weft, tmp_path):
    (tmp_path / "s.toml").write_text(STUDY.partition("[[picture]]")[0])
    said = weft("sweep", tmp_path / "s.toml", "--seeds", "4,5", "--columns", "seed,load,fct.p99", "--quiet")
    assert [line.split()[:2] for line in said.out.splitlines()[2:]] == [
        ["4", "0.3"],
        ["5", "0.3"],
        ["4", "0.6"],
        ["5", "0.6"],
    ]


def test_a_column_that_is_not_there_is_said(weft, tmp_path):
    (tmp_path / "s.toml").write_text(STUDY.partition("[[picture]]")[0])
    said = weft("sweep", tmp_path / "s.toml", "--columns", "speed", "--quiet")
    assert said.code == 2
    assert said.err.startswith("weft sweep: a column must be one that the runs have, such as ")


def test_a_bench_measures_a_busy_rack(weft):
    data = json.loads(weft("bench", "shoal", "--nodes", 16, "--channels", 4, "--load", 1, "--flows", 300, "--json").out)
    keys = ("node_slots_per_s", "ns_per_node_slot", "carried_cells_per_s", "busy_fraction", "calibration_ns",
            "ratio_to_calibration")  # fmt: skip
    assert all(data[key] > 0 for key in keys)
    assert data["ns_per_node_slot"] * data["node_slots_per_s"] == pytest.approx(1e9)
    assert data["ratio_to_calibration"] == pytest.approx(data["ns_per_node_slot"] / data["calibration_ns"])
    assert 0 < data["busy_fraction"] <= 1
    assert 0 < data["carried_cells_per_s"] < data["node_slots_per_s"]


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_bench_measures_any_fabric(weft, fabric):
    cells = fabric == "crossbar"
    flags = ("--slots", 200) if cells else ("--sizes", "fixed:2KB", "--flows", 20)
    words = ("bench", fabric, "bernoulli" if cells else "poisson", "--load", 0.5, *SMALL.get(fabric, ()), *flags)
    found = json.loads(weft(*words, "--repeat", 1, "--json").out)
    assert found["work"] and all(rate > 0 for rate in found["rate"].values()) and found["calibration_ns"] > 0
    said = weft(*words)
    assert (said.code, said.err) == (0, "") and f"{fabric} " in said.out and "the best of 3 runs" in said.out


def test_a_bench_needs_a_run(weft):
    said = weft("bench", "ideal", "poisson", "--nodes", 8, "--load", 0.5, "--flows", 9, "--repeat", 0)
    assert (said.code, said.err) == (2, "weft bench ideal: repeat must be at least 1, not 0\n")


def test_a_bench_chooses_its_flows_by_the_work_they_make():
    from weft.cli.bench import measure

    found = measure(nodes=16, channels=4, load=1.0, sizes="fixed:100KB", work=4_000_000)
    assert found.node_slots == pytest.approx(4_000_000, rel=0.2)


def test_a_picture_that_cannot_be_drawn_is_said_before_a_sweep_runs(weft, tmp_path, monkeypatch):
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    (tmp_path / "s.toml").write_text(STUDY.partition("[[picture]]")[0])
    said = weft("sweep", tmp_path / "s.toml", "--plot", tmp_path / "g.gif")
    assert (said.code, said.out) == (2, "")
    assert said.err == "weft sweep: a picture's name must end in .svg, .pdf or .png, not 'g.gif'\n"


def test_what_was_not_given_is_named_as_help_names_it(weft):
    assert weft("stress")[::2] == (2, "weft stress: STUDY must be given a value\n")
    assert weft("sweep")[::2] == (2, "weft sweep: --study must be given a value\n")


def test_a_run_imports_no_other_fabric():
    text = (
        "import sys\nfrom weft.cli import main\n"
        "main('run shoal poisson --nodes 4 --load 0.5 --flows 2 --quiet'.split())\n"
        "print(sorted(name for name in sys.modules if name.startswith('weft.fabrics.') and name.count('.') == 2))"
    )
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "['weft.fabrics.base', 'weft.fabrics.shoal']"


def test_a_command_does_not_look_for_cycles_on_its_way_out():
    """What is left is not looked through again: that took longer than many a run."""
    text = (
        "import atexit, gc, sys\nfrom weft.cli import main\nsys.argv = ['weft', '--version']\nmain()\n"
        "before = gc.get_freeze_count()\natexit._run_exitfuncs()\nprint(before, gc.get_freeze_count() > 1000)"
    )
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[1:] == ["0 True"]
