"""Routes: for every switch and destination, the ports on a shortest path.

Hosts with one link are reached through the switch they hang on, their *anchor*, so the table has a column per anchor
and not per host: 8,192 hosts in a fat tree need 1,280 x 512 entries. An entry names a group, a run of ports any of
which will do; equal groups are stored once. Which port of the group a packet takes follows from the path number that it
carries: each switch on the way takes the remainder by the size of its group and passes the quotient on.
"""

from typing import NamedTuple

import numpy as np

from weft.errors import BadInput
from weft.random import key, words
from weft.topology.graph import Topology

NO_ROUTE, HERE = -1, -2


class Routes(NamedTuple):
    """Where packets may go. Switches have a row each, and so has a host with several links."""

    anchor: np.ndarray  # (hosts,) int32  column of the table for a destination
    down: np.ndarray  # (hosts,) int32  port from the anchor to the host; where the anchor is the host itself, -1
    row: np.ndarray  # (nodes,) int32  row of the table for a node, or -1 - port for a host with a single port
    table: np.ndarray  # (rows, anchors) int32  group to take, NO_ROUTE, or HERE at the anchor itself
    first: np.ndarray  # (groups,) int32  where a group begins in `choices`
    count: np.ndarray  # type: ignore[assignment]  # (groups,) int32  how many ports it has
    choices: np.ndarray  # int32  the ports of all groups, each in ascending order


def routes(graph: Topology, alive: np.ndarray | None = None) -> Routes:
    """Shortest paths by number of hops over the links that are `alive` ((links,) bool; all of them if None).

    Hosts do not forward. Anchors and rows do not depend on `alive`, so that tables can be exchanged during a run.
    """
    hosts, nodes = graph.hosts, graph.nodes
    sender, receiver = graph.port_ends()
    degree = np.bincount(graph.ends.reshape(-1), minlength=nodes)
    first_port = np.full(nodes, -1, np.int32)
    order = np.argsort(sender, kind="stable")
    first_port[sender[order][::-1]] = order[::-1]
    # who hangs on whom
    single = (degree[:hosts] == 1) & (receiver[first_port[:hosts]] >= hosts)
    anchor_node = np.where(single, receiver[first_port[:hosts]], np.arange(hosts)).astype(np.int32)
    columns, anchor = np.unique(anchor_node, return_inverse=True)
    down = np.where(single, first_port[:hosts] ^ 1, -1).astype(np.int32)
    # rows
    has_row = np.append(~single, np.ones(nodes - hosts, bool))
    row = np.where(has_row, np.cumsum(has_row) - 1, -1 - first_port).astype(np.int32)

    up = np.ones(len(graph.ends), bool) if alive is None else alive
    usable = np.repeat(up, 2) & (row[sender] >= 0)  # hosts with a single port need no table
    ports = order[usable[order]].astype(np.int32)  # by sender, then number
    frm, to = sender[ports], receiver[ports]
    marks = words(key(0, 0x726F75), graph.ports).view(np.int64)[ports]
    bounds = np.flatnonzero(np.diff(frm, prepend=-1)) if ports.size else np.zeros(0, np.int64)
    holders = row[frm[bounds]]

    table = np.full((has_row.sum(), columns.size), NO_ROUTE, np.int32)
    firsts: list[int] = []
    counts: list[int] = []
    choices: list[np.ndarray] = []
    known: dict[tuple[int, int], int] = {}
    length = 0
    for c, target in enumerate(columns):
        distance = _distances(target, frm, to, nodes, hosts)
        good = (distance[to] + 1 == distance[frm]) & ((to >= hosts) | (to == target))  # no host in between
        if ports.size:
            sums = np.add.reduceat(np.where(good, marks, 0), bounds)
            some = np.add.reduceat(good, bounds) > 0
            for b in np.flatnonzero(some):
                which = (int(holders[b]), int(sums[b]))
                group = known.get(which)
                if group is None:
                    end = bounds[b + 1] if b + 1 < bounds.size else ports.size
                    members = ports[bounds[b] : end][good[bounds[b] : end]]
                    group = known[which] = len(firsts)
                    firsts.append(length)
                    counts.append(members.size)
                    choices.append(members)
                    length += members.size
                table[holders[b], c] = group
        if row[target] >= 0:
            table[row[target], c] = HERE
    return Routes(
        anchor=anchor.astype(np.int32),
        down=down,
        row=row,
        table=table,
        first=np.array(firsts, np.int32),
        count=np.array(counts, np.int32),
        choices=np.concatenate(choices).astype(np.int32) if choices else np.zeros(0, np.int32),
    )


def _distances(target, frm, to, nodes, hosts):
    """(nodes,) int32: hops to `target` without passing through a host; a large number where there is no way."""
    far = np.int32(1 << 20)
    distance = np.full(nodes, far, np.int32)
    distance[target] = 0
    step = 0
    while True:
        reached = (distance[to] == step) & (distance[frm] == far) & ((to >= hosts) | (to == target))
        if not reached.any():
            return distance
        step += 1
        distance[frm[reached]] = step


def require_connected(graph: Topology, table: Routes) -> None:
    """Raise `BadInput` naming two hosts that cannot reach each other, if there are such."""
    receiver = graph.port_ends()[1]
    for h in range(graph.hosts):
        r = table.row[h]
        here = receiver[-1 - r] if r < 0 else h
        cut = np.flatnonzero(table.table[table.row[here], table.anchor] == NO_ROUTE)
        if cut.size:
            raise BadInput(
                f"every host must reach every other, but there is no path from {graph.names[h]!r} to "
                f"{graph.names[cut[0]]!r}"
            )
