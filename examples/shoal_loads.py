"""A study: two racks, two loads, two seeds, as a table."""

from dataclasses import replace

import weft

rack = weft.Shoal(nodes=16)
light = weft.Poisson(load=0.3, sizes="fixed:20KB", flows=200)

study = weft.Study(
    fabrics=[rack, replace(rack, channels=1)],
    workloads=[light, replace(light, load=0.7)],
    seeds=[1, 2],
)
for row in study.run().rows:
    channels, load, seed = row["fabric.channels"] or 4, row["workload.load"], row["seed"]
    print(f"channels {channels}  load {load}  seed {seed}  p99 {row['fct_us.all.p99']:6.2f} us  {row['fingerprint']}")
