"""A packet of the twin: one object with all its headers."""

from dataclasses import dataclass, field
from typing import Any

KINDS = {"data": 1, "ack": 2, "nack": 3, "pull": 4, "cnp": 5}  # as the fingerprint folds them


@dataclass(eq=False)
class Packet:
    """What a host sends."""

    kind: str
    size: int  # on the wire
    flow: Any = None
    subflow: int = 0
    dst: int = -1
    seq: int = -1
    path: int = 0
    sent: int = 0
    echo: int = -1
    blocks: list = field(default_factory=list)  # runs of segments, (first, end), that a selective ACK names
    data_ack: int = 0  # of MPTCP's ACK: up to where the flow is complete
    marked: bool = False
    echoes_mark: bool = False
    trimmed: bool = False
    returned: bool = False
    urgent: bool = False
    came: Any = None  # the network's: the port it came by
    crossed_in: int = 0  # the network's: how often its port had failed when it was accepted
