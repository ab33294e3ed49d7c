"""The FPGA switches of ASAP '19 as they were built: clocks, cycles, and the latency that follows from them."""

import tomllib
from decimal import Decimal
from functools import cache
from importlib import resources

import numpy as np

TARGET = 40_000_000  # Hz, Table II
MEMORY_CYCLES = 3  # C_MBS: not printed, fitted to Table VI through eq. (6)
CROSSING_CYCLES = 7.471  # C_wr + C_rd: not printed, least squares on Table VI through eq. (7) on the fast clock


@cache
def table_5() -> dict:
    """Table V as printed: `row` has name, printed, unit and note of every number."""
    text = (resources.files("weft.prototypes") / "fpga.toml").read_text(encoding="utf-8")
    return tomllib.loads(text, parse_float=Decimal)["table"][0]


def clock(design: str, ports: int, width: int) -> float | None:
    """The highest clock in Hz that was reached, for a data path of `width` bits; None where none was built."""
    key = f"clock, {design}, {ports} ports, {width} bit"
    row = next((row for row in table_5()["row"] if row["name"] == key), None)
    return float(row["printed"]) * 1e6 if row and "printed" in row else None


def shared_memory_latency(ports, period):
    """Port-to-port latency of smislip by eq. (6), in the unit of `period`; numbers or arrays."""
    return (np.asarray(period, float) * (MEMORY_CYCLES + np.log2(np.asarray(ports, float))))[()]


def grouped_latency(ports, period, group: int, pipeline: str = "fast"):
    """Port-to-port latency of gcq by eq. (7), in the unit of `period`; numbers or arrays.

    Its pipeline stages are printed on the slow clock; on that clock they alone take longer at 64 ports than was
    measured, so ours count the fast one unless `pipeline` is "slow".
    """
    period, n = np.asarray(period, float), np.asarray(ports, float)
    fast = period / group
    stage = fast if pipeline == "fast" else period
    return (period * CROSSING_CYCLES + fast * MEMORY_CYCLES + stage * n / group)[()]
