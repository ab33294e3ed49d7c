"""Names of fabrics and workloads in tables and pictures: short, and no two alike."""

from dataclasses import fields, is_dataclass

from weft.parameters import parameters

PLAIN = ("transport", "scheduler", "sizes")  # parameters whose values say what they are


def tell_apart(things) -> list[str]:
    """A name for each description: its kind, and what sets it apart from the others of that kind.

    `Shoal`, `Packet ndp`, `Packet dctcp`; where all are of one kind that is left out: `channels 1`, `channels 4`.
    """
    kinds: dict[type, list] = {}
    for thing in things:
        kinds.setdefault(type(thing), []).append(thing)
    several = len(kinds) > 1
    return [_name(thing, kinds[type(thing)], several) for thing in things]


def _name(thing, alike, several):
    apart = ", ".join(_apart(thing, alike)) if is_dataclass(thing) else ""
    return f"{type(thing).__name__} {apart}".rstrip() if several or not apart else apart


def _apart(thing, alike) -> list[str]:
    known = {one.name: one for one in parameters(type(thing))}
    said = []
    for field in fields(thing):
        if field.name in known and len({repr(getattr(other, field.name)) for other in alike}) > 1:
            shown = known[field.name].show(getattr(thing, field.name))
            said.append(shown if field.name in PLAIN else f"{field.name.replace('_', ' ')} {shown}")
    return said
