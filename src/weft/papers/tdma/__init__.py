"""Practical TDMA for Datacenter Ethernet (EuroSys '12): its figures, of which only captions and text were left to us.

So the only printed points beside ours are those that the text states, and what it says of a testbed's hardware
(Figs. 1 to 5) can be modelled but not reproduced.
"""

import numpy as np

from weft import random
from weft.engine.loop import DONE, REACHED
from weft.fabrics.packet import Packet
from weft.fabrics.tdma.fabric import TDMA
from weft.units import KB, Time, ms, ns, us

HOSTS = 24
BUFFER = 480 * KB  # of a port of a Nexus 5000, as its data sheet says; the paper does not
RTO = 200 * ms  # Linux
TRIP = 170 * us  # a round trip of an idle network with the kernels of its hosts, its 95th percentile (§6.2)
TOGETHER, APART = (
    "TCP, all begin at once",
    "TCP, within 1 ms",
)  # the paper's hosts are not coordinated; how far is not said
SPREAD = 1 * ms
STARTS = 0x74646D20  # stream of when they begin


def starts(count: int, spread: Time, seed: int = 1) -> np.ndarray:
    """(count,) int64 ps: when hosts or flows begin, within `spread`."""
    return random.below(random.words(random.key(seed, STARTS), count), spread + 1)


def carried(fabric: TDMA, flows, *, seed: int = 1, until: Time = 10**16, every: Time | None = None):
    """(the run at its end, [(ps, bytes that have arrived of each pair), …] every so often)."""
    core, progress, moment = fabric.prepare(flows, seed=seed), [], 0
    while True:
        moment = until if every is None else min(until, moment + every)
        why = core.step(moment, 1 << 60)
        if every is not None:
            progress.append((moment, core.state.got.copy()))
        if why == DONE or (why == REACHED and moment == until):
            return core, progress


def tcp(topology: str, mtu: int) -> Packet:
    """The same hosts and links with TCP (NewReno with SACK) and switches that drop what does not fit."""
    return Packet(
        hosts=HOSTS, topology="single" if topology == "switch" else topology, mtu=mtu, buffer=BUFFER // mtu, rto=RTO,
        transport="tcp:sack=true", delay=500 * ns,
    )  # fmt: skip
