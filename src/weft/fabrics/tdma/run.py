"""A run of TDMA under way: the arrays that the kernel changes, and the manager's life and death between its steps."""

from dataclasses import replace

import numpy as np

from weft import random
from weft.engine import calendar, loop
from weft.engine.fingerprint import show
from weft.engine.layout import check_limits, check_shapes
from weft.fabrics.base import Run, delivered_as_offered
from weft.fabrics.tdma import kernel
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.manager import by_switch
from weft.fabrics.tdma.plan import NEVER as NO_DEADLINE
from weft.fabrics.tdma.plan import Demand
from weft.fabrics.tdma.schedulers import scheduler
from weft.fabrics.tdma.schedulers.base import room_for
from weft.fabrics.tdma.schedulers.greedy import HOPS
from weft.fabrics.tdma.schedulers.roundrobin import SCALE, RoundRobin
from weft.fabrics.tdma.state import NEVER, Count, Fixed, Number, TdmaState, parcels_for, zeros
from weft.metrics.observation import Lost, Observation, Queue
from weft.units import Mbps, us, wire_time
from weft.units import s as second
from weft.wire.pfc import FRAME, GAP

PATIENCE = 64  # rounds in which something arrives while anything waits, if no frame is lost and nothing is down
CAUSES = {"full": Count.DROPPED, "dead_host": Count.STRANDED, "link_down": Count.CUT}


class TdmaRun(Run):
    """A network at work in slots that a manager gives out."""

    fabric: TDMA
    unit = "host-slots"
    budget = 1 << 12

    def __init__(self, fabric: TDMA, demand, seed: int = 0):
        super().__init__(fabric, demand, seed=seed, every=fabric.cycle)
        network, flows = fabric.network, demand.table
        self.scheduler = self._planner()
        n, graph = network.hosts, network.graph
        self.fixed = _fixed(fabric, flows, seed)
        hops = 2 * int(network.tree.depth.max()) if network.tree is not None else HOPS
        most = fabric.slots * n + (n * (n - 1) if fabric.meets else 0)
        self.state: TdmaState = zeros(n, flows, graph.ports, fabric.silence + 3, most, hops)
        streams = n * n if fabric.meets else 1
        packets = int((network.capacity[network.host_port] // fabric.mtu + 2).sum()) + n * n if fabric.meets else 1
        self._parcels = parcels_for(n, streams, packets)
        self._rates = np.unique(graph.rate)
        self.direct = isinstance(self.scheduler, RoundRobin)
        self._want, self._room = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
        self._inputs = self._planning(hops) if self.direct else None
        self.events = fabric.changes(seed)
        self.past = 0  # events that have been
        self._replaced = -1  # ps at which a standby takes over from a manager that is dead; -1 for nobody
        self.now = 0
        self.patience = int(PATIENCE * fabric.round / (1 - fabric.loss) ** 2)
        if fabric.reading is not None:
            self.patience += 2 * ((fabric.receive_buffer or 0) + fabric.mtu) * 8 * second // fabric.reading
        self._foresee()

    def _planner(self, network=None):
        """A scheduler with a fresh memory."""
        options = {"spill": True} if self.fabric.spill else {}
        return scheduler(self.fabric.scheduler, network or self.fabric.network, **options)

    def _planning(self, hops):
        """What round robin needs in the kernel."""
        network, tree, n = self.scheduler.network, self.scheduler.network.tree, self.scheduler.network.hosts
        cost = SCALE // np.maximum(1, (tree.last - tree.first).astype(np.int64))
        out = room_for(self.fabric.slots * n, hops)
        ours = self.scheduler
        return tree, ours.rank, network.capacity, cost, np.full(n, n, np.int64), ours.memory, ours.scratch, out

    @property
    def finished(self):
        return int(self.state.count[Count.FINISHED])

    @property
    def work(self):
        return int(self.state.count[Count.CYCLE]) * self.fabric.nodes

    # ------------------------------------------------------------ time

    @property
    def next_change(self):
        """ps of the next failure or repair."""
        coming = [self.events[self.past][0]] if self.past < len(self.events) else []
        return min([*coming, *([self._replaced] if self._replaced >= 0 else [])], default=None)

    def step(self, until, budget):
        """Let cycles pass that begin before `until`; what a slot carries is there when it has crossed the network."""
        why = self._step(until, budget)
        count = self.state.count
        begin = int(count[Count.BEGIN] + (count[Count.CYCLE] - count[Count.FIRST]) * self.fabric.cycle)
        if why == loop.REACHED and count[Count.DEATH] <= begin and self.next_change is None:
            why = loop.DONE  # there is no manager, and none will come
        if why == loop.REACHED:
            self.now = max(self.now, until)
        elif why == loop.PAUSED:
            self.now = max(self.now, min(begin, until))
        else:
            self.now = max(self.now, int(self.state.finish.max(initial=0)))
        return why

    def _step(self, until, budget):
        fixed, state = self.fixed, self.state
        if self.direct:
            return kernel.rounds(until, budget, fixed, state, self._want, self._room, *self._inputs)
        while True:
            before = int(state.count[Count.CYCLE])
            why = kernel.cycles(until, budget, fixed, state, self._parcels)
            cycle = int(state.count[Count.CYCLE])
            budget -= (cycle - before) * self.fabric.nodes
            if why != kernel.PLAN:
                return why
            kernel.demand(cycle - 1, fixed, state, self._want, self._room)
            demand = Demand(size=self._want.copy(), due=self._due(cycle - 1), urgent=self.state.hurry)
            made = self.scheduler.plan(demand, self.fabric.slots)
            arrays = made.when, made.src, made.dst, made.size, made.first, made.ports, self._speeds(made)
            kernel.enter(cycle - 1, *arrays, fixed, state)

    def _speeds(self, made):
        """(grants,) int32: which of the rates each sender keeps to."""
        return np.searchsorted(self._rates, made.rate).astype(np.int32)

    def _due(self, cycle):
        """(n, n) int32: slots of the round after the one of `cycle` in time for short flows; None without deadlines."""
        due, count = self.state.due, self.state.count
        if not self.fabric.urgent or (due == NEVER).all():
            return None
        first, slots = int(count[Count.FIRST]), self.fabric.slots
        coming = first + ((cycle - first) // slots + 1) * slots
        unheard = (self.state.heard < 0) | (self.state.heard + self.fabric.silence * slots < cycle)
        timely = (due < NEVER) & ~unheard[:, None]
        return np.where(timely, np.maximum(due - coming, 0), NO_DEADLINE).astype(np.int32) if timely.any() else None

    def compile(self):
        self._step(0, 0)
        if not self.direct:  # on a state and a scheduler of their own
            other = zeros(self.fabric.nodes, self.demand.table, len(self.state.busy), 2, 1, self.state.path.shape[2])
            kernel.demand(0, self.fixed, other, self._want, self._room)
            made = self._planner().plan(Demand(size=0 * self._want), 1)
            arrays = made.when, made.src, made.dst, made.size, made.first, made.ports, self._speeds(made)
            kernel.enter(0, *arrays, self.fixed, other)

    def change(self):
        now = self.next_change
        while self.past < len(self.events) and self.events[self.past][0] == now:
            _, kind, which, up = self.events[self.past]
            self.past += 1
            if kind == "node":
                self.state.dead[which] = not up
            elif kind == "link":
                self.state.down[2 * which : 2 * which + 2] = not up
            elif kind == "known":
                self._learn()
            elif up:
                self._begin(now)
            elif self.fabric.patience is not None:
                self._replaced = max(now, self._heartbeat() + self.fabric.patience)
        if self._replaced == now:
            self._begin(now)
        self._despair()

    def _learn(self):
        """Let the manager plan with the links that it knows to be up."""
        alive = np.ones(len(self.fabric.network.graph.ends), bool)
        for _, kind, which, up in self.events[: self.past]:
            if kind == "known":
                alive[which] = up
        network = replace(self.fabric.network, alive=None if alive.all() else alive)
        self.state.severed[:] = network.severed
        self.scheduler.around(network)

    def _despair(self):
        """Do not wait for flows whose ends are dead, or apart, for good."""
        back = {(kind, which) for _, kind, which, up in self.events[self.past :] if up}
        gone = np.array([("node", h) not in back for h in range(self.fabric.nodes)]) & self.state.dead
        links = range(len(self.fabric.network.graph.ends))
        hope = np.array([not self.state.down[2 * link] or ("link", link) in back for link in links])
        apart = replace(self.fabric.network, alive=hope).severed[self.fixed.src, self.fixed.dst]
        never = (gone[self.fixed.src] | gone[self.fixed.dst] | apart) & (self.state.finish < 0)
        never = beyond_help(self.demand.table, never)
        self.state.count[Count.GOAL] = len(never) - int(never.sum())

    def _heartbeat(self) -> int:
        """When the manager that is dead last began a cycle."""
        count = self.state.count
        return int(count[Count.BEGIN] + (count[Count.CYCLE] - count[Count.FIRST] - 1) * self.fabric.cycle)

    def _foresee(self):
        """Let the kernel know when the manager will die: frames that it will not send must be missed by then."""
        deaths = [time for time, kind, _, up in self.events[self.past :] if kind == "manager" and not up]
        self.state.count[Count.DEATH] = min(deaths, default=NEVER)

    def _begin(self, now):
        """Let a manager begin, the old one or the standby: with a fresh memory, and a round of reports alone."""
        state, count = self.state, self.state.count
        if count[Count.DEATH] > now:
            return  # the standby has taken over meanwhile
        count[Count.FIRST], count[Count.BEGIN] = count[Count.CYCLE], now
        self._foresee()
        count[Count.ADOPTED] = -1
        state.rounds[:] = -1
        state.heard[:] = -1
        state.seen[:] = -1
        state.due[:] = NEVER
        self.scheduler = self._planner()
        self._learn()
        self._inputs = self._planning(state.path.shape[2]) if self.direct else None
        self._replaced = -1

    # ------------------------------------------------------------ what others see

    def sample(self):
        count, mtu = self.state.count, self.fabric.mtu
        waiting = self.state.left.sum(1) + self.state.behind.sum(1)
        return {
            "delivered_bytes": self.state.got.sum(0),
            "finished": self.finished,
            "waiting": int(waiting.sum()) // mtu,
            "queued": self.gathered(waiting // mtu),
            "lost": sum(int(count[which]) // mtu for which in CAUSES.values()),
            "busy_ps": self.averaged(self.sent, self.fabric.network.graph.port_ends()[0]),
        }

    @property
    def sent(self):
        """(ports,) int64: ps in which each has sent; what is kept for short flows counts for its share of the rate."""
        kept, (busy, idle, since, gap, _) = self.fabric.reserve, self.state.lines.T
        coming = self.now < since
        until, idle = np.where(coming, since - gap, busy), np.where(coming, idle - gap, idle)
        slots, beside = np.minimum(until, self.now) - idle
        if not kept:
            return slots
        return slots + ((beside - slots) * (kept / (self.fabric.network.rate + kept))).astype(np.int64)

    def monitors(self, thorough=True):
        count = self.state.count
        inside = sum(int(table.sum()) for table in (self.state.left, self.state.behind, self.state.got))
        law = "no_link_beyond_its_slot" if self.fabric.meets else "no_link_twice_in_a_slot"
        return {
            "conservation": int(inside != int(count[Count.OFFERED])),
            law: int(count[Count.REUSED]),
            "receive_buffers": int(count[Count.OVERFLOWS]),
            "delivered_as_offered": self._miscounted() if thorough else 0,
            "progress": self.stalled(),
        }

    @property
    def under_way(self):
        """Bytes that have arrived; whether any wait at their sender while all is up."""
        state, count = self.state, self.state.count
        up = not (state.dead.any() or state.down.any() or state.severed.any()) and count[Count.DEATH] > self.now
        return int(state.got.sum()), bool(up and state.left.any())

    def _miscounted(self) -> int:
        """Flows that got other bytes than they asked for, and bytes that belong to no flow."""
        state = self.state
        wrong = delivered_as_offered(self.fixed.size, state.done, state.finish)
        return wrong + int(int(state.done.sum()) != int(state.got.sum()))

    def arrays(self):
        made = self.state._asdict()
        made |= {f"scheduler.{name}": array for name, array in self.scheduler.arrays().items()}
        return made | {"clock": np.array([self.now, self.past, self._replaced], np.int64)}

    def check(self, given):
        laid = self.arrays()
        if "scheduler.batch" in laid and given.get("scheduler.batch", np.zeros(0)).shape[1:] == (self.fabric.nodes,):
            laid["scheduler.batch"] = np.zeros_like(given["scheduler.batch"], np.int64)  # as many as are left of it
        check_shapes(laid, given, {})
        check_limits(self.limits(given))

    def limits(self, given):
        n, flows, ports = self.fabric.nodes, len(self.fixed.size), len(self.state.busy)
        for name in ("head", "tail", "next"):
            yield name, given[name], -1, flows - 1
        for name in ("frm", "to"):
            yield name, given[name], 0, n - 1
        yield "path", given["path"], -1, ports - 1
        yield "many", given["many"], 0, given["when"].shape[1]
        yield "when", given["when"], 0, self.fabric.slots
        rates = self.fixed.packet.shape[0]
        yield "speed", given["speed"], 0, rates - 1
        yield "heaped", given["count"][Count.HEAPED], 0, max(len(given["waits"]), 0)
        yield from calendar.limits(given["waits"], self.state.waits, len(self.state.successors))
        yield "successors", np.abs(given["successors"].astype(np.int64) - self.state.successors), 0, 0
        for name in ("left", "got", "held", "read", "done", "busy", "coming", "beside", "lines", "given", "behind",
                     "wrote", "written", "load", "hurry", "stream", "opened"):  # fmt: skip
            yield name, given[name], 0, 1 << 62
        for name in ("begun", "finish", "used", "seen", "heard", "rounds"):
            yield name, given[name], -1, 1 << 62
        for place, largest in ((Count.CYCLE, 1 << 62), (Count.FIRST, 1 << 62), (Count.ADMITTED, flows),
                               (Count.FINISHED, flows), (Count.SHORT, flows), (Count.GOAL, flows)):  # fmt: skip
            yield place.name.lower(), given["count"][place], 0, largest
        yield "clock", given["clock"], -1, 1 << 62
        yield "clock", given["clock"][1], 0, len(self.events)
        for name, array in given.items():
            if name.startswith("scheduler."):
                yield from self.scheduler.limits(name.partition(".")[2], array)

    def restore(self, arrays):
        for name, array in self.state._asdict().items():
            array[:] = arrays[name]
        self.scheduler.restore({name.partition(".")[2]: array for name, array in arrays.items() if "." in name})
        self.now, self.past, self._replaced = arrays["clock"].tolist()
        if any(kind == "known" for _, kind, _, _ in self.events[: self.past]):
            self._learn()

    def observe(self) -> Observation:
        fabric, state, c = self.fabric, self.state, self.state.count
        flows = self.demand.table
        ideal, last = fabric.transfer(flows), int(state.finish.max(initial=0))
        done = len(flows) > 0 and self.finished == len(flows)
        packet = fabric.mtu + fabric.overhead
        queue = int(c[Count.QUEUE])
        frames = int(c[Count.FRAMES])
        sections = {
            "finish_s": last / second if done else None,
            "ideal_s": ideal / second,
            "efficiency": ideal / last if done else None,
            "control": {
                "frames": frames,
                "bytes": frames * FRAME,
                "rate_mbps_per_host": fabric.control_rate / Mbps,
                "overhead": fabric.control_rate
                / 2
                / fabric.link,  # the half that falls into guards costs nothing (§6.5)
            },
            "slots": {
                "granted": int(c[Count.GRANTS]),
                "used": int(c[Count.STREAMS]),
                "unused": int(c[Count.UNUSED]),
                "missed_frames": int(c[Count.MISSED]),
                "late_schedule": int(c[Count.LATE]),
                "without_stop": int(c[Count.OVERRUNS]),
                "shared": int(c[Count.SHARED]),
            },
            "demand": {
                "granted_bytes": int(c[Count.GIVEN]),
                "sent_bytes": int(c[Count.SENT]),
                "not_there_bytes": int(c[Count.ABSENT]),
                "not_reported_bytes": int(c[Count.BEYOND]),
            },
            "deadlines": self._deadlines(),
            "overlap": {
                "streams": int(c[Count.OVERLAPS]),
                "mingled": int(c[Count.INTERLEAVED]),
                "mean_us": int(c[Count.QUEUED]) / max(1, int(c[Count.OVERLAPS])) / us,
            },
            "short_flows": int(c[Count.SHORT]),
            "scheduler": {"name": fabric.scheduler, "bound_slots": self.scheduler.bound(fabric.slots)},
        }
        return Observation(
            finish=state.finish.copy(),
            received=state.done.copy(),
            now=self.now,
            unit="packets",
            carried={"sent": int(c[Count.PACKETS]), "streams": int(c[Count.STREAMS])},
            queue=Queue(max=-(-queue // packet), max_bytes=queue),
            lost=Lost(
                causes={cause: int(c[which]) // fabric.mtu for cause, which in CAUSES.items()},
                flows=len(flows) - int(c[Count.GOAL]),
            ),
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections=sections,
            monitors=self.monitors(),
            fingerprint=show(state.fingerprint),
            samples=self.series.columns(self.now, self.sample()),
            work={"cycles": int(c[Count.CYCLE]), "node_slots": self.work, "seconds": self.seconds},
            notes=tuple(self._notes()),
        )

    def _deadlines(self):
        """How many flows had one, and of those done how many were late; the others are not done."""
        fabric, state = self.fabric, self.state
        timed = (self.fixed.size <= fabric.urgent) & (state.begun >= 0)
        took = state.finish - state.begun
        late = timed & (state.finish >= 0) & (took > fabric.deadline)
        return {"flows": int(timed.sum()), "late": int(late.sum()), "open": int((timed & (state.finish < 0)).sum())}

    def _notes(self):
        mingled = int(self.state.count[Count.INTERLEAVED])
        if mingled:
            yield (
                f"{mingled} streams met another that was still arriving: their packets mingle, which is counted as a "
                "queue of the later behind the earlier"
            )


def beyond_help(flows, never: np.ndarray) -> np.ndarray:
    """(f,) bool: the flows of `never`, and all that wait for them or for such as wait for them."""
    if not flows.waiting:
        return never
    waiting = np.repeat(np.arange(len(flows)), np.diff(flows.after_first))
    never, before = never.copy(), -1
    while before != (before := int(never.sum())):
        never[waiting[never[flows.after]]] = True
    return never


def _fixed(fabric, flows, seed) -> Fixed:
    network = fabric.network
    graph, n = network.graph, network.hosts
    nics = fabric.controllers(seed)
    groups = by_switch(network)
    own = [groups[k :: nics.count] for k in range(nics.count)]
    most = max(len(switches) for switches in own)
    firsts = np.zeros((nics.count, most), np.int64)
    nic, before, place, mates = (np.zeros(n, np.int64) for _ in range(4))
    for k, switches in enumerate(own):
        at = 0
        for m, hosts in enumerate(switches):
            firsts[k, m] = at
            for x, h in enumerate(hosts):
                nic[h], before[h], place[h], mates[h] = k, at, x, len(hosts)
            at += len(hosts)

    def limit(value):
        return NEVER if value is None else value

    reacts = fabric.reacts
    number = {
        Number.HOSTS: n, Number.SLOTS: fabric.slots, Number.SLOT: fabric.sending, Number.GUARD: fabric.guard,
        Number.CYCLE: fabric.cycle, Number.PERMIT: fabric.permission, Number.LEAD: fabric.lead, Number.AGE: fabric.age,
        Number.COMPUTE: fabric.compute, Number.SPACING: nics.spacing, Number.TRANSIT: fabric.transit,
        Number.LAG: reacts.lag, Number.JITTER: reacts.jitter, Number.LOSS: int(fabric.loss * kernel._UNIT),
        Number.MTU: fabric.mtu, Number.OVERHEAD: fabric.overhead, Number.STORE: int(fabric.switching == "store"),
        Number.BUFFER: fabric.buffer, Number.SEND: limit(fabric.send_buffer),
        Number.RECEIVE: limit(fabric.receive_buffer), Number.DRAIN: limit(fabric.reading),
        Number.SILENCE: fabric.silence, Number.WRITE: limit(fabric.writing),
        Number.TREND: int(fabric.estimate == "trend"), Number.URGENT: fabric.urgent, Number.DEADLINE: fabric.deadline,
        Number.SHARE: fabric.share if fabric.meets else -1, Number.INBAND: int(fabric.inband),
        Number.PORT: wire_time(FRAME, fabric.link) + fabric.delay,
    }  # fmt: skip
    short = flows.size <= fabric.short
    ways = np.full((n, n, 1), -1, np.int32) if not short.any() else _ways(network)
    return Fixed(
        number=np.array([number[k] for k in Number], np.int64),
        keys=np.array([random.key(seed, stream) for stream in (kernel.REACTIONS, kernel.LOSSES)], np.uint64),
        packet=np.stack([fabric.packets(rate) for rate in np.unique(graph.rate).tolist()]),
        pace=np.repeat(np.searchsorted(np.unique(graph.rate), graph.rate), 2).astype(np.int32),
        capacity=network.capacity,
        aside=fabric.packets(fabric.reserve or 1), delay=np.repeat(graph.delay, 2), own=network.host_port,
        nic=nic.astype(np.int32), before=before, firsts=firsts, switches=np.array([len(s) for s in own], np.int64),
        frames=np.array([sum(map(len, s)) for s in own], np.int64), place=place, mates=mates,
        offset=np.array(nics.offset, np.int64), drift=np.array(nics.drift, np.int64), src=flows.src, dst=flows.dst,
        size=flows.size, frame=np.array([wire_time(FRAME + GAP, int(network.rate[p])) for p in network.host_port]),
        start=flows.start, short=short,
        known=len(flows) - flows.waiting, ways=ways,
    )  # fmt: skip


def _ways(network) -> np.ndarray:
    """(n, n, hops) int32: a shortest path of every pair, -1 beyond its last port."""
    n = network.hosts
    if network.tree is not None:
        paths = {(i, j): network.path(i, j) for i in range(n) for j in range(n) if i != j}
    else:
        paths = {(i, j): _shortest(network, i, j) for i in range(n) for j in range(n) if i != j}
    out = np.full((n, n, max(map(len, paths.values()))), -1, np.int32)
    for (i, j), path in paths.items():
        out[i, j, : len(path)] = path
    return out


def _shortest(network, i, j) -> list[int]:
    """One of the shortest paths, another for every sender."""
    from weft.topology.routes import HERE

    way, (_, receiver) = network.routes, network.graph.port_ends()
    path = [int(network.host_port[i])]
    while (group := way.table[way.row[receiver[path[-1]]], way.anchor[j]]) != HERE:
        path.append(int(way.choices[way.first[group] + i % way.count[group]]))
    return [*path, int(way.down[j])]
