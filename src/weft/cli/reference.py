"""The page docs/reference/cli.md: what every command says of itself. `make docs` writes it; a test compares it."""

import inspect
import sys
from importlib import import_module

from cyclopts import App

from weft import catalogue
from weft.cli import COMMANDS
from weft.cli.flags import METAVARS, RENAMED, command
from weft.cli.listing import summary
from weft.fabrics import FABRICS
from weft.parameters import REQUIRED, parameters

COLUMNS = "| | | default | |\n| --- | --- | --- | --- |"


def page() -> str:
    """The page, as Markdown."""
    from weft.cli.bench import bench_options
    from weft.cli.run import run_options

    shared, measured = (
        App(default_command=command(lambda **given: None, name, "", these()))
        for name, these in (("run", run_options), ("bench", bench_options))
    )
    parts = [
        "# The command line",
        "Made by `make docs` from the commands themselves; each also takes `--help`. Exit codes: 0 done, 1 a claim or "
        "monitor failed, 2 bad input, 130 interrupted.",
        f"## weft run FABRIC WORKLOAD\n\n{COMMANDS['run']} The flags are the parameters of the fabric and of the "
        f"workload, below, and these; one that would mean two things has its owner's name in front.\n\n"
        + _table(shared),
        f"## weft bench FABRIC WORKLOAD\n\n{COMMANDS['bench']} The flags are those of `weft run`, and these:\n\n"
        + _table(measured),
    ]
    parts += [_command(title, app) for title, app in commands()]
    parts.append("## Fabrics")
    parts += [_description(name, catalogue.fabric_class(name)) for name in FABRICS]
    parts.append("## Workloads")
    waiting = ", ".join(f"`{name}`" for name, cls in catalogue.own_workloads().items() if cls.waits)
    parts.append(
        f"Every fabric carries flows; those of {waiting} wait for each other. "
        "`crossbar` also takes what comes behind `trace`, which are cells."
    )
    parts += [_description(name, cls) for name, cls in catalogue.own_workloads().items()]
    return "\n\n".join(parts) + "\n"


def commands():
    """(name, App) of every command and subcommand, as in `weft wire shoal encode`, but those of workloads."""
    for name in COMMANDS:
        if name != "run":
            module = import_module(f"weft.cli.{name}")
            app = module.make([]) if hasattr(module, "make") else module.app
            yield from _leaves(app, f"weft {name}", deep=name != "bench")


def _leaves(app, title, deep=True):
    if app.default_command is not None:
        yield title, app
    for name in app:
        if not name.startswith("-") and (deep or title.count(" ") < 2):
            yield from _leaves(app[name], f"{title} {name}", deep)


def _command(title, app) -> str:
    about = (inspect.getdoc(app.default_command) or "").partition("\n\nParameters\n")[0]
    return f"## {title}\n\n{about}\n\n{_table(app)}"


def _table(app) -> str:
    arguments = [one for one in app.assemble_argument_collection() if one.name != "*"]
    return "\n".join([COLUMNS, *(_row(one) for one in arguments)])


def _row(argument) -> str:
    """A line for a flag, or for what stands without one."""
    about, field = argument.parameter, argument.field_info
    names = " ".join(f"`{name}`" for name in argument.names if not name.startswith("--no-"))
    if field.kind is not field.KEYWORD_ONLY:
        names = f"`{about.metavar or field.name.upper()}`" + ("…" if field.kind is field.VAR_POSITIONAL else "")
    default = "" if field.default in (None, False, field.empty) else f"`{field.default}`"
    if callable(about.show_default):
        default = f"`{about.show_default(None)}`"
    elif about.required:
        default = "required"
    return f"| {names} | {about.metavar or ''} | {default} | {about.help or ''} |"


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
