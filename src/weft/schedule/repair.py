"""The schedule after a long-term failure: rack and switches without the dead (§7.3 suggests it and leaves it there).

Survivors are numbered anew, as places 0, 1, …, and get a schedule of their own in which everyone faces everyone once an
epoch. If spines are dead too, a leaf can send fewer cells in a slot than it has nodes, and the epoch grows: `spread`
moves circuits to further slots until no leaf has more than there are uplinks, which is always possible as soon as there
are enough of them for the epoch as a whole. `colour` then gives each circuit one of the uplinks that are left.

What is left out: dead nodes, nodes that have lost their link or their leaf on any plane, and on each plane every uplink
that leads to a dead spine or is dead at some leaf. The last is no waste: in a schedule that is equal for all, a leaf
with an uplink less sets the pace for everybody.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from weft.errors import BadInput, ScheduleConflict
from weft.schedule.decompose import NOBODY, Circuits, colour, verify
from weft.schedule.outage import Down, Ways, unused
from weft.schedule.rotation import DARK, Rounds, rounds
from weft.topology.circuit import CircuitClos


@dataclass(frozen=True, eq=False)
class Repair:
    """A rack's schedule without the dead, in the old numbers of nodes and switches."""

    clos: CircuitClos
    circuits: Circuits
    survivors: np.ndarray  # (places,) int64  the node in each place
    pools: tuple[tuple[int, ...], ...]  # the uplinks that may be used, by plane
    before: float  # share of a survivor's slots that the failure left usable, as long as nothing is repaired
    rounds: Rounds | None  # of the places, where the survivors' epoch did not have to grow

    @property
    def slots(self) -> int:
        """Slots in an epoch."""
        return self.circuits.slots

    @property
    def after(self) -> float:
        """Share of a survivor's slots in which it faces somebody."""
        return (len(self.survivors) - 1) / (self.slots * self.clos.planes)


def repair(schedule: Rounds, outages, ports: int, *, delay: int = 0, order: str = "auto") -> Repair:
    """The schedule of the survivors of `outages`; raises unless at least two nodes and an uplink are left."""
    ways = Ways(schedule, ports)
    down, clos = Down.of(ways, outages), cast(CircuitClos, ways.clos)  # there is one where ports are given
    gone = down.node | down.link.any(axis=(0, 1)) | np.repeat(down.leaf.any(0), clos.half)[: clos.nodes]
    survivors = np.flatnonzero(~gone)
    if len(survivors) < 2:
        raise BadInput(f"a schedule must have at least 2 nodes left, not {len(survivors)}")
    pools = tuple(_pool(clos, down, plane) for plane in range(clos.planes))
    if not any(pools):
        raise BadInput("a schedule must have at least 1 spine left to go through, not 0")
    fewer: Rounds | None = None  # unless the epoch has to grow
    alone = rounds(len(survivors), min(clos.planes, len(survivors) - 1), delay, order)
    leaves = survivors // clos.half
    most = int(np.bincount(leaves).max())
    if alone.channels == clos.planes and all(len(pool) >= most for pool in pools):
        fewer, places = alone, alone.peers()
    else:
        places = _stretched(alone, leaves, [min(len(pool), most) for pool in pools], most)
    circuits = _decomposed(clos, places, survivors, pools)
    lost = unused(schedule, ways.lost(down))[:, survivors]
    before = 1 - lost.sum() / (len(survivors) * (schedule.nodes - 1))
    usable = (schedule.nodes - 1) / len(schedule.shift)  # an epoch may have dark places of its own
    made = Repair(clos, circuits, survivors, pools, float(before * usable), fewer)
    check(made)
    return made


def check(repair: Repair) -> int:
    """Follow every cell through the switches, and raise unless all survivors meet once, over what is alive."""
    circuits, survivors = repair.circuits, repair.survivors
    cells = verify(circuits)
    met = np.zeros((repair.clos.nodes, repair.clos.nodes), np.int64)
    for plane in range(repair.clos.planes):
        for t, i, j in circuits.cells(plane):
            np.add.at(met, (i, j), 1)
            for k in np.flatnonzero(~np.isin(circuits.uplinks[t, plane, i], repair.pools[plane]))[:1]:
                raise ScheduleConflict(f"node {i[k]} must not send over a dead uplink, as it does in slot {t[k]}")
    wanted = np.zeros_like(met)
    wanted[np.ix_(survivors, survivors)] = 1 - np.eye(len(survivors), dtype=np.int64)
    for i, j in np.argwhere(met != wanted)[:1]:
        raise ScheduleConflict(f"node {i} must face node {j} {wanted[i, j]} times an epoch, not {met[i, j]}")
    return cells


def gap(circuits: Circuits) -> int:
    """The fewest slots that lie between i → j and j → i, over all pairs and both directions."""
    slots = np.full((circuits.clos.nodes, circuits.clos.nodes), -1)
    for plane in range(circuits.clos.planes):
        for t, i, j in circuits.cells(plane):
            slots[i, j] = t
    met = slots >= 0
    apart = (slots - slots.T)[met] % circuits.slots
    return int(min(apart.min(), (-apart % circuits.slots).min()))


def spread(table: np.ndarray, leaves: np.ndarray, most: int) -> np.ndarray:
    """(slots, places): the circuits of `table` (peers, NOBODY if dark) moved so that no leaf sends or takes more than
    `most` in a slot.

    Two slots at a time: of their circuits, those of one node are paired, then those left over of one leaf, for senders
    and for receivers. Every circuit is then in one pair at each end, so pairs form paths and rings of even length, and
    giving every other circuit to the first slot splits every pair. Each node keeps one circuit in a slot, and each
    leaf's differ by one at most. There must be room: no leaf may have more than `most` per slot on average.
    """
    table = table.copy()
    ends = leaves.max() + 1
    load = np.stack([_load(row, leaves, ends) for row in table])  # (slots, 2, leaves)
    while load.max() > most:
        p, side, leaf = np.unravel_index(load.argmax(), load.shape)
        q = int(load[:, side, leaf].argmin())
        if load[p, side, leaf] - load[q, side, leaf] < 2:
            raise ScheduleConflict(f"leaf {leaf} must have room for all its circuits in {len(table)} slots, not less")
        table[p], table[q] = _balanced(table[p], table[q], leaves)
        load[p], load[q] = (_load(table[t], leaves, ends) for t in (p, q))
    return table


def _load(row, leaves, ends):
    """(2, leaves): circuits going up from each leaf and coming down to it."""
    lit = row != NOBODY
    return np.stack([np.bincount(leaves[lit], minlength=ends), np.bincount(leaves[row[lit]], minlength=ends)])


def _balanced(first, second, leaves):
    """The circuits of two slots, divided anew."""
    sender = np.concatenate([np.flatnonzero(row != NOBODY) for row in (first, second)]).tolist()
    receiver = np.concatenate([row[row != NOBODY] for row in (first, second)]).tolist()
    leaf = leaves.tolist()
    mates = [_mates(nodes, [leaf[x] for x in nodes]) for nodes in (sender, receiver)]
    slot = [None] * len(sender)
    ends = [e for e in range(len(sender)) if mates[0][e] is None or mates[1][e] is None]
    for start in (*ends, *range(len(sender))):  # paths from an end, then rings
        if slot[start] is not None:
            continue
        side = 0 if mates[0][start] is not None else 1
        edge, now = start, 0
        while edge is not None and slot[edge] is None:
            slot[edge] = now
            edge, side, now = mates[side][edge], 1 - side, 1 - now
    rows = np.full((2, len(first)), NOBODY, first.dtype)
    rows[slot, sender] = receiver
    return rows


def _mates(nodes, leaves):
    """For each circuit the one it is paired with at this end: of the same node, else of the same leaf, or None."""
    mates = [None] * len(nodes)
    for keys in (nodes, leaves):
        open_at = {}
        for e, key in enumerate(keys):
            if mates[e] is None:
                other = open_at.pop(key, None)
                if other is None:
                    open_at[key] = e
                else:
                    mates[e], mates[other] = other, e
    return mates


def _stretched(schedule, leaves, widths, most):
    """(slots, planes, places) peers: the shifts shared out among planes that can carry so many cells of a leaf."""
    shifts = [int(shift) for shift in dict.fromkeys(schedule.shift.tolist()) if shift != DARK]
    slots = 1
    while sum(slots * width // most for width in widths) < len(shifts):
        slots += 1
    place = np.arange(schedule.nodes)
    planes = []
    for width in widths:
        own, shifts = shifts[: slots * width // most], shifts[slots * width // most :]
        table = np.full((slots, schedule.nodes), NOBODY, np.int32)
        for t, shift in enumerate(own):
            table[t] = (place + shift) % schedule.nodes
        planes.append(spread(table, leaves, width) if own else table)
    return np.stack(planes, axis=1)


def _decomposed(clos, places, survivors, pools):
    """Circuits in the old numbers, over the uplinks that are left."""
    slots, planes = len(places), clos.planes
    peers = np.full((slots, planes, clos.nodes), NOBODY, np.int32)
    peers[:, : places.shape[1], survivors] = np.where(places == NOBODY, NOBODY, survivors[places])
    uplinks = np.full(peers.shape, NOBODY, np.int16)
    for t in range(slots):
        for plane in range(planes):
            uplinks[t, plane] = colour(peers[t, plane], clos.half, pools[plane])
    return Circuits(clos, peers, uplinks)


def _pool(clos, down, plane):
    """The uplinks of a plane that lead to a living spine from every leaf."""
    dead = down.uplink[:, plane].any(axis=(0, 1))
    return tuple(u for u in range(clos.half) if not dead[u] and not down.spine[plane, u // clos.trunk])
