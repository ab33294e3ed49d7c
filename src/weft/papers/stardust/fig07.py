"""Stardust, Fig. 7: a fabric of Ethernet switches pushes what it cannot deliver, Stardust's egress pulls what it can.

Two devices send to ports A and B of a third, 100 Gb/s each: the first to both, the second to A. The fabric has 200 Gb/s
to that device.
"""

from collections import deque
from dataclasses import dataclass
from fractions import Fraction

from weft import random
from weft.fabrics.stardust import Stardust
from weft.papers import Claim, Series
from weft.papers.marks import marks_only, said
from weft.units import Gbps, us
from weft.workload.traffic import Traffic

COLUMNS = ("fabric", "a_gbps", "b_gbps", "both_gbps", "lost_inside", "waiting_at_ingress")
SERIES = (Series("fabric", "b_gbps"), Series("fabric", "both_gbps"))
SLOTS, BUFFER = 20_000, 100  # packet times that are simulated, packets that a port of a switch holds
A, B = 4, 5  # ports of the third adapter
PRINTED = {(0, "B"): 66, (1, "A"): 100, (1, "B"): 100}  # (fabric, port) -> Gb/s


@dataclass(frozen=True, kw_only=True)
class TwoToOne(Traffic):
    """Port 0 sends to A, port 1 of the same adapter to B, port 2 of another to A; the rest keep out of their way."""

    def weights(self, i, n):
        row = [Fraction(0)] * n
        row[{0: A, 1: B, 2: A}.get(i, 3)] = Fraction(1)
        return row


def push(classes: bool) -> dict:
    """The same with two Ethernet switches in the middle, a packet for each link in a slot, first come first served.

    Packets take one of the switches at random, and come in random order. With `classes`, those for A go first, and push
    others out of a full buffer.
    """
    links: list[deque] = [deque(), deque()]  # each switch to the device of A and B
    ports: dict[str, deque] = {"A": deque(), "B": deque()}
    sent, lost = {"A": 0, "B": 0}, 0
    ways, orders = (random.below(random.words(random.key(1, stream), 3 * SLOTS), 6) for stream in (7, 8))
    for slot in range(SLOTS):
        order = sorted(range(3), key=lambda k: orders[3 * slot + k])
        for k in order:
            queue, dst = links[ways[3 * slot + k] % 2], "ABA"[k]
            if len(queue) < BUFFER:
                queue.append(dst)
            elif classes and dst == "A" and "B" in queue:
                queue.remove("B")
                queue.append(dst)
                lost += 1
            else:
                lost += 1
        for queue in links:
            if not queue:
                continue
            first = "A" if classes and "A" in queue else queue[0]
            queue.remove(first)
            if len(ports[first]) < BUFFER:
                ports[first].append(first)
            else:
                lost += 1
        for name, port in ports.items():
            if port:
                port.popleft()
                sent[name] += 1
    return {"a_gbps": 100 * sent["A"] / SLOTS, "b_gbps": 100 * sent["B"] / SLOTS, "lost_inside": lost,
            "waiting_at_ingress": 0}  # fmt: skip


def pull() -> dict:
    """The same with Stardust; rates are of packets, the headers of their cells not counted."""
    fabric = Stardust(adapters=3, ports=2, uplinks=4, tiers=1, lane=55 * Gbps, link=100 * Gbps)
    traffic = TwoToOne(load=1, slots=SLOTS, warmup=SLOTS // 10)
    run = fabric.prepare(traffic.draw(nodes=6, link=fabric.link, seed=1), seed=1)
    run.advance(until=SLOTS * fabric.node_slot - 1 * us)
    seen = run.observe()
    rates = seen.throughput.rates * fabric.cell / fabric.filling / Gbps
    waiting = int(run.state.voqs["bytes"].sum()) // fabric.cell
    return {"a_gbps": float(rates[A]), "b_gbps": float(rates[B]), "lost_inside": seen.lost.total,
            "waiting_at_ingress": waiting}  # fmt: skip


def rows(classes: bool) -> list:
    """A row for each fabric."""
    found = [{"fabric": "Ethernet", **push(classes)}, {"fabric": "Stardust", **pull()}]
    return [{**row, "both_gbps": row["a_gbps"] + row["b_gbps"]} for row in found]


def table(scale="small"):
    """Both fabrics, without classes; there is one scale."""
    return rows(classes=False)


def draw(table, printed=PRINTED):
    """What each port gets, and what the text says."""
    from weft.report.plots import plot

    bars = [
        {"fabric": k, "gbps": row[f"{port}_gbps"], "of": f"port {port.upper()}"}
        for k, row in enumerate(table)
        for port in "ab"
    ]
    bars += [{"fabric": k, "gbps": gbps, "of": said(f"port {port}")} for (k, port), gbps in printed.items()]
    drawn = plot(bars, x="fabric", y="gbps", by="of", title="Ethernet (0) and Stardust (1): Gb/s of two ports")
    return marks_only(drawn, said("port A"), said("port B"))


def _push(table):
    row = table[0]
    return abs(row["b_gbps"] - 200 / 3) < 1, f"{row['b_gbps']:.1f} % of B's traffic passes"


def _pull(table):
    row = table[1]
    ours = f"{row['a_gbps']:.1f} Gb/s at A and {row['b_gbps']:.1f} at B, {row['lost_inside']} cells lost"
    return min(row["a_gbps"], row["b_gbps"]) > 99 and row["lost_inside"] == 0, ours


_LOST = "of B's traffic, which is not congested, only 66 % passes a fabric of Ethernet switches"
CLAIMS = [
    Claim("stardust.c08", _LOST, _push, False),
    Claim("stardust.c08", "Stardust delivers 100 Gb/s at A and at B", _pull, False),
]
