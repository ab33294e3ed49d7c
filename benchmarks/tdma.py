"""TDMA's schedulers side by side, as `weft bench tdma` prints them, and the hosts that they must keep up with."""

import sys

from weft.cli import main
from weft.fabrics.tdma.planning import measured

EXPECTED = {"wrr": 384, "greedy": 384}  # hosts that must be planned within a round of 10 ms

if __name__ == "__main__":
    main(["bench", "tdma"])
    late = [name for name, hosts in EXPECTED.items() if not measured(name, hosts)["in_time"]]
    print(f"too slow: {', '.join(late)}" if late else f"in time: {EXPECTED}")
    sys.exit(1 if late else 0)
