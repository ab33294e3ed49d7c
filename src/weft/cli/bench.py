"""`weft bench`: how fast a busy fabric is simulated here, beside a loop that says how fast the machine is."""

from dataclasses import dataclass
from time import perf_counter
from typing import Annotated

import numpy as np
from cyclopts import App, Parameter

from weft.cli.options import print_json, quantity, whole
from weft.parameters import Parameter as Field
from weft.units import parse_rate

app = App(name="bench", help="Measure how fast a busy fabric is simulated on this machine.", help_format="markdown")
WORK = 300_000_000  # node-slots of a run, unless told how many flows: some ten seconds of a busy rack
STEPS = 4_000_000  # of the calibration loop
TABLE = 1 << 18  # its table of int64, 2 MB: beyond the first cache, as a busy rack is


@dataclass(frozen=True)
class Bench:
    """What was measured while the rack was busy: from the first arrival to the last, compilation left out."""

    nodes: int
    channels: int
    load: float
    flows: int
    realised_load: float | None
    node_slots: int
    seconds: float
    node_slots_per_s: float
    ns_per_node_slot: float
    carried_cells_per_s: float
    busy_fraction: float  # of the places for a cell that carried one
    stepped_fraction: float  # of the node-slots that were looked at rather than skipped
    calibration_ns: float
    ratio_to_calibration: float


def measure(*, nodes=512, channels=4, load=1.0, load_rate=None, sizes="pareto", flows=None, seed=1, work=WORK) -> Bench:
    """Run a busy rack from its first arrival to its last: so many `flows`, or about so many node-slots of `work`."""
    from weft.fabrics.shoal import Shoal
    from weft.workload import Poisson
    from weft.workload.arrivals import mean_gap

    rack = Shoal(nodes=nodes, channels=channels)
    workload = Poisson(load=load, load_rate=load_rate, sizes=sizes, flows=flows or 1)
    if flows is None:
        per_flow = mean_gap(workload, nodes=nodes, link=rack.link) / rack.slot_time * nodes * channels
        workload = Poisson(load=load, load_rate=load_rate, sizes=sizes, flows=max(int(work / per_flow), 1000))
    _compile(rack)
    table = workload.draw(nodes=nodes, link=rack.link, seed=seed)
    first, last = int(table.start[0]), int(table.start[-1])
    before = calibrate()
    run = rack.prepare(table, seed=seed)
    run.advance(until=first)
    start = run.observe()
    began = perf_counter()
    run.advance(until=last)
    seconds = perf_counter() - began
    end = run.observe()
    calibration = (before + calibrate()) / 2
    slots, stepped = (end.work[key] - start.work[key] for key in ("node_slots", "stepped"))
    cells = {key: end.carried[key] - start.carried[key] for key in ("local", "forwarded", "dummy")}
    carried = cells["local"] + cells["forwarded"]
    each = seconds * 1e9 / slots
    return Bench(
        nodes=nodes,
        channels=channels,
        load=load,
        flows=len(table),
        realised_load=table.realised_load(load_rate or rack.link),
        node_slots=slots,
        seconds=seconds,
        node_slots_per_s=slots / seconds,
        ns_per_node_slot=each,
        carried_cells_per_s=carried / seconds,
        busy_fraction=carried / sum(cells.values()),
        stepped_fraction=stepped / slots,
        calibration_ns=calibration,
        ratio_to_calibration=each / calibration,
    )


def _compile(rack):
    from dataclasses import replace

    from weft.workload import Poisson

    small = replace(rack, nodes=rack.channels + 4)
    table = Poisson(load=0.5, sizes="fixed:2KB", flows=20).draw(nodes=small.nodes, link=small.link, seed=0)
    small.prepare(table).advance()


def calibrate() -> float:
    """ns of one step of a fixed loop: a multiply, a shift, and a read from a table where the last step points."""
    from weft.engine.jit import kernel

    global _wander
    if _wander is None:
        _wander = kernel(_steps)
    table = (np.arange(TABLE, dtype=np.int64) * 0x9E3779B1 + 12345) & (TABLE - 1)
    _wander(table, 1)
    began = perf_counter()
    _wander(table, STEPS)
    return (perf_counter() - began) * 1e9 / STEPS


_wander = None


def _steps(table, steps):
    at, total = 1, 0
    for k in range(steps):
        at = (table[at] + (total * 5 >> 3) + k) & (table.size - 1)
        total += at
    return total


@app.command
def shoal(
    *,
    nodes: Annotated[str, Parameter(metavar="INT", help="nodes in the rack")] = "512",
    channels: Annotated[str, Parameter(metavar="INT", help="channels of a link")] = "4",
    load: Annotated[str, Parameter(metavar="NUMBER", help="nominal load")] = "1",
    load_rate: Annotated[str | None, Parameter(metavar="RATE", help="what load is a fraction of; the link")] = None,
    sizes: Annotated[str, Parameter(metavar="TEXT", help="flow sizes")] = "pareto",
    flows: Annotated[str | None, Parameter(metavar="INT", help="number of flows; enough for some ten seconds")] = None,
    seed: Annotated[str, Parameter(metavar="INT", help="of the flows")] = "1",
    json: Annotated[bool, Parameter(negative="", show_default=False, help="print JSON")] = False,
) -> int:
    """Measure a busy Shoal rack: node-slots per second from the first arrival to the last."""
    found = measure(
        nodes=whole("nodes", nodes), channels=whole("channels", channels),
        load=Field("load", "float", (), False, None, "").read(load),
        load_rate=None if load_rate is None else quantity("load_rate", parse_rate, load_rate),
        sizes=sizes, flows=None if flows is None else whole("flows", flows), seed=whole("seed", seed),
    )  # fmt: skip
    if json:
        print_json(vars(found))
    else:
        print("\n".join(lines(found)))
    return 0


def lines(found: Bench):
    """What was measured, for a reader."""
    yield f"Shoal, {found.nodes} nodes x {found.channels} channels, load {found.load:g}, {found.flows:,} flows"
    yield f"{found.node_slots_per_s / 1e6:.1f} M node-slots/s, {found.ns_per_node_slot:.1f} ns each"
    yield f"{found.carried_cells_per_s / 1e6:.1f} M cells carried/s, {found.busy_fraction:.0%} of the places busy"
    yield f"{found.ratio_to_calibration:.2f} steps of the calibration loop, {found.calibration_ns:.1f} ns each"
    yield f"{found.node_slots:,} node-slots in {found.seconds:.1f} s"
