"""A cluster of real processes on the loopback: a Dask scheduler and workers, each ended by its own process id."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITH_NANNY, ALONE = (), ("--no-nanny",)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Loopback:
    """`with Loopback(folder) as lab:` a scheduler at `lab.address`; `lab.worker()` starts a worker."""

    def __init__(self, folder: Path, **scheduler_env):
        self.folder, self.port, self.processes = Path(folder), free_port(), []
        self.address, self.scheduler_env = f"tcp://127.0.0.1:{self.port}", scheduler_env
        self.scheduler = None

    def __enter__(self):
        self.start_scheduler()
        return self

    def __exit__(self, *error):
        for process in reversed(self.processes):
            self.end(process, signal.SIGTERM)

    def start_scheduler(self):
        """Start it, or start it again."""
        options = ("--host", "127.0.0.1", "--port", str(self.port), "--dashboard-address", "127.0.0.1:0")
        self.scheduler = self._start("scheduler", options, **self.scheduler_env)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            time.sleep(0.1)
        raise AssertionError(self.said())

    def worker(self, *options, nanny=ALONE, source=None, memory="2GB", **env) -> subprocess.Popen:
        """Start a worker, by default with this source and no nanny."""
        own = self.folder / f"worker-{len(self.processes)}"
        (own / "tmp").mkdir(parents=True)
        path = [str(source or ROOT / "src"), str(ROOT / "tests")]
        return self._start(
            "worker",
            (self.address, "--nthreads", "1", "--memory-limit", memory, "--no-dashboard", *nanny, *options),
            cwd=own, PYTHONPATH=os.pathsep.join(path), TMPDIR=str(own / "tmp"), **env,
        )  # fmt: skip

    def wait_for(self, client, count) -> None:
        """Wait until so many workers are there."""
        end = time.monotonic() + 60
        while len(client.nthreads()) != count:
            assert time.monotonic() < end, self.said()
            time.sleep(0.1)

    def _start(self, kind, options, cwd=None, **env):
        with open(self.folder / f"{kind}-{len(self.processes)}.log", "wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options],
                cwd=cwd or self.folder, stdout=out, stderr=out, env={**os.environ, **env}, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def end(self, process, how=signal.SIGKILL) -> None:
        """End one process, and what it started if it does not go by itself."""
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its own session
                process.wait(20)

    def said(self) -> str:
        """What the processes printed."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log")))
