"""Who is wired to whom: adapters below, tiers of elements above, and the links that lead from each to each.

Devices are numbered adapters first, then elements tier by tier. A cable c is two links: c upward, and c plus the number
of cables downward. Cables are numbered by tier, so the links of the last stage, from the first tier of elements down to
adapters, are one run of numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.errors import BadInput
from weft.topology.fattree import FatTree

HERE, NOWHERE = -2, -1  # entries of a table instead of a group: the device itself, and what cannot be reached


class Routes(NamedTuple):
    """For every device and adapter the links that lead there, as groups that devices walk in turn."""

    table: np.ndarray  # (devices, adapters) int32  group, or HERE or NOWHERE
    first: np.ndarray  # (groups,) int32  of its links in `choices` …
    number: np.ndarray  # … and how many there are
    choices: np.ndarray  # int32  links


@dataclass(frozen=True, eq=False)
class Wiring:
    """Cables of a folded Clos of adapters and elements."""

    adapters: int
    elements: tuple[int, ...]  # of each tier
    lower: np.ndarray  # (cables,) int64  device at the lower end
    upper: np.ndarray
    tier: np.ndarray  # of the upper end, 1 the lowest

    @property
    def devices(self) -> int:
        """Adapters and elements."""
        return self.adapters + sum(self.elements)

    @property
    def cables(self) -> int:
        """Cables, each two links."""
        return len(self.lower)

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(from, to) of every link."""
        return np.concatenate([self.lower, self.upper]), np.concatenate([self.upper, self.lower])

    @cached_property
    def edge(self) -> int:
        """Cables of adapters: the first ones."""
        return int((self.tier == 1).sum())

    def first(self, tier: int) -> int:
        """The first device of a tier."""
        return self.adapters + sum(self.elements[: tier - 1])

    def reach(self, alive: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(below, reach): (devices, adapters) bool, which adapters a device reaches downward, and in all.

        alive: (cables,) bool.
        """
        alive = np.ones(self.cables, bool) if alive is None else alive
        below = np.zeros((self.devices, self.adapters), bool)
        below[: self.adapters] = np.eye(self.adapters, dtype=bool)
        for tier in range(1, len(self.elements) + 1):
            for c in np.flatnonzero(alive & (self.tier == tier)):
                below[self.upper[c]] |= below[self.lower[c]]
        whole = below.copy()
        for tier in range(len(self.elements), 0, -1):
            for c in np.flatnonzero(alive & (self.tier == tier)):
                whole[self.lower[c]] |= whole[self.upper[c]]
        return below, whole

    def distances(self, routes: Routes) -> np.ndarray:
        """(adapters, adapters) links between two adapters."""
        _, to = self.ends
        d = np.tile(np.arange(self.adapters), (self.adapters, 1))
        at, far = d.T.copy(), np.zeros(d.shape, np.int64)
        while (at != d).any():
            moving = at != d
            g = routes.table[at[moving], d[moving]]
            at[moving] = to[routes.choices[routes.first[g]]]
            far += moving
        return far

    def routes(self, alive: np.ndarray | None = None) -> Routes:
        """Tables that everybody agrees on: down where that leads to the adapter, else up (§3.2, §5.8)."""
        alive = np.ones(self.cables, bool) if alive is None else alive
        below, whole = self.reach(alive)
        down: list[list[int]] = [[] for _ in range(self.devices)]
        up: list[list[int]] = [[] for _ in range(self.devices)]
        for c in np.flatnonzero(alive):
            down[self.upper[c]].append(int(c))
            up[self.lower[c]].append(int(c))
        leads = [
            (
                np.array(down[v], np.int64),
                below[self.lower[down[v]]],
                np.array(up[v], np.int64),
                whole[self.upper[up[v]]],
            )
            for v in range(self.devices)
        ]
        return group(self, leads)


def group(wiring: Wiring, leads) -> Routes:
    """Tables from what each device knows: (down cables, what each reaches, up cables, what each reaches)."""
    table = np.full((wiring.devices, wiring.adapters), NOWHERE, np.int32)
    first: list[int] = []
    count: list[int] = []
    choices: list[int] = []
    for v, (down, below, up, above) in enumerate(leads):
        known: dict[bytes, int] = {}
        links = np.concatenate([down + wiring.cables, up])
        usable = np.concatenate([below, above & ~below.any(axis=0)])
        for d, pattern in enumerate(np.packbits(usable, axis=0).T):
            name = pattern.tobytes()
            if name not in known:
                some = links[usable[:, d]].tolist()
                known[name] = len(first) if some else NOWHERE
                if some:
                    first.append(len(choices))
                    count.append(len(some))
                    choices += some
            table[v, d] = known[name]
        if v < wiring.adapters:
            table[v, v] = HERE
    return Routes(table, np.array(first, np.int32), np.array(count, np.int32), np.array(choices, np.int32))


def wire(adapters: int, uplinks: int, tiers: int, radix: int, up: int | None = None) -> Wiring:
    """A fabric of `radix`-port elements for so many adapters with so many uplinks each.

    With two tiers an element of the first gives `up` ports to the second, half unless said, and the others to adapters
    of its pod; the second tier is as few elements as have the ports. More tiers are planes, one for each uplink.
    """
    if tiers == 1:
        elements = -(-adapters * uplinks // radix)
        if elements > uplinks:
            raise BadInput(f"radix must be at least {adapters} for {adapters} adapters under one tier, not {radix}")
        while uplinks % elements:
            elements += 1
        lower = np.repeat(np.arange(adapters), uplinks)
        upper = adapters + np.tile(np.arange(uplinks) % elements, adapters)
        return Wiring(adapters, (elements,), lower, upper, np.ones(len(lower), np.int64))
    if up is None and radix % 2:
        raise BadInput(f"radix must be even where half of the ports go up, not {radix}")
    up = radix // 2 if up is None else up
    if tiers == 2:
        return _two_tiers(adapters, uplinks, radix, up)
    return _planes(adapters, uplinks, tiers, radix, up)


def _two_tiers(adapters, uplinks, radix, up):
    pod = radix - up
    pods = -(-adapters // pod)
    if pods > radix:
        raise BadInput(f"adapters under two tiers of {radix} ports must be at most {radix * pod:,}, not {adapters:,}")
    shared = next(g for g in range(min(uplinks, radix // pods), 0, -1) if uplinks % g == 0)  # of a pod, in a plane
    a = np.repeat(np.arange(adapters), uplinks)
    u = np.tile(np.arange(uplinks), adapters)
    first = adapters + pods * uplinks
    lower = np.repeat(adapters + np.arange(pods * uplinks), up)
    plane = (np.arange(pods * uplinks) % uplinks) // shared
    upper = first + np.repeat(plane * up, up) + np.tile(np.arange(up), pods * uplinks)
    return Wiring(
        adapters,
        (pods * uplinks, uplinks // shared * up),
        np.concatenate([a, lower]),
        np.concatenate([adapters + a // pod * uplinks + u, upper]),
        np.repeat([1, 2], [len(a), len(lower)]),
    )


def _planes(adapters, uplinks, tiers, radix, up):
    tree = FatTree(radix=radix, tiers=tiers, uplinks=uplinks, up=up)
    if adapters > tree.edges:
        raise BadInput(
            f"adapters under {tiers} tiers of {radix} ports must be at most {tree.edges:,}, not {adapters:,}"
        )
    rows = tree.links()[tree.hosts :] - tree.hosts
    counts = [tree.switches_in(tier) for tier in range(1, tiers + 1)]
    starts = tree.edges + np.concatenate([[0], np.cumsum(counts)])
    tier = np.searchsorted(starts, rows[:, 1], side="right")
    used = np.zeros(int(starts[-1]), bool)
    used[:adapters] = True
    for k in range(1, tiers + 1):  # only what has an adapter below it
        used[rows[(tier == k) & used[rows[:, 0]], 1]] = True
    rows, tier = rows[used[rows[:, 0]]], tier[used[rows[:, 0]]]
    number = np.cumsum(used) - 1
    order = np.lexsort((rows[:, 1], rows[:, 0], tier))
    kept = tuple(int(used[starts[k] : starts[k + 1]].sum()) for k in range(tiers))
    return Wiring(adapters, kept, number[rows[order, 0]], number[rows[order, 1]], tier[order])
