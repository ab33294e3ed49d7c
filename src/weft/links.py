"""Links of fabrics that are compared: the same for all, or said to differ.

A default is right for the paper that it comes from and wrong beside another: packet networks begin with 10 Gb/s and
1 µs a link, Shoal with 100 Gb/s and none, and that alone can turn a comparison round. What links have:

rate         b/s of a node's link, all its channels together
propagation  time along one cable: from a node to the switch that it is plugged into, or from switch to switch; where
             switches store packets, the time through the switch behind the cable is in it. A cell of Shoal crosses two
             cables from node to node (four where circuit switches form a Clos) and often goes over another node, which
             doubles that; a packet crosses two cables to a neighbour on its own switch, six across a fat tree.
mtu          the largest packet, in fabrics that have packets
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from weft.errors import BadInput
from weft.parameters import Parameter
from weft.units import show_rate, show_size, show_time

if TYPE_CHECKING:
    from weft.fabrics.base import Fabric

KINDS = {"rate": "rate", "propagation": "time", "mtu": "size"}
SHOWN = {"rate": show_rate, "propagation": show_time, "mtu": show_size}
SAID = {"rate": "link", "propagation": "propagation", "mtu": "mtu"}


def fair(*fabrics: "Fabric", rate=None, propagation=None, mtu=None) -> "list[Fabric]":
    """The fabrics with links alike: what is given is set in all that know it, the rest stays as it is.

    Quantities may be texts: `fair(shoal, ndp, rate="100Gbps", propagation="100ns", mtu=1500)`.
    """
    given = read({"rate": rate, "propagation": propagation, "mtu": mtu})
    return [one.with_links(**{name: given[name] for name in one.link_fields() if name in given}) for one in fabrics]


def read(table: dict) -> dict[str, int]:
    """What a table of rate, propagation and mtu gives; nothing for what is None."""
    for name in table:
        if name not in KINDS:
            raise BadInput(f"links must have some of {', '.join(KINDS)}, not {name!r}")
    return {name: Parameter(name, KINDS[name]).read(value) for name, value in table.items() if value is not None}


def differences(named: "Iterable[tuple[str, Fabric]]") -> list[str]:
    """A sentence for each of rate, propagation and mtu in which the fabrics, by name, are not alike."""
    known = [(name, fabric.links()) for name, fabric in named]
    said = []
    for what, show in SHOWN.items():
        values: dict[int, list[str]] = {}
        for name, links in known:
            if what in links:
                values.setdefault(links[what], []).append(name)
        if len(values) > 1:
            each = "; ".join(f"{', '.join(dict.fromkeys(names))} {show(value)}" for value, names in values.items())
            said.append(f"{SAID[what]} differs: {each}")
    return said
