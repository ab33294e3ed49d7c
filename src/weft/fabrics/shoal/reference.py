"""Shoal again, in plain objects and one cell at a time, for reading beside the paper and for checking the kernel.

`ReferenceRack` is §3.3 of the paper. Every slot, each node works through its channels: it releases local cells into
the queue of the node it faces, says how long the queue is that the last cell from that node went into, and sends the
head of the queue or an empty cell. A cell sent in slot t arrives at the end of slot t + delay.

What the paper leaves open, and what stands here for it, is in `notes.md`. `ReleasedRack` is the authors' simulator.
"""

from collections import deque
from dataclasses import dataclass, field
from math import log2

from weft.engine.calendar import Calendar
from weft.engine.fingerprint import Fingerprint
from weft.schedule.rotation import Rounds


@dataclass
class Cell:
    """A cell of application flow `flow`, the `seq`-th of the pair (src, dst)."""

    flow: int
    src: int
    dst: int
    seq: int
    born: int  # when its pair was: feedback on a pair that has ended must not reach its successor


@dataclass
class Heard:
    """What the source knows of a subflow's far queue: `ahead` cells in it at a moment of j's work."""

    ahead: int
    tick: int  # slot * channels + channel in which j looked
    chased: bool = False  # another cell of the subflow left the source in that very slot


OUT = "outstanding"  # a cell is on its way and nothing has been heard of it


@dataclass
class Pair:
    """All traffic of one node for another: a *flow* of the paper, with one subflow per intermediate node."""

    src: int
    dst: int
    born: int  # slot in which it came to be; it ends when all its cells are delivered
    seat: int = 0  # where it sits among its node's pairs: the round robin goes by seats
    since: int = 0  # slot in which it last had nothing left to release and got something
    flows: deque = field(default_factory=deque)  # [application flow, cells left, cells], in the order of service
    subflow: dict = field(default_factory=dict)  # intermediate -> Heard, OUT, or absent: free to send
    seq: int = 0
    undelivered: int = 0
    expected: int = 0  # receiver: every cell before this one has come
    held: set = field(default_factory=set)  # receiver: cells that came before their turn

    def next_cell(self, sharing):
        """The next cell, of the application flow whose turn it is."""
        if sharing == "shortest":
            entry = min(self.flows, key=lambda entry: (entry[2], entry[0]))
        else:
            entry = self.flows[0]
            self.flows.rotate(-1)
        entry[1] -= 1
        if entry[1] == 0:
            self.flows.remove(entry)
        cell = Cell(entry[0], self.src, self.dst, self.seq, self.born)
        self.seq += 1
        return cell


class Node:
    def __init__(self, nodes):
        self.queue = [deque() for _ in range(nodes)]  # [j]: cells whose next hop is j
        self.ready = [0] * nodes  # [j]: local flows that could have sent through j at its last turn and did not
        self.turn = [0] * nodes  # [j]: the seat at which the round robin for j goes on
        self.pairs = []  # local pairs with cells left to release
        self.seats = []  # [seat]: slot from which it may be taken, None while it is
        self.owed = [None] * nodes  # [j]: the last cell from j, until its feedback is sent
        self.told = [[] for _ in range(nodes)]  # [j]: the cells that were the last from j at the reports before

    def take_seat(self, slot):
        """The first seat that is vacant."""
        for seat, since in enumerate(self.seats):
            if since is not None and since <= slot:
                self.seats[seat] = None
                return seat
        self.seats.append(None)
        return len(self.seats) - 1

    def in_turn(self, seat):
        """Pairs with cells left to release, from `seat` on and around."""
        return sorted(self.pairs, key=lambda pair: (pair.seat < seat, pair.seat))


class ReferenceRack:
    """A rack under `rules` "paper" or "literal"; `flows` are (src, dst, cells, first slot), in order of start.

    feedback: how many values a header carries. The literal rules know only the one of Fig. 5.
    """

    def __init__(self, schedule: Rounds, flows, *, delay=0, rules="paper", ready_queues=True, age_interval=None,
                 sharing="round-robin", feedback=2, calendar=None):  # fmt: skip
        self.schedule, self.delay, self.rules = schedule, delay, rules
        self.feedback = feedback if rules == "paper" else 1
        self.ready_queues, self.sharing = ready_queues, sharing
        self.age_interval = schedule.slots if age_interval is None else age_interval
        n = schedule.nodes
        self.peers = schedule.peers().tolist()
        self.nodes = [Node(n) for _ in range(n)]
        self.flows = [list(flow) for flow in flows]
        self.undelivered = [flow[2] for flow in flows]
        self.finish = [-1] * len(flows)
        self.live: dict[tuple, Pair] = {}  # (src, dst) -> Pair, until its last cell is delivered
        self.calendar = calendar or Calendar.at([flow[3] for flow in flows])
        self.air: deque[tuple] = deque()  # (slot of arrival, channel, sender, receiver, cell or None, its feedback)
        self.slot = 0
        self.fingerprint = Fingerprint()
        self.cells = {"local": 0, "forwarded": 0, "dummy": 0, "delivered": 0}
        self.departed = [0] * n  # [i]: cells that i has sent, empty ones left out
        self.max_queue = self.max_node = self.max_held = 0
        self.broken = {"subflow": 0, "bound": 0}
        self.sent_now: dict[tuple, Cell] = {}  # (i, j) -> cell of i's own that left for j in this slot

    # ------------------------------------------------------------------ a slot

    def step(self):
        """One slot: flows start, everyone sends, and what has travelled long enough arrives."""
        self.start_flows()
        self.sent_now = {}
        for i, node in enumerate(self.nodes):
            for channel, peers in enumerate(self.peers[self.slot % self.schedule.slots]):
                if (j := peers[i]) >= 0:
                    self.send(i, node, j, channel)
        arriving = [m for m in self.air if m[0] == self.slot]
        self.air = deque(m for m in self.air if m[0] != self.slot)
        # A link that is its own mirror is taken first: its sender counts on no stranger's cell coming between.
        for _, _, i, j, cell, feedback in sorted(
            arriving, key=lambda m: (not self.shares_slot(m[2], m[3]), m[1], m[2])
        ):
            self.receive(i, j, cell, feedback)
        self.check()
        self.slot += 1

    def run(self, slots=None):
        """Step until every flow is done, or `slots` times."""
        while self.slot < slots if slots is not None else min(self.finish, default=0) < 0:
            self.step()
        return self

    def start_flows(self):
        while self.calendar and self.calendar.next <= self.slot:
            f = self.calendar.pop()
            src, dst, cells, _ = self.flows[f]
            if (src, dst) not in self.live:
                self.live[src, dst] = Pair(src, dst, self.slot, self.nodes[src].take_seat(self.slot))
            pair = self.live[src, dst]
            if not pair.flows:
                self.nodes[src].pairs.append(pair)
                pair.since = self.slot
            pair.flows.append([f, cells, cells])
            pair.undelivered += cells

    # ------------------------------------------------------------------ sending, §3.3.1 to §3.3.3

    def send(self, i, node, j, channel):
        self.release(i, node, j)
        feedback = self.report(i, node, j, channel)
        cell = node.queue[j].popleft() if node.queue[j] else None
        self.departed[i] += cell is not None
        if cell is None:
            self.cells["dummy"] += 1
        elif cell.src == i:
            self.cells["local"] += 1
            self.sent_now[i, j] = cell
            if cell.dst == j and self.rules == "paper":
                self.live[i, j].subflow.pop(j)  # nothing waits beyond: the direct subflow is free again
        else:
            self.cells["forwarded"] += 1
        self.air.append((self.slot + self.delay, channel, i, j, cell, feedback))

    def release(self, i, node, j):
        """Put local cells into Q_ij: one if it holds none (ready queues), else one of every flow that may (eq. 2)."""
        queue = node.queue[j]
        length = len(queue)
        local = any(cell.src == i for cell in queue)
        node.ready[j] = 0
        for pair in node.in_turn(node.turn[j]):
            if not self.may_send(pair, j, length):
                continue
            if (self.ready_queues and local) or not self.old_enough(pair, length):
                node.ready[j] += 1
                continue
            queue.append(pair.next_cell(self.sharing))
            pair.subflow[j] = OUT
            local = True
            node.turn[j] = pair.seat + 1
            if not pair.flows:
                node.pairs.remove(pair)
            if not self.ready_queues:
                length += 1
        if not self.ready_queues:
            node.ready[j] = 0
        self.max_queue = max(self.max_queue, len(queue))
        self.max_node = max(self.max_node, sum(map(len, node.queue)))

    def may_send(self, pair, j, length):
        """Eq. (2): will the far queue have let our last cell go when a new one arrives behind `length` others?"""
        heard = pair.subflow.get(j)
        if heard is None:
            return True
        if heard == OUT:
            return False
        e = self.schedule.slots
        if self.rules == "literal":
            return length + self.slot // e - heard.tick >= heard.ahead
        arrival = self.slot + length * e + self.delay  # at the end of this slot; the queue sends once an epoch
        if not heard.chased:
            return self.turns(j, pair.dst, heard.tick, arrival) >= heard.ahead
        # Our other cell came at the end of the slot in which j looked, right behind what j saw: j looks last, when
        # its other channels have had their turn, and takes in this link's cell before those of the others.
        return self.turns(j, pair.dst, heard.tick, arrival) >= heard.ahead + 1

    def turns(self, j, k, tick, slot):
        """How often j sends to k after `tick` and no later than in `slot`."""
        c = self.schedule.channels
        period, place = len(self.schedule.shift), self.schedule.where(j, k)
        return ((slot + 1) * c - 1 - place) // period - (tick - place) // period

    def old_enough(self, pair, length):
        """§3.3.3: a flow of age a uses only queues of at most 2^a cells."""
        if self.age_interval == 0:
            return True
        age = (self.slot - pair.since) // self.age_interval
        return age >= log2(self.schedule.nodes) or length <= 2**age

    def report(self, i, node, j, channel):
        """What i says of the last cells from j, the newest first; None for those of which there is nothing to say."""
        return [cell and self.backlog(i, node, cell, channel) for cell in self.last_cells(i, node, j)]

    def last_cells(self, i, node, j):
        """The cells that came from j in its last turns, the newest first; None for an empty one, or one that stayed."""
        cell, node.owed[j] = node.owed[j], None
        recent = [cell, *node.told[j]]
        node.told[j] = recent[: self.feedback - 1]
        if self.feedback == 1 and self.shares_slot(i, j):
            # The answer to a cell comes an epoch late here; it is repeated once, so that two can be under way.
            node.told[j], recent = [cell], [cell or recent[-1]]
        return recent

    def backlog(self, i, node, cell, channel):
        """Eq. (1), (6): how much waits where a cell went."""
        waiting = len(node.queue[cell.dst]) if cell.dst != i else 0
        ready = node.ready[cell.dst] if cell.dst != i else 0
        if self.rules == "literal":
            if self.ready_queues and cell.dst != i:
                waiting = max(0, waiting + ready - 1)
            return cell, waiting
        return cell, Heard(waiting + ready, self.slot * self.schedule.channels + channel)

    def shares_slot(self, i, j):
        """Whether i → j is its own mirror and the exception for it is made: both directions in one place, no delay."""
        return self.rules == "paper" and self.delay == 0 and self.schedule.where(i, j) == self.schedule.where(j, i)

    # ------------------------------------------------------------------ receiving

    def receive(self, i, j, cell, feedback):
        self.hear(j, i, feedback)
        if cell is None:
            return
        if cell.dst == j:
            self.fold(cell, j, hop=2 if cell.src != i else 1)
            self.deliver(cell)
            if self.rules == "literal" and cell.src == i:
                self.nodes[j].owed[i] = cell
            return
        self.fold(cell, j, hop=0)
        node = self.nodes[j]
        if any((c.src, c.dst) == (cell.src, cell.dst) for c in node.queue[cell.dst]):
            self.broken["subflow"] += 1
        node.queue[cell.dst].append(cell)
        node.owed[i] = cell
        self.max_queue = max(self.max_queue, len(node.queue[cell.dst]))
        self.max_node = max(self.max_node, sum(map(len, node.queue)))

    def hear(self, i, j, feedback):
        """Node i takes in what j says of its last cells, older ones first."""
        for turn in reversed(range(len(feedback))):
            if feedback[turn] is not None:
                self.hear_of(i, j, *feedback[turn], again=turn > 0)

    def hear_of(self, i, j, cell, heard, again):
        """The source takes in what j says of `cell`; `again`: it has said so before, when the queue was another."""
        pair = self.live.get((cell.src, cell.dst))
        if pair is None or pair.born > cell.born:
            return
        if self.rules == "literal":
            place, e = self.schedule.where(i, j) // self.schedule.channels, self.schedule.slots
            pair.subflow[j] = Heard(heard, (self.slot + e - place) // e)  # counted from the next turn of i → j
            return
        if self.shares_slot(i, j):
            if any(c.src == i and c.dst == cell.dst for c in self.nodes[i].queue[j]):
                return  # about an earlier cell than the one that waits here
            left = self.sent_now.get((i, j))
            heard.chased = left is not None and left.dst == cell.dst
        elif again and pair.subflow.get(j) == OUT:
            return  # another cell has been released since, and j may not have seen it yet
        pair.subflow[j] = heard

    def deliver(self, cell):
        self.cells["delivered"] += 1
        pair = self.live[cell.src, cell.dst]
        pair.undelivered -= 1
        pair.held.add(cell.seq)
        while pair.expected in pair.held:
            pair.held.remove(pair.expected)
            pair.expected += 1
        self.max_held = max(self.max_held, len(pair.held))
        if pair.undelivered == 0:
            del self.live[cell.src, cell.dst]
            self.vacate(pair)
        self.undelivered[cell.flow] -= 1
        if self.undelivered[cell.flow] == 0:
            self.finish[cell.flow] = self.slot
            self.calendar.ended(cell.flow, self.slot + 1)

    def vacate(self, pair):
        """Its seat may be taken when the last feedback on it has come home."""
        turn = self.schedule.slots + self.delay + 1
        self.nodes[pair.src].seats[pair.seat] = self.slot + (1 + self.feedback) * turn

    def fold(self, cell, j, hop):
        self.fingerprint.add(self.slot, cell.flow << 20 | j << 2 | hop)

    # ------------------------------------------------------------------ laws

    def check(self):
        """Count queues beyond the bound: eq. (5) with ready queues, eq. (3) without."""
        incast, outcast = [0] * len(self.nodes), [0] * len(self.nodes)
        for src, dst in self.live:
            outcast[src] += 1
            incast[dst] += 1
        for i, node in enumerate(self.nodes):
            for j, queue in enumerate(node.queue):
                own = sum(cell.src == i for cell in queue)
                limit = incast[j] + (1 if self.ready_queues else outcast[i])
                self.broken["bound"] += len(queue) > limit or (self.ready_queues and own > 1)


class Port:
    """What a node of the released simulator keeps for one neighbour."""

    def __init__(self):
        self.queue = deque()  # cells whose next hop it is
        self.ready = 0
        self.turn = 0
        self.received = [None, None]  # queues into which its last two cells went, older first
        self.sent = [None, None]  # destinations of our own last two cells to it, older first; None if empty or not ours
        self.soon = [None, None]  # what `sent` becomes in the next slot


class ReleasedRack:
    """The authors' simulator: one channel, no delay. A throttle is counted down once an epoch, as there.

    feedback: of the two values of a header, how many are listened to.
    """

    def __init__(self, nodes, flows, *, age_interval=0, sharing="round-robin", feedback=2, calendar=None):
        n = nodes
        self.n, self.age_interval, self.sharing, self.feedback = n, age_interval, sharing, feedback
        self.port = [[Port() for _ in range(n)] for _ in range(n)]
        self.throttle = {}  # (i, k, j) -> whole number or infinity: of pair (i, k) on i's link to j; absent is 0
        self.active = [[] for _ in range(n)]  # [i]: pairs with cells left to release, in order of activation
        self.pair = {}
        self.flows, self.slot = [list(f) for f in flows], 0
        self.calendar = calendar or Calendar.at([f[3] for f in flows])
        self.undelivered = [f[2] for f in flows]
        self.finish = [-1] * len(flows)
        self.departed = [0] * n
        self.fingerprint = Fingerprint()

    def run(self):
        while min(self.finish, default=0) < 0:
            self.step()
        return self

    def step(self):
        self.start_flows()
        sent = [self.send(i) for i in range(self.n)]
        for i, (j, cell, lengths) in enumerate(sent):
            own_cell_to_i = sent[j][1] if sent[j][0] == i and sent[j][1] and sent[j][1].src == j else None
            self.receive(i, j, cell, lengths, same_slot=sent[j][0] == i, just=own_cell_to_i)
        self.slot += 1

    def start_flows(self):
        while self.calendar and self.calendar.next <= self.slot:
            f = self.calendar.pop()
            src, dst, cells, _ = self.flows[f]
            pair = self.pair.setdefault((src, dst), Pair(src, dst, 0))
            if not pair.flows:
                self.active[src].append(pair)
                pair.since = self.slot
            pair.flows.append([f, cells, cells])

    def send(self, i):
        x = self.slot % (self.n - 1)
        j = (i + x + 1) % self.n
        port = self.port[i][j]
        length = len(port.queue)
        waiting = any(cell.src == i for cell in port.queue)
        pairs = list(self.active[i])
        start = port.turn if port.turn < len(pairs) else 0
        port.ready = 0
        for k in range(len(pairs)):
            at = (start + k) % len(pairs)
            pair = pairs[at]
            if length < self.throttle.get((i, pair.dst, j), 0):
                continue
            age = (self.slot - pair.since) // self.age_interval if self.age_interval else self.n
            if not waiting and (age >= log2(self.n) or length <= 2**age):
                port.queue.append(pair.next_cell(self.sharing))
                self.throttle[i, pair.dst, j] = float("inf")
                waiting = True
                port.turn = (at + 1) % len(pairs)
                if not pair.flows:
                    self.active[i].remove(pair)
            else:
                port.ready += 1
        for k in range(self.n):  # idle pairs too: a pair that comes back starts from what is left
            if self.throttle.get((i, k, j), 0) > 0:
                self.throttle[i, k, j] -= 1  # infinity stays
        past = self.port[i][(i + (self.slot - 1) % (self.n - 1) + 1) % self.n] if self.slot else port
        past.sent = list(past.soon)

        lengths = [self.backlog(i, k) for k in port.received]
        cell = port.queue.popleft() if port.queue else None
        self.departed[i] += cell is not None
        port.soon = [port.sent[1], cell.dst if cell and cell.src == i else None]
        return j, cell, lengths

    def backlog(self, i, k):
        return 0 if k is None or k == i else len(self.port[i][k].queue) + self.port[i][k].ready

    def receive(self, i, j, cell, lengths, same_slot, just):
        """j takes in what i sent: the two lengths, then the cell."""
        port = self.port[j][i]
        newest = (just.dst if just else None) if same_slot else port.sent[1]
        for k, value in list(zip(port.sent, lengths, strict=True))[-self.feedback :]:  # older first: the newer wins
            if k is None or any(c.src == j and c.dst == k for c in port.queue):
                continue
            if k != i and value > 0 and self.served_before(j, i, k, k == newest):
                value -= 1
            self.throttle[j, k, i] = value

        port.received = [port.received[1], None if cell is None else cell.dst]
        if cell is None:
            return
        hop = 0 if cell.dst != j else 1 if cell.src == i else 2
        self.fingerprint.add(self.slot, cell.flow << 20 | j << 2 | hop)
        if cell.dst != j:
            self.port[j][cell.dst].queue.append(cell)
            return
        self.undelivered[cell.flow] -= 1
        if self.undelivered[cell.flow] == 0:
            self.finish[cell.flow] = self.slot
            self.calendar.ended(cell.flow, self.slot + 1)

    def served_before(self, source, middle, dst, just_sent):
        """Whether the middle node serves its queue for dst before the source's next turn."""
        e = self.n - 1
        now, turn, service = self.slot % e, (middle - source - 1) % self.n, (dst - middle - 1) % self.n
        if turn == now:
            return service != turn and not just_sent
        return now < service <= turn or service < turn < now or turn < now < service
