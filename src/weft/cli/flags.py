"""Flags of a command from the fields of a dataclass: `load_rate: Rate` becomes `--load-rate RATE`."""

import inspect
from typing import Annotated

from cyclopts import Group, Parameter

from weft.parameters import REQUIRED, build, parameters

RENAMED = {("trace", "path"): "trace"}  # `weft run shoal trace --trace FILE`
METAVARS = {"int": "INT", "float": "NUMBER", "str": "TEXT"}


class Flags:
    """The flags of one description, called `owner`; names in `taken` get the owner's name in front."""

    def __init__(self, cls, owner: str, title: str, taken=(), order=0):
        self.cls, self.owner = cls, owner
        self.group = Group(title, sort_key=order)
        self.names = {}  # keyword of the command -> field of the description
        self.parameters = []
        for field in parameters(cls):
            name = RENAMED.get((owner, field.name), field.name)
            if name in taken:
                name = f"{owner.replace('-', '_')}_{name}"
            self.names[name] = field.name
            self.parameters.append(self._parameter(name, field))

    def _parameter(self, name, field):
        flag = "--" + name.replace("_", "-")
        choices = f" ({', '.join(map(str, field.choices))})" if field.choices else ""
        required = field.default is REQUIRED
        about = {
            "name": (flag, "--" + field.also.replace("_", "-")) if field.also else flag,
            "help": field.help.replace("|", r"\|") + choices,
            "group": self.group,
            "show_default": (lambda _, text=field.shown_default: text) if field.shown_default else False,
            "required": required,
        }
        if field.kind == "bool":
            kind = Annotated[bool | None, Parameter(**about, negative="--no-" + flag[2:])]
        else:
            about["metavar"] = METAVARS.get(field.kind, field.kind.upper())
            kind = Annotated[str | None, Parameter(**about, allow_leading_hyphen=True)]
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

    def call(**given):
        bound = call.__signature__.bind(**given)
        bound.apply_defaults()
        return function(**bound.arguments)

    call.__name__, call.__doc__ = name.replace("-", "_"), doc
    call.__signature__ = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
