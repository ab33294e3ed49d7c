"""The cables between pods and core: where each one goes, and what a wrong one costs."""

import csv
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from weft import reading
from weft.errors import BadInput, require
from weft.files import replaced

FIELDS = ("pod", "uplink", "asic", "qsfp", "card", "row", "position")
ROW = ("upper", "lower")
_EXHAUSTIVE = 14  # pods that deviate, up to which every split is tried


@dataclass(frozen=True)
class Report:
    """What is wrong with a wiring and what it costs.

    `bisection` and `lost` count links in one direction over the worst equal split of the pods; `exact` is
    False when there were too many deviating pods to try every split, and `lost` is then the most found.
    """

    faults: tuple[str, ...]
    harmless: tuple[str, ...]
    bisection: int
    lost: int
    exact: bool
    left: tuple[int, ...]  # the pods on one side of the worst split


@dataclass(frozen=True, eq=False)
class Wiring:
    """Every 40 Gb/s cable between pods and core cards, a row each of `FIELDS`.

    Uplink card u of a pod has two chips a with radix/8 ports q each; a core card has an upper and a lower
    row of `radix` positions; a cable fans out to the four chips of its row (§IV-E).
    """

    radix: int
    cables: np.ndarray  # (n, 7) int
    cards: int

    @classmethod
    def right(cls, radix: int = 24, pods: int | None = None, cards: int | None = None) -> "Wiring":
        """The wiring in which every pod has the same number of cables on every row of every core card.

        For a full core that is one: cable q of chip a on uplink card u goes to card (radix/8) u + q, row a.
        """
        require(radix >= 8 and radix % 8 == 0, "radix", "a multiple of 8", radix)
        pods = radix if pods is None else pods
        require(2 <= pods <= radix, "pods", f"between 2 and {radix}", pods)
        full = radix * radix // 32
        cards = full if cards is None else cards
        require(1 <= cards <= full and full % cards == 0, "cards", f"a divisor of {full}", cards)
        fold = full // cards  # cables of one pod that share a row
        require(fold * pods <= radix, "pods", f"at most {radix // fold} on {cards} core cards", pods)
        p, u, a, q = (
            axis.ravel()
            for axis in np.meshgrid(
                np.arange(pods), np.arange(radix // 4), np.arange(2), np.arange(radix // 8), indexing="ij"
            )
        )
        card = radix // 8 * u + q
        return cls(radix, np.stack([p, u, a, q, card % cards, a, p * fold + card // cards], axis=1), cards)

    @classmethod
    def load(cls, path, radix: int = 24, cards: int | None = None) -> "Wiring":
        """Read a wiring from a CSV file with the columns of `FIELDS`."""
        table = reading.rows(reading.text(path, "a csv of cables").splitlines(), path)
        names = next((row for _, row in table), [])
        lines = [(number, dict(zip(names, row, strict=False))) for number, row in table if row]
        cards = radix * radix // 32 if cards is None else cards
        limits = dict(zip(FIELDS, (radix, radix // 4, 2, radix // 8, cards, 2, radix), strict=True))
        rows = []
        for number, line in lines:
            row = []
            for name, limit in limits.items():
                text = (line.get(name) or "").strip()
                if not (text.isdecimal() and len(text) < 20) or int(text) >= limit:
                    raise BadInput(
                        f"{name} on line {number} of {Path(path).name} must be a whole number from 0 to "
                        f"{limit - 1}, not {text!r}"
                    )
                row.append(int(text))
            rows.append(row)
        require(rows, f"cables in {Path(path).name}", "at least 1", 0)
        return cls(radix, np.array(rows), cards)

    def save(self, path) -> None:
        """Write the wiring as CSV, one cable to a line."""
        with replaced(path) as fresh, open(fresh, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(FIELDS)
            writer.writerows(self.cables.tolist())

    def swap(self, i: int, j: int) -> "Wiring":
        """The same wiring with the core ends of cables i and j exchanged."""
        cables = self.cables.copy()
        cables[[i, j], 4:] = cables[[j, i], 4:]
        return Wiring(self.radix, cables, self.cards)

    @property
    def pods(self) -> int:
        return int(self.cables[:, 0].max()) + 1

    def reach(self) -> np.ndarray:
        """Cables of each pod on each row, (pods, 2 cards); each is one link to each of four core chips."""
        count = np.zeros((self.pods, 2 * self.cards), int)
        np.add.at(count, (self.cables[:, 0], 2 * self.cables[:, 4] + self.cables[:, 5]), 1)
        return count

    def check(self) -> Report:
        """Find cables that break the rule of §IV-E, and the bisection bandwidth they cost."""
        count = self.reach()
        each = self.radix * self.radix // 16 // (2 * self.cards)
        faults = [*self._shared("core port", (4, 5, 6)), *self._shared("pod port", (0, 1, 2, 3))]
        faults += [
            f"pod {p} has {count[p, r]} cable{'' if count[p, r] == 1 else 's'} on the {ROW[r % 2]} row of core "
            f"card {r // 2} and should have {each}"
            for p, r in np.argwhere(count != each)
        ]
        lost, exact, left = _worst_split(count, each)
        full = 4 * 2 * self.cards * each * (self.pods // 2)
        return Report(tuple(faults), tuple(self._crossed(count, each)), full - lost, lost, exact, left)

    def _shared(self, what, columns):
        ends, uses = np.unique(self.cables[:, columns], axis=0, return_counts=True)
        for end, n in zip(ends[uses > 1], uses[uses > 1], strict=True):
            place = " ".join(f"{FIELDS[c]} {v}" for c, v in zip(columns, end, strict=True))
            yield f"{n} cables share one {what} ({place})"

    def _crossed(self, count, each):
        """Pods that reach every chip as they should, but not from the uplink cards that the map names."""
        tidy = Wiring.right(self.radix, self.pods, self.cards).cables if self.pods > 1 else self.cables
        want = {tuple(row[:4]): tuple(row[4:6]) for row in tidy.tolist()}
        stray = {row[0] for row in self.cables.tolist() if want.get(tuple(row[:4])) != tuple(row[4:6])}
        for p in sorted(stray):
            if (count[p] == each).all():
                yield f"pod {p} has cables exchanged among its own uplink cards; no bandwidth is lost"


def _worst_split(count, each):
    """Links lost over the worst equal split of the pods: (lost, whether every split was tried, one side).

    A core chip passes, in one direction, as many links as its poorer side has. Rows that every pod reaches
    alike lose nothing, and pods that reach every row alike only fill up the sides.
    """
    pods = len(count)
    half = pods // 2
    off = count - each
    suspects = np.flatnonzero((off != 0).any(axis=1))
    rows = off[:, (off != 0).any(axis=0)]
    spare = each * (pods - 2 * half)  # an odd pod more on the other side

    def lost(side):
        mine = rows[list(side)].sum(axis=0)
        return int(4 * np.maximum(0, np.maximum(-mine, mine - rows.sum(axis=0) - spare)).sum())

    plain = [p for p in range(pods) if p not in set(suspects.tolist())]
    if len(suspects) <= _EXHAUSTIVE:
        best, side = 0, tuple(range(half))
        for size in range(len(suspects) + 1):
            if size > half or len(suspects) - size > pods - half:
                continue
            for some in combinations(suspects.tolist(), size):
                if half - size <= len(plain) and (found := lost(some)) > best:
                    best, side = found, tuple(sorted([*some, *plain[: half - size]]))
        return best, True, side
    side = set(range(half))  # too many to try: exchange pods while it gets worse
    best, improved = lost(side), True
    while improved:
        improved = False
        for i in sorted(side):
            for j in sorted(set(range(pods)) - side):
                if (found := lost(side - {i} | {j})) > best:
                    best, side, improved = found, side - {i} | {j}, True
                    break
            if improved:
                break
    return best, False, tuple(sorted(side))
