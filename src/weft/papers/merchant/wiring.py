"""Merchant silicon, §IV-E: cables between pods and core cards, every way to plug a small switch, and wrong ones."""

from itertools import product

import numpy as np

from weft.fabrics.merchant.boards import Boards
from weft.models.merchant import Switch
from weft.papers import Claim, at_paper_scale
from weft.random import key, permutation
from weft.topology.cabling import Wiring
from weft.units import Tbps

COLUMNS = ("what", "wirings", "by_rule", "full_by_rule", "full_otherwise", "least_tbps", "most_lost_links")
SMALL = 8  # radix of the switch whose wirings are all tried: a pod has four cables, the core four rows


def table(scale="small"):
    """Every way to plug one pod of a small switch; ways by the rule in the large one; and its wrong cables."""
    paper = at_paper_scale(scale)
    return [
        _row(f"every wiring of one pod, k = {SMALL}", _every(SMALL)),
        _row("one row on every card, in any order, k = 24", _shuffled(24, 12 if paper else 3)),
        _row("two pods on each other's row, k = 24", [_crossed(24)]),
        _row("one cable not plugged, k = 24", [_missing(24)]),
        _row("cables of one pod exchanged, k = 24", [Wiring.right(24).swap(0, 1)]),
    ]


def _every(k):
    """The cables of pod 0 in every row each, the other pods as they should be; a row has room for two of one pod."""
    right = Wiring.right(k, pods=k // 2)
    mine = np.flatnonzero(right.cables[:, 0] == 0)
    for rows in product(range(2 * right.cards), repeat=len(mine)):
        cables, used = right.cables.copy(), {}
        for n, row in zip(mine, rows, strict=True):
            at = used.setdefault(row, 0)
            used[row] += 1
            cables[n, 4:] = row // 2, row % 2, 0 if at == 0 else k // 2 + at - 1
        yield Wiring(k, cables, right.cards)


def _shuffled(k, draws):
    """Every pod's cables in a random order over the rows, one to a row."""
    right = Wiring.right(k)
    for draw in range(draws):
        cables = right.cables.copy()
        for p in range(k):
            mine = np.flatnonzero(cables[:, 0] == p)
            order = permutation(key(draw, p), len(mine))
            cables[mine, 4], cables[mine, 5] = order // 2, order % 2
        yield Wiring(k, cables, right.cards)


def _crossed(k):
    right = Wiring.right(k)
    where = {tuple(row[:4]): n for n, row in enumerate(right.cables.tolist())}
    return right.swap(where[0, 0, 0, 0], where[1, 0, 1, 0])


def _missing(k):
    right = Wiring.right(k)
    return Wiring(k, right.cables[1:], right.cards)


def _row(what, wirings):
    count = by_rule = full_by_rule = full_otherwise = lost = 0
    least = None
    for wiring in wirings:
        boards = Boards(Switch(radix=wiring.radix, pods=wiring.pods, core_cards=wiring.cards), wiring)
        found = boards.bisection(draws=0)
        missing = round((boards.hosts * boards.switch.link - found) / boards.switch.link)
        rule = bool((wiring.reach() == 1).all())
        count += 1
        by_rule += rule
        full_by_rule += rule and not missing
        full_otherwise += not rule and not missing
        lost = max(lost, missing)
        least = found if least is None else min(least, found)
    return {
        "what": what,
        "wirings": count,
        "by_rule": by_rule,
        "full_by_rule": full_by_rule,
        "full_otherwise": full_otherwise,
        "least_tbps": least / Tbps,
        "most_lost_links": lost,
    }


def draw(table):
    """Links lost in both directions together."""
    from weft.report.plots import plot

    rows = [{"case": n, "lost_links": row["most_lost_links"], "of": row["what"]} for n, row in enumerate(table)]
    return plot(rows, x="case", y="lost_links", by="of", yscale="linear", title="Links that wrong cables cost")


def _enough(table):
    rows = table[:2]
    said = ", ".join(f"{row['full_by_rule']} of {row['by_rule']} ({row['what']})" for row in rows)
    return all(row["by_rule"] == row["full_by_rule"] > 0 for row in rows), f"full bisection bandwidth in {said}"


def _needed(table):
    """The paper says only that such a wiring may cost bandwidth: at most consistent."""
    others = sum(row["wirings"] - row["by_rule"] for row in table)
    full = sum(row["full_otherwise"] for row in table)
    return "consistent" if not full else False, f"{full} of {others} other wirings have it"


def _parallel(table):
    row = table[2]
    lost = row["most_lost_links"]
    return lost > 0, f"{lost} links, {row['least_tbps']:g} Tb/s left, both directions counted"


CLAIMS = [
    Claim(
        "merchant.c13",
        "as long as each pod connects to exactly one upper and one lower port on each core card, the network will "
        "achieve full bisection bandwidth",
        _enough,
        scaled=False,
    ),
    Claim("merchant.c13", "and if a pod does not, it will not (ours to add)", _needed, scaled=False),
    Claim("merchant.m08", "two or more parallel links to the same core chip subtract from it", _parallel, scaled=False),
]
