"""Flows, the table of what enters a fabric: who sends how many bytes to whom, and when."""

from dataclasses import dataclass, field, fields

import numpy as np

from weft.errors import BadInput, require
from weft.units import s, show_size, show_time
from weft.workload.demand import Demand

ENDLESS = 2**46  # bytes: 70 TB, more than any run carries, small enough that a kernel may multiply it
LATEST = 2**62  # ps: 53 days; a kernel may still add to it

COLUMNS = {"src": np.int32, "dst": np.int32, "size": np.int64, "start": np.int64, "klass": np.int8, "id": np.int64}


@dataclass(frozen=True, eq=False)
class Flows(Demand):
    """A table of flows in order of their start; flows that start together keep the order they were given in.

    Built by `Flows.of`, which checks and sorts. Columns are shared, not copied: nobody writes to them. `notes` says,
    in sentences, what had to be made sense of on the way; it takes no part in comparisons.
    """

    kind = "flows"

    src: np.ndarray  # (f,) int32  sender
    dst: np.ndarray  # (f,) int32  receiver, never the sender
    size: np.ndarray  # (f,) int64  bytes, at least 1; ENDLESS for a flow that outlives the run
    start: np.ndarray  # (f,) int64  ps, ascending
    klass: np.ndarray  # (f,) int8   traffic class
    id: np.ndarray  # (f,) int64  what the user calls the flow
    nodes: int
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, *, nodes: int, src, dst, size, start, klass=None, id=None, notes=()) -> "Flows":
        """Check the columns, leave out what is no flow, sort by start, and say what was done in `notes`.

        Columns are sequences of whole numbers; `start`, `size` and `klass` may each be one number for all flows.
        `id` is a running number unless given.
        """
        require(nodes >= 2, "nodes", "at least 2", nodes)
        src, dst = _whole("src", src), _whole("dst", dst)
        count = src.size
        size, start = _whole("size", size, count), _whole("start", start, count)
        klass = _whole("class", 0 if klass is None else klass, count)
        id = np.arange(count) if id is None else _whole("flow", id)
        for name, column in (("dst", dst), ("size", size), ("start", start), ("class", klass), ("flow", id)):
            require(column.size == count, name, f"as long as src, {count} flows", column.size)

        ends = f"a node from 0 to {nodes - 1}"
        _each(id, (src >= 0) & (src < nodes), "src", ends, src)
        _each(id, (dst >= 0) & (dst < nodes), "dst", ends, dst)
        _each(id, size >= 0, "size", "at least 0 bytes", size)
        _each(id, size <= ENDLESS, "size", f"at most {ENDLESS} bytes ({show_size(ENDLESS)})", size)
        _each(id, start >= 0, "start", "at least 0 ps", start)
        _each(id, start <= LATEST, "start", f"at most {LATEST} ps ({show_time(LATEST)})", start)
        _each(id, (klass >= 0) & (klass < 128), "class", "from 0 to 127", klass)

        notes = list(notes)
        same, empty = src == dst, size == 0
        if selves := int(same.sum()):
            notes.append(f"{_flows(selves)} from a node to itself {_were(selves)} skipped")
        if nothings := int((empty & ~same).sum()):
            notes.append(f"{_flows(nothings)} of 0 bytes {_were(nothings)} skipped")
        keep = ~(same | empty)
        columns = {"src": src, "dst": dst, "size": size, "start": start, "klass": klass, "id": id}
        if not keep.all():
            columns = {name: column[keep] for name, column in columns.items()}
        if (np.diff(columns["start"]) < 0).any():
            order = np.argsort(columns["start"], kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
            notes.append("flows were sorted by start")
        return cls(
            **{name: np.ascontiguousarray(columns[name], dtype) for name, dtype in COLUMNS.items()},
            nodes=int(nodes),
            notes=tuple(notes),
        )

    def __len__(self) -> int:
        return self.src.size

    def __eq__(self, other) -> bool:
        if not isinstance(other, Flows):
            return NotImplemented
        return self.nodes == other.nodes and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not len(self):
            return f"<no flows among {self.nodes} nodes>"
        first, last = show_time(int(self.start[0])), show_time(int(self.start[-1]))
        sizes = f"{self.endless:,} of them endless" if self.endless else show_size(self.bytes)
        return f"<{_flows(len(self))} among {self.nodes} nodes, {sizes}, from {first} to {last}>"

    @property
    def table(self) -> "Flows":
        return self

    @property
    def endless(self) -> int:
        return int((self.size >= ENDLESS).sum())

    @property
    def bytes(self) -> int:
        """Sum of all sizes, exact however large."""
        return (int((self.size >> 32).sum()) << 32) + int((self.size & 0xFFFFFFFF).sum())

    @property
    def mean_gap(self) -> float | None:
        """Mean time between two arrivals in ps; None where all flows start at once."""
        span = int(self.start[-1] - self.start[0]) if len(self) else 0
        return span / (len(self) - 1) if span else None

    def offered_rate(self) -> float | None:
        """Bits per second that a node is asked to send on average while flows arrive.

        F / (N tau) with the mean size F and the mean gap tau of these very flows; None where all start at once,
        for then there is no time to divide by, or where a flow is endless.
        """
        gap = self.mean_gap
        if gap is None or (self.size == ENDLESS).any():
            return None
        return self.bytes / len(self) * 8 * s / (self.nodes * gap)

    def realised_load(self, rate: int) -> float | None:
        """Offered rate as a fraction of `rate`: the load these flows are, beside the one that was asked for."""
        offered = self.offered_rate()
        return None if offered is None else offered / rate

    def head(self, count: int) -> "Flows":
        """The first `count` flows, or all of them if there are fewer."""
        require(count >= 0, "count", "at least 0", count)
        first = {name: getattr(self, name)[:count] for name in COLUMNS}
        return Flows(**first, nodes=self.nodes, notes=self.notes)

    def to_csv(self, path) -> None:
        """Write a trace that `Trace` reads back to the picosecond."""
        from weft.workload.traces import write_csv

        write_csv(self, path)

    def to_cm(self, path) -> None:
        """Write an htsim connection matrix."""
        from weft.workload.traces import write_cm

        write_cm(self, path)

    def to_parquet(self, path) -> None:
        """Write a Parquet file with the columns of a trace."""
        from weft.workload.traces import write_parquet

        write_parquet(self, path)


assert [f.name for f in fields(Flows)][: len(COLUMNS)] == list(COLUMNS)


def _flows(count) -> str:
    return f"{count:,} flow{'s' * (count != 1)}"


def _were(count) -> str:
    return "was" if count == 1 else "were"


def _whole(name, values, count=None):
    """(f,) int64 of `values`, one number repeated `count` times if it is a single one."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim == 0 and count is not None:
        array = np.full(count, array)
    require(array.ndim == 1, name, "a column of numbers", f"an array of shape {array.shape}")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (np.abs(array) < 2.0**62).all():
        whole = array == np.rint(array)
        if not whole.all():
            raise BadInput(f"{name} must be whole numbers, not {array[np.argmin(whole)]}")
        return array.astype(np.int64)
    if array.dtype.kind == "u" and (array > LATEST).any():
        raise BadInput(f"{name} must fit 63 bits, not {array.max()}")
    if array.dtype.kind not in "iu":
        raise BadInput(f"{name} must be whole numbers of at most 63 bits, not {array.dtype}")
    return array.astype(np.int64, copy=False)


def _each(id, holds, name, must, column):
    """Raise `BadInput` naming the first flow for which `holds` does not."""
    if not holds.all():
        f = int(np.argmin(holds))
        raise BadInput(f"{name} of flow {id[f]} must be {must}, not {column[f]}")
