"""A plan of failures, written as text: which links and switches go down, when, and when they come back.

    link:edge0.1-agg0.0@10us-2ms, switch:core0.3@1ms, links:5%@100us

A comma separates entries; without a second time a failure lasts. `links:` and `switches:` fail a share of those between
switches, drawn from the run's seed.
"""

import re
from typing import NamedTuple

import numpy as np

from weft.errors import BadInput
from weft.random import key, permutation
from weft.topology.graph import Topology
from weft.units import parse_time

_ENTRY = re.compile(r"(link|switch|links|switches):([^@]+)@([^@-]+)(?:-([^@]+))?")


class Change(NamedTuple):
    """A moment at which links go down or come back."""

    time: int
    up: bool
    links: tuple[int, ...]


def plan(text: str, graph: Topology, seed: int) -> list[Change]:
    """The changes that `text` asks of `graph`, in order of time; repairs before failures of the same moment."""
    changes = []
    for k, entry in enumerate(part.strip() for part in text.split(",") if part.strip()):
        match = _ENTRY.fullmatch(entry)
        if not match:
            raise BadInput(f"a failure must look like link:A-B@10us-2ms, switch:A@1ms or links:5%@1ms, not {entry!r}")
        what, which, begin, end = match.groups()
        start = parse_time(begin)
        links = tuple(_links(what, which.strip(), graph, seed, k))
        changes.append(Change(start, False, links))
        if end is not None:
            if parse_time(end) <= start:
                raise BadInput(f"a failure must end after it begins, not {entry!r}")
            changes.append(Change(parse_time(end), True, links))
    return sorted(changes, key=lambda change: (change.time, not change.up))


def _links(what, which, graph, seed, k):
    if what == "link":
        ends = which.split("-")
        if len(ends) != 2:
            raise BadInput(f"a link must be named A-B after its ends, not {which!r}")
        found = graph.links_between(graph.node(ends[0].strip()), graph.node(ends[1].strip()))
        if not found:
            raise BadInput(f"there must be a link {which} to fail, but the topology has none")
        return found
    if what == "switch":
        node = graph.node(which)
        if node < graph.hosts:
            raise BadInput(f"a switch to fail must be a switch, not the host {which!r}")
        return graph.links_of(node)
    share = re.fullmatch(r"([0-9.]+)\s*%", which)
    if not share or float(share[1]) > 100:
        raise BadInput(f"a share of {what} must be a percentage, not {which!r}")
    inner = np.flatnonzero((graph.ends >= graph.hosts).all(1))
    if what == "switches":
        inner = np.arange(graph.hosts, graph.nodes)
    order = inner[permutation(key(seed, 0x6661696C + k), inner.size)]
    chosen = sorted(order[: round(inner.size * float(share[1]) / 100)].tolist())
    return chosen if what == "links" else sorted({link for node in chosen for link in graph.links_of(node)})
