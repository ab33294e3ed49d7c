"""Files appear whole or not at all."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from weft import files
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


# what others may have put there


def test_a_planted_link_beside_a_file_is_not_written_through(tmp_path, monkeypatch):
    """Whoever can guess the name of the fresh file can lead it elsewhere; so it is made anew, or not at all."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(files, "token_hex", lambda n: "0" * 2 * n)  # as if it were guessed
    files.beside(tmp_path / "numbers.csv").symlink_to(victim)
    wrong = pytest.raises(WeftError, match=r"numbers.csv cannot be written: file exists$")
    with wrong, replaced(tmp_path / "numbers.csv") as fresh:
        fresh.write_text("1")
    assert victim.read_text() == "mine"


def test_names_beside_a_place_cannot_be_guessed(tmp_path):
    made = {files.beside(tmp_path / "r") for _ in range(100)}
    assert len(made) == 100
    longest = max(len(os.fsencode(path.name)) for path in made)
    assert longest + len("-old") - len("r") <= files.BESIDE


def test_a_name_of_wefts_own_is_never_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "table.csv").symlink_to(victim)
    with replaced(tmp_path / "table.csv", own=True) as fresh:
        fresh.write_text("1")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "table.csv").is_symlink() and (tmp_path / "table.csv").read_text() == "1"


@pytest.mark.parametrize("name", ["../x.svg", "a/../../x.svg", "/tmp/x.svg", "away/x.svg"])
def test_a_name_that_leads_out_of_a_folder_is_refused(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "away").symlink_to(tmp_path)
    with pytest.raises(WeftError, match=r"^a file of an output folder must be a name inside it, not "):
        files.inside(tmp_path / "in", name)
    assert files.inside(tmp_path / "in", "a/b.svg") == tmp_path / "in" / "a" / "b.svg"


# what killed processes leave

KILLED = """
import os, signal, sys
from weft.files import replaced
from weft.metrics.folder import replaced as folder
with folder(sys.argv[1], ours=lambda path: True, files=()) as a, replaced(sys.argv[1] + ".csv") as b:
    (a / "half").write_text("half"); b.write_text("half")
    print(a, b, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(place):
    told = subprocess.run([sys.executable, "-c", KILLED, str(place)], capture_output=True, text=True)
    assert told.returncode == -signal.SIGKILL
    return [Path(path) for path in told.stdout.split()]


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    left = killed(tmp_path / "r")
    assert all(path.exists() for path in left) and len(left) == 2
    alive = files.beside(tmp_path / "r")  # this process's own
    elsewhere = tmp_path / left[0].name.replace(files._host(), "0" * 8)
    lookalike = tmp_path / ".r.weft-mine"
    for path in (alive, elsewhere, lookalike):
        path.write_text("")
    files.tidy(tmp_path, "other")
    assert all(path.exists() for path in left)
    files.tidy(tmp_path)
    assert only(tmp_path) == sorted(path.name for path in (alive, elsewhere, lookalike))


def test_a_result_that_a_killed_process_had_moved_aside_comes_back(tmp_path):
    fresh, _ = killed(tmp_path / "r")
    aside = fresh.with_name(fresh.name + "-old")
    aside.mkdir()
    (aside / "result.json").write_text("years of work")
    files.tidy(tmp_path, "r", "r.csv")
    assert only(tmp_path) == ["r"] and (tmp_path / "r" / "result.json").read_text() == "years of work"
