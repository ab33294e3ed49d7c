"""Stardust: Divide and Conquer in the Data Center Network (NSDI '19): its figures, as far as there is what they show.

So far the networks it is compared with, in the set-up of §6.3 and App. G. The images of the printed figures were not
available to us, only the text.
"""

from weft.fabrics.packet import Packet
from weft.units import Gbps

SYSTEMS = {name: f"{name.lower()}@stardust-nsdi19" for name in ("DCTCP", "MPTCP", "DCQCN", "NDP")}
SHOWN = ("DCTCP", "MPTCP")  # beside Stardust, in the printed incast; DCQCN and NDP were left out (App. G)


def tree(hosts, system) -> Packet:
    """The fat tree of §6.3 with so many hosts: links of 10 Gb/s, packets of 9000 B."""
    return Packet(hosts=hosts, topology="fattree", link=10 * Gbps, mtu=9000, transport=SYSTEMS[system])
