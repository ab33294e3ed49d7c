"""Time series of a run: cumulative counts at moments that stay evenly spaced however long the run takes.

A series begins with one row every `every` ps. When it is full, every other row goes and the interval doubles, so its
size is bounded and its moments depend on nothing but simulated time: not on the machine, nor on where a run was
resumed.
"""

import numpy as np

from weft.engine.layout import check_limits, check_shapes

ROWS = 256  # kept at most …
NUMBERS = 1 << 22  # … and as many numbers in all, for fabrics of many nodes
LEAST = 8
QUEUES = 512  # rows of `queued` at most: more than a picture can show


def bundle(names: list[str], most: int = QUEUES) -> tuple[np.ndarray, list[str]]:
    """(row of each name, names of the rows): consecutive names share a row where there are more than `most`."""
    count = len(names)
    rows = np.arange(count) * min(most, count) // max(count, 1)
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    last = np.flatnonzero(np.diff(rows, append=count))
    ends = [(names[a], names[b]) for a, b in zip(first, last, strict=True)]
    return rows, [a if a == b else f"{a} … {b}" for a, b in ends]


def sums(rows: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(count,) int64: values, which are counts, added up by their rows. A double holds such a sum exactly."""
    return np.bincount(rows, values, count).astype(np.int64)


class Series:
    """Rows of a few named counts, numbers or one array each; `time_ps` is the moment of each row."""

    def __init__(self, every: int, nodes: int):
        self.every = self.due = max(int(every), 1)  # ps between rows, and when the next one is to be written
        self.rows = max(LEAST, min(ROWS, NUMBERS // max(nodes, 1)))
        self.times: list[int] = []
        self.values: list[dict] = []

    def expect(self, end: int) -> None:
        """Begin with the interval that a run of `end` ps, or more, has in the end: the same rows stay."""
        while end // self.every >= self.rows:
            self.every *= 2
        self.due = self.every

    def add(self, moment: int, now: int, values: dict) -> None:
        """Write the row that was due by `moment`; `now` is the clock, which may be at the whole slot before."""
        if not self.times or now > self.times[-1]:
            self.times.append(int(now))
            self.values.append({name: np.array(value, np.int64) for name, value in values.items()})
        if len(self.times) > self.rows:
            self.times, self.values = self.times[::2], self.values[::2]
            self.every *= 2
        self.due = (moment // self.every + 1) * self.every

    def columns(self, now: int | None = None, last: dict | None = None) -> dict[str, np.ndarray]:
        """Column by name, `time_ps` first; with the present state as the last row, if the clock has moved on."""
        times, values = list(self.times), list(self.values)
        if now is not None and last is not None and (not times or now > times[-1]):
            times.append(now)
            values.append({name: np.array(value, np.int64) for name, value in last.items()})
        names = list(values[0]) if values else []
        return {
            "time_ps": np.array(times, np.int64),
            **{name: np.array([row[name] for row in values], np.int64) for name in names},
        }

    def freeze(self) -> dict[str, np.ndarray]:
        """The series as arrays."""
        return {"every": np.array([self.every, self.due], np.int64), **self.columns()}

    def check(self, arrays: dict[str, np.ndarray], values: dict[str, np.ndarray]) -> None:
        """Raise a sentence unless these are arrays that `freeze` gave of a series of such `values`."""
        times = arrays.get("time_ps", np.zeros(0, np.int64))
        laid = {"every": np.zeros(2, np.int64), "time_ps": np.zeros(len(times), np.int64)}
        if len(times):
            laid |= {name: np.zeros((len(times), *value.shape), np.int64) for name, value in values.items()}
        check_shapes(laid, arrays, {})
        check_limits([("every", arrays["every"], 1, 1 << 62), ("time_ps", times, 0, 1 << 62),
                      ("samples", len(times), 0, self.rows)])  # fmt: skip

    def thaw(self, arrays: dict[str, np.ndarray]) -> None:
        """Become the series that `freeze` kept."""
        self.every, self.due = arrays["every"].tolist()
        self.times = arrays["time_ps"].tolist()
        names = [name for name in arrays if name not in ("every", "time_ps")]
        self.values = [{name: arrays[name][k].copy() for name in names} for k in range(len(self.times))]
