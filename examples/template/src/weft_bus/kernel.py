"""What happens in a slot of the bus."""

from weft.engine.fingerprint import fold
from weft.engine.jit import bare
from weft.engine.loop import DONE, PAUSED, REACHED

SLOT, ARRIVED, FINISHED, IDLE, SENT = range(5)
COUNTS = 5


@bare
def advance(start, src, left, finish, following, first, last, count, print_, until, budget):
    """Simulate slots before `until`, at most `budget` of them; says why it stopped.

    start, src, left, finish, following (flows,) int64: first slot, sender, cells to send, slot of the last one or -1,
    next flow of the same sender. first, last (nodes,) int64: the flows that wait at a node. print_ (2,) uint64: the
    fingerprint.
    """
    nodes = first.size
    for _ in range(budget):
        if count[FINISHED] == start.size:
            return DONE
        if count[SLOT] >= until:
            return REACHED
        slot = count[SLOT]
        while count[ARRIVED] < start.size and start[count[ARRIVED]] <= slot:
            f = count[ARRIVED]
            i = src[f]
            if first[i] < 0:
                first[i] = f
            else:
                following[last[i]] = f
            last[i] = f
            count[ARRIVED] += 1
        i = slot % nodes
        f = first[i]
        if f < 0:
            count[IDLE] += 1
        else:
            left[f] -= 1
            count[SENT] += 1
            fold(print_, slot, f)
            if left[f] == 0:
                finish[f] = slot
                first[i] = following[f]
                count[FINISHED] += 1
        count[SLOT] += 1
    return PAUSED
