"""Every command of README and docs, and every fabric with every workload, as people type them.

In a pseudo-terminal and in a pipe, without `--json` or `--quiet` unless the page says so, so that progress bars and
tables are on. What takes long is listed in `long.toml` and run by verification/commands.py.
"""

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
from functools import cache

import pytest

from typed import LONG, PAGES, ROOT, Said, Typist, commands, listed, prepared
from weft.cli import main
from weft.cli.run import ALONE

MODES = pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
TINY = {  # what a workload is given to be small
    **dict.fromkeys(("poisson", "bursts", "hotspot", "survivors"), "--load 0.3 --flows 60 --sizes fixed:20KB"),
    "incast": "--fan-in 4 --bytes 20KB",
    "outcast": "--fan-out 4 --bytes 20KB",
    "alltoall": "--bytes 3KB",
    "shuffle": "--bytes 20KB --mappers 4 --reducers 4",
    "permutation": "--duration 100us",
    **dict.fromkeys(
        ("allreduce", "allgather", "reducescatter", "exchange", "experts", "parameterserver"), "--bytes 4KB"
    ),
    "dataparallel": "--model bert-tiny --layers 1",
    "pipeline": "--model bert-tiny --stages 2 --batches 1",
    "rpc": "--fan-out 2 --bytes 2KB --requests 12",
    "mapreduce": "--mappers 4 --reducers 4 --bytes 20KB",
    "chainreplication": "--writes 12 --bytes 2KB",
    "longflows": "--duration 100us --flows 20",
    "shorts": "--flows 100",
    "disaggregated": "--flows 60",
    "chakra": f"--trace {ROOT / 'examples/chakra/step'}",
    "trace": f"--trace {ROOT / 'examples/trace.csv'}",
}
USUAL = {"slots": "--load 0.5 --slots 2000", "bytes": "--bytes 20KB"}  # by a field that a workload not listed above has
FINGERPRINT = re.compile(r"fingerprint\s+([0-9a-f]{32})")


@pytest.fixture(scope="module")
def typist():
    with Typist() as one:
        yield one


@pytest.fixture
def place(tmp_path):
    return prepared(tmp_path)


def practise(typist, fabric):
    """Have the kernels of a fabric loaded in the process that is forked, which then takes half the time a command."""
    if fabric in listed("run") and fabric not in typist.practised:
        typist.practised.add(fabric)
        for transport in ("tcp", "ndp") if fabric == "packet" else ("",):
            tokens = [*tiny(fabric, "incast"), "--quiet", *(["--transport", transport] if transport else [])]
            typist.practises(tokens)


@MODES
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_every_command_of_a_page_can_be_typed(typist, place, page, terminal):
    short = [command for command in commands(page) if command.line not in LONG]
    for fabric in dict.fromkeys(command.tokens[1] for command in short if command.tokens[:1] == ["run"]):
        practise(typist, fabric)
    for command in short:
        assert command.line.startswith("weft "), f"{command.line} must be listed in tests/long.toml"
        said = typist.types(command.tokens, terminal=terminal, folder=place)
        assert said.done, (command.line, said.text)
        if command.shown and not terminal:
            assert command.shows(said.out), (command.line, said.out)


def test_what_is_listed_as_long_is_on_some_page():
    known = {command.line for page in PAGES for command in commands(page)}
    assert set(LONG) <= known


def tiny(fabric, workload) -> list[str]:
    """The tokens of a small run."""
    size = [f"--{name} 16" for name in ("nodes", "hosts", "ports") if name in fields("fabrics", fabric)]
    if "dimensions" in fields("fabrics", fabric):
        size = ["--dimensions 4x4"]
    given = TINY.get(workload)
    if given is None:
        given = next((usual for name, usual in USUAL.items() if name in fields("workloads", workload)), "")
    return ["run", fabric, workload, *(size or ["--radix 8 --pods 2"])[0].split(), *given.split()]


@cache
def fields(what, name) -> set[str]:
    """The parameters that `weft fabrics NAME` or `weft workloads NAME` lists."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([what, name, "--json"]) == 0
    return {one["name"] for one in json.loads(out.getvalue())[what][0]["parameters"]}


@pytest.mark.parametrize("fabric", [name for name in listed("run") if name not in ALONE])
def test_every_workload_of_a_fabric_can_be_typed(typist, fabric):
    """Every other one in a terminal, the rest in a pipe; the first both ways, and both ways to the same fingerprint."""
    practise(typist, fabric)
    for k, workload in enumerate(listed("run", fabric)):
        tokens = tiny(fabric, workload)
        prints = set()
        for terminal in (True, False) if k == 0 else (k % 2 == 0,):
            said = typist.types(tokens, terminal=terminal)
            assert said.done, (tokens, said.text)
            prints |= set(FINGERPRINT.findall(said.text))
        assert len(prints) == 1, tokens


def test_a_process_of_its_own_on_a_terminal_of_its_own_says_the_same(typist):
    """The forked command is no other than the one that a shell starts."""
    tokens = tiny("shoal", "incast")
    pid, screen = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "weft", *tokens], {**os.environ, "TERM": "xterm"})
    heard = b""
    while True:
        try:
            more = os.read(screen, 1 << 16)
        except OSError:
            break
        heard += more
    os.close(screen)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    piped = subprocess.run([sys.executable, "-m", "weft", *tokens], capture_output=True, text=True, check=True)
    said = [Said(0, heard.decode(), "", 0), Said(0, piped.stdout, piped.stderr, 0)]
    said += [typist.types(tokens, terminal=way) for way in (True, False)]
    assert len({FINGERPRINT.search(one.text)[1] for one in said}) == 1
