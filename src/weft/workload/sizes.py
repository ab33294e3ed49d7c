"""Flow-size distributions, each with its source; drawn with operations that give the same bytes on every machine.

`sizes` reads the names used at the command line: `pareto`, `pareto:shape=1.1,mean=50KB`, `fixed:20KB`, `websearch`,
`path/to/cdf.csv`. A distribution prints as the name that it is read from.
"""

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from os.path import isdir, isfile
from typing import Any, cast

import numpy as np

from weft import random, reading
from weft.errors import BadInput, require
from weft.units import GB, KB, Size, param, parse_size, show_size
from weft.workload.flows import ENDLESS


class Sizes:
    """What every distribution answers: `draw`, `mean`, `effective_mean`, `citation`, and the name it is read from."""

    citation = ""
    mean: Any  # bytes; a field where it is given, a property where it follows

    def draw(self, words: np.ndarray) -> np.ndarray:
        """(f,) int64 bytes, one for each random word."""
        raise NotImplementedError  # derived classes say it

    def effective_mean(self) -> float:
        """Mean of what is drawn, in bytes; differs from `mean` where a distribution is truncated."""
        return float(self.mean)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader of results drawn from this distribution should see."""
        return ()

    def __str__(self) -> str:
        name = type(self).__name__.lower()
        return name + ":" + ",".join(f"{f.name}={_spell(getattr(self, f.name))}" for f in fields(cast(Any, self)))


@dataclass(frozen=True)
class Fixed(Sizes):
    """Every flow the same size."""

    size: Size = param(20 * KB, "bytes of every flow")

    def __post_init__(self):
        _check_size("size", self.size)

    @property
    def mean(self) -> float:
        return float(self.size)

    def draw(self, words: np.ndarray) -> np.ndarray:
        return np.full(len(words), self.size, np.int64)


@dataclass(frozen=True)
class Uniform(Sizes):
    """Every whole number of bytes from `low` to `high` equally likely."""

    low: Size = param(1 * KB, "smallest flow")
    high: Size = param(100 * KB, "largest flow")

    def __post_init__(self):
        _check_size("low", self.low)
        _check_size("high", self.high)
        require(self.low <= self.high, "high", f"at least low, {self.low}", self.high)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    def draw(self, words: np.ndarray) -> np.ndarray:
        fraction = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return self.low + (fraction * float(self.high - self.low + 1)).astype(np.int64)


@dataclass(frozen=True)
class Exponential(Sizes):
    """Exponential sizes, rounded to whole bytes and never below one."""

    mean: Size = param(100 * KB, "mean flow size")

    def __post_init__(self):
        _check_size("mean", self.mean)
        require(self.mean <= ENDLESS // 64, "mean", f"at most {ENDLESS // 64} bytes", self.mean)

    def draw(self, words: np.ndarray) -> np.ndarray:
        return _bytes(-random.ln(random.unit(words)) * float(self.mean))


@dataclass(frozen=True)
class Pareto(Sizes):
    """Pareto sizes: P(size > x) = (scale / x) ** shape, with the scale that gives the mean.

    With a shape near 1 most of the mean is due to flows so rare that no run contains them. A draw beyond `truncate`
    becomes `truncate`, which leaves every smaller draw as it was; `effective_mean` is the mean after that. The
    default of 10 GB is beyond what 10^6 draws of the default law usually reach (one run in five goes past it) and
    keeps a single flow under a second at 100 Gbps.
    """

    shape: float = param(1.05, "tail exponent, above 1")
    mean: Size = param(100 * KB, "nominal mean flow size, before truncation")
    truncate: Size = param(10 * GB, "largest flow; a larger draw becomes this")

    citation = (
        "Shoal (Shrivastav et al., NSDI 2019), section 7.3: shape 1.05, mean 100 KB; the truncation is ours, "
        "the paper states none."
    )

    def __post_init__(self):
        require(1 < self.shape <= 100, "shape", "above 1 and at most 100", self.shape)
        _check_size("mean", self.mean)
        _check_size("truncate", self.truncate)
        require(self.truncate >= self.scale, "truncate", f"at least the scale, {self.scale:.6g} bytes", self.truncate)

    @property
    def scale(self) -> float:
        """Smallest size, in bytes: mean (shape - 1) / shape."""
        return self.mean * (self.shape - 1.0) / self.shape

    def effective_mean(self) -> float:
        """Mean after truncation, in bytes: mean (1 - (scale / truncate) ** (shape - 1) / shape)."""
        tail = random.exp(random.ln(np.asarray(self.scale / self.truncate)) * (self.shape - 1.0))
        return float(self.mean * (1.0 - tail / self.shape))

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            f"pareto sizes are truncated at {show_size(self.truncate)}: their mean is "
            f"{show_size(round(self.effective_mean()))}, the nominal one {show_size(self.mean)}",
        )

    def draw(self, words: np.ndarray) -> np.ndarray:
        drawn = self.scale * random.exp(-random.ln(random.unit(words)) / self.shape)
        return _bytes(np.minimum(drawn, float(self.truncate)))


@dataclass(frozen=True)
class Empirical(Sizes):
    """A measured distribution: points of its CDF in a csv file, joined by straight lines.

    Lines are `bytes,probability`, both ascending, the last probability 1. What lies at the first point or below is of
    the first point's size. The first line of the file is a comment that says where the points come from.
    """

    name: str = param("websearch", "one of weft's own distributions, or a csv file")

    def __post_init__(self):
        self._points  # noqa: B018  read now, while there is a sentence to say

    @cached_property
    def _points(self):
        own = files("weft.workload") / "data" / f"{self.name}.csv"
        if self.name in names():
            return _read_cdf(own.read_bytes(), f"{self.name}.csv")
        if not isfile(self.name):
            what = "a directory" if isdir(self.name) else "no such file"
            raise BadInput(f"sizes must be a file of points or one of {', '.join(known())}, not {self.name!r}: {what}")
        return _read_cdf(reading.content(self.name, "a csv file of bytes and probability"), self.name)

    @property
    def citation(self) -> str:  # type: ignore[override]
        return self._points[0]

    @property
    def size(self) -> np.ndarray:
        """(k,) float64 bytes at each point."""
        return self._points[1]

    @property
    def probability(self) -> np.ndarray:
        """(k,) float64 that a flow is at most that large."""
        return self._points[2]

    @property
    def mean(self) -> float:
        size, p = self.size, self.probability
        parts = [size[0] * p[0], *((size[1:] + size[:-1]) / 2 * np.diff(p))]
        return float(sum(map(Fraction, parts)))  # exact: the same on every machine, in whatever order it is added

    def draw(self, words: np.ndarray) -> np.ndarray:
        size, p = self.size, self.probability
        u = random.unit(words)
        k = np.searchsorted(p, u)  # p[k-1] < u <= p[k]
        below = np.maximum(k - 1, 0)
        width = np.where(k > 0, p[k] - p[below], 1.0)
        return _bytes(size[below] + (size[k] - size[below]) * ((u - p[below]) / width))

    def __str__(self) -> str:
        return self.name


DISTRIBUTIONS = {"fixed": Fixed, "uniform": Uniform, "exponential": Exponential, "pareto": Pareto}


def names() -> tuple[str, ...]:
    """Names of the measured distributions that come with weft."""
    return tuple(sorted(p.name[: -len(".csv")] for p in (files("weft.workload") / "data").iterdir()))


def known() -> tuple[str, ...]:
    """Every name that `sizes` reads."""
    return (*DISTRIBUTIONS, *names())


def sizes(text) -> Sizes:
    """The distribution called `text`: a name, a name with parameters, or a csv file; a distribution is itself."""
    if isinstance(text, Sizes):
        return text
    require(isinstance(text, str), "sizes", f"a csv file or one of {', '.join(known())}", text)
    name, _, parameters = text.partition(":")
    if name not in DISTRIBUTIONS:
        if text in names() or text.endswith(".csv") or isfile(text):
            return Empirical(text)
        raise BadInput(f"sizes must be a csv file or one of {', '.join(known())}, not {text!r}")
    law = DISTRIBUTIONS[name]
    default = {f.name: f for f in fields(law)}
    values = {}
    for position, item in enumerate(parameters.split(",") if parameters else ()):
        key, equals, value = item.partition("=")
        if not equals and position < len(default):  # fixed:20KB
            key, value = list(default)[position], item
        key = key.strip()
        require(key in default and equals + value, f"a parameter of {name}", f"one of {', '.join(default)}", item)
        values[key] = _number(key, value) if default[key].type is float else parse_size(value)
    return law(**values)


def _number(key, text) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{key} must be a number, not {text!r}") from None


def _spell(value) -> str:
    """`value` so that `sizes` reads it back exactly."""
    if isinstance(value, float):
        return repr(value)
    short = show_size(value).replace(" ", "")
    return short if parse_size(short) == value else str(value)


def _check_size(name, value):
    require(isinstance(value, int) and 1 <= value <= ENDLESS, name, f"a size from 1 to {ENDLESS} bytes", value)


def _bytes(drawn):
    """Whole bytes, at least one and at most ENDLESS, nearest to what was drawn."""
    return np.clip(np.rint(drawn), 1.0, float(ENDLESS)).astype(np.int64)


def _read_cdf(content, where):
    """(citation, bytes, probability) of a csv file's content; `where` names the file in messages."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise BadInput(f"{where} must be a csv file of bytes and probability, not binary") from None
    citation = lines[0].lstrip("# ").strip() if lines and lines[0].startswith("#") else "no citation given"
    points = []
    for number, row in reading.rows(lines, where):
        if not row or row[0].startswith("#") or [cell.strip() for cell in row] == ["bytes", "probability"]:
            continue
        place = f"{where}, line {number}:"
        try:
            size, p = (float(cell) for cell in row)
        except ValueError:
            raise BadInput(f"{place} a point must be bytes,probability, not {','.join(row)!r}") from None
        last = points[-1] if points else (0.0, 0.0)
        require(last[0] <= size <= ENDLESS, f"{place} bytes", f"from {last[0]:g}, the last point's, to {ENDLESS}", size)
        require(last[1] <= p <= 1, f"{place} probability", f"from {last[1]:g}, the last point's, to 1", p)
        points.append((size, p))
    require(points, where, "a csv file with lines of bytes,probability", "empty")
    require(points[-1][1] == 1, f"{where}: the last probability", "1", points[-1][1])
    size, p = np.array(points).T
    return citation, np.ascontiguousarray(size), np.ascontiguousarray(p)
