"""Many runs: grids of fabrics, workloads and seeds, several at a time, picking up where it stopped.

A study in a folder keeps every run in `runs/`, under a name that is a hash of all that decides its events: fabric,
workload and the files it reads, seed, end, and the source code of the kernels. So a study runs what is missing and
nothing else; a load or a seed more costs only its own runs, and changed code runs everything again. Runs appear whole
or not at all, and several processes may work on one folder.
"""

import csv
import fcntl
import inspect
import io
import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from multiprocessing import connection, get_context, parent_process
from pathlib import Path

from weft import catalogue, reading
from weft.checkpoint import EVERY, Checkpoint, describe_call, is_whole
from weft.errors import BadInput, BadStudy, WeftError, require
from weft.experiment import STOPS, Interrupted, allow, run
from weft.fabrics.base import Fabric
from weft.files import inside, reason, tidy
from weft.foresight import check
from weft.links import differences, fair
from weft.links import read as read_links
from weft.metrics.provenance import describe
from weft.metrics.result import Result, flatten, read_summary, to_pandas
from weft.parameters import Parameter, build
from weft.report.names import tell_apart
from weft.report.series import MAPS
from weft.report.ticker import close, shown
from weft.units import parse_size
from weft.workload.base import Workload
from weft.workload.files import PIPE
from weft.workload.flows import LATEST

LOOK = 0.2  # s of wall time between two looks at the workers
STARTED = 1e-6  # the share of a run that has begun
LAST = 20.0  # s of wall time in which a worker whose parent is gone may keep its run
FAILED = -1.0  # what stands in the place of the share of a run that failed while others go on
LOCK = ".lock"  # the file of claims, beside the runs
OVER_TIME = ("series", *MAPS)  # pictures of results themselves, of which `only` chooses some
PICTURES = ("plot", "fct_and_goodput", "fct_cdf", *OVER_TIME)
SIZES = ("smaller_than", "larger_than")  # options of pictures that are read as sizes


@dataclass(frozen=True)
class Point:
    """One run of a study: what is run, and the name it is kept under."""

    fabric: Fabric
    workload: Workload
    seed: int
    until: int | None = None

    def name(self) -> str:
        """`shoal-poisson-1-0123456789abcdef`: fabric, workload, seed, and a hash of all that decides the run.

        It changes with the source code on disk: whoever needs it for longer than a moment keeps it.
        """
        call = describe_call(self.fabric, self.workload, self.seed, self.until)
        for path, content in call["inputs"].items():
            require(content != PIPE, f"{path}, in a study that is kept,", "a file, whose content can be told", PIPE)
        digest = sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()[:16]
        kinds = (type(self.fabric).__name__, type(self.workload).__name__)
        return "-".join([*map(str.lower, kinds), str(self.seed), digest])


@dataclass(frozen=True, kw_only=True)
class Study:
    """Every fabric under every workload with every seed; or, if they are paired, each under the workload beside it."""

    fabrics: Iterable
    workloads: Iterable
    seeds: Iterable[int] = (0,)
    until: int | None = None
    title: str = ""
    columns: tuple = ()  # of the table; by default what differs, then the main metrics
    paired: bool = False  # the first fabric under the first workload, the second under the second, and no other
    pictures: tuple = ()  # what a study file asks to be drawn: dicts with file, draw and its options
    names: tuple = ()  # of the fabrics, in tables and pictures; by default what sets them apart
    workload_names: tuple = ()  # of the workloads
    warmup: int = 0  # ps: flows that start before are left out of every metric of flows

    def __post_init__(self):
        for name in ("fabrics", "workloads", "seeds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            require(getattr(self, name), name, "at least one", "none")
        if self.paired and len(self.fabrics) != len(self.workloads):
            many = f"as many as the {len(self.fabrics)} fabrics they are paired with"
            raise BadInput(f"workloads must be {many}, not {len(self.workloads)}")
        for name, things in (("names", self.fabrics), ("workload_names", self.workloads)):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            many = len(getattr(self, name))
            require(many in (0, len(things)), name, f"one for each of {len(things)}", many)
        require(0 <= self.warmup <= LATEST, "warmup", "0 ps or more", self.warmup)
        for seed in self.seeds:
            good = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**63
            require(good, "a seed", "a whole number from 0 to 2^63 - 1", seed)

    @cached_property
    def called(self) -> dict[Fabric, str]:
        """The name of each fabric."""
        return dict(zip(self.fabrics, self.names or tell_apart(self.fabrics), strict=True))

    @cached_property
    def workload_called(self) -> dict[Workload, str]:
        """The name of each workload."""
        return dict(zip(self.workloads, self.workload_names or tell_apart(self.workloads), strict=True))

    @property
    def warnings(self) -> list[str]:
        """A sentence for each thing in which links of the fabrics are not alike."""
        return differences((name, fabric) for fabric, name in self.called.items())

    def name_row(self, point: Point) -> dict:
        """What a row of the table calls the fabric and the workload of a run."""
        return {"fabric.name": self.called[point.fabric], "workload.name": self.workload_called[point.workload]}

    @classmethod
    def load(cls, path) -> "Study":
        """The study that a TOML file describes."""
        return read(path)

    @property
    def points(self) -> tuple[Point, ...]:
        """The runs, in order: seeds fastest, then workloads, then fabrics; none twice."""
        together = zip(self.fabrics, self.workloads, strict=True)
        grid = together if self.paired else itertools.product(self.fabrics, self.workloads)
        every = itertools.product(grid, self.seeds)
        return tuple(dict.fromkeys(Point(fabric, workload, seed, self.until) for (fabric, workload), seed in every))

    def run(self, folder=None, *, workers: int = 1, on=None, memory=None, every=EVERY, progress=None) -> "Runs":
        """Run what is missing in `folder`, or everything if there is none, `workers` processes at a time.

        The bits of a result depend neither on the number of workers nor on who else works in the folder. `memory`
        is what all workers together may need. progress is called with (share of each run, number found on disk).
        `on` hands the runs to a cluster: a Dask client, the address of a scheduler as in tcp://host:8786, or local:8
        for so many processes of this machine. There `memory` is what each worker may need, and a run that fails
        does not stop the others: its share is FAILED, and what was wrong is raised at the end. on="gpu" takes the GPU
        of this machine: runs that share a shape go there together, the others stay on the processor (`Runs.notes`).
        """
        require(isinstance(workers, int) and 1 <= workers <= 1024, "workers", "from 1 to 1024", workers)
        if on is not None and on != "gpu":
            from weft.cluster import check as check_cluster

            check_cluster(on)
        require(on is None or workers == 1, "workers", "left out where `on` says who works", workers)
        points = self.points
        check(self, self.columns, self.pictures)
        for point in points if on is None else ():
            allow(point.fabric, point.workload.planned(point.fabric.nodes), memory, times=workers)
        place = None if folder is None else _prepare(folder)
        jobs = [Job(point, place and place / point.name(), memory and memory // workers, every) for point in points]
        progress = shown(progress)
        try:
            results, notes = _all(jobs, workers, progress or _nothing, on)
        finally:
            close(progress)
        runs = Runs(self, results if place is None else [job.place for job in jobs], folder and Path(folder))
        runs.notes = notes
        return runs

    def missing(self, folder) -> list[Point]:
        """The runs that `folder` does not hold yet."""
        return [point for point in self.points if not is_whole(Path(folder) / "runs" / point.name())]


class Runs:
    """The runs of a study that are done: a table, and the results behind it."""

    def __init__(self, study: Study, runs: list, folder: Path | None):
        self.study, self.folder, self._runs = study, folder, runs
        self.notes: list[str] = []  # sentences on which of them ran elsewhere than was asked, and why
        said = [study.name_row(point) for point in study.points]
        self.rows = [{**name, **flatten(self._summary(run))} for name, run in zip(said, runs, strict=True)]

    @property
    def runs(self) -> list:
        """What is behind each row: a result, or the folder that keeps it."""
        return list(self._runs)

    def __len__(self):
        return len(self._runs)

    def __repr__(self):
        return f"<{len(self)} runs of {self.study.title or 'a study'}>"

    def _summary(self, run) -> dict:
        if not isinstance(run, Path):
            return run.after(self.study.warmup).summary()
        if self.study.warmup:
            return Result.load(run).after(self.study.warmup).summary()
        return _summary(run)

    @property
    def results(self) -> list[Result]:
        """Every result whole, flows included but for those of the warm-up; read from disk where there is a folder."""
        return [self._result(run) for run in self._runs]

    def _result(self, run) -> Result:
        return (Result.load(run) if isinstance(run, Path) else run).after(self.study.warmup)

    def named(self) -> dict[str, Result]:
        """The results by what sets them apart: `load 0.2`, `load 0.2, seed 1`."""
        return dict(zip(labels(self.rows), self.results, strict=True))

    def table(self, columns=None):
        """The runs as a table for the terminal; `columns` are keys, short or full."""
        from weft.report.tables import runs_table

        return runs_table(self.rows, columns or self.study.columns or None)

    def plot(self, *, x, y, by=None, **options):
        """`y` against `x`, a line for each value of `by`; see `weft.report.plots.plot`.

        Without `by`, several fabrics are a line each: a mean over them would mean nothing.
        """
        from weft.report.plots import plot

        if by is None and len(set(self.study.called.values())) > 1 and x not in ("fabric", "fabric.name"):
            by = "fabric"
        return plot(self.rows, x=x, y=y, by=by, **{"foot": self.foot, **options})

    @property
    def foot(self) -> str | None:
        """What is said under every picture: in what links of the fabrics are not alike."""
        return "\n".join(self.study.warnings) or None

    def draw(self, *, draw="plot", **options):
        """A picture as a study file describes it."""
        from weft.report import plots, series

        require(draw in PICTURES, "draw", f"one of {', '.join(PICTURES)}", draw)
        if draw == "fct_cdf":
            sizes = {name: parse_size(options.pop(name)) for name in SIZES if name in options}
            return plots.fct_cdf(self.named(), **sizes, **{"foot": self.foot, **options})
        if draw in OVER_TIME:
            found = chosen(self.rows, options.pop("only", ""))
            named = {name: self._result(self._runs[k]) for name, k in found.items()}
            return getattr(series, draw)(named, **{"foot": self.foot, **options})
        if draw == "plot":
            return self.plot(**options)
        return getattr(plots, draw)(self.rows, **{"foot": self.foot, **options})

    def to_arrow(self):
        """The table as a `pyarrow.Table`: a row per run, a column per key, lists left out."""
        import pyarrow as pa

        rows = self._flat()
        names = dict.fromkeys(key for row in rows for key in row)
        return pa.table({name: _column([row.get(name) for row in rows]) for name in names})

    def to_pandas(self):
        """The same as a `pandas.DataFrame`, where pandas is installed."""
        return to_pandas(self.to_arrow())

    def _repr_html_(self):  # a notebook shows the table
        from weft.report.html import table
        from weft.report.tables import runs_cells

        head, cells = runs_cells(self.rows, self.study.columns or None)
        return table(head, cells, self.study.warnings)

    def _flat(self):
        return [{key: value for key, value in row.items() if not isinstance(value, list)} for row in self.rows]

    def csv(self) -> str:
        """The table as csv: a line per run, a column per key, lists left out."""
        rows = self._flat()
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def _column(values) -> list:
    """Values of one kind, as Arrow wants them: numbers stay, a mixture becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return values if len(kinds) < 2 else [None if value is None else float(value) for value in values]
    return values if len(kinds) == 1 else [None if value is None else str(value) for value in values]


def labels(rows: list[dict]) -> list[str]:
    """What sets each run apart from the others, in words."""
    from weft.report import keys
    from weft.report.tables import number

    known = dict.fromkeys(key for row in rows for key in row)
    asked = [key for key in known if key.startswith(("fabric.", "workload.")) or key == "seed"]
    for what in ("fabric.", "workload."):
        if what + "name" in known:  # which says the rest
            asked = [key for key in asked if not key.startswith(what) or key == what + "name"]
    varies = [key for key in asked if len({repr(row.get(key)) for row in rows}) > 1]
    plain = {"fabric.kind", "workload.kind", "fabric.name", "workload.name"}

    def say(row, number):
        own = [key for key in varies if key in row]  # a rack has no scheduler, a crossbar no guard
        return ", ".join(str(row[key]) if key in plain else f"{keys.words(key)} {number(row[key])}" for key in own)

    short = [say(row, number) for row in rows]
    return short if len(set(short)) == len(rows) else [say(row, str) for row in rows]  # 0.90001 and 0.90002 are two


def chosen(rows: list[dict], only: str) -> dict[str, int]:
    """Names and numbers of the runs that are drawn over time: all whose name has `only` in it."""
    names = labels(rows)
    found = {name: k for k, name in enumerate(names) if only in name}
    require(found, "only", f"a part of the name of a run, as in {names[0]!r}", only)
    return found


def _summary(run) -> dict:
    return read_summary(run)


# running


def _nothing(shares, found):
    pass


def _prepare(folder) -> Path:
    """Where the runs go, made if need be."""
    place = Path(folder) / "runs"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise BadInput(f"{folder} must be a folder, not a file") from None
    except (OSError, ValueError) as error:
        raise WeftError(f"{folder} cannot be written: {reason(error)}") from None
    if not os.access(place, os.W_OK | os.X_OK):
        raise WeftError(f"{folder} cannot be written: permission denied")
    for where in (folder, place):
        tidy(where)
    return place


@dataclass(frozen=True)
class Job:
    """One run to be done by some process; `place` is its folder, if it is to be kept."""

    point: Point
    place: Path | None
    memory: int | None
    every: float
    acting: Point | None = None  # what is run in its place where the files it reads lie elsewhere

    @property
    def done(self) -> bool:
        """Whether it is on disk, whole."""
        return self.place is not None and is_whole(self.place)

    def do(self, look) -> Result | None:
        """Do it, or wait for whoever is doing it; returns the result if it has no place."""
        if self.place is None:
            return self.compute(look)
        with claimed(self.place):
            if self.done:
                return None
            if self.point.name() != self.place.name:
                raise WeftError("the source code of weft must stay the same while a study runs: start it again")
            self.keep(look)
        return None

    def keep(self, look) -> None:
        """Do it, from its checkpoint if there is one, and put the result in its place."""
        checkpoint = Checkpoint.beside(self.place, self.every)
        self.compute(look, checkpoint).save(self.place)
        checkpoint.remove()

    def compute(self, look, checkpoint=None) -> Result:
        """The result, as if read from where the point says."""
        point, acting = self.point, self.acting or self.point
        options = {"seed": point.seed, "until": point.until, "memory": self.memory, "progress": look}
        result = run(acting.fabric, acting.workload, checkpoint=checkpoint, **options)
        return result if self.acting is None else _told(result, point, acting)

    def share(self, run) -> float:
        """How much of it is done, as far as the run tells; never quite all of it."""
        return 0.0 if run.compiling else min(max(run.share or 0.0, STARTED), 0.999)


def _told(result, point, acting) -> Result:
    """A result of `acting` in the words of `point`, which reads the same from other files."""
    names = {there: here for here, there in moved(point, acting).items()}
    told = {"fabric": describe(point.fabric), "workload": describe(point.workload)}
    reads = {names.get(path, path): content for path, content in result.provenance["inputs"].items()}
    notes = tuple(renamed(note, names) for note in result.notes)
    return replace(result, **told, notes=notes, provenance={**result.provenance, **told, "inputs": reads})


def moved(point, acting) -> dict[str, str]:
    """Path of `point` -> the path that `acting` reads instead."""
    found: dict[str, str] = {}
    for one, other in ((point.fabric, acting.fabric), (point.workload, acting.workload)):
        pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
        found |= {here: there for here, there in pairs if isinstance(here, str) and here != there}
    return found


def renamed(text, names) -> str:
    """`text` with every path under the name that it is known by."""
    for there, here in names.items():
        text = text.replace(there, here)
    return text


def _all(jobs, workers, progress: Callable, on=None) -> tuple[list, list[str]]:
    """Do every job that is not done; returns the results of those that have no place, and notes."""
    shares = [float(job.done) for job in jobs]
    todo = [k for k, share in enumerate(shares) if not share]
    found = len(jobs) - len(todo)
    progress(shares, found)
    if on == "gpu":
        from weft.gpu import on_gpu

        return on_gpu(jobs, todo, shares, found, progress)
    if on is not None:
        from weft.cluster import on_cluster

        return on_cluster(jobs, todo, shares, found, on, progress), []
    if workers > 1 and len(todo) > 1:
        return _in_pool(jobs, todo, shares, found, workers, progress), []
    results = [None] * len(jobs)
    for k in todo:

        def look(state, k=k):
            shares[k] = jobs[k].share(state)
            progress(shares, found)

        results[k] = jobs[k].do(look)
        shares[k] = 1.0
        progress(shares, found)
    return results, []


def _in_pool(jobs, todo, shares, found, workers, progress) -> list:
    context = get_context("spawn")  # a fork would copy locks that other threads hold
    shared = context.Array("d", [*shares, 0.0], lock=False)  # the last one says that all should stop
    pool = ProcessPoolExecutor(workers, context, _begin_worker, (shared,))
    results, first = [None] * len(jobs), todo[0]

    def submit(some):
        with _stops_wait(), _hidden_script(jobs):  # workers start here and inherit it: no traceback while they import
            return {pool.submit(_in_worker, k, jobs[k]): k for k in some}

    try:
        waiting, rest = submit([first]), todo[1:]
        while waiting:
            done, _ = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
            for future in done:
                k = waiting.pop(future)
                results[k] = future.result()
                shared[k] = 1.0
            if shared[first] > 0:  # the kernel is compiled by one, and found in the cache by the others
                waiting |= submit(rest)
                rest = []
            progress(shared[:-1], found)
    except BrokenProcessPool:
        raise WeftError(
            "a worker was killed before its run was done, perhaps for want of memory: what is kept is whole, and fewer "
            "workers need less"
        ) from None
    except BaseException:
        shared[len(jobs)] = 1.0
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return results


_SHARES = None  # in a worker: how much of each run is done, seen by the process that watches, and whether to stop


_BUSY = threading.Lock()  # in a worker: held during a run


def _begin_worker(shared):
    global _SHARES
    _SHARES = shared
    for number in STOPS:  # Ctrl-C and `timeout` reach everybody; outside a run the parent decides
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """End this worker when the process that started it is gone, even by kill -9; its run may first keep a checkpoint.

    Nobody else would: a worker waits for its next run for ever, and holds the claim of the one it is at.
    """
    connection.wait([parent_process().sentinel])
    _SHARES[-1] = 1.0
    _BUSY.acquire(timeout=LAST)
    os._exit(1)


@contextmanager
def _stops_wait():
    """Let signals that stop a program wait, for some milliseconds."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _hidden_script(jobs):
    """Let workers start without running the user's script again, which would start the study again in each of them.

    They need it only for classes that it defines; then all that it does must be under `if __name__ == "__main__":`.
    """
    script = sys.modules["__main__"]
    path = getattr(script, "__file__", None)
    own = {type(one).__module__ for job in jobs for one in (job.point.fabric, job.point.workload)}
    if path is None or getattr(script, "__spec__", None) is not None:  # a prompt, or `python -m`
        yield
    elif "__main__" in own:
        if "__name__" not in Path(path).read_text(encoding="utf-8", errors="replace"):
            raise BadInput(
                f'{path} must run its study under `if __name__ == "__main__":`, because workers read the classes that '
                "it defines, or define them in a module of their own"
            )
        yield
    else:
        del script.__file__
        try:
            yield
        finally:
            script.__file__ = path


def _in_worker(k, job):
    def look(state):
        _SHARES[k] = job.share(state)
        return bool(_SHARES[-1])

    if _SHARES[-1]:  # the pool hands out one run more than it has workers, and cannot take it back
        raise KeyboardInterrupt
    try:
        with _BUSY:
            return job.do(look)
    except Interrupted:
        raise KeyboardInterrupt from None  # the result so far is in the checkpoint: no need to pickle it


@contextmanager
def claimed(place: Path):
    """Hold the claim on one run of a folder: one byte of one lock file, given back even by kill -9."""
    with open(place.parent / LOCK, "ab") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, _byte(place))
        yield


class Claims:
    """Claims on many runs of one folder, for a process that hands them to others.

    The system gives back all claims of a process on a file when the process closes that file anywhere: whoever holds
    these must not use `claimed` on the same folder meanwhile.
    """

    def __init__(self, folder: Path):
        self._file = open(folder / LOCK, "ab")  # noqa: SIM115 - held as long as the claims are

    def take(self, place: Path) -> bool:
        """Claim a run, unless somebody else has."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(place))
        except BlockingIOError:
            return False
        return True

    def give(self, place: Path) -> None:
        """Give a claim back."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(place))

    def close(self) -> None:
        """Give all claims back."""
        self._file.close()


def _byte(place):
    return int(place.name[-15:], 16)


# files


def read(path) -> Study:
    """The study in the TOML file at `path`; what is wrong with it is said with the file's name and the key."""
    data = reading.toml(path, "a study", error=BadStudy)
    try:
        return _study(data)
    except BadInput as error:
        raise BadStudy(f"{path}: {error}") from None


_KEYS = ("title", "seeds", "until", "warmup", "columns", "links", "fabric", "workload", "picture")


def _study(data) -> Study:
    for key in data:
        require(key in _KEYS, "a key", f"one of {', '.join(_KEYS)}", key)
    links = data.get("links", {})
    require(isinstance(links, dict), "links", "a table [links]", links)
    alike = read_links(links)
    fabrics, kinds, names = [], [], []
    for table in _tables(data, "fabric"):
        kinds.append(catalogue.fabric_class(table["kind"]))
        for what, field in kinds[-1].link_fields().items():
            if what in alike and (field in table or what in table):
                raise BadInput(f"fabric {table['kind']}: {field} must be given here or in [links], not in both")
        made = fair(*_grid(kinds[-1], table, "fabric"), **alike)
        names.append((table.get("name"), made))
        fabrics += made
    workloads, called = [], []
    for table in _tables(data, "workload"):
        classes = {catalogue.workload_class(table["kind"], kind) for kind in kinds}
        made = _grid(classes.pop(), table, "workload")
        called.append((table.get("name"), made))
        workloads += made
    seeds = data.get("seeds", [0])
    require(isinstance(seeds, list), "seeds", "a list of whole numbers", seeds)
    until = Parameter("until", "time", (), True, None, "").read(data.get("until"))
    warmup = Parameter("warmup", "time").read(data.get("warmup", 0))
    pictures = tuple(_picture(table) for table in (_several(data, "picture") if "picture" in data else ()))
    columns = data.get("columns", [])
    require(isinstance(columns, list), "columns", "a list of names", columns)
    return Study(
        fabrics=fabrics,
        workloads=workloads,
        seeds=seeds,
        until=until,
        title=str(data.get("title", "")),
        columns=tuple(map(str, columns)),
        pictures=pictures,
        names=_names(names, fabrics),
        workload_names=_names(called, workloads),
        warmup=warmup,
    )


def _names(tables, things) -> tuple[str, ...]:
    """A name for each thing: what its table says, with what sets it apart from the others of that table."""
    default = dict(zip(map(id, things), tell_apart(things), strict=True))
    out: list[str] = []
    for name, made in tables:
        require(name is None or (isinstance(name, str) and name), "name", "a text", name)
        apart = tell_apart(made) if len(made) > 1 else [""]
        own = [f"{name} {one}".rstrip() for one in apart]
        out += own if name is not None else [default[id(one)] for one in made]
    return tuple(out)


def _tables(data, key):
    """The tables called `key`, one or several, each with its kind."""
    tables = _several(data, key)
    for table in tables:
        require(isinstance(table.get("kind"), str), f"kind of a {key}", "a name", table.get("kind"))
    return tables


def _several(data, key):
    """The tables called `key`, one or several."""
    found = data.get(key, [])
    tables = [found] if isinstance(found, dict) else found
    good = isinstance(tables, list) and tables and all(isinstance(table, dict) for table in tables)
    require(good, key, f"one table [{key}] or several [[{key}]]", found)
    return tables


def _grid(cls, table, key) -> list:
    """A description for every combination of the values in lists."""
    names = [name for name in table if name not in ("kind", "name")]
    lists = [table[name] if isinstance(table[name], list) else [table[name]] for name in names]
    for name, values in zip(names, lists, strict=True):
        require(values, f"{key}.{name}", "at least one value", values)
    try:
        return [build(cls, dict(zip(names, values, strict=True))) for values in itertools.product(*lists)]
    except BadInput as error:
        raise BadInput(f"{key} {table['kind']}: {error}") from None


def _picture(table) -> dict:
    """The picture that a table asks for; all that can be wrong with it before there is a run is said now."""
    from weft.report import plots, series

    require(isinstance(table.get("file"), str), "a picture", "a table with a file", table)
    plots.Plot.check_name(table["file"])
    inside(".", table["file"])
    draw = table.get("draw", "plot")
    require(draw in PICTURES, "draw", f"one of {', '.join(PICTURES)}", draw)
    over_time = draw in OVER_TIME
    taken = inspect.signature(getattr(series if over_time else plots, draw)).parameters.values()
    options = {option.name: option.default for option in taken if option.kind is option.KEYWORD_ONLY}
    if over_time:
        options["only"] = ""
        require(isinstance(table.get("only", ""), str), "only", "a part of the name of a run", table.get("only"))
    for name in table:
        if name not in ("file", "draw", *options):
            raise BadInput(f"an option of {draw} must be one of {', '.join(options)}, not {name!r}")
    for name, default in options.items():
        if default is inspect.Parameter.empty and name not in table:
            raise BadInput(f"{name} must be given for a picture that is drawn as {draw}")
    if draw == "series":
        show = table.get("show", "throughput")
        require(show in series.KINDS, "show", f"one of {', '.join(series.KINDS)}", show)
    read = {name: Parameter(name, "size", (), False, None, "").read(table[name]) for name in SIZES if name in table}
    return {"draw": draw, **table, **read}
