"""A run of TDMA under way: the arrays that the kernel changes, and the manager's life and death between its steps."""

import numpy as np

from weft import random
from weft.fabrics.tdma import kernel
from weft.fabrics.tdma.fabric import TDMA
from weft.fabrics.tdma.manager import by_switch
from weft.fabrics.tdma.plan import Demand
from weft.fabrics.tdma.schedulers import scheduler
from weft.fabrics.tdma.schedulers.base import room_for
from weft.fabrics.tdma.schedulers.roundrobin import SCALE, RoundRobin
from weft.fabrics.tdma.state import NEVER, Count, Fixed, Number, State, zeros


class Core:
    """Slots of a network with these flows; `step` lets time pass."""

    def __init__(self, fabric: TDMA, flows, seed: int):
        self.fabric, self.flows, self.seed = fabric, flows, seed
        network = fabric.network
        self.scheduler = scheduler(fabric.scheduler, network)
        n, graph = network.hosts, network.graph
        self.fixed = _fixed(fabric, flows, seed)
        hops = 2 * int(network.tree.depth.max()) if network.tree is not None else 8
        self.state: State = zeros(n, len(flows), graph.ports, fabric.silence + 3, fabric.slots * n, hops)
        self.direct = isinstance(self.scheduler, RoundRobin)
        self._want = np.zeros((n, n), np.int64)
        self._room = np.zeros((n, n), np.int64)
        self._inputs = self._planning(hops) if self.direct else None
        self.events = _events(fabric, seed)
        self._replaced = -1  # ps at which a standby takes over from a manager that is dead; -1 for nobody
        self._foresee()

    def _planning(self, hops):
        """What round robin needs in the kernel."""
        network, tree, n = self.scheduler.network, self.scheduler.network.tree, self.scheduler.network.hosts
        cost = SCALE // np.maximum(1, (tree.last - tree.first).astype(np.int64))
        out = room_for(self.fabric.slots * n, hops)
        return tree, self.scheduler._rank, network.capacity, cost, np.full(n, n, np.int64), self.scheduler.memory, out

    # ------------------------------------------------------------ time

    @property
    def next_change(self) -> int | None:
        """ps of the next failure or repair."""
        coming = [self.events[0][0]] if self.events else []
        return min([*coming, *([self._replaced] if self._replaced >= 0 else [])], default=None)

    def step(self, until: int, budget: int) -> int:
        """Let cycles pass that begin before `until`; says why it ended: REACHED, PAUSED or DONE."""
        fixed, state = self.fixed, self.state
        if self.direct:
            return kernel.rounds(until, budget, fixed, state, self._want, self._room, *self._inputs)
        while True:
            before = int(state.count[Count.CYCLE])
            why = kernel.cycles(until, budget, fixed, state)
            cycle = int(state.count[Count.CYCLE])
            budget -= (cycle - before) * self.fabric.nodes
            if why != kernel.PLAN:
                return why
            kernel.demand(cycle - 1, fixed, state, self._want, self._room)
            made = self.scheduler.plan(Demand(size=self._want.copy()), self.fabric.slots)
            kernel.enter(
                cycle - 1, made.when, made.src, made.dst, made.size, made.first, made.ports, fixed, state
            )  # fmt: skip

    def change(self) -> None:
        """Take in what was to happen at `next_change`."""
        now = self.next_change
        while self.events and self.events[0][0] == now:
            _, kind, which, up = self.events.pop(0)
            if kind == "node":
                self.state.dead[which] = not up
            elif up:
                self._begin(now)
            elif self.fabric.patience is not None:
                self._replaced = max(now, self._heartbeat() + self.fabric.patience)
        if self._replaced == now:
            self._begin(now)

    def _heartbeat(self) -> int:
        """When the manager that is dead last began a cycle."""
        count = self.state.count
        return int(count[Count.BEGIN] + (count[Count.CYCLE] - count[Count.FIRST] - 1) * self.fabric.cycle)

    def _foresee(self):
        """Let the kernel know when the manager will die: frames that it will not send must be missed by then."""
        deaths = [time for time, kind, _, up in self.events if kind == "manager" and not up]
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
        self.scheduler = scheduler(self.fabric.scheduler, self.fabric.network)
        self._inputs = self._planning(state.path.shape[2]) if self.direct else None
        self._replaced = -1

    @property
    def finished(self) -> int:
        return int(self.state.count[Count.FINISHED])


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
        Number.SILENCE: fabric.silence,
    }  # fmt: skip
    short = flows.size <= fabric.short
    ways = np.full((n, n, 1), -1, np.int32) if not short.any() else _ways(network)
    return Fixed(
        number=np.array([number[k] for k in Number], np.int64),
        keys=np.array([random.key(seed, stream) for stream in (kernel.REACTIONS, kernel.LOSSES)], np.uint64),
        packet=fabric.packets(fabric.rate),
        aside=fabric.packets(fabric.reserve or 1), delay=np.repeat(graph.delay, 2), own=network.host_port,
        nic=nic.astype(np.int32), before=before, firsts=firsts, switches=np.array([len(s) for s in own], np.int64),
        frames=np.array([sum(map(len, s)) for s in own], np.int64), place=place, mates=mates,
        offset=np.array(nics.offset, np.int64), drift=np.array(nics.drift, np.int64), src=flows.src, dst=flows.dst,
        size=flows.size, start=flows.start, short=short, ways=ways,
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


def _events(fabric, seed) -> list[tuple[int, str, int, bool]]:
    """(ps, kind, which, whether it comes back) of what the plan of failures says, in order."""
    out = []
    for outage in fabric.outages(seed):
        out.append((outage.at, outage.what, outage.which[0], False))
        if outage.until is not None:
            out.append((outage.until, outage.what, outage.which[0], True))
    return sorted(out)
