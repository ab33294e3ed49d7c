"""Plant faults in kernels, one at a time, and see that each is noticed, by the law or the test that is named for it.

Each fault of mutants/mutants.toml is put into a copy of the source, so that nothing here is touched; then the small
fabrics of its room are run (mutants/probe.py) until a monitor ends a run, or the twins are compared. Prints a table;
the exit code is 1 unless every fault was noticed by whom it names. Words on the command line choose faults by their
room or by a part of their name. Each takes the time to compile its kernels, some ten seconds to a minute.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 900  # s for one of them


def plant(mutant: dict, home: Path) -> None:
    """Put the fault into the copy of the source below `home`."""
    path = (home / "weft" / "fabrics" / mutant["file"]).resolve()
    text = path.read_text()
    if text.count(mutant["old"]) != 1:
        sys.exit(
            f"{mutant['file']} must have the text once where {mutant['name']!r}, not {text.count(mutant['old'])} times"
        )
    path.write_text(text.replace(mutant["old"], mutant["new"]))


def notice(mutant: dict) -> tuple[bool, str]:
    """(whether it was noticed by whom it names, what was said)."""
    with tempfile.TemporaryDirectory() as room:
        home = Path(room) / "src"
        shutil.copytree(ROOT / "src", home, ignore=shutil.ignore_patterns("__pycache__"))
        plant(mutant, home)
        environment = {**os.environ, "PYTHONPATH": str(home), "WEFT_CACHE": str(Path(room) / "cache")}
        asked = [mutant.get("twin", mutant["room"]), mutant["by"], mutant.get("also", "")]
        try:
            told = subprocess.run(
                [sys.executable, str(ROOT / "verification/mutants/probe.py"), *asked],
                cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"nothing in {PATIENCE} s"
    if mutant["by"] == "twin":
        failed = [line for line in told.stdout.splitlines() if line.startswith("FAILED")]
        return told.returncode == 1 and bool(failed), failed[0][7:100] if failed else "the twins agree"
    said = told.stdout.strip()
    return said.startswith(mutant["by"].replace("_", " ")), said or told.stderr.strip()[-100:] or "nothing"


def main(words) -> int:
    """Plant those that the words choose, or all; the exit code."""
    every = tomllib.loads((ROOT / "verification/mutants/mutants.toml").read_text())["mutant"]
    chosen = [one for one in every if not words or any(word in (one["room"], one["name"]) for word in words)]
    missed = 0
    print(f"{'room':<9} {'noticed by':<24} fault")
    for mutant in chosen:
        good, said = notice(mutant)
        missed += not good
        print(f"{mutant['room']:<9} {mutant['by'] if good else 'NOBODY':<24} {mutant['name']}"
              + ("" if good else f"\n{'':<10}must be noticed by {mutant['by']}, but: {said}"), flush=True)  # fmt: skip
    print(f"{len(chosen) - missed} of {len(chosen)} faults were noticed by whom they name")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
