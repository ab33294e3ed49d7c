"""Shoal, Fig. 12: average destination throughput against the number of communicating pairs."""

from itertools import pairwise

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import TEXT, marks_only
from weft.papers.shoal import GBPS, near, printed, rack
from weft.study import Study
from weft.units import us
from weft.workload import Permutation

COLUMNS = ("drawn", "pairs", "gbps", "share", "max_queue")
SERIES = (Series("pairs", "gbps", "drawn"),)
DRAWN = {True: "the same nodes send and receive", False: "senders and receivers drawn apart"}


def study(scale="small"):
    """Endless flows between 1 to N pairs; §7.2: each communicating node sends and receives one flow.

    That is the first way of drawing them. The second, nodes that only send and others that only receive, shows what the
    middle of the curve owes to it.
    """
    nodes, duration = (512, 3000 * us) if at_paper_scale(scale) else (64, 300 * us)
    pairs = [2**k for k in range(nodes.bit_length())]
    pairs += [nodes * k // 8 for k in (3, 5, 6, 7)]
    workloads = [Permutation(pairs=k, closed=way, duration=duration) for way in DRAWN for k in sorted(pairs)]
    return Study(fabrics=[rack(nodes)], workloads=workloads, seeds=[1], title="Shoal, Fig. 12")


def measure(runs):
    """A row per run: Gb/s of cells into a destination in the second half of the run, and their share of the link."""
    return [
        {
            "drawn": DRAWN[row["workload.closed"]],
            "pairs": row["workload.pairs"],
            "nodes": row["fabric.nodes"],
            "gbps": row[GBPS],
            "share": row["line.fraction_of_slots"],
            "max_queue": row["queue_cells.max"],
        }
        for row in runs.rows
    ]


def draw(table):
    """Our two curves, and the two ends of the printed one that the text states."""
    from weft.report.plots import plot

    peak, nodes = printed("fig12")["peak_gbps"], table[0]["nodes"]
    ends = ((1, peak), (nodes, peak * printed("fig12")["all_pairs_over_one"]))
    rows = [*table, *({"drawn": TEXT, "pairs": x, "gbps": y} for x, y in ends)]
    rows = [{**row, "throughput_gbps": row["gbps"]} for row in rows]
    title = f"Fig. 12: permutation traffic, {nodes} nodes"
    return marks_only(plot(rows, x="pairs", y="throughput_gbps", by="drawn", title=title), TEXT)


def _curve(table, drawn):
    return [row["gbps"] for row in sorted(table, key=lambda row: row["pairs"]) if row["drawn"] == drawn]


def _falls(table):
    """Down all the way, but for a thousandth of the first value: what a finite run cannot tell."""
    worst = max(
        (later - now) / curve[0]
        for curve in (_curve(table, drawn) for drawn in DRAWN.values())
        for now, later in pairwise(curve)
    )
    return worst <= 0.001, f"the largest step up is {max(worst, 0):.2%} of the peak"


def _halves(table):
    ends = [curve[-1] / curve[0] for curve in (_curve(table, drawn) for drawn in DRAWN.values())]
    n = table[0]["nodes"]
    good = all(near(end, printed("fig12")["all_pairs_over_one"], 0.02) for end in ends)
    return good, f"{' and '.join(f'{end:.4f}' for end in ends)} of the peak; N/(2(N-1)) = {n / (2 * (n - 1)):.4f}"


def _peak(table):
    peak, n = _curve(table, DRAWN[True])[0], table[0]["nodes"]
    places = -(-(n - 1) // 4) * 4
    why = f"a cell takes {20.48 / 23.25:.1%} of a slot, and {n - 1} peers have {places} places in an epoch"
    return near(peak, printed("fig12")["peak_gbps"], 0.005), f"{peak:.1f} Gb/s: {why}"


def _at_worst_half(table):
    """The sentence is about any pattern, and these are permutations: at most consistent."""
    least = min(row["share"] for row in table)
    said = f"the least share of the link, of all numbers of pairs, is {least:.4f}; no other pattern is run here"
    return "consistent" if least >= 0.5 else False, said


CLAIMS = [
    Claim("shoal.c25", "throughput falls monotonically with the number of pairs", _falls),
    Claim("shoal.c25", "it halves when all pairs communicate", _halves),
    Claim("shoal.c26", "a lone flow reaches 90 Gb/s of 100, guard overhead being around 10 %", _peak, scaled=False),
    Claim("shoal.c12", "throughput is at worst half that of an ideal packet switch", _at_worst_half),
]
