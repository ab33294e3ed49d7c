"""Commands of README and docs that take too long for tests, typed on a terminal: each must end well.

`python verification/commands.py` runs those of tests/long.toml, but not what is at the papers' scale;
`--scale paper` runs the former too, for hours.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from typed import LONG, PAGES, Typist, commands, prepared


def main() -> int:
    """Type them all; 1 if one of them failed."""
    paper = "paper" in sys.argv
    bad = 0
    with Typist() as typist, tempfile.TemporaryDirectory() as folder:
        place = prepared(Path(folder))
        for command in dict.fromkeys(one for page in PAGES for one in commands(page) if one.line in LONG):
            if not command.line.startswith("weft ") or (("--scale paper" in command.line) and not paper):
                print(f"not run   {command.line}: {LONG[command.line]}", flush=True)
                continue
            said = typist.types(command.tokens, terminal=True, folder=place, patience=24 * 3600)
            bad += not said.done
            print(f"{'done' if said.done else 'FAILED':<9} {command.line}: {said.cpu:.0f} s", flush=True)
            if not said.done:
                print(said.text[-2000:], flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
