"""A run under way on disk: the kernel's state as arrays, and the call that it belongs to.

A checkpoint is one npz file of plain arrays, written beside its place and renamed, so that it is whole whenever it is
there. The call is JSON in an array of bytes. Nothing in it is pickled: to read one runs no code.
"""

import json
import os
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from weft import reading
from weft.errors import BadResult, WeftError
from weft.files import replaced, resolved
from weft.metrics.provenance import describe, plain
from weft.metrics.result import Result, is_whole
from weft.metrics.schema import TEXT, WHOLE, differences
from weft.sources import digest_of
from weft.workload.files import inputs

EVERY = 60.0  # s of wall time between two checkpoints
_DECIDES = ("fabric", "workload", "resolved", "inputs", "seed", "until", "sources")  # what makes two calls the same run
_CALL: dict = {
    "fabric": {"kind": TEXT}, "workload": {"kind": TEXT}, "resolved": (dict,), "inputs": {str: TEXT}, "seed": (int,),
    "until": WHOLE, "sources": TEXT, "spent": {"wall_s": (float, int), "cpu_s": (float, int)}, "arrays": (list,),
}  # fmt: skip


class Checkpoint:
    """Where a run keeps its state, and how often; `every` is in seconds of wall time.

    With a `folder`, what was seen so far is saved there too, marked as partial, unless a whole result lies there: that
    one stays until the new one is whole. A disk that is full ends no run: `problem` says what could not be written.
    """

    def __init__(self, path, every: float = EVERY, folder=None):
        self.path, self.every, self.folder = Path(path), every, folder
        self.problem: str | None = None
        self._last = monotonic()

    @classmethod
    def beside(cls, folder, every: float = EVERY) -> "Checkpoint":
        """The checkpoint of the run whose result is to be `folder`."""
        place = resolved(folder)
        return cls(f"{place}.checkpoint", every, folder)

    def __repr__(self):
        return f"Checkpoint({str(self.path)!r}, every={self.every:g})"

    def exists(self) -> bool:
        """Whether there is anything to resume."""
        return os.path.lexists(self.path)  # a link that leads nowhere is no reason to begin anew

    @property
    def due(self) -> bool:
        """Whether it is time to write one."""
        return monotonic() - self._last >= self.every

    def write(self, call: dict, arrays: dict[str, np.ndarray], partial: Result) -> None:
        """Put the run on disk, whole or not at all."""
        listed = {**call, "arrays": list(arrays)}  # an archive that lost one does not say so
        text = np.frombuffer(json.dumps(listed, allow_nan=False).encode(), np.uint8)
        columns: dict[str, Any] = {"call": text, **{f"run.{name}": array for name, array in arrays.items()}}
        try:
            with replaced(self.path, own=True, flush=True) as fresh, open(fresh, "wb") as file:
                np.savez(file, **columns)
            if self.folder is not None and not is_whole(self.folder):
                partial.save(self.folder)
            self.problem = None
        except WeftError as error:
            self.problem = str(error)
        self._last = monotonic()

    def call(self) -> dict:
        """The call that the checkpoint belongs to."""
        return self._read(arrays=False)[0]

    def read(self, call: dict) -> tuple[dict, dict[str, np.ndarray]]:
        """(what was spent so far, the arrays), if they are of this very call; else a sentence says what differs."""
        found, arrays = self._read()
        for key in _DECIDES:
            if found.get(key) != call[key]:
                what, other = "source code" if key == "sources" else key, _difference(found.get(key), call[key])
                raise BadResult(f"{self.path} must be of the same {what} as this run, not of {other}")
        return found["spent"], arrays

    def remove(self) -> None:
        """Forget the run: its result is saved."""
        self.path.unlink(missing_ok=True)

    def _read(self, arrays=True):
        found = reading.arrays(self.path, "a checkpoint", error=BadResult)
        try:
            call = json.loads(found["call"].tobytes())
            if not isinstance(call, dict) or not {*_DECIDES, "spent", "arrays"} <= set(call):
                raise ValueError
            if any(differences("", {key: call[key] for key in _CALL}, _CALL)):
                raise ValueError
            return call, {name: found[f"run.{name}"] for name in call["arrays"] if arrays}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise BadResult(f"{self.path} must be a checkpoint, not something that cannot be read") from None


def describe_call(fabric, workload, seed: int, until: int | None) -> dict:
    """Everything that decides a run's events, as data."""
    return plain(
        {
            "fabric": describe(fabric),
            "workload": describe(workload),
            "resolved": fabric.resolved(),
            "inputs": inputs(fabric, workload),
            "seed": int(seed),
            "until": until,
            "sources": digest_of(fabric, workload),
        }
    )


def _difference(found, wanted):
    """The first thing in which two descriptions differ: `nodes 64`."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in (*wanted, *found):
            if found.get(key) != wanted.get(key):
                return f"{key} {found.get(key)!r}"
    return repr(found)
