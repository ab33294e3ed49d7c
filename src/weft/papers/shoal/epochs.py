"""Shoal, §7.3: the tail of short flows when the epoch is twice as long, by fewer channels or by more nodes."""

from weft.papers import Claim, Series, at_paper_scale
from weft.papers.marks import marks_only
from weft.papers.shoal import printed, rack
from weft.study import Study
from weft.units import Gbps, ms, us
from weft.workload import Poisson

COLUMNS = ("rack", "epoch_us", "load", "realised", "flows", "mean_us", "p99_us", "tail_us", "ratio_p99", "ratio")
SERIES = (Series("load", "ratio", "rack"), Series("load", "tail_us", "rack"))
USUAL, TWO, TWO_SHORT, TWICE = "4 x 25G", "2 x 50G, same slot", "2 x 50G, same cell", "4 x 25G, twice the nodes"
DRAIN = 1 * ms  # after the last arrival: what is asked is about short flows, which have long ended by then
LOADS = {"low": 0.2, "high": 1.0}  # of 50 Gb/s; which loads are low and high is not in the text


def study(scale="small"):
    """As many flows at either load, and twice as many among twice the nodes."""
    nodes, window = (512, 31_250 * us) if at_paper_scale(scale) else (64, 1_500 * us)
    fabrics = [
        rack(nodes),
        rack(nodes, channels=2, cell=128),  # only with cells of 128 B does the slot stay, and the epoch double
        rack(nodes, channels=2, slot=12_990),  # 64 B at 50 Gb/s and 2.75 ns of guard
        rack(2 * nodes),
    ]
    workloads = [
        Poisson(load=load, load_rate=50 * Gbps, sizes="pareto", duration=round(window / load), drain=DRAIN)
        for load in LOADS.values()
    ]
    return Study(fabrics=fabrics, workloads=workloads, seeds=[1], title="Shoal, §7.3, epochs")


def measure(runs):
    """A row per run: completion of short flows in us, and its ratio to the usual rack's at the same load."""
    fewest = min(row["fabric.nodes"] for row in runs.rows)
    names = {(4, 64, fewest): USUAL, (2, 128, fewest): TWO, (2, 64, fewest): TWO_SHORT, (4, 64, 2 * fewest): TWICE}
    table = [
        {
            "rack": names[row["fabric.channels"], row["fabric.cell"], row["fabric.nodes"]],
            "nodes": row["fabric.nodes"],
            "epoch_us": row["timing.epoch_us"],
            "load": row["workload.load"],
            "realised": row["offered.realised_load"],
            "flows": row["flows.short"],
            "mean_us": row["fct_us.short.mean"],
            "p99_us": row["fct_us.short.p99"],
            "tail_us": row["fct_us.short.p99.9"],
        }
        for row in runs.rows
    ]
    usual = {row["load"]: row for row in table if row["rack"] == USUAL}
    for row in table:
        row["ratio"] = row["tail_us"] / usual[row["load"]]["tail_us"]
        row["ratio_p99"] = row["p99_us"] / usual[row["load"]]["p99_us"]
    return table


def draw(table):
    """Ratios of the tails, and the four that are printed."""
    from weft.report.plots import plot

    rows = [row for row in table if row["rack"] != USUAL]
    names = {"two_channels": "2 x 50G: the paper's text", "twice_the_nodes": "twice the nodes: the paper's text"}
    for key, name in names.items():
        rows += [{"load": LOADS[at], "ratio": printed("epochs")[f"{key}_{at}"], "rack": name} for at in LOADS]
    title = f"§7.3: tail over that of 4 x 25G, {table[0]['nodes']} nodes"
    rows = [{**row, "tail, ratio": row["ratio"]} for row in rows]
    return marks_only(plot(rows, x="load", y="tail, ratio", by="rack", yscale="linear", title=title), *names.values())


def _ratio(name, key, at):
    """A tenth either way: these are ratios of two values beyond which a thousandth of the flows lie."""

    def check(table):
        row = next(row for row in table if row["rack"] == name and row["load"] == LOADS[at])
        theirs = printed("epochs")[f"{key}_{at}"]
        said = f"{row['ratio']:.2f}x at p99.9, {row['ratio_p99']:.2f}x at p99, load {LOADS[at]} of 50 Gb/s"
        return abs(row["ratio"] / theirs - 1) <= 0.1, f"{said}, epoch {row['epoch_us']:.2f} us"

    return check


def _claim(how, name, key, at):
    times = printed("epochs")[f"{key}_{at}"]
    return Claim("shoal.c36", f"twice the epoch by {how}: tail {times}x at {at} load", _ratio(name, key, at))


CLAIMS = [
    *(_claim("2 x 50G channels", TWO, "two_channels", at) for at in LOADS),
    *(_claim("2 x 50G channels (read as cells of 64 B)", TWO_SHORT, "two_channels", at) for at in LOADS),
    *(_claim("twice the nodes", TWICE, "twice_the_nodes", at) for at in LOADS),
]
