"""`weft bench ... --on gpu`: runs side by side on the GPU of this machine, beside its cores.

What counts is the last third of each run's time. How much of the memory's bandwidth that takes, and how many of the
moments in which a scheduler could issue an instruction, says NVIDIA's profiler, `ncu`, of the same launches; the
bandwidth that it is a share of is that of a copy within the device.
"""

import csv
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from shutil import which
from typing import NamedTuple

from weft.engine import loop
from weft.errors import require
from weft.fabrics.base import Fabric
from weft.workload.base import Workload

COPIED = 1 << 30  # bytes, to measure the memory
TABLES = 8  # of which replicas have one in turn
BYTES, TIME = "dram__bytes.sum", "gpu__time_duration.sum"  # of a launch
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_active"


class Case(NamedTuple):
    """What is measured."""

    fabric: Fabric
    workload: Workload
    until: int  # ps
    seed: int


def measure(case: Case, count: int) -> dict:
    """Node-slots a second of so many replicas on the GPU of this machine, by seeds in turn."""
    from weft import gpu

    fabric, workload, until, seed = case
    machine, room = gpu.find(), gpu.room_of(fabric)
    few = range(seed, seed + min(count, TABLES))
    tables = [workload.draw(nodes=fabric.nodes, link=fabric.link, seed=one) for one in few]
    reason = gpu.refusal(fabric, tables[0])
    require(reason is None, "what runs on a GPU", "what it can carry", reason)
    runs = [room.replica(fabric.prepare(tables[k % len(tables)], seed=seed + k)) for k in range(count)]
    group = room.Group(runs, machine)
    group.step({runs[0]: 0})  # compiles, and no slot passes
    stride(group, runs, until * 2 // 3)
    before = done(runs[0])
    with machine.profiled():
        seconds = stride(group, runs, until)
    slots = (done(runs[0]) - before) * count
    return {"replicas": count, "node_slots": slots, "seconds": seconds, "node_slots_per_s": slots / seconds}


def stride(group, runs, stop: int) -> float:
    """Let runs advance to `stop` (ps); returns the seconds that took."""
    seconds, left = 0.0, list(runs)
    while left:
        whys, took = group.step(dict.fromkeys(left, stop))
        require(max(whys.values()) < loop.MORE, "replicas", "few enough for their arrays", len(runs))
        seconds += took
        left = [run for run in left if whys[run] == loop.PAUSED]
    return seconds


def done(run) -> int:
    """Node-slots of a run so far."""
    return run.back().observe().work["node_slots"]


def bandwidth() -> float:
    """Bytes a second that a copy within the device reads and writes."""
    import numpy as np
    from numba import cuda

    one, other = (cuda.device_array(COPIED // 8, np.uint64) for _ in range(2))
    begin, end, rates = cuda.event(), cuda.event(), []
    for _ in range(5):
        begin.record()
        other.copy_to_device(one)
        end.record()
        end.synchronize()
        rates.append(2 * COPIED / (cuda.event_elapsed_time(begin, end) / 1e3))
    return max(rates)


def shares(case: Case, count: int, copied: float) -> dict:
    """The share of a copy's bandwidth, and of the moments to issue, that replicas take: by the profiler, or why not."""
    profiler = which("ncu")
    if profiler is None:
        return {"why_no_shares": "ncu, NVIDIA's profiler, is not on the PATH"}
    program = [
        profiler, "--clock-control", "none", "--profile-from-start", "off", "--csv", "--print-units", "base",
        "--metrics", f"{BYTES},{TIME},{ISSUED}", sys.executable, "-m", __name__, str(count),
    ]  # fmt: skip
    ran = subprocess.run(program, input=pickle.dumps(case), capture_output=True)
    found = read(ran.stdout.decode(errors="replace"))
    if not found.get(TIME):
        said = (ran.stdout + ran.stderr).decode(errors="replace").strip().splitlines()
        return {"why_no_shares": f"ncu measured nothing ({said[-1] if said else 'it said nothing'})"}
    seconds = sum(found[TIME]) / 1e9
    issued = sum(share * time for share, time in zip(found[ISSUED], found[TIME], strict=True)) / sum(found[TIME])
    return {"memory_share": sum(found[BYTES]) / seconds / copied, "issue_share": issued / 100}


def read(text: str) -> dict[str, list[float]]:
    """Metric -> its values, one per launch, of what the profiler printed."""
    lines = text.splitlines()
    begin = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found: dict[str, list[float]] = {}
    for row in csv.DictReader(lines[begin:]):
        found.setdefault(row["Metric Name"], []).append(float(row["Metric Value"].replace(",", "")))
    return found


def on_cores(case: Case, cores: int) -> float:
    """Node-slots a second of so many processes at once on this machine, each with a seed of its own."""
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        return sum(pool.map(_one, [case._replace(seed=case.seed + k) for k in range(cores)]))


def _one(case: Case) -> float:
    from weft.cli.bench import best

    found = best(case.fabric, case.workload, seed=case.seed, until=case.until, repeat=3)
    return found["rate"]["node_slots_per_s"]


def compared(cases: dict[float | None, Case], counts: list[int]) -> dict:
    """Every case with every number of replicas, by its load; beside one core and all of them."""
    from weft import gpu

    gpu.find()
    copied, cores, rows = bandwidth(), os.cpu_count() or 1, []
    for load, case in cases.items():
        one, all_ = on_cores(case, 1), on_cores(case, cores)
        for count in counts:
            found = measure(case, count)
            rows.append({
                "load": load, **found, **shares(case, count, copied), "one_core_node_slots_per_s": one,
                "all_cores_node_slots_per_s": all_,
            })  # fmt: skip
    return {"copied_bytes_per_s": copied, "cores": cores, "gpu": rows}


def told(found: dict):
    """The same, for a reader."""
    yield f"{found['cores']} cores; a copy within the GPU moves {found['copied_bytes_per_s'] / 1e12:.2f} TB/s"
    yield "load  replicas  M node-slots/s  of one core  of all cores  of the memory  of issue"
    for row in found["gpu"]:
        speed = row["node_slots_per_s"]
        load = "" if row["load"] is None else f"{row['load']:g}"
        parts = [f"{row[key]:.1%}" if key in row else "-" for key in ("memory_share", "issue_share")]
        one, many = (speed / row[f"{who}_node_slots_per_s"] for who in ("one_core", "all_cores"))
        yield (f"{load:>4}  {row['replicas']:8}  {speed / 1e6:14,.0f}  {one:11.1f}  {many:12.1f}"
               f"  {parts[0]:>13}  {parts[1]:>8}")  # fmt: skip
    for reason in dict.fromkeys(row["why_no_shares"] for row in found["gpu"] if "why_no_shares" in row):
        yield f"no shares: {reason}"


if __name__ == "__main__":  # under the profiler
    measure(pickle.load(sys.stdin.buffer), int(sys.argv[1]))
