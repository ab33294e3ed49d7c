"""The EEP codec: MB of Ethernet frames a second and core, each way, beside the 100 that we expect at the least.

Rates are of CPU time, of batches of 20 MB after a first one that compiles, best of five; the stream is decoded in
pieces of 64 KB, and has 16 virtual links that take turns. The ratio is CPU time a byte to a step of the calibration
loop of `weft bench`. `--quick` measures a tenth of the work.
"""

import sys
from time import process_time

import numpy as np

from weft.cli import bench
from weft.fabrics.merchant.eep import Decoder, Encoder, add_fcs, multiplex
from weft.random import below, key, words
from weft.wire import eep

GOAL = 100  # MB/s
PIECE = 1 << 16
CASES = {
    "64 B": (64,),
    "1,518 B": (1518,),
    "9,018 B": (9018,),
    "7 x 64, 4 x 594, 1 x 1,518 B": (64,) * 7 + (594,) * 4 + (1518,),
}


def batch(sizes, total, seed=1):
    """(frames, ends, links) of about `total` bytes of random frames, links and sizes drawn alike."""
    count = int(total / np.mean(sizes))
    sizes = np.array(sizes)[below(words(key(seed, 0), count), len(sizes))]
    body = words(key(seed, 1), total // 8 + 9018).view(np.uint8)
    ends = np.cumsum(sizes - 4)
    return *add_fcs(body[: ends[-1]], ends), below(words(key(seed, 2), count), eep.LINKS)


def best(work, times=5):
    """Least CPU time of so many calls."""
    least = float("inf")
    for _ in range(times):
        began = process_time()
        work()
        least = min(least, process_time() - began)
    return least


def decode(stream):
    decoder = Decoder()
    return sum(len(decoder.add(stream[at : at + PIECE])) for at in range(0, stream.size, PIECE)) + len(decoder.end())


def main():
    total = 2_000_000 if "--quick" in sys.argv[1:] else 20_000_000
    print("MB/s  ns/B  calibration ns  ratio", flush=True)
    for name, sizes in CASES.items():
        data, ends, links = batch(sizes, total)
        stream = multiplex(data, ends, links)
        assert decode(stream) == ends.size
        ways = {
            "encode, one link": lambda data=data, ends=ends: Encoder(3).add(data, ends),
            "encode, 16 links in turn": lambda data=data, ends=ends, links=links: multiplex(data, ends, links),
            "decode, FCS checked": lambda stream=stream: decode(stream),
        }
        for way, work in ways.items():
            work()
            calibration = bench.calibrate()
            seconds = best(work)
            calibration = (calibration + bench.calibrate()) / 2
            each = 1e9 * seconds / data.size
            verdict = "ok" if 1e3 / each >= GOAL else "SLOW"
            numbers = f"{1e3 / each:4.0f}  {each:4.2f}  {calibration:14.2f}  {each / calibration:5.3f}"
            print(f"{numbers}  {verdict}  {way}, {name}", flush=True)


if __name__ == "__main__":
    main()
