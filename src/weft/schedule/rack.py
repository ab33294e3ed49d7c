"""Everything a Shoal rack's schedule says: who faces whom, switch by switch, how long that takes, and what is left when
things are gone for good."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from weft.errors import BadInput, require
from weft.failures import entries
from weft.parameters import like
from weft.schedule.clock import Clocks, bootstrap
from weft.schedule.decompose import Circuits, decompose, verify
from weft.schedule.guard import Guard, Timing, flight, slot_for
from weft.schedule.outage import plan
from weft.schedule.repair import Repair, gap, repair
from weft.schedule.rotation import Rounds, rounds
from weft.topology.circuit import CircuitClos
from weft.units import Gbps, Rate, Size, Time, ns, param

MOST = 4096  # nodes: the tables grow with their square
RACK = 3000  # mm from node to node: the 15 ns of §3.4


@dataclass(frozen=True, kw_only=True)
class RackSchedule:
    """The schedule of a Shoal rack, taken apart into one for each circuit switch, and the time it takes."""

    nodes: int = param(help="nodes in the rack")
    ports: int = param(64, "ports of a circuit switch, k; two stages connect k²/2 nodes")
    channels: int = param(1, "channels a link is split into; the fabric is built once for each")
    delay: int = param(0, "slots a cell travels beyond the one it is sent in")
    schedule: Literal["auto", "rotation", "mirrored"] = param("auto", "order in which nodes face each other")
    link: Rate | None = param(None, "rate of a node's link; 25 Gb/s per channel unless given")
    cell: Size | None = like(Timing, "cell")
    slot: Time | None = like(Timing, "slot")
    overhead: Size = like(Timing, "overhead")
    reconfiguration: Time = like(Guard, "reconfiguration")
    tolerance: int = like(Guard, "tolerance")
    links: int = like(Guard, "links")
    synchronisation: Time = like(Guard, "synchronisation")
    layer: Literal[0, 1] = like(Guard, "layer")
    recovery: Time = like(Guard, "recovery")
    latency: Time = param(320 * ns, "time a switch that retimes takes from port to port")
    sync: Time | None = param(
        None, "how far two clocks are apart once synchronised; all that the guard leaves for clocks unless given"
    )
    drift: float | None = param(
        None, "parts per billion by which a clock without a master strays; says how long the rack lives without one"
    )
    failover: Time | None = param(None, "time after the loss of the clock master until another serves")
    without: str | None = param(
        None, "what is gone for good, such as 'node 3, spine 0'; the schedule is made anew without it"
    )

    def __post_init__(self):
        if self.nodes > MOST:
            raise BadInput(f"nodes must be at most {MOST:,} for their schedules to be written down, not {self.nodes}")
        _ = self.rounds, self.clos, self.timing  # each says what is wrong with its part
        require(self.latency >= 0, "latency", "zero or more", self.latency)
        require(self.sync is None or self.sync >= 0, "sync", "zero or more", self.sync)
        _ = self.clocks
        if self.without is not None:
            self._check_without()

    def _check_without(self):
        named = entries(self.without)
        require(named, "without", "something that is gone, such as node 3", self.without)
        for entry in named:
            if {"at", "until"} & set(entry.text.split()):
                raise BadInput(f"without must name what is gone for good, not for a time, as in {entry.text!r}")

    @cached_property
    def rounds(self) -> Rounds:
        """Who faces whom while all is well."""
        return rounds(self.nodes, self.channels, self.delay, self.schedule)

    @cached_property
    def clos(self) -> CircuitClos:
        """The switches."""
        return CircuitClos(nodes=self.nodes, ports=self.ports, planes=self.channels)

    @property
    def guard(self) -> Guard:
        """What has to fit between two cells."""
        names = ("reconfiguration", "tolerance", "links", "synchronisation", "layer", "recovery")
        return Guard(**{name: getattr(self, name) for name in names})

    @property
    def timing(self) -> Timing:
        """The slot."""
        given: dict[str, Any] = {name: getattr(self, name) for name in ("channels", "cell", "slot", "overhead")}
        link = 25 * Gbps * self.channels if self.link is None else self.link
        return Timing(guard=self.guard.length, link=link, **given)

    @property
    def clocks(self) -> Clocks | None:
        """The rack's clocks, if anything is asked about them."""
        if self.sync is None and self.drift is None and self.failover is None:
            return None
        return Clocks(
            nodes=self.nodes,
            allowed=self.synchronisation,
            precision=self.synchronisation if self.sync is None else self.sync,
            drift=self.drift or 0.0,
            failover=self.failover,
        )

    @cached_property
    def repair(self) -> Repair | None:
        """The schedule that is left when what `without` names is gone."""
        if self.without is None:
            return None
        gone = plan(self.without, self.rounds, self.ports)
        return repair(self.rounds, gone, self.ports, delay=self.delay, order=self.schedule)

    @cached_property
    def circuits(self) -> Circuits:
        """What every switch connects in every slot."""
        made = decompose(self.clos, self.rounds) if self.repair is None else self.repair.circuits
        verify(made)
        return made

    def facts(self) -> dict[str, Any]:
        """All but the tables, as data."""
        circuits, clos, guard, timing = self.circuits, self.clos, self.guard, self.timing
        places = circuits.slots * clos.planes
        return {
            "nodes": clos.nodes,
            "ports": clos.ports,
            "channels": clos.planes,
            "delay_slots": self.delay,
            "order": self.rounds.order,
            "gap_slots": self.rounds.gap(),
            "dark_share": (places - (clos.nodes - 1)) / places,
            "epoch_slots": circuits.slots,
            "timing": {
                "guard_ps": guard.length,
                "reconfiguration_ps": guard.reconfiguration,
                "variation_ps": guard.variation,
                "synchronisation_ps": guard.synchronisation,
                "recovery_ps": guard.lock,
                "cell_bytes": timing.cell,
                "overhead_bytes": timing.overhead,
                "cell_ps": timing.busy,
                "slot_ps": timing.slot,
                "guard_share": timing.loss,
                "slot_ps_for_a_tenth": slot_for(guard.length, 0.1),
                "link_bps": timing.link,
                "rate_bps": timing.rate,
                "epoch_ps": circuits.slots * timing.slot,
                "layer": guard.layer,
                "layers": [self._layer(replace(guard, layer=0)), self._layer(replace(guard, layer=1))],
            },
            "fabric": {"leaves": clos.leaves, "spines": clos.spines, "planes": clos.planes, "switches": clos.switches},
            **self._of_clocks(circuits.slots * timing.slot),
            **self._of_repair(),
        }

    def tables(self, switch: str | None = None) -> dict[str, Any]:
        """The rack's table and those of its switches, or of one.

        `rack[t][i]` is the peer of node i in slot t, a list by channel where there are several; `slots[t][x]` of a
        switch is the output of its input x. What is dark is None.
        """
        circuits, clos = self.circuits, self.clos
        rack = circuits.peers[:, 0] if clos.planes == 1 else circuits.peers.transpose(0, 2, 1)
        return {
            "rack": _nones(rack),
            "switches": [
                {"name": name, "ports": clos.ports, "wires": clos.wires(name), "slots": _nones(circuits.outputs(name))}
                for name in (clos.names if switch is None else (switch,))
            ],
        }

    def _layer(self, guard) -> dict:
        """What switches of a layer would make of the same cell."""
        anew: Any = None  # computed from the cell
        own = replace(self.timing, guard=guard.length, slot=anew)
        return {
            "layer": guard.layer,
            "guard_ps": own.guard,
            "slot_ps": own.slot,
            "rate_bps": own.rate,
            "buffer_bits": guard.buffer_bits(own.link // own.channels),
            "latency_ps": flight(0, self.latency, layer=guard.layer),
        }

    def _of_clocks(self, epoch: int) -> dict:
        clocks = self.clocks
        if clocks is None:
            return {}
        way, precision = flight(RACK, self.latency, layer=self.layer), clocks.precision
        steps = bootstrap(nodes=clocks.nodes, flight=way, epoch=epoch, precision=precision) if precision else ()
        return {
            "clocks": {
                "allowed_ps": clocks.allowed,
                "precision_ps": clocks.precision,
                "left_ps": clocks.left,
                "drift_ppb": clocks.drift,
                "survives_ps": clocks.survives,
                "failover_ps": clocks.failover,
                "start": [{"step": step.name, "begin_ps": step.begin, "end_ps": step.end} for step in steps],
            }
        }

    def _of_repair(self) -> dict:
        """What changes beside the tables when some nodes or switches are gone."""
        made = self.repair
        if made is None:
            return {}
        return {
            "order": "made anew" if made.rounds is None else made.rounds.order,
            "gap_slots": gap(self.circuits),
            "dark_share": 1 - made.after,
            "without": {
                "what": self.without,
                "survivors": made.survivors.tolist(),
                "uplinks": [list(pool) for pool in made.pools],
                "usable_before": made.before,
                "usable_after": made.after,
            },
        }


def _nones(table):
    """An array as lists, with None for what is dark."""
    if table.min(initial=0) >= 0:
        return table.tolist()
    if table.ndim == 1:
        return [None if x < 0 else x for x in table.tolist()]
    return [_nones(row) for row in table]
