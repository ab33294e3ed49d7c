"""What routing and R2C2 make of a torus of 512 nodes.

python verification/torus.py [routes|control|shoal|fig15 FOLDER]

`fig15` is a million flows at each load, a quarter of an hour, and runs only if it is named; FOLDER keeps its runs.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import weft
from weft import Flows, Poisson, Torus
from weft.fabrics.torus.bounds import fair_rates
from weft.units import us

SHAPE = (8, 8, 8)


def routes():
    """The fair rates of one endless flow from every node, by pattern and routing."""
    node = np.arange(512)
    x, y, z = np.unravel_index(node, SHAPE)
    patterns = {
        "to the neighbour, one up in x": np.ravel_multi_index(((x + 1) % 8, y, z), SHAPE),
        "tornado, three up in x": np.ravel_multi_index(((x + 3) % 8, y, z), SHAPE),
        "to the farthest, four up in all": np.ravel_multi_index(((x + 4) % 8, (y + 4) % 8, (z + 4) % 8), SHAPE),
        "transpose, x and z change places": np.ravel_multi_index((z, y, x), SHAPE),
        "a random permutation (seed 1)": np.random.default_rng(1).permutation(512),
    }
    for name, dst in patterns.items():
        some = dst != node
        flows = Flows.of(nodes=512, src=node[some], dst=dst[some], size=1, start=0)
        cells = []
        for routing in ("minimal", "dimension", "valiant"):
            rates = fair_rates(Torus(dimensions=SHAPE, routing=routing, headroom=0.0), flows) / 1e9
            cells.append(f"{rates.mean():.1f}, {rates.min():.1f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def control():
    """Short flows' completion and long flows' goodput under R2C2 and under transports that do not know the load."""
    tori = {
        "R2C2, rates every 500 us": Torus(),
        "R2C2, rates every 50 us": Torus(period=50 * us),
        "R2C2, rates every 5 us": Torus(period=5 * us),
        "TCP": Torus(transport="tcp"),
        "DCTCP": Torus(transport="dctcp"),
    }
    print("| load, realised | | mean | p50 | p99.9 | goodput | longest queue, packets | lost | broadcasts, of bytes |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for load in (0.1, 0.3, 0.6):
        for name, torus in tori.items():
            found = weft.run(torus, Poisson(load=load, sizes="pareto", flows=20_000), seed=1).summary()
            fct, told = found["fct_us"]["short"], found["r2c2"]
            share = f"{100 * told['broadcast_share']:.1f} %" if told else "–"
            realised = found["offered"]["realised_load"]
            numbers = (fct["mean"], fct["p50"], fct["p99.9"], found["goodput_gbps"]["long"]["mean"])
            print(
                f"| {load}, {realised:.3f} | {name} |", " | ".join(f"{number:.4g}" for number in numbers),
                f"| {found['queue']['max']:,} | {found['lost']['total']:,} | {share} |", flush=True,
            )  # fmt: skip


def shoal():
    """Shoal §7.3 at its size, with a twentieth of the flows of `weft figure shoal/15 --scale paper`."""
    from weft.papers.shoal import rack

    systems = {
        "Shoal": rack(512),
        "torus, rates every 500 us": Torus(),
        "torus, rates every 5 us": Torus(period=5 * us),
        "torus, flows begin at 16.7 Gb/s": Torus(first=Torus().rate),
        "torus, 30 % headroom": Torus(headroom=0.3),
        "torus, all three": Torus(period=5 * us, first=Torus().rate, headroom=0.3),
    }
    print("| offered, realised, Gb/s | | mean | p99.9 | over Shoal's | goodput | Shoal's over it |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for offered in (10, 30, 50):
        base = None
        for name, fabric in systems.items():
            found = weft.run(fabric, Poisson(load=offered / 100, sizes="pareto", flows=50_000), seed=1).summary()
            fct, goodput = found["fct_us"]["short"], found["goodput_gbps"]["long"]["mean"]
            base = base or (fct["p99.9"], goodput)
            print(
                f"| {offered}, {found['offered']['rate_gbps']:.1f} | {name} | {fct['mean']:.4g} | {fct['p99.9']:.4g} | "
                f"{fct['p99.9'] / base[0]:.1f} | {goodput:.4g} | {base[1] / goodput:.2f} |", flush=True,
            )  # fmt: skip


def fig15(folder):
    """The tori of `weft figure shoal/15 --scale paper`, without the rest of it, and one that computes rates often."""
    from weft.papers.shoal import fig15
    from weft.study import Study

    whole = fig15.study("paper")
    pairs = [pair for pair in zip(whole.fabrics, whole.workloads, strict=True) if isinstance(pair[0], Torus)]
    pairs += [(replace(torus, period=5 * us), workload) for torus, workload in pairs if torus.first is None]
    pairs.sort(key=lambda pair: pair[1].load)
    print("| offered, realised, Gb/s | | mean | p99 | p99.9 | goodput |\n| --- | --- | --- | --- | --- | --- |")
    for number, (torus, workload) in enumerate(pairs):
        one = Study(fabrics=[torus], workloads=[workload], seeds=[1], title=whole.title).run(Path(folder) / str(number))
        (row,) = fig15.measure(one)
        name = "rates every 5 us" if torus.period == 5 * us else "flows begin at " + (
            "the rate of a port" if torus.first else "that of their node"
        )  # fmt: skip
        told = " | ".join(f"{row[key]:.4g}" for key in ("mean_us", "p99_us", "p99.9_us", "goodput_gbps"))
        print(f"| {row['offered_gbps']:.0f}, {row['realised_gbps']:.1f} | {name} | {told} |", flush=True)


if __name__ == "__main__":
    if "fig15" in sys.argv[1:2]:
        fig15(sys.argv[2])
        sys.exit()
    for name, check in {"routes": routes, "control": control, "shoal": shoal}.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            check()
