"""Two sentences of Stardust that no figure shows: what smaller credits do to fairness, what speed-up does to latency.

    python verification/stardust_claims.py         both, a minute

Fairness (App. G): a permutation on 54 hosts, as in Fig. 10a, the least share of a flow over the mean, five seeds with
Student's 95 % interval. Speed-up (§5.7): the two tiers of Fig. 9 on 32 adapters, mean and p99.9 latency of cells, by
the load of the ports.
"""

from dataclasses import replace

import weft
from weft.metrics.statistics import estimate
from weft.papers.stardust import fig09, tree
from weft.units import ms
from weft.workload import Permutation

SEEDS = (1, 2, 3, 4, 5)
CREDITS = (1024, 2048, 4096, 8192, 16384)
SPEEDUPS = (1.0, 1.02, 1.05, 1.1, 1.2)


def credits():
    """Fairness of a permutation by size of credits."""
    print("credit   least over mean    mean, Gb/s")
    for credit in CREDITS:
        fabric, workload = replace(tree(54, "Stardust"), credit=credit), Permutation(duration=10 * ms)
        found = [
            weft.run(fabric, workload, seed=seed).summary()["throughput"]["per_destination_gbps"] for seed in SEEDS
        ]
        least, mean = estimate([one["min"] / one["mean"] for one in found]), estimate([one["mean"] for one in found])
        shown = (f"{value.mean:.3f} ± {value.high - value.mean:.3f}" for value in (least, mean))
        print(f"{credit:6}    " + "      ".join(shown), flush=True)


def speedups():
    """Latency of cells by speed-up and load."""
    fabric, *_ = fig09.fabrics("small")
    loads = [one for one in fig09.study("small").workloads if one.load < 1]
    print("speed-up   " + "".join(f"{f'load {one.load:g}':>20}" for one in loads))
    for speedup in SPEEDUPS:
        line = f"{speedup:8g}   "
        for workload in loads:
            seen = weft.run(replace(fabric, speedup=speedup), workload, seed=1).summary()["latency_us"]
            line += f"{seen['mean']:11.2f} {seen['p99.9']:8.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    credits()
    print()
    speedups()
