"""The packet network once more, with objects and a packet at a time, to be checked by eye.

`run(fabric, flows, seed)` carries flows over a fabric in plain Python. It shares descriptions with the kernel
(topology, routes, settings, the plan of failures) and nothing that moves a packet. Its hosts: `weft.hosts.reference`.
"""

from weft.fabrics.network.reference.network import Network


def run(fabric, flows, *, seed=0, until=None) -> Network:
    """Carry `flows` over `fabric` and return the network afterwards."""
    net = Network(fabric, flows, seed)
    net.run(until)
    return net
