"""The folder of compiled kernels: nobody else can plant code there, and what is damaged is compiled again."""

import importlib
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft import cache, memory
from weft.errors import TooLarge

SOURCE = Path(weft.__file__).parent.parent
PROGRAM = "from lab import twice; from weft.engine.jit import cache_folder; print(twice(4), cache_folder('lab'))"
KERNEL = "from weft.engine.jit import bare\n@bare\ndef twice(a):\n    return 2 * a\n"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A home that cannot be written, and a temporary folder in which everybody can write."""
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    (tmp_path / "home").write_text("no folder")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path / "tmp"))
    cache._private.cache_clear()
    yield tmp_path / "tmp"
    cache._private.cache_clear()


def test_a_cache_in_the_temporary_folder_is_closed_to_others(places):
    place = cache.folder("abc")
    assert place == places / f"weft-{os.getuid()}" / "abc"
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(place.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("planted", ["open", "somebody's", "link", "open inside", "file"])
def test_a_folder_that_others_made_or_can_write_is_not_used(places, planted, tmp_path, monkeypatch):
    guessed = places / f"weft-{os.getuid()}"
    if planted == "link":
        (tmp_path / "theirs").mkdir(mode=0o777)
        (tmp_path / "theirs").chmod(0o777)
        guessed.symlink_to(tmp_path / "theirs")
    elif planted == "file":
        guessed.write_text("")
    else:
        guessed.mkdir(mode=0o700)
        (guessed / "abc").mkdir(mode=0o700)
        if planted == "open":
            guessed.chmod(0o777)
        elif planted == "open inside":
            (guessed / "abc").chmod(0o770)
        else:  # only root can give a folder away, so the folder's owner stays and we are somebody else
            mine = os.geteuid()
            monkeypatch.setattr(cache.os, "geteuid", lambda: mine + 1)
    place = cache.folder("abc")
    assert guessed not in place.parents and (tmp_path / "theirs") not in place.parents
    assert place.parent.parent == places and stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert os.environ["WEFT_CACHE"] == str(place.parent)  # the workers' too


def test_a_private_folder_is_gone_when_the_program_ends(places):
    (places / f"weft-{os.getuid()}").write_text("")
    program = f"import tempfile; tempfile.tempdir = {str(places)!r}\nfrom weft import cache; print(cache.folder('abc'))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    made = Path(told.stdout.strip())
    assert made.parent.parent == places and not made.parent.exists()


class Shell:
    """What a planted index does when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


@pytest.fixture
def lab(tmp_path):
    """Run a program that compiles one kernel; gives (the folder of its cache, what calls it)."""
    (tmp_path / "lab.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{SOURCE}", "WEFT_CACHE": str(tmp_path / "cache")}

    def run():
        return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)

    first = run()
    assert first.stdout.startswith("8 "), first
    return Path(first.stdout.split()[1]), run


def test_a_kernel_that_is_damaged_is_compiled_again(lab):
    folder, run = lab
    kept = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    for path in kept:
        good = path.read_bytes()
        for bad in (b"", good[: len(good) // 2], good[:40] + bytes([good[40] ^ 1]) + good[41:], good[:-1] + b"\0\0"):
            path.write_bytes(bad)
            told = run()
            assert (told.returncode, told.stdout[:2], told.stderr) == (0, "8 ", ""), (path.name, len(bad), told)
        assert len(path.read_bytes()) == len(good)  # and kept again


BOTH = """
import sys, time
import lab_both
from weft.engine.jit import _Cache
saved = _Cache.save_overload
_Cache.save_overload = lambda *given: (print("compiles", flush=True), time.sleep(1), saved(*given))
input()
print(lab_both.twice(4), flush=True)
input()
"""


def test_processes_that_want_a_kernel_compile_it_once(tmp_path):
    (tmp_path / "lab_both.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{SOURCE}", "WEFT_CACHE": str(tmp_path / "cache")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    all_ = [subprocess.Popen([sys.executable, "-c", BOTH], env=environment, text=True, **pipes) for _ in range(3)]
    for one in all_:
        one.stdin.write("go\n")
        one.stdin.flush()
        if one is all_[0]:
            assert one.stdout.readline() == "compiles\n"  # and keeps it a second later
    for one in all_[::-1]:  # they live until they are told more: nobody waits for another's end
        assert one.stdout.readline() == "8\n"
    assert [one.communicate("more\n") for one in all_] == 3 * [("", "")]


def test_a_process_that_dies_while_it_compiles_keeps_nobody_waiting(tmp_path):
    (tmp_path / "lab_both.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{SOURCE}", "WEFT_CACHE": str(tmp_path / "cache")}
    dying = BOTH.replace("time.sleep(1)", "__import__('os')._exit(3)")
    for program, code, out in ((dying, 3, "compiles\n"), (BOTH, 0, "compiles\n8\n")):
        told = subprocess.run(
            [sys.executable, "-c", program], env=environment, input="go\nmore\n", capture_output=True, text=True
        )
        assert (told.returncode, told.stdout) == (code, out)


def test_an_index_that_was_planted_in_numbas_form_runs_nothing(lab, tmp_path):
    folder, run = lab
    import numba

    for path in folder.rglob("*.nb?"):
        path.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(Shell(tmp_path / "mark")))
    assert run().stdout.startswith("8 ") and not (tmp_path / "mark").exists()


def test_a_kernel_is_compiled_only_if_there_is_room_for_that(tmp_path, monkeypatch):
    (tmp_path / "lab_small.py").write_text(KERNEL)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    twice = importlib.import_module("lab_small").twice
    said = r"^compiling a kernel, once on this machine, must fit in 1 MB of memory, not need "
    with memory.limited(10**6), pytest.raises(TooLarge, match=said):
        twice(4)
    assert twice(4) == 8
    with memory.limited(10**6):
        assert twice(5) == 10
