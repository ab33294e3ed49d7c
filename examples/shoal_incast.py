"""Nodes send 130 KB each to one of them, all at once: a queue holds at most one cell of each sender."""

import weft
from weft import KB, us

rack = weft.Shoal(nodes=32)
for senders in (1, 10, 30):
    result = weft.run(rack, weft.Incast(fan_in=senders, bytes=130 * KB), seed=1)
    queues = result.summary()["queue_cells"]
    print(f"{senders:2} senders: last done after {result.fct().max / us:6.1f} us, longest queue {queues['max']} cells")
