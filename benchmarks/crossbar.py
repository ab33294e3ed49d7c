"""How many slots a second the crossbar runs: the whole run, its fastest strides, and the ratio to a calibration loop.

    python benchmarks/crossbar.py

A run is timed, in CPU time, in strides of a few milliseconds, its first quarter left out. The rate is that of all of
them together; beside it stands the stride at the tenth percentile, because other work on a machine makes strides
slower, never faster. The ratio is the time of a slot in turns of `weft.cli.bench.calibrate`.
"""

from time import process_time

from weft.cli.bench import calibrate
from weft.fabrics.crossbar import Crossbar
from weft.workload.traffic import Bernoulli

CASES = [  # ports, options, slots, slots per second expected
    (64, {}, 300_000, 1_000_000),  # iSLIP, one iteration, load 0.8
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
    (64, {"buffers": "load-balanced"}, 60_000, None),
    (64, {"buffers": "cioq", "scheduler": "ccf"}, 5_000, None),
]


STRIDES = 60


def rate(fabric, slots) -> tuple[float, float]:
    """Slots per second, of the run and of its stride at the tenth percentile."""
    traffic = Bernoulli(load=0.8, slots=slots).draw(nodes=fabric.ports, seed=1)
    run = fabric.prepare(traffic, seed=1)
    run.advance(until=slots // 4 * fabric.slot)
    times, stride = [], slots * 3 // 4 // STRIDES
    for k in range(1, STRIDES + 1):
        began = process_time()
        run.advance(until=(slots // 4 + k * stride) * fabric.slot)
        times.append(process_time() - began)
    return stride * STRIDES / sum(times), stride / sorted(times)[STRIDES // 10]


def main():
    for ports, options, slots, expected in CASES:
        got, best = rate(Crossbar(ports=ports, **options), slots)
        what = ", ".join(f"{name}={value}" for name, value in options.items()) or "voq, islip, 1 iteration"
        turns = 1e9 / got / calibrate()
        print(
            f"{ports:4} ports  {what:34} {got:12,.0f} slots/s   at best {best:12,.0f}   ratio {turns:8.1f}"
            + (f"   expected {expected:,}" if expected else "")
        )


if __name__ == "__main__":
    main()
