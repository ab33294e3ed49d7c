"""What moves the tails of the packet networks of Shoal's Fig. 15: one suspect at a time, beside Shoal.

    python verification/tails.py                  everything, some minutes
    python verification/tails.py dcqcn            the transports named
    python verification/tails.py ends             what it changes when a run ends as §7.3 says
    python verification/tails.py windows          what "the congestion window size of 35 packets" may mean, three seeds

512 nodes as in the paper and a tenth of its flows, seed 1: p99.9 of short flows in us, and over Shoal's under the same
flows, at loads 0.2 and 1 of 50 Gb/s. Nothing is tuned to meet the printed 3 and 2; docs/papers/shoal.md says what is
learnt from it.
"""

import sys
from dataclasses import replace
from functools import cache

import numpy as np

import weft
from weft.metrics import SHORT, Distribution
from weft.metrics.statistics import ratio
from weft.papers.shoal import fig15, rack
from weft.papers.shoal.baselines import LINEAR, PACKAGE
from weft.units import Gbps, ns, us

NODES, FLOWS, LOADS = 512, 100_000, (10, 50)  # Gb/s a node
EARLY, LATE, NEVER = "xoff=5,xon=4", "xoff=100,xon=97", "xoff=20000,buffer=40000"
NO_MARKS = "mark_from=30000,mark_all=30001"
ONE = {"topology": "single"}
SUSPECTS = {  # transport -> (what is suspected, settings changed, the network's changed)
    "dcqcn": [
        ("as in Fig. 15", "", {}),
        ("ECMP: one switch for all", "", ONE),
        ("pauses: from 5 packets", EARLY, {}),
        ("pauses: from 50", "xoff=50,xon=40", {}),
        ("pauses: from 100", LATE, {}),
        ("pauses: none, no limit", NEVER, {}),
        ("one switch, pauses from 100", LATE, ONE),
        ("marks: none", NO_MARKS, {}),
        ("marks: Pmax 1", "mark_chance=1", {}),
        ("marks: a step at 30", "mark_from=30,mark_all=0", {}),
        ("marks and pauses: none", f"{NEVER},{NO_MARKS}", {}),
        ("CNPs every 4 us", "cnp_gap=4us", {}),
        ("g = 1/16", "gain_shift=4", {}),
        ("increase: 1.5 ms, 150 KB", "raise_gap=1500us,raise_bytes=150KB", {}),
        ("increase: 5 us", "raise_gap=5us,alpha_gap=5us", {}),
        ("window: 10 packets", "max_window=10", {}),
        ("links: no delay", "", {"delay": 0}),
        ("links: 500 ns", "", {"delay": 500 * ns}),
        ("links: 1 us", "", {"delay": 1 * us}),
        ("links: 2 us", "", {"delay": 2 * us}),
        ("packets: 4000 B", "", {"mtu": 4000}),
        ("packets: 9000 B", "", {"mtu": 9000}),
        ("hosts: 100 Gb/s", "", {"link": 100 * Gbps}),
    ],
    "dctcp": [
        ("as in Fig. 15", "", {}),
        ("ECMP: one switch for all", "", ONE),
        ("links: 1 us", "", {"delay": 1 * us}),
        ("links: 2 us", "", {"delay": 2 * us}),
        ("packets: 9000 B", "", {"mtu": 9000}),
    ],
    "ndp": [("as in Fig. 15", "", {}), ("links: 1 us", "", {"delay": 1 * us}), ("packets: 9000 B", "", {"mtu": 9000})],
}  # fmt: skip


SEEDS = (1, 2, 3)
OWN = "dctcp@shoal-nsdi19:"  # without the cap of Fig. 15
LOSSLESS = f"{PACKAGE},queue=lossless"
FAT = {"hosts": 432, "topology": "fattree"}  # 512 hosts fit no fat tree of three tiers: 432 do
WINDOWS = [  # (what it is read as, transport, the network's changed)
    ("DCTCP, 35 at first and at most", fig15.BASELINES["DCTCP"], {}),
    ("DCTCP, 35 at first", f"{OWN}initial_window=35", {}),
    ("DCTCP, 35 at first, then linear", LINEAR, {}),
    ("DCTCP, 10 at first, 35 at most", f"{OWN}initial_window=10,max_window=35", {}),
    ("DCTCP, 10 at first, from 35 linear", PACKAGE, {}),
    ("  links of 1 us", PACKAGE, {"delay": 1 * us}),
    ("  marks from 15", f"{PACKAGE},mark_from=15", {}),
    ("  one switch for all", PACKAGE, ONE),
    ("DCTCP, 2 at first, from 35 linear", f"{OWN}initial_window=2,threshold=35", {}),
    ("DCQCN, 35 at most", fig15.BASELINES["DCQCN"], {}),
    ("DCTCP as above, without loss", LOSSLESS, {}),
    ("  pauses from 100", f"{LOSSLESS},{LATE}", {}),
    ("NDP, 35 at first", fig15.BASELINES["NDP"], {}),
    ("  links of 1 us", fig15.BASELINES["NDP"], {"delay": 1 * us}),
    ("DCTCP, 35 and 35, 432 hosts", fig15.BASELINES["DCTCP"], {"hosts": 432}),
    ("  three tiers", fig15.BASELINES["DCTCP"], FAT),
]  # fmt: skip


def network(transport, settings, changes):
    """A network of Fig. 15 with some settings of its transport, and some of its own, changed."""
    name = fig15.BASELINES[transport.upper()]
    if settings:
        name += ("," if ":" in name else ":") + settings
    return replace(fig15.network(NODES, name), **changes)


def tails(fabric):
    """p99.9 of short flows in us at each load, and pauses at the last."""
    found = [weft.run(fabric, load, seed=1).summary() for load in fig15.flows_of(LOADS, FLOWS)]
    return [one["fct_us"]["short"]["p99.9"] for one in found], found[-1].get("pauses", 0)


def ends():
    """§7.3 ends a run when so many flows have completed, arrivals going on; ours draw so many and wait for the last.

    The former is had from half as many flows more: of those the first `FLOWS` to complete."""
    print("system     load   tail, our end   as in §7.3")
    systems = {"shoal": rack(NODES), **{name.lower(): fig15.network(NODES, of) for name, of in fig15.BASELINES.items()}}
    for name, fabric in systems.items():
        for rate in LOADS:
            ours, more = (fig15.flows_of([rate], many)[0] for many in (FLOWS, FLOWS * 3 // 2))
            tail = weft.run(fabric, ours, seed=1).summary()["fct_us"]["short"]["p99.9"]
            print(f"{name:10} {rate / 50:4g} {tail:15.2f} {_first(weft.run(fabric, more, seed=1)):12.2f}", flush=True)


def _first(result):
    """p99.9 in us of the short ones of the first flows to complete."""
    flows, finish = result.flows, result.observation.finish
    first = np.argsort(finish, kind="stable")[:FLOWS]  # all are done in the end
    return Distribution((finish - flows.start)[first][flows.size[first] <= SHORT]).p999 / us


def windows():
    """Means and tails over Shoal's, seed by seed under the same flows: the mean ratio and its 95 % interval."""
    print("read as                               load  mean over Shoal's  p99.9 over Shoal's   p99    p99.99")
    for name, transport, changes in WINDOWS:
        fabric = replace(fig15.network(NODES, transport), **changes)
        for rate in LOADS:
            own, theirs = ([_short(one, rate, seed) for seed in SEEDS] for one in (rack(fabric.hosts), fabric))
            mean, tail = (_over(theirs, own, key) for key in ("mean", "p99.9"))
            rest = "  ".join(f"{ratio(_by(theirs, key), _by(own, key)).ratio:6.2f}" for key in ("p99", "p99.99"))
            print(f"{name:37} {rate / 50:4g}  {mean:>17}  {tail:>18}  {rest}", flush=True)


@cache
def _short(fabric, rate, seed):
    """Completion of short flows in us: the mean and three percentiles."""
    result = weft.run(fabric, fig15.flows_of([rate], FLOWS)[0], seed=seed)
    short = (result.flows.size <= SHORT) & result.observation.finished
    times = Distribution((result.observation.finish - result.flows.start)[short])
    return {"mean": times.mean / us, **{f"p{p:g}": times.percentile(p) / us for p in (99, 99.9, 99.99)}}


def _by(found, key):
    return {seed: one[key] for seed, one in zip(SEEDS, found, strict=True)}


def _over(theirs, own, key):
    found = ratio(_by(theirs, key), _by(own, key))
    return f"{found.ratio:.2f} ({found.low:.2f} to {found.high:.2f})"


def main(names):
    own, _ = tails(rack(NODES))
    print("transport  changed                       tail at 0.2  at 1   over Shoal's   pauses at 1")
    print(f"shoal      {'':29} {own[0]:10.1f} {own[1]:6.1f}")
    for name in names:
        for what, settings, changes in SUSPECTS[name]:
            seen, pauses = tails(network(name, settings, changes))
            over = "  ".join(f"{ours / shoal:5.2f}" for ours, shoal in zip(seen, own, strict=True))
            print(f"{name:10} {what:29} {seen[0]:10.1f} {seen[1]:6.1f}   {over}   {pauses:10,}", flush=True)


if __name__ == "__main__":
    if "ends" in sys.argv:
        ends()
    elif "windows" in sys.argv:
        windows()
    else:
        main(sys.argv[1:] or SUSPECTS)
