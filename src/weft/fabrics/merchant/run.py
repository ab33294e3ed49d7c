"""A switch of merchant silicon at work: a packet network that also says how much can cross it."""

from dataclasses import replace

from weft.fabrics.network.run import NetworkRun
from weft.units import Tbps


class MerchantRun(NetworkRun):
    """A switch of merchant silicon at work."""

    def observe(self):
        seen, fabric = super().observe(), self.fabric
        own = {
            "bisection_tbps": fabric.bisection(self.seed, self.now) / Tbps,
            "deployment": {
                "ports": fabric.hosts,
                "pods": fabric.switch.pods,
                "line_cards": fabric.switch.line_cards,
                "uplink_cards": fabric.switch.uplink_cards,
                "core_cards": fabric.switch.core_cards,
                "cables": len(fabric.boards.wiring.cables),
                "eep_ns": fabric.grooming / 1000,
            },
        }
        return replace(seen, sections={**seen.sections, **own})
