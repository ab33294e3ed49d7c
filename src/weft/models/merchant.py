"""What a fat tree of merchant silicon would cost, board by board (HOTI '09, §III to §V).

One description of the boards makes all three networks of the paper, at any chip radix k that is a multiple
of 8, at any stage of deployment. With k = 24 the full switch has 3,456 ports; with k = 64, 65,536.
Only chips and optics are priced (§V); boxes have a size but no price.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.errors import BadInput, require
from weft.models import tables
from weft.models.limits import within
from weft.models.parts import Bill, Catalogue
from weft.topology.cabling import Wiring
from weft.topology.deployment import Deployment, whole
from weft.topology.fattree import FatTree, folded_clos
from weft.units import Gbps, param, parse_rate
from weft.wire import eep, ethernet

CATALOGUE = "merchant-2009"
NETWORKS = {1: "discrete switches", 2: "boards, SFP+", 3: "boards, EEP and QSFP"}
CHIPS = ("ASIC", "CPU", "PHY", "SFP+", "EEP", "QSFP")
FIBRES_PER_CABLE = 72  # §IV-A
POD_PORTS = 144  # ports in the 4 RU chassis of §IV-A
MODULE_CARDS = 9  # core cards in the 9 RU module of §IV-A


@dataclass(frozen=True, kw_only=True)
class Switch(Deployment):
    """A fat tree packaged as pods and a core array, full unless said otherwise, with what it is made of.

    Pods, cards and the radix may be arrays; then so is every answer.
    """

    network: int = param(3, "1 discrete switches, 2 boards with SFP+, 3 boards with EEP and QSFP")

    def __post_init__(self):
        super().__post_init__()
        require(self.network in NETWORKS, "network", "1, 2 or 3", self.network)

    @classmethod
    def of_ports(cls, ports: int, **more) -> "Switch":
        """The full tree with exactly `ports` ports, or the sentence that names its neighbours."""
        within("ports", ports, 2, 10**12)
        k = radix_for(ports)
        if k**3 // 4 != ports:
            near = f"{k**3 // 4} (k = {k})"
            if k > 8:
                near = f"{(k - 8) ** 3 // 4} (k = {k - 8}) below and {near} above"
            raise BadInput(f"ports must be k^3/4 for a multiple k of 8, nearest {near}, not {ports}")
        return cls(radix=k, **more)

    @classmethod
    def for_hosts(cls, hosts: int, radix: int = 24, **more) -> "Switch":
        """The smallest deployment of `radix`-port chips with room for `hosts` and no oversubscription."""
        most = radix**3 // 4
        require(1 <= hosts <= most, "hosts", f"between 1 and {most} with {radix}-port chips", hosts)
        line_cards = -(-hosts // (2 * radix))
        pods = -(-line_cards // (radix // 8))
        core = 0
        if pods > 1:
            core = -(-radix * radix // 16 // (2 * (radix // pods)))
        return cls(radix=radix, pods=pods, line_cards=line_cards, core_cards=core, **more)

    # -------------------------------------------------------- parts

    @cached_property
    def boards(self) -> dict[str, Bill]:
        """What is soldered to each board; modules that plug in are counted where they are plugged."""
        k = self.radix
        line = Bill(ASIC=4, CPU=1, PHY=4 * k)
        if self.network == 2:
            return {
                "line card": line,
                "uplink card": Bill(ASIC=2, PHY=2 * k),
                "midplane": Bill(CPU=1),
                "core card": Bill(ASIC=8, CPU=1, PHY=8 * k),
            }
        return {
            "line card": line,
            "uplink card": Bill(ASIC=2, PHY=k, EEP=k // 4),
            "midplane": Bill(CPU=1),
            "core card": Bill(ASIC=8, CPU=1, EEP=2 * k),
        }

    def parts(self) -> Bill:
        """What the network is made of: chips, optics and boxes."""
        return self.chips_and_optics() + self.boxes()

    def chips_and_optics(self) -> Bill:
        """All that the paper prices (§V)."""
        if self.network == 1:
            tor = Bill({"ASIC": 1, "CPU": 1, "PHY": self.radix, "SFP+": self.radix})
            return tor * sum(self.chips.values())
        boards = (
            self.boards["line card"] * self.line_cards
            + self.boards["midplane"] * self.pods
            + self.boards["uplink card"] * (self.pods * self.uplink_cards)
            + self.boards["core card"] * self.core_cards
        )
        optics = 2 * self.pods * self.plugs  # one at each end
        uplinks = Bill(QSFP=optics) if self.network == 3 else Bill({"SFP+": 4 * optics})
        return boards + Bill({"SFP+": self.ports}) + uplinks

    def boxes(self) -> Bill:
        """All that takes space (§IV-A).

        Boxes of other radices than 24 take the space of as many 24-port ones as have the same front panel.
        """
        if self.network == 1:
            return Bill({"TOR chassis": sum(self.chips.values())})
        scale = np.asarray(self.radix) ** 2 / 4 / POD_PORTS
        modules = np.where(np.asarray(self.radix) == 24, self.modules, np.asarray(self.core_cards) / MODULE_CARDS)
        return Bill({"pod chassis": whole(self.pods * scale), "core module": whole(modules)})

    # -------------------------------------------------------- cables

    @property
    def long_cables(self):
        """Cables that need a tray (§I-A): single links in network 1, cables of 72 fibres in the others."""
        if self.network == 1:
            return 4 * self.pods * self.plugs
        return whole(self.pods * -(-np.asarray(self.plugs) * 8 // FIBRES_PER_CABLE))

    @property
    def switch_links(self):
        """All links between switches, edge to aggregation included."""
        return 8 * self.line_cards * self.uplink_cards + 4 * self.pods * self.plugs


def radix_for(ports: int) -> int:
    """The least multiple of 8 whose full tree has at least `ports` ports."""
    k = max(8, 8 * int((4 * max(ports, 1)) ** (1 / 3) // 8))
    while k > 8 and (k - 8) ** 3 // 4 >= ports:
        k -= 8
    while k**3 // 4 < ports:
        k += 8
    return k


def moved_cables(before: Switch, after: Switch) -> int:
    """Cables of 72 fibres that the pods of `before` must re-plug to become part of `after` (§IV-F)."""
    loose = 0
    for old, new in zip(_spread(before), _spread(after), strict=True):
        loose += max(0, int(old) - int(new))
    return -(-loose * 8 // FIBRES_PER_CABLE) * before.pods


def _spread(switch):
    """Plugs of one pod on each row of each possible core card, lowest card first."""
    rows = np.zeros(switch.radix**2 // 16, int)
    used = 2 * switch.core_cards
    if used:
        rows[:used] = switch.plugs // used
        rows[: switch.plugs % used] += 1
    return rows


def growth(radix: int = 24, network: int = 3) -> list[Switch]:
    """One switch per step of the paper's deployment: pods one by one, a core module with the second and the 13th."""
    half = radix * radix // 64
    return [
        Switch(
            radix=radix,
            network=network,
            pods=pods,
            core_cards=0 if pods == 1 else half if 2 * pods <= radix else 2 * half,
        )
        for pods in range(1, radix + 1)
    ]


# ---------------------------------------------------------------- EEP framing (§VI-A)


def eep_overhead(payload: int = 1500) -> dict:
    """EEP frames and header bytes for one Ethernet frame, and the share of the link that they take."""
    frame = payload + 14 + ethernet.FCS
    header, wire = eep.header_bytes(frame), ethernet.wire_size(frame)
    return {"frames": eep.segments(frame), "header_bytes": header, "wire_bytes": wire, "share": header / wire}


EEP_LAYOUT = {
    eep.SOURCE[layout.name, name][0]: width
    for layout, order in ((eep.HEADER, 1), (eep.LENGTH, -1))
    for name, width in layout.fields[::order]
}  # bits, as Fig. 10 draws them


# ---------------------------------------------------------------- printed beside computed


def table(key: str, catalogue: Catalogue | None = None) -> tables.Table:
    """A printed table of the paper with our numbers beside it: I to VIII, fig10 or claims."""
    key = tables.find("merchant", key)
    return tables.beside("merchant", key, _TABLES[key](catalogue or Catalogue.named(CATALOGUE)))


def _gigabits(part):
    return parse_rate(part.facts["rate"]) / Gbps


def _table_1(catalogue):
    rows = {}
    for name in ("TOR1G", "TOR10G", "EOR"):
        part = catalogue[name]
        rows |= {
            f"GbE ports, {name}": part.facts["gbe_ports"],
            f"10GbE ports, {name}": part.facts["ports_10gbe"],
            f"power, {name}": part.watts,
            f"size, {name}": part.rack_units,
        }
    return rows


def _table_2(catalogue):
    facts = {
        "GbE standard": "standard_1g",
        "10GbE standard": "standard_10g",
        "40GbE standard": "standard_40g",
        "weight": "grams_per_metre",
        "diameter": "diameter_mm",
        "GbE range": "range_1g_m",
        "10GbE range": "range_10g_m",
        "GbE transceiver cost": "transceiver_1g_usd",
        "GbE transceiver power": "transceiver_1g_w",
        "10GbE transceiver power": "transceiver_10g_w",
        "40GbE transceiver cost": "transceiver_40g_usd",
        "40GbE transceiver power": "transceiver_40g_w",
    }
    rows = {
        f"{what}, {cable}": catalogue[cable].facts[fact]
        for what, fact in facts.items()
        for cable in ("Cat-6", "Twinax", "MMF120")
        if fact in catalogue[cable].facts
    }
    return rows | {
        "GbE transceiver cost, MMF120": catalogue["SFP"].price,
        "GbE transceiver power, MMF120": catalogue["SFP"].watts,
        "10GbE transceiver cost, MMF120": catalogue["SFP+"].price,
        "10GbE transceiver power, MMF120": catalogue["SFP+"].watts,
    }


def _table_3(catalogue):
    rows = {}
    for name in ("Broadcom BCM56820", "Fulcrum FM4224", "Fujitsu MB86C69RBC"):
        part = catalogue[name]
        given = {"ports": part.facts["ports"], "cost": part.price, "power": part.watts} | {
            fact: part.facts.get(fact) for fact in ("latency", "area", "sram", "process")
        }
        rows |= {f"{what}, {name}": value for what, value in given.items()}
    return rows


def _table_4(catalogue):
    rows = {}
    for name in ("SFP", "SFP+", "QSFP"):
        part = catalogue[name]
        rows |= {
            f"rate, {name}": _gigabits(part),
            f"cost per Gb/s, {name}": part.price / _gigabits(part),
            f"power per Gb/s, {name}": 1e3 * part.watts / _gigabits(part),
        }
    return rows


def _table_5(catalogue):
    return {f"{part}, network {n}": Switch(network=n).parts()[part] for n in NETWORKS for part in CHIPS}


def _table_6(catalogue):
    return {
        f"{what}, {name}": getattr(catalogue[name], field)
        for name in CHIPS
        for what, field in (("cost", "price"), ("power", "watts"))
    }


def _table_7(catalogue):
    rows = {}
    for n in NETWORKS:
        switch = Switch(network=n)
        bill = switch.chips_and_optics()
        rows |= {
            f"bisection bandwidth, network {n}": switch.bisection / (1000 * Gbps),
            f"cost, network {n}": catalogue.price(bill) / 1e6,
            f"power, network {n}": catalogue.watts(bill) / 1e3,
            f"cabling complexity, network {n}": switch.long_cables,
            f"space, network {n}": catalogue.rack_units(switch.boxes()),
        }
        if n != 1:
            printed = Bill({**bill, "CPU": tables.value("merchant", "V", f"CPU, network {n}")})
            rows |= {
                f"cost, network {n}, 132 CPUs": catalogue.price(printed) / 1e6,
                f"power, network {n}, 132 CPUs": catalogue.watts(printed) / 1e3,
            }
    return rows


def _table_8(catalogue):
    device = {"flip-flops": 69_120, "LUTs": 69_120, "block RAMs": 148}  # all that a Virtex-5 LX110T has
    return {
        f"share of {what}, {name}": 100 * tables.value("merchant", "VIII", f"{what}, {name}") / have
        for what, have in device.items()
        for name in ("802.1ad", "EEP")
    }


def _fig_10(catalogue):
    return EEP_LAYOUT


def _claims(catalogue):
    from weft.models.cabling import copper_between_pods

    one, two, three = (Switch(network=n) for n in NETWORKS)
    cost = {n: catalogue.price(net.chips_and_optics()) for n, net in enumerate((one, two, three), 1)}
    power = {n: catalogue.watts(net.chips_and_optics()) for n, net in enumerate((one, two, three), 1)}
    optics = Bill({part: three.parts()[part] for part in ("SFP+", "QSFP")})
    big, old = Switch(radix=64), FatTree.of_switches(48)
    copper = copper_between_pods(48)
    framing = eep_overhead()
    report = Wiring.right(24).check()
    packaged, groomed = 1 - cost[2] / cost[1], 1 - cost[3] / cost[2]
    tor = catalogue["TOR10G"].price * sum(one.chips.values())
    return {
        "cost saved": 100 * (1 - cost[3] / cost[1]),
        "power saved": 100 * (1 - power[3] / power[1]),
        "space saved": 100 * (1 - catalogue.rack_units(three.boxes()) / catalogue.rack_units(one.boxes())),
        "cables between discrete switches (abstract)": one.switch_links,
        "long cables between discrete switches": one.long_cables,
        "long cables, network 3": three.long_cables,
        "optics, share of power": 100 * catalogue.watts(optics) / power[3],
        "optics, share of cost": 100 * catalogue.price(optics) / cost[3],
        "ports": three.ports,
        "bisection bandwidth": three.bisection / (1000 * Gbps),
        "bandwidth of one pod": Switch(pods=1).bisection / (1000 * Gbps),
        "ports with 64-port chips": big.ports,
        "pods with 64-port chips": big.pods,
        "ports per pod with 64-port chips": big.ports // big.pods,
        "48-port tree, switches": old.edges + old.switches,
        "48-port tree, bisection bandwidth": old.hosts / 1e3,
        "48-port tree, bundles": 48 * 47 // 2,
        "48-port tree, core switches": old.switches_in(2),
        "48-port tree, cable": copper["metres"],
        "48-port tree, weight of the printed cable": tables.value("merchant", "claims", "48-port tree, cable")
        * catalogue["Cat-6"].facts["grams_per_metre"]
        / 1e3,
        "24-port tree of TORs, cost": tor / 1e6,
        "24-port tree of TORs, cost per port": tor / one.ports,
        "24-port tree of TORs, bundles": one.pods,
        "QSFP per pod": three.plugs,
        "fibres per pod": three.plugs * catalogue["QSFP"].facts["fibres"],
        "core cards": three.core_cards,
        "core chips that each pod reaches": int(np.count_nonzero(Wiring.right(24).reach()[0]) * 4),
        "bisection lost by the wiring rule": report.lost,
        "pods on one core module": max(s.pods for s in growth() if s.modules == 1 and s.oversubscription == 1),
        "share of a pod's bandwidth per uplink card": f"1/{Switch(pods=1, uplink_cards=1).oversubscription}",
        "share of the core per core card": f"1/{Switch(core_cards=1).oversubscription}",
        "EEP header bytes": framing["header_bytes"],
        "EEP frames": framing["frames"],
        "bytes on the wire": framing["wire_bytes"],
        "EEP overhead": 100 * framing["share"],
        "cost saved by repackaging": 100 * packaged,
        "cost saved by EEP on top": 100 * groomed,
        "larger gain": "repackaging" if packaged > groomed else "EEP",
        "Arista 7148SX, chips": sum(folded_clos(48, 24)),
        "Woven EFX-1000, chips": sum(folded_clos(144, 24)),
        "Sun 3,456-port switch, chips": 24 * 24 + 18 * 8,
        "Sun 3,456-port switch, connectors": 24 * 18,
    }


_TABLES = {
    "I": _table_1,
    "II": _table_2,
    "III": _table_3,
    "IV": _table_4,
    "V": _table_5,
    "VI": _table_6,
    "VII": _table_7,
    "VIII": _table_8,
    "fig10": _fig_10,
    "claims": _claims,
}
