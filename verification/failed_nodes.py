"""Shoal's Fig. 17 between its scales: the paper's 512 nodes, a tenth of its flows, three seeds.

    python verification/failed_nodes.py                      all, an hour on a processor
    python verification/failed_nodes.py discarded 20 40      one reading of what is offered, some shares of dead nodes

Prints the tail of short flows and the goodput of long ones over those of the whole rack of the same seed: the mean over
the seeds, and half of the interval that holds the mean of many with 95 %.
"""

import sys

import weft
from weft.papers.shoal import fig17
from weft.units import us

NODES, WINDOW, SEEDS = 512, 3_125 * us, 3


def seen(offered, dead):
    """(p99.9 of short flows in us, Gb/s of long ones) of each seed."""
    found = []
    for point in fig17.runs_of(NODES, WINDOW, SEEDS).points:
        if point.workload.offered == offered and (point.workload.dead or None) == fig17.plan(dead):
            summary = weft.run(point.fabric, point.workload, seed=point.seed, until=point.until).summary()
            found.append((summary["fct_us"]["short"]["p99.9"], summary["goodput_gbps"]["long"]["mean"]))
    return found


def main(readings, shares):
    print("  offered  dead   tail_ratio        goodput_ratio")
    for offered in readings:
        whole = seen(offered, 0)
        for dead in shares:
            pairs = list(zip(seen(offered, dead), whole, strict=True))
            both = [fig17.interval([ours[k] / base[k] for ours, base in pairs]) for k in (0, 1)]
            print(
                f"{offered:>9} {dead:5}   " + "     ".join(f"{mean:.3f} ± {off:.3f}" for mean, off in both), flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:2] or fig17.OFFERED, [int(share) for share in sys.argv[2:]] or fig17.DEAD[1:])
