"""How deep virtual output queues must be for no cell to be lost, at every load (IV-A4: 40 for iSLIP, 16 for GCQ)."""

from weft.fabrics.crossbar import Crossbar
from weft.papers.fpga import Claim, Run, check_scale
from weft.workload.traffic import Bernoulli

COLUMNS = ("name", "ports", "load", "slots", "depth")
LOADS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
DEEP = 1_000_000


def study(scale="small"):
    """iSLIP with queues without bound: its fullest queue is the depth without loss. GCQ is searched by `depths`."""
    paper = check_scale(scale)
    slots = 1_000_000 if paper else 100_000
    runs = []
    for n in (8, 16, 32, 64):
        for name, iterations in (("islip, 1", 1), ("islip, log2 N", n.bit_length() - 1)):
            span = slots if iterations == 1 else slots // 4
            for load in LOADS:
                labels = {"name": name, "ports": n, "load": load, "slots": span}
                fabric = Crossbar(ports=n, iterations=iterations, depth=DEEP)
                runs.append(Run(labels, fabric, Bernoulli(load=load, slots=span)))
    return runs


def depths(scale="small", seed=1, report=None) -> list[dict]:
    """The table: for GCQ the least depth with which a run loses no cell, found by halving."""
    from weft.papers.fpga import measure

    rows = measure(study(scale), seed, report)
    for row in rows:
        row["depth"] = row["queue_max"]
    slots = 200_000 if scale == "paper" else 20_000
    for n in (8, 16, 32, 64):
        for load in LOADS:
            low, high = 1, 64
            while low < high:
                middle = (low + high) // 2
                fabric, traffic = Crossbar(ports=n, buffers="gcq", depth=middle), Bernoulli(load=load, slots=slots)
                lost = measure([Run({}, fabric, traffic)], seed)[0]["lost"]
                low, high = (middle + 1, high) if lost else (low, middle)
            rows.append({"name": "gcq", "ports": n, "load": load, "slots": slots, "depth": low})
            if report is not None:
                report(rows[-1])
    return rows


def draw(table):
    """Depth without loss against load, 32 ports."""
    from weft.report.plots import plot

    rows = [row for row in table if row["ports"] == 32]
    return plot(rows, x="load", y="depth", by="name", yscale="log", title="Depth without loss, 32 ports")


def _islip(name):
    def check(table):
        enough = {}
        for n in (8, 16, 32, 64):
            fits = [row["load"] for row in table if row["name"] == name and row["ports"] == n and row["depth"] <= 40]
            enough[n] = max(fits, default=0)
        return all(load >= 0.9 for load in enough.values()), "40 cells last up to load " + ", ".join(
            f"{load} ({n} ports)" for n, load in enough.items()
        )

    return check


def _gcq(table):
    worst = max((row for row in table if row["name"] == "gcq"), key=lambda row: row["depth"])
    return worst["depth"] <= 16, f"{worst['depth']} at {worst['ports']} ports, load {worst['load']}"


CLAIMS = [
    Claim("fpga.c14", "VOQ depth 40 is needed for no loss with iSLIP: one iteration, to load 0.9", _islip("islip, 1")),
    Claim("fpga.c14", "the same with log2 N iterations", _islip("islip, log2 N")),
    Claim("fpga.c14", "a VOQ depth of 16 is sufficient with GCQ, at every load here", _gcq),
]
