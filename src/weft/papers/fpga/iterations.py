"""Iterations until iSLIP finds no further pair, against log2 N (V-B)."""

from math import log2

from weft.fabrics.crossbar import Crossbar
from weft.papers.fpga import Claim, Run, check_scale
from weft.workload.traffic import Bernoulli

COLUMNS = ("ports", "load", "iterations_mean", "iterations_max", "log2")


def study(scale="small"):
    """As many iterations as there are ports, so that every matching is maximal; the kernel counts those that found."""
    paper = check_scale(scale)
    return [
        Run({"ports": n, "load": load, "log2": log2(n)}, Crossbar(ports=n, iterations=n, depth=1_000_000),
            Bernoulli(load=load, slots=(200_000 if paper else 20_000) // max(n // 16, 1)))
        for n in (4, 8, 16, 32, 64, 128)
        for load in (0.5, 0.9, 1.0)
    ]  # fmt: skip


def draw(table):
    """Mean iterations against ports."""
    from weft.report.plots import plot

    rows = [{"ports": r["ports"], "iterations": r["iterations_mean"], "by": f"load {r['load']}"} for r in table]
    rows += [{"ports": r["ports"], "iterations": r["log2"], "by": "log2 N"} for r in table if r["load"] == 0.9]
    title = "iSLIP until it converges"
    return plot(rows, x="ports", y="iterations", by="by", xscale="log", yscale="linear", title=title)


def _mean(table):
    worst = max(table, key=lambda row: row["iterations_mean"] / row["log2"])
    most = f"{worst['iterations_mean']:.2f} at {worst['ports']} ports, load {worst['load']}"
    return all(row["iterations_mean"] <= row["log2"] for row in table), f"largest mean, against log2 N: {most}"


def _max(table):
    over = [row for row in table if row["iterations_max"] > row["log2"]]
    worst = max(table, key=lambda row: row["iterations_max"] - row["log2"])
    most = f"{worst['iterations_max']} at {worst['ports']} ports, load {worst['load']}"
    return not over, f"{len(over)} of {len(table)} rows have slots that need more; furthest beyond: {most}"


CLAIMS = [
    Claim("V-B", "the iSLIP scheduler needs log2 N iterations to converge: on average no more", _mean),
    Claim("V-B", "the iSLIP scheduler needs log2 N iterations to converge: in every slot no more", _max),
]
