"""A run of Stardust under way: what kernels change, what fails between their steps, and what was seen."""

from dataclasses import fields
from typing import ClassVar

import numpy as np
from numba import typeof, types

from weft.engine import events, fingerprint, loop, memory
from weft.engine.layout import Grows, bits_beyond, check_limits, check_same, check_shapes
from weft.engine.series import QUEUES, sums
from weft.engine.views import bind
from weft.fabrics.network.hosted import HostedRun
from weft.fabrics.stardust import bounds, kernel
from weft.fabrics.stardust import state as st
from weft.fabrics.stardust.fabric import Stardust
from weft.fabrics.stardust.layout import enter, lay_out
from weft.fabrics.stardust.reachability import history
from weft.hosts import checked
from weft.hosts import state as hosts
from weft.hosts.state import PER_FLOW
from weft.metrics.observation import Lost, Observation, Queue, Throughput
from weft.units import s as second
from weft.units import us
from weft.workload.traffic import Cells

ROWS_FULL, SLOTS_FULL = loop.MORE, loop.MORE + 1
CONSTANT = {  # what no step changes, by table
    "world": (*sum((*hosts.PARAMETERS, *st.PARAMETERS), ()), *st.KEYS, "shift", "ties", "tie_key", "key", "known"),
    "links": ("to", "frm", "down", "tier"),
    "voqs": ("home", "host", "klass"),
    "ports": ("adapter", "interval", "watermark"),
    "adapters_": ("uplinks", "fault"),
    "devices": ("pool_up", "pool_down", "stop_up", "stop_down"),
    "hosts": ("rate",),
    "traffic": ("size", "start", "src", "dst", "klass"),
}
PARTS = (("p50", 500), ("p99", 990), ("p99.9", 999))  # in a thousand
PATIENCE = 1000  # ways through the fabric, and packets of a port, in which a fabric that holds packets delivers one


class StardustRun(HostedRun):
    """Adapters and elements at work."""

    fabric: Stardust
    unit = "events"
    budget = 2_000
    inspect_every = 1 << 18
    inspect_samples = 16

    def __init__(self, fabric, demand, seed=0):
        super().__init__(fabric, demand, seed=seed, every=20 * us)
        self.open_loop = isinstance(demand, Cells)
        self.state = lay_out(fabric, demand, seed)
        self.moments = {moment.time: moment for moment in history(fabric, seed)}
        slowest = min(fabric.rate, fabric.link)  # all that an adapter holds may be one burst
        self.patience = PATIENCE * bounds.loop(fabric) + (PATIENCE * fabric.wire_size + fabric.buffer) * 8 * second // (
            slowest
        )

    @property
    def share(self):
        if not self.open_loop or self.until:
            return super().share
        return int(self.world["unit_at"]) / max(int(self.world["last_unit"]), 1)

    def compile(self):
        world = self.state.world
        kernel.advance(world, 0, 0)
        kernel.measure(world, np.empty(len(self.state.links), np.int64))
        if self.moments:
            kernel.cut.compile((typeof(world), types.int64))
            kernel.mend.compile((typeof(world), types.int64))
            kernel.disturb.compile((typeof(world), types.int64, types.int64))
            kernel.renew.compile((typeof(world),))

    def step(self, until, budget):
        world = self.world
        why = kernel.advance(self.state.world, until, budget)
        if why == kernel.DONE:
            if self.open_loop:
                return loop.DONE if world["unit_at"] >= world["last_unit"] else loop.REACHED
            idle = world["next_flow"] == world["known"] and world["coming"] == 0 and world["live"] == 0
            return loop.DONE if idle else loop.REACHED
        return {kernel.PAUSED: loop.PAUSED, kernel.GROW_ROWS: ROWS_FULL, kernel.GROW_SLOTS: SLOTS_FULL}[why]

    def grow(self, why):
        names = st.PER_ROW if why == ROWS_FULL else PER_FLOW
        longer = memory.longer({name: getattr(self.state, name) for name in names})
        for name, array in longer.items():
            setattr(self.state, name, array)
        bind(self.state.world, **longer)

    def sample(self):
        links = self.state.links
        waiting = links["count"]
        queued = waiting if len(waiting) <= QUEUES else sums(links["frm"], waiting, self.fabric.wiring.devices)
        return {
            "delivered_bytes": self.delivered,
            "finished": self.finished,
            "waiting": int(waiting.sum()),
            "lost": self.lost.total,
            "queued": self.gathered(queued),
            "busy_ps": self.averaged(self.sent, links["frm"]),
        }

    @property
    def sent(self):
        """(links,) int64: ps in which each has sent cells, or control messages that held cells up."""
        out = np.empty(len(self.state.links), np.int64)
        kernel.measure(self.state.world, out)
        return out

    @property
    def delivered(self):
        """Payload bytes that have left by each port."""
        if not self.open_loop:
            return self.state.hosts["delivered"]
        waiting = np.maximum(self.state.ports["free_at"] - self.now, 0) // self.fabric.node_slot
        return self.state.took - waiting * self.fabric.filling

    # failures

    @property
    def next_change(self):
        """Just before the next failure, repair or change of tables."""
        applied = int(self.world["applied"])
        return next((time - 1 for time in self.moments if time > applied), None)

    def change(self):
        world, fabric, cables = self.state.world, self.fabric, self.fabric.wiring.cables
        time = self.next_change + 1
        world["applied"] = time
        world["now"] = max(self.now, time - 1)
        moment = self.moments[time]
        for cable in moment.failed:
            kernel.cut(world, cable)
            kernel.cut(world, cables + cable)
        for cable in moment.repaired:
            kernel.mend(world, cable)
            kernel.mend(world, cables + cable)
        for noisy, some in ((2, moment.noisy), (0, moment.clean)):
            for cable in some:
                kernel.disturb(world, cable, noisy)
                kernel.disturb(world, cables + cable, noisy)
        if moment.routes is not None:
            enter(self.state, fabric, moment.routes, self.seed)
            kernel.renew(world)

    # laws

    def monitors(self, thorough=True):
        world, state, fabric = self.world, self.state, self.fabric
        off = int(world["entered"] + world["copied"] - world["arrived"] - world["inside"]) - self.lost.total
        laws = {"conservation": int(off != 0), "no_cell_lost": int(world["overflows"]), "credits_conserved": 0,
                "reassembly_bounded": 0, "buffer_bound": 0, "progress": self.stalled()}  # fmt: skip
        if not fabric.fail and not fabric.cold and not fabric.errors:
            laws["no_cell_lost"] += self.lost.total
        if fabric.overflow == "pause" and not self.open_loop:
            laws["buffer_bound"] += int(world["drop_full"])
        if thorough:
            voqs = state.voqs
            balance = int(world["credit_bytes_got"] - world["spent"])
            laws["credits_conserved"] += int(int(voqs["balance"].sum()) != balance)
            laws["credits_conserved"] += int(int(voqs["owed"].sum()) != int(world["asked"] - world["credit_bytes_got"]))
            laws["credits_conserved"] += int(int(voqs["want"].sum()) != int(world["reached"] - world["credit_bytes"]))
            flying = int(np.bitwise_count(state.flying).sum())
            laws["conservation"] += int(flying + int(state.links["count"].sum()) != int(world["inside"]))
            if not world["branching"]:  # cells of copies wait for nothing
                laws["conservation"] += int(self._missing_cells() != int(world["inside"]))
            laws["reassembly_bounded"] = int(state.adapters_["most"].max() > bounds.reassembly(fabric))
            laws["buffer_bound"] += int((state.adapters_["peak"] > fabric.buffer).sum())
        laws["delivered_as_offered"] = checked.miscounted(state) if thorough and not self.open_loop else 0
        if not self.open_loop:
            packets = int(world["conserved_in"] - world["conserved_out"])
            ended = int(world["landed"] + world["drop_full"] + world["drop_late"])  # what is gone went somewhere
            laws["conservation"] += int(not 0 <= packets <= int(world["alive"]))
            laws["conservation"] += int(ended != int(world["conserved_out"]))
        return laws

    def _missing_cells(self) -> int:
        """Cells that bursts wait for and that have left their adapter: all of them are inside the fabric."""
        bursts, here, missing = self.state.bursts, self.state.voqs["oldest"], 0
        for _ in range(len(bursts)):  # each VOQ has a list of them
            here = here[here >= 0]
            if not len(here):
                break
            missing += int((bursts["left"][here] - bursts["todo"][here]).sum())
            here = bursts["after"][here]
        return missing

    @property
    def under_way(self):
        """Packets that have left by ports; whether any is in an adapter or the fabric, and no link is down."""
        world = self.world
        held = int(world["inside"]) > 0 or bool(self.state.adapters_["used"].any())
        return int(world["units_out"] if self.open_loop else world["landed"]), held and int(world["broken"]) == 0

    @property
    def lost(self):
        """What entered the fabric, or came to it, and was lost: cells, and packets where a buffer was full."""
        world = self.world
        return Lost(causes={"link_down": int(world["lost_link"]), "no_route": int(world["lost_route"]),
                            "errors": int(world["lost_error"])})  # fmt: skip

    # what was seen

    def observe(self) -> Observation:
        state, w = self.state, self.world
        flows = self.demand.table
        return Observation(
            finish=state.traffic["finish"].copy() if len(flows) else np.empty(0, np.int64),
            received=state.traffic["received"].copy() if len(flows) else np.empty(0, np.int64),
            now=self.now,
            unit="cells",
            carried={
                "entered": int(w["entered"]),
                "arrived": int(w["arrived"]),
                "lost": self.lost.total,
                "marked": int(w["marks"]),
                "hops": int(w["hops"]),
                "local": int(w["local"]),
                "copied": int(w["copied"]),
                "control": int(w["controls"]),
                "reports": int(w["reports"]),
            },
            queue=self._longest(),
            lost=self.lost,
            throughput=self._throughput() if self.open_loop else None,
            half=self.half and (self.half[0], self.half[1]["delivered_bytes"]),
            sections=self._sections(),
            monitors=self.monitors(),
            fingerprint=fingerprint.show(state.print),
            samples=self.series.columns(self.now, self.sample()),
            work={"cell_hops": int(w["hops"]), "events": self.work, "slots": int(w["ticks"]), "seconds": self.seconds},
            notes=tuple(self._notes()),
        )

    def _longest(self) -> Queue:
        inner = self.state.links[self.fabric.wiring.edge :]
        longest = int(inner["peak"].max(initial=0))
        held = self.state.devices["most_up"] + self.state.devices["most_down"]
        return Queue(max=longest, max_bytes=longest * self.fabric.cell, max_node=int(held.max(initial=0)))

    def _throughput(self):
        fabric, w = self.fabric, self.world
        slots = int(w["unit_at"]) - int(w["warmup"])
        begin = int(w["warmup"]) * fabric.node_slot
        span = max(self.now - begin, 1)
        rates = self.delivered * (8 * second / span) if slots > 0 else np.empty(0)
        best = fabric.link * fabric.filling / fabric.cell
        return Throughput(rates=rates, begin=min(begin, self.now), end=self.now, best=best,
                          window="after the warm-up, payload of cells")  # fmt: skip

    def _sections(self) -> dict:
        state, fabric, w = self.state, self.fabric, self.world
        ports, adapters = state.ports, state.adapters_
        slots = int(w["ticks"] - w["measured_from"])
        edge = fabric.wiring.edge
        entered = int(w["entered"] - w["entered_from"]) - int(w["saved"]) / fabric.cell  # whole cells' worth
        counted = state.lengths.copy()
        counted[0] = max(slots * edge - int(counted.sum()), 0)
        sections = {
            "latency_us": {
                **_spread(state.latency, fabric.slot / us, int(w["latency_max"])),
                "histogram": _histogram(state.latency, fabric.slot / us),
            },
            "queue_cells": {
                **_spread(counted, 1, int(state.links["peak"][fabric.wiring.cables :][:edge].max(initial=0))),
                "histogram": _histogram(counted, 1),
            },
            "credits": {
                "issued": int(w["credits_sent"]),
                "received": int(w["credits_got"]),
                "lost_bytes": int(w["credits_lost"]),
                "requests": int(w["requests"]),
                "asked_bytes": int(w["asked"]),
                "bytes": int(w["credit_bytes"]),
                "spent_bytes": int(w["spent"]),
                "balance_bytes": int(state.voqs["balance"].sum()),
                "slowest": float(adapters["factor"].min()) / st.FULL,
                "throttled": int(w["throttled"]),
            },
            "fabric_use": {
                "adapters": fabric.edges,
                "elements": list(fabric.wiring.elements),
                "cables": fabric.wiring.cables,
                "slot_ns": fabric.slot / 1000,
                "speedup": fabric.fabric_speedup,
                "utilisation": entered / max(slots * edge, 1),
                "bursts": int(w["bursts_made"]),
                "cells_per_burst": (int(w["entered"]) + int(w["local"])) / max(int(w["bursts_made"]), 1),
                "slots_for_control": int(w["skipped"]),
                "paused_slots": int(w["pauses"]),
            },
            "edge": {
                "buffer_max_bytes": int(adapters["peak"].max()),
                "egress_max_bytes": int(ports["peak"].max()) * fabric.link // (8 * second),
                "reassembly_max_cells": int(adapters["most"].max()),
                "dropped_full": int(w["drop_full"]),
                "pauses_of_hosts": int(adapters["stops"].sum()),
                "given_up": int(w["drop_late"] + w["units_lost"]),
            },
            "retransmissions": int(w["resent"]),
            "timeouts": int(w["timeouts"]),
            "drops": {"full": int(w["drop_full"]), "late": int(w["drop_late"])},
        }
        if self.open_loop:
            sections["packets_of_a_cell"] = {
                "offered": int(w["units_in"]), "delivered": int(w["units_out"]), "dropped": int(w["drop_full"]),
            }  # fmt: skip
        return sections

    def _notes(self):
        fabric = self.fabric
        odd = fabric.hop * fabric.slot - fabric.slot - fabric.delay
        if odd > fabric.delay // 4 and fabric.delay:
            yield (
                f"links of {fabric.delay} ps are {fabric.hop - 1} slots of {fabric.slot} ps long: cells are {odd} ps "
                "later on each"
            )

    # checkpoints

    def arrays(self):
        return {name: array.copy() for name, array in vars(self.state).items()}

    grows: ClassVar[Grows] = {
        **dict.fromkeys(st.PER_ROW, (("rows", 0),)),
        **dict.fromkeys(PER_FLOW, (("slots", 0),)),
    }

    def check(self, given):
        laid = self.arrays()
        for name in ("groups", "choices"):  # which are others once something has failed
            if given.get(name, laid[name]).ndim == 1:
                laid[name] = np.zeros(len(given.get(name, ())), laid[name].dtype)
        check_shapes(laid, given, self.grows)
        for name, constant in CONSTANT.items():
            check_same({field: laid[name][field] for field in constant}, given[name])
        check_same({name: laid[name] for name in ("far", "keep", "other", "successors")}, given)
        check_limits(self.limits(given))

    def limits(self, given):
        many, last, cells = len(given["rows"]), len(given["links"]) - 1, len(given["cells"])
        queues, n, a = len(given["voqs"]) - 1, self.fabric.nodes, self.fabric.edges
        lone = -1 if self.world["branching"] else 0  # a burst that is copied inside has no VOQ
        yield from checked.limits(given, self.state.waits, ports=2)
        for table, names, low, high in (
            ("links", ("head", "tail"), -1, cells - 1), ("links", ("place",), 0, st.RING - 1),
            ("links", ("count",), 0, cells + st.RING), ("cells", ("next",), -1, cells - 1),
            ("voqs", ("first", "last", "oldest", "newest"), -1, many - 1), ("voqs", ("next",), -1, queues),
            ("bursts", ("next", "after"), -1, many - 1), ("bursts", ("voq",), lone, queues),
            ("bursts", ("dst",), 0, a - 1),
            ("bursts", ("todo", "left", "came", "units", "shorts"), 0, 1 << 30),
            ("bursts", ("tail",), 0, self.fabric.cell),
            ("ports", ("first", "last", "first_high", "last_high"), -1, queues),
            ("adapters_", ("first", "last", "first_high", "last_high"), -1, many - 1),
            ("adapters_", ("factor",), 1, st.FULL), ("adapters_", ("stopped",), 0, 1),
            ("gates", ("first", "last"), -1, many - 1), ("gates", ("busy", "paused"), 0, 1),
        ):  # fmt: skip
            for name in names:
                yield f"{table}.{name}", given[table][name], low, high
        for name, low, high in (("free_cell", -1, cells - 1), ("used_cells", 0, cells), ("free_burst", -1, many - 1),
                                ("used_bursts", 0, many), ("applied", -1, 1 << 62),
                                ("ticks", 0, (1 << st.SLOTS) - 2)):  # fmt: skip
            yield name, given["world"][name], low, high
        for name, words in (("ring", given["ring"]), ("wire", given["wire"]), ("cells", given["cells"]["word"])):
            yield name, words & np.uint64((1 << st.ROWS) - 1), 0, many - 1
            yield name, (words >> np.uint64(st.TO)) & np.uint64(st.MOST_ADAPTERS - 1), 0, a - 1
        for name, count in (("flying", last + 1), ("queued", last + 1), ("asking", n), ("sending", a)):
            yield name, bits_beyond(given[name], count), 0, 0
        groups = given["groups"]
        first, count, place = (groups[name].astype(np.int64) for name in ("first", "count", "place"))
        yield "groups", np.stack([first, count, place, first + count]), 0, len(given["choices"])
        yield "groups", place - count, -(1 << 31), -1
        yield "table", given["table"], -2, len(groups) - 1
        yield "choices", given["choices"], 0, last
        yield "streams", given["streams"], -1, n - 1
        yield "targets", given["targets"], -1, n - 1
        yield "members", given["members"], -n - 1, n - 1
        yield "picked", given["picked"], 0, last
        rows = given["rows"]
        asked = np.isin(rows["kind"], (st.CREDIT, st.REQUEST))
        yield "rows.seq", rows["seq"][asked], 0, queues
        yield "rows.seq", rows["seq"][rows["kind"] == st.EXPIRY], 0, many - 1

    def restore(self, arrays):
        names = [field.name for field in fields(st.StardustState)]
        shapes = {name: (arrays[name].shape, arrays[name].dtype) for name in names}
        self.state = state = st.StardustState(**memory.zeros(shapes))
        for name in names:
            getattr(state, name)[...] = arrays[name]
        bind(state.world, **{name: getattr(state, name) for name in (*events.ARRAYS, *st.TABLES)})


def _spread(counts, unit, longest) -> dict:
    """Mean, some percentiles by nearest rank and the maximum of what is counted in classes of one."""
    reached = np.cumsum(counts)
    total = int(reached[-1])
    if not total:
        return {"mean": None, **{name: None for name, _ in PARTS}, "max": None}
    ranks = {name: int(np.searchsorted(reached, -(-total * part // 1000))) * unit for name, part in PARTS}
    return {"mean": float(counts @ np.arange(len(counts))) / total * unit, **ranks, "max": longest * unit}


def _histogram(counts, unit) -> list:
    """[value, how many], for every value that was seen."""
    return [[k * unit, int(counts[k])] for k in np.flatnonzero(counts).tolist()]
