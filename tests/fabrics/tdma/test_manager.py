"""The fabric manager and the hosts' agents, with a clock that a test moves and frames that it may lose."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft.fabrics.tdma.manager as manager_module
from weft.errors import BadInput
from weft.fabrics.tdma.agent import Agent
from weft.fabrics.tdma.manager import (
    CYCLES,
    Heartbeat,
    Manager,
    Nics,
    Report,
    Standby,
    address,
    class_of,
    peer_of,
    rotation,
)  # fmt: skip
from weft.fabrics.tdma.network import Network
from weft.topology.clos import single, tree
from weft.units import Gbps, us
from weft.wire.pfc import Extended, Pause, Pfc

LINK = 10 * Gbps
BLOCK = 375_000
CYCLE = 315 * us


class World:
    """Hosts with bytes to send, a manager, and a network that takes no time; time moves from frame to frame."""

    def __init__(self, graph, size, lose=lambda order: False, report_every=1, **settings):
        self.n = graph.hosts
        self.manager = Manager(network=Network(graph=graph), **settings)
        self.agents = [Agent(host=h, hosts=self.n, permit=CYCLE) for h in range(self.n)]
        self.left, self.got = size.copy(), np.zeros_like(size)
        self.room = np.full((self.n, self.n), 1 << 40)
        self.lose, self.lost, self.report_every = lose, 0, report_every
        self.now, self.dead, self.sent = 0, set(), []  # sent: (cycle, src, dst, bytes)

    def reports(self, to):
        for agent in self.agents:
            if agent.host not in self.dead:
                to.report(Report(host=agent.host, seen=agent.seen, waiting=self.left[agent.host].copy(),
                                 room=self.room[:, agent.host].copy()))  # fmt: skip

    def deliver(self, orders):
        for order in orders:
            if self.lose(order):
                self.lost += 1
            elif order.host not in self.dead:
                self.agents[order.host].frame(order.frame, order.time)

    def cycles(self, count, by=None):
        """Let `count` cycles pass under a manager: frames, then the slot, then reports."""
        by = by or self.manager
        for k in range(count):
            self.reports(by) if k % self.report_every == 0 else None
            self.deliver(by.act(by.due))  # the stop
            for agent in self.agents:
                assert agent.host in self.dead or self.lost or not agent.may_send(by.due)
            self.deliver(by.act(by.due))  # the go
            self.now = by.due - 1  # when all frames of the go have arrived
            cycle = by.heartbeat.cycle - 1
            told = {(src, dst): size for src, dst, size in by.granted(cycle)}
            for agent in self.agents:
                if agent.host not in self.dead:
                    for j in agent.may_send(self.now):
                        size = min(self.left[agent.host, j], told.get((agent.host, j), BLOCK))
                        self.left[agent.host, j] -= size
                        self.got[agent.host, j] += size
                        self.sent.append((cycle, agent.host, j, size))


def every(n, size=BLOCK):
    return np.where(np.eye(n, dtype=bool), 0, size).astype(np.int64)


# ---------------------------------------------------------------- rounds


def test_the_manager_imports_nothing_that_simulates():
    for name in ("manager", "agent", "plan", "network", "schedulers/base"):
        path = Path(manager_module.__file__).parent / f"{name}.py"
        modules = [node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        for module in modules:
            assert not module.startswith("weft.") or module.startswith(
                ("weft.errors", "weft.units", "weft.wire", "weft.topology", "weft.fabrics.tdma")
            ), (name, module)


@pytest.mark.parametrize("graph", [single(6, LINK, 0), tree(12, LINK, 0)], ids=["switch", "tree"])
def test_an_all_to_all_is_sent_once_and_whole(graph):
    world = World(graph, every(graph.hosts, 2 * BLOCK + 7), slots=9)
    world.cycles(300)
    assert (world.got == every(graph.hosts, 2 * BLOCK + 7)).all()
    for cycle in {cycle for cycle, *_ in world.sent}:
        receivers = [j for c, _, j, _ in world.sent if c == cycle]
        assert len(receivers) == len(set(receivers))


def test_a_schedule_comes_from_the_round_before():
    world = World(single(4, LINK, 0), every(4), slots=5)
    world.cycles(15)
    cycles = [cycle for cycle, *_ in world.sent]
    assert (min(cycles), max(cycles)) == (5, 7)  # reported in round 0, planned in its last cycle, sent in round 1


def test_what_is_granted_is_not_granted_again_before_reports_show_it():
    world = World(single(4, LINK, 0), every(4, BLOCK), slots=4, report_every=3)
    world.cycles(40)
    assert world.manager.count.granted == 12 * BLOCK
    assert (world.got == every(4)).all()


def test_a_receiver_without_room_gets_nothing_until_it_has_some():
    world = World(single(3, LINK, 0), every(3), slots=3)
    world.room[:, 2] = 1000
    world.cycles(30)
    to_two = world.manager.count.granted - 4 * BLOCK
    assert 0 < to_two <= 2 * 1000 * 9  # in nine rounds never more than is said to be free in each
    world.room[:, 2] = 0
    world.cycles(3)
    before = world.manager.count.granted
    world.cycles(9)
    assert world.manager.count.granted == before


def test_a_slow_scheduler_leaves_slots_unused_and_says_how_many():
    world = World(single(4, LINK, 0), every(4, 100 * BLOCK), slots=5, compute=int(2.5 * CYCLE))
    world.cycles(25)
    assert world.manager.count.late_slots == 4 * 2  # two of five in each round after the first
    assert {(cycle - 5) % 5 for cycle, *_ in world.sent} == {2, 3, 4}
    few = World(single(4, LINK, 0), every(4, 10), slots=5, compute=int(2.5 * CYCLE))
    few.cycles(25)
    assert (few.got == every(4, 10)).all()  # a late schedule is begun with its first slot, not in its middle
    early = World(single(4, LINK, 0), every(4, 100 * BLOCK), slots=5, compute=int(2.5 * CYCLE), lead=4)
    early.cycles(25)
    assert early.manager.count.late_slots == 0


def test_hosts_have_weights():
    size = np.zeros((3, 3), np.int64)
    size[0, 2] = size[1, 2] = 1000 * BLOCK
    world = World(single(3, LINK, 0), size, slots=8)

    def reports(to):
        for h in range(3):
            to.report(
                Report(host=h, seen=world.agents[h].seen, waiting=world.left[h].copy(), weight=3 if h == 0 else 1)
            )

    world.reports = reports
    world.cycles(8 * 6)
    assert world.got[0, 2] == 3 * world.got[1, 2] > 0


# ---------------------------------------------------------------- frames


def test_every_host_gets_two_frames_of_64_bytes_in_a_cycle():
    world = World(single(24, LINK, 0), every(24), slots=31)
    world.cycles(62)
    assert world.manager.count.frames == 2 * 24 * 62
    assert round(2 * 64 * 8 / (CYCLE / 1e12) / 1e6, 2) == 3.25  # Mb/s per host; §6.5 says about 3


@pytest.mark.parametrize("hosts, kind", [(4, Pfc), (9, Pfc), (10, Extended)])
def test_eight_classes_are_used_as_long_as_they_suffice(hosts, kind):
    manager = Manager(network=Network(graph=single(hosts, LINK, 0)))
    assert {type(order.frame) for order in manager.act(0)} == {kind}


def test_the_order_of_switches_and_hosts_rotates():
    switches = [[0, 1, 2], [3, 4, 5]]
    assert [h for _, h in rotation(switches, 1, 0)] == [0, 1, 2, 3, 4, 5]
    assert [h for _, h in rotation(switches, 1, 1)] == [4, 5, 3, 1, 2, 0]
    assert [(k, h) for k, h in rotation(switches, 2, 2)] == [(0, 2), (0, 0), (0, 1), (1, 5), (1, 3), (1, 4)]


def test_nics_send_side_by_side_each_as_late_as_its_clock():
    nics = Nics(count=3, offset=(0, 500, 0), drift=(0, 0, 2000))
    manager = Manager(network=Network(graph=tree(24, LINK, 0)), nics=nics, start=10**12)
    orders = manager.act(10**12)
    gap = 84 * 8 * 100  # ps of a frame, its preamble and gap at 10 Gb/s
    for nic, late in enumerate((0, 500, 2_000_000)):
        times = sorted(order.time - 10**12 for order in orders if order.nic == nic)
        assert times == [late + k * gap for k in range(8)]
    alone = Manager(network=Network(graph=tree(24, LINK, 0))).act(0)
    assert max(order.time for order in alone) == 23 * gap


def test_frames_are_for_their_host_and_bytes_on_the_wire_mean_the_same():
    from weft.wire.pfc import decode

    manager = Manager(network=Network(graph=single(12, LINK, 0)))
    for order in manager.act(0):
        assert order.frame.dst == address(order.host)
        assert decode(order.frame.encode()) == (order.frame, None)


@given(st.integers(2, 2049), st.data())
def test_a_class_is_a_destination(hosts, data):
    src = data.draw(st.integers(0, hosts - 1))
    dst = data.draw(st.integers(0, hosts - 1).filter(lambda j: j != src))
    which = class_of(src, dst, hosts)
    assert 0 <= which < hosts - 1 and peer_of(src, which, hosts) == dst


# ---------------------------------------------------------------- losses


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([6, 12]))
def test_with_lost_frames_slots_go_unused_and_everything_arrives_in_the_end(seed, hosts):
    rng = np.random.default_rng(seed)
    world = World(single(hosts, LINK, 0), every(hosts), lose=lambda order: rng.random() < 0.1, slots=7)
    world.cycles(400)
    assert world.lost and (world.got == every(hosts)).all()


def test_a_lost_go_costs_its_slot_only():
    missed = []

    def lose(order):
        go = isinstance(order.frame, Extended) and order.frame.time == 0 and order.host == 3
        if go and not missed:
            missed.append(order)
            return True
        return False

    world = World(single(12, LINK, 0), every(12), lose=lose, slots=11)
    world.cycles(44)
    assert len(missed) == 1 and (world.got == every(12)).all()


def test_after_a_lost_stop_the_next_frame_stops_the_host():
    agent = Agent(host=0, hosts=12)
    agent.frame(Extended(which=3, seq=5), 0)
    assert agent.may_send(10**9) == [4]
    agent.frame(Extended(which=7, seq=6), 10**9)  # the stop of cycle 6 was lost, its go was not
    assert agent.may_send(2 * 10**9) == [8]


def test_a_permission_ends_by_itself():
    agent = Agent(host=0, hosts=12, permit=300 * us)
    agent.frame(Extended(which=3, seq=5), 0)
    assert agent.may_send(300 * us - 1) == [4] and agent.may_send(300 * us) == []
    assert agent.next_change(0) == 300 * us and agent.next_change(300 * us) is None


def test_a_late_frame_is_ignored_and_numbers_go_around():
    agent = Agent(host=0, hosts=12)
    agent.frame(Extended(which=3, seq=CYCLES - 1), 0)
    assert agent.frame(Extended(which=5, seq=0), 1) and agent.seen == CYCLES - 1
    assert not agent.frame(Extended(which=3, seq=CYCLES - 1), 2)
    assert agent.may_send(3) == [6] and agent.ignored == 1


@pytest.mark.parametrize("expiry", [False, True])
def test_a_pause_of_the_standard_ends_after_its_quanta(expiry):
    agent = Agent(host=0, hosts=3, expiry=expiry)
    agent.frame(Pause(time=65535), 0)
    assert agent.may_send(3_355_392_000 - 1) == []
    assert agent.may_send(3_355_392_000) == ([1, 2] if expiry else [])


def test_a_host_is_silent_before_its_first_frame_unless_it_is_an_ordinary_nic():
    assert Agent(host=1, hosts=3).may_send(0) == []
    assert Agent(host=1, hosts=3, muted=False).may_send(0) == [2, 0]


# ---------------------------------------------------------------- hosts and managers that die


def test_a_dead_host_gets_no_slots_after_a_while_and_gets_them_again_when_it_is_back():
    world = World(single(6, LINK, 0), every(6, 10**9), slots=5, silence=2)
    world.cycles(20)
    world.dead = {2}
    world.cycles(20)
    grants = [pair for cycle in range(35, 40) for pair in world.manager.granted(cycle)]
    assert grants and not any(2 in (src, dst) for src, dst, _ in grants)
    assert world.manager.count.silent_hosts > 0
    world.dead = set()
    world.cycles(15)
    assert any(cycle >= 50 and 2 in (src, dst) for cycle, src, dst, _ in world.sent)


def settings_of(world):
    return {"network": world.manager.network, "slots": world.manager.slots}


def test_a_standby_takes_over_after_its_patience_and_everything_arrives():
    world = World(single(12, LINK, 0), every(12, 3 * BLOCK), slots=11)
    standby = Standby(settings=settings_of(world), patience=3 * CYCLE)
    for _ in range(20):
        world.cycles(1)
        standby.hear(world.manager.heartbeat)
        assert standby.act(world.now) == []
    died = standby.last.time
    assert standby.due == died + 3 * CYCLE
    orders = standby.act(standby.due)
    assert {order.frame.time for order in orders} == {65535}  # first of all everybody stops
    world.deliver(orders)
    world.deliver(standby.act(standby.due))
    begun = len(world.sent)
    world.cycles(200, by=standby.manager)
    assert (world.got == every(12, 3 * BLOCK)).all()
    assert min(cycle for cycle, *_ in world.sent[begun:]) >= standby.manager.first + 11  # a round of reports first


def test_a_manager_that_comes_back_is_not_listened_to_and_retires():
    world = World(single(12, LINK, 0), every(12, 3 * BLOCK), slots=11)
    world.cycles(20)
    standby = Standby(settings=settings_of(world), patience=2 * CYCLE)
    standby.hear(world.manager.heartbeat)
    standby.act(standby.due)
    world.deliver(standby.manager.act(standby.manager.due))
    before = [agent.ignored for agent in world.agents]
    world.deliver(world.manager.act(standby.manager.due))
    assert all(agent.ignored > count for agent, count in zip(world.agents, before, strict=True))
    world.manager.meet(standby.manager.heartbeat)
    assert world.manager.retired and world.manager.act(10**15) == []
    standby.hear(Heartbeat(0, 99, 10**12))
    assert not standby.manager.retired


def test_called_late_the_manager_sends_what_is_due_and_nothing_twice():
    network = Network(graph=single(3, LINK, 0))
    steady, late = Manager(network=network), Manager(network=network)
    frames = []
    while steady.due <= 10 * CYCLE:
        frames += steady.act(steady.due)
    assert sorted(frames, key=lambda o: o.time) == late.act(10 * CYCLE)
    assert late.act(10 * CYCLE) == []


# ---------------------------------------------------------------- what cannot be meant


NETWORK = Network(graph=single(4, LINK, 0))


@pytest.mark.parametrize(
    "call, sentence",
    [
        (
            lambda: Manager(network=NETWORK, guard=300 * us),
            "guard must be shorter than the slot of 300000000 ps, not 300000000",
        ),
        (lambda: Manager(network=NETWORK, slots=0), "slots must be from 1 to 4,194,303 in a round, not 0"),
        (lambda: Manager(network=NETWORK, slots=5, lead=6), "lead must be from 1 to the 5 slots of a round, not 6"),
        (lambda: Manager(network=NETWORK, signal="wave"), "signal must be auto, pause, pfc or extended, not 'wave'"),
        (
            lambda: Manager(network=NETWORK, signal="pause"),
            "hosts must be at most 2 for a class each in frames of kind pause, not 4",
        ),
        (
            lambda: Manager(network=NETWORK).report(Report(host=4, seen=-1, waiting=np.zeros(4))),
            "a host that reports must be from 0 to 3, not 4",
        ),
        (
            lambda: Manager(network=NETWORK).report(Report(host=1, seen=-1, waiting=np.zeros(3))),
            "waiting must be a number for each of 4 hosts, not 3",
        ),
        (
            lambda: Report(host=1, seen=-1, waiting=np.zeros(4), room=np.array([0, 0, -5, 0])),
            "room at host 1 for host 2 must be 0 or more, not -5",
        ),
        (lambda: Nics(count=1, offset=(1, 2)), "offset must be at most one for each of 1 NICs, not 2"),
        (
            lambda: Standby(settings={"network": NETWORK}, patience=100 * us),
            "patience must be at least a cycle of 315000000 ps, not 100000000",
        ),
        (lambda: Agent(host=4, hosts=4), "host must be from 0 to 3, not 4"),
    ],
)
def test_what_cannot_be_meant_is_named(call, sentence):
    with pytest.raises(BadInput) as error:
        call()
    assert str(error.value) == sentence


def test_settings_of_nics_can_be_replaced():
    assert replace(Nics(), count=8).spacing == 67_200
