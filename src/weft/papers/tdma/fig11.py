"""TDMA, Fig. 11: hosts that send a block to one neighbour after the other, against the size of the block."""

from dataclasses import replace

import numpy as np

from weft.fabrics.tdma.fabric import TDMA
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT
from weft.papers.tdma import APART, HOSTS, SPREAD, TOGETHER, TRIP, carried, starts, tcp
from weft.units import KB, Gbps, s
from weft.workload import AllToAll, Flows

COLUMNS = ("system", "block_kb", "gbps", "bound_gbps", "losses", "timeouts")
SERIES = (Series("block_kb", "gbps", "system"),)
BLOCKS = (10, 50, 100, 200, 300, 375, 450, 750, 1500, 3750, 10_000)  # KB
SLOT = 375  # KB of a slot at 10 Gb/s


def table(scale="small", seed=1):
    """A row per system and block: what a host sends on average.

    With TDMA from the first slot on, blocks written ahead, as the paper's send buffers take them. With TCP every
    host has a connection at a time, to the neighbour after the one whose block is done, and its average is over its own
    blocks. The paper says of TCP that hosts are not coordinated: in one row they begin at once, in one within 1 ms.
    """
    blocks = (*BLOCKS, 50_000, 100_000) if at_paper_scale(scale) else BLOCKS
    out = [in_slots(block, seed) for block in blocks]
    return out + [
        _tcp(system, block, spread, seed) for system, spread in ((TOGETHER, 0), (APART, SPREAD)) for block in blocks
    ]


def in_slots(block, seed=1, **other):
    """The row of TDMA; other: what the fabric has else than ours."""
    fabric = TDMA(nodes=HOSTS, **other)
    flows = AllToAll(bytes=block * KB).draw(nodes=HOSTS, link=fabric.link, seed=0)
    core, _ = carried(fabric, flows, seed=seed)
    first = fabric.slots * fabric.cycle  # the first round has no schedule
    rate = (HOSTS - 1) * block * KB * 8 * s / (int(core.state.finish.max()) - first) / Gbps
    whole = -(-block // SLOT) * fabric.cycle
    return {"system": "TDMA", "block_kb": block, "gbps": rate, "bound_gbps": block * KB * 8 * s / whole / Gbps,
            "losses": 0, "timeouts": 0}  # fmt: skip


def neighbours(block: int, spread: int, seed: int = 1) -> Flows:
    """From every host a block for each of the others, one after the other; hosts begin within `spread` ps."""
    pairs = [(i, (i + k) % HOSTS) for k in range(1, HOSTS) for i in range(HOSTS)]
    begins = starts(HOSTS, spread, seed)
    return Flows.of(
        nodes=HOSTS, src=[i for i, _ in pairs], dst=[j for _, j in pairs], size=block,
        start=[int(begins[i]) if j == (i + 1) % HOSTS else 0 for i, j in pairs],
        after=[[row - HOSTS] if row >= HOSTS else [] for row in range(len(pairs))],
    )  # fmt: skip


def _tcp(system, block, spread, seed):
    fabric = replace(tcp("switch", 9000), delay=TRIP // 4)
    run = fabric.prepare(neighbours(block * KB, spread, seed), seed=seed)
    run.advance()
    seen, flows = run.observe(), run.demand
    mine = [flows.src == i for i in range(HOSTS)]
    spans = [int(seen.finish[own].max() - flows.start[own].max()) for own in mine]
    rates = [(HOSTS - 1) * block * KB * 8 * s / span for span in spans]
    return {"system": system, "block_kb": block, "gbps": float(np.mean(rates)) / Gbps, "bound_gbps": None,
            "losses": seen.lost.total, "timeouts": seen.sections["timeouts"]}  # fmt: skip


def draw(table):
    """Throughput of a host against the size of the block."""
    from weft.report.plots import plot

    rows = [{"block_kb": row["block_kb"], "gbps": row["gbps"], "of": row["system"]} for row in table]
    rows += [
        {"block_kb": row["block_kb"], "gbps": row["bound_gbps"], "of": "whole slots"} for row in _of(table, "TDMA")
    ]
    rows += [{"block_kb": table[-1]["block_kb"], "gbps": 4.5, "of": f"TCP at best: {TEXT}"}]
    return plot(rows, x="block_kb", y="gbps", by="of", xscale="log", yscale="linear", title="round-robin neighbours")


def _of(table, system):
    return [row for row in table if row["system"] == system]


def _worse(table):
    own = _of(table, "TDMA")
    full = max(row["gbps"] for row in own)
    small = [row["gbps"] for row in own if row["block_kb"] < SLOT]
    large = [row["gbps"] for row in own if row["block_kb"] >= 2 * SLOT]
    exact = next(row["gbps"] for row in own if row["block_kb"] == SLOT)
    said = f"{max(small):.2f} Gb/s and less below {SLOT} KB, {min(large):.2f} and more from {2 * SLOT} KB on"
    jitter = f"{exact:.2f} at {SLOT} KB, where a host that stops a little early needs a second slot for the rest"
    return max(small) < 0.85 * full and min(large) > 0.85 * full, f"{said}; {jitter}"


def _slot(_):
    size = 10 * Gbps * 300 // 8 // 10**6 // 1000
    return size == SLOT, f"{size} KB"


def _most(table):
    best = {system: max(row["gbps"] for row in _of(table, system)) for system in ("TDMA", TOGETHER, APART)}
    said = ", ".join(f"{system}: {rate:.2f} Gb/s" for system, rate in best.items())
    near = abs(best[APART] / 4.5 - 1) < 0.2 and best[TOGETHER] < best["TDMA"]
    return "consistent" if near else False, f"at best {said}; the round trip is that of an idle network, 170 us"


CLAIMS = [
    Claim("tdma.c07", "TDMA suffers where a block is smaller than a slot's worth", _worse, scaled=False),
    Claim("tdma.c07", "a slot of 300 us takes 375 KB at 10 Gb/s", _slot, scaled=False),
    Claim("tdma.c07", "TCP reaches about 4.5 Gb/s at best", _most, scaled=False),
]
