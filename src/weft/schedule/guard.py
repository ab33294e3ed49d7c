"""The time between two cells: what a guard band must cover, and the slot and epoch that follow (Shoal §3.4, §3.5)."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from weft.errors import BadInput, require
from weft.units import Gbps, Rate, Size, Time, ns, param, s, show_time, wire_time

LIGHT = 5  # ps per mm of fibre: the 5 ns/m of §3.4
STAGES = 3  # switches between two nodes: leaf, spine, leaf


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What has to fit between two cells: the circuits change, wires differ, clocks disagree.

    Layer 1 switches (electrical) retime what they forward. Every link is then point to point and its receiver stays
    locked; a few bits of buffer per port absorb the jitter, and each switch takes its time. Layer 0 switches (optical)
    add nothing to the way, but the receiver meets a new sender in every slot and must lock to it within the guard.
    """

    reconfiguration: Time = param(2500, "time in which a switch changes its circuits; 6400ps in the prototype")
    tolerance: int = param(20, "how many mm a link may be longer or shorter than meant")
    links: int = param(1, "links whose tolerances add up; the paper counts one, a path has four")
    synchronisation: Time = param(50, "how far two clocks may be apart")
    layer: Literal[0, 1] = param(1, "1 for switches that retime (electrical), 0 for switches that do not (optical)")
    recovery: Time = param(625, "time in which a receiver locks to a new sender; only layer 0 needs it")

    def __post_init__(self):
        for name in ("reconfiguration", "tolerance", "synchronisation", "recovery"):
            require(getattr(self, name) >= 0, name, "zero or more", getattr(self, name))
        require(self.links >= 0, "links", "zero or more", self.links)
        require(self.layer in (0, 1), "layer", "0 or 1", self.layer)

    @property
    def variation(self) -> int:
        """Largest difference in propagation between two links, or two paths of `links`."""
        return 2 * self.tolerance * LIGHT * self.links

    @property
    def lock(self) -> int:
        """The part of the guard in which a receiver finds the bits."""
        return self.recovery if self.layer == 0 else 0

    @property
    def length(self) -> int:
        """The whole guard."""
        return self.reconfiguration + self.variation + self.synchronisation + self.lock

    def buffer_bits(self, rate: int) -> int:
        """Elastic buffer of a switch port on a channel of `rate`: jitter, early or late by `synchronisation`.

        The paper says "a few bits"; that the jitter is as large as the error of the clocks is our reading.
        """
        return 0 if self.layer == 0 else -(-2 * self.synchronisation * rate // s)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A slot: the guard, then one cell on each channel."""

    guard: Time = param(2750, "dark time at the start of a slot")
    link: Rate = param(100 * Gbps, "rate of a node's link, all channels together")
    channels: int = param(4, "channels it is split into")
    cell: Size = param(None, "bytes of a cell; 64 unless the slot decides")
    overhead: Size = param(0, "bytes that framing adds to a cell on the wire; 24 in the prototype")
    slot: Time = param(None, "length of a slot; the largest cell that fits is used unless one is given")

    def __post_init__(self):
        require(self.guard >= 0, "guard", "zero or more", self.guard)
        require(self.channels >= 1, "channels", "at least 1", self.channels)
        require(self.link >= self.channels, "link", "at least 1 b/s per channel", self.link)
        require(self.overhead >= 0, "overhead", "zero or more", self.overhead)
        if self.slot is not None and self.slot <= self.guard:
            slot, guard = show_time(self.slot), show_time(self.guard)
            raise BadInput(f"guard must be shorter than the slot of {slot}, not {guard}")
        if self.cell is None and self.slot is None:
            object.__setattr__(self, "cell", 64)
        elif self.cell is None:
            fits = (self.slot - self.guard) * self.link // (8 * s * self.channels) - self.overhead
            if fits < 1:
                raise BadInput(f"slot must be long enough for a cell of a byte, not {show_time(self.slot)}")
            object.__setattr__(self, "cell", fits)
        require(self.cell >= 1, "cell", "at least 1 byte", self.cell)
        if self.slot is None:
            object.__setattr__(self, "slot", self.guard + self.busy)
        elif self.slot < self.guard + self.busy:
            least = show_time(self.guard + self.busy)
            raise BadInput(f"slot must be at least {least} for cells of {self.cell} B, not {show_time(self.slot)}")

    @property
    def busy(self) -> int:
        """Time that a cell and its framing occupy a channel."""
        return wire_time((self.cell + self.overhead) * self.channels, self.link)

    @property
    def duty(self) -> float:
        """Share of a slot in which the cell itself is sent."""
        return wire_time(self.cell * self.channels, self.link) / self.slot

    @property
    def rate(self) -> float:
        """What is left of the link for cells, b/s."""
        return self.channels * self.cell * 8 * s / self.slot

    @property
    def loss(self) -> float:
        """Share of a slot taken by the guard."""
        return self.guard / self.slot

    def slots(self, time: int) -> int:
        """Whole slots that `time` reaches into."""
        return -(-time // self.slot)


def slot_for(guard: int, loss: float) -> int:
    """The shortest slot of which `guard` takes no more than the share `loss`."""
    require(0 < loss <= 1, "loss", "a share above 0, up to 1", loss)
    return ceil(guard / loss)


def flight(wire: int, switch: int = 320 * ns, ends: int = 0, layer: int = 1) -> int:
    """Time of a bit from node to node: `wire` mm, three switches if they retime, and MAC and PHY at both `ends`."""
    return wire * LIGHT + (STAGES * switch if layer == 1 else 0) + ends
