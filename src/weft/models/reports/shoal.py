"""A Shoal rack beside a packet-switched one, as `weft cost shoal` tells it."""

from dataclasses import dataclass

from weft.models import shoal as model
from weft.models.reports.answer import Answer, Prices
from weft.models.tables import listed, number
from weft.units import param, show_rate, show_size


@dataclass(frozen=True, kw_only=True)
class Shoal(model.PricedRack):
    """Power, relative cost, buffers and memory of a Shoal rack beside a packet-switched one."""

    circuit_price: float | None = param(
        None, "price of a circuit switch in packet switches; the catalogue's when not given"
    )

    def answer(self, prices: Prices) -> Answer:
        """The rack priced, or the printed table that is asked for."""
        shelf = prices.shelf(model.CATALOGUE)
        if table := prices.printed(model, "shoal", shelf):
            return table
        catalogue = self.catalogue(shelf)
        watts = self.watts(catalogue)
        ratio = self.cost_ratio(self.circuit_price, catalogue)
        limits = {
            "parity": self.switch_price(0, catalogue),
            "forty_percent_cheaper": self.switch_price(0.4, catalogue),
        }
        straw = model.chassis(self.nodes, catalogue=catalogue)
        saved = 1 - watts["shoal"] / watts["packet"]
        fitted = catalogue.fitted(self.parts() + self.packet_parts())
        data = {
            "paper": "shoal",
            "nodes": self.nodes,
            "ports": self.ports,
            "link_bps": self.link,
            "switches": {
                "circuit": self.circuit_switches,
                "packet": self.packet_switches,
                "leaves": self.leaves,
                "spines": self.spines,
            },
            "power_w": watts,
            "power_saved": saved,
            "price": {
                "shoal": catalogue.price(self.parts()),
                "packet": catalogue.price(self.packet_parts()),
                "currency": catalogue.currency,
            },
            "cost_ratio": ratio,
            "circuit_price_for": limits,
            "buffers_bytes": {"total": self.buffer_total, "on_chip": self.buffer_on_chip},
            "state_bits": self.state_bits,
            "most_nodes": self.ports * self.ports // 2,
            "chassis": straw,
            "fitted": fitted,
        }
        prices.draw("shoal", nodes=self.nodes, ports=self.ports, catalogue=shelf)
        kinds = f"{self.planes} x {self.leaves} leaves and {self.spines} spines"
        rows = [
            ("circuit switches", f"{self.circuit_switches} ({kinds})"),
            ("packet switches", f"{self.packet_switches} for the packet network of {show_rate(self.port)} each"),
            ("power, Shoal", number(watts["shoal"], "W")),
            ("power, packet network", number(watts["packet"], "W")),
            ("power saved", f"{100 * saved:.1f} %"),
            ("cost over packet network", None if ratio is None else f"{ratio:.3f}"),
            *(
                (name, f"{100 * limits[key]:.1f} % of a packet switch")
                for name, key in (("same cost at", "parity"), ("40 % cheaper at", "forty_percent_cheaper"))
                if limits["parity"] is not None
            ),
            ("buffer per node", show_size(self.buffer_total)),
            ("buffer on chip", show_size(self.buffer_on_chip)),
            ("state on chip", show_size(sum(self.state_bits.values()) // 8)),
            ("most nodes", f"{self.ports * self.ports // 2:,} with {self.ports}-port switches in two stages"),
            ("strawman", f"{straw['chassis']} chassis switches, {straw['watts']:,} W, {straw['rack_units']} RU"),
        ]
        title = f"Shoal rack of {self.nodes:,} nodes, {show_rate(self.link)} each"
        return Answer(data=data, text=listed(title, rows, [f"fitted: {line}" for line in fitted]))
