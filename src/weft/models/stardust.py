"""What a Stardust network would cost, beside a fat tree of packet switches (NSDI '19, §2, §7, App. A to E).

Every number may be an array (a sweep over hosts, bundles or sizes); then so is every answer.
"""

from dataclasses import dataclass, fields

import numpy as np

from weft.errors import BadInput, require
from weft.models import tables
from weft.models.limits import within
from weft.models.parts import Bill, Catalogue
from weft.units import Gbps, Rate, Size, Tbps, Time, ns, param, us

CATALOGUE = "stardust-2018"
AREA_RATIO = 0.666  # §7: silicon area per Tb/s, Fabric Element over packet switch; the paper's cost ratio is 0.67
GAP = 20  # App. B: preamble, delimiter and inter-frame gap in bytes
BUS = 256  # §2.3: bytes that a pipeline takes in a clock
CELL_PAYLOAD = 241.5  # fitted to the 41 % and 18 % of §2.3; the size of a cell's header is not printed
MOST_TIERS = 8
MOST_HOSTS = 10**12
VOQ_BYTES = 32  # App. C: 128K VOQs take about 4 MB


# ---------------------------------------------------------------- elements of a fat tree (App. A, Table 2)


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A fat tree of `tiers` tiers above its edge switches, fully built. Printed symbols are in brackets.

    All but `tiers` may be arrays.
    """

    radix: int = param(256, "switch radix")  # [k]
    uplinks: int = param(40, "number of ToR uplink ports")  # [t]
    bundle: int = param(1, "number of links in a link-bundle")  # [l]
    tiers: int = param(1, "tiers of the fabric above the edge")  # [n]
    up: int = param(None, "uplink ports of a switch below the top; half its ports when not given")  # [u]

    def __post_init__(self):
        within("radix", self.radix, 2, 1_000_000)
        within("uplinks", self.uplinks, 1)
        within("bundle", self.bundle, 1)
        within("tiers", self.tiers, 1, MOST_TIERS)
        if self.up is None:
            require(np.all(np.asarray(self.radix) % 2 == 0), "radix", "even", self.radix)
            object.__setattr__(self, "up", self.radix // 2)
        else:
            require(
                np.all((np.asarray(self.up) >= 1) & (np.asarray(self.up) < self.radix)),
                "up",
                f"between 1 and {self.radix - 1}",
                self.up,
            )

    @property
    def tors(self):
        """Edge switches: k^n / 2^(n-1) when half of the ports go up, k (k-u)^(n-1) in general."""
        return self.radix * (self.radix - self.up) ** (self.tiers - 1)

    @property
    def switches(self):
        """Switches above the edge: (2n-1) t k^(n-1) / 2^(n-1) when half of the ports go up."""
        down, up, n = self.radix - self.up, self.up, self.tiers
        below = sum(self.radix * down ** (n - 1 - tier) * up ** (tier - 1) for tier in range(1, n))
        return self.uplinks * (below + up ** (n - 1))

    @property
    def switches_per_tor(self):
        """Switches above the edge for each edge switch."""
        return self.switches / self.tors

    @property
    def bundles(self):
        """Link bundles of all layers: n t k^n / 2^(n-1) when half of the ports go up."""
        down, up, n = self.radix - self.up, self.up, self.tiers
        return self.uplinks * sum(self.radix * down ** (n - 1 - layer) * up**layer for layer in range(n))

    @property
    def links_per_tor(self):
        """Single links of all layers for each edge switch."""
        return self.bundles * self.bundle / self.tors

    @property
    def oversubscription(self):
        """Bandwidth into the fabric over that through its top."""
        return ((self.radix - self.up) / self.up) ** (self.tiers - 1)

    def hosts(self, per_tor=40):
        """Hosts when each edge switch has `per_tor`."""
        return self.tors * per_tor


@dataclass(frozen=True, kw_only=True)
class Network:
    """A data center network for so many hosts, of Fabric Elements or of packet switches (§7, App. D).

    A device has a fixed number of serial lanes; bundling `bundle` of them into a port divides its radix.
    Stardust never bundles. Edge switches are not oversubscribed: as many lanes up as hosts need.
    """

    hosts: int = param(10_240, "hosts to connect")
    stardust: bool = param(True, "Fabric Adapters and Elements; packet switches otherwise")
    bundle: int = param(1, "lanes in a port of the fabric; always 1 for Stardust")
    lanes: int = param(256, "serial lanes of a device")
    lane: Rate = param(25 * Gbps, "rate of a lane")
    hosts_per_tor: int = param(40, "hosts to an edge switch")
    host_lanes: int = param(1, "lanes of a host's link")
    module: int = param(None, "lanes carried by one optical module, at most 4; the bundle when not given")

    def __post_init__(self):
        within("hosts", self.hosts, 1, MOST_HOSTS)
        bundle = np.asarray(self.bundle)
        require(np.all(np.isin(bundle, (1, 2, 4, 8))), "bundle", "1, 2, 4 or 8", self.bundle)
        require(not self.stardust or np.all(bundle == 1), "bundle", "1 in a Stardust fabric", self.bundle)
        within("lanes", self.lanes, 16, 1_000_000)
        require(self.lanes % 16 == 0, "lanes", "a multiple of 16", self.lanes)
        within("hosts_per_tor", self.hosts_per_tor, 1, 1_000_000)
        within("host_lanes", self.host_lanes, 1, 1000)
        if self.module is None:
            object.__setattr__(self, "module", np.minimum(bundle, 4)[()])  # no larger one is priced
        require(np.all(np.isin(np.asarray(self.module), (1, 2, 4))), "module", "1, 2 or 4 lanes", self.module)
        reach = float(np.min(self.radix)) ** MOST_TIERS / 2 ** (MOST_TIERS - 1)
        require(np.max(self.tors) <= reach, "hosts", f"at most what {MOST_TIERS} tiers connect", self.hosts)

    @property
    def tors(self):
        """Edge switches."""
        return _whole(-(-np.asarray(self.hosts) // self.hosts_per_tor))

    @property
    def radix(self):
        """Ports of a device."""
        return self.lanes // self.bundle

    @property
    def uplinks(self):
        """Ports up from an edge switch."""
        return -(-self.hosts_per_tor * self.host_lanes // self.bundle)

    @property
    def tiers(self):
        """Fewest tiers that connect all edge switches."""
        tiers = np.ones(np.broadcast(np.asarray(self.tors), np.asarray(self.radix)).shape, int)
        for n in range(1, MOST_TIERS):
            reach = np.asarray(self.radix, float) ** n / 2 ** (n - 1)
            tiers = np.where(np.asarray(self.tors) > reach, n + 1, tiers)
        return _whole(tiers)

    @property
    def devices(self):
        """Switches above the edge: as many per edge switch as in the full tree, each tier rounded up."""
        ends = np.asarray(self.tors) * self.uplinks  # ports that every layer carries
        below, top = -(-ends * 2 // self.radix), -(-ends // self.radix)
        return _whole((np.asarray(self.tiers) - 1) * below + top)

    @property
    def links(self):
        """Links in the fabric, one for each bundle and layer."""
        return _whole(np.asarray(self.tiers) * self.tors * self.uplinks)

    @property
    def bisection(self):
        """Every host at its rate, both directions."""
        return self.hosts * self.host_lanes * self.lane

    def device_parts(self) -> Bill:
        """The boxes, without optics and cables."""
        if self.stardust:
            return Bill({"Fabric Adapter": self.tors, "Fabric Element": self.devices})
        return Bill({"switch": self.tors + self.devices})

    def parts(self) -> Bill:
        """Boxes, copper to each host, a module at each end of a fibre; 100 m fibres in the last of many tiers."""
        lanes = np.asarray(self.tors) * self.uplinks * self.bundle
        fibres = -(-lanes // self.module)  # in one layer
        tiers = np.asarray(self.tiers)
        long = np.where(tiers > 1, fibres, 0)
        optics = {}
        for size in (1, 2, 4):
            many = np.where(np.asarray(self.module) == size, 2 * tiers * fibres, 0)
            optics[f"{25 * size}G module"] = _whole(many)
        return (
            self.device_parts()
            + Bill(optics)
            + Bill({"copper 2 m": self.hosts, "fibre 100 m": _whole(long), "fibre 10 m": _whole(tiers * fibres - long)})
        )

    @property
    def relative_power(self):
        """Power of the boxes in units of one edge switch; a Fabric Element draws in proportion to its area.

        The paper's power ratio is lost with its Fig. 10(d): the area ratio stands in for it.
        """
        return self.tors + self.devices * (AREA_RATIO if self.stardust else 1)

    def catalogue(self, catalogue: Catalogue | None = None) -> Catalogue:
        """`catalogue` with the watts of Stardust's boxes after those of a switch, if it knows only the latter."""
        catalogue = catalogue or Catalogue.named(CATALOGUE)
        watts = catalogue["switch"].watts
        for name, ratio in (("Fabric Adapter", 1), ("Fabric Element", AREA_RATIO)):
            if watts is not None and catalogue[name].watts is None:
                catalogue = catalogue.change(name, watts=ratio * watts)
        return catalogue


def against(hosts, bundle, catalogue: Catalogue | None = None, **more) -> dict:
    """Stardust over a fat tree of the given bundle: cost (Fig. 11a), power in all and in the fabric (Fig. 11b)."""
    module = more.pop("module", None)
    ours = Network(hosts=hosts, module=module, **more)
    theirs = Network(hosts=hosts, stardust=False, bundle=bundle, **more)
    catalogue = ours.catalogue(catalogue)
    return {
        "tiers": ours.tiers,
        "tiers_fat_tree": theirs.tiers,
        "devices": ours.devices,
        "devices_fat_tree": theirs.devices,
        "links": ours.links,
        "links_fat_tree": theirs.links,
        "cost": catalogue.price(ours.parts()) / catalogue.price(theirs.parts()),
        "power": ours.relative_power / theirs.relative_power,
        "fabric_power": AREA_RATIO * ours.devices / theirs.devices,
    }


# ---------------------------------------------------------------- pipelines and packing (§2.3, App. B, Fig. 3)


def packet_rate(size, bandwidth: Rate = 12_800 * Gbps, gap=GAP):
    """Packets a second of `size` bytes on `bandwidth`."""
    return bandwidth / (8 * (size + gap))


def parallelism(size, bandwidth: Rate = 12_800 * Gbps, clock=1e9, cycles=1, gap=GAP):
    """Packets that must be processed in each clock."""
    return packet_rate(size, bandwidth, gap) / (clock / cycles)


def buses(size, packing: bool, bandwidth: Rate = 12_800 * Gbps, clock=1e9, gap=GAP, payload=BUS):
    """Buses of 256 bytes a device needs (Fig. 3): whole buses for each packet, or cells filled to `payload`."""
    size = np.asarray(size, float)
    if packing:
        return np.full(size.shape, bandwidth / 8 / clock / payload)[()]
    return parallelism(size, bandwidth, clock, gap=gap) * np.ceil(size / BUS)


def packing_gain(size, payload=BUS):
    """How much more a packing device carries than one that pads each packet to whole buses, gaps aside."""
    size = np.asarray(size, float)
    return payload * np.ceil(size / BUS) / size - 1


def needed_clock(size, link: Rate = 40 * Gbps, path=32, extra=0, gap=GAP):
    """Clock in Hz at which a device `path` bytes wide keeps up with packets of `size` (§6.1.1)."""
    return packet_rate(size, link, gap) * (np.ceil(np.asarray(size) / path) + extra)


# ---------------------------------------------------------------- credits, queues, tables, reachability


def least_credit(bandwidth: Rate = 10 * Tbps, clock=1e9, clocks=2) -> float:
    """Bytes of the smallest credit with which a scheduler that issues one every `clocks` fills `bandwidth` (§4.1)."""
    return bandwidth / (clock / clocks) / 8


def queue_overflow(speedup, cells):
    """Chance of `cells` or more in the queue of a link, by the paper's M/D/1 approximation (§4.2.1)."""
    return np.asarray(speedup, float) ** (-2 * np.asarray(cells))


def queue_for(speedup, chance):
    """Cells after which a queue overflows with at most `chance`."""
    return np.ceil(np.log(chance) / (-2 * np.log(np.asarray(speedup, float))))


def element_memory(links=256, cells=128, cell: Size = 256) -> int:
    """Bytes of cell buffer in a Fabric Element (§6.2)."""
    return links * cells * cell


def element_latency(cells=128, cell: Size = 256, link: Rate = 50 * Gbps) -> float:
    """Longest wait in a Fabric Element's queue, in ps."""
    return cells * cell * 8 * (1_000_000 * us) / link


def lookup_bits(hosts, radix=256, per_rack=40) -> dict:
    """Forwarding state of a packet switch and of a Fabric Element (App. C)."""
    pointer = np.log2(radix)
    return {"switch": hosts * (32 + pointer), "element": hosts / per_rack * pointer}


def reachability_table_bits(adapters, links=256):
    """A Fabric Element's table: which of its links lead to each Fabric Adapter (§5.8)."""
    return adapters * links


def voq_bytes(ports, classes=1):
    """Memory for a VOQ to every port and class of the network (§3.3, App. C)."""
    return ports * classes * VOQ_BYTES


@dataclass(frozen=True, kw_only=True)
class Reachability:
    """How news of a failed link spreads (App. E, Table 4). Printed symbols are in brackets."""

    clock: float = 1e9  # [f]
    cycles: int = 10_000  # between messages on a link [c]
    bitmap: int = 128  # Fabric Adapters in a message [b]
    message: Size = 24  # [B]
    hosts_per_adapter: int = 40  # [h]
    hosts: int = 32_000  # [N]
    tiers: int = 2  # [n]
    threshold: int = 3  # updates before a state changes [th]
    link: Rate = 50 * Gbps  # [s]
    delays: tuple[Time, ...] = (50 * ns, 500 * ns, 500 * ns)  # of the hops crossed [pd]; which is which is fitted

    @property
    def interval(self) -> float:
        """Time between messages, in ps [t']."""
        return self.cycles / self.clock * 1e12

    @property
    def messages(self) -> int:
        """Messages for the whole table [M]."""
        return int(-(-self.hosts // (self.hosts_per_adapter * self.bitmap)))

    @property
    def update(self) -> float:
        """Time for one update to reach the last adapter, propagation left out, in ps (§5.9)."""
        return self.interval * self.messages * (2 * self.tiers - 1)

    @property
    def recovery(self) -> float:
        """Time until the last adapter acts, propagation included, in ps."""
        if len(self.delays) != 2 * self.tiers - 1:
            raise BadInput(f"delays must be {2 * self.tiers - 1} for {self.tiers} tiers, not {len(self.delays)}")
        return sum((self.interval + delay) * self.messages * self.threshold for delay in self.delays)

    @property
    def overhead(self) -> float:
        """Share of a link that messages take."""
        return self.message * 8 * self.clock / (self.cycles * self.link)


# ---------------------------------------------------------------- printed beside computed


def table(key: str, catalogue: Catalogue | None = None) -> tables.Table:
    """A printed table of the paper with our numbers beside it: 1 to 4, fig2, fig3, fig10d, fig11 or claims."""
    key = tables.find("stardust", key)
    return tables.beside("stardust", key, _TABLES[key](catalogue or Catalogue.named(CATALOGUE)))


def _table_1(catalogue):
    symbols = {"k": "radix", "t": "uplinks", "l": "bundle"}
    said = {field.name: field.metadata["help"] for field in fields(Tree)}
    return {symbol: said[name] for symbol, name in symbols.items()}


def _table_2(catalogue):
    rows = {}
    for n in (1, 2, 3, 4, 5):
        tree = Tree(radix=8, uplinks=3, bundle=2, tiers=n)
        k, t, links = tree.radix, tree.uplinks, tree.bundle
        high = _tiers(n)
        rows |= {
            f"ToRs, {high}": tree.tors / k**n,
            f"switches, {high}": tree.switches / (t * k ** (n - 1)),
            f"switches per ToR, {high}": tree.switches_per_tor / (t / k),
            f"link bundles, {high}": tree.bundles / (t * k**n),
            f"links per ToR, {high}": tree.links_per_tor / (t * links),
        }
    return rows


def _table_3(catalogue):
    return {
        name: part.price for name, part in catalogue.parts.items() if name not in ("Fabric Adapter", "Fabric Element")
    }


def _table_4(catalogue):
    r = Reachability()
    return {
        "f": r.clock / 1e9,
        "c": r.cycles,
        "t'": r.interval / us,
        "b": r.bitmap,
        "B": r.message,
        "h": r.hosts_per_adapter,
        "N": r.hosts,
        "n": r.tiers,
        "M": r.messages,
        "th": r.threshold,
        "s": r.link / Gbps,
        "pd, first hop": r.delays[0] / ns,
        "pd, other hops": r.delays[1] / ns,
    }


def _fig_2(catalogue):
    rows = {}
    for bundle in (1, 2, 4, 8):
        for tiers in (1, 2, 3):
            rows[f"hosts, bundle {bundle}, {_tiers(tiers)}"] = Tree(radix=256 // bundle, tiers=tiers).hosts() / 1e3
    for hosts in (10_000, 100_000, 1_000_000):
        for bundle in (1, 2, 4, 8):
            net = Network(hosts=hosts, stardust=False, bundle=bundle, host_lanes=2, lane=50 * Gbps)
            rows[f"devices, bundle {bundle}, {hosts:,} hosts"] = net.tors + net.devices
            rows[f"lanes, bundle {bundle}, {hosts:,} hosts"] = net.links * bundle
    return rows


def _fig_3(catalogue):
    rows = {}
    for size in (64, 513, 1025):
        for name, payload in (("padding alone", BUS), ("fitted cell payload", CELL_PAYLOAD)):
            rows[f"gain at {size} B, {name}"] = 100 * packing_gain(size, payload)
        rows[f"gain at {size} B, with gaps"] = 100 * (buses(size, packing=False) / buses(size, packing=True) - 1)
    rows["times fewer buses at 64 B"] = packing_gain(64) + 1
    return rows


def _fig_10d(catalogue):
    bits = lookup_bits(32_000)
    return {"area per Tb/s": 100 * AREA_RATIO, "lookup tables": 100 * bits["element"] / bits["switch"]}


def _fig_11(catalogue):
    rows = {}
    for hosts in (10_240, 100_000, 1_000_000):
        for bundle in (1, 2, 4):
            found = against(hosts, bundle, catalogue)
            best = min(against(hosts, bundle, catalogue, module=m)["cost"] for m in (1, 2, 4))
            rows |= {
                f"cost, {hosts:,} hosts, bundle {bundle}": found["cost"],
                f"cost, {hosts:,} hosts, bundle {bundle}, cheapest modules": best,
                f"power, {hosts:,} hosts, bundle {bundle}": found["power"],
            }
    return rows


def _claims(catalogue):
    r = Reachability()
    ten = against(10_240, 2, catalogue)
    bits = lookup_bits(32_000)
    one, two, three = (Tree(tiers=n).links_per_tor for n in (1, 2, 3))
    costs = np.concatenate([against(np.arange(10_000, 1_000_001, 1000), b, catalogue)["cost"] for b in (2, 4)])
    fails = [str(32 * n + 1) for n in range(2, 47) if needed_clock(32 * n + 1, extra=1) > 200e6]
    share = {65: (150e6 / 4) / packet_rate(65, 40 * Gbps), 97: (150e6 / 5) / packet_rate(97, 40 * Gbps)}
    return {
        "packets/s at 64 B": packet_rate(64) / 1e9,
        "packets/s at 256 B": packet_rate(256) / 1e9,
        "packets in a clock at 64 B": np.ceil(parallelism(64)),
        "packets in a clock at 256 B": np.ceil(parallelism(256)),
        "more than one packet in a clock at 1500 B": "yes" if parallelism(1500) > 1 else "no",
        "parallelism at 64 B": parallelism(64),
        "parallelism at 256 B": parallelism(256),
        "parallelism at 256 B, gap of 8 B": parallelism(256, gap=8),
        **{
            f"scale without bundles of 8, {_tiers(n)}": Tree(radix=256, tiers=n).tors / Tree(radix=32, tiers=n).tors
            for n in (1, 2, 3)
        },
        "devices for 10,000 hosts, bundle 1 against 4": _fewer(10_000, 1, 4, "devices"),
        "lanes for 10,000 hosts, bundle 1 against 4": _fewer(10_000, 1, 4, "links"),
        "devices for 20,000 hosts, bundle 1 against 4": _fewer(20_000, 1, 4, "devices"),
        "least credit": least_credit(),
        "spread of packet sizes": 9 * 1024 / 64,
        "reachability messages": r.messages,
        "one update": r.update / us,
        "three updates": r.threshold * r.update / us,
        "recovery with propagation": r.recovery / us,
        "reachability overhead": 100 * r.overhead,
        "reference switch, loss at 65 B": 100 * (1 - (150e6 / 3) / packet_rate(65, 40 * Gbps)),
        "NDP, loss at 97 B": 100 * (1 - share[97]),
        "NDP, loss at 65 B": 100 * (1 - share[65]),
        "unpacked cells, loss at 65 B": 100 * (1 - (65 / (2 * (64 + GAP))) / (64 / (64 + GAP))),
        "reference switch, clock for line rate": max(needed_clock(np.arange(64, 1519))) / 1e6,
        "NDP, sizes that fail at 200 MHz": ", ".join(fails),
        "Fabric Element memory": element_memory() / 2**20,
        "Fabric Element latency": element_latency() / us,
        "chance of 128 cells at speed-up 1.05": queue_overflow(1.05, 128),
        "lookup state, switch over element": np.log10(bits["switch"] / bits["element"]),
        "VOQ memory, 128K VOQs": voq_bytes(128 * 1024) / 2**20,
        "power saved": 100 * (1 - ten["power"]),
        "power saved in the fabric": 100 * (1 - ten["fabric_power"]),
        "hosts of the largest saving": Tree().hosts() / 1e3,
        "cost of a large network, least": min(costs),
        "cost of a large network, most": max(costs),
        "cheapest at every size, modules of one lane": _cheapest((1,), catalogue),
        "cheapest at every size, cheapest modules": _cheapest((1, 2, 4), catalogue),
        "links, 2 tiers over 1": two / one,
        "links, 3 tiers over 2": three / two,
        "transceivers, 2 tiers over 1": 2 * two / (2 * one),
        "resilience to a link failure": 400 / 50,
        "flows of the 2-tier simulation": 2 * 256 * 255 / 1024,
        "hosts of the 2-tier simulation, least": 256 * 32 / 1024,
    }


def _cheapest(modules, catalogue):
    """Whether Stardust is the cheapest from 1,000 to a million hosts, with the best of `modules`."""
    hosts = np.arange(1000, 1_000_001, 1000)
    for bundle in (1, 2, 4):
        ratio = np.min([against(hosts, bundle, catalogue, module=module)["cost"] for module in modules], axis=0)
        if (ratio > 1).any():
            return f"not up to {hosts[ratio > 1].max():,} hosts, bundle {bundle}"
    return "yes"


def _tiers(n):
    return "1 tier" if n == 1 else f"{n} tiers"


def _fewer(hosts, small, large, what):
    """Whether a smaller bundle needs fewer devices or lanes for so many hosts."""
    few, many = (Network(hosts=hosts, stardust=False, bundle=b, module=1) for b in (small, large))
    a, b = (getattr(net, what) * (net.bundle if what == "links" else 1) for net in (few, many))
    return "fewer" if a < b else "as many" if a == b else "more"


_TABLES = {
    "1": _table_1,
    "2": _table_2,
    "3": _table_3,
    "4": _table_4,
    "fig2": _fig_2,
    "fig3": _fig_3,
    "fig10d": _fig_10d,
    "fig11": _fig_11,
    "claims": _claims,
}


def _whole(count):
    """A count as an int where it is one number, as an array where it is many."""
    return int(count) if np.ndim(count) == 0 else count
