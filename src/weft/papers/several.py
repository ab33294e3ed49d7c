"""A figure under several seeds: every seed measured and judged apart, then put side by side.

A table of means would hide what the seeds disagree on, and a check of it would be a verdict on runs that nobody made.
So each seed has its own table and its own verdicts. What is printed are means with half of their 95 % interval; a claim
has a verdict if all seeds give it. Figures that take several seeds by themselves pool them (`Study.seeds` of theirs has
more than one) and are measured once.
"""

import inspect
import math
from dataclasses import replace

from weft.errors import BadInput, WeftError, require
from weft.metrics.statistics import estimate
from weft.study import Runs

RUN = "fingerprint"  # the word of a row that is another under every seed
GOOD = ("reproduced", "consistent")  # the second is what is left where seeds disagree on which of the two


def tables(module, scale, seeds, folder=None, **running) -> tuple[list[list[dict]], list[str]]:
    """A table for each seed, or one for all of a figure that pools them; and the fingerprints of the runs."""
    fewest = getattr(module, "FEWEST_SEEDS", 1)  # of which it can say what it says
    require(len(seeds) >= fewest, "seeds", f"at least {fewest}, of whose spread this figure speaks", len(seeds))
    if "seed" in inspect.signature(module.study).parameters:  # what is run depends on the seed
        runs = [module.study(scale, seed=seed).run(folder, **running) for seed in seeds]
        return [module.measure(one) for one in runs], _prints(runs)
    study = module.study(scale)
    runs = replace(study, seeds=seeds).run(folder, **running)
    if len(study.seeds) > 1:
        return [module.measure(runs)], _prints([runs])
    return [module.measure(_of(runs, seed)) for seed in runs.study.seeds], _prints([runs])


def _of(runs, seed) -> Runs:
    """Those of one seed, as a study of its own."""
    kept = [run for run, point in zip(runs.runs, runs.study.points, strict=True) if point.seed == seed]
    return Runs(replace(runs.study, seeds=[seed]), kept, runs.folder)


def _prints(several) -> list[str]:
    return [row["fingerprint"] for runs in several for row in runs.rows]


def mean(found: list[list[dict]]) -> list[dict]:
    """The tables as one: numbers are means over the seeds, and what is no number is the first seed's."""
    return [{key: _mean([row.get(key) for row in rows]) for key in rows[0]} for rows in _aligned(found)]


def spread(found: list[list[dict]]) -> list[dict]:
    """For each row, half of the 95 % interval of each number that the seeds differ in."""
    rows = ({key: _half([row.get(key) for row in same]) for key in same[0]} for same in _aligned(found))
    return [{key: half for key, half in row.items() if half} for row in rows]


def _aligned(found):
    """Rows that belong together: as many in each table, and the same words in each."""
    if len({len(table) for table in found}) > 1:
        raise WeftError(f"tables of several seeds must have as many rows, not {[len(table) for table in found]}")
    for rows in zip(*found, strict=True):
        words = [{k: value for k, value in row.items() if isinstance(value, str) and k != RUN} for row in rows]
        if any(one != words[0] for one in words):
            raise WeftError(f"rows of several seeds must be of the same thing, not {words}")
        yield rows


def _number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _mean(values):
    if all(isinstance(value, dict) for value in values):
        return {key: _mean([value.get(key) for value in values]) for key in values[0]}
    known = [value for value in values if value is not None]
    if not known or not all(map(_number, known)) or all(value == values[0] for value in values):
        return values[0]
    return math.fsum(known) / len(known)


def _half(values) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < 2 or not all(map(_number, known)):
        return None
    found = estimate(known)
    return found.high - found.mean if found is not None and found.sd and found.high is not None else None


def agree(judged: list[dict], seeds) -> dict:
    """One verdict of those that several seeds gave on a claim: theirs if it is one, *consistent* if some reproduce it
    and the others are consistent with it, and *not resolved* if they disagree on more."""
    verdicts = {one["verdict"] for one in judged}
    verdict = verdicts.pop() if len(verdicts) == 1 else "consistent" if verdicts <= {*GOOD} else "not resolved"
    said = "; ".join(f"seed {seed}: {one['ours']}" for seed, one in zip(seeds, judged, strict=True))
    return {**judged[0], "ours": judged[0]["ours"] if len(judged) == 1 else said, "verdict": verdict}


def refuse(name):
    """Say that nothing of a figure is drawn from a seed."""
    raise BadInput(f"seeds must be left out: {name} is computed, not run")
