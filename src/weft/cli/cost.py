"""`weft cost`: price, power, space, cables and limits of each paper's system, with no simulation."""

import json
import sys
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from weft.errors import BadInput, WeftError
from weft.units import Gbps, ms, parse_rate, parse_size, parse_time, show_rate, show_size, show_time, us

app = App(name="cost", help="What it would cost: parts, prices, power, cables and memory, with no simulation.")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Common:
    """What every cost command takes."""

    table: Annotated[str | None, Parameter(help="A printed table with ours beside it, such as VII; or all.")] = None
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False
    plot: Annotated[str | None, Parameter(help="Draw a picture into this svg, png or pdf.")] = None
    catalogue: Annotated[list[str] | None, Parameter(negative="", help="A TOML file that overrides or adds.")] = None
    price: Annotated[list[str] | None, Parameter(negative="", help="Another price, as in SFP+=100.")] = None
    watts: Annotated[list[str] | None, Parameter(negative="", help="Other watts, as in SFP+=1.5.")] = None

    def shelf(self, name: str):
        """The catalogue `name` with the user's own on top."""
        from weft.models.parts import Catalogue

        catalogue = Catalogue.named(name)
        for path in self.catalogue or ():
            mine = Catalogue.load(path)
            # Shoal's paper counts in packet switches; a user may well count in dollars
            catalogue = catalogue | mine if name == "shoal-2019" else catalogue.under(mine)
        for field, given in (("price", self.price), ("watts", self.watts)):
            for text in given or ():
                part, value = _assignment(field, text)
                catalogue = catalogue.change(part, **{field: value})
        return catalogue


COMMON = Common()


def _assignment(field, text):
    part, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        part = ""
    if not part:
        raise BadInput(f"{field} must look like SFP+=100, not {text!r}")
    return part, value


def _emit(common, data, text):
    if common.json:
        print(json.dumps(data, indent=2, default=_plain))
    else:
        print(text)


def _plain(value):
    return value.item() if hasattr(value, "item") else list(value)


def _tables(common, model, paper, catalogue):
    """Print one printed table, or all of them; True if that was asked for."""
    if common.table is None:
        return False
    from weft.models import tables
    from weft.models.parts import Catalogue

    own = Catalogue.named(model.CATALOGUE).currency
    if catalogue.currency != own:
        raise BadInput(f"table must be asked for with prices in {own}, not in {catalogue.currency}")
    if common.table == "all":
        found = [model.table(key, catalogue) for key in tables.printed(paper)]
        _emit(common, {"paper": paper, "tables": [one.as_json() for one in found]}, "\n\n".join(map(str, found)))
    else:
        one = model.table(common.table, catalogue)
        _emit(common, one.as_json(), str(one))
    return True


def _plot(common, what, **given):
    if common.plot is not None:
        from weft.models import plots

        plots.draw(what, common.plot, **given)


def _list(title, pairs, notes=()):
    """A title, then name and value in two columns, then notes."""
    pairs = [(name, value) for name, value in pairs if value is not None]
    wide = max(len(name) for name, _ in pairs)
    lines = [title, "", *(f"{name:<{wide}}  {value}" for name, value in pairs)]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _number(value, unit=""):
    from weft.models.tables import show

    return None if value is None else f"{show(value)}{' ' if unit else ''}{unit}"


@app.command
def shoal(
    *,
    nodes: int = 512,
    ports: int = 64,
    planes: int = 2,
    nic: float = 2,
    cell: str = "64B",
    circuit_price: float | None = None,
    common: Common = COMMON,
):
    """Power, relative cost, buffers and memory of a Shoal rack beside a packet-switched one.

    Parameters
    ----------
    nodes
        Nodes in the rack.
    ports
        Ports of a switch, circuit or packet.
    planes
        Parallel fabrics of 50 Gb/s.
    nic
        Price of a Shoal NIC in packet NICs.
    cell
        Size of a cell.
    circuit_price
        Price of a circuit switch in packet switches; the catalogue's when not given.
    """
    from weft.models import shoal as model

    shelf = common.shelf(model.CATALOGUE)
    if _tables(common, model, "shoal", shelf):
        return
    rack = model.Rack(nodes=nodes, ports=ports, planes=planes, nic=nic, cell=parse_size(cell))
    catalogue = rack.catalogue(shelf)
    watts = rack.watts(catalogue)
    ratio = rack.cost_ratio(circuit_price, catalogue)
    limits = {"parity": rack.circuit_price(0, catalogue), "forty_percent_cheaper": rack.circuit_price(0.4, catalogue)}
    priced = limits["parity"] is not None
    straw = model.chassis(nodes, catalogue=catalogue)
    saved = 1 - watts["shoal"] / watts["packet"]
    fitted = catalogue.fitted(rack.parts() + rack.packet_parts())
    prices = {
        "shoal": catalogue.price(rack.parts()),
        "packet": catalogue.price(rack.packet_parts()),
        "currency": catalogue.currency,
    }
    data = {
        "paper": "shoal",
        "nodes": nodes,
        "ports": ports,
        "link_bps": rack.link,
        "switches": {
            "circuit": rack.circuit_switches,
            "packet": rack.packet_switches,
            "leaves": rack.leaves,
            "spines": rack.spines,
        },
        "power_w": watts,
        "power_saved": saved,
        "price": prices,
        "cost_ratio": ratio,
        "circuit_price_for": limits,
        "buffers_bytes": {"total": rack.buffer_total, "on_chip": rack.buffer_on_chip},
        "state_bits": rack.state_bits,
        "most_nodes": ports * ports // 2,
        "chassis": straw,
        "fitted": fitted,
    }
    _plot(common, "shoal", nodes=nodes, ports=ports, catalogue=shelf)
    state = sum(rack.state_bits.values())
    _emit(
        common,
        data,
        _list(
            f"Shoal rack of {nodes:,} nodes, {show_rate(rack.link)} each",
            [
                (
                    "circuit switches",
                    f"{rack.circuit_switches} ({planes} x {rack.leaves} leaves and {rack.spines} spines)",
                ),
                ("packet switches", f"{rack.packet_switches} for the packet network of {show_rate(rack.port)} each"),
                ("power, Shoal", _number(watts["shoal"], "W")),
                ("power, packet network", _number(watts["packet"], "W")),
                ("power saved", f"{100 * saved:.1f} %"),
                ("cost over packet network", None if ratio is None else f"{ratio:.3f}"),
                *(
                    (name, f"{100 * limits[key]:.1f} % of a packet switch")
                    for name, key in (("same cost at", "parity"), ("40 % cheaper at", "forty_percent_cheaper"))
                    if priced
                ),
                ("buffer per node", show_size(rack.buffer_total)),
                ("buffer on chip", show_size(rack.buffer_on_chip)),
                ("state on chip", show_size(state // 8)),
                ("most nodes", f"{ports * ports // 2:,} with {ports}-port switches in two stages"),
                ("strawman", f"{straw['chassis']} chassis switches, {straw['watts']:,} W, {straw['rack_units']} RU"),
            ],
            [f"fitted: {line}" for line in fitted],
        ),
    )


@app.command
def merchant(
    *,
    ports: int | None = None,
    radix: int | None = None,
    pods: int | None = None,
    line_cards: int | None = None,
    uplink_cards: int | None = None,
    core_cards: int | None = None,
    deploy: Annotated[bool, Parameter(negative="")] = False,
    wiring: str | None = None,
    write_wiring: str | None = None,
    common: Common = COMMON,
):
    """Three packagings of a fat tree of merchant silicon: parts, dollars, watts, space, cables.

    Parameters
    ----------
    ports
        Ports of the full switch, k^3/4.
    radix
        Ports of a switch chip, a multiple of 8; 24 when not given.
    pods
        Pods installed; all when not given.
    line_cards
        Line cards installed in all pods together.
    uplink_cards
        Uplink cards in each pod.
    core_cards
        Core cards installed.
    deploy
        The steps from one pod to the full switch.
    wiring
        Check the cables in this CSV file against the wiring rule.
    write_wiring
        Write the right wiring into this CSV file.
    """
    from weft.models import merchant as model
    from weft.models.cabling import Wiring, fibre

    catalogue = common.shelf(model.CATALOGUE)
    if _tables(common, model, "merchant", catalogue):
        return
    if ports is not None:
        if radix is not None:
            raise BadInput(f"ports must be given without radix, not with radix {radix}")
        radix = model.Switch.of_ports(ports).radix
    radix = 24 if radix is None else radix
    cards: dict[str, Any] = {
        "pods": pods,
        "line_cards": line_cards,
        "uplink_cards": uplink_cards,
        "core_cards": core_cards,
    }
    nets = {n: model.Switch(radix=radix, network=n, **cards) for n in model.NETWORKS}
    if write_wiring is not None:
        Wiring.right(radix, nets[3].pods, core_cards).save(write_wiring)
    if wiring is not None:
        _wiring(common, Wiring.load(wiring, radix, core_cards), nets[3].link)
        return
    _plot(common, "merchant", radix=radix, catalogue=catalogue)
    if deploy:
        _deploy(common, model, radix, catalogue)
        return
    any_net = nets[3]
    data = {
        "paper": "merchant",
        "radix": radix,
        "ports": any_net.ports,
        "pods": any_net.pods,
        "midplane": any_net.midplane,
        "bisection_bps": any_net.bisection,
        "oversubscription": any_net.oversubscription,
        "networks": [],
    }
    columns = []
    for n, net in nets.items():
        bill = net.chips_and_optics()
        cabling = fibre(net, chassis=4 * radix**2 / 4 / model.POD_PORTS)
        data["networks"].append(
            {
                "network": n,
                "name": model.NETWORKS[n],
                "parts": dict(net.parts()),
                "dollars": catalogue.price(bill),
                "watts": catalogue.watts(bill),
                "rack_units": catalogue.rack_units(net.boxes()),
                "long_cables": net.long_cables,
                "switch_links": net.switch_links,
                "cabling": cabling,
            }
        )
        columns.append(
            (
                catalogue.price(bill),
                catalogue.watts(bill),
                catalogue.rack_units(net.boxes()),
                net.long_cables,
                cabling["metres"],
                cabling["kg"],
                *(bill[part] for part in _CHIPS),
            )
        )
    notes = [f"fitted: {line}" for line in catalogue.fitted(nets[1].chips_and_optics())]
    if radix != 24:
        notes.append(
            f"assumed: a {radix}-port chip at the price and watts of a 24-port ASIC (say --price ASIC=... and "
            "--watts ASIC=...), boxes as dense as 24-port ones"
        )
    notes.append("assumed: a floor of 10 racks in a row, hosts of one unit, 1.5 m up to the tray")
    notes.append("dollars and watts: chips and optics only, as the paper counts")
    data["notes"] = notes
    from weft.models.tables import columns as align
    from weft.models.tables import show

    names = ("dollars", "watts", "rack units", "long cables", "metres of them", "kg of fibre", *_CHIPS)
    lines = [(name, *(show(column[i]) for column in columns)) for i, name in enumerate(names)]
    head = (
        f"merchant silicon, {radix}-port chips: {any_net.ports:,} ports in {any_net.pods} pods, "
        f"{show_rate(int(any_net.bisection))} of bisection, oversubscribed {any_net.oversubscription:g}:1"
    )
    text = align(("", *(f"{n}: {what}" for n, what in model.NETWORKS.items())), lines, right=(1, 2, 3))
    _emit(common, data, "\n".join([head, "", text, "", *notes]))


_CHIPS = ("ASIC", "CPU", "PHY", "SFP+", "EEP", "QSFP")


def _deploy(common, model, radix, catalogue):
    from weft.models.tables import columns as align
    from weft.models.tables import show

    steps, before = [], None
    for step in model.growth(radix):
        bill = step.chips_and_optics()
        steps.append(
            {
                "pods": step.pods,
                "ports": step.ports,
                "line_cards": step.line_cards,
                "uplink_cards": step.uplink_cards,
                "core_cards": step.core_cards,
                "core_modules": step.modules,
                "oversubscription": step.oversubscription,
                "bisection_bps": step.bisection,
                "cables": step.long_cables,
                "cables_to_move": 0 if before is None else model.moved_cables(before, step),
                "dollars": catalogue.price(bill),
                "watts": catalogue.watts(bill),
                "rack_units": catalogue.rack_units(step.boxes()),
            }
        )
        before = step
    shown = (
        "pods",
        "ports",
        "core_cards",
        "core_modules",
        "oversubscription",
        "cables",
        "cables_to_move",
        "dollars",
        "watts",
        "rack_units",
    )
    text = align(
        [name.replace("_", " ") for name in shown],
        [[show(step[name]) for name in shown] for step in steps],
        right=range(len(shown)),
    )
    _emit(common, {"paper": "merchant", "radix": radix, "steps": steps}, text)


def _wiring(common, wiring, link):
    report = wiring.check()
    lost, left = report.lost * link, report.bisection * link
    data = {
        "faults": report.faults,
        "harmless": report.harmless,
        "lost_bps": lost,
        "bisection_bps": left,
        "exact": report.exact,
        "worst_split": report.left,
    }
    bound = "" if report.exact else "at least "
    words = [*report.faults, *report.harmless] or ["no fault found"]
    words.append(f"bisection in one direction: {show_rate(left)}, lost: {bound}{show_rate(lost)}")
    _emit(common, data, "\n".join(words))


@app.command
def stardust(
    *,
    hosts: int = 10_240,
    bundle: int = 4,
    hosts_per_tor: int = 40,
    lanes: int = 256,
    host_lanes: int = 1,
    module: int | None = None,
    tiers: int | None = None,
    radix: int = 256,
    uplinks: int = 40,
    up: int | None = None,
    common: Common = COMMON,
):
    """Devices, links, cost, power and memory of a Stardust network beside a fat tree.

    With --tiers, the elements of a full tree instead (Appendix A), of any radix, bundle and over-subscription.

    Parameters
    ----------
    hosts
        Hosts to connect.
    bundle
        Lanes in a port of the fat tree it is compared with.
    hosts_per_tor
        Hosts to an edge switch.
    lanes
        Serial lanes of 25 Gb/s of a device.
    host_lanes
        Lanes of a host's link.
    module
        Lanes carried by one of Stardust's optical modules.
    tiers
        Tiers of a full tree, to count its elements.
    radix
        Ports of a switch of that tree.
    uplinks
        Uplink ports of its edge switches.
    up
        Ports that a switch below the top gives to uplinks; half when not given.
    """
    from weft.models import stardust as model
    from weft.models.tables import columns as align
    from weft.models.tables import show

    catalogue = common.shelf(model.CATALOGUE)
    if _tables(common, model, "stardust", catalogue):
        return
    if tiers is not None:
        half: dict[str, Any] = {} if up is None else {"up": up}
        _elements(common, model.Tree(radix=radix, uplinks=uplinks, bundle=bundle, tiers=tiers, **half), hosts_per_tor)
        return
    shape: dict[str, Any] = {"hosts": hosts, "hosts_per_tor": hosts_per_tor, "lanes": lanes, "host_lanes": host_lanes}
    optics: dict[str, Any] = {} if module is None else {"module": module}
    nets = {
        "Stardust": model.Network(**optics, **shape),
        f"fat tree, bundle {bundle}": model.Network(stardust=False, bundle=bundle, **shape),
    }
    found = {}
    for name, net in nets.items():
        shelf = net.catalogue(catalogue)
        found[name] = {
            "tors": net.tors,
            "tiers": net.tiers,
            "devices": net.devices,
            "links": net.links,
            "dollars": shelf.price(net.parts()),
            "relative_power": net.relative_power,
            "watts": shelf.watts(net.device_parts()),
            "parts": dict(net.parts()),
        }
    ratio = model.against(
        hosts, bundle, catalogue, module=module, hosts_per_tor=hosts_per_tor, lanes=lanes, host_lanes=host_lanes
    )
    tiers = nets["Stardust"].tiers
    reach = model.Reachability(
        hosts=hosts, tiers=tiers, hosts_per_adapter=hosts_per_tor, delays=(50_000,) + (500_000,) * (2 * tiers - 2)
    )
    limits = {
        "fabric_element_memory_bytes": model.element_memory(links=lanes),
        "reachability_table_bits": model.reachability_table_bits(nets["Stardust"].tors, lanes),
        "lookup_bits": model.lookup_bits(hosts, lanes, hosts_per_tor),
        "voq_bytes": model.voq_bytes(hosts),
        "recovery_us": reach.recovery / us,
        "reachability_overhead": reach.overhead,
        "least_credit_bytes": model.least_credit(),
    }
    ours, theirs = found.values()
    data = {
        "paper": "stardust",
        **shape,
        "bundle": bundle,
        "networks": found,
        "ratio": {"cost": ratio["cost"], "power": ratio["power"], "fabric_power": ratio["fabric_power"]},
        **limits,
    }
    _plot(common, "stardust", catalogue=catalogue)
    names = ("tors", "tiers", "devices", "links", "dollars", "relative_power", "watts")
    text = align(
        ("", *found), [(name.replace("_", " "), show(ours[name]), show(theirs[name])) for name in names], right=(1, 2)
    )
    notes = [] if ours["watts"] is not None else ["watts: none are printed; say --watts switch=..."]
    _emit(
        common,
        data,
        "\n".join(
            [
                f"{hosts:,} hosts of {show_rate(host_lanes * 25 * Gbps)}, {hosts_per_tor} to an edge switch",
                "",
                text,
                "",
                _list(
                    "Stardust",
                    [
                        ("cost over the fat tree", f"{ratio['cost']:.3f}"),
                        ("power over the fat tree", f"{ratio['power']:.3f} (a Fabric Element at its area ratio)"),
                        ("fabric power alone", f"{ratio['fabric_power']:.3f}"),
                        ("least credit", f"{limits['least_credit_bytes']:g} B for 10 Tb/s, one every two clocks"),
                        ("recovery from a failed link", f"{limits['recovery_us']:.1f} us"),
                        ("Fabric Element memory", show_size(limits["fabric_element_memory_bytes"])),
                        ("reachability table", show_size(limits["reachability_table_bits"] // 8)),
                        ("VOQs to every host", show_size(limits["voq_bytes"])),
                    ],
                    notes,
                ),
            ]
        ),
    )


def _elements(common, tree, hosts_per_tor):
    data = {
        "paper": "stardust",
        "radix": tree.radix,
        "uplinks": tree.uplinks,
        "bundle": tree.bundle,
        "tiers": tree.tiers,
        "up": tree.up,
        "tors": tree.tors,
        "switches": tree.switches,
        "switches_per_tor": tree.switches_per_tor,
        "link_bundles": tree.bundles,
        "links_per_tor": tree.links_per_tor,
        "hosts": tree.hosts(hosts_per_tor),
        "oversubscription": tree.oversubscription,
    }
    _emit(
        common,
        data,
        _list(
            f"full tree of {tree.radix}-port switches, tiers above the edge: {tree.tiers}",
            [
                (name.replace("_", " "), _number(data[name]))
                for name in (
                    "tors",
                    "switches",
                    "switches_per_tor",
                    "link_bundles",
                    "links_per_tor",
                    "hosts",
                    "oversubscription",
                )
            ],
        ),
    )


@app.command
def fpga(
    *,
    design: str = "smislip",
    ports: int = 64,
    rate: str = "50Gbps",
    width: int | None = None,
    depth: int = 64,
    voq_depth: int = 16,
    speedup: int = 4,
    fifo_factor: float | None = None,
    clock: float | None = None,
    common: Common = COMMON,
):
    """Memory and latency of a crossbar in gates, and the FPGAs that it fits.

    Parameters
    ----------
    design
        islip, smislip or gcq.
    ports
        Ports of the switch.
    rate
        Line rate of a port.
    width
        Bits of the data path; what carries the rate at 40 MHz when not given.
    depth
        Cells to a queue, or to each queue's share of a shared memory.
    voq_depth
        Cells to an input queue of gcq.
    speedup
        Ports of a memory-based switch of gcq.
    fifo_factor
        Memory that the FIFO generator takes over what it holds; fitted when not given.
    clock
        Clock in MHz; the highest of Table V where it was built, 40 otherwise.
    """
    from weft.models import fpga as model
    from weft.models.limits import within
    from weft.models.tables import columns as align

    catalogue = common.shelf(model.CATALOGUE)
    if _tables(common, model, "fpga", catalogue):
        return
    given: dict[str, Any] = {"fifo_factor": fifo_factor, "width": width}
    given = {name: value for name, value in given.items() if value is not None}
    built = model.Design(
        design=design, ports=ports, rate=parse_rate(rate), depth=depth, voq_depth=voq_depth, speedup=speedup, **given
    )
    if clock is not None:
        within("clock", clock, 0.001, 1_000_000, " MHz")
    hertz, origin = (clock * 1e6, "given") if clock else (built.measured_clock, "highest of Table V")
    if hertz is None:
        hertz, origin = model.TARGET, "target of Table II"
    fits = {name: built.fits(part) for name, part in catalogue.parts.items()}
    most = {name: model.most_ports(design, built.rate, part) for name, part in catalogue.parts.items()}
    latency = built.latency_ns(hertz)
    notes = ["fits: by memory, with the margins of section V-C; timing and congestion are not modelled"]
    if design != "islip":
        notes.append(
            "fitted: cycles of eqs. (6) and (7)"
            + (", FIFO factor 2.70406" if design == "gcq" and fifo_factor is None else "")
        )
    data = {
        "paper": "fpga",
        "design": design,
        "ports": ports,
        "rate_bps": built.rate,
        "width": built.width,
        "memory_bits": built.memory_bits,
        "memory": {k: float(v) for k, v in built.memory.items()},
        "latency_ns": latency,
        "clock_hz": hertz,
        "clock": origin,
        "bandwidth_bps": built.bandwidth,
        "fits": fits,
        "most_ports": most,
        "implemented": built.outcome,
        "notes": notes,
    }
    _plot(common, "fpga", rate=built.rate, catalogue=catalogue)
    lines = [
        (name, f"{model.memory_of(part) / 1e6:.1f}", "yes" if fits[name] else "no", str(most[name]))
        for name, part in catalogue.parts.items()
    ]
    text = _list(
        f"{design}, {ports} ports of {show_rate(built.rate)}, {built.width} bit",
        [
            ("memory", f"{built.memory_bits / 1e6:.3f} Mb"),
            *((f"  {name}", f"{float(bits) / 1e6:.3f} Mb") for name, bits in built.memory.items()),
            ("latency", None if latency is None else f"{latency:.1f} ns at {hertz / 1e6:g} MHz ({origin})"),
            ("bandwidth", show_rate(built.bandwidth)),
            ("on the XCVU9P (Table IV)", built.outcome),
        ],
    )
    _emit(
        common,
        data,
        "\n".join([text, "", align(("device", "Mb", "fits", "most ports"), lines, right=(1, 3)), "", *notes]),
    )


@app.command
def tdma(
    *,
    slot: str = "300us",
    guard: str = "15us",
    inside: Annotated[bool, Parameter(negative="")] = False,
    hosts: int = 24,
    link: str = "10Gbps",
    nics: int = 8,
    hosts_per_nic: int = 24,
    common: Common = COMMON,
):
    """Guard efficiency, control overhead, slot choice and controllers of TDMA over Ethernet.

    Parameters
    ----------
    slot
        Time in which a host may send.
    guard
        Silence that keeps slots apart.
    inside
        The guard is part of the slot.
    hosts
        Hosts that face each other in turn.
    link
        Rate of a host's link.
    nics
        NICs of a controller.
    hosts_per_nic
        Hosts that one of them reaches.
    """
    from weft.models import tdma as model

    if _tables(common, model, "tdma", common.shelf(model.CATALOGUE)):
        return
    slots = model.Slots(slot=parse_time(slot), guard=parse_time(guard), inside=inside, link=parse_rate(link))
    bill = model.parts(hosts, hosts_per_nic, nics)
    longest = model.longest_pause(slots.link)
    choice = {f"{share:g}": float(model.slot_for(share, slots.guard, inside)) for share in (0.9, 0.95, 0.99)}
    data = {
        "paper": "tdma",
        "slot_ps": slots.slot,
        "guard_ps": slots.guard,
        "cycle_ps": slots.cycle,
        "efficiency": slots.efficiency,
        "block_bytes": slots.block,
        "control_bps": slots.control_rate,
        "control_overhead": slots.control_overhead,
        "wait_ps": float(slots.wait(hosts)),
        "slot_ps_for_efficiency": choice,
        "hosts_per_controller": model.controller_hosts(nics, hosts_per_nic),
        "frames_per_nic_in_guard": float(model.frames_in(slots.guard, slots.link)),
        "pause_quantum_ps": model.quantum(slots.link),
        "longest_pause_ps": longest,
        "parts": dict(bill),
    }
    _plot(common, "tdma", guard=slots.guard, hosts=hosts)
    _emit(
        common,
        data,
        _list(
            f"slots of {show_time(slots.slot)}, guards of {show_time(slots.guard)} "
            f"{'inside' if inside else 'between'} them",
            [
                ("efficiency", f"{100 * slots.efficiency:.2f} %"),
                ("bytes in a slot", show_size(int(slots.block))),
                (
                    "control traffic",
                    f"{slots.control_rate / 1e6:.2f} Mb/s per host, which costs "
                    f"{100 * slots.control_overhead:.3f} % of a link",
                ),
                ("longest wait", f"{float(slots.wait(hosts)) / ms:.3f} ms among {hosts} hosts"),
                *((f"slot for {100 * float(share):g} %", show_time(int(ps))) for share, ps in choice.items()),
                ("hosts per controller", f"{data['hosts_per_controller']} ({nics} NICs of {hosts_per_nic})"),
                (
                    "frames per NIC in a guard",
                    f"{data['frames_per_nic_in_guard']:.0f}, the wire's bound on hosts per NIC",
                ),
                ("controllers", f"{bill['fabric manager']} with {bill['fabric manager NIC']} NICs for {hosts} hosts"),
                ("pause quantum", f"{data['pause_quantum_ps'] / 1000:g} ns, longest pause {longest / ms:.4g} ms"),
            ],
        ),
    )


@app.command
def compare(*, hosts: int = 512, common: Common = COMMON):
    """Every fabric that can serve so many hosts, side by side.

    Parameters
    ----------
    hosts
        Hosts to serve.
    """
    from weft.models.compare import MEASURES
    from weft.models.compare import compare as side_by_side
    from weft.models.parts import Catalogue
    from weft.models.tables import columns as align
    from weft.models.tables import show

    if common.table is not None or common.price or common.watts:
        raise BadInput("compare must be given hosts, catalogue, plot or json, not table, price or watts")
    extra = None
    for path in common.catalogue or ():
        mine = Catalogue.load(path)
        extra = mine if extra is None else extra | mine
    entries, cannot = side_by_side(hosts, extra)
    _plot(common, "compare", entries=entries)
    notes, lines = [], []
    for entry in entries:
        marks = []
        for note in entry.notes:
            if note not in notes:
                notes.append(note)
            marks.append(str(notes.index(note) + 1))
        mark = " ".join(marks)
        lines.append(
            (
                entry.name,
                show_rate(entry.link),
                show_rate(int(entry.bisection)),
                *("" if getattr(entry, what) is None else show(getattr(entry, what)) for what in MEASURES),
                mark,
            )
        )
    head = ("", "link", "bisection", "dollars", "watts", "rack units", "cables", "notes")
    text = [f"{hosts:,} hosts; a blank is what nobody has printed", "", align(head, lines, right=range(1, 7))]
    for title, share in (("per host", "per_host"), ("per Gb/s of bisection", "per_gbps")):
        rows = [
            (
                entry.name,
                *(
                    "" if getattr(entry, share)(what) is None else f"{getattr(entry, share)(what):.4g}"
                    for what in MEASURES
                ),
            )
            for entry in entries
        ]
        text += ["", title, "", align(("", "dollars", "watts", "rack units", "cables"), rows, right=range(1, 5))]
    text += ["", *(f"[{i}] {note}" for i, note in enumerate(notes, 1))]
    text += [f"{name}: cannot serve {hosts:,} hosts, {reason}" for name, reason in cannot.items()]
    text.append("prices are of different years and rates: compare within a paper first")
    data = {"hosts": hosts, "fabrics": [entry.as_json() for entry in entries], "cannot": cannot}
    _emit(common, data, "\n".join(text))


def main(tokens=None) -> int:
    """Run `weft cost` by itself, until the top-level command does."""
    try:
        app(tokens, result_action="return_value")
    except WeftError as error:
        print(f"weft cost: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
