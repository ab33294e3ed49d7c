"""Pairs of one class, their cells and copies, and the nodes that keep them."""

from collections import deque
from dataclasses import dataclass, field

from weft.fabrics.shoal.reference import Cell, Node, Pair

CAUSES = ("in_flight", "discarded", "queued", "corrupted", "collided", "dropped")


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


class PlainNode(Node):
    """A node that remembers whom it has lost and what it sent, with a queue per class."""

    def __init__(self, nodes, classes):
        super().__init__(nodes)
        self.queue = [[deque() for _ in range(classes)] for _ in range(nodes)]  # [j][k]
        self.ready = [[0] * classes for _ in range(nodes)]
        self.turn = [[0] * classes for _ in range(nodes)]
        self.failed = {}  # [j]: slot at whose end j was declared failed
        self.sent = [[] for _ in range(nodes)]  # [j]: (slot, cell) of the last turns, empty ones left out
        self.complaints = set()  # j: the next cell to j says that its last one was dropped

    def waiting(self):
        return sum(len(queue) for queues in self.queue for queue in queues)


class Pairs:
    """How pairs come to be, have cells repeated, and end."""

    def start_flows(self):
        ready, self.held = [f for f in self.held if self.flows[f][0] not in self.down], [
            f for f in self.held if self.flows[f][0] in self.down]  # fmt: skip
        while self.calendar and self.calendar.next <= self.slot:
            f = self.calendar.pop()
            (self.held if self.flows[f][0] in self.down else ready).append(f)
        for f in ready:
            src, dst, cells, _ = self.flows[f]
            pair = self.find_pair(src, dst, self.klass[f])
            self.enlist(pair)
            pair.flows.append([f, cells, cells])
            pair.undelivered += cells

    def find_pair(self, src, dst, klass):
        """The pair of these two in this class, made if there is none."""
        if (src, dst, klass) not in self.live:
            seat = self.nodes[src].take_seat(self.slot)
            self.live[src, dst, klass] = Traffic(src, dst, self.slot, seat, klass=klass)
        return self.live[src, dst, klass]

    def enlist(self, pair):
        """Put a pair that gets something to release on its node's list, if it is not there."""
        if not pair.busy:
            self.nodes[pair.src].pairs.append(pair)
            pair.since = self.slot

    def repeat_later(self, cell):
        """Put a cell on its pair's list of those to repeat."""
        pair = self.pair(cell)
        self.enlist(pair)
        pair.again.append(cell)

    def class_of(self, cell):
        return cell.about.klass if isinstance(cell, Ack) else self.klass[cell.flow]

    def pair(self, cell):
        return self.live.get((cell.src, cell.dst, self.class_of(cell)))

    def same_pair(self, a, b):
        return (a.src, a.dst, self.class_of(a)) == (b.src, b.dst, self.class_of(b))

    def lives(self, cell):
        """Whether the pair of a remembered cell is still there; what has arrived in full is not repeated."""
        pair = self.pair(cell)
        if isinstance(cell, Ack) and self.live.get((cell.dst, cell.src, cell.about.klass)) is not cell.about:
            return False
        return pair is not None and pair.born == cell.born

    def copy_of(self, cell):
        """Another copy of a remembered cell."""
        self.repeats += 1
        self.pair(cell).copies += 1
        if isinstance(cell, Ack):
            cell.about.pending += 1
        return cell

    def lose(self, cell, cause):
        """Forget a cell that will not arrive."""
        self.lost[cause] += 1
        if isinstance(cell, Ack):
            cell.about.pending -= 1
            self.try_end(cell.about)
        self.drop_copy(cell)

    def drop_copy(self, cell):
        """A copy of a cell is no more."""
        pair = self.pair(cell)
        pair.copies -= 1
        self.try_end(pair)

    def try_end(self, pair):
        """End a pair whose cells have all arrived, to the knowledge of its source where it asks, if no copy is left."""
        complete = not pair.flows and pair.acked == pair.seq if self.timeout else pair.undelivered == 0
        if complete and pair.copies == 0 and pair.pending == 0:
            del self.live[pair.src, pair.dst, pair.klass]
            self.vacate(pair)
