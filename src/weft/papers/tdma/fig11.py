"""TDMA, Fig. 11: hosts that send a block to one neighbour after the other, against the size of the block."""

from weft.fabrics.tdma.fabric import TDMA
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.tdma import HOSTS, carried
from weft.units import KB, Gbps, s
from weft.workload import AllToAll

COLUMNS = ("block_kb", "slots", "gbps", "bound_gbps")
SERIES = (Series("block_kb", "gbps"), Series("block_kb", "bound_gbps"))
BLOCKS = (10, 50, 100, 200, 300, 375, 450, 750, 1500, 3750, 10_000)  # KB
SLOT = 375  # KB of a slot at 10 Gb/s


def table(scale="small"):
    """A row per block: what a host sends on average from the first slot on, and what slots allow.

    Every host has one block for each of the others. Blocks are written ahead, as the paper's send buffers take them.
    """
    out = []
    blocks = (*BLOCKS, 50_000, 100_000) if at_paper_scale(scale) else BLOCKS
    for block in blocks:
        fabric = TDMA(nodes=HOSTS)
        flows = AllToAll(bytes=block * KB).draw(nodes=HOSTS, link=fabric.link, seed=0)
        core, _ = carried(fabric, flows)
        first = fabric.slots * fabric.cycle  # the first round has no schedule
        rate = (HOSTS - 1) * block * KB * 8 * s / (int(core.state.finish.max()) - first) / Gbps
        slots = -(-block // SLOT)
        out.append({"block_kb": block, "slots": slots, "gbps": rate,
                    "bound_gbps": block * KB * 8 * s / (slots * fabric.cycle) / Gbps})  # fmt: skip
    return out


def draw(table):
    """Throughput of a host against the size of the block."""
    from weft.report.plots import plot

    rows = [{"block_kb": row["block_kb"], "gbps": row[key], "of": name} for row in table
            for key, name in (("gbps", "TDMA"), ("bound_gbps", "whole slots"))]  # fmt: skip
    return plot(rows, x="block_kb", y="gbps", by="of", xscale="log", yscale="linear", title="round-robin neighbours")


def _worse(table):
    full = max(row["gbps"] for row in table)
    small = [row["gbps"] for row in table if row["block_kb"] < SLOT]
    large = [row["gbps"] for row in table if row["block_kb"] >= 2 * SLOT]
    exact = next(row["gbps"] for row in table if row["block_kb"] == SLOT)
    said = f"{max(small):.2f} Gb/s and less below {SLOT} KB, {min(large):.2f} and more from {2 * SLOT} KB on"
    jitter = f"{exact:.2f} at {SLOT} KB, where a host that stops a little early needs a second slot for the rest"
    return max(small) < 0.85 * full and min(large) > 0.85 * full, f"{said}; {jitter}"


def _slot(_):
    size = 10 * Gbps * 300 // 8 // 10**6 // 1000
    return size == SLOT, f"{size} KB"


def _most(table):
    return "not run", f"TDMA reaches {max(row['gbps'] for row in table):.2f} Gb/s; TCP, block after block, is not run"


CLAIMS = [
    Claim("tdma.c07", "TDMA suffers where a block is smaller than a slot's worth", _worse, scaled=False),
    Claim("tdma.c07", "a slot of 300 us takes 375 KB at 10 Gb/s", _slot, scaled=False),
    Claim("tdma.c07", "TCP reaches about 4.5 Gb/s at best", _most, scaled=False),
]
