"""Settings: the parameters of a transport and of the queues it meets in a packet network, by name.

The presets are those of hosts (`weft.hosts.settings`), which name values of switches too.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from weft.errors import BadInput, require
from weft.hosts import settings as transports
from weft.hosts.settings import LEAST, MOST, NICS, ROUTINGS, TRANSPORTS, WIRE, Nic, Routing, presets
from weft.units import Size, param

__all__ = (
    "LEAST", "NICS", "QUEUES", "ROUTINGS", "TRANSPORTS", "WIRE", "Nic", "Queue", "Routing", "Settings", "origins",
    "presets", "settings",
)  # fmt: skip

Queue = Literal["droptail", "trim", "priority", "lossless"]
QUEUES = get_args(Queue)


@dataclass(frozen=True, kw_only=True)
class Settings(transports.Settings):
    """What a transport and its queues are set to. Packets are full-size ones; their size is the fabric's MTU."""

    queue: str = param("droptail", f"what switch ports do: {', '.join(QUEUES)}", origin="assumed")
    buffer: int = param(
        100, "data packets a switch port holds", origin="assumed: that of Shoal §7.3 and Stardust App. G"
    )
    share: float = param(
        0.0,
        "dynamic threshold: a port may take this many times what is free of its switch's buffers",
        origin="assumed: ports have their own buffers",
    )
    mark_from: int = param(
        0, "packets above which ECN marks begin; 0 never marks", origin="off: the protocol uses no marks"
    )
    mark_all: int = param(
        0,
        "packets above which every packet is marked; 0 is mark_from, a step",
        origin="off: the protocol uses no marks, or a step (SIGCOMM '10 §3.1)",
    )
    mark_chance: float = param(
        1.0, "marking probability reached just below mark_all (RED)", origin="a step (SIGCOMM '10 §3.1)"
    )
    prefer: int = param(
        255,
        "headers that may pass before a waiting data packet goes; 255 is strict priority",
        origin="strict priority (IEEE 802.1Q)",
    )
    trim_tail: bool = param(
        True,
        "trim the packet at the tail instead of the newcomer every other time, at random",
        origin="NDP, SIGCOMM '17 §3.1",
    )
    bounce: bool = param(
        True, "return headers that find the header queue full to their sender", origin="NDP, SIGCOMM '17 §3.2.4"
    )
    xoff: int = param(15, "packets from one port at which its sender is told to pause", origin="assumed")
    xon: int = param(12, "packets from one port at which it may go on", origin="assumed")
    headroom: Size = param(
        0,
        "bytes kept for what arrives after a pause was sent; 0 is as much as the link needs",
        origin="what IEEE 802.1Qbb needs for the link",
    )

    def __post_init__(self):
        super().__post_init__()
        require(self.queue in QUEUES, "queue", f"one of {', '.join(QUEUES)}", self.queue)
        require(self.buffer >= 1, "buffer", "at least 1 packet", self.buffer)
        require(0 <= self.share <= 1 << 20, "share", "from 0 to 1048576", self.share)
        require(self.headroom >= 0, "headroom", "0 or more", self.headroom)
        for name in ("buffer", "headroom", "xoff"):
            require(getattr(self, name) <= MOST, name, "at most 10^9", getattr(self, name))
        require(0 <= self.mark_chance <= 1, "mark_chance", "from 0 to 1", self.mark_chance)
        require(self.mark_from >= 0, "mark_from", "0 or more packets", self.mark_from)
        if self.mark_all and self.mark_all < self.mark_from:
            raise BadInput(f"mark_all must be at least mark_from, {self.mark_from} packets, not {self.mark_all}")
        for name in ("mark_from", "mark_all"):
            if getattr(self, name) > self.buffer and self.queue != "lossless":
                raise BadInput(
                    f"{name}, where ECN marks, must be at most the buffer, {self.buffer} packets, not "
                    f"{getattr(self, name)}"
                )
        for name in ("xoff", "xon", "prefer"):
            require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        require(self.xon <= self.xoff, "xon", f"at most xoff, {self.xoff}", self.xon)
        require(self.prefer <= 255, "prefer", "at most 255, which is always", self.prefer)


def settings(text: str, **changes) -> Settings:
    """The settings called `text`, with those of `changes` that are not None."""
    return transports.settings(text, Settings, **changes)


def origins(text: str) -> dict[str, str]:
    """Where each value of the settings called `text` comes from; a value that no source states is `assumed`."""
    return transports.origins(text, Settings)
