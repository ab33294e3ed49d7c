"""Network: hosts, packet switches and the transport that runs between them, whatever the topology."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np

from weft.engine.series import NUMBERS, ROWS
from weft.errors import BadInput, require
from weft.fabrics.network import bounds
from weft.fabrics.network.failures import Change, plan
from weft.fabrics.network.hosted import Hosted
from weft.fabrics.network.settings import QUEUES, Nic, Queue, Routing, Settings, settings
from weft.topology.graph import Topology
from weft.topology.routes import Routes, require_connected, routes
from weft.units import Gbps, Rate, Size, Time, param, s, show_number, show_rate, show_size, us, wire_time
from weft.workload.flows import LATEST

NEVER = (1 << 62) - 1
CACHE = 1 << 21  # bytes of a network that a core's cache holds; changes the speed and nothing else


@dataclass(frozen=True, kw_only=True)
class Network(Hosted):
    """A packet-switched network under one transport; rooms derive from it and say what is connected to what (`graph`).

    What the transport and the queues are set to comes from the preset that `transport` names (`weft presets`); the
    fields that are None leave it at that. Queue lengths and windows count full-size packets.
    """

    releases = True

    hosts: int = param(432, "hosts")
    link: Rate = param(10 * Gbps, "rate of every link")
    delay: Time = param(1 * us, "time along a cable and through the switch behind it", also="propagation")
    mtu: Size = param(1500, "largest IP packet; preamble, Ethernet header, FCS and gap come on top")
    transport: str = param("tcp", "preset, as in ndp, dctcp@stardust-nsdi19 or tcp:sack=true,rto_min=1ms")
    nic: Nic | None = param(None, "order in which a host sends its flows' packets; fair is round robin")
    routing: Routing | None = param(None, "how packets choose among equal paths")
    queue: Queue | None = param(None, "what the ports of switches do")
    buffer: int | None = param(None, "packets a port of a switch holds")
    mark: int | None = param(None, "packets above which ECN marks")
    initial_window: int | None = param(None, "packets sent at once when a flow starts")
    rto: Time | None = param(None, "least retransmission timeout")
    ties: Literal["fifo", "lifo", "random"] = param("fifo", "order of events in the same picosecond")
    fail: str = param(
        "", "failures, as in link edge0.1-agg0.0 at 10us until 2ms, switch core0.3 at 1ms, nodes 3,17, links 5%"
    )
    converge: Time = param(100 * us, "time after a failure or repair until routes have changed")

    def __post_init__(self):
        require(self.hosts >= 2, "hosts", "at least 2", self.hosts)
        require(self.link > 0, "link", "more than 0", self.link)
        require(self.delay >= 0, "delay", "0 or more", self.delay)
        require(self.converge >= 0, "converge", "0 or more", self.converge)
        require(self.ties in ("fifo", "lifo", "random"), "ties", "one of fifo, lifo, random", self.ties)
        require(self.mtu <= 65535, "mtu", "at most 65535", self.mtu)
        require(self.mtu > self.settings.header, "mtu", f"more than the header, {self.settings.header}", self.mtu)
        lossless = self.settings.queue == "lossless"
        if lossless and self.settings.headroom:
            needed = bounds.headroom(self.link, self.delay, self.wire_size)
            if self.settings.headroom < needed:
                raise BadInput(
                    f"headroom must be at least {needed} bytes ({show_size(needed)}) for this link, delay and MTU, not "
                    f"{self.settings.headroom}"
                )
        self.changes(0)
        self._check_times()

    def _check_times(self):
        """Sums of times must fit a machine word: what a buffer holds is sent, and crosses every link, in 26 days."""
        slowest, farthest = int(self.graph.rate.min()), int(self.graph.delay.max()) * self.graph.nodes
        drained = self.settings.buffer * wire_time(self.wire_size, slowest) + farthest
        if drained > LATEST // 2:
            raise BadInput(
                f"a full buffer must be sent and cross the network within 26 days, not in {drained / s / 86400:.4g}: "
                f"{self.settings.buffer:,} packets at {show_rate(slowest)}"
            )

    @property
    def nodes(self) -> int:
        """Hosts: what a workload sees of the network."""
        return self.hosts

    @cached_property
    def settings(self) -> Settings:
        """Parameters of transport and queues, the preset's and this fabric's own."""
        return settings(
            self.transport,
            nic=self.nic,
            routing=self.routing,
            queue=self.queue,
            buffer=self.buffer,
            mark_from=self.mark,
            mark_all=None if self.mark is None else 0,
            initial_window=self.initial_window,
            rto_min=self.rto,
            rto_first=self.rto,
        )

    @property
    def graph(self) -> Topology:
        """The network as a graph: hosts first, then switches."""
        raise NotImplementedError(f"{type(self).__name__} must say what is connected to what, as `graph`")

    def changes(self, seed: int) -> list[Change]:
        """Links that go down and come back in a run with this seed, in order of time."""
        return plan(self.fail, self.graph, seed)

    def alive(self, seed: int, moment: int) -> np.ndarray:
        """(links,) bool: which links have not failed by `moment`, as far as routes know."""
        alive = np.ones(len(self.graph.ends), bool)
        for change in self.changes(seed):
            if change.time <= moment:
                alive[list(change.links)] = change.up
        return alive

    @cached_property
    def routes(self) -> Routes:
        """Shortest paths while nothing has failed."""
        table = routes(self.graph)
        require_connected(self.graph, table)
        return table

    @property
    def in_time(self) -> bool:
        """Whether ports count their backlog in ps and need no event of their own: see switches.py."""
        return self.settings.queue == "droptail" and not self.settings.share

    def parts(self) -> dict[str, int]:
        """What the network is made of: switches by the ports they use, NICs and cables."""
        return self.graph.parts()

    @property
    def headroom(self) -> int:
        """Bytes a lossless port keeps free for what arrives after it asked for a pause."""
        return self.settings.headroom or bounds.headroom(self.link, self.delay, self.wire_size)

    def ideal(self, flows) -> np.ndarray:
        """(flows,) int64 ps: no flow can be faster on an empty network."""
        return bounds.ideal(self, flows)

    def prepare(self, demand, *, seed: int = 0):
        """A network in which nothing has happened, with the flows of `demand` to come."""
        from weft.fabrics.network.run import NetworkRun

        return NetworkRun(self, demand, seed)

    def lay_out(self, flows, seed: int):
        """The arrays of such a network."""
        from weft.engine import events, memory
        from weft.engine.views import bind
        from weft.fabrics.network import state as st
        from weft.hosts import state as hosts

        graph, set_, table = self.graph, self.settings, self.routes
        gap = wire_time(self.wire_size, int(graph.rate.max())) // graph.ports
        shift = events.shift_for(max(gap, 1))
        # the ring reaches past the longest hop, and past DCQCN's timers if it then stays in the cache
        longest = wire_time(self.wire_size, int(graph.rate.min())) + int(graph.delay.max())
        ring = 1 << min(max((longest >> shift).bit_length(), 10), 22)
        if set_.transport == "dcqcn":
            ring = max(ring, min(1 << (max(set_.raise_gap, set_.alpha_gap) >> shift).bit_length(), 1 << 15))
        paths = self.most_paths if set_.routing == "permuted" or set_.transport == "mptcp" else 1
        grouped = groups(table)
        state = st.NetworkState(
            **memory.zeros(
                {
                    "world": (1, st.WORLD),
                    **hosts.tables(self, flows, paths=paths, ring=ring),
                    "ports": (graph.ports, st.PORT),
                    "buffered": (graph.nodes, np.int64),
                    "pool": (graph.nodes, np.int64),
                    "homes": (self.hosts, st.HOME),
                    "row": (table.row.shape, np.int32),
                    "table": (table.table.shape, np.int32),
                    "group": (grouped.shape, np.int32),
                    "choices": (table.choices.shape, np.int32),
                }
            )
        )
        in_order = set_.queue == "droptail"
        first = hosts.URGENT_FIRST if set_.queue == "priority" else hosts.CONTROL_FIRST
        classes = hosts.ONE_CLASS if in_order else first
        hosts.begin(state, self, flows, seed=seed, shift=shift, paths=paths, classes=classes, prefer=set_.prefer)
        xoff = set_.xoff * self.wire_size
        values = {
            "applied": -1,
            "large": graph.ports * st.PORT.itemsize + table.table.nbytes > CACHE,
            "queue": QUEUES.index(set_.queue) if self.in_time or not in_order else st.SHARED,
            "lazy": set_.queue in ("trim", "priority") and not set_.share,
            "anchors": table.table.shape[1],
            "mark_chance": int(set_.mark_chance * (1 << 20)),
            "capacity_high": NEVER if set_.queue == "lossless" else set_.buffer * self.wire_size,
            "share": int(set_.share * 1024),
            "bounce": set_.bounce,
            "trim_tail": set_.trim_tail,
            "xoff": xoff,
            "xon": set_.xon * self.wire_size,
            "ingress_limit": NEVER if set_.share else xoff + self.headroom,
        }
        for name, value in values.items():
            state.world[name] = value
        state.row[:], state.table[:], state.group[:], state.choices[:] = table.row, table.table, grouped, table.choices
        self._lay_ports(state.ports)
        ports = state.ports
        state.homes["anchor"], state.homes["down"] = table.anchor, table.down
        first_port = np.searchsorted(np.sort(ports["frm"]), np.arange(self.hosts))
        state.hosts["port"] = np.argsort(ports["frm"], kind="stable")[first_port]
        state.hosts["rate"] = ports["rate"][state.hosts["port"]]
        switch_ports = np.bincount(ports["frm"][ports["host"] == 0], minlength=graph.nodes)
        state.pool[:] = switch_ports * set_.buffer * self.wire_size
        bind(state.world, **{name: getattr(state, name) for name in st.TABLES})
        return state

    def _lay_ports(self, ports) -> None:
        """Fill the table of ports."""
        graph, set_ = self.graph, self.settings
        ports["frm"], ports["to"] = graph.port_ends()
        ports["delay"], ports["rate"] = np.repeat(graph.delay, 2), np.repeat(graph.rate, 2)
        pace, rest = np.divmod(8 * s, ports["rate"])
        ports["pace"] = np.where((rest == 0) & (pace < 1 << 31), pace, 0)
        ports["up"], ports["host"] = 1, ports["frm"] < self.hosts
        for k, rate in enumerate(ports["rate"].tolist()):
            unit = wire_time(self.wire_size, rate) if self.in_time else self.wire_size
            ports["capacity"][k] = set_.buffer * unit
            ports["mark_from"][k] = set_.mark_from * unit if set_.mark_from else NEVER
            ports["mark_all"][k] = max(set_.mark_all, set_.mark_from) * unit if set_.mark_from else NEVER

    @cached_property
    def most_paths(self) -> int:
        """The largest number of paths between two hosts."""
        return self._paths(self.routes)

    def _paths(self, table) -> int:
        """The largest number of paths between two hosts, as far as path numbers go: the product of choices."""
        most, depth = 1, {}
        _, to = self.graph.port_ends()
        rows = {int(r): n for n, r in enumerate(table.row) if r >= 0}

        def walk(r, c):
            if (r, c) not in depth:
                g = table.table[r, c]
                if g < 0:
                    depth[r, c] = 1
                else:
                    nxt = table.row[to[table.choices[table.first[g]]]]
                    depth[r, c] = int(table.count[g]) * (walk(int(nxt), c) if nxt >= 0 else 1)
            return depth[r, c]

        for c in range(table.table.shape[1]):
            for r in rows:
                most = max(most, walk(r, c))
        return min(most, 4096)

    def resolved(self) -> dict:
        """Every value of the preset and of what is laid over it."""
        return {field.name: getattr(self.settings, field.name) for field in fields(self.settings)}

    def memory(self, demand) -> int:
        """Bytes a run of so many flows is predicted to need: tables of network and flows, and live packets."""
        from weft.fabrics.network import state as st
        from weft.hosts import state as hosts

        graph, set_, flows = self.graph, self.settings, len(demand)
        live = min(flows, max(8 * self.hosts, demand.at_once(self.link)))
        sizes = demand.table.size
        mean = float(np.minimum(-(-sizes // self.payload), set_.initial_window).mean()) if len(sizes) else 8.0
        rows, slots = (1 << max(int(most) - 1, least).bit_length() for most, least in
                       ((live * mean + 4 * graph.ports, (1 << 15) - 1), (live, 255)))  # fmt: skip
        paths = self.most_paths if set_.routing == "permuted" or set_.transport == "mptcp" else 1
        tables = hosts.tables(self, demand.table, paths=paths, rows=rows, slots=slots)
        large = sum(int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in tables.values())
        return (
            graph.ports * st.PORT.itemsize
            + self.routes.table.nbytes
            + flows * st.TRAFFIC.itemsize
            + large
            + min(ROWS * self.hosts, NUMBERS) * 8
            + (1 << 24)
        )

    def follow(self, demand, f, *, seed, until):
        """Steps of flow f, packet by packet, from the twin."""
        from weft.fabrics.network.follow import follow

        return follow(self, demand, f, seed=seed, until=until)

    @staticmethod
    def facts(summary):
        """Lines of a run's table: what the packets were, and what was done to them."""
        packets = summary["packets"]
        some = [f"{show_number(count)} {name.replace('_', ' ')}" for name, count in packets.items() if count]
        yield "packets", ", ".join(some) or "none"
        done = [
            f"{show_number(summary[name])} {name}"
            for name in ("trims", "marks", "pauses", "retransmissions", "timeouts")
            if summary[name]
        ]
        yield "on the way", ", ".join(done) or "nothing trimmed, marked, paused or sent again"


def groups(table: Routes) -> np.ndarray:
    """(groups, 3) int32: first, count and turn of every group of `table`."""
    group = np.zeros((len(table.first), 3), np.int32)
    group[:, 0], group[:, 1] = table.first, table.count
    return group
