"""Follow a flow through the rack: when each cell was released, where it waited, and why.

The twin carries the run again, cell by cell, and tells. It agrees with the kernel cell for cell, so what it tells is
what happened.
"""

from weft.engine.calendar import Calendar
from weft.errors import BadInput
from weft.fabrics.base import Step, require_few
from weft.fabrics.shoal.reference import OUT, ReferenceRack

MOST = 2_000_000  # cells that the twin is asked to carry


def follow(fabric, flows, f: int, until: int) -> tuple[list[Step], int]:
    """(steps of flow f up to `until`, the ps at which it was done or -1), in order of time."""
    if fabric.rules != "paper" or fabric.needs_plain:
        raise BadInput("a rack that is followed must be under the paper's rules, with nothing that fails or is damaged")
    require_few(flows, fabric.payload, fabric.link, until, MOST, "cells")
    rack = Followed(fabric, flows, f)
    while rack.finish[f] < 0 and rack.slot * fabric.slot_time < until:
        rack.step()
    return rack.steps, (rack.finish[f] + 1) * fabric.slot_time if rack.finish[f] >= 0 else -1


class Followed(ReferenceRack):
    """A rack that tells of one flow."""

    def __init__(self, fabric, flows, f):
        counts = fabric.cells(flows.size).tolist()
        starts = [-(-int(start) // fabric.slot_time) for start in flows.start]
        table = zip(flows.src.tolist(), flows.dst.tolist(), counts, starts, strict=True)
        super().__init__(
            fabric.rounds, list(table), delay=fabric.travel, ready_queues=fabric.ready_queues,
            age_interval=fabric.age_interval, sharing=fabric.sharing, calendar=Calendar(flows, fabric.slot_time),
        )  # fmt: skip
        self.fabric, self.f, self.steps = fabric, f, []
        self.numbers: dict[tuple, int] = {}  # (pair's birth, seq) -> number of the cell within the flow
        self.refused: dict[str, int] = {}
        self.mine = self.flows[f][0], self.flows[f][1]

    def tell(self, cell, what, where, why="", end=False):
        number = self.numbers.setdefault((cell.born, cell.seq), len(self.numbers))
        self.steps.append(Step((self.slot + end) * self.fabric.slot_time, number, what, where, why))

    def start_flows(self):
        before = self.f in [entry[0] for pair in self.live.values() for entry in pair.flows]
        super().start_flows()
        pair = self.live.get(self.mine)
        if not before and pair is not None and self.f in [entry[0] for entry in pair.flows] and not self.steps:
            why = f"{len(pair.flows) - 1} other flows of this pair share its turns" if len(pair.flows) > 1 else ""
            self.steps.append(Step(self.slot * self.fabric.slot_time, -1, "flow begins", f"node {pair.src}", why))

    def may_send(self, pair, j, length):
        good = super().may_send(pair, j, length)
        if not good and (pair.src, pair.dst) == self.mine:
            reason = "no feedback yet" if pair.subflow.get(j) == OUT else "its last cell still waits there"
            self.refused[reason] = self.refused.get(reason, 0) + 1
        return good

    def release(self, i, node, j):
        known = len(node.queue[j])
        super().release(i, node, j)
        for behind, cell in enumerate(node.queue[j]):
            if behind >= known and cell.flow == self.f:
                held = ", ".join(f"{count} turns: {reason}" for reason, count in self.refused.items())
                why = "; ".join(filter(None, (f"behind {behind}", held)))
                self.tell(cell, "released", f"node {i}, queue to {j}", why)
                self.refused = {}

    def send(self, i, node, j, channel):
        before = len(self.air)
        super().send(i, node, j, channel)
        cell = self.air[before][4]
        if cell is not None and cell.flow == self.f:
            self.tell(cell, "sent", f"node {i} to {j}", f"its turn on channel {channel}")

    def receive(self, i, j, cell, feedback):
        waiting = 0 if cell is None or cell.dst == j else len(self.nodes[j].queue[cell.dst])
        super().receive(i, j, cell, feedback)
        if cell is not None and cell.flow == self.f:
            if cell.dst == j:
                self.tell(cell, "delivered", f"node {j}", end=True)
            else:
                self.tell(cell, "parked", f"node {j}, queue to {cell.dst}", f"behind {waiting}", end=True)
