"""Which branches of a room's kernels do the comparisons with their twins reach?

A fault in a branch that no drawn case takes cannot be noticed. In a copy of the source every branch of every kernel,
and every loop's body, counts how often it is taken; then the tests of the room's twins are run on it. Prints for each
file how many branches it has and how many were taken, and each one that was not; the exit code is 1 if there are any
that UNREACHABLE does not excuse. Words on the command line choose rooms: Shoal and crossbars unless given. Takes
minutes.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"kernel", "bare", "part", "hot", "inlined", "rare"}  # decorators of what becomes machine code
_RELEASED = "tests/fabrics/shoal/test_released.py::test_"
BESIDE = {  # comparisons in tests of another name
    "shoal": [
        _RELEASED + "larger_racks_move_the_same_cells_as_their_twin",
        _RELEASED + "a_rack_in_which_all_talk_to_all_grows_and_agrees",
        _RELEASED + "a_window_that_is_too_narrow_is_made_wider",
    ]
}
SHARED = {"packet": ("network",)}  # rooms whose kernels lie in another folder
UNREACHABLE = {  # function -> why no comparison reaches all of it
    "inspect": "a monitor; tests/test_monitors.py and the laws of every room call it",
    "look_through": "a monitor, as above",
    "look_ahead": "prefetches, in networks larger than a cache",
    **dict.fromkeys(("_first", "_second", "_third"), "prefetches, as above"),
    "rebase": "comes after 4,096 epochs; tests/fabrics/shoal/test_convert.py goes there",
}
COUNTER = '''
import atexit
import os

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

TAKEN = np.zeros(1 << 14, np.int64)
AT = TAKEN.ctypes.data


@intrinsic
def branch_taken(typingctx, number):
    """Count that branch `number` was taken."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        place = builder.inttoptr(builder.add(word(AT), builder.mul(args[0], word(8))), word.as_pointer())
        builder.store(builder.add(builder.load(place), word(1)), place)
        return context.get_dummy_value()

    return types.void(types.int64), codegen


atexit.register(lambda: np.save(os.environ["TAKEN"], TAKEN))
'''
RUN = """
import sys
import weft.engine.taken
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


class Counting(ast.NodeTransformer):
    """Put a count into every branch of every kernel of a file."""

    def __init__(self, file: str, places: list):
        self.file, self.places, self.inside = file, places, None

    def visit_FunctionDef(self, function):
        names = {one.id for one in function.decorator_list if isinstance(one, ast.Name)}
        if self.inside is not None or not names & KINDS:
            return function
        self.inside = function.name
        self.generic_visit(function)
        self.inside = None
        return function

    def counted(self, body, line):
        self.places.append((self.file, self.inside, line))
        call = ast.parse(f"branch_taken({len(self.places) - 1})").body
        return call + body

    def visit_If(self, node):
        self.generic_visit(node)
        if self.inside is not None:
            node.body = self.counted(node.body, node.body[0].lineno)
            if node.orelse and not (len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)):
                node.orelse = self.counted(node.orelse, node.orelse[0].lineno)
        return node

    def visit_For(self, node):
        self.generic_visit(node)
        if self.inside is not None:
            node.body = self.counted(node.body, node.body[0].lineno)
        return node

    visit_While = visit_For


def prepare(room: str, home: Path) -> list[tuple[str, str, int]]:
    """Make the kernels of a room in the copy of the source count; returns (file, function, line) of every branch."""
    places: list[tuple[str, str, int]] = []
    (home / "weft/engine/taken.py").write_text(COUNTER)
    for folder in SHARED.get(room, (room,)):
        for path in sorted((home / "weft/fabrics" / folder).rglob("*.py")):
            if "gpu" in path.parts:  # a device's text, which tests/fabrics/*/test_gpu.py compare
                continue
            tree, before = ast.parse(path.read_text()), len(places)
            tree = Counting(str(path.relative_to(home)), places).visit(tree)
            if len(places) > before:
                first = next(k for k, node in enumerate(tree.body) if isinstance(node, ast.Import | ast.ImportFrom))
                tree.body.insert(first, ast.parse("from weft.engine.taken import branch_taken").body[0])
                path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
    return places


def count(room: str) -> tuple[list, np.ndarray]:
    """(file, function, line) of every branch, and how often each was taken."""
    tests = sorted(str(path) for path in (ROOT / "tests/fabrics" / room).glob("test_twin*.py"))
    tests += BESIDE.get(room, [])
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "src"
        shutil.copytree(ROOT / "src", home, ignore=shutil.ignore_patterns("__pycache__"))
        places = prepare(room, home)
        taken = Path(folder) / "taken.npy"
        environment = {**os.environ, "PYTHONPATH": str(home), "WEFT_CACHE": str(Path(folder) / "cache"),
                       "TAKEN": str(taken)}  # fmt: skip
        told = subprocess.run([sys.executable, "-c", RUN, *tests], cwd=ROOT, env=environment, capture_output=True,
                              text=True)  # fmt: skip
        if told.returncode:
            sys.exit(f"the twins of {room} must agree, not:\n{told.stdout[-3000:]}{told.stderr[-3000:]}")
        return places, np.load(taken)[: len(places)]


def main(rooms) -> int:
    """The exit code."""
    missed = 0
    for room in rooms or ("shoal", "crossbar"):
        places, taken = count(room)
        for file in dict.fromkeys(file for file, _, _ in places):
            here = [k for k, place in enumerate(places) if place[0] == file]
            print(f"{file}: {sum(taken[k] > 0 for k in here)} of {len(here)} branches taken")
            lines = (ROOT / "src" / file).read_text().splitlines()
            for k in here:
                _, function, line = places[k]
                if taken[k] == 0:
                    excuse = UNREACHABLE.get(function)
                    missed += excuse is None
                    said = f" ({excuse})" if excuse else ""
                    print(f"  never: {function}, line {line}: {lines[line - 1].strip()}{said}", flush=True)
    print(f"{missed} branches are never taken")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
