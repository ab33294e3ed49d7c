"""Every real room, small: what shared machinery is tested on. A fabric that is in the registry must be here."""

import weft
from weft.units import KB, Gbps, ns, us

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
            for buffers in ("fifo", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq", "load-balanced")
        ),
        weft.Crossbar(ports=8, buffers="cioq", scheduler="ccf"),
    ],
    "packet": [
        *(weft.Packet(hosts=16, transport=name) for name in ("tcp", "ndp", "dctcp", "dcqcn", "mptcp")),
        *(weft.Packet(hosts=16, transport=name, nic="fair") for name in ("dctcp", "ndp")),
        weft.Packet(hosts=16, topology="leafspine", radix=8, transport="tcp:rto_min=300us,rto_first=300us",
                    fail="switch spine0 at 5us until 60us", converge=10 * us),
    ],
    "merchant": [
        weft.Merchant(radix=8, pods=2, transport="ndp"),
        weft.Merchant(radix=8, pods=1, uplink_cards=1, transport="dctcp"),
        weft.Merchant(radix=8, pods=3, transport="ndp:rto_min=100us", fail="core-card 1 at 5us until 60us",
                      grow="pods=2 core_cards=1 until 20us", converge=10 * us),
    ],
    "torus": [
        weft.Torus(dimensions=(2, 4), link=10 * Gbps, period=2 * us),
        weft.Torus(dimensions=(3, 3), routing="dimension", weights=(1, 3), demand=20 * Gbps, period=5 * us),
        weft.Torus(dimensions=(2, 2, 2), routing="valiant", period=1 * us, buffer=20, notice=20 * us),
        weft.Torus(dimensions=(5, 2), transport="tcp:rto_min=300us,rto_first=300us", buffer=10),
        weft.Torus(dimensions=(8,), transport="dctcp", mark=5),
        weft.Torus(dimensions=(3, 3), period=5 * us, notice=10 * us, converge=10 * us,
                   fail="node 3 at 5us until 60us, link 0-1 at 2us until 30us"),
    ],
    "tdma": [
        weft.TDMA(nodes=8, slot=3 * us, guard=500 * ns, round=20 * us, mtu=1000, lag=100 * ns, jitter=99 * ns, delay=0),
        weft.TDMA(nodes=9, topology="tree", slot=2 * us, guard=200 * ns, round=12 * us, mtu=500, lag=0, jitter=50 * ns,
                  delay=10 * ns, loss=0.02, short=2 * KB, reserve=1 * Gbps),
        weft.TDMA(nodes=8, topology="leafspine", scheduler="greedy", slot=3 * us, guard=100 * ns, round=20 * us,
                  mtu=1500, lag=0, jitter=0, delay=0, patience=10 * us,
                  fail="node 3 at 50us until 90us, manager 0 at 100us"),
        weft.TDMA(nodes=6, scheduler="bvn", slot=3 * us, guard=100 * ns, round=20 * us, lag=0, jitter=0, delay=0,
                  send_buffer=8 * KB, receive_buffer=20 * KB, reading=5 * Gbps),
        weft.TDMA(nodes=16, topology="fattree", scheduler="greedy", slot=3 * us, guard=500 * ns, round=20 * us,
                  mtu=1000, lag=0, jitter=50 * ns, delay=10 * ns, slow=3, slow_link=4 * Gbps, share=20 * KB,
                  urgent=2 * KB, deadline=50 * us, writing=8 * Gbps, send_buffer=20 * KB, converge=30 * us,
                  fail="switch core0.1 at 25us until 90us, link h5-edge1.0 at 40us until 80us"),
    ],
    "ideal": [weft.Ideal(nodes=8), weft.Ideal(nodes=9, propagation=700 * ns)],
    "stardust": [
        weft.Stardust(hosts=16),
        weft.Stardust(adapters=4, uplinks=2, lane=10 * Gbps, transport="dctcp", mark=20 * KB),
        weft.Stardust(hosts=9, adapters=3, uplinks=4, tiers=1, lane=10 * Gbps, link=10 * Gbps, cell=512, whole=True,
                      classes="strict", low_latency=True, packing=False),
        weft.Stardust(hosts=16, tiers=3, cell=64, mtu=9000, fci=2, fci_window=1 * us, nic="fair"),
        weft.Stardust(hosts=16, rto=300 * us, period=1 * us, fail="uplink 1.0 at 3us until 90us, "
                      "switch element2.0 at 5us until 60us"),
    ],
}  # fmt: skip
FLOWS = [
    weft.Poisson(load=0.7, sizes="fixed:5KB", flows=60),
    weft.Poisson(load=0.5, sizes="uniform:1B,40KB", flows=60),
    weft.Incast(fan_in=5, bytes=9_000),
    weft.AllToAll(bytes=300),
]
CELLS = weft.Bernoulli(load=0.6, slots=400)

# What only the laws are asked of: every scheduler, and racks in which parts fail for good.
LOSING = {  # flows too, because nobody sends again what is lost, or because an end is gone
    "shoal": [
        weft.Shoal(nodes=9, fail="node 3 at 2us"),
        weft.Shoal(nodes=9, fail="node 3 at 1us, node 5 at 3us until 6us", ber=1e-5),
        weft.Shoal(nodes=9, fail="link 3 upward at 1us, link 4 at 2us until 8us", channels=1),
        weft.Shoal(nodes=18, channels=1, ports=6, fail="uplink 0.0, uplink 3.1"),
        weft.Shoal(nodes=9, fail="node 0 at 5us", drift=1e6, resync=5 * us, failover=40 * us, sync=20, transport="e2e"),
    ],
    "crossbar": [
        *(
            weft.Crossbar(ports=8, buffers=buffers, depth=1, flow_control=False)
            for buffers in ("fifo", "voq", "shared", "cioq", "cicq", "hierarchical", "gcq", "oq", "load-balanced")
        ),
        weft.Crossbar(ports=8, buffers="cioq", scheduler="ccf", depth=1, flow_control=False),
    ],
    "torus": [
        weft.Torus(dimensions=(3, 3), fail="node 3 at 5us", period=2 * us, converge=1 * us, notice=3 * us),
        weft.Torus(
            dimensions=(4, 2),
            fail="node 3 at 2us, link 0-1",
            converge=4 * us,
            period=20 * us,
            notice=1 * us,
            routing="valiant",
        ),
        weft.Torus(dimensions=(3, 3), fail="node 1", transport="tcp:rto_min=100us,rto_first=100us"),
    ],
}
ALSO = {
    "shoal": [*LOSING["shoal"], weft.Shoal(nodes=8, ber=1e-4, transport="e2e", delay=5)],
    "crossbar": [
        *LOSING["crossbar"],
        *(
            weft.Crossbar(ports=8, scheduler=name, iterations=2)
            for name in ("islip", "rrm", "pim", "drrm", "wavefront", "lqf", "ocf", "mwm", "msm")
        ),
        weft.Crossbar(ports=8, buffers="cioq", scheduler="lihp"),
        weft.Crossbar(ports=8, buffers="gcq", depth=1, inner=1, output=1),
    ],
    "torus": [
        *LOSING["torus"],
        weft.Torus(dimensions=(3, 3), weights=(1, 2), strict=True, period=1 * us, headroom=0.0),
        weft.Torus(dimensions=(2, 2, 2, 2), period=1 * us, trees=1, broadcast=0),
        weft.Torus(dimensions=(8,), routing="chosen", period=1 * us, choose=3 * us, tries=3, demands=(9 * Gbps, 0)),
    ],
    "packet": [
        weft.Packet(hosts=16, transport="ndp", nic="fair"),
        weft.Packet(hosts=16, transport="dcqcn", topology="leafspine", radix=8),
        weft.Packet(hosts=16, transport="dctcp", topology="single", buffer=10, mark=4),
    ],
}

EACH = [(name, fabric) for name, fabrics in SMALL.items() for fabric in fabrics]
ONE = [(name, fabrics[0]) for name, fabrics in SMALL.items()]


LAWFUL = EACH + [(name, fabric) for name, fabrics in ALSO.items() for fabric in fabrics]


def named(cases) -> list[str]:
    """Names of test cases: the room, and which of its fabrics."""
    return [f"{name}-{[*SMALL[name], *ALSO.get(name, ())].index(fabric)}" for name, fabric in cases]
