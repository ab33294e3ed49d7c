"""The crossbar against theory and against the paper's sentences: tables, pictures and verdicts.

    python verification/crossbar.py [figure …] [--scale small|paper] [-o folder]

Prints every table and, for every claim, whether it holds and what was measured. A claim that does not hold is a
finding, not a failure: the exit code is 0 unless a comparison with theory (Karol, Chuang) fails.
"""

import argparse
import importlib
import sys
from pathlib import Path

from weft.papers.fpga import FIGURES, tabulate, text


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("figures", nargs="*", default=FIGURES, help=f"of {', '.join(FIGURES)}")
    parser.add_argument("--scale", choices=("small", "paper"), default="small")
    parser.add_argument("-o", "--output", type=Path, help="folder for the runs, the pictures and their csv")
    options = parser.parse_args(arguments)
    failed = False
    for name in options.figures:
        figure = importlib.import_module(f"weft.papers.fpga.{name}")
        print(f"\n## {name}: {figure.__doc__.splitlines()[0]}\n")
        counted = hasattr(figure, "table")
        table = figure.table(options.scale) if counted else tabulate(figure, options.scale, folder=options.output)
        print(text(table, figure.COLUMNS))
        if name == "latency":
            print("\n" + text(figure.aggregate(), ("design", "line_gbps", "ports", "aggregate_tbps")))
        print()
        for claim in figure.CLAIMS:
            holds, measured = claim.check(table)
            verdict = holds if isinstance(holds, str) else "holds" if holds else "DOES NOT HOLD"
            print(f"{verdict}  [{claim.id}] {claim.statement}\n    {measured}")
            failed |= not holds and claim.id.startswith("Karol")
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            figure.draw(table).save(options.output / f"crossbar-{name}.svg")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
