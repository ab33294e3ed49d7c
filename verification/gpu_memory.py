"""How many sectors of 32 bytes a second the memory of this machine's GPU gives at random, read, or read and written.

Every thread looks at words of a table of 8 GB that a generator draws, one after the other, or adds to them. It needs a
GPU and the extra `gpu`.
"""

import argparse
import sys
from time import perf_counter

import numpy as np
from numba import cuda

from weft import gpu
from weft.errors import WeftError

SECTOR = 8  # words of 32 bits
THREADS = 512  # of a block


@cuda.jit
def touch(words, turns, adds, found):
    """Let every thread read so many words at random, or add one to each."""
    k = cuda.grid(1)
    drawn, total = np.uint64(k * 2654435761 + 12345), np.uint32(0)
    for _ in range(turns):
        drawn = drawn * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        at = np.int64((drawn >> np.uint64(20)) % np.uint64(words.size // SECTOR)) * SECTOR
        if adds:
            words[at] += np.uint32(1)
        else:
            total += words[at]
    if total == 1:  # or nothing would have to be read
        found[0] = total


def main():
    """Print the rates."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, default=8 << 30)
    parser.add_argument("--turns", type=int, default=2000)
    given = parser.parse_args()
    try:
        machine = gpu.find()
    except WeftError as error:
        sys.exit(f"gpu_memory: {error}")
    words, found = machine.zeros(given.bytes // 4, np.uint32), machine.zeros(1, np.uint32)
    for adds, what in ((False, "read"), (True, "read and written")):
        for blocks in (machine.processors, 4 * machine.processors):
            touch[blocks, THREADS](words, 10, adds, found)
            cuda.synchronize()
            began = perf_counter()
            touch[blocks, THREADS](words, given.turns, adds, found)
            cuda.synchronize()
            rate = blocks * THREADS * given.turns / (perf_counter() - began)
            print(f"{blocks * THREADS:,} threads: {rate / 1e9:.1f} G sectors/s {what}")


if __name__ == "__main__":
    main()
