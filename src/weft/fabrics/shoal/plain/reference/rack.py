"""The rack of the plain kernel's twin: a slot, what a node sends and receives in it, and the laws."""

from collections import deque
from dataclasses import dataclass, field

from weft.fabrics.shoal.plain.reference.classes import Classes
from weft.fabrics.shoal.plain.reference.damage import Damage
from weft.fabrics.shoal.plain.reference.failures import Change, Failures
from weft.fabrics.shoal.plain.reference.pairs import CAUSES, Ack, Pairs, PlainNode
from weft.fabrics.shoal.plain.reference.transport import Transport
from weft.fabrics.shoal.reference import OUT, Cell, ReferenceRack


@dataclass
class Message:
    """What i had for j in one slot, or that it had nothing to say."""

    slot: int
    channel: int
    sender: int
    receiver: int
    expected: bool  # the receiver would have noticed silence
    spoken: bool = False
    cut: bool = False
    cell: Cell | None = None
    feedback: list = field(default_factory=list)  # of the receiver's last cells, the newest first
    dropped: bool = False  # last-cell-dropped
    damaged: str | None = None  # why the checksum is wrong


class PlainRack(Failures, Damage, Classes, Transport, Pairs, ReferenceRack):
    """A rack under the paper's rules and a plan of `changes`; `flows` are (src, dst, cells, first slot[, class]).

    bit_errors: (seed, threshold, bits) or None. A cell is damaged if its 64-bit draw is below the threshold; one of its
    `bits` is then wrong. depth: cells that a queue of a lower class may hold. timeout: of the transport, in slots; 0
    for none.
    """

    def __init__(self, schedule, flows, *, changes=(), delay=0, ready_queues=True, age_interval=None,
                 sharing="round-robin", feedback=2, classes=1, depth=None, bit_errors=None, timeout=0,
                 calendar=None):  # fmt: skip
        flows = [(*flow, 0)[:5] for flow in flows]
        super().__init__(schedule, [flow[:4] for flow in flows], delay=delay, ready_queues=ready_queues,
                         age_interval=age_interval, sharing=sharing, feedback=feedback,
                         calendar=calendar)  # fmt: skip
        n = schedule.nodes
        self.klass = [flow[4] for flow in flows]
        self.classes = classes
        first = n if ready_queues else 2 * n
        self.depth = [first] + [n if depth is None else depth] * (classes - 1)
        self.bit_errors, self.timeout = bit_errors, timeout
        self.nodes = [PlainNode(n, classes) for _ in range(n)]
        self.changes, self.now = list(changes), Change()
        self.down = set()  # nodes that do not work: dead, or back and waiting for the epoch to begin
        self.repair_until = -1
        self.held = []  # flows that wait for their node to come back
        self.lost = dict.fromkeys(CAUSES, 0)
        self.released = self.repeats = self.duplicates = self.resent = self.acks = self.acks_in = 0
        self.failed_slots = self.declared = self.spoken = 0
        self.detected = -1  # slot of the last declaration

    def step(self):
        self.take_changes()
        self.start_flows()
        if self.timeout and self.slot % self.schedule.slots == 0:
            self.time_out()
        self.sent_now = {}
        for i in range(len(self.nodes)):
            for channel, peers in enumerate(self.peers[self.slot % self.schedule.slots]):
                if (j := peers[i]) >= 0:
                    self.air.append(self.speak(i, j, channel))
        arriving = [m for m in self.air if m.slot + self.delay == self.slot]
        self.air = deque(m for m in self.air if m.slot + self.delay != self.slot)
        groups = {}
        for m in arriving:
            groups.setdefault((not self.shares_slot(m.sender, m.receiver), m.channel), []).append(m)
        for _, group in sorted(groups.items()):
            for m in group:
                self.listen(m)
            for m in group:
                if m.spoken:
                    self.receive(m)
        self.check()
        self.slot += 1

    def speak(self, i, j, channel):
        """What i sends to j, if it does not take j for failed and is not down itself."""
        node = self.nodes[i]
        m = Message(self.slot, channel, i, j, expected=i not in self.nodes[j].failed)
        if i in self.down:
            return m
        if j in node.failed:
            self.failed_slots += 1
            return m
        m.spoken, m.cut = True, (i, j) in self.now.cut
        self.spoken += 1
        m.dropped = j in node.complaints
        node.complaints.discard(j)
        bit = self.damage(m)
        self.release(i, node, j)
        m.feedback = self.report(i, node, j, channel)
        if m.damaged:
            self.damage_feedback(m, bit)
        m.cell = self.head(i, node, j)
        return m

    def receive(self, m):
        i, j, cell = m.sender, m.receiver, m.cell
        node = self.nodes[j]
        if m.cut or j in self.down:
            if cell is not None:
                self.lose(cell, "in_flight")
            return
        self.hear(j, i, m.feedback)
        if m.damaged:
            if cell is not None:
                self.lose(cell, m.damaged)
            self.complain(node, i)
        if m.damaged or m.dropped:  # the bit itself may be damaged: App. D takes it for set
            self.repeat(j, node, i, m.slot)
        if m.damaged or cell is None:
            return
        if cell.dst == j:
            self.fold(cell, j, hop=2 if cell.src != i else 1)
            self.deliver(cell)
        else:
            self.store(node, i, j, cell)

    def hear_of(self, i, j, cell, heard, again):
        pair = self.pair(cell)
        if pair is None or pair.born > cell.born:
            return
        if self.shares_slot(i, j):
            if any(self.same_pair(c, cell) for c in self.nodes[i].queue[j][pair.klass]):
                return  # about an earlier cell than the one that waits here
            left = self.sent_now.get((i, j))
            heard.chased = left is not None and self.same_pair(left, cell)
        elif again and pair.subflow.get(j) == OUT:
            return
        pair.subflow[j] = heard

    def deliver(self, cell):
        if isinstance(cell, Ack):
            self.acknowledge(cell)
            return
        pair = self.pair(cell)
        pair.dirty = True
        if cell.seq < pair.expected or cell.seq in pair.held:
            self.duplicates += 1
            self.drop_copy(cell)
            return
        self.cells["delivered"] += 1
        pair.undelivered -= 1
        pair.held.add(cell.seq)
        while pair.expected in pair.held:
            pair.held.remove(pair.expected)
            pair.expected += 1
        self.max_held = max(self.max_held, len(pair.held))
        self.undelivered[cell.flow] -= 1
        if self.undelivered[cell.flow] == 0:
            self.finish[cell.flow] = self.slot
            self.calendar.ended(cell.flow, self.slot + 1)
        self.drop_copy(cell)

    # ------------------------------------------------------------------ laws

    def check(self):
        """Count queues of the first class beyond the bound, and cells that were lost without a cause."""
        incast, outcast = [0] * len(self.nodes), [0] * len(self.nodes)
        for src, dst, klass in self.live:
            if klass == 0:
                outcast[src] += 1
                incast[dst] += 1
        for i, node in enumerate(self.nodes):
            for j, (queue, *_) in enumerate(node.queue):
                own = sum(cell.src == i for cell in queue)
                limit = incast[j] + (1 if self.ready_queues else outcast[i])
                self.broken["bound"] += len(queue) > limit or (self.ready_queues and own > 1)

    def unaccounted(self):
        """Cells made less those that can be pointed at: zero."""
        there = sum(node.waiting() for node in self.nodes) + sum(m.cell is not None for m in self.air)
        there += sum(len(pair.again) for pair in self.live.values())
        gone = self.cells["delivered"] + self.duplicates + self.acks_in + sum(self.lost.values())
        return self.released + self.repeats + self.resent + self.acks - there - gone
