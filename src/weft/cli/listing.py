"""Lists of what there is to run, for `weft fabrics` and `weft workloads`."""

import inspect

from weft.parameters import REQUIRED, parameters


def summary(cls) -> str:
    """The first sentence of a class."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def as_data(name, cls) -> dict:
    """A description's parameters as plain data."""
    return {
        "name": name,
        "help": summary(cls),
        "parameters": [
            {
                "name": p.name, "kind": p.kind, "choices": list(p.choices), "required": p.default is REQUIRED,
                "default": p.shown_default, "help": p.help, "also": p.also,
            }
            for p in parameters(cls)
        ],
    }  # fmt: skip


def as_text(data: dict) -> str:
    """The same for a reader."""
    rows = []
    for p in data["parameters"]:
        default = "required" if p["required"] else p["default"] or ""
        choices = f" ({', '.join(p['choices'])})" if p["choices"] else ""
        names = ", ".join(name for name in (p["name"], p["also"]) if name)
        rows.append((names, p["kind"], default, p["help"] + choices))
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    lines = ["  ".join([*(f"{row[k]:<{widths[k]}}" for k in range(3)), row[3]]) for row in rows]
    return "\n".join([f"{data['name']}: {data['help']}", "", *lines])


def print_all(classes: dict, wanted: str | None, what: str, json: bool) -> int:
    """Print one line for each of `classes`, or everything about the `wanted` one."""
    from weft.cli.options import print_json
    from weft.errors import BadInput

    if wanted is not None and wanted not in classes:
        raise BadInput(f"a {what} must be one of {', '.join(classes)}, not {wanted!r}")
    chosen = classes if wanted is None else {wanted: classes[wanted]}
    data = [as_data(name, cls) for name, cls in chosen.items()]
    if json:
        print_json({f"{what}s": data})
    elif wanted is not None:
        print(as_text(data[0]))
    else:
        wide = max(map(len, classes))
        print("\n".join(f"{one['name']:<{wide}}  {one['help']}" for one in data))
    return 0
