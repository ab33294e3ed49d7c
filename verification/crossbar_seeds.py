"""Whether chance decides what docs/papers/fpga.md says of crossbars: the rows that its verdicts turn on, five seeds.

    python verification/crossbar_seeds.py                   small switches, a minute or two
    python verification/crossbar_seeds.py paper loads       those of `--scale paper`, of some figures

Prints the mean over the seeds with Student's 95 % interval, and the least and the most of a seed.
"""

import sys

from weft.metrics.statistics import estimate, ratio
from weft.papers.fpga import depth, loads, measure, sharing, unbalanced

SEEDS = (1, 2, 3, 4, 5)
KEPT = {  # name -> (figure, rows that its claims turn on, what of them)
    "loads": (loads, lambda row: row["load"] == 0.9 and row["name"].split(",")[0] in loads.SIMPLE, "delay_mean"),
    "unbalanced": (unbalanced, lambda row: row["name"].startswith("islip") and 0.3 <= row["w"] <= 0.6, "throughput"),
    "depth": (depth, lambda row: row["ports"] <= 32 and row["load"] in (0.85, 0.9, 0.95), "queue_max"),
    "sharing": (sharing, lambda row: row["depth"] >= 4, "loss"),
}


def main(scale="small", *names):
    for name in names or KEPT:
        figure, wanted, key = KEPT[name]
        runs = [run for run in figure.study(scale) if wanted(run.labels)]
        tables = [measure(runs, seed=seed) for seed in SEEDS]
        print(f"{name}: {key}")
        for k, run in enumerate(runs):
            values = [table[k][key] for table in tables]
            found = estimate(values)
            said = ", ".join(f"{label} {run.labels[label]}" for label in figure.COLUMNS if label in run.labels)
            half, ends = found.high - found.mean, f"{min(values):.4g} to {max(values):.4g}"
            print(f"    {said:50} {found.mean:9.4g} ± {half:<9.3g} {ends}", flush=True)
        if name == "loads":
            _against(runs, tables)


def _against(runs, tables):
    """iSLIP's delay over that of each other scheduler with as many iterations, under the same arrivals."""
    delays = {run.labels["name"]: {seed: table[k]["delay_mean"] for seed, table in zip(SEEDS, tables, strict=True)}
              for k, run in enumerate(runs)}  # fmt: skip
    for name in [name for name in delays if name.startswith("islip")]:
        for other in [other for other in delays if other != name and other.split(",")[1] == name.split(",")[1]]:
            found = ratio(delays[name], delays[other])
            print(f"    {name} over {other.split(',')[0]:4}: {found.ratio:.4f}, {found.low:.4f} to {found.high:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
