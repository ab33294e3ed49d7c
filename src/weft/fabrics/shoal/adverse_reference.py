"""Shoal when things go wrong, in plain objects and one cell at a time: the twin of `adverse.py`.

`Adverse` is the `Rack` of `reference.py` with nodes and paths that fail and come back (§3.5), traffic classes
(App. C), damaged cells (App. D), clocks that are off (§3.4) and an end-to-end transport. What the paper leaves open is
in `notes.md`.
"""

from collections import deque
from dataclasses import dataclass, field

from weft.fabrics.shoal.reference import OUT, Cell, Heard, Node, Pair, Rack
from weft.random import below_one, key, word
from weft.wire.shoal import HEADER

BURST, BACKOFF, EVERY = 16, 3, 8  # cells that a timeout sends again, times that it doubles, epochs between answers
CAUSES = ("in_flight", "discarded", "queued", "corrupted", "collided", "dropped")


@dataclass
class Change:
    """What is broken from slot `slot` on, until the next change."""

    slot: int = 0
    cut: frozenset = frozenset()  # (i, j): what i sends to j does not arrive
    dead: frozenset = frozenset()  # nodes that are down
    off: frozenset = frozenset()  # nodes whose clock is beyond the guard


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
    feedback: tuple | None = None
    dropped: bool = False  # last-cell-dropped
    damaged: str | None = None  # why the checksum is wrong


@dataclass
class Traffic(Pair):
    """A pair of one traffic class, with the cells that must be sent again."""

    klass: int = 0
    again: deque = field(default_factory=deque)  # cells to repeat, served first
    copies: int = 0  # cells of it in queues, in the air and in `again`
    origin: list = field(default_factory=list)  # the flow of each cell released
    acked: int = 0  # the source knows that every cell before this one has arrived
    timer: int = 0  # slot in which that last moved, or in which it was last late
    timeouts: int = 0  # since it moved
    dirty: bool = False  # the receiver has something to acknowledge
    pending: int = 0  # acknowledgements under way

    @property
    def busy(self):
        return bool(self.flows or self.again)

    def next_cell(self, sharing):
        if self.again:
            return self.again.popleft()
        self.copies += 1
        cell = super().next_cell(sharing)
        self.origin.append(cell.flow)
        return cell


@dataclass
class Ack(Cell):
    """A cell that says that every cell of `about` before `seq` has arrived; it belongs to the pair the other way."""

    about: Traffic


class Neighbourly(Node):
    """A node that remembers whom it has lost and what it sent."""

    def __init__(self, nodes, classes):
        super().__init__(nodes)
        self.queue = [[deque() for _ in range(classes)] for _ in range(nodes)]  # [j][c]
        self.ready = [[0] * classes for _ in range(nodes)]
        self.turn = [[0] * classes for _ in range(nodes)]
        self.failed = {}  # [j]: slot at whose end j was declared failed
        self.sent = [[] for _ in range(nodes)]  # [j]: (slot, cell) of the last turns, empty ones left out
        self.drop = set()  # j: the next cell to j says that its last one was dropped

    def waiting(self):
        return sum(len(queue) for queues in self.queue for queue in queues)


class Adverse(Rack):
    """A rack under the paper's rules and a plan of `changes`; `flows` are (src, dst, cells, first slot[, class]).

    luck: (seed, threshold, bits) or None. A cell is hit if its 64-bit draw is below the threshold; one of its `bits`
    is then wrong. depth: cells that a queue of a lower class may hold. timeout: of the transport, in slots; 0 for none.
    """

    def __init__(self, schedule, flows, *, changes=(), delay=0, ready_queues=True, age_interval=None,
                 sharing="round-robin", classes=1, depth=None, luck=None, timeout=0):  # fmt: skip
        flows = [(*flow, 0)[:5] for flow in flows]
        super().__init__(schedule, [flow[:4] for flow in flows], delay=delay, ready_queues=ready_queues,
                         age_interval=age_interval, sharing=sharing)  # fmt: skip
        n = schedule.nodes
        self.klass = [flow[4] for flow in flows]
        self.classes = classes
        first = n if ready_queues else 2 * n
        self.depth = [first] + [n if depth is None else depth] * (classes - 1)
        self.luck, self.timeout = luck, timeout
        self.nodes = [Neighbourly(n, classes) for _ in range(n)]
        self.changes, self.now = list(changes), Change()
        self.down = set()  # nodes that do not work: dead, or back and waiting for the epoch to begin
        self.mend_until = -1
        self.held = []  # flows that wait for their node to come back
        self.lost = dict.fromkeys(CAUSES, 0)
        self.released = self.repeats = self.duplicates = self.resent = self.acks = self.acks_in = 0
        self.failed_slots = self.declared = self.spoken = 0
        self.detected = -1  # slot of the last declaration

    # ------------------------------------------------------------------ a slot

    def step(self):
        self.change()
        self.start_flows()
        if self.timeout and self.slot % self.schedule.slots == 0:
            self.transport()
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

    def start_flows(self):
        ready, self.held = [f for f in self.held if self.flows[f][0] not in self.down], [
            f for f in self.held if self.flows[f][0] in self.down]  # fmt: skip
        while self.arrived < len(self.flows) and self.flows[self.arrived][3] <= self.slot:
            (self.held if self.flows[self.arrived][0] in self.down else ready).append(self.arrived)
            self.arrived += 1
        for f in ready:
            src, dst, cells, _ = self.flows[f]
            klass = self.klass[f]
            pair = self.between(src, dst, klass)
            self.enlist(pair)
            pair.flows.append([f, cells, cells])
            pair.undelivered += cells

    def between(self, src, dst, klass):
        """The pair of these two in this class, made if there is none."""
        if (src, dst, klass) not in self.live:
            seat = self.nodes[src].take_seat(self.slot)
            self.live[src, dst, klass] = Traffic(src, dst, self.slot, seat, klass=klass)
        return self.live[src, dst, klass]

    def transport(self):
        """Once an epoch: send again what was not acknowledged in time, and acknowledge in turn."""
        for i in range(len(self.nodes)):
            turn = (self.slot // self.schedule.slots + i) % EVERY == 0
            for pair in reversed([pair for pair in self.live.values() if pair.src == i]):
                late = self.slot - pair.timer >= self.timeout << pair.timeouts
                if late and pair.seq > pair.acked and not pair.again and i not in self.down:
                    for seq in range(pair.acked, min(pair.seq, pair.acked + BURST)):
                        self.resent += 1
                        pair.copies += 1
                        self.again(Cell(pair.origin[seq], i, pair.dst, seq, pair.born))
                    pair.timer, pair.timeouts = self.slot, min(pair.timeouts + 1, BACKOFF)
                if turn and pair.dirty and pair.dst not in self.down:
                    back = self.between(pair.dst, i, pair.klass)
                    self.acks += 1
                    back.copies += 1
                    pair.pending += 1
                    pair.dirty = False
                    self.again(Ack(len(self.flows), pair.dst, i, pair.expected, back.born, pair))

    def enlist(self, pair):
        """Put a pair that gets something to release on its node's list, if it is not there."""
        if not pair.busy:
            self.nodes[pair.src].pairs.append(pair)
            pair.since = self.slot

    # ------------------------------------------------------------------ what breaks, and is mended

    def change(self):
        while self.changes and self.changes[0].slot <= self.slot:
            before, self.now = self.now, self.changes.pop(0)
            for i in sorted(self.now.dead - self.down):
                self.kill(i)
            if before.cut - self.now.cut or before.dead - self.now.dead:
                e = self.schedule.slots
                self.mend_until = -(-(self.slot + self.delay) // e) * e
        if self.slot <= self.mend_until and self.slot % self.schedule.slots == 0:
            self.mend()

    def kill(self, i):
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
        node.owed, node.told, node.sent, node.drop = [None] * n, [None] * n, [[] for _ in range(n)], set()

    def mend(self):
        """Withdraw the declarations that no longer hold; what goes over those links, or nodes, starts afresh."""
        back = self.down - self.now.dead
        self.down -= back
        fixed = {
            (i, j) for j, node in enumerate(self.nodes) for i in node.failed
            if not {(i, j), (j, i)} & self.now.cut and not {i, j} & self.now.dead
        }  # fmt: skip
        for i, j in fixed:
            del self.nodes[j].failed[i]
        fixed |= {(j, i) for i, j in fixed}
        for pair in self.live.values():
            for j in list(pair.subflow):
                if (pair.src, j) in fixed or (j, pair.dst) in fixed or {j, pair.src} & back:
                    del pair.subflow[j]
        for m in self.air:
            if (m.sender, m.receiver) in fixed or m.sender in back:
                m.expected = False

    def listen(self, m):
        """§3.5: a cell that was expected and did not come makes its sender a failed node."""
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
                self.again(self.copy(cell))
        for queue in node.queue[i]:
            while queue:
                cell = queue.popleft()
                if cell.src == j:
                    self.again(cell)
                else:
                    self.lose(cell, "discarded")
        node.ready[i] = [0] * self.classes
        node.owed[i] = node.told[i] = None
        node.drop.discard(i)

    def again(self, cell):
        """Put a cell on its pair's list of those to repeat."""
        pair = self.pair(cell)
        self.enlist(pair)
        pair.again.append(cell)

    def class_of(self, cell):
        return cell.about.klass if isinstance(cell, Ack) else self.klass[cell.flow]

    def pair(self, cell):
        return self.live.get((cell.src, cell.dst, self.class_of(cell)))

    def lives(self, cell):
        """Whether the pair of a remembered cell is still there; what has arrived in full is not repeated."""
        pair = self.pair(cell)
        if isinstance(cell, Ack) and self.live.get((cell.dst, cell.src, cell.about.klass)) is not cell.about:
            return False
        return pair is not None and pair.born == cell.born

    def copy(self, cell):
        """Another copy of a remembered cell is about."""
        self.repeats += 1
        self.pair(cell).copies += 1
        if isinstance(cell, Ack):
            cell.about.pending += 1
        return cell

    def lose(self, cell, cause):
        self.lost[cause] += 1
        if isinstance(cell, Ack):
            cell.about.pending -= 1
            self.try_end(cell.about)
        self.gone(cell)

    def gone(self, cell):
        """A copy of a cell is no more."""
        pair = self.pair(cell)
        pair.copies -= 1
        self.try_end(pair)

    def try_end(self, pair):
        """End a pair whose cells have all arrived, to the knowledge of its source where it asks, if none is about."""
        complete = not pair.flows and pair.acked == pair.seq if self.timeout else pair.undelivered == 0
        if complete and pair.copies == 0 and pair.pending == 0:
            del self.live[pair.src, pair.dst, pair.klass]
            self.vacate(pair)

    # ------------------------------------------------------------------ sending

    def speak(self, i, j, channel):
        node = self.nodes[i]
        m = Message(self.slot, channel, i, j, expected=i not in self.nodes[j].failed)
        if i in self.down:
            return m
        if j in node.failed:
            self.failed_slots += 1
            return m
        m.spoken, m.cut = True, (i, j) in self.now.cut
        self.spoken += 1
        m.dropped = j in node.drop
        node.drop.discard(j)
        bit = self.damage(m)
        self.release(i, node, j)
        m.feedback = self.report(i, node, j, channel)
        if m.feedback is not None and bit is not None:
            at = bit - HEADER.offset("feedback")
            if 0 <= at < dict(HEADER.fields)["feedback"]:
                m.feedback[1].ahead ^= 1 << at
        m.cell = self.head(i, node, j)
        return m

    def head(self, i, node, j):
        """The first cell of the highest class that has one."""
        queue = next((queue for queue in node.queue[j] if queue), None)
        if queue is None:
            self.cells["dummy"] += 1
            return None
        cell = queue.popleft()
        node.sent[j] = [(slot, c) for slot, c in node.sent[j] if slot >= self.slot - self.memory] + [(self.slot, cell)]
        if cell.src == i:
            self.cells["local"] += 1
            self.sent_now[i, j] = cell
            if cell.dst == j:
                self.pair(cell).subflow.pop(j, None)
        else:
            self.cells["forwarded"] += 1
        return cell

    @property
    def memory(self):
        """Slots after which an answer to a cell can no longer come."""
        return self.schedule.slots + 2 * self.delay

    def damage(self, m):
        """Decide whether the checksum of what m carries will be wrong; returns the bit that is."""
        draw = (m.slot * self.schedule.channels + m.channel) * len(self.nodes) + m.sender
        seed, threshold, bits = self.luck or (0, 0, 512)
        if {m.sender, m.receiver} & self.now.off:
            m.damaged = "collided"
        elif word(key(seed, 0), draw) < threshold:
            m.damaged = "corrupted"
        return below_one(word(key(seed, 1), draw), bits) if m.damaged else None

    def release(self, i, node, j):
        for klass, queue in enumerate(node.queue[j]):
            self.release_class(i, node, j, klass, queue)
            self.max_queue = max(self.max_queue, len(queue))
        self.max_node = max(self.max_node, node.waiting())

    def release_class(self, i, node, j, klass, queue):
        """As `Rack.release`, with the cells that will leave before ours: those of our class and the classes above."""
        length = sum(map(len, node.queue[j][: klass + 1]))
        local = any(cell.src == i for cell in queue)
        node.ready[j][klass] = 0
        for pair in node.in_turn(node.turn[j][klass]):
            if pair.klass != klass or not self.may_send(pair, j, length) or self.knows(i, j, pair.dst):
                continue
            full = len(queue) >= self.depth[klass]
            if (self.ready_queues and local) or full or not self.old_enough(pair, length):
                node.ready[j][klass] += 1
                continue
            if not pair.again:
                self.released += 1
                if pair.seq == pair.acked:
                    pair.timer, pair.timeouts = self.slot, 0
            queue.append(pair.next_cell(self.sharing))
            pair.subflow[j] = OUT
            local = True
            node.turn[j][klass] = pair.seat + 1
            if not pair.busy:
                node.pairs.remove(pair)
            if not self.ready_queues:
                length += 1
        if not self.ready_queues:
            node.ready[j][klass] = 0

    def knows(self, i, j, dst):
        """Whether i has heard that j cannot reach dst: j says so in its next cell to everyone."""
        declared = self.nodes[j].failed.get(dst)
        if j == dst or declared is None:
            return False
        turn = self.schedule.where(j, i) // self.schedule.channels
        told = declared + 1 + (turn - declared - 1) % self.schedule.slots
        return self.slot > told + self.delay

    def report(self, i, node, j, channel):
        """Eq. (6) summed over the classes that go before ours (App. C)."""
        cell = node.owed[j]
        node.owed[j] = None
        if self.shares_slot(i, j):
            node.told[j], cell = cell, cell or node.told[j]
        if cell is None:
            return None
        above = range(self.class_of(cell) + 1)
        ahead = sum(len(node.queue[cell.dst][c]) + node.ready[cell.dst][c] for c in above)
        return cell, Heard(ahead, self.slot * self.schedule.channels + channel)

    # ------------------------------------------------------------------ receiving

    def receive(self, m):
        i, j, cell = m.sender, m.receiver, m.cell
        node = self.nodes[j]
        if m.cut or j in self.down:
            if cell is not None:
                self.lose(cell, "in_flight")
            return
        if m.feedback is not None:
            self.hear(j, i, *m.feedback)
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

    def store(self, node, i, j, cell):
        """Queue a cell for its second hop, if there is one and there is room."""
        queue = node.queue[cell.dst][self.class_of(cell)]
        if cell.dst in node.failed:
            self.fold(cell, j, hop=3)
            self.lose(cell, "discarded")
            return
        if len(queue) >= self.depth[self.class_of(cell)]:
            self.fold(cell, j, hop=3)
            self.lose(cell, "dropped")
            self.complain(node, i)
            return
        self.fold(cell, j, hop=0)
        if any(self.same_pair(c, cell) for c in queue):
            self.broken["subflow"] += 1
        queue.append(cell)
        if i not in node.failed:
            node.owed[i] = cell
        self.max_queue = max(self.max_queue, len(queue))
        self.max_node = max(self.max_node, node.waiting())

    def same_pair(self, a, b):
        return (a.src, a.dst, self.class_of(a)) == (b.src, b.dst, self.class_of(b))

    def complain(self, node, i):
        """The next cell to i will say that its last one was dropped."""
        if i not in node.failed:
            node.drop.add(i)

    def repeat(self, j, node, i, slot):
        """Send again what i speaks of in the cell it sent in `slot`: our last cell that had arrived by then."""
        if i in node.failed:
            return
        turn, e = self.schedule.where(j, i) // self.schedule.channels, self.schedule.slots
        last = (slot - self.delay - 1 - turn) // e * e + turn
        for sent, cell in node.sent[i]:
            if sent == last and self.lives(cell):
                queue = node.queue[i][self.class_of(cell)]
                queue.appendleft(self.copy(cell))
                self.max_queue = max(self.max_queue, len(queue))
                self.max_node = max(self.max_node, node.waiting())

    def hear(self, i, j, cell, heard):
        pair = self.pair(cell)
        if pair is None or pair.born > cell.born:
            return
        if self.shares_slot(i, j):
            if any(self.same_pair(c, cell) for c in self.nodes[i].queue[j][pair.klass]):
                return  # about an earlier cell than the one that waits here
            left = self.sent_now.get((i, j))
            heard.chased = left is not None and self.same_pair(left, cell)
        pair.subflow[j] = heard

    def deliver(self, cell):
        if isinstance(cell, Ack):
            self.acknowledge(cell)
            return
        pair = self.pair(cell)
        pair.dirty = True
        if cell.seq < pair.expected or cell.seq in pair.held:
            self.duplicates += 1
            self.gone(cell)
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
        self.gone(cell)

    def acknowledge(self, ack):
        pair = ack.about
        self.acks_in += 1
        pair.pending -= 1
        if ack.seq > pair.acked:
            pair.acked, pair.timer, pair.timeouts = ack.seq, self.slot, 0
        self.try_end(pair)
        self.gone(ack)

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
