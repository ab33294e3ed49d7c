"""What a plan of failures means in a packet network: which links go down, when, and when they come back.

    link edge0.1-agg0.0 at 10us until 2ms, switch core0.3 at 1ms, links 5% at 100us, nodes 3,17 at 1ms

The grammar is that of `weft.failures`. A link is named after its ends, a node (or host) by its number: it goes down
with all its links. `links` and `switches` fail a share of those between switches, `nodes` of all hosts, drawn from the
run's seed. A network may have further parts, cards say, each of which takes some links
with it.
"""

from typing import NamedTuple

import numpy as np

from weft.errors import BadInput
from weft.failures import STREAM, entries, near, overlap, refuse_overlap, share_of
from weft.random import key, permutation
from weft.topology.graph import Topology

PLURALS = {"links": "link", "switches": "switch", "nodes": "node", "hosts": "node"}


NEVER = (1 << 63) - 1


class Change(NamedTuple):
    """A moment at which links go down or come back."""

    time: int
    up: bool
    links: tuple[int, ...]


def plan(text: str, graph: Topology, seed: int, parts: dict | None = None, changes=()) -> list[Change]:
    """The changes that `text` asks of `graph`, in order of time; repairs before failures of the same moment.

    `parts` has the links of further things that can fail, by kind and name; `changes` are some that happen anyway.
    """
    parts, changes = parts or {}, list(changes)
    seen: list[tuple] = []
    plurals = PLURALS | {f"{kind}s": kind for kind in parts}
    for k, entry in enumerate(entries(text)):
        kind = plurals.get(entry.words[0], "node" if entry.words[0] == "host" else entry.words[0])
        if kind not in plurals.values() or len(entry.words) < 2:
            hint = near(entry.words[0], (*plurals, *plurals.values()))
            also = f" or {next(reversed(parts))} N at 1ms" if parts else ""
            raise BadInput(
                "a failure must look like link A-B at 10us until 2ms, switch A at 1ms, node 3 at 1ms or links 5% at "
                f"1ms{also}, not {entry.text!r}{hint}"
            )
        several = next(word for word, one in plurals.items() if one == kind)
        known = list(parts[kind]) if kind in parts else _inner(kind, graph)
        number = share_of("".join(entry.words[1:]), several, len(known))
        own = key(seed, STREAM + k)
        if number is None:
            links = _named(kind, entry, graph, parts, seen)
        elif kind in parts:
            chosen = permutation(own, len(known))[:number].tolist()
            links = tuple(sorted({link for n in chosen for link in parts[kind][known[n]]}))
        else:
            links = _drawn(kind, number, graph, own)
        changes.append(Change(entry.at, False, links))
        if entry.until is not None:
            changes.append(Change(entry.until, True, links))
    return counted(sorted(changes, key=lambda change: (change.time, not change.up)))


def counted(changes):
    """The changes, but for links that are down for another reason already, or still: a switch, say, of a dead link."""
    reasons: dict[int, int] = {}
    kept = []
    for change in changes:
        turned = []
        for link in change.links:
            before = reasons.get(link, 0)
            reasons[link] = before - 1 if change.up else before + 1
            if reasons[link] == 0 if change.up else before == 0:
                turned.append(link)
        if turned:
            kept.append(change._replace(links=tuple(turned)))
    return kept


def _named(kind, entry, graph, parts, seen):
    """The links of what an entry names; nothing may be named again while it is down."""
    found = []
    for name in entry.words[1:]:
        if kind in parts:
            links = _of_part(kind, name, parts[kind])
        else:
            links = {"link": _between, "switch": _around, "node": _below}[kind](name, graph)
        for other, span in seen:
            if other == (kind, *links) and overlap(span, (entry.at, entry.until)):
                refuse_overlap(f"{kind} {name}", span, (entry.at, entry.until))
        seen.append(((kind, *links), (entry.at, entry.until)))
        found += links
    return tuple(dict.fromkeys(found))


def _of_part(kind, name, known):
    if name not in known:
        *some, last = [*list(known)[:3], next(reversed(known))] if len(known) > 4 else known
        some = f"{', '.join(some)} … {last}" if len(known) > 4 else ", ".join(known)
        raise BadInput(f"a {kind} must be one of {some}, not {name!r}")
    return [int(link) for link in known[name]]


def _between(name, graph):
    ends = name.split("-")
    if len(ends) != 2:
        raise BadInput(f"a link must be named A-B after its ends, not {name!r}")
    found = graph.links_between(graph.node(ends[0]), graph.node(ends[1]))
    if not found:
        raise BadInput(f"there must be a link {name} to fail, but the topology has none")
    return found


def _around(name, graph):
    node = graph.node(name)
    if node < graph.hosts:
        raise BadInput(f"a switch to fail must be a switch, not the host {name!r}")
    return graph.links_of(node)


def _below(name, graph):
    number = name.removeprefix("h")
    if not number.isascii() or not number.isdigit() or int(number) >= graph.hosts:
        raise BadInput(f"a node must be from 0 to {graph.hosts - 1}, not {name!r}")
    return graph.links_of(int(number))


def cut_off(changes: list[Change], graph: Topology) -> np.ndarray:
    """(hosts,) int64: ps from which each host has no link that ever comes back, or NEVER."""
    down = np.full(len(graph.ends), NEVER, np.int64)
    for change in changes:  # in order of time
        down[list(change.links)] = NEVER if change.up else change.time
    last = np.zeros(graph.hosts, np.int64)
    for ends in graph.ends.T:
        below = ends < graph.hosts
        np.maximum.at(last, ends[below], down[below])
    return last


def _inner(kind, graph):
    """Links between switches, all switches, or all hosts; all links where hosts are joined directly."""
    if kind == "link" and not graph.switches:
        return np.arange(len(graph.ends))
    if kind == "link":
        return np.flatnonzero((graph.ends >= graph.hosts).all(1))
    if kind == "node":
        return np.arange(graph.hosts)
    return np.arange(graph.hosts, graph.nodes)


def _drawn(kind, number, graph, own):
    inner = _inner(kind, graph)
    chosen = sorted(inner[permutation(own, inner.size)][:number].tolist())
    return tuple(chosen if kind == "link" else sorted({link for node in chosen for link in graph.links_of(node)}))
