"""What a fabric is and what a run is: the two classes that every room derives from.

A `Fabric` is a frozen description: what it can carry, how much memory that needs, and how a run of it begins. A `Run`
is one under way: arrays that a kernel changes, and what others may see of them. The loop that lets time pass is not
theirs but the engine's (`weft.engine.loop`), which calls `step`, `grow`, `change`, `sample` and `monitors`. A run can
be put into arrays between any two strides and taken up again from them: the continued run is the same to the last bit.

`tests/test_contract.py` holds every room to this, docs/extending.md shows a room of forty lines.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from weft.engine import layout, loop
from weft.engine.series import Series, bundle, sums
from weft.errors import BadInput
from weft.metrics.observation import Observation
from weft.parameters import Described, parameters
from weft.units import us
from weft.workload.demand import Demand
from weft.workload.flows import Flows


class Step(NamedTuple):
    """One thing that happened to one cell or packet of a flow that is followed."""

    time: int  # ps
    item: int  # number of the cell or packet within the flow, or -1 of the flow itself
    what: str
    where: str
    why: str


def require_few(flows: Flows, payload: int, link: int, until: int, most: int, what: str = "packets") -> None:
    """Raise a sentence unless what `flows` can have sent by `until` (ps) is little enough for a twin to carry again."""
    flows = flows.table
    begun = flows.start < until
    sendable = (until - flows.start[begun]) // 8 * (link / 10**12) + payload
    count = int(np.ceil(np.minimum(flows.size[begun], sendable) / payload).sum())
    if count > most:
        raise BadInput(f"a run that is followed must be of at most {most:,} {what}, not {count:,}: a twin carries it")


class Fabric(Described):
    """A system that carries demand. Rooms derive frozen dataclasses from it; times are ps, rates b/s, sizes bytes."""

    carries: ClassVar[tuple[type[Demand], ...]] = (Flows,)  # kinds of demand
    releases: ClassVar[bool] = False  # whether flows may wait for flows
    on_gpu: ClassVar[str | None] = None  # the module that carries its runs on a device, see `weft.gpu`
    limits: ClassVar[bool] = False  # whether a flow may have a rate that it does not exceed

    if TYPE_CHECKING:  # every room has them, as fields or as properties

        @property
        def nodes(self) -> int:
            """Senders and receivers that a workload sees."""

        @property
        def link(self) -> int:
            """Rate of a node's link."""

    def memory(self, demand: Demand) -> int:
        """Bytes a run of this demand is predicted to need; cheap, before anything is laid out or even drawn."""
        raise NotImplementedError  # derived classes say it

    def prepare(self, demand: Demand, *, seed: int = 0) -> "Run":
        """Lay out a run of this demand; no time passes."""
        raise NotImplementedError  # derived classes say it

    def thaw(self, demand: Demand, arrays: dict[str, np.ndarray], *, seed: int = 0) -> "Run":
        """Rebuild a run from what its `freeze` gave."""
        run = self.prepare(demand, seed=seed)
        run.thaw(arrays)
        return run

    def ideal(self, flows: Flows) -> np.ndarray | None:
        """(flows,) int64: ps below which no flow can finish; None if that is not known."""
        return None

    @property
    def payload_rate(self) -> float | None:
        """Bits of payload per second on a link that is never idle, headers and guard times taken off, if known."""
        return None

    @classmethod
    def link_fields(cls) -> dict[str, str]:
        """Field of each thing that a comparison should give all fabrics alike, as far as this one has it.

        rate: b/s of a node's link. propagation: ps along one cable, as `propagation` or as the time `delay`. mtu: bytes
        of the largest packet. See `weft.links`.
        """
        known = {one.name: one.kind for one in parameters(cls)}
        along = next((name for name in ("propagation", "delay") if known.get(name) == "time"), None)
        fields = {"rate": "link", "propagation": along, "mtu": "mtu"}
        return {name: field for name, field in fields.items() if field is not None and field in known}

    def links(self) -> dict[str, int]:
        """rate, propagation and mtu of its links, as far as it knows them."""
        found = {name: getattr(self, field) for name, field in self.link_fields().items()} | {"rate": self.link}
        return {name: value for name, value in found.items() if value is not None}

    def with_links(self, **values: int) -> "Fabric":
        """The same fabric with another rate, propagation or mtu of its links."""
        fields = self.link_fields()
        return replace(self, **{fields[name]: value for name, value in values.items()})  # type: ignore

    def resolved(self) -> dict:
        """What follows from names and files in the description (presets, say) and decides a run, as data."""
        return {}

    def inputs(self) -> Iterable[str]:
        """Paths of the files that the description names and a run reads."""
        return ()

    def queues(self) -> list[str]:
        """Names of the places where cells or packets wait, if its runs say how many do, as the sample `queued`."""
        return []

    no_lines: ClassVar[str] = "its runs do not say how long they send"  # why `lines` is empty, where it is

    def lines(self) -> list[str]:
        """Names of the links between nodes and switches, if its runs say how long each has sent, as `busy_ps`."""
        return []

    def follow(self, demand: Demand, f: int, *, seed: int, until: int) -> tuple[list[Step], int]:
        """(steps of flow f up to `until`, ps at which it was done or -1), from a twin that carries the run again."""
        raise BadInput(f"{type(self).__name__} must have a twin that tells, to be followed, which it has not")

    @staticmethod
    def facts(summary: dict) -> Iterable[tuple[str, str]]:
        """(name, text) of what a room has to say of a run beyond what is common: lines of its table."""
        return ()

    def accept(self, demand: Demand) -> None:
        """Raise a sentence unless this demand can be carried."""
        if not isinstance(demand, self.carries):
            kinds = " or ".join(kind.kind for kind in self.carries)
            raise BadInput(f"{type(self).__name__} must be given {kinds}, not {demand.kind}")
        if demand.waiting and not self.releases:
            raise BadInput(f"{type(self).__name__} must be given flows that wait for no other, not {demand.waiting:,}")
        if demand.limited and not self.limits:
            given = f"flows without rates of their own, not {demand.limited:,} that have one"
            raise BadInput(f"{type(self).__name__} must be given {given}")
        if demand.nodes != self.nodes:
            raise BadInput(f"demand must be drawn for the {self.nodes} nodes of the fabric, not {demand.nodes}")


def delivered_as_offered(offered: np.ndarray, delivered: np.ndarray, finish: np.ndarray) -> int:
    """Flows that got more than they asked for, or less than nothing, or whose end is not where their last one came."""
    done = finish >= 0
    wrong = (delivered < 0) | (delivered > offered) | (done != (delivered == offered))
    return int(np.count_nonzero(wrong))


class Run:
    """A run under way: what the loop drives and what others may look at between strides."""

    unit: ClassVar[str] = "steps"  # what `work` counts
    inspect_every: ClassVar[int] = 1 << 24  # units of work between two thorough looks of the monitors …
    inspect_samples: ClassVar[int] = 1  # … and samples from one to the next: nothing moves in a deadlock; 0 for none
    budget: int = 10_000  # of the first stride; the loop adapts it to the wall clock
    now: int = 0  # ps of simulated time
    finished: int = 0  # flows done
    work: int = 0  # units of work done
    least: int = 0  # ps before which the run cannot be over; its series begins as wide as one of that length
    patience: int | None = None  # ps in which something must arrive while anything is under way; None: nobody can say
    next_change: int | None = None  # ps at which the loop is to stop and call `change`: a failure, a repair

    def __init__(self, fabric: Fabric, demand: Demand, *, seed: int = 0, every: int = 10 * us):
        fabric.accept(demand)
        self.fabric, self.demand, self.seed = fabric, demand, seed
        self.series = Series(every, fabric.nodes)
        self.until: int | None = None  # ps at which the run is to end, if it was said
        self.half: tuple[int, dict] | None = None  # (moment, sample) halfway there
        self.seconds = 0.0  # of wall time in kernels, compiling left out
        self.inspected = 0  # work at the last thorough look
        self.moved = (-1, 0)  # `arrived` when it last grew, and the moment
        self.held = False  # whether anything was under way at the last look
        self.compiling = False
        self._lines_of: tuple[np.ndarray, np.ndarray] | None = None  # the row of each link; how many share it

    @property
    def total(self) -> int:
        """Flows in all."""
        return len(self.demand)

    @property
    def share(self) -> float | None:
        """How much of the run is done, from 0 to 1; None if nobody can tell."""
        if self.until:
            ended = self.total > 0 and self.finished == self.total
            return 1.0 if ended else min(self.now / self.until, 1.0)
        return self.finished / self.total if self.total else None

    @property
    def under_way(self) -> tuple[int, bool]:
        """(a count of what has arrived so far, whether anything that has begun has not arrived)."""
        return 0, False

    def stalled(self) -> int:
        """1 if nothing has arrived for longer than `patience` while something was under way: a cell is lost."""
        arrived, more = self.under_way
        if arrived != self.moved[0] or not (more and self.held):  # else it may have begun just now, after a long rest
            self.moved = arrived, self.now
        self.held = more
        return int(self.patience is not None and self.now - self.moved[1] > self.patience)

    # what a room says

    def step(self, until: int, budget: int) -> int:
        """Let time pass to `until` (ps), or for about `budget` units of work; says why it ended, see `engine.loop`."""
        raise NotImplementedError  # derived classes say it

    def compile(self) -> None:
        """Call every kernel that the run may need, so that nothing happens but that it is compiled."""
        self.step(self.now, 0)

    def grow(self, why: int) -> None:
        """Make larger what `step` said was full."""
        raise NotImplementedError  # derived classes say it

    def change(self) -> None:
        """Take in what was to happen at `next_change`, and move that on."""

    def sample(self) -> dict:
        """Counts so far, for the time series: `delivered_bytes` of each node, `finished` flows, what is `waiting`.

        `queued`, where a fabric names its `queues`: what waits in each, see `gathered`. `busy_ps`, where it names
        its `lines`: how long each has sent, see `averaged`.
        """
        raise NotImplementedError  # derived classes say it

    @cached_property
    def _queue_rows(self):
        return bundle(self.fabric.queues())

    def gathered(self, waiting: np.ndarray) -> np.ndarray:
        """(rows,) int64: what waits in each of the fabric's `queues`; neighbours are added up where there are many."""
        rows, names = self._queue_rows
        return sums(rows, waiting, len(names))

    @cached_property
    def _line_rows(self):
        return bundle(self.fabric.lines())

    def averaged(self, sent: np.ndarray, senders: np.ndarray) -> np.ndarray:
        """(rows,) int64: how long each of the fabric's `lines` has sent; the mean, where links share a row.

        sent: ps, of every link. senders: nodes that they lead from, which have a row each where links are too many;
        the same with every call.
        """
        if self._lines_of is None:
            rows, names = self._line_rows
            rows = rows[senders] if len(rows) < len(sent) else rows
            self._lines_of = rows, np.maximum(np.bincount(rows, minlength=len(names)), 1)
        rows, many = self._lines_of
        return sums(rows, sent, len(many)) // many

    def monitors(self, thorough: bool = True) -> dict[str, int]:
        """How often each law of the fabric was broken; a thorough look may take as long as a stride."""
        raise NotImplementedError  # derived classes say it

    def promises(self, law: str) -> bool:
        """Whether a violation of the law ends the run; where it may happen, it is only counted."""
        return True

    def observe(self) -> Observation:
        """What was seen so far."""
        raise NotImplementedError  # derived classes say it

    def arrays(self) -> dict[str, np.ndarray]:
        """All that a step may change, by name."""
        raise NotImplementedError  # derived classes say it

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave, in a run just prepared; they have the shapes of its own, see `check`."""
        raise NotImplementedError  # derived classes say it

    grows: ClassVar[layout.Grows] = {}  # which of its arrays are made longer during a run, and along which axes

    def check(self, given: dict[str, np.ndarray]) -> None:
        """Raise a sentence unless a kernel can work on these arrays, which anybody may have written."""
        layout.check_shapes(self.arrays(), given, self.grows)
        layout.check_limits(self.limits(given))

    def limits(self, given: dict[str, np.ndarray]) -> Iterable[layout.Limit]:
        """(what, numbers, least, largest) of every number in the arrays that leads into a table, or counts its rows."""
        return ()

    # what it gets

    def advance(self, until: int | None = None, watch: Callable | None = None) -> None:
        """Let time pass until `until` (ps) or until nothing is left to happen."""
        loop.advance(self, until, watch)

    def freeze(self) -> dict[str, np.ndarray]:
        """The run as arrays."""
        out = {f"run.{name}": array for name, array in self.arrays().items()}
        out |= {f"series.{name}": array for name, array in self.series.freeze().items()}
        out["loop"] = np.array([round(self.seconds * 1e9), self.inspected], np.int64)
        if self.half is not None:
            out["half"] = np.array([self.half[0]], np.int64)
            out |= {f"half.{name}": np.array(value, np.int64) for name, value in self.half[1].items()}
        return out

    def thaw(self, arrays: dict[str, np.ndarray]) -> None:
        """Become the run that `freeze` kept."""

        def part(prefix):
            return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}

        known = {name: np.array(value, np.int64) for name, value in self.sample().items()}
        half = {"": np.zeros(1, np.int64), **known} if "half" in arrays else {}
        spent = {"loop": np.zeros(2, np.int64), **{f"half.{name}".rstrip("."): a for name, a in half.items()}}
        rest = {name: a for name, a in arrays.items() if not name.startswith(("run.", "series."))}
        layout.check_shapes(spent, rest, {})
        self.check(part("run."))
        self.series.check(part("series."), known)
        self.restore(part("run."))
        self.series.thaw(part("series."))
        nanoseconds, self.inspected = arrays["loop"].tolist()
        self.seconds = nanoseconds / 1e9
        if "half" in arrays:
            self.half = int(arrays["half"][0]), part("half.")
