"""What users throw at the command line: each gets a sentence, or is made sense of and said; nothing on disk is lost."""

import errno
import json
import os
import resource
import subprocess
import sys

import pytest

RUN = ("run", "shoal", "poisson", "--load", "0.5", "--flows", "20", "--sizes", "fixed:2KB")
PROGRAM = "import sys; from weft.cli import main; sys.exit(main(sys.argv[1:]))"


def sentence(said, command="weft run shoal"):
    """The one sentence that was said; nothing else was printed, and no traceback."""
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith(f"{command}: "), said.err
    assert said.err.count("\n") == 1, said.err
    return said.err.removeprefix(f"{command}: ").rstrip("\n")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--nodes", "0"), "nodes must be at least 2, not 0"),
        (("--nodes", "1"), "nodes must be at least 2, not 1"),
        (("--nodes", "-4"), "nodes must be at least 2, not -4"),
        (("--nodes", "1e9"), "nodes must be at most 32,767, not 1000000000"),
        (("--nodes", "1.5"), "nodes must be a whole number, not '1.5'"),
        (("--nodes", "many"), "nodes must be a whole number, not 'many'"),
        (("--nodes", "1e999999999"), "nodes must be a whole number, not '1e999999999'"),
        (("--nodes", "8", "--load", "0"), "load must be a finite number above 0, not 0.0"),
        (("--nodes", "8", "--load", "-1"), "load must be a finite number above 0, not -1.0"),
        (("--nodes", "8", "--load", "nan"), "load must be a finite number above 0, not nan"),
        (("--nodes", "8", "--load", "inf"), "load must be a finite number above 0, not inf"),
        (("--nodes", "8", "--load", "half"), "load must be a number, not 'half'"),
        (("--nodes", "8", "--flows", "0"), "flows must be at least 1, not 0"),
        (("--nodes", "8", "--link", "0"), "link must be a positive rate, not 0"),
        (("--nodes", "8", "--link", "fast"), "link: a rate must look like 100Gbps, not 'fast'"),
        (("--nodes", "8", "--guard", "2 parsecs"),
         "guard: a time must be in one of ps, ns, us, µs, ms, s, not 'parsecs' as in '2 parsecs'"),
        (("--nodes", "8", "--channels", "8"), "channels must be between 1 and nodes - 1 = 7, not 8"),
        (("--nodes", "8", "--rules", "mine"), "rules must be one of paper, released, literal, not 'mine'"),
        (("--nodes", "8", "--seed", "-1"), "seed must be from 0 to 2^63 - 1, not -1"),
        (("--nodes", "8", "--seed", "x"), "seed must be a whole number, not 'x'"),
        (("--nodes", "8", "--until", "0ps"), "until must be above 0 ps, not 0"),
        (("--nodes", "8", "--memory", "1KB"), None),
        (("--nodes", "8", "--plot", "fct.gif"), "a picture's name must end in .svg, .pdf or .png, not 'fct.gif'"),
        (("--nodes", "8", "--checkpoint-every", "0", "-o", "never"),
         "checkpoint_every must be above 0 seconds, not 0.0"),
        (("--nodes", "8", "--ready-queues=maybe"), None),
        (("--nodes", "8", "--colour", "red"), None),
        (("--nodes", "8", "extra"), None),
        (("--nodes",), None),
        ((), None),
    ],
)  # fmt: skip
def test_a_bad_flag_gets_a_sentence(weft, flags, expected):
    given = list(RUN)
    for flag in flags:
        if flag in given:  # replaced, not repeated
            place = given.index(flag)
            del given[place : place + 2]
    said = sentence(weft(*given, *flags))
    if expected is not None:
        assert said == expected


def test_a_flag_given_twice_gets_a_sentence(weft):
    assert "--load" in sentence(weft(*RUN, "--nodes", 8, "--load", 0.1))


def test_a_misspelled_flag_command_fabric_or_workload_is_named(weft):
    assert "--nodes" in sentence(weft(*RUN, "--node", 8))
    assert "poisson" in sentence(weft("run", "shoal", "poison", "--nodes", 8))
    assert "shoal" in sentence(weft("run", "shaol", "poisson"), "weft run shaol")
    assert "run" in sentence(weft("rnu"), "weft rnu")


def test_overload_runs_and_is_said(weft):
    data = json.loads(weft("run", "shoal", "poisson", "--nodes", 8, "--load", 50, "--flows", 40, "--sizes", "fixed:2KB",
                           "--json").out)  # fmt: skip
    assert data["finished"] == 40
    assert "offered load exceeds the link of 100 Gbps: overload" in data["notes"]


def test_more_flows_than_fit_are_refused(weft):
    said = sentence(weft("run", "shoal", "poisson", "--nodes", 8, "--load", 0.5, "--flows", "1e12"))
    assert said.startswith("a run of 8 nodes and 1,000,000,000,000 flows must fit in ")


def test_endless_flows_in_a_trace_need_an_end(weft, tmp_path):
    path = tmp_path / "t.cm"
    path.write_text("Nodes 8\nConnections 1\n0->1 id 1 start 0\n")
    said = sentence(weft("run", "shoal", "trace", "--trace", path, "--nodes", 8))
    assert said == "until must be given, because 1 of 1 flows never end, not None"
    assert weft("run", "shoal", "trace", "--trace", path, "--nodes", 8, "--until", "5us").code == 0


# traces

TRACE = ("run", "shoal", "trace", "--nodes", "8", "--trace")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "{path} must have at least one flow, not be empty"),
        ("flow,src,dst,bytes,start\n", "{path} must have at least one flow, not 0"),
        ("flow,src,dst,bytes,start,colour\n0,0,1,5,0,red\n",
         "{path}, line 1: a column must be flow, src, dst, bytes, start, start_ps, class, rate, after or delay_ps, "
         "not 'colour'; `columns` names others, as in start=ts:ms,src=from"),
        ("0,0,1,100,-1\n", "{path}, line 1: start must be at least 0 s, not -1"),
        ("0,0,99,100,0\n", "{path}, line 1: dst must be a node from 0 to 7, not 99"),
        ("0,0,1,1e30,0\n", None),
        ("0,0,1,many,0\n", "{path}, line 1: bytes must be a whole number, not 'many'"),
        (b"\x7fELF\x00\x01\xff\xfe", "{path} must be a csv, htsim or Parquet trace, not another kind of binary file"),
        (b"PAR1 but no more", None),
    ],
)  # fmt: skip
def test_a_malformed_trace_is_named_by_file_line_and_field(weft, tmp_path, content, expected):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = sentence(weft(*TRACE, path))
    assert str(path) in said
    if expected is not None:
        assert said == expected.format(path=path)


def test_a_trace_that_is_missing_or_a_folder_is_named(weft, tmp_path):
    assert sentence(weft(*TRACE, tmp_path / "none.csv")) == (
        f"{tmp_path / 'none.csv'} must be a trace, but there is no such file"
    )
    assert sentence(weft(*TRACE, tmp_path)) == f"{tmp_path} must be a trace, not a directory"


def test_flows_to_oneself_of_no_bytes_and_out_of_order_are_made_sense_of_and_said(weft, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,0,1,100000,0.000001\n1,2,2,100000,0\n2,3,4,0,0\n3,1,0,100000,0\n")
    data = json.loads(weft(*TRACE, path, "--json").out)
    assert data["finished"] == 2
    assert data["notes"] == [
        "1 flow from a node to itself was skipped", "1 flow of 0 bytes was skipped", "flows were sorted by start",
    ]  # fmt: skip


def test_a_flow_of_ten_terabytes_runs_as_long_as_it_is_let(weft, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"0,0,1,{10 * 10**12},0\n")
    data = json.loads(weft(*TRACE, path, "--until", "20us", "--json").out)
    assert (data["finished"], data["unfinished"]) == (0, 1)


def test_the_smallest_flow_runs(weft, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,0,1,1,0\n")
    data = json.loads(weft(*TRACE, path, "--json").out)
    assert data["finished"] == 1
    assert data["fct_us"]["all"]["mean"] > 0


# folders

GOOD = (*RUN, "--nodes", "8", "--json")


def test_a_folder_with_something_else_in_it_is_left_alone(weft, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    said = sentence(weft(*GOOD, "-o", tmp_path))
    assert said == f"{tmp_path} must be empty or hold a result of weft, not 'thesis.tex'"
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_place_of_the_folder_is_left_alone(weft, tmp_path):
    path = tmp_path / "results"
    path.write_text("mine")
    assert sentence(weft(*GOOD, "-o", path)) == f"{path} must be a folder, not a file"
    assert path.read_text() == "mine"


def test_an_older_result_is_replaced_and_what_a_user_put_there_stays(weft, tmp_path):
    weft(*GOOD, "-o", tmp_path / "r")
    (tmp_path / "r" / "notes.txt").write_text("a good run")
    assert weft(*GOOD, "--seed", 2, "-o", tmp_path / "r").code == 0
    assert (tmp_path / "r" / "notes.txt").read_text() == "a good run"
    assert json.loads((tmp_path / "r" / "result.json").read_text())["seed"] == 2


def test_a_read_only_folder_is_said_before_the_run(weft, tmp_path, monkeypatch):
    """Root may write everywhere, so the system's answer is made up; `test_study.py` asks the system itself."""
    monkeypatch.setattr("weft.metrics.folder.refusal", lambda place: errno.EACCES if place == tmp_path else 0)
    monkeypatch.setattr("weft.experiment.run", lambda *a, **k: pytest.fail("run"))
    assert sentence(weft(*GOOD, "-o", tmp_path / "r")) == f"{tmp_path / 'r'} cannot be written: permission denied"


def test_a_disk_that_fills_up_keeps_the_older_result_and_still_prints_the_new_one(weft, tmp_path, monkeypatch):
    weft(*GOOD, "-o", tmp_path / "r")
    before = (tmp_path / "r" / "result.json").read_bytes()

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("weft.metrics.result._write_table", full)
    said = weft(*GOOD, "--seed", 2, "-o", tmp_path / "r")
    assert said.code == 2
    assert json.loads(said.out)["seed"] == 2
    assert said.err == (
        f"weft run shoal: {tmp_path / 'r'} cannot be written: no space left on device; what was there is kept\n"
    )
    assert (tmp_path / "r" / "result.json").read_bytes() == before
    assert os.listdir(tmp_path) == ["r"]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_file_system_that_takes_no_more_bytes_loses_nothing(tmp_path, compiled):
    """The same with a limit that the system itself enforces; what has to be compiled cannot be kept either."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    elsewhere = {} if compiled else {"WEFT_CACHE": str(tmp_path.with_name("cache"))}
    said = subprocess.run(
        [sys.executable, "-c", "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + PROGRAM, *GOOD,
         "-o", str(tmp_path / "r")],
        capture_output=True, text=True, preexec_fn=limit, timeout=120,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", **elsewhere},
    )  # fmt: skip
    assert said.returncode == 2, said
    assert "Traceback" not in said.stderr
    assert said.stderr.startswith(f"weft run shoal: {tmp_path / 'r'} cannot be written: ")
    assert os.listdir(tmp_path) == []


def test_what_is_no_result_cannot_be_shown_or_rerun(weft, tmp_path):
    for command in ("show", "rerun"):
        said = sentence(weft(command, tmp_path), f"weft {command}")
        assert said == f"{tmp_path} must be a result folder, not one without provenance.json"
        said = sentence(weft(command, tmp_path / "none"), f"weft {command}")
        assert said == f"{tmp_path / 'none'} must be a result folder, not missing"
