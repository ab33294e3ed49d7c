"""What a command prints and where: JSON alone on stdout, tables that agree with it, and outputs that fail."""

import json
import os
import re
import subprocess
import sys

import pytest

from weft.cli import main
from weft.metrics import Result

RUN = ("run", "shoal", "poisson", "--nodes", "8", "--load", "0.5", "--flows", "30", "--sizes", "uniform:1KB,2MB")
STUDY = """
title = "{title}"
[fabric]
kind = "shoal"
nodes = 8
[workload]
kind = "poisson"
sizes = "fixed:20KB"
load = [0.3, 0.6]
flows = 20
"""


def start(*tokens, **options):
    """The command in another process; the streams are whatever the options say."""
    return subprocess.run([sys.executable, "-m", "weft", *map(str, tokens)], timeout=120, **options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "r"
    assert main([*RUN, "-o", str(folder), "--quiet"]) == 0
    return folder


# streams that fail


def test_a_reader_who_has_gone_loses_no_result(tmp_path):
    """`weft run … -o r | true`: what was computed is saved before it is printed."""
    reading, writing = os.pipe()
    os.close(reading)
    said = start(*RUN, "-o", tmp_path / "r", "--quiet", stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert said.returncode == 0, said
    assert "Traceback" not in said.stderr
    assert Result.load(tmp_path / "r").observation.finished.all()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", [("show", "{kept}"), ("show", "{kept}", "--json"), ("fabrics",), ("--help",)])
def test_an_output_that_is_full_is_said_in_a_sentence(kept, command):
    tokens = [token.format(kept=kept) for token in command]
    with open("/dev/full", "w") as full:
        said = start(*tokens, stdout=full, stderr=subprocess.PIPE, text=True)
    name = "weft" if command[0] == "--help" else f"weft {command[0]}"
    assert (said.returncode, said.stderr) == (
        2, f"{name}: what is printed cannot be written: no space left on device\n"
    )  # fmt: skip


@pytest.mark.parametrize("command", [("show", "{kept}"), ("fabrics", "--json")])
def test_an_output_that_is_closed_takes_nothing_and_breaks_nothing(kept, command):
    tokens = [token.format(kept=kept) for token in command]
    said = start(*tokens, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
    assert (said.returncode, said.stderr) == (0, "")


def test_errors_go_nowhere_where_there_is_no_place_for_them():
    said = start("run", "shoal", "poisson", "--nodes", "1", stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2))
    assert (said.returncode, said.stdout) == (2, b"")


def test_letters_that_a_terminal_lacks_are_replaced_and_json_stays_whole(weft, kept):
    poor = {"capture_output": True, "env": {**os.environ, "PYTHONIOENCODING": "ascii"}}
    said = start("show", kept, **poor)
    assert (said.returncode, said.stderr) == (0, b"")
    assert b"mean ?s" in said.stdout
    data = json.loads(start("workloads", "--json", **poor).stdout.decode("ascii"))
    assert data == json.loads(weft("workloads", "--json").out)


# JSON and nothing else

JSON = [
    ("show", "{kept}"), ("rerun", "{kept}"), ("fabrics",), ("fabrics", "crossbar"), ("workloads",),
    ("workloads", "incast"), ("presets",), ("presets", "ndp"), ("figure",), ("wire", "shoal", "layout"),
    ("wire", "shoal", "encode", "--dst", "1", "--src", "2"), ("schedule", "shoal", "--nodes", "8", "--ports", "4"),
    ("cost", "shoal"), ("cost", "stardust"), ("cost", "merchant"), ("cost", "fpga"), ("cost", "tdma"),
    ("cost", "compare", "--hosts", "512"), ("sweep", "{study}", "-o", "{out}"),
]  # fmt: skip


@pytest.mark.parametrize("command", JSON, ids=" ".join)
def test_json_is_one_document_on_stdout_and_nothing_else(weft, kept, tmp_path, command):
    (tmp_path / "s.toml").write_text(STUDY.format(title="two"))
    places = {"kept": kept, "study": tmp_path / "s.toml", "out": tmp_path / "out"}
    said = weft(*(token.format(**places) for token in command), "--json")
    assert (said.code, said.err) == (0, "")

    def no_such(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(said.out, parse_constant=no_such)


def test_every_number_of_the_table_is_the_json_s(weft, kept):
    """To the digits that are printed."""
    data = json.loads(weft("show", kept, "--json").out)
    lines = weft("show", kept).out.splitlines()
    head = re.split(r"\s{2,}", next(line for line in lines if line.startswith("flows ")).strip())
    assert head[:7] == ["flows", "number", "mean µs", "p50 µs", "p99 µs", "p99.9 µs", "max µs"]
    for name in ("all", "short", "long"):
        cells = next(line for line in lines if re.match(rf"{name}\s", line)).split()
        assert cells[1] == str(data["flows"][name])
        for key, cell in zip(("mean", "p50", "p99", "p99.9", "max"), cells[2:7], strict=True):
            assert float(cell.replace(",", "")) == pytest.approx(data["fct_us"][name][key], rel=5e-4)
        for key, cell in zip(("p50", "p99"), cells[7:9], strict=True):
            assert float(cell.replace(",", "")) == pytest.approx(data["slowdown"][name][key], rel=5e-3)
    facts = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines if re.search(r"\S\s{2,}\S", line))
    assert facts["fingerprint"] == data["fingerprint"]
    assert facts["flows"] == f"{data['finished']} finished, {data['unfinished']} not"
    assert facts["monitors"] == f"all {len(data['monitors'])} held"
    realised = float(facts["load"].split()[0])
    assert realised == pytest.approx(data["offered"]["realised_load"], rel=5e-4)
    good = float(facts["goodput of long flows"].split()[0])
    assert good == pytest.approx(data["goodput_gbps"]["long"]["mean"], rel=5e-4)


def test_the_table_of_a_sweep_and_its_csv_are_the_json_s(weft, tmp_path):
    import csv

    (tmp_path / "s.toml").write_text(STUDY.format(title="two"))
    sweep = ("sweep", tmp_path / "s.toml", "-o", tmp_path / "out")
    data = json.loads(weft(*sweep, "--json").out)
    rows = data["runs"]
    assert data["title"] == "two"
    with open(tmp_path / "out" / "table.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(rows) == 2
    for line, row in zip(read, rows, strict=True):
        assert set(line) == {key for key, value in row.items() if not isinstance(value, list)}
        for key, text in line.items():
            assert text == ("" if row[key] is None else str(row[key])), key
    said = weft(*sweep, "--quiet", "--columns", "load,fct.p99,fct.mean,seed").out
    for line, row in zip(said.splitlines()[2:], rows, strict=True):
        shown = [float(cell.replace(",", "")) for cell in line.split()]
        full = [row[key] for key in ("workload.load", "fct_us.all.p99", "fct_us.all.mean", "seed")]
        assert shown == pytest.approx(full, rel=5e-4)


@pytest.mark.parametrize("title", ["loads [0.3, 0.6]", "[bold]not bold[/bold]", "[/] :smile:", "Übertragung – 100 %"])
def test_a_title_is_printed_as_it_was_written(weft, tmp_path, title):
    (tmp_path / "s.toml").write_text(STUDY.format(title=title), encoding="utf-8")
    said = weft("sweep", tmp_path / "s.toml", "-o", tmp_path / "out", "--quiet")
    assert said.code == 0, said
    assert said.out.splitlines()[0] == title


# paths


@pytest.mark.parametrize("name", ["ein Ordner", "日本", "[red]r", "a'b\"c", ":smile:"])
def test_a_folder_of_any_name_is_written_shown_and_rerun(weft, tmp_path, name):
    flags = ("run", "shoal", "incast", "--nodes", "8", "--fan-in", "3", "--bytes", "13KB", "--quiet")
    assert weft(*flags, "-o", tmp_path / name).err == f"saved in {tmp_path / name}\n"
    assert json.loads(weft("show", tmp_path / name, "--json").out)["finished"] == 3
    assert weft("rerun", tmp_path / name, "--quiet").out.startswith(f"{tmp_path / name}: the same again, ")


def test_a_trace_and_a_study_of_any_name_are_read(weft, tmp_path):
    trace = tmp_path / "spur – 1.csv"
    trace.write_text("0,0,1,1000,0\n")
    text = f'[fabric]\nkind = "shoal"\nnodes = 8\n[workload]\nkind = "trace"\npath = \'{trace}\'\n'
    (tmp_path / "étude.toml").write_text(text, encoding="utf-8")
    rows = json.loads(weft("sweep", tmp_path / "étude.toml", "--json").out)["runs"]
    assert (rows[0]["finished"], rows[0]["workload.path"]) == (1, str(trace))


def test_a_folder_with_a_slash_at_its_end_is_the_same_folder(weft, tmp_path):
    flags = ("run", "shoal", "incast", "--nodes", "8", "--fan-in", "3", "--bytes", "13KB", "--quiet")
    assert weft(*flags, "-o", f"{tmp_path}/r/").code == 0
    assert sorted(os.listdir(tmp_path)) == ["r"]
    assert weft(*flags, "-o", f"{tmp_path}/x/../r").code == 0
    assert sorted(os.listdir(tmp_path)) == ["r"]


def test_a_name_too_long_is_said_before_the_run(weft, tmp_path, monkeypatch):
    monkeypatch.setattr("weft.experiment.run", lambda *a, **k: pytest.fail("run"))
    place = tmp_path / ("a" * 240)
    said = weft(*RUN, "-o", place)
    assert (said.code, said.out) == (2, "")
    assert said.err == f"weft run shoal: {place} cannot be written: file name too long\n"
