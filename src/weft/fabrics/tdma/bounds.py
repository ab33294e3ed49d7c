"""What can be said of TDMA without running it: the guard that keeps slots apart, and how long a failure lasts."""

from weft.errors import BadInput
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.manager import by_switch


def apart(fabric: TDMA) -> int:
    """ps by which two hosts may differ in when they act on a cycle's frames, if both get them.

    The jitter of their reactions, the frames that one NIC sends before the other's, the skew of NICs, and the packet
    that a frame may wait for where frames are among data; drift is left out, as it grows without end.
    """
    groups = by_switch(fabric.network)
    nics = min(fabric.nics or len(groups), len(groups))
    frames = max(sum(map(len, groups[k::nics])) for k in range(nics))
    packet = int(fabric.packets(fabric.rate)[-1]) if fabric.inband else 0
    return fabric.reacts.jitter + (frames - 1) * fabric.spacing + (fabric.skew if nics > 1 else 0) + packet


def least_guard(fabric: TDMA) -> int:
    """ps of a guard with which no stream meets an earlier one in a tree, if no frame is lost and clocks do not drift.

    The last packet of a slot may have been begun just before its host stopped, and may have come a longer way: each
    switch more that it crosses takes a packet's time, if switches store packets, and the delay of a link.
    """
    tree = fabric.network.tree
    if tree is None:
        raise BadInput(f"topology must be a tree for its least guard to be known, not {fabric.topology!r}")
    packet, depth = int(fabric.packets(fabric.rate)[-1]), int(tree.depth.max())
    further = 2 * (depth - 1)  # hops of the longest way beyond those of the shortest
    return apart(fabric) + packet + further * ((packet if fabric.switching == "store" else 0) + fabric.delay)


def overrun(fabric: TDMA) -> int:
    """ps for which a host whose stop frame is lost may send into the next slot: until it stops by itself, or the next
    frame tells it to, and the packet it has begun."""
    return min(fabric.permission, fabric.cycle + apart(fabric)) - fabric.cycle + int(fabric.packets(fabric.rate)[-1])


def leaderless(fabric: TDMA) -> int | None:
    """ps from the death of a manager until hosts send again under the standby; None without one.

    It waits for its patience, then a round for reports; the first slot of the next round is the first that is used.
    """
    if fabric.patience is None:
        return None
    return fabric.patience + fabric.slots * fabric.cycle + fabric.guard + fabric.transit + fabric.reacts.lag
