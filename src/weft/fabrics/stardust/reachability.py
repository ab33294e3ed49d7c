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

from weft.fabrics.stardust.wiring import Routes, Wiring, group

BLOCK = 128  # adapters in a message


class Moment(NamedTuple):
    """Something that happens to a fabric."""

    time: int
    failed: tuple[int, ...] = ()  # cables
    repaired: tuple[int, ...] = ()
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


def history(fabric, seed: int) -> Iterator[Moment]:
    """What happens to a fabric in a run with this seed, in order of time: failures, repairs, and tables that follow."""
    changes = list(fabric.changes(seed))
    if not changes and not fabric.cold:
        return
    tables = Tables(fabric.wiring, fabric.updates, fabric.cold)
    number = 0
    while changes or not tables.settled:
        sent = number * fabric.period
        if changes and (changes[0].time <= sent + fabric.delay or tables.settled):
            time = changes[0].time
            failed: list[int] = []
            repaired: list[int] = []
            while changes and changes[0].time == time:
                change = changes.pop(0)
                tables.turn(change.links, change.up)
                (repaired if change.up else failed).extend(change.links)
            yield Moment(time, tuple(failed), tuple(repaired), tables.routes() if failed else None)
            number = max(number, -(-max(time - fabric.delay + 1, 0) // fabric.period))
            continue
        if tables.exchange(number):
            yield Moment(sent + fabric.delay, routes=tables.routes())
        number += 1
