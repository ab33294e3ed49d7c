"""A few of the inputs that `make fuzz` throws: none ends in a traceback, hangs, or exits with a wrong code."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_hostile_inputs_are_made_sense_of_or_refused():
    program = Path(__file__).parent / "fuzz.py"
    told = subprocess.run([sys.executable, program, "--inputs", "600", "--seed", "5"], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout
    assert told.stdout.splitlines()[-1].endswith(", 0 wrong")
