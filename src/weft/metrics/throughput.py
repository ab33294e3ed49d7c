"""Throughput: payload bits per second that reached each destination, over the whole run, a window, or its busy time.

From the flow table come averages; from samples of a cumulative count come curves. Samples are `time_ps`, rising, and
bytes delivered so far, shaped (samples,) for the fabric or (samples, nodes) for each destination.
"""

import numpy as np

from weft.errors import require
from weft.units import Gbps, ns, s
from weft.workload.flows import ENDLESS

BUSY = "while the destination had flows coming in"
SECOND_HALF = "the second half of the run"


def rate(size, duration):
    """Bits per second of `size` bytes in `duration` ps; NaN where there was no time."""
    size, duration = np.asarray(size, np.float64), np.asarray(duration, np.float64)
    nothing = np.full(np.broadcast(size, duration).shape, np.nan)
    return np.divide(size * 8 * s, duration, out=nothing, where=duration > 0)


def destinations(dst: np.ndarray) -> np.ndarray:
    """The nodes to which anything was sent, in order."""
    return np.unique(dst)


def delivered(dst: np.ndarray, received: np.ndarray, nodes: int) -> np.ndarray:
    """Payload bytes that reached each node, int64 (nodes,)."""
    bytes_ = np.zeros(nodes, np.int64)
    np.add.at(bytes_, dst, received)
    return bytes_


def busy_time(dst, start, finish, now: int, nodes: int) -> np.ndarray:
    """Time in ps during which each node had at least one unfinished flow coming in, int64 (nodes,)."""
    end = np.where(finish >= 0, finish, now)
    order = np.lexsort((start, dst))
    dst, start, end = dst[order], start[order], np.maximum(end, start)[order]
    busy = np.zeros(nodes, np.int64)
    for d in destinations(dst):
        a, b = np.searchsorted(dst, [d, d + 1])
        reach = np.maximum.accumulate(end[a:b])  # how far the flows that began before have kept the node busy
        gap = np.maximum(start[a + 1 : b] - reach[:-1], 0).sum()
        busy[d] = reach[-1] - start[a] - gap
    return busy


def busy_average(dst, start, finish, received, now: int, nodes: int) -> np.ndarray:
    """Payload b/s of each destination while it had flows coming in, in the order of `destinations(dst)`."""
    where = destinations(dst)
    return rate(delivered(dst, received, nodes)[where], busy_time(dst, start, finish, now, nodes)[where])


def over_time(time, cumulative) -> tuple[np.ndarray, np.ndarray]:
    """(middle of each interval in ps, b/s in it) from samples of a cumulative count of bytes."""
    time, cumulative = _samples(time, cumulative)
    gaps = np.diff(time)
    gaps = gaps.reshape(-1, *[1] * (cumulative.ndim - 1))
    return time[:-1] + np.diff(time) // 2, rate(np.diff(cumulative, axis=0), gaps)


def steady(time, cumulative, begin: int, end: int):
    """b/s between the instants `begin` and `end`, the count taken as even between samples."""
    time, cumulative = _samples(time, cumulative)
    require(len(time) >= 2 and time[0] <= begin < end <= time[-1], "the window", "within the samples", (begin, end))
    columns = cumulative.reshape(len(time), -1)
    at = [[np.interp(t, time, columns[:, k]) for k in range(columns.shape[1])] for t in (begin, end)]
    found = rate(np.subtract(at[1], at[0]), end - begin)
    return found[0] if cumulative.ndim == 1 else found


def _samples(time, cumulative):
    time, cumulative = np.asarray(time, np.int64), np.asarray(cumulative)
    require(len(time) == len(cumulative), "samples", "columns of one length", (len(time), len(cumulative)))
    require((np.diff(time) > 0).all(), "sample times", "rising", time.tolist()[:8])
    return time, cumulative


def spread(values, unit=1) -> dict:
    """{"mean", "min", "max"} of `values` in `unit`s; None where there are none."""
    values = np.asarray(values, np.float64)
    values = values[np.isfinite(values)] / unit
    if not len(values):
        return {"mean": None, "min": None, "max": None}
    return {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}


def summary(fabric, flows, seen) -> dict:
    """Payload rate of each destination: steady of flows that never end, else while it had flows coming in.

    Which of the two it is the flows decide and nothing else, so that it is the same for every fabric that carries them.
    Steady is from halfway to the end that was set until then: what came before is warming up. Of finite flows, it is
    what each destination got while it waited for anything at all. A share of the link is of the payload that a link
    which is never idle would carry.
    """
    best = getattr(fabric, "payload_rate", None) or getattr(fabric, "link", None)
    begin, end, window = None, seen.now, BUSY
    rates = np.empty(0)
    if seen.throughput is not None:
        told = seen.throughput
        rates, begin, end, best, window = told.rates, told.begin, told.end, told.best, told.window
    elif seen.half is not None and seen.now > seen.half[0] and (flows.size >= ENDLESS).any():
        begin, before = seen.half
        wanted = destinations(flows.dst)
        gained = seen.samples["delivered_bytes"][-1] - before
        rates, window = rate(gained[wanted], seen.now - begin), SECOND_HALF
    elif len(flows):
        begin = int(flows.start[0])
        rates = busy_average(flows.dst, flows.start, seen.finish, seen.received, seen.now, flows.nodes)
    found = spread(rates, Gbps)
    return {
        "per_destination_gbps": found,
        "fraction_of_link": None if found["mean"] is None or not best else found["mean"] * Gbps / best,
        "destinations": int(np.isfinite(rates).sum()),
        "window": window,
        "from_ns": None if begin is None else begin / ns,
        "to_ns": end / ns,
    }
