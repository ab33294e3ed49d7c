"""Result is what one run came to: its flows, what was observed, and where it came from; on disk and back.

A result folder holds

    flows.parquet      a row per flow: flow, src, dst, bytes, start_ps, finish_ps (-1 unfinished), class, received
                       (payload bytes), and ideal_ps where the fabric knows the shortest possible time
    samples.parquet    time series, if the fabric took any
    result.json        the summary, and under "observed" what it was computed from
    provenance.json    fabric, workload and seed as data, versions, source hash, machine, time and memory taken
"""

import json
import os
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from weft.errors import BadResult, WeftError, require
from weft.files import tidy
from weft.metrics import fct, schema, throughput
from weft.metrics.fct import DECADES, LONG, SHORT, Distribution
from weft.metrics.folder import check, replaced
from weft.metrics.observation import Lost, Observation, Queue
from weft.metrics.provenance import columns_hash, describe, machine, peak_memory, plain, versions
from weft.metrics.schema import COMMON, OBSERVED
from weft.reading import exists, json_object, parquet
from weft.sources import digest_of
from weft.units import MB, Gbps, ns, show_time, us
from weft.workload.flows import ENDLESS, LATEST, Flows

FILES = ("flows.parquet", "samples.parquet", "result.json", "provenance.json")
FORMAT = 2  # of the folder; a reader that meets another one says so
_HASHED = ("src", "dst", "size", "start", "klass", "after", "delay", "after_delay", "rate")
_NAMES = {"id": "flow", "src": "src", "dst": "dst", "size": "bytes", "start": "start_ps", "klass": "class"}


@dataclass(frozen=True, eq=False)
class Result:
    """What one run came to. Made by `collect` or `load`; nothing in it changes afterwards."""

    fabric: dict  # as `weft.metrics.provenance.describe` writes it
    workload: dict
    seed: int
    flows: Flows
    observation: Observation
    offered: dict = field(default_factory=dict)
    throughput: dict = field(default_factory=dict)  # as the summary has it
    notes: tuple = ()
    provenance: dict = field(default_factory=dict)
    ideal: np.ndarray | None = None  # int64 [f] the shortest possible completion time in ps, where the fabric knows it
    partial: bool = False  # the run was interrupted; what is here is true up to `observation.now`

    def __repr__(self):
        what = f"{self.fabric.get('kind')}, {self.workload.get('kind')}, seed {self.seed}"
        return f"<{what}: {int(self.observation.finished.sum()):,} of {len(self.flows):,} flows done>"

    @classmethod
    def collect(
        cls, fabric, workload, demand, observation, *, seed, wall=None, cpu=None, peak=None, partial=False, more=None
    ) -> "Result":
        """Gather a run: `wall` and `cpu` are seconds, `peak` bytes (by default, this process's peak so far).

        The times that `fabric.ideal(flows)` returns, unless it is None, become the base of the slowdown. `more` is
        added to the provenance.
        """
        table, seen = demand.table, observation
        require(len(seen.finish) == len(table), "finish", f"one time for each of {len(table)} flows", len(seen.finish))
        drawn, released = table, table.released(seen.finish)
        if table.waiting:  # a flow that waits for others begins when it may; the rest of the table is as it was drawn
            table = replace(table, start=np.where(released < 0, seen.now, released))
        seen = replace(seen, sections={**seen.sections, **_sections(workload, fabric, drawn, released, seen)})
        early = np.flatnonzero((seen.finish >= 0) & (seen.finish < table.start))
        if len(early):
            f = early[0]
            raise WeftError(
                f"flow {table.id[f]} must finish after its start at {show_time(int(table.start[f]))}, "
                f"not at {show_time(int(seen.finish[f]))}"
            )
        ideal = getattr(fabric, "ideal", _unknown)(table) if len(table) else None
        provenance = {
            "format": FORMAT,
            "fabric": describe(fabric),
            "workload": describe(workload),
            "seed": int(seed),
            "nodes": table.nodes,
            **versions(),
            "sources": digest_of(fabric, workload),
            "flows": columns_hash(*(getattr(drawn, name) for name in _HASHED)),
            "machine": machine(),
            "wall_s": wall,
            "cpu_s": cpu,
            "peak_rss_bytes": peak_memory() if peak is None else int(peak),
            **(more or {}),
        }
        return cls(
            fabric=provenance["fabric"],
            workload=provenance["workload"],
            seed=int(seed),
            flows=table,
            observation=seen,
            offered=plain(_offered(fabric, workload, drawn)),
            throughput=plain(throughput.summary(fabric, table, seen)),
            notes=tuple(map(str, (*demand.notes, *seen.notes))),
            provenance=plain(provenance),
            ideal=None if ideal is None else np.asarray(ideal, np.int64),
            partial=bool(partial),
        )

    def fct(self, *, smaller_than=None, larger_than=None, rule="nearest_rank") -> Distribution:
        """Completion times in ps of finished flows from `larger_than` up to `smaller_than` bytes, both included."""
        f = self.flows
        return fct.completion(
            f.size, f.start, self.observation.finish, smaller_than=smaller_than, larger_than=larger_than, rule=rule
        )

    def slowdown(self, *, smaller_than=None, larger_than=None, rule="nearest_rank", ideal=None) -> Distribution | None:
        """Completion times over the shortest possible, `ideal` ps or the fabric's own; None if neither is known."""
        ideal = self.ideal if ideal is None else ideal
        if ideal is None:
            return None
        f = self.flows
        sizes = {"smaller_than": smaller_than, "larger_than": larger_than}
        return fct.slowdown(f.size, f.start, self.observation.finish, ideal, **sizes, rule=rule)

    def goodput(self, *, smaller_than=None, larger_than=None, unfinished=False, rule="nearest_rank") -> Distribution:
        """Payload b/s of each finished flow of those sizes; if `unfinished`, also what the others have had so far."""
        f, seen = self.flows, self.observation
        mask = fct.of_size(f.size, smaller_than, larger_than)
        mask &= (f.start < seen.now) if unfinished else seen.finished
        end = np.where(seen.finished, seen.finish, seen.now)
        got = np.where(seen.finished, f.size, seen.received)
        rates = throughput.rate(got[mask], (end - f.start)[mask])
        return fct.Distribution(rates[np.isfinite(rates)], rule)

    def by_size(self, *, edges=DECADES, rule="nearest_rank") -> list:
        """(above, up to, completion times) for each bin of sizes; see `weft.metrics.fct.by_size`."""
        f = self.flows
        return fct.by_size(f.size, f.start, self.observation.finish, edges=edges, rule=rule)

    def per_destination(self) -> np.ndarray:
        """Payload b/s of each destination while it had flows coming in."""
        f, seen = self.flows, self.observation
        return throughput.busy_average(f.dst, f.start, seen.finish, seen.received, seen.now, f.nodes)

    def summary(self, *, short=SHORT, long=LONG, rule="nearest_rank") -> dict:
        """The run as one JSON object: plain data, None for what does not exist, never NaN."""
        seen, f = self.observation, self.flows
        classes = {"all": {}, "short": {"smaller_than": short}, "long": {"larger_than": long}}
        finished = int(seen.finished.sum())
        wall, peak = self.provenance.get("wall_s"), self.provenance.get("peak_rss_bytes")
        slow = None
        if self.ideal is not None:
            ratios = {name: self.slowdown(**sizes, rule=rule) for name, sizes in classes.items()}
            slow = {name: found.summary() for name, found in ratios.items() if found is not None}
        times = self.fct(rule=rule)
        whole = {
            "fabric": self.fabric,
            "workload": self.workload,
            "seed": self.seed,
            "fingerprint": seen.fingerprint,
            "partial": self.partial,
            "finished": finished,
            "unfinished": len(f) - finished,
            "simulated_ns": seen.now / ns,
            "flows": {name: int(fct.of_size(f.size, **sizes).sum()) for name, sizes in classes.items()},
            "offered": self.offered,
            "fct_us": {
                "first": times.min / us,
                "last": times.max / us,
                **{name: self.fct(**sizes, rule=rule).summary(us) for name, sizes in classes.items()},
            },
            "slowdown": slow,
            "goodput_gbps": {
                "long": {"mean": self.goodput(larger_than=long).mean / Gbps},
                "long_with_unfinished": {"mean": self.goodput(larger_than=long, unfinished=True).mean / Gbps},
            },
            "throughput": self.throughput,
            seen.unit: seen.carried,
            "queue": {"unit": seen.unit, **vars(seen.queue)},
            "lost": {"unit": seen.unit, "total": seen.lost.total, **vars(seen.lost)},
            **{name: section for name, section in seen.sections.items() if name not in COMMON},
            "monitors": seen.monitors,
            "rate": _rate(seen.work, wall),
            "wall_s": wall,
            "cpu_s": self.provenance.get("cpu_s"),
            "peak_rss_mb": None if peak is None else peak / MB,
            "notes": [*self.notes, *self._own_notes(long)],
        }
        return plain(whole)

    def after(self, warmup: int) -> "Result":
        """The result without the flows that start before `warmup` ps; throughput stays that of the whole run."""
        if warmup <= 0:
            return self
        f, seen = self.flows, self.observation
        kept = np.flatnonzero(f.start >= warmup)
        columns = {name: getattr(f, name)[kept] for name in ("id", "src", "dst", "size", "start", "klass")}
        left_out = f"{len(f) - len(kept):,} flows that started before {show_time(warmup)} are left out as warm-up"
        return replace(
            self,
            flows=Flows(**columns, nodes=f.nodes),
            observation=replace(seen, finish=seen.finish[kept], received=seen.received[kept]),
            ideal=None if self.ideal is None else self.ideal[kept],
            notes=(*self.notes, left_out),
        )

    def to_arrow(self):
        """The flows as a `pyarrow.Table`: the columns of flows.parquet, and `fct_ps` (-1: unfinished)."""
        import pyarrow as pa

        times = fct.times(self.flows.start, self.observation.finish)
        return pa.table({**self._flow_columns(), "fct_ps": times})

    def to_pandas(self):
        """The same as a `pandas.DataFrame`, where pandas is installed."""
        return to_pandas(self.to_arrow())

    def plot(self, kind="fct", **options):
        """A picture: "fct", a map ("heat", "links", "queues"), or a time series, such as "throughput" or "live"."""
        if kind == "fct":
            return _report("plots").fct_cdf(self, **options)
        series = _report("series")
        if kind in series.MAPS:
            return getattr(series, kind)(self, **options)
        return series.series(self, show=kind, **options)

    def _repr_html_(self):  # a notebook shows the result as a table
        return _report("html").result_table(self)

    def row(self, **options) -> dict:
        """The summary as one flat dict with dotted keys (`fct_us.short.p99.9`), a row of a table of runs."""
        return flatten(self.summary(**options))

    @staticmethod
    def check_place(folder) -> None:
        """Raise, before a run, the sentence that `save(folder)` would raise after it; remove what killed ones left."""
        place = check(folder, ours=is_result)
        tidy(place.parent, place.name, f"{place.name}.checkpoint")

    def save(self, folder) -> None:
        """Write the result folder, whole or not at all; an older result there is swapped out in one step."""
        with replaced(folder, ours=is_result, files=FILES) as fresh:
            _write_table(fresh / "flows.parquet", self._flow_columns())
            _write_table(fresh / "samples.parquet", self.observation.samples)
            _write_json(fresh / "result.json", {**self.summary(), "observed": self._observed()})
            _write_json(fresh / "provenance.json", self.provenance)

    @classmethod
    def load(cls, folder) -> "Result":
        """Read a result folder back; if it is replaced meanwhile, the new one."""
        folder = Path(folder)
        while True:
            before = _identity(folder)
            try:
                result = cls._read(folder)
            except BadResult:
                if _identity(folder) == before:
                    raise
                continue
            if _identity(folder) == before:
                return result

    @classmethod
    def _read(cls, folder):
        if not os.path.isdir(folder):
            there = "a file" if exists(folder) else "missing"
            raise BadResult(f"{folder} must be a result folder, not {there}")
        result, provenance = _read_objects(folder)
        columns, samples = _read_table(folder, "flows.parquet"), _read_table(folder, "samples.parquet")
        try:
            seen = result["observed"]
            unit = result["lost"]["unit"]
            _check_kinds(folder / "result.json", {unit: result[unit]}, {unit: dict})
            _check_flows(folder / "flows.parquet", columns, provenance["nodes"])
            table = Flows(**{ours: columns[theirs] for ours, theirs in _NAMES.items()}, nodes=provenance["nodes"])
            observation = Observation(
                finish=columns["finish_ps"],
                received=columns["received"],
                now=seen["now_ps"],
                unit=unit,
                carried=result[unit],
                queue=Queue(**{name: result["queue"][name] for name in ("max", "max_bytes", "max_node")}),
                lost=Lost(causes=result["lost"]["causes"], flows=result["lost"]["flows"]),
                sections=seen["sections"],
                monitors=result["monitors"],
                fingerprint=result["fingerprint"],
                samples=samples,
                work=seen["work"],
                notes=(),
            )
            return cls(
                fabric=provenance["fabric"],
                workload=provenance["workload"],
                seed=provenance["seed"],
                flows=table,
                observation=observation,
                offered=result["offered"],
                throughput=result["throughput"],
                notes=tuple(seen["notes"]),
                provenance=provenance,
                ideal=columns.get("ideal_ps"),
                partial=result["partial"],
            )
        except (KeyError, TypeError) as missing:
            raise BadResult(f"{folder} must be a whole result, not one without {missing}") from None
        except ValueError as problem:
            raise BadResult(f"{folder} must be a whole result: {problem}") from None

    def _flow_columns(self):
        f, seen = self.flows, self.observation
        columns = {
            "flow": f.id, "src": f.src, "dst": f.dst, "bytes": f.size, "start_ps": f.start, "finish_ps": seen.finish,
            "class": f.klass, "received": seen.received,
        }  # fmt: skip
        return columns if self.ideal is None else {**columns, "ideal_ps": self.ideal}

    def _observed(self):
        seen = self.observation
        return plain({"now_ps": seen.now, "sections": seen.sections, "work": seen.work, "notes": self.notes})

    def _own_notes(self, long):
        f, seen = self.flows, self.observation
        if self.partial:
            yield f"the run was interrupted at {show_time(seen.now)} of simulated time"
        late = ~seen.finished
        if late.any():
            cut = int((late & (f.size >= long)).sum())
            yield (
                f"{int(late.sum())} of {len(f)} flows, {cut} of them long, had not finished at {show_time(seen.now)} "
                "and are in no completion time or slowdown"
            )


def _report(name):
    """A module of `weft.report`, which knows results and is not known here: only a user's call reaches up."""
    return import_module(f"weft.report.{name}")


def to_pandas(table):
    """An Arrow table as a `pandas.DataFrame`; a sentence where there is no pandas."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise WeftError("to_pandas needs pandas, which is not installed here: `pip install pandas`") from None
    return table.to_pandas()


def _identity(folder):
    """What changes when another folder takes the name."""
    try:
        seen = folder.stat()
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino, seen.st_ctime_ns


def is_result(folder) -> bool:
    """Whether `folder` holds a result of weft, complete or not readable in every part."""
    try:
        data = json_object(Path(folder) / "provenance.json")
    except WeftError:
        return False
    return "weft" in data and exists(Path(folder) / "result.json")


def flatten(data: dict, prefix: str = "") -> dict:
    """A nested dict as one level with dotted keys; lists stay as they are."""
    flat = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _rate(work, wall):
    """Work per second; a fabric that knows how long its kernel ran, without compiling it, says so as "seconds"."""
    wall = work.get("seconds") or wall
    done = {name: amount for name, amount in work.items() if name not in ("stepped", "seconds")}
    per_second = {f"{name}_per_s": amount / wall if wall else None for name, amount in done.items()}
    slots = work.get("node_slots")
    fraction = work["stepped"] / slots if slots and "stepped" in work else None
    return {"node_slots_per_s": None, **per_second, "stepped_fraction": fraction}


def _sections(workload, fabric, flows, released, seen) -> dict:
    """What a workload has to say of a run beyond its flows: requests, collectives."""
    say = getattr(workload, "sections", None)
    return {} if say is None else _summed_up(say(fabric, flows, released, seen.finish))


def _summed_up(section: dict) -> dict:
    """Arrays of times in a workload's section as their statistics."""
    told = {}
    for name, value in section.items():
        if isinstance(value, dict):
            told[name] = _summed_up(value)
        else:
            told[name] = Distribution(value).summary(us) if isinstance(value, np.ndarray) else value
    return told


def _unknown(flows):
    """The shortest possible times of a fabric that knows none."""


def _offered(fabric, workload, flows):
    """Load as asked for and as drawn. R of L = F/(R N tau) is the workload's `load_rate`, else the fabric's link."""
    reference = getattr(workload, "load_rate", None) or getattr(fabric, "link", None)
    endless = bool((flows.size >= ENDLESS).any())  # then the sizes say nothing about what is asked for
    rate = None if endless else flows.offered_rate()
    return {
        "nominal_load": getattr(workload, "load", None),
        "realised_load": None if rate is None or not reference else rate / reference,
        "load_rate_gbps": reference / Gbps if reference else None,
        "rate_gbps": None if rate is None else rate / Gbps,
        "bytes": None if endless else flows.bytes,
    }


def _write_json(path, data):
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8", "backslashreplace"))  # a byte of a path that is no text: \udcff


def read_summary(folder) -> dict:
    """The summary in a result folder, as it was saved."""
    data, _ = _read_objects(Path(folder))
    data.pop("observed")
    return data


def is_whole(folder) -> bool:
    """Whether a result lies there with all its files, and not a partial one; tables are not read to the end."""
    folder = Path(folder)
    try:
        data, _ = _read_objects(folder)
        return not data["partial"] and all(_ends_well(folder / name) for name in FILES[:2])
    except (WeftError, OSError):
        return False


def _ends_well(path) -> bool:
    """Whether a file begins and ends as Parquet does."""
    with open(path, "rb") as file:
        first = file.read(4)
        file.seek(-8, os.SEEK_END)
        length, last = int.from_bytes(file.read(4), "little"), file.read(4)
        return first == last == b"PAR1" and length <= file.tell() - 12


def _read_objects(folder) -> tuple[dict, dict]:
    """(result.json, provenance.json) of a folder, checked once and for all."""
    provenance, result = _read_json(folder, "provenance.json"), _read_json(folder, "result.json")
    form = provenance.get("format")
    if form != FORMAT:
        raise BadResult(
            f"{folder} must be a result of format {FORMAT}, which this version of weft writes, not {form!r}: "
            "run it again"
        )
    _check_kinds(folder / "provenance.json", provenance, _PROVENANCE)
    _check_kinds(folder / "result.json", result, _RESULT)
    _check_kinds(folder / "result.json", result.get("observed", {}), _OBSERVED)
    known = {key: kind for key, kind in schema.MAYBE.items() if key in provenance}
    for name, problems in (
        ("result.json", [*schema.differences("", result, {"observed": OBSERVED}), *schema.problems(result)]),
        ("provenance.json", schema.differences("", provenance, {**schema.PROVENANCE, **known})),
    ):
        for problem in problems:
            gone = problem.removesuffix(" must be there")
            if gone != problem:
                raise BadResult(f"{folder} must be a whole result, not one without {gone.rpartition('.')[2]!r}")
            raise BadResult(f"{folder / name}: {problem}")
    if not (0 <= provenance["nodes"] < 2**31 and 0 <= provenance["seed"] < 2**63):
        raise BadResult(f"{folder / 'provenance.json'} must have nodes and a seed that a run can have")
    return result, provenance


def _read_json(folder, name):
    try:
        return json_object(folder / name, error=BadResult)
    except BadResult:
        if not exists(folder / name):
            raise BadResult(f"{folder} must be a result folder, not one without {name}") from None
        raise


_PROVENANCE = {"fabric": dict, "workload": dict, "seed": int, "nodes": int}
_RESULT = {
    "observed": dict, "monitors": dict, "fingerprint": str, "offered": dict, "partial": bool, "throughput": dict,
    "queue": dict, "lost": dict,
}  # fmt: skip
_OBSERVED = {"now_ps": int, "sections": dict, "work": dict, "notes": list}
_SAID = {dict: "an object", int: "a whole number", str: "a text", bool: "true or false", list: "a list"}


def _check_kinds(path, data, kinds):
    """Raise a sentence if a value of the JSON object is not of its kind; what is missing is said elsewhere."""
    for key, kind in kinds.items():
        value = data.get(key, kind())
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadResult(f"{path} must have {_SAID[kind]} as its {key}, not {value!r:.40}")


def _write_table(path, columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, column in columns.items():
        column = np.ascontiguousarray(column)
        array = pa.array(column.reshape(-1))
        arrays[name] = array if column.ndim == 1 else pa.FixedSizeListArray.from_arrays(array, column.shape[1])
    with open(path, "wb") as file:  # Arrow takes no path that is not UTF-8
        pq.write_table(pa.table(arrays), file, compression="zstd", write_page_checksum=True)


def _check_flows(path, columns, nodes):
    """Raise a sentence unless the columns are those of a table of flows."""
    limits = {
        "flow": (-(2**63), 2**63 - 1), "src": (0, nodes - 1), "dst": (0, nodes - 1), "bytes": (0, ENDLESS),
        "start_ps": (0, LATEST), "class": (0, 127), "finish_ps": (-1, 2**62), "received": (0, ENDLESS),
    }  # fmt: skip
    if "ideal_ps" in columns:
        limits["ideal_ps"] = (0, 2**62)
    for name, (low, high) in limits.items():
        column = columns[name]
        if column.ndim != 1:
            raise BadResult(f"{path} must have one number a row as {name}")
        if column.size and not low <= int(column.min()) <= int(column.max()) <= high:
            raise BadResult(f"{path} must have a {name} from {low} to {high} in every row")


def _read_table(folder, name):
    import pyarrow as pa

    if not exists(folder / name):
        raise BadResult(f"{folder} must be a result folder, not one without {name}")
    try:
        table = parquet(folder / name, "Parquet", error=BadResult)
    except BadResult:
        raise BadResult(f"{folder / name} must be Parquet, not something that cannot be read") from None
    if len(set(table.column_names)) < table.num_columns:
        raise BadResult(f"{folder / name} must have every column once, not {', '.join(table.column_names)}")
    columns = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        kind = column.type.value_type if isinstance(column, pa.FixedSizeListArray) else column.type
        inner = column.flatten() if isinstance(column, pa.FixedSizeListArray) else column
        if not pa.types.is_signed_integer(kind) or column.null_count or inner.null_count:
            raise BadResult(f"{folder / 'its tables'} must have a whole number in every row of {name}")
        if isinstance(column, pa.FixedSizeListArray):
            columns[name] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return columns
