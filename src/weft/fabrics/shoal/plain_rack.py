"""A Shoal rack at work while things go wrong: what failed, who noticed, and what was lost."""

from dataclasses import replace

import numpy as np

from weft.engine import calendar, loop
from weft.fabrics.shoal.columns import CAUSES
from weft.fabrics.shoal.rack import RackRun
from weft.metrics.observation import Lost
from weft.schedule import outage

WORTHWHILE = 1 << 24  # node-slots before the first fault that the fast kernel carries: two seconds of the plain one


class PlainRackRun(RackRun):
    """A rack with a plan of failures, damaged cells, clocks or traffic classes.

    The fast kernel carries it up to its first fault, if there is anything to be gained; the plain one takes over.
    """

    def lay_out(self, flows):
        from weft.fabrics.shoal import arrays, columns, kernel
        from weft.fabrics.shoal.plain import arrays as plain_arrays
        from weft.fabrics.shoal.plain import convert
        from weft.fabrics.shoal.plain import kernel as plain_kernel

        fabric = self.fabric
        self.kernel, self.code, self.layout = columns, plain_kernel, plain_arrays
        self.stuck = False  # nothing can move any more
        self.repaired = 0  # of `ends`, those that are over
        self.outages = fabric.outages(self.seed)
        self.ends = sorted({-(-o.until // fabric.slot_time) for o in self.outages if o.until is not None})
        self.seen = np.full((len(self.outages), 2), -1, np.int64)  # declarations and slot of the last, once it is over
        self.plain_plan = plain_arrays.make_plan(
            fabric.rounds, flows.src, flows.dst, fabric.cells(flows.size), -(-flows.start // fabric.slot_time),
            flows.klass, faults=fabric.faults(self.seed), delay=fabric.travel, ready_queues=fabric.ready_queues,
            age_interval=fabric.age_interval, sharing=fabric.sharing, feedback=fabric.values,
            classes=fabric.classes, depth=fabric.class_depth, ber=fabric.ber,
            cell=fabric.cell, seed=self.seed, timeout=fabric.patience,
            waits=calendar.make(flows, fabric.slot_time),
        )  # fmt: skip
        self.switch = convert.switch_slot(self.plain_plan)  # slot in which the plain kernel takes over; 0 when it has
        if self.switch * fabric.lanes * fabric.nodes < WORTHWHILE:
            self.switch = 0
            return self.plain_plan
        self.code, self.layout = kernel, arrays
        return convert.fast_plan(self.plain_plan)

    def take_over(self):
        """Go on with the plain kernel."""
        from weft.fabrics.shoal.plain import arrays, kernel

        self.plan, self.state = self.plain_plan, self.plain_state
        self.code, self.layout, self.switch = kernel, arrays, 0

    @property
    def plain_state(self):
        """The state as the plain kernel has it, or would have it."""
        from weft.fabrics.shoal.plain.convert import convert

        return self.state if self.switch == 0 else convert(self.plain_plan, self.state)

    def compile(self):
        from weft.fabrics.shoal.plain import kernel

        super().compile()
        plan, state = self.plain_plan, self.plain_state
        kernel.advance(plan, state, self.slot, 0)
        kernel.inspect(plan, state)

    def step(self, until, budget):
        stop = until // self.fabric.slot_time
        why = self.code.advance(self.plan, self.state, stop, budget)
        if why != self.kernel.STUCK:
            return why
        self.stuck = True
        if self.until is None:
            return loop.DONE
        self.code.pass_time(self.plan, self.state, stop)
        return loop.REACHED

    @property
    def next_change(self):
        """When the plain kernel takes over; then each repair: what was declared is looked at before it is withdrawn."""
        if self.switch:
            return self.switch * self.fabric.slot_time
        return next((over * self.fabric.slot_time for over in self.ends[self.repaired :]), None)

    def change(self):
        if self.switch:
            self.take_over()
        else:
            self.look_back(self.ends[self.repaired])
            self.repaired += 1

    def stalled(self):
        """0: the plain kernel itself says when nothing can move any more."""
        return 0

    def inside(self):
        """Unknown: cells may be lost, and be sent again; `inspect` counts them by cause."""
        return None

    def promises(self, law):
        """Repair, damage and classes may break the bounds; cells are never lost without a cause."""
        fabric = self.fabric
        bounded = fabric.classes == 1 and not fabric.ber and not self.plain_plan.off.any() and not self.ends
        return bounded or law in ("conservation", "delivered_as_offered")

    # ------------------------------------------------------------------ who noticed

    def look_back(self, over):
        """Keep what is known of the failures that end in slot `over`: their declarations are about to be withdrawn."""
        declared = self.declarations()
        for k, o in enumerate(self.outages):
            if o.until is not None and -(-o.until // self.fabric.slot_time) == over and self.seen[k, 0] < 0:
                self.seen[k] = self.noticed(o, declared)

    def declarations(self):
        """(n, n) int64: the slot at whose end j declared i failed, -1 if it has not."""
        r, lost = self.fabric.rounds, self.plain_state.missed
        j, i = np.nonzero(lost)
        out = np.full(lost.shape, -1, np.int64)
        place = r.place[(i >= r.half).astype(int), (j - i) % r.nodes]
        out[j, i] = (lost[j, i] - 1) * r.slots + place // r.channels + self.fabric.travel
        return out

    def noticed(self, o, declared):
        """(declarations, slot of the last or -1) that a failure has caused."""
        n = self.fabric.nodes
        if o.what == "node":
            hit = np.zeros((n, n), bool)
            hit[o.which[0]] = hit[:, o.which[0]] = True
        else:
            hit = self.between(o)
        found = declared[hit & (declared >= o.at // self.fabric.slot_time)]
        return len(found), int(found.max(initial=-1))

    def between(self, o):
        """(n, n) bool: the pairs of nodes that a failure parts, both ways."""
        n, ways = self.fabric.nodes, outage.Ways(self.fabric.rounds, self.fabric.ports)
        lost = ways.lost(outage.Down.of(ways, [o]))
        hit = np.zeros((n, n), bool)
        hit[ways.receiver[lost], ways.sender[lost]] = True
        return hit | hit.T

    # ------------------------------------------------------------------ what was seen

    @property
    def lost(self):
        if self.switch:
            return Lost(causes=dict.fromkeys(CAUSES, 0))
        return Lost(causes={cause: int(self.state.tally[column]) for cause, column in CAUSES.items()})

    def observe(self):
        k, state = self.kernel, self.plain_state
        seen, t = super().observe(), state.tally
        cells = seen.carried | {
            "dummy": int(t[k.SPOKEN]) - seen.carried["local"] - seen.carried["forwarded"],
            "released": int(t[k.RELEASED]), "repeated": int(t[k.REPEATS]), "duplicates": int(t[k.DUPLICATES]),
            "resent": int(t[k.RESENT]), "acknowledgements": int(t[k.ACKS]),
            "failed_slots": int(t[k.FAILED_SLOTS]),
        }  # fmt: skip
        seen.sections["queue_cells"]["max_by_class"] = state.longest.tolist()
        seen.sections["failures"] = self.failures()
        lost = replace(seen.lost, flows=int(self.broken_flows(self.demand, state).sum()))
        return replace(seen, carried=cells, lost=lost)

    def failures(self):
        """A row for each failure that has begun."""
        slot_time, declared, rows = self.fabric.slot_time, self.declarations(), []
        for k, o in enumerate(self.outages):
            if o.at // slot_time > self.slot:
                continue
            links, last = self.seen[k].tolist() if self.seen[k, 0] >= 0 else self.noticed(o, declared)
            rows.append({
                "what": o.name, "at_ps": o.at, "until_ps": o.until,
                "detected_ps": None if last < 0 else (last + 1) * slot_time, "links": links,
            })  # fmt: skip
        return rows

    def broken_flows(self, flows, state):
        """(flows,) bool: those that will never be done: an end is down, a cell is gone, or nothing moves any more."""
        from weft.fabrics.shoal.arrays import started

        k, plan = self.kernel, self.plan
        down = outage.unpack(state.down, self.fabric.nodes)
        if self.stuck:
            return state.flow[:, k.FINISH] < 0  # what waits for the others, too
        open_ = (state.flow[:, k.FINISH] < 0) & started(plan, state)
        if self.fabric.patience:  # whatever is missing is sent again
            return open_ & (down[plan.src] | down[plan.dst])
        held = np.ones(len(state.cell), bool)
        held[state.free[: state.tally[k.FREE]]] = False
        copies = np.unique(state.cell[held, 1:], axis=0)  # flow, pair, seq
        flow, pair, seq = copies.T
        ring = state.early.shape[1] * 64
        bit = state.early[pair, seq % ring // 64] >> (seq % 64).astype(np.uint64) & np.uint64(1)
        fresh = (seq >= state.pair[pair, k.WANT]) & (bit == 0)
        there = np.bincount(flow[fresh], minlength=len(flows))
        missing = state.flow[:, k.DELIVER] - state.flow[:, k.RELEASE] - there
        return open_ & (down[plan.src] | down[plan.dst] | (missing > 0))

    def _notes(self):
        yield from super()._notes()
        if self.stuck and self.finished < self.total:
            left = self.total - self.finished
            yield f"nothing can move any more: {left:,} of {self.total:,} flows will never finish"
        broken = sum(self.broken.values())
        if broken:
            yield f"repair, damage and classes may break the bounds: the monitors count {broken} violations"

    # ------------------------------------------------------------------ checkpoints

    def arrays(self):
        return super().arrays() | {"outages.seen": self.seen, "outages.repaired": np.array([self.repaired, self.stuck])}

    def check(self, given):
        if self.switch and "held" not in given:  # the plain kernel has taken over, whose arrays are others
            self.take_over()
            room = [given.get(name, np.zeros(())) for name in ("target", "free", "early")]
            if [array.ndim for array in room] == [1, 1, 2]:  # as large as what was there then needed
                pairs, cells, window = len(room[0]), len(room[1]), 64 * room[2].shape[1]
                self.state = self.layout.make_state(self.plan, pairs=pairs, cells=cells, window=window)
        super().check(given)

    def restore(self, arrays):
        if self.switch and "held" not in arrays:  # the plain kernel has taken over
            self.take_over()
        super().restore(arrays)
        self.seen = arrays["outages.seen"].copy()
        self.repaired, self.stuck = int(arrays["outages.repaired"][0]), bool(arrays["outages.repaired"][1])
