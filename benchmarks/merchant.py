"""The 3,456-port switch: how long it takes to build, to cut in halves, and to carry a permutation, beside our aims.

CPU time, one core, compiled code. Packet-hops a second are of 0.3 ms of a permutation in packets of 9000 B, the better
of two, in turn with the fat tree of as many hosts that `weft run packet` has, and one of 432, which fits the cache. The
calibration loop of `weft bench` says how quiet the machine was. `--quick` leaves all transports out but NDP.
"""

import resource
import sys
from time import process_time

from weft.cli.bench import calibrate
from weft.fabrics.merchant.fabric import Merchant
from weft.fabrics.packet import Packet
from weft.units import ns, us
from weft.workload import Permutation

HOPS, BUILT, MEMORY = 5e6, 5, 8e9  # a second, s, bytes: what is wanted at least and at most
UNTIL = 300 * us


def hops(fabric):
    """Packet-hops a second of CPU time, after a first run that compiles."""
    flows = Permutation(duration=UNTIL).draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    fabric.prepare(flows, seed=1).advance(until=1)
    best = 0.0
    for _ in range(2):
        run = fabric.prepare(flows, seed=1)
        began = process_time()
        run.advance(until=UNTIL)
        took = process_time() - began
        best = max(best, run.observe().work["packet_hops"] / took)
    return best


def timed(work):
    began = process_time()
    found = work()
    return found, process_time() - began


def main():
    switch, built = timed(lambda: Merchant().routes and Merchant())
    bandwidth, cut = timed(switch.bisection)
    verdict = "ok" if built < BUILT else "SLOW"
    print(f"built with routes in {built:.2f} s, {verdict}; {bandwidth / 1e12:g} Tb/s in {cut:.2f} s")
    for transport in ("ndp",) if "--quick" in sys.argv[1:] else ("ndp", "dctcp", "tcp", "dcqcn"):
        before = calibrate()
        mine = hops(Merchant(transport=transport, mtu=9000))
        same = hops(Packet(hosts=3456, transport=transport, mtu=9000, delay=300 * ns))
        small = hops(Packet(hosts=432, transport=transport, mtu=9000, delay=300 * ns))
        verdict = "" if mine >= HOPS else "  below what is wanted"
        rates = f"{mine / 1e6:5.2f} M packet-hops/s; fat tree of 3,456 {same / 1e6:5.2f}, of 432 {small / 1e6:5.2f}"
        print(f"{transport:6} {rates}; calibration {before:.1f} and {calibrate():.1f} ns{verdict}", flush=True)
    most = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{most / 1e9:.2f} GB at the most, {'ok' if most < MEMORY else 'TOO MUCH'}")


if __name__ == "__main__":
    main()
