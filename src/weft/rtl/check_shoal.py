"""A rack of gates against the twin and the kernel: every cell on every link in every slot.

The twin says, slot by slot, which header every node sends, feedback and checksum included; the gates' headers must be
those bits, at every NIC and after every switch of the way. What arrives at the NICs is folded into the same fingerprint
as the kernel's. Host software, here as there, gives seats to pairs: `record_shoal` notes what the twin's hosts do.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from weft.engine.fingerprint import Fingerprint, show
from weft.errors import BadInput
from weft.fabrics.shoal import arrays, kernel
from weft.fabrics.shoal import columns as col
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.fabrics.shoal.plain import kernel as plain_kernel
from weft.rtl.crc import linear, raw
from weft.rtl.fail_shoal import Broken
from weft.rtl.lockstep import Difference, Report, around, first_unequal, run_timed
from weft.rtl.record_shoal import FailingRecorder, Notes, Recorder
from weft.rtl.shoal_header import WORD
from weft.rtl.shoal_nic import SEND
from weft.rtl.shoal_rack import Host, Rack, through
from weft.rtl.shoal_seat import NODE, SEQ
from weft.rtl.simulate import Simulation
from weft.wire.format import Format
from weft.wire.shoal import CRC, HEADER

NOTE = "feedback is one value a header, as in Fig. 5, on all sides; `weft run shoal` sends two unless told otherwise"
BITS = np.dtype([("low", np.uint64), ("high", np.uint64)])  # a header
DARK = np.zeros((), BITS)


@dataclass
class Expected:
    """What the twin says: headers by slot, node and channel, and whether there is one."""

    headers: np.ndarray  # (slots, n, c) BITS
    sends: np.ndarray  # (slots, n, c) bool
    recorder: Notes = field(repr=False)


def split(values) -> np.ndarray:
    """Whole numbers of up to 128 bits as BITS."""
    out = np.zeros(len(values), BITS)
    out["low"] = [value & (1 << 64) - 1 for value in values]
    out["high"] = [value >> 64 for value in values]
    return out


@cache
def masks(words: int, layout: Format = HEADER) -> tuple[list[int], list[int], int]:
    """The checksum as parities: of the header's bits, of the bits that name a cell's payload, and a constant."""
    host, at = Host(words, layout.size - WORD), layout.size - 1
    empty, named = bytes(len(host.payload(0))), host.payload(0)

    def crc_of(header, payload):
        return CRC.compute(header.to_bytes(layout.size, "little")[:at] + payload)

    base = crc_of(0, empty)
    header = linear(lambda x: crc_of(x, empty) ^ base, 8 * layout.size, CRC.width)
    name = linear(lambda x: raw(CRC, 0, host.payload(x)) ^ raw(CRC, 0, named), 2 * NODE + SEQ, CRC.width)
    return header, name, base


def packed(rows: np.ndarray, words: int, layout: Format = HEADER) -> np.ndarray:
    """(k,) BITS: the headers of cells (destination, source, number, feedback …, failed), as `weft.wire` packs them."""
    names = [name for name, _ in layout.fields if name in ("dst", "src", "seq", "feedback", "older", "failed")]
    columns = {name: rows[:, k].astype(np.uint64) for k, name in enumerate(names)}
    header = np.zeros(len(rows), BITS)
    for name, values in columns.items():
        at, width = layout.offset(name), dict(layout.fields)[name]
        if at < 64:
            header["low"] |= values << np.uint64(at)
        if at + width > 64:
            header["high"] |= values << np.uint64(at - 64) if at >= 64 else values >> np.uint64(64 - at)
    by_header, by_name, base = masks(words, layout)
    dst, src, seq = (columns[name] for name in ("dst", "src", "seq"))
    name = src | dst << np.uint64(NODE) | seq << np.uint64(2 * NODE)
    full = dst != src
    start = raw(CRC, 0, Host(words, layout.size - WORD).payload(0))
    crc = np.where(full, np.uint64(base ^ start), np.uint64(base))
    for k in range(CRC.width):
        low, high = by_header[k] & (1 << 64) - 1, by_header[k] >> 64
        bit = np.bitwise_count(header["low"] & np.uint64(low)) + np.bitwise_count(header["high"] & np.uint64(high))
        bit = bit.astype(np.uint64) + np.where(full, np.bitwise_count(name & np.uint64(by_name[k])), 0).astype(
            np.uint64
        )
        crc ^= (bit & np.uint64(1)) << np.uint64(k)
    at = layout.offset("crc")
    header["low" if at < 64 else "high"] |= crc << np.uint64(at % 64)
    return header


def expect(rack: Rack, flows, slots: int, broken: Broken | None = None) -> Expected:
    """Run the twin for `slots` slots."""
    interval = None if rack.age_interval < 0 else rack.age_interval
    options = dict(delay=rack.delay, age_interval=interval, feedback=rack.values)
    recorder: Any
    if broken is None:
        recorder = Recorder(rack.rounds, flows, **options)
    else:
        recorder = FailingRecorder(rack.rounds, flows, changes=broken.changes, **options)
    recorder.run(slots)
    shape = slots, rack.nodes, rack.channels
    headers, sends = np.zeros(shape, BITS), np.zeros(shape, bool)
    slot = np.repeat(np.arange(slots), [len(sent) for sent in recorder.headers])
    rows = np.array([one for sent in recorder.headers for one in sent], np.int64).reshape(-1, 6 + rack.values)
    at = slot, rows[:, 0], rows[:, 1]
    headers[at] = packed(rows[:, 2:], rack.words, rack.layout)
    sends[at] = True
    return Expected(headers, sends, recorder)


def check(
    rack: Rack, flows, slots: int, *, vcd: str | None = None, engine: str | None = None, design=None,
    broken: Broken | None = None,
) -> Report:  # fmt: skip
    """Run `flows`, (src, dst, cells, first slot) in order of start, for `slots` slots on gates, twin and kernel."""
    report = Report(design="shoal", slots=slots, note=NOTE if rack.values == 1 else None)
    expected = expect(rack, flows, slots, broken)
    if expected.recorder.seats_used > rack.seats:
        raise BadInput(
            f"seats must be at least {expected.recorder.seats_used}, as many as a node gives away at once here, "
            f"not {rack.seats}"
        )
    made = rack if design is None else design
    stimulus = commands(rack, expected.recorder, slots, broken)
    seen, times = drive(made, stimulus, engine=engine)
    report.build_s, took, report.cycles, report.engine = times
    report.cycles_per_s = report.cycles / max(took, 1e-9)
    low = seen["sent"]["low"]
    report.cells = int((expected.sends & ((low & _PAIR) != _source(low))).sum())
    model, gates = compared(rack, expected, seen, slots, broken)
    first = first_unequal(
        gates, model, against="reference", cycle_of=lambda t: (t + 1) * rack.slot_cycles + SEND,
        show=lambda signal, value: say(rack.layout, value),
    )  # fmt: skip
    report.differs(first)
    report.compared_with = {"reference": slots, "kernel": slots}
    ours = fingerprint(rack, expected.recorder, seen, slots)
    theirs = kernel_fingerprint(rack, flows, slots, broken)
    if ours != theirs and first is None:
        report.differs(Difference(report.cycles, slots, "fingerprint of the arrivals", ours, theirs, "kernel"))
    if vcd is not None:
        drive(made, stimulus, engine=engine, vcd=vcd, window=around(report))
        report.vcd = vcd
    return report


_PAIR = np.uint64((1 << NODE) - 1)


def _source(low):
    """The source of headers, where their destination is read: equal in an empty cell."""
    return low >> np.uint64(HEADER.offset("src")) & _PAIR


def commands(rack: Rack, recorder: Notes, slots: int, broken: Broken | None = None):
    """Rows of what is asked of the gates: row t + 1 is given in slot t. (slots, [(row, port, value)])."""
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
            out.append((slot, f"commands__{node}__{k}", word))  # of a slot in the one before
    if broken is not None:
        for slot, ended in recorder.ends.items():
            out += [(slot + 1, f"ends__{node}__{seat}", turn) for node, seat, turn in ended]
        out += broken.inputs(slots)
    return slots, [one for one in out if one[0] <= slots]


def drive(made, stimulus, *, engine=None, vcd=None, window=None):
    """Run the gates. Returns what was seen in each slot, and (build s, run s, cycles, engine)."""
    slots, asked = stimulus
    since = 0 if window is None else window[0]
    with Simulation(made, vcd=vcd, since=since, engine=engine, cycles=slots * made.slot_cycles) as simulation:
        rows = simulation.stimulus(slots + 1)  # the first row is the slot before the first
        for row, name, value in asked:
            port = simulation.inputs.all[name]
            for k in range(port.words):
                rows[row, port.at + k] |= value >> 32 * k & 0xFFFFFFFF
        out, times = run_timed(simulation, rows, made.slot_cycles, window)
        if out is None:
            return None, times
        ports, late = simulation.outputs, out[1:]

        def header(name):
            return as_bits(ports.column(late, name))

        n, c = made.nodes, made.channels
        seen = {
            name: np.stack(
                [np.stack([header(f"{name}__{i}__{k}") for k in range(c)], axis=1) for i in range(n)], axis=1
            )
            for name in ("sent", "heard")
        }
        of_node = ("delivered", "corrupt", "longest", "heard_valid")
        of_node += ("refused", "failed", "discarded") if made.failures else ()
        for name in of_node:
            seen[name] = np.stack([ports.column(late, f"{name}__{i}") for i in range(n)], axis=1)
        for name in ("heard_valid", "refused"):
            if name in seen:
                seen[name] = (seen[name][:, :, None] >> np.arange(c, dtype=np.uint64) & np.uint64(1)).astype(bool)
        for k, y in np.ndindex(len(made.clos.names), made.ports):
            seen[k, y] = header(f"passed__{k}__{y}")
        return seen, times


def as_bits(column: np.ndarray) -> np.ndarray:
    """A column of up to 128 bits as BITS."""
    out = np.zeros(len(column), BITS)
    if column.ndim == 1:
        out["low"] = column
        return out
    words = column.astype(np.uint64)
    out["low"] = words[:, 0] | words[:, 1] << np.uint64(32)
    out["high"] = words[:, 2] | (words[:, 3] << np.uint64(32) if words.shape[1] > 3 else 0)
    return out


def compared(rack: Rack, expected: Expected, seen, slots: int, broken: Broken | None = None):
    """(model, gates): signal -> (slots, ports) of what must be equal, 0 where nothing is sent."""
    peers = rack.rounds.peers()
    n, c, d = rack.nodes, rack.channels, rack.delay
    lost, dead = (np.zeros((slots, n, c), bool), np.zeros((slots, n), bool)) if broken is None else broken.lost(slots)

    def flat(values):
        return values.reshape(slots, -1)

    model = {"sent": flat(np.where(expected.sends, expected.headers, DARK))}
    gates = {"sent": flat(np.where(expected.sends, seen["sent"], DARK))}
    heard, late = np.zeros((slots, n, c), BITS), max(slots - d, 0)
    for k in range(c):
        for t in range(late):
            i = np.flatnonzero(expected.sends[t, :, k] & ~lost[t, :, k])
            heard[t + d, peers[t % rack.rounds.slots, k, i], k] = expected.headers[t, i, k]
    heard[dead] = DARK
    before = np.zeros((slots, n, c), bool)  # cells of the slot before the first, all empty
    if 1 <= d <= slots:
        for k in range(c):
            last = peers[-1, k]
            before[d - 1, last[last >= 0], k] = True
    model["heard"] = flat(np.where(before, seen["heard"], heard))
    gates["heard"] = flat(np.where(seen["heard_valid"] | before, seen["heard"], DARK))
    epoch = rack.rounds.slots
    stopped = {} if broken is None else broken.stopped(slots)
    for (k, y), nodes in through(rack).items():
        name = rack.clos.names[k]
        plane = rack.clos.locate(name)[0]
        # cycles after the start of its slot at which `passed` shows it, and all of it
        arrives = SEND * (plane + 1) + rack.offsets_of(name)[y] + 2 + (rack.layout.size > WORD)
        late = max(0, -(-(arrives - rack.slot_cycles) // rack.slot_cycles))
        node = np.array([nodes[(t - late) % epoch] if t >= late else -1 for t in range(slots)])
        at = np.maximum(np.arange(slots) - late, 0)
        there = (node >= 0) & expected.sends[at, node, plane] & ~stopped.get((k, y), np.zeros(slots, bool))[at]
        # what went through last, until the next does
        last = np.maximum.accumulate(np.where(there, np.arange(slots), -1))
        here = np.where(last >= 0, expected.headers[at[last], node[last], plane], DARK)
        model[f"{name}.out{y}"] = here[:, None]
        gates[f"{name}.out{y}"] = np.where(last >= 0, seen[k, y], DARK)[:, None]
    return model, gates


def fingerprint(rack: Rack, recorder: Notes, seen, slots: int) -> str:
    """The fingerprint of what the gates took in, cell by cell."""
    print_, peers, d = Fingerprint(), rack.rounds.peers(), rack.delay
    heard, valid = seen["heard"]["low"], seen["heard_valid"].copy()
    refused = seen.get("refused", np.zeros_like(valid))
    valid[:d] = False  # cells of the slot before the first, all empty
    full = valid & ((heard & _PAIR) != _source(heard))
    senders = np.full(peers.shape, -1)  # (slots of an epoch, channels, receivers)
    for t, k, i in np.argwhere(peers >= 0):
        senders[t, k, peers[t, k, i]] = i
    for t, j, k in np.argwhere(full).tolist():
        header = int(heard[t, j, k])
        dst, src = header & (1 << NODE) - 1, header >> HEADER.offset("src") & (1 << NODE) - 1
        seq = header >> HEADER.offset("seq") & (1 << SEQ) - 1
        flow = next((f for slot, f in reversed(recorder.flow_of.get((src, dst, seq), ())) if slot <= t - d), 0)
        own = src == senders[(t - d) % rack.rounds.slots, k, j]
        hop = 3 if refused[t, j, k] else 0 if dst != j else 1 if own else 2
        print_.add(t, flow << 20 | j << 2 | hop)
    return str(print_)


def kernel_fingerprint(rack: Rack, flows, slots: int, broken: Broken | None = None) -> str:
    """The kernel's, after as many slots."""
    columns = [[flow[k] for flow in flows] for k in range(4)]
    interval = rack.rounds.slots if rack.age_interval < 0 else rack.age_interval
    options = dict(delay=rack.delay, ready_queues=True, age_interval=interval, sharing="round-robin",
                   feedback=rack.values)  # fmt: skip
    layout: Any = arrays if broken is None else plain_arrays
    code: Any = kernel if broken is None else plain_kernel
    if broken is None:
        plan = layout.make_plan(rack.rounds, *columns, rules="paper", **options)
    else:
        plan = layout.make_plan(rack.rounds, *columns, faults=layout.merge(rack.rounds, broken.cuts), **options)
    state = layout.make_state(plan)
    while (why := code.advance(plan, state, slots, 1 << 40)) not in (col.REACHED, col.DONE, col.STUCK):
        if why != col.SPENT:
            state = layout.grow(state, why)
    return show(state.print)


def say(layout: Format, value) -> str:
    """A header in words."""
    number = int(value["low"]) | int(value["high"]) << 64
    if not number:
        return "nothing"
    fields = layout.unpack(number.to_bytes(layout.size, "little"))
    what = (
        "empty" if fields["dst"] == fields["src"] else f"cell {fields['seq']} from {fields['src']} to {fields['dst']}"
    )
    told = " and ".join(str(fields[name]) for name in ("feedback", "older") if name in fields)
    news = f", failed {fields['failed']:#b}" if fields.get("failed") else ""
    return f"{what}, feedback {told}{news}, crc {fields['crc']:#04x}"
