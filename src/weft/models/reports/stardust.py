"""A Stardust network beside a fat tree, as `weft cost stardust` tells it."""

from dataclasses import dataclass
from typing import Any

from weft.models import stardust as model
from weft.models.reports.answer import Answer, Prices
from weft.models.tables import columns, listed, number, show
from weft.parameters import like
from weft.units import Gbps, ns, param, show_rate, show_size, us

NETWORK = ("tors", "tiers", "devices", "links", "dollars", "relative_power", "watts")
ELEMENTS = ("tors", "switches", "switches_per_tor", "link_bundles", "links_per_tor", "hosts", "oversubscription")


@dataclass(frozen=True, kw_only=True)
class Stardust:
    """Devices, links, cost, power and memory of a Stardust network beside a fat tree.

    With --tiers, the elements of a full tree instead (Appendix A), of any radix, bundle and over-subscription.
    """

    hosts: int = like(model.Network, "hosts")
    bundle: int = param(4, "lanes in a port of the fat tree it is compared with")
    hosts_per_tor: int = like(model.Network, "hosts_per_tor")
    lanes: int = like(model.Network, "lanes", help="serial lanes of 25 Gb/s of a device")
    host_lanes: int = like(model.Network, "host_lanes")
    module: int | None = param(None, "lanes carried by one of Stardust's optical modules")
    tiers: int | None = param(None, "tiers of a full tree, to count its elements")
    radix: int = like(model.Tree, "radix", help="ports of a switch of that tree")
    uplinks: int = like(model.Tree, "uplinks", help="uplink ports of its edge switches")
    up: int | None = like(model.Tree, "up")

    def answer(self, prices: Prices) -> Answer:
        """The two networks, the elements of a full tree, or a printed table."""
        catalogue = prices.shelf(model.CATALOGUE)
        if table := prices.printed(model, "stardust", catalogue):
            return table
        if self.tiers is not None:
            half: dict[str, Any] = {} if self.up is None else {"up": self.up}
            tree = model.Tree(radix=self.radix, uplinks=self.uplinks, bundle=self.bundle, tiers=self.tiers, **half)
            return _elements(tree, self.hosts_per_tor)
        return self._beside_a_fat_tree(prices, catalogue)

    def _beside_a_fat_tree(self, prices, catalogue) -> Answer:
        shape: dict[str, Any] = {
            name: getattr(self, name) for name in ("hosts", "hosts_per_tor", "lanes", "host_lanes")
        }
        optics: dict[str, Any] = {} if self.module is None else {"module": self.module}
        nets = {
            "Stardust": model.Network(**optics, **shape),
            f"fat tree, bundle {self.bundle}": model.Network(stardust=False, bundle=self.bundle, **shape),
        }
        found = {name: _priced(net, net.catalogue(catalogue)) for name, net in nets.items()}
        sizes = {name: size for name, size in shape.items() if name != "hosts"}
        ratio = model.against(self.hosts, self.bundle, catalogue, module=self.module, **sizes)
        limits = self._limits(nets["Stardust"])
        ours, theirs = found.values()
        data = {
            "paper": "stardust",
            **shape,
            "bundle": self.bundle,
            "networks": found,
            "ratio": {"cost": ratio["cost"], "power": ratio["power"], "fabric_power": ratio["fabric_power"]},
            **limits,
        }
        prices.draw("stardust", catalogue=catalogue)
        lines = [(name.replace("_", " "), show(ours[name]), show(theirs[name])) for name in NETWORK]
        rows = [
            ("cost over the fat tree", f"{ratio['cost']:.3f}"),
            ("power over the fat tree", f"{ratio['power']:.3f} (a Fabric Element at its area ratio)"),
            ("fabric power alone", f"{ratio['fabric_power']:.3f}"),
            ("least credit", f"{limits['least_credit_bytes']:g} B for 10 Tb/s, one every two clocks"),
            ("recovery from a failed link", f"{limits['recovery_us']:.1f} us"),
            ("Fabric Element memory", show_size(limits["fabric_element_memory_bytes"])),
            ("reachability table", show_size(limits["reachability_table_bits"] // 8)),
            ("VOQs to every host", show_size(limits["voq_bytes"])),
        ]
        notes = [] if ours["watts"] is not None else ["watts: none are printed; say --watts switch=..."]
        rate = show_rate(self.host_lanes * 25 * Gbps)
        head = f"{self.hosts:,} hosts of {rate}, {self.hosts_per_tor} to an edge switch"
        table = columns(("", *found), lines, right=(1, 2))
        return Answer(data=data, text="\n".join([head, "", table, "", listed("Stardust", rows, notes)]))

    def _limits(self, net) -> dict:
        reach = model.Reachability(
            hosts=self.hosts, tiers=net.tiers, hosts_per_adapter=self.hosts_per_tor,
            delays=(50 * ns,) + (500 * ns,) * (2 * net.tiers - 2),
        )  # fmt: skip
        return {
            "fabric_element_memory_bytes": model.element_memory(links=self.lanes),
            "reachability_table_bits": model.reachability_table_bits(net.tors, self.lanes),
            "lookup_bits": model.lookup_bits(self.hosts, self.lanes, self.hosts_per_tor),
            "voq_bytes": model.voq_bytes(self.hosts),
            "recovery_us": reach.recovery / us,
            "reachability_overhead": reach.overhead,
            "least_credit_bytes": model.least_credit(),
        }


def _priced(net, shelf) -> dict:
    return {
        "tors": net.tors,
        "tiers": net.tiers,
        "devices": net.devices,
        "links": net.links,
        "dollars": shelf.price(net.parts()),
        "relative_power": net.relative_power,
        "watts": shelf.watts(net.device_parts()),
        "parts": dict(net.parts()),
    }


def _elements(tree, hosts_per_tor) -> Answer:
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
    title = f"full tree of {tree.radix}-port switches, tiers above the edge: {tree.tiers}"
    return Answer(data=data, text=listed(title, [(name.replace("_", " "), number(data[name])) for name in ELEMENTS]))
