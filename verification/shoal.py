"""Is Shoal's rack right? Rates, queues and completion against what can be proved, rule set by rule set.

python verification/shoal.py            about a minute; prints tables, exits 1 if a proved number is missed
"""

import sys
from dataclasses import replace

import numpy as np

from weft.fabrics.shoal import Shoal, bounds
from weft.fabrics.shoal.reference import ReferenceRack
from weft.metrics.fairness import per_subflow
from weft.papers.shoal import prototype, rack
from weft.random import below, key, words
from weft.units import KB
from weft.workload import ENDLESS, Flows, Incast, Permutation

missed = []


def settle(fabric, flows, warm=200, epochs=600):
    """Cells per place of each flow once the rack has settled, and the monitors."""
    run = fabric.prepare(flows)
    run.advance(until=warm * fabric.epoch)
    before = run.observe().received
    run.advance(until=(warm + epochs) * fabric.epoch)
    seen = run.observe()
    return (seen.received - before) / fabric.payload / (epochs * (fabric.nodes - 1)), seen


def check(name, ours, proved, tolerance):
    ok = abs(ours / proved - 1) <= tolerance
    if not ok:
        missed.append(name)
    return "" if ok else "   missed"


def pairs_of(n, pairs):
    src, dst = zip(*pairs, strict=True)
    return Flows.of(nodes=n, src=src, dst=dst, size=ENDLESS, start=0)


def rates():
    print("Share of the link: a lone flow, and a full permutation (proved under the paper's rules: 1 and N/(2(N-1)))\n")
    print(f"{'nodes':>5} {'channels':>8} {'delay':>5} {'rules':>18} {'lone':>8} {'permutation':>12} {'proved':>8}")
    for n, c, delay in ((8, 1, 0), (9, 1, 0), (64, 1, 0), (64, 4, 0), (63, 4, 0), (64, 4, 3), (65, 1, 20)):
        for rules in ("paper", "released", "literal", "literal, eq. (1)"):
            if rules != "paper" and (c > 1 or delay):
                continue
            name, _, basic = rules.partition(",")
            fabric = Shoal(nodes=n, channels=c, delay=delay, rules=name, ready_queues=not basic)
            lone = np.mean([settle(fabric, pairs_of(n, [(0, d)]))[0][0] for d in (1, 2, n // 2)])
            full = settle(fabric, pairs_of(n, [(i, (i + 3) % n) for i in range(n)]))[0].mean()
            proved, mark = n / (2 * (n - 1)), ""
            if rules == "paper":
                mark = check("lone flow", lone, 1, 0.002) + check("permutation", full, proved, 0.002)
            print(f"{n:5} {c:8} {delay:5} {rules:>18} {lone:8.4f} {full:12.4f} {proved:8.4f}{mark}")


def pairs():
    n = 128
    print(f"\nMean share of the link of k pairs among {n} nodes, 4 channels; proved: [N-1-|(SuD)-{{s,d}}|/2]/(N-1)\n")
    print(f"{'k':>4} {'drawn':>12} {'ours':>8} {'proved':>8} {'max queue':>10}")
    for closed in (True, False):
        for k in (1, 8, 32, 64, 128):
            fabric = Shoal(nodes=n)
            flows = Permutation(pairs=k, closed=closed).draw(nodes=n, link=fabric.link, seed=k)
            got, seen = settle(fabric, flows)
            proved = per_subflow(flows.src, flows.dst, n).mean()
            mark = check("pairs", got.mean(), proved, 0.004)
            drawn = "closed" if closed else "independent"
            print(f"{k:4} {drawn:>12} {got.mean():8.4f} {proved:8.4f} {seen.sections['queue_cells']['max']:10}{mark}")


def incast():
    n = 64
    print(f"\nIncast of 130 KB each among {n} nodes, one channel: last completion in slots, and longest queue\n")
    print(f"{'senders':>7} {'ours':>8} {'foretold':>9} {'optimum':>8} {'mean/last':>10} {'max queue':>10} {'bound':>6}")
    for m in (4, 16, 32, 63):
        fabric = Shoal(nodes=n, channels=1)
        flows = Incast(fan_in=m, bytes=130 * KB).draw(nodes=n, link=fabric.link, seed=1)
        run = fabric.prepare(flows)
        run.advance()
        seen = run.observe()
        slots = seen.finish / fabric.slot_time
        foretold = bounds.incast_slots(m, 2322, n)
        longest, bound = seen.sections["queue_cells"]["max"], bounds.queue(m, n)
        mark = check("incast", slots.max(), foretold, 0.02) + ("   over the bound" if longest > bound else "")
        print(
            f"{m:7} {slots.max():8.0f} {foretold:9} {m * 2322:8} {slots.mean() / slots.max():10.4f} "
            f"{longest:10} {bound:6}{mark}"
        )


def last_rounds():
    """Is it the last, partly empty round that an incast takes beyond the optimum? Sizes of whole rounds have none."""
    rounds = (4, 4.125, 4.25, 4.5, 4.75, 4.9, 5, 8, 8.5, 16, 16.5)
    print("\nSlowest flow of an incast over the optimum, by rounds of N - 1 cells that a flow has (4 channels)\n")
    print(f"{'nodes':>5} {'senders':>7} " + " ".join(f"{k:>6g}" for k in rounds))
    for n, m in ((64, 8), (64, 32), (64, 63), (128, 32), (512, 64)):
        fabric, over = rack(n), []
        for k in rounds[:5] if n == 512 else rounds:
            cells = round(k * (n - 1))
            flows = Incast(fan_in=m, bytes=cells * fabric.payload).draw(nodes=n, link=fabric.link, seed=1)
            run = fabric.prepare(flows, seed=1)
            run.advance()
            over.append(run.observe().finish.max() * fabric.capacity / (m * cells * fabric.slot_time))
            if k == int(k):
                check(f"incast of {m} in {n} nodes, {k} rounds", over[-1], 1, 0.003)
        print(f"{n:5} {m:7} " + " ".join(f"{ratio:6.4f}" for ratio in over))

    print("\nThe same for the 130 KB of Fig. 13, 4.54 rounds, 64 senders among 512 nodes, by values of feedback\n")
    for values in (1, 2):
        fabric = replace(rack(512), feedback=values)
        flows = Incast(fan_in=64, bytes=130 * KB).draw(nodes=512, link=fabric.link, seed=1)
        run = fabric.prepare(flows, seed=1)
        run.advance()
        optimum = int(fabric.cells(flows.size).sum()) * fabric.slot_time / fabric.capacity
        print(f"{values} {run.observe().finish.max() / optimum:6.4f}")


class Watched(ReferenceRack):
    """The twin of the prototype, with other ways to count a queue."""

    leaving = ready = 0

    def step(self):
        self.gone = set()
        super().step()

    def send(self, i, node, j, channel):
        super().send(i, node, j, channel)
        self.gone.add((i, j))

    def receive(self, i, j, cell, feedback):
        super().receive(i, j, cell, feedback)
        for q, queue in enumerate(self.nodes[j].queue):
            if queue:
                self.leaving = max(self.leaving, len(queue) + ((j, q) in self.gone))
                self.ready = max(self.ready, len(queue) + self.nodes[j].ready[q])


def prototype_incast():
    """c24 says 7 cells: other moments to begin, and other ways to count."""
    print("\nIncast of the 8-node prototype (Fig. 10): longest queue, by when flows begin and how it is counted\n")
    for name, fabric in (("cells travel", prototype(header=0)), ("no travel", prototype(header=0, path=0))):
        slots = fabric.rounds.slots
        starts = [[k] * 7 for k in range(slots)]
        for seed in range(300):
            starts.append(np.sort(below(words(key(seed, 10), 7), 2 * slots)).tolist())
        seen = []
        for start in starts:
            flows = [(i, 0, 7, at) for i, at in zip(range(1, 8), start, strict=True)]
            rack = Watched(fabric.rounds, flows, delay=fabric.travel).run()
            seen.append((rack.max_queue, rack.leaving, rack.ready))
        most = np.max(seen, axis=0)
        print(
            f"{name:>12}: {most[0]} at most in {len(starts)} ways to begin, all in any one slot of the epoch or each "
            f"at its own; {most[1]} with the cell that leaves in the slot, {most[2]} with those ready to follow"
        )


def fairness():
    n, m = 128, 256
    print(f"\nFairness of {m} long flows between random nodes of {n}, one channel, against max-min over subflows\n")
    print(f"{'rules':>22} {'mean':>7} {'within 10 %':>12} {'worst':>7} {'bound broken':>13} {'two in a queue':>15}")
    rng = np.random.default_rng(0)
    src, step = rng.integers(0, n, m), rng.integers(1, n, m)
    flows = pairs_of(n, sorted(set(zip(src.tolist(), ((src + step) % n).tolist(), strict=True))))
    ideal = per_subflow(flows.src, flows.dst, n)
    for name, options in (
        ("paper", {}), *((f"paper, feedback {k}", {"feedback": k}) for k in (1, 3, 4, 8)),
        ("paper, no ready queues", {"ready_queues": False}),
        ("the same, feedback 1", {"ready_queues": False, "feedback": 1}),
        ("released", {"rules": "released"}), ("released, feedback 1", {"rules": "released", "feedback": 1}),
        ("literal", {"rules": "literal"}),
    ):  # fmt: skip
        got, seen = settle(Shoal(nodes=n, channels=1, **options), flows)
        off = np.abs(got / ideal - 1)
        print(
            f"{name:>22} {got.mean() / ideal.mean():7.4f} {(off < 0.1).mean():12.3f} {off.max():7.3f} "
            f"{seen.monitors['queue_bound']:13} {seen.monitors['one_cell_per_subflow']:15}"
        )


if __name__ == "__main__":
    rates()
    pairs()
    incast()
    prototype_incast()
    last_rounds()
    fairness()
    if missed:
        print(f"\nmissed: {', '.join(sorted(set(missed)))}")
    sys.exit(bool(missed))
