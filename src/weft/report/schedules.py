"""The schedule of a rack for a reader: a summary, what other switches would make of it, and tables cut to fit."""

from weft.models.tables import columns
from weft.schedule.rack import RackSchedule
from weft.units import show_rate, show_time

ROWS, COLUMNS = 16, 20  # of a table that are printed before it is cut short
FEW = 8  # different switches that are printed without being asked for


def schedule_text(schedule: RackSchedule, switch: str | None = None, brief: bool = False) -> str:
    """The schedule for a reader: what is said of it, and unless `brief` its tables, or those of one switch."""
    circuits, clos, facts = schedule.circuits, schedule.clos, schedule.facts()
    timing = facts["timing"]
    lines = [f"{clos.nodes} nodes, {clos.planes} channel{'s' if clos.planes > 1 else ''}", ""]
    lines += [f"{name:<8} {value}" for name, value in _summary(clos, facts)]
    lines += ["", _layers(timing["layers"])]
    if brief:
        return "\n".join(lines)
    if switch is None:
        for plane in range(clos.planes):
            title = "whom each node sends to" + (f" on channel {plane}" if clos.planes > 1 else "")
            lines += ["", title, "", _table("node", circuits.peers[:, plane])]
    alike: dict[bytes, list[str]] = {}
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
