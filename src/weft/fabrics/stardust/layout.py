"""The arrays of a run of Stardust, laid out."""

import numpy as np

from weft import random
from weft.engine import events, memory
from weft.engine.views import bind
from weft.fabrics.stardust import bounds
from weft.fabrics.stardust import state as st
from weft.fabrics.stardust.reachability import ERRORS, Tables
from weft.fabrics.stardust.wiring import Routes
from weft.hosts import state as hosts
from weft.hosts.settings import LEAST
from weft.units import s, wire_time
from weft.wire.stardust import CONTROL, REACHABILITY
from weft.workload.traffic import Cells

TURNS, CONTROLS = 0x73640001, 0x73640002  # streams: the order of links, and the ways of control messages

LINE = 1 << 33  # ps: the longest wait at a port that is worth a place in the ring of the event queue …
RING = 15  # … of so many places, as a power of two, for those


def levels(fabric) -> int:
    """Classes that are told apart."""
    return 1 if fabric.classes == "one" and not fabric.low_latency else 2


def branches(fabric, demand) -> bool:
    """Whether there are packets for several nodes, which elements are to copy."""
    return isinstance(demand, Cells) and demand.fanout > 1 and fabric.multicast == "fabric"


def lay_out(fabric, demand, seed: int) -> st.StardustState:
    """The arrays of a fabric in which nothing has happened."""
    wiring, flows, n, a = fabric.wiring, demand.table, fabric.nodes, fabric.edges
    open_loop = isinstance(demand, Cells)
    queues, links = (n if fabric.per_source else a) * n * levels(fabric), 2 * wiring.cables
    words = -(-links // 64)
    pools = bounds.pools(fabric)
    abreast = 1 if open_loop else bounds.abreast(fabric)  # cells of traffic without hosts are whole
    most = abreast * (int(pools[0].sum() + pools[1].sum()) + 2 * bounds.AHEAD * a * fabric.lanes + links)
    each = fabric.slot // fabric.node_slot + fabric.slot // fabric.interval + 4
    margin = max(1 << 13, n * each + 64)
    rows = 1 << max(15, (4 * margin).bit_length())
    tables = open_loop and demand.keep is not None
    # What hops of control messages take must be in the ring of the event queue, and packets that wait at the port of
    # their host or of their receiver, of which there are tens of thousands.
    gap = max(fabric.slot // 64, wire_time(64, fabric.link) // n, 1)
    longest = 2 * fabric.tiers * fabric.hop * fabric.slot + fabric.slot
    line = 0 if open_loop else min(fabric.settings.max_window * wire_time(fabric.wire_size, fabric.link), LINE)
    shift = max(events.shift_for(gap), (line >> RING).bit_length())
    ring = 1 << min(max((max(longest, line) >> shift).bit_length(), 10), 18)
    routes = Tables(wiring, fabric.updates, cold=True).routes() if fabric.cold else fabric.routes
    state = st.StardustState(
        **memory.zeros(
            {
                "world": (1, st.WORLD),
                **hosts.tables(_Sized(fabric), flows, ring=ring, rows=rows),
                "links": (links, st.LINK),
                "ring": (links * st.RING, np.uint64),
                "cells": (most, st.CELL),
                "wire": ((abreast, fabric.hop, links), np.uint64),
                "flying": ((abreast, fabric.hop, words), np.uint64),
                "queued": (words, np.uint64),
                "slack": (links, np.int32),
                "slots": ((-(-links // 64), st.SLOTS, 2), np.uint64),
                "working": ((-(-links // 64), 2), np.uint64),
                "lines": (links, st.LINE),
                "table": (routes.table.size, np.int32),
                "groups": (len(routes.first), st.GROUP),
                "choices": (len(routes.choices), np.int32),
                "voqs": (queues, st.VOQ),
                "bursts": (rows, st.BURST),
                "ports": (n, st.PORT),
                "adapters_": (a, st.ADAPTER),
                "devices": (wiring.devices, st.DEVICE),
                "asking": (-(-n // 64), np.uint64),
                "sending": (-(-a // 64), np.uint64),
                "latency": (st.WAITS, np.int64),
                "lengths": (st.LENGTHS, np.int64),
                "far": (a * a, np.uint8),
                "aloft": ((fabric.tiers + 1, 2), np.int64),
                "keep": ((n, n) if tables else (1, 1), np.uint32),
                "other": ((n, n) if tables else (1, 1), np.int32),
                "streams": (n, np.int32),
                "members": (n, np.int32),
                "took": (n, np.int64),
                "targets": ((rows, demand.fanout) if branches(fabric, demand) else (1, 1), np.int32),
                "gates": (n if fabric.overflow == "pause" else 1, st.GATE),
                "picked": (64, np.int64),
                "stash": (64, np.uint64),
            }
        )
    )
    hosts.begin(state, _Sized(fabric), flows, seed=seed, shift=shift)
    _numbers(state, fabric, demand, seed, margin)
    state.hosts["rate"] = fabric.link
    _devices(state, fabric, pools)
    enter(state, fabric, routes, seed)
    bind(state.world, **{name: getattr(state, name) for name in st.TABLES})
    return state


class _Sized:
    """A fabric as `weft.hosts` sees it: `hosts` is a number, whether or not it was given."""

    def __init__(self, fabric):
        self.hosts, self.link, self.ties = fabric.nodes, fabric.link, fabric.ties
        self.payload, self.wire_size, self.settings = fabric.payload, fabric.wire_size, fabric.settings


def _numbers(state, fabric, demand, seed, margin):
    wiring = fabric.wiring
    policy = {"one": 0, "strict": 0, "weighted": fabric.weight}[fabric.classes]
    values = {
        "slot": fabric.slot,
        "hop": fabric.hop,
        "cables": wiring.cables,
        "edge": wiring.edge,
        "adapters": fabric.edges,
        "levels": levels(fabric),
        "cell": fabric.cell,
        "least": bounds.least(fabric),
        "filling": fabric.filling,
        "credit": fabric.credit,
        "control_size": CONTROL,
        "message": REACHABILITY.size,
        "packing": fabric.packing,
        "whole_credits": fabric.whole,
        "policy": policy,
        "free_class": 1 if fabric.low_latency else 9,
        "fine": fabric.per_source,
        "capacity": fabric.buffer,
        "mark_above": fabric.mark or 0,
        "pausing": fabric.overflow == "pause",
        "stop_above": fabric.buffer - bounds.pause_room(fabric),
        "go_below": fabric.buffer - 2 * bounds.pause_room(fabric),
        "pause_way": fabric.edge_delay + wire_time(LEAST, fabric.link),
        "branching": branches(fabric, demand),
        "targets_each": state.targets.shape[1],
        "noise": round(fabric.error_rate * (1 << 32)),
        "fci": fabric.fci,
        "window": fabric.window,
        "cut": round(fabric.fci_cut * st.FULL),
        "gain": round(fabric.fci_gain * st.FULL),
        "redraw": fabric.rounds,
        "period": max(1, fabric.period // fabric.slot),
        "delay": fabric.edge_delay,
        "patience": max(fabric.reassembly, 1),
        "free_cell": -1,
        "free_burst": -1,
        "applied": -1,
        "broken": fabric.cold,  # for good: control messages may be lost until tables are complete
        "margin": margin,
        "control_key": random.key(seed, CONTROLS),
        "error_key": random.key(seed, ERRORS),
    }
    if isinstance(demand, Cells):
        values |= {
            "open_loop": 1,
            "node_slot": fabric.node_slot,
            "whole": demand.whole,
            "chance": demand.chance,
            "end_chance": demand.end,
            "fanout": demand.fanout,
            "last_unit": demand.slots,
            "warmup": demand.warmup,
            "unit_key": demand.key,
            "end_key": demand.end_key,
            "fanout_key": demand.fanout_key,
            "member_seed": demand.seed,
        }
        if demand.keep is not None:
            state.keep[:], state.other[:] = demand.keep, demand.other
    for name, value in values.items():
        state.world[name] = value - (1 << 64) if value >= 1 << 63 else value  # keys are words of 64 bits


def _devices(state, fabric, pools):
    wiring, n, a = fabric.wiring, fabric.nodes, fabric.edges
    links, voqs, ports, adapters = state.links, state.voqs, state.ports, state.adapters_
    links["head"] = links["tail"] = -1
    links["frm"], links["to"] = wiring.ends
    links["down"][wiring.cables :] = 1
    links["tier"] = np.tile(wiring.tier, 2)
    state.aloft[:, 1] = np.bincount(wiring.tier, minlength=fabric.tiers + 1)
    state.far[:] = wiring.distances(fabric.routes).ravel()
    for name in ("first", "last", "next", "oldest", "newest"):
        voqs[name] = -1
    each = np.arange(len(voqs))
    count = levels(fabric)
    voqs["klass"] = each % count
    voqs["host"] = each // count % n
    voqs["home"] = each // count // n // (fabric.per_adapter if fabric.per_source else 1)
    for name in ("first", "last", "first_high", "last_high"):
        ports[name] = adapters[name] = -1
    ports["adapter"] = np.arange(n) // fabric.per_adapter
    ports["interval"] = fabric.interval
    ports["watermark"] = fabric.full * 8 * s // fabric.link
    adapters["factor"] = st.FULL
    adapters["uplinks"] = np.bincount(wiring.lower[: wiring.edge], minlength=a)
    if fabric.unlimited is not None:
        adapters["fault"][fabric.unlimited] = 1
    state.streams[:] = -1
    state.gates["first"] = state.gates["last"] = -1
    for name, pool in zip(("pool_up", "pool_down", "stop_up", "stop_down"), pools, strict=True):
        state.devices[name] = pool


def enter(state, fabric, routes: Routes, seed: int) -> None:
    """Give the devices these tables; every group begins a new round, in an order of its own."""
    if len(state.groups) != len(routes.first) or len(state.choices) != len(routes.choices):
        state.groups = np.zeros(len(routes.first), st.GROUP)
        state.choices = np.zeros(len(routes.choices), np.int32)
    state.table[:] = routes.table.ravel()
    state.choices[:] = routes.choices
    groups = state.groups
    groups["first"], groups["count"] = routes.first, routes.number
    groups["place"], groups["rounds"], groups["draws"] = 0, fabric.rounds, 0
    groups["key"] = random.words(random.key(seed, TURNS), len(groups))
    bind(state.world, groups=groups, choices=state.choices)
