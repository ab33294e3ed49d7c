"""A crossbar's gates against its kernel and its twin: every grant and every cell in every slot."""

import numpy as np

from weft.errors import require
from weft.fabrics.crossbar import Crossbar, reference
from weft.rtl import gates
from weft.rtl.crossbar import cell_layout
from weft.rtl.lines import LineSwitch
from weft.rtl.lockstep import Report, around, first_unequal, run_timed
from weft.rtl.simulate import Simulation

NOBODY = -1
PATIENT = 40_000  # slots x ports that the twin is run for; the kernel is for all of them


def check(
    fabric: Crossbar,
    traffic,
    *,
    seed: int = 0,
    twin: int | None = None,
    vcd: str | None = None,
    engine=None,
    design=None,
) -> Report:
    """Run `traffic` through the gates, the kernel and the twin; `twin` says for how many slots the last.

    `design` stands in for the gates of `fabric`: for trying out what a wrong design looks like.
    """
    require(not fabric.flow_control, "flow_control", "off when gates are checked: they refuse what does not fit", True)
    drawn = traffic.draw(nodes=fabric.ports, link=fabric.link, seed=seed)
    slots, n = drawn.slots, fabric.ports
    twin = min(slots, max(PATIENT // n, 1) if twin is None else twin)
    valid, outputs = arrivals(drawn)
    made = gates.crossbar(fabric) if design is None else design
    report = Report(design=f"crossbar-{fabric.buffers}", slots=slots)
    seen, times = drive(made, valid, outputs, engine=engine)
    report.build_s, took, report.cycles, report.engine = times
    report.cycles_per_s = report.cycles / max(took, 1e-9)
    report.cells = int((seen["cells_out"] != NOBODY).sum())
    sides = {"kernel": kernel_moves(fabric, drawn, seed)}
    if twin:
        log = reference.run(fabric, shorter(drawn, twin), seed=seed)
        sides["reference"] = np.array(log.moves, np.int64).reshape(-1, 4)
    for side, moves in sides.items():
        rows = slots if side == "kernel" else twin
        report.compared_with[side] = rows
        model = expected(moves, rows, n, made)
        here = {name: column[:rows] for name, column in seen.items() if name in model}
        report.differs(first_unequal(here, model, against=side, cycle_of=made.cycle_of, show=show(n)))
    if vcd is not None:
        drive(made, valid, outputs, engine=engine, vcd=vcd, window=around(report))
        report.vcd = vcd
    return report


def shorter(drawn, slots):
    """The first `slots` slots of the traffic."""
    from dataclasses import replace

    return replace(drawn, slots=slots, warmup=0)


def arrivals(drawn) -> tuple[np.ndarray, np.ndarray]:
    """(slots, n) bool and uint64: whether a cell comes, and the bits of its outputs; a line carries one per slot."""
    valid = np.zeros((drawn.slots, drawn.nodes), bool)
    outputs = np.zeros((drawn.slots, drawn.nodes), np.uint64)
    for slot, came in enumerate(drawn.arrivals()):
        for i, to in came:
            if not valid[slot, i]:
                valid[slot, i] = True
                outputs[slot, i] = sum(1 << j for j in to)
    return valid, outputs


def drive(made, valid, outputs, *, engine=None, vcd=None, window=None):
    """Put the cells through the gates. Returns what left in each slot, and (build s, run s, cycles, engine)."""
    slots, n = valid.shape
    layout = cell_layout(n, made.width)
    born = np.arange(slots, dtype=np.uint64) & np.uint64(mask(made))
    since = 0 if window is None else window[0]
    with Simulation(made, ratio=made.ratio, vcd=vcd, since=since, engine=engine, cycles=slots) as simulation:
        cells = []
        for i in range(n):
            whole = [np.zeros(slots, np.uint32)] * -(-made.width // 32)
            put_field(whole, 0, n, outputs[:, i])
            put_field(whole, layout["data"].offset, min(layout["data"].width, 32), born)
            put_field(whole, layout["source"].offset, layout["source"].width, np.full(slots, i, np.uint64))
            cells.append(np.stack(whole, axis=1))
        presented = (valid << np.arange(n, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        if isinstance(made, LineSwitch):
            out, times = run_timed(simulation, on_lines(simulation, made, presented, cells), 1, window)
            return (None if out is None else off_lines(simulation.outputs, out, made, slots)), times
        rows = simulation.stimulus(slots + made.rows)
        put_cells(simulation.inputs, rows[:slots], presented, "cells_in", cells)
        out, times = run_timed(simulation, rows, made.slot_cycles, window)
        if out is None:
            return None, times
        ports, late = simulation.outputs, out[made.rows : made.rows + slots]
        left = [whole_port(ports, late, f"cells_out__{j}") for j in range(n)]
        return observed(ports, made, left, ports.column(late, "valid_out"), out[1 : slots + 1]), times


def put_cells(ins, rows, presented, name, cells):
    """Put what is presented at each port into the rows."""
    ins.put(rows, "valid_in", presented)
    for i, words in enumerate(cells):
        port = ins.all[f"{name}__{i}"]
        rows[:, port.at : port.at + port.words] = words


def whole_port(ports, rows, name):
    """All words of a port."""
    port = ports.all[name]
    return rows[:, port.at : port.at + port.words]


def on_lines(simulation, made, presented, cells):
    """Rows in which cells come word by word, one per cycle."""
    beats = made.beats
    rows = simulation.stimulus(made.shows(len(presented)) + beats)
    pieces = [cut(words, made.width, beats) for words in cells]
    put_cells(simulation.inputs, rows[: beats * len(presented)], np.repeat(presented, beats), "lines_in", pieces)
    return rows


def off_lines(ports, out, made, slots) -> dict:
    """What `observed` says, of cells put together from their words."""
    beats = made.beats
    first = made.shows(0) + beats * np.arange(slots)
    at = first[:, None] + np.arange(beats)
    left = [joined(whole_port(ports, out, f"lines_out__{j}")[at], made.width) for j in range(made.ports)]
    there = np.bitwise_and.reduce(ports.column(out, "valid_out")[at], axis=1)
    return observed(ports, made, left, there, out[made.cycle_of(0) + beats * np.arange(slots)])


def cut(words: np.ndarray, width: int, pieces: int) -> np.ndarray:
    """(rows, 32-bit words) of `width` bits as (rows * pieces, 32-bit words), lowest bits first."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")[:, :width]
    return packed(bits.reshape(len(words) * pieces, width // pieces))


def joined(words: np.ndarray, width: int) -> np.ndarray:
    """(rows, pieces, 32-bit words) as (rows, 32-bit words) of `width` bits."""
    rows, pieces, _ = words.shape
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=2, bitorder="little")
    return packed(bits[:, :, : width // pieces].reshape(rows, width))


def packed(bits: np.ndarray) -> np.ndarray:
    """Rows of bits as rows of 32-bit words."""
    rows, width = bits.shape
    padded = np.zeros((rows, -(-width // 32) * 32), np.uint8)
    padded[:, :width] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint32)


def mask(made) -> int:
    """What of a slot's number a cell has room for."""
    return (1 << min(cell_layout(made.ports, made.width)["data"].width, 32)) - 1


def put_field(words, offset, width, values):
    """Or `values` into a row of 32-bit words at bit `offset`."""
    values = values.astype(np.uint64)
    for k in range(len(words)):
        low = 32 * k - offset
        if low >= width or low <= -32:
            continue
        part = values >> np.uint64(low) if low >= 0 else values << np.uint64(-low)
        words[k] = words[k] | (part & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def field_of(part, offset, width):
    """The field of so many bits at `offset` of rows of 32-bit words."""
    value = np.zeros(len(part), np.uint64)
    for k in range(part.shape[1]):
        low = 32 * k - offset
        if -32 < low < width:
            word = part[:, k].astype(np.uint64)
            value |= word << np.uint64(low) if low >= 0 else word >> np.uint64(-low)
    return value & np.uint64((1 << width) - 1)


def observed(ports, made, left, valid, decided) -> dict:
    """(slots, n) int64: `cells_out` source << 32 | slot of arrival, or NOBODY; `granted` the bits of each input.

    left: [j] (slots, words) what left; valid: (slots,) bit j whether it did; decided: rows just after the matchings.
    """
    n, layout = made.ports, cell_layout(made.ports, made.width)
    cells = np.full((len(valid), n), NOBODY, np.int64)
    for j, part in enumerate(left):
        source = field_of(part, layout["source"].offset, layout["source"].width)
        born = field_of(part, layout["data"].offset, min(layout["data"].width, 32))
        there = (valid >> np.uint64(j) & np.uint64(1)).astype(bool)
        cells[there, j] = (source << np.uint64(32) | born)[there].astype(np.int64)
    seen = {"cells_out": cells}
    if made.grants:
        seen["granted"] = np.stack([ports.column(decided, f"granted__{i}").astype(np.int64) for i in range(n)], axis=1)
    return seen


def expected(moves, slots, n, made) -> dict:
    """The same arrays, as a model's moves (slot, input, output, slot of arrival) have them."""
    cells = np.full((slots, n), NOBODY, np.int64)
    granted = np.zeros((slots, n), np.int64)
    slot, i, j, born = moves.T
    cells[slot, j] = i << 32 | (born & mask(made))
    np.bitwise_or.at(granted, (slot, i), np.int64(1) << j)
    return {"granted": granted, "cells_out": cells} if made.grants else {"cells_out": cells}


def kernel_moves(fabric, drawn, seed) -> np.ndarray:
    """(moves, 4) int64: slot, input, output, slot of arrival of every cell that leaves, one slot at a time."""
    from weft.fabrics.crossbar import kernel, layout
    from weft.fabrics.crossbar.state import IN, OUT, STAMP, Count

    state = layout.state(fabric, drawn, seed)
    run = kernel.matched if fabric.buffers in ("voq", "shared") else kernel.staged
    moves, before = [], 0
    for slot in range(drawn.slots):
        run(state, slot + 1)
        left = int(state.count[Count.DELIVERED]) - before
        before += left
        if left:
            gone = np.empty((left, 4), np.int64)
            gone[:, 0] = slot
            gone[:, 1:] = state.gone[[IN, OUT, STAMP], :left].T
            moves.append(gone)
    return np.concatenate(moves) if moves else np.zeros((0, 4), np.int64)


def show(n):
    """Values in words."""

    def say(signal, value):
        if signal == "granted":
            outputs = [j for j in range(n) if int(value) >> j & 1]
            return f"outputs {', '.join(map(str, outputs))}" if outputs else "nothing"
        if value == NOBODY:
            return "nothing"
        return f"cell of slot {int(value) & 0xFFFFFFFF} from input {int(value) >> 32}"

    return say
