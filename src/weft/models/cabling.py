"""The cables between pods and core: how long they are, and what they weigh."""

from dataclasses import dataclass

import numpy as np

from weft.errors import require


@dataclass(frozen=True, kw_only=True)
class Floor:
    """Racks in rows, a cold aisle before and a hot aisle behind each row; cables run along trays overhead.

    Rack and aisles are those of §II-A. How many racks stand in a row, how many a pod's hosts fill, and how
    far a cable climbs at each end are not in the paper: they are ours to assume and yours to change.
    """

    racks_per_row: int = 10
    rack_width: float = 0.6
    rack_depth: float = 1.0
    cold_aisle: float = 1.22
    hot_aisle: float = 0.9
    climb: float = 1.5  # metres from a box up to the tray
    units: int = 42

    def __post_init__(self):
        require(self.racks_per_row >= 1, "racks_per_row", "at least 1", self.racks_per_row)
        for name in ("rack_width", "rack_depth", "cold_aisle", "hot_aisle", "climb"):
            require(getattr(self, name) >= 0, name, "at least 0 m", getattr(self, name))

    def racks_per_pod(self, hosts: int, chassis: float) -> int:
        """Racks that a pod fills with hosts of one unit each and its own chassis."""
        return int(-(-(hosts + chassis) // self.units))

    def place(self, rack) -> tuple[np.ndarray, np.ndarray]:
        """Metres along and across the room at which racks stand, counted row by row."""
        row, column = np.divmod(np.asarray(rack), self.racks_per_row)
        aisles = row // 2 * self.cold_aisle + (row + 1) // 2 * self.hot_aisle
        return column * self.rack_width, row * self.rack_depth + aisles

    def lengths(self, pods: int, hosts_per_pod: int = 144, chassis: float = 4) -> np.ndarray:
        """Metres from each pod to the core array in the middle of the room, along the trays."""
        each = self.racks_per_pod(hosts_per_pod, chassis)
        middle = pods * each // 2  # the core array takes one rack there
        first = np.arange(pods) * each
        racks = np.where(first >= middle, first + 1, first) + each // 2
        x, y = self.place(racks)
        cx, cy = self.place(middle)
        return np.abs(x - cx) + np.abs(y - cy) + 2 * self.climb


def fibre(switch, floor: Floor | None = None, grams_per_metre: float = 264.0, chassis: float = 4) -> dict:
    """Bundles, cables, fibres, metres and kilograms between the pods of a merchant `switch` and its core.

    A bundle is what runs from one pod to the core. In network 1 a cable is one duplex link of its own; its
    weight is that of the same fibres in cables of 72.
    """
    floor = floor or Floor()
    length = floor.lengths(switch.pods, switch.radix**2 // 4, chassis)
    fibres = 8 * switch.plugs
    cables = -(-fibres // 72)
    counted = fibres // 2 if switch.network == 1 else cables
    if switch.pods == 1:
        length = length[:0]
    return {
        "bundles": len(length),
        "cables": counted * len(length),
        "fibres": fibres * len(length),
        "metres": float(counted * length.sum()),
        "longest": float(length.max(initial=0.0)),
        "kg": float(cables * length.sum() * grams_per_metre / 1e3),
    }


def copper_between_pods(radix: int = 48, diameter: float = 3.0, gap: float = 1.5) -> dict:
    """Cables when the core switches are spread over the pods (§III, after Al-Fares et al.).

    Pods stand in a square grid; a cable goes from centre to centre, along and across. Every pair of pods is
    joined by a bundle of radix/2 links. The paper names the diameter and the gap but not the grid.
    """
    side = int(np.ceil(np.sqrt(radix)))
    x, y = np.divmod(np.arange(radix), side)
    pitch = diameter + gap
    far = (np.abs(x[:, None] - x) + np.abs(y[:, None] - y)) * pitch
    pairs = far[np.triu_indices(radix, 1)]
    links = radix // 2
    return {"bundles": len(pairs), "cables": links * len(pairs), "metres": float(links * pairs.sum())}
