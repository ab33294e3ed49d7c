"""What can be said of a torus without running it: completion at best, and how much of its rate a node can use."""

import numpy as np

from weft.fabrics.network.settings import LEAST, WIRE
from weft.units import s


def ideal(fabric, flows) -> np.ndarray:
    """(flows,) int64 ps: the time of each flow alone, if it could leave by all ports of its node at once.

    The packet that leaves last has the rest of the way before it, a hop at a time; that may be the shortest one.
    """
    payload, header = fabric.payload, fabric.settings.header + WIRE
    segments = -(-flows.size // payload)
    tail = np.maximum(flows.size - (segments - 1) * payload + header, LEAST)
    hops = fabric.grid.distance(flows.src, flows.dst)
    short = (np.minimum(tail, max(fabric.wire_size, LEAST)) * (8 * s / fabric.rate)).astype(np.int64)
    whole = (((segments - 1) * fabric.wire_size + tail) * (8 * s / (fabric.rate * fabric.grid.degree))).astype(np.int64)
    return np.maximum(whole, short) + (hops - 1) * short + hops * fabric.delay


def fair_rates(fabric, flows) -> np.ndarray:
    """(flows,) int64 b/s on the wire: the rates that R2C2 gives to endless flows, all of them known."""
    from weft.fabrics.torus import kernel

    run = known(fabric, flows)
    kernel.pour(run.state.world)
    return run.state.entries["rate"][: len(flows)].copy()


def known(fabric, flows):
    """A run in which every node knows of all flows, and none has begun."""
    from weft.fabrics.torus import kernel
    from weft.fabrics.torus.run import TorusRun
    from weft.fabrics.torus.state import TOLD

    run = TorusRun(fabric, flows)
    state = run.state
    run.widen(len(flows))
    entries = state.entries[: len(flows)]
    entries["id"], entries["state"] = np.arange(len(flows)), TOLD
    entries["src"], entries["dst"], entries["spread"] = flows.src, flows.dst, fabric.routing == "valiant"
    entries["klass"] = np.minimum(flows.klass, len(fabric.of_classes) - 1)
    entries["weight"] = np.array([weight for weight, _ in fabric.of_classes])[entries["klass"]]
    state.world["used_entries"] = len(flows)
    kernel.reload(state.world)
    return run


def mean_hops(fabric) -> float:
    """Links that a packet crosses on average, where every pair of nodes talks alike."""
    hops = float(fabric.grid.distance(0, np.arange(fabric.nodes)).sum()) / (fabric.nodes - 1)
    return hops if fabric.routing != "valiant" else 2 * hops * (fabric.nodes - 1) / fabric.nodes


def uniform_load(fabric) -> float:
    """The share of a node's rate at which the links are full, where every pair of nodes talks alike: 1 / hops."""
    return 1 / mean_hops(fabric)
