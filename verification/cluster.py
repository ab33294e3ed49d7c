"""A study of 10^5 runs on 1,000 workers, on paper: what the scheduler must hold and do, from what one is measured to.

    python verification/cluster.py [--held 5000] [--done 1000]

Starts a Dask scheduler as a process of its own. First it is given runs for which there is no worker, which it must
hold: memory and CPU time per run held. Then real tiny runs go through it and one worker: its CPU time per run, and
home's. Then what these come to for 10^5 runs on 1,000 workers, by how long a run takes. Exits with 1 if the scheduler
would be busier than half its time with runs of a minute, or would need a gigabyte.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from distributed import Client

import weft
from weft.cluster import home, worker

RUNS, WORKERS = 10**5, 1000
POINT = (weft.Shoal(nodes=8), weft.Poisson(load=0.5, sizes="fixed:20KB", flows=30))
ORDER = {"point": pickle.dumps(POINT), "text": "x" * 600}  # the size of an order without files


def start(kind, *options, **env):
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, "--dashboard-address", "127.0.0.1:0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env},
    )  # fmt: skip


def spent(process) -> float:
    return sum(process.cpu_times()[:2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--held", type=int, default=5000)
    parser.add_argument("--done", type=int, default=1000)
    asked = parser.parse_args()
    processes, home.MOST = [], 1  # runs of a second or more go out one by one
    with tempfile.TemporaryDirectory() as folder:
        try:
            file = str(Path(folder) / "scheduler.json")
            processes.append(start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file))
            while not os.path.exists(file):
                time.sleep(0.1)
            scheduler = psutil.Process(processes[0].pid)
            with Client(scheduler_file=file, set_as_default=False) as client:
                before, cpu = scheduler.memory_info().rss, spent(scheduler)
                held = [
                    client.submit(worker.work, [ORDER], key=f"weft-run-{k}", resources={"nobody": 1}, pure=False)
                    for k in range(asked.held)
                ]
                time.sleep(0.5)
                client.nthreads()  # it has heard of them all
                bytes_each = (scheduler.memory_info().rss - before) / asked.held
                hold = (spent(scheduler) - cpu) / asked.held
                del held
                processes.append(
                    start(
                        "worker", "--scheduler-file", file, "--nthreads", "1", "--no-nanny", "--local-directory", folder
                    )
                )
                warm = weft.Study(fabrics=POINT[:1], workloads=POINT[1:], seeds=range(10**6, 10**6 + 20))
                warm.run(on=client)
                study = weft.Study(fabrics=POINT[:1], workloads=POINT[1:], seeds=range(asked.done))
                cpu, own = spent(scheduler), time.process_time()
                study.run(Path(folder) / "study", on=client)
                each, ours = (spent(scheduler) - cpu) / asked.done, (time.process_time() - own) / asked.done
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait()
    window = home.AHEAD * WORKERS
    print(f"a run that the scheduler holds: {bytes_each / 1e3:.1f} kB and {hold * 1e3:.2f} ms of its CPU time")
    print(
        f"a run that goes through it and comes back: {each * 1e3:.2f} ms of its CPU time, {ours * 1e3:.2f} ms of home's"
    )
    print(
        f"held at a time, {home.AHEAD} for each of {WORKERS:,} workers: {window:,} runs, "
        f"{window * bytes_each / 1e6:.0f} MB"
    )
    print(f"held if all {RUNS:,} were handed over at once: {RUNS * bytes_each / 1e6:.0f} MB")
    print("a run takes  runs/s  scheduler busy  home busy  study takes at least")
    for seconds in (1, 10, 60, 3600):
        rate = WORKERS / seconds
        most = min(rate, 1 / each, 1 / ours)
        print(f"{seconds:9} s  {rate:6.1f}  {rate * each:13.0%}  {rate * ours:9.0%}  {RUNS / most / 3600:14.2f} h")
    return int(WORKERS / 60 * each > 0.5 or window * bytes_each > 1e9)


if __name__ == "__main__":
    sys.exit(main())
