"""Where is a rack's tail? p99 of short flows over nodes, channels and load, each the mean over the seeds.

The rack of §7.1 with other numbers of nodes and channels; slots are as long as their cells need. Flows are as many for
each node, so runs of one load last equally long: where more is offered than a rack carries, the tail grows with time.
Runs stop as those of `weft/seeds` do.
"""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.shoal import rack
from weft.papers.weft import seeds
from weft.study import Study

COLUMNS, FEWEST_SEEDS = seeds.COLUMNS, seeds.FEWEST_SEEDS
SERIES = (Series("load", "p99_us", "rack"), Series("load", "p99.9_us", "rack"))


def scaled(scale):
    """(numbers of nodes, of channels, loads, flows of a node, seeds)."""
    if at_paper_scale(scale):
        return (64, 128, 256, 512), (1, 2, 4), (0.2, 0.6, 1.0), 100, 100
    return (16, 32), (2, 4), (0.2, 0.6, 1.0), 30, 5


def study(scale="small"):
    """Every rack under every load, with every seed."""
    nodes, channels, loads, flows, many = scaled(scale)
    points = [(n, c, load) for n in nodes for c in channels for load in loads]
    return Study(
        fabrics=[rack(n, channels=c, slot=None) for n, c, _ in points],
        workloads=[seeds.flows_of(load, n * flows) for n, _, load in points], paired=True, seeds=range(1, many + 1),
        title="Shoal, nodes and channels",
    )  # fmt: skip


measure = seeds.measure


def draw(table):
    """A field for each rack and load."""
    from weft.report.plots import panels

    rows = [{**row, "rack": f"{row['nodes']} x {row['channels']}"} for row in table]
    what = f"p99 (µs) of {table[0]['flows'] // table[0]['nodes']:,} flows a node, nodes x channels"
    title = f"Short flows: mean of {table[0]['seeds']} seeds"
    return panels(rows, x="load", ys=[], title=title, grid=(rows, "load", "rack", "p99_us", what))


def _beyond(low, high) -> bool:
    """Whether the interval of p99 of the second row lies above that of the first."""
    return high["p99_low"] > low["p99_high"]


def _with_nodes(table):
    steps = [
        (one, other)
        for one in table
        for other in table
        if other["nodes"] == 2 * one["nodes"] and all(one[key] == other[key] for key in ("channels", "load"))
    ]
    apart = sum(_beyond(one, other) for one, other in steps)
    return apart == len(steps), f"p99 rises beyond its interval in {apart} of {len(steps)} doublings of the nodes"


def _with_load(table):
    ends = {}
    for row in table:
        ends.setdefault((row["nodes"], row["channels"]), []).append(row)
    racks = [sorted(rows, key=lambda row: row["load"]) for rows in ends.values()]
    apart = sum(_beyond(rows[0], rows[-1]) for rows in racks)
    return apart == len(racks), f"p99 is higher at the highest load than at the lowest in {apart} of {len(racks)} racks"


CLAIMS = [
    Claim(
        "weft.map.0", "runs go on until short flows are done: none takes half as long as that", seeds.CLAIMS[0].check
    ),
    Claim("weft.map.1", "p99 rises with every doubling of the nodes: so does the epoch", _with_nodes),
    Claim("weft.map.2", "p99 is higher under the highest load than under the lowest in every rack", _with_load),
]
