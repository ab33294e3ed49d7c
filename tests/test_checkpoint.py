"""Checkpoints: whole or refused, whatever happened to the file; and never more than what they were asked to keep."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.checkpoint import Checkpoint
from weft.cli import main
from weft.errors import BadResult, WeftError

CALL = {
    "fabric": {"kind": "Shoal", "nodes": 8}, "workload": {"kind": "Poisson", "load": 0.5}, "resolved": {}, "inputs": {},
    "seed": 1, "until": None, "sources": "0123456789abcdef",
}  # fmt: skip
ARRAYS = {"queue": np.arange(40, dtype=np.int32).reshape(4, 10), "clock": np.array([7]), "none": np.empty((0, 3))}
SPENT = {"wall_s": 1.5, "cpu_s": 1.25}


@pytest.fixture
def kept(tmp_path):
    checkpoint = Checkpoint(tmp_path / "r.checkpoint")
    checkpoint.write({**CALL, "spent": SPENT}, ARRAYS, None)
    assert checkpoint.problem is None
    return checkpoint


def test_what_was_written_is_read_back(kept):
    spent, arrays = kept.read(CALL)
    assert spent == SPENT
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert kept.call() == {**CALL, "spent": SPENT, "arrays": list(ARRAYS)}


@pytest.mark.parametrize("key", CALL)
def test_a_checkpoint_of_another_call_is_refused_with_what_differs(kept, key):
    other = {**CALL, key: {"kind": "Another"} if isinstance(CALL[key], dict) else "another"}
    with pytest.raises(BadResult) as said:
        kept.read(other)
    what = "source code" if key == "sources" else key
    assert str(said.value).startswith(f"{kept.path} must be of the same {what} as this run, not of ")


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    checkpoint = Checkpoint(tmp_path_factory.mktemp("flips") / "r.checkpoint")
    checkpoint.write({**CALL, "spent": SPENT}, ARRAYS, None)
    return checkpoint, checkpoint.path.read_bytes()


def same(checkpoint):
    """Whether the checkpoint reads as it was written; None if it was refused in one sentence."""
    try:
        spent, arrays = checkpoint.read(CALL)
    except WeftError as error:
        assert "\n" not in str(error)
        return None
    same_names = arrays.keys() == ARRAYS.keys()
    return spent == SPENT and same_names and all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


@settings(max_examples=400)
@given(data=st.data())
def test_a_byte_that_turned_is_noticed_or_changes_nothing(one, data):
    checkpoint, raw = one
    turned = bytearray(raw)
    turned[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    checkpoint.path.write_bytes(turned)
    assert same(checkpoint) in (None, True)


def test_a_file_that_ends_too_early_is_noticed_wherever_it_ends(one):
    checkpoint, raw = one
    for length in range(0, len(raw), 7):
        checkpoint.path.write_bytes(raw[:length])
        assert same(checkpoint) is None, length


@pytest.mark.parametrize("call", [[], 3, None, {}, {"fabric": {"kind": "Shoal"}}, CALL, "text"], ids=str)
def test_an_archive_that_is_no_checkpoint_is_said_by_resume(tmp_path, capsys, call):
    path = tmp_path / "r.checkpoint"
    with open(path, "wb") as file:
        np.savez(file, call=np.frombuffer(json.dumps(call).encode(), np.uint8))
    assert main(["resume", str(tmp_path / "r")]) == 2
    assert capsys.readouterr() == (
        "", f"weft resume: {path} must be a checkpoint, not something that cannot be read\n"
    )  # fmt: skip


def test_a_checkpoint_that_would_run_code_is_not_read(tmp_path):
    checkpoint = Checkpoint(tmp_path / "r.checkpoint")
    with open(checkpoint.path, "wb") as file:
        call = np.frombuffer(json.dumps({**CALL, "spent": {}, "arrays": ["code"]}).encode(), np.uint8)
        np.savez(file, call=call, **{"run.code": np.array([print], dtype=object)})
    with pytest.raises(BadResult, match=r"must be a checkpoint, not something that cannot be read$"):
        checkpoint.read(CALL)


def test_a_checkpoint_whose_header_is_damaged_is_not_read(kept):
    kept.path.write_bytes(kept.path.read_bytes().replace(b"'shape': (", b"'shape':  "))
    with pytest.raises(BadResult, match=r"must be a checkpoint, not something that cannot be read$"):
        kept.read(CALL)


def test_nothing_is_left_beside_a_checkpoint(kept):
    assert os.listdir(kept.path.parent) == ["r.checkpoint"]
    kept.write({**CALL, "spent": {}}, ARRAYS, None)
    assert os.listdir(kept.path.parent) == ["r.checkpoint"]
    kept.remove()
    kept.remove()  # once more does no harm
    assert os.listdir(kept.path.parent) == []


def test_a_checkpoint_that_cannot_be_written_keeps_the_one_before(kept, monkeypatch):
    before = kept.path.read_bytes()

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weft.checkpoint.np.savez", full)
    kept.write({**CALL, "spent": {}}, ARRAYS, None)
    assert kept.problem == f"{kept.path} cannot be written: no space left on device"
    assert kept.path.read_bytes() == before
    assert os.listdir(kept.path.parent) == ["r.checkpoint"]


def test_a_name_too_long_for_a_checkpoint_is_a_problem_and_no_end(tmp_path):
    checkpoint = Checkpoint(tmp_path / ("a" * 250))
    checkpoint.write({**CALL, "spent": {}}, ARRAYS, None)
    assert checkpoint.problem == f"{checkpoint.path} cannot be written: file name too long"


def test_a_checkpoint_lies_beside_the_folder_that_a_link_leads_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Checkpoint.beside(tmp_path / "link").path == tmp_path / "real.checkpoint"
    assert Checkpoint.beside(f"{tmp_path}/real/").path == tmp_path / "real.checkpoint"


def test_there_is_nothing_to_resume_at_the_root(capsys):
    assert main(["resume", "/"]) == 2
    assert capsys.readouterr().err == "weft resume: /.checkpoint must be a checkpoint, but there is no such file\n"
