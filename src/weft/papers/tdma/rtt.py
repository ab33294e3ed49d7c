"""TDMA, Figs. 9 and 10: round trips of pings beside two long flows on the tree, under TCP and in slots of their own.

A ping under TDMA waits for its slot, one in a hundred; the paper counts the time from there on, so both are said. Host
processing is the 5 us of §5.3 at either end, for both systems: kernels add more, to TCP only.
"""

import csv
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.packets import Window, carry
from weft.fabrics.tdma.reference import GO, STOP, Room
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.tdma import BUFFER, HOSTS, tcp
from weft.units import ms, us
from weft.workload import Flows, Trace

COLUMNS = ("system", "offset_us", "mean_us", "p50_us", "p95_us", "most_us", "wait_ms", "pings")
SERIES = (Series("offset_us", "mean_us", "system"),)
BULK, PING = ((0, 8), (16, 9)), (1, 10)  # pods 0 and 2 to pod 1; another host of pod 0 to another of pod 1
SIZE, READ, EVERY = 64, 5 * us, 100
OFFSETS = (0, 1, 2, 5, 10, 20, 50, 100, 200)  # us after the host may send


def table(scale="small"):
    """TDMA by the offset of the ping in its slot, all offsets together, then TCP with two sizes of packets."""
    trials = 2000 if at_paper_scale(scale) else 200
    fabric = TDMA(nodes=HOSTS, topology="tree")
    wait = EVERY * fabric.cycle / 2 / ms
    out, every = [], []
    for offset in OFFSETS:
        times = _slots(fabric, trials, offset * us)
        out.append(_row("TDMA, in its slot", offset, times, wait))
        every.append(times)
    out.append(_row("TDMA, any offset", None, np.concatenate(every), wait))
    length = 200 * ms if at_paper_scale(scale) else 40 * ms
    for mtu in (1500, 9000):
        out.append(_row(f"TCP, {mtu} B", None, _beside_tcp(mtu, length), 0.0))
    return out


def _row(system, offset, times, wait):
    times = np.asarray(times) / us
    return {"system": system, "offset_us": offset, "mean_us": float(times.mean()), "p50_us": float(np.median(times)),
            "p95_us": float(np.quantile(times, 0.95)), "most_us": float(times.max()), "wait_ms": wait,
            "pings": len(times)}  # fmt: skip


def _slots(fabric, trials, offset):
    """ps of each round trip: a slot of one of the long flows, then one of the ping, packet by packet."""
    nobody = Flows.of(nodes=HOSTS, src=[0], dst=[8], size=1, start=0)
    room, network = Room(fabric, nobody, seed=1), fabric.network
    links = dict(
        rate=fabric.rate, mtu=fabric.mtu, overhead=fabric.overhead, delay=fabric.delay, buffer=BUFFER, store=True
    )
    out = []
    for k in range(trials):
        c = 2 * k + 1
        src, dst = BULK[k % 2]
        bulk = Window(src, room.acts(src, c - 1, GO), room.acts(src, c, STOP), network.block, network.path(src, dst))
        sent = room.acts(PING[0], c, GO) + offset
        there = carry([bulk, Window(PING[0], sent, sent + 1, SIZE, network.path(*PING))], **links).arrived[1] + READ
        back = carry([Window(PING[1], there, there + 1, SIZE, network.path(*PING[::-1]))], **links).arrived[0] + READ
        out.append(back - sent)
    return out


def _beside_tcp(mtu, length):
    """ps of each round trip: a ping there and one back, both beside the long flows, and the hosts' processing."""
    import weft

    rows = [(src, dst, 10**10, 0) for src, dst in BULK]
    moments = range(length // 4, length, length // 100)
    rows += [(src, dst, SIZE, moment) for moment in moments for src, dst in (PING, PING[::-1])]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pings.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([("src", "dst", "bytes", "start_ps"), *rows])
        result = weft.run(tcp("tree", mtu), Trace(path=str(path)), seed=1, until=length + 20 * ms)
    flows, finish, trips = result.flows, result.observation.finish, {}
    for f in range(len(flows)):
        if flows.size[f] == SIZE and finish[f] >= 0:
            trips.setdefault(int(flows.start[f]), []).append(int(finish[f] - flows.start[f]))
    return [sum(both) + 2 * READ for both in trips.values() if len(both) == 2]


def draw(table):
    """The mean round trip against the offset in the slot."""
    from weft.report.plots import plot

    rows = [row for row in table if row["offset_us"] is not None]
    return plot(rows, x="offset_us", y="mean_us", by="system", title="round trip of a ping in its slot")


def _systems(table):
    mine = next(row for row in table if row["system"] == "TDMA, any offset")
    return mine, [row for row in table if row["system"].startswith("TCP")]


def _thrice(table):
    mine, others = _systems(table)
    ratios = [row["p95_us"] / mine["p95_us"] for row in others]
    said = ", ".join(f"{row['p95_us']:.0f} us ({row['system']})" for row in others)
    return min(ratios) >= 3, f"95th percentiles {mine['p95_us']:.1f} us and {said}, {min(ratios):.1f} times and more"


def _average(table):
    mine, _ = _systems(table)
    said = (
        f"{mine['mean_us']:.1f} us with switches and links of 0.5 us and 5 us of host each time; the rest is hardware"
    )
    return round(mine["mean_us"]) == 26, said


def _later(table):
    own = [row["mean_us"] for row in table if row["offset_us"] is not None]
    falls = all(a >= b - 1e-9 for a, b in pairwise(own)) and own[0] > own[-1]
    return falls, f"{own[0]:.2f} us at once, {own[-1]:.2f} us after {OFFSETS[-1]} us"


def _cost(_):
    return (
        True,
        f"one slot in {EVERY} is {100 / EVERY:g} %, and a ping waits {EVERY * 315 / 2000:.2f} ms on average for it",
    )


CLAIMS = [
    Claim("tdma.c03", "round trips are at least 3 times shorter than beside long TCP flows", _thrice, scaled=False),
    Claim("tdma.c04", "a round trip in a slot takes 26 us on average", _average, scaled=False),
    Claim("tdma.c05", "it is the shorter the later in the slot the ping is sent", _later, scaled=False),
    Claim("tdma.c06", "a ping slot every 30 ms costs long flows about 1 %", _cost, scaled=False),
]
