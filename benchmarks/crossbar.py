"""How many slots a second the crossbar runs, beside what is expected of it.

    python benchmarks/crossbar.py

A run is timed, in CPU time, in strides of a few milliseconds, its first quarter left out. The rate is that of the
stride at the tenth percentile: other work on the machine makes strides slower, never faster.
"""

import sys
from time import process_time

from weft.fabrics.crossbar import Crossbar
from weft.workload.traffic import Bernoulli

CASES = [  # ports, options, slots, slots per second expected
    (64, {}, 300_000, 1_000_000),  # the issue's own: iSLIP, one iteration, load 0.8
    (16, {}, 600_000, 2_000_000),
    (64, {"iterations": 6}, 30_000, None),
    (128, {}, 20_000, None),
    (256, {}, 10_000, None),
    (64, {"scheduler": "pim"}, 20_000, None),
    (64, {"scheduler": "wavefront"}, 20_000, None),
    (64, {"scheduler": "lqf", "iterations": 4}, 5_000, None),
    (64, {"scheduler": "mwm"}, 1_000, None),
    (64, {"buffers": "fifo"}, 30_000, None),
    (64, {"buffers": "shared"}, 30_000, None),
    (64, {"buffers": "cicq"}, 30_000, None),
    (64, {"buffers": "hierarchical"}, 10_000, None),
    (64, {"buffers": "gcq"}, 10_000, None),
    (64, {"buffers": "oq"}, 60_000, None),
    (64, {"buffers": "cioq", "scheduler": "ccf"}, 5_000, None),
]


STRIDES = 60


def rate(fabric, slots) -> float:
    """Slots per second in a stride at the tenth percentile."""
    traffic = Bernoulli(load=0.8, slots=slots).draw(nodes=fabric.ports, seed=1)
    state = fabric.prepare(traffic, seed=1)
    fabric.advance(state, until=slots // 4 * fabric.slot)
    times, stride = [], slots * 3 // 4 // STRIDES
    for k in range(1, STRIDES + 1):
        began = process_time()
        fabric.advance(state, until=(slots // 4 + k * stride) * fabric.slot)
        times.append(process_time() - began)
    return stride / sorted(times)[STRIDES // 10]


def main() -> int:
    short = False
    for ports, options, slots, expected in CASES:
        got = rate(Crossbar(ports=ports, **options), slots)
        what = ", ".join(f"{name}={value}" for name, value in options.items()) or "voq, islip, 1 iteration"
        print(f"{ports:4} ports  {what:34} {got:12,.0f} slots/s" + (f"   expected {expected:,}" if expected else ""))
        short |= expected is not None and got < expected
    return int(short)


if __name__ == "__main__":
    sys.exit(main())
