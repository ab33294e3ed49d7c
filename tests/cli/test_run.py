"""`weft run`: the JSON that others rely on, flags made of fields, and folders."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from weft import catalogue
from weft.cli.run import command_of
from weft.metrics import Result
from weft.parameters import parameters

SMALL = ("run", "shoal", "incast", "--nodes", "8", "--fan-in", "4", "--bytes", "13KB")
PROGRAM = "import sys; from weft.cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_run_prints_one_json_object_with_the_keys_that_others_rely_on(weft):
    said = weft("run", "shoal", "poisson", "--nodes", 8, "--load", 0.6, "--load-rate", "50Gbps", "--flows", 40,
                "--sizes", "uniform:20KB,2MB", "--link", "100Gbps", "--guard", "2750ps", "--cell", 64, "--header", 8,
                "--channels", 4, "--rules", "paper", "--seed", 7, "--json")  # fmt: skip
    assert said.code == 0
    assert said.err == ""
    data = json.loads(said.out)
    assert data["seed"] == 7
    assert data["fabric"]["nodes"] == 8
    assert data["fabric"]["guard"] == 2750
    assert data["workload"]["load_rate"] == 50_000_000_000
    assert (data["finished"], data["unfinished"]) == (40, 0)
    assert len(data["fingerprint"]) == 32
    for size in ("all", "short", "long"):
        assert list(data["fct_us"][size]) == ["mean", "sd", "p50", "p90", "p95", "p99", "p99.9", "max"]
    assert data["goodput_gbps"]["long"]["mean"] > 0
    assert {"mean", "min", "max"} <= set(data["throughput"]["per_destination_gbps"])
    assert 0 < data["throughput"]["fraction_of_link"] <= 1
    assert {"max", "max_node"} <= set(data["queue_cells"])
    assert set(data["reorder_bytes"]) == {"max"}
    assert {"local", "forwarded", "dummy", "delivered"} <= set(data["cells"])
    assert set(data["monitors"].values()) == {0}
    assert {"node_slots_per_s", "stepped_fraction"} <= set(data["rate"])
    assert all(data[key] > 0 for key in ("simulated_ns", "wall_s", "cpu_s", "peak_rss_mb"))
    assert data["offered"]["nominal_load"] == 0.6
    assert data["offered"]["realised_load"] > 0


def test_load_is_of_the_fabric_s_link_unless_told(weft):
    flags = ("--nodes", 8, "--load", 0.5, "--flows", 20, "--sizes", "fixed:20KB", "--link", "40Gbps", "--json")
    data = json.loads(weft("run", "shoal", "poisson", *flags).out)
    assert data["offered"]["load_rate_gbps"] == 40


def test_a_permutation_runs_for_its_duration(weft):
    data = json.loads(
        weft("run", "shoal", "permutation", "--nodes", 8, "--pairs", 4, "--duration", "40us", "--json").out
    )
    assert 39_000 < data["simulated_ns"] <= 40_000


def test_the_slot_of_the_released_simulator_can_be_asked_for(weft):
    data = json.loads(weft(*SMALL, "--rules", "released", "--channels", 1, "--slot", "5632ps", "--age-interval", 63,
                           "--json").out)  # fmt: skip
    assert data["fabric"]["slot"] == 5632
    assert data["finished"] == 4


def test_a_run_prints_a_table_for_people(weft):
    said = weft(*SMALL)
    assert said.code == 0
    assert said.out.startswith("Shoal, 8 nodes, Incast, seed 0")
    assert "fingerprint" in said.out


def test_every_field_of_a_fabric_and_a_workload_is_a_flag(weft):
    for fabric in catalogue.fabrics():
        cls = catalogue.fabric_class(fabric)
        for name, workload in catalogue.workloads(cls).items():
            taken = inspect.signature(command_of(fabric, cls, name, workload)).parameters
            for field in (*parameters(cls), *parameters(workload)):
                flag = "trace" if (name, field.name) == ("trace", "path") else field.name
                assert any(known.endswith(flag) for known in taken), (fabric, name, flag)
        text = weft("run", fabric, "poisson", "--help").out
        fields = parameters(catalogue.workloads(cls)["poisson"])
        assert all("--" + field.name.replace("_", "-") in text for field in fields)


def test_a_flag_that_two_things_want_gets_its_owner_s_name(weft):
    text = weft("run", "crossbar", "hot-output", "--help").out
    assert "--hot-output-output" in text
    assert "--crossbar-output" in text
    assert "--output -o" in text


def test_a_saved_run_can_be_shown_and_run_again(weft, tmp_path):
    saved = json.loads(weft(*SMALL, "--seed", 3, "-o", tmp_path / "r", "--json").out)
    assert json.loads(weft("show", tmp_path / "r", "--json").out) == saved
    said = weft("rerun", tmp_path / "r")
    assert said.code == 0
    assert said.out == f"{tmp_path / 'r'}: the same again, {saved['fingerprint']}\n"
    assert sorted(os.listdir(tmp_path)) == ["r"]
    assert sorted(os.listdir(tmp_path / "r")) == ["flows.parquet", "provenance.json", "result.json", "samples.parquet"]


def test_flows_parquet_has_the_columns_that_others_rely_on(weft, tmp_path):
    import pyarrow.parquet as pq

    weft(*SMALL, "-o", tmp_path / "r")
    names = pq.read_schema(tmp_path / "r" / "flows.parquet").names
    assert names[:6] == ["flow", "src", "dst", "bytes", "start_ps", "finish_ps"]


def test_a_rerun_that_differs_says_so_and_exits_with_1(weft, tmp_path):
    weft(*SMALL, "-o", tmp_path / "r")
    path = tmp_path / "r" / "result.json"
    was = json.loads(path.read_text())["fingerprint"]
    path.write_text(path.read_text().replace(was, "0" * 32))
    said = weft("rerun", tmp_path / "r")
    assert said.code == 1
    assert said.err == (
        f"weft rerun: the fingerprint of {tmp_path / 'r'}, made by the same source code, must be {'0' * 32}, "
        f"not {was}\n"
    )


def test_a_rerun_until_a_moment_ends_at_that_moment(weft, tmp_path):
    weft(*SMALL, "--until", "3us", "-o", tmp_path / "r")
    assert weft("rerun", tmp_path / "r").code == 0


def test_a_rerun_of_a_trace_that_changed_is_refused(weft, tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text("0,0,1,1000,0\n")
    weft("run", "shoal", "trace", "--trace", trace, "--nodes", 8, "-o", tmp_path / "r")
    trace.write_text("0,0,1,2000,0\n")
    said = weft("rerun", tmp_path / "r")
    assert said.code == 2
    assert said.err == (
        f"weft rerun: {trace} must be the file that {tmp_path / 'r'} was drawn from, not one with other content\n"
    )


def test_a_picture_of_the_completion_times_is_drawn(weft, tmp_path):
    assert weft(*SMALL, "--plot", tmp_path / "fct.svg").code == 0
    assert sorted(os.listdir(tmp_path)) == ["fct.csv", "fct.svg"]


# interrupted, killed, resumed


def start(*tokens):
    """A run in another process, its kernel warm, whose strides are short and checkpoints frequent."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, tokens)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


LONG = (
    "run",
    "shoal",
    "poisson",
    "--nodes",
    "32",
    "--load",
    "0.8",
    "--sizes",
    "fixed:200KB",
    "--flows",
    "1200",
    "--quiet",
)


def wait_for(path, process, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    assert path.exists(), process.communicate()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "r"
    process = start(*LONG, "-o", folder)
    assert process.wait(120) == 0, process.communicate()
    process.communicate()
    return folder


def same_bytes(a, b):
    for name in ("flows.parquet", "samples.parquet"):
        assert (a / name).read_bytes() == (b / name).read_bytes()
    assert Result.load(a).observation.fingerprint == Result.load(b).observation.fingerprint


def test_a_run_that_was_killed_goes_on_from_its_checkpoint(uninterrupted, tmp_path, weft):
    folder, checkpoint = tmp_path / "r", tmp_path / "r.checkpoint"
    killed = start(*LONG, "-o", folder, "--checkpoint-every", "0.1")
    wait_for(checkpoint, killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    said = weft(*LONG, "-o", folder)
    assert said.code == 2
    assert said.err == (
        f"weft run shoal: {checkpoint} holds an unfinished run: add --resume to go on with it, or delete it\n"
    )
    if folder.exists():  # killed between the checkpoint and the partial result, there is none yet
        assert Result.load(folder).partial
    assert weft(*LONG, "-o", folder, "--resume").code == 0
    same_bytes(folder, uninterrupted)
    assert not Result.load(folder).partial
    assert not checkpoint.exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_stopped_run_leaves_a_partial_result_a_checkpoint_and_the_command_to_go_on(
    uninterrupted, tmp_path, weft, stop
):
    folder, checkpoint = tmp_path / "r", tmp_path / "r.checkpoint"
    process = start(*LONG, "-o", folder, "--checkpoint-every", "0.1")
    wait_for(checkpoint, process)
    process.send_signal(stop)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert err == f"interrupted: go on with weft resume {folder}\n"
    assert "the run was interrupted at" in " ".join(out.split())
    assert Result.load(folder).partial
    said = weft("resume", folder, "--quiet")
    assert said.code == 0, said
    same_bytes(folder, uninterrupted)
    assert not checkpoint.exists()


def test_resume_without_a_checkpoint_starts_from_the_beginning_and_says_so(weft, tmp_path):
    said = weft(*SMALL, "-o", tmp_path / "r", "--resume", "--json")
    assert said.code == 0
    assert said.err == f"{tmp_path / 'r.checkpoint'} is not there: starting from the beginning\n"


def test_there_must_be_something_to_resume(weft, tmp_path):
    said = weft("resume", tmp_path / "r")
    assert (said.code, said.err) == (
        2, f"weft resume: {tmp_path / 'r.checkpoint'} must be a checkpoint, but there is no such file\n"
    )  # fmt: skip
    weft(*SMALL, "-o", tmp_path / "r")
    said = weft("resume", tmp_path / "r")
    done = f"{tmp_path / 'r'} must be a run that was interrupted, not one that is done; weft show prints it"
    assert (said.code, said.err) == (2, f"weft resume: {done}\n")
    said = weft(*SMALL, "--resume")
    assert (said.code, said.err) == (
        2, "weft run shoal: --resume must be given with the -o of the run that was interrupted\n"
    )  # fmt: skip


def test_off_a_terminal_a_long_run_says_a_line_now_and_then_and_with_json_nothing(weft, monkeypatch):
    monkeypatch.setattr("weft.cli.progress.FIRST", 0.0)
    said = weft(*SMALL)
    assert said.err.startswith("shoal incast: ")
    assert "simulated" in said.err
    assert weft(*SMALL, "--json").err == ""
    assert weft(*SMALL, "--quiet").err == ""


def test_on_a_terminal_there_is_a_bar_from_the_start(monkeypatch, capsys):
    import sys

    from weft.cli.progress import PREPARING, watching

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with watching("shoal poisson"):
        pass  # nothing has run yet: flows are being drawn
    assert PREPARING in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    [
        ("shoal", "poisson", "--nodes", "8", "--load", "0.7", "--flows", "60", "--sizes", "uniform:1KB,200KB"),
        ("crossbar", "bernoulli", "--ports", "8", "--load", "0.8", "--slots", "500"),
        pytest.param(
            (
                "packet",
                "incast",
                "--hosts",
                "16",
                "--fan-in",
                "9",
                "--bytes",
                "9KB",
                "--fail",
                "links 9% at 1us until 9us",
            ),
            marks=pytest.mark.long,
        ),
    ],
    ids=lambda call: call[0],
)
def test_the_same_call_in_another_process_gives_the_same_bits(weft, tmp_path, call):
    """Python hashes texts differently in every process: nothing that decides an event may follow a hash."""
    here = weft("run", *call, "--seed", 5, "-o", tmp_path / "here", "--json")
    assert here.code == 0, here
    command = [sys.executable, "-m", "weft", "run", *call, "--seed", "5", "-o", str(tmp_path / "there"), "--json"]
    there = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "77"})
    assert there.returncode == 0, there.stderr
    one, other = json.loads(here.out), json.loads(there.stdout)
    spent = ("wall_s", "cpu_s", "peak_rss_mb", "rate")
    assert {key: one[key] for key in one if key not in spent} == {key: other[key] for key in other if key not in spent}
    for name in ("flows.parquet", "samples.parquet"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
