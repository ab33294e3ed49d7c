"""Every real room, small: what shared machinery is tested on. A fabric that is in the registry must be here."""

import weft
from weft.units import us

SMALL = {
    "shoal": [
        weft.Shoal(nodes=8),
        weft.Shoal(nodes=7, channels=2, delay=3),
        weft.Shoal(nodes=9, sharing="shortest"),
        weft.Shoal(nodes=8, rules="released"),
        weft.Shoal(nodes=8, rules="literal", channels=1),
        weft.Shoal(nodes=9, fail="node 3 at 2us until 9us", transport="e2e"),
        weft.Shoal(nodes=8, ber=1e-5, classes=2),
    ],
    "crossbar": [
        weft.Crossbar(ports=8),
        *(
            weft.Crossbar(ports=8, buffers=buffers)
            for buffers in ("fifo", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq")
        ),
        weft.Crossbar(ports=8, buffers="cioq", scheduler="ccf"),
    ],
    "packet": [
        *(weft.Packet(hosts=16, transport=name) for name in ("tcp", "ndp", "dctcp", "dcqcn", "mptcp")),
        weft.Packet(hosts=16, topology="leafspine", radix=8, transport="tcp:rto_min=300us,rto_first=300us",
                    fail="switch spine0 at 5us until 60us", converge=10 * us),
    ],
}  # fmt: skip
FLOWS = [
    weft.Poisson(load=0.7, sizes="fixed:5KB", flows=60),
    weft.Poisson(load=0.5, sizes="uniform:1B,40KB", flows=60),
    weft.Incast(fan_in=5, bytes=9_000),
    weft.AllToAll(bytes=300),
]
CELLS = weft.Bernoulli(load=0.6, slots=400)

EACH = [(name, fabric) for name, fabrics in SMALL.items() for fabric in fabrics]
ONE = [(name, fabrics[0]) for name, fabrics in SMALL.items()]


def named(cases) -> list[str]:
    """Names of test cases: the room, and which of its fabrics."""
    return [f"{name}-{SMALL[name].index(fabric)}" for name, fabric in cases]
