"""What two of TDMA's figures hang on: TCP's time (Figs. 7 and 8) on buffers and timers, Fig. 11 on when hosts stop.

    python verification/tdma.py              both, three minutes
    python verification/tdma.py blocks       one of them

Transfers: time over the ideal of 100 MB for each pair of 24 hosts that begin within 1 ms, on a switch and on the tree,
one thing changed at a time: the mean of three seeds and half of its 95 % interval. 1.223 and 1.196 are printed, for
10 GB. Nothing is tuned to meet them. Blocks: what a host gets whose blocks are whole slots, if hosts are late by up to
4 us, as those of Fig. 1, and if all are as late as each other.
"""

import sys

from weft.metrics.statistics import estimate
from weft.papers.tdma import APART, fig11
from weft.papers.tdma.alltoall import by_tcp
from weft.units import KB, MB, ms

SEEDS, MTU = (1, 2, 3), 9000
CHANGES = {
    "as in the figures": {},
    "120 KB a port": {"buffer": 120 * KB // MTU},
    "240 KB a port": {"buffer": 240 * KB // MTU},
    "960 KB a port": {"buffer": 960 * KB // MTU},
    "timers of 20 ms": {"rto": 20 * ms},
    "a window of 64": {"transport": "tcp:sack=true,max_window=64"},
    "no SACK": {"transport": "tcp"},
}


def transfers():
    """A row for each change."""
    print("changed                  one switch             tree")
    for name, change in CHANGES.items():
        shown = []
        for topology, pods in (("switch", 1), ("tree", 3)):
            rows = [by_tcp(topology, 100 * MB, MTU, pods, APART, seed, **change) for seed in SEEDS]
            over = estimate([row["over_ideal"] for row in rows])
            shown.append(f"{over.mean:.3f} ± {over.high - over.mean:.3f}")
        print(f"{name:20} {shown[0]:>14}   {shown[1]:>14}", flush=True)


def blocks():
    """A row for each seed, Gb/s by size of blocks in slots."""
    sizes = (375, 750, 1500, 3750)
    print("jitter  seed " + "".join(f"{size // fig11.SLOT:>7}" for size in sizes))
    for jitter in (None, 0):
        for seed in SEEDS:
            rates = [fig11.in_slots(size, seed, jitter=jitter)["gbps"] for size in sizes]
            print(f"{'none' if jitter == 0 else '4 us':6} {seed:5} " + "".join(f"{rate:7.2f}" for rate in rates))


CHECKS = (transfers, blocks)

if __name__ == "__main__":
    for check in CHECKS:
        if len(sys.argv) < 2 or check.__name__ in sys.argv[1:]:
            check()
            print()
