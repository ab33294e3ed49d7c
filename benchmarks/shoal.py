"""Shoal's kernel while the rack is busy: rate, ns per node-slot and the ratio to a calibration loop.

The aim for 512 nodes on one quiet core is 100, 60 and 40 M node-slots/s at loads 0.2, 0.6 and 1; notes.md in its
folder says how far it is. `--quick` measures a tenth of the work. Every line comes from `weft.cli.bench.measure`.
"""

import sys

from weft.cli import bench

NODES, LOADS = (64, 512, 2048), (0.2, 0.6, 1.0)


def main():
    work = bench.WORK // 10 if "--quick" in sys.argv[1:] else bench.WORK
    print("nodes  load  realised  M node-slots/s  ns each  M cells/s  busy  calibration ns  ratio", flush=True)
    for nodes in NODES:
        for load in LOADS:
            b = bench.measure(nodes=nodes, channels=4, load=load, work=work)
            print(
                f"{nodes:5}  {load:4.1f}  {b.realised_load:8.3f}  {b.node_slots_per_s / 1e6:14.1f}"
                f"  {b.ns_per_node_slot:7.1f}  {b.carried_cells_per_s / 1e6:9.1f}  {b.busy_fraction:4.0%}"
                f"  {b.calibration_ns:14.2f}  {b.ratio_to_calibration:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
