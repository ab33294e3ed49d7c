"""Packet networks against queueing theory, the protocols' own analyses, and the numbers of Shoal and Stardust.

    python verification/packet.py                 every check, some minutes
    python verification/packet.py queues newreno  those named

Prints ours beside theirs. Nothing is tuned to meet; what differs is explained in docs/fabrics/packet.md.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from weft.fabrics.packet import Packet
from weft.metrics import throughput
from weft.random import below, key, ln, unit, words
from weft.units import KB, Gbps, ms, ns, us, wire_time
from weft.workload import WORKLOADS
from weft.workload.flows import ENDLESS, Flows


def run(fabric, flows, *, seed=1, until=None):
    run = fabric.prepare(flows, seed=seed)
    run.advance(until=until)
    return run.observe()


def rates(fabric, flows, seen) -> dict:
    """Gb/s of payload into a destination: mean, least and most."""
    return throughput.summary(fabric, flows, seen)["per_destination_gbps"]


def queues():
    """Waiting times at one port: Pollaczek and Khinchine, for fixed sizes (M/D/1) and exponential ones (M/M/1)."""
    print("queue      load   mean wait us   theory us")
    hosts, count = 200, 100_000
    fabric = Packet(hosts=hosts, topology="single", mtu=9000, delay=100 * ns, transport="tcp", buffer=10_000)
    for name in ("M/D/1", "M/M/1"):
        for load in (0.5, 0.8, 0.9):
            draw = words(key(5, 1), 3 * count).reshape(3, count)
            size = np.full(count, 1448)
            if name == "M/M/1":
                size = np.clip((-ln(unit(draw[2])) * 1448).astype(np.int64), 1, 8948)
            service = np.array([wire_time(int(n) + 90, 10 * Gbps) for n in size])
            gaps = (-ln(unit(draw[0])) * service.mean() / load).astype(np.int64)
            src = 1 + below(draw[1], hosts - 1)
            flows = Flows.of(nodes=hosts, src=src, dst=np.zeros(count, int), size=size, start=np.cumsum(gaps))
            seen = run(fabric, flows)
            wait = seen.finish - flows.start - 2 * service - 200 * ns
            realised = service.sum() / np.cumsum(gaps)[-1]
            theory = realised * (service.astype(float) ** 2).mean() / service.mean() / (2 * (1 - realised))
            print(f"{name:8} {realised:6.3f} {wait.mean() / us:14.3f} {theory / us:11.3f}")


def _bottleneck(folder, rate="1Gbps"):
    path = Path(folder) / "bottleneck.csv"
    path.write_text(f"a,b,rate,delay\nh0,s,10Gbps,10us\nh1,s,{rate},10us\n")
    return str(path)


def newreno():
    """One NewReno flow over a slow link: a sawtooth between W/2 and W, which loses 8/(3 W²) of its packets."""
    print("buffer  W packets   loss measured   8/(3 W²)   link use")
    with tempfile.TemporaryDirectory() as folder:
        for buffer in (20, 40, 80):
            fabric = Packet(hosts=2, topology=_bottleneck(folder), transport="tcp:rto_min=50ms", buffer=buffer)
            flows = Flows.of(nodes=2, src=[0], dst=[1], size=ENDLESS, start=0)
            run = fabric.prepare(flows, seed=1)
            run.advance(until=1000 * ms)  # past slow start, which loses as much as it overshoots
            before = run.observe()
            run.advance(until=4000 * ms)
            seen = run.observe()
            packet = wire_time(1538, 1 * Gbps)
            window = (40 * us + packet) / packet + buffer
            lost = seen.lost.causes["full"] - before.lost.causes["full"]
            loss = lost / (seen.carried["data"] - before.carried["data"])
            use = rates(fabric, flows, seen)["mean"] / (1448 / 1538)
            print(f"{buffer:6} {window:10.1f} {loss:15.2e} {8 / 3 / window**2:10.2e} {use:10.3f}")


def dctcp():
    """N DCTCP flows: the queue swings by sqrt(2 N (C RTT + K)) / 2 below K + N (SIGCOMM '10, eqs. 8 to 10)."""
    print("flows   K    max: ours  K + N    swing: ours  theory   packets")
    for count, mark in ((2, 40), (10, 40), (20, 65)):
        fabric = Packet(hosts=32, topology="single", transport="dctcp", mark=mark, buffer=500, delay=25 * us)
        flows = Flows.of(nodes=32, src=np.arange(count) + 1, dst=[0] * count, size=[ENDLESS] * count, start=0)
        run = fabric.prepare(flows, seed=1)
        port = int(np.flatnonzero(run.state.ports["to"] == 0)[0])
        packet = wire_time(1538, 10 * Gbps)
        seen = []
        run.advance(until=50 * ms)
        for k in range(4000):
            run.advance(until=50 * ms + k * 5 * us)
            seen.append(max(int(run.state.ports["busy"][port]) - run.now, 0) / packet)
        product = (100 * us + packet) / packet
        theory = 0.5 * np.sqrt(2 * count * (product + mark))
        print(f"{count:5} {mark:4} {max(seen):11.1f} {mark + count:6} {max(seen) - min(seen):14.1f} {theory:8.1f}")


def fairness():
    """Jain's index of n flows into one host over 100 ms, events of the same picosecond in order or shuffled."""
    print("transport   n   ties     Jain   link use")
    cases = [(t, n, o) for t in ("tcp", "dctcp", "mptcp", "ndp", "dcqcn") for n in (4, 16) for o in ("fifo", "random")]
    for transport, n, ties in cases:
        fabric = Packet(hosts=32, topology="single", transport=transport, ties=ties)
        flows = Flows.of(nodes=32, src=np.arange(n) + 1, dst=[0] * n, size=[ENDLESS] * n, start=0)
        seen = run(fabric, flows, until=100 * ms)
        x = seen.received.astype(float)
        use = rates(fabric, flows, seen)["mean"] * Gbps / fabric.link
        print(f"{transport:9} {n:3}   {ties:6} {x.sum() ** 2 / n / (x**2).sum():7.3f} {use:8.3f}")


def permutation():
    """Mean utilisation under a permutation on 432 hosts of 10 Gb/s with 9000 B packets (Stardust, Fig. 10a)."""
    printed = {"dctcp": "49 %", "dcqcn": "47 %", "mptcp": "90 %", "ndp": "left out", "tcp": "not shown"}
    print("transport               ours   theirs      min Gb/s  max Gb/s")
    cases = [(name, 9000, "") for name in printed] + [("ndp", 1500, ""), ("mptcp", 9000, ":sack=true")]
    for name, mtu, change in cases:
        fabric = Packet(hosts=432, mtu=mtu, transport=f"{name}@stardust-nsdi19{change}")
        workload = WORKLOADS["permutation"](duration=(100 if mtu == 9000 else 20) * ms)
        flows = workload.draw(nodes=432, link=fabric.link, seed=1)
        spread = rates(fabric, flows, run(fabric, flows, until=workload.until))
        use = spread["mean"] * Gbps / fabric.link
        print(f"{name:6}{mtu:5}{change:11} {100 * use:5.1f} %  {printed[name]:10} "
              f"{spread['min']:8.2f} {spread['max']:9.2f}", flush=True)  # fmt: skip


def incast():
    """First and last completion of 450 KB from n hosts, 432-host fat tree, 9000 B (Stardust, Fig. 10c)."""
    print("transport    n   first ms   last ms   n x 0.36 ms   trims  drops  timeouts")
    for name in ("dctcp", "mptcp", "ndp", "dcqcn"):
        for n in (10, 100, 400):
            fabric = Packet(hosts=432, mtu=9000, transport=f"{name}@stardust-nsdi19")
            flows = Flows.of(nodes=432, src=np.arange(n) + 1, dst=[0] * n, size=450 * KB, start=0)
            part = run(fabric, flows).sections
            first, last = part["fct_us"]["first"] / 1e3, part["fct_us"]["last"] / 1e3
            print(f"{name:9} {n:4} {first:10.2f} {last:9.2f} {0.36 * n:13.2f} {part['trims']:7} "
                  f"{sum(part['drops'].values()):6} {part['timeouts']:9}", flush=True)  # fmt: skip


def shoal():
    """Shoal's Fig. 15 baselines: 512 hosts of 50 Gb/s on 24 switches of 64 ports, Pareto flows of mean 100 KB."""
    count = 20_000
    print(f"transport   load   short mean us   short 99.9 % us   long mean Gb/s   ({count:,} flows)")
    for name in ("dctcp", "dcqcn", "ndp"):
        for load in (0.2, 0.6):
            fabric = Packet(
                hosts=512, topology="leafspine", link=50 * Gbps, delay=100 * ns, transport=f"{name}@shoal-nsdi19"
            )
            workload = WORKLOADS["poisson"](load=load, flows=count)
            flows = workload.draw(nodes=512, link=fabric.link, seed=1)
            seen = run(fabric, flows)
            fct = seen.finish - flows.start
            short, long = flows.size <= 100 * KB, flows.size >= 1000 * KB
            tail = np.sort(fct[short])[int(np.ceil(0.999 * short.sum())) - 1]
            goodput = (flows.size[long] * 8 / fct[long] * 1e3).mean()
            print(f"{name:9} {load:6} {fct[short].mean() / us:15.1f} {tail / us:17.1f} {goodput:16.1f}", flush=True)


CHECKS = (queues, newreno, dctcp, fairness, incast, permutation, shoal)

if __name__ == "__main__":
    for check in CHECKS:
        if len(sys.argv) < 2 or check.__name__ in sys.argv[1:]:
            print(f"\n{check.__doc__}")
            check()
