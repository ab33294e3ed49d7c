"""Is memory predicted as it is used: at least 1.0 times and at most twice what a run takes, in every room?

Each run of the grid is a process of its own, whose largest resident size the system tells; the prediction is that of
`weft.experiment.need`, from the flows that were drawn. Kernels are compiled before, by another process: what that takes
is asked for apart, see `weft.engine.jit`. Prints a table; the exit code is 1 if one is beyond the limits. Words on the
command line choose rows by their room, or by the fabric as it stands in the table.
"""

import json
import subprocess
import sys

LEAST, MOST = 1.0, 2.0
GRID = {  # fabric -> how it is described, and what it carries
    "shoal": ["Shoal(nodes=64)", "Shoal(nodes=256)", "Shoal(nodes=512, channels=4)", "Shoal(nodes=64, ber=1e-6)"],
    "crossbar": ["Crossbar(ports=32)", "Crossbar(ports=64, buffers='gcq')", "Crossbar(ports=64, buffers='oq')"],
    "packet": [
        "Packet(hosts=128, transport='tcp')", "Packet(hosts=128, transport='ndp')",
        "Packet(hosts=432, transport='ndp')",
        "Packet(hosts=128, transport='mptcp')", "Packet(hosts=128, transport='dcqcn')",
    ],
    "merchant": ["Merchant(radix=8, pods=4, transport='ndp')"],
    "torus": ["Torus(dimensions=(4, 4, 4))"],
    "tdma": ["TDMA(nodes=64)"],
    "ideal": ["Ideal(nodes=256)"],
    "stardust": ["Stardust()"],
}  # fmt: skip
LOADS = ["AllToAll(bytes=3000)", "Poisson(load=0.6, flows=20_000, sizes='fixed:20KB')"]
RUN = """
import json, resource, sys
import weft
from weft.experiment import need
fabric, workload = eval("weft." + sys.argv[1]), eval("weft." + sys.argv[2])
flows = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
predicted = need(fabric, flows)
run = fabric.prepare(flows, seed=1)
run.compile()
if "compile" in sys.argv:
    sys.exit()
run.advance()
run.observe()
print(json.dumps([predicted, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


def main(words) -> int:
    """The exit code."""
    beyond = 0
    print(f"{'predicted MB':>13} {'taken MB':>9} {'ratio':>6}  run")
    for room, fabrics in GRID.items():
        for fabric in (one for one in fabrics if not words or any(word in (room, one) for word in words)):
            subprocess.run([sys.executable, "-c", RUN, fabric, LOADS[1], "compile"], check=True)
            for load in LOADS:
                told = subprocess.run([sys.executable, "-c", RUN, fabric, load], capture_output=True, text=True)
                if told.returncode:
                    print(f"{'':>31}  {fabric} {load}: {told.stderr.strip().splitlines()[-1]}")
                    beyond += 1
                    continue
                predicted, taken = json.loads(told.stdout.splitlines()[-1])
                good = LEAST <= predicted / taken <= MOST
                beyond += not good
                print(f"{predicted / 1e6:13,.0f} {taken / 1e6:9,.0f} {predicted / taken:6.2f}  {fabric} {load}"
                      + ("" if good else "  BEYOND"), flush=True)  # fmt: skip
    print(f"every prediction must be {LEAST} to {MOST} times what was taken: {beyond} are not")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
