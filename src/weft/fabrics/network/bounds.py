"""What can be said of a packet network without running it: completion at best, shares of paths, headroom of a pause."""

import numpy as np

from weft import random
from weft.fabrics.network.settings import LEAST, WIRE
from weft.topology.routes import HERE


def headroom(link: int, delay: int, packet: int) -> int:
    """Bytes that can still arrive after a switch decided to pause its neighbour.

    The pause frame may wait for a full packet, takes its own time and the delay of the link; the neighbour finishes the
    packet it has begun; and what is on the wire then still comes: two delays and two packets and a frame at full rate.
    """
    on_the_wire = -(-2 * delay * link // (8 * 10**12))
    return on_the_wire + 2 * packet + LEAST + packet  # and one that was let in at the threshold itself


def ideal(fabric, flows) -> np.ndarray:
    """(flows,) int64 ps: the time of each flow alone, its packets back to back over the fewest hops.

    A short last packet does not wait for those before it, which it need not where it takes another path.
    """
    graph, table = fabric.graph, fabric.routes
    payload, header = fabric.payload, fabric.settings.header + WIRE
    segments = -(-flows.size // payload)
    tail = np.maximum(flows.size - (segments - 1) * payload + header, LEAST)
    rate = int(graph.rate.max())
    hops = _hops(graph, table)
    count = hops[table.anchor[flows.src], table.anchor[flows.dst]]
    single = table.down >= 0
    count = count + single[flows.src] + single[flows.dst]
    all_bytes = (segments - 1) * fabric.wire_size + tail
    last = np.minimum(tail, fabric.wire_size)
    pace = 8 * 10**12 / rate
    first = (all_bytes * pace).astype(np.int64)
    return first + (count - 1) * (last * pace).astype(np.int64) + count * int(graph.delay.min())


def _hops(graph, table) -> np.ndarray:
    """(anchors, anchors) int64: links between the nodes that hosts hang on."""
    _, to = graph.port_ends()
    anchors = table.table.shape[1]
    node = np.zeros(anchors, np.int64)
    here = np.argwhere(table.table == -2)
    node_of_row = np.flatnonzero(table.row >= 0)
    node[here[:, 1]] = node_of_row[here[:, 0]]
    hops = np.zeros((anchors, anchors), np.int64)
    for c in range(anchors):
        at = node.copy()
        for _ in range(64):
            group = table.table[table.row[at], c]
            go = group >= 0
            if not go.any():
                break
            hops[go, c] += 1
            at[go] = to[table.choices[table.first[group[go]]]]
    return hops


def deadlock(state) -> list[int]:
    """Paused ports that can never move again: see `network.free_movable`."""
    from weft.fabrics.network import kernel

    stuck = ((state.ports["paused"] == 1) & (state.ports["stopped"] == 1)).astype(np.uint8)
    if stuck.any():
        kernel.untangle(state.world, stuck, np.zeros(len(stuck), np.int64))
    return np.flatnonzero(stuck).tolist()


def paths(fabric, flows, seed: int = 0) -> list[list[int]]:
    """The ports that each flow crosses where ECMP gives it one path: the ones a run with this seed gives it."""
    graph, table = fabric.graph, fabric.routes
    to = graph.port_ends()[1]
    key = random.key(seed, 0x706B74)
    found: list[list[int]] = []
    for f, (node, dst) in enumerate(zip(flows.src.tolist(), flows.dst.tolist(), strict=True)):
        number = random.below_one(random.word(key, f * 16), 1 << 30)
        found.append([])
        while node != dst:
            if table.row[node] < 0:
                port = -1 - int(table.row[node])
            else:
                g = int(table.table[table.row[node], table.anchor[dst]])
                if g == HERE:
                    port = int(table.down[dst])
                else:
                    count = int(table.count[g])
                    turn = 0
                    if count > 1:
                        number, turn = divmod(number, count)
                    port = int(table.choices[table.first[g] + turn])
            found[-1].append(port)
            node = int(to[port])
    return found


def shares(fabric, flows, seed: int = 0) -> np.ndarray:
    """(flows,) float, b/s of payload: the max-min fair rates of endless flows on the paths that ECMP gives them.

    No transport that keeps a flow on its path, and is fair to all, can do better for the least of them.
    """
    crossed = paths(fabric, flows, seed)
    left = np.repeat(fabric.graph.rate, 2).astype(float) * fabric.payload / fabric.wire_size
    on: list[set[int]] = [set() for _ in left]
    for f, ports in enumerate(crossed):
        for port in ports:
            on[port].add(f)
    rate = np.zeros(len(crossed))
    busy = {port for port, who in enumerate(on) if who}
    while busy:
        port = min(busy, key=lambda p: (left[p] / len(on[p]), p))
        share = left[port] / len(on[port])
        for f in list(on[port]):
            rate[f] = share
            for other in crossed[f]:
                left[other] -= share
                on[other].discard(f)
        busy = {p for p in busy if on[p]}
    return rate
