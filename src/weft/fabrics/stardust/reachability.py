"""Reachability: what devices tell each other of the adapters they reach, and when tables follow (§4.2, §5.8, App. E).

Every device sends a message on every link once in a period: to the device above, which adapters lie below it; to those
below, which it reaches in all. A message holds a block of 128 adapters, so a table takes several. A receiver believes a
block when so many messages in a row have said the same. Both ends of a link that fails see it at once, by the loss of
signal; a link that comes back is used again when enough messages have come over it. All messages leave at the same
moments, as the paper's formula (App. E) has them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from weft.fabrics.network.failures import Change, counted
from weft.fabrics.stardust.wiring import Routes, Wiring, group
from weft.random import key, word, words

BLOCK = 128  # adapters in a message
ERRORS = 0x73640003  # stream: which slots of a link are corrupt


class Moment(NamedTuple):
    """Something that happens to a fabric."""

    time: int
    failed: tuple[int, ...] = ()  # cables
    repaired: tuple[int, ...] = ()
    noisy: tuple[int, ...] = ()  # those that begin to corrupt cells
    clean: tuple[int, ...] = ()
    routes: Routes | None = None  # the tables from now on, if they change


class Tables:
    """What every device has heard, and believes."""

    def __init__(self, wiring: Wiring, updates: int, cold: bool = False):
        self.wiring, self.updates = wiring, updates
        cables, adapters = wiring.cables, wiring.adapters
        self.blocks = -(-adapters // BLOCK)
        self.alive = np.ones(cables, bool)
        below, reach = wiring.reach()
        none = np.zeros((cables, adapters), bool)
        # [cable, adapter]: what the upper end believes of the lower, and the lower of the upper
        self.believed = [none.copy(), none.copy()] if cold else [below[wiring.lower], reach[wiring.upper]]
        self.said = [table.copy() for table in self.believed]  # in the last message
        self.times = [np.full((cables, self.blocks), 0 if cold else updates) for _ in range(2)]  # in a row
        self._sum_up()

    def _sum_up(self):
        """What devices can say of themselves."""
        wiring = self.wiring
        self.below = np.zeros((wiring.devices, wiring.adapters), bool)
        self.below[: wiring.adapters] = np.eye(wiring.adapters, dtype=bool)
        self.reach = self.below.copy()
        for table, ends, believed in ((self.below, wiring.upper, 0), (self.reach, wiring.lower, 1)):
            order = np.argsort(ends, kind="stable")
            first = np.flatnonzero(np.diff(ends[order], prepend=-1))
            table[ends[order[first]]] |= np.logical_or.reduceat(self.believed[believed][order], first, axis=0)
        self.reach |= self.below

    def turn(self, cables, up: bool) -> None:
        """Cables fail, which both ends see, or come back and have to prove themselves."""
        some = list(cables)
        self.alive[some] = up
        for side in range(2):
            self.believed[side][some] = self.said[side][some] = False
            self.times[side][some] = 0
        self._sum_up()

    def exchange(self, number: int) -> bool:
        """Let everybody send message `number` of its table. True if somebody believes something else now."""
        wiring, block = self.wiring, number % self.blocks
        some = slice(block * BLOCK, (block + 1) * BLOCK)
        changed = False
        for side, table, ends in ((0, self.below, wiring.lower), (1, self.reach, wiring.upper)):
            heard = table[ends][:, some]
            same = (heard == self.said[side][:, some]).all(axis=1)
            times = self.times[side][:, block]
            times[:] = np.where(self.alive, np.where(same, np.minimum(times + 1, self.updates), 1), 0)
            self.said[side][self.alive, some] = heard[self.alive]
            sure = self.alive & (times >= self.updates)
            changed |= bool((self.believed[side][sure, some] != heard[sure]).any())
            self.believed[side][sure, some] = heard[sure]
        if changed:
            self._sum_up()
        return changed

    @property
    def settled(self) -> bool:
        """Whether every message has been believed and says what is believed."""
        told = (self.below[self.wiring.lower], self.reach[self.wiring.upper])
        return all(
            bool((self.times[side][self.alive] >= self.updates).all())
            and bool((told[side][self.alive] == self.believed[side][self.alive]).all())
            for side in range(2)
        )

    def routes(self) -> Routes:
        """The tables of all devices."""
        wiring, alive = self.wiring, self.alive
        down: list[list[int]] = [[] for _ in range(wiring.devices)]
        up: list[list[int]] = [[] for _ in range(wiring.devices)]
        for c in np.flatnonzero(alive):
            down[wiring.upper[c]].append(int(c))
            up[wiring.lower[c]].append(int(c))
        return group(wiring, [
            (np.array(down[v], np.int64), self.believed[0][down[v]], np.array(up[v], np.int64), self.believed[1][up[v]])
            for v in range(wiring.devices)
        ])  # fmt: skip


def doubts(fabric, seed: int) -> list[Change]:
    """When cables that corrupt cells declare themselves faulty, and when they no longer do (§5.10).

    Both directions count the slots that came corrupt, whether a cell was in them or not, in one watch after the other.
    With `faulty` of them in a watch a cable is left out at its end; with fewer in a later one it has to prove itself.
    """
    if not fabric.faulty:
        return []
    began: dict[int, int] = {}
    found: list[Change] = []
    for change in fabric.noise(seed):
        for cable in change.links:
            if change.up:
                found += _doubts_of(fabric, seed, cable, began.pop(cable), change.time)
            else:
                began[cable] = change.time
    return found


def _doubts_of(fabric, seed, cable, begin, end) -> Iterator[Change]:
    """The same of a cable that corrupts cells from `begin` to `end`, ps."""
    first, last = -(-begin // fabric.slot), -(-end // fabric.slot)
    seen = np.zeros(end // fabric.watch + 2, np.int64)
    for k in (cable, fabric.wiring.cables + cable):
        drawn = words(word(key(seed, ERRORS), k), last - first, first) >> np.uint64(32)
        corrupt = first + np.flatnonzero(drawn < np.uint64(round(fabric.error_rate * (1 << 32))))
        seen = np.maximum(seen, np.bincount(corrupt * fabric.slot // fabric.watch, minlength=len(seen)))
    good = True
    for watch in np.flatnonzero(np.diff(seen >= fabric.faulty, prepend=False)).tolist():
        good = not good
        yield Change((watch + 1) * fabric.watch, good, (cable,))


def links_of(changes, time: int, up: bool) -> tuple[int, ...]:
    """Cables that come up, or go down, at a moment."""
    return tuple(link for change in changes if change.time == time and change.up == up for link in change.links)


def history(fabric, seed: int) -> Iterator[Moment]:
    """What happens to a fabric in a run with this seed, in order of time: failures, repairs, and tables that follow."""
    changes, noise = fabric.changes(seed), fabric.noise(seed)
    turns = counted(sorted([*changes, *doubts(fabric, seed)], key=lambda change: (change.time, not change.up)))
    times = sorted({change.time for change in (*changes, *noise, *turns)})
    if not times and not fabric.cold:
        return
    tables = Tables(fabric.wiring, fabric.updates, fabric.cold)
    number = 0
    while times or not tables.settled:
        sent = number * fabric.period
        if times and (times[0] <= sent + fabric.delay or tables.settled):
            time = times.pop(0)
            for change in turns:
                if change.time == time:
                    tables.turn(change.links, change.up)
            fewer = any(change.time == time and not change.up for change in turns)
            yield Moment(
                time,
                failed=links_of(changes, time, up=False),
                repaired=links_of(changes, time, up=True),
                noisy=links_of(noise, time, up=False),
                clean=links_of(noise, time, up=True),
                routes=tables.routes() if fewer else None,
            )
            number = max(number, -(-max(time - fabric.delay + 1, 0) // fabric.period))
            continue
        if tables.exchange(number):
            yield Moment(sent + fabric.delay, routes=tables.routes())
        number += 1
