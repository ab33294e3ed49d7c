"""Flows, the table of what enters a fabric: who sends how many bytes to whom, and when."""

from dataclasses import dataclass, field, fields

import numpy as np

from weft.errors import BadInput, require
from weft.units import s, show_size, show_time
from weft.workload.demand import Demand

ENDLESS = 2**46  # bytes: 70 TB, more than any run carries, small enough that a kernel may multiply it
LATEST = 2**62  # ps: 53 days; a kernel may still add to it
FASTEST = 10**15  # b/s that a flow may be limited to

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
    after_first: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # (f + 1,) or none, into `after`
    after: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))  # rows of the flows that each waits for
    delay: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # (f,) or none: ps after the last of them
    group: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))  # (f,) or none: what it is a part of
    after_delay: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # as `after`, or none: ps on top
    rate: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # (f,) or none: b/s at most, 0 for no limit

    @classmethod
    def of(
        cls, *, nodes: int, src, dst, size, start, klass=None, id=None, notes=(), after=None, delay=None, group=None,
        after_delay=None, rate=None,
    ) -> "Flows":  # fmt: skip
        """Check the columns, leave out what is no flow, sort by start, and say what was done in `notes`.

        Columns are sequences of whole numbers; `start`, `size` and `klass` may each be one number for all flows.
        `id` is a running number unless given. `after` says which flows each one waits for, by their place in these
        columns: a sequence of sequences, or two arrays (offsets, places). A flow that waits starts `delay` ps after the
        last of them is done, and not before its own start; in the table it comes behind all that wait for nobody.
        `after_delay` is shaped as `after`: ps from the end of that very flow, on top of `delay`. `rate` is what the
        sender of a flow has to send, b/s on the wire, 0 for no limit: see `Fabric.limits`.
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
        columns["delay"] = _whole("delay", 0 if delay is None else delay, count)
        gaps = columns["delay"]
        _each(id, (gaps >= 0) & (gaps <= LATEST), "delay", f"from 0 to {LATEST} ps ({show_time(LATEST)})", gaps)
        columns["group"] = _whole("group", -1 if group is None else group, count)
        columns["rate"] = _whole("rate", 0 if rate is None else rate, count)
        require(columns["rate"].size == count, "rate", f"as long as src, {count} flows", columns["rate"].size)
        most = (columns["rate"] >= 0) & (columns["rate"] <= FASTEST)
        _each(id, most, "rate", f"from 0 to {FASTEST} b/s", columns["rate"])
        first, places = edges(after, count, id)
        waits = np.diff(first) > 0
        lags = _lags(after_delay, first, gaps, id)
        columns["delay"], lags = _settled(gaps, lags, first, waits)
        if places.size and not keep.all():
            lost = np.flatnonzero(~keep[places])
            if lost.size:
                waiter = np.searchsorted(first, lost[0], side="right") - 1
                raise BadInput(
                    f"flow {id[places[lost[0]]]}, which flow {id[waiter]} waits for, must be of at least 1 byte and "
                    "between two nodes"
                )
        order = np.flatnonzero(keep)
        if (np.diff(start[order]) < 0).any() or (np.diff(waits[order].astype(np.int8)) < 0).any():
            order = order[np.lexsort((start[order], waits[order]))]
            if (np.diff(start[keep]) < 0).any() and not waits.any():
                notes.append("flows were sorted by start")
        columns = {name: column[order] for name, column in columns.items()}
        more = {}
        if places.size:
            first, places, at = _renumbered(first, places, order, count)
            refuse_cycles(first, places, columns["id"])
            more = {"after_first": first, "after": places, "delay": np.ascontiguousarray(columns["delay"])}
            if lags.any():
                more["after_delay"] = lags[at]
        if group is not None:
            more["group"] = np.ascontiguousarray(columns["group"], np.int32)
        if columns["rate"].any():
            more["rate"] = np.ascontiguousarray(columns["rate"])
        return cls(
            **{name: np.ascontiguousarray(columns[name], dtype) for name, dtype in COLUMNS.items()},
            nodes=int(nodes),
            notes=tuple(notes),
            **more,
        )

    def __len__(self) -> int:
        return self.src.size

    def __eq__(self, other) -> bool:
        if not isinstance(other, Flows):
            return NotImplemented
        return self.nodes == other.nodes and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in (*COLUMNS, "after_first", "after", "delay", "group", "after_delay", "rate")
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
    def waiting(self) -> int:
        """Flows that wait for others; in the table they come last."""
        return int((np.diff(self.after_first) > 0).sum()) if self.after.size else 0

    @property
    def limited(self) -> int:
        """Flows that have a rate of their own."""
        return int(np.count_nonzero(self.rate))

    def predecessors(self, f: int) -> list[int]:
        """The rows of the flows that flow f waits for."""
        return self.after[self.after_first[f] : self.after_first[f + 1]].tolist() if self.after.size else []

    def gaps(self, f: int) -> list[int]:
        """ps from the end of each of those to the moment at which flow f may start."""
        if not self.after_delay.size:
            return [int(self.delay[f]) for _ in self.predecessors(f)]
        return (self.after_delay[self.after_first[f] : self.after_first[f + 1]] + self.delay[f]).tolist()

    def released(self, finish: np.ndarray) -> np.ndarray:
        """(f,) int64 ps at which each flow could start, given when all were done; -1 while one it waits for is not."""
        if not self.after.size:
            return self.start
        ends = finish[self.after]
        waits = np.flatnonzero(np.diff(self.after_first))
        at = self.after_first[waits]
        out = self.start.copy()
        last = np.maximum.reduceat(ends + self.after_delay if self.after_delay.size else ends, at)
        least = np.minimum.reduceat(ends, at)
        out[waits] = np.where(least < 0, -1, np.maximum(last + self.delay[waits], self.start[waits]))
        return out

    def at_once(self, link: int) -> int:
        """The most flows that are under way at one time if each destination takes them one after the other.

        What shares its links fairly has at least as many under way; who waits for others may come with all of them.
        """
        if self.waiting or not len(self):
            return len(self)
        took = np.minimum(self.size, 1 << 40) * 8 * (s / link)
        order = np.argsort(self.dst, kind="stable")
        dst, start, took = self.dst[order], self.start[order].astype(np.float64), took[order]
        behind = np.cumsum(took) - took  # what came before; a flow is done when that is, from the latest pause on
        new = np.flatnonzero(np.diff(dst, prepend=-1))
        lead = start - behind
        for a, b in zip(new, [*new[1:], len(dst)], strict=True):
            lead[a:b] = np.maximum.accumulate(lead[a:b])
        finish = lead + behind + took
        moments = np.concatenate([start, finish])
        change = np.concatenate([np.ones(len(start)), -np.ones(len(start))])
        return int(np.cumsum(change[np.lexsort((-change, moments))]).max(initial=0))

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
        for then there is no time to divide by, or where a flow is endless or waits for others.
        """
        gap = self.mean_gap
        if gap is None or self.waiting or (self.size == ENDLESS).any():
            return None
        return self.bytes / len(self) * 8 * s / (self.nodes * gap)

    def realised_load(self, rate: int) -> float | None:
        """Offered rate as a fraction of `rate`: the load these flows are, beside the one that was asked for."""
        offered = self.offered_rate()
        return None if offered is None else offered / rate

    def head(self, count: int) -> "Flows":
        """The first `count` flows, or all of them if there are fewer."""
        require(count >= 0, "count", "at least 0", count)
        require(not self.waiting, "a table that is cut", "one whose flows do not wait for others", self.waiting)
        first = {name: getattr(self, name)[:count] for name in (*COLUMNS, "rate")}
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


def edges(after, count: int, id) -> tuple[np.ndarray, np.ndarray]:
    """(offsets, places) of `after`, as `Flows.of` takes it, checked."""
    if after is None:
        return np.zeros(count + 1, np.int64), np.zeros(0, np.int32)
    if isinstance(after, tuple) and len(after) == 2 and isinstance(after[0], np.ndarray):
        first, places = np.asarray(after[0], np.int64), np.asarray(after[1], np.int64)
    else:
        require(len(after) == count, "after", f"as long as src, {count} flows", len(after))
        first = np.concatenate([[0], np.cumsum([len(some) for some in after])]).astype(np.int64)
        places = np.array([place for some in after for place in some], np.int64)
    require(len(first) == count + 1 and first[-1] == places.size, "after", f"offsets for {count} flows", len(first) - 1)
    wrong = np.flatnonzero((places < 0) | (places >= count))
    if wrong.size:
        waiter = np.searchsorted(first, wrong[0], side="right") - 1
        raise BadInput(f"flow {id[waiter]} must wait for flows that are there, not for number {places[wrong[0]]}")
    return first, places.astype(np.int32)


def _lags(after_delay, first, delay, id) -> np.ndarray:
    """(e,) int64 of `after_delay`, as `Flows.of` takes it, checked; with `delay` it must stay below LATEST."""
    if after_delay is None:
        return np.zeros(first[-1], np.int64)
    if not isinstance(after_delay, np.ndarray):
        lengths = [len(some) for some in after_delay]
        same = lengths == np.diff(first).tolist()
        after_delay = [ps for some in after_delay for ps in some] if same else []
    lags = _whole("after_delay", after_delay)
    require(lags.size == first[-1], "after_delay", f"as long as after, {first[-1]} flows", lags.size)
    waiter = np.repeat(np.arange(len(first) - 1), np.diff(first))
    wrong = np.flatnonzero((lags < 0) | (lags >= LATEST - delay[waiter]))
    if wrong.size:
        at, most = wrong[0], f"{LATEST} ps ({show_time(LATEST)})"
        raise BadInput(f"delay of flow {id[waiter[at]]} must be at least 0 and below {most} in all, not {lags[at]}")
    return lags


def _settled(delay, lags, first, waits):
    """The same times as (delay, lags), said in one way: a delay is the least of a flow, 0 where it waits for nobody."""
    delay = np.where(waits, delay, 0)
    if lags.any():
        least = np.minimum.reduceat(lags, first[:-1][waits])
        delay[waits] += least
        lags = lags - np.repeat(least, np.diff(first)[waits])
    return delay, lags


def _renumbered(first, places, order, count):
    """The same graph over the rows in `order`, and where each of its edges was."""
    row = np.full(count, -1, np.int64)
    row[order] = np.arange(order.size)
    counts = np.diff(first)[order]
    begin = first[:-1][order]
    out = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    at = np.repeat(begin - out[:-1], counts) + np.arange(out[-1])
    return out, row[places[at]].astype(np.int32), at


def refuse_cycles(first, places, id) -> None:
    """Raise a sentence with the shortest cycle if flows wait for each other."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count = len(first) - 1
    own = np.flatnonzero(places == np.repeat(np.arange(count), np.diff(first)))
    if own.size:
        raise BadInput(f"flow {id[places[own[0]]]} must wait for others, not for itself")
    graph = csr_array((np.ones(places.size, np.int8), places, first), shape=(count, count))
    parts, label = connected_components(graph, connection="strong")
    if parts == count:
        return
    cycle = _shortest_cycle(first, places, label)
    shown = " waits for ".join(str(id[f]) for f in (*cycle, cycle[0]))
    raise BadInput(f"flows must not wait for each other in a circle, as {shown}")


PATIENCE = 5_000_000  # edges looked at in search of a shorter circle


def _shortest_cycle(first, places, label) -> list[int]:
    """The shortest cycle, of those in one strongly connected part each, or the shortest found with some patience."""
    ends = np.repeat(label, np.diff(first))
    sizes, inner = np.bincount(label), np.bincount(ends[ends == label[places]], minlength=label.max() + 1)
    best: list[int] = []
    looked = 0
    for part in sorted(np.flatnonzero(sizes > 1).tolist(), key=lambda part: sizes[part]):
        members = np.flatnonzero(label == part).tolist()
        for f in members[:1] if inner[part] == sizes[part] else members:  # a part may be one circle and no more
            found, more = _cycle(first, places, f, label, len(best) or sizes[part] + 1)
            best, looked = found or best, looked + more
            if len(best) == 2 or looked > PATIENCE:
                return best
    return best


def _cycle(first, places, f, label, below) -> tuple[list[int], int]:
    """The shortest way from flow f back to itself of fewer than `below` flows, if there is one, and edges looked at."""
    came, ring, looked = {f: f}, [f], 0
    for _ in range(below - 1):
        further = []
        for g in ring:
            for h in places[first[g] : first[g + 1]].tolist():
                looked += 1
                if h == f:
                    way = [g]
                    while way[-1] != f:
                        way.append(came[way[-1]])
                    return way[::-1], looked
                if h not in came and label[h] == label[f]:
                    came[h] = g
                    further.append(h)
        ring = further
    return [], looked


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
