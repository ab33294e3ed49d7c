"""What a failure takes out of the schedule: which cells do not get through the circuit fabric while it lasts (§3.5).

A cell climbs from its node over a link to the leaf, over an uplink to a spine, and down the same way; the schedule says
which uplink it takes in each slot. It is lost if anything on that way is down at any moment of its slot.
"""

from itertools import compress
from typing import NamedTuple

import numpy as np

from weft.errors import BadInput
from weft.failures import PLURALS, Outage, entries, outages
from weft.schedule.decompose import NOBODY, decompose
from weft.schedule.rotation import Rounds
from weft.topology.circuit import CircuitClos

SWITCHES = ("leaf", "spine", "uplink")  # what only a rack whose switches are known has


class Cuts(NamedTuple):
    """What does not get through, from each of some slots until the next; w places, n nodes, sets of nodes as bits."""

    slots: np.ndarray  # (k,)          int64   ascending, the first is 0
    cut: np.ndarray  # (k, w, words) uint64  [·, p, ·] the nodes of which what they send in place p does not arrive
    dead: np.ndarray  # (k, words)    uint64  the nodes that are down


def plan(text, rounds: Rounds, ports: int | None = None, *, seed: int = 0) -> tuple[Outage, ...]:
    """The outages that a plan of failures asks of a rack with this schedule; `ports` is the size of its switches."""
    counts: dict[str, tuple[int, ...]] = {"node": (rounds.nodes,), "link": (rounds.nodes,)}
    if ports is not None:
        clos = fabric(rounds, ports)
        counts |= {"leaf": (clos.leaves,), "spine": (clos.spines,), "uplink": (clos.leaves, clos.half)}
    else:
        for entry in entries(text):
            for word in entry.words:
                if PLURALS.get(word, word) in SWITCHES:
                    raise BadInput(f"ports must be given, the size of a switch, for {entry.text!r} to be meant")
    return outages(text, counts, planes=rounds.channels, seed=seed)


def fabric(rounds: Rounds, ports: int) -> CircuitClos:
    """The circuit fabric that carries a schedule: a plane for each channel."""
    return CircuitClos(nodes=rounds.nodes, ports=ports, planes=rounds.channels)


def cuts(rounds: Rounds, outages, slot_time: int, ports: int | None = None) -> Cuts:
    """What `outages` take out of a schedule, slot by slot; a new entry wherever something fails or comes back.

    A slot is lost to whatever is down at any moment of it: an outage begins with the slot it falls into, and ends with
    the last that it touches.
    """
    spans = [_span(outage, slot_time) for outage in outages]
    slots = sorted({0, *(begin for begin, _ in spans), *(end for _, end in spans if end is not None)})
    ways = Ways(rounds, ports)
    masks, dead = [], []
    for slot in slots:
        now = [begin <= slot and (end is None or slot < end) for begin, end in spans]
        down = Down.of(ways, compress(outages, now))
        masks.append(pack(ways.lost(down)))
        dead.append(pack(down.node))
    return Cuts(np.array(slots, np.int64), np.stack(masks), np.stack(dead))


def unused(rounds: Rounds, lost: np.ndarray) -> np.ndarray:
    """(w, n) bool: the slots that go unused once everybody knows: what is `lost`, and its way back.

    Who hears nothing from a peer falls silent towards it, so a pair loses both directions (§3.5).
    """
    back = np.maximum(rounds.mirror(), 0)[:, None]
    peer = (np.arange(rounds.nodes) + rounds.shift[:, None]) % rounds.nodes
    return lost | (lost[back, peer] & (rounds.peers().reshape(lost.shape) != NOBODY))


def pack(mask: np.ndarray) -> np.ndarray:
    """(…, words) uint64: (…, n) bool as bits, node i in bit i mod 64 of word i div 64."""
    n = mask.shape[-1]
    padded = np.zeros((*mask.shape[:-1], -(-n // 64) * 64), bool)
    padded[..., :n] = mask
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: np.ndarray, n: int) -> np.ndarray:
    """(…, n) bool: `pack` undone."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=-1, bitorder="little")[..., :n].astype(bool)


class Ways:
    """What every cell of an epoch crosses, as arrays over (place, sender)."""

    def __init__(self, rounds: Rounds, ports: int | None = None):
        self.nodes, self.planes = rounds.nodes, rounds.channels
        self.clos = None if ports is None else fabric(rounds, ports)
        self.receiver = rounds.peers().reshape(-1, rounds.nodes)  # (w, n) NOBODY where dark
        self.sends = self.receiver != NOBODY
        self.sender = np.broadcast_to(np.arange(rounds.nodes), self.receiver.shape)
        self.plane = np.arange(len(self.receiver))[:, None] % rounds.channels
        if self.clos is not None:
            half = self.clos.half
            self.uplink = decompose(self.clos, rounds).uplinks.reshape(self.receiver.shape)
            self.up, self.down = self.sender // half, self.receiver // half  # the leaves
            self.spine = self.uplink // self.clos.trunk

    def lost(self, down: "Down") -> np.ndarray:
        """(w, n) bool: whether what a node sends in a place is lost."""
        p, i, j = self.plane, self.sender, self.receiver
        lost = down.node[i] | down.node[j] | down.link[0, p, i] | down.link[1, p, j]
        if self.clos is not None:
            lost |= down.leaf[p, self.up] | down.leaf[p, self.down] | down.spine[p, self.spine]
            lost |= down.uplink[0, p, self.up, self.uplink] | down.uplink[1, p, self.down, self.uplink]
        return lost & self.sends


class Down(NamedTuple):
    """Which parts of a rack are down, as bool arrays; the first axis of links is the direction, 0 for upward."""

    node: np.ndarray  # (n,)
    link: np.ndarray  # (2, planes, n)
    leaf: np.ndarray  # (planes, leaves)
    spine: np.ndarray  # (planes, spines)
    uplink: np.ndarray  # (2, planes, leaves, half)

    @classmethod
    def of(cls, ways: Ways, outages) -> "Down":
        """The parts that `outages` take, all at once."""
        clos, planes = ways.clos, ways.planes
        leaves, spines, half = (clos.leaves, clos.spines, clos.half) if clos else (0, 0, 0)
        shapes = ((ways.nodes,), (2, planes, ways.nodes), (planes, leaves), (planes, spines), (2, planes, leaves, half))
        down = cls(*(np.zeros(shape, bool) for shape in shapes))
        for outage in outages:
            if outage.what in SWITCHES and clos is None:
                raise BadInput(f"ports must be given, the size of a switch, for {outage.name} to fail")
            way = {None: slice(None), "upward": 0, "downward": 1}[outage.way]
            plane = slice(None) if outage.plane is None else outage.plane
            where = {"node": outage.which, "link": (way, plane, *outage.which), "uplink": (way, plane, *outage.which)}
            getattr(down, outage.what)[where.get(outage.what, (plane, *outage.which))] = True
        return down


def _span(outage, slot_time):
    """First slot that an outage takes, and the first that it does not any more; None if it lasts."""
    return outage.at // slot_time, None if outage.until is None else -(-outage.until // slot_time)
