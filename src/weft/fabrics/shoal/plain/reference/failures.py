"""Failures and repair (§3.5): what breaks, who is missed, who is told, and what starts afresh."""

from collections import deque
from dataclasses import dataclass


@dataclass
class Change:
    """What is broken from slot `slot` on, until the next change."""

    slot: int = 0
    cut: frozenset = frozenset()  # (i, j): what i sends to j does not arrive
    dead: frozenset = frozenset()  # nodes that are down
    off: frozenset = frozenset()  # nodes whose clock is beyond the guard


class Failures:
    """What breaks, and is repaired."""

    def take_changes(self):
        while self.changes and self.changes[0].slot <= self.slot:
            before, self.now = self.now, self.changes.pop(0)
            for i in sorted(self.now.dead - self.down):
                self.fail_node(i)
            if before.cut - self.now.cut or before.dead - self.now.dead:
                e = self.schedule.slots
                self.repair_until = -(-(self.slot + self.delay) // e) * e
        if self.slot <= self.repair_until and self.slot % self.schedule.slots == 0:
            self.repair()

    def fail_node(self, i):
        """Node i goes down: all that its interface holds is lost."""
        node = self.nodes[i]
        self.down.add(i)
        for pair in [pair for pair in self.live.values() if pair.src == i]:
            cells, pair.again = pair.again, deque()
            for cell in cells:
                self.lose(cell, "queued")
        node.pairs = [pair for pair in node.pairs if pair.busy]
        for queues in node.queue:
            for queue in queues:
                while queue:
                    self.lose(queue.popleft(), "queued")
        n = len(self.nodes)
        node.ready = [[0] * self.classes for _ in range(n)]
        node.owed, node.told = [None] * n, [[] for _ in range(n)]
        node.sent, node.complaints = [[] for _ in range(n)], set()

    def repair(self):
        """Withdraw the declarations that no longer hold; what goes over those links, or nodes, starts afresh."""
        back = self.down - self.now.dead
        self.down -= back
        repaired = {
            (i, j) for j, node in enumerate(self.nodes) for i in node.failed
            if not {(i, j), (j, i)} & self.now.cut and not {i, j} & self.now.dead
        }  # fmt: skip
        for i, j in repaired:
            del self.nodes[j].failed[i]
        repaired |= {(j, i) for i, j in repaired}
        for pair in self.live.values():
            for j in list(pair.subflow):
                if (pair.src, j) in repaired or (j, pair.dst) in repaired or {j, pair.src} & back:
                    del pair.subflow[j]
        for m in self.air:
            if (m.sender, m.receiver) in repaired or m.sender in back:
                m.expected = False

    def listen(self, m):
        """A cell that was expected and did not come makes its sender a failed node."""
        i, j = m.sender, m.receiver
        heard = m.spoken and not m.cut
        if not heard and m.expected and j not in self.down and i not in self.nodes[j].failed:
            self.declare(j, i, m.slot)

    def declare(self, j, i, expected):
        """Node j takes i for failed, having missed the cell that i should have sent in slot `expected`."""
        node = self.nodes[j]
        node.failed[i] = self.slot
        self.declared += 1
        self.detected = self.slot
        for slot, cell in node.sent[i]:
            # What i sends in a slot it sends knowing that all that came before has come.
            unheard = slot + self.delay >= expected - self.schedule.slots
            if unheard and cell.src == j and self.lives(cell):
                self.repeat_later(self.copy_of(cell))
        for queue in node.queue[i]:
            while queue:
                cell = queue.popleft()
                if cell.src == j:
                    self.repeat_later(cell)
                else:
                    self.lose(cell, "discarded")
        node.ready[i] = [0] * self.classes
        node.owed[i], node.told[i] = None, []
        node.complaints.discard(i)

    def knows_parted(self, i, j, dst):
        """Whether i has heard that j cannot reach dst: j says so in its next cell to everyone."""
        declared = self.nodes[j].failed.get(dst)
        if j == dst or declared is None:
            return False
        turn = self.schedule.where(j, i) // self.schedule.channels
        told = declared + 1 + (turn - declared - 1) % self.schedule.slots
        return self.slot > told + self.delay
