"""Stardust: the parameters of a fabric of cell switches that adapters schedule, and what follows from them."""

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from weft.engine.series import NUMBERS, QUEUES, ROWS
from weft.errors import BadInput, require
from weft.fabrics.network.failures import Change, plan
from weft.fabrics.network.hosted import Hosted
from weft.fabrics.stardust import bounds
from weft.fabrics.stardust.wiring import NOWHERE, Routes, Wiring, wire
from weft.hosts.settings import Nic, Settings, settings
from weft.topology.graph import Topology, build, led
from weft.units import MB, Gbps, Mbps, Rate, Size, Tbps, Time, ns, param, s, show_number, show_size, us, wire_time
from weft.wire.stardust import ADAPTERS, HEADER
from weft.workload.flows import Flows
from weft.workload.traffic import Cells

LONGEST = 10**12  # ps
MOST = 1 << 20  # of what is counted: hosts, adapters, ports
POLICIES = ("one", "strict", "weighted")


@dataclass(frozen=True, kw_only=True)
class Stardust(Hosted):
    """Fabric Adapters that hold packets until the far end grants them credits, and cell switches between (NSDI '19).

    Given `hosts`, it is a fat tree of 10 Gb/s as in §6.3, given `adapters` a fabric as in §6.2 in which an adapter's
    uplinks are as fast as its ports together. Cells cross the fabric in slots.
    """

    carries = (Flows, Cells)
    releases = True

    hosts: int | None = param(None, "hosts, each on a port of an adapter; 432 unless adapters are given")
    adapters: int | None = param(None, "Fabric Adapters; as many as the hosts need unless given")
    ports: int | None = param(None, "hosts on an adapter; half a radix, or 2 where adapters are given, unless given")
    uplinks: int | None = param(None, "links of an adapter to the fabric; lanes for all its ports unless given")
    tiers: int = param(2, "tiers of Fabric Elements")
    radix: int | None = param(None, "ports of an element; as few as do unless given")
    up: int | None = param(None, "ports up of an element below the top; half of them unless given")
    link: Rate = param(None, "rate of a host's port; 10 Gb/s, or an adapter's share of its uplinks, unless given")
    lane: Rate | None = param(None, "rate of a lane in the fabric; that of hosts, or 50 Gb/s where adapters are given")
    bundle: int = param(1, "lanes of a link, which act and fail as one; ports and uplinks count links")
    delay: Time = param(
        500 * ns, "propagation of every link, 100 m; in the fabric rounded up to whole slots", also="propagation"
    )
    host_delay: Time | None = param(None, "propagation of the links of hosts; that of every link unless given")
    cell: Size = param(256, "bytes of a cell on the wire, header included")
    header: Size = param(HEADER, "bytes of its header; the paper does not say")
    packing: bool = param(True, "cells may hold parts of several packets of a burst")
    per_source: bool = param(
        False, "a VOQ for each port that sends, so that schedulers take turns between flows (App. G)"
    )
    credit: Size = param(4096, "bytes that a credit is worth at most")
    whole: bool = param(False, "every credit is worth that, whatever waits, and what is left of one is kept")
    speedup: float = param(1.02, "rate of credits over that of the port")
    watermark: Size | None = param(
        None, "bytes at a port above which it gives no credits; as bounds.py says if not given"
    )
    buffer: Size = param(32 * MB, "bytes of packets that an adapter holds")
    overflow: Literal["drop", "pause"] = param("drop", "what it does when they fill it: drop, or pause its hosts (5.4)")
    mark: Size | None = param(None, "bytes in a VOQ above which packets are marked (ECN); none unless given")
    classes: Literal["one", "strict", "weighted"] = param("one", "how flows of class 1 and above pass those of class 0")
    weight: int = param(4, "credits of the upper class for one of the lower, where classes are weighted")
    low_latency: bool = param(False, "flows of class 1 and above are sent without waiting for credits")
    depth: int = param(128, "cells that an element's memory has for each lane of its links")
    fci: int = param(96, "cells in a queue from which on the congestion bit is set")
    fci_window: Time | None = param(None, "time between changes of a rate of credits; a loop of credits unless given")
    fci_cut: float = param(0.0625, "part of its rate that an adapter gives up in such a time if all cells were marked")
    fci_gain: float = param(0.001953125, "part of the full rate that it takes back if none was")
    rounds: int = param(4, "rounds over its links after which a device draws a new order")
    period: Time = param(10 * us, "time between reachability messages on a link")
    updates: int = param(3, "messages that must agree before a device changes its tables")
    cold: bool = param(False, "tables begin empty, and reachability messages build them")
    reassembly: Time = param(100 * us, "time after which a packet with missing cells is given up")
    multicast: Literal["ingress", "fabric"] = param(
        "ingress", "where packets for several nodes are copied: as they enter, or one for each branch of their way"
    )
    fail: str = param("", "what goes down, as in 'uplink 3.1 at 10us until 1ms, element 2.0 at 1ms, adapter 5'")
    errors: str = param("", "links that corrupt cells for a time, as in 'uplink 3.1 at 10us until 1ms'")
    error_rate: float = param(0.01, "chance that a slot of such a link is corrupt")
    faulty: int = param(3, "corrupt slots in a watch with which a link declares itself faulty; 0 is never")
    watch: Time = param(10 * us, "time in which a link counts them")
    unlimited: int | None = param(None, "an adapter that is faulty and gives credits without end (5.10)")
    mtu: Size = param(1500, "largest IP packet; preamble, Ethernet header, FCS and gap come on top")
    transport: str = param("tcp", "preset, as in dctcp or tcp@stardust-nsdi19")
    nic: Nic | None = param(None, "order in which a host sends its flows' packets; fair is round robin")
    rto: Time | None = param(None, "least retransmission timeout")

    def __post_init__(self):
        self._fill()
        require(self.nodes >= 2, "hosts", "at least 2", self.nodes)
        counts = (
            ("adapters", self.edges),
            ("ports", self.per_adapter),
            ("uplinks", self.lanes),
            ("radix", self.switch),
        )
        for name, value in counts:
            require(1 <= value <= MOST, name, f"from 1 to {MOST}", value)
        cables = self.edges * self.lanes * self.tiers
        require(cables <= 1 << 22, "cables of the fabric", "at most 4194304", cables)
        require(self.edges <= ADAPTERS, "adapters", f"at most {ADAPTERS:,}, as cells name them", self.edges)
        require(self.up is None or 1 <= self.up < self.switch, "up", f"from 1 to {self.switch - 1}", self.up)
        for name in ("delay", "host_delay", "reassembly", "fci_window", "period"):
            value = getattr(self, name)
            require(value is None or 0 <= value <= LONGEST, name, "from 0 to 1 s", value)
        require(self.period > 0, "period", "above 0", self.period)
        require(self.hop <= 1 << 16, "delay", f"at most 65535 slots of {self.slot} ps", self.delay)
        require(self.header >= 0, "header", "0 or more bytes", self.header)
        require(self.header < self.cell, "header", f"smaller than the cell of {self.cell} bytes", self.header)
        require(
            self.cell <= self.credit <= 1 << 24, "credit", f"from a cell, {self.cell} bytes, to 16 MiB", self.credit
        )
        require(1 <= self.speedup <= 100, "speedup", "from 1 to 100", self.speedup)
        require(
            self.watermark is None or 0 <= self.watermark <= 1 << 34, "watermark", "from 0 to 16 GiB", self.watermark
        )
        require(self.mark is None or 0 <= self.mark <= 1 << 40, "mark", "from 0 to 1 TiB", self.mark)
        require(self.classes in POLICIES, "classes", f"one of {', '.join(POLICIES)}", self.classes)
        require(1 <= self.weight <= 10**6, "weight", "from 1 to 1000000", self.weight)
        require(1 <= self.depth <= 1 << 16, "depth", "from 1 to 65536 cells", self.depth)
        require(1 <= self.fci <= 1 << 24, "fci", "from 1 to 16777216 cells", self.fci)
        for name in ("fci_cut", "fci_gain"):
            require(0 <= getattr(self, name) <= 1, name, "from 0 to 1", getattr(self, name))
        require(1 <= self.rounds <= 1 << 20, "rounds", "from 1 to 1048576", self.rounds)
        require(1 <= self.updates <= 1000, "updates", "from 1 to 1000", self.updates)
        require(self.mtu <= 65535, "mtu", "at most 65535", self.mtu)
        require(self.mtu > self.settings.header, "mtu", f"more than the header, {self.settings.header}", self.mtu)
        least = self.wire_size
        require(least <= self.buffer <= 1 << 45, "buffer", f"from a packet, {least} bytes, to 32 TiB", self.buffer)
        self._check_pause()
        require(self.multicast in ("ingress", "fabric"), "multicast", "ingress or fabric", self.multicast)
        whole = not (self.fail or self.errors or self.cold)
        require(self.multicast == "ingress" or whole, "multicast", "ingress where links may fail", self.multicast)
        require(0 <= self.error_rate <= 1, "error_rate", "from 0 to 1", self.error_rate)
        require(0 <= self.faulty <= 1 << 30, "faulty", "from 0 to 1073741824 slots", self.faulty)
        require(self.slot <= self.watch <= LONGEST, "watch", f"from a slot, {self.slot} ps, to 1 s", self.watch)
        low = self.unlimited is None or 0 <= self.unlimited < self.edges
        require(low, "unlimited", f"an adapter from 0 to {self.edges - 1}", self.unlimited)
        self._check_memory()
        self._check_failures()

    def _fill(self):
        for name in ("hosts", "adapters", "ports", "uplinks", "radix"):
            value = getattr(self, name)
            require(value is None or 1 <= value <= MOST, name, f"from 1 to {MOST}", value)
        for name in ("link", "lane"):
            value = getattr(self, name)
            require(value is None or 1 * Mbps <= value <= 100 * Tbps, name, "from 1 Mb/s to 100 Tb/s", value)
        require(1 <= self.tiers <= 8, "tiers", "from 1 to 8", self.tiers)
        require(1 <= self.bundle <= 1024, "bundle", "from 1 to 1024 lanes", self.bundle)
        require(1 <= self.cell <= 16_384, "cell", "from 1 to 16384 bytes", self.cell)
        if self.adapters is not None and self.hosts is not None and self.ports is not None:
            enough = self.hosts <= self.adapters * self.ports
            require(enough, "hosts", f"at most {self.adapters * self.ports}, the ports of all adapters", self.hosts)
        if self.link is None:
            link = 10 * Gbps if self.adapters is None else self.lanes * self.rate // self.per_adapter
            object.__setattr__(self, "link", max(link, 1 * Mbps))
        require(self.rate <= 100 * Tbps, "a link of the fabric", "at most 100 Tb/s, all its lanes", self.rate)

    def _check_memory(self):
        """Memory above which an element pauses others must be left when all that is on its way has come."""
        least, of = bounds.least_depth(self)
        if self.depth < least:
            raise BadInput(
                f"depth must be at least {least} cells for {show_size(self.cell)} cells over {self.delay / ns:g} ns "
                f"into {of} links, so that none is lost while a pause takes effect, not {self.depth}"
            )

    def _check_pause(self):
        """A buffer must have room for what comes after the hosts were told to pause."""
        require(self.overflow in ("drop", "pause"), "overflow", "drop or pause", self.overflow)
        if self.overflow == "pause":
            require(self.nodes <= 4096, "hosts that can be paused", "at most 4096", self.nodes)
        least = 2 * bounds.pause_room(self)
        if self.overflow == "pause" and self.buffer < least:
            raise BadInput(
                f"buffer must be at least {least} bytes where {self.per_adapter} hosts are paused over "
                f"{self.edge_delay / ns:g} ns, so that none is lost meanwhile, not {self.buffer}"
            )

    # what is there

    @property
    def _asked(self) -> int:
        """Hosts asked for, where adapters follow from them."""
        return 432 if self.hosts is None else self.hosts

    @cached_property
    def _half(self) -> int:
        """Half the radix of the smallest fat tree for the hosts."""
        return next(k for k in range(1, 1 << 20) if 2 * k**3 >= self._asked)

    @property
    def per_adapter(self) -> int:
        """Ports of an adapter."""
        if self.ports is not None:
            return self.ports
        if self.adapters is not None:
            return 2 if self.hosts is None else -(-self.hosts // self.adapters)
        return self._half

    @property
    def edges(self) -> int:
        """Fabric Adapters."""
        return -(-self._asked // self.per_adapter) if self.adapters is None else self.adapters

    @property
    def nodes(self) -> int:
        """Hosts: what a workload sees of the network."""
        return self.edges * self.per_adapter if self.hosts is None and self.adapters is not None else self._asked

    @property
    def lanes(self) -> int:
        """Uplinks of an adapter."""
        return -(-self.per_adapter // self.bundle) if self.uplinks is None else self.uplinks

    @property
    def switch(self) -> int:
        """Ports of an element."""
        if self.radix is not None:
            return self.radix
        if self.tiers == 1:
            return self.edges
        if self.adapters is None and self.tiers == 2:
            return 2 * max(self._half, -(-self.edges // (2 * self._half)) if self.ports is None else self._square)
        return (
            2 * min(64, self._square if self.adapters is None else -(-self.edges // 2))
            if self.tiers == 2
            else self._cube
        )

    @property
    def _square(self) -> int:
        """Half the ports with which two tiers reach all adapters."""
        return next(k for k in range(1, 1 << 20) if 2 * k * k >= self.edges)

    @property
    def _cube(self) -> int:
        """Ports with which all tiers reach all adapters."""
        return 2 * next(k for k in range(1, 1 << 20) if 2 * k**self.tiers >= self.edges)

    @property
    def rate(self) -> int:
        """Rate of the links in the fabric, all lanes of one."""
        lane = self.lane
        if lane is None and self.adapters is not None:
            lane = 50 * Gbps
        if lane is None:
            lane = 10 * Gbps if self.link is None else self.link
        return self.bundle * lane

    @property
    def edge_delay(self) -> int:
        """ps from a host to its adapter."""
        return self.delay if self.host_delay is None else self.host_delay

    @cached_property
    def wiring(self) -> Wiring:
        """The cables."""
        return wire(self.edges, self.lanes, self.tiers, self.switch, self.up)

    @cached_property
    def routes(self) -> Routes:
        """Tables while nothing has failed."""
        found = self.wiring.routes()
        if (found.table[: self.edges] == NOWHERE).any():
            a, d = np.argwhere(found.table[: self.edges] == NOWHERE)[0]
            raise BadInput(f"every adapter must reach every other, not adapter {a} miss adapter {d}")
        return found

    @cached_property
    def settings(self) -> Settings:
        """Parameters of the transport."""
        return settings(self.transport, nic=self.nic, rto_min=self.rto, rto_first=self.rto)

    ties = "fifo"  # order of events in the same picosecond

    # time

    @property
    def slot(self) -> int:
        """ps that a cell takes on a link."""
        return wire_time(self.cell, self.rate)

    @property
    def hop(self) -> int:
        """Slots from one queue to the next: a cell's own, and its way."""
        return 1 + -(-self.delay // self.slot)

    @property
    def node_slot(self) -> int:
        """ps that a cell takes at the rate of a host's port."""
        return wire_time(self.cell, self.link)

    @property
    def interval(self) -> int:
        """ps between the credits of a port."""
        rate = self.link * Fraction(str(self.speedup))
        return max(1, int(self.credit * 8 * s / rate))

    @property
    def filling(self) -> int:
        """Bytes of packets in a full cell."""
        return self.cell - self.header

    @property
    def window(self) -> int:
        """Slots between changes of an adapter's rate of credits."""
        loop = bounds.loop(self) + self.fci * self.slot
        return max(1, (loop if self.fci_window is None else self.fci_window) // self.slot)

    @property
    def fabric_speedup(self) -> float:
        """Rate of an adapter's links into the fabric, headers taken off, over that of its ports: fs of §3.1."""
        return self.lanes * self.rate * self.filling / self.cell / (self.per_adapter * self.link)

    @property
    def full(self) -> int:
        """Bytes at a port above which it gives no credits."""
        return bounds.watermark(self) if self.watermark is None else self.watermark

    # packets

    def ideal(self, flows) -> np.ndarray:
        """(flows,) int64 ps: no flow can be faster."""
        return bounds.ideal(self, flows)

    # runs

    def changes(self, seed: int) -> list[Change]:
        """Cables that go down and come back, in order of time."""
        return self._plan(self.fail, seed)

    def noise(self, seed: int) -> list[Change]:
        """Cables that begin to corrupt cells, and cease to."""
        return self._plan(self.errors, seed)

    def _plan(self, text, seed):
        if not text:
            return []
        a, k = self.edges, self.lanes
        uplinks = {f"{n // k}.{n % k}": [n] for n in range(a * k)}
        each = {str(n): list(range(n * k, n * k + k)) for n in range(a)}
        return plan(text, self.graph, seed, parts={"uplink": uplinks, "adapter": each})

    @cached_property
    def graph(self) -> Topology:
        """Adapters and elements by name, and the cables in their order: for plans of failures."""
        wiring = self.wiring
        tiers = [f"element{t + 1}.{n}" for t, count in enumerate(wiring.elements) for n in range(count)]
        names = [f"adapter{n}" for n in range(self.edges)] + tiers
        ends = zip(wiring.lower.tolist(), wiring.upper.tolist(), strict=True)
        return build(names[: self.edges], tiers, [(names[a], names[b], self.rate, self.delay) for a, b in ends])

    def _check_failures(self):
        """Whoever is cut off for good would be waited for without end."""
        noise = self.noise(0)
        ends = {link for change in noise if change.up for link in change.links}
        if any(link not in ends for change in noise for link in change.links):
            raise BadInput(f"errors must end, as in 'uplink 0.1 at 10us until 1ms', not {self.errors!r}")
        slots = sum((1 if change.up else -1) * change.time * len(change.links) for change in noise) // self.slot
        require(slots <= 1 << 28, "errors", "of at most 268435456 slots of links in all", slots)
        alive = np.ones(self.wiring.cables, bool)
        for change in self.changes(0):
            alive[list(change.links)] = change.up
        cut = np.argwhere(~self.wiring.reach(alive)[1][: self.edges])
        if self.fail and len(cut):
            a, d = cut[0]
            raise BadInput(
                f"every adapter must reach every other in the end, not adapter {a} miss adapter {d} after {self.fail!r}"
            )

    def prepare(self, demand, *, seed: int = 0):
        """A fabric in which nothing has happened, with `demand` to come."""
        from weft.fabrics.stardust.run import StardustRun

        return StardustRun(self, demand, seed)

    def resolved(self) -> dict:
        """What the preset of the transport says, and what follows from the description."""
        told = {field.name: getattr(self.settings, field.name) for field in fields(self.settings)}
        made = {"adapters": self.edges, "elements": list(self.wiring.elements), "cables": self.wiring.cables}
        return {**told, **made, "slot_ps": self.slot, "hop_slots": self.hop}

    def parts(self) -> dict[str, int]:
        """What the network is made of."""
        return {
            "adapters": self.edges,
            "elements": sum(self.wiring.elements),
            "cables": self.wiring.cables + self.nodes,
        }

    def memory(self, demand) -> int:
        """Bytes a run is predicted to need: tables of the fabric and of flows, cells and packets on their way."""
        from weft.fabrics.stardust import state as st

        wiring, flows = self.wiring, len(demand)
        abreast = 1 if isinstance(demand, Cells) else bounds.abreast(self)
        each = st.LINK.itemsize + 8 * st.RING + 4 + st.LINE.itemsize + st.SLOTS // 4
        queues = (
            (self.nodes if self.per_source else self.edges)
            * self.nodes
            * (1 if self.classes == "one" and not self.low_latency else 2)
        )
        live = min(flows, max(8 * self.nodes, demand.at_once(self.link)))
        return (
            queues * st.VOQ.itemsize
            + 2 * wiring.cables * (8 * abreast * self.hop + 16 * self.depth * self.bundle + each)
            + wiring.devices * self.edges * 8
            + flows * 64
            + live * (2 * self.settings.max_window + 2000)
            + min(ROWS * self.nodes, NUMBERS) * 8
            + (1 << 25)
        )

    def queues(self):
        """Every link between devices, upward and downward; every device, where links are too many."""
        wiring = self.wiring
        adapters = wiring.adapters
        names = [f"adapter {v}" if v < adapters else f"element {v - adapters}" for v in range(wiring.devices)]
        if 2 * wiring.cables > QUEUES:
            return names
        return led(names, *wiring.ends)

    def follow(self, demand, f, *, seed, until):
        """Steps of flow f, packet by packet and cell by cell, from the twin."""
        from weft.fabrics.stardust.follow import follow

        return follow(self, demand, f, seed=seed, until=until)

    @staticmethod
    def facts(summary):
        """Lines of a run's table: cells, credits, latency and queues."""
        cells, credits, waits = summary["cells"], summary["credits"], summary["latency_us"]
        yield (
            "cells",
            (
                f"{show_number(cells['entered'])} in the fabric, {show_number(cells['lost'])} lost, "
                f"{show_number(cells['marked'])} marked"
            ),
        )
        yield "credits", f"{show_number(credits['issued'])} given, {show_number(credits['requests'])} requests"
        if waits["mean"] is not None:
            yield (
                "in the fabric",
                (
                    f"{show_number(waits['mean'])} us on average, {show_number(waits['p99.9'])} p99.9, "
                    f"{show_number(waits['max'])} at most"
                ),
            )
        queue = summary["queue_cells"]
        if queue["mean"] is not None:
            yield (
                "last stage",
                (
                    f"{show_number(queue['mean'])} cells on average, {show_number(queue['p99.9'])} p99.9, "
                    f"{show_number(queue['max'])} at most"
                ),
            )
