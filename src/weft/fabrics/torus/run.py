"""A torus at work."""

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numba import typeof, types

from weft.engine import loop, memory
from weft.engine.layout import Grows, check_same
from weft.engine.series import QUEUES
from weft.engine.views import bind
from weft.fabrics.network.run import ROWS_FULL, SLOTS_FULL, NetworkRun
from weft.fabrics.torus import kernel
from weft.fabrics.torus import state as st
from weft.hosts.flow import PATHS

FLOWS_FULL = SLOTS_FULL + 1
WHY = {
    kernel.PAUSED: loop.PAUSED,
    kernel.GROW_ROWS: ROWS_FULL,
    kernel.GROW_SLOTS: SLOTS_FULL,
    kernel.GROW_FLOWS: FLOWS_FULL,
}


class TorusRun(NetworkRun):
    """Nodes, links and flows of a torus under way."""

    tables = st.TABLES
    grows: ClassVar[Grows] = {
        **NetworkRun.grows, "waypoint": (("rows", 0),), **dict.fromkeys(st.PER_ENTRY, (("entries", 0),)),
        "loads": (("loads", 0),), "members": (("loads", 0),),
    }  # fmt: skip

    def __init__(self, fabric, flows, seed=0):
        super().__init__(fabric, flows, seed)
        self.own = fabric.settings.transport == "r2c2"
        self._settle(-1)
        self._arrange()

    def compile(self):
        world = self.state.world
        kernel.advance(self.fabric.settings.transport, world, 0, 0)
        self.sample()
        if self.moments:
            for change in (kernel.cut, kernel.mend):
                change.compile((typeof(world), types.int64))
            kernel.give_up.compile((typeof(world), types.boolean))
            for change in (kernel.reload, kernel.reroute):
                change.compile((typeof(world),))

    def step(self, until, budget):
        why = kernel.advance(self.fabric.settings.transport, self.state.world, until, budget)
        if why == kernel.DONE:
            return loop.DONE if self._over else loop.REACHED
        return WHY[why]

    @cached_property
    def _surveyed(self):
        """Of each port, its row of `queued` and of `busy_ps`; how many rows there are, and how many ports are in each
        of the last."""
        senders, (queues, names), (lines, called) = self._senders, self._queue_rows, self._line_rows
        queues = queues if len(senders) <= QUEUES else queues[senders]
        lines = lines if len(lines) == len(senders) else lines[senders]
        return queues, lines, len(names), np.maximum(np.bincount(lines, minlength=len(called)), 1)

    def sample(self):
        """As of any network, in one pass over the ports."""
        of_queues, of_lines, rows, many = self._surveyed
        queued, worked = np.zeros(rows, np.int64), np.zeros(len(many), np.int64)
        waiting = kernel.survey(self.state.world, of_queues, of_lines, queued, worked)
        return {
            "delivered_bytes": self.state.hosts["delivered"],
            "finished": self.finished,
            "waiting": waiting,
            "lost": self.lost.total,
            "queued": queued,
            "busy_ps": worked // many,
        }

    @property
    def lines(self):
        return self.state.lines.T

    @property
    def _over(self):
        world = self.world
        return world["next_flow"] == world["known"] and world["coming"] == 0 and world["live"] == 0

    def grow(self, why):
        if why == FLOWS_FULL:
            self._make_room()
        else:
            super().grow(why)
            if why == ROWS_FULL and len(self.state.waypoint) > 1:
                self._longer("waypoint")

    def _longer(self, *names):
        longer = memory.longer({name: getattr(self.state, name) for name in names})
        for name, array in longer.items():
            setattr(self.state, name, array)
        bind(self.state.world, **longer)

    def _make_room(self):
        """Close the gaps that flows have left, and make longer what is still more than half full."""
        world, state = self.state.world, self.state
        entries, loads = state.entries, state.loads
        used = int(world["used_entries"][0])
        held = np.flatnonzero((entries["state"][:used] == st.TOLD) & (entries["laid"][:used] > 0))
        held = held[np.argsort(entries["first"][held], kind="stable")]
        first, count = entries["first"][held], entries["laid"][held].astype(np.int64)
        total = int(count.sum())
        begins = np.cumsum(count) - count
        loads[:total] = loads[np.repeat(first - begins, count) + np.arange(total)]
        entries["first"][held] = begins
        world["used_loads"] = total
        if total + kernel.LEAST * len(state.ports) > len(loads) // 2:
            self._longer("loads", "members")
        if used + kernel.LEAST > len(entries) // 2:
            self._longer(*st.PER_ENTRY)

    # failures

    def _settle(self, time):
        """Say whether anything is still going to change after `time`."""
        self.state.world["settled"] = bool(self.moments) and max(self.moments) <= time

    def _arrange(self):
        """What follows from the routes: how far broadcasts have to go, and what spread flows put on ports."""
        state = self.state
        if self.own:
            kernel.arrange(state.world)
        if len(state.cast):
            kernel.spread(state.world, np.zeros((2, self.fabric.nodes, len(state.ports)), np.int64))

    def change(self):
        world, fabric = self.state.world, self.fabric
        time = self.next_change + 1
        world["applied"] = time
        world["now"] = max(self.now, time - 1)
        failed, repaired = self.moments[time]
        for links, act in ((failed, kernel.cut), (repaired, kernel.mend)):
            for link in links:
                act(world, 2 * link)
                act(world, 2 * link + 1)
        routes = fabric.toward(fabric.alive(self.seed, time - fabric.converge))
        self._settle(time)
        if not np.array_equal(routes, self.state.toward):
            self.state.toward[:] = routes
            self._reload()
        if world["settled"][0]:
            kernel.give_up(world, self.own)

    def _reload(self):
        """Lay out anew what flows put on links."""
        if not self.own:
            return
        self._arrange()
        self.widen(self._known)
        self.state.asked[:], self.state.crossing[:] = 0, 0
        kernel.reload(self.state.world)
        if self.world["ahead"]:
            kernel.reroute(self.state.world)

    @property
    def _known(self):
        """Flows that every node knows of."""
        return int(np.isin(self.state.entries["state"], (st.TOLD, st.HEARD)).sum())

    def widen(self, flows):
        """Make room for what so many flows may put on links."""
        while len(self.state.loads) < (flows + kernel.LEAST) * len(self.state.ports):
            self._longer("loads", "members")
        while len(self.state.entries) < flows + kernel.LEAST:
            self._longer(*st.PER_ENTRY)

    # checkpoints

    def check(self, given):
        super().check(given)
        laid = self.arrays()
        fixed = ("shares", "port_of", "to_of", "back", "branch", "weights", "demands", "limits", "capacity")
        check_same({name: laid[name] for name in fixed}, given)
        since = int(given["world"]["applied"][0]) - self.fabric.converge  # other routes might lead round in circles
        check_same({"toward": self.fabric.toward(self.fabric.alive(self.seed, since))}, given)

    def limits(self, given):
        yield from super().limits(given)
        world, entries, nodes = given["world"], given["entries"], self.fabric.nodes
        many, loads, slots = len(entries), len(given["loads"]), len(given["flows"])
        yield "toward", given["toward"], 0, (1 << self.fabric.grid.degree) - 1
        yield "waypoint", given["waypoint"], -1, nodes - 1
        yield "used_entries", world["used_entries"], 0, many
        yield "free_entry", world["free_entry"], -1, many - 1
        heard = int((entries["state"][: int(world["used_entries"][0])] == st.HEARD).sum())
        yield "heard", world["heard"], heard, heard
        yield "used_loads", world["used_loads"] + heard * len(given["ports"]), 0, loads
        for name, low, high in (
            ("slot", 0, slots - 1), ("src", 0, nodes - 1), ("dst", 0, nodes - 1), ("next", -1, many - 1),
            ("klass", 0, len(self.fabric.of_classes) - 1), ("weight", 0, max(self.fabric.weights)), ("first", 0, loads),
            ("count", 0, len(given["ports"])), ("laid", 0, len(given["ports"])),
            ("spread", 0, int(world["valiant"][0])),
        ):  # fmt: skip
            yield f"entries.{name}", entries[name], low, high
        told, inside = entries["state"] == st.TOLD, entries["spread"] == 0
        yield "entries.laid", (entries["first"] + entries["laid"])[told], 0, loads
        yield "entries.count", (entries["count"] - entries["laid"])[told & inside], 0, 0
        yield "loads.port", given["loads"]["port"], 0, len(given["ports"]) - 1
        yield "crossing", given["crossing"].sum(), 0, loads
        yield "farthest", given["farthest"], 0, nodes
        yield "twigs", given["twigs"][..., :-1], 0, len(given["ports"]) - 1
        yield "twigs", given["twigs"][..., -1], 0, nodes - 1
        yield "calls", given["calls"], 0, 1 << 62
        rows = given["rows"]
        yield "rows.path", rows["path"], 0, PATHS - 1
        if world["ahead"][0]:
            yield "rows.echo", rows["echo"], -1, len(given["ports"]) - 1
            yield "rows.port", rows["port"], 0, len(given["ports"]) - 1
        yield "rows.seq", rows["seq"][rows["kind"] >= st.KNOWN], 0, max(many - 1, 0)
        if self.own:
            yield "subs.pulled", given["subs"]["pulled"], 0, many - 1

    # what was seen

    def monitors(self, thorough=True):
        laws = super().monitors(thorough)
        if self.own:
            # what the last computation has given away is at most what there is
            laws["no_port_is_promised_twice"] = int((self.state.left < 0).sum()) if thorough else 0
        return laws

    def _lost_with_flows(self):
        """Packets that were dropped, by cause, and flows that no path is left for, or that wait for such a flow."""
        flows = int(self.world["abandoned"])
        if self._over:
            flows = int((self.state.traffic["finish"] < 0).sum())
        return replace(self.lost, flows=flows)

    def observe(self):
        seen, fabric, world = super().observe(), self.fabric, self.world
        sections = {name: value for name, value in seen.sections.items() if name not in ("trims", "pauses")}
        told = {}
        if self.own:
            broadcast = int(world["broadcasts"]) * (fabric.nodes - 1) * fabric.broadcast
            data = int(world["crossed"])
            told = {
                "broadcasts": int(world["broadcasts"]),
                "broadcasts_lost": int(world["lost_broadcasts"]),
                "broadcast_bytes": broadcast,
                "broadcast_share": broadcast / (broadcast + data) if data else 0.0,
                "computations": int(world["computations"]),
                "full_ports": int(world["frozen_ports"]),
                "routes_tried": int(world["tried"]),
                "routes_switched": int(world["switched"]),
                "known_flows": self._known,
            }
        return replace(seen, sections={**sections, "r2c2": told})
