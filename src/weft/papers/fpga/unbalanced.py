"""What is carried when a fraction w of every input's cells is for one output, by iSLIP and others (II-A(a))."""

from weft.fabrics.crossbar import Crossbar
from weft.papers.fpga import Claim, Run, check_scale
from weft.workload.traffic import Unbalanced

COLUMNS = ("name", "w", "throughput")
DEEP = 1_000_000


def study(scale="small"):
    """Saturated switches of 16 (paper: 32) ports, w from 0 to 1."""
    paper = check_scale(scale)
    n, slots = (32, 300_000) if paper else (16, 40_000)
    kinds = [
        ("islip, 1", {}), (f"islip, {n.bit_length() - 1}", {"iterations": n.bit_length() - 1}),
        ("lqf, 4", {"scheduler": "lqf", "iterations": 4}), ("mwm", {"scheduler": "mwm"}), ("cicq", {"buffers": "cicq"}),
        ("gcq", {"buffers": "gcq"}),
    ]  # fmt: skip
    return [
        Run({"name": name, "w": w, "ports": n}, Crossbar(ports=n, depth=DEEP, **options),
            Unbalanced(load=1, w=w, slots=slots, warmup=slots // 4))
        for name, options in kinds
        for w in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    ]  # fmt: skip


def draw(table):
    """Throughput against w."""
    from weft.report.plots import plot

    title = f"Saturated, {table[0]['ports']} ports, unbalanced traffic"
    return plot(table, x="w", y="throughput", by="name", yscale="linear", title=title)


def _worst(table):
    several = next(row["name"] for row in table if row["name"].startswith("islip") and row["name"] != "islip, 1")
    got = {
        name: min((row["throughput"], row["w"]) for row in table if row["name"] == name)
        for name in ("islip, 1", several)
    }
    shown = "; ".join(f"{name}: {least:.3f} at w = {w}" for name, (least, w) in got.items())
    return got[several][0] > 0.75, shown


CLAIMS = [
    Claim("II-A(a)", "iSLIP achieves a good performance under non-uniform traffic (read: 75 % or more)", _worst),
]
