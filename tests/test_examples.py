"""Every example prints the output beside it."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


def test_every_example_has_its_output_beside_it():
    assert PROGRAMS
    assert [path.stem for path in PROGRAMS] == [path.stem for path in sorted(EXAMPLES.glob("*.out"))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_is_beside_it(program):
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, cwd=EXAMPLES)
    assert said.returncode == 0, said.stderr
    assert said.stdout == program.with_suffix(".out").read_text(encoding="utf-8")
