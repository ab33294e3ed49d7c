"""Why the single-tier system of §6.1.2 carries less than its lines: whether links that are taken in turn share evenly.

    python verification/stardust.py

Without packing a packet of 256 B is a long and a short cell, one of 512 B two long and a short one. Links are taken in
turn, a cell each, so that which links have long cells changes only when the order of turns is drawn anew. If that is
what holds packets up, then at line rate some uplinks send all of the time while others rest, and drawing the order more
often evens them out and carries more. Half a minute; exits 1 if it is not so.
"""

import sys
from dataclasses import replace

from weft.papers.stardust.single import packets, system
from weft.units import us, wire_time

PORTS, SENDING = 1152, 12  # half of the 24 adapters send


def shared(size: int, rounds: int) -> tuple[float, float, float]:
    """(share of the line rate that is carried, mean use of an uplink, standard deviation) in the second 12 of 24 us."""
    fabric = replace(system(PORTS, size), rounds=rounds)
    gap = wire_time(size + 20, fabric.link)
    span = 24 * us + 8 * gap
    run = fabric.prepare(packets(fabric, gap, span), seed=1)
    run.advance(until=span // 2)
    before = run.sent
    run.advance(until=span)
    use = (run.sent - before)[: SENDING * fabric.uplinks] / (span - span // 2)
    done = run.observe().finish
    carried = int(((done >= span // 2) & (done < span)).sum()) / (PORTS // 2) * gap / (span - span // 2)
    said = f"{use.mean():.3f} of the time, from {use.min():.3f} to {use.max():.3f}, deviation {use.std():.3f}"
    print(f"{size:5} B  {rounds:3} rounds  {100 * carried:6.2f} % carried  an uplink sends {said}", flush=True)
    return carried, float(use.max()), float(use.std())


def main() -> int:
    """Two sizes, and a new order of links after each round, after four, which is the default, and after 64."""
    right = True
    for size in (256, 512):
        often, usual, seldom = (shared(size, rounds) for rounds in (1, 4, 64))
        right &= often[0] > max(usual[0], seldom[0]) and often[2] < usual[2] < seldom[2] and usual[1] > 0.99
    print("uneven links hold packets up" if right else "uneven links are not what holds packets up")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
