"""Shoal's figures at the paper's scale, and the figures' page held to its word at the small one.

    python verification/figures.py [figure …] [--scale small|paper] [-o folder]

Prints every figure as `weft figure` does, first at the small scale, in minutes, then at the paper's, in hours. Exits
with 1 if docs/papers/shoal.md says that a command prints something else. The runs are kept: stop it and start it again.
A verdict is a finding, not a failure.
"""

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

from weft.cli import main as weft
from weft.papers import MODULES, SCALES

SHOAL = [name for name in MODULES if name.startswith("shoal/")]
PAGE = Path(__file__).parents[1] / "docs/papers/shoal.md"


def on_the_page() -> dict[str, str]:
    """What the page says that `weft figure …` prints, by what follows the word figure."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"^```console\n\$ weft figure ([^\n]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("figures", nargs="*", default=SHOAL, help=f"of {', '.join(SHOAL)}")
    parser.add_argument("--scale", choices=SCALES, help="only this one")
    parser.add_argument("-o", "--output", default="out/papers", help="folder for runs and pictures")
    options = parser.parse_args(arguments)
    said, stale = on_the_page(), []
    for scale in [options.scale] if options.scale else SCALES:
        for name in options.figures:
            out, line = io.StringIO(), name if scale == "small" else f"{name} --scale {scale}"
            with contextlib.redirect_stdout(out):
                code = weft(["figure", name, "--scale", scale, "-o", options.output])
            if code > 1:
                return code
            print(f"\n{out.getvalue()}", flush=True)
            if out.getvalue() != said.get(line, "" if scale == "small" else out.getvalue()):
                stale.append(f"weft figure {line}")
    if stale:
        print(f"\nthe page says something else of {', '.join(stale)}")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
