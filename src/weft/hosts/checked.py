"""What must hold of hosts' arrays that others wrote: every number that leads into a table leads into it.

Taken by `weft.engine.layout.check_limits`; networks add what their own tables ask.
"""

import numpy as np

from weft.engine import calendar

FAR = 1 << 62


def miscounted(state) -> int:
    """Flows that got other bytes than they asked for, or ended before the last, and bytes that belong to no flow."""
    traffic = state.traffic
    done, got = traffic["finish"] >= 0, traffic["received"]
    wrong = (got < 0) | (got > traffic["size"]) | (done != (got == traffic["size"]))
    strays = int(got.sum()) != int(state.hosts["delivered"].sum())
    return int(np.count_nonzero(wrong)) + int(state.world[0]["cut_short"]) + int(strays)


def limits(given: dict, waits, *, ports: int):
    """(what, numbers, least, largest); `waits` as the run laid it out, `ports` how many a network has."""
    world, rows, flows, ends = (given[name] for name in ("world", "rows", "flows", "hosts"))
    many, slots, flow, nodes = len(rows), len(flows), len(given["traffic"]), len(ends) - 1
    for name, low, high in (
        ("first", 0, many), ("last", 0, many), ("heaped", 0, many), ("ringed", 0, many), ("alive", 0, many),
        ("used", 0, many), ("free", -1, many - 1), ("next_row", 0, many - 1), ("later_row", 0, many - 1),
        ("next_flow", 0, flow), ("free_slot", -1, slots - 1), ("used_slots", 0, slots), ("finished", 0, flow),
        ("coming", 0, flow), ("first_out", -1, many - 1), ("last_out", -1, many - 1), ("has_room", -1, nodes),
        ("due_now", -1, nodes), ("now", 0, FAR), ("bucket", 0, FAR),
    ):  # fmt: skip
        yield name, world[name], low, high
    for name, low, high in (
        ("next", -2 - many, many - 1), ("flow", -1, slots - 1), ("dst", -1, nodes),
        ("sub", 0, max(int(world["subflows"][0]) - 1, 0)), ("port", -1, max(ports - 1, nodes)), ("size", 0, 1 << 31),
        ("seq", -1, 1 << 31), ("id", -1, max(flow - 1, 0)), ("time", 0, FAR),
    ):  # fmt: skip
        yield f"rows.{name}", rows[name], low, high
    for name, low, high in (
        ("id", -1, flow - 1), ("src", 0, nodes), ("dst", 0, nodes), ("next", -1, slots - 1), ("ahead", -1, many - 1),
        ("back", -1, many - 1), ("segments", 0, FAR), ("taken", 0, FAR), ("got", 0, FAR),
    ):  # fmt: skip
        yield f"flows.{name}", flows[name], low, high
    for name in ("timer", "timer_alpha", "timer_raise", "timer_wait"):
        yield f"subs.{name}", given["subs"][name], -1, many - 1
    for name in ("una", "nxt", "top", "expected", "draws", "walked"):
        yield f"subs.{name}", given["subs"][name], 0, FAR
    for name, high in (("first", slots), ("last", slots), ("ring", many), ("ring_first", many)):
        yield f"hosts.{name}", ends[name], -1, high - 1
    yield "heads", given["heads"], -1, many - 1
    for name in ("due", "spare", "heap"):
        yield name, given[name], 0, many - 1
    yield "lanes", given["lanes"], -1, many - 1
    yield "carries", given["carries"], -1, 1 << 31
    yield "order", given["order"], 0, max(given["order"].shape[1] - 1, 0)
    yield from calendar.limits(given["waits"], waits, len(given["successors"]))
