"""Studies on clusters: the same folders whoever runs them, and what happens when workers, schedulers and disks fail.

Every scheduler and worker here is a process of its own on the loopback; those with WEFT_SHARED=no see nothing of the
study's folder, and what they need and make travels.
"""

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from distributed import Client

import weft
from dying import Dying
from loopback import ROOT, WITH_NANNY, Loopback, free_port
from weft.cluster import home, link
from weft.errors import BadInput, WeftError
from weft.experiment import need
from weft.sources import digest_of
from weft.study import claimed

RACK = weft.Shoal(nodes=8)
SOME = weft.Poisson(load=0.5, sizes="fixed:20KB", flows=30)
STUDY = weft.Study(fabrics=[RACK], workloads=[SOME, replace(SOME, load=0.8)], seeds=[1, 2])
SLOWER = weft.Study(fabrics=[weft.Shoal(nodes=32)], workloads=[replace(SOME, flows=30_000)], seeds=range(4))
LONG = weft.Study(fabrics=[weft.Shoal(nodes=32)], workloads=[replace(SOME, flows=500_000)], seeds=[1, 2])
FILE = """
[fabric]
kind = "shoal"
nodes = 8
[workload]
kind = "poisson"
sizes = "fixed:20KB"
load = 0.5
flows = 30
"""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))
from weft.cli import main
sys.exit(main(sys.argv[1:]))
"""
IMPORTED = """
import sys
from weft.cli import main
main(sys.argv[1:])
print(sorted({"dask", "distributed", "tornado"} & set(sys.modules)))
"""

SHARED = pytest.mark.parametrize("shared", ["yes", pytest.param("no", marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    STUDY.run(folder)
    return folder


@pytest.fixture(scope="module")
def slower(tmp_path_factory):
    """The folder of SLOWER, by one process."""
    folder = tmp_path_factory.mktemp("slower")
    SLOWER.run(folder)
    return folder


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """(a study file whose runs take long enough to be interrupted, its folder by one process)."""
    folder = tmp_path_factory.mktemp("longer")
    study = folder / "study.toml"
    study.write_text(
        "seeds = [1, 2]\n" + FILE.replace("nodes = 8", "nodes = 32").replace("flows = 30", "flows = 90_000")
    )
    weft.Study.load(study).run(folder / "one")
    return study, folder / "one"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Two workers that share the file system."""
    with Loopback(tmp_path_factory.mktemp("lab")) as made:
        made.worker()
        made.worker()
        yield made


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """Two workers that do not."""
    with Loopback(tmp_path_factory.mktemp("apart")) as made:
        made.worker(WEFT_SHARED="no")
        made.worker(WEFT_SHARED="no")
        yield made


@pytest.fixture
def own(tmp_path_factory):
    """A scheduler for one test, which starts its workers itself."""
    with Loopback(tmp_path_factory.mktemp("own")) as made:
        yield made


def same(study, one, other):
    """Assert that two folders hold the same runs, to the byte of the flows and the digit of the fingerprints."""
    assert study.missing(one) == study.missing(other) == []
    for point in study.points:
        places = [Path(folder) / "runs" / point.name() for folder in (one, other)]
        flows = [(place / "flows.parquet").read_bytes() for place in places]
        prints = [json.loads((place / "result.json").read_text())["fingerprint"] for place in places]
        told = [json.loads((place / "provenance.json").read_text()) for place in places]
        assert flows[0] == flows[1] and prints[0] == prints[1]
        assert [{key: one[key] for key in ("fabric", "workload", "inputs", "sources")} for one in told[:1]] == [
            {key: one[key] for key in ("fabric", "workload", "inputs", "sources")} for one in told[1:]
        ]
    names = sorted([".lock", *(point.name() for point in study.points)])
    assert sorted(os.listdir(Path(other) / "runs")) == names


def under_way(folder, client) -> list[str]:
    """Workers that have a run of ours."""
    return [worker for worker, keys in client.processing().items() if keys]


def until(what, seconds=90):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


# the same bits


def test_two_workers_that_share_the_folder_make_the_folders_of_one(lab, kept, tmp_path):
    STUDY.run(tmp_path, on=lab.address)
    same(STUDY, kept, tmp_path)


def test_two_workers_that_share_nothing_make_the_folders_of_one(apart, kept, tmp_path):
    STUDY.run(tmp_path, on=apart.address)
    same(STUDY, kept, tmp_path)
    assert not list(apart.folder.glob("worker-*/tmp/weft-*/runs/*"))


def test_processes_of_this_machine_make_the_folders_of_one(kept, tmp_path):
    STUDY.run(tmp_path, on="local:2")
    same(STUDY, kept, tmp_path)


def test_a_client_that_somebody_has_serves_and_stays_open(lab, kept):
    with Client(lab.address, set_as_default=False) as client:
        seen = []
        runs = STUDY.run(on=client, progress=lambda shares, found: seen.append((list(shares), found)))
        assert client.status == "running"
    assert [row["fingerprint"] for row in runs.rows] == [row["fingerprint"] for row in STUDY.run(kept).rows]
    assert seen[0] == ([0.0] * 4, 0) and seen[-1] == ([1.0] * 4, 0)


def test_what_is_on_disk_is_not_run_again_and_needs_no_scheduler(kept):
    assert len(STUDY.run(kept, on="tcp://127.0.0.1:1")) == 4


def test_files_travel_to_workers_that_do_not_have_them(apart, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("0,0,1,100,0\n1,2,3,5000,1000\n")
    study = weft.Study(fabrics=[RACK], workloads=[weft.Trace(path="t.csv"), SOME])
    study.run("one")
    study.run("two", on=apart.address)
    same(study, "one", "two")
    Path("t.csv").write_text("0,0,1,100,0\n1,2,3,6000,1000\n")
    assert len(study.missing("two")) == 1
    study.run("one")
    study.run("three", on=apart.address)
    same(study, "three", "three")
    assert weft.Result.load(Path("three/runs") / study.points[0].name()).flows.bytes == 6100


# failures


@SHARED
def test_a_worker_killed_in_the_middle_changes_nothing(own, slower, tmp_path, shared):
    first = own.worker(WEFT_SHARED=shared)
    done = []
    study = Thread(target=lambda: done.append(SLOWER.run(tmp_path / "two", on=own.address)))
    study.start()
    with Client(own.address, set_as_default=False) as client:
        until(lambda: under_way(tmp_path, client))
        time.sleep(0.5)
        own.end(first, signal.SIGKILL)
        own.worker(WEFT_SHARED=shared)
        study.join(120)
    assert done
    same(SLOWER, slower, tmp_path / "two")


def test_a_scheduler_that_restarts_is_waited_for(own, slower, tmp_path):
    worker = own.worker()
    done = []
    study = Thread(target=lambda: done.append(SLOWER.run(tmp_path / "two", on=own.address)))
    study.start()
    with Client(own.address, set_as_default=False) as client:
        until(lambda: under_way(tmp_path, client))
    own.end(own.scheduler, signal.SIGKILL)
    own.end(worker, signal.SIGTERM)
    own.start_scheduler()
    own.worker()
    study.join(120)
    assert done
    same(SLOWER, slower, tmp_path / "two")


def test_a_scheduler_that_stays_away_is_said_with_what_is_kept(own, tmp_path, monkeypatch):
    monkeypatch.setattr(link, "AGAIN", 3)
    own.worker()
    said = []

    def study():
        try:
            LONG.run(tmp_path, on=own.address)
        except WeftError as error:
            said.append(str(error))

    thread = Thread(target=study)
    thread.start()
    with Client(own.address, set_as_default=False) as client:
        until(lambda: under_way(tmp_path, client))
    own.end(own.scheduler, signal.SIGKILL)
    thread.join(60)
    assert said == [
        f"the scheduler {own.address} must stay or come back within 3 s: it is gone; "
        "0 of 2 runs are kept, and the same study goes on from there"
    ]


@pytest.mark.parametrize("where", ["lab", "apart"])
def test_a_run_that_fails_is_reported_with_its_sentence_and_the_others_go_on(where, tmp_path, request):
    trace = tmp_path / "t.csv"
    trace.write_text("0,0,9,100,0\n")
    study = weft.Study(fabrics=[RACK], workloads=[weft.Trace(path=str(trace)), SOME, replace(SOME, load=0.7)])
    shares = []
    with pytest.raises(WeftError) as said:
        study.run(
            tmp_path / "out",
            on=request.getfixturevalue(where).address,
            progress=lambda s, found: shares.append(list(s)),
        )
    bad = study.points[0].name()
    sentence = f"{trace}, line 1: dst must be a node from 0 to 7, not 9"
    assert str(said.value) == f"1 of 3 runs failed, the others are kept: {bad}: {sentence}"
    assert [point.name() for point in study.missing(tmp_path / "out")] == [bad]
    assert shares[-1] == [-1.0, 1.0, 1.0]


def test_a_run_that_kills_its_workers_is_reported_and_the_others_go_on(tmp_path):
    with Loopback(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as lab:
        lab.worker(nanny=WITH_NANNY)
        study = weft.Study(fabrics=[RACK], workloads=[Dying(flows=1), SOME], seeds=[1, 2])
        with pytest.raises(WeftError) as said:
            study.run(tmp_path / "out", on=lab.address)
    names = [point.name() for point in study.points]
    sentence = "its worker was killed each time before the run was done, perhaps for want of memory"
    assert str(said.value).startswith("2 of 4 runs failed, the others are kept: ")
    assert sorted(str(said.value).partition(": ")[2].split("; ")) == sorted(f"{name}: {sentence}" for name in names[:2])
    assert [point.name() for point in study.missing(tmp_path / "out")] == names[:2]


def test_a_run_that_another_process_has_claimed_is_waited_for(lab, tmp_path):
    (tmp_path / "runs").mkdir()
    place = tmp_path / "runs" / STUDY.points[0].name()
    hold = (
        "import sys; from pathlib import Path; from weft.study import claimed\n"
        "with claimed(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, place], stdin=-1, stdout=-1, text=True)
    assert holder.stdout.readline() == "held\n"
    seen = []

    def look(shares, found):
        seen.append(list(shares))
        if sum(shares) == 3 and holder.poll() is None:
            holder.communicate("")

    STUDY.run(tmp_path, on=lab.address, progress=look)
    assert [0.0, 1.0, 1.0, 1.0] in seen and seen[-1] == [1.0] * 4
    with claimed(place):
        assert STUDY.missing(tmp_path) == []


# workers that cannot serve


def test_a_worker_with_another_source_is_refused_with_both_named_and_a_good_one_serves(own, tmp_path, caplog):
    shutil.copytree(ROOT / "src" / "weft", tmp_path / "src" / "weft", ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "src/weft/fabrics/shoal/kernel.py", "a") as kernel:
        kernel.write("# another\n")
    own.worker(source=tmp_path / "src")
    ask = "import weft; from weft.sources import digest_of; print(digest_of(weft.Shoal(nodes=8), weft.Poisson(load=1)))"
    other = subprocess.run(
        [sys.executable, "-c", ask], env={**os.environ, "PYTHONPATH": str(tmp_path / "src")}, stdout=-1, text=True
    ).stdout.strip()
    ours = digest_of(RACK, SOME)
    assert other != ours
    with pytest.raises(WeftError) as said:
        STUDY.run(tmp_path / "out", on=own.address)
    version = weft.__version__
    assert str(said.value).startswith("worker tcp://127.0.0.1:")
    assert str(said.value).endswith(
        f" must have the source code {ours} of Shoal and Poisson (weft {version}), not {other} (weft {version})"
    )
    own.worker()
    with Client(own.address, set_as_default=False) as client:
        own.wait_for(client, 2)
    STUDY.run(tmp_path / "out", on=own.address)
    assert STUDY.missing(tmp_path / "out") == []
    assert f"not {other}" in caplog.text


def test_a_worker_whose_weft_knows_no_clusters_is_refused(own, tmp_path):
    (tmp_path / "src" / "weft").mkdir(parents=True)
    (tmp_path / "src" / "weft" / "__init__.py").write_text("")
    own.worker(source=tmp_path / "src")
    with pytest.raises(WeftError) as said:
        STUDY.run(tmp_path / "out", on=own.address)
    said = str(said.value).partition(" must ")[2]
    assert said.startswith(f"have weft {weft.__version__}, not one that cannot be asked: ")
    assert "No module named 'weft.cluster'" in said


def test_a_worker_that_was_started_before_its_source_was_written_is_refused(own, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "src" / "weft", tmp_path / "src" / "weft", ignore=shutil.ignore_patterns("__pycache__"))
    own.worker(source=tmp_path / "src")
    with Client(own.address, set_as_default=False) as client:
        own.wait_for(client, 1)
    time.sleep(3)  # the system knows to a second or two when a process began
    os.utime(tmp_path / "src/weft/fabrics/shoal/kernel.py")
    with pytest.raises(WeftError) as said:
        STUDY.run(tmp_path / "out", on=own.address)
    assert str(said.value).partition(" must ")[2] == (
        "be started again, because weft/fabrics/shoal/kernel.py was written after it was started"
    )


def test_a_run_goes_only_to_a_worker_that_it_fits(own, tmp_path, monkeypatch):
    monkeypatch.setattr(home, "GRACE", 1)
    large = weft.Study(fabrics=[weft.Shoal(nodes=64), RACK], workloads=[SOME], seeds=[1, 2])
    needs = [need(point.fabric, point.workload.planned(point.fabric.nodes)) for point in large.points]
    between = (needs[0] + needs[-1]) // 2
    assert needs[-1] < between < needs[0]
    own.worker("--resources", f"weft-memory={between}")
    with pytest.raises(WeftError) as said:
        large.run(tmp_path, on=own.address)
    assert str(said.value).startswith("2 of 4 runs failed, the others are kept: ")
    assert "a run of 64 nodes and 30 flows must fit in " in str(said.value)
    own.worker("--resources", f"weft-memory={10 * needs[0]}")
    with Client(own.address, set_as_default=False) as client:
        own.wait_for(client, 2)
    large.run(tmp_path, on=own.address)
    assert large.missing(tmp_path) == []


def test_a_kernel_is_compiled_by_one_worker_of_a_machine(own, tmp_path):
    shared = str(tmp_path / "spool")
    os.mkdir(shared)
    for _ in range(2):
        own.worker(WEFT_CACHE=str(tmp_path / "cache"), DASK_TEMPORARY_DIRECTORY=str(tmp_path))
    study = weft.Study(
        fabrics=[weft.Crossbar(ports=4)], workloads=[weft.Bernoulli(load=0.5)], seeds=[1, 2], until=10**8
    )

    def misses():
        import sys

        kernels = [
            value for name, module in list(sys.modules.items()) if name.startswith("weft.fabrics.crossbar")
            for value in vars(module).values() if hasattr(value, "stats") and hasattr(value, "py_func")
        ]  # fmt: skip
        return sum(sum(one.stats.cache_misses.values()) for one in {id(one): one for one in kernels}.values())

    with Client(own.address, set_as_default=False) as client:
        own.wait_for(client, 2)
        client.run(lambda: setattr(__import__("tempfile"), "tempdir", shared))
        study.run(tmp_path / "out", on=client)
        counts = sorted(client.run(misses).values())
    assert counts[0] == 0 and counts[1] >= 1, counts


# disks that are full


def test_a_worker_whose_disk_is_full_leaves_its_runs_to_others(apart, kept, tmp_path):
    endless = resource.RLIM_INFINITY

    def limited(size):  # what is defined in here is sent as it is
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, endless))

    with Client(apart.address, set_as_default=False) as client:
        apart.wait_for(client, 2)
        first = next(iter(client.nthreads()))
        client.run(limited, 1000, workers=[first])
        try:
            STUDY.run(tmp_path, on=client)
        finally:
            client.run(limited, endless, workers=[first])
    same(STUDY, kept, tmp_path)


def test_a_full_disk_at_home_is_a_sentence_and_loses_nothing(apart, kept, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(FILE)
    command = ["sweep", str(study), "-o", str(tmp_path / "out"), "--on", apart.address, "--quiet"]
    done = subprocess.run([sys.executable, "-c", LIMITED, *command], capture_output=True, text=True, timeout=120)
    place = tmp_path / "out" / "runs" / weft.Study.load(study).points[0].name()
    assert (done.returncode, done.stderr) == (2, f"weft sweep: {place} cannot be written: file too large\n")
    assert os.listdir(tmp_path / "out" / "runs") == [".lock"]
    weft.Study.load(study).run(tmp_path / "out", on=apart.address)
    assert place.exists()


# what is typed


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("local:0", "on must be local:1 to local:1024, not 'local:0'"),
        ("local:many", "on must be local:1 to local:1024, not 'local:many'"),
        ("somewhere", "on must be a Dask client, the address of a scheduler as in tcp://host:8786, local:N for N "
         "processes here, or gpu, not 'somewhere'"),
        (3, "on must be a Dask client, the address of a scheduler as in tcp://host:8786, local:N for N "
         "processes here, or gpu, not 3"),
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_is_refused(on, sentence):
    with pytest.raises(BadInput) as said:
        STUDY.run(on=on)
    assert str(said.value) == sentence


def test_workers_and_a_cluster_are_not_asked_for_together():
    with pytest.raises(BadInput) as said:
        STUDY.run(workers=2, on="local:2")
    assert str(said.value) == "workers must be left out where `on` says who works, not 2"


def test_no_such_scheduler_is_said_in_seconds(tmp_path):
    address = f"tcp://127.0.0.1:{free_port()}"
    began = time.monotonic()
    with pytest.raises(BadInput) as said:
        STUDY.run(tmp_path, on=address)
    assert str(said.value) == f"on must be a Dask scheduler that answers within 5 s, not {address}: connection refused"
    assert time.monotonic() - began < 10


def test_something_else_than_a_scheduler_is_said_in_seconds(tmp_path):
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], stdout=-3, stderr=-3
    )
    try:
        until(lambda: link._deaf(f"tcp://127.0.0.1:{port}") == "no answer", 30)
        began = time.monotonic()
        with pytest.raises(BadInput, match=r"no answer$"):
            STUDY.run(tmp_path, on=f"tcp://127.0.0.1:{port}")
        assert time.monotonic() - began < 15
    finally:
        server.kill()
        server.wait()


def test_nothing_of_dask_is_imported_unless_a_study_runs_on_a_cluster(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(FILE)
    for tokens in (["--help"], ["sweep", "--help"], ["sweep", str(study), "--quiet"]):
        done = subprocess.run([sys.executable, "-c", IMPORTED, *tokens], capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines()[-1] == "[]", done


@SHARED
def test_control_c_leaves_everything_resumable(longer, tmp_path, shared):
    (study, one), out = longer, tmp_path / "out"
    (tmp_path / "tmp").mkdir()
    arguments = [sys.executable, "-m", "weft", "sweep", str(study), "-o", str(out), "--on", "local:2"]
    env = {**os.environ, "WEFT_SHARED": shared, "TMPDIR": str(tmp_path / "tmp")}
    sweep = subprocess.Popen([*arguments, "--quiet"], env=env, stdout=-1, stderr=-1, text=True, start_new_session=True)
    turn = tmp_path / "tmp" / f"weft-{os.getuid()}" / "compiling"
    until(lambda: turn.exists() or sweep.poll() is not None)
    time.sleep(0.3)
    with open(turn, "ab") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)  # has waited for the kernel: a run has begun
    time.sleep(1)
    os.killpg(sweep.pid, signal.SIGINT)
    printed = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, printed
    assert printed == ("", f"weft sweep: interrupted; the same command goes on from what {out} holds\n")
    kept = (out if shared == "yes" else tmp_path / "tmp").rglob("*.checkpoint")
    assert list(kept)
    assert list((out / "runs").glob(".weft-*")) == []
    again = subprocess.run([*arguments, "--quiet"], env=env, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again
    same(weft.Study.load(study), one, out)
