"""docs/papers/fpga.md says what the runs say: rows that take seconds are run again, of every table there is."""

import re
from pathlib import Path

import pytest

from weft.papers.fpga import blocking, iterations, latency, loads, measure, sharing, unbalanced

PAGE = (Path(__file__).parents[2] / "docs/papers/fpga.md").read_text(encoding="utf-8")


def table(title):
    """The rows of the first table under a heading, as lists of cells; the first one names the columns."""
    (part,) = re.findall(rf"^## {re.escape(title)}.*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in part.splitlines() if line[:1] == "|"]
    return [rows[0], *rows[2:]]


def run(figure, wanted):
    return measure([run for run in figure.study("small") if wanted(run.labels)])


@pytest.mark.parametrize("name", ["islip, 1", "fifo", "shared", "cioq", "oq", "load-balanced"])
def test_delays_against_load(name):
    columns, *rows = table("iSLIP has 100 % throughput")
    (said,) = [row[1:] for row in rows if row[0] == name]
    seen = {f"{row['load']:g}": row for row in run(loads, lambda labels: labels["name"] == name)}
    for load, cell in zip(columns[1:], said, strict=True):
        carried = f"carries {seen[load]['throughput']:.4g}"
        assert cell in (f"{seen[load]['delay_mean']:.4g}", carried)
        assert (cell == carried) == (seen[load]["throughput"] < float(load) - 0.02)


def test_head_of_line_blocking():
    _, *rows = table("Head-of-line blocking")
    seen = run(blocking, lambda labels: labels["ports"] <= 8)
    chain = [[str(row["ports"]), f"{row['throughput']:.4g}", f"{row['karol']:.4g}"] for row in seen]
    assert rows[: len(chain)] == chain


def test_what_iterations_find():
    _, *rows = table("log2 N iterations")
    seen = run(iterations, lambda labels: labels["ports"] <= 16)
    keys = ("ports", "load", "iterations_mean", "iterations_max", "log2")
    assert rows[: len(seen)] == [[f"{row[key]:.4g}" for key in keys] for row in seen]


def test_what_sharing_memory_saves():
    _, *rows = table("Shared against private memory")
    seen = {(row["load"], row["depth"], row["name"]): row for row in run(sharing, lambda labels: labels["depth"] <= 4)}
    for load, depth, private, shared in [row for row in rows if int(row[1]) <= 4]:
        for name, cell in (("private", private), ("shared", shared)):
            row = seen[float(load), int(depth), name]
            assert cell == f"{row['lost'] / row['offered']:.4g}"


def test_what_unbalanced_traffic_leaves():
    _, *rows = table("Non-uniform traffic")
    seen = run(unbalanced, lambda labels: labels["name"] == "islip, 1")
    least = min(seen, key=lambda row: row["throughput"])
    assert ["islip, 1", f"{least['throughput']:.4g}", f"{least['w']:g}"] in rows


def test_latencies():
    _, *rows = table("Latency")
    seen = latency.table("small")
    assert [row[:3] for row in rows] == [[row["design"], str(row["ports"]), str(row["bits"])] for row in seen]
    keys = latency.COLUMNS
    for said, row in zip(rows, seen, strict=True):
        ours = {f"{row[key]:.{digits}f}" for key in keys for digits in (1, 2) if isinstance(row[key], float)}
        assert set(said[5:]) - {said[5]} <= ours and said[4] in ours
