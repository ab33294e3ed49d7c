"""What TDMA over Ethernet takes and asks for, as `weft cost tdma` tells it."""

from dataclasses import dataclass

from weft.models import tdma as model
from weft.models.reports.answer import Answer, Prices
from weft.models.tables import listed
from weft.units import ms, ns, param, show_size, show_time


@dataclass(frozen=True, kw_only=True)
class Tdma(model.Slots):
    """Guard efficiency, control overhead, slot choice and controllers of TDMA over Ethernet."""

    hosts: int = param(24, "hosts that face each other in turn")
    nics: int = param(8, "NICs of a controller")
    hosts_per_nic: int = param(24, "hosts that one of them reaches")

    def answer(self, prices: Prices) -> Answer:
        """Efficiency, waits and controllers, or a printed table."""
        if table := prices.printed(model, "tdma", prices.shelf(model.CATALOGUE)):
            return table
        bill = model.parts(self.hosts, self.hosts_per_nic, self.nics)
        longest = model.longest_pause(self.link)
        shares = (0.9, 0.95, 0.99)
        choice = {f"{share:g}": float(model.slot_for(share, self.guard, self.inside)) for share in shares}
        data = {
            "paper": "tdma",
            "slot_ps": self.slot,
            "guard_ps": self.guard,
            "cycle_ps": self.cycle,
            "efficiency": self.efficiency,
            "block_bytes": self.block,
            "control_bps": self.control_rate,
            "control_overhead": self.control_overhead,
            "wait_ps": float(self.wait(self.hosts)),
            "slot_ps_for_efficiency": choice,
            "hosts_per_controller": model.controller_hosts(self.nics, self.hosts_per_nic),
            "frames_per_nic_in_guard": float(model.frames_in(self.guard, self.link)),
            "pause_quantum_ps": model.quantum(self.link),
            "longest_pause_ps": longest,
            "parts": dict(bill),
        }
        prices.draw("tdma", guard=self.guard, hosts=self.hosts)
        control = (
            f"{self.control_rate / 1e6:.2f} Mb/s per host, which costs {100 * self.control_overhead:.3f} % of a link"
        )
        rows = [
            ("efficiency", f"{100 * self.efficiency:.2f} %"),
            ("bytes in a slot", show_size(int(self.block))),
            ("control traffic", control),
            ("longest wait", f"{data['wait_ps'] / ms:.3f} ms among {self.hosts} hosts"),
            *((f"slot for {100 * float(share):g} %", show_time(int(time))) for share, time in choice.items()),
            ("hosts per controller", f"{data['hosts_per_controller']} ({self.nics} NICs of {self.hosts_per_nic})"),
            ("frames per NIC in a guard", f"{data['frames_per_nic_in_guard']:.0f}, the wire's bound on hosts per NIC"),
            ("controllers", f"{bill['fabric manager']} with {bill['fabric manager NIC']} NICs for {self.hosts} hosts"),
            ("pause quantum", f"{data['pause_quantum_ps'] / ns:g} ns, longest pause {longest / ms:.4g} ms"),
        ]
        where = "inside" if self.inside else "between"
        title = f"slots of {show_time(self.slot)}, guards of {show_time(self.guard)} {where} them"
        return Answer(data=data, text=listed(title, rows))
