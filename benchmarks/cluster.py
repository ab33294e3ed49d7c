"""What a cluster costs: tiny runs in this process, and on one and two Dask workers of this machine, in turn.

Prints, for each, seconds of wall time and the CPU time per run of all processes together (home, scheduler, workers),
the overhead per run beyond the run itself, bytes per run that travel, and how much faster two workers are than one.
The aims: less than 20 ms of overhead per run, and 1.6 times the speed with two workers. `--runs N` and `--rounds N`
say how much; workers are started and have their kernels loaded before anything is timed.
"""

import argparse
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

import psutil
from distributed import Client, LocalCluster

import weft

TINY = {"fabrics": [weft.Shoal(nodes=8)], "workloads": [weft.Poisson(load=0.5, sizes="fixed:20KB", flows=30)]}


@contextmanager
def cluster(count, shared):
    os.environ["WEFT_SHARED"] = "yes" if shared else "no"
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, memory_limit=0, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as made,
        Client(made, set_as_default=False) as client,
    ):
        weft.Study(**TINY, seeds=range(10**6, 10**6 + 8 * count)).run(on=client)  # kernels are loaded
        yield client


def cpu() -> float:
    """CPU seconds of this process and those it started."""
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return process_time() + sum(one.user + one.system for one in times)


def timed(study, folder, client=None):
    """(wall, CPU) seconds per run."""
    wall, busy = perf_counter(), cpu()
    study.run(folder, on=client)
    return (perf_counter() - wall) / len(study.points), (cpu() - busy) / len(study.points)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    study = weft.Study(**TINY, seeds=range(asked.runs))
    print(f"{asked.runs} runs, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    print("round  who                 wall ms/run  CPU ms/run  overhead CPU ms/run  speed of one worker")
    with tempfile.TemporaryDirectory() as place:
        weft.Study(**TINY).run(Path(place) / "warm")
        for turn in range(asked.rounds):
            wall, own = timed(study, Path(place) / f"{turn}-none")
            print(f"{turn:5}  this process        {wall * 1e3:11.1f}  {own * 1e3:10.1f}", flush=True)
            one = {}
            for count, shared in ((1, True), (2, True), (1, False), (2, False)):
                with cluster(count, shared) as client:
                    wall, busy = timed(study, Path(place) / f"{turn}-{count}-{shared}", client)
                one.setdefault(shared, wall)
                who = f"{count} worker{'s'[: count > 1]}, {'shared' if shared else 'travels'}"
                print(
                    f"{turn:5}  {who:18}  {wall * 1e3:11.1f}  {busy * 1e3:10.1f}  {(busy - own) * 1e3:19.1f}"
                    f"  {one[shared] / wall:19.2f}",
                    flush=True,
                )
        runs = [path for path in (Path(place) / "0-none" / "runs").iterdir() if path.is_dir()]
        sizes = [sum(file.stat().st_size for file in path.iterdir()) for path in runs]
        print(f"a run's folder: {sum(sizes) / len(sizes):,.0f} bytes on average")


if __name__ == "__main__":
    main()
