"""Throughput, mean and tail delay against load, for every scheduler and every kind of buffer (III-3, II-A)."""

from weft.fabrics.crossbar import Crossbar
from weft.papers.fpga import Claim, Run, check_scale, pick
from weft.workload.traffic import Bernoulli

COLUMNS = ("name", "load", "throughput", "delay_mean", "delay_p99", "queue_max")
DEEP = 1_000_000  # no loss: what is not carried waits
APART = 0.02  # of a delay: two that chance alone parts, one seed each, same arrivals (verification/crossbar_seeds.py)
MEDIUM = 0.7  # the highest of the loads that are called low and medium: [25]'s abstract has no number
QUICKER = (
    f"[25]: at low and medium loads, here to {MEDIUM}, iSLIP has noticeably less delay than the load-balanced switch"
)
SIMPLE = ("islip", "rrm", "pim", "drrm", "lqf", "ocf")  # the input-buffered schedulers that are cheap in hardware


def study(scale="small"):
    """Schedulers at virtual output queues with one and with log2 N iterations; then the other buffers."""
    paper = check_scale(scale)
    n, slots = (32, 400_000) if paper else (16, 40_000)
    several = n.bit_length() - 1
    loads = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    kinds = [(f"{s}, 1", {"scheduler": s}) for s in SIMPLE]
    kinds += [(f"{s}, {several}", {"scheduler": s, "iterations": several}) for s in SIMPLE]
    kinds += [(s, {"scheduler": s}) for s in ("wavefront", "mwm", "msm")]
    kinds += [(b, {"buffers": b}) for b in ("fifo", "shared", "cioq", "cicq", "hierarchical", "oq")]
    kinds += [(b, {"buffers": b}) for b in ("gcq", "load-balanced")]
    runs = []
    for name, options in kinds:
        for load in loads:
            fabric = Crossbar(ports=n, depth=DEEP, **options)
            labels = {"name": name, "load": load, "ports": n, "several": several}
            runs.append(Run(labels, fabric, Bernoulli(load=load, slots=slots, warmup=slots // 4)))
    return runs


def draw(table, y="delay_mean", names=None):
    """Mean delay against load, on a logarithmic axis, for eight of the lines or for those in `names`."""
    from weft.report.plots import plot

    n, several = table[0]["ports"], table[0]["several"]
    some = ("fifo", "islip, 1", f"islip, {several}", f"pim, {several}", f"lqf, {several}", "gcq", "oq", "load-balanced")
    names = names or some
    rows = [row for row in table if row["name"] in names]
    return plot(rows, x="load", y=y, by="name", title=f"{n} ports, uniform Bernoulli traffic", yscale="log")


def _carries_all(table):
    several = table[0]["several"]
    got = {row["load"]: row["throughput"] for row in table if row["name"] == f"islip, {several}"}
    return all(abs(load - carried) < 0.006 for load, carried in got.items()), f"carried at 0.99: {got[0.99]:.4f}"


def _best(iterations):
    def check(table):
        k = 1 if iterations == 1 else table[0]["several"]
        at = {s: pick(table, "delay_mean", name=f"{s}, {k}", load=0.9)[0] for s in SIMPLE}
        best = min(at, key=at.get)
        shown = ", ".join(f"{s} {slots:.3g}" for s, slots in sorted(at.items(), key=lambda pair: pair[1]))
        level = best != "islip" and at["islip"] <= (1 + APART) * at[best]
        return "not resolved" if level else best == "islip", f"mean delay in slots at load 0.9, {k} iterations: {shown}"

    return check


def _ahead_of_the_simplest(iterations):
    """The load-balanced switch is the simplest member of [25]'s family, and the only one whose rules are known."""

    def check(table):
        k = 1 if iterations == 1 else table[0]["several"]
        ours, theirs = (
            {row["load"]: row["delay_mean"] for row in table if row["name"] == name}
            for name in (f"islip, {k}", "load-balanced")
        )
        less = [load for load in ours if (1 + APART) * ours[load] < theirs[load]]
        shown = ", ".join(f"{ours[load]:.3g} and {theirs[load]:.3g} at {load:g}" for load in ours)
        return {load for load in ours if load <= MEDIUM} <= {*less}, f"mean delay in slots, iSLIP's and its: {shown}"

    return check


CLAIMS = [
    Claim("fpga.c15", "iSLIP guarantees 100 % throughput for uniform Bernoulli traffic", _carries_all),
    Claim("fpga.c15", "iSLIP has the lowest latency of the schedulers simulated: with one iteration", _best(1)),
    Claim("fpga.c15", "iSLIP has the lowest latency of the schedulers simulated: with log2 N iterations", _best(0)),
    Claim("fpga.c15", f"{QUICKER}: with one iteration", _ahead_of_the_simplest(1)),
    Claim("fpga.c15", f"{QUICKER}: with log2 N iterations", _ahead_of_the_simplest(0)),
]
