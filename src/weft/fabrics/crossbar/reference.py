"""The crossbar again, in plain objects, one cell at a time, for reading and for checking the kernels against.

`run` takes the same description, traffic and seed as the kernels and must give the same cells in the same slots. Every
kind of buffer is a class with two methods: `admit` lets a cell in or refuses it, `step` decides and moves.
"""

from collections import deque
from dataclasses import dataclass, field

from weft.engine.calendar import Calendar
from weft.engine.fingerprint import Fingerprint
from weft.schedule.matching import Queue, RoundRobin, scheduler, stable
from weft.workload.traffic import Cells


@dataclass(eq=False)
class Cell:
    """A cell: where it came in, for whom it is, and since when it has been on its way."""

    i: int
    outputs: tuple[int, ...]
    born: int
    flow: int | None = None
    ready: int = 0  # fast cycle, or slot, from which the next stage sees it
    due: int = 0  # slot in which an output-queued switch would send it

    def copy(self, j):
        """The copy for output j."""
        return Cell(self.i, (j,), self.born, self.flow)

    @property
    def j(self):
        return self.outputs[0]


@dataclass
class Log:
    """What was seen."""

    moves: list = field(default_factory=list)  # (slot, i, j, born)
    offered: int = 0
    lost: int = 0
    line_busy: int = 0  # lost before the switch, their line being busy
    longest: int = 0  # cells in one queue
    iterations: list = field(default_factory=list)  # of every matching, how many found something
    overdue: int = 0  # cells sent later than an output-queued switch would have
    out_of_order: int = 0  # cells sent after one that came later from their input for their output
    finish: dict = field(default_factory=dict)  # flow -> slot

    @property
    def fingerprint(self) -> str:
        print_ = Fingerprint()
        for slot, i, j, born in self.moves:
            print_.add(slot << 32 | i << 16 | j, born)
        return str(print_)


class Switch:
    """What all kinds have: their parameters, and queues that remember how long they were."""

    def __init__(self, fabric, seed, log):
        self.fabric, self.seed, self.log = fabric, seed, log
        self.n, self.depth = fabric.ports, fabric.queue_depth
        self.setup()

    def append(self, queue, cell):
        queue.append(cell)
        self.log.longest = max(self.log.longest, len(queue))

    def room_for(self, i, j) -> bool:
        """Does the sender at input i see room for output j?"""
        return True

    def scheduler(self):
        return scheduler(self.fabric.algorithm, self.n, self.fabric.iterations, self.seed)


class Voq(Switch):
    """A queue per input and output."""

    def setup(self):
        self.queues = [[deque() for _ in range(self.n)] for _ in range(self.n)]
        self.matching = self.scheduler()

    def room_for(self, i, j):
        return len(self.queues[i][j]) < self.depth

    def admit(self, cell, slot):
        """Let in a copy for every output; returns how many did not fit."""
        refused = 0
        for j in cell.outputs:
            if self.room_for(cell.i, j):
                self.append(self.queues[cell.i][j], cell.copy(j))
            else:
                refused += 1
        return refused

    def waiting(self, slot):
        return [{j: Queue(len(q), slot - q[0].born) for j, q in enumerate(row) if q} for row in self.queues]

    def match(self, turn, slot):
        """The matching of phase `turn`; schedulers that go by age count in slots."""
        pairs = self.matching.match(self.waiting(slot), turn)
        self.log.iterations.append(self.matching.used)
        return pairs

    def step(self, slot):
        return [self.queues[i][j].popleft() for i, j in self.match(slot, slot)]


class Fifo(Switch):
    """One queue per input, in which a cell that cannot leave holds up all behind it."""

    def setup(self):
        self.queues = [deque() for _ in range(self.n)]
        self.left = [set() for _ in range(self.n)]  # outputs that the first cell has yet to reach
        self.matching = self.scheduler()

    def admit(self, cell, slot):
        if len(self.queues[cell.i]) >= self.depth * self.n:
            return len(cell.outputs)
        self.append(self.queues[cell.i], cell)
        if len(self.queues[cell.i]) == 1:
            self.left[cell.i] = set(cell.outputs)
        return 0

    def step(self, slot):
        waiting = [
            {j: Queue(len(queue), slot - queue[0].born) for j in left}
            for queue, left in zip(self.queues, self.left, strict=True)
        ]
        pairs = self.matching.match(waiting, slot)
        self.log.iterations.append(self.matching.used)
        out = []
        for i, j in pairs:
            out.append(self.queues[i][0].copy(j))
            self.left[i].discard(j)
        for i in {i for i, _ in pairs}:
            if not self.left[i]:
                self.queues[i].popleft()
                if self.queues[i]:
                    self.left[i] = set(self.queues[i][0].outputs)
        return out


class Shared(Switch):
    """One memory per input: an address pool, a queue of addresses per output, and an indicator word per address."""

    def setup(self):
        size = self.depth * self.n
        self.pool = [deque(range(size)) for _ in range(self.n)]
        self.returning = [[] for _ in range(self.n)]
        self.memory = [{} for _ in range(self.n)]  # address -> cell, stored once
        self.indicator = [{} for _ in range(self.n)]  # address -> outputs it has yet to reach
        self.pointers = [[deque() for _ in range(self.n)] for _ in range(self.n)]
        self.matching = self.scheduler()

    def admit(self, cell, slot):
        i = cell.i
        if not self.pool[i]:
            return len(cell.outputs)
        address = self.pool[i].popleft()
        self.memory[i][address] = cell
        self.indicator[i][address] = set(cell.outputs)
        for j in cell.outputs:
            self.append(self.pointers[i][j], address)
        return 0

    def step(self, slot):
        for i in range(self.n):  # the indicator is read before it is written: addresses come back a cycle late
            self.pool[i].extend(self.returning[i])
            self.returning[i] = []
        waiting = [
            {j: Queue(len(q), slot - self.memory[i][q[0]].born) for j, q in enumerate(self.pointers[i]) if q}
            for i in range(self.n)
        ]
        out = []
        pairs = self.matching.match(waiting, slot)
        self.log.iterations.append(self.matching.used)
        for i, j in pairs:
            address = self.pointers[i][j].popleft()
            out.append(self.memory[i][address].copy(j))
            self.indicator[i][address].discard(j)
            if not self.indicator[i][address]:
                del self.indicator[i][address], self.memory[i][address]
                self.returning[i].append(address)
        return out


class Cioq(Voq):
    """Queues at inputs and outputs, and a fabric that makes more than one matching per slot."""

    def setup(self):
        super().setup()
        self.outputs = [deque() for _ in range(self.n)]

    def step(self, slot):
        up, down = self.fabric.phases.numerator, self.fabric.phases.denominator
        for turn in range(slot * up // down, (slot + 1) * up // down):
            for i, j in self.match(turn, slot):
                self.append(self.outputs[j], self.queues[i][j].popleft())
        return [queue.popleft() for queue in self.outputs if queue]


class Emulating(Switch):
    """Queues at inputs and outputs, matched stably so that every cell leaves as if there were only outputs."""

    def setup(self):
        self.lists = [[] for _ in range(self.n)]  # the cells of an input, most important first
        self.outputs = [[] for _ in range(self.n)]
        self.next_due = [0] * self.n

    def room_for(self, i, j):
        return sum(cell.j == j for cell in self.lists[i]) < self.depth

    def admit(self, cell, slot):
        refused = 0
        for j in cell.outputs:
            if not self.room_for(cell.i, j):
                refused += 1
                continue
            copy = cell.copy(j)
            copy.due = max(self.next_due[j], slot)
            self.next_due[j] = copy.due + 1
            cushion = len(self.outputs[j])  # cells at the output that leave before it
            self.lists[cell.i].insert(cushion if self.fabric.algorithm == "ccf" else 0, copy)
            length = sum(other.j == j for other in self.lists[cell.i])
            self.log.longest = max(self.log.longest, length)
        return refused

    def step(self, slot):
        up, down = self.fabric.phases.numerator, self.fabric.phases.denominator
        for _ in range(slot * up // down, (slot + 1) * up // down):
            urgent, place = {}, {}
            for i, cells in enumerate(self.lists):
                for k, cell in enumerate(cells):
                    urgent.setdefault(cell.j, []).append((i, cell))
                    place[i, cell] = k
            for cells in urgent.values():
                cells.sort(key=lambda pair: pair[1].due)
            for j, (i, cell) in stable(urgent, place.__getitem__).items():
                self.lists[i].remove(cell)
                self.outputs[j].append(cell)
        out = []
        for cells in self.outputs:
            if cells:
                cell = min(cells, key=lambda c: c.due)
                cells.remove(cell)
                self.log.overdue += cell.due < slot
                out.append(cell)
        return out


class Oq(Switch):
    """Queues at outputs alone, which all inputs reach at once."""

    def setup(self):
        self.outputs = [deque() for _ in range(self.n)]

    def admit(self, cell, slot):
        refused = 0
        for j in cell.outputs:
            if len(self.outputs[j]) < self.depth * self.n:
                self.append(self.outputs[j], cell.copy(j))
            else:
                refused += 1
        return refused

    def step(self, slot):
        return [queue.popleft() for queue in self.outputs if queue]


class Cicq(Switch):
    """A queue per input and output, and a small buffer at every crosspoint: input and output arbiters take turns."""

    def setup(self):
        n = self.n
        self.queues = [[deque() for _ in range(n)] for _ in range(n)]
        self.crosspoints = [[deque() for _ in range(n)] for _ in range(n)]
        self.inputs = [RoundRobin(n) for _ in range(n)]
        self.outputs = [RoundRobin(n) for _ in range(n)]

    room_for, admit = Voq.room_for, Voq.admit

    def step(self, slot):
        n, size = self.n, self.fabric.crosspoint
        leaving = [self.outputs[j].pick([i for i in range(n) if self.crosspoints[i][j]]) for j in range(n)]
        moving = [
            self.inputs[i].pick([j for j in range(n) if self.queues[i][j] and len(self.crosspoints[i][j]) < size])
            for i in range(n)
        ]
        out = [self.crosspoints[i][j].popleft() for j, i in enumerate(leaving) if i is not None]
        for i, j in enumerate(moving):
            if j is not None:
                self.append(self.crosspoints[i][j], self.queues[i][j].popleft())
        return out


class LoadBalanced(Switch):
    """Two crossbars that turn by themselves, and between them middle ports with a queue per output.

    The first spreads the cells of an input over all middle ports, the second joins each of them to every output in
    turn; nothing is decided.
    """

    def setup(self):
        self.middle = [[deque() for _ in range(self.n)] for _ in range(self.n)]
        self.newest = {}  # (i, j) -> when the youngest cell that left had come

    def admit(self, cell, slot):
        refused = 0
        queues = self.middle[(cell.i + slot) % self.n]
        for j in cell.outputs:
            if len(queues[j]) < self.depth:
                copy = cell.copy(j)
                copy.ready = slot + 1
                self.append(queues[j], copy)
            else:
                refused += 1
        return refused

    def step(self, slot):
        out = []
        for m, queues in enumerate(self.middle):
            queue = queues[(m - slot) % self.n]
            if queue and queue[0].ready <= slot:
                out.append(queue.popleft())
        for cell in out:
            newest = self.newest.get((cell.i, cell.j), cell.born)
            self.log.out_of_order += cell.born < newest
            self.newest[cell.i, cell.j] = max(newest, cell.born)
        return out


class Hierarchical(Switch):
    """Sub-switches (r, c) that join the inputs of row r to the outputs of column c."""

    def setup(self):
        n, group = self.n, self.fabric.group
        self.rows = n // group
        self.queues = [[deque() for _ in range(self.rows)] for _ in range(n)]  # [i][c]
        self.buffers = [[deque() for _ in range(n)] for _ in range(self.rows)]  # [r][j]
        self.inside = [[RoundRobin(group) for _ in range(n)] for _ in range(self.rows)]
        self.outputs = [RoundRobin(self.rows) for _ in range(n)]

    def admit(self, cell, slot):
        refused = 0
        for j in cell.outputs:
            queue = self.queues[cell.i][j // self.fabric.group]
            if len(queue) < self.depth:
                self.append(queue, cell.copy(j))
            else:
                refused += 1
        return refused

    def step(self, slot):
        group = self.fabric.group
        moving = []
        for r in range(self.rows):
            for j in range(self.n):
                if len(self.buffers[r][j]) >= self.fabric.output:
                    continue
                queues = [self.queues[r * group + k][j // group] for k in range(group)]
                k = self.inside[r][j].pick([k for k, queue in enumerate(queues) if queue and queue[0].j == j])
                if k is not None:
                    moving.append((r, j, queues[k]))
        out = self.merge(lambda cell: True)
        for r, j, queue in moving:
            self.append(self.buffers[r][j], queue.popleft())
        return out

    def merge(self, visible):
        """Every output takes a cell from one of the rows, in turn."""
        out = []
        for j, arbiter in enumerate(self.outputs):
            r = arbiter.pick([r for r in range(self.rows) if self.buffers[r][j] and visible(self.buffers[r][j][0])])
            if r is not None:
                out.append(self.buffers[r][j].popleft())
        return out


class Gcq(Hierarchical):
    """Sub-switches that are a memory each, which goes around its ports once per slot, on a faster clock."""

    def setup(self):
        super().setup()
        f = self.fabric
        self.fast = int(f.phases)
        self.latency = f.memory_cycles + (self.rows if f.pipeline is None else f.pipeline)
        self.stored = [[0] * self.rows for _ in range(self.rows)]  # [r][c] addresses in use
        self.pointers = [[deque() for _ in range(self.n)] for _ in range(self.rows)]  # [r][j]

    def admit(self, cell, slot):
        refused, group = 0, self.fabric.group
        for c in sorted({j // group for j in cell.outputs}):
            here = tuple(j for j in cell.outputs if j // group == c)
            if len(self.queues[cell.i][c]) >= self.depth:
                refused += len(here)
                continue
            ready = slot * self.fast + self.fabric.crossings[0]
            self.append(self.queues[cell.i][c], Cell(cell.i, here, cell.born, cell.flow, ready))
        return refused

    def step(self, slot):
        f, group = self.fabric, self.fabric.group
        out = self.merge(lambda cell: cell.ready <= slot * self.fast)
        for g in range(slot * self.fast, (slot + 1) * self.fast):
            port = g % group
            for r in range(self.rows):
                for c in range(self.rows):
                    self.read(g, r, c, c * group + port)
                    queue = self.queues[r * group + port][c]
                    if queue and queue[0].ready <= g and self.stored[r][c] < f.inner * group:
                        self.write(g, r, c, queue.popleft())
        return out

    def read(self, g, r, c, j):
        pointers, buffer = self.pointers[r][j], self.buffers[r][j]
        if pointers and pointers[0][0].ready <= g and len(buffer) < self.fabric.output:
            copy, left = pointers.popleft()
            left.discard(j)
            if not left:
                self.stored[r][c] -= 1
            copy.ready = g + self.fabric.crossings[1]
            self.append(buffer, copy)

    def write(self, g, r, c, cell):
        self.stored[r][c] += 1
        left = set(cell.outputs)  # the indicator, one for all copies
        for j in cell.outputs:
            copy = cell.copy(j)
            copy.ready = g + self.latency
            self.append(self.pointers[r][j], (copy, left))


KINDS = {
    "fifo": Fifo, "voq": Voq, "shared": Shared, "cioq": Cioq, "oq": Oq, "cicq": Cicq, "hierarchical": Hierarchical,
    "gcq": Gcq, "load-balanced": LoadBalanced,
}  # fmt: skip


def build(fabric, seed: int) -> Switch:
    """The switch that `fabric` describes, empty; its log is `log`."""
    kind = Emulating if fabric.algorithm in ("ccf", "lihp") else KINDS[fabric.buffers]
    return kind(fabric, seed, Log())


def run(fabric, traffic, *, seed: int = 0, slots: int | None = None) -> Log:
    """Carry `traffic`, drawn cells or a flow table, through the switch that `fabric` describes."""
    switch = build(fabric, seed)
    if isinstance(traffic, Cells):
        _carry_cells(switch, traffic, bool(fabric.flow_control), switch.log)
    else:
        carry_flows(switch, traffic, slots)
    return switch.log


def _carry_cells(switch, traffic, waits, log):
    senders = [deque() for _ in range(switch.n)]
    for slot, came in enumerate(traffic.arrivals()):
        log.offered += sum(len(arrival.outputs) for arrival in came)
        if waits:
            for i, outputs in came:
                senders[i].append(Cell(i, outputs, slot))
            for sender in senders:
                if sender and switch.admit(sender[0], slot) == 0:
                    sender.popleft()
        else:
            on_line = set()
            for i, outputs in came:
                if i in on_line:
                    log.line_busy += 1  # a line carries one cell per slot
                else:
                    on_line.add(i)
                    log.lost += switch.admit(Cell(i, outputs, slot), slot)
        log.moves += [(slot, cell.i, cell.j, cell.born) for cell in switch.step(slot)]


def carry_flows(switch, flows, slots):
    """Let a switch carry flows, for so many slots or until all are done."""
    fabric, log = switch.fabric, switch.log
    waits = fabric.flow_control is None or fabric.flow_control
    left = [-(-int(size) // fabric.payload) for size in flows.size]
    due = list(left)
    calendar = Calendar(flows, fabric.slot, fabric.way)
    rings = [deque() for _ in range(switch.n)]
    inside, slot = 0, 0
    while slots is None or slot < slots:
        if not inside and not any(rings):
            if not calendar:
                break
            slot = max(slot, calendar.next)  # nothing can happen before
            if slots is not None and slot >= slots:
                break
        while calendar and calendar.next <= slot:
            f = calendar.pop()
            rings[flows.src[f]].append(f)
        for i, ring in enumerate(rings):
            free = [f for f in ring if not waits or switch.room_for(i, int(flows.dst[f]))]
            if not free:
                continue
            f = free[0]
            refused = switch.admit(Cell(i, (int(flows.dst[f]),), slot, f), slot)
            if refused and waits:
                continue
            log.offered += 1
            log.lost += refused
            inside += 1 - refused
            ring.rotate(-ring.index(f) - 1)
            left[f] -= 1
            if not left[f]:
                ring.pop()
        for cell in switch.step(slot):
            log.moves.append((slot, cell.i, cell.j, cell.born))
            inside -= 1
            due[cell.flow] -= 1
            if not due[cell.flow]:
                log.finish[cell.flow] = slot
                calendar.ended(cell.flow, slot + 1)
        slot += 1
