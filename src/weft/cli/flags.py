"""Flags of a command from the fields of a dataclass: `load_rate: Rate` becomes `--load-rate RATE`."""

import inspect
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from weft.parameters import REQUIRED, build, parameters

RENAMED = {("trace", "path"): "trace"}  # `weft run shoal trace --trace FILE`
METAVARS = {"int": "INT", "float": "NUMBER", "str": "TEXT"}


class Flags:
    """The flags of one description, called `owner`; names in `taken` get the owner's name in front."""

    def __init__(self, cls, owner: str, title: str, taken=(), order=0):
        self.cls, self.owner = cls, owner
        self.group = Group(title, sort_key=order)
        self.names: dict[str, str] = {}  # keyword of the command -> field of the description
        self.parameters: list[inspect.Parameter] = []
        for field in parameters(cls):
            name = RENAMED.get((owner, field.name), field.name)
            if name in taken:
                name = f"{owner.replace('-', '_')}_{name}"
            self.names[name] = field.name
            self.parameters.append(self._parameter(name, field))

    def _parameter(self, name, field):
        flag = "--" + name.replace("_", "-")
        choices = f" ({', '.join(map(str, field.choices))})" if field.choices else ""
        default = field.shown_default if field.default is not False else None  # a flag that is off says so by itself
        about: dict[str, Any] = {
            "help": field.help.replace("|", r"\|") + choices,
            "group": self.group,
            "show_default": (lambda _, text=default: text) if default else False,
            "required": field.default is REQUIRED,
        }
        if not field.positional:
            about["name"] = (flag, "--" + field.also.replace("_", "-")) if field.also else flag
        if field.kind == "bool":
            return keyword(name, Annotated[bool | None, Parameter(**about, negative="--no-" + flag[2:])])
        about["metavar"] = field.metavar or METAVARS.get(field.kind, field.kind.upper())
        if field.positional and field.many:
            return inspect.Parameter(
                name, inspect.Parameter.VAR_POSITIONAL, annotation=Annotated[str, Parameter(**about)]
            )
        if field.many:
            return keyword(
                name, Annotated[list[str] | None, Parameter(**about, negative="", allow_leading_hyphen=True)]
            )
        kind = Annotated[str | None, Parameter(**about, allow_leading_hyphen=not field.positional)]
        if field.positional:
            return inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, default=None, annotation=kind)
        return keyword(name, kind)

    def build(self, given: dict):
        """The description, from what the command was given."""
        values = {self.names[name]: value for name, value in given.items() if name in self.names and value is not None}
        return build(self.cls, values)


def keyword(name, kind, default=None) -> inspect.Parameter:
    """A keyword-only parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def command(function, name: str, doc: str, parameters):
    """`function(**given)` as a command that takes these parameters."""
    signature = inspect.Signature(sorted(parameters, key=lambda parameter: parameter.kind))

    def call(*args, **given):
        bound = signature.bind(*args, **given)
        bound.apply_defaults()
        return function(**bound.arguments)

    call.__name__, call.__doc__ = name.replace("-", "_"), doc
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def described(function, name: str, **classes):
    """`function` as a command: it gets one description for each of `classes`, by keyword, and `json`.

    Titles of the flags' groups are the keywords; the command's help is that of the first class.
    """
    from weft.cli.options import json_flag

    flags, taken = {}, {"json"}
    for order, (title, cls) in enumerate(classes.items()):
        flags[title] = Flags(cls, name, title.capitalize(), taken, order)
        taken |= flags[title].names.keys()

    def call(*, json, **given):
        return function(**{title: one.build(given) for title, one in flags.items()}, json=json)

    every = [parameter for one in flags.values() for parameter in one.parameters]
    return command(call, name, inspect.getdoc(next(iter(classes.values()))) or "", [*every, json_flag()])


def group(name: str, help: str, commands: dict) -> App:
    """The command `name` with its subcommands: a function, or another such group, for each."""
    app = App(name=name, help=help, help_format="markdown")
    for sub, made in commands.items():
        if isinstance(made, App):
            app.command(made)
        else:
            app.command(made, name=sub)
    return app
