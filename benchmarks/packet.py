"""How many packet-hops a second a packet network runs, beside what is expected of it.

    python benchmarks/packet.py [permutation|open|many|large]

A packet-hop is a packet leaving a link. CPU time of whole runs, one core, compiled code; the better of two, because
other work on the machine makes a run slower, never faster. A line of the calibration loop before and after each group
says how quiet the machine was.
"""

import resource
import sys
from time import process_time

from weft.cli.bench import calibrate
from weft.fabrics.packet import Packet
from weft.units import Gbps, ms, ns
from weft.workload import WORKLOADS

EXPECTED = 5_000_000  # packet-hops a second; htsim does 1.3 M (NDP) and 2.9 M (DCTCP), 0.3 to 0.4 M in open loop


def measure(fabric, workload, until=None, seed=1, runs=None):
    """(packet-hops a second, events a second, CPU seconds) of a run, after a first one that compiles.

    The last run is added to `runs`, a list, if there is one.
    """
    flows = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=seed)
    fabric.prepare(flows, seed=seed).advance(until=1)
    best = float("inf")
    for _ in range(2):
        run = fabric.prepare(flows, seed=seed)
        began = process_time()
        run.advance(until=until)
        best = min(best, process_time() - began)
    if runs is not None:
        runs.append(run)
    return int(run.state.world["hops"][0]) / best, int(run.state.world["released"][0]) / best, best


def show(name, hops, events, took):
    verdict = "" if hops >= EXPECTED else "  below what is expected"
    rates = f"{hops / 1e6:6.2f} M hops/s {events / 1e6:6.2f} M events/s"
    print(f"{name:34} {rates} {took:7.1f} s{verdict}", flush=True)


def permutation():
    """432 hosts, 10 Gb/s, 9000 B."""
    for transport in ("tcp", "dctcp", "mptcp", "ndp", "dcqcn"):
        fabric = Packet(hosts=432, mtu=9000, transport=f"{transport}@stardust-nsdi19")
        workload = WORKLOADS["permutation"](duration=20 * ms)
        show(f"permutation {transport}", *measure(fabric, workload, workload.until))


def open_loop():
    """512 hosts, 50 Gb/s, Pareto flows of mean 100 KB at load 0.6."""
    for transport in ("tcp", "dctcp@shoal-nsdi19", "mptcp", "ndp@shoal-nsdi19", "dcqcn@shoal-nsdi19"):
        fabric = Packet(hosts=512, topology="leafspine", link=50 * Gbps, delay=100 * ns, transport=transport)
        name = transport.split("@")[0]
        show(f"open loop {name}, 20,000 flows", *measure(fabric, WORKLOADS["poisson"](load=0.6, flows=20_000)))


def many():
    """The same with 100,000 flows: minutes at most."""
    fabric = Packet(hosts=512, topology="leafspine", link=50 * Gbps, delay=100 * ns, transport="ndp@shoal-nsdi19")
    show("open loop ndp, 100,000 flows", *measure(fabric, WORKLOADS["poisson"](load=0.6, flows=100_000)))


def large():
    """8,192 hosts: memory."""
    fabric = Packet(hosts=8192, mtu=9000, transport="dctcp")
    workload = WORKLOADS["permutation"](duration=1 * ms)
    show("permutation dctcp, 8,192 hosts", *measure(fabric, workload, workload.until))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    for name, bench in {"permutation": permutation, "open": open_loop, "many": many, "large": large}.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            before = calibrate()
            bench()
            print(f"calibration {before:.1f} ns before, {calibrate():.1f} ns after", flush=True)
