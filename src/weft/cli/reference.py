"""The page docs/reference/cli.md: what every command says of itself. `make docs` writes it; a test compares it."""

import io
import sys

from weft import catalogue
from weft.cli import COMMANDS, build
from weft.cli.listing import as_data
from weft.parameters import REQUIRED, parameters

OURS = ("run", "resume", "sweep", "rerun", "show", "bench", "fabrics", "workloads")
SHOWN = {"run": ("run", "shoal", "poisson"), "bench": ("bench", "shoal")}


def page() -> str:
    """The page, as Markdown."""
    parts = [
        "# The command line",
        "Made by `make docs` from the commands themselves. Every command also takes `--help`. Exit codes: 0 done, 1 a "
        "claim or monitor failed, 2 bad input, 130 interrupted. `weft cost` has its own pages under docs/models.",
        *(f"## weft {name}\n\n{COMMANDS[name]}\n\n```\n{help_text(*SHOWN.get(name, (name,)))}\n```" for name in OURS),
        "## Fabrics",
        *(table(name, catalogue.fabric_class(name)) for name in catalogue.available()),
        "## Workloads",
        "Every fabric carries the flows of `poisson` to `trace`; `crossbar` also takes the cells of the others.",
        *(table(name, cls) for name, cls in catalogue.every_workload().items()),
    ]
    return "\n\n".join(parts) + "\n"


def help_text(*words) -> str:
    """What `weft words --help` prints, 100 columns wide."""
    from rich.console import Console

    text = io.StringIO()
    root = build(list(words))
    root.help_print(list(words), console=Console(file=text, width=100, color_system=None, force_terminal=False))
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


def table(name, cls) -> str:
    """The parameters of a fabric or workload."""
    rows = ["| flag | kind | default | |", "| --- | --- | --- | --- |"]
    for p in parameters(cls):
        flag = "--trace" if (name, p.name) == ("trace", "path") else "--" + p.name.replace("_", "-")
        default = "required" if p.default is REQUIRED else p.shown_default or ""
        choices = f" ({', '.join(p.choices)})" if p.choices else ""
        rows.append(f"| `{flag}` | {p.kind} | {default} | {(p.help + choices).replace('|', chr(92) + '|')} |")
    return f"### {name}\n\n{as_data(name, cls)['help']}\n\n" + "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
