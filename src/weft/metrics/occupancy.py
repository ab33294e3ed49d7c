"""Occupancy: how full queues were, and what share of the cells on the links was useful.

Queue lengths come as counts: `counts[k]` is how often a queue of k cells was seen. A histogram has a fixed size however
long the run, and gives the same percentiles as the list of all observations would.
"""

import math
from fractions import Fraction

import numpy as np

from weft.errors import require


def histogram(lengths) -> np.ndarray:
    """counts[k], how often k is among `lengths`."""
    lengths = np.asarray(lengths, np.int64).reshape(-1)
    least = int(lengths.min(initial=0))
    require(least >= 0, "a queue length", "at least 0", least)
    return np.bincount(lengths, minlength=1)


def percentile(counts, p: float) -> int | None:
    """The smallest length that at least p % of the observations do not exceed; None of no observation."""
    require(0 <= p <= 100, "a percentile", "between 0 and 100", p)
    seen = np.cumsum(np.asarray(counts, np.int64))
    if not len(seen) or seen[-1] == 0:
        return None
    rank = max(math.ceil(Fraction(str(p)) / 100 * int(seen[-1])), 1)
    return int(np.searchsorted(seen, rank))


def summary(counts) -> dict:
    """{"mean", "p50", "p99", "p99.9", "max", "empty"} of queue lengths; `empty` is the share that held none."""
    counts = np.asarray(counts, np.int64)
    total = int(counts.sum())
    if not total:
        return dict.fromkeys(("mean", "p50", "p99", "p99.9", "max", "empty"))
    return {
        "mean": int((counts * np.arange(len(counts))).sum()) / total,
        "p50": percentile(counts, 50),
        "p99": percentile(counts, 99),
        "p99.9": percentile(counts, 99.9),
        "max": int(np.flatnonzero(counts)[-1]),
        "empty": int(counts[0]) / total,
    }


def link_use(cells: dict) -> dict:
    """Shares of the cells on the links that were useful, on their way through somebody else, and dummies.

    `cells` counts cells sent, "local" by their source, "forwarded" by an intermediate node, "dummy" without payload,
    and cells "delivered" to their destination. Of the cells that were not dummies those delivered took their last hop
    (useful), the others a hop that the detour costs (forwarded; the few in flight when the run ended are among them).
    This is the split that a receiver sees: for me, to forward, empty.
    """
    sent = cells["local"] + cells["forwarded"]
    require(0 <= cells["delivered"] <= sent, "delivered cells", f"between 0 and the {sent} sent", cells["delivered"])
    total = sent + cells["dummy"]
    if not total:
        return {"useful": None, "forwarded": None, "dummy": None}
    return {
        "useful": cells["delivered"] / total,
        "forwarded": (sent - cells["delivered"]) / total,
        "dummy": cells["dummy"] / total,
    }
