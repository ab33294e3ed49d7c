"""The hosts once more, with objects and a packet at a time, to be checked by eye: one file a subject, as the kernels.

`Hosts` is everything but the network. A network's twin derives from it; given the same flows and seed the two must end
in the same fingerprint, which is folded over every arrival at a host and every loss, in order.
"""

from weft.hosts.reference.hosts import Hosts
from weft.hosts.reference.packet import Packet

__all__ = ("Hosts", "Packet")
