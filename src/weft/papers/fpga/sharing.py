"""Shared against private memory under bursts: what is lost at equal memory, and what memory loses equally (III-2)."""

from weft.fabrics.crossbar import Crossbar
from weft.papers.fpga import Claim, Run, check_scale
from weft.workload.traffic import OnOff

COLUMNS = ("name", "depth", "load", "lost", "offered", "loss", "memory_max")
DEPTHS = (2, 4, 8, 16, 32, 64, 128)


def study(scale="small"):
    """16 ports, iSLIP with log2 N iterations, bursts of 16 cells on average."""
    slots = 1_000_000 if check_scale(scale) else 60_000
    return [
        Run({"name": name, "depth": depth, "load": load}, Crossbar(ports=16, buffers=kind, depth=depth, iterations=4),
            OnOff(load=load, burst=16, slots=slots))
        for load in (0.6, 0.8)
        for name, kind in (("private", "voq"), ("shared", "shared"))
        for depth in DEPTHS
    ]  # fmt: skip


def draw(table):
    """Share of cells lost against depth per queue."""
    from weft.report.plots import plot

    rows = [{**r, "loss": r["lost"] / r["offered"], "by": f"{r['name']}, load {r['load']}"} for r in table if r["lost"]]
    title = "Loss under bursts of 16, 16 ports"
    return plot(rows, x="depth", y="loss", by="by", xscale="log", yscale="log", title=title)


def _equal(load):
    def check(table):
        """Memory per queue that keeps the loss under one in a thousand."""
        least = {}
        for name in ("private", "shared"):
            fits = [
                row["depth"] for row in table
                if row["name"] == name and row["load"] == load and row["lost"] <= row["offered"] / 1000
            ]  # fmt: skip
            least[name] = min(fits, default=None)
        shown = f"cells per queue for a loss of at most 0.1 %: private {least['private'] or 'more than 128'}, "
        shared = least["shared"] or 10**9
        return shared < (least["private"] or 10**9), shown + f"shared {least['shared']}"

    return check


CLAIMS = [
    Claim("III-2", "sharing tolerates bursts: less memory for the same loss, load 0.6", _equal(0.6)),
    Claim("III-2", "the same at load 0.8", _equal(0.8)),
]
