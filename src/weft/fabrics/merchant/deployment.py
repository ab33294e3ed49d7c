"""A switch that grows while it runs (§IV-F): what is installed when, as links that are down until then.

    pods=1 until 1ms, pods=12 core_cards=9 until 2ms

An entry is a deployment that lasts until a time; after the last one comes the whole of what is described. Cards and
pods are only added; cables may have to be plugged elsewhere, as the thirteenth pod makes them.
"""

from dataclasses import replace

import numpy as np

from weft.errors import BadInput
from weft.fabrics.merchant.boards import Boards, plug
from weft.fabrics.network.failures import Change
from weft.failures import entries
from weft.parameters import parameters
from weft.topology.cabling import Wiring
from weft.topology.deployment import Deployment

COUNTS = ("pods", "line_cards", "uplink_cards", "core_cards")
_FIELDS = {field.name: field for field in parameters(Deployment)}


def stages(text: str, whole: Deployment) -> list[tuple[Deployment, int]]:
    """(deployment, ps at which it ends) of each entry of `text`, in order."""
    found: list[tuple[Deployment, int]] = []
    before: Deployment | None = None
    for entry in entries(text):
        if entry.until is None or entry.at:
            raise BadInput(f"a deployment must look like pods=12 core_cards=9 until 2ms, not {entry.text!r}")
        switch, until = _deployment(entry, whole), entry.until
        if found and until <= found[-1][1]:
            raise BadInput(f"deployments must follow one another in time, unlike {entry.text!r}")
        for name in COUNTS:
            value, least = getattr(switch, name), getattr(before, name) if before else 0
            most = getattr(whole, name)
            if not least <= value <= most:
                raise BadInput(f"{name} of {entry.text!r} must be from {least} to {most}, not {value}")
        found.append((switch, until))
        before = switch
    return found


def _deployment(entry, whole):
    values = {}
    for word in entry.words:
        name, equals, text = word.partition("=")
        if name not in COUNTS or not equals:
            raise BadInput(f"a deployment must say how many of {', '.join(COUNTS)}, as in pods=12, not {word!r}")
        values[name] = _FIELDS[name].read(text)
    values.setdefault("uplink_cards", whole.uplink_cards)
    if "pods" not in values:
        values["pods"] = whole.pods
    return Deployment(radix=whole.radix, link=whole.link, **values)


def grown(whole: Boards, text: str) -> tuple[Boards, list[Change]]:
    """The boards with every cable of every stage, and when which links come and go."""
    steps = stages(text, whole.switch)
    if not steps:
        return whole, []
    wirings = [plug(switch) for switch, _ in steps]
    places = {tuple(row[:6]): None for row in whole.wiring.cables.tolist()}
    extra = [row for wiring in wirings for row in wiring.cables.tolist()]
    extra = list({tuple(row[:6]): row for row in extra if tuple(row[:6]) not in places}.values())
    cables = np.concatenate([whole.wiring.cables, np.array(extra, int).reshape(-1, 7)])
    every = replace(whole, wiring=Wiring(whole.wiring.radix, cables, whole.wiring.cards))
    masks = [_present(every, Boards(switch, wiring)) for (switch, _), wiring in zip(steps, wirings, strict=True)]
    masks.append(_present(every, whole))
    changes = [Change(0, False, _where(~masks[0]))]
    for (_, until), before, after in zip(steps, masks, masks[1:], strict=False):
        changes += [Change(until, True, _where(after & ~before)), Change(until, False, _where(before & ~after))]
    return every, [change for change in changes if change.links]


def _where(mask):
    return tuple(np.flatnonzero(mask).tolist())


def _present(every, stage) -> np.ndarray:
    """(links,) bool: which links of `every` are there in a stage."""
    chips = set(stage.names[stage.hosts :])
    there = np.array([n < every.hosts or name in chips for n, name in enumerate(every.names)])
    plugged = {tuple(row[:6]) for row in stage.wiring.cables.tolist()}
    mine = np.array([tuple(row[:6]) in plugged for row in every.wiring.cables.tolist()] + [True])  # -1: on a board
    return there[every.ends].all(1) & mine[every.cable]
