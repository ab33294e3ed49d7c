"""Files appear whole or not at all."""

import os
import threading

import pytest

from weft.errors import WeftError
from weft.files import replaced
from weft.workload.flows import Flows

FLOWS = Flows.of(nodes=4, src=[0, 1], dst=[1, 2], size=[100, 200], start=[0, 5])


def only(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    place = tmp_path / "new" / "numbers.csv"
    with replaced(place) as fresh:
        fresh.write_text("1")
        assert not place.exists()
    assert place.read_text() == "1" and only(place.parent) == ["numbers.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_there_stays_if_the_writer_fails(tmp_path, error):
    place = tmp_path / "numbers.csv"
    place.write_text("old")
    with pytest.raises(error), replaced(place) as fresh:
        fresh.write_text("half")
        raise error
    assert place.read_text() == "old" and only(tmp_path) == ["numbers.csv"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "near.csv").symlink_to(tmp_path / "far" / "numbers.csv")
    with replaced(tmp_path / "near.csv") as fresh:
        fresh.write_text("1")
    assert (tmp_path / "near.csv").is_symlink() and (tmp_path / "far" / "numbers.csv").read_text() == "1"


def test_what_is_no_file_is_written_and_not_replaced(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    FLOWS.to_csv(pipe)
    reader.join(10)
    assert read[0].splitlines()[0] == "flow,src,dst,bytes,start" and pipe.is_fifo()


@pytest.mark.parametrize("write", ["to_csv", "to_cm", "to_parquet"])
def test_a_trace_that_cannot_be_written_gets_a_sentence(tmp_path, write):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for name, why in (("file/trace", "file exists"), ("folder", "is a directory")):
        with pytest.raises(WeftError) as error:
            getattr(FLOWS, write)(tmp_path / name)
        assert str(error.value) == f"{tmp_path / name} cannot be written: {why}"
    assert only(tmp_path) == ["file", "folder"]


def test_a_trace_that_was_there_survives_one_that_breaks_off(tmp_path):
    place = tmp_path / "flows.csv"
    FLOWS.to_csv(place)
    before = place.read_bytes()
    broken = Flows.of(nodes=4, src=[0], dst=[1], size=[1], start=[0])
    object.__setattr__(broken, "size", broken.size[:0])
    with pytest.raises(ValueError):
        broken.to_csv(place)
    assert place.read_bytes() == before and only(tmp_path) == ["flows.csv"]
