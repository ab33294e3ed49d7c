"""Stardust, §6.1.2: the single-tier systems of 960 and 1,152 ports of 10 Gb/s, by size of packets.

24 adapters and 12 elements, without packing; the larger one with packing too. The paper gives neither lanes nor cells:
36 lanes an adapter, 5 % more in all than its 48 ports, and cells of 256 B are ours. Half of the adapters send to the
other half, packet after packet of one size; a packet is a flow of its own, so that its completion is its latency, from
the first bit on the sender's line to the last on the receiver's. What is carried is measured at line rate, latency at
nine tenths of that: at line rate packets of most sizes would wait for ever longer.
"""

import numpy as np

from weft import random
from weft.fabrics.stardust import Stardust
from weft.papers import Claim, Series, at_paper_scale
from weft.units import Gbps, ns, us, wire_time
from weft.workload import Flows

COLUMNS = ("ports", "packing", "bytes", "cells", "carried", "min_us", "mean_us", "max_us", "lost")
SERIES = (Series("bytes", "mean_us", "ports"), Series("bytes", "carried", "ports"))
SIZES = (64, 128, 256, 384, 512, 1024, 1518, 9018)  # frames, FCS included
ADAPTERS, LANES, ELEMENTS = 24, 36, 12
LINE, STANDARD = 10 * Gbps, 1518  # a port, and the largest frame that is not a jumbo
FRAME, GAP = 18, 20  # of an IP packet on Ethernet: header and FCS, preamble and gap
PHASES = 0x73640010  # stream: when each port begins


def system(ports: int, size: int, packing: bool = False) -> Stardust:
    """The system with so many ports in all, for frames of `size` bytes; cables of 3 m."""
    return Stardust(
        hosts=ports, adapters=ADAPTERS, ports=ports // ADAPTERS, uplinks=LANES, tiers=1,
        radix=ADAPTERS * LANES // ELEMENTS, link=LINE, lane=14 * Gbps, packing=packing, delay=15 * ns,
        mtu=size - FRAME, transport="tcp:header=40",
    )  # fmt: skip


def packets(fabric: Stardust, gap: int, span: int) -> Flows:
    """A packet in every `gap` from every port of the first half, to the port that is half of all further on."""
    half = fabric.nodes // 2
    phase = random.below(random.words(random.key(1, PHASES), half), gap)
    n, i = np.divmod(np.arange(half * (span // gap)), half)
    return Flows.of(nodes=fabric.nodes, src=i, dst=i + half, size=fabric.payload, start=n * gap + phase[i])


def seen_of(fabric: Stardust, gap: int, span: int):
    """(completions a port in the second half of the time, latencies of what began in it in us, losses)."""
    flows = packets(fabric, gap, span)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=span)
    seen = run.observe()
    out = int(((seen.finish >= span // 2) & (seen.finish < span)).sum()) / (fabric.nodes // 2)
    begun = (flows.start >= span // 2) & seen.finished
    return out, (seen.finish - flows.start)[begun] / us, seen.lost.total + seen.sections["drops"]["full"]


def row_of(ports: int, packing: bool, size: int, span: int) -> dict:
    """One system under one size of packets for a time, and eight packets longer."""
    fabric = system(ports, size, packing)
    gap = wire_time(size + GAP, fabric.link)
    span += 8 * gap
    out, _, lost = seen_of(fabric, gap, span)
    carried = min(out * gap / (span - span // 2), 1)
    _, took, more = seen_of(fabric, int(gap / (0.9 * carried)), span)
    return {
        "ports": ports,
        "packing": "yes" if packing else "no",
        "bytes": size,
        "cells": -(-size // fabric.filling),
        "carried": 100 * carried,
        "min_us": float(took.min()),
        "mean_us": float(took.mean()),
        "max_us": float(took.max()),
        "lost": lost + more,
    }


def table(scale="small"):
    """Every size over both systems."""
    span = (60 if at_paper_scale(scale) else 24) * us
    systems = ((960, False), (1152, False), (1152, True))
    return [row_of(ports, packing, size, span) for ports, packing in systems for size in SIZES]


def draw(table):
    """Least, mean and largest latency of the larger system, by size."""
    from weft.report.plots import plot

    rows = [
        {"bytes": row["bytes"], "us": row[f"{part}_us"], "of": part}
        for row in table
        if row["ports"] == 1152 and row["packing"] == "no"
        for part in ("min", "mean", "max")
    ]
    return plot(rows, x="bytes", y="us", by="of", xscale="log", title="§6.1.2: 1,152 ports at 0.9 of what they carry")


def _of(table, ports):
    """The rows of a system without packing."""
    return [row for row in table if row["ports"] == ports and row["packing"] == "no"]


def _full(ports, least):
    def check(table):
        carried = {row["bytes"]: row["carried"] for row in _of(table, ports)}
        short = [f"{size} B {share:.1f} %" for size, share in carried.items() if share < 99]
        right = all((share >= 99) == (size >= least) for size, share in carried.items())
        return right, f"line rate but for {', '.join(short)}" if short else "line rate at all sizes"

    return check


def _lost(table):
    lost = sum(row["lost"] for row in table)
    return lost == 0, f"{lost} cells and packets lost"


PRINTED = {"min": (2.8, 3.5), "mean": (3.3, 9.1), "max": (5.6, 13.5)}  # us


def _latency(end, ours):
    """Within a fifth; `ours` is what is counted of a row: to which bit, the text does not say."""

    def check(table):
        rows = _of(table, 1152)
        parts = {part: [ours(row, row[f"{part}_us"]) for row in rows] for part in PRINTED}
        said = ", ".join(f"{part} {min(some):.2f} to {max(some):.2f} us" for part, some in parts.items())
        some = [ours(row, row["min_us"]) for row in rows if row["bytes"] <= STANDARD]
        said += f"; min {min(some):.2f} to {max(some):.2f} up to {STANDARD} B"
        near = all(low * 0.8 <= min(parts[p]) and max(parts[p]) <= high * 1.2 for p, (low, high) in PRINTED.items())
        return near, said

    return Claim("stardust.c19", f"{_RANGES}: {end}", check, False)


def _grows(table):
    means = [row["mean_us"] for row in _of(table, 1152)]
    return means == sorted(means), "mean by size, us: " + ", ".join(f"{mean:.2f}" for mean in means)


def _packed(table):
    carried = {row["bytes"]: row["carried"] for row in table if row["packing"] == "yes"}
    least = min(carried, key=lambda size: carried[size])
    return carried[least] >= 99, f"packed, 1,152 ports carry {carried[least]:.1f} % or more, the least at {least} B"


_RANGES = "latency is at least 2.8 to 3.5 us, on average 3.3 to 9.1, at most 5.6 to 13.5"
CLAIMS = [
    Claim("stardust.c18", "960 ports run at full line rate for all packet sizes", _full(960, 0), False),
    Claim("stardust.c18", "1,152 ports run at full line rate for packets of 384 B or more", _full(1152, 384), False),
    Claim("stardust.c18", "it is because packing was not supported", _packed, False),
    Claim("stardust.c18", "no packet is lost within the fabric", _lost, False),
    _latency("from first bit in to last bit out", lambda row, took: took),
    _latency("from first bit in to first bit out", lambda row, took: took - wire_time(row["bytes"] + GAP, LINE) / us),
    Claim("stardust.c19", "average latency grows with packet size: adapters store and forward", _grows, False),
]
