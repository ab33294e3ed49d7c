"""Plant faults in kernels, one at a time, and see that each is noticed, by the law or the test that is named for it.

Each fault of mutants/mutants.toml is put into a copy of the source, so that nothing here is touched; then the small
fabrics of its room are run (mutants/probe.py) until a monitor ends a run, or the twins are compared. Prints the table
of docs/reliability.md; the exit code is 1 unless every fault was noticed by whom it names. Words on the command line
choose faults by their room or by a part of their name. Each takes the time to compile its kernels, some ten seconds to
two minutes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600  # s of computing for one of them: a kernel that loops for ever is deaf to signals


def mutants() -> list[dict]:
    """All that are written down."""
    return tomllib.loads((ROOT / "verification/mutants/mutants.toml").read_text())["mutant"]


def row(mutant: dict, by: str) -> str:
    """Its line of the table."""
    who = "kernel against twin" if by == "twin" else f"`{by}`"
    return f"| {mutant['room']} | {mutant['name']} | {who} |"


@contextmanager
def planted(mutant: dict, home: Path):
    """The fault is in the copy of the source below `home` until the block ends."""
    path = (home / "weft" / "fabrics" / mutant["file"]).resolve()
    text, seen = path.read_text(), path.stat()
    if text.count(mutant["old"]) != 1:
        sys.exit(
            f"{mutant['file']} must have the text once where {mutant['name']!r}, not {text.count(mutant['old'])} times"
        )
    path.write_text(text.replace(mutant["old"], mutant["new"]))
    try:
        yield
    finally:
        path.write_text(text)
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # kernels without it are found in the cache again


def notice(mutant: dict, room: Path) -> tuple[bool, str]:
    """(whether it was noticed by whom it names, what was said); `room` has the copy of the source."""
    environment = {**os.environ, "PYTHONPATH": str(room / "src"), "WEFT_CACHE": str(room / "cache")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_OPT": "1"}  # compiling takes longer than what is run
    asked = [mutant.get("twin", mutant["room"]), mutant["by"], mutant.get("also", "")]
    with planted(mutant, room / "src"):
        told = subprocess.run(
            [sys.executable, str(ROOT / "verification/mutants/probe.py"), *asked, str(PATIENCE)],
            cwd=ROOT, env=environment, capture_output=True, text=True,
        )  # fmt: skip
    if told.returncode < 0:
        return False, f"nothing in {PATIENCE} s of computing"
    if mutant["by"] == "twin":
        failed = [line for line in told.stdout.splitlines() if line.startswith("FAILED")]
        return told.returncode == 1 and bool(failed), failed[0][7:100] if failed else "the twins agree"
    said = told.stdout.strip()
    return said.startswith(mutant["by"].replace("_", " ")), said or told.stderr.strip()[-200:] or "nothing"


def main(words) -> int:
    """Plant those that the words choose, or all; the exit code."""
    chosen = [one for one in mutants() if not words or any(w == one["room"] or w in one["name"] for w in words)]
    missed = 0
    print("| room | fault | noticed by |\n| --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        shutil.copytree(ROOT / "src", room / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in chosen:
            good, said = notice(mutant, room)
            missed += not good
            print(row(mutant, mutant["by"] if good else f"nobody, but {said}"), flush=True)
    print(f"\n{len(chosen) - missed} of {len(chosen)} faults were noticed by whom they name")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
