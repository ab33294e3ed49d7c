"""How many packet-hops a second a torus runs, beside Clos networks in the same run, and what computing rates costs.

    python benchmarks/torus.py [hops|many|permutation|rates]

A packet-hop is a packet leaving a link. CPU time of whole runs, one core, compiled code, the better of two. A torus has
six hops where a leaf-spine has four, and under R2C2 no acknowledgements. Of those of leaf-spines DCQCN is most like it:
a timer for every packet, too. Under R2C2 copies of broadcasts leave links as well, 511 a broadcast, 16 bytes each; they
are no events, and no packet-hops: what leaves links with them is a line of its own.
"""

import sys
from time import process_time

import numpy as np
from packet import measure, show

from weft.cli.bench import calibrate
from weft.fabrics.packet import Packet
from weft.fabrics.torus import Torus
from weft.units import Gbps, ns, us
from weft.workload import Permutation, Poisson

CLOS = {"hosts": 512, "topology": "leafspine", "link": 50 * Gbps, "delay": 100 * ns}
TRANSPORTS = {"tcp": "tcp", "ndp": "ndp@shoal-nsdi19", "dcqcn": "dcqcn@shoal-nsdi19"}


def tell(name, fabric, workload, until=None, *, pile=False):
    """Print packet-hops a second, with copies of broadcasts beside them, and how many packets were alive at most."""
    runs: list = []
    rates = measure(fabric, workload, until, runs=runs)
    show(name, *rates)
    world = runs[-1].state.world[0]
    copies = int(world["broadcasts"]) * (fabric.nodes - 1) if isinstance(fabric, Torus) else 0
    if copies:
        hops, took = int(world["hops"]), rates[2]
        each = f"{(hops + copies) / took / 1e6:6.2f} M/s packet-hops and copies of broadcasts together"
        print(f"{'':34} {each}: {hops / 1e6:.1f} M and {copies / 1e6:.1f} M")
    if pile:
        print(f"{'':34} {int(world['used']):,} packets and timers at most at once", flush=True)


def hops():
    """512 nodes, Pareto flows of mean 100 KB, 12 Gb/s a node: 0.72 of what the links of the torus can carry.

    Leaf-spines have the same traffic, which is 0.24 of their links, and then as much as puts 0.72 on theirs.
    """
    tcp, ndp, dcqcn = (Packet(**CLOS, transport=transport) for transport in TRANSPORTS.values())
    for name, fabric, load in (
        ("leaf-spine, tcp", tcp, 0.24),
        ("leaf-spine, tcp, links as full", tcp, 0.72),
        ("torus, tcp", Torus(transport="tcp"), 0.12),
        ("leaf-spine, ndp", ndp, 0.24),
        ("leaf-spine, ndp, links as full", ndp, 0.72),
        ("leaf-spine, dcqcn", dcqcn, 0.24),
        ("leaf-spine, dcqcn, links as full", dcqcn, 0.72),
        ("torus, r2c2", Torus(), 0.12),
        ("torus, r2c2, rates every 5 us", Torus(period=5 * us), 0.12),
    ):
        tell(name, fabric, Poisson(load=load, sizes="pareto", flows=20_000))


def many():
    """100,000 flows at load 0.6, 3.6 times what the links of the torus can carry: all of it waits somewhere.

    Leaf-spines have the same traffic, which is 1.2 of their links, and then as much as is 3.6 times what theirs carry.
    """
    clos = {name: Packet(**CLOS, transport=transport) for name, transport in TRANSPORTS.items()}
    for name, fabric, load in (
        *((f"leaf-spine, {name}", one, 1.2) for name, one in clos.items()),
        *((f"leaf-spine, {name}, links as full", one, 3.6) for name, one in clos.items()),
        ("torus, tcp", Torus(transport="tcp"), 0.6),
        ("torus, r2c2", Torus(), 0.6),
        ("torus, r2c2, rates every 5 us", Torus(period=5 * us), 0.6),
    ):
        tell(name, fabric, Poisson(load=load, sizes="pareto", flows=100_000))


def permutation():
    """1 ms of endless flows, one from each of 512 nodes, which have no rates for the first 500 us."""
    for name, fabric in {"r2c2": Torus(), "r2c2, first 5 Gb/s": Torus(first=5 * Gbps)}.items():
        workload = Permutation()
        tell(f"permutation, {name}", fabric, workload, workload.until, pile=True)


def rates():
    """One computation of the rates of so many flows, all known and none new."""
    from weft.fabrics.torus import kernel
    from weft.fabrics.torus.bounds import known

    for routing in ("minimal", "dimension", "valiant"):
        for flows in (100, 1000, 10_000):
            fabric = Torus(routing=routing)
            run = known(fabric, Poisson(load=0.5, sizes="pareto", flows=flows).draw(nodes=512, link=100 * Gbps, seed=1))
            kernel.pour(run.state.world)
            took = []
            for _ in range(3):
                began = process_time()
                kernel.pour(run.state.world)
                took.append(process_time() - began)
            world = run.state.world[0]
            loads = int(run.state.entries["count"][:flows].astype(np.int64).sum())
            ports = int(world["frozen_ports"]) // int(world["computations"])
            each = f"{1e9 * min(took) / loads:.1f} ns a load, {ports} full ports"
            print(f"{routing:10} {flows:6,} flows  {1000 * min(took):8.2f} ms, {loads:10,} loads, {each}", flush=True)


if __name__ == "__main__":
    for name, bench in {"hops": hops, "many": many, "permutation": permutation, "rates": rates}.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            before = calibrate()
            bench()
            print(f"calibration {before:.1f} ns before, {calibrate():.1f} ns after", flush=True)
