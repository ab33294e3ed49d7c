"""The twin of a rack, noting what its nodes send, what comes to them, and what their hosts ask of the NICs.

`Recorder` is the twin of a rack in which all is well, `FailingRecorder` the one of a rack whose parts fail.
"""

from collections import defaultdict

from weft.fabrics.shoal.plain.reference import PlainRack
from weft.fabrics.shoal.reference import ReferenceRack
from weft.rtl.shoal_nic import NONE, OTHER, OWN, PASSED
from weft.rtl.shoal_seat import SEQ
from weft.wire.shoal import NOT_APPLICABLE, NOTHING, feedback

CODES = {NONE: NOTHING, OWN: 0, OTHER: NOT_APPLICABLE, PASSED: NOTHING}


class Notes:
    """What both note, beside a twin."""

    klass_of_all: tuple = ()  # what pairs are known by beside their ends

    def begin_notes(self):
        n = self.schedule.nodes
        self.headers = []  # [slot]: (sender, channel, destination, source, number, feedback …, failed)
        self.arrivals = []  # [slot]: (sender, receiver, destination, source, number), in the order they are taken in
        self.commands = defaultdict(dict)  # slot -> (node, seat) -> [open, destination, cells]
        self.ends = defaultdict(list)  # slot -> (node, seat, turn from which on its pair is over)
        self.flow_of = defaultdict(list)  # (source, destination, number) -> [(slot of release, flow)]
        # [i][j]: what i got from j, newest first
        self.last = [[[NONE] * self.feedback for _ in range(n)] for _ in range(n)]
        self.seats_used = 0

    def note_slot(self):
        self.headers.append([])
        self.arrivals.append([])

    def note_flows(self, coming, known):
        """Flows have started; `known` are the pairs there were before."""
        for src, dst, cells, _ in (self.flows[f] for f in coming):
            key = (src, dst, *self.klass_of_all)
            pair = self.live[key]
            self.seats_used = max(self.seats_used, pair.seat + 1)
            command = self.commands[self.slot].setdefault((src, pair.seat), [key not in known, dst, 0])
            command[2] += cells

    def note_released(self, cells):
        for cell in cells:
            self.flow_of[cell.src, cell.dst, cell.seq].append((self.slot, cell.flow))

    def note_sent(self, i, j, channel, cell, said, failed=0):
        kinds = self.last[i][j]
        said = [*said, *[None] * (len(kinds) - len(said))]  # before anything has come there is less to say
        codes = [CODES[kind] if one is None else feedback(one[1].ahead) for one, kind in zip(said, kinds, strict=True)]
        self.last[i][j] = [NONE, *kinds[:-1]]
        dst, src, seq = (i, i, 0) if cell is None else (cell.dst, cell.src, cell.seq)
        self.headers[-1].append((i, channel, dst, src, seq % (1 << SEQ), *codes, failed))

    def note_arrival(self, i, j, cell, discarded=False):
        kind = NONE
        if cell is not None:
            self.arrivals[-1].append((i, j, cell.dst, cell.src, cell.seq))
            kind = (OWN if cell.src == i else OTHER) if cell.dst == j else NONE if discarded else PASSED
        self.last[j][i][0] = kind

    def coming(self):
        """Flows whose time has come."""
        return [f for time, f in self.calendar.due if time <= self.slot]


class Recorder(Notes, ReferenceRack):
    """The twin of a rack in which all is well."""

    def __init__(self, schedule, flows, **options):
        super().__init__(schedule, flows, **options)
        self.begin_notes()

    def step(self):
        self.note_slot()
        super().step()

    def start_flows(self):
        coming, known = self.coming(), set(self.live)
        super().start_flows()
        self.note_flows(coming, known)

    def release(self, i, node, j):
        before = len(node.queue[j])
        super().release(i, node, j)
        self.note_released(list(node.queue[j])[before:])

    def send(self, i, node, j, channel):
        super().send(i, node, j, channel)
        _, _, _, _, cell, said = self.air[-1]
        self.note_sent(i, j, channel, cell, said)

    def receive(self, i, j, cell, said):
        self.note_arrival(i, j, cell)
        super().receive(i, j, cell, said)


class FailingRecorder(Notes, PlainRack):
    """The twin of a rack whose parts fail.

    It knows when a pair is over, which a NIC does not; `ends` says so, to the turn of a slot.
    """

    klass_of_all = (0,)

    def __init__(self, schedule, flows, **options):
        super().__init__(schedule, flows, **options)
        self.begin_notes()
        self.mirror = schedule.mirror().tolist()
        self.turn = None  # (turn of this slot, the sender that is listened for or None)

    def step(self):
        self.note_slot()
        self.turn = None
        super().step()

    def start_flows(self):
        coming = [f for f in [*self.held, *self.coming()] if self.flows[f][0] not in self.down]
        known = set(self.live)
        super().start_flows()
        self.note_flows(coming, known)

    def release(self, i, node, j):
        (queue,) = node.queue[j]
        before = len(queue)
        super().release(i, node, j)
        self.note_released(list(queue)[before:])

    def speak(self, i, j, channel):
        m = super().speak(i, j, channel)
        if m.spoken:
            self.note_sent(i, j, channel, m.cell, m.feedback, sum(1 << k for k in self.nodes[i].failed))
        return m

    def order(self):
        """The channels of the slot whose cells arrive, as they are taken in: a link that is its own mirror first."""
        c, slot = self.schedule.channels, (self.slot - self.delay) % self.schedule.slots
        own = [k for k in range(c) if self.delay == 0 and self.mirror[slot * c + k] == slot * c + k]
        return [*own, *(k for k in range(c) if k not in own)]

    def listen(self, m):
        self.turn = self.order().index(m.channel), m.sender
        super().listen(m)

    def receive(self, m):
        self.turn = self.order().index(m.channel), None
        if not m.cut and m.receiver not in self.down:
            gone = m.cell is not None and m.cell.dst != m.receiver and m.cell.dst in self.nodes[m.receiver].failed
            self.note_arrival(m.sender, m.receiver, m.cell, discarded=gone)
        super().receive(m)

    def vacate(self, pair):
        super().vacate(pair)
        slot, first = self.slot, 1
        if self.turn is not None:
            turn, listened = self.turn
            peers = self.peers[(self.slot - self.delay) % self.schedule.slots][self.order()[turn]]
            faced = peers.index(pair.src) if pair.src in peers else -1  # whom its source listens for in this turn
            first = turn + (1 if listened is not None and faced > listened else 2)
        if first > self.schedule.channels:
            slot, first = slot + 1, 1
        self.ends[slot].append((pair.src, pair.seat, first))
