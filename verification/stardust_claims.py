"""Two sentences of Stardust that no figure shows, and what holds two of its figures back.

    python verification/stardust_claims.py              all, four minutes
    python verification/stardust_claims.py incast       those named

Fairness (App. G): a permutation on 54 hosts, as in Fig. 10a, the least share of a flow over the mean, five seeds with
Student's 95 % interval. Speed-up (§5.7): the two tiers of Fig. 9 on 32 adapters, mean and p99.9 latency of cells, by
the load of the ports. Incast (Fig. 10c): 400 of 432 hosts, the last flow over what the link allows, by how much may
wait at the port and by credit. Pair (Fig. 10b, 432 hosts): what the pair's flows take if adapters drop, or pause their
hosts. Turns (§6.1.2): mean latency by size, at shares of what 1,152 ports carry.
"""

import sys
from dataclasses import replace

import weft
from weft.metrics.statistics import estimate
from weft.papers.stardust import fig09, fig10b, single, tree
from weft.units import KB, ms, us, wire_time
from weft.workload import Incast, Permutation

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


def incast():
    """The last completion of Fig. 10c's largest incast, over what the receiver's link allows."""
    workload, optimum = Incast(fan_in=400, bytes=450 * KB), 145.5
    print("packets that may wait  credit   last, ms   over the link's")
    for packets, credit in ((100, 4096), (1000, 4096), (100, 9088)):
        fabric = replace(tree(432, "Stardust"), watermark=packets * 9038, credit=credit)
        last = weft.run(fabric, workload, seed=1).summary()["fct_us"]["last"] / 1000
        print(f"{packets:21} {credit:7} {last:10.1f} {last / optimum:17.2f}", flush=True)


def pair():
    """Flows of Fig. 10b's pair, mean of each size in us, where a full adapter drops, and where it pauses its hosts."""
    study = fig10b.study("paper")
    print("overflow   timeouts     10 KB    100 KB      1 MB   longest of 1 MB")
    for overflow in ("drop", "pause"):
        runs = replace(study, fabrics=[replace(tree(432, "Stardust"), overflow=overflow)]).run()
        means = {row["bytes"]: row for row in fig10b.measure(runs)}
        shown = "".join(f"{means[size]['mean_us']:10.0f}" for size in (10_000, 100_000, 1_000_000))
        print(f"{overflow:9} {runs.rows[0]['timeouts']:9}{shown} {means[1_000_000]['max_us']:17.0f}", flush=True)


def turns():
    """Mean latency of packets over 1,152 ports, from first bit in to last bit out, by share of what they carry."""
    shares = (0.3, 0.6, 0.9)
    print("bytes   " + "".join(f"{share:>8g}" for share in shares))
    for size in single.SIZES[:-1]:
        fabric = single.system(1152, size)
        gap = wire_time(size + single.GAP, fabric.link)
        span = 24 * us + 8 * gap
        carried = min(single.seen_of(fabric, gap, span)[0] * gap / (span - span // 2), 1)
        means = [single.seen_of(fabric, int(gap / (share * carried)), span)[1].mean() for share in shares]
        print(f"{size:5}   " + "".join(f"{mean:8.2f}" for mean in means), flush=True)


CHECKS = (credits, speedups, incast, pair, turns)

if __name__ == "__main__":
    for check in CHECKS:
        if len(sys.argv) < 2 or check.__name__ in sys.argv[1:]:
            check()
            print()
