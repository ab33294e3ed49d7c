"""Stardust: Divide and Conquer in the Data Center Network (NSDI '19): its figures, and what it is compared with.

The images of the printed figures were not available to us, only the text.
"""

from weft.fabrics.packet import Packet
from weft.fabrics.stardust import Stardust
from weft.units import Gbps, us

OTHERS = {name: f"{name.lower()}@stardust-nsdi19" for name in ("DCTCP", "MPTCP", "DCQCN", "NDP")}
SYSTEMS = {"Stardust": "tcp@stardust-nsdi19", **OTHERS}  # name -> transport: NewReno above Stardust (App. G)
SHOWN = ("DCTCP", "MPTCP")  # beside Stardust, in the printed incast; DCQCN and NDP were left out (App. G)


def tree(hosts, system) -> Packet | Stardust:
    """The fat tree of §6.3 with so many hosts: links of 10 Gb/s, packets of 9000 B.

    Stardust has cells of 512 B, credits of 4 KB and 3 % of speed-up, and takes turns between flows (App. G). Ports give
    no credits while more than 100 packets wait, the buffers of the others: it "uses similar buffering resources".
    """
    if system == "Stardust":
        return Stardust(
            hosts=hosts, link=10 * Gbps, delay=1 * us, mtu=9000, transport=SYSTEMS[system], cell=512, credit=4096,
            speedup=1.03, per_source=True, watermark=100 * 9038,
        )  # fmt: skip
    return Packet(hosts=hosts, topology="fattree", link=10 * Gbps, mtu=9000, transport=SYSTEMS[system])


def drops_of(row) -> int:
    """Packets that the network of a row has dropped, for whatever cause."""
    return sum(row.get(f"drops.{why}") or 0 for why in ("full", "link_down", "no_route", "lossless", "late"))


def system_of(row) -> str:
    """The network that a row of a study is about."""
    return next(name for name, transport in SYSTEMS.items() if transport == row["fabric.transport"])
