"""A groomer's gates against its model: every byte on the trunk and on every port, in the cycle in which it has come.

Times are the model's, bytes those of the plain codecs in `weft.wire`. A tick of the model is a cycle of the gates. If
the wait or the trunk is too small and a frame runs out of bytes, both sides must say so in the same cycle, and what
comes later is not compared: a model of times has nothing to say about a frame cut off.
"""

from dataclasses import dataclass

import numpy as np

from weft.errors import require
from weft.fabrics.merchant.groomer import Frames, Groomer, groom
from weft.rtl import gates
from weft.rtl.lockstep import Difference, Report, around, run_timed
from weft.rtl.segmenter import DELIMITER, PREAMBLE
from weft.rtl.simulate import Simulation
from weft.wire import eep, eep_reference, ethernet

START = bytes([PREAMBLE] * (ethernet.PREAMBLE - 1) + [DELIMITER])
STRETCH = 1 << 16  # cycles driven at a time
AFTER = 200  # cycles that the gates run on when all has come out


@dataclass
class Expected:
    """What the model says: per signal, cycle << 8 | byte of all that comes, and when a frame first runs out."""

    streams: dict[str, np.ndarray]
    units: np.ndarray  # when each segment or frame begins on the trunk
    underrun: tuple[int, int] | None  # cycle and port
    ingress: int
    egress: int


def check(
    fabric: Groomer, frames: Frames, *, buffer: int, seed: int = 0, vcd: str | None = None, engine=None, design=None
) -> Report:
    """Send `frames` through model and gates; `design` stands in for the gates, to see what a wrong one looks like."""
    arrivals = frames.draw(fabric, seed)
    data = contents(arrivals, seed)
    made = gates.groomer(fabric, buffer, looped=True) if design is None else design
    model = expect(fabric, arrivals, data, made.late)
    most = max(model.ingress, model.egress)
    require(most <= buffer, "buffer", f"at least the {most} bytes that wait at a port of the model", buffer)
    unit = "EEP frame" if fabric.protocol == "eep" else "frame"
    report = Report(design=f"eep-{fabric.protocol}", slots=len(model.units), units=(unit, "byte"))
    last = max(int(stream[-1] >> 8) for stream in model.streams.values())
    seen, times = drive(made, arrivals, data, last + AFTER, engine=engine)
    report.build_s, took, report.cycles, report.engine = times
    report.cycles_per_s = report.cycles / max(took, 1e-9)
    report.cells = sum(map(len, model.streams.values()))
    report.compared_with["model"] = report.slots
    compare(report, seen, model)
    if vcd is not None:
        drive(made, arrivals, data, last + AFTER, engine=engine, vcd=vcd, window=around(report))
        report.vcd = vcd
    return report


def contents(arrivals, seed) -> list[list[bytes]]:
    """[port][frame]: bytes at random and their check sequence."""
    rng = np.random.Generator(np.random.PCG64(seed))
    return [[whole(rng.bytes(size - ethernet.FCS)) for size in sizes] for _, sizes in arrivals]


def whole(body: bytes) -> bytes:
    """A frame: a body and its check sequence."""
    return body + ethernet.fcs(body)


def expect(fabric: Groomer, arrivals, data, late: int) -> Expected:
    """What must be seen, the ports `late` cycles behind the model."""
    sent: list[tuple[int, int, int, int, int]] = []
    out = groom(fabric, arrivals, sent)
    tagged = fabric.protocol != "eep"
    wire = [
        [[START + ethernet.tag(frame, p + 1)] if tagged else eep_reference.encode(frame, p) for frame in frames]
        for p, frames in enumerate(data)
    ]  # fmt: skip
    pieces, firsts = [], []
    for begin, _, p, k, segment in sent:
        pieces.append(wire[p][k][segment])
        firsts.append(begin)
    streams = {"trunk": stream(firsts, pieces, fabric.trunk_byte)}
    begun: list[list[int]] = [[] for _ in arrivals]
    for p, latency in zip(out.port, out.latency, strict=True):
        begun[p].append(arrivals[p][0][len(begun[p])] + latency)
    for p, frames in enumerate(data):
        starts = [at + late for at in begun[p]]
        streams[f"tx[{p}]"] = stream(starts, [START + frame for frame in frames], fabric.port_byte)
    late_ones = []
    for _, end, p, k, segment in sent:
        due = begun[p][k] + (ethernet.PREAMBLE + segment * eep.SEGMENT) * fabric.port_byte
        if segment and end > due:
            late_ones.append((due, p))
    underrun = min(late_ones, default=None)
    return Expected(streams, np.array(firsts), underrun, out.ingress, out.egress)


def stream(starts, pieces, byte: int) -> np.ndarray:
    """cycle << 8 | byte for pieces that begin at `starts`, each byte noted when its `byte` cycles are over."""
    whole_ = np.frombuffer(b"".join(pieces), np.uint8).astype(np.int64)
    sizes = np.array([len(piece) for piece in pieces])
    first = np.repeat(np.array(starts, np.int64), sizes)
    place = np.arange(len(whole_)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return first + (place + 1) * byte << 8 | whole_


def octets(starts, frames, byte: int) -> np.ndarray:
    """cycle << 9 | valid << 8 | octet of what comes into a port: each frame, and the octet after it."""
    gap = np.array([at + (ethernet.PREAMBLE + len(one) + 1) * byte for at, one in zip(starts, frames, strict=True)])
    there = stream(starts, [START + one for one in frames], byte)
    return np.sort(np.concatenate([there >> 8 << 9 | 256 | there & 255, gap << 9]))


def drive(made, arrivals, data, cycles: int, *, engine=None, vcd=None, window=None):
    """Run the gates. Returns what came on each signal, as in `Expected`, and (build s, run s, cycles, engine)."""
    comes = [octets(starts, data[p], made.port_byte) for p, (starts, _) in enumerate(arrivals)]
    signals = ["trunk", *(f"tx[{p}]" for p in range(made.ports)), "underrun", "overflow", "lost"]
    seen: dict[str, list] = {name: [] for name in signals}
    took, since, stop = 0.0, 0 if window is None else window[0], cycles if window is None else window[1]
    with Simulation(made, vcd=vcd, since=since, engine=engine, cycles=cycles) as simulation:
        for begin in range(0, stop, STRETCH):
            rows = simulation.stimulus(min(STRETCH, stop - begin))
            fill(simulation.inputs, rows, comes, begin)
            out, (build_s, time, _, name) = run_timed(simulation, rows, 1)
            took += time
            for signal, found in observed(simulation.outputs, out, made.ports, begin).items():
                seen[signal].append(found)
        times = build_s, took, simulation.cycles, name
    return {name: np.concatenate(parts) for name, parts in seen.items()}, times


def fill(ins, rows, comes, begin):
    """Put the octets of these cycles into the rows."""
    for p, events in enumerate(comes):
        low, high = np.searchsorted(events, [begin << 9, begin + len(rows) << 9])
        part = events[low:high]
        at = (part >> 9) - begin
        rows[at, ins.all["rx_strobe"].at] |= np.uint32(1 << p)
        rows[at, ins.all["rx_valid"].at] |= ((part >> 8 & 1) << p).astype(np.uint32)
        rows[at, ins.all[f"rx_data__{p}"].at] = part & 255


def observed(outs, rows, ports: int, begin: int) -> dict[str, np.ndarray]:
    """What came in these rows."""

    def noted(strobe, data):
        at = np.flatnonzero(strobe)
        return at + begin << 8 | data[at].astype(np.int64)

    def bits(name):
        return rows[:, outs.all[name].at]

    seen = {"trunk": noted(bits("trunk_strobe"), bits("trunk_data"))}
    for p in range(ports):
        seen[f"tx[{p}]"] = noted(bits("tx_strobe") >> np.uint32(p) & np.uint32(1), bits(f"tx_data__{p}"))
    for name in ("underrun", "overflow", "lost"):
        word = bits(name)
        at = np.flatnonzero(word)[: None if name == "underrun" else 1]
        seen[name] = at + begin << 8 | word[at].astype(np.int64)
    return seen


def compare(report: Report, seen, model: Expected) -> None:
    """Note the first difference."""
    end = np.iinfo(np.int64).max
    if model.underrun is not None:
        end = model.underrun[0]
    for signal, expected in model.streams.items():
        report.differs(unequal(model, signal, until(seen[signal], end), until(expected, end)))
    late = {"overflow": "no byte without room", "lost": "no loss of framing"}
    for signal, model_says in late.items():
        for event in until(seen[signal], end)[:1]:
            report.differs(difference(model, int(event >> 8), signal, f"{int(event & 255):#x}", model_says))
    ran_out = seen["underrun"][:1] >> 8
    if model.underrun is None:
        for cycle in ran_out:
            report.differs(difference(model, int(cycle), "underrun", "a frame that runs out of bytes", "none"))
    elif not len(ran_out) or int(ran_out[0]) != model.underrun[0] + LATE_BY:
        gates_say = f"in cycle {int(ran_out[0]):,}" if len(ran_out) else "never"
        says = f"in cycle {model.underrun[0] + LATE_BY:,}"
        report.differs(difference(model, end, "underrun", gates_say, says))


LATE_BY = 2  # cycles from when a byte is due to when the gates say that it is not there


def until(events, end):
    """Those before a cycle."""
    return events[: np.searchsorted(events >> 8, end)]


def difference(model, cycle, signal, gates_say, model_says) -> Difference:
    """A difference, and the unit that was on the trunk then."""
    unit = max(int(np.searchsorted(model.units, cycle, side="right")) - 1, 0)
    return Difference(cycle, unit, signal, gates_say, model_says, "model")


def unequal(model, signal, seen, expected) -> Difference | None:
    """The first byte in which two streams differ."""
    both = min(len(seen), len(expected))
    found = np.flatnonzero(seen[:both] != expected[:both])[:1]
    if not len(found) and len(seen) == len(expected):
        return None
    k = int(found[0]) if len(found) else both

    def say(events):
        return f"byte {int(events[k]) & 255:#04x} in cycle {int(events[k]) >> 8:,}" if k < len(events) else "nothing"

    cycle = min(int(events[k]) >> 8 for events in (seen, expected) if k < len(events))
    return difference(model, cycle, f"byte {k:,} of {signal}", say(seen), say(expected))
