"""`weft schedule`: who may speak when, for the rack and for each of its switches."""

from dataclasses import replace
from typing import Annotated

from cyclopts import App, Parameter

from weft.cli.options import quantity
from weft.errors import BadInput, require
from weft.units import parse_rate, parse_size, parse_time, show_rate, show_time

app = App(name="schedule", help="Who may speak when: the schedule of a rack, and of each of its switches.")

ROWS, COLUMNS = 16, 20  # of a table that are printed before it is cut short
FEW = 8  # different switches that are printed without being asked for
MOST = 4096  # nodes: the tables grow with their square
RACK = 3000  # mm from node to node: the 15 ns of §3.4


@app.command
def shoal(
    *,
    nodes: int,
    ports: int = 64,
    channels: int = 1,
    delay: int = 0,
    order: Annotated[str, Parameter(name="--schedule")] = "auto",
    switch: str | None = None,
    brief: Annotated[bool, Parameter(negative="")] = False,
    link: str | None = None,
    cell: str | None = None,
    slot: str | None = None,
    overhead: str = "0B",
    reconfiguration: str = "2500ps",
    tolerance: int = 20,
    links: int = 1,
    synchronisation: str = "50ps",
    layer: int = 1,
    recovery: str = "625ps",
    latency: str = "320ns",
    sync: str | None = None,
    drift: float | None = None,
    failover: str | None = None,
    without: str | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
):
    """The schedule of a Shoal rack, taken apart into one for each circuit switch, and the time it takes.

    Parameters
    ----------
    nodes
        Nodes in the rack.
    ports
        Ports of a circuit switch, k; two stages connect k²/2 nodes.
    channels
        Channels a link is split into; the fabric is built once for each.
    delay
        Slots a cell travels beyond the one it is sent in.
    order
        Order in which nodes face each other: auto, rotation or mirrored.
    switch
        The one switch to print, such as leaf0, spine1 or plane2.leaf3.
    brief
        Leave the tables out.
    link
        Rate of a node's link; 25 Gb/s per channel if not given.
    cell
        Bytes of a cell; 64 unless the slot decides.
    slot
        Length of a slot; the largest cell that fits is used if none is given.
    overhead
        Bytes that framing adds to a cell on the wire; 24 in the prototype.
    reconfiguration
        Time in which a switch changes its circuits; 6400ps in the prototype.
    tolerance
        How many mm a link may be longer or shorter than meant.
    links
        Links whose tolerances add up; the paper counts one, a path has four.
    synchronisation
        How far two clocks may be apart.
    layer
        1 for switches that retime (electrical), 0 for switches that do not (optical).
    recovery
        Time in which a receiver locks to a new sender; only layer 0 needs it.
    latency
        Time a switch that retimes takes from port to port; 320ns in the prototype.
    sync
        How far two clocks are apart once synchronised; all that the guard leaves for clocks if not given.
    drift
        Parts per billion by which a clock without a master strays; says how long the rack lives without one.
    failover
        Time after the loss of the clock master until another serves.
    without
        What is gone for good, such as "node 3, spine 0"; the schedule is made anew without it.
    json
        Print JSON.
    """
    from weft.schedule.decompose import decompose, verify
    from weft.schedule.guard import Guard, Timing
    from weft.schedule.rotation import rounds
    from weft.topology.circuit import CircuitClos
    from weft.units import Gbps

    if nodes > MOST:
        raise BadInput(f"nodes must be at most {MOST:,} for their schedules to be written down, not {nodes}")
    schedule = rounds(nodes, channels, delay, order)
    clos = CircuitClos(nodes=nodes, ports=ports, planes=channels)
    guard = Guard(
        reconfiguration=quantity("reconfiguration", parse_time, reconfiguration),
        tolerance=tolerance,
        links=links,
        synchronisation=quantity("synchronisation", parse_time, synchronisation),
        layer=layer,
        recovery=quantity("recovery", parse_time, recovery),
    )
    timing = Timing(
        guard=guard.length,
        link=25 * Gbps * channels if link is None else quantity("link", parse_rate, link),
        channels=channels,
        cell=None if cell is None else quantity("cell", parse_size, cell),
        slot=None if slot is None else quantity("slot", parse_time, slot),
        overhead=quantity("overhead", parse_size, overhead),
    )
    latency = quantity("latency", parse_time, latency)
    require(latency >= 0, "latency", "zero or more", latency)
    if switch is not None:
        clos.locate(switch)  # an unknown one is refused before the work
    clocks = _clocks(nodes, guard, sync, drift, failover)
    made = None if without is None else _without(without, schedule, ports, delay, order)
    circuits = decompose(clos, schedule) if made is None else made.circuits
    verify(circuits)
    facts = _facts(circuits, schedule, delay, guard, timing, latency)
    facts |= _of_clocks(clocks, facts["timing"], latency, layer) | _of_repair(made, without, circuits)
    if json:
        print(_json(circuits, facts, switch))
    else:
        print(_text(circuits, facts, switch, brief))


def _clocks(nodes, guard, sync, drift, failover):
    """The rack's clocks, if anything is asked about them."""
    from weft.schedule.clock import Clocks

    if sync is None and drift is None and failover is None:
        return None
    precision = guard.synchronisation if sync is None else quantity("sync", parse_time, sync)
    require(precision >= 0, "sync", "zero or more", precision)
    return Clocks(
        nodes=nodes,
        allowed=guard.synchronisation,
        precision=precision,
        drift=drift or 0.0,
        failover=None if failover is None else quantity("failover", parse_time, failover),
    )


def _without(text, schedule, ports, delay, order):
    """The schedule that is left when the things that `text` names are gone."""
    from weft.failures import entries
    from weft.schedule.outage import plan
    from weft.schedule.repair import repair

    named = entries(text)
    require(named, "without", "something that is gone, such as node 3", text)
    for entry in named:
        if {"at", "until"} & set(entry.text.split()):
            raise BadInput(f"without must name what is gone for good, not for a time, as in {entry.text!r}")
    return repair(schedule, plan(text, schedule, ports), ports, delay=delay, order=order)


def _of_clocks(clocks, timing, latency, layer):
    if clocks is None:
        return {}
    from weft.schedule.clock import bootstrap
    from weft.schedule.guard import flight

    way, epoch, precision = flight(RACK, latency, layer=layer), timing["epoch_ps"], clocks.precision
    steps = bootstrap(nodes=clocks.nodes, flight=way, epoch=epoch, precision=precision) if precision else ()
    return {
        "clocks": {
            "allowed_ps": clocks.allowed,
            "precision_ps": clocks.precision,
            "left_ps": clocks.left,
            "drift_ppb": clocks.drift,
            "survives_ps": clocks.survives,
            "failover_ps": clocks.failover,
            "start": [{"step": step.name, "begin_ps": step.begin, "end_ps": step.end} for step in steps],
        }
    }


def _of_repair(made, text, circuits):
    """What changes beside the tables when some nodes or switches are gone."""
    if made is None:
        return {}
    from weft.schedule.repair import gap

    return {
        "order": "made anew" if made.rounds is None else made.rounds.order,
        "gap_slots": gap(circuits),
        "dark_share": 1 - made.after,
        "without": {
            "what": text,
            "survivors": made.survivors.tolist(),
            "uplinks": [list(pool) for pool in made.pools],
            "usable_before": made.before,
            "usable_after": made.after,
        },
    }


def _facts(circuits, schedule, delay, guard, timing, latency):
    """What the command says beside the tables, as data."""
    from weft.schedule.guard import slot_for

    clos = circuits.clos
    places = circuits.slots * clos.planes
    return {
        "nodes": clos.nodes,
        "ports": clos.ports,
        "channels": clos.planes,
        "delay_slots": delay,
        "order": schedule.order,
        "gap_slots": schedule.gap(),
        "dark_share": (places - (clos.nodes - 1)) / places,
        "epoch_slots": circuits.slots,
        "timing": {
            "guard_ps": guard.length,
            "reconfiguration_ps": guard.reconfiguration,
            "variation_ps": guard.variation,
            "synchronisation_ps": guard.synchronisation,
            "recovery_ps": guard.lock,
            "cell_bytes": timing.cell,
            "overhead_bytes": timing.overhead,
            "cell_ps": timing.busy,
            "slot_ps": timing.slot,
            "guard_share": timing.loss,
            "slot_ps_for_a_tenth": slot_for(guard.length, 0.1),
            "link_bps": timing.link,
            "rate_bps": timing.rate,
            "epoch_ps": circuits.slots * timing.slot,
            "layer": guard.layer,
            "layers": [_layer(replace(guard, layer=one), timing, latency) for one in (0, 1)],
        },
        "fabric": {"leaves": clos.leaves, "spines": clos.spines, "planes": clos.planes, "switches": clos.switches},
    }


def _layer(guard, timing, latency):
    """What switches of a layer would make of the same cell."""
    from weft.schedule.guard import flight

    own = replace(timing, guard=guard.length, slot=None)
    return {
        "layer": guard.layer,
        "guard_ps": own.guard,
        "slot_ps": own.slot,
        "rate_bps": own.rate,
        "buffer_bits": guard.buffer_bits(own.link // own.channels),
        "latency_ps": flight(0, latency, layer=guard.layer),
    }


def _json(circuits, facts, switch):
    """One JSON object. `rack[t][i]` is the peer of node i in slot t, a list by channel where there are several;
    `slots[t][x]` of a switch is the output of its input x. What is dark is null."""
    import json

    clos = circuits.clos
    rack = circuits.peers[:, 0] if clos.planes == 1 else circuits.peers.transpose(0, 2, 1)
    switches = [
        {"name": name, "ports": clos.ports, "wires": clos.wires(name), "slots": _nulls(circuits.outputs(name))}
        for name in (clos.names if switch is None else (switch,))
    ]
    return json.dumps({**facts, "rack": _nulls(rack), "switches": switches})


def _nulls(table):
    """An array as lists, with None for what is dark."""
    if table.min(initial=0) >= 0:
        return table.tolist()
    if table.ndim == 1:
        return [None if x < 0 else x for x in table.tolist()]
    return [_nulls(row) for row in table]


def _text(circuits, facts, switch, brief):
    clos, timing = circuits.clos, facts["timing"]
    lines = [f"{clos.nodes} nodes, {clos.planes} channel{'s' if clos.planes > 1 else ''}", ""]
    lines += [f"{name:<8} {value}" for name, value in _summary(clos, facts)]
    lines += ["", _layers(timing["layers"])]
    if brief:
        return "\n".join(lines)
    if switch is None:
        for plane in range(clos.planes):
            title = "whom each node sends to" + (f" on channel {plane}" if clos.planes > 1 else "")
            lines += ["", title, "", _table("node", circuits.peers[:, plane])]
    alike = {}
    for name in clos.names if switch is None else (switch,):
        alike.setdefault(circuits.outputs(name).tobytes(), []).append(name)
    few = len(alike) <= FEW
    for names in alike.values() if few else ():
        lines += ["", f"the output of each input of {', '.join(names)}", "", _table("port", circuits.outputs(names[0]))]
    if switch is not None:
        wires = clos.wires(switch)
        lines += ["", *(_wire(port, wires) for port in _some(clos.ports, ROWS))]
    elif not few:
        lines += ["", f"{clos.switches} switches: --switch {clos.names[0]} prints one, --json all"]
    return "\n".join(lines)


def _wire(port, wires):
    return "…" if port is None else f"port {port}: {wires[port] or 'nothing'}"


def _layers(layers):
    from weft.models.tables import columns

    rows = [
        (
            "1, electrical" if one["layer"] else "0, optical", show_time(one["guard_ps"]), show_time(one["slot_ps"]),
            show_rate(one["rate_bps"]), f"{one['buffer_bits']} bits", show_time(one["latency_ps"]),
        )
        for one in layers
    ]  # fmt: skip
    return columns(("layer", "guard", "slot", "rate", "buffer", "three switches"), rows, right=range(1, 6))


def _summary(clos, facts):
    timing = facts["timing"]
    parts = ("reconfiguration", "variation", "synchronisation", "recovery")
    sums = " + ".join(f"{show_time(timing[f'{part}_ps'])} {part}" for part in parts if timing[f"{part}_ps"])
    channel = show_rate(timing["link_bps"] // clos.planes)
    kinds = f"{clos.leaves} leaves and {clos.spines} spines" + (" in each plane" if clos.planes > 1 else "")
    yield "fabric", f"{clos.switches} switches of {clos.ports} ports, {kinds}"
    yield "guard", f"{show_time(timing['guard_ps'])} = {sums}" if sums else "none"
    framing = f" and {timing['overhead_bytes']} B of framing take" if timing["overhead_bytes"] else " takes"
    yield (
        "slot",
        (
            f"{show_time(timing['slot_ps'])}, of which a cell of {timing['cell_bytes']} B{framing} "
            f"{show_time(timing['cell_ps'])} at {channel}"
        ),
    )
    yield (
        "",
        (
            f"the guard is {100 * timing['guard_share']:.1f} % of it, and would be 10 % of "
            f"{show_time(timing['slot_ps_for_a_tenth'])}"
        ),
    )
    yield "rate", f"{show_rate(timing['rate_bps'])} of cells on a link of {show_rate(timing['link_bps'])}"
    dark = f"; {100 * facts['dark_share']:.1f} % of it dark" if facts["dark_share"] else ""
    yield "epoch", f"{facts['epoch_slots']} slots, {show_time(timing['epoch_ps'])}{dark}"
    gap, delay = facts["gap_slots"], facts["delay_slots"]
    apart = f"i to j and j to i lie at least {gap} slots apart"
    yield "order", f"{facts['order']}; {apart if gap else 'some pairs face each other in the same slot'}"
    yield from _summary_of_clocks(facts.get("clocks"))
    yield from _summary_of_repair(clos, facts.get("without"))
    if delay:
        yield "delay", f"{delay} slots, for which that is {'enough' if delay < gap else 'too little'}"


def _summary_of_clocks(clocks):
    if clocks is None:
        return
    allowed, precision, left = (show_time(clocks[f"{name}_ps"]) for name in ("allowed", "precision", "left"))
    if clocks["left_ps"] < 0:
        yield "clocks", f"{precision} apart, more than the {allowed} of the guard: cells collide"
        return
    yield "clocks", f"{allowed} of the guard, {precision} of it used by synchronisation, {left} left for drift"
    lives, needs = clocks["survives_ps"], clocks["failover_ps"]
    if lives is None:
        yield "", "clocks do not drift: the rack needs no master"
    else:
        yield "", f"two clocks that stray by {clocks['drift_ppb']:g} ppb use that up in {show_time(lives)}"
    if needs is not None and lives is not None:
        outcome = "in time" if needs <= lives else "too late: cells may collide until the next exchange"
        yield "", f"without a master another takes over after {show_time(needs)}, {outcome}"
    if clocks["start"]:
        ready, first = (show_time(clocks["start"][k]["end_ps"]) for k in (1, 3))
        yield "start", f"clocks that begin 1 ms apart agree after {ready}, and data begins at {first}"


def _summary_of_repair(clos, without):
    if without is None:
        return
    alive, before, after = len(without["survivors"]), without["usable_before"], without["usable_after"]
    uplinks = "/".join(str(len(pool)) for pool in without["uplinks"])
    yield "without", f"{without['what']}: {alive} of {clos.nodes} nodes and {uplinks} of {clos.half} uplinks left"
    verdict = "" if after >= before else "; better left as it was"
    yield "", f"{100 * after:.1f} % of a survivor's slots are used, {100 * before:.1f} % without the repair{verdict}"


def _table(what, table):
    """Slots down, nodes or ports across; long tables are cut in the middle."""
    rows, columns = _some(len(table), ROWS), _some(table.shape[1], COLUMNS)
    wide = max(4, len(str(table.max(initial=0))) + 1, len(str(table.shape[1])) + 1)

    def line(head, cells):
        return f"{head:>5}" + "".join(f"{cell:>{wide}}" for cell in cells)

    out = [line(what, ["…" if x is None else x for x in columns])]
    for t in rows:
        if t is None:
            out.append(line("…", []))
            continue
        out.append(line(f"t={t}", ["…" if x is None else "-" if table[t, x] < 0 else table[t, x] for x in columns]))
    return "\n".join(out)


def _some(count, most):
    """0 … count-1, with None for those left out where there are more than `most`."""
    return list(range(count)) if count <= most else [*range(most - 2), None, count - 1]
