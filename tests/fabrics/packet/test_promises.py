"""Does a run stay the same to the last bit, and do laws that are checked in a hurry find what a slow look finds?"""

from contextlib import suppress

import numpy as np
import pytest

from weft.errors import MonitorTripped
from weft.fabrics.network import bounds
from weft.fabrics.network import fabric as fabric_module
from weft.fabrics.packet.fabric import Packet
from weft.units import Gbps, ms, ns, us
from weft.workload import WORKLOADS
from weft.workload.flows import ENDLESS, Flows

# A change of these is a change of results, and says so.
PERMUTATION = {
    "tcp": "e6f2edae7d98279f6ad298df9dad8d49",
    "dctcp": "84d1afab28bd4ebdc00aa6e04dfe9db3",
    "mptcp": "f5e9c767942a8702baf0b12367475b4e",
    "ndp": "51460d3d74c6108523ee2cb65d3cedc4",
    "dcqcn": "21052ada025005c2bb181f1033e8f903",
}
OPEN = {
    "tcp": "8e6f52f8f7f0ef2f6b2eb10b5f6149dc",
    "dctcp@shoal-nsdi19": "f60eb162cfb46ba8e5359d3058b13d9f",
    "mptcp": "ec8ae5c316244bafd28dccbf5315292c",
    "ndp@shoal-nsdi19": "7c7c2cb9d05314a5f8ca522609942c6c",
    "dcqcn@shoal-nsdi19": "c1af251ab32c30e015596d37c2d7105d",
}


@pytest.mark.parametrize("transport", PERMUTATION)
def test_a_permutation_gives_the_fingerprint_it_always_gave(transport):
    fabric = Packet(hosts=128, mtu=9000, transport=f"{transport}@stardust-nsdi19")
    workload = WORKLOADS["permutation"](duration=1 * ms)
    flows = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    run.advance(until=workload.until)
    assert run.observe().fingerprint == PERMUTATION[transport]


@pytest.mark.parametrize("transport", ["dctcp", "ndp", "dcqcn"])
def test_looking_far_ahead_changes_nothing(transport, monkeypatch):
    monkeypatch.setattr(fabric_module, "CACHE", 0)
    fabric = Packet(hosts=128, mtu=9000, transport=f"{transport}@stardust-nsdi19")
    workload = WORKLOADS["permutation"](duration=1 * ms)
    flows = workload.draw(nodes=fabric.nodes, link=fabric.link, seed=1)
    run = fabric.prepare(flows, seed=1)
    assert run.state.world["large"][0] == 1
    run.advance(until=workload.until)
    assert run.observe().fingerprint == PERMUTATION[transport]


@pytest.mark.parametrize("transport", OPEN)
def test_flows_that_come_and_go_give_the_fingerprint_they_always_gave(transport):
    fabric = Packet(
        hosts=96, topology="leafspine", radix=16, link=50 * Gbps, delay=100 * ns, transport=transport, ties="random",
        fail="link leaf0-spine0 at 30us until 200us",
    )  # fmt: skip
    flows = WORKLOADS["poisson"](load=0.8, sizes="pareto", flows=1500).draw(
        nodes=fabric.nodes, link=fabric.link, seed=2
    )
    run = fabric.prepare(flows, seed=2)
    run.advance()
    assert run.observe().fingerprint == OPEN[transport]


def stuck_by_hand(state):
    """Ports that can never move again, a dictionary of packets at a time."""
    ports, rows, world = state.ports, state.rows, state.world[0]
    stuck = set(np.flatnonzero((ports["paused"] == 1) & (ports["stopped"] == 1)).tolist())
    held = {}  # (port that a packet came by, port it waits at) -> bytes
    for b in stuck:
        r = int(ports["head"][b])
        for _ in range(int(ports["packets"][b]) if not ports["host"][b] else 0):
            pair = int(rows["port"][r]), b
            held[pair] = held.get(pair, 0) + int(rows["size"][r])
            r = int(rows["next"][r])
    while True:
        free = set()
        for a in stuck:
            to = ports["to"][a]
            above = int(world["share"]) * int(state.pool[to] - state.buffered[to]) >> 10
            resume = (above if world["share"] else int(world["xoff"])) - int(world["xoff"] - world["xon"])
            if sum(size for (came, b), size in held.items() if came == a and b in stuck) <= max(resume, 0):
                free.add(a)
        if not free:
            return sorted(stuck)
        stuck -= free


@pytest.mark.parametrize("settings", ["xoff=4,xon=3", "share=2.0"])
def test_the_ports_found_stuck_are_those_found_by_hand(tmp_path, settings):
    ring = tmp_path / "ring.csv"
    ring.write_text("".join(f"h{k},s{k},10Gbps,1us\ns{k},s{(k + 1) % 5},10Gbps,1us\n" for k in range(5)))
    fabric = Packet(hosts=5, topology=str(ring), transport=f"dcqcn:mark_from=0,{settings}", mtu=1500)
    flows = Flows.of(nodes=5, src=range(5), dst=[(k + 2) % 5 for k in range(5)], size=[ENDLESS] * 5, start=0)
    run = fabric.prepare(flows)
    paused = stuck = 0
    for until in range(0, 900 * us, 20 * us):
        with suppress(MonitorTripped):
            run.advance(until=until)
        paused += int(run.state.ports["paused"].sum())
        stuck += len(stuck_by_hand(run.state))
        assert bounds.deadlock(run.state) == stuck_by_hand(run.state)
    assert paused > stuck > 0
