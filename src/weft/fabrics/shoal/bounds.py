"""What can be said of a Shoal rack without running it: queue bounds, buffers, rates, the shortest completion."""

import numpy as np


def queue_basic(outcast, incast):
    """Eq. (3): cells in Q_ij, with so many flows from i and to j, when local cells queue with the others."""
    return np.asarray(outcast) + np.asarray(incast)


def queue(incast, nodes):
    """Eq. (5): cells in Q_jk with ready queues, one local and one of each flow towards k."""
    return np.minimum(1 + np.asarray(incast), nodes)


def ready(outcast, nodes):
    """Eq. (4): flows in a ready queue."""
    return np.minimum(np.asarray(outcast), nodes - 1)


def buffer_bytes(nodes, cell=64):
    """§3.3.4: bytes a node needs when each of its queues is as long as eq. (5) allows."""
    return (np.asarray(nodes) - 1) * np.asarray(nodes) * cell


def on_chip_bytes(nodes, cell=64):
    """§3.3.4: bytes that must be at hand, the first cell of each queue."""
    return (np.asarray(nodes) - 1) * cell


def lone_rate():
    """Share of its link that a flow gets alone in the rack, if feedback returns within an epoch."""
    return 1.0


def permutation_rate(nodes, ends=None):
    """Share of its link that a pair gets when `ends` other nodes send or receive; all others, unless given.

    On each virtual link towards or from such a node a subflow meets one other and they share it; the rest are its own.
    """
    nodes = np.asarray(nodes)
    others = nodes - 2 if ends is None else np.asarray(ends)
    return (nodes - 1 - others / 2) / (nodes - 1)


def incast_slots(senders, cells, nodes):
    """Slots that `senders` flows of `cells` cells to one node take on one channel, the last round counted whole.

    The receiver takes a cell a slot; a flow that does not fill its last round of subflows leaves part of it empty.
    """
    rounds = -(-np.asarray(cells) // (np.asarray(nodes) - 1))
    return np.asarray(senders) * (np.asarray(nodes) - 1) * rounds


def delay_limit(gap):
    """The largest propagation delay in slots at which subflows still send every epoch, for a schedule of this gap."""
    return gap - 1
