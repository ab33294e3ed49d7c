"""Fairness: Jain's index, and how far rates are from max-min fair ones, found by water-filling.

An ideal says what every flow would get if all were greedy and none could gain but at the cost of one that has no more.
There are as many ideals as there are ideas of what is shared:

- `per_subflow`: Shoal's. N(N-1) virtual links of 1/(N-1) each; a pair has one direct and N-2 two-hop subflows and
  each is filled for itself.
- `per_node`: an ideal packet switch. Only the nodes' own links count, one out and one in.
- `per_node_with_detours`: the same links, but every flow also loads all others' with its transit, spread evenly.

Rates are fractions of a node's link. In the two ideals with detours it is pairs (src, dst) that compete, as in Shoal,
and flows of one pair share evenly what it gets; in the packet switch every flow competes for itself.
"""

import numpy as np

from weft.errors import require


def jain(rates) -> float:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything; NaN of nothing."""
    rates = np.asarray(rates, np.float64)
    require((rates >= 0).all(), "rates", "at least 0", rates.min() if rates.size else 0)
    if not rates.size or not rates.any():
        return float("nan")
    rates = rates / rates.max()  # so that squares neither overflow nor vanish
    return float(rates.sum() ** 2 / (rates.size * (rates * rates).sum()))


def water_fill(links, capacity) -> np.ndarray:
    """Max-min fair rates of flows over links.

    links is (flows, hops) int, the links that each flow crosses, -1 for fewer hops; capacity (links,) float. A link
    whose even share is no more than that of any other link its flows cross will fill first among them, whatever happens
    elsewhere, so all such links are settled in the same round. Shares of the remaining links can only rise: the rates
    are those of filling link by link, in as many rounds as one bottleneck waits for another.
    """
    links = np.asarray(links, np.int64)
    flows, hops = links.shape
    require(((links >= 0).sum(axis=1) > 0).all(), "a flow", "on at least one link", "on none")
    capacity = np.append(np.asarray(capacity, np.float64), np.inf)  # the last one is the link of the hop not taken
    nowhere = len(capacity) - 1
    links = np.where(links < 0, nowhere, links)
    left, rates, active = capacity.copy(), np.zeros(flows), np.arange(flows)
    while len(active):
        crossed = links[active]
        load = np.bincount(crossed.reshape(-1), minlength=len(capacity))
        share = np.full(len(capacity), np.inf)
        np.divide(left, load, out=share, where=load > 0)
        offered = share[crossed]
        least = offered.min(axis=1)
        content = np.bincount(crossed[offered == least[:, None]], minlength=len(capacity))
        full = (content == load) & (load > 0)  # every flow on it finds no tighter link elsewhere
        full[nowhere] = False
        settled = full[crossed].any(axis=1)
        rates[active[settled]] = least[settled]
        taken = np.repeat(least[settled], hops)
        left -= np.bincount(crossed[settled].reshape(-1), taken, minlength=len(capacity))
        left = np.maximum(left, 0)
        active = active[~settled]
    return rates


def per_subflow(src, dst, nodes: int) -> np.ndarray:
    """Rate of each flow if every subflow is filled for itself on the virtual links: what Shoal converges to.

    A pair (s, d) goes over the virtual link s->d and, for every other node j, over s->j and j->d; its rate is the sum.
    """
    pairs, back, shared = _pairs(src, dst, nodes)
    s, d = pairs // nodes, pairs % nodes
    via = np.broadcast_to(np.arange(nodes), (len(pairs), nodes))
    first = s[:, None] * nodes + via
    second = np.where(via == d[:, None], -1, via * nodes + d[:, None])
    others = via != s[:, None]
    subflows = np.stack([first[others], second[others]], axis=1)
    rates = water_fill(subflows, np.full(nodes * nodes, 1 / (nodes - 1)))
    return (rates.reshape(len(pairs), nodes - 1).sum(axis=1) / shared)[back]


def per_node(src, dst, nodes: int) -> np.ndarray:
    """Rate of each flow if only the nodes' links are shared, one out and one in: the ideal packet switch."""
    src, dst = _checked(src, dst, nodes)
    return water_fill(np.stack([src, nodes + dst], axis=1), np.ones(2 * nodes))


def per_node_with_detours(src, dst, nodes: int) -> np.ndarray:
    """Rate of each pair if it is spread evenly over all N-1 paths and pays for the transit on the nodes' links.

    A rate r loads s's link out and d's link in with r, and both links of each of the N-2 others with r/(N-1).
    """
    pairs, back, shared = _pairs(src, dst, nodes)
    s, d = pairs // nodes, pairs % nodes
    rates, active = np.zeros(len(pairs)), np.ones(len(pairs), bool)
    left = np.ones(2 * nodes)  # out of each node, then into each
    while active.any():
        sends = np.bincount(s[active], minlength=nodes)
        takes = np.bincount(d[active], minlength=nodes)
        transit = (active.sum() - sends - takes) / (nodes - 1)
        load = np.concatenate([sends + transit, takes + transit])
        room = np.full(2 * nodes, np.inf)
        np.divide(left, load, out=room, where=load > 0)
        step = room.min()
        rates[active] += step
        left = np.maximum(left - step * load, 0)
        full = room <= step * (1 + 1e-12)
        # a pair crosses every link but the one into its source and the one out of its destination
        crossed = full.sum() - full[nodes + s] - full[d]
        active &= crossed == 0
    return (rates / shared)[back]


def distance(rates, ideal, within: float = 0.1) -> dict:
    """How far `rates` are from `ideal`: the share of flows `within` 10 % of it, and the largest and mean deviation.

    Deviations are relative to the ideal, either way.
    """
    rates, ideal = np.asarray(rates, np.float64), np.asarray(ideal, np.float64)
    require(rates.shape == ideal.shape, "rates", f"as many as the ideal's {ideal.size}", rates.size)
    require((ideal > 0).all(), "ideal rates", "positive", ideal.min() if ideal.size else 0)
    if not rates.size:
        return {"share_within": None, "max": None, "mean": None}
    off = np.abs(rates - ideal) / ideal
    near = off <= within * (1 + 1e-9)  # 1.1 is within 10 % of 1, whatever floats say
    return {"share_within": float(near.mean()), "max": float(off.max()), "mean": float(off.mean())}


def _checked(src, dst, nodes):
    require(nodes >= 2, "nodes", "at least 2", nodes)
    src, dst = np.asarray(src, np.int64).reshape(-1), np.asarray(dst, np.int64).reshape(-1)
    require(src.shape == dst.shape, "src and dst", "of one length", (len(src), len(dst)))
    for name, ends in (("src", src), ("dst", dst)):
        bad = ends[(ends < 0) | (ends >= nodes)]
        require(not len(bad), name, f"nodes from 0 to {nodes - 1}", bad[0].item() if len(bad) else None)
    own = src[src == dst]
    require(not len(own), "a flow", "between two nodes", f"{own[0]} -> {own[0]}" if len(own) else None)
    return src, dst


def _pairs(src, dst, nodes):
    """(distinct pairs as src * nodes + dst, pair of each flow, flows of each pair)."""
    src, dst = _checked(src, dst, nodes)
    return np.unique(src * nodes + dst, return_inverse=True, return_counts=True)
