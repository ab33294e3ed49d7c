"""What a Shoal rack would cost: switches, watts, relative price, buffers and memory (NSDI '19, §2, §3, §5, App. B).

Every number may be an array (a sweep over nodes, ports or prices); then so is every answer.
"""

from dataclasses import dataclass

import numpy as np

from weft.errors import BadInput, require
from weft.models import tables
from weft.models.limits import within
from weft.models.parts import Bill, Catalogue
from weft.schedule.rotation import rounds
from weft.topology.fattree import folded_clos
from weft.units import Gbps, Rate, Size, Time, ns, param, ps

CATALOGUE = "shoal-2019"
NS_PER_METRE = 5  # §3.4: light in fibre
RACK_WATTS = 15_000  # §2: a rack's hard limit
RACK_UNITS = 48  # not printed: the 54 % of §2 for 26 RU needs a rack of 48 units
NIC_TODAY_WATTS = 12.4  # §5: a 100 Gb/s NIC
SOC_GAIN = 10  # §5: integration of the NIC with the CPU
NIC_OVERHEAD = 0.11  # App. B: Shoal's functions in an ASIC NIC
STRATIX_BITS = 52e6  # App. B: block RAM of a Stratix V
AREA = {"memory": 0.50, "logic": 0.20, "serdes": 0.30}  # §5: shares of a packet switch's package


@dataclass(frozen=True, kw_only=True)
class PricedRack:
    """A Shoal rack and the packet-switched rack that it is compared with."""

    nodes: int = param(512, "nodes in the rack")
    ports: int = param(64, "ports of a switch, circuit or packet")
    port: Rate = param(50 * Gbps, "rate of a switch port")
    planes: int = param(2, "parallel fabrics; Shoal has twice the bandwidth of the packet network")
    cell: Size = param(64, "bytes of a cell, header included")
    nic: float = param(2, "price of a Shoal NIC in packet NICs, 2 or 3 in the paper")

    def __post_init__(self):
        within("nodes", self.nodes, 2)
        within("ports", self.ports, 2, 10_000)
        folded_clos(self.nodes, self.ports)
        within("planes", self.planes, 1, 1000)
        within("cell", self.cell, 1, unit=" B")
        within("nic", self.nic, 0)

    @property
    def link(self) -> int:
        """Rate of a node's link."""
        return self.port * self.planes

    @property
    def leaves(self):
        """Leaf switches of one plane."""
        return folded_clos(self.nodes, self.ports)[0]

    @property
    def spines(self):
        """Spine switches of one plane."""
        return folded_clos(self.nodes, self.ports)[1]

    @property
    def circuit_switches(self):
        """Circuit switches of all planes."""
        return (self.leaves + self.spines) * self.planes

    @property
    def packet_switches(self):
        """Switches of the packet network, one plane at half the bandwidth."""
        return self.leaves + self.spines

    def parts(self) -> Bill:
        """What the Shoal rack is made of."""
        return Bill({"circuit switch": self.circuit_switches, "Shoal NIC": self.nodes})

    def packet_parts(self) -> Bill:
        """What the packet-switched rack is made of."""
        return Bill({"packet switch": self.packet_switches, "packet NIC": self.nodes})

    def catalogue(self, catalogue: Catalogue | None = None) -> Catalogue:
        """`catalogue` with the Shoal NIC priced at `nic` packet NICs, if it has no price of its own."""
        catalogue = catalogue or Catalogue.named(CATALOGUE)
        if catalogue["Shoal NIC"].price is None and catalogue["packet NIC"].price is not None:
            return catalogue.change("Shoal NIC", price=self.nic * catalogue["packet NIC"].price)
        return catalogue

    def watts(self, catalogue: Catalogue | None = None) -> dict:
        """Power of both networks in watts (§5)."""
        catalogue = self.catalogue(catalogue)
        return {"shoal": catalogue.watts(self.parts()), "packet": catalogue.watts(self.packet_parts())}

    def cost_ratio(self, circuit_price=None, catalogue: Catalogue | None = None):
        """Price of the Shoal network over that of the packet network (Fig. 11), or None if a price is missing.

        `circuit_price` is that of a circuit switch in packet switches; None takes the catalogue's own.
        """
        catalogue = self.catalogue(catalogue)
        unit = catalogue["packet switch"].price
        if circuit_price is not None and unit is not None:
            catalogue = catalogue.change("circuit switch", price=circuit_price * unit)
        shoal, packet = catalogue.price(self.parts()), catalogue.price(self.packet_parts())
        return None if shoal is None or packet is None else shoal / packet

    def switch_price(self, saving=0.0, catalogue: Catalogue | None = None):
        """What a circuit switch may cost, in packet switches, for the network to be cheaper by `saving`.

        None if a price is missing.
        """
        catalogue = self.catalogue(catalogue)
        unit = catalogue["packet switch"].price
        rest = catalogue.price(Bill({"Shoal NIC": self.nodes}))
        packet = catalogue.price(self.packet_parts())
        if rest is None or packet is None:
            return None
        return ((1 - saving) * packet - rest) / (self.circuit_switches * unit)

    @property
    def buffer_total(self):
        """Worst-case bytes of cells at one node: every queue at its bound of N cells (§3.3.4)."""
        return (self.nodes - 1) * self.nodes * self.cell

    @property
    def buffer_on_chip(self):
        """Bytes of cells that must be on chip: the head of each queue (§3.3.4)."""
        return (self.nodes - 1) * self.cell

    @property
    def state_bits(self) -> dict:
        """On-chip memory of a NIC by structure, in bits (§3.5, §4.2); the feedback matrix is Θ(N² log N)."""
        width = np.ceil(np.log2(self.nodes)).astype(int)
        others = self.nodes - 1
        return {
            "cells": _whole(8 * self.buffer_on_chip),
            "last_sent": _whole(others * width),
            "last_received": _whole(others * width),
            "feedback": _whole(others * others * width),
        }


def nic_watts(overhead=NIC_OVERHEAD, bandwidth=1.0):
    """Watts of a NIC integrated with the CPU: `bandwidth` of today's 100 Gb/s, `overhead` for extra functions (§5)."""
    return NIC_TODAY_WATTS / SOC_GAIN * bandwidth * (1 + overhead)


def circuit_area(serdes_shrink=0.5):
    """Package area of a circuit switch over a packet switch: only SerDes remain, and they shrink (§5)."""
    return AREA["serdes"] * serdes_shrink


def chassis(nodes, rate: Rate = 100 * Gbps, catalogue: Catalogue | None = None) -> dict:
    """The strawman of §2: chassis switches for `nodes` at 10 or 100 Gb/s, against the limits of a rack."""
    part = (catalogue or Catalogue.named(CATALOGUE))["chassis switch"]
    require(rate in (10 * Gbps, 100 * Gbps), "rate", "10 Gbps or 100 Gbps, as the chassis has ports", rate)
    count = -(-np.asarray(nodes) // part.facts["ports_100g" if rate == 100 * Gbps else "ports_10g"])
    return {
        "chassis": _whole(count),
        "watts": count * part.watts,
        "rack_units": count * part.rack_units,
        "power_share": count * part.watts / RACK_WATTS,
        "space_share": count * part.rack_units / RACK_UNITS,
    }


def schedule_bits(nodes, ports):
    """Memory of a circuit switch for its part of the schedule: an input for each output in each slot (§3.2, §4.1)."""
    return (nodes - 1) * ports * np.ceil(np.log2(ports))


# ---------------------------------------------------------------- time


def epoch(nodes, slot: Time, channels=1):
    """Time in which every node meets every other, in ps; each of `channels` serves its share of them (§3.4)."""
    return (nodes - 1) * slot / channels


def usable_rate(link: Rate, slot: Time, guard: Time):
    """What a link carries when `guard` of every `slot` is dark."""
    return link * (slot - guard) / slot


def epochs_to_uniform(nodes: int) -> int:
    """Age in epochs from which a flow may use every queue: 2^age reaches the bound N on a queue (§3.3.3)."""
    age = 0
    while 2**age < nodes:
        age += 1
    return age


# ---------------------------------------------------------------- failures (§3.5, Table 1)


def failed_slots(ports: int, component: str, *, survivors: bool = False, duplex: bool = True) -> float:
    """Share of slots lost when one `component` of a full two-stage rack fails, counted pair by pair.

    A cell from i goes up to spine (i mod k/2) and down to the leaf of j; a broken i -> j also silences j -> i,
    because the silence of i is what tells j (§3.5). `survivors` counts only slots of nodes that still work;
    a link fails in both directions unless `duplex` is False.
    """
    half = ports // 2
    nodes = ports * half
    i, j = np.meshgrid(np.arange(nodes), np.arange(nodes), indexing="ij")
    counted = i != j
    match component:
        case "node-leaf link":
            gone, broken = np.arange(nodes) == 0, i == 0
        case "leaf switch":
            gone, broken = np.arange(nodes) // half == 0, i // half == 0
        case "leaf-spine link":  # between leaf 0 and spine 0: cells from its node 0 up, cells of that spine down
            gone, broken = np.zeros(nodes, bool), (i // half == 0) & (i % half == 0)
            if duplex:
                broken = broken | ((i % half == 0) & (j // half == 0))
        case "spine switch":
            gone, broken = np.zeros(nodes, bool), i % half == 0
        case _:
            raise BadInput(f"component must be one of {', '.join(FAILURES)}, not {component!r}")
    if survivors:
        counted &= ~gone[:, None]
    return float(np.mean((broken | broken.T)[counted]))


FAILURES = {
    "node-leaf link": lambda n: 1 / n,
    "leaf switch": lambda n: (2 * n) ** -0.5,
    "leaf-spine link": lambda n: 2 / n,
    "spine switch": lambda n: 2 * 2**0.5 / n**0.5,
}


# ---------------------------------------------------------------- the cell header (Fig. 5)


def header_bits(nodes: int = 1024, header: Size = 8) -> dict:
    """Widths of the cell header's fields for racks of up to `nodes`; the sequence number takes what is left."""
    name = (nodes - 1).bit_length()
    feedback = (2 * nodes - 2).bit_length()  # at most len(Q) + len(R) - 1 = N + (N - 1) - 1
    fixed = {
        "destination id": name,
        "source id": name,
        "rate limit feedback": feedback,
        "start-of-packet": 1,
        "end-of-packet": 1,
        "last-cell-dropped": 1,
        "CRC checksum": 8,
    }
    return {**fixed, "sequence number": 8 * header - sum(fixed.values())}


# ---------------------------------------------------------------- printed beside computed


def table(key: str, catalogue: Catalogue | None = None) -> tables.Table:
    """A printed table of the paper with our numbers beside it: 1, fig3, fig5, appB or claims."""
    key = tables.find("shoal", key)
    return tables.beside("shoal", key, _TABLES[key](catalogue))


def _table_1(catalogue):
    ports, nodes = 32, 512
    rules = {"": {"survivors": True, "duplex": False}, ", all nodes and ways": {}}
    return {
        f"1 {component}{reading}": failed_slots(ports, component, **rule) / FAILURES[component](nodes)
        for reading, rule in rules.items()
        for component in FAILURES
    }


def _fig_3(catalogue):
    return {f"slot {t}": " ".join(str((i + t) % 8) for i in range(8)) for t in range(1, 8)}


def _fig_5(catalogue):
    return header_bits()


def _appendix_b(catalogue):
    nic = sum(PricedRack(nodes=500).state_bits.values())
    return {
        "NIC, block RAM": 100 * nic / STRATIX_BITS,
        "switch, block RAM": 100 * schedule_bits(500, 64) / STRATIX_BITS,
        "NIC power for Shoal's functions": 100 * NIC_OVERHEAD,
    }


def _claims(catalogue):
    rack, thrice = PricedRack(), PricedRack(nic=3)
    straw = (catalogue or Catalogue.named(CATALOGUE))["chassis switch"]
    watts = rack.watts(catalogue)
    even, odd = rounds(512, 1, 1), rounds(511, 1, 1)  # the schedules that racks with a slot of delay run
    prototype_slot = 12 * 6400 * ps
    return {
        "power, packet network": watts["packet"] / 1e3,
        "power, Shoal": watts["shoal"] / 1e3,
        "power saved": 100 * (1 - watts["shoal"] / watts["packet"]),
        "NIC power, Shoal": nic_watts(),
        "NIC power, packet network": nic_watts(overhead=0, bandwidth=0.5),
        "packet switches": rack.packet_switches,
        "circuit switches": rack.circuit_switches,
        "parity, NIC x3": 100 * thrice.switch_price(0, catalogue),
        "parity, NIC x2": 100 * rack.switch_price(0, catalogue),
        "40 % cheaper, NIC x3": 100 * thrice.switch_price(0.4, catalogue),
        "40 % cheaper, NIC x2": 100 * rack.switch_price(0.4, catalogue),
        "circuit switch by package area": 100 * circuit_area(),
        **{f"package area, {what}": 100 * share for what, share in AREA.items()},
        "chassis, ports at 10 Gb/s": straw.facts["ports_10g"],
        "chassis, ports at 100 Gb/s": straw.facts["ports_100g"],
        "chassis, power": straw.watts / 1e3,
        "chassis, space": straw.rack_units,
        "chassis, share of rack power": 100 * chassis(192, catalogue=catalogue)["power_share"],
        "chassis, share of rack space": 100 * chassis(192, catalogue=catalogue)["space_share"],
        "buffer per node": rack.buffer_total / 1e6,
        "buffer on chip": rack.buffer_on_chip / 1e3,
        "most nodes on 64-port switches": 64 * 64 // 2,
        "propagation change for +/- 2 cm": 0.04 * NS_PER_METRE,
        "propagation over 2 m": 2 * NS_PER_METRE,
        "propagation over 3 m": 3 * NS_PER_METRE,
        "on-chip memory, 1,000 nodes": PricedRack(nodes=1000).state_bits["feedback"] / 8 / 1e6,
        "reconfiguration at 50 Gb/s": 1e3 / 390.625,
        "prototype slot": prototype_slot / ns,
        "prototype slot, usable": (12 - 1 - 3) * 6400 * ps / ns,
        "prototype epoch": epoch(8, prototype_slot) / (1000 * ns),
        "most a node carries": usable_rate(100 * Gbps, 23_250 * ps, 2_750 * ps) / Gbps,
        "empty slots, even N": 512 * (1 - (even.last - even.first).sum() / (512 * even.slots)),
        "feedback gap, odd N": odd.gap() / (510 / 2),
        "epochs until a flow spreads evenly": epochs_to_uniform(512) / np.log2(512),
    }


_TABLES = {"1": _table_1, "fig3": _fig_3, "fig5": _fig_5, "appB": _appendix_b, "claims": _claims}


def _whole(count):
    """A count as an int where it is one number, as an array where it is many."""
    return int(count) if np.ndim(count) == 0 else count
