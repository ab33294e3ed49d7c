"""Results on a disk that lied: whatever bytes are damaged, a reader gets the truth or a sentence."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import BadInput, BadResult, WeftError
from weft.metrics import Observation, Result, schema
from weft.metrics.result import is_whole
from weft.units import Gbps, us
from weft.workload.flows import Flows


@dataclass(frozen=True, kw_only=True)
class Rack:
    nodes: int = 8
    link: int = 100 * Gbps

    def ideal(self, flows):
        return flows.size * 80


@dataclass(frozen=True, kw_only=True)
class Few:
    load: float = 0.5


def made():
    count = 40
    table = Flows.of(
        nodes=8, src=np.arange(count) % 8, dst=(np.arange(count) + 3) % 8, size=1000 + np.arange(count) * 77,
        start=np.arange(count) * us,
    )  # fmt: skip
    seen = Observation(
        finish=table.start + table.size * 81, received=table.size, now=100 * us, fingerprint="ab" * 16,
        carried={"local": 9, "forwarded": 8, "dummy": 1, "delivered": 8}, monitors={"conservation": 0},
        samples={"time_ps": np.arange(3) * us, "delivered_bytes": np.arange(24).reshape(3, 8)}, work={"node_slots": 10},
    )  # fmt: skip
    return Result.collect(Rack(), Few(), table, seen, seed=1, wall=1.0, cpu=1.0, peak=10**6)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("damage") / "r"
    made().save(place)
    return place, made().summary(), {path.name: path.read_bytes() for path in place.iterdir()}


def read(whole, name, content):
    """The summary of the result with one file replaced, or None if it was refused in a sentence."""
    place, _, files = whole
    (place / name).write_bytes(content)
    try:
        return Result.load(place).summary()
    except WeftError as error:
        assert "\n" not in str(error)
        return None
    finally:
        (place / name).write_bytes(files[name])


@pytest.mark.parametrize("name", ["flows.parquet", "samples.parquet"])
@settings(max_examples=150)
@given(data=st.data())
def test_a_bit_that_turned_in_a_table_is_noticed_or_changes_nothing(whole, name, data):
    raw = bytearray(whole[2][name])
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    seen = read(whole, name, bytes(raw))
    assert seen is None or seen == whole[1]


@pytest.mark.parametrize("name", ["flows.parquet", "samples.parquet", "result.json", "provenance.json"])
def test_a_file_that_ends_too_early_is_noticed(whole, name):
    raw = whole[2][name].rstrip()  # the last newline says nothing
    for length in {0, 1, len(raw) // 3, len(raw) // 2, len(raw) - 1}:
        assert read(whole, name, raw[:length]) is None, length


def test_a_finish_time_that_turned_is_noticed(whole):
    """The column that every completion time comes from, byte by byte."""
    raw = whole[2]["flows.parquet"]
    turned = [read(whole, "flows.parquet", raw[:k] + bytes([raw[k] ^ 0xFF]) + raw[k + 1 :]) for k in range(4, 1200, 13)]
    assert sum(seen is None for seen in turned) > 60
    assert all(seen is None or seen == whole[1] for seen in turned)


NEEDED = {
    "result.json": {"observed", "cells", *schema.COMMON},
    "provenance.json": {"format", *schema.PROVENANCE},
}


@pytest.mark.parametrize("name", ["result.json", "provenance.json"])
def test_what_a_result_cannot_do_without_is_named_when_it_is_gone(whole, name):
    data = json.loads(whole[2][name])
    for key in data:
        left = {other: value for other, value in data.items() if other != key}
        seen = read(whole, name, json.dumps(left).encode())
        assert (seen is None) == (key in NEEDED[name]), key


def refusal(whole, data) -> str:
    """What is said of the result with `data` as its result.json, which is put back."""
    place, _, files = whole
    (place / "result.json").write_text(json.dumps(data))
    try:
        with pytest.raises(BadResult) as said:
            Result.load(place)
    finally:
        (place / "result.json").write_bytes(files["result.json"])
    return str(said.value)


def test_the_sentence_names_the_folder_and_what_is_gone(whole):
    data = json.loads(whole[2]["result.json"])
    del data["observed"]["sections"]
    assert refusal(whole, data) == f"{whole[0]} must be a whole result, not one without 'sections'"


@pytest.mark.parametrize("name", ["result.json", "provenance.json"])
def test_what_a_result_cannot_do_without_must_be_of_its_kind(whole, name):
    data = json.loads(whole[2][name])
    for key in NEEDED[name]:
        for other in ({}, [], "text", 1.5, None, True):
            wanted = {**schema.COMMON, **schema.PROVENANCE}.get(key)
            free = isinstance(wanted, list) or (isinstance(wanted, tuple) and isinstance(other, wanted))
            if type(other) is not type(data[key]) and other != data[key] and not (free and other is not True):
                assert read(whole, name, json.dumps({**data, key: other}).encode()) is None, (key, other)


@pytest.mark.parametrize(
    ("inside", "key", "value", "sentence"),
    [
        (None, "fingerprint", 7, "must have a text as its fingerprint, not 7"),
        (None, "partial", "no", "must have true or false as its partial, not 'no'"),
        ("observed", "now_ps", True, "must have a whole number as its now_ps, not True"),
        ("observed", "sections", [], "must have an object as its sections, not []"),
        ("observed", "notes", "none", "must have a list as its notes, not 'none'"),
    ],
)
def test_the_sentence_names_the_value_that_is_of_another_kind(whole, inside, key, value, sentence):
    data = json.loads(whole[2]["result.json"])
    (data[inside] if inside else data)[key] = value
    assert refusal(whole, data) == f"{whole[0] / 'result.json'} {sentence}"


def test_work_that_is_no_number_is_refused(whole):
    data = json.loads(whole[2]["result.json"])
    data["observed"]["work"]["slots"] = None
    assert refusal(whole, data) == f"{whole[0] / 'result.json'}: observed.work.slots must be int or float, not None"


# names


@pytest.mark.parametrize("length", [224, 255, 300, 5000])
def test_a_name_that_is_too_long_is_said_before_the_run(tmp_path, length):
    place = tmp_path / ("a" * length)
    with pytest.raises(WeftError) as said:
        Result.check_place(place)
    sentence = f"{place} cannot be written: file name too long"
    assert str(said.value) == sentence if length < 5000 else len(str(said.value)) < 1600
    with pytest.raises(WeftError, match=r"cannot be written: file name too long$"):
        made().save(place)


def test_a_name_on_the_way_may_be_longer_than_the_last_one(tmp_path):
    place = tmp_path / ("b" * 250) / "r"
    Result.check_place(place)
    made().save(place)
    assert Result.load(place).summary() == made().summary()
    with pytest.raises(WeftError, match=r"cannot be written: file name too long$"):
        Result.check_place(tmp_path / ("b" * 256) / "r")


def test_the_longest_name_that_is_allowed_can_be_written_twice(tmp_path):
    place = tmp_path / ("é" * 107)  # 214 bytes
    for _ in range(2):
        Result.check_place(place)
        made().save(place)
    assert Result.load(place).seed == 1
    assert [path.name for path in tmp_path.iterdir()] == [place.name]


def test_a_name_too_long_is_no_result(tmp_path):
    place = tmp_path / ("a" * 300)
    with pytest.raises(BadResult) as said:
        Result.load(place)
    assert str(said.value) == f"{place} must be a result folder, not missing"


@pytest.mark.parametrize("name", ["ü ber", "结果", "a b\tc", "x" * 200, "-o", "~", "$HOME", "a\nb", "%s", "[red]r"])
def test_any_name_of_a_folder_will_do(tmp_path, name):
    made().save(tmp_path / name)
    assert Result.load(tmp_path / name).summary() == made().summary()
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_the_root_of_the_file_system_is_left_alone():
    with pytest.raises(BadInput, match=r"^/ must be empty or hold a result of weft, not "):
        Result.check_place("/")


# what a study takes for done


def test_a_result_is_whole_with_all_its_files_and_none_of_them_cut_short(tmp_path):
    place = tmp_path / "r"
    made().save(place)
    assert is_whole(place)
    for path in sorted(place.iterdir()):
        good = path.read_bytes()
        for bad in (None, b"", b"{}", b"[]", good[: len(good) // 2], good[: len(good) - 3], b"\xff"):
            path.unlink() if bad is None else path.write_bytes(bad)
            assert not is_whole(place), (path.name, bad)
            path.write_bytes(good)
    assert is_whole(place)
    data = json.loads((place / "result.json").read_text())
    (place / "result.json").write_text(json.dumps({**data, "partial": True}))
    assert not is_whole(place) and not is_whole(tmp_path / "none")
