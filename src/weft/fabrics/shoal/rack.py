"""A Shoal rack at work: the kernel's arrays between its strides, and what was seen of them."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from weft.engine.layout import Grows
from weft.fabrics.base import Run, delivered_as_offered
from weft.metrics.observation import Lost, Observation, Queue
from weft.metrics.throughput import BUSY, SECOND_HALF
from weft.workload.flows import Flows

if TYPE_CHECKING:
    from weft.fabrics.shoal.fabric import Shoal

PATIENCE = 64  # epochs, and times that cells travel, in which a rack that has cells delivers one


class RackRun(Run):
    """A Shoal rack at work: the arrays of the kernel that its rules need."""

    fabric: "Shoal"
    demand: Flows
    unit = "node-slots"
    budget = 1 << 20
    inspect_every = 1 << 24  # an inspection costs as much as some 2^14 node-slots …
    inspect_samples = 0  # … which a small rack does not do between two samples

    def __init__(self, fabric, flows, seed=0):
        super().__init__(fabric, flows, seed=seed, every=8 * fabric.epoch)
        self.plan = self.lay_out(flows)
        self.state = self.layout.make_state(self.plan)
        self.broken = {
            "queue_bound": 0, "one_cell_per_subflow": 0, "conservation": 0, "delivered_as_offered": 0, "progress": 0,
        }  # fmt: skip
        self.patience = PATIENCE * (fabric.epoch + fabric.travel * fabric.slot_time)
        if not fabric.needs_plain and self.total:
            self.least = int((self.plan.start + self.plan.cells // fabric.lanes).max()) * fabric.slot_time

    def lay_out(self, flows):
        """Choose the kernel and its arrays; returns what no slot changes."""
        from weft.engine import calendar
        from weft.fabrics.shoal import arrays, kernel

        fabric = self.fabric
        self.kernel, self.code, self.layout = kernel, kernel, arrays
        interval = fabric.age_interval
        if fabric.rules == "released":  # other code over the same columns
            from weft.fabrics.shoal import released

            self.code = self.layout = released
            interval = interval or 0  # it is off in the authors' simulator
        return self.layout.make_plan(
            fabric.rounds, flows.src, flows.dst, fabric.cells(flows.size), -(-flows.start // fabric.slot_time),
            delay=fabric.travel, rules=fabric.rules, ready_queues=fabric.ready_queues,
            age_interval=fabric.rounds.slots if interval is None else interval, sharing=fabric.sharing,
            feedback=fabric.values,
            waits=calendar.make(flows, fabric.slot_time),
        )  # fmt: skip

    @property
    def slot(self):
        """Slots that are over."""
        return int(self.state.tally[self.kernel.SLOT])

    @property
    def now(self):
        return self.slot * self.fabric.slot_time

    @property
    def finished(self):
        return int(self.state.tally[self.kernel.FINISHED])

    @property
    def work(self):
        return self.slot * self.fabric.lanes * self.fabric.nodes

    def compile(self):
        self.code.advance(self.plan, self.state, self.slot, 0)  # no slot lies before this one
        self.code.inspect(self.plan, self.state)

    def step(self, until, budget):
        return self.code.advance(self.plan, self.state, until // self.fabric.slot_time, budget)

    def grow(self, why):
        self.state = self.layout.grow(self.state, why)

    def sample(self):
        return {
            "delivered_bytes": self.state.received * self.fabric.payload,
            "finished": self.finished,
            "waiting": self.state.waiting.sum(),
            "lost": self.lost.total,
            "queued": self.gathered(self.state.waiting),
            "busy_ps": self.busy(self.state.departed),
        }

    def busy(self, departed):
        """(rows,) int64: how long each node has sent; a cell takes a slot of one of its channels."""
        fabric = self.fabric
        return self.averaged(departed * fabric.slot_time // fabric.lanes, np.arange(fabric.nodes))

    @property
    def lost(self):
        """Cells that are gone: none, where nothing fails."""
        return Lost()

    def monitors(self, thorough=True):
        k, t = self.kernel, self.state.tally
        if thorough:
            twice, lost = self.code.inspect(self.plan, self.state)
            self.broken["one_cell_per_subflow"], self.broken["conservation"] = int(twice), int(lost)
            self.broken["delivered_as_offered"] = self.miscounted()
        self.broken["progress"] = max(self.stalled(), self.broken["progress"])
        self.broken["queue_bound"] = int(t[k.OVER_BOUND])
        self.broken["one_cell_per_subflow"] = max(int(t[k.OVER_SUBFLOW]), self.broken["one_cell_per_subflow"])
        return self.broken

    @property
    def under_way(self):
        t = self.state.tally
        return int(t[self.kernel.DELIVERED]), bool(t[self.kernel.LIVE])

    def miscounted(self) -> int:
        """Flows whose cells do not add up, and cells that belong to none: what was released is somewhere."""
        from weft.fabrics.shoal import columns as k
        from weft.fabrics.shoal.arrays import started

        state, t = self.state, self.state.tally
        begun = started(self.plan, state)
        cells, flow = self.plan.cells[begun], state.flow[begun]
        got = cells - flow[:, k.DELIVER]
        wrong = delivered_as_offered(cells, got, flow[:, k.FINISH])
        wrong += int(np.count_nonzero((flow[:, k.RELEASE] < 0) | (flow[:, k.RELEASE] > flow[:, k.DELIVER])))
        wrong += abs(int(got.sum()) - int(t[k.DELIVERED]))
        inside = self.inside()
        return wrong if inside is None else wrong + abs(inside - int((flow[:, k.DELIVER] - flow[:, k.RELEASE]).sum()))

    def inside(self) -> int | None:
        """Cells that have left their flow and not arrived, by the counts of queues and wires."""
        return int(self.state.waiting.sum() + self.state.tally[self.kernel.FLYING])

    def promises(self, law):
        """The paper's rules, made sound, keep every law; the others lose no cell."""
        return self.fabric.rules == "paper" or law in ("conservation", "delivered_as_offered")

    # ------------------------------------------------------------------ what was seen

    def observe(self) -> Observation:
        from weft.engine.fingerprint import show

        k, t, fabric, flows = self.kernel, self.state.tally, self.fabric, self.demand
        n, slots, per_epoch = fabric.nodes, self.slot, fabric.nodes - 1
        finish = self.layout.finish(self.state)
        undelivered = np.where(finish >= 0, 0, self.layout.undelivered(self.plan, self.state))
        got = (fabric.cells(flows.size) - undelivered) * fabric.payload
        sent = int(t[k.LOCAL] + t[k.FORWARDED])
        places = slots // fabric.rounds.slots * per_epoch * n + self._places(slots % fabric.rounds.slots)
        rate, window, share = self._line_rate(flows)
        lengths = np.trim_zeros(self.state.lengths, "b")
        longest, fullest = int(t[k.MAX_QUEUE]), int(t[k.MAX_NODE])
        return Observation(
            finish=np.where(finish >= 0, (finish + 1) * fabric.slot_time, -1),
            received=np.minimum(got, flows.size),
            now=self.now,
            unit="cells",
            carried={
                "local": int(t[k.LOCAL]), "forwarded": int(t[k.FORWARDED]), "dummy": places - sent,
                "delivered": int(t[k.DELIVERED]),
            },
            queue=Queue(max=longest, max_bytes=longest * fabric.cell, max_node=fullest),
            lost=self.lost,
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections={
                "queue_cells": {"max": longest, "max_node": fullest, "histogram": lengths.tolist()},
                "reorder_bytes": {"max": int(t[k.MAX_HELD]) * fabric.payload},
                "line": {"per_destination_gbps": rate, "fraction_of_slots": share, "window": window},
                "timing": {
                    "slot_ns": fabric.slot_time / 1000, "epoch_slots": fabric.rounds.slots,
                    "epoch_us": fabric.epoch / 1e6,
                    "schedule": fabric.rounds.order, "delay_slots": fabric.travel,
                },
            },
            monitors=self.monitors(),
            fingerprint=show(self.state.print),
            samples=self.series.columns(self.now, self.sample()),
            work={"node_slots": self.work, "stepped": int(t[k.VISITS]), "seconds": self.seconds},
            notes=tuple(self._notes()),
        )  # fmt: skip

    def _notes(self):
        fabric, broken = self.fabric, sum(self.broken.values())
        if fabric.travel and fabric.schedule == "auto" and fabric.rounds.order == "rotation":
            yield f"cells travel {fabric.travel} slots, which no schedule hides: subflows wait for feedback"
        if fabric.rules != "paper" and broken:
            yield f"the {fabric.rules} rules do not promise every law: the monitors count {broken} violations"

    def _places(self, slots):
        """Node-slots with a peer in the first `slots` slots of an epoch."""
        r = self.fabric.rounds
        return int((r.last - r.first)[: slots * r.channels].sum())

    def _line_rate(self, flows):
        """Gb/s of whole cells into each destination, the span it is over, and its mean as a share of all slots."""
        fabric, received = self.fabric, self.state.received
        targets = np.unique(flows.dst)
        before = 0 if self.half is None else self.half[0] // fabric.slot_time
        if self.half is not None and self.slot > before and self.finished < self.total:
            slots = np.full(len(targets), self.slot - before)
            cells = received[targets] - self.half[1]["delivered_bytes"][targets] // fabric.payload
            window = SECOND_HALF
        else:
            busy = self.layout.busy_slots(self.state, self.slot)[targets]
            targets, slots = targets[busy > 0], busy[busy > 0]
            cells = received[targets]
            window = BUSY
        if not len(cells):
            return {"mean": None, "min": None, "max": None}, window, None
        share = cells / (slots * fabric.capacity)
        gbps = cells * (fabric.cell * 8) / (slots * fabric.slot_time) * 1000
        return {"mean": gbps.mean(), "min": gbps.min(), "max": gbps.max()}, window, float(share.mean())

    # ------------------------------------------------------------------ checkpoints

    def arrays(self) -> dict[str, np.ndarray]:
        return self.state._asdict()

    grows: ClassVar[Grows] = {
        **dict.fromkeys(("cell", "link", "free"), (("cells", 0),)),
        **dict.fromkeys(("leave", "pair", "target", "taken", "order", "idle", "rest", "rested"), (("pairs", 0),)),
        **dict.fromkeys(("early", "origin"), (("pairs", 0), ("window", 1))),
        "block": (("blocks", 1),),
        "able": (("blocks", 0),),
    }

    def limits(self, given):
        yield from self.layout.limits(self.plan, self.state, given)
        yield from common_limits(self.plan, self.state, given)

    def restore(self, arrays) -> None:
        self.state = self.state._replace(**{name: _copy(arrays[name]) for name in self.state._fields})


def common_limits(plan, state, given):
    """What leads into a table, or counts its rows, in the arrays that all kernels have."""
    from weft.engine import calendar
    from weft.fabrics.shoal import columns as col
    from weft.fabrics.shoal.arrays import LONG

    n, flows, pairs, cells = int(plan.numbers[col.N]), len(plan.src), len(given["target"]), len(given["free"])
    tally, pair, flow, most = given["tally"], given["pair"], given["flow"], 1 << 62
    yield (
        "tally",
        np.delete(tally, [col.DETECTED, col.CHANGE, col.REPAIR_UNTIL][: 3 * (len(tally) > col.TALLY)]),
        0,
        most,
    )
    for place, largest in ((col.STARTED, flows), (col.FINISHED, flows), (col.KNOWN_STARTED, flows), (col.FREE, cells),
                           (col.PAIRS_USED, pairs), (col.HEAPED, len(state.waits))):  # fmt: skip
        yield "tally", tally[place], 0, largest
    yield "rest", tally[col.REST_TAIL] - tally[col.REST_HEAD], 0, pairs
    yield "target", given["target"], 0, n - 1
    yield "free", given["free"], 0, cells - 1
    yield "pair", pair[:, col.SERVED], 0, flows
    yield "pair", pair[:, col.SOURCE], 0, n - 1
    yield "pair", pair[:, col.NEXT], 0, pairs
    yield "pair", pair[:, [col.SINCE, col.SEQ, col.WANT, col.GOT, col.UNDELIVERED]], 0, most
    yield "flow", flow[:, [col.RELEASE, col.DELIVER]], 0, most
    yield "flow", flow[:, col.AFTER], -1, flows
    yield "flow", flow[:, col.FINISH], -1, most
    for name in (*LONG, "incast", "inflow", "lengths"):
        yield name, given[name], 0, most
    yield "successors", np.abs(given["successors"].astype(np.int64) - state.successors), 0, 0
    yield from calendar.limits(given["waits"], state.waits, len(state.successors))


def _copy(saved):
    from weft.fabrics.shoal.arrays import zeros

    out = zeros(saved.shape, saved.dtype)
    out[...] = saved
    return out
