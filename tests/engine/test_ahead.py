"""Are kernels that other processes compile found here, and does no such process outlive whoever started it?"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

import weft
from weft.engine import ahead, jit

ROOT = Path(weft.__file__).parent

LAB = """
import os, signal, sys, time
from weft.engine.ahead import compiling
from weft.engine.jit import is_kept, kernel

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where whoever tests is in the background

@kernel
def go(a):
    return a + 1

def use():
    go(1)

def fail():
    open(os.environ["PROOF"], "w").write("failed")
    raise RuntimeError

def stay():
    open(os.environ["PROOF"], "w").write(str(os.getpid()))
    time.sleep(100)

def wait(what):
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        time.sleep(0.05)
    return what()

def proof():
    return os.path.exists(os.environ["PROOF"]) and open(os.environ["PROOF"]).read()
"""


@pytest.fixture
def lab(tmp_path):
    """Start a program that has a package of a kernel, and a cache in which there is nothing."""
    (tmp_path / "lab.py").write_text(LAB)
    env = {
        **os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT.parent}", "WEFT_CACHE": str(tmp_path / "cache"),
        "PROOF": str(tmp_path / "proof"),
    }  # fmt: skip

    def start(text):
        program = [sys.executable, "-c", f"from lab import *\n{text}"]
        return subprocess.Popen(program, env=env, text=True, stdout=subprocess.PIPE, cwd=tmp_path)

    start.proof = tmp_path / "proof"
    return start


def is_there(pid: int) -> bool:
    """Whether a process runs; not one that has ended and nobody has asked about."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    end = monotonic() + 20
    while is_there(pid) and monotonic() < end:
        sleep(0.05)
    return not is_there(pid)


def test_what_another_process_has_compiled_is_found(lab):
    waiting = "with compiling({use: [go]}):\n    found = wait(lambda: is_kept(go))\n"
    said, _ = lab(f"{waiting}use()\nprint(found, go.stats.cache_hits)").communicate()
    assert said.startswith("True Counter") and said.endswith(": 1})\n")


def test_no_process_is_started_for_what_is_on_disk(monkeypatch):
    from weft.engine.random import unit, word

    started = []
    monkeypatch.setattr(ahead, "_start", lambda names: started.append(names) or [])
    with ahead.compiling({unit: [unit], word: [word]}):
        pass
    wanted = [name for name, one in (("unit", unit), ("word", word)) if not jit.is_kept(one)]
    assert [name.partition(":")[2] for names in started for name in names] == wanted
    monkeypatch.setattr(ahead, "is_kept", lambda kernel: True)
    started.clear()
    with ahead.compiling({unit: [unit], word: [word]}):
        pass
    assert started == []


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 1), (3, 2), (16, 3)])
def test_no_more_processes_are_started_than_there_are_cores_to_spare(monkeypatch, cores, processes):
    from weft.engine import random

    started = []
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(ahead, "is_kept", lambda kernel: False)
    monkeypatch.setattr(ahead, "_start", lambda names: started.append(names) or [])
    with ahead.compiling({one: [one] for one in (random.unit, random.word, random.below)}):
        pass
    assert len(started) == processes
    assert sorted(name for names in started for name in names) == [
        f"weft.engine.random:{name}" for name in ("below", "unit", "word")
    ]


def test_a_process_that_fails_is_not_missed(lab):
    said, _ = lab("with compiling({fail: [go]}):\n    print(wait(proof))\n    print(go(1))").communicate()
    assert said == "failed\n2\n"


def test_a_machine_that_cannot_start_a_process_goes_on_without(monkeypatch):
    from weft.engine.random import word

    def none(*given, **more):
        raise OSError("cannot allocate memory")

    monkeypatch.setattr(ahead, "is_kept", lambda kernel: False)
    monkeypatch.setattr(subprocess, "Popen", none)
    with ahead.compiling({word: [word]}):
        pass


def test_a_process_ends_with_the_block(lab):
    block = "with compiling({stay: [go]}):\n    pid = wait(proof)\n"
    said, _ = lab(f"{block}print(int(pid) > 0, os.path.exists('/proc/' + pid))").communicate()
    assert said == "True False\n"


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_ends_with_whoever_started_it(lab, stop):
    program = lab("with compiling({stay: [go]}):\n    print(wait(proof), flush=True)\n    time.sleep(100)")
    pid = int(program.stdout.readline())
    assert is_there(pid)
    program.send_signal(stop)
    program.wait(20)
    program.stdout.close()
    assert gone(pid)
