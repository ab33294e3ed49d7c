"""A fat tree packaged as pods and a core array: what is installed of it, and what follows (HOTI '09, §IV).

With chips of k ports, a multiple of 8, a full switch has k pods of k/8 line cards and k/4 uplink cards, and k²/32 core
cards. What it costs is in `weft.models.merchant`, what is plugged where in `weft.topology.cabling`, and how it runs in
`weft.fabrics.merchant`.
"""

from dataclasses import dataclass

import numpy as np

from weft.errors import BadInput, require
from weft.units import Gbps, Rate, param


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A fat tree packaged as pods and a core array, full unless said otherwise.

    Pods, cards and the radix may be arrays; then so is every answer.
    """

    radix: int = param(24, "ports of a switch chip, a multiple of 8")
    link: Rate = param(10 * Gbps, "rate of a port")
    pods: int = param(None, "pods installed; all when not given")
    line_cards: int = param(None, "line cards installed in all pods together; all when not given")
    uplink_cards: int = param(None, "uplink cards in each pod; all when not given")
    core_cards: int = param(None, "core cards installed; all when not given, none for a single pod")

    def __post_init__(self):
        k = np.asarray(self.radix)
        require(k.min() >= 8, "radix", "at least 8", int(k.min()))
        require(k.max() <= 100_000, "radix", "at most 100000", int(k.max()))
        require(np.all(k % 8 == 0), "radix", "a multiple of 8", self.radix)
        self._fill({"pods": k, "uplink_cards": k // 4})
        self._fill({"line_cards": np.asarray(self.pods) * (k // 8)})
        self._fill({"core_cards": np.where(np.asarray(self.pods) > 1, k * k // 32, 0)})
        self._within("pods", 1, k)
        self._within("line_cards", np.asarray(self.pods), np.asarray(self.pods) * (k // 8))
        self._within("uplink_cards", 1, k // 4)
        self._within("core_cards", np.where(np.asarray(self.pods) > 1, 1, 0), k * k // 32)

    def _fill(self, values):
        for name, value in values.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, int(value) if np.ndim(value) == 0 else value)

    def _within(self, name, least, most):
        value = np.asarray(getattr(self, name))
        wrong = (value < least) | (value > most)
        if np.any(wrong):
            least, most, value, wrong = np.broadcast_arrays(least, most, value, wrong)
            raise BadInput(f"{name} must be between {least[wrong][0]} and {most[wrong][0]}, not {value[wrong][0]}")

    # -------------------------------------------------------- counts

    @property
    def ports(self):
        """Host ports: 48 to a line card of 24-port chips."""
        return self.line_cards * 2 * self.radix

    @property
    def plugs(self):
        """40 Gb/s ports (or groups of four links) that each pod has plugged into the core.

        Every pod plugs the same number into each row of each core card; a row has `radix` positions.
        """
        pods, k = np.asarray(self.pods), np.asarray(self.radix)
        room = 2 * np.asarray(self.core_cards) * (k // pods)
        return whole(np.where(pods > 1, np.minimum(np.asarray(self.uplink_cards) * (k // 4), room), 0))

    @property
    def chips(self) -> dict:
        """Switch chips by tier."""
        return {
            "edge": 4 * self.line_cards,
            "aggregation": 2 * self.pods * self.uplink_cards,
            "core": 8 * self.core_cards,
        }

    @property
    def midplane(self) -> dict:
        """Connectors of a pod's midplane, one for each pair of cards across it, and the links through each."""
        return {"connectors": whole(np.asarray(self.radix) // 8 * self.uplink_cards), "links": 8}

    @property
    def modules(self):
        """Core modules that hold the core cards: two in a full switch, nine cards each with 24-port chips."""
        return whole(-(-np.asarray(self.core_cards) // (np.asarray(self.radix) ** 2 // 64)))

    # -------------------------------------------------------- bandwidth

    @property
    def oversubscription(self):
        """Host bandwidth of the fullest pod over what it can send beyond its edge switches, 1 when it can send all.

        Pods are filled one after the other, each with one line card at least.
        """
        hosts = 2 * self.radix * np.minimum(np.asarray(self.line_cards) - self.pods + 1, np.asarray(self.radix) // 8)
        inside = hosts * self.uplink_cards / (np.asarray(self.radix) / 4)
        beyond = np.where(np.asarray(self.pods) > 1, 4 * np.asarray(self.plugs), inside)
        return whole(np.maximum(1.0, hosts / np.minimum(inside, beyond)))

    @property
    def bisection(self):
        """Bisection bandwidth as the paper counts it: every port at its rate, both directions."""
        return self.ports * self.link / self.oversubscription


def whole(count):
    """One number as Python's own, an int where it is whole; many as they are."""
    if np.ndim(count):
        return count
    count = np.asarray(count).item()
    return int(count) if count == int(count) else count
