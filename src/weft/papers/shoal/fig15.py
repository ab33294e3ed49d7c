"""Shoal, Fig. 15: short flows' completion and long flows' goodput against load, beside DCTCP, DCQCN, NDP and a torus.

The packet networks have half of Shoal's rate, 50 Gb/s a node, as in §7.3, on a leaf-spine with full bisection; all
carry the same flows, so that a load is one of 50 Gb/s. The length of links is not stated: theirs take 100 ns, and
Shoal's none, as its cells arrive at the end of their slot. A run goes on until all of its flows are done; after the
last arrival the load only falls. Other readings of §7.3 are in `shoal/baselines`. The torus, which §7.3 compares in
words, has 100 Gb/s a node in all and R2C2's parameters as we assume them: the paper gives none. What flows may send
before they have a rate decides most, so it is read in two ways: all that the node can, or as much as one of its ports
can.
"""

from dataclasses import replace
from functools import partial

from weft.fabrics.packet import Packet
from weft.fabrics.torus import Torus
from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import marks_only
from weft.papers.shoal import rack
from weft.study import Study
from weft.units import Gbps, ns
from weft.workload import Poisson

COLUMNS = (
    "system", "offered_gbps", "load_50", "load_100", "realised_gbps", "mean_us", "p99_us", "p99.9_us", "goodput_gbps",
    "long_flows",
)  # fmt: skip
LINES = ("mean_us", "p99_us", "p99.9_us", "goodput_gbps")
SERIES = tuple(Series(x, y, "system") for y in LINES for x in ("load_50", "load_100"))
OFFERED = (10, 20, 30, 40, 50, 60, 80, 100)  # Gb/s that a node sends, on average
BASELINES = {  # a "congestion window size of 35 packets" is a cap for both; of NDP §7.3 says "initial window size"
    "DCTCP": "dctcp@shoal-nsdi19:max_window=35", "DCQCN": "dcqcn@shoal-nsdi19", "NDP": "ndp@shoal-nsdi19",
}  # fmt: skip

PRINTED = {"DCTCP": (3, 2), "DCQCN": (3, 2), "NDP": (1.5, 2)}  # the tail over Shoal's, at low and at high load
GOODPUT = 1.7  # Shoal's over that of each
FACTORS = "{}: the paper's factor, our Shoal"
TORUS, FROM_PORT = "R2C2", "R2C2, port rate"  # tori: new flows at the rate of the node, or of a port


def size(scale) -> tuple[int, int]:
    """Nodes and flows."""
    return (512, 1_000_000) if at_paper_scale(scale) else (64, 8_000)


def flows_of(offered, flows) -> list[Poisson]:
    """So many flows at each of the rates, in Gb/s a node."""
    return [Poisson(load=rate / 100, load_rate=100 * Gbps, sizes="pareto", flows=flows) for rate in offered]


def network(nodes, transport) -> Packet:
    """A packet network of §7.3 for so many nodes: half of Shoal's rate, full bisection."""
    common = {"hosts": nodes, "topology": "leafspine", "link": 50 * Gbps, "delay": 100 * ns, "mtu": 1500}
    return Packet(**common, radix=64 if nodes == 512 else 16, transport=transport)


def racks(scale="small"):
    """Shoal's side: Poisson arrivals of Pareto flows, 10 to 100 Gb/s a node."""
    nodes, flows = size(scale)
    return Study(fabrics=[rack(nodes)], workloads=flows_of(OFFERED, flows), seeds=[1], title="Shoal, Figs. 15 and 16")


def study(scale="small"):
    """The same, and the baselines under what 50 Gb/s a node can carry."""
    nodes, flows = size(scale)
    networks = [network(nodes, name) for name in BASELINES.values()]
    carried = [rate for rate in OFFERED if rate <= 50]
    pairs = [(rack(nodes), workload) for workload in flows_of(OFFERED, flows)]
    torus = Torus(dimensions=(8, 8, 8) if nodes == 512 else (4, 4, 4), link=100 * Gbps, delay=100 * ns)
    networks += [torus, replace(torus, first=torus.rate)]
    pairs += [(one, workload) for one in networks for workload in flows_of(carried, flows)]
    fabrics, workloads = zip(*pairs, strict=True)
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], paired=True, title="Shoal, Fig. 15")


def measure(runs):
    """A row per run: what was asked for under both readings of the load, what was drawn, and what came out."""
    systems = {transport: name for name, transport in BASELINES.items()} | {"r2c2": TORUS}

    def system(row):
        return FROM_PORT if row.get("fabric.first") else systems.get(row.get("fabric.transport"), "Shoal")

    return [
        {
            "system": system(row),
            "nodes": row.get("fabric.nodes") or row["fabric.hosts"],
            "offered_gbps": 100 * row["workload.load"],
            "load_50": 2 * row["workload.load"],
            "load_100": row["workload.load"],
            "realised_gbps": row["offered.rate_gbps"],
            "mean_us": row["fct_us.short.mean"],
            "p99_us": row["fct_us.short.p99"],
            "p99.9_us": row["fct_us.short.p99.9"],
            "goodput_gbps": row["goodput_gbps.long.mean"],
            "long_flows": row["flows.long"],
        }
        for row in runs.rows
    ]


def draw(table):
    """Tail of the short flows on the left, goodput of the long ones on the right, against load of 50 Gb/s."""
    from weft.report.plots import fct_and_goodput

    rows = [
        {
            "load of 50 Gb/s": row["load_50"],
            "fct_us.short.p99.9": row["p99.9_us"],
            "goodput_gbps.long.mean": row["goodput_gbps"],
            "system": row["system"],
        }
        for row in table
        if row["load_50"] <= 1
    ]
    own = {row["load of 50 Gb/s"]: row for row in rows if row["system"] == "Shoal"}
    for name, factors in PRINTED.items():  # the text states factors: they are drawn over our Shoal
        for load, factor in zip((0.2, 1.0), factors, strict=True):
            if shoal := own.get(load):
                tail, goodput = shoal["fct_us.short.p99.9"] * factor, shoal["goodput_gbps.long.mean"] / GOODPUT
                rows.append({"load of 50 Gb/s": load, "fct_us.short.p99.9": tail, "goodput_gbps.long.mean": goodput,
                             "system": FACTORS.format(name)})  # fmt: skip
    title = f"Fig. 15: {table[0]['nodes']} nodes"
    drawn = fct_and_goodput(rows, x="load of 50 Gb/s", by="system", tail="p99.9", title=title)
    return marks_only(drawn, *map(FACTORS.format, PRINTED))


def _ratios(table, key, load, upside_down=False, of=tuple(BASELINES)) -> dict[str, float]:
    """Each baseline's value over Shoal's, or the other way round, under the same flows."""
    at = {row["system"]: row[key] for row in table if abs(row["load_50"] - load) < 1e-9}
    ratios = {name: at[name] / at["Shoal"] for name in of if at.get(name) and at.get("Shoal")}
    return {name: 1 / ratio for name, ratio in ratios.items()} if upside_down else ratios


def _listed(ratios) -> str:
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())


def _mean(table):
    """Comparable is within a factor of two, slightly above is up to 1.5."""
    low, middle = _ratios(table, "mean_us", 0.2, True), _ratios(table, "mean_us", 0.6, True)
    holds = all(0.5 <= r[name] <= 2 for r in (low, middle) for name in ("DCTCP", "DCQCN"))
    holds = holds and all(1 < r["NDP"] <= 1.5 for r in (low, middle))
    return "consistent" if holds else False, f"Shoal over {_listed(low)} at load 0.2; {_listed(middle)} at 0.6"


def _tail(table):
    """Within a third of the printed factors."""
    low, high = _ratios(table, "p99.9_us", 0.2), _ratios(table, "p99.9_us", 1)
    holds = all(abs(r[name] / PRINTED[name][k] - 1) <= 1 / 3 for k, r in enumerate((low, high)) for name in BASELINES)
    return "consistent" if holds else False, f"over Shoal's: {_listed(low)} at load 0.2; {_listed(high)} at 1"


def _goodput(table):
    """Within a third of the printed factor."""
    low, high = _ratios(table, "goodput_gbps", 0.2, True), _ratios(table, "goodput_gbps", 1, True)
    holds = all(abs(r[name] / GOODPUT - 1) <= 1 / 3 for r in (low, high) for name in BASELINES)
    return "consistent" if holds else False, f"Shoal over {_listed(low)} at load 0.2; {_listed(high)} at 1"


def _torus(name, table):
    """Better at every load, and at best by the printed factors within a third."""
    loads = sorted({row["load_50"] for row in table if row["system"] == name})
    tails, goodputs = (
        [ratio for load in loads for ratio in _ratios(table, key, load, upside_down, (name,)).values()]
        for key, upside_down in (("p99.9_us", False), ("goodput_gbps", True))
    )
    if not tails or not goodputs:
        return "not run", "no torus"
    near = abs(max(tails) / 14.9 - 1) <= 1 / 3 and abs(max(goodputs) / 4.8 - 1) <= 1 / 3
    said = (
        f"the torus's tail is {min(tails):.1f} to {max(tails):.1f} times Shoal's, Shoal's goodput {min(goodputs):.1f} "
        f"to {max(goodputs):.1f} times the torus's, at loads {loads[0]:g} to {loads[-1]:g}"
    )
    return "consistent" if near and min(*tails, *goodputs) > 1 else False, said


CLAIMS = [
    Claim(
        "shoal.c30", "at all loads Shoal beats a 3D torus with R2C2, by up to 14.9x in the tail of short flows and "
        "4.8x in goodput of long flows", partial(_torus, TORUS),
    ),
    Claim(
        "shoal.c30", "the same, if flows begin at the rate of a port", partial(_torus, FROM_PORT),
    ),
    Claim(
        "shoal.c31", "at low to moderate load the mean completion time of short flows is comparable to DCTCP's and "
        "DCQCN's and slightly above NDP's", _mean,
    ),
    Claim(
        "shoal.c32", "the tail of short flows is 3x (low load) and 2x (high load) shorter than DCTCP's and DCQCN's, "
        "1.5x and 2x shorter than NDP's", _tail,
    ),
    Claim("shoal.c33", "goodput of long flows is 1.7x that of all three baselines", _goodput),
]  # fmt: skip
