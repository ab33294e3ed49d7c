"""TDMA, Fig. 9: round trips of pings beside two long flows on the tree, under TCP and in slots of their own.

A ping under TDMA waits for its slot, one in a hundred; the paper counts the time from there on, so both are said. Host
processing is the 5 us of §5.3 at either end, for both systems: kernels add more, to TCP only.
"""

import numpy as np

from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.packets import Window, carry
from weft.fabrics.tdma.reference import GO, STOP, Room
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.tdma import BUFFER, HOSTS, carried, tcp
from weft.units import ms, us
from weft.workload import Flows

COLUMNS = ("system", "mean_us", "p50_us", "p95_us", "most_us", "wait_ms", "pings")
SERIES = (Series("rtt_us", "share", "system"),)
BULK, PING = ((0, 8), (16, 9)), (1, 10)  # pods 0 and 2 to pod 1; another host of pod 0 to another of pod 1
SIZE, READ, EVERY = 64, 5 * us, 100
OFFSETS = (0, 1, 2, 5, 10, 20, 50, 100, 200)  # us after the host may send
LENGTH = 600 * ms  # of the transfers whose loss by ping slots is measured


def table(scale="small", seed=1):
    """TDMA with pings anywhere in their slot, then TCP with two sizes of packets."""
    mine = np.concatenate([times for _, times in by_offset(scale, seed)])
    out = [row("TDMA", mine, waits())]
    length = 200 * ms if at_paper_scale(scale) else 40 * ms
    return out + [row(f"TCP, {mtu} B", _beside_tcp(mtu, length, seed), 0.0) for mtu in (1500, 9000)]


def by_offset(scale, seed=1):
    """(us after the slot's begin, ps of each round trip) of pings sent at that moment."""
    trials = 2000 if at_paper_scale(scale) else 200
    fabric = TDMA(nodes=HOSTS, topology="tree")
    return [(offset, _slots(fabric, trials, offset * us, seed)) for offset in OFFSETS]


def waits() -> float:
    """ms that a ping waits for its slot, on average."""
    return EVERY * TDMA(nodes=HOSTS, topology="tree").cycle / 2 / ms


def row(system, times, wait, **more):
    """A row of the table."""
    times = np.asarray(times) / us
    return {"system": system, **more, "mean_us": float(times.mean()), "p50_us": float(np.median(times)),
            "p95_us": float(np.quantile(times, 0.95)), "most_us": float(times.max()), "wait_ms": wait,
            "pings": len(times), "times": np.sort(times).tolist()}  # fmt: skip


def _slots(fabric, trials, offset, seed):
    """ps of each round trip: a slot of one of the long flows, then one of the ping, packet by packet."""
    nobody = Flows.of(nodes=HOSTS, src=[0], dst=[8], size=1, start=0)
    room, network = Room(fabric, nobody, seed=seed), fabric.network
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


def _beside_tcp(mtu, length, seed):
    """ps of each round trip: a ping there and one back, both beside the long flows, and the hosts' processing."""
    moments = range(length // 4, length, length // 100)
    rows = [(src, dst, 10**10, 0) for src, dst in BULK]
    rows += [(src, dst, SIZE, moment) for moment in moments for src, dst in (PING, PING[::-1])]
    run = tcp("tree", mtu).prepare(_flows(rows), seed=seed)
    run.advance(until=length + 20 * ms)
    flows, finish, trips = run.demand, run.observe().finish, {}
    for f in range(len(flows)):
        if flows.size[f] == SIZE and finish[f] >= 0:
            trips.setdefault(int(flows.start[f]), []).append(int(finish[f] - flows.start[f]))
    return [sum(both) + 2 * READ for both in trips.values() if len(both) == 2]


def _flows(rows):
    src, dst, size, start = zip(*rows, strict=True)
    return Flows.of(nodes=HOSTS, src=src, dst=dst, size=size, start=start)


def lost_to_pings() -> float:
    """The share of the long flows' bytes that a ping every hundredth slot costs them."""
    fabric = TDMA(nodes=HOSTS, topology="tree")
    bulk = [(src, dst, 10**10, 0) for src, dst in BULK]
    pings = [(*PING, SIZE, moment) for moment in range(0, LENGTH, EVERY * fabric.cycle)]
    got = []
    for rows in (bulk, bulk + pings):
        core, _ = carried(fabric, _flows(rows), until=LENGTH)
        got.append(sum(int(core.state.got[pair]) for pair in BULK))
    return 1 - got[1] / got[0]


def draw(table):
    """Shares of round trips that were no longer than so."""
    from weft.report.plots import plot

    rows = []
    for row in table:
        shares = {time: (k + 1) / len(row["times"]) for k, time in enumerate(row["times"])}  # equal times: the last
        some = list(shares.items())
        kept = dict([*some[:: max(1, len(some) // 50)], some[-1]])
        rows += [{"rtt_us": time, "share": share, "of": row["system"]} for time, share in kept.items()]
    return plot(rows, x="rtt_us", y="share", by="of", xscale="log", yscale="linear", title="round trips of pings")


def _systems(table):
    return table[0], table[1:]


def _thrice(table):
    mine, others = _systems(table)
    ratios = [row["p95_us"] / mine["p95_us"] for row in others]
    said = ", ".join(f"{row['p95_us']:.0f} us ({row['system']})" for row in others)
    return min(ratios) >= 3, f"95th percentiles {mine['p95_us']:.1f} us and {said}, {min(ratios):.1f} times and more"


def _average(table):
    mine, _ = _systems(table)
    said = f"{mine['mean_us']:.1f} us with switches and links of 0.5 us and 5 us of host each time; no more is printed"
    return round(mine["mean_us"]) == 26, said


def _cost(_):
    lost = lost_to_pings()
    said = f"{100 * lost:.2f} % of two long flows' bytes with a ping every {EVERY} slots"
    return abs(lost - 1 / EVERY) < 0.002, f"{said}; a ping waits {waits():.2f} ms on average for its slot"


CLAIMS = [
    Claim("tdma.c03", "round trips are at least 3 times shorter than beside long TCP flows", _thrice, scaled=False),
    Claim("tdma.c04", "a round trip in a slot takes 26 us on average", _average, scaled=False),
    Claim("tdma.c06", "a ping slot every 30 ms costs long flows about 1 %", _cost, scaled=False),
]
