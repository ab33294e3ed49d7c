"""A Shoal rack at work while things go wrong: what failed, who noticed, and what was lost."""

from dataclasses import replace

import numpy as np

from weft.engine import calendar, loop
from weft.fabrics.shoal import arrays, columns, kernel
from weft.fabrics.shoal.columns import CAUSES
from weft.fabrics.shoal.plain import arrays as plain_arrays
from weft.fabrics.shoal.plain import convert, settle
from weft.fabrics.shoal.plain import kernel as plain_kernel
from weft.fabrics.shoal.plain.give_back import give_back, take_back
from weft.fabrics.shoal.rack import RackRun
from weft.metrics.observation import Lost
from weft.schedule import outage

WORTHWHILE = 1 << 24  # node-slots before a fault that the fast kernel carries: two seconds of the plain one
WORTH_CELLS = 1 << 21  # cells left for which the fast kernel, which has then to be compiled, goes on after a fault


class PlainRackRun(RackRun):
    """A rack with a plan of failures, damaged cells, clocks or traffic classes.

    The fast kernel carries it up to its first fault, if there is anything to be gained; the plain one takes over, and
    gives it back once everybody knows what has failed, until something else is to happen.
    """

    def lay_out(self, flows):
        fabric = self.fabric
        self.kernel, self.code, self.layout = columns, plain_kernel, plain_arrays
        self.stuck = False  # nothing can move any more
        self.repaired = 0  # of `ends`, those that are over
        self.outages = fabric.outages(self.seed)
        self.ends = sorted({-(-o.until // fabric.slot_time) for o in self.outages if o.until is not None})
        self.seen = np.full((len(self.outages), 2), -1, np.int64)  # declarations and slot of the last, once it is over
        self.kept = None  # what the plain kernel knew when it gave the rack back
        self.plain_plan = plain_arrays.make_plan(
            fabric.rounds, flows.src, flows.dst, fabric.cells(flows.size), -(-flows.start // fabric.slot_time),
            flows.klass, faults=fabric.faults(self.seed), delay=fabric.travel, ready_queues=fabric.ready_queues,
            age_interval=fabric.age_interval, sharing=fabric.sharing, feedback=fabric.values,
            classes=fabric.classes, depth=fabric.class_depth, ber=fabric.ber,
            cell=fabric.cell, seed=self.seed, timeout=fabric.patience,
            waits=calendar.make(flows, fabric.slot_time),
        )  # fmt: skip
        self.switch = convert.switch_slot(self.plain_plan)  # slot in which the plain kernel takes over; 0 when it has
        self.asked, self.next_look = 0, None  # in vain, and the slot in which to ask whether the rack has settled
        if self.switch * fabric.lanes * fabric.nodes < WORTHWHILE:
            self.switch = 0
            self.plan_look(0)
            return self.plain_plan
        self.code, self.layout = kernel, arrays
        return convert.fast_plan(self.plain_plan)

    def take_over(self):
        """Go on with the plain kernel."""
        self.plan, self.state = self.plain_plan, self.plain_state
        self.code, self.layout, self.switch, self.kept, self.asked = plain_kernel, plain_arrays, 0, None, 0
        self.plan_look(self.slot)

    @property
    def plain_state(self):
        """The state as the plain kernel has it, or would have it."""
        if self.switch == 0:
            return self.state
        if self.kept is None:
            return convert.convert(self.plain_plan, self.state)
        return take_back(self.plain_plan, self.plan, self.state, self.kept)

    # ------------------------------------------------------------------ the fast kernel after a fault

    def plan_look(self, slot):
        """Say when to ask next whether the rack has settled, if that can come to anything."""
        plan, fabric = self.plain_plan, self.fabric
        if fabric.classes > 1 or fabric.ber or fabric.patience or fabric.nodes > arrays.WIDE:
            return
        memory = settle.remember(plan)
        while (fault := settle.next_fault(plan, slot)) < settle.NEVER:
            if (fault - slot - 2 * memory) * fabric.lanes * fabric.nodes > WORTHWHILE // 8:
                break
            slot = fault + 1
        if plan.cells.sum() >= WORTH_CELLS:
            self.next_look = slot + (2 * memory << min(self.asked, 10))

    def look(self):
        """Give the rack back to the fast kernel, if it has settled and there is enough to gain."""
        plan, slot, self.next_look = self.plain_plan, self.slot, None
        left = plan.cells.sum() - self.state.tally[columns.DELIVERED]
        if settle.settled(plan, self.state):
            end = settle.until(plan, self.state)
            long = (end - slot) * self.fabric.lanes * self.fabric.nodes > WORTHWHILE // 8
            long |= end > slot and settle.next_fault(plan, slot) == settle.NEVER  # it can be made longer
            given = give_back(plan, self.state) if long and left >= WORTH_CELLS else None
            if given is not None:
                self.plan, self.state, self.kept = given
                self.code, self.layout, self.switch = kernel, arrays, end
                return
        self.asked += 1
        self.plan_look(slot)

    def compile(self):
        super().compile()
        plan, state = self.plain_plan, self.plain_state
        plain_kernel.advance(plan, state, self.slot, 0)
        plain_kernel.inspect(plan, state)
        if self.next_look is not None:
            plan = convert.fast_plan(plan)
            state = arrays.make_state(plan)
            kernel.advance(plan, state, 0, 0)
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
        """When the plain kernel takes over; each repair: what was declared is looked at before it is withdrawn; and
        when to ask whether the fast one can go on."""
        if self.switch:
            slots = [self.switch] if self.switch < settle.NEVER else []
        else:
            slots = [*self.ends[self.repaired : self.repaired + 1], *([self.next_look] if self.next_look else [])]
        return min(slots) * self.fabric.slot_time if slots else None

    def change(self):
        if self.switch:
            plan, state = self.plain_plan, self.state
            later = settle.longer(plan, state, state.tally[columns.LANDED]) if self.kept is not None else 0
            if later:
                self.switch = later
            else:
                self.take_over()
            return
        if self.slot in self.ends[self.repaired : self.repaired + 1]:
            self.look_back(self.slot)
            self.repaired += 1
        if self.slot == self.next_look:
            self.look()

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
        if self.switch and self.kept is None:
            return Lost(causes=dict.fromkeys(CAUSES, 0))
        tally = self.state.tally if self.kept is None else self.kept.tally
        return Lost(causes={cause: int(tally[column]) for cause, column in CAUSES.items()})

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
        out = super().arrays() | {"outages.seen": self.seen, "outages.repaired": np.array([self.repaired, self.stuck])}
        if self.kept is not None:
            out |= {f"kept.{name}": array for name, array in self.kept._asdict().items()}
            out["kept.switch"] = np.array([self.switch])
        return out

    def check(self, given):
        if "kept.switch" in given and self.kept is None:  # the fast kernel had it again
            self.be_given_back(given)
        elif self.switch and "held" not in given:  # the plain kernel has taken over, whose arrays are others
            self.take_over()
            room = [given.get(name, np.zeros(())) for name in ("target", "free", "early")]
            if [array.ndim for array in room] == [1, 1, 2]:  # as large as what was there then needed
                pairs, cells, window = len(room[0]), len(room[1]), 64 * room[2].shape[1]
                self.state = self.layout.make_state(self.plan, pairs=pairs, cells=cells, window=window)
        super().check(given)

    def be_given_back(self, given):
        """Lay out the fast kernel's arrays as they are after a fault."""
        if not self.switch:
            self.code, self.layout, self.plan = kernel, arrays, convert.fast_plan(self.plain_plan)
            self.state = arrays.make_state(self.plan)
        listed = given.get("kept.listed", np.zeros((0, 0)))
        state = plain_arrays.make_state(self.plain_plan)
        known = {name: getattr(state, name) for name in settle.Kept._fields if name != "listed"}
        self.kept = settle.Kept(**known, listed=np.zeros((len(listed) if listed.ndim == 2 else 0, 5), np.int64))
        self.switch = settle.NEVER

    def limits(self, given):
        yield from super().limits(given)
        if self.kept is not None:
            yield from settle.limits(self.plain_plan, given)

    def restore(self, arrays):
        if "kept.switch" in arrays:
            if self.kept is None:
                self.be_given_back(arrays)
            self.kept = settle.Kept(*(arrays[f"kept.{name}"].copy() for name in settle.Kept._fields))
            self.plan, self.switch = settle.masked_plan(self.plain_plan, self.kept), int(arrays["kept.switch"][0])
        elif self.switch and "held" not in arrays:  # the plain kernel has taken over
            self.take_over()
        super().restore(arrays)
        if not self.switch:
            self.plan_look(self.slot)
        self.seen = arrays["outages.seen"].copy()
        self.repaired, self.stuck = int(arrays["outages.repaired"][0]), bool(arrays["outages.repaired"][1])
