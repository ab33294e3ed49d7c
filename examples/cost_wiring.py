"""Two cables of a 3,456-port switch in each other's place: found, and what they cost."""

from weft.topology.cabling import Wiring
from weft.units import Gbps, show_rate

right = Wiring.right(24)
ends = [tuple(row[:4]) for row in right.cables.tolist()]
wrong = right.swap(ends.index((3, 0, 0, 1)), ends.index((17, 5, 1, 2)))

report = wrong.check()
for fault in report.faults:
    print(fault)
print(
    f"lost {show_rate(report.lost * 10 * Gbps)} of {show_rate((report.bisection + report.lost) * 10 * Gbps)} "
    "in one direction, over the worst equal split of the pods"
)
