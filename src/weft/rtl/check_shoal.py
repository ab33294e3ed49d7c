"""A rack of gates against the twin and the kernel: every cell on every link in every slot.

The twin says, slot by slot, which header every node sends, feedback and checksum included; the gates' headers must be
those bits, at every NIC and after every switch of the way. What arrives at the NICs is folded into the same fingerprint
as the kernel's. Host software, here as there, gives seats to pairs: `Recorder` notes what the twin's hosts do.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from weft.engine.fingerprint import Fingerprint, show
from weft.errors import BadInput
from weft.fabrics.shoal import arrays, kernel, reference
from weft.rtl.crc import linear, raw
from weft.rtl.lockstep import Difference, Report, around, first_unequal, run_timed
from weft.rtl.shoal_nic import NODE, SEND, SEQ, WORD
from weft.rtl.shoal_rack import Host, Rack, through
from weft.rtl.simulate import Simulation
from weft.wire.shoal import CRC, CRC_AT, HEADER, NOT_APPLICABLE, NOTHING, feedback

NONE, PASSED, OWN, OTHER = range(4)
VALUES = 1  # of feedback in the header of Fig. 5, which is the gates'
NOTE = "feedback is one value a header, as in Fig. 5, on all sides; `weft run shoal` sends two unless told otherwise"


class Recorder(reference.ReferenceRack):
    """The twin, noting what its nodes send, what came to them, and what their hosts asked for."""

    def __init__(self, schedule, flows, **options):
        super().__init__(schedule, flows, **options)
        n = schedule.nodes
        self.headers = []  # [slot]: (sender, destination, source, number, feedback)
        self.arrivals = []  # [slot]: (sender, receiver, destination, source, number), in the order they are taken in
        self.commands = defaultdict(dict)  # slot -> (node, seat) -> [open, destination, cells]
        self.flow_of = defaultdict(list)  # (source, destination, number) -> [(slot of release, flow)]
        self.last = [[NONE] * n for _ in range(n)]  # [i][j]: what i got from j last
        self.seats_used = 0

    def step(self):
        self.headers.append([])
        self.arrivals.append([])
        super().step()

    def start_flows(self):
        coming, known = [f for time, f in self.calendar.due if time <= self.slot], set(self.live)
        super().start_flows()
        for src, dst, cells, _ in (self.flows[f] for f in coming):
            seat = self.live[src, dst].seat
            self.seats_used = max(self.seats_used, seat + 1)
            command = self.commands[self.slot].setdefault((src, seat), [(src, dst) not in known, dst, 0])
            command[2] += cells

    def release(self, i, node, j):
        before = len(node.queue[j])
        super().release(i, node, j)
        for cell in list(node.queue[j])[before:]:
            self.flow_of[cell.src, cell.dst, cell.seq].append((self.slot, cell.flow))

    def send(self, i, node, j, channel):
        super().send(i, node, j, channel)
        _, _, _, _, cell, said = self.air[-1]
        if said[0] is not None:
            code = feedback(said[0][1].ahead)
        else:
            code = {NONE: NOTHING, OWN: 0, OTHER: NOT_APPLICABLE, PASSED: NOTHING}[self.last[i][j]]
        self.last[i][j] = NONE
        dst, src, seq = (i, i, 0) if cell is None else (cell.dst, cell.src, cell.seq)
        self.headers[-1].append((i, dst, src, seq % (1 << SEQ), code))

    def receive(self, i, j, cell, said):
        if cell is None:
            self.last[j][i] = NONE
        elif cell.dst != j:
            self.last[j][i] = PASSED
        else:
            self.last[j][i] = OWN if cell.src == i else OTHER
        if cell is not None:
            self.arrivals[-1].append((i, j, cell.dst, cell.src, cell.seq))
        super().receive(i, j, cell, said)


@dataclass
class Expected:
    """What the twin says: headers by slot and node, and whether there is one."""

    headers: np.ndarray  # (slots, n) uint64
    sends: np.ndarray  # (slots, n) bool
    recorder: Recorder = field(repr=False)


def masks(words: int) -> tuple[list[int], list[int], int]:
    """The checksum as parities: of the header's bits, of the bits that name a cell's payload, and a constant."""
    host, size = Host(words), WORD * (words - 1)

    def crc_of(header, payload):
        data = header.to_bytes(HEADER.size, "little")
        return CRC.compute(data[:CRC_AT] + data[CRC_AT + 1 :] + payload)

    empty, named = bytes(size), host.payload(0)
    base = crc_of(0, empty)
    header = linear(lambda x: crc_of(x, empty) ^ base, 8 * HEADER.size, CRC.width)
    name = linear(lambda x: raw(CRC, 0, host.payload(x)) ^ raw(CRC, 0, named), 2 * NODE + SEQ, CRC.width)
    return header, name, base


def packed(rows: np.ndarray, words: int) -> np.ndarray:
    """(k,) uint64: the headers of cells (destination, source, number, feedback), as `weft.wire` packs them."""
    dst, src, seq, code = (rows[:, k].astype(np.uint64) for k in range(4))
    at = {name: np.uint64(HEADER.offset(name)) for name, _ in HEADER.fields}
    header = dst << at["dst"] | src << at["src"] | seq << at["seq"] | code << at["feedback"]
    by_header, by_name, base = masks(words)
    name = src | dst << np.uint64(NODE) | seq << np.uint64(2 * NODE)
    full = dst != src
    start = raw(CRC, 0, Host(words).payload(0))
    crc = np.where(full, np.uint64(base ^ start), np.uint64(base))
    for k in range(CRC.width):
        bit = np.bitwise_count(header & np.uint64(by_header[k])).astype(np.uint64)
        bit += np.where(full, np.bitwise_count(name & np.uint64(by_name[k])), 0).astype(np.uint64)
        crc ^= (bit & np.uint64(1)) << np.uint64(k)
    return header | crc << np.uint64(8 * CRC_AT)


def expect(rack: Rack, flows, slots: int) -> Expected:
    """Run the twin for `slots` slots."""
    interval = None if rack.age_interval < 0 else rack.age_interval
    recorder = Recorder(rack.rounds, flows, delay=rack.delay, age_interval=interval, feedback=VALUES)
    recorder.run(slots)
    headers, sends = np.zeros((slots, rack.nodes), np.uint64), np.zeros((slots, rack.nodes), bool)
    slot = np.repeat(np.arange(slots), [len(sent) for sent in recorder.headers])
    rows = np.array([one for sent in recorder.headers for one in sent], np.int64).reshape(-1, 5)
    headers[slot, rows[:, 0]] = packed(rows[:, 1:], rack.words)
    sends[slot, rows[:, 0]] = True
    return Expected(headers, sends, recorder)


def check(rack: Rack, flows, slots: int, *, vcd: str | None = None, engine: str | None = None, design=None) -> Report:
    """Run `flows`, (src, dst, cells, first slot) in order of start, for `slots` slots on gates, twin and kernel."""
    report = Report(design="shoal", slots=slots, note=NOTE)
    expected = expect(rack, flows, slots)
    if expected.recorder.seats_used > rack.seats:
        raise BadInput(
            f"seats must be at least {expected.recorder.seats_used}, as many as a node gives away at once here, "
            f"not {rack.seats}"
        )
    made = rack if design is None else design
    stimulus = commands(rack, expected.recorder, slots)
    seen, times = drive(made, stimulus, engine=engine)
    report.build_s, took, report.cycles, report.engine = times
    report.cycles_per_s = report.cycles / max(took, 1e-9)
    report.cells = int(((seen["sent"] & _PAIR) != _same(seen["sent"])).sum())
    model, gates = compared(rack, expected, seen, slots)
    first = first_unequal(
        gates, model, against="reference", cycle_of=lambda t: (t + 1) * rack.slot_cycles + SEND, show=say
    )
    report.differs(first)
    report.compared_with = {"reference": slots, "kernel": slots}
    ours, theirs = fingerprint(rack, expected.recorder, seen, slots), kernel_fingerprint(rack, flows, slots)
    if ours != theirs and first is None:
        report.differs(Difference(report.cycles, slots, "fingerprint of the arrivals", ours, theirs, "kernel"))
    if vcd is not None:
        drive(made, stimulus, engine=engine, vcd=vcd, window=around(report))
        report.vcd = vcd
    return report


_PAIR = np.uint64((1 << NODE) - 1)


def _same(headers):
    """The source of a header, where its destination is read: equal in an empty cell."""
    return headers >> np.uint64(HEADER.offset("src")) & _PAIR


def commands(rack: Rack, recorder: Recorder, slots: int):
    """Rows of commands: row t holds those of slot t, given in the slot before. [(slot, node, lane, word)]."""
    index = max((rack.seats - 1).bit_length(), 1)
    out = []
    for slot, asked in recorder.commands.items():
        lane: dict[int, int] = defaultdict(int)
        for (node, seat), (opens, dst, cells) in sorted(asked.items()):
            k = lane[node]
            lane[node] += 1
            if k >= rack.lanes:
                raise BadInput(
                    f"flows that start at a node in one slot must be for at most {rack.lanes} others, not {k + 1}"
                )
            word = 1 | int(opens) << 1 | seat << 2 | dst << 2 + index | cells << 2 + index + NODE
            if slot < slots:
                out.append((slot, node, k, word))
    return slots, out


def drive(made, stimulus, *, engine=None, vcd=None, window=None):
    """Run the gates. Returns what was seen in each slot, and (build s, run s, cycles, engine)."""
    slots, asked = stimulus
    since = 0 if window is None else window[0]
    with Simulation(made, vcd=vcd, since=since, engine=engine, cycles=slots * made.slot_cycles) as simulation:
        rows = simulation.stimulus(slots + 1)  # the first row is the slot before the first
        for slot, node, lane, word in asked:
            port = simulation.inputs.all[f"commands__{node}__{lane}"]
            for k in range(port.words):
                rows[slot, port.at + k] = word >> 32 * k & 0xFFFFFFFF
        out, times = run_timed(simulation, rows, made.slot_cycles, window)
        if out is None:
            return None, times
        ports, late = simulation.outputs, out[1:]
        seen = {
            name: np.stack([ports.column(late, f"{name}__{i}") for i in range(made.nodes)], axis=1)
            for name in ("sent", "heard", "delivered", "corrupt", "longest")
        }
        valid = ports.column(late, "heard_valid")
        seen["heard_valid"] = (valid[:, None] >> np.arange(made.nodes, dtype=np.uint64) & np.uint64(1)).astype(bool)
        for k, y in np.ndindex(len(made.clos.names), made.ports):
            seen[k, y] = ports.column(late, f"passed__{k}__{y}")
        return seen, times


def compared(rack: Rack, expected: Expected, seen, slots: int):
    """(model, gates): signal -> (slots, ports) of what must be equal, 0 where nothing is sent."""
    dark = np.uint64(0)
    peers = rack.rounds.peers()[:, 0]
    n, d = rack.nodes, rack.delay
    model = {"sent": np.where(expected.sends, expected.headers, dark)}
    gates = {"sent": np.where(expected.sends, seen["sent"], dark)}
    heard = np.zeros((slots, n), np.uint64)
    there = np.zeros((slots, n), bool)
    for t in range(slots - d):
        i = np.flatnonzero(expected.sends[t])
        j = peers[t % rack.rounds.slots, i]
        heard[t + d, j], there[t + d, j] = expected.headers[t, i], True
    before = np.zeros((slots, n), bool)  # cells of the slot before the first, all empty
    if 1 <= d <= slots:
        last = peers[-1]
        before[d - 1, last[last >= 0]] = True
    model["heard"] = np.where(before, seen["heard"], heard)
    gates["heard"] = np.where(seen["heard_valid"], seen["heard"], dark)
    epoch = rack.rounds.slots
    for (k, y), nodes in through(rack).items():
        name = rack.clos.names[k]
        arrives = SEND + rack.offsets_of(name)[y] + 2  # cycles after the start of its slot at which `passed` shows it
        late = max(0, -(-(arrives - rack.slot_cycles) // rack.slot_cycles))
        here = np.zeros(slots, np.uint64)
        now = np.full(slots, dark)
        held = dark
        for t in range(slots):
            if t >= late:
                i = nodes[(t - late) % epoch]
                if i >= 0 and expected.sends[t - late, i]:
                    held = expected.headers[t - late, i]
            here[t] = held
            now[t] = seen[k, y][t] if held else dark
        model[f"{name}.out{y}"], gates[f"{name}.out{y}"] = here[:, None], now[:, None]
    return model, gates


def fingerprint(rack: Rack, recorder: Recorder, seen, slots: int) -> str:
    """The fingerprint of what the gates took in, cell by cell."""
    print_, peers, d = Fingerprint(), rack.rounds.peers()[:, 0], rack.delay
    heard, valid = seen["heard"], seen["heard_valid"]
    for t in range(slots):
        p = (t - d) % rack.rounds.slots
        if t < d:
            continue
        for i in range(rack.nodes):
            j = int(peers[p, i])
            if j < 0 or not valid[t, j]:
                continue
            header = int(heard[t, j])
            dst, src = header & (1 << NODE) - 1, header >> HEADER.offset("src") & (1 << NODE) - 1
            if dst == src:
                continue
            seq = header >> HEADER.offset("seq") & (1 << SEQ) - 1
            flow = next((f for slot, f in reversed(recorder.flow_of.get((src, dst, seq), ())) if slot <= t - d), 0)
            hop = 0 if dst != j else 1 if src == i else 2
            print_.add(t, flow << 20 | j << 2 | hop)
    return str(print_)


def kernel_fingerprint(rack: Rack, flows, slots: int) -> str:
    """The kernel's, after as many slots."""
    columns = [[flow[k] for flow in flows] for k in range(4)]
    interval = rack.rounds.slots if rack.age_interval < 0 else rack.age_interval
    plan = arrays.make_plan(
        rack.rounds, *columns, delay=rack.delay, rules="paper", ready_queues=True, age_interval=interval,
        sharing="round-robin", feedback=VALUES,
    )  # fmt: skip
    state = arrays.make_state(plan)
    while (why := kernel.advance(plan, state, slots, 1 << 40)) not in (kernel.REACHED, kernel.DONE):
        if why != kernel.SPENT:
            state = arrays.grow(state, why)
    return show(state.print)


def say(signal, value) -> str:
    """A header in words."""
    value = int(value)
    if not value:
        return "nothing"
    fields = HEADER.unpack(value.to_bytes(HEADER.size, "little"))
    what = (
        "empty" if fields["dst"] == fields["src"] else f"cell {fields['seq']} from {fields['src']} to {fields['dst']}"
    )
    return f"{what}, feedback {fields['feedback']}, crc {fields['crc']:#04x}"
