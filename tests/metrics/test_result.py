import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, BadResult, WeftError
from weft.metrics import Observation, Result, flatten
from weft.metrics import folder as folders
from weft.metrics.observation import Lost, Queue, Throughput
from weft.metrics.result import FILES, is_result
from weft.metrics.schema import problems
from weft.units import KB, MB, Gbps, ns, us
from weft.workload.flows import ENDLESS, Flows
from weft.workload.traffic import Bernoulli


@dataclass(frozen=True, kw_only=True)
class Rack:
    nodes: int = 4
    link: int = 100 * Gbps


@dataclass(frozen=True, kw_only=True)
class Knowing(Rack):
    def ideal(self, flows):
        return flows.size * 80


@dataclass(frozen=True, kw_only=True)
class Mix:
    load: float = 0.5
    load_rate: int | None = None


def flows(**changes):
    ends = {"src": [0, 1, 2, 3], "dst": [1, 2, 1, 0]}
    columns = {"size": [KB, 2 * MB, 100 * KB, 3 * MB], "start": [0, 0, us, us], **changes}
    return Flows.of(nodes=4, **ends, **columns)


def observed(**changes):
    seen = {
        "finish": [us, 400 * us, 21 * us, -1],
        "received": [KB, 2 * MB, 100 * KB, MB],
        "now": 401 * us,
        "fingerprint": "00ff",
        "carried": {"local": np.int32(7)},
        "queue": Queue(max=3, max_node=5),
        "lost": Lost(causes={"full": 2, "late": 1}, flows=1),
        "sections": {"failures": {"lost": np.nan}, "throughput": "no room's to say", "seed": 99},
        "monitors": {"conservation": np.int64(0)},
        "samples": {"time_ps": np.arange(3) * us, "delivered_bytes": np.arange(12).reshape(3, 4) * MB},
        "work": {"node_slots": 1000, "stepped": 250},
    }
    return Observation(**{**seen, **changes})


def result(fabric=None, workload=None, table=None, seen=None, **more):
    settings = {"seed": 7, "wall": 2.0, "cpu": 1.5, "peak": 50 * MB, **more}
    return Result.collect(
        fabric or Knowing(), workload or Mix(), flows() if table is None else table, seen or observed(), **settings
    )


OLD = "{place} must be a result of format 2, which this version of weft writes, not 1: run it again"
KEYS = [
    "fabric", "workload", "seed", "fingerprint", "partial", "finished", "unfinished", "simulated_ns", "flows",
    "offered", "fct_us", "slowdown", "goodput_gbps", "throughput", "cells", "queue", "lost", "failures",
    "monitors", "rate", "wall_s", "cpu_s", "peak_rss_mb", "notes",
]  # fmt: skip


def test_the_summary_is_the_agreed_object():
    found = result().summary()
    assert list(found) == KEYS
    assert found["fabric"] == {"kind": "Knowing", "class": f"{__name__}:Knowing", "nodes": 4, "link": 100 * Gbps}
    assert (found["seed"], found["fingerprint"], found["partial"]) == (7, "00ff", False)
    assert (found["finished"], found["unfinished"], found["simulated_ns"]) == (3, 1, 401_000.0)
    assert found["flows"] == {"all": 4, "short": 2, "long": 2}
    high = dict.fromkeys(("p90", "p95", "p99", "p99.9", "max"), 20.0)
    assert found["fct_us"]["short"] == {"mean": 10.5, "sd": pytest.approx(19 / 2**0.5), "p50": 1.0, **high}
    assert found["fct_us"]["long"] == {**dict.fromkeys(("mean", "p50", *high), 400.0), "sd": None}
    assert found["slowdown"]["short"]["max"] == 12.5
    assert found["goodput_gbps"] == {"long": {"mean": 40.0}, "long_with_unfinished": {"mean": 30.0}}
    assert found["fct_us"]["first"] == 1.0 and found["fct_us"]["last"] == 400.0
    assert found["queue"] == {"unit": "cells", "max": 3, "max_bytes": None, "max_node": 5}
    assert found["lost"] == {"unit": "cells", "total": 3, "flows": 1, "causes": {"full": 2, "late": 1}}
    assert found["cells"] == {"local": 7} and found["failures"] == {"lost": None}
    assert problems(found) == []
    assert found["monitors"] == {"conservation": 0}
    assert found["rate"] == {"node_slots_per_s": 500.0, "stepped_fraction": 0.25}
    assert (found["wall_s"], found["cpu_s"], found["peak_rss_mb"]) == (2.0, 1.5, 50.0)
    assert found["notes"] == [
        "1 of 4 flows, 1 of them long, had not finished at 401 us and are in no completion time or slowdown"
    ]


def test_the_realised_load_stands_beside_the_nominal_one():
    offered = result(workload=Mix(load=0.5, load_rate=50 * Gbps)).summary()["offered"]
    assert offered["nominal_load"] == 0.5 and offered["load_rate_gbps"] == 50
    assert offered["rate_gbps"] == pytest.approx(flows().offered_rate() / Gbps)
    assert offered["realised_load"] == pytest.approx(flows().realised_load(50 * Gbps))
    assert result().offered["load_rate_gbps"] == 100  # the fabric's link, where the workload names no rate


def test_endless_flows_offer_no_load_that_could_be_named():
    found = result(Rack(), table=flows(size=ENDLESS), seen=observed(finish=[-1] * 4)).summary()
    assert found["offered"]["realised_load"] is None and found["offered"]["bytes"] is None
    assert found["goodput_gbps"]["long"]["mean"] is None
    assert found["goodput_gbps"]["long_with_unfinished"]["mean"] > 0


def test_throughput_is_payload_while_a_destination_had_flows_coming_in():
    found = result().summary()["throughput"]
    assert found["window"] == "while the destination had flows coming in" and found["destinations"] == 3
    assert found["per_destination_gbps"]["max"] == pytest.approx(40)  # node 2, 2 MB in 400 us
    assert found["fraction_of_link"] == pytest.approx(found["per_destination_gbps"]["mean"] / 100)


def test_throughput_of_flows_that_never_end_is_that_of_the_second_half():
    before = np.array([0, 1, 2, 0]) * MB
    endless = flows(size=ENDLESS)
    found = result(table=endless, seen=observed(half=(201 * us, before))).summary()["throughput"]
    assert (found["window"], found["from_ns"], found["to_ns"]) == ("the second half of the run", 201_000, 401_000)
    gained = np.array([8, 8, 8]) * MB  # of nodes 0, 1 and 2: the last sample less what they had halfway
    assert found["per_destination_gbps"]["mean"] == pytest.approx(8 * gained.mean() / 200e-6 / 1e9)


def test_throughput_of_finite_flows_has_one_definition_whether_or_not_all_were_done_at_the_end():
    """A fabric that was done before the end that was set, and one that was not, are compared by it."""
    before = np.zeros(4, np.int64)
    cut = observed(finish=[*observed().finish[:-1], -1], half=(201 * us, before))
    windows = {result(seen=seen).summary()["throughput"]["window"] for seen in (observed(), cut)}
    assert windows == {"while the destination had flows coming in"}


def test_a_run_without_flows_has_a_summary_too():
    cells = Bernoulli(load=0.5, slots=10).draw(nodes=4)
    rates = Throughput(rates=np.array([1e9, 3e9]), begin=0, end=1000, best=4e9, window="after the warm-up")
    seen = Observation(finish=[], received=[], now=1000, work={"slots": 10}, samples={}, throughput=rates)
    found = result(Rack(), Mix(), cells, seen).summary()
    assert (found["finished"], found["unfinished"], found["slowdown"]) == (0, 0, None)
    assert set(found["fct_us"]["all"].values()) == {None}
    assert found["rate"]["slots_per_s"] == 5.0 and found["rate"]["stepped_fraction"] is None
    assert found["throughput"]["per_destination_gbps"] == {"mean": 2.0, "min": 1.0, "max": 3.0}
    assert found["throughput"]["fraction_of_link"] == 0.5
    assert problems(found) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lost": 3}, "lost must be a table, not 3"),
        ({"throughput": 0.8}, "throughput must be a table, not 0.8"),
        ({"queue": {}}, "queue.unit must be there"),
        ({"monitors": {"law": "none"}}, "monitors.law must be int or null, not 'none'"),
        ({"cells": None}, "one of cells, packets must be a table of counts, not absent"),
    ],
)
def test_a_summary_that_is_not_the_agreed_object_is_told(change, sentence):
    assert sentence in problems({**result().summary(), **change})


def test_thresholds_and_percentile_rule_can_be_set():
    found = result().summary(short=KB, long=3 * MB)
    assert found["fct_us"]["short"]["max"] == 1.0 and found["fct_us"]["long"]["max"] is None
    assert result().summary(rule="released")["fct_us"]["all"]["p99"] == 20.0
    assert result().summary()["fct_us"]["all"]["p99"] == 400.0


def test_the_python_call_of_the_style_page_works():
    r = result()
    assert r.fct(smaller_than=100 * KB).p99 / us == 20.0
    assert r.goodput(larger_than=MB).mean == 40 * Gbps
    assert result(Rack()).slowdown() is None
    assert [len(times) for _, _, times in r.by_size()] == [1, 0, 1, 0, 1, 0, 0, 0]


def test_a_row_has_dotted_keys():
    row = result().row()
    assert row["fct_us.short.p99.9"] == 20.0 and row["fabric.kind"] == "Knowing"
    assert flatten({"a": {"b": {"c": 1}, "d": [2]}}) == {"a.b.c": 1, "a.d": [2]}


def test_a_flow_that_ends_before_it_began_is_a_fault_of_the_fabric():
    with pytest.raises(WeftError, match=r"^flow 2 must finish after its start at 1 us, not at 5 ns$"):
        result(seen=observed(finish=[us, us, 5 * ns, -1]))


def test_an_observation_of_other_flows_is_refused():
    with pytest.raises(BadInput, match=r"^finish must be one time for each of 4 flows, not 1$"):
        result(seen=observed(finish=[us], received=[1]))


# on disk


def test_a_result_comes_back_as_it_was(tmp_path):
    before = result(partial=True)
    before.save(tmp_path / "runs" / "a")
    after = Result.load(tmp_path / "runs" / "a")
    assert after.summary() == before.summary() and after.provenance == before.provenance
    assert after.flows == before.flows and after.partial
    assert (after.observation.finish == before.observation.finish).all()
    assert (
        after.observation.samples["delivered_bytes"].tolist() == before.observation.samples["delivered_bytes"].tolist()
    )
    assert after.summary(short=KB, rule="released") == before.summary(short=KB, rule="released")
    after.save(tmp_path / "b")
    for name in FILES:
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "runs" / "a" / name).read_bytes()


numbers = st.floats() | st.integers(-(2**70), 2**70) | st.none() | st.text() | st.booleans()
nested = st.recursive(numbers, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@given(st.dictionaries(st.text(), nested, max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_sections_make_strict_json_that_comes_back(tmp_path_factory, sections):
    before = result(seen=observed(sections=sections))
    place = tmp_path_factory.mktemp("any") / "r"
    before.save(place)
    assert Result.load(place).summary() == before.summary() == json.loads(json.dumps(before.summary(), allow_nan=False))


def test_the_flow_file_has_the_promised_columns(tmp_path):
    result(table=flows(id=[10, 11, 12, 13])).save(tmp_path / "a")
    table = pq.read_table(tmp_path / "a" / "flows.parquet").to_pydict()
    assert list(table) == [
        "flow", "src", "dst", "bytes", "start_ps", "finish_ps", "class", "received", "ideal_ps"
    ]  # fmt: skip
    assert table["flow"] == [10, 11, 12, 13] and table["finish_ps"] == [us, 400 * us, 21 * us, -1]
    result(Rack()).save(tmp_path / "b")
    assert "ideal_ps" not in pq.read_table(tmp_path / "b" / "flows.parquet").column_names


def test_an_interrupted_run_says_so(tmp_path):
    result(partial=True).save(tmp_path / "a")
    data = json.loads((tmp_path / "a" / "result.json").read_text())
    assert data["partial"] is True
    assert data["notes"][0] == "the run was interrupted at 401 us of simulated time"


def test_a_newer_result_takes_the_place_of_an_older_one_and_of_an_empty_folder(tmp_path):
    place = tmp_path / "a"
    place.mkdir()
    result(seed=1).save(place)
    (place / "notes.txt").write_text("mine")
    (place / "plots").mkdir()
    (place / "plots" / "fct.svg").write_text("<svg/>")
    result(seed=2).save(place)
    assert Result.load(place).seed == 2
    assert (place / "notes.txt").read_text() == "mine" and (place / "plots" / "fct.svg").read_text() == "<svg/>"
    assert os.listdir(tmp_path) == ["a"]


def test_a_place_that_cannot_exchange_folders_is_served_by_two_renames(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "_exchange", lambda a, b: False)
    result(seed=1).save(tmp_path / "a")
    result(seed=2).save(tmp_path / "a")
    assert Result.load(tmp_path / "a").seed == 2 and os.listdir(tmp_path) == ["a"]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    place = tmp_path / "thesis"
    place.mkdir()
    (place / "chapter1.tex").write_text("x")
    with pytest.raises(BadInput) as found:
        result().save(place)
    assert str(found.value) == f"{place} must be empty or hold a result of weft, not 'chapter1.tex'"
    assert os.listdir(place) == ["chapter1.tex"] and os.listdir(tmp_path) == ["thesis"]


def test_a_file_is_not_a_folder(tmp_path):
    place = tmp_path / "a"
    place.write_text("x")
    with pytest.raises(BadInput) as found:
        result().save(place)
    assert str(found.value) == f"{place} must be a folder, not a file"


def test_a_path_through_a_file_gets_a_sentence(tmp_path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(BadInput) as found:
        result().save(tmp_path / "a" / "b" / "c")
    assert str(found.value) == f"{tmp_path / 'a'} must be a folder, not a file"


@contextmanager
def without_privileges():
    """Root may write everywhere, so root becomes nobody for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_read_only_place_gets_a_sentence():
    place = Path(tempfile.mkdtemp())  # not pytest's folder, which nobody but its owner may enter
    place.chmod(0o555)
    try:
        with without_privileges(), pytest.raises(WeftError) as found:
            result().save(place / "a")
    finally:
        place.chmod(0o700)
        place.rmdir()
    assert str(found.value) == f"{place / 'a'} cannot be written: permission denied"


def test_a_disk_that_fills_keeps_the_old_result_and_nothing_half_written(tmp_path):
    place = tmp_path / "a"
    result(seed=1).save(place)
    many = 4000
    table = Flows.of(nodes=4, src=[0] * many, dst=[1] * many, size=np.arange(1, many + 1) ** 2, start=range(many))
    seen = observed(finish=np.arange(many) ** 2 + many, received=table.size)
    large = result(table=table, seen=seen, seed=2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # no file may grow beyond 4 KB: a write fails for real
    try:
        with pytest.raises(WeftError) as found:
            large.save(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(found.value) == f"{place} cannot be written: file too large; what was there is kept"
    assert os.listdir(tmp_path) == ["a"] and Result.load(place).seed == 1


def test_a_kill_while_writing_keeps_the_old_result(tmp_path):
    place = tmp_path / "a"
    result(seed=1).save(place)
    program = (
        "import os, signal, sys; from weft.metrics import Result; from weft.metrics import result as module\n"
        "def killed(path, data): os.kill(os.getpid(), signal.SIGKILL)\n"
        "module._write_json = killed\n"
        "Result.load(sys.argv[1]).save(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", program, place]).returncode == -9
    assert Result.load(place).seed == 1 and is_result(place)


def test_two_writers_and_a_reader_never_meet_half_way(tmp_path):
    place = tmp_path / "a"
    both = [result(seed=k, seen=observed(fingerprint=f"{k}")) for k in (1, 2)]
    both[0].save(place)
    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(lambda mine: [mine.save(place) for _ in range(15)], mine) for mine in both]
        while not all(writer.done() for writer in writers):
            found = Result.load(place)
            assert found.observation.fingerprint == f"{found.seed}"
        for writer in writers:
            writer.result()
    assert os.listdir(tmp_path) == ["a"]


def test_a_bad_place_is_told_before_the_run(tmp_path):
    Result.check_place(tmp_path / "new" / "deep")
    assert os.listdir(tmp_path) == []
    (tmp_path / "x").write_text("")
    with pytest.raises(BadInput) as found:
        Result.check_place(tmp_path)
    assert str(found.value) == f"{tmp_path} must be empty or hold a result of weft, not 'x'"


def test_a_result_is_printed_in_a_line():
    assert repr(result()) == "<Knowing, Mix, seed 7: 3 of 4 flows done>"


def test_a_symbolic_link_is_followed_and_stays(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    result(seed=3).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and Result.load(tmp_path / "real").seed == 3


def damaged(place, name, text):
    path = place / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("result.json", None, "{place} must be a result folder, not one without result.json"),
        ("flows.parquet", None, "{place} must be a result folder, not one without flows.parquet"),
        ("result.json", "{", "{place}/result.json must be JSON, not something that cannot be read"),
        ("result.json", "[]", "{place}/result.json must be a JSON object, not a list"),
        ("result.json", "{}", "{place} must be a whole result, not one without 'observed'"),
        ("samples.parquet", "PAR1", "{place}/samples.parquet must be Parquet, not something that cannot be read"),
        (
            "provenance.json",
            '{"weft": "9", "format": 1}',
            OLD,
        ),
    ],
)
def test_a_damaged_result_gets_a_sentence(tmp_path, name, text, message):
    place = tmp_path / "a"
    result().save(place)
    damaged(place, name, text)
    with pytest.raises(BadResult) as found:
        Result.load(place)
    assert str(found.value) == message.format(place=place)


def test_a_missing_result_gets_a_sentence(tmp_path):
    with pytest.raises(BadResult) as found:
        Result.load(tmp_path / "a")
    assert str(found.value) == f"{tmp_path / 'a'} must be a result folder, not missing"


def test_an_observation_must_fit_itself():
    with pytest.raises(BadInput) as found:
        Observation(finish=[1], received=[1, 2], now=0)
    assert str(found.value) == "finish and received must be two columns of one length, not ((1,), (2,))"
    with pytest.raises(BadInput) as found:
        Observation(finish=[], received=[], now=0, samples={"a": [1], "b": [1, 2]})
    assert str(found.value) == "samples must be columns of one length, not {'a': 1, 'b': 2}"


def test_descriptions_are_compared_by_value():
    assert result().fabric == result(replace(Knowing(), nodes=4)).fabric != result(Knowing(nodes=5)).fabric
