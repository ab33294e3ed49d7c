"""Merchant: the switch of §IV as a network, from its boards, its cables and what is deployed of it."""

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from weft.errors import require
from weft.fabrics.merchant.boards import Boards, plug
from weft.fabrics.merchant.deployment import COUNTS, grown
from weft.fabrics.merchant.groomer import Frames, Groomer, run
from weft.fabrics.network.bounds import headroom
from weft.fabrics.network.fabric import NEVER, Network
from weft.fabrics.network.failures import Change, plan
from weft.topology.cabling import Wiring
from weft.topology.deployment import Deployment
from weft.topology.graph import Topology
from weft.units import Gbps, Rate, Time, ns, param

MOST = 65_536  # ports: that of 64-port chips (§VII)


@dataclass(frozen=True, kw_only=True)
class Merchant(Network):
    """A fat tree of merchant silicon packaged as pods and a core array (HOTI '09, §IV).

    With 24-port chips and all installed it has 3,456 ports. Pods have line cards and uplink cards; cables of four
    links, groomed by EEP, go to core cards.
    """

    radix: int = param(24, "ports of a switch chip, a multiple of 8")
    link: Rate = param(10 * Gbps, "rate of a port")
    pods: int | None = param(None, "pods installed; all when not given")
    line_cards: int | None = param(None, "line cards installed in all pods together; all when not given")
    uplink_cards: int | None = param(None, "uplink cards in each pod; all when not given")
    core_cards: int | None = param(None, "core cards installed; all when not given, none for a single pod")
    wiring: str = param("", "csv of the cables, as `weft cost merchant --write-wiring` writes it; right when not given")
    grow: str = param("", "deployments before, as in pods=1 until 1ms, pods=12 core_cards=9 until 2ms")
    delay: Time = param(300 * ns, "time along a link and through the chip behind it (Table III)", also="propagation")
    fibre: Time = param(250 * ns, "what a cable between pod and core takes beyond that; 250 ns is 50 m")
    eep: bool = param(True, "whether cables are groomed by EEP, which takes its time")
    fail: str = param("", "failures, as in core-card 3 at 10us until 2ms, cable 0.5.1.2, module 1 at 1ms, chips 1%")
    # what follows from the boards, where other networks are told
    hosts: int = field(init=False, default=0, metadata={"help": "ports"})

    def __post_init__(self):
        require(self.fibre >= 0, "fibre", "0 or more", self.fibre)
        require(self.radix <= 256, "radix", "at most 256", self.radix)
        require(self.switch.ports <= MOST, "ports", f"at most {MOST:,}", int(self.switch.ports))
        object.__setattr__(self, "hosts", self.boards.hosts)
        super().__post_init__()

    # -------------------------------------------------------- what is installed

    @cached_property
    def switch(self) -> Deployment:
        """What is installed."""
        return Deployment(radix=self.radix, link=self.link, **{name: getattr(self, name) for name in COUNTS})

    @cached_property
    def grooming(self) -> int:
        """ps that EEP takes between an aggregation and a core chip: see `weft groomer`."""
        if not self.eep:
            return 0
        groomer = Groomer(link=self.link, trunk=4 * self.link)
        (latency,) = set(run(groomer, Frames(frames=1)).latency)
        return round(latency * groomer.tick)

    @cached_property
    def _installed(self) -> tuple[Boards, list[Change]]:
        switch = self.switch
        cables = Wiring.load(self.wiring, switch.radix, switch.core_cards) if self.wiring else plug(switch)
        through = self.delay + self.fibre + self.grooming
        return grown(Boards(switch, cables, delay=self.delay, cable_delay=through), self.grow)

    @property
    def boards(self) -> Boards:
        """Every chip, card and cable, those included that are plugged elsewhere later."""
        return self._installed[0]

    @property
    def graph(self) -> Topology:
        """The chips as a graph: the four links of a cable are links of their own."""
        return self.boards.graph

    def inputs(self):
        """The file of the cables, if there is one."""
        return (self.wiring,) if self.wiring else ()

    @property
    def headroom(self) -> int:
        """Bytes a lossless port keeps free for what arrives after it asked for a pause, over the longest link."""
        return self.settings.headroom or headroom(self.link, int(self.graph.delay.max()), self.wire_size)

    # -------------------------------------------------------- what fails, and what is not there yet

    def changes(self, seed: int) -> list[Change]:
        """Links that go down and come back: failures, and what is installed during the run."""
        return plan(self.fail, self.graph, seed, self.boards.parts, self._installed[1])

    def alive(self, seed, moment):
        """(links,) bool: which links routes take; what is not there at the beginning is known from the beginning."""
        return super().alive(seed, max(moment, 0))

    # -------------------------------------------------------- running

    def prepare(self, demand, *, seed: int = 0):
        """A switch in which nothing has happened, with the flows of `demand` to come."""
        from weft.fabrics.merchant.run import MerchantRun

        return MerchantRun(self, demand, seed)

    def bisection(self, seed: int = 0, moment: int | None = None) -> int:
        """b/s that can cross the worst split that was tried, both directions, by max-flow over the links that are up at
        `moment`, or when all is installed and all that comes back has."""
        return self._crossing(super().alive(seed, NEVER if moment is None else moment).tobytes())

    @cached_property
    def _crossing(self):
        """Bisection bandwidth of links that are up, as bytes; a run asks for the same again and again."""
        return cache(lambda alive: self.boards.bisection(np.frombuffer(alive, bool)))

    @staticmethod
    def facts(summary):
        """Lines of a run's table: what is installed and how much can cross it, then those of every network."""
        deployed, counted = summary["deployment"], ("pods", "line_cards", "uplink_cards", "core_cards")
        counts = ", ".join(f"{deployed[name]} {name.replace('_', ' ')}" for name in counted)
        yield "deployed", f"{deployed['ports']:,} ports: {counts}, {deployed['cables']} cables"
        yield "bisection", f"{summary['bisection_tbps']:g} Tb/s, both directions, by max-flow at the end of the run"
        yield from Network.facts(summary)
