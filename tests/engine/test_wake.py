"""Is the driver of a GPU asked for a context as soon as it is known that it will be needed, and not else?"""

import os
import shutil
import subprocess
import sys

import pytest

DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int say(const char *what, int device) {
    FILE *file = fopen(getenv("PROOF"), "a");
    fprintf(file, "%s %d\\n", what, device);
    fclose(file);
    return atoi(getenv("ANSWER"));
}
int cuInit(unsigned flags) { return say("cuInit", flags); }
int cuDeviceGet(int *device, int which) { *device = 7; return say("cuDeviceGet", which); }
int cuDevicePrimaryCtxRetain(void **context, int device) {
    usleep(300000);
    return say("cuDevicePrimaryCtxRetain", device);
}
"""
WHOLE = ["cuInit 0", "cuDeviceGet 0", "cuDevicePrimaryCtxRetain 7"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a driver that says what it was asked."""
    compiler = next(filter(None, map(shutil.which, ("cc", "g++", "clang++"))), None)
    if compiler is None:
        pytest.skip("needs a C compiler, which `make test` installs only as root")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    program = [compiler, "-x", "c", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"]
    subprocess.run(program, check=True, capture_output=True)
    return folder


@pytest.fixture
def asked(place, tmp_path):
    """What a program of Python asks the driver."""

    def run(text, answer=0, **more):
        proof = tmp_path / "proof"
        proof.unlink(missing_ok=True)
        env = {**os.environ, "LD_LIBRARY_PATH": str(place), "PROOF": str(proof), "ANSWER": str(answer), **more}
        done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True)
        assert done.stderr.count("Traceback") == 0, done.stderr
        return proof.read_text().splitlines() if proof.exists() else []

    return run


def test_a_context_is_asked_for_once_and_the_program_waits_for_it(asked):
    assert asked("from weft.engine.wake import wake; wake(); wake()") == WHOLE


def test_a_driver_that_refuses_is_left_alone(asked):
    assert asked("from weft.engine.wake import wake; wake()", answer=100) == WHOLE[:1]


def test_another_driver_or_a_simulator_is_not_woken(asked):
    text = "from weft.engine.wake import wake; wake()"
    assert asked(text, NUMBA_CUDA_DRIVER="/nowhere/libcuda.so") == []
    assert asked(text, NUMBA_ENABLE_CUDASIM="1") == []


@pytest.mark.parametrize("words", [["--on", "gpu"], ["--on=gpu"], ["--on", "tpu"], ["--seed", "1"]])
def test_a_command_wakes_the_driver_before_anything_is_imported_for_it(asked, words):
    text = "from weft import cli\ncli._call = lambda tokens: 0\n"
    found = asked(f"{text}cli.main({['run', 'shoal', 'poisson', *words]})")
    assert found == (WHOLE if "gpu" in words[-1] else [])


def test_a_machine_without_a_driver_goes_on():
    text = "from weft.engine.wake import wake\nwake().join()\nprint('on')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("on\n", "")
