"""The papers' figures, one module each: what was run, what came out, and what the paper says of it.

A figure is a module with `study(scale)`, the runs; `measure(runs)`, a table of them; `draw(table)`, the picture;
`COLUMNS`, what is printed of the table; `SERIES`, the lines in it; and `CLAIMS`, the sentences that the paper draws
from the figure, each with a check of the table. `weft figure`, the pages and `verification/` all use these. Where
no study describes what is run, or nothing is, there is `table(scale)` in place of the first two; if anything in it is
drawn, it takes a `seed`.

A claim's verdict is one word:

- *reproduced*: the printed number or trend comes out, at the paper's scale and under its conditions;
- *consistent*: it comes out, but on a smaller rack, or under a choice that the paper leaves open;
- *differs*: it does not, and the page says by how much and, as far as we know, why;
- *not resolved*: the interval over the seeds holds the printed number and others that would differ from it;
- *printed*: nothing of it is ours: the numbers held against the sentence are the paper's own;
- *fitted*: a value of ours was set by the very numbers that it is held against;
- *not run*: it needs something that this figure does not run.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from weft.errors import BadInput, require
from weft.papers import several
from weft.papers.fpga import FIGURES as FPGA
from weft.papers.fpga import tabulate

SCALES = ("small", "paper")
VERDICTS = ("reproduced", "consistent", "differs", "not resolved", "printed", "fitted", "not run")
MODULES = {
    "shoal/9": "shoal.fig09",
    "shoal/10": "shoal.fig10",
    "shoal/12": "shoal.fig12",
    "shoal/13": "shoal.fig13",
    "shoal/14": "shoal.fig14",
    "shoal/15": "shoal.fig15",
    "shoal/16": "shoal.fig16",
    "shoal/17": "shoal.fig17",
    "shoal/18": "shoal.fig18",
    "shoal/table1": "shoal.table1",
    "shoal/repair": "shoal.repair",
    "shoal/readings": "shoal.readings",
    "shoal/baselines": "shoal.baselines",
    "shoal/epochs": "shoal.epochs",
    "shoal/fairness": "shoal.fairness",
    "stardust/7": "stardust.fig07",
    "stardust/8": "stardust.fig08",
    "stardust/9": "stardust.fig09",
    "stardust/10a": "stardust.fig10a",
    "stardust/10b": "stardust.fig10b",
    "stardust/10c": "stardust.fig10c",
    "stardust/12": "stardust.fig12",
    "stardust/incast": "stardust.incast",
    "stardust/single": "stardust.single",
    "stardust/nic": "stardust.nics",
    "merchant/11": "merchant.fig11",
    "merchant/overhead": "merchant.overhead",
    "merchant/cutthrough": "merchant.cutthrough",
    "merchant/growth": "merchant.growth",
    "merchant/wiring": "merchant.wiring",
    "merchant/permutation": "merchant.permutation",
    "tdma/pause": "tdma.pause",
    "tdma/spread": "tdma.spread",
    "tdma/7": "tdma.fig07",
    "tdma/8": "tdma.fig08",
    "tdma/9": "tdma.rtt",
    "tdma/10": "tdma.fig10",
    "tdma/11": "tdma.fig11",
    "tdma/12": "tdma.oscillation",
    "weft/allreduce": "weft.allreduce",
    "weft/seeds": "weft.seeds",
    "weft/map": "weft.map",
    **{f"fpga/{name}": f"fpga.{name}" for name in FPGA},
}


class Series(NamedTuple):
    """Lines of a picture: `y` against `x`, one for each value of `by`, or just one; all are columns of the table."""

    x: str
    y: str
    by: str | None = None


class Claim(NamedTuple):
    """A sentence of the paper, and a check of the figure's table against it.

    The check returns (holds, what we measured); holds is True, False, or one of the verdicts. A claim that is `scaled`
    is about the paper's rack: on a smaller one it can at best be consistent.
    """

    id: str
    statement: str
    check: Callable[[list], tuple]
    scaled: bool = True


class Answer(NamedTuple):
    """What a figure came to."""

    figure: str
    scale: str
    module: ModuleType
    table: list  # a dict per row; of several seeds, their means
    fingerprints: list
    seeds: tuple = ()  # those that were asked for
    tables: tuple = ()  # a table for each of them, or one if the figure pools them

    @property
    def claims(self) -> list[dict]:
        """The claims with what we measured: {"id", "printed", "ours", "verdict"}; of several seeds, what all say."""
        found = self.tables or (self.table,)
        return [
            several.agree([judge(claim, table, self.scale) for table in found], self.seeds[: len(found)] or (None,))
            for claim in self.module.CLAIMS
        ]

    @property
    def spread(self) -> list[dict]:
        """For each row, half of the 95 % interval of the means that the seeds differ in."""
        return several.spread(list(self.tables)) if len(self.tables) > 1 else [{} for _ in self.table]

    @property
    def series(self) -> list[dict]:
        """The lines of the picture as numbers: {"name", "x", "y", "points": [[x, y], …]}; rows without a y left out."""
        named = getattr(self.module, "SERIES", None)
        if named is None:  # the tables of the FPGA paper have several lines of several kinds: the rows are the series
            return [{column: row.get(column) for column in self.module.COLUMNS} for row in self.table]
        lines: dict[tuple, list] = {}
        for kind in named:
            for row in self.table:
                if row.get(kind.x) is not None and row.get(kind.y) is not None:
                    name = row[kind.by] if kind.by else kind.y
                    points = lines.setdefault((name, kind.x, kind.y), [])
                    points.append([row[kind.x], row[kind.y]])
        return [{"name": name, "x": x, "y": y, "points": points} for (name, x, y), points in lines.items()]

    def data(self) -> dict:
        """The answer as one JSON object."""
        return {
            "figure": self.figure,
            "scale": self.scale,
            "series": self.series,
            "claims": self.claims,
            "fingerprints": self.fingerprints,
            **({"seeds": list(self.seeds), "spread": self.spread} if self.seeds else {}),
        }


def judge(claim, table, scale) -> dict:
    """Hold a claim against a table."""
    holds, ours = claim.check(table)
    verdict = {True: "reproduced", False: "differs"}.get(holds, holds)
    if verdict == "reproduced" and scale != "paper" and getattr(claim, "scaled", False):
        verdict = "consistent"
    return {"id": claim.id, "printed": claim.statement, "ours": ours, "verdict": verdict}


def at_paper_scale(scale) -> bool:
    """Whether `scale` is the paper's; raises unless it is one of the two there are."""
    require(scale in SCALES, "scale", "small or paper", scale)
    return scale == "paper"


def figure(name):
    """The module of the figure called `name`, such as shoal/12."""
    if name not in MODULES:
        raise BadInput(f"a figure must be one of {', '.join(MODULES)}, not {name!r}")
    return import_module(f"weft.papers.{MODULES[name]}")


def answer(name, scale="small", folder=None, *, seeds=None, workers=1, on=None, progress=None) -> Answer:
    """Run what is missing of a figure and measure it; runs are kept in `folder`, if there is one.

    `on` is that of `Study.run`: a cluster, or the GPU of this machine. `seeds` are others than the figure's own
    (`weft.papers.several`).
    """
    module = figure(name)
    at_paper_scale(scale)
    if folder is not None and Path(folder).is_file():
        raise BadInput(f"{folder} must be a folder, not a file")
    if hasattr(module, "table"):  # counted or computed, or made of runs that no study describes
        if seeds is None:
            return Answer(name, scale, module, module.table(scale), [])
        if "seed" not in inspect.signature(module.table).parameters:
            several.refuse(name)
        return _answer(name, scale, module, [module.table(scale, seed=seed) for seed in seeds], [], seeds)
    running = {"workers": workers, "on": on, "progress": progress}
    if name.startswith("fpga/"):
        drawn = [{}] if seeds is None else [{"seed": seed} for seed in seeds]
        found = [tabulate(module, scale, folder=folder, **seed, **running) for seed in drawn]
        return _answer(name, scale, module, found, _fingerprints(found), seeds)
    if seeds is not None:
        return _answer(name, scale, module, *several.tables(module, scale, seeds, folder, **running), seeds)
    runs = module.study(scale).run(folder, **running)
    return Answer(name, scale, module, module.measure(runs), [row["fingerprint"] for row in runs.rows])


def _fingerprints(tables) -> list[str]:
    return [row["fingerprint"] for table in tables for row in table if "fingerprint" in row]


def _answer(name, scale, module, found, fingerprints, seeds) -> Answer:
    """The answer of one table, or of several."""
    table = found[0] if len(found) == 1 else several.mean(found)
    return Answer(name, scale, module, table, fingerprints, tuple(seeds or ()), tuple(found) if seeds else ())
