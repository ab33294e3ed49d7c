"""Shoal, Fig. 9: destination throughput of the 8-node prototype under a full permutation, against the slot."""

from itertools import pairwise

from weft.fabrics.shoal import bounds
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import near, printed, prototype
from weft.study import Study
from weft.units import ms
from weft.workload import Permutation

COLUMNS = ("cell", "slot_ns", "epoch_us", "travel_epochs", "gbps", "share")
SERIES = (Series("slot_ns", "share"),)
CELLS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)


def study(scale="small"):
    """Eight endless flows, larger and larger cells; which sizes the paper took is not in the text."""
    duration = (100 if at_paper_scale(scale) else 10) * ms
    fabrics = [prototype(cell) for cell in CELLS]
    return Study(fabrics=fabrics, workloads=[Permutation(duration=duration)], seeds=[1], title="Shoal, Fig. 9")


def measure(runs):
    """A row per slot: Gb/s into a destination, and the share of all slots that bring it a cell of its own."""
    table = []
    for row in runs.rows:
        fabric = prototype(row["fabric.cell"])
        slots = row["line.per_destination_gbps.mean"] * fabric.slot_time / (fabric.cell * 8 * 1000)
        table.append({
            "cell": fabric.cell,
            "slot_ns": fabric.slot_time / 1000,
            "epoch_us": row["timing.epoch_us"],
            "travel_epochs": fabric.way / fabric.epoch,
            "gbps": row["line.per_destination_gbps.mean"],
            "share": slots,
        })  # fmt: skip
    return table


def draw(table):
    """Our curve, and the half that the text says it converges to."""
    from weft.report.plots import plot

    half, ends = printed("fig09")["share_of_ideal"], (table[0]["slot_ns"], table[-1]["slot_ns"])
    rows = [{**row, "of": "ours"} for row in table]
    rows += [{"slot_ns": x, "share": half, "of": "the paper's limit, about 50 %"} for x in ends]
    title = "Fig. 9: prototype, full permutation of 8 nodes"
    rows = [{**row, "share of slots": row["share"]} for row in rows]
    return plot(rows, x="slot_ns", y="share of slots", by="of", xscale="log", yscale="linear", title=title)


def _converges(table):
    most = table[-1]["share"]
    limit = float(bounds.permutation_rate(8))
    said = f"{most:.3f} of the slots at {table[-1]['slot_ns']:,.0f} ns; N/(2(N-1)) = {limit:.3f} with every slot in use"
    return near(most, printed("fig09")["share_of_ideal"], 0.15), said


def _lower(table):
    first, last = table[0], table[-1]
    rising = all(a["share"] <= b["share"] * 1.001 for a, b in pairwise(table))
    said = f"{first['share']:.3f} at {first['slot_ns']:.1f} ns, {first['travel_epochs']:.1f} epochs of travel"
    said += ", then rising all the way" if rising else ", then rising, but not at every step"
    return first["share"] < 0.8 * last["share"], said


CLAIMS = [
    Claim("shoal.c23", "throughput converges towards about 50 % for larger slots", _converges, scaled=False),
    Claim("shoal.c23", "it is significantly lower for smaller slots", _lower, scaled=False),
]
