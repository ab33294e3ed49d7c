"""Settings of R2C2 in the words of transports: hosts ask the same of every transport."""

from dataclasses import dataclass
from typing import ClassVar

from weft.fabrics.network import settings as network
from weft.hosts import settings as hosts
from weft.units import Time, param, us

ONE = 1 << 20  # what parts of a flow's traffic are counted in
CHANCES = 1 << 20  # what the chance of a lost broadcast is counted in
LOSS_STREAM = 0x6C6F7373  # of the draws that decide it
CHOICE_STREAM = 0x63686F69  # of the flows whose routing is tried the other way
HEADER = 32  # bytes of a packet that are no payload: route, flow, number; assumed


@dataclass(frozen=True, kw_only=True)
class Settings(network.Settings):
    """What a transport of a torus and its queues are set to."""

    transports: ClassVar[tuple[str, ...]] = (*hosts.TRANSPORTS, "r2c2")

    notice: Time = param(500 * us, "time after which a sender knows of a loss", origin="assumed")


def settings(text: str, **changes):
    """The settings called `text`: those of R2C2, which has no preset, or of a preset."""
    if text == "r2c2":
        chosen = {name: value for name, value in changes.items() if value is not None}
        return Settings(transport="r2c2", header=HEADER, routing="random", max_window=2, **chosen)
    changes.pop("notice")
    return network.settings(text, **changes)
