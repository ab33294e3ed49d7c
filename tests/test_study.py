"""Studies: grids, what is on disk already, several workers, several processes, and files that describe them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from dying import Dying
from nobody import without_privileges
from weft import experiment, foresight
from weft.errors import BadInput, BadStudy, TooLarge, WeftError
from weft.fabrics import FABRICS
from weft.metrics.provenance import describe
from weft.metrics.result import flatten
from weft.report import plots, series
from weft.report.tables import runs_table
from weft.study import claimed, labels
from weft.workload import Planned

RACK = weft.Shoal(nodes=8)
SOME = weft.Poisson(load=0.5, sizes="fixed:20KB", flows=30)
UNKNOWN = f"a fabric must be module:Class or one of {', '.join(FABRICS)}, fluid, not 'shaol'"
STUDY = weft.Study(fabrics=[RACK], workloads=[SOME, replace(SOME, load=0.8)], seeds=[1, 2])

FILE = """
title = "a small one"
seeds = [1, 2]

[fabric]
kind = "shoal"
nodes = 8
guard = "2750ps"

[[workload]]
kind = "poisson"
sizes = "fixed:20KB"
load = [0.5, 0.8]
flows = 30
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    STUDY.run(folder)
    return folder


def test_paired_fabrics_and_workloads_meet_only_beside_each_other():
    other = replace(RACK, nodes=9)
    study = weft.Study(fabrics=[RACK, other], workloads=[SOME, replace(SOME, load=0.8)], seeds=[1, 2], paired=True)
    assert [(point.fabric.nodes, point.workload.load, point.seed) for point in study.points] == [
        (8, 0.5, 1), (8, 0.5, 2), (9, 0.8, 1), (9, 0.8, 2),
    ]  # fmt: skip
    with pytest.raises(BadInput) as error:
        replace(study, workloads=[SOME])
    assert str(error.value) == "workloads must be as many as the 2 fabrics they are paired with, not 1"


def fingerprints(runs):
    return [row["fingerprint"] for row in runs.rows]


def test_a_study_is_every_fabric_under_every_workload_with_every_seed():
    assert [(p.workload.load, p.seed) for p in STUDY.points] == [(0.5, 1), (0.5, 2), (0.8, 1), (0.8, 2)]


def test_equal_runs_are_one_run():
    assert len(weft.Study(fabrics=[RACK, RACK], workloads=[SOME], seeds=[1, 1]).points) == 1


def test_a_study_without_a_folder_keeps_its_results_in_memory():
    runs = weft.Study(fabrics=[RACK], workloads=[SOME]).run()
    assert runs.results[0].observation.finished.all()
    assert runs.rows[0]["workload.load"] == 0.5


def test_two_workers_give_the_bits_of_one(kept, tmp_path):
    assert fingerprints(STUDY.run(tmp_path, workers=2)) == fingerprints(STUDY.run(kept))
    for point in STUDY.points:
        flows = [folder / "runs" / point.name() / "flows.parquet" for folder in (kept, tmp_path)]
        assert flows[0].read_bytes() == flows[1].read_bytes()


def test_two_workers_hand_results_over_without_a_folder(kept):
    assert fingerprints(STUDY.run(workers=2)) == fingerprints(STUDY.run(kept))


def test_what_is_on_disk_is_not_run_again(kept, monkeypatch):
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run again"))
    assert len(STUDY.run(kept)) == 4
    assert STUDY.missing(kept) == []


def test_a_seed_more_costs_only_its_own_runs(kept):
    more = replace(STUDY, seeds=[1, 2, 3])
    assert [(p.workload.load, p.seed) for p in more.missing(kept)] == [(0.5, 3), (0.8, 3)]


@pytest.mark.parametrize(
    "other",
    [
        replace(STUDY, fabrics=[replace(RACK, guard=0)]),
        replace(STUDY, workloads=[replace(SOME, flows=31)]),
        replace(STUDY, until=10**9),
    ],
)
def test_another_fabric_workload_or_end_is_another_run(kept, other):
    assert len(other.missing(kept)) == len(other.points)


def test_another_source_code_is_another_run(kept, monkeypatch):
    monkeypatch.setattr("weft.checkpoint.digest_of", lambda *things: "0123456789abcdef")
    assert len(STUDY.missing(kept)) == 4


def test_another_content_of_a_trace_is_another_run(tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text("0,0,1,100,0\n")
    study = weft.Study(fabrics=[RACK], workloads=[weft.Trace(path=str(trace))])
    before = study.points[0].name()
    trace.write_text("0,0,1,101,0\n")
    assert study.points[0].name() != before


def test_code_that_changes_while_a_study_runs_is_noticed(tmp_path, monkeypatch):
    hashes = iter(["1" * 16] + ["2" * 16] * 100)
    monkeypatch.setattr("weft.checkpoint.digest_of", lambda *things: next(hashes))
    with pytest.raises(WeftError) as said:
        weft.Study(fabrics=[RACK], workloads=[SOME]).run(tmp_path)
    assert str(said.value) == "the source code of weft must stay the same while a study runs: start it again"


def test_a_partial_run_is_not_taken_for_a_whole_one(tmp_path):
    study = weft.Study(fabrics=[RACK], workloads=[SOME], seeds=[1])
    place = tmp_path / "runs" / study.points[0].name()
    replace(weft.run(RACK, SOME, seed=1), partial=True).save(place)
    assert len(study.missing(tmp_path)) == 1
    study.run(tmp_path)
    assert not weft.Result.load(place).partial


def test_the_table_and_the_plot_are_made_of_rows(kept, tmp_path):
    runs = STUDY.run(kept)
    plot = runs.plot(x="load", y="fct.p99")
    assert {point["workload.load"] for point in plot.data} == {0.5, 0.8}
    assert plot.save(tmp_path / "fct.svg").exists()
    assert runs.csv().splitlines()[0].startswith("fabric.name,workload.name,fabric.kind,")
    assert len(runs.csv().splitlines()) == 5


def test_runs_are_called_by_what_sets_them_apart(kept):
    assert labels(STUDY.run(kept).rows) == [
        "load 0.5, seed 1",
        "load 0.5, seed 2",
        "load 0.8, seed 1",
        "load 0.8, seed 2",
    ]


def test_a_study_must_have_something_to_run():
    with pytest.raises(BadInput) as said:
        weft.Study(fabrics=[], workloads=[SOME])
    assert str(said.value) == "fabrics must be at least one, not 'none'"


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "one", True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(BadInput) as said:
        weft.Study(fabrics=[RACK], workloads=[SOME], seeds=[seed])
    assert str(said.value) == f"a seed must be a whole number from 0 to 2^63 - 1, not {seed!r}"


def test_memory_is_for_all_workers_together():
    need = experiment.need(RACK, Planned(8, 30))
    with pytest.raises(TooLarge, match=r"^4 runs at a time of 8 nodes and 30 flows must fit in "):
        STUDY.run(workers=4, memory=2 * need)


def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(monkeypatch):
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    place = Path(tempfile.mkdtemp())  # not pytest's folder, which nobody but its owner may enter
    place.chmod(0o555)
    try:
        with without_privileges(), pytest.raises(WeftError) as said:
            STUDY.run(place / "study")
    finally:
        place.chmod(0o700)
        place.rmdir()
    assert str(said.value) == f"{place / 'study'} cannot be written: permission denied"


def test_a_file_in_the_place_of_the_folder_is_said_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput) as said:
        STUDY.run(tmp_path / "file")
    assert str(said.value) == f"{tmp_path / 'file'} must be a folder, not a file"


# several processes

PROGRAM = """
import sys
from weft.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_processes_on_one_study_do_not_disturb_each_other(kept, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(FILE)
    both = [start("sweep", study, "-o", tmp_path / "out", "--json") for _ in range(2)]
    printed = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    rows = [json.loads(out)["runs"] for out, _ in printed]
    assert rows[0] == rows[1]
    assert [row["fingerprint"] for row in rows[0]] == fingerprints(STUDY.run(kept))
    assert sorted(os.listdir(tmp_path / "out" / "runs")) == sorted([".lock", *(p.name() for p in STUDY.points)])


def test_control_c_stops_all_workers_and_the_same_command_goes_on(tmp_path):
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(FILE.replace("nodes = 8", "nodes = 32").replace("flows = 30", "flows = 500_000"))
    sweep = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "sweep", str(study), "-o", str(out), "--workers", "2", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (out / "runs" / ".lock").exists() and sweep.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(2)  # a run has begun
    os.killpg(sweep.pid, signal.SIGINT)
    printed = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, printed
    assert printed == ("", f"weft sweep: interrupted; the same command goes on from what {out} holds\n")
    assert all(weft.Result.load(folder).partial for folder in out.glob("runs/shoal-*[!t]"))


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_workers_end_with_the_process_that_started_them(tmp_path, stop):
    """Sent to that process alone, as batch systems do."""
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(FILE.replace("nodes = 8", "nodes = 32").replace("flows = 30", "flows = 500_000"))
    sweep = start("sweep", study, "-o", out, "--workers", "2", "--quiet")
    end = time.monotonic() + 60
    while not (out / "runs" / ".lock").exists() and sweep.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(2)  # a run has begun
    workers = [int(pid) for pid in Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()]
    assert len(workers) >= 2
    sweep.send_signal(stop)
    printed = sweep.communicate(timeout=60)
    if stop == signal.SIGTERM:
        assert sweep.returncode == 130, printed
        assert printed == ("", f"weft sweep: interrupted; the same command goes on from what {out} holds\n")
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert list(out.glob("runs/*.checkpoint")) and not list(out.glob("runs/.*.weft-*"))


def test_a_killed_process_gives_its_claim_back(tmp_path):
    place = tmp_path / ("shoal-poisson-1-" + "0" * 16)
    hold = (
        f"import time; from pathlib import Path; from weft.study import claimed\nwith claimed(Path({str(place)!r})):\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold + "    print('held', flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    began = time.monotonic()
    with claimed(place):
        assert time.monotonic() - began < 5


# files


def test_a_file_describes_the_same_study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    assert weft.Study.load(path).points == STUDY.points
    assert weft.Study.load(path).title == "a small one"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("nodes = 8", "nodes = 1"), "fabric shoal: nodes must be at least 2, not 1"),
        (("nodes = 8", "node = 8"), None),
        (("nodes = 8", 'nodes = "many"'), "fabric shoal: nodes must be a whole number, not 'many'"),
        (('"2750ps"', '"2750 parsecs"'), None),
        (('kind = "shoal"', 'kind = "shaol"'), UNKNOWN),
        (('kind = "shoal"', ""), "kind of a fabric must be a name, not None"),
        (("load = [0.5, 0.8]", "load = []"), "workload.load must be at least one value, not []"),
        (("load = [0.5, 0.8]", "load = nan"), "workload poisson: load must be a finite number above 0, not nan"),
        (("load = [0.5, 0.8]", ""), None),
        (("seeds = [1, 2]", "seeds = 3"), "seeds must be a list of whole numbers, not 3"),
        (("seeds = [1, 2]", "sedes = [3]"),
         "a key must be one of title, seeds, until, warmup, columns, links, fabric, workload, picture, not 'sedes'"),
        (("[fabric]", "[fabric"), None),
        (("[fabric]", "[fabrics]"), None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path, change, sentence):
    path = tmp_path / "study.toml"
    path.write_text(FILE.replace(*change))
    with pytest.raises(BadStudy) as said:
        weft.Study.load(path)
    assert str(said.value).startswith(f"{path}")
    assert "\n" not in str(said.value)
    if sentence:
        assert str(said.value) == f"{path}: {sentence}"


def test_a_study_that_is_not_there_or_is_binary_is_named(tmp_path):
    with pytest.raises(BadStudy) as said:
        weft.Study.load(tmp_path / "none.toml")
    assert str(said.value) == f"{tmp_path / 'none.toml'} must be a study, but there is no such file"
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadStudy) as said:
        weft.Study.load(tmp_path / "b.toml")
    assert str(said.value) == f"{tmp_path / 'b.toml'} must be a study, not binary"


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].glob("studies/*.toml")), ids=lambda path: path.name)
def test_every_study_of_the_project_can_be_read(path):
    assert len(weft.Study.load(path).points) >= 2


# pictures are checked before anything runs

PICTURE = "\n[[picture]]\nfile = {file!r}\n{rest}\n"


@pytest.mark.parametrize(
    ("file", "rest", "sentence"),
    [
        ("a.gif", "", "a picture's name must end in .svg, .pdf or .png, not 'a.gif'"),
        ("", "", "a picture's name must end in .svg, .pdf or .png, not ''"),
        ("a.svg", "", "x must be given for a picture that is drawn as plot"),
        ("a.svg", "x = 'load'", "y must be given for a picture that is drawn as plot"),
        ("a.svg", "x = 'load'\ny = 'fct.p99'\ncolour = 'red'",
         "an option of plot must be one of x, y, by, title, xscale, yscale, band, foot, not 'colour'"),
        ("a.svg", "draw = 'pie'",
         "draw must be one of plot, fct_and_goodput, fct_cdf, series, heat, links, queues, not 'pie'"),
        ("a.svg", "draw = 'links'\nshow = 'busy'", "an option of links must be one of title, foot, only, not 'show'"),
        ("a.svg", "draw = 'heat'\nonly = 3", "only must be a part of the name of a run, not 3"),
        ("a.svg", "draw = 'series'\nshow = 'queues'",
         "show must be one of throughput, use, busy, live, waiting, finished, lost, not 'queues'"),
        ("a.svg", "draw = 'fct_cdf'\nsmaller_than = 'huge'", "smaller_than: a size must look like 130KB, not 'huge'"),
        ("a.svg", "draw = 'fct_cdf'\ny = 'fct.p99'",
         "an option of fct_cdf must be one of smaller_than, larger_than, tail, title, points, foot, not 'y'"),
    ],
)  # fmt: skip
def test_a_picture_that_cannot_be_drawn_is_said_when_the_study_is_read(tmp_path, file, rest, sentence):
    path = tmp_path / "study.toml"
    path.write_text(FILE + PICTURE.format(file=file, rest=rest))
    with pytest.raises(BadStudy) as said:
        weft.Study.load(path)
    assert str(said.value) == f"{path}: {sentence}"


@pytest.mark.parametrize("picture", ["picture = 3\n", "picture = 'a.svg'\n", "picture = []\n", "picture = [1]\n"])
def test_pictures_must_be_tables(tmp_path, picture):
    path = tmp_path / "study.toml"
    path.write_text(picture + FILE)
    with pytest.raises(BadStudy, match=r": picture must be one table \[picture\] or several \[\[picture\]\], not "):
        weft.Study.load(path)


def test_one_picture_may_be_one_table_as_one_fabric_may(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE + "\n[picture]\nfile = 'a.svg'\ndraw = 'fct_cdf'\nsmaller_than = '100KB'\n")
    assert weft.Study.load(path).pictures == ({"draw": "fct_cdf", "file": "a.svg", "smaller_than": 100_000},)


@pytest.mark.parametrize("number", ["1" + "0" * 5000, "-" + "9" * 4301])
def test_a_number_that_python_does_not_read_is_said(tmp_path, number):
    path = tmp_path / "study.toml"
    path.write_text(FILE.replace("nodes = 8", f"nodes = {number}"))
    with pytest.raises(BadStudy) as said:
        weft.Study.load(path)
    assert str(said.value) == f"{path} must be a TOML file of numbers that fit 63 bits, not longer ones"


# what sets runs apart


def row(**values):
    return {key.replace("__", "."): value for key, value in values.items()}


def test_runs_of_different_fabrics_are_told_apart_by_what_only_some_of_them_have():
    rows = [
        row(fabric__kind="Shoal", fabric__nodes=8, seed=1),
        row(fabric__kind="Crossbar", fabric__iterations=1, seed=1),
        row(fabric__kind="Crossbar", fabric__iterations=4, seed=1),
    ]
    assert labels(rows) == ["Shoal, nodes 8", "Crossbar, iterations 1", "Crossbar, iterations 4"]


def test_runs_that_differ_in_a_late_digit_are_told_apart():
    rows = [row(workload__load=0.900001, seed=1), row(workload__load=0.900002, seed=1)]
    assert labels(rows) == ["load 0.900001", "load 0.900002"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["Shoal", "Crossbar"]), st.floats(0.01, 2), st.integers(0, 2**62)),
        min_size=2, max_size=6, unique=True,
    )
)  # fmt: skip
def test_no_two_runs_have_one_name(runs):
    rows = [row(fabric__kind=kind, workload__load=load, seed=seed) for kind, load, seed in runs]
    assert len(set(labels(rows))) == len(rows)


def test_a_result_by_name_is_the_result_of_that_run():
    loads = [0.5, 0.500001]
    runs = weft.Study(fabrics=[RACK], workloads=[replace(SOME, load=load) for load in loads]).run()
    assert {name: result.workload["load"] for name, result in runs.named().items()} == {
        "load 0.5": 0.5, "load 0.500001": 0.500001,
    }  # fmt: skip


# folders that were damaged


@pytest.fixture
def damaged(tmp_path):
    """A study of one run, its folder, and where the run is."""
    study = weft.Study(fabrics=[RACK], workloads=[SOME], seeds=[1])
    runs = study.run(tmp_path)
    return study, tmp_path, tmp_path / "runs" / study.points[0].name(), fingerprints(runs)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"partial": true}'])
def test_a_run_whose_summary_is_damaged_is_run_again(damaged, content):
    study, folder, place, before = damaged
    (place / "result.json").write_bytes(content)
    assert len(study.missing(folder)) == 1
    assert fingerprints(study.run(folder)) == before
    assert study.missing(folder) == []


def test_a_run_that_is_gone_is_run_again(damaged):
    study, folder, place, before = damaged
    shutil.rmtree(place)
    assert fingerprints(study.run(folder)) == before


def test_a_checkpoint_that_is_damaged_is_named_and_nothing_is_lost(damaged):
    study, folder, place, _ = damaged
    shutil.rmtree(place)
    checkpoint = place.with_name(place.name + ".checkpoint")
    checkpoint.write_bytes(b"PK\x03\x04 but no more")
    with pytest.raises(WeftError) as said:
        study.run(folder)
    assert str(said.value) == f"{checkpoint} must be a checkpoint, not something that cannot be read"
    checkpoint.unlink()
    assert len(study.run(folder)) == 1


def test_a_run_moved_to_another_folder_is_found_there(damaged, tmp_path_factory):
    study, _, place, before = damaged
    other = tmp_path_factory.mktemp("other")
    (other / "runs").mkdir()
    shutil.copytree(place, other / "runs" / place.name)
    assert study.missing(other) == []
    assert fingerprints(study.run(other)) == before


@pytest.mark.parametrize("workers", [0, -1, 1025, 1.5, "two", None])
def test_workers_that_cannot_be_are_refused(workers):
    with pytest.raises(BadInput) as said:
        STUDY.run(workers=workers)
    assert str(said.value) == f"workers must be from 1 to 1024, not {workers!r}"


def test_progress_sees_every_run_begin_and_end(tmp_path):
    seen = []
    study = weft.Study(fabrics=[RACK], workloads=[SOME], seeds=[1, 2])
    study.run(tmp_path, progress=lambda shares, found: seen.append((list(shares), found)))
    assert seen[0] == ([0.0, 0.0], 0)
    assert seen[-1] == ([1.0, 1.0], 0)
    sums = [sum(shares) for shares, _ in seen]
    assert sums == sorted(sums)
    again = []
    study.run(tmp_path, progress=lambda shares, found: again.append((list(shares), found)))
    assert again == [([1.0, 1.0], 2)]


def test_a_worker_that_is_killed_is_said_in_a_sentence(tmp_path):
    study = weft.Study(fabrics=[RACK], workloads=[Dying(flows=1), Dying(flows=2)])
    with pytest.raises(WeftError) as said:
        study.run(tmp_path, workers=2)
    assert str(said.value) == (
        "a worker was killed before its run was done, perhaps for want of memory: what is kept is whole, and fewer "
        "workers need less"
    )
    assert study.missing(tmp_path) == list(study.points)


def test_what_is_wrong_in_a_worker_is_said_as_it_is_without_one(tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text("0,0,9,100,0\n")
    study = weft.Study(fabrics=[RACK], workloads=[weft.Trace(path=str(trace))], seeds=[1, 2])
    sentences = []
    for workers in (1, 2):
        with pytest.raises(WeftError) as said:
            study.run(workers=workers)
        sentences.append(str(said.value))
    assert sentences == [f"{trace}, line 1: dst must be a node from 0 to 7, not 9"] * 2


SCRIPT = """
import weft
study = weft.Study(fabrics=[weft.Shoal(nodes=4)], workloads=[{workload}(fan_in=2, bytes=500)], seeds=[1, 2])
print(len(study.run(workers=2)))
"""


def test_a_script_needs_no_guard_around_its_study(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(workload="weft.Incast"))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_a_script_whose_own_classes_workers_need_is_told_of_the_guard(tmp_path):
    own = "import weft\nclass Own(weft.Incast):\n    pass\n"
    (tmp_path / "script.py").write_text(own + SCRIPT.format(workload="Own"))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-1].startswith("weft.errors.BadInput: ")
    assert 'script.py must run its study under `if __name__ == "__main__":`' in done.stderr


# several fabrics

MIXED = """
title = "three fabrics"
seeds = [1, 2]
columns = ["fabric", "fan_in", "fct.p99"]

[links]
rate = "40Gbps"
propagation = "100ns"
mtu = 1500

[[fabric]]
kind = "shoal"
name = "Shoal"
nodes = 8

[[fabric]]
kind = "packet"
hosts = 8
topology = "single"
transport = ["ndp", "dctcp"]

[[workload]]
kind = "incast"
fan_in = [2, 4]
bytes = "2KB"
"""


@pytest.fixture
def mixed(tmp_path):
    def load(text=MIXED):
        (tmp_path / "study.toml").write_text(text)
        return weft.Study.load(tmp_path / "study.toml")

    return load


def test_links_of_a_study_are_those_of_all_its_fabrics(mixed):
    study = mixed()
    assert {fabric.link for fabric in study.fabrics} == {40 * weft.Gbps} and study.warnings == []
    assert {fabric.links()["propagation"] for fabric in study.fabrics} == {100_000}
    with pytest.raises(BadStudy, match=r"fabric shoal: link must be given here or in \[links\], not in both$"):
        mixed(MIXED.replace("nodes = 8", "nodes = 8\nlink = '1Gbps'"))
    with pytest.raises(BadStudy, match=r": links must have some of rate, propagation, mtu, not 'colour'$"):
        mixed(MIXED.replace("mtu", "colour"))


def test_a_study_of_unlike_links_says_so(mixed):
    unlike = MIXED.replace('rate = "40Gbps"\npropagation = "100ns"\nmtu = 1500', "")
    assert mixed(unlike).warnings == [
        "link differs: Shoal 100 Gbps; Packet ndp, Packet dctcp 10 Gbps",
        "propagation differs: Shoal 0 ps; Packet ndp, Packet dctcp 1 us",
    ]


def test_fabrics_have_names_and_a_table_shows_those_and_only_what_differs(mixed):
    study = mixed(MIXED.replace('kind = "packet"', 'kind = "packet"\nname = "Clos"'))
    assert list(study.called.values()) == ["Shoal", "Clos ndp", "Clos dctcp"]
    assert list(mixed().called.values()) == ["Shoal", "Packet ndp", "Packet dctcp"]
    rows = [{**study.name_row(p), **flatten({"fabric": describe(p.fabric), "workload": describe(p.workload)}),
             "seed": p.seed, "wall_s": 1.0} for p in study.points]  # fmt: skip
    heads = [column.header for column in runs_table(rows).columns]
    assert heads == ["fabric", "fan in", "seed", "wall (s)"]
    assert labels(rows)[0] == "Shoal, fan in 2, seed 1"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("fct.p99", "max"), r"'max' must name one column, not any of fct_us\.all\.max, "),
        (("fct.p99", "speed"), r"a column must be one that the runs have, such as .*, not 'speed'$"),
    ],
)
def test_columns_that_the_runs_will_not_have_are_refused_before_the_first(mixed, monkeypatch, change, sentence):
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    with pytest.raises(BadInput, match=sentence):
        mixed(MIXED.replace(*change)).run()


@pytest.mark.parametrize(
    ("by", "sentence"),
    [("['fabric', 'colour']", r"not 'colour'$"), ("'notes'", r"not notes, which holds a list$")],
)
def test_pictures_that_cannot_be_drawn_are_refused_before_the_first_run(mixed, monkeypatch, by, sentence):
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    picture = f"\n[[picture]]\nfile = 'a.svg'\nx = 'fan_in'\ny = 'fct.p99'\nby = {by}\n"
    with pytest.raises(BadInput, match=sentence):
        mixed(MIXED + picture).run()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("draw = 'links'", r"^a map must be of 1 to 6 results, not 12$"),
        ("draw = 'series'\nonly = 'Ring'", r"^only must be a part of the name of a run, as in 'Shoal, .*', not 'Ring'"),
    ],
)
def test_pictures_over_time_that_cannot_be_drawn_are_refused_before_the_first_run(
    mixed, monkeypatch, options, sentence
):
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    with pytest.raises(BadInput, match=sentence):
        mixed(MIXED + f"\n[[picture]]\nfile = 'a.svg'\n{options}\n").run()


def test_a_map_of_queues_of_a_fabric_without_any_is_refused_before_the_first_run(monkeypatch):
    study = weft.Study(fabrics=[RACK, weft.Ideal(nodes=8)], workloads=[SOME])
    monkeypatch.setattr("weft.study.run", lambda *a, **k: pytest.fail("run"))
    with pytest.raises(BadInput, match=r"^queues must be those of a fabric that has some, which Ideal has not$"):
        replace(study, pictures=({"file": "a.svg", "draw": "queues"},)).run()


def test_what_is_unlike_is_said_under_the_table_and_under_every_picture(tmp_path, capsys):
    (tmp_path / "study.toml").write_text("""
[[fabric]]
kind = "shoal"
nodes = 8
[[fabric]]
kind = "crossbar"
ports = 8
[[workload]]
kind = "incast"
fan_in = 3
bytes = "20KB"
""")
    study = weft.Study.load(tmp_path / "study.toml")
    assert study.warnings == ["link differs: Shoal 100 Gbps; Crossbar 10 Gbps"]
    runs = study.run()
    pictures = [
        dict(x="nodes", y="fct.p99"), dict(draw="fct_cdf"), dict(draw="series"), dict(draw="links"), dict(draw="heat")
    ]  # fmt: skip
    for options in pictures:
        assert runs.draw(**options).figure.get_supxlabel() == study.warnings[0]
    assert study.warnings[0] in runs._repr_html_()
    from weft.cli import main

    capsys.readouterr()
    assert main(["sweep", str(tmp_path / "study.toml"), "-o", str(tmp_path / "out")]) == 0
    assert study.warnings[0] in "".join(capsys.readouterr())


def test_pictures_that_cannot_be_meant_are_refused_in_python_too():
    runs = weft.Study(fabrics=[RACK], workloads=[SOME]).run()
    for options, sentence in (
        (dict(draw="pie"), r"^draw must be one of plot, .*, not 'pie'$"),
        (dict(x="load", y=["fct.p99"]), r"^y must be the name of a column, not \['fct\.p99'\]$"),
    ):
        with pytest.raises(BadInput, match=sentence):
            runs.draw(**options)
    for draw in (series.links, series.series, plots.fct_cdf):
        with pytest.raises(BadInput, match=r"^a picture must be of at least one result, not 'none'$"):
            draw({})


def test_a_study_file_draws_series_and_maps_of_the_runs_it_names(tmp_path):
    study = weft.Study(fabrics=[RACK, weft.Ideal(nodes=8)], workloads=[SOME], seeds=[1, 2])
    runs = study.run(tmp_path)
    queues = runs.draw(draw="queues", only="Shoal, seed 1")
    assert "series" not in queues.data[0] and len({row["queue"] for row in queues.data}) == 8
    for draw in ("heat", "links"):
        assert len({row["series"] for row in runs.draw(draw=draw).data}) == 4
    assert {row["series"] for row in runs.draw(draw="series", show="busy", only="seed 2").data} == {
        "Shoal, seed 2", "Ideal, seed 2"
    }  # fmt: skip


@pytest.mark.long
def test_a_study_of_several_fabrics_is_drawn_with_a_line_for_each(mixed, tmp_path):
    study = mixed()
    runs = study.run(tmp_path)
    made = runs.plot(x="fan_in", y="fct.p99", band="ci95")
    legend = made.figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["Shoal", "Packet ndp", "Packet dctcp"]
    assert legend.get_title().get_text() == "mean of 2 runs and its 95 % interval"
    both = runs.plot(x="seed", y="fct.p99", by=["fabric", "fan_in"])
    assert len({(point["fabric.name"], point["workload.fan_in"]) for point in both.data}) == 6
    seen = foresight._rows(study)
    assert all(set(row) <= set(known) for row, known in zip(runs.rows, seen, strict=True))


def test_warm_up_is_cut_from_every_metric_of_flows():
    study = weft.Study(fabrics=[RACK], workloads=[SOME])
    whole = study.run()
    cut = replace(study, warmup=int(whole.results[0].flows.start[10])).run()
    assert (whole.rows[0]["flows.all"], cut.rows[0]["flows.all"]) == (30, 20)
    late = whole.results[0].observation.finish[10:] - whole.results[0].flows.start[10:]
    assert cut.rows[0]["fct_us.all.max"] == late.max() / 1e6


def test_runs_and_results_go_to_arrow_and_to_notebooks():
    runs = weft.Study(fabrics=[RACK], workloads=[SOME], seeds=[1, 2]).run()
    table = runs.to_arrow()
    assert table.num_rows == 2 and table["seed"].to_pylist() == [1, 2] and "fct_us.all.p99" in table.column_names
    assert "<table>" in runs._repr_html_() and "<table>" in runs.results[0]._repr_html_()
    flows = runs.results[0].to_arrow()
    assert flows["fct_ps"].to_pylist() == (runs.results[0].observation.finish - runs.results[0].flows.start).tolist()
    for kind in ("fct", "throughput", "use", "busy", "live", "waiting", "heat", "links", "queues"):
        assert runs.results[0].plot(kind).data


def test_progress_can_be_a_line(capsys):
    weft.run(RACK, SOME, progress=True)
    weft.Study(fabrics=[RACK], workloads=[SOME]).run(progress=True)
    said = capsys.readouterr().err
    assert "of 30 flows" in said or "compiling" in said
    assert "of 1 runs" in said and said.endswith("\r")
