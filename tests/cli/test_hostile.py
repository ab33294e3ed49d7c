"""What strangers and accidents leave on a disk: nothing is lost, nothing of it runs, and each gets a sentence."""

import gzip
import json
import os
import re
import signal
import stat
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import weft as lab
from rooms import FLOWS, ONE, SMALL
from weft import catalogue, memory, reading
from weft.checkpoint import Checkpoint, describe_call
from weft.cli import main
from weft.errors import BadInput, BadResult, TooLarge, WeftError
from weft.metrics import Result
from weft.metrics.result import flatten, read_summary
from weft.parameters import REQUIRED, build, parameters
from weft.report.tables import run_table, runs_table
from weft.rtl.designs import read_table
from weft.study import Point, labels
from weft.units import us
from weft.workload import chakra
from weft.workload.disaggregated import Disaggregated

RUN = ("run", "shoal", "poisson", "--nodes", "8", "--load", "0.5", "--flows", "20", "--sizes", "fixed:2KB", "--quiet")
SOME = lab.Poisson(load=0.5, flows=20, sizes="fixed:2KB")
ODD = os.fsdecode(b"a\xff")  # a name that is no UTF-8


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(said, command=""):
    assert (said.code, said.out) == (2, ""), said
    assert said.err.startswith(f"weft {command}") and said.err.count("\n") == 1 and len(said.err) < 1700, said.err[
        :3000
    ]
    return said.err.rstrip("\n")


@pytest.fixture
def result(weft, here):
    assert weft(*RUN, "-o", "r").code == 0
    return here / "r"


# names


def test_a_path_of_any_bytes_is_written_and_read(weft, here):
    (here / f"{ODD}.csv").write_text("0,0,1,5000,0\n")
    trace = ("run", "shoal", "trace", "--nodes", "8", "--trace", f"{ODD}.csv", "--quiet")
    assert weft(*trace, "-o", ODD, "--plot", f"{ODD}b.svg").code == 0
    assert Result.load(ODD).workload["path"] == f"{ODD}.csv"
    for command in ("show", "rerun"):
        assert weft(command, ODD).code == 0
    assert weft(*trace, "--json").code == 0
    study = '[fabric]\nkind = "shoal"\nnodes = 8\n[workload]\nkind = "incast"\nfan_in = 3\nbytes = 900\n'
    (here / f"{ODD}.toml").write_text(study)
    assert weft("sweep", f"{ODD}.toml", "-o", f"{ODD}-out", "--quiet").code == 0


@pytest.mark.parametrize("path", ["a\0b", "a" * 5000, "/".join(["a"] * 3000)], ids=["NUL", "long", "deep"])
@pytest.mark.parametrize(
    "tokens",
    [(*RUN, "-o"), (*RUN, "--plot"), ("show",), ("rerun",), ("resume",), ("sweep",), ("stress",),
     ("run", "shoal", "trace", "--nodes", "8", "--trace"), ("run", "packet", "poisson", "--load", "0.5", "--topology"),
     ("cost", "merchant", "--wiring"), ("cost", "merchant", "--write-wiring"), ("wire", "pfc", "decode", "--file"),
     ("run", "merchant", "poisson", "--load", "0.5", "--wiring"), ("run", "shoal", "chakra", "--nodes", "8", "--trace"),
     ("compare",)],
    ids=" ".join,
)  # fmt: skip
def test_a_path_that_cannot_be_is_said_before_the_run(weft, here, monkeypatch, tokens, path):
    monkeypatch.setattr("weft.experiment.Session.__init__", lambda *a, **k: pytest.fail("run"))
    refused(weft(*tokens, path + ".svg" if tokens[-1] == "--plot" else path))


# nothing is lost


def test_a_result_that_cannot_be_put_in_its_place_is_kept_elsewhere_and_it_is_said_where(weft, here, monkeypatch):
    real = Result.save

    def save(self, folder):
        if Path(folder).parent == here:
            raise WeftError(f"{folder} cannot be written: no space left on device")
        real(self, folder)

    monkeypatch.setattr(Result, "save", save)
    said = weft(*RUN, "-o", here / "r")
    assert said.code == 2 and "no space left on device" in said.err
    kept = re.search(r"^the result is kept in (.*)$", said.err, re.M)[1]
    assert Result.load(kept).seed == 0 and stat.S_IMODE(Path(kept).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("error", [WeftError("a bug"), RuntimeError("a bug")])
def test_a_picture_that_fails_after_the_run_loses_no_result(here, monkeypatch, capsys, error):
    def fail(*a, **k):
        raise error

    monkeypatch.setattr("weft.cli.run.draw", fail)
    with suppress(RuntimeError):
        main([*RUN, "--plot", "a.svg"])
    kept = re.search(r"^the result is kept in (.*)$", capsys.readouterr().err, re.M)
    assert Result.load(kept[1]).seed == 0


@pytest.mark.parametrize("place", ["none.d/a/b.svg", "file/a.svg", "folder.svg", "a.gif"])
def test_a_picture_that_cannot_be_drawn_is_refused_before_the_run(weft, here, monkeypatch, place):
    (here / "file").write_text("")
    (here / "folder.svg").mkdir()
    said = None
    if not place.startswith("none"):  # that one can be made
        monkeypatch.setattr("weft.experiment.Session.__init__", lambda *a, **k: pytest.fail("run"))
        said = refused(weft(*RUN, "--plot", place))
    else:
        assert weft(*RUN, "--plot", place).code == 0 and (here / place).exists()
    assert said is None or "written" in said or "must end in" in said


@pytest.mark.parametrize("tokens", [("-o", "/proc/x"), ("--plot", "/proc/x.svg"), ("-o", "/proc/x/y")])
def test_a_place_that_takes_no_file_is_refused_before_the_run_whoever_asks(weft, here, monkeypatch, tokens):
    monkeypatch.setattr("weft.experiment.Session.__init__", lambda *a, **k: pytest.fail("run"))
    said = refused(weft(*RUN, *tokens))
    assert said.startswith(f"weft run shoal: {tokens[1]} cannot be written: ")


def test_cells_have_no_completion_times_to_draw_which_is_said_before_the_run(weft, here, monkeypatch):
    monkeypatch.setattr("weft.experiment.Session.__init__", lambda *a, **k: pytest.fail("run"))
    said = refused(weft("run", "crossbar", "bernoulli", "--ports", "8", "--load", "0.5", "--plot", "a.svg"))
    assert said.endswith("completion times can be drawn of flows only, not of cells made inside a switch")


def test_the_numbers_of_a_picture_do_not_replace_what_the_run_reads(weft, here):
    (here / "a.csv").write_text("0,0,1,5000,0\n")
    said = refused(weft("run", "shoal", "trace", "--nodes", "8", "--trace", "a.csv", "--plot", "a.svg"))
    assert said.endswith("a picture and its numbers must go into files of their own, not a.csv, which the run reads")
    assert (here / "a.csv").read_text() == "0,0,1,5000,0\n"


# nothing is taken for checked that was not


@pytest.mark.parametrize(
    "tokens",
    [(*RUN, "--checkpoint-every", "nonsense"), (*RUN, "--checkpoint-every", "0"), (*RUN, "--checkpoint-every", "nan"),
     (*RUN, "--sync-guard", "-1"), ("figure", "--scale", "nonsense"), ("figure", "--workers", "none"),
     ("figure", "--workers", "0"), (*RUN, "--memory", "-1")],
    ids=lambda tokens: " ".join(tokens[-2:]),
)  # fmt: skip
def test_a_flag_that_means_nothing_is_refused_even_if_it_is_not_needed(weft, here, tokens):
    refused(weft(*tokens))


GIVEN = {"load": 0.5, "bytes": 1000, "path": "x.csv", "model": "bert-tiny"}


@pytest.mark.parametrize("value", [-1, -(2**62)])
def test_no_description_takes_a_number_below_nothing(value):
    things = [fabrics[0] for fabrics in SMALL.values()]
    for cls in catalogue.own_workloads().values():
        needed = [one.name for one in parameters(cls) if one.default is REQUIRED]
        things.append(build(cls, {name: GIVEN.get(name, 2) for name in needed}))
    for thing in things:
        for one in parameters(type(thing)):
            if one.kind in ("int", "float", "time", "rate", "size") and not one.many:
                with pytest.raises(WeftError):
                    replace(thing, **{one.name: value})
                    pytest.fail(f"{type(thing).__name__}.{one.name}")


@pytest.mark.parametrize("where", ["pages", "blocks", "sizes", "topology", "wiring", "trace"])
def test_a_file_that_decides_a_run_is_in_its_name(here, where, weft):
    contents = {
        "topology": "h0,s,1Gbps,1us\nh1,s,1Gbps,1us\n", "trace": "0,0,1,100,0\n",
    }.get(where, "100,0.5\n200,1\n")  # fmt: skip
    path = here / "file.csv"
    path.write_text(contents)
    if where == "wiring":
        assert weft("cost", "merchant", "--radix", "8", "--write-wiring", path).code == 0
        contents = path.read_text()

    def name():
        rack, some = lab.Shoal(nodes=8), lab.Poisson(load=0.5)
        if where in ("pages", "blocks"):
            some = Disaggregated(**{where: str(path)})
        elif where == "sizes":
            some = lab.Poisson(load=0.5, sizes=str(path))
        elif where == "trace":
            some = lab.Trace(path=str(path))
        elif where == "topology":
            rack = lab.Packet(hosts=2, topology=str(path))
        else:
            rack = lab.Merchant(radix=8, wiring=str(path))
        return Point(rack, some, 1).name()

    before = name()
    path.write_text(contents + "\n")
    assert name() != before


def test_a_pipe_is_no_file_that_can_be_named(here):
    os.mkfifo(here / "pipe")
    with pytest.raises(
        BadInput, match=r"must be a file, whose content can be told, not 'a pipe, which can be read once'$"
    ):
        Point(lab.Shoal(nodes=8), lab.Trace(path="pipe"), 1).name()


# files of others


def edits(data, path=()):
    """Every place in some JSON, as a path of keys."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from edits(value, (*path, key))
    elif isinstance(data, list):
        for k, value in enumerate(data[:2]):
            yield from edits(value, (*path, k))


def edited(data, path, value):
    """The same JSON with another value in one place."""
    if not path:
        return value
    out = list(data) if isinstance(data, list) else dict(data)
    out[path[0]] = edited(data[path[0]], path[1:], value)
    return out


OTHERS = (None, [], {}, "text", -1, 1.5, True, 10**400, float("inf"), {"kind": []}, [[]])


def shown(place):
    run_table(Result.load(place))


def made_again(place):
    catalogue.rebuild_call(Result.load(place).provenance)


def tabulated(place):
    row = flatten(read_summary(place))
    labels([row, row])
    runs_table([row])


@pytest.mark.parametrize("name", ["result.json", "provenance.json"])
@pytest.mark.parametrize("use", [shown, made_again, tabulated])
def test_whatever_is_edited_in_a_result_gets_a_sentence_or_is_read(result, name, use):
    data, refusals = json.loads((result / name).read_text()), 0
    for k, path in enumerate(edits(data)):
        for value in OTHERS if len(path) < 2 else (OTHERS[k % 11], OTHERS[(k + 5) % 11]):
            (result / name).write_text(json.dumps(edited(data, path, value)))
            try:
                use(result)
            except WeftError as error:
                assert "\n" not in str(error), (path, value)
                refusals += 1
    assert refusals > 20


@pytest.mark.parametrize("depth", [1000, 20_000, 100_000])
def test_what_is_nested_too_deep_gets_a_sentence(weft, here, result, depth):
    (here / "deep.toml").write_text("a = " + "[" * depth + "]" * depth)
    refused(weft("sweep", "deep.toml"), "sweep: ")
    (result / "result.json").write_text("[" * depth + "]" * depth)
    refused(weft("show", "r"), "show: ")
    (result / "result.json").write_text('{"a":' * depth + "1" + "}" * depth)
    refused(weft("show", "r"), "show: ")


@pytest.mark.parametrize("table", ["[" * 100_000, "\xff", "{}", '{"switches": [{"name": [], "slots": 5}]}',
                                   '{"switches": [{"name": "leaf0", "slots": [5]}]}'])  # fmt: skip
def test_a_table_of_slots_that_is_none_gets_a_sentence(here, table):
    (here / "x.json").write_bytes(table.encode("latin-1"))
    with pytest.raises(BadInput, match=r"^table must be a file that `weft schedule shoal --json` has written, not"):
        read_table("x.json", "leaf0")


@pytest.mark.parametrize("table", [b"\xff", b"a" * 200_000, b"fabric.name\nx\n", b'fingerprint,fabric.name\n"', b""])
def test_a_table_of_a_study_that_was_edited_gets_a_sentence_or_is_left_out(weft, here, result, table):
    (here / "s" / "runs").mkdir(parents=True)
    result.rename(here / "s" / "runs" / "r")
    (here / "s" / "table.csv").write_bytes(table)
    said = weft("compare", "s")
    assert said.code == 0 or refused(said, "compare: ")


def test_a_provenance_nested_too_deep_is_no_result(weft, here, result):
    (result / "provenance.json").write_text("[" * 100_000)
    refused(weft("compare", "r"), "compare: ")


CSVS = {
    "sizes": ("run", "shoal", "poisson", "--nodes", "8", "--load", "0.5", "--sizes", "x.csv"),
    "edges": ("run", "packet", "poisson", "--load", "0.5", "--topology", "x.csv"),
    "wiring": ("cost", "merchant", "--wiring", "x.csv"),
    "trace": ("run", "shoal", "trace", "--nodes", "8", "--trace", "x.csv"),
}


@pytest.mark.parametrize(
    "content", ["a" * 200_000, '"' + "a" * 200_000, "a," * 100_000, "\n" * 9, '"', "1,\udcff", "a\0b"]
)
@pytest.mark.parametrize("tokens", CSVS.values(), ids=CSVS)
def test_a_csv_that_is_none_gets_a_sentence_of_bounded_length(weft, here, tokens, content):
    (here / "x.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
    refused(weft(*tokens))


# more than there is room for


def test_a_trace_of_a_rank_without_an_end_meets_the_limit(weft, here):
    for rank in range(2):
        (here / f"x.{rank}.et").symlink_to("/dev/zero")
    said = refused(weft("run", "shoal", "chakra", "--nodes", "8", "--trace", "x", "--memory", "300MB"))
    assert "x.0.et must fit in 300 MB of memory, not need " in said


def test_a_trace_of_a_rank_that_unpacks_to_more_than_memory_is_not_unpacked(here):
    (here / "x.0.et").write_bytes(gzip.compress(bytes(10**8)))
    assert os.path.getsize("x.0.et") < 10**6
    with memory.limited(10**8), pytest.raises(TooLarge, match=r"^x.0.et must fit in 100 MB of memory, not need "):
        chakra.read("x.0.et")


def test_a_trace_without_an_end_meets_the_limit(weft, here):
    said = refused(weft(*CSVS["trace"][:-1], "/dev/zero", "--memory", "300MB"))
    assert "/dev/zero must fit in 300 MB of memory, not need " in said


def test_a_file_larger_than_memory_is_not_read(here):
    with open("x.csv", "wb") as file:
        file.truncate(10**9)
    with memory.limited(10**8), pytest.raises(TooLarge, match=r"^x.csv must fit in 100 MB of memory, not need 12 GB$"):
        reading.content("x.csv", "a trace")


def test_parquet_that_unpacks_to_more_than_memory_is_not_unpacked(weft, here):
    import pyarrow as pa
    import pyarrow.parquet as pq

    many = pa.array(np.zeros(20_000_000, np.int64))
    names = ("src", "dst", "bytes", "start_ps")
    pq.write_table(pa.table(dict.fromkeys(names, many)), "x.parquet", compression="zstd")
    assert os.path.getsize("x.parquet") < 10**6
    said = refused(weft(*CSVS["trace"][:-1], "x.parquet", "--memory", "600MB"))
    assert "x.parquet must fit in 600 MB of memory, not need 1.28" in said


@pytest.fixture
def stopped(weft, here):
    """The checkpoint of a run that was interrupted, and how to write another of the same call."""
    rack, some = lab.Shoal(nodes=8), SOME
    run = rack.prepare(some.draw(nodes=8, link=rack.link, seed=0), seed=0)
    run.advance(until=1_000_000)
    call = {**describe_call(rack, some, 0, None), "spent": {"wall_s": 0.0, "cpu_s": 0.0}}

    def write(arrays=None, **changed):
        checkpoint = Checkpoint("r.checkpoint")
        checkpoint.write({**call, **changed}, run.freeze() if arrays is None else arrays, None)
        assert checkpoint.problem is None

    return run, write


def test_a_checkpoint_is_resumed(weft, stopped):
    stopped[1]()
    assert weft("resume", "r").code == 0


def test_an_archive_that_unpacks_to_more_than_it_seems_is_refused(weft, stopped):
    stopped[1]()
    with zipfile.ZipFile("r.checkpoint") as file:
        entries = {name: file.read(name) for name in file.namelist()}
    entries["run.bomb.npy"] = bytes(10**8)
    with zipfile.ZipFile("r.checkpoint", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    assert os.path.getsize("r.checkpoint") < 10**6
    assert refused(weft("resume", "r")).endswith("must be a checkpoint, not something that cannot be read")


@pytest.mark.parametrize("key", ["fabric", "workload", "seed", "until", "spent", "inputs", "sources", "resolved"])
@pytest.mark.parametrize("value", OTHERS, ids=lambda value: repr(value)[:20])
def test_whatever_is_edited_in_the_call_of_a_checkpoint_gets_a_sentence(weft, stopped, key, value):
    run, write = stopped
    try:
        write(**{key: value})
    except ValueError:  # JSON has no infinity
        return
    said = weft("resume", "r")
    assert said.code == 2 or value == dict.get(describe_call(run.fabric, SOME, 0, None), key), said
    assert said.code == 0 or len([line for line in said.err.splitlines() if line[:5] != "note:"]) == 1, said


@pytest.mark.parametrize("field", ["nodes", "link", "channels", "rules", "fail", "ber", "delay"])
@pytest.mark.parametrize("value", OTHERS[1:-3], ids=lambda value: repr(value)[:20])
def test_whatever_is_edited_in_the_fabric_of_a_checkpoint_gets_a_sentence(weft, stopped, field, value):
    run, write = stopped
    call = describe_call(run.fabric, SOME, 0, None)
    write(fabric={**call["fabric"], field: value})
    refused(weft("resume", "r"))


# arrays that would lead a kernel out of its tables


def crafted(run):
    """Twelve checkpoints of a run whose arrays nobody's kernel made: name -> its arrays."""
    whole = run.freeze()

    def but(name, change):
        arrays = {key: array.copy() for key, array in whole.items()}
        arrays[name] = change(arrays[name])
        return arrays

    def put(value, place=...):
        def change(array):
            array[place] = value
            return array

        return change

    return {
        "halved": but("run.leave", lambda a: a[: len(a) // 2]),
        "doubled alone": but("run.target", lambda a: np.concatenate([a, a])),
        "wider": but("run.early", lambda a: np.repeat(a, 3, axis=1)),
        "other type": but("run.held", lambda a: a.astype(np.uint64)),
        "flat": but("run.pair", lambda a: a.reshape(-1)),
        "missing": {key: array for key, array in whole.items() if key != "run.ring"},
        "more": {**whole, "run.more": np.zeros(4)},
        "cell beyond": but("run.spill", put(2**31)),
        "node beyond": but("run.target", put(8)),
        "flow beyond": but("run.ring", put(2**32 - 1)),
        "stack beyond": but("run.tally", put(10**9, 8)),
        "waits below": but("run.pair", put(-1, (slice(None), 6))),
        "samples": but("series.time_ps", lambda a: a[:0]),
        "clock": but("loop", lambda a: a[:1]),
    }


NAMES = ("halved", "doubled alone", "wider", "other type", "flat", "missing", "more", "cell beyond", "node beyond",
         "flow beyond", "stack beyond", "waits below", "samples", "clock")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_that_would_lead_a_kernel_astray_is_refused(weft, stopped, name):
    run, write = stopped
    arrays = crafted(run)
    assert list(arrays) == list(NAMES)
    write(arrays[name])
    said = refused(weft("resume", "r"), "resume: ")
    assert "of a checkpoint must be" in said or "a checkpoint must have the arrays of its run" in said


@pytest.mark.parametrize(("room", "fabric"), ONE, ids=[name for name, _ in ONE])
def test_no_array_of_any_room_is_taken_from_a_stranger_unseen(room, fabric):
    """Each array cut in half, of another type, or without its last axis."""
    flows = FLOWS[0].draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=3 * us)
    whole = {name: array.copy() for name, array in run.freeze().items()}
    fabric.thaw(flows, whole, seed=1)
    for name, array in whole.items():
        bad = [array.astype(np.complex64) if array.dtype.names is None else array.view(np.uint8), array[..., None]]
        bad += [array[: len(array) // 2]] if array.ndim and len(array) > 1 else []
        for other in bad:
            with pytest.raises(BadResult):
                fabric.thaw(flows, {**whole, name: other}, seed=1)


INDICES = {  # arrays that lead into tables, and columns or fields of them, whose worst values are tried
    "shoal": ("spill", "link", "free", "target", "rest", "block", "order", "seats", "living", "whose", "air", "sent"),
    "crossbar": ("free", "queue", "cells", "info", "active", "before", "owner", "mate", "flow_next", "level"),
    "packet": ("due", "heap", "heads", "rows", "flows", "hosts", "ports", "table", "group", "choices", "order"),
    "merchant": ("due", "heap", "heads", "rows", "flows", "hosts", "ports", "table", "group", "choices"),
    "torus": ("due", "heap", "heads", "rows", "flows", "hosts", "ports"),
    "ideal": ("live",),
    "stardust": ("due", "heap", "heads", "rows", "flows", "hosts"),
    "tdma": ("head", "tail", "next", "frm", "to", "path", "many", "clock"),
}


@pytest.mark.parametrize(("room", "fabric"), ONE, ids=[name for name, _ in ONE])
def test_a_number_that_leads_out_of_its_table_is_refused(room, fabric):
    flows = FLOWS[0].draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=3 * us)
    whole = {name: array.copy() for name, array in run.freeze().items()}
    for name in INDICES[room]:
        array = whole[f"run.{name}"].copy()
        array.view(np.uint8)[...] = 0x7F
        with pytest.raises(BadResult, match=" of a checkpoint must be "):
            fabric.thaw(flows, {**whole, f"run.{name}": array}, seed=1)


# links


def test_a_planted_link_is_not_written_through(weft, here):
    victim = here / "victim"
    victim.write_text("mine")
    (here / "r.checkpoint").symlink_to(victim)
    with pytest.raises(BadResult):
        Checkpoint.beside("r").call()
    Checkpoint("r.checkpoint").write({}, {}, None)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", ["../out.svg", "/tmp/out.svg", "a/../../out.svg"])
def test_a_picture_of_a_study_stays_in_its_folder(weft, here, name):
    study = '[fabric]\nkind = "shoal"\nnodes = 8\n[workload]\nkind = "incast"\nfan_in = 3\nbytes = 900\n'
    (here / "s.toml").write_text(f'{study}[picture]\nfile = "{name}"\nx = "nodes"\ny = "fct.p99"\n')
    said = refused(weft("sweep", "s.toml", "-o", "out"), "sweep: s.toml: ")
    assert said.endswith(f"a file of an output folder must be a name inside it, not '{name}'")


# who is killed


def test_what_a_killed_run_left_is_removed_by_the_next(weft, here):
    program = (
        "import os, signal, weft.metrics.result as r\n"
        "r._write_json = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from weft.cli import main; import sys; main(sys.argv[1:])"
    )
    told = subprocess.run([sys.executable, "-c", program, *RUN, "-o", "r"], capture_output=True)
    assert told.returncode == -signal.SIGKILL
    assert [name for name in os.listdir() if name.startswith(".r.weft-")]
    assert weft(*RUN, "-o", "r").code == 0
    assert os.listdir() == ["r"]
