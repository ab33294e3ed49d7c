"""TDMA's schedulers side by side: throughput, waits, computing time, and how many hosts each can plan within a round.

A round of 10 ms has 31 slots. Every pair of hosts has up to four slots' worth to send, drawn at random. Times are CPU
times of five rounds, the median and the worst, machine code not counted; the worst must fit into a round. `--quick`
leaves out all beyond 384 hosts.
"""

import sys

from weft.fabrics.tdma.plan import throughput
from weft.fabrics.tdma.planning import Planning
from weft.fabrics.tdma.schedulers import SCHEDULERS, scheduler

HOSTS = (24, 96, 384, 1024, 4096)
ALIKE = {"size": 4 * 375_000, "demand": "random"}
LIMIT = 10.0  # ms: a round
PATIENCE = 1000.0  # ms: a scheduler that needs more is not tried with more hosts
EXPECTED = {"wrr": 384, "greedy": 384}  # hosts that must be planned within a round


def measured(name, hosts, topology="switch", repeat=5):
    """(share of the links, longest wait and its bound in slots, median and worst ms)."""
    planning = Planning(hosts=hosts, scheduler=name, topology=topology, repeat=repeat, **ALIKE)
    schedule, seconds = planning.run()
    network = planning.network()
    bound = scheduler(name, network).bound(planning.slots)
    times = [1000 * second for second in sorted(seconds)]
    return throughput(network, schedule), schedule.longest_wait(), bound, times[len(times) // 2], times[-1]


def largest(name, low, high):
    """The most hosts planned within a round, to 5 %; `low` are, `high` are not."""
    while high - low > low // 20:
        middle = (low + high) // 2
        low, high = (middle, high) if measured(name, middle)[-1] < LIMIT else (low, middle)
    return low


def main():
    sizes = HOSTS[:3] if "--quick" in sys.argv[1:] else HOSTS
    print("scheduler  hosts  links used  longest wait  bound  median ms  worst ms")
    failed = False
    for name in SCHEDULERS:
        able, unable = 0, None
        for hosts in sizes:
            share, wait, bound, median, ms = measured(name, hosts)
            row = f"{name:<9}  {hosts:>5}  {100 * share:>8.1f} %  {wait:>12}  {'none' if bound is None else bound:>5}"
            print(f"{row}  {median:>9.1f}  {ms:>8.1f}", flush=True)
            if ms < LIMIT:
                able = hosts
            elif unable is None:
                unable = hosts
            if ms > PATIENCE:
                break
        if unable is not None:
            able = largest(name, able or 2, unable)
        more = "" if unable else " and more"
        print(f"{name:<9}  plans {able} hosts{more} within a round of {LIMIT:g} ms", flush=True)
        failed |= able < EXPECTED.get(name, 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
