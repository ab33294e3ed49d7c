"""What fails in a rack of gates: a plan of failures as the twin takes it, as the kernel does, and as the gates do."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.errors import require
from weft.fabrics.shoal.plain.reference import Change
from weft.rtl.shoal_rack import Rack
from weft.schedule import outage

CYCLE = 6400  # ps of the prototype's clock, 156.25 MHz: failures are planned in time


@dataclass(frozen=True)
class Broken:
    """What fails in a rack, and from which slots on; nothing comes back."""

    rack: Rack
    outages: tuple
    cuts: outage.Cuts
    ways: outage.Ways

    @classmethod
    def plan(cls, rack: Rack, text: str, seed: int = 0) -> "Broken":
        """The failures of a plan in words."""
        require(rack.failures, "failures", "on for anything to fail", rack.failures)
        slot = rack.slot_cycles * CYCLE
        outages = outage.plan(text, rack.rounds, rack.ports, seed=seed)
        for one in outages:
            require(one.until is None, "fail", "of parts that stay down, as gates know no repair", text)
        cuts, ways = outage.cuts(rack.rounds, outages, slot, rack.ports), outage.Ways(rack.rounds, rack.ports)
        return cls(rack, outages, cuts, ways)

    @cached_property
    def changes(self) -> list[Change]:
        """The same as the twin takes it."""
        peers, out = self.ways.receiver, []
        for k, slot in enumerate(self.cuts.slots):
            cut, dead = (outage.unpack(rows[k], self.rack.nodes) for rows in (self.cuts.cut, self.cuts.dead))
            links = frozenset((int(i), int(peers[p, i])) for p, i in np.argwhere(cut))
            out.append(Change(int(slot), links, frozenset(map(int, np.flatnonzero(dead)))))
        return out

    @cached_property
    def spans(self) -> list[tuple[int, outage.Down, dict]]:
        """(slot from which it holds, what is down, the outputs of switches that give nothing), ascending."""
        out = []
        for slot in map(int, self.cuts.slots):
            now = [one for one in self.outages if one.at // (self.rack.slot_cycles * CYCLE) <= slot]
            down = outage.Down.of(self.ways, now)
            out.append((slot, down, self._dead(down)))
        return out

    def _dead(self, down) -> dict[tuple[int, int], bool]:
        """(number of a switch, output) -> whether nothing comes out of it."""
        clos = self.rack.clos
        leaf_of = {(clos.spine_port(u, a)): (a, u) for a in range(clos.leaves) for u in range(clos.half)}
        out = {}
        for number, name in enumerate(clos.names):
            plane, kind, which = clos.locate(name)
            for y in range(self.rack.ports):
                node = which * clos.half + y
                if kind == "spine":
                    dead = down.spine[plane, which]
                    if (which, y) in leaf_of:
                        dead |= down.uplink[1, plane, *leaf_of[which, y]]
                elif y >= clos.half:
                    dead = down.leaf[plane, which] | down.uplink[0, plane, which, y - clos.half]
                else:
                    dead = down.leaf[plane, which] | (node < self.rack.nodes and down.link[1, plane, node])
                out[number, y] = bool(dead)
        return out

    def inputs(self, slots: int):
        """(row, port, value) for the gates; an output of a switch takes up a slot's circuits later than its senders."""
        rack, cycles = self.rack, self.rack.slot_cycles
        ends = [*(begin for begin, _, _ in self.spans[1:]), slots]
        for (begin, down, dead), end in zip(self.spans, ends, strict=True):
            given = [(f"down__{i}", 1) for i in np.flatnonzero(down.node)]
            for c, i in np.argwhere(down.link[0]):
                given.append((f"unplugged__{i}", 1 << int(c)))
            broken = [
                (f"broken__{number}", 1 << y, rack.offsets_of(rack.clos.names[number])[y])
                for (number, y), is_dead in dead.items() if is_dead
            ]  # fmt: skip
            for t in range(begin, min(end, slots)):
                yield from ((t + 1, name, value) for name, value in given)
                yield from (
                    (((t + 1) * cycles + offset - 1) // cycles, name, value) for name, value, offset in broken
                )  # fmt: skip

    def lost(self, slots: int) -> tuple[np.ndarray, np.ndarray]:
        """(slots, n, c): what a node sends is lost somewhere; (slots, n): it is down."""
        rack, epoch = self.rack, self.rack.rounds.slots
        n, c = rack.nodes, rack.channels
        lost, dead = np.zeros((slots, n, c), bool), np.zeros((slots, n), bool)
        for k, slot in enumerate(map(int, self.cuts.slots)):
            cut = outage.unpack(self.cuts.cut[k], n).reshape(epoch, c, n).transpose(0, 2, 1)
            lost[slot:] = cut[np.arange(slot, max(slots, slot)) % epoch]
            dead[slot:] = outage.unpack(self.cuts.dead[k], n)
        return lost, dead

    def stopped(self, slots: int) -> dict[tuple[int, int], np.ndarray]:
        """(number of a switch, output) -> (slots,): what is sent in a slot does not come out there."""
        out: dict = defaultdict(lambda: np.zeros(slots, bool))
        rack, clos, half, ways = self.rack, self.rack.clos, self.rack.clos.half, self.ways
        numbers, epoch = {name: k for k, name in enumerate(clos.names)}, rack.rounds.slots
        for begin, down, dead in self.spans:
            there = np.arange(begin, max(slots, begin))
            for s, plane, i in np.ndindex(epoch, rack.channels, rack.nodes):
                p = s * rack.channels + plane
                j, u = int(ways.receiver[p, i]), int(ways.uplink[p, i])
                if j < 0:
                    continue
                x, port = clos.spine_port(u, j // half)
                stops = bool(down.node[i] | down.link[0, plane, i])
                for name, y in (
                    (clos.leaf(plane, i // half), half + u), (clos.spine(plane, x), port),
                    (clos.leaf(plane, j // half), j % half),
                ):  # fmt: skip
                    stops |= dead[numbers[name], y]
                    out[numbers[name], y][there[there % epoch == s]] = stops
        return out
