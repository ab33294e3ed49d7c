"""The page docs/reference/cli.md: what every command says of itself. `make docs` writes it; a test compares it."""

import inspect
import sys
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import get_args, get_type_hints

from cyclopts import Parameter

from weft import catalogue
from weft.cli import COMMANDS
from weft.cli.flags import METAVARS, RENAMED
from weft.cli.listing import summary
from weft.fabrics import FABRICS
from weft.parameters import REQUIRED, parameters

VARIADIC = inspect.Parameter.VAR_POSITIONAL
COLUMNS = "| | | default | |\n| --- | --- | --- | --- |"


def page() -> str:
    """The page, as Markdown."""
    from weft.cli.run import run_options

    parts = [
        "# The command line",
        "Made by `make docs` from the commands themselves; each also takes `--help`. Exit codes: 0 done, 1 a claim or "
        "monitor failed, 2 bad input, 130 interrupted.",
        f"## weft run FABRIC WORKLOAD\n\n{COMMANDS['run']} The flags are the parameters of the fabric and of the "
        f"workload, below, and these; one that would mean two things has its owner's name in front.\n\n"
        + _table(run_options()),
    ]
    parts += [_command(title, function) for title, function in commands()]
    parts.append("## Fabrics")
    parts += [_description(name, catalogue.fabric_class(name)) for name in FABRICS]
    parts.append("## Workloads")
    parts.append("Every fabric carries `poisson` to `trace`; `crossbar` also takes the others, which are cells.")
    parts += [_description(name, cls) for name, cls in catalogue.own_workloads().items()]
    return "\n\n".join(parts) + "\n"


def commands():
    """(name, function) of every command and subcommand, as in `weft wire shoal encode`, but those of `weft run`."""
    for name in COMMANDS:
        if name != "run":
            module = import_module(f"weft.cli.{name}")
            yield from _leaves(module.make([]) if hasattr(module, "make") else module.app, f"weft {name}")


def _leaves(app, title):
    if app.default_command is not None:
        yield title, app.default_command
    for name in app:
        if not name.startswith("-"):
            yield from _leaves(app[name], f"{title} {name}")


def _command(title, function) -> str:
    hints = get_type_hints(function, include_extras=True)
    given = [p.replace(annotation=hints[p.name]) for p in inspect.signature(function).parameters.values()]
    return f"## {title}\n\n{inspect.getdoc(function)}\n\n{_table(given)}"


def _table(given) -> str:
    return "\n".join([COLUMNS, *(row for parameter in given for row in _rows(parameter))])


def _rows(parameter):
    """A line for a parameter of a command; several for a dataclass of options."""
    kind, *marks = get_args(parameter.annotation)
    about = next((mark for mark in marks if isinstance(mark, Parameter)), None)
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            yield from _rows(parameter.replace(name=field.name, default=field.default, annotation=hints[field.name]))
        return
    names = " ".join(f"`{name}`" for name in about.name or ["--" + parameter.name.replace("_", "-")])
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        names = f"`{about.metavar or parameter.name.upper()}`" + ("…" if parameter.kind is VARIADIC else "")
    default = "" if parameter.default in (None, False, inspect.Parameter.empty) else f"`{parameter.default}`"
    if callable(about.show_default):
        default = f"`{about.show_default(None)}`"
    elif about.required:
        default = "required"
    yield f"| {names} | {'' if about.metavar is None else about.metavar} | {default} | {about.help} |"


def _description(name, cls) -> str:
    """The parameters of a fabric or workload."""
    rows = [f"### {name}\n\n{summary(cls)}\n\n{COLUMNS}"]
    for p in parameters(cls):
        flag = "--" + RENAMED.get((name, p.name), p.name).replace("_", "-")
        kind = "" if p.kind == "bool" else METAVARS.get(p.kind, p.kind.upper())
        default = "required" if p.default is REQUIRED else f"`{p.shown_default}`" if p.shown_default else ""
        choices = f" ({', '.join(p.choices)})" if p.choices else ""
        flag = f"`{flag}`" + (f" `--{p.also.replace('_', '-')}`" if p.also else "")
        rows.append(f"| {flag} | {kind} | {default} | {p.help.replace('|', chr(92) + '|')}{choices} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page())
