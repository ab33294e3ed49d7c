"""compare(A, B, C): metrics of several fabrics side by side, as ratios to the first, with intervals over seeds.

What is compared may be results, folders of results or of studies, studies, or study files. Runs that differ only in
their seed are one entry. Links that are not alike, other flows under the same seed and other code are said, not hidden.
"""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weft import catalogue, links, reading
from weft.checkpoint import is_whole
from weft.errors import BadInput, BadResult, WeftError, require
from weft.metrics import fct, statistics
from weft.metrics.fct import LONG, SHORT, Distribution
from weft.metrics.result import Result, flatten, is_result
from weft.parameters import Parameter
from weft.report import keys
from weft.report.names import tell_apart
from weft.units import NOTHING, show_number, show_time

METRICS = (
    "fct_us.all.mean", "fct_us.all.p50", "fct_us.all.p90", "fct_us.all.p95", "fct_us.all.p99", "fct_us.short.p99",
    "fct_us.long.mean", "slowdown.all.p50", "slowdown.all.p99", "goodput_gbps.long.mean",
    "throughput.per_destination_gbps.mean", "unfinished",
)  # fmt: skip
BOUND = "ideal switch"
CLASSES = {"all": {}, "short": {"smaller_than": SHORT}, "long": {"larger_than": LONG}}


@dataclass(eq=False)
class Entry:
    """What is compared: the runs of one fabric under one workload, by seed."""

    called: str  # the fabric
    results: dict[int, Result]
    fabric: Any = None  # the description, where its class is there
    base: "Entry | None" = None  # what it is held against; None for itself
    rows: dict[int, dict] = field(default_factory=dict)
    under: str = ""  # the workload, where there are several

    @property
    def name(self) -> str:
        """The fabric, and the workload where there are several."""
        return f"{self.called}, {self.under}" if self.under else self.called

    @property
    def first(self) -> Result:
        """One of its results."""
        return next(iter(self.results.values()))

    def values(self, key) -> dict[int, float | None]:
        """A metric by seed."""
        return {seed: row.get(key) for seed, row in self.rows.items()}

    def flows(self, key) -> int:
        """Flows behind a metric, of all seeds: finished ones of its class, or all."""
        kind = next((part for part in key.split(".") if part in CLASSES), None)
        total = 0
        for result in self.results.values():
            mask = fct.of_size(result.flows.size, **CLASSES[kind or "all"])
            total += int((mask & result.observation.finished).sum() if kind else mask.sum())
        return total

    def fct(self, **sizes) -> Distribution:
        """Completion times of all seeds together."""
        every = [result.fct(**sizes).values for result in self.results.values()]
        return Distribution(np.concatenate(every))


class Comparison:
    """Entries side by side, the first of each workload being what the others are held against."""

    def __init__(self, entries: list[Entry], metrics: list[str], warnings: list[str]):
        self.entries, self.warnings = entries, warnings
        rows = [row for entry in entries for row in entry.rows.values()]
        self.metrics = [keys.find(rows, name) for name in metrics] if metrics else _usual(rows)

    def __repr__(self):
        return f"<comparison of {', '.join(entry.name for entry in self.entries)}>"

    def __str__(self):
        """The table and what its signs mean, as `weft compare` prints them, in lines of any length."""
        from rich.console import Console

        out = io.StringIO()
        Console(file=out, width=10_000, no_color=True).print(self.table())
        lines = [line.rstrip() for line in out.getvalue().splitlines()]
        return "\n".join([*lines, "", *self.legend(), *self.warnings])

    def estimate(self, entry: Entry, key: str) -> statistics.Estimate | None:
        """A metric of an entry over its seeds."""
        return statistics.estimate(entry.values(key).values())

    def ratio(self, entry: Entry, key: str) -> statistics.Ratio | None:
        """A metric of an entry over that of what it is held against."""
        return None if entry.base is None else statistics.ratio(entry.values(key), entry.base.values(key))

    def data(self) -> dict:
        """The comparison as plain data, as `weft compare --json` prints it."""
        return {"runs": [self._run(entry) for entry in self.entries],
                "metrics": {key: self._metric(key) for key in self.metrics}, "warnings": self.warnings}  # fmt: skip

    def _run(self, entry):
        return {
            "name": entry.name, "fabric": entry.first.fabric, "workload": entry.first.workload,
            "seeds": sorted(entry.results), "flows": entry.flows(""),
            "against": None if entry.base is None else entry.base.name,
        }  # fmt: skip

    def _metric(self, key):
        found = [self.estimate(entry, key) for entry in self.entries]
        ratios = [self.ratio(entry, key) for entry in self.entries]
        own = [entry.base is None for entry in self.entries]
        return {
            "values": [None if one is None else one.mean for one in found],
            "ratio": [1.0 if mine else one and one.ratio for one, mine in zip(ratios, own, strict=True)],
            "ci95": [one and one.ci95 for one in found],
            "sd": [one and one.sd for one in found],
            "ratio_ci95": [one and one.ci95 for one in ratios],
            "p": [one and one.p for one in ratios],
            "flows": [entry.flows(key) for entry in self.entries],
        }

    def groups(self) -> dict[str, list[Entry]]:
        """The entries by workload, in order."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.under, []).append(entry)
        return found

    def table(self):
        """The comparison for the terminal: a table per workload, a line per metric, a column per fabric."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        tables = []
        for under, entries in self.groups().items():
            table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
            if under:
                table.title = Text(("\n" if tables else "") + under, style="bold")
            table.add_column("")
            for entry in entries:
                table.add_column(entry.called, justify="right")
            for row in self.cells(entries):
                table.add_row(*row)
            tables.append(table)
        return Group(*tables)

    def cells(self, entries: list[Entry]) -> list[list[str]]:
        """The lines of a table of some entries: every metric that one of them has, then flows and seeds."""
        lines = [[keys.label(key, short=True), *(self.cell(entry, key) for entry in entries)] for key in self.metrics]
        lines = [line for line in lines if set(line[1:]) != {NOTHING}]
        lines.append(["flows, all seeds", *(show_number(entry.flows("")) for entry in entries)])
        return [*lines, ["seeds", *(show_number(len(entry.results)) for entry in entries)]]

    def cell(self, entry: Entry, key: str) -> str:
        """`12.3 ± 0.4 ×1.24*`: mean, half its 95 % interval, ratio; a star where the ratio's interval leaves out 1."""
        found, ratio = self.estimate(entry, key), self.ratio(entry, key)
        if found is None:
            return NOTHING
        text = show_number(found.mean, 4)
        if found.high is not None:
            text += f" ± {show_number(found.high - found.mean, 2)}"
        if ratio is not None:
            text += f" ×{ratio.ratio:.2f}" + ("*" if ratio.significant else "")
        return text

    def legend(self) -> list[str]:
        """What the table's signs mean, and what must be known of the comparison."""
        bases = list(dict.fromkeys(entry.base.called for entry in self.entries if entry.base is not None))
        said = [f"× is the ratio to {' or '.join(bases)}"] if bases else []
        if any(len(entry.results) > 1 for entry in self.entries):
            said.append("± is half the 95 % interval of the mean over seeds; * where that of the ratio leaves out 1")
        else:
            said.append("one seed each: no interval can be given")
        return said

    def plot(self, *, smaller_than=None, larger_than=None, tail=False, title=None):
        """Distributions of completion times over each other, flows of all seeds together."""
        from weft.report.plots import fct_cdf

        seeds = {len(entry.results) for entry in self.entries}
        note = [f"flows of {max(seeds)} seeds together"] if max(seeds) > 1 else []
        named = {entry.name: entry for entry in self.entries}
        sizes = {"smaller_than": smaller_than, "larger_than": larger_than}
        return fct_cdf(named, **sizes, tail=tail, title=title, foot="\n".join([*note, *self.warnings]) or None)

    def _repr_html_(self):
        from weft.report.html import table as html

        groups = self.groups().items()
        tables = [html([under, *(one.called for one in entries)], self.cells(entries)) for under, entries in groups]
        return "".join(tables) + html([], [], [*self.legend(), *self.warnings])


def compare(*things, names=None, metrics=None, warmup=0, bound=False, workers=1, folder=None, progress=None):
    """A `Comparison` of results, runs, studies, or the paths of folders and study files.

    names: one for each entry, instead of what sets it apart. metrics: keys of the summary, in short or in full. warmup:
    ps, or a text, before which flows do not count. bound: an ideal switch with the links of the first is run beside
    them. Studies that have to be run are, `workers` runs at a time, in `folder` if there is one.
    """
    require(things, "what is compared", "at least one folder, study or result", "nothing")
    warmup = Parameter("warmup", "time").read(warmup)
    found: list[tuple[str | None, Result]] = []
    for thing in things:
        found += _results(thing, workers, folder, progress)
    entries, warnings = _entries(found)
    if bound:
        entries += _bounds(entries)
    _name(entries, names)
    warnings += _differences(entries)
    if warmup:
        for entry in entries:
            entry.results = {seed: result.after(warmup) for seed, result in entry.results.items()}
        warnings.append(f"flows that start before {show_time(warmup)} are left out")
    for entry in entries:
        entry.rows = {seed: result.row() for seed, result in entry.results.items()}
    return Comparison(entries, list(metrics or ()), warnings)


# gathering


def _results(thing, workers, folder, progress) -> list[tuple[str | None, Result]]:
    """(name, result) of everything that `thing` stands for; a name where the user gave one."""
    from weft.study import Runs, Study

    if isinstance(thing, Result):
        return [(None, thing)]
    if isinstance(thing, str | Path) and Path(thing).suffix == ".toml":
        thing = Study.load(thing)
    if isinstance(thing, Study):
        thing = thing.run(folder, workers=workers, progress=progress)
    if isinstance(thing, Runs):
        names = [thing.study.called[point.fabric] for point in thing.study.points]
        return list(zip(names, thing.results, strict=True))
    if not isinstance(thing, str | Path):
        kinds = "a result, runs, a study, or the path of one"
        raise BadInput(f"what is compared must be {kinds}, not a {type(thing).__name__}")
    place = Path(thing)
    if is_result(place):
        return [(place.name, Result.load(place))]
    try:
        runs = sorted(one for one in (place / "runs").iterdir() if is_whole(one))
    except (OSError, ValueError):  # there is no such folder, or can be none
        runs = []
    if not runs:
        raise BadResult(f"{place} must be a result folder, a study's folder or a study file, not something else")
    known = _table(place)
    loaded = [Result.load(one) for one in runs]
    told = [known.get(result.observation.fingerprint, (len(known), None)) for result in loaded]
    order = sorted(range(len(loaded)), key=lambda k: told[k][0])
    return [(told[k][1], loaded[k]) for k in order]


def _table(place) -> dict[str, tuple[int, str]]:
    """Fingerprint -> (line, name of the fabric) from the table that a study leaves in its folder, if it has one."""
    path = place / "table.csv"
    if not reading.exists(path):
        return {}
    lines = list(
        reading.rows(io.StringIO(reading.text(path, "the table of a study", error=BadResult), newline=""), path)
    )
    names = lines[0][1] if lines else []
    if not {"fingerprint", "fabric.name"} <= set(names):
        return {}
    each = [dict(zip(names, cells, strict=False)) for _, cells in lines[1:]]
    return {row["fingerprint"]: (k, row["fabric.name"]) for k, row in enumerate(each) if row.get("fabric.name")}


def _entries(found) -> tuple[list[Entry], list[str]]:
    """Runs that differ only in their seed, together; of two with the same seed, the later counts."""
    entries: dict[str, Entry] = {}
    again = 0
    for name, result in found:
        key = json.dumps([name, result.fabric, result.workload], sort_keys=True, default=str)
        entry = entries.setdefault(key, Entry(name or "", {}, _described(result)))
        again += result.seed in entry.results
        entry.results[result.seed] = result
    for entry in entries.values():
        entry.base = next(other for other in entries.values() if other.first.workload == entry.first.workload)
    for entry in entries.values():
        entry.base = None if entry.base is entry else entry.base
    many = "1 run was" if again == 1 else f"{again} runs were"
    return list(entries.values()), [f"{many} there more than once, by other code: the last counts"] if again else []


def _described(result):
    try:
        return catalogue.rebuild_call(result.provenance)[0]
    except WeftError:  # somebody else's, which is not installed here
        return None


def _name(entries, names) -> None:
    """Give every entry a name of its own."""
    if names is not None:
        names = list(names)
        require(len(names) == len(entries), "names", f"one for each of {len(entries)} entries", len(names))
    known = [entry for entry in entries if entry.fabric is not None]
    apart = dict(zip(map(id, known), tell_apart([entry.fabric for entry in known]), strict=True))
    workloads = [entry.first.workload for entry in entries]
    several = any(one != workloads[0] for one in workloads)
    for k, entry in enumerate(entries):
        entry.called = entry.called or apart.get(id(entry)) or str(entry.first.fabric.get("kind"))
        entry.called = names[k] if names is not None else entry.called
        entry.under = _workload(entry.first.workload, workloads) if several else ""
    for name in dict.fromkeys(entry.name for entry in entries):
        same = [entry for entry in entries if entry.name == name]
        for k, entry in enumerate(same if len(same) > 1 else [], 1):
            entry.called = f"{entry.called} ({k})"


def _workload(mine, every):
    """What sets a workload apart from the others."""
    alike = [one for one in every if one.get("kind") == mine.get("kind")]
    differ = [key for key in mine if len({repr(one.get(key)) for one in alike}) > 1]
    return ", ".join([str(mine.get("kind")), *(f"{key.replace('_', ' ')} {show_number(mine[key])}" for key in differ)])


def _bounds(entries) -> list[Entry]:
    """The ideal switch under each workload, with the links of the fabric that the others are held against."""
    from weft.experiment import run

    ideal: Any = catalogue.fabric_class("ideal")
    made = []
    for entry in [entry for entry in entries if entry.base is None]:
        if entry.fabric is None or not len(entry.first.flows):
            continue
        fabric, workload = catalogue.rebuild_call(entry.first.provenance)
        have = fabric.links()
        switch = ideal(nodes=fabric.nodes, link=have["rate"], propagation=have.get("propagation", 0))
        until = entry.first.provenance.get("until")
        results = {seed: run(switch, workload, seed=seed, until=until) for seed in entry.results}
        made.append(Entry(BOUND, results, switch, entry))
    return made


def _differences(entries) -> list[str]:
    """Sentences on what else than the fabric is not the same."""
    said = links.differences([(entry.called, entry.fabric) for entry in entries if entry.fabric is not None])
    for entry in entries:
        if entry.base is None:
            continue
        base = entry.base
        if entry.first.workload != base.first.workload:
            said.append(f"workload differs: {entry.name} and {base.name}")
        shared = sorted(entry.results.keys() & base.results.keys())
        if not shared:
            said.append(f"seeds differ: {entry.name} and {base.name} have none in common")
        drawn = [[one.results[seed].provenance.get("flows") for seed in shared] for one in (entry, base)]
        if drawn[0] != drawn[1]:
            said.append(f"flows differ: {entry.name} and {base.name} drew others from the same seed")
    for entry in entries:
        if any(result.partial for result in entry.results.values()):
            said.append(f"a run of {entry.name} was interrupted")
    versions = {str(result.provenance.get("weft")) for entry in entries for result in entry.results.values()}
    if len(versions) > 1:
        said.append(f"versions of weft differ: {', '.join(sorted(versions))}")
    return said


def _usual(rows) -> list[str]:
    """The metrics that are shown unless told: those that some run has; unfinished flows where there are any."""
    flat = [flatten(row) for row in rows]
    some = [key for key in METRICS if any(row.get(key) is not None for row in flat)]
    return [key for key in some if key != "unfinished" or any(row[key] for row in flat)]
