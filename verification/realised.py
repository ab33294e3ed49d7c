"""How much of the load that is asked for do drawn flows offer? Prints the table of docs/reference/workloads.md."""

import numpy as np

from weft.units import KB, Gbps
from weft.workload import Poisson
from weft.workload.sizes import sizes

NAMES = ("facebook-hadoop", "websearch", "datamining", "pareto:shape=1.5", "pareto")


def main():
    """Print a line per distribution; fail if the default does not offer what was asked for."""
    for name in NAMES:
        drawn = [
            Poisson(load=0.6, sizes=name, flows=10_000).draw(nodes=128, link=100 * Gbps, seed=seed)
            for seed in range(1, 9)
        ]
        shares = [flows.realised_load(100 * Gbps) / 0.6 for flows in drawn]
        mean, sd = float(np.mean(shares)), float(np.std(shares))
        print(f"{name:20} {sizes(name).mean / KB:8.1f} KB   {mean:.3f} ± {sd:.3f}")
        if name == Poisson(load=1).sizes:
            assert abs(mean - 1) < 0.05, f"the default must offer what is asked for, not {mean:.3f} of it"


if __name__ == "__main__":
    main()
