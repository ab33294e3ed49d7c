"""What moves the utilisation of a permutation on 432 hosts: the paths drawn, the length of a run, each setting.

    python verification/utilisation.py                 everything, some minutes
    python verification/utilisation.py bound mptcp     those named

Prints payload over link rate in the second half of a run. Nothing is tuned to meet the published 49 % (DCTCP), 47 %
(DCQCN) and 90 % (MPTCP) of Stardust's Fig. 10a; docs/fabrics/packet.md says what is learnt from it.
"""

import sys
from dataclasses import replace
from itertools import product

from weft.fabrics.network import bounds
from weft.fabrics.packet import Packet
from weft.metrics import throughput
from weft.metrics.statistics import estimate
from weft.papers.stardust import tree
from weft.units import Gbps, ms, us
from weft.workload import WORKLOADS
from weft.workload.traffic import Uniform

SEEDS = (1, 2, 3, 4, 5)
CHANGES = {
    "dctcp": (
        "", "mark_from=15", "mark_from=65", "buffer=194", "threshold=15", "initial_window=2", "sack=true",
        "rto_min=1ms,rto_first=1ms", "mark_from=15,buffer=194,threshold=15",
    ),
    "dcqcn": (
        "", "mark_from=1,mark_all=22", "mark_from=15,mark_all=0,mark_chance=1", "share=0", "share=0,xoff=1000,xon=900",
        "gain_shift=4", "raise_gap=10us", "raise_bytes=1MB", "rate_step=400Mbps",
        "share=0,xoff=1000,xon=900,raise_gap=10us", "mark_from=1,mark_all=22,raise_gap=10us",
    ),
    "mptcp": (
        "", "initial_window=2", "subflows=16", "sack=true", "rto_min=1ms,rto_first=1ms", "reinject=true",
        "coupled=false", "threshold=15", "threshold=15,coupled=false", "threshold=15,coupled=false,sack=true",
    ),
}  # fmt: skip


def run(transport, *, duration=30 * ms, seed=1):
    """What the destinations of a run got, in Gb/s of payload, mean, least and most; and what went wrong."""
    fabric = Packet(hosts=432, mtu=9000, transport=transport)
    flows = WORKLOADS["permutation"](duration=duration).draw(nodes=432, link=fabric.link, seed=seed)
    run = fabric.prepare(flows, seed=seed)
    run.advance(until=duration)
    seen = run.observe()
    counts = {"pauses": seen.sections["pauses"], "timeouts": seen.sections["timeouts"], "drops": seen.lost.total}
    return throughput.summary(fabric, flows, seen)["per_destination_gbps"] | counts


def used(rates) -> str:
    return f"{100 * rates['mean'] / 10:5.1f} %"  # of links of 10 Gb/s


def bound():
    """An ideal transport on the paths that ECMP draws, max-min fair, beside single-path transports, over 30 ms.

    Behind the means, in brackets, the least that a flow gets, in Gb/s."""
    names = ("dctcp", "dcqcn", "tcp")
    print("seed            ideal" + "".join(f"{name:>17}" for name in names))
    for seed in SEEDS:
        fabric = Packet(hosts=432, mtu=9000, transport="dctcp@stardust-nsdi19")
        flows = WORKLOADS["permutation"](duration=30 * ms).draw(nodes=432, link=fabric.link, seed=seed)
        best = bounds.shares(fabric, flows, seed)
        line = f"{seed:4}   {100 * best.mean() / fabric.link:5.1f} % ({best.min() / Gbps:.2f})"
        for name in names:
            seen = run(f"{name}@stardust-nsdi19", seed=seed)
            line += f"   {used(seen)} ({seen['min']:.2f})"
        print(line, flush=True)


def duration():
    """The length of the run, whose second half counts."""
    print("transport        10 ms    30 ms   100 ms")
    for name in ("dctcp", "dcqcn", "mptcp"):
        ours = [used(run(f"{name}@stardust-nsdi19", duration=length * ms)) for length in (10, 30, 100)]
        print(f"{name:9}      " + "  ".join(ours), flush=True)


def _changed(name):
    print("transport  changed                                       ours   pauses  timeouts    drops")
    for change in CHANGES[name]:
        seen = run(f"{name}@stardust-nsdi19" + (f":{change}" if change else ""))
        print(f"{name:10} {change:43} {used(seen)} {seen['pauses']:8} {seen['timeouts']:9} "
              f"{seen['drops']:8}", flush=True)  # fmt: skip


def dctcp():
    """DCTCP, one thing changed at a time, over 30 ms."""
    _changed("dctcp")


def dcqcn():
    """DCQCN, one thing changed at a time, over 30 ms."""
    _changed("dcqcn")


def mptcp():
    """MPTCP, one thing changed at a time, over 30 ms."""
    _changed("mptcp")


def package():
    """The settings of the simulations that came with NDP, which Stardust reproduces as they are, over 100 ms.

    They hold no DCQCN, but DCTCP on lossless queues."""
    print("transport                              ours   theirs")
    theirs = {"dctcp": "49 %", "mptcp": "90 %", "ndp": "left out", "dctcp:queue=lossless": "DCQCN 47 %"}
    for name, printed in theirs.items():
        transport, _, change = name.partition(":")
        transport = f"{transport}@ndp-sigcomm17" + (f":{change}" if change else "")
        print(f"{transport:34} {used(run(transport, duration=100 * ms))}   {printed}", flush=True)


STARDUST = (
    {}, {"header": 0}, {"speedup": 1.0}, {"header": 0, "speedup": 1.0}, {"header": 0, "speedup": 1.02},
    {"fci": 1 << 20},
    {"per_source": False}, {"whole": True}, {"credit": 2048}, {"cell": 256, "credit": 2048}, {"watermark": None},
    {"uplinks": 7, "radix": 14}, {"mtu": 1500}, {"transport": "ndp@stardust-nsdi19"},
)  # fmt: skip


def stardust():
    """Stardust, one thing changed at a time, 10 ms, 54 hosts, five seeds; least and most of a flow in Gb/s."""
    print("changed                            share, %          least          most          marked")
    for change in STARDUST:
        found = [_permutation(replace(tree(54, "Stardust"), **change), seed) for seed in SEEDS]
        named = ", ".join(f"{name}={value}" for name, value in change.items())
        shown = [estimate(column) for column in zip(*found, strict=True)]
        share, least, most = (f"{one.mean:.2f} ± {one.high - one.mean:.2f}" for one in shown[:3])
        print(f"{named:30} {share:>14} {least:>14} {most:>13} {shown[3].mean:>15,.0f}", flush=True)


def _permutation(fabric, seed):
    """(share of the links in per cent, least and most of a flow in Gb/s, marked cells) of a permutation over 10 ms."""
    flows = WORKLOADS["permutation"](duration=10 * ms).draw(nodes=54, link=fabric.link, seed=seed)
    run = fabric.prepare(flows, seed=seed)
    run.advance(until=10 * ms)
    seen = run.observe()
    rates = throughput.summary(fabric, flows, seen)["per_destination_gbps"]
    return 10 * rates["mean"], rates["min"], rates["max"], seen.carried["marked"]


def fci():
    """Where Stardust settles when its ports ask for 1.2 of its uplinks (Fig. 9, small), by how it reacts to marks.

    0.9 is printed, and neither threshold nor function."""
    from weft.papers.stardust import fig09

    print("fci  fci_cut  fci_gain  200 us  400 us  slowest")
    reactions = (1 / 16, 1 / 512), (1 / 4, 1 / 512), (1, 1 / 512), (1, 1 / 4096)
    for threshold, (cut, gain) in product((96, 24), reactions):
        fabric = replace(fig09.fabrics("small")[1], fci=threshold, fci_cut=cut, fci_gain=gain)
        uses = []
        for duration in (200 * us, 400 * us):
            traffic = Uniform(load=1.0, duration=duration, warmup=duration // 2 // fabric.node_slot)
            run = fabric.prepare(traffic.draw(nodes=fabric.nodes, link=fabric.link, seed=1), seed=1)
            run.advance(until=duration)
            seen = run.observe()
            uses.append(seen.sections["fabric_use"]["utilisation"])
        told = f"{uses[0]:7.3f} {uses[1]:7.3f} {seen.sections['credits']['slowest']:8.3f}"
        print(f"{threshold:3} {cut:8.4f} {gain:9.5f} {told}", flush=True)


CHECKS = (bound, duration, dctcp, dcqcn, mptcp, package, stardust, fci)

if __name__ == "__main__":
    for check in CHECKS:
        if len(sys.argv) < 2 or check.__name__ in sys.argv[1:]:
            print(f"\n{check.__doc__}")
            check()
