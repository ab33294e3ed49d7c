"""`weft bench`: how fast a fabric is simulated here, beside a loop that says how fast the machine is."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Annotated

import numpy as np
from cyclopts import App, Parameter

from weft import catalogue
from weft.cli import options
from weft.cli.flags import Flags, command, keyword
from weft.cli.options import RUNNING, print_json, quantity, whole
from weft.cli.run import run_options
from weft.errors import Unusable, require
from weft.parameters import Parameter as Field
from weft.units import parse_rate, parse_time, show_number, show_time

SENTENCE = "Measure how fast a fabric is simulated on this machine."
WORK = 300_000_000  # node-slots of a run, unless told how many flows: some ten seconds of a busy rack
STEPS = 4_000_000  # of the calibration loop
TABLE = 1 << 18  # its table of int64, 2 MB: beyond the first cache, as a busy rack is


def make(tokens) -> App:
    """The command; if the tokens already name a fabric, with that one only."""
    app = App(name="bench", help=SENTENCE, help_format="markdown")
    names = catalogue.fabrics()
    asked = [word for word in tokens[:1] if word in names or ":" in word]
    for name in asked or names:
        try:
            app.command(_fabric(name, tokens[1:2] if asked else ()))
        except Unusable as problem:
            app.command(App(name=name, help=str(problem)))
    return app


def _fabric(name, asked=()) -> App:
    cls = catalogue.fabric_class(name)
    app = App(name=name, help=f"Runs of {cls.__name__}: how much of each a second of processor time.")
    if name in ALONE:
        app.default(ALONE[name])
    kinds = catalogue.workloads(cls)
    kinds |= {word: catalogue.workload_class(word, cls) for word in asked if ":" in word}
    for workload, kind in kinds.items():
        app.command(_command(name, cls, workload, kind), name=workload)
    return app


def _command(name, cls, workload, kind):
    """The command that measures the workload `kind` on the fabric `cls`, by their names."""
    shared = bench_options()
    taken = {option.name for option in shared}
    traffic = Flags(kind, workload, "Workload", taken, order=2)
    fabric = Flags(cls, name, "Fabric", {*taken, *traffic.names}, order=1)

    def call(*, seed, until, repeat, on, replicas, json, **given):
        made, arrives, begin, end = fabric.build(given), traffic.build(given), options.seed(seed), options.until(until)
        require(on in (None, "gpu"), "on", "gpu, or left out", on)
        if on is not None:
            return show_on_gpu({None: _case(made, arrives, begin, end)}, replicas, json)
        found = best(made, arrives, seed=begin, until=end, repeat=at_least_one("repeat", repeat))
        if json:
            print_json(found)
        else:
            print("\n".join(told(f"{name} {workload}", found)))
        return 0

    return command(call, workload, inspect.getdoc(kind), [*fabric.parameters, *traffic.parameters, *shared])


def _case(fabric, workload, seed, until):
    """What is measured on a GPU: to its end, which must be known."""
    from weft.cli.side_by_side import Case
    from weft.experiment import horizon

    demand = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)
    until = horizon(workload, demand, until)
    if until is None and not len(demand):
        until = demand.slots * fabric.slot  # cells that are made slot by slot
    require(until is not None, "until", "given, for runs on a GPU", until)
    return Case(fabric, workload, until, seed)


def bench_options() -> list:
    """The parameters of every measurement, whatever is measured."""
    repeat = Parameter(help="runs; the best counts: other work only makes one slower", metavar="INT", group=RUNNING)
    as_json = Parameter(negative="", show_default=False, help="print JSON", group=RUNNING)
    on = Parameter(metavar="WHERE", help="gpu: replicas side by side on this machine's GPU", group=RUNNING)
    replicas = Parameter(metavar="LIST", help="how many at once, on a GPU", group=RUNNING)
    return [
        *(option for option in run_options() if option.name in ("seed", "until")),
        keyword("repeat", Annotated[str, repeat], "3"),
        keyword("on", Annotated[str | None, on], None),
        keyword("replicas", Annotated[str, replicas], "1,1000"),
        keyword("json", Annotated[bool, as_json], False),
    ]


def at_least_one(name, text) -> int:
    """The whole number, 1 or more, that the flag `name` was given."""
    number = whole(name, text)
    require(number >= 1, name, "at least 1", number)
    return number


def best(fabric, workload, *, seed=0, until=None, repeat=3) -> dict:
    """What the fastest of several whole runs did in a second of processor time, compilation and flows left out."""
    from weft.experiment import allow, horizon

    allow(fabric, workload.planned(fabric.nodes))
    demand = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)
    allow(fabric, demand)
    until = horizon(workload, demand, until)
    fabric.prepare(demand, seed=seed).advance(until=1)
    took, steps = [], [calibrate()]
    for _ in range(repeat):
        run = fabric.prepare(demand, seed=seed)
        began = process_time()
        run.advance(until=until)
        took.append(process_time() - began)
        steps.append(calibrate())
    seen = run.observe()
    done = {name: count for name, count in seen.work.items() if name != "seconds"}
    each = min(took)
    return {
        "seed": seed,
        "runs": repeat,
        "simulated_us": seen.now / 1e6,
        "seconds": each,
        "seconds_most": max(took),
        "work": done,
        "rate": {f"{name}_per_s": count / each for name, count in done.items()},
        "calibration_ns": min(steps),
        "calibration_ns_most": max(steps),
        "ratio_to_calibration": {
            name: 1e9 * each / count / min(steps) if count else None for name, count in done.items()
        },
        "fingerprint": seen.fingerprint,
    }


def told(title, found):
    """The same, for a reader."""
    yield f"{title}: {show_time(round(found['simulated_us'] * 1e6))} simulated, the best of {found['runs']} runs"
    for name, count in found["work"].items():
        rate, ratio = found["rate"][f"{name}_per_s"], found["ratio_to_calibration"][name]
        steps = "" if ratio is None else f", each {ratio:.2f} steps of the calibration loop"
        what = f"{rate / 1e6:.4g} M {name.replace('_', ' ')} a second of processor time"
        yield f"{what}, {show_number(count)} in all{steps}"
    yield f"{found['seconds']:.3g} to {found['seconds_most']:.3g} s a run"
    yield f"{found['calibration_ns']:.1f} to {found['calibration_ns_most']:.1f} ns a step of the calibration loop"


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
    began = process_time()
    run.advance(until=last)
    seconds = process_time() - began
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


SLOTS = 3000  # that a GPU is measured over, from empty; the last third counts


def busy_rack(*, nodes, channels, load, sizes, seed):
    """A rack under a load for so many slots, to be measured on a GPU."""
    from weft.cli.side_by_side import Case
    from weft.fabrics.shoal import Shoal
    from weft.workload import Poisson
    from weft.workload.arrivals import mean_gap

    rack = Shoal(nodes=nodes, channels=channels)
    gap = mean_gap(Poisson(load=load, sizes=sizes, flows=1), nodes=nodes, link=rack.link)
    workload = Poisson(load=load, sizes=sizes, flows=int(1.2 * SLOTS * rack.slot_time / gap) + 100)
    return Case(rack, workload, SLOTS * rack.slot_time, seed)


def show_on_gpu(cases, replicas, json) -> int:
    """Measure on the GPU, and print that."""
    from weft.cli.side_by_side import compared
    from weft.cli.side_by_side import told as lines_of

    found = compared(cases, [at_least_one("replicas", text) for text in replicas.split(",")])
    if json:
        print_json(found)
    else:
        print("\n".join(lines_of(found)))
    return 0


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
    began = process_time()
    _wander(table, STEPS)
    return (process_time() - began) * 1e9 / STEPS


_wander = None


def _steps(table, steps):
    at, total = 1, 0
    for k in range(steps):
        at = (table[at] + (total * 5 >> 3) + k) & (table.size - 1)
        total += at
    return total


def shoal(
    *,
    nodes: Annotated[str, Parameter(metavar="INT", help="nodes in the rack")] = "512",
    channels: Annotated[str, Parameter(metavar="INT", help="channels of a link")] = "4",
    load: Annotated[str, Parameter(metavar="NUMBER", help="nominal load; on a GPU a list of them")] = "1",
    load_rate: Annotated[str | None, Parameter(metavar="RATE", help="what load is a fraction of; the link")] = None,
    sizes: Annotated[str, Parameter(metavar="TEXT", help="flow sizes")] = "pareto",
    flows: Annotated[str | None, Parameter(metavar="INT", help="number of flows; enough for some ten seconds")] = None,
    seed: Annotated[str, Parameter(metavar="INT", help="of the flows")] = "1",
    on: Annotated[str | None, Parameter(metavar="WHERE", help="gpu: racks side by side on this machine's GPU")] = None,
    racks: Annotated[str, Parameter(metavar="LIST", help="how many at once, on a GPU")] = "1,132,264",
    json: Annotated[bool, Parameter(negative="", show_default=False, help="print JSON")] = False,
) -> int:
    """Measure a busy Shoal rack: node-slots per second from the first arrival to the last.

    On a GPU: of so many racks at once, in the last third of some thousand slots from empty, beside one core here and
    all of them, with the shares of its memory's bandwidth and of its issue that they take.
    """
    require(on in (None, "gpu"), "on", "gpu, or left out", on)
    if on is not None:
        shape = {"nodes": whole("nodes", nodes), "channels": whole("channels", channels), "seed": whole("seed", seed)}
        loads = [Field("load", "float", (), False, None, "").read(text) for text in load.split(",")]
        return show_on_gpu({one: busy_rack(**shape, load=one, sizes=sizes) for one in loads}, racks, json)
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


def tdma(
    *,
    schedulers: Annotated[str, Parameter(metavar="LIST", help="which of them")] = "wrr,greedy,mwm,bvn",
    round: Annotated[str, Parameter(metavar="TIME", help="within which a round must be planned")] = "10ms",
    json: Annotated[bool, Parameter(negative="", show_default=False, help="print JSON")] = False,
) -> int:
    """Measure how long TDMA's schedulers take to plan a round, and for how many hosts each keeps up.

    Demands are drawn, up to four slots' worth for every pair on one switch; times are CPU times of five rounds.
    """
    from weft.fabrics.tdma.planning import sustained
    from weft.fabrics.tdma.schedulers import SCHEDULERS

    length = quantity("round", parse_time, round)
    names = [name.strip() for name in schedulers.split(",")]
    for name in names:
        require(name in SCHEDULERS, "scheduler", f"one of {', '.join(SCHEDULERS)}", name)
    found = []
    if not json:
        print("scheduler  hosts  links used  longest wait  bound  median ms  worst ms", flush=True)
    for name in names:
        rows, most = sustained(name, length, watch=lambda row: None if json else print(_planned(row), flush=True))
        found.append({"scheduler": name, "hosts": most, "rounds": rows})
        if not json:
            print(f"{name:<9}  plans {most} hosts within a round of {show_time(length)}", flush=True)
    if json:
        print_json({"round_ms": length / 1e9, "schedulers": found})
    return 0


def _planned(row) -> str:
    bound, wait = "none" if row["bound_slots"] is None else row["bound_slots"], row["longest_wait_slots"]
    return (
        f"{row['scheduler']:<9}  {row['hosts']:>5}  {100 * row['throughput']:>8.1f} %  {wait:>12}  "
        f"{bound:>5}  {row['compute_ms']:>9.1f}  {row['compute_ms_worst']:>8.1f}"
    )


# What is measured without a workload: a busy rack, schedulers.
ALONE: dict[str, Callable[..., int]] = {"shoal": shoal, "tdma": tdma}
