"""Shoal's plain kernel: the same rack by both kernels, by one after the other, and with half of its nodes dead.

Where both are named the plain one carries the rack from shortly before a fault until all know of it.

Flows whose ends are dead are left out. Rates are of wall time from the first arrival to the last, compilation left out;
the ratio is to the calibration loop of `weft bench`. `--quick` measures a tenth of the work.
"""

import sys
from time import perf_counter

import numpy as np

from weft.cli import bench
from weft.fabrics.shoal import Shoal, plain_rack
from weft.workload import Flows, Poisson

NODES, CHANNELS, LOAD = 512, 4, 1.0
CASES = (
    ("nothing goes wrong, fast kernel", {}),
    ("nothing goes wrong, plain kernel", {"fail": "node 0 at 1s"}),
    ("a failure to come, both kernels", {"fail": "node 0 at 50us"}),
    ("a quarter dead", {"fail": "nodes 25%"}),
    ("a quarter dead, both kernels", {"fail": "nodes 25%"}),
    ("half dead", {"fail": "nodes 50%"}),
    ("half dead, both kernels", {"fail": "nodes 50%"}),
    ("one cell in 20,000 damaged", {"ber": 1e-7}),
    ("two classes", {"classes": 2}),
    ("a transport", {"transport": "e2e"}),
)


def survivors(flows, rack, seed):
    """The flows whose ends are up."""
    dead = [outage.which[0] for outage in rack.outages(seed) if outage.at == 0]
    keep = ~(np.isin(flows.src, dead) | np.isin(flows.dst, dead))
    return Flows.of(
        nodes=flows.nodes, src=flows.src[keep], dst=flows.dst[keep], size=flows.size[keep], start=flows.start[keep]
    )


def measure(options, flows, seed=1, both=False):
    """(node-slots/s, cells/s) of a busy rack from its first arrival to its last, compilation left out.

    Unless `both` is said, a rack with a failure to come is carried by the plain kernel from the start.
    """
    plain_rack.WORTHWHILE, plain_rack.WORTH_CELLS = (1, 1) if both else (1 << 80, 1 << 80)
    small = Shoal(nodes=CHANNELS + 4, channels=CHANNELS, **options)
    small.prepare(Poisson(load=0.5, sizes="fixed:2KB", flows=20).draw(nodes=8, link=small.link, seed=0)).advance()
    rack = Shoal(nodes=NODES, channels=CHANNELS, **options)
    table = survivors(
        Poisson(load=LOAD, sizes="pareto", flows=flows).draw(nodes=NODES, link=rack.link, seed=seed), rack, seed
    )
    run = rack.prepare(table, seed=seed)
    run.advance(until=int(table.start[0]))
    before, began = run.observe(), perf_counter()
    run.advance(until=int(table.start[-1]))
    seconds, after = perf_counter() - began, run.observe()
    cells = sum(after.carried[key] - before.carried[key] for key in ("local", "forwarded"))
    return (after.work["node_slots"] - before.work["node_slots"]) / seconds, cells / seconds


def main():
    flows = 2_000 if "--quick" in sys.argv[1:] else 20_000
    print(f"{NODES} nodes, {CHANNELS} channels, load {LOAD:g}, {flows:,} flows drawn")
    print("M node-slots/s  ns each  M cells/s  calibration ns  ratio", flush=True)
    for name, options in CASES:
        calibration = bench.calibrate()
        slots, cells = measure(options, flows, both="both" in name)
        calibration = (calibration + bench.calibrate()) / 2
        each = 1e9 / slots
        ratio = each / calibration
        numbers = f"{slots / 1e6:14.1f}  {each:7.1f}  {cells / 1e6:9.1f}  {calibration:14.2f}  {ratio:5.2f}"
        print(f"{numbers}  {name}", flush=True)


if __name__ == "__main__":
    main()
