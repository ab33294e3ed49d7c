"""What can be said of Stardust without running it: queues as M/D/1, memory for a pause, completion at best."""

from math import exp, factorial

import numpy as np

from weft.hosts.settings import LEAST, WIRE
from weft.units import s, wire_time
from weft.wire.stardust import REACHABILITY


def loop(fabric) -> int:
    """ps from a credit to the cells it lets go, at the far end of the fabric, without queues."""
    return 2 * 2 * fabric.tiers * fabric.hop * fabric.slot


def watermark(fabric) -> int:
    """Bytes of backlog with which a port has enough to send until the credits it gives have become packets."""
    return 2 * (loop(fabric) * fabric.link // (8 * s)) + 4 * fabric.credit + fabric.wire_size


def pause_room(fabric) -> int:
    """Bytes that may still come to an adapter after it has told its hosts to pause.

    The frame takes its time and the link's, the host ends the packet that it sends, and what it sent until then comes.
    """
    told = 2 * fabric.edge_delay + wire_time(LEAST, fabric.link)
    return fabric.per_adapter * (-(-told * fabric.link // (8 * s)) + 2 * fabric.wire_size)


AHEAD = 4  # slots of all its uplinks that an adapter may have filled: with 2 some idle while short cells fill others
ABREAST = 8  # cells that may share a slot of a link, at most: those much shorter than an eighth of a cell are rare


def abreast(fabric) -> int:
    """Cells that a link may send in one slot, where all are as short as can be."""
    return min(fabric.cell // (fabric.header + 1) + 1, ABREAST)


def least(fabric) -> int:
    """Bytes of memory that a cell takes, however short: as many fit in that of a whole one as in its slot."""
    return -(-fabric.cell // abreast(fabric))


def headroom(fabric, inputs: int) -> int:
    """Whole cells' worth that may still come into an element by so many links after it has seen that it must pause.

    It looks every `hop` slots, its neighbours know a look later, and what they sent until then has a hop to go. A link
    may send a cell more, in time that short ones have left.
    """
    return inputs * (3 * fabric.hop + 2)


def pools(fabric) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(pool up, pool down, stop up, stop down) in cells, of every device; zeros for adapters."""
    wiring = fabric.wiring
    downs = np.bincount(wiring.upper, minlength=wiring.devices)
    ups = np.bincount(wiring.lower, minlength=wiring.devices)
    up, down = fabric.depth * fabric.bundle * ups, fabric.depth * fabric.bundle * downs
    stop_up, stop_down = up - headroom(fabric, 1) * downs, down - headroom(fabric, 1) * (downs + ups)
    up[: fabric.edges] = down[: fabric.edges] = stop_up[: fabric.edges] = stop_down[: fabric.edges] = 0
    top = np.arange(wiring.devices) >= wiring.first(len(wiring.elements))
    stop_up[top] = 0
    return up, down, stop_up, stop_down


def least_depth(fabric) -> tuple[int, int]:
    """(cells for each lane, links) of the element that needs most to lose nothing while a pause takes effect."""
    wiring = fabric.wiring
    downs = np.bincount(wiring.upper, minlength=wiring.devices)[fabric.edges :]
    ups = np.bincount(wiring.lower, minlength=wiring.devices)[fabric.edges :]
    each = headroom(fabric, 1)
    down = -(-each * (downs + ups) // np.maximum(downs, 1))
    up = np.where(ups > 0, -(-each * downs // np.maximum(ups, 1)), 0)
    needed = -(-(np.maximum(down, up) + 1) // fabric.bundle)
    worst = int(needed.argmax())
    return int(needed[worst]), int((downs + ups)[worst])


def reassembly(fabric) -> int:
    """Cells that an adapter may hold while bursts are not whole: what can come while the last cell of one waits.

    A cell waits at most for all that the elements on its way have room for. Each that comes meanwhile may be short.
    """
    up, down, _, _ = pools(fabric)
    longest = fabric.tiers * int(up.max(initial=0)) + fabric.tiers * int(down.max(initial=0))
    slots = longest + 2 * fabric.tiers * fabric.hop + 2 * fabric.credit // fabric.filling + fabric.mtu
    return fabric.lanes * slots * abreast(fabric)


def md1(load: float, longest: int) -> np.ndarray:
    """(longest + 1,) chance that n are in an M/D/1 system, or in a queue that Poisson arrivals join between slots."""
    arrivals = np.array([exp(-load) * load**k / factorial(k) if k < 150 else 0.0 for k in range(longest + 2)])
    p = np.zeros(longest + 1)
    p[0] = 1 - load
    for n in range(longest):
        known = p[0] * arrivals[n] + sum(p[k] * arrivals[n - k + 1] for k in range(1, n + 1))
        p[n + 1] = max((p[n] - known) / arrivals[0], 0.0)
    return p


def recovery(fabric) -> int:
    """ps in which a failed link of an adapter is known everywhere, by the formula of App. E."""
    messages = -(-fabric.edges // 128)
    return sum((fabric.period + fabric.delay) * messages * fabric.updates for _ in range(2 * fabric.tiers - 1))


def ideal(fabric, flows) -> np.ndarray:
    """(flows,) int64 ps below which no flow can be done: its packets leave its host, then the last of them crosses.

    Credits and reassembly are left out, so that it holds for every class.
    """
    payload, header = fabric.payload, fabric.settings.header + WIRE
    segments = -(-flows.size // payload)
    tail = np.maximum(flows.size - (segments - 1) * payload + header, LEAST)
    pace = 8 * s / fabric.link
    out = (((segments - 1) * fabric.wire_size + tail) * pace).astype(np.int64)
    last = (np.minimum(tail, fabric.wire_size) * pace).astype(np.int64)
    adapter = np.arange(fabric.nodes) // fabric.per_adapter
    inside = np.where(adapter[flows.src] == adapter[flows.dst], 0, 2 * fabric.hop * fabric.slot)
    return out + last + 2 * fabric.edge_delay + inside


def share(fabric) -> float:
    """Part of a link that reachability messages take (App. E)."""
    return REACHABILITY.size * 8 * s / (fabric.period * fabric.rate)
