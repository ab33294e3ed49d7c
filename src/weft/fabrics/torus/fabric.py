"""Torus: the parameters of a direct-connect rack, and what follows from them."""

from dataclasses import dataclass, fields
from functools import cached_property
from math import isfinite, prod
from typing import Literal

import numpy as np

from weft.engine.series import NUMBERS, ROWS
from weft.errors import BadInput, require
from weft.fabrics.network.failures import Change, plan
from weft.fabrics.network.hosted import Hosted
from weft.fabrics.torus import bounds
from weft.fabrics.torus.settings import CHANCES, ONE, settings
from weft.parameters import Parameter, Shape
from weft.topology.graph import Topology
from weft.topology.torus import Grid, shapes
from weft.units import Gbps, Rate, Size, Time, ms, ns, param, s, show_number, show_rate, us, wire_time
from weft.workload.flows import LATEST

NEVER = (1 << 62) - 1
MOST_DIMENSIONS, MOST_NODES = 6, 1 << 14
FASTEST = 4 * 10**12  # b/s of a port: times 2**20 it still fits a machine word
FINEST = 10**6  # a part of the rate of a node that may be lost where it is split
MOST_TWIGS = 1 << 21  # of the trees of all nodes, that are laid out in a table
MOST_CLASSES = 128  # as many as a flow may be of


def named(shape) -> str:
    """8x8x8."""
    return "x".join(map(str, shape))


@dataclass(frozen=True, kw_only=True)
class Torus(Hosted):
    """Nodes joined to their neighbours in a torus, each a host and a switch, under R2C2 (SIGCOMM '15) or under TCP.

    R2C2 broadcasts the start and end of every flow, and computes max-min fair rates for all of them. `tcp` and `dctcp`
    (`weft presets`) know nothing of the load, keep a flow on one path, and lose packets in full queues.
    """

    releases = True
    limits = True

    dimensions: Shape = param((8, 8, 8), "nodes along each dimension")
    nodes: int = param(0, "nodes, which the dimensions must come to; 0 for as many as they do")
    link: Rate = param(100 * Gbps, "rate of a node, split among its ports")
    delay: Time = param(100 * ns, "time of a hop: the wire and the node behind it", also="propagation")
    mtu: Size = param(1500, "largest packet; preamble, Ethernet header, FCS and gap come on top")
    transport: str = param("r2c2", "r2c2, or a preset as in tcp or dctcp:rto_min=1ms")
    routing: Literal["minimal", "dimension", "valiant", "chosen"] = param(
        "minimal",
        "shortest paths at random, in the order of dimensions, by way of a random node, or chosen for each flow of "
        "r2c2 between the first and the last",
    )
    choose: Time = param(10 * ms, "time between two searches for better routes, where they are chosen")
    tries: int = param(16, "times that each search tries some flows the other way")
    buffer: int | None = param(None, "packets that a port holds; no limit for r2c2, the preset's for others")
    mark: int | None = param(None, "packets above which ECN marks")
    first: Rate | None = param(None, "most that a flow sends at before its rate is computed; that of its node; r2c2")
    headroom: float = param(0.05, "share of every link that r2c2 gives to nobody")
    period: Time = param(500 * us, "time between two computations of rates; r2c2")
    broadcast: Size = param(16, "bytes of the announcement of a flow's start or end; r2c2")
    trees: int = param(4, "trees that a node announces along, in turn; r2c2")
    loss: float = param(0.0, "share of the copies of broadcasts that are lost; r2c2")
    notice: Time = param(500 * us, "time after which a sender knows of a loss, and sends again; r2c2")
    weights: tuple[int, ...] = param((1,), "weight of the flows of class 0, 1, …; the last counts for all further ones")
    strict: bool = param(False, "whether flows of a higher class get their rates first; r2c2")
    demand: Rate | None = param(None, "most that a flow asks for; r2c2")
    demands: tuple[Rate, ...] = param(
        (), "the same for the flows of class 0, 1, …, 0 for no limit; the last counts for all further ones; r2c2"
    )
    ties: Literal["fifo", "lifo", "random"] = param("fifo", "order of events in the same picosecond")
    fail: str = param("", "failures, as in node 3 at 10us until 2ms, link 0-1 at 1ms, links 5%")
    converge: Time = param(100 * us, "time after a failure or repair until routes have changed")

    def __post_init__(self):
        self._check_shape()
        object.__setattr__(self, "nodes", prod(self.dimensions))
        self._check_rates()
        require(0 <= self.delay <= LATEST >> 8, "delay", "0 or more and at most 5 hours", self.delay)
        require(self.mtu <= 65535, "mtu", "at most 65535", self.mtu)
        routings = ("minimal", "dimension", "valiant", "chosen")
        require(self.routing in routings, "routing", f"one of {', '.join(routings)}", self.routing)
        require(self.ties in ("fifo", "lifo", "random"), "ties", "one of fifo, lifo, random", self.ties)
        require(isfinite(self.headroom) and 0 <= self.headroom < 1, "headroom", "from 0 to below 1", self.headroom)
        require(self.choose >= 1 * us, "choose", "at least 1 us, a time scale above that of packets", self.choose)
        for name in ("period", "notice", "choose"):
            value = getattr(self, name)
            require(0 < value <= LATEST >> 1, name, "more than 0 and at most 26 days", value)
        require(0 <= self.converge <= LATEST >> 1, "converge", "0 or more and at most 26 days", self.converge)
        require(0 <= self.broadcast <= 65535, "broadcast", "from 0 to 65535 bytes", self.broadcast)
        require(isfinite(self.loss) and 0 <= self.loss < 1, "loss", "from 0 to below 1", self.loss)
        often = self.loss_chance > ONE * 9 // 10
        require(not often, "loss", "such that one broadcast in ten comes to all nodes", self.loss)
        require(1 <= self.trees <= 64, "trees", "from 1 to 64", self.trees)
        require(1 <= len(self.weights) <= MOST_CLASSES, "weights", f"1 to {MOST_CLASSES} numbers", self.weights)
        require(len(self.demands) <= MOST_CLASSES, "demands", f"at most {MOST_CLASSES} rates", len(self.demands))
        require(not self.demands or self.demand is None, "demand", "given either for all flows or by class", "both")
        for weight in self.weights:
            require(1 <= weight <= 1000, "a weight", "from 1 to 1000", weight)
        require(self.demand is None or 1 <= self.demand <= FASTEST, "demand", "from 1 b/s to 4 Tb/s", self.demand)
        for rate in self.demands:
            require(0 <= rate <= FASTEST, "a demand", "from 0, for none, to 4 Tb/s", rate)
        require(self.first is None or 1 <= self.first <= 2**62, "first", "more than 0", self.first)
        for rate in (self.demand, *self.demands):
            require(not rate or rate >= max(self.weights), "demand", f"at least {max(self.weights)}, a weight", rate)
        require(self.buffer is None or 1 <= self.buffer <= 10**9, "buffer", "from 1 to 10^9 packets", self.buffer)
        set_ = self.settings
        if set_.transport not in ("r2c2", "tcp", "dctcp"):
            raise BadInput(f"transport must be r2c2, tcp or dctcp on a torus, not {set_.transport}")
        own = set_.transport == "r2c2" or self.routing != "chosen"
        require(own, "routing", f"one that {set_.transport} has: minimal, dimension or valiant", self.routing)
        require(1 <= self.tries <= 1000, "tries", "from 1 to 1000", self.tries)
        if not (set_.queue == "droptail" and not set_.share):
            raise BadInput(f"the ports of a torus must be drop-tail queues of their own, not {set_.queue} with sharing")
        known = ("ecmp", "random", "single")
        require(set_.routing in known, "paths of the transport", f"one of {', '.join(known)}", set_.routing)
        require(set_.nic == "fifo", "nic", "fifo", set_.nic)
        require(self.mtu > set_.header, "mtu", f"more than the header, {set_.header}", self.mtu)
        self.changes(0)
        self._check_times()

    def _check_shape(self):
        shape = Parameter("dimensions", "shape").read(self.dimensions)
        object.__setattr__(self, "dimensions", shape)
        require(1 <= len(shape) <= MOST_DIMENSIONS, "dimensions", f"1 to {MOST_DIMENSIONS} of them", named(shape))
        for size in shape:
            require(size >= 2, "every dimension", "at least 2 nodes", f"{size}, as in {named(shape)}")
        require(prod(shape) <= MOST_NODES, "nodes", f"at most {MOST_NODES:,}", f"{prod(shape):,}")
        if self.nodes and self.nodes != prod(shape):
            require(2 <= self.nodes <= MOST_NODES, "nodes", f"from 2 to {MOST_NODES:,}", self.nodes)
            near = [f"{named(one)} ({prod(one)})" for one in shapes(self.nodes, len(shape))]
            raise BadInput(
                f"nodes must be the {prod(shape)} of {named(shape)}, not {self.nodes}: shapes near that are "
                f"{', '.join(near)}"
            )

    def _check_rates(self):
        ports = self.grid.degree
        require(self.link > 0, "link", "more than 0", self.link)
        rest = self.link % ports
        if rest * FINEST > self.link:
            nearest = [rate for rate in (self.link - rest, self.link - rest + ports) if rate]
            raise BadInput(
                f"link must divide among the {ports} ports of a node to a part in a million, not {self.link} b/s: near "
                f"it are {' and '.join(f'{rate} b/s' for rate in nearest)}"
            )
        require(self.rate <= FASTEST, "link", f"at most {show_rate(FASTEST)} for each of {ports} ports", self.link)

    def _check_times(self):
        """Sums of times must fit a machine word."""
        farthest = sum(size // 2 for size in self.dimensions)
        one = wire_time(self.wire_size, self.rate)
        drained = (self.settings.buffer if self.buffer or self.settings.transport != "r2c2" else 1) * one
        require(
            drained + 2 * farthest * (one + self.delay) <= LATEST // 2, "a packet", "across within 26 days",
            f"as slow as {show_rate(self.rate)} and {self.delay} ps a hop",
        )  # fmt: skip

    @property
    def hosts(self) -> int:
        """Nodes, as transports call them."""
        return self.nodes

    @cached_property
    def grid(self) -> Grid:
        """Who is next to whom."""
        return Grid(self.dimensions)

    @property
    def rate(self) -> int:
        """b/s of a port: a node's rate, split."""
        return self.link // self.grid.degree

    @cached_property
    def graph(self) -> Topology:
        """The torus as a graph."""
        return self.grid.graph(self.rate, self.delay)

    @cached_property
    def settings(self):
        """Parameters of transport and queues."""
        return settings(
            self.transport,
            buffer=self.buffer,
            mark_from=self.mark,
            mark_all=None if self.mark is None else 0,
            notice=self.notice,
        )

    @property
    def in_time(self) -> bool:
        """Ports count their backlog in ps, as those of packet networks do where they are drop tail."""
        return True

    @property
    def spreads(self) -> bool:
        """Whether packets may go by way of a random node."""
        return self.routing in ("valiant", "chosen")

    @cached_property
    def of_classes(self) -> list[tuple[int, int]]:
        """(weight, b/s that a flow asks for at most, 2^62 for no limit) of flows of class 0, 1, …."""
        demands = self.demands or (self.demand or 0,)
        count = max(len(self.weights), len(demands))
        return [
            (self.weights[min(k, len(self.weights) - 1)], demands[min(k, len(demands) - 1)] or 1 << 62)
            for k in range(count)
        ]

    def changes(self, seed: int) -> list[Change]:
        """Links that go down and come back in a run with this seed, in order of time."""
        return plan(self.fail, self.graph, seed, self._parts)

    @cached_property
    def _parts(self) -> dict:
        links: list[list[int]] = [[] for _ in range(self.nodes)]
        if self.fail:
            for link, ends in enumerate(self.graph.ends.tolist()):
                for node in ends:
                    links[node].append(link)
        return {"node": {str(node): some for node, some in enumerate(links)}}

    def alive(self, seed: int, moment: int) -> np.ndarray:
        """(links,) bool: which links have not failed by `moment`, as far as routes know."""
        alive = np.ones(len(self.graph.ends), bool)
        for change in self.changes(seed):
            if change.time <= moment:
                alive[list(change.links)] = change.up
        return alive

    def toward(self, alive: np.ndarray | None = None) -> np.ndarray:
        """(nodes, nodes) uint16: [target, node] has the bits of the ports that packets may take."""
        mask = self.grid.toward(alive)
        return self.grid.first_dimension(mask) if self.routing == "dimension" else mask

    @property
    def loss_chance(self) -> int:
        """Parts of CHANCES: how many broadcasts lose a copy somewhere; by multiplication, the same on any machine."""
        whole = 1.0
        for _ in range(self.nodes - 1):
            whole *= 1.0 - self.loss
        return int((1.0 - whole) * CHANCES)

    def parts(self) -> dict[str, int]:
        """What it is made of: a NIC that switches for every node, and cables; no catalogue of ours has the first."""
        rate = show_rate(self.rate)
        return {f"torus NIC of {self.grid.degree} x {rate}": self.nodes, f"cable of {rate}": len(self.graph.ends)}

    def ideal(self, flows) -> np.ndarray:
        """(flows,) int64 ps: no flow can be faster in an empty torus."""
        return bounds.ideal(self, flows)

    def resolved(self) -> dict:
        """Every value of the transport."""
        return {field.name: getattr(self.settings, field.name) for field in fields(self.settings)}

    def memory(self, demand) -> int:
        """Bytes a run of so many flows is predicted to need: routes, flows, and packets that wait."""
        from weft.fabrics.torus import state as st
        from weft.hosts.state import PACKET, SUB, TRAFFIC

        n, ports, flows = self.nodes, self.graph.ports, len(demand)
        live = min(flows, max(8 * n, demand.at_once(self.link)))
        own = self.settings.transport == "r2c2"
        spread = 3 * n * ports * 8 if own and self.spreads else 0
        hops = sum(size // 4 + 1 for size in self.dimensions)
        return (
            ports * st.network.PORT.itemsize
            + 2 * n * n
            + spread
            + flows * TRAFFIC.itemsize
            + live * (SUB.itemsize + 2 * self.settings.max_window + own * (st.ENTRY.itemsize + 12 * hops**3))
            + live * 64 * PACKET.itemsize
            + min(ROWS * n, NUMBERS) * 8
            + (1 << 24)
        )

    def accept(self, demand):
        super().accept(demand)
        if demand.limited and self.settings.transport != "r2c2":
            raise BadInput(
                f"flows with rates of their own must go under r2c2 on a torus, not {demand.limited:,} under "
                f"{self.settings.transport}"
            )

    def prepare(self, demand, *, seed: int = 0):
        """A torus in which nothing has happened, with the flows of `demand` to come."""
        from weft.fabrics.torus.run import TorusRun

        return TorusRun(self, demand, seed)

    def follow(self, demand, f, *, seed, until):
        """Steps of flow f, packet by packet, and its rates, from the twin."""
        from weft.fabrics.network.follow import follow
        from weft.fabrics.torus.follow import Followed

        return follow(self, demand, f, seed=seed, until=until, kind=Followed)

    @staticmethod
    def facts(summary):
        """Lines of a run's table: packets, and what R2C2 spent on knowing them."""
        packets = summary["packets"]
        some = [f"{show_number(count)} {name.replace('_', ' ')}" for name, count in packets.items() if count]
        yield "packets", ", ".join(some) or "none"
        if told := summary["r2c2"]:
            spent = f"{show_number(told['broadcasts'])} broadcasts, {100 * told['broadcast_share']:.2f} % of all bytes"
            yield "r2c2", f"{spent}; rates computed {show_number(told['computations'])} times"
            if told.get("routes_tried"):
                kept, tried = show_number(told["routes_switched"]), show_number(told["routes_tried"])
                yield "routes", f"some flows turned the other way {tried} times, and left so {kept} times"
        else:
            counts = [f"{show_number(summary[name])} {name}" for name in ("marks", "retransmissions", "timeouts")]
            yield "on the way", ", ".join(counts)

    def lay_out(self, flows, seed: int):
        """The arrays of a run in which nothing has happened."""
        from weft.engine import events, memory
        from weft.engine.views import bind
        from weft.fabrics.network import state as network
        from weft.fabrics.network.settings import QUEUES
        from weft.fabrics.torus import state as st
        from weft.hosts import state as hosts

        set_, grid, graph = self.settings, self.grid, self.graph
        n, ports, classes = self.nodes, graph.ports, len(self.of_classes)
        own, valiant = set_.transport == "r2c2", self.spreads
        packet = wire_time(self.wire_size, self.rate)
        shift = events.shift_for(max(packet // ports, 1))
        ring = 1 << min(max(((packet + self.delay) >> shift).bit_length(), 10), 22)
        rows = 1 << 15
        loads = (1 << 20) if own else 1
        state = st.TorusState(
            **memory.zeros(
                {
                    "world": (1, st.WORLD),
                    **hosts.tables(self, flows, ring=ring, rows=rows),
                    "ports": (ports, network.PORT),
                    "buffered": (n, np.int64),
                    "pool": (n, np.int64),
                    "lines": ((ports, 2), np.int64),
                    "toward": ((n, n), np.uint16),
                    "shares": (len(grid.picks), st.CHOICE),
                    "port_of": ((n, grid.degree), np.int32),
                    "to_of": ((n, grid.degree), np.int32),
                    "back": (grid.degree, np.uint8),
                    "farthest": (n if own else 0, np.int64),
                    "branch": ((1 << grid.degree, self.trees), np.uint8),
                    "twigs": ((n if own and n * n * self.trees <= MOST_TWIGS else 0, self.trees, n), np.uint16),
                    "waypoint": (rows if valiant else 1, np.int32),
                    "entries": (1 << 10 if own else 1, st.ENTRY),
                    "limits": (len(flows) if flows.limited else 0, np.int64),
                    "enough": (1 << 10 if own else 1, np.int64),
                    "modest_ones": (1 << 10 if own else 1, np.int32),
                    "loads": (loads, st.LOAD),
                    "members": (loads, np.int32),
                    **dict.fromkeys(("capacity", "left", "thirst", "level"), (ports, np.int64)),
                    "asked": ((classes, ports), np.int64),
                    "crossing": ((classes, ports), np.int64),
                    "heap_ports": (ports, np.int32),
                    "begins": (ports + 1, np.int64),
                    **dict.fromkeys(("weights", "demands"), (classes, np.int64)),
                    "cast": ((n if own and valiant else 0, ports), np.int32),
                    "landed": ((n if own and valiant else 0, ports), np.int32),
                    "line": (n, np.int32),
                    **dict.fromkeys(("mass", "calls"), (n, np.int64)),
                }
            )
        )
        hosts.begin(state, self, flows, seed=seed, shift=shift)
        no_limit = own and self.buffer is None
        values = {
            "applied": -1,
            "queue": QUEUES.index("droptail"),
            "mark_chance": int(set_.mark_chance * (1 << 20)),
            "capacity_high": NEVER,
            "degree": grid.degree,
            "ahead": own and not valiant,
            "valiant": valiant,
            "chosen": self.routing == "chosen",
            "choose": self.choose,
            "tries": self.tries,
            "period": self.period,
            "broadcast_time": wire_time(self.broadcast, self.rate),
            "broadcast_hop": wire_time(self.broadcast, self.rate) + self.delay,
            "trees": self.trees,
            "classes_of_flows": classes,
            "strict": self.strict,
            "modest": flows.limited > 0 or any(most < st.UNLIMITED for _, most in self.of_classes),
            "loss_chance": self.loss_chance,
            "start_rate": min(self.link, self.first or self.link),
            "free_entry": -1,
            "full": self.wire_size,
            "full_time": packet,
        }
        for name, value in values.items():
            state.world[name] = value
        state.toward[:] = self.toward()
        state.port_of[:], state.to_of[:] = grid.port, grid.to
        state.weights[:], state.demands[:] = zip(*self.of_classes, strict=True)
        if flows.limited:
            state.limits[:] = np.where(flows.rate > 0, flows.rate, st.UNLIMITED)
        state.back[:] = grid.back
        for mask, (count, *bits) in enumerate(grid.picks.tolist()):
            if count:
                ports = sum(p << 4 * place for place, p in enumerate(bits[:count]))
                state.shares[mask] = -((-1 << st.SHARE) // count), count << st.COUNT | ports
                state.branch[mask] = [bits[tree % count] for tree in range(self.trees)]
        state.capacity[:] = int(self.rate * (1 - self.headroom)) * ONE
        given = state.ports
        given["frm"], given["to"] = graph.port_ends()
        given["delay"], given["rate"], given["up"] = self.delay, self.rate, 1
        pace, rest = divmod(8 * s, self.rate)
        given["pace"] = pace if not rest and pace < 1 << 31 else 0
        given["capacity"] = NEVER if no_limit else set_.buffer * packet
        given["mark_from"] = set_.mark_from * packet if set_.mark_from else NEVER
        given["mark_all"] = max(set_.mark_all, set_.mark_from) * packet if set_.mark_from else NEVER
        state.hosts["rate"] = self.link
        bind(state.world, **{name: getattr(state, name) for name in st.TABLES})
        return state
