"""Kernels that other processes compile ahead: in one process Numba compiles one after the other.

They find their way here through the cache on disk (`engine.jit`), where whoever needs a kernel that another compiles
waits for it. Nobody depends on those processes: what they leave undone is compiled by whoever needs it.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Thread

from weft.engine.jit import is_kept, undisturbed


@contextmanager
def compiling(parts: Mapping[Callable, Iterable]):
    """While the block runs, have processes compile those kernels that are not on disk: one for every core to spare.

    parts: functions of a module, without arguments, and the kernels that each calls. What is on disk already costs
    nothing. The processes end with the block, or with this process, whatever ends it.
    """
    todo = [f"{part.__module__}:{part.__name__}" for part, kernels in parts.items() if not all(map(is_kept, kernels))]
    many = min(len(todo), max((os.cpu_count() or 1) - 1, 1))
    at_work: list[subprocess.Popen] = []
    try:
        for k in range(many):
            at_work += _start(todo[k::many])
        yield
    finally:
        for one in at_work:
            one.kill()
        for one in at_work:
            one.wait()
            if one.stdin is not None:
                one.stdin.close()


def _start(names) -> list[subprocess.Popen]:
    """A process that calls these functions; none if there cannot be one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place or os.getcwd() for place in sys.path)}
    program = [sys.executable, "-P", "-W", "ignore", "-m", __name__, *names]
    try:
        return [
            subprocess.Popen(
                program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever waits for the kernels
            )
        ]  # fmt: skip
    except (OSError, ValueError):
        return []


def _end_with_parent() -> None:
    """Go when whoever holds the other end of the pipe has gone."""
    sys.stdin.buffer.read()
    os._exit(0)


def main(names) -> None:
    """Call functions, by their names, one after the other."""
    Thread(target=_end_with_parent, daemon=True).start()
    with undisturbed():
        for name in names:
            module, _, function = name.partition(":")
            getattr(import_module(module), function)()


if __name__ == "__main__":
    main(sys.argv[1:])
