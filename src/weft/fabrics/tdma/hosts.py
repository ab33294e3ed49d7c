"""Hosts as the paper measured them (§3.2): how late they act on a frame, what their clocks do, what they can report.

Its figures are lost, so these are models with the few numbers that the text prints, not reproductions:

nic        802.3x in the NIC: 2 to 6 us after a frame was sent (Fig. 1), a variation of 5 us or less at one host
software   PFC in user space: some 150 us (100 to 200, Fig. 5) with little variation, so that slots lag the manager

On top of both a packet that is being sent is finished, which makes the delay grow with the packet's size (Fig. 2).
"""

from dataclasses import dataclass

import numpy as np

from weft import random
from weft.errors import require
from weft.units import Gbps, Rate, Size, Time, us, wire_time

REACTIONS, PHASES, DRIFTS = 0x74646D10, 0x74646D11, 0x74646D12  # streams of what is drawn here


@dataclass(frozen=True, kw_only=True)
class Reaction:
    """From the arrival of a frame until the host does what it says: `lag`, and up to `jitter` more, evenly drawn."""

    lag: Time
    jitter: Time

    def __post_init__(self):
        require(0 <= self.lag <= 10**12, "lag", "from 0 to 1 s", self.lag)
        require(0 <= self.jitter < 2**31, "jitter", "from 0 to 2 ms", self.jitter)


NIC = Reaction(lag=2 * us, jitter=4 * us)
SOFTWARE = Reaction(lag=150 * us, jitter=5 * us)
REACTIONS_BY_NAME = {"nic": NIC, "software": SOFTWARE}


def pause_delay(
    reaction: Reaction, packet: Size, *, link: Rate = 10 * Gbps, count: int = 1000, seed: int = 0
) -> np.ndarray:
    """(count,) int64 ps from a pause frame to the end of the last packet of a sender that never rests (Figs. 1, 2, 5).

    The frame is acted upon at any point of a packet, which is finished.
    """
    late = random.below(random.words(random.key(seed, REACTIONS), count), reaction.jitter + 1)
    whole = wire_time(packet, link)
    rest = random.below(random.words(random.key(seed, PHASES), count), whole)
    return reaction.lag + late + whole - rest


def arrival_spread(reaction: Reaction, hosts: int, *, count: int = 1000, seed: int = 0) -> np.ndarray:
    """(count,) int64 ps by which the gap between two control frames differs over hosts (§3.2.3, Figs. 3, 4).

    Frames are sent to one host after another, so what is systematic drops out of the gap; what is left is jitter.
    """
    words = random.words(random.key(seed, REACTIONS), 2 * count * hosts).reshape(count, 2, hosts)
    late = random.below(words, reaction.jitter + 1)
    gaps = late[:, 1] - late[:, 0]
    return gaps.max(1) - gaps.min(1)


def clock_error(hosts: int, after: Time, *, ppb: int = 50_000, seed: int = 0) -> np.ndarray:
    """(hosts,) int64 ps by which clocks are wrong `after` they were set; each keeps a rate within ±`ppb` (§3.2.1).

    Two clocks of ±50 ppm come apart by up to 100 us in a second, the paper's 2 ms in 20 s.
    """
    rate = random.below(random.words(random.key(seed, DRIFTS), hosts), 2 * ppb + 1) - ppb
    return rate * (after // 10**6) // 1000


def visible(backlog: int, buffer: int | None) -> int:
    """Bytes of a demand that a host reports: what the application has written, and no more than the socket holds."""
    return backlog if buffer is None else min(backlog, buffer)
