"""How many cell-hops a second Stardust runs: fabrics of three sizes without hosts, and the paper's permutation.

    python benchmarks/stardust.py [--quick]

A cell-hop is a cell leaving a queue for a link. CPU time of one core, compiled code, after the fabric has filled; the
better of two, because other work on the machine makes a run slower, never faster. A line of the calibration loop before
and after says how quiet it was. The aim is 10 M cell-hops/s for the network of Fig. 9 at 95 % load. Without hosts the
smallest fits a core's cache, and the largest, of 32,768 links, does not. The permutation is the one that took the
authors 12 hours, for a millisecond; most of its time is TCP's.
"""

import sys
from time import process_time

from weft.cli.bench import calibrate
from weft.fabrics.stardust import Stardust
from weft.units import Gbps, us
from weft.workload import Permutation
from weft.workload.traffic import Uniform

SIZES = ((8, 8, 8), (32, 16, 32), (256, 32, 128))  # adapters, uplinks, ports of an element
EXPECTED = 10_000_000
FILLED, HOPS = 20 * us, 8_000_000


def measure(fabric, workload, begin, end):
    """(cell-hops a second, CPU seconds) from `begin` to `end`, ps."""
    demand = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    best = float("inf")
    for _ in range(2):
        run = fabric.prepare(demand, seed=1)
        run.advance(until=begin)
        before, began = int(run.world["hops"]), process_time()
        run.advance(until=end)
        best = min(best, process_time() - began)
    return (int(run.world["hops"]) - before) / best, best


def main():
    quick = "--quick" in sys.argv[1:]
    print(f"calibration {calibrate():.2f} ns", flush=True)
    for adapters, uplinks, radix in SIZES:
        fabric = Stardust(adapters=adapters, uplinks=uplinks, radix=radix)
        slots = (HOPS // 8 if quick else HOPS) // (adapters * uplinks * 4)
        end = FILLED + slots * fabric.slot
        rate, took = measure(fabric, Uniform(load=0.95, duration=end), FILLED, end)
        verdict = "" if rate >= EXPECTED else "  below what is expected"
        print(
            f"{adapters:4} adapters of {uplinks} links  {rate / 1e6:6.1f} M cell-hops/s {took:7.2f} s{verdict}",
            flush=True,
        )
    fabric = Stardust(hosts=432, link=10 * Gbps, delay=1 * us, mtu=9000, cell=256, credit=2048, speedup=1.03,
                      per_source=True, transport="tcp@stardust-nsdi19")  # fmt: skip
    end = (200 if quick else 1200) * us
    rate, took = measure(fabric, Permutation(duration=end), 200 * us if not quick else 100 * us, end)
    print(f"permutation of 432 hosts   {rate / 1e6:6.1f} M cell-hops/s {took:7.2f} s", flush=True)
    print(f"calibration {calibrate():.2f} ns", flush=True)


if __name__ == "__main__":
    main()
