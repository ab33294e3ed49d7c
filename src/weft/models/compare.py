"""Every fabric that can serve so many hosts, side by side, with blanks for what nobody has printed."""

from dataclasses import dataclass

from weft.errors import BadPart
from weft.models import fpga, merchant, shoal, stardust, tables, tdma
from weft.models.limits import within
from weft.models.parts import NAMES, Catalogue
from weft.units import Gbps

_NICS = "watts: the hosts' NICs are counted, which the other papers leave out"
MEASURES = ("dollars", "watts", "rack_units", "cables")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One fabric sized for the hosts asked for. None is what nobody has printed, and `notes` says so."""

    name: str
    hosts: int
    link: int  # b/s of a host
    bisection: float  # b/s, both directions, as far as it serves hosts
    dollars: float | None = None
    watts: float | None = None
    rack_units: float | None = None
    cables: int | None = None  # between switches; those to hosts left out
    notes: tuple[str, ...] = ()

    def per_host(self, what: str) -> float | None:
        value = getattr(self, what)
        return None if value is None else value / self.hosts

    def per_gbps(self, what: str) -> float | None:
        """Per Gb/s of bisection."""
        value = getattr(self, what)
        return None if value is None else value / (self.bisection / Gbps)

    def as_json(self) -> dict:
        totals = {what: getattr(self, what) for what in MEASURES}
        return {
            "name": self.name,
            "hosts": self.hosts,
            "link_bps": self.link,
            "bisection_bps": self.bisection,
            **totals,
            "per_host": {what: self.per_host(what) for what in MEASURES},
            "per_gbps": {what: self.per_gbps(what) for what in MEASURES},
            "notes": list(self.notes),
        }


def compare(hosts: int, extra: Catalogue | None = None) -> tuple[list[Entry], dict[str, str]]:
    """Fabrics that serve `hosts`, and for those that cannot the reason.

    `extra` goes on top of each paper's own catalogue; only prices in USD are summed.
    """
    within("hosts", hosts, 2)
    if extra is not None:
        _check(extra)
    entries, cannot = [], {}
    for build in (_shoal, _packet, _merchant, _stardust, _fat_tree, _fpga, _tdma):
        try:
            entries += build(hosts, extra)
        except _TooMany as reason:
            cannot[reason.name] = str(reason)
    return entries, cannot


def _check(extra):
    if extra.prices and extra.currency != "USD":
        raise BadPart(f"currency of {extra.title} must be USD in a comparison, not {extra.currency}")
    shelves = {part for name in NAMES for part in Catalogue.named(name).parts}
    for part in extra.parts:
        if part not in shelves:
            raise BadPart(f"part {part!r} of {extra.title} must be in some paper's catalogue, not in none")


class _TooMany(Exception):
    def __init__(self, name, reason):
        super().__init__(reason)
        self.name = name


def _shelf(name, extra):
    catalogue = Catalogue.named(name)
    if extra is None:
        return catalogue
    known = {part: extra.parts[part] for part in extra.parts if part in catalogue.parts}
    if not known:
        return catalogue
    return catalogue | Catalogue(title=extra.title, parts=known, currency=extra.currency)


def _sums(catalogue, priced, boxes=None, powered=None):
    """Dollars, watts and rack units of bills, and a note for each that cannot be summed."""
    found, notes = {}, []
    for what, bill, field in (
        ("dollars", priced, "price"),
        ("watts", powered or priced, "watts"),
        ("rack_units", boxes or priced, "rack_units"),
    ):
        missing = catalogue.unknown(bill, field)
        if what == "dollars" and catalogue.currency != "USD":
            missing = list(bill)
        if missing:
            notes.append(f"{what.replace('_', ' ')}: not printed for {', '.join(missing)}")
        else:
            found[what] = getattr(catalogue, field)(bill)
    notes += [f"fitted, {line}" for line in catalogue.fitted(priced) if "dollars" in found]
    return found, notes


def _rack(hosts):
    if hosts > 64 * 64 // 2:
        raise _TooMany("Shoal and its packet network", "64-port switches in two stages end at 2,048 hosts")
    return shoal.PricedRack(nodes=hosts)


def _shoal(hosts, extra):
    rack = _rack(hosts)
    found, notes = _sums(rack.catalogue(_shelf(shoal.CATALOGUE, extra)), rack.parts())
    return [
        Entry(
            name="Shoal",
            hosts=hosts,
            link=rack.link,
            bisection=hosts * rack.link / 2,
            cables=rack.planes * rack.leaves * rack.ports // 2,
            **found,
            notes=(*notes, _NICS, "bisection: half of the links' rate, the other half carries detours"),
        )
    ]


def _packet(hosts, extra):
    rack = _rack(hosts)
    found, notes = _sums(_shelf(shoal.CATALOGUE, extra), rack.packet_parts())
    return [
        Entry(
            name="packet Clos (Shoal's rival)",
            hosts=hosts,
            link=rack.port,
            bisection=hosts * rack.port,
            cables=rack.leaves * rack.ports // 2,
            **found,
            notes=(*notes, _NICS),
        )
    ]


def _merchant(hosts, extra):
    radix = max(24, merchant.radix_for(hosts))
    entries = []
    for network, what in merchant.NETWORKS.items():
        switch = merchant.Switch.for_hosts(hosts, radix, network=network)
        if radix == 24:
            found, notes = _sums(_shelf(merchant.CATALOGUE, extra), switch.chips_and_optics(), boxes=switch.boxes())
            notes.append("dollars and watts: chips and optics only, as the paper counts")
        else:
            found, notes = {}, [f"dollars, watts and rack units: only 24-port chips are printed, these have {radix}"]
        cables = switch.switch_links if network == 1 else switch.long_cables
        entries.append(
            Entry(
                name=f"merchant {network} ({what})",
                hosts=hosts,
                link=switch.link,
                cables=cables,
                bisection=hosts * switch.link,
                **found,
                notes=tuple(notes),
            )
        )
    return entries


def _optical(hosts, extra, name, **more):
    net = stardust.Network(hosts=hosts, **more)
    found, notes = _sums(
        net.catalogue(_shelf(stardust.CATALOGUE, extra)),
        net.parts(),
        boxes=net.device_parts(),
        powered=net.device_parts(),
    )
    return [
        Entry(
            name=name,
            hosts=hosts,
            link=net.lane,
            bisection=net.bisection,
            cables=net.parts()["fibre 10 m"] + net.parts()["fibre 100 m"],
            **found,
            notes=tuple(notes),
        )
    ]


def _stardust(hosts, extra):
    return _optical(hosts, extra, "Stardust")


def _fat_tree(hosts, extra):
    return _optical(hosts, extra, "fat tree, bundle 4 (Stardust's rival)", stardust=False, bundle=4)


def _fpga(hosts, extra):
    device = Catalogue.named(fpga.CATALOGUE)[fpga.TARGET_DEVICE]
    entries = []
    for design in ("smislip", "gcq"):
        ports = -(-hosts // 4) * 4
        rates = [
            rate for rate in (50, 25, 10) if fpga.Design(design=design, ports=ports, rate=rate * Gbps).fits(device)
        ]
        if rates:
            link = rates[0] * Gbps
            entries.append(
                Entry(
                    name=f"FPGA {design} ({device.name})",
                    hosts=hosts,
                    link=link,
                    cables=0,
                    bisection=hosts * link,
                    notes=(
                        "dollars, watts and rack units: not printed",
                        f"expected to fit by memory; the largest built had {_largest_built()} ports",
                    ),
                )
            )
    if not entries:
        most = max(fpga.most_ports(design, 10 * Gbps, device) for design in ("smislip", "gcq"))
        raise _TooMany(
            "FPGA",
            f"one {device.name} ends at {most} ports of 10 Gb/s by the memory model, and the "
            f"largest built had {_largest_built()}",
        )
    return entries


def _largest_built():
    """Most ports of a design that Table IV reports as implemented."""
    return max(
        int(row["name"].split(", ")[1].split()[0])
        for row in tables.printed("fpga")["IV"]["row"]
        if row["printed"] == "ok"
    )


def _tdma(hosts, extra):
    slots, bill = tdma.Slots(), tdma.parts(hosts)
    notes = (
        f"an addition to an Ethernet (controllers: {bill['fabric manager']}, their NICs: "
        f"{bill['fabric manager NIC']}): dollars, watts, rack units and cables are those of the Ethernet below",
    )
    return [
        Entry(
            name="TDMA over Ethernet",
            hosts=hosts,
            link=slots.link,
            bisection=hosts * slots.link * slots.efficiency,
            notes=notes,
        )
    ]
