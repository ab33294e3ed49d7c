"""Shoal's figures at the paper's scale, and the figures' page held to its word at the small one.

    python verification/figures.py [figure …] [--scale small|paper] [-o folder]

Prints every figure as `weft figure` does. At the small scale it also compares what is printed with docs/papers/shoal.md
and exits with 1 if they differ. With -o the runs are kept: stop it and start it again. A verdict is a finding, not a
failure.
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
    """What the page says that `weft figure NAME` prints."""
    text = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"^```console\n\$ weft figure (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("figures", nargs="*", default=SHOAL, help=f"of {', '.join(SHOAL)}")
    parser.add_argument("--scale", choices=SCALES, default="paper")
    parser.add_argument("-o", "--output", help="folder for runs and pictures")
    options = parser.parse_args(arguments)
    said, stale = on_the_page(), []
    for name in options.figures:
        out, place = io.StringIO(), ["-o", options.output] if options.output else []
        with contextlib.redirect_stdout(out):
            code = weft(["figure", name, "--scale", options.scale, *place])
        if code:
            return code
        print(f"\n{out.getvalue()}", flush=True)
        if options.scale == "small" and out.getvalue() != said.get(name):
            stale.append(name)
    if stale:
        print(f"\nthe page says something else of {', '.join(stale)}")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
