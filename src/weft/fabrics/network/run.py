"""A packet network at work: the kernel's tables between its strides, and what was seen of them."""

from dataclasses import fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numba import typeof, types

from weft.engine import events, fingerprint, loop, memory
from weft.engine.layout import Grows, check_limits, check_same, check_shapes
from weft.engine.series import QUEUES, sums
from weft.engine.views import bind
from weft.fabrics.network import bounds, kernel
from weft.fabrics.network import state as st
from weft.fabrics.network.fabric import Network, groups
from weft.fabrics.network.failures import cut_off
from weft.fabrics.network.hosted import HostedRun
from weft.hosts import checked
from weft.hosts import state as hosts
from weft.hosts.state import PER_FLOW, PER_PACKET
from weft.metrics.observation import Lost, Observation, Queue
from weft.topology.routes import routes
from weft.units import s, us

ROWS_FULL, SLOTS_FULL = loop.MORE, loop.MORE + 1
CONSTANT = {  # what no step changes, by table
    "world": (*sum((*hosts.PARAMETERS, *st.PARAMETERS), ()), "shift", "ties", "tie_key", "key", "known"),
    "ports": ("delay", "capacity", "mark_from", "mark_all", "to", "frm", "pace", "host", "rate"),
    "hosts": ("port", "rate"),
    "traffic": ("size", "start", "src", "dst", "klass"),
}
CAUSES = {"full": "drop_full", "link_down": "drop_down", "no_route": "drop_route", "lossless": "drop_lossless"}


class NetworkRun(HostedRun):
    """A packet network at work."""

    fabric: Network
    unit = "events"
    budget = 20_000
    inspect_every = 1 << 20
    inspect_samples = 16
    tables: tuple[str, ...] = st.TABLES  # arrays that kernels reach through the world

    def __init__(self, fabric, flows, seed=0):
        super().__init__(fabric, flows, seed=seed, every=20 * us)
        self.state = fabric.lay_out(flows, seed)
        self.moments = self._moments()

    def compile(self):
        world = self.state.world
        kernel.advance(world, 0, 0)
        if self.moments:
            for change in (kernel.cut, kernel.mend):
                change.compile((typeof(world), types.int64))
        if self.fabric.settings.queue == "lossless":
            kernel.untangle(world, np.zeros(0, np.uint8), np.zeros(0, np.int64))

    def step(self, until, budget):
        why = kernel.advance(self.state.world, until, budget)
        if why == kernel.DONE:
            world = self.world
            idle = world["next_flow"] == world["known"] and world["coming"] == 0 and world["live"] == 0
            return loop.DONE if idle or (self.until is None and self._hopeless()) else loop.REACHED
        return {kernel.PAUSED: loop.PAUSED, kernel.GROW_ROWS: ROWS_FULL, kernel.GROW_SLOTS: SLOTS_FULL}[why]

    @cached_property
    def _cut_off(self) -> np.ndarray:
        """(hosts,) ps from which each host is cut off for good."""
        return cut_off(self.fabric.changes(self.seed), self.fabric.graph)

    def _doomed(self) -> np.ndarray:
        """Which flows have not finished and never will, because an end is cut off for good, or a flow they wait for."""
        gone, flows = self._cut_off <= self.now, self.demand.table
        doomed = (self.state.traffic["finish"] < 0) & (gone[flows.src] | gone[flows.dst])
        if flows.waiting and doomed.any():
            follower = np.repeat(np.arange(len(flows)), np.diff(flows.after_first))
            more = True
            while more:
                also = follower[doomed[flows.after]]
                more = not doomed[also].all()
                doomed[also] = True
        return doomed

    def _hopeless(self) -> bool:
        """Whether all that is left to happen are timeouts of flows that never finish."""
        if self.now < int(self._cut_off.min()):
            return False
        return int(self._doomed().sum()) == self.total - self.finished

    def grow(self, why):
        longer = memory.longer(
            {name: getattr(self.state, name) for name in (PER_PACKET if why == ROWS_FULL else PER_FLOW)}
        )
        for name, array in longer.items():
            setattr(self.state, name, array)
        bind(self.state.world, **longer)

    def sample(self):
        ports = self.state.ports
        waiting = ports["packets"].astype(np.int64)
        if not self.fabric.in_time:  # else there is one queue, and the other lies in a cache line of its own
            waiting += ports["packets_high"]
        busy, idle = self.lines
        if self.world["lazy"]:  # what a port has chosen since is not known yet, but how long it took
            bits = 8.0 * (ports["bytes"] + ports["bytes_high"].astype(np.int64))
            busy = busy + np.maximum(bits * s / ports["rate"] - 1, 0).astype(np.int64)
        queued = waiting if len(ports) <= QUEUES else sums(self._senders, waiting, self.fabric.graph.nodes)
        return {
            "delivered_bytes": self.state.hosts["delivered"],
            "finished": self.finished,
            "waiting": waiting.sum(),
            "lost": self.lost.total,
            "queued": self.gathered(queued),
            "busy_ps": self.averaged(np.minimum(busy, self.now) - idle, self._senders),
        }

    @cached_property
    def _senders(self) -> np.ndarray:
        """(ports,) int64: the node that each port leads from, in one piece."""
        return self.state.ports["frm"].astype(np.int64)

    @property
    def lines(self) -> tuple:
        """When each port will have sent what it has, and how long it was idle until then."""
        return self.state.ports["busy"], self.state.ports["idle"]

    def stalled(self):
        """1 if flows are under way, but no event is to come that could move them."""
        w = self.world
        coming = int(w["ringed"] + w["heaped"] + w["last"] - w["first"] + w["known"] - w["next_flow"] + w["coming"])
        if w["live"] == 0 or coming or self.next_change is not None:
            return 0
        return int(int(self._doomed().sum()) < self.total - self.finished)

    # failures

    def _moments(self) -> dict:
        """time -> (links to fail, links to repair), for every moment something happens, route changes included."""
        moments: dict[int, tuple[list, list]] = {}
        for change in self.fabric.changes(self.seed):
            moments.setdefault(change.time, ([], []))[change.up].extend(change.links)
            moments.setdefault(change.time + self.fabric.converge, ([], []))
        return dict(sorted(moments.items()))

    @property
    def next_change(self):
        """Just before the next failure, repair or change of routes."""
        applied = int(self.world["applied"])
        return next((time - 1 for time in self.moments if time > applied), None)

    def change(self):
        world, fabric = self.state.world, self.fabric
        time = self.next_change + 1
        world["applied"] = time
        world["now"] = max(self.now, time - 1)
        failed, repaired = self.moments[time]
        for link in failed:
            kernel.cut(world, 2 * link)
            kernel.cut(world, 2 * link + 1)
        for link in repaired:
            kernel.mend(world, 2 * link)
            kernel.mend(world, 2 * link + 1)
        table = routes(fabric.graph, fabric.alive(self.seed, time - fabric.converge))
        state = self.state
        state.table[:], state.group, state.choices = table.table, groups(table), table.choices.copy()
        bind(world, group=state.group, choices=state.choices)

    # laws

    def monitors(self, thorough=True):
        world, ports, fabric = self.world, self.state.ports, self.fabric
        waiting = int(ports["packets"].sum() + ports["packets_high"].sum()) if thorough else 0
        on_their_way = int(world["conserved_in"] - world["conserved_out"])
        ended = int(world["landed"] + world["heeded"]) + self.lost.total  # every packet that is gone went somewhere
        laws = {
            "conservation": int(not waiting <= on_their_way <= int(world["alive"]))
            + abs(ended - int(world["conserved_out"])),
            "delivered_as_offered": checked.miscounted(self.state) if thorough else 0,
            "progress": self.stalled(),
        }
        if fabric.in_time:
            laws["buffer_bound"] = int((ports["peak"] > ports["capacity"]).sum()) if thorough else 0
        if fabric.settings.queue == "lossless":
            laws["losslessness"] = int(world["drop_lossless"])
            laws["freedom_from_deadlock"] = len(bounds.deadlock(self.state)) if thorough else 0
        return laws

    @property
    def lost(self):
        """Packets that were dropped, by cause."""
        return Lost(causes={cause: int(self.world[name]) for cause, name in CAUSES.items()})

    def _lost_with_flows(self):
        doomed = int(self._doomed().sum()) if self.now >= int(self._cut_off.min()) else 0
        return replace(self.lost, flows=doomed)

    # what was seen

    def observe(self) -> Observation:
        state, fabric = self.state, self.fabric
        world = self.world
        count = {name: int(world[name]) for name in world.dtype.names if not name.endswith(("_at", "_size"))}
        lost = self._lost_with_flows()
        return Observation(
            finish=state.traffic["finish"].copy(),
            received=state.traffic["received"].copy(),
            now=self.now,
            unit="packets",
            carried={
                "data": count["sent_segments"],
                "acks": count["acks"],
                "nacks": count["nacks"],
                "pulls": count["pulls"],
                "cnps": count["cnps"],
                "returned": count["bounces"],
                "duplicates": count["duplicates"],
                "fast_retransmits": count["fast_retransmits"],
                "reinjected": count["moved"],
            },
            queue=self._longest(),
            lost=lost,
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections={
                "queue_packets": {
                    "max": self._longest().max,
                    "are": "counted" if not fabric.in_time else f"bytes / {fabric.wire_size}, rounded up",
                },
                "drops": lost.causes,
                "trims": count["trims"],
                "marks": count["marks"],
                "pauses": count["pauses"],
                "retransmissions": count["resent"],
                "timeouts": count["timeouts"],
                "settings": fabric.resolved(),
            },
            monitors=self.monitors(),
            fingerprint=fingerprint.show(state.print),
            samples=self.series.columns(self.now, self.sample()),
            work={
                "packet_hops": count["hops"],
                "events": count["released"] + count["next_flow"],
                "seconds": self.seconds,
            },
        )

    def _longest(self) -> Queue:
        """The longest queue of a switch; ports that count their backlog in time know its bytes only."""
        ports, fabric = self.state.ports, self.fabric
        inner = ports["host"] == 0
        peaks = ports["peak"][inner]
        if not fabric.in_time:
            packets = int(ports["peak_packets"][inner].max(initial=0))
            return Queue(max=packets, max_bytes=int(peaks.max(initial=0)))
        backlog = peaks.astype(object) * ports["rate"][inner].astype(object) // (8 * s)  # ps to bytes
        peak = int(max(backlog, default=0))
        return Queue(max=-(-peak // fabric.wire_size), max_bytes=peak)

    # checkpoints

    def arrays(self):
        return {name: array.copy() for name, array in vars(self.state).items()}

    grows: ClassVar[Grows] = {
        **dict.fromkeys(PER_PACKET, (("rows", 0),)),
        **dict.fromkeys(PER_FLOW, (("slots", 0),)),
    }

    def check(self, given):
        laid = self.arrays()
        for name in {"group", "choices"} & set(laid):  # which are others once something has failed
            if given.get(name, laid[name]).ndim == laid[name].ndim:
                laid[name] = np.zeros((len(given.get(name, ())), *laid[name].shape[1:]), laid[name].dtype)
        check_shapes(laid, given, self.grows)
        for name, constant in CONSTANT.items():
            check_same({field: laid[name][field] for field in constant if field in laid[name].dtype.names}, given[name])
        check_same({name: laid[name] for name in ("pool", "homes", "row", "successors") if name in laid}, given)
        check_limits(self.limits(given))

    def limits(self, given):
        ports, many = given["ports"], len(given["rows"])
        yield from checked.limits(given, self.state.waits, ports=len(ports))
        for name in ("head", "tail", "head_high", "tail_high"):
            yield f"ports.{name}", ports[name], -1, many - 1
        for name in ("packets", "packets_high"):
            yield f"ports.{name}", ports[name], 0, many
        yield "applied", given["world"]["applied"], -1, 1 << 62
        if "group" in given:
            yield "table", given["table"], -2, len(given["group"]) - 1
            yield "choices", given["choices"], 0, len(ports) - 1
            first, count, turn = given["group"].T.astype(np.int64)
            yield "group", np.stack([first, count, turn]), 0, len(given["choices"])
            yield "group", first + count, 0, len(given["choices"])
            yield "group", turn - np.maximum(count, 1), -(1 << 31), -1

    def restore(self, arrays):
        names = [field.name for field in fields(self.state)]
        shapes = {name: (arrays[name].shape, arrays[name].dtype) for name in names}
        self.state = state = type(self.state)(**memory.zeros(shapes))
        for name in names:
            getattr(state, name)[...] = arrays[name]
        bind(state.world, **{name: getattr(state, name) for name in (*events.ARRAYS, *self.tables)})
