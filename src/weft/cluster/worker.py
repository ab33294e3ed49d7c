"""What home calls on workers: a greeting, a run, a stop.

A worker is asked by name, `weft.cluster.worker:greet`, so it answers with its own weft, whatever version that is. Only
one that has the very source code of the study is given the resources that runs ask for; the scheduler never sends a run
to another. A worker does one run at a time: kernels hold the interpreter's lock, so two would take twice as long.
"""

import fcntl
import os
import pickle
import stat
from dataclasses import fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import IO

from distributed import get_worker

from weft.cache import is_own, shared
from weft.checkpoint import EVERY, Checkpoint
from weft.errors import BadInput, BadResult, MonitorTripped, ScheduleConflict, TooLarge, WeftError
from weft.experiment import Interrupted
from weft.files import replaced
from weft.memory import SHARE, may_have
from weft.metrics.provenance import version
from weft.metrics.result import FILES
from weft.sources import LOOP, digest_of
from weft.sources import files as files_behind
from weft.study import Job, Point, moved, renamed
from weft.units import show_size
from weft.workload.files import named

SLOT, MEMORY = "weft", "weft-memory"  # Dask resources of a worker: runs at a time, and bytes that they may need
OPEN = 1e6  # of the resource that says which source code a worker has: there is always enough
LARGEST = 1 << 30  # bytes of a result, or of a file that a run reads, that travel
CLOCK = 2.0  # s that a process may seem older than it is: the system counts from a whole second
QUIET = 0.2  # s of a run before home hears of it
STUDY_OWN = (BadInput, MonitorTripped, TooLarge, ScheduleConflict, BadResult)  # the same on every worker

_stopped: set[str] = set()  # the studies that are to end
_hashes: dict[tuple, str] = {}  # (path, time, size) -> SHA-256 of a file


# greeting


async def greet(about: dict, dask_worker) -> dict:
    """Compare the source code with the study's; if it is the same, tell the scheduler what this worker can hold.

    about: kinds, a list of (sources, pickled fabric and workload, their names); gate, the resource that stands for this
    source code; peers, the number of workers on this machine. Returns {"memory": bytes}, or {"refused": why}.
    """
    for sources, pickled, names in about["kinds"]:
        try:
            things = pickle.loads(pickled)
            found = digest_of(*things)
        except Exception as error:  # unpickling imports and calls what others wrote: it may raise anything
            return {"refused": f"must know {names} as weft {about['version']} does, not weft {version()}: {error}"}
        if found != sources:
            must = f"must have the source code {sources} of {names} (weft {about['version']})"
            return {"refused": f"{must}, not {found} (weft {version()})"}
        if changed := _changed_since_start(things):
            return {"refused": f"must be started again, because {changed} was written after it was started"}
    room = dask_worker.state.total_resources
    wanted = {SLOT: 1, MEMORY: _room(dask_worker, about["peers"]), about["gate"]: OPEN}
    if fresh := {name: amount for name, amount in wanted.items() if name not in room}:
        await dask_worker.set_resources(**fresh)
    return {"memory": dask_worker.state.total_resources[MEMORY], "threads": dask_worker.state.nthreads}


def _changed_since_start(things) -> str | None:
    """A file behind the descriptions that may not be what was loaded; what is loaded stays as it was."""
    import psutil

    began = psutil.Process().create_time() + CLOCK
    for name, path in files_behind([LOOP, *(type(thing).__module__ for thing in things)]).items():
        seen = os.stat(path)
        if max(seen.st_mtime, seen.st_ctime) > began:
            return name
    return None


def _room(worker, peers) -> int:
    limit = worker.memory_manager.memory_limit
    return int(limit * SHARE) if limit else may_have() // peers


def halt(study: str) -> None:
    """Let every run of a study stop at the end of its stride."""
    _stopped.add(study)


def content(data: bytes) -> bytes:
    """A file that runs read: a task, so that Dask keeps it where it is needed and makes it again where it was lost."""
    return data


# running


def work(orders: list[dict], *contents: bytes) -> list[dict]:
    """Do some runs, one after the other. Returns for each how it ended, under "end", with what belongs to it:

    done      it is in its place
    files     {name: bytes} of its folder, with their `digest`
    result    the result, pickled, of a study that is not kept
    wants     the files to send with it next time
    stopped   home said so; a checkpoint is kept
    failed    a sentence about the run itself, true on any worker, and the name of its `error`
    full      a sentence: the study's own folder cannot be written
    broken    a sentence about this worker
    """
    here, answers = get_worker(), []
    for order in orders:
        began = monotonic()
        answer = _work(order, contents, here)
        answers.append({**answer, "worker": here.address, "took": monotonic() - began})
    return answers


def _work(order, contents, here):
    names: dict[str, str] = {}
    shared = False
    try:
        if order["study"] in _stopped:
            return {"end": "stopped"}
        point = pickle.loads(order["point"])
        _check(order, point)
        given = {order["inputs"][path]: data for path, data in zip(order["sent"], contents, strict=True)}
        there, wants = _find(order["inputs"], given)
        if wants:
            return {"end": "wants", "paths": wants}
        acting = _acting(point, there)
        names = {elsewhere: path for path, elsewhere in moved(point, acting).items()}
        shared = _is_shared(order)
        place = _place(order, shared)
        room = order["memory"] or here.state.total_resources.get(MEMORY)
        job = Job(point, place, int(room), order["every"], None if acting == point else acting)
        with Turn(order["sources"]) as turn:
            look = _looking(order, job, here, turn)
            if place is None:
                return {"end": "result", "result": pickle.dumps(job.compute(look))}
            if not shared:
                _forget_damaged(place)
            if not job.done:
                job.keep(look)
        return {"end": "done"} if shared else _packed(place)
    except Interrupted:
        return {"end": "stopped"}
    except STUDY_OWN as error:
        return {"end": "failed", "said": renamed(str(error), names), "error": type(error).__name__}
    except WeftError as error:  # what cannot be written
        return {"end": "full" if shared else "broken", "said": renamed(str(error), names)}
    except Exception as error:  # a fabric that others wrote, or a bug: whoever waits for the run is told, in any case
        said = renamed(str(error), names)
        return {"end": "broken", "said": f"{type(error).__name__}{': ' if said else ''}{said}"}


def _check(order, point):
    found = digest_of(point.fabric, point.workload)
    if found != order["sources"]:
        raise WeftError(f"the source code must stay {order['sources']} while a study runs, not become {found}")
    for thing in (point.fabric, point.workload):
        for path in named(thing):
            if path not in order["inputs"]:
                raise WeftError(
                    f"{path!r} must name no file where the worker runs, as at home, but one lies in {os.getcwd()}"
                )


def _find(inputs, given):
    """({path: where the file lies here}, paths that are nowhere) for the files that a run reads."""
    there, wants = {}, []
    for path, digest in inputs.items():
        kept = spool() / "inputs" / digest / os.path.basename(path)
        if _sha256(path) == digest:
            there[path] = path
        elif _sha256(kept) == digest:
            there[path] = str(kept)
        elif digest in given:
            if sha256(given[digest]).hexdigest() != digest:
                raise WeftError(f"{path} must arrive as it was sent, not damaged")
            with replaced(kept, own=True) as fresh:
                fresh.write_bytes(given[digest])
            there[path] = str(kept)
        else:
            wants.append(path)
    return there, wants


def _sha256(path) -> str | None:
    try:
        seen = os.stat(path)
        if not stat.S_ISREG(seen.st_mode):
            return None
        key = (str(path), seen.st_mtime_ns, seen.st_size, seen.st_ino)
        if key not in _hashes:
            with open(path, "rb") as file:
                digest = sha256()
                while block := file.read(1 << 20):
                    digest.update(block)
            _hashes[key] = digest.hexdigest()
        return _hashes[key]
    except (OSError, ValueError):
        return None


def _acting(point, there) -> Point:
    def with_files(thing):
        if not is_dataclass(thing):
            return thing
        texts = {one.name: getattr(thing, one.name) for one in fields(thing) if one.init}
        other = {
            name: there[text] for name, text in texts.items() if isinstance(text, str) and there.get(text, text) != text
        }
        return replace(thing, **other) if other else thing

    return replace(point, fabric=with_files(point.fabric), workload=with_files(point.workload))


def _is_shared(order) -> bool:
    """Whether the study's folder is the one seen here under the same name."""
    if order["home"] is None or os.environ.get("WEFT_SHARED", "yes") == "no":
        return False
    try:
        return (Path(order["home"]) / order["stamp"]).read_text() == order["study"]
    except OSError:
        return False


def _place(order, shared) -> Path | None:
    if order["home"] is None:
        return None
    return (Path(order["home"]) if shared else spool() / "runs") / order["name"]


def _forget_damaged(place):
    """Drop a checkpoint in the spool that cannot be read: the run begins anew."""
    checkpoint = Checkpoint.beside(place, EVERY)
    if checkpoint.exists():
        try:
            checkpoint.call()
        except BadResult:
            checkpoint.remove()


def _packed(place) -> dict:
    import shutil

    size = sum((place / name).stat().st_size for name in FILES)
    if size > LARGEST:
        raise WeftError(
            f"a result must be at most {show_size(LARGEST)} to travel, not {show_size(size)}: let workers share the "
            "study's folder"
        )
    files = {name: (place / name).read_bytes() for name in FILES}
    shutil.rmtree(place, ignore_errors=True)
    return {"end": "files", "files": files, "digest": folder_digest(files)}


def folder_digest(files: dict[str, bytes]) -> str:
    """SHA-256 of names and contents."""
    digest = sha256()
    for name in sorted(files):
        digest.update(f"{name}\n{len(files[name])}\n".encode())
        digest.update(files[name])
    return digest.hexdigest()


def _looking(order, job, here, turn):
    due = monotonic() + QUIET

    def look(state):
        nonlocal due
        turn.wait_while(state.compiling)
        if monotonic() >= due:
            due = monotonic() + order["look"]
            here.log_event(order["topic"], [order["number"], job.share(state)])
        return order["study"] in _stopped

    return look


class Turn:
    """One process of a machine at a time compiles the kernels of one source; the others find them in the cache."""

    def __init__(self, sources: str):
        self.byte = int(sources[:15], 16)
        self.file: IO[bytes] | None = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.wait_while(False)

    def wait_while(self, compiling: bool) -> None:
        """Have the turn while compiling, and give it back after."""
        if compiling and self.file is None:
            self.file = open(spool() / "compiling", "ab")  # noqa: SIM115 - held until the kernel is compiled
            fcntl.lockf(self.file, fcntl.LOCK_EX, 1, self.byte)
        elif not compiling and self.file is not None:
            self.file.close()
            self.file = None


def spool() -> Path:
    """Where a machine keeps what belongs to no study's folder: this user's, and nobody else's."""
    place = shared()
    place.mkdir(mode=0o700, exist_ok=True)
    if not is_own(place):
        raise WeftError(f"{place} must be a folder that only this user can write")
    (place / "runs").mkdir(exist_ok=True)
    return place
